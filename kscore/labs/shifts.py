"""After a shift: how long it takes until the criterion is met again (chapter 14).

    >>> later = after_shift(study.runs(part), after=150, threshold=475.0)
    >>> compare(later, "kscore", "zscore").factor

The runs must not have stopped when they first arrived (`stop=False`).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kscore import checks
from kscore.analysis.comparisons import WINDOW


def arrived_again(
    returns: Sequence[float], after: int, threshold: float, window: int = WINDOW, every: int = 1
) -> int | None:
    """Return how many episodes after a shift the mean of the last `window` returns is at the threshold, or None.

    There is a return after every `every` training episodes. The shift comes after `after` of them, and all returns of
    the window must have come after it: what was earned before does not help.
    """
    checks.whole("after", after, low=0)
    checks.whole("window", window)
    checks.whole("every", every)
    checks.number("threshold", threshold)
    since = checks.series("returns", returns)[after // every :] if len(returns) else np.empty(0)
    if len(since) < window:
        return None
    there = np.lib.stride_tricks.sliding_window_view(since, window).mean(axis=1) >= threshold
    return int((after // every + window + there.argmax()) * every - after) if there.any() else None


def after_shift(runs: pd.DataFrame, after: int, threshold: float, window: int = WINDOW) -> pd.DataFrame:
    """Return the frame of runs as if they had begun at a shift that came after `after` training episodes.

    Times, caps and returns are those since the shift, so that whatever takes a frame can be asked about what came
    then: `times`, `survivals`, `restricted_means`, `compare`. A run counts whether or not it had arrived before. A run
    that diverged will not arrive any more; any other must have been trained to its cap.
    """
    checks.whole("after", after, low=0)
    short = runs[(runs.episodes < runs.cap) & (runs.status != "diverged")]
    if len(short):
        raise ValueError(
            f"runs must have been trained to their cap (stop=False), got one of arm {short.arm.iloc[0]!r} "
            f"that stopped after {short.episodes.iloc[0]} of {short.cap.iloc[0]} episodes"
        )
    if len(runs) and after >= runs.cap.min():
        raise ValueError(f"after must be less than the cap of every run, got {after} and a cap of {runs.cap.min()}")
    rows = [_since(run, after, threshold, window) for run in runs.to_dict("records")]
    return pd.DataFrame(rows, columns=runs.columns)


def _since(run: dict, after: int, threshold: float, window: int) -> dict:
    cap, later = run["cap"] - after, {}
    for criterion, name, every in (("evaluation", "eval_returns", run["every"]), ("training", "train_returns", 1)):
        again = arrived_again(run[name], after, threshold, window, every)
        later |= {
            criterion: cap if again is None else min(again, cap),
            f"{criterion}_arrived": again is not None,
            name: run[name][after // every :],
        }
    status = run["status"] if run["status"] == "diverged" else "arrived" if later["evaluation_arrived"] else "censored"
    return run | later | {"cap": cap, "episodes": max(run["episodes"] - after, 0), "status": status}
