"""Share of archived runs that repeat to the last digit here, by the processor that recorded them.

    python benchmarks/reproduced.py                     # 100 runs of CartPole for each processor
    python benchmarks/reproduced.py --runs 20 --env LunarLander-v3

The runs are drawn from the whole archive and trained again on all cores. "First difference" is the first training
episode whose return is another one, the median over the runs that differ.
"""

import argparse
from collections import defaultdict

import numpy as np

from kscore import provenance, study
from kscore.project import ARCHIVE
from kscore.rl import RunConfig
from kscore.study import workers
from kscore.study.records import Record


def drawn(env: str, count: int) -> dict[str, list[Record]]:
    """Return some recorded runs of each machine, and how many there are to draw from."""
    found, rng = defaultdict(dict), np.random.default_rng(0)
    for path in sorted(ARCHIVE.glob("*.jsonl")):
        for record in study.read(path).records:
            if record.config["env"] == env:
                found[record.machine][record.key] = record
    return {
        machine: [list(runs.values())[i] for i in rng.permutation(len(runs))[:count]] for machine, runs in found.items()
    }


def first_difference(one: Record, other: Record) -> int | None:
    """Return the first episode that differs; 0 if only an evaluation does; None if nothing does."""
    if np.array_equal(one.train_returns, other.train_returns):
        return None if np.array_equal(one.eval_returns, other.eval_returns) else 0
    shorter = min(len(one.train_returns), len(other.train_returns))
    different = np.flatnonzero(one.train_returns[:shorter] != other.train_returns[:shorter])
    return int(different[0]) + 1 if len(different) else shorter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="runs of each processor")
    parser.add_argument("--env", default="CartPole-v1")
    options = parser.parse_args()
    chosen = drawn(options.env, options.runs)
    missing = [(RunConfig(**run.config), run.seed) for runs in chosen.values() for run in runs]
    again = {run.key: run for run in map(Record.of, workers.trained(missing, None, True))}
    print(f"{options.env}, trained again on {provenance.machine()}\n")
    print("| recorded on | runs drawn | the same | first difference |\n| --- | --- | --- | --- |")
    for machine, runs in chosen.items():
        first = [first_difference(run, again[run.key]) for run in runs]
        other = [episode for episode in first if episode is not None]
        median = f"episode {np.median(other):.0f}" if other else "none"
        print(f"| {machine} | {len(runs)} | {len(runs) - len(other)} | {median} |")


if __name__ == "__main__":
    main()
