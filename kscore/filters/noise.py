"""How noisy, how restless: the variances Q and R of the local-level model (P1), estimated from what was observed.

Only the ratio Q/R decides the gain, so that is what everything here looks for; R follows from how far the predictions
missed. A series multiplied by a constant has the same ratio, and the same gains.
Labels such as P1 name facts of the paper; chapter 00 lists them.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from kscore import checks
from kscore.filters.level import Belief, follow, steady_state

if TYPE_CHECKING:
    import torch

METHODS = ("likelihood", "moments", "gradient")
RATIOS = (1e-8, 1e8)  # between which the ratio Q/R is looked for
LOG_2PI = math.log(2 * math.pi)
SMALLEST = 1e-12  # an R that was estimated is at least this share of what was seen


class Noise(NamedTuple):
    """The variance of the drift per step, and that of the observation."""

    Q: float
    R: float

    @property
    def ratio(self) -> float:
        """Q/R, which alone decides the gain."""
        return self.Q / self.R

    @property
    def gain(self) -> float:
        """The gain that the filter settles at."""
        return steady_state(self.Q, self.R).gain


# Likelihood


def local_level_likelihood(series: np.ndarray, Q: float, R: float) -> float:
    """Return the log-likelihood of a series, (time,), under the model with variances Q and R.

    The level is unknown before the first observation, which therefore only sets it: x = z_0, P = R. Every later one
    adds -(log 2πS_t + ν_t² / S_t) / 2, with the innovation ν_t = z_t - x⁻_t and its variance S_t = P⁻_t + R.
    """
    z = _series(series)
    return float(_likelihood(z.tolist(), checks.variance("Q", Q), checks.variance("R", R, positive=True), math.log))


def concentrated_likelihood(series: np.ndarray, ratio: float) -> float:
    """Return the log-likelihood of a ratio Q/R, at the R that suits it best.

    With S_t in units of R, that R is the mean of ν_t² / S_t over the m innovations, and what remains to be maximized
    over the ratio is -(m log R + Σ log S_t) / 2 - m (1 + log 2π) / 2.
    """
    z = _series(series)
    return _concentrated(z, checks.variance("ratio", ratio))


def _concentrated(z: np.ndarray, ratio: float) -> float:
    m, logs, squares = _innovations(z.tolist(), ratio, 1.0, math.log)
    return float(-0.5 * (m * (1 + LOG_2PI + math.log(max(squares / m, SMALLEST * _power(z)))) + logs))


def _likelihood(z: Any, Q: Any, R: Any, log: Callable[[Any], Any]) -> Any:
    m, logs, squares = _innovations(z, Q, R, log)
    return -0.5 * (m * LOG_2PI + logs + squares)


def _innovations(z: Any, Q: Any, R: Any, log: Callable[[Any], Any]) -> tuple[int, Any, Any]:
    """Return how many innovations there are, Σ log S_t and Σ ν_t² / S_t, of numbers or of torch's tensors."""
    x, P, logs, squares = z[0], R, 0.0, 0.0
    for value in z[1:]:
        x, P, _, innovation, S = follow(x, P, value, Q, R)
        logs = logs + log(S)
        squares = squares + innovation * innovation / S
    return len(z) - 1, logs, squares


# Estimates from a whole series


def estimate_noise(series: np.ndarray, method: Literal["likelihood", "moments", "gradient"] = "likelihood") -> Noise:
    """Estimate Q and R of a series, (time,), of at least three observations that are not all equal.

    "likelihood" maximizes the concentrated likelihood over the ratio Q/R, one number, with scipy; "gradient" climbs
    the likelihood of log Q and log R through the filter with torch; "moments" solves two equations of the first
    differences, Var Δz = Q + 2R and Cov(Δz_t, Δz_{t+1}) = -R, which takes one pass.
    """
    checks.choice("method", method, METHODS)
    z = _series(series, least=3)
    if not np.ptp(z):
        raise ValueError(f"series must vary, or there is no noise to estimate, got {len(z)} times {z[0]:g}")
    return {"likelihood": _by_likelihood, "moments": _by_moments, "gradient": _by_gradient}[method](z)


