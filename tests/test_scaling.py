"""Rewards are divided, never shifted, each episode by one number that was known before it; nothing leaks or spikes."""

import copy
import doctest
import importlib
import json
import os
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import Watching
from sizes import examples

from kscore import normalizers
from kscore.normalizers import NORMALIZERS
from kscore.wrappers.scaling import ReturnScale, RewardScaling, discounted_returns, make_normalizer

GAMMA = 0.9
NAMES = list(NORMALIZERS)


def play(scaling, rewards, ended=True, lane=0):
    """Play one episode in a lane, the others paid nothing; return its scaled rewards."""
    scaled = []
    for t, reward in enumerate(rewards):
        row, ends = np.zeros(scaling.lanes), np.zeros(scaling.lanes, bool)
        row[lane], ends[lane] = reward, ended and t == len(rewards) - 1
        scaled.append(scaling.step(row, ends)[lane])
    return np.array(scaled)


def episodes(seed, count, size=1.0, low=2, high=40):
    rng = np.random.default_rng(seed)
    return [size * rng.normal(1, 1, rng.integers(low, high)) for _ in range(count)]


def watched(**options):
    """A scaling whose normalizer keeps the series that it is given, and the list of them."""
    Watching.seen.clear()
    return RewardScaling({"name": "outside:Watching"}, **options), Watching.seen


# Against the rules, by hand


def by_hand(name, lanes, gamma, rewards, ended):
    """The scaled rewards, (time, lanes), straight from the rules: all episodes kept whole, all sums taken anew."""
    normalizer = normalizers.make(name, **{"gamma": gamma} if name == "reward_scale" else {})
    fixed = name in ("none", "symlog")
    scale, largest = 1.0 if fixed else 0.0, 0.0
    own, divisors, scaled = [[] for _ in range(lanes)], [scale] * lanes, []
    for row, ends in zip(rewards, ended, strict=True):
        for lane in range(lanes):
            own[lane].append(row[lane])
            if not divisors[lane]:
                last = len(own[lane]) - 1
                largest = max(largest, abs(sum(gamma ** (last - k) * r for k, r in enumerate(own[lane]))))
        scaled.append([row[lane] / (divisors[lane] or largest or 1.0) for lane in range(lanes)])
        for lane in np.flatnonzero(ends):
            returns = np.array([sum(gamma**k * r for k, r in enumerate(own[lane][t:])) for t in range(len(own[lane]))])
            seen = np.array(own[lane]) if name == "reward_scale" else returns
            normalizer.learn(seen)
            found = float(np.ravel(normalizer.recall(seen).scale)[-1])
            scale = found if found > 1e-6 * abs(returns).mean() else scale  # that of a single return is nothing
            own[lane] = []
        for lane in np.flatnonzero(ends):
            divisors[lane] = scale
    return np.array(scaled)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lanes", [1, 3])
def test_every_normalizer_scales_as_the_rules_say(name, lanes):
    rng = np.random.default_rng(lanes)
    rewards, ended = rng.normal(0.5, 2, (300, lanes)), rng.uniform(size=(300, lanes)) < 0.04
    scaling = RewardScaling(name, lanes, GAMMA)
    scaled = np.array([scaling.step(row, ends) for row, ends in zip(rewards, ended, strict=True)])
    np.testing.assert_allclose(scaled, by_hand(name, lanes, GAMMA, rewards.tolist(), ended), rtol=1e-9)


def test_the_scale_is_what_is_known_after_the_episode_also_where_it_was_judged_by_what_came_before():
    scaling, normalizer = RewardScaling("episode", gamma=1.0), normalizers.make("episode")
    for rewards in episodes(0, 5):
        play(scaling, rewards)
        stale = normalizer.learn(discounted_returns(rewards, 1.0)).scale
    assert scaling.known.scale == normalizer.recall(np.zeros(1)).scale != stale


# What users complain of


