"""Many runs: train what is missing, append every finished run at once, read back a tidy frame.

>>> study.run({"mine": RunConfig.preset("CartPole-v1", "ppo")}, range(5), "build/mine.jsonl")
>>> study.runs(plan.part("cartpole_ppo"))
"""

import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
import pandas as pd

from kscore import checks, journal
from kscore.progress import say
from kscore.project import ARCHIVE, located, shown
from kscore.rl.config import RunConfig
from kscore.study import store as stores
from kscore.study import workers
from kscore.study.plan import Part
from kscore.study.records import Record, frame, settings_key

Configs = Mapping[object, RunConfig] | Iterable[RunConfig]


def run(
    configs: Configs,
    seeds: Iterable[int],
    store: str | Path,
    executor: Executor | None = None,
    *,
    beside: Iterable[str | Path] = (),
    progress: bool = True,
    retry_failed: bool = False,
) -> pd.DataFrame:
    """Train what the store lacks of configs × seeds, and return all of it as a frame, a row for each run (see `frame`).

    `configs` may name its arms (a mapping) or not. Stores in `beside` are read as well, never written to. Seeds are
    gone through one by one over all arms, so that an unfinished study is balanced. Without an `executor`, spawned
    processes, one a core, do the work.

    A run that raises is recorded as failed, and the others go on; at the end `FailedRuns` says so. It is not tried
    again unless `retry_failed` asks for it.
    """
    return _filled(configs, seeds, stores.check_own(store), executor, beside, progress, retry_failed)


def runs(
    part: Part,
    store: str | Path = stores.OWN,
    executor: Executor | None = None,
    *,
    archive: bool = True,
    progress: bool = True,
    retry_failed: bool = False,
) -> pd.DataFrame:
    """Return the runs of a part of the plan: from the archive, then from a folder of one's own, then trained into it.

    With `archive=False` nothing is taken from the archive.
    """
    beside = [ARCHIVE / part.file] if archive else []
    own = stores.check_own(stores.check_folder(store) / part.file)
    return _filled(part.configs, part.seeds, own, executor, beside, progress, retry_failed, part.columns)


def anew(
    configs: Configs, seeds: Iterable[int], executor: Executor | None = None, *, progress: bool = True
) -> pd.DataFrame:
    """Train configs × seeds from nothing, whatever is recorded of them, and keep nothing but the frame."""
    with tempfile.TemporaryDirectory() as folder:
        return run(configs, seeds, Path(folder) / "runs.jsonl", executor, progress=progress)


def same(runs: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """Say of each run whether all returns of its arm and seed among some others are the same, to the last digit."""
    there = {(row.arm, row.seed): row for row in others.itertuples()}

    def is_same(row: pd.Series) -> bool:
        other = there[row.arm, row.seed]
        return all(np.array_equal(row[name], getattr(other, name)) for name in ("train_returns", "eval_returns"))

    return runs.apply(is_same, axis=1)


def record(part: Part, executor: Executor | None = None, *, retry_failed: bool = False) -> pd.DataFrame:
    """Train what the archive lacks of a part of the plan, and append it there."""
    return _filled(part.configs, part.seeds, ARCHIVE / part.file, executor, (), True, retry_failed, part.columns)


def recorded(
    configs: Configs, seeds: Iterable[int], *read: str | Path, columns: Mapping[object, Mapping] | None = None
) -> pd.DataFrame:
    """Return what some stores hold of configs × seeds, training nothing; runs that failed are left out."""
    held, seeds = {name: run for name, run in stores.held(*read).items() if run.status != "failed"}, _seeds(seeds)
    keys = {name: settings_key(config) for name, config in _named(configs).items()}
    return frame(
        {name: [held[own, seed] for seed in seeds if (own, seed) in held] for name, own in keys.items()}, columns
    )


def _filled(
    configs: Configs,
    seeds: Iterable[int],
    store: Path,
    executor: Executor | None,
    beside: Iterable[str | Path],
    progress: bool,
    retry_failed: bool,
    columns: Mapping[object, Mapping[str, str]] | None = None,
) -> pd.DataFrame:
    arms, seeds = _named(configs), _seeds(seeds)
    keys, place = {name: settings_key(config) for name, config in arms.items()}, located(store)
    wanted = {(keys[name], seed): (config, seed) for seed in seeds for name, config in arms.items()}

    def missing() -> list[tuple[RunConfig, int]]:
        again = {name for name, record in held.items() if retry_failed and record.status == "failed"}
        return [run for name, run in wanted.items() if name not in held or name in again]

    size, held = _size(place), stores.held(*beside, place)
    if missing():
        journal.prepare(place)
        with journal.alone(place, say):
            held = held if _size(place) == size else stores.held(*beside, place)  # another has been at work
            for trained in workers.trained(missing(), executor, progress):
                stores.append(place, trained)
                done = Record.of(trained)
                held[done.key] = done
    check_failures([held[name] for name in wanted], store)
    return frame({name: [held[own, seed] for seed in seeds] for name, own in keys.items()}, columns)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class FailedRuns(RuntimeError):
    """Some of the runs that are asked for could not be trained."""


def check_failures(records: list[Record], store: Path) -> None:
    """Say which of some runs have failed, if any have."""
    failures = [record for record in records if record.status == "failed"]
    if failures:
        first = failures[0]
        raise FailedRuns(
            f"{len(failures)} of {len(records)} runs failed, the first, seed {first.seed} of normalizer "
            f"{first.config['normalizer']['name']!r}, with {first.reason}; they are recorded as failed in "
            f"{shown(store)}, and are trained again with retry_failed=True or `kscore study "
            "--retry-failed`"
        )


def _named(configs: Configs) -> dict[object, RunConfig]:
    return dict(configs) if isinstance(configs, Mapping) else dict(enumerate(configs))


def _seeds(seeds: Iterable[int]) -> list[int]:
    return [checks.seed("seeds", seed) for seed in seeds]
