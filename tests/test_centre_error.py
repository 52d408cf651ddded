"""How well a centre follows: where the answer is known in closed form, on CartPole, and as it was recorded."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest

from kscore import normalizers, study
from kscore.labs import centre_error
from kscore.labs.centre_error import COLUMNS, follow
from kscore.project import ARCHIVE
from kscore.rl import RunConfig, environments, train
from kscore.study import plan


class Steady(gym.Env):
    """Pays 1 in each of five steps, whatever one does."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Box(0, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 5
        return np.ones(1, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.ones(1, np.float32), 1.0, self.left == 0, False, {}


gym.register("Steady-v0", Steady, max_episode_steps=9)
GAMMA = 0.9
RETURNS = np.array([sum(GAMMA**k for k in range(left)) for left in (5, 4, 3, 2, 1)])


def steady(**changes):
    fields = {
        "env": "Steady-v0",
        "algorithm": "reinforce",
        "threshold": None,
        "hidden": (4,),
        "max_episodes": 12,
        "gamma": GAMMA,
    }
    return RunConfig(**{**fields, **changes})


ARMS = {
    "zscore": {"name": "zscore"},
    "prior": {"name": "episode", "ratio": 0.5},
    "none": {"name": "none"},
    "running": {"name": "running"},
}


def by_arm(table, column="centre"):
    return table.pivot(index="episode", columns="arm", values=column)


def test_where_all_episodes_are_alike_every_centre_is_at_their_mean():
    table = follow(steady(), 0, ARMS, every=3, episodes=4)
    assert tuple(table.columns) == COLUMNS and table.episode.tolist() == np.repeat([3, 6, 9, 12], 4).tolist()
    assert table.expected.to_numpy() == pytest.approx(RETURNS.mean(), rel=1e-12)
    assert table.standard_error.to_numpy() == pytest.approx(0, abs=1e-12)
    centres = by_arm(table)
    assert centres[["zscore", "prior"]].to_numpy() == pytest.approx(RETURNS.mean(), rel=1e-9)
    assert (centres["none"] == 0).all()


def test_after_a_change_a_prior_is_late_by_its_gain_and_a_z_score_is_there_at_once():
    """With a steady gain K the lag shrinks by 1 - K each episode; the first changed episode sees none of the change."""
    config = steady(disturbance={"name": "change", "factor": 10.0, "offset": 2.0, "after": 6})
    table = follow(config, 0, ARMS, every=1, episodes=2)
    changed, centres = 10 * RETURNS + 2 * RETURNS, by_arm(table)  # every step pays the offset too
    assert by_arm(table, "expected")["none"].tolist() == pytest.approx([RETURNS.mean()] * 6 + [changed.mean()] * 6)
    assert centres["zscore"].tolist() == pytest.approx([RETURNS.mean()] * 6 + [changed.mean()] * 6)
    prior, judge = centres["prior"], normalizers.make(**ARMS["prior"])
    assert prior[7] == pytest.approx(RETURNS.mean())  # known before the episode
    lag = (changed.mean() - prior.to_numpy()[6:]) / (changed - RETURNS).mean()
    assert lag[1:] == pytest.approx(0.5 ** np.arange(1, 6), abs=1e-3)  # Q/R = 1/2 has the steady gain 1/2
    expected = [np.mean(judge.learn(own).centre) for own in [RETURNS] * 6 + [changed] * 6]
    assert prior.tolist() == pytest.approx(expected, rel=1e-12)


def test_the_scale_of_the_rewards_is_that_of_both():
    table = follow(steady(reward_scale=30.0), 0, every=6, episodes=2)
    assert table.expected.to_numpy() == pytest.approx(30 * RETURNS.mean())
    assert table.centre.to_numpy() == pytest.approx(30 * RETURNS.mean()) and set(table.arm) == {"zscore"}


def test_noise_leaves_the_mean_and_gives_the_standard_error_its_closed_form():
    """The mean return is Σ_k w_k r_k with w_k = Σ_{t ≤ k} γ^(k - t) / T, so that its variance is σ² Σ w_k²."""
    config = steady(disturbance={"name": "noise", "deviation": 2.0})
    table = follow(config, 0, every=12, episodes=2000)
    weights = np.array([sum(GAMMA ** (k - t) for t in range(k + 1)) / 5 for k in range(5)])
    error = 2 * np.sqrt(np.sum(weights**2) / 2000)
    assert table.standard_error[0] == pytest.approx(error, rel=0.05)
    assert abs(table.expected[0] - RETURNS.mean()) < 4 * error
    assert abs(table.centre[0] - RETURNS.mean()) > error  # one noisy episode is no match for two thousand


def test_episodes_of_one_update_are_told_apart():
    one, three = (follow(steady(episodes_per_update=n), 0, ARMS, every=4, episodes=2) for n in (1, 5))
    assert one.equals(three)  # nothing depends on the policy here


CART = RunConfig(env="CartPole-v1", algorithm="ppo", threshold=None, hidden=(8,), max_episodes=6)


def test_looking_on_changes_nothing_and_repeats():
    seen = []
    table = follow(CART, 3, ARMS, every=2, episodes=5)
    again = follow(dataclasses.replace(CART, max_episodes=4), 3, ARMS, every=4, episodes=5)
    assert table[table.episode == 4].reset_index(drop=True).equals(again)  # whatever else is looked at
    plain = train(CART, 3)
    watched = train(CART, 3, watch=lambda history, batch, policy: seen.append(batch.returns(0.99)))
    assert watched["train_returns"] == plain["train_returns"] and watched["eval_returns"] == plain["eval_returns"]
    centres = by_arm(table)
    assert centres["zscore"].tolist() == [own.mean() for own in seen[1::2]]
    running = normalizers.make("running")
    expected = [np.mean(running.learn(own).centre) for own in seen]
    assert centres["running"].tolist() == expected[1::2]


def test_the_policy_that_is_held_still_drops_as_many_units_as_in_training(monkeypatch, plain_loop):
    shares, play = [], environments.play
    monkeypatch.setattr(
        environments,
        "play",
        lambda *settings: shares.append(np.mean(settings[3].draw(1000)[0] == 0)) or play(*settings),
    )
    follow(dataclasses.replace(CART, dropout=0.25, max_episodes=1), 3, every=1, episodes=2)
    assert shares == pytest.approx([0.25] * 3, abs=0.03)


def test_what_is_expected_of_a_first_policy_is_what_it_earns_on_average():
    """The untrained policy of episode 1: many other episodes of it, the run's own first ones among other seeds."""
    table = follow(dataclasses.replace(CART, max_episodes=1), 3, every=1, episodes=300).iloc[0]
    still = dataclasses.replace(CART, learning_rate=1e-12, max_episodes=300)
    own = []
    train(still, 3, watch=lambda history, batch, policy: own.append(batch.returns(0.99).mean()))
    error = np.hypot(table.standard_error, np.std(own) / np.sqrt(300))
    assert abs(table.expected - np.mean(own)) < 4 * error and 0 < table.standard_error < 1


@pytest.mark.parametrize(
    ("change", "settings", "sentence"),
    [
        (
            {"reward_normalizer": {"name": "reward_scale"}},
            {},
            "^reward_normalizer must be None where .*got .*reward_scale",
        ),
        ({}, {"every": 0}, "^every must be a whole number of at least 1, got 0"),
        ({}, {"episodes": 1}, "^episodes must be a whole number of at least 2, got 1"),
        ({}, {"arms": {"a": {"name": "nosuch"}}}, "^normalizer must be one of .*got 'nosuch'"),
        ({}, {"arms": {"a": "running"}}, "^normalizer must be a dict with a 'name' and its options, got 'running'"),
        ({}, {"arms": "running"}, "^arms must map names to normalizers, got 'running'"),
    ],
)
def test_what_cannot_be_followed_is_refused_in_a_sentence(change, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        follow(steady(**change), 0, **settings)


# What is recorded

TABLE = centre_error.read()


def test_every_run_is_there_with_every_arm_at_every_tenth_episode():
    assert set(TABLE.groupby(["condition", "seed"]).groups) == {
        (condition, seed) for condition in centre_error.CONDITIONS for seed in centre_error.SEEDS
    }
    for _, rows in TABLE.groupby(["condition", "seed"]):
        episodes = sorted(set(rows.episode))
        assert episodes == list(range(10, 10 * len(episodes) + 10, 10))
        assert len(rows) == len(episodes) * len(centre_error.ARMS) and set(rows.arm) == set(centre_error.ARMS)
    assert np.isfinite(TABLE[["centre", "expected", "standard_error"]].to_numpy()).all()


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("clean", "fair_actor_critic"),
        ("noise 3", "disturbed_actor_critic_noise"),
        ("times 10", "disturbed_actor_critic_shift"),
        ("swap", "disturbed_actor_critic_swap"),
    ],
)
def test_the_runs_that_were_followed_are_those_of_the_archive(condition, part):
    """They are as long as the recorded runs of the running Z-Score under that condition."""
    found = plan.part(part)
    runs = study.recorded(found.configs, centre_error.SEEDS, ARCHIVE / found.file)
    own = runs[runs.arm == ("running" if condition == "clean" else f"running, {condition}")].set_index("seed")
    last = TABLE[TABLE.condition == condition].groupby("seed").episode.max()
    assert (own.episodes // 10 * 10 == last).all() and len(own) == len(last)


def test_rewards_times_ten_are_what_there_is_to_follow():
    rows = TABLE[(TABLE.condition == "times 10") & (TABLE.arm == "zscore")]
    before, after = (rows[rows.episode <= 50].expected, rows[rows.episode > 50].expected)
    assert after.min() > 3 * before.max() > 0


def test_a_run_is_followed_again_just_as_it_was_recorded():
    seed = min(centre_error.SEEDS, key=lambda s: TABLE[(TABLE.condition == "clean") & (TABLE.seed == s)].episode.max())
    rows = centre_error.followed("clean", seed)["rows"]
    own = TABLE[(TABLE.condition == "clean") & (TABLE.seed == seed)]
    for name, values in rows.items():
        assert list(values) == list(own[name])


def test_the_plan_is_balanced_by_seeds():
    planned, block = centre_error.planned(), len(centre_error.CONDITIONS)
    assert len(planned) == len(set(planned)) == 10 * block
    assert {seed for _, seed in planned[:block]} == {centre_error.SEEDS[0]}
