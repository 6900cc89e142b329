"""Parameters of a mixture of Gaussians, what they say about records, and how they follow from noisy statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.learning.dpem.record_statistics import CovarianceType, noise_scales

__all__ = ["MixtureParameters", "Prior", "log_joint", "maximize", "responsibilities"]

Floats = NDArray[np.float64]

_PRIOR_RECORDS = 3.0  # found by measurement: python -m benchmarks.papers.mixtures settings
_LEAST_RECORDS = 1e-6


@dataclass(frozen=True, eq=False)
class Prior:
    """What the first step found out about all records together, in units of the clipping norm.

    Attributes
    ----------
    records : float
        How many there are, with noise, and at least as many as its standard deviation.
    mean : ndarray, shape (d,)
    covariance : ndarray
        A number, shape (d,) or (d, d), by type.
    """

    records: float
    mean: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class MixtureParameters:
    """A mixture of Gaussians.

    Attributes
    ----------
    weights : ndarray, shape (K,)
    means : ndarray, shape (K, d)
    covariances : ndarray
        Of shape (K,), (K, d) or (K, d, d), by type.
    """

    weights: Floats
    means: Floats
    covariances: Floats


def log_joint(rows: Floats, mixture: MixtureParameters) -> Floats:
    """Return the logarithm of each component's weight times its density, shape (n, K).

    Each row's value is made of operations on single numbers, so that it does not depend on the other rows.

    Examples
    --------
    >>> standard = MixtureParameters(np.ones(1), np.zeros((1, 2)), np.ones(1))
    >>> log_joint(np.zeros((1, 2)), standard).round(4)  # -log(2 pi)
    array([[-1.8379]])
    """
    n, d = rows.shape
    found = np.empty((n, len(mixture.weights)))
    for k, (weight, mean, cov) in enumerate(zip(mixture.weights, mixture.means, mixture.covariances, strict=True)):
        squares = np.zeros(n)
        if cov.ndim < 2:
            deviations = np.sqrt(np.broadcast_to(cov, d))
            for j in range(d):
                squares += ((rows[:, j] - mean[j]) / deviations[j]) ** 2
            half_log_determinant = float(np.log(deviations).sum())
        else:
            root = np.linalg.cholesky(cov)
            whiten = np.linalg.inv(root)
            for i in range(d):
                along = np.zeros(n)
                for j in range(i + 1):
                    along += whiten[i, j] * (rows[:, j] - mean[j])
                squares += along * along
            half_log_determinant = float(np.log(np.diagonal(root)).sum())
        constant = math.log(weight) - half_log_determinant - d / 2 * math.log(2 * math.pi)
        found[:, k] = constant - squares / 2
    return found


def responsibilities(rows: Floats, mixture: MixtureParameters) -> Floats:
    """Return the probability of each component for each row, shape (n, K)."""
    joint = log_joint(rows, mixture)
    largest, total = joint[:, 0].copy(), np.zeros(len(joint))
    for k in range(joint.shape[1]):
        np.maximum(largest, joint[:, k], out=largest)
    found = np.exp(joint - largest[:, None])
    for k in range(joint.shape[1]):
        total += found[:, k]
    found /= total[:, None]
    return found


def maximize(
    noisy: Floats,
    noise: float,
    covariance_type: CovarianceType,
    shares: tuple[float, float, float],
    least_variance: float,
    prior: Prior | None,
) -> MixtureParameters:
    """Return the mixture that noisy statistics say, drawn towards a prior by as much as the noise deserves.

    Parameters
    ----------
    noisy : ndarray, shape (K, 1 + d + m)
        Of `statistics_sum`, with noise.
    noise : float
        The noise multiplier.
    covariance_type, shares
        As in `noise_scales`.
    least_variance : float
        In units of the squared clipping norm; eigenvalues of covariances are at least that, and at least as large as
        the noise on them.
    prior : Prior or None
        None for the step that finds it.

    Notes
    -----
    The prior counts as three times as many records as the noise on a component's sum is long: by noise alone, a mean
    moves from the prior's by a third of the clipping norm then. Nothing here looks at a record.

    Examples
    --------
    >>> noisy = np.array([[4.0, 2.0, 2.0]])  # 4 records of mean 1/2 and mean square 1/2
    >>> found = maximize(noisy, 0.0, "diag", (0.25, 0.5, 0.25), 1e-6, None)
    >>> found.means, found.covariances
    (array([[0.5]]), array([[0.25]]))
    """
    K, d = len(noisy), _dimension(noisy.shape[1], covariance_type)
    scales = noise * noise_scales(d, covariance_type, shares)
    extra = 0.0 if prior is None else max(_PRIOR_RECORDS * float(scales[1]) * math.sqrt(d), _LEAST_RECORDS)
    least = max(float(scales[0]), _LEAST_RECORDS) if prior is None else 0.0
    counts = np.maximum(noisy[:, 0], least) + extra
    sums, seconds = noisy[:, 1 : 1 + d], _as_covariance(noisy[:, 1 + d :], d, covariance_type)
    if prior is not None:
        sums = sums + extra * prior.mean
        seconds = seconds + extra * (prior.covariance + _square(prior.mean[None], covariance_type)[0])
    means = sums / counts[:, None]
    means /= np.maximum(1.0, np.sqrt(np.square(means).sum(axis=1)))[:, None]
    uncertain = (scales[1] / counts) ** 2  # the square of a noisy mean is too large by it, and means are off by it
    divisor = counts.reshape((K,) + (1,) * (seconds.ndim - 1))
    raw = seconds / divisor - _square(means, covariance_type)
    spread = {"spherical": 1 / d, "diag": 1.0, "full": math.sqrt(d / 2)}[covariance_type]
    floor = np.minimum(np.maximum(least_variance, spread * float(scales[1 + d]) / counts + uncertain), 1.0)
    return MixtureParameters(counts / counts.sum(), means, _proper(raw, 2 * uncertain, floor))


def _dimension(width: int, covariance_type: CovarianceType) -> int:
    if covariance_type == "spherical":
        return width - 2
    if covariance_type == "diag":
        return (width - 1) // 2
    return (math.isqrt(8 * width + 1) - 3) // 2


def _as_covariance(moments: Floats, d: int, covariance_type: CovarianceType) -> Floats:
    """Return second moments in the shape of covariances; the mean over coordinates for spherical ones."""
    if covariance_type == "spherical":
        return np.asarray(moments[:, 0] / d)
    if covariance_type == "diag":
        return moments
    found = np.empty((len(moments), d, d))
    i, j = np.triu_indices(d)
    found[:, i, j] = found[:, j, i] = moments
    return found


def _square(means: Floats, covariance_type: CovarianceType) -> Floats:
    if covariance_type == "spherical":
        return np.asarray(np.square(means).mean(axis=1))
    if covariance_type == "diag":
        return np.square(means)
    return np.asarray(means[:, :, None] * means[:, None, :])


def _proper(covariances: Floats, added: Floats, floor: Floats) -> Floats:
    """Return covariances with something added to each variance, and eigenvalues between a floor and 1."""
    if covariances.ndim < 3:
        shape = (len(floor),) + (1,) * (covariances.ndim - 1)
        return np.clip(covariances + added.reshape(shape), floor.reshape(shape), 1.0)
    values, vectors = np.linalg.eigh(covariances)
    values = np.clip(values + added[:, None], floor[:, None], 1.0)
    found = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray((found + found.transpose(0, 2, 1)) / 2)
