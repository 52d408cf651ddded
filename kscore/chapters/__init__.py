"""The notebooks: their parameters, how they are run, what becomes of them, and the exercises in them.

A chapter begins with `chapter = chapters.begin("05_actor_critic_cartpole")` and ends with `chapter.footer()`.
"""

import sys
from typing import TYPE_CHECKING

from kscore.chapters.notebooks import find

if TYPE_CHECKING:
    from kscore.chapters.footer import Chapter

__all__ = ["begin", "find"]

sys.modules.setdefault("rfc3987_syntax", None)
"""Whatever reads notebooks imports jsonschema, and jsonschema this, for addresses that no notebook has: it builds a
grammar, and takes longer than all the rest. It is left out here, before any module of this room can import it."""


def begin(name: str) -> "Chapter":
    """Begin a chapter, by its name: set the look of its figures and start its clock."""
    from kscore.chapters.footer import Chapter  # here, because the command line draws nothing

    return Chapter(name)