@pytest.mark.parametrize("name", NAMES)
def test_rewards_are_only_divided(name):
    scaling = RewardScaling(name, gamma=GAMMA)
    for rewards in [np.array([-3.0, 0.0, 2.0, 5.0]), *episodes(1, 4)]:
        scaled = play(scaling, rewards)
        assert (np.sign(scaled) == np.sign(rewards)).all() and np.isfinite(scaled).all()
    assert np.ptp(rewards / scaled) < 1e-9  # one number for the whole episode


@pytest.mark.parametrize("name", NAMES)
@given(
    rewards=st.lists(st.lists(st.floats(-1e100, 1e100), min_size=3, max_size=3), min_size=1, max_size=20),
    gamma=st.floats(0, 1),
)
@examples(30)
def test_no_reward_before_the_first_end_is_beyond_two_in_size(name, rewards, gamma):
    if name in ("none", "symlog"):
        return  # these have no scale to wait for
    scaling = RewardScaling(name, 3, gamma)
    for row in rewards:
        scaled = scaling.step(row, [False] * 3)
        assert np.isfinite(scaled).all() and np.abs(scaled).max() <= 1 + gamma + 1e-9


def test_the_first_reward_does_not_spike():
    assert play(RewardScaling(gamma=0.99), [1.0])[0] == 1.0  # where it is 70.7 in Gymnasium's wrapper


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reward", [1.0, -100.0, 0.0, 1e-200])
def test_equal_returns_say_nothing_of_a_scale_and_blow_nothing_up(name, reward):
    scaling = RewardScaling(name, gamma=GAMMA)
    scaled = [play(scaling, [reward])[0] for _ in range(20)]
    assert np.isfinite(scaled).all() and np.abs(scaled).max() <= max(2, abs(reward))


@pytest.mark.parametrize("name", ["zscore", "running", "ema", "popart"])
def test_a_scale_that_is_nothing_beside_the_returns_is_not_taken(name):
    scaling = RewardScaling(name, gamma=1.0)
    play(scaling, [5.0, 1.0])
    known = scaling.known.scale
    for _ in range(3):
        play(scaling, [1.0])
    assert scaling.known.scale >= 0.1 * known  # a Z-Score of one return would divide by 1e-8


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gap", [1, 30, 300])
def test_however_long_nothing_is_paid_the_next_reward_does_not_spike(name, gap):
    """Rewards at a goal that is seldom reached: a normalizer that forgets would have nothing left to divide by."""
    scaling, rng, scaled = RewardScaling(name, gamma=0.99), np.random.default_rng(gap), []
    for _ in range(4):
        scaled.append(play(scaling, [0.0] * int(rng.integers(5, 20)) + [1.0])[-1])
        for _ in range(gap):
            assert not play(scaling, np.zeros(rng.integers(5, 20))).any()
    assert max(scaled) < 70  # what Gymnasium's wrapper makes of the first reward of all; it was 1e8


def test_episodes_that_paid_nothing_count_as_long_as_they_do_not_take_the_scale_away():
    scaling, expected = RewardScaling("running", gamma=0.9), normalizers.make("running")
    for k in range(12):
        rewards = np.array([0.0, 0.0, float(k % 2)])
        play(scaling, rewards)
        expected.learn(discounted_returns(rewards, 0.9))
    assert scaling.known.normalizer == expected and scaling.known.count == 12
    scale = scaling.known.scale
    for _ in range(1000):
        play(scaling, [0.0, 0.0])
    assert scaling.known.scale == scale
    assert scale / 2 <= scaling.known.normalizer.recall(None).scale < 0.52 * scale


def test_nothing_of_an_episode_reaches_the_next():
    scaling, seen = watched(gamma=0.5)
    for rewards in ([1.0, 1.0, -100.0], [2.0, 4.0]):
        play(scaling, rewards)
    ends = [(label, own) for label, own in seen if len(own) == 2]
    assert ends[-1][1] == [4.0, 4.0]  # 2 + 0.5 * 4 and 4: no trace of the -100


