"""Shares of right answers: what is read of the recorded runs, and how the forms compare."""

import numpy as np
import pytest

from kscore import journal
from kscore.analysis import shares, stats
from kscore.analysis.verdicts import Change


def record(form, answers, seed, curve):
    return {"config": {"form": form, "answers": answers}, "seed": seed, "curve": curve}


@pytest.fixture
def path(tmp_path):
    """Two forms, groups of 12 and 2, seven seeds; "krpo" is 0.1 ahead with 12 answers and the same with 2."""
    rng = np.random.default_rng(0)
    for seed in range(7):
        for answers, ahead in ((12, 0.1), (2, 0.0)):
            level = rng.uniform(0.3, 0.6)
            journal.append(tmp_path / "sums.jsonl", record("grpo", answers, seed, [level, level]))
            journal.append(tmp_path / "sums.jsonl", record("krpo", answers, seed, [level, level + 2 * ahead]))
    return tmp_path / "sums.jsonl"


def test_the_outcome_of_a_run_is_its_mean_share(path):
    runs = shares.read(path)
    assert len(runs) == 28 and list(runs.columns) == ["form", "answers", "seed", "curve", "share"]
    assert all(share == pytest.approx(np.mean(curve)) for curve, share in zip(runs.curve, runs.share, strict=True))


def test_a_seed_that_is_not_complete_is_left_out(path):
    journal.append(path, record("grpo", 12, 7, [0.5]))
    assert sorted(shares.read(path).seed.unique()) == list(range(7))


def test_no_runs_get_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="^path must be a file of recorded runs, got .*which holds none"):
        shares.read(tmp_path / "none.jsonl")


def test_forms_are_compared_seed_by_seed(path):
    """The levels of the seeds scatter by far more than 0.1; the differences do not."""
    table = shares.against(shares.read(path), "grpo")
    assert list(table.index) == [(12, "krpo"), (2, "krpo")]
    ahead, same = table.itertuples(index=False)
    assert tuple(ahead.difference[:3]) == pytest.approx((0.1, 0.1, 0.1)) and ahead.difference.n == 7
    assert ahead.verdict == Change.BETTER and same.verdict == Change.UNTOLD
    assert table["adjusted p"].tolist() == pytest.approx(stats.adjusted([2 / 2**7, 1.0]))
