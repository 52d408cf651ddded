"""The figure to play with: sliders that draw, and a grid without any widget."""


import matplotlib.pyplot as plt
import numpy as np
import pytest

from kscore import figures, filters
from kscore.figures import sliders as explore
from kscore.figures import style


def test_it_is_among_the_figures():
    assert figures.explore is explore.explore


@pytest.fixture
def shown(monkeypatch):
    """What was shown: figures with their words, and widgets."""
    found = []
    monkeypatch.setattr(style, "show", lambda fig, caption, alt: found.append((fig, caption, alt)))
    monkeypatch.setattr(explore, "display", found.append)
    yield found
    plt.close("all")


def lines(ax):
    return {line.get_label(): line.get_ydata() for line in ax.lines}


def test_the_grid_has_a_column_for_each_setting_and_no_widget(shown):
    explore.explore()
    (fig, caption, alt), = shown
    axes = np.reshape(fig.axes, (3, len(explore.CHANGES)))
    assert [ax.get_title() for ax in axes[0]] == ["plain", "Q = 1", "R = 25", "P₀ = 0.0001", "jump = 0"]
    assert "Q = 0.01, R = 1, P₀ = 1, jump = 5" in caption and alt
    plain, quick = lines(axes[0, 0]), lines(axes[0, 1])
    assert np.array_equal(plain["observed"], quick["observed"]) and not np.allclose(plain["belief"], quick["belief"])
    assert np.array_equal(plain["mean"], np.repeat([0.0, 5.0], 60)) and set(lines(axes[0, 4])["mean"]) == {0.0}


def test_what_is_drawn_is_the_filter(shown):
    explore.explore(changes=[{"Q": 0.5, "R": 2.0, "P0": 3.0}], seed=7)
    path, gain, score = shown[0][0].axes
    z = lines(path)["observed"]
    run = filters.filter_series(z, 0.5, 2.0, start=filters.Belief(0.0, 3.0))
    assert np.allclose(lines(path)["belief"], run.mean) and np.allclose(gain.lines[0].get_ydata(), run.gain)
    assert np.allclose(lines(score)["K-Score"], (z - run.mean) / np.sqrt(run.var))
    assert np.allclose(lines(score)["innovation score"], (z - run.prior_mean) / np.sqrt(run.prior_var + 2.0))


def test_the_sliders_draw_the_same_picture_when_they_are_moved(shown):
    explore.explore(interactive=True)
    (first, *_), widget = shown  # it is drawn before anything is moved
    sliders = {slider.description: slider for slider in widget.children[:-1]}
    assert list(sliders) == ["Q", "R", "P₀", "jump"]
    before = lines(first.axes[0])["belief"]
    sliders["Q"].value = 1.0
    after = lines(shown[-1][0].axes[0])["belief"]
    assert not np.allclose(before, after)
    explore.explore(changes=[{"Q": 1.0}])
    assert np.allclose(lines(shown[-1][0].axes[0])["belief"], after)
