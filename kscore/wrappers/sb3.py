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
"""

import os
import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Literal

import numpy as np

from kscore import checks
from kscore.normalizers import Normalizer, Symlog
from kscore.normalizers.base import symexp
from kscore.wrappers.scaling import Named, ReturnScale, RewardScaling, make_normalizer, written_whole

try:
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn
except ImportError as error:
    raise ImportError(
        "kscore.wrappers.sb3 needs Stable-Baselines3, which is not installed: pip install 'kscore[sb3]'"
    ) from error


class VecKScore(VecNormalize):
    """Scale the rewards of a vector environment by what a normalizer knows of the size of returns.

    It is a `VecNormalize`: observations are normalized as there, and its arguments, `training`, `norm_reward`,
    `get_original_reward`, `save`, `load` and `sync_envs_normalization` do what they do there. Only what rewards are
    divided by is different: each episode by one number, the scale that was known when it began; it is learned from the
    true returns of whole episodes, ended or cut off. What was learned is `ret_rms`, with a `state_dict` of its own.

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

    ret_rms: ReturnScale

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
    ) -> None:
        super().__init__(venv, training, norm_obs, norm_reward, clip_obs, clip_reward, gamma, epsilon, norm_obs_keys)
        self.ret_rms = ReturnScale(normalizer, gamma)
        self._lanes()

    def _lanes(self) -> None:
        self._scaling = RewardScaling(lanes=self.num_envs)
        self._scaling.known = self.ret_rms
        self._scaling.abandon()

    @property
    def gamma(self) -> float:
        """The discount of the returns that are learned from; it should be the learner's."""
        return self.ret_rms.gamma

    @gamma.setter
    def gamma(self, gamma: float) -> None:
        self.ret_rms.gamma = gamma

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step of all environments; normalize the observations, and scale the rewards."""
        self._scaling.known, self._scaling.frozen = self.ret_rms, not self.training  # both may be set from outside
        norm_reward, self.norm_reward = self.norm_reward, False  # they are left alone there, and scaled here
        try:
            observations, rewards, dones, infos = super().step_wait()
        finally:
            self.norm_reward = norm_reward
        scaled = self._scaling.step(self.old_reward, dones)
        return observations, self._clipped(scaled) if norm_reward else rewards, dones, infos

    def _update_reward(self, reward: np.ndarray) -> None:
        """Learn nothing yet: which episodes ended with these rewards is known only after the step."""

    def _clipped(self, scaled: np.ndarray) -> np.ndarray:
        if not np.vdot(scaled, scaled) <= self.clip_reward**2:  # else none of them is too large
            scaled = np.clip(scaled, -self.clip_reward, self.clip_reward)
        return scaled.astype(np.float32)

    def normalize_reward(self, reward: np.ndarray) -> np.ndarray:
        """Return rewards, of any shape, as they would be scaled in an episode that began now; nothing is learned."""
        return self._clipped(np.divide(reward, self.ret_rms.divisor)) if self.norm_reward else reward.astype(np.float32)

    def unnormalize_reward(self, reward: np.ndarray) -> np.ndarray:
        """Return rewards as they were before `normalize_reward`, where it did not clip them."""
        return reward * self.ret_rms.divisor if self.norm_reward else reward

    def reset(self) -> np.ndarray | dict[str, np.ndarray]:
        """Reset all environments; episodes that were under way are not learned from."""
        self._scaling.known = self.ret_rms
        observations = super().reset()
        self._scaling.abandon()
        return observations

    def set_venv(self, venv: VecEnv) -> None:
        """Wrap another vector environment, after loading."""
        super().set_venv(venv)
        self._lanes()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_scaling"]  # episodes under way; what was learned is in `ret_rms`
        return state

    def save(self, save_path: str | os.PathLike) -> None:
        """Save what was learned and all settings, in one piece: a reader finds the old file or the new one."""
        with written_whole(save_path) as draft:
            super().save(str(draft))

    @staticmethod
    def load(load_path: str | os.PathLike, venv: VecEnv) -> "VecKScore":
        """Load what `save` has saved, and wrap a vector environment; as any pickle, load only what you trust."""
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


class _Normalized:
    """What the buffers share, for observations that are arrays and for those that are dicts.

    `normalizer` and `advantage_normalizer` are names, dicts of a name and options, Normalizers, or None. A Normalizer
    is copied: `rollout_buffer_kwargs` may serve several models, and none of them learns from another. `by` says what
    counts as one series: "episode", the stretch of an episode in a lane of the rollout, or "rollout", all of it.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        device: torch.device | str = "auto",
        gae_lambda: float = 1,
        gamma: float = 0.99,
        n_envs: int = 1,
        normalizer: Named | None = "episode",
        advantage_normalizer: Named | None = None,
        by: Literal["episode", "rollout"] = "episode",
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, device, gae_lambda, gamma, n_envs)
        self.normalizer, self.advantage_normalizer = (
            None if one is None else make_normalizer(deepcopy(one)) for one in (normalizer, advantage_normalizer)
        )
        self.by = checks.choice("by", by, ("episode", "rollout"))
        self.centre, self.scale = 0.0, 1.0  # the units that the critic's outputs are in: value = centre + scale output
        self.fresh = True  # nothing was learned or loaded yet
        self._warned = False

    def reset(self) -> None:
        """Make room for a rollout; what was said of one that was left unfinished does not count for it."""
        self._limits: tuple[np.ndarray, np.ndarray] | None = None  # the last rewards, and which were cut off
        self._told = False  # somebody says where time limits are
        super().reset()

    def values_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the values, in units of the rewards, that outputs of the critic stand for."""
        outputs = np.asarray(outputs, float)
        return symexp(outputs) if isinstance(self.normalizer, Symlog) else self.centre + self.scale * outputs

    def expect(self, rewards: np.ndarray, cut: np.ndarray) -> None:
        """Take note of rewards, (lanes,), to which the learner will add values where episodes were `cut` off."""
        self._limits, self._told = (np.array(rewards, float), np.array(cut, bool)), True

    def add(
        self,
        obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        episode_start: np.ndarray,
        value: torch.Tensor,
        log_prob: torch.Tensor,
    ) -> None:
        """Add one step of every lane, with the value of a state at a time limit in units of the rewards."""
        if self._limits is not None and self.normalizer is not None and self.gamma:
            rewards, cut = self._limits
            output = (reward - rewards) / self.gamma  # what the learner took for a value
            reward = np.where(cut, rewards + self.gamma * self.values_of(output), reward)
        self._limits = None
        super().add(obs, action, reward, episode_start, value, log_prob)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: np.ndarray) -> None:
        """Compute returns in units of the rewards, and from them scores; advantages are scores less outputs.

        With V the critic's outputs: values = centre + scale V; R by GAE from these; Ĝ = normalizer(R), each series by
        itself; A = Ĝ - V, the paper's. The critic learns Ĝ, and its next outputs are in the units of the last series.
        """
        if self.normalizer is None:
            super().compute_returns_and_advantage(last_values, dones)
        else:
            self._ask_for_limits(dones)
            outputs, self.values = self.values, self.values_of(self.values)
            self.advantages = np.zeros_like(self.values)
            last = torch.as_tensor(self.values_of(last_values.cpu().numpy()))
            super().compute_returns_and_advantage(last, dones)
            self.values, returns = outputs, checks.series("returns", self.returns, dims=(2,))  # before any is learned
            scores = np.zeros_like(returns)
            for piece in self._pieces():
                scores[piece] = self._score(returns[piece])
            self.returns = scores.astype(np.float32)
            self.advantages = (scores - outputs).astype(np.float32)
        if self.advantage_normalizer is not None:
            for piece in self._pieces():
                self.advantages[piece] = self.advantage_normalizer(self.advantages[piece])
        self.fresh = False

    def _pieces(self) -> Iterator[tuple]:
        """Yield where each series stands in an array of (steps, lanes): lane after lane, its episodes in order."""
        steps, lanes = self.episode_starts.shape
        if self.by == "rollout":
            yield np.tile(np.arange(steps), lanes), np.repeat(np.arange(lanes), steps)
            return
        for lane in range(lanes):
            cuts = [0, *(np.flatnonzero(self.episode_starts[1:, lane]) + 1).tolist(), steps]
            for start, stop in zip(cuts, cuts[1:], strict=False):
                yield slice(start, stop), lane

    def _score(self, returns: np.ndarray) -> np.ndarray:
        normalizer: Normalizer = self.normalizer
        centre, scale = normalizer.recall(returns) if normalizer.frozen else normalizer.learn(returns)
        if not isinstance(normalizer, Symlog):
            self.centre, self.scale = (float(np.ravel(each)[-1]) for each in (centre, scale))
        return (returns - centre) / scale

    def _ask_for_limits(self, dones: np.ndarray) -> None:
        in_units = (self.centre, self.scale) == (0.0, 1.0) and not isinstance(self.normalizer, Symlog)
        if not (self._told or self._warned or in_units) and (dones.any() or self.episode_starts[1:].any()):
            warnings.warn(
                "An episode ended, and the buffer cannot see whether at a time limit, where the learner adds "
                "an output of the critic to a reward in other units: learn(..., callback=KeepScores()) puts "
                "that right.",
                stacklevel=3,
            )
            self._warned = True

    def state_dict(self) -> dict[str, object]:
        """Return the units of the critic and what was learned, as plain numbers and lists that survive JSON."""
        both = {"normalizer": self.normalizer, "advantage_normalizer": self.advantage_normalizer}
        return {
            "centre": self.centre,
            "scale": self.scale,
            **{name: None if one is None else one.state_dict() for name, one in both.items()},
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what another buffer with the same normalizers has learned; a bad state changes nothing."""
        if not isinstance(state, Mapping) or set(state) != set(self.state_dict()):
            raise ValueError(f"state must have the keys {sorted(self.state_dict())}, got {state!r:.200}")
        centre = checks.number("state['centre']", state["centre"])
        scale = checks.positive("state['scale']", state["scale"])
        for load in (lambda one, own: deepcopy(one).load_state_dict(own), lambda one, own: one.load_state_dict(own)):
            for name in ("normalizer", "advantage_normalizer"):  # all on copies first
                one, own = getattr(self, name), state[name]
                if (one is None) != (own is None):
                    raise ValueError(f"state[{name!r}] must be that of {one!r:.100}, got {own!r:.200}")
                if one is not None:
                    load(one, own)
        self.centre, self.scale, self.fresh = centre, scale, False


