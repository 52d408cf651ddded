"""Wrappers for Gymnasium that divide rewards by what a normalizer knows of the size of returns.

They stand where `gymnasium.wrappers.NormalizeReward` and its sibling for vectors of environments would, and are used in
the same way; what is inside a wrapper, `RecordEpisodeStatistics` for example, sees the rewards as they are.

    >>> import gymnasium as gym
    >>> env = NormalizeReward(gym.make("CartPole-v1"), gamma=0.99, normalizer="episode")
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> reward, env.raw_reward
    (1.0, 1.0)
"""

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from kscore import checks
from kscore.normalizers import Normalizer, make
from kscore.wrappers.scaling import Floats, Named, ReturnScale, RewardScaling
from kscore.wrappers.states import described

with checks.extra("kscore.wrappers.gymnasium", "gymnasium"):
    import gymnasium as gym
    from gymnasium.core import ActType, ObsType
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

if TYPE_CHECKING:
    Vectors = VectorWrapper[ObsType, ActType, ObsType, ActType, NDArray[Any]]
    Single = gym.Wrapper[ObsType, ActType, ObsType, ActType]
else:  # the vectors cannot be subscribed before Gymnasium 1.4
    Vectors, Single = VectorWrapper, gym.Wrapper

FLOOR = 0.1  # share of the size of returns that no scale is below
EPSILON = 1e-16  # Gymnasium's 1e-8 is there for a variance near zero; here no scale is, and a 1 divided by 1 stays a 1


class InvalidBound(gym.error.InvalidBound, ValueError):
    """A setting is outside of what is allowed: Gymnasium's error for it, and Python's own."""


@contextmanager
def _bounds() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise InvalidBound(str(error)) from None


def _named(normalizer: Named) -> Named:
    """Return a Normalizer that is as it was made by its name and options, for a spec: each environment has its own.

    One that has learned, is frozen, or is of a class that cannot be imported is itself what a spec has to hold.
    """
    if not isinstance(normalizer, Normalizer):
        return normalizer
    named = described(normalizer)
    try:
        new = make(**named)
    except ValueError:
        return normalizer
    return named if (new.frozen, new.state_dict()) == (normalizer.frozen, normalizer.state_dict()) else normalizer


