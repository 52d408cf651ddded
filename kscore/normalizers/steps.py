"""Normalizers that look at returns one by one: the Z-Scores and the K-Score of the paper.

Labels such as P4 or R1 name facts of the paper and of its release; chapter 00 lists them.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from kscore import checks
from kscore.filters import Belief, Filtered, adaptive_filter_checked, filter_checked, gain
from kscore.normalizers.base import Normalizer, Scaling, positive_variance


@dataclass
class NoNormalizer(Normalizer):
    """Leave the returns as they are."""

    name = "none"

    def recall(self, returns: np.ndarray) -> Scaling:
        return Scaling(0.0, 1.0)


@dataclass
class ZScore(Normalizer):
    """Standardize each episode by its own mean and standard deviation; nothing is carried on.

    The deviation divides by the number of returns, not by one less: an episode of one step scores 0, not NaN (R7).
    """

    name = "zscore"
    eps: float = 1e-8

    def __post_init__(self) -> None:
        self.eps = positive_variance("eps", self.eps)

    def recall(self, returns: np.ndarray) -> Scaling:
        return Scaling(returns.mean(), returns.std() + self.eps)


@dataclass
class _Tracked(Normalizer):
    """Score each return by a mean and a deviation that have followed the stream up to it (P5).

    With a weight w for the newest return G, the weighted mean and variance of all returns so far are updated by
    δ = G - μ, μ ← μ + w δ, σ² ← (1 - w) (σ² + w δ²). A subclass says only which weight the n-th return gets.
    """

    state = {"count": partial(checks.number, low=0), "mean": checks.followed, "var": checks.variance}
    eps: float = 1e-8
    count: float = field(default=0, init=False)
    mean: float = field(default=0.0, init=False)
    var: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        self.eps = positive_variance("eps", self.eps)

    def weights(self, n: np.ndarray) -> np.ndarray:
        """Return the weight of the n-th return among the first n."""
        raise NotImplementedError

    @property
    def gain(self) -> float:
        return float(self.weights(np.array([self.count + 1.0]))[0])

    def learn(self, returns: np.ndarray) -> Scaling:
        mean, var = self.mean, self.var
        means, variances = [], []
        weights = self.weights(self.count + np.arange(1, len(returns) + 1))
        for w, G in zip(weights.tolist(), returns.tolist(), strict=True):
            surprise = G - mean
            mean += w * surprise
            var = (1 - w) * (var + w * surprise * surprise)
            means.append(mean)
            variances.append(var)
        self.count, self.mean, self.var = self.count + len(returns), mean, var
        return Scaling(np.array(means), np.sqrt(variances) + self.eps)

    def recall(self, returns: np.ndarray) -> Scaling:
        return Scaling(self.mean, np.sqrt(self.var) + self.eps)


@dataclass
class Running(_Tracked):
    """Track the mean and deviation of every return since the beginning (Welford): w = 1 / n, nothing is forgotten."""

    name = "running"

    def weights(self, n: np.ndarray) -> np.ndarray:
        return 1 / n


@dataclass
class Ema(_Tracked):
    """Track an exponential moving mean and deviation: w = (1 - β) / (1 - βⁿ), fair to the first returns as well."""

    name = "ema"
    decay: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        self.decay = checks.number("decay", self.decay, low=0, below=1)

    def weights(self, n: np.ndarray) -> np.ndarray:
        return (1 - self.decay) / (1 - self.decay**n)


@dataclass
class KScore(Normalizer):
    """Hold each return against a Kalman filter's belief of the mean return (P4).

    `variant`: "simple" keeps R; "adaptive" lets it follow the squared surprises (P6), with `alpha` and `R_timing`.
    `mode`: "stream" carries the filter on from episode to episode and scores each return by the belief that has
    just seen it, as the paper's Algorithm 1 says (P9); "refit" starts a new filter every episode and scores all of
    its returns by the final belief, as the released code does (R1); "innovation" streams, but judges each return by
    the prediction made *before* seeing it, (G - x⁻) / sqrt(P⁻ + R), which has unit variance under the model (D2).
    `scale`: "belief" divides by the filter's own deviation; "returns" only takes the centre from the filter and divides
    by the plain standard deviation of the episode's returns, as one of the released files does (R4).
    """

    name = "kscore"
    state = {"x": checks.followed, "P": checks.variance, "noise": positive_variance}
    variant: Literal["simple", "adaptive"] = "simple"
    mode: Literal["stream", "refit", "innovation"] = "stream"
    scale: Literal["belief", "returns"] = "belief"
    Q: float = 1e-4
    R: float = 1e-2
    alpha: float = 0.9
    R_timing: Literal["after", "before"] = "after"
    x0: float = 0.0
    P0: float = 1.0
    eps: float = 1e-8
    x: float = field(init=False)
    P: float = field(init=False)
    noise: float = field(init=False)

    def __post_init__(self) -> None:
        checks.choice("variant", self.variant, ("simple", "adaptive"))
        checks.choice("mode", self.mode, ("stream", "refit", "innovation"))
        checks.choice("scale", self.scale, ("belief", "returns"))
        checks.choice("R_timing", self.R_timing, ("after", "before"))
        self.Q, self.P0 = checks.variance("Q", self.Q), checks.variance("P0", self.P0)
        self.R, self.eps = positive_variance("R", self.R), positive_variance("eps", self.eps)
        self.alpha = checks.number("alpha", self.alpha, low=0, high=1)
        self.x0 = checks.number("x0", self.x0)
        self.x, self.P, self.noise = self.x0, self.P0, self.R

    @property
    def gain(self) -> float:
        return gain(Belief(self.x, self.P + self.Q), self.noise)

    def learn(self, returns: np.ndarray) -> Scaling:
        if self.mode == "refit":
            self.x, self.P, self.noise = self.x0, self.P0, self.R
        seen = self._filter(returns)
        self.x, self.P, self.noise = float(seen.mean[-1]), float(seen.var[-1]), float(seen.next_noise)
        if self.mode == "refit":
            return self.recall(returns)
        if self.mode == "innovation":
            return self._scaling(returns, seen.prior_mean, seen.prior_var + seen.noise)
        return self._scaling(returns, seen.mean, seen.var)

    def recall(self, returns: np.ndarray) -> Scaling:
        var = self.P + self.Q + self.noise if self.mode == "innovation" else self.P
        return self._scaling(returns, self.x, var)

    def _scaling(self, returns: np.ndarray, centre: float | np.ndarray, var: float | np.ndarray) -> Scaling:
        return Scaling(centre, returns.std() + self.eps if self.scale == "returns" else np.sqrt(var + self.eps))

    def _filter(self, returns: np.ndarray) -> Filtered:
        start = Belief(self.x, self.P)
        if self.variant == "simple":
            return filter_checked(returns, self.Q, self.R, start)
        return adaptive_filter_checked(returns, self.Q, self.noise, self.alpha, start, self.R_timing)
