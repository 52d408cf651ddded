"""A film of the filter at work: it predicts, it sees, it updates, step by step (chapter 01).

The README shows it as a file, which is written by

    >>> from kscore import figures
    >>> from kscore.labs import film
    >>> from kscore.project import NOTEBOOKS
    >>> figures.use_style()
    >>> (NOTEBOOKS / "figures" / "filter.gif").write_bytes(film.of_filter())
"""

import io
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from kscore import checks, filters
from kscore.figures import style

PAUSE = 500  # milliseconds that a frame is shown; the last one stays longer
LOOKS = {
    "hidden mean": {"color": style.INK, "linestyle": "--", "linewidth": 1.2},
    "prior: x⁻ ± 2 √P⁻": {"color": style.BLUE, "linestyle": "-.", "linewidth": 2},
    "observation z ± 2 √R": {"color": style.GREY, "linestyle": ":", "marker": "o", "markersize": 4},
    "posterior: x ± 2 √P": {"color": style.ORANGE, "linestyle": "-", "linewidth": 2},
}
HIDDEN, PRIOR, SEEN, POSTERIOR = LOOKS.values()


def of_filter(
    steps: int = 30, Q: float = 0.1, R: float = 1.0, P0: float = 4.0, seed: int = 27, *, form: str = "gif"
) -> bytes:
    """Return a film of the filter on a drifting mean, two frames per step: before and after it sees the observation.

    `form` is "gif", or "png" for an animated PNG, which every viewer of notebooks takes for a picture.
    """
    checks.choice("form", form, ("gif", "png"))
    rng = np.random.default_rng(seed)
    latent = rng.normal(0, np.sqrt(P0)) + np.cumsum(rng.normal(0, np.sqrt(Q), steps))
    z = latent + rng.normal(0, np.sqrt(R), steps)
    run = filters.filter_series(z, Q, R, start=filters.Belief(0.0, P0))
    with plt.rc_context({"figure.dpi": 100}):
        fig, axes = _stage(z, run, filters.steady_state(Q, R).gain)
    empty = fig.canvas.copy_from_bbox(fig.bbox)
    frames = []
    for t, seen in ((t, seen) for t in range(steps) for seen in (False, True)):
        fig.canvas.restore_region(empty)
        _draw(axes, latent, z, run, t, seen)
        frames.append(Image.fromarray(np.array(fig.canvas.buffer_rgba())).convert("RGB"))
    plt.close(fig)
    return _film(frames, form)


def _film(frames: Sequence[Image.Image], form: str) -> bytes:
    """Return frames as one file, in the colours of the last frame, so that it stays small.

    Where nothing moves, on paper say, a PNG shows the last frame.
    """
    palette = frames[-1].quantize(128, Image.Quantize.MAXCOVERAGE)
    few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    film = io.BytesIO()
    options = {"save_all": True, "loop": 0, "duration": [PAUSE] * (len(few) - 1) + [6 * PAUSE]}
    if form == "png":
        few[-1].save(film, form, append_images=few, default_image=True, **options)
    else:
        few[0].save(film, form, append_images=few[1:], **options)
    return film.getvalue()


def _stage(z: np.ndarray, run: filters.Filtered, steady_gain: float) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with all that stays the same through the film: the axes of path, densities and gain."""
    fig, ((path, density), (gain, words)) = style.panels(
        2, 2, height=2.3, width=7.8, width_ratios=(5, 2), height_ratios=(5, 2)
    )
    reach, around = 2.2 * np.sqrt(run.prior_var[0]), 1.5 * np.sqrt(run.noise[0])
    low, high = min(z.min() - around, -reach), max(z.max() + around, reach)
    path.set(xlim=(0.2, len(z) + 0.8), ylim=(low, high), ylabel="value", title=" ")
    path.tick_params(labelbottom=False)
    density.set(
        xlim=(0, 1.1 / np.sqrt(2 * np.pi * min(run.var))), ylim=(low, high), xticks=[], yticks=[], title="As densities"
    )
    gain.set(xlim=path.get_xlim(), ylim=(0, 1), xlabel="step t", ylabel="gain K")
    gain.axhline(steady_gain, color=style.GREEN, linestyle="-.", linewidth=1.2)
    gain.annotate("where it settles", (len(z), steady_gain), (0, 4), textcoords="offset points", ha="right", fontsize=9)
    words.axis("off")
    words.legend([Line2D([], [], **look) for look in LOOKS.values()], LOOKS, loc="center", fontsize=9)
    FigureCanvasAgg(fig).draw()  # in memory, whatever screen there is
    return fig, (path, density, gain)


def _draw(axes: Sequence[Axes], latent: np.ndarray, z: np.ndarray, run: filters.Filtered, t: int, seen: bool) -> None:
    """Draw step t onto the canvas, before or after the observation is seen, and leave the axes empty again."""
    path, density, gain = axes
    known = slice(0, t + seen)
    time, mean, band = np.arange(1, len(z) + 1)[known], run.mean[known], 2 * np.sqrt(run.var[known])
    spread = 2 * np.sqrt(run.prior_var[t])
    said = f"it expects {run.prior_mean[t]:.1f}, give or take {spread:.1f}"
    if seen:
        said = f"it sees {z[t]:.1f}, and takes over {100 * run.gain[t]:.0f} % of the surprise"
    drawn = [
        path.fill_between(time, mean - band, mean + band, color=style.ORANGE, alpha=0.25, linewidth=0),
        *path.plot(time, z[known], **SEEN | {"linestyle": "none"}),
        *path.plot(time, latent[known], **HIDDEN),
        *path.plot(time, mean, **POSTERIOR),
        *path.plot([t + 1] * 2, run.prior_mean[t] + np.array([-spread, spread]), **PRIOR),
        *path.plot(t + 1, run.prior_mean[t], "s", color=style.BLUE),
        *path.plot(time[t:], z[known][t:], "X", color=style.INK, markersize=9, markeredgecolor="white"),
        *gain.plot(time, run.gain[known], "-o", color=style.ORANGE, markersize=4),
        path.text(0, 1.02, f"Step {t + 1}: {said}".replace("-", "−"), transform=path.transAxes, fontsize=11),
    ]
    beliefs = [
        (run.prior_mean[t], run.prior_var[t], PRIOR),
        (z[t], run.noise[t], SEEN | {"marker": ""}),
        (run.mean[t], run.var[t], POSTERIOR),
    ]
    grid = np.linspace(*path.get_ylim(), 200)
    for x, P, look in beliefs if seen else beliefs[:1]:
        drawn += density.plot(np.exp(-((grid - x) ** 2) / (2 * P)) / np.sqrt(2 * np.pi * P), grid, **look)
    for artist in drawn:
        artist.axes.draw_artist(artist)
        artist.remove()
