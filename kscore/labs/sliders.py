"""The filter to play with: sliders where a script may run, and one picture where it may not (chapter 03).

>>> from kscore.labs import sliders
>>> sliders.explore()
"""

import base64
import html
import io
import json
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML, Markdown, display
from matplotlib.axes import Axes

from kscore import filters, normalizers
from kscore.figures import style

STEPS = 120
PLAIN = {"Q": 0.01, "R": 1.0, "P0": 1.0, "jump": 5.0}
SLIDERS = (  # the first three in powers of ten
    {"name": "Q", "words": "process noise Q", "low": -6, "high": 2, "step": 0.25, "log": True},
    {"name": "R", "words": "observation noise R", "low": -3, "high": 3, "step": 0.25, "log": True},
    {"name": "P0", "words": "first variance P₀", "low": -3, "high": 3, "step": 0.25, "log": True},
    {"name": "jump", "words": "jump of the mean", "low": -10, "high": 10, "step": 0.5, "log": False},
)
COLORS = {
    "kscore": style.METHODS["kscore"]["color"],
    "innovation": style.METHODS["innovation"]["color"],
    "gain": style.BLUE,
    "grey": style.GREY,
    "ink": style.INK,
}
SCRIPT = Path(__file__).with_suffix(".js")

CAPTION = (
    "Top: a mean that jumps in the middle, observed through noise of variance 1, and the filter's belief with "
    "two standard deviations. Middle: its gain. Bottom: the K-Score and the innovation score of every step."
)
ALT = (
    "Three panels: observations that jump in the middle with the filter's belief following them, a gain that falls "
    "and settles, and two scores, of which the K-Score swings several times as far as the innovation score."
)
LOOK = """<style>
.kscore-explore { background: #ffffff; color: #222222; font-family: sans-serif; font-size: 14px; padding: 8px; }
.kscore-explore img { max-width: 100%; }
.kscore-explore .kscore-sliders { display: grid; gap: 4px; max-width: 560px; margin-bottom: 8px; }
.kscore-explore label { display: grid; grid-template-columns: 11em 1fr 4.5em; gap: 8px; align-items: center; }
.kscore-explore button { justify-self: start; }
</style>"""


def explore(seed: int = 0) -> None:
    """Show what Q, R, P₀ and a jump of the mean do to the filter's path, its gain and its scores, with sliders."""
    told = json.dumps(
        {
            "noise": _noise(seed).tolist(),
            "colors": COLORS,
            "settings": [slider | {"value": PLAIN[slider["name"]]} for slider in SLIDERS],
        }
    )
    picture = (
        f'<img alt="{html.escape(ALT)}" src="data:image/png;base64,{base64.b64encode(_picture(seed)).decode()}">'
        f"<p>This is the picture for {_named(PLAIN)}. To move sliders instead, run the cell, or open the "
        "chapter in the site that <code>make run</code> builds.</p>"
    )
    display(
        HTML(
            f'{LOOK}\n<div class="kscore-explore" data-explore="{html.escape(told)}">{picture}</div>\n'
            f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>"
        ),
        Markdown(f"*{CAPTION}*"),
    )


def _noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=STEPS)


def _picture(seed: int) -> bytes:
    """Return the picture of the plain setting, as a file."""
    fig, axes = style.panels(3, height=2.0, sharex=True)
    draw(axes, **PLAIN, seed=seed)
    for ax, words in zip(axes, ("value", "gain K", "score"), strict=True):
        ax.set_ylabel(words)
    axes[0].legend(fontsize=8, loc="upper left")
    axes[2].legend(fontsize=8, loc="upper left")
    axes[2].set_xlabel("step t")
    file = io.BytesIO()
    fig.savefig(file, format="png")
    plt.close(fig)
    return file.getvalue()


def draw(axes: Sequence[Axes], Q: float, R: float, P0: float, jump: float, seed: int = 0) -> None:
    """Draw path, gain and scores of a filter on three axes; the stream is the same for every setting but the jump."""
    time = np.arange(1, STEPS + 1)
    truth = np.where(time > STEPS // 2, jump, 0.0)
    z = truth + _noise(seed)
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
    for name, words in (("kscore", "K-Score"), ("innovation", "innovation score")):
        mode = "innovation" if name == "innovation" else "stream"
        scores = normalizers.make("kscore", mode=mode, Q=Q, R=R, P0=P0)(z)
        score.plot(time, scores, **style.method(name) | {"label": words})


def _named(setting: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('P0', 'P₀')} = {value:g}" for name, value in setting.items())
