"""The plan: every experiment, declared once; data/PLAN.md says in words what stands here as code.

    >>> part("cartpole_ppo").configs["adaptive_refit"].normalizer["Q"]
    0.01

A part of the study is a file in data/runs, with its arms (a name and a configuration each) and its seeds. Labels such
as R2 name facts of the paper's release; chapter 00 lists them.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kscore import checks
from kscore.normalizers.parts import PLACES
from kscore.rl.config import RunConfig

Arms = dict[str, RunConfig]


class Seeds(NamedTuple):
    """A stretch of seeds: the first, and how many."""

    first: int
    count: int


RESULTS = Seeds(1000, 50)  # results on CartPole
LUNAR_RESULTS = Seeds(1000, 10)
TUNING = Seeds(2000, 8)  # settings are chosen on these; no result uses them
LIVE = 3000  # the first of the seeds that chapters train before the reader's eyes, up to 3999
EPISODE_RESULTS = Seeds(4000, 50)  # results of the filters over episodes
LUNAR_TUNING = Seeds(2000, 4)  # which of their forms is run on LunarLander is chosen on these
LUNAR_FORM = "episode_z"  # the one that was chosen
RELATIVE_RESULTS = Seeds(6000, 50)  # results of PopArt and its like
CONTINUOUS_RESULTS = Seeds(8000, 30)  # results on tasks with real actions
UNTUNED_RESULTS = Seeds(8000, 10)  # on those for which nothing was tuned
PENDULUM_TUNING = Seeds(2000, 6)
FAIR_TUNING = Seeds(2000, 20)  # the setting of each arm of the fair fight is chosen on these
FAIR_RESULTS = Seeds(5000, 50)  # results of the fair fight on CartPole
FAIR_FEWER = Seeds(5000, 30)  # under disturbances, on short tasks, and for what is descriptive
LONGER_RESULTS = Seeds(5100, 30)  # after a swap of the actions, watched for longer
ACROBOT_RESULTS = Seeds(5000, 20)
FAIR_LUNAR_RESULTS = Seeds(5000, 20)

BASELINES = {name: {"name": name} for name in ("none", "zscore", "running", "ema")}
KALMAN_ARMS = {
    "kscore": ("simple", "stream"), "refit": ("simple", "refit"), "innovation": ("simple", "innovation"),
    "adaptive": ("adaptive", "stream"), "adaptive_refit": ("adaptive", "refit"),
    "adaptive_innovation": ("adaptive", "innovation"),
}
ARMS = (*BASELINES, *KALMAN_ARMS)
LUNAR_ARMS = ("none", "zscore", "running", "refit", "adaptive_refit", "adaptive")

EPISODE_ARMS = ("zscore", "zscore_plain", "running", "running_plain", "episode_z", "episode", "episode_advantages",
                "episode_both", "episode_learned", "episode_bank")
"""The arms of the filter over episodes, and what it is held against; REINFORCE, without advantages, has fewer."""
SLOWER = 0.003  # beside the released learning rate

RELATIVES: dict[str, dict] = {
    "none": {},
    "popart": {"value_scale": {"name": "popart", "rate": 0.03}},
    "popart_episode": {"value_scale": {"name": "episode"}},
    "percentile": {"normalizer": {"name": "percentile", "rate": 0.3}},
    "reward_scale": {"reward_normalizer": {"name": "reward_scale"}},
    "symlog": {"value_scale": {"name": "symlog"}},
}
"""The relatives, by what each of them puts where; nothing else is normalized."""
CONTINUOUS_ARMS = ("zscore", "running", "adaptive", "episode_both", "reward_scale")
CONTINUOUS_RATES = (0.0003, 0.001, 0.003)
HIGHER_RATES = (*CONTINUOUS_RATES, 0.01)  # where the best of those was the highest
CHOSEN_RATES: dict[str, dict[str, float]] = {
    "Pendulum-v1": dict.fromkeys(CONTINUOUS_ARMS, 0.001),
    "LunarLanderContinuous-v3": {**dict.fromkeys(CONTINUOUS_ARMS, 0.003), "episode_both": 0.01},
}
"""The learning rate of each arm on a task with real actions: that of the largest mean area on the tuning seeds."""
FAIR_ARMS = ("none", "zscore", "running", "ema", "kscore", "adaptive", "adaptive_refit", "episode_filter",
             "filter_bank", "popart", "percentile_range")
"""The arms of the fair fight. Each has one learning rate and one way with advantages, found on equally many runs."""
FAIR_RATES = (0.001, 0.003, 0.01, 0.03)
FAIR_LUNAR_ARMS = ("zscore", "running", "adaptive", "adaptive_refit", "episode_filter")
FAIR_LUNAR_RATES = (0.00025, 0.0005, 0.001)
FOUND_IN_CHAPTER_10: dict[str, dict[str, dict]] = {
    "ema": {"actor_critic": {"decay": 1 - 2e-4}, "ppo": {"decay": 1 - 1.5e-3}},
    "kscore": {"actor_critic": {"Q": 1e-4, "R": 10.0}, "ppo": {"Q": 1e-4, "R": 100.0}},
}
"""The winners of the grids of chapter 10. REINFORCE and GAE, which it did not tune, take those of the actor-critic."""
Choice = tuple[float, bool]
"""A learning rate, and whether advantages are z-scored per episode."""
FAIR_OWN: dict[str, dict[str, Choice]] = {
    "reinforce": {**dict.fromkeys(FAIR_ARMS, (0.01, False)),
                  **dict.fromkeys(("running", "kscore", "adaptive_refit", "percentile_range"), (0.003, False))},
    "actor_critic": {**dict.fromkeys(FAIR_ARMS, (0.01, False)),
                     **dict.fromkeys(("zscore", "adaptive_refit"), (0.01, True))},
    "gae": {**dict.fromkeys(FAIR_ARMS, (0.01, True)), "kscore": (0.003, True),
            **dict.fromkeys(("none", "episode_filter", "filter_bank", "popart"), (0.01, False))},
    "ppo": {**dict.fromkeys(FAIR_ARMS, (0.003, False)), "kscore": (0.001, False),
            **dict.fromkeys(("none", "adaptive", "adaptive_refit"), (0.003, True))},
}
"""Each arm's own setting on CartPole: that of the lowest restricted mean on the tuning seeds."""
FAIR_COMMON: dict[str, dict[str, Choice]] = {
    "reinforce": dict.fromkeys(("none", "zscore", "ema", "adaptive", "episode_filter", "filter_bank", "popart"),
                               (0.003, False)),
    "gae": {"kscore": (0.01, True)},
    "ppo": {"kscore": (0.003, False)},
}
"""The settings at the common rate of a learner, of the arms for which it is another one than their own."""
FAIR_LUNAR_OWN: dict[str, dict[str, Choice]] = {
    "actor_critic": {**dict.fromkeys(FAIR_LUNAR_ARMS, (0.001, True)), "adaptive": (0.00025, True),
                     "adaptive_refit": (0.0005, True), "episode_filter": (0.001, False)},
    "ppo": {**dict.fromkeys(FAIR_LUNAR_ARMS, (0.0005, True)), "adaptive": (0.00025, True),
            "adaptive_refit": (0.00025, True), "episode_filter": (0.0005, False)},
}
"""The same on LunarLander. No run of the adaptive stream arrived there, and of equal settings the lowest rate is it."""
COMMON_RATES = {"reinforce": 0.003, "actor_critic": 0.01, "gae": 0.01, "ppo": 0.003}
FACTORIAL_FADING = 0.1  # the least weight of the newest episode, where memory fades
OTHER_NETWORKS: dict[str, dict] = {"no dropout": {"dropout": 0.0}, "half the width": {"hidden": (64,)},
                                   "double width": {"hidden": (256,)}}
