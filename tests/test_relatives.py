"""PopArt, percentile and reward scaling, logarithms: against closed forms, brute force and the libraries themselves."""

import json

import gymnasium as gym
import numpy as np
import outside
import pytest
import torch
from gymnasium.wrappers import NormalizeReward
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from kscore import normalizers
from kscore.normalizers import make
from kscore.normalizers.base import symexp, symlog
from kscore.rl import RunConfig, algorithms, train, training
from kscore.rl.algorithms import Batch
from kscore.rl.environments import Episode
from kscore.rl.units import Logarithms, Units, units_of

RELATIVES = ("popart", "percentile", "reward_scale", "symlog")
LEARNING = ("popart", "percentile", "reward_scale")
property_test = examples(40)
every_relative = pytest.mark.parametrize("name", RELATIVES)


def rng(seed=0):
    return np.random.default_rng(seed)


EPISODES = [rng(n).normal(30, 10, n) for n in (7, 1, 12, 5)]


# The promises of every normalizer


@every_relative
@property_test
@given(st.lists(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20), min_size=1, max_size=3))
def test_scores_are_finite_and_as_many_as_the_returns(name, seen):
    normalizer = make(name)
    for returns in seen:
        scores = normalizer(returns)
        assert scores.shape == (len(returns),) and np.isfinite(scores).all()


@pytest.mark.parametrize("name", LEARNING)
def test_a_state_goes_through_json_and_goes_on_as_if_uninterrupted(name):
    kept, restored = make(name), make(name)
    kept(EPISODES[0])
    restored.load_state_dict(json.loads(json.dumps(kept.state_dict())))
    for returns in EPISODES[1:]:
        assert np.array_equal(restored(returns), kept(returns))
    assert restored.state_dict() == kept.state_dict() != make(name).state_dict()


