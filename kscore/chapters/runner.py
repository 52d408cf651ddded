"""Run chapters unattended: each in a process of its own, several at once, with a status that tells the truth."""

import functools
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import psutil

from kscore import paths, progress
from kscore.chapters import notebooks
from kscore.chapters.status import Busy, Outcome, StatusFile, Task

DEEPEST = 80  # letters of a folder for temporary files below which sockets have room
Watcher = Callable[[Task, int, int, str], None]
"""Called with a task, the cell that it has come to, how many cells it has, and how far the work in that cell is."""


def tasks(chosen: Iterable[Path], parameters: dict[str, dict], combinations: Iterable[dict], out: Path) -> list[Task]:
    """Return the tasks of chapters × combinations; each has a file of its own below the folder."""
    chosen, combinations = list(chosen), list(combinations)
    paths.folder("out", out)
    made = [
        Task(source, out / f"{source.stem}{_suffix(combination)}.ipynb", parameters.get(source.stem, {}) | combination)
        for source in chosen
        for combination in combinations
    ]
    if copies := [task.target for task in made if notebooks.is_student_copy(task.target)]:
        raise ValueError(f"out must not hold student copies under the names of chapters, but {copies[0]} is one")
    return made


def _suffix(combination: dict[str, object]) -> str:
    """Return a part of a file name that tells combinations apart and can lead nowhere else."""
    if not combination:
        return ""
    words = "_".join(f"{name}-{value}" for name, value in combination.items())
    plain = re.sub(r"[^A-Za-z0-9._+-]", "-", words)[:80]
    clear = plain == words and not any("_" in str(value) for value in combination.values())
    return f"__{plain}" if clear else f"__{plain}-{hashlib.sha256(repr(combination).encode()).hexdigest()[:8]}"


