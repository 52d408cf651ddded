"""What the chapters share, room by room; each room uses only those before it.

`filters`, `normalizers`: the idea, on numpy alone. `wrappers`: the same in other people's loops. `rl`: one training
run. `study`: many of them. `analysis`: what they say. `figures`: pictures of it. `chapters`: the notebooks that tell
it. `labs`: what one page alone needs. Importing this package imports none of them.
"""


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version  # here, because looking it up takes a good part of the import's time

        return version("kscore")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
