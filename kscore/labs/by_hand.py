"""REINFORCE and actor-critic on CartPole by hand: numpy alone, and every gradient written out (chapter 04).

    >>> learner = Learner(seed=4, normalizer={"name": "kscore"})
    >>> lengths = train(learner, max_episodes=300)

The chapter writes Algorithm 1 with these functions in the open. The experiments are trained by `kscore.rl`, which takes
the same steps with torch; this is here to be read, and to run where torch cannot: `make play` puts it into a page.
"""

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from kscore import checks, normalizers
from kscore.normalizers import Normalizer
from kscore.rl.cartpoles import FARTHEST, FORCE, GRAVITY, HALF_POLE, LIMIT, POLE_MASS, STEEPEST, TIME_STEP, TOTAL_MASS

HIDDEN = 128  # units in the one hidden layer of a network
THRESHOLD, WINDOW = 475.0, 25  # a run has solved CartPole when its last 25 episodes have this mean length

Weights = list[np.ndarray]
"""A network: weights (inputs, HIDDEN) and biases (HIDDEN,), then weights (HIDDEN, outputs) and biases (outputs,)."""


class Episode(NamedTuple):
    """What a policy saw and did, N steps; every step pays 1."""

    states: np.ndarray  # (N, 4): position, velocity, angle, angular velocity
    actions: np.ndarray  # (N,): 0 to the left, 1 to the right


def network(outputs: int, rng: np.random.Generator) -> Weights:
    """Return a network for CartPole's four numbers: Xavier-normal weights, zero biases."""
    layers = [(4, HIDDEN), (HIDDEN, outputs)]
    return [array for n, m in layers for array in (rng.normal(0, math.sqrt(2 / (n + m)), (n, m)), np.zeros(m))]


def forward(weights: Weights, x: np.ndarray) -> np.ndarray:
    """Return the outputs (..., outputs) for inputs (..., 4)."""
    W1, b1, W2, b2 = weights
    return np.maximum(x @ W1 + b1, 0) @ W2 + b2


def backward(weights: Weights, x: np.ndarray, slopes: np.ndarray) -> Weights:
    """Return the gradient of a loss by the weights, from its slopes by the outputs, (N, outputs)."""
    W1, b1, W2, _ = weights
    hidden = np.maximum(x @ W1 + b1, 0)
    below = (slopes @ W2.T) * (hidden > 0)
    return [x.T @ below, below.sum(axis=0), hidden.T @ slopes, slopes.sum(axis=0)]


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the softmax of each row, (N, actions)."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def push(state: list[float], action: int) -> tuple[list[float], bool]:
    """Move the cart by one step, as gymnasium's CartPole-v1 does; say whether cart or pole is now out of bounds."""
    place, velocity, angle, turning = state
    cos, sin = math.cos(angle), math.sin(angle)
    pushed = (FORCE * (2 * action - 1) + POLE_MASS * HALF_POLE * turning**2 * sin) / TOTAL_MASS
    twist = (GRAVITY * sin - cos * pushed) / (HALF_POLE * (4 / 3 - POLE_MASS * cos**2 / TOTAL_MASS))
    thrust = pushed - POLE_MASS * HALF_POLE * twist * cos / TOTAL_MASS
    slopes = (velocity, thrust, turning, twist)
    state = [value + TIME_STEP * slope for value, slope in zip(state, slopes, strict=True)]
    return state, abs(state[0]) > FARTHEST or abs(state[2]) > STEEPEST


def play(policy: Weights, rng: np.random.Generator) -> Episode:
    """Play one episode, drawing every action from the policy."""
    state, states, actions = rng.uniform(-0.05, 0.05, 4).tolist(), [], []
    for chance in rng.random(LIMIT).tolist():
        left, right = forward(policy, np.array(state)).tolist()
        action = int(chance * (1 + math.exp(min(left - right, 700))) < 1)  # π(right) = 1 / (1 + exp(left - right))
        states.append(state)
        actions.append(action)
        state, fallen = push(state, action)
        if fallen:
            break
    return Episode(np.array(states), np.array(actions))


def discounted(length: int, gamma: float) -> np.ndarray:
    """Return G_t = 1 + γ + ... + γ^(N - t - 1) of an episode whose every step pays 1, (N,)."""
    return np.cumsum(gamma ** np.arange(length))[::-1]


