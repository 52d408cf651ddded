"""One run: train one configuration from one seed until its stopping rule says so, and return the record.

    >>> config = RunConfig.preset("CartPole-v1", "ppo")
    >>> record = train(dataclasses.replace(config, normalizer={"name": "kscore", "mode": "refit"}), seed=0)
    >>> record["status"], record["episodes"]
"""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Self

import numpy as np
import torch

from kscore import checks, normalizers, provenance, rollouts
from kscore.algorithms import ALGORITHMS, Adam, Agent, Diverged, normalization
from kscore.networks import ACTIVATIONS, Dropout, Memory, Network, Policy

PROTOCOL_VERSION = 1
"""Changes whenever a change to the code would change a run's result; records of two versions are never mixed."""

STREAMS = ("training environment", "evaluation environment", "initialization", "actions", "dropout")
"""The independent random streams of a run: stream i of a seed is `np.random.default_rng([seed, i])`."""

RELEASED = {
    "CartPole-v1": {"threshold": 475.0, "max_episodes": 500, "hidden": (128,), "activation": "relu", "dropout": 0.5,
                    "learning_rate": 0.01},
    "LunarLander-v3": {"threshold": 200.0, "max_episodes": 1500, "hidden": (128, 128), "activation": "prelu",
                       "dropout": 0.1, "learning_rate": 0.0005},
}
"""The released settings of each environment (commit 5667b45; the cap of 1,500 episodes is ours)."""


def _normalizer(name: str, options: dict) -> dict:
    if not isinstance(options, dict) or "name" not in options:
        raise ValueError(f"{name} must be a dict with a 'name' and its options, got {options!r}")
    normalizers.make(**options)
    return {key: value.item() if isinstance(value, np.generic) else value for key, value in options.items()}


