"""How far long work is: told in lines, on a bar or in a note, and never at the work's cost."""

import errno
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios

import pytest

from kscore import progress


@pytest.fixture(autouse=True)
def no_note(monkeypatch):
    """Whoever runs the tests may be supervised."""
    monkeypatch.delenv(progress.NOTE, raising=False)


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def note(tmp_path, monkeypatch):
    """Where whoever supervises wants to be told."""
    monkeypatch.setenv(progress.NOTE, str(tmp_path / "note"))
    return tmp_path / "note"


def read(note):
    return json.loads(note.read_text(encoding="utf-8"))


# Lines


def test_a_line_is_said_at_the_beginning_and_then_now_and_then(clock, capsys):
    with progress.of(5, "run", "training") as done:
        for _ in range(5):
            clock[0] += progress.OFTEN / 2
            done()
    assert capsys.readouterr().err.splitlines() == [
        "training: 0 of 5 runs",
        "training: 2 of 5 runs, about 45 s left",
        "training: 4 of 5 runs, about 15 s left",
    ]


def test_nothing_more_is_said_when_all_is_done(clock, capsys):
    with progress.of(1, "run", "training") as done:
        clock[0] += 1000
        done()
    assert capsys.readouterr().err == "training: 0 of 1 runs\n"


def test_quick_work_says_one_line(clock, capsys):
    with progress.of(1000, "run", "training") as done:
        for _ in range(1000):
            clock[0] += 0.001
            done()
    captured = capsys.readouterr()
    assert captured.err == "training: 0 of 1000 runs\n" and captured.out == ""


def test_nothing_is_said_where_nobody_wants_to_be_told(note, capsys):
    with progress.of(3, "run", "training", told=False) as done:
        done()
    assert capsys.readouterr() == ("", "") and not note.exists()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "about 0 s"),
        (12.4, "about 12 s"),
        (89.9, "about 90 s"),
        (90, "about 2 min"),
        (150, "about 2 min"),
        (5399, "about 90 min"),
        (5400, "about 1.5 h"),
        (36000, "about 10.0 h"),
    ],
)
def test_a_length_of_time_is_told_in_round_words(seconds, words):
    assert progress.duration(seconds) == words


def test_the_time_left_is_what_the_rest_takes_if_it_goes_on_like_this(clock, note):
    with progress.of(10, "run", "training") as done:
        clock[0] += 600
        done()
        assert read(note) == "training: 1 of 10 runs, about 1.5 h left"
        clock[0] += 200
        done()  # 400 s each, 8 left
        assert read(note) == "training: 2 of 10 runs, about 53 min left"


# The note


def test_a_note_is_left_each_time_and_says_nothing_in_the_end(clock, note, capsys):
    with progress.of(2, "cell", "drawing") as done:
        assert read(note) == "drawing: 0 of 2 cells"
        clock[0] += 1
        done()
        assert read(note) == "drawing: 1 of 2 cells, about 1 s left"
        done()
        assert read(note) == "drawing: 2 of 2 cells, about 0 s left"
    assert read(note) is None
    assert capsys.readouterr().err == "drawing: 0 of 2 cells\n"


def test_a_note_says_nothing_any_more_when_the_work_has_failed(note):
    with pytest.raises(OSError), progress.of(2, "run", "training") as done:
        done()
        raise OSError
    assert read(note) is None


def test_a_note_that_cannot_be_left_does_not_fail_the_work(tmp_path, monkeypatch):
    for place in (tmp_path, tmp_path / "no" / "such" / "folder"):
        monkeypatch.setenv(progress.NOTE, str(place))
        with progress.of(1, "run", "training") as done:
            done()


# Nobody to tell


