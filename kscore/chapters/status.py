"""How chapters ended: every task leaves two lines in its folder's `status.jsonl`, that it began, and how it ended.

A task whose second line is missing was interrupted, whatever the notebook that it left behind looks like.
"""

import json
import os
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psutil

from kscore import checks, journal, paths, provenance
from kscore.chapters import notebooks
from kscore.paths import STATUS

STATUSES = ("running", "ok", "failed", "timeout", "interrupted", "not begun", "done before")


class Task(NamedTuple):
    """One execution of a chapter."""

    source: Path
    target: Path
    parameters: dict[str, object]

    @property
    def name(self) -> str:
        """What it is called: the chapter, and what was swept."""
        return self.target.stem


class Outcome(NamedTuple):
    """How a task ended."""

    name: str
    status: str  # "ok", "failed", "timeout", "interrupted", "not begun", or "done before"
    seconds: float = 0.0
    error: str = ""
    cell: int | None = None  # of the executed notebook, where it did not end well

    @property
    def good(self) -> bool:
        """Whether its result is there."""
        return self.status in ("ok", "done before")


class StatusFile:
    """The record of what was begun and how it ended, in one folder; whole lines only, also from several runners."""

    def __init__(self, out: Path) -> None:
        self.path = _file(paths.folder("out", out))
        journal.prepare(self.path)  # fails here, before anything runs, if the folder cannot be written to

    def begin(self, task: Task) -> dict:
        """Claim a task, and return what is known of it now; its chapter and the code may be edited while it runs.

        A task that somebody else is at is refused: looking and claiming are one step, whoever else looks.
        """
        about = {
            "name": task.name,
            "chapter": task.source.stem,
            "parameters": task.parameters,
            "text": _text(task.source),
            "start": _now(),
            **_made_with(),
        }
        runner = {"runner": os.getpid(), "runner_started": _birth(os.getpid()), "host": socket.gethostname()}
        claim = {"time": about["start"], **about, "status": "running", **runner}
        journal.append(self.path, claim, lambda lines: check_free(_latest(lines), task, self.path.parent))
        return about

    def end(self, about: dict, outcome: Outcome) -> None:
        """Note how a task ended."""
        journal.append(self.path, {"time": _now(), **about, **outcome._asdict()})


class Busy(ValueError):
    """A task is being run by somebody else."""


def check_free(entries: dict[str, dict], task: Task, out: Path) -> None:
    """Refuse a task that is being run."""
    entry = entries.get(task.name, {})
    if entry.get("status") == "running":
        raise Busy(
            f"{task.name} is being run into {out} already, by process {entry.get('runner')} on "
            f"{entry.get('host', 'this machine')}"
        )


def _text(source: Path) -> str | None:
    """Return what a chapter says, as a short hash; None if it cannot be read, which executing it will tell."""
    try:
        return notebooks.fingerprint(source)
    except (OSError, ValueError):
        return None


def _made_with() -> dict[str, object]:
    return {"versions": provenance.versions(), "code": provenance.code()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def latest(out: Path) -> dict[str, dict]:
    """Return the last entry of each task of a folder; one that began and whose runner is gone was interrupted."""
    return _latest(journal.lines(_file(out)))


def _file(out: Path) -> Path:
    return journal.file(out / STATUS, "status")


def _latest(lines: Iterable[bytes]) -> dict[str, dict]:
    found = {}
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):  # a torn line: its task has no end, and so was interrupted
            entry = _checked(json.loads(line))
            found[entry["name"]] = entry
    return {
        name: entry | {"status": "interrupted"} if entry["status"] == "running" and not _runs(entry) else entry
        for name, entry in found.items()
    }


def _checked(entry: dict) -> dict:
    """Return an entry if it is one of ours; whatever it says may come to stand on a page."""
    checks.choice("status", entry["status"], STATUSES)
    if Path(entry["name"]).name != entry["name"] or not re.fullmatch(r"[\w.:+-]+", entry["time"]):
        raise ValueError(f"name must be that of a notebook and time a time, got {entry['name']!r}, {entry['time']!r}")
    for name, kind in (("chapter", str), ("error", str), ("seconds", int | float), ("parameters", dict)):
        if not isinstance(entry.get(name), kind | None):
            raise ValueError(f"{name} must be of another kind, got {entry[name]!r:.80}")
    return entry


def _runs(entry: dict) -> bool:
    """Say whether the runner of an entry is still there: a process of its number and age, but for a clock put right.

    Of a process on another machine nothing is known: it counts as running.
    """
    if entry.get("host", socket.gethostname()) != socket.gethostname():
        return True
    birth = _birth(entry.get("runner"))
    return birth is not None and abs(birth - entry.get("runner_started", 0)) < 2


def _birth(pid: int) -> float | None:
    """Return when a process was started; None if it is gone."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def due(todo: list[Task], entries: dict[str, dict]) -> list[Task]:
    """Return those of some tasks that have not been done before.

    One has if it ended well, with the same text, parameters, code and packages, and if its notebook is still there.
    """
    made_with = _made_with()  # these are asked for once, however many tasks there are
    texts = {source: _text(source) for source in {task.source for task in todo}}

    def done(task: Task) -> bool:
        entry = entries.get(task.name, {})
        wanted = {"status": "ok", "text": texts[task.source], "parameters": task.parameters, **made_with}
        return all(entry.get(name) == value for name, value in wanted.items()) and task.target.exists()

    return [task for task in todo if not done(task)]
