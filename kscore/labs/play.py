"""What the page that trains asks of Python: questions and answers as JSON, so that a browser can put them.

    >>> answer('{"ask": "follow", "Q": 0.01, "R": 1.0}')

It needs numpy alone and runs unchanged in the browser (`make play`) and here; the tests compare the two.
"""

import copy
import json
import time
from dataclasses import dataclass, field

import numpy as np

from kscore import checks, filters, normalizers
from kscore.filters import Belief
from kscore.labs import by_hand
from kscore.labs.by_hand import Episode, Learner
from kscore.normalizers import KScore, Normalizer

LEARNERS = ("reinforce", "actor_critic")
DOORS = {"returns": "normalizer", "advantages": "advantage_normalizer"}
MOST_SEEDS, MOST_EPISODES = 100, 1000

ARMS: dict[str, dict] = {  # name -> label, the options that make it, and those that a reader may set
    "running": {"label": "Z-Score, running", "options": {"name": "running"}, "knobs": []},
    "zscore": {"label": "Z-Score, per episode", "options": {"name": "zscore"}, "knobs": []},
    "ema": {"label": "Z-Score, EMA", "options": {"name": "ema"}, "knobs": ["decay"]},
    "kscore": {"label": "K-Score, stream", "options": {"name": "kscore"}, "knobs": ["Q", "R"]},
    "innovation": {
        "label": "K-Score, innovation",
        "options": {"name": "kscore", "mode": "innovation"},
        "knobs": ["Q", "R"],
    },
    "refit": {"label": "K-Score, refit", "options": {"name": "kscore", "mode": "refit"}, "knobs": ["Q", "R"]},
    "adaptive": {
        "label": "K-Score, adaptive stream",
        "options": {"name": "kscore", "variant": "adaptive", "Q": 0.1, "R": 1.0},
        "knobs": ["Q", "R", "alpha"],
    },
    "episode": {"label": "filter of episodes", "options": {"name": "episode"}, "knobs": ["ratio"]},
    "fading": {
        "label": "fading mean and scale",
        "options": {"name": "parts", "fading": 0.1},
        "knobs": ["fading"],
    },
    "none": {"label": "no normalizer", "options": {"name": "none"}, "knobs": []},
}


def answer(question: str) -> str:
    """Answer one question, `{"ask": name, ...}` with its arguments; the answer is JSON, too."""
    arguments = json.loads(question)
    ask = QUESTIONS[checks.choice("ask", arguments.pop("ask", None), QUESTIONS)]
    return json.dumps(ask(**arguments))


# Two arms that train


def arms() -> dict[str, dict]:
    """Return every arm with its label and the values that its knobs start from."""
    made = {name: normalizers.make(**arm["options"]) for name, arm in ARMS.items()}
    return {
        name: {"label": arm["label"], "knobs": {knob: getattr(made[name], knob) for knob in arm["knobs"]}}
        for name, arm in ARMS.items()
    }


def learner_of(arm: dict, learner: str, seed: int) -> Learner:
    """Return a new learner for an arm, `{"name", "door", "rate"}` and its knobs."""
    asked = dict(arm)
    name = checks.choice("arm", asked.pop("name", None), ARMS)
    door = checks.choice("door", asked.pop("door", "returns"), DOORS)
    rate = checks.positive("learning rate", asked.pop("rate", 0.01))
    for knob in asked:
        checks.choice(f"setting of {ARMS[name]['label']}", knob, ARMS[name]["knobs"])
    critic = checks.choice("learner", learner, LEARNERS) == "actor_critic"
    return Learner(seed, **{DOORS[door]: ARMS[name]["options"] | asked}, critic=critic, learning_rate=rate)


@dataclass
class Run:
    """One arm with one seed: its learner, the lengths of its episodes, and what there is to see of the last one."""

    learner: Learner
    cap: int
    lengths: list[int] = field(default_factory=list)
    scene: dict = field(default_factory=dict)

    @property
    def solved(self) -> bool:
        """Whether its last episodes are long enough."""
        return by_hand.solved(self.lengths)

    @property
    def over(self) -> bool:
        """Whether it has solved the task, or reached the cap."""
        return len(self.lengths) >= self.cap or self.solved

    def go_on(self, *, look: bool) -> None:
        """Play one more episode and learn from it; with `look`, keep what there is to see of it."""
        episode = by_hand.play(self.learner.policy, self.learner.rng)
        self.lengths.append(len(episode.actions))
        if look or self.over:
            self.scene = {"episode": len(self.lengths)} | scene(self.learner, episode)
        self.learner.learn(episode)


