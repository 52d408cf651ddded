"""The command line: `kscore list`, `run`, `study`, `publish`, `report`, `course`, `status` (`python -m kscore`)."""

import argparse
import os
import re
import signal
import sys
import time
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, Executor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

from kscore import console
from kscore.project import ARCHIVE, BUILD, located, need_checkout, shown

if TYPE_CHECKING:
    from pandas import DataFrame

    from kscore.study.plan import Part


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; 0 only if all of it succeeded, 2 if it could not be understood."""
    console.open_closed_streams()
    console.spell_out()
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being told to end is like Ctrl-C
    try:
        need_checkout(f"kscore {options.name}")
        code = options.command(options)
        sys.stdout.flush()  # here, where somebody who listens no more is noticed
        return code
    except ValueError as mistake:
        console.tell(f"kscore: {mistake}")
        return 2
    except ModuleNotFoundError as missing:
        console.tell(
            f"kscore: {missing.name} is not installed, and `kscore {options.name}` needs it: `make run` "
            "installs all that the chapters need, `pip install -e '.[notebooks]'` does so by hand"
        )
        return 1
    except BrokenPipeError:  # whoever was listening has heard enough
        console.speak_to_nobody(sys.stdout)
        return 1
    except OSError as trouble:
        console.tell(f"kscore: {': '.join(filter(None, (trouble.strerror, trouble.filename))) or trouble}")
        return 1
    except BrokenProcessPool:
        console.tell(f"kscore: a training process died: killed, or out of memory. {options.go_on}")
        return 1
    except BrokenExecutor as trouble:  # of a cluster, and it says what
        console.tell(f"kscore: {trouble}. {options.go_on}")
        return 1
    except KeyboardInterrupt:
        console.tell(f"\nkscore: stopped. {options.go_on}")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kscore",
        description="Run, check and publish the chapters of the collection, and train the runs that they are made of.",
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(
        name: str, does: callable, about: str, go_on: str = "Nothing is lost.", among: object = commands, **details: str
    ):
        added = among.add_parser(name.split()[-1], help=about, description=f"{about[0].upper()}{about[1:]}.", **details)
        added.set_defaults(command=does, go_on=go_on, name=name)
        return added

    def takes_chapters(added: argparse.ArgumentParser) -> None:
        added.add_argument("chapters", nargs="*", help="name, number or glob; all chapters without one")

    takes_chapters(command("list", _list, "list the chapters with their parameters and how they last ran into build"))

    run = command(
        "run",
        _run,
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
        _study,
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

    publish = command("publish", _publish, "copy the outputs of the last run into the chapters")
    takes_chapters(publish)
    publish.add_argument(
        "--from", dest="out", type=_path, default=BUILD, help="where the run wrote to (default: build)"
    )

    report = command("report", _report, "execute the replication report and write it as one printable file")
    report.add_argument("--out", type=_path, default=BUILD, help="folder for the result (default: build)")

    course = command("course", None, "write student copies of the chapters, and check them once they are filled in")
    course = course.add_subparsers(required=True, metavar="command")
    student = command(
        "course student", _student, "write student copies, without solutions and hidden tests", among=course
    )
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
        _check,
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

    status = command("status", _status, "show how the chapters of a folder last ran")
    status.add_argument("--out", type=_path, default=BUILD, help="the folder (default: build)")
    return parser


def _path(text: str) -> Path:
    """Read the path of a file or a folder; `~` is somebody's home, which a shell does not always spell out."""
    try:
        if not text.strip():
            raise RuntimeError
        return Path(text).expanduser()
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"must be the path of a file or a folder, got {text!r}") from None


