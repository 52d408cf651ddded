"""Where anything may be written: one rule for every folder and every file that somebody names.

Nothing is written into what the project itself is made of, whichever way leads there: places are compared as the file
system knows them, so that neither a link nor a mount is a way around. The same holds for every other checkout. Nothing
is written over a file that is not ours either: what we write can be told by a mark in it.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kscore import project
from kscore.project import located

HELD = {
    "data/runs": "the archive, which only `kscore study --record` appends to",
    "data": "data, which holds what is recorded",
    "kscore": "kscore, which holds the code",
    "notebooks": "notebooks, which holds the chapters",
    "docs": "docs, which holds the pages",
    "tests": "tests, which holds the tests",
    "benchmarks": "benchmarks, which holds the measurements of speed",
    "play": "play, which holds the page that trains",
    ".git": ".git, which holds the history",
    ".venv": ".venv, which holds the packages",
}
"""The parts of a checkout that nothing is written into, and why."""

STATUS = "status.jsonl"
STATUS_MARK = b'"status"'
"""A folder for executed chapters is ours if it holds this file, a line of which has this word, or none."""


def place(name: str, path: str | Path) -> Path:
    """Return where a path leads, if anything may be written there; a relative one is meant from the project's root."""
    text = str(path)
    if not text.strip() or "\0" in text:
        raise ValueError(f"{name} must be the path of a file or a folder, got {text!r}")
    found = located(path)
    resolved = found.resolve()
    for ancestor in (resolved, *resolved.parents):
        if held := _held(ancestor):
            raise ValueError(f"{name} must not lie in {held}, got {path}")
    return found


def _held(folder: Path) -> str:
    """Say which part of this checkout, or of another, a folder is; nothing if it is none."""
    for part, said in HELD.items():
        if _is_same(folder, project.ROOT / part):
            return said
        root = folder.parents[part.count("/")] if folder.match(part) else folder
        if root != folder and _is_checkout(root):
            return f"{said} (of the checkout {root})"
    return ""


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist yet
        return one == other.resolve()


def _is_checkout(folder: Path) -> bool:
    """Say whether a folder is a checkout of this project: ours, or another."""
    try:
        return 'name = "kscore"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def file(name: str, path: str | Path, mark: bytes) -> Path:
    """Return the place of a file to be written: a new one, an empty one, or one of ours, which has the mark in it.

    A file that has another name as well, by a hard link, is refused: what it is there cannot be known.
    """
    found = place(name, path)
    if not found.exists():
        return found
    if not found.is_file():
        raise ValueError(f"{name} must be a file, got {path}, which is not one")
    if found.stat().st_nlink > 1:
        raise ValueError(f"{name} must be a file with one name, got {path}, which has another (a hard link): copy it")
    if not is_marked(found, mark):
        raise ValueError(f"{name} must be a new file, or one that kscore wrote, got {path}, which holds something else")
    return found


def is_marked(path: Path, mark: bytes) -> bool:
    """Say whether a file is empty, or has a mark in one of its lines."""
    with path.open("rb") as file:
        lines = [line for line in file if line.strip()]
    return not lines or any(mark in line for line in lines)


def folder(name: str, path: str | Path) -> Path:
    """Return a folder for what is executed: a new one, an empty one, or one of ours, in which all may be replaced."""
    found = place(name, path)
    if _is_checkout(found):
        raise ValueError(f"{name} must be a folder of its own, got {path}, which is a checkout of this project")
    if found.exists() and not found.is_dir():
        raise ValueError(f"{name} must be a folder, got {path}, which is not one")
    if not _is_ours(found):
        raise ValueError(
            f"{name} must be a new or an empty folder, or one that chapters were executed into, got {path}, which "
            "holds something else"
        )
    return found


def _is_ours(folder: Path) -> bool:
    if _is_same(folder, project.BUILD) or not folder.exists() or not any(folder.iterdir()):
        return True
    return (folder / STATUS).is_file() and is_marked(folder / STATUS, STATUS_MARK)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Lend a place beside a file, which takes the file's place once all is written; if anything fails, nothing does."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
