"""Short tasks and observations that count: one-hot, with a limit, seeded, and learned by whoever has a centre."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest

from kscore import normalizers
from kscore.rl import RunConfig, environments, train
from kscore.rl.config import ALGORITHMS
from kscore.rl.tasks import LONGEST_HAND

BANDIT, BLACKJACK, DRY = (f"kscore.rl.tasks:{name}" for name in ("Bandit-v0", "TimedBlackjack-v1", "DryLake-v1"))


# Observations that count


class Counting(gym.Env):
    """Shows the samples of a space, and never ends by itself."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


SPACES = {
    "Three": gym.spaces.Discrete(3),
    "Late": gym.spaces.Discrete(3, start=5),
    "Several": gym.spaces.MultiDiscrete([2, 4]),
    "Bits": gym.spaces.MultiBinary(5),
    "Pair": gym.spaces.Tuple([gym.spaces.Discrete(2), gym.spaces.Discrete(3)]),
}
for name, space in SPACES.items():
    gym.register(f"{name}-v0", Counting, max_episode_steps=3, kwargs={"space": space})


@pytest.mark.parametrize(
    ("name", "size", "ones"), [("Three", 3, 1), ("Late", 3, 1), ("Several", 6, 2), ("Bits", 5, None), ("Pair", 5, 2)]
)
def test_counts_become_ones_and_zeros(name, size, ones):
    made = environments.make(f"{name}-v0", 0)
    seen = np.array([made.env.reset()[0] for _ in range(50)])
    assert made.observation_size == size and seen.shape == (50, size) and set(seen.ravel()) == {0, 1}
    assert ones is None or set(seen.sum(axis=1)) == {ones}
    assert (seen.max(axis=0) == 1).all()
    assert train(RunConfig(env=f"{name}-v0", algorithm="ppo", threshold=None, max_episodes=2), 0)["episodes"] == 2


def test_a_flat_box_is_left_as_it_is():
    made = environments.make("CartPole-v1", 0)
    assert made.env is made.env.unwrapped


def test_a_hand_of_blackjack_is_one_hot_in_three_places():
    made = environments.make(BLACKJACK, 0)
    observation, _ = made.env.reset()
    hand, dealer, ace = made.env.unwrapped._get_obs()
    assert np.flatnonzero(observation).tolist() == [hand, 32 + dealer, 43 + ace]


# The tasks


def test_gymnasiums_blackjack_has_no_limit_and_ours_is_the_same_game_with_one_that_cuts_nothing_off():
    with pytest.raises(ValueError, match="^env must have a time limit"):
        environments.make("Blackjack-v1", 0)
    ours, theirs = environments.make(BLACKJACK, 3), gym.make("Blackjack-v1").unwrapped
    theirs.reset(seed=3)
    assert ours.limit == LONGEST_HAND and (ours.env.unwrapped.sab, ours.env.unwrapped.natural) == (True, False)
    for _ in range(2000):  # always one more card: no game is longer
        ours.env.reset()
        theirs.reset()
        steps, terminated = 0, False
        while not terminated:
            _, reward, terminated, *_ = ours.env.step(1)
            assert (reward, terminated) == theirs.step(1)[1:3]
            steps += 1
        assert steps < LONGEST_HAND and reward == -1


def test_a_bandit_pays_for_the_right_action_once_and_is_over():
    made = environments.make(BANDIT, 0)
    paid = {True: [], False: []}
    contexts = set()
    for i in range(4000):
        observation, _ = made.env.reset()
        context = int(observation.argmax())
        contexts.add(context)
        _, reward, terminated, truncated, _ = made.env.step(i % 4)
        assert terminated and not truncated
        paid[context == i % 4].append(reward)
    assert made.limit == 1 and contexts == {0, 1, 2, 3} and made.actions == gym.spaces.Discrete(4)
    assert np.mean(paid[True]) == pytest.approx(1, abs=0.06) and np.mean(paid[False]) == pytest.approx(0, abs=0.04)
    assert np.std(paid[True]) == pytest.approx(0.5, abs=0.05) and np.std(paid[False]) == pytest.approx(0.5, abs=0.03)


def test_a_bandit_repeats_with_its_seed():
    first, same, other = (
        [(int(made.env.reset()[0].argmax()), made.env.step(0)[1]) for _ in range(20)]
        for made in (environments.make(BANDIT, seed) for seed in (1, 1, 2))
    )
    assert first == same != other


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"contexts": 0}, "^contexts must .*got 0"),
        ({"actions": 1.5}, "^actions must .*got 1.5"),
        ({"deviation": -1}, "^deviation must .*got -1"),
    ],
)
def test_a_bandit_that_cannot_be_is_refused_in_a_sentence(bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        gym.make(BANDIT, **bad)


@pytest.mark.parametrize("action", [4, -1, 1.5, "left", None])
def test_a_bandit_refuses_what_is_no_action(action):
    bandit = gym.make(BANDIT).unwrapped
    bandit.reset(seed=0)
    with pytest.raises(ValueError, match=f"^action must be a whole number from 0 to 3, got {action!r}"):
        bandit.step(action)


def test_on_the_dry_lake_a_step_goes_where_it_was_meant_to():
    made = environments.make(DRY, 0)
    made.env.reset()
    rewards = [made.env.step(action)[1:3] for action in (1, 1, 2, 2, 1, 2)]  # down, down, right, right, down, right
    assert rewards == [(0, False)] * 5 + [(1, True)]


# Learning


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("env", ["Acrobot-v1", "FrozenLake-v1", BANDIT, BLACKJACK, DRY])
def test_every_task_has_a_preset_that_trains(env, algorithm):
    config = dataclasses.replace(RunConfig.preset(env, algorithm), max_episodes=2)
    assert config.normalizer["name"] == "zscore" and train(config, 0)["episodes"] == 2
    assert config.normalize_advantages == (env == "Acrobot-v1" and algorithm in ("gae", "ppo"))


def learned(env, normalizer, algorithm="reinforce", **changes):
    config = dataclasses.replace(RunConfig.preset(env, algorithm), normalizer={"name": normalizer}, **changes)
    return train(config, 2000)


def test_of_one_step_a_z_score_by_the_episode_leaves_nothing():
    assert [normalizers.make("zscore")([paid]).tolist() for paid in (-3.0, 0.0, 7.0)] == [[0.0]] * 3


@pytest.mark.parametrize("algorithm", ["reinforce", "actor_critic", "ppo"])
def test_a_bandit_is_learned_with_a_running_centre_and_never_with_a_z_score_by_the_episode(algorithm):
    assert learned(BANDIT, "running", algorithm)["solved"]
    failed = learned(BANDIT, "zscore", algorithm)
    assert not failed["solved"] and np.mean(failed["train_returns"]) < 0.4  # by chance 0.25


def test_without_a_critic_a_z_score_by_the_episode_does_not_even_move_on_a_bandit():
    actions = []
    config = dataclasses.replace(RunConfig.preset(BANDIT, "reinforce"), max_episodes=50)
    train(config, 2000, progress=lambda history, policy: actions.append(policy.outputs(np.ones(4)).tolist()))
    assert len(actions) == 50 and all(now == actions[0] for now in actions)


def test_the_dry_lake_is_learned_with_a_running_centre_and_not_with_a_z_score_by_the_episode():
    assert learned(DRY, "running")["solved"] and not learned(DRY, "zscore")["solved"]
