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

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import numpy as np

from kscore import checks, normalizers
from kscore.normalizers import NoNormalizer, Normalizer, RewardScale, Symlog

SMALLEST = 1 / checks.LARGEST  # nothing is divided by less: no reward becomes infinite
NEGLIGIBLE = 1e-6  # a scale that is a smaller share of the returns is that of equal ones
LEAST_LEFT = 0.5  # of the scale, after however many episodes in a row that paid nothing

Named = str | Mapping[str, object] | Normalizer
"""A normalizer by its name, by its name and options, {"name": ..., ...}, or itself."""


def make_normalizer(normalizer: Named, **usual: object) -> Normalizer:
    """Return the normalizer that is meant; `usual` are options that hold where none are given.

    >>> make_normalizer({"name": "ema", "decay": 0.9}).decay
    0.9
    """
    if isinstance(normalizer, Normalizer):
        return normalizer
    if isinstance(normalizer, str):
        return normalizers.make(normalizer, **usual)
    if isinstance(normalizer, Mapping) and "name" in normalizer:
        return normalizers.make(**usual | dict(normalizer))
    raise ValueError(
        f"normalizer must be a name, a dict with the name and options, or a Normalizer, got {normalizer!r}"
    )


def discounted_returns(rewards: Sequence[float], gamma: float) -> np.ndarray:
    """Return G_t = r_t + γ G_{t+1} for all steps of an episode.

    >>> discounted_returns([1.0, 1.0, 4.0], gamma=0.5)
    array([2.5, 3. , 4. ])
    """
    returns, G = [], 0.0
    for reward in reversed(rewards):
        G = reward + gamma * G
        returns.append(G)
    return np.array(returns[::-1])


@contextmanager
def written_whole(path: str | os.PathLike) -> Iterator[Path]:
    """Give a draft to write; it becomes the file in one piece, and a failure leaves the old file as it was."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


class ReturnScale:
    """What is known of the size of returns: a normalizer, and the scale that it gave last.

    It learns from whole episodes, and keeps nothing of one that is under way. `mean`, `var` and `count` are there for
    those who look at a running mean and variance in its place.

    >>> known = ReturnScale("running", gamma=1.0)
    >>> known.learn([1.0, 3.0])
    >>> round(known.scale, 3), known.count
    (0.5, 1)
    """

    mean = 0.0  # nothing is subtracted

    def __init__(self, normalizer: Named = "episode", gamma: float = 0.99) -> None:
        self._gamma = checks.number("gamma", gamma, low=0, high=1)
        by_name = normalizer["name"] if isinstance(normalizer, Mapping) and "name" in normalizer else normalizer
        usual = {"gamma": self._gamma} if by_name == RewardScale.name else {}
        self.normalizer = make_normalizer(normalizer, **usual)
        if isinstance(self.normalizer, RewardScale) and self.normalizer.gamma != self._gamma:
            raise ValueError(f"gamma must be that of its normalizer, {self.normalizer.gamma}, got {gamma}")
        self.scale = 1.0 if isinstance(self.normalizer, NoNormalizer | Symlog) else 0.0  # 0: not known yet
        self.largest = 0.0  # of the discounted sums that were met before the scale was known
        self.count = 0  # episodes learned from
        self.first = 0.0  # the first return of all

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
        return self.scale or self.start

    @property
    def start(self) -> float:
        """What a reward is divided by as long as there is no scale; 1 where there were nothing but zeros."""
        return self.largest if self.largest >= SMALLEST else 1.0

    @property
    def var(self) -> float:
        """The square of what a reward is divided by."""
        return self.divisor**2

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
        scale = self.normalizer.recall(seen).scale
        scale = float(scale if isinstance(scale, float) else np.ravel(scale)[-1])
        spread = self.scale or (returns != self.first).any()
        if size and spread and max(NEGLIGIBLE * size, SMALLEST) < scale < math.inf:
            self.scale = scale
        if before and scale < LEAST_LEFT * self.scale:
            self.normalizer.load_state_dict(before)

    def state_dict(self) -> dict[str, object]:
        """Return what was learned, as plain numbers, lists and dicts that survive JSON."""
        kind = getattr(self.normalizer, "name", type(self.normalizer).__name__)
        return {
            "kind": kind,
            "gamma": self._gamma,
            "normalizer": self.normalizer.state_dict(),
            "scale": self.scale,
            "largest": self.largest,
            "count": self.count,
            "first": self.first,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what another one of the same kind and γ has learned; a bad state changes nothing."""
        own = self.state_dict()
        if not isinstance(state, Mapping) or set(state) != set(own):
            raise ValueError(f"state must have the keys {sorted(own)}, got {state!r:.200}")
        for key in ("kind", "gamma"):
            if state[key] != own[key]:
                raise ValueError(f"state[{key!r}] must be {own[key]!r}, as here, got {state[key]!r:.200}")
        count = checks.whole("state['count']", state["count"], low=0)
        scale, largest, first = (
            checks.number(f"state[{name!r}]", state[name], low=low, high=math.inf)
            for name, low in (("scale", 0), ("largest", 0), ("first", -math.inf))
        )
        if 0 < scale < SMALLEST:
            raise ValueError(f"state['scale'] must be 0 or at least {SMALLEST:g}, got {scale}")
        if not isinstance(state["normalizer"], Mapping):
            raise ValueError(f"state['normalizer'] must be a dict, got {state['normalizer']!r:.200}")
        self.normalizer.load_state_dict(dict(state["normalizer"]))
        self.scale, self.largest, self.count, self.first = scale, largest, count, first


