"""What the command line says to people: results, how it goes, and how far it is.

No stream that was closed, and no listener that has left, ends work or changes what becomes of it.
"""

import os
import shutil
import sys
import threading
import time
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from kscore.chapters.status import Outcome, Task


def open_closed_streams() -> None:
    """Put nothing in the place of a standard stream that was closed, or the next file to be opened would be there."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))


def spell_out() -> None:
    """Let a letter that standard output has no code for be spelled out, as on standard error: not end the work."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def say(words: str) -> None:
    """Print a result of work that has been done, or goes on."""
    try:
        print(words, flush=True)
    except BrokenPipeError:
        speak_to_nobody(sys.stdout)
    except OSError as trouble:  # a full disk, for one
        speak_to_nobody(sys.stdout)
        tell(f"kscore: standard output could not be written to: {trouble.strerror}. The work goes on")


def tell(words: str, end: str = "\n") -> None:
    """Write how it goes, or what went wrong."""
    try:
        print(words, end=end, file=sys.stderr, flush=True)
    except OSError:
        speak_to_nobody(sys.stderr)


def speak_to_nobody(stream: TextIO) -> None:
    """Let what is still to be written to a stream go nowhere."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


AGAIN = "\r\033[K"  # what makes a terminal write over its last line


class Progress:
    """Say how far several notebooks are: on one line where there is a terminal, a line now and then elsewhere."""

    OFTEN = 30.0  # seconds between two lines about the same notebook

    def __init__(self, count: int) -> None:
        self.count, self.ended, self.running, self.told = count, 0, {}, {}
        self.lock = threading.Lock()

    def cell(self, task: "Task", cell: int, cells: int, doing: str) -> None:
        """Say which cell a chapter has come to, and how far the work in it is."""
        self.step(task.name, cell, cells, doing)

    def end(self, outcome: "Outcome") -> None:
        """Say how a chapter ended."""
        self.done(outcome.name, f"{outcome.status}, {outcome.seconds:.0f} s")

    def step(self, name: str, cell: int, cells: int, doing: str = "") -> None:
        """Say which cell a notebook has come to, and how far the work in it is."""
        with self.lock:
            self.running[name] = f"{name}: cell {cell} of {cells}" + (f", {doing}" if doing else "")
            if sys.stderr.isatty():
                self._draw()
            elif time.monotonic() - self.told.get(name, -self.OFTEN) >= self.OFTEN:
                tell(f"running {self.running[name]}")
                self.told[name] = time.monotonic()

    def done(self, name: str, how: str) -> None:
        """Say how a notebook ended."""
        with self.lock:
            self.running.pop(name, None)
            self.ended += 1
            line = f"{name}: {how} ({self.ended} of {self.count})"
            tell(f"{AGAIN}{line}" if sys.stderr.isatty() else line)
            if sys.stderr.isatty():
                self._draw()

    def _draw(self) -> None:
        tell(AGAIN + " | ".join(self.running.values())[: shutil.get_terminal_size().columns - 1], end="")
