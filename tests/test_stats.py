"""Censored times against hand-computed and published numbers, scipy, and their own symmetries."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import weibull_min
from sizes import examples

from kscore.analysis import stats
from kscore.analysis.stats import Times

property_test = examples(40)
CAP = 12


def times(text: str) -> Times:
    """Times as textbooks print them: a + means censored."""
    return Times(
        np.array([float(word.rstrip("+")) for word in text.split()]),
        np.array([not word.endswith("+") for word in text.split()]),
    )


def watched(arrivals, cap) -> Times:
    """Times of runs that are all watched to the same cap, as ours are."""
    arrivals = np.asarray(arrivals, float)
    return Times(np.minimum(arrivals, cap), arrivals <= cap)


def repeated(arm: Times, counts) -> Times:
    return Times(np.repeat(arm.time, counts), np.repeat(arm.arrived, counts))


def reordered(arm: Times, order) -> Times:
    return Times(arm.time[order], arm.arrived[order])


def share_at(arm: Times, t: float) -> Fraction:
    """The product-limit estimate in exact fractions, one arrival time after the other."""
    share = Fraction(1)
    for at in sorted(set(arm.time[arm.arrived])):
        if at <= t:
            arrived, at_risk = int(np.sum((arm.time == at) & arm.arrived)), int(np.sum(arm.time >= at))
            share *= 1 - Fraction(arrived, at_risk)
    return share


def close(actual, expected, **tolerance) -> None:
    np.testing.assert_allclose(actual, expected, **{"rtol": 1e-12, "atol": 1e-12, **tolerance})


# Any times at all: censored anywhere, whole numbers so that there are ties
runs = st.tuples(st.integers(1, CAP + 3), st.booleans())
arms = st.lists(runs, min_size=1, max_size=12).map(lambda some: Times(*(np.array(x) for x in zip(*some, strict=True))))
paired_arms = st.lists(st.tuples(runs, runs), min_size=1, max_size=12).map(
    lambda pairs: tuple(Times(*(np.array(x) for x in zip(*arm, strict=True))) for arm in zip(*pairs, strict=True))
)


# Kaplan-Meier by hand

# 7 runs: one arrives at 2, 6/7 are left; at 3 two of 6 arrive, the one censored at 3 being still among the 6, and
# 6/7 · 4/6 = 4/7 are left; one is censored at 5; at 6 one of the last two arrives, 4/7 · 1/2 = 2/7 are left
BY_HAND = times("3+ 6 2 3 8+ 5+ 3")


def test_survival_by_hand_with_ties_and_censoring():
    curve = stats.survival(BY_HAND)
    close(curve.episode, [0, 2, 3, 5, 6, 8])
    close(curve.share, [1, 6 / 7, 4 / 7, 4 / 7, 2 / 7, 2 / 7])
    assert curve.n == 7


@pytest.mark.parametrize(
    ("cap", "mean"),
    [
        (1, 1),
        (2, 2),
        (3, 2 + 6 / 7),
        (4, 2 + 6 / 7 + 4 / 7),
        (6, 2 + 6 / 7 + 3 * 4 / 7),
        (8, 40 / 7 - 2 * 2 / 7),
        (10, 40 / 7),  # 2 · 1 + 1 · 6/7 + 3 · 4/7 + 4 · 2/7: after the last run the curve stays where it is
    ],
)
def test_restricted_mean_by_hand(cap, mean):
    close(stats.restricted_mean(BY_HAND, cap), mean)


@pytest.mark.parametrize(
    ("arm", "median"),
    [
        ("3+ 6 2 3 8+ 5+ 3", 6),
        ("1 2 3 4", 2),
        ("1 2 3", 2),
        ("7", 7),
        ("1 2+ 3 4", 3),
        ("2 5+ 5+", math.inf),
        ("5+ 5+", math.inf),
        ("2 2+ 3+ 1", 2),
        (" ".join(map(str, range(1, 102))), 51),  # after the 50th of 101 half of them are not yet there
        (" ".join(map(str, range(1, 25))), 12),  # where the product of 12 rounded factors comes out above a half
    ],
)
def test_median_by_hand(arm, median):
    assert stats.median(times(arm)) == median


def test_the_band_is_greenwoods_on_the_log_log_scale():
    curve = stats.survival(times("1 2 2 3+ 4+"), level=0.9)
    share, z = 2 / 5, scipy.stats.norm.ppf(0.95)  # after 2, with the variance sum 1/(5·4) + 2/(4·2)
    width = z * math.sqrt(1 / 20 + 2 / 8) / abs(math.log(share))
    at = list(curve.episode).index(2)
    close([curve.low[at], curve.high[at]], [share ** math.exp(width), share ** math.exp(-width)])


@pytest.mark.parametrize("arm", ["5+ 5+", "5 5", "1+ 2 3", "4", "1 2 3+"])
@pytest.mark.filterwarnings("error")  # scipy's about S of 0 or 1 would stand under every figure
def test_the_band_holds_the_curve_and_has_no_gaps(arm):
    curve = stats.survival(times(arm))
    assert (0 <= curve.low).all() and (curve.low <= curve.share).all()
    assert (curve.share <= curve.high).all() and (curve.high <= 1).all()
    certain = (curve.share == 1) | (curve.share == 0)
    assert (curve.low[certain] == curve.high[certain]).all()


# Kaplan-Meier as published: weeks of remission in acute leukaemia, 21 pairs of patients.
# Data: Freireich et al. (1963), The effect of 6-mercaptopurine on the duration of steroid-induced remissions in acute
# leukemia, Blood 21, 699-716. The numbers below are those of the textbooks that work it out, for example Kleinbaum and
# Klein, Survival Analysis, chapter 2 (curve, medians and the log-rank chi-square of 16.79 on one degree of freedom).

MERCAPTOPURINE = times("6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+")
PLACEBO = times("1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23")
PUBLISHED = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}


def test_survival_as_published():
    curve = stats.survival(MERCAPTOPURINE)
    found = dict(zip(curve.episode, curve.share, strict=True))
    assert {week: round(found[week], 3) for week in PUBLISHED} == PUBLISHED
    assert found[20] == found[16] and found[35] == found[23]  # nothing happens where patients are only lost


def test_medians_as_published():
    assert stats.median(MERCAPTOPURINE) == 23 and stats.median(PLACEBO) == 8


def test_logrank_as_published():
    p = stats.logrank(MERCAPTOPURINE, PLACEBO)
    assert scipy.stats.chi2.isf(p, df=1) == pytest.approx(16.79, abs=0.005)


def test_restricted_means_as_published():
    close(stats.restricted_mean(PLACEBO, 35), 182 / 21)  # nobody is censored, so it is the mean, 8.67
    heights = [1, *PUBLISHED.values()]
    widths = np.diff([0, *PUBLISHED, 35])
    close(stats.restricted_mean(MERCAPTOPURINE, 35), heights @ widths, atol=0.01)


# Kaplan-Meier, any times


@property_test
@given(arms)
def test_survival_is_the_product_limit(arm):
    curve = stats.survival(arm)
    close(curve.share, [float(share_at(arm, t)) for t in curve.episode])


@property_test
@given(arms)
def test_restricted_mean_is_the_area_under_scipys_curve(arm):
    sample = scipy.stats.CensoredData(uncensored=arm.time[arm.arrived], right=arm.time[~arm.arrived])
    shares = scipy.stats.ecdf(sample).sf.evaluate(np.arange(CAP))  # times are whole: one step a unit
    close(stats.restricted_mean(arm, CAP), shares.sum())
    close(stats.restricted_mean(arm, CAP, np.ones(len(arm.time))), shares.sum())


@property_test
@given(arms)
def test_median_is_the_first_time_at_half_of_the_product_limit(arm):
    reached = [t for t in sorted(set(arm.time)) if share_at(arm, t) <= Fraction(1, 2)]
    assert stats.median(arm) == (reached[0] if reached else math.inf)


@property_test
@given(st.lists(st.integers(1, 2 * CAP), min_size=1, max_size=20))
def test_restricted_mean_of_runs_watched_to_the_cap_is_the_mean_of_capped_times(arrivals):
    close(stats.restricted_mean(watched(arrivals, CAP), CAP), np.minimum(arrivals, CAP).mean())


@property_test
@given(arms, st.floats(0.5, 30))
def test_restricted_mean_lies_between_zero_and_the_cap(arm, cap):
    assert 0 <= stats.restricted_mean(arm, cap) <= cap * (1 + 1e-12)


# Weights


@property_test
@given(arms, st.data())
def test_whole_weights_are_repeated_runs(arm, data):
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(arm.time), max_size=len(arm.time)))
    assume(sum(counts))
    copies = repeated(arm, counts)
    close(stats.restricted_mean(arm, CAP, counts), stats.restricted_mean(copies, CAP))
    assert stats.median(arm, counts) == stats.median(copies)
    close(stats.average(arm.time, counts), copies.time.mean())


@property_test
@given(paired_arms, st.data())
def test_whole_weights_of_pairs_are_repeated_pairs(pair, data):
    n = len(pair[0].time)
    counts = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    assume(sum(counts))
    copies = [repeated(arm, counts) for arm in pair]
    close(stats.improvement(*pair, CAP, counts), stats.improvement(*copies, CAP))
    close(stats.probability_faster(*pair, counts), stats.probability_faster(*copies))


BACKWARDS = reordered(PLACEBO, slice(None, None, -1))  # so that either arm is sometimes the faster of a pair
STATISTICS = {
    "restricted_mean": lambda w: stats.restricted_mean(MERCAPTOPURINE, 30, w),
    "median": lambda w: stats.median(MERCAPTOPURINE, w),
    "improvement": lambda w: stats.improvement(MERCAPTOPURINE, BACKWARDS, 30, w),
    "probability_faster": lambda w: stats.probability_faster(MERCAPTOPURINE, BACKWARDS, w),
    "average": lambda w: stats.average(PLACEBO.time, w),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_a_matrix_of_weights_gives_what_its_rows_give(name):
    draws = np.random.default_rng(0).multinomial(21, np.full(21, 1 / 21), size=30)
    draws[0] = [20, *[0] * 19, 1]  # most runs, and the times of most steps, are not in this draw
    statistic = STATISTICS[name]
    together = statistic(draws)
    assert together.shape == (30,) and len(set(together)) > 2
    close(together, [statistic(row) for row in draws])
    close(statistic(draws.reshape(5, 6, 21)), together.reshape(5, 6))


@pytest.mark.parametrize("name", STATISTICS)
def test_no_weights_are_weights_of_one(name):
    assert STATISTICS[name](None) == STATISTICS[name](np.ones(21))


# Two arms


@property_test
@given(arms, arms)
def test_logrank_does_not_care_which_arm_comes_first(a, b):
    p = stats.logrank(a, b)
    assert 0 <= p <= 1
    close(stats.logrank(b, a), p)


def test_logrank_by_hand(monkeypatch):
    monkeypatch.setattr(stats, "EXACT", 0)  # as with many runs
    # at 1: 1 of 2 + 2 arrives, expected 1/2, variance 1/4; at 2: 1 of 1 + 2, expected 1/3, variance 2/9;
    # at 3, of 0 + 2 and 0 + 1: no more of a
    observed, expected, variance = 2, 1 / 2 + 1 / 3, 1 / 4 + 2 / 9
    p = stats.logrank(times("1 2"), times("3 4"))
    close(p, scipy.stats.chi2.sf((observed - expected) ** 2 / variance, df=1))


def test_logrank_of_few_runs_counts_the_divisions():
    # Of the six ways to choose two of four runs, only the first two and the last two arriving are so far apart.
    assert stats.logrank(times("1 2"), times("3 4")) == pytest.approx(2 / 6)


@property_test
@given(arms, arms)
def test_the_exact_logrank_is_the_share_of_divisions_at_least_as_extreme(a, b):
    few = [stats.Times(arm.time[:5], arm.arrived[:5]) for arm in (a, b)]
    time, arrived = (np.concatenate(pair) for pair in zip(*few, strict=True))
    first = len(few[0].time)

    def excess(chosen):  # arrivals of an arm beyond those expected of it, moment by moment
        inside = np.isin(np.arange(len(time)), chosen)
        moments = np.unique(time[arrived])
        return abs(
            sum(
                (arrived & inside & (time == t)).sum()
                - (arrived & (time == t)).sum() * (inside & (time >= t)).sum() / (time >= t).sum()
                for t in moments
            )
        )

    all_of_them = [excess(chosen) for chosen in itertools.combinations(range(len(time)), first)]
    expected = np.mean(np.array(all_of_them) >= excess(range(first)) - 1e-6) if arrived.any() else 1.0
    assert stats.logrank(*few) == pytest.approx(expected)


def test_ten_runs_an_arm_are_tested_exactly():
    none, some = times(" ".join(["1500+"] * 10)), times("900 1000 1100 1200 " + " ".join(["1500+"] * 6))
    # all four arrivals in one arm: 2 C(16, 6) of the C(20, 10) divisions
    assert stats.logrank(none, some) == pytest.approx(2 * math.comb(16, 6) / math.comb(20, 10))


@pytest.mark.parametrize(("first", "second"), [(3, 3), (2, 4), (4, 2)])
def test_exact_and_asymptotic_agree_where_there_are_many_runs(first, second, monkeypatch):
    rng = np.random.default_rng(first)
    a, b = (stats.Times(rng.integers(1, 60, 3 * n), rng.random(3 * n) < 0.9) for n in (first, second))
    exact = stats.logrank(a, b)
    monkeypatch.setattr(stats, "EXACT", 0)
    assert stats.logrank(a, b) == pytest.approx(exact, abs=0.06)


def test_logrank_cannot_tell_arms_that_all_arrive_in_the_same_episode():
    assert stats.logrank(times("25 25"), times("25 25 25")) == 1


def test_logrank_cannot_tell_arms_in_which_nobody_arrives():
    assert stats.logrank(times("9+ 9+"), times("9+ 9+ 9+")) == 1


def test_logrank_of_an_arm_with_itself_is_one():
    assert stats.logrank(PLACEBO, PLACEBO) == pytest.approx(1)


def test_improvement_is_the_second_mean_over_the_first():
    assert stats.improvement(times("1 2 3"), times("4 5 9+"), 9) == pytest.approx(3)
    assert stats.improvement(PLACEBO, MERCAPTOPURINE, 35) > 2  # remission ends sooner on placebo


@property_test
@given(paired_arms)
def test_improvement_turns_over_with_the_arms(pair):
    a, b = pair
    close(stats.improvement(a, b, CAP) * stats.improvement(b, a, CAP), 1)


@property_test
@given(paired_arms, st.randoms(use_true_random=False))
def test_the_order_of_pairs_does_not_matter(pair, random):
    order = list(range(len(pair[0].time)))
    random.shuffle(order)
    shuffled = [reordered(arm, order) for arm in pair]
    close(stats.improvement(*shuffled, CAP), stats.improvement(*pair, CAP))
    close(stats.probability_faster(*shuffled), stats.probability_faster(*pair))
    assert stats.median(shuffled[0]) == stats.median(pair[0])


def test_pairs_count_for_being_faster():
    a, b = times("1 2 3 4"), times("2 3 4 1")
    assert stats.probability_faster(a, b) == 0.75
    assert stats.probability_faster(a, reordered(b, [3, 0, 1, 2])) == 0.5  # the same times, paired with themselves


@pytest.mark.parametrize(
    ("a", "b", "faster"),
    [
        ("3", "5", 1),
        ("5", "3", 0),
        ("5", "5", 0.5),
        ("9", "9+", 1),
        ("9+", "9", 0),
        ("9+", "9+", 0.5),
        ("9+", "3", 0),
    ],
)
def test_a_tie_counts_half_and_never_arriving_is_slowest(a, b, faster):
    assert stats.probability_faster(times(a), times(b)) == faster


def test_probability_faster_by_hand():
    a, b = times("3 5 5 9+ 9+ 9"), times("5 3 5 9+ 9 9+")
    assert stats.probability_faster(a, b) == (1 + 0 + 0.5 + 0.5 + 0 + 1) / 6
    close(stats.probability_faster(a, b, [2, 0, 1, 1, 0, 0]), (2 + 0.5 + 0.5) / 4)


@property_test
@given(paired_arms)
def test_one_of_two_arms_is_faster(pair):
    a, b = pair
    close(stats.probability_faster(a, b) + stats.probability_faster(b, a), 1)


def test_lower_pair_by_pair():
    a, b = np.array([1.0, 2.0, 3.0, math.inf, math.inf]), np.array([2.0, 2.0, 2.0, math.inf, 1e9])
    assert list(stats.lower(a, b)) == [1, 0.5, 0, 0.5, 0]


# Curves of returns


@pytest.mark.parametrize(
    ("returns", "cap", "window", "mean"),
    [
        ([1, 2, 3, 4], 4, 2, 2.5),  # watched to the cap
        ([1, 2, 3, 4], 10, 2, (10 + 6 * 3.5) / 10),  # six more at the mean of the last two
        ([1, 2, 3, 4], 10, 25, 2.5),  # fewer than a window: the mean of what there is
        ([1, 2, 3, 4, 100], 4, 2, 2.5),  # nothing after the cap counts
        ([7], 3, 25, 7),
    ],
)
def test_area_carries_the_last_window_on(returns, cap, window, mean):
    assert stats.area(returns, cap, window) == pytest.approx(mean)


def test_area_carries_25_returns_on_unless_told():
    returns = [0.0] * 25 + [10.0] * 25
    assert stats.area(returns, 100) == pytest.approx((250 + 50 * 10) / 100)


def test_stability_is_the_variance_of_the_last_returns():
    assert stats.stability([100, 1, 2, 3], window=3) == pytest.approx(2 / 3)
    assert stats.stability([1e6] * 10 + [5.0] * 25) == 0
    assert stats.stability([1.0, 3.0]) == 1


# Tests


def test_adjusted_by_hand():
    # sorted 0.005 0.01 0.03 0.04, times 4/1 4/2 4/3 4/4, then the smallest from there on: 0.02 0.02 0.04 0.04
    close(stats.adjusted([0.01, 0.04, 0.03, 0.005]), [0.02, 0.04, 0.04, 0.02])
    close(stats.adjusted([0.03, 0.031]), [0.031, 0.031])
    close(stats.adjusted([0.6, 0.9]), [0.9, 0.9])
    close(stats.adjusted([0.2]), [0.2])


def test_adjusted_as_published():
    # Benjamini and Hochberg (1995), J. R. Statist. Soc. B 57, 289-300, the example: four of 15 are rejected at 5 %
    published = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0,
    ]
    adjusted = stats.adjusted(published)
    assert list(adjusted < 0.05) == [True] * 4 + [False] * 11
    close(adjusted[3], 0.0095 * 15 / 4)


@pytest.mark.parametrize("differences", [[0.0], [0.0] * 10, np.zeros(3, int)])
def test_signed_rank_cannot_tell_without_differences(differences):
    assert stats.signed_rank(differences) == 1


def test_signed_rank_by_hand():
    # all six differences have one sign: 2 of 2^6 sign patterns are as extreme
    assert stats.signed_rank([1, 2, 3, 4, 5, 6]) == pytest.approx(2 / 64)
    assert stats.signed_rank([-1, -2, -3, -4, -5, -6]) == pytest.approx(2 / 64)
    assert stats.signed_rank([1, -2, 3, -4, 5, -6]) > 0.5


def test_signed_rank_of_few_runs_is_exact_with_ties_too():
    # Equal sizes: of the 2^6 ways to set the signs, those with none or with all of them negative are so far off.
    assert stats.signed_rank([1, 1, 1, 1, 1, 1]) == pytest.approx(2 / 64)
    assert stats.signed_rank([1, 1, 1, 1, 1, 1, 0, 0]) == pytest.approx(2 / 64)


@pytest.mark.parametrize("differences", [[2, -1, 1, 3, -3, 0, 5], [0.5, -0.5, -0.5, 0, 0, 2], [4.0], [-1, 2, np.inf]])
def test_signed_rank_of_few_runs_is_what_counting_all_signs_gives(differences):
    sizes = scipy.stats.rankdata(np.abs([one for one in differences if one]))
    found = sizes[[one > 0 for one in differences if one]].sum()
    sums = np.array([np.dot(signs, sizes) for signs in itertools.product((0, 1), repeat=len(sizes))])
    close(stats.signed_rank(differences), min(1, 2 * min(np.mean(sums <= found), np.mean(sums >= found))))


def test_signed_rank_counts_only_what_differs():
    few = np.array([3.0, -1.0, 2.0, 7.0, 5.0, -4.0, 6.0, 9.0])
    assert stats.signed_rank(np.append(few, np.zeros(60))) == stats.signed_rank(few)  # and not by a draw of signs


def test_rank_correlations_by_hand():
    # 1 2 3: all three pairs rise; 3 2 1: all fall; 2 1 3: two rise and one falls, (2 - 1) / 3;
    # 1 1 2: two rise and one is tied, 2 / sqrt(3 · 2) by tau-b; 5 5 5: nothing to go by
    table = np.array([[1, 3, 2, 1, 5], [2, 2, 1, 1, 5], [3, 1, 3, 2, 5]])
    close(stats.rank_correlations(table), [1, -1, 1 / 3, 2 / math.sqrt(6), 0])


@pytest.mark.parametrize(
    ("value", "p"),
    [
        (5, 2 * (1 + 0) / 6),  # below all
        (10, 2 * (1 + 1) / 6),  # as long as the shortest: at most as long 1, at least as long 5
        (15, 2 * (1 + 1) / 6),
        (20, 1.0),
        (25, 1.0),
        (35, 2 * (1 + 2) / 6),
        (1000, 2 * (1 + 2) / 6),  # above all that arrived, but two never did
    ],
)
def test_position_by_hand(value, p):
    arrived_and_not = times("10 20 30 40+ 40+")
    assert stats.position(value, arrived_and_not) == pytest.approx(p)


def test_only_enough_runs_can_make_a_single_one_unusual():
    fifty, ten = (watched(np.arange(100, 100 + n), 500) for n in (50, 10))
    assert stats.position(3, fifty) == stats.position(499, fifty) == pytest.approx(2 / 51)  # below 0.05
    assert stats.position(3, ten) == pytest.approx(2 / 11)  # not below, and nothing could be
    assert stats.position(125, fifty) == 1


def test_position_among_runs_that_never_arrive_is_the_lowest():
    assert stats.position(499, times("500+ " * 50)) == pytest.approx(2 / 51)


# Intervals


def mean_of(sample):
    return lambda weights: stats.average(sample, weights)


@pytest.mark.parametrize(("level", "fewest", "most"), [(0.95, 0.89, 0.975), (0.5, 0.40, 0.58)])
def test_the_bootstrap_interval_covers_as_often_as_it_says(level, fewest, most):
    rng = np.random.default_rng(7)
    hits = []
    for _ in range(400):
        interval = stats.bootstrap(mean_of(rng.normal(3, 2, size=40)), 40, draws=200, level=level)
        hits.append(interval.low <= 3 <= interval.high)
    assert fewest <= np.mean(hits) <= most


def test_the_bootstrap_interval_of_a_mean_is_as_wide_as_theory_says():
    sample = np.random.default_rng(1).normal(size=50)
    interval = stats.bootstrap(mean_of(sample), 50)
    error = sample.std() / math.sqrt(50)
    close([interval.low, interval.high], sample.mean() + 1.96 * error * np.array([-1, 1]), atol=0.15 * error)
    close(interval.estimate, sample.mean())
    assert interval.n == 50


def test_the_bootstrap_keeps_pairs_together():
    slow = watched([5, 9, 14, 20, 35], 100)
    fast = Times(slow.time / 2, slow.arrived)
    interval = stats.bootstrap(lambda w: stats.improvement(fast, slow, 100, w), 5, draws=500)
    close([interval.estimate, interval.low, interval.high], 2)
    mixed = stats.bootstrap(lambda w: stats.improvement(reordered(fast, [3, 0, 4, 1, 2]), slow, 100, w), 5, draws=500)
    close(mixed.estimate, 2)
    assert mixed.low < 1.5 and mixed.high > 2.5  # the same times with other partners


def test_the_bootstrap_repeats_for_a_seed():
    first, again, other = (stats.bootstrap(mean_of(PLACEBO.time), 21, draws=200, seed=seed) for seed in (1, 1, 2))
    assert first == again and first != other and first.estimate == other.estimate


def test_the_bootstrap_draws_once_for_each_number_of_runs(monkeypatch):
    stats._resamples.cache_clear()
    first = stats.bootstrap(mean_of(PLACEBO.time), 21, draws=200)
    monkeypatch.setattr(np.random, "default_rng", None)
    assert stats.bootstrap(mean_of(PLACEBO.time), 21, draws=200) == first
    for other in ({"n": 20}, {"draws": 201}, {"seed": 1}):
        with pytest.raises(TypeError):
            stats.bootstrap(mean_of(PLACEBO.time), **{"n": 21, "draws": 200} | other)


def test_nobody_can_change_what_the_bootstrap_has_drawn():
    def spoil(weights):
        weights *= 2
        return weights.sum(axis=-1)

    with pytest.raises(ValueError, match="read-only"):
        stats.bootstrap(spoil, 21, draws=200)


def test_the_bootstrap_takes_infinite_medians():
    interval = stats.bootstrap(lambda w: stats.median(times("1 2 3 9+ 9+ 9+"), w), 6, draws=500)
    assert interval.estimate == 3 and interval.low < 3 and interval.high == math.inf


def test_an_interval_reads_as_one():
    interval = stats.Interval(1.23456, 0.5, 12.0, 50)
    assert f"{interval}" == "1.23 [0.5, 12]" and f"{interval:.1f}" == "1.2 [0.5, 12.0]"


# Power

ARRIVALS = np.array([40, 52, 61, 70, 78, 87, 95, 104, 115, 127, 140, 156, 175, 200, 240])  # cap 500, nobody censored


def test_more_runs_detect_smaller_factors():
    factors = [stats.detectable(watched(np.tile(ARRIVALS, k), 500), trials=25) for k in (1, 2, 5)]
    assert factors[0] > factors[1] > factors[2] > 1
    assert set(factors) <= set(stats.FACTORS)


def found_by_logrank(arrivals, cap, n, factor, trials, seed):
    """How often a log-rank test finds an arm that is faster by the factor."""
    rng = np.random.default_rng(seed)
    draws = ((rng.choice(arrivals, n), rng.choice(arrivals, n)) for _ in range(trials))
    return np.mean([stats.logrank(watched(fast / factor, cap), watched(usual, cap)) < 0.05 for fast, usual in draws])


def test_the_detectable_factor_has_the_power_it_claims():
    factor = stats.detectable(watched(np.tile(ARRIVALS, 2), 500), trials=60, seed=3)
    assert 0.7 <= found_by_logrank(ARRIVALS, 500, 30, factor, 200, seed=4) <= 0.93
    assert found_by_logrank(ARRIVALS, 500, 30, math.sqrt(factor), 100, seed=5) < 0.5  # half of it is mostly missed


def test_the_detectable_factor_has_the_power_it_claims_where_most_runs_are_censored():
    arrivals = weibull_min(1.3, scale=1000).ppf(np.linspace(0.01, 0.99, 50))
    factor = stats.detectable(watched(arrivals, 500), trials=60, seed=3)
    assert np.mean(arrivals <= 500) < 0.4
    assert 0.7 <= found_by_logrank(arrivals, 500, 50, factor, 200, seed=4) <= 0.93


def test_the_weibull_distribution_is_found_from_what_was_seen():
    true = weibull_min(1.3, scale=1000)
    fitted = stats.weibull(watched(true.ppf(np.linspace(0.001, 0.999, 500)), 500))
    np.testing.assert_allclose(fitted.sf([100, 500, 2000]), true.sf([100, 500, 2000]), atol=0.01)


def test_more_power_and_a_stricter_level_ask_for_larger_factors():
    usual = stats.detectable(watched(ARRIVALS, 500), trials=25)
    assert stats.detectable(watched(ARRIVALS, 500), power=0.3, trials=25) < usual
    assert stats.detectable(watched(ARRIVALS, 500), alpha=1e-4, trials=25) > usual


def test_the_arm_to_be_detected_is_the_faster_one(monkeypatch):
    compared = []

    def always_found(pairs):  # a two-sided test would not notice if the arm were slower instead
        compared.extend(pairs)
        return np.zeros(len(pairs))

    monkeypatch.setattr(stats, "logranks", always_found)
    some = times("40 60 80 100 120 150+ 150+ 150+")
    first = stats.FACTORS[0]
    assert stats.detectable(some, trials=5) == first
    compared = compared[-5:]  # those with the first factor: the others were tried before
    for fast, usual in compared:
        arrived = {round(time * first) for time in fast.time[fast.arrived] if time * first <= 150}
        assert arrived <= {40, 60, 80, 100, 120} and set(zip(*usual, strict=True)) <= set(zip(*some, strict=True))
        assert set(fast.time[~fast.arrived]) <= {150}  # a faster run, too, is watched up to the cap
        assert len(fast.time) == len(usual.time) == 8
        assert not np.array_equal(fast.time * first, usual.time)  # two draws, not one
    assert len({tuple(usual.time) for _, usual in compared}) > 1


@pytest.mark.parametrize("text", ["9+ 9+ 9+", "5 9+ 9+"])
def test_without_arrivals_nobody_can_say_what_is_detectable(text):
    assert math.isnan(stats.detectable(times(text), trials=2))


def test_two_runs_can_detect_nothing():
    assert stats.detectable(times("5 6"), trials=20) == math.inf
