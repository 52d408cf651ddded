"""Disturbances: the learner is told one thing, the record says another; and a run without one is what it was."""

import dataclasses
import json

import gymnasium as gym
import numpy as np
import pytest
import test_rl
from outside import Line

from kscore.rl import RunConfig, disturbances, environments, train, training
from kscore.rl.disturbances import DISTURBANCES, Change, Disturbed, Noise, Outliers, Swap
from kscore.study.records import Record, key

NOISE = {"name": "noise", "deviation": 3.0}
ALL = [NOISE, {"name": "outliers", "share": 0.2}, {"name": "change", "factor": 10.0, "after": 2}, {"name": "swap"}]


def rng(seed=0):
    return np.random.default_rng(seed)


def small(env="CartPole-v1", algorithm="reinforce", **changes):
    fields = {
        "env": env,
        "algorithm": algorithm,
        "threshold": None,
        "hidden": (8,),
        "max_episodes": 8,
        "learning_rate": 0.05,
    }
    return RunConfig(**{**fields, **changes})


def told_and_recorded(monkeypatch, config, seed=0):
    """Train, and return the rewards that each update learned from, episode by episode, and the record."""
    told = []
    record = train(config, seed, watch=lambda history, batch, policy: told.extend(batch.rewards))
    return told, record


# What is done to a reward or an action


def test_noise_has_its_deviation_and_no_mean():
    told = np.array([Noise(deviation=3.0).reward(2.0, source) for source in [rng()] for _ in range(20_000)])
    assert abs(told.mean() - 2) < 0.06 and told.std() == pytest.approx(3.0, rel=0.02)


def test_outliers_come_at_their_share_with_either_sign_and_leave_the_others_alone():
    source, kind = rng(), Outliers(share=0.04, size=50.0)
    told = np.array([kind.reward(1.0, source) for _ in range(20_000)])
    assert set(told) == {-49.0, 1.0, 51.0}
    assert np.mean(told == 51) == pytest.approx(0.02, abs=0.003)
    assert np.mean(told == -49) == pytest.approx(0.02, abs=0.003)


def test_every_step_takes_as_much_of_the_stream_whatever_comes_of_it():
    rare, always, plain = rng(), rng(), rng()
    for _ in range(10):
        Outliers(share=0.0).reward(1.0, rare)
        Outliers(share=1.0).reward(1.0, always)
        plain.random()
    assert rare.random() == always.random() == plain.random()


def test_a_change_is_a_factor_and_then_an_offset():
    assert Change(factor=10.0, offset=-3.0).reward(2.0, None) == 17.0


@pytest.mark.parametrize(("count", "received"), [(2, [1, 0]), (3, [2, 1, 0])])
def test_swapped_actions_stand_in_reversed_order(count, received):
    space = gym.spaces.Discrete(count)
    assert [Swap().action(action, space) for action in np.arange(count)] == received
    assert all(space.contains(Swap().action(action, space)) for action in np.arange(count))


# The wrapper


class Watched(Line):
    """Keeps the actions that arrive."""

    def __init__(self):
        super().__init__()
        self.received = []

    def step(self, action):
        self.received.append(int(action))
        return super().step(action)


def test_a_wrapper_disturbs_from_the_episode_after_on_and_keeps_what_was_paid():
    numbers = iter([1, 2, 3])
    env = Disturbed(Watched(), Change(factor=10.0, after=2), lambda: next(numbers), rng())
    for expected in (1.0, 1.0, 10.0):
        env.reset(seed=0)
        assert [env.step(0)[1] for _ in range(4)] == [expected] * 4
        assert env.clean == [1.0] * 4


def test_without_chance_of_its_own_a_wrapper_passes_rewards_on_and_swaps_all_the_same():
    env = Disturbed(Watched(), Swap(after=1), lambda: 2)
    env.reset()
    assert [env.step(action)[1] for action in (0, 1, 0)] == [2.0, 1.0, 2.0] and env.env.received == [1, 0, 1]
    env = Disturbed(Watched(), Change(factor=10.0), lambda: 1)
    env.reset()
    assert env.step(0)[1] == 1.0


def test_a_wrapper_is_one_that_gymnasium_knows():
    env = Disturbed(gym.make("CartPole-v1"), Noise(), lambda: 1, rng())
    first, _ = env.reset(seed=3)
    second, _ = env.reset(seed=3)
    assert isinstance(env, gym.Wrapper) and np.array_equal(first, second)
    assert env.unwrapped.spec.id == "CartPole-v1" and env.action_space == gym.spaces.Discrete(2)


# Runs


@pytest.mark.parametrize("algorithm", ["reinforce", "ppo"])
def test_without_a_disturbance_a_run_is_bit_for_bit_what_it_was(algorithm, monkeypatch):
    """The pinned runs are from before there were disturbances; here, nothing of them is even touched."""
    for name in ("Disturbed", "make"):
        monkeypatch.setattr(disturbances, name, None)
    monkeypatch.setattr(disturbances, "Disturbed", type("Never", (), {}))
    assert test_rl.pinned_run(algorithm, "zscore") == test_rl.PINNED[algorithm, "zscore"]


