"""REINFORCE, actor-critic, GAE and PPO: one or more episodes in, one update of the networks.

Each algorithm is one function that reads as the textbook has it. In all of them the lines ::

    batch = batch.rewarded(normalize.rewards)
    targets = normalize.returns(batch.returns(config.gamma), batch.lengths)
    advantages = normalize.advantages(..., batch.lengths)

are where normalizers act, episode by episode; `normalization` says which stands at which of these doors. Dropout,
as released: the actor's log-probabilities are those of the forward passes that chose the actions (the episodes' own
masks), while PPO only takes its old log-probabilities from there and draws fresh masks for every epoch; the critic's
masks are always fresh. Labels such as R2 name facts of the release; chapter 00 lists them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.adam import adam

from kscore import normalizers
from kscore.normalizers import discounted_returns
from kscore.rl.config import RunConfig
from kscore.rl.environments import Diverged, Episode
from kscore.rl.networks import Dropout, Masks, Memory, Network
from kscore.rl.policies import Head
from kscore.rl.units import Logarithms, Units

Door = Callable[[np.ndarray, list[int]], np.ndarray]
"""What is done to a signal, (T,), of episodes of these lengths, one after the other."""


def gae_advantages(rewards: list[float], values: np.ndarray, gamma: float, lam: float) -> np.ndarray:
    """Return A_t = δ_t + γ λ A_{t+1} with δ_t = r_t + γ V_{t+1} - V_t, (T,); the value after the last step is 0."""
    deltas = np.array(rewards) - values
    deltas[:-1] += gamma * values[1:]
    return discounted_returns(deltas.tolist(), gamma * lam)


class Batch(NamedTuple):
    """The episodes of one update, one after the other; T steps in all."""

    observations: torch.Tensor  # (T, observation size)
    actions: torch.Tensor  # (T,) or (T, dims)
    rewards: list[list[float]]  # of each episode
    masks: Masks | None  # (T, width) a hidden layer

    @classmethod
    def of(cls, episodes: Sequence[Episode], reward_scale: float = 1.0) -> "Batch":
        """Put episodes one after the other; every reward is told in units of its own, if a scale says so."""
        observations, actions, rewards, masks = zip(*episodes, strict=True)
        told = [[reward_scale * reward for reward in own] for own in rewards] if reward_scale != 1 else list(rewards)
        joined = None if masks[0] is None else [_joined(layer) for layer in zip(*masks, strict=True)]
        return cls(torch.from_numpy(_joined(observations)), torch.from_numpy(_joined(actions)), told, joined)

    def rewarded(self, door: "Door") -> "Batch":
        """Return the same episodes with their rewards as a door lets them through."""
        rewards = door(_joined([np.array(own) for own in self.rewards]), self.lengths)
        return self._replace(rewards=[own.tolist() for own in _split(rewards, self.lengths)])

    @property
    def lengths(self) -> list[int]:
        """The number of steps of each episode."""
        return [len(rewards) for rewards in self.rewards]

    def returns(self, gamma: float) -> np.ndarray:
        """Return the discounted returns of every episode, (T,)."""
        return _joined([discounted_returns(rewards, gamma) for rewards in self.rewards])

    def gae_advantages(self, values: np.ndarray, gamma: float, lam: float) -> np.ndarray:
        """Return the generalized advantage estimates of every episode, (T,)."""
        pairs = zip(self.rewards, _split(values, self.lengths), strict=True)
        return _joined([gae_advantages(rewards, own, gamma, lam) for rewards, own in pairs])


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _split(signal: np.ndarray, lengths: list[int]) -> list[np.ndarray]:
    return [signal] if len(lengths) == 1 else np.split(signal, np.cumsum(lengths)[:-1])


class Normalization(NamedTuple):
    """The doors: what is done to the rewards, to the returns, and to the advantages."""

    rewards: Door
    returns: Door
    advantages: Door


def normalization(config: RunConfig) -> Normalization:
    """Put new normalizers at the doors of rewards, returns and advantages, each with a state of its own.

    A normalizer of the returns makes the critic learn scores; with one at the door of the advantages only, it learns
    raw returns (R8). REINFORCE has no critic and its advantages are its returns, so that there the two doors stand
    behind one another. A per-episode Z-Score of the advantages may come last (R2).
    """
    at_returns, at_advantages = [config.normalizer], [config.advantage_normalizer]
    if config.signal == "advantages":
        at_returns, at_advantages = [], [config.normalizer]
    if config.normalize_advantages:
        at_advantages.append({"name": "zscore"})
    return Normalization(_door([config.reward_normalizer]), _door(at_returns), _door(at_advantages))


def _door(settings: list[dict | None]) -> Door:
    """Return what these normalizers, one after the other, do to the episodes of a signal."""
    chain = [normalizers.make(**options) for options in settings if options is not None]

    def scored(signal: np.ndarray) -> np.ndarray:
        try:
            for normalizer in chain:
                signal = normalizer(signal)
        except ValueError as error:  # a signal that is not finite is the end of the run
            raise Diverged(f"the normalizer refused its signal: {error}") from error
        return signal

    return lambda signal, lengths: _joined([scored(own) for own in _split(signal, lengths)])


class Adam:
    """Torch's fused Adam with its default settings, called as a function on the one vector of parameters.

    The class `torch.optim.Adam` takes the same steps, but its bookkeeping takes several times as long as the step.
    """

    def __init__(self, memory: Memory, learning_rate: float) -> None:
        moments = torch.zeros((2, *memory.parameters.shape), dtype=memory.parameters.dtype)
        steps = torch.zeros(())
        state = [memory.parameters], [memory.gradient], [moments[0]], [moments[1]], [], [steps]
        self.step = partial(
            adam,
            *state,
            fused=True,
            lr=learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )


@dataclass
class Agent:
    """The networks with their parameters, the source of their dropout masks, and their optimizer."""

    actor: Network
    head: Head
    critic: Network | None
    memory: Memory
    dropout: Dropout
    optimizer: Adam
    units: Units | Logarithms | None = None  # of the critic's outputs; None: those of its targets

    def log_probs(self, batch: Batch, masks: Masks | None) -> torch.Tensor:
        """Return log π(a_t | s_t) of the actions taken, (T,)."""
        return self.head.log_probs(self.actor(batch.observations, masks), batch.actions)

    def values(self, batch: Batch) -> torch.Tensor:
        """Return V(s_t) with freshly drawn dropout, (T,), in the units of its targets."""
        outputs = self.critic(batch.observations, self.dropout.draw(len(batch.actions))).squeeze(1)
        return outputs if self.units is None else self.units.values(outputs)

    def value_loss(
        self, values: torch.Tensor, targets: np.ndarray | torch.Tensor, config: RunConfig, episodes: int = 1
    ) -> torch.Tensor:
        """Return the smooth-L1 distance of the values from their targets, in the critic's own units."""
        if self.units is not None:
            values, targets = self.units.outputs(values), self.units.outputs(targets)
        return value_loss(values, targets, config, episodes)

    def advantages(self, raw: np.ndarray) -> np.ndarray:
        """Return differences between targets and values, (T,), in the units that the critic learns in."""
        return raw if self.units is None else self.units.differences(raw)

    def rescale(self, targets: np.ndarray) -> None:
        """Let the critic's units follow its targets, if it has units of its own; no value changes."""
        if self.units is not None:
            self.units.learn(targets, self.critic.last)

    def descend(self, loss: torch.Tensor) -> None:
        """Take one step down the gradient of the loss; raise `Diverged` if it or a weight is not finite."""
        if not math.isfinite(loss.item()):
            raise Diverged("the loss is not finite")
        self.memory.gradient.zero_()
        loss.backward()
        self.optimizer.step()
        if not np.isfinite(self.memory.parameters.numpy()).all():
            raise Diverged("a weight is not finite")


