"""What is known of the size of returns: a normalizer that learns from whole episodes, and the scale that it gave."""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kscore import checks, normalizers
from kscore.normalizers import NoNormalizer, Normalizer, RewardScale, Symlog, discounted_returns
from kscore.wrappers.states import VERSION, checked_state, described

SMALLEST = 1 / checks.LARGEST  # nothing is divided by less: no reward becomes infinite
NEGLIGIBLE = 1e-6  # a scale that is a smaller share of the returns is that of equal ones
LEAST_LEFT = 0.5  # of the scale, after however many episodes in a row that paid nothing

Named = str | Mapping[str, Any] | Normalizer
"""A normalizer by its name, by its name and options, {"name": ..., ...}, or itself."""

Floats = NDArray[np.float64]

_SIZES, _PLACES = ("scale", "largest"), ("first", "centre", "mean")  # numbers in a state, and those of any sign


def make_normalizer(normalizer: Named, **usual: Any) -> Normalizer:
    """Return the normalizer that is meant; `usual` are options that hold where none are given.

    A Normalizer is copied, so that one that is given twice does not learn twice.

    >>> make_normalizer({"name": "ema", "decay": 0.9}).decay
    0.9
    """
    if isinstance(normalizer, Normalizer):
        return deepcopy(normalizer)
    if isinstance(normalizer, str):
        return normalizers.make(normalizer, **usual)
    if isinstance(normalizer, Mapping) and "name" in normalizer:
        return normalizers.make(**usual | dict(normalizer))
    raise ValueError(
        f"normalizer must be a name, a dict with the name and options, or a Normalizer, got {normalizer!r}"
    )