def test_the_environment_of_a_run_without_a_disturbance_is_not_wrapped():
    environment = environments.make("CartPole-v1", 0)
    assert disturbances.put_on(environment, None, lambda: 1, rng()) is environment


def test_the_streams_that_were_there_first_are_still_the_same():
    assert training.STREAMS == (
        "training environment",
        "evaluation environment",
        "initialization",
        "actions",
        "dropout",
        "disturbance",
    )
    drawn = [stream.integers(2**31) for stream in training._streams(7)]
    assert drawn == [np.random.default_rng([7, i]).integers(2**31) for i in range(6)]


@pytest.mark.parametrize(
    "nothing",
    [
        {"name": "noise", "deviation": 0.0},
        {"name": "outliers", "share": 0.0},
        {"name": "change"},
        {"name": "swap", "after": 8},
        {**NOISE, "after": 8},
    ],
)
def test_a_disturbance_that_does_nothing_or_comes_too_late_changes_nothing(nothing):
    plain, wrapped = train(small(), 0), train(small(disturbance=nothing), 0)
    for field in ("train_returns", "eval_returns", "train_steps", "eval_steps"):
        assert plain[field] == wrapped[field]


@pytest.mark.parametrize("disturbance", ALL, ids=lambda options: options["name"])
@pytest.mark.parametrize("algorithm", ["reinforce", "actor_critic", "ppo"])
def test_a_disturbed_run_is_another_one_that_repeats_and_is_json(disturbance, algorithm):
    config = small(algorithm=algorithm, disturbance=disturbance, normalizer={"name": "running"})
    first, second = (test_rl.without_seconds(train(config, 3)) for _ in range(2))
    plain = train(dataclasses.replace(config, disturbance=None), 3)
    assert first == second == json.loads(json.dumps(first)) and first["train_returns"] != plain["train_returns"]


@pytest.mark.parametrize("disturbance", ALL[:3], ids=lambda options: options["name"])
def test_the_learner_is_told_disturbed_rewards_and_the_record_has_clean_ones(disturbance, monkeypatch):
    told, record = told_and_recorded(monkeypatch, small(disturbance={**disturbance, "after": 3}))
    assert record["train_returns"] == [float(len(rewards)) for rewards in told]  # CartPole pays 1 a step
    assert record["train_steps"] == sum(record["train_returns"])
    assert record["eval_steps"] == sum(record["eval_returns"])
    assert all(set(rewards) == {1.0} for rewards in told[:3])
    assert sum(set(rewards) != {1.0} for rewards in told[3:]) >= 4
    before = train(small(max_episodes=3), 0)
    assert record["train_returns"][:3] == before["train_returns"]
    assert record["eval_returns"][:3] == before["eval_returns"]


def test_a_scale_of_the_rewards_comes_after_the_disturbance(monkeypatch):
    told, record = told_and_recorded(
        monkeypatch, small(reward_scale=3.0, max_episodes=2, disturbance={"name": "change", "offset": 1.0})
    )
    assert {reward for rewards in told for reward in rewards} == {6.0}
    assert record["train_returns"] == [float(len(rewards)) for rewards in told]


def test_the_criterion_is_about_clean_returns():
    """With a threshold that only the told rewards could reach, nobody arrives."""
    config = small(
        "outside:Line-v0", threshold=25.0, criterion="both", window=1, disturbance={"name": "change", "factor": 100.0}
    )
    assert train(config, 0)["status"] == "censored"
    assert train(dataclasses.replace(config, threshold=10.0), 0)["status"] == "solved"


class Second(Line):
    """Pays 1 for the second action, and nothing for the first."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float(action), *rest


gym.register("Second-v0", Second, max_episode_steps=20)


@pytest.mark.parametrize(
    ("per_update", "every", "after", "swapped"),
    [
        (1, 1, 3, [False, False, False, True, True, True, True, True]),
        (1, 2, 3, [False, True, True, True]),
        (3, 1, 3, [False, True, True]),
        (3, 1, 4, [False, True, True]),
        (3, 1, 6, [False, False, True]),
        (1, 1, 0, [True] * 8),
        (2, 2, 4, [False, True]),
        (2, 2, 3, [True, True]),
    ],
)
def test_swapped_actions_are_swapped_in_the_evaluation_from_the_same_episode_on(
    per_update, every, after, swapped, monkeypatch
):
    """A policy that always takes the second action is paid 10 until the swap, and nothing from then on."""
    for name in ("sample", "greedy"):
        monkeypatch.setattr(training.Policy, name, lambda *_: np.int64(1))
    record = train(
        small(
            "Second-v0",
            episodes_per_update=per_update,
            evaluate_every=every,
            disturbance={"name": "swap", "after": after},
        ),
        0,
    )
    assert record["eval_returns"] == [0.0 if now else 10.0 for now in swapped]
    assert record["train_returns"] == [10.0] * after + [0.0] * (8 - after)


def test_the_actions_that_are_learned_from_are_those_that_the_policy_took(monkeypatch):
    """What the environment made of them is its own affair: it is the policy's actions that have probabilities."""
    for name in ("sample", "greedy"):
        monkeypatch.setattr(training.Policy, name, lambda *_: np.int64(1))
    seen = []
    train(
        small("Second-v0", disturbance={"name": "swap"}, max_episodes=1),
        0,
        watch=lambda history, batch, policy: seen.extend(batch.actions.tolist()),
    )
    assert seen == [1] * 10


