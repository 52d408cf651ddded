"""How well centres follow, recorded: `python -m kscore.study.tracks` trains what data/tracks.jsonl lacks.

A line is one run of the running Z-Score (actor-critic on CartPole) under one condition. Every tenth episode has a row
for each arm: what its centre would have been, and the mean of the policy of that moment, held still
(`kscore.rl.tracking`).
"""

from pathlib import Path

import orjson
import pandas as pd

from kscore import journal, progress
from kscore.project import DATA
from kscore.study import contenders, plan, workers

PATH = DATA / "tracks.jsonl"
CONDITIONS: dict[str, dict] = {
    "clean": {},
    **{
        name: condition
        for kind in ("noise", "shift", "swap")
        for name, condition in contenders.CONDITIONS[kind].items()
        if name in ("noise 3", "times 10", "swap")
    },
}
"""What is done to CartPole while centres are followed."""
SEEDS = range(plan.FAIR_FEWER.first, plan.FAIR_FEWER.first + 10)
ARMS = tuple(arm for arm in contenders.SHIFT_ARMS if arm != "none")  # whose centre is 0 throughout


def read(path: Path = PATH) -> pd.DataFrame:
    """Return all rows: `condition`, `seed`, `episode`, `arm`, `centre`, `expected`, `standard_error`."""
    return pd.concat(
        [
            pd.DataFrame(line["rows"]).assign(condition=line["condition"], seed=line["seed"])
            for line in map(orjson.loads, journal.lines(path))
        ],
        ignore_index=True,
    )


def followed(condition: str, seed: int) -> dict:
    """Train one run, and return a line: what each centre was, and what there was to follow."""
    from kscore.rl import tracking  # here, because reading needs no torch

    rate, z_scored = contenders.OWN["actor_critic"]["running"]
    config = contenders.arm("running", "actor_critic", z_scored=z_scored, learning_rate=rate, **CONDITIONS[condition])
    centres = {arm: contenders.arm(arm, "actor_critic", z_scored=False).normalizer for arm in ARMS}
    rows = tracking.follow(config, seed, centres, every=10, episodes=100)
    return {"condition": condition, "seed": seed, "rows": rows.to_dict("list")}


def record(path: Path = PATH) -> None:
    """Train what the file lacks, and append every run as it ends."""
    there = {(line["condition"], line["seed"]) for line in map(orjson.loads, journal.lines(path))}
    missing = [(condition, seed) for seed in SEEDS for condition in CONDITIONS if (condition, seed) not in there]
    journal.prepare(path)
    with progress.of(len(missing), "run", "following", True) as done, workers.processes() as pool:
        for line in pool.map(followed, *zip(*missing, strict=True)) if missing else ():
            journal.append(path, line)
            done()


if __name__ == "__main__":
    record()
