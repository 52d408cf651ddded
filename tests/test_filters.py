"""The filter against closed forms, brute force, an independent library, and its own symmetries."""

import re
import subprocess
import sys
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are
from sizes import examples
from statsmodels.tsa.statespace.structural import UnobservedComponents

from kscore.filters import (
    START,
    Belief,
    Filtered,
    adaptive_filter_series,
    filter_series,
    gain,
    predict,
    steady_state,
    update,
)

ARRAYS = ("mean", "var", "prior_mean", "prior_var", "gain", "noise")
TIMINGS = ("after", "before")
Q_OVER_R = [10.0**k for k in range(-12, 13)]

property_test = examples(60)
observations = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30).map(np.array)
positive = st.floats(1e-4, 1e4)
not_negative = st.just(0.0) | positive
starts = st.builds(Belief, st.floats(-1e3, 1e3), positive)
alphas = st.floats(0, 1)
timings = st.sampled_from(TIMINGS)


def noisy(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(1.0, 2.0, shape)


def close(actual, expected, rtol: float = 1e-12, atol: float = 0.0) -> None:
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def same(actual: Filtered, expected: Filtered, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    for name in (*ARRAYS, "next_noise"):
        np.testing.assert_allclose(getattr(actual, name), getattr(expected, name), rtol, atol, err_msg=name)


def reference(z, Q, R, start=START, alpha=1.0, R_timing="after") -> Filtered:
    """P2, P3 and P6 as they are printed, one plain number at a time; alpha = 1 keeps R."""
    x, P = start
    rows = []
    for z_t in z:
        x_prior, P_prior = x, P + Q
        R_next = alpha * R + (1 - alpha) * (z_t - x_prior) ** 2
        R_used = R_next if R_timing == "before" else R
        K = P_prior / (P_prior + R_used)
        x, P = x_prior + K * (z_t - x_prior), (1 - K) * P_prior
        rows.append((x, P, x_prior, P_prior, K, R_used))
        R = R_next
    return Filtered(*np.array(rows).T, R)


# --- the steady state (P7, D1) -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", Q_OVER_R)
@pytest.mark.parametrize("R", [1e-6, 1.0, 1e6])
def test_steady_state_is_the_fixed_point_of_predict_and_update(ratio, R):
    Q = ratio * R
    steady = steady_state(Q, R)
    prior = predict(Belief(0.0, steady.var), Q)
    close(prior.var, steady.prior_var)
    close(gain(prior, R), steady.gain)
    close(update(prior, 0.0, R).var, steady.var)


@pytest.mark.parametrize("ratio", Q_OVER_R)
def test_steady_state_is_the_printed_formula_in_exact_arithmetic(ratio):
    R = 0.37
    steady = steady_state(ratio * R, R)
    with localcontext() as context:
        context.prec = 80
        exact_Q, exact_R = Decimal(ratio * R), Decimal(R)
        P = ((exact_Q**2 + 4 * exact_Q * exact_R).sqrt() - exact_Q) / 2
        expected = [float(P), float(P + exact_Q), float(P / exact_R)]
    close(steady, expected, rtol=1e-14)


@pytest.mark.parametrize("ratio", Q_OVER_R)
def test_steady_state_solves_the_riccati_equation(ratio):
    R = 2.5
    solver_error = 1e-13 / min(1, np.sqrt(ratio))  # scipy finds a pair of eigenvalues that merge as Q / R goes to 0
    riccati = solve_discrete_are([[1.0]], [[1.0]], [[ratio * R]], [[R]]).item()  # its unknown is the prior variance
    close(steady_state(ratio * R, R).prior_var, riccati, rtol=solver_error)


@pytest.mark.parametrize("P0", [0.0, 1.0, 100.0])
def test_the_recursion_arrives_at_the_steady_state_at_the_rate_of_D1(P0):
    Q, R = 0.01, 1.0
    steady = steady_state(Q, R)
    var = filter_series(np.zeros(300), Q, R, Belief(0.0, P0)).var
    close(var[-1], steady.var)
    gap = var[:60] - steady.var
    close(gap[41:] / gap[40:-1], (1 - steady.gain) ** 2, rtol=1e-3)


def test_limits_of_the_steady_state():
    assert steady_state(0.0, 3.0) == (0.0, 0.0, 0.0)
    close(steady_state(1e-10, 4.0).var, np.sqrt(1e-10 * 4.0), rtol=1e-5)  # P7 for Q << R
    close(steady_state(1e10, 4.0).var, 4.0, rtol=1e-9)  # Q >> R: only the newest observation counts


# --- independent answers -------------------------------------------------------------------------------------------


def test_filter_is_bayes_rule_on_a_grid():
    Q, R, start = 0.3, 0.5, Belief(0.4, 1.5)
    z = np.array([1.0, -0.5, 2.0, 2.5, -1.0])
    grid = np.linspace(-15, 15, 3001)
    density = np.exp(-((grid - start.mean) ** 2) / (2 * start.var))
    drift = np.exp(-(grid**2) / (2 * Q))
    series = filter_series(z, Q, R, start)

    def moments():
        weights = density / density.sum()
        mean = weights @ grid
        return mean, weights @ (grid - mean) ** 2

    for t, z_t in enumerate(z):
        density = np.convolve(density, drift, mode="same")
        close(moments(), (series.prior_mean[t], series.prior_var[t]), rtol=1e-9)
        density = density * np.exp(-((z_t - grid) ** 2) / (2 * R))
        close(moments(), (series.mean[t], series.var[t]), rtol=1e-9)


@pytest.mark.parametrize(("Q", "R"), [(0.0, 1.0), (1e-4, 1e-2), (0.1, 1.0), (10.0, 0.1)])
def test_filter_agrees_with_statsmodels(Q, R):
    z, start = noisy(300), Belief(-0.7, 2.0)
    peer = UnobservedComponents(z, "local level")
    peer.ssm.initialize_known(np.array([start.mean]), np.array([[start.var + Q]]))
    peer.ssm.tolerance = 0
    path, ours = peer.filter([R, Q]), filter_series(z, Q, R, start)
    theirs = {
        "mean": path.filtered_state,
        "var": path.filtered_state_cov,
        "prior_mean": path.predicted_state[:, :-1],
        "prior_var": path.predicted_state_cov[..., :-1],
    }
    for name, values in theirs.items():
        np.testing.assert_allclose(getattr(ours, name), np.ravel(values), rtol=1e-9, atol=1e-12, err_msg=name)


def test_without_drift_the_filter_averages_with_the_prior_as_pseudo_observations():
    z, R, start = noisy(200), 0.8, Belief(5.0, 0.2)
    pseudo, t = R / start.var, np.arange(1, len(z) + 1)
    averaged = filter_series(z, 0.0, R, start)
    close(averaged.mean, (pseudo * start.mean + np.cumsum(z)) / (pseudo + t))
    close(averaged.var, R / (pseudo + t))


def test_from_the_steady_state_the_filter_is_an_exponential_moving_average():  # D5
    z, Q, R = noisy(200), 0.02, 0.7
    steady = steady_state(Q, R)
    series = filter_series(z, Q, R, Belief(3.0, steady.var))
    ema, averages = 3.0, []
    for z_t in z:
        ema = (1 - steady.gain) * ema + steady.gain * z_t
        averages.append(ema)
    close(series.mean, averages)
    close(series.gain, steady.gain)


def test_one_update_by_hand():
    prior = predict(Belief(1.0, 2.0), 1.0)
    assert prior == (1.0, 3.0)
    assert gain(prior, 1.0) == 0.75
    close(update(prior, 5.0, 1.0), (4.0, 0.75))


@pytest.mark.parametrize("R_timing", TIMINGS)
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("Q", [0.0, 0.05])
def test_adaptive_filter_is_the_plain_reference(Q, alpha, R_timing):
    z, start = noisy(100), Belief(-2.0, 0.5)
    ours = adaptive_filter_series(z, Q, 0.3, alpha, start, R_timing=R_timing)
    same(ours, reference(z, Q, 0.3, start, alpha, R_timing), rtol=1e-11)


def test_adaptive_filter_defaults_to_the_published_alpha_and_the_released_timing():  # P6
    z = noisy(20)
    same(adaptive_filter_series(z, 0.1, 1.0), reference(z, 0.1, 1.0, START, alpha=0.9, R_timing="after"))
    assert START == (0.0, 1.0)


# --- one series, written in different ways -------------------------------------------------------------------------


def test_series_is_predict_and_update_repeated():
    z, Q, R, belief = noisy(50), 0.1, 0.6, Belief(2.0, 3.0)
    series = filter_series(z, Q, R, belief)
    for t, z_t in enumerate(z):
        prior = predict(belief, Q)
        belief = update(prior, z_t, R)
        close((series.prior_mean[t], series.prior_var[t]), prior)
        close((series.mean[t], series.var[t]), belief)
        close((series.gain[t], series.noise[t]), (gain(prior, R), R))
    close(series.last, belief)
    assert series.next_noise == R


def simple(z, R=0.4, start=START) -> Filtered:
    return filter_series(z, 0.05, R, start)


def adaptive_after(z, R=0.4, start=START) -> Filtered:
    return adaptive_filter_series(z, 0.05, R, 0.8, start, R_timing="after")


def adaptive_before(z, R=0.4, start=START) -> Filtered:
    return adaptive_filter_series(z, 0.05, R, 0.8, start, R_timing="before")


every_filter = pytest.mark.parametrize("run", [simple, adaptive_after, adaptive_before])
START_EACH = Belief(np.array([0.0, -1.0, 4.0]), np.array([1.0, 0.0, 9.0]))


@every_filter
@pytest.mark.parametrize("start", [Belief(0.3, 2.0), START_EACH], ids=["one start", "one start a stream"])
def test_streams_do_not_see_each_other(run, start):
    z = noisy(40, 3)
    together = run(z, start=start)
    for name in ARRAYS:
        assert getattr(together, name).shape == z.shape, name
    next_noise = np.broadcast_to(together.next_noise, 3)
    for i in range(3):
        alone = run(z[:, i], start=Belief(*(np.broadcast_to(part, 3)[i] for part in start)))
        same(Filtered(*(getattr(together, name)[:, i] for name in ARRAYS), next_noise[i]), alone, atol=0)


@pytest.mark.parametrize("run", [adaptive_after, adaptive_before])
def test_adaptive_streams_may_start_from_a_noise_of_their_own(run):
    z, R = noisy(40, 3), np.array([0.1, 1.0, 10.0])
    together = run(z, R)
    for i in range(3):
        close(together.mean[:, i], run(z[:, i], R[i]).mean)


@every_filter
@pytest.mark.parametrize("shape", [(30,), (30, 4), (30, 1)])
@pytest.mark.parametrize("cut", [1, 13, 29])
def test_a_series_cut_in_two_and_continued_is_the_whole(run, shape, cut):
    z = noisy(*shape)
    whole, first = run(z), run(z[:cut])
    second = run(z[cut:], first.next_noise, first.last)
    for name in ARRAYS:
        close(np.concatenate([getattr(first, name), getattr(second, name)]), getattr(whole, name))
    close(second.next_noise, whole.next_noise)


@pytest.mark.parametrize("R_timing", TIMINGS)
@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_adaptive_with_alpha_one_is_the_simple_filter(R_timing, shape):
    z, start = noisy(*shape), Belief(1.0, 0.3)
    same(adaptive_filter_series(z, 0.1, 0.7, 1.0, start, R_timing=R_timing), filter_series(z, 0.1, 0.7, start))


@every_filter
@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 3), (4, 3)])
def test_results_have_the_shape_of_the_observations(run, shape):
    series = run(noisy(*shape))
    assert {getattr(series, name).shape for name in ARRAYS} == {shape}
    assert np.shape(series.last.mean) == np.shape(series.last.var) == shape[1:]


