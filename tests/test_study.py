"""The study runner: nothing is trained twice, nothing is lost, and what is read back is what was trained."""

import dataclasses
import fcntl
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import warnings
from concurrent.futures import Executor, Future

import pytest

from kscore import ROOT, experiments, normalizers, study
from kscore.__main__ import main
from kscore.training import PROTOCOL_VERSION, RunConfig, train


def tiny(**changes):
    fields = {"env": "CartPole-v1", "algorithm": "reinforce", "threshold": None, "hidden": (8,), "max_episodes": 3}
    return RunConfig(**{**fields, **changes})


ARMS = {"zscore": tiny(), "none": tiny(normalizer={"name": "none"})}
SEEDS = [0, 1, 2]


class Later(Future):
    """A future that is ready, but does its work only when it is asked for the result: no thread, no waiting."""

    def __init__(self, work):
        super().__init__()
        self.set_result(None)
        self.work = work

    def result(self, timeout=None):
        return self.work()


class InProcess(Executor):
    """Trains here, notes what, and is interrupted by the user after so many runs."""

    def __init__(self, interrupted_after=None):
        self.trained, self.interrupted_after = [], interrupted_after

    def submit(self, function, config, seed):
        return Later(lambda: self._work(function, config, seed))

    def _work(self, function, config, seed):
        if len(self.trained) == self.interrupted_after:
            raise KeyboardInterrupt
        self.trained.append(study.key(config, seed))
        return function(config, seed)


def run(store, configs=ARMS, seeds=SEEDS, executor=None):
    """Run a study in this process; return its frame and the keys of what was trained for it."""
    executor = executor or InProcess()
    frame = study.run(configs, seeds, store, executor, progress=False)
    return frame, executor.trained


def keys(configs=ARMS, seeds=SEEDS):
    return sorted(study.key(config, seed) for config in configs.values() for seed in seeds)


