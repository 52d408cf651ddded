"""Every defensible choice: the worlds of a ranking, and what is said of them."""

import numpy as np
import pandas as pd
import pytest

from kscore import analysis, study
from kscore.analysis.stats import Interval, Times
from kscore.labs import multiverse
from kscore.study import plan

TIMES = Times(np.array([40, 200, 500]), np.array([True, True, False]))


@pytest.mark.parametrize(
    ("cap", "time", "arrived"),
    [
        (500, [40, 200, 500], [True, True, False]),
        (200, [40, 200, 200], [True, True, False]),
        (199, [40, 199, 199], [True, False, False]),
        (10, [10, 10, 10], [False, False, False]),
    ],
)
def test_a_lower_cap_censors_what_comes_later(cap, time, arrived):
    found = multiverse.cut(TIMES, cap)
    assert found.time.tolist() == time and found.arrived.tolist() == arrived


def frame(*rows):
    """Runs of one arm: the evaluation returns, the recorded time and whether the run arrived."""
    return pd.DataFrame(
        [
            {
                "arm": "a",
                "seed": seed,
                "eval_returns": np.array(returns, float),
                "evaluation": time,
                "evaluation_arrived": arrived,
            }
            for seed, (returns, time, arrived) in enumerate(rows)
        ]
    )


def test_a_shorter_window_is_reached_where_its_mean_first_is():
    runs = frame(
        ([0, 0, 10, 10, 10], 5, True),
        ([0, 0, 0, 0, 0], 5, False),
        ([0, 10, 10, 0, 0], 5, False),
        ([0, 0, 0, 10, 10], 5, False),
    )
    found = multiverse.arrivals(runs, "evaluation", 2, 10)
    assert found.time.tolist() == [4, 5, 3, 5] and found.arrived.tolist() == [True, False, True, True]


def test_a_run_that_arrived_has_done_so_at_the_recorded_time_at_the_latest():
    found = multiverse.arrivals(frame(([9, 9, 9, 9, 9], 5, True)), "evaluation", 2, 10)
    assert found.time.tolist() == [5] and found.arrived.tolist() == [True]


@pytest.mark.parametrize(
    ("low", "high", "side"),
    [(1.1, 2, "faster"), (0.9, 2, "cannot be told"), (0.2, 0.9, "slower"), (1, 2, "cannot be told")],
)
def test_an_interval_lies_on_one_side_or_across(low, high, side):
    assert multiverse.side(Interval(1, low, high, 9), 1.0) == side


@pytest.fixture(scope="module")
def lander():
    part = plan.part("lunarlander_ppo")
    runs = study.runs(part)
    return multiverse.worlds({"lunarlander_ppo": runs}, {"lunarlander_ppo": 200.0}, draws=10_000), runs


def test_the_world_of_the_plan_is_among_them_with_the_factor_of_the_report(lander):
    worlds, runs = lander
    ours = worlds.query(
        "filter == 'adaptive' and baseline == 'running' and criterion == 'evaluation' and window == 25 and cap == 1500"
    )
    assert len(ours) == 1
    assert ours.factor.iloc[0] == analysis.compare(runs, "adaptive", "running").factor


def test_every_choice_is_combined_with_every_other(lander):
    worlds, _ = lander
    sizes = worlds[["filter", "baseline", "criterion", "window", "cap"]].nunique()
    assert sizes.to_dict() == {"filter": 3, "baseline": 2, "criterion": 2, "window": 2, "cap": 3}
    assert len(worlds) == 72 and not worlds.duplicated(["filter", "baseline", "criterion", "window", "cap"]).any()


def test_a_criterion_that_was_not_watched_is_no_world():
    worlds = multiverse.worlds(
        {"cartpole_ppo": study.runs(plan.part("cartpole_ppo", seeds=5))}, {"cartpole_ppo": 475.0}, draws=20
    )
    assert set(worlds.criterion) == {"evaluation"}


def test_shares_add_up(lander):
    worlds, _ = lander
    shares = multiverse.shares(worlds, "filter")
    assert np.allclose(shares.sum(axis=1), 1) and list(shares) == list(multiverse.SIDES)
    by_hand = np.mean(
        [
            (worlds[worlds["filter"] == "refit"][f"by {test}"] == "slower").mean()
            for test in ("factor", "log-rank", "pairs")
        ]
    )
    assert shares["slower"]["refit"] == pytest.approx(by_hand)


def test_the_picture_has_a_panel_a_ranking_and_a_mark_a_world(lander):
    worlds, _ = lander
    fig = multiverse.draw(worlds)
    (panel, *others) = fig.axes
    assert "PPO, LunarLander" in {panel.get_title(loc=place) for place in ("left", "center")}
    assert "72 worlds" in panel.get_xlabel()
    assert len(panel.lines) == 2 * 72 + 1 and len(others) == 1
    assert panel.get_yscale() == "log"
