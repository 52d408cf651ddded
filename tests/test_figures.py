"""Figures say what they are given, and every method looks like itself, also to those who see fewer colours."""

import io
import itertools
import math
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb, to_rgba
from PIL import Image

from kscore import figures
from kscore.analysis import stats
from kscore.analysis.stats import Interval, Survival, Times
from kscore.figures import (
    CONTROL_METHODS,
    EPISODE_METHODS,
    FAIR_METHODS,
    GROUP_METHODS,
    LOOKS,
    METHODS,
    RELATIVE_METHODS,
    WRAPPER_METHODS,
    style,
)
from kscore.labs import doors, film, sb3_study
from kscore.normalizers.groups import FORMS
from kscore.project import NOTEBOOKS
from kscore.rl import RunConfig
from kscore.study import plan


@pytest.fixture(autouse=True)
def unseen():
    """Draw without a screen, in the chapters' style, and leave nothing behind."""
    plt.switch_backend("Agg")
    with plt.rc_context():
        figures.use_style()
        yield
    plt.close("all")


@pytest.fixture
def ax():
    return plt.figure().add_subplot()


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def labels(ticks):
    return [tick.get_text() for tick in ticks]


def looks_like(line, name, marker=False):
    """Say whether a line has the colour and style, or the marker, of a method."""
    if marker:
        return (line.get_color(), line.get_marker()) == (METHODS[name]["color"], METHODS[name]["marker"])
    (drawn,) = plt.figure().add_subplot().plot([], [], linestyle=METHODS[name]["linestyle"])
    return line.get_color() == METHODS[name]["color"] and line._dash_pattern == drawn._dash_pattern


# Colours. Simulated dichromacy: Machado, Oliveira and Fernandes (2009), A physiologically-based model for simulation of
# color vision deficiency, IEEE TVCG 15, 1291-1298, severity 1.0; the matrices act on linear RGB.

VISION = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)  # of linear sRGB; the second row is the luminance


def linear(color):
    """sRGB (IEC 61966-2-1) without its gamma."""
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """The ratio of WCAG 2: (lighter + 0.05) / (darker + 0.05) of relative luminance."""
    light = sorted(XYZ[1] @ linear(color) + 0.05 for color in (one, other))
    return light[1] / light[0]


def lab(rgb):
    """CIELAB of linear RGB, white as the screen has it."""
    ratio = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one, other, vision="usual"):
    return math.dist(*(lab(VISION[vision] @ linear(color)) for color in (one, other)))


def stroke(style):
    """What the eye can tell of a line style: dashes of nearly the same length look the same."""
    named = {"-": (), "--": (4, 2), ":": (1, 1), "-.": (6, 2, 1, 2)}
    dashes = (named[style] if isinstance(style, str) else style[1])[::2]
    return " ".join("dot" if length <= 1 else "dash" for length in dashes) or "solid"


def test_the_simulation_of_dichromacy_is_right():
    assert distance("black", "white") == pytest.approx(100, abs=0.01)
    assert contrast("black", "white") == pytest.approx(21)
    for vision, matrix in VISION.items():
        close(np.round(matrix @ np.ones(3), 5), 1)  # white stays white
        # a red and a green of the same lightness, far apart to most, near each other to some
        assert (distance("#c05000", "#708000", vision) < 20) == (vision != "usual")
        assert distance("#0000ff", "#ffff00", vision) > 100


def test_strokes_are_told_apart():
    styles = ["-", "--", ":", "-.", (0, (4, 2)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1))]
    assert [stroke(style) for style in styles] == [
        "solid",
        "dash",
        "dot",
        "dash dot",
        "dash",
        "dot",
        "dash dot",
        "dash dot dot",
    ]


VOCABULARIES = {
    "part II": METHODS,
    "episodes": EPISODE_METHODS,
    "relatives": RELATIVE_METHODS,
    "groups": GROUP_METHODS,
    "wrappers": WRAPPER_METHODS,
    "fair fight": FAIR_METHODS,
    "controls": CONTROL_METHODS,
}
"""Arms of two of them are never in one figure."""
each_vocabulary = pytest.mark.parametrize("looks", VOCABULARIES.values(), ids=VOCABULARIES)


def test_every_arm_of_the_study_has_a_look():
    for methods, part in (
        (METHODS, "cartpole_ppo"),
        (EPISODE_METHODS, "episodes_ppo"),
        (RELATIVE_METHODS, "relatives_ppo"),
        (CONTROL_METHODS, "controls_ppo"),
    ):
        assert set(methods) == set(plan.part(part).configs)
    assert set(WRAPPER_METHODS) == set(sb3_study.ARMS) and set(GROUP_METHODS) == set(FORMS)
    assert list(FAIR_METHODS) == list(plan.part("fair_ppo").configs)
    assert all(set(look) == {"label", "color", "linestyle", "marker"} for look in LOOKS.values())


