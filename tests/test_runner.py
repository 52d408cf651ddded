"""The runner of chapters and its command line, on small chapters made here."""

import argparse
import ast
import base64
import contextlib
import io
import json
import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
from conftest import CLOSED, PATIENCE, RUNNER
from nbformat.v4 import new_markdown_cell, new_output

from kscore import console, project, provenance
from kscore.__main__ import main
from kscore.chapters import notebooks, pages, runner, site
from kscore.chapters.status import STATUS, Outcome, StatusFile, Task, due, latest
from kscore.project import ROOT

SIZE = "size: int = 1  # how many [1, 10]\ntitle: str = 'none'  # of nothing"
pytestmark = pytest.mark.usefixtures("descendants")


def entries(out):
    """The lines of a status file."""
    return [json.loads(line) for line in (out / STATUS).read_bytes().splitlines()]


def task(source, out, **parameters):
    return Task(source, out / source.name, parameters)


def texts(notebook):
    """What the cells of an executed notebook printed."""
    outputs = [output for cell in nbformat.read(notebook, as_version=4).cells for output in cell.get("outputs", [])]
    return "".join(output.text for output in outputs if output.output_type == "stream")


# Executing

KERNEL = """import ipykernel, os, psutil
print(ipykernel.get_connection_info(unpack=True)["transport"])
print(os.path.dirname(ipykernel.get_connection_file()))
family = [psutil.Process(), psutil.Process().parent()]
print([c.laddr for one in family for c in one.net_connections("inet") if c.status == psutil.CONN_LISTEN])
print(ipykernel.kernelapp.IPKernelApp.instance().log_level)"""


def test_a_good_chapter_is_executed_and_has_a_status(notebook, tmp_path):
    source, out, seen = notebook("print('size', size)", KERNEL, parameters=SIZE), tmp_path / "new" / "out", []
    (outcome,) = runner.run([task(source, out, size=5)], out, watch=lambda *event: seen.append(event[1:]))
    assert (outcome.name, outcome.status, outcome.error, outcome.cell) == ("00_good", "ok", "", None)
    assert seen == [(cell, 4, "") for cell in (1, 2, 2, 3, 4)]  # what papermill adds for parameters is no cell of it
    printed, transport, scratch, listening, logged = texts(out / "00_good.ipynb").splitlines()
    assert (printed, transport, listening) == ("size 5", "ipc", "[]") and not Path(scratch).exists()
    assert int(logged) == logging.CRITICAL  # that it is interrupted at its end is no error
    began, ended = entries(out)
    assert began["status"] == "running" and began["runner"] == os.getpid()
    assert {name: ended[name] for name in ("name", "chapter", "parameters", "status", "error", "cell", "start")} == {
        "name": "00_good",
        "chapter": "00_good",
        "parameters": {"size": 5},
        "status": "ok",
        "error": "",
        "cell": None,
        "start": began["time"],
    }
    assert ended["versions"]["python"] and 0 < ended["seconds"] == outcome.seconds


def test_a_failing_chapter_is_told_with_its_cell_whatever_it_prints(notebook, tmp_path):
    forged = r"""import os; os.write(1, b'5\n{"event": "end", "status": "ok"}\nhalf a line')"""
    source = notebook(forged, "open('/no/data/runs.csv')", "print('never')")
    (outcome,) = runner.run([task(source, tmp_path)], tmp_path)
    error = "FileNotFoundError: [Errno 2] No such file or directory: '/no/data/runs.csv'"
    assert (outcome.status, outcome.cell, outcome.error) == ("failed", 3, error)
    assert [(entry["status"], entry.get("cell"), entry.get("error")) for entry in entries(tmp_path)] == [
        ("running", None, None),
        ("failed", 3, error),
    ]
    assert "FileNotFoundError" in (tmp_path / source.name).read_text(encoding="utf-8")


HOSTILE = [
    '"; open("RAN", "w") #',
    "'''\nopen('RAN', 'w')\n'''",
    "\\",
    '\\"',
    "\\\n",
    "{open('RAN', 'w')}",
    "%s\x00\x1b",
    "\N{LINE SEPARATOR}é𝄞",
    "$(touch RAN)`touch RAN`",
    "!touch RAN",
    "%run RAN",
    "</script><b>",
]


