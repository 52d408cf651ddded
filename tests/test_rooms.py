"""The rooms of the package: each uses only those before it, loads no more than it needs, and keeps nothing unused."""

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kscore
from kscore.project import NOTEBOOKS, ROOT

PACKAGE = Path(kscore.__file__).parent

# Rooms, and inside them modules, each of which may use what stands before it. A package's own `__init__` stands after
# all of its modules: those that look at it would look at what is built on them.
FIRST = ["checks", "project", "paths", "journal", "progress", "console", "provenance", "options"]
ROOMS = {
    "filters": ["level", "noise", "slope"],
    "normalizers": ["base", "steps", "episodes", "parts", "relatives", "groups"],
    "wrappers": ["states", "memory", "returns", "scaling", "gymnasium", "sb3_buffers", "sb3"],
    "rl": [
        "environments",
        "disturbances",
        "tasks",
        "cartpoles",
        "config",
        "networks",
        "policies",
        "compiled",
        "units",
        "algorithms",
        "training",
    ],
    "study": [
        "records",
        "arms",
        "plan",
        "page",
        "store",
        "cluster",
        "workers",
        "running",
        "outcomes",
    ],
    "analysis": [
        "stats",
        "verdicts",
        "comparisons",
        "claims",
    ],
    "figures": ["style", "tables", "charts"],
    "chapters": [
        "notebooks",
        "parameters",
        "status",
        "kernel",
        "pages",
        "site",
        "runner",
        "execute",
        "judge",
        "course",
        "marking",
        "footer",
        "lab",
    ],
}
SERVING = ["recording", "by_hand"]  # labs that other labs use
LABS = sorted(path.stem for path in (PACKAGE / "labs").glob("[a-z]*.py"))  # last of all: used by no room
ORDER = [
    "kscore",
    *(f"kscore.{name}" for name in FIRST),
    *(
        f"kscore.{room}{module}"
        for room, modules in ROOMS.items()
        for module in [*(f".{name}" for name in modules), ""]
    ),
    "kscore.__main__",
    "kscore.labs",
    *(f"kscore.labs.{name}" for name in sorted(LABS, key=lambda name: name not in SERVING)),
]

