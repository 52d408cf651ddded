"""From executed notebooks to what people read: the printable report, and published outputs."""

import base64
import html
import re
from collections.abc import Iterable
from pathlib import Path

import jupytext
import nbformat
from jupytext.config import load_jupytext_config
from nbconvert import HTMLExporter

from kscore import paths
from kscore.chapters import notebooks
from kscore.project import NOTEBOOKS, ROOT, shown

FIGURES = NOTEBOOKS / "figures"
FIGURE_TAG = "figure-file:"
BLOCK_TAG = "block:"
"""A cell tagged `figure-file:NAME.png` has its picture published as `notebooks/figures/NAME.png` too. What one tagged
`block:NAME` prints is published in README.md and the pages of docs, between `<!-- NAME, from chapter NN -->` and
`<!-- end of NAME -->`, so that no page says what the chapters no longer say."""

NO_ALT = "No description has been provided for this image"  # what the exporter writes in its place


def _page(content: nbformat.NotebookNode, exporter: HTMLExporter, title: str) -> str:
    """Return a notebook as HTML, with the alt text of its figures, which the exporter's template does not pass on."""
    body, _ = exporter.from_notebook_node(content, {"metadata": {"name": title}})
    alts = iter([output.metadata.get("image/png", {}).get("alt", NO_ALT) for output in _pictures(content.cells)])
    return re.sub(NO_ALT, lambda _: html.escape(next(alts, NO_ALT)), body)


PRINT_STYLE = """<style>
@page { size: A4 landscape; margin: 12mm; }
body { max-width: 75rem; margin: 0 auto; }
table { font-size: 0.8rem !important; }
.jp-InputPrompt, .jp-OutputPrompt, .jp-InputCollapser, .jp-OutputCollapser { display: none; }
@media print {
  tr, figure, img { break-inside: avoid; }
  img { max-height: 138mm; width: auto; }
  h2, h3 { break-after: avoid; }
  .jp-Notebook, .jp-Cell, .jp-Cell > div, .jp-OutputArea, .jp-OutputArea > div, .jp-OutputArea-output {
    break-inside: auto; display: block; overflow: visible;
  }
}
</style>"""


def write_report(notebook: Path, report: Path) -> Path:
    """Write an executed notebook as one printable HTML file: words, tables and figures, no code, nothing to load."""
    content = nbformat.read(notebook, as_version=4)
    check_executed(content.cells, notebook)
    content.cells = [cell for cell in content.cells if not _only_for_running(cell)]
    for cell in content.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\[([^\]]*)\]\(\d\d_\w+\.ipynb\)", r"\1", cell.source)  # it stands alone
    page = _page(content, HTMLExporter(exclude_input=True, exclude_output_prompt=True), notebook.stem)
    page = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)  # for formulas and diagrams; it has none
    with paths.whole(report) as draft:
        draft.write_text(page.replace("</head>", f"{PRINT_STYLE}</head>", 1), encoding="utf-8")
    return report


def _only_for_running(cell: nbformat.NotebookNode) -> bool:
    """Say whether a cell means nothing without its code: headings of set-up and parameters, exercises."""
    return cell.cell_type == "markdown" and bool(re.search(r"^## (Setup|Parameters)|^\*\*Exercise", cell.source, re.M))


def check_pair(source: Path) -> None:
    """Refuse a chapter whose two files say different things, before either of them is run or overwritten."""
    script = source.with_suffix(".py")
    written = jupytext.writes(jupytext.read(source), fmt="py:percent", config=load_jupytext_config(str(script)))
    if written != script.read_text(encoding="utf-8"):
        raise ValueError(f"{source.name} and {script.name} differ: `make sync` carries the newer one over")


def publish(pairs: Iterable[tuple[Path, Path]]) -> None:
    """Copy the outputs of executed notebooks into their chapters, cell by cell; the chapters' text stays as it is.

    All are checked before any is written: a chapter must exist as executed, without errors and with its own parameters.
    """
    for source, chapter in [(source, _with_outputs(source, executed)) for source, executed in pairs]:
        with paths.whole(source) as draft:
            nbformat.write(chapter, draft)
        _publish_figures(chapter)
        _publish_blocks(chapter)