@given(data=st.data())
@examples(40)
def test_every_episode_is_learned_from_whole_and_once_whatever_goes_on_in_other_lanes(data):
    lanes = data.draw(st.integers(1, 4))
    rows = data.draw(st.integers(1, 400))  # more than there is room for at first
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    rewards, ended = rng.integers(-9, 9, (rows, lanes)).astype(float), rng.uniform(size=(rows, lanes)) < 0.02
    dropped = rng.uniform(size=(rows, lanes)) < 0.01
    scaling, seen = watched(lanes=lanes, gamma=0.0)  # returns are rewards
    own, expected = [[] for _ in range(lanes)], []
    for t in range(rows):
        scaling.step(rewards[t], ended[t])
        for lane in range(lanes):
            own[lane].append(rewards[t, lane])
            if ended[t, lane]:
                expected += 2 * [own[lane]]  # learned, and asked for the scale
            if ended[t, lane] or dropped[t, lane]:
                own[lane] = []
        scaling.abandon(dropped[t])
    assert [series for _, series in seen] == expected


def test_the_learner_gets_returns_of_deviation_one():
    scaling, scaled = RewardScaling("episode", gamma=GAMMA), []
    for rewards in episodes(3, 200, size=50.0):
        scaled.append(discounted_returns(play(scaling, rewards), GAMMA))
    assert np.concatenate(scaled[100:]).std() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    "name, forgets", [("episode", True), ("popart", True), ("running", False), ("reward_scale", False)]
)
def test_it_forgets_if_the_normalizer_forgets(name, forgets):
    scaling = RewardScaling(name, gamma=GAMMA)
    for rewards in episodes(4, 200, size=10.0):
        play(scaling, rewards)
    before = scaling.known.scale
    for rewards in episodes(5, 80):
        play(scaling, rewards)
    assert (0.07 < scaling.known.scale / before < 0.15) == forgets


@pytest.mark.parametrize("gamma", [-0.1, 1.1, float("nan"), "0.9", None, True])
def test_a_bad_gamma_is_refused(gamma):
    with pytest.raises(ValueError, match="gamma must be"):
        RewardScaling(gamma=gamma)


def test_gamma_reaches_the_normalizer_that_has_one_of_its_own():
    assert RewardScaling("reward_scale", gamma=0.5).known.normalizer.gamma == 0.5
    known = RewardScaling({"name": "reward_scale", "start": 1.0}, gamma=0.5).known
    assert (known.normalizer.gamma, known.normalizer.start) == (0.5, 1.0)
    known.gamma = 0.7
    assert known.gamma == known.normalizer.gamma == 0.7
    for other in ({"name": "reward_scale", "gamma": 0.9}, normalizers.make("reward_scale")):
        with pytest.raises(ValueError, match="gamma must be that of its normalizer, 0.9.*, got 0.5"):
            RewardScaling(other, gamma=0.5)


def test_the_gamma_that_was_asked_for_is_used():
    scaling, seen = watched(gamma=0.25)
    play(scaling, [0.0, 0.0, 16.0])
    assert seen[0][1] == [1.0, 4.0, 16.0]


# Sparse goals


def test_a_floor_bounds_what_a_reward_at_a_goal_becomes():
    """Ten steps, the last of which pays 1: returns from 0.91 to 1, whose spread is a thirtieth of their size."""
    last = {}
    for floor in (0.0, 0.1, 0.5):
        scaling = RewardScaling(gamma=0.99, floor=floor)
        last[floor] = [play(scaling, [0.0] * 9 + [1.0])[-1] for _ in range(20)][-1]
    size = np.sqrt(np.mean(0.99 ** (2 * np.arange(10))))
    assert last[0.0] > 30 and last[0.1] == pytest.approx(1 / (0.1 * size), rel=1e-3)
    assert last[0.5] == pytest.approx(1 / (0.5 * size), rel=1e-3)


def test_a_floor_changes_nothing_where_returns_are_spread_enough():
    with_floor, without = RewardScaling(gamma=GAMMA, floor=0.1), RewardScaling(gamma=GAMMA)
    for rewards in episodes(11, 20):
        assert play(with_floor, rewards).tolist() == play(without, rewards).tolist()


