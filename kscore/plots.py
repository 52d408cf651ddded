"""One visual vocabulary: each method has one colour, one line style and one marker in every figure."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import Markdown, display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator

from kscore.stats import Interval, Survival

_PALETTE = sns.color_palette("colorblind").as_hex()
BLUE, ORANGE, GREEN, RED, PURPLE, _, _, GREY, YELLOW, SKY = _PALETTE
TEAL = "#00665c"  # instead of the palette's pink, which is too faint for a line
BROWN = "#6b3000"  # darker than the palette's own, which is hard to tell from its orange
INK = "#222222"

METHODS: dict[str, dict[str, str]] = {
    "none": {"label": "none", "color": GREY, "linestyle": (0, (1, 1)), "marker": "x"},
    "zscore": {"label": "Z-Score, per episode", "color": BLUE, "linestyle": "-", "marker": "o"},
    "running": {"label": "Z-Score, running", "color": SKY, "linestyle": "--", "marker": "s"},
    "ema": {"label": "Z-Score, EMA", "color": GREEN, "linestyle": "-.", "marker": "^"},
    "kscore": {"label": "K-Score, stream", "color": ORANGE, "linestyle": "-", "marker": "D"},
    "refit": {"label": "K-Score, refit", "color": RED, "linestyle": "--", "marker": "v"},
    "innovation": {"label": "K-Score, innovation", "color": PURPLE, "linestyle": ":", "marker": "P"},
    "adaptive": {"label": "K-Score, adaptive stream", "color": BROWN, "linestyle": (0, (5, 1, 1, 1)), "marker": "*"},
    "adaptive_refit": {"label": "K-Score, adaptive refit", "color": TEAL, "linestyle": (0, (4, 2)), "marker": "<"},
    "adaptive_innovation": {"label": "K-Score, adaptive innovation", "color": INK, "linestyle": (0, (3, 1, 1, 1, 1, 1)),
                            "marker": ">"},
}


def use_style() -> None:
    """Set the look of every figure: open axes, readable sizes, the colour-blind palette."""
    sns.set_theme(context="notebook", style="ticks", palette="colorblind", rc={
        "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11, "axes.titlelocation": "left",
        "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9, "legend.fontsize": 9,
        "legend.frameon": False, "lines.linewidth": 1.6, "lines.markersize": 5, "figure.dpi": 110,
        "figure.constrained_layout.use": True, "image.cmap": "cividis",
    })


def method(name: str, *, marker: bool = False) -> dict[str, object]:
    """Return the keyword arguments that draw a method in its own colour and style."""
    look = dict(METHODS[name])
    if not marker:
        del look["marker"]
    return look


def panels(rows: int = 1, columns: int = 1, *, height: float = 3.2, width: float = 8.0, **options: object) -> tuple:
    """Return a figure and its axes, as `plt.subplots` does, at the width that a page has."""
    return plt.subplots(rows, columns, figsize=(width, height * rows), **options)


def label(ax: Axes, title: str, x: str, y: str, *, legend: bool | str = False) -> Axes:
    """Write the words on an axis; `legend` may name its place, "below" among them."""
    ax.set(title=title, xlabel=x, ylabel=y)
    if legend == "below":
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    elif legend:
        ax.legend(loc=legend if isinstance(legend, str) else "best")
    return ax


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


def survivals(rows: Mapping[str, Mapping[str, Mapping[str, Survival]]], axes: np.ndarray, cap: int) -> None:
    """Draw survival curves in a grid, (rows, columns): by what it is judged, then which arms share a panel."""
    for line, (judged, groups) in zip(axes, rows.items(), strict=True):
        for ax, (title, curves) in zip(line, groups.items(), strict=True):
            survival(curves, ax, cap)
            n = ", ".join(sorted({str(curve.n) for curve in curves.values()}))
            label(ax, f"{title}, {judged}", "training episodes" if ax in axes[-1] else "",
                  f"share on their way (n = {n})" if ax in axes[:, 0] else "", legend="lower left")


def learning(curves: np.ndarray, arm: str, ax: Axes) -> Axes:
    """Draw evaluation returns, (runs, episodes): each run faint, the median and the band of the middle half before."""
    look = method(arm)
    episodes = np.arange(1, curves.shape[1] + 1)
    ax.plot(episodes, curves.T, color=look["color"], alpha=min(0.4, 10 / len(curves)), linewidth=0.5)
    lower, middle, upper = np.quantile(curves, [0.25, 0.5, 0.75], axis=0)
    ax.fill_between(episodes, lower, upper, color=look["color"], alpha=0.4, linewidth=0)
    ax.plot(episodes, middle, color=INK, linewidth=3)
    ax.plot(episodes, middle, **look)
    return ax


def forest(rows: Sequence[tuple[str, Interval, str]], ax: Axes, *, none: float = 1.0) -> Axes:
    """Draw estimates with their intervals, (label, interval, method) from top to bottom, on a logarithmic axis.

    `none` is the value that means no difference; it gets a line.
    """
    ax.axvline(none, color=INK, linewidth=1, linestyle=":")
    for place, (_, interval, arm) in enumerate(rows):
        look = METHODS[arm]
        ax.plot([interval.low, interval.high], [place, place], color=look["color"], linewidth=2)
        ax.plot(interval.estimate, place, color=look["color"], marker=look["marker"], markersize=7)
        ax.annotate(f"{interval:.2f}", (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), [text for text, _, _ in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(_Factors(none))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2g}"))
    return ax


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


def factors(table: pd.DataFrame) -> list[tuple[str, Interval, str]]:
    """Return the rows of a forest plot from a table of comparisons (`results.against`)."""
    return [(METHODS[arm]["label"], factor, arm) for arm, factor in table.factor.items()]


def live(records: Mapping[tuple[str, int], dict], ax: Axes) -> Axes:
    """Draw the evaluation returns of runs by (method, seed), and the threshold they are to reach."""
    for (arm, seed), record in records.items():
        look = method(arm) | {"label": f"{METHODS[arm]['label']}, seed {seed}"}
        ax.plot(range(1, len(record["eval_returns"]) + 1), record["eval_returns"], **look)
    for threshold in {record["config"]["threshold"] for record in records.values()} - {None}:
        ax.axhline(threshold, color=INK, linewidth=0.8, linestyle=":")
    return ax


def heat(table: pd.DataFrame, ax: Axes, *, low: float, high: float, form: str = ".0f") -> Axes:
    """Draw a table of numbers as coloured cells with the numbers in them; dark is low."""
    ax.imshow(table.to_numpy(), vmin=low, vmax=high, aspect="auto")
    ax.set_xticks(range(table.shape[1]), [f"{value:g}" for value in table.columns])
    ax.set_yticks(range(table.shape[0]), [f"{value:g}" for value in table.index])
    for (row, column), value in np.ndenumerate(table.to_numpy()):
        light = value > (low + high) / 2
        ax.text(column, row, f"{value:{form}}", ha="center", va="center", color=INK if light else "white", fontsize=9)
    ax.tick_params(length=0)
    return ax


FORMATS = {"restricted mean": ".0f", "median": ".0f", "mean evaluation return": ".0f", "stability": ",.0f",
           "factor": ".2f", "probability faster": ".2f", "probability steadier": ".2f"}
"""How the columns of a table of intervals are written; p-values and counts go without saying."""


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in the words of the figures: arms by their labels, intervals and p-values as text."""
    written = frame.copy().astype(object)
    for column in written:
        written[column] = [_written(value, FORMATS.get(column, "")) for value in frame[column]]
    return written.rename(index={arm: look["label"] for arm, look in METHODS.items()})


def _written(value: object, form: str) -> object:
    if isinstance(value, Interval):
        return f"{value:{form}}".replace("inf", "not reached")
    if isinstance(value, float):
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    return value


def show(fig: Figure, caption: str, alt: str) -> None:
    """Display a figure with words for those who cannot see it, and a caption for all, then let it go."""
    display(fig, metadata={"image/png": {"alt": alt}})
    plt.close(fig)
    display(Markdown(f"*{caption}*"))
