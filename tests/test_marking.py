"""Points for a class: what is judged, what is told, and what a spreadsheet gets to see."""

import csv
import json
import os
import signal
import threading

import pytest
from conftest import PATIENCE, eventually

from kscore import __main__
from kscore.chapters import course, marking
from kscore.chapters.course import Exercise, Result
from kscore.chapters.marking import Copy

pytestmark = pytest.mark.usefixtures("descendants")

FIRST, SECOND, READ = Exercise("00-1", 2, False), Exercise("00-2", 1.5, False), Exercise("00-3", 3, True)


def results(*errors):
    return [Result(exercise, error) for exercise, error in zip((FIRST, SECOND, READ), errors, strict=True)]


@pytest.fixture
def judge(chapter, monkeypatch):
    """Judge copies by what their files say: a list of errors, or something that is no notebook."""

    def check(path, *_):
        said = json.loads(path.read_text())
        if said == "deep":
            raise RecursionError("too deep")
        if said == "refused":
            raise OSError(28, "No space left on device", "executed.ipynb")
        if not isinstance(said, list):
            raise ValueError(f"{path.name} is not a notebook")
        return results(*said)

    monkeypatch.setattr(course, "check", check)
    return check


def hand_in(folder, **copies):
    """Write what students handed in, one folder each."""
    for student, said in copies.items():
        (folder / student).mkdir(parents=True)
        (folder / student / "00_good.ipynb").write_text(json.dumps(said))
    return folder


def checked(*arguments):
    return __main__.main(["course", "check", *map(str, arguments)])


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# What is judged


def test_files_and_folders_are_looked_through_and_nothing_is_judged_twice(tmp_path):
    for name in ("b.ipynb", "a/1.ipynb", "a/deep.ipynb/2.ipynb", "a/.ipynb_checkpoints/1.ipynb", "a/.3.ipynb", "c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "none").mkdir()
    (tmp_path / "loop.ipynb").symlink_to(tmp_path / "loop.ipynb")
    named = [tmp_path / name for name in ("b.ipynb", "a", "none", "a/1.ipynb", "missing.ipynb", "loop.ipynb")]
    assert [str(path.relative_to(tmp_path)) for path in marking.found(named)] == [
        "b.ipynb",
        "a/1.ipynb",
        "a/deep.ipynb/2.ipynb",
        "none",
        "missing.ipynb",
        "loop.ipynb",
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, "00_good.ipynb is not a notebook"),
        ("deep", "00_good.ipynb is not a notebook that can be judged: RecursionError: too deep"),
        ("refused", "No space left on device: executed.ipynb"),
    ],
)
def test_a_copy_that_cannot_be_judged_does_not_stop_the_others(judge, tmp_path, capsys, said, told):
    folder = hand_in(tmp_path / "in", s001=said, s002=["", "", ""])
    assert checked(folder, "--csv", tmp_path / "points.csv") == 1
    assert [row["message"] for row in rows(tmp_path / "points.csv")] == [
        f"not judged: {told}",
        "",
        "",
        "for a teacher to read",
    ]
    out, err = capsys.readouterr()
    assert f"not judged: {told}" in out and f"s001/00_good.ipynb: not judged: {told} (" in err


def test_folders_without_copies_and_files_that_are_missing_have_their_line(judge, tmp_path, capsys):
    folder = hand_in(tmp_path / "in", s001=["", "", ""])
    (folder / "none").mkdir()
    os.mkfifo(folder / "pipe.ipynb")  # which nobody writes into, and a reader would wait for
    assert checked(folder, folder / "none", folder / "missing.ipynb") == 1
    out = capsys.readouterr().out
    assert f"{folder / 'none'} is a folder without notebooks" in out
    assert all(f"{folder / name} is not a file" in out for name in ("missing.ipynb", "pipe.ipynb"))
    assert checked(folder / "s001") == 0


