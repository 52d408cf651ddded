"""Sentences for bad input: each names the argument, what is allowed, and the value that came."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from numbers import Real
from typing import Any

import numpy as np

REAL = (float, Real)  # a float is told at once; asking the abstract class alone takes many times as long

LARGEST = 1e100
"""Observations beyond this size are refused: the squares on the way to a score would come near overflow."""

LARGEST_VARIANCE = 10 * LARGEST**2  # what the square of a difference of two observations can reach


def number(
    name: str, value: object, *, low: float = -LARGEST, high: float = LARGEST, below: float | None = None
) -> float:
    """Return `value` as a plain float if it lies in [low, high] and, where given, strictly below a bound."""
    if isinstance(value, bool) or not isinstance(value, REAL):
        raise ValueError(f"{name} must be a number, got {value!r}")
    plain: Any = value  # for type checkers: it is a number by now
    if isinstance(value, np.generic):
        plain = value.item()  # a 32-bit number cannot be compared with bounds that only 64 bits can hold
    if plain != plain or plain in (math.inf, -math.inf):
        raise ValueError(f"{name} must be finite, got {plain}")
    if below is not None and not low <= plain < below:
        raise ValueError(f"{name} must be at least {low:g} and less than {below:g}, got {plain}")
    if not low <= plain <= high:
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {plain}")
    return float(plain)


def variance(name: str, value: object, *, positive: bool = False) -> float:
    """Return `value` as a plain float if it can be a variance: not negative or, where asked for, positive."""
    if positive and isinstance(value, REAL) and not isinstance(value, bool) and value <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return number(name, value, low=0, high=LARGEST_VARIANCE)


def followed(name: str, value: object) -> float:
    """Return `value` as a plain float if observations can have led to it: rounding takes it beyond the largest."""
    return number(name, value, low=-10 * LARGEST, high=10 * LARGEST)


def positive(name: str, value: object) -> float:
    """Return `value` as a plain float if it is above zero."""
    plain = number(name, value)
    if plain <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return plain


def whole(name: str, value: object, *, low: int = 1, high: float = math.inf) -> int:
    """Return `value` as a plain int if it is a whole number in [low, high]."""
    if isinstance(value, np.integer):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        upper = "" if high == math.inf else f" and at most {high}"
        raise ValueError(f"{name} must be a whole number of at least {low}{upper}, got {value!r}")
    return value


LARGEST_SEED = 2**63 - 1  # what a table's column of whole numbers can hold


def seed(name: str, value: object) -> int:
    """Return `value` as a plain int if it can be the seed of a run."""
    return whole(name, value, low=0, high=LARGEST_SEED)


def count(name: str, value: object) -> int:
    """Return `value` as a plain int if something can have been counted so often."""
    return whole(name, value, low=0, high=LARGEST_SEED)


def flag(name: str, value: bool) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


def choice(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return `value` if it is one of the allowed words; otherwise name the nearest one."""
    allowed = list(allowed)
    if value in allowed:
        return value
    nearest = get_close_matches(str(value), allowed, n=1)
    hint = f" (did you mean {nearest[0]!r}?)" if nearest else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}{hint}")


def series(name: str, values: object, *, dims: tuple[int, ...] = (1,), largest: float = LARGEST) -> np.ndarray:
    """Return `values` as a non-empty array of finite floats with an allowed number of dimensions."""
    several = values if isinstance(values, (list, tuple)) else ()
    if any(isinstance(one, np.ma.MaskedArray) for one in (values, *several)):  # whose mask would be lost in an array
        raise ValueError(f"{name} must be an array without a mask, got {values!r:.200}")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError):  # a ragged list, for one, or a tensor that carries gradients
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be an array of numbers, got {values!r:.200}")
    array = array.astype(float)
    if array.ndim not in dims:
        expected = " or ".join({1: "1-D", 2: "2-D (time, streams)"}[d] for d in dims)
        raise ValueError(f"{name} must be {expected}, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one value, got shape {array.shape}")
    if not np.abs(array).max() <= largest:  # so that NaN and infinity fail as well
        at = tuple(int(i) for i in np.argwhere(~(np.abs(array) <= largest))[0])
        where = at[0] if len(at) == 1 else at
        raise ValueError(f"{name} must be finite and at most {largest:g} in size, got {array[at]} at index {where}")
    return array


def array(name: str, values: Any, *, shape: tuple[int, ...], largest: float = LARGEST) -> np.ndarray:
    """Return `values` as an array of finite floats of exactly this shape; a scalar has the shape ()."""
    try:
        flat = np.ravel(values)
    except (ValueError, TypeError, RuntimeError):  # as above
        flat = values
    flat = series(name, flat, largest=largest)
    if np.shape(values) != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {np.shape(values)}")
    return flat.reshape(shape)


def outside(name: str, value: str, base: type) -> type:
    """Return the class that "package.module:Class" names, if it is of the kind that is asked for."""
    module, _, attribute = value.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:  # TypeError: a name that begins with a dot
        raise ValueError(
            f"{name} must name a class that can be imported as package.module:Class, got {value!r}: {error}"
        ) from None
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(f"{name} must name a subclass of {base.__module__}.{base.__qualname__}, got {value!r}")
    return found


@contextmanager
def extra(room: str, name: str) -> Iterator[None]:
    """Say which extra brings a library that is missing inside, with the line that installs it from a checkout."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "kscore").split(".")[0] == "kscore":
            raise
        raise ModuleNotFoundError(
            f"{room} needs {error.name}, which is not installed; in a checkout of this collection: "
            f"pip install -c constraints.txt -e '.[{name}]'",
            name=error.name,
        ) from error
