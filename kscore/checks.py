"""Sentences for bad input: each names the argument, what is allowed, and the value that came."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Real

import numpy as np

LARGEST = 1e100
"""Numbers beyond this size are refused: their squares would overflow on the way to a score."""


def number(name: str, value: float, *, low: float = -LARGEST, high: float = LARGEST, above: float | None = None,
           below: float | None = None) -> float:
    """Return `value` as a float if it lies in [low, high] and, where given, strictly above and below a bound."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    if above is not None and value <= above:
        raise ValueError(f"{name} must be {'positive' if above == 0 else f'greater than {above:g}'}, got {value}")
    if below is not None and value >= below:
        raise ValueError(f"{name} must be less than {below:g}, got {value}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {value}")
    return float(value)


def choice(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of the allowed words; otherwise name the nearest one."""
    allowed = list(allowed)
    if value in allowed:
        return value
    nearest = get_close_matches(str(value), allowed, n=1)
    hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}{hint}")


def series(name: str, values: object, *, dims: tuple[int, ...] = (1,)) -> np.ndarray:
    """Return `values` as a non-empty array of finite floats with an allowed number of dimensions."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {values!r:.200}") from None
    if array.ndim not in dims:
        expected = " or ".join({1: "1-D", 2: "2-D (time, streams)"}[d] for d in dims)
        raise ValueError(f"{name} must be {expected}, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one value, got shape {array.shape}")
    wrong = ~(np.abs(array) <= LARGEST)  # true for NaN and infinity as well
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = at[0] if len(at) == 1 else at
        raise ValueError(f"{name} must be finite and at most {LARGEST:g} in size, got {array[at]} at index {where}")
    return array