class _Scaled(gym.utils.RecordConstructorArgs):
    """What the wrapper of one environment and that of many have in common."""

    def __init__(
        self,
        env: Any,
        gamma: float = 0.99,
        epsilon: float = EPSILON,
        normalizer: Named = "episode",
        floor: float = FLOOR,
        clip_reward: float | None = None,
        info_key: str | None = None,
    ) -> None:
        with _bounds():
            checks.number("gamma", gamma, low=0, high=1)
            checks.variance("epsilon", epsilon, positive=True)
            checks.number("floor", floor, low=0, high=1)
            if clip_reward is not None:
                checks.positive("clip_reward", clip_reward)
        if not (info_key is None or isinstance(info_key, str)):
            raise ValueError(f"info_key must be a text or None, got {info_key!r}")
        settings: dict[str, Any] = {
            "gamma": gamma,
            "epsilon": epsilon,
            "normalizer": _named(normalizer),
            "floor": floor,
        }
        gym.utils.RecordConstructorArgs.__init__(self, **settings, clip_reward=clip_reward, info_key=info_key)
        self.scaling = RewardScaling(normalizer, self._wrap(env), gamma, floor, epsilon)
        self.clip_reward, self.info_key = clip_reward, info_key

    def _wrap(self, env: Any) -> int:
        """Take an environment, and return how many lanes it has."""
        raise NotImplementedError

    def _clipped(self, scaled: Floats) -> Floats:
        return scaled if self.clip_reward is None else np.clip(scaled, -self.clip_reward, self.clip_reward)

    @property
    def update_running_mean(self) -> bool:
        """Whether the wrapper learns; if set to False, it goes on scaling by what it knows, as in an evaluation."""
        return not self.scaling.frozen

    @update_running_mean.setter
    def update_running_mean(self, setting: bool) -> None:
        self.scaling.frozen = not checks.flag(
            "update_running_mean", setting.item() if isinstance(setting, np.bool_) else setting
        )

    @property
    def gamma(self) -> float:
        """The discount of the returns that are learned from; it should be the learner's."""
        return self.scaling.known.gamma

    @gamma.setter
    def gamma(self, gamma: float) -> None:
        with _bounds():
            self.scaling.known.gamma = gamma

    @property
    def epsilon(self) -> float:
        """What is added to the square of the scale before rewards are divided by its root."""
        return self.scaling.known.epsilon

    @property
    def return_rms(self) -> ReturnScale:
        """What is known: its `scale`, its `var`, the `count` of episodes learned from, its `normalizer`."""
        return self.scaling.known

    def normalize(self, reward: float | Floats) -> Floats:
        """Return rewards, of any shape, as they would be scaled in an episode that began now; nothing is learned."""
        return self._clipped(np.divide(reward, self.scaling.known.divisor))

    def state_dict(self) -> dict[str, object]:
        """Return what was learned, as it survives JSON; an episode under way is not part of it."""
        return self.scaling.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what another wrapper with the same settings has learned; a bad state changes nothing.

        The rest of an episode that is under way is not learned from.
        """
        self.scaling.load_state_dict(state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a file of JSON, in one piece: a reader finds the old file or the new one."""
        self.scaling.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from what was saved to a file; a bad file changes nothing."""
        self.scaling.load(path)


class NormalizeReward(_Scaled, Single):
    """Divide the rewards of an environment, each episode by one number: what was known of returns when it began.

    The arguments are those of Gymnasium's wrapper, and four more: `normalizer` is a name, a dict of a name and options,
    or a Normalizer, which is copied; no scale is a smaller share than `floor` of the size of returns; `clip_reward`
    bounds the size of scaled rewards; with an `info_key` the last step of an episode has in its `info`, under this key,
    the scale, centre and gain that are known after it, and the count of episodes.
    The last reward as it came is `raw_reward`. A reset drops an unfinished episode; a step after an episode's end that
    no reset came before is the reset of an `Autoreset` inside, and belongs to no episode.

    >>> env = NormalizeReward(gym.make("CartPole-v1", max_episode_steps=2), gamma=1.0, normalizer={"name": "running"})
    >>> for _ in range(2):
    ...     _ = env.reset(seed=0)
    ...     [round(env.step(action)[1], 6) for action in (0, 1)]
    [1.0, 0.5]
    [2.0, 2.0]
    >>> env.update_running_mean = False  # the counterpart of a normalizer's `frozen`
    """

    def _wrap(self, env: gym.Env[ObsType, ActType]) -> int:
        gym.Wrapper.__init__(self, env)
        self.raw_reward: SupportsFloat = 0.0
        self._over = False  # the last step ended an episode
        return 1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Reset the environment; an episode that was under way is not learned from."""
        begun = self.env.reset(seed=seed, options=options)
        self.scaling.abandon()
        self._over = False
        return begun

    def step(self, action: ActType) -> tuple[ObsType, float, bool, bool, dict[str, Any]]:
        """Take a step, and scale its reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        ended, idle = bool(terminated or truncated), np.ones(1, bool) if self._over else None
        scaled = self._clipped(self.scaling.step([float(reward)], [ended], idle)).item()
        if ended and self.info_key is not None:
            info = {**info, self.info_key: self.return_rms.report()}
        self.raw_reward, self._over = reward, ended
        return observation, scaled, terminated, truncated, info


class VectorNormalizeReward(_Scaled, Vectors):
    """Divide the rewards of a vector of environments, the lanes, that learn together and are scaled alike.

    As `NormalizeReward`, for each lane; the last rewards as they came are `raw_reward`. All modes of autoreset are
    known: with `NEXT_STEP` the step that resets a lane belongs to no episode, with `SAME_STEP` the step after an end is
    the first of the next one, and with `DISABLED` lanes are reset by a `reset_mask`. Environments whose metadata name
    no `autoreset_mode` are taken for the first kind, with a warning.

    >>> envs = VectorNormalizeReward(gym.make_vec("CartPole-v1", num_envs=3), gamma=0.99, normalizer="percentile")
    >>> _ = envs.reset(seed=0)
    >>> observations, rewards, terminations, truncations, infos = envs.step(np.array([0, 1, 0]))
    >>> rewards
    array([1., 1., 1.])
    >>> envs.close()
    """

    def _wrap(self, env: "VectorEnv[ObsType, ActType, NDArray[Any]]") -> int:
        VectorWrapper.__init__(self, env)
        self.raw_reward = np.zeros(self.num_envs)
        self._over = np.zeros(self.num_envs, bool)  # lanes whose next step is a reset
        self._same_step = _autoreset_mode(env) == AutoresetMode.SAME_STEP
        return self.num_envs

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Reset all lanes, or those of `options["reset_mask"]`; episodes under way there are not learned from."""
        lanes = (options or {}).get("reset_mask", slice(None))  # looked at first: the environments take it out
        begun = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # a seed for each lane is allowed
        self.scaling.abandon(lanes)
        self._over[lanes] = False
        return begun

    def step(self, actions: ActType) -> tuple[ObsType, Floats, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take a step in every lane, and scale their rewards."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        ended = np.logical_or(terminations, truncations)
        scaled = self.scaling.step(rewards, ended, self._over if np.count_nonzero(self._over) else None)
        self.raw_reward = np.array(rewards)
        if not self._same_step:
            self._over = ended
        if self.info_key is not None and np.count_nonzero(ended):
            report = {name: np.full(self.num_envs, value) for name, value in self.return_rms.report().items()}
            infos = {**infos, self.info_key: report, f"_{self.info_key}": ended}
        return observations, self._clipped(scaled), terminations, truncations, infos


def _autoreset_mode(env: "VectorEnv[Any, Any, Any]") -> AutoresetMode:
    """Return what happens after an episode's end, which decides to which episode a reward belongs."""
    mode = (env.metadata or {}).get("autoreset_mode")
    if isinstance(mode, AutoresetMode):
        return mode
    if mode in {each.value for each in AutoresetMode}:
        return AutoresetMode(mode)
    warnings.warn(
        f"env.metadata['autoreset_mode'] must say when a lane is reset, got {mode!r}: taken for "
        "AutoresetMode.NEXT_STEP, in which the step after an end is a reset, and its reward belongs to no episode.",
        stacklevel=5,
    )
    return AutoresetMode.NEXT_STEP
