"""How labs record: what is missing and nothing twice, into their own file or one that belongs to nobody else."""

import dataclasses
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from kscore.labs import centre_error, digit_addition, recording, sb3_study
from kscore.project import ARCHIVE, DATA, ROOT


@dataclasses.dataclass(frozen=True)
class Setting:
    rate: float
    name: str = "plain"


PLANNED = [(Setting(rate), seed) for seed in (1, 2) for rate in (0.1, 0.2)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deeper" / "runs.jsonl"


def recorded(path, planned=PLANNED):
    """Record what is missing; return what was trained."""
    trained = []

    def train(setting, seed):
        trained.append((setting, seed))
        return {"config": dataclasses.asdict(setting), "seed": seed}

    with ThreadPoolExecutor(1) as pool:
        recording.record(path, planned, train, executor=pool)
    return trained


def test_what_is_missing_is_trained_in_the_order_of_the_plan_and_nothing_twice(path):
    assert recorded(path, PLANNED[2:3]) == PLANNED[2:3]
    assert recorded(path) == [PLANNED[0], PLANNED[1], PLANNED[3]]
    assert recorded(path) == []
    assert [(run["config"]["rate"], run["seed"]) for run in recording.lines(path)] == [
        (0.2 if place % 2 else 0.1, PLANNED[place][1]) for place in (2, 0, 1, 3)
    ]


def test_a_run_that_was_torn_is_done_again_and_the_others_stay(path):
    recorded(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert recorded(path) == PLANNED[-1:]
    assert len(recording.lines(path)) == 4 and path.read_bytes().startswith(whole[:-20] + b"\n")


def test_settings_may_be_names(path):
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            recording.record(path, [("clean", 1)], lambda name, seed: {"kind": name, "seed": seed}, "kind", pool)
    assert recording.lines(path) == [{"kind": "clean", "seed": 1}]


def test_without_an_executor_other_processes_do_the_work(path):
    config = digit_addition.SumsConfig(form="grpo", batch=24, updates=20, examples=3)
    recording.record(path, [(config, 1)], digit_addition.train_sums)
    assert recording.lines(path) == [digit_addition.train_sums(config, 1)]


def test_no_runs_get_a_sentence(tmp_path):
    for name in ("none.jsonl", ""):
        with pytest.raises(ValueError, match="^path must be a file of (recorded runs|JSON lines), got "):
            recording.lines(tmp_path / name)


@pytest.mark.parametrize(
    ("lab", "train", "what"),
    [
        (digit_addition, "train_sums", lambda run: (json.dumps(run["config"], sort_keys=True), run["seed"])),
        (sb3_study, "train_trial", lambda run: (json.dumps(run["config"], sort_keys=True), run["seed"])),
        (centre_error, "followed", lambda run: (run["condition"], run["seed"])),
    ],
)
def test_the_data_hold_what_each_lab_has_planned(lab, train, what):
    def plain(setting):
        as_it_is = isinstance(setting, str)
        return setting if as_it_is else json.dumps(dataclasses.asdict(setting), sort_keys=True)

    held = {what(run) for run in recording.lines(lab.PATH)}
    assert held == {(plain(setting), seed) for setting, seed in lab.planned()} and callable(getattr(lab, train))


# Where


def test_a_lab_writes_to_its_own_file_or_to_one_that_is_nobodys(tmp_path):
    own = DATA / "sums.jsonl"
    assert recording.place(own) == own
    assert recording.place(own, ["data/sums.jsonl"]) == own == recording.place(own, [str(own)])
    assert recording.place(own, [str(tmp_path / "mine.jsonl")]) == tmp_path / "mine.jsonl"
    assert recording.place(own, ["build/mine.jsonl"]) == ROOT / "build/mine.jsonl"


@pytest.mark.parametrize("named", [DATA / "sb3.jsonl", ARCHIVE / "cartpole_ppo.jsonl", ARCHIVE / "new.jsonl", DATA])
def test_a_lab_writes_into_no_other_record(named):
    with pytest.raises(ValueError, match="^path must .*got "):
        recording.place(DATA / "sums.jsonl", [str(named)])


def test_a_lab_goes_on_with_a_file_of_its_kind_and_leaves_others_alone(path, monkeypatch, capsys):
    recorded(path)
    assert recording.place(DATA / "sums.jsonl", [str(path)]) == path
    path.write_text("a,b\n")
    monkeypatch.setattr("sys.argv", ["lab", str(path)])
    with pytest.raises(SystemExit, match="^path must be a new file, or one that kscore wrote, got "):
        recording.asked(DATA / "sums.jsonl")
    recording.write(path, ["a", "b"], lambda: pd.DataFrame({"a": [1], "b": [2]}))
    assert path.read_text() == "a,b\n1,2\n"


def test_one_file_is_enough():
    with pytest.raises(ValueError, match="^one file may be named, got a b$"):
        recording.place(DATA / "sums.jsonl", ["a", "b"])


def test_two_recorders_of_the_same_train_everything_once(path):
    trained, others = [], []

    def train(setting, seed):
        trained.append((setting, seed))
        if not others:
            others.append(
                threading.Thread(target=recording.record, args=(path, PLANNED, train), kwargs={"executor": pool})
            )
            others[0].start()
            others[0].join(0.3)
        return {"config": dataclasses.asdict(setting), "seed": seed}

    with ThreadPoolExecutor(1) as pool:
        recording.record(path, PLANNED, train, executor=pool)
        others[0].join(60)
    assert trained == PLANNED and len(recording.lines(path)) == 4
