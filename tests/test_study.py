"""The study runner: nothing is trained twice, nothing is lost, and the archive is written to by nobody else."""

import contextlib
import fcntl
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import psutil
import pytest
import small_runs
from conftest import PATIENCE, eventually
from small_runs import ARMS, SEEDS, InProcess, key_of, run, tiny, without_seconds

from kscore import journal, project, study
from kscore.__main__ import main
from kscore.rl import train
from kscore.study import plan, workers
from kscore.study import store as stores
from kscore.study.records import Record, key


def keys(configs=ARMS, seeds=SEEDS):
    return sorted(key(config, seed) for config in configs.values() for seed in seeds)


def stored_keys(store):
    return sorted(record.key for record in study.read(store).records)


@pytest.fixture(scope="session")
def whole():
    """The lines of an uninterrupted study."""
    return small_runs.lines()


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
    assert stored_keys(store) == keys()


def test_what_the_store_holds_is_what_training_returns(store):
    run(store, seeds=[1])
    trained = [Record.of(train(config, 1)) for config in ARMS.values()]
    assert without_seconds(study.read(store).records) == without_seconds(trained)


def test_a_finished_study_asks_nothing_of_the_executor(store, whole):
    store.write_bytes(b"".join(whole))
    frame = study.run(ARMS, SEEDS, store, Executor(), progress=False)  # which has no way to submit anything
    assert len(frame) == len(whole)
    assert store.read_bytes() == b"".join(whole)


def test_only_what_is_missing_is_trained(store, whole):
    store.write_bytes(b"".join(whole))
    more = ARMS | {"ema": tiny(normalizer={"name": "ema"})}
    frame, trained = run(store, more, [1, 7])
    assert sorted(trained) == sorted([key(more["ema"], 1), *(key(config, 7) for config in more.values())])
    assert len(frame) == 6 and set(frame.seed) == {1, 7}
    assert store.read_bytes().startswith(b"".join(whole))  # only ever appended to


def test_what_lies_in_a_store_beside_is_read_and_not_copied(store, whole):
    beside = store.with_name("beside.jsonl")
    beside.write_bytes(b"".join(whole[:4]))
    store.write_bytes(whole[4])
    frame, trained = run(store, beside=[beside])
    assert trained == [key_of(whole[5])] and len(frame) == 6
    assert beside.read_bytes() == b"".join(whole[:4])
    assert stored_keys(store) == sorted(map(key_of, whole[4:]))


def test_a_run_that_is_asked_for_twice_is_trained_once(store):
    twice = {"one": tiny(), "same": tiny()}
    frame, trained = run(store, twice, [0, 0])
    assert len(trained) == 1 and len(frame) == 4


def test_the_own_store_has_the_last_word(store, whole):
    other = json.loads(whole[0]) | {"seconds": 777.0}
    beside = store.with_name("beside.jsonl")
    beside.write_bytes(b"".join(whole))
    store.write_text(json.dumps(other) + "\n")
    frame, trained = run(store, beside=[beside])
    assert not trained and 777 in set(frame.seconds)


def test_a_study_says_how_much_is_missing(tmp_path, monkeypatch, capsys):
    archive, own = tmp_path / "archive", tmp_path / "own"
    recorded = project.ARCHIVE / "cartpole_ppo_released.jsonl"
    for folder, some in ((archive, slice(90)), (own, slice(80, 93))):
        folder.mkdir()
        (folder / recorded.name).write_bytes(b"".join(recorded.read_bytes().splitlines(keepends=True)[some]))
    monkeypatch.setattr("kscore.__main__.ARCHIVE", archive)
    asked = []
    monkeypatch.setattr(study, "runs", lambda part, folder, executor, **_: asked.append((part.name, folder)))
    monkeypatch.setattr(study, "record", lambda part, executor, **_: asked.append(part.name))
    assert main(["study", "cartpole_ppo_released", "--store", str(own)]) == 0
    assert main(["study", "cartpole_ppo_released", "--record"]) == 0
    monkeypatch.setattr("kscore.__main__.ARCHIVE", project.ARCHIVE)
    assert main(["study", "cartpole_ppo_released"]) == 0
    assert capsys.readouterr().out == (
        "cartpole_ppo_released: 100 runs, 7 of them missing\n"
        "cartpole_ppo_released: 100 runs, 10 of them missing\n"
        "cartpole_ppo_released: 100 runs, none of them missing\n"
    )
    name = "cartpole_ppo_released"
    assert asked == [(name, own), name, (name, project.ROOT / "build" / "runs")]


