"""What an action is: heads turn the actor's outputs into actions, and actions into log-probabilities.

A head knows the noise that an action is drawn with, how outputs and noise become an action, which action is the best
guess, and the log-probability of actions under outputs. Nothing else in `kscore.rl` knows what an action looks like.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F

from kscore import checks
from kscore.rl.networks import Forward, Memory, Network


class Head:
    """What every head does; a head of your own extends this and is named "package.module:Class"."""

    space: ClassVar[type[gym.Space]] = gym.Space
    """The kind of action space that it is for."""

    def __init__(self, space: gym.Space, memory: Memory) -> None:
        raise NotImplementedError

    @staticmethod
    def outputs(space: gym.Space) -> int:
        """Return how many numbers the actor gives for an action of this space."""
        raise NotImplementedError

    @staticmethod
    def parameters(space: gym.Space) -> int:
        """Return how many parameters the head learns beside the actor's."""
        return 0

    def noise(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        """Draw what so many actions need of chance, a row for each, in 32 bits."""
        raise NotImplementedError

    def act(self, outputs: np.ndarray, noise: np.ndarray) -> object:
        """Return an action drawn with this noise; `outputs` may be overwritten."""
        raise NotImplementedError

    def greedy(self, outputs: np.ndarray) -> object:
        """Return the action that is most probable."""
        raise NotImplementedError

    def log_probs(self, outputs: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return log π(a_t | s_t), (T,), of actions under outputs (T, outputs)."""
        raise NotImplementedError

    def entropy(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return how wide the policy still spreads its actions, -E[log π(a | s_t)], (T,), in nats."""
        raise NotImplementedError


class Categorical(Head):
    """One of finitely many actions, with probabilities that are the softmax of the outputs."""

    space = gym.spaces.Discrete

    def __init__(self, space: gym.spaces.Discrete, memory: Memory) -> None:
        self.count = int(space.n)

    @staticmethod
    def outputs(space: gym.spaces.Discrete) -> int:
        """Return the number of actions: an output is a logit."""
        return int(space.n)

    def noise(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        """Draw standard Gumbel noise, (steps, actions)."""
        return rng.gumbel(size=(steps, self.count)).astype(np.float32)

    def act(self, outputs: np.ndarray, noise: np.ndarray) -> np.int64:
        """Return the largest of logit plus noise, which is a draw from the softmax."""
        return np.add(outputs, noise, outputs).argmax()

    def greedy(self, outputs: np.ndarray) -> np.int64:
        """Return the action of the largest logit."""
        return outputs.argmax()

    def log_probs(self, outputs: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return the log-softmax at the actions."""
        return -F.nll_loss(outputs.log_softmax(1), actions, reduction="none")

    def entropy(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return -Σ_a π(a) log π(a)."""
        log_probs = outputs.log_softmax(1)
        return -(log_probs.exp() * log_probs).sum(1)


class Gaussian(Head):
    """Real numbers around the outputs, with a deviation for each of them that is learned and the same in every state.

    An action is in units of half the range that the environment allows; what lies outside of it is clipped on its way
    into the environment, and the log-probability is that of the number that was drawn. Squashing it by a tanh would
    keep it inside, but the entropy then has no closed form, and near the ends of the range log-probabilities are the
    difference of large numbers. The paper's release has no continuous policy to follow.
    """

    space = gym.spaces.Box
    START = 0.0
    """The first log-deviation: half the range to either side."""

    def __init__(self, space: gym.spaces.Box, memory: Memory) -> None:
        self.log_std = memory.parameter(self.parameters(space))  # (dims,)
        self.log_std.data.fill_(self.START)
        self._log_std = self.log_std.detach().numpy()  # the same memory: what the optimizer writes is seen at once

    @staticmethod
    def outputs(space: gym.spaces.Box) -> int:
        """Return the number of dimensions: an output is a mean."""
        return math.prod(space.shape)

    @staticmethod
    def parameters(space: gym.spaces.Box) -> int:
        """Return the number of log-deviations."""
        return math.prod(space.shape)

    def noise(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        """Draw normal noise with the deviations as they are now, (steps, dims)."""
        return np.exp(self._log_std) * rng.standard_normal((steps, len(self._log_std)), np.float32)

    def act(self, outputs: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return mean plus noise."""
        return outputs + noise

    def greedy(self, outputs: np.ndarray) -> np.ndarray:
        """Return the mean."""
        return outputs.copy()

    def log_probs(self, outputs: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Return Σ_i -((a_i - μ_i) / σ_i)² / 2 - log σ_i - log √(2π)."""
        surprise = (actions - outputs) / self.log_std.exp()
        constant = math.log(2 * math.pi) / 2
        return -(surprise.square() / 2 + self.log_std + constant).sum(1)

    def entropy(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return Σ_i log σ_i + log √(2πe), the same in every state, of the numbers as they are drawn, not clipped."""
        constant = math.log(2 * math.pi * math.e) / 2
        return (self.log_std + constant).sum().expand(len(outputs))


def head_for(space: gym.Space, name: str | None = None) -> type[Head]:
    """Return the head of this name, "package.module:Class"; without one, the one that suits the action space."""
    if name is None:
        return Categorical if isinstance(space, gym.spaces.Discrete) else Gaussian
    kind = checks.outside("head", name, Head)
    if not isinstance(space, kind.space):
        raise ValueError(
            f"head must be one for the actions of the environment, {space}, got {name!r}, which is for "
            f"{kind.space.__name__}"
        )
    return kind


class Policy:
    """The actor for one observation at a time, in numpy, with its head."""

    def __init__(self, actor: Network, head: Head) -> None:
        self.outputs, self.head = Forward(actor), head

    def sample(self, observation: np.ndarray, masks: Sequence[np.ndarray] | None, noise: np.ndarray) -> object:
        """Draw an action with the given dropout masks, one a hidden layer, and noise."""
        return self.head.act(self.outputs(observation, masks), noise)

    def greedy(self, observation: np.ndarray) -> object:
        """Return the most probable action, nothing dropped."""
        return self.head.greedy(self.outputs(observation))
