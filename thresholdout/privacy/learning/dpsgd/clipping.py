"""Sums of clipped gradients, whose rounding errors stay within the clipping norm; see PROOFS.md, C1 to C5."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import number
from thresholdout.privacy.learning.dpsgd.gradient_networks import Layer, Network, Pass

__all__ = ["BATCH_LIMIT", "ClipNorm", "ClippedSums", "check_clip_norm", "clip_factors", "joint_norm"]

Floats = NDArray[np.float64]
ClipNorm = float | tuple[float, ...]

# Gradients are clipped to this part of the norm; the rest is for rounding (PROOFS.md, C3).
INNER = 1.0 - 2.0**-20
# Records with squared norms above this in any layer count as zero; below, nothing overflows. The floor makes up for
# squares that underflow (C2).
SQUARE_LIMIT, SQUARE_FLOOR = 1e150, 1e-150
# Rows at once, and the multiple that blocks are filled up to, so that a row's result does not depend on its place (C4).
BLOCK, PADDING = 1024, 32
BATCH_LIMIT = 2**18  # sums of larger batches could round by more than `INNER` leaves (C3)


def check_clip_norm(value: object, layers: int = 1) -> ClipNorm:
    """Return a clipping norm, or one for each layer, in [1e-50, 1e50], where the proof of the rounding holds (C3)."""
    if not isinstance(value, (tuple, list, np.ndarray)):
        return _norm(value)
    if len(value) != layers:
        expected = f"one norm for all parameters, or one for each of {layers} layers"
        raise InputError("clip_norm", f"{len(value)} norms", expected)
    return tuple(_norm(each) for each in value)


def _norm(value: object) -> float:
    found = number(value, "clip_norm", "a number in [1e-50, 1e50]")
    if not 1e-50 <= found <= 1e50:
        raise InputError("clip_norm", repr(found), "a number in [1e-50, 1e50]")
    return found


def joint_norm(clip_norm: ClipNorm) -> float:
    """Return the bound on a record's gradient in all parameters together, which is the unit of the noise."""
    return math.hypot(*clip_norm) if isinstance(clip_norm, tuple) else clip_norm


def clip_factors(inputs: list[Floats], deltas: list[Floats], intercept: bool, clip_norm: ClipNorm) -> list[Floats]:
    """Return the factor of each record's gradient in each layer, in [0, 1], that bounds its norm by `clip_norm`.

    With one bound, the factors of all layers are the same. A record whose gradient is not finite, or has a part with a
    norm above 1e75, gets 0 in all layers: a decision about this record alone, which nothing else shows.

    The squared norm of the gradient is the sum over layers of ``(|input|^2 + 1) |delta|^2``, without the 1 where there
    is no intercept. It is rounded conservatively, and the gradient is scaled to ``C (1 - 2^-20)``, so that the rounding
    of a batch's sum stays within C [PROOFS.md, C1 to C3]. With a bound for each layer, each part is scaled by itself
    [PROOFS.md, C5].
    """
    squares: list[Floats] = []
    usable: Any = True
    for values, delta in zip(inputs, deltas, strict=True):
        value_square = np.einsum("ij,ij->i", values, values)
        delta_square = np.einsum("ij,ij->i", delta, delta)
        usable = usable & (value_square <= SQUARE_LIMIT) & (delta_square <= SQUARE_LIMIT)
        # The intercept's input is 1; elsewhere the floor makes up for squares that underflow (C2).
        value_square += 1.0 if intercept else SQUARE_FLOOR
        delta_square += SQUARE_FLOOR
        squares.append(value_square * delta_square)
    if isinstance(clip_norm, tuple):
        return [_factor(square, norm, usable) for square, norm in zip(squares, clip_norm, strict=True)]
    together = squares[0]
    for square in squares[1:]:
        together = together + square
    return [_factor(together, clip_norm, usable)] * len(squares)


def _factor(square: Floats, clip_norm: float, usable: Any) -> Floats:
    inner = clip_norm * INNER
    return np.where(usable, inner / np.maximum(np.sqrt(square), inner), 0.0)


class ClippedSums:
    """The sum of clipped gradients of a batch of records, block by block in preallocated arrays.

    `rows` is the approximate size of a batch; larger batches are cut into blocks.
    """

    def __init__(self, network: Network, X: Floats, targets: NDArray[Any], clip_norm: ClipNorm, rows: int) -> None:
        self._network = network
        self._X, self._targets = X, targets
        self._clip_norm = clip_norm
        self._size = min(BLOCK, -(-rows // PADDING) * PADDING)
        self._pass = Pass(network, self._size)
        self._labels = np.zeros(self._size, dtype=targets.dtype)
        self._total = np.zeros(network.n_parameters)
        self._part = np.zeros(network.n_parameters)
        self._total_layers, self._part_layers = network.layers(self._total), network.layers(self._part)

    def __call__(self, parameters: Floats, batch: NDArray[np.int64]) -> Floats:
        """Return the sum over records, which may repeat, shape (n_parameters,); the next call overwrites it."""
        layers = self._network.layers(parameters)
        if not len(batch):
            self._total[:] = 0.0
        with np.errstate(all="ignore"):
            for start in range(0, len(batch), self._size):
                block = batch[start : start + self._size]
                if start:
                    self._add(layers, block, self._part_layers)
                    self._total += self._part
                else:
                    self._add(layers, block, self._total_layers)
        return self._total

    def _add(self, layers: list[Layer], block: NDArray[np.int64], out: list[Layer]) -> None:
        m = len(block)
        padded = min(-(-m // PADDING) * PADDING, self._size)
        X, labels = self._pass.inputs[0][:padded], self._labels[:padded]
        np.take(self._X, block, axis=0, out=X[:m], mode="clip")
        np.take(self._targets, block, out=labels[:m], mode="clip")
        # Padding rows: a row's result must not depend on how many others there are (C4).
        X[m:] = 0.0
        labels[m:] = 0
        self._pass.backward(layers, labels)
        inputs = [values[:padded] for values in self._pass.inputs]
        deltas = [delta[:padded] for delta in self._pass.deltas]
        factors = clip_factors(inputs, deltas, self._network.intercept, self._clip_norm)
        # A factor of 0 does not remove an infinite entry (0 * inf is NaN), so its rows are set to 0 (C2).
        dropped = factors[0] == 0.0
        dropped[m:] = True
        if dropped.any():
            for rows in (*inputs[1:], *deltas):
                rows[dropped] = 0.0
            X[dropped] = 0.0
        for values, delta, layer, factor in zip(inputs, deltas, out, factors, strict=True):
            delta *= factor[:, None]
            np.matmul(values.T, delta, out=layer.weights)
            if layer.intercepts is not None:
                np.sum(delta, axis=0, out=layer.intercepts)
