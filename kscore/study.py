"""Many runs: train what a store lacks, append every finished run at once, read back a tidy frame.

    >>> runs = run(experiments.arms("CartPole-v1", "ppo"), range(1000, 1050), "data/runs/cartpole_ppo.jsonl")

A store is a file of JSON lines, one run a line, only ever appended to. A run is known by its configuration, its seed
and the protocol's version.
"""

import dataclasses
import json
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import pandas as pd
from tqdm.std import tqdm

from kscore import ROOT, cluster, journal, normalizers
from kscore.training import PROTOCOL_VERSION, RunConfig, train

Configs = Mapping[object, RunConfig] | Iterable[RunConfig]
Key = tuple[str, int]
CRITERIA = ("evaluation", "training")  # which returns have to reach the threshold
RETURNS = ("train_returns", "eval_returns")  # read back as arrays: a study holds millions of them


def run(configs: Configs, seeds: Iterable[int], store: str | Path, executor: Executor | None = None, *,
        workers: int | None = None, progress: bool = True) -> pd.DataFrame:
    """Train what the store lacks of configs × seeds, and return all of it as a frame with one row a run (see `frame`).

    `configs` may name its arms (a mapping) or not. Seeds are gone through one by one over all arms, so that an
    unfinished study is balanced. Without an `executor`, `workers` spawned processes (one a core by default) do the
    work.
    """
    arms, seeds, store = _named(configs), list(seeds), located(store)
    held = _held(store)
    wanted = {key(config, seed): (config, seed) for seed in seeds for config in arms.values()}
    missing = [run for name, run in wanted.items() if name not in held]
    if missing:
        journal.prepare(store)
        for record in _trained(missing, executor, workers, progress):
            append(store, record)
            held[_key_of(record)] = record
    return frame({name: [held[key(config, seed)] for seed in seeds] for name, config in arms.items()})


def recorded(configs: Configs, seeds: Iterable[int], store: str | Path) -> pd.DataFrame:
    """Return what the store holds of configs × seeds, training nothing."""
    held, seeds = _held(located(store)), list(seeds)
    return frame({name: [held[key(config, seed)] for seed in seeds if key(config, seed) in held]
                  for name, config in _named(configs).items()})


def _named(configs: Configs) -> dict[object, RunConfig]:
    return dict(configs) if isinstance(configs, Mapping) else dict(enumerate(configs))


def located(store: str | Path) -> Path:
    """Return the path of a store; a relative one is meant from the project's root, wherever a notebook runs."""
    return ROOT / store


# Training

def _trained(missing: list[tuple[RunConfig, int]], executor: Executor | None, workers: int | None,
             progress: bool) -> Iterator[dict]:
    """Yield the record of each missing run as it finishes."""
    with tqdm(total=len(missing), desc="training", unit="run", smoothing=0, mininterval=1, disable=not progress) as bar:
        with processes(workers) if executor is None else nullcontext(executor) as pool:
            with _workers_without_main():
                futures = [pool.submit(_train, config, seed) for config, seed in missing]
            try:
                for future in as_completed(futures):
                    yield future.result()
                    bar.update()
            finally:
                for future in futures:
                    future.cancel()


WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # more threads would only get in each other's way
    "MALLOC_TRIM_THRESHOLD_": "131072",  # glibc's own start value, kept: left to adapt, a worker's heap only ever grows
}


