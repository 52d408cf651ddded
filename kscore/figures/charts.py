"""The charts of the collection: axes in, axes out; nothing is computed here."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator

from kscore.analysis.stats import Interval, Survival
from kscore.figures.style import INK, LOOKS, label, method, panels
from kscore.figures.tables import factors


def survival(curves: Mapping[str, Survival], ax: Axes, cap: int) -> Axes:
    """Draw the share of runs still on their way, arm by arm, with their bands, up to the cap."""
    for arm, curve in curves.items():
        look = method(arm)
        episode = np.append(curve.episode, cap)
        share, low, high = (np.append(values, values[-1]) for values in (curve.share, curve.low, curve.high))
        ax.step(episode, share, where="post", **look)
        ax.fill_between(episode, low, high, step="post", color=look["color"], alpha=0.12, linewidth=0)
    ax.set(xlim=(0, cap), ylim=(0, 1.02))
    return ax


def survival_panels(
    rows: Sequence[Mapping[str, Mapping[str, Survival]]],
    cap: int,
    *,
    height: float = 3.6,
    legend: str = "below",
    time: str = "training episodes",
) -> Figure:
    """Draw survival curves in rows of panels: the title of each panel, and its arms with their curves.

    One legend stands below all panels, or one in each, at the place that `legend` names.
    """
    columns = len(rows[0])
    space = " " if columns < 3 else "\n"
    fig, axes = panels(
        len(rows), columns, height=height, width=_width(columns), sharex=True, sharey=True, squeeze=False
    )
    for line, row in zip(axes, rows, strict=True):
        for ax, (title, curves) in zip(line, row.items(), strict=True):
            survival(curves, ax, cap)
            n = ", ".join(sorted({str(curve.n) for curve in curves.values()}))
            label(
                ax,
                f"{title}{space}(n = {n})",
                time if ax in axes[-1] else "",
                "share of runs on their way" if ax in axes[:, 0] else "",
                legend=legend != "below" and legend,
            )
    if legend == "below":
        _legend_below(fig)
    return fig


def _width(columns: int) -> float:
    """Return the width of a figure, in inches: that of a page, a little more for three panels in a row."""
    return 8.0 if columns < 3 else 9.0


def _legend_below(fig: Figure) -> None:
    """Explain every line of a figure once, under its panels, in the order of the methods."""
    lines = {text: line for ax in fig.axes for line, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    order = [look["label"] for look in LOOKS.values() if look["label"] in lines]
    fig.legend([lines[text] for text in order], order, loc="outside lower center", ncols=3, fontsize=10)


def learning(curves: np.ndarray, arm: str, ax: Axes, *, every: int = 1) -> Axes:
    """Draw evaluation returns, (runs, evaluations), that stand so many training episodes apart.

    Each run is faint, the median and the band of the middle half stand before them.
    """
    look = method(arm)
    episodes = every * np.arange(1, curves.shape[1] + 1)
    ax.plot(episodes, curves.T, color=look["color"], alpha=min(0.4, 10 / len(curves)), linewidth=0.5)
    lower, middle, upper = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
    ax.fill_between(episodes, lower, upper, color=look["color"], alpha=0.4, linewidth=0)
    ax.plot(episodes, middle, color=INK, linewidth=3)
    ax.plot(episodes, middle, **look)
    return ax


def learning_panels(
    arms: Sequence[tuple[str, str, np.ndarray]],
    *,
    columns: int = 2,
    threshold: float | None = None,
    lowest: float | None = None,
    every: int = 1,
) -> Figure:
    """Draw learning curves, a panel for each (title, method, curves); a threshold is dotted, `lowest` cuts the axis."""
    rows = -(-len(arms) // columns)
    fig, axes = panels(rows, columns, height=2.6, width=_width(columns), sharex=True, sharey=True, squeeze=False)
    for ax, (title, arm, curves) in zip(axes.flat, arms, strict=False):
        learning(curves, arm, ax, every=every)
        if threshold is not None:
            ax.axhline(threshold, color=INK, linewidth=0.8, linestyle=":")
        label(ax, f"{title}\n(n = {len(curves)})", "", "evaluation return" if ax in axes[:, 0] else "")
    for ax in _lowest(axes, len(arms)):
        ax.set_xlabel("training episodes")
    if lowest is not None:
        axes[0, 0].set_ylim(bottom=lowest)
    return fig


def _lowest(axes: np.ndarray, count: int) -> list[Axes]:
    """Take away the axes that are left over, and return the lowest of each column, with the numbers on its axis."""
    for ax in axes.flat[count:]:
        ax.remove()
    lowest = list(axes.flat[max(0, count - axes.shape[1]) : count])
    for ax in lowest:
        ax.tick_params(labelbottom=True)  # which a shared axis shows in the last row only
    return lowest


def forest(rows: Sequence[tuple[str, Interval, str]], ax: Axes, *, none: float = 1.0, form: str = ".2f") -> Axes:
    """Draw estimates with their intervals, (label, interval, method) from top to bottom, their numbers beside them.

    `none` is the value that means no difference; it gets a line. The axis is logarithmic, as factors need it, and
    linear if that value is 0.
    """
    ax.axvline(none, color=INK, linewidth=1, linestyle=":")
    for place, (_, interval, arm) in enumerate(rows):
        look = LOOKS[arm]
        ax.plot([interval.low, interval.high], [place, place], color=look["color"], linewidth=2)
        ax.plot(interval.estimate, place, color=look["color"], marker=look["marker"], markersize=7)
        ax.annotate(f"{interval:{form}}", (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=10)
    ax.set_yticks(range(len(rows)), [text for text, _, _ in rows], fontsize=10)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    if none:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(_Factors(none))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2g}"))
    return ax


def forest_panels(
    tables: Mapping[str, pd.DataFrame], *, columns: int = 1, over: str = "the Z-Score", published: float | None = None
) -> Figure:
    """Draw forest plots of tables of comparisons (`analysis.against`) by their titles; a published factor is dashed.

    One stands below the other, so that labels and numbers can be read on a narrow page; a panel is as high as its
    table needs.
    """
    rows = -(-len(tables) // columns)
    lengths = [*map(len, tables.values())]
    heights = [0.75 + 0.3 * max(lengths[row * columns : (row + 1) * columns]) for row in range(rows)]
    fig, axes = panels(
        rows,
        columns,
        height=sum(heights) / rows,
        width=7.0 if columns == 1 else 6.0 * columns,
        sharex=True,
        squeeze=False,
        height_ratios=heights,
    )
    for ax, (title, table) in zip(axes.flat, tables.items(), strict=False):
        forest(factors(table), ax)
        if published is not None:
            ax.axvline(published, color=INK, linewidth=1, linestyle="--")
        whole = f"{title} (n\xa0=\xa0{table.factor.iloc[0].n})"  # where n stands no line is broken
        label(ax, textwrap.fill(whole, 58).replace("\xa0", " "), "", "")
    for ax in _lowest(axes, len(tables)):
        ax.set_xlabel(f"improvement factor over {over}")
    return fig


class _Factors(Locator):
    """Ticks at equal ratios around a value that is always one of them: 0.84, 1, 1.2 or, on a wide axis, 0.5, 1, 2."""

    def __init__(self, around: float, most: int = 7) -> None:
        self.around, self.most = around, most

    def __call__(self) -> np.ndarray:
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, low: float, high: float) -> np.ndarray:
        """Return the ticks from low to high."""
        first, last = np.log2([low / self.around, high / self.around])
        for step in (0.25, 0.5, 1, 2, 4):
            ticks = np.arange(np.ceil(first / step - 1e-9), np.floor(last / step + 1e-9) + 1) * step
            if len(ticks) <= self.most:
                break
        return self.around * 2**ticks


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
    factor_axis(axes[0, 0].set_xscale, axes[0, 0].xaxis)
    fig.get_layout_engine().set(wspace=0.06)  # room between the last number of a panel and the first of the next
    fig.supxlabel(f"slower   ←   improvement factor over {over}   →   faster", fontsize=10)
    return fig


def factor_axis(set_scale: object, axis: object) -> None:
    """Give an axis of factors its scale, and ticks from a quarter to twice."""
    set_scale("log", base=2)
    axis.set_ticks((0.25, 0.5, 1, 2))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def live(records: Mapping[tuple[str, int], dict], ax: Axes) -> Axes:
    """Draw the evaluation returns of runs by (method, seed), and the threshold they are to reach."""
    for (arm, seed), record in records.items():
        look = method(arm) | {"label": f"{LOOKS[arm]['label']}, seed {seed}"}
        every = record["config"]["episodes_per_update"] * record["config"]["evaluate_every"]
        ax.plot(every * np.arange(1, len(record["eval_returns"]) + 1), record["eval_returns"], **look)
    for threshold in {record["config"]["threshold"] for record in records.values()} - {None}:
        ax.axhline(threshold, color=INK, linewidth=0.8, linestyle=":")
    return ax


def live_panel(records: Mapping[tuple[str, int], dict]) -> Figure:
    """Draw live runs, by (method, seed), in a figure of their own."""
    fig, ax = panels(height=2.8)
    live(records, ax)
    seeds = {seed for _, seed in records}
    label(ax, f"Live runs (n = {len(seeds)} per arm)", "training episodes", "evaluation return", legend=True)
    return fig


def heat(table: pd.DataFrame, ax: Axes, *, low: float, high: float, form: str = ".0f") -> Axes:
    """Draw a table of numbers as coloured cells with the numbers in them; dark is low, and a missing one is blank."""
    ax.imshow(table.to_numpy(), vmin=low, vmax=high, aspect="auto")
    ax.set_xticks(range(table.shape[1]), [f"{value:g}" for value in table.columns])
    ax.set_yticks(range(table.shape[0]), [f"{value:g}" for value in table.index])
    for (row, column), value in np.ndenumerate(table.to_numpy(float)):
        if np.isnan(value):
            continue
        light = value > (low + high) / 2
        ax.text(column, row, f"{value:{form}}", ha="center", va="center", color=INK if light else "white", fontsize=9)
    ax.tick_params(length=0)
    return ax
