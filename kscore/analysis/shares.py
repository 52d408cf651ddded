"""Learning from groups of answers (data/sums.jsonl): the recorded learning curves, and how the forms compare.

The outcome of a run is the mean share of right answers over all of its updates. Two forms are compared seed by seed,
because a seed gives all of them the same start.
"""

from pathlib import Path

import numpy as np
import orjson
import pandas as pd

from kscore import journal
from kscore.analysis import stats
from kscore.analysis.verdicts import difference


def read(path: Path) -> pd.DataFrame:
    """Return the recorded runs, a row each: form, answers, seed, curve, share; only seeds that all forms have."""
    records = [orjson.loads(line) for line in journal.lines(path)]
    if not records:
        raise ValueError(f"path must be a file of recorded runs, got {path}, which holds none")
    runs = pd.DataFrame(
        [
            {
                "form": record["config"]["form"],
                "answers": record["config"]["answers"],
                "seed": record["seed"],
                "curve": np.array(record["curve"]),
            }
            for record in records
        ]
    )
    runs["share"] = [curve.mean() for curve in runs.curve]
    kinds = runs[["form", "answers"]].drop_duplicates()
    return runs[runs.groupby("seed").seed.transform("size") == len(kinds)].reset_index(drop=True)


def against(runs: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return a row for each form and size of group: how its shares differ from the baseline's, and what that means.

    The p-values (Wilcoxon's signed-rank test over seeds) are adjusted over the rows of this table.
    """
    rows = {}
    for answers, here in runs.groupby("answers", sort=False):
        table = here.pivot(index="seed", columns="form", values="share")
        for form in [form for form in here.form.unique() if form != baseline]:
            found, p = stats.paired_difference(table[form].to_numpy(), table[baseline].to_numpy())
            rows[answers, form] = {"difference": found, "p": p}
    table = pd.DataFrame(rows).T.rename_axis(["answers", "form"])
    table["adjusted p"] = stats.adjusted(table.pop("p"))
    table["verdict"] = [difference(found, q) for found, q in zip(table.difference, table["adjusted p"], strict=True)]
    return table