def _positive(kind: type) -> callable:
    def read(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    read.__name__ = {int: "positive whole number", float: "positive number"}[kind]
    return read


def _list(options: argparse.Namespace) -> int:
    from kscore.chapters import notebooks, parameters, status

    entries = status.latest(BUILD)
    for chapter in notebooks.find(options.chapters):
        last = entries.get(chapter.stem)
        print(f"{chapter.stem}  ({_told(last) if last else 'not run yet'})")
        for p in parameters.of(chapter).values():
            allowed = f"; {p.allowed}" if p.words or p.low is not None else ""
            print(f"    {p.name}: {p.kind} = {p.default!r:.40}  {p.about}{allowed}")
    return 0


def _told(entry: dict) -> str:
    where = f" in cell {entry['cell']}" if entry.get("cell") and entry["status"] != "ok" else ""
    return f"{entry['status']}{where}, {entry['time'].replace('T', ' ')[:16]}"


def _run(options: argparse.Namespace) -> int:
    from kscore.chapters import runner, site, status

    todo, out, start = _tasks(options), _folder(options), time.monotonic()
    if not options.no_pages:
        site.need_packages()
    _check_sources({task.source for task in todo})
    if options.scheduler is not None:
        _hand_on(options.scheduler)
    entries = status.latest(out)
    for task in todo:
        status.check_free(entries, task, out)  # here as well, so that nothing is begun if one of them is claimed
    left = status.due(todo, entries) if options.resume else todo
    outcomes = {task.name: status.Outcome(task.name, "done before") for task in todo}
    progress = console.Progress(len(left))
    outcomes |= {
        outcome.name: outcome
        for outcome in runner.run(
            left,
            out,
            jobs=options.jobs,
            timeout=options.timeout,
            fail_fast=options.fail_fast,
            watch=progress.cell,
            ended=progress.end,
        )
    }
    good = _summary(list(outcomes.values()))
    return 0 if _pages(out, options.no_pages, start) and good else 1


def _hand_on(scheduler: str) -> None:
    """Let the kernels find a cluster, once it is known that it can be used."""
    from kscore.study import cluster

    with cluster.executor(scheduler):
        os.environ["DASK_SCHEDULER_ADDRESS"] = scheduler


def _check_sources(sources: Iterable[Path]) -> None:
    from kscore.chapters import pages  # here, because a mistake on the command line is told before these seconds

    for source in sorted(sources):
        pages.check_pair(source)


def _summary(outcomes: list) -> bool:
    """Say how it went, and return whether all went well."""
    from kscore.chapters import runner

    console.say(f"\n{runner.table(outcomes)}\n")
    for outcome in outcomes:
        if outcome.error:
            console.say(f"{outcome.name}: {_where(outcome.cell)}{outcome.error}")
    return all(outcome.good for outcome in outcomes)


def _pages(out: Path, without: bool, start: float) -> bool:
    """Build the site of a folder, say where everything is and what it took, and return whether all of it is there."""
    from kscore import progress
    from kscore.chapters import site

    notebooks = f"The executed notebooks are in {shown(out)}/."
    if without:
        console.say(notebooks)
        return True
    console.tell("building the pages: about a minute for all chapters, less where little has changed ...")
    built = time.monotonic()
    try:
        first = site.build(out)
    except site.NotBuilt as trouble:
        console.say(
            f"{notebooks} Their pages could not be built: {trouble}. Nothing that was executed is lost; "
            "the same command with --resume builds the pages alone."
        )
        return False
    now = time.monotonic()
    console.say(
        f"{notebooks} Their pages took {now - built:.0f} s, everything {progress.duration(now - start)}. "
        f"Open {shown(first)}"
    )
    return True


def _where(cell: int | None) -> str:
    return f"cell {cell}: " if cell else ""


def _folder(options: argparse.Namespace) -> Path:
    return (options.out or BUILD / ("" if options.profile == "default" else options.profile)).absolute()


def _tasks(options: argparse.Namespace) -> list:
    """Return what is to be executed, with every parameter checked before anything runs."""
    from kscore.chapters import notebooks, parameters, runner

    chosen = notebooks.find(options.chapters)
    given = {chapter.stem: {} for chapter in chosen}
    from_file = parameters.from_file(options.file, chosen) if options.file else {}
    for source in (parameters.profile(options.profile), from_file):
        for stem in given:
            given[stem] |= source.get(stem, {})
    for stem in given:
        given[stem] |= dict(options.parameter)
    made = runner.tasks(chosen, given, parameters.grid(options.sweep), _folder(options))
    known = {chapter: parameters.of(chapter) for chapter in chosen}
    return [
        task._replace(parameters=parameters.check(task.source, task.parameters, known[task.source])) for task in made
    ]


def _study(options: argparse.Namespace) -> int:
    """Train part by part; one with runs that failed does not keep the others from being trained."""
    from kscore import study
    from kscore.study import plan

    chosen, runs, failures = plan.chosen(options.parts), {}, []
    with study.processes(options.workers, options.scheduler) as executor:
        for name in chosen:
            if grids := [grid for grid in plan.grids_of(name).values() if grid not in runs]:
                failures.append(f"{name}: not begun, because {grids[0]} has runs that failed")
                continue
            try:
                runs[name] = _trained(_part(name, runs), executor, options)
            except study.FailedRuns as failed:
                failures.append(f"{name}: {failed}")
    for failure in failures:
        console.tell(f"kscore: {failure}")
    return 1 if failures else 0


def _part(name: str, runs: dict) -> "Part":
    """Return a part of the plan; the arms of a tuned one are the best of its grids."""
    from kscore import analysis
    from kscore.study import plan

    winners = {kind: plan.part(grid).configs[analysis.best(runs[grid])] for kind, grid in plan.grids_of(name).items()}
    return plan.part(name, **{"winners": winners} if winners else {})


def _trained(part: "Part", executor: Executor, options: argparse.Namespace) -> "DataFrame":
    """Train what is missing of a part, into the archive or a store beside it, and return its runs."""
    from kscore import study
    from kscore.study import plan, store

    if options.record and part.name in plan.OUTCOMES:
        recorded = study.outcomes.frame(part)
        console.say(f"{part.name}: {part.runs} runs, {part.runs - len(recorded) or 'none'} of them missing")
        return study.outcomes.record(part, executor)
    folder = ARCHIVE if options.record else located(options.store or store.OWN)
    here = len(study.recorded(part.configs, part.seeds, ARCHIVE / part.file, folder / part.file))
    console.say(f"{part.name}: {part.runs} runs, {part.runs - here or 'none'} of them missing")
    if options.record:
        return study.record(part, executor, retry_failed=options.retry_failed)
    return study.runs(part, folder, executor, retry_failed=options.retry_failed)


def _publish(options: argparse.Namespace) -> int:
    from kscore.chapters import notebooks, pages, status

    chosen = notebooks.find(options.chapters)
    _check_sources(chosen)
    entries = status.latest(options.out)
    for source in chosen:
        if entries.get(source.stem, {}).get("status", "ok") != "ok":
            raise ValueError(
                f"the last run of {source.stem} into {options.out} did not end well "
                f"({entries[source.stem]['status']}): run it again before publishing"
            )
    pages.publish([(source, options.out / source.name) for source in chosen])
    console.say("published " + ", ".join(source.stem for source in chosen))
    return 0


def _report(options: argparse.Namespace) -> int:
    from kscore.chapters import notebooks, pages, runner

    (source,) = notebooks.find(["11_replication_report"])
    _check_sources([source])
    (task,) = runner.tasks([source], {}, [{}], options.out.absolute())
    progress = console.Progress(1)
    (outcome,) = runner.run([task], task.target.parent, watch=progress.cell, ended=progress.end)
    if not outcome.good:
        console.say(f"{outcome.name}: {_where(outcome.cell)}{outcome.error}")
        return 1
    console.say(f"written: {shown(pages.write_report(task.target, task.target.with_name('report.html')))}")
    return 0


def _student(options: argparse.Namespace) -> int:
    from kscore.chapters import course

    written = course.student(options.out.absolute(), options.chapters, options.keep)
    console.say(f"written into {options.out}: " + (", ".join(path.stem for path in written) or "nothing"))
    return 0


def _check(options: argparse.Namespace) -> int:
    """Print the points, of one copy or of a class; 0 if every copy could be judged."""
    from kscore.chapters import course, marking

    place = options.csv and marking.check_place(options.csv.absolute())
    paths = marking.found(options.copies)
    progress = console.Progress(len(paths))
    copies = marking.check(
        paths, options.timeout, options.jobs, progress.step, lambda copy: progress.done(copy.name, copy.said)
    )
    if len(copies) > 1:
        console.say(marking.summary(copies))
    elif copies[0].results:
        console.say(course.table(copies[0].results))
    if place:
        marking.write_csv(copies, place)
        console.say(f"The points of every copy and exercise are in {place}")
    return 0 if all(copy.results for copy in copies) else 1


def _status(options: argparse.Namespace) -> int:
    from kscore.chapters import status

    entries = status.latest(options.out)
    if not entries:
        print(f"Nothing has been run into {options.out} yet.")
    for name, entry in sorted(entries.items()):
        seconds = f", {entry['seconds']:.0f} s" if "seconds" in entry else ""
        print(f"{name}: {_told(entry)}{seconds}" + (f": {entry['error']}" if entry.get("error") else ""))
    return 0 if all(entry["status"] == "ok" for entry in entries.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
