"""A status that tells the truth: claims, ends that are none, whose code runs, and what an error says."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

import pytest
from conftest import eventually

from kscore import journal, provenance
from kscore.__main__ import main
from kscore.chapters import notebooks, pages, runner, status
from kscore.chapters.status import STATUS, Busy, StatusFile, Task

SLOW = "import time; time.sleep(600)"


def task(path, tmp_path, **parameters):
    return Task(path, tmp_path / "out" / path.name, parameters)


def executed(path, tmp_path, **parameters):
    return runner.run([task(path, tmp_path, **parameters)], tmp_path / "out")[0]


# Claims


def test_a_chapter_is_claimed_when_it_begins_not_when_the_command_does(notebook, tmp_path, command_line, descendants):
    flag = tmp_path / "go"
    notebook(
        f"import time\nfrom pathlib import Path\nwhile not Path({str(flag)!r}).exists(): time.sleep(0.05)",
        name="00_first",
    )
    notebook("print('begun')", SLOW, name="01_second")
    out = tmp_path / "out"
    first = command_line("run", "--no-pages", "00", "01", "--jobs", 1, "--out", out)
    assert eventually(lambda: status.latest(out).get("00_first", {}).get("status") == "running")
    second = command_line("run", "--no-pages", "01", "--out", out)
    assert eventually(lambda: status.latest(out).get("01_second", {}).get("status") == "running")
    owner = status.latest(out)["01_second"]["runner"]
    flag.touch()
    told, _ = first.communicate()  # it comes to 01 while the second is at it
    assert owner == second.pid and first.returncode == 1
    assert f"01_second is being run into {out} already, by process {second.pid} on {socket.gethostname()}" in told
    second.send_signal(signal.SIGKILL)
    second.wait()
    assert eventually(lambda: status.latest(out)["01_second"]["status"] == "interrupted")


CLAIM = """
import sys, time
from pathlib import Path
from kscore.chapters.status import Busy, StatusFile, Task
source, out = map(Path, sys.argv[1:])
file = StatusFile(out)
sys.stdin.read()
try:
    file.begin(Task(source, out / "x.ipynb", {}))
    print("mine", flush=True)
except Busy:
    print("busy", flush=True)
