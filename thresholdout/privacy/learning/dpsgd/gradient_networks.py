"""Linear models and small multilayer networks, differentiated record by record without outer products.

The gradient of a record's loss in the weights of a dense layer is the outer product of the layer's input and of the
derivative in its output, here called its *delta*. Inputs and deltas are kept; outer products are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Layer", "Network", "Pass"]

Floats = NDArray[np.float64]
Activation = Literal["relu", "tanh"]
Output = Literal["softmax", "identity"]


class Layer(NamedTuple):
    """Views into the parameters of one dense layer: weights of shape (inputs, outputs), and intercepts or None."""

    weights: Floats
    intercepts: Floats | None


class Network:
    """Dense layers, with one activation between them.

    All parameters stand in one array of length `n_parameters`, layer by layer, weights before intercepts. "softmax" has
    the logarithmic loss, "identity" half the squared error. There must be no batch normalisation: each record's
    gradient depends on that record only.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        activation: Activation = "relu",
        output: Output = "identity",
        intercept: bool = True,
    ) -> None:
        self.sizes = tuple(int(size) for size in sizes)
        self.activation = activation
        self.output = output
        self.intercept = intercept
        self.n_parameters = sum((a + intercept) * b for a, b in pairwise(self.sizes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.sizes, self.activation, self.output, self.intercept))

    def layers(self, parameters: Floats) -> list[Layer]:
        """Return views of the layers' weights and intercepts in an array of shape (n_parameters,)."""
        found, start = [], 0
        for inputs, outputs in pairwise(self.sizes):
            stop = start + inputs * outputs
            weights = parameters[start:stop].reshape(inputs, outputs)
            start = stop + outputs * self.intercept
            found.append(Layer(weights, parameters[stop:start] if self.intercept else None))
        return found

    def start(self, rng: np.random.Generator) -> Floats:
        """Return starting values that depend on no record: 0 for a linear model, normal weights otherwise."""
        parameters = np.zeros(self.n_parameters)
        layers = self.layers(parameters)
        for depth, layer in enumerate(layers if len(layers) > 1 else []):
            # The variance 2 / inputs keeps the size of rectified units from layer to layer, 1 / inputs that of others.
            gain = 2.0 if self.activation == "relu" and depth < len(layers) - 1 else 1.0
            layer.weights[:] = rng.normal(0.0, np.sqrt(gain / layer.weights.shape[0]), layer.weights.shape)
        return parameters

    def penalised(self) -> Floats:
        """Return 1 for each weight and 0 for each intercept, shape (n_parameters,)."""
        mask = np.zeros(self.n_parameters)
        for layer in self.layers(mask):
            layer.weights[:] = 1.0
        return mask

    def scores(self, parameters: Floats, X: Floats) -> Floats:
        """Return the last layer's outputs, shape (n, outputs), for rows of shape (n, inputs)."""
        layers = self.layers(parameters)
        for depth, layer in enumerate(layers):
            X = X @ layer.weights if layer.intercepts is None else X @ layer.weights + layer.intercepts
            if depth < len(layers) - 1:
                X = np.maximum(X, 0.0) if self.activation == "relu" else np.tanh(X)
        return X


class Pass:
    """One pass forward and back over a block of records, in preallocated arrays.

    The caller fills ``inputs[0]``. After `backward`, `inputs` and `deltas` hold those of each layer for the first rows.
    """

    def __init__(self, network: Network, rows: int) -> None:
        self.network = network
        self.inputs = [np.zeros((rows, width)) for width in network.sizes[:-1]]
        self.deltas = [np.zeros((rows, width)) for width in network.sizes[1:]]
        self._rows = np.arange(rows)

    def backward(self, layers: list[Layer], targets: NDArray[Any]) -> None:
        """Compute the deltas of ``len(targets)`` rows."""
        m = len(targets)
        relu = self.network.activation == "relu"
        for depth, layer in enumerate(layers):
            out = self.deltas[depth][:m] if depth == len(layers) - 1 else self.inputs[depth + 1][:m]
            np.matmul(self.inputs[depth][:m], layer.weights, out=out)
            if layer.intercepts is not None:
                out += layer.intercepts
            if depth < len(layers) - 1:
                np.maximum(out, 0.0, out=out) if relu else np.tanh(out, out=out)
        self._loss_derivative(self.deltas[-1][:m], targets)
        for depth in range(len(layers) - 1, 0, -1):
            values, below = self.inputs[depth][:m], self.deltas[depth - 1][:m]
            np.matmul(self.deltas[depth][:m], layers[depth].weights.T, out=below)
            # `values` are outputs of the activation; the derivative of tanh is 1 - tanh^2.
            below *= values > 0.0 if relu else 1.0 - values * values

    def _loss_derivative(self, scores: Floats, targets: NDArray[Any]) -> None:
        if self.network.output == "identity":
            scores[:, 0] -= targets
            return
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        scores[self._rows[: len(targets)], targets] -= 1.0
