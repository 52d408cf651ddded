"""The plan: every experiment, declared once in data/plan.toml, whose first lines explain it; data/PLAN.md says why.

    >>> part("cartpole_ppo").configs["adaptive_refit"].normalizer["Q"]
    0.01

A part is a file of runs, with its arms (a name and a configuration each) and its seeds.
"""

import fnmatch
import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from kscore import checks
from kscore.project import DATA, need_checkout
from kscore.rl.config import ALGORITHMS, PRESETS, RunConfig
from kscore.study import arms as making
from kscore.study.arms import Words

PATH = DATA / "plan.toml"
MARKS = ("planned", "added", "after seeing")
DEVELOPMENT = range(1000)  # seeds for trying things out
LIVE = range(3000, 4000)  # seeds of what chapters train before the reader's eyes
REPORT, REPLICATION = 11, "replication"  # the chapter that reads all of the replication, and the table of that

NEEDED = ("name", "says", "mark", "chapters", "seeds", "first_seed", "learner", "env")
OPTIONAL = ("family", "arms", "settings", "conditions", "grid", "best_of", "keep", "beside")
KEPT = ("records", "outcomes")


class Seeds(NamedTuple):
    """A stretch of seeds: the first, and how many."""

    first: int
    count: int


class Entry(NamedTuple):
    """A part as it is declared."""

    name: str
    table: str  # of data/PLAN.md
    chapters: tuple[int, ...]  # that read it, beside the report
    seeds: Seeds
    mark: str  # when it was thought of
    words: Words  # all that is said of it
    best_of: Mapping[str, str] = {}  # the grids whose best settings are its arms, by arm
    keep: str = "records"  # or "outcomes", which have no curves
    beside: tuple[str, ...] = ()  # parts whose runs count as its own, where the configuration is the same


class Part(NamedTuple):
    """A part of the study, ready to be trained or read."""

    name: str
    configs: dict[str, RunConfig]
    seeds: range
    columns: Mapping[str, Mapping[str, str]] = {}  # what the plan calls the normalizer and the condition of an arm
    keep: str = "records"  # or "outcomes", see `kscore.study.outcomes`
    beside: tuple[str, ...] = ()  # parts whose runs count as its own, where the configuration is the same

    @property
    def file(self) -> str:
        """The name of its file in a store."""
        return f"{self.name}.jsonl"

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return len(self.configs) * len(self.seeds)


def part(
    name: str,
    *,
    seeds: int | None = None,
    first_seed: int | None = None,
    arms: Iterable[str] | None = None,
    grid: Mapping[str, Iterable[float]] | None = None,
    winners: Mapping[str, RunConfig] | None = None,
    **changes: object,
) -> Part:
    """Return a part of the study as planned; fewer seeds, other ones, or changed settings are for trying things out.

    `arms` picks some of its arms, `grid` gives options of its grid other values, `winners` are the best settings of
    its grids, by arm; `changes` are settings of `RunConfig` that are made to all arms.
    """
    entry = parts()[checks.choice("part of the study", name, parts())]
    first = entry.seeds.first if first_seed is None else checks.seed("first_seed", first_seed)
    most = checks.LARGEST_SEED + 1 - first
    count = checks.whole("seeds", entry.seeds.count if seeds is None else seeds, high=most)
    for setting in changes:
        checks.choice("setting", setting, sorted(making.SETTINGS))
    if entry.best_of:
        return Part(name, _tuned(entry, winners), range(first, first + count))
    made, task = _arms(entry, arms, grid or {}, changes), (entry.words["learner"], entry.words["env"])
    configs = {arm.title: making.config(arm.layers, *task, **changes) for arm in made}
    columns = {arm.title: arm.columns for arm in made}
    return Part(name, configs, range(first, first + count), columns, entry.keep, entry.beside)


def _arms(entry: Entry, arms: Iterable[str] | None, grid: Mapping, changes: Words) -> list[making.Arm]:
    for option in grid:
        checks.choice("option of the grid", option, entry.words.get("grid", {}))
    if "grid" in entry.words:
        made = list(making.cells_of(entry.words, entry.words["grid"] | grid))
        titles = [arm.title for arm in made]
        return [made[titles.index(checks.choice("arm", name, titles))] for name in (titles if arms is None else arms)]
    for setting in making.said_by_titles(_read(), entry.words) & set(changes):
        raise ValueError(f"{setting} must be left as the names of these arms have it, got {changes[setting]!r}")
    names = _names(_read(), entry.words)
    chosen = names if arms is None else [checks.choice("arm", name, names) for name in arms]
    return list(making.arms_of(_read(), entry.words, chosen))