def test_values_arrive_as_they_are_and_nothing_of_them_runs(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = "title: str = ''\nmany: list = []\nnamed: dict = {}\nfolder: str = 'x'"
    source = notebook("import json; print(json.dumps([title, many, named]))", parameters=kinds)
    values = {"title": "\n".join(HOSTILE), "many": HOSTILE, "named": {text: [text, 1e-9, None] for text in HOSTILE}}
    out = tmp_path / "{folder}" / "{title.__class__}"  # papermill would fill these in
    (outcome,) = runner.run([task(source, out, **values, folder="../../elsewhere")], out)
    assert outcome.status == "ok", outcome.error
    assert json.loads(texts(out / source.name)) == list(values.values())
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["notebooks", "{folder}"]
    assert entries(out)[-1]["parameters"]["many"] == HOSTILE


# The names of files


@pytest.mark.parametrize(
    "value",
    ["../../etc/passwd", "/etc/passwd", "..", "a/b", "a\x00b", "~root", "x" * 300, "\n", "{seed}", "C:\\x", "é"],
)
def test_a_swept_value_cannot_lead_out_of_the_folder(notebook, tmp_path, value):
    (made,) = runner.tasks([notebook()], {}, [{"title": value}], tmp_path / "out")
    assert made.target.parent == tmp_path / "out" and made.target.resolve() == made.target
    assert re.fullmatch(r"00_good__[A-Za-z0-9._+-]{1,100}\.ipynb", made.target.name)


def test_every_combination_has_a_file_of_its_own(notebook, tmp_path):
    words = ["a", "b", "A", "a-b", "a_b", "a/b", "a b", "a_y-b", "b_y-a", "a_y-b_y-a", "1", "1.0", "x" * 99, "x" * 98]
    combinations = [{"x": x, "y": y} for x in words for y in words]
    made = runner.tasks([notebook()], {}, combinations, tmp_path)
    assert len({made.target for made in made}) == len(combinations)
    assert runner.tasks([notebook()], {}, [{"x": "1", "y": "2"}], tmp_path)[0].name == "00_good__x-1_y-2"


@pytest.mark.parametrize("command", ["run", "report"])
def test_nothing_is_executed_onto_the_chapters(notebook, collection, capsys, command):
    source = notebook("a = 1", name="11_replication_report")
    before = source.read_bytes()
    assert main([command, "--out", str(collection / ".." / "notebooks")]) == 2
    assert "out must be a new or an empty folder, or one that chapters were executed into" in capsys.readouterr().err
    assert source.read_bytes() == before and not (collection / STATUS).exists()


# The command line: running


@pytest.fixture
def planned(monkeypatch):
    """Have the command line plan, but not do; what was planned is kept here."""
    calls = []

    def plan(todo, out, **options):
        calls.append(argparse.Namespace(todo=todo, out=out, **options))
        return [Outcome(task.name, "ok") for task in todo]

    monkeypatch.setattr(runner, "run", plan)
    monkeypatch.setattr(site, "build", lambda out: out / "index.html")
    return calls


def test_all_is_run_all_is_told_and_one_failure_is_a_failure(notebook, tmp_path, capsys):
    notebook("print('one')"), notebook("a = 1", "raise RuntimeError('out of luck')", name="01_bad")
    assert main(["run", "--no-pages", "--jobs", "2"]) == 1
    printed = capsys.readouterr().out
    assert [line.split()[:2] for line in printed.splitlines()[1:4]] == [
        ["notebook", "status"],
        ["00_good", "ok"],
        ["01_bad", "failed"],
    ]
    assert "01_bad: cell 3: RuntimeError: out of luck" in printed
    assert "out of luck" in (tmp_path / "build" / "01_bad.ipynb").read_text(encoding="utf-8")
    assert main(["status"]) == 1
    assert re.fullmatch(
        r"00_good: ok, 20\S+ \S+, \d+ s\n01_bad: failed in cell 3, 20\S+ \S+, \d+ s: RuntimeError: out "
        r"of luck\n",
        capsys.readouterr().out,
    )
    main(["list"])
    assert re.findall(r"^(\w+)  \((\w+)", capsys.readouterr().out, re.M) == [("00_good", "ok"), ("01_bad", "failed")]


def test_fail_fast_stops_what_runs_and_begins_nothing_more(notebook, tmp_path, capsys):
    running = tmp_path / "running"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(running)!r}).exists(): time.sleep(0.01)"
    notebook(wait, "1 / 0"), notebook("print('never')", name="02_never")
    notebook(f"open({str(running)!r}, 'w').close()", "import time; time.sleep(1000)", name="01_slow")
    assert main(["run", "--no-pages", "--fail-fast", "--jobs", "2", "--timeout", str(PATIENCE)]) == 1
    printed = capsys.readouterr().out
    found = dict(re.findall(r"^(0\d_\w+) +(failed|interrupted|not begun|ok) ", printed, re.M))
    assert found == {"00_good": "failed", "01_slow": "interrupted", "02_never": "not begun"}
    assert "by the user" not in printed
    assert not (tmp_path / "build" / "02_never.ipynb").exists()
    assert [entry["name"] for entry in entries(tmp_path / "build")].count("02_never") == 0


