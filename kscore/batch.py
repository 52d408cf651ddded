"""Run chapters unattended: each in a process of its own, several at once, with a status that tells the truth.

Every task leaves two lines in the folder's `status.jsonl`: that it began, and how it ended. A task whose second line is
missing was interrupted, whatever the notebook that it left behind looks like.
"""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import nbformat
import psutil

from kscore import provenance

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


class Outcome(NamedTuple):
    """How a task ended."""

    name: str
    status: str  # "ok", "failed", "timeout", "interrupted", or "skipped" where it had been done before
    seconds: float
    error: str = ""
    cell: int | None = None


Watcher = Callable[[Task, int, int], None]
"""Called with a task, the cell that it has come to, and how many cells it has."""


def tasks(chosen: Iterable[Path], parameters: dict[str, dict], combinations: Iterable[dict], out: Path) -> list[Task]:
    """Return the tasks of chapters × combinations; each has a file of its own below the folder."""
    return [Task(source, out / f"{source.stem}{_suffix(combination)}.ipynb",
                 parameters.get(source.stem, {}) | combination)
            for source in chosen for combination in combinations]


def _suffix(combination: dict[str, object]) -> str:
    """Return a part of a file name that tells combinations apart and can lead nowhere else."""
    if not combination:
        return ""
    words = "_".join(f"{name}-{value}" for name, value in combination.items())
    plain = re.sub(r"[^A-Za-z0-9._+-]", "-", words)[:80]
    return f"__{plain}" if plain == words else f"__{plain}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"


def run(todo: list[Task], out: Path, *, jobs: int = 1, timeout: float | None = None, fail_fast: bool = False,
        watch: Watcher = lambda *_: None) -> list[Outcome]:
    """Execute the tasks, `jobs` at once, and return how each ended, in their order.

    On Ctrl-C the kernels are ended, what was running is recorded as interrupted, and KeyboardInterrupt goes on.
    """
    status = StatusFile(out)
    stop = threading.Event()
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_supervise, task, status, timeout, watch, stop) for task in todo]
        try:
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                if fail_fast and any(future.result().status not in ("ok", "skipped") for future in done):
                    stop.set()
        except BaseException:
            stop.set()
            raise
    return [future.result() for future in futures]


def _supervise(task: Task, status: "StatusFile", timeout: float | None, watch: Watcher,
               stop: threading.Event) -> Outcome:
    """Execute one task in its own process; end it when its time is up or everything is to stop."""
    started = time.perf_counter()
    if stop.is_set():
        return Outcome(task.name, "interrupted", 0.0, "not begun")
    status.begin(task)
    child = subprocess.Popen([sys.executable, "-m", "kscore.execute"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True, start_new_session=True)
    ended = threading.Event()
    reason: list[str] = []
    watchdog = threading.Thread(target=_watchdog, args=(child, ended, stop, timeout, reason), daemon=True)
    watchdog.start()
    try:
        last, cell = _listen(child, task, watch)
    finally:
        ended.set()
        watchdog.join()
        _end(child)
    outcome = _outcome(task, last, cell, reason, time.perf_counter() - started)
    status.end(task, outcome)
    return outcome


def _listen(child: subprocess.Popen, task: Task, watch: Watcher) -> tuple[dict | None, int | None]:
    """Hand the task over and follow its events; return the last word, if there was one, and the last cell begun."""
    cell = None
    try:
        child.stdin.write(json.dumps({"source": str(task.source), "target": str(task.target),
                                      "parameters": task.parameters}) + "\n")
        child.stdin.flush()
    except BrokenPipeError:
        return None, None
    for line in child.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # something else that was printed
        if event.get("event") == "cell":
            cell = event["cell"]
            watch(task, cell, event["cells"])
        elif event.get("event") == "end":
            return event, cell
    return None, cell


def _watchdog(child: subprocess.Popen, ended: threading.Event, stop: threading.Event, timeout: float | None,
              reason: list[str]) -> None:
    """End the child when its time is up, or when everything is to stop, and note why."""
    deadline = time.monotonic() + timeout if timeout else float("inf")
    while not ended.wait(0.1):
        if stop.is_set() or time.monotonic() > deadline:
            reason.append("interrupted" if stop.is_set() else "timeout")
            _end(child)
            return


def _end(child: subprocess.Popen) -> None:
    """Kill a child and everything that it has started: its kernel, and the kernel's worker processes."""
    try:
        family = [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        family = []
    for process in family:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    child.wait()


def _outcome(task: Task, last: dict | None, cell: int | None, reason: list[str], seconds: float) -> Outcome:
    if last is not None:
        return Outcome(task.name, last["status"], seconds, last.get("error", ""), last.get("cell"))
    if reason == ["timeout"]:
        return Outcome(task.name, "timeout", seconds, f"stopped after {seconds:.0f} s", cell)
    if reason:
        return Outcome(task.name, "interrupted", seconds, "stopped by the user", cell)
    return Outcome(task.name, "failed", seconds, "the process that executed it died: killed, or out of memory", cell)


class StatusFile:
    """The record of what was begun and how it ended, in one folder; whole lines only, also from several runners."""

    def __init__(self, out: Path) -> None:
        self.path = out / STATUS
        out.mkdir(parents=True, exist_ok=True)
        with self.path.open("a"):  # fails here, before anything runs, if the folder cannot be written to
            pass

    def begin(self, task: Task) -> None:
        """Note that a task begins."""
        self._append({"name": task.name, "status": "running", "runner": os.getpid(),
                      "runner_started": psutil.Process().create_time(), **_about(task)})

    def end(self, task: Task, outcome: Outcome) -> None:
        """Note how a task ended."""
        self._append({**outcome._asdict(), **_about(task), "versions": provenance.versions()})

    def _append(self, entry: dict) -> None:
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="seconds"), **entry}) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(line)


def _about(task: Task) -> dict:
    return {"chapter": task.source.stem, "parameters": task.parameters, "text": fingerprint(task.source)}


def fingerprint(source: Path) -> str:
    """Return what a chapter says, as a short hash of its cells; outputs do not count."""
    cells = nbformat.read(source, as_version=4).cells
    return hashlib.sha256(json.dumps([(cell.cell_type, cell.source) for cell in cells]).encode()).hexdigest()[:16]


def latest(out: Path) -> dict[str, dict]:
    """Return the last entry of each task of a folder; one that began and whose runner is gone was interrupted."""
    found = {}
    path = out / STATUS
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
            found[entry["name"]] = entry
        except (ValueError, KeyError, TypeError):
            continue  # a torn line: its task has no end, and so was interrupted
    return {name: entry if entry["status"] != "running" or _alive(entry) else entry | {"status": "interrupted"}
            for name, entry in found.items()}


def _alive(entry: dict) -> bool:
    try:
        return psutil.Process(entry["runner"]).create_time() == entry["runner_started"]
    except psutil.NoSuchProcess:
        return False


def done(task: Task, entries: dict[str, dict]) -> bool:
    """Say whether a task has been done before: it ended well, with the same text and parameters, and is still there."""
    entry = entries.get(task.name)
    return (entry is not None and entry["status"] == "ok" and entry["parameters"] == task.parameters
            and entry["text"] == fingerprint(task.source) and task.target.exists())


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as an aligned table of notebook, status and seconds."""
    width = max(len("notebook"), *(len(o.name) for o in outcomes))
    lines = [f"{'notebook':{width}}  {'status':11}  seconds"]
    lines += [f"{o.name:{width}}  {o.status:11}  {o.seconds:7.1f}" for o in outcomes]
    return "\n".join(lines)
