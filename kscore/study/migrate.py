"""Complete the records of a store: spell out the options of their normalizers that stood at their defaults.

    python -m kscore.study.migrate data/runs

The first 5,640 runs were recorded without them (`{"name": "ema"}`). `DEFAULTS` are the defaults of that time, written
out here so that a later change in the code cannot reach back. A completed file replaces the old one only if it holds
the same runs with the same returns; a second pass changes nothing. No study may append to a store meanwhile.
"""

import json
import sys
from pathlib import Path

from kscore.project import located, shown
from kscore.study.records import Record, Unusable
from kscore.study.store import file_of

DEFAULTS = {
    "none": {},
    "zscore": {"eps": 1e-8},
    "running": {"eps": 1e-8},
    "ema": {"eps": 1e-8, "decay": 0.99},
    "kscore": {
        "variant": "simple",
        "mode": "stream",
        "scale": "belief",
        "Q": 1e-4,
        "R": 1e-2,
        "alpha": 0.9,
        "R_timing": "after",
        "x0": 0.0,
        "P0": 1.0,
        "eps": 1e-8,
    },
}
"""The options of each normalizer with which the first runs were recorded, protocol version 1."""


def completed(record: dict) -> dict:
    """Return a record whose normalizer holds all of its options, in the order of its class."""
    given = record["config"]["normalizer"]
    options = {"name": given["name"]} | DEFAULTS.get(given["name"], {}) | given
    return record | {"config": record["config"] | {"normalizer": options}}


def known_by(record: dict) -> str:
    """Return what a run was known by when defaults were left out: its settings but those, and its seed."""
    config = dict(record["config"])
    defaults = DEFAULTS.get(config["normalizer"]["name"], {})
    config["normalizer"] = {
        name: value for name, value in config["normalizer"].items() if name not in defaults or value != defaults[name]
    }
    return json.dumps([config, record["seed"]], sort_keys=True)


def migrate(store: str | Path) -> int:
    """Complete the records of one store, at once or not at all, and return how many changed; other lines stay."""
    path = file_of(store)
    if not path.exists():
        raise ValueError(f"store must be a file that exists, got {path}")
    before = path.read_bytes().splitlines(keepends=True)
    after = [_completed_line(line) for line in before]
    changed = sum(new != old for new, old in zip(after, before, strict=True))
    if changed:
        written = path.with_suffix(".new")
        written.write_bytes(b"".join(after))
        written.replace(path)
    return changed


def _completed_line(line: bytes) -> bytes:
    try:
        record = json.loads(line)
        new = completed(record)
        written = json.dumps(new, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        if not _is_record(written):
            return line
    except (ValueError, KeyError, TypeError, AttributeError):
        return line  # what is no record of this protocol stays as it is
    if known_by(new) != known_by(record) or new | {"config": record["config"]} != record:
        raise ValueError(f"completing a record must not change its run, got {known_by(record)}")
    return written if new != record else line


def _is_record(line: bytes) -> bool:
    """Say whether a line is a whole record of this protocol, be it of something that is not known here."""
    try:
        Record.parse(line)
    except Unusable as reason:
        return reason.kind == "unknown"
    return True


def main(arguments: list[str]) -> None:
    """Complete the stores, or all stores of the folders, that are named."""
    if not arguments:
        raise ValueError("stores, or folders of them, must be named: python -m kscore.study.migrate data/runs")
    for name in arguments:
        path = located(name)
        for store in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            print(f"{shown(store)}: {migrate(store)} records completed")


if __name__ == "__main__":
    main(sys.argv[1:])