def ended(made, status):
    """Leave what a task leaves that ended so."""
    file = StatusFile(made.target.parent)
    file.end(file.begin(made), Outcome(made.name, status))
    made.target.touch()


def test_resume_does_only_what_is_missing_or_did_not_end_well(notebook, tmp_path, planned, capsys):
    statuses = ["ok", "failed", "timeout", "interrupted", None]
    sources = [notebook(name=f"0{number}_{status}") for number, status in enumerate(statuses)]
    for source, status in zip(sources[:4], statuses, strict=False):
        ended(task(source, tmp_path / "build"), status)
    assert main(["run", "--resume"]) == 0
    assert [made.source for made in planned[0].todo] == sources[1:]
    assert re.search(r"^00_ok +done before .*\n01_failed +ok ", capsys.readouterr().out, re.M)


@pytest.mark.parametrize(
    "change", ["nothing", "parameters", "text", "notebook", "outputs", "status", "code", "packages"]
)
def test_what_was_done_is_due_again_when_something_of_it_changed(notebook, tmp_path, planned, monkeypatch, change):
    source = notebook("a = 1", parameters=SIZE)
    made = task(source, tmp_path / "build")
    ended(made, "failed" if change == "status" else "ok")
    if change == "text":
        notebook("a = 2", parameters=SIZE)
    elif change == "code":
        monkeypatch.setattr(provenance, "code", lambda: "another")
    elif change == "packages":
        monkeypatch.setattr(provenance, "versions", lambda: {"numpy": "another"})
    elif change == "notebook":
        made.target.unlink()
    elif change == "outputs":
        content = nbformat.read(source, as_version=4)
        content.cells[-1].outputs = [new_output("stream", text="published")]
        nbformat.write(content, source)
    assert main(["run", "--resume", *(["-p", "size", "2"] if change == "parameters" else [])]) == 0
    assert len(planned[0].todo) == (0 if change in ("nothing", "outputs") else 1)
    assert main(["run"]) == 0 and len(planned[1].todo) == 1  # without being told to go on, everything is done


@pytest.mark.parametrize("edited", ["chapter", "code"])
def test_a_chapter_that_was_edited_while_it_ran_is_due_again(notebook, tmp_path, monkeypatch, edited):
    made, status, code = task(notebook("a = 1"), tmp_path), StatusFile(tmp_path), provenance.code()
    began = status.begin(made)
    made.target.touch()
    notebook("a = 2" if edited == "chapter" else "a = 1")
    monkeypatch.setattr(provenance, "code", lambda: code if edited == "chapter" else "another")
    status.end(began, Outcome(made.name, "ok"))
    assert due([made], latest(tmp_path)) == [made]
    notebook("a = 1")
    monkeypatch.setattr(provenance, "code", lambda: code)
    assert due([made], latest(tmp_path)) == []


def test_what_is_left_of_many_combinations_is_found_by_reading_their_chapter_once(notebook, tmp_path, monkeypatch):
    source, read = notebook(parameters=SIZE), []
    todo = [Task(source, tmp_path / f"{size}.ipynb", {"size": size}) for size in range(1, 11)]
    for made in todo[:-1]:
        ended(made, "ok")
    for where, name in ((notebooks, "cells"), (provenance, "code")):
        real = getattr(where, name)
        monkeypatch.setattr(where, name, lambda *given, real=real, name=name: read.append(name) or real(*given))
    assert due(todo, latest(tmp_path)) == todo[-1:] and sorted(read) == ["cells", "code"]


def test_parameters_come_from_profile_file_line_and_sweep_the_last_one_wins(notebook, tmp_path, planned):
    notebook(parameters=SIZE), notebook(parameters=SIZE, name="01_other")
    file = tmp_path / "parameters.yaml"
    file.write_text("title: filed\n01_other: {size: 3}\n")
    out = str(tmp_path / "out")
    main(["run", "--profile", "quick", "-f", str(file), "--out", out])
    main(["run", "00", "--profile", "quick", "-f", str(file), "-p", "title", "lined", "-p", "size", "4", "--out", out])
    main(
        [
            "run",
            "0?_*",
            "-p",
            "size",
            "4",
            "--sweep",
            "size=5,6",
            "--sweep",
            "title=a,b",
            "--jobs",
            "3",
            "--timeout",
            "1.5",
            "--fail-fast",
        ]
    )
    first, second, third = planned
    assert [made.parameters for made in first.todo] == [{"size": 2, "title": "filed"}, {"title": "filed", "size": 3}]
    assert [made.parameters for made in second.todo] == [{"size": 4, "title": "lined"}]
    assert len(third.todo) == 8 and third.todo[1].parameters == {"size": 5, "title": "b"}
    assert third.todo[1].target == tmp_path / "build" / "00_good__size-5_title-b.ipynb"
    assert (third.jobs, third.timeout, third.fail_fast, first.jobs, first.timeout, first.fail_fast) == (
        3,
        1.5,
        True,
        os.cpu_count(),
        None,
        False,
    )


