"""The chapters are nbgrader's sources as they are: released, graded, and answered with feedback."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from teach.wrong_answers import WRONG
from test_exercises import copy, names

from kscore.chapters import course, notebooks


@pytest.fixture
def nbgrader(tmp_path, monkeypatch):
    """Run nbgrader in a course folder of its own; it starts programs of its environment by their names."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    options = ["--CourseDirectory.course_id=kscore", "--Execute.timeout=600"]

    def run(command, *arguments):
        done = subprocess.run([sys.executable, "-m", "nbgrader", command, "kscore", *arguments, *options], cwd=tmp_path,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]

    return run


def sources(paths, folder):
    """Copy chapters, unchanged, to where nbgrader looks for them."""
    (folder / "source" / "kscore").mkdir(parents=True)
    for path in paths:
        shutil.copy(path, folder / "source" / "kscore")


@pytest.mark.long
def test_every_chapter_is_released_without_solutions_and_hidden_tests(nbgrader, tmp_path):
    sources(notebooks.find(), tmp_path)
    nbgrader("generate_assignment", "--create")
    for path in notebooks.find():
        released = notebooks.read(tmp_path / "release" / "kscore" / path.name)
        assert course.exercises(released) == course.exercises(notebooks.read(path))
        ours = {course.name(cell): cell["source"] for cell in course.student_copy(notebooks.read(path))["cells"]}
        for cell in filter(course.name, released["cells"]):
            stub = ours[course.name(cell)].replace(" SOLUTION, in place of the next line", " CODE HERE")
            assert cell["source"].replace("NotImplementedError()", "NotImplementedError").strip() == stub.strip()


@pytest.mark.long
def test_answers_get_the_points_of_their_checks_and_feedback(nbgrader, tmp_path):
    path = notebooks.find()[0]
    wrong = [exercise.name for exercise in course.exercises(notebooks.read(path)) if not exercise.read][::2]
    sources([path], tmp_path)
    nbgrader("generate_assignment", "--create")
    for student, answers in {"right": {}, "mixed": {name: WRONG[name] for name in wrong}}.items():
        (tmp_path / "submitted" / student / "kscore").mkdir(parents=True)
        copy(path, tmp_path / "submitted" / student / "kscore", answers)
    nbgrader("autograde")
    nbgrader("generate_feedback")
    for student, failed in {"right": [], "mixed": wrong}.items():
        given = grades(tmp_path / "gradebook.db", path.stem, student)
        assert given == {exercise.name: None if exercise.read else exercise.points * (exercise.name not in failed)
                         for exercise in course.exercises(notebooks.read(path))}
        page = (tmp_path / "feedback" / student / "kscore" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert ("AssertionError" in page) == bool(failed)
    assert len(wrong) < len(names(path))


def grades(gradebook, chapter, student):
    """The points by exercise; none where a teacher has to give them."""
    with Gradebook(f"sqlite:///{gradebook}") as book:
        found = book.find_submission_notebook(chapter, "kscore", student).grades
        return {grade.name.removesuffix("-check"): None if grade.needs_manual_grade else grade.auto_score
                for grade in found}
