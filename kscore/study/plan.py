"""The plan: every experiment, declared once; data/PLAN.md says in words what stands here as code.

    >>> part("cartpole_ppo").configs["adaptive_refit"].normalizer["Q"]
    0.01

A part of the study is a file in data/runs, with its arms (a name and a configuration each) and its seeds. The arms are
made next door, in `replication`, `beyond` and `contenders`.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from kscore import checks
from kscore.study import beyond, contenders, replication
from kscore.study.replication import Arms


class Seeds(NamedTuple):
    """A stretch of seeds: the first, and how many."""

    first: int
    count: int


RESULTS = Seeds(1000, 50)  # results on CartPole
LUNAR_RESULTS = Seeds(1000, 10)
TUNING = Seeds(2000, 8)  # settings are chosen on these; no result uses them
LIVE = 3000  # the first of the seeds that chapters train before the reader's eyes, up to 3999
EPISODE_RESULTS = Seeds(4000, 50)  # results of the filters over episodes
LUNAR_TUNING = Seeds(2000, 4)  # which of their forms is run on LunarLander is chosen on these
RELATIVE_RESULTS = Seeds(6000, 50)  # results of PopArt and its like
CONTINUOUS_RESULTS = Seeds(8000, 30)  # results on tasks with real actions
UNTUNED_RESULTS = Seeds(8000, 10)  # on those for which nothing was tuned
PENDULUM_TUNING = Seeds(2000, 6)
FAIR_TUNING = Seeds(2000, 20)  # the setting of each arm of the fair fight is chosen on these
FAIR_RESULTS = Seeds(5000, 50)  # results of the fair fight on CartPole
FAIR_FEWER = Seeds(5000, 30)  # under disturbances, on short tasks, and for what is descriptive
LONGER_RESULTS = Seeds(5100, 30)  # after a swap of the actions, watched for longer
CONTROL_RESULTS = Seeds(5200, 50)  # of the controls, and of the arms that they are held against
CONTROL_LONGER = Seeds(5300, 30)  # the same after a swap of the actions
GAE_AGAIN = Seeds(5400, 100)  # the controls once more, with the learner with which most was found
ACROBOT_RESULTS = Seeds(5000, 20)
FAIR_LUNAR_RESULTS = Seeds(5000, 20)


class Declared(NamedTuple):
    """A part of the study as it was planned."""

    chapters: tuple[int, ...]  # that read it, beside the report, which reads all of the replication
    seeds: Seeds
    arms: Callable[..., Arms]  # from changes that are made to all of them
    beside: tuple[str, ...] = ()  # parts whose runs count as runs of this one, where the configuration is the same


PARTS: dict[str, Declared] = {
    **{
        f"lunarlander_{algorithm}": Declared(
            (chapter,),
            LUNAR_RESULTS,
            partial(replication.arms, "LunarLander-v3", algorithm, replication.LUNAR_ARMS, criterion="both"),
        )
        for algorithm, chapter in (("actor_critic", 7), ("ppo", 9))
    },
    "lunarlander_released": Declared((7,), LUNAR_RESULTS, replication.released_lunar),
    "cartpole_reinforce": Declared((5,), RESULTS, partial(replication.arms, "CartPole-v1", "reinforce")),
    "cartpole_actor_critic": Declared((5, 10), RESULTS, partial(replication.arms, "CartPole-v1", "actor_critic")),
    "cartpole_gae": Declared((6,), RESULTS, partial(replication.arms, "CartPole-v1", "gae")),
    "cartpole_ppo": Declared((8, 10), RESULTS, partial(replication.arms, "CartPole-v1", "ppo")),
    "cartpole_gae_switched": Declared((6,), RESULTS, partial(replication.switched, "gae")),
    "cartpole_ppo_switched": Declared((8,), RESULTS, partial(replication.switched, "ppo")),
    "cartpole_ppo_released": Declared((8,), RESULTS, replication.released_ppo),
    "cartpole_gae_advantages": Declared((6,), RESULTS, replication.normalized_advantages),
    "process_noise_stream": Declared((10,), RESULTS, partial(replication.process_noise, "stream")),
    "process_noise_refit": Declared((10,), RESULTS, partial(replication.process_noise, "refit")),
    "tuning_actor_critic_stream": Declared((10,), TUNING, partial(replication.kalman_grid, "actor_critic", "stream")),
    "tuning_actor_critic_refit": Declared((10,), TUNING, partial(replication.kalman_grid, "actor_critic", "refit")),
    "tuning_actor_critic_ema": Declared((10,), TUNING, partial(replication.ema_grid, "actor_critic")),
    "tuning_ppo_stream": Declared((10,), TUNING, partial(replication.kalman_grid, "ppo", "stream")),
    "tuning_ppo_refit": Declared((10,), TUNING, partial(replication.kalman_grid, "ppo", "refit")),
    "tuning_ppo_ema": Declared((10,), TUNING, partial(replication.ema_grid, "ppo")),
    "tuned_actor_critic": Declared((10,), RESULTS, replication.tuned),
    "tuned_ppo": Declared((10,), RESULTS, replication.tuned),
    **{
        f"episodes_{algorithm}{suffix}": Declared(
            (12, 13), EPISODE_RESULTS, partial(beyond.one_level_up, algorithm, **rate)
        )
        for suffix, rate in (("", {}), ("_slower", {"learning_rate": beyond.SLOWER}))
        for algorithm in ("reinforce", "actor_critic", "gae", "ppo")
    },
    **{
        f"episodes_lunarlander_tuning_{algorithm}": Declared(
            (12,),
            LUNAR_TUNING,
            partial(beyond.one_level_up, algorithm, "LunarLander-v3", ("episode_z", "episode_both")),
        )
        for algorithm in ("actor_critic", "ppo")
    },
    **{
        f"episodes_lunarlander_{algorithm}": Declared(
            (12,), LUNAR_RESULTS, partial(beyond.one_level_up, algorithm, "LunarLander-v3", (beyond.LUNAR_FORM,))
        )
        for algorithm in ("actor_critic", "ppo")
    },
    **{
        f"relatives_{algorithm}{suffix}": Declared(
            (15,), RELATIVE_RESULTS, partial(beyond.relatives, algorithm, reward_scale=scale)
        )
        for suffix, scale in beyond.REWARD_SCALES.items()
        for algorithm in ("actor_critic", "ppo")
    },
    "continuous_tuning_pendulum": Declared((16,), PENDULUM_TUNING, partial(beyond.continuous_grid, "Pendulum-v1")),
    "continuous_tuning_lunarlander": Declared(
        (16,), LUNAR_TUNING, partial(beyond.continuous_grid, "LunarLanderContinuous-v3", beyond.HIGHER_RATES)
    ),
    "continuous_pendulum": Declared((16,), CONTINUOUS_RESULTS, partial(beyond.continuous_tuned, "Pendulum-v1")),
    "continuous_lunarlander": Declared(
        (16,), CONTINUOUS_RESULTS, partial(beyond.continuous_tuned, "LunarLanderContinuous-v3")
    ),
    **{
        f"continuous_{name}": Declared(
            (16,), UNTUNED_RESULTS, partial(beyond.continuous_tuned, env, "Pendulum-v1", max_episodes=300)
        )
        for name, env in (("halfcheetah", "HalfCheetah-v5"), ("bipedalwalker", "BipedalWalker-v3"))
    },
    **{
        f"fair_tuning_{learner}": Declared((17,), FAIR_TUNING, partial(contenders.grid, learner))
        for learner in ("actor_critic", "ppo", "reinforce", "gae")
    },
    **{
        f"controls_tuning_{learner}": Declared(
            (17,), FAIR_TUNING, partial(contenders.grid, learner, names=contenders.controls(learner))
        )
        for learner in contenders.OWN
    },
    **{
        f"controls_{learner}": Declared((17,), CONTROL_RESULTS, partial(contenders.controlled, learner))
        for learner in contenders.OWN
    },
    **{
        f"controls_{learner}_swap_longer": Declared(
            (14,),
            CONTROL_LONGER,
            partial(
                contenders.disturbed,
                learner,
                "swap",
                contenders.CONTROLLED_SWAPPED,
                max_episodes=contenders.WATCHED_LONGER,
            ),
        )
        for learner in contenders.DISTURBED
    },
    "controls_reinforce_slower": Declared(
        (14,), FAIR_FEWER, partial(contenders.at_rate_of, "running", "episode_filter")
    ),
    "controls_reinforce_faster": Declared(
        (14,), FAIR_FEWER, partial(contenders.at_rate_of, "episode_filter", "running")
    ),
    "controls_reinforce_rates": Declared((17,), CONTROL_RESULTS, contenders.exchanged_rates),
    "controls_actor_critic_doors": Declared((17,), CONTROL_RESULTS, contenders.second_door),
    "controls_gae_again": Declared((17,), GAE_AGAIN, partial(contenders.controlled, "gae")),
    "controls_actor_critic_swap_longer_doors": Declared(
        (14,),
        LONGER_RESULTS,
        partial(
            contenders.other_doors,
            **contenders.CONDITIONS["swap"]["swap"] | {"max_episodes": contenders.WATCHED_LONGER},
        ),
    ),
    "controls_actor_critic_outliers": Declared(
        (14,),
        FAIR_FEWER,
        partial(contenders.other_doors, contenders.DOORS_UNDER_OUTLIERS, **contenders.CONDITIONS["shift"]["outliers"]),
    ),
    "controls_reinforce_swap_longer_faster": Declared(
        (14,),
        CONTROL_LONGER,
        partial(
            contenders.disturbed,
            "reinforce",
            "swap",
            ("running",),
            learning_rate=0.01,
            max_episodes=contenders.WATCHED_LONGER,
        ),
    ),
    **{
        f"fair_tuning_lunarlander_{learner}": Declared(
            (17,),
            LUNAR_TUNING,
            partial(
                contenders.grid,
                learner,
                contenders.LUNAR_RATES,
                contenders.LUNAR_ARMS,
                "LunarLander-v3",
                both=("episode_filter",),
            ),
        )
        for learner in ("actor_critic", "ppo")
    },
    **{
        f"fair_lunarlander_{learner}": Declared(
            (17,), FAIR_LUNAR_RESULTS, partial(contenders.at, learner, settings, "LunarLander-v3")
        )
        for learner, settings in contenders.LUNAR_OWN.items()
    },
    **{
        f"fair_{learner}": Declared(
            (14, 17) if learner in contenders.DISTURBED else (17,),
            FAIR_RESULTS,
            partial(contenders.at, learner, settings),
        )
        for learner, settings in contenders.OWN.items()
    },
    **{
        f"fair_common_{learner}": Declared(
            (14, 17) if learner == "reinforce" else (17,), FAIR_RESULTS, partial(contenders.at, learner, settings)
        )
        for learner, settings in contenders.COMMON.items()
    },
    **{
        f"disturbed_{learner}_{kind}": Declared((14,), FAIR_FEWER, partial(contenders.disturbed, learner, kind))
        for learner, kinds in contenders.DISTURBED.items()
        for kind in kinds
    },
    **{
        f"disturbed_{learner}_swap_longer": Declared(
            (14,),
            LONGER_RESULTS,
            partial(contenders.disturbed, learner, "swap", max_episodes=contenders.WATCHED_LONGER),
        )
        for learner in contenders.DISTURBED
    },
    **{
        f"short_{task}_{learner}": Declared((14,), FAIR_FEWER, partial(contenders.short, task, learner))
        for task in contenders.SHORT_TASKS
        for learner in contenders.DISTURBED
    },
    **{
        f"fair_parts_{learner}": Declared((17,), FAIR_FEWER, partial(contenders.factorial, learner))
        for learner in ("reinforce", "ppo")
    },
    **{
        f"fair_networks_{learner}": Declared((17,), FAIR_FEWER, partial(contenders.other_networks, learner))
        for learner in ("actor_critic", "ppo")
    },
    **{
        f"fair_{task}_{learner}": Declared((17,), seeds, partial(contenders.at, learner, contenders.OWN[learner], env))
        for task, env, seeds in (
            ("drylake", contenders.SHORT_TASKS["drylake"], FAIR_FEWER),
            ("acrobot", "Acrobot-v1", ACROBOT_RESULTS),
        )
        for learner in ("actor_critic", "ppo")
    },
}
"""Every part of the study, the longest runs first. The arms of a tuned part are the winners of its grids."""

OUTCOMES: dict[str, Declared] = {
    **{
        f"rates_lunarlander_{learner}": Declared(
            (), LUNAR_TUNING, partial(contenders.lunar_rates, learner), (f"fair_tuning_lunarlander_{learner}",)
        )
        for learner in contenders.LUNAR_FIRST_RATES
    },
    **{
        f"noise_lunarlander_{learner}": Declared((), LUNAR_TUNING, partial(contenders.lunar_noise, learner))
        for learner in contenders.LUNAR_FIRST_RATES
    },
}
"""Parts of which outcomes are kept, and no curves; see `kscore.study.outcomes`."""

REPORT = 11  # the chapter that reads every part of the replication


class Part(NamedTuple):
    """A part of the study, ready to be trained or read."""

    name: str
    configs: Arms
    seeds: range
    beside: tuple[str, ...] = ()  # parts whose runs count as its own, where the configuration is the same

    @property
    def file(self) -> str:
        """The name of its file in a store."""
        return f"{self.name}.jsonl"

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return len(self.configs) * len(self.seeds)


def part(name: str, *, seeds: int | None = None, first_seed: int | None = None, **changes: object) -> Part:
    """Return a part of the study as planned; fewer seeds, other ones, or changed settings are for trying things out.

    `changes` are made to all arms (`learning_rate=0.003`), or go to what makes them (`Qs`, `Rs`, `winners`).
    """
    declared = (PARTS | OUTCOMES)[checks.choice("part of the study", name, PARTS | OUTCOMES)]
    first = declared.seeds.first if first_seed is None else checks.seed("first_seed", first_seed)
    most = checks.LARGEST_SEED + 1 - first
    count = checks.whole("seeds", declared.seeds.count if seeds is None else seeds, high=most)
    return Part(name, declared.arms(**changes), range(first, first + count), declared.beside)


def grids_of(name: str) -> dict[str, str]:
    """Return the parts whose winners a tuned part is made of, by the kind of their grid; none for any other part."""
    algorithm = name.removeprefix("tuned_")
    return {kind: f"tuning_{algorithm}_{kind}" for kind in replication.TUNED_ARMS} if algorithm != name else {}


def chosen(patterns: Iterable[str] = ()) -> list[str]:
    """Return the names of the parts that any of the patterns means: a name, a glob, or the number of a chapter.

    All of them without a pattern. A tuned part brings its grids with it.
    """
    wanted = set()
    for pattern in patterns:
        every = PARTS | OUTCOMES
        matching = _of_chapter(int(pattern)) if pattern.isdecimal() else fnmatch.filter(every, pattern)
        wanted.update(matching or [checks.choice("part of the study", pattern, every)])
    wanted |= {grid for name in wanted for grid in grids_of(name).values()}
    return [name for name in PARTS | OUTCOMES if not wanted or name in wanted]


def _of_chapter(number: int) -> list[str]:
    known = sorted({chapter for declared in PARTS.values() for chapter in declared.chapters} | {REPORT})
    checks.choice("chapter with experiments", str(number), map(str, known))
    return [
        name
        for name, declared in PARTS.items()
        if number in declared.chapters or (number == REPORT and min(declared.chapters, default=REPORT) < REPORT)
    ]


class Pairing(NamedTuple):
    """Which runs speak to a claim: a part, arms of it, the K-Scores before the baseline, and the criterion."""

    part: str
    arms: tuple[str, ...] = ()  # none: all of them, in their order
    criterion: str = "evaluation"

    @classmethod
    def parse(cls, text: str) -> "Pairing":
        """Read "part: a / b by criterion", where all but the part may be missing."""
        found = re.fullmatch(r"(\w+)(?:: (.+?))?(?: by (\w+))?", text)
        if not found:
            raise ValueError(f"a pairing must be 'part: arm / arm by criterion', got {text!r}")
        return cls(found[1], tuple((found[2] or "").split(" / ")) if found[2] else (), found[3] or "evaluation")


PAIRINGS: dict[str, dict[str, tuple[Pairing, ...]]] = {
    "E1": {
        "written": (Pairing("cartpole_actor_critic", ("kscore", "running")),),
        "released": (Pairing("cartpole_reinforce", ("adaptive_refit", "zscore")),),
    },
    "E2": {
        "written": (Pairing("cartpole_gae_advantages", ("kscore", "running")),),
        "released": (Pairing("cartpole_gae", ("adaptive_refit", "zscore")),),
    },
    "E3": {
        "written": (Pairing("lunarlander_actor_critic", ("adaptive", "running")),),
        "released": (Pairing("lunarlander_actor_critic", ("adaptive_refit", "zscore"), "training"),),
    },
    "E4": {
        "written": (Pairing("cartpole_ppo_switched", ("adaptive", "kscore", "running")),),
        "released": (Pairing("cartpole_ppo", ("adaptive_refit", "refit", "zscore")),),
    },
    "T1a": {
        "written": (Pairing("cartpole_ppo_switched", ("adaptive", "running")),),
        "released": (
            Pairing("cartpole_ppo_released", ("adaptive_refit", "none")),
            Pairing("cartpole_ppo", ("adaptive_refit", "refit", "zscore")),
        ),
    },
    "T1b": {
        "written": (Pairing("lunarlander_ppo", ("adaptive", "running")),),
        "released": (Pairing("lunarlander_released", ("750", "991"), "training"),),
    },
    "T2": {"written": (Pairing("process_noise_stream"),), "released": (Pairing("process_noise_refit"),)},
}
"""For each experiment of the paper, the arms behind its claims, as written and as released."""