def _with_outputs(source: Path, executed: Path) -> nbformat.NotebookNode:
    """Return the chapter with the outputs of its execution."""
    if not executed.exists():
        raise ValueError(f"{shown(executed)} does not exist: run the chapter first")
    chapter, run = (nbformat.read(path, as_version=4) for path in (source, executed))
    check_executed(run.cells, executed)
    if [(c.id, c.source) for c in chapter.cells] != [(c.id, c.source) for c in run.cells]:
        raise ValueError(
            f"{executed.name} was not executed from the present {source.name} with its default "
            "parameters: run it again before publishing"
        )
    for cell, ran in zip(chapter.cells, run.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
            cell.metadata = nbformat.from_dict(notebooks.folded(cell.metadata))
            _steady_table_ids(cell)
    if "language_info" in run.metadata:
        chapter.metadata.language_info = run.metadata.language_info  # JupyterLab would add it when it opens the file
    return chapter


def check_executed(cells: list[nbformat.NotebookNode], executed: Path) -> None:
    """Refuse an executed notebook of which a cell did not run to its end."""
    if missing := notebooks.unexecuted(cells):
        raise ValueError(
            f"{executed.name} did not run to its end: cell {missing[0]} was not executed, or raised an "
            "error; mend the chapter and run it again"
        )


def _steady_table_ids(cell: nbformat.NotebookNode) -> None:
    """Name styled tables after their cell; pandas draws their names at random, and every run would differ."""
    for number, output in enumerate(cell.outputs):
        if "Styler at 0x" in output.get("data", {}).get("text/plain", ""):
            name = f"T_{cell.id}_{number}"
            output.data["text/html"] = re.sub(r"\bT_[0-9a-f]{5}(?=\b|_)", name, output.data["text/html"])
            del output.data["text/plain"]


def _publish_figures(chapter: nbformat.NotebookNode) -> None:
    for cell in chapter.cells:
        names = [tag.removeprefix(FIGURE_TAG) for tag in cell.metadata.get("tags", []) if tag.startswith(FIGURE_TAG)]
        for name, output in zip(names, _pictures([cell]), strict=False):
            FIGURES.mkdir(exist_ok=True)
            (FIGURES / Path(name).name).write_bytes(base64.b64decode(output.data["image/png"]))


def _publish_blocks(chapter: nbformat.NotebookNode) -> None:
    """Put what a chapter printed in place of the blocks of that name in README.md and docs/."""
    for name, text in blocks(chapter.cells).items():
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
            before = page.read_text(encoding="utf-8")
            after = block(name).sub(lambda found, text=text: f"{found[1]}\n{text}\n{found[3]}", before)
            if after != before:
                page.write_text(after, encoding="utf-8")


def blocks(cells: Iterable[nbformat.NotebookNode]) -> dict[str, str]:
    """Return what the cells tagged `block:NAME` printed, by name, each paragraph in one line."""
    printed = {
        tag.removeprefix(BLOCK_TAG): output.data["text/markdown"].strip()
        for cell in cells
        for tag in cell.metadata.get("tags", [])
        if tag.startswith(BLOCK_TAG)
        for output in cell.get("outputs", [])
        if "text/markdown" in output.get("data", {})
    }
    return {name: re.sub(r"(?<=\S) *\n(?=[^\n|-])", " ", text) for name, text in printed.items()}


def block(name: str) -> re.Pattern:
    """Return what finds the block of a name in a page: its mark, its text, and the mark of its end."""
    name = re.escape(name)
    return re.compile(rf"(<!-- {name}, from chapter \d\d -->)(.*?)(<!-- end of {name} -->)", re.DOTALL)


def _pictures(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return the outputs that are pictures, in the order of the page."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [output for output in outputs if "image/png" in output.get("data", {})]
