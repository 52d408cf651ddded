"""PPO of Stable-Baselines3 with four treatments of its rewards: settings, runs, and what is read of them."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from kscore import journal
from kscore.labs import sb3_study
from kscore.labs.sb3_study import ARMS, COMPARED, TASKS, TrialConfig, train_trial
from kscore.wrappers.sb3 import NormalizedRolloutBuffer, VecKScore

TINY = TrialConfig(
    task="CartPole-v1", arm="veckscore", steps=256, every=128, lanes=2, rollout=32, batch=32, epochs=2, episodes=2
)


def same(run):
    """What two runs of the same configuration and seed have in common."""
    return {name: run[name] for name in ("config", "seed", "steps", "returns")}


# Settings


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"task": "CartPole-v0"}, r"^task must be one of 'CartPole-v1', .*, got 'CartPole-v0' \(did you mean"),
        ({"arm": "vecnormalise"}, r"^arm must be one of 'vecnormalize', .*, got 'vecnormalise'"),
        ({"lanes": 0}, "^lanes must be a whole number of at least 1, got 0"),
        ({"episodes": 2.5}, "^episodes must be a whole number of at least 1, got 2.5"),
        ({"learning_rate": 0}, "^learning_rate must be positive, got 0"),
        ({"gamma": 1.1}, "^gamma must be between 0 and 1, got 1.1"),
        ({"gae_lambda": -0.1}, "^gae_lambda must be between 0 and 1, got -0.1"),
        ({"entropy": -1}, "^entropy must be between 0 and .*, got -1"),
        ({"explores_by_state": 1}, "^explores_by_state must be True or False, got 1"),
        ({"batch": 48}, "^batch must divide lanes × rollout = 64, got 48"),
        ({"every": 100}, "^every must be a multiple of lanes × rollout = 64, got 100"),
        ({"steps": 300}, "^steps must be a multiple of every = 128, got 300"),
    ],
)
def test_bad_settings_get_a_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        replace(TINY, **change)


def test_a_preset_is_that_of_its_task():
    with pytest.raises(ValueError, match="^task must be one of 'CartPole-v1', .*, got 'Pendulum'"):
        TrialConfig.preset("Pendulum", "raw")
    assert TrialConfig.preset("Pendulum-v1", "raw").gamma == sb3_study.PRESETS["Pendulum-v1"]["gamma"]


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_a_bad_seed_gets_a_sentence(seed):
    with pytest.raises(ValueError, match="^seed must be a whole number of at least 0"):
        train_trial(TINY, seed)


# What the arms share, and where they differ


@pytest.mark.parametrize("task", TASKS)
def test_arms_have_equal_settings(task):
    others = [
        {name: value for name, value in asdict(TrialConfig.preset(task, arm)).items() if name != "arm"} for arm in ARMS
    ]
    assert all(one == others[0] for one in others)


def test_arms_differ_in_what_becomes_of_rewards():
    models = {arm: sb3_study.learner(replace(TINY, arm=arm, gamma=0.9), 3) for arm in ARMS}
    kinds = {arm: (type(model.env), type(model.rollout_buffer)) for arm, model in models.items()}
    assert kinds == {
        "vecnormalize": (VecNormalize, RolloutBuffer),
        "veckscore": (VecKScore, RolloutBuffer),
        "buffer": (DummyVecEnv, NormalizedRolloutBuffer),
        "raw": (DummyVecEnv, RolloutBuffer),
    }
    for arm in ("vecnormalize", "veckscore"):
        env = models[arm].env
        assert (env.gamma, env.norm_obs, env.norm_reward, env.training) == (0.9, False, True, True)
    assert models["buffer"].rollout_buffer.normalizer.name == "episode"
    settings = (
        "n_steps",
        "batch_size",
        "n_epochs",
        "learning_rate",
        "gamma",
        "gae_lambda",
        "ent_coef",
        "normalize_advantage",
        "use_sde",
        "seed",
    )
    assert len({tuple(getattr(model, name) for name in settings) for model in models.values()}) == 1


def test_a_seed_gives_all_arms_the_same_start():
    """The same weights, and the same first observations; another seed gives others."""

    def start(arm, seed):
        model = sb3_study.learner(replace(TINY, arm=arm), seed)
        weights = torch.cat([each.detach().ravel() for each in model.policy.parameters()]).numpy()
        return np.concatenate([weights, model.env.reset().ravel()])

    first = start("raw", 5)
    assert all(np.array_equal(start(arm, 5), first) for arm in ARMS)
    assert not np.isclose(start("raw", 6)[-8:], first[-8:]).any()


def test_lanes_of_neighbouring_seeds_never_meet():
    numbers = {sb3_study.spread(seed, stream) for seed in sb3_study.SEEDS for stream in range(30)}
    assert len(numbers) == 30 * len(sb3_study.SEEDS) and min(np.diff(sorted(numbers))) > 16


def test_scaled_rewards_change_what_is_learned():
    long = replace(TINY, steps=512)
    curves = [train_trial(replace(long, arm=arm), 1)["returns"] for arm in ARMS]
    assert len({tuple(curve) for curve in curves}) > 1


# Runs


@pytest.mark.parametrize("arm", ARMS)
def test_a_run_is_evaluated_at_its_steps_and_can_be_repeated(arm):
    run = train_trial(replace(TINY, arm=arm), 7)
    assert run["steps"] == [128, 256] and len(run["returns"]) == 2 and all(0 < one <= 500 for one in run["returns"])
    assert run["versions"]["stable-baselines3"] != "not installed"
    np.random.seed(0)
    assert same(train_trial(replace(TINY, arm=arm), 7)) == same(run)


def test_evaluations_are_in_rewards_that_nobody_touched():
    """A falling CartPole earns at least 8; scaled by a spread of returns of that size it would earn less than 5."""
    for arm in ARMS:
        assert min(train_trial(replace(TINY, arm=arm), 7)["returns"]) >= 8


def test_generators_and_threads_are_left_as_they_were():
    torch.manual_seed(1)
    np.random.seed(1)
    expected = torch.random.get_rng_state().clone(), np.random.get_state()[1].copy(), torch.get_num_threads()
    train_trial(TINY, 0)
    assert torch.equal(torch.random.get_rng_state(), expected[0]) and torch.get_num_threads() == expected[2]
    assert np.array_equal(np.random.get_state()[1], expected[1])


# The recorded study


def test_the_plan_is_balanced_and_raw_rewards_come_last():
    plan = sb3_study.planned()
    assert len(plan) == len(TASKS) * len(ARMS) * 10 == len({(config, seed) for config, seed in plan})
    assert {seed for _, seed in plan} == set(range(9000, 9010))
    block = len(TASKS) * len(COMPARED)
    assert {seed for _, seed in plan[:block]} == {9000} and "raw" not in {
        config.arm for config, _ in plan[: 10 * block]
    }


def line(task, arm, seed, returns=(1.0, 3.0)):
    return {"config": {"task": task, "arm": arm}, "seed": seed, "steps": [10, 20], "returns": list(returns)}


def test_only_complete_seeds_are_read(tmp_path):
    path = tmp_path / "sb3.jsonl"
    for seed, arms in ((1, ARMS), (2, COMPARED), (3, COMPARED[:2])):
        for task in TASKS:
            for arm in arms:
                journal.append(path, line(task, arm, seed))
    journal.append(path, line(TASKS[0], "raw", 2))
    runs = sb3_study.read(path)
    assert sorted(runs[runs.arm != "raw"].seed.unique()) == [1, 2] and set(runs[runs.arm == "raw"].seed) == {1}
    assert len(runs) == 2 * 9 + 3 and set(runs.area) == {2.0} and set(runs.final) == {3.0}


def test_no_runs_get_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="^path must be a file of recorded runs, got .*which holds none"):
        sb3_study.read(tmp_path / "none.jsonl")