def test_results_of_a_profile_have_a_folder_of_their_own(notebook, tmp_path, planned, monkeypatch):
    notebook(parameters=SIZE)
    monkeypatch.chdir(tmp_path)
    for options in ([], ["--profile", "quick"], ["--out", "here"]):
        main(["run", *options])
    assert [call.out for call in planned] == [tmp_path / "build", tmp_path / "build" / "quick", tmp_path / "here"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["99"], "chapter must be one of '00_good', '01_none', got '99'"),
        (["00_god"], "did you mean '00_good'"),
        (["--profile", "quik"], "did you mean 'quick'"),
        (
            ["00", "-p", "sise", "3"],
            "parameter of 00_good must be one of 'size', 'title', got 'sise' (did you mean 'size'",
        ),
        (["00", "-p", "size", "big"], "size of 00_good must be a whole number from 1 to 10, got 'big'"),
        (["00", "-p", "size", "-1e-4"], "size of 00_good must be a whole number from 1 to 10, got '-1e-4'"),
        (["00", "-p", "size", "11"], "size of 00_good must be a whole number from 1 to 10, got '11'"),
        (["00", "--sweep", "sise=1,2"], "did you mean 'size'"),
        (["00", "--sweep", "size=1,2,30"], "must be a whole number from 1 to 10, got '30'"),
        (["00", "--sweep", "size"], "sweep must be name=value,value,..., got 'size'"),
        (["-p", "size", "3"], "01_none has no parameters, got 'size'"),
        (["00", "-f", "nowhere.yaml"], "the parameter file nowhere.yaml cannot be read: No such file or directory"),
    ],
)
def test_a_mistake_gets_a_sentence_and_nothing_is_started(notebook, tmp_path, planned, capsys, arguments, message):
    notebook(parameters=SIZE), notebook("a = 1", name="01_none")
    assert main(["run", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not planned and not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--jobs", "0"],
        ["run", "--jobs", "x"],
        ["run", "--timeout", "-1"],
        ["run", "--timeout", "nan"],
        ["run", "-p", "size"],
        ["run", "--fail-fast", "--keep-going"],
        ["study", "--workers", "0"],
        ["runn"],
        [],
    ],
)
def test_what_the_command_line_does_not_know_is_a_mistake(arguments, planned, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2 and not planned
    assert "usage: kscore" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["run"],
        ["study"],
        ["publish"],
        ["report"],
        ["course", "student", "here"],
        ["course", "check", "this"],
        ["status"],
    ],
    ids=" ".join,
)
def test_outside_of_a_checkout_every_command_says_that_it_needs_one(monkeypatch, capsys, planned, arguments):
    monkeypatch.setattr(project, "is_checkout", lambda: False)
    assert main(arguments) == 2
    words = [word for word in arguments if word not in ("here", "this")]
    assert capsys.readouterr().err.startswith(f"kscore: kscore {' '.join(words)} needs a checkout of the project")
    assert not planned


@pytest.mark.parametrize(
    ("command", "package"),
    [
        ("list", "yaml"),
        ("status", "psutil"),
        ("run", "nbconvert"),
        ("run", "papermill"),
        ("run", "ipykernel"),
        ("run", "sphinx"),
        ("run", "sphinxcontrib.bibtex"),
        ("report", "jupytext"),
        ("study", "pandas"),
        ("course check", "papermill"),
    ],
)
def test_a_package_that_is_missing_is_named(notebook, tmp_path, command_line, command, package):
    notebook(name="11_replication_report")
    file = [tmp_path / "mine.ipynb"] if command == "course check" else []
    missing = RUNNER.replace("import kscore.project", f"import kscore.project\nsys.modules[{package!r}] = None")
    begun = command_line(*command.split(), *file, script=missing)
    words = begun.communicate(timeout=PATIENCE)[1]
    assert begun.returncode == 1 and words.count("\n") == 1
    assert words.startswith(f"kscore: {package} is not installed, and `kscore {command}` needs it: ")


