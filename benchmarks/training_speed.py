"""Speed of whole trainings, evaluation included, as ratios to raw gymnasium stepping measured in between.

    python benchmarks/training_speed.py                 # the table
    python benchmarks/training_speed.py --seeds 5       # more runs a row

On a shared machine speed wanders by a factor of two within seconds. So processor time is measured, raw stepping
(`gym.make(env)`, random actions drawn beforehand, resets included) and training take turns after every episode, and the
ratio of their totals is reported. Steps are environment steps of training and evaluation together. The column "loop"
says who plays the episodes: compiled code, which is compiled before anything is measured, or the plain loop of
`kscore.rl.environments`. "x plain" compares with the released way: torch is called for every action, the environment
keeps gymnasium's wrappers. Stable-Baselines3's PPO, if it is installed, runs with its own default settings (one
environment, 2,048 steps an update, 10 epochs of minibatches of 64), not evaluated: another amount of learning a step,
so its ratio says how long a step takes there, not which code is better.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import dataclasses
import resource
import time

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from kscore import normalizers
from kscore.rl import RunConfig, compiled, train
from kscore.rl.training import why_plain

ROWS = [  # environment, algorithm, episodes at most, times raw stepping, times the plain loop
    ("CartPole-v1", "reinforce", 500, 2.5, None),
    ("CartPole-v1", "actor_critic", 500, 2.5, 30),
    ("CartPole-v1", "gae", 500, 2.5, None),
    ("CartPole-v1", "ppo", 500, 0.8, 12),
    ("LunarLander-v3", "actor_critic", 60, 0.60, None),
    ("LunarLander-v3", "ppo", 60, 0.45, None),
    ("Pendulum-v1", "actor_critic", 200, 0.50, None),
    ("Pendulum-v1", "ppo", 200, 0.50, None),
    ("LunarLanderContinuous-v3", "actor_critic", 120, 0.50, None),
    ("LunarLanderContinuous-v3", "ppo", 120, 0.50, None),
]
KSCORE = {"name": "kscore", "variant": "adaptive", "mode": "stream", "Q": 0.01, "R": 0.1}
PLAIN_EPISODES = 60  # the plain loop is compared on the first episodes of both: whole trainings would take minutes
RAW_SHARE = 0.3  # raw stepping gets this share of the training's time


class RawStepping:
    """Random actions in a plain loop, a slice at a time."""

    def __init__(self, env_id: str) -> None:
        self.env = gym.make(env_id)
        self.env.reset(seed=0)
        self.rng = np.random.default_rng(0)
        self.steps, self.seconds = 0, 0.0

    def run(self, steps: int = 500) -> None:
        actions = self.draw(steps)
        start = time.thread_time()
        for action in actions:
            _, _, terminated, truncated, _ = self.env.step(action)
            if terminated or truncated:
                self.env.reset()
        self.seconds += time.thread_time() - start
        self.steps += steps

    def draw(self, steps: int) -> np.ndarray:
        """Draw actions of the type that `sample()` gives: np.int64, or rows of numbers within their range."""
        space = self.env.action_space
        if isinstance(space, gym.spaces.Discrete):
            return self.rng.integers(space.n, size=steps)
        return self.rng.uniform(space.low, space.high, (steps, *space.shape)).astype(space.dtype)

    @property
    def speed(self) -> float:
        return self.steps / self.seconds


class Turns:
    """A `progress` that lets raw stepping take its turn after every episode, and keeps its time apart."""

    def __init__(self, raw: RawStepping) -> None:
        self.raw, self.start, self.paused = raw, time.thread_time(), 0.0

    def __call__(self, *_: object) -> None:
        pause, raw_seconds = time.thread_time(), 0.0
        share = RAW_SHARE * (pause - self.start)
        while raw_seconds < share:
            before = self.raw.seconds
            self.raw.run()
            raw_seconds += self.raw.seconds - before
        self.start = time.thread_time()
        self.paused += self.start - pause


def measure(config: RunConfig, seeds: range, run=train) -> tuple[float, RawStepping, list[dict]]:
    """Return the training's steps a second, the raw stepping beside it, and the records."""
    raw, records, seconds = RawStepping(config.env), [], 0.0
    for seed in seeds:
        turns = Turns(raw)
        records.append(run(config, seed, turns))
        seconds += records[-1]["cpu_seconds"] - turns.paused
    return sum(record["steps"] for record in records) / seconds, raw, records


def plain_train(config: RunConfig, seed: int, progress) -> dict:
    """Train on CartPole the plain way, with z-scored returns: actor-critic or PPO, some episodes of each."""
    start = time.thread_time()
    torch.manual_seed(seed)
    env, evaluation = gym.make(config.env), gym.make(config.env)
    env.reset(seed=seed)
    evaluation.reset(seed=seed + 1)
    actor, critic = plain_network(config, 4, 2), plain_network(config, 4, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=config.learning_rate)
    steps = 0
    for _ in range(config.max_episodes):
        observations, actions, log_probs, values, rewards = plain_episode(env, actor, critic)
        returns, G = [], 0.0
        for reward in reversed(rewards):
            G = reward + config.gamma * G
            returns.insert(0, G)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / returns.std(unbiased=False).clamp(min=1e-8)
        advantages = (returns - values).detach()
        if config.algorithm == "actor_critic":
            plain_step(optimizer, -(log_probs * advantages).sum() + F.smooth_l1_loss(values, returns))
        else:
            advantages = (advantages - advantages.mean()) / advantages.std(unbiased=False).clamp(min=1e-8)
            for _ in range(config.epochs):
                new = torch.distributions.Categorical(F.softmax(actor(observations), dim=-1)).log_prob(actions)
                ratio = (new - log_probs.detach()).exp()
                clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
                plain_step(optimizer, -torch.min(ratio * advantages, clipped * advantages).sum()
                           + F.smooth_l1_loss(critic(observations).squeeze(-1), returns))
        steps += len(rewards) + plain_evaluation(evaluation, actor)
        progress(None, None)
    return {"steps": steps, "cpu_seconds": time.thread_time() - start}