# --- properties ----------------------------------------------------------------------------------------------------


@property_test
@given(observations, not_negative, positive, starts)
def test_variance_is_positive_and_at_most_R(z, Q, R, start):
    series = filter_series(z, Q, R, start)
    assert (series.var > 0).all()
    assert (series.var <= R).all()
    assert (series.var <= series.prior_var * (1 + 1e-15)).all()
    assert ((series.gain >= 0) & (series.gain <= 1)).all()


@property_test
@given(observations, not_negative, positive, alphas, starts, timings)
def test_adaptive_gain_is_a_share_and_variance_at_most_the_noise(z, Q, R, alpha, start, R_timing):
    series = adaptive_filter_series(z, Q, R, alpha, start, R_timing=R_timing)
    assert ((series.gain >= 0) & (series.gain <= 1)).all()
    assert (series.noise > 0).all()
    assert ((series.var > 0) & (series.var <= series.noise)).all()


@property_test
@given(observations, not_negative, positive, alphas, starts, timings)
def test_mean_stays_between_the_start_and_the_observations(z, Q, R, alpha, start, R_timing):
    seen = [start.mean, *z]
    margin = 1e-12 * max(map(abs, seen))
    for series in (filter_series(z, Q, R, start), adaptive_filter_series(z, Q, R, alpha, start, R_timing=R_timing)):
        assert series.mean.min() >= min(seen) - margin
        assert series.mean.max() <= max(seen) + margin


