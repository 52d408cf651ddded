"""One run that raises does not block a study: it is recorded as failed, the others go on, and it can be tried again."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest
from small_runs import planned

from kscore import study
from kscore.__main__ import main
from kscore.rl import RunConfig
from kscore.study import plan, records, store

SEEDS = range(6)


@pytest.fixture
def stormy(tmp_path, monkeypatch):
    """A configuration whose environment raises in the runs of some seeds, as long as a storm lasts."""
    (tmp_path / "stormy.py").write_text("""
from pathlib import Path
import gymnasium as gym, numpy as np

class Stormy(gym.Env):
    observation_space, action_space = gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(2)
    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.unlucky = seed % 2 == 1
        return np.zeros(2, np.float32), {}
    def step(self, action):
        if self.unlucky and Path(__file__).with_name("storm").exists():
            raise RuntimeError("the mast broke")
        return np.zeros(2, np.float32), 1.0, False, False, {}

gym.register("Stormy-v0", Stormy, max_episode_steps=5)
""")
    (tmp_path / "storm").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield RunConfig(env="stormy:Stormy-v0", algorithm="reinforce", threshold=None, max_episodes=2, hidden=(4,))
    sys.modules.pop("stormy", None)
    gym.registry.pop("Stormy-v0", None)


@pytest.fixture
def here():
    """An executor that trains in this process, which is there at once."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def statuses(path):
    return [record.status for record in study.read(path).records]


def test_the_others_go_on_and_the_failure_is_told_and_is_in_no_table(stormy, tmp_path, here):
    path = tmp_path / "runs.jsonl"
    with pytest.raises(study.FailedRuns, match=r"of 6 runs failed, .* with RuntimeError: the mast broke"):
        study.run([stormy], SEEDS, path, here, progress=False)
    assert len(statuses(path)) == len(SEEDS) and {"failed", "censored"} == set(statuses(path))
    reasons = {json.loads(line)["reason"] for line in path.read_text().splitlines()}
    assert reasons == {"RuntimeError: the mast broke", None}
    assert len(study.recorded([stormy], SEEDS, path)) == statuses(path).count("censored")


def test_what_failed_is_tried_again_only_when_asked_for(stormy, tmp_path, here):
    path = tmp_path / "runs.jsonl"
    with pytest.raises(study.FailedRuns):
        study.run([stormy], SEEDS, path, here, progress=False)
    failed = statuses(path).count("failed")
    (tmp_path / "storm").unlink()
    with pytest.raises(study.FailedRuns):
        study.run([stormy], SEEDS, path, here, progress=False)
    assert len(statuses(path)) == len(SEEDS)
    runs = study.run([stormy], SEEDS, path, here, progress=False, retry_failed=True)
    assert len(runs) == len(SEEDS) and set(runs.status) == {"censored"}
    assert len(statuses(path)) == len(SEEDS) + failed
    assert len(study.run([stormy], SEEDS, path, here, progress=False)) == len(SEEDS)  # the later line counts


def test_the_command_goes_on_with_the_other_parts_and_ends_in_failure(stormy, tmp_path, monkeypatch, capsys):
    calm = RunConfig(env="CartPole-v1", algorithm="reinforce", threshold=None, max_episodes=1, hidden=(4,))
    planned(
        monkeypatch,
        plan.Part("storm", {"only": stormy}, range(len(SEEDS))),
        plan.Part("calm", {"only": calm}, range(1)),
    )
    own = tmp_path / "own"
    assert main(["study", "--store", str(own)]) == 1
    told = capsys.readouterr()
    assert "storm: " in told.err and "runs failed" in told.err and "calm: 1 runs" in told.out
    assert statuses(own / "calm.jsonl") == ["censored"]
    (tmp_path / "storm").unlink()
    assert main(["study", "--store", str(own)]) == 1
    assert main(["study", "--store", str(own), "--retry-failed"]) == 0


def test_a_failed_run_is_a_whole_record(stormy):
    made = records.Record.of(records.failed(stormy, 3, "it broke", 0.5, 0.25))
    assert (made.status, made.reason, made.key) == ("failed", "it broke", records.key(stormy, 3))
    assert store.read("/nowhere/at/all.jsonl").records == []


@pytest.mark.parametrize("reason", ["\ud800 broke", "\x1b[2J\n\x00", "λ"])
def test_whatever_a_failure_says_its_record_can_be_read(stormy, tmp_path, reason):
    store.append(tmp_path / "runs.jsonl", records.failed(stormy, 3, reason, 0.5, 0.25))
    read = store.read(tmp_path / "runs.jsonl")
    assert read.damaged == 0 and [record.status for record in read.records] == ["failed"]
