"""Wrappers for Stable-Baselines3: rewards scaled on their way into any learner, returns normalized inside PPO and A2C.

`VecKScore` is a `VecNormalize` that scales rewards by what a normalizer knows of the size of returns:

    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> env = VecKScore(make_vec_env("CartPole-v1", n_envs=2), normalizer="episode", gamma=0.99)
    >>> env.reset().shape
    (2, 4)

`NormalizedRolloutBuffer` takes a normalizer to where the K-Score acts, the returns and advantages of a rollout:

    >>> from stable_baselines3 import PPO
    >>> model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=64, n_epochs=1, device="cpu", seed=0,
    ...             rollout_buffer_class=NormalizedRolloutBuffer, rollout_buffer_kwargs={"normalizer": "episode"})
    >>> model = model.learn(64, callback=KeepScores())
    >>> model.rollout_buffer.scale > 1  # what one unit of the critic stands for
    True

`LogScale` is a callback that writes what either has learned into the learner's log.
"""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kscore import checks, paths
from kscore.wrappers.sb3_buffers import (
    KeepScores,
    NormalizedBuffer,
    NormalizedDictRolloutBuffer,
    NormalizedRolloutBuffer,
)
from kscore.wrappers.scaling import Floats, Named, ReturnScale, RewardScaling
from kscore.wrappers.states import VERSION, checked_state, read_state, write_state

with checks.extra("kscore.wrappers.sb3", "sb3"):
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.running_mean_std import RunningMeanStd
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

__all__ = ["KeepScores", "LogScale", "NormalizedDictRolloutBuffer", "NormalizedRolloutBuffer", "VecKScore"]

Observations = NDArray[Any] | dict[str, NDArray[Any]]


