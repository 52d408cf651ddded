"""From the words of data/plan.toml to configurations: an arm is a learner's preset on a task, and layers of changes."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import NamedTuple

from kscore import checks
from kscore.rl.config import ALGORITHMS, PRESETS, RunConfig
from kscore.study.records import DOORS

Words = Mapping[str, object]

SHORT = {"rate": "learning_rate", "z_scored": "normalize_advantages"}
SETTINGS = {field.name for field in fields(RunConfig)} - {"env", "algorithm"}
KNOWN = SETTINGS | set(SHORT) | {"both_doors"}
"""What may be said of an arm."""
COMPLEMENT = "1 - "  # before an option: what is given is one minus its value


class Arm(NamedTuple):
    """An arm of a part: its name, what it is made of, and what the plan calls its normalizer and its condition."""

    title: str
    layers: list[Words]
    columns: dict[str, str]


def arms_of(plan: Words, declared: Words, names: Iterable[str]) -> Iterator[Arm]:
    """Return arms of a part's family at each of its rates, in each way with advantages, under each condition."""
    for condition, rate, name in itertools.product(
        declared.get("conditions", [None]), _several(declared, "rate"), names
    ):
        for z_scored in _several(declared, "z_scored", name):
            own = {key: value for key, value in (("rate", rate), ("z_scored", z_scored)) if value is not None}
            yield Arm(
                name
                + (f" at {short_number(rate)}" if rate else "")
                + (", z-scored" if z_scored else "")
                + (f", {condition}" if condition else ""),
                [
                    *layers(plan["arms"], declared["family"], name),
                    plan["settings"][declared["settings"]][declared["learner"]][name] if "settings" in declared else {},
                    shared(declared),
                    own,
                    plan["conditions"][condition] if condition else {},
                ],
                {"normalizer": name} | ({"condition": condition} if condition else {}),
            )


def cells_of(declared: Words, grid: Mapping[str, Iterable[float]]) -> Iterator[Arm]:
    """Return an arm for every combination of some options of the part's normalizer."""
    for values in itertools.product(*grid.values()):
        cell = dict(zip(grid, values, strict=True))
        title = ", ".join(f"{option} = {short_number(value)}" for option, value in cell.items())
        yield Arm(title, [shared(declared), {"normalizer": cell}], {})


def said_by_titles(plan: Words, declared: Words) -> set[str]:
    """Return the settings that the names of a part's arms speak of."""
    varied = {SHORT[key] for key in SHORT if _several(declared, key) != [None]}
    return varied.union(*(plan["conditions"][condition] for condition in declared.get("conditions", ())))


def _several(declared: Words, key: str, name: str = "*") -> list:
    """Return the values of a setting that make arms of their own, which may be others for some arms; or None alone."""
    values = declared.get(key)
    if isinstance(values, Mapping):
        values = values.get(name, values["*"])
    return values if isinstance(values, list) else [None]


def shared(declared: Words) -> Words:
    """Return the settings that a part makes to all of its arms."""
    several = {key for key in SHORT if _several(declared, key) != [None]}
    return {key: value for key, value in declared.items() if key in KNOWN - several}


def layers(families: Words, family: str, name: str) -> list[Words]:
    """Return what makes an arm of a family: the family's own, what the arm is like, and what it says itself."""
    own = families[family][name]
    alike = layers(families, *own["like"].split(".")) if "like" in own else []
    return [families[family].get("*", {}), *alike, own]


def config(layers: Iterable[Words], learner: str, env: str, **changes: object) -> RunConfig:
    """Return the preset of a learner on a task with some layers of settings; later ones win, and `changes` over all."""
    settings = _merged(layers, learner, env)
    for door in DOORS:
        if settings.get(door):
            settings[door] = dict(map(_option, *zip(*settings[door].items(), strict=True)))
    made = RunConfig.preset(env, learner)
    if learner == "reinforce":  # which has neither advantages nor a critic
        settings = {key: settings[key] for key in settings if key not in ("advantage_normalizer", "value_scale")}
        settings["normalize_advantages"] = False
    if settings.get("normalize_advantages", made.normalize_advantages):
        settings.pop("advantage_normalizer", None)
    return replace(made, **settings | changes)


def _merged(layers: Iterable[Words], learner: str, env: str) -> dict:
    settings: dict = {}
    for layer in layers:
        for words in (layer, layer.get(learner, {}), layer.get(env, {})):
            for key, value in words.items():
                for name in ("normalizer", "advantage_normalizer") if key == "both_doors" else [SHORT.get(key, key)]:
                    if name in DOORS and "name" not in value:
                        value = settings.get(name, {}) | value  # other options of the same normalizer
                    if name in SETTINGS:
                        settings[name] = value
    return settings


def _option(name: str, value: object) -> tuple[str, object]:
    return (name.removeprefix(COMPLEMENT), 1 - value) if name.startswith(COMPLEMENT) else (name, value)


def short_number(value: float) -> str:
    """Return a number in six digits, or in as many as it needs to be told from any other."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


# What the plan may say


def check(plan: Words) -> None:
    """Refuse a plan whose arms, settings or conditions say what nothing knows."""
    seen = []
    for family, arms in plan["arms"].items():
        for name, words in arms.items():
            if "like" in words:
                checks.choice(f"like of arm {name!r}, an arm that stands before it,", words["like"], seen)
            check_settings(f"arm {name!r} of {family}", {key: words[key] for key in words if key != "like"})
            seen.append(f"{family}.{name}")
    for name, condition in plan["conditions"].items():
        check_settings(f"condition {name!r}", condition)
    for table, learners in plan["settings"].items():
        for learner, arms in learners.items():
            checks.choice(f"learner of settings {table!r}", learner, ALGORITHMS)
            for name, words in arms.items():
                check_settings(f"arm {name!r} of settings {table!r}", words)


def check_settings(what: str, words: Words) -> None:
    """Refuse what is no setting; below the name of a learner or an environment stand those of that one alone."""
    for key, value in words.items():
        if key in ALGORITHMS or key in PRESETS:
            check_settings(f"{what} with {key}", value)
        else:
            checks.choice(f"setting of {what}", key, sorted(KNOWN))
