"""The wrappers in fresh environments at both ends of the versions that they allow, and beside RLlib's Gymnasium.

    python benchmarks/version_bounds.py                    # all of them
    python benchmarks/version_bounds.py lowest rllib       # some
    python benchmarks/version_bounds.py pinned --keep /tmp/bounds

Each environment is made in a folder of its own, which is removed afterwards; where a version of torch has no build for
the processor alone, that takes some 7 GB and several minutes. The environment is then asked to run every example of the
wrappers' docstrings and of `docs/wrappers.md`. The table that is printed stands in that page.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINS = ["-c", str(ROOT / "constraints.txt")]
LOWEST = ["gymnasium==1.1.0", "numpy==2.1.0", "stable-baselines3==2.6.0", "torch==2.6.0"]

ENDS = {  # what is installed, with the extra of ours that goes with it
    "lowest": ("sb3", [*LOWEST]),
    "pinned": ("sb3", [*PINS]),
    "newest": ("sb3", ["--upgrade-strategy", "eager"]),
    "rllib": ("gymnasium", ["ray[rllib]"]),
}

CHECK = r"""
import doctest, importlib, re, sys
from importlib.metadata import PackageNotFoundError, version
page, with_sb3 = sys.argv[1], sys.argv[2] == "sb3"
names = ["memory", "states", "returns", "scaling", "gymnasium"] + with_sb3 * ["sb3_buffers", "sb3"]
done = 0
for name in names:
    told = doctest.testmod(importlib.import_module(f"kscore.wrappers.{name}"))
    assert told.attempted and not told.failed, name
    done += told.attempted
for block in re.findall(r"^```python\n(.*?)^```$", open(page, encoding="utf-8").read(), re.M | re.S):
    if with_sb3 or "stable_baselines3" not in block:
        exec(compile(block, "docs/wrappers.md", "exec"), {})
        done += 1
def of(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"
packages = ["gymnasium", "numpy", "stable-baselines3", "torch", "ray"]
print("|", " | ".join([sys.version.split()[0], *map(of, packages), f"{done} examples"]), "|")
"""


def try_out(name: str, folder: Path) -> str:
    """Return the row of an environment: its versions, and how many examples ran; or what went wrong."""
    extra, wanted = ENDS[name]
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", f"{ROOT}[{extra}]", *wanted]
    for command in (install, [python, "-W", "ignore", "-c", CHECK, str(ROOT / "docs/wrappers.md"), extra]):
        told = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if told.returncode:
            return f"| {name} failed: {(told.stderr.strip().splitlines() or ['no word'])[-1]} |"
    return f"| {name} {told.stdout.strip().splitlines()[-1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ends", nargs="*", default=list(ENDS), choices=list(ENDS), metavar="end", help=", ".join(ENDS))
    parser.add_argument("--keep", type=Path, help="a folder for the environments, which stay there")
    options, rows = parser.parse_args(), []
    print("| end | Python | gymnasium | numpy | stable-baselines3 | torch | ray | ran |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.ends:
        with tempfile.TemporaryDirectory(prefix="bounds-") as folder:
            rows.append(try_out(name, Path(options.keep or folder) / name))
        print(rows[-1], flush=True)
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
