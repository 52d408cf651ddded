"""The paper's claims (data/paper/claims.csv), each held against the recorded study by the rules of the plan."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from kscore.analysis import comparisons, stats, verdicts
from kscore.analysis.verdicts import Verdict
from kscore.project import DATA, need_checkout

READINGS = ("written", "released")
Runs = Mapping[str, pd.DataFrame]  # the frame of each part of the study, by the name of its part


class Pairing(NamedTuple):
    """Which runs speak to a claim: a part, arms of it, the K-Scores before the baseline, and the criterion."""

    part: str
    arms: tuple[str, ...] = ()  # none: all of them, in their order
    criterion: str = "evaluation"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "part: a / b by criterion", where all but the part may be missing."""
        found = re.fullmatch(r"(\w+)(?:: (.+?))?(?: by (\w+))?", text)
        if not found:
            raise ValueError(f"a pairing must be 'part: arm / arm by criterion', got {text!r}")
        return cls(found[1], tuple((found[2] or "").split(" / ")) if found[2] else (), found[3] or "evaluation")


class Evidence(NamedTuple):
    """What the study says of a claim: in words, as a p-value for the family, and as a verdict once that is adjusted."""

    words: str
    verdict: Callable[[float], Verdict]
    p: float = np.nan  # nan: the rule needs no test
    power: Callable[[], str] = str  # what could have been found, asked for where it cannot be told


def published(experiment: str) -> pd.DataFrame:
    """Return the numbers that the paper and its released files give for an experiment ("E1", "T1a", ...)."""
    need_checkout("the table of published numbers")
    numbers = pd.read_csv(DATA / "paper" / "published.csv")
    return numbers[numbers.id == experiment].drop(columns="id").dropna(axis=1, how="all").reset_index(drop=True)


def read() -> pd.DataFrame:
    """Return the claims, a row each."""
    need_checkout("the table of claims")
    return pd.read_csv(DATA / "paper" / "claims.csv", keep_default_na=False).set_index("id")


def judge(claims: pd.DataFrame, runs: Runs, readings: Sequence[str] = READINGS) -> pd.DataFrame:
    """Return the claims with what we found and the verdict, for each reading of the paper; all of it is one family.

    Added columns: `written_found`, `written_verdict`, `released_found`, `released_verdict`.
    """
    cells = [(claim, reading) for claim in claims.index for reading in readings]
    plain = {cell: evidence(claims.loc[cell[0]], cell[1], runs) for cell in cells if claims.kind[cell[0]] != "summary"}
    adjusted = _adjusted({cell: found.p for cell, found in plain.items()})
    verdict = {cell: found.verdict(adjusted[cell]) for cell, found in plain.items()}
    words = {
        cell: found.words
        + (f", {_p(adjusted[cell], 'q')}" if found.p == found.p else "")
        + (found.power() if verdict[cell] == Verdict.UNTOLD else "")
        for cell, found in plain.items()
    }
    for claim, reading in (cell for cell in cells if cell not in plain):
        parts = claims.loc[claim, reading].split()
        verdict[claim, reading] = verdicts.together(verdict[part, reading] for part in parts)
        words[claim, reading] = "; ".join(f"{part} {verdict[part, reading]}" for part in parts)
    judged = claims.copy()
    for reading in readings:
        judged[f"{reading}_found"] = [words[claim, reading] for claim in claims.index]
        judged[f"{reading}_verdict"] = [str(verdict[claim, reading]) for claim in claims.index]
    return judged


def _adjusted(pvalues: dict) -> dict:
    """Adjust the p-values of those that have one over their family."""
    family = [cell for cell, p in pvalues.items() if p == p]
    return dict.fromkeys(pvalues, np.nan) | dict(
        zip(family, stats.adjusted([pvalues[cell] for cell in family]), strict=True)
    )


def evidence(claim: pd.Series, reading: str, runs: Runs) -> Evidence:
    """Return what the study says of one claim in one reading."""
    pairing = Pairing.parse(claim[reading])
    return KINDS[claim.kind](pairing, runs[pairing.part], claim.published and float(claim.published))


def _ranking(pairing: Pairing, runs: pd.DataFrame, _: object) -> Evidence:
    found = comparisons.compare(runs, *pairing.arms, pairing.criterion)
    a, b = (comparisons.times(runs, arm, pairing.criterion) for arm in pairing.arms)
    informed = verdicts.informed(a, b)
    few = "" if informed else f", {a.arrived.sum()} and {b.arrived.sum()} arrived"
    return Evidence(
        f"factor {found.factor:.2f}, n = {found.n}{few}, {_p(found.p)}",
        partial(verdicts.ranking, found.factor, informed=informed),
        found.p,
        lambda: _power(stats.detectable(b)),
    )


def _power(factor: float) -> str:
    if np.isnan(factor):
        return " (too few runs arrived to say which factor this test could have found)"
    even = f"not even a factor of {stats.FACTORS[-1]:g}" if np.isinf(factor) else f"a factor of {factor:g}"
    return f" (unadjusted, {even} would have been found with 80 % probability)"


def _size(pairing: Pairing, runs: pd.DataFrame, published: float) -> Evidence:
    found = comparisons.compare(runs, *pairing.arms, pairing.criterion)
    return Evidence(f"factor {found.factor:.2f}, n = {found.n}", lambda _: verdicts.size(found.factor, published))


def _number(pairing: Pairing, runs: pd.DataFrame, published: float) -> Evidence:
    times = comparisons.times(runs, pairing.arms[0], pairing.criterion)
    low, middle, high = np.quantile(np.where(times.arrived, times.time, np.inf), [0.025, 0.5, 0.975], method="nearest")
    spread = f"median {middle:.0f}, middle 95 % from {low:.0f} to {high:.0f}".replace("inf", "beyond the cap")
    spread = "over 95 % beyond the cap" if np.isinf(low) else spread
    return Evidence(
        f"{spread}, n = {len(times.time)}, position {_p(stats.position(published, times))}",
        lambda _: verdicts.number(published, times, earliest=comparisons.WINDOW),
    )


def _stability(pairing: Pairing, runs: pd.DataFrame, _: object) -> Evidence:
    found = comparisons.compare(runs, *pairing.arms, pairing.criterion)
    return Evidence(
        f"steadier with probability {found.steadier:.2f}, n = {found.n}, {_p(found.steadier_p)}",
        partial(verdicts.steadier, found.steadier),
        found.steadier_p,
    )


def _early(pairing: Pairing, runs: pd.DataFrame, _: object) -> Evidence:
    comparisons.same_seeds(runs, pairing.arms)
    a, b = (comparisons.early(runs, arm) for arm in pairing.arms)
    ahead = stats.lower(b, a)
    interval = stats.bootstrap(lambda w: stats.average(ahead, w), len(ahead))
    p = stats.signed_rank(a - b)
    return Evidence(
        f"ahead with probability {interval:.2f}, n = {interval.n}, {_p(p)}", partial(verdicts.steadier, interval), p
    )


def _trend(pairing: Pairing, runs: pd.DataFrame, _: object) -> Evidence:
    tau, p = comparisons.trend(runs, runs.arm.unique(), pairing.criterion)
    return Evidence(f"mean τ {tau:.2f}, n = {tau.n}, {_p(p)}", partial(verdicts.trend, tau), p)


KINDS = {
    "ranking": _ranking,
    "size": _size,
    "number": _number,
    "stability": _stability,
    "early": _early,
    "trend": _trend,
}


def _p(value: float, name: str = "p") -> str:
    return f"{name} < 0.001" if value < 0.001 else f"{name} = {value:.3f}"