@contextmanager
def processes(workers: int | None = None, scheduler: str | None = None) -> Iterator[Executor]:
    """Lend an executor of spawned processes, one a core by default, that use one thread each.

    `run` makes its own; several studies in a row can share one. Nothing is spawned before there is work. Where the
    address of a Dask scheduler is given, or stands in DASK_SCHEDULER_ADDRESS, its cluster does the work instead.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    scheduler = scheduler or os.environ.get("DASK_SCHEDULER_ADDRESS")
    with cluster.executor(scheduler) if scheduler else _own_processes(workers or os.cpu_count()) as pool:
        yield pool


@contextmanager
def _own_processes(workers: int) -> Iterator[Executor]:
    """Lend spawned processes; after an interruption, or if this process is killed, none of them stays behind."""
    spawn = multiprocessing.get_context("spawn")
    end, line = spawn.Pipe(duplex=False)
    with _worker_environment(), end, line:
        pool = ProcessPoolExecutor(workers, spawn, _hold_the_line, (end,))
        try:
            yield pool
        except BaseException:
            line.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _worker_environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in WORKER_ENVIRONMENT}
    os.environ.update(WORKER_ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _workers_without_main() -> Iterator[None]:
    """Keep spawned workers from running the calling script again: a chapter run as a plain script has no main guard."""
    main = sys.modules["__main__"].__dict__
    hidden = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)


# In a worker

_unwanted = threading.Event()  # set when the line is closed: what is being trained is not wanted any more


def _hold_the_line(end: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process at the other end
    threading.Thread(target=_listen, args=(end,), daemon=True).start()


def _listen(end: Connection) -> None:
    end.poll(None)
    _unwanted.set()
    multiprocessing.parent_process().join()
    os._exit(1)  # nobody is left to end it


def _train(config: RunConfig, seed: int) -> dict:
    return train(config, seed, progress=_go_on_if_wanted)


def _go_on_if_wanted(*_: object) -> None:
    if _unwanted.is_set():
        raise KeyboardInterrupt


# The store

class Contents(NamedTuple):
    """What a store holds: whole records of the present protocol, and how many lines were passed over."""

    records: list[dict]
    damaged: int  # lines that are no whole record: torn by an interruption, or corrupted
    foreign: int  # records of another protocol version


def read(store: str | Path) -> Contents:
    """Read a store; a damaged line or a record of another protocol version is counted and passed over."""
    records, damaged, foreign = [], 0, 0
    for line in journal.lines(located(store)):
        try:
            record = orjson.loads(line)
            if record["protocol"] != PROTOCOL_VERSION:
                foreign += 1
                continue
            record |= {name: np.array(record[name], float) for name in RETURNS}
            hash(_key_of(record))
            _row(None, record)
        except (ValueError, KeyError, TypeError, AttributeError):
            damaged += 1
        else:
            records.append(record)
    return Contents(records, damaged, foreign)


def append(store: str | Path, record: dict) -> None:
    """Append one record and have it on the disk before returning; a lock keeps two studies apart."""
    journal.append(located(store), record)


def _held(store: Path) -> dict[Key, dict]:
    contents = read(store)
    if contents.damaged:
        warnings.warn(f"{store.name}: {contents.damaged} damaged lines were passed over", stacklevel=3)
    if contents.foreign:
        warnings.warn(f"{store.name}: {contents.foreign} records of another protocol version than {PROTOCOL_VERSION} "
                      "were passed over", stacklevel=3)
    return {_key_of(record): record for record in contents.records}


def key(config: RunConfig, seed: int) -> Key:
    """Return what a run is known by; settings at their defaults do not count, so that new ones leave old runs valid."""
    return _key(config.to_dict(), seed)


def _key_of(record: dict) -> Key:
    return _key(record["config"], record["seed"])


def _key(config: dict, seed: int) -> Key:
    normalizer = config["normalizer"]
    options = _without(normalizer, _defaults(normalizers.NORMALIZERS[normalizer["name"]]))
    settings = _without(config, _defaults(RunConfig)) | {"normalizer": options}
    return json.dumps(settings, sort_keys=True), seed


def _without(settings: dict, defaults: dict) -> dict:
    """Leave out what is at its default; 1 and 1.0 are the same number."""
    plain = {name: float(value) if type(value) is int else value for name, value in settings.items()}
    return {name: value for name, value in plain.items() if name not in defaults or value != defaults[name]}


@cache
def _defaults(kind: type) -> dict:
    given = {f.name: f.default for f in dataclasses.fields(kind) if f.default is not dataclasses.MISSING}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


# The frame

def frame(records: Mapping[object, Iterable[dict]]) -> pd.DataFrame:
    """Return one row a run.

    Columns: `arm`, `seed`, `status`, `solved`, `episodes` (trained), `cap`; for each criterion the censored time, as
    the episode `evaluation` or `training` and whether it was `evaluation_met` or `training_met`; `train_returns` and
    `eval_returns` as arrays; `steps`, `seconds`.
    """
    return pd.DataFrame([_row(arm, record) for arm, several in records.items() for record in several],
                        columns=["arm", "seed", "status", "solved", "episodes", "cap", "evaluation", "evaluation_met",
                                 "training", "training_met", "train_returns", "eval_returns", "steps", "seconds"])


def _row(arm: object, record: dict) -> dict:
    cap = record["config"]["max_episodes"]
    never = cap if record["status"] == "diverged" else record["episodes"]  # a diverged run will not arrive any more
    row = {name: record[name] for name in ("seed", "status", "solved", "episodes", "steps", "seconds")}
    row |= {name: np.asarray(record[name], float) for name in RETURNS}
    for criterion in CRITERIA:
        at = record["solved_at"][criterion]
        row |= {criterion: never if at is None else at, f"{criterion}_met": at is not None}
    return {"arm": arm, "cap": cap} | row
