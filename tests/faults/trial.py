"""The whole trial as one command: kill what runs, and try ten times as many examples as usual of everything else.

    python tests/faults/trial.py             # half an hour or more
    python tests/faults/trial.py --kills 10

prints a table, in Markdown, of what was tried and how much of it held; the exit code is 0 if all of it did. The kills
are those of random_kills.py; the examples are those of the property tests, with the profile "trial" of hypothesis.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
PARTS = {
    "filters and noise": ["test_filters.py", "test_noise.py", "test_drift_models.py"],
    "normalizers": ["test_normalizers.py", "test_episode.py", "test_relatives.py", "test_parts.py", "test_groups.py"],
    "states, whole and broken": ["test_states.py"],
    "records, whole and broken": ["test_records.py"],
    "places to write to": ["test_paths.py", "test_recording.py"],
    "wrappers": ["test_scaling.py", "test_wrappers_gymnasium.py", "test_wrappers_sb3.py"],
    "statistics": ["test_stats.py"],
}
"""What is tried by property tests, and the files that hold them; the other tests of these files go along."""
COUNTS = re.compile(r"generate phase.*?(\d+) passing, (\d+) failing", re.DOTALL)
ENDS = re.compile(r"(\d+) (passed|failed|errors?)\b")


class Row(NamedTuple):
    """One line of the table."""

    what: str
    tried: int
    held: int
    note: str = ""


def kills(count: int) -> Row:
    """Kill and stop studies and chapters so many times."""
    told = subprocess.run([sys.executable, HERE / "random_kills.py", str(count)], capture_output=True, text=True)
    lines = told.stdout.splitlines() or [told.stderr[-300:]]
    tried = sum(bool(re.match(r"\d+ of \d+: ", line)) for line in lines)
    return Row("kills and stops", count, tried if told.returncode == 0 else 0, lines[-1])


def examples(what: str, files: list[str]) -> list[Row]:
    """Run the tests of some files, and return how many tests and how many examples were tried and held."""
    options = ["-n", "0", "-p", "no:cacheprovider", "--hypothesis-profile", "trial", "--hypothesis-show-statistics"]
    command = [sys.executable, "-m", "pytest", *options, *(TESTS / file for file in files)]
    told = subprocess.run(command, capture_output=True, text=True, cwd=TESTS.parent)
    found = [tuple(map(int, counts)) for counts in COUNTS.findall(told.stdout)]
    ends = {word: int(count) for count, word in ENDS.findall(told.stdout.splitlines()[-1])}
    passed, good, bad = ends.get("passed", 0), sum(one for one, _ in found), sum(one for _, one in found)
    failed = sum(ends.values()) - passed or int(told.returncode != 0)
    wrong = "; ".join(line.split("::")[-1] for line in told.stdout.splitlines() if line.startswith("FAILED"))
    return [Row(f"{what}: tests", passed + failed, passed, wrong), Row(f"{what}: examples", good + bad, good)]


def main() -> int:
    """Try everything and print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="how many times something is killed or stopped")
    options = parser.parse_args()
    print("| what | tried | held | |\n|---|---|---|---|", flush=True)
    good = True
    for try_it in (*((examples, what, files) for what, files in PARTS.items()), (kills, options.kills)):
        made = try_it[0](*try_it[1:])
        for row in made if isinstance(made, list) else [made]:
            good &= 0 < row.tried == row.held
            print(f"| {row.what} | {row.tried:,} | {row.held:,} | {row.note} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
