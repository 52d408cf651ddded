"""What can be checked of whether everybody can read the collection; colours that can be told apart: test_figures."""

import re

import pytest

from kscore.chapters import notebooks
from kscore.project import ROOT

CHAPTERS = notebooks.find()
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("data/*.md"), *ROOT.glob("docs/**/*.md")]
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
each_text = pytest.mark.parametrize("path", CHAPTERS + PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def outputs(cells, kind):
    """What cells publish of a kind, with the metadata."""
    found = [output for cell in cells for output in cell.get("outputs", []) if kind in output.get("data", {})]
    return [("".join(output["data"][kind]), output["metadata"]) for output in found]


def words(path):
    """The markdown of a page, or of a chapter and its outputs, without what is code."""
    parts = []
    for cell in notebooks.cells(path) if path.suffix == ".ipynb" else []:
        parts += [cell["source"]] if cell["cell_type"] == "markdown" else []
        parts += [text for text, _ in outputs([cell], "text/markdown")]
    parts = parts or [path.read_text(encoding="utf-8")]
    return re.sub(r"^```.*?^```", "", "\n\n".join(parts), flags=re.MULTILINE | re.DOTALL)


@each_text
def test_headings_are_in_order(path):
    levels = [len(marks) for marks in re.findall(r"^(#+) ", words(path), re.MULTILINE)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(level <= before + 1 for before, level in zip(levels, levels[1:], strict=False))


@each_text
def test_every_column_of_a_table_has_a_header(path):
    for table in re.findall(r"(?:^\|.*\|$\n?)+", words(path), re.MULTILINE):
        head, rule, *_ = table.splitlines()
        assert re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", rule), head
        assert all(cell.strip() for cell in head.strip("|").split("|")), head


@each_chapter
def test_published_tables_have_header_cells(path):
    for html, _ in outputs(notebooks.cells(path), "text/html"):
        for table in re.findall(r"<table.*?</table>", html, re.DOTALL):
            head = re.search(r"<thead>(.*?)</thead>", table, re.DOTALL)
            assert head and re.search(r"<th[^>]*>[^<]", head[1]), table[:200]


@each_text
def test_pictures_in_the_text_have_words(path):
    alts = re.findall(r"!\[(.*?)\]\(", words(path))
    alts += [" ".join(re.findall(r' alt="([^"]*)"', picture)) for picture in re.findall(r"<img\b[^>]*>", words(path))]
    assert all(alt.strip() for alt in alts)


@each_chapter
def test_every_published_figure_has_alt_text_that_says_more_than_a_name(path):
    alts = [metadata.get("image/png", {}).get("alt", "") for _, metadata in outputs(notebooks.cells(path), "image/png")]
    assert alts and all(len(alt.split()) >= 8 for alt in alts), [alt for alt in alts if len(alt.split()) < 8]
    assert len(set(alts)) == len(alts)
    for html, _ in outputs(notebooks.cells(path), "text/html"):
        assert "<svg" not in html
        assert all(len(alt.split()) >= 8 for alt in re.findall(r"<img(?: alt=\"([^\"]*)\")?", html))


@each_chapter
def test_colours_are_those_of_the_palette(path):
    code = "\n".join(cell["source"] for cell in notebooks.cells(path) if cell["cell_type"] == "code")
    own = r'\bcolors?="(?!white|none)|\bcmap="(?!cividis)|["\']#[0-9a-fA-F]{6}\b|"C\d"'
    assert not re.findall(own, code), "figures has a colour for it"
