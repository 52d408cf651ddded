"""What a wrapper that scales rewards adds to a step, ours beside those of Gymnasium and Stable-Baselines3.

    python benchmarks/wrapper_speed.py                  # the table
    python benchmarks/wrapper_speed.py --rounds 500     # more rounds

The bare environment, theirs and ours take turns and play the same steps, a short slice at a time. What a wrapper adds
is the time of its slice less that of the bare environment's in the same round; the median over the rounds is reported,
because on a shared machine speed wanders. The ratio is ours over theirs, and has to be at most 1. An environment that
does nothing shows the wrapper alone; CartPole with random actions has short episodes, and so learns often. Observations
are left alone.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import sys
import time
from collections.abc import Callable

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import NormalizeReward as TheirReward
from gymnasium.wrappers.vector import NormalizeReward as TheirVectorReward
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from kscore.wrappers.gymnasium import NormalizeReward, VectorNormalizeReward
from kscore.wrappers.sb3 import VecKScore

LANES = 8
SLICE = 200  # steps
MOST = 1.0  # times what theirs adds


class Still(gym.Env):
    """Do nothing for a hundred steps, and pay for each."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)

    def __init__(self) -> None:
        self.seen, self.at = np.zeros(1, np.float32), 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        self.at = 0
        return self.seen, {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.at += 1
        return self.seen, 1.0, self.at == 100, False, {}


MAKE = {"does nothing": Still, "CartPole": lambda: gym.make("CartPole-v1")}


def one(env: gym.Env) -> Callable[[int], None]:
    """Return what plays so many steps of an environment."""
    rng = np.random.default_rng(0)
    env.reset(seed=0)

    def play(steps: int) -> None:
        for action in rng.integers(2, size=steps).tolist():
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
    return play


def many(envs: gym.vector.VectorEnv | VecNormalize) -> Callable[[int], None]:
    """Return what plays so many steps of a vector of environments, of either library; they reset themselves."""
    rng = np.random.default_rng(0)
    if isinstance(envs, gym.vector.VectorEnv):
        envs.reset(seed=0)
    else:
        envs.seed(0)
        envs.reset()

    def play(steps: int) -> None:
        for actions in rng.integers(2, size=(steps, envs.num_envs)):
            envs.step(actions)
    return play


def gymnasium_lanes(make: Callable[[], gym.Env]) -> gym.vector.VectorEnv:
    return gym.vector.SyncVectorEnv([make] * LANES)


def sb3_lanes(make: Callable[[], gym.Env], lanes: int = LANES) -> DummyVecEnv:
    return DummyVecEnv([make] * lanes)


def rows(make: Callable[[], gym.Env]) -> dict[str, tuple[Callable, ...]]:
    """Return, for every kind of wrapper, what plays the bare environment, theirs and ours."""
    return {
        "Gymnasium, one environment": tuple(one(env) for env in (
            make(), TheirReward(make()), NormalizeReward(make()))),
        f"Gymnasium, {LANES} lanes": tuple(many(envs) for envs in (
            gymnasium_lanes(make), TheirVectorReward(gymnasium_lanes(make)),
            VectorNormalizeReward(gymnasium_lanes(make)))),
        "Stable-Baselines3, one lane": tuple(many(envs) for envs in (
            sb3_lanes(make, 1), VecNormalize(sb3_lanes(make, 1), norm_obs=False),
            VecKScore(sb3_lanes(make, 1), norm_obs=False))),
        f"Stable-Baselines3, {LANES} lanes": tuple(many(envs) for envs in (
            sb3_lanes(make), VecNormalize(sb3_lanes(make), norm_obs=False),
            VecKScore(sb3_lanes(make), norm_obs=False))),
    }


def medians(plays: tuple[Callable[[int], None], ...], rounds: int) -> tuple[float, float, float]:
    """Return the microseconds of a bare step, and what theirs and ours add to it: medians over rounds of turns."""
    taken = np.zeros((rounds, len(plays)))
    for row in taken:
        for k, play in enumerate(plays):
            start = time.perf_counter()
            play(SLICE)
            row[k] = (time.perf_counter() - start) / SLICE * 1e6
    bare, theirs, ours = taken.T
    return np.median(bare), np.median(theirs - bare), np.median(ours - bare)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=150, help="turns of each")
    rounds, missed = parser.parse_args().rounds, False
    print(f"{'microseconds per step':44} {'bare':>7} {'theirs +':>9} {'ours +':>7} {'ratio':>6}  target")
    for title, make in MAKE.items():
        for name, plays in rows(make).items():
            bare, theirs, ours = medians(plays, rounds)
            missed |= ours > MOST * theirs
            print(f"{f'{name}: {title}':44} {bare:7.2f} {theirs:9.2f} {ours:7.2f} {ours / theirs:6.2f}  "
                  f"<= {MOST:g} {'MISSED' if ours > MOST * theirs else 'ok'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