def test_an_arm_of_several_parts_looks_the_same_in_all():
    assert set(METHODS) & set(EPISODE_METHODS) == {"zscore", "running"}
    assert set(LOOKS) == {name for looks in VOCABULARIES.values() for name in looks}
    assert all(LOOKS[name] == look for looks in VOCABULARIES.values() for name, look in looks.items())


@each_vocabulary
@pytest.mark.parametrize("field", ["label", "marker", "color"])
def test_no_two_methods_share_it(looks, field):
    assert len({look[field] for look in looks.values()}) == len(looks)


@each_vocabulary
def test_no_two_methods_share_both_colour_and_line_style(looks):
    assert len({(look["color"], look["linestyle"]) for look in looks.values()}) == len(looks)


@each_vocabulary
@pytest.mark.parametrize("vision", VISION)
def test_any_two_methods_can_be_told_apart(looks, vision):
    near = []
    for (one, first), (other, second) in itertools.combinations(looks.items(), 2):
        needed = 15 if stroke(first["linestyle"]) == stroke(second["linestyle"]) else 8
        if (apart := distance(first["color"], second["color"], vision)) < needed:
            near.append((one, other, apart))
    assert not near


def test_arms_over_episodes_are_drawn_and_named_like_all_others(ax):
    assert figures.method("episode_both")["label"] == "filter of episodes, on both"
    figures.forest([("both", Interval(2.0, 1.5, 3.0, 50), "episode_both")], ax)
    assert ax.get_lines()[-1].get_marker() == EPISODE_METHODS["episode_both"]["marker"]
    frame = pd.DataFrame({"factor": [Interval(2.0, 1.5, 3.0, 50)]}, index=["episode_bank"])
    assert list(figures.table(frame).index) == ["filter of episodes, on both, a bank"]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_dark_enough_for_a_line_on_white(name):
    assert contrast(METHODS[name]["color"], "white") > 2


@pytest.mark.parametrize("name", METHODS)
def test_a_label_says_what_the_method_is(name):
    text = METHODS[name]["label"]
    kind = "none" if name == "none" else "Z-Score" if name in ("zscore", "running", "ema") else "K-Score"
    assert text.startswith(kind) and ("adaptive" in text) == name.startswith("adaptive")
    for word in ("refit", "innovation", "stream"):
        assert (word in text) == (word in name or (word == "stream" and name in ("kscore", "adaptive")))


# The small helpers


def test_a_look_is_a_copy_with_or_without_its_marker(ax):
    look = figures.method("refit")
    assert look == {key: value for key, value in METHODS["refit"].items() if key != "marker"}
    assert figures.method("refit", marker=True) == METHODS["refit"]
    look["color"] = "none of your business"
    assert METHODS["refit"]["color"] == figures.RED and figures.method("refit")["color"] == figures.RED
    for name in METHODS:
        ax.plot([0, 1], **figures.method(name, marker=True))  # matplotlib knows all of it
    with pytest.raises(KeyError):
        figures.method("z-score")


def test_panels_are_as_wide_as_a_page_and_as_high_as_their_rows():
    fig, axes = figures.panels(2, 3, sharex=True)
    assert tuple(fig.get_size_inches()) == (8, 6.4) and axes.shape == (2, 3)
    assert axes[0, 0].get_shared_x_axes().joined(axes[0, 0], axes[1, 2])
    fig, ax = figures.panels(height=2, width=5)
    assert tuple(fig.get_size_inches()) == (5, 2) and ax.figure is fig


def test_words_are_written_on_an_axis(ax):
    ax.plot([1, 2], label="line")
    assert figures.label(ax, "Title", "x words", "y words") is ax
    assert (ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()) == ("Title", "x words", "y words")
    assert ax.get_legend() is None
    figures.label(ax, "", "", "", legend=True)
    assert labels(ax.get_legend().get_texts()) == ["line"] and ax.get_legend()._loc == 0  # "best"
    figures.label(ax, "", "", "", legend="upper left")
    assert ax.get_legend()._loc == 2
    figures.label(ax, "", "", "", legend="below")
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0


def test_the_style_opens_the_axes_and_has_a_map_from_dark_to_light(ax):
    assert not ax.spines["top"].get_visible() and not ax.spines["right"].get_visible()
    shades = plt.get_cmap()(np.linspace(0, 1, 11))
    light = [XYZ[1] @ linear(shade[:3]) for shade in shades]
    assert light == sorted(light)


