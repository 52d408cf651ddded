"""The rules of the analysis plan (data/PLAN.md, "Verdicts"): from an interval and a test to one of three words.

Every `q` is a p-value adjusted over the whole family of claims.
"""

from collections.abc import Iterable
from enum import StrEnum

import numpy as np

from kscore.analysis import stats
from kscore.analysis.stats import ALPHA, Interval, Times

MARGIN = 1.1  # an improvement factor below this is not worth a claim
STEADIER_MARGIN = 0.55
TREND_MARGIN = 0.1
ENOUGH = 0.5  # the share of runs that has to arrive in each arm before a factor near 1 means anything


class Verdict(StrEnum):
    """What can be said of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNTOLD = "cannot be told"


def ranking(factor: Interval, q: float, *, informed: bool = True) -> Verdict:
    """Judge "A is faster than B" by the factor by which it is.

    Where the runs tell too little (`informed` is False), an interval below the margin is no evidence against it.
    """
    return _beyond(factor, 1.0, MARGIN if informed else -np.inf, q)


def delicate(factor: Interval, q: float, *, informed: bool = True) -> bool:
    """Say whether the verdict on a ranking hangs by a thread: other draws of the bootstrap could turn it.

    It would be another one if the bounds of the interval or the adjusted p lay elsewhere by 0.01; another family to
    adjust over may do that, too.
    """
    verdict = ranking(factor, q, informed=informed)
    return any(
        ranking(factor._replace(low=factor.low + bound, high=factor.high + bound), q + p, informed=informed) != verdict
        for bound in (-0.01, 0.0, 0.01)
        for p in (-0.01, 0.0, 0.01)
    )


def as_good(factor: Interval, *, informed: bool = True) -> Verdict:
    """Judge "A is as good as B", by the factor by which A is faster: slower, if at all, by less than the margin.

    It fails where A is worse, with the whole interval below 1; where both apply it holds. Where the runs tell too
    little (`informed` is False), a factor near 1 is no evidence for it.
    """
    if informed and factor.low > 1 / MARGIN:
        return Verdict.HOLDS
    return Verdict.FAILS if factor.high < 1 else Verdict.UNTOLD


class Harm(StrEnum):
    """What another scale of the rewards does to an arm."""

    UNHARMED = "unharmed"
    HARMED = "harmed"
    UNTOLD = "cannot be told"


def harm(factor: Interval, q: float, *, informed: bool = True) -> Harm:
    """Judge what a change does to an arm, by the restricted mean without the change over that with it.

    Unharmed: slower, if at all, by less than the margin, which also counts where both words apply. Where the runs tell
    too little (`informed` is False), a factor near 1 is no evidence for it.
    """
    if informed and factor.low > 1 / MARGIN:
        return Harm.UNHARMED
    return Harm.HARMED if factor.high < 1 and q < ALPHA else Harm.UNTOLD


class Change(StrEnum):
    """What one form does against another, by a number of which more is better."""

    BETTER = "better"
    WORSE = "worse"
    UNTOLD = "cannot be told"


def difference(found: Interval, q: float) -> Change:
    """Judge a difference: its whole interval has to lie on one side of 0, and significantly."""
    if q < ALPHA and found.low > 0:
        return Change.BETTER
    return Change.WORSE if q < ALPHA and found.high < 0 else Change.UNTOLD


def informed(*arms: Times) -> bool:
    """Say whether at least half of the runs of each arm arrived; if fewer do, a factor is near 1 whatever is true."""
    return all(np.mean(arm.arrived) >= ENOUGH for arm in arms)


def steadier(probability: Interval, q: float) -> Verdict:
    """Judge "A is steadier than B" by the probability that it is, on a paired seed."""
    return _beyond(probability, 0.5, STEADIER_MARGIN, q)


def trend(tau: Interval, q: float) -> Verdict:
    """Judge "the time rises with the setting" by its rank correlation."""
    return _beyond(tau, 0.0, TREND_MARGIN, q)


def _beyond(interval: Interval, none: float, margin: float, q: float) -> Verdict:
    """Holds: above "no difference", and significantly. Fails: significantly below it, or below the margin anyhow."""
    if interval.low > none and q < ALPHA:
        return Verdict.HOLDS
    if (interval.high < none and q < ALPHA) or interval.high < margin:
        return Verdict.FAILS
    return Verdict.UNTOLD


def size(factor: Interval, published: float) -> Verdict:
    """Judge "A is so many times faster than B"."""
    if not factor.low <= published <= factor.high:
        return Verdict.FAILS
    return Verdict.UNTOLD if factor.low <= 1 <= factor.high else Verdict.HOLDS


def number(published: float, times: Times, *, earliest: float = -np.inf) -> Verdict:
    """Judge a published number of episodes as one more run among ours, of which none can end before the earliest."""
    if published <= earliest:
        return Verdict.UNTOLD
    if stats.position(published, times) < ALPHA:
        return Verdict.FAILS
    arrived = times.time[times.arrived]
    inside = len(arrived) and arrived.min() <= published and (published <= arrived.max() or not times.arrived.all())
    return Verdict.HOLDS if inside else Verdict.UNTOLD


def together(parts: Iterable[Verdict]) -> Verdict:
    """Judge a claim about several comparisons ("consistently", "across all")."""
    parts = list(parts)
    if Verdict.FAILS in parts:
        return Verdict.FAILS
    return Verdict.HOLDS if all(part == Verdict.HOLDS for part in parts) else Verdict.UNTOLD
