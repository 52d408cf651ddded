"""Censored times and what can be said of them: Kaplan-Meier, log-rank, restricted means, intervals, power.

A time is the episode at which a run arrived; where it did not, `arrived` is False and the time is how long it was
watched. All functions take plain arrays and know nothing of where runs came from. Statistics that have an interval take
`weights`, how often each run counts: all ones for the estimate, the counts of a resample for the bootstrap.
"""

import bisect
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.stats.distributions import rv_frozen

LEVEL = 0.95
DRAWS = 10_000
ALPHA = 0.05


class Times(NamedTuple):
    """Censored times of one arm, in the order of their seeds, so that two arms are paired."""

    time: np.ndarray  # (runs,) episode of arrival, or the last one watched
    arrived: np.ndarray  # (runs,) whether it did


class Interval(NamedTuple):
    """An estimate with its interval, and the number of runs behind it."""

    estimate: float
    low: float
    high: float
    n: int

    def __format__(self, spec: str) -> str:
        spec = spec or ".3g"
        return f"{self.estimate:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


# Censored times


class Survival(NamedTuple):
    """The share of runs still on their way, a step function of the episode, with a pointwise band."""

    episode: np.ndarray  # (steps,) from 0 on
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n: int


def survival(times: Times, level: float = LEVEL) -> Survival:
    """Return the Kaplan-Meier curve S(t) = Π (1 - d_i / n_i) with its band (Greenwood, on the log-log scale)."""
    curve = stats.ecdf(_censored(times)).sf
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the band has no formula where S is 0 or 1
        band = curve.confidence_interval(level, method="log-log")
    share, low, high = (np.append(1.0, f.probabilities) for f in (curve, band.low, band.high))
    low, high = (np.where(np.isnan(bound), share, bound) for bound in (low, high))
    return Survival(np.append(0.0, curve.quantiles), share, low, high, len(times.time))


def _censored(times: Times) -> stats.CensoredData:
    time, arrived = np.asarray(times.time, float), np.asarray(times.arrived, bool)
    return stats.CensoredData(uncensored=time[arrived], right=time[~arrived])


def restricted_mean(times: Times, cap: float, weights: np.ndarray | None = None) -> np.ndarray:
    """Return ∫₀^cap S(t) dt, the mean time up to the cap, for each row of weights; (..., runs) gives (...)."""
    episodes, shares = _curves(times, weights)
    inside = episodes < cap
    lengths = np.diff(np.append(episodes[inside], cap))
    return shares[..., inside] @ lengths


