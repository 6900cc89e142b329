"""Moments of a network with uncertain weights: forward through rectified layers, and their gradients by hand.

A network is a list of layers; each has a mean and a variance for every weight, arrays of shape ``(out, in + 1)``, the
last column for a bias. Weights are independent Gaussians, hidden units are rectified linear, the output is linear,
and every layer is divided by the root of the number of its inputs, bias included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from thresholdout.errors import InputError

__all__ = [
    "ForwardPass",
    "Gradients",
    "evidence_gradients",
    "forward_moments",
    "layer_shapes",
]

Floats = NDArray[np.float64]
Layers = Sequence[Floats]

_ROOT_TWO_PI = np.sqrt(2 * np.pi)
_LEAST_VARIANCE = 1e-200  # keeps a ratio to a standard deviation finite when a variance underflows
_FAR = -30.0  # below, sums of the order of the standardised mean cancel, and a series is exact to double precision


@dataclass(frozen=True)
class _Rectified:
    """Values of a rectified layer that the gradients need, each of shape (..., units)."""

    mean: Floats
    variance: Floats
    upper: Floats  # Phi of the standardised mean
    lower: Floats  # 1 - Phi, without cancellation
    slope: Floats  # phi over the standard deviation


@dataclass(frozen=True)
class ForwardPass:
    """Moments of a network's output, and of everything below it.

    `variance` is without the noise of observations. `inputs` are means and variances of each layer's inputs, shape
    (..., in + 1), bias unit included.
    """

    mean: Floats
    variance: Floats
    inputs: list[tuple[Floats, Floats]]
    hidden: list[_Rectified]


@dataclass(frozen=True)
class Gradients:
    """Log evidence of records, and its gradients by the means and variances of all weights.

    `log_evidence` is ``log N(y; mean, variance + noise)``, in nats.
    """

    log_evidence: Floats
    means: list[Floats]
    variances: list[Floats]
    forward: ForwardPass


def layer_shapes(n_features: int, hidden_layer_sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the shape of each layer's weights: outputs, and inputs with the bias."""
    widths = [n_features, *hidden_layer_sizes, 1]
    return [(out, width + 1) for width, out in pairwise(widths)]


@np.errstate(over="ignore")
def _rectify(mean: Floats, variance: Floats) -> _Rectified:
    """Return mean and variance of ``max(a, 0)`` for a normal a, without cancellation for large ``alpha = mean / sd``.

    The variance is ``variance [Phi + alpha^2 Phi (1 - Phi) + alpha phi (1 - 2 Phi) - phi^2]``. Below ``alpha = -30``
    that cancels, too, and the series ``phi / Phi = -alpha - 1/alpha + 2/alpha^3`` takes its place.
    """
    variance = np.maximum(variance, _LEAST_VARIANCE)
    deviation = np.sqrt(variance)
    # The limits keep the ratio and its square finite.
    alpha = np.clip(mean / deviation, -1e300, 1e300)
    square = np.minimum(alpha * alpha, 1e300)
    density = np.exp(-0.5 * square) / _ROOT_TWO_PI
    upper, lower = ndtr(alpha), ndtr(-alpha)
    unit_mean = alpha * upper + density
    unit_variance = upper * (1 + square * lower) + alpha * density * (lower - upper) - density * density
    far = alpha < _FAR
    if far.any():
        distant = alpha[far]
        hazard = -distant - 1 / distant + 2 / distant**3
        unit_mean[far] = density[far] * (2 / distant**3 - 1 / distant) / hazard
        unit_variance[far] = 2 * upper[far] / distant**2 - unit_mean[far] ** 2
    return _Rectified(
        deviation * unit_mean, variance * np.maximum(unit_variance, 0.0), upper, lower, density / deviation
    )


def _with_bias(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    shape = (*mean.shape[:-1], mean.shape[-1] + 1)
    means, variances = np.ones(shape), np.zeros(shape)
    means[..., :-1], variances[..., :-1] = mean, variance
    return means, variances


@np.errstate(over="ignore", invalid="ignore")
def forward_moments(means: Layers, variances: Layers, x: Floats, x_variance: Floats | None = None) -> ForwardPass:
    """Return mean and variance of the network's output.

    With inputs of means ``u`` and variances ``q``, ``n`` of them [PBP, section 3.1]: mean ``M u / sqrt(n)``, variance
    ``[(M*M) q + V (u*u) + V q] / n``; then the moments of `_rectify`, except at the output. Units are treated as
    independent, which is the approximation of the method.
    """
    x = np.asarray(x, dtype=float)
    if x.shape[-1:] != (means[0].shape[1] - 1,):
        raise InputError("x", f"an array of shape {x.shape}", f"an array of rows of {means[0].shape[1] - 1} features")
    mean, variance = x, np.zeros_like(x) if x_variance is None else np.asarray(x_variance, dtype=float)
    inputs, hidden = [], []
    last = len(means) - 1
    for depth, (M, V) in enumerate(zip(means, variances, strict=True)):
        u, q = _with_bias(mean, variance)
        inputs.append((u, q))
        n = u.shape[-1]
        mean = u @ M.T / np.sqrt(n)
        variance = (q @ (M * M + V).T + (u * u) @ V.T) / n
        if depth < last:
            rectified = _rectify(mean, variance)
            hidden.append(rectified)
            mean, variance = rectified.mean, rectified.variance
    return ForwardPass(mean[..., 0], variance[..., 0], inputs, hidden)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def evidence_gradients(means: Layers, variances: Layers, x: Floats, y: Floats, noise_variance: float) -> Gradients:
    """Return the log evidence of records and its gradients with respect to all weights' means and variances."""
    forward = forward_moments(means, variances, x)
    spread = forward.variance + noise_variance
    residual = np.asarray(y, dtype=float) - forward.mean
    log_evidence = -0.5 * (np.log(2 * np.pi * spread) + residual * residual / spread)
    up_mean = (residual / spread)[..., None]
    up_variance = (0.5 * ((residual / spread) ** 2 - 1 / spread))[..., None]
    by_mean, by_variance = [], []
    for depth in range(len(means) - 1, -1, -1):
        M, V = means[depth], variances[depth]
        u, q = forward.inputs[depth]
        n = u.shape[-1]
        squares = up_variance[..., None]
        by_mean.append((up_mean / np.sqrt(n))[..., None] * u[..., None, :] + 2 / n * M * (squares * q[..., None, :]))
        by_variance.append(squares * ((u * u + q) / n)[..., None, :])
        if depth:
            down_mean = (up_mean @ M / np.sqrt(n) + 2 / n * u * (up_variance @ V))[..., :-1]
            down_variance = (up_variance @ (M * M + V) / n)[..., :-1]
            # Derivatives of a rectified unit's mean and variance by the mean and variance of its input.
            unit = forward.hidden[depth - 1]
            up_mean = down_mean * unit.upper + 2 * down_variance * unit.mean * unit.lower
            up_variance = 0.5 * down_mean * unit.slope + down_variance * (unit.upper - unit.mean * unit.slope)
    return Gradients(log_evidence, by_mean[::-1], by_variance[::-1], forward)
