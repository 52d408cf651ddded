"""The arms of the fair fight (chapters 14 and 17), each at a setting of its own, and what they are put through.

>>> at("ppo", OWN["ppo"])["episode_filter"].learning_rate
0.003
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kscore import checks
from kscore.normalizers.parts import PLACES
from kscore.rl.config import RunConfig
from kscore.study import beyond, replication
from kscore.study.replication import Arms, short_number

ARMS = (
    "none",
    "zscore",
    "running",
    "ema",
    "kscore",
    "adaptive",
    "adaptive_refit",
    "episode_filter",
    "filter_bank",
    "popart",
    "percentile_range",
)
"""The arms of the fair fight. Each has one learning rate and one way with advantages, found on equally many runs."""
RATES = (0.001, 0.003, 0.01, 0.03)
LUNAR_ARMS = ("zscore", "running", "adaptive", "adaptive_refit", "episode_filter")
LUNAR_RATES = (0.00025, 0.0005, 0.001)

LUNAR_SIX = ("running", "zscore", "episode_filter", "fading", "adaptive_refit")
"""The arms on LunarLander with only rate and doors to tune; Algorithm 1, with Q and R of its own, is the sixth."""
LUNAR_FIRST_RATES = {"actor_critic": (*LUNAR_RATES, 0.002), "ppo": LUNAR_RATES}
LUNAR_RATE_OF_NOISE = {"actor_critic": 0.001, "ppo": 0.0005}
"""The rate at which Q and R of Algorithm 1 are chosen: the best of the running Z-Score in the fair fight's tuning."""
LUNAR_Q, LUNAR_R = (1e-4, 1e-2, 1.0), (1.0, 100.0, 1e4, 1e6)

CONTROLS = ("running_twice", "fading")
"""Arms that came later: what the filter of episodes does, without a filter. One has no equal with REINFORCE."""
CONTROLLED = ("running", *CONTROLS, "episode_filter", "filter_bank")
CONTROLLED_SWAPPED = ("running", "fading", "episode_filter")
"""The controls and the arms beside them: on CartPole, and after its two actions have changed places."""

FOUND_IN_CHAPTER_10: dict[str, dict[str, dict]] = {
    "ema": {"actor_critic": {"decay": 1 - 2e-4}, "ppo": {"decay": 1 - 1.5e-3}},
    "kscore": {"actor_critic": {"Q": 1e-4, "R": 10.0}, "ppo": {"Q": 1e-4, "R": 100.0}},
}
"""The winners of the grids of chapter 10. REINFORCE and GAE, which it did not tune, take those of the actor-critic."""

Choice = tuple[float, bool]
"""A learning rate, and whether advantages are z-scored per episode."""

OWN: dict[str, dict[str, Choice]] = {
    "reinforce": {
        **dict.fromkeys(ARMS, (0.01, False)),
        **dict.fromkeys(("running", "kscore", "adaptive_refit", "percentile_range"), (0.003, False)),
    },
    "actor_critic": {**dict.fromkeys(ARMS, (0.01, False)), **dict.fromkeys(("zscore", "adaptive_refit"), (0.01, True))},
    "gae": {
        **dict.fromkeys(ARMS, (0.01, True)),
        "kscore": (0.003, True),
        **dict.fromkeys(("none", "episode_filter", "filter_bank", "popart"), (0.01, False)),
    },
    "ppo": {
        **dict.fromkeys(ARMS, (0.003, False)),
        "kscore": (0.001, False),
        **dict.fromkeys(("none", "adaptive", "adaptive_refit"), (0.003, True)),
    },
}
"""Each arm's own setting on CartPole: that of the lowest restricted mean on the tuning seeds."""

CONTROL_OWN: dict[str, dict[str, Choice]] = {
    "reinforce": {"fading": (0.01, False)},
    "actor_critic": {"running_twice": (0.01, True), "fading": (0.01, False)},
    "gae": {"running_twice": (0.01, False), "fading": (0.01, False)},
    "ppo": {"running_twice": (0.003, False), "fading": (0.003, False)},
}
"""The same for the controls, on the same seeds."""

