"""The whole study in one picture: a grid of forest plots, and a ranking in every world."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from kscore.analysis.multiverse import SIDES
from kscore.figures.style import BLUE, GREY, INK, ORANGE, label, method, panels

TICKS = (0.25, 0.5, 1, 2)
LOOKS = {SIDES[0]: (BLUE, "^"), SIDES[1]: (GREY, "o"), SIDES[2]: (ORANGE, "v")}  # by what is said of the filter


def forest_grid(tables: Mapping[str, pd.DataFrame], arms: Sequence[str], *, columns: int = 3, over: str) -> Figure:
    """Draw tables of comparisons (`analysis.against`) side by side, one row per arm, the same in every panel."""
    rows = -(-len(tables) // columns)
    fig, axes = panels(rows, columns, height=0.7 + 0.24 * len(arms), width=9.0, sharex=True, sharey=True, squeeze=False)
    for ax, (title, table) in zip(axes.flat, tables.items(), strict=False):
        ax.axvline(1, color=INK, linewidth=1, linestyle=":")
        for place, arm in enumerate(arms):
            if arm in table.index:
                look, factor = method(arm, marker=True), table.factor[arm]
                ax.plot([factor.low, factor.high], [place, place], color=look["color"], linewidth=2)
                ax.plot(factor.estimate, place, color=look["color"], marker=look["marker"], markersize=6)
        label(ax, f"{title}\n(n = {table.factor.iloc[0].n} per arm)", "", "")
    for ax in axes.flat[len(tables) :]:
        ax.remove()
    axes[0, 0].set_yticks(range(len(arms)), [method(arm)["label"] for arm in arms])
    axes[0, 0].set_ylim(len(arms) - 0.4, -0.6)
    _factors(axes[0, 0].set_xscale, axes[0, 0].xaxis)
    fig.get_layout_engine().set(wspace=0.06)  # room between the last number of a panel and the first of the next
    fig.supxlabel(f"slower   ←   improvement factor over {over}   →   faster", fontsize=10)
    return fig


def multiverse(worlds: pd.DataFrame, *, columns: int = 2) -> Figure:
    """Draw every world of every ranking (`analysis.multiverse.worlds`), from the lowest factor to the highest."""
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
    _factors(axes[0, 0].set_yscale, axes[0, 0].yaxis)
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    marks = [
        Line2D([], [], color=color, marker=marker, label=f"the filter is {side}" if side != SIDES[1] else side)
        for side, (color, marker) in LOOKS.items()
    ]
    axes.flat[len(names)].legend(handles=marks, loc="center", title="by the interval of the factor")
    return fig


def _factors(set_scale: object, axis: object) -> None:
    """Give an axis of factors its scale and its ticks."""
    set_scale("log", base=2)
    axis.set_ticks(TICKS)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
