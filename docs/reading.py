"""What the book changes in a chapter while it reads it; the files in notebooks/ stay as they are.

In a chapter everything is plain: equations carry a `\\tag`, prose refers to them as "(P3a)" or "(2.1)", works are
named by their titles, solutions are tagged. Here references become links, titles citations, solutions dropdowns.
"""

import re
from functools import cache
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "notebooks"
FACTS = "00_start_here.ipynb"
TABLE = f"/notebooks/{FACTS}#notation"  # of the labels P1, D1, R1, ...
FOLDED = {"solution": "the solution", "check": "the check"}  # by their tags; any other folded cell is "the code"
OTHER_PARAMETERS = """> **Run with parameters of its own.** The numbers, tables and figures of this page are those of
> this run. The sentences around them were written for the published parameters, and may not fit."""
TAG = re.compile(r"\\tag\{([^}]+)\}")
CODE_OR_MATHEMATICS = r"```.*?``` | `[^`]*` | \$\$.*?\$\$ | \$[^$]*\$"  # which stay as they are
REFERENCE = re.compile(rf"""{CODE_OR_MATHEMATICS}
    | \((?P<label>[PDR]\d[a-z]?|[1-9]\d?\.\d\d?)\)(?!\])       # a label in parentheses, not a link yet
""", re.DOTALL | re.VERBOSE)
LINK = re.compile(rf"""{CODE_OR_MATHEMATICS}
    | (?<!!)\[(?P<words>[^\]]*)\]\((?P<file>[^)\#:\s]+)[^)]*\)      # a link to a file, not a picture
""", re.DOTALL | re.VERBOSE)


def look_round(app, config) -> None:
    """Note which pages and equations there are: when that changes, links do, and every page is read again."""
    site = Path(app.srcdir)
    pages = [path.name for pattern in ("docs/*.md", "data/*.md", "notebooks/*.ipynb") for path in site.glob(pattern)]
    config.contents = [sorted(pages), sorted(tags(site / "notebooks"))]
    if site != ROOT:
        config.html_extra_path = []  # what a run leaves has a front page of its own


def prepare(app, docname: str, content: list[str]) -> None:
    """Replace the text of a page that Sphinx has just read."""
    folder, _, name = docname.partition("/")
    place = Path(app.srcdir) / "notebooks"
    content[0] = chapter(content[0], name, place) if folder == "notebooks" else linked(content[0], place=place)


def chapter(text: str, name: str, place: Path) -> str:
    """Return a notebook as the book shows it; its folder has the chapters that it may lead to."""
    notebook = nbformat.reads(text, as_version=4)
    cells = notebook.cells
    title = next((cell for cell in cells if cell.cell_type == "markdown" and cell.source.startswith("# ")), cells[0])
    cells.remove(title)
    cells.insert(0, title)  # above what papermill writes on top of a notebook that failed
    title.source += f"\n\nDownload: {{download}}`notebook <{name}.ipynb>`"
    if (place / f"{name}.py").exists():
        title.source += f" · {{download}}`script <{name}.py>`"
    if any("injected-parameters" in cell.metadata.get("tags", []) for cell in cells):
        title.source += f"\n\n{OTHER_PARAMETERS}"
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = cited(linked(anchored(reachable(cell.source, place), name), name, place), place)
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                output.data["text/markdown"] = linked(reachable(output.data["text/markdown"], place), name, place)
            if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell.metadata.setdefault("mystnb", {})["image"] = {"alt": alt}
        held = cell.metadata.get("tags", [])
        if "hide-input" in held:
            what = next((words for tag, words in FOLDED.items() if tag in held), "the code")
            cell.metadata.setdefault("mystnb", {}).update(code_prompt_show=f"Show {what}",
                                                          code_prompt_hide=f"Hide {what}")
    return nbformat.writes(notebook)


def reachable(text: str, place: Path) -> str:
    """Make plain words of links to files that are not there: a site of a few runs has only their chapters."""
    if place == PUBLISHED:
        return text  # where all must be there, so that Sphinx has to find the mistake

    def kept(found: re.Match) -> str:
        return found[0] if not found["file"] or (place / found["file"]).exists() else found["words"]
    return LINK.sub(kept, text)


def equations(text: str) -> dict[str, str]:
    """Return the tagged equations of a text, by tag."""
    blocks = re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)
    return {found[1]: block.strip() for block in blocks if (found := TAG.search(block))}


def references(text: str) -> list[str]:
    """Return the labels that a text refers to in parentheses."""
    return [found["label"] for found in REFERENCE.finditer(text) if found["label"]]


def anchored(text: str, name: str) -> str:
    """Put a target in front of every tagged equation."""
    def target(found: re.Match) -> str:
        tag = TAG.search(found[0])
        return f"({_anchor(tag[1], name)})=\n{found[0]}" if tag else found[0]
    return re.sub(r"^\$\$.*?\$\$", target, text, flags=re.DOTALL | re.MULTILINE)


def linked(text: str, name: str = "", place: Path = PUBLISHED) -> str:
    """Make a link of every label: to its equation on this page, or another, else to the table of facts if it is there.

    Of a chapter that was run several times, none of the pages is the one to lead to from elsewhere.
    """
    def link(found: re.Match) -> str:
        label = found["label"]
        pages = {path.stem for path in tags(place).get(label, [])}
        if pages and (page := name if name in pages else next(filter(_is_chapter, sorted(pages)), None)):
            return f"[{found[0]}](#{_anchor(label, page)})"
        return f"[{found[0]}]({TABLE})" if label and label[0] in "PDR" and (place / FACTS).exists() else found[0]
    return REFERENCE.sub(link, text)


def cited(text: str, place: Path = PUBLISHED) -> str:
    """Add a citation after each title in the references of a chapter."""
    def cite(title: re.Match) -> str:
        try:
            return f"{title[0]} {{cite}}`{key(title[1])}`"
        except ValueError:
            if place == PUBLISHED:
                raise
            return title[0]  # of a chapter that somebody is working on

    prose, mark, works = text.partition("**References.**")
    return prose + mark + re.sub(r"\*([^*]+)\*", cite, works)


def key(title: str) -> str:
    """Return the BibTeX key of the work whose title begins like this."""
    for key, full in _titles().items():
        if full.startswith(_plain(title)):
            return key
    raise ValueError(f"docs/references.bib must have the works that chapters cite, got no title like {title!r}")


@cache
def tags(place: Path = PUBLISHED) -> dict[str, list[Path]]:
    """Return the chapters of every tagged equation, of a folder."""
    found = {}
    for path in sorted(place.glob("[0-9][0-9]_*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for tag in equations(cell.source) if cell.cell_type == "markdown" else ():
                found.setdefault(tag, []).append(path)
    return found


def _is_chapter(page: str) -> bool:
    """Say whether a page is a chapter's own, and not that of a run with a value of its own in its name."""
    return "__" not in page


def _anchor(label: str, page: str) -> str:
    anchor = f"eq-{label.lower().replace('.', '-')}"
    return anchor if _is_chapter(page) else f"{page.lower()}-{anchor}"


@cache
def _titles() -> dict[str, str]:
    bib = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    found = re.findall(r"^@\w+\{(\w+),.*?^  title = \{(.*?)\},$", bib, re.DOTALL | re.MULTILINE)
    return {key: _plain(title) for key, title in found}


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower())
