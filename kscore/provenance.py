"""Where numbers come from: the versions, the commit and the time behind a page."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kscore.project import ROOT

PACKAGE = Path(__file__).parent
PACKAGES = ("kscore", "numpy", "scipy", "torch", "gymnasium", "matplotlib", "seaborn")


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of the packages that shape a result; nothing is imported to find out."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


@cache
def machine() -> str:
    """Return the system, the processor and the number of cores; nothing that names the machine itself."""
    try:
        listed = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        names = [line.partition(":")[2].strip() for line in listed.splitlines() if line.startswith("model name")]
    except OSError:
        names = []
    processor = names[0] if names else platform.processor() or "unknown processor"
    return f"{platform.system()} {platform.machine()}, {processor}, {os.cpu_count()} cores"


def commit() -> str:
    """Return the checked-out commit, and whether code or data were edited since; "unknown" outside a git checkout."""
    if _git("rev-parse", "--show-toplevel") != str(ROOT):  # a repository around this folder says nothing about it
        return "unknown"
    edited = _git("status", "--porcelain", "--", "kscore", "data", "notebooks/*.py")
    return _git("rev-parse", "--short=10", "HEAD") + (", edited" if edited else "")


def _git(*arguments: str) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # a hook's name another
    try:
        asked = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], env=plain, capture_output=True, text=True, check=True
        )
        return asked.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def code(*rooms: str) -> str:
    """Return what the code of this package, or of some of its rooms, says, as a short hash."""
    said = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if not rooms or place.parts[0].removesuffix(".py") in rooms:
            said.update(str(place).encode() + b"\0" + path.read_bytes())
    return said.hexdigest()[:16]
