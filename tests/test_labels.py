"""The labels of facts, P4, D2, R1: explained in one table, in chapter 00, and cited from many places."""

import re

import pytest

from kscore.project import NOTEBOOKS, ROOT

TABLE = (NOTEBOOKS / "00_start_here.py").read_text(encoding="utf-8").split("| label | fact |")[1].split("# %%")[0]
EXPLAINED = {label for row in re.findall(r"^# \| ([PDR][^|]*) \|", TABLE, re.MULTILINE) for label in row.split(", ")}
MODULES = sorted((ROOT / "kscore").rglob("*.py"))
TEXTS = [*MODULES, *sorted(NOTEBOOKS.glob("*.py")), *sorted((ROOT / "docs").rglob("*.md"))]


def cited(path):
    """The labels that a text cites: P4 where it is a word of its own, and no symbol of a formula or a name in code."""
    text = path.read_text(encoding="utf-8")
    return set(re.findall(r"(?<![\w.$\\{`'\"_^=/-])([PDR][1-9])(?![\w_'\"]|\s*=)", text)) - {"P0"}


def test_the_table_is_complete():
    last = {"P": 9, "D": 5, "R": 8}
    assert {f"{kind}{number}" for kind in last for number in range(1, last[kind] + 1)} == EXPLAINED


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_label_that_is_cited_is_explained(path):
    assert cited(path) <= EXPLAINED


@pytest.mark.parametrize("path", [path for path in MODULES if cited(path)], ids=lambda path: path.stem)
def test_a_module_that_cites_labels_says_where_they_are_explained(path):
    assert "chapter 00 lists them" in path.read_text(encoding="utf-8")