@pytest.fixture
def nothing_to_train(monkeypatch):
    """Let a test fail at once, and not train for hours, if recorded runs are not found."""
    monkeypatch.setattr(workers, "trained", lambda missing, *_: pytest.fail(f"{len(missing)} runs are missing"))


@pytest.mark.usefixtures("nothing_to_train")
def test_a_tuned_part_is_made_of_the_winners_of_its_grids(tmp_path, capsys):
    assert main(["study", "tuned_ppo", "--store", str(tmp_path)]) == 0  # all of it is in the archive
    said = capsys.readouterr().out.splitlines()
    grids = [f"tuning_ppo_{kind}: 200 runs" for kind in ("stream", "refit", "ema")]
    assert said == [f"{part}, none of them missing" for part in (*grids, "tuned_ppo: 150 runs")]


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


def test_recorded_reads_several_stores(store, whole):
    stores_ = [store.with_name(f"{i}.jsonl") for i in range(3)]
    for i, path in enumerate(stores_):
        path.write_bytes(b"".join(whole[2 * i : 2 * i + 2]))
    assert len(study.recorded(ARMS, SEEDS, *stores_)) == 6


@pytest.mark.parametrize("seed", [2**63, 2**64, -1, 1.0, True, "1", None])
@pytest.mark.parametrize(
    "ask",
    [
        lambda seed, store: study.run(ARMS, [0, seed], store, Executor(), progress=False),
        lambda seed, store: study.recorded(ARMS, [0, seed], store),
        lambda seed, store: train(ARMS["none"], seed),
        lambda seed, store: study.part("cartpole_ppo", first_seed=[seed] if seed is None else seed),
    ],
    ids=["run", "recorded", "train", "part"],
)
def test_a_seed_that_cannot_be_is_refused_by_name(store, ask, seed):
    sentence = rf"^(seeds?|first_seed) must be a whole number of at least 0 and at most {2**63 - 1}, got "
    with pytest.raises(ValueError, match=sentence):
        ask(seed, store)
    assert not store.exists()


def test_the_largest_seed_can_be_trained_and_read_back(store):
    frame, _ = run(store, seeds=[2**63 - 1])
    assert list(frame.seed) == [2**63 - 1] * 2
    assert list(study.recorded(ARMS, [2**63 - 1], store).seed) == [2**63 - 1] * 2


# Training from nothing


def test_what_is_trained_from_nothing_is_the_same_and_is_kept_nowhere(store, whole, monkeypatch):
    store.write_bytes(b"".join(whole))
    executor = InProcess()
    fresh, recorded = study.anew(ARMS, SEEDS, executor, progress=False), study.run(ARMS, SEEDS, store, Executor())
    assert sorted(executor.trained) == keys() and store.read_bytes() == b"".join(whole)
    assert study.same(fresh, recorded).all() and list(fresh.arm) == list(recorded.arm)


@pytest.mark.parametrize("name", ["train_returns", "eval_returns"])
def test_a_run_is_not_the_same_if_one_return_differs_in_the_last_digit(store, whole, name):
    store.write_bytes(b"".join(whole))
    runs = study.run(ARMS, SEEDS, store, Executor())
    other = study.run(ARMS, SEEDS, store, Executor())
    other.at[1, name] = np.nextafter(other.at[1, name], np.inf)
    assert list(study.same(runs, other)) == [True, False, *[True] * (len(runs) - 2)]
    other.at[1, name] = runs.at[1, name][:-1]
    assert study.same(runs, other).sum() == len(runs) - 1
    shuffled = runs.sample(frac=1, random_state=0)
    assert study.same(shuffled, runs).all()


