"""The chapters and their parameters: find them, read what can be set, and check values before anything runs.

A parameter's comment may end in what is allowed: `[1, 500]` for numbers from 1 to 500 (`inf` for no end), or
`{stream, refit}` for one of these words.
"""

import ast
import fnmatch
import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from kscore import NOTEBOOKS, checks

PROFILES = NOTEBOOKS / "profiles.toml"
KINDS = {"int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict}


def chapters(patterns: Iterable[str] = ()) -> list[Path]:
    """Return the chapters that match any of the patterns (a name, a number, or a glob); all of them without one."""
    found = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    chosen = []
    for pattern in patterns:
        matching = [path for path in found if _matches(path.stem, pattern)]
        if not matching:
            checks.choice("chapter", pattern, [path.stem for path in found])
        chosen += matching
    return sorted(set(chosen)) if chosen else found


def _matches(stem: str, pattern: str) -> bool:
    if pattern.isdecimal():
        return int(pattern) == int(stem.split("_")[0])
    return fnmatch.fnmatchcase(stem, pattern)


class Parameter(NamedTuple):
    """One line of a chapter's parameters cell."""

    name: str
    kind: str  # int, float, str, bool, list or dict
    default: object
    about: str  # its comment, without what is allowed
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        if self.words:
            return f"one of {', '.join(self.words)}"
        if self.low is None:
            return {"list": "a list", "dict": "a mapping", "bool": "true or false", "str": "a text"}.get(
                self.kind, {"int": "a whole number", "float": "a number"}.get(self.kind, self.kind))
        ends = f"of at least {self.low:g}" if self.high == float("inf") else f"from {self.low:g} to {self.high:g}"
        return f"{'a whole number' if self.kind == 'int' else 'a number'} {ends}"


def parameters(chapter: Path) -> dict[str, Parameter]:
    """Return the parameters of a chapter, in their order."""
    import papermill  # here, because it takes a second that not every command needs

    return {name: _parameter(found) for name, found in papermill.inspect_notebook(chapter).items()}


def _parameter(found: Mapping[str, str]) -> Parameter:
    about, (low, high, words) = found["help"], (None, None, ())
    if bounds := re.search(r"\s*\[(\S+), (\S+)\]$", about):
        low, high, about = float(bounds[1]), float(bounds[2]), about[:bounds.start()]
    elif choices := re.search(r"\s*\{([^}]*)\}$", about):
        words, about = tuple(choices[1].split(", ")), about[:choices.start()]
    return Parameter(found["name"], found["inferred_type_name"], ast.literal_eval(found["default"]), about, low, high,
                     words)


def check(chapter: Path, values: Mapping[str, object]) -> dict[str, object]:
    """Return values that a chapter can be run with; refuse, with a sentence, a name or a value that it does not take.

    A text is read as what the parameter is: "5" is a number for a number, and stays a text for a text.
    """
    known = parameters(chapter)
    for name in values:
        checks.choice(f"parameter of {chapter.stem}", name, known)
    return {name: _value(chapter, known[name], value) for name, value in values.items()}


def _value(chapter: Path, parameter: Parameter, value: object) -> object:
    read = _read(value) if isinstance(value, str) and parameter.kind != "str" else value
    kind = KINDS[parameter.kind]
    if kind is float and type(read) is int:
        read = float(read)
    right = type(read) is kind and (parameter.low is None or parameter.low <= read <= parameter.high)
    if not right or (parameter.words and read not in parameter.words):
        raise ValueError(f"{parameter.name} of {chapter.stem} must be {parameter.allowed}, got {value!r}")
    return read


def _read(text: str) -> object:
    """Read a value as YAML has it, which never runs anything; 1e-4 is a number too."""
    try:
        return float(text) if re.fullmatch(r"[+-]?\d+(\.\d*)?[eE][+-]?\d+", text) else yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def profile(name: str) -> dict[str, dict]:
    """Return the parameters that a named profile gives to each chapter; "default" gives none."""
    profiles = {"default": {}} | tomllib.loads(PROFILES.read_text(encoding="utf-8"))
    return profiles[checks.choice("profile", name, profiles)]


def from_file(path: Path, chosen: Iterable[Path]) -> dict[str, dict]:
    """Return the parameters that a YAML file gives to each chosen chapter.

    The file maps names to values, for all of them, or chapters to such mappings.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"the parameter file {path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"the parameter file {path} is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"the parameter file {path} must map names to values, got {type(found).__name__}")
    stems = {path.stem for path in chapters()}
    by_chapter = {name: values for name, values in found.items() if name in stems}
    for name, values in by_chapter.items():
        if not isinstance(values, dict):
            raise ValueError(f"{name} in {path} must map names to values, got {values!r}")
    common = {name: value for name, value in found.items() if name not in stems}
    return {chapter.stem: common | by_chapter.get(chapter.stem, {}) for chapter in chosen}


def grid(sweeps: Iterable[str]) -> list[dict[str, str]]:
    """Return every combination of the sweeps, each "name=a,b,c"; one empty combination without any."""
    axes = []
    for sweep in sweeps:
        name, equals, values = sweep.partition("=")
        if not equals or not name or not all(values.split(",")):
            raise ValueError(f"sweep must be name=value,value,..., got {sweep!r}")
        axes.append([(name, value) for value in values.split(",")])
    return [dict(combination) for combination in itertools.product(*axes)]
