"""Outcomes: what is kept of runs whose curves are not, one line of CSV for each run in data/outcomes.

    >>> study.outcomes(study.part("rates_lunarlander_ppo"))

A run that can be trained again in moments, or that only chose a setting, leaves how long it took and a digest of its
returns. `kscore study --record` appends the lines; a torn one is passed over, and its run is trained again.
"""

import csv
import hashlib
import io
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from kscore import checks, journal
from kscore.progress import say
from kscore.project import ARCHIVE, OUTCOMES
from kscore.rl.config import RunConfig
from kscore.study import store as stores
from kscore.study import workers
from kscore.study.plan import Part
from kscore.study.records import STATUSES, Record, described, key
from kscore.study.running import check_failures

COLUMNS = (
    *("learner", "arm", "rate", "doors", "z_scored"),
    *("seed", "solved", "episodes", "steps", "train_steps", "digest", "machine", "settings"),
)
"""The columns of a file; `settings` tells which configuration it was, whatever its arm is called."""
FRAME = (
    *("arm", "learner", "env", "normalizer", "rate", "z_scored", "doors", "condition", "seed"),
    *("status", "episodes", "cap", "evaluation", "evaluation_arrived", "steps", "train_steps", "digest", "machine"),
)


class Outcome(NamedTuple):
    """What is kept of one run."""

    settings: str  # of all that decides a run but its seed, a short hash
    seed: int
    solved: bool
    episodes: int
    steps: int
    train_steps: int | None  # without those of evaluations; the first lines did not say
    digest: str  # of its returns
    machine: str


# A line


def settings_of(run: RunConfig | Record) -> str:
    """Return a short hash of all settings of a run."""
    return _short(run.key[0] if isinstance(run, Record) else key(run, 0)[0])


def digest_of(record: Record) -> str:
    """Return a short hash of a run's returns, in training and in evaluation, as 64-bit numbers."""
    both = (np.asarray(returns, "<f8").tobytes() for returns in (record.train_returns, record.eval_returns))
    return _short(b"|".join(both))


def _short(said: bytes) -> str:
    return hashlib.sha256(said).hexdigest()[:16]


def said_of(arm: str, config: RunConfig) -> dict[str, object]:
    """Return the columns that say what was run."""
    return {"arm": arm} | described(config.to_dict())


def line(arm: str, config: RunConfig, record: Record) -> bytes:
    """Return what is kept of a record."""
    said = {name: said_of(arm, config)[name] for name in COLUMNS[:5]}
    said |= {name: getattr(record, name) for name in COLUMNS[5:10]}
    said |= {"digest": digest_of(record), "machine": record.machine, "settings": settings_of(record)}
    return _csv(int(value) if isinstance(value, bool) else value for value in said.values())


def _csv(values: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


HEAD = _csv(COLUMNS)


def parsed(text: bytes) -> Outcome:
    """Read a line; refuse one that is not whole, or says what cannot be."""
    if not text.endswith(b"\n"):
        raise ValueError("the line does not end")
    said = dict(zip(COLUMNS, next(csv.reader([text.decode()])), strict=True))
    if any(len(said[name]) != 16 for name in ("digest", "settings")) or said["solved"] not in ("0", "1"):
        raise ValueError("a value is not whole")
    count = {name: checks.whole(name, int(said[name] or 0), low=0) for name in ("episodes", "steps", "train_steps")}
    count["train_steps"] = count["train_steps"] if said["train_steps"] else None
    seed, solved = checks.seed("seed", int(said["seed"])), said["solved"] == "1"
    return Outcome(said["settings"], seed, solved, **count, digest=said["digest"], machine=said["machine"])


# A file


def file_of(part: Part) -> Path:
    """Return the file that holds the outcomes of a part of the plan."""
    return OUTCOMES / f"{part.name}.csv"


def held(path: Path) -> dict[tuple[str, int], Outcome]:
    """Return the outcomes in a file by settings and seed, the first of each run; torn lines are warned of."""
    found, torn = {}, 0
    for text in journal.lines(path):
        if text == HEAD:
            continue
        try:
            outcome = parsed(text)
        except (ValueError, StopIteration):
            torn += 1
        else:
            found.setdefault((outcome.settings, outcome.seed), outcome)
    if torn:
        warnings.warn(f"{path.name}: {torn} damaged lines were passed over", stacklevel=2)
    return found


def record(part: Part, executor: Executor | None = None) -> pd.DataFrame:
    """Append what the recorded outcomes of a part lack, and return all of them.

    A run that the archive holds, in a part that this one builds on, is not trained again.
    """
    path, arms = file_of(part), {settings_of(config): (arm, config) for arm, config in part.configs.items()}
    with journal.alone(path, say):
        there, failed = held(path), []
        missing = [(settings, seed) for seed in part.seeds for settings in arms if (settings, seed) not in there]
        for made in _made(missing, arms, part, executor) if missing else ():
            if made.status == "failed":
                failed.append(made)
            else:
                journal.append_line(path, line(*arms[settings_of(made)], made), head=HEAD)
    check_failures(failed, path)
    return frame(part)


def _made(missing: list[tuple[str, int]], arms: dict, part: Part, executor: Executor | None) -> Iterator[Record]:
    """Yield the records of missing runs: first those that the archive holds, then the others as they are trained."""
    stored = stores.held(*(ARCHIVE / f"{name}.jsonl" for name in part.beside)).values()
    archived = {(settings_of(run), run.seed): run for run in stored}
    yield from (archived[run] for run in missing if run in archived)
    rest = [(arms[settings][1], seed) for settings, seed in missing if (settings, seed) not in archived]
    yield from map(Record.of, workers.trained(rest, executor, True) if rest else ())


def frame(part: Part) -> pd.DataFrame:
    """Return the recorded outcomes of a part, one row for each run, in the columns of other frames; no curves."""
    there = held(file_of(part))
    rows = [
        said_of(arm, config) | part.columns.get(arm, {}) | _ended(there[settings, seed], config.max_episodes)
        for arm, config, settings in ((arm, config, settings_of(config)) for arm, config in part.configs.items())
        for seed in part.seeds
        if (settings, seed) in there
    ]
    return pd.DataFrame(rows, columns=FRAME)


def _ended(outcome: Outcome, cap: int) -> dict[str, object]:
    """Return how a run ended; one that stopped before the cap, unsolved, has diverged."""
    status = "solved" if outcome.solved else "censored" if outcome.episodes == cap else "diverged"
    time = {"evaluation": cap if status == "diverged" else outcome.episodes, "evaluation_arrived": outcome.solved}
    return outcome._asdict() | time | {"status": STATUSES[status], "cap": cap}
