"""Every chapter: its pair in sync, its outputs published, and all of it executed, exercises and footer included."""

import ast
import base64
import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from teach.wrong_answers import WRONG

from kscore.chapters import course, notebooks, pages, parameters, runner
from kscore.chapters.status import Task
from kscore.project import ROOT

CHAPTERS = notebooks.find()
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
one_of_each_kind = pytest.mark.parametrize("path", notebooks.find(["00", "09"]), ids=["theory", "experiment"])


def code_cells(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]


def outputs(path):
    return [output for cell in code_cells(path) for output in cell.outputs]


def quick(path, folder):
    """The parameters of the quick profile, with a store of the test's own where there is one."""
    store = {"store": str(folder / "runs")} if "store" in parameters.of(path) else {}
    return parameters.profile("quick").get(path.stem, {}) | store


def test_there_are_chapters():
    assert [path.stem for path in CHAPTERS][:2] == ["00_start_here", "01_filter_derivation"]


@each_chapter
def test_the_pair_is_in_sync(path):
    pages.check_pair(path)


@each_chapter
def test_outputs_are_published_for_every_cell_in_order(path):
    counts = [cell.execution_count for cell in code_cells(path)]
    assert counts == list(range(1, len(counts) + 1)), "run `make run` and `make publish`"


@each_chapter
def test_published_outputs_are_clean(path):
    stored = outputs(path)
    assert not [output for output in stored if output.output_type == "error"]
    assert not [output for output in stored if output.get("name") == "stderr"]
    assert str(ROOT) not in nbformat.writes(nbformat.read(path, as_version=4)), "a path of one machine is published"


@each_chapter
def test_folded_cells_are_folded_in_jupyterlab_too(path):
    folded = [cell for cell in code_cells(path) if notebooks.FOLDED in cell.metadata.get("tags", [])]
    assert folded and all(cell.metadata.get("jupyter", {}).get("source_hidden") for cell in folded), "publish it again"


def test_publishing_folds_cells_and_changes_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "FIGURES", tmp_path)
    content = nbformat.read(CHAPTERS[1], as_version=4)
    for cell in content.cells:
        cell.metadata.pop("jupyter", None)
    source, executed = tmp_path / CHAPTERS[1].name, tmp_path / "executed.ipynb"
    nbformat.write(content, source)
    for count, cell in enumerate([cell for cell in content.cells if cell.cell_type == "code"], 1):
        cell.execution_count, cell.outputs = count, []
    nbformat.write(content, executed)
    pages.publish([(source, executed)])
    published = nbformat.read(source, as_version=4).cells
    for cell, before in zip(published, content.cells, strict=True):
        hidden = {"jupyter": {"source_hidden": True}} if notebooks.FOLDED in before.metadata.get("tags", []) else {}
        assert cell.metadata == before.metadata | hidden and cell.source == before.source
    test_folded_cells_are_folded_in_jupyterlab_too(source)


def test_the_readme_figure_is_the_published_one():
    tagged = [cell for cell in code_cells(CHAPTERS[11]) if "figure-file:study.png" in cell.metadata.get("tags", [])]
    picture = next(output.data["image/png"] for output in tagged[0].outputs if "image/png" in output.get("data", {}))
    assert (pages.FIGURES / "study.png").read_bytes() == base64.b64decode(picture)
    assert "notebooks/figures/study.png" in (ROOT / "README.md").read_text(encoding="utf-8")


# Parameters


