"""Papermill over the chapters: execute each into a folder, write its page, report, and publish outputs back."""

import base64
import fnmatch
import html
import re
import tempfile
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import nbformat
import papermill
from nbconvert import HTMLExporter
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from kscore import NOTEBOOKS, ROOT, checks

PROFILES = NOTEBOOKS / "profiles.toml"
FIGURES = NOTEBOOKS / "figures"
FIGURE_TAG = "figure-file:"
"""A cell tagged `figure-file:NAME.png` has its picture published as `notebooks/figures/NAME.png` too."""

NO_ALT = "No description has been provided for this image"  # what the exporter writes in its place


class Outcome(NamedTuple):
    """How the execution of one chapter ended."""

    chapter: str
    status: str  # "ok" or "failed"
    seconds: float
    error: str = ""


def chapters(patterns: Iterable[str] = ()) -> list[Path]:
    """Return the chapters that match any of the patterns (a name, a number, or a glob); all of them without one."""
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


def profile(name: str) -> dict[str, dict]:
    """Return the parameters that a named profile gives to each chapter; "default" gives none."""
    profiles = {"default": {}} | tomllib.loads(PROFILES.read_text(encoding="utf-8"))
    return profiles[checks.choice("profile", name, profiles)]


def execute(source: Path, target: Path, parameters: dict | None = None, *, progress: bool = False) -> Outcome:
    """Execute one notebook into another file; a failing cell is an outcome, not an exception.

    The kernel talks over IPC, so nothing listens on a network port.
    """
    started = time.perf_counter()
    status, error = "ok", ""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="k") as sockets:
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/s"}})
        config.AsyncKernelManager = config.KernelManager
        try:
            papermill.execute_notebook(source, target, parameters or {}, kernel_name="python3", config=config,
                                       progress_bar=progress, cwd=None)
        except PapermillExecutionError as failure:
            status, error = "failed", f"cell {failure.exec_count}: {failure.ename}: {failure.evalue}"
    return Outcome(source.stem, status, time.perf_counter() - started, error)


def write_page(notebook: Path) -> Path:
    """Write the HTML page of an executed notebook beside it, with links that lead to pages, not to notebooks."""
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\((\d\d_\w+)\.ipynb", r"](\1.html", cell.source)
    body, _ = HTMLExporter().from_notebook_node(content, {"metadata": {"name": notebook.stem}})
    alts = iter([output.metadata.get("image/png", {}).get("alt", NO_ALT) for output in _pictures(content.cells)])
    body = re.sub(NO_ALT, lambda _: html.escape(next(alts)), body)  # the exporter's template passes no alt text on
    page = notebook.with_suffix(".html")
    page.write_text(body, encoding="utf-8")
    return page


def publish(source: Path, executed: Path) -> None:
    """Copy the outputs of an executed notebook into the chapter, cell by cell; the chapter's text stays as it is.

    Refused, with nothing changed, if the two are not the same cells or if the execution failed or had parameters.
    """
    chapter, run = (nbformat.read(path, as_version=4) for path in (source, executed))
    if [(c.id, c.source) for c in chapter.cells] != [(c.id, c.source) for c in run.cells]:
        raise ValueError(f"{executed.name} was not executed from the present {source.name} with its default "
                         "parameters: run it again before publishing")
    by_id = {cell.id: cell for cell in run.cells if cell.cell_type == "code"}
    for cell in (c for c in chapter.cells if c.cell_type == "code"):
        cell.outputs, cell.execution_count = by_id[cell.id].outputs, by_id[cell.id].execution_count
        if any(output.output_type == "error" for output in cell.outputs):
            raise ValueError(f"{executed.name} holds an error: mend the chapter and run it again before publishing")
    nbformat.write(chapter, source)
    _publish_figures(chapter)


def _publish_figures(chapter: nbformat.NotebookNode) -> None:
    for cell in chapter.cells:
        names = [tag.removeprefix(FIGURE_TAG) for tag in cell.metadata.get("tags", []) if tag.startswith(FIGURE_TAG)]
        for name, output in zip(names, _pictures([cell]), strict=False):
            FIGURES.mkdir(exist_ok=True)
            (FIGURES / name).write_bytes(base64.b64decode(output.data["image/png"]))


def _pictures(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return the outputs that are pictures, in the order of the page."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [output for output in outputs if "image/png" in output.get("data", {})]




def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as an aligned table of notebook, status and seconds."""
    width = max(len("notebook"), *(len(o.chapter) for o in outcomes))
    lines = [f"{'notebook':{width}}  status  seconds"]
    lines += [f"{o.chapter:{width}}  {o.status:6}  {o.seconds:7.1f}" for o in outcomes]
    return "\n".join(lines)


def shown(path: Path) -> str:
    """Return a path as a reader of the project would write it: from the root if it lies below it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
