"""The Kalman filter of a drifting mean, as pure functions: a belief goes in, a new belief comes out.

The model (P1): a latent mean wanders, x_t = x_{t-1} + w_t with w ~ N(0, Q), and is seen through noise,
z_t = x_t + v_t with v ~ N(0, R). Nothing here knows what the observations z are. Labels such as P1 name facts of the
paper (P) and what follows from them (D); chapter 00 lists them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from kscore import checks

TINY = 1e-300  # keeps an adaptive R above zero, so that a gain is never 0 / 0
FAR = 3.0  # deviations: a robust filter takes what is further off as if it were so far off


class Belief(NamedTuple):
    """What is believed of the latent mean: a Gaussian, with its mean x and its variance P."""

    mean: float
    var: float


START = Belief(mean=0.0, var=1.0)
"""The released starting belief, x0 = 0 and P0 = 1."""


class SteadyState(NamedTuple):
    """Where the variances and the gain settle when Q and R stay the same."""

    var: float  # posterior, P
    prior_var: float  # P⁻
    gain: float  # K


class Filtered(NamedTuple):
    """A whole series through the filter: arrays of the shape of the observations, then the noise to go on with."""

    mean: np.ndarray  # x_t, after seeing z_t
    var: np.ndarray  # P_t
    prior_mean: np.ndarray  # x⁻_t, before seeing z_t
    prior_var: np.ndarray  # P⁻_t
    gain: np.ndarray  # K_t
    noise: np.ndarray  # the R that entered K_t
    next_noise: float | np.ndarray  # the R that the next observation would meet, one a stream

    @property
    def last(self) -> Belief:
        """The belief after the last observation, to start the next series from."""
        return Belief(self.mean[-1], self.var[-1])


def predict(belief: Belief, Q: float) -> Belief:
    """Let one step pass unseen (P2): x⁻ = x, P⁻ = P + Q."""
    x, P = checks.number("belief.mean", belief.mean), checks.variance("belief.var", belief.var)
    return Belief(x, P + checks.variance("Q", Q))


def gain(prior: Belief, R: float) -> float:
    """Return the share of a surprise that the belief takes over (P3): K = P⁻ / (P⁻ + R)."""
    P = checks.variance("prior.var", prior.var)
    return P / (P + checks.variance("R", R, positive=True))


def update(prior: Belief, z: float, R: float) -> Belief:
    """Learn from one observation (P3): x = x⁻ + K (z - x⁻), P = (1 - K) P⁻.

    The variance is computed as K R, which is the same number without the cancellation in 1 - K when P⁻ >> R.
    """
    K = gain(prior, R)
    x = checks.number("prior.mean", prior.mean)
    return Belief(x + K * (checks.number("z", z) - x), K * R)


def robust_update(prior: Belief, z: float, R: float, far: float = FAR) -> Belief:
    """Learn from one observation that may be an outlier: it counts as if it were at most `far` deviations off.

    The innovation ν = z - x⁻ is moved to within ± far √(P⁻ + R), and P3 takes it from there, x = x⁻ + K ν and
    P = (1 - K) P⁻: an outlier has a bounded influence, and what is no outlier counts in full.
    """
    P, R = checks.variance("prior.var", prior.var), checks.variance("R", R, positive=True)
    z, x = checks.number("z", z), checks.number("prior.mean", prior.mean)
    far = checks.variance("far", far, positive=True)
    return update(prior, not_too_far(z, x, math.sqrt(P + R), far), R)


def not_too_far(z: float, expected: float, deviation: float, far: float = FAR) -> float:
    """Return an observation, moved to within `far` deviations of what was expected."""
    return min(max(z, expected - far * deviation), expected + far * deviation)


def steady_state(Q: float, R: float) -> SteadyState:
    """Return the fixed point of the variance recursion (P7, D1).

    P = (sqrt(Q² + 4QR) - Q) / 2 and K = P / R, rewritten as K = 2 √Q / (√(Q + 4R) + √Q) so that neither a large
    nor a small Q / R loses digits.
    """
    Q, R = checks.variance("Q", Q), checks.variance("R", R, positive=True)
    K = 2 * np.sqrt(Q) / (np.sqrt(Q + 4 * R) + np.sqrt(Q))
    return SteadyState(var=float(K * R), prior_var=float(K * R + Q), gain=float(K))


def filter_series(z: np.ndarray, Q: float, R: float, start: Belief = START) -> Filtered:
    """Run the filter (P2, P3) over observations in order.

    `z` is (time,) or (time, streams); streams share Q and R, and so their gains, which do not depend on the data; they
    do not see each other. `start` holds one number for all streams, or one a stream.
    """
    z = checks.series("z", z, dims=(1, 2))
    Q, R = checks.variance("Q", Q), checks.variance("R", R, positive=True)
    return filter_checked(z, Q, R, _checked_start(start, z))


def follow(x: Any, P: Any, z: Any, Q: Any, R: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Let one step pass and learn from one observation: the recursion (P2, P3) that all filters of a level here run.

    Returned are x and P, and on the way to them the gain K = P⁻ / S, the innovation ν = z - x⁻ and its variance
    S = P⁻ + R, with P⁻ = P + Q. Numbers, arrays and torch's tensors go through it alike; nothing is checked.
    """
    prior = P + Q
    S = prior + R
    K = prior / S
    innovation = z - x
    return x + K * innovation, K * R, K, innovation, S