def median(times: Times, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the first time at which at most half of the runs are on their way; infinite where it never comes."""
    episodes, shares = _curves(times, weights)
    half_there = shares <= 0.5 + 1e-12
    return np.where(half_there.any(axis=-1), episodes[half_there.argmax(axis=-1)], np.inf)


def _curves(times: Times, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the episodes, from 0 on, and for each row of weights its Kaplan-Meier curve at them."""
    time, arrived = np.asarray(times.time, float), np.asarray(times.arrived, bool)
    weights = np.ones(len(time)) if weights is None else np.asarray(weights, float)
    episodes, position = np.unique(time, return_inverse=True)
    here = position[:, None] == np.arange(len(episodes))  # (runs, episodes)
    arriving = weights @ (here & arrived[:, None])
    left = weights @ here
    at_risk = left[..., ::-1].cumsum(axis=-1)[..., ::-1]
    shares = np.cumprod(1 - arriving / np.maximum(at_risk, 1e-12), axis=-1)
    return np.append(0.0, episodes), np.concatenate([np.ones((*shares.shape[:-1], 1)), shares], axis=-1)


def logrank(a: Times, b: Times) -> float:
    """Return the two-sided p-value of the log-rank test that both arms arrive at the same rate at every time.

    Exact, over all ways to divide the runs into two such arms, where these can be counted; with more runs asymptotic.
    """
    return float(logranks([(a, b)])[0])


def logranks(pairs: Sequence[tuple[Times, Times]]) -> np.ndarray:
    """Return the p-value of the log-rank test of each of some pairs of arms, all of the same sizes."""
    first, second = (len(arm.time) for arm in pairs[0])
    if math.comb(first + second, first) <= EXACT:
        return _exact_logranks(pairs, _divisions(first, second))
    return np.array([_asymptotic_logrank(a, b) for a, b in pairs])


EXACT = 200_000  # so many ways to divide the runs are counted: ten runs per arm have 184,756


def _asymptotic_logrank(a: Times, b: Times) -> float:
    if not (np.any(a.arrived) or np.any(b.arrived)):
        return 1.0  # nobody arrived: there is nothing to tell the two apart by
    with np.errstate(invalid="ignore"):
        p = float(stats.logrank(_censored(a), _censored(b)).pvalue)
    return 1.0 if np.isnan(p) else p  # all arrived in the same episode: neither is there here


def _exact_logranks(pairs: Sequence[tuple[Times, Times]], divisions: np.ndarray) -> np.ndarray:
    """Return the share of divisions whose arrivals lie at least as far from those expected as they do in each pair."""
    together = [Times(np.append(a.time, b.time), np.append(a.arrived, b.arrived)) for a, b in pairs]
    scores = np.array([_logrank_scores(times) for times in together])  # (pairs, runs)
    here = np.abs(scores[:, : len(pairs[0][0].time)].sum(axis=1))
    elsewhere = np.abs(divisions @ scores.T.astype(np.float32))  # (divisions, pairs)
    return (elsewhere >= here - 1e-5).mean(axis=0)  # equal ones differ by rounding


def _logrank_scores(times: Times) -> np.ndarray:
    """Return for each run its arrivals, 0 or 1, minus those expected until its time; over an arm they sum to O - E."""
    time, arrived = np.asarray(times.time, float), np.asarray(times.arrived, bool)
    at_risk, arriving = (time[:, None] <= time).sum(axis=1), ((time[:, None] == time) & arrived).sum(axis=1)
    moments, first = np.unique(time, return_index=True)
    hazard = np.cumsum(arriving[first] / at_risk[first])  # Nelson and Aalen's, of all runs together
    return arrived - hazard[np.searchsorted(moments, time)]


@cache
def _divisions(first: int, second: int) -> np.ndarray:
    """Return all ways to choose the first arm's runs, (divisions, runs), 1 where a run is in it.

    Of equal arms only those with the first run in it: exchanging the arms gives the others, equally far from expected.
    """
    chosen = np.array(list(itertools.combinations(range(first + second), first)))
    chosen = chosen[chosen[:, 0] == 0] if first == second else chosen
    divisions = np.zeros((len(chosen), first + second), np.float32)
    np.put_along_axis(divisions, chosen, 1, axis=1)
    return divisions


def improvement(a: Times, b: Times, cap: float, weights: np.ndarray | None = None) -> np.ndarray:
    """Return how many times faster `a` is than `b`: the restricted mean of b over that of a."""
    return restricted_mean(b, cap, weights) / restricted_mean(a, cap, weights)


def probability_faster(a: Times, b: Times, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the share of paired seeds on which `a` arrives before `b`; a tie, or neither arriving, counts half.

    Both arms are watched to the same cap, so that a run that did not arrive is slower than any that did.
    """
    return average(lower(*(np.where(x.arrived, x.time, np.inf) for x in (a, b))), weights)


def lower(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return, pair by pair, 1 where `a` is lower, 0 where `b` is, 1/2 where they are equal."""
    return 0.5 * ((a < b).astype(float) + (a <= b))


def average(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the mean of values, or for each row of weights the weighted mean."""
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, float)
    return weights @ np.asarray(values, float) / weights.sum(axis=-1)


# Curves of evaluation returns


def area(returns: Sequence[float], cap: int, window: int = 25) -> float:
    """Return the mean of `cap` evaluation returns.

    A run that stopped earlier goes on, in thought, at the mean of its last `window` returns.
    """
    return float(carried_on(returns, cap, window).mean())


def carried_on(returns: Sequence[float], cap: int, window: int = 25) -> np.ndarray:
    """Return `cap` evaluation returns: those of a run and, where it stopped earlier, the mean of its last `window`."""
    seen = np.asarray(returns, float)[:cap]
    return np.append(seen, np.full(cap - len(seen), seen[-window:].mean()))


def stability(returns: Sequence[float], window: int = 25) -> float:
    """Return the variance of the last evaluation returns; low is steady. Infinite if there is none."""
    return float(np.var(np.asarray(returns, float)[-window:])) if len(returns) else np.inf


# Intervals, tests, power


def bootstrap(
    statistic: Callable[[np.ndarray], np.ndarray], n: int, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> Interval:
    """Return a statistic of n runs with its percentile bootstrap interval.

    `statistic` maps weights, (..., n), to values, (...). Pairs stay together: a draw counts seeds, not times.
    """
    bounds = np.quantile(statistic(_resamples(n, draws, seed)), [(1 - level) / 2, (1 + level) / 2], method="nearest")
    return Interval(float(statistic(np.ones(n))), *map(float, bounds), n)


@lru_cache(maxsize=8)  # an analysis asks for the same few numbers of runs again and again
def _resamples(n: int, draws: int, seed: int) -> np.ndarray:
    """Return how often each of n runs is drawn, (draws, n)."""
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=draws).astype(float)
    counts.flags.writeable = False
    return counts


def signed_rank(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test that paired differences are centred on zero."""
    differences = np.nan_to_num(np.asarray(differences, float))  # the difference of two infinities is none
    told = differences[differences != 0]
    if not len(told):
        return 1.0
    if 2 ** len(told) > EXACT:
        return float(stats.wilcoxon(differences).pvalue)
    ranks = (2 * stats.rankdata(np.abs(told))).astype(int)  # doubled: equal differences share a rank
    ways = np.ones(1)  # in how many of the 2^n ways to give signs the positive ranks sum to 0, 1, 2, ...
    for rank in ranks:
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    positive = ranks[told > 0].sum()
    return min(1.0, float(2 * min(ways[: positive + 1].sum(), ways[positive:].sum()) / ways.sum()))


def paired_difference(a: np.ndarray, b: np.ndarray) -> tuple[Interval, float]:
    """Return the mean of a - b over pairs with its bootstrap interval, and the p-value of the signed-rank test."""
    gaps = np.asarray(a, float) - np.asarray(b, float)
    return bootstrap(lambda weights: average(gaps, weights), len(gaps)), signed_rank(gaps)


def rank_correlations(table: np.ndarray) -> np.ndarray:
    """Return Kendall's τ of each column of a table, (rows, columns), with the order of its rows; 0 if all are equal."""
    order = np.arange(len(table))
    return np.array([stats.kendalltau(order, column).statistic if np.ptp(column) else 0.0 for column in table.T])


def adjusted(pvalues: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted for the false discovery rate over the family (Benjamini and Hochberg)."""
    return stats.false_discovery_control(np.asarray(pvalues, float))


def position(value: float, times: Times) -> float:
    """Return how unusual a single run of length `value` is among ours: p = 2 (1 + min(r, s)) / (n + 1), at most 1.

    r of the n runs are at most as long and s are at least as long; a run that did not arrive is longer.
    """
    time = np.where(times.arrived, times.time, np.inf)
    r, s = np.sum(time <= value), np.sum(time >= value)
    return float(min(1.0, 2 * (1 + min(r, s)) / (len(time) + 1)))


FACTORS = (1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0, 10.0)


def detectable(b: Times, *, alpha: float = ALPHA, power: float = 0.8, trials: int = 200, seed: int = 0) -> float:
    """Return the smallest factor by which an arm must be faster than `b` for the log-rank test to find it.

    Both arms are simulated: seeds drawn from `b` again, those of the faster arm with their times divided by the factor.
    The arrival of a run that was never seen to arrive is drawn from a Weibull distribution fitted to `b`.
    Infinite if even the largest of FACTORS is found too rarely, not a number if fewer than two runs of `b` arrived.
    """
    if np.sum(b.arrived) < 2:
        return np.nan
    cap = max(np.asarray(b.time, float)[~np.asarray(b.arrived, bool)], default=np.inf)
    distribution = weibull(b) if np.isfinite(cap) else None

    def is_found(factor: float) -> bool:
        rng = np.random.default_rng(seed)
        pairs = [[_watched(_drawn(b, distribution, rng) / by, cap) for by in (factor, 1.0)] for _ in range(trials)]
        return np.sum(logranks(pairs) < alpha) >= power * trials

    place = bisect.bisect_left(FACTORS, True, key=is_found)  # a larger factor is found more often
    return FACTORS[place] if place < len(FACTORS) else np.inf


def weibull(times: Times) -> rv_frozen:
    """Return the Weibull distribution, S(t) = exp(-(t/λ)^k), that fits censored times best."""
    shape, _, scale = stats.weibull_min.fit(_censored(times), floc=0)
    return stats.weibull_min(shape, scale=scale)


def _drawn(times: Times, distribution: rv_frozen | None, rng: np.random.Generator) -> np.ndarray:
    """Draw as many runs again; those that did not arrive do so beyond the time that they were watched."""
    chosen = rng.integers(len(times.time), size=len(times.time))
    time, late = np.asarray(times.time, float)[chosen], ~np.asarray(times.arrived, bool)[chosen]
    if late.any():
        time[late] = distribution.isf(rng.uniform(size=late.sum()) * distribution.sf(time[late]))
    return time


def _watched(time: np.ndarray, cap: float) -> Times:
    return Times(np.minimum(time, cap), time <= cap)
