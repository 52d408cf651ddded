"""What the chapters share, room by room; each room uses only those before it.

`filters`, `normalizers`: the idea, on numpy alone. `rl`: one training run. `study`: many of them. `analysis`: what they
say. `figures`: pictures of it. `chapters`: the notebooks that tell it. Importing this package imports none of them.
"""

from importlib.metadata import version

__version__ = version("kscore")