def _by_likelihood(z: np.ndarray) -> Noise:
    from scipy.optimize import minimize_scalar  # type: ignore[import-untyped]  # here, because streams are followed without it

    scale = _power(z)
    z = z / math.sqrt(scale)  # so that no scale of the data is too large or too small
    low, high = map(math.log, RATIOS)
    coarse = np.linspace(low, high, 33)  # the likelihood can have two peaks, one of them at no drift
    best = float(coarse[np.argmax([_concentrated(z, math.exp(ratio)) for ratio in coarse])])
    step = coarse[1] - coarse[0]
    found = minimize_scalar(
        lambda ratio: -_concentrated(z, math.exp(ratio)),
        bounds=(max(low, best - step), min(high, best + step)),
        method="bounded",
        options={"xatol": 1e-4},
    )
    ratio = 0.0 if _concentrated(z, 0.0) >= -found.fun else math.exp(found.x)
    return _noise(ratio, z, scale)


def _noise(ratio: float, z: np.ndarray, scale: float) -> Noise:
    """Return Q and R from their ratio, with the R that suits it best."""
    m, _, squares = _innovations(z.tolist(), ratio, 1.0, math.log)
    R = max(squares / m, SMALLEST) * scale
    return Noise(ratio * R, R)


def _by_moments(z: np.ndarray) -> Noise:
    steps = np.diff(z)
    return solve_moments(float(np.mean(steps**2)), float(np.mean(steps[1:] * steps[:-1])))


def solve_moments(square: float, product: float) -> Noise:
    """Return Q and R from the mean square of the first differences, Q + 2R, and the mean of neighbours' products, -R.

    What chance makes impossible is moved to the edge: with R = square / 2 there is no drift, and R is never 0.
    """
    R = min(max(-product, SMALLEST * square), square / 2)
    return Noise(max(square - 2 * R, 0.0), R)


def _by_gradient(z: np.ndarray) -> Noise:
    import torch  # here, because nothing else of the filters needs it

    scale = _power(z)
    observed = torch.as_tensor(z / math.sqrt(scale), dtype=torch.float64)
    start = _by_moments(z / math.sqrt(scale))
    logs = torch.tensor(
        [math.log(max(start.Q, 1e-2 * start.R)), math.log(start.R)], dtype=torch.float64, requires_grad=True
    )
    climb = torch.optim.LBFGS([logs], max_iter=60, line_search_fn="strong_wolfe", tolerance_grad=1e-9)

    def loss() -> torch.Tensor:
        climb.zero_grad()
        loss = -torch_likelihood(observed, *logs.exp()) / len(observed)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    climb.step(loss)  # type: ignore[no-untyped-call]
    Q, R = logs.detach().exp().tolist()
    return Noise(Q * scale, R * scale)


def torch_likelihood(z: "torch.Tensor", Q: "torch.Tensor", R: "torch.Tensor") -> "torch.Tensor":
    """Return what `local_level_likelihood` returns, for torch tensors: it can be differentiated by Q, R and z."""
    import torch

    likelihood: torch.Tensor = _likelihood(z, Q, R, torch.log)
    return likelihood


def _series(series: np.ndarray, least: int = 2) -> np.ndarray:
    z = checks.series("series", series)
    if len(z) < least:
        raise ValueError(f"series must have at least {least} observations, got {len(z)}")
    return z


def _power(z: np.ndarray) -> float:
    """Return the mean square of the first differences: the unit in which a series is measured here."""
    return float(np.mean(np.diff(z) ** 2)) or 1.0


# Estimates that follow a stream


