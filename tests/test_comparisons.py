"""From runs to statistics and comparisons of arms, on frames small enough to work out by hand."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from small_runs import CAP, SETTINGS, arm, close, frame, record, shuffled

from kscore import analysis, study
from kscore.analysis import stats
from kscore.analysis.stats import Times


@pytest.fixture
def quick(monkeypatch):
    """Let intervals be found by fewer draws."""
    monkeypatch.setattr(stats, "bootstrap", partial(stats.bootstrap, draws=500))


# Times and curves of an arm

BOTH = study.frame(
    {
        "a": [record(2, "30", training=35), record(1, "20+", training=20), record(3, "7x"), record(0, "100+")],
        "b": [record(0, "99")],
    }
)


@pytest.mark.parametrize(
    ("criterion", "time", "arrived"),
    [
        ("evaluation", [100, 20, 30, 100], [False, False, True, False]),  # the diverged run will not arrive any more
        ("training", [100, 20, 35, 100], [False, True, True, False]),
    ],
)
def test_times_of_both_criteria_come_in_the_order_of_seeds(criterion, time, arrived):
    for runs in (BOTH, shuffled(BOTH)):
        found = analysis.times(runs, "a", criterion)
        assert list(found.time) == time and list(found.arrived) == arrived
    assert list(analysis.times(BOTH, "b").time) == [99]


def test_times_are_of_evaluation_unless_told():
    assert list(analysis.times(BOTH, "a").time) == list(analysis.times(BOTH, "a", "evaluation").time)


def test_arrivals_are_counted_in_the_order_of_the_arms():
    assert analysis.arrived(BOTH) == {"a": 1, "b": 1}
    assert analysis.arrived(BOTH, criterion="training") == {"a": 2, "b": 0}
    assert list(analysis.arrived(BOTH, ["b", "a"])) == ["b", "a"]
    with pytest.raises(ValueError, match=r"arm must be one of 'a', 'b', got 'c'"):
        analysis.arrived(BOTH, ["c"])


def test_times_in_steps_are_what_was_earned_until_each_run_arrived_or_ended():
    runs = BOTH.assign(train_returns=[np.arange(1.0, length + 1) for length in (40, 20, 7, 100, 99)])
    for frame_ in (runs, shuffled(runs)):
        found = analysis.step_times(frame_, "a")
        assert list(found.time) == [5050, 210, 465, 28]  # 1 + ... + 30 of the run that went on to 40
        assert list(found.arrived) == [False, False, True, False]
    for paid in (-48.5, 0.0, 1.5):
        elsewhere = BOTH.assign(train_returns=[np.full(10, paid)] * len(BOTH))
        with pytest.raises(ValueError, match=f"^runs must be of a task that pays 1 per step, got a return of {paid:g}"):
            analysis.step_times(elsewhere, "b")


RETURNS = [[float(i) for i in range(1, 41)], [5.0] * 10 + [7.0], [2.0] * 60]
CURVES = study.frame(
    {
        "a": [
            record(0, "40", RETURNS[0], cap=60),
            record(1, "11x", RETURNS[1], cap=60),
            record(2, "60+", RETURNS[2], cap=60),
        ]
    }
)


def test_a_curve_goes_on_at_the_mean_of_its_last_25_returns():
    found = analysis.curves(shuffled(CURVES), "a", smooth=1)
    assert found.shape == (3, 60)
    close(found[0], RETURNS[0] + [28.0] * 20)  # 28 is the mean of 16 ... 40
    close(found[1], RETURNS[1] + [57 / 11] * 49)  # a diverged run has fewer: the mean of what there is
    close(found[2], RETURNS[2])


def test_a_smooth_curve_is_the_mean_of_the_last_returns_or_of_as_many_as_there_are():
    found = analysis.curves(CURVES, "a", smooth=3)
    close(found[0][:5], [1, 1.5, 2, 3, 4])
    close(found[0][39:43], [39, 28, 28, 28])


def test_by_default_a_curve_is_smoothed_over_the_window_so_that_it_goes_on_where_it_was():
    found = analysis.curves(CURVES, "a")
    close(found[0][[0, 24, 39, 40, 59]], [1, 13, 28, 28, 28])


def test_evaluations_that_stand_apart_fill_fewer_places_up_to_the_cap():
    config = SETTINGS | {"max_episodes": 20, "episodes_per_update": 4, "evaluate_every": 1}
    runs = study.frame(
        {"a": [record(0, "20+", [1.0, 2.0, 3.0, 4.0, 5.0], config=config), record(1, "8", [1.0, 3.0], config=config)]}
    )
    assert runs.every.tolist() == [4, 4]
    close(analysis.curves(runs, "a", smooth=1), [[1, 2, 3, 4, 5], [1, 3, 2, 2, 2]])
    close(analysis.areas(runs, "a"), [3, 2])
    close(analysis.early(runs, "a", episodes=8), [1.5, 2])
    close(analysis.early(runs, "a", episodes=3), [1, 1])


def test_areas_are_the_means_of_the_curves():
    close(analysis.areas(shuffled(CURVES), "a"), [(820 + 20 * 28) / 60, 57 / 11, 2])
    close(analysis.areas(CURVES, "a"), analysis.curves(CURVES, "a", smooth=1).mean(axis=1))


def test_stability_is_the_variance_of_the_last_25_returns():
    # of 25 numbers in a row: (25² - 1) / 12 = 52
    close(analysis.stabilities(shuffled(CURVES), "a"), [52, 4 * 10 / 121, 0])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(820 + 10 * 28) / 50, (57 + 39 * 57 / 11) / 50, 2]),  # the first 50, those carried on among them
        ({"episodes": 10}, [5.5, 5, 2]),
        ({"episodes": 1000}, [(820 + 20 * 28) / 60, 57 / 11, 2]),
    ],
)
def test_early_training_is_the_mean_of_the_first_returns(options, expected):
    close(analysis.early(shuffled(CURVES), "a", **options), expected)


def test_survival_curves_of_some_arms():
    curves = analysis.survivals(BOTH, ["b", "a"], "training")
    assert list(curves) == ["b", "a"]
    assert [curve.n for curve in curves.values()] == [1, 4]
    expected = stats.survival(analysis.times(BOTH, "a", "training"))
    close(curves["a"].share, expected.share)
    assert list(analysis.survivals(BOTH, ["a"])["a"].episode) == [0, 20, 30, 100]  # of evaluation unless told


# A table of arms


def test_a_summary_by_hand():
    runs = study.frame({"b": arm("10 20 30 40", [[1.0, 3.0]] * 4), "a": arm("60 100+ 5x 100+", [[4.0, 4.0]] * 4)})
    table = analysis.summary(shuffled(runs).sort_values("arm", ascending=False))
    assert list(table.index) == ["b", "a"]  # as they come
    assert list(table.columns) == [
        "runs",
        "arrived",
        "diverged",
        "restricted mean",
        "median",
        "mean evaluation return",
        "stability",
    ]
    b, a = table.loc["b"], table.loc["a"]
    assert (b.runs, b.arrived, b.diverged, a.runs, a.arrived, a.diverged) == (4, 4, 0, 4, 1, 1)
    estimates = [[row[name].estimate for name in table.columns[3:]] for row in (b, a)]
    close(estimates, [[25, 20, 2, 1], [(60 + 3 * 100) / 4, math.inf, 4, 0]])
    assert all(row[name].n == 4 for row in (b, a) for name in table.columns[3:])
    assert 10 <= b["restricted mean"].low < 20 < 30 < b["restricted mean"].high <= 40
    assert a["median"].low == 60 and a["median"].high == math.inf
    assert b["stability"][:3] == (1, 1, 1) and a["stability"][:3] == (0, 0, 0)


def test_restricted_means_of_all_arms_each_up_to_its_own_cap():
    runs = study.frame(
        {"b": [record(0, "10"), record(1, "100+")], "a": [record(0, "7x", cap=60), record(1, "40", cap=60)]}
    )
    assert analysis.restricted_means(runs) == {"b": 55, "a": 50}
    assert list(analysis.restricted_means(runs)) == ["b", "a"]  # as they come
    trained = study.frame({"a": [record(0, "30", training=50), record(1, "30", training=90)]})
    assert analysis.restricted_means(trained, "training") == {"a": 70}


def test_a_summary_can_be_by_training_returns():
    runs = study.frame({"a": [record(0, "30", training=50), record(1, "30", training=90)]})
    assert analysis.summary(runs).loc["a", "restricted mean"].estimate == 30
    table = analysis.summary(runs, "training")
    assert table.loc["a", "restricted mean"].estimate == 70 and table.loc["a", "median"].estimate == 50


@pytest.mark.parametrize(
    ("arms", "best"),
    [
        ({"a": "30 30", "b": "10 40"}, "b"),
        ({"a": "10 40", "b": "30 30"}, "a"),
        ({"z": "20 20", "a": "10 30"}, "z"),
        ({"a": "10 30", "z": "20 20"}, "a"),  # of equal ones the first
        ({"a": "10 100+", "b": "50 50"}, "b"),  # not arriving counts as the cap: 55
        ({"a": "1x 1x", "b": "90 90"}, "b"),  # and so does diverging, however soon
    ],
)
def test_the_best_arm_has_the_lowest_restricted_mean(arms, best):
    assert analysis.best(frame(**arms)) == best


def test_the_best_arm_can_be_another_by_training_returns():
    runs = study.frame({"a": [record(0, "10", training=90)], "b": [record(0, "20", training=30)]})
    assert (analysis.best(runs), analysis.best(runs, "training")) == ("a", "b")


# Trends over arms


def test_a_trend_by_hand():
    # seed 0 rises, τ = 1; seed 1 falls once in three pairs, τ = 1/3; seed 2 ends in a tie of two that did not arrive,
    # τ = 2 / sqrt(3 · 2) = 0.816; seed 3 falls, τ = -1
    runs = frame(small="10 20 5 30", middle="20 10 100+ 20", large="30 30 9x 10")
    expected = [1, 1 / 3, 2 / math.sqrt(6), -1]
    tau, p = analysis.trend(shuffled(runs), ["small", "middle", "large"])
    close(tau.estimate, np.mean(expected))
    assert tau.n == 4 and -1 <= tau.low < tau.estimate < tau.high <= 1
    close(p, scipy.stats.wilcoxon(expected).pvalue)


def test_a_trend_turns_over_with_the_order_of_arms():
    runs = frame(small="10 20 5 30", middle="20 10 100+ 20", large="30 30 9x 10")
    (there, p), (back, same_p) = (
        analysis.trend(runs, order) for order in (["small", "middle", "large"], ["large", "middle", "small"])
    )
    close([back.estimate, back.low, back.high], [-there.estimate, -there.high, -there.low])
    close(same_p, p)


def test_a_trend_can_be_by_training_returns_and_take_any_iterable():
    runs = study.frame({"a": [record(0, "10", training=90)], "b": [record(0, "20", training=30)]})
    assert analysis.trend(runs, iter("ab"))[0].estimate == 1
    assert analysis.trend(runs, iter("ab"), "training")[0].estimate == -1


def test_a_trend_refuses_arms_of_other_seeds():
    runs = study.frame({"a": arm("10 20 30"), "b": arm("20 30 40", first_seed=50)})
    with pytest.raises(ValueError, match="seeds"):
        analysis.trend(runs, ["a", "b"])


# Two arms

PAIR = study.frame(
    {
        "a": arm("10 20 30 40 100+ 60", [[1.0, 3.0], [5.0, 5.0], [0.0, 8.0], [2.0, 4.0], [1.0, 1.0], [0.0, 2.0]]),
        "b": arm("30 60 30 20 100+ 90x", [[0.0, 4.0], [5.0, 7.0], [0.0, 2.0], [3.0, 5.0], [4.0, 6.0], [9.0, 9.0]]),
    }
)
SPREADS = {"a": [1, 0, 16, 1, 0, 1], "b": [4, 1, 1, 1, 1, 0]}


def test_a_comparison_by_hand():
    found = analysis.compare(shuffled(PAIR), "a", "b")
    assert (found.a, found.b, found.n) == ("a", "b", 6)
    close(found.factor.estimate, (30 + 60 + 30 + 20 + 100 + 100) / (10 + 20 + 30 + 40 + 100 + 60))
    close(found.wins.estimate, (1 + 1 + 0.5 + 0 + 0.5 + 1) / 6)  # a tie counts half, as does neither arriving
    close(found.steadier.estimate, (1 + 1 + 0 + 0.5 + 1 + 0) / 6)
    close(found.steadier_p, stats.signed_rank(np.subtract(SPREADS["a"], SPREADS["b"])))
    a = Times(np.array([10, 20, 30, 40, 100, 60]), np.array([1, 1, 1, 1, 0, 1], bool))
    b = Times(np.array([30, 60, 30, 20, 100, 100]), np.array([1, 1, 1, 1, 0, 0], bool))
    close(found.p, stats.logrank(a, b))
    for part in (found.factor, found.wins, found.steadier):
        assert part.low < part.estimate < part.high and part.n == 6


def test_a_pair_says_what_both_did_and_compares_the_first_with_the_second():
    table, whole = analysis.pair(PAIR, "a", "b"), analysis.compare(PAIR, "a", "b")
    assert list(table.index) == ["a", "b"] and list(table.runs) == [6, 6] and list(table.arrived) == [5, 4]
    assert (table.factor["a"], table["log-rank p"]["a"]) == (whole.factor, whole.p)
    assert table.factor["b"] == table["log-rank p"]["b"] == ""


def test_comparisons_turn_over_with_the_arms():
    there, back = analysis.compare(PAIR, "a", "b"), analysis.compare(PAIR, "b", "a")
    close(
        np.multiply(
            [there.factor.estimate, there.factor.low, there.factor.high],
            [back.factor.estimate, back.factor.high, back.factor.low],
        ),
        1,
    )
    for mine, other in ((there.wins, back.wins), (there.steadier, back.steadier)):
        close(np.add([mine.estimate, mine.low, mine.high], [other.estimate, other.high, other.low]), 1)
    close([back.p, back.steadier_p], [there.p, there.steadier_p])
    assert (back.a, back.b) == ("b", "a")


def test_an_arm_does_not_differ_from_itself():
    found = analysis.compare(PAIR, "a", "a")
    assert found.factor[:3] == (1, 1, 1)
    close([found.wins[:3], found.steadier[:3]], 0.5)
    close([found.p, found.steadier_p], 1)


def test_pairs_stay_together_in_the_bootstrap():
    runs = frame(a="5 10 20 30", b="15 30 60 90")  # three times as long on every seed, so in every resample
    close(analysis.compare(runs, "a", "b").factor[:3], 3)
    unpaired = analysis.compare(frame(a="5 10 20 30", b="90 60 30 15"), "a", "b").factor
    assert unpaired.low < 2 and unpaired.high > 4


def test_a_comparison_can_be_by_training_returns():
    runs = study.frame(
        {"a": [record(i, "10", training=80) for i in range(5)], "b": [record(i, "30", training=20) for i in range(5)]}
    )
    evaluation, training = analysis.compare(runs, "a", "b"), analysis.compare(runs, "a", "b", "training")
    assert (evaluation.factor.estimate, training.factor.estimate) == (3, 0.25)
    assert (evaluation.wins.estimate, training.wins.estimate) == (1, 0)
    assert evaluation.p < 0.05 and training.p < 0.05


@pytest.mark.parametrize(
    ("b", "text"),
    [
        (arm("20 30", first_seed=1), r"'one' and 'two' .* same seeds, got \[0, 1\] and \[1, 2\]"),
        (arm("20 30 40"), r"'one' and 'two' .* got \[0, 1\] and \[0, 1, 2\]"),
    ],
)
def test_arms_of_other_seeds_are_refused_by_name(b, text):
    runs = study.frame({"one": arm("10 20"), "two": b})
    with pytest.raises(ValueError, match=text):
        analysis.compare(runs, "one", "two")
    with pytest.raises(ValueError, match="'two' and 'one'"):
        analysis.against(runs, "one", ["two"])


def test_arms_that_nobody_has_run_are_refused_by_name():
    with pytest.raises(ValueError, match=r"arm must be one of .*, got 'x'"):
        analysis.compare(PAIR, "x", "y")
    with pytest.raises(ValueError, match=r"arm must be one of .*, got 'x'"):
        analysis.times(PAIR, "x")


def test_a_criterion_that_there_is_not_gets_a_sentence():
    with pytest.raises(ValueError, match=r"criterion must be one of 'evaluation', 'training', got 'train'"):
        analysis.compare(PAIR, *PAIR.arm.unique()[:2], "train")


def test_a_seed_counts_once():
    with pytest.raises(ValueError, match="must have one run of each seed"):
        analysis.compare(pd.concat([PAIR, PAIR]), *PAIR.arm.unique()[:2])


def test_runs_that_were_not_watched_for_a_criterion_are_not_judged_by_it():
    stopped = study.frame({"a": arm("20 30 40"), "b": arm("25 35 45")})  # by evaluation, with no word on training
    assert analysis.compare(stopped, "a", "b").n == 3
    with pytest.raises(ValueError, match=f"'a' must .* watched for the training criterion up to the cap of {CAP}"):
        analysis.compare(stopped, "a", "b", "training")


def test_a_table_needs_an_arm_beside_the_baseline():
    with pytest.raises(ValueError, match="arms must name at least one beside the baseline"):
        analysis.against(PAIR, PAIR.arm.iloc[0], [])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_run_that_diverged_before_its_first_evaluation_can_be_compared():
    runs = study.frame(
        {
            "a": [record(0, "1x", []), *arm("20 30 40", [[1.0]] * 3, first_seed=1)],
            "b": arm("20 30 40 50", [[1.0, 3.0]] * 4),
        }
    )
    there, back = analysis.compare(runs, "a", "b"), analysis.compare(runs, "b", "a")
    close(there.steadier.estimate + back.steadier.estimate, 1)
    assert 0 <= there.steadier_p <= 1


THREE = frame(slow=range(50, 60), fast=range(10, 20), zscore=range(30, 40), same=range(30, 40))


@pytest.mark.usefixtures("quick")
def test_arms_against_a_baseline():
    table = analysis.against(THREE, "zscore")
    assert list(table.index) == ["slow", "fast", "same"]
    close([factor.estimate for factor in table.factor], [345 / 545, 345 / 145, 1])
    close([wins.estimate for wins in table["probability faster"]], [0, 1, 0.5])
    close([steady.estimate for steady in table["probability steadier"]], 0.5)
    found = [analysis.compare(THREE, name, "zscore") for name in table.index]
    assert list(table["log-rank p"]) == [one.p for one in found]
    close(table["adjusted p"], scipy.stats.false_discovery_control([one.p for one in found]))
    assert table["adjusted p"]["fast"] > table["log-rank p"]["fast"]


@pytest.mark.usefixtures("quick")
def test_chosen_arms_against_a_baseline_come_in_their_order():
    table = analysis.against(THREE, "zscore", iter(["fast", "zscore", "slow"]))
    assert list(table.index) == ["fast", "slow"]
    close(table["adjusted p"], scipy.stats.false_discovery_control(table["log-rank p"]))


def test_arms_against_a_baseline_can_be_by_training_returns():
    runs = study.frame({"a": [record(0, "10", training=80)], "b": [record(0, "30", training=20)]})
    assert analysis.against(runs, "b").factor["a"].estimate == 3
    assert analysis.against(runs, "b", criterion="training").factor["a"].estimate == 0.25


def test_pairs_are_compared_by_both_criteria():
    runs = study.frame(
        {
            "a": [record(0, "30", training=35), record(1, "20", training=50)],
            "b": [record(0, "40", training=90), record(1, "80", training=70)],
        }
    )
    table = analysis.by_criterion(runs, {"first": ("a", "b"), "turned": ("b", "a")})
    assert list(table.index) == [(name, criterion) for name in ("first", "turned") for criterion in analysis.CRITERIA]
    close([factor.estimate for factor in table.factor], [120 / 50, 160 / 85, 50 / 120, 85 / 160])


# Verdicts on many comparisons at once


@pytest.mark.usefixtures("quick")
def test_rankings_judge_every_comparison_and_adjust_over_all_of_them():
    found = {name: analysis.compare(THREE, name, "zscore") for name in ("slow", "fast", "same")}
    table = analysis.rankings(found)
    assert list(table.index) == list(found) and list(table.arrived) == ["10 and 10"] * 3
    assert list(table.factor) == [one.factor for one in found.values()]
    close(table["adjusted p"], scipy.stats.false_discovery_control([one.p for one in found.values()]))
    assert [str(word) for word in table.verdict] == ["does not hold", "holds", "does not hold"]


@pytest.mark.usefixtures("quick")
def test_delicate_verdicts_are_those_of_the_rankings(monkeypatch):
    found = {name: analysis.compare(THREE, name, "zscore") for name in ("slow", "fast", "same")}
    qs, asked = list(analysis.rankings(found)["adjusted p"]), []
    monkeypatch.setattr(
        analysis.verdicts,
        "delicate",
        lambda factor, q, informed: asked.append((factor, q, informed)) or len(asked) == 2,
    )
    assert analysis.delicate(found) == ["fast"] and analysis.delicate({}) == []
    assert asked == [(one.factor, q, one.informed) for one, q in zip(found.values(), qs, strict=True)]


@pytest.mark.usefixtures("quick")
def test_rankings_take_p_values_that_were_adjusted_over_a_larger_family():
    found = {"fast": analysis.compare(THREE, "fast", "zscore")}
    assert [str(word) for word in analysis.rankings(found, [0.2]).verdict] == ["cannot be told"]
    assert list(analysis.rankings(found, [0.2])["adjusted p"]) == [0.2]
    with pytest.raises(ValueError, match="zip"):
        analysis.rankings(found, [0.2, 0.3])


@pytest.mark.usefixtures("quick")
def test_a_comparison_of_arms_that_hardly_arrive_tells_too_little():
    runs = study.frame({"a": arm("20 30 100+ 100+ 100+"), "b": arm("20 30 40 100+ 100+")})
    found = analysis.compare(runs, "a", "b")
    assert found.arrived == (2, 3) and not found.informed
    assert analysis.compare(runs, "b", "b").informed
    table = analysis.rankings({"no factor": found._replace(factor=stats.Interval(1.0, 0.95, 1.05, 5))})
    assert str(table.verdict["no factor"]) == "cannot be told"


AREAS = study.frame(
    {
        name: arm("100+ 100+ 100+ 100+ 100+ 100+", [[level + seed, level + seed] for seed in range(6)])
        for name, level in (("high", 5.0), ("low", 0.0))
    }
)


@pytest.mark.usefixtures("quick")
def test_areas_are_compared_seed_by_seed():
    found = analysis.compare_areas(shuffled(AREAS), "high", "low")
    assert (found.a, found.b, found.n) == ("high", "low", 6)
    close(found.difference[:3], [5, 5, 5])  # seeds differ by as much in both arms
    assert found.p == scipy.stats.wilcoxon(np.full(6, 5.0), method="exact").pvalue == 2 / 2**6


def test_areas_of_other_seeds_are_not_compared():
    with pytest.raises(ValueError, match="must have runs of the same seeds"):
        analysis.compare_areas(AREAS[(AREAS.arm == "high") | (AREAS.seed > 2)], "high", "low")


@pytest.mark.usefixtures("quick")
def test_differences_are_judged_by_p_values_of_their_own_family_or_a_larger_one():
    found = {
        "up": analysis.compare_areas(AREAS, "high", "low"),
        "down": analysis.compare_areas(AREAS, "low", "high"),
        "none": analysis.compare_areas(AREAS, "low", "low"),
    }
    table = analysis.differences(found)
    assert [str(word) for word in table.verdict] == ["better", "worse", "cannot be told"]
    close(table["adjusted p"], scipy.stats.false_discovery_control([2 / 2**6, 2 / 2**6, 1]))
    assert {str(word) for word in analysis.differences(found, [0.06] * 3).verdict} == {"cannot be told"}
