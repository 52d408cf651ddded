"""Execute one notebook in a process of its own, and say on standard output how it goes, a JSON line an event.

`python -m kscore.chapters.execute` reads its task from standard input, {"source", "target", "parameters", "scratch"},
and watches it: when whoever started it is gone, it ends its kernel and itself. Nothing is imported from here.
"""

import json
import os
import shutil
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from kscore import progress
from kscore.chapters import kernel, notebooks, runner

EVENTS = os.fdopen(os.dup(sys.stdout.fileno()), "w")  # for this process only,
os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # because kernels inherit standard output

_one_word_at_a_time = threading.RLock()


def say(**event: object) -> None:
    """Write one event; whoever it was for may be gone, and then this process ends in a moment."""
    with _one_word_at_a_time, suppress(BrokenPipeError):
        EVENTS.write(json.dumps(event) + "\n")
        EVENTS.flush()


NOW = {"cell": 0, "cells": 0, "doing": ""}  # the cell that is running, how many there are, and how far its work is
SOON = 0.5  # seconds between two looks at a note


def _pass_on(note: Path) -> None:
    """Tell what a cell notes about how far it is, whenever that changes."""
    while True:
        time.sleep(SOON)
        with _one_word_at_a_time:  # so that no other cell begins between reading and telling
            doing = _noted(note)
            if doing != NOW["doing"]:
                NOW["doing"] = doing
                say(event="cell", **NOW)


def _noted(note: Path) -> str:
    """Return what a note says; half a note says nothing new."""
    try:
        return json.loads(note.read_text(encoding="utf-8")) or ""
    except OSError:
        return ""
    except ValueError:
        return NOW["doing"]


def _injected(cell: dict) -> bool:
    """Say whether papermill has added a cell, for parameters."""
    return "injected-parameters" in cell["metadata"].get("tags", [])


class Telling(NBClientEngine):
    """Papermill's own engine, telling which cell is running and, where it leaves a note, how far its work is."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: object, *arguments: object, **options: object) -> object:
        start, note = nb_man.cell_start, Path(os.environ[progress.NOTE])
        threading.Thread(target=_pass_on, args=(note,), daemon=True).start()

        def tell(cell: object, cell_index: int | None = None, **more: object) -> None:
            with _one_word_at_a_time:
                note.unlink(missing_ok=True)
                own = [not _injected(other) for other in nb_man.nb.cells]  # the numbers are the chapter's
                NOW.update(cell=sum(own[: cell_index + 1]), cells=sum(own), doing="")
                say(event="cell", **NOW)
            start(cell, cell_index, **more)

        nb_man.cell_start = tell
        return super().execute_managed_notebook(nb_man, *arguments, **options)


def execute(source: Path, target: Path, parameters: dict, scratch: str) -> dict:
    """Execute a notebook into another file and return how it ended; its kernel listens on no port.

    A cell may say in its metadata how many seconds it may take, as `limit`.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        executed = papermill.execute_notebook(
            _as_it_is(source),
            _as_it_is(target),
            parameters,
            kernel_name="python3",
            config=kernel.settings(scratch),
            engine_name=Telling.__name__,
            progress_bar=False,
            cwd=None,
            timeout_func=lambda cell: cell.metadata.get("limit"),
        )
    except PapermillExecutionError as failure:
        return {"status": "failed", "cell": NOW["cell"], "error": f"{failure.ename}: {_said(failure)}"}
    except CellTimeoutError as failure:
        return {"status": "failed", "error": str(failure).splitlines()[0]}
    except DeadKernelError:
        return {"status": "failed", "error": "the kernel died: killed, or out of memory"}
    except OSError as failure:
        return {"status": "failed", "error": f"{failure.strerror}: {failure.filename or target}"}
    except Exception as failure:  # whatever it is, it has to be told, or the status would not be true
        return {"status": "failed", "error": f"{type(failure).__name__}: {failure}"}
    allowed = ("raises-exception" in cell.metadata.get("tags", []) for cell in executed.cells)
    if not any(allowed) and notebooks.unexecuted(executed.cells):  # sys.exit() ends a notebook without a word
        return {"status": "failed", "cell": NOW["cell"], "error": "the chapter ended itself before its last cell"}
    return {"status": "ok"}


def _said(failure: PapermillExecutionError) -> str:
    """Return what an error says; of one without words, where it was raised."""
    where = "not true" if failure.ename == "AssertionError" else "raised by"
    return failure.evalue or f"{where}: {notebooks.failing_line(failure.traceback)}"


def _as_it_is(path: Path) -> str:
    """Write a path so that papermill, which puts parameters in the place of {names}, leaves it alone."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _end_with_parent(scratch: str) -> None:
    """Leave when the other end of standard input closes, and leave nothing behind."""
    sys.stdin.read()
    shutil.rmtree(scratch, ignore_errors=True)
    runner.kill(runner.started_by(os.getpid(), os.environ[progress.NOTE]))
    os._exit(1)


def main() -> None:
    """Do the task on standard input."""
    task = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, args=(task["scratch"],), daemon=True).start()
    papermill_engines.register(Telling.__name__, Telling)
    say(event="end", **execute(Path(task["source"]), Path(task["target"]), task["parameters"], task["scratch"]))


if __name__ == "__main__":
    main()
