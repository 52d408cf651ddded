"""Group-relative learning, small enough for one core: a recurrent policy learns to add two digits (chapter 15).

A prompt is a pair of digits, an answer two more digits, drawn one after the other, and the reward comes at the end: 1
if the answer is the sum, 0 if not. Several answers are drawn for every prompt of a batch, as GRPO does (Shao and others
2024), and what each of them is held against is one of the forms of `kscore.normalizers.groups`.

As a language model is, the policy is first taught by examples, of which many are wrong; it starts out spread over
answers and right now and then. The advantages of a batch are divided by their root mean square, so that no form has
larger updates than another.

    python -m kscore.labs.digit_addition

trains what data/sums.jsonl lacks, some twenty minutes on one core from nothing. The outcome of a run is the mean share
of right answers over all of its updates; two forms are compared seed by seed, because a seed gives all the same start.
"""

from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from kscore import checks
from kscore.analysis import stats
from kscore.analysis.verdicts import difference
from kscore.labs import recording
from kscore.normalizers.groups import FORMS, make_form
from kscore.project import DATA
from kscore.rl.training import one_thread

PATH = DATA / "sums.jsonl"
DIGITS = 10
EQUALS = DIGITS  # the token between a prompt and its answer
PROMPTS = np.array(list(product(range(DIGITS), repeat=2)))  # (100, 2)
SUMS = PROMPTS.sum(axis=1)
WIDTH, EMBEDDING = 64, 16  # of the recurrent layer, and of a token
EXAMPLES_RATE = 3e-3  # learning rate while examples are shown
EVERY = 10  # updates that a point of a learning curve is the mean of

SEEDS = range(6000, 6020)  # results; 20 of them
GROUPS = (12, 2)  # answers to a prompt
"""The recorded study: every form, with large groups and with the smallest there are."""


@dataclass(frozen=True, kw_only=True)
class SumsConfig:
    """Everything that, with a seed, decides a run."""

    form: str  # one of kscore.normalizers.groups.FORMS
    answers: int = 12  # to a prompt
    batch: int = 192  # answers an update, over all of its prompts
    updates: int = 1000
    learning_rate: float = 1e-3
    examples: int = 300  # rounds through all prompts, before any reward is given
    wrong: float = 0.5  # share of wrong examples

    def __post_init__(self) -> None:
        checks.choice("form", self.form, FORMS)
        for name in ("answers", "batch", "updates"):
            checks.whole(name, getattr(self, name))
        checks.whole("examples", self.examples, low=0)
        checks.positive("learning_rate", self.learning_rate)
        checks.number("wrong", self.wrong, low=0, high=1)
        if self.batch % self.answers or self.batch // self.answers > len(PROMPTS):
            raise ValueError(
                f"batch must be a multiple of answers = {self.answers}, for at most {len(PROMPTS)} "
                f"prompts, got {self.batch}"
            )


class Adder(torch.nn.Module):
    """A recurrent policy: two digits and an equals sign in, two digits out."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(DIGITS + 1, EMBEDDING)
        self.recur = torch.nn.GRU(EMBEDDING, WIDTH, batch_first=True)
        self.out = torch.nn.Linear(WIDTH, DIGITS)

    def logits(self, prompts: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """Return the logits of both digits of given answers, (batch, 2, 10)."""
        hidden, _ = self.recur(self.embed(torch.cat([_asked(prompts), answers[:, :1]], dim=1)))
        return self.out(hidden[:, -2:])

    def log_probs(self, prompts: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """Return the log-probability of whole answers, (batch,)."""
        chosen = self.logits(prompts, answers).log_softmax(-1).gather(2, answers[:, :, None])
        return chosen.sum(dim=(1, 2))

    @torch.no_grad()
    def draw(self, prompts: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Draw an answer to every prompt, digit by digit, (batch, 2)."""
        hidden, state = self.recur(self.embed(_asked(prompts)))
        first = torch.multinomial(self.out(hidden[:, -1]).softmax(-1), 1, generator=generator)
        hidden, _ = self.recur(self.embed(first), state)
        second = torch.multinomial(self.out(hidden[:, -1]).softmax(-1), 1, generator=generator)
        return torch.cat([first, second], dim=1)


def _asked(prompts: torch.Tensor) -> torch.Tensor:
    return torch.cat([prompts, torch.full((len(prompts), 1), EQUALS)], dim=1)