def test_epsilon_is_added_to_the_square_of_the_scale():
    scaling, plain = RewardScaling(gamma=GAMMA, epsilon=4.0), RewardScaling(gamma=GAMMA)
    for rewards in episodes(12, 3):
        first, second = play(scaling, rewards), play(plain, rewards)
    assert scaling.known.scale == plain.known.scale and scaling.known.var == plain.known.scale**2
    np.testing.assert_allclose(rewards / first, np.sqrt((rewards / second) ** 2 + 4.0))
    assert RewardScaling(epsilon=9.0).known.divisor == pytest.approx(np.sqrt(10))


# Memory


def scaling_size(scaling):
    """The bytes of all rewards that are kept."""
    memory = scaling._memory
    return memory._block.nbytes + sum(own.nbytes for blocks in memory._earlier.values() for own in blocks)


def test_each_lane_keeps_its_own_rewards():
    """One lane never ends, and the others' rewards of long ago are not kept for it."""
    scaling, lanes = RewardScaling(lanes=64), 64
    ended = np.arange(lanes) > 0
    for t in range(5000):
        scaling.step(np.ones(lanes), ended if t % 10 == 0 else np.zeros(lanes, bool))
    assert scaling_size(scaling) < 8 * (5000 + 3 * 128 * lanes)


def test_an_episode_that_is_too_long_to_be_kept_is_learned_from_as_if_cut_off(monkeypatch):
    monkeypatch.setattr("kscore.wrappers.memory.LONGEST", 256)
    scaling, seen = watched(lanes=2, gamma=0.0)
    steps, most = 2000, 0
    for t in range(steps):
        scaling.step([float(t), -1.0], [t == steps - 1, t % 7 == 6])
        most = max(most, scaling_size(scaling))
    long = [series for _, series in seen[::2] if series[0] != -1.0]
    assert sum(long, []) == [float(t) for t in range(steps)]  # each step once, in order
    assert {len(series) for series in long[:-1]} == {256} and most < 8 * (256 + 3 * 128 * 2)


def test_what_is_cut_goes_on_with_a_scale_of_its_own(monkeypatch):
    monkeypatch.setattr("kscore.wrappers.memory.LONGEST", 128)
    scaling = RewardScaling("running", gamma=1.0)
    rng = np.random.default_rng(0)
    scaled = [scaling.step([reward], [False])[0] for reward in rng.normal(size=1000)]
    assert scaling.known.count == 7 and np.isfinite(scaled).all()  # an episode that never ends has a scale, too


# Copies


def test_a_normalizer_that_is_given_is_copied():
    normalizer = normalizers.make("running")
    one, other = RewardScaling(normalizer), RewardScaling(normalizer)
    play(one, [1.0, 2.0])
    assert (normalizer.count, one.known.normalizer.count, other.known.normalizer.count) == (0, 2, 0)


# Frozen, saved, dropped


@pytest.mark.parametrize("name", NAMES)
def test_a_frozen_scaling_learns_nothing_and_goes_on_dividing(name):
    scaling = RewardScaling(name, 2, GAMMA)
    for rewards in episodes(6, 3):
        play(scaling, rewards)
    scaling.frozen, before, scale = True, copy.deepcopy(scaling.state_dict()), scaling.known.scale
    for rewards in episodes(7, 3, size=100.0):
        np.testing.assert_allclose(play(scaling, rewards), rewards / scale, rtol=1e-12)
    assert scaling.state_dict() == before


def test_a_frozen_scaling_that_knows_nothing_leaves_rewards_as_they_are():
    scaling = RewardScaling()
    scaling.frozen = True
    assert play(scaling, [3.0, -7.0]).tolist() == play(scaling, [3.0, -7.0]).tolist() == [3.0, -7.0]


