"""The recorded centres: complete, in agreement with the archive, and made anew just as they were."""

import numpy as np
import pytest

from kscore import journal, study
from kscore.project import ARCHIVE
from kscore.study import plan, tracks

TABLE = tracks.read()


def test_every_run_is_there_with_every_arm_at_every_tenth_episode():
    assert set(TABLE.groupby(["condition", "seed"]).groups) == {
        (condition, seed) for condition in tracks.CONDITIONS for seed in tracks.SEEDS
    }
    for _, rows in TABLE.groupby(["condition", "seed"]):
        episodes = sorted(set(rows.episode))
        assert episodes == list(range(10, 10 * len(episodes) + 10, 10))
        assert len(rows) == len(episodes) * len(tracks.ARMS) and set(rows.arm) == set(tracks.ARMS)
    assert np.isfinite(TABLE[["centre", "expected", "standard_error"]].to_numpy()).all()


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("clean", "fair_actor_critic"),
        ("noise 3", "disturbed_actor_critic_noise"),
        ("times 10", "disturbed_actor_critic_shift"),
        ("swap", "disturbed_actor_critic_swap"),
    ],
)
def test_the_runs_that_were_followed_are_those_of_the_archive(condition, part):
    """They are as long as the recorded runs of the running Z-Score under that condition."""
    found = plan.part(part)
    runs = study.recorded(found.configs, tracks.SEEDS, ARCHIVE / found.file)
    own = runs[runs.arm == ("running" if condition == "clean" else f"running, {condition}")].set_index("seed")
    last = TABLE[TABLE.condition == condition].groupby("seed").episode.max()
    assert (own.episodes // 10 * 10 == last).all() and len(own) == len(last)


def test_rewards_times_ten_are_what_there_is_to_follow():
    rows = TABLE[(TABLE.condition == "times 10") & (TABLE.arm == "zscore")]
    before, after = (rows[rows.episode <= 50].expected, rows[rows.episode > 50].expected)
    assert after.min() > 3 * before.max() > 0


def test_a_run_is_followed_again_just_as_it_was_recorded():
    seed = min(tracks.SEEDS, key=lambda s: TABLE[(TABLE.condition == "clean") & (TABLE.seed == s)].episode.max())
    rows = tracks.followed("clean", seed)["rows"]
    own = TABLE[(TABLE.condition == "clean") & (TABLE.seed == seed)]
    for name, values in rows.items():
        assert list(values) == list(own[name])


def test_what_is_there_is_not_trained_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tracks, "SEEDS", range(5000, 5001))
    path = tmp_path / "tracks.jsonl"
    for condition in tracks.CONDITIONS:
        journal.append(path, {"condition": condition, "seed": 5000, "rows": {"episode": [10]}})
    before = path.read_bytes()
    tracks.record(path)
    assert path.read_bytes() == before