def _tuned(entry: Entry, winners: Mapping[str, RunConfig] | None) -> dict[str, RunConfig]:
    if winners is None:
        raise ValueError(
            f"a tuned part needs winners, the best setting of each of its grids ({', '.join(entry.best_of)}), "
            "got none: `analysis.best` finds them in the runs of the grids"
        )
    return {checks.choice("arm of winners", name, entry.best_of): config for name, config in winners.items()}


def arm(family: str, name: str, learner: str, env: str = "CartPole-v1", **settings: object) -> RunConfig:
    """Return an arm of a family with a learner on a task, with some settings, in the words of the plan.

    >>> arm("contest", "episode_filter", "ppo", rate=0.003).learning_rate
    0.003
    """
    families = _read()["arms"]
    known = families[checks.choice("family", family, families)]
    checks.choice("arm", name, [name for name in known if name != "*"])
    making.check_settings(f"arm {name!r}", settings)
    return making.config([*making.layers(families, family, name), settings], learner, env)


def condition(name: str) -> Words:
    """Return what is done to a task under a condition, as settings of all arms."""
    return _read()["conditions"][checks.choice("condition", name, _read()["conditions"])]


def grids_of(name: str) -> Mapping[str, str]:
    """Return the parts whose best settings a tuned part is made of, by its arms; none for any other part."""
    return parts()[checks.choice("part of the study", name, parts())].best_of


def chosen(patterns: Iterable[str] = ()) -> list[str]:
    """Return the names of the parts that any of the patterns means: a name, a glob, or the number of a chapter.

    All of them without a pattern. A tuned part brings its grids with it.
    """
    wanted = set()
    for pattern in patterns:
        matching = _of_chapter(int(pattern)) if pattern.isdecimal() else fnmatch.filter(parts(), pattern)
        wanted.update(matching or [checks.choice("part of the study", pattern, parts())])
    wanted |= {grid for name in wanted for grid in grids_of(name).values()}
    return [name for name in parts() if not wanted or name in wanted]


def _of_chapter(number: int) -> list[str]:
    readers = {
        name: {*entry.chapters, *([REPORT] if entry.table == REPLICATION else [])} for name, entry in parts().items()
    }
    checks.choice("chapter with experiments", str(number), map(str, sorted(set().union(*readers.values()))))
    return [name for name, chapters in readers.items() if number in chapters]


# The file


SECTIONS = {"arms": {}, "groups": {}, "conditions": {}, "settings": {}, "tables": []}


@cache
def parts() -> dict[str, Entry]:
    """Return every part of the study as it is declared, in the order of the plan."""
    plan, found = _read(), {}
    try:
        for table, row in rows():
            for words in _expanded(row):
                entry = _entry(plan, table, words)
                if entry.name in found:
                    raise ValueError(f"name of a part must be its own, got {entry.name!r} twice")
                found[entry.name] = entry
        for entry in found.values():
            for other in (*entry.best_of.values(), *entry.beside):
                checks.choice(f"best_of or beside of part {entry.name!r}", other, found)
    except ValueError as error:
        raise ValueError(f"{PATH.name}: {error}") from None
    return found


@cache
def _read() -> Words:
    need_checkout("the plan of the study")
    try:
        plan = SECTIONS | tomllib.loads(PATH.read_text(encoding="utf-8"))
        for section in plan:
            checks.choice("section", section, SECTIONS)
        making.check(plan)
    except ValueError as error:  # or what is no TOML
        raise ValueError(f"{PATH.name}: {error}") from None
    return plan


def rows() -> Iterator[tuple[str, Words]]:
    """Return what a row of each table says, with what the table says of all of its rows."""
    for table in _read()["tables"]:
        shared = {key: value for key, value in table.items() if key not in ("table", "parts")}
        for row in table.get("parts", ()):
            if not isinstance(row.get("name"), str) or "table" not in table:
                raise ValueError(f"a part must have a name, and its table one in `table`, got {shared | row}")
            yield table["table"], {key: value for key, value in shared.items() if key not in row} | row


