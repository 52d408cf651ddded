"""One visual vocabulary: each method has one colour, one line style and one marker in every figure."""

import matplotlib.pyplot as plt
import seaborn as sns
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle, Markdown, display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_PALETTE = sns.color_palette("colorblind").as_hex()
BLUE, ORANGE, GREEN, RED, PURPLE, _, _, GREY, _, SKY = _PALETTE
TEAL = "#00665c"  # instead of the palette's pink, which is too faint for a line
BROWN = "#6b3000"  # darker than the palette's own, which is hard to tell from its orange
VIOLET = "#cc44ff"
OLIVE = "#6b6b00"
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
    "adaptive_innovation": {
        "label": "K-Score, adaptive innovation",
        "color": INK,
        "linestyle": (0, (3, 1, 1, 1, 1, 1)),
        "marker": ">",
    },
}

_FILTER = {"label": "filter of episodes", "color": PURPLE, "linestyle": ":", "marker": "P"}
_BANK = METHODS["adaptive_innovation"] | {"label": "filter of episodes, a bank"}
_PERCENTILE = {"label": "percentile range", "color": VIOLET, "linestyle": (0, (6, 1, 1, 1, 1, 1)), "marker": "h"}
_REWARD_SCALE = METHODS["ema"] | {"label": "reward scaling"}
EPISODE_METHODS: dict[str, dict[str, str]] = {  # the looks of part II once more, for the arms of a filter of episodes
    "zscore": METHODS["zscore"],
    "zscore_plain": METHODS["none"] | {"label": "Z-Score, per episode, advantages as they are"},
    "running": METHODS["running"],
    "running_plain": METHODS["ema"] | {"label": "Z-Score, running, advantages as they are"},
    "episode_z": METHODS["refit"] | {"label": "filter of episodes, on returns, advantages z-scored"},
    "episode": METHODS["adaptive"] | {"label": "filter of episodes, on returns"},
    "episode_advantages": METHODS["kscore"] | {"label": "filter of episodes, on advantages"},
    "episode_both": _FILTER | {"label": "filter of episodes, on both"},
    "episode_learned": METHODS["adaptive_refit"] | {"label": "filter of episodes, on both, noise learned"},
    "episode_bank": _BANK | {"label": "filter of episodes, on both, a bank"},
}
RELATIVE_METHODS: dict[str, dict[str, str]] = {
    **{name: EPISODE_METHODS[name] for name in ("zscore", "running", "episode_both")},
    "none": METHODS["none"],
    "popart": METHODS["refit"] | {"label": "PopArt"},
    "popart_episode": METHODS["adaptive"] | {"label": "PopArt by the filter of episodes"},
    "percentile": _PERCENTILE,
    "reward_scale": _REWARD_SCALE,
    "symlog": METHODS["adaptive_refit"] | {"label": "symlog of the targets"},
}
GROUP_METHODS: dict[str, dict[str, str]] = {  # what an answer is held against
    "grpo": METHODS["zscore"] | {"label": "mean and deviation of the group (GRPO)"},
    "leave_one_out": METHODS["ema"] | {"label": "mean of the other answers"},
    "krpo": METHODS["refit"] | {"label": "KRPO, as released"},
    "krpo_averaged": METHODS["adaptive"] | {"label": "KRPO, averaged over orders"},
    "prompt_filter": METHODS["kscore"] | {"label": "filter of each prompt, in time"},
    "one_filter": METHODS["adaptive_refit"] | {"label": "one filter for all prompts"},
}
WRAPPER_METHODS: dict[str, dict[str, str]] = {  # what becomes of rewards on their way into somebody else's learner
    "vecnormalize": _REWARD_SCALE | {"label": "VecNormalize"},
    "veckscore": _FILTER | {"label": "VecKScore"},
    "buffer": METHODS["adaptive_refit"] | {"label": "normalizing buffer"},
    "raw": METHODS["none"] | {"label": "rewards as they are"},
}
FAIR_METHODS: dict[str, dict[str, str]] = {  # the Z-Scores and the paper's filters beside what came after them
    **{name: METHODS[name] for name in ("none", "zscore", "running", "ema", "kscore", "adaptive", "adaptive_refit")},
    "episode_filter": _FILTER,
    "filter_bank": _BANK,
    "popart": RELATIVE_METHODS["popart"],
    "percentile_range": _PERCENTILE,
}
CONTROL_METHODS: dict[str, dict[str, str]] = {  # the filters of episodes beside what does the same without a filter
    **{name: FAIR_METHODS[name] for name in ("running", "episode_filter", "filter_bank")},
    "running_twice": {"label": "Z-Score, running, at both doors", "color": VIOLET, "linestyle": "-.", "marker": "d"},
    "fading": {"label": "fading mean and scale", "color": OLIVE, "linestyle": "-", "marker": "p"},
}
LOOKS = METHODS | EPISODE_METHODS | RELATIVE_METHODS | GROUP_METHODS | WRAPPER_METHODS | FAIR_METHODS | CONTROL_METHODS
"""The look of every arm, of whichever part."""

SPOKEN = {
    "none": "no normalizer",
    "zscore": "the per-episode Z-Score",
    "running": "the running Z-Score",
    "ema": "the Z-Score by EMA",
    "kscore": "the K-Score stream",
    "adaptive": "the adaptive stream",
    "adaptive_refit": "the adaptive refit",
    "episode_filter": "the filter of episodes",
    "filter_bank": "the bank of filters",
    "popart": "PopArt",
    "percentile_range": "the percentile range",
    "running_twice": "the running Z-Score at both doors",
    "fading": "the fading mean and scale",
}
"""The arms of the fair fight and its controls in the middle of a sentence."""


def use_style() -> None:
    """Set the look of every figure: open axes, readable sizes, the colour-blind palette."""
    sns.set_theme(
        context="notebook",
        style="ticks",
        palette="colorblind",
        rc={
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.labelsize": 10,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "lines.linewidth": 1.6,
            "lines.markersize": 5,
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "image.cmap": "cividis",
        },
    )


def method(name: str, *, marker: bool = False) -> dict[str, object]:
    """Return the keyword arguments that draw a method in its own colour and style."""
    look = dict(LOOKS[name])
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


def show(fig: Figure) -> None:
    """Display a figure and let it go; `caption` says afterwards what there is to see."""
    global _shown
    picture = _picture(fig)
    _shown = display(picture, raw=True, display_id=True), picture
    plt.close(fig)


def caption(words: str, *, alt: str) -> None:
    """Write a caption under the figure shown last, and give it words for those who cannot see it."""
    if _shown is None:
        raise ValueError("there must be a figure before a caption: call show(fig) first")
    handle, picture = _shown
    if handle:
        handle.update(picture, raw=True, metadata={"image/png": {"alt": alt}})
    display(Markdown(f"*{words}*"))


_shown: tuple[DisplayHandle | None, dict] | None = None  # the last figure: where it stands, and what is seen there


def _picture(fig: Figure) -> dict[str, object]:
    """Return what a notebook shows of a figure; outside of one, its name has to do."""
    if not InteractiveShell.initialized():
        return {"text/plain": repr(fig)}
    return InteractiveShell.instance().display_formatter.format(fig)[0]
