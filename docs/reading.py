"""What the book changes in a chapter while it reads it; the files in notebooks/ stay as they are.

In a chapter everything is plain: equations carry a `\\tag`, prose refers to them as "(P3a)" or "(2.1)", works are
named by their titles, solutions are tagged. Here references become links, titles citations, solutions dropdowns.
"""

import re
from functools import cache
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[1]
FACTS = "/notebooks/00_start_here.ipynb#notation"  # the table of the labels P1, D1, R1, ...
FOLDED = {"solution": "the solution", "check": "the check"}  # by their tags; any other folded cell is "the code"
TAG = re.compile(r"\\tag\{([^}]+)\}")
REFERENCE = re.compile(r"""
    ```.*?``` | `[^`]*` | \$\$.*?\$\$ | \$[^$]*\$       # code and mathematics stay as they are
    | \((?P<label>[PDR]\d[a-z]?|[1-9]\d?\.\d\d?)\)(?!\])       # a label in parentheses, not a link yet
""", re.DOTALL | re.VERBOSE)


def prepare(app, docname: str, content: list[str]) -> None:
    """Replace the text of a page that Sphinx has just read."""
    folder, _, name = docname.partition("/")
    content[0] = chapter(content[0], name) if folder == "notebooks" else linked(content[0])


def chapter(text: str, name: str) -> str:
    """Return a notebook as the book shows it."""
    notebook = nbformat.reads(text, as_version=4)
    downloads = f"{{download}}`notebook <{name}.ipynb>` · {{download}}`script <{name}.py>`"
    notebook.cells[0].source += f"\n\nDownload: {downloads}"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = cited(linked(anchored(cell.source)))
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                output.data["text/markdown"] = linked(output.data["text/markdown"])
            if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell.metadata.setdefault("mystnb", {})["image"] = {"alt": alt}
        tags = cell.metadata.get("tags", [])
        if "hide-input" in tags:
            what = next((name for tag, name in FOLDED.items() if tag in tags), "the code")
            cell.metadata.setdefault("mystnb", {}).update(code_prompt_show=f"Show {what}", code_prompt_hide=f"Hide {what}")
    return nbformat.writes(notebook)


def equations(text: str) -> dict[str, str]:
    """Return the tagged equations of a text, by tag."""
    blocks = re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)
    return {found[1]: block.strip() for block in blocks if (found := TAG.search(block))}


def references(text: str) -> list[str]:
    """Return the labels that a text refers to in parentheses."""
    return [found["label"] for found in REFERENCE.finditer(text) if found["label"]]


def anchored(text: str) -> str:
    """Put a target in front of every tagged equation."""
    def target(found: re.Match) -> str:
        tag = TAG.search(found[0])
        return f"({_anchor(tag[1])})=\n{found[0]}" if tag else found[0]
    return re.sub(r"^\$\$.*?\$\$", target, text, flags=re.DOTALL | re.MULTILINE)


def linked(text: str) -> str:
    """Make a link of every label: to its equation if there is one, else to the table of facts."""
    def link(found: re.Match) -> str:
        label = found["label"]
        if label in tags():
            return f"[{found[0]}](#{_anchor(label)})"
        return f"[{found[0]}]({FACTS})" if label and label[0] in "PDR" else found[0]
    return REFERENCE.sub(link, text)


def cited(text: str) -> str:
    """Add a citation after each title in the references of a chapter."""
    prose, mark, works = text.partition("**References.**")
    return prose + mark + re.sub(r"\*([^*]+)\*", lambda title: f"{title[0]} {{cite}}`{key(title[1])}`", works)


def key(title: str) -> str:
    """Return the BibTeX key of the work whose title begins like this."""
    for key, full in _titles().items():
        if full.startswith(_plain(title)):
            return key
    raise ValueError(f"docs/references.bib must have the works that chapters cite, got no title like {title!r}")


@cache
def tags() -> dict[str, Path]:
    """Return the chapter of every tagged equation."""
    return {tag: path for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
            for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"
            for tag in equations(cell.source)}


def _anchor(label: str) -> str:
    return f"eq-{label.lower().replace('.', '-')}"


@cache
def _titles() -> dict[str, str]:
    bib = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    found = re.findall(r"^@\w+\{(\w+),.*?^  title = \{(.*?)\},$", bib, re.DOTALL | re.MULTILINE)
    return {key: _plain(title) for key, title in found}


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower())
