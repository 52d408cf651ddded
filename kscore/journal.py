"""Files of JSON lines that are only ever appended to: runs, and how chapters ended.

Several processes may append at once. What an interruption or a full disk leaves of a line stays there as a damaged line
of its own, for the reader to pass over.
"""

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kscore.project import shown


def file(path: Path, name: str) -> Path:
    """Return the path of a file; refuse what is none, such as a folder, or a pipe that would be waited for."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{name} must be a file of JSON lines, got {path}, which is not one")
    return path


@contextmanager
def alone(path: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Keep others on this machine from working for the same file meanwhile: they wait, and tell so."""
    folder = Path(tempfile.gettempdir()) / f"kscore-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"waiting for another process, which is at work for {shown(path)}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prepare(path: Path) -> None:
    """Make sure that a file can be appended to, before any work is done for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab"):
        pass


def append(path: Path, entry: dict, allowed: Callable[[Iterator[bytes]], None] | None = None) -> None:
    """Append one entry as a line of JSON of its own, and have it on the disk before returning; see `append_line`."""
    append_line(path, json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n", allowed)


def append_line(
    path: Path, line: bytes, allowed: Callable[[Iterator[bytes]], None] | None = None, *, head: bytes = b""
) -> None:
    """Append one line, and have it on the disk before returning; an empty file gets a `head` first.

    `allowed` is given the lines that are there, while nobody else can add one, and may refuse by raising.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if allowed is not None:
                file.seek(0)
                allowed(filter(bytes.strip, file))
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            else:
                line = head + line
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as trouble:
        trouble.filename = str(path)  # a full disk does not name the file
        raise


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines that are not empty; none if there is no file."""
    if path.exists():
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # a line that is just being written is waited for
            yield from filter(bytes.strip, file)