# Survival

CURVE = Survival(
    np.array([0.0, 3.0, 7.0]), np.array([1.0, 0.5, 0.25]), np.array([1.0, 0.3, 0.1]), np.array([1.0, 0.8, 0.6]), 4
)


def test_survival_curves_go_in_steps_to_the_cap(ax):
    assert figures.survival({"zscore": CURVE, "refit": CURVE._replace(share=CURVE.share / 2)}, ax, 10) is ax
    first, second = ax.get_lines()
    close(first.get_xydata(), [[0, 1], [3, 0.5], [7, 0.25], [10, 0.25]])
    close(second.get_ydata(), [0.5, 0.25, 0.125, 0.125])
    assert first.get_drawstyle() == second.get_drawstyle() == "steps-post"
    assert looks_like(first, "zscore") and looks_like(second, "refit")
    assert labels(ax.legend().get_texts()) == ["Z-Score, per episode", "K-Score, refit"]
    assert ax.get_xlim() == (0, 10)
    assert ax.get_ylim()[0] == 0 and 1 < ax.get_ylim()[1] < 1.1  # a line at 1 is seen whole


def test_survival_bands_are_the_curves_own(ax):
    figures.survival({"zscore": CURVE}, ax, 10)
    (band,) = ax.collections
    corners = {(float(x), round(float(y), 9)) for x, y in band.get_paths()[0].vertices}
    # flat from 3 to 7 and from 7 to the cap, not slanted
    assert {(3, 0.3), (7, 0.3), (7, 0.1), (10, 0.1), (3, 0.8), (7, 0.8), (7, 0.6), (10, 0.6)} <= corners
    assert {y for _, y in corners} == {1, 0.3, 0.1, 0.8, 0.6}
    close(band.get_facecolor()[0, :3], to_rgb(figures.BLUE))
    assert 0 < band.get_facecolor()[0, 3] < 0.5


def test_survival_of_runs_that_did_not_arrive_stays_up_to_the_cap(ax):
    figures.survival({"none": stats.survival(Times(np.array([4, 10, 10]), np.array([True, False, False])))}, ax, 10)
    (line,) = ax.get_lines()
    close(line.get_xydata()[[0, 1, -1]], [[0, 1], [4, 2 / 3], [10, 2 / 3]])


def test_the_curves_go_up_to_the_cap(ax):
    figures.survival({"zscore": CURVE}, ax, 1500)
    assert ax.get_xlim() == (0, 1500) and ax.get_lines()[0].get_xdata()[-1] == 1500


# Learning curves


def test_learning_shows_runs_median_and_middle_half(ax):
    curves = np.array([[0, 10.0], [1, 20.0], [2, 30.0], [3, 40.0], [4, 90.0]])
    assert figures.learning(curves, "kscore", ax) is ax
    *runs, halo, median = ax.get_lines()
    assert len(runs) == 5
    for line, curve in zip(runs, curves, strict=True):
        close(line.get_xydata(), [[1, curve[0]], [2, curve[1]]])  # the first episode is the first
        assert line.get_color() == figures.ORANGE and line.get_alpha() <= 0.4
    for line in (halo, median):
        close(line.get_xydata(), [[1, 2], [2, 30]])
    assert looks_like(median, "kscore") and halo.get_linewidth() > median.get_linewidth()
    corners = {tuple(map(float, corner)) for corner in ax.collections[0].get_paths()[0].vertices}
    assert corners == {(1, 1), (1, 3), (2, 20), (2, 40)}
    assert labels(ax.legend().get_texts()) == ["K-Score, stream"]  # one entry, not one a run


def titles(fig):
    return [ax.get_title(loc="left") for ax in fig.axes]


def test_survival_curves_in_a_grid_have_their_words_where_they_are_read():
    curve = stats.survival(Times(np.array([10, 20, 30]), np.array([True, True, False])))
    rows = [
        {f"one, by {what}": {"kscore": curve}, f"two, by {what}": {"zscore": curve, "none": curve}}
        for what in ("x", "y")
    ]
    fig = figures.survival_panels(rows, 40)
    assert titles(fig) == [f"{name}, by {what} (n = 3)" for what in "xy" for name in ("one", "two")]
    assert [ax.get_xlabel() for ax in fig.axes] == ["", "", "training episodes", "training episodes"]
    later = figures.survival_panels(rows[1:], 40, time="episodes since")
    assert [ax.get_xlabel() for ax in later.axes] == ["episodes since"] * 2
    assert [ax.get_ylabel() for ax in fig.axes] == ["share of runs on their way", ""] * 2
    assert {ax.get_xlim() for ax in fig.axes} == {(0, 40)} and tuple(fig.get_size_inches()) == (8, 7.2)


