"""What, with a seed, decides a run: its configuration, and the presets of the environments (torch is not needed).

Labels such as R2 name facts of the paper's release; chapter 00 lists them.
"""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Self

import numpy as np

from kscore import checks, normalizers

PROTOCOL_VERSION = 1
"""Changes whenever a change to the code would change a run's result; records of two versions are never mixed."""

ALGORITHMS = ("reinforce", "actor_critic", "gae", "ppo")
ACTIVATIONS = ("relu", "prelu")


def _normalizer(name: str, options: Mapping) -> dict:
    """Return a normalizer's name with every option, so that a later change of a default cannot change its meaning."""
    if not isinstance(options, Mapping) or "name" not in options or not all(isinstance(key, str) for key in options):
        raise ValueError(f"{name} must be a dict with a 'name' and its options, got {options!r}")
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in options.items()}
    try:
        return normalizers.spelled_out(**plain)
    except ValueError as error:  # which speaks of a normalizer, wherever that one stands
        raise ValueError(re.sub("^normalizer\\b", name, str(error))) from None


def _normalizer_or_none(name: str, options: Mapping | None) -> dict | None:
    return None if options is None else _normalizer(name, options)


def _value_scale(name: str, options: Mapping | None) -> dict | None:
    options = _normalizer_or_none(name, options)
    if options is not None and options["name"] != "symlog":  # a critic can also learn in logarithms
        centre, scale = normalizers.make(**options).recall(np.array([0.0, 1.0]))
        if np.ndim(centre) or np.ndim(scale):
            raise ValueError(
                f"{name} must name a normalizer with one centre and one scale for all steps, got "
                f"{options!r}, which has one a step"
            )
    return options


def _environment(name: str, value: str) -> str:
    from kscore.rl import environments  # here, because reading recorded runs needs no gymnasium

    if not isinstance(value, str):
        raise ValueError(f"{name} must be the id of a gymnasium environment, got {value!r}")
    environments.check(value)
    return value


def _disturbance(name: str, options: Mapping | None) -> dict | None:
    """Return a disturbance's name with every option, as it is done for normalizers."""
    from kscore.rl import disturbances  # here, for the same reason

    if options is None:
        return None
    if not isinstance(options, Mapping) or "name" not in options or not all(isinstance(key, str) for key in options):
        raise ValueError(f"{name} must be None or a dict with a 'name' and its options, got {options!r}")
    return disturbances.spelled_out(**options)


