"""Every chapter at both ends of each of its parameters' ranges, and at random points inside: does what is allowed work?

    python benchmarks/parameter_ranges.py                       # all chapters, 200 random points (an hour or two)
    python benchmarks/parameter_ranges.py 02 03 --random 20
    python benchmarks/parameter_ranges.py --resume              # only what is missing or did not end well

What is not varied stands at the quick profile of the chapter. A run that takes longer than `--timeout` is too long, and
not failed: the upper ends of sizes (a million streams) are allowed to whoever waits for them. Results go to
build/ranges; the exit code is 1 if anything failed.
"""

import argparse
import itertools
import math
import random
import sys
from pathlib import Path

from kscore.chapters import notebooks, parameters, runner, status
from kscore.chapters.parameters import Parameter
from kscore.chapters.status import Task
from kscore.project import BUILD

OUT = BUILD / "ranges"
KEPT = ("store", "archive")  # where runs are kept: nothing to vary


def quick(chapter: Path) -> dict[str, object]:
    """The quick profile of a chapter, with a store of this script's own."""
    known, base = parameters.of(chapter), parameters.profile("quick").get(chapter.stem, {})
    return base | ({"store": str(OUT / "runs")} if "store" in known else {})


def ends(parameter: Parameter) -> list[object]:
    """The values at the ends of what is allowed: both bounds, every word, the shortest and the longest list."""
    if parameter.words:
        return list(parameter.words)
    if parameter.low is None:
        return []
    low, high = parameter.low, parameter.high if math.isfinite(parameter.high) else 1e9
    if not parameter.kind.startswith("list"):
        return [number(parameter.kind, low), number(parameter.kind, high)]
    kind, (few, most) = parameter.kind[5:-1], parameter.lengths or (1, 3)
    spread = [number(kind, value) for value in evenly(low, high, most)]
    return [spread[:few], spread]


def evenly(low: float, high: float, count: int) -> list[float]:
    """So many values from low to high, evenly spaced, in the logarithm where that is possible."""
    if count == 1:
        return [low]
    if low > 0:
        return [low * (high / low) ** (i / (count - 1)) for i in range(count)]
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def number(kind: str, value: float) -> float | int:
    return round(value) if kind == "int" else value


def inside(parameter: Parameter, usual: object, rng: random.Random) -> object:
    """A random value of a parameter: of a size, no more than three times what is usual."""
    if parameter.words:
        return rng.choice(parameter.words)
    if parameter.low is None:
        return parameter.default
    low, high = parameter.low, min(parameter.high, 1e9)
    if parameter.kind == "int" and not parameter.name.endswith("seed"):
        high = min(high, max(3 * usual, low))
    def draw(kind: str) -> float | int:
        return number(kind, math.exp(rng.uniform(math.log(low), math.log(high))) if low > 0 else rng.uniform(low, high))
    if not parameter.kind.startswith("list"):
        return draw(parameter.kind)
    few, most = parameter.lengths or (1, 3)
    return list(dict.fromkeys(draw(parameter.kind[5:-1]) for _ in range(rng.randint(max(few, 1), most))))


def points(chapter: Path, count: int, rng: random.Random) -> dict[str, dict[str, object]]:
    """The points at which a chapter is run, by name."""
    varied = {name: parameter for name, parameter in parameters.of(chapter).items() if name not in KEPT}
    usual = {name: parameter.default for name, parameter in varied.items()} | quick(chapter)
    found = {f"{name}-{i}": {name: value} for name, parameter in varied.items()
             for i, value in enumerate(ends(parameter))}
    for i in range(count):
        some = rng.sample(sorted(varied), k=min(len(varied), 3))  # a few at once: pairs that do not fit are found, too
        found[f"random-{i}"] = {name: inside(varied[name], usual[name], rng) for name in some}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*")
    parser.add_argument("--random", type=int, default=200, help="random points, over all chapters (default: 200)")
    parser.add_argument("--timeout", type=float, default=120, help="seconds that a run may take (default: 120)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once (default: 2)")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    chosen, rng = notebooks.find(options.chapters), random.Random(1)
    counts = [options.random // len(chosen) + (i < options.random % len(chosen)) for i in range(len(chosen))]
    todo = [Task(chapter, OUT / f"{chapter.stem}__{name}.ipynb", parameters.check(chapter, quick(chapter) | point))
            for chapter, count in zip(chosen, counts, strict=True)
            for name, point in points(chapter, count, rng).items()]
    left = status.due(todo, status.latest(OUT)) if options.resume else todo
    place = itertools.count(1)
    outcomes = runner.run(left, OUT, jobs=options.jobs, timeout=options.timeout,
                          ended=lambda outcome: print(f"{next(place)} of {len(left)}: {outcome.name} {outcome.status}",
                                                      file=sys.stderr, flush=True))
    given = {task.name: task.parameters for task in todo}
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    late = [outcome for outcome in outcomes if outcome.status == "timeout"]
    print(f"{len(outcomes)} points: {len(outcomes) - len(failed) - len(late)} ok, {len(late)} too long, "
          f"{len(failed)} failed")
    for outcome in late:
        print(f"too long: {outcome.name}")
    for outcome in failed:
        print(f"failed: {outcome.name} {given[outcome.name]}: cell {outcome.cell}: {outcome.error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
