"""The K-Score one level up: a filter over episodes, judged by what was believed before them."""

import copy
import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

from kscore import filters
from kscore.normalizers import make

property_test = examples(60)
FORMS = [
    dict(zip(("judge", "noise", "level", "transform", "robust", "by_length", "slope"), values, strict=True))
    for values in itertools.product(
        ("prior", "posterior"),
        ("fixed", "learned", "bank"),
        ("mean", "first"),
        ("none", "symlog"),
        (False, True),
        (False, True),
        (False, True),
    )
]
FORMS = [form for form in FORMS if not (form["slope"] and (form["robust"] or form["noise"] != "fixed"))]
forms = st.sampled_from(FORMS)
numbers = st.floats(-1e6, 1e6)
episode = st.lists(numbers, min_size=1, max_size=12).map(np.array)
history = st.lists(episode, min_size=1, max_size=12)


def after(form, episodes):
    normalizer = make("episode", **form)
    for returns in episodes:
        normalizer(returns)
    return normalizer


@property_test
@given(forms, history)
def test_any_episodes_have_finite_scores(form, episodes):
    normalizer = make("episode", **form)
    for returns in episodes:
        scores = normalizer(returns)
        assert scores.shape == returns.shape and np.isfinite(scores).all()


@property_test
@given(forms.filter(lambda form: form["judge"] == "prior"), history, episode, episode)
def test_what_an_episode_is_held_against_does_not_change_when_it_changes(form, episodes, one, other):
    assert after(form, episodes).learn(one) == after(form, episodes).learn(other)


@property_test
@given(forms, history, episode)
def test_all_returns_of_an_episode_have_the_same_centre_and_scale(form, episodes, returns):
    centre, scale = after(form, episodes).learn(returns)
    assert np.ndim(centre) == np.ndim(scale) == 0 and scale > 0


@property_test
@given(forms, history, episode)
def test_a_state_survives_json_and_goes_on_alike(form, episodes, returns):
    one, other = after(form, episodes), make("episode", **form)
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert np.array_equal(one(returns), other(returns)) and one.state_dict() == other.state_dict()


@property_test
@given(forms, history, episode)
def test_a_frozen_one_scores_by_what_it_knows_and_learns_nothing(form, episodes, returns):
    normalizer = after(form, episodes)
    before = normalizer.state_dict()
    normalizer.frozen = True
    first, again = normalizer(returns), normalizer(returns)
    assert np.array_equal(first, again) and normalizer.state_dict() == before


@property_test
@given(forms, history, episode)
def test_a_shallow_copy_learns_on_its_own(form, episodes, returns):
    normalizer = after(form, episodes)
    before = normalizer.state_dict()
    copy.copy(normalizer).learn(returns)
    assert normalizer.state_dict() == before


