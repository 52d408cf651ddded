"""Settings of their own, what one setting for all would cost, and who comes first."""

import numpy as np
import pandas as pd
import pytest
from small_runs import close, record

from kscore import study
from kscore.analysis import stats
from kscore.analysis.stats import Times
from kscore.labs import contest
from kscore.labs.contest import Setting
from kscore.study import plan

CAP = 100


def runs(**arms):
    """A grid from the words of its runs: `a_1="40 50 100+"` is arm a at the rate 1, `a_1z` the same, z-scored."""
    found, columns = {}, {}
    for title, words in arms.items():
        name, rate = title.split("_")
        found[title] = [record(seed, word, cap=CAP) for seed, word in enumerate(words.split())]
        columns[title] = {"normalizer": name, "rate": float(rate.rstrip("z")), "z_scored": rate.endswith("z")}
    return study.frame(found, columns)


GRID = runs(
    a_1="40 60", a_1z="30 50", a_2="20 20", a_2z="20 20", b_1="10 10", b_1z="90 90", b_2="80 80", b_2z="70 100+"
)


def test_two_arms_of_one_setting_get_a_sentence():
    twice = pd.concat([GRID, runs(a_1z="40 60").assign(arm="again")])
    with pytest.raises(ValueError, match="^runs must have one arm for 'a' at 1, z-scored, got 'a_1z', 'again'$"):
        contest.grid_means(twice)


def test_the_settings_of_a_part_are_those_of_its_configurations():
    found = contest.settings_of(plan.part("fair_gae"))
    assert found["kscore"] == (0.003, True) and found["none"] == (0.01, False) and len(found) == 11


def test_every_arm_has_the_setting_of_its_lowest_restricted_mean_and_a_tie_goes_to_what_was_said():
    means = contest.grid_means(GRID)
    assert means["b"] == {(1, False): 10, (1, True): 90, (2, False): 80, (2, True): 85}
    assert contest.own_settings(means) == {"a": (2, False), "b": (1, False)}
    tied = runs(a_2="20", a_1z="20", a_1="20")
    assert contest.own_settings(contest.grid_means(tied)) == {"a": (1, False)}


def test_the_common_rate_is_best_on_the_average_of_all_arms_each_with_its_better_treatment():
    assert contest.common_settings(contest.grid_means(GRID)) == {"a": (1, True), "b": (1, False)}  # 40, 10 to 20, 80
    other = runs(a_1="90", a_2="10", b_1="10", b_1z="5", b_2="60", b_2z="80")
    assert contest.common_settings(contest.grid_means(other)) == {"a": (2, False), "b": (2, False)}


def test_a_curve_over_rates_takes_the_better_treatment_and_its_interval_holds_the_estimate():
    curves = contest.rate_curves(GRID).set_index(["arm", "rate"])["restricted mean"]
    assert [curves[at].estimate for at in (("a", 1), ("a", 2), ("b", 1), ("b", 2))] == [40, 20, 10, 80]
    assert (curves["a", 1].low, curves["a", 1].high, curves["a", 1].n) == (30, 50, 2)
    assert curves["b", 2].low == 70 and curves["b", 2].high == 80  # in a draw of the first seed alone: 70 to 80


def test_sensitivity_is_what_one_setting_for_all_cells_costs():
    with_critic = runs(a_1="40", a_1z="10", a_2="30", a_2z="90", b_1="50", b_1z="60", b_2="70", b_2z="80")
    without = runs(a_1="60", a_2="20", b_1="50", b_2="70")
    found = contest.sensitivities({"x": with_critic, "y": without}, CAP)
    # a: (1) 50, (1, z) 35, (2) 25, (2, z) 55 on the average, so 25; its own are 10 and 20
    close([found["a"].estimate, found["b"].estimate], [(25 - 15) / CAP, 0])


def arm(*values):
    return Times(np.array(values), np.array(values) < CAP)


def test_standings_are_mean_ranks_over_cells_and_the_share_of_draws_in_which_an_arm_leads():
    cells = {
        "x": {"a": arm(10, 12), "b": arm(20, 20), "c": arm(90, 100)},
        "y": {"a": arm(30, 30), "b": arm(20, 20), "c": arm(90, 95)},
    }
    found = contest.standings(cells, {"x": CAP, "y": CAP})
    assert [interval.estimate for interval in found["mean rank"]] == [1.5, 1.5, 3]
    close(found["probability of being best"], [0.5, 0.5, 0])
    clear = contest.standings({"x": cells["x"]}, {"x": CAP})
    close(clear["probability of being best"], [1, 0, 0])


def test_the_probability_of_being_best_is_that_of_the_bootstrap():
    a, b = arm(10, 40), arm(20, 20)
    found = contest.standings({"x": {"a": a, "b": b}}, {"x": CAP})["probability of being best"]
    # seeds drawn twice: both the first in a quarter of the draws, where a leads; else 25 or 40 against 20
    assert found["a"] == pytest.approx(0.25, abs=0.05) and found.sum() == pytest.approx(1)
    assert stats.restricted_mean(a, CAP) == 25


UNEVEN = runs(a_1="40 60", b_1="10")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (lambda: contest.rate_curves(UNEVEN), "^runs must have every arm on the same seeds, got 1 of 2 for 'b_1'"),
        (lambda: contest.sensitivities({"x": UNEVEN}, CAP), "^runs must have every arm on the same seeds"),
        (lambda: contest.rate_curves(UNEVEN.iloc[:0]), "^runs must hold at least one run, got none"),
        (lambda: contest.sensitivities({"x": GRID}, 0), "^cap must be positive, got 0"),
        (
            lambda: contest.sensitivities({"x": GRID, "y": runs(a_1="40 60")}, CAP),
            "^grids must have the same arms in every cell, got x: a, b; y: a$",
        ),
        (
            lambda: contest.sensitivities({"x": GRID, "y": runs(a_1="4 6", b_1="4 6")}, CAP),
            "^grids must have every arm at the same rates, got no 'a' at 2 in 'y'",
        ),
        (
            lambda: contest.sensitivities({"x": GRID, "y": runs(a_1z="4", a_2="4", b_1="4", b_2="4")}, CAP),
            "^grids must have every arm at the same rates, got no 'a' at 1 in 'y'",
        ),
        (
            lambda: contest.common_settings({"a": {Setting(1): 5.0, Setting(2): 4.0}, "b": {Setting(1): 5.0}}),
            "^means must have every arm at every rate, got none of 'b' at 2",
        ),
        (lambda: contest.common_settings({}), "^means must have at least one arm at one rate, got {}"),
        (lambda: contest.standings({}, {}), "^cells must hold at least one cell, got none"),
        (lambda: contest.standings({"x": {"a": arm(1)}}, {"y": CAP}), "^cell of caps must be one of 'y', got 'x'"),
        (
            lambda: contest.standings({"x": {"a": arm(1)}, "y": {"b": arm(1)}}, {"x": CAP, "y": CAP}),
            "^cells must have the same arms each, got b in 'y' beside a",
        ),
        (
            lambda: contest.standings({"x": {"a": arm(1), "b": arm(1, 2)}}, {"x": CAP}),
            r"^cells must have as many runs of every arm, got \[1, 2\] in 'x'",
        ),
    ],
)
def test_what_makes_no_contest_gets_a_sentence(asked, sentence):
    with pytest.raises(ValueError, match=sentence):
        asked()
