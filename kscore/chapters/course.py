"""The course: copies of the chapters for students, and points for the exercises of a copy that has been filled in.

An exercise is a stub, for readers, and two cells that carry nbgrader's marks, folded where they are read. The answer,
`NN-k`, has its solution between `### BEGIN SOLUTION` and `### END SOLUTION`. The check, `NN-k-check`, follows it; what
students do not get to see of it stands between `### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS`. Where the points
are on the answer, a teacher reads it, and the check looks at its form only.

Points are no proof against cheating. A check runs in the kernel of the answers, because it calls what they define: code
that is written against this module can forge any result, and the solutions are public. `Judge` guards against tricks
that work on checks in general.
"""

import ast
import errno
import functools
import json
import os
import re
import secrets
import symtable
import tempfile
import unicodedata
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kscore import paths
from kscore.chapters import judge, notebooks, parameters, runner
from kscore.chapters.status import Outcome, Task

SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION *$", re.MULTILINE | re.DOTALL)
STUB = r"\1# YOUR SOLUTION, in place of the next line\n\1raise NotImplementedError"
HIDDEN = re.compile(r"\n*^ *### BEGIN HIDDEN TESTS\n.*?### END HIDDEN TESTS *$", re.MULTILINE | re.DOTALL)
Supervisor = Callable[[Task], Outcome]


class Exercise(NamedTuple):
    """One exercise of a chapter."""

    name: str  # "01-3" is the third of chapter 01
    points: float
    read: bool  # whether a teacher reads the answer and gives the points


class Result(NamedTuple):
    """How an exercise went."""

    exercise: Exercise
    error: str  # what went wrong; empty if the check passed

    @property
    def points(self) -> float:
        """The points that the check gives: all or none; none where a teacher has to read."""
        return 0 if self.error or self.exercise.read else self.exercise.points


# Marks


def name(cell: dict) -> str:
    """Return the name that a cell has as an answer or a check; any other has none."""
    return str(_mark(cell).get("grade_id", ""))


def is_answer(cell: dict) -> bool:
    """Say whether a cell is for students to write into."""
    return bool(_mark(cell).get("solution"))


def _is_stub(cell: dict) -> bool:
    """Say whether a cell shows readers what to write; students have it in the answer."""
    return "stub" in cell["metadata"].get("tags", [])


def _mark(cell: dict) -> dict:
    return cell["metadata"].get("nbgrader", {})


def exercises(chapter: dict) -> list[Exercise]:
    """Return the exercises of a chapter, in their order."""
    marks = {name(cell): _mark(cell) for cell in chapter["cells"] if name(cell)}
    return [
        Exercise(answer, (mark if mark["grade"] else marks[f"{answer}-check"])["points"], mark["grade"])
        for answer, mark in marks.items()
        if mark["solution"]
    ]


# Copies for students


def student(out: Path, patterns: Iterable[str] = (), keep: bool = False) -> list[Path]:
    """Write student copies of chapters into a folder and return their paths.

    If one that is there was worked on, it is kept and the others are written, where that is wanted; or else none is.
    """
    paths.place("out", out)
    copies = {out / source.name: student_copy(notebooks.read(source)) for source in notebooks.find(patterns)}
    worked_on = [path for path in copies if path.exists() and not _untouched(path)]
    if worked_on and not keep:
        raise ValueError(
            f"out must not hold work of others, but {worked_on[0]} was worked on, or is no student copy: "
            "move it away, name the other chapters, choose another folder, or --keep it"
        )
    copies = {path: copy for path, copy in copies.items() if path not in worked_on}
    out.mkdir(parents=True, exist_ok=True)
    for path, copy in copies.items():
        with paths.whole(path) as draft:
            _write(copy, draft)
    return list(copies)


def student_copy(chapter: dict) -> dict:
    """Return a chapter without its solutions, hidden tests and outputs, and paired with no text file."""
    cells = [_for_students(cell) for cell in chapter["cells"] if not _is_stub(cell)]
    kept = {key: value for key, value in chapter["metadata"].items() if key != "jupytext"}
    return chapter | {"cells": cells, "metadata": kept | {notebooks.COPY_MARK: notebooks.digest(cells)}}


