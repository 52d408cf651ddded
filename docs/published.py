"""What a lecture takes from the published chapters: figures, equations, printed sentences, tables and code.

Slides name the chapter and the heading; what they show is read when they are built, so that no number is typed twice.
Whatever is not found, or found more than once, stops the build with a sentence.
"""

import re
import textwrap

import jinja2
import nbformat
import pandas as pd
import reading
from bs4 import BeautifulSoup

NUMBERS = pd.read_csv(reading.ROOT / "data" / "paper" / "published.csv")
SLIDES = jinja2.Environment(variable_start_string="[[", variable_end_string="]]", block_start_string="[%",
                            block_end_string="%]", trim_blocks=True, undefined=jinja2.StrictUndefined)
CLAIMS = pd.read_csv(reading.ROOT / "data" / "paper" / "claims.csv")


def render(app, docname: str, content: list[str]) -> None:
    """Fill in the [[ calls ]] of the slides that Sphinx has just read."""
    calls = (figure, equation, says, summary, table, code, title, episodes)
    template = SLIDES.from_string(content[0])
    content[0] = template.render({call.__name__: call for call in calls}, claims=CLAIMS)


def figure(chapter: str, heading: str, n: int = 1) -> str:
    """Return the n-th figure under a heading, with its alt text."""
    chosen = _nth(_outputs(chapter, "image/png", heading), n, f"figure under {heading!r} of chapter {chapter}")
    alt = chosen.metadata["image/png"]["alt"].replace("[", "(").replace("]", ")")
    return f"![{alt}](data:image/png;base64,{''.join(chosen.data['image/png'].split())})"


def equation(tag: str, size: str = "") -> str:
    """Return the equation with this tag, in whatever chapter it stands; `size` may be "small"."""
    if tag not in reading.tags():
        raise ValueError(f"tag must be that of an equation in a chapter, got {tag!r}")
    path, = reading.tags()[tag]
    block = f"$$\n{reading.equations(_prose(path))[tag]}\n$$"
    return f":::{{container}} {size}\n{block}\n:::" if size else block


def says(chapter: str, *phrases: str) -> str:
    """Return the sentences that a chapter printed when it ran and that contain these phrases, one each."""
    printed = [sentence for output in _outputs(chapter, "text/markdown") for sentence in _sentences(output)]
    found = [one_of([sentence for sentence in printed if phrase in sentence],
                    f"printed sentence of chapter {chapter} with {phrase!r}") for phrase in phrases]
    return " ".join(found).replace(" %", "\N{NO-BREAK SPACE}%")


def summary(chapter: str, most: int = 3) -> str:
    """Return the first points of a chapter's printed summary, as a list."""
    printed = "\n".join(output.data["text/markdown"] for output in _outputs(chapter, "text/markdown", "Summary"))
    return "\n".join([line for line in printed.splitlines() if line.startswith("- ")][:most])


def table(chapter: str, heading: str, columns: list[str], rows: list[str] | None = None, n: int = 1) -> str:
    """Return columns, and rows by how they begin, of the n-th table under a heading; "old = new" renames a column."""
    found = _nth(_outputs(chapter, "text/html", heading), n, f"table under {heading!r} of chapter {chapter}")
    html = BeautifulSoup(found.data["text/html"], "html.parser")
    first, *body = [[cell.get_text(" ", strip=True) for cell in row(["th", "td"])] for row in html("tr")]
    old, new = zip(*[(column.split(" = ") * 2)[:2] for column in columns], strict=True)
    places = [first.index(column) for column in old]
    if rows:
        body = [one_of([line for line in body if line[0].startswith(row)], f"row {row!r} of a table") for row in rows]
    lines = [new, ["---"] * len(new), *([line[place] for place in places] for line in body if len(line) == len(first))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(chapter: str, start: str, lines: int | None = None) -> str:
    """Return so many lines of code from the one that begins like this, or the whole of what is indented under it."""
    found = [cell.source.splitlines() for cell in _cells(chapter) if cell.cell_type == "code"]
    first, *rest = one_of([source[i:] for source in found for i, line in enumerate(source) if line.startswith(start)],
                          f"line of code in chapter {chapter} that begins with {start!r}")
    end = next((i for i, line in enumerate(rest) if line and not line.startswith(" ")), len(rest))
    chosen = [re.sub(r"\s{2,}#", "  #", line) for line in [first, *rest[:end]][:lines]]
    return f"```python\n{textwrap.dedent(chr(10).join(chosen)).rstrip()}\n```"


def title(chapter: str) -> str:
    """Return a chapter's title, without its number."""
    return _cells(chapter)[0].source.splitlines()[0].removeprefix("# ")[3:]


def episodes(experiment: str, normalizer: str) -> int:
    """Return a published number of episodes."""
    rows = NUMBERS[(NUMBERS.id == experiment) & (NUMBERS.normalizer == normalizer)]
    return one_of(rows.episodes.tolist(), f"published number of {normalizer} in {experiment}")


def one_of(found: list, what: str) -> object:
    """Return the only one."""
    if len(found) != 1:
        raise ValueError(f"slides need exactly one {what}, got {len(found)}")
    return found[0]


def _nth(found: list, n: int, what: str) -> object:
    if len(found) < n:
        raise ValueError(f"slides need {n} times a {what}, got {len(found)}")
    return found[n - 1]


def _paths() -> list:
    return sorted((reading.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def _path(chapter: str):
    return one_of([path for path in _paths() if path.name.startswith(chapter)], f"chapter {chapter}")


def _cells(chapter: str) -> list:
    return nbformat.read(_path(chapter), as_version=4).cells


def _prose(path) -> str:
    return "\n\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")


def _outputs(chapter: str, kind: str, heading: str | None = None) -> list:
    """Return the outputs of this kind under a heading, or in a whole chapter."""
    here, seen, outputs = None, set(), []
    for cell in _cells(chapter):
        if cell.cell_type == "markdown" and (found := re.findall(r"^## (.+)$", cell.source, re.M)):
            here = found[-1]
            seen.add(here)
        if heading in (None, here):
            outputs += [output for output in cell.get("outputs", []) if kind in output.get("data", {})]
    if heading and heading not in seen:
        raise ValueError(f"heading must be one of chapter {chapter}, got {heading!r}")
    return outputs


def _sentences(output) -> list[str]:
    points = re.split(r"\n\s*\n|\n?^- ", output.data["text/markdown"], flags=re.M)
    return [sentence for point in points for sentence in re.split(r"(?<=[.!?]) (?=[A-Z$*(])", _plain(point))]


def _plain(point: str) -> str:
    """Return a paragraph on one line, without the italics of a caption."""
    line = " ".join(point.split())
    return line[1:-1] if re.fullmatch(r"\*[^*].*[^*]\*", line) else line
