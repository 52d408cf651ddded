"""The experiments of the analysis plan (data/PLAN.md): every arm is a name and a configuration.

    >>> arms("CartPole-v1", "ppo")["adaptive_refit"].normalizer
    {'name': 'kscore', 'variant': 'adaptive', 'mode': 'refit', 'Q': 0.01, 'R': 0.1}
"""

import fnmatch
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kscore import DATA, checks
from kscore.training import RunConfig

RUNS = DATA / "runs"

SEEDS = 50  # runs an arm on CartPole
RESULT_SEEDS = 1000  # the first of the seeds that results are made of
TUNING_SEEDS = 2000  # the first of the seeds that settings are chosen on; no result uses them
LIVE_SEEDS = 3000  # the first of the seeds that chapters train before the reader's eyes

Arms = dict[str, RunConfig]

BASELINES = {name: {"name": name} for name in ("none", "zscore", "running", "ema")}
KALMAN_ARMS = {
    "kscore": ("simple", "stream"), "refit": ("simple", "refit"), "innovation": ("simple", "innovation"),
    "adaptive": ("adaptive", "stream"), "adaptive_refit": ("adaptive", "refit"),
    "adaptive_innovation": ("adaptive", "innovation"),
}
ARMS = (*BASELINES, *KALMAN_ARMS)
LUNAR_ARMS = ("none", "zscore", "running", "refit", "adaptive_refit", "adaptive")

TABLE_2 = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The process noises of the paper's Table 2, at R = 1."""

TUNED_Q = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
TUNED_R = (1e-2, 1e-1, 1.0, 10.0, 100.0)
TUNED_FORGETTING = (1e-4, 1.5e-4, 2e-4, 3e-4, 4e-4, 6e-4, 8e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 7e-3, 0.01, 0.015, 0.02,
                    0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7)
"""1 - decay of the moving average: as many values as the grid over (Q, R) has cells."""

TUNED_ALGORITHMS = ("actor_critic", "ppo")
TUNED_ARMS = {"stream": "kscore", "refit": "refit", "ema": "ema"}  # a grid, and the arm that its winner is shown as

CHAPTERS = {
    5: ["cartpole_actor_critic", "cartpole_reinforce"],
    6: ["cartpole_gae", "cartpole_gae_switched", "cartpole_gae_advantages"],
    7: ["lunarlander_actor_critic", "lunarlander_released"],
    8: ["cartpole_ppo", "cartpole_ppo_switched", "cartpole_ppo_released"],
    9: ["lunarlander_ppo"],
    10: ["process_noise_*", "tuning_*", "cartpole_actor_critic", "cartpole_ppo"],
    11: ["*"],
}
"""The parts of the study that a chapter reads."""


def released_filter(env: str, algorithm: str, variant: str) -> dict[str, float]:
    """Return the filter's released setting, Q and R (the starting R of the adaptive variant)."""
    if env == "LunarLander-v3":
        return {"Q": 1e-2, "R": 1.0} if variant == "simple" else {"Q": 1.0, "R": 1e-2}
    if variant == "simple":
        return {"Q": 1e-4, "R": 1e-2}
    return {"Q": 1e-2, "R": 0.1} if algorithm == "ppo" else {"Q": 0.1, "R": 1.0}


def arms(env: str, algorithm: str, names: Iterable[str] = ARMS, **changes: object) -> Arms:
    """Return the named arms on an algorithm's released settings; `changes` are made to all of them."""
    preset = replace(RunConfig.preset(env, algorithm), **changes)
    return {name: replace(preset, normalizer=_normalizer(name, env, algorithm)) for name in names}


def _normalizer(name: str, env: str, algorithm: str) -> dict:
    if checks.choice("arm", name, ARMS) in BASELINES:
        return BASELINES[name]
    variant, mode = KALMAN_ARMS[name]
    return {"name": "kscore", "variant": variant, "mode": mode, **released_filter(env, algorithm, variant)}


def switched(algorithm: str, **changes: object) -> Arms:
    """Return the CartPole arms with the z-scoring of advantages switched the other way (R2)."""
    usual = RunConfig.preset("CartPole-v1", algorithm).normalize_advantages
    return arms("CartPole-v1", algorithm, normalize_advantages=not usual, **changes)


def released_ppo(**changes: object) -> Arms:
    """Return the two arms of the released PPO notebook on CartPole, with its stopping rule (R3).

    One filters the returns and z-scores the advantages; the other does neither. The rule passes on fewer than 25
    evaluations too.
    """
    filtered = arms("CartPole-v1", "ppo", ["adaptive_refit"], full_window=False, **changes)
    neither = arms("CartPole-v1", "ppo", ["none"], full_window=False, normalize_advantages=False, **changes)
    return filtered | neither


def normalized_advantages(**changes: object) -> Arms:
    """Return the GAE arms in which the advantages themselves go through the normalizer, once (R8)."""
    return arms("CartPole-v1", "gae", [name for name in ARMS if name not in ("none", "ema")],
                signal="advantages", normalize_advantages=False, **changes)


def process_noise(mode: str, Qs: Iterable[float] = TABLE_2, R: float = 1.0, **changes: object) -> Arms:
    """Return an arm of PPO for each process noise Q, as in the paper's Table 2."""
    return kalman_grid("ppo", mode, Qs, [R], **changes)