def without_seconds(records):
    """The records in the order of their keys, plain; how long a run took is all that may differ."""
    return [{name: list(value) if name in study.RETURNS else value for name, value in record.items()
             if name != "seconds"} for record in sorted(records, key=study._key_of)]


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The lines of an uninterrupted study."""
    store = tmp_path_factory.mktemp("whole") / "runs.jsonl"
    run(store)
    return store.read_bytes().splitlines(keepends=True)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.jsonl"


@pytest.fixture(autouse=True)
def every_warning_is_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


# Training what is missing

def test_a_study_trains_every_arm_on_every_seed_once(store):
    frame, trained = run(store)
    assert sorted(trained) == keys()
    assert list(zip(frame.arm, frame.seed, strict=True)) == [(arm, seed) for arm in ARMS for seed in SEEDS]
    assert sorted(map(study._key_of, study.read(store).records)) == keys()


def test_what_the_store_holds_is_what_training_returns(store):
    run(store, seeds=[1])
    assert without_seconds(study.read(store).records) == without_seconds([train(config, 1) for config in ARMS.values()])


def test_a_finished_study_asks_nothing_of_the_executor(store, whole):
    store.write_bytes(b"".join(whole))
    frame = study.run(ARMS, SEEDS, store, Executor(), progress=False)  # which has no way to submit anything
    assert len(frame) == len(whole)
    assert store.read_bytes() == b"".join(whole)


def test_only_what_is_missing_is_trained(store, whole):
    store.write_bytes(b"".join(whole))
    more = ARMS | {"ema": tiny(normalizer={"name": "ema"})}
    frame, trained = run(store, more, [1, 7])
    assert sorted(trained) == sorted([study.key(more["ema"], 1), *(study.key(config, 7) for config in more.values())])
    assert len(frame) == 6 and set(frame.seed) == {1, 7}
    assert store.read_bytes().startswith(b"".join(whole))  # only ever appended to


def test_a_run_that_is_asked_for_twice_is_trained_once(store):
    twice = {"one": tiny(), "same": tiny()}
    frame, trained = run(store, twice, [0, 0])
    assert len(trained) == 1 and len(frame) == 4


def test_one_and_one_point_zero_are_the_same_setting():
    whole, broken = (tiny(normalizer={"name": "kscore", "Q": Q}) for Q in (1, 1.0))
    assert study.key(whole, 0) == study.key(broken, 0)


def test_a_study_says_how_much_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "run", lambda *_: None)
    recorded = experiments.RUNS / "cartpole_ppo_released.jsonl"
    (tmp_path / recorded.name).write_bytes(b"".join(recorded.read_bytes().splitlines(keepends=True)[:90]))
    assert main(["study", "cartpole_ppo_released", "--store", str(tmp_path)]) == 0
    assert main(["study", "cartpole_ppo_released"]) == 0
    assert capsys.readouterr().out == ("cartpole_ppo_released: 100 runs, 10 of them to be trained\n"
                                       "cartpole_ppo_released: 100 runs, none of them to be trained\n")


def test_a_study_goes_through_the_seeds_one_by_one_over_all_arms(store):
    submitted = []

    class Watching(InProcess):
        def submit(self, function, config, seed):
            submitted.append((seed, config))
            return super().submit(function, config, seed)

    run(store, executor=Watching())
    assert submitted == [(seed, config) for seed in SEEDS for config in ARMS.values()]


def test_arms_without_names_are_numbered(store, whole):
    store.write_bytes(b"".join(whole))
    frame, _ = run(store, iter(ARMS.values()), iter(SEEDS))
    assert list(frame.arm) == [0, 0, 0, 1, 1, 1] and list(frame.seed) == SEEDS * 2


def test_recorded_reads_without_training(store, whole):
    store.write_bytes(b"".join(line for line in whole if b'"seed":2' not in line))
    frame = study.recorded(ARMS, [2, 1], store)
    assert list(zip(frame.arm, frame.seed, strict=True)) == [("zscore", 1), ("none", 1)]
    assert study.recorded(ARMS, SEEDS, store.with_name("nothing.jsonl")).empty


@pytest.mark.parametrize("threads", [None, "3"])
def test_spawned_processes_use_one_thread_each_and_the_setting_is_put_back(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads or "")
    if threads is None:
        monkeypatch.delenv("OMP_NUM_THREADS")
    with pytest.raises(KeyboardInterrupt), study.processes():  # nothing is submitted, so no process starts
        assert os.environ["OMP_NUM_THREADS"] == "1"
        raise KeyboardInterrupt
    assert os.environ.get("OMP_NUM_THREADS") == threads


def test_a_borrowed_executor_stays_open(store):
    class Closing(InProcess):
        closed = False

        def shutdown(self, *args, **kwargs):
            self.closed = True

    executor = Closing()
    run(store, seeds=[0], executor=executor)
    assert not executor.closed


# Interruptions

@pytest.mark.parametrize("finished", [0, 1, 4])
def test_an_interrupted_study_goes_on_where_it_stopped(store, whole, finished):
    first, second = InProcess(interrupted_after=finished), InProcess()
    with pytest.raises(KeyboardInterrupt):
        run(store, executor=first)
    assert sorted(map(study._key_of, study.read(store).records)) == sorted(first.trained)
    assert len(first.trained) == finished
    run(store, executor=second)
    assert sorted(first.trained + second.trained) == keys()
    assert without_seconds(study.read(store).records) == without_seconds(map(json.loads, whole))


def test_an_interrupted_study_cancels_what_waits(store):
    waiting = []

    class Busy(Executor):
        """Fails in the first run and never comes to the others."""

        def submit(self, function, config, seed):
            future = Future()
            waiting.append(future)
            if len(waiting) == 1:
                future.set_exception(OSError("a process was killed"))
            return future

    with pytest.raises(OSError, match="killed"):
        study.run(ARMS, SEEDS, store, Busy(), progress=False)
    assert len(waiting) == 6 and all(future.cancelled() for future in waiting[1:])


def test_what_waits_is_cancelled_when_the_store_cannot_be_written(store):
    waiting = []

    class Slow(Executor):
        def submit(self, function, config, seed):
            future = Future()
            if not waiting:
                future.set_result({"loss": float("nan")})  # JSON has no NaN, so that appending it is an error
            waiting.append(future)
            return future

    with pytest.raises(ValueError, match="JSON"):
        study.run(ARMS, SEEDS, store, Slow(), progress=False)
    assert all(future.cancelled() for future in waiting[1:])
    assert store.read_bytes() == b""


# Damaged lines

def damaged_then_run(store, lines):
    """Write a damaged store, run the study on it, and return what was trained."""
    store.write_bytes(b"".join(lines))
    with pytest.warns(UserWarning, match=r"runs\.jsonl: 1 damaged lines were passed over"):
        frame, trained = run(store)
    assert len(frame) == 6
    return trained


@pytest.mark.parametrize("kept", [1, 0.5, -2])
def test_a_torn_last_line_is_counted_and_its_run_done_again(store, whole, kept):
    *lines, last = whole
    torn = last[:int(len(last) * kept)] if isinstance(kept, float) else last[:kept]
    assert damaged_then_run(store, [*lines, torn]) == [study._key_of(json.loads(last))]
    contents = study.read(store)
    assert (contents.damaged, contents.foreign) == (1, 0)
    assert without_seconds(contents.records) == without_seconds(map(json.loads, whole))
    assert store.read_bytes().startswith(b"".join(lines) + torn + b"\n")  # the next record has a line of its own


def test_a_last_line_that_only_lacks_its_end_is_whole(store, whole):
    store.write_bytes(b"".join(whole[:-1])[:-1])
    _, trained = run(store)
    assert trained == [study._key_of(json.loads(whole[-1]))]
    contents = study.read(store)
    assert contents.damaged == 0 and len(contents.records) == 6


@pytest.mark.parametrize("corrupt", [
    lambda line: line.replace(b'"config"', b'"confug"', 1), lambda line: line[:40] + line[90:],
    lambda line: b"\x00" * len(line) + b"\n", lambda line: line.replace(b'"seed"', b'"s\xff\xfed"'),
    lambda line: b"[1, 2]\n", lambda line: b"17\n", lambda line: b"null\n",
    lambda line: line.replace(b'"zscore"', b'"zscroe"').replace(b'"none"', b'"nnoe"'),
], ids=["field", "gap", "zeros", "bytes", "list", "number", "null", "normalizer"])
def test_a_corrupted_middle_line_is_counted_and_its_run_done_again(store, whole, corrupt):
    lines = [*whole[:2], corrupt(whole[2]), *whole[3:]]
    assert damaged_then_run(store, lines) == [study._key_of(json.loads(whole[2]))]
    contents = study.read(store)
    assert contents.damaged == 1
    assert without_seconds(contents.records) == without_seconds(map(json.loads, whole))
    assert store.read_bytes().startswith(b"".join(lines))


@pytest.mark.parametrize("change", [
    *({name: None} for name in ("train_returns", "eval_returns", "status", "solved", "solved_at", "episodes", "steps")),
    {"seed": [1]}, {"train_returns": ["x"]}, {"solved_at": {"evaluation": None}}, {"config": {"normalizer": {}}},
], ids=str)
def test_a_record_that_lacks_something_is_damaged(store, whole, change):
    record = json.loads(whole[2]) | change
    lacking = {name: value for name, value in record.items() if value is not None or name == "reason"}
    lines = [*whole[:2], json.dumps(lacking).encode() + b"\n", *whole[3:]]
    assert damaged_then_run(store, lines) == [study._key_of(json.loads(whole[2]))]
    assert without_seconds(study.read(store).records) == without_seconds(map(json.loads, whole))


def test_empty_lines_do_no_harm(store, whole):
    store.write_bytes(b"\n" + b"\n".join(whole) + b"\n\n")
    contents = study.read(store)
    assert len(contents.records) == 6 and contents.damaged == 0


def test_records_of_another_protocol_are_passed_over(store, whole):
    old = [line.replace(b'"protocol":%d' % PROTOCOL_VERSION, b'"protocol":%d' % (PROTOCOL_VERSION - 1))
           .replace(b'"episodes":3', b'"episodes":999') for line in whole[:4]]
    store.write_bytes(b"".join(old + whole[4:]))
    with pytest.warns(UserWarning, match=rf"4 records of another protocol version than {PROTOCOL_VERSION}"):
        assert len(study.recorded(ARMS, SEEDS, store)) == 2
    with pytest.warns(UserWarning, match="another protocol"):
        frame, trained = run(store)
    assert sorted(trained) == sorted(study._key_of(json.loads(line)) for line in whole[:4])
    assert list(frame.episodes) == [3] * 6
    assert study.read(store).foreign == 4  # they stay for whoever checks out the old code
    assert without_seconds(study.read(store).records) == without_seconds(map(json.loads, whole))


# Keys

CHANGED = {
    "env": "Acrobot-v1", "algorithm": "ppo", "normalizer": {"name": "none"}, "signal": "advantages",
    "normalize_advantages": True, "gamma": 0.9, "lam": 0.9, "epochs": 3, "clip": 0.1, "policy_reduction": "mean",
    "value_reduction": "sum", "learning_rate": 0.02, "hidden": (8, 8), "activation": "prelu", "dropout": 0.1,
    "threshold": 9.0, "criterion": "both", "window": 3, "full_window": False, "evaluate_every": 2, "max_episodes": 4,
}
CHANGED_OPTIONS = {
    "none": {}, "zscore": {"eps": 1e-6}, "running": {"eps": 1e-6}, "ema": {"eps": 1e-6, "decay": 0.9},
    "kscore": {"variant": "adaptive", "mode": "refit", "scale": "returns", "Q": 0.5, "R": 0.5, "alpha": 0.5, "x0": 1.0,
               "P0": 2.0, "R_timing": "before", "eps": 1e-6},
}


def defaults(kind):
    return {f.name: f.default for f in dataclasses.fields(kind) if f.init and f.default is not dataclasses.MISSING}


def test_the_lists_of_settings_are_complete():
    assert set(CHANGED) == {f.name for f in dataclasses.fields(RunConfig)}
    assert {name: set(options) for name, options in CHANGED_OPTIONS.items()} == \
        {name: {f.name for f in dataclasses.fields(kind) if f.init} for name, kind in normalizers.NORMALIZERS.items()}


def test_every_changed_setting_and_seed_has_a_key_of_its_own():
    changed = [tiny(**{name: value}) for name, value in CHANGED.items()]
    found = {study.key(config, 0) for config in [tiny(), *changed]} | {study.key(tiny(), 1)}
    assert len(found) == len(CHANGED) + 2


@pytest.mark.parametrize("name", CHANGED_OPTIONS)
def test_every_changed_option_has_a_key_of_its_own(name):
    options = [{}, *({option: value} for option, value in CHANGED_OPTIONS[name].items())]
    assert len({study.key(tiny(normalizer={"name": name, **some}), 0) for some in options}) == len(options)


def test_settings_at_their_defaults_do_not_count():
    bare = {"env": "CartPole-v1", "algorithm": "ppo", "threshold": None}
    explicit = RunConfig(**bare, **defaults(RunConfig), normalizer={"name": "zscore"})
    assert study.key(RunConfig(**bare), 0) == study.key(explicit, 0)


@pytest.mark.parametrize(("name", "kind"), normalizers.NORMALIZERS.items())
def test_options_at_their_defaults_and_their_order_do_not_count(name, kind):
    options = list({"name": name, **defaults(kind)}.items())
    random.Random(0).shuffle(options)
    assert study.key(tiny(normalizer=dict(options)), 0) == study.key(tiny(normalizer={"name": name}), 0)
    some = list({"name": name, **CHANGED_OPTIONS[name]}.items())
    assert study.key(tiny(normalizer=dict(some)), 0) == study.key(tiny(normalizer=dict(reversed(some))), 0)


def test_a_run_recorded_before_a_setting_existed_is_still_valid(store, whole):
    records = [json.loads(line) for line in whole]
    for record in records:
        del record["config"]["signal"], record["config"]["full_window"]
        study.append(store, record)
    _, trained = run(store)
    assert trained == []


@pytest.mark.parametrize("setting", sorted(defaults(RunConfig)))
def test_any_setting_may_be_a_new_one(setting):
    config = RunConfig(env="CartPole-v1", algorithm="ppo", threshold=None)
    old = config.to_dict()
    del old[setting]
    assert study._key_of({"config": old, "seed": 3}) == study.key(config, 3)


# The frame

def record(**changes):
    fields = {"config": {"max_episodes": 100}, "seed": 5, "status": "solved", "solved": True, "episodes": 40,
              "solved_at": {"evaluation": 40, "training": None}, "train_returns": [1.0, 2.0], "eval_returns": [3.0],
              "steps": 6, "seconds": 0.5, "reason": None, "versions": {}}
    return {**fields, **changes}


NEVER = {"evaluation": None, "training": None}
SEEN = {  # (evaluation, met, training, met)
    "solved": (record(), (40, True, 40, False)),  # training was watched only until the run stopped
    "solved by training": (record(solved_at={"evaluation": None, "training": 40}), (40, False, 40, True)),
    "solved by both": (record(solved_at={"evaluation": 31, "training": 40}), (31, True, 40, True)),
    "censored": (record(status="censored", solved=False, episodes=100, solved_at=NEVER), (100, False, 100, False)),
    "censored in one": (record(status="censored", solved=False, episodes=100,
                               solved_at={"evaluation": 60, "training": None}), (60, True, 100, False)),
    "diverged": (record(status="diverged", solved=False, episodes=7, solved_at=NEVER), (100, False, 100, False)),
    "diverged after one": (record(status="diverged", solved=False, episodes=70,
                                  solved_at={"evaluation": 60, "training": None}), (60, True, 100, False)),
}


@pytest.mark.parametrize("name", SEEN)
def test_the_frame_has_censored_times_for_both_criteria(name):
    made, expected = SEEN[name]
    row = study.frame({"arm": [made]}).iloc[0]
    assert (row.evaluation, row.evaluation_arrived, row.training, row.training_arrived) == expected
    assert (row.arm, row.seed, row.cap, row.status, row.episodes) == ("arm", 5, 100, made["status"], made["episodes"])
    assert (list(row.train_returns), list(row.eval_returns), row.steps, row.seconds) == ([1.0, 2.0], [3.0], 6, 0.5)


def test_the_frame_has_one_row_a_run_and_plain_columns():
    frame = study.frame({(0.1, 1.0): [record(seed=1), record(seed=2)], (0.2, 1.0): [SEEN["diverged"][0]]})
    assert list(frame.arm) == [(0.1, 1.0), (0.1, 1.0), (0.2, 1.0)] and list(frame.seed) == [1, 2, 5]
    assert list(frame.evaluation_arrived) == [True, True, False] and frame.evaluation_arrived.dtype == bool
    assert frame.evaluation.dtype.kind == frame.training.dtype.kind == "i"
    assert list(study.frame({}).columns) == list(frame.columns) == [
        "arm", "seed", "status", "solved", "episodes", "cap", "evaluation", "evaluation_arrived", "training",
        "training_arrived", "train_returns", "eval_returns", "steps", "seconds"]


def test_the_frame_of_real_runs_agrees_with_their_records(store):
    configs = {criterion: tiny(threshold=20.0, window=2, max_episodes=5, criterion=criterion)
               for criterion in ("evaluation", "training", "both")}
    frame, _ = run(store, configs, range(4))
    by_key = {study._key_of(made): made for made in study.read(store).records}
    for row in frame.itertuples():
        made = by_key[study.key(configs[row.arm], row.seed)]
        assert all(list(getattr(row, name)) == list(made[name]) for name in study.RETURNS)
        for criterion in ("evaluation", "training"):
            at = made["solved_at"][criterion]
            expected = (row.episodes, False) if at is None else (at, True)
            assert (getattr(row, criterion), getattr(row, f"{criterion}_arrived")) == expected
    assert set(frame.evaluation_arrived) == set(frame.training_arrived) == {True, False}


# Where and how a store is written

def test_relative_stores_are_meant_from_the_projects_root(tmp_path, monkeypatch, whole):
    monkeypatch.chdir(tmp_path)
    assert study.located("data/runs/x.jsonl") == ROOT / "data" / "runs" / "x.jsonl"
    assert study.located(tmp_path / "x.jsonl") == tmp_path / "x.jsonl"
    monkeypatch.setattr(study, "ROOT", tmp_path / "project")
    run("some/runs.jsonl", seeds=[0])
    assert len(study.read("some/runs.jsonl").records) == 2 == len(study.recorded(ARMS, SEEDS, "some/runs.jsonl"))
    assert (tmp_path / "project" / "some" / "runs.jsonl").exists() and not (tmp_path / "some").exists()


def test_append_writes_one_line_and_refuses_what_json_does_not_have(store):
    study.append(store, {"a": [1, 2.5]})
    with pytest.raises(ValueError, match="JSON"):
        study.append(store, {"a": float("nan")})
    assert store.read_bytes() == b'{"a":[1,2.5]}\n'


def test_append_waits_for_a_line_that_is_still_being_written(store):
    other = threading.Thread(target=study.append, args=(store, {"a": 2}))
    with store.open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b'{"a":')  # without the lock it would be taken for torn
        other.start()
        other.join(timeout=0.3)
        assert other.is_alive()
        file.write(b"1}\n")
    other.join(timeout=60)
    assert store.read_bytes() == b'{"a":1}\n{"a":2}\n'


def test_a_reader_waits_for_a_line_that_is_still_being_written(store, whole):
    found = []
    reader = threading.Thread(target=lambda: found.append(study.read(store)))
    with store.open("ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(whole[0][:40])
        reader.start()
        reader.join(timeout=0.3)
        assert reader.is_alive()
        file.write(whole[0][40:])
    reader.join(timeout=60)
    assert found[0].damaged == 0 and len(found[0].records) == 1


@pytest.mark.parametrize("workers", [0, -1])
def test_a_number_of_workers_that_cannot_be_gets_a_sentence(workers):
    with pytest.raises(ValueError, match=f"workers must be at least 1, got {workers}"), study.processes(workers):
        pass


def append_many(store, writer, together):
    together.wait(timeout=60)
    for number in range(12):
        study.append(store, {"writer": writer, "number": number, "returns": [writer] * 100_000})


def test_two_processes_at_once_leave_only_whole_lines(store):
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(2)
    other = context.Process(target=append_many, args=(store, 2, together))
    other.start()
    append_many(store, 1, together)
    other.join(timeout=60)
    assert other.exitcode == 0
    records = [json.loads(line) for line in store.read_bytes().splitlines()]
    assert all(made["returns"] == [made["writer"]] * 100_000 for made in records)
    assert sorted((made["writer"], made["number"]) for made in records) == [(w, n) for w in (1, 2) for n in range(12)]


SCRIPT = """
import json, sys
from pathlib import Path
from kscore import study
from kscore.training import RunConfig

with Path(__file__).with_name("seen.txt").open("a") as file:
    file.write(f"{__name__}\\n")
configs = [RunConfig(**fields) for fields in json.loads(sys.argv[1])]
frame = study.run(configs, json.loads(sys.argv[2]), Path(__file__).with_name("runs.jsonl"), workers=1, progress=False)
print(len(frame), Path(__file__).name)
"""


def test_spawned_processes_train_the_same_and_do_not_run_the_calling_script_again(tmp_path, whole):
    script = tmp_path / "chapter.py"
    script.write_text(SCRIPT)  # no main guard, as in a chapter
    configs = json.dumps([config.to_dict() for config in ARMS.values()])
    done = subprocess.run([sys.executable, script, configs, json.dumps(SEEDS)], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen.txt").read_text() == "__main__\n"
    assert done.stdout == "6 chapter.py\n"  # and it still knows its own name
    records = study.read(tmp_path / "runs.jsonl").records
    assert without_seconds(records) == without_seconds(map(json.loads, whole))
