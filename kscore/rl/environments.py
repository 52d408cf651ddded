"""Making environments, playing episodes, evaluating a policy: the only room that touches gymnasium's environments."""

import logging
import math
from collections.abc import Iterator
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kscore import checks

with checks.extra("kscore.rl", "rl"):
    import gymnasium as gym
    from gymnasium.wrappers import FlattenObservation, OrderEnforcing, PassiveEnvChecker, TimeLimit, TransformAction

if TYPE_CHECKING:  # a configuration checks its environment here, and does not need torch for it
    from kscore.rl.networks import Dropout, Masks
    from kscore.rl.policies import Policy

BLOCK = 64  # how many steps' noise is drawn at once; what an episode leaves over is thrown away


class Diverged(ArithmeticError):
    """Something that must be finite no longer is; the message says what."""


class Environment(NamedTuple):
    """An environment that a policy can act in, with what its networks need to know."""

    env: gym.Env  # without gymnasium's time limit and checks, which `play` and `make` take over
    observation_size: int
    actions: gym.Space  # Discrete, counted from 0, or a Box in units of half the range that is allowed
    limit: int  # steps after which an episode is cut off


class Episode(NamedTuple):
    """One episode as it was played; T steps."""

    observations: np.ndarray  # (T, observation size)
    actions: np.ndarray  # (T,), or (T, dims) where they are real numbers
    rewards: list[float]  # (T,)
    masks: "Masks | None"  # the dropout masks that the actor played with: (T, width) a hidden layer


def make(env: str, seed: int) -> Environment:
    """Make an environment by its gymnasium id, seeded once; refuse what these policies cannot act in.

    The wrappers that gymnasium adds only check, or count steps; they are taken off, and `play` keeps the time limit.
    Observations that count something, or several things, become ones and zeros: a 1 in the place of each number.
    """
    made = _registered(env)
    limit = made.spec.max_episode_steps
    if env.rpartition(":")[2] != made.spec.id:
        raise ValueError(
            f"env must name its version, because another gymnasium may mean another one; "
            f"{env} means {made.spec.id} here"
        )
    if limit is None:
        raise ValueError(
            f"env must have a time limit, because an update waits for the end of an episode; "
            f"register {env} with max_episode_steps"
        )
    while isinstance(made, TimeLimit | OrderEnforcing | PassiveEnvChecker):
        made = made.env
    made = _in_plain_actions(_in_flat_observations(made, env), env)
    made.reset(seed=seed)
    return Environment(made, made.observation_space.shape[0], made.action_space, limit)


COUNTS = gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary


def _in_flat_observations(made: gym.Env, env: str) -> gym.Env:
    """Let observations be flat arrays of numbers; refuse images and structures."""
    space = made.observation_space
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
        return made
    if not all(isinstance(part, COUNTS) for part in (space if isinstance(space, gym.spaces.Tuple) else [space])):
        raise ValueError(
            f"env must have a flat Box of numbers as observation, or counts that can be written as ones "
            f"and zeros, because the networks are multilayer perceptrons without an encoder for images or "
            f"structures; {env} has {space}"
        )
    return FlattenObservation(made)


def _in_plain_actions(made: gym.Env, env: str) -> gym.Env:
    """Let actions count from 0, or be numbers in units of half their range, clipped to it; refuse all others."""
    space = made.action_space
    if isinstance(space, gym.spaces.Discrete):
        if space.start == 0:
            return made
        return TransformAction(made, lambda action: action + int(space.start), gym.spaces.Discrete(space.n))
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1 or space.dtype.kind != "f":
        raise ValueError(
            "env must have discrete actions or a flat Box of real numbers, because those are what the "
            f"policies can draw; {env} has {space}"
        )
    return PlainActions(made)


