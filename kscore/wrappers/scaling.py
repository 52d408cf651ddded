"""Rewards divided by what a normalizer knows of the size of returns: what the wrappers of environments share.

A reward is only ever *divided*. A constant that is taken off every reward is paid once per step and changes what a long
episode is worth, and so the task (chapter 15); the centre is left to the critic.

    >>> scaling = RewardScaling("episode", lanes=1, gamma=1.0)
    >>> for reward, ended in [(1.0, False), (3.0, True)]:  # the first episode of all: returns 4 and 3
    ...     print(scaling.step([reward], [ended]))
    [1.]
    [0.75]
    >>> scaling.step([1.0], [False])                       # from now on: by the deviation of those returns, 0.5
    array([1.99999996])
"""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kscore import checks
from kscore.normalizers.base import discounted_returns
from kscore.wrappers.memory import Memory
from kscore.wrappers.returns import Floats, Named, ReturnScale, make_normalizer
from kscore.wrappers.states import read_state, write_state

__all__ = ["Floats", "Named", "ReturnScale", "RewardScaling", "discounted_returns", "make_normalizer"]


class RewardScaling:
    """Divide the rewards of one or more environments, the lanes, by what a normalizer knows of the size of returns.

    All rewards of an episode are divided by the same number: the scale that was known when it began. When it has ended,
    terminated or cut off, the normalizer learns from its true discounted returns, and the next episode is divided by
    what is known then. Nothing of an episode is carried into the next. `frozen`: go on dividing and stop learning; an
    episode of which a part was played so is not learned from. One that goes on for more than `memory.LONGEST` steps
    is learned from as if it had been cut off there.

    Until an episode has ended there is no scale. The first rewards are divided by the largest size, over all lanes and
    steps so far, of the sum A_t = γ A_{t-1} + r_t. As r_t = A_t - γ A_{t-1}, a reward is at most as large as two
    such sums together, which is twice the largest: no scaled reward is beyond 2 in size, and nothing spikes.

    >>> scaling = RewardScaling({"name": "popart", "rate": 0.5}, lanes=2, gamma=0.9)
    >>> scaling.step([1.0, -10.0], [False, False])
    array([ 0.1, -1. ])
    """

    def __init__(
        self,
        normalizer: Named = "episode",
        lanes: int = 1,
        gamma: float = 0.99,
        floor: float = 0.0,
        epsilon: float = 0.0,
    ) -> None:
        self._known = ReturnScale(normalizer, gamma, floor, epsilon)
        self.lanes = checks.whole("lanes", lanes)
        self.frozen = False
        self.sums = np.zeros(self.lanes)  # A, of the episodes under way
        self._memory = Memory(self.lanes)
        self._time = 0  # steps so far
        self._begun = np.zeros(self.lanes, int)  # the step that the episode of each lane began with
        self._whole = np.ones(self.lanes, bool)  # lanes whose episode is learned from when it ends
        self._scales = np.zeros(self.lanes)  # what the rewards of each lane's episode are divided by; 0: no scale
        self._starting = True  # some of them have none
        self._begin(np.arange(self.lanes))

    @property
    def known(self) -> ReturnScale:
        """What was learned; another one can take its place, and episodes that begin later go by it."""
        return self._known

    @known.setter
    def known(self, known: ReturnScale) -> None:
        if not isinstance(known, ReturnScale):
            raise ValueError(f"known must be a ReturnScale, as wrappers of one kind share it, got {known!r:.200}")
        self._known = known

    def step(self, rewards: ArrayLike, ended: ArrayLike, idle: NDArray[np.bool_] | None = None) -> Floats:
        """Scale the rewards of one step, (lanes,), and learn from the episodes that `ended` with it, (lanes,).

        In lanes that are `idle`, (lanes,), the step belongs to no episode, and the next one begins after it.
        """
        rewards, ended = self._checked(rewards), np.asarray(ended, bool)
        if ended.shape != (self.lanes,):
            raise ValueError(f"ended must have the shape ({self.lanes},), got {ended.shape}")
        if self._memory.full and not self.frozen:
            self._make_room()
        self._follow(rewards, idle)
        scaled = self._started(rewards) if self._starting else rewards / self._scales
        if np.count_nonzero(ended):
            self._end(np.flatnonzero(ended if idle is None else ended & ~idle))
        if idle is not None:
            self._begin(np.flatnonzero(idle))
        return scaled

    def abandon(self, lanes: int | ArrayLike | None = None) -> None:
        """Drop the unfinished episodes of some lanes (a number, numbers or a mask; None: all), not learned from.

        The next step is the first of another episode there.
        """
        wanted: Any = ... if lanes is None else lanes
        try:
            dropped = np.atleast_1d(np.arange(self.lanes)[wanted])
        except IndexError:
            raise ValueError(
                f"lanes must be numbers from 0 to {self.lanes - 1}, or a mask of {self.lanes}, got {lanes!r}"
            ) from None
        self._begin(dropped)

    def state_dict(self) -> dict[str, object]:
        """Return what was learned, as it survives JSON; episodes under way are not part of it."""
        return self._known.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what another scaling has learned; a bad state changes nothing.

        Episodes under way are divided by what was loaded from here on, and not learned from.
        """
        self._known.load_state_dict(state)
        self._whole[self._begun < self._time] = False
        self._divide_by_what_is_known(np.arange(self.lanes))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a file of JSON, in one piece: a reader finds the old file or the new one."""
        write_state(path, self.state_dict())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from what was saved to a file; a bad file changes nothing."""
        self.load_state_dict(read_state(path))

    def _checked(self, rewards: ArrayLike) -> Floats:
        try:
            checked = np.array(rewards, float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"rewards must be numbers, got {rewards!r:.200}") from None
        if checked.shape != (self.lanes,):
            raise ValueError(f"rewards must have the shape ({self.lanes},), got {checked.shape}")
        if not checked.dot(checked) <= checks.LARGEST**2:  # also where one is NaN: which one is asked only then
            checks.series("rewards", checked)
        return checked

    def _follow(self, rewards: Floats, idle: NDArray[np.bool_] | None) -> None:
        """Take a step into the sums and, unless frozen, into their mean and the memory of the episodes under way."""
        self._time += 1
        self.sums *= self._known.gamma
        self.sums += rewards
        if idle is not None:
            self.sums[idle] = 0.0
        if self.frozen:
            self._whole[:] = False
            return
        lanes = self.lanes if idle is None else self.lanes - int(np.count_nonzero(idle))
        if lanes:
            self._known.follow(float(self.sums.sum()), lanes)
        self._memory.add(rewards)

    def _make_room(self) -> None:
        """Empty the memory's block; an episode that has become too long to be kept is learned from as if cut off."""
        too_long = self._memory.make_room(self._whole)
        if too_long:
            self._end(np.array(too_long))

    def _started(self, rewards: Floats) -> Floats:
        """Scale rewards while some lanes play episodes that began before there was a scale."""
        without = self._scales == 0
        if not self.frozen:
            self._known.largest = max(self._known.largest, float(np.abs(self.sums[without]).max()))
        return rewards / np.where(without, self._known.with_epsilon(self._known.start), self._scales)

    def _end(self, lanes: NDArray[np.intp]) -> None:
        for lane in lanes[self._whole[lanes]]:
            self._known.learn(self._memory.episode(lane).tolist())
        self._begin(lanes)

    def _begin(self, lanes: NDArray[np.intp]) -> None:
        """Let the next step be the first of an episode in some lanes, with the scale that is known now."""
        self._memory.begin(lanes)
        self._begun[lanes], self.sums[lanes], self._whole[lanes] = self._time, 0.0, True
        self._divide_by_what_is_known(lanes)

    def _divide_by_what_is_known(self, lanes: NDArray[np.intp]) -> None:
        self._scales[lanes] = self._known.divisor if self._known.scale else 0.0
        self._starting = (self._starting or not self._known.scale) and not self._scales.all()
