"""From the frame of a study to statistics: what each arm did, and how two arms compare.

>>> compare(study.runs(study.part("cartpole_ppo")), "adaptive_refit", "zscore").factor
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from kscore import checks
from kscore.analysis import stats, verdicts
from kscore.analysis.stats import Interval, Survival, Times
from kscore.study.records import CRITERIA

WINDOW = 25
"""How many of the last evaluation returns `area` and `stability` look at: as many as the stopping rule."""


def times(runs: pd.DataFrame, arm: object, criterion: str = "evaluation") -> Times:
    """Return the censored times of an arm, in the order of its seeds."""
    checks.choice("criterion", criterion, CRITERIA)
    chosen = _of(runs, arm)
    return Times(chosen[criterion].to_numpy(), chosen[f"{criterion}_arrived"].to_numpy())


def step_times(runs: pd.DataFrame, arm: object) -> Times:
    """Return the times of an arm in training steps, on a task that pays 1 per step.

    A return counts the steps of its episode there, so that a time is what the run had earned by then.
    """
    chosen = _of(runs, arm)
    earned = np.concatenate([*chosen.train_returns])
    if np.any((earned < 1) | (earned % 1 > 0)):
        raise ValueError(
            "runs must be of a task that pays 1 per step, got a return of "
            f"{earned[(earned < 1) | (earned % 1 > 0)][0]:g}"
        )
    taken = [
        returns[:episodes].sum() for returns, episodes in zip(chosen.train_returns, chosen.evaluation, strict=True)
    ]
    return Times(np.array(taken), chosen.evaluation_arrived.to_numpy())


def _of(runs: pd.DataFrame, arm: object) -> pd.DataFrame:
    chosen = runs[runs.arm == arm].sort_values("seed")
    if chosen.empty:
        raise ValueError(f"arm must be one of {', '.join(map(repr, runs.arm.unique()))}, got {arm!r}")
    return chosen


def arrived(runs: pd.DataFrame, arms: Iterable[object] | None = None, criterion: str = "evaluation") -> dict:
    """Return how many runs of each arm arrived, in the order of the arms, or else of the frame."""
    arms = runs.arm.unique() if arms is None else arms
    return {arm: int(times(runs, arm, criterion).arrived.sum()) for arm in arms}


def survivals(runs: pd.DataFrame, arms: Iterable[object], criterion: str = "evaluation") -> dict[object, Survival]:
    """Return the Kaplan-Meier curve of each of some arms."""
    return {arm: stats.survival(times(runs, arm, criterion)) for arm in arms}


def curves(runs: pd.DataFrame, arm: object, *, smooth: int = WINDOW) -> np.ndarray:
    """Return an arm's evaluation returns, (runs, evaluations up to the cap), each the mean of the last `smooth` ones.

    The first ones are means of fewer. A run that stopped goes on at the mean of its last window.
    """
    chosen = _of(runs, arm)
    found = np.array(
        [
            stats.carried_on(returns, most, WINDOW)
            for returns, most in zip(chosen.eval_returns, chosen.cap // chosen.every, strict=True)
        ]
    )
    for curve, returns in zip(found, chosen.eval_returns, strict=True):
        curve[: len(returns)] = pd.Series(returns).rolling(smooth, min_periods=1).mean()
    return found


def areas(runs: pd.DataFrame, arm: object) -> np.ndarray:
    """Return the mean evaluation return of each run of an arm, over all episodes up to the cap."""
    chosen = _of(runs, arm)
    return np.array(
        [
            stats.area(returns, most, WINDOW)
            for returns, most in zip(chosen.eval_returns, chosen.cap // chosen.every, strict=True)
        ]
    )


def stabilities(runs: pd.DataFrame, arm: object) -> np.ndarray:
    """Return the variance of the last evaluation returns of each run of an arm."""
    return np.array([stats.stability(returns, WINDOW) for returns in _of(runs, arm).eval_returns])


def early(runs: pd.DataFrame, arm: object, episodes: int = 50) -> np.ndarray:
    """Return the mean evaluation return of each run of an arm over its first episodes."""
    return curves(runs, arm, smooth=1)[:, : max(episodes // _of(runs, arm).every.iloc[0], 1)].mean(axis=1)


def summary(runs: pd.DataFrame, criterion: str = "evaluation") -> pd.DataFrame:
    """Return a row for each arm: runs, how many arrived or diverged, and restricted mean, median, area, stability."""
    return pd.DataFrame({arm: _summary(runs, arm, criterion) for arm in runs.arm.unique()}).T


def _summary(runs: pd.DataFrame, arm: object, criterion: str) -> dict:
    arrivals, cap, n = times(runs, arm, criterion), int(_of(runs, arm).cap.iloc[0]), len(_of(runs, arm))
    area, spread = areas(runs, arm), stabilities(runs, arm)
    return {
        "runs": n,
        "arrived": int(arrivals.arrived.sum()),
        "diverged": int((_of(runs, arm).status == "diverged").sum()),
        "restricted mean": stats.bootstrap(lambda w: stats.restricted_mean(arrivals, cap, w), n),
        "median": stats.bootstrap(lambda w: stats.median(arrivals, w), n),
        "mean evaluation return": stats.bootstrap(lambda w: stats.average(area, w), n),
        "stability": stats.bootstrap(lambda w: stats.average(spread, w), n),
    }


def restricted_means(runs: pd.DataFrame, criterion: str = "evaluation") -> dict[object, float]:
    """Return the restricted mean of every arm, up to its cap."""
    caps = runs.groupby("arm", sort=False).cap.first()
    return {arm: float(stats.restricted_mean(times(runs, arm, criterion), cap)) for arm, cap in caps.items()}


def best(runs: pd.DataFrame, criterion: str = "evaluation") -> object:
    """Return the arm with the lowest restricted mean; of equal ones the first."""
    means = restricted_means(runs, criterion)
    return min(means, key=means.get)


def trend(runs: pd.DataFrame, arms: Iterable[object], criterion: str = "evaluation") -> tuple[Interval, float]:
    """Return, over arms in their given order, the mean of the seeds' Kendall τ with the time, and its test's p-value.

    Above 0, later arms take longer. A run that did not arrive counts as long as it was watched.
    """
    arms = list(arms)
    same_seeds(runs, arms)
    table = np.array([times(runs, arm, criterion).time for arm in arms])  # (arms, seeds)
    found = stats.rank_correlations(table)
    return stats.bootstrap(lambda w: stats.average(found, w), len(found)), stats.signed_rank(found)


def same_seeds(runs: pd.DataFrame, arms: Iterable[object]) -> int:
    """Return how many seeds each of the arms has; refuse arms that cannot be paired."""
    first, *others = [(arm, _of(runs, arm).seed.tolist()) for arm in arms]
    if len(set(first[1])) < len(first[1]):
        raise ValueError(f"arm {first[0]!r} must have one run of each seed, got {first[1]}")
    for arm, seeds in others:
        if seeds != first[1] or not seeds:
            raise ValueError(
                f"arms {first[0]!r} and {arm!r} must have runs of the same seeds, got {first[1]} and {seeds}"
            )
    return len(first[1])


class Comparison(NamedTuple):
    """How arm `a` did against arm `b` on the same seeds."""

    a: object
    b: object
    n: int
    factor: Interval  # restricted mean of b over that of a: above 1, a is faster
    p: float  # log-rank, two-sided, not adjusted
    wins: Interval  # probability that a is faster on a paired seed
    steadier: Interval  # probability that the stability variance of a is the lower one on a paired seed
    steadier_p: float  # Wilcoxon's signed-rank test of that
    arrived: tuple[int, int]  # how many runs of each arrived

    @property
    def informed(self) -> bool:
        """Whether enough runs of both arms arrived for a factor near 1 to mean anything."""
        return min(self.arrived) >= verdicts.ENOUGH * self.n


def compare(runs: pd.DataFrame, a: object, b: object, criterion: str = "evaluation") -> Comparison:
    """Compare two arms of the same seeds, watched for the criterion up to the same cap."""
    n = same_seeds(runs, (a, b))
    first, second = times(runs, a, criterion), times(runs, b, criterion)
    cap = int(_of(runs, a).cap.iloc[0])
    for arm, found in ((a, first), (b, second)):
        if np.any(found.time[~found.arrived] != cap):
            raise ValueError(
                f"runs of arm {arm!r} must have been watched for the {criterion} criterion up to the cap "
                f"of {cap} episodes, got one that stopped at {found.time[~found.arrived].min()}"
            )
    spread_a, spread_b = stabilities(runs, a), stabilities(runs, b)
    steadier = stats.lower(spread_a, spread_b)
    return Comparison(
        a,
        b,
        n,
        stats.bootstrap(lambda w: stats.improvement(first, second, cap, w), n),
        stats.logrank(first, second),
        stats.bootstrap(lambda w: stats.probability_faster(first, second, w), n),
        stats.bootstrap(lambda w: stats.average(steadier, w), n),
        stats.signed_rank(spread_a - spread_b),
        (int(first.arrived.sum()), int(second.arrived.sum())),
    )


def rankings(compared: Mapping[object, Comparison], adjusted: Sequence[float] | None = None) -> pd.DataFrame:
    """Return a row for each named comparison, with the verdict on "the first arm is faster than the second".

    The p-values are adjusted over the rows of this table, unless those adjusted over a larger family are given.
    """
    qs = stats.adjusted([one.p for one in compared.values()]) if adjusted is None else adjusted
    rows = [
        {
            "arrived": " and ".join(map(str, one.arrived)),
            "factor": one.factor,
            "adjusted p": float(q),
            "verdict": verdicts.ranking(one.factor, q, informed=one.informed),
        }
        for one, q in zip(compared.values(), qs, strict=True)
    ]
    return pd.DataFrame(rows, index=pd.Index(compared), columns=["arrived", "factor", "adjusted p", "verdict"])


def delicate(compared: Mapping[object, Comparison]) -> list:
    """Return the names of the comparisons whose verdict in `rankings` hangs by a thread."""
    qs = rankings(compared)["adjusted p"]
    return [
        name
        for (name, one), q in zip(compared.items(), qs, strict=True)
        if verdicts.delicate(one.factor, q, informed=one.informed)
    ]


class Difference(NamedTuple):
    """By how much the areas of arm `a` exceed those of arm `b` on the same seeds."""

    a: object
    b: object
    n: int
    difference: Interval  # of the mean evaluation returns: above 0, a is better
    p: float  # Wilcoxon's signed-rank test, two-sided, not adjusted


def compare_areas(runs: pd.DataFrame, a: object, b: object) -> Difference:
    """Compare the mean evaluation returns up to the cap of two arms, seed by seed."""
    n = same_seeds(runs, (a, b))
    return Difference(a, b, n, *stats.paired_difference(areas(runs, a), areas(runs, b)))


def differences(compared: Mapping[object, Difference], adjusted: Sequence[float] | None = None) -> pd.DataFrame:
    """Return a row for each named comparison of areas: is the first arm better or worse, or can it not be told?

    The p-values are adjusted over the rows of this table, unless those adjusted over a larger family are given.
    """
    qs = stats.adjusted([one.p for one in compared.values()]) if adjusted is None else adjusted
    rows = [
        {"difference": one.difference, "adjusted p": float(q), "verdict": verdicts.difference(one.difference, q)}
        for one, q in zip(compared.values(), qs, strict=True)
    ]
    return pd.DataFrame(rows, index=pd.Index(compared))


def against(
    runs: pd.DataFrame, baseline: object, arms: Iterable[object] | None = None, criterion: str = "evaluation"
) -> pd.DataFrame:
    """Return a row for each arm against the baseline; the p-values are adjusted over the rows of this table."""
    arms = [arm for arm in (runs.arm.unique() if arms is None else arms) if arm != baseline]
    if not arms:
        raise ValueError(f"arms must name at least one beside the baseline {baseline!r}, got none")
    table = _table({arm: compare(runs, arm, baseline, criterion) for arm in arms})
    table.insert(2, "adjusted p", stats.adjusted(table["log-rank p"]))
    return table


def pair(runs: pd.DataFrame, a: object, b: object) -> pd.DataFrame:
    """Return what two arms did, a row each, and in the first row how it compares with the second."""
    did = summary(runs[runs.arm.isin([a, b])]).loc[[a, b], ["runs", "arrived", "restricted mean"]]
    return did.join(against(runs, b, [a])[["factor", "log-rank p"]]).astype(object).fillna("")


def by_criterion(runs: pd.DataFrame, pairs: Mapping[str, tuple[object, object]]) -> pd.DataFrame:
    """Return a row for each named pair of arms and each criterion; the p-values are not adjusted."""
    return _table(
        {(name, criterion): compare(runs, *pair, criterion) for name, pair in pairs.items() for criterion in CRITERIA}
    ).rename_axis(["pair", "returns"])


def _table(found: Mapping[object, Comparison]) -> pd.DataFrame:
    rows = [
        {"factor": c.factor, "log-rank p": c.p, "probability faster": c.wins, "probability steadier": c.steadier}
        for c in found.values()
    ]
    return pd.DataFrame(rows, index=pd.Index(found))
