"""The wrappers in somebody else's loop: PPO of Stable-Baselines3, its `VecNormalize` against ours (chapter 18).

A run trains `stable_baselines3.PPO` on one task. Its arms have the same settings, and a seed gives all of them the same
networks and environments to start from; they differ only in what becomes of the rewards on their way into the loss.
Every so many steps the greedy policy plays some episodes of its own, whose rewards nobody has touched.

    python -m kscore.labs.sb3_study

trains what data/sb3.jsonl lacks, an hour or two on one core from nothing.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from kscore import checks, provenance
from kscore.labs import recording
from kscore.project import DATA
from kscore.rl.training import one_thread
from kscore.wrappers.sb3 import KeepScores, NormalizedRolloutBuffer, VecKScore

PATH = DATA / "sb3.jsonl"
COMPARED = ("vecnormalize", "veckscore", "buffer")  # Stable-Baselines3's wrapper, ours, our buffer inside PPO
ARMS = (*COMPARED, "raw")  # and rewards that are left as they are

PRESETS: dict[str, dict[str, object]] = {
    "CartPole-v1": {
        "steps": 40_960,
        "every": 2_048,
        "lanes": 8,
        "rollout": 32,
        "batch": 256,
        "epochs": 20,
        "learning_rate": 1e-3,
        "gamma": 0.98,
        "gae_lambda": 0.8,
    },
    "LunarLander-v3": {
        "steps": 131_072,
        "every": 16_384,
        "lanes": 16,
        "rollout": 256,
        "batch": 64,
        "epochs": 4,
        "gamma": 0.999,
        "gae_lambda": 0.98,
        "entropy": 0.01,
    },
    "Pendulum-v1": {
        "steps": 61_440,
        "every": 4_096,
        "lanes": 4,
        "rollout": 1_024,
        "batch": 64,
        "epochs": 10,
        "learning_rate": 1e-3,
        "gamma": 0.9,
        "explores_by_state": True,
    },
}
TASKS = tuple(PRESETS)
SEEDS = range(9000, 9010)  # results; 10 of them
PACKAGES = ("kscore", "numpy", "torch", "gymnasium", "stable-baselines3")


@dataclass(frozen=True, kw_only=True)
class TrialConfig:
    """Everything that, with a seed, decides a run; what is not named here is Stable-Baselines3's default."""

    task: str  # one of TASKS
    arm: str  # one of ARMS
    steps: int  # of training, over all lanes
    every: int  # steps between two evaluations
    lanes: int  # environments side by side
    rollout: int  # steps of each lane between two updates
    batch: int  # steps that a gradient is the mean of
    epochs: int  # how often a rollout is gone through
    learning_rate: float = 3e-4
    gamma: float = 0.99  # of the learner, and of the wrapper
    gae_lambda: float = 0.95
    entropy: float = 0.0  # weight of the entropy in the loss
    explores_by_state: bool = False  # generalized state-dependent exploration
    episodes: int = 5  # of an evaluation

    def __post_init__(self) -> None:
        checks.choice("task", self.task, TASKS)
        checks.choice("arm", self.arm, ARMS)
        for name in ("steps", "every", "lanes", "rollout", "batch", "epochs", "episodes"):
            checks.whole(name, getattr(self, name))
        checks.positive("learning_rate", self.learning_rate)
        for name in ("gamma", "gae_lambda"):
            checks.number(name, getattr(self, name), low=0, high=1)
        checks.number("entropy", self.entropy, low=0)
        checks.flag("explores_by_state", self.explores_by_state)
        update = self.lanes * self.rollout
        for name, whole, part in (
            ("batch", update, self.batch),
            ("every", self.every, update),
            ("steps", self.steps, self.every),
        ):
            if whole % part:
                relation = "divide" if name == "batch" else "be a multiple of"
                other = "every" if name == "steps" else "lanes × rollout"
                raise ValueError(
                    f"{name} must {relation} {other} = {update if name != 'steps' else self.every}, got "
                    f"{getattr(self, name)}"
                )

    @classmethod
    def preset(cls, task: str, arm: str) -> "TrialConfig":
        """Return the settings of the recorded study.

        >>> TrialConfig.preset("Pendulum-v1", "veckscore").gamma
        0.9
        """
        return cls(task=task, arm=arm, **PRESETS[checks.choice("task", task, TASKS)])


