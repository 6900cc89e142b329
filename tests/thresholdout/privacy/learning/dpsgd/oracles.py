"""Slow twins: explicit gradients of each record, in exact or plain arithmetic, that share no code with the learner."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.learning.dpsgd.gradient_networks import Network

Floats = NDArray[np.float64]


def loss(network: Network, parameters: Floats, x: Floats, target: Any) -> float:
    """Return one record's loss, layer by layer."""
    values, start = x, 0
    widths = network.sizes
    for depth, (a, b) in enumerate(pairwise(widths)):
        weights = parameters[start : start + a * b].reshape(a, b)
        start += a * b
        values = values @ weights
        if network.intercept:
            values = values + parameters[start : start + b]
            start += b
        if depth < len(widths) - 2:
            values = np.maximum(values, 0) if network.activation == "relu" else np.tanh(values)
    if network.output == "identity":
        return 0.5 * float(values[0] - target) ** 2
    return float(np.log(np.exp(values - values.max()).sum()) + values.max() - values[target])


def numeric_gradient(network: Network, parameters: Floats, x: Floats, target: Any, step: float = 1e-6) -> Floats:
    """Return central differences, shape (n_parameters,)."""
    found = np.zeros_like(parameters)
    for i in range(len(parameters)):
        up, down = parameters.copy(), parameters.copy()
        up[i] += step
        down[i] -= step
        found[i] = (loss(network, up, x, target) - loss(network, down, x, target)) / (2 * step)
    return found


def outer_products(inputs: list[Floats], deltas: list[Floats], intercept: bool) -> Floats:
    """Return all records' gradients, shape (m, n_parameters), by outer products."""
    parts = []
    for values, delta in zip(inputs, deltas, strict=True):
        parts.append(np.einsum("ij,ik->ijk", values, delta).reshape(len(values), -1))
        if intercept:
            parts.append(delta)
    return np.concatenate(parts, axis=1)


def exact_square(vector: Floats) -> Fraction:
    """Return the squared norm of an array of finite floats, exactly."""
    return sum((Fraction(float(value)) ** 2 for value in vector.ravel()), Fraction(0))