@pytest.mark.parametrize("form", [form for form in FORMS if form["transform"] == "none"])
@pytest.mark.parametrize("scale", [1e-3, 1000.0])
def test_the_scale_of_the_rewards_does_not_matter(form, scale):
    rng = np.random.default_rng(0)
    one, other = make("episode", **form), make("episode", **form)
    for n in (5, 20, 1, 8, 30, 2, 40, 12):
        returns = rng.normal(3, 2, n).cumsum()
        assert np.allclose(one(returns), other(scale * returns), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("returns", [[0.0], [5.0], [3.0, 3.0, 3.0], [1e-300, 0.0]])
def test_episodes_of_one_step_and_equal_returns_have_finite_scores(returns):
    normalizer = make("episode")
    for _ in range(3):
        assert np.isfinite(normalizer(returns)).all()
    assert np.isfinite(normalizer([1.0, 2.0])).all()


def test_the_first_episode_is_judged_by_itself():
    returns = np.array([1.0, 2.0, 6.0])
    assert np.allclose(make("episode")(returns), (returns - 3) / returns.std())
    assert make("episode", level="first").learn(returns).centre == 1


def test_the_centre_is_the_filter_of_the_mean_returns():
    rng = np.random.default_rng(1)
    episodes = [rng.normal(10, 3, n) for n in (4, 9, 2, 30, 7)]
    means = np.array([returns.mean() for returns in episodes])
    path = filters.filter_series(means[1:], 0.3, 1.0, start=filters.Belief(means[0], 1.0))
    normalizer = make("episode", ratio=0.3)
    centres = [normalizer.learn(returns).centre for returns in episodes]
    assert np.allclose(centres, [means[0], *path.prior_mean])
    posterior = make("episode", ratio=0.3, judge="posterior")
    assert np.allclose([posterior.learn(returns).centre for returns in episodes], [means[0], *path.mean])


def test_the_scale_is_the_filter_of_the_logarithm_of_the_mean_square_around_the_centre():
    rng = np.random.default_rng(2)
    episodes = [rng.normal(10, 3, n) for n in (4, 9, 2, 30, 7)]
    normalizer = make("episode", ratio=0.3)
    found = [normalizer.learn(returns) for returns in episodes]
    logs = np.log([np.mean((returns - centre) ** 2) for returns, (centre, _) in zip(episodes, found, strict=True)])
    path = filters.filter_series(logs[1:], 0.3, 1.0, start=filters.Belief(logs[0], 1.0))
    assert np.allclose([scale for _, scale in found], np.exp(np.array([logs[0], *path.prior_mean]) / 2), rtol=1e-6)


LENGTHS = (4, 9, 2, 30, 7, 12, 5, 3, 40, 6, 8, 15)
BANK = [1e-4, 0.000518, 0.00268, 0.0139, 0.072, 0.373, 1.93, 10]


def some_episodes(seed=6):
    """Episodes of different lengths around a level that wanders, the ninth of them far off."""
    rng = np.random.default_rng(seed)
    levels = np.cumsum(rng.normal(0, 0.7, len(LENGTHS)))
    return [
        level + 50 * (place == 8) + rng.normal(0, 1, n)
        for place, (level, n) in enumerate(zip(levels, LENGTHS, strict=True))
    ]


def centres(episodes, **options):
    normalizer = make("episode", **options)
    return [normalizer.learn(returns).centre for returns in episodes]


def by_hand(means, ratio_at, noise=None, far=np.inf):
    """Return what one filter expects of each mean, with any ratio, noise and reach at each of them, in units of R."""
    belief, squares, expected = filters.Belief(means[0], 1.0), [], [means[0]]
    for t, z in enumerate(means[1:], 1):
        prior, R = filters.predict(belief, ratio_at(t)), 1.0 if noise is None else noise[t]
        expected.append(prior.mean)
        if t >= 5:
            reach = far * np.sqrt((prior.var + R) * np.mean(squares))
            z = prior.mean + np.clip(z - prior.mean, -reach, reach)
        squares.append((z - prior.mean) ** 2 / (prior.var + R))
        belief = filters.update(prior, z, R)
    return expected


def learned_ratios(z):
    """Return the ratio after each value: by the moments, forgetting 2 %, within the range of the bank."""
    ratios, moments = [], filters.Moments()
    for t, value in enumerate(z, 1):
        moments = filters.follow_moments(moments, value, 0.02)
        found = filters.solve_moments(moments.square, moments.product).ratio if t >= 5 else 0.1
        ratios.append(np.clip(found, 1e-4, 10))
    return ratios


def test_the_learned_ratio_follows_the_moments_of_level_and_spread_each():
    rng = np.random.default_rng(7)
    episodes = [level + rng.normal(0, 1, 3) for level in rng.normal(0, 1, 150)]
    means = np.array([returns.mean() for returns in episodes])
    ratios = learned_ratios(means)
    assert min(ratios) == 1e-4  # and so the range matters
    expected = by_hand(means, lambda t: ratios[t])
    normalizer = make("episode", noise="learned")
    found = [normalizer.learn(returns) for returns in episodes]
    assert np.allclose([centre for centre, _ in found], expected)
    assert normalizer.level_ratio == pytest.approx(ratios[-1])
    logs = np.log([np.mean((returns - centre) ** 2) for returns, centre in zip(episodes, expected, strict=True)])
    ratios = learned_ratios(logs)
    assert np.allclose(2 * np.log([scale for _, scale in found]), by_hand(logs, lambda t: ratios[t]), atol=1e-6)


def test_the_centre_of_a_bank_is_the_mean_of_eight_filters_weighted_by_their_likelihood():
    episodes = some_episodes()
    means = np.array([returns.mean() for returns in episodes])
    paths = np.array([by_hand(means, lambda _, ratio=ratio: ratio) for ratio in BANK])
    expected = [means[0]]
    for t in range(1, len(means)):
        likelihood = np.array([filters.concentrated_likelihood(means[:t], ratio) if t > 1 else 0 for ratio in BANK])
        weight = np.exp(likelihood - likelihood.max())
        expected.append(weight @ paths[:, t] / weight.sum())
    assert np.allclose(centres(episodes, noise="bank"), expected)
    bank = filters.start_bank(means[0], BANK)
    for z in means[1:]:
        bank = filters.follow_bank(bank, z)
    assert after({"noise": "bank"}, episodes).level_ratio == pytest.approx(filters.bank_noise(bank).ratio)


@pytest.mark.parametrize("by_length", [False, True])
@pytest.mark.parametrize("robust", [False, True])
def test_the_noise_of_an_episode_goes_with_its_length_and_three_deviations_are_far(robust, by_length):
    episodes = some_episodes()
    means = np.array([returns.mean() for returns in episodes])
    earlier = np.append(1, np.cumsum(LENGTHS)[:-1] / np.arange(1, len(LENGTHS)))  # mean length of those before
    expected = by_hand(means, lambda _: 0.2, earlier / LENGTHS if by_length else None, far=3 if robust else np.inf)
    assert np.allclose(centres(episodes, ratio=0.2, robust=robust, by_length=by_length), expected)


def test_the_slope_drifts_by_a_hundredth_of_the_level():
    episodes = some_episodes()
    means = [float(returns.mean()) for returns in episodes]
    belief, expected = filters.Trend(means[0], 0.0, 1.0, 0.0, 0.002), [means[0]]
    for z in means[1:]:
        prior = filters.predict_trend(belief, 0.2, 0.002)
        expected.append(prior.level)
        belief = filters.update_trend(prior, z, 1.0)
    assert np.allclose(centres(episodes, ratio=0.2, slope=True), expected)
    assert after({"ratio": 0.2, "slope": True}, episodes).level_ratio == 0.2


@pytest.mark.parametrize("option", [{"transform": "symlog"}, {"level": "first"}])
def test_a_logarithm_or_the_first_return_is_followed_if_asked(option):
    episodes = some_episodes()
    seen = np.array([returns[0] if "level" in option else returns.mean() for returns in episodes])
    if "level" in option:
        expected = by_hand(seen, lambda _: 0.1)
    else:
        logs = np.array(by_hand(np.sign(seen) * np.log1p(np.abs(seen)), lambda _: 0.1))
        expected = np.sign(logs) * np.expm1(np.abs(logs))
    assert np.allclose(centres(episodes, **option), expected)


def test_a_bank_settles_on_the_memory_that_fits():
    rng = np.random.default_rng(3)
    level = np.cumsum(rng.normal(0, 3, 300))
    restless, calm = make("episode", noise="bank"), make("episode", noise="bank")
    for t in range(300):
        restless(np.full(1, level[t]) + rng.normal(0, 1))
        calm(np.full(1, 5.0) + rng.normal(0, 1))
    assert abs(restless.recall(np.zeros(1)).centre - level[-1]) < 4
    assert abs(calm.recall(np.zeros(1)).centre - 5) < 0.4


def test_learned_noise_follows_the_moments():
    rng = np.random.default_rng(4)
    normalizer = make("episode", noise="learned")
    for t in range(400):
        normalizer(np.array([float(t % 2) + rng.normal(0, 0.01)]))  # nothing but noise: a long memory is right
    assert abs(normalizer.recall(np.zeros(1)).centre - 0.5) < 0.1


def test_one_outlier_moves_a_robust_level_less():
    plain, robust = make("episode"), make("episode", robust=True)
    rng = np.random.default_rng(5)
    for normalizer in (plain, robust):
        for value in rng.normal(10, 1, 30):
            normalizer([value, value + 1])
        normalizer([1e4, 1e4])
    assert plain.recall(np.zeros(1)).centre > 1000 > 20 > robust.recall(np.zeros(1)).centre


def test_a_slope_is_followed_without_lagging_behind():
    plain, sloped = make("episode"), make("episode", slope=True)
    for t in range(200):
        for normalizer in (plain, sloped):
            normalizer([2.0 * t, 2.0 * t])
    lag = [400 - normalizer.recall(np.zeros(1)).centre for normalizer in (plain, sloped)]
    assert lag[0] > 4 > 0.5 > abs(lag[1])


def test_a_long_episode_counts_for_more_if_asked():
    equal, weighted = make("episode"), make("episode", by_length=True)
    for normalizer in (equal, weighted):
        for _ in range(20):
            normalizer(np.zeros(10))
        normalizer(np.full(1000, 8.0))
    assert weighted.recall(np.zeros(1)).centre > equal.recall(np.zeros(1)).centre + 1


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"judge": "later"}, "judge must be one of"),
        ({"noise": "white"}, "noise must be one of"),
        ({"ratio": 0}, "ratio must be"),
        ({"ratio": -1}, "ratio must be"),
        ({"level": "last"}, "level must be one of"),
        ({"slope": 1}, "slope must be True or False, got 1"),
        ({"robust": "yes"}, "robust must be True or False"),
        ({"slope": True, "noise": "bank"}, "noise must be 'fixed' with a slope, got 'bank'"),
        ({"slope": True, "robust": True}, "robust must be False with a slope, got True"),
        ({"transform": "log"}, "transform must be one of"),
        ({"eps": 0}, "eps must be"),
    ],
)
def test_a_bad_option_gets_a_sentence(bad, words):
    with pytest.raises(ValueError, match=words):
        make("episode", **bad)


@pytest.mark.parametrize(
    "broken", [{"centre": [[0.0]] * 4}, {"moments": 3}, {"episodes": -1}, {"length": float("nan")}]
)
def test_a_broken_state_changes_nothing(broken):
    normalizer = after({"noise": "bank"}, [np.array([1.0, 2.0]), np.array([3.0])])
    before = normalizer.state_dict()
    with pytest.raises(ValueError, match="state"):
        normalizer.load_state_dict(before | broken)
    assert normalizer.state_dict() == before