@property_test
@given(observations, not_negative, positive, starts, st.floats(-1e3, 1e3))
def test_shifting_the_observations_and_the_start_shifts_the_means(z, Q, R, start, shift):
    series = filter_series(z, Q, R, start)
    shifted = filter_series(z + shift, Q, R, Belief(start.mean + shift, start.var))
    close(shifted.mean, series.mean + shift, rtol=1e-9, atol=1e-9)
    close(shifted.var, series.var)


@property_test
@given(observations, not_negative, positive, alphas, starts, timings, st.integers(-10, 10).map(lambda k: 2.0**k))
def test_scaling_observations_and_deviations_together_scales_the_beliefs(z, Q, R, alpha, start, R_timing, c):
    def run(filter_, *options, c=1.0, **more):
        return filter_(c * z, c**2 * Q, c**2 * R, *options, Belief(c * start.mean, c**2 * start.var), **more)

    for plain, scaled in (
        (run(filter_series), run(filter_series, c=c)),
        (
            run(adaptive_filter_series, alpha, R_timing=R_timing),
            run(adaptive_filter_series, alpha, R_timing=R_timing, c=c),
        ),
    ):  # c is a power of two, so that nothing is rounded; atol is for an adaptive R that has shrunk to nothing
        close(scaled.mean, c * plain.mean, atol=1e-100)
        close(scaled.var, c**2 * plain.var, atol=1e-100)
        close(scaled.gain, plain.gain)


