"""Chapters are found, their parameters read, and every value checked before anything runs."""

import nbformat
import pytest

from kscore.chapters import notebooks, parameters
from kscore.chapters.parameters import Parameter

CELL = '''
size: int = 3  # how many, at most ten [1, 10]
"""A text between the lines is none of them."""
rate: float = 1e-3  # λ = rate of decay, at least 0 [0, inf]
mode: str = "#stream"  # how it goes on {#stream, refit}
title: str = "a = b"  # of the picture
on: bool = False  # or off
lengths: list = [1,
                 2]  # of the episodes [1, 2]
seeds: list[int] = [3]  # of the runs [0, 99]
noises: list[float] = []  # of the filters
shares: list[float] = [0.1, 0.5]  # of the whole [0, 1], 2 to 3 different
names: list = ["a"]  # of the arms, 1 to 2
options: dict = {"name": "ema"}
helper = 1
'''


@pytest.fixture
def chapter(notebook):
    return notebook("print(size)", parameters=CELL)


def refusal(chapter, **values):
    with pytest.raises(ValueError) as refused:
        parameters.check(chapter, values)
    return str(refused.value)


# Finding


def test_chapters_are_found_by_name_number_and_glob(notebook):
    notebook(), notebook(name="01_bad"), notebook(name="1_no_chapter")

    def found(*patterns):
        return [path.stem for path in notebooks.find(patterns)]

    assert found() == found("*") == found("1", "00") == ["00_good", "01_bad"]
    assert found("0") == found("00_good") == found("*go*") == ["00_good"]
    with pytest.raises(ValueError, match="chapter must be one of '00_good', '01_bad', got '00_god'.*mean '00_good'"):
        found("01", "00_god")


@pytest.mark.parametrize("text", ["", "{}", "[]", "not JSON", '{"cells": '])
def test_a_file_that_is_no_notebook_gets_a_sentence(collection, text):
    broken = collection / "03_broken.ipynb"
    broken.write_text(text)
    with pytest.raises(ValueError, match=r"^03_broken.ipynb is not a notebook$"):
        parameters.of(broken)


# Reading


def test_parameters_are_what_their_lines_say(chapter):
    assert list(parameters.of(chapter).values()) == [
        Parameter("size", "int", 3, "how many, at most ten", 1, 10),
        Parameter("rate", "float", 1e-3, "λ = rate of decay, at least 0", 0, float("inf")),
        Parameter("mode", "str", "#stream", "how it goes on", words=("#stream", "refit")),
        Parameter("title", "str", "a = b", "of the picture"),
        Parameter("on", "bool", False, "or off"),
        Parameter("lengths", "list", [1, 2], "of the episodes [1, 2]"),  # a range is for numbers only
        Parameter("seeds", "list[int]", [3], "of the runs", 0, 99),
        Parameter("noises", "list[float]", [], "of the filters"),
        Parameter("shares", "list[float]", [0.1, 0.5], "of the whole", 0, 1, lengths=(2, 3), different=True),
        Parameter("names", "list", ["a"], "of the arms", lengths=(1, 2)),
        Parameter("options", "dict", {"name": "ema"}, ""),
    ]


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("size", "a whole number from 1 to 10"),
        ("rate", "a number of at least 0"),
        ("mode", "one of #stream, refit"),
        ("title", "a text"),
        ("on", "true or false"),
        ("lengths", "a list of plain values"),
        ("seeds", "a list of whole numbers from 0 to 99"),
        ("noises", "a list of numbers"),
        ("shares", "a list of 2 to 3 different numbers from 0 to 1"),
        ("names", "a list of 1 to 2 plain values"),
        ("options", "a mapping of names to plain values"),
    ],
)
def test_what_is_allowed_is_said_in_words(chapter, name, allowed):
    assert parameters.of(chapter)[name].allowed == allowed


def test_reading_parameters_never_runs_them(notebook, tmp_path):
    chapter = notebook(parameters=f"size: int = open({str(tmp_path / 'ran')!r}, 'w').write('')")
    with pytest.raises(ValueError, match="malformed"):
        parameters.of(chapter)
    assert not (tmp_path / "ran").exists()


def test_a_type_that_cannot_be_set_gets_a_sentence(notebook):
    with pytest.raises(ValueError, match="type of shape must be one of 'int', .* got 'tuple'"):
        parameters.of(notebook(parameters="shape: tuple = (1, 2)"))


