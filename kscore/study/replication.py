"""The arms of the replication (chapters 05 to 11): the Z-Scores and the K-Scores, and the grids they are tuned on.

    >>> arms("CartPole-v1", "ppo")["adaptive_refit"].normalizer["Q"]
    0.01

An arm is a name and a configuration. Labels such as R2 name facts of the paper's release; chapter 00 lists them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kscore import checks
from kscore.rl.config import RunConfig

Arms = dict[str, RunConfig]

BASELINES = {name: {"name": name} for name in ("none", "zscore", "running", "ema")}

KALMAN_ARMS = {
    "kscore": ("simple", "stream"),
    "refit": ("simple", "refit"),
    "innovation": ("simple", "innovation"),
    "adaptive": ("adaptive", "stream"),
    "adaptive_refit": ("adaptive", "refit"),
    "adaptive_innovation": ("adaptive", "innovation"),
}
ARMS = (*BASELINES, *KALMAN_ARMS)
LUNAR_ARMS = ("none", "zscore", "running", "refit", "adaptive_refit", "adaptive")

TABLE_2 = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The process noises of the paper's Table 2, at R = 1."""

TUNED_Q = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
TUNED_R = (1e-2, 1e-1, 1.0, 10.0, 100.0)
TUNED_FORGETTING = (
    1e-4,
    1.5e-4,
    2e-4,
    3e-4,
    4e-4,
    6e-4,
    8e-4,
    1e-3,
    1.5e-3,
    2e-3,
    3e-3,
    5e-3,
    7e-3,
    0.01,
    0.015,
    0.02,
    0.03,
    0.05,
    0.07,
    0.1,
    0.15,
    0.2,
    0.3,
    0.5,
    0.7,
)
"""1 - decay of the moving average: as many values as the grid over (Q, R) has cells."""

TUNED_ARMS = {"stream": "kscore", "refit": "refit", "ema": "ema"}  # a grid, and the arm that its winner is shown as


def released_filter(env: str, algorithm: str, variant: str) -> dict[str, float]:
    """Return the filter's released setting, Q and R (the starting R of the adaptive variant)."""
    if env.startswith("LunarLander"):
        return {"Q": 1e-2, "R": 1.0} if variant == "simple" else {"Q": 1.0, "R": 1e-2}
    if variant == "simple":
        return {"Q": 1e-4, "R": 1e-2}
    return {"Q": 1e-2, "R": 0.1} if algorithm == "ppo" else {"Q": 0.1, "R": 1.0}


def arms(env: str, algorithm: str, names: Iterable[str] = ARMS, **changes: object) -> Arms:
    """Return the named arms on an algorithm's released settings; `changes` are made to all of them."""
    preset = replace(RunConfig.preset(env, algorithm), **changes)
    return {name: replace(preset, normalizer=normalizer(name, env, algorithm)) for name in names}


def normalizer(name: str, env: str, algorithm: str) -> dict:
    """Return the options of the normalizer that an arm is named after, as released for the task."""
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
    return arms(
        "CartPole-v1",
        "gae",
        [name for name in ARMS if name not in ("none", "ema")],
        signal="advantages",
        normalize_advantages=False,
        **changes,
    )


def process_noise(mode: str, Qs: Iterable[float] = TABLE_2, R: float = 1.0, **changes: object) -> Arms:
    """Return an arm of PPO for each process noise Q, as in the paper's Table 2."""
    return kalman_grid("ppo", mode, Qs, [R], **changes)


def kalman_grid(
    algorithm: str, mode: str, Qs: Iterable[float] = TUNED_Q, Rs: Iterable[float] = TUNED_R, **changes: object
) -> Arms:
    """Return an arm of the simple filter for every pair (Q, R)."""
    preset = replace(RunConfig.preset("CartPole-v1", algorithm), **changes)
    return {
        f"Q = {short_number(Q)}, R = {short_number(R)}": replace(
            preset, normalizer={"name": "kscore", "mode": mode, "Q": Q, "R": R}
        )
        for Q in Qs
        for R in Rs
    }


def ema_grid(algorithm: str, forgetting: Iterable[float] = TUNED_FORGETTING, **changes: object) -> Arms:
    """Return an arm of the moving average for every 1 - decay."""
    preset = replace(RunConfig.preset("CartPole-v1", algorithm), **changes)
    return {
        f"1 - decay = {short_number(rate)}": replace(preset, normalizer={"name": "ema", "decay": 1 - rate})
        for rate in forgetting
    }


def short_number(value: float) -> str:
    """Return a number in six digits, or in as many as it needs to be told from any other."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


def tuned(winners: Mapping[str, RunConfig] | None = None) -> Arms:
    """Return the winner of each grid, "stream", "refit" and "ema", named after the method that it is a setting of."""
    if winners is None:
        raise ValueError(
            f"a tuned part needs winners, the best setting of each of its grids {', '.join(TUNED_ARMS)}, "
            "got none: `analysis.best` finds them in the runs of the grids"
        )
    return {TUNED_ARMS[checks.choice("grid", kind, TUNED_ARMS)]: config for kind, config in winners.items()}


def released_lunar(**changes: object) -> Arms:
    """Return the settings of the two released LunarLander notebooks, stopping on training returns (R4).

    Named after what their stored outputs read: 750 (the filter's mean, the plain deviation) and 991 (adaptive).
    """
    preset = replace(RunConfig.preset("LunarLander-v3", "actor_critic"), criterion="training", **changes)
    settings = {"750": {"scale": "returns", "Q": 1e-2, "R": 1.0}, "991": {"variant": "adaptive", "Q": 1.0, "R": 1e-2}}
    return {
        name: replace(preset, normalizer={"name": "kscore", "mode": "refit", **options})
        for name, options in settings.items()
    }