def kalman_grid(algorithm: str, mode: str, Qs: Iterable[float] = TUNED_Q, Rs: Iterable[float] = TUNED_R,
                **changes: object) -> Arms:
    """Return an arm of the simple filter for every pair (Q, R)."""
    preset = replace(RunConfig.preset("CartPole-v1", algorithm), **changes)
    return {f"Q = {Q:g}, R = {R:g}": replace(preset, normalizer={"name": "kscore", "mode": mode, "Q": Q, "R": R})
            for Q in Qs for R in Rs}


def ema_grid(algorithm: str, forgetting: Iterable[float] = TUNED_FORGETTING, **changes: object) -> Arms:
    """Return an arm of the moving average for every 1 - decay."""
    preset = replace(RunConfig.preset("CartPole-v1", algorithm), **changes)
    return {f"1 - decay = {rate:g}": replace(preset, normalizer={"name": "ema", "decay": 1 - rate})
            for rate in forgetting}


def grids(algorithm: str, Qs: Iterable[float] = TUNED_Q, Rs: Iterable[float] = TUNED_R,
          forgetting: Iterable[float] = TUNED_FORGETTING, **changes: object) -> dict[str, Arms]:
    """Return the grids that are searched for an algorithm: of both modes of the filter, and of the moving average."""
    return {"stream": kalman_grid(algorithm, "stream", Qs, Rs, **changes),
            "refit": kalman_grid(algorithm, "refit", Qs, Rs, **changes),
            "ema": ema_grid(algorithm, forgetting, **changes)}


def tuned(searched: dict[str, Arms], winners: dict[str, str]) -> Arms:
    """Return the winner of each grid, by the name of the method that it is a setting of."""
    return {TUNED_ARMS[kind]: searched[kind][winner] for kind, winner in winners.items()}


def released_lunar(**changes: object) -> Arms:
    """Return the settings of the two released LunarLander notebooks, stopping on training returns (R4).

    Named after what their stored outputs read: 750 (the filter's mean, the plain deviation) and 991 (adaptive).
    """
    preset = replace(RunConfig.preset("LunarLander-v3", "actor_critic"), criterion="training", **changes)
    settings = {"750": {"scale": "returns", "Q": 1e-2, "R": 1.0}, "991": {"variant": "adaptive", "Q": 1.0, "R": 1e-2}}
    return {name: replace(preset, normalizer={"name": "kscore", "mode": "refit", **options})
            for name, options in settings.items()}


class Experiment(NamedTuple):
    """A part of the recorded study: its arms and seeds; the runs are in `data/runs`, in a file of its name."""

    configs: Arms
    seeds: range


def experiments(seeds: int = SEEDS, lunar_seeds: int = 10, tuning_seeds: int = 8, first_seed: int = RESULT_SEEDS,
                max_episodes: int = 500, lunar_max_episodes: int = 1500) -> dict[str, Experiment]:
    """Return every part of the study whose settings were fixed beforehand, the longest runs first.

    The defaults are those of the plan; a smaller study is for trying things out.
    """
    results, lunar_results, tuning = (range(first, first + count) for first, count in (
        (first_seed, seeds), (first_seed, lunar_seeds), (TUNING_SEEDS, tuning_seeds)))
    lunar, cart = {"max_episodes": lunar_max_episodes}, {"max_episodes": max_episodes}
    found = {}
    for algorithm in ("actor_critic", "ppo"):
        both = arms("LunarLander-v3", algorithm, LUNAR_ARMS, criterion="both", **lunar)  # two times from the same runs
        found[f"lunarlander_{algorithm}"] = Experiment(both, lunar_results)
    found["lunarlander_released"] = Experiment(released_lunar(**lunar), lunar_results)
    for algorithm in ("reinforce", "actor_critic", "gae", "ppo"):
        found[f"cartpole_{algorithm}"] = Experiment(arms("CartPole-v1", algorithm, **cart), results)
    for algorithm in ("gae", "ppo"):
        found[f"cartpole_{algorithm}_switched"] = Experiment(switched(algorithm, **cart), results)
    found["cartpole_ppo_released"] = Experiment(released_ppo(**cart), results)
    found["cartpole_gae_advantages"] = Experiment(normalized_advantages(**cart), results)
    for mode in ("stream", "refit"):
        found[f"process_noise_{mode}"] = Experiment(process_noise(mode, **cart), results)
    for algorithm in TUNED_ALGORITHMS:
        found |= {f"tuning_{algorithm}_{kind}": Experiment(grid, tuning)
                  for kind, grid in grids(algorithm, **cart).items()}
    return found


def chosen(patterns: Iterable[str] = ()) -> dict[str, Experiment]:
    """Return the parts of the study that any of the patterns means: a name, a glob, or the number of a chapter.

    All of them without a pattern.
    """
    every = experiments()
    wanted = set()
    for name in [name for pattern in patterns for name in _of_chapter(pattern)]:
        matching = fnmatch.filter(every, name)
        wanted.update(matching or [checks.choice("experiment", name, every)])
    return {name: part for name, part in every.items() if not wanted or name in wanted}


def _of_chapter(pattern: str) -> list[str]:
    if not pattern.isdecimal():
        return [pattern]
    checks.choice("chapter with experiments", str(int(pattern)), [str(number) for number in CHAPTERS])
    return CHAPTERS[int(pattern)]


def store(name: str) -> Path:
    """Return the file that holds the runs of a part of the study."""
    return RUNS / f"{name}.jsonl"