@property_test
@given(not_negative, positive, st.floats(0, 1e4))
def test_variance_moves_towards_its_steady_state_without_crossing_it(Q, R, P0):
    steady = steady_state(Q, R).var
    gaps = np.array([P0, *filter_series(np.zeros(40), Q, R, Belief(0.0, P0)).var]) - steady
    rounding = 1e-12 * max(P0, steady)
    for earlier, later in pairwise(gaps * (1 if P0 >= steady else -1)):
        assert -rounding <= later <= earlier + rounding


@property_test
@given(observations, observations, not_negative, positive, starts)
def test_gains_do_not_depend_on_the_data_of_the_simple_filter(z, other, Q, R, start):
    n = min(len(z), len(other))
    one, two = filter_series(z[:n], Q, R, start), filter_series(other[:n], Q, R, start)
    np.testing.assert_array_equal(one.gain, two.gain)
    np.testing.assert_array_equal(one.var, two.var)


# --- extremes ------------------------------------------------------------------------------------------------------

EXTREME = [
    (0.0, 1e-250, Belief(0.0, 1e100)),
    (0.0, 1e-310, START),
    (1e100, 1e-300, START),
    (1e100, 1e100, Belief(1e100, 1e100)),
    (0.0, 1e100, Belief(-1e100, 0.0)),
    (1e200, 1e200, Belief(0.0, 1e200)),
    (1e-300, 1e-300, Belief(0.0, 0.0)),
]


