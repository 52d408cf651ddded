"""Faults, each made to happen: nothing is lost, nothing is done twice, nothing stays behind, and the status is true."""

import contextlib
import json
import os
import resource
import signal
import time
from concurrent.futures import Executor
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from conftest import CLOSED, PATIENCE, eventually
from small_runs import InProcess, tiny, without_seconds

from kscore import journal, project, study
from kscore.__main__ import main
from kscore.analysis import claims
from kscore.chapters import runner
from kscore.chapters.status import STATUS, Task, latest
from kscore.rl import train
from kscore.study import store as stores
from kscore.study.records import Record

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("descendants")]


def run(source, out, **options):
    """Execute one chapter and return its outcome, which its status has to agree with."""
    (outcome,) = runner.run([Task(source, out / source.name, {})], out, **options)
    told = latest(out)[outcome.name]
    assert (told["status"], told["cell"], told["error"]) == (outcome.status, outcome.cell, outcome.error)
    return outcome


def counting(path):
    """Code that leaves a line with the number of its process."""
    return f"import os\nprint(os.getpid(), file=open({str(path)!r}, 'a'))"


def waiting_for(path):
    """Code that says that it waits for a file, in another one, and does."""
    return (
        f"import os, time\nopen({str(path) + '.waiting'!r}, 'w').close()\n"
        f"while not os.path.exists({str(path)!r}): time.sleep(0.02)"
    )


def lines(path):
    """The lines of a file; one that is being written is none yet."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


@contextlib.contextmanager
def files_of_at_most(size):
    """A disk that is full: no file may grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# A chapter


def test_a_kernel_that_is_killed(notebook, tmp_path):
    source = notebook("a = 1", "import os; os.kill(os.getpid(), 9)", "b = 1")
    outcome = run(source, tmp_path)
    assert (outcome.status, outcome.cell) == ("failed", 3) and outcome.error.startswith("the kernel died: killed")


def test_a_process_around_a_kernel_that_is_killed(notebook, tmp_path, descendants):
    source = notebook("import os, time; os.kill(os.getppid(), 9); time.sleep(1000)")
    outcome = run(source, tmp_path)
    assert (outcome.status, outcome.cell) == ("failed", 2) and "the process that executed it died" in outcome.error
    assert eventually(lambda: not descendants())


def test_a_cell_that_hangs(notebook, tmp_path, monkeypatch, descendants):
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late[0], perf_counter=time.perf_counter)
    monkeypatch.setattr(runner, "time", clock)
    late = [0]

    def watch(task, cell, cells, doing):
        late[0] = 1000 if cell == 3 else 0  # its time is up as soon as it comes to the cell that hangs

    source = notebook("import subprocess; subprocess.Popen(['sleep', '1000'])", "while True: pass", "never = 1")
    outcome = run(source, tmp_path, timeout=999, watch=watch)
    assert (outcome.status, outcome.cell) == ("timeout", 3) and outcome.error.startswith("stopped after")
    assert not descendants()
    assert main(["publish", "--from", str(tmp_path)]) == 2  # although its notebook holds no error


def test_a_stopped_run_goes_on_where_it_was(notebook, tmp_path, command_line, descendants):
    out, go = tmp_path / "out", tmp_path / "go"
    notebook(counting(tmp_path / "first")), notebook("pass", name="02_last")
    notebook(counting(tmp_path / "second"), waiting_for(go), "print('done')", name="01_waits")
    first = command_line("run", "--no-pages", "--out", out, "--jobs", 1)
    assert eventually(Path(f"{go}.waiting").exists)
    first.send_signal(signal.SIGINT)
    words = first.communicate(timeout=PATIENCE)[1]
    assert first.returncode == 130 and not descendants()
    assert "kscore: stopped. `kscore run --resume` with the same options does what is left." in words
    assert "Traceback" not in words
    assert {name: (entry["status"], entry.get("cell")) for name, entry in latest(out).items()} == {
        "00_good": ("ok", None),
        "01_waits": ("interrupted", 3),
    }
    go.touch()
    assert main(["run", "--no-pages", "--resume", "--out", str(out)]) == 0
    assert (len(lines(tmp_path / "first")), len(lines(tmp_path / "second"))) == (1, 2)
    assert [entry["status"] for entry in latest(out).values()] == ["ok"] * 3


TRAINING = """
import ipykernel, os
print(ipykernel.get_connection_file(), file=open({go!r} + ".scratch", "w"))
from kscore import study
from kscore.rl import RunConfig
short, endless = (RunConfig(env="CartPole-v1", algorithm="reinforce", threshold=None, hidden=(8,), max_episodes=count)
                  for count in (8, 10**9))
with study.processes(1) as executor:
    runs = study.run([short] if os.path.exists({go!r}) else [short, endless], range(3), {store!r}, executor)
print(runs.episodes.sum(), runs.steps.sum())
"""


