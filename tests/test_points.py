"""Points are for answers: not for what an answer does to its check, to the table, or to the disk of whoever grades."""

import errno
import json
import os
import subprocess
import sys

import pytest

from kscore import __main__
from kscore.chapters import course, notebooks, runner
from kscore.chapters.judge import proof
from kscore.chapters.status import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("descendants")]

SOLUTION = "### BEGIN SOLUTION\na{0} = 1\n### END SOLUTION"
CHECK = "assert a{0} == 1, 'one'\nseen = True"


def cell(source, **metadata):
    return {
        "cell_type": "code",
        "id": os.urandom(4).hex(),
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def exercise(number, answer, check):
    mark = {"schema_version": 3, "task": False}
    first = mark | {"grade_id": f"00-{number}", "grade": False, "locked": False, "solution": True}
    second = mark | {"grade_id": f"00-{number}-check", "grade": True, "locked": True, "solution": False, "points": 1}
    return [cell(answer, nbgrader=first), cell(check, nbgrader=second)]


@pytest.fixture
def hand_in(collection, tmp_path):
    """Write a chapter whose exercises ask for a1 = 1, a2 = 1 and so on, and a copy of it with answers to them.

    An answer that has to be judged by another check than its number comes with it, as a pair.
    """

    def write(*answers, before="import numpy as np"):
        pairs = [(one, CHECK) if isinstance(one, str) else one for one in answers]
        chapter, handed_in = [cell(before)], []
        for number, (answer, check) in enumerate(pairs, 1):
            chapter += exercise(number, SOLUTION.format(number), check.format(number))
            handed_in += exercise(number, answer, "pass")
        about = {
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        (collection / "00_good.ipynb").write_text(json.dumps({"cells": chapter, **about}))
        (collection / "profiles.toml").write_text("[quick]\n")
        path = tmp_path / "handed in.ipynb"
        path.write_text(json.dumps({"cells": handed_in, **about}))
        return path

    return write


def points(copy):
    return [result.points for result in course.check(copy)]


# Tricks; in each test the last answer is right, and has its point all the same

DROP = """import ast
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
    visit_If = visit_Raise = visit_Assert
get_ipython().ast_transformers.append(Drop())"""

CUT = """def cut(lines):
    return ["pass\\n" if line.lstrip().startswith(("assert", "raise")) else line for line in lines]
get_ipython().input_transformers_cleanup.append(cut)
get_ipython().input_transformers_post.append(cut)"""


def test_hiding_errors_from_the_notebook_gives_no_points(hand_in):
    copy = hand_in(
        "get_ipython().set_custom_exc((Exception,), lambda *_, **__: None)",
        "import sys\nget_ipython().set_custom_exc((Exception,), lambda *_, **__: sys.exit(0))",
        "get_ipython().set_custom_exc((Exception,), lambda: None)",  # for which IPython shows the check's own cell
        "get_ipython().showtraceback = get_ipython()._showtraceback = lambda *_, **__: None",
        "a5 = 1",
    )
    results = course.check(copy)
    assert [result.points for result in results] == [0, 0, 0, 0, 1]
    assert results[0].error == "its check did not come to its end"


def test_dropping_asserts_from_cells_gives_no_points(hand_in):
    assert points(hand_in(f"{DROP}\na1 = 0", f"{CUT}\na2 = 0", "a3 = 1")) == [0, 0, 1]


SKIP = """import sys
def skip(frame, event, _):
    if event == "line" and frame.f_lineno == 1:
        try:
            frame.f_lineno = 2
        except ValueError:
            pass
    return skip
sys.settrace(skip)
a{0} = 0"""
ALL = "assert all([a{0} == 1]), 'one'"
CLOSE = "assert np.allclose(a{0}, 1), 'one'"


def test_what_a_check_uses_is_what_the_chapter_and_python_gave_it(hand_in):
    copy = hand_in(
        "import builtins\nbuiltins.AssertionError = SystemExit\na1 = 0",
        ("import builtins\nbuiltins.all = lambda _: True\na2 = 0", ALL),
        ("all = lambda _: True\na3 = 0", ALL),
        ("import builtins\n__builtins__ = dict(vars(builtins), all=lambda _: True)\na4 = 0", ALL),
        ("np.allclose = lambda *_: True\na5 = 0", CLOSE),
        ("class np:\n    allclose = lambda *_: True\na6 = 0", CLOSE),
        ("a7 = 0", CLOSE),  # nor does what was done to an earlier check help a later one
        SKIP.format(8),
        ("one = 3\nall = 2\ndef a9():\n    return all - 1", "assert a9() == one and all([a9()]), 'one'"),
        before="import numpy as np\none = 1",
    )
    assert points(copy) == [0] * 8 + [1]


def test_a_check_sees_what_cells_between_exercises_have_made_of_a_name(hand_in, collection):
    copy = hand_in("size = 7\na1 = 1", ("size = 8\na2 = 1", "assert size == 2 and double == 4"), before="size = 1")
    path = collection / "00_good.ipynb"
    content = notebooks.read(path)
    content["cells"].insert(3, cell("assert seen\nsize = 2\ndouble = 2 * size"))
    path.write_text(json.dumps(content))
    assert points(copy) == [1, 1]


def test_an_untouched_copy_has_no_points_where_python_leaves_asserts_out(hand_in, tmp_path, monkeypatch):
    hand_in("a1 = 0")
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    assert points(*course.student(tmp_path / "class")) == [0]


def test_the_judge_keeps_asserts_in_a_kernel_that_leaves_them_out():
    code = (
        "from kscore.chapters.judge import JUDGE\nassert False, 'left out'\nJUDGE.remember(globals())\n"
        "JUDGE.check(globals(), 'assert a == 1, a', ['a'], 'secret')"
    )
    tried = {
        a: subprocess.run([sys.executable, "-O", "-c", f"a = {a}\n{code}"], capture_output=True, text=True)
        for a in (0, 1)
    }
    assert tried[0].returncode == 1 and "AssertionError: 0" in tried[0].stderr and not tried[0].stdout
    assert tried[1].returncode == 0 and tried[1].stdout == proof("secret")


# The table

FALSE_SUM = "sum            9       9"


def test_what_an_answer_says_stays_in_its_line(hand_in, capsys):
    copy = hand_in(
        f"raise ValueError('wrong\\n{FALSE_SUM}')",
        f"raise AssertionError('wrong\\r{FALSE_SUM}\\v\\f\\x85\\u2028end')",
        "raise ValueError('\\x1b[31mred\\x1b[0m\\x1b[1A\\x1b]0;title\\x07 \\u202e987\\u2066\\x00\\x9b2K')",
        "raise type('Long\\n', (Exception,), {})(1000 * 'x')",
        "assert False",
        "raise ValueError('\\ud800')",
        "raise AssertionError('\\x00\\u200b')",
    )
    assert __main__.main(["course", "check", str(copy)]) == 0
    out = capsys.readouterr().out
    lines = out.removesuffix("\n").split("\n")
    assert [line[:24] for line in lines] == [
        "exercise  points  out of",
        *(f"00-{k}           0       1" for k in range(1, 8)),
        "sum            0       7",
    ]
    assert all(line.isprintable() and len(line) <= 226 for line in lines)
    assert lines[1].endswith("  ValueError: wrong sum 9 9") and lines[2].endswith("  wrong sum 9 9 end")
    assert "  ValueError: red " in lines[3]
    assert lines[5].endswith("  an assert of the answer is not true")
    assert lines[7].endswith("  an error without words")


def test_nor_does_the_name_of_an_exercise_say_more_than_a_line(hand_in, capsys):
    copy = hand_in("a1 = 1", "a2 = 1")
    copy.write_text(copy.read_text().replace("00-2", f"\\u202e\\r{FALSE_SUM}-2"))
    assert __main__.main(["course", "check", str(copy)]) == 1
    assert capsys.readouterr().err.removesuffix("\n").isprintable()


@pytest.mark.parametrize("broken", [{}, {"metadata": 1}, {"metadata": {"nbgrader": 1}}])
def test_a_copy_with_broken_cells_is_refused(tmp_path, capsys, broken):
    path = tmp_path / "mine.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "a1 = 1"} | broken], "metadata": {}}))
    assert __main__.main(["course", "check", str(path)]) == 1
    assert capsys.readouterr().err == f"{path}: not judged: mine.ipynb is not a notebook (1 of 1)\n"


# The machine

FULL = os.strerror(errno.ENOSPC)


def test_a_copy_that_cannot_be_written_is_told_without_a_table(hand_in, monkeypatch, capsys):
    copy = hand_in("a1 = 1")
    monkeypatch.setattr(course, "_write", lambda _, path: (_ for _ in ()).throw(OSError(errno.ENOSPC, FULL, str(path))))
    assert __main__.main(["course", "check", str(copy)]) == 1
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith(f"{copy}: not judged: {FULL}: ")


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        (4, f"{FULL}: executed.ipynb"),
        (None, "RuntimeError: Kernel died before replying"),
        (1, f"OSError: [Errno {errno.ENOSPC}] {FULL}"),
    ],
    ids=["in an answer", "before any cell", "in the chapter"],
)
def test_what_the_machine_refuses_is_told_without_a_table(hand_in, monkeypatch, capsys, cell, error):
    copy = hand_in("a1 = 1", "a2 = 1")
    monkeypatch.setattr(runner, "supervise", lambda task, **_: Outcome(task.name, "failed", 1.0, error, cell))
    assert __main__.main(["course", "check", str(copy)]) == 1
    told = capsys.readouterr()
    assert told.out == "" and f"{copy}: not judged: the copy could not be executed: {error} (1 of 1)\n" == told.err


def test_a_notebook_that_cannot_be_saved_costs_no_points(hand_in, command_line):
    copy = hand_in("a1 = 1", "a2 = 1\nprint(100_000 * 'long ')")
    small = ("bash", "-c", 'ulimit -f 64; exec "$@"', "bash")  # no file of more than 64 kB can be written
    out, err = command_line("course", "check", copy, before=small).communicate(timeout=120)
    assert out == "" and os.strerror(errno.EFBIG) in err.splitlines()[-1]


def test_files_that_an_answer_does_not_find_are_its_own_trouble(hand_in):
    results = course.check(hand_in("a1 = 1", ("def a2():\n    open('no such file')", "a2()")))
    assert [result.error for result in results] == [
        "",
        "FileNotFoundError: [Errno 2] No such file or directory: 'no such file'",
    ]
