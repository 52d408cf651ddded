"""What must not change unnoticed: the values of every recorded run, the key of every arm, the numbers of two pages.

`python tests/test_golden.py` writes all three anew into tests/golden; the difference that git shows is then the change,
and a commit that holds one says why. Training is not among them, because processors round differently.
"""

import hashlib
import json
import re
from functools import cache
from pathlib import Path

import orjson
import pytest

from kscore import analysis, study
from kscore.project import ARCHIVE, ROOT
from kscore.study import plan
from kscore.study.records import Record, key

GOLDEN = Path(__file__).parent / "golden"
PAGES = ("README.md", "docs/answer.md")
VALUES = ("status", "episodes", "train_returns", "eval_returns", "train_steps", "eval_steps", "steps", "solved_at")
NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?%?")


def digest(*pieces):
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece + b"\n")
    return found.hexdigest()


def values(line):
    """What a run is known by and what came out, as bytes; when and on which machine it ran is left out."""
    record = Record.parse(line)
    came_out = {name: getattr(record, name) for name in VALUES}
    settings, seed = record.key
    return settings + orjson.dumps([seed, came_out], option=orjson.OPT_SERIALIZE_NUMPY)


def of_archive(name):
    """How many runs a file of the archive holds, and a digest of them in the order of their keys."""
    lines = (ARCHIVE / f"{name}.jsonl").read_bytes().splitlines()
    return {"runs": len(lines), "values": digest(*sorted(map(values, lines)))}


@cache
def part(name):
    """A part as it was recorded: the arms of a tuned one are the best of its recorded grids."""
    grids = {kind: part(grid) for kind, grid in plan.grids_of(name).items()}
    if not grids:
        return plan.part(name)
    winners = {
        kind: grid.configs[analysis.best(study.recorded(grid.configs, grid.seeds, ARCHIVE / grid.file))]
        for kind, grid in grids.items()
    }
    return plan.part(name, winners=winners)


def of_plan(name):
    """The chapters and seeds of a part, and the key of each of its arms, in their order."""
    found = part(name)
    arms = [[arm, digest(key(config, 0)[0])[:16]] for arm, config in found.configs.items()]
    return {"chapters": list(plan.parts()[name].chapters), "seeds": [found.seeds.start, len(found.seeds)], "arms": arms}


def of_page(name):
    """Every number that a page says, in its order; those in addresses are not said."""
    text = re.sub(r"\]\([^)]*\)|<!--.*?-->|^\[[^\]]*\]: \S+", " ", (ROOT / name).read_text(encoding="utf-8"))
    return NUMBER.findall(text)


KINDS = {"archive": of_archive, "plan": of_plan, "pages": of_page}


def golden(kind):
    return json.loads((GOLDEN / f"{kind}.json").read_text(encoding="utf-8"))


def test_every_part_and_page_has_its_golden():
    assert list(golden("plan")) == list(plan.parts())  # in the order of the study
    assert set(golden("archive")) == {path.stem for path in ARCHIVE.glob("*.jsonl")}
    assert tuple(golden("pages")) == PAGES


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_has_changed(kind):
    for name, before in golden(kind).items():
        assert KINDS[kind](name) == before, name


def test_a_changed_value_changes_the_digest():
    line = (ARCHIVE / "lunarlander_released.jsonl").read_bytes().splitlines()[0]
    record = orjson.loads(line)
    assert values(orjson.dumps(record | {"seconds": 1.0, "machine": "another"})) == values(line)
    for change in (
        {"seed": record["seed"] + 1},
        {"eval_returns": [*record["eval_returns"][:-1], record["eval_returns"][-1] + 1e-12]},
        {"config": record["config"] | {"gamma": 0.5}},
    ):
        assert values(orjson.dumps(record | change)) != values(line)


def write():
    """Write all goldens as things are now."""
    names = {"archive": sorted(path.stem for path in ARCHIVE.glob("*.jsonl")), "plan": plan.parts(), "pages": PAGES}
    GOLDEN.mkdir(exist_ok=True)
    for kind, of in KINDS.items():
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(of(name))}" for name in names[kind])
        (GOLDEN / f"{kind}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
