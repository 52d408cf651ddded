"""Kill and stop studies and chapters at random, again and again, and count what was harmed.

    python tests/faults/random_kills.py                # 100 times, about a quarter of an hour
    python tests/faults/random_kills.py 20 --seed 5

Each time a study or the chapter runner is started, and something of it is hit (the process itself, one of the processes
it has started, or both at once) by SIGKILL, SIGTERM or SIGINT: while it starts, or a moment after it has written some
number of lines, so that a busy machine does not put all hits before the work. The same command is then let run to its
end. Printed at the end: runs *lost* (stored before, gone afterwards), *doubled* (stored twice), *differing* (other
returns than in an undisturbed study), chapters *mislabelled* (a status that says ok of a notebook that did not run to
its end), and processes *orphaned* (still there ten seconds later). All must be none.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_notebook

from kscore import journal, study
from kscore.chapters import notebooks, status
from kscore.rl import RunConfig

MARK = "KSCORE_TRIAL"
HITS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KINDS = ("itself", "one of its own", "both")
SEEDS = range(8)
CONFIGS = {
    name: RunConfig(
        env="CartPole-v1",
        algorithm="actor_critic",
        normalizer={"name": name},
        threshold=None,
        hidden=(32,),
        max_episodes=60,
    )
    for name in ("zscore", "running")
}

STUDY = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this runs in the background
sys.path.insert(0, sys.argv[1])
import random_kills as trial
from kscore import study
if __name__ == "__main__":
    study.run(trial.CONFIGS, trial.SEEDS, sys.argv[2])
"""
RUNNER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from kscore import project
project.NOTEBOOKS = Path(sys.argv[1])
from kscore.__main__ import main
sys.exit(main(["run", "--no-pages", "--resume", "--out", sys.argv[2]]))
"""


def descendants(mark: str) -> list[psutil.Process]:
    """All processes of a trial, by a mark that each of them inherits."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue  # gone, or of another user
    return found


def disturbed(command: list[str], rng: random.Random, written: Path, lines: int) -> tuple[str, int]:
    """Start a command that writes so many lines, hit it somewhere; return what was hit, and what was left of it."""
    mark = uuid.uuid4().hex
    child = subprocess.Popen(
        command,
        env=os.environ | {MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    due = rng.randrange(lines)  # none: while it starts
    while child.poll() is None and sum(1 for _ in journal.lines(written)) < due:
        time.sleep(0.02)
    time.sleep(rng.uniform(0, 0.5 if due else 5))
    kind, hit = rng.choice(KINDS), rng.choice(HITS)
    own = [process.pid for process in descendants(mark) if process.pid != child.pid]
    victims = [child.pid] if kind != "one of its own" else []
    victims += [rng.choice(own)] if own and kind != "itself" else []
    for pid in victims:
        try:
            os.kill(pid, hit)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + 120
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    deadline = time.monotonic() + 10
    while (left := descendants(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    for process in left:
        process.kill()
    child.wait()
    return f"{hit.name} to {kind}", len(left)


def seen(store: Path) -> list[tuple]:
    return [record.key for record in study.read(store).records]


def study_trial(folder: Path, rng: random.Random, reference: dict, harm: Counter) -> str:
    """Disturb a study, then let it come to its end, and look at its store."""
    store = folder / "runs.jsonl"
    command = [sys.executable, "-c", STUDY, str(Path(__file__).parent), str(store)]
    told, left = disturbed(command, rng, store, len(reference))
    before = seen(store)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    records = study.read(store).records
    harm["lost"] += (
        len(set(before) - {record.key for record in records}) + len(reference) - len({record.key for record in records})
    )
    harm["doubled"] += len(records) - len({record.key for record in records})
    harm["differing"] += sum(record.train_returns.tolist() != reference[record.key] for record in records)
    harm["orphaned"] += left
    return f"study: {told}, {len(before)} of {len(reference)} runs were stored"


def runner_trial(folder: Path, rng: random.Random, harm: Counter) -> str:
    """Disturb the chapter runner, look at what its status says, then let it come to its end."""
    chapters, out = folder / "notebooks", folder / "out"
    chapters.mkdir()
    (chapters / "profiles.toml").write_text("")
    for name in ("00_first", "01_second"):
        cells = [new_code_cell(f"import time; time.sleep(0.4); print({number})") for number in range(4)]
        about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(new_notebook(cells=cells, metadata=about), chapters / f"{name}.ipynb")
        subprocess.run(
            [sys.executable, "-m", "jupytext", "--quiet", "--to", "py:percent", chapters / f"{name}.ipynb"], check=True
        )
    command = [sys.executable, "-c", RUNNER, str(chapters), str(out)]
    told, left = disturbed(command, rng, out / status.STATUS, 2 * len(list(chapters.glob("*.ipynb"))))
    harm["orphaned"] += left
    harm["mislabelled"] += mislabelled(out)
    ended = subprocess.run(command, capture_output=True, text=True)
    harm["lost"] += ended.returncode != 0
    harm["mislabelled"] += mislabelled(out)
    return f"chapters: {told}"


def mislabelled(out: Path) -> int:
    good = [name for name, entry in status.latest(out).items() if entry["status"] == "ok"]
    return sum(bool(notebooks.unexecuted(notebooks.cells(out / f"{name}.ipynb"))) for name in good)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trials", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, harm = random.Random(options.seed), Counter(lost=0, doubled=0, differing=0, mislabelled=0, orphaned=0)
    with tempfile.TemporaryDirectory(prefix="kills") as place:
        calm = Path(place) / "calm.jsonl"
        study.run(CONFIGS, SEEDS, calm, progress=False)
        reference = {record.key: record.train_returns.tolist() for record in study.read(calm).records}
        for trial in range(options.trials):
            folder = Path(place) / str(trial)
            folder.mkdir()
            if rng.random() < 0.6:
                told = study_trial(folder, rng, reference, harm)
            else:
                told = runner_trial(folder, rng, harm)
            print(f"{trial + 1} of {options.trials}: {told}; so far {json.dumps(harm)}", flush=True)
    print(f"{options.trials} kills and stops: " + ", ".join(f"{count} {kind}" for kind, count in harm.items()))
    return 1 if sum(harm.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