# Processes


@pytest.mark.parametrize("threads", [None, "3"])
def test_spawned_processes_use_one_thread_each_and_the_setting_is_put_back(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads or "")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "7")
    if threads is None:
        monkeypatch.delenv("OMP_NUM_THREADS")
    with study.processes(1) as pool:
        futures = [pool.submit(os.getenv, name) for name in ("OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_")]
        assert os.environ.get("OMP_NUM_THREADS") == threads and os.environ["MALLOC_TRIM_THRESHOLD_"] == "7"
        assert [future.result() for future in futures] == ["1", "131072"]


@pytest.fixture
def staying(monkeypatch):
    """Processes that no other test has had, and that are gone afterwards."""
    lent = workers._Staying()
    monkeypatch.setattr(workers, "_staying", lent)
    yield lent
    lent.held.close()


def pid_of(pool):
    return pool.submit(os.getpid).result()


def test_studies_that_follow_each_other_share_their_processes(store, staying, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with study.processes() as pool:
        first = pid_of(pool)
    for seed in SEEDS[:2]:
        study.run(ARMS, [seed], store, progress=False)
    with study.processes() as pool:
        assert pid_of(pool) == first
        with study.processes() as inner, study.processes(1) as own:
            assert len({first, pid_of(inner), pid_of(own)}) == 3, "whoever has them in use need not share them"
    assert stored_keys(store) == keys(seeds=SEEDS[:2])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_ends_a_study_early_ends_its_processes_and_the_next_one_has_others(store, staying, monkeypatch, error):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with pytest.raises(error), study.processes() as pool:
        first = pid_of(pool)
        raise error
    assert not psutil.pid_exists(first)
    study.run(ARMS, [0], store, progress=False)
    assert stored_keys(store) == keys(seeds=[0])


def test_a_process_that_dies_takes_no_later_study_with_it(store, staying, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with pytest.raises(BrokenProcessPool), study.processes() as pool:
        os.kill(pid_of(pool), signal.SIGKILL)
        pid_of(pool)
    study.run(ARMS, [0], store, progress=False)
    assert stored_keys(store) == keys(seeds=[0])


@pytest.mark.parametrize(
    "change", [{"normalizer": {"name": "outside:Watching"}}, {"env": "outside:Line-v0"}, {"head": "outside:Reluctant"}]
)
def test_code_that_may_have_been_edited_gets_new_processes(change, monkeypatch):
    asked = []
    monkeypatch.setattr(workers, "processes", asked.append)
    for config in (tiny(), tiny(env="kscore.rl.tasks:Bandit-v0"), tiny(**change)):
        workers._lent(None, [(config, 0), (config, 1)])
    assert asked == [None, None, os.cpu_count()]


ENDING = """
import os, sys, signal
from small_runs import tiny
from kscore import study
if __name__ == "__main__":
    study.run([tiny()], [0, 1], sys.argv[1], progress=False)
    print("done", flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ended", "killed"])
def test_processes_that_stay_end_with_the_one_that_has_them(store, descendants, how):
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(store), how],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | {"PYTHONPATH": os.path.dirname(__file__)},
    )
    assert not done.stderr or how == "killed"
    assert done.stdout == "done\n" and done.returncode == (0 if how == "ended" else -signal.SIGKILL)
    assert eventually(lambda: not descendants())


@pytest.mark.parametrize("count", [0, -1, 2.0, True, "2", 2147483647])
def test_a_number_of_workers_that_cannot_be_gets_a_sentence(count):
    with (
        pytest.raises(
            ValueError, match=f"workers must be a whole number of at least 1 and at most 1000, got {count!r}"
        ),
        study.processes(count),
    ):
        pass


@pytest.mark.parametrize(("asked", "made"), [(None, os.cpu_count()), (1, 1), (5, 5)])
def test_there_are_as_many_processes_as_asked_for_or_one_a_core(asked, made):
    with study.processes(asked) as pool:
        assert pool._max_workers == made


@pytest.mark.parametrize("asked", ["argument", "environment"])
def test_a_scheduler_does_the_work_where_one_is_named(monkeypatch, asked):
    lent = []
    monkeypatch.setattr(workers.cluster, "executor", lambda address: lent.append(address) or workers.nullcontext("it"))
    if asked == "environment":
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://here:1")
    with study.processes(scheduler="tcp://here:1" if asked == "argument" else None) as pool:
        assert pool == "it" and lent == ["tcp://here:1"]


def test_an_empty_address_is_a_mistake_and_not_this_machine(tmp_path, capsys):
    for command in (["study", "cartpole_ppo", "--store", str(tmp_path)], ["run", "00", "--out", str(tmp_path)]):
        assert main([*command, "--scheduler", ""]) == 2
        assert "scheduler must be the address of a running Dask scheduler, got ''" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_empty_address_in_the_environment_is_none(monkeypatch):
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "")
    with study.processes(1) as pool:
        assert isinstance(pool, ProcessPoolExecutor)


def test_a_borrowed_executor_stays_open(store):
    class Closing(InProcess):
        closed = False

        def shutdown(self, *args, **kwargs):
            self.closed = True

    executor = Closing()
    run(store, seeds=[0], executor=executor)
    assert not executor.closed


def test_progress_counts_the_runs_that_are_trained(store, whole, monkeypatch, capsys):
    monkeypatch.setattr("kscore.progress.OFTEN", 0.0)
    store.write_bytes(b"".join(whole[:3]))
    study.run(ARMS, SEEDS, store, InProcess())
    said = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert said == [f"training: {done} of 3 runs" for done in (0, 1, 2)]
    study.run(ARMS, SEEDS, store, InProcess())
    assert not capsys.readouterr().err  # nothing is missing, nothing is said


def test_a_training_that_nobody_waits_for_any_more_ends(monkeypatch):
    workers._go_on_if_wanted()
    wanted = threading.Event()
    monkeypatch.setattr(workers, "_unwanted", wanted)
    assert workers._train(tiny(), 0)["episodes"] == 3
    wanted.set()
    with pytest.raises(KeyboardInterrupt):
        workers._train(tiny(), 0)


def test_a_worker_ends_its_training_when_the_line_is_closed_and_itself_when_nobody_is_left(monkeypatch):
    end, line = multiprocessing.Pipe(duplex=False)
    ended, wanted = [], threading.Event()
    monkeypatch.setattr(workers, "_unwanted", wanted)
    monkeypatch.setattr(workers.multiprocessing, "parent_process", lambda: threading.Thread(target=ended.append))
    monkeypatch.setattr(threading.Thread, "join", lambda self, timeout=None: ended.append(wanted.is_set()))
    monkeypatch.setattr(workers.os, "_exit", ended.append)
    line.close()
    workers._listen(end)
    assert ended == [True, 1]


@pytest.mark.parametrize("interrupted", [True, False])
def test_workers_are_told_to_stop_before_they_are_waited_for_if_there_was_an_interruption(monkeypatch, interrupted):
    told = []

    class Pool:
        def __init__(self, count, context, initializer, arguments):
            (self.end,) = arguments

        def shutdown(self, cancel_futures):
            told.append((self.end.poll(0), cancel_futures))

    monkeypatch.setattr(workers, "_Processes", Pool)
    with contextlib.suppress(KeyboardInterrupt), study.processes(1):
        if interrupted:
            raise KeyboardInterrupt
    assert told == [(interrupted, True)]


# Interruptions


@pytest.mark.parametrize("finished", [0, 1, 4])
def test_an_interrupted_study_goes_on_where_it_stopped(store, whole, finished):
    first, second = InProcess(interrupted_after=finished), InProcess()
    with pytest.raises(KeyboardInterrupt):
        run(store, executor=first)
    assert stored_keys(store) == sorted(first.trained)
    assert len(first.trained) == finished
    run(store, executor=second)
    assert sorted(first.trained + second.trained) == keys()
    assert without_seconds(study.read(store).records) == without_seconds(map(Record.parse, whole))


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
                nan = {"loss": float("nan")}  # JSON has none, so that appending it is an error
                future.set_result(nan | {"made_by": workers.cluster.made_by()})
            waiting.append(future)
            return future

    with pytest.raises(ValueError, match="JSON"):
        study.run(ARMS, SEEDS, store, Slow(), progress=False)
    assert all(future.cancelled() for future in waiting[1:])
    assert store.read_bytes() == b""


def test_a_store_that_cannot_be_written_is_told_before_anything_is_trained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError), warnings.catch_warnings():
        study.run(ARMS, SEEDS, tmp_path / "file" / "runs.jsonl", Executor(), progress=False)


# Runs that raise


@pytest.fixture
def failing(monkeypatch):
    """Let the training of one of the seeds raise; return the set of those that do."""
    seeds, right = {1}, train

    def sometimes(config, seed, progress=None):
        if seed in seeds:
            raise OSError(f"the environment of seed {seed} is broken")
        return right(config, seed, progress)

    monkeypatch.setattr("kscore.rl.training.train", sometimes)
    return seeds


def test_a_run_that_raises_is_recorded_as_failed_and_the_others_go_on(store, whole, failing):
    executor = InProcess()
    with pytest.raises(
        study.FailedRuns,
        match=r"^2 of 6 runs failed, the first, seed 1 of normalizer 'zscore', with "
        r"OSError: the environment of seed 1 is broken; they are recorded as "
        rf"failed in {store}, ",
    ):
        run(store, executor=executor)
    assert sorted(executor.trained) == keys() == stored_keys(store)
    statuses = {(record.seed, record.status) for record in study.read(store).records}
    assert statuses == {(0, "censored"), (1, "failed"), (2, "censored")}


def test_a_run_that_failed_is_tried_again_only_if_asked_for(store, whole, failing):
    with pytest.raises(study.FailedRuns):
        run(store)
    failing.clear()
    before = store.read_bytes()
    with pytest.raises(study.FailedRuns):
        study.run(ARMS, SEEDS, store, Executor(), progress=False)  # which could not train anything
    assert store.read_bytes() == before
    frame, trained = run(store, retry_failed=True)
    assert sorted(trained) == keys(seeds=[1]) and set(frame.status) == {"censored"}
    assert run(store)[1] == []


def test_a_run_that_failed_is_no_result(store, failing):
    with pytest.raises(study.FailedRuns):
        run(store)
    assert set(study.recorded(ARMS, SEEDS, store).seed) == {0, 2}
    assert len(study.run(ARMS, [0, 2], store, Executor(), progress=False)) == 4  # which nobody asked for


def test_a_failure_hides_no_run_that_went_well(store, whole, failing):
    beside = store.with_name("beside.jsonl")
    beside.write_bytes(b"".join(whole))
    with pytest.raises(study.FailedRuns):
        run(store)
    assert run(store, beside=[beside])[1] == [] == run(beside, beside=[store])[1]


def test_failed_runs_of_a_part_are_tried_again_where_it_is_kept(tmp_path, root, archive, part, failing):
    with pytest.raises(study.FailedRuns):
        study.runs(part, tmp_path / "own", InProcess(), progress=False)
    with pytest.raises(study.FailedRuns):
        study.record(part, InProcess())
    failing.clear()
    for again in (
        lambda executor: study.runs(part, tmp_path / "own", executor, archive=False, progress=False, retry_failed=True),
        lambda executor: study.record(part, executor, retry_failed=True),
    ):
        executor = InProcess()
        assert len(again(executor)) == 6 and sorted(executor.trained) == keys(seeds=[1])


# The archive

WITH_ARCHIVE = ("kscore.study.running", "kscore.__main__")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A checkout in place of the real one, so that no mistake reaches the real archive; some ways lead to its own."""
    folder = tmp_path / "project"
    archive = folder / "data" / "runs"
    for some in (archive, folder / "data" / "paper", folder / "notebooks"):
        some.mkdir(parents=True)
    monkeypatch.setattr(project, "ROOT", folder)
    monkeypatch.setattr(project, "is_checkout", lambda: True)
    for module in WITH_ARCHIVE:
        monkeypatch.setattr(sys.modules[module], "ARCHIVE", archive)
    (archive / "recorded.jsonl").write_text("")
    (tmp_path / "link").symlink_to(archive, target_is_directory=True)
    (tmp_path / "file.jsonl").symlink_to(archive / "recorded.jsonl")
    (tmp_path / "new.jsonl").symlink_to(archive / "not_yet.jsonl")
    return folder


@pytest.fixture
def archive(root):
    return root / "data" / "runs"


@pytest.fixture
def part():
    return plan.Part("cartpole_ppo", ARMS, range(3))


def sizes(folder):
    return {path.name: path.stat().st_size for path in folder.rglob("*")}


def test_the_archive_is_where_the_project_has_it():
    found = {sys.modules[module].ARCHIVE for module in WITH_ARCHIVE}
    assert found == {project.ARCHIVE} == {project.ROOT / "data" / "runs"}


@pytest.mark.parametrize(
    "place",
    [
        "data/runs/mine.jsonl",
        "data/runs/recorded.jsonl",
        "data/runs/deep/er/mine.jsonl",
        "./data/../data/runs/mine.jsonl",
        "data/paper/../runs/mine.jsonl",
        "{root}/data/runs/mine.jsonl",
        "{root}/notebooks/../data/runs/mine.jsonl",
        "{tmp}/link/mine.jsonl",
        "{tmp}/link/../runs/mine.jsonl",
        "{tmp}/file.jsonl",
        "{tmp}/new.jsonl",
    ],
)
def test_a_study_of_ones_own_does_not_write_into_the_archive(tmp_path, root, archive, place):
    before = sizes(archive)
    place = place.format(root=root, tmp=tmp_path)
    with pytest.raises(
        ValueError,
        match=r"^store must not lie in the archive, which only `kscore study --record` "
        rf"appends to, got {place}$",
    ):
        run(place)
    assert sizes(archive) == before


@pytest.mark.usefixtures("nothing_to_train")
@pytest.mark.parametrize("place", ["data/runs", "build/../data/runs", "{tmp}/link"])
def test_no_part_is_trained_into_the_archive_by_naming_it_as_the_store(tmp_path, archive, part, place, capsys):
    recorded = project.ARCHIVE / "cartpole_ppo_released.jsonl"
    (archive / recorded.name).write_bytes(recorded.read_bytes())  # so that nothing is missing
    before = sizes(archive)
    place = place.format(tmp=tmp_path)
    with pytest.raises(ValueError, match="store must not lie in the archive"):
        study.runs(part, place, InProcess(), progress=False)
    assert main(["study", "cartpole_ppo_released", "--store", place]) == 2
    assert "store must not lie in the archive" in capsys.readouterr().err
    assert sizes(archive) == before


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("", "^store must be the path of a file or a folder, got ''"),
        (" ", "^store must be the path of a file or a folder, got ' '"),
        ("data", "^store must not lie in data, which holds what is recorded, got data"),
        ("build/../data/paper", "^store must not lie in data, .*got build/../data/paper"),
    ],
)
def test_nothing_is_trained_into_the_project_s_data_nor_nowhere(part, place, sentence):
    with pytest.raises(ValueError, match=sentence):
        study.runs(part, place, InProcess(), progress=False)
    if place.strip():
        with pytest.raises(ValueError, match=f"{sentence}/mine.jsonl"):
            stores.check_own(f"{place}/mine.jsonl")


