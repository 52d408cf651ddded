"""The chapters as files: find them, read them, tell whether their text has changed."""

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from kscore import checks
from kscore.project import NOTEBOOKS, need_checkout


def find(patterns: Iterable[str] = ()) -> list[Path]:
    """Return the chapters that match any of the patterns (a name, a number, or a glob); all of them without one."""
    need_checkout("a chapter")
    found = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    chosen = []
    for pattern in patterns:
        matching = [path for path in found if _matches(path.stem, pattern)]
        if not matching:
            checks.choice("chapter", pattern, [path.stem for path in found])
        chosen += matching
    return sorted(set(chosen)) if chosen else found


def _matches(stem: str, pattern: str) -> bool:
    if pattern.isdecimal():
        return int(pattern) == int(stem.split("_")[0])
    return fnmatch.fnmatchcase(stem, pattern)


def read(notebook: Path) -> dict:
    """Return a notebook as its file has it, each source in one piece; nbformat would take seconds to be imported."""
    try:
        content = json.loads(notebook.read_text(encoding="utf-8"))
        return content | {"cells": [cell | {"source": "".join(cell["source"])} for cell in content["cells"]]}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{notebook.name} is not a notebook") from None


def cells(notebook: Path) -> list[dict]:
    """Return the cells of a notebook."""
    return read(notebook)["cells"]


COPY_MARK = "kscore_copy"
"""Names what a student copy said when it was written, in its metadata: so it can be seen if it was worked on."""


def is_student_copy(path: Path) -> bool:
    """Say whether a file is a copy that was made for a student, worked on or not."""
    return path.is_file() and f'"{COPY_MARK}"'.encode() in path.read_bytes()


def fingerprint(source: Path) -> str:
    """Return what a chapter says, as a short hash of its cells; outputs do not count."""
    return digest(cells(source))


def digest(cells: list[dict]) -> str:
    """Return what cells say, as a short hash."""
    said = [(cell["cell_type"], cell["source"]) for cell in cells]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def unexecuted(cells: Iterable[dict]) -> list[int]:
    """Return the places of the code cells, counted from 1, that have not been executed to their end."""
    return [
        place
        for place, cell in enumerate(cells, 1)
        if cell["cell_type"] == "code" and cell["source"].strip() and (cell["execution_count"] is None or _raised(cell))
    ]


def _raised(cell: dict) -> bool:
    return any(output["output_type"] == "error" for output in cell["outputs"])


def failing_line(traceback: list[str]) -> str:
    """Return the line of a cell that raised, without its colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(traceback))
    arrows = re.findall(r"^-+> \d+ (.*)$", plain, re.MULTILINE)
    return arrows[0].strip().removeprefix("assert ") if arrows else "a line that is not known"


# Folded cells

FOLDED = "hide-input"
"""The tag of a cell whose code is folded: by the book, and by JupyterLab if its metadata says so, too."""


def folded(metadata: dict) -> dict:
    """Return the metadata of a cell with what JupyterLab goes by, if it is tagged as folded."""
    if FOLDED not in metadata.get("tags", []):
        return metadata
    return metadata | {"jupyter": metadata.get("jupyter", {}) | {"source_hidden": True}}


def unfolded(metadata: dict) -> dict:
    """Return the metadata of a cell that is not folded."""
    kept = {key: value for key, value in metadata.items() if key != "jupyter"}
    return kept | {"tags": [tag for tag in metadata.get("tags", []) if tag != FOLDED]}
