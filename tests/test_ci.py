"""When the tests that take minutes are due, in a clone as a server makes it."""

import os
import shutil
import subprocess

import pytest

from kscore.project import ROOT

HOUR = 3600


@pytest.fixture
def repository(tmp_path):
    """A repository with the script in it; a commit is made of what is written, so many hours ago."""
    folder = tmp_path / "there"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "due", folder / ".ci")

    def commit(path, hours_ago):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{hours_ago}")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", path, at=f"{1_700_000_000 - hours_ago * HOUR} +0000")

    git(tmp_path, "init", "--quiet", str(folder))
    return folder, commit


def git(folder, *arguments, at=""):
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, env=own | dates)


def is_due(folder):
    done = subprocess.run([folder / ".ci" / "due"], cwd=folder, capture_output=True)
    assert done.returncode in (0, 1)
    return done.returncode == 0


@pytest.mark.parametrize(
    ("path", "due"),
    [
        ("kscore/study/store.py", True),
        ("kscore/chapters/runner.py", True),
        ("kscore/wrappers/sb3.py", True),
        ("kscore/checks.py", True),
        ("tests/test_faults.py", True),
        ("constraints.txt", True),
        ("kscore/figures/charts.py", False),
        ("notebooks/05.py", False),
        ("README.md", False),
    ],
)
def test_they_are_due_if_what_they_test_has_changed_since_yesterday(repository, path, due):
    folder, commit = repository
    commit("kscore/study/store.py", 100)
    commit(path, 3)
    commit("README.md", 0)  # the newest one, landed with it
    assert is_due(folder) == due


def test_what_changed_before_yesterday_was_tested_then(repository):
    folder, commit = repository
    commit("README.md", 100)
    commit("kscore/study/store.py", 30)
    commit("docs/index.md", 1)
    assert not is_due(folder)
    (folder / "kscore/study/store.py").write_text("edited, and not committed")
    assert is_due(folder)


@pytest.mark.parametrize(("depth", "due"), [(1, True), (2, True), (3, False)])
def test_they_are_due_if_a_shallow_clone_cannot_tell(repository, tmp_path, depth, due):
    folder, commit = repository
    for hours_ago in (100, 50, 2, 1):
        commit("README.md", hours_ago)
    git(tmp_path, "clone", "--quiet", f"--depth={depth}", folder.as_uri(), "here")
    assert is_due(tmp_path / "here") == due


def test_they_are_due_where_there_is_no_repository(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "due", tmp_path / ".ci")
    assert is_due(tmp_path)