def plain_network(config: RunConfig, inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, config.hidden[0]), nn.Dropout(config.dropout), nn.ReLU(),
                         nn.Linear(config.hidden[0], outputs))


def plain_episode(env: gym.Env, actor: nn.Module, critic: nn.Module) -> tuple:
    actor.train()
    critic.train()
    observations, actions, log_probs, values, rewards = [], [], [], [], []
    observation, done = env.reset()[0], False
    while not done:
        state = torch.FloatTensor(observation).unsqueeze(0)
        observations.append(state)
        distribution = torch.distributions.Categorical(F.softmax(actor(state), dim=-1))
        action = distribution.sample()
        values.append(critic(state).squeeze(-1))
        actions.append(action)
        log_probs.append(distribution.log_prob(action))
        observation, reward, terminated, truncated, _ = env.step(action.item())
        rewards.append(reward)
        done = terminated or truncated
    return torch.cat(observations), torch.cat(actions), torch.cat(log_probs), torch.cat(values), rewards


def plain_evaluation(env: gym.Env, actor: nn.Module) -> int:
    actor.eval()
    observation, done, steps = env.reset()[0], False, 0
    while not done:
        with torch.no_grad():
            action = torch.argmax(F.softmax(actor(torch.FloatTensor(observation).unsqueeze(0)), dim=-1), dim=-1)
        observation, _, terminated, truncated, _ = env.step(action.item())
        done = terminated or truncated
        steps += 1
    return steps


def plain_step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def stable_baselines(env: str, steps: int = 4096) -> tuple[float, RawStepping] | None:
    """Return the steps a second of Stable-Baselines3's PPO, and the raw stepping beside it; None if not installed."""
    try:
        from stable_baselines3 import PPO
    except ImportError:
        return None
    raw, model = RawStepping(env), PPO("MlpPolicy", env, device="cpu", seed=0)
    seconds = 0.0
    for _ in range(steps // model.n_steps):
        start = time.thread_time()
        model.learn(model.n_steps, reset_num_timesteps=False)
        seconds += time.thread_time() - start
        raw.run(5000)
    return steps / seconds, raw


def kscore_share(config: RunConfig, seeds: range) -> float:
    """Return the share of the training time that is spent inside the K-Score normalizer."""
    inside, make = 0.0, normalizers.make

    def timed(**options: object):
        normalizer = make(**options)

        def call(returns):
            nonlocal inside
            start = time.thread_time()
            scores = normalizer(returns)
            inside += time.thread_time() - start
            return scores

        return call if options["name"] == "kscore" else normalizer

    normalizers.make = lambda name, **options: timed(name=name, **options)
    try:
        total = sum(train(config, seed)["cpu_seconds"] for seed in seeds)
    finally:
        normalizers.make = make
    return inside / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs a row")
    parser.add_argument("--only", default="", help="only rows whose environment or algorithm contains this")
    options = parser.parse_args()
    seeds = range(options.seeds)
    torch.set_num_threads(1)
    compiled.expect(compiled.ENOUGH * compiled.EARLY)
    print(f"{'work':30} {'loop':8} {'runs':>4} {'steps':>8} {'steps/s':>8} {'x raw':>6} {'want':>5}"
          f" {'x plain':>8} {'want':>5} {'K-Score share':>13} {'peak MB':>8}")
    for env, algorithm, cap, want_raw, want_plain in ROWS:
        if options.only not in f"{env} {algorithm}":
            continue
        config = dataclasses.replace(RunConfig.preset(env, algorithm), max_episodes=cap)
        loop = "plain" if why_plain(config) else "compiled"
        speed, raw, records = measure(config, seeds)
        ratio, plain = speed / raw.speed, ""
        if want_plain:
            first = dataclasses.replace(config, max_episodes=PLAIN_EPISODES)
            ours, theirs = (measure(first, seeds, run) for run in (train, plain_train))
            plain = f"{(ours[0] / ours[1].speed) / (theirs[0] / theirs[1].speed):.1f}"
        share = kscore_share(dataclasses.replace(config, normalizer=KSCORE), seeds)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        steps = sum(record["steps"] for record in records)
        print(f"{env + ' ' + algorithm:30} {loop:8} {len(records):4} {steps:8} {speed:8.0f} {ratio:6.2f} {want_raw:5}"
              f" {plain:>8} {want_plain or '':>5} {share:13.2%} {peak:8.0f}", flush=True)
    for env in ("CartPole-v1", "LunarLander-v3"):
        measured = stable_baselines(env) if options.only in f"{env} sb3" else ()
        if measured is None:
            print("Stable-Baselines3 is not installed; `make bench` installs it and adds the comparison.")
            break
        if measured:
            speed, raw = measured
            print(f"{env + ' ppo of SB3':30} {'its own':8} {1:4} {4096:8} {speed:8.0f} {speed / raw.speed:6.2f}",
                  flush=True)


if __name__ == "__main__":
    main()
