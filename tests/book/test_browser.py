"""The book and the slides in a real browser: what a reader sees."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from kscore.chapters import notebooks
from kscore.chapters import site as site_of
from kscore.chapters.status import Outcome, StatusFile, Task

from .conftest import BOOK, SLIDES, pages

SOURCES = BOOK / "_modules"  # a page for every module, all made alike: one of them is looked at
PAGES = [page for page in pages(BOOK) if page != BOOK / "index.html" and not page.is_relative_to(SOURCES)]
PAGES.append(SOURCES / "kscore" / "rl" / "algorithms.html")
LECTURES = sorted(SLIDES.glob("[0-9]_*.html")) or [SLIDES / "1.html"]
FORMULAS = "[document.querySelectorAll('.math').length, document.querySelectorAll('mjx-container').length]"
DOLLARS = """() => {
    const found = [], walk = document.createTreeWalker(document.querySelector('article, main'), NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const { textContent, parentElement } = walk.currentNode;
        if (textContent.includes('$') && !parentElement.closest('pre, code, script, style')) found.push(textContent);
    }
    return found;
}"""  # outside of code, a dollar is a formula that was not understood
LINES = """() => {
    const counts = [];
    for (const paragraph of document.querySelectorAll('article section > p')) {
        if (paragraph.querySelector('mjx-container')) continue;
        const lines = {}, walk = document.createTreeWalker(paragraph, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) for (let i = 0; i < walk.currentNode.length; i++) {
            const range = document.createRange();
            range.setStart(walk.currentNode, i), range.setEnd(walk.currentNode, i + 1);
            const line = Math.round(range.getBoundingClientRect().top / 12);
            lines[line] = (lines[line] || 0) + 1;
        }
        counts.push(...Object.values(lines).slice(0, -1));
    }
    return counts.sort((a, b) => a - b);
}"""  # how many characters the lines of the prose have
CUT_OFF = """() => [...document.querySelectorAll('.cell_input pre')]
    .filter(box => box.offsetParent && box.scrollWidth > box.clientWidth).map(box => box.textContent)"""
TOO_WIDE = """() => [...document.querySelectorAll('span.math mjx-container')]
    .filter(formula => !formula.closest('table') && formula.getBoundingClientRect().right > innerWidth)
    .map(formula => formula.closest('p, li')?.textContent)"""
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"
FITS = """() => {
    const slide = Reveal.getCurrentSlide(), [width, height] = [innerWidth, innerHeight];
    const all = [...slide.querySelectorAll('h2, h3, p, li, img, td, pre, mjx-container')];
    const boxes = all.filter(e => !e.closest('aside')).map(e => e.getBoundingClientRect());
    const cut = [...slide.querySelectorAll('pre, pre *')].some(e => e.scrollWidth > e.clientWidth && e.clientWidth);
    return !cut && boxes.every(box => box.right <= width && box.bottom <= height && box.left >= 0 && box.top >= 0);
}"""
LETTERS = """() => {
    const all = [...Reveal.getCurrentSlide().querySelectorAll('p, li, td')].filter(e => !e.closest('aside'));
    return Math.min(...all.map(e => parseFloat(getComputedStyle(e).fontSize)));
}"""


FEW = {"01_filter_derivation.html", "05_actor_critic_cartpole.html", "17_a_fair_fight.html", "answer.html", "api.html"}


def sampled(path):
    return path if path.name in FEW else pytest.param(path, marks=pytest.mark.slow)


@pytest.mark.parametrize("path", [*map(sampled, PAGES)], ids=lambda page: str(page.relative_to(BOOK)))
def test_a_page_reads_well(reader, path):
    page = reader.open(path)
    assert reader.complaints == []

    formulas, typeset = page.evaluate(FORMULAS)
    assert formulas == typeset and page.locator("mjx-merror").count() == 0
    assert page.evaluate(DOLLARS) == []

    for image in page.locator("article img").all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("image => image.complete && image.naturalWidth > 0") and image.is_visible()

    page.set_viewport_size({"width": 390, "height": 844})
    width, window = page.evaluate(WIDTHS)
    assert width <= window, "the page scrolls sideways on a phone"
    assert page.evaluate(TOO_WIDE) == [], "a formula in a sentence is wider than a phone"


@pytest.mark.parametrize("path", notebooks.find()[1:5], ids=lambda path: path.stem)
def test_a_chapter_has_formulas(reader, path):
    assert reader.open(BOOK / "notebooks" / f"{path.stem}.html").locator("mjx-container").count() > 20


def test_the_front_page_leads_into_the_book(reader):
    page = reader.page
    page.goto(f"{reader.site}/book/index.html")
    page.wait_for_url("**/docs/index.html")
    page.get_by_role("link", name="01 Where the filter comes from").first.click()
    assert page.locator("article h1").inner_text().startswith("01 Where the filter comes from")


def test_search_finds_innovation(reader):
    page = reader.open(BOOK / "search.html", "?q=innovation")
    page.locator("#search-results li a").first.wait_for()
    found = page.locator("#search-results li a").all_inner_texts()
    assert "03 From filter to score" in found and len(found) > 3
    assert reader.complaints == []


def test_search_works_without_a_server(reader):
    page = reader.go((BOOK / "search.html").as_uri() + "?q=innovation")
    page.locator("#search-results li a", has_text="03 From filter to score").wait_for()


def test_search_does_not_find_what_is_not_there(reader):
    page = reader.open(BOOK / "search.html", "?q=xylophone")
    page.get_by_text("did not match any documents").wait_for()


def test_a_line_has_about_75_characters(reader):
    counts = reader.open(BOOK / "notebooks" / "05_actor_critic_cartpole.html").evaluate(LINES)
    assert len(counts) > 20 and 70 <= counts[len(counts) // 2] <= 80 and counts[-1] <= 90


@pytest.mark.parametrize("path", notebooks.find(), ids=lambda path: path.stem)
def test_code_is_not_cut_off_beside_the_sidebars(reader, path):
    page = reader.open(BOOK / "notebooks" / f"{path.stem}.html")
    for width in (1200, 1280, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("where", ["nav.onward a[rel={}]", "footer a.{}"], ids=["top", "bottom"])
def test_previous_and_next_are_at_both_ends_of_a_page(reader, where):
    chapters = [path.stem for path in notebooks.find()]
    previous, following = (
        where.format(*words)
        for words in ([("prev",), ("next",)] if "rel" in where else [("left-prev",), ("right-next",)])
    )
    page = reader.open(BOOK / "notebooks" / f"{chapters[1]}.html")
    page.locator(following).click()
    page.wait_for_url(f"**/{chapters[2]}.html")
    page.locator(previous).click()
    page.wait_for_url(f"**/{chapters[1]}.html")
    page.locator(previous).click()
    page.wait_for_url(f"**/{chapters[0]}.html")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_figure_opens_in_full_size(reader, width):
    reader.page.set_viewport_size({"width": width, "height": 844})
    page = reader.open(BOOK / "notebooks" / "01_filter_derivation.html")
    figure, full = page.locator("article img.zoomable").first, page.locator("dialog.zoom img")
    small = figure.bounding_box()["width"]
    assert not full.is_visible()
    figure.click()
    assert full.get_attribute("alt") == figure.get_attribute("alt")
    assert full.bounding_box()["width"] >= max(1.2 * small, figure.evaluate("image => image.naturalWidth"))
    page.keyboard.press("Escape")
    assert not full.is_visible()
    figure.focus()
    page.keyboard.press("Enter")
    assert full.is_visible()
    full.click(position={"x": 5, "y": 5})
    assert not full.is_visible()


def test_the_sliders_work_without_a_kernel(reader):
    page = reader.open(BOOK / "notebooks" / "03_from_filter_to_score.html")
    slider = page.get_by_label("process noise Q")
    before = page.locator(".kscore-explore").evaluate("root => root.series.gain.at(-1)")
    slider.focus()
    page.keyboard.press("End")
    assert page.locator(".kscore-explore").evaluate("root => root.series.gain.at(-1)") > 0.9 > before
    assert page.locator(".kscore-explore svg").count() == 3 and reader.complaints == []


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """The site of a few runs: a chapter twice, as if with values of its own, and one that failed."""
    out, (first, second) = tmp_path_factory.mktemp("few"), notebooks.find(["02", "05"])
    file = StatusFile(out)
    for source, name, status in (
        (first, f"{first.stem}__Q-1", "ok"),
        (first, f"{first.stem}__Q-2", "ok"),
        (second, second.stem, "failed"),
    ):
        made = Task(source, out / f"{name}.ipynb", {"Q": 1.0})
        file.end(file.begin(made), Outcome(name, status, 5.0, "an error" if status == "failed" else ""))
        made.target.write_bytes(source.read_bytes())
    return site_of.build(out)


def test_a_few_runs_read_like_the_book(reader, few):
    page = reader.page
    page.goto(few.as_uri())
    page.wait_for_url("**/run.html")
    assert page.locator("article tbody tr").count() == 3 and page.get_by_text("an error").is_visible()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(few.as_uri())
        page.wait_for_url("**/run.html")
        page.locator("article td a").first.click()
        page.wait_for_url("**/*__Q-1.html")
        page.evaluate("() => MathJax.startup.promise")
        formulas, typeset = page.evaluate(FORMULAS)
        assert formulas == typeset > 20 and page.evaluate(DOLLARS) == []
        scroll, window = page.evaluate(WIDTHS)
        assert scroll <= window
    links = page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href)")
    files = {Path(unquote(urlsplit(link).path)) for link in links if link.startswith("file:")}
    assert files and all(path.exists() for path in files), "a link leads nowhere"
    assert reader.complaints == []


def test_a_solution_opens(reader):
    page = reader.open(BOOK / "notebooks" / "01_filter_derivation.html")
    fold = page.locator("details", has_text="Show the solution").first
    solution = fold.locator("pre")
    assert not solution.is_visible()
    fold.locator("summary").click()
    assert solution.is_visible() and "BEGIN SOLUTION" in solution.inner_text()


def test_a_reference_leads_to_its_equation(reader):
    page = reader.open(BOOK / "notebooks" / "02_steady_state.html")
    page.locator("article a", has_text="(1.5)").first.click()
    page.wait_for_url("**/01_filter_derivation.html#eq-1-5")
    page.evaluate("() => MathJax.startup.promise")
    assert 0 <= page.locator("#eq-1-5").bounding_box()["y"] < 300


@pytest.mark.parametrize("path", LECTURES, ids=lambda page: page.stem)
def test_slides_fit_and_can_be_read_from_the_last_row(reader, path):
    reader.page.set_viewport_size({"width": 1280, "height": 720})
    page = reader.open(path)
    page.wait_for_function("() => window.Reveal && Reveal.isReady()")
    for _ in range(page.evaluate("Reveal.getTotalSlides()")):
        where = page.evaluate("Reveal.getCurrentSlide().querySelector('h1, h2, h3').textContent")
        assert page.evaluate(FITS), f"{where}: does not fit"
        assert page.evaluate(LETTERS) >= 28, f"{where}: letters are too small"
        page.evaluate("Reveal.next()")
    formulas, typeset = page.evaluate(FORMULAS)
    assert formulas == typeset > 0 or path.stem.startswith("4")
    assert page.locator("mjx-merror").count() == 0
    assert reader.complaints == []
