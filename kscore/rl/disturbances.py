"""Disturbances of a run: rewards that come with noise, with outliers or in new units, and actions that are swapped.

    >>> noisy = dataclasses.replace(config, disturbance={"name": "noise", "deviation": 3.0})

The learner is told disturbed rewards. What is recorded, evaluated and held against the threshold is the clean reward.
Swapped actions are another matter: there the task itself has changed, and the evaluation changes with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

import gymnasium as gym
import numpy as np

from kscore import checks
from kscore.rl.environments import Environment, Episode


@dataclass(kw_only=True)
class Disturbance:
    """What all disturbances have in common: when they begin. A subclass changes the rewards, or the actions."""

    name: ClassVar[str]
    discrete: ClassVar[bool] = False  # whether it is for discrete actions only
    after: int = 0  # so many training episodes are played before it begins

    def __post_init__(self) -> None:
        self.after = checks.whole("after", self.after, low=0)

    def reward(self, reward: float, rng: np.random.Generator) -> float:
        """Return the reward that the learner is told."""
        return reward

    def action(self, action: object, space: gym.Space) -> object:
        """Return the action that the environment receives."""
        return action


@dataclass(kw_only=True)
class Noise(Disturbance):
    """Add Gaussian noise to every reward."""

    name = "noise"
    deviation: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.deviation = checks.number("deviation", self.deviation, low=0)

    def reward(self, reward: float, rng: np.random.Generator) -> float:
        return reward + self.deviation * rng.standard_normal()


@dataclass(kw_only=True)
class Outliers(Disturbance):
    """Add a large number to the rewards of a share of the steps, with either sign."""

    name = "outliers"
    share: float = 0.01
    size: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.share = checks.number("share", self.share, low=0, high=1)
        self.size = checks.number("size", self.size, low=0)

    def reward(self, reward: float, rng: np.random.Generator) -> float:
        drawn = rng.random()  # one number says whether, and which sign: every step takes as much of the stream
        if drawn >= self.share:
            return reward
        return reward + self.size if drawn < self.share / 2 else reward - self.size


@dataclass(kw_only=True)
class Change(Disturbance):
    """Tell every reward in other units: times a factor, plus an offset."""

    name = "change"
    factor: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.factor, self.offset = checks.positive("factor", self.factor), checks.number("offset", self.offset)

    def reward(self, reward: float, rng: np.random.Generator) -> float:
        return self.factor * reward + self.offset


@dataclass(kw_only=True)
class Swap(Disturbance):
    """Let discrete actions stand in reversed order: of two actions, each then does what the other did."""

    name = "swap"
    discrete = True

    def action(self, action: int, space: gym.spaces.Discrete) -> int:
        return space.n - 1 - action


DISTURBANCES: dict[str, type[Disturbance]] = {kind.name: kind for kind in (Noise, Outliers, Change, Swap)}


def make(name: str, **options: object) -> Disturbance:
    """Make a disturbance by its name, a key of DISTURBANCES."""
    kind = DISTURBANCES[checks.choice("disturbance", name, DISTURBANCES)]
    for option in options:
        checks.choice(f"option of disturbance {name!r}", option, [f.name for f in fields(kind)])
    return kind(**options)


def spelled_out(name: str, **options: object) -> dict[str, object]:
    """Return the name of a disturbance with every option that it has, defaults included, each as it was checked."""
    made = make(name, **options)
    return {"name": name} | {f.name: getattr(made, f.name) for f in fields(made)}


class Disturbed(gym.Wrapper):
    """An environment under a disturbance; the rewards that it really paid in the episode stay in `clean`.

    `episode` says which training episode, counted from 1, a reset begins, or an evaluation comes after: the disturbance
    is there from episode `after` + 1 on. Without `rng` rewards are passed on as they are, as an evaluation needs them.
    """

    def __init__(
        self, env: gym.Env, disturbance: Disturbance, episode: Callable[[], int], rng: np.random.Generator | None = None
    ) -> None:
        super().__init__(env)
        self.disturbance, self.episode, self.rng = disturbance, episode, rng
        self.begun, self.clean = False, []

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        """Begin an episode, disturbed if its time has come."""
        self.begun, self.clean = self.episode() > self.disturbance.after, []
        return self.env.reset(seed=seed, options=options)

    def step(self, action: object) -> tuple:
        """Take a step with the action that is meant now, and tell the reward as it is told now."""
        if self.begun:
            action = self.disturbance.action(action, self.action_space)
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward = float(reward)
        self.clean.append(reward)
        if self.begun and self.rng is not None:
            reward = self.disturbance.reward(reward, self.rng)
        return observation, reward, terminated, truncated, info


def put_on(
    environment: Environment, options: dict | None, episode: Callable[[], int], rng: np.random.Generator | None = None
) -> Environment:
    """Return the environment under a disturbance, or without one the environment itself."""
    if options is None:
        return environment
    return environment._replace(env=Disturbed(environment.env, make(**options), episode, rng))


def clean_rewards(environment: Environment, episode: Episode) -> list[float]:
    """Return what the episode that was just played really paid, step by step."""
    return environment.env.clean if isinstance(environment.env, Disturbed) else episode.rewards
