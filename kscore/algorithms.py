"""REINFORCE, actor-critic, GAE and PPO: one episode in, one update of the networks.

Each algorithm is one function that reads as the textbook has it. In all of them the two lines

    targets = normalize.returns(returns)
    advantages = normalize.advantages(...)

are where a normalizer under study acts; `normalization` says which of the two it is. Dropout, as released: the actor's
log-probabilities are those of the forward passes that chose the actions (the episode's own masks), while PPO only takes
its old log-probabilities from there and draws fresh masks for every epoch; the critic's masks are always fresh.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.adam import adam

from kscore import normalizers
from kscore.networks import Dropout, Masks, Memory, Network
from kscore.rollouts import Episode

Normalize = Callable[[np.ndarray], np.ndarray]


class Diverged(ArithmeticError):
    """Something that must be finite no longer is; the message says what."""


class Settings(Protocol):
    """What an algorithm reads of a run's configuration (see `RunConfig`)."""

    gamma: float
    lam: float
    epochs: int
    clip: float
    policy_reduction: str
    value_reduction: str


def discounted_returns(rewards: list[float], gamma: float) -> np.ndarray:
    """Return G_t = r_t + γ G_{t+1} for every step, (T,), with nothing after the last reward."""
    G = 0.0
    backwards = [G := reward + gamma * G for reward in reversed(rewards)]
    return np.array(backwards[::-1])


def gae_advantages(rewards: list[float], values: np.ndarray, gamma: float, lam: float) -> np.ndarray:
    """Return A_t = δ_t + γ λ A_{t+1} with δ_t = r_t + γ V_{t+1} - V_t, (T,); the value after the last step is 0."""
    deltas = np.array(rewards) - values
    deltas[:-1] += gamma * values[1:]
    return discounted_returns(deltas.tolist(), gamma * lam)


class Normalization(NamedTuple):
    """What is done to the returns, and what is done to the advantages."""

    returns: Normalize
    advantages: Normalize


def normalization(normalizer: Normalize, signal: str, normalize_advantages: bool) -> Normalization:
    """Put the normalizer where `signal` says, and z-score the advantages afterwards if asked to (R2).

    With "returns" the critic learns the scores; with "advantages" it learns the raw returns (R8). REINFORCE has no
    critic and its advantages are its returns, so that there the two are the same.
    """
    normalizer = _refusing(normalizer)
    standardize = _refusing(normalizers.make("zscore")) if normalize_advantages else _unchanged
    if signal == "returns":
        return Normalization(returns=normalizer, advantages=standardize)
    return Normalization(returns=_unchanged, advantages=lambda advantages: standardize(normalizer(advantages)))


def _unchanged(signal: np.ndarray) -> np.ndarray:
    return signal


def _refusing(normalizer: Normalize) -> Normalize:
    """Turn a normalizer's refusal of a signal that is not finite into the end of the run."""
    def normalize(signal: np.ndarray) -> np.ndarray:
        try:
            return normalizer(signal)
        except ValueError as error:
            raise Diverged(f"the normalizer refused its signal: {error}") from error
    return normalize


class Adam:
    """Torch's fused Adam with its default settings, called as a function on the one vector of parameters.

    The class `torch.optim.Adam` takes the same steps, but its bookkeeping takes several times as long as the step.
    """

    def __init__(self, memory: Memory, learning_rate: float) -> None:
        moments = torch.zeros((2, *memory.parameters.shape), dtype=memory.parameters.dtype)
        steps = torch.zeros(())
        state = [memory.parameters], [memory.gradient], [moments[0]], [moments[1]], [], [steps]
        self.step = partial(adam, *state, fused=True, lr=learning_rate, beta1=0.9, beta2=0.999, eps=1e-8,
                            weight_decay=0.0, amsgrad=False, maximize=False)


@dataclass
class Agent:
    """The networks with their parameters, the source of their dropout masks, and their optimizer."""

    actor: Network
    critic: Network | None
    memory: Memory
    dropout: Dropout
    optimizer: Adam

    def log_probs(self, episode: Episode, masks: Masks | None) -> torch.Tensor:
        """Return log π(a_t | s_t) of the actions taken, (T,)."""
        log_policy = self.actor(torch.from_numpy(episode.observations), masks).log_softmax(1)  # (T, actions)
        return -F.nll_loss(log_policy, torch.from_numpy(episode.actions), reduction="none")

    def values(self, episode: Episode) -> torch.Tensor:
        """Return V(s_t) with freshly drawn dropout, (T,)."""
        masks = self.dropout.draw(len(episode.actions))
        return self.critic(torch.from_numpy(episode.observations), masks).squeeze(1)

    def descend(self, loss: torch.Tensor) -> None:
        """Take one step down the gradient of the loss; raise `Diverged` if it or a weight is not finite."""
        if not math.isfinite(loss.item()):
            raise Diverged("the loss is not finite")
        self.memory.gradient.zero_()
        loss.backward()
        self.optimizer.step()
        if not np.isfinite(self.memory.parameters.numpy()).all():
            raise Diverged("a weight is not finite")


