"""How chapters ended: every task leaves two lines in its folder's `status.jsonl`, that it began, and how it ended.

A task whose second line is missing was interrupted, whatever the notebook that it left behind looks like.
"""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psutil

from kscore import journal, provenance
from kscore.chapters import notebooks

STATUS = "status.jsonl"


class Task(NamedTuple):
    """One execution of a chapter."""

    source: Path
    target: Path
    parameters: dict[str, object]

    @property
    def name(self) -> str:
        """What it is called: the chapter, and what was swept."""
        return self.target.stem

    @property
    def page(self) -> Path:
        """The HTML page of what it executed."""
        return self.target.with_suffix(".html")


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
        self.path = out / STATUS
        journal.prepare(self.path)  # fails here, before anything runs, if the folder cannot be written to

    def begin(self, task: Task) -> dict:
        """Note that a task begins, and return what is known of it now; its chapter may be edited while it runs."""
        about = {"name": task.name, "chapter": task.source.stem, "parameters": task.parameters,
                 "text": notebooks.fingerprint(task.source), "start": _now()}
        self._append(about, {"status": "running", "runner": os.getpid(), "runner_started": _birth(os.getpid())})
        return about

    def end(self, about: dict, outcome: Outcome) -> None:
        """Note how a task ended."""
        self._append(about, {**outcome._asdict(), "versions": provenance.versions()})

    def _append(self, about: dict, entry: dict) -> None:
        journal.append(self.path, {"time": _now(), **about, **entry})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def latest(out: Path) -> dict[str, dict]:
    """Return the last entry of each task of a folder; one that began and whose runner is gone was interrupted."""
    found = {}
    for line in journal.lines(out / STATUS):
        with suppress(ValueError, KeyError, TypeError):  # a torn line: its task has no end, and so was interrupted
            entry = json.loads(line)
            found[entry["name"]] = entry | {"status": entry["status"], "time": entry["time"]}
    return {name: entry | {"status": "interrupted"} if entry["status"] == "running" and not _runs(entry) else entry
            for name, entry in found.items()}


def _runs(entry: dict) -> bool:
    """Say whether the runner of an entry is still there: a process of its number and age, but for a clock put right."""
    birth = _birth(entry.get("runner"))
    return birth is not None and abs(birth - entry.get("runner_started", 0)) < 2


def _birth(pid: int) -> float | None:
    """Return when a process was started; None if it is gone."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def done(task: Task, entries: dict[str, dict]) -> bool:
    """Say whether a task has been done before: it ended well, with the same text and parameters, and is still there."""
    entry = entries.get(task.name, {})
    return (entry.get("status") == "ok" and entry.get("parameters") == task.parameters
            and entry.get("text") == notebooks.fingerprint(task.source) and task.target.exists() and task.page.exists())