def _environment(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be the id of a gymnasium environment, got {value!r}")
    rollouts.check(value)
    return value


def _widths(name: str, value: tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list of widths, got {value!r}")
    return tuple(_whole(name, width) for width in value)


def _whole(name: str, value: int, low: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{name} must be a whole number of at least {low}, got {value!r}")
    return value


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


def _positive(name: str, value: float) -> float:
    if checks.number(name, value) <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return float(value)


CHOICES = {
    "algorithm": ALGORITHMS, "signal": ("returns", "advantages"), "policy_reduction": ("sum", "mean"),
    "value_reduction": ("sum", "mean"), "activation": ACTIVATIONS, "criterion": ("evaluation", "training", "both"),
}
FIELD_CHECKS = {
    "normalizer": _normalizer,
    "normalize_advantages": _flag, "full_window": _flag,
    "gamma": partial(checks.number, low=0, high=1), "lam": partial(checks.number, low=0, high=1),
    "clip": _positive, "learning_rate": _positive,
    "dropout": partial(checks.number, low=0, below=1),
    "threshold": lambda name, value: None if value is None else checks.number(name, value),
    "hidden": _widths, "epochs": _whole, "window": _whole, "evaluate_every": _whole, "max_episodes": _whole,
    "env": _environment,
}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that, with a seed, decides a run. A bad value is an error at once."""

    env: str  # gymnasium id; discrete actions and a flat Box observation
    algorithm: Literal["reinforce", "actor_critic", "gae", "ppo"]  # how an episode becomes an update
    normalizer: dict = field(default_factory=lambda: {"name": "zscore"})  # name and options for `normalizers.make`
    signal: Literal["returns", "advantages"] = "returns"  # what goes through the normalizer (R8)
    normalize_advantages: bool = False  # z-score the advantages of each episode afterwards (R2)

    gamma: float = 0.99  # discount of the returns
    lam: float = 0.99  # λ of the GAE advantages; 1 is Monte Carlo
    epochs: int = 5  # PPO: updates on each episode
    clip: float = 0.2  # PPO: how far a probability ratio may move from 1
    policy_reduction: Literal["sum", "mean"] = "sum"  # the policy loss over an episode's steps
    value_reduction: Literal["sum", "mean"] = "mean"  # the critic's smooth-L1 loss over an episode's steps
    learning_rate: float = 0.01  # of Adam, for actor and critic

    hidden: tuple[int, ...] = (128,)  # widths of the hidden layers, of the actor and of the critic
    activation: Literal["relu", "prelu"] = "relu"  # after the dropout; a PReLU learns one slope a layer
    dropout: float = 0.5  # probability that a hidden unit is dropped while acting and learning

    threshold: float | None  # the mean return that counts as solved; None: always train to the cap
    criterion: Literal["evaluation", "training", "both"] = "evaluation"  # whose returns must reach it
    window: int = 25  # over how many of the last returns the mean is taken
    full_window: bool = True  # False: fewer returns may also pass, as released
    evaluate_every: int = 1  # training episodes between two greedy evaluation episodes
    max_episodes: int = 500  # the cap: a run that gets here unsolved is censored

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            checks.choice(name, getattr(self, name), allowed)
        for name, check in FIELD_CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))  # numbers become plain: 475 is 475.0

    @classmethod
    def preset(cls, env: str, algorithm: str) -> Self:
        """Return the released settings for one of the paper's environments, with `zscore`."""
        checks.choice("env of a preset", env, RELEASED)
        checks.choice("algorithm", algorithm, ALGORITHMS)
        lunar = env == "LunarLander-v3"
        return cls(env=env, algorithm=algorithm, **RELEASED[env],
                   normalize_advantages=algorithm in ("gae", "ppo") or (algorithm == "actor_critic" and lunar),
                   policy_reduction="mean" if algorithm == "ppo" and lunar else "sum")

    def to_dict(self) -> dict:
        """Return the fields as JSON has them; `RunConfig(**fields)` makes the same configuration again."""
        return {**dataclasses.asdict(self), "hidden": list(self.hidden)}


EPISODE_KINDS = {"train": "a training", "eval": "an evaluation"}


@dataclass
class History:
    """What a run has seen so far."""

    train_returns: list[float] = field(default_factory=list)
    eval_returns: list[float] = field(default_factory=list)
    train_steps: int = 0
    eval_steps: int = 0
    solved_at: dict[str, int | None] = field(default_factory=lambda: {"evaluation": None, "training": None})

    @property
    def episodes(self) -> int:
        """The number of training episodes."""
        return len(self.train_returns)

    def add(self, kind: Literal["train", "eval"], episode_return: float, steps: int) -> None:
        """Note an episode; refuse a return that is not finite."""
        if not math.isfinite(episode_return):
            raise Diverged(f"the return of {EPISODE_KINDS[kind]} episode is not finite")
        getattr(self, f"{kind}_returns").append(episode_return)
        setattr(self, f"{kind}_steps", getattr(self, f"{kind}_steps") + steps)

    def finished(self, config: RunConfig) -> bool:
        """Note which criteria are met for the first time, and say whether the run is done."""
        for criterion, returns in (("evaluation", self.eval_returns), ("training", self.train_returns)):
            if self.solved_at[criterion] is None and arrived(returns, config):
                self.solved_at[criterion] = self.episodes
        wanted = self.solved_at if config.criterion == "both" else [config.criterion]
        return all(self.solved_at[criterion] is not None for criterion in wanted)


Progress = Callable[[History, Policy], None]
"""Called after every episode with what the run has seen so far and the policy as it is now."""


def arrived(returns: list[float], config: RunConfig) -> bool:
    """Say whether the mean of the last returns has reached the threshold."""
    last = returns[-config.window:]
    if config.threshold is None or not last or (config.full_window and len(last) < config.window):
        return False
    return sum(last) / len(last) >= config.threshold


@np.errstate(over="ignore", invalid="ignore")  # a run that diverges says so in its record
def train(config: RunConfig, seed: int, progress: Progress | None = None) -> dict:
    """Train until the stopping rule is met, the cap is reached or something diverges; return the record.

    The record holds only what JSON holds. `status` is "solved", "censored" (the cap came first) or "diverged" (with
    the `reason`; an episode whose return is not finite is left out). `solved_at` gives for each criterion the training
    episode at which it was first met, or None. Apart from `seconds`, the same config and seed give the same record.
    """
    start = time.perf_counter()
    training_seed, evaluation_seed, initialization, actions, dropout = _streams(_whole("seed", seed, low=0))
    training = rollouts.make(config.env, int(training_seed.integers(2**31)))
    evaluation = rollouts.make(config.env, int(evaluation_seed.integers(2**31)))
    agent = make_agent(config, training.observation_size, training.actions, initialization, dropout)
    policy = Policy(agent.actor)
    normalize = normalization(normalizers.make(**config.normalizer), config.signal, config.normalize_advantages)
    learn = ALGORITHMS[config.algorithm]
    history, status, reason = History(), "censored", None
    try:
        with _one_thread():
            while status == "censored" and history.episodes < config.max_episodes:
                episode = rollouts.play(training, policy, actions, agent.dropout)
                history.add("train", sum(episode.rewards), len(episode.rewards))
                learn(agent, episode, normalize, config)
                if history.episodes % config.evaluate_every == 0:
                    history.add("eval", *rollouts.evaluate(evaluation, policy))
                if progress is not None:
                    progress(history, policy)
                if history.finished(config):
                    status = "solved"
    except Diverged as error:
        status, reason = "diverged", str(error)
    finally:
        training.env.close()
        evaluation.env.close()
    return {
        "protocol": PROTOCOL_VERSION, "config": config.to_dict(), "seed": seed,
        "status": status, "reason": reason, "solved": status == "solved", "episodes": history.episodes,
        **dataclasses.asdict(history), "steps": history.train_steps + history.eval_steps,
        "seconds": time.perf_counter() - start, "versions": provenance.versions(),
        "machine": provenance.machine(),
    }


def make_agent(config: RunConfig, observation_size: int, actions: int, rng: np.random.Generator,
               dropout_rng: np.random.Generator) -> Agent:
    """Make new networks with their optimizer; REINFORCE has no critic."""
    outputs = (actions,) if config.algorithm == "reinforce" else (actions, 1)
    shapes = [(observation_size, *config.hidden, width) for width in outputs]
    memory = Memory(sum(Network.size(shape, config.activation) for shape in shapes))
    actor, *critic = [Network(shape, config.activation, rng, memory) for shape in shapes]
    dropout = Dropout(config.dropout, config.hidden, dropout_rng)
    return Agent(actor, critic[0] if critic else None, memory, dropout, Adam(memory, config.learning_rate))


def _streams(seed: int) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, stream]) for stream in range(len(STREAMS))]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread: these networks are too small for more, and a study runs many trainings at once."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