@each_chapter
def test_the_parameters_cell_holds_commented_typed_literals(path):
    tagged = [cell for cell in code_cells(path) if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    for line in tagged[0].source.splitlines():
        assignment, _, comment = line.partition("#")
        name, _, kind = assignment.partition("=")[0].partition(":")
        assert name.strip().isidentifier() and kind.strip() and comment.strip(), line


def bound(code):
    """The names that code binds at the level of its module: what functions, classes and lambdas bind is their own."""
    found = set()

    def visit(node):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            for outside in (*node.decorator_list, *getattr(node, "bases", [])):
                visit(outside)
            found.update(name for inner in ast.walk(node) if isinstance(inner, ast.Global) for name in inner.names)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            found.update(inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            found.update(getattr(node, field) for field in ("name", "rest") if isinstance(getattr(node, field, 0), str))
            for child in ast.iter_child_nodes(node):
                visit(child)

    visit(ast.parse(code))
    return found


@pytest.mark.parametrize(
    "code",
    [
        "p = 1",
        "p: int = 1",
        "p += 1",
        "a, (p, b) = c",
        "for p in c: pass",
        "with a as p: pass",
        "import p",
        "import p.q",
        "import a as p",
        "from a import p",
        "def p(): pass",
        "class p: pass",
        "del p",
        "a = [b for b in c if (p := b)]",
        "if a:\n    p = 1",
        "try:\n    a\nexcept E as p:\n    pass",
        "def f():\n    global p\n    p = 1",
        "match a:\n    case [p, *_]:\n        pass",
        "match a:\n    case {**p}:\n        pass",
    ],
)
def test_what_binds_a_name_at_the_level_of_a_module_is_known(code):
    assert "p" in bound(code)


@pytest.mark.parametrize(
    "code",
    [
        "a = p",
        "p.q = 1",
        "p[0] = 1",
        "f(p=1)",
        "[p for p in c]",
        "{p: p for p in c}",
        "lambda p: p",
        "def f(p):\n    p = 1",
        "class A:\n    p = 1",
        "import a.p",
        "from p import a",
        "import p as a",
    ],
)
def test_what_does_not_bind_it_there_is_known_too(code):
    assert "p" not in bound(code)


@each_chapter
def test_no_cell_but_the_parameters_cell_sets_a_parameter(path):
    """The footer prints the values that parameters have at the end, as those that the chapter was run with."""
    others = [cell for cell in code_cells(path) if "parameters" not in cell.metadata.get("tags", [])]
    sources = [cell.source for cell in others]
    changed = [(name, source) for source in sources for name in bound(source) & set(parameters.of(path))]
    assert not changed


# Executing: the whole of every chapter, once

TRIAL = """def _tried(answer):
    errors = []
    for code in (answer, {check!r}):
        try:
            exec(code, globals())
        except Exception as error:
            errors.append(f"{{type(error).__name__}}: {{error}}")
        else:
            errors.append("")
    return errors[1] and (errors[0] or errors[1])

_errors = [_tried(answer) for answer in {answers!r}]
exec({left!r}, globals())
print("\\n" + __import__("json").dumps(_errors))"""


def attempted(chapter):
    """A chapter whose answers are given three times over, each with its check after it: as the stub, wrong, and right.

    What stays is the wrong answer, so that no later exercise, and no other cell, can lean on a right one.
    """
    stubs = {course.name(cell): cell["source"] for cell in course.student_copy(chapter)["cells"]}
    sources = {course.name(cell): cell["source"] for cell in chapter["cells"]}
    cells = []
    for cell in chapter["cells"]:
        name = course.name(cell)
        if course.is_answer(cell):
            answers = [stubs[name], WRONG[name], sources[name]]
            code = TRIAL.format(check=sources[f"{name}-check"], answers=answers, left=WRONG[name])
            cells.append(cell | {"source": code, "metadata": {"trial": name}})
        elif not name:
            cells.append(cell)
    return chapter | {"cells": cells}


def judged(cell):
    """What went wrong in the three attempts of a trial: nothing if the check passed, or else the first error."""
    printed = "".join(text for output in cell["outputs"] if output.get("name") == "stdout" for text in output["text"])
    return json.loads(printed.splitlines()[-1])


@pytest.mark.long
@each_chapter
def test_a_chapter_runs_to_its_end_and_tells_right_answers_from_wrong_ones(path, tmp_path, subtests):
    chapter, given = notebooks.read(path), quick(path, tmp_path)
    (tmp_path / "assembled").mkdir()
    task = Task(tmp_path / "assembled" / path.name, tmp_path / "out" / path.name, given)
    task.source.write_text(json.dumps(attempted(chapter)))
    (outcome,) = runner.run([task], tmp_path / "out")
    assert outcome.status == "ok", (outcome.cell, outcome.error)
    cells = notebooks.cells(task.target)
    trials = {cell["metadata"]["trial"]: cell for cell in cells if "trial" in cell["metadata"]}
    assert list(trials) == [exercise.name for exercise in course.exercises(chapter)]
    for name, cell in trials.items():
        with subtests.test("the exercise is judged", exercise=name):
            stub, wrong, right = judged(cell)
            assert stub.startswith("NotImplementedError") and wrong.startswith("AssertionError") and not right
    with subtests.test("all figures have words for those who cannot see them"):
        all_outputs = [output for cell in cells for output in cell.get("outputs", [])]
        shown = [output for output in all_outputs if "image/png" in output.get("data", {})]
        assert shown and all(len(output["metadata"]["image/png"].get("alt", "")) > 20 for output in shown)
    with subtests.test("the footer has all parameters"):
        said = "".join(cells[-1]["outputs"][-1]["data"]["text/markdown"])
        values = {name: parameter.default for name, parameter in parameters.of(path).items()} | given
        assert values and not [name for name, value in values.items() if f"`{name} = {value!r}`" not in said], said


# The other ways of use


@pytest.mark.long
@one_of_each_kind
def test_it_runs_with_papermill_alone_from_anywhere(path, tmp_path):
    given = [word for name, value in quick(path, tmp_path).items() for word in ("-p", name, str(value))]
    command = [sys.executable, "-m", "papermill", str(path), "out.ipynb", "-k", "python3", *given]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    assert not [output for output in outputs(tmp_path / "out.ipynb") if output.output_type == "error"]


@pytest.mark.long
@one_of_each_kind
def test_it_runs_as_a_plain_script_from_anywhere(path, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(edited(path.with_suffix(".py").read_text(encoding="utf-8"), quick(path, tmp_path)))
    environment = os.environ | {"MPLBACKEND": "Agg"}
    run = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()[-2000:]


def edited(script, values):
    """A script with other values in its parameters cell, as a reader would write them there."""
    for name, value in values.items():
        script, count = re.subn(
            rf"^({name}: [\w\[\]]+ = ).*$", lambda line, value=value: f"{line[1]}{value!r}", script, flags=re.MULTILINE
        )
        assert count == 1
    return script
