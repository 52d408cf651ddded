"""Playing episodes: the only room that touches gymnasium."""

from collections.abc import Iterator
from functools import cache
from itertools import repeat
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit, TransformAction

from kscore.networks import Dropout, Masks, Policy

BLOCK = 64  # how many steps' noise is drawn at once; what an episode leaves over is thrown away


class Environment(NamedTuple):
    """An environment that a discrete policy can act in, with the sizes its networks need."""

    env: gym.Env  # without gymnasium's time limit and checks, which `play` and `make` take over
    observation_size: int
    actions: int
    limit: int  # steps after which an episode is cut off


class Episode(NamedTuple):
    """One episode as it was played; T steps."""

    observations: np.ndarray  # (T, observation size)
    actions: np.ndarray  # (T,)
    rewards: list[float]  # (T,)
    masks: Masks | None  # the dropout masks that the actor played with: (T, width) a hidden layer


def make(env: str, seed: int) -> Environment:
    """Make an environment by its gymnasium id, seeded once; refuse what these policies cannot act in.

    The wrappers that gymnasium adds only check, or count steps; they are taken off, and `play` keeps the time limit.
    """
    made = _registered(env)
    space, actions, limit = made.observation_space, made.action_space, made.spec.max_episode_steps
    if not isinstance(actions, gym.spaces.Discrete):
        raise ValueError(f"env must have discrete actions, because the policy is a softmax over a finite set; "
                         f"{env} has {actions}")
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        raise ValueError(f"env must have a flat Box of numbers as observation, because the networks are multilayer "
                         f"perceptrons without an encoder for images or structures; {env} has {space}")
    if limit is None:
        raise ValueError(f"env must have a time limit, because an update waits for the end of an episode; "
                         f"register {env} with max_episode_steps")
    while isinstance(made, TimeLimit | OrderEnforcing | PassiveEnvChecker):
        made = made.env
    if actions.start != 0:
        made = TransformAction(made, lambda action: action + int(actions.start), gym.spaces.Discrete(actions.n))
    made.reset(seed=seed)
    return Environment(made, space.shape[0], int(actions.n), limit)


@cache
def check(env: str) -> None:
    """Refuse, with the reason, an environment that cannot be played; what has passed once is not made again."""
    make(env, seed=0).env.close()


def _registered(env: str) -> gym.Env:
    try:
        return gym.make(env)
    except (gym.error.Error, ImportError) as error:
        raise ValueError(f"env must be an id that gymnasium can make, got {env!r}: {error}") from None


def play(environment: Environment, policy: Policy, rng: np.random.Generator, dropout: Dropout) -> Episode:
    """Play one training episode: actions are sampled with `rng`, and dropout is on.

    The masks are kept, so that learning can differentiate the very forward passes that chose the actions. An episode
    that reaches the time limit just ends: nothing is bootstrapped from where it was cut off.
    """
    step, sample = environment.env.step, policy.sample
    observation, _ = environment.env.reset()
    observations, actions, rewards, blocks = [], [], [], []
    for masks, gumbel in _noise(environment, rng, dropout, blocks):
        action = sample(observation, masks, gumbel)
        observations.append(observation)
        actions.append(action)
        observation, reward, terminated, truncated, _ = step(action)
        rewards.append(float(reward))
        if terminated or truncated:
            break
    masks = [np.concatenate(layer)[:len(actions)] for layer in zip(*blocks, strict=True)] or None
    return Episode(np.array(observations, np.float32), np.array(actions), rewards, masks)


def _noise(environment: Environment, rng: np.random.Generator, dropout: Dropout,
           blocks: list[Masks]) -> Iterator[tuple[tuple[np.ndarray, ...] | None, np.ndarray]]:
    """Yield each step's masks (one a hidden layer) and Gumbel noise up to the limit; collect the masks in `blocks`."""
    for start in range(0, environment.limit, BLOCK):
        steps = min(BLOCK, environment.limit - start)
        masks = dropout.draw(steps)
        gumbel = rng.gumbel(size=(steps, environment.actions)).astype(np.float32)
        if masks is None:
            yield from zip(repeat(None, steps), gumbel, strict=True)
        else:
            blocks.append(masks)
            yield from zip(zip(*masks, strict=True), gumbel, strict=True)


def evaluate(environment: Environment, policy: Policy) -> tuple[float, int]:
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