@pytest.mark.parametrize("chapter", notebooks.find(), ids=lambda path: path.stem)
def test_every_real_chapter_takes_its_own_defaults_and_its_profiles(chapter):
    defaults = {name: p.default for name, p in parameters.of(chapter).items()}
    assert parameters.check(chapter, defaults) == defaults
    for name in ("default", "quick", "full"):
        parameters.check(chapter, parameters.profile(name).get(chapter.stem, {}))


def test_profiles_name_real_chapters():
    assert set(parameters.profile("quick")) <= {path.stem for path in notebooks.find()}
    with pytest.raises(ValueError, match="profile must be one of .*'quick'.* got 'quik'.*did you mean 'quick'"):
        parameters.profile("quik")


# Checking


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("size", "5", 5),
        ("size", " 5 ", 5),
        ("rate", "1e-4", 1e-4),
        ("rate", "5", 5.0),
        ("rate", ".5", 0.5),
        ("title", "5", "5"),
        ("title", "true", "true"),
        ("title", "", ""),
        ("title", "{seed}", "{seed}"),
        ("on", "true", True),
        ("on", "no", False),
        ("lengths", "[1, 1e-4, a]", [1, 1e-4, "a"]),
        ("lengths", "[]", []),
        ("lengths", "[010, 1:30, .nan]", ["010", "1:30", ".nan"]),  # only what looks like a number is one
        ("shares", "[0, 1]", [0.0, 1.0]),
        ("names", "[a, a]", ["a", "a"]),
        ("seeds", "[0, 99]", [0, 99]),
        ("seeds", "[]", []),
        ("noises", "[1, 1e-4]", [1.0, 1e-4]),
        ("options", "{name: ema, decay: 1e-2}", {"name": "ema", "decay": 0.01}),
        ("mode", "refit", "refit"),
    ],
)
def test_a_text_is_read_as_what_the_parameter_is(chapter, name, text, value):
    read = parameters.check(chapter, {name: text})[name]
    assert read == value and type(read) is type(value)