def test_survival_curves_in_a_grid_are_explained_once_below_it():
    curve = stats.survival(Times(np.array([10, 20, 30]), np.array([True, True, False])))
    fig = figures.survival_panels(
        [{"one": {"kscore": curve, "none": curve}, "two": {"zscore": curve, "none": curve}, "three": {"refit": curve}}],
        40,
    )
    (legend,) = fig.legends
    assert labels(legend.get_texts()) == ["none", "Z-Score, per episode", "K-Score, stream", "K-Score, refit"]
    assert not any(ax.get_legend() for ax in fig.axes)
    assert titles(fig) == ["one\n(n = 3)", "two\n(n = 3)", "three\n(n = 3)"] and fig.get_size_inches()[0] == 9
    fig.canvas.draw()
    box = legend.get_window_extent()
    assert box.y1 < min(ax.get_tightbbox().y0 for ax in fig.axes) and box.x0 >= 0 and box.x1 <= fig.bbox.x1


def test_survival_panels_say_if_arms_have_different_numbers_of_runs():
    some = stats.survival(Times(np.array([10, 20, 30]), np.array([True, True, False])))
    fig = figures.survival_panels([{"one": {"kscore": some, "none": some._replace(n=5)}}], 40, height=2, legend="best")
    assert titles(fig) == ["one (n = 3, 5)"]
    assert tuple(fig.get_size_inches()) == (8, 2) and fig.axes[0].get_legend()._loc == 0 and not fig.legends


def test_learning_curves_in_panels():
    arms = [(f"arm {i}", "kscore", np.full((i + 1, 3), 10.0 * i)) for i in range(4)]
    fig = figures.learning_panels(arms, columns=2, threshold=15.0, lowest=-5.0)
    assert titles(fig) == ["arm 0\n(n = 1)", "arm 1\n(n = 2)", "arm 2\n(n = 3)", "arm 3\n(n = 4)"]
    assert [ax.get_xlabel() for ax in fig.axes] == ["", "", "training episodes", "training episodes"]
    assert [ax.get_ylabel() for ax in fig.axes] == ["evaluation return", ""] * 2
    for i, ax in enumerate(fig.axes):
        *curves, dotted = ax.get_lines()
        assert list(dotted.get_ydata()) == [15, 15] and len(curves) == i + 1 + 2
        close(curves[-1].get_ydata(), [10 * i] * 3)
        assert ax.get_ylim()[0] == -5


def test_learning_curves_without_a_threshold_have_no_line_for_it():
    fig = figures.learning_panels([("arm", "kscore", np.zeros((2, 3)))] * 4)
    assert len(fig.axes) == 4 and all(len(ax.get_lines()) == 4 for ax in fig.axes)
    assert tuple(fig.get_size_inches()) == (8, 5.2) and fig.axes[0].get_ylim()[0] < 0


@pytest.mark.parametrize("count", [1, 3, 5])
def test_panels_that_are_left_over_are_taken_away_and_the_lowest_ones_have_their_numbers(count):
    fig = figures.learning_panels([("arm", "kscore", np.zeros((2, 30)))] * count, columns=2)
    fig.canvas.draw()
    assert len(fig.axes) == count
    for place, ax in enumerate(fig.axes):
        lowest = place + 2 >= count
        assert bool(ax.get_xlabel()) == lowest
        assert any(tick.label1.get_visible() for tick in ax.xaxis.get_major_ticks()) == lowest


def test_the_more_runs_the_fainter_each(ax):
    figures.learning(np.zeros((50, 2)), "kscore", ax)
    assert {line.get_alpha() for line in ax.get_lines()[:50]} == {0.2}


# Forests

ROWS = [("first", Interval(2.0, 1.5, 3.0, 50), "kscore"), ("second", Interval(0.5, 0.25, 1.25, 50), "none")]


def test_a_forest_has_a_row_for_each_interval(ax):
    assert figures.forest(ROWS, ax) is ax
    none, *drawn = ax.get_lines()
    assert list(none.get_xdata()) == [1, 1]
    for place, (_, interval, name) in enumerate(ROWS):
        bar, point = drawn[2 * place : 2 * place + 2]
        close(bar.get_xydata(), [[interval.low, place], [interval.high, place]])
        close(point.get_xydata(), [[interval.estimate, place]])
        assert looks_like(point, name, marker=True) and bar.get_color() == METHODS[name]["color"]
    assert len(drawn) == 4
    assert labels(ax.get_yticklabels()) == ["first", "second"] and list(ax.get_yticks()) == [0, 1]
    bottom, top = ax.get_ylim()
    assert top < 0 and bottom > 1  # the first row is the upper one


