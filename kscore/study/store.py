"""Stores: files of JSON lines, one run a line, only ever appended to.

The archive, data/runs, is the recorded study. It is read by everything and written by `kscore study --record` alone;
what a reader trains goes into a store of the reader's own, build/runs unless another is named.
"""

import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from kscore import journal, paths
from kscore.project import located
from kscore.rl.config import PROTOCOL_VERSION
from kscore.study.records import Key, Record, Unusable

OWN = "build/runs"
"""Where what the archive lacks is kept, unless a chapter or a command names another folder."""

MARK = b'"protocol"'
"""Every record holds this word: a file without it is none of ours."""


class Contents(NamedTuple):
    """What a store holds: whole records of the present protocol, and what was passed over."""

    records: list[Record]
    damaged: int  # lines that are no whole record: torn by an interruption, or corrupted
    foreign: int  # records of another protocol version
    incomplete: int  # records that lack options of their normalizer
    unknown: dict[str, int]  # records of a normalizer or an environment that is not known here, by its name


def read(store: str | Path) -> Contents:
    """Read a store; what cannot be used is counted and passed over."""
    path = file_of(store)
    records, passed, unknown = [], Counter(), Counter()
    for line in journal.lines(path):
        try:
            records.append(Record.parse(line))
        except Unusable as reason:
            passed[reason.kind] += 1
            if reason.kind == "unknown":
                unknown[reason.what] += 1
    return Contents(records, passed["damaged"], passed["foreign"], passed["incomplete"], dict(unknown))


def file_of(store: str | Path) -> Path:
    """Return the path of a store; refuse what is no file."""
    return journal.file(located(store), "store")


def held(*stores: str | Path) -> dict[Key, Record]:
    """Return the records of some stores by what they are known by; what was passed over is warned of."""
    found = {}
    for store in stores:
        contents = read(store)
        for sentence in _passed_over(contents):
            warnings.warn(f"{located(store).name}: {sentence}", stacklevel=3)
        for record in contents.records:
            if record.status != "failed" or record.key not in found:  # a failure hides no run that went well
                found[record.key] = record
    return found


def _passed_over(contents: Contents) -> list[str]:
    said = []
    if contents.damaged:
        said.append(f"{contents.damaged} damaged lines were passed over")
    if contents.foreign:
        said.append(f"{contents.foreign} records of another protocol version than {PROTOCOL_VERSION} were passed over")
    if contents.incomplete:
        said.append(f"{contents.incomplete} records do not hold every option of their normalizer and were passed over")
    return said + [
        f"{count} records of the unknown {what} were passed over" for what, count in contents.unknown.items()
    ]


def append(store: str | Path, record: dict) -> None:
    """Append what `train` returned and have it on the disk before returning; a lock keeps two studies apart."""
    journal.append(file_of(store), record)


def check_own(store: str | Path) -> Path:
    """Return the path of a store that may be written to: a new one, or one of one's own, outside of the project."""
    return paths.file("store", store, MARK)


def check_folder(store: str | Path) -> Path:
    """Return the path of a folder for stores that may be written to, by the same rule."""
    found = paths.place("store", store)
    if found.exists() and not found.is_dir():
        raise ValueError(f"store must be a folder, got {store}, which is not one")
    return found