def reinforce(agent: Agent, episode: Episode, normalize: Normalization, config: Settings) -> None:
    """Update by -Σ log π(a_t | s_t) Ĝ_t: a return is its own advantage, there is no critic.

    The released actor-critic on CartPole is this, with a critic trained aside that the policy does not use (R5).
    """
    returns = discounted_returns(episode.rewards, config.gamma)
    targets = normalize.returns(returns)
    advantages = normalize.advantages(targets)
    agent.descend(policy_loss(agent.log_probs(episode, episode.masks), advantages, config))


def actor_critic(agent: Agent, episode: Episode, normalize: Normalization, config: Settings) -> None:
    """Update by A_t = Ĝ_t - V(s_t), and the critic towards Ĝ."""
    values = agent.values(episode)
    returns = discounted_returns(episode.rewards, config.gamma)
    targets = normalize.returns(returns)
    advantages = normalize.advantages(targets - values.detach().numpy())
    agent.descend(policy_loss(agent.log_probs(episode, episode.masks), advantages, config)
                  + value_loss(values, targets, config))


def gae(agent: Agent, episode: Episode, normalize: Normalization, config: Settings) -> None:
    """Update by generalized advantage estimates of the raw rewards, and the critic towards Ĝ (R8)."""
    values = agent.values(episode)
    returns = discounted_returns(episode.rewards, config.gamma)
    estimates = gae_advantages(episode.rewards, values.detach().numpy(), config.gamma, config.lam)
    targets = normalize.returns(returns)
    advantages = normalize.advantages(estimates)
    agent.descend(policy_loss(agent.log_probs(episode, episode.masks), advantages, config)
                  + value_loss(values, targets, config))


def ppo(agent: Agent, episode: Episode, normalize: Normalization, config: Settings) -> None:
    """Update several times on the same episode by A_t = Ĝ_t - V(s_t), with clipped probability ratios."""
    with torch.no_grad():
        values = agent.values(episode)
        old_log_probs = agent.log_probs(episode, episode.masks)
    returns = discounted_returns(episode.rewards, config.gamma)
    targets = normalize.returns(returns)
    advantages = normalize.advantages(targets - values.numpy())
    advantages, targets = _tensor(advantages, values), _tensor(targets, values)  # once, not in every epoch
    bounds = clip_bounds(advantages, config.clip)
    for _ in range(config.epochs):
        log_probs = agent.log_probs(episode, agent.dropout.draw(len(episode.actions)))
        agent.descend(clipped_loss(log_probs, old_log_probs, advantages, bounds, config)
                      + value_loss(agent.values(episode), targets, config))


ALGORITHMS = {"reinforce": reinforce, "actor_critic": actor_critic, "gae": gae, "ppo": ppo}


def policy_loss(log_probs: torch.Tensor, advantages: np.ndarray, config: Settings) -> torch.Tensor:
    """Return -Σ_t log π(a_t | s_t) A_t, or its mean over the timesteps."""
    return -_weighted(log_probs, _tensor(advantages, log_probs), config.policy_reduction)


def clip_bounds(advantages: torch.Tensor, clip: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the bounds that make min(ρ A, clip(ρ, 1 - c, 1 + c) A) a mere clamp of ρ, (T,) each.

    With A > 0 only the upper bound can lower the product, with A < 0 only the lower one.
    """
    blamed = advantages < 0
    return torch.where(blamed, 1 - clip, 0.0), torch.where(blamed, torch.inf, 1 + clip)


def clipped_loss(log_probs: torch.Tensor, old_log_probs: torch.Tensor, advantages: torch.Tensor,
                 bounds: tuple[torch.Tensor, torch.Tensor], config: Settings) -> torch.Tensor:
    """Return -Σ_t min(ρ_t A_t, clip(ρ_t, 1 - c, 1 + c) A_t) with ρ_t = π(a_t | s_t) / π_old(a_t | s_t), or its mean."""
    ratios = (log_probs - old_log_probs).exp()
    return -_weighted(ratios.clamp(*bounds), advantages, config.policy_reduction)


def value_loss(values: torch.Tensor, targets: np.ndarray | torch.Tensor, config: Settings) -> torch.Tensor:
    """Return the smooth-L1 distance of the values from their targets."""
    return F.smooth_l1_loss(values, _tensor(targets, values), reduction=config.value_reduction)


def _weighted(terms: torch.Tensor, weights: torch.Tensor, reduction: str) -> torch.Tensor:
    total = terms @ weights
    return total if reduction == "sum" else total / len(terms)


def _tensor(values: np.ndarray | torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(values, dtype=like.dtype)
