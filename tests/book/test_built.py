"""What was built, as files: complete, linked, and with nothing that would have to come from the network."""

import functools
import re

import nbformat
import pytest
import reading
from bs4 import BeautifulSoup

from kscore.chapters import notebooks
from kscore.project import DATA, ROOT

from .conftest import BOOK, BUILD, SLIDES, pages

CHAPTERS = notebooks.find()
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@functools.cache
def soup(page):
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def chapter(path):
    return soup(BOOK / "notebooks" / f"{path.stem}.html")


def text(name):
    return " ".join(soup(BOOK / name).select_one("article").get_text(" ").split())


@pytest.mark.parametrize("page", pages(BOOK) + pages(SLIDES), ids=lambda page: str(page.relative_to(BUILD)))
def test_nothing_is_loaded_from_the_network(page):
    html = soup(page)
    links = {link["href"]: set(link["rel"]) for link in html.find_all("link")}
    loaded = [tag["src"] for tag in html.find_all(src=True)]
    loaded += [address for address, kind in links.items() if kind & {"stylesheet", "preload", "icon", "modulepreload"}]
    assert not [address for address in loaded if re.match(r"(https?:)?//", address)]
    for style in (address for address, kind in links.items() if "stylesheet" in kind):
        assert from_network((page.parent / style.partition("?")[0]).resolve()) is None, style


@functools.cache
def from_network(style):
    return re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8"))


@each_chapter
def test_the_front_page_lists_the_chapter(path):
    listed = {link["href"] for link in soup(BOOK / "docs" / "index.html").select("nav a[href]")}
    assert f"../notebooks/{path.stem}.html" in listed


@each_chapter
def test_every_figure_has_alt_text(path):
    images = chapter(path).select("article img")
    assert images and all(len(image.get("alt", "")) > 20 for image in images)


@each_chapter
def test_solutions_and_checks_are_folded(path):
    for tag, words in (("solution", "Show the solution"), ("check", "Show the check")):
        folds = [fold for fold in chapter(path).find_all("details") if words in fold.summary.get_text()]
        assert len(folds) == len(tagged(path, tag)) > 0
        assert all("open" not in fold.attrs and fold.find("pre") for fold in folds)


def tagged(path, tag):
    """The code of the cells of a chapter that have a tag."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if tag in cell.metadata.get("tags", [])]


def plain(code):
    return re.sub(r"\s+", " ", code).strip()


@each_chapter
def test_what_is_to_be_filled_in_is_seen_and_answers_are_not(path):
    blocks = chapter(path).select("article pre")
    seen = [plain(block.get_text()) for block in blocks if not block.find_parent("details")]
    assert all(plain(stub) in seen for stub in tagged(path, "stub")) and tagged(path, "stub")
    assert not [code for code in seen if re.search("### (BEGIN|END) (SOLUTION|HIDDEN TESTS)", code)]


@each_chapter
def test_whatever_is_folded_can_be_unfolded(path):
    folded = [plain(fold.get_text()) for fold in chapter(path).find_all("details")]
    assert all(any(plain(code) in fold for fold in folded) for code in tagged(path, "hide-input"))


@each_chapter
def test_notebook_and_script_can_be_downloaded(path):
    links = {link.get_text(): link["href"] for link in chapter(path).select("article a.download")}
    for name, original in (("notebook", path), ("script", path.with_suffix(".py"))):
        assert (BOOK / "notebooks" / links[name]).read_bytes() == original.read_bytes()


@pytest.mark.parametrize(("tag", "path"), [(tag, paths[0]) for tag, paths in reading.tags().items()])
def test_an_equation_can_be_linked_to(tag, path):
    anchor = chapter(path).find(id=f"eq-{tag.lower().replace('.', '-')}")
    equation = anchor if "math" in anchor.get("class", []) else anchor.find_next("div", class_="math")
    assert rf"\tag{{{tag}}}" in equation.get_text()


def test_chapters_refer_to_equations_of_other_chapters():
    links = {(path.stem[:2], link["href"]) for path in CHAPTERS for link in chapter(path).select("a[href*='#eq-']")}
    assert ("02", "01_filter_derivation.html#eq-1-5") in links
    assert ("04", "03_from_filter_to_score.html#eq-3-3") in links


def test_every_work_is_in_the_bibliography_and_chapters_cite_them():
    works = soup(BOOK / "docs" / "references.html").select("article .citation")
    assert len(works) == len(re.findall("^@", (ROOT / "docs" / "references.bib").read_text(encoding="utf-8"), re.M))
    assert all(chapter(path).select("article a[href*='references.html#']") for path in CHAPTERS)


def test_the_glossary_has_the_words_of_the_project():
    entries = soup(BOOK / "docs" / "glossary.html").select("dl.glossary dt")
    assert {entry.get_text().removesuffix("#").strip() for entry in entries} >= {
        "episode",
        "return",
        "advantage",
        "score",
        "belief",
        "gain",
        "innovation",
        "run",
        "study",
        "censored",
        "restricted mean",
        "stream",
        "refit",
    }


@pytest.mark.parametrize("name", ["README", "PLAN"])
def test_the_data_has_its_pages(name):
    headings = re.findall("^#+ (.+)$", (DATA / f"{name}.md").read_text(encoding="utf-8"), re.M)
    assert all(heading in text(f"data/{name}.html") for heading in headings)


def test_the_reference_has_the_public_things_only():
    names = {dt["id"] for dt in soup(BOOK / "docs" / "api.html").select("dt.sig[id]")}
    assert names >= {"kscore.filters.level.update", "kscore.normalizers.make", "kscore.rl.training.train"}
    assert not [name for name in names if re.search(r"\._[a-z]", name)]
    assert "Alias for field number" not in text("docs/api.html")


@pytest.mark.parametrize("lecture", sorted((ROOT / "docs" / "slides").glob("[0-9]_*.md")), ids=lambda path: path.stem)
def test_a_lecture_has_slides_with_notes_and_figures(lecture):
    html = soup(SLIDES / f"{lecture.stem}.html")
    slides = [section for section in html.select(".slides section") if not section.find("section")]
    assert 10 <= len(slides) <= 26
    assert all(slide.select("aside.notes") for slide in slides)
    assert all(len(image["alt"]) > 20 for image in html.select("section img")) and len(html.select("section img")) >= 2
    assert "[[" not in html.get_text() and "[%" not in html.get_text()


def test_there_are_nine_lectures():
    assert len(list(SLIDES.glob("[0-9]_*.html"))) == 9
