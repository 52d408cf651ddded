"""Is the learner by hand as fast as the trainer? Both on the same task, over many seeds (chapter 04).

    python -m kscore.labs.by_hand_times

trains 100 seeds of each in a few minutes, to the same rule, and writes data/by_hand.csv.
"""

import dataclasses
from typing import NamedTuple

import pandas as pd

from kscore.analysis import stats
from kscore.analysis.stats import Interval, Times
from kscore.labs import by_hand, recording
from kscore.project import DATA
from kscore.rl import RunConfig, train

PATH = DATA / "by_hand.csv"
NORMALIZER = {"name": "running"}
LEARNERS = ("reinforce", "actor_critic")
CAP = 500
COLUMNS = ["learner", "code", "seed", "episodes", "solved"]


def row(learner: str, code: str, seed: int) -> tuple[str, str, int, int, bool]:
    """Train one run until the mean of 25 training episodes is 475; nothing is dropped, nothing evaluated."""
    if code == "by hand":
        hand = by_hand.Learner(seed, NORMALIZER, critic=learner == "actor_critic")
        lengths = by_hand.train(hand, CAP)
        return learner, code, seed, len(lengths), by_hand.solved(lengths)
    preset = RunConfig.preset("CartPole-v1", learner)
    never = CAP + 1
    config = dataclasses.replace(
        preset, normalizer=NORMALIZER, dropout=0.0, criterion="training", evaluate_every=never, max_episodes=CAP
    )
    record = train(config, seed)
    return learner, code, seed, record["episodes"], record["solved"]


def table(seeds: int) -> pd.DataFrame:
    """Train so many seeds of every learner with both codes; return a row for each run."""
    runs = [
        row(learner, code, seed) for learner in LEARNERS for code in ("by hand", "trainer") for seed in range(seeds)
    ]
    return pd.DataFrame(runs, columns=COLUMNS)


class Compared(NamedTuple):
    """How many times as fast the learner by hand is, from restricted means, and the log-rank test's p."""

    factor: Interval
    p: float


def compare(runs: pd.DataFrame, learner: str) -> Compared:
    """Compare the two codes of one learner."""
    hand, trainer = (_times(runs, learner, code) for code in ("by hand", "trainer"))
    factor = stats.bootstrap(lambda weights: stats.improvement(hand, trainer, CAP, weights), len(hand.time))
    return Compared(factor, stats.logrank(hand, trainer))


def _times(runs: pd.DataFrame, learner: str, code: str) -> Times:
    chosen = runs[(runs.learner == learner) & (runs.code == code)]
    return Times(chosen.episodes.to_numpy(), chosen.solved.to_numpy())


if __name__ == "__main__":
    recording.write(PATH, COLUMNS, lambda: table(100))
