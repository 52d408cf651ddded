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

sys.modules["rfc3987_syntax"] = None  # jsonschema can do without it, and importing it takes longer than all the rest

import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from kscore import progress
from kscore.chapters import kernel, runner

EVENTS = os.fdopen(os.dup(sys.stdout.fileno()), "w")  # for this process only,
os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # because kernels inherit standard output


_one_word_at_a_time = threading.Lock()


def say(**event: object) -> None:
    """Write one event."""
    with _one_word_at_a_time:
        EVENTS.write(json.dumps(event) + "\n")
        EVENTS.flush()


NOW: dict[str, int] = {}  # the cell that is running, and how many there are
SOON = 0.5  # seconds between two looks at a note


def _pass_on(note: Path) -> None:
    """Tell what a cell notes about how far it is, whenever that changes."""
    last = None
    while True:
        time.sleep(SOON)
        with suppress(OSError, ValueError):
            words = json.loads(note.read_text(encoding="utf-8"))
            if words and words != last:
                say(event="cell", doing=words, **NOW)
            last = words


class Telling(NBClientEngine):
    """Papermill's own engine, telling which cell is running and, where it leaves a note, how far its work is."""

    @classmethod
    def execute_managed_notebook(cls, nb_man: object, *arguments: object, **options: object) -> object:
        start, note = nb_man.cell_start, Path(os.environ[progress.NOTE])
        threading.Thread(target=_pass_on, args=(note,), daemon=True).start()

        def tell(cell: object, cell_index: int | None = None, **more: object) -> None:
            note.unlink(missing_ok=True)
            NOW.update(cell=cell_index + 1, cells=len(nb_man.nb.cells))
            say(event="cell", doing="", **NOW)
            start(cell, cell_index, **more)

        nb_man.cell_start = tell
        return super().execute_managed_notebook(nb_man, *arguments, **options)


def execute(source: Path, target: Path, parameters: dict, scratch: str) -> dict:
    """Execute a notebook into another file and return how it ended; its kernel listens on no port.

    A cell may say in its metadata how many seconds it may take, as `limit`.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        papermill.execute_notebook(_as_it_is(source), _as_it_is(target), parameters, kernel_name="python3",
                                   config=kernel.settings(scratch), engine_name=Telling.__name__, progress_bar=False,
                                   cwd=None, timeout_func=lambda cell: cell.metadata.get("limit"))
    except PapermillExecutionError as failure:
        return {"status": "failed", "cell": failure.cell_index + 1, "error": f"{failure.ename}: {failure.evalue}"}
    except CellTimeoutError as failure:
        return {"status": "failed", "error": str(failure).splitlines()[0]}
    except DeadKernelError:
        return {"status": "failed", "error": "the kernel died: killed, or out of memory"}
    except OSError as failure:
        return {"status": "failed", "error": f"{failure.strerror}: {failure.filename or target}"}
    except Exception as failure:  # whatever it is, it has to be told, or the status would not be true
        return {"status": "failed", "error": f"{type(failure).__name__}: {failure}"}
    return {"status": "ok"}


def _as_it_is(path: Path) -> str:
    """Write a path so that papermill, which puts parameters in the place of {names}, leaves it alone."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _end_with_parent(scratch: str) -> None:
    """Leave when the other end of standard input closes, and leave nothing behind."""
    sys.stdin.read()
    shutil.rmtree(scratch, ignore_errors=True)
    runner.kill(runner.started_by(os.getpid()))
    os._exit(1)


def main() -> None:
    """Do the task on standard input."""
    task = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, args=(task["scratch"],), daemon=True).start()
    os.environ[progress.NOTE] = str(Path(task["scratch"]) / "progress.json")
    papermill_engines.register(Telling.__name__, Telling)
    say(event="end", **execute(Path(task["source"]), Path(task["target"]), task["parameters"], task["scratch"]))


if __name__ == "__main__":
    main()
