"""The site of a folder: the book with the chapters executed there, or a few pages if only some of them were.

Both are one Sphinx project, that of docs/. It is built from a tree that is laid out in `site/source` and touched only
where something changed, so that Sphinx reads again what was run again, and no more.
"""

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kscore.chapters import notebooks, status
from kscore.project import ROOT

PACKAGES = ("sphinx", "myst_nb", "sphinx_book_theme", "sphinx_design", "sphinxcontrib.bibtex")
RUN = "run.md"
"""The page that lists what was run; the first page where the book is not there."""

FRONT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={first}">
<title>K-Score</title>
<a href="{first}">K-Score: how returns are normalized</a>
</html>
"""


SPHINX = """import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()  # it ends with who started it
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
"""


class NotBuilt(Exception):
    """The site could not be built; what was executed is there all the same."""


def need_packages() -> None:
    """Refuse to begin without what builds the site, rather than to end without a site."""
    for name in PACKAGES:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def build(out: Path) -> Path:
    """Build the site of what was executed into a folder, and return its first page, `index.html` of the folder."""
    try:
        with _alone(out / "site"):
            first = _lay_out(out, out / "site" / "source")
            _bind(out / "site", first)
            return _write(out / "index.html", FRONT.format(first=f"site/html/{first}.html"))
    except OSError as trouble:
        raise NotBuilt(": ".join(filter(None, (trouble.strerror, trouble.filename)))) from None


class _alone:
    """Keep others from building the same site at the same time; they wait."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = folder / "lock"

    def __enter__(self) -> None:
        self.file = self.lock.open("w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _bind(folder: Path, first: str) -> None:
    """Call Sphinx, once."""
    command = [
        sys.executable,
        "-c",
        SPHINX,
        "--quiet",
        "-c",
        ROOT / "docs",
        "-d",
        folder / "doctrees",
        "-D",
        f"root_doc={first}",
        folder / "source",
        folder / "html",
    ]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONSAFEPATH": "1"},
    )
    try:
        words = child.stderr.read()  # until it ends
        child.wait()
    finally:
        child.kill()
        child.wait()
        child.stdin.close(), child.stderr.close()
    if child.returncode:
        raise NotBuilt(_reason(words) or f"Sphinx ended with {child.returncode}")


def _reason(words: str) -> str:
    """Return what Sphinx complains of: the error itself, if it can be found among much advice, or the last line."""
    lines = [line.strip() for line in words.strip().splitlines()]
    errors = [found[1] for line in lines if (found := re.match(r"(?:[\w.]+\.)?(\w+(?:Error|Exception): .+)", line))]
    return (errors or lines or [""])[-1]


# The tree that Sphinx reads


def _lay_out(out: Path, source: Path) -> str:
    """Lay the tree out, with nothing in it that is not there any more, and return the name of its first page."""
    entries = {name: entry for name, entry in sorted(status.latest(out).items()) if entry.get("chapter")}
    chapters = {path.stem: path for path in notebooks.find()}
    executed = {name: out / f"{name}.ipynb" for name in entries if _is_readable(out / f"{name}.ipynb")}
    whole = set(chapters) <= set(executed) and _is_book(chapters)
    files = dict(_files(chapters, executed, whole))
    texts = {RUN: _listing(entries, executed)}
    if whole:
        index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
        texts["docs/index.md"] = index + _contents("This run", ["/run", *_others(executed)])
    else:
        texts[RUN] += _contents("Chapters", [f"/notebooks/{name}" for name in executed])
        texts[RUN] += _contents("Around them", ["/docs/references"])
    for name, text in texts.items():
        _write(source / name, text)
    for name, file in files.items():
        if name not in texts:
            _copy(file, source / name)
    for left in source.rglob("*"):
        if left.is_file() and str(left.relative_to(source)) not in {*files, *texts}:
            left.unlink()
    return "docs/index" if whole else RUN.removesuffix(".md")


def _is_readable(notebook: Path) -> bool:
    try:
        return bool(notebooks.cells(notebook))
    except (OSError, ValueError):
        return False


def _is_book(chapters: dict[str, Path]) -> bool:
    """Say whether these are the chapters of the book in docs/."""
    return {path.parent for path in chapters.values()} == {ROOT / "notebooks"}


def _files(chapters: dict[str, Path], executed: dict[str, Path], whole: bool) -> Iterator[tuple[str, Path]]:
    """Yield the files of the tree, by their places in it."""
    yield "docs/references.md", ROOT / "docs" / "references.md"
    for name, notebook in executed.items():
        yield f"notebooks/{name}.ipynb", notebook
        if name in chapters:
            yield f"notebooks/{name}.py", chapters[name].with_suffix(".py")
    for pattern in ("docs/*.md", "data/*.md", "notebooks/figures/*") if whole else ():
        for path in ROOT.glob(pattern):
            yield str(path.relative_to(ROOT)), path


def _others(executed: Iterable[str]) -> list[str]:
    """Return the pages of a book that are not its chapters, but runs with values of their own."""
    return [f"/notebooks/{name}" for name in executed if "__" in name]


def _copy(source: Path, target: Path) -> None:
    """Copy a file unless it is there already, so that only what has changed is newer."""
    content = source.read_bytes()
    if not target.exists() or target.read_bytes() != content:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _write(target: Path, text: str) -> Path:
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", errors="replace")
    return target


# The page that lists what was run


def _contents(caption: str, pages: list[str]) -> str:
    """Return a list of pages for the contents; those of one chapter are told apart by their names."""
    named = [f"{Path(page).name} <{page}>" if "__" in page else page for page in pages]
    return "\n".join(["", "```{toctree}", f":caption: {caption}", ":hidden:", "", *named, "```", ""])


def _listing(entries: dict[str, dict], executed: dict[str, Path]) -> str:
    """Return the page of what was run: how it ended, its parameters, and how long it took."""
    good = sum(entry["status"] == "ok" for entry in entries.values())
    seconds = sum(entry.get("seconds", 0) for entry in entries.values())
    lines = [
        "# What was run",
        "",
        f"{good} of {len(entries)} runs ended well; together they took {seconds:.0f} s.",
        "",
        "| run | ended | parameters of its own | seconds | when (UTC) |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(name, entry, name in executed) for name, entry in entries.items()]
    wrong = {name: entry["error"] for name, entry in entries.items() if entry.get("error")}
    lines += ["", *(f"- {_code(name)}: {_code(error)}" for name, error in wrong.items()), ""]
    return "\n".join(lines)


def _row(name: str, entry: dict, has_page: bool) -> str:
    given = ", ".join(_code(f"{key} = {value!r}") for key, value in entry.get("parameters", {}).items())
    cell = f" in cell {entry['cell']}" if entry.get("cell") and entry["status"] != "ok" else ""
    cells = [
        f"[{_code(name)}](/notebooks/{name}.ipynb)" if has_page else _code(name),
        f"{entry['status']}{cell}",
        given or "none",
        f"{entry['seconds']:.0f}" if "seconds" in entry else "",
        entry["time"].replace("T", " ")[:16],
    ]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _code(text: str, most: int = 200) -> str:
    """Return any text as code that ends where it should, on one line."""
    line, fence = " ".join(text.split())[:most], "`"
    while fence in line:
        fence += "`"
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"