def test_other_commands_tell_mistakes_too(notebook, capsys):
    notebook()
    assert main(["study", "cartpol_ppo"]) == 2
    assert "did you mean 'cartpole_ppo'" in capsys.readouterr().err
    assert main(["publish", "--from", "nowhere"]) == 2
    assert "does not exist: run the chapter first" in capsys.readouterr().err


def test_a_listener_that_leaves_early_is_no_trouble(command_line, tmp_path, nobody):
    told = command_line("status", "--out", tmp_path, stdout=nobody)
    assert (told.communicate()[1], told.returncode) == ("", 1)


NOISY = """import os, sys
os.write(1, b"one"), os.write(2, b"two"), os.system("echo three; echo four >&2")
print("five", file=sys.stderr)"""


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["closed", "left"])
def test_work_does_not_need_anybody_who_listens(notebook, tmp_path, command_line, nobody, streams):
    source = notebook(NOISY, "print('six')")
    out, closed = tmp_path / "out", CLOSED if streams == "closed" else ()
    assert command_line("run", "--no-pages", "--out", out, before=closed, stdout=nobody, stderr=nobody).wait() == 0
    assert latest(out)["00_good"]["status"] == "ok"
    assert "five\n" in texts(out / source.name) and "six\n" in texts(out / source.name)
    notebook("1 / 0")
    assert command_line("run", "--no-pages", "--out", out, before=closed, stdout=nobody, stderr=nobody).wait() == 1
    assert latest(out)["00_good"]["error"] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("streams", ["closed", "left"])
def test_a_mistake_is_a_mistake_although_nobody_listens(notebook, command_line, nobody, streams):
    notebook()
    without = CLOSED if streams == "closed" else ()
    assert command_line("run", "99", before=without, stdout=nobody, stderr=nobody).wait() == 2


def test_what_is_for_a_closed_stream_does_not_go_to_another(notebook, command_line):
    notebook()
    begun = command_line("run", "99", before=("bash", "-c", 'exec "$0" "$@" 2>&-'))
    assert begun.communicate()[0] == "" and begun.returncode == 2


def test_a_full_disk_in_the_place_of_standard_output_does_not_end_the_work(notebook, tmp_path, command_line):
    notebook("1")
    with open("/dev/full", "w") as full:
        begun = command_line("run", "--no-pages", "--out", tmp_path / "out", stdout=full)
        words = begun.communicate(timeout=PATIENCE)[1]
    assert begun.returncode == 0 and latest(tmp_path / "out")["00_good"]["status"] == "ok"
    assert "standard output could not be written to: No space left on device" in words


def test_a_letter_that_standard_output_lacks_is_spelled_out(notebook, command_line, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    notebook(parameters="size: int = 1  # of λ")
    listed = command_line("list")
    assert "of \\u03bb" in listed.communicate(timeout=PATIENCE)[0] and listed.returncode == 0


def test_where_there_are_no_chapters_none_is_run(collection, tmp_path, capsys):
    assert main(["run", "--no-pages", "--out", str(tmp_path / "out")]) == 0
    assert "notebook  status" in capsys.readouterr().out


def test_a_chapter_that_is_being_run_is_not_run_again(notebook, tmp_path, planned, capsys):
    made = task(notebook(parameters=SIZE), tmp_path / "build")
    StatusFile(made.target.parent).begin(made)
    assert main(["run"]) == 2
    assert f"00_good is being run into {made.target.parent} already, by process {os.getpid()}" in capsys.readouterr()[1]
    assert main(["run", "--sweep", "size=1"]) == 0  # another task


@pytest.mark.parametrize("command", ["run", "publish"])
def test_a_pair_that_was_not_synced_is_refused_and_left_alone(notebook, planned, capsys, command):
    source = notebook("print('one')")
    script = source.with_suffix(".py")
    script.write_text(script.read_text() + "\n# %%\nnew = 1\n")
    before = script.read_bytes(), source.read_bytes()
    assert main([command, "00"]) == 2
    assert "00_good.ipynb and 00_good.py differ" in capsys.readouterr().err
    assert (script.read_bytes(), source.read_bytes()) == before and not planned


# The command line: telling


def test_list_shows_chapters_parameters_and_how_they_last_ran(notebook, capsys):
    notebook(parameters=SIZE)
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "00_good  (not run yet)",
        "    size: int = 1  how many; a whole number from 1 to 10",
        "    title: str = 'none'  of nothing",
    ]


def test_status_of_an_unused_folder(tmp_path, capsys):
    assert main(["status", "--out", str(tmp_path / "nowhere")]) == 0
    assert "Nothing has been run into" in capsys.readouterr().out and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("command", ["list", "run", "study", "publish", "report", "status"])