def _for_students(cell: dict) -> dict:
    bare = {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {}
    if name(cell):
        bare["metadata"] = notebooks.unfolded(cell["metadata"])
    return cell | bare | {"source": HIDDEN.sub("", SOLUTION.sub(STUB, cell["source"]))}


def _untouched(path: Path) -> bool:
    """Say whether a file is a student copy and says what it said when it was written; outputs do not count."""
    try:
        return notebooks.read(path)["metadata"][notebooks.COPY_MARK] == notebooks.fingerprint(path)
    except (ValueError, KeyError, TypeError):
        return False


def _write(notebook: dict, path: Path) -> None:
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# Points for a copy


def check(copy: Path, limit: int = 60, supervise: Supervisor | None = None) -> list[Result]:
    """Execute the answers of a copy with the chapter's own checks, in a process of its own, and say how each went.

    An exercise in which a cell takes more than `limit` seconds, or which ends the kernel, has failed; the others have
    not. The chapter's own cells have the parameters of its quick profile, and no limit. Where the machine fails, and
    not the copy, nothing is said about the exercises: an OSError is raised. `supervise` is `runner.supervise` unless
    somebody wants to watch, or to stop, the work.
    """
    runner.need_packages()
    answers = notebooks.read(copy)
    source = _chapter_of(answers, copy)
    found = exercises(notebooks.read(source))
    execute = functools.partial(_execute, stem=source.stem, supervise=supervise or runner.supervise)
    errors = _errors(source, answers, limit, [exercise.name for exercise in found], execute)
    return [Result(exercise, _shown(errors[exercise.name])) for exercise in found]


def _errors(
    source: Path, copy: dict, limit: int, names: list[str], execute: Callable[[dict], tuple[list[dict], Outcome]]
) -> dict[str, str]:
    """Execute the named answers of a copy and return what went wrong in each; one by one if they do not end well."""
    chapter = notebooks.read(source)
    together, proofs = _guarded(assembled(chapter, copy, limit, names), chapter)
    cells, outcome = execute(together)
    if cells:
        return {exercise: _error(cells, exercise, proofs[exercise]) for exercise in names}
    begun = ["exercise" in cell["metadata"] for cell in together["cells"][: outcome.cell or 0]]
    if _is_trouble(outcome, any(begun)):
        raise OSError(f"the copy could not be executed: {outcome.error or 'it ended before its last check'}")
    if not begun[-1]:
        place = [cell["id"] for cell in chapter["cells"]].index(together["cells"][len(begun) - 1]["id"]) + 1
        return dict.fromkeys(names, f"the chapter did not come so far: cell {place}: {outcome.error}")
    if len(names) == 1:
        return {names[0]: outcome.error}
    return {exercise: _errors(source, copy, limit, [exercise], execute)[exercise] for exercise in names}


def _is_trouble(outcome: Outcome, answered: bool) -> bool:
    """Say whether the machine is to blame: it refused something to us, or to the chapter before any answer."""
    refusals = {os.strerror(code) for code in errno.errorcode}
    return not outcome.cell or outcome.error.split(": ")[0] in refusals or not answered and ": [Errno " in outcome.error


def _chapter_of(copy: dict, path: Path) -> Path:
    """Return the chapter that a copy belongs to, by the names of its answers."""
    try:
        numbers = sorted({name(cell).split("-")[0] for cell in copy["cells"] if is_answer(cell)})
    except (KeyError, TypeError, AttributeError):  # there are cells without metadata, or with something else in it
        raise ValueError(f"{path.name} is not a notebook") from None
    chapters = {chapter.stem.split("_")[0]: chapter for chapter in notebooks.find()}
    if len(numbers) != 1 or numbers[0] not in chapters:
        raise ValueError(
            f"file must be a copy of one chapter, as `kscore course student` writes it, got exercises of "
            f"{in_a_line(' and '.join(numbers))[:40] or 'none'} in {path}"
        )
    return chapters[numbers[0]]


def assembled(chapter: dict, copy: dict, limit: int, names: Collection[str]) -> dict:
    """Return a chapter up to its last check, with the named answers of a copy and the stubs of all others.

    All else is the chapter's, whatever the copy made of it. Cells that a student has added run before the answer or the
    check that they precede.
    """
    stubs = {name(cell): [cell] for cell in student_copy(chapter)["cells"] if is_answer(cell)}
    answers, added = _given(chapter, copy)
    answers = stubs | {key: own for key, own in answers.items() if key in names}
    cells = []
    for cell in chapter["cells"]:
        own = added.get(name(cell), []) + answers.get(name(cell), []) if name(cell) else []
        cells += [_may_fail(one, name(cell), limit) for one in own]
        if not is_answer(cell) and not _is_stub(cell):
            cells.append(_may_fail(cell, name(cell), limit, check=True) if name(cell) else cell)
    last = max(index for index, cell in enumerate(cells) if "exercise" in cell["metadata"])
    return chapter | {"cells": cells[: last + 1]}


def _given(chapter: dict, copy: dict) -> tuple[dict[str, list[dict]], dict[str, list[dict]]]:
    """Return a student's answers by their names, and what was added, by the name of the answer or check after it."""
    known = {cell["id"] for cell in chapter["cells"]} | {cell["source"] for cell in student_copy(chapter)["cells"]}
    answers, added, waiting = {}, {}, []
    for cell in copy["cells"]:
        if name(cell):
            answers.setdefault(name(cell), []).extend([cell] * is_answer(cell))
            added.setdefault(name(cell), []).extend(waiting)
            waiting = []
        elif cell.get("cell_type") == "code" and not {str(cell.get("id")), cell["source"]} & known:
            waiting.append(cell)
    return answers, added


def _may_fail(cell: dict, of: str, limit: int, check: bool = False) -> dict:
    """Return a cell of an exercise as new, after whose failure the next one is executed all the same."""
    metadata = {"tags": ["raises-exception"], "exercise": of.removesuffix("-check"), "limit": limit, "check": check}
    return {
        "cell_type": "code",
        "id": uuid.uuid4().hex[:8],
        "source": cell["source"],
        "outputs": [],
        "execution_count": None,
        "metadata": metadata,
    }


def _guarded(together: dict, chapter: dict) -> tuple[dict, dict[str, str]]:
    """Return an assembled notebook whose checks are left to the judge, and what each says once all of it has passed."""
    cells, proofs, answers = [], {}, _bound(chapter)
    for cell in together["cells"]:
        mark = cell["metadata"]
        if "exercise" in mark and mark["exercise"] not in proofs:
            secret = secrets.token_hex()
            proofs[mark["exercise"]] = judge.proof(secret)
            cells.append(cell | {"id": uuid.uuid4().hex[:8], "source": _ask("remember")})
        if mark.get("check"):
            cell = cell | {"source": _ask("check", _with_messages(cell["source"]), answers, secret)}
        cells.append(cell)
    return together | {"cells": cells}, proofs


def _ask(what: str, *arguments: object) -> str:
    """Return code that asks the judge for something: one expression, in which nobody finds an assert to drop."""
    given = ", ".join(["globals()", *map(repr, arguments)])
    return f"__import__({judge.__name__!r}, fromlist=['JUDGE']).JUDGE.{what}({given})"


def _with_messages(check: str) -> str:
    """Return a check in which every assert says what it tested."""
    tree = ast.parse(check)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.msg is None:
            node.msg = ast.Constant(f"not true: {ast.get_source_segment(check, node.test)}")
    return ast.unparse(tree)


def _bound(chapter: dict) -> list[str]:
    """Return the names that the answers of a chapter give something to."""
    code = "\n".join(cell["source"] for cell in chapter["cells"] if is_answer(cell))
    return [
        symbol.get_name() for symbol in symtable.symtable(code, "answers", "exec").get_symbols() if symbol.is_assigned()
    ]


def _execute(together: dict, stem: str, supervise: Supervisor) -> tuple[list[dict], Outcome]:
    """Execute a notebook; return its cells, none if it did not come to its end, and how it ended, in its own cells."""
    quick = parameters.profile("quick").get(stem, {})
    with tempfile.TemporaryDirectory(prefix="k") as folder:
        task = Task(Path(folder) / "copy.ipynb", Path(folder) / "executed.ipynb", quick)
        _write(together, task.source)
        outcome, cells = supervise(task), []
        if outcome.status == "interrupted":
            raise InterruptedError(outcome.error)
        with suppress(OSError, ValueError):  # what did not end may have left nothing, or half a notebook
            cells = notebooks.cells(task.target)
    ended = any(cell["id"] == together["cells"][-1]["id"] and cell["execution_count"] for cell in cells)
    return cells if ended else [], outcome


def _error(cells: list[dict], exercise: str, proof: str) -> str:
    """Return what went wrong in an exercise: nothing if its check came to its end, or else the first error."""
    outputs = [cell["outputs"] for cell in cells if cell["metadata"].get("exercise") == exercise]
    errors = [[output for output in own if output["output_type"] == "error"] for own in outputs]
    said = "".join(text for output in outputs[-1] if output["output_type"] == "stream" for text in output["text"])
    if proof in said and not errors[-1]:
        return ""
    return next((_told(own[0]) for own in errors if own), "its check did not come to its end")


def _told(error: dict) -> str:
    kind, text = error["ename"], re.sub(r"\(\d+\.py, ", "(", error["evalue"].strip())  # cells have files with no name
    if kind == "NotImplementedError":
        return "not solved yet"
    if kind == "AssertionError":
        return text or "an assert of the answer is not true"
    return f"{kind}: {text}"


def _shown(error: str) -> str:
    """Return an error in a line; one that has nothing to show is still an error."""
    return error and (in_a_line(error) or "an error without words")


def in_a_line(text: str) -> str:
    """Return what somebody else wrote as a short line: nothing in it moves the cursor, or the letters around it."""
    plain = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text)  # colours
    shown = "".join(" " if unicodedata.category(letter)[0] == "C" else letter for letter in plain)
    return " ".join(shown.split())[:200]


def table(results: list[Result]) -> str:
    """Return the results as an aligned table of exercise, points, what they are out of, and what went wrong."""
    lines = ["exercise  points  out of"]
    for result in results:
        of, said = result.exercise, result.error
        given, said = ("-", said or "for a teacher to read") if of.read else (f"{result.points:g}", said)
        lines.append(f"{of.name:8}  {given:>6}  {of.points:6g}  {said}".rstrip())
    reached = sum(result.points for result in results)
    return "\n".join([*lines, f"{'sum':8}  {reached:6g}  {sum(result.exercise.points for result in results):6g}"])
