"""The arms beyond the paper (chapters 12 to 16): filters over episodes, relatives, and tasks with real actions."""

from collections.abc import Iterable
from dataclasses import replace

from kscore import checks
from kscore.rl.config import RunConfig
from kscore.study import replication
from kscore.study.replication import Arms, short_number

EPISODE_ARMS = (
    "zscore",
    "zscore_plain",
    "running",
    "running_plain",
    "episode_z",
    "episode",
    "episode_advantages",
    "episode_both",
    "episode_learned",
    "episode_bank",
)
"""The arms of the filter over episodes, and what it is held against; REINFORCE, without advantages, has fewer."""
LUNAR_FORM = "episode_z"
"""The form that the tuning seeds chose for LunarLander."""
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
REWARD_SCALES = {"": 1.0, "_small": 1e-3, "_large": 1e3}  # what rewards are multiplied by

CONTINUOUS_ARMS = ("zscore", "running", "adaptive", "episode_both", "reward_scale")
CONTINUOUS_RATES = (0.0003, 0.001, 0.003)
HIGHER_RATES = (*CONTINUOUS_RATES, 0.01)  # where the best of those was the highest

CHOSEN_RATES: dict[str, dict[str, float]] = {
    "Pendulum-v1": dict.fromkeys(CONTINUOUS_ARMS, 0.001),
    "LunarLanderContinuous-v3": {**dict.fromkeys(CONTINUOUS_ARMS, 0.003), "episode_both": 0.01},
}
"""The learning rate of each arm on a task with real actions: that of the largest mean area on the tuning seeds."""


def one_level_up(
    algorithm: str, env: str = "CartPole-v1", names: Iterable[str] | None = None, **changes: object
) -> Arms:
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
    return replace(
        preset,
        normalizer={"name": "none"} if where == "advantages" else options,
        advantage_normalizer=options if at_advantages else None,
        normalize_advantages=where == "z",
    )


def relatives(algorithm: str, **changes: object) -> Arms:
    """Return the Z-Scores, the filter over episodes on both doors, and the relatives, at the slower rate."""
    changes = {"learning_rate": SLOWER, **changes}
    bare = replace(
        RunConfig.preset("CartPole-v1", algorithm), normalizer={"name": "none"}, normalize_advantages=False, **changes
    )
    return {
        **one_level_up(algorithm, names=("zscore", "running", "episode_both"), **changes),
        **{name: replace(bare, **options) for name, options in RELATIVES.items()},
    }


def continuous(env: str, **changes: object) -> Arms:
    """Return the arms on a task with real actions, with PPO, each trained to the cap.

    All but the filter over episodes have their advantages z-scored, as their users do.
    """
    changes = {"stop": False, **changes}
    preset = replace(RunConfig.preset(env, "ppo"), **changes)
    scaled = {"name": "reward_scale", "gamma": preset.gamma}
    made = {
        **one_level_up("ppo", env, ("zscore", "running", "episode_both"), **changes),
        **replication.arms(env, "ppo", ["adaptive"], **changes),
        "reward_scale": replace(preset, normalizer={"name": "none"}, reward_normalizer=scaled),
    }
    return {name: made[name] for name in CONTINUOUS_ARMS}


def continuous_grid(env: str, rates: Iterable[float] = CONTINUOUS_RATES, **changes: object) -> Arms:
    """Return every arm on a task with real actions at every learning rate."""
    return {
        f"{name} at {short_number(rate)}": config
        for rate in rates
        for name, config in continuous(env, learning_rate=rate, **changes).items()
    }


def continuous_tuned(env: str, tuned_on: str | None = None, **changes: object) -> Arms:
    """Return every arm on a task with real actions at the rate that tuning seeds of this task, or another, chose."""
    rates = CHOSEN_RATES[tuned_on or env]
    return {name: continuous(env, **{"learning_rate": rate, **changes})[name] for name, rate in rates.items()}