time.sleep(60)
"""


def test_of_two_runners_that_claim_at_once_one_gets_it(notebook, tmp_path):
    path = notebook("1")
    (tmp_path / "out").mkdir()
    runners = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIM, path, tmp_path / "out"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for one in runners:
        one.stdin.close()
    told = sorted(one.stdout.readline().strip() for one in runners)
    for one in runners:
        one.kill()
        one.wait()
        one.stdout.close()
    assert told == ["busy", "busy", "busy", "mine"]


def test_a_runner_on_another_machine_counts_as_running(notebook, tmp_path):
    journal.append(
        tmp_path / STATUS,
        {
            "name": "00_good",
            "status": "running",
            "time": "2026-01-01T00:00:00",
            "runner": 1,
            "runner_started": 0.0,
            "host": "elsewhere",
        },
    )
    assert status.latest(tmp_path)["00_good"]["status"] == "running"
    with pytest.raises(Busy, match="by process 1 on elsewhere"):
        StatusFile(tmp_path).begin(Task(notebook("1"), tmp_path / "00_good.ipynb", {}))


# Ends that are none


@pytest.mark.parametrize("ending", ["import sys; sys.exit(0)", "raise SystemExit"])
def test_a_chapter_that_ends_itself_has_not_ended_well(notebook, tmp_path, ending):
    outcome = executed(notebook(ending, "print('never')"), tmp_path)
    assert (outcome.status, outcome.cell) == ("failed", 2) and "ended itself" in outcome.error


def test_a_chapter_that_cannot_be_read_when_its_turn_comes_has_a_status_and_a_row(notebook, tmp_path):
    path = notebook("1")
    path.write_text("{")
    outcome = executed(path, tmp_path)
    assert outcome.status == "failed" and outcome.error
    assert status.latest(tmp_path / "out")["00_good"]["status"] == "failed"
    assert runner.table([outcome]).splitlines()[1].split()[:2] == ["00_good", "failed"]


def test_what_did_not_run_to_its_end_is_neither_published_nor_reported(notebook, tmp_path, capsys):
    path = notebook("1", "2", name="11_replication_report")
    executed(path, tmp_path)
    half = tmp_path / "out" / path.name
    content = json.loads(half.read_text())
    content["cells"][-1] |= {"execution_count": None, "outputs": []}
    half.write_text(json.dumps(content))
    before = path.read_bytes()
    assert main(["publish", "11", "--from", str(half.parent)]) == 2
    assert "did not run to its end: cell 3" in capsys.readouterr().err and path.read_bytes() == before
    with pytest.raises(ValueError, match="did not run to its end"):
        pages.write_report(half, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_an_empty_cell_need_not_be_executed():
    cells = [
        {"cell_type": "code", "source": " ", "execution_count": None, "outputs": []},
        {"cell_type": "markdown", "source": "words"},
    ]
    assert notebooks.unexecuted(cells) == []


# Whose code runs


def test_code_that_lies_in_the_working_directory_is_not_run(notebook, tmp_path, monkeypatch):
    """Both processes of a chapter, and what it trains with, take their code from where it is installed."""
    for name in ("psutil.py", "papermill.py", "nbformat.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong one')\n")
    (tmp_path / "kscore").mkdir()
    (tmp_path / "kscore" / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    monkeypatch.chdir(tmp_path)
    outcome = executed(notebook("import kscore, sys; assert '' not in sys.path and kscore.__version__"), tmp_path)
    assert outcome.status == "ok", outcome.error


def test_asserts_are_checked_whatever_the_environment_says(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    outcome = executed(notebook("assert 1 == 2"), tmp_path)
    assert outcome.error == "AssertionError: not true: 1 == 2"


def test_what_was_done_with_other_code_is_due_again(notebook, tmp_path, monkeypatch):
    path = notebook("1")
    executed(path, tmp_path)
    assert not status.due([task(path, tmp_path)], status.latest(tmp_path / "out"))
    monkeypatch.setattr(provenance, "code", lambda: "changed")
    assert status.due([task(path, tmp_path)], status.latest(tmp_path / "out"))


def test_what_a_cell_has_started_ends_with_the_chapters_time(notebook, tmp_path, descendants):
    path = notebook("import os; os.system('sleep 600 &')", SLOW)  # its shell ends at once: it has no parent any more
    outcome = runner.run([task(path, tmp_path)], tmp_path / "out", timeout=8)[0]
    assert outcome.status == "timeout"
    assert not [process for process in descendants() if process.pid != os.getpid()]


SURVIVOR = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"


def test_nor_does_it_outlive_a_chapter_that_ended_well(notebook, tmp_path, descendants):
    assert executed(notebook("import os; os.system('sleep 600 &')", SURVIVOR, "1"), tmp_path).status == "ok"
    assert not [process for process in descendants() if process.pid != os.getpid()]


# What an error says


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("assert 1 == 2", "AssertionError: not true: 1 == 2"),
        ("assert 1 == 2, 'why'", "AssertionError: why"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: raised by: raise KeyboardInterrupt"),
    ],
)
def test_an_error_without_words_shows_its_line(notebook, tmp_path, code, said):
    assert executed(notebook(code), tmp_path).error == said


@pytest.mark.parametrize("given", [{}, {"size": 3}])
def test_the_number_of_a_cell_is_the_chapters(notebook, tmp_path, given):
    path = notebook("print(size)", "assert size == 4", parameters="size: int = 1  # how large")
    outcome = executed(path, tmp_path, **given)
    assert (outcome.cell, outcome.error) == (4, "AssertionError: not true: size == 4")


# A status file that says anything


@pytest.mark.parametrize(
    "change",
    [
        {"status": "<script>alert(1)</script>"},
        {"status": ["ok"]},
        {"time": "<img src=x onerror=alert(1)>"},
        {"time": 5},
        {"name": "../../etc/passwd"},
        {"name": "a)(b/c"},
        {"chapter": {"a": 1}},
        {"seconds": "long"},
        {"parameters": [1]},
        {"error": 5},
    ],
)
def test_an_entry_that_is_none_of_ours_is_passed_over(tmp_path, change):
    good = {"name": "00_good", "chapter": "00_good", "status": "ok", "time": "2026-01-01T00:00:00", "seconds": 1.0}
    other = {**good, "name": "01_other", **change}
    (tmp_path / STATUS).write_text(f"{json.dumps(other)}\n{json.dumps(good)}\n")
    assert list(status.latest(tmp_path)) == ["00_good"]
    assert status.latest(tmp_path)["00_good"] == good


def test_a_chapter_runs_where_the_folder_for_temporary_files_lies_deep(notebook, tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 95)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert executed(notebook("print('here')"), tmp_path).status == "ok"
