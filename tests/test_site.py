"""The site of a folder: what is laid out for Sphinx, what comes of it, and what becomes of a run if it fails."""

import json
import os
import re

import jupytext
import nbformat
import psutil
import pytest
from bs4 import BeautifulSoup
from conftest import PATIENCE, eventually

from kscore.__main__ import main
from kscore.chapters import notebooks, site
from kscore.chapters.status import Outcome, StatusFile, Task, latest
from kscore.project import ROOT

PARAMETERS = "size: int = 1  # how many [1, 10]"
pytestmark = pytest.mark.usefixtures("descendants")


def executed(source, out, name=None, status="ok", error="", cell=None, **parameters):
    """Leave what a run leaves: a notebook, though not a good one, and its two lines."""
    made = Task(source, out / f"{name or source.stem}.ipynb", parameters)
    file = StatusFile(out)
    file.end(file.begin(made), Outcome(made.name, status, 1.5, error, cell))
    made.target.write_bytes(source.read_bytes())
    return made


@pytest.fixture
def unbound(monkeypatch):
    """Lay out, but do not call Sphinx."""
    monkeypatch.setattr(site, "_bind", lambda folder, first: None)


def tree(out):
    source = out / "site" / "source"
    return {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}


# What is laid out


def test_a_few_runs_are_a_site_of_their_own(notebook, tmp_path, unbound):
    executed(notebook(), tmp_path)
    executed(notebook(name="01_more"), tmp_path, "01_more__size-2", size=2)
    first = site.build(tmp_path)
    assert first == tmp_path / "index.html" and 'url=site/html/run.html"' in first.read_text()
    assert tree(tmp_path) == {
        "run.md",
        "docs/references.md",
        "notebooks/00_good.ipynb",
        "notebooks/00_good.py",
        "notebooks/01_more__size-2.ipynb",
    }
    listed = (tmp_path / "site" / "source" / "run.md").read_text()
    assert "2 of 2 runs ended well; together they took 3 s." in listed
    assert "| [`01_more__size-2`](/notebooks/01_more__size-2.ipynb) | ok | `size = 2` | 2 | 20" in listed
    assert "/notebooks/00_good\n01_more__size-2 </notebooks/01_more__size-2>\n" in listed


def test_all_chapters_are_the_book(tmp_path, unbound):
    for path in notebooks.find():
        executed(path, tmp_path)
    executed(notebooks.find()[2], tmp_path, "02_steady_state__Q-1", Q=1.0)
    assert 'url=site/html/docs/index.html"' in site.build(tmp_path).read_text()
    docs = {str(path.relative_to(ROOT)) for folder in ("docs", "data") for path in (ROOT / folder).glob("*.md")}
    assert docs <= tree(tmp_path) and "notebooks/figures/overview.png" in tree(tmp_path)
    index = (tmp_path / "site" / "source" / "docs" / "index.md").read_text()
    assert index.startswith((ROOT / "docs" / "index.md").read_text())
    assert "\n/run\n02_steady_state__Q-1 </notebooks/02_steady_state__Q-1>\n" in index


def test_a_chapter_less_is_not_the_book(tmp_path, unbound):
    for path in notebooks.find()[1:]:
        executed(path, tmp_path)
    assert "site/html/run.html" in site.build(tmp_path).read_text()


def test_only_what_has_changed_is_newer_and_what_is_gone_goes(notebook, tmp_path, unbound):
    first, second = executed(notebook(), tmp_path), executed(notebook(name="01_more"), tmp_path)
    third = executed(notebook(name="02_gone"), tmp_path)
    site.build(tmp_path)
    places = [tmp_path / "site" / "source" / "notebooks" / made.target.name for made in (first, second)]
    for place in places:
        os.utime(place, (5, 5))
    second.target.write_text(second.target.read_text() + "\n"), third.target.unlink()
    site.build(tmp_path)
    assert places[0].stat().st_mtime == 5 and places[1].stat().st_mtime > 5
    assert "notebooks/02_gone.ipynb" not in tree(tmp_path)


def test_a_notebook_that_cannot_be_read_has_a_line_and_no_page(notebook, tmp_path, unbound):
    made = executed(notebook(), tmp_path, status="failed", error="no room", cell=3)
    made.target.write_text('{"cells": [')
    site.build(tmp_path)
    assert "notebooks/00_good.ipynb" not in tree(tmp_path)
    listed = (tmp_path / "site" / "source" / "run.md").read_text()
    assert "| `00_good` | failed in cell 3 | none |" in listed and "- `00_good`: `no room`" in listed


# What comes of it