class ReturnScale:
    """What is known of the size of returns: a normalizer, and the scale that it gave last.

    It learns from whole episodes, and keeps nothing of one that is under way. A Normalizer that is given is copied.
    `floor`: no scale is a smaller share than this of the size of returns, the root of their mean square as the
    normalizer's centre and scale have it; it matters where all returns are nearly the same number, as with a single
    reward at a goal. `epsilon`: what is added to the square of the scale before anything is divided by its root.
    `mean`, `var` and `count` are there for those who look at a running mean and variance in its place.

    >>> known = ReturnScale("running", gamma=1.0)
    >>> known.learn([1.0, 3.0])
    >>> round(known.scale, 3), known.count
    (0.5, 1)
    """

    def __init__(
        self, normalizer: Named = "episode", gamma: float = 0.99, floor: float = 0.0, epsilon: float = 0.0
    ) -> None:
        self._gamma = checks.number("gamma", gamma, low=0, high=1)
        self.floor = checks.number("floor", floor, low=0, high=1)
        self.epsilon = checks.variance("epsilon", epsilon)
        by_name = normalizer["name"] if isinstance(normalizer, Mapping) and "name" in normalizer else normalizer
        usual = {"gamma": self._gamma} if by_name == RewardScale.name else {}
        self.normalizer = make_normalizer(normalizer, **usual)
        if isinstance(self.normalizer, RewardScale) and self.normalizer.gamma != self._gamma:
            raise ValueError(f"gamma must be that of its normalizer, {self.normalizer.gamma}, got {gamma}")
        self.scale = 1.0 if isinstance(self.normalizer, NoNormalizer | Symlog) else 0.0  # 0: not known yet
        self.largest = 0.0  # of the discounted sums that were met before the scale was known
        self.count = 0  # episodes learned from
        self.first = 0.0  # the first return of all
        self.centre = 0.0  # of returns, as the normalizer had it last; it is shown, and nothing is done with it
        self.mean = 0.0  # of the discounted sums that run forwards, over all lanes and steps; nothing is subtracted
        self.steps = 0  # that it is the mean of

    @property
    def gamma(self) -> float:
        """The discount of the returns; it should be the learner's."""
        return self._gamma

    @gamma.setter
    def gamma(self, gamma: float) -> None:
        self._gamma = checks.number("gamma", gamma, low=0, high=1)
        if isinstance(self.normalizer, RewardScale):
            self.normalizer.gamma = self._gamma

    @property
    def divisor(self) -> float:
        """What a reward is divided by now: the scale or, as long as there is none, the largest sum so far."""
        return self.with_epsilon(self.scale or self.start)

    @property
    def start(self) -> float:
        """What a reward is divided by as long as there is no scale; 1 where there were nothing but zeros."""
        return self.largest if self.largest >= SMALLEST else 1.0

    @property
    def var(self) -> float:
        """The square of the scale, to which `epsilon` has not been added."""
        return (self.scale or self.start) ** 2

    def with_epsilon(self, scale: float) -> float:
        """Return what rewards are divided by where the scale is this: √(scale² + epsilon)."""
        return math.hypot(scale, math.sqrt(self.epsilon)) if self.epsilon else scale

    def follow(self, total: float, lanes: int) -> None:
        """Take the discounted sums of one step, their total over so many lanes, into their mean."""
        self.steps += lanes
        self.mean += (total - lanes * self.mean) / self.steps

    def learn(self, rewards: Sequence[float]) -> None:
        """Learn from a whole episode: from its returns, or from its rewards where the normalizer adds them up itself.

        As long as all returns have been equal, and where a scale is nothing beside the returns, nothing is known of how
        far they are spread, and the scale stays what it was. So it does after an episode that paid nothing; and where
        many in a row would have a normalizer forget how large returns are, so that the next reward is a spike, it
        learns from no more of them than halve its scale.
        """
        returns = discounted_returns(rewards, self._gamma)
        seen = np.array(rewards) if isinstance(self.normalizer, RewardScale) else returns
        size = math.sqrt(returns.dot(returns) / len(returns))
        before = self.normalizer.state_dict() if self.scale and not size else {}
        if not self.normalizer.frozen:
            self.normalizer.learn(seen)
        self.first = self.first if self.count else float(returns[0])
        self.count += 1
        self.centre, scale = (_last(each) for each in self.normalizer.recall(seen))
        spread = self.scale or (returns != self.first).any()
        if size and spread and max(NEGLIGIBLE * size, SMALLEST) < scale < math.inf:
            self.scale = max(scale, self.floor * math.hypot(self.centre, scale))
        if before and scale < LEAST_LEFT * self.scale:
            self.normalizer.load_state_dict(before)

    def report(self) -> dict[str, float]:
        """Return what is worth watching: what rewards are divided by, the centre, the gain, the episodes learned from.

        >>> ReturnScale({"name": "ema", "decay": 0.9}, gamma=1.0).report()
        {'scale': 1.0, 'centre': 0.0, 'gain': 1.0, 'count': 0}
        """
        return {
            "scale": self.divisor,
            "centre": self.centre,
            "gain": self.normalizer.gain,
            "count": self.count,
        }

    def settings(self) -> dict[str, object]:
        """Return what another one must have been made with to go on from the state of this one."""
        return {
            "normalizer": described(self.normalizer),
            "gamma": self._gamma,
            "floor": self.floor,
            "epsilon": self.epsilon,
        }

    def state_dict(self) -> dict[str, object]:
        """Return what was learned, as plain numbers, lists and dicts that survive JSON, with version and settings."""
        return {
            "version": VERSION,
            "settings": self.settings(),
            "learned": self.normalizer.state_dict(),
            "scale": self.scale,
            "largest": self.largest,
            "count": self.count,
            "first": self.first,
            "centre": self.centre,
            "mean": self.mean,
            "steps": self.steps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what another one with the same settings has learned; a bad state changes nothing."""
        state = checked_state(state, self.state_dict())
        count, steps = (checks.whole(f"state[{name!r}]", state[name], low=0) for name in ("count", "steps"))
        scale, largest = (checks.number(f"state[{name!r}]", state[name], low=0, high=math.inf) for name in _SIZES)
        first, centre, mean = (
            checks.number(f"state[{name!r}]", state[name], low=-math.inf, high=math.inf) for name in _PLACES
        )
        if 0 < scale < SMALLEST:
            raise ValueError(f"state['scale'] must be 0 or at least {SMALLEST:g}, got {scale}")
        if not isinstance(state["learned"], Mapping):
            raise ValueError(f"state['learned'] must be a dict, got {state['learned']!r:.200}")
        self.normalizer.load_state_dict(dict(state["learned"]))
        self.scale, self.largest, self.first, self.centre, self.mean = scale, largest, first, centre, mean
        self.count, self.steps = count, steps


def _last(value: float | Floats) -> float:
    return float(value if isinstance(value, float) else np.ravel(value)[-1])