def test_a_forest_writes_the_numbers_beside_its_rows(ax):
    figures.forest(ROWS, ax)
    assert labels(ax.texts) == ["2.00 [1.50, 3.00]", "0.50 [0.25, 1.25]"]
    ax.figure.canvas.draw()
    for place, note in enumerate(ax.texts):
        x, y = ax.transAxes.inverted().transform(note.get_window_extent())[0], ax.transData.transform((1, place))[1]
        assert x[0] >= 1 and note.get_window_extent().y0 < y < note.get_window_extent().y1


def test_a_forest_is_logarithmic_with_plain_numbers(ax):
    figures.forest(ROWS, ax)
    ax.figure.canvas.draw()
    left, middle, right = ax.transData.transform([[0.5, 0], [1, 0], [2, 0]])[:, 0]
    assert ax.get_xscale() == "log" and right - middle == pytest.approx(middle - left)  # half and twice are as far
    shown = labels(ax.get_xticklabels())
    assert {"0.5", "1", "2"} <= set(shown) and all(re.fullmatch(r"[\d.]+", text) for text in shown)


@pytest.mark.parametrize(("low", "high"), [(0.8, 1.23), (0.28, 1.8), (0.05, 1.1), (0.9, 30.0), (0.3, 0.97)])
def test_a_forest_names_no_difference_and_a_few_factors_more(ax, low, high):
    figures.forest([("first", Interval(low, low, high, 50), "kscore")], ax)
    ax.figure.canvas.draw()
    shown = [
        text
        for text, at in zip(labels(ax.get_xticklabels()), ax.get_xticks(), strict=True)
        if ax.get_xlim()[0] <= at <= ax.get_xlim()[1]
    ]
    assert "1" in shown and 3 <= len(shown) <= 7


def test_a_forest_can_have_its_line_elsewhere(ax):
    figures.forest(ROWS, ax, none=0.5)
    assert list(ax.get_lines()[0].get_xdata()) == [0.5, 0.5]


def test_a_forest_of_differences_is_linear_around_zero_and_says_them_as_it_is_told(ax):
    figures.forest([("first", Interval(-20.0, -30.0, -5.0, 30), "kscore")], ax, none=0, form=".0f")
    assert list(ax.get_lines()[0].get_xdata()) == [0, 0] and ax.get_xscale() == "linear"
    assert labels(ax.texts) == ["-20 [-30, -5]"]


def test_factors_are_the_rows_of_a_forest(ax):
    table = pd.DataFrame({"factor": [row[1] for row in ROWS], "log-rank p": [0.1, 0.2]}, index=["kscore", "none"])
    rows = figures.factors(table)
    assert rows == [("K-Score, stream", ROWS[0][1], "kscore"), ("none", ROWS[1][1], "none")]
    assert labels(figures.forest(rows, ax).get_yticklabels()) == ["K-Score, stream", "none"]


def compared(*factors):
    return pd.DataFrame({"factor": factors}, index=["kscore", "none", "refit"][: len(factors)])


def test_forests_in_panels():
    one, other = compared(Interval(2.0, 1.5, 3.0, 50)), compared(Interval(0.5, 0.4, 0.6, 9), Interval(1.5, 1.0, 2.0, 9))
    tables = {"first": one, "second": other, "third": one}
    fig = figures.forest_panels(tables, columns=2, over="the moving average", published=3.97)
    assert titles(fig) == ["first (n = 50)", "second (n = 9)", "third (n = 50)"]  # the fourth place is empty
    assert [ax.get_xlabel() for ax in fig.axes] == ["", *["improvement factor over the moving average"] * 2]
    assert labels(fig.axes[1].get_yticklabels()) == ["K-Score, stream", "none"]
    for ax in fig.axes:
        assert list(ax.get_lines()[-1].get_xdata()) == [3.97, 3.97] and ax.get_lines()[-1].get_linestyle() == "--"
    assert tuple(fig.get_size_inches()) == (12, pytest.approx(2 * 0.75 + (2 + 1) * 0.3))


def test_a_forest_alone_may_have_nothing_published():
    fig = figures.forest_panels({"first": compared(Interval(2.0, 1.5, 3.0, 50))})
    (ax,) = fig.axes
    assert len(ax.get_lines()) == 3 and ax.get_xlabel() == "improvement factor over the Z-Score"