@pytest.mark.long
def test_a_runner_that_is_killed_in_the_middle_of_a_chapter_that_trains(notebook, tmp_path, command_line, descendants):
    out, store, go = tmp_path / "out", tmp_path / "runs.jsonl", tmp_path / "go"
    notebook(counting(tmp_path / "first"))
    notebook(TRAINING.format(store=str(store), go=str(go)), name="01_trains")
    first = command_line("run", "--no-pages", "--out", out, "--jobs", 1)
    assert eventually(lambda: lines(store))
    first.kill()
    assert eventually(lambda: not descendants())  # the kernel and its workers too
    assert not Path(go.with_suffix(".scratch").read_text()).parent.exists()
    kept = store.read_bytes()
    assert {name: entry["status"] for name, entry in latest(out).items()} == {
        "00_good": "ok",
        "01_trains": "interrupted",
    }
    go.touch()
    assert main(["run", "--no-pages", "--resume", "--out", str(out)]) == 0
    assert len(lines(tmp_path / "first")) == 1
    assert kept.count(b"\n") == 1 and store.read_bytes().startswith(kept)
    held = study.read(store).records
    assert sorted(record.seed for record in held) == [0, 1, 2]  # each of them once
    printed = f"24 {sum(record.steps for record in held)}"
    assert printed in (out / "01_trains.ipynb").read_text(encoding="utf-8")


def test_a_full_disk(notebook, tmp_path, command_line):
    out = tmp_path / "out"
    notebook("print('x' * 50_000)")
    full = command_line("run", "--no-pages", "--out", out, before=("bash", "-c", 'ulimit -f 40; exec "$0" "$@"'))
    printed, words = full.communicate(timeout=PATIENCE)
    assert full.returncode == 1
    assert f"File too large: {out / '00_good.ipynb'}" in printed and "Traceback" not in words
    told = latest(out)["00_good"]
    assert told["status"] == "failed" and "File too large" in told["error"]


def test_a_disk_without_room_for_the_status(notebook, tmp_path, capsys):
    notebook(counting(tmp_path / "begun"))
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / STATUS).write_bytes(b"\n" * 1000)
    with files_of_at_most(1100):
        assert main(["run", "--no-pages"]) == 1
    assert f"File too large: {tmp_path / 'build' / STATUS}" in capsys.readouterr().out
    assert not lines(tmp_path / "begun") and not latest(tmp_path / "build")
    assert main(["status"]) == 0


def without_rights(command=()):
    """What to put before a command, so that a folder's rights count for root too."""
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search", *command) if os.geteuid() == 0 else command


def test_a_folder_that_cannot_be_written_to(notebook, tmp_path, command_line):
    notebook(counting(tmp_path / "begun"))
    out = tmp_path / "out"
    out.mkdir(mode=0o555)
    refused = command_line("run", "--no-pages", "--out", out, before=without_rights())
    words = refused.communicate(timeout=PATIENCE)[1]
    assert refused.returncode == 1 and words == f"kscore: Permission denied: {out / STATUS}\n"
    assert not lines(tmp_path / "begun") and not list(out.iterdir())


def test_a_file_in_the_place_of_the_folder(notebook, tmp_path, capsys):
    notebook(counting(tmp_path / "begun"))
    (tmp_path / "build").touch()
    assert main(["run", "--no-pages"]) == 2
    assert capsys.readouterr().err.startswith("kscore: out must be a folder, got ")
    assert not lines(tmp_path / "begun")


# A study

ARMS = {name: tiny(normalizer={"name": name}, max_episodes=8) for name in ("zscore", "none")}
ENDLESS = {"endless": tiny(max_episodes=10**9)}
SEEDS = range(4)

STUDY = """
import json, signal, sys
from kscore.__main__ import main
from kscore.rl import RunConfig
from kscore.study import plan
configs = {name: RunConfig(**fields) for name, fields in json.loads(sys.argv[2]).items()}
plan.chosen = lambda parts: ["tiny"]
plan.grids_of = lambda name: {}
plan.part = lambda name: plan.Part("tiny", configs, range(4))
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(["study", *sys.argv[3:]]))
"""


@pytest.fixture(scope="module")
def whole():
    """What an uninterrupted study records."""
    return without_seconds(Record.of(train(config, seed)) for config in ARMS.values() for seed in SEEDS)


def goes_on(store, whole):
    """Finish a study; what it had is not done again, and the result is that of an uninterrupted one."""
    held, executor = study.read(store).records, InProcess()
    study.run(ARMS, SEEDS, store, executor, progress=False)
    assert len(held) + len(executor.trained) == len(ARMS) * len(SEEDS)
    contents = study.read(store)
    assert contents.damaged == 0 and without_seconds(contents.records) == whole


@pytest.fixture
def studying(command_line, tmp_path):
    """Start the study in a process of its own and let it get into the middle, where an endless arm keeps it."""
    store = tmp_path / "new" / "runs" / "tiny.jsonl"

    def start(arms, workers=1):
        configs = json.dumps({name: config.to_dict() for name, config in arms.items()})
        process = command_line(configs, "--store", store.parent, "--workers", workers, script=STUDY)
        assert eventually(lambda: len(lines(store)) >= 2 * workers)
        return process, store

    return start


