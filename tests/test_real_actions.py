"""Tasks with real actions: their presets, the units of actions, and MuJoCo, which is an extra."""

import dataclasses
import os
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import ClipAction, RescaleAction
from small_runs import close

from kscore.rl import RunConfig, environments, train
from kscore.rl.environments import Diverged, PlainActions

TASKS = ("Pendulum-v1", "LunarLanderContinuous-v3", "BipedalWalker-v3", "InvertedPendulum-v5", "HalfCheetah-v5")


@pytest.mark.parametrize("env", TASKS)
@pytest.mark.parametrize("algorithm", ["reinforce", "actor_critic", "gae", "ppo"])
def test_every_preset_trains_with_several_episodes_in_an_update(env, algorithm):
    config = dataclasses.replace(RunConfig.preset(env, algorithm), max_episodes=4, evaluate_every=1)
    assert config.episodes_per_update == 4 and config.normalize_advantages is (algorithm != "reinforce")
    record = train(config, 0)
    assert (record["episodes"], len(record["eval_returns"]), record["status"]) == (4, 1, "censored")
    assert np.isfinite(record["train_returns"] + record["eval_returns"]).all()


def test_four_episodes_an_update_on_pendulum_learn():
    preset = RunConfig.preset("Pendulum-v1", "ppo")
    record = train(dataclasses.replace(preset, normalizer={"name": "running"}, max_episodes=240), 0)
    assert np.mean(record["eval_returns"][-10:]) > np.mean(record["eval_returns"][:10]) + 500


class Uneven(gym.Env):
    """Say which action arrived; the two ranges differ."""

    action_space = gym.spaces.Box(np.array([-1, 2], np.float32), np.array([3, 2.5], np.float32))
    observation_space = gym.spaces.Box(-9, 9, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.array(action), 0.0, False, False, {}


@pytest.mark.parametrize("env", ["uneven", "Pendulum-v1", "LunarLanderContinuous-v3"])
def test_actions_are_in_units_of_half_their_range_around_its_middle_and_clipped(env):
    ours, theirs = (
        PlainActions(Uneven() if env == "uneven" else gym.make(env).unwrapped),
        ClipAction(RescaleAction(Uneven() if env == "uneven" else gym.make(env).unwrapped, -1.0, 1.0)),
    )
    ours.reset(seed=0)
    theirs.reset(seed=0)
    for action in np.random.default_rng(0).normal(0, 1.5, (20, ours.action_space.shape[0])).astype(np.float32):
        for mine, peer in zip(ours.step(action)[:2], theirs.step(np.clip(action, -1, 1))[:2], strict=True):
            close(mine, peer, rtol=1e-5, atol=1e-5)


def test_an_action_that_is_not_finite_ends_the_run_and_a_large_one_does_not():
    env = PlainActions(Uneven())
    close(env.step(np.array([3e38, -3e38], np.float32))[0], [3, 2])
    with pytest.raises(Diverged, match="an action is not finite"):
        env.step(np.array([np.nan, 0], np.float32))


def test_mujoco_leaves_no_file_where_one_happens_to_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environments.make("HalfCheetah-v5", seed=0).env.close()
    assert not os.listdir(tmp_path)


def test_without_mujoco_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(
        ValueError,
        match="env must be an id that gymnasium can make, got 'HalfCheetah-v5': an environment of MuJoCo needs mujoco, "
        "which is not installed; in a checkout of this collection: pip install .*mujoco",
    ):
        environments.make("HalfCheetah-v5", seed=0)