COMMON: dict[str, dict[str, Choice]] = {
    "reinforce": dict.fromkeys(
        ("none", "zscore", "ema", "adaptive", "episode_filter", "filter_bank", "popart"), (0.003, False)
    ),
    "gae": {"kscore": (0.01, True)},
    "ppo": {"kscore": (0.003, False)},
}
"""The settings at the common rate of a learner, of the arms for which it is another one than their own."""

LUNAR_OWN: dict[str, dict[str, Choice]] = {
    "actor_critic": {
        **dict.fromkeys(LUNAR_ARMS, (0.001, True)),
        "adaptive": (0.00025, True),
        "adaptive_refit": (0.0005, True),
        "episode_filter": (0.001, False),
    },
    "ppo": {
        **dict.fromkeys(LUNAR_ARMS, (0.0005, True)),
        "adaptive": (0.00025, True),
        "adaptive_refit": (0.00025, True),
        "episode_filter": (0.0005, False),
    },
}
"""The same on LunarLander. No run of the adaptive stream arrived there, and of equal settings the lowest rate is it."""

COMMON_RATES = {"reinforce": 0.003, "actor_critic": 0.01, "gae": 0.01, "ppo": 0.003}
FACTORIAL_FADING = 0.1  # the least weight of the newest episode, where memory fades

TWICE: dict[str, dict] = {
    "episode_filter": {"name": "episode"},
    "filter_bank": {"name": "episode", "noise": "bank"},
    "running_twice": {"name": "running"},
    "fading": {"name": "parts", "centre": "past", "scale": "past", "fading": FACTORIAL_FADING},
}
"""The arms that normalize returns and, where there is a critic and advantages are not z-scored, advantages as well."""

OTHER_DOORS: dict[str, tuple[str, str]] = {
    "zscore at the returns": ("zscore", "none"),
    "adaptive_refit at the returns": ("adaptive_refit", "none"),
    "episode_filter at the returns": ("episode_filter", "none"),
    "episode_filter at the advantages": ("none", "episode_filter"),
    "none, z-scored": ("none", "zscore"),
    "running, z-scored": ("running", "zscore"),
    "ema, z-scored": ("ema", "zscore"),
}
"""Arms of the actor-critic with something else at a door than in the contest: what is at the returns, and at the
advantages, which are z-scored per episode, filtered, or as they are."""
DOORS_UNDER_OUTLIERS = ("zscore at the returns", "none, z-scored", "running, z-scored")

OTHER_NETWORKS: dict[str, dict] = {
    "no dropout": {"dropout": 0.0},
    "half the width": {"hidden": (64,)},
    "double width": {"hidden": (256,)},
}
"""What the networks are changed to, to see whether an order of arms depends on them."""

SHIFT_ARMS = ("none", "zscore", "running", "ema", "kscore", "adaptive", "adaptive_refit", "episode_filter")
"""The arms under noise and shifts, at their own settings on the clean task."""
SWAPPED_AFTER = 150
CHANGED_AFTER = 50
WATCHED_LONGER = 1500  # 400 episodes proved too few for a run to come back after the swap

CONDITIONS: dict[str, dict[str, dict]] = {
    "noise": {
        f"noise {deviation:g}": {"disturbance": {"name": "noise", "deviation": deviation}}
        for deviation in (0.1, 0.3, 1.0, 3.0, 10.0)
    },
    "scale": {f"scale {factor:g}": {"reward_scale": factor} for factor in (0.001, 0.03, 30.0, 1000.0)},
    "shift": {
        "outliers": {"disturbance": {"name": "outliers", "share": 0.01, "size": 100.0}},
        "times 10": {"disturbance": {"name": "change", "factor": 10.0, "after": CHANGED_AFTER}},
        "plus 10": {"disturbance": {"name": "change", "offset": 10.0, "after": CHANGED_AFTER}},
    },
    "swap": {"swap": {"disturbance": {"name": "swap", "after": SWAPPED_AFTER}, "stop": False, "max_episodes": 400}},
}
"""What is done to CartPole, by kind: noise and scale as in bsuite, the rest our own."""

RATES_UNDER = ("noise 3", "noise 10", *CONDITIONS["shift"])
"""The conditions under which arms are run at each other's rates as well."""

DISTURBED = {"actor_critic": tuple(CONDITIONS), "reinforce": ("noise", "shift", "swap")}
"""Which kinds of conditions each learner is put under."""

