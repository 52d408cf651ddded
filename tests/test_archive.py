"""The archive of recorded runs: `kscore study --record` appends to it, and nothing else changes it, or the checkout."""

import contextlib
import importlib
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import PATIENCE, eventually
from small_runs import ARMS, SEEDS, InProcess

from kscore import __main__, project, study
from kscore.__main__ import main
from kscore.chapters.status import latest
from kscore.project import ROOT
from kscore.study import plan

# Chapters

RUN = """
import signal, sys
from kscore.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background
sys.exit(main(["run", "09", "--no-pages", "--profile", "quick", "-p", "max_episodes", "3", *sys.argv[1:]]))
"""


@pytest.fixture
def git(tmp_path, monkeypatch):
    """A checkout of the project as it is now, apart from whatever happens to this one, and git in it."""

    def git(*arguments):
        own = ["git", "-C", tmp_path / "checkout", "-c", "user.name=nobody", "-c", "user.email=nobody@nowhere"]
        return subprocess.run([*own, *arguments], capture_output=True, text=True, check=True).stdout

    (tmp_path / "checkout").mkdir()
    for name in ("kscore", "notebooks", "data"):
        shutil.copytree(ROOT / name, tmp_path / "checkout" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path / "checkout")
    git("init", "--quiet"), git("add", "--all"), git("commit", "--quiet", "--message", "as it is")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "checkout"))
    return git


@pytest.mark.long
def test_a_chapter_leaves_the_checkout_alone_however_it_ends(git, tmp_path, descendants):
    own, out = tmp_path / "runs", tmp_path / "out"

    def trained():
        return sum(path.read_bytes().count(b"\n") for path in own.glob("*.jsonl"))

    def run(first_seed):
        """Run the chapter on seeds that it has not seen yet."""
        return subprocess.Popen(
            [sys.executable, "-c", RUN, "-p", "store", own, "-p", "first_seed", str(first_seed), "--out", out],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    for number, (ending, code, status) in enumerate(
        [(signal.SIGKILL, -signal.SIGKILL, "interrupted"), (signal.SIGINT, 130, "interrupted"), (None, 0, "ok")]
    ):
        held, chapter = trained(), run(5000 + 10 * number)
        if ending:
            assert eventually(lambda held=held: trained() > held)
            chapter.send_signal(ending)
        assert chapter.wait(5 * PATIENCE) == code
        assert eventually(lambda: not descendants())
        assert latest(out)["09_ppo_lunarlander"]["status"] == status and trained() > held
        assert git("status", "--porcelain") == ""


# The command


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty project, with an archive of its own, and with a plan of three small parts, trained in this process."""
    monkeypatch.setattr(project, "ROOT", tmp_path)
    for module in (__main__, importlib.import_module("kscore.study.running")):
        monkeypatch.setattr(module, "ARCHIVE", tmp_path / "data" / "runs")
    monkeypatch.setattr(project, "is_checkout", lambda: True)
    monkeypatch.setattr(study, "processes", lambda *_: contextlib.nullcontext(InProcess()))
    names = ["tuning_ppo_stream", "tuned_ppo", "cartpole_ppo"]
    monkeypatch.setattr(plan, "chosen", lambda parts: [name for name in names if not parts or name in parts])
    monkeypatch.setattr(plan, "part", lambda name, **_: plan.Part(name, ARMS, range(len(SEEDS))))
    monkeypatch.setattr(plan, "grids_of", lambda name: {"stream": names[0]} if name == names[1] else {})
    return tmp_path


def lines(folder):
    """How many runs each file below a folder holds."""
    return {str(path.relative_to(folder)): path.read_bytes().count(b"\n") for path in sorted(folder.rglob("*.jsonl"))}


ALL = len(ARMS) * len(SEEDS)


@pytest.mark.parametrize(
    ("options", "where"), [([], "build/runs"), (["--store", "mine"], "mine"), (["--record"], "data/runs")]
)
def test_a_study_writes_where_it_is_told_to_and_nowhere_else(folders, capsys, options, where):
    for missing in (f"{ALL}", "none"):
        assert main(["study", "cartpole_ppo", *options]) == 0
        assert capsys.readouterr().out == f"cartpole_ppo: {ALL} runs, {missing} of them missing\n"
        assert lines(folders) == {f"{where}/cartpole_ppo.jsonl": ALL}


def test_what_the_archive_holds_is_not_trained_again(folders, capsys):
    assert main(["study", "cartpole_ppo", "--record"]) == main(["study", "--store", "mine"]) == 0
    assert "cartpole_ppo: 6 runs, none of them missing" in capsys.readouterr().out
    assert lines(folders) == {
        "data/runs/cartpole_ppo.jsonl": ALL,
        "mine/tuned_ppo.jsonl": ALL,
        "mine/tuning_ppo_stream.jsonl": ALL,
    }


def test_what_was_trained_beside_the_archive_does_not_get_into_it(folders):
    assert main(["study", "cartpole_ppo"]) == main(["study", "cartpole_ppo", "--record"]) == 0
    assert lines(folders) == {"build/runs/cartpole_ppo.jsonl": ALL, "data/runs/cartpole_ppo.jsonl": ALL}


@pytest.mark.parametrize("inside", ["data/runs", "data/runs/mine", "data/../data/runs"])
def test_the_archive_is_no_store_of_ones_own(folders, capsys, inside):
    assert main(["study", "--store", inside]) == 2
    assert "store must not lie in the archive, which only `kscore study --record` appends to" in capsys.readouterr().err
    assert not lines(folders)


def test_a_store_beside_the_archive_that_is_recorded_into_is_refused(folders, capsys):
    with pytest.raises(SystemExit) as left:
        main(["study", "--record", "--store", "mine"])
    assert left.value.code == 2 and "not allowed with argument" in capsys.readouterr().err
    assert not lines(folders)
