"""Estimating Q and R: against brute force, against statsmodels, and by what must be true of any estimate."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

from kscore import filters
from kscore.filters import Noise

property_test = examples(40)


def walk(ratio, n, seed=0, scale=1.0):
    """A drifting mean seen through noise of unit variance, times a scale."""
    rng = np.random.default_rng([seed, n])
    return scale * (np.cumsum(rng.normal(0, math.sqrt(ratio), n)) + rng.normal(0, 1, n))


series = st.builds(
    walk,
    st.sampled_from([0.0, 0.01, 0.1, 1.0, 10.0]),
    st.integers(5, 60),
    st.integers(0, 1000),
    st.sampled_from([1e-6, 1.0, 1e6]),
)


# The likelihood


@property_test
@given(series, st.floats(0, 5), st.floats(0.01, 5))
def test_the_likelihood_is_that_of_the_multivariate_normal(z, Q, R):
    """Differences to the first observation have the covariance R + Q min(s, t), and R more where s = t."""
    z = z[:12]
    power = float(np.mean(np.diff(z) ** 2))
    Q, R = Q * power, R * power
    t = np.arange(1, len(z))
    covariance = Q * np.minimum.outer(t, t) + R * (np.eye(len(t)) + 1)
    d = z[1:] - z[0]
    expected = -0.5 * (
        len(t) * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1] + d @ np.linalg.solve(covariance, d)
    )
    assert filters.local_level_likelihood(z, Q, R) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_likelihood_is_that_of_statsmodels():
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    z = walk(0.1, 200)
    model = UnobservedComponents(z, "local level")
    model.ssm.loglikelihood_burn = 1  # the first observation sets the level here, too
    model.ssm.initialize_approximate_diffuse(1e9)
    for Q, R in ((0.1, 1.0), (0.0, 2.0), (3.0, 0.2)):
        assert filters.local_level_likelihood(z, Q, R) == pytest.approx(model.loglike([R, Q]), abs=1e-3)


@property_test
@given(series, st.floats(1e-3, 10))
def test_the_concentrated_likelihood_is_the_best_over_all_scales(z, ratio):
    best = filters.concentrated_likelihood(z, ratio)
    power = float(np.mean(np.diff(z) ** 2))
    tried = [filters.local_level_likelihood(z, ratio * R, R) for R in power * np.geomspace(1e-3, 1e4, 400)]
    assert best >= max(tried) - 1e-6
    assert best == pytest.approx(max(tried), abs=0.01 * len(z))


# Estimates from a whole series


@pytest.mark.parametrize("ratio", [0.01, 0.1, 1.0])
def test_a_thousand_observations_give_the_ratio_within_a_factor_of_two_nine_times_of_ten(ratio):
    found = [filters.estimate_noise(walk(ratio, 1000, seed)).ratio for seed in range(60)]
    assert np.mean([ratio / 2 < value < 2 * ratio for value in found]) >= 0.9


@pytest.mark.parametrize("seed", range(5))
def test_the_most_likely_ratio_is_that_of_a_grid(seed):
    z = walk(0.1, 150, seed)
    found = filters.estimate_noise(z)
    grid = np.geomspace(1e-5, 1e3, 2001)
    likelihoods = [filters.concentrated_likelihood(z, ratio) for ratio in grid]
    assert filters.concentrated_likelihood(z, found.ratio) >= max(likelihoods) - 1e-9
    assert math.log(found.ratio) == pytest.approx(math.log(grid[np.argmax(likelihoods)]), abs=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_the_estimate_is_that_of_statsmodels(seed):
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    z = walk(0.1, 400, seed)
    R, Q = UnobservedComponents(z, "local level").fit(disp=False).params
    found = filters.estimate_noise(z)
    assert (found.Q, found.R) == (pytest.approx(Q, rel=0.05), pytest.approx(R, rel=0.02))


@pytest.mark.parametrize("seed", range(2))
def test_the_gradient_climbs_to_the_same_place(seed):
    z = walk(0.3, 60, seed)
    found, expected = filters.estimate_noise(z, "gradient"), filters.estimate_noise(z)
    assert found.R == pytest.approx(expected.R, rel=1e-2) and found.Q == pytest.approx(expected.Q, rel=2e-2)
    assert filters.local_level_likelihood(z, *found) == pytest.approx(
        filters.local_level_likelihood(z, *expected), abs=1e-4
    )


def test_the_gradient_is_that_of_the_likelihood():
    z = torch.as_tensor(walk(0.2, 12))
    Q, R = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.3, 0.8))
    assert float(filters.torch_likelihood(z, Q, R).detach()) == pytest.approx(
        filters.local_level_likelihood(z.numpy(), 0.3, 0.8)
    )
    assert torch.autograd.gradcheck(lambda Q, R: filters.torch_likelihood(z, Q, R), (Q, R))


def test_moments_are_exact_where_there_are_many():
    for Q, R in ((0.5, 1.0), (2.0, 0.1)):
        rng = np.random.default_rng(3)
        z = np.cumsum(rng.normal(0, math.sqrt(Q), 200_000)) + rng.normal(0, math.sqrt(R), 200_000)
        found = filters.estimate_noise(z, "moments")
        assert found.Q == pytest.approx(Q, rel=0.05) and found.R == pytest.approx(R, rel=0.1)


@pytest.mark.parametrize(
    ("square", "product", "expected"),
    [
        (3.0, -1.0, Noise(1.0, 1.0)),
        (2.0, -1.0, Noise(0.0, 1.0)),
        (2.0, -1.5, Noise(0.0, 1.0)),
        (2.0, 0.5, Noise(pytest.approx(2.0), pytest.approx(2e-12))),
    ],
)
def test_two_moments_make_two_variances_and_what_is_impossible_goes_to_the_edge(square, product, expected):
    assert filters.solve_moments(square, product) == expected


@property_test
@given(series, st.sampled_from(["likelihood", "moments"]), st.sampled_from([1e-3, 1000.0]))
def test_the_scale_of_the_data_does_not_matter(z, method, scale):
    one, other = filters.estimate_noise(z, method), filters.estimate_noise(scale * z, method)
    assert other.gain == pytest.approx(one.gain, abs=2e-3)
    assert other.R == pytest.approx(scale**2 * one.R, rel=1e-2)


@property_test
@given(series, st.sampled_from(["likelihood", "moments"]))
def test_an_estimate_can_be_filtered_with(z, method):
    found = filters.estimate_noise(z, method)
    assert found.Q >= 0 and found.R > 0 and 0 <= found.gain <= 1
    filters.filter_series(z, found.Q, found.R)


def test_white_noise_has_no_drift_more_often_than_not():
    found = [filters.estimate_noise(walk(0.0, 500, seed)).Q for seed in range(30)]
    assert np.mean([Q == 0 for Q in found]) >= 0.5


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([1.0, 2.0], "series must have at least 3 observations, got 2"),
        ([1.0] * 5, "series must vary, .*got 5 times 1"),
        ([1.0, math.nan, 2.0], "series"),
        ([], "series"),
    ],
)
def test_a_series_that_says_nothing_of_its_noise_is_refused(bad, words):
    with pytest.raises(ValueError, match=words):
        filters.estimate_noise(bad)


def test_a_method_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="method must be one of .*got 'em'"):
        filters.estimate_noise(walk(0.1, 9), "em")


# Estimates that follow a stream


def followed(z, **options):
    moments = filters.Moments()
    for value in z.tolist():
        moments = filters.follow_moments(moments, value, **options)
    return moments


@property_test
@given(series)
def test_without_forgetting_the_moments_are_those_of_the_series(z):
    moments, steps = followed(z, forget=0.0), np.diff(z)
    assert moments.square == pytest.approx(np.mean(steps**2))
    assert moments.product == pytest.approx(np.mean(steps[1:] * steps[:-1]), abs=1e-9 * np.mean(steps**2))


def test_with_forgetting_they_follow_a_change():
    z = np.append(walk(0.1, 500), 30 * walk(0.1, 500, seed=1))
    assert followed(z).square == pytest.approx(np.mean(np.diff(z[-100:]) ** 2), rel=0.5)


@property_test
@given(series, st.sampled_from([1e-3, 1000.0]), st.floats(0, 0.5))
def test_moments_that_follow_a_stream_do_not_mind_its_scale(z, scale, forget):
    one, other = (
        filters.solve_moments(moments.square, moments.product)
        for moments in (followed(z, forget=forget), followed(scale * z, forget=forget))
    )
    assert other.gain == pytest.approx(one.gain, abs=1e-6) and other.R == pytest.approx(scale**2 * one.R)


def test_the_moments_start_as_plain_means_and_then_move_by_a_fixed_share():
    z, forget = walk(0.3, 40), 0.1
    steps = np.diff(z)
    products = steps[1:] * steps[:-1]
    square, product = np.mean(steps[:10] ** 2), np.mean(products[:10])
    for step in steps[10:]:
        square += forget * (step**2 - square)
    for value in products[10:]:
        product += forget * (value - product)
    assert followed(z, forget=forget)[3:] == (pytest.approx(square), pytest.approx(product))


def bank_of(z, **options):
    bank = filters.start_bank(float(z[0]))
    for value in z[1:].tolist():
        bank = filters.follow_bank(bank, value, **options)
    return bank


@property_test
@given(series)
def test_a_bank_is_so_many_filters_weighted_by_their_likelihood(z):
    bank = bank_of(z)
    likelihoods = np.array([filters.concentrated_likelihood(z, ratio) for ratio in bank.ratio])
    weights = np.exp(likelihoods - likelihoods.max())
    assert np.allclose(filters.bank_weights(bank), weights / weights.sum(), atol=1e-6)
    for ratio, mean, var in zip(bank.ratio, bank.mean, bank.var, strict=True):
        path = filters.filter_series(z[1:], ratio, 1.0, start=filters.Belief(float(z[0]), 1.0))
        assert path.last == (pytest.approx(mean), pytest.approx(var))


@property_test
@given(series, st.sampled_from([1e-4, 1000.0]))
def test_a_bank_does_not_mind_the_scale(z, scale):
    one, other = bank_of(z), bank_of(scale * z)
    assert np.allclose(filters.bank_weights(one), filters.bank_weights(other), atol=1e-6)
    assert filters.bank_belief(other).mean == pytest.approx(scale * filters.bank_belief(one).mean, rel=1e-6)
    assert filters.bank_belief(other).var == pytest.approx(scale**2 * filters.bank_belief(one).var, rel=1e-5)


@property_test
@given(series, st.floats(0, 0.5))
def test_a_bank_that_forgets_counts_what_is_old_for_less(z, forget):
    bank, weight = bank_of(z, forget=forget), (1 - forget) ** np.arange(len(z) - 2, -1, -1)
    assert bank.count == pytest.approx(weight.sum())
    for place, ratio in enumerate(bank.ratio):
        path = filters.filter_series(z[1:], ratio, 1.0, start=filters.Belief(float(z[0]), 1.0))
        S = path.prior_var + 1
        assert bank.logs[place] == pytest.approx(weight @ np.log(S))
        assert bank.squares[place] == pytest.approx(weight @ ((z[1:] - path.prior_mean) ** 2 / S))


def test_a_bank_gives_the_noise_and_the_belief_of_its_mixture():
    bank = bank_of(walk(0.1, 40))
    weight, R = filters.bank_weights(bank), bank.squares / 39
    assert filters.bank_noise(bank) == (pytest.approx(weight @ (bank.ratio * R)), pytest.approx(weight @ R))
    rng = np.random.default_rng(0)
    who = rng.choice(len(weight), 400_000, p=weight)
    drawn = rng.normal(bank.mean[who], np.sqrt(bank.var * R)[who])
    assert filters.bank_belief(bank) == (pytest.approx(drawn.mean(), abs=0.01), pytest.approx(drawn.var(), rel=0.02))


def test_a_bank_finds_the_ratio_and_one_that_forgets_changes_its_mind():
    calm = walk(0.002, 600)
    assert filters.bank_noise(bank_of(calm)).ratio < 0.02
    restless = calm[-1] + walk(4.0, 200, seed=2)
    both = np.append(calm, restless)
    assert filters.bank_noise(bank_of(both, forget=0.05)).ratio > 0.5


def test_a_bank_that_has_seen_one_observation_knows_nothing_yet():
    bank = filters.start_bank(3.0)
    assert np.allclose(filters.bank_weights(bank), 1 / 8) and filters.bank_belief(bank).mean == pytest.approx(3)


def test_a_more_certain_observation_weighs_more():
    bank = filters.start_bank(0.0, [0.1])
    usual, certain = (filters.follow_bank(bank, 1.0, noise=noise) for noise in (1.0, 0.25))
    assert certain.mean[0] == pytest.approx(1.1 / 1.35) and usual.mean[0] == pytest.approx(1.1 / 2.1)
    assert certain.var[0] == pytest.approx(1.1 / 1.35 * 0.25)


# A robust update

beliefs = st.builds(filters.Belief, st.floats(-100, 100), st.floats(0, 100))


@property_test
@given(beliefs, st.floats(-1, 1), st.floats(0.01, 100), st.floats(0.5, 5))
def test_what_is_not_far_off_counts_in_full(prior, share, R, far):
    z = prior.mean + 0.999 * share * far * math.sqrt(prior.var + R)
    assert filters.robust_update(prior, z, R, far) == filters.update(prior, z, R)


@property_test
@given(beliefs, st.floats(1, 1e6), st.floats(0.01, 100), st.floats(0.5, 5), st.sampled_from([-1, 1]))
def test_what_is_too_far_off_counts_as_if_it_were_just_so_far(prior, times, R, far, side):
    edge = side * far * math.sqrt(prior.var + R)
    found, expected = (
        filters.robust_update(prior, prior.mean + times * edge, R, far),
        filters.update(prior, prior.mean + edge, R),
    )
    assert found == (pytest.approx(expected.mean), pytest.approx(expected.var))


def test_by_default_three_deviations_are_far():
    prior = filters.Belief(1.0, 3.0)
    assert filters.robust_update(prior, 1e9, 1.0).mean == pytest.approx(1 + 0.75 * 3 * 2)
    with pytest.raises(ValueError, match="far must be"):
        filters.robust_update(prior, 1.0, 1.0, far=0)


# Level plus slope


def test_level_and_slope_are_those_of_the_matrix_filter():
    F, H, Q = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]]), np.diag([0.3, 0.02])
    x, P = np.array([1.0, 0.5]), np.array([[2.0, 0.3], [0.3, 0.7]])
    belief = filters.Trend(1.0, 0.5, 2.0, 0.3, 0.7)
    for z in (2.0, 4.0, 3.5):
        x, P = F @ x, F @ P @ F.T + Q
        K = P @ H.T / (H @ P @ H.T + 0.8)
        x, P = x + (K @ (z - H @ x)), (np.eye(2) - K @ H) @ P
        belief = filters.update_trend(filters.predict_trend(belief, 0.3, 0.02), z, 0.8)
        assert np.allclose([belief.level, belief.slope], x)
        assert np.allclose([belief.var, belief.cov, belief.slope_var], [P[0, 0], P[0, 1], P[1, 1]])


def test_without_a_slope_it_is_the_local_level():
    belief, prior = filters.Trend(1.0, 0.0, 2.0, 0.0, 0.0), filters.Belief(1.0, 2.0)
    for z in (2.0, 4.0, 3.5):
        belief = filters.update_trend(filters.predict_trend(belief, 0.3, 0.0), z, 0.8)
        prior = filters.update(filters.predict(prior, 0.3), z, 0.8)
        assert (belief.level, belief.var, belief.slope) == (pytest.approx(prior.mean), pytest.approx(prior.var), 0.0)


def test_level_and_slope_are_those_of_statsmodels():
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    z, (Q, Q_slope, R) = walk(0.2, 60) + 0.5 * np.arange(60), (0.3, 0.02, 0.8)
    model = UnobservedComponents(z, "local linear trend")
    model.ssm.initialize_known(np.array([z[0], 0.0]), np.diag([2.0, 0.7]))  # before the first observation
    expected = model.filter([R, Q, Q_slope])
    belief = filters.update_trend(filters.Trend(z[0], 0.0, 2.0, 0.0, 0.7), z[0], R)
    for value in z[1:].tolist():
        belief = filters.update_trend(filters.predict_trend(belief, Q, Q_slope), value, R)
    assert np.allclose([belief.level, belief.slope], expected.filtered_state[:, -1])
    assert np.allclose(
        [[belief.var, belief.cov], [belief.cov, belief.slope_var]], expected.filtered_state_cov[:, :, -1]
    )


@property_test
@given(series, st.floats(0, 10), st.floats(0, 10), st.floats(0.01, 10), st.sampled_from([1e-3, 1000.0]))
def test_level_and_slope_stay_possible_and_do_not_mind_the_scale(z, Q, Q_slope, R, scale):
    one, other = filters.Trend(z[0], 0.0, R, 0.0, R), filters.Trend(scale * z[0], 0.0, R, 0.0, R)
    for value in z[1:].tolist():
        one = filters.update_trend(filters.predict_trend(one, Q, Q_slope), value, R)
        other = filters.update_trend(filters.predict_trend(other, Q, Q_slope), scale * value, R)
        assert 0 < one.var <= R and one.slope_var > 0
        assert one.cov**2 <= one.var * one.slope_var * (1 + 1e-9)
    size = scale * np.abs(z).max()
    assert other[:2] == (
        pytest.approx(scale * one.level, abs=1e-9 * size),
        pytest.approx(scale * one.slope, abs=1e-9 * size),
    )
    assert other[2:] == one[2:]
