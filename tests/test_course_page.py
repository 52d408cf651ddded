"""The course's page: it leads to sections, slides and exercises that are there."""

import re

import pytest

from kscore import options
from kscore.chapters import course, notebooks
from kscore.project import ROOT

PAGE = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\]\((?!http)([^)\s]+)\)", PAGE) + re.findall(r"^\[\w+\]: (\S+)$", PAGE, re.MULTILINE)
EXERCISES = {one.name: one for path in notebooks.find() for one in course.exercises(notebooks.read(path))}


def headings(text):
    return re.findall(r"^#{1,3} (.+?) *$", text, re.MULTILINE)


def anchor(heading):
    """The anchor that the book gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def table(heading):
    """The rows of the first table under a heading, without its first."""
    section = PAGE.partition(f"\n## {heading}")[2].partition("\n## ")[0]
    return [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_a_link_leads_to_a_section_that_is_there(link):
    file, _, section = link.partition("#")
    path = (ROOT / "docs" / file).resolve()
    assert path in notebooks.find()
    prose = "\n".join(cell["source"] for cell in notebooks.cells(path) if cell["cell_type"] == "markdown")
    assert not section or section in map(anchor, headings(prose)), headings(prose)


def test_a_section_that_is_named_is_linked_by_its_name():
    for words, link in re.findall(r"\[([^\]]+)\]\((?!http)[^)#]+#([^)]+)\)", PAGE):
        assert anchor(words) == link


def test_every_label_of_a_link_is_defined_and_used():
    defined = set(re.findall(r"^\[(\w+)\]: ", PAGE, re.MULTILINE))
    used = set(re.findall(r"\]\[(\w+)\]", PAGE))
    assert defined == used


def test_the_lectures_follow_the_slides_and_leave_none_out():
    rows = [[cell.strip() for cell in row] for row in table("The slides") if not row[0].startswith("--")]
    assert [int(row[0]) for row in rows] == list(range(1, 16))
    shown = {}
    for _, deck, first, last, _ in rows:
        (path,) = (ROOT / "docs" / "slides").glob(f"{deck[0]}_*.md")
        title, *slides = re.findall(r"^#{1,2} (.+?) *$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert deck == f"{deck[0]} {title}"
        first, last = slides.index(first.strip('"')), slides.index(last.strip('"'))
        shown[path] = shown.get(path, []) + slides[first : last + 1]
        assert shown[path] == slides[: last + 1]
    for path, slides in shown.items():
        assert slides == re.findall(r"^## (.+?) *$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) == 9


def test_exercises_that_are_named_exist_and_those_graded_in_a_week_make_seven():
    assert {*re.findall(r"\[(\d\d-\d)\]", PAGE)} <= set(EXERCISES)
    assert all(name[:2] == label[:2] for name, label in re.findall(r"\[(\d\d-\d)\]\[(\w+)\]", PAGE))
    weeks = [row for row in table("Four weeks") if row[0].strip()[:1].isdigit()]
    graded = [re.findall(r"\d\d-\d", row[-1]) for row in weeks]
    assert [sum(EXERCISES[name].points for name in week) for week in graded] == [7] * 4
    assert not any(EXERCISES[name].read for week in graded for name in week)


def test_every_command_is_understood():
    commands = re.findall(r"^\.venv/bin/kscore (.+)$", PAGE, re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        options.parser().parse_args(command.split())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"(?:^|`)make ([a-z]+)", PAGE, re.MULTILINE)
    assert "student" in targets and all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in targets)


@pytest.mark.parametrize("path", notebooks.find(map(str, range(5, 11))), ids=lambda path: path.stem)
def test_in_every_chapter_of_the_experiments_students_train_a_small_study(path):
    answers = [cell["source"] for cell in notebooks.cells(path) if course.is_answer(cell)]
    assert any(re.search(r"\b(study\.run|train)\(", source) for source in answers)
