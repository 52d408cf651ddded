"""The book and the slides in a real browser: what a reader sees."""

import pytest

from kscore.chapters import notebooks

from .conftest import BOOK, SLIDES, pages

SOURCES = BOOK / "_modules"  # a page for every module, all made alike: one of them is looked at
PAGES = [page for page in pages(BOOK) if page != BOOK / "index.html" and not page.is_relative_to(SOURCES)]
PAGES.append(SOURCES / "kscore" / "rl" / "algorithms.html")
LECTURES = sorted(SLIDES.glob("[0-9]_*.html")) or [SLIDES / "1.html"]
FORMULAS = "[document.querySelectorAll('.math').length, document.querySelectorAll('mjx-container').length]"
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


@pytest.mark.parametrize("path", PAGES, ids=lambda page: str(page.relative_to(BOOK)))
def test_a_page_reads_well(reader, path):
    page = reader.open(path)
    assert reader.complaints == []

    formulas, typeset = page.evaluate(FORMULAS)
    assert formulas == typeset and page.locator("mjx-merror").count() == 0

    for image in page.locator("article img").all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("image => image.complete && image.naturalWidth > 0") and image.is_visible()

    page.set_viewport_size({"width": 390, "height": 844})
    width, window = page.evaluate(WIDTHS)
    assert width <= window, "the page scrolls sideways on a phone"


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