"""What the networks are changed to, to see whether an order of arms depends on them."""
SHIFT_ARMS = ("none", "zscore", "running", "ema", "kscore", "adaptive", "adaptive_refit", "episode_filter")
"""The arms under noise and shifts, at their own settings on the clean task."""
SWAPPED_AFTER = 150
CHANGED_AFTER = 50
WATCHED_LONGER = 1500  # 400 episodes proved too few for a run to come back after the swap
CONDITIONS: dict[str, dict[str, dict]] = {
    "noise": {f"noise {deviation:g}": {"disturbance": {"name": "noise", "deviation": deviation}}
              for deviation in (0.1, 0.3, 1.0, 3.0, 10.0)},
    "scale": {f"scale {factor:g}": {"reward_scale": factor} for factor in (0.001, 0.03, 30.0, 1000.0)},
    "shift": {
        "outliers": {"disturbance": {"name": "outliers", "share": 0.01, "size": 100.0}},
        "times 10": {"disturbance": {"name": "change", "factor": 10.0, "after": CHANGED_AFTER}},
        "plus 10": {"disturbance": {"name": "change", "offset": 10.0, "after": CHANGED_AFTER}},
    },
    "swap": {"swap": {"disturbance": {"name": "swap", "after": SWAPPED_AFTER}, "stop": False, "max_episodes": 400}},
}
"""What is done to CartPole, by kind: noise and scale as in bsuite, the rest our own."""
DISTURBED = {"actor_critic": tuple(CONDITIONS), "reinforce": ("noise", "shift", "swap")}
"""Which kinds of conditions each learner is put under."""
SHORT_TASKS = {"bandit": "kscore.rl.tasks:Bandit-v0", "drylake": "kscore.rl.tasks:DryLake-v1",
               "frozenlake": "FrozenLake-v1", "blackjack": "kscore.rl.tasks:TimedBlackjack-v1"}
