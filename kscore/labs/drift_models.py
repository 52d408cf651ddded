"""Does a model of a drifting mean fit the episodes of a run? Likelihoods and innovations (chapter 12).

Every model here predicts the next value of a series and is scored by the likelihood of its innovations, from the third
value on, so that all are judged by the same ones. Variances are in units of R, and R is always the one that suits the
model best. A model takes one setting, or an array of them, (candidates,), which it tries side by side.
P1 is a fact of the paper; chapter 00 lists them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import stats

from kscore import checks, filters

SKIPPED = 2  # values that set a level and a slope before the first one is judged
SHORTEST = 10  # a series with fewer values has no model
LOG_2PI = math.log(2 * math.pi)
TINY = 1e-300  # the least variance: predictions that never miss are not infinitely likely

RATIOS = np.append(0.0, np.geomspace(1e-6, 1e3, 19))
FORGETTING = np.geomspace(1e-4, 1.0, 17)  # 1 - decay of a moving average
LEVEL_RATIOS, SLOPE_RATIOS = np.append(0.0, np.geomspace(1e-4, 10, 9)), np.append(0.0, np.geomspace(1e-7, 0.1, 7))
FINER = np.linspace(-1, 1, 7)  # where a search goes on, in steps of the grid before


class Innovations(NamedTuple):
    """How far each prediction missed, and its variance up to a factor; (time,), or (time, candidates)."""

    missed: np.ndarray
    variance: np.ndarray

    @property
    def likelihood(self) -> float | np.ndarray:
        """The log-likelihood, at the best factor of the variances: one, or one for each candidate."""
        n = len(self.missed)
        factor = np.maximum(np.mean(self.missed**2 / self.variance, axis=0), TINY)
        return -0.5 * (n * (1 + LOG_2PI + np.log(factor)) + np.log(self.variance).sum(axis=0))

    @property
    def standardized(self) -> np.ndarray:
        """The innovations over their deviations, with a mean square of one."""
        ratio = self.missed / np.sqrt(self.variance)
        return ratio / math.sqrt(max(float(np.mean(ratio**2)), TINY))

    @property
    def correlation(self) -> float:
        """The correlation of neighbours: 0 if the model leaves nothing to be learned."""
        return float(self._correlations(1)[0])

    @property
    def kurtosis(self) -> float:
        """The fourth moment: 3 if they are normal, more if there are outliers."""
        return float(stats.kurtosis(self.standardized, fisher=False))

    def whiteness(self, lags: int = 10, fitted: int = 1) -> float:
        """Return the p-value of Ljung and Box's test that no two innovations up to `lags` apart are correlated.

        `fitted` is the number of parameters that were chosen to make them so: each takes a degree of freedom.
        """
        n = len(self.missed)
        lags = min(lags, n - 2)
        found = self._correlations(lags)
        statistic = n * (n + 2) * np.sum(found**2 / (n - np.arange(1, lags + 1)))
        return float(stats.chi2.sf(statistic, max(lags - fitted, 1)))

    def _correlations(self, lags: int) -> np.ndarray:
        centred = self.standardized - self.standardized.mean()
        return np.array([centred[lag:] @ centred[:-lag] for lag in range(1, lags + 1)]) / max(centred @ centred, TINY)


# The models


def local_level(z: np.ndarray, ratio: float | np.ndarray) -> Innovations:
    """Return the innovations of the local level (P1) with Q/R = ratio; a ratio of 0 is the running mean."""
    ratio = np.asarray(ratio, float)
    mean, var, missed, variance = np.full(ratio.shape, float(z[0])), np.ones(ratio.shape), [], []
    for value in z[1:].tolist():
        mean, var, _, innovation, S = filters.follow(mean, var, value, ratio, 1.0)
        missed.append(innovation)
        variance.append(S)
    return _judged(missed, variance)


def moving_average(z: np.ndarray, forgetting: float | np.ndarray) -> Innovations:
    """Return the innovations of an exponential moving average that starts at the first value; 1 - decay forgets."""
    forgetting = np.asarray(forgetting, float)
    level, missed = np.full(forgetting.shape, float(z[0])), []
    for value in z[1:].tolist():
        missed.append(value - level)
        level = level + forgetting * missed[-1]
    return _judged(missed, [np.ones(forgetting.shape)] * len(missed))


def sloped(
    z: np.ndarray, ratio: float | np.ndarray, slope_ratio: float | np.ndarray, *, flat: bool = False
) -> Innovations:
    """Return the innovations of level plus slope, with the variances of both drifts over R.

    The first two values set both: level z_1 with variance 1, slope z_1 - z_0 with variance 2 + Q + Q_slope, and the
    error of z_1 is in both. If it starts `flat`, the slope is 0 before its first drift, and only the level is set.
    """
    ratio, slope_ratio = np.broadcast_arrays(np.asarray(ratio, float), np.asarray(slope_ratio, float))
    one = np.ones(ratio.shape)
    if flat:
        belief, seen, missed, variance = filters.Trend(one * z[0], 0 * one, one, 0 * one, slope_ratio), 1, [], []
    else:
        belief = filters.Trend(one * z[1], one * (z[1] - z[0]), one, one, 2.0 + ratio + slope_ratio)
        seen, missed, variance = 2, [one], [one]  # of the second value, which is not judged
    for value in z[seen:].tolist():
        prior = filters.predict_trend(belief, ratio, slope_ratio)
        missed.append(value - prior.level)
        variance.append(prior.var + 1)
        belief = filters.update_trend(prior, value, 1.0)
    return _judged(missed, variance)


def along_line(z: np.ndarray, predicted: np.ndarray) -> Innovations:
    """Return how far a series lies from its best straight line over given predictions, (time,): a generous reading."""
    x, y = predicted[SKIPPED:], z[SKIPPED:]
    centred = x - x.mean()
    slope = centred @ y / max(centred @ centred, TINY)
    missed = y - y.mean() - slope * centred
    return Innovations(missed, np.ones(len(missed)))


def carried_belief(lengths: np.ndarray, Q: float, R: float, gamma: float = 0.99) -> np.ndarray:
    """Return what the streamed filter of the *steps* believes before each CartPole episode, from their lengths.

    All rewards are 1, so that G_t = (1 - γ^(N-t)) / (1 - γ), and an episode of N steps at the settled gain K takes x to
    (1 - K)^N x + K Σ_{s=1}^N (1 - K)^(s-1) (1 - γ^s) / (1 - γ): the sum runs from its last return to its first.
    """
    K = filters.steady_state(Q, R).gain
    s = np.arange(1, int(np.max(lengths)) + 1)
    taken = np.append(0.0, np.cumsum(K * (1 - K) ** (s - 1) * (1 - gamma**s) / (1 - gamma)))
    beliefs = [0.0]
    for N in np.asarray(lengths, int).tolist():
        beliefs.append((1 - K) ** N * beliefs[-1] + taken[N])
    return np.array(beliefs[:-1])


def _judged(missed: list, variance: list) -> Innovations:
    return Innovations(np.array(missed[SKIPPED - 1 :]), np.array(variance[SKIPPED - 1 :]))


# Fits


class Fit(NamedTuple):
    """A model at its most likely parameters."""

    parameters: tuple[float, ...]
    innovations: Innovations


def fit_all(series: np.ndarray, per_step: np.ndarray | None = None) -> dict[str, Fit]:
    """Return the models of a series, (time,), by name, each at its most likely parameters.

    "running mean" has none; "moving average" has its forgetting, "local level" the ratio Q/R, "level and slope" two
    ratios, and so has "slope from zero", which starts flat. Where what the per-step filter expects is given
    (`per_step`, as `carried_belief` returns it), "per-step filter" has the straight line that takes this to the series.
    """
    z = checks.series("series", series)
    if len(z) < SHORTEST or not np.ptp(z):
        raise ValueError(f"series must have at least {SHORTEST} values that are not all equal, got {len(z)}")
    found = {
        "running mean": Fit((), local_level(z, 0.0)),
        "moving average": _most_likely(moving_average, z, FORGETTING),
        "local level": _most_likely(local_level, z, RATIOS),
        "level and slope": _most_likely(sloped, z, LEVEL_RATIOS, SLOPE_RATIOS),
        "slope from zero": _most_likely(partial(sloped, flat=True), z, LEVEL_RATIOS, SLOPE_RATIOS),
    }
    return found if per_step is None else {"per-step filter": Fit((), along_line(z, np.asarray(per_step))), **found}


def _most_likely(model: Callable[..., Innovations], z: np.ndarray, *grids: np.ndarray) -> Fit:
    """Look for the most likely parameters on a grid, then twice more on finer ones around the best; 0 stays 0."""
    highest = [grid[-1] for grid in grids]
    steps = [math.log(grid[-1] / grid[-2]) for grid in grids]
    for _ in range(3):
        tried = [axis.ravel() for axis in np.meshgrid(*grids, indexing="ij")]
        best = int(np.argmax(model(z, *tried).likelihood))
        chosen = [float(axis[best]) for axis in tried]
        grids = [
            np.minimum(value * np.exp(step * FINER), most)
            for value, step, most in zip(chosen, steps, highest, strict=True)
        ]
        steps = [step * (FINER[1] - FINER[0]) for step in steps]
    return Fit(tuple(chosen), model(z, *chosen))
