"""The command line: `kscore run`, `publish`, `study`, `report`, `list` (also as `python -m kscore`)."""

import argparse
import sys
from pathlib import Path

from kscore import ROOT, batch


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; 0 only if all of it succeeded, 2 if it could not be understood."""
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except ValueError as mistake:
        print(f"kscore: {mistake}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kscore", description="Run and publish the chapters of the collection.")
    commands = parser.add_subparsers(required=True, metavar="command")

    run = commands.add_parser("run", help="execute chapters with papermill and write an HTML page of each")
    run.add_argument("chapters", nargs="*", help="name, number or glob; all chapters without one")
    run.add_argument("--profile", default="default", help="a named set of parameters: default or quick")
    run.add_argument("--out", type=Path, help="folder for the results (default: build, or build/PROFILE)")
    run.set_defaults(command=_run)

    publish = commands.add_parser("publish", help="copy the outputs of the last run into the chapters")
    publish.add_argument("chapters", nargs="*", help="name, number or glob; all chapters without one")
    publish.add_argument("--from", dest="out", type=Path, default=ROOT / "build", help="where the run wrote to")
    publish.set_defaults(command=_publish)

    study = commands.add_parser("study", help="train what the recorded study lacks, and append it to data/runs")
    study.add_argument("experiments", nargs="*", help="chapter (05), name or glob; the whole study without one")
    study.add_argument("--workers", type=int, help="how many runs to train at once (default: one a core)")
    study.set_defaults(command=_study)

    report = commands.add_parser("report", help="execute the replication report and write it as one printable file")
    report.add_argument("--out", type=Path, default=ROOT / "build", help="folder for the result (default: build)")
    report.set_defaults(command=_report)

    listing = commands.add_parser("list", help="list the chapters")
    listing.add_argument("chapters", nargs="*", help="name, number or glob; all chapters without one")
    listing.set_defaults(command=_list)
    return parser


def _run(options: argparse.Namespace) -> int:
    parameters = batch.profile(options.profile)
    out = options.out or ROOT / "build" / ("" if options.profile == "default" else options.profile)
    chapters = batch.chapters(options.chapters)
    for source in chapters:
        batch.check_pair(source)
    outcomes = []
    for source in chapters:
        print(f"running {source.stem} ...", flush=True)
        target = out / source.name
        outcomes.append(batch.execute(source, target, parameters.get(source.stem), progress=sys.stderr.isatty()))
        batch.write_page(target)
    print(f"\n{batch.table(outcomes)}\n")
    for outcome in outcomes:
        if outcome.error:
            print(f"{outcome.chapter}: {outcome.error}")
    print(f"The executed notebooks and their HTML pages are in {batch.shown(out)}/; "
          f"start with {batch.shown(out / outcomes[0].chapter)}.html")
    return 0 if all(outcome.status == "ok" for outcome in outcomes) else 1


def _publish(options: argparse.Namespace) -> int:
    chapters = batch.chapters(options.chapters)
    for source in chapters:
        batch.check_pair(source)
    batch.publish([(source, options.out / source.name) for source in chapters])
    print("published " + ", ".join(source.stem for source in chapters))
    return 0


def _study(options: argparse.Namespace) -> int:
    from kscore import experiments, study  # here, because the other commands do not need torch

    for name, part in experiments.chosen(options.experiments).items():
        print(f"{name}: {len(part.configs)} arms x {len(part.seeds)} seeds", flush=True)
        study.run(part.configs, part.seeds, experiments.store(name), workers=options.workers)
    return 0


def _report(options: argparse.Namespace) -> int:
    source, = batch.chapters(["11_replication_report"])
    batch.check_pair(source)
    outcome = batch.execute(source, options.out / source.name, progress=sys.stderr.isatty())
    if outcome.error:
        print(f"{outcome.chapter}: {outcome.error}")
        return 1
    print(f"written: {batch.shown(batch.write_report(options.out / source.name, options.out / 'report.html'))}")
    return 0


def _list(options: argparse.Namespace) -> int:
    for source in batch.chapters(options.chapters):
        print(source.stem)
    return 0


if __name__ == "__main__":
    sys.exit(main())