def test_every_command_is_listed_and_explains_itself(command, capsys):
    for arguments in (["--help"], [command, "--help"]):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 0
    listed, _, detailed = capsys.readouterr().out.partition(f"usage: kscore {command}")
    assert re.search(rf"^ +{command} +\w", listed, re.M)
    options = {name for name in re.findall(r"--[a-z-]+", detailed) if name != "--help"}
    assert all(re.search(rf"{name}\b[^\n]*\s+[a-z]", detailed) for name in options)


def test_telling_takes_no_time_for_what_only_running_needs():
    code = "import sys; from kscore.__main__ import main; main(['list']); main(['status']); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "kscore.chapters.status" in told
    assert not {"torch", "papermill", "nbformat", "nbconvert", "pandas", "jsonschema"} & set(told)


def test_nothing_waits_for_a_grammar_that_no_notebook_needs():
    code = "import sys, kscore.chapters.pages, papermill, ipykernel.kernelapp; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "jsonschema" in loaded and "lark" not in loaded


def test_progress_elsewhere_is_a_line_now_and_then_and_one_at_the_end(notebook, tmp_path, monkeypatch, capsys):
    made = task(notebook(), tmp_path)
    progress = console.Progress(2)
    progress.cell(made, 1, 3, ""), progress.cell(made, 2, 3, "training: 1 of 5 runs, about 3 s left")
    assert capsys.readouterr().err == "running 00_good: cell 1 of 3\n"
    monkeypatch.setattr(progress, "OFTEN", 0.0)
    progress.cell(made, 2, 3, "training: 2 of 5 runs, about 2 s left")
    progress.end(Outcome("00_good", "failed", 7.0))
    assert capsys.readouterr().err == (
        "running 00_good: cell 2 of 3, training: 2 of 5 runs, about 2 s left\n00_good: failed, 7 s (1 of 2)\n"
    )