def is_right(prompts: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
    """Say of each answer whether it is the sum, (batch,)."""
    return answers @ torch.tensor([DIGITS, 1]) == prompts.sum(dim=1)


def taught(config: SumsConfig, rng: np.random.Generator) -> Adder:
    """Return a policy that was shown examples, some of them wrong; torch's generator must have been seeded."""
    policy, prompts = Adder(), torch.from_numpy(PROMPTS)
    optimizer = torch.optim.Adam(policy.parameters(), lr=EXAMPLES_RATE)
    for _ in range(config.examples):
        wrong = rng.random(len(PROMPTS)) < config.wrong
        shown = torch.from_numpy(np.where(wrong, rng.integers(SUMS.max() + 1, size=len(PROMPTS)), SUMS))
        digits = torch.stack([shown // DIGITS, shown % DIGITS], dim=1)
        _descend(optimizer, F.cross_entropy(policy.logits(prompts, digits).flatten(0, 1), digits.flatten()))
    return policy


def draw_groups(
    policy: Adder, chosen: np.ndarray, answers: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Draw groups of answers; return prompts and answers, one after the other, and the rewards, (prompts, answers)."""
    prompts = torch.from_numpy(PROMPTS[chosen].repeat(answers, axis=0))
    drawn = policy.draw(prompts, generator)
    return prompts, drawn, is_right(prompts, drawn).numpy().astype(float).reshape(len(chosen), answers)


@one_thread()
def train_sums(config: SumsConfig, seed: int) -> dict:
    """Train a policy from rewards; return the record, with the share of right answers as the learning curve.

    The same seed gives every form the same start: the same examples, weights and first answers.
    """
    rng, generator = np.random.default_rng([checks.seed("seed", seed), 0]), torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = taught(config, rng)
    form, shares = make_form(config.form, len(PROMPTS)), []
    optimizer = torch.optim.Adam(policy.parameters(), lr=config.learning_rate)
    for _ in range(config.updates):
        chosen = rng.choice(len(PROMPTS), config.batch // config.answers, replace=False)
        prompts, answers, rewards = draw_groups(policy, chosen, config.answers, generator)
        advantages = matched(form(rewards, chosen))
        shares.append(rewards.mean())
        weights = torch.from_numpy(advantages.ravel()).float()
        _descend(optimizer, -(policy.log_probs(prompts, answers) * weights).mean())
    whole = len(shares) - len(shares) % EVERY
    curve = np.reshape(shares[:whole], (-1, EVERY)).mean(axis=1)
    return {"config": asdict(config), "seed": seed, "curve": [round(share, 4) for share in curve.tolist()]}


def matched(advantages: np.ndarray) -> np.ndarray:
    """Return advantages of root mean square 1, so that all forms take steps of one size; all zero stay zero."""
    size = np.sqrt(np.mean(advantages**2))
    return advantages / size if size > 0 else advantages


def _descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def planned() -> list[tuple[SumsConfig, int]]:
    """Return the runs of the recorded study, seed by seed, so that whatever is there is balanced."""
    configs = [SumsConfig(form=form, answers=answers) for answers in GROUPS for form in FORMS]
    return [(config, seed) for seed in SEEDS for config in configs]


def read(path: Path = PATH) -> pd.DataFrame:
    """Return the recorded runs, a row each: form, answers, seed, curve, share; only seeds that all forms have."""
    runs = recording.frame(path, ["form", "answers"], ["curve"])
    runs["share"] = [curve.mean() for curve in runs.curve]
    kinds = runs[["form", "answers"]].drop_duplicates()
    return runs[runs.groupby("seed").seed.transform("size") == len(kinds)].reset_index(drop=True)


def against(runs: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Return a row for each form and size of group: how its shares differ from the baseline's, and what that means.

    The p-values (Wilcoxon's signed-rank test over seeds) are adjusted over the rows of this table.
    """
    rows = {}
    for answers, here in runs.groupby("answers", sort=False):
        table = here.pivot(index="seed", columns="form", values="share")
        for form in [form for form in here.form.unique() if form != baseline]:
            found, p = stats.paired_difference(table[form].to_numpy(), table[baseline].to_numpy())
            rows[answers, form] = {"difference": found, "p": p}
    table = pd.DataFrame(rows).T.rename_axis(["answers", "form"])
    table["adjusted p"] = stats.adjusted(table.pop("p"))
    table["verdict"] = [difference(found, q) for found, q in zip(table.difference, table["adjusted p"], strict=True)]
    return table


if __name__ == "__main__":
    recording.record(recording.asked(PATH), planned(), train_sums)
