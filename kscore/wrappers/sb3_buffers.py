"""Buffers for Stable-Baselines3 that normalize returns and advantages inside PPO and A2C."""

import math
import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kscore import checks
from kscore.normalizers import Symlog
from kscore.normalizers.base import symexp
from kscore.wrappers.scaling import Named, make_normalizer
from kscore.wrappers.states import VERSION, checked_state, described

with checks.extra("kscore.wrappers.sb3", "sb3"):
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer
    from stable_baselines3.common.callbacks import BaseCallback


if TYPE_CHECKING:
    _Base = RolloutBuffer
else:
    _Base = object  # what it extends is one buffer or the other


class NormalizedBuffer(_Base):
    """What the buffers share, for observations that are arrays and for those that are dicts.

    `normalizer` and `advantage_normalizer` are names, dicts of a name and options, Normalizers, or None. A Normalizer
    is copied: `rollout_buffer_kwargs` may serve several models, and none of them learns from another. `by` says what
    counts as one series: "episode", the stretch of an episode in a lane of the rollout, or "rollout", all of it.
    `state` is what an earlier buffer has learned, its `state_dict`; `KeepScores` puts it among a model's
    `rollout_buffer_kwargs`, so that a model that is loaded goes on with it.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: torch.device | str = "auto",
        gae_lambda: float = 1,
        gamma: float = 0.99,
        n_envs: int = 1,
        normalizer: Named | None = "episode",
        advantage_normalizer: Named | None = None,
        by: Literal["episode", "rollout"] = "episode",
        state: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, device, gae_lambda, gamma, n_envs)
        self.normalizer, self.advantage_normalizer = (
            None if one is None else make_normalizer(one) for one in (normalizer, advantage_normalizer)
        )
        self.by = checks.choice("by", by, ("episode", "rollout"))
        self.centre, self.scale = 0.0, 1.0  # the units that the critic's outputs are in: value = centre + scale output
        self.count = 0  # series that were scored
        self._warned = False
        if state is not None:
            self.load_state_dict(state)

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
        self._ask_for_keep_scores()
        if self.normalizer is None:
            super().compute_returns_and_advantage(last_values, dones)
        else:
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

    def _pieces(self) -> Iterator[tuple[Any, Any]]:
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
        normalizer = self.normalizer
        assert normalizer is not None  # for type checkers: nobody asks otherwise
        centre, scale = normalizer.recall(returns) if normalizer.frozen else normalizer.learn(returns)
        self.count += 1
        if not isinstance(normalizer, Symlog):
            self.centre, self.scale = (float(np.ravel(each)[-1]) for each in (centre, scale))
        return (returns - centre) / scale

    def _ask_for_keep_scores(self) -> None:
        """Warn, once, where something is learned that nobody keeps."""
        learns = self.normalizer is not None or self.advantage_normalizer is not None
        if learns and not (self._told or self._warned):
            warnings.warn(
                "The buffer learns without callback=KeepScores(): what its critic's outputs stand for is lost when "
                "the model is saved, and where an episode ends at a time limit the learner adds such an output to a "
                "reward in other units.",
                stacklevel=3,
            )
            self._warned = True

    def report(self) -> dict[str, float]:
        """Return what is worth watching: the units of the critic, the gain, and how many series were scored."""
        gain = math.nan if self.normalizer is None else self.normalizer.gain
        return {"scale": self.scale, "centre": self.centre, "gain": gain, "count": self.count}

    def state_dict(self) -> dict[str, object]:
        """Return the units of the critic and what was learned, as plain numbers and lists that survive JSON."""
        both = {"normalizer": self.normalizer, "advantage_normalizer": self.advantage_normalizer}
        made = {name: None if one is None else described(one) for name, one in both.items()}
        return {
            "version": VERSION,
            "settings": made | {"by": self.by},
            "centre": self.centre,
            "scale": self.scale,
            "count": self.count,
            **{name: None if one is None else one.state_dict() for name, one in both.items()},
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what another buffer with the same settings has learned; a bad state changes nothing."""
        state = checked_state(state, self.state_dict())
        count = checks.whole("state['count']", state["count"], low=0)
        centre = checks.number("state['centre']", state["centre"])
        scale = checks.positive("state['scale']", state["scale"])
        new = {name: deepcopy(getattr(self, name)) for name in ("normalizer", "advantage_normalizer")}
        for name, one in new.items():
            if (one is None) != (state[name] is None):
                raise ValueError(f"state[{name!r}] must be that of {one!r:.100}, got {state[name]!r:.200}")
            if one is not None:
                one.load_state_dict(state[name])
        self.normalizer, self.advantage_normalizer = new.values()
        self.centre, self.scale, self.count = centre, scale, count


class NormalizedRolloutBuffer(NormalizedBuffer, RolloutBuffer):
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


class NormalizedDictRolloutBuffer(NormalizedBuffer, DictRolloutBuffer):  # type: ignore[misc]
    """The same for environments whose observations are dicts.

    >>> space = spaces.Dict({"position": spaces.Box(-1, 1, (2,))})
    >>> NormalizedDictRolloutBuffer(8, space, spaces.Discrete(2), "cpu", normalizer="zscore").normalizer
    ZScore(frozen=False, eps=1e-08)
    """


class KeepScores(BaseCallback):
    """Tell a normalizing buffer what it cannot see, and keep what it learns where `model.save` finds it.

    At a time limit Stable-Baselines3 adds the critic's output for the last state to the reward, before the buffer is
    given it; the output is in units of scores, and without this callback would be taken for a value in those of the
    rewards. What the buffer has learned is kept as `model.rollout_scores`, and among the arguments that a buffer is
    made with, so that a model that is loaded goes on from it, with this callback or without.

    >>> from stable_baselines3 import PPO
    >>> model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32, n_epochs=1, device="cpu", seed=0,
    ...             rollout_buffer_class=NormalizedRolloutBuffer, rollout_buffer_kwargs={"normalizer": "popart"})
    >>> model.learn(32, callback=KeepScores()).rollout_scores == model.rollout_buffer.state_dict()
    True
    """

    def _on_training_start(self) -> None:
        buffer = getattr(self.model, "rollout_buffer", None)
        if not isinstance(buffer, NormalizedBuffer):
            raise ValueError(
                f"KeepScores must be used with a rollout_buffer_class that normalizes, got {type(buffer).__name__}"
            )
        self._buffer = buffer

    def _on_step(self) -> bool:
        ends = zip(self.locals["dones"], self.locals["infos"], strict=True)
        cut = [
            bool(done) and info.get("TimeLimit.truncated", False) and info.get("terminal_observation") is not None
            for done, info in ends
        ]
        self._buffer.expect(self.locals["rewards"], np.array(cut, bool))
        return True

    def _on_rollout_end(self) -> None:
        model: Any = self.model
        model.rollout_scores = self._buffer.state_dict()
        made_with = model.rollout_buffer_kwargs  # another model may have been given the same dict
        model.rollout_buffer_kwargs = {**made_with, "state": model.rollout_scores}