@pytest.mark.parametrize("frozen", [[True, False, False], [False, True, False], [False, False, True]])
def test_an_episode_that_was_frozen_for_a_while_is_not_learned_from_and_the_next_one_is(frozen):
    scaling, seen = watched(lanes=2, gamma=0.0)
    for t, still in enumerate([*frozen, False, False]):
        scaling.frozen = still
        scaling.step([t, 10.0 + t], [t in (2, 4), False])
    assert [series for _, series in seen] == 2 * [[3.0, 4.0]]
    scaling.step([0.0, 15.0], [False, True])
    assert len(seen) == 2  # in the other lane it is the same episode still


def test_a_frozen_scaling_keeps_no_rewards():
    scaling = RewardScaling(lanes=2)
    scaling.frozen = True
    size = scaling_size(scaling)
    for _ in range(1000):
        scaling.step([1.0, 1.0], [False, False])
    assert scaling_size(scaling) == size


def test_a_frozen_normalizer_is_not_taught():
    normalizer = normalizers.make("running")
    normalizer.frozen = True
    scaling = RewardScaling(normalizer)
    play(scaling, [1.0, 2.0])
    assert scaling.known.normalizer == normalizer and scaling.known.normalizer.count == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("begun", [0, 3])
def test_what_was_learned_survives_json_and_goes_on_as_if_nothing_had_happened(name, begun):
    one, other = RewardScaling(name, gamma=GAMMA), RewardScaling(name, gamma=GAMMA)
    for rewards in episodes(8, begun):
        play(one, rewards)
    play(one, [5.0, 6.0], ended=False)  # not part of the state
    other.load_state_dict(json.loads(json.dumps(one.state_dict(), allow_nan=False)))
    assert other.state_dict() == one.state_dict()
    one.abandon()
    for rewards in episodes(9, 3):
        assert play(one, rewards).tolist() == play(other, rewards).tolist()


BAD = {
    "version": [0, 2, "1", None, True],
    "settings": [None, {}, {"gamma": 0.99}],
    "mean": [float("nan"), "x"],
    "steps": [-1, 1.5],
    "scale": [-1.0, float("nan"), "1", 1e-200],
    "largest": [-1.0, float("inf"), None],
    "count": [-1, 0.5, True],
    "first": [float("nan"), "x"],
    "learned": [None, {}, [], {"count": -1, "mean": 0.0, "var": 1.0}],
}


@pytest.mark.parametrize("key, value", [(key, value) for key, values in BAD.items() for value in values])
def test_a_bad_state_changes_nothing_and_is_told(key, value):
    scaling = RewardScaling("running")
    play(scaling, [1.0, 2.0])
    before = copy.deepcopy(scaling.state_dict())
    fresh = RewardScaling("running").state_dict()
    with pytest.raises(ValueError, match="state"):
        scaling.load_state_dict(fresh | {key: value})
    for state in ({}, None, fresh | {"more": 1}):
        with pytest.raises(ValueError, match="must have the keys"):
            scaling.load_state_dict(state)
    assert scaling.state_dict() == before


def test_after_loading_the_rest_of_an_episode_is_scaled_by_what_was_loaded_and_not_learned_from():
    scaling, seen = watched(lanes=2, gamma=0.0)
    play(scaling, [1.0], lane=1)
    state = scaling.state_dict() | {"scale": 4.0}
    assert scaling.step([1.0, 1.0], [False, False])[0] == 1.0
    seen.clear()
    scaling.load_state_dict(state)
    assert scaling.step([2.0, 2.0], [True, True]).tolist() == [0.5, 0.5] and not seen
    play(scaling, [5.0, 3.0])
    assert seen[0][1] == [5.0, 3.0]


def test_after_loading_an_episode_that_has_not_begun_is_learned_from():
    scaling, seen = watched(gamma=0.0)
    scaling.load_state_dict(scaling.state_dict())
    play(scaling, [1.0, 2.0])
    assert seen[0][1] == [1.0, 2.0]


