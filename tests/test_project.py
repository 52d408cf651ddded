"""The files around the code: what they promise to a fresh machine has to stay true."""

import re
import shutil
import subprocess
import tomllib

import pandas as pd
import pytest
import yaml

from kscore.project import DATA, ROOT


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


def pinned():
    lines = [line for line in read("constraints.txt").splitlines() if line and not line.startswith("#")]
    return dict(line.lower().replace("_", "-").split("==") for line in lines)


def test_environment_yml_installs_the_same_set_as_the_makefile(project):
    *conda, pip = yaml.safe_load(read("environment.yml"))["dependencies"]
    assert conda == ["python=3.11", "pip"]
    assert pip == {"pip": ["-c constraints.txt", "-e .[test]"]}
    assert "-c constraints.txt -e '.[$*]'" in read("Makefile")
    assert project["requires-python"] == ">=3.11"


def test_every_target_installs_an_extra_that_is_there(project):
    extras = set(project["optional-dependencies"])
    assert extras == {"gymnasium", "sb3", "mujoco", "rl", "notebooks", "cluster", "teach", "test", "bench"}
    assert {name.split("-")[1] for name in re.findall(r"\.installed-\w+", read("Makefile"))} <= extras


def test_the_core_needs_numpy_alone(project):
    assert [re.split("[<>=]", line)[0] for line in project["dependencies"]] == ["numpy"]


def test_every_dependency_is_pinned_at_an_allowed_version(project):
    from packaging.requirements import Requirement

    extras = [line for extra in project["optional-dependencies"].values() for line in extra]
    wanted = [Requirement(line) for line in project["dependencies"] + extras if not line.startswith("kscore[")]
    for requirement in wanted:
        version = pinned().get(requirement.name.lower())
        assert version and requirement.specifier.contains(version), requirement


def test_torch_is_pinned_exactly_and_every_line_that_installs_a_checkout_asks_for_the_pins():
    """A bare range of torch brings its newest build, with gigabytes of CUDA."""
    assert pinned()["torch"] == "2.13.0"
    pages = [ROOT / "README.md", ROOT / "environment.yml", *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/**/*.py")]
    lines = [
        line
        for page in [*pages, *ROOT.glob("kscore/**/*.py")]
        for line in re.findall(r"pip install ([^`\n#]*)", page.read_text(encoding="utf-8"))
        if re.search(r"(^|[\s'\"])\.(\[|\s|$|')", line)
    ]
    assert len(lines) > 8 and all(line.startswith("-c constraints.txt ") for line in lines), lines


@pytest.mark.parametrize("target", ["run", "test"])
def test_make_stops_with_a_sentence_if_python_is_too_old(target, tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    old = tmp_path / "python-old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.8.10" && exit 0\nexit 1\n')
    old.chmod(0o755)
    run = subprocess.run(["make", target, f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode != 0
    assert "needs Python 3.11 or newer" in run.stdout and "3.8.10" in run.stdout
    assert not (tmp_path / ".venv").exists()


def test_make_help_lists_every_target():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.search(r"^\.PHONY: (.*)$", read("Makefile"), re.MULTILINE).group(1).split()
    assert all(f"make {target} " in listed for target in targets)


def test_the_readme_and_the_first_page_name_every_chapter():
    for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"):
        assert f"(notebooks/{path.name})" in read("README.md")
        assert re.search(rf"^\| \[.+\]\(../notebooks/{path.name}\) \| .+ \|$", read("docs/index.md"), re.MULTILINE)


def test_the_citation_names_the_paper():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert "K-Score" in citation["references"][0]["title"]
    assert [author["family-names"] for author in citation["references"][0]["authors"]] == ["Xia", "Li"]


def test_published_numbers_are_complete():
    published = pd.read_csv(DATA / "paper" / "published.csv")
    assert set(published["id"]) == {"E1", "E2", "E3", "E4", "T1a", "T1b", "T2", "R6"}
    factors = {}
    for table in ("T1a", "T1b"):
        row = published[published["id"] == table].set_index("normalizer")["episodes"]
        factors[table] = row["zscore"] / row["kscore"]
    assert factors == pytest.approx({"T1a": 3.97, "T1b": 1.32}, abs=0.005)  # the factors that Table 1 prints
