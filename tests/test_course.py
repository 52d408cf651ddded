"""The course: student copies, and the points of filled-in ones, on a small chapter made here."""

import ast
import json
import re
from types import SimpleNamespace

import pytest
from small_chapter import DOUBLE, cell, exercise

from kscore import __main__
from kscore.chapters import course, notebooks

pytestmark = pytest.mark.usefixtures("descendants")

each_chapter = pytest.mark.parametrize("path", notebooks.find(), ids=lambda path: path.stem)


def tags(one):
    return one["metadata"].get("tags", [])


def errors(results):
    return [result.error for result in results]


# Copies for students


def test_a_student_copy_has_stubs_in_place_of_solutions_and_no_hidden_tests(chapter, tmp_path):
    (path,) = course.student(tmp_path / "new" / "class")
    copy = {course.name(one): one["source"] for one in notebooks.cells(path)}
    assert path == tmp_path / "new" / "class" / "00_good.ipynb"
    assert (
        copy["00-1"]
        == '''def double(x):
    """Return twice as much."""
    # YOUR SOLUTION, in place of the next line
    raise NotImplementedError


six = 0
# YOUR SOLUTION, in place of the next line
raise NotImplementedError'''
    )
    assert copy["00-1-check"] == 'assert double(1) == 2, "twice one"\nassert six == 6'
    assert copy["00-2-check"] == "assert a == 1"


def test_a_student_copy_has_no_outputs_and_no_pair(chapter, tmp_path):
    copy = notebooks.read(course.student(tmp_path / "class")[0])
    assert all(one["outputs"] == [] and one["execution_count"] is None for one in copy["cells"])
    assert "jupytext" not in copy["metadata"]
    assert [path.name for path in (tmp_path / "class").iterdir()] == ["00_good.ipynb"]


def test_a_student_copy_has_its_answers_and_checks_open_and_no_stub_beside_them(chapter, tmp_path):
    copy, whole = notebooks.cells(*course.student(tmp_path)), notebooks.cells(chapter)
    assert [tags(one) for one in whole[2:5]] == [["stub"], ["solution", "hide-input"], ["check", "hide-input"]]
    assert whole[3]["metadata"]["jupyter"] == {"source_hidden": True}
    assert [one["id"] for one in copy] == [one["id"] for one in whole if "stub" not in tags(one)]
    assert [tags(one) for one in copy[2:4]] == [["solution"], ["check"]]
    assert not any("jupyter" in one["metadata"] for one in copy if course.name(one))
    plot = [one["metadata"] for one in copy if "plot" in one["source"]]
    assert plot == [{"tags": ["hide-input"], "jupyter": {"source_hidden": True}}]  # what only draws stays folded


