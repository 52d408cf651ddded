"""Where anything may be written: never into what the project is made of, never over what is not ours."""

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizes import examples

from kscore import paths, progress, project, study
from kscore.__main__ import main
from kscore.chapters import course, marking, notebooks, runner
from kscore.project import ROOT

PYPROJECT = '[project]\nname = "kscore"\n'


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A checkout in place of the real one, so that no mistake reaches that; another one, and ways into the first."""
    for name in ("mine", "other"):
        folder = tmp_path / name
        for part in paths.HELD:
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "pyproject.toml").write_text(PYPROJECT)
        (folder / "data/runs/recorded.jsonl").write_text('{"protocol":1}\n')
        (folder / "build").mkdir()
    mine = tmp_path / "mine"
    monkeypatch.setattr(project, "ROOT", mine)
    monkeypatch.setattr(project, "BUILD", mine / "build")
    monkeypatch.setattr(project, "is_checkout", lambda: True)
    (tmp_path / "link").symlink_to(mine / "data", target_is_directory=True)
    return mine


INSIDE = [
    "data/runs/recorded.jsonl",
    "data/runs/new.jsonl",
    "build/../data/runs",
    "notebooks/deep/er",
    "kscore",
    "docs/new.md",
    "tests",
    ".git/hooks/pre-commit",
    "{tmp}/link/runs/new.jsonl",
    "{tmp}/other/data/runs/recorded.jsonl",
    "{tmp}/other/notebooks",
]


@pytest.mark.parametrize("place", INSIDE)
@pytest.mark.parametrize("rule", [paths.place, paths.folder, lambda *given: paths.file(*given, b"protocol")])
def test_nothing_is_written_into_a_checkout(root, tmp_path, place, rule):
    with pytest.raises(ValueError, match=r"^out must not lie in .*, which .*, got "):
        rule("out", place.format(tmp=tmp_path))


def test_a_mount_is_no_way_around(root, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "resolve", Path.absolute)  # a link that cannot be seen to be one, as a mount cannot
    with pytest.raises(ValueError, match=r"^out must not lie in data, which holds what is recorded, got "):
        paths.place("out", tmp_path / "link" / "new.jsonl")
    assert paths.place("out", tmp_path / "new.jsonl") == tmp_path / "new.jsonl"


def test_a_hard_link_is_no_way_around(root, tmp_path):
    os.link(root / "data/runs/recorded.jsonl", tmp_path / "innocent.jsonl")
    with pytest.raises(ValueError, match=r"^store must be a file with one name, got .*innocent.jsonl"):
        study.run({}, [], tmp_path / "innocent.jsonl")


@pytest.mark.parametrize("place", ["build/mine", "results", "data2", "build/data/runs", "{tmp}/out", "{tmp}/data/runs"])
def test_everywhere_else_there_is_room(root, tmp_path, place):
    place = place.format(tmp=tmp_path)
    assert paths.place("out", place) == paths.folder("out", place) == paths.file("out", place, b"") == root / place


@pytest.mark.parametrize("nothing", ["", " ", "\n", "a\0b"])
def test_a_place_has_a_name(root, nothing):
    with pytest.raises(ValueError, match=r"^out must be the path of a file or a folder, got '"):
        paths.place("out", nothing)


def test_a_home_is_spelled_out(root, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.place("out", "~/out") == tmp_path / "out"
    with pytest.raises(ValueError, match="^~ must be the home of a user of this machine, got ~nobody-here/out"):
        paths.place("out", "~nobody-here/out")


@pytest.mark.parametrize("content", ["mine\n", '{"a": 1}\n', "\0\1"])
def test_a_file_that_is_not_ours_is_left_alone(tmp_path, content):
    place = tmp_path / "notes.jsonl"
    place.write_text(content)
    with pytest.raises(ValueError, match=r"^store must be a new file, or one that kscore wrote, got .*notes.jsonl"):
        study.run({}, [], place)
    assert place.read_text() == content


@pytest.mark.parametrize("content", ["", "\n\n", '{"proto\n{"protocol":1}\n', 'torn{"protocol":1\n'])
def test_a_store_of_ours_is_gone_on_with_even_if_it_is_damaged(tmp_path, content):
    (tmp_path / "runs.jsonl").write_text(content)
    assert paths.file("store", tmp_path / "runs.jsonl", study.store.MARK) == tmp_path / "runs.jsonl"


def test_a_folder_is_new_or_empty_or_ours(root, tmp_path):
    (tmp_path / "empty").mkdir()
    (root / "build" / "runs").mkdir()
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / paths.STATUS).write_text('{"time":"t","status":"ok"}\n')
    for good in ("empty", "new", "ours", root / "build"):
        assert paths.folder("out", tmp_path / good) == tmp_path / good
    web = tmp_path / "web"
    web.mkdir()
    (web / "index.html").write_text("mine")
    for other in (web, root / "build"):
        (web / paths.STATUS).write_text("mine")
        (other / "class").mkdir()
        (other / "class" / "01.ipynb").write_text("mine")
    for bad, said in (
        (web, "a new or an empty folder"),
        (root / "build/class", "a new or an empty"),
        (root, "its own"),
    ):
        with pytest.raises(ValueError, match=rf"^out must be .*{said}.*, got {bad}"):
            paths.folder("out", bad)


def test_what_is_half_written_is_not_there(tmp_path):
    place = tmp_path / "points.csv"
    place.write_text("before")
    with pytest.raises(OSError), paths.whole(place) as draft:
        draft.write_text("half")
        raise OSError
    assert place.read_text() == "before" and list(tmp_path.iterdir()) == [place]
    with paths.whole(place) as draft:
        draft.write_text("after")
    assert place.read_text() == "after" and list(tmp_path.iterdir()) == [place]


PARTS = st.sampled_from(
    ["..", ".", "data", "runs", "notebooks", "kscore", "build", "new", "deep", "link", "into", "x.jsonl"]
)


@examples()
@given(st.sampled_from(["mine", "other", ".", "link", "loop"]), st.lists(PARTS, max_size=7))
def test_what_is_allowed_lies_outside_of_every_checkout_wherever_it_leads(begin, rest):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        tmp = Path(folder).resolve()
        for checkout in ("mine", "other"):
            for part in paths.HELD:
                (tmp / checkout / part).mkdir(parents=True, exist_ok=True)
            (tmp / checkout / "pyproject.toml").write_text(PYPROJECT)
            (tmp / checkout / "build").mkdir()
        (tmp / "link").symlink_to(tmp / "mine" / "data")
        (tmp / "mine" / "build" / "into").symlink_to(tmp / "other" / "notebooks")
        (tmp / "loop").symlink_to(tmp)
        patch.setattr(project, "ROOT", tmp / "mine")
        patch.setattr(project, "is_checkout", lambda: True)
        wanted = Path(tmp, begin, *rest)
        held = [tmp / checkout / part for checkout in ("mine", "other") for part in paths.HELD]
        inside = any(Path(os.path.realpath(wanted)).is_relative_to(one) for one in held)
        try:
            assert paths.place("out", wanted) == wanted and not inside
        except ValueError as refusal:
            assert inside and "out must not lie in " in str(refusal)


# What uses it


def worked_on(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    content["cells"][0]["source"] = "my own words"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path.read_bytes()


def test_a_run_never_replaces_a_student_s_copy(notebook, tmp_path, capsys):
    notebook("a = 1")
    (copy,) = course.student(tmp_path / "build")  # where chapters may be executed into, unlike in a folder of copies
    mine = worked_on(copy)
    assert main(["run", "--no-pages"]) == 2
    assert "out must not hold student copies under the names of chapters" in capsys.readouterr().err
    course.student(tmp_path / "class", keep=True)
    assert main(["run", "--no-pages", "--out", str(tmp_path / "class")]) == 2
    assert copy.read_bytes() == mine and sorted(path.name for path in (tmp_path / "class").iterdir()) == [copy.name]


@pytest.mark.parametrize(
    "command",
    [
        ["run", "--out", "{place}"],
        ["report", "--out", "{place}"],
        ["course", "student", "{place}"],
        ["course", "check", "{tmp}", "--csv", "{place}/points.csv"],
        ["study", "cartpole_ppo", "--store", "{place}"],
    ],
)
@pytest.mark.parametrize("part", ["data/runs", "kscore", "docs"])
def test_no_command_writes_into_the_project(notebook, root, tmp_path, capsys, monkeypatch, command, part):
    notebook(name="11_replication_report")
    monkeypatch.setattr(runner, "run", None)
    monkeypatch.setattr(marking, "check", None)
    monkeypatch.setattr(study, "record", None)
    assert main([word.format(place=root / part, tmp=tmp_path) for word in command]) == 2
    assert " must not lie in " in capsys.readouterr().err
    left = [path.name for path in (root / part).iterdir()]
    assert left == (["recorded.jsonl"] if part == "data/runs" else [])


@pytest.mark.parametrize("option", [["run", "--out"], ["study", "--store"], ["course", "student"], ["report", "--out"]])
def test_an_empty_text_is_not_the_current_folder(option, capsys):
    with pytest.raises(SystemExit) as left:
        main([*option, ""])
    assert left.value.code == 2 and "must be the path of a file or a folder, got ''" in capsys.readouterr().err


def test_points_are_not_written_over_another_table(tmp_path):
    place = tmp_path / "published.csv"
    place.write_text("id,normalizer\nE1,none\n")
    with pytest.raises(ValueError, match="^csv must be a new file, or one that kscore wrote"):
        marking.check_place(place)
    marking.write_csv([], tmp_path / "points.csv")
    assert marking.check_place(tmp_path / "points.csv") == tmp_path / "points.csv"


def test_a_foreign_page_survives_a_run(notebook, tmp_path, capsys):
    notebook("a = 1")
    web = tmp_path / "web"
    (web / "site" / "source").mkdir(parents=True)
    for name in ("index.html", "site/source/essay.md"):
        (web / name).write_text("mine")
    assert main(["run", "--out", str(web)]) == 2
    assert "which holds something else" in capsys.readouterr().err
    assert {path.read_text() for path in web.rglob("*") if path.is_file()} == {"mine"}


@pytest.mark.parametrize("content", ['{"protocol":1}\n', "5", "words", '"' + "x" * 20_000 + '"'])
def test_a_note_is_left_over_nothing_but_a_note(tmp_path, monkeypatch, content):
    place = tmp_path / "note"
    monkeypatch.setenv(progress.NOTE, str(place))
    place.write_text(content)
    progress.say("working")
    assert place.read_text() == content
    for before in ('"earlier"', "null"):
        place.write_text(before)
        progress.say("working")
        assert json.loads(place.read_text()) == "working"


def test_a_note_is_not_left_in_the_project(root, monkeypatch):
    monkeypatch.setenv(progress.NOTE, str(root / "data" / "new.json"))
    progress.say("working")
    assert not (root / "data" / "new.json").exists()


def test_this_project_s_own_parts_are_all_held():
    tracked = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert tracked - {"build", "class", "kscore.egg-info"} <= set(paths.HELD)
    assert notebooks.COPY_MARK in (ROOT / "Makefile").read_text(encoding="utf-8")
