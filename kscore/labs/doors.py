"""Drawings of boxes and arrows: where a normalizer stands in an algorithm (chapter 04)."""

from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from kscore.figures.style import BLUE, INK, ORANGE, panels

NORMALIZER, SECOND = "normalizer", "z-score"
FILLS = {NORMALIZER: ORANGE, SECOND: BLUE}
WIDE, HIGH = 0.42, 0.27  # half the width and half the height of a box


class Sketch(NamedTuple):
    """Boxes by their (column, row), with their words; and arrows from one to another, with the word beside each."""

    title: str
    boxes: dict[tuple[float, float], str]
    arrows: tuple[tuple[tuple[float, float], tuple[float, float], str], ...]


_WITH_CRITIC = {(0, 0): "returns G", (1, 0): NORMALIZER, (2, 0): "A = Ĝ − V", (2, 1): "critic V"}
_TO_CRITIC = (((0, 0), (1, 0), ""), ((1, 0), (2, 0), "Ĝ"), ((1, 0), (2, 1), "target Ĝ"), ((2, 1), (2, 0), "V"))

DOORS = (
    Sketch(
        "REINFORCE",
        {(0, 0): "returns G", (1, 0): NORMALIZER, (4, 0): "policy"},
        (((0, 0), (1, 0), ""), ((1, 0), (4, 0), "Ĝ")),
    ),
    Sketch("actor-critic", {**_WITH_CRITIC, (4, 0): "policy"}, (*_TO_CRITIC, ((2, 0), (4, 0), "A"))),
    Sketch(
        "GAE, as released",
        {
            (0, 0): "rewards r",
            (2, 0): "A from r, V",
            (3, 0): SECOND,
            (4, 0): "policy",
            (0, 1): "returns G",
            (1, 1): NORMALIZER,
            (2, 1): "critic V",
        },
        (
            ((0, 0), (2, 0), ""),
            ((2, 0), (3, 0), "A"),
            ((3, 0), (4, 0), ""),
            ((0, 1), (1, 1), ""),
            ((1, 1), (2, 1), "Ĝ"),
            ((2, 1), (2, 0), "V"),
        ),
    ),
    Sketch(
        "PPO, as released",
        {**_WITH_CRITIC, (3, 0): SECOND, (4, 0): "policy"},
        (*_TO_CRITIC, ((2, 0), (3, 0), "A"), ((3, 0), (4, 0), "")),
    ),
)


def draw() -> Figure:
    """Draw where the normalizer stands in the four algorithms, in letters that a telephone can show."""
    rows = [1 + max(row for _, row in sketch.boxes) for sketch in DOORS]
    fig, axes = panels(len(DOORS), 1, height=1.6, width=6.6, gridspec_kw={"height_ratios": [r + 0.35 for r in rows]})
    for ax, sketch in zip(axes, DOORS, strict=True):
        _draw(ax, sketch)
    return fig


def _draw(ax: Axes, sketch: Sketch) -> None:
    lowest = max(row for _, row in sketch.boxes)
    ax.set(xlim=(-0.5, 4.5), ylim=(lowest + 0.4, -0.45))
    ax.axis("off")
    ax.set_title(sketch.title, fontsize=12, fontweight="bold")
    for start, end, word in sketch.arrows:
        _arrow(ax, start, end, word)
    for (column, row), words in sketch.boxes.items():
        fill = FILLS.get(words)
        ax.add_patch(
            FancyBboxPatch(
                (column - WIDE, row - HIGH),
                2 * WIDE,
                2 * HIGH,
                linewidth=1.4,
                boxstyle="round,pad=0,rounding_size=0.08",
                edgecolor=fill or INK,
                facecolor=(fill + "40") if fill else "white",
            )
        )
        ax.text(column, row, words, ha="center", va="center", fontsize=11, fontweight="bold" if fill else "normal")


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], word: str) -> None:
    """Draw an arrow from the edge of one box to the edge of another, and a word beside its middle."""
    up = start[0] == end[0]
    tail = (start[0], start[1] - HIGH) if up else (start[0] + WIDE, start[1] + (HIGH / 2 if end[1] > start[1] else 0))
    tip = (end[0], end[1] + HIGH) if up else (end[0] - WIDE, end[1])
    ax.annotate(
        "", tip, tail, arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 1}
    )
    middle = ((tail[0] + tip[0]) / 2, (tail[1] + tip[1]) / 2)
    if up:
        ax.text(middle[0] + 0.05, middle[1], word, ha="left", va="center", fontsize=11)
    elif end[1] > start[1]:
        ax.text(middle[0] - 0.08, middle[1] + 0.08, word, ha="right", va="top", fontsize=11)
    else:
        ax.text(middle[0], middle[1] - 0.06, word, ha="center", va="bottom", fontsize=11)