def policy_slopes(logits: np.ndarray, actions: np.ndarray, advantages: np.ndarray) -> np.ndarray:
    """Return the slopes of -Σ_t log π(a_t | s_t) A_t by the logits, (N, 2): A_t (π(· | s_t) - 1_a)."""
    return advantages[:, None] * (probabilities(logits) - np.eye(2)[actions])


def value_slopes(values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the slopes of the mean smooth-L1 distance by the values, (N, 1)."""
    return np.clip(values - targets, -1, 1)[:, None] / len(values)


class Adam:
    """Adam with its usual settings: a step of each weight by its mean slope over the root of its mean square."""

    def __init__(self, weights: Weights, learning_rate: float) -> None:
        self.weights, self.learning_rate, self.steps = weights, learning_rate, 0
        self.means, self.squares = ([np.zeros_like(array) for array in weights] for _ in range(2))

    def step(self, gradient: Weights) -> None:
        """Take one step down a gradient, in place."""
        self.steps += 1
        for w, m, v, g in zip(self.weights, self.means, self.squares, gradient, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            root = np.sqrt(v / (1 - 0.999**self.steps)) + 1e-8
            w -= self.learning_rate * m / (1 - 0.9**self.steps) / root


@dataclass
class Learner:
    """A policy that learns from one episode at a time; with a critic it is actor-critic, without one REINFORCE.

    `normalizer` stands at the door of the returns and `advantage_normalizer` at that of the advantages, each a dict of
    a name and options for `normalizers.make`, or None. Without a critic the advantages are the scored returns.
    """

    seed: int
    normalizer: dict | None = None
    advantage_normalizer: dict | None = None
    critic: bool = False
    learning_rate: float = 0.01
    gamma: float = 0.99
    policy_reduction: Literal["sum", "mean"] = "sum"  # of the policy's loss over the steps of an episode
    doors: list[Normalizer] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checks.flag("critic", self.critic)
        checks.positive("learning_rate", self.learning_rate)
        checks.number("gamma", self.gamma, low=0, high=1)
        checks.choice("policy_reduction", self.policy_reduction, ("sum", "mean"))
        self.doors = [_door(name, getattr(self, name)) for name in ("normalizer", "advantage_normalizer")]
        self.rng = np.random.default_rng(checks.seed("seed", self.seed))
        self.policy = network(2, self.rng)
        self.values = network(1, self.rng) if self.critic else []
        self.optimizer = Adam([*self.policy, *self.values], self.learning_rate)

    def scores(self, episode: Episode) -> tuple[np.ndarray, np.ndarray]:
        """Return what the critic is to learn and what the policy is weighted by, (N,) each."""
        at_returns, at_advantages = self.doors
        targets = at_returns(discounted(len(episode.actions), self.gamma))
        known = forward(self.values, episode.states)[:, 0] if self.critic else 0.0
        return targets, at_advantages(targets - known)

    def gradient(self, episode: Episode, targets: np.ndarray, advantages: np.ndarray) -> Weights:
        """Return the gradient of the whole loss by all weights, the policy's first."""
        states, actions = episode
        weights = advantages / len(actions) if self.policy_reduction == "mean" else advantages
        slopes = policy_slopes(forward(self.policy, states), actions, weights)
        gradient = backward(self.policy, states, slopes)
        if self.critic:
            slopes = value_slopes(forward(self.values, states)[:, 0], targets)
            gradient += backward(self.values, states, slopes)
        return gradient

    def learn(self, episode: Episode) -> None:
        """Take one step of Adam from an episode."""
        self.optimizer.step(self.gradient(episode, *self.scores(episode)))


def _door(name: str, options: dict | None) -> Normalizer:
    if options is not None and not (isinstance(options, dict) and "name" in options):
        raise ValueError(f"{name} must be None or a dict with a 'name' and its options, got {options!r}")
    return normalizers.make(**(options or {"name": "none"}))


def train(learner: Learner, max_episodes: int = 500, threshold: float = THRESHOLD, window: int = WINDOW) -> list[int]:
    """Play and learn until the last episodes have the mean length asked for, or the cap comes; return all lengths."""
    lengths = []
    while len(lengths) < max_episodes and not solved(lengths, threshold, window):
        episode = play(learner.policy, learner.rng)
        learner.learn(episode)
        lengths.append(len(episode.actions))
    return lengths


def solved(lengths: list[int], threshold: float = THRESHOLD, window: int = WINDOW) -> bool:
    """Say whether the last episodes, a full window of them, have the mean length asked for."""
    return len(lengths) >= window and sum(lengths[-window:]) >= threshold * window
