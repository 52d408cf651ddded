"""The first and the last line of a chapter: the look of its figures, and where its numbers come from."""

import re
import sys
import time

from IPython.display import Markdown

from kscore import figures, provenance
from kscore.chapters import notebooks, parameters


class Chapter:
    """A chapter that is being run, in a kernel or as a script."""

    def __init__(self, name: str) -> None:
        (self.path,) = notebooks.find([name])
        self.started = time.perf_counter()
        figures.use_style()

    def footer(self) -> Markdown:
        """Return the closing lines: every parameter with its value, versions, commit, and how long it took."""
        values = vars(sys.modules["__main__"])
        given = ", ".join(_code(f"{name} = {values[name]!r}") for name in parameters.of(self.path))
        used = ", ".join(f"{name} {number}" for name, number in provenance.versions().items())
        return Markdown(
            f"Run with {given}, in {time.perf_counter() - self.started:.0f} seconds, "
            f"from commit `{provenance.commit()}`, on {used}."
        )


def _code(text: str) -> str:
    """Return a text as code in Markdown, fenced so that nothing in it can end the code and begin something else."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"
