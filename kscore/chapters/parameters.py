"""The parameters of chapters: read what can be set, and check values before anything runs.

A parameter is a line `name: type = value  # comment` of the cell tagged `parameters`. Its comment may end in what is
allowed: `[1, 500]` for numbers from 1 to 500 (`inf` for no end), or `{stream, refit}` for one of these words. For a
list of numbers, `list[int]` or `list[float]`, that holds for each of them, and how many there may be can follow:
`[0, 1], 2 to 9`, or `2 to 9 different` where none may be repeated.
"""

import ast
import itertools
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from kscore import checks
from kscore.chapters import notebooks
from kscore.project import NOTEBOOKS

PROFILES = NOTEBOOKS / "profiles.toml"
KINDS = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "list": list,
    "dict": dict,
    "list[int]": list,
    "list[float]": list,
}
FOLDER = "store"  # the parameter that names a folder to write to
NUMBERS = ("int", "float", "list[int]", "list[float]")  # these may have a range
IN_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "list": "a list of plain values",
    "dict": "a mapping of names to plain values",
    "list[int]": "a list of whole numbers",
    "list[float]": "a list of numbers",
}


class Parameter(NamedTuple):
    """One line of a chapter's parameters cell."""

    name: str
    kind: str  # one of KINDS
    default: object
    about: str  # its comment, without what is allowed
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()
    lengths: tuple[int, int] | None = None  # of a list, the fewest and the most
    different: bool = False  # whether the elements of a list must be

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        if self.words:
            return f"one of {', '.join(self.words)}"
        kind = IN_WORDS[self.kind]
        if self.lengths:
            count = f"{self.lengths[0]} to {self.lengths[1]}{' different' if self.different else ''}"
            kind = kind.replace("a list of", f"a list of {count}")
        if self.low is None:
            return kind
        form = ".0f" if self.kind in ("int", "list[int]") else "g"
        low, high = f"{self.low:{form}}", f"{self.high:{form}}"
        ends = f"of at least {low}" if self.high == float("inf") else f"from {low} to {high}"
        return f"{kind} {ends}"


def of(chapter: Path) -> dict[str, Parameter]:
    """Return the parameters of a chapter, in their order."""
    tagged = [cell["source"] for cell in notebooks.cells(chapter) if "parameters" in cell["metadata"].get("tags", [])]
    code = "".join(tagged[:1])
    lines = [line.encode() for line in code.splitlines()]  # Python counts columns in bytes
    found = [node for node in ast.parse(code).body if isinstance(node, ast.AnnAssign)]
    return {
        node.target.id: _parameter(node, lines[node.end_lineno - 1][node.end_col_offset :].decode()) for node in found
    }


def _parameter(node: ast.AnnAssign, rest: str) -> Parameter:
    name, about, (low, high, words) = node.target.id, rest.partition("#")[2].strip(), (None, None, ())
    kind = checks.choice(f"type of {name}", ast.unparse(node.annotation), KINDS)
    lengths, different = None, False
    if kind.startswith("list") and (count := re.search(r",? (\d+) to (\d+)( different)?$", about)):
        lengths, different, about = (int(count[1]), int(count[2])), bool(count[3]), about[: count.start()]
    if kind in NUMBERS and (bounds := re.search(r"\s*\[(\S+), (\S+)\]$", about)):
        low, high, about = float(bounds[1]), float(bounds[2]), about[: bounds.start()]
    elif choices := re.search(r"\s*\{([^}]*)\}$", about):
        words, about = tuple(choices[1].split(", ")), about[: choices.start()]
    return Parameter(name, kind, ast.literal_eval(node.value), about, low, high, words, lengths, different)


def check(chapter: Path, values: Mapping[str, object], known: Mapping[str, Parameter] | None = None) -> dict:
    """Return values that a chapter can be run with; refuse, with a sentence, a name or a value that it does not take.

    A text is read as what the parameter is: "5" is a number for a number, and stays a text for a text. `known` are the
    chapter's parameters, for a caller who has read them already.
    """
    known = of(chapter) if known is None else known
    for name in values:
        if not known:
            raise ValueError(f"{chapter.stem} has no parameters, got {name!r}")
        checks.choice(f"parameter of {chapter.stem}", name, known)
    taken = {name: _value(chapter, known[name], value) for name, value in values.items()}
    if FOLDER in taken:
        from kscore.study import store  # here, because it brings pandas, which the command line can do without

        store.check_folder(taken[FOLDER])
    return taken


def _value(chapter: Path, parameter: Parameter, value: object) -> object:
    read = _read(value, KINDS[parameter.kind]) if isinstance(value, str) else value
    taken = _elements(parameter, read) if parameter.kind.startswith("list") else _taken(parameter, read)
    if taken is None:
        raise ValueError(f"{parameter.name} of {chapter.stem} must be {parameter.allowed}, got {value!r:.200}")
    return taken


