"""How well a centre follows: what returns are compared with, and what the policy of that moment earns (chapter 14).

    >>> table = follow(config, seed=0, arms={"running": {"name": "running"}, "ema": {"name": "ema"}})

The policies are those of one run, and all centres look on: each normalizer is shown the returns of every episode of
that run. Now and then the policy is held still and plays many more episodes, whose mean is what a centre should be at.

    python -m kscore.labs.centre_error

trains what data/tracks.jsonl lacks. A line of it is one run of the running Z-Score (actor-critic on CartPole) under one
condition; every tenth episode has a row for each arm.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from kscore import checks, normalizers
from kscore.labs import recording
from kscore.project import DATA
from kscore.rl import disturbances, environments
from kscore.rl.algorithms import Batch
from kscore.rl.config import RunConfig
from kscore.rl.networks import Dropout
from kscore.rl.policies import Policy
from kscore.rl.training import History, train
from kscore.study import plan

STREAM = 100  # far from the streams of a run: what is played here leaves the run as it is
COLUMNS = ("episode", "arm", "centre", "expected", "standard_error")


def follow(
    config: RunConfig, seed: int, arms: Mapping[str, dict] | None = None, *, every: int = 10, episodes: int = 100
) -> pd.DataFrame:
    """Train a run and return, for every so many of its episodes and each arm, the centre and what was to be expected.

    `arms` names normalizers by their options; without it there is one, the run's own. Columns: `episode`, counted from
    1; `arm`; `centre`, what the returns of this episode were held against, the mean over its steps; `expected`, the
    mean over as many `episodes` of the policy that played it, with its `standard_error`. Returns are discounted and
    in the units that the learner is told, disturbances included; those of an episode count as their mean over its
    steps. Normalizers that judge by a prior have their centre before the episode, a Z-Score has the episode's own.
    """
    checks.whole("every", every)
    checks.whole("episodes", episodes, low=2)
    if config.reward_normalizer is not None:
        raise ValueError(
            "reward_normalizer must be None where centres of returns are followed, because the units of "
            f"the returns change with it, got {config.reward_normalizer!r}"
        )
    arms = {config.normalizer["name"]: config.normalizer} if arms is None else arms
    if not isinstance(arms, Mapping):
        raise ValueError(f"arms must map names to normalizers, got {arms!r}")
    checked = {arm: replace(config, normalizer=options).normalizer for arm, options in arms.items()}
    looking_on, rows = {arm: normalizers.make(**options) for arm, options in checked.items()}, []

    def watch(history: History, batch: Batch, policy: Policy) -> None:
        returns = np.split(batch.returns(config.gamma), np.cumsum(batch.lengths)[:-1])
        for episode, own in enumerate(returns, start=history.episodes - len(returns) + 1):
            centres = {arm: float(np.mean(normalizer.learn(own).centre)) for arm, normalizer in looking_on.items()}
            if episode % every == 0:
                expected = monte_carlo(config, policy, seed, episode, episodes)
                rows.extend((episode, arm, centre, *expected) for arm, centre in centres.items())

    train(config, seed, watch=watch)
    return pd.DataFrame(rows, columns=COLUMNS)


def monte_carlo(config: RunConfig, policy: Policy, seed: int, episode: int, episodes: int) -> tuple[float, float]:
    """Return the mean return of a policy that is held still, and its standard error, as things are in an episode.

    The policy acts as it does in training, by chance and with dropout; an episode counts as the mean over its steps of
    its discounted returns.
    """
    makes, actions, dropout, disturbance = (np.random.default_rng([seed, STREAM, episode, i]) for i in range(4))
    environment = environments.make(config.env, int(makes.integers(2**31)))
    environment = disturbances.put_on(environment, config.disturbance, lambda: episode, disturbance)
    masks = Dropout(config.dropout, config.hidden, dropout)
    played = (environments.play(environment, policy, actions, masks) for _ in range(episodes))
    means = np.array([Batch.of([one], config.reward_scale).returns(config.gamma).mean() for one in played])
    environment.env.close()
    return float(means.mean()), float(means.std(ddof=1) / math.sqrt(episodes))


# What is recorded

PATH = DATA / "tracks.jsonl"
CONDITIONS = {
    "clean": "fair_actor_critic",
    "noise 3": "disturbed_actor_critic_noise",
    "times 10": "disturbed_actor_critic_shift",
    "swap": "disturbed_actor_critic_swap",
}
"""What is done to CartPole while centres are followed, and the part whose runs are."""
SEEDS = range(5000, 5010)  # the first of those parts
ARMS = ("zscore", "running", "ema", "kscore", "adaptive", "adaptive_refit", "episode_filter")


def planned() -> list[tuple[str, int]]:
    """Return the runs that are followed, condition and seed, seed by seed."""
    return [(condition, seed) for seed, condition in product(SEEDS, CONDITIONS)]


def read(path: Path = PATH) -> pd.DataFrame:
    """Return all rows: `condition`, `seed`, `episode`, `arm`, `centre`, `expected`, `standard_error`."""
    return pd.concat(
        [
            pd.DataFrame(line["rows"]).assign(condition=line["condition"], seed=line["seed"])
            for line in recording.lines(path)
        ],
        ignore_index=True,
    )


def followed(condition: str, seed: int) -> dict:
    """Train one run, and return a line: what each centre was, and what there was to follow."""
    title = "running" if condition == "clean" else f"running, {condition}"
    config = plan.part(CONDITIONS[condition]).configs[title]
    centres = {arm: plan.arm("contest", arm, "actor_critic").normalizer for arm in ARMS}
    rows = follow(config, seed, centres, every=10, episodes=100)
    return {"condition": condition, "seed": seed, "rows": rows.to_dict("list")}


if __name__ == "__main__":
    recording.record(recording.asked(PATH), planned(), followed, "condition")
