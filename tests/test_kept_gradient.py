"""What a centre leaves of a gradient, and the crowd of CartPoles that it is measured on."""

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

from kscore import normalizers
from kscore.labs import kept_gradient
from kscore.project import DATA
from kscore.rl import cartpoles


def rng(seed=0):
    return np.random.default_rng(seed)


# The crowd


@pytest.mark.parametrize("seed", range(5))
def test_a_crowd_moves_as_gymnasiums_cartpole_does(seed):
    env, actions = gym.make("CartPole-v1").unwrapped, rng(seed).integers(2, size=500)
    env.reset(seed=seed)
    states = env.state.reshape(4, 1) if seed else np.array([[2.39], [0.9], [0.0], [0.0]])  # and over the edge
    env.state = states[:, 0]
    for t, action in enumerate(actions):
        states, out = cartpoles.step(states, actions[[t]])
        _, reward, terminated, _, _ = env.step(int(action))
        np.testing.assert_allclose(states[:, 0], env.state, rtol=1e-13, atol=1e-15)
        assert (reward, out[0]) == (1.0, terminated)
        if terminated:
            return
    raise AssertionError("chance must not balance a pole")


def test_carts_do_not_see_each_other():
    states, actions = rng().uniform(-0.2, 0.2, (4, 7)), rng(1).integers(2, size=7)
    together, _ = cartpoles.step(states, actions)
    alone = [cartpoles.step(states[:, [i]], actions[[i]])[0] for i in range(7)]
    np.testing.assert_array_equal(together, np.hstack(alone))


def test_an_episode_of_the_crowd_goes_on_from_step_to_step_and_ends_once(monkeypatch):
    monkeypatch.setattr(cartpoles, "TOGETHER", 60)
    crowd = cartpoles.play(100, rng(), keep=200)
    assert crowd.observations.shape == (200, 4, 100) and crowd.actions.shape == (200, 100)
    assert np.abs(crowd.observations[0]).max() < 0.05 and len(np.unique(crowd.observations[0])) == 400
    for i, length in enumerate(crowd.lengths):
        states, actions = crowd.observations[:, :, i], crowd.actions[:, i]
        assert np.isfinite(states[:length]).all() and np.isnan(states[length:]).all()
        assert np.isin(actions[:length], (0, 1)).all() and np.isnan(actions[length:]).all()
        moved, out = cartpoles.step(states[:length].T, actions[:length])
        np.testing.assert_array_equal(moved[:, :-1].T, states[1:length])
        assert out[-1] and not out[:-1].any()


def test_the_time_limit_ends_an_episode(monkeypatch):
    monkeypatch.setattr(cartpoles, "LIMIT", 9)
    crowd = cartpoles.play(200, rng(), keep=9)
    assert crowd.lengths.max() == 9 and np.isfinite(crowd.actions[-1]).sum() == (crowd.lengths == 9).sum()


def test_the_returns_of_a_crowd():
    crowd = cartpoles.Crowd(np.zeros((3, 4, 2)), np.zeros((3, 2)), np.array([2, 5]))
    expected = [[1.5, 1.9375], [1.0, 1.875], [np.nan, 1.75]]
    np.testing.assert_allclose(crowd.returns(0.5), expected)