def test_forests_fit_on_a_page_with_all_their_words():
    every = pd.DataFrame({"factor": [Interval(1.0, 0.5, 2.0, 50)] * len(METHODS)}, index=list(METHODS))
    fig = figures.forest_panels({"advantages normalized instead of returns, against running": every, "second": every})
    fig.canvas.draw()
    assert fig.get_size_inches()[0] == 7 and [ax.get_gridspec().ncols for ax in fig.axes] == [1, 1]
    for ax in fig.axes:
        words = [*ax.get_yticklabels(), *ax.texts, ax.title, ax._left_title]
        assert all(word.get_window_extent().x0 >= 0 and word.get_window_extent().x1 <= fig.bbox.x1 for word in words)
        assert all(word.get_fontsize() >= 10 for word in words)
        assert ax.get_window_extent().width > 0.4 * fig.bbox.width  # the intervals keep room for themselves


# Live runs


def live_record(returns, threshold, every=1):
    return {
        "eval_returns": returns,
        "config": {"threshold": threshold, "episodes_per_update": every, "evaluate_every": 1},
    }


def test_live_runs_are_drawn_from_their_first_episode_with_their_threshold(ax):
    records = {
        ("zscore", 3000): live_record([9.0, 8.0, 7.0], 475.0),
        ("zscore", 3001): live_record([5.0], 475.0),
        ("adaptive", 3000): live_record([1.0, 2.0], 475.0),
    }
    assert figures.live(records, ax) is ax
    *runs, threshold = ax.get_lines()
    for line, ((name, _), made) in zip(runs, records.items(), strict=True):
        close(line.get_xydata(), list(enumerate(made["eval_returns"], start=1)))
        assert looks_like(line, name)
    assert list(threshold.get_ydata()) == [475, 475]
    assert labels(ax.legend().get_texts()) == [
        "Z-Score, per episode, seed 3000",
        "Z-Score, per episode, seed 3001",
        "K-Score, adaptive stream, seed 3000",
    ]


def test_evaluations_of_live_runs_stand_at_their_training_episodes(ax):
    figures.live({("zscore", 1): live_record([1.0, 2.0], None, every=4)}, ax)
    assert ax.get_lines()[0].get_xdata().tolist() == [4, 8]


def test_live_runs_of_two_thresholds_have_two_lines(ax):
    figures.live({("zscore", 1): live_record([1.0], 475.0), ("refit", 1): live_record([1.0], 200.0)}, ax)
    assert sorted(line.get_ydata()[0] for line in ax.get_lines()[2:]) == [200, 475]


def test_live_runs_without_a_threshold_have_no_line_for_it(ax):
    figures.live({("zscore", 1): live_record([1.0, 2.0], None)}, ax)
    assert len(ax.get_lines()) == 1


def test_live_runs_have_a_figure_of_their_own():
    fig = figures.live_panel(
        {(arm, seed): live_record([1.0, 2.0], 475.0) for arm in ("zscore", "refit") for seed in (3000, 3001, 3002)}
    )
    (ax,) = fig.axes
    assert titles(fig) == ["Live runs (n = 3 per arm)"] and len(ax.get_lines()) == 7
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("training episodes", "evaluation return")
    assert len(ax.get_legend().get_texts()) == 6


# Heat maps

HEAT = pd.DataFrame([[0.0, 100.0, 49.0], [51.0, 20.4, 80.0]], index=[1e-4, 0.1], columns=[0.01, 1.0, 100.0])


def test_a_heat_map_has_its_numbers_in_its_cells(ax):
    assert figures.heat(HEAT, ax, low=-50, high=300) is ax
    (image,) = ax.get_images()
    close(image.get_array(), HEAT)
    assert image.get_clim() == (-50, 300)  # so that two maps can be compared, whatever is in them
    assert labels(ax.get_xticklabels()) == ["0.01", "1", "100"] and labels(ax.get_yticklabels()) == ["0.0001", "0.1"]
    assert {note.get_position(): note.get_text() for note in ax.texts} == {
        (0, 0): "0",
        (1, 0): "100",
        (2, 0): "49",
        (0, 1): "51",
        (1, 1): "20",
        (2, 1): "80",
    }
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first row of the table is the upper one


def test_a_heat_map_writes_numbers_as_it_is_told(ax):
    figures.heat(HEAT / 100, ax, low=0, high=1, form=".2f")
    assert labels(ax.texts) == ["0.00", "1.00", "0.49", "0.51", "0.20", "0.80"]


