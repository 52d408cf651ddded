"""What the command line takes: its commands, their options, and what is said about each (`kscore --help`)."""

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path

from kscore.project import BUILD


def parser() -> argparse.ArgumentParser:
    """Return what reads a command line: beside its options, the `name` of a command and how to `go_on` with it."""
    whole = argparse.ArgumentParser(
        prog="kscore",
        description="Run, check and publish the chapters of the collection, and train the runs that they are made of.",
    )
    commands = whole.add_subparsers(required=True, metavar="command")

    def command(name: str, about: str, go_on: str = "Nothing is lost.", among: object = commands, **details: str):
        added = among.add_parser(name.split()[-1], help=about, description=f"{about[0].upper()}{about[1:]}.", **details)
        added.set_defaults(go_on=go_on, name=name)
        return added

    def takes_chapters(added: argparse.ArgumentParser) -> None:
        added.add_argument("chapters", nargs="*", help="name, number or glob; all chapters without one")

    takes_chapters(command("list", "list the chapters with their parameters and how they last ran into build"))

    run = command(
        "run",
        "execute chapters with papermill and build a site of them",
        "`kscore run --resume` with the same options does what is left.",
        epilog="Example: kscore run 05 -p seeds 10 --sweep learning_rate=0.003,0.01 --out build/steps",
    )
    takes_chapters(run)
    run._negative_number_matcher = re.compile(r"-\.?\d")  # as in newer Pythons: -1e-4 is a value, not an option
    run.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set a parameter in every chosen chapter (may be repeated)",
    )
    run.add_argument("-f", "--file", type=_path, help="YAML file of parameters: names to values, or chapters to such")
    run.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="NAME=A,B,C",
        help="run once for each value; several sweeps make a grid",
    )
    run.add_argument("--profile", default="default", help="a named set of parameters: default, quick or full")
    run.add_argument(
        "--jobs",
        type=_positive(int),
        default=os.cpu_count(),
        help="how many chapters to execute at once (default: one a core)",
    )
    run.add_argument("--out", type=_path, help="folder for the results (default: build, or build/PROFILE)")
    run.add_argument("--timeout", type=_positive(float), metavar="SECONDS", help="time that a whole chapter may take")
    run.add_argument("--resume", action="store_true", help="do only what is missing or did not end well")
    run.add_argument("--no-pages", action="store_true", help="leave the site as it is; the notebooks are executed")
    run.add_argument("--scheduler", metavar="ADDRESS", help="send training runs to a Dask cluster, tcp://host:port")
    ending = run.add_mutually_exclusive_group()
    ending.add_argument("--fail-fast", action="store_true", help="stop at the first chapter that fails")
    ending.add_argument("--keep-going", action="store_true", help="execute the others if one fails (the default)")

    study = command(
        "study",
        "train what the archive of recorded runs lacks, without notebooks",
        "Every finished run is kept; the same command goes on.",
    )
    study.add_argument("parts", nargs="*", help="chapter (05), or part of the study by name or glob; all without one")
    study.add_argument("--workers", type=_positive(int), help="how many runs to train at once (default: one a core)")
    study.add_argument("--scheduler", metavar="ADDRESS", help="train on a Dask cluster, tcp://host:port")
    where = study.add_mutually_exclusive_group()
    where.add_argument(
        "--store",
        type=_path,
        help="folder of your own for what the archive lacks, from the project's root (default: build/runs)",
    )
    where.add_argument("--record", action="store_true", help="append to the archive itself, data/runs")
    study.add_argument("--retry-failed", action="store_true", help="train runs again that are recorded as failed")

    publish = command("publish", "copy the outputs of the last run into the chapters")
    takes_chapters(publish)
    publish.add_argument(
        "--from", dest="out", type=_path, default=BUILD, help="where the run wrote to (default: build)"
    )

    report = command("report", "execute the replication report and write it as one printable file")
    report.add_argument("--out", type=_path, default=BUILD, help="folder for the result (default: build)")

    course = command("course", "write student copies of the chapters, and check them once they are filled in")
    course = course.add_subparsers(required=True, metavar="command")
    student = command("course student", "write student copies, without solutions and hidden tests", among=course)
    student.add_argument("out", type=_path, help="folder for the copies")
    takes_chapters(student)
    student.add_argument(
        "--keep",
        action="store_true",
        help="leave copies in the folder that were worked on as they "
        "are, and write the others; without it, nothing is written then",
    )
    check = command(
        "course check",
        "run the checks on filled-in copies and give the points of each exercise",
        among=course,
        epilog="The exit code is 0 if every copy could be judged, whatever its points. "
        "Example: kscore course check handed_in --csv points.csv",
    )
    check.add_argument(
        "copies",
        nargs="+",
        type=_path,
        metavar="file",
        help="a filled-in student copy, or a folder with copies in it, one folder per student for example",
    )
    check.add_argument(
        "--jobs",
        type=_positive(int),
        default=os.cpu_count(),
        help="how many copies to judge at once (default: one per core)",
    )
    check.add_argument("--csv", type=_path, metavar="FILE", help="write a row for each copy and exercise here")
    check.add_argument(
        "--timeout",
        type=_positive(int),
        metavar="SECONDS",
        default=60,
        help="time that a cell of an exercise may take (default: 60)",
    )

    status = command("status", "show how the chapters of a folder last ran")
    status.add_argument("--out", type=_path, default=BUILD, help="the folder (default: build)")
    return whole


def _path(text: str) -> Path:
    """Read the path of a file or a folder; `~` is somebody's home, which a shell does not always spell out."""
    try:
        if not text.strip():
            raise RuntimeError
        return Path(text).expanduser()
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"must be the path of a file or a folder, got {text!r}") from None


def _positive(kind: type) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    read.__name__ = {int: "positive whole number", float: "positive number"}[kind]
    return read
