"""Values of parameters, from the command line and from YAML: a number is what it looks like, and nothing is lost."""

import pytest

from kscore.chapters import notebooks, parameters

CELL = """size: int = 1  # how large [0, 100]
rate: float = 0.5  # how fast [0, 1]
marks: list[float] = [1.0, 2.0]  # where [0, 9], 2 to 4 different
names: list = []  # any, 0 to 2
free: list[int] = [1]  # as many as you like"""


@pytest.fixture
def chapter(notebook):
    return notebook("1", parameters=CELL)


def given(chapter, tmp_path, text):
    file = tmp_path / "given.yaml"
    file.write_text(text)
    return parameters.check(chapter, parameters.from_file(file, [chapter])["00_good"])


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ([1.0], False),
        ([1.0, 2.0], True),
        ([1, 2], True),
        ([1.0, 1.0], False),
        ([1, 1.0], False),
        ([0, 1, 2, 3], True),
        ([0, 1, 2, 3, 4], False),
        ([], False),
        ([1, 10], False),
        ("[3, 4]", True),
    ],
)
def test_a_list_has_so_many_different_elements(chapter, value, allowed):
    if allowed:
        assert len(parameters.check(chapter, {"marks": value})["marks"]) >= 2
    else:
        with pytest.raises(ValueError, match="marks of 00_good must be a list of 2 to 4 different numbers from 0 to 9"):
            parameters.check(chapter, {"marks": value})


def test_a_list_of_anything_can_have_a_length_and_one_of_numbers_none(chapter):
    assert parameters.check(chapter, {"names": ["a", "a"], "free": [1] * 50}) == {"names": ["a", "a"], "free": [1] * 50}
    with pytest.raises(ValueError, match="a list of 0 to 2 plain values"):
        parameters.check(chapter, {"names": [1, 2, 3]})


@pytest.mark.parametrize("folder", ["", "data", "data/runs", "build/../data"])
def test_a_store_where_nothing_may_be_written_is_refused_before_anything_runs(notebook, folder):
    chapter = notebook("1", parameters='store: str = "build/runs"  # your folder')
    assert parameters.check(chapter, {"store": "build/mine"}) == {"store": "build/mine"}
    with pytest.raises(ValueError, match=f"^store must .*got '?{folder}'?$"):
        parameters.check(chapter, {"store": folder})


def test_a_whole_limit_is_told_in_full(notebook):
    chapter = notebook("1", parameters="seed: int = 1  # the first [0, 1000000000]")
    with pytest.raises(ValueError, match="must be a whole number from 0 to 1000000000, got '1e9'"):
        parameters.check(chapter, {"seed": "1e9"})


@pytest.mark.parametrize("text", ["010", "0o17", "0x1f", "1_000", "1:30", "1e2", "9" * 400])
def test_a_whole_number_that_is_not_written_as_one_gets_a_sentence(chapter, tmp_path, text):
    with pytest.raises(ValueError, match="size of 00_good must be a whole number from 0 to 100"):
        parameters.check(chapter, {"size": text})
    with pytest.raises(ValueError, match="size of 00_good must be a whole number from 0 to 100"):
        given(chapter, tmp_path, f"size: {text}")


@pytest.mark.parametrize(("text", "value"), [("1e-4", 1e-4), (".5", 0.5), ("1", 1.0), ("0.25", 0.25), ("5.e-1", 0.5)])
def test_numbers_are_read_as_they_are_written(chapter, tmp_path, text, value):
    assert given(chapter, tmp_path, f"rate: {text}") == {"rate": value}


@pytest.mark.parametrize("text", ["1e400", "9" * 400 + ".0", ".inf", ".nan", "9" * 400])
def test_a_number_beyond_all_bounds_gets_a_sentence(chapter, tmp_path, text):
    with pytest.raises(ValueError, match="rate of 00_good must be a number from 0 to 1"):
        given(chapter, tmp_path, f"rate: {text}")


def test_a_bomb_of_aliases_is_refused_at_once(chapter, tmp_path):
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(ValueError, match="must be written out, not referred to"):
        given(chapter, tmp_path, bomb)


def test_a_name_that_is_given_twice_is_refused(chapter, tmp_path):
    with pytest.raises(ValueError, match="'size' is given 2 times"):
        given(chapter, tmp_path, "size: 1\nrate: 0.5\nsize: 2\n")


def test_nor_can_a_name_be_brought_in_a_second_time(chapter, tmp_path):
    with pytest.raises(ValueError, match="chapter in .* must be one of '00_good', got '<<'"):
        given(chapter, tmp_path, "<<: {size: 1}\nsize: 2\n")


@pytest.mark.parametrize(
    "value", ["!!int '010'", "!!int 0x1f", "!!int '1:30'", "!!float 1", "! 5", "!!python/name:os.system"]
)
def test_no_tag_makes_another_value_of_what_is_written(chapter, tmp_path, value):
    with pytest.raises(ValueError, match="a value must be written as it is, without a tag, got"):
        given(chapter, tmp_path, f"size: {value}\n")
    with pytest.raises(ValueError, match="size of 00_good must be a whole number"):
        parameters.check(chapter, {"size": value})


def test_a_grid_of_many_combinations_reads_its_chapter_once(chapter, tmp_path, monkeypatch):
    from kscore import __main__
    from kscore.options import parser

    read = []
    monkeypatch.setattr(notebooks, "cells", lambda path, real=notebooks.cells: read.append(path) or real(path))
    sweeps = [
        "--sweep",
        "size=" + ",".join(map(str, range(100))),
        "--sweep",
        "rate=" + ",".join(f"0.{i:03}" for i in range(100)),
    ]
    options = parser().parse_args(["run", "00", "--out", str(tmp_path / "out"), *sweeps])
    assert len(__main__._tasks(options)) == 10_000 and len(read) == 1
