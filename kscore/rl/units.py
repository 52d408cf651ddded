"""The units that a critic learns in: those of a normalizer that follows its targets, or logarithms."""

import math

import numpy as np
import torch

from kscore import normalizers
from kscore.normalizers import Normalizer
from kscore.rl.environments import Diverged
from kscore.rl.networks import Layer


class Units:
    """The centre and scale that a critic learns in, value = centre + scale · output, taken from a normalizer.

    When they change, the last layer is rewritten so that every value stays what it was (van Hasselt and others 2016).
    """

    def __init__(self, normalizer: Normalizer) -> None:
        self.normalizer, self.centre, self.scale = normalizer, 0.0, 1.0

    def values(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return values for outputs of the critic."""
        return self.centre + self.scale * outputs

    def outputs(self, values: torch.Tensor | np.ndarray) -> torch.Tensor | np.ndarray:
        """Return the outputs that have these values."""
        return (values - self.centre) / self.scale

    def differences(self, raw: np.ndarray) -> np.ndarray:
        """Return differences of values as differences of outputs."""
        return raw / self.scale

    @torch.no_grad()
    def learn(self, targets: np.ndarray, last: Layer) -> None:
        """Take in new targets and rewrite the last layer for the new units."""
        self.normalizer.learn(targets)
        centre, scale = self.normalizer.recall(targets)
        if np.ndim(centre) or np.ndim(scale):
            raise ValueError("value_scale must have one centre and one scale for all steps, got one a step")
        if not (math.isfinite(centre) and 0 < scale < math.inf):
            raise Diverged("the critic's units are not finite, or its scale is not positive")
        ratio = self.scale / float(scale)
        last.weight.mul_(ratio)
        last.bias.mul_(ratio).add_((self.centre - float(centre)) / float(scale))
        self.centre, self.scale = float(centre), float(scale)


class Logarithms:
    """The logarithm, of numbers of both signs, that a critic learns in; there is nothing to follow or to rewrite.

    Its slope is different everywhere, so that differences of values have no units but their own.
    """

    def values(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return values for outputs of the critic."""
        return outputs.sign() * outputs.abs().expm1()

    def outputs(self, values: torch.Tensor | np.ndarray) -> torch.Tensor:
        """Return the outputs that have these values."""
        values = torch.as_tensor(values)
        return values.sign() * values.abs().log1p()

    def differences(self, raw: np.ndarray) -> np.ndarray:
        """Return differences of values as they are."""
        return raw

    def learn(self, targets: np.ndarray, last: Layer) -> None:
        """Stay the same whatever the targets are."""


def units_of(options: dict | None) -> Units | Logarithms | None:
    """Return the units that a critic learns in; None: those of its targets."""
    if options is None:
        return None
    return Logarithms() if options["name"] == "symlog" else Units(normalizers.make(**options))