SHORT_TASKS = {
    "bandit": "kscore.rl.tasks:Bandit-v0",
    "drylake": "kscore.rl.tasks:DryLake-v1",
    "frozenlake": "FrozenLake-v1",
    "blackjack": "kscore.rl.tasks:TimedBlackjack-v1",
}
"""Tasks with short episodes that pay at their end."""


def arm(name: str, learner: str, *, z_scored: bool, env: str = "CartPole-v1", **changes: object) -> RunConfig:
    """Return an arm of the fair fight or a control of it, with its advantages z-scored per episode or not.

    PopArt gives the critic its units; with REINFORCE, which has none, it scores returns.
    """
    preset = RunConfig.preset(env, learner)
    checks.choice("arm", name, (*ARMS, *controls(learner)))
    bare = replace(preset, normalizer={"name": "none"}, normalize_advantages=z_scored, **changes)
    if name in TWICE:
        both = not z_scored and learner != "reinforce"
        return replace(bare, normalizer=TWICE[name], advantage_normalizer=TWICE[name] if both else None)
    if name == "popart" and learner != "reinforce":
        return replace(bare, **beyond.RELATIVES["popart"])
    return replace(bare, normalizer=_normalizer(name, learner, env))


def _normalizer(name: str, learner: str, env: str) -> dict:
    if name in FOUND_IN_CHAPTER_10:
        found = FOUND_IN_CHAPTER_10[name]["ppo" if learner == "ppo" else "actor_critic"]
        return {"name": name, **found}
    if name == "popart":
        return beyond.RELATIVES["popart"]["value_scale"]
    if name == "percentile_range":
        return beyond.RELATIVES["percentile"]["normalizer"]
    return replication.normalizer(name, env, learner)


def grid(
    learner: str,
    rates: Iterable[float] = RATES,
    names: Iterable[str] = ARMS,
    env: str = "CartPole-v1",
    both: Iterable[str] = (*ARMS, *CONTROLS),
    **changes: object,
) -> Arms:
    """Return every arm at every learning rate; those of `both` with advantages as they are and z-scored.

    All others have them z-scored. REINFORCE has no advantages.
    """
    _leave(changes, "learning_rate")
    return {
        f"{name} at {short_number(rate)}{', z-scored' if z_scored else ''}": arm(
            name, learner, z_scored=z_scored, env=env, learning_rate=rate, **changes
        )
        for rate in rates
        for name in names
        for z_scored in ([False] if learner == "reinforce" else [False, True] if name in both else [True])
    }


def lunar_rates(learner: str, **changes: object) -> Arms:
    """Return the arms on LunarLander at every rate of the first round, with advantages z-scored, as in its preset."""
    return grid(learner, LUNAR_FIRST_RATES[learner], LUNAR_SIX, "LunarLander-v3", both=(), **changes)


def lunar_noise(learner: str, **changes: object) -> Arms:
    """Return Algorithm 1 on LunarLander for every pair (Q, R), at one rate."""
    preset = replace(RunConfig.preset("LunarLander-v3", learner), learning_rate=LUNAR_RATE_OF_NOISE[learner], **changes)
    pairs = [(Q, R) for Q in LUNAR_Q for R in LUNAR_R]
    return {
        f"Q = {short_number(Q)}, R = {short_number(R)}": replace(preset, normalizer={"name": "kscore", "Q": Q, "R": R})
        for Q, R in pairs
    }


def _leave(changes: Mapping[str, object], *names: str) -> None:
    """Refuse changes to what the names of arms say of them."""
    for name in names:
        if name in changes:
            raise ValueError(f"{name} must be left as the names of these arms have it, got {changes[name]!r}")


def at(learner: str, settings: Mapping[str, Choice], env: str = "CartPole-v1", **changes: object) -> Arms:
    """Return arms of the fair fight, each at its setting."""
    return {
        name: arm(name, learner, z_scored=z_scored, env=env, **{"learning_rate": rate, **changes})
        for name, (rate, z_scored) in settings.items()
    }


def controls(learner: str) -> tuple[str, ...]:
    """Return the names of the controls; without a critic, a running Z-Score has nothing to be at twice."""
    return tuple(name for name in CONTROLS if learner != "reinforce" or name != "running_twice")