def test_a_study_that_is_killed_in_the_middle(studying, whole, descendants):
    process, store = studying(ARMS | ENDLESS, workers=2)
    process.kill()
    assert eventually(lambda: not descendants())  # its workers would go on, and then wait for ever
    assert len(lines(store)) == 4
    goes_on(store, whole)


def test_a_study_that_is_stopped_in_the_middle(studying, whole, descendants):
    process, store = studying(ARMS | ENDLESS)
    for worker in workers_of(process):
        worker.send_signal(signal.SIGINT)  # as a terminal does with all; it is for the runner
    process.send_signal(signal.SIGTERM)
    words = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130 and not descendants()
    assert "kscore: stopped. Every finished run is kept; the same command goes on." in words
    assert "Traceback" not in words
    goes_on(store, whole)


def workers_of(process):
    started = psutil.Process(process.pid).children(recursive=True)
    return [worker for worker in started if "spawn_main" in " ".join(worker.cmdline())]


def test_a_training_process_that_is_killed(studying, whole, descendants):
    process, store = studying(ARMS | ENDLESS)
    workers_of(process)[0].kill()
    words = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1 and not descendants()
    assert "kscore: a training process died: killed, or out of memory. Every finished run is kept; the same" in words
    assert "Traceback" not in words
    goes_on(store, whole)


@pytest.mark.parametrize("streams", ["closed", "left"])
def test_a_study_that_nobody_listens_to(command_line, tmp_path, whole, nobody, streams):
    configs = json.dumps({name: config.to_dict() for name, config in ARMS.items()})
    without = CLOSED if streams == "closed" else ()
    alone = command_line(configs, "--store", tmp_path, script=STUDY, before=without, stdout=nobody, stderr=nobody)
    assert alone.wait() == 0 and without_seconds(study.read(tmp_path / "tiny.jsonl").records) == whole


def test_two_studies_on_the_same_store_at_once(studying, whole):
    process, store = studying(ARMS)
    study.run(ARMS, SEEDS, store, InProcess(), progress=False)
    assert process.communicate(timeout=PATIENCE) and process.returncode == 0
    assert study.read(store).damaged == 0 and without_seconds(stores.held(store).values()) == whole
    frame = study.run(ARMS, SEEDS, store, Executor(), progress=False)  # there is nothing left to train
    assert len(frame) == len(whole)


def test_a_study_on_a_full_disk(tmp_path, whole):
    store = tmp_path / "runs.jsonl"
    with files_of_at_most(6_000), pytest.raises(OSError, match="File too large") as full:
        study.run(ARMS, SEEDS, store, InProcess(), progress=False)
    assert full.value.filename == str(store)
    held, executor = study.read(store), InProcess()
    assert held.damaged == 1 and 0 < len(held.records) < len(whole)
    with pytest.warns(UserWarning, match="1 damaged lines were passed over"):
        study.run(ARMS, SEEDS, store, executor, progress=False)
    assert len(held.records) + len(executor.trained) == len(whole)
    assert without_seconds(study.read(store).records) == whole


def test_a_store_that_cannot_be_written_is_found_out_before_anything_is_trained(tmp_path):
    (tmp_path / "file").touch()
    executor = InProcess()
    with pytest.raises(OSError, match="file"):
        study.run(ARMS, SEEDS, tmp_path / "file" / "runs.jsonl", executor, progress=False)
    assert not executor.trained


def test_a_run_that_diverges_is_a_result_like_others(tmp_path):
    arms = {"wild": tiny(learning_rate=1e90, max_episodes=5), "tame": tiny(max_episodes=5)}
    store, executor = tmp_path / "runs.jsonl", InProcess()
    frame = study.run(arms, [0], store, executor, progress=False)
    assert list(frame.status) == ["diverged", "censored"] and list(frame.evaluation) == [5, 5]
    assert study.run(arms, [0], store, executor, progress=False).equals(frame) and len(executor.trained) == 2


def test_a_missing_data_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setattr(claims, "DATA", tmp_path / "data")
    monkeypatch.setattr(project, "is_checkout", lambda: True)
    assert study.recorded(ARMS, SEEDS, "data/runs/tiny.jsonl").empty and not (tmp_path / "data").exists()
    assert len(study.run(ARMS, [0], "build/runs/tiny.jsonl", InProcess(), progress=False)) == 2  # and it is made
    assert (tmp_path / "build" / "runs" / "tiny.jsonl").exists()
    with pytest.raises(FileNotFoundError, match="published.csv"):
        claims.published("T1a")


# A journal


def test_half_a_line_stays_a_line_of_its_own(tmp_path):
    path = tmp_path / "lines.jsonl"
    journal.append(path, {"a": 1})
    with files_of_at_most(path.stat().st_size + 4), pytest.raises(OSError, match="File too large"):
        journal.append(path, {"b": 2})
    journal.append(path, {"c": 3})
    assert list(journal.lines(path)) == [b'{"a":1}\n', b'{"b"\n', b'{"c":3}\n']
    assert Path(path).read_bytes().count(b"\n") == 3