def _expanded(row: Words) -> Iterator[Words]:
    """Return a part for every way to choose among the words that its name has in braces."""
    braces = [key for key in row if f"{{{key}}}" in row["name"]]
    for words in itertools.product(*(row[key] for key in braces)):
        part = {key: value for key, value in row.items() if key not in braces}
        for key, word in zip(braces, words, strict=True):
            part = _said(part, key, word) | ({"learner": word} if key == "learner" else {})
            part |= row[key][word] if isinstance(row[key], Mapping) else {}
        yield part


def _said(words: object, key: str, word: str) -> object:
    """Return some words with one that was chosen in the place of its braces."""
    if isinstance(words, str):
        return words.replace(f"{{{key}}}", word)
    if isinstance(words, Mapping):
        return {name: _said(value, key, word) for name, value in words.items()}
    return [_said(value, key, word) for value in words] if isinstance(words, list) else words


def _entry(plan: Words, table: str, words: Words) -> Entry:
    """Return a part, if it says all that it has to, and nothing that is not known."""
    name = words["name"]
    if not re.fullmatch(r"\w+", name):
        raise ValueError(
            f"name of a part must be letters, digits and _, and each {{key}} in it a list of words, got {name!r}"
        )
    for key in NEEDED:
        if key not in words:
            raise ValueError(f"part {name!r} must have {', '.join(NEEDED)}, got no {key}")
    for key in words:
        checks.choice(f"key of part {name!r}", key, (*NEEDED, *OPTIONAL, *sorted(making.KNOWN)))
    for key, allowed in (("mark", MARKS), ("learner", ALGORITHMS), ("env", PRESETS), ("keep", KEPT)):
        if key in words:
            checks.choice(f"{key} of part {name!r}", words[key], allowed)
    if not words.keys() & {"family", "grid", "best_of"}:
        raise ValueError(f"part {name!r} must have a family, a grid or best_of, got none of them")
    if "family" in words:
        _check_arms(plan, words)
    if not isinstance(words["chapters"], list):
        raise ValueError(f"chapters of part {name!r} must be a list of their numbers, got {words['chapters']!r}")
    return Entry(
        name,
        table,
        tuple(checks.whole(f"chapters of part {name!r}", chapter, low=0) for chapter in words["chapters"]),
        _seeds(words),
        words["mark"],
        words,
        words.get("best_of", {}),
        words.get("keep", KEPT[0]),
        tuple(words.get("beside", ())),
    )


def _seeds(words: Words) -> Seeds:
    name = words["name"]
    seeds = Seeds(
        checks.seed(f"first_seed of part {name!r}", words["first_seed"]),
        checks.whole(f"seeds of part {name!r}", words["seeds"]),
    )
    end = seeds.first + seeds.count
    if seeds.first in DEVELOPMENT or seeds.first < LIVE.stop and end > LIVE.start:
        raise ValueError(
            f"seeds of part {name!r} must be from {DEVELOPMENT.stop} on and leave out {LIVE.start} to {LIVE.stop - 1}, "
            f"which chapters train live, got {seeds.first} to {end - 1}"
        )
    return seeds


def _check_arms(plan: Words, words: Words) -> None:
    name = words["name"]
    checks.choice(f"family of part {name!r}", words["family"], plan["arms"])
    if isinstance(words.get("arms"), str):
        checks.choice(f"arms of part {name!r}", words["arms"], plan["groups"])
    for arm in _names(plan, words):
        checks.choice(f"arm of part {name!r}", arm, plan["arms"][words["family"]])
    for condition in words.get("conditions", ()):
        checks.choice(f"condition of part {name!r}", condition, plan["conditions"])
    for key in making.SHORT:
        if isinstance(words.get(key), Mapping) and "*" not in words[key]:
            raise ValueError(f"{key} of part {name!r} must say '*', what all other arms have, got {words[key]!r}")
    if "settings" in words:
        checks.choice(f"settings of part {name!r}", words["settings"], plan["settings"])
        settings = plan["settings"][words["settings"]].get(words["learner"], {})
        for arm in _names(plan, words):
            checks.choice(f"arm of part {name!r} with settings {words['settings']!r}", arm, settings)


def _names(plan: Words, words: Words) -> list[str]:
    """Return the arms of a part: a list, the name of one, or all of the family."""
    arms = words.get("arms") or [name for name in plan["arms"][words["family"]] if name != "*"]
    return plan["groups"][arms] if isinstance(arms, str) else arms
