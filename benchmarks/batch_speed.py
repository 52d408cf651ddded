"""What the runner of chapters costs: against papermill alone, with two jobs against one, and reading a large store.

Pages are left out: they are built once, after all chapters, and not by the runner.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import papermill
from nbformat.v4 import new_code_cell, new_notebook

from kscore.chapters import notebooks, parameters, runner
from kscore.chapters.status import Task
from kscore.project import ARCHIVE

ROUNDS = 3
READ = """
import resource, sys, time
from kscore import study
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
records = study.read(sys.argv[1]).records
print(len(records), time.perf_counter() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def notebook(folder: Path, name: str, seconds: float) -> Path:
    cells = [new_code_cell("import time"), *[new_code_cell(f"time.sleep({seconds / 4})") for _ in range(4)]]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = folder / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    return path


def timed(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def overhead(folder: Path) -> float:
    """Return the seconds that the runner adds to a chapter, the median of a few rounds taken in turn."""
    source = notebook(folder, "00_one", 1.0)
    added = []
    for _ in range(ROUNDS):
        alone = timed(lambda: papermill.execute_notebook(source, folder / "alone.ipynb", kernel_name="python3",
                                                         progress_bar=False))
        ours = timed(lambda: runner.run([Task(source, folder / "ours.ipynb", {})], folder))
        added.append(ours - alone)
    return sorted(added)[ROUNDS // 2]


def speed_up(folder: Path) -> float:
    """Return the time of the first four chapters, in their quick form, with two jobs over that with one."""
    quick = parameters.profile("quick")
    sources = notebooks.find(["0[0-3]_*"])
    tasks = [Task(source, folder / "out" / source.name, quick.get(source.stem, {})) for source in sources]
    one = timed(lambda: runner.run(tasks, folder / "out", jobs=1))
    return timed(lambda: runner.run(tasks, folder / "out", jobs=2)) / one


def reading(folder: Path, count: int = 10_000) -> tuple[float, float]:
    """Return the seconds and the megabytes that it takes to read so many records, in a process of its own."""
    lines = [line for path in sorted(ARCHIVE.glob("cartpole_*.jsonl")) for line in path.open()]
    large = folder / "large.jsonl"
    with large.open("w") as file:
        for number, line in zip(range(count), itertools.cycle(lines), strict=False):
            file.write(json.dumps(json.loads(line) | {"seed": number}) + "\n")
    done = subprocess.run([sys.executable, "-c", READ, str(large)], capture_output=True, text=True, check=True)
    records, seconds, megabytes = map(float, done.stdout.split())
    assert records == count
    return seconds, megabytes


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds, megabytes = reading(folder)
        rows = [("the runner adds to a chapter", overhead(folder), "s", 3.0),
                ("four chapters, two jobs over one", speed_up(folder), "ratio", 0.65),
                ("10,000 records read", seconds, "s", 2.0), ("10,000 records read", megabytes, "MB", 200.0)]
    for what, value, unit, most in rows:
        print(f"{what:36} {value:8.3g} {unit:6} <= {most:g}  {'ok' if value <= most else 'MISSED'}")
    return 0 if all(value <= most for _, value, _, most in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