class NormalizedRolloutBuffer(_Normalized, RolloutBuffer):
    """Normalize returns and advantages inside PPO and A2C: a `rollout_buffer_class` with its `rollout_buffer_kwargs`.

    The returns of each episode's stretch of a rollout go through `normalizer`, and the critic learns the scores Ĝ:
    `model.policy.predict_values` is in units of scores, and `values_of` says which values these stand for. Advantages
    are A = Ĝ - V(s) and go through `advantage_normalizer`, if there is one; leave PPO's own out then
    (`normalize_advantage=False`). For the five steps of A2C, `by="rollout"` takes all lanes as one series.
    With both None everything is as Stable-Baselines3 has it. Learn with `callback=KeepScores()`.

    >>> from stable_baselines3 import A2C
    >>> model = A2C("MlpPolicy", "CartPole-v1", device="cpu", seed=0, rollout_buffer_class=NormalizedRolloutBuffer,
    ...             rollout_buffer_kwargs={"normalizer": {"name": "running"}, "by": "rollout"})
    >>> model = model.learn(20, callback=KeepScores())
    >>> model.rollout_buffer.normalizer.count
    20
    """


class NormalizedDictRolloutBuffer(_Normalized, DictRolloutBuffer):
    """The same for environments whose observations are dicts.

    >>> space = spaces.Dict({"position": spaces.Box(-1, 1, (2,))})
    >>> NormalizedDictRolloutBuffer(8, space, spaces.Discrete(2), "cpu", normalizer="zscore").normalizer
    ZScore(frozen=False, eps=1e-08)
    """


