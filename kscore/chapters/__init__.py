"""The notebooks: their parameters, how they are run, what becomes of them, and the exercises in them.

A chapter begins with `chapter = chapters.begin("05_actor_critic_cartpole")` and ends with `chapter.footer()`.
"""

import sys
from typing import TYPE_CHECKING

from kscore import checks
from kscore.chapters.notebooks import find
from kscore.project import NOTEBOOKS

if TYPE_CHECKING:
    from kscore.chapters.footer import Chapter

__all__ = ["begin", "find", "printed"]

sys.modules.setdefault("rfc3987_syntax", None)
"""Whatever reads notebooks imports jsonschema, and jsonschema this, for addresses that no notebook has: it builds a
grammar, and takes longer than all the rest. It is left out here, before any module of this room can import it."""


def begin(name: str) -> "Chapter":
    """Begin a chapter, by its name: set the look of its figures and start its clock."""
    from kscore.chapters.footer import Chapter  # here, because the command line draws nothing

    return Chapter(name)


def printed(name: str, block: str) -> str:
    """Return, as Markdown, what a published chapter printed in its cell tagged `block:BLOCK`."""
    import nbformat  # here, for the same reason

    from kscore.chapters import pages

    chapter = checks.choice("chapter", name, [path.stem for path in find()])
    blocks = pages.blocks(nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4).cells)
    if not blocks:
        raise ValueError(f"chapter must be one that has printed a block and was published, got {name!r}")
    return blocks[checks.choice(f"block of chapter {name}", block, blocks)]
