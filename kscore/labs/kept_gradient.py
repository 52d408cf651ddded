"""What a normalizer's centre leaves of the expected gradient, measured step by step (chapters 04 and 12).

The gradient at step t is E[g_t G_t] with g_t = ∇ log π(a_t | s_t), along one direction of the parameters. With a
centre b_t subtracted it is E[g_t (G_t - b_t)], and 1 - E[g_t b_t] / E[g_t G_t] is the share that is kept. What was
settled before a_t does not count: its product with g_t has the mean 0.

    python -m kscore.labs.kept_gradient

plays LunarLander, some ten minutes, and writes data/kept_gradient.csv, what chapter 04 shows of it.
"""

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from kscore import normalizers
from kscore.labs import recording
from kscore.normalizers import Normalizer
from kscore.project import DATA
from kscore.rl import environments
from kscore.study import plan

PATH = DATA / "kept_gradient.csv"
COLUMNS = ["kind", "step", "share", "error", "episodes"]
PRIOR = "prior"
"""The belief that the streamed filter has before an episode begins, held for the whole of it."""

KINDS = ("kscore", "innovation", "adaptive", "refit", "zscore", "running", "ema", PRIOR)
GAMMA = 0.99  # as released
WARM_UP = 10  # episodes that every normalizer has seen before the ones that are measured


class Kept(NamedTuple):
    """The share of the expected gradient that is kept at each step, and its standard error, (steps,)."""

    share: np.ndarray
    error: np.ndarray


def kept(gradient: np.ndarray, returns: np.ndarray, centre: np.ndarray) -> Kept:
    """Return what a centre leaves of the expected gradient; all (steps, episodes), NaN after an episode's end.

    The mean over the episodes is first taken from returns and centres, step by step: it was settled before, so it
    changes no expectation, and it takes most of the noise away. The error is that of a ratio of two means.
    """
    G, b = (values - np.nanmean(values, axis=1, keepdims=True) for values in (returns, centre))
    whole = np.nanmean(gradient * G, axis=1)
    lost = np.nanmean(gradient * b, axis=1) / whole
    n = np.sum(~np.isnan(gradient), axis=1)
    scatter = np.nanstd(gradient * (b - lost[:, None] * G), axis=1)
    return Kept(1 - lost, scatter / np.sqrt(n) / np.abs(whole))


def centres(normalizer: Normalizer, returns: np.ndarray) -> np.ndarray:
    """Return what a normalizer would subtract from each return of one episode, (time,), and leave it as it is."""
    scaling = normalizer.recall(returns) if normalizer.frozen else copy.copy(normalizer).learn(returns)
    return np.broadcast_to(scaling.centre, returns.shape)


def warmed_up(env: str, earlier: Sequence[np.ndarray]) -> dict[str, Normalizer]:
    """Return the normalizers of the actor-critic study, by name, as earlier episodes leave them, and the prior."""
    arms = {kind: plan.arm("replication", kind, "actor_critic", env) for kind in KINDS if kind != PRIOR}
    made = {name: normalizers.make(**config.normalizer) for name, config in arms.items()}
    for normalizer in made.values():
        for returns in earlier:
            normalizer(returns)
    made[PRIOR] = copy.copy(made["kscore"])
    made[PRIOR].frozen = True
    return made


def columns(episodes: Sequence[np.ndarray], keep: int) -> np.ndarray:
    """Return the first steps of series of any length side by side, (keep, episodes), NaN after the end of each."""
    table = np.full((keep, len(episodes)), np.nan)
    for column, series in zip(table.T, episodes, strict=True):
        column[: len(series)] = series[:keep]
    return table


# LunarLander


def lander(episodes: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Play LunarLander with random actions; return the gradient and the returns of every episode, (time,) each.

    The policy is a softmax of linear preferences, all zero; the direction is that of "tilted to the left, fire the
    right engine, and the other way round": g = (1[right] - 1[left]) angle.
    """
    environment, rng = environments.make("LunarLander-v3", seed), np.random.default_rng(seed)
    gradients, returns = [], []
    for _ in range(episodes):
        observation, _ = environment.env.reset()
        slopes, rewards = [], []
        for action in rng.integers(4, size=environment.limit).tolist():
            slopes.append(((action == 3) - (action == 1)) * observation[4])
            observation, reward, terminated, truncated, _ = environment.env.step(action)
            rewards.append(float(reward))
            if terminated or truncated:
                break
        gradients.append(np.array(slopes))
        returns.append(normalizers.discounted_returns(rewards, GAMMA))
    return gradients, returns


def measured(episodes: int = 30_000, seed: int = 4, keep: int = 51) -> pd.DataFrame:
    """Return what every centre keeps on LunarLander at each of the first steps: kind, step, share, error, episodes."""
    gradients, returns = lander(WARM_UP + episodes, seed)
    warm = warmed_up("LunarLander-v3", returns[:WARM_UP])
    g, G = columns(gradients[WARM_UP:], keep), columns(returns[WARM_UP:], keep)
    rows = []
    for kind, normalizer in warm.items():
        b = columns([centres(normalizer, own) for own in returns[WARM_UP:]], keep)
        for step, (share, error) in enumerate(zip(*kept(g, G, b), strict=True)):
            rows.append((kind, step, round(share, 4), round(error, 4), episodes))
    return pd.DataFrame(rows, columns=COLUMNS)


if __name__ == "__main__":
    recording.write(PATH, COLUMNS, measured)