@pytest.mark.parametrize(("low", "high"), [(0, 100), (50, 500), (-1, 1)])
def test_numbers_are_readable_on_dark_and_on_light_cells(ax, low, high):
    values = np.linspace(low, high, 21)
    figures.heat(pd.DataFrame([values], index=[1], columns=range(21)), ax, low=low, high=high)
    (image,) = ax.get_images()
    for value, note in zip(values, ax.texts, strict=True):
        assert contrast(note.get_color(), to_rgba(image.to_rgba(value))[:3]) > 3
    assert (ax.texts[0].get_color(), ax.texts[-1].get_color()) == ("white", figures.INK)  # dark is low


# Tables


def test_a_table_has_labels_and_intervals_as_text():
    frame = pd.DataFrame(
        {
            "runs": [50, 50],
            "arrived": [50, 20],
            "restricted mean": [Interval(71.6, 60.4, 80.5001, 50), Interval(400.0, 380.0, 420.0, 50)],
            "median": [Interval(70.0, 65.0, 75.0, 50), Interval(math.inf, 444.0, math.inf, 50)],
            "mean evaluation return": [Interval(444.4, 440.0, 450.0, 50)] * 2,
            "stability": [Interval(12345.6, 999.4, 20000.0, 50)] * 2,
        },
        index=["zscore", "kscore"],
    )
    written = figures.table(frame)
    assert list(written.index) == ["Z-Score, per episode", "K-Score, stream"]
    assert list(written.columns) == list(frame.columns)
    assert list(written.runs) == [50, 50] and list(written.arrived) == [50, 20]
    assert list(written["restricted mean"]) == ["72 [60, 81]", "400 [380, 420]"]
    assert list(written["median"]) == ["70 [65, 75]", "not reached [444, not reached]"]
    assert list(written["mean evaluation return"]) == ["444 [440, 450]"] * 2
    assert list(written["stability"]) == ["12,346 [999, 20,000]"] * 2


def test_a_table_of_comparisons_has_factors_and_p_values_as_text():
    frame = pd.DataFrame(
        {
            "factor": [Interval(1.234, 1.0, 2.0, 9)] * 3,
            "log-rank p": [0.0004, 0.001, 0.25],
            "adjusted p": np.array([0.00099, 0.0496, 1.0]),
            "probability faster": [Interval(0.5, 0.25, 0.755, 9)] * 3,
            "probability steadier": [Interval(0.126, 0.0, 1.0, 9)] * 3,
        },
        index=["refit", "adaptive_refit", "750"],
    )
    written = figures.table(frame)
    assert list(written.index) == ["K-Score, refit", "K-Score, adaptive refit", "750"]  # without a label, its name
    assert list(written.factor) == ["1.23 [1.00, 2.00]"] * 3
    assert list(written["log-rank p"]) == ["< 0.001", "0.001", "0.250"]
    assert list(written["adjusted p"]) == ["< 0.001", "0.050", "1.000"]
    assert written["probability faster"].iloc[0] == f"0.50 [0.25, {0.755:.2f}]"
    assert written["probability steadier"].iloc[0] == "0.13 [0.00, 1.00]"


def test_a_table_leaves_its_frame_alone():
    frame = pd.DataFrame({"factor": [Interval(1.0, 1.0, 2.0, 9)], "log-rank p": [0.5]}, index=["refit"])
    before = frame.copy()
    figures.table(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_intervals_of_other_columns_have_three_digits():
    assert figures.table(pd.DataFrame({"other": [Interval(1.23456, 1.0, 2000.0, 9)]})).other[0] == "1.23 [1, 2e+03]"


def test_no_p_value_is_not_a_small_one():
    assert figures.table(pd.DataFrame({"log-rank p": [math.nan]}))["log-rank p"][0] != "< 0.001"


def test_numbers_of_arms_are_said_by_the_labels_of_the_arms():
    found = {"running": 28, "kscore": "3 and 4"}
    assert figures.counted(found) == "Z-Score, running 28, K-Score, stream 3 and 4"
    assert (
        figures.counted(found, {"kscore": "the stream", "running": "the other"}) == "the other 28, the stream 3 and 4"
    )
    assert figures.counted({}) == ""


def test_runs_are_counted_in_words():
    runs = pd.DataFrame(
        {"status": ["arrived"] * 1200 + ["censored"] * 34, "steps": [2_000_000] * 1234, "seconds": [36.0] * 1234}
    )
    assert figures.run_count(runs) == (
        "1,234 runs, 2,468 million environment steps, 12.3 hours of one core: 1,200 arrived, 34 censored, 0 diverged"
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("solved", "arrived"),
        ("censored", "censored"),
        ("diverged", "diverged"),
    ],
)
def test_how_a_run_ended_is_told_in_the_words_of_the_analysis(status, words):
    assert figures.ended({"status": status, "episodes": 77}) == f"{words} after 77 episodes"