def _elements(parameter: Parameter, values: object) -> list | None:
    """Return a list as a parameter takes it; None if it does not."""
    if type(values) is not list or not _plain(values):
        return None
    if parameter.kind != "list":
        element = parameter._replace(kind=parameter.kind.removeprefix("list[").removesuffix("]"))
        values = [_taken(element, one) for one in values]
    few, most = parameter.lengths or (0, float("inf"))
    repeated = parameter.different and any(one in values[:place] for place, one in enumerate(values))
    return None if None in values or repeated or not few <= len(values) <= most else values


def _taken(parameter: Parameter, value: object) -> object | None:
    """Return a single value as a parameter takes it; None if it does not."""
    if parameter.kind == "float" and type(value) is int and abs(value) <= sys.float_info.max:
        value = float(value)
    right = type(value) is KINDS[parameter.kind] and _plain(value)
    right = right and (parameter.low is None or parameter.low <= value <= parameter.high)
    return value if right and (not parameter.words or value in parameter.words) else None


class _Loader(yaml.SafeLoader):
    """YAML that never runs anything, repeats nothing, and in which a number is what it looks like.

    1e-4 is a number, 010 is neither eight nor ten, 1:30 is not ninety, and no !!int makes them so; `*name` would let a
    small file stand for an endless one, and of two equal keys, or of one that `<<` brings in, one would be lost.
    """

    def compose_node(self, parent: yaml.Node, index: object) -> yaml.Node:
        """Return the next node; there are neither aliases nor tags."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a value must be written out, not referred to by *name")
        if tag := self.peek_event().tag:
            raise yaml.YAMLError(f"a value must be written as it is, without a tag, got {tag!r}")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """Return a mapping; every key stands in it once."""
        counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, count in counts.items():
            if count > 1:
                raise yaml.YAMLError(f"a name must be given once, and {key!r} is given {count} times")
        return super().construct_mapping(node, deep)


INTEGER, REAL = re.compile(r"[-+]?(0|[1-9]\d*)$"), re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?$")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith((":int", ":float", ":merge"))]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", INTEGER, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", REAL, list("-+.0123456789"))


def _read(text: str, kind: type) -> object:
    """Read a text as a value of a kind; one that cannot be read stays a text."""
    try:
        if kind is int:
            return int(text) if INTEGER.match(text.strip()) else text
        return kind(text) if kind in (float, str) else yaml.load(text, _Loader)
    except (ValueError, RecursionError, yaml.YAMLError):
        return text


def _plain(value: object) -> bool:
    """Say whether JSON can hold a value as it is: no NaN, no date, no key that is not a text."""
    try:
        return json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode()) == value
    except (ValueError, TypeError, RecursionError):
        return False


def profile(name: str) -> dict[str, dict]:
    """Return the parameters that a named profile gives to each chapter; "default" gives none."""
    profiles = {"default": {}} | tomllib.loads(PROFILES.read_text(encoding="utf-8"))
    return profiles[checks.choice("profile", name, profiles)]


def from_file(path: Path, chosen: Iterable[Path]) -> dict[str, dict]:
    """Return the parameters that a YAML file gives to each chosen chapter.

    The file maps names to values, for all of them, or chapters to such mappings.
    """
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise ValueError(f"the parameter file {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(f"the parameter file {path} is not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"the parameter file {path} must map names to values, got {type(found).__name__}")
    stems = [path.stem for path in notebooks.find()]
    for name in found:
        if not name.isidentifier():  # so that it can only be meant as a chapter
            checks.choice(f"chapter in {path}", name, stems)
    by_chapter = {name: values for name, values in found.items() if name in stems}
    for name, values in by_chapter.items():
        if not isinstance(values, dict):
            raise ValueError(f"{name} in {path} must map names to values, got {values!r}")
    common = {name: value for name, value in found.items() if name not in stems}
    return {chapter.stem: common | by_chapter.get(chapter.stem, {}) for chapter in chosen}


def grid(sweeps: Iterable[str]) -> list[dict[str, str]]:
    """Return every combination of the sweeps, each "name=a,b,c"; one empty combination without any."""
    axes = {}
    for sweep in sweeps:
        name, _, values = sweep.partition("=")
        values = values.split(",")
        if not name or not all(values):
            raise ValueError(f"sweep must be name=value,value,..., got {sweep!r}")
        if name in axes or len(set(values)) < len(values):
            raise ValueError(f"sweep must name each parameter once, and each value once, got {sweep!r}")
        axes[name] = values
    return [dict(zip(axes, combination, strict=True)) for combination in itertools.product(*axes.values())]