def test_a_folder_beside_the_data_is_not_the_archive(tmp_path, root):
    for place in (root / "data2" / "runs.jsonl", root / "data" / ".." / "mine.jsonl", tmp_path / "runs" / "mine.jsonl"):
        assert stores.check_own(place) == place


def test_runs_of_the_archive_are_read_and_not_copied(tmp_path, archive, part, whole):
    (archive / part.file).write_bytes(b"".join(whole))
    frame = study.runs(part, tmp_path / "own", Executor(), progress=False)
    assert len(frame) == 6 and not (tmp_path / "own").exists()
    assert (archive / part.file).read_bytes() == b"".join(whole)


def test_what_the_archive_lacks_is_trained_into_a_store_of_ones_own(tmp_path, archive, part, whole, capsys):
    (archive / part.file).write_bytes(b"".join(whole[:4]))
    executor = InProcess()
    study.runs(part, tmp_path / "own", executor)
    assert "training: 0 of 2 runs" in capsys.readouterr().err
    assert sorted(executor.trained) == sorted(map(key_of, whole[4:])) == stored_keys(tmp_path / "own" / part.file)
    assert (archive / part.file).read_bytes() == b"".join(whole[:4])
    assert len(study.runs(part, tmp_path / "own", Executor(), progress=False)) == 6


