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
from typing import Literal

import gymnasium as gym
import numpy as np
import torch

from kscore import checks, provenance
from kscore.rl import compiled, disturbances, environments
from kscore.rl.algorithms import ALGORITHMS, Adam, Agent, Batch, normalization
from kscore.rl.config import PROTOCOL_VERSION, RunConfig
from kscore.rl.environments import Diverged
from kscore.rl.networks import Dropout, Memory, Network
from kscore.rl.policies import Policy, head_for
from kscore.rl.units import units_of

STREAMS = ("training environment", "evaluation environment", "initialization", "actions", "dropout", "disturbance")
"""The independent random streams of a run: stream i of a seed is `np.random.default_rng([seed, i])`."""

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
"""Called after every update with what the run has seen so far and the policy as it is now."""

Watch = Callable[[History, Batch, Policy], None]
"""Called before every update with what the run has seen so far, the episodes that it is about to learn from, and the
policy that played them."""


def arrived(returns: list[float], config: RunConfig) -> bool:
    """Say whether the mean of the last returns has reached the threshold."""
    last = returns[-config.window :]
    if config.threshold is None or not last or (config.full_window and len(last) < config.window):
        return False
    return sum(last) / len(last) >= config.threshold


@np.errstate(over="ignore", invalid="ignore")  # a run that diverges says so in its record
def train(config: RunConfig, seed: int, progress: Progress | None = None, watch: Watch | None = None) -> dict:
    """Train until the stopping rule is met, the cap is reached or something diverges; return the record.

    With `stop` off, a run that has met its criterion goes on to the cap and is "solved" all the same.

    The record holds only what JSON holds. `status` is "solved", "censored" (the cap came first) or "diverged" (with
    the `reason`; an episode whose return is not finite is left out). `solved_at` gives for each criterion the training
    episode after which it was first met, as looked at after every update, or None. Apart from `seconds` and
    `cpu_seconds`, the same config and seed give the same record.
    """
    start, cpu_start, seed = time.perf_counter(), time.thread_time(), checks.seed("seed", seed)
    training_seed, evaluation_seed, initialization, actions, dropout, disturbance = _streams(seed)
    history, updates, status, reason = History(), 0, "censored", None
    training = environments.make(config.env, int(training_seed.integers(2**31)))
    training = disturbances.put_on(training, config.disturbance, lambda: history.episodes + 1, disturbance)
    evaluation = environments.make(config.env, int(evaluation_seed.integers(2**31)))
    evaluation = disturbances.put_on(evaluation, config.disturbance, lambda: history.episodes)
    agent = make_agent(config, training.observation_size, training.actions, initialization, dropout)
    policy, normalize, learn = Policy(agent.actor, agent.head), normalization(config), ALGORITHMS[config.algorithm]
    try:
        with one_thread():
            while history.episodes < config.max_episodes and not (config.stop and status == "solved"):
                loop, episodes = compiled.loop_for(training, policy), []
                for _ in range(min(config.episodes_per_update, config.max_episodes - history.episodes)):
                    episodes.append(loop.play(training, policy, actions, agent.dropout))
                    rewards = disturbances.clean_rewards(training, episodes[-1])
                    history.add("train", sum(rewards), len(rewards))
                batch = Batch.of(episodes, config.reward_scale)
                if watch is not None:
                    watch(history, batch, policy)
                learn(agent, batch, normalize, config)
                updates += 1
                if updates % config.evaluate_every == 0:
                    history.add("eval", *loop.evaluate(evaluation, policy))
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
        "protocol": PROTOCOL_VERSION,
        "config": config.to_dict(),
        "seed": seed,
        "status": status,
        "reason": reason,
        "solved": status == "solved",
        "episodes": history.episodes,
        **dataclasses.asdict(history),
        "steps": history.train_steps + history.eval_steps,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.thread_time() - cpu_start,
        "versions": provenance.versions(),
        "machine": provenance.machine(),
    }


def make_agent(
    config: RunConfig,
    observation_size: int,
    actions: gym.Space,
    rng: np.random.Generator,
    dropout_rng: np.random.Generator,
) -> Agent:
    """Make new networks with their head and optimizer; REINFORCE has no critic."""
    kind = head_for(actions, config.head)
    outputs = (kind.outputs(actions),) if config.algorithm == "reinforce" else (kind.outputs(actions), 1)
    shapes = [(observation_size, *config.hidden, width) for width in outputs]
    memory = Memory(sum(Network.size(shape, config.activation) for shape in shapes) + kind.parameters(actions))
    actor, *critic = [Network(shape, config.activation, rng, memory) for shape in shapes]
    dropout = Dropout(config.dropout, config.hidden, dropout_rng)
    return Agent(
        actor,
        kind(actions, memory),
        critic[0] if critic else None,
        memory,
        dropout,
        Adam(memory, config.learning_rate),
        units_of(config.value_scale),
    )


def why_plain(config: RunConfig) -> str | None:
    """Return why runs of a configuration are played by the plain loop alone; None: by compiled code where it pays.

    >>> why_plain(RunConfig.preset("LunarLander-v3", "ppo"))
    'its environment is not CartPole-v1'
    """
    environment = disturbances.put_on(environments.make(config.env, 0), config.disturbance, lambda: 0)
    agent = make_agent(config, environment.observation_size, environment.actions, *_streams(0)[:2])
    return compiled.why_plain(environment, Policy(agent.actor, agent.head))


def _streams(seed: int) -> list[np.random.Generator]:
    return [np.random.default_rng([seed, stream]) for stream in range(len(STREAMS))]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: these networks are too small for more, and a study runs many trainings at once."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
