"""Normalizers: one episode's returns in, scores of the same length out.

Every normalizer here holds each return against a *centre* and divides by a *scale*, score = (return - centre) / scale.
They differ only in where the two come from, which is all that a subclass says:

    >>> normalizer = make("kscore", variant="adaptive", mode="stream", Q=0.01, R=0.1)
    >>> scores = normalizer([3.0, 2.0, 1.0])

What a normalizer learns stays in it from episode to episode, until it is saved (`state_dict`), restored
(`load_state_dict`) or held still (`frozen = True`: it goes on scoring and stops learning).

A class of your own, a dataclass that extends `Normalizer`, is named by where it stands: `make("my_module:MyScore")`.
Labels such as P4 or R1 name facts of the paper and of its release; chapter 00 lists them.
"""

from dataclasses import MISSING, fields

import numpy as np

from kscore import checks
from kscore.normalizers.base import Normalizer, Scaling, discounted_returns
from kscore.normalizers.episodes import EpisodeScore
from kscore.normalizers.parts import Parts
from kscore.normalizers.relatives import Percentile, PopArt, RewardScale, Symlog
from kscore.normalizers.steps import Ema, KScore, NoNormalizer, Running, ZScore

KINDS = (NoNormalizer, ZScore, Running, Ema, KScore, EpisodeScore, PopArt, Percentile, RewardScale, Symlog, Parts)
__all__ = [
    "NORMALIZERS",
    "Ema",
    "EpisodeScore",
    "KScore",
    "NoNormalizer",
    "Normalizer",
    "Parts",
    "Percentile",
    "PopArt",
    "RewardScale",
    "Running",
    "Scaling",
    "Symlog",
    "ZScore",
    "discounted_returns",
    "make",
    "option_names",
    "spelled_out",
]

NORMALIZERS: dict[str, type[Normalizer]] = {kind.name: kind for kind in KINDS}


def make(name: str, **options: object) -> Normalizer:
    """Make a normalizer by its name, a key of NORMALIZERS or "package.module:Class"."""
    kind, allowed = _kind(name), option_names(name)
    for option in options:
        if not allowed:
            raise ValueError(f"normalizer {name!r} takes no options, got {option!r}")
        checks.choice(f"option of normalizer {name!r}", option, allowed)
    for f in fields(kind):
        if f.init and f.name not in options and f.default is MISSING and f.default_factory is MISSING:
            raise ValueError(f"normalizer {name!r} must be given the option {f.name!r}, got {options}")
    return kind(**options)


def option_names(name: str) -> list[str]:
    """Return the names of the options of a normalizer."""
    return [f.name for f in fields(_kind(name)) if f.init]


def _kind(name: str) -> type[Normalizer]:
    if isinstance(name, str) and ":" in name:
        kind = checks.outside("normalizer", name, Normalizer)
        if "__dataclass_fields__" not in vars(kind):  # every subclass inherits those of its base
            raise ValueError(f"normalizer must name a dataclass, so that its options are known, got {name!r}")
        return kind
    return NORMALIZERS[checks.choice("normalizer", name, NORMALIZERS)]


def spelled_out(name: str, **options: object) -> dict[str, object]:
    """Return the name of a normalizer with every option that it has, defaults included, each as it was checked."""
    made = make(name, **options)
    return {"name": name} | {option: _plain(getattr(made, option)) for option in option_names(name)}


def _plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
