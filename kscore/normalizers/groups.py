"""What an answer is held against when several are drawn for the same prompt: rewards in, advantages out.

Everything here takes the rewards of a batch, (prompts, answers), with the numbers of its prompts, (prompts,), and
returns advantages of the same shape. The first four forms look at one group of answers at a time and remember nothing;
the two filters remember, and judge a group by what was believed before it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kscore import checks
from kscore.filters import START, Belief, filter_checked

Form = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Rewards of a batch, (prompts, answers), and the prompts' numbers in; advantages out."""

KRPO_Q, KRPO_R = 1e-5, 1e-2  # as released
EPS = 1e-8


def group_rewards(rewards: np.ndarray, least: int = 2) -> np.ndarray:
    """Return rewards as an array of finite numbers, (prompts, answers), with enough answers to each prompt."""
    flat = checks.series("rewards", np.ravel(rewards))
    if np.ndim(rewards) != 2 or np.shape(rewards)[1] < least:
        raise ValueError(
            f"rewards must be (prompts, answers) with at least {least} answers to a prompt, got shape "
            f"{np.shape(rewards)}"
        )
    return flat.reshape(np.shape(rewards))


def grpo(rewards: np.ndarray, prompts: np.ndarray | None = None) -> np.ndarray:
    """Hold every answer against the mean and the deviation of its group (Shao and others 2024)."""
    rewards = group_rewards(rewards)
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    return np.asarray(centred / (rewards.std(axis=1, ddof=1, keepdims=True) + EPS))


def leave_one_out(rewards: np.ndarray, prompts: np.ndarray | None = None) -> np.ndarray:
    """Hold every answer against the mean of the *other* answers to its prompt (Kool and others 2019)."""
    rewards = group_rewards(rewards)
    answers = rewards.shape[1]
    return np.asarray((rewards - rewards.mean(axis=1, keepdims=True)) * answers / (answers - 1))


def krpo(rewards: np.ndarray, prompts: np.ndarray | None = None) -> np.ndarray:
    """Hold every answer against a new filter that has seen it and the answers before it, as KRPO was released.

    The filter of a group starts from x = 0, P = 1, with Q = 1e-5 and R = 1e-2, and reads the answers in the order in
    which they happen to stand: advantage_i = (r_i - x_i) / sqrt(P_i), where belief i has just seen r_i.
    """
    rewards = group_rewards(rewards)
    seen = filter_checked(rewards.T, KRPO_Q, KRPO_R, START)
    return np.asarray((rewards - seen.mean.T) / np.sqrt(seen.var.T + EPS))


def krpo_averaged(rewards: np.ndarray, prompts: np.ndarray | None = None) -> np.ndarray:
    """Return the mean of `krpo` over all orders of the answers, in closed form.

    At place k the belief holds the own reward with the weight K_k and the k - 1 others, whichever they are, with a sum
    of weights V_k = (1 - K_k) (V_{k-1} + K_{k-1}). Averaged over the places, an answer is held against the mean of the
    others, shrunk towards 0, where the filter starts.
    """
    rewards = group_rewards(rewards)
    answers = rewards.shape[1]
    path = filter_checked(np.zeros(answers), KRPO_Q, KRPO_R, START)
    others, before = np.zeros(answers), 0.0
    for k, K in enumerate(path.gain.tolist()):
        others[k] = (1 - K) * before
        before = others[k] + K
    deviation = np.sqrt(path.var + EPS)
    mean_of_others = (rewards.sum(axis=1, keepdims=True) - rewards) / (answers - 1)
    averaged = np.mean((1 - path.gain) / deviation) * rewards - np.mean(others / deviation) * mean_of_others
    return np.asarray(averaged)


@dataclass
class PromptFilter:
    """One Kalman filter per prompt, carried on in time: an answer is held against what was expected of its prompt.

    A filter sees the mean reward of its prompt's answers whenever the prompt is asked, and the answers are judged by
    the belief from before: nothing in it was decided by them. One answer to a prompt is enough.
    """

    prompts: int  # how many there are
    ratio: float = 0.1  # Q/R, as over episodes
    belief: Any = field(init=False)  # a Belief, (prompts,) each

    def __post_init__(self) -> None:
        self.prompts = checks.whole("prompts", self.prompts)
        self.ratio = checks.variance("ratio", self.ratio, positive=True)
        self.belief = Belief(*np.array([np.zeros(self.prompts), np.ones(self.prompts)]))

    def __call__(self, rewards: np.ndarray, prompts: np.ndarray) -> np.ndarray:
        """Return the advantages of a batch, and learn from it."""
        rewards = group_rewards(rewards, least=1)
        prompts = self._known(prompts, len(rewards))
        advantages: np.ndarray = rewards - self.belief.mean[prompts][:, None]
        before = Belief(*(part[prompts] for part in self.belief))
        seen = filter_checked(rewards.mean(axis=1)[None], self.ratio, 1.0, before)
        for part, new in zip(self.belief, seen.last, strict=True):
            part[prompts] = new
        return advantages

    def _known(self, prompts: np.ndarray, rows: int) -> np.ndarray:
        """Return the numbers of a batch's prompts, one for each row of rewards, each of another prompt."""
        given = np.asarray(prompts)
        if given.shape != (rows,) or given.dtype.kind not in "iu":
            raise ValueError(f"prompts must be {rows} whole numbers, one for each row of rewards, got {prompts!r:.200}")
        if given.min() < 0 or given.max() >= self.prompts or len(np.unique(given)) < rows:
            raise ValueError(f"prompts must be different and from 0 to {self.prompts - 1}, got {prompts!r:.200}")
        return given


@dataclass
class OneFilter:
    """One Kalman filter for all prompts: an answer is held against what was expected of the batch."""

    ratio: float = 0.1  # Q/R
    belief: Belief = field(default=START, init=False)

    def __post_init__(self) -> None:
        self.ratio = checks.variance("ratio", self.ratio, positive=True)

    def __call__(self, rewards: np.ndarray, prompts: np.ndarray | None = None) -> np.ndarray:
        """Return the advantages of a batch, and learn from it."""
        rewards = group_rewards(rewards, least=1)
        advantages: np.ndarray = rewards - self.belief.mean
        self.belief = filter_checked(np.array([rewards.mean()]), self.ratio, 1.0, self.belief).last
        return advantages


FORMS = ("grpo", "leave_one_out", "krpo", "krpo_averaged", "prompt_filter", "one_filter")


def make_form(name: str, prompts: int) -> Form:
    """Return one of the FORMS, ready for a new run with so many prompts."""
    stateless = {"grpo": grpo, "leave_one_out": leave_one_out, "krpo": krpo, "krpo_averaged": krpo_averaged}
    checks.choice("form", name, FORMS)
    return stateless[name] if name in stateless else OneFilter() if name == "one_filter" else PromptFilter(prompts)