# What the reader gets


class Place:
    """Where a picture stands, and what it is replaced by."""

    def __init__(self):
        self.updates = []

    def update(self, what, **options):
        self.updates.append((what, options))


@pytest.fixture
def shown(monkeypatch):
    """What is displayed, in its order, and the place of the picture."""
    seen, place = [], Place()
    monkeypatch.setattr(style, "display", lambda what, **options: seen.append((what, options)) or place)
    monkeypatch.setattr(style, "_shown", None)
    return seen, place


def test_a_figure_is_shown_and_closed_and_gets_its_words_afterwards(shown, ax):
    seen, place = shown
    assert figures.show(ax.figure) is None
    ((picture, options),) = seen
    assert options == {"raw": True, "display_id": True} and not place.updates
    assert not plt.fignum_exists(ax.figure.number)  # or the notebook would show it once more
    assert figures.caption("What it *means*.", alt="What is in it.") is None
    assert place.updates == [(picture, {"raw": True, "metadata": {"image/png": {"alt": "What is in it."}}})]
    assert seen[1][0].data == "*What it *means*.*"


def test_a_caption_belongs_to_the_figure_shown_last(shown):
    seen, place = shown
    for number in (1, 2):
        fig = plt.figure(num=number)
        figures.show(fig)
    figures.caption("The second.", alt="Nothing.")
    assert [update[0] for update in place.updates] == [seen[1][0]]


def test_a_caption_needs_a_figure(shown):
    with pytest.raises(ValueError, match="there must be a figure before a caption"):
        figures.caption("Of what?", alt="")


def test_only_the_shown_figure_is_closed(shown, ax):
    other = plt.figure()
    figures.show(ax.figure)
    assert plt.get_fignums() == [other.number]


# The film


@pytest.mark.parametrize(("form", "frames"), [("gif", 60), ("png", 61)])  # a PNG has one more, for where nothing moves
def test_the_film_of_the_filter_moves_and_fits_on_a_page(form, frames):
    shown = film.of_filter(form=form)
    assert len(shown) < 1_500_000 and not plt.get_fignums()
    with Image.open(io.BytesIO(shown)) as picture:
        assert picture.format == form.upper() and picture.n_frames == frames and picture.is_animated
        assert picture.info["loop"] == 0 and 600 <= picture.width <= 1000
        seen = set()
        for frame in range(frames):
            picture.seek(frame)
            seen.add(picture.convert("RGB").tobytes())
    assert len(seen) == 60  # no frame is like another


def test_a_film_has_its_own_settings_and_no_other_form():
    shown = film.of_filter(steps=2, Q=0.2, R=4.0, P0=1.0, seed=5)
    assert Image.open(io.BytesIO(shown)).n_frames == 4
    assert shown == film.of_filter(steps=2, Q=0.2, R=4.0, P0=1.0, seed=5) != film.of_filter(steps=2, seed=5)
    with pytest.raises(ValueError, match="form must be one of 'gif', 'png', got 'mp4'"):
        film.of_filter(form="mp4")


def test_the_film_that_the_readme_shows_is_there():
    with Image.open(NOTEBOOKS / "figures" / "filter.gif") as picture:
        assert (picture.format, picture.n_frames) == ("GIF", 60)


# Diagrams


def test_every_algorithm_shows_where_its_normalizers_stand():
    fig = doors.draw()
    drawn = {ax.get_title(loc="left"): [text.get_text() for text in ax.texts] for ax in fig.axes}
    assert [title.partition(",")[0] for title in drawn] == ["REINFORCE", "actor-critic", "GAE", "PPO"]
    for title, words in drawn.items():
        config = RunConfig.preset("CartPole-v1", title.partition(",")[0].lower().replace("-", "_"))
        assert words.count(doors.NORMALIZER) == 1
        assert words.count(doors.SECOND) == config.normalize_advantages
        assert ("critic V" in words) == (config.algorithm != "reinforce")


def test_arrows_go_from_box_to_box():
    for sketch in doors.DOORS:
        assert all(start in sketch.boxes and end in sketch.boxes for start, end, _ in sketch.arrows)
        assert {place for start, end, _ in sketch.arrows for place in (start, end)} == set(sketch.boxes)
