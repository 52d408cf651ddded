"""The command line: `kscore list`, `run`, `study`, `publish`, `report`, `course`, `status` (`python -m kscore`)."""

import argparse
import os
import re
import signal
import sys
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor
from pathlib import Path

from kscore import DATA, ROOT, chapters

BUILD = ROOT / "build"


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; 0 only if all of it succeeded, 2 if it could not be understood."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being told to end is like Ctrl-C
    try:
        code = options.command(options)
        sys.stdout.flush()  # here, where somebody who listens no more is noticed
        return code
    except ValueError as mistake:
        print(f"kscore: {mistake}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever was listening has heard enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as trouble:
        print("kscore:", ": ".join(filter(None, (trouble.strerror, trouble.filename))) or trouble, file=sys.stderr)
        return 1
    except BrokenExecutor:
        print(f"kscore: a training process died: killed, or out of memory. {options.go_on}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nkscore: stopped. {options.go_on}", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kscore", description="Run, check and publish the chapters of the "
                                     "collection, and train the runs that they are made of.")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, does: callable, about: str, go_on: str = "Nothing is lost.", among: object = commands,
                **details: str):
        added = among.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.", **details)
        added.set_defaults(command=does, go_on=go_on)
        return added

    def takes_chapters(added: argparse.ArgumentParser) -> None:
        added.add_argument("chapters", nargs="*", help="name, number or glob; all chapters without one")

    takes_chapters(command("list", _list, "list the chapters with their parameters and how they last ran into build"))

    run = command("run", _run, "execute chapters with papermill and write an HTML page of each",
                  "`kscore run --resume` with the same options does what is left.",
                  epilog="Example: kscore run 05 -p seeds 10 -p store build/mine --sweep learning_rate=0.003,0.01 "
                         "--out build/steps")
    takes_chapters(run)
    run._negative_number_matcher = re.compile(r"-\.?\d")  # as in newer Pythons: -1e-4 is a value, not an option
    run.add_argument("-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                     help="set a parameter in every chosen chapter (may be repeated)")
    run.add_argument("-f", "--file", type=Path, help="YAML file of parameters: names to values, or chapters to such")
    run.add_argument("--sweep", action="append", default=[], metavar="NAME=A,B,C",
                     help="run once for each value; several sweeps make a grid")
    run.add_argument("--profile", default="default", help="a named set of parameters: default, quick or full")
    run.add_argument("--jobs", type=_positive(int), default=1, help="how many chapters to execute at once (default: 1)")
    run.add_argument("--out", type=Path, help="folder for the results (default: build, or build/PROFILE)")
    run.add_argument("--timeout", type=_positive(float), metavar="SECONDS", help="time that a whole chapter may take")
    run.add_argument("--resume", action="store_true", help="do only what is missing or did not end well")
    run.add_argument("--scheduler", metavar="ADDRESS", help="send training runs to a Dask cluster, tcp://host:port")
    ending = run.add_mutually_exclusive_group()
    ending.add_argument("--fail-fast", action="store_true", help="stop at the first chapter that fails")
    ending.add_argument("--keep-going", action="store_true", help="execute the others if one fails (the default)")

    study = command("study", _study, "train what the recorded study lacks, without notebooks",
                    "Every finished run is kept; the same command goes on.")
    study.add_argument("parts", nargs="*", help="chapter (05), or part of the study by name or glob; all without one")
    study.add_argument("--workers", type=_positive(int), help="how many runs to train at once (default: one a core)")
    study.add_argument("--store", type=Path, default=DATA / "runs", help="folder of the runs (default: data/runs)")
    study.add_argument("--scheduler", metavar="ADDRESS", help="train on a Dask cluster, tcp://host:port")

    publish = command("publish", _publish, "copy the outputs of the last run into the chapters")
    takes_chapters(publish)
    publish.add_argument("--from", dest="out", type=Path, default=BUILD, help="where the run wrote to (default: build)")

    report = command("report", _report, "execute the replication report and write it as one printable file")
    report.add_argument("--out", type=Path, default=BUILD, help="folder for the result (default: build)")

    course = command("course", None, "write student copies of the chapters, and check them once they are filled in")
    course = course.add_subparsers(required=True, metavar="command")
    student = command("student", _student, "write student copies, without solutions and hidden tests", among=course)
    student.add_argument("out", type=Path, help="folder for the copies")
    takes_chapters(student)
    check = command("check", _check, "run the checks on a filled-in copy and print the points of each exercise",
                    among=course)
    check.add_argument("file", type=Path, help="a filled-in student copy")
    check.add_argument("--timeout", type=_positive(int), metavar="SECONDS", default=60,
                       help="time that a cell of an exercise may take (default: 60)")

    status = command("status", _status, "show how the chapters of a folder last ran")
    status.add_argument("--out", type=Path, default=BUILD, help="the folder (default: build)")
    return parser


def _positive(kind: type) -> callable:
    def read(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value
    read.__name__ = {int: "positive whole number", float: "positive number"}[kind]
    return read


def _list(options: argparse.Namespace) -> int:
    from kscore import batch

    entries = batch.latest(BUILD)
    for chapter in chapters.chapters(options.chapters):
        last = entries.get(chapter.stem)
        print(f"{chapter.stem}  ({_told(last) if last else 'not run yet'})")
        known = chapters.parameters(chapter).values()
        for p in known:
            allowed = f"; {p.allowed}" if p.words or p.low is not None else ""
            print(f"    {p.name}: {p.kind} = {p.default!r:.40}  {p.about}{allowed}")
    return 0


def _told(entry: dict) -> str:
    where = f" in cell {entry['cell']}" if entry.get("cell") and entry["status"] != "ok" else ""
    return f"{entry['status']}{where}, {entry['time'].replace('T', ' ')[:16]}"


def _run(options: argparse.Namespace) -> int:
    from kscore import batch

    todo, out = _tasks(options), _folder(options)
    _check_sources({task.source for task in todo})
    if options.scheduler:
        _hand_on(options.scheduler)
    entries = batch.latest(out)
    for task in todo:
        if entries.get(task.name, {}).get("status") == "running":
            raise ValueError(f"{task.name} is being run into {out} already, by process {entries[task.name]['runner']}")
    left = [task for task in todo if not (options.resume and batch.done(task, entries))]
    outcomes = {task.name: batch.Outcome(task.name, "done before") for task in todo}
    outcomes |= {outcome.name: outcome for outcome in batch.run(
        left, out, jobs=options.jobs, timeout=options.timeout, fail_fast=options.fail_fast, watch=_Progress(len(left)))}
    return _summary(list(outcomes.values()), out)


def _hand_on(scheduler: str) -> None:
    """Let the kernels find a cluster, once it is known that it can be used."""
    from kscore import cluster

    with cluster.executor(scheduler):
        os.environ["DASK_SCHEDULER_ADDRESS"] = scheduler


def _check_sources(sources: Iterable[Path]) -> None:
    from kscore import pages  # here, because a mistake on the command line is told before these seconds

    for source in sorted(sources):
        pages.check_pair(source)


def _summary(outcomes: list, out: Path) -> int:
    """Say how it went, and return 0 only if all went well."""
    from kscore import batch, pages

    print(f"\n{batch.table(outcomes)}\n")
    for outcome in outcomes:
        if outcome.error:
            print(f"{outcome.name}: {_where(outcome.cell)}{outcome.error}")
    print(f"The executed notebooks and their HTML pages are in {pages.shown(out)}/; "
          f"start with {pages.shown(out / outcomes[0].name)}.html")
    return 0 if all(outcome.good for outcome in outcomes) else 1


def _where(cell: int | None) -> str:
    return f"cell {cell}: " if cell else ""


def _folder(options: argparse.Namespace) -> Path:
    return (options.out or BUILD / ("" if options.profile == "default" else options.profile)).absolute()


def _tasks(options: argparse.Namespace) -> list:
    """Return what is to be executed, with every parameter checked before anything runs."""
    from kscore import batch

    chosen = chapters.chapters(options.chapters)
    given = {chapter.stem: {} for chapter in chosen}
    for source in (chapters.profile(options.profile), chapters.from_file(options.file, chosen) if options.file else {}):
        for stem in given:
            given[stem] |= source.get(stem, {})
    for stem in given:
        given[stem] |= dict(options.parameter)
    made = batch.tasks(chosen, given, chapters.grid(options.sweep), _folder(options))
    return [task._replace(parameters=chapters.check(task.source, task.parameters)) for task in made]


class _Progress:
    """Say which chapter is at which cell: on one line where there is a terminal, once a chapter elsewhere."""

    def __init__(self, count: int) -> None:
        self.count, self.running = count, {}

    def __call__(self, task: object, cell: int, cells: int) -> None:
        begins = task.name not in self.running
        self.running[task.name] = f"{task.name}: cell {cell} of {cells}"
        if sys.stderr.isatty():
            print(f"\r\033[K{self.running[task.name]}", end="\n" if cell == cells else "", file=sys.stderr, flush=True)
        elif begins:
            print(f"running {task.name} ({len(self.running)} of {self.count}) ...", flush=True)


def _study(options: argparse.Namespace) -> int:
    from kscore import experiments, results, study  # here, because the other commands do not need torch

    parts, runs = experiments.chosen(options.parts), {}
    with study.processes(options.workers, options.scheduler) as executor:
        def fill(name: str, part: experiments.Experiment) -> None:
            store, planned = options.store.absolute() / f"{name}.jsonl", len(part.configs) * len(part.seeds)
            missing = planned - len(study.recorded(part.configs, part.seeds, store))
            print(f"{name}: {planned} runs, {missing or 'none'} of them to be trained", flush=True)
            runs[name] = study.run(part.configs, part.seeds, store, executor)

        for name, part in parts.items():
            fill(name, part)
        for name, part in results.winners(parts, runs).items():  # known only now
            fill(name, part)
    return 0


def _publish(options: argparse.Namespace) -> int:
    from kscore import batch, pages

    chosen = chapters.chapters(options.chapters)
    _check_sources(chosen)
    entries = batch.latest(options.out)
    for source in chosen:
        if entries.get(source.stem, {}).get("status", "ok") != "ok":
            raise ValueError(f"the last run of {source.stem} into {options.out} did not end well "
                             f"({entries[source.stem]['status']}): run it again before publishing")
    pages.publish([(source, options.out / source.name) for source in chosen])
    print("published " + ", ".join(source.stem for source in chosen))
    return 0


def _report(options: argparse.Namespace) -> int:
    from kscore import batch, pages

    source, = chapters.chapters(["11_replication_report"])
    _check_sources([source])
    task, = batch.tasks([source], {}, [{}], options.out.absolute())
    outcome, = batch.run([task], task.target.parent, watch=_Progress(1))
    if not outcome.good:
        print(f"{outcome.name}: {_where(outcome.cell)}{outcome.error}")
        return 1
    print(f"written: {pages.shown(pages.write_report(task.target, task.target.with_name('report.html')))}")
    return 0


def _student(options: argparse.Namespace) -> int:
    from kscore import course

    written = course.student(options.out, options.chapters)
    print(f"written into {options.out}: " + ", ".join(path.stem for path in written))
    return 0


def _check(options: argparse.Namespace) -> int:
    """Print the points; 0 if the answers passed all their checks."""
    from kscore import course

    results = course.check(options.file, options.timeout)
    print(course.table(results))
    return 0 if not any(result.error for result in results) else 1


def _status(options: argparse.Namespace) -> int:
    from kscore import batch

    entries = batch.latest(options.out)
    if not entries:
        print(f"Nothing has been run into {options.out} yet.")
    for name, entry in sorted(entries.items()):
        seconds = f", {entry['seconds']:.0f} s" if "seconds" in entry else ""
        print(f"{name}: {_told(entry)}{seconds}" + (f": {entry['error']}" if entry.get("error") else ""))
    return 0 if all(entry["status"] == "ok" for entry in entries.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