class Broken(io.StringIO):
    """Standard error whose reader has gone, or whose disk is full."""

    def __init__(self, failing):
        super().__init__()
        self.failing = failing

    def write(self, text):
        if self.failing == "write":
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        return len(text)

    def flush(self):
        if self.failing == "flush":
            raise OSError(errno.ENOSPC, "No space left on device")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    "stderr",
    [None, closed(), Broken("write"), Broken("flush"), object()],
    ids=["none", "closed", "broken pipe", "full disk", "no file"],
)
def test_a_standard_error_that_cannot_be_written_to_does_not_fail_the_work(monkeypatch, capsys, note, stderr):
    monkeypatch.setattr(progress, "OFTEN", 0.0)
    monkeypatch.setattr(sys, "stderr", stderr)
    finished = 0
    with progress.of(3, "run", "training") as done:
        for _ in range(3):
            done()
            finished += 1
        assert read(note) == "training: 3 of 3 runs, about 0 s left"  # and the note is left all the same
    assert finished == 3
    assert capsys.readouterr().out == ""  # nor does it go elsewhere


WORK = """
import sys
from kscore import progress
progress.OFTEN = 0.0
with progress.of(3, "run", "training") as done:
    for _ in range(3):
        done()
print("all done")
"""


def test_a_closed_standard_error_of_a_whole_process_does_not_fail_the_work():
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable, "-c", WORK],
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "all done\n")


# A terminal


def started(work):
    """Start code with standard error on a terminal; return the process and our end of the terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    return process, ours


def on_a_terminal(work):
    """Run code with standard error on a terminal; return its exit code, what it printed, what the terminal saw."""
    process, ours = started(work)
    seen = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        seen += more
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    return process.returncode, out, seen.decode()


def test_a_terminal_has_a_bar():
    code, out, seen = on_a_terminal(WORK)
    assert (code, out) == (0, "all done\n")
    assert re.search(r"\rtraining: +0%\|.*\| 0/3 ", seen) and re.search(r"\rtraining: 100%\|.*\| 3/3 .*run", seen)
    assert "of 3 runs" not in seen


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_terminal_that_goes_away_does_not_fail_the_work(when):
    wait = "print('waiting', flush=True); input()\n"
    work = wait + WORK if when == "before" else WORK.replace("as done:\n", f"as done:\n    {wait}")
    process, ours = started(work)
    assert process.stdout.readline() == "waiting\n"
    os.close(ours)
    out, _ = process.communicate("\n", timeout=60)
    assert (process.returncode, out) == (0, "all done\n")


# In a notebook


@pytest.fixture
def shown(monkeypatch):
    """What a kernel's display was given, one look after the other."""
    looks = []

    class Handle:
        def update(self, data, raw):
            looks.append(data)

    def display(data, raw, display_id):
        looks.append(data)
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("IPython.get_ipython", lambda: type("Shell", (), {"kernel": None}))
    return looks


def test_a_notebook_has_a_bar_that_ends_as_a_sentence(shown, note, capsys, monkeypatch):
    monkeypatch.setattr(progress._Bar, "MOMENT", 0.0)
    with progress.of(2, "run", "training") as done:
        assert shown[-1]["text/plain"] == "training: 0 of 2 runs"
        assert '<progress value="0" max="2" aria-label="training">' in shown[-1]["text/html"]
        done()
        assert '<progress value="1" max="2"' in shown[-1]["text/html"]
        assert json.loads(note.read_text()) == shown[-1]["text/plain"]
        done()
    assert shown[-1] == {"text/plain": "training: all of 2 runs"} and len(shown) == 4
    assert not capsys.readouterr().err and json.loads(note.read_text()) is None


def test_a_bar_is_drawn_anew_now_and_then_and_at_the_end(shown):
    with progress.of(100, "run", "training") as done:
        for _ in range(100):
            done()
    assert len(shown) < 10 and shown[-1] == {"text/plain": "training: all of 100 runs"}


def test_ipython_without_a_kernel_is_no_notebook(shown, monkeypatch, capsys):
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    with progress.of(2, "run", "training"):
        pass
    assert not shown and capsys.readouterr().err
