"""What the chapters share: the filter, the normalizers, the pictures and the batch runner.

Importing this package imports neither torch nor gymnasium, so that the theory chapters start at once.
"""

from importlib.metadata import version
from pathlib import Path

__version__ = version("kscore")

ROOT = Path(__file__).resolve().parent.parent
"""The project's root: notebooks and commands find `data/` and `notebooks/` from here, wherever they are started."""

DATA = ROOT / "data"
NOTEBOOKS = ROOT / "notebooks"
