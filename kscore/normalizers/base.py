"""What all normalizers have in common: check, learn or recall a centre and a scale, score; and the returns."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from kscore import checks


class Scaling(NamedTuple):
    """What each return of an episode is held against: numbers, or arrays with one entry a return."""

    centre: float | np.ndarray
    scale: float | np.ndarray


@dataclass
class Normalizer:
    """The common part: check, learn or recall the scaling, score.

    A subclass says in `state` which attributes hold what it has learned, numbers or arrays, and how each is checked
    when it is loaded: a function that takes a name and a value and returns the value, or raises ValueError.
    """

    name: ClassVar[str]
    state: ClassVar[dict[str, Callable[[str, object], object]]] = {}
    frozen: bool = field(default=False, init=False)

    def __call__(self, returns: np.ndarray) -> np.ndarray:
        """Score one episode's returns, (time,), learning from them first unless frozen."""
        returns = checks.series("returns", returns)
        centre, scale = self.recall(returns) if self.frozen else self.learn(returns)
        return (returns - centre) / scale

    def learn(self, returns: np.ndarray) -> Scaling:
        """Take in an episode and say what each of its returns is held against."""
        return self.recall(returns)

    def recall(self, returns: np.ndarray) -> Scaling:
        """Say what each return is held against by what is known already; change nothing."""
        raise NotImplementedError

    @property
    def gain(self) -> float:
        """The weight that the next observation will have in what is believed; NaN where there is no such number.

        An observation is an episode or, for a normalizer that goes return by return, a return.
        """
        return math.nan

    def state_dict(self) -> dict[str, float | list]:
        """Return what was learned, as plain numbers and lists of numbers that survive JSON."""
        return {key: np.asarray(getattr(self, key)).tolist() for key in self.state}

    def load_state_dict(self, state: dict[str, float | list]) -> None:
        """Go on from what another normalizer of the same kind has learned; a bad state changes nothing."""
        if set(state) != set(self.state):
            name = getattr(self, "name", type(self).__name__)
            raise ValueError(f"state of {name} must have the keys {sorted(self.state)}, got {list(state)}")
        checked = {key: check(f"state[{key!r}]", state[key]) for key, check in self.state.items()}
        for key, value in checked.items():
            setattr(self, key, value)


def discounted_returns(rewards: Sequence[float], gamma: float) -> np.ndarray:
    """Return G_t = r_t + γ G_{t+1} for every step of an episode, (time,), with nothing after the last reward.

    >>> discounted_returns([1.0, 1.0, 4.0], gamma=0.5)
    array([2.5, 3. , 4. ])
    """
    G = 0.0
    backwards = [G := reward + gamma * G for reward in reversed(rewards)]
    return np.array(backwards[::-1])


positive_variance = partial(checks.variance, positive=True)

LARGEST_EXPONENT = 700.0  # beyond it an exponential is no longer a finite number


def symlog(values: np.ndarray) -> np.ndarray:
    """Return `sign(z) log(1 + abs(z))`: a logarithm for numbers of both signs."""
    return np.sign(values) * np.log1p(np.abs(values))


def symexp(values: np.ndarray) -> np.ndarray:
    """Return `sign(z) (exp(abs(z)) - 1)`, which undoes `symlog`."""
    return np.sign(values) * np.expm1(np.minimum(np.abs(values), LARGEST_EXPONENT))
