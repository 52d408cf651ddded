"""The filter to play with: sliders in JupyterLab, a grid of the same pictures everywhere else.

    >>> explore(interactive=False)
"""

from collections.abc import Sequence

import numpy as np
from IPython.display import display
from matplotlib.axes import Axes

from kscore import filters
from kscore.figures import style

STEPS = 120
PLAIN = {"Q": 0.01, "R": 1.0, "P0": 1.0, "jump": 5.0}
CHANGES = ({}, {"Q": 1.0}, {"R": 25.0}, {"P0": 0.0001}, {"jump": 0.0})
"""What each column of the grid changes of the plain setting."""

CAPTION = ("Top: a mean that jumps in the middle, observed through noise of variance 1, and the filter's belief with "
           "two standard deviations. Middle: its gain. Bottom: the K-Score and the innovation score of every step.")


def explore(interactive: bool = False, changes: Sequence[dict[str, float]] = CHANGES, seed: int = 0) -> None:
    """Show what Q, R, P₀ and a jump of the mean do to the filter's path, its gain and its scores.

    With `interactive` there is a slider for each of them; otherwise a column for each change of the plain setting.
    """
    if interactive:
        _sliders(seed)
    else:
        _grid(changes, seed)


def _grid(changes: Sequence[dict[str, float]], seed: int) -> None:
    fig, axes = style.panels(3, len(changes), height=2.0, width=2.6 * len(changes), sharex=True, sharey="row",
                             squeeze=False)
    for column, change in zip(axes.T, changes, strict=True):
        draw(column, **PLAIN | change, seed=seed)
        column[0].set_title(_named(change) if change else "plain")
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    _explain(axes[:, 0])
    style.show(fig, f"{CAPTION} Plain means {_named(PLAIN)}; each other column changes one of these.",
               "A grid of pictures: the filter's path, its gain and its scores, in a column for each setting.")


def _sliders(seed: int) -> None:
    """Show the sliders; the picture is drawn anew when one of them is let go."""
    import ipywidgets  # here, because pages and batch runs have no use for it

    def show(Q: float, R: float, P0: float, jump: float) -> None:
        fig, axes = style.panels(3, height=2.0, sharex=True)
        draw(axes, Q, R, P0, jump, seed)
        _explain(axes)
        style.show(fig, CAPTION, "The filter's path, its gain and its scores, one above the other.")

    powers = {"continuous_update": False, "step": 0.25, "readout_format": ".2g"}
    display(ipywidgets.interactive(
        show,
        Q=ipywidgets.FloatLogSlider(PLAIN["Q"], min=-6, max=2, description="Q", **powers),
        R=ipywidgets.FloatLogSlider(PLAIN["R"], min=-3, max=3, description="R", **powers),
        P0=ipywidgets.FloatLogSlider(PLAIN["P0"], min=-3, max=3, description="P₀", **powers),
        jump=ipywidgets.FloatSlider(PLAIN["jump"], min=-10, max=10, step=0.5, description="jump",
                                    continuous_update=False)))


def draw(axes: Sequence[Axes], Q: float, R: float, P0: float, jump: float, seed: int = 0) -> None:
    """Draw path, gain and scores of a filter on three axes; the stream is the same for every setting but the jump."""
    time = np.arange(1, STEPS + 1)
    truth = np.where(time > STEPS // 2, jump, 0.0)
    z = truth + np.random.default_rng(seed).normal(size=STEPS)
    run = filters.filter_series(z, Q, R, start=filters.Belief(0.0, P0))
    path, gain, score = axes

    look = style.method("kscore") | {"label": "belief"}
    path.plot(time, z, ".", color=style.GREY, markersize=3, label="observed")
    path.plot(time, truth, color=style.INK, linewidth=1, linestyle=":", label="mean")
    path.plot(time, run.mean, **look)
    band = 2 * np.sqrt(run.var)
    path.fill_between(time, run.mean - band, run.mean + band, color=look["color"], alpha=0.2, linewidth=0)

    gain.plot(time, run.gain, color=style.BLUE)
    gain.set_ylim(0, 1)
    score.plot(time, (z - run.mean) / np.sqrt(run.var), **style.method("kscore") | {"label": "K-Score"})
    score.plot(time, (z - run.prior_mean) / np.sqrt(run.prior_var + R),
               **style.method("innovation") | {"label": "innovation score"})


def _explain(axes: Sequence[Axes]) -> None:
    """Write the words on the first column."""
    for ax, words in zip(axes, ("value", "gain K", "score"), strict=True):
        ax.set_ylabel(words)
    axes[0].legend(fontsize=7, loc="upper left")
    axes[2].legend(fontsize=7, loc="upper left")
    axes[2].set_xlabel("step t")


def _named(setting: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('P0', 'P₀')} = {value:g}" for name, value in setting.items())