class Evaluate(BaseCallback):
    """Let the greedy policy play in environments of its own, with a start that is the same in all arms."""

    def __init__(self, config: TrialConfig, seed: int) -> None:
        super().__init__()
        self._config, self._seed = config, seed
        self._env = make_vec_env(config.task, n_envs=config.episodes)
        self.steps: list[int] = []
        self.returns: list[float] = []

    def _evaluate(self) -> None:
        self._env.seed(spread(self._seed, 1 + len(self.steps)))
        returns, _ = evaluate_policy(
            self.model,
            self._env,
            n_eval_episodes=self._config.episodes,
            deterministic=True,
            return_episode_rewards=True,
        )
        self.steps.append(self.num_timesteps)
        self.returns.append(round(float(np.mean(returns)), 4))

    def _on_rollout_start(self) -> None:
        if self.num_timesteps and self.num_timesteps % self._config.every == 0:
            self._evaluate()

    def _on_training_end(self) -> None:
        self._evaluate()
        self._env.close()

    def _on_step(self) -> bool:
        return True


def spread(seed: int, stream: int = 0) -> int:
    """Return a number far from that of any other seed: lanes count on from theirs, and must not meet."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(1)[0])


def wrapped(config: TrialConfig) -> VecEnv:
    """Return the environments of an arm; observations are never normalized, so that rewards are all that differs."""
    env = make_vec_env(config.task, n_envs=config.lanes)
    if config.arm == "vecnormalize":
        return VecNormalize(env, norm_obs=False, gamma=config.gamma)
    if config.arm == "veckscore":
        return VecKScore(env, norm_obs=False, gamma=config.gamma, normalizer="episode")
    return env


def learner(config: TrialConfig, seed: int) -> BaseAlgorithm:
    """Return the PPO of an arm, which has learned nothing yet."""
    inside = {"rollout_buffer_class": NormalizedRolloutBuffer, "rollout_buffer_kwargs": {"normalizer": "episode"}}
    return PPO(
        "MlpPolicy",
        wrapped(config),
        n_steps=config.rollout,
        batch_size=config.batch,
        n_epochs=config.epochs,
        learning_rate=config.learning_rate,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        ent_coef=config.entropy,
        use_sde=config.explores_by_state,
        sde_sample_freq=4 if config.explores_by_state else -1,
        device="cpu",
        seed=spread(seed),
        **inside if config.arm == "buffer" else {},
    )


def train_trial(config: TrialConfig, seed: int) -> dict:
    """Train one arm on one seed; return the record, with the mean returns of the evaluations as learning curve."""
    checks.seed("seed", seed)
    begun = time.perf_counter()
    with _by_itself():
        model, evaluate = learner(config, seed), Evaluate(config, seed)
        keep = [KeepScores()] if config.arm == "buffer" else []
        model.learn(config.steps, callback=CallbackList([evaluate, *keep]))
        model.env.close()
    return {
        "config": asdict(config),
        "seed": seed,
        "steps": evaluate.steps,
        "returns": evaluate.returns,
        "seconds": round(time.perf_counter() - begun, 1),
        "versions": provenance.versions(PACKAGES),
    }


@contextmanager
def _by_itself() -> Iterator[None]:
    """Let torch use one thread, and leave the generators that Stable-Baselines3 seeds as they were."""
    state, numbers = random.getstate(), np.random.get_state()
    try:
        with one_thread(), torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(state)
        np.random.set_state(numbers)


def planned() -> list[tuple[TrialConfig, int]]:
    """Return the runs of the recorded study, seed by seed, so that whatever is there is balanced; raw rewards last."""
    return [
        (TrialConfig.preset(task, arm), seed)
        for arms in (COMPARED, ("raw",))
        for seed, task, arm in product(SEEDS, TASKS, arms)
    ]


def read(path: Path = PATH) -> pd.DataFrame:
    """Return the recorded runs, a row each: task, arm, seed, steps, returns, area, final.

    `area` is the mean of a run's evaluation returns, `final` the last of them. Of the arms that are compared only seeds
    that all of them have on all tasks are there, of the raw rewards only seeds that they have on all tasks.
    """
    runs = recording.frame(path, ["task", "arm"], ["steps", "returns"])
    runs["area"] = [returns.mean() for returns in runs.returns]
    runs["final"] = [returns[-1] for returns in runs.returns]
    raw = runs.arm == "raw"
    wanted = np.where(raw, len(TASKS), len(TASKS) * len(COMPARED))
    return runs[runs.groupby([raw, "seed"]).seed.transform("size") == wanted].reset_index(drop=True)


if __name__ == "__main__":
    recording.record(recording.asked(PATH), planned(), train_trial)