def test_progress_on_a_terminal_is_a_line_of_what_is_running(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    first, second = task(notebook(), tmp_path), task(notebook(name="01_more"), tmp_path)
    progress = console.Progress(2)
    with contextlib.redirect_stderr(io.StringIO()) as terminal:
        terminal.isatty = lambda: True
        progress.cell(first, 1, 3, ""), progress.cell(second, 3, 3, "training"), progress.cell(first, 2, 3, "")
        progress.end(Outcome("01_more", "ok", 7.0)), progress.end(Outcome("00_good", "ok", 8.0))
    assert terminal.getvalue().split(console.AGAIN) == [
        "",
        "00_good: cell 1 of 3",
        *(f"00_good: cell {cell} of 3 | 01_more: cell 3 " for cell in (1, 2)),
        "01_more: ok, 7 s (1 of 2)\n",
        "00_good: cell 2 of 3",
        "00_good: ok, 8 s (2 of 2)\n",
        "",
    ]


WORK = """import os, time
from kscore import progress
with progress.of(3, "run", "training") as done:
    done()
    while not os.path.exists({go!r}): time.sleep(0.02)
"""
OFTEN = RUNNER.replace(
    "from kscore.__main__ import main",
    """import kscore.__main__
from kscore.__main__ import main
kscore.console.Progress.OFTEN = 0""",
)


@pytest.mark.parametrize("terminal", [False, True])
def test_it_is_told_how_far_the_work_in_a_cell_is(notebook, tmp_path, command_line, monkeypatch, terminal):
    go, said = tmp_path / "go", ""
    source = notebook("print('first')", WORK.format(go=str(go)))
    monkeypatch.setenv("COLUMNS", "200")
    ours, theirs = pty.openpty() if terminal else os.pipe()
    begun = command_line("run", "--no-pages", "--out", tmp_path, "--timeout", PATIENCE, script=OFTEN, stderr=theirs)
    os.close(theirs)
    with open(ours, encoding="utf-8", newline="") as words:
        with contextlib.suppress(OSError):  # which is how a terminal ends
            while part := words.read(1):
                said += part
                if said.endswith(" left"):
                    go.touch()
    assert begun.wait() == 0, said
    where = "00_good: cell 3 of 3, training: 1 of 3 runs, about "
    ends, again = ("\r\n", console.AGAIN) if terminal else ("\n", "running ")
    assert f"{again}00_good: cell 1 of 3" in said and f"{again}00_good: cell 2 of 3" in said
    assert f"{again}{where}" in said
    assert re.search(rf"00_good: ok, \d+ s \(1 of 1\){ends}", said.partition(where)[2])
    *_, last = nbformat.read(tmp_path / source.name, as_version=4).cells
    assert [output.data["text/plain"] for output in last.outputs] == ["training: 0 of 3 runs"]  # the page has it too


# Status


def test_a_damaged_status_is_passed_over(notebook, tmp_path):
    made = task(notebook(), tmp_path)
    status = StatusFile(tmp_path)
    began = status.begin(made)
    with status.path.open("ab") as file:
        file.write(b'\xff\xfe\n[]\n5\nnull\n{"name": "00_good"}\n{"status": "ok"}\n{"name": [], "status": "ok"}\n{"na')
    assert latest(tmp_path)["00_good"]["status"] == "running"
    status.end(began, Outcome(made.name, "ok", 1.0))
    assert latest(tmp_path)["00_good"]["status"] == "ok"  # it has a line of its own


@pytest.mark.parametrize(("runner", "started"), [(2**22 + 1, 5.0), (1, 5.0), (None, 0)])
def test_what_began_under_a_runner_that_is_gone_was_interrupted(tmp_path, runner, started):
    entry = {"name": "a", "status": "running", "time": "t", "runner": runner, "runner_started": started}
    (tmp_path / STATUS).write_text(json.dumps(entry))
    assert latest(tmp_path)["a"]["status"] == "interrupted"


@pytest.mark.parametrize(("younger", "status"), [(0, "running"), (0.9, "running"), (60, "interrupted")])
def test_a_runner_is_known_by_its_number_and_its_birth(tmp_path, younger, status):
    entry = {
        "name": "a",
        "status": "running",
        "time": "t",
        "runner": os.getpid(),
        "runner_started": psutil.Process().create_time() - younger,
    }
    (tmp_path / STATUS).write_text(json.dumps(entry))
    assert latest(tmp_path)["a"]["status"] == status


@pytest.mark.parametrize("command", [["run", "--no-pages"], ["status"], ["list"], ["publish"]])
def test_a_pipe_in_the_place_of_the_status_is_not_waited_for(notebook, tmp_path, capsys, command):
    notebook()
    (tmp_path / "build").mkdir()
    os.mkfifo(tmp_path / "build" / STATUS)
    assert main(command) == 2
    assert f"status must be a file of JSON lines, got {tmp_path / 'build' / STATUS}" in capsys.readouterr().err


# Publishing


@pytest.fixture
def executed(tmp_path):
    """Return a chapter's execution, made by hand: outputs in, and what else is to be changed."""

    def make(source, *outputs, change=lambda content: None):
        content = nbformat.read(source, as_version=4)
        codes = [cell for cell in content.cells if cell.cell_type == "code"]
        for number, (cell, output) in enumerate(zip(codes, outputs, strict=False), 1):
            cell.outputs, cell.execution_count = [output], number
            cell.metadata["papermill"] = {"status": "completed"}
        change(content)
        path = tmp_path / "build" / source.name
        path.parent.mkdir(exist_ok=True)
        nbformat.write(content, path)
        return path

    return make


HELLO = new_output("stream", text="hello\n")


def picture(alt):
    png = base64.b64encode(b"a picture").decode()
    return new_output("display_data", {"image/png": png}, metadata={"image/png": {"alt": alt}})


def test_publish_copies_outputs_and_nothing_else(notebook, executed, collection, capsys):
    source = notebook("print('hello')")
    executed(source, HELLO)
    before = nbformat.read(source, as_version=4)
    assert main(["publish"]) == 0
    assert capsys.readouterr().out == "published 00_good\n"
    after = nbformat.read(source, as_version=4)
    assert after.cells[1].outputs == [HELLO] and after.cells[1].execution_count == 1
    assert [(c.id, c.source, c.metadata) for c in after.cells] == [(c.id, c.source, c.metadata) for c in before.cells]
    assert sorted(path.name for path in collection.iterdir()) == ["00_good.ipynb", "00_good.py", "profiles.toml"]


def test_publishing_again_changes_nothing_although_pandas_names_its_tables_at_random(notebook, executed):
    source, published = notebook("pd.DataFrame({'a': [1]}).style"), []
    for name in ("T_1a2b3", "T_c4d5e"):
        table = {
            "text/plain": f"<pandas.io.formats.style.Styler at 0x{name}>",
            "text/html": f'<table id="{name}"><style>#{name}_row0 {{}}</style></table>',
        }
        executed(source, new_output("execute_result", table))
        main(["publish"])
        published.append(source.read_bytes())
    assert published[0] == published[1] and b"T_" in published[0] and b"0xT_" not in published[0]


def edit(content):
    content.cells[1].source = "x = 3"


def set_parameters(content):
    content.cells.insert(1, nbformat.v4.new_code_cell("x = 2", execution_count=1))


def stop_early(content):
    content.cells[1].execution_count = None


def fail(content):
    content.cells[1].outputs = [new_output("error", ename="ZeroDivisionError", evalue="", traceback=[])]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit, "run it again before publishing"),
        (set_parameters, "run it again before publishing"),
        (stop_early, "did not run to its end: cell 2 was not executed, or raised an error"),
        (fail, "did not run to its end: cell 2 was not executed, or raised an error"),
    ],
)
def test_publish_refuses_what_is_not_the_chapter_and_leaves_all_alone(notebook, executed, capsys, change, message):
    sources = [notebook("y = 1"), notebook("x = 1", name="01_bad")]
    executed(sources[0], HELLO), executed(sources[1], HELLO, change=change)
    before = [source.read_bytes() for source in sources]
    assert main(["publish"]) == 2
    assert message in capsys.readouterr().err
    assert [source.read_bytes() for source in sources] == before