@pytest.mark.parametrize(("Q", "R", "start"), EXTREME)
@pytest.mark.parametrize("z", [[0.0, 0.0, 0.0], [1e100, -1e100, 1e100], [1e-300, 0.0, 5e-324]])
def test_whatever_is_accepted_gives_finite_beliefs(z, Q, R, start):
    both_timings = [adaptive_filter_series(z, Q, R, 0.5, start, R_timing=timing) for timing in TIMINGS]
    for series in (filter_series(z, Q, R, start), *both_timings):
        for name in (*ARRAYS, "next_noise"):
            assert np.isfinite(getattr(series, name)).all(), name
        assert ((series.gain >= 0) & (series.gain <= 1)).all()


@pytest.mark.parametrize("shape", [(4,), (4, 2)])
@pytest.mark.parametrize("R_timing", TIMINGS)
def test_an_adaptive_filter_goes_on_after_huge_observations(shape, R_timing):
    z = 1e90 * noisy(*shape)
    whole = adaptive_filter_series(z, 0.1, 1.0, R_timing=R_timing)
    first = adaptive_filter_series(z[:2], 0.1, 1.0, R_timing=R_timing)
    second = adaptive_filter_series(z[2:], 0.1, first.next_noise, 0.9, first.last, R_timing=R_timing)
    close(second.mean, whole.mean[2:])


@pytest.mark.parametrize("R_timing", TIMINGS)
def test_a_constant_series_without_drift_keeps_a_gain(R_timing):
    series = adaptive_filter_series(np.zeros(2000), 0.0, 1.0, alpha=0.0, R_timing=R_timing)
    assert (series.noise > 0).all()
    assert np.isfinite(series.gain).all()


# --- bad input: the sentence names the argument and the value ------------------------------------------------------

Z = np.array([1.0, 2.0, 3.0])
TAKERS = {
    "Q": [
        lambda v: predict(START, v),
        lambda v: steady_state(v, 1.0),
        lambda v: filter_series(Z, v, 1.0),
        lambda v: adaptive_filter_series(Z, v, 1.0),
    ],
    "R": [
        lambda v: gain(START, v),
        lambda v: update(START, 0.0, v),
        lambda v: steady_state(1.0, v),
        lambda v: filter_series(Z, 1.0, v),
        lambda v: adaptive_filter_series(Z, 1.0, v),
    ],
    "alpha": [lambda v: adaptive_filter_series(Z, 1.0, 1.0, v)],
    "start.mean": [
        lambda v: filter_series(Z, 1.0, 1.0, Belief(v, 1.0)),
        lambda v: adaptive_filter_series(Z, 1.0, 1.0, 0.9, Belief(v, 1.0)),
    ],
    "start.var": [
        lambda v: filter_series(Z, 1.0, 1.0, Belief(0.0, v)),
        lambda v: adaptive_filter_series(Z, 1.0, 1.0, 0.9, Belief(0.0, v)),
    ],
}
NEVER = [float("nan"), float("inf"), -float("inf"), "1", True, None, 1j, 10**400]
OUTSIDE = {
    "Q": [-1, -1e-12, 1e202],
    "R": [0, 0.0, -1e-12, 1e202],
    "alpha": [-1e-12, 1.0000001],
    "start.mean": [-1e101],
    "start.var": [-1e-12, 1e202],
}


def rejects(call, name: str, shown: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s)^{re.escape(name)} must .*got .*{re.escape(shown)}"):
        call()


def label(value: object) -> str:
    return f"{value!r:.20}"


@pytest.mark.parametrize(("name", "value"), [(n, v) for n in TAKERS for v in OUTSIDE[n] + NEVER], ids=label)
def test_bad_numbers_are_named_with_their_value(name, value):
    for taker in TAKERS[name]:
        rejects(lambda taker=taker: taker(value), name, str(value)[:20])


