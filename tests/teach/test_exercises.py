"""Every exercise of every chapter: its solution passes, its stub fails, and so does a plausible mistake."""

import json

import pytest
from wrong_answers import WRONG

from kscore import chapters, course

each_chapter = pytest.mark.parametrize("path", chapters.chapters(), ids=lambda path: path.stem)


def names(path):
    return [exercise.name for exercise in course.exercises(chapters.read(path))]


def copy(path, folder, answers):
    """Write a filled-in copy of a chapter: its own solutions, but for some answers."""
    cells = [cell | {"source": answers.get(course.name(cell), cell["source"])} for cell in chapters.cells(path)]
    filled = folder / path.name
    filled.write_text(json.dumps(chapters.read(path) | {"cells": cells}))
    return filled


def failed(results):
    return [result.exercise.name for result in results if result.error]


def test_there_is_a_wrong_answer_for_every_exercise():
    assert list(WRONG) == [name for path in chapters.chapters() for name in names(path)]


@each_chapter
@pytest.mark.parametrize("first", [0, 1])
def test_right_and_wrong_answers_are_told_apart(path, first, tmp_path):
    wrong = names(path)[first::2]  # every second one, so that none leans on its neighbour
    results = course.check(copy(path, tmp_path, {name: WRONG[name] for name in wrong}))
    assert failed(results) == wrong, course.table(results)


@each_chapter
def test_every_stub_fails_until_it_is_solved(path, tmp_path):
    written, = course.student(tmp_path, [path.stem])
    results = course.check(written)
    assert [result.error for result in results] == ["not solved yet"] * len(names(path)), course.table(results)
