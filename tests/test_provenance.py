"""Where numbers come from: versions, the commit, and whether the code was edited since."""

import subprocess
import sys

import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from kscore import provenance
from kscore.chapters.footer import Chapter


def committed(folder, message):
    """Make a repository of a folder and return its commit."""

    def git(*arguments):
        command = ["git", "-C", folder, "-c", "user.name=A", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", message)
    return git("rev-parse", "--short=10", "HEAD")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A checkout of its own, with a committed module, a published notebook and recorded runs."""
    folder = tmp_path / "checkout"
    for name in ("kscore/filters.py", "notebooks/00_start_here.ipynb", "data/runs/part.jsonl"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("x = 1\n")
    monkeypatch.setattr(provenance, "ROOT", folder)
    return folder, committed(folder, "first")


def test_the_commit_is_that_of_the_checkout(repository):
    assert provenance.commit() == repository[1]


@pytest.mark.parametrize("name", ["kscore/filters.py", "data/runs/part.jsonl"])
def test_edited_code_and_data_are_told(repository, name):
    (repository[0] / name).write_text("x = 2\n")
    assert provenance.commit() == f"{repository[1]}, edited"


def test_a_new_file_of_code_is_told(repository):
    (repository[0] / "kscore" / "more.py").write_text("x = 2\n")
    assert provenance.commit() == f"{repository[1]}, edited"


def test_outputs_that_are_being_published_are_no_edit(repository):
    (repository[0] / "notebooks" / "00_start_here.ipynb").write_text("{}")
    assert provenance.commit() == repository[1]


def test_the_commit_of_a_repository_around_the_project_is_not_named(repository, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", repository[0] / "kscore")
    assert provenance.commit() == "unknown"


def test_the_commit_of_a_repository_that_the_environment_names_is_not_told(repository, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    assert committed(other, "of another project") != repository[1]
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))  # as in the hooks of that one
    assert provenance.commit() == repository[1]


def test_outside_of_a_checkout_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert provenance.commit() == "unknown"


def test_the_code_is_known_by_its_text_and_its_places(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    told = []
    for name, text in (("a.py", "x = 1"), ("a.py", "x = 2"), ("b.py", "x = 2")):
        for old in tmp_path.iterdir():
            old.unlink()
        (tmp_path / name).write_text(text)
        told.append(provenance.code())
    assert len(set(told)) == 3


SCRIPT = "</code><script>alert(1)</script>"


@pytest.mark.parametrize(
    "value", [SCRIPT, f"`{SCRIPT}", f"``` {SCRIPT} `` `", f"\n\n{SCRIPT}\n\n", f"'{SCRIPT}\\`", "`"]
)
def test_nothing_that_a_parameter_says_is_alive_in_the_footer(notebook, monkeypatch, value):
    notebook(parameters="title: str = ''  # of the page")
    chapter = Chapter("00")
    monkeypatch.setattr(sys.modules["__main__"], "title", value, raising=False)
    page = BeautifulSoup(MarkdownIt().render(chapter.footer().data), "html.parser")  # as a notebook does, HTML included
    assert not page.find("script") and page.find("code").get_text().strip() == f"title = {value!r}"
