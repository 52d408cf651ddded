"""The notebooks: their parameters, how they are run, what becomes of them, and the exercises in them.

A chapter begins with `chapter = chapters.begin("05_actor_critic_cartpole")` and ends with `chapter.footer()`.
"""

from typing import TYPE_CHECKING

from kscore.chapters.notebooks import find

if TYPE_CHECKING:
    from kscore.chapters.footer import Chapter

__all__ = ["begin", "find"]


def begin(name: str) -> "Chapter":
    """Begin a chapter, by its name: set the look of its figures and start its clock."""
    from kscore.chapters.footer import Chapter  # here, because the command line draws nothing

    return Chapter(name)