def _head(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or ":" not in value:
        raise ValueError(f"{name} must be None or the place of a class, package.module:Class, got {value!r}")
    from kscore.rl.policies import Head  # here, because the heads need torch, and configurations do without

    checks.outside(name, value, Head)
    return value


def _widths(name: str, value: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list of widths, got {value!r}")
    return tuple(checks.whole(name, width) for width in value)


CHOICES = {
    "algorithm": ALGORITHMS,
    "signal": ("returns", "advantages"),
    "policy_reduction": ("sum", "mean"),
    "value_reduction": ("sum", "mean"),
    "activation": ACTIVATIONS,
    "criterion": ("evaluation", "training", "both"),
}
FIELD_CHECKS = {
    "reward_normalizer": _normalizer_or_none,
    "normalizer": _normalizer,
    "advantage_normalizer": _normalizer_or_none,
    "value_scale": _value_scale,
    "normalize_advantages": checks.flag,
    "full_window": checks.flag,
    "stop": checks.flag,
    "gamma": partial(checks.number, low=0, high=1),
    "lam": partial(checks.number, low=0, high=1),
    "clip": checks.positive,
    "learning_rate": checks.positive,
    "reward_scale": checks.positive,
    "dropout": partial(checks.number, low=0, below=1),
    "threshold": lambda name, value: None if value is None else checks.number(name, value),
    "hidden": _widths,
    "head": _head,
    "epochs": checks.whole,
    "episodes_per_update": checks.whole,
    "window": checks.whole,
    "evaluate_every": checks.whole,
    "max_episodes": checks.whole,
    "env": _environment,
    "disturbance": _disturbance,
}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that, with a seed, decides a run. A bad value is an error at once.

    A normalizer is a dict of its name and options for `normalizers.make`; what is left out is filled in here.
    """

    env: str  # gymnasium id, "package.module:Id-v0" for one of your own; a flat Box or counts as observation
    algorithm: Literal["reinforce", "actor_critic", "gae", "ppo"]  # how episodes become an update
    normalizer: dict = field(default_factory=lambda: {"name": "zscore"})  # at the door of the returns, or see `signal`
    signal: Literal["returns", "advantages"] = "returns"  # "advantages" moves `normalizer` to the other door (R8)
    advantage_normalizer: dict | None = None  # one of its own at the door of the advantages
    normalize_advantages: bool = False  # short for a per-episode Z-Score there, after all else (R2)
    value_scale: dict | None = None  # a normalizer whose centre and scale are the units that the critic learns in;
    # the advantages are in these units too
    reward_normalizer: dict | None = None  # one at the door of the rewards, before anything is summed up
    reward_scale: float = 1.0  # what rewards are multiplied by before they are told; recorded returns are without it
    disturbance: dict | None = None  # what happens to rewards or actions (see `disturbances`); recorded are clean ones

    gamma: float = 0.99  # discount of the returns
    lam: float = 0.99  # λ of the GAE advantages; 1 is Monte Carlo
    epochs: int = 5  # PPO: updates on each batch of episodes
    clip: float = 0.2  # PPO: how far a probability ratio may move from 1
    policy_reduction: Literal["sum", "mean"] = "sum"  # the policy loss over an episode's steps
    value_reduction: Literal["sum", "mean"] = "mean"  # the critic's smooth-L1 loss over an episode's steps
    learning_rate: float = 0.01  # of Adam, for actor and critic
    episodes_per_update: int = 1  # how many episodes are played before the networks learn from them

    hidden: tuple[int, ...] = (128,)  # widths of the hidden layers, of the actor and of the critic
    activation: Literal["relu", "prelu"] = "relu"  # after the dropout; a PReLU learns one slope a layer
    dropout: float = 0.5  # probability that a hidden unit is dropped while acting and learning
    head: str | None = None  # what turns the actor's outputs into actions; None: what suits the action space

    threshold: float | None  # the mean return to arrive at; None: always train to the cap
    criterion: Literal["evaluation", "training", "both"] = "evaluation"  # whose returns must reach it
    window: int = 25  # over how many of the last returns the mean is taken
    full_window: bool = True  # False: fewer returns may also pass, as released
    stop: bool = True  # at the criterion; False: note when it was met, and train on to the cap
    evaluate_every: int = 1  # updates between two greedy evaluation episodes
    max_episodes: int = 500  # the cap: a run that gets here without arriving is censored

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            checks.choice(name, getattr(self, name), allowed)
        for name, check in FIELD_CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))  # numbers become plain: 475 is 475.0
        if self.advantage_normalizer and (self.signal == "advantages" or self.normalize_advantages):
            other = "signal 'advantages'" if self.signal == "advantages" else "normalize_advantages"
            raise ValueError(
                f"advantage_normalizer must be None with {other}, which puts another normalizer in its "
                f"place: give up one of the two, got {self.advantage_normalizer!r}"
            )
        if self.value_scale and self.algorithm == "reinforce":
            raise ValueError(f"value_scale must be None with reinforce, which has no critic, got {self.value_scale!r}")
        if self.disturbance:
            self._check_disturbance()

    def _check_disturbance(self) -> None:
        from kscore.rl import disturbances, environments

        actions = environments.check(self.env)
        if disturbances.make(**self.disturbance).discrete and not hasattr(actions, "n"):
            raise ValueError(
                f"disturbance must leave the actions of {self.env} alone, which are not discrete, got "
                f"{self.disturbance!r}"
            )

    @classmethod
    def preset(cls, env: str, algorithm: str) -> Self:
        """Return the preset of an environment and an algorithm, with `zscore`; for the paper's, as released."""
        checks.choice("env of a preset", env, PRESETS)
        checks.choice("algorithm", algorithm, ALGORITHMS)
        return cls(env=env, algorithm=algorithm, **PRESETS[env][""] | PRESETS[env].get(algorithm, {}))

    def to_dict(self) -> dict:
        """Return the fields as JSON has them; `RunConfig(**fields)` makes the same configuration again."""
        return {**dataclasses.asdict(self), "hidden": list(self.hidden)}


def _continuous(**own: object) -> dict[str, dict]:
    """Return the preset of a task with real actions: those of one episode say too little, so four make an update.

    Nothing is dropped. Under a narrow Gaussian the ratios of PPO would come from the masks more than from learning.
    """
    shared = {
        "hidden": (64, 64),
        "activation": "relu",
        "dropout": 0.0,
        "learning_rate": 0.001,
        "epochs": 10,
        "episodes_per_update": 4,
        "policy_reduction": "mean",
        "window": 10,
    }
    z_scored = {"normalize_advantages": True}
    return {"": shared | own, "actor_critic": z_scored, "gae": z_scored, "ppo": z_scored}


def _terminal(**own: object) -> dict[str, dict]:
    """Return the preset of a short task that pays at its end only.

    Nothing is dropped, and the advantages are not Z-Scored by the episode: of one step that would leave nothing.
    """
    shared = {"hidden": (128,), "activation": "relu", "dropout": 0.0, "learning_rate": 0.003}
    return {"": shared | own}


PRESETS: dict[str, dict[str, dict]] = {
    "CartPole-v1": {
        "": {
            "threshold": 475.0,
            "max_episodes": 500,
            "hidden": (128,),
            "activation": "relu",
            "dropout": 0.5,
            "learning_rate": 0.01,
        },
        "gae": {"normalize_advantages": True},
        "ppo": {"normalize_advantages": True},
    },
    "LunarLander-v3": {
        "": {
            "threshold": 200.0,
            "max_episodes": 1500,
            "hidden": (128, 128),
            "activation": "prelu",
            "dropout": 0.1,
            "learning_rate": 0.0005,
        },
        "actor_critic": {"normalize_advantages": True},
        "gae": {"normalize_advantages": True},
        "ppo": {"normalize_advantages": True, "policy_reduction": "mean"},
    },
    "Acrobot-v1": {
        "": {
            "threshold": -100.0,
            "max_episodes": 300,
            "hidden": (128,),
            "activation": "relu",
            "dropout": 0.0,
            "learning_rate": 0.003,
        },
        "gae": {"normalize_advantages": True},
        "ppo": {"normalize_advantages": True, "policy_reduction": "mean", "learning_rate": 0.001},
    },
    "FrozenLake-v1": _terminal(threshold=0.7, max_episodes=8000, evaluate_every=5),
    "kscore.rl.tasks:DryLake-v1": _terminal(threshold=0.9, max_episodes=1000),
    "kscore.rl.tasks:TimedBlackjack-v1": _terminal(threshold=None, max_episodes=3000, hidden=(), learning_rate=0.01),
    "kscore.rl.tasks:Bandit-v0": _terminal(threshold=0.9, max_episodes=1000, window=100),
    "Pendulum-v1": _continuous(threshold=-250.0, max_episodes=1000, gamma=0.9),
    "LunarLanderContinuous-v3": _continuous(threshold=200.0, max_episodes=600),
    "BipedalWalker-v3": _continuous(threshold=300.0, max_episodes=1000),
    "InvertedPendulum-v5": _continuous(threshold=950.0, max_episodes=600),
    "HalfCheetah-v5": _continuous(threshold=4800.0, max_episodes=1000),
}
"""The settings of each environment, "" for all algorithms, then what an algorithm adds. Those of CartPole and
LunarLander are the released ones (commit 5667b45; the cap of 1,500 episodes is ours). Thresholds of continuous tasks
are gymnasium's; Pendulum, which has none, got its own. An environment of your own gets a preset by an entry here.

Acrobot keeps CartPole's network; at its rate and dropout most runs were stuck at the worst return. On FrozenLake one
step in three goes where it was meant to, and few runs arrive at all; on the dry lake every step does, so that chance is
in the learning alone. A hand of Blackjack is worth -1, 0 or 1 and the best policy about -0.05: no window is long enough
for a threshold, its outcome is the mean evaluation return."""