def test_seeds_have_disturbances_of_their_own_and_arms_of_a_seed_share_them(monkeypatch):
    config = small("outside:Line-v0", disturbance=NOISE, max_episodes=1)
    (first,), _ = told_and_recorded(monkeypatch, config, 1)
    (other,), _ = told_and_recorded(monkeypatch, config, 2)
    (arm,), record = told_and_recorded(monkeypatch, dataclasses.replace(config, normalizer={"name": "none"}), 1)
    expected = 3 * np.random.default_rng([1, 5]).standard_normal(10)
    assert first == arm != other
    assert set(np.round(np.array(first) - expected, 9)) <= {1.0, 2.0}


# The setting


def test_every_option_is_in_the_config_and_survives_json():
    config = small(disturbance={"name": "outliers", "size": np.int64(50)})
    assert config.disturbance == {"name": "outliers", "after": 0, "share": 0.01, "size": 50.0}
    assert {type(value) for value in config.disturbance.values()} == {str, int, float}
    assert RunConfig(**json.loads(json.dumps(config.to_dict()))) == config


def test_the_order_of_options_does_not_count_and_each_one_does():
    options = {
        "noise": {"deviation": 2.0},
        "outliers": {"share": 0.5, "size": 3.0},
        "change": {"factor": 2.0, "offset": 1.0},
        "swap": {},
    }
    assert {name: {"after", *own} for name, own in options.items()} == {
        name: {f.name for f in dataclasses.fields(kind)} for name, kind in DISTURBANCES.items()
    }
    settings = [
        {"name": name, **one}
        for name, own in options.items()
        for one in [{}, {"after": 7}, *({option: value} for option, value in own.items())]
    ]
    assert len({key(small(disturbance=one), 0) for one in [None, *settings]}) == len(settings) + 1
    assert key(small(disturbance={"after": 7, "name": "swap"}), 0) == key(
        small(disturbance={"name": "swap", "after": 7}), 0
    )


def test_a_recorded_disturbed_run_has_the_key_of_its_configuration():
    config = small(disturbance=NOISE, max_episodes=1)
    assert Record.of(json.loads(json.dumps(train(config, 0)))).key == key(config, 0)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("noise", "^disturbance must be None or a dict with a 'name' and its options, got 'noise'"),
        ({}, "^disturbance must be None or a dict .*got {}"),
        ({"deviation": 1.0}, "^disturbance must be None or a dict"),
        ({"name": "nois"}, "^disturbance must be one of 'noise', .*got 'nois' .did you mean 'noise'"),
        ({"name": ["noise"]}, r"^disturbance must be one of .*got \['noise'\]"),
        ({"name": "noise", 3: 1}, "must be None"),
        ({"name": "noise", "size": 1.0}, "^option of disturbance 'noise' must be one of .*'deviation', got 'size'"),
        ({"name": "noise", "deviation": -1.0}, "^deviation must be between 0 .*got -1"),
        ({"name": "noise", "after": -1}, "^after must be a whole number of at least 0, got -1"),
        ({"name": "noise", "after": 1.5}, "^after must be a whole number of at least 0, got 1.5"),
        ({"name": "outliers", "share": 1.5}, "^share must be between 0 and 1, got 1.5"),
        ({"name": "outliers", "size": "big"}, "^size must be a number, got 'big'"),
        ({"name": "change", "factor": 0.0}, "^factor must be positive, got 0"),
        ({"name": "change", "offset": float("nan")}, "^offset must be finite, got nan"),
    ],
    ids=str,
)
def test_a_bad_disturbance_is_refused_in_a_sentence(bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        small(disturbance=bad)


def test_actions_that_cannot_be_swapped_are_refused_in_a_sentence_and_others_are_not():
    with pytest.raises(ValueError, match="^disturbance must leave the actions of Pendulum-v1 alone, .*got .*'swap'"):
        small("Pendulum-v1", disturbance={"name": "swap"})
    assert train(small("Pendulum-v1", disturbance=NOISE, max_episodes=1), 0)["status"] == "censored"


def test_a_disturbed_reward_that_is_not_finite_ends_the_run():
    record = train(small("Huge-v0", disturbance={"name": "change", "factor": 1e100, "offset": 1e100}), 0)
    assert record["status"] == "diverged" and record["episodes"] <= 3
