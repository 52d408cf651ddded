"""The checkout that the chapters, the archive and the command line live in; an installed wheel has none."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The project's root: chapters and commands find everything from here, wherever they are started."""

DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "build"
ARCHIVE = DATA / "runs"
"""The recorded study."""
OUTCOMES = DATA / "outcomes"
"""What is kept of recorded runs whose curves are not."""


def is_checkout() -> bool:
    """Say whether this package lies in a checkout of the project."""
    return (ROOT / "pyproject.toml").is_file() and NOTEBOOKS.is_dir()


def need_checkout(what: str) -> None:
    """Refuse what only a checkout has."""
    if not is_checkout():
        raise ValueError(
            f"{what} needs a checkout of the project, with its notebooks and its data; "
            f"kscore is installed without them in {ROOT}"
        )


def located(path: str | Path) -> Path:
    """Return a path; a relative one is meant from the project's root, or outside of a checkout from here."""
    try:
        return (ROOT if is_checkout() else Path.cwd()) / Path(path).expanduser()
    except RuntimeError:  # there is no such user
        raise ValueError(f"~ must be the home of a user of this machine, got {path}") from None


def shown(path: Path) -> str:
    """Return a path as a reader of the project would write it: from the root if it lies below it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
