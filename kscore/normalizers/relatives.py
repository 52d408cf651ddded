"""Relatives of the K-Score: what PopArt, DreamerV3 and the wrappers of today's libraries divide by.

They follow a scale and leave the centre to a critic, or rewrite the critic so that it learns in units of its own.
"""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from kscore import checks
from kscore.normalizers.base import Normalizer, Scaling, positive_variance, symlog

SMALL_RATE = 1e-6
LARGEST_SUM = 1e120  # of rewards, over any number of steps


@dataclass
class _Averaged(Normalizer):
    """Follow two numbers of every episode by exponential moving averages, one step of size `rate` per episode.

    a ← a + w (seen - a), with w = rate; or, where `debiased`, w = rate / (1 - (1 - rate)ⁿ) in the n-th episode, so that
    the first one counts in full and where the averages began is forgotten at once.
    """

    rate: float = 0.01
    debiased: bool = False
    episodes: int = field(default=0, init=False)  # seen so far

    def __post_init__(self) -> None:
        self.rate = checks.positive("rate", checks.number("rate", self.rate, high=1))
        checks.flag("debiased", self.debiased)

    @property
    def gain(self) -> float:
        return self.rate / self._together(self.episodes + 1) if self.debiased else self.rate

    def _together(self, episodes: int) -> float:
        """Return the weight of so many episodes together, 1 - (1 - rate)ⁿ."""
        if self.rate < SMALL_RATE:  # where 1 - rate has lost digits, or all of them
            return -math.expm1(episodes * math.log1p(-self.rate))
        return 1 - (1 - self.rate) ** episodes

    def followed(self, averages: tuple[float, float], seen: tuple[float, float]) -> list[float]:
        """Return the averages after one more episode."""
        weight = self.gain
        self.episodes += 1
        return [old + weight * (new - old) for old, new in zip(averages, seen, strict=True)]


@dataclass
class PopArt(_Averaged):
    """Hold returns against moving averages of their mean and mean square (van Hasselt and others 2016).

    μ and ν follow the mean and the mean square of each episode's returns; σ = sqrt(ν - μ²), kept within [least, most].
    As a run's `value_scale` this is PopArt proper: the critic learns in these units, its last layer is rewritten when
    they change so that no value changes, and the advantages are in them too (Hessel and others 2019).
    """

    name = "popart"
    state = {"episodes": checks.count, "mean": checks.followed, "square": checks.variance}
    rate: float = 0.1
    debiased: bool = True
    least: float = 1e-4
    most: float = 1e6
    mean: float = field(default=0.0, init=False)
    square: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.most = checks.positive("most", self.most)
        self.least = checks.positive("least", checks.number("least", self.least, high=self.most))

    def learn(self, returns: np.ndarray) -> Scaling:
        seen = float(returns.mean()), float(np.mean(returns**2))
        self.mean, square = self.followed((self.mean, self.square), seen)
        self.square = max(square, 0.0)  # rounding may leave a mean of squares below 0
        return self.recall(returns)

    def recall(self, returns: np.ndarray) -> Scaling:
        deviation = math.sqrt(max(self.square - self.mean**2, 0.0))
        return Scaling(self.mean, min(max(deviation, self.least), self.most))


@dataclass
class Percentile(_Averaged):
    """Divide by the range of the returns from one percentile to another, but never by less than `least`.

    As in DreamerV3 (Hafner and others 2023): the 5th and the 95th percentile of each episode's returns are followed by
    moving averages; small returns are not blown up, because the scale is at least 1. Nothing is subtracted: a critic
    is there for that.
    """

    name = "percentile"
    state = {"episodes": checks.count, "bottom": checks.followed, "top": checks.followed}
    low: float = 5.0
    high: float = 95.0
    least: float = 1.0
    bottom: float = field(default=0.0, init=False)  # the low percentile, followed
    top: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.low = checks.number("low", self.low, low=0, below=100)
        self.high = checks.number("high", self.high, low=self.low, high=100)
        self.least = checks.positive("least", self.least)

    def learn(self, returns: np.ndarray) -> Scaling:
        seen = tuple(np.percentile(returns, [self.low, self.high]).tolist())
        self.bottom, self.top = self.followed((self.bottom, self.top), seen)
        return self.recall(returns)

    def recall(self, returns: np.ndarray) -> Scaling:
        return Scaling(0.0, max(self.top - self.bottom, self.least))


_sum = partial(checks.number, low=-LARGEST_SUM, high=LARGEST_SUM)
_square_of_sum = partial(checks.number, low=0, high=10 * LARGEST_SUM**2)


@dataclass
class RewardScale(Normalizer):
    """Divide *rewards* by the deviation of a discounted sum of them, as Gymnasium and Stable-Baselines3 do.

    Forwards through the stream, A ← γ A + r; the variance of all A so far, v, is followed without forgetting; a reward
    becomes r / sqrt(v + eps). Nothing is subtracted. It belongs at the door of the rewards (`reward_normalizer`).

    `reset`: "episode" clears A when an episode has ended, as Stable-Baselines3 does. "termination" is what Gymnasium
    1.4 does when an episode terminates: A loses its past *before* the last reward instead of after it, so that this
    one leaks into the next episode. "never" is what it does when an episode is cut off: A goes on as if nothing had
    ended. `start`: how many observations the starting variance of 1 counts for; the libraries' 1e-4 makes the first
    rewards large.
    """

    name = "reward_scale"
    state = {"count": checks.positive, "mean": _sum, "var": _square_of_sum, "sum": _sum}
    gamma: float = 0.99
    reset: Literal["episode", "termination", "never"] = "episode"
    start: float = 1e-4
    eps: float = 1e-8
    count: float = field(init=False)
    mean: float = field(default=0.0, init=False)  # of the discounted sums
    var: float = field(default=1.0, init=False)
    sum: float = field(default=0.0, init=False)  # A, carried over from the episode before

    def __post_init__(self) -> None:
        self.gamma = checks.number("gamma", self.gamma, low=0, high=1)
        checks.choice("reset", self.reset, ("episode", "termination", "never"))
        self.count = self.start = checks.positive("start", self.start)
        self.eps = positive_variance("eps", self.eps)

    def learn(self, rewards: np.ndarray) -> Scaling:
        variances, last = [], len(rewards) - 1
        for t, reward in enumerate(rewards.tolist()):
            past = 0.0 if self.reset == "termination" and t == last else self.sum
            self.sum = self.gamma * past + reward
            self._follow(self.sum)
            variances.append(self.var)
        if self.reset == "episode":
            self.sum = 0.0
        return Scaling(0.0, np.sqrt(np.array(variances) + self.eps))

    def _follow(self, value: float) -> None:
        """Take one more value into the mean and variance of all values so far, 1 of weight `start` among them."""
        surprise, total = value - self.mean, self.count + 1
        self.mean += surprise / total
        self.var = self.count / total * (self.var + surprise**2 / total)
        self.count = total

    def recall(self, rewards: np.ndarray) -> Scaling:
        return Scaling(0.0, math.sqrt(self.var + self.eps))


@dataclass
class Symlog(Normalizer):
    """Take `sign(z) log(1 + abs(z))` of every return; nothing is learned.

    As a run's `value_scale` only the critic learns in logarithms (Hafner and others 2023), and the advantages are those
    of the returns themselves.
    """

    name = "symlog"

    def recall(self, returns: np.ndarray) -> Scaling:
        return Scaling(returns - symlog(returns), 1.0)
