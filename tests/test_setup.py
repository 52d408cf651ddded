"""The first minute: what `make` sets up, on which Python, and that an interruption of it does no lasting harm."""

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.specifiers import SpecifierSet

from kscore.project import ROOT

NOT_TESTED_WITH = {"filterpy"}  # the peers of `make bench`
BACKEND = """
import pathlib, zipfile
def build_editable(folder, settings=None, metadata=None):
    name = "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        about = "tiny-1.0.dist-info"
        said = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\nProvides-Extra: notebooks\\n"
        wheel.writestr(f"{about}/METADATA", said)
        said = "Wheel-Version: 1.0\\nGenerator: tiny\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr(f"{about}/WHEEL", said)
        wheel.writestr(f"{about}/RECORD", "".join(f"{about}/{file},,\\n" for file in ("METADATA", "WHEEL", "RECORD")))
    return name
"""
TINY = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1.0"
[project.optional-dependencies]
notebooks = []
"""


def pins():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_pin_admits_the_oldest_python_that_is_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text(encoding="utf-8")
    refused, missing = {}, set()
    for name, version in pins().items():
        try:
            about = distribution(name)
        except PackageNotFoundError:
            missing.add(name)
            continue
        assert about.version.split("+")[0] == version, f"{name} {about.version} is installed, not {version}"
        if not SpecifierSet(asked := about.metadata.get("Requires-Python") or "").contains(f"{oldest}.0"):
            refused[name] = asked
    assert not refused and missing <= NOT_TESTED_WITH


@pytest.fixture
def tiny(tmp_path):
    """A project that our Makefile sets up without a network, in a folder whose name has a space."""
    folder = tmp_path / "a copy"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "constraints.txt").touch()
    (folder / "pyproject.toml").write_text(TINY)
    (folder / "backend.py").write_text(BACKEND)
    return folder


def set_up(folder, python):
    told = subprocess.run(
        ["make", ".venv/.installed-notebooks", f"PYTHON={python}"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PIP_NO_INDEX": "1"},
    )
    return told.returncode, told.stdout + told.stderr


def knows_tiny(folder):
    told = subprocess.run([folder / ".venv/bin/python", "-m", "pip", "show", "tiny"], capture_output=True, text=True)
    return "Version: 1.0" in told.stdout


def site_packages(folder):
    (place,) = (folder / ".venv/lib").glob("python*/site-packages")
    return place


def no_pip(folder):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)


def half_of_pip(folder):
    subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)
    shutil.rmtree(site_packages(folder) / "pip" / "_internal" / "cli")


def half_a_package(folder):
    assert set_up(folder, sys.executable)[0] == 0
    (folder / ".venv/.installed-notebooks").unlink()
    (site_packages(folder) / "tiny-1.0.dist-info" / "RECORD").unlink()


def no_interpreter(folder):
    assert set_up(folder, sys.executable)[0] == 0
    for link in (folder / ".venv/bin").glob("python*"):
        link.unlink()
        link.symlink_to("/no/such/python")


@pytest.mark.parametrize("damage", [no_pip, half_of_pip, half_a_package, no_interpreter])
def test_an_environment_that_was_interrupted_or_lost_its_python_is_made_anew(tiny, tmp_path, damage):
    damage(tiny)
    spaced = tmp_path / "my python"
    spaced.symlink_to(sys.executable)
    code, said = set_up(tiny, spaced)
    assert code == 0 and "Setting up" in said, said
    assert knows_tiny(tiny) and (tiny / ".venv/.installed-notebooks").exists()
    assert set_up(tiny, spaced) == (0, "make: '.venv/.installed-notebooks' is up to date.\n")


def test_packages_that_do_not_install_end_in_a_sentence_that_names_python(tiny):
    pyproject = tiny / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("requires = []", 'requires = ["no-such-package-anywhere"]'))
    code, said = set_up(tiny, sys.executable)
    assert code != 0 and f"Python {sys.version.split()[0]}" in said and "The same command goes on" in said
    assert not (tiny / ".venv/.installed-notebooks").exists()


def test_a_python_that_is_too_old_is_named_even_if_its_path_has_spaces(tiny):
    path = tiny / "an old python"
    path.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.8.10" && exit 0\nexit 1\n')
    path.chmod(0o755)
    code, said = set_up(tiny, path)
    assert code != 0 and f"'{path}' is Python 3.8.10" in said and not (tiny / ".venv").exists()


SPHINX = """#!/bin/sh
for out; do :; done
mkdir -p "$out" && echo $WORDS > "$out/index.html" && sleep $SLOW && exit $CODE
"""


@pytest.mark.parametrize("pages", ["book", "slides"])
def test_pages_take_the_place_of_the_old_ones_as_a_whole_or_not_at_all(tmp_path, pages):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name, text in (("python", "#!/bin/sh\n"), ("sphinx-build", SPHINX)):
        (tmp_path / ".venv/bin" / name).write_text(text)
        (tmp_path / ".venv/bin" / name).chmod(0o755)
    (tmp_path / ".venv/.installed-notebooks").touch()

    def begin(words, code=0, slow=0):
        said = {"WORDS": words, "CODE": str(code), "SLOW": str(slow)}
        return subprocess.Popen(["make", pages], cwd=tmp_path, env=os.environ | said, stdout=subprocess.DEVNULL)

    def built():
        return [(path.parent.name, path.read_text()) for path in (tmp_path / "build").rglob("index.html")]

    assert begin("first").wait() == 0 and built() == [(pages, "first\n")]
    assert begin("broken", code=1).wait() != 0 and built() == [(pages, "first\n")]
    several = [begin("second", slow=0.5), begin("second", slow=0.6)]
    assert [one.wait() for one in several] == [0, 0] and built() == [(pages, "second\n")]


def test_cleaning_keeps_runs_of_ones_own_and_student_copies_wherever_they_are(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    kept = ("build/runs/mine.jsonl", "build/own store/more.jsonl", "build/class/notes.txt", "build/monday/01.ipynb")
    gone = ("build/status.jsonl", "build/quick/status.jsonl", "build/site/html/index.html", "build/01.ipynb")
    for name in (*kept, *gone):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"metadata": {"kscore_copy": "1"}}' if "monday" in name else "{}")
    for _ in range(2):
        subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"Makefile", *kept}
    assert not (tmp_path / "build/site").exists()