class RewardScaling:
    """Divide the rewards of one or more environments, the lanes, by what a normalizer knows of the size of returns.

    All rewards of an episode are divided by the same number: the scale that was known when it began. When it has ended,
    terminated or cut off, the normalizer learns from its true discounted returns, and the next episode is divided by
    what is known then. Nothing of an episode is carried into the next. `frozen`: go on dividing and stop learning.

    Until an episode has ended there is no scale. The first rewards are divided by the largest size, over all lanes and
    steps so far, of the sum A_t = γ A_{t-1} + r_t. As r_t = A_t - γ A_{t-1}, a reward is at most as large as two
    such sums together, which is twice the largest: no scaled reward is beyond 2 in size, and nothing spikes.

    >>> scaling = RewardScaling({"name": "popart", "rate": 0.5}, lanes=2, gamma=0.9)
    >>> scaling.step([1.0, -10.0], [False, False])
    array([ 0.1, -1. ])
    """

    def __init__(self, normalizer: Named = "episode", lanes: int = 1, gamma: float = 0.99) -> None:
        self._known = ReturnScale(normalizer, gamma)
        self.lanes = checks.whole("lanes", lanes)
        self.frozen = False
        self._rewards = np.empty((64, self.lanes))  # of the episodes under way, a row per step
        self._time = 0  # rows that are filled
        self._begun = np.zeros(self.lanes, int)  # the row that the episode of each lane begins with
        self._sums = np.zeros(self.lanes)  # A, followed where and as long as an episode has no scale
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

    def step(self, rewards: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """Scale the rewards of one step, (lanes,), and learn from the episodes that `ended` with it, (lanes,)."""
        rewards, ended = self._checked(rewards), np.asarray(ended, bool)
        if ended.shape != (self.lanes,):
            raise ValueError(f"ended must have the shape ({self.lanes},), got {ended.shape}")
        if self._time == len(self._rewards):
            self._make_room()
        self._rewards[self._time] = rewards
        self._time += 1
        scaled = self._started(rewards) if self._starting else rewards / self._scales
        if np.count_nonzero(ended):
            self._end(np.flatnonzero(ended))
        return scaled

    def abandon(self, lanes: int | np.ndarray | None = None) -> None:
        """Drop the unfinished episodes of some lanes (a number, numbers or a mask; None: all), not learned from."""
        try:
            dropped = np.atleast_1d(np.arange(self.lanes)[... if lanes is None else lanes])
        except IndexError:
            raise ValueError(
                f"lanes must be numbers from 0 to {self.lanes - 1}, or a mask of {self.lanes}, got {lanes!r}"
            ) from None
        self._begin(dropped)

    def state_dict(self) -> dict[str, object]:
        """Return what was learned, as it survives JSON; episodes under way are not part of it."""
        return self._known.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what another scaling has learned, and drop the episodes under way; a bad state changes nothing."""
        self._known.load_state_dict(state)
        self.abandon()

    def save(self, path: str | os.PathLike) -> None:
        """Write what was learned to a file of JSON, in one piece: a reader finds the old file or the new one."""
        with written_whole(path) as draft:
            draft.write_text(json.dumps(self.state_dict(), allow_nan=False), encoding="utf-8")

    def load(self, path: str | os.PathLike) -> None:
        """Go on from what was saved to a file; a bad file changes nothing."""
        try:
            state = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:  # no JSON, or no text
            raise ValueError(f"path must name a file that was saved by a wrapper, got {str(path)!r}: {error}") from None
        self.load_state_dict(state)

    def _checked(self, rewards: np.ndarray) -> np.ndarray:
        try:
            checked = np.array(rewards, float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"rewards must be numbers, got {rewards!r:.200}") from None
        if checked.shape != (self.lanes,):
            raise ValueError(f"rewards must have the shape ({self.lanes},), got {checked.shape}")
        if not checked.dot(checked) <= checks.LARGEST**2:  # also where one is NaN: which one is asked only then
            checks.series("rewards", checked)
        return checked

    def _started(self, rewards: np.ndarray) -> np.ndarray:
        """Scale rewards while some lanes play episodes that began before there was a scale."""
        without = self._scales == 0
        self._sums = self._known.gamma * self._sums + rewards
        if not self.frozen:
            self._known.largest = max(self._known.largest, float(np.abs(self._sums[without]).max()))
        return rewards / np.where(without, self._known.start, self._scales)

    def _end(self, lanes: np.ndarray) -> None:
        if not self.frozen:
            for lane in lanes:
                self._known.learn(self._rewards[self._begun[lane] : self._time, lane].tolist())
        self._begin(lanes)

    def _begin(self, lanes: np.ndarray) -> None:
        """Let the next step be the first of an episode in some lanes, with the scale that is known now."""
        if len(lanes) == self.lanes:
            self._time = 0
        self._begun[lanes], self._sums[lanes], self._scales[lanes] = self._time, 0.0, self._known.scale
        self._starting = (self._starting or not self._known.scale) and not self._scales.all()

    def _make_room(self) -> None:
        """Forget the rows that no episode under way needs; where most of them are needed, have twice as many."""
        oldest = int(self._begun.min())
        needed = self._rewards[oldest:]
        if oldest < len(self._rewards) // 2:
            self._rewards = np.empty((2 * len(self._rewards), self.lanes))
        self._rewards[: len(needed)] = needed
        self._time -= oldest
        self._begun -= oldest