class Duel:
    """Two arms over some seeds: seed after seed, episode by episode in turn, until both have solved it or stopped."""

    def __init__(self, arms: list[dict], learner: str = "reinforce", seed: int = 4, seeds: int = 1, cap: int = 300):
        first = checks.seed("seed", seed)
        count = checks.whole("seeds", seeds, high=MOST_SEEDS)
        cap = checks.whole("episodes", cap, high=MOST_EPISODES)
        self.runs = [[Run(learner_of(arm, learner, first + i), cap) for arm in arms] for i in range(count)]
        self.at = 0

    @property
    def over(self) -> bool:
        """Whether every seed is done."""
        return self.at == len(self.runs)

    def train(self, seconds: float) -> dict:
        """Go on for a while; return where the duel stands, as far as it has changed."""
        begun = self.at
        until = time.perf_counter() + seconds
        while not self.over and time.perf_counter() < until:
            going = [run for run in self.runs[self.at] if not run.over]
            for run in going:
                run.go_on(look=len(run.lengths) % 10 == 0)
            self.at += not any(not run.over for run in self.runs[self.at])
        return {"over": self.over, "seeds": [self.told(i) for i in range(begun, min(self.at + 1, len(self.runs)))]}

    def told(self, at: int) -> dict:
        """Return what there is to say of one seed: of each arm the lengths, whether it is done, and its last scene."""
        runs = self.runs[at]
        return {
            "seed": runs[0].learner.seed,
            "arms": [
                {"lengths": run.lengths, "solved": run.solved, "over": run.over, "scene": run.scene} for run in runs
            ],
        }


duel: Duel | None = None  # the one that is going on: a page has one at a time


def begin(**settings: object) -> dict:
    """Begin a duel, in place of any that was going on."""
    global duel
    duel = Duel(**settings)
    return {"over": False}


def go_on(seconds: float = 0.1) -> dict:
    """Let the duel go on for a while."""
    if duel is None:
        raise ValueError("there must be a duel to go on with: begin one first")
    return duel.train(checks.positive("seconds", seconds))


# What there is to see of an episode


def scene(learner: Learner, episode: Episode) -> dict:
    """Return an episode, what the normalizer under study would make of it, and the length of its gradient.

    Nothing learns from it here: the normalizers that see it are copies.
    """
    twin = copy.copy(learner)
    twin.doors = copy.deepcopy(learner.doors)
    gradient = twin.gradient(episode, *twin.scores(episode))
    signal = by_hand.discounted(len(episode.actions), learner.gamma)
    if learner.critic and learner.normalizer is None:  # it stands at the door of the advantages
        signal = signal - by_hand.forward(learner.values, episode.states)[:, 0]
    normalizer = learner.doors[learner.normalizer is None]
    return {
        "states": episode.states[:, [0, 2]].round(4).tolist(),
        "gradient": float(np.sqrt(sum((part**2).sum() for part in gradient))),
        **seen(normalizer, signal),
    }


def seen(normalizer: Normalizer, signal: np.ndarray) -> dict[str, list | None]:
    """Return what a normalizer makes of a signal: its centre and scale, the scores, and, if it filters, the gain."""
    centre, scale = copy.deepcopy(normalizer).learn(signal)
    centre, scale = (np.broadcast_to(np.asarray(part, float), signal.shape) for part in (centre, scale))
    gain = gains(normalizer, signal)
    return {
        "signal": signal.tolist(),
        "centre": centre.tolist(),
        "scores": ((signal - centre) / scale).tolist(),
        "gain": None if gain is None else gain.tolist(),
    }


def gains(normalizer: Normalizer, signal: np.ndarray) -> np.ndarray | None:
    """Return the gain of the filter in a K-Score at every step; None for what is no filter of steps."""
    if not isinstance(normalizer, KScore):
        return None
    fresh = normalizer.mode == "refit"
    start = Belief(normalizer.x0, normalizer.P0) if fresh else Belief(normalizer.x, normalizer.P)
    if normalizer.variant == "simple":
        return filters.filter_series(signal, normalizer.Q, normalizer.R, start).gain
    R = normalizer.R if fresh else normalizer.noise
    return filters.adaptive_filter_series(
        signal, normalizer.Q, R, normalizer.alpha, start, R_timing=normalizer.R_timing
    ).gain


# One filter


STEPS, JUMP_AT, OUTLIER_AT = 120, 70, 30
GAMMA = 0.99


def follow(Q: float = 0.01, R: float = 1.0, jump: float = 4.0, outlier: float = 0.0, seed: int = 0) -> dict:
    """Filter a series that wanders by chance, jumps once and has one outlier; return what the filter believes."""
    jump, outlier = checks.number("jump", jump), checks.number("outlier", outlier)
    level = np.where(np.arange(STEPS) < JUMP_AT, 0.0, jump)
    z = level + np.random.default_rng(checks.seed("seed", seed)).normal(0, 1, STEPS)
    z[OUTLIER_AT] += outlier
    path, settled = filters.filter_series(z, Q, R), filters.steady_state(Q, R)
    gain = np.concatenate([np.geomspace(1e-3, 1, 60)[:-1], [1.0]])
    return {
        "seen": z.tolist(),
        "level": level.tolist(),
        "mean": path.mean.tolist(),
        "deviation": np.sqrt(path.var).tolist(),
        "var": path.var.tolist(),
        "gain": path.gain.tolist(),
        "settled": settled._asdict(),
        "kept": kept(settled.gain, np.arange(41)).tolist(),
        "by_gain": {"gain": gain.tolist()} | {str(t): kept(gain, t).tolist() for t in (0, 5, 20)},
    }


def kept(K: float | np.ndarray, step: int | np.ndarray) -> np.ndarray:
    """Return the share of the expected gradient that a streamed filter keeps, 1 - K Σ_{j ≤ t} ((1 - K) γ)^j (4.3)."""
    left = (1 - K) * GAMMA
    return 1 - K * (1 - left ** (np.asarray(step) + 1)) / (1 - left)


QUESTIONS = {"arms": arms, "begin": begin, "go_on": go_on, "follow": follow}