@pytest.mark.parametrize(
    "other, told",
    [
        ({"normalizer": "ema"}, r"\['normalizer'\] must be .*'episode'.* got .*'ema'"),
        (
            {"normalizer": {"name": "episode", "transform": "symlog"}},
            r"\['transform'\] must be 'none', as here, got 'sym",
        ),
        ({"normalizer": {"name": "episode", "ratio": 0.2}}, r"\['ratio'\] must be 0.1, as here, got 0.2"),
        ({"gamma": 0.5}, r"\['gamma'\] must be 0.99, as here, got 0.5"),
        ({"floor": 0.2}, r"\['floor'\] must be 0.0, as here, got 0.2"),
        ({"epsilon": 0.1}, r"\['epsilon'\] must be 0.0, as here, got 0.1"),
    ],
)
def test_a_state_of_other_settings_is_refused_and_says_which(other, told):
    scaling, made = RewardScaling(), RewardScaling(**other)
    play(made, [1.0, 2.0])
    before = scaling.state_dict()
    with pytest.raises(ValueError, match=r"state\['settings'\].*" + told):
        scaling.load_state_dict(json.loads(json.dumps(made.state_dict())))
    assert scaling.state_dict() == before


def test_a_file_is_written_in_one_piece(tmp_path, monkeypatch):
    path, scaling = tmp_path / "scale.json", RewardScaling("running")
    play(scaling, [1.0, 2.0])
    scaling.save(path)
    whole = path.read_bytes()
    play(scaling, [3.0, 4.0])

    def full(*_):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(OSError, match="No space"):
                scaling.save(path)
        assert path.read_bytes() == whole and [*tmp_path.iterdir()] == [path]
    scaling.save(path)
    loaded = RewardScaling("running")
    loaded.load(str(path))
    assert loaded.state_dict() == scaling.state_dict() and [*tmp_path.iterdir()] == [path]


def test_a_file_can_be_read_by_whom_its_folder_lets(tmp_path):
    (tmp_path / "usual").touch()
    RewardScaling().save(tmp_path / "scale.json")
    assert (tmp_path / "scale.json").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b"null"])
def test_a_bad_file_changes_nothing_and_is_told(tmp_path, content):
    path, scaling = tmp_path / "scale.json", RewardScaling("running")
    path.write_bytes(content)
    before = scaling.state_dict()
    with pytest.raises(ValueError, match="must"):
        scaling.load(path)
    assert scaling.state_dict() == before


def test_an_abandoned_episode_is_not_learned_from():
    scaling, seen = watched(lanes=3, gamma=0.0)
    for lanes in (1, [1], np.array([False, True, False]), None):
        play(scaling, [1.0, 1.0], ended=False, lane=1)
        scaling.abandon(lanes)
        play(scaling, [2.0], lane=1)
        assert seen[-1][1] == [2.0]


def test_an_abandoned_episode_leaves_no_sum_behind():
    scaling = RewardScaling(gamma=1.0)
    play(scaling, [10.0], ended=False)
    scaling.abandon()
    play(scaling, [10.0], ended=False)
    assert scaling.known.largest == 10


def test_an_episode_keeps_the_scale_that_it_began_with():
    scaling = RewardScaling("episode", 2, gamma=1.0)
    for rewards in episodes(10, 2):
        play(scaling, rewards)
    scaling.abandon()
    known = scaling.known.scale
    first = scaling.step([1.0, 1.0], [False, False])
    later = scaling.step([50.0, 1.0], [True, False])
    assert first[1] == later[1] == 1 / known != 1 / scaling.known.scale
    assert scaling.step([1.0, 1.0], [False, False]).tolist() == [1 / scaling.known.scale, 1 / known]


# Bad input


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("reward", [float("nan"), float("inf"), -float("inf"), 1e200, None])
def test_a_reward_that_is_no_finite_number_is_refused_and_changes_nothing(reward):
    scaling, seen = watched(lanes=2, gamma=0.0)
    scaling.step([1.0, 1.0], [False, False])
    with pytest.raises(ValueError, match="rewards must be finite and at most 1e\\+100 in size, got .* at index 1"):
        scaling.step([1.0, reward], [True, True])
    scaling.step([2.0, 2.0], [True, False])
    assert seen[0][1] == [1.0, 2.0]


