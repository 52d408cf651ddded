"""What wrappers have learned, as files and dicts: written in one piece, and compared before anything is taken over."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kscore import paths
from kscore.normalizers import NORMALIZERS, Normalizer

VERSION = 1  # of the states of wrappers; another one is refused


def described(normalizer: Normalizer) -> dict[str, Any]:
    """Return the name of a normalizer with every option that it has, as plain values: what it was made with.

    >>> from kscore.normalizers import make
    >>> described(make("ema", decay=0.5))
    {'name': 'ema', 'eps': 1e-08, 'decay': 0.5}
    """
    kind = type(normalizer)
    name = next((name for name, own in NORMALIZERS.items() if own is kind), f"{kind.__module__}:{kind.__qualname__}")
    return {"name": name} | normalizer.options


def checked_state(state: object, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state if it has the keys, the version and the settings of one's own; else say what differs."""
    if not isinstance(state, Mapping) or set(state) != set(own):
        raise ValueError(f"state must have the keys {sorted(own)}, got {state!r:.200}")
    _compare("state['version']", state["version"], own["version"])
    _compare("state['settings']", state["settings"], own["settings"])
    return dict(state)


def _compare(name: str, value: object, own: object) -> None:
    if isinstance(own, Mapping) and isinstance(value, Mapping) and set(value) == set(own):
        for key in own:
            _compare(f"{name}[{key!r}]", value[key], own[key])
    elif type(value) is not type(own) or value != own:
        raise ValueError(f"{name} must be {own!r:.200}, as here, got {value!r:.200}")


def write_state(path: str | os.PathLike[str], state: Mapping[str, object]) -> None:
    """Write a state to a file of JSON, in one piece: a reader finds the old file or the new one."""
    with paths.whole(Path(path)) as draft:
        draft.write_text(json.dumps(state, allow_nan=False), encoding="utf-8")


def read_state(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """Return what is in a file of JSON; nothing in it is run or imported."""
    try:
        state: Mapping[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, or no text
        raise ValueError(f"path must name a file that was saved by a wrapper, got {str(path)!r}: {error}") from None
    return state