@pytest.mark.parametrize("status", ["timeout", "interrupted", "failed"])
def test_publish_refuses_a_run_that_did_not_end_well_whatever_its_notebook_looks_like(
    notebook, executed, tmp_path, capsys, status
):
    source = notebook("x = 1")
    executed(source, HELLO)
    ended(task(source, tmp_path / "build"), status)
    before = source.read_bytes()
    assert main(["publish"]) == 2
    assert f"did not end well ({status}): run it again before publishing" in capsys.readouterr().err
    assert source.read_bytes() == before


def test_publishing_is_all_or_nothing_for_a_chapter(notebook, executed, monkeypatch):
    source = notebook("x = 1")
    executed(source, HELLO)
    before = source.read_bytes()

    def disk_full(content, path):
        path.write_text('{"cells"')
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(nbformat, "write", disk_full)
    assert main(["publish"]) == 1
    assert source.read_bytes() == before


def test_a_tagged_figure_is_published_in_the_folder_of_figures_and_nowhere_else(notebook, executed, collection):
    source = notebook("plot()")
    content = nbformat.read(source, as_version=4)
    content.cells[1].metadata["tags"] = ["figure-file:../../outside.png"]
    nbformat.write(content, source)
    pages.publish([(source, executed(source, picture("a picture")))])
    assert (collection / "figures" / "outside.png").read_bytes() == b"a picture"
    assert not (collection.parent / "outside.png").exists()


# The report


def test_the_report_has_the_alt_text_of_every_figure(notebook, executed, tmp_path):
    phrase = new_output("stream", text=f"{pages.NO_ALT}\n")  # which the exporter writes where there is none
    path = executed(notebook("a", "b", "c"), picture('one "quoted"'), picture("two"), phrase)
    page = pages.write_report(path, tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'alt="one &quot;quoted&quot;"' in page and 'alt="two"' in page


def test_the_report_is_one_file_of_words_and_figures(notebook, executed, tmp_path):
    source = notebook("secret = 1  # a comment", "plots.show()", name="11_replication_report")

    def add_words(content):
        content.cells[1:1] = [
            new_markdown_cell("## Setup"),
            new_markdown_cell("Kept.\n\nText, [05](05_name.ipynb)."),
            new_markdown_cell("**Exercise 1.** Think."),
        ]

    run = executed(source, HELLO, picture("an empty pair of axes"), change=add_words)
    page = pages.write_report(run, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Kept." in page and "hello" in page and 'alt="an empty pair of axes"' in page
    assert "secret" not in page and ">Setup" not in page and "Exercise" not in page
    assert "Text, 05." in page and ".ipynb" not in page  # a printed page leads nowhere
    assert "@page" in page and not re.search(r"(src|href)=.?https?:", page) and "<script" not in page


# Safety

UNSAFE = {"pickle", "marshal", "shelve", "joblib", "dill", "cloudpickle"}
UNSAFE_CALLS = {
    "eval",
    "exec",
    "os.system",
    "torch.load",
    "np.load",
    "pd.read_pickle",
    "yaml.unsafe_load",
    "yaml.full_load",
}
BY_DESIGN = {"kscore/chapters/judge.py": {"exec"}}  # of the checks of a chapter, in the kernel that runs the chapter


@pytest.mark.parametrize("path", sorted((ROOT / "kscore").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_unpickles_or_evaluates_what_a_file_holds(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not {alias.name for node in imports for alias in node.names} & UNSAFE
    assert not {node.module for node in imports if isinstance(node, ast.ImportFrom)} & UNSAFE
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    unsafe = {ast.unparse(call.func) for call in calls} & UNSAFE_CALLS
    assert unsafe == BY_DESIGN.get(str(path.relative_to(ROOT)), set())
    assert all("Loader" in ast.unparse(call) for call in calls if ast.unparse(call.func) == "yaml.load")