class VecKScore(VecNormalize):
    """Scale the rewards of a vector environment by what a normalizer knows of the size of returns.

    It is a `VecNormalize`: observations are normalized as there, and its arguments, `training`, `norm_reward`,
    `get_original_reward`, `save`, `load` and `sync_envs_normalization` do what they do there. Only what rewards are
    divided by is different: each episode by one number, the scale that was known when it began; it is learned from the
    true returns of whole episodes, ended or cut off. What was learned is `ret_rms`, with a `state_dict` of its own.
    No scale is a smaller share than `floor` of the size of returns.

    `normalize_reward` and `unnormalize_reward` go by the newest scale: the last reward of an episode, and those of
    lanes whose episode began before another one ended, were divided by an older one.

    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> env = VecKScore(make_vec_env("CartPole-v1", n_envs=2, seed=0), norm_obs=False, normalizer={"name": "popart"})
    >>> _ = env.reset()
    >>> for _ in range(50):
    ...     observations, rewards, dones, infos = env.step(np.array([0, 0]))
    >>> env.get_original_reward(), env.ret_rms.count
    (array([1., 1.], dtype=float32), 10)
    """

    def __init__(
        self,
        venv: VecEnv,
        training: bool = True,
        norm_obs: bool = True,
        norm_reward: bool = True,
        clip_obs: float = 10.0,
        clip_reward: float = 10.0,
        gamma: float = 0.99,
        epsilon: float = 1e-8,
        norm_obs_keys: list[str] | None = None,
        normalizer: Named = "episode",
        floor: float = 0.0,
    ) -> None:
        super().__init__(venv, training, norm_obs, norm_reward, clip_obs, clip_reward, gamma, epsilon, norm_obs_keys)
        self._scale_by(ReturnScale(normalizer, gamma, floor))

    def _scale_by(self, known: ReturnScale) -> None:
        self._scaling = RewardScaling(lanes=self.num_envs)
        self._scaling.known = known
        self._scaling.abandon()

    @property  # type: ignore[override]
    def ret_rms(self) -> ReturnScale:
        """What is known of returns; what another VecKScore has learned can take its place."""
        return self._scaling.known

    @ret_rms.setter
    def ret_rms(self, known: ReturnScale) -> None:
        if "_scaling" not in vars(self):
            return  # what a VecNormalize begins with, before there is anything of ours
        if not isinstance(known, ReturnScale):
            raise ValueError(
                f"ret_rms must be the ReturnScale of a VecKScore, got a {type(known).__name__}, as a VecNormalize has: "
                "wrap the environments for training and for evaluation in the same class"
            )
        self._scaling.known = known

    @property
    def gamma(self) -> float:
        """The discount of the returns that are learned from; it should be the learner's."""
        return self.ret_rms.gamma

    @gamma.setter
    def gamma(self, gamma: float) -> None:
        if "_scaling" in vars(self):
            self.ret_rms.gamma = gamma

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step of all environments; normalize the observations, and scale the rewards."""
        self._scaling.frozen = not self.training
        norm_reward, self.norm_reward = self.norm_reward, False  # they are left alone there, and scaled here
        try:
            observations, rewards, dones, infos = super().step_wait()
        finally:
            self.norm_reward = norm_reward
        scaled = self._scaling.step(self.old_reward, dones)
        self.returns = self._scaling.sums.copy()
        return observations, self._clipped(scaled) if norm_reward else rewards, dones, infos

    def _update_reward(self, reward: NDArray[Any]) -> None:
        """Learn nothing yet: which episodes ended with these rewards is known only after the step."""

    def _clipped(self, scaled: Floats) -> NDArray[np.float32]:
        if not np.vdot(scaled, scaled) <= self.clip_reward**2:  # else none of them is too large
            scaled = np.clip(scaled, -self.clip_reward, self.clip_reward)
        return scaled.astype(np.float32)

    def normalize_reward(self, reward: NDArray[Any]) -> NDArray[Any]:
        """Return rewards, of any shape, as they would be scaled in an episode that began now; nothing is learned."""
        return self._clipped(np.divide(reward, self.ret_rms.divisor)) if self.norm_reward else reward.astype(np.float32)

    def unnormalize_reward(self, reward: NDArray[Any]) -> NDArray[Any]:
        """Return rewards as they were before `normalize_reward`, where it did not clip them."""
        return reward * self.ret_rms.divisor if self.norm_reward else reward

    def reset(self) -> Observations:
        """Reset all environments; episodes that were under way are not learned from."""
        observations = super().reset()
        self._scaling.abandon()
        return observations

    def set_venv(self, venv: VecEnv) -> None:
        """Wrap another vector environment, after loading."""
        super().set_venv(venv)
        self._scale_by(self.ret_rms)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_scaling"]  # episodes under way
        return state | {"known": self.ret_rms, "version": VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.get("version") != VERSION:
            raise ValueError(f"state must be of version {VERSION} of a VecKScore, got {state.get('version')!r}")
        super().__setstate__({name: value for name, value in state.items() if name not in ("known", "version")})
        self._scale_by(state["known"])

    def save(self, save_path: str | os.PathLike[str]) -> None:
        """Save what was learned and all settings as a pickle, in one piece: a reader finds the old file or the new."""
        with paths.whole(Path(save_path)) as draft:
            super().save(str(draft))

    @staticmethod
    def load(load_path: str | os.PathLike[str], venv: VecEnv) -> "VecKScore":
        """Load what `save` has saved, and wrap a vector environment.

        The file is a pickle: it can run any code while it is read, before it can be refused as something else. Load
        only what you trust; `save_json` and `load_json` do without.
        """
        try:
            loaded = VecNormalize.load(str(load_path), venv)
        except OSError:
            raise
        except Exception as error:  # what is no pickle, or half of one, can raise nearly anything
            raise ValueError(
                f"load_path must name a file of a VecKScore, got {str(load_path)!r}, which cannot be "
                f"loaded: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(loaded, VecKScore):
            raise ValueError(
                f"load_path must name a file of a VecKScore, got {str(load_path)!r} with a {type(loaded).__name__}"
            )
        return loaded

    def state_dict(self) -> dict[str, object]:
        """Return what was learned of returns and observations, as it survives JSON; episodes under way are not in it.

        Settings of the wrapper such as `clip_reward` are not part of it: whoever loads it has made the wrapper.
        """
        rms = self._observed()
        return {
            "version": VERSION,
            "settings": {"observations": {key: list(each.mean.shape) for key, each in rms.items()}},
            "returns": self.ret_rms.state_dict(),
            "observations": {
                key: {"mean": each.mean.tolist(), "var": each.var.tolist(), "count": float(each.count)}
                for key, each in rms.items()
            },
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what a VecKScore with the same settings has learned; a bad state changes nothing.

        The rest of an episode that is under way is not learned from.
        """
        state = checked_state(state, self.state_dict())
        rms, seen = self._observed(), state["observations"]
        if not isinstance(seen, Mapping) or set(seen) != set(rms):
            raise ValueError(f"state['observations'] must have the keys {sorted(rms)}, got {seen!r:.200}")
        checked = {
            key: _checked_moments(f"state['observations'][{key!r}]", seen[key], each.mean.shape)
            for key, each in rms.items()
        }
        self._scaling.load_state_dict(state["returns"])
        for key, each in rms.items():
            each.mean, each.var, each.count = checked[key]

    def _observed(self) -> dict[str, RunningMeanStd]:
        """Return the statistics of observations by their key, an empty one where observations are no dicts."""
        rms = getattr(self, "obs_rms", {})
        return rms if isinstance(rms, dict) else {"": rms}

    def save_json(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to a file of JSON, in one piece: a reader finds the old file or the new one."""
        write_state(path, self.state_dict())

    def load_json(self, path: str | os.PathLike[str]) -> None:
        """Go on from what `save_json` has written; a bad file changes nothing, and nothing in it is run or imported."""
        self.load_state_dict(read_state(path))


def _checked_moments(name: str, moments: object, shape: tuple[int, ...]) -> tuple[Floats, Floats, float]:
    """Return a mean, a variance and a count of observations, if that is what they are."""
    if not isinstance(moments, Mapping) or set(moments) != {"mean", "var", "count"}:
        raise ValueError(f"{name} must have the keys ['count', 'mean', 'var'], got {moments!r:.200}")
    mean, var = (checks.array(f"{name}[{key!r}]", moments[key], shape=shape) for key in ("mean", "var"))
    if (var < 0).any():
        raise ValueError(f"{name}['var'] must not be negative, got {var.min()}")
    return mean, var, checks.positive(f"{name}['count']", moments["count"])


class LogScale(BaseCallback):
    """Write what a `VecKScore` or a normalizing buffer has learned into the learner's log, and so to TensorBoard.

    After every rollout it records `kscore/scale`, `kscore/centre`, `kscore/gain` and `kscore/count`: what rewards (or
    scores) are divided by, the centre, the weight that the next observation will have, how many were learned from.
    It warns where the discount of a `VecKScore` is not that of the model.

    >>> from stable_baselines3 import PPO
    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> env = VecKScore(make_vec_env("CartPole-v1", n_envs=2, seed=0), gamma=0.99)
    >>> model = PPO("MlpPolicy", env, gamma=0.99, n_steps=64, batch_size=64, n_epochs=1, device="cpu", seed=0)
    >>> model = model.learn(128, callback=LogScale())
    """

    def _on_training_start(self) -> None:
        env, buffer = scaled_by(self.model.get_env()), getattr(self.model, "rollout_buffer", None)
        self._watched: dict[str, ReturnScale | NormalizedBuffer] = {}
        if env is not None:
            self._watched["kscore"] = env.ret_rms
            gamma = getattr(self.model, "gamma", env.gamma)
            if env.gamma != gamma:
                warnings.warn(
                    f"gamma must be the same in VecKScore and in the model, got {env.gamma} and {gamma}: "
                    "rewards are scaled to returns of another size than those that are learned",
                    stacklevel=3,
                )
        if isinstance(buffer, NormalizedBuffer):
            self._watched["kscore_buffer" if self._watched else "kscore"] = buffer
        if not self._watched:
            raise ValueError("LogScale must be used with a VecKScore or a rollout_buffer_class that normalizes")

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        for place, watched in self._watched.items():
            for name, value in watched.report().items():
                if value == value:  # a gain that there is not is NaN
                    self.logger.record(f"{place}/{name}", value)


def scaled_by(env: VecEnv | None) -> VecKScore | None:
    """Return the VecKScore among the wrappers of an environment, or None."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, VecKScore):
            return env
        env = env.venv
    return None