def need_packages() -> None:
    """Refuse to begin without the packages that only the other processes import, which could not say what they lack."""
    for name in ("papermill", "ipykernel"):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run(
    todo: list[Task],
    out: Path,
    *,
    jobs: int = 1,
    timeout: float | None = None,
    fail_fast: bool = False,
    watch: Watcher = lambda *_: None,
    ended: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Execute the tasks, `jobs` at once, and return how each ended, in their order.

    `watch` is told how far each of them is, and `ended` how it ended. On Ctrl-C the kernels are ended, what was running
    is recorded as interrupted, and KeyboardInterrupt goes on.
    """
    need_packages()
    status = StatusFile(out)
    stop = threading.Event()

    def do(task: Task) -> Outcome:
        if stop.is_set():
            return Outcome(task.name, "not begun")
        outcome = _do(task, status, timeout, watch, stop)
        if fail_fast and not outcome.good:
            stop.set()  # here, before this thread takes the next task
        ended(outcome)
        return outcome

    return at_once(do, todo, jobs, stop)


def at_once(do: Callable[[object], object], todo: Iterable[object], jobs: int, stop: threading.Event) -> list:
    """Return what becomes of each, `jobs` at once, in their order; what ends the waiting is a word to stop."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(do, one) for one in todo]
        try:
            wait(futures)
        except BaseException:
            stop.set()
            raise
    return [future.result() for future in futures]


def _do(task: Task, status: StatusFile, timeout: float | None, watch: Watcher, stop: threading.Event) -> Outcome:
    """Execute one task and write its status; what cannot be written down has not been done."""
    try:
        began = status.begin(task)
        outcome = supervise(task, timeout, watch, stop)
        status.end(began, outcome)
        return outcome
    except Busy as claimed:
        return Outcome(task.name, "not begun", error=str(claimed))
    except OSError as trouble:
        return Outcome(task.name, "failed", error=f"{trouble.strerror}: {trouble.filename or status.path.parent}")


def supervise(
    task: Task, timeout: float | None = None, watch: Watcher = lambda *_: None, stop: threading.Event | None = None
) -> Outcome:
    """Execute one task in its own process; end it when its time is up or everything is to stop."""
    started = time.perf_counter()
    ended, stop, reason = threading.Event(), stop or threading.Event(), []
    with tempfile.TemporaryDirectory(prefix="k", dir=_shallow(), ignore_cleanup_errors=True) as scratch:
        note = str(Path(scratch) / "progress.json")
        child = subprocess.Popen(
            [sys.executable, "-m", "kscore.chapters.execute"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=_environment(note),
        )
        end = functools.partial(_end, child, note)
        watchdog = threading.Thread(target=_watchdog, args=(end, ended, stop, timeout, reason), daemon=True)
        watchdog.start()
        try:
            last, cell = _listen(child, task, scratch, watch)
        finally:
            ended.set()
            watchdog.join()
            end()
    return _outcome(task, last, cell, reason, time.perf_counter() - started)


def _shallow() -> str | None:
    """Return a folder for sockets, whose paths may have some hundred letters; none if the usual one will do."""
    return "/tmp" if len(os.fsencode(tempfile.gettempdir())) > DEEPEST else None


def _environment(note: str) -> dict[str, str]:
    """Return the environment of a chapter: its asserts are checked, and no code comes from where one happens to be."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}
    return inherited | {"PYTHONSAFEPATH": "1", progress.NOTE: note}


def _listen(child: subprocess.Popen, task: Task, scratch: str, watch: Watcher) -> tuple[dict | None, int | None]:
    """Hand the task over and follow its events; return the last word, if there was one, and the last cell begun."""
    cell = None
    try:
        child.stdin.write(
            json.dumps(
                {
                    "source": str(task.source),
                    "target": str(task.target),
                    "parameters": task.parameters,
                    "scratch": scratch,
                }
            )
            + "\n"
        )
        child.stdin.flush()
    except BrokenPipeError:
        return None, None
    for line in child.stdout:
        if not line.endswith("\n"):
            break  # it was killed in the middle of a word
        event = json.loads(line)
        if event["event"] == "end":
            return event, cell
        cell = event["cell"]
        watch(task, cell, event["cells"], event["doing"])
    return None, cell


def _watchdog(
    end: Callable[[], None], ended: threading.Event, stop: threading.Event, timeout: float | None, reason: list[str]
) -> None:
    """End a task when its time is up, or when everything is to stop, and note why."""
    deadline = time.monotonic() + timeout if timeout else float("inf")
    while not ended.wait(0.1):
        if stop.is_set() or time.monotonic() > deadline:
            reason.append("interrupted" if stop.is_set() else "timeout")
            end()
            return


def _end(child: subprocess.Popen, note: str) -> None:
    """End a child and everything that it has started; the child first, so that it has no time to wonder."""
    family = started_by(child.pid, note)
    child.kill()
    kill(family)
    child.wait()


def started_by(pid: int, note: str) -> list[psutil.Process]:
    """Return all that a process has started: its kernel, the kernel's worker processes, and what cells left behind.

    What has lost its parent, as after `sleep 600 &`, is known by the place of the note, which all of them inherit.
    """
    family = []
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(pid).children(recursive=True)
    strays = [process for process in psutil.process_iter() if process.pid != pid and _note(process) == note]
    return list({process.pid: process for process in [*family, *strays]}.values())


def _note(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(progress.NOTE)
    except psutil.Error:  # gone, or of another user
        return None


def kill(processes: list[psutil.Process]) -> None:
    """Kill processes and wait until they are gone."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=10)


def _outcome(task: Task, last: dict | None, cell: int | None, reason: list[str], seconds: float) -> Outcome:
    if last is not None and last["status"] == "ok":
        return Outcome(task.name, "ok", seconds)
    if last is not None:
        return Outcome(task.name, "failed", seconds, last["error"], last.get("cell", cell))
    if reason == ["timeout"]:
        return Outcome(task.name, "timeout", seconds, f"stopped after {seconds:.0f} s", cell)
    if reason:
        return Outcome(task.name, "interrupted", seconds, "stopped before its end", cell)
    return Outcome(task.name, "failed", seconds, "the process that executed it died: killed, or out of memory", cell)


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as an aligned table of notebook, status and seconds."""
    width = max([len("notebook"), *(len(o.name) for o in outcomes)])
    lines = [f"{'notebook':{width}}  {'status':11}  seconds"]
    lines += [f"{o.name:{width}}  {o.status:11}  {o.seconds:7.1f}" for o in outcomes]
    return "\n".join(lines)