def own(learner: str, names: Iterable[str]) -> dict[str, Choice]:
    """Return the own settings of arms and controls, of those that the learner has."""
    checks.choice("learner", learner, OWN)
    found = OWN[learner] | CONTROL_OWN[learner]
    return {name: found[name] for name in names if checks.choice("arm", name, (*ARMS, *CONTROLS)) in found}


def controlled(learner: str, **changes: object) -> Arms:
    """Return the controls and the arms that they are held against, each at its own setting."""
    return at(learner, own(learner, CONTROLLED), **changes)


def factorial(learner: str, **changes: object) -> Arms:
    """Return every way to take a centre and a scale, from nowhere, the episode or the past, whose memory may fade."""
    rate = COMMON_RATES[checks.choice("learner", learner, COMMON_RATES)]
    bare = arm("none", learner, z_scored=False, **{"learning_rate": rate, **changes})
    return {
        f"centre {centre}, scale {scale}{', fading' if fading else ''}": replace(
            bare, normalizer={"name": "parts", "centre": centre, "scale": scale, "fading": fading}
        )
        for centre in PLACES
        for scale in PLACES
        for fading in ((0.0, FACTORIAL_FADING) if "past" in (centre, scale) else (0.0,))
    }


def other_networks(learner: str, **changes: object) -> Arms:
    """Return five arms at their own settings with each of the other networks."""
    settings = own(learner, LUNAR_ARMS)
    return {
        f"{name}, {title}": config
        for title, network in OTHER_NETWORKS.items()
        for name, config in at(learner, settings, **{**network, **changes}).items()
    }


def disturbed(learner: str, kind: str, names: Iterable[str] = SHIFT_ARMS, **changes: object) -> Arms:
    """Return the arms at their own settings on the clean task, under each condition of a kind."""
    settings = own(learner, names)
    _leave(changes, "disturbance", "reward_scale")
    return {
        f"{name}, {title}": config
        for title, condition in CONDITIONS[checks.choice("kind of condition", kind, CONDITIONS)].items()
        for name, config in at(learner, settings, **{**condition, **changes}).items()
    }


def at_rate_of(other: str, name: str, **changes: object) -> Arms:
    """Return an arm with REINFORCE at another's own rate, under the conditions in which H2 compared rates as well."""
    rate, _ = OWN["reinforce"][checks.choice("arm", other, ARMS)]
    every = {
        title: config
        for kind in ("noise", "shift")
        for title, config in disturbed("reinforce", kind, (name,), **{"learning_rate": rate, **changes}).items()
    }
    return {title: config for title, config in every.items() if title.partition(", ")[2] in RATES_UNDER}


def exchanged_rates(**changes: object) -> Arms:
    """Return the running Z-Score with REINFORCE at the rate of the arms that it is held against, and these at its."""
    slower, faster = (
        dict.fromkeys(names, (rate, False))
        for names, rate in ((("fading", "episode_filter"), 0.003), (("running",), 0.01))
    )
    return at("reinforce", slower | faster, **changes)


def second_door(**changes: object) -> Arms:
    """Return the running Z-Score at both doors of the actor-critic, which tuning narrowly passed over."""
    return at("actor_critic", {"running_twice": (0.01, False)}, **changes)


def other_doors(titles: Iterable[str] = tuple(OTHER_DOORS), **changes: object) -> Arms:
    """Return arms of the actor-critic, at their own rates, with something else at one of their doors."""
    made = {}
    for title in titles:
        returns, advantages = OTHER_DOORS[checks.choice("arm", title, OTHER_DOORS)]
        rate, _ = OWN["actor_critic"][returns]
        config = arm(returns, "actor_critic", z_scored=advantages == "zscore", **{"learning_rate": rate, **changes})
        made[title] = replace(config, advantage_normalizer=TWICE.get(advantages))
    return made


def short(task: str, learner: str, **changes: object) -> Arms:
    """Return the arms on a short task, at the rate of its preset and with advantages as they are."""
    env = SHORT_TASKS[checks.choice("short task", task, SHORT_TASKS)]
    return {name: arm(name, learner, z_scored=False, env=env, **changes) for name in SHIFT_ARMS}
