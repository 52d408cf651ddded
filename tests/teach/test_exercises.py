"""The exercises of a real chapter, through the course's own way; that of every chapter is in test_notebooks."""

import json

import pytest
from teach.wrong_answers import WRONG

from kscore.chapters import course, notebooks


def names(path):
    return [exercise.name for exercise in course.exercises(notebooks.read(path))]


def copy(path, folder, answers):
    """Write a filled-in copy of a chapter: its own solutions, but for some answers."""
    cells = [cell | {"source": answers.get(course.name(cell), cell["source"])} for cell in notebooks.cells(path)]
    filled = folder / path.name
    filled.write_text(json.dumps(notebooks.read(path) | {"cells": cells}))
    return filled


def test_there_is_a_wrong_answer_for_every_exercise():
    assert list(WRONG) == [name for path in notebooks.find() for name in names(path)]


@pytest.mark.long
def test_a_filled_in_copy_gets_the_points_of_its_right_answers(tmp_path):
    (path,) = notebooks.find(["01"])
    first, second, third, last = names(path)
    stub = {course.name(cell): cell["source"] for cell in course.student_copy(notebooks.read(path))["cells"]}[last]
    results = course.check(copy(path, tmp_path, {second: WRONG[second], last: stub}))
    assert [result.exercise.name for result in results if not result.error] == [first, third], course.table(results)
    assert [result.error for result in results][-1] == "not solved yet"
    assert [result.points > 0 for result in results] == [True, False, True, False]