HOSTILE = "a`b``|c $d$ </code><script>document.title = 'ran'</script> [x](y) \ud800 *e*"


def page(out, name):
    return BeautifulSoup((out / "site" / "html" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


@pytest.mark.long
def test_runs_with_parameters_of_their_own_get_pages_of_the_same_look(notebook, tmp_path, capsys):
    source = notebook("print('size', size)", parameters=PARAMETERS)
    chapter = nbformat.read(source, as_version=4)
    chapter.cells[0].source += "\n\n$$x = 1 \\tag{7.1}$$\n\nSee (7.1), (P1), [more](01_more.ipynb#there)."
    nbformat.write(chapter, source)
    jupytext.write(jupytext.read(source), source.with_suffix(".py"), fmt="py:percent")
    notebook("1 / 0", name="01_more")
    out = tmp_path / "out"
    assert main(["run", "00", "--sweep", "size=2,3", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert re.search(
        rf"The executed notebooks are in {out}/\. Their pages took \d+ s, everything about \d+ "
        rf"(s|min)\. Open {out}/index.html",
        told,
    )

    for size in (2, 3):
        article = page(out, f"notebooks/00_good__size-{size}").select_one("article")
        said = " ".join(article.get_text(" ").split())
        assert f"size {size}" in said and "Run with parameters of its own" in said
        links = {link.get_text(): link["href"] for link in article.select("a[href]")}
        assert article.find(id=links["(7.1)"].removeprefix("#")) is not None
        assert not {"next", "more", "(P1)"} & set(links) and "(P1), more" in said
    first = page(out, "run")
    assert [row.get_text(" ", strip=True).split()[:2] for row in first.select("article tbody tr")] == [
        ["00_good__size-2", "ok"],
        ["00_good__size-3", "ok"],
    ]
    assert {link["href"] for link in first.select("nav a[href^=notebooks]")} == {
        f"notebooks/00_good__size-{size}.html" for size in (2, 3)
    }

    assert main(["run", "01", "--out", str(out)]) == 1  # one more, which fails
    failed = page(out, "notebooks/01_more")
    assert failed.select_one("article h1").get_text().startswith("Small")
    assert "ZeroDivisionError" in failed.get_text() and "Run with parameters" not in failed.get_text()
    assert page(out, "notebooks/00_good__size-2").find("a", string="more")["href"] == "01_more.html#there"
    executed(source, out, status="failed", error=HOSTILE, title=HOSTILE)
    site.build(out)
    listed = page(out, "run")
    assert "a`b``|c $d$ </code><script>" in listed.select_one("article").get_text()
    assert not [script for script in listed.find_all("script") if "ran" in script.get_text()]


def test_a_site_that_cannot_be_built_costs_nothing_but_the_site(notebook, tmp_path, capsys, monkeypatch):
    notebook("print('here')")
    monkeypatch.setattr(site, "SPHINX", "import sys; sys.exit('  a.b.InkError: no more ink\\n\\nReport this.')")
    assert main(["run"]) == 1
    told = capsys.readouterr().out
    assert "Their pages could not be built: InkError: no more ink. Nothing that was executed is lost" in told
    assert latest(tmp_path / "build")["00_good"]["status"] == "ok"
    assert "here" in (tmp_path / "build" / "00_good.ipynb").read_text() and not (tmp_path / "build/index.html").exists()


def test_a_full_disk_costs_nothing_but_the_site(notebook, tmp_path, capsys, monkeypatch):
    notebook("print('here')")

    def full(*_):
        raise OSError(28, "No space left on device", "there")

    monkeypatch.setattr(site, "_copy", full)
    assert main(["run"]) == 1
    assert "could not be built: No space left on device: there. Nothing" in capsys.readouterr().out


def test_without_pages_there_is_no_site(notebook, tmp_path, capsys):
    notebook("print('here')")
    assert main(["run", "--no-pages"]) == 0
    assert capsys.readouterr().out.endswith(f"The executed notebooks are in {tmp_path / 'build'}/.\n")
    assert sorted(path.name for path in (tmp_path / "build").iterdir()) == ["00_good.ipynb", "status.jsonl"]


def builds(process):
    try:
        return "sphinx.cmd.build" in " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return False


def test_the_builder_ends_with_who_called_it(notebook, tmp_path, command_line, descendants):
    notebook("print('here')")
    begun = command_line("run", "--out", tmp_path / "out")
    assert eventually(lambda: any(builds(process) for process in descendants()))
    begun.kill()
    begun.wait(PATIENCE)
    assert eventually(lambda: not descendants(), 10)
    assert json.loads((tmp_path / "out" / "status.jsonl").read_text().splitlines()[-1])["status"] == "ok"
