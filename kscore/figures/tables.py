"""Tables in the words of the figures."""

import pandas as pd

from kscore.analysis.stats import Interval
from kscore.figures.style import METHODS
from kscore.study.records import STATUSES

FORMATS = {"restricted mean": ".0f", "median": ".0f", "mean evaluation return": ".0f", "stability": ",.0f",
           "factor": ".2f", "probability faster": ".2f", "probability steadier": ".2f"}
"""How the columns of a table of intervals are written; p-values and counts go without saying."""


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in the words of the figures: arms by their labels, intervals and p-values as text."""
    written = frame.copy().astype(object)
    for column in written:
        written[column] = [_written(value, FORMATS.get(column, "")) for value in frame[column]]
    return written.rename(index={arm: look["label"] for arm, look in METHODS.items()})


def _written(value: object, form: str) -> object:
    if isinstance(value, Interval):
        return f"{value:{form}}".replace("inf", "not reached")
    if isinstance(value, float):
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    return value


def factors(table: pd.DataFrame) -> list[tuple[str, Interval, str]]:
    """Return the rows of a forest plot from a table of comparisons (`analysis.against`)."""
    return [(METHODS[arm]["label"], factor, arm) for arm, factor in table.factor.items()]


def run_count(runs: pd.DataFrame) -> str:
    """Return in words how many runs there are, what they cost and how they ended."""
    ended = runs.status.value_counts()
    return (f"{len(runs):,} runs, {runs.steps.sum() / 1e6:,.0f} million environment steps, "
            f"{runs.seconds.sum() / 3600:.1f} hours of one core: "
            + ", ".join(f"{ended.get(status, 0):,} {status}" for status in ("arrived", "censored", "diverged")))


def ended(record: dict) -> str:
    """Return in words how a run ended, from what `train` returned."""
    return f"{STATUSES[record['status']]} after {record['episodes']} episodes"
