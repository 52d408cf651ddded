"""Models of a series of episodes: against the filters they are made of, brute force and statsmodels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sizes import examples

from kscore import filters
from kscore.labs import drift_models
from kscore.labs.drift_models import Innovations

property_test = examples(25)


def walk(ratio, n, seed=0, slope=0.0):
    """A drifting mean seen through unit noise."""
    rng = np.random.default_rng([seed, n])
    return np.cumsum(rng.normal(slope, np.sqrt(ratio), n)) + rng.normal(0, 1, n)


series = st.builds(walk, st.sampled_from([0.0, 0.05, 1.0]), st.integers(10, 50), st.integers(0, 1000))
ratios = st.floats(0, 20)


def normal_likelihood(model):
    """The likelihood at the best variance, innovation by innovation."""
    R = np.mean(model.missed**2 / model.variance)
    return stats.norm.logpdf(model.missed, scale=np.sqrt(R * model.variance)).sum()


# The models


@property_test
@given(series, ratios)
def test_the_local_level_is_the_filter(z, ratio):
    path = filters.filter_series(z[1:], ratio, 1.0, start=filters.Belief(float(z[0]), 1.0))
    found = drift_models.local_level(z, ratio)
    assert found.missed == pytest.approx((z[1:] - path.prior_mean)[1:], abs=1e-9)
    assert found.variance == pytest.approx((path.prior_var + 1)[1:])
    assert found.likelihood == pytest.approx(normal_likelihood(found))


@property_test
@given(series)
def test_without_drift_it_is_the_running_mean(z):
    missed = drift_models.local_level(z, 0.0).missed
    assert missed == pytest.approx([z[t] - z[:t].mean() for t in range(2, len(z))], abs=1e-9)


@property_test
@given(series, st.floats(0.01, 1))
def test_a_moving_average_forgets(z, forgetting):
    level, expected = z[0], []
    for value in z[1:]:
        expected.append(value - level)
        level = (1 - forgetting) * level + forgetting * value
    found = drift_models.moving_average(z, forgetting)
    assert found.missed == pytest.approx(expected[1:], abs=1e-9) and set(found.variance) == {1.0}


@property_test
@given(series, ratios, st.floats(0, 2))
def test_level_and_slope_have_the_likelihood_of_second_differences(z, ratio, slope_ratio):
    """Given the first two values, what remains of n values are n - 2 second differences, normal with a known band."""
    n = len(z)
    second = np.diff(np.eye(n), 2, axis=0)  # (n - 2, n)
    first = np.diff(np.eye(n - 1), 1, axis=0)  # of the level's drifts, one for each step
    covariance = second @ second.T + ratio * first @ first.T + slope_ratio * np.eye(n - 2)
    d = second @ z
    R = d @ np.linalg.solve(covariance, d) / (n - 2)
    expected = stats.multivariate_normal.logpdf(d, cov=R * covariance)
    assert drift_models.sloped(z, ratio, slope_ratio).likelihood == pytest.approx(expected, rel=1e-6, abs=1e-6)


@property_test
@given(series, ratios, st.floats(0, 2))
def test_a_slope_that_starts_flat_has_the_likelihood_of_the_differences_to_the_first_value(z, ratio, slope_ratio):
    """The level after t steps is a sum of t drifts of its own and of t, t - 1, ... drifts of the slope."""
    n = len(z)
    drifts, slopes = np.tril(np.ones((n, n)), -1), np.maximum(np.subtract.outer(np.arange(n), np.arange(n)), 0)
    seen = np.eye(n)[1:] - np.eye(n)[0]  # (n - 1, n)
    covariance = seen @ (np.eye(n) + ratio * drifts @ drifts.T + slope_ratio * slopes @ slopes.T) @ seen.T
    root = np.linalg.cholesky(covariance)
    missed, spread = np.linalg.solve(root, seen @ z)[1:], np.diag(root)[1:]  # in order, from the third value on
    found = drift_models.sloped(z, ratio, slope_ratio, flat=True)
    assert found.missed == pytest.approx(missed * spread, abs=1e-6) and found.variance == pytest.approx(spread**2)


@property_test
@given(series, ratios)
def test_a_flat_slope_that_never_drifts_is_the_local_level(z, ratio):
    one, other = drift_models.sloped(z, ratio, 0.0, flat=True), drift_models.local_level(z, ratio)
    assert one.missed == pytest.approx(other.missed) and one.variance == pytest.approx(other.variance)


@pytest.mark.parametrize("model", [drift_models.local_level, drift_models.moving_average])
def test_candidates_are_tried_side_by_side(model):
    z, tried = walk(0.1, 40), np.array([0.01, 0.2, 0.9])
    together = model(z, tried)
    assert together.missed.shape == (38, 3)
    assert together.likelihood == pytest.approx([model(z, one).likelihood for one in tried])


def test_pairs_of_candidates_are_tried_side_by_side():
    z, first, second = walk(0.1, 40), np.array([0.1, 0.1, 3.0]), np.array([0.0, 0.2, 0.2])
    assert drift_models.sloped(z, first, second).likelihood == pytest.approx(
        [drift_models.sloped(z, *pair).likelihood for pair in zip(first, second, strict=True)]
    )


@property_test
@given(series, st.floats(-5, 5), st.floats(-2, 2).filter(lambda b: abs(b) > 0.01))
def test_a_line_over_predictions_does_not_mind_their_scale(z, offset, factor):
    x = np.sin(np.arange(len(z)))
    found = drift_models.along_line(z, offset + factor * x)
    line = stats.linregress(x[2:], z[2:])
    assert found.missed == pytest.approx(z[2:] - line.intercept - line.slope * x[2:], abs=1e-7)


def test_a_line_over_equal_predictions_is_the_mean():
    z = walk(0.1, 20)
    assert drift_models.along_line(z, np.full(20, 3.0)).missed == pytest.approx(z[2:] - z[2:].mean())


@property_test
@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_the_belief_that_is_carried_is_that_of_the_filter_over_all_steps(lengths):
    Q, R, gamma = 1e-4, 1e-2, 0.99
    settled = filters.steady_state(Q, R)
    belief, expected = filters.Belief(0.0, settled.var), []
    for N in lengths:
        expected.append(float(belief.mean))
        returns = (1 - gamma ** (N - np.arange(N))) / (1 - gamma)
        belief = filters.filter_series(returns, Q, R, start=belief).last
    assert drift_models.carried_belief(np.array(lengths), Q, R, gamma) == pytest.approx(expected)


# What innovations look like


def test_the_whiteness_is_that_of_statsmodels():
    from statsmodels.stats.diagnostic import acorr_ljungbox

    z = np.random.default_rng(1).normal(0, 1, 80)
    expected = acorr_ljungbox(z, lags=[10], model_df=1).lb_pvalue.iloc[0]
    assert 0.01 < expected < 0.99 and Innovations(z, np.ones(80)).whiteness() == pytest.approx(expected)
    assert np.isfinite(Innovations(z[:5], np.ones(5)).whiteness())


def test_correlation_and_kurtosis_are_what_they_are_called():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 3, 20_000)
    found = Innovations(noise, np.ones(20_000))
    assert abs(found.correlation) < 0.03 and abs(found.kurtosis - 3) < 0.2
    assert np.mean(found.standardized**2) == pytest.approx(1)
    smooth = Innovations(noise[1:] + noise[:-1], np.ones(19_999))
    assert smooth.correlation == pytest.approx(0.5, abs=0.03) and smooth.whiteness() < 1e-6
    noise[::1000] *= 20
    assert Innovations(noise, np.ones(20_000)).kurtosis > 10


def test_the_model_that_made_a_series_leaves_white_innovations_most_of_the_time():
    p = [drift_models.fit_all(walk(0.1, 200, seed))["local level"].innovations.whiteness() for seed in range(40)]
    assert np.mean(np.array(p) < 0.05) < 0.2


# Fits


@property_test
@given(series)
def test_no_setting_on_a_grid_is_more_likely_than_the_fit(z):
    found = drift_models.fit_all(z)
    tried = np.append(0.0, np.geomspace(1e-5, 1e2, 60))
    assert found["local level"].innovations.likelihood > drift_models.local_level(z, tried).likelihood.max() - 0.02
    tried = np.geomspace(1e-3, 1, 60)
    assert (
        found["moving average"].innovations.likelihood > drift_models.moving_average(z, tried).likelihood.max() - 0.02
    )


@property_test
@given(series)
def test_a_model_that_contains_another_is_at_least_as_likely(z):
    found = {name: fit.innovations.likelihood for name, fit in drift_models.fit_all(z).items()}
    assert found["local level"] >= found["running mean"] - 1e-9


@pytest.mark.parametrize("ratio", [0.05, 1.0])
def test_the_ratio_is_the_most_likely_one(ratio):
    z = walk(ratio, 300)
    (found,), _ = drift_models.fit_all(z)["local level"]
    assert found == pytest.approx(filters.estimate_noise(z).ratio, rel=0.1)


@pytest.mark.parametrize(
    ("z", "best"),
    [
        (np.random.default_rng(0).normal(5, 1, 150), "running mean"),
        (walk(0.2, 300), "local level"),
        (walk(1e-9, 150, slope=1.0), "level and slope"),
    ],
)
def test_a_series_prefers_the_model_that_made_it(z, best):
    found = drift_models.fit_all(z)
    penalized = {name: fit.innovations.likelihood - 2 * len(fit.parameters) for name, fit in found.items()}
    penalized.pop("moving average")  # a settled local level is one
    assert max(penalized, key=penalized.get) == best


def test_the_scale_of_a_series_does_not_matter():
    z = walk(0.2, 60)
    one, other = drift_models.fit_all(z), drift_models.fit_all(1000 * z)
    for name, fit in one.items():
        assert other[name].parameters == pytest.approx(fit.parameters)
        assert other[name].innovations.standardized == pytest.approx(fit.innovations.standardized)


def test_what_the_steps_filter_expects_is_one_more_model():
    z, expected = walk(0.2, 30), np.arange(30.0)
    found = drift_models.fit_all(z, expected)
    assert list(found) == ["per-step filter", *drift_models.fit_all(z)]
    assert found["per-step filter"].innovations.missed == pytest.approx(drift_models.along_line(z, expected).missed)


@pytest.mark.parametrize("z", [np.ones(20), np.arange(9.0)])
def test_a_series_without_anything_to_fit_is_refused(z):
    with pytest.raises(ValueError, match="series must have at least 10 values"):
        drift_models.fit_all(z)
