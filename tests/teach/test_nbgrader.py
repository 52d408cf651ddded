"""The chapters are nbgrader's sources as they are: released, graded, and answered with feedback."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from teach.wrong_answers import WRONG
from test_exercises import copy

from kscore.chapters import course, notebooks

pytestmark = pytest.mark.slow


@pytest.fixture
def nbgrader(tmp_path, monkeypatch):
    """Run nbgrader in a course folder of its own; it starts programs of its environment by their names."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    options = ["--CourseDirectory.course_id=kscore", "--Execute.timeout=600"]
    start = "import kscore.chapters; from nbgrader.apps.nbgraderapp import main; main()"  # sooner than alone

    def run(command, *arguments):
        done = subprocess.run(
            [sys.executable, "-c", start, command, "kscore", *arguments, *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
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
    for path in sorted((tmp_path / "source" / "kscore").iterdir()):
        released = notebooks.read(tmp_path / "release" / "kscore" / path.name)
        assert course.exercises(released) == course.exercises(notebooks.read(path))
        ours = {course.name(cell): cell["source"] for cell in course.student_copy(notebooks.read(path))["cells"]}
        for cell in filter(course.name, released["cells"]):
            stub = ours[course.name(cell)].replace(" SOLUTION, in place of the next line", " CODE HERE")
            assert cell["source"].replace("NotImplementedError()", "NotImplementedError").strip() == stub.strip()


@pytest.mark.long
def test_answers_get_the_points_of_their_checks_and_feedback(nbgrader, tmp_path):
    path = notebooks.find()[0]
    exercises = course.exercises(notebooks.read(path))
    wrong = [exercise.name for exercise in exercises if not exercise.read][::2]
    sources([path], tmp_path)
    nbgrader("generate_assignment", "--create")
    (tmp_path / "submitted" / "somebody" / "kscore").mkdir(parents=True)
    copy(path, tmp_path / "submitted" / "somebody" / "kscore", {name: WRONG[name] for name in wrong})
    nbgrader("autograde")
    nbgrader("generate_feedback")
    given = grades(tmp_path / "gradebook.db", path.stem, "somebody")
    assert given == {
        exercise.name: None if exercise.read else exercise.points * (exercise.name not in wrong)
        for exercise in exercises
    }
    assert {None, 0} < set(given.values())  # a right answer, a wrong one, and one for a teacher to read
    page = (tmp_path / "feedback" / "somebody" / "kscore" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert len(re.findall(r"AssertionError</span>\s+Traceback", page)) == len(wrong)


def grades(gradebook, chapter, student):
    """The points by exercise; none where a teacher has to give them."""
    with Gradebook(f"sqlite:///{gradebook}") as book:
        found = book.find_submission_notebook(chapter, "kscore", student).grades
        return {
            grade.name.removesuffix("-check"): None if grade.needs_manual_grade else grade.auto_score for grade in found
        }
