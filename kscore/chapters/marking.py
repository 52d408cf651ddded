"""Points for a class: copies from files and folders, several judged at once, as tables and as a CSV file."""

import csv
import functools
import os
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kscore import paths
from kscore.chapters import course, notebooks, runner
from kscore.chapters.course import Result

Watcher = Callable[[str, int, int, str], None]
"""Called with the name of a copy, the cell that it has come to, how many cells it has, and the work in that cell."""

COLUMNS = ["file", "chapter", "exercise", "points", "out of", "message"]
"""Of the CSV file: a row for each copy and exercise; a copy that could not be judged has one row, with the reason."""

UNPRINTABLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # Unicode's names of what moves the cursor, or is no letter


class Copy(NamedTuple):
    """A copy that was handed in, and how it went."""

    path: Path
    results: list[Result]  # none if it could not be judged
    trouble: str = ""  # why it could not

    @property
    def name(self) -> str:
        """What it is called in a line."""
        return course.in_a_line(str(self.path))

    @property
    def said(self) -> str:
        """How it went, in a few words."""
        if self.trouble:
            return f"not judged: {self.trouble}"
        unread = f", {self.unread:g} for a teacher to give" if self.unread else ""
        return f"{self.points:g} of {self.out_of:g} points{unread}"

    @property
    def points(self) -> float:
        """The points that its checks gave."""
        return sum(result.points for result in self.results)

    @property
    def out_of(self) -> float:
        """The points that it could have, those that a teacher gives included."""
        return sum(result.exercise.points for result in self.results)

    @property
    def unread(self) -> float:
        """The points of the answers that a teacher has to read."""
        return sum(result.exercise.points for result in self.results if result.exercise.read)


# Judging


def found(places: Iterable[Path]) -> list[Path]:
    """Return the notebooks among files and in folders, at any depth, each once; a folder without any stands for itself.

    What is hidden in a folder, as JupyterLab's checkpoints are, was not handed in.
    """
    once = {}
    for place in places:
        for path in place.is_dir() and _inside(place) or [place]:
            once.setdefault(os.path.realpath(path), path)
    return list(once.values())


def _inside(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*.ipynb")
        if not path.is_dir() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def check(
    paths: list[Path],
    limit: int = 60,
    jobs: int = 1,
    watch: Watcher = lambda *_: None,
    ended: Callable[[Copy], None] = lambda _: None,
) -> list[Copy]:
    """Judge copies, `jobs` at once, and return how each went, in their order; none keeps another from being judged.

    `watch` is told how far each of them is, and `ended` how it went. On Ctrl-C the kernels are ended, and
    KeyboardInterrupt goes on.
    """
    runner.need_packages()
    stop = threading.Event()

    def do(path: Path) -> Copy:
        copy = Copy(path, [], "not begun") if stop.is_set() else _judged(path, limit, watch, stop)
        if not stop.is_set():
            ended(copy)
        return copy

    return runner.at_once(do, paths, jobs, stop)


def _judged(path: Path, limit: int, watch: Watcher, stop: threading.Event) -> Copy:
    """Judge one copy; whatever is wrong with it is told in a line."""
    name = Copy(path, []).name
    supervise = functools.partial(runner.supervise, watch=lambda _, *place: watch(name, *place), stop=stop)
    try:
        if not path.is_file():
            raise ValueError(f"{path} {'is a folder without notebooks' if path.is_dir() else 'is not a file'}")
        return Copy(path, course.check(path, limit, supervise))
    except ValueError as mistake:
        trouble = str(mistake)
    except OSError as refused:
        trouble = ": ".join(filter(None, (refused.strerror, refused.filename))) or str(refused)
    except Exception as error:  # a file can be broken in more ways than anybody thinks of, and a class has many
        trouble = f"{path.name} is not a notebook that can be judged: {type(error).__name__}: {error}"
    return Copy(path, [], course.in_a_line(trouble) or "an error without words")


# Tables


def summary(copies: list[Copy]) -> str:
    """Return a class as two tables: the points of every copy, and how many solved each exercise."""
    return f"{_by_copy(copies)}\n\n{_by_exercise(copies)}" if any(copy.results for copy in copies) else _by_copy(copies)


def _by_copy(copies: list[Copy]) -> str:
    width = max(len("copy"), *(len(copy.name) for copy in copies))
    lines = [f"{'copy':{width}}  points  out of  to read"]
    for copy in copies:
        given = f"{copy.points:6g}  {copy.out_of:6g}  {copy.unread:7g}" if copy.results else f"     -  {copy.said}"
        lines.append(f"{copy.name:{width}}  {given}")
    return "\n".join(lines)


def _by_exercise(copies: list[Copy]) -> str:
    """Return how many copies solved each exercise, of how many, and what went wrong most often in the others."""
    results = [result for copy in copies for result in copy.results]
    lines = ["exercise  solved  copies  commonest error"]
    for exercise in sorted({result.exercise for result in results}):
        errors = [result.error for result in results if result.exercise == exercise]
        solved = "-" if exercise.read else errors.count("")
        said = "for a teacher to read" if exercise.read and not any(errors) else _commonest(filter(None, errors))
        lines.append(f"{exercise.name:8}  {solved:>6}  {len(errors):6}  {said}".rstrip())
    return "\n".join(lines)


def _commonest(errors: Iterable[str]) -> str:
    return "".join(f"{error} ({count})" for error, count in Counter(errors).most_common(1))


# A file for spreadsheets


def check_place(path: Path) -> Path:
    """Return where a CSV file can be written; so that no work is done for nothing, or overwritten by a slip."""
    if path.suffix.lower() != ".csv" or path.is_dir():
        raise ValueError(f"csv must be a file whose name ends in .csv, got {path}")
    if not path.parent.is_dir():
        raise ValueError(f"csv must be in a folder that exists, got {path}")
    return paths.file("csv", path, ",".join(f'"{column}"' for column in COLUMNS).encode())


def write_csv(copies: list[Copy], path: Path) -> None:
    """Write the points of a class; the file is there as a whole, or as it was before."""
    with paths.whole(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, quoting=csv.QUOTE_ALL)
        table.writerow(COLUMNS)
        table.writerows([_harmless(str(value)) for value in row] for copy in copies for row in _rows(copy))


def _rows(copy: Copy) -> Iterator[tuple[object, ...]]:
    if copy.trouble:
        yield copy.path, "", "", "", "", copy.said
    for result in copy.results:
        exercise, error = result
        (chapter,) = notebooks.find([exercise.name.split("-")[0]])
        points = "" if exercise.read else f"{result.points:g}"
        said = error or ("for a teacher to read" if exercise.read else "")
        yield copy.path, chapter.stem, exercise.name, points, f"{exercise.points:g}", said


def _harmless(text: str) -> str:
    """Return what somebody else wrote as one line of plain text, which no spreadsheet takes for a formula.

    Where the semicolon separates columns, a formula could stand behind one, too.
    """
    plain = "".join("\ufffd" if unicodedata.category(letter) in UNPRINTABLE else letter for letter in text)
    return re.sub(r"(^|;)(\s*)(?=[-+=@＝＋－＠])", r"\1\2'", plain)