"""Tasks with short episodes that pay at their end."""
REWARD_SCALES = {"": 1.0, "_small": 1e-3, "_large": 1e3}  # what rewards are multiplied by

TABLE_2 = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The process noises of the paper's Table 2, at R = 1."""

TUNED_Q = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
TUNED_R = (1e-2, 1e-1, 1.0, 10.0, 100.0)
TUNED_FORGETTING = (1e-4, 1.5e-4, 2e-4, 3e-4, 4e-4, 6e-4, 8e-4, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 7e-3, 0.01, 0.015, 0.02,
                    0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7)
"""1 - decay of the moving average: as many values as the grid over (Q, R) has cells."""

TUNED_ARMS = {"stream": "kscore", "refit": "refit", "ema": "ema"}  # a grid, and the arm that its winner is shown as


# The arms

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
    return {f"Q = {_short(Q)}, R = {_short(R)}":
            replace(preset, normalizer={"name": "kscore", "mode": mode, "Q": Q, "R": R}) for Q in Qs for R in Rs}


def ema_grid(algorithm: str, forgetting: Iterable[float] = TUNED_FORGETTING, **changes: object) -> Arms:
    """Return an arm of the moving average for every 1 - decay."""
    preset = replace(RunConfig.preset("CartPole-v1", algorithm), **changes)
    return {f"1 - decay = {_short(rate)}": replace(preset, normalizer={"name": "ema", "decay": 1 - rate})
            for rate in forgetting}


