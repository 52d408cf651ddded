"""The actor and critic: multilayer perceptrons in torch for learning, and in numpy on the same memory for acting.

A hidden layer is linear, then dropout, then activation. A dropout mask is an array that the caller passes in, 0 where a
unit is dropped and 1 / (1 - p) where it is kept; so the masks an episode was played with can be used again to learn
from it. All parameters of a run lie in one flat vector, and so does their gradient: one call updates or checks them.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from kscore import checks
from kscore.rl.config import ACTIVATIONS

PRELU_START = 0.25  # torch's own starting slope of a PReLU

Masks = list[np.ndarray]
"""Dropout masks for a batch, one array (batch, width) a hidden layer."""


class Memory:
    """One vector for all parameters of a run and one for their gradient, given out stretch by stretch.

    The backward pass then fills the whole gradient in place, and the optimizer sees a single tensor.
    """

    def __init__(self, size: int, dtype: torch.dtype = torch.float32) -> None:
        self.parameters, self.gradient = torch.zeros(size, dtype=dtype), torch.zeros(size, dtype=dtype)
        self._used = 0

    def take(self, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the next stretch of the parameters and that of their gradient."""
        stretch = slice(self._used, self._used + math.prod(shape))
        self._used = stretch.stop
        return self.parameters[stretch].view(shape), self.gradient[stretch].view(shape)

    def parameter(self, *shape: int) -> torch.Tensor:
        """Return the next stretch as a parameter that gradients reach."""
        return _parameter(*self.take(*shape))


class Layer(NamedTuple):
    """The parameters of one layer, and its memory as an array for acting.

    A hidden layer's weight is (inputs, outputs), the last one's (outputs, inputs): with the long side of a narrow
    matrix along the memory, its products are several times faster.
    """

    weight: torch.Tensor
    bias: torch.Tensor  # (outputs,)
    slope: torch.Tensor | None  # (1,), what a PReLU learns; None with ReLU and after the last layer
    matrix: np.ndarray  # hidden: (inputs + 1, outputs), the bias as last row; last: the weight alone


class Network:
    """A multilayer perceptron with `sizes` (inputs, hidden ..., outputs): Xavier-normal weights, zero biases."""

    def __init__(self, sizes: Sequence[int], activation: str, rng: np.random.Generator, memory: Memory) -> None:
        *hidden, last = zip(sizes[:-1], sizes[1:], strict=True)
        self.hidden = [_hidden_layer(*shape, activation, rng, memory) for shape in hidden]
        self.last = _last_layer(*last, rng, memory)

    @staticmethod
    def size(sizes: Sequence[int], activation: str) -> int:
        """Return how many parameters such a network has."""
        checks.choice("activation", activation, ACTIVATIONS)
        slopes = len(sizes) - 2 if activation == "prelu" else 0
        return slopes + sum((n + 1) * m for n, m in zip(sizes[:-1], sizes[1:], strict=True))

    def __call__(self, x: torch.Tensor, masks: Masks | None = None) -> torch.Tensor:
        """Return the outputs (batch, outputs) for inputs (batch, inputs); without masks nothing is dropped."""
        for i, layer in enumerate(self.hidden):
            x = torch.addmm(layer.bias, x, layer.weight)
            if masks is not None:
                x.mul_(torch.from_numpy(masks[i]))
            x = torch.relu_(x) if layer.slope is None else _prelu(x, layer.slope)
        return F.linear(x, self.last.weight, self.last.bias)