def reinforce(agent: Agent, batch: Batch, normalize: Normalization, config: RunConfig) -> None:
    """Update by -Σ log π(a_t | s_t) Ĝ_t: a return is its own advantage, there is no critic.

    The released actor-critic on CartPole is this, with a critic trained aside that the policy does not use (R5).
    """
    batch = batch.rewarded(normalize.rewards)
    targets = normalize.returns(batch.returns(config.gamma), batch.lengths)
    advantages = normalize.advantages(targets, batch.lengths)
    agent.descend(policy_loss(agent.log_probs(batch, batch.masks), advantages, config, len(batch.rewards)))


def actor_critic(agent: Agent, batch: Batch, normalize: Normalization, config: RunConfig) -> None:
    """Update by A_t = Ĝ_t - V(s_t), and the critic towards Ĝ."""
    batch = batch.rewarded(normalize.rewards)
    targets = normalize.returns(batch.returns(config.gamma), batch.lengths)
    agent.rescale(targets)
    values = agent.values(batch)
    advantages = normalize.advantages(agent.advantages(targets - values.detach().numpy()), batch.lengths)
    agent.descend(
        policy_loss(agent.log_probs(batch, batch.masks), advantages, config, len(batch.rewards))
        + agent.value_loss(values, targets, config, len(batch.rewards))
    )


