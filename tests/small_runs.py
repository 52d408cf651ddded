"""Runs for the tests of the study and its analysis: real ones of three episodes, and made-up ones."""

import tempfile
from concurrent.futures import Executor, Future
from functools import cache
from pathlib import Path

import numpy as np

from kscore import study
from kscore.rl import RunConfig
from kscore.study import plan
from kscore.study.records import Record, key

# Real ones

SEEDS = [0, 1, 2]


def tiny(**changes):
    fields = {"env": "CartPole-v1", "algorithm": "reinforce", "threshold": None, "hidden": (8,), "max_episodes": 3}
    return RunConfig(**{**fields, **changes})


SETTINGS = tiny().to_dict()
ARMS = {"zscore": tiny(), "none": tiny(normalizer={"name": "none"})}


class Later(Future):
    """A future that is ready, but does its work only when it is asked for the result: no thread, no waiting."""

    def __init__(self, work):
        super().__init__()
        self.set_result(None)
        self.work = work

    def result(self, timeout=None):
        return self.work()


class InProcess(Executor):
    """Trains here, notes what, and is interrupted by the user after so many runs."""

    def __init__(self, interrupted_after=None):
        self.trained, self.interrupted_after = [], interrupted_after

    def submit(self, function, config, seed):
        return Later(lambda: self._work(function, config, seed))

    def _work(self, function, config, seed):
        if len(self.trained) == self.interrupted_after:
            raise KeyboardInterrupt
        self.trained.append(key(config, seed))
        return function(config, seed)


def run(store, configs=ARMS, seeds=SEEDS, executor=None, **options):
    """Run a study in this process; return its frame and the keys of what was trained for it."""
    executor = executor or InProcess()
    frame = study.run(configs, seeds, store, executor, progress=False, **options)
    return frame, executor.trained


@cache
def lines():
    """The lines of an uninterrupted study of ARMS on SEEDS, in the order of the seeds."""
    return lines_of(ARMS, SEEDS)


def lines_of(configs, seeds):
    order = [key(config, seed) for seed in seeds for config in configs.values()]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.jsonl"
        run(store, configs, seeds)
        return sorted(store.read_bytes().splitlines(keepends=True), key=lambda line: order.index(key_of(line)))


def key_of(line):
    return Record.parse(line).key


def without_seconds(records):
    """The records in the order of their keys, plain; how long a run took is all that may differ."""
    return [
        {
            name: value.tolist() if name.endswith("returns") else value
            for name, value in fields(record).items()
            if name not in ("seconds", "cpu_seconds")
        }
        for record in sorted(records, key=lambda some: some.key)
    ]


def fields(record):
    return {name: getattr(record, name) for name in Record.__slots__}


# Made-up ones

CAP = 100


def record(seed, word, returns=None, training=None, cap=CAP, **changes):
    """A run: "40" arrived then, "100+" was watched so long, "7x" diverged then."""
    episodes, arrived = int(word.rstrip("+x")), word.isdigit()
    fields = {
        "protocol": 1,
        "config": SETTINGS | {"max_episodes": cap},
        "seed": seed,
        "solved": arrived,
        "reason": None,
        "status": {"+": "censored", "x": "diverged"}.get(word[-1], "solved"),
        "episodes": episodes,
        "solved_at": {"evaluation": episodes if arrived else None, "training": training},
        "train_returns": np.zeros(episodes),
        "eval_returns": np.ones(episodes) if returns is None else np.array(returns, float),
        "train_steps": 1,
        "eval_steps": 0,
        "steps": 1,
        "seconds": 0.1,
        "versions": {},
        "machine": "",
    }
    return Record(**fields | changes)


def arm(times, returns=None, first_seed=0):
    """Runs of an arm: their times, as words or whole numbers, one seed after the other."""
    words = times.split() if isinstance(times, str) else list(map(str, times))
    returns = returns or [None] * len(words)
    return [record(first_seed + i, word, some) for i, (word, some) in enumerate(zip(words, returns, strict=True))]


def frame(**arms):
    return study.frame({name: arm(times) for name, times in arms.items()})


def shuffled(runs):
    return runs.sample(frac=1, random_state=1).reset_index(drop=True)


def close(actual, expected, **tolerance):
    np.testing.assert_allclose(actual, expected, **{"rtol": 1e-12, "atol": 1e-12, **tolerance})


def planned(monkeypatch, *parts):
    """Put other parts in the place of the plan's."""
    entries = {
        part.name: plan.Entry(part.name, "", (), plan.Seeds(part.seeds.start, len(part.seeds)), "planned", {})
        for part in parts
    }
    monkeypatch.setattr(plan, "parts", lambda: entries)
    monkeypatch.setattr(plan, "part", lambda name: next(part for part in parts if part.name == name))
