"""A chapter with exercises, small enough to be judged in seconds."""

import uuid


def exercise(number, answer, check, points=1, read=False):
    """The cells of an exercise: a stub, and two with nbgrader's marks."""
    common = {"schema_version": 3, "task": False}
    first = common | {"grade_id": f"00-{number}", "grade": read, "locked": False, "solution": True}
    second = common | {"grade_id": f"00-{number}-check", "grade": not read, "locked": True, "solution": False}
    (first if read else second)["points"] = points
    return [
        cell(f"stub = {number}", tags=["stub"]),
        cell(answer, nbgrader=first, **folded("solution")),
        cell(check, nbgrader=second, **folded("check")),
    ]


def folded(*tags):
    """The metadata of a folded cell."""
    return {"tags": [*tags, "hide-input"], "jupyter": {"source_hidden": True}}


def cell(source, **metadata):
    """A code cell that has been executed."""
    return {
        "cell_type": "code",
        "id": uuid.uuid4().hex[:8],
        "metadata": metadata,
        "source": source,
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "hello"}],
        "execution_count": 7,
    }


DOUBLE = '''def double(x):
    """Return twice as much."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


six = 0
### BEGIN SOLUTION
six = double(3)
### END SOLUTION'''
DOUBLED = """assert double(1) == 2, "twice one"
assert six == 6
### BEGIN HIDDEN TESTS
assert double(-1) == -2, "below zero"
### END HIDDEN TESTS"""
TEXT = 'why = ""\n### BEGIN SOLUTION\nwhy = "because"\n### END SOLUTION'


def content():
    """A chapter with four exercises, the last of them for a teacher to read."""
    cells = [
        cell("size: int = 1  # how many", tags=["parameters"]),
        cell("import os\nassert size == 2"),
        *exercise(1, DOUBLE, DOUBLED, points=2),
        cell("'a plot'", **folded()),
        *exercise(2, "a = 0\n### BEGIN SOLUTION\na = 1\n### END SOLUTION", "assert a == 1"),
        *exercise(3, "b = 0\n### BEGIN SOLUTION\nb = 1\n### END SOLUTION", "assert b == 1, 'b is one'"),
        *exercise(4, TEXT, "assert why", points=3, read=True),
        cell("raise SystemError('not for students')"),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "jupytext": {"formats": "ipynb,py:percent"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
