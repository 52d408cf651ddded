"""The core installs alone: a wheel, numpy, and no checkout."""

import re
import shutil
import subprocess
import sys
import venv

import pytest

from kscore.project import ROOT

USE = """
import sys
import kscore, kscore.filters, kscore.normalizers
scores = kscore.normalizers.make("kscore", variant="adaptive", Q=0.01, R=0.1)([3.0, 2.0, 1.0])
assert len(scores) == 3 and kscore.filters.steady_state(1e-4, 1e-2).gain > 0
print(kscore.__file__, *sorted({"pandas", "torch", "gymnasium", "yaml"} & set(sys.modules)))
"""


SOURCES = ("kscore", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "constraints.txt")


def run(python, *arguments):
    told = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The Python of an empty environment into which the built wheel was installed.

    It is built from a copy, by the setuptools that is there: other tests are at work in the checkout, and the package
    index need not answer for it.
    """
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "source").mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / "source" / name)
    build = f"from setuptools import build_meta as b; b.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=folder / "source", check=True, capture_output=True)
    (archive,) = folder.glob("kscore-*.tar.gz")  # the wheel is built from it: what it lacks, the wheel lacks
    run(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, archive)
    (wheel,) = folder.glob("kscore-*.whl")
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    run(python, "install", "-c", ROOT / "constraints.txt", wheel)
    return python


def ask(python, *arguments, cwd):
    return subprocess.run([python, *arguments], cwd=cwd, capture_output=True, text=True)


def test_the_wheel_brings_numpy_and_nothing_else(installed, tmp_path):
    listed = ask(installed, "-m", "pip", "list", "--format=freeze", cwd=tmp_path).stdout
    assert {line.split("==")[0] for line in listed.split()} <= {"kscore", "numpy", "pip", "setuptools"}


def test_what_is_installed_says_that_it_is_typed_and_whose_it_is(installed, tmp_path):
    told = ask(
        installed,
        "-c",
        "import importlib.metadata as m, importlib.resources as r; own = m.metadata('kscore');"
        "print(r.files('kscore').joinpath('py.typed').is_file(), own['Author'], own['License-Expression'],"
        "own['Keywords'], len(own.get_all('Classifier')), own.get_all('Project-URL'))",
        cwd=tmp_path,
    ).stdout
    assert told.startswith("True The K-Score notebook collection contributors MIT reinforcement learning")
    assert told.split()[-2:] == ["10", "None"]  # no address is invented


@pytest.mark.parametrize(
    "code, room, extra",
    [
        ("import kscore.wrappers.gymnasium", "kscore.wrappers.gymnasium", "gymnasium"),
        ("import kscore.wrappers.sb3", "kscore.wrappers.sb3", "sb3"),
        ("from kscore.rl import train", "kscore.rl", "rl"),
        ("from kscore.rl import RunConfig; RunConfig.preset('CartPole-v1', 'ppo')", "kscore.rl", "rl"),
        ("import kscore.study", "kscore.study", "rl"),
        ("import kscore.analysis", "kscore.analysis", "notebooks"),
    ],
)
def test_a_room_whose_library_is_missing_says_what_to_install(installed, tmp_path, code, room, extra):
    told = ask(installed, "-c", code, cwd=tmp_path)
    last = told.stderr.splitlines()[-1]
    assert told.returncode == 1 and re.search(rf"Error: {room} needs \w+, which is not installed", last)
    assert last.endswith(f"pip install -c constraints.txt -e '.[{extra}]'")


def test_the_core_works_outside_of_the_checkout(installed, tmp_path):
    told = ask(installed, "-c", USE, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "site-packages" in told.stdout and told.stdout.split()[1:] == []


@pytest.mark.parametrize("command", [["list"], ["run", "00"], ["study"], ["course", "student", "class"], ["status"]])
def test_a_command_that_needs_the_checkout_says_so(installed, tmp_path, command):
    told = ask(installed, "-m", "kscore", *command, cwd=tmp_path)
    assert told.returncode == 2 and "needs a checkout of the project" in told.stderr
    assert "Traceback" not in told.stderr and not any(tmp_path.iterdir())