def gae(agent: Agent, batch: Batch, normalize: Normalization, config: RunConfig) -> None:
    """Update by generalized advantage estimates of the raw rewards, and the critic towards Ĝ (R8)."""
    batch = batch.rewarded(normalize.rewards)
    targets = normalize.returns(batch.returns(config.gamma), batch.lengths)
    agent.rescale(targets)
    values = agent.values(batch)
    estimates = batch.gae_advantages(values.detach().numpy(), config.gamma, config.lam)
    advantages = normalize.advantages(agent.advantages(estimates), batch.lengths)
    agent.descend(
        policy_loss(agent.log_probs(batch, batch.masks), advantages, config, len(batch.rewards))
        + agent.value_loss(values, targets, config, len(batch.rewards))
    )


def ppo(agent: Agent, batch: Batch, normalize: Normalization, config: RunConfig) -> None:
    """Update several times on the same episodes by A_t = Ĝ_t - V(s_t), with clipped probability ratios."""
    batch = batch.rewarded(normalize.rewards)
    targets = normalize.returns(batch.returns(config.gamma), batch.lengths)
    agent.rescale(targets)
    with torch.no_grad():
        values = agent.values(batch)
        old_log_probs = agent.log_probs(batch, batch.masks)
    advantages = normalize.advantages(agent.advantages(targets - values.numpy()), batch.lengths)
    advantages, targets = _tensor(advantages, values), _tensor(targets, values)  # once, not in every epoch
    bounds = clip_bounds(advantages, config.clip)
    for _ in range(config.epochs):
        log_probs = agent.log_probs(batch, agent.dropout.draw(len(batch.actions)))
        agent.descend(
            clipped_loss(log_probs, old_log_probs, advantages, bounds, config, len(batch.rewards))
            + agent.value_loss(agent.values(batch), targets, config, len(batch.rewards))
        )


ALGORITHMS = {"reinforce": reinforce, "actor_critic": actor_critic, "gae": gae, "ppo": ppo}


def policy_loss(log_probs: torch.Tensor, advantages: np.ndarray, config: RunConfig, episodes: int = 1) -> torch.Tensor:
    """Return -Σ_t log π(a_t | s_t) A_t of an episode, averaged over episodes, or the mean over all timesteps."""
    return -_weighted(log_probs, _tensor(advantages, log_probs), config.policy_reduction, episodes)


def clip_bounds(advantages: torch.Tensor, clip: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the bounds that make min(ρ A, clip(ρ, 1 - c, 1 + c) A) a mere clamp of ρ, (T,) each.

    With A > 0 only the upper bound can lower the product, with A < 0 only the lower one.
    """
    blamed = advantages < 0
    return torch.where(blamed, 1 - clip, 0.0), torch.where(blamed, torch.inf, 1 + clip)


def clipped_loss(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    advantages: torch.Tensor,
    bounds: tuple[torch.Tensor, torch.Tensor],
    config: RunConfig,
    episodes: int = 1,
) -> torch.Tensor:
    """Return -Σ_t min(ρ_t A_t, clip(ρ_t, 1 - c, 1 + c) A_t), ρ_t = π(a_t | s_t) / π_old(a_t | s_t), or its mean."""
    ratios = (log_probs - old_log_probs).exp()
    return -_weighted(ratios.clamp(*bounds), advantages, config.policy_reduction, episodes)


def value_loss(
    values: torch.Tensor, targets: np.ndarray | torch.Tensor, config: RunConfig, episodes: int = 1
) -> torch.Tensor:
    """Return the smooth-L1 distance of the values from their targets, summed or averaged as the policy's loss is."""
    loss = F.smooth_l1_loss(values, _tensor(targets, values), reduction=config.value_reduction)
    return loss / episodes if config.value_reduction == "sum" else loss


def _weighted(terms: torch.Tensor, weights: torch.Tensor, reduction: str, episodes: int) -> torch.Tensor:
    return terms @ weights / (episodes if reduction == "sum" else len(terms))


def _tensor(values: np.ndarray | torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(values, dtype=like.dtype)