class PlainActions(gym.Wrapper):
    """Real actions in units of half the range that is allowed, around its middle, and clipped to it.

    A dimension without a finite range stays in its own units. This is called at every step: it says what
    `gymnasium.wrappers.RescaleAction` and `ClipAction` say, in a third of their time.
    """

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        space = env.action_space
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(space.high - space.low)
            self._middle = np.where(finite, (space.low + space.high) / 2, 0).astype(space.dtype)
            self._half = np.where(finite, (space.high - space.low) / 2, 1).astype(space.dtype)
        self._low, self._high = space.low, space.high
        self.action_space = gym.spaces.Box(-np.inf, np.inf, space.shape, space.dtype)

    def step(self, action: np.ndarray) -> tuple:
        """Take a step with the action that is meant; raise `Diverged` if it is not finite."""
        allowed = self._half * action
        np.add(allowed, self._middle, allowed)
        np.minimum(np.maximum(allowed, self._low, out=allowed), self._high, out=allowed)
        if not math.isfinite(allowed.dot(allowed)) and not np.isfinite(allowed).all():
            raise Diverged("an action is not finite")  # an environment may fail on it, or go on with anything
        return self.env.step(allowed)


@cache
def check(env: str) -> gym.Space:
    """Return the actions of an environment, or refuse it with the reason; what has passed once is not made again."""
    made = make(env, seed=0)
    made.env.close()
    return made.actions


def _registered(env: str) -> gym.Env:
    try:
        if env in gym.registry and str(gym.registry[env].entry_point).startswith("gymnasium.envs.mujoco"):
            _log_mujoco()
        return gym.make(env)
    except (gym.error.Error, ImportError, ValueError) as error:  # ValueError: a colon too many, or in the first place
        raise ValueError(f"env must be an id that gymnasium can make, got {env!r}: {error}") from None


def _log_mujoco() -> None:
    """Let MuJoCo's warnings go to a log: by itself it writes them to a file in whatever folder one happens to be in."""
    with checks.extra("an environment of MuJoCo", "mujoco"):
        import mujoco
    mujoco.set_mju_user_warning(logging.getLogger("mujoco").info)


def play(environment: Environment, policy: "Policy", rng: np.random.Generator, dropout: "Dropout") -> Episode:
    """Play one training episode: actions are sampled with `rng`, and dropout is on.

    The masks are kept, so that learning can differentiate the very forward passes that chose the actions. An episode
    that reaches the time limit just ends: nothing is bootstrapped from where it was cut off.
    """
    step, sample = environment.env.step, policy.sample
    observation, _ = environment.env.reset()
    observations, actions, rewards, blocks = [], [], [], []
    for masks, noise in _chance(environment.limit, policy, rng, dropout, blocks):
        action = sample(observation, masks, noise)
        observations.append(observation)
        actions.append(action)
        observation, reward, terminated, truncated, _ = step(action)
        rewards.append(float(reward))
        if terminated or truncated:
            break
    masks = [np.concatenate(layer)[: len(actions)] for layer in zip(*blocks, strict=True)] or None
    return Episode(np.array(observations, np.float32), np.array(actions), rewards, masks)


def _chance(
    limit: int, policy: "Policy", rng: np.random.Generator, dropout: "Dropout", blocks: "list[Masks]"
) -> Iterator[tuple[tuple[np.ndarray, ...] | None, np.ndarray]]:
    """Yield each step's masks (one a hidden layer) and noise up to the limit; collect the masks in `blocks`."""
    for start in range(0, limit, BLOCK):
        steps = min(BLOCK, limit - start)
        masks = dropout.draw(steps)
        noise = policy.head.noise(rng, steps)
        if masks is None:
            yield from zip(repeat(None, steps), noise, strict=True)
        else:
            blocks.append(masks)
            yield from zip(zip(*masks, strict=True), noise, strict=True)


def evaluate(environment: Environment, policy: "Policy") -> tuple[float, int]:
    """Play one episode greedily without dropout; return its undiscounted return and its number of steps."""
    step, greedy = environment.env.step, policy.greedy
    observation, _ = environment.env.reset()
    rewards = []
    for _ in range(environment.limit):
        observation, reward, terminated, truncated, _ = step(greedy(observation))
        rewards.append(reward)
        if terminated or truncated:
            break
    return float(sum(rewards)), len(rewards)
