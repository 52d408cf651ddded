"""Every chapter: its pair in sync, its outputs published, and its code running in all three ways of use."""

import base64
import os
import re
import subprocess
import sys

import nbformat
import pytest

from kscore import ROOT, batch, chapters, pages

CHAPTERS = chapters.chapters()
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def code_cells(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]


def outputs(path):
    return [output for cell in code_cells(path) for output in cell.outputs]


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
def test_the_parameters_cell_holds_commented_typed_literals(path):
    tagged = [cell for cell in code_cells(path) if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    for line in tagged[0].source.splitlines():
        assignment, _, comment = line.partition("#")
        name, _, kind = assignment.partition("=")[0].partition(":")
        assert name.strip().isidentifier() and kind.strip() and comment.strip(), line


@each_chapter
def test_it_runs_headlessly_with_quick_parameters(path, tmp_path):
    task = batch.Task(path, tmp_path / path.name, chapters.profile("quick").get(path.stem, {}))
    outcome, = batch.run([task], tmp_path)
    assert outcome.status == "ok", outcome.error
    page = task.page.read_text(encoding="utf-8")
    assert "<img" in page and pages.NO_ALT not in page and not re.search(r'href="[^"]*\.ipynb', page)


@each_chapter
def test_it_runs_as_a_plain_script_from_anywhere(path, tmp_path):
    environment = os.environ | {"MPLBACKEND": "Agg"}
    run = subprocess.run([sys.executable, path.with_suffix(".py")], cwd=tmp_path, env=environment, capture_output=True)
    assert run.returncode == 0, run.stderr.decode()[-2000:]


def test_the_readme_figure_is_the_published_one():
    tagged = [cell for cell in code_cells(CHAPTERS[0]) if "figure-file:overview.png" in cell.metadata.get("tags", [])]
    picture = next(output.data["image/png"] for output in tagged[0].outputs if "image/png" in output.get("data", {}))
    assert (pages.FIGURES / "overview.png").read_bytes() == base64.b64decode(picture)
    assert "notebooks/figures/overview.png" in (ROOT / "README.md").read_text(encoding="utf-8")