def test_other_settings_are_other_runs_and_leave_the_recorded_ones_alone(tmp_path, archive, part, whole):
    (archive / part.file).write_bytes(b"".join(whole))
    other = part._replace(
        configs={arm: tiny(normalizer=config.normalizer, max_episodes=2) for arm, config in ARMS.items()}
    )
    executor = InProcess()
    frame = study.runs(other, tmp_path / "own", executor, progress=False)
    assert set(frame.cap) == {2} and len(executor.trained) == 6
    assert (archive / part.file).read_bytes() == b"".join(whole)


def test_the_archive_can_be_left_out(tmp_path, archive, part, whole, capsys):
    (archive / part.file).write_bytes(b"".join(whole))
    executor = InProcess()
    study.runs(part, tmp_path / "own", executor, archive=False, progress=False)
    assert capsys.readouterr().err == ""
    assert sorted(executor.trained) == keys() == stored_keys(tmp_path / "own" / part.file)


def test_a_part_is_kept_in_build_unless_told(root, part):
    study.runs(part, executor=InProcess(), progress=False)
    assert stored_keys(root / "build" / "runs" / part.file) == keys()


def test_recording_appends_to_the_archive_what_it_lacks(archive, part, whole, capsys):
    (archive / part.file).write_bytes(b"".join(whole[:4]))
    before, executor = sizes(archive), InProcess()
    frame = study.record(part, executor)
    assert sorted(executor.trained) == sorted(map(key_of, whole[4:])) and len(frame) == 6
    assert (archive / part.file).read_bytes().startswith(b"".join(whole[:4]))
    assert stored_keys(archive / part.file) == keys() and set(sizes(archive)) == set(before)
    assert "training: 0 of 2 runs" in capsys.readouterr().err


