"""What all normalizers have in common: check, learn or recall a centre and a scale, score; and the returns."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from kscore import checks

VERSION = 1  # of the states of normalizers; another one is refused


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

    @property
    def options(self) -> dict[str, object]:
        """What this normalizer was made with, defaults included, as plain values."""
        return {f.name: np.asarray(getattr(self, f.name)).tolist() for f in fields(self) if f.init}

    def state_dict(self) -> dict[str, object]:
        """Return what was learned, as plain numbers and lists of them that survive JSON, with a version and options."""
        learned = {key: np.asarray(getattr(self, key)).tolist() for key in self.state}
        return {"version": VERSION, "options": self.options, **learned}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what another normalizer of the same kind and options has learned; a bad state changes nothing.

        A state without a version was saved before there were any: its options are not known, and not compared.
        """
        learned = self._learned(state)
        if set(learned) != set(self.state):
            raise ValueError(f"state of {self._called} must have the keys {sorted(self.state)}, got {list(learned)}")
        checked = {key: check(f"state[{key!r}]", learned[key]) for key, check in self.state.items()}
        for key, value in checked.items():
            setattr(self, key, value)

    @property
    def _called(self) -> str:
        return getattr(self, "name", type(self).__name__)

    def _learned(self, state: Mapping[str, object]) -> dict[str, object]:
        """Return what a state says was learned, if its version and its options are those of this normalizer."""
        if not isinstance(state, Mapping):
            raise ValueError(f"state of {self._called} must be a dict, got {state!r:.200}")
        if "version" not in state:
            return dict(state)
        version, options = state["version"], state.get("options")
        if type(version) is not int or version != VERSION:
            raise ValueError(f"state['version'] must be {VERSION}, got {version!r:.200}")
        if not isinstance(options, Mapping) or not set(options) <= set(self.options):
            raise ValueError(f"state['options'] must be a dict of {sorted(self.options)}, got {options!r:.200}")
        later = {f.name: f.default for f in fields(self) if f.default is not MISSING}  # for options that came after it
        for option, own in self.options.items():
            other = options.get(option, later.get(option))
            if other != own:
                raise ValueError(f"state of {self._called} must be of one with {option} = {own!r}, got {other!r:.200}")
        return {key: value for key, value in state.items() if key not in ("version", "options")}


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


def symlog(values: np.ndarray | float) -> np.ndarray:
    """Return `sign(z) log(1 + abs(z))`: a logarithm for numbers of both signs."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))


def symexp(values: np.ndarray | float) -> np.ndarray:
    """Return `sign(z) (exp(abs(z)) - 1)`, which undoes `symlog`."""
    return np.asarray(np.sign(values) * np.expm1(np.minimum(np.abs(values), LARGEST_EXPONENT)))