@pytest.mark.parametrize("rewards", [["a", 1.0], [1j, 1.0], [10**400, 1.0], [[1.0], [1.0, 2.0]], [{}, 1.0]])
def test_a_reward_that_is_no_number_is_named(rewards):
    with pytest.raises(ValueError, match="rewards must be numbers, got"):
        RewardScaling(lanes=2).step(rewards, [False, False])


def test_large_rewards_that_are_allowed_are_scaled():
    scaling = RewardScaling(lanes=3)
    assert scaling.step([1e100, -1e100, 9e99], [False] * 3).tolist() == [1.0, -1.0, pytest.approx(0.9)]


def test_bad_arguments_get_a_sentence():
    for bad in (0.99, None, {"decay": 0.9}, ["episode"]):
        with pytest.raises(ValueError, match="normalizer must be a name, a dict with the name and options, or a Norm"):
            RewardScaling(bad)
    with pytest.raises(ValueError, match="did you mean 'episode'"):
        make_normalizer("episod")
    for lanes in (0, 1.5, None):
        with pytest.raises(ValueError, match="lanes must be a whole number"):
            RewardScaling(lanes=lanes)
    scaling = RewardScaling(lanes=2)
    for rewards, ended in (([1.0], [True, True]), ([1.0, 1.0], [True]), ([[1.0, 1.0]], [True, True]), (1.0, True)):
        with pytest.raises(ValueError, match=r"must have the shape \(2,\)"):
            scaling.step(rewards, ended)
    for lanes in (2, [0, 5], [True], 0.5):
        with pytest.raises(ValueError, match="lanes must be numbers from 0 to 1, or a mask of 2"):
            scaling.abandon(lanes)
    with pytest.raises(ValueError, match="known must be a ReturnScale"):
        scaling.known = "episode"


def test_it_looks_like_a_running_mean_and_variance():
    known = ReturnScale("running", gamma=1.0)
    assert (known.mean, known.var, known.count) == (0.0, 1.0, 0)
    known.learn([1.0, 3.0])
    assert (known.mean, known.var, known.count) == (0.0, known.scale**2, 1)


def test_the_mean_is_that_of_the_sums_that_run_forwards():
    """As in the running statistics of the libraries; lanes that are only being reset do not count."""
    scaling, A, seen, idle = RewardScaling(lanes=3, gamma=GAMMA), np.zeros(3), [], np.zeros(3, bool)
    rng = np.random.default_rng(13)
    for _ in range(300):
        rewards, ended = rng.normal(3, 1, 3), rng.uniform(size=3) < 0.1
        scaling.step(rewards, ended, idle if idle.any() else None)
        A = np.where(idle, 0.0, GAMMA * A + rewards)
        seen += A[~idle].tolist()
        A[ended] = 0.0
        np.testing.assert_allclose(scaling.sums, A)
        idle = ended & ~idle
    assert scaling.known.mean == pytest.approx(np.mean(seen)) and scaling.known.steps == len(seen) < 900
    scaling.frozen, before = True, scaling.known.mean
    scaling.step([99.0] * 3, [False] * 3)
    assert scaling.known.mean == before


# The examples


@pytest.mark.parametrize(
    "module", ["", ".memory", ".states", ".returns", ".scaling", ".gymnasium", ".sb3_buffers", ".sb3"]
)
def test_the_examples_of_the_docstrings_hold(module):
    found = doctest.testmod(importlib.import_module(f"kscore.wrappers{module}"))
    assert found.attempted and not found.failed


@pytest.mark.parametrize(
    "module, missing, extra",
    [
        ("gymnasium", "gymnasium", "gymnasium"),
        ("sb3", "stable_baselines3", "sb3"),
        ("sb3", "torch", "sb3"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(module, missing, extra, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    for own in (module, f"{module}_buffers"):
        monkeypatch.delitem(sys.modules, f"kscore.wrappers.{own}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install -c constraints.txt -e '\.\[{extra}\]'"):
        importlib.import_module(f"kscore.wrappers.{module}")
