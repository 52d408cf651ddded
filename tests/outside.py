"""What somebody might add without touching the package: normalizers, heads, environments, named "outside:..."."""

from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import gymnasium as gym
import numpy as np
import torch

from kscore import checks
from kscore.normalizers import Normalizer, Scaling
from kscore.rl import compiled, train, training
from kscore.rl.policies import Head

# Normalizers


@dataclass
class LevelAndSlope(Normalizer):
    """Hold each return against the prediction of a filter of level and slope: its state is a vector and a matrix."""

    state = {"x": partial(checks.array, shape=(2,)), "P": partial(checks.array, shape=(2, 2))}
    drift: tuple[float, float] = (0.1, 0.01)
    R: float = 2.0
    x: np.ndarray = field(default_factory=lambda: np.zeros(2), init=False)
    P: np.ndarray = field(default_factory=lambda: np.eye(2), init=False)

    def __post_init__(self):
        self.drift = checks.array("drift", self.drift, shape=(2,))

    def learn(self, returns):
        centres, variances = [], []
        for z in returns:
            x, P = self._predicted()
            variance = P[0, 0] + self.R
            gain = P[:, 0] / variance
            centres.append(x[0])
            variances.append(variance)
            self.x, self.P = x + gain * (z - x[0]), P - np.outer(gain, P[0])
        return Scaling(np.array(centres), np.sqrt(variances))

    def recall(self, returns):
        x, P = self._predicted()
        return Scaling(x[0], np.sqrt(P[0, 0] + self.R))

    def _predicted(self):
        step = np.array([[1.0, 1.0], [0.0, 1.0]])
        return step @ self.x, step @ self.P @ step.T + np.diag(self.drift)


@dataclass
class Watching(Normalizer):
    """Multiply by `factor`, and keep what was seen where the tests can look at it."""

    seen: ClassVar[list[tuple[str, list[float]]]] = []
    label: str = ""
    factor: float = 1.0

    def recall(self, returns):
        self.seen.append((self.label, returns.tolist()))
        return Scaling(0.0, 1 / self.factor)


class NoDataclass(Normalizer):
    size: float = 2.0


@dataclass
class Demanding(Normalizer):
    size: float

    def recall(self, returns):
        return Scaling(0.0, self.size)


# Value scales


@dataclass
class Span(Normalizer):
    """The middle and half the width of everything that was seen."""

    name = "span"
    state = {"low": checks.number, "high": checks.number}
    low: float = field(default=-1.0, init=False)
    high: float = field(default=1.0, init=False)

    def learn(self, returns):
        self.low, self.high = min(self.low, returns.min()), max(self.high, returns.max())
        return self.recall(returns)

    def recall(self, returns):
        return Scaling((self.low + self.high) / 2, (self.high - self.low) / 2)


@dataclass
class ByTheStep(Normalizer):
    """A centre, or a scale, for every step; on demand only once something has been learned."""

    what: str = "centre"
    late: bool = False
    learned: bool = field(default=False, init=False)

    def learn(self, returns):
        self.learned = True
        return self.recall(returns)

    def recall(self, returns):
        if self.late and not self.learned:
            return Scaling(0.0, 1.0)
        each = np.ones_like(returns)
        return Scaling(each, 1.0) if self.what == "centre" else Scaling(0.0, each)


@dataclass
class Fixed(Normalizer):
    """The centre and scale that were asked for, whatever they are."""

    centre: float = 0.0
    width: float = 1.0

    def recall(self, returns):
        return Scaling(self.centre, self.width)


# Heads


class Laplace(Head):
    """Real numbers with a Laplace distribution around the outputs, its width learned."""

    space = gym.spaces.Box

    def __init__(self, space, memory):
        self.log_width = memory.parameter(self.parameters(space))
        self._log_width = self.log_width.detach().numpy()

    @staticmethod
    def outputs(space):
        return space.shape[0]

    @staticmethod
    def parameters(space):
        return space.shape[0]

    def noise(self, rng, steps):
        return rng.laplace(size=(steps, len(self._log_width))).astype(np.float32)

    def act(self, outputs, noise):
        return outputs + np.exp(self._log_width) * noise

    def greedy(self, outputs):
        return outputs.copy()

    def log_probs(self, outputs, actions):
        distance = (actions - outputs).abs() / self.log_width.exp()
        return -(distance + self.log_width + np.log(2)).sum(1)


class Reluctant(Head):
    """One of finitely many actions: the first with a probability that is learned, all others alike."""

    def __init__(self, space, memory):
        self.count = int(space.n)

    @staticmethod
    def outputs(space):
        return 1

    def noise(self, rng, steps):
        return rng.uniform(size=(steps, 2)).astype(np.float32)

    def act(self, outputs, noise):
        first = noise[0] < 1 / (1 + np.exp(-outputs[0]))
        return 0 if first else 1 + int(noise[1] * (self.count - 1))

    def greedy(self, outputs):
        return 0 if outputs[0] > 0 else 1

    def log_probs(self, outputs, actions):
        first = torch.nn.functional.logsigmoid(outputs[:, 0])
        other = torch.nn.functional.logsigmoid(-outputs[:, 0]) - np.log(self.count - 1)
        return torch.where(actions == 0, first, other)


# Environments


class Line(gym.Env):
    """Walk for ten steps; every step pays, one with the second action pays double."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Box(0, 1, (2,))

    def __init__(self, pay=1.0):
        self.pay = pay

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._seen(), {}

    def step(self, action):
        self.at += 1
        return self._seen(), self.pay * (1 + int(action)), self.at == 10, False, {}

    def _seen(self):
        return np.array([1.0, self.at / 10], np.float32)


class Dial(Line):
    """Any range of actions; what arrives is kept, and must be in the range."""

    def __init__(self, low, high, dtype=np.float32):
        super().__init__()
        self.action_space = gym.spaces.Box(np.array(low, dtype), np.array(high, dtype), dtype=dtype)
        self.received = []

    def step(self, action):
        assert self.action_space.contains(action), action
        self.received.append(action)
        return super().step(action=0)


INFINITY = float("inf")
gym.register("Line-v0", Line, max_episode_steps=20)
gym.register("Dear-v0", Line, max_episode_steps=20, kwargs={"pay": 1000.0})
gym.register("Uneven-v0", Dial, max_episode_steps=20, kwargs={"low": [-1, 0], "high": [3, 10]})
gym.register("Open-v0", Dial, max_episode_steps=20, kwargs={"low": 2 * [-INFINITY], "high": 2 * [INFINITY]})
gym.register("HalfOpen-v0", Dial, max_episode_steps=20, kwargs={"low": [-1, 0], "high": [3, INFINITY]})
gym.register("Vast-v0", Dial, max_episode_steps=20, kwargs={"low": [-3e38, -1], "high": [3e38, 1]})

# Training elsewhere


def trained_early(config, seed):
    """Train by the compiled loop from the first episode on; say why it was not used, if it was not."""
    compiled.expect(compiled.ENOUGH * compiled.EARLY)
    return train(config, seed), training.why_plain(config)


class Here(Executor):
    """Trains in this process, as soon as it is asked to."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future
