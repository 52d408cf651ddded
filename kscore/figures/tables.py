"""Tables in the words of the figures."""

import html
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from kscore.analysis.claims import READINGS, Pairing
from kscore.analysis.stats import FACTORS, Interval
from kscore.analysis.verdicts import Verdict
from kscore.figures.style import LOOKS
from kscore.study.records import STATUSES

FORMATS = {
    "restricted mean": ".0f",
    "median": ".0f",
    "mean evaluation return": ".0f",
    "stability": ",.0f",
    "factor": ".2f",
    "probability faster": ".2f",
    "probability steadier": ".2f",
}
"""How the columns of a table of intervals are written; p-values and counts go without saying."""


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in the words of the figures: arms by their labels, intervals and p-values as text."""
    written = frame.copy().astype(object)
    for column in written:
        written[column] = [_written(value, FORMATS.get(column, "")) for value in frame[column]]
    return written.rename(index={arm: look["label"] for arm, look in LOOKS.items()})


def _written(value: object, form: str) -> object:
    if isinstance(value, Interval):
        return f"{value:{form}}".replace("inf", "not reached")
    if isinstance(value, float):
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    return value


def factors(table: pd.DataFrame) -> list[tuple[str, Interval, str]]:
    """Return the rows of a forest plot from a table of comparisons (`analysis.against`)."""
    return [(LOOKS[arm]["label"], factor, arm) for arm, factor in table.factor.items()]


def least_factor(factor: float) -> str:
    """Return the least factor that a test would have found (`stats.detectable`), in words.

    >>> least_factor(1.25), least_factor(float("inf"))
    ('1.25', 'more than 10')
    """
    if np.isnan(factor):
        return "cannot be said, too few runs arrived"
    return f"{factor:g}" if np.isfinite(factor) else f"more than {FACTORS[-1]:g}"


def counted(found: Mapping[object, object], labels: Mapping[object, str] | None = None) -> str:
    """Return numbers by arm in words; without `labels` the arms are called what they are in figures.

    >>> counted({"running": 28, "kscore": 3})
    'Z-Score, running 28, K-Score, stream 3'
    """
    labels = labels or {arm: LOOKS[arm]["label"] for arm in found}
    return ", ".join(f"{labels[arm]} {number}" for arm, number in found.items())


def run_count(runs: pd.DataFrame) -> str:
    """Return in words how many runs there are, what they cost and how they ended."""
    ended = runs.status.value_counts()
    return (
        f"{len(runs):,} runs, {runs.steps.sum() / 1e6:,.0f} million environment steps, "
        f"{runs.seconds.sum() / 3600:.1f} hours of one core: "
        + ", ".join(f"{ended.get(status, 0):,} {status}" for status in ("arrived", "censored", "diverged"))
    )


def ended(record: dict) -> str:
    """Return in words how a run ended, from what `train` returned."""
    return f"{STATUSES[record['status']]} after {record['episodes']} episodes"


# Tables of sentences

SYMBOLS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNTOLD: "?"}
SET_AS_PROSE = (
    "text-align: left; vertical-align: top; white-space: normal; padding: 0.3em 0.5em; "
    "border-bottom: 1px solid #bbb; font-size: 0.9em"
)


def sentences(frame: pd.DataFrame) -> Styler:
    """Return a table of sentences set as such: to the left, in several lines where they need them."""
    return frame.style.set_table_styles([{"selector": "th, td", "props": SET_AS_PROSE}])


def verdicts(judged: pd.DataFrame, readings: Iterable[str] = READINGS) -> Styler:
    """Return the judged claims (`analysis.claims.judge`) as a table: the claim, and each reading's verdict and why."""
    return sentences(
        judged[["where", "says"]]
        .rename(columns={"says": "claim"})
        .assign(
            **{
                f"as {reading}": [
                    f"<b>{SYMBOLS[verdict]} {verdict}</b><br>{html.escape(found)}"
                    for verdict, found in zip(judged[f"{reading}_verdict"], judged[f"{reading}_found"], strict=True)
                ]
                for reading in readings
            }
        )
    )


def pairing(text: str) -> str:
    """Return which arms a claim is judged by ("part: a / b") in the words of the figures."""
    found = Pairing.parse(text)
    arms = [LOOKS[arm]["label"] if arm in LOOKS else f"the file that reads {arm}" for arm in found.arms]
    by = " (training returns)" if found.criterion == "training" else ""
    return f"{found.part}: {' against '.join(arms) or 'all values of Q'}{by}"
