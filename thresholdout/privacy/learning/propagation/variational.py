"""The variational objective of a network with one hidden layer, and clipped sums of its gradients over records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Gaussians", "clipped_gradient_sum", "expected_square", "kl_gradient", "kl_to_prior", "record_objective"]

Floats = NDArray[np.float64]

INNER = 1.0 - 2.0**-20
"""Gradients are clipped to this part of the norm; the rest is for rounding (THEORY.md, T6)."""

_CHUNK = 2**21  # numbers of one block's gradients in memory
_BLOCK, _PADDING = 1024, 32  # blocks of rows are filled up, so that a row's result does not depend on the others
_WIDEST_LOG = 30.0


class Gaussians(NamedTuple):
    """Means and log variances of all weights, or a gradient by them.

    Attributes
    ----------
    mean_0, log_0 : ndarray, shape (hidden, features + 1)
        Of the hidden layer, the last column for the bias.
    mean_1, log_1 : ndarray, shape (hidden + 1,)
        Of the output, the last one for the bias.
    """

    mean_0: Floats
    log_0: Floats
    mean_1: Floats
    log_1: Floats

    @classmethod
    def start(cls, features: int, hidden: int, variance: float, rng: np.random.Generator) -> Self:
        """Return random means and one variance."""
        shape = (hidden, features + 1)
        return cls(
            rng.standard_normal(shape) / math.sqrt(features + 1),
            np.full(shape, math.log(variance)),
            rng.standard_normal(hidden + 1) / math.sqrt(hidden + 1),
            np.full(hidden + 1, math.log(variance)),
        )

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(part.size for part in self)

    def moved(self, gradient: Gaussians, rate: float) -> Gaussians:
        """Return the parameters after a step against a gradient; variances stay within e^-30 and e^30."""
        parts = [part - rate * slope for part, slope in zip(self, gradient, strict=True)]
        return Gaussians(
            parts[0],
            np.clip(parts[1], -_WIDEST_LOG, _WIDEST_LOG),
            parts[2],
            np.clip(parts[3], -_WIDEST_LOG, _WIDEST_LOG),
        )


def kl_to_prior(mean: Floats, variance: Floats, precision: float) -> float:
    """Return the divergence of independent Gaussians from N(0, 1/precision), in nats.

    Examples
    --------
    >>> round(kl_to_prior(np.array([0.2, -0.5]), np.array([0.3, 0.05]), 10.0), 10)
    1.9972674459
    """
    scaled = precision * variance
    return 0.5 * float((scaled + precision * mean * mean - 1 - np.log(scaled)).sum())


def expected_square(y: float, z: Floats, mean: Floats, variance: Floats) -> float:
    """Return the mean of ``(y - w.z)^2`` over independent Gaussian weights w.

    Examples
    --------
    >>> round(expected_square(0.6, np.array([1.0, 0.4]), np.array([0.5, -0.2]), np.array([0.1, 0.3])), 12)
    0.1804
    """
    output = float(mean @ z)
    return y * y - 2 * y * output + float(z * z @ variance) + output * output


@dataclass(frozen=True)
class _Hidden:
    """What records make of sampled hidden weights."""

    units: Floats  # (samples, records, hidden + 1), the last unit is the bias
    gap: Floats  # (samples, records): mean output less target


def _forward(theta: Gaussians, draws: Floats, rows: Floats, y: Floats) -> _Hidden:
    weights = theta.mean_0 + np.exp(0.5 * theta.log_0) * draws
    units = np.ones((len(draws), len(rows), theta.mean_1.size))
    units[:, :, :-1] = np.maximum(rows @ weights.swapaxes(1, 2), 0.0)
    return _Hidden(units, units @ theta.mean_1 - y)


def record_objective(theta: Gaussians, draws: Floats, rows: Floats, y: Floats, noise_precision: float) -> Floats:
    """Return each record's part of the objective, without the divergence from the prior.

    Parameters
    ----------
    theta : Gaussians
    draws : ndarray, shape (samples, hidden, features + 1)
        Standard normal, which the hidden weights are made of.
    rows : ndarray, shape (records, features + 1)
        Inputs, with a column of ones.
    y : ndarray, shape (records,)
    noise_precision : float
        g, of the targets.

    Returns
    -------
    ndarray, shape (records,)
        ``g/2 mean_l [y^2 - 2 y m.z_l + z_l^2.v + (m.z_l)^2] + log(2 pi/g)/2`` with ``z_l = relu(W_l x)`` [VP, eq. 12].

    Examples
    --------
    >>> theta = Gaussians.start(1, 2, 0.1, np.random.default_rng(0))
    >>> record_objective(theta, np.zeros((1, 2, 2)), np.ones((3, 2)), np.zeros(3), 1.0).shape
    (3,)
    """
    hidden = _forward(theta, draws, rows, y)
    squares = hidden.gap**2 + (hidden.units**2) @ np.exp(theta.log_1)
    return np.asarray(0.5 * noise_precision * squares.mean(axis=0) + 0.5 * math.log(2 * math.pi / noise_precision))


def kl_gradient(theta: Gaussians, precision: float) -> Gaussians:
    """Return the gradient of the divergence of all weights from N(0, 1/precision).

    Examples
    --------
    >>> theta = Gaussians.start(1, 2, 0.5, np.random.default_rng(0))
    >>> kl_gradient(theta, 2.0).log_1
    array([0., 0., 0.])
    """
    return Gaussians(
        precision * theta.mean_0,
        0.5 * (precision * np.exp(theta.log_0) - 1),
        precision * theta.mean_1,
        0.5 * (precision * np.exp(theta.log_1) - 1),
    )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def clipped_gradient_sum(
    theta: Gaussians, draws: Floats, rows: Floats, y: Floats, noise_precision: float, clip_norm: float | None
) -> Gaussians:
    """Return the sum over records of the gradients of `record_objective`, each clipped.

    Parameters
    ----------
    theta, draws, rows, y, noise_precision
        As in `record_objective`; none to many records.
    clip_norm : float or None
        Norm of all parameters together that a record's gradient is scaled down to, less one part in a million for
        rounding; a gradient that is not finite counts as 0. Not clipped when None.

    Returns
    -------
    Gaussians

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta, draws = Gaussians.start(2, 3, 0.1, rng), rng.standard_normal((4, 3, 3))
    >>> found = clipped_gradient_sum(theta, draws, rng.normal(size=(1, 3)), np.array([9.0]), 10.0, 0.5)
    >>> round(sum(float((part**2).sum()) for part in found) ** 0.5, 5)
    0.5
    """
    total = Gaussians(*(np.zeros_like(part) for part in theta))
    size = min(_BLOCK, max(1, _CHUNK // (theta.mean_0.size * _PADDING)) * _PADDING)
    limit = None if clip_norm is None else clip_norm * INNER
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        missing = -len(rows[part]) % _PADDING
        block, targets = np.pad(rows[part], ((0, missing), (0, 0))), np.pad(y[part], (0, missing))
        kept = np.ones(len(block))
        kept[len(block) - missing :] = 0.0
        _add(total, theta, draws, block, targets, noise_precision, limit, kept)
    return total


def _add(
    total: Gaussians,
    theta: Gaussians,
    draws: Floats,
    rows: Floats,
    y: Floats,
    precision: float,
    limit: float | None,
    kept: Floats,
) -> None:
    hidden, samples = _forward(theta, draws, rows, y), len(draws)
    variance = np.exp(theta.log_1)
    by_unit = precision / samples * (hidden.gap[..., None] * theta.mean_1 + hidden.units * variance)[..., :-1]
    by_unit *= hidden.units[..., :-1] > 0
    mean_0 = by_unit.sum(axis=0)
    log_0 = np.einsum("lbi,lij->bij", by_unit, draws, optimize=True) * (0.5 * np.exp(0.5 * theta.log_0))
    log_0 *= rows[:, None, :]
    mean_1 = precision / samples * np.einsum("lb,lbi->bi", hidden.gap, hidden.units)
    log_1 = 0.5 * precision / samples * (hidden.units**2).sum(axis=0) * variance
    factors = kept
    if limit is not None:
        squares = (mean_0**2).sum(axis=1) * (rows**2).sum(axis=1) + (log_0**2).sum(axis=(1, 2))
        norms = np.sqrt(squares + (mean_1**2).sum(axis=1) + (log_1**2).sum(axis=1))
        fine = np.isfinite(norms)
        factors = kept * np.where(fine, np.minimum(1.0, limit / np.where(fine & (norms > 0), norms, limit)), 0.0)
        if not fine.all():
            rows = np.where(fine[:, None], rows, 0.0)
            for part in (mean_0, log_0, mean_1, log_1):
                part[~fine] = 0.0
    total.mean_0[:] += (factors[:, None] * mean_0).T @ rows
    total.log_0[:] += np.tensordot(factors, log_0, axes=(0, 0))
    total.mean_1[:] += factors @ mean_1
    total.log_1[:] += factors @ log_1
