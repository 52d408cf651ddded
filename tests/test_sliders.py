"""The figure to play with: what it draws is the filter, in Python and in a browser."""

import html
import json
import re
import shutil

import matplotlib.pyplot as plt
import numpy as np
import pytest

from kscore import figures, filters, normalizers
from kscore.labs import sliders

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def shown():
    """What the figure shows: a page, and words below it."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sliders, "display", lambda *parts: found.extend(part.data for part in parts))
        sliders.explore(seed=7)
    return found


def test_the_picture_of_the_plain_setting_is_the_filter():
    fig, axes = figures.panels(3)
    sliders.draw(axes, Q=0.5, R=2.0, P0=3.0, jump=4.0, seed=7)
    lines = [{line.get_label(): line.get_ydata() for line in ax.lines} for ax in axes]
    z = lines[0]["observed"]
    run = filters.filter_series(z, 0.5, 2.0, start=filters.Belief(0.0, 3.0))
    assert np.array_equal(lines[0]["mean"], np.repeat([0.0, 4.0], 60))
    assert np.allclose(lines[0]["belief"], run.mean) and np.allclose(axes[1].lines[0].get_ydata(), run.gain)
    assert np.allclose(lines[2]["K-Score"], (z - run.mean) / np.sqrt(run.var))
    assert np.allclose(lines[2]["innovation score"], (z - run.prior_mean) / np.sqrt(run.prior_var + 2.0))
    plt.close(fig)


def test_where_no_script_may_run_there_is_a_picture_with_words(shown):
    page, caption = shown
    without = re.sub("<script>.*?</script>", "", page, flags=re.DOTALL)
    assert re.search(r'<img alt="[^"]{80,}" src="data:image/png;base64,', without)
    assert "the picture for Q = 0.01, R = 1, P₀ = 1, jump = 5." in without and caption == f"*{sliders.CAPTION}*"
    assert not re.search(r"https?:(?!//www.w3.org/2000/svg)|\b(src|href)=.?/", page)  # nothing is loaded
    told = json.loads(html.unescape(re.search('data-explore="([^"]*)"', page)[1]))
    assert [slider["value"] for slider in told["settings"]] == list(sliders.PLAIN.values())


@pytest.fixture(scope="module")
def page(shown, tmp_path_factory):
    """The figure in a browser that reaches nothing."""
    if CHROMIUM is None:
        pytest.skip("no browser is installed: the sliders are moved in chromium, a package of that name on Debian")
    from playwright.sync_api import sync_playwright

    file = tmp_path_factory.mktemp("sliders") / "page.html"
    file.write_text(f"<!doctype html><meta charset='utf-8'>{shown[0]}", encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(offline=True, viewport={"width": 390, "height": 844})
        page, page.complaints = context.new_page(), []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or page.complaints.append(asked.url))
        page.goto(file.as_uri())
        yield page
        browser.close()


def series(page):
    """What the figure shows now, and what Python makes of the same setting."""
    found = page.locator(".kscore-explore").evaluate("root => root.series")
    z, setting = np.array(found["z"]), found["setting"]
    given = {name: setting[name] for name in ("Q", "R", "P0")}
    run = filters.filter_series(z, given["Q"], given["R"], start=filters.Belief(0.0, given["P0"]))
    python = {
        "mean": run.mean,
        "sd": np.sqrt(run.var),
        "gain": run.gain,
        "kscore": normalizers.make("kscore", **given)(z),
        "innovation": normalizers.make("kscore", mode="innovation", **given)(z),
    }
    return setting, found, python


def slide(page, name, place):
    """Move a slider, as a hand would."""
    page.get_by_label(name).evaluate(
        "(slider, place) => { slider.value = place; slider.dispatchEvent(new Event('input', {bubbles: true})); }", place
    )


@pytest.mark.parametrize("places", [(-2, 0, 0, 5), (2, -3, 3, -10), (-6, 3, -3, 10), (-0.25, 1.5, -1.75, 0)])
def test_the_browser_computes_what_python_computes(page, places):
    for slider, place in zip(sliders.SLIDERS, places, strict=True):
        slide(page, slider["words"], place)
    setting, found, python = series(page)
    assert np.allclose([setting["Q"], setting["R"], setting["P0"]], 10.0 ** np.array(places[:3]), rtol=1e-12)
    assert setting["jump"] == places[3]
    noise = np.random.default_rng(7).normal(size=sliders.STEPS)
    assert np.array_equal(found["z"], noise + np.repeat([0.0, places[3]], sliders.STEPS // 2))
    for name, values in python.items():
        assert np.allclose(found[name], values, rtol=1e-9, atol=1e-12), name
    assert page.complaints == []


def test_it_can_be_used_without_a_mouse_and_without_looking(page):
    page.get_by_role("button", name="Start again").click()
    assert [page.get_by_role("slider").nth(place).get_attribute("aria-label") for place in range(4)] == [
        slider["words"] for slider in sliders.SLIDERS
    ]
    before, picture = series(page)[0], page.get_by_role("img")
    words = picture.get_attribute("aria-label")
    assert before == sliders.PLAIN and words.startswith("Three panels: ")
    slider = page.get_by_label("process noise Q")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert series(page)[0]["Q"] == pytest.approx(10**-1.75) and slider.get_attribute("aria-valuetext") == "0.018"
    assert page.locator("output").first.inner_text() == "0.018"
    assert picture.get_attribute("aria-label") != words
    assert page.locator("p").inner_text() in picture.get_attribute("aria-label")
    page.get_by_role("button", name="Start again").press("Enter")
    assert series(page)[0] == sliders.PLAIN and picture.get_attribute("aria-label") == words


def test_it_fits_on_a_phone_and_grows_with_the_window(page):
    width = "document.querySelector('.kscore-explore svg').getBoundingClientRect().width"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390 and page.locator("img").count() == 0
    small = page.evaluate(width)
    cut = "[...document.querySelectorAll('text')].filter(e => e.getBoundingClientRect().right > innerWidth - 8).length"
    assert page.evaluate(cut) == 0 and small <= 390 - 2 * 8
    page.set_viewport_size({"width": 900, "height": 844})
    page.wait_for_function(f"{width} > {small} + 200")
    page.set_viewport_size({"width": 390, "height": 844})