def test_values_of_a_file_are_taken_as_they_are(chapter):
    values = {"size": 4, "rate": 2, "on": True, "lengths": [[1], {"a": None}], "options": {}}
    checked = parameters.check(chapter, values)
    assert checked == values and type(checked["rate"]) is float


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", "0"),
        ("size", "11"),
        ("size", "5.0"),
        ("size", "five"),
        ("size", ""),
        ("size", True),
        ("size", 5.0),
        ("size", None),
        ("size", "1:30"),
        ("size", "010"),
        ("size", "1_0"),
        ("seeds", "[010]"),
        ("seeds", "[1_0]"),
        ("size", "9" * 5000),
        ("rate", "-1"),
        ("rate", "nan"),
        ("rate", "inf"),
        ("rate", "1e400"),
        ("rate", float("nan")),
        ("rate", "2020-01-01"),
        ("mode", "Refit"),
        ("mode", "#stream, refit"),
        ("title", 5),
        ("title", None),
        ("title", "\udcff"),
        ("on", "1"),
        ("on", 1),
        ("lengths", "5"),
        ("lengths", "[1"),
        ("lengths", [float("nan")]),
        ("noises", "[.nan]"),
        ("lengths", "[2020-01-01]"),
        ("lengths", "[2020-13-45]"),
        ("lengths", "&a [*a]"),
        ("seeds", "[0, 100]"),
        ("seeds", "[1.0]"),
        ("seeds", "3"),
        ("seeds", [True]),
        ("seeds", [[3]]),
        ("noises", "[a]"),
        ("noises", "[.inf]"),
        ("options", [{}]),
        ("lengths", "[" * 1000),
        ("options", "{1: 2}"),
        ("options", "{a: 2020-01-01}"),
        ("options", "[a]"),
        ("options", "!!set {a}"),
        ("options", "{a: !!binary aGk=}"),
        ("options", "{a: 1, a: 2}"),
        ("options", "&b {a: *b}"),
        ("lengths", "[&a 1, *a]"),
        ("rate", 10**400),
        ("shares", "[0.5]"),
        ("shares", "[0.5, 0.5]"),
        ("shares", "[0, 2]"),
        ("shares", "[0, 0.1, 0.2, 0.3]"),
        ("names", "[]"),
        ("names", "[a, b, c]"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_what_is(chapter, name, value):
    allowed = parameters.of(chapter)[name].allowed
    assert refusal(chapter, **{name: value}) == f"{name} of 00_good must be {allowed}, got {value!r:.200}"


@pytest.mark.parametrize(
    "hostile",
    [
        "!!python/object/apply:os.system ['touch RAN']",
        "!!python/name:os.system",
        "!!python/object/new:os.system [ls]",
        "__import__('os').system('touch RAN')",
    ],
)
@pytest.mark.parametrize("name", ["size", "on", "lengths", "options"])
def test_a_hostile_text_is_refused_and_nothing_of_it_runs(chapter, tmp_path, monkeypatch, name, hostile):
    monkeypatch.chdir(tmp_path)
    assert "must be" in refusal(chapter, **{name: hostile})
    assert parameters.check(chapter, {"title": hostile}) == {"title": hostile}
    assert not (tmp_path / "RAN").exists()


def test_an_unknown_name_is_refused_with_the_nearest(chapter, notebook):
    assert refusal(chapter, size=3, ratte=1) == (
        "parameter of 00_good must be one of 'size', 'rate', 'mode', 'title', 'on', 'lengths', 'seeds', 'noises', "
        "'shares', 'names', 'options', got 'ratte' (did you mean 'rate'?)"
    )
    assert refusal(chapter, helper=1).startswith("parameter of 00_good must be one of")
    assert refusal(notebook("a = 1", name="01_none"), a=1) == "01_none has no parameters, got 'a'"


# Files and sweeps


def test_a_file_gives_values_to_all_chapters_and_to_one(chapter, notebook, tmp_path):
    other = notebook(name="01_other")
    file = tmp_path / "parameters.yaml"
    file.write_text("rate: 1e-4\nsize: 2\n01_other: {size: 9}\n")
    assert parameters.from_file(file, [chapter, other]) == {
        "00_good": {"rate": 1e-4, "size": 2},
        "01_other": {"rate": 1e-4, "size": 9},
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- 1", "must map names to values, got list"),
        ("", "must map names to values, got NoneType"),
        ("1: 2", "must map names to values"),
        ("a: [1", "is not YAML"),
        ("a: 2020-13-45", "is not YAML"),
        ("[" * 1000, "is not YAML"),
        ("a: !!python/object/apply:os.getcwd []", "is not YAML"),
        (b"a: \xff", "is not YAML"),
        ("a: 1\na: 2", "is not YAML: a name must be given once, and 'a' is given 2 times"),
        ("a: &x 1\nb: *x", r"is not YAML: a value must be written out, not referred to by \*name"),
        ("00_god: {size: 1}", "chapter in .* must be one of '00_good', got '00_god' .did you mean '00_good'"),
        ("00_good: 3", "00_good in .* must map names to values, got 3"),
    ],
)
def test_a_file_that_cannot_be_used_gets_a_sentence(chapter, tmp_path, text, sentence):
    file = tmp_path / "parameters.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=sentence):
        parameters.from_file(file, [chapter])


@pytest.mark.parametrize("name", ["nowhere.yaml", "."])
def test_a_file_that_cannot_be_read_gets_a_sentence(chapter, tmp_path, name):
    with pytest.raises(ValueError, match="the parameter file .* cannot be read: "):
        parameters.from_file(tmp_path / name, [chapter])


def test_sweeps_make_a_grid():
    assert parameters.grid([]) == [{}]
    assert parameters.grid(["a=1,2", "b=x=y"]) == [{"a": "1", "b": "x=y"}, {"a": "2", "b": "x=y"}]
    assert len(parameters.grid(["a=1,2", "b=1,2,3", "c=4,5"])) == 12


@pytest.mark.parametrize("sweeps", [["a"], ["a="], ["=1"], ["a=1,,2"], ["a=1,"], ["a=1,1"], ["a=1", "a=2"]])
def test_a_sweep_that_makes_no_grid_is_refused(sweeps):
    with pytest.raises(ValueError, match="sweep must"):
        parameters.grid(sweeps)


def test_cells_are_read_as_nbformat_reads_them(chapter):
    read = [(cell["cell_type"], "".join(cell["source"])) for cell in notebooks.cells(chapter)]
    assert read == [(cell.cell_type, cell.source) for cell in nbformat.read(chapter, as_version=4).cells]
