"""What the tests of running chapters share: small chapters in place of the real ones, and a look for what is left.

What takes seconds to import is imported where it is used: other tests load this file too.
"""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from kscore import __main__, options, project
from kscore.chapters import notebooks, parameters, status

PROFILES = "[quick.00_good]\nsize = 2\n\n[full.00_good]\nsize = 9\n"

RUNNER = """
import signal, sys
from pathlib import Path
import kscore.project
kscore.project.NOTEBOOKS = Path(sys.argv[1])
from kscore.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
sys.exit(main(sys.argv[2:]))
"""


settings.register_profile("trial", max_examples=1000, deadline=None)  # ten times the usual; for tests/faults/trial.py


def pytest_configure(config: pytest.Config) -> None:
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # a `make` that a test starts is no part of `make test`
        os.environ.pop(name, None)
    config.addinivalue_line("markers", "long: takes many seconds, and is begun before the others")
    if config.pluginmanager.hasplugin("xdist"):
        config.option.maxschedchunk = 1  # a worker is given a test at a time: none sits on a heap while another is idle


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long tests, so that the short ones fill up what is left and all workers end together."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture
def plain_loop(monkeypatch) -> None:
    """Let the plain loop play, however much this process has trained before: for tests that replace parts of it."""
    from kscore.rl import compiled

    monkeypatch.setattr(compiled, "ENOUGH", float("inf"))


@pytest.fixture
def collection(tmp_path, monkeypatch) -> Path:
    """An empty folder in place of the real chapters, with profiles; what they are executed into may lie beside it."""
    from kscore.chapters import pages

    folder = tmp_path / "notebooks"
    folder.mkdir()
    (tmp_path / status.STATUS).touch()
    (folder / "profiles.toml").write_text(PROFILES)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", folder)
    monkeypatch.setattr(parameters, "PROFILES", folder / "profiles.toml")
    monkeypatch.setattr(pages, "FIGURES", folder / "figures")
    for module in (__main__, options, project):
        monkeypatch.setattr(module, "BUILD", tmp_path / "build")
    return folder


@pytest.fixture
def notebook(collection) -> Callable[..., Path]:
    """Write a chapter from its parameters and code cells, as a pair, and return its path."""
    import jupytext
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    def write(*sources: str, name: str = "00_good", parameters: str = "") -> Path:
        cells = [new_markdown_cell("# Small\n\n[next](08_other.ipynb)")]
        if parameters:
            cells.append(new_code_cell(parameters, metadata={"tags": ["parameters"]}))
        cells += [new_code_cell(source) for source in sources]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = collection / f"{name}.ipynb"
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
        jupytext.write(jupytext.read(path), path.with_suffix(".py"), fmt="py:percent")
        return path

    return write


@pytest.fixture
def chapter(collection) -> Path:
    """A chapter with exercises."""
    import small_chapter

    path = collection / "00_good.ipynb"
    path.write_text(json.dumps(small_chapter.content()))
    return path


@pytest.fixture
def fill(chapter, tmp_path) -> Callable[..., Path]:
    """Write the chapter as a student hands it in: its solutions, but for the answers given by their number."""
    from kscore.chapters import course

    def write(answers: dict[int, str], change: Callable[[list], list] = lambda cells: cells) -> Path:
        cells = notebooks.cells(chapter)
        for one in cells:
            number = course.name(one).removeprefix("00-")
            one["source"] = answers.get(int(number), one["source"]) if number.isdecimal() else one["source"]
        filled = tmp_path / "handed in by somebody.ipynb"
        filled.write_text(json.dumps(notebooks.read(chapter) | {"cells": change(cells)}))
        return filled

    return write


@pytest.fixture
def command_line(collection) -> Callable[..., subprocess.Popen]:
    """Start the command line on the collection in a process of its own, its words in pipes; `before` may wrap it."""
    started = []

    def start(
        *arguments: object,
        before: tuple[str, ...] = (),
        script: str = RUNNER,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> subprocess.Popen:
        command = [*before, sys.executable, "-c", script, str(collection), *map(str, arguments)]
        usual = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}  # kernels mind it
        started.append(subprocess.Popen(command, stdout=stdout, stderr=stderr, text=True, env=usual))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        for words in filter(None, (process.stdout, process.stderr)):
            words.close()  # without reading on: something that is left may hold them


PATIENCE = 120.0  # seconds; nothing that works takes so long, however busy the machine is


@pytest.fixture
def nobody() -> int:
    """The end to write to of a pipe whose other end is closed."""
    theirs, ours = os.pipe()
    os.close(theirs)
    yield ours
    os.close(ours)


CLOSED = ("bash", "-c", 'exec "$0" "$@" <&- >&- 2>&-')  # what to put before a command to start it without any streams


def eventually(condition: Callable[[], object], seconds: float = PATIENCE) -> object:
    """Ask until the answer is yes, and return it; or the last answer when the time is up."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return answer


@pytest.fixture
def descendants(monkeypatch) -> Callable[[], list[psutil.Process]]:
    """Find what was started by a test, by a mark that every process inherits; at its end nothing may be left."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("KSCORE_TEST", mark)
    yield lambda: _marked(mark)
    left = [] if eventually(lambda: not _marked(mark), seconds=30) else _marked(mark)
    described = [process.cmdline() for process in left]
    for process in left:
        process.kill()
    assert not described


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("KSCORE_TEST") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue  # gone, or of another user
    return found
