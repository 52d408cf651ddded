"""What a wrapper that scales rewards adds to a step, ours beside those of Gymnasium and Stable-Baselines3.

    python benchmarks/wrapper_speed.py                  # the table
    python benchmarks/wrapper_speed.py --rounds 500     # more rounds

The environments pay what stands in a table and do nothing else, all lanes at once, so that a wrapper is nearly all that
takes time. The bare one, theirs and ours take turns and play the same steps, a short slice at a time. What a wrapper
adds is the time of its slice less that of the bare environment's in the same round; the median over the rounds is
reported, because on a shared machine speed wanders. The ratio is ours over theirs, and at most 1 is wanted.
Episodes of 1,000 steps show a step itself; where they are short, lanes end in every step, and ours learns from each
episode by itself while theirs take all lanes of a step as one. Observations are left alone.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import sys
import time
from collections.abc import Callable, Iterator

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import NormalizeReward as TheirReward
from gymnasium.wrappers.vector import NormalizeReward as TheirVectorReward
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from kscore.wrappers.gymnasium import NormalizeReward, VectorNormalizeReward
from kscore.wrappers.sb3 import VecKScore

LENGTHS = (1000, 100, 20)  # mean steps of an episode
LANES = {"Gymnasium": (1, 16, 64, 256, 1024), "Stable-Baselines3": (1, 4, 16, 64)}
SLICE = 100  # steps
ROWS = 1009  # steps that are written down, and then again
MOST = 1.0  # times what theirs adds
SPACES = gym.spaces.Box(0, 1, (2,), np.float32), gym.spaces.Discrete(2)


class Table:
    """Rewards and ends of so many lanes, step by step, for ever."""

    def __init__(self, lanes: int, length: int) -> None:
        rng = np.random.default_rng(0)
        self.rewards = rng.normal(1, 1, (ROWS, lanes)).astype(np.float32)
        self.ends = rng.uniform(size=(ROWS, lanes)) < 1 / length
        self.seen, self.never, self.at = np.zeros((lanes, 2), np.float32), np.zeros(lanes, bool), 0

    def next(self) -> tuple[np.ndarray, np.ndarray]:
        self.at = (self.at + 1) % ROWS
        return self.rewards[self.at], self.ends[self.at]


class One(gym.Env):
    """One lane of Gymnasium."""

    observation_space, action_space = SPACES

    def __init__(self, lanes: int, length: int) -> None:
        self.table = Table(1, length)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        return self.table.seen[0], {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        rewards, ends = self.table.next()
        return self.table.seen[0], float(rewards[0]), bool(ends[0]), False, {}


class Many(VectorEnv):
    """Many lanes of Gymnasium."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    single_observation_space, single_action_space = observation_space, action_space = SPACES

    def __init__(self, lanes: int, length: int) -> None:
        self.num_envs, self.table = lanes, Table(lanes, length)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        return self.table.seen, {}

    def step(self, actions: None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        rewards, ends = self.table.next()
        return self.table.seen, rewards, ends, self.table.never, {}


class Lanes(VecEnv):
    """Lanes of Stable-Baselines3."""

    def __init__(self, lanes: int, length: int) -> None:
        self.table, self.infos = Table(lanes, length), [{} for _ in range(lanes)]
        super().__init__(lanes, *SPACES)

    def reset(self) -> np.ndarray:
        return self.table.seen

    def step_async(self, actions: None) -> None:
        pass

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        return self.table.seen, *self.table.next(), self.infos

    def get_attr(self, attr_name: str, indices: object = None) -> list[None]:
        return [None] * self.num_envs

    def close(self) -> None: ...
    def set_attr(self, attr_name: str, value: object, indices: object = None) -> None: ...
    def env_method(self, method_name: str, *args: object, indices: object = None, **options: object) -> list: ...
    def env_is_wrapped(self, wrapper_class: type, indices: object = None) -> list[bool]: ...


KINDS = {  # the bare environments, theirs and ours
    "Gymnasium, one environment": (One, TheirReward, NormalizeReward),
    "Gymnasium": (Many, TheirVectorReward, VectorNormalizeReward),
    "Stable-Baselines3": (
        Lanes, lambda env: VecNormalize(env, norm_obs=False), lambda env: VecKScore(env, norm_obs=False),
    ),
}


def rows() -> Iterator[tuple[str, tuple[Callable[[int], None], ...]]]:
    """Yield, for every row of the table, what plays the bare environment, theirs and ours."""
    for kind, (bare, theirs, ours) in KINDS.items():
        for lanes in LANES.get(kind, (1,)):
            for length in LENGTHS:
                envs = bare(lanes, length), theirs(bare(lanes, length)), ours(bare(lanes, length))
                yield f"{kind}, {lanes} lanes, {length} steps", tuple(map(player, envs))


def player(env: gym.Env | VectorEnv | VecEnv) -> Callable[[int], None]:
    """Return what plays so many steps."""
    env.reset()
    alone = isinstance(env, gym.Env)

    def play(steps: int) -> None:
        for _ in range(steps):
            _, _, ended, *_ = env.step(None)
            if alone and ended:
                env.reset()
    return play


def medians(plays: tuple[Callable[[int], None], ...], rounds: int) -> tuple[float, float, float]:
    """Return the microseconds of a bare step, and what theirs and ours add to it: medians over rounds of turns."""
    taken = np.zeros((rounds, len(plays)))
    for row in taken:
        for k, play in enumerate(plays):
            start = time.process_time()
            play(SLICE)
            row[k] = (time.process_time() - start) / SLICE * 1e6
    bare, theirs, ours = taken.T
    return np.median(bare), np.median(theirs - bare), np.median(ours - bare)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60, help="turns of each")
    rounds, missed = parser.parse_args().rounds, False
    print(f"{'microseconds per step':42} {'bare':>7} {'theirs +':>9} {'ours +':>7} {'ratio':>6}  target")
    for name, plays in rows():
        bare, theirs, ours = medians(plays, rounds)
        missed |= ours > MOST * theirs
        print(f"{name:42} {bare:7.2f} {theirs:9.2f} {ours:7.2f} {ours / theirs:6.2f}  "
              f"<= {MOST:g} {'MISSED' if ours > MOST * theirs else 'ok'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
