"""What somebody imports is typed: the rooms of the library, and code of their own that uses the wrappers."""

import subprocess
import sys

from kscore.project import ROOT

ROOMS = ("kscore.wrappers", "kscore.normalizers", "kscore.filters")

OWN = """
import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from kscore import filters, normalizers
from kscore.wrappers.gymnasium import NormalizeReward, VectorNormalizeReward
from kscore.wrappers.sb3 import KeepScores, LogScale, NormalizedRolloutBuffer, VecKScore
from kscore.wrappers.scaling import RewardScaling


def one(path: str) -> float:
    env = NormalizeReward(gym.make("CartPole-v1"), 0.99, normalizer={"name": "ema", "decay": 0.9}, floor=0.2)
    env.load(path)
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(0)
    return env.return_rms.scale + float(reward)


def many(lanes: int) -> int:
    envs = VectorNormalizeReward(gym.make_vec("CartPole-v1", lanes), normalizer=normalizers.make("running"))
    envs.gamma, envs.update_running_mean = 0.9, False
    return envs.return_rms.count


def learned() -> VecKScore:
    env = VecKScore(make_vec_env("CartPole-v1", n_envs=2), norm_obs=False, gamma=0.98)
    model = PPO("MlpPolicy", env, rollout_buffer_class=NormalizedRolloutBuffer)
    model.learn(100, callback=[KeepScores(), LogScale()])
    env.save_json("scale.json")
    return env


def by_hand() -> float:
    scaling = RewardScaling("episode", lanes=2, gamma=0.99)
    scaled = scaling.step([1.0, 2.0], [False, True])
    scores = normalizers.make("zscore")(scaled)
    return float(np.mean(scores)) + filters.steady_state(1e-4, 1e-2).gain
"""


def checked(tmp_path, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_the_library_and_code_that_uses_it_are_clean(tmp_path):
    own, wrong = tmp_path / "own.py", tmp_path / "wrong.py"
    own.write_text(OWN)
    wrong.write_text(OWN.replace("lanes=2, gamma=0.99", "lanes='2', gama=0.99"))
    told = checked(tmp_path, *(part for room in ROOMS for part in ("-p", room)))
    assert told.returncode == 0, told.stdout
    told = checked(tmp_path, str(own))
    assert told.returncode == 0, told.stdout
    told = checked(tmp_path, str(wrong))
    assert told.returncode == 1 and "gama" in told.stdout and '"lanes"' in told.stdout