@pytest.mark.parametrize(("episodes", "keep", "name"), [(0, 5, "episodes"), (5, 501, "keep"), (2.5, 5, "episodes")])
def test_a_crowd_says_what_it_cannot_play(episodes, keep, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        cartpoles.play(episodes, rng(), keep)


# The share


def flips(episodes=40_000, steps=6):
    """Coin flips, each paid by itself: the gradient and the returns without discount."""
    coins = rng().integers(0, 2, (steps, episodes))
    return coins - 0.5, np.cumsum(coins[::-1], axis=0)[::-1].astype(float)


def test_a_centre_that_was_known_before_keeps_everything():
    g, G = flips()
    settled = np.repeat(np.arange(6.0)[:, None], G.shape[1], axis=1)
    share, error = kept_gradient.kept(g, G, settled)
    np.testing.assert_array_equal(share, 1)
    np.testing.assert_array_equal(error, 0)
    share, error = kept_gradient.kept(g, G, np.roll(G, 1, axis=1))  # another episode's
    assert np.all(np.abs(share - 1) < 4 * error) and np.all(error > 0)


def test_a_centre_that_holds_the_return_loses_its_weight():
    g, G = flips()
    np.testing.assert_allclose(kept_gradient.kept(g, G, 0.3 * G + 7).share, 0.7)
    share, error = kept_gradient.kept(g, G, np.broadcast_to(G.mean(axis=0), G.shape))
    assert np.all(np.abs(share - (1 - np.arange(1, 7) / 6)) < 4 * error) and error.max() < 0.05


def test_the_error_is_the_scatter_of_repetitions():
    g, G = flips()
    mean = np.broadcast_to(G.mean(axis=0), G.shape)
    parts = [kept_gradient.kept(*(values[:, i::50] for values in (g, G, mean))) for i in range(50)]
    scatter = np.std([part.share for part in parts], axis=0)
    np.testing.assert_allclose(scatter, np.mean([part.error for part in parts], axis=0), rtol=0.35)


def test_what_comes_after_an_end_does_not_count():
    g, G = flips()
    kept = kept_gradient.kept(g, G, 0.5 * G**2)
    padded = [np.hstack([values, np.full((6, 9), np.nan)]) for values in (g, G, 0.5 * G**2)]
    np.testing.assert_allclose(kept_gradient.kept(*padded), kept)


def test_columns_stand_side_by_side():
    table = kept_gradient.columns([np.array([1.0, 2.0, 3.0]), np.array([4.0])], keep=2)
    np.testing.assert_array_equal(table, [[1, 4], [2, np.nan]])


# The centres

EARLIER = [np.array([3.0, 2.0, 1.0]), np.array([2.0, 1.0])]
RETURNS = np.array([4.0, 3.0, 2.0, 1.0])


@pytest.mark.parametrize("kind", [kind for kind in kept_gradient.KINDS if kind != kept_gradient.PRIOR])
def test_a_centre_is_what_the_normalizer_subtracts(kind):
    warm = kept_gradient.warmed_up("CartPole-v1", EARLIER)[kind]
    before = warm.state_dict()
    centre = kept_gradient.centres(warm, RETURNS)
    assert centre.shape == RETURNS.shape and warm.state_dict() == before
    assert len({tuple(kept_gradient.centres(warm, RETURNS)) for _ in range(2)}) == 1
    np.testing.assert_allclose(warm(RETURNS), (RETURNS - centre) / warm_scale(kind))


def warm_scale(kind):
    return kept_gradient.warmed_up("CartPole-v1", EARLIER)[kind].learn(RETURNS).scale


def test_the_prior_is_what_the_filter_believed_before():
    warm = kept_gradient.warmed_up("LunarLander-v3", EARLIER)
    streamed = normalizers.make("kscore", Q=1e-2, R=1.0)
    for returns in EARLIER:
        streamed(returns)
    assert list(warm) == list(kept_gradient.KINDS) and warm["kscore"].state_dict() == streamed.state_dict()
    np.testing.assert_array_equal(kept_gradient.centres(warm[kept_gradient.PRIOR], RETURNS), np.full(4, streamed.x))


# What is recorded


def test_the_lander_is_played_as_told():
    (slopes,), (returns,) = kept_gradient.lander(1, seed=3)
    env, actions = gym.make("LunarLander-v3"), rng(3).integers(4, size=1000)
    env.reset(seed=3)
    observation, rewards, expected, done = env.reset()[0], [], [], False
    for action in actions:
        expected.append({1: -1, 3: 1}.get(int(action), 0) * observation[4])
        observation, reward, done, _, _ = env.step(action)
        rewards.append(reward)
        if done:
            break
    np.testing.assert_allclose(slopes, expected)
    assert returns[-1] == rewards[-1]
    np.testing.assert_allclose(returns[:-1], rewards[:-1] + 0.99 * returns[1:])


def test_every_kind_is_measured_at_every_step():
    table = kept_gradient.measured(episodes=6, seed=1, keep=5)
    assert list(table.kind.unique()) == list(kept_gradient.KINDS) and set(table.episodes) == {6}
    assert table.groupby("kind").step.apply(list).map(lambda steps: steps == list(range(5))).all()
    assert (table[table.kind == kept_gradient.PRIOR].share == 1).all()


def test_what_stands_in_the_data_is_such_a_record():
    table = pd.read_csv(DATA / "kept_gradient.csv")
    assert list(table.kind.unique()) == list(kept_gradient.KINDS) and list(table.step.unique()) == list(range(51))
    assert table.episodes.unique().tolist() == [30_000] and table.error.max() < 0.2
