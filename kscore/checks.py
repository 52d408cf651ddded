"""Sentences for bad input: each names the argument, what is allowed, and the value that came."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Real

import numpy as np

REAL = (float, Real)  # a float is told at once; asking the abstract class alone takes many times as long

LARGEST = 1e100
"""Observations beyond this size are refused: the squares on the way to a score would come near overflow."""

LARGEST_VARIANCE = 10 * LARGEST**2  # what the square of a difference of two observations can reach


def number(name: str, value: float, *, low: float = -LARGEST, high: float = LARGEST,
           below: float | None = None) -> float:
    """Return `value` as a plain float if it lies in [low, high] and, where given, strictly below a bound."""
    if isinstance(value, bool) or not isinstance(value, REAL):
        raise ValueError(f"{name} must be a number, got {value!r}")
    if isinstance(value, np.generic):
        value = value.item()  # a 32-bit number cannot be compared with bounds that only 64 bits can hold
    if value != value or value in (math.inf, -math.inf):
        raise ValueError(f"{name} must be finite, got {value}")
    if below is not None and not low <= value < below:
        raise ValueError(f"{name} must be at least {low:g} and less than {below:g}, got {value}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {value}")
    return float(value)


def variance(name: str, value: float, *, positive: bool = False) -> float:
    """Return `value` as a plain float if it can be a variance: not negative or, where asked for, positive."""
    if positive and isinstance(value, REAL) and not isinstance(value, bool) and value <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return number(name, value, low=0, high=LARGEST_VARIANCE)


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
        array = np.asarray(values)
    except ValueError:  # a ragged list, for example
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be an array of numbers, got {values!r:.200}")
    array = array.astype(float)
    if array.ndim not in dims:
        expected = " or ".join({1: "1-D", 2: "2-D (time, streams)"}[d] for d in dims)
        raise ValueError(f"{name} must be {expected}, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one value, got shape {array.shape}")
    if not np.abs(array).max() <= LARGEST:  # so that NaN and infinity fail as well
        at = tuple(int(i) for i in np.argwhere(~(np.abs(array) <= LARGEST))[0])
        where = at[0] if len(at) == 1 else at
        raise ValueError(f"{name} must be finite and at most {LARGEST:g} in size, got {array[at]} at index {where}")
    return array