def _prelu(z: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    """Return relu(z) + slope (z - relu(z)), the PReLU; so written, the backward pass is several times faster."""
    return torch.lerp(torch.relu(z), z, slope)


def _hidden_layer(inputs: int, outputs: int, activation: str, rng: np.random.Generator, memory: Memory) -> Layer:
    matrix, gradient = memory.take(inputs + 1, outputs)
    matrix[:-1] = _xavier(inputs, outputs, rng)
    slope = None
    if activation == "prelu":
        slope, slope_gradient = memory.take(1)
        slope = _parameter(slope.fill_(PRELU_START), slope_gradient)
    return Layer(_parameter(matrix[:-1], gradient[:-1]), _parameter(matrix[-1], gradient[-1]), slope, matrix.numpy())


def _last_layer(inputs: int, outputs: int, rng: np.random.Generator, memory: Memory) -> Layer:
    weight, bias = memory.take(outputs, inputs), memory.take(outputs)
    weight[0].copy_(_xavier(inputs, outputs, rng).T)
    return Layer(_parameter(*weight), _parameter(*bias), None, weight[0].numpy())


def _xavier(inputs: int, outputs: int, rng: np.random.Generator) -> torch.Tensor:
    return torch.from_numpy(rng.normal(0, math.sqrt(2 / (inputs + outputs)), (inputs, outputs)))


def _parameter(values: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    parameter = values.detach().requires_grad_()
    parameter.grad = gradient
    return parameter


class SingleRelu(NamedTuple):
    """The arrays of a forward pass through one hidden layer of ReLU; the pass fills `hidden` and `outputs`."""

    inputs: np.ndarray  # the observation, and a 1
    matrix: np.ndarray  # (inputs, hidden)
    hidden: np.ndarray
    last: np.ndarray  # (outputs, hidden)
    bias: np.ndarray  # (outputs,)
    outputs: np.ndarray


class Dropout:
    """A source of dropout masks from a random stream of its own."""

    def __init__(self, probability: float, widths: Sequence[int], rng: np.random.Generator) -> None:
        checks.number("dropout", probability, low=0, below=1)
        self.widths = tuple(widths)
        bits = 8 if (probability * 2**8).is_integer() else 16
        self._word = np.dtype(f"uint{bits}")
        self._dropped = min(round(probability * 2**bits), 2**bits - 1)  # however close to 1, not every unit
        self._kept = np.float32(2**bits / (2**bits - self._dropped))
        self._source = rng.bit_generator

    def draw(self, batch: int) -> Masks | None:
        """Draw masks for a batch, or None if nothing is ever dropped.

        A unit is dropped where a small random integer falls below p times its range: 8 bits where that is exact, as
        for p = 1/2, else 16, which meet p to 1 in 131,072. Several of them share one word of the random source, which
        is many times faster than a uniform number for each.
        """
        if self._dropped == 0 or not self.widths:
            return None
        return [self._draw(batch, width) for width in self.widths]

    def _draw(self, batch: int, width: int) -> np.ndarray:
        words = self._source.random_raw(batch * width * self._word.itemsize // 8 + 1).view(self._word)
        mask = (words[: batch * width] >= self._dropped).astype(np.float32)
        mask *= self._kept
        return mask.reshape(batch, width)


class Forward:
    """A network's forward pass for one observation, in numpy on the memory of its torch parameters.

    Torch takes longer to start a call than these layers take to run. The matrices here are views: whatever the
    optimizer writes is seen at once, nothing is copied. A hidden layer's inputs end in a 1, so that its weight and bias
    are one product.
    """

    def __init__(self, network: Network) -> None:
        widths = [len(layer.weight) for layer in network.hidden] + [network.last.weight.shape[1]]
        inputs = [np.ones(width + 1, np.float32) for width in widths]  # the 1 stays
        self._observation = inputs[0][:-1]
        self._hidden = [
            (
                i,
                inputs[i],
                layer.matrix,
                inputs[i + 1][:-1],
                np.zeros(layer.matrix.shape[1], np.float32),
                None if layer.slope is None else layer.slope.detach().numpy().reshape(()),
            )
            for i, layer in enumerate(network.hidden)
        ]
        self._features, self._last = inputs[-1][:-1], network.last.matrix
        self._bias = network.last.bias.detach().numpy()
        self._outputs = np.empty(len(self._last), np.float32)
        self.single_relu = self._single_relu()

    def _single_relu(self) -> SingleRelu | None:
        """Return the arrays for those who do such a pass by themselves; None if the network has another shape."""
        if len(self._hidden) != 1:
            return None
        _, inputs, matrix, hidden, _, slope = self._hidden[0]
        return SingleRelu(inputs, matrix, hidden, self._last, self._bias, self._outputs) if slope is None else None

    def __call__(self, observation: np.ndarray, masks: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """Return the outputs (outputs,) for an observation; the array is overwritten by the next call."""
        self._observation[...] = observation
        for i, inputs, matrix, outputs, spare, slope in self._hidden:
            inputs.dot(matrix, outputs)
            if masks is not None:
                np.multiply(outputs, masks[i], outputs)
            if slope is None:
                np.maximum(outputs, spare, out=outputs)  # spare stays 0
            else:  # the larger of z and slope z, or the smaller if the slope has grown above 1
                np.multiply(outputs, slope, spare)
                (np.minimum if slope.item() > 1 else np.maximum)(outputs, spare, out=outputs)
        outputs = self._last.dot(self._features, self._outputs)
        return np.add(outputs, self._bias, outputs)