@pytest.mark.parametrize("name", LEARNING)
def test_what_is_frozen_applies_and_does_not_learn(name):
    normalizer = make(name)
    normalizer(EPISODES[0])
    normalizer.frozen, before = True, normalizer.state_dict()
    once = normalizer(EPISODES[1])
    assert normalizer.state_dict() == before and np.array_equal(normalizer(EPISODES[1]), once)
    fresh = make(name)
    fresh.load_state_dict(before)
    centre, scale = fresh.recall(EPISODES[1])
    assert np.allclose(once, (EPISODES[1] - centre) / scale, rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("popart", {"rate": 0.0}, "rate must be positive, got 0.0"),
        ("popart", {"rate": 1.5}, "rate must be between .* and 1, got 1.5"),
        ("popart", {"least": 5.0, "most": 2.0}, "least must be between .* and 2, got 5.0"),
        ("popart", {"debiased": 1}, "debiased must be True or False, got 1"),
        ("percentile", {"low": 100.0}, "low must be at least 0 and less than 100, got 100.0"),
        ("percentile", {"low": 50.0, "high": 40.0}, "high must be between 50 and 100, got 40.0"),
        ("percentile", {"least": 0.0}, "least must be positive, got 0.0"),
        ("reward_scale", {"gamma": 1.1}, "gamma must be between 0 and 1, got 1.1"),
        ("reward_scale", {"reset": "always"}, "reset must be one of 'episode', 'termination', 'never', got 'always'"),
        ("reward_scale", {"start": 0.0}, "start must be positive, got 0.0"),
    ],
)
def test_a_bad_option_gets_a_sentence(name, options, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        make(name, **options)


# PopArt


def test_popart_is_the_weighted_mean_and_deviation_of_whole_episodes():
    popart, rate = make("popart", rate=0.2), 0.2
    for returns in EPISODES:
        popart(returns)
    weights = (1 - rate) ** np.arange(len(EPISODES))[::-1]
    mean = np.average([returns.mean() for returns in EPISODES], weights=weights)
    square = np.average([np.mean(returns**2) for returns in EPISODES], weights=weights)
    assert tuple(popart.recall(EPISODES[0])) == pytest.approx((mean, np.sqrt(square - mean**2)), rel=1e-12)


def test_popart_without_debiasing_starts_from_zero_and_one():
    """As van Hasselt and others write it: μ ← (1 - β) μ + β G, ν ← (1 - β) ν + β G², from μ = 0 and ν = 1."""
    popart = make("popart", rate=0.25, debiased=False)
    popart([2.0])
    assert (popart.mean, popart.square) == pytest.approx((0.5, 0.75 + 1.0))
    popart([2.0, 4.0])
    assert (popart.mean, popart.square) == pytest.approx((0.75 * 0.5 + 0.75, 0.75 * 1.75 + 2.5))


@pytest.mark.parametrize(("returns", "scale"), [([5.0, 5.0], 1e-4), ([-1e9, 1e9], 1e6)])
def test_popart_keeps_its_scale_within_bounds(returns, scale):
    popart = make("popart")
    popart(returns)
    assert popart.recall(np.array(returns)).scale == scale


# Percentiles


def test_percentiles_are_followed_from_zero_and_never_divide_by_less_than_one():
    percentile, low, high = make("percentile", rate=0.1), 0.0, 0.0
    for returns in EPISODES:
        scores = percentile(returns)
        low, high = (0.9 * old + 0.1 * np.percentile(returns, at) for old, at in ((low, 5), (high, 95)))
        assert np.allclose(scores, returns / max(high - low, 1.0), rtol=1e-12)
    assert high - low > 1
    small = make("percentile", rate=1.0)
    assert np.array_equal(small([0.1, 0.5]), [0.1, 0.5])


def test_percentiles_without_bias_have_the_range_of_the_first_episode():
    returns = np.arange(101.0)
    assert np.allclose(make("percentile", debiased=True)(returns), returns / 90, rtol=1e-12)


# Rewards


def brute_force(episodes, gamma, reset, start):
    """Every discounted sum so far, and the variance over all of them and a prior of so many, from scratch each time."""
    sums, scaled, carried = [], [], 0.0
    for rewards in episodes:
        out = []
        for t, reward in enumerate(rewards):
            carried = reward + gamma * (0.0 if reset == "termination" and t == len(rewards) - 1 else carried)
            sums.append(carried)
            weights, values = np.array([*np.ones(len(sums)), start]), np.array([*sums, 0.0])
            mean = np.average(values, weights=weights)
            var = np.average([*(np.array(sums) - mean) ** 2, 1 + mean**2], weights=weights)
            out.append(reward / np.sqrt(var + 1e-8))
        carried = 0.0 if reset == "episode" else carried
        scaled.append(out)
    return scaled


@pytest.mark.parametrize("reset", ["episode", "termination", "never"])
@pytest.mark.parametrize("start", [1e-4, 1.0])
def test_reward_scales_are_those_of_all_discounted_sums_so_far(reset, start):
    normalizer = make("reward_scale", gamma=0.9, reset=reset, start=start)
    for rewards, expected in zip(EPISODES, brute_force(EPISODES, 0.9, reset, start), strict=True):
        assert np.allclose(normalizer(rewards), expected, rtol=1e-9)


class Scripted(gym.Env):
    """Plays rewards from a list, episode by episode; each ends by termination, or is cut off."""

    observation_space, action_space = gym.spaces.Box(-1, 1, (1,)), gym.spaces.Discrete(2)

    def __init__(self, episodes, terminates=True):
        self.episodes, self.terminates, self.number = episodes, terminates, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number, self.step_number = (self.number + 1) % len(self.episodes), 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        rewards = self.episodes[self.number]
        reward, self.step_number = float(rewards[self.step_number]), self.step_number + 1
        over = self.step_number == len(rewards)
        return np.zeros(1, np.float32), reward, over and self.terminates, over and not self.terminates, {}


@pytest.mark.parametrize(("terminates", "reset"), [(True, "termination"), (False, "never")])
def test_gymnasiums_wrapper_gives_the_same_rewards(terminates, reset):
    env, ours = NormalizeReward(Scripted(EPISODES, terminates), gamma=0.9), make("reward_scale", gamma=0.9, reset=reset)
    for rewards in EPISODES:
        env.reset()
        assert np.allclose([env.step(0)[1] for _ in rewards], ours(rewards), rtol=1e-6)


@pytest.mark.parametrize("terminates", [True, False])
def test_stable_baselines_wrapper_gives_the_same_rewards(terminates):
    inner = DummyVecEnv([lambda: Scripted(EPISODES, terminates)])
    env, ours = VecNormalize(inner, norm_obs=False, gamma=0.9, clip_reward=np.inf), make("reward_scale", gamma=0.9)
    env.reset()
    for rewards in EPISODES:
        theirs = [env.step(np.array([0]))[1][0] for _ in rewards]
        assert np.allclose(theirs, ours(rewards), rtol=1e-5)


def test_the_first_reward_is_large_unless_the_start_counts_for_something():
    assert make("reward_scale")([1.0])[0] == pytest.approx(70.7, abs=0.05)
    assert make("reward_scale", start=1.0)([1.0])[0] == pytest.approx(1 / np.sqrt(0.75))


def test_only_a_reset_at_the_end_keeps_a_terminal_reward_out_of_the_next_episode():
    """LunarLander's -100 at the end: what is carried into the next episode."""
    for reset, carried in (("episode", 0.0), ("termination", -100.0), ("never", -100.0 + 0.99 * 2.0)):
        normalizer = make("reward_scale", reset=reset)
        normalizer([2.0, -100.0])
        assert normalizer.state_dict()["sum"] == pytest.approx(carried)


# Logarithms


@property_test
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=10).map(np.array))
def test_symexp_undoes_symlog(values):
    assert np.allclose(symexp(symlog(values)), values, rtol=1e-9, atol=1e-12)
    assert np.allclose(make("symlog")(values), symlog(values), rtol=1e-9, atol=1e-9)


