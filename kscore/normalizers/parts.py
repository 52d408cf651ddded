"""A normalizer that is put together: its centre from one place, its scale from another, its memory fading or not.

It is there to find out which part of a normalizer matters. With both parts from the episode itself it is the Z-Score;
with both from earlier episodes it is a plain relative of the filter over episodes.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from kscore import checks
from kscore.normalizers.base import Normalizer, Scaling, positive_variance

PLACES = ("none", "episode", "past")


@dataclass
class Parts(Normalizer):
    """Hold returns against a centre and a scale that come from nowhere, from the episode itself, or from earlier ones.

    The centre is a mean return, the scale the root mean square of returns around that centre. "past" takes the mean
    over all earlier episodes, each with the same weight; where the memory fades, the newest one has at least the weight
    `fading`. The first episode of all has none before it, and is judged by itself.

    >>> parts = Parts(centre="past", scale="none")
    >>> parts([3.0, 1.0]), parts([5.0, 5.0])
    (array([ 1., -1.]), array([3., 3.]))
    """

    name = "parts"
    state = {"episodes": checks.count, "mean": checks.followed, "square": checks.variance}
    centre: Literal["none", "episode", "past"] = "past"
    scale: Literal["none", "episode", "past"] = "past"
    fading: float = 0.0
    eps: float = 1e-8
    episodes: int = field(default=0, init=False)  # seen so far
    mean: float = field(default=0.0, init=False)  # of the returns of earlier episodes
    square: float = field(default=0.0, init=False)  # of their distances from the centres that they were held against

    def __post_init__(self) -> None:
        checks.choice("centre", self.centre, PLACES)
        checks.choice("scale", self.scale, PLACES)
        self.fading = checks.number("fading", self.fading, low=0, high=1)
        self.eps = positive_variance("eps", self.eps)

    @property
    def gain(self) -> float:
        return max(1 / (self.episodes + 1), self.fading)

    def recall(self, returns: np.ndarray) -> Scaling:
        centre = self._from(self.centre, 0.0, float(returns.mean()), self.mean)
        square = self._from(self.scale, 1.0, float(np.mean((returns - centre) ** 2)), self.square)
        return Scaling(centre, math.sqrt(square) + self.eps if square and self.scale != "none" else 1.0)

    def _from(self, place: str, nowhere: float, itself: float, past: float) -> float:
        if place == "none":
            return nowhere
        return past if place == "past" and self.episodes else itself

    def learn(self, returns: np.ndarray) -> Scaling:
        before = self.recall(returns)
        weight = self.gain
        self.episodes += 1
        self.mean += weight * (float(returns.mean()) - self.mean)
        self.square += weight * (float(np.mean((returns - before.centre) ** 2)) - self.square)
        return before