class KeepScores(BaseCallback):
    """Tell a normalizing buffer what it cannot see, and keep what it learns where `model.save` finds it.

    At a time limit Stable-Baselines3 adds the critic's output for the last state to the reward, before the buffer is
    given it; the output is in units of scores, and without this callback would be taken for a value in those of the
    rewards. What the buffer has learned is kept as `model.rollout_scores`, and a loaded model goes on from it.

    >>> from stable_baselines3 import PPO
    >>> model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32, n_epochs=1, device="cpu", seed=0,
    ...             rollout_buffer_class=NormalizedRolloutBuffer, rollout_buffer_kwargs={"normalizer": "popart"})
    >>> model.learn(32, callback=KeepScores()).rollout_scores == model.rollout_buffer.state_dict()
    True
    """

    def _on_training_start(self) -> None:
        self._buffer = getattr(self.model, "rollout_buffer", None)
        if not isinstance(self._buffer, _Normalized):
            raise ValueError(
                "KeepScores must be used with a rollout_buffer_class that normalizes, got "
                f"{type(self._buffer).__name__}"
            )
        if self._buffer.fresh and hasattr(self.model, "rollout_scores"):
            self._buffer.load_state_dict(self.model.rollout_scores)

    def _on_step(self) -> bool:
        ends = zip(self.locals["dones"], self.locals["infos"], strict=True)
        cut = [
            bool(done) and info.get("TimeLimit.truncated", False) and info.get("terminal_observation") is not None
            for done, info in ends
        ]
        self._buffer.expect(self.locals["rewards"], cut)
        return True

    def _on_rollout_end(self) -> None:
        self.model.rollout_scores = self._buffer.state_dict()