def test_symlog_by_hand():
    assert symlog(np.array([0.0, np.e - 1, 1 - np.e])) == pytest.approx([0.0, 1.0, -1.0])


def test_a_critic_in_logarithms_speaks_of_the_returns_themselves():
    units = units_of({"name": "symlog"})
    values = torch.tensor([-250.0, 0.0, 3.0, 1e5], dtype=torch.float64)
    assert isinstance(units, Logarithms)
    assert torch.allclose(units.outputs(values), torch.from_numpy(symlog(values.numpy())), rtol=1e-12)
    assert torch.allclose(units.values(units.outputs(values)), values, rtol=1e-9)
    assert np.array_equal(units.differences(np.array([4.0])), [4.0])
    assert units_of(None) is None and isinstance(units_of({"name": "popart"}), Units)


# In training


def config(algorithm="actor_critic", **changes):
    return RunConfig(
        **{
            "env": "CartPole-v1",
            "algorithm": algorithm,
            "threshold": None,
            "hidden": (8,),
            "max_episodes": 3,
            "normalizer": {"name": "none"},
            **changes,
        }
    )


def batch(*lengths):
    return Batch.of(
        [
            Episode(
                rng(n).normal(size=(n, 4)).astype(np.float32),
                rng(n).integers(2, size=n),
                rng(n).normal(1, 2, n).tolist(),
                None,
            )
            for n in lengths
        ]
    )


@pytest.mark.parametrize("algorithm", ["reinforce", "actor_critic", "gae", "ppo"])
def test_rewards_go_through_their_door_before_anything_is_summed_up(algorithm, monkeypatch):
    monkeypatch.setattr(outside.Watching, "seen", [])
    settings = config(algorithm, reward_normalizer={"name": "reward_scale"}, normalizer={"name": "outside:Watching"})
    episodes, ours = batch(6, 4), make("reward_scale")
    scaled = [ours(rewards).tolist() for rewards in episodes.rewards]
    agent = training.make_agent(settings, 4, gym.spaces.Discrete(2), rng(1), rng(2))
    algorithms.ALGORITHMS[algorithm](agent, episodes, algorithms.normalization(settings), settings)
    expected = [algorithms.discounted_returns(rewards, settings.gamma) for rewards in scaled]
    assert len(outside.Watching.seen) == 2
    for (_, seen), returns in zip(outside.Watching.seen, expected, strict=True):
        assert np.allclose(seen, returns, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.001, 1000.0])
def test_a_reward_scale_is_told_to_the_learner_and_not_recorded(scale, monkeypatch):
    monkeypatch.setattr(outside.Watching, "seen", [])
    record = train(config(reward_scale=scale, normalizer={"name": "outside:Watching"}), 0)
    assert all(value in range(1, 501) for value in record["train_returns"] + record["eval_returns"])
    for (_, seen), steps in zip(outside.Watching.seen, record["train_returns"], strict=True):
        assert np.allclose(seen, scale * algorithms.discounted_returns([1.0] * int(steps), 0.99), rtol=1e-12)


@pytest.mark.parametrize("scale", [0.001, 1000.0])
@pytest.mark.parametrize(
    "options",
    [
        {"normalizer": {"name": "popart", "least": 1e-9}},
        {"reward_normalizer": {"name": "reward_scale", "start": 1e-20}},
        {"normalizer": {"name": "percentile", "least": 1e-9, "debiased": True}},
    ],
    ids=["popart", "reward_scale", "percentile"],
)
def test_what_has_no_scale_of_its_own_learns_the_same_from_rewards_of_any_size(options, scale):
    plain, scaled = (train(config(reward_scale=factor, dropout=0.0, **options), 1) for factor in (1.0, scale))
    assert scaled["train_returns"] == plain["train_returns"]


@pytest.mark.parametrize(
    "options",
    [
        {"value_scale": {"name": "symlog"}},
        {"value_scale": {"name": "episode"}},
        {"value_scale": {"name": "popart"}},
        {"normalizer": {"name": "percentile"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("algorithm", ["actor_critic", "gae", "ppo"])
def test_every_relative_trains_on_rewards_of_any_size(algorithm, options):
    for scale in (0.001, 1000.0):
        record = train(config(algorithm, reward_scale=scale, **options), 0)
        assert record["status"] == "censored" and record["episodes"] == 3


def test_the_relatives_are_all_there():
    assert set(RELATIVES) < set(normalizers.NORMALIZERS)


def test_a_first_episode_that_pays_nothing_leaves_a_state_that_can_be_loaded():
    popart = make("popart")
    popart(np.zeros(3))
    make("popart").load_state_dict(popart.state_dict())
    assert popart.square == 0
