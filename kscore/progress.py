"""How far long work is: a bar in a terminal or a notebook, a line now and then elsewhere, a note for a supervisor.

A kernel that executes a chapter is told by KSCORE_PROGRESS where to leave the note; `kscore run` reads it there.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kscore import paths

NOTE = "KSCORE_PROGRESS"
LONGEST = 10_000  # bytes of a note
OFTEN = 30.0  # seconds between two lines where there is no terminal


@contextmanager
def of(total: int, unit: str, doing: str, told: bool = True) -> Iterator[Callable[[], None]]:
    """Follow work of so many units: lend a function to call after each of them."""
    if not told:
        yield lambda: None
    elif _on_a_terminal():
        from tqdm.std import tqdm  # here, because only a terminal has a bar

        with tqdm(total=total, desc=doing, unit=unit, smoothing=0, mininterval=1) as bar:
            yield bar.update
    else:
        lines = (_Bar if _in_a_notebook() else _Lines)(total, unit, doing)
        try:
            yield lines.done
        finally:
            _leave_note(None)


def say(words: str) -> None:
    """Say something, above the bar if there is one, and leave it as a note; the work goes on even if nobody reads."""
    _leave_note(words)
    with suppress(OSError, ValueError, AttributeError):  # nobody reads it
        if _on_a_terminal():
            from tqdm.std import tqdm

            tqdm.write(words, file=sys.stderr)
        else:
            sys.stderr.write(f"{words}\n")  # which `print` would send elsewhere if there is none
        sys.stderr.flush()


def _leave_note(words: str | None) -> None:
    """Leave it for whoever supervises; None when there is nothing more to say."""
    place = os.environ.get(NOTE)
    if place and _is_for_notes(place):
        with suppress(OSError):
            Path(place).write_text(json.dumps(words), encoding="utf-8")


def _is_for_notes(place: str) -> bool:
    """Say whether a note can be left at a place: outside of the project, and over nothing but an earlier note."""
    try:
        path = paths.place(NOTE, place)
        return not path.exists() or path.stat().st_size < LONGEST and isinstance(_read(path), str | None)
    except (OSError, ValueError):
        return False


def _read(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))


def _on_a_terminal() -> bool:
    with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
        return sys.stderr.isatty()
    return False


class _Lines:
    """Say how far it is at the beginning, and then a line now and then; leave a note each time if one is wanted."""

    def __init__(self, total: int, unit: str, doing: str) -> None:
        self.total, self.unit, self.doing, self.count = total, unit, doing, 0
        self.start = self.last = time.monotonic()
        self.tell()

    def tell(self) -> None:
        """Say it, and leave it as a note."""
        say(self.words())

    def done(self) -> None:
        """Count one more."""
        self.count += 1
        now = time.monotonic()
        _leave_note(self.words())
        if now - self.last >= OFTEN and self.count < self.total:
            self.last = now
            self.tell()

    def words(self) -> str:
        """Return in words how far it is, and how long it will take if it goes on like this."""
        said = f"{self.doing}: {self.count} of {self.total} {self.unit}s"
        if not self.count:
            return said
        left = (time.monotonic() - self.start) / self.count * (self.total - self.count)
        return f"{said}, {duration(left)} left"


def _in_a_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return hasattr(ipython and ipython.get_ipython(), "kernel")


class _Bar(_Lines):
    """A bar below the cell of a notebook, which in the end is a sentence."""

    MOMENT = 0.2  # seconds between two looks of the bar

    def __init__(self, total: int, unit: str, doing: str) -> None:
        from IPython.display import display

        self.handle = display({"text/plain": doing}, raw=True, display_id=True)
        super().__init__(total, unit, doing)

    def done(self) -> None:
        """Count one more."""
        self.count += 1
        _leave_note(self.words())
        now = time.monotonic()
        if now - self.last >= self.MOMENT or self.count == self.total:
            self.last = now
            self.tell()

    def tell(self) -> None:
        """Leave the note, and draw the bar as it is now."""
        words = self.words() if self.count < self.total else f"{self.doing}: all of {self.total} {self.unit}s"
        bar = f'<progress value="{self.count}" max="{self.total}" aria-label="{self.doing}"></progress> '
        _leave_note(self.words())
        shown = {"text/plain": words} | ({"text/html": bar + words} if self.count < self.total else {})
        self.handle.update(shown, raw=True)


def duration(seconds: float) -> str:
    """Return a length of time in round words."""
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