def test_so_many_are_judged_at_once_and_their_order_stays(judge, tmp_path, monkeypatch):
    paths = marking.found([hand_in(tmp_path / "in", **{f"s{k}": ["", "", ""] for k in range(6)})])
    together = threading.Barrier(3, timeout=PATIENCE)
    monkeypatch.setattr(course, "check", lambda *a: (together.wait(), judge(*a))[1])
    ended = []
    copies = marking.check(paths, jobs=3, ended=ended.append)
    assert [copy.path for copy in copies] == paths and sorted(ended) == sorted(copies)


@pytest.mark.parametrize("arguments", [["--jobs", "0"], ["--jobs", "many"], ["--timeout", "-1"], []])
def test_what_cannot_be_understood_is_told_before_anything_is_judged(tmp_path, capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        checked(*[tmp_path] * bool(arguments), *arguments)
    assert ended.value.code == 2 and (arguments or ["file"])[0] in capsys.readouterr().err


# What is told


def test_a_class_is_summed_up_by_copy_and_by_exercise(judge, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hand_in(
        tmp_path / "in",
        s001=["", "", ""],
        s002=["too small", "not solved yet", ""],
        s003=["too small", "", "not solved yet"],
        s004=["too large", "", ""],
        s005=1,
    )
    assert checked("in", "--jobs", "1") == 1
    out, err = capsys.readouterr()
    assert (
        out
        == """\
copy                   points  out of  to read
in/s001/00_good.ipynb     3.5     6.5        3
in/s002/00_good.ipynb       0     6.5        3
in/s003/00_good.ipynb     1.5     6.5        3
in/s004/00_good.ipynb     1.5     6.5        3
in/s005/00_good.ipynb       -  not judged: 00_good.ipynb is not a notebook

exercise  solved  copies  commonest error
00-1           1       4  too small (2)
00-2           3       4  not solved yet (1)
00-3           -       4  not solved yet (1)
"""
    )
    assert (
        err
        == """\
in/s001/00_good.ipynb: 3.5 of 6.5 points, 3 for a teacher to give (1 of 5)
in/s002/00_good.ipynb: 0 of 6.5 points, 3 for a teacher to give (2 of 5)
in/s003/00_good.ipynb: 1.5 of 6.5 points, 3 for a teacher to give (3 of 5)
in/s004/00_good.ipynb: 1.5 of 6.5 points, 3 for a teacher to give (4 of 5)
in/s005/00_good.ipynb: not judged: 00_good.ipynb is not a notebook (5 of 5)
"""
    )


def test_an_answer_that_nobody_got_wrong_has_no_error():
    copies = [Copy("a", results("", "x", "")), Copy("b", results("", "x", ""))]
    assert marking.summary(copies).splitlines()[-3:] == [
        "00-1           2       2",
        "00-2           0       2  x (2)",
        "00-3           -       2  for a teacher to read",
    ]


@pytest.mark.long
def test_copies_are_executed_and_it_is_told_how_far_they_are(fill, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "in"
    for student, answers in {"s001": {}, "s002": {2: "a = 2", 3: "b = 2"}}.items():
        (folder / student).mkdir(parents=True)
        fill(answers).rename(folder / student / "mine.ipynb")
    assert checked(folder, "--jobs", 2, "--csv", tmp_path / "points.csv") == 0
    out, err = capsys.readouterr()
    assert [
        (row["file"], row["chapter"], row["exercise"], row["points"], row["out of"], row["message"])
        for row in rows(tmp_path / "points.csv")
    ] == [
        (str(folder / student / "mine.ipynb"), "00_good", *row)
        for student, given in {
            "s001": [("1", ""), ("1", "")],
            "s002": [("0", "not true: a == 1"), ("0", "b is one")],
        }.items()
        for row in [
            ("00-1", "2", "2", ""),
            ("00-2", given[0][0], "1", given[0][1]),
            ("00-3", given[1][0], "1", given[1][1]),
            ("00-4", "", "3", "for a teacher to read"),
        ]
    ]
    assert f"The points of every copy and exercise are in {tmp_path / 'points.csv'}" in out
    assert f"running {folder / 's001' / 'mine.ipynb'}: cell 1 of " in err
    assert f"{folder / 's002' / 'mine.ipynb'}: 2 of 7 points, 3 for a teacher to give (" in err


@pytest.mark.slow
@pytest.mark.long
def test_being_stopped_ends_all_kernels_and_leaves_no_file(fill, command_line, descendants, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for student in ("s001", "s002", "s003"):
        wait = f"import pathlib, time\npathlib.Path({str(tmp_path / student)!r}).touch()\ntime.sleep(600)"
        fill({1: wait}).rename(folder / f"{student}.ipynb")
    begun = command_line("course", "check", folder, "--jobs", 2, "--csv", tmp_path / "points.csv", "--timeout", 600)
    assert eventually(lambda: (tmp_path / "s001").exists() and (tmp_path / "s002").exists())
    begun.send_signal(signal.SIGINT)
    out, err = begun.communicate(timeout=PATIENCE)
    assert begun.returncode == 130 and "stopped" in err.splitlines()[-1] and out == ""
    assert eventually(lambda: not descendants()) and not (tmp_path / "s003").exists()
    assert not list(tmp_path.glob("points*"))


# The file

DANGEROUS = ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", " =1", "\t=1", "\r=1", "fine;=1", "fine; =1"]


@pytest.mark.parametrize("text", DANGEROUS)
def test_nothing_in_the_file_is_a_formula(chapter, tmp_path, text):
    copies = [Copy(tmp_path / text, results(text, "", "")), Copy(text, [], text)]
    marking.write_csv(copies, tmp_path / "points.csv")
    for row in rows(tmp_path / "points.csv"):
        for value in row.values():
            assert not any(part.lstrip().startswith(tuple("=+-@＝＋－＠")) for part in value.split(";")), value


def test_what_somebody_wrote_stays_in_its_cell(chapter, tmp_path):
    error = 'one,"two"\n00-2,9\r\x00\x1b[31m\u2028\u202e\ud800 end'
    marking.write_csv([Copy(tmp_path / "a\udcff.ipynb", results(error, "", ""))], tmp_path / "points.csv")
    text = (tmp_path / "points.csv").read_bytes().decode()
    assert len(text.splitlines()) == 4 and all(line.isprintable() for line in text.splitlines())
    assert rows(tmp_path / "points.csv")[0]["message"].startswith('one,"two"\ufffd00-2,9')


def test_a_file_that_cannot_be_written_leaves_the_old_one(judge, tmp_path, capsys, monkeypatch):
    folder, place = hand_in(tmp_path / "in", s001=["", "", ""]), tmp_path / "points.csv"
    marking.write_csv([], place)
    before = place.read_text()
    monkeypatch.setattr(marking, "_rows", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert checked(folder, "--csv", place) == 1
    assert "No space left" in capsys.readouterr().err
    assert place.read_text() == before and not list(tmp_path.glob(".points.csv.*"))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("in/s001/00_good.ipynb", "csv must be a file whose name ends in .csv, got "),
        ("in", "whose name ends in .csv"),
        ("no/points.csv", "csv must be in a folder that exists, got "),
        ("folder.csv", "whose name ends in .csv, got "),
    ],
)
def test_where_the_file_goes_is_asked_before_anything_is_judged(judge, tmp_path, capsys, monkeypatch, name, told):
    folder = hand_in(tmp_path / "in", s001=["", "", ""])
    (tmp_path / "folder.csv").mkdir()
    monkeypatch.setattr(marking, "check", None)
    assert checked(folder, "--csv", tmp_path / name) == 2
    assert told in capsys.readouterr().err
    assert json.loads((folder / "s001" / "00_good.ipynb").read_text()) == ["", "", ""]
