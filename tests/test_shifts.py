"""After a shift: when the criterion is met again, against a slow look at every evaluation, one by one."""

import math

import numpy as np
import pandas as pd
import pytest

from kscore import analysis
from kscore.analysis import stats
from kscore.labs.shifts import after_shift, arrived_again
from kscore.rl import RunConfig, train
from kscore.study.records import Record, frame


def slowly(returns, after, threshold, window, every):
    """The same with the words of the definition: the first evaluation whose last ones all came after the shift."""
    since = []
    for number, found in enumerate(returns, start=1):
        if number * every > after:
            since.append(found)
        if len(since) >= window and sum(since[-window:]) / window >= threshold:
            return number * every - after
    return None


def test_arriving_again_against_a_slow_look():
    rng, seen = np.random.default_rng(0), []
    for _ in range(400):
        returns = rng.integers(10, size=rng.integers(40)).astype(float)
        after, window, every = int(rng.integers(60)), int(rng.integers(1, 7)), int(rng.integers(1, 5))
        found = arrived_again(returns, after, 6.0, window, every)
        assert found == slowly(returns, after, 6.0, window, every)
        seen.append(found)
    assert 50 < sum(found is None for found in seen) < 350 and max(filter(None, seen)) > 20


@pytest.mark.parametrize(
    ("returns", "settings", "again"),
    [
        ([9, 9, 9, 1, 9, 9], {"after": 3, "window": 2}, 3),  # what was earned before the shift does not help
        ([9, 9, 9, 9, 9], {"after": 3, "window": 2}, 2),
        ([9, 9, 9, 9], {"after": 3, "window": 2}, None),
        ([9, 9], {"after": 3, "window": 1}, None),
        ([], {"after": 0, "window": 1}, None),
        ([9, 9, 9], {"after": 0, "window": 2}, 2),
        ([9, 9, 9], {"after": 3, "window": 1, "every": 2}, 1),  # the second evaluation comes after four episodes
        ([9, 9, 9], {"after": 4, "window": 1, "every": 2}, 2),
    ],
)
def test_arriving_again_by_hand(returns, settings, again):
    assert arrived_again(returns, threshold=9.0, **settings) == again


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"after": -1}, "^after must be a whole number of at least 0, got -1"),
        ({"window": 0}, "^window must .*got 0"),
        ({"every": 0}, "^every must .*got 0"),
        ({"after": 2.0}, "^after must .*got 2.0"),
        ({"threshold": None}, "^threshold must be a number, got None"),
        ({"threshold": math.nan}, "^threshold must be finite, got nan"),
        ({"returns": "abc"}, "^returns must be an array of numbers, got 'abc'"),
        ({"returns": [[1.0]]}, r"^returns must be 1-D, got shape \(1, 1\)"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        arrived_again(**{"returns": [1.0], "after": 0, "threshold": 1.0, **bad})


# Frames


def run(arm, seed, evaluations, every=1, status="censored", cap=None):
    trained = len(evaluations) * every
    cap = trained if cap is None else cap
    return {
        "arm": arm,
        "seed": seed,
        "status": status,
        "episodes": trained,
        "cap": cap,
        "every": every,
        "evaluation": cap,
        "evaluation_arrived": False,
        "training": cap,
        "training_arrived": False,
        "train_returns": np.repeat(evaluations, every).astype(float),
        "eval_returns": np.array(evaluations, float),
        "steps": 1,
        "seconds": 1.0,
    }


RUNS = pd.DataFrame(
    [
        run("quick", 1, [9, 9, 1, 9, 9, 9, 9, 9], status="arrived"),
        run("quick", 0, [9, 9, 1, 1, 9, 9, 9, 9]),
        run("slow", 0, [9, 9, 1, 1, 1, 1, 9, 9]),
        run("slow", 1, [9, 9, 9, 1, 1, 1, 1, 9]),
    ]
)


def test_times_since_a_shift_are_censored_at_what_is_left_of_the_cap():
    later = after_shift(RUNS, after=2, threshold=9.0, window=2)
    quick, slow = (analysis.times(later, arm) for arm in ("quick", "slow"))
    assert quick.time.tolist() == [4, 3] and quick.arrived.tolist() == [True, True]
    assert slow.time.tolist() == [6, 6] and slow.arrived.tolist() == [True, False]
    assert later.cap.tolist() == [6] * 4 and later.episodes.tolist() == [6] * 4
    assert later.status.tolist() == ["arrived", "arrived", "arrived", "censored"]
    assert RUNS.cap.tolist() == [8] * 4 and len(RUNS.eval_returns[0]) == 8  # the frame itself stays as it was


def test_what_takes_a_frame_takes_one_since_a_shift():
    later = after_shift(RUNS, after=2, threshold=9.0, window=2)
    found = analysis.compare(later, "quick", "slow")
    assert found.factor.estimate == pytest.approx(6 / 3.5) and found.arrived == (2, 1)
    assert analysis.restricted_means(later) == {"quick": 3.5, "slow": 6.0}
    assert analysis.areas(later, "quick").tolist() == pytest.approx([(1 + 1 + 36) / 6, (1 + 45) / 6])
    assert stats.survival(analysis.times(later, "quick")).share[-1] == 0


def test_evaluations_that_are_rare_are_counted_in_episodes_and_trainings_one_by_one():
    later = after_shift(pd.DataFrame([run("a", 0, [9, 1, 9, 9], every=3)]), after=4, threshold=9.0, window=2).iloc[0]
    assert (later.evaluation, later.training, later.cap) == (8, 4, 8)
    assert later.eval_returns.tolist() == [1, 9, 9] and later.train_returns.tolist() == [1, 1, *6 * [9]]


def test_the_last_update_may_be_smaller_than_the_others():
    """Updates after 4, 8 and 10 of 10 episodes: the third evaluation is not after 12 of them."""
    short = run("a", 0, [9, 1, 9], every=4) | {"cap": 10, "episodes": 10}
    later = after_shift(pd.DataFrame([short]), after=5, threshold=9.0, window=1).iloc[0]
    assert later.evaluation == later.cap == 5 and later.evaluation_arrived


def test_a_run_that_diverged_is_watched_to_the_cap_and_one_that_stopped_is_refused():
    diverged = run("a", 0, [9, 9, 1], status="diverged", cap=9)
    later = after_shift(pd.DataFrame([diverged]), after=2, threshold=9.0, window=2).iloc[0]
    assert (later.evaluation, later.evaluation_arrived, later.status, later.episodes) == (7, False, "diverged", 1)
    gone = after_shift(pd.DataFrame([diverged]), after=5, threshold=9.0, window=2).iloc[0]
    assert (gone.evaluation, gone.episodes, len(gone.eval_returns)) == (4, 0, 0)
    with pytest.raises(ValueError, match=r"^runs must have been trained to their cap .*'a' that stopped after 3 of 9"):
        after_shift(pd.DataFrame([run("a", 0, [9, 9, 9], status="arrived", cap=9)]), after=2, threshold=9.0)


def test_a_shift_that_never_came_is_refused():
    with pytest.raises(ValueError, match="^threshold must be finite, got nan"):
        after_shift(RUNS, after=3, threshold=math.nan)
    with pytest.raises(ValueError, match="^after must be less than the cap of every run, got 8 and a cap of 8"):
        after_shift(RUNS, after=8, threshold=9.0)


def test_a_swap_that_was_trained_through_is_seen_in_the_frame():
    """On a line where the second action pays double, the threshold is met, lost at the swap, and met again."""
    config = RunConfig(
        env="outside:Line-v0",
        algorithm="reinforce",
        threshold=19.0,
        hidden=(8,),
        max_episodes=300,
        window=5,
        stop=False,
        learning_rate=0.02,
        dropout=0.0,
        normalizer={"name": "running"},
        disturbance={"name": "swap", "after": 100},
    )
    record = Record.of(train(config, 0))
    runs = frame({"line": [record]})
    again = analysis.times(after_shift(runs, 100, 19.0, 5), "line")
    assert runs.evaluation_arrived[0] and runs.evaluation[0] < 100
    assert record.eval_returns[99] == 20 and record.eval_returns[100] == 10
    assert again.arrived[0] and 5 < again.time[0] < 200
    assert again.time[0] == slowly(record.eval_returns, 100, 19.0, 5, 1)
