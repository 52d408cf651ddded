"""One question, every defensible way to answer it: how much of a ranking is the analyst's? (chapter 11)

A *world* is one choice of each thing that the paper leaves open or that could reasonably have been chosen otherwise:
which learner a sentence means, which form of the filter, its released or its tuned setting, which Z-Score it is held
against, the criterion, the cap, the window. `worlds` compares the two methods in all of them, from recorded runs alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from kscore.analysis import stats
from kscore.analysis.stats import ALPHA, Interval, Times
from kscore.figures.charts import factor_axis
from kscore.figures.style import BLUE, GREY, INK, ORANGE, label, panels

FILTERS = ("kscore", "adaptive", "refit", "adaptive_refit")  # the innovation form is ours, not the paper's
BASELINES = ("zscore", "running")
TUNED = "tuned "  # before the name of an arm: the winner of its grid in place of the released setting
WINDOWS = (10, 25)  # of returns that have to reach the threshold; runs stop at 25, so that a longer one was not watched

RANKINGS: dict[str, dict[str, str]] = {
    "Actor-critic, CartPole": {"with a critic": "cartpole_actor_critic", "without": "cartpole_reinforce"},
    "GAE, CartPole": {
        "advantages z-scored": "cartpole_gae",
        "advantages not z-scored": "cartpole_gae_switched",
        "advantages normalized instead of returns": "cartpole_gae_advantages",
    },
    "PPO, CartPole": {"advantages z-scored": "cartpole_ppo", "advantages not z-scored": "cartpole_ppo_switched"},
    "Actor-critic, LunarLander": {"advantages z-scored": "lunarlander_actor_critic"},
    "PPO, LunarLander": {"advantages z-scored": "lunarlander_ppo"},
}
"""The rankings of the paper, and the parts of the study that could be meant by each."""


def worlds(runs: Mapping[str, pd.DataFrame], thresholds: Mapping[str, float], *, draws: int = 1000) -> pd.DataFrame:
    """Return a row for each world of each ranking: its choices, the factor, and what three tests say of it.

    `runs` and `thresholds` are by the name of a part; a part's frame may hold tuned arms, "tuned kscore", too.
    """
    rows = [
        {"ranking": ranking, "learner": learner} | world | _outcome(*pair, world["cap"], draws)
        for ranking, learners in RANKINGS.items()
        for learner, part in learners.items()
        if part in runs
        for world, pair in _pairs(runs[part], thresholds[part])
    ]
    return pd.DataFrame(rows)


def _pairs(runs: pd.DataFrame, threshold: float) -> Iterator[tuple[dict[str, object], tuple[Times, Times]]]:
    """Yield the worlds of one part of the study, each with the times of the filter and of the Z-Score."""
    arms, cap = set(runs.arm), int(runs.cap.iloc[0])
    settings = {setting + arm: (arm, setting) for arm in FILTERS for setting in ("", TUNED)}
    filters = [name for name in settings if name in arms]
    criteria = [name for name in ("evaluation", "training") if _was_watched(runs, name)]
    baselines = [name for name in BASELINES if name in arms]
    for criterion, window in product(criteria, WINDOWS):
        found = {arm: arrivals(runs[runs.arm == arm], criterion, window, threshold) for arm in (*filters, *baselines)}
        for name, baseline, share in product(filters, baselines, (0.3, 0.6, 1.0)):
            until = round(share * cap)
            world = {
                "filter": settings[name][0],
                "setting": settings[name][1].strip() or "released",
                "baseline": baseline,
                "criterion": criterion,
                "window": window,
                "cap": until,
            }
            yield world, (cut(found[name], until), cut(found[baseline], until))


def _was_watched(runs: pd.DataFrame, criterion: str) -> bool:
    """Say whether no run stopped, for another reason, before it met the criterion or its cap."""
    return bool((runs[f"{criterion}_arrived"] | (runs[criterion] == runs.cap)).all())


def arrivals(runs: pd.DataFrame, criterion: str, window: int, threshold: float) -> Times:
    """Return when the mean of the last `window` returns first reached the threshold, in the order of the seeds.

    A run that met the recorded criterion, over 25 returns, has arrived then at the latest.
    """
    ordered = runs.sort_values("seed")
    time, arrived = ordered[criterion].to_numpy().copy(), ordered[f"{criterion}_arrived"].to_numpy().copy()
    column = {"evaluation": "eval_returns", "training": "train_returns"}[criterion]
    for place, returns in enumerate(ordered[column]):
        means = np.convolve(returns, np.full(window, 1 / window), "valid")
        reached = np.flatnonzero(means >= threshold - 1e-9)
        if len(reached) and reached[0] + window < time[place] + (not arrived[place]):
            time[place], arrived[place] = reached[0] + window, True
    return Times(time, arrived)


def cut(times: Times, cap: int) -> Times:
    """Return times as they would be, had nobody watched beyond a cap."""
    return Times(np.minimum(times.time, cap), times.arrived & (times.time <= cap))


def _outcome(a: Times, b: Times, cap: int, draws: int) -> dict[str, object]:
    n = len(a.time)
    factor = stats.bootstrap(lambda w: stats.improvement(a, b, cap, w), n, draws=draws)
    wins = stats.bootstrap(lambda w: stats.probability_faster(a, b, w), n, draws=draws)
    p = stats.logrank(a, b)
    return {
        "factor": factor,
        "by factor": side(factor, 1.0),
        "by log-rank": _by_test(p, factor.estimate),
        "by pairs": side(wins, 0.5),
        "arrived": int(a.arrived.sum() + b.arrived.sum()),
    }


SIDES = ("faster", "cannot be told", "slower")


def side(interval: Interval, none: float) -> str:
    """Return on which side of "no difference" an interval lies."""
    return SIDES[0] if interval.low > none else SIDES[2] if interval.high < none else SIDES[1]


def _by_test(p: float, factor: float) -> str:
    return SIDES[1] if p >= ALPHA or factor == 1 else SIDES[0] if factor > 1 else SIDES[2]


def shares(found: pd.DataFrame, by: str | Sequence[str] = "ranking") -> pd.DataFrame:
    """Return for each ranking, or any other choice, in which share of its worlds and tests the filter is faster."""
    tests = [column for column in found if column.startswith("by ")]
    keys = [by] if isinstance(by, str) else list(by)
    long = found.melt(id_vars=keys, value_vars=tests, value_name="side")
    counted = long.groupby(keys, sort=False).side.value_counts(normalize=True).unstack(fill_value=0.0)
    return counted.reindex(columns=SIDES, fill_value=0.0)


LOOKS = {SIDES[0]: (BLUE, "^"), SIDES[1]: (GREY, "o"), SIDES[2]: (ORANGE, "v")}  # by what is said of the filter


def draw(worlds: pd.DataFrame, *, columns: int = 2) -> Figure:
    """Draw every world of every ranking (`worlds`), from the lowest factor to the highest."""
    names = list(worlds.ranking.unique())
    rows = -(-(len(names) + 1) // columns)
    fig, axes = panels(rows, columns, height=2.3, width=8.0, sharey=True, squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        ordered = sorted(zip(*(worlds[worlds.ranking == name][key] for key in ("factor", "by factor")), strict=True))
        for place, (factor, side) in enumerate(ordered):
            color, marker = LOOKS[side]
            ax.plot([place, place], [factor.low, factor.high], color=color, linewidth=0.8, alpha=0.6)
            ax.plot(place, factor.estimate, color=color, marker=marker, markersize=3.5)
        ax.axhline(1, color=INK, linewidth=1, linestyle=":")
        ax.xaxis.set_major_locator(NullLocator())
        label(ax, name, f"{len(ordered)} worlds, in order", "factor" if ax in axes[:, 0] else "")
    factor_axis(axes[0, 0].set_yscale, axes[0, 0].yaxis)
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    marks = [
        Line2D([], [], color=color, marker=marker, label=f"the filter is {side}" if side != SIDES[1] else side)
        for side, (color, marker) in LOOKS.items()
    ]
    axes.flat[len(names)].legend(handles=marks, loc="center", title="by the interval of the factor")
    return fig
