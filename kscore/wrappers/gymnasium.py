"""Wrappers for Gymnasium that divide rewards by what a normalizer knows of the size of returns.

They stand where `gymnasium.wrappers.NormalizeReward` and its sibling for vectors of environments would, and are used in
the same way; what is inside a wrapper, `RecordEpisodeStatistics` for example, sees the rewards as they are.

    >>> import gymnasium as gym
    >>> env = NormalizeReward(gym.make("CartPole-v1"), normalizer="episode", gamma=0.99)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(0)
    >>> reward, env.raw_reward
    (1.0, 1.0)
"""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from kscore import checks
from kscore.normalizers import NORMALIZERS, Normalizer, make, option_names, spelled_out
from kscore.wrappers.scaling import Named, ReturnScale, RewardScaling

try:
    import gymnasium as gym
    from gymnasium.core import ActType, ObsType
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
except ImportError as error:
    raise ImportError(
        "kscore.wrappers.gymnasium needs Gymnasium, which is not installed: pip install 'kscore[gymnasium]'"
    ) from error


def _named(normalizer: Named) -> Named:
    """Return a Normalizer that is as it was made by its name and options, for a spec: each environment has its own.

    One that has learned, is frozen, or is of a class that cannot be imported is itself what a spec has to hold.
    """
    if not isinstance(normalizer, Normalizer):
        return normalizer
    kind = type(normalizer)
    name = next((name for name, own in NORMALIZERS.items() if own is kind), f"{kind.__module__}:{kind.__qualname__}")
    try:
        named = spelled_out(name, **{option: getattr(normalizer, option) for option in option_names(name)})
    except ValueError:
        return normalizer
    new = make(**named)
    return named if (new.frozen, new.state_dict()) == (normalizer.frozen, normalizer.state_dict()) else normalizer


class _Scaled:
    """What the wrapper of one environment and that of many have in common."""

    scaling: RewardScaling

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

    @property
    def return_rms(self) -> ReturnScale:
        """What is known: its `scale`, its `var`, the `count` of episodes learned from, its `normalizer`."""
        return self.scaling.known

    def state_dict(self) -> dict[str, object]:
        """Return what was learned, as it survives JSON; an episode under way is not part of it."""
        return self.scaling.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what another wrapper with the same normalizer has learned; a bad state changes nothing."""
        self.scaling.load_state_dict(state)

    def save(self, path: str | os.PathLike) -> None:
        """Write what was learned to a file of JSON, in one piece: a reader finds the old file or the new one."""
        self.scaling.save(path)

    def load(self, path: str | os.PathLike) -> None:
        """Go on from what was saved to a file; a bad file changes nothing."""
        self.scaling.load(path)


class NormalizeReward(_Scaled, gym.Wrapper[ObsType, ActType, ObsType, ActType], gym.utils.RecordConstructorArgs):
    """Divide the rewards of an environment, each episode by one number: what was known of returns when it began.

    `normalizer` is a name, a dict of a name and options, or a Normalizer. `gamma` should be the learner's discount.
    The last reward as it came is `raw_reward`. A reset drops an unfinished episode; a step after an episode's end that
    no reset came before is the reset of an `Autoreset` inside, and belongs to no episode.

    >>> env = NormalizeReward(gym.make("CartPole-v1", max_episode_steps=2), {"name": "running"}, gamma=1.0)
    >>> for _ in range(2):
    ...     _ = env.reset(seed=0)
    ...     [round(env.step(action)[1], 6) for action in (0, 1)]
    [1.0, 0.5]
    [2.0, 2.0]
    >>> env.update_running_mean = False  # the counterpart of a normalizer's `frozen`
    """

    def __init__(self, env: gym.Env[ObsType, ActType], normalizer: Named = "episode", gamma: float = 0.99) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, normalizer=_named(normalizer), gamma=gamma)
        gym.Wrapper.__init__(self, env)
        self.scaling = RewardScaling(normalizer, 1, gamma)
        self.raw_reward = 0.0
        self._over = False  # the last step ended an episode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ObsType, dict]:
        """Reset the environment; an episode that was under way is not learned from."""
        begun = self.env.reset(seed=seed, options=options)
        self.scaling.abandon()
        self._over = False
        return begun

    def step(self, action: ActType) -> tuple[ObsType, float, bool, bool, dict]:
        """Take a step, and scale its reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        ended, resetting = bool(terminated or truncated), self._over
        scaled = self.scaling.step([reward], [ended and not resetting])
        if resetting:
            self.scaling.abandon()
        self.raw_reward, self._over = reward, ended
        return observation, scaled.item(), terminated, truncated, info


class VectorNormalizeReward(
    _Scaled, VectorWrapper[ObsType, ActType, ObsType, ActType, np.ndarray], gym.utils.RecordConstructorArgs
):
    """Divide the rewards of a vector of environments, the lanes, that learn together and are scaled alike.

    As `NormalizeReward`, for each lane; the last rewards as they came are `raw_reward`. All modes of autoreset are
    known: with `NEXT_STEP` the step that resets a lane belongs to no episode, with `SAME_STEP` the step after an end is
    the first of the next one, and with `DISABLED` lanes are reset by a `reset_mask`.

    >>> envs = VectorNormalizeReward(gym.make_vec("CartPole-v1", num_envs=3), normalizer="percentile", gamma=0.99)
    >>> _ = envs.reset(seed=0)
    >>> observations, rewards, terminations, truncations, infos = envs.step(np.array([0, 1, 0]))
    >>> rewards
    array([1., 1., 1.])
    >>> envs.close()
    """

    def __init__(
        self, env: VectorEnv[ObsType, ActType, np.ndarray], normalizer: Named = "episode", gamma: float = 0.99
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, normalizer=_named(normalizer), gamma=gamma)
        VectorWrapper.__init__(self, env)
        self.scaling = RewardScaling(normalizer, self.num_envs, gamma)
        self.raw_reward = np.zeros(self.num_envs)
        self._over = np.zeros(self.num_envs, bool)  # lanes whose next step is a reset
        self._same_step = env.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP  # NEXT_STEP is the default

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict]:
        """Reset all lanes, or those of `options["reset_mask"]`; episodes under way there are not learned from."""
        lanes = (options or {}).get("reset_mask", slice(None))  # looked at first: the environments take it out
        begun = self.env.reset(seed=seed, options=options)
        self.scaling.abandon(lanes)
        self._over[lanes] = False
        return begun

    def step(self, actions: ActType) -> tuple[ObsType, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Take a step in every lane, and scale their rewards."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        ended, resetting = np.logical_or(terminations, truncations), self._over
        if np.count_nonzero(resetting):
            scaled = self.scaling.step(rewards, ended & ~resetting)
            self.scaling.abandon(resetting)
        else:
            scaled = self.scaling.step(rewards, ended)
        self.raw_reward = np.array(rewards)
        if not self._same_step:
            self._over = ended
        return observations, scaled, terminations, truncations, infos