def test_an_untouched_copy_is_written_again_and_a_filled_in_one_is_not(chapter, tmp_path, capsys):
    (path,) = course.student(tmp_path)
    as_run = notebooks.read(path)
    as_run["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "ran"}]
    path.write_text(json.dumps(as_run))
    chapter.write_text(chapter.read_text().replace("twice one", "two times one"))
    course.student(tmp_path)
    assert "two times one" in path.read_text()
    filled = path.read_text().replace("raise NotImplementedError", "return x + x", 1)
    path.write_text(filled)
    assert __main__.main(["course", "student", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert str(path) in told and "was worked on" in told
    assert path.read_text() == filled


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"cells": []}', '{"cells": [], "metadata": {}}'])
def test_what_is_no_student_copy_is_left_alone(chapter, tmp_path, content):
    (tmp_path / chapter.name).write_text(content)
    with pytest.raises(ValueError, match="is no student copy"):
        course.student(tmp_path)
    assert (tmp_path / chapter.name).read_text() == content


def test_the_chapters_themselves_are_never_overwritten(chapter):
    with pytest.raises(ValueError, match="is no student copy"):
        course.student(chapter.parent)


def test_no_copy_is_written_if_one_cannot_be(chapter, tmp_path):
    (chapter.parent / "01_more.ipynb").write_bytes(chapter.read_bytes())
    (tmp_path / "01_more.ipynb").write_text("mine")
    with pytest.raises(ValueError, match="01_more"):
        course.student(tmp_path)
    assert not (tmp_path / "00_good.ipynb").exists()
    assert [path.stem for path in course.student(tmp_path, ["00"])] == ["00_good"]


def test_what_was_worked_on_can_be_kept_while_the_others_are_written(chapter, tmp_path, capsys):
    (chapter.parent / "01_more.ipynb").write_bytes(chapter.read_bytes())
    (tmp_path / "01_more.ipynb").write_text("mine")
    assert __main__.main(["course", "student", str(tmp_path), "--keep"]) == 0
    assert capsys.readouterr().out == f"written into {tmp_path}: 00_good\n"
    assert (tmp_path / "01_more.ipynb").read_text() == "mine"
    assert __main__.main(["course", "student", str(tmp_path), "01", "--keep"]) == 0
    assert capsys.readouterr().out == f"written into {tmp_path}: nothing\n"


def test_an_interruption_leaves_the_old_copy(chapter, tmp_path, monkeypatch):
    (path,) = course.student(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(course, "json", SimpleNamespace(dumps=lambda *_, **__: (_ for _ in ()).throw(OSError)))
    with pytest.raises(OSError):
        course.student(tmp_path)
    assert path.read_bytes() == before


# Points


def test_a_solved_copy_gets_all_points_under_any_name(fill, capsys):
    assert __main__.main(["course", "check", str(fill({}))]) == 0
    assert (
        capsys.readouterr().out
        == """exercise  points  out of
00-1           2       2
00-2           1       1
00-3           1       1
00-4           -       3  for a teacher to read
sum            4       7
"""
    )


def without_checks(cells):
    """What a student might do to the checks: delete one, and empty the others."""
    kept = [one for one in cells if course.name(one) != "00-2-check"]
    return [one | {"source": "pass"} if course.name(one).endswith("check") else one for one in kept]


def test_what_went_wrong_is_told_whatever_became_of_the_checks(fill, capsys):
    wrong = {1: DOUBLE.replace("2 * x", "abs(2 * x)"), 2: "a = = 1", 4: "why = ''"}
    assert __main__.main(["course", "check", str(fill(wrong, without_checks))]) == 0  # it could be judged
    assert (
        capsys.readouterr().out
        == """exercise  points  out of
00-1           0       2  below zero
00-2           0       1  SyntaxError: invalid syntax (line 1)
00-3           1       1
00-4           -       3  not true: why
sum            1       7
"""
    )


def test_cells_that_a_student_added_are_executed_and_deleted_answers_are_missed(fill):
    def change(cells):
        helper = cell("def twice(x):\n    return x + x")
        kept = [one for one in cells if course.name(one) != "00-2"]
        return [*kept[:3], helper, *kept[3:]]

    results = course.check(fill({1: "def double(x):\n    return twice(x)\n\nsix = 6"}, change))
    assert errors(results) == ["", "not solved yet", "", ""]


@pytest.mark.slow
@pytest.mark.long
def test_a_loop_and_a_crash_cost_their_own_exercises_only(fill):
    def change(cells):
        return [cell("one = 1"), *cells]

    filled = fill({1: "while True:\n    print('still at it')", 2: "os.kill(os.getpid(), 9)", 3: "b = one"}, change)
    results = course.check(filled, limit=3)
    assert errors(results) == [
        "A cell timed out while it was being executed, after 3 seconds.",
        "the kernel died: killed, or out of memory",
        "",
        "",
    ]
    assert [result.points for result in results] == [0, 0, 1, 0]


def test_only_cells_of_exercises_have_a_limit(chapter):
    cells = course.assembled(notebooks.read(chapter), notebooks.read(chapter), limit=5, names=[])["cells"]
    assert [one["metadata"].get("limit") for one in cells] == [None, None, 5, 5, None, 5, 5, 5, 5, 5, 5]


def test_a_chapter_that_does_not_come_to_its_exercises_is_told(fill, chapter):
    filled = fill({})
    chapter.write_text(chapter.read_text().replace("assert size == 2", "raise ValueError('broken')"))
    results = course.check(filled)
    assert errors(results) == ["the chapter did not come so far: cell 2: ValueError: broken"] * 4


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("nothing", "is not a notebook"),
        ('{"cells": [], "metadata": {}}', "got exercises of none in"),
        (
            json.dumps({"cells": exercise(1, "a", "b") + exercise(2, "a", "b")}).replace("00-1", "77-1"),
            "got exercises of 00 and 77 in",
        ),
        (json.dumps({"cells": exercise(1, "a", "b")}).replace("00-1", "77-1"), "got exercises of 77 in"),
    ],
)
def test_a_file_that_is_no_copy_of_a_chapter_is_refused(chapter, tmp_path, capsys, content, told):
    (tmp_path / "mine.ipynb").write_text(content)
    assert __main__.main(["course", "check", str(tmp_path / "mine.ipynb")]) == 1
    said = capsys.readouterr()
    assert told in said.err and "mine.ipynb" in said.err and said.out == ""


# The chapters


@each_chapter
def test_exercises_are_numbered_and_lead_from_recall_to_open(path):
    chapter = notebooks.read(path)
    found = course.exercises(chapter)
    assert [exercise.name for exercise in found] == [f"{path.stem[:2]}-{k + 1}" for k in range(len(found))]
    assert 3 <= len(found) <= 5 and all(exercise.points > 0 for exercise in found)
    texts = "\n".join(one["source"] for one in chapter["cells"] if one["cell_type"] == "markdown")
    kinds = re.findall(r"^\*\*Exercise (\d) \((\w+)\b[^)]*\)[^*]*\.\*\*", texts, re.MULTILINE)
    assert [int(number) for number, _ in kinds] == list(range(1, len(found) + 1))
    assert kinds[0][1] in ("recall", "derive") and "open" in dict(kinds[-2:]).values()


@each_chapter
def test_every_exercise_has_a_solution_and_every_graded_one_hidden_tests(path):
    cells = {course.name(one): one for one in notebooks.cells(path) if course.name(one)}
    for one in course.exercises(notebooks.read(path)):
        answer, check = cells[one.name], cells[f"{one.name}-check"]
        assert tags(answer) == ["solution", "hide-input"] and tags(check) == ["check", "hide-input"]
        assert course.SOLUTION.search(answer["source"]) and "assert" in course.HIDDEN.sub("", check["source"])
        hidden = course.HIDDEN.search(check["source"])
        assert bool(hidden) != one.read
        tests = ast.walk(ast.parse(hidden[0])) if hidden else []
        assert all(test.msg for test in tests if isinstance(test, ast.Assert)), "it has to say what it tested"


SOLUTION = re.compile(r"^ *### BEGIN SOLUTION\n.*?### END SOLUTION *\n?", re.MULTILINE | re.DOTALL)


@each_chapter
def test_a_stub_is_followed_by_its_answer_and_that_by_its_check(path):
    cells = notebooks.cells(path)
    stubs = [place for place, one in enumerate(cells) if "stub" in tags(one)]
    names = [exercise.name for exercise in course.exercises(notebooks.read(path))]
    assert [course.name(cells[place + 1]) for place in stubs] == names
    assert [course.name(cells[place + 2]) for place in stubs] == [f"{name}-check" for name in names]
    for place in stubs:
        stub, answer = cells[place], cells[place + 1]
        assert tags(stub) == ["stub"] and not course.name(stub)
        assert stub["source"].strip() == SOLUTION.sub("", answer["source"]).strip(), course.name(answer)


@each_chapter
def test_student_copies_of_the_chapters_tell_nothing(path):
    chapter = notebooks.read(path)
    copy = course.student_copy(chapter)["cells"]
    said = "\n".join(one["source"] for one in copy)
    assert "### BEGIN" not in said and "### END" not in said and not any(one.get("outputs") for one in copy)
    for one in chapter["cells"]:
        for found in [*course.SOLUTION.finditer(one["source"]), *course.HIDDEN.finditer(one["source"])]:
            assert "\n".join(found[0].strip().splitlines()[1:-1]) not in said