def _short(value: float) -> str:
    """Return a number in six digits, or in as many as it needs to be told from any other."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


def tuned(winners: Mapping[str, RunConfig] | None = None) -> Arms:
    """Return the winner of each grid, "stream", "refit" and "ema", named after the method that it is a setting of."""
    if winners is None:
        raise ValueError(f"a tuned part needs winners, the best setting of each of its grids {', '.join(TUNED_ARMS)}, "
                         "got none: `analysis.best` finds them in the runs of the grids")
    return {TUNED_ARMS[checks.choice("grid", kind, TUNED_ARMS)]: config for kind, config in winners.items()}


def released_lunar(**changes: object) -> Arms:
    """Return the settings of the two released LunarLander notebooks, stopping on training returns (R4).

    Named after what their stored outputs read: 750 (the filter's mean, the plain deviation) and 991 (adaptive).
    """
    preset = replace(RunConfig.preset("LunarLander-v3", "actor_critic"), criterion="training", **changes)
    settings = {"750": {"scale": "returns", "Q": 1e-2, "R": 1.0}, "991": {"variant": "adaptive", "Q": 1.0, "R": 1e-2}}
    return {name: replace(preset, normalizer={"name": "kscore", "mode": "refit", **options})
            for name, options in settings.items()}


def one_level_up(algorithm: str, env: str = "CartPole-v1", names: Iterable[str] | None = None,
                 **changes: object) -> Arms:
    """Return the arms of a filter over episodes: on the returns, on the advantages, on both; fixed, learned, a bank.

    A name that ends in `_z` has its advantages z-scored per episode, and so have "zscore" and "running"; all others go
    without. "learned" and "bank" stand at both doors, with REINFORCE at that of the returns, the only one it has.
    """
    preset = replace(RunConfig.preset(env, algorithm), normalize_advantages=False, **changes)
    if names is None:
        names = EPISODE_ARMS if algorithm != "reinforce" else ("zscore", "running", "episode", *EPISODE_ARMS[-2:])
    return {name: _one_level_up(preset, checks.choice("arm", name, EPISODE_ARMS)) for name in names}


def _one_level_up(preset: RunConfig, name: str) -> RunConfig:
    kind, _, where = name.partition("_")
    has_critic = preset.algorithm != "reinforce"
    if kind != "episode":
        return replace(preset, normalizer={"name": kind}, normalize_advantages=has_critic and where != "plain")
    options = {"name": "episode"} | ({"noise": where} if where in ("learned", "bank") else {})
    at_advantages = has_critic and where in ("advantages", "both", "learned", "bank")
    return replace(preset, normalizer={"name": "none"} if where == "advantages" else options,
                   advantage_normalizer=options if at_advantages else None, normalize_advantages=where == "z")


def relatives(algorithm: str, **changes: object) -> Arms:
    """Return the Z-Scores, the filter over episodes on both doors, and the relatives, at the slower rate."""
    changes = {"learning_rate": SLOWER, **changes}
    bare = replace(RunConfig.preset("CartPole-v1", algorithm), normalizer={"name": "none"}, normalize_advantages=False,
                   **changes)
    return {**one_level_up(algorithm, names=("zscore", "running", "episode_both"), **changes),
            **{name: replace(bare, **options) for name, options in RELATIVES.items()}}


def continuous(env: str, **changes: object) -> Arms:
    """Return the arms on a task with real actions, with PPO, each trained to the cap.

    All but the filter over episodes have their advantages z-scored, as their users do.
    """
    changes = {"stop": False, **changes}
    preset = replace(RunConfig.preset(env, "ppo"), **changes)
    scaled = {"name": "reward_scale", "gamma": preset.gamma}
    made = {**one_level_up("ppo", env, ("zscore", "running", "episode_both"), **changes),
            **arms(env, "ppo", ["adaptive"], **changes),
            "reward_scale": replace(preset, normalizer={"name": "none"}, reward_normalizer=scaled)}
    return {name: made[name] for name in CONTINUOUS_ARMS}


def continuous_grid(env: str, rates: Iterable[float] = CONTINUOUS_RATES, **changes: object) -> Arms:
    """Return every arm on a task with real actions at every learning rate."""
    return {f"{name} at {_short(rate)}": config for rate in rates
            for name, config in continuous(env, learning_rate=rate, **changes).items()}


def continuous_tuned(env: str, tuned_on: str | None = None, **changes: object) -> Arms:
    """Return every arm on a task with real actions at the rate that tuning seeds of this task, or another, chose."""
    rates = CHOSEN_RATES[tuned_on or env]
    return {name: continuous(env, **{"learning_rate": rate, **changes})[name] for name, rate in rates.items()}


def fair(name: str, learner: str, *, z_scored: bool, env: str = "CartPole-v1", **changes: object) -> RunConfig:
    """Return an arm of the fair fight, with its advantages z-scored per episode or not.

    The filters over episodes stand at the door of the returns, and where advantages are not z-scored at theirs too.
    PopArt gives the critic its units; with REINFORCE, which has none, it scores returns.
    """
    checks.choice("arm", name, FAIR_ARMS)
    bare = replace(RunConfig.preset(env, learner), normalizer={"name": "none"}, normalize_advantages=z_scored,
                   **changes)
    if name in ("episode_filter", "filter_bank"):
        options = {"name": "episode"} | ({"noise": "bank"} if name == "filter_bank" else {})
        both = not z_scored and learner != "reinforce"
        return replace(bare, normalizer=options, advantage_normalizer=options if both else None)
    if name == "popart" and learner != "reinforce":
        return replace(bare, **RELATIVES["popart"])
    return replace(bare, normalizer=_fair_normalizer(name, learner, env))


def _fair_normalizer(name: str, learner: str, env: str) -> dict:
    if name in FOUND_IN_CHAPTER_10:
        found = FOUND_IN_CHAPTER_10[name]["ppo" if learner == "ppo" else "actor_critic"]
        return {"name": name, **found}
    if name == "popart":
        return RELATIVES["popart"]["value_scale"]
    if name == "percentile_range":
        return RELATIVES["percentile"]["normalizer"]
    return _normalizer(name, env, learner)


def fair_grid(learner: str, rates: Iterable[float] = FAIR_RATES, names: Iterable[str] = FAIR_ARMS,
              env: str = "CartPole-v1", both: Iterable[str] = FAIR_ARMS, **changes: object) -> Arms:
    """Return every arm at every learning rate; those of `both` with advantages as they are and z-scored.

    All others have them z-scored. REINFORCE has no advantages.
    """
    return {f"{name} at {_short(rate)}{', z-scored' if z_scored else ''}":
            fair(name, learner, z_scored=z_scored, env=env, **{"learning_rate": rate, **changes})
            for rate in rates for name in names
            for z_scored in ([False] if learner == "reinforce" else [False, True] if name in both else [True])}


def fair_at(learner: str, settings: Mapping[str, Choice], env: str = "CartPole-v1", **changes: object) -> Arms:
    """Return arms of the fair fight, each at its setting."""
    return {name: fair(name, learner, z_scored=z_scored, env=env, **{"learning_rate": rate, **changes})
            for name, (rate, z_scored) in settings.items()}


def factorial(learner: str, **changes: object) -> Arms:
    """Return every way to take a centre and a scale, from nowhere, the episode or the past, whose memory may fade."""
    bare = fair("none", learner, z_scored=False, **{"learning_rate": COMMON_RATES[learner], **changes})
    return {f"centre {centre}, scale {scale}{', fading' if fading else ''}":
            replace(bare, normalizer={"name": "parts", "centre": centre, "scale": scale, "fading": fading})
            for centre in PLACES for scale in PLACES
            for fading in ((0.0, FACTORIAL_FADING) if "past" in (centre, scale) else (0.0,))}


def other_networks(learner: str, **changes: object) -> Arms:
    """Return five arms at their own settings with each of the other networks."""
    settings = {name: FAIR_OWN[learner][name] for name in FAIR_LUNAR_ARMS}
    return {f"{name}, {title}": config for title, network in OTHER_NETWORKS.items()
            for name, config in fair_at(learner, settings, **{**network, **changes}).items()}


def disturbed(learner: str, kind: str, **changes: object) -> Arms:
    """Return the arms at their own settings on the clean task, under each condition of a kind."""
    settings = {name: FAIR_OWN[learner][name] for name in SHIFT_ARMS}
    return {f"{name}, {title}": config
            for title, condition in CONDITIONS[checks.choice("kind of condition", kind, CONDITIONS)].items()
            for name, config in fair_at(learner, settings, **{**condition, **changes}).items()}


def short(task: str, learner: str, **changes: object) -> Arms:
    """Return the arms on a short task, at the rate of its preset and with advantages as they are."""
    env = SHORT_TASKS[checks.choice("short task", task, SHORT_TASKS)]
    return {name: fair(name, learner, z_scored=False, env=env, **changes) for name in SHIFT_ARMS}


# The parts

class Declared(NamedTuple):
    """A part of the study as it was planned."""

    chapters: tuple[int, ...]  # that read it, beside the report, which reads all of the replication
    seeds: Seeds
    arms: Callable[..., Arms]  # from changes that are made to all of them


PARTS: dict[str, Declared] = {
    "lunarlander_actor_critic": Declared(
        (7,), LUNAR_RESULTS, partial(arms, "LunarLander-v3", "actor_critic", LUNAR_ARMS, criterion="both")),
    "lunarlander_ppo": Declared(
        (9,), LUNAR_RESULTS, partial(arms, "LunarLander-v3", "ppo", LUNAR_ARMS, criterion="both")),
    "lunarlander_released": Declared((7,), LUNAR_RESULTS, released_lunar),
    "cartpole_reinforce": Declared((5,), RESULTS, partial(arms, "CartPole-v1", "reinforce")),
    "cartpole_actor_critic": Declared((5, 10), RESULTS, partial(arms, "CartPole-v1", "actor_critic")),
    "cartpole_gae": Declared((6,), RESULTS, partial(arms, "CartPole-v1", "gae")),
    "cartpole_ppo": Declared((8, 10), RESULTS, partial(arms, "CartPole-v1", "ppo")),
    "cartpole_gae_switched": Declared((6,), RESULTS, partial(switched, "gae")),
    "cartpole_ppo_switched": Declared((8,), RESULTS, partial(switched, "ppo")),
    "cartpole_ppo_released": Declared((8,), RESULTS, released_ppo),
    "cartpole_gae_advantages": Declared((6,), RESULTS, normalized_advantages),
    "process_noise_stream": Declared((10,), RESULTS, partial(process_noise, "stream")),
    "process_noise_refit": Declared((10,), RESULTS, partial(process_noise, "refit")),
    "tuning_actor_critic_stream": Declared((10,), TUNING, partial(kalman_grid, "actor_critic", "stream")),
    "tuning_actor_critic_refit": Declared((10,), TUNING, partial(kalman_grid, "actor_critic", "refit")),
    "tuning_actor_critic_ema": Declared((10,), TUNING, partial(ema_grid, "actor_critic")),
    "tuning_ppo_stream": Declared((10,), TUNING, partial(kalman_grid, "ppo", "stream")),
    "tuning_ppo_refit": Declared((10,), TUNING, partial(kalman_grid, "ppo", "refit")),
    "tuning_ppo_ema": Declared((10,), TUNING, partial(ema_grid, "ppo")),
    "tuned_actor_critic": Declared((10,), RESULTS, tuned),
    "tuned_ppo": Declared((10,), RESULTS, tuned),
    **{f"episodes_{algorithm}{suffix}": Declared((12, 13), EPISODE_RESULTS, partial(one_level_up, algorithm, **rate))
       for suffix, rate in (("", {}), ("_slower", {"learning_rate": SLOWER}))
       for algorithm in ("reinforce", "actor_critic", "gae", "ppo")},
    **{f"episodes_lunarlander_tuning_{algorithm}": Declared(
        (12,), LUNAR_TUNING, partial(one_level_up, algorithm, "LunarLander-v3", ("episode_z", "episode_both")))
       for algorithm in ("actor_critic", "ppo")},
    **{f"episodes_lunarlander_{algorithm}": Declared(
        (12,), LUNAR_RESULTS, partial(one_level_up, algorithm, "LunarLander-v3", (LUNAR_FORM,)))
       for algorithm in ("actor_critic", "ppo")},
    **{f"relatives_{algorithm}{suffix}": Declared(
        (15,), RELATIVE_RESULTS, partial(relatives, algorithm, reward_scale=scale))
       for suffix, scale in REWARD_SCALES.items() for algorithm in ("actor_critic", "ppo")},
    "continuous_tuning_pendulum": Declared((16,), PENDULUM_TUNING, partial(continuous_grid, "Pendulum-v1")),
    "continuous_tuning_lunarlander": Declared(
        (16,), LUNAR_TUNING, partial(continuous_grid, "LunarLanderContinuous-v3", HIGHER_RATES)),
    "continuous_pendulum": Declared((16,), CONTINUOUS_RESULTS, partial(continuous_tuned, "Pendulum-v1")),
    "continuous_lunarlander": Declared(
        (16,), CONTINUOUS_RESULTS, partial(continuous_tuned, "LunarLanderContinuous-v3")),
    **{f"continuous_{name}": Declared(
        (16,), UNTUNED_RESULTS, partial(continuous_tuned, env, "Pendulum-v1", max_episodes=300))
       for name, env in (("halfcheetah", "HalfCheetah-v5"), ("bipedalwalker", "BipedalWalker-v3"))},
    **{f"fair_tuning_{learner}": Declared((17,), FAIR_TUNING, partial(fair_grid, learner))
       for learner in ("actor_critic", "ppo", "reinforce", "gae")},
    **{f"fair_tuning_lunarlander_{learner}": Declared(
        (17,), LUNAR_TUNING, partial(fair_grid, learner, FAIR_LUNAR_RATES, FAIR_LUNAR_ARMS, "LunarLander-v3",
                                     ("episode_filter",)))
       for learner in ("actor_critic", "ppo")},
    **{f"fair_lunarlander_{learner}": Declared(
        (17,), FAIR_LUNAR_RESULTS, partial(fair_at, learner, settings, "LunarLander-v3"))
       for learner, settings in FAIR_LUNAR_OWN.items()},
    **{f"fair_{learner}": Declared(
        (14, 17) if learner in DISTURBED else (17,), FAIR_RESULTS, partial(fair_at, learner, settings))
       for learner, settings in FAIR_OWN.items()},
    **{f"fair_common_{learner}": Declared((17,), FAIR_RESULTS, partial(fair_at, learner, settings))
       for learner, settings in FAIR_COMMON.items()},
    **{f"disturbed_{learner}_{kind}": Declared((14,), FAIR_FEWER, partial(disturbed, learner, kind))
       for learner, kinds in DISTURBED.items() for kind in kinds},
    **{f"disturbed_{learner}_swap_longer": Declared(
        (14,), LONGER_RESULTS, partial(disturbed, learner, "swap", max_episodes=WATCHED_LONGER))
       for learner in DISTURBED},
    **{f"short_{task}_{learner}": Declared((14,), FAIR_FEWER, partial(short, task, learner))
       for task in SHORT_TASKS for learner in DISTURBED},
    **{f"fair_parts_{learner}": Declared((17,), FAIR_FEWER, partial(factorial, learner))
       for learner in ("reinforce", "ppo")},
    **{f"fair_networks_{learner}": Declared((17,), FAIR_FEWER, partial(other_networks, learner))
       for learner in ("actor_critic", "ppo")},
    **{f"fair_{task}_{learner}": Declared((17,), seeds, partial(fair_at, learner, FAIR_OWN[learner], env))
       for task, env, seeds in (("drylake", SHORT_TASKS["drylake"], FAIR_FEWER),
                                ("acrobot", "Acrobot-v1", ACROBOT_RESULTS))
       for learner in ("actor_critic", "ppo")},
}
"""Every part of the study, the longest runs first. The arms of a tuned part are the winners of its grids."""

REPORT = 11  # the chapter that reads every part of the replication


class Part(NamedTuple):
    """A part of the study, ready to be trained or read."""

    name: str
    configs: Arms
    seeds: range

    @property
    def file(self) -> str:
        """The name of its file in a store."""
        return f"{self.name}.jsonl"

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return len(self.configs) * len(self.seeds)


def part(name: str, *, seeds: int | None = None, first_seed: int | None = None, **changes: object) -> Part:
    """Return a part of the study as planned; fewer seeds, other ones, or changed settings are for trying things out.

    `changes` are made to all arms (`learning_rate=0.003`), or go to what makes them (`Qs`, `Rs`, `winners`).
    """
    declared = PARTS[checks.choice("part of the study", name, PARTS)]
    first = declared.seeds.first if first_seed is None else checks.seed("first_seed", first_seed)
    most = checks.LARGEST_SEED + 1 - first
    count = checks.whole("seeds", declared.seeds.count if seeds is None else seeds, high=most)
    return Part(name, declared.arms(**changes), range(first, first + count))


def grids_of(name: str) -> dict[str, str]:
    """Return the parts whose winners a tuned part is made of, by the kind of their grid; none for any other part."""
    algorithm = name.removeprefix("tuned_")
    return {kind: f"tuning_{algorithm}_{kind}" for kind in TUNED_ARMS} if algorithm != name else {}


def chosen(patterns: Iterable[str] = ()) -> list[str]:
    """Return the names of the parts that any of the patterns means: a name, a glob, or the number of a chapter.

    All of them without a pattern. A tuned part brings its grids with it.
    """
    wanted = set()
    for pattern in patterns:
        matching = _of_chapter(int(pattern)) if pattern.isdecimal() else fnmatch.filter(PARTS, pattern)
        wanted.update(matching or [checks.choice("part of the study", pattern, PARTS)])
    wanted |= {grid for name in wanted for grid in grids_of(name).values()}
    return [name for name in PARTS if not wanted or name in wanted]


def _of_chapter(number: int) -> list[str]:
    known = sorted({chapter for declared in PARTS.values() for chapter in declared.chapters} | {REPORT})
    checks.choice("chapter with experiments", str(number), map(str, known))
    return [name for name, declared in PARTS.items()
            if number in declared.chapters or (number == REPORT and min(declared.chapters, default=REPORT) < REPORT)]


# What the claims of the paper are judged by

class Pairing(NamedTuple):
    """Which runs speak to a claim: a part, arms of it, the K-Scores before the baseline, and the criterion."""

    part: str
    arms: tuple[str, ...] = ()  # none: all of them, in their order
    criterion: str = "evaluation"

    @classmethod
    def parse(cls, text: str) -> "Pairing":
        """Read "part: a / b by criterion", where all but the part may be missing."""
        found = re.fullmatch(r"(\w+)(?:: (.+?))?(?: by (\w+))?", text)
        if not found:
            raise ValueError(f"a pairing must be 'part: arm / arm by criterion', got {text!r}")
        return cls(found[1], tuple((found[2] or "").split(" / ")) if found[2] else (), found[3] or "evaluation")


PAIRINGS: dict[str, dict[str, tuple[Pairing, ...]]] = {
    "E1": {"written": (Pairing("cartpole_actor_critic", ("kscore", "running")),),
           "released": (Pairing("cartpole_reinforce", ("adaptive_refit", "zscore")),)},
    "E2": {"written": (Pairing("cartpole_gae_advantages", ("kscore", "running")),),
           "released": (Pairing("cartpole_gae", ("adaptive_refit", "zscore")),)},
    "E3": {"written": (Pairing("lunarlander_actor_critic", ("adaptive", "running")),),
           "released": (Pairing("lunarlander_actor_critic", ("adaptive_refit", "zscore"), "training"),)},
    "E4": {"written": (Pairing("cartpole_ppo_switched", ("adaptive", "kscore", "running")),),
           "released": (Pairing("cartpole_ppo", ("adaptive_refit", "refit", "zscore")),)},
    "T1a": {"written": (Pairing("cartpole_ppo_switched", ("adaptive", "running")),),
            "released": (Pairing("cartpole_ppo_released", ("adaptive_refit", "none")),
                         Pairing("cartpole_ppo", ("adaptive_refit", "refit", "zscore")))},
    "T1b": {"written": (Pairing("lunarlander_ppo", ("adaptive", "running")),),
            "released": (Pairing("lunarlander_released", ("750", "991"), "training"),)},
    "T2": {"written": (Pairing("process_noise_stream"),), "released": (Pairing("process_noise_refit"),)},
}
"""For each experiment of the paper, the arms behind its claims, as written and as released."""