def filter_checked(z: np.ndarray, Q: float, R: float, start: Belief) -> Filtered:
    """Do what `filter_series` does, for a caller who has checked the arguments already."""
    x, P = start
    mean, gains = _storage(z), []
    for t, z_t in enumerate(_rows(z)):
        x, P, K, _, _ = follow(x, P, z_t, Q, R)
        mean[t] = x
        gains.append(K)
    K = np.array(gains).reshape(len(z), *[-1] * (z.ndim - 1))  # (time,), (time, 1) or (time, streams)
    return _filtered(start, Q, mean, K, np.full_like(K, R), R)


def adaptive_filter_series(
    z: np.ndarray,
    Q: float,
    R: float,
    alpha: float = 0.9,
    start: Belief = START,
    *,
    R_timing: Literal["after", "before"] = "after",
) -> Filtered:
    """Run the filter with a noise level that follows the squared surprises (P6).

    R_t = α R_{t-1} + (1 - α) (z_t - x_{t-1})². The paper does not say which of the two enters the gain at step t:
    with `R_timing="after"` it is R_{t-1}, the gain first and then the new R (as released); with "before" it is R_t.
    `z` is (time,) or (time, streams); `R` is the starting noise, one number for all streams or one a stream.
    """
    z = checks.series("z", z, dims=(1, 2))
    Q, alpha = checks.variance("Q", Q), checks.number("alpha", alpha, low=0, high=1)
    checks.choice("R_timing", R_timing, ("after", "before"))
    R = _one_or_each("R", R, z, partial(checks.variance, positive=True))
    return adaptive_filter_checked(z, Q, R, alpha, _checked_start(start, z), R_timing)


def adaptive_filter_checked(
    z: np.ndarray, Q: float, R: float | np.ndarray, alpha: float, start: Belief, R_timing: str
) -> Filtered:
    """Do what `adaptive_filter_series` does, for a caller who has checked the arguments already."""
    x, P = start
    mean, gain, noise = _storage(z), _storage(z), _storage(z)
    for t, z_t in enumerate(_rows(z)):
        surprise = z_t - x
        R_next = alpha * R + (1 - alpha) * surprise * surprise + TINY
        if R_timing == "before":
            R = R_next
        x, P, gain[t], _, _ = follow(x, P, z_t, Q, R)
        mean[t], noise[t], R = x, R, R_next
    return _filtered(start, Q, mean, np.asarray(gain), np.asarray(noise), R)


def _rows(z: np.ndarray) -> list[float] | np.ndarray:
    """Iterate over time: plain floats for one stream (several times faster than numpy scalars), rows for many."""
    return z.tolist() if z.ndim == 1 else z


def _storage(z: np.ndarray) -> Any:
    """Make room for one entry a step, of the kind that fills fastest: a list for one stream, an array for many."""
    return [0.0] * len(z) if z.ndim == 1 else np.empty(z.shape)


def _checked_start(start: Belief, z: np.ndarray) -> Belief:
    return Belief(
        _one_or_each("start.mean", start.mean, z, checks.number),
        _one_or_each("start.var", start.var, z, checks.variance),
    )


def _one_or_each(name: str, value: float | np.ndarray, z: np.ndarray, check: Callable[..., float]) -> Any:
    """Check a number for all streams, or an array with one number for each stream of `z`."""
    if isinstance(value, float):  # the usual case, without the detour through numpy
        return check(name, value)
    if np.ndim(value) == 0:
        return check(name, np.asarray(value).item())
    if np.shape(value) != z.shape[1:]:
        raise ValueError(f"{name} must be one number or one for each stream {z.shape[1:]}, got shape {np.shape(value)}")
    return np.array([check(name, v) for v in np.asarray(value).tolist()])


def _filtered(start: Belief, Q: float, mean: Any, K: np.ndarray, R: np.ndarray, next_noise: Any) -> Filtered:
    """Complete the series from x_t, K_t and R_t: P = K R, and a prior is the posterior one step earlier (P2).

    Gains and noise that all streams share come as (time, 1) and leave as views of the full shape.
    """
    mean, var = np.asarray(mean), K * R
    series: tuple[np.ndarray, ...] = mean, var, _delayed(start.mean, mean), _delayed(start.var, var) + Q, K, R
    if K.shape != mean.shape:
        series = tuple(np.broadcast_to(values, mean.shape) for values in series)
    return Filtered(*series, next_noise)  # type: ignore[call-arg]  # six of them


def _delayed(first: float | np.ndarray, series: np.ndarray) -> np.ndarray:
    """Shift a series one step on in time, with `first` in front."""
    delayed = np.empty_like(series)
    delayed[0], delayed[1:] = first, series[:-1]
    return delayed
