"""Outcomes: one line for each run, taken from the archive or trained, and read back as the frame of other runs."""

import collections
import dataclasses
import json

import pytest
from small_runs import ARMS, SEEDS, InProcess, lines, planned

from kscore import analysis, project, study
from kscore.__main__ import main
from kscore.study import outcomes, plan
from kscore.study.plan import Part
from kscore.study.records import Record, frame, key

PART = Part("small", ARMS, range(3))
WHOLE = [Record.parse(line) for line in lines()]
CURVES = ["train_returns", "eval_returns"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(outcomes, "OUTCOMES", tmp_path)
    return tmp_path


def recorded(part=PART, executor=None):
    """Record a part in this process; return its frame and the keys of what was trained for it."""
    executor = executor or InProcess()
    return outcomes.record(part, executor), executor.trained


def test_every_run_leaves_one_line_and_is_not_trained_twice(folder):
    first, trained = recorded()
    assert sorted(trained) == sorted(key(config, seed) for config in ARMS.values() for seed in SEEDS)
    again, nothing = recorded()
    assert nothing == [] and again.equals(first)
    head, *rest = (folder / "small.csv").read_bytes().splitlines(keepends=True)
    assert head == outcomes.HEAD and len(rest) == 6


def test_a_frame_of_outcomes_is_that_of_the_records_without_curves(folder):
    made, _ = recorded()
    curves = frame({arm: [run for run in WHOLE if run.key[0] == key(config, 0)[0]] for arm, config in ARMS.items()})
    shared = ["arm", "seed", "status", "episodes", "cap", "evaluation", "evaluation_arrived", "steps"]
    assert list(made.train_steps) == [
        run.train_steps for arm in ARMS.values() for run in WHOLE if run.key[0] == key(arm, 0)[0]
    ]
    assert made[shared].equals(curves[shared])
    assert analysis.restricted_means(made) == analysis.restricted_means(curves)


def test_a_line_says_what_was_run(folder):
    config = dataclasses.replace(ARMS["zscore"], algorithm="ppo", normalize_advantages=True, learning_rate=0.003)
    made, _ = recorded(Part("small", {"mine": config}, range(1)))
    assert made.iloc[0][["learner", "arm", "rate", "doors", "z_scored"]].to_list() == [
        "ppo", "mine", 0.003, "returns", True]  # fmt: skip


@pytest.mark.parametrize(
    "changes, doors",
    [
        ({}, "returns"),
        ({"signal": "advantages"}, "advantages"),
        ({"advantage_normalizer": {"name": "episode"}}, "both"),
        ({"normalizer": {"name": "none"}, "advantage_normalizer": {"name": "episode"}}, "advantages"),
    ],
)
def test_the_doors_of_an_arm(changes, doors):
    config = dataclasses.replace(ARMS["zscore"], algorithm="actor_critic", **changes)
    assert outcomes.said_of("mine", config)["doors"] == doors


@pytest.mark.parametrize("kept", [-1, -20, -60])
def test_a_torn_line_is_passed_over_and_its_run_trained_again(folder, kept):
    whole, _ = recorded()
    path = folder / "small.csv"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.warns(UserWarning, match="1 damaged"):
        again, trained = recorded()
    assert again.equals(whole) and len(trained) == 1


@pytest.mark.parametrize("column, value", [("solved", "2"), ("seed", "-1"), ("episodes", "x"), ("digest", "12")])
def test_a_line_that_says_what_cannot_be_is_passed_over(folder, column, value):
    recorded()
    path = folder / "small.csv"
    *rest, last = path.read_text().splitlines(keepends=True)
    values = dict(zip(outcomes.COLUMNS, next(outcomes.csv.reader([last])), strict=True)) | {column: value}
    path.write_bytes("".join(rest).encode() + outcomes._csv(values.values()))
    with pytest.warns(UserWarning, match="1 damaged"):
        assert len(outcomes.frame(PART)) == 5


def test_the_first_lines_do_not_say_how_many_steps_were_training():
    said = dict.fromkeys(outcomes.COLUMNS, "1") | {"train_steps": "", "digest": 16 * "d", "settings": 16 * "s"}
    assert outcomes.parsed(outcomes._csv(said.values())).train_steps is None
    assert outcomes.parsed(outcomes._csv((said | {"train_steps": "7"}).values())).train_steps == 7


def test_a_run_of_the_archive_is_not_trained_again(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(outcomes, "ARCHIVE", tmp_path)
    (tmp_path / "older.jsonl").write_bytes(b"".join(lines()[:4]))
    made, trained = recorded(PART._replace(beside=("older",)))
    assert len(trained) == 2 and made.equals(recorded(PART)[0])


def test_an_interrupted_recording_goes_on(folder):
    with pytest.raises(KeyboardInterrupt):
        recorded(executor=InProcess(interrupted_after=2))
    made, trained = recorded()
    assert len(made) == 6 and len(trained) == 4


def test_a_digest_tells_returns_apart_and_nothing_else(folder):
    run = WHOLE[0]
    assert outcomes.digest_of(dataclasses.replace(run, seconds=9.0, machine="other")) == outcomes.digest_of(run)
    for name in CURVES:
        returns = getattr(run, name).copy()
        returns[-1] += 1e-12
        assert outcomes.digest_of(dataclasses.replace(run, **{name: returns})) != outcomes.digest_of(run)
    swapped = {"train_returns": run.eval_returns, "eval_returns": run.train_returns}
    assert outcomes.digest_of(dataclasses.replace(run, **swapped)) != outcomes.digest_of(run)


def test_a_run_that_stopped_early_without_solving_it_has_diverged(folder):
    broken = dataclasses.replace(WHOLE[0], status="diverged", solved=False, episodes=2)
    arm = next(arm for arm, config in ARMS.items() if key(config, 0)[0] == broken.key[0])
    outcomes.journal.append_line(folder / "small.csv", outcomes.line(arm, ARMS[arm], broken), head=outcomes.HEAD)
    row = outcomes.frame(PART).iloc[0]
    assert (row.status, row.episodes, row.evaluation, row.evaluation_arrived) == ("diverged", 2, 3, False)


def test_a_run_that_fails_is_named_and_leaves_no_line(folder):
    class Failing(InProcess):
        def _work(self, function, config, seed):
            made = super()._work(function, config, seed)
            return made | {"status": "failed", "reason": "the sun shone"} if seed == 1 else made

    with pytest.raises(study.FailedRuns, match="the sun shone"):
        recorded(executor=Failing())
    assert len(outcomes.frame(PART)) == 4


def test_the_command_line_trains_what_recorded_outcomes_lack(folder, monkeypatch, capsys):
    planned(monkeypatch, Part("small", ARMS, range(2), keep="outcomes"))
    assert main(["study", "small", "--record", "--workers", "1"]) == 0
    assert "4 runs, 4 of them missing" in capsys.readouterr().out
    assert len(outcomes.held(folder / "small.csv")) == 4


# What is recorded


@pytest.mark.parametrize("path", sorted(project.OUTCOMES.glob("*.csv")), ids=lambda path: path.stem)
def test_recorded_outcomes_are_planned_runs_each_once(path):
    part = plan.part(path.stem)
    arms = {outcomes.settings_of(config): (arm, config) for arm, config in part.configs.items()}
    head, *rest = path.read_bytes().splitlines(keepends=True)
    assert head == outcomes.HEAD
    found = [outcomes.parsed(line) for line in rest]
    counted = collections.Counter((outcome.settings, outcome.seed) for outcome in found)
    assert set(counted) <= {(settings, seed) for settings in arms for seed in part.seeds}
    assert set(counted.values()) == {1}
    for outcome, line in zip(found, rest, strict=True):
        arm, config = arms[outcome.settings]
        said = {name: outcomes.said_of(arm, config)[name] for name in outcomes.COLUMNS[:5]}
        assert line.startswith(outcomes._csv(int(v) if isinstance(v, bool) else v for v in said.values()).strip())
        assert outcome.episodes <= config.max_episodes


@pytest.mark.parametrize("name", [name for name, entry in plan.parts().items() if entry.keep == "outcomes"])
def test_outcomes_that_the_archive_holds_as_well_are_the_same(name):
    part = plan.part(name)
    found = outcomes.held(project.OUTCOMES / f"{name}.csv")
    for older in part.beside:
        for line in (project.ARCHIVE / f"{older}.jsonl").read_bytes().splitlines():
            record = Record.of(json.loads(line))
            if outcome := found.get((outcomes.settings_of(record), record.seed)):
                assert (outcome.digest, outcome.episodes, outcome.steps) == (
                    outcomes.digest_of(record), record.episodes, record.steps)  # fmt: skip
