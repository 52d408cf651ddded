"""Where numbers come from: the versions, the commit and the time behind a page."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kscore.project import ROOT

PACKAGES = ("kscore", "numpy", "scipy", "torch", "gymnasium", "matplotlib", "seaborn")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that shape a result; nothing is imported to find out."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
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
    """Return the checked-out commit, or "unknown" outside a git checkout."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
