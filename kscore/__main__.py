"""The command line: `kscore list`, `run`, `study`, `publish`, `report`, `course`, `status` (`python -m kscore`)."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, Executor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

from kscore import console
from kscore.options import parser
from kscore.project import ARCHIVE, BUILD, located, need_checkout, shown

if TYPE_CHECKING:
    from pandas import DataFrame

    from kscore.study.plan import Part


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; 0 only if all of it succeeded, 2 if it could not be understood."""
    console.open_closed_streams()
    console.spell_out()
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being told to end is like Ctrl-C
    try:
        need_checkout(f"kscore {options.name}")
        code = COMMANDS[options.name](options)
        sys.stdout.flush()  # here, where somebody who listens no more is noticed
        return code
    except ValueError as mistake:
        console.tell(f"kscore: {mistake}")
        return 2
    except ModuleNotFoundError as missing:
        console.tell(
            f"kscore: {missing.name} is not installed, and `kscore {options.name}` needs it: `make run` "
            "installs all that the chapters need, `pip install -c constraints.txt -e '.[notebooks]'` does so by hand"
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
    from kscore.study import store

    if options.record and part.keep == "outcomes":
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


COMMANDS = {
    "list": _list,
    "run": _run,
    "study": _study,
    "publish": _publish,
    "report": _report,
    "course student": _student,
    "course check": _check,
    "status": _status,
}


if __name__ == "__main__":
    sys.exit(main())