@pytest.mark.parametrize("value", [1e101, *NEVER], ids=label)
def test_a_bad_observation_is_named_with_its_value(value):
    rejects(lambda: update(START, value, 1.0), "z", str(value)[:20])


BAD_SERIES = [
    ([1.0, np.nan], "nan at index 1"),
    ([[1.0, 2.0], [3.0, -np.inf]], "-inf at index (1, 1)"),
    ([1.0, 1e101], "1e+101 at index 1"),
    ([1.0, None], "[1.0, None]"),
    ([1.0, "two"], "two"),
    (["1.5", "2.5"], "1.5"),
    ([True, False], "True"),
    (np.array([1 + 2j]), "1.+2.j"),
    ([10**400], "1000"),
    ([[1.0, 2.0], [3.0]], "[3.0]"),
    ([], "(0,)"),
    (np.empty((0, 3)), "(0, 3)"),
    (np.empty((3, 0)), "(3, 0)"),
    (1.0, "()"),
    (np.ones((2, 2, 2)), "(2, 2, 2)"),
]


@pytest.mark.parametrize(("z", "shown"), BAD_SERIES, ids=label)
def test_bad_series_are_named_with_their_value(z, shown):
    rejects(lambda: filter_series(z, 1.0, 1.0), "z", shown)
    rejects(lambda: adaptive_filter_series(z, 1.0, 1.0), "z", shown)


def test_numbers_for_each_stream_must_fit_the_streams():
    z = noisy(5, 3)
    two, negative = np.ones(2), np.array([1.0, 1.0, -4.0])
    for run in (simple, adaptive_after):
        rejects(lambda run=run: run(z, start=Belief(two, 1.0)), "start.mean", "(2,)")
        rejects(lambda run=run: run(z, start=Belief(0.0, two)), "start.var", "(2,)")
        rejects(lambda run=run: run(z, start=Belief(0.0, negative)), "start.var", "-4.0")
        rejects(lambda run=run: run(z[:, 0], start=Belief(two, 1.0)), "start.mean", "(2,)")
    rejects(lambda: adaptive_after(z, two), "R", "(2,)")
    rejects(lambda: adaptive_after(z, negative), "R", "-4.0")


def test_an_unknown_timing_is_named_with_the_nearest_word():
    hint = "'befor' (did you mean 'before'?)"
    rejects(lambda: adaptive_filter_series(Z, 1.0, 1.0, R_timing="befor"), "R_timing", hint)


# --- manners -------------------------------------------------------------------------------------------------------


@every_filter
@pytest.mark.parametrize("shape", [(6,), (6, 3)])
def test_inputs_are_not_modified_and_results_do_not_share_their_memory(run, shape):
    z, start = noisy(*shape), Belief(np.ones(shape[1:]), np.ones(shape[1:]))
    kept = z.copy()
    series = run(z, start=start)
    np.testing.assert_array_equal(z, kept)
    assert (start.mean == 1).all() and (start.var == 1).all()
    before = [getattr(series, name).copy() for name in ARRAYS]
    z[:], start.mean[...], start.var[...] = 99.0, 99.0, 99.0
    for name, values in zip(ARRAYS, before, strict=True):
        np.testing.assert_array_equal(getattr(series, name), values, err_msg=name)


@pytest.mark.parametrize("kind", [list, tuple, np.float32, np.int64])
def test_any_sequence_of_numbers_will_do(kind):
    whole = [3, 1, 2]
    z = kind(whole) if kind in (list, tuple) else np.array(whole, dtype=kind)
    same(filter_series(z, 0.1, 1.0), reference([3.0, 1.0, 2.0], 0.1, 1.0))


def test_filters_and_normalizers_import_neither_torch_nor_gymnasium():
    code = "import sys, kscore.filters, kscore.normalizers; print({'torch', 'gymnasium'} & set(sys.modules))"
    fresh = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == "set()"
