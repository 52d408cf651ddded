"""How a lab records the runs behind its page: a file of JSON lines in data/, which that lab alone appends to.

    python -m kscore.labs.digit_addition

trains what data/sums.jsonl lacks. A path after the command names another file, anywhere but in the project's data.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path

import numpy as np
import orjson
import pandas as pd

from kscore import journal, paths, progress
from kscore.project import located
from kscore.study import workers

MARK = b'"seed"'  # every line of these files holds it


def place(own: Path, named: Sequence[str] = (), mark: bytes = MARK) -> Path:
    """Return where a lab may write: its own file, or one that is named, which is new or has the mark of such files."""
    if len(named) > 1:
        raise ValueError(f"one file may be named, got {' '.join(named)}")
    if not named or located(named[0]).resolve() == own.resolve():
        return own
    return paths.file("path", named[0], mark)


def asked(own: Path, mark: bytes = MARK) -> Path:
    """Return where the command line asks a lab to write; a mistake ends in a sentence."""
    try:
        return place(own, sys.argv[1:], mark)
    except ValueError as mistake:
        sys.exit(str(mistake))


def write(own: Path, columns: Sequence[str], make: Callable[[], pd.DataFrame]) -> None:
    """Make a table and write it where the command line asks for it, as a whole; `own` is the lab's own file."""
    with paths.whole(asked(own, ",".join(columns).encode())) as draft:
        draft.write_text(make().to_csv(index=False), encoding="utf-8")


def record(
    path: Path,
    planned: Iterable[tuple[object, int]],
    train: Callable[[object, int], dict],
    field: str = "config",
    executor: Executor | None = None,
) -> None:
    """Train what a file lacks of (setting, seed), in this order, and append what `train` returns of each.

    A line says in `field` what its setting was, and in "seed" its seed. Without an `executor`, spawned processes, one
    a core, do the work.
    """
    journal.prepare(path)
    lent = workers.processes() if executor is None else nullcontext(executor)
    with journal.alone(path, progress.say), lent as pool:
        there = {_key(line[field], line["seed"]) for line in _whole(path)}
        missing = [(setting, seed) for setting, seed in planned if _key(setting, seed) not in there]
        _fill(path, missing, train, pool)


def _fill(path: Path, missing: list[tuple[object, int]], train: Callable[[object, int], dict], pool: Executor) -> None:
    with progress.of(len(missing), "run", "recording") as done:
        for line in pool.map(train, *zip(*missing, strict=True)) if missing else ():
            journal.append(path, line)
            done()


def lines(path: Path) -> list[dict]:
    """Return the lines of a file of recorded runs, which must hold some."""
    found = [*_whole(path)]
    if not found:
        raise ValueError(f"path must be a file of recorded runs, got {path}, which holds none")
    return found


def frame(path: Path, settings: Sequence[str], series: Sequence[str]) -> pd.DataFrame:
    """Return the recorded runs, a row each: some of their settings, their seed, and what they tell as arrays."""
    return pd.DataFrame(
        {name: run["config"][name] for name in settings}
        | {"seed": run["seed"]}
        | {name: np.array(run[name]) for name in series}
        for run in lines(path)
    )


def _whole(path: Path) -> Iterator[dict]:
    """Yield what the lines say; one that an interruption has torn is passed over, and its run is done again."""
    for line in journal.lines(journal.file(path, "path")):
        with suppress(orjson.JSONDecodeError):
            yield orjson.loads(line)


def _key(setting: object, seed: int) -> tuple[bytes, int]:
    plain = asdict(setting) if is_dataclass(setting) else setting
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS), seed