class Moments(NamedTuple):
    """What is remembered of a stream's first differences: the last observation and step, and two discounted means."""

    seen: int = 0
    last: float = 0.0
    step: float = 0.0  # z_t - z_{t-1}
    square: float = 0.0  # of Δz²
    product: float = 0.0  # of Δz_t Δz_{t-1}


def follow_moments(moments: Moments, z: float, forget: float = 0.02) -> Moments:
    """Take in one observation: the moments of the differences move to it by the share `forget`, at first by more."""
    seen, last, before, square, product = moments
    step = z - last
    if seen >= 1:
        weight = 1.0 / seen if seen * forget < 1.0 else forget
        square += weight * (step * step - square)
        if seen >= 2:
            weight = 1.0 / (seen - 1) if (seen - 1) * forget < 1.0 else forget
            product += weight * (step * before - product)
    return Moments(seen + 1, z, step, square, product)


class Bank(NamedTuple):
    """Filters side by side, one for each ratio Q/R, with all that is needed to weigh them: arrays, (filters,)."""

    ratio: np.ndarray  # Q/R of each
    mean: np.ndarray  # x
    var: np.ndarray  # P, in units of R
    count: float  # type: ignore[assignment]  # innovations so far, discounted
    logs: np.ndarray  # Σ log S, discounted, S in units of R
    squares: np.ndarray  # Σ ν² / S, discounted


BANK = tuple(float(f"{ratio:.3g}") for ratio in np.geomspace(1e-4, 10, 8))
"""The ratios of a bank of eight: memories from a hundred observations down to one."""


def start_bank(z: float, ratios: np.ndarray | tuple[float, ...] = BANK) -> Bank:
    """Return a bank that has seen one observation: every filter believes in it, with the variance R."""
    ratios = np.asarray(ratios, float)
    return Bank(
        ratios, np.full(len(ratios), float(z)), np.ones(len(ratios)), 0.0, np.zeros(len(ratios)), np.zeros(len(ratios))
    )


def follow_bank(bank: Bank, z: float, forget: float = 0.0, noise: float = 1.0) -> Bank:
    """Take in one observation: every filter learns from it, and what it says of their likelihoods is added.

    `forget` is the share of the evidence that is given up at each step, so that a bank can change its mind. `noise` is
    the variance of this observation in units of R: that of the mean of four usual ones is 1/4.
    """
    mean, var, _, innovation, S = follow(bank.mean, bank.var, z, bank.ratio, noise)
    kept = 1.0 - forget
    return Bank(
        bank.ratio,
        mean,
        var,
        kept * bank.count + 1.0,
        kept * bank.logs + np.log(S),
        kept * bank.squares + innovation * innovation / S,
    )


def bank_weights(bank: Bank) -> np.ndarray:
    """Return the probability of each filter, (filters,), by its concentrated likelihood (Magill, 1965).

    With an R that nobody knows, log w = -(Σ log S + m log Σ ν²/S) / 2 + constant: no scale of the data matters.
    """
    if bank.count < 1:
        return np.full(len(bank.ratio), 1 / len(bank.ratio))
    smallest = SMALLEST * max(float(bank.squares.max()), 1e-300)
    log_weight = -0.5 * (bank.logs + bank.count * np.log(np.maximum(bank.squares, smallest)))
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def bank_noise(bank: Bank) -> Noise:
    """Return the Q and R of a bank: each filter's own R, averaged by their weights, and so Q."""
    weight = bank_weights(bank)
    R = bank.squares / max(bank.count, 1.0)
    return Noise(float(weight @ (bank.ratio * R)), max(float(weight @ R), 1e-300))


def bank_belief(bank: Bank) -> Belief:
    """Return what the filters believe together: the mean and variance of their mixture."""
    weight, R = bank_weights(bank), bank.squares / max(bank.count, 1.0)
    mean = float(weight @ bank.mean)
    return Belief(mean, float(weight @ (bank.var * R + (bank.mean - mean) ** 2)))