STEPS_BACK = {
    (
        "kscore.rl.config",
        "kscore.rl.policies",
    ): "a head that a configuration names by its place is imported and checked at once, as a normalizer is; only then "
    "is torch needed",
}


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(tree):
    """Every import of a module, inside its functions too; what is only there for type checkers is left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imports(other)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        else:
            yield from imports(node)


def used_by(module, modules=SOURCES):
    """The modules of the package that a module imports."""
    for node in imports(ast.parse(modules[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{module}: relative imports are not used here"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [name if name in modules else node.module for name in names]
        yield from (name for name in found if name.split(".")[0] == "kscore")


# The order


def test_every_module_has_its_place():
    assert sorted(ORDER) == sorted(SOURCES) and len(set(ORDER)) == len(ORDER)


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_uses_only_what_stands_before_it(module):
    back = {used for used in used_by(module) if ORDER.index(used) >= ORDER.index(module)}
    assert {(module, used) for used in back} == {step for step in STEPS_BACK if step[0] == module}


def test_the_map_shows_every_module_in_its_room():
    block = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\nkscore/\n")[2].partition("```")[0]
    found, room = [], ""
    for line in block.splitlines():
        room = room if line.startswith(" " * 8) else ""
        for word in re.split(r"\s{2,}", line.strip()):
            if word.endswith("/"):
                room = f"{word[:-1]}."
                found.append(f"kscore.{word[:-1]}")
            elif re.fullmatch(r"[a-z0-9_]+", word):
                found.append(f"kscore.{room}{word}")
    assert sorted(["kscore", *found]) == sorted(SOURCES)


def test_every_step_is_seen(tmp_path):
    source = (
        "import kscore.checks\nfrom kscore import filters, journal\nfrom kscore.rl import config as c, train\n"
        "from typing import TYPE_CHECKING\nimport numpy\nif TYPE_CHECKING:\n    from kscore import progress\n"
        "def f():\n    from kscore.study.plan import part\n    class A:\n        def g(self):\n"
        "            import kscore.chapters.runner as r\n"
        "try:\n    from kscore.analysis import stats\nexcept ImportError:\n    import kscore.figures\n"
    )
    path = tmp_path / "module.py"
    path.write_text(source)
    assert set(used_by("x", SOURCES | {"x": path})) == {
        "kscore.checks",
        "kscore.filters",
        "kscore.journal",
        "kscore.rl.config",
        "kscore.rl",
        "kscore.study.plan",
        "kscore.chapters.runner",
        "kscore.analysis.stats",
        "kscore.figures",
    }


# The labs


def pages_of(lab):
    """The chapters that use a lab, by their numbers."""
    return {
        path.name[:2]
        for path in NOTEBOOKS.glob("*.py")
        if re.search(rf"^from kscore\.labs(\.{lab}\b|.* import (.*\W)?{lab}\b)", path.read_text("utf-8"), re.MULTILINE)
    }


@pytest.mark.parametrize("lab", [name for name in LABS if name not in {"recording", "play"}])  # play has its own page
def test_a_lab_serves_one_page_or_two_and_names_them(lab):
    found = pages_of(lab)
    opening = ast.get_docstring(ast.parse(SOURCES[f"kscore.labs.{lab}"].read_text("utf-8"))).partition("\n\n")[0]
    named = re.findall(r"chapters? (\d\d)(?: and (\d\d))?", opening)
    assert 1 <= len(found) <= 2 and {number for pair in named for number in pair if number} == found


@pytest.mark.parametrize("module", [name for name in SOURCES if name.startswith("kscore.labs.")])
def test_no_lab_uses_another(module):
    labs = {used for used in used_by(module) if used.startswith("kscore.labs.")}
    assert labs <= {f"kscore.labs.{name}" for name in SERVING} and "kscore.labs" not in used_by(module)


# What is loaded


def loaded_by(code):
    """The names of the packages that are there after some code and were not before."""
    script = f"import json, sys\nbefore = set(sys.modules)\n{code}\nprint(json.dumps(list(set(sys.modules) - before)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {name.split(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_the_idea_needs_numpy_alone():
    found = loaded_by("import kscore, kscore.filters, kscore.normalizers, kscore.wrappers.scaling")
    assert found - set(sys.stdlib_module_names) == {"kscore", "numpy"}


def test_nothing_is_loaded_with_the_package_itself():
    assert loaded_by("import kscore") - set(sys.stdlib_module_names) == {"kscore"}


USES = {  # the executor of the second trains nothing: all is in the archive
    "import": "import kscore.study, kscore.analysis, kscore.figures, kscore.chapters, kscore.rl, kscore.__main__",
    "read": "from concurrent.futures import Executor\n"
    "from kscore import analysis, study\n"
    "from kscore.rl import RunConfig\n"
    "RunConfig(env='Acrobot-v1', algorithm='ppo', threshold=None, value_scale={'name': 'running'})\n"
    "analysis.summary(study.runs(study.part('lunarlander_released'), executor=Executor()))",
}


@pytest.mark.parametrize("use", USES)
def test_torch_is_not_loaded_before_something_is_trained(use):
    assert "torch" not in loaded_by(USES[use])


def test_torch_is_loaded_with_training():
    assert "torch" in loaded_by("from kscore.rl import train")


# What there is


@pytest.mark.parametrize("module", [name for name in SOURCES if "__all__" in SOURCES[name].read_text(encoding="utf-8")])
def test_what_a_package_offers_exists(module):
    package = importlib.import_module(module)
    assert len(set(package.__all__)) == len(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None


def references(path):
    """The names that a file uses, and the modules of the package that it may have them from."""
    names, known = set(), {module_name(path)} if path.is_relative_to(PACKAGE) else set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and path.name != "__init__.py":  # to pass on is not to use
            names |= {alias.name for alias in node.names}
            known |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names, known


USERS = [
    references(path)
    for folder in (PACKAGE, NOTEBOOKS, ROOT / "docs", ROOT / "benchmarks", ROOT / "play")
    for path in folder.rglob("*.py")
]
PROSE = "".join(
    path.read_text(encoding="utf-8")
    for path in [  # the plan names what its outcomes are computed by
        ROOT / "Makefile",
        ROOT / "data/PLAN.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "play").rglob("*.js"),
    ]
)


def is_used(module, name):
    """Say whether something uses a name of a module, and not just its tests; its package may have passed it on."""
    places = {module, module.rpartition(".")[0]} - {"kscore"}
    return any(name in names and known & places for names, known in USERS) or f"{module}.{name}" in PROSE


@pytest.mark.parametrize("module", SOURCES)
def test_no_function_or_class_is_there_for_nothing(module):
    tree = ast.parse(SOURCES[module].read_text(encoding="utf-8"))
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert not [
        name
        for name in defined
        if not is_used(module, name) and not (name.startswith("__") or (module, name) == ("kscore.__main__", "main"))
    ]


def test_what_is_there_for_nothing_is_seen():
    assert is_used("kscore.study.plan", "part") and is_used("kscore.chapters.lab", "Chapters")
    assert not is_used("kscore.study.plan", "no_such_thing") and not is_used("kscore.study.plan", "Adder")