# Where and how a store is written


def test_relative_stores_are_meant_from_the_projects_root(tmp_path, monkeypatch, whole):
    monkeypatch.chdir(tmp_path)
    assert project.located("data/runs/x.jsonl") == project.ROOT / "data" / "runs" / "x.jsonl"
    assert project.located(tmp_path / "x.jsonl") == tmp_path / "x.jsonl"
    monkeypatch.setattr(project, "ROOT", tmp_path / "project")
    monkeypatch.setattr(project, "is_checkout", lambda: True)
    run("some/runs.jsonl", seeds=[0])
    assert len(study.read("some/runs.jsonl").records) == 2 == len(study.recorded(ARMS, SEEDS, "some/runs.jsonl"))
    assert (tmp_path / "project" / "some" / "runs.jsonl").exists() and not (tmp_path / "some").exists()


@pytest.fixture
def no_file(tmp_path, request):
    """Something in a store's place that is no file."""
    path = tmp_path / "store"
    os.mkfifo(path) if request.param == "pipe" else path.mkdir()
    return path


@pytest.mark.parametrize("no_file", ["pipe", "folder"], indirect=True)
@pytest.mark.parametrize(
    "ask",
    [
        study.read,
        stores.held,
        lambda store: run(store),
        lambda store: study.recorded(ARMS, SEEDS, store),
        lambda store: run(store.with_name("own.jsonl"), beside=[store]),
        lambda store: stores.append(store, {}),
    ],
    ids=["read", "held", "run", "recorded", "beside", "append"],
)
def test_a_store_that_is_no_file_gets_a_sentence_and_is_not_waited_for(no_file, ask):
    with pytest.raises(ValueError, match=f"store must be a file.*, got {no_file}, which is not one"):
        ask(no_file)


