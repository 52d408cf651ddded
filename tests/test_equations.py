"""Equations that chapters refer to, "(P3a)" or "(2.1)": each exists, and only once."""

import collections

import nbformat
import pytest
import reading

from kscore.chapters import notebooks


def texts(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]


PROSE = {path.stem: "\n\n".join(texts(path)) for path in notebooks.find()}
FACTS = [line.split("|")[1].strip() for line in PROSE["00_start_here"].splitlines() if line.startswith("| ")]


def test_no_two_equations_share_a_tag():
    counted = collections.Counter(tag for text in PROSE.values() for tag in reading.TAG.findall(text))
    assert len(counted) >= 15
    assert max(counted.values()) == 1, counted.most_common(3)


@pytest.mark.parametrize("chapter", PROSE)
def test_an_equation_is_numbered_by_its_chapter_or_by_a_fact(chapter):
    for tag in reading.TAG.findall(PROSE[chapter]):
        assert tag in reading.tags(), f"({tag}) must stand in a block of its own"
        assert tag.partition(".")[0] == str(int(chapter[:2])) or fact(tag), tag


@pytest.mark.parametrize("chapter", PROSE)
def test_every_reference_leads_somewhere(chapter):
    for label in reading.references(PROSE[chapter]):
        assert label in reading.tags() or fact(label), f"({label}) is no equation and no fact"


def fact(label):
    listed = {name for line in FACTS for name in line.split(", ")}
    return label in listed or label.rstrip("abc") in listed


def test_a_reference_is_told_from_other_parentheses():
    text = "(P3a), (2.1) and (12.3), not (0.5), (2.123), (P), `(P4)`, $f(2.1)$ or $$(1.1)$$ and [(D2)](#there)"
    assert reading.references(text) == ["P3a", "2.1", "12.3"]
    assert reading.linked("by (P3a) or (9.9)") == "by [(P3a)](#eq-p3a) or (9.9)"


def test_cited_works_are_in_the_bibliography():
    assert reading.key("K-Score") == "xia_kscore"
    cited = reading.cited("*so* **References.** A. Author, *Optimal Filtering*.")
    assert cited == "*so* **References.** A. Author, *Optimal Filtering* {cite}`anderson1979optimal`."
    with pytest.raises(ValueError, match="got no title like 'A work of nobody'"):
        reading.key("A work of nobody")
    for text in PROSE.values():
        reading.cited(text)