def test_append_writes_one_line_and_refuses_what_json_does_not_have(store):
    stores.append(store, {"a": [1, 2.5]})
    with pytest.raises(ValueError, match="JSON"):
        stores.append(store, {"a": float("nan")})
    assert store.read_bytes() == b'{"a":[1,2.5]}\n'


def test_append_waits_for_a_line_that_is_still_being_written(store):
    other = threading.Thread(target=stores.append, args=(store, {"a": 2}))
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


def append_many(store, writer, together):
    together.wait(timeout=60)
    for number in range(12):
        journal.append(store, {"writer": writer, "number": number, "returns": [writer] * 100_000})


def test_two_processes_at_once_leave_only_whole_lines(store):
    context = multiprocessing.get_context("fork")
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
from kscore.rl import RunConfig

with Path(__file__).with_name("seen.txt").open("a") as file:
    file.write(f"{__name__}\\n")
configs = [RunConfig(**fields) for fields in json.loads(sys.argv[1])]
with study.processes(1) as executor:
    frame = study.run(configs, json.loads(sys.argv[2]), Path(__file__).with_name("runs.jsonl"), executor)
print(len(frame), Path(__file__).name, "torch" in sys.modules)
"""


def test_spawned_processes_train_the_same_and_run_neither_the_calling_script_nor_what_lies_around(tmp_path, whole):
    script, here = tmp_path / "chapter.py", tmp_path / "here"
    here.mkdir()
    (here / "signal.py").write_text("raise SystemExit('the wrong one')\n")  # which every spawned process imports
    script.write_text(SCRIPT)  # no main guard, as in a chapter
    configs = json.dumps([config.to_dict() for config in ARMS.values()])
    done = subprocess.run(
        [sys.executable, script, configs, json.dumps(SEEDS)], capture_output=True, text=True, timeout=120, cwd=here
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen.txt").read_text() == "__main__\n"
    assert done.stdout == "6 chapter.py False\n"  # it still knows its own name, and who hands out needs no torch
    records = study.read(tmp_path / "runs.jsonl").records
    assert without_seconds(records) == without_seconds(map(Record.parse, whole))


# Several at once


class Meanwhile(InProcess):
    """Trains here, and at its first run begins another study of the same, in a thread, which has to wait."""

    def __init__(self, study):
        super().__init__()
        self.study, self.other = study, None

    def _work(self, function, config, seed):
        if self.other is None:
            self.other = threading.Thread(target=self.study)
            self.other.start()
            self.other.join(0.3)
            assert self.other.is_alive()
        return super()._work(function, config, seed)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("record", [False, True])
def test_two_studies_of_the_same_train_everything_once(store, archive, part, record, capsys):
    second, place = InProcess(), archive / part.file if record else store

    def again(executor):
        if record:
            study.record(part, executor)
        else:
            run(store, executor=executor)

    first = Meanwhile(lambda: again(second))
    again(first)
    first.other.join(60)
    assert len(first.trained) == 6 and not second.trained and stored_keys(place) == keys()
    assert len(place.read_bytes().splitlines()) == 6
    assert "waiting for another process, which is at work for " in capsys.readouterr().err
