"""Sums of record statistics for expectation-maximisation, their sensitivity to one record, and their maximisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.events.event_types import Adjacency

__all__ = [
    "COVARIANCE_TYPES",
    "MOST_RECORDS",
    "CovarianceType",
    "MixtureParameters",
    "Prior",
    "log_joint",
    "maximize",
    "noise_scales",
    "on_grid",
    "responsibilities",
    "sensitivity",
    "statistics_sum",
]

Floats = NDArray[np.float64]

CovarianceType = Literal["spherical", "diag", "full"]

COVARIANCE_TYPES: tuple[CovarianceType, ...] = ("spherical", "diag", "full")

# Sums of 2^26 products of multiples of 2^-18 have 26 + 36 bits and are exact in 64 (PROOFS.md, S5).
BITS = 18

GRID = 2.0**BITS

MOST_RECORDS = 2**26

MOST_COORDINATES = 2**21  # the rounding of a norm is then within `_INSIDE` (S4)

_INSIDE = 1.0 - 2.0**-30  # for the rounding of norms of at most MOST_COORDINATES

_ROUNDED = 1.0 + 2.0**-20  # for the rounding of sums, scales and noise of at most MOST_RECORDS records

_ROWS = 2**15  # products of so many rows of 36 bits are sums below 2^53, exact in any order (S5)

_CHUNK = 2**22  # numbers in memory at once, 32 MB


def on_grid(X: Floats, bound: float) -> Floats:
    """Return records in units of a bound on their norm, scaled down to it and cut to a grid (PROOFS.md, S4)."""
    n, d = X.shape
    if d > MOST_COORDINATES:
        raise InputError("X", f"{d} features", f"a table of at most {MOST_COORDINATES} features")
    largest = np.zeros(n)
    for j in range(d):
        np.maximum(largest, np.abs(X[:, j]), out=largest)
    exponents = np.frexp(largest)[1]
    down = np.ldexp(X, -exponents[:, None])
    squares = np.zeros(n)
    for j in range(d):  # column by column, so that a row's rounding does not depend on its place
        squares += down[:, j] * down[:, j]
    norms = np.sqrt(squares)
    with np.errstate(over="ignore", under="ignore"):
        # Compared in units of each row's power of two, in which norms neither overflow nor underflow (S4).
        large = norms > np.ldexp(np.full(n, bound * _INSIDE), -exponents)
    scaled = np.where(large[:, None], 0.0, X) / bound
    scaled[large] = down[large] * (_INSIDE / norms[large])[:, None]
    return np.asarray(np.trunc(scaled * GRID) / GRID)


def second_moments(rows: Floats, covariance_type: CovarianceType) -> Floats:
    """Return squared norms, squares, or products of coordinates (upper triangle) on the grid, cut towards zero."""
    n, d = rows.shape
    if covariance_type == "spherical":
        squares = np.zeros(n)
        for j in range(d):
            squares += rows[:, j] * rows[:, j]  # exact: multiples of 2^-36, at most 1
        products = squares[:, None]
    elif covariance_type == "diag":
        products = rows * rows
    else:
        first, second = np.triu_indices(d)
        products = rows[:, first] * rows[:, second]
    return np.asarray(np.trunc(products * GRID) / GRID)


def statistics_sum(rows: Floats, responsibilities: Floats, covariance_type: CovarianceType) -> Floats:
    """Return the sum over records of responsibility times (1, record, second moments), exact but for one rounding.

    Entries are whole numbers of 2^-36, at most 1 in size. So products of matrices of 2^15 rows are exact in any order,
    and so are their sums in 64 bits (PROOFS.md, S5).
    """
    n, d = rows.shape
    width = 1 + d + moments(d, covariance_type)
    total = np.zeros((responsibilities.shape[1], width), dtype=np.int64)
    step = max(1, min(_ROWS, _CHUNK // width))
    for start in range(0, n, step):
        part = rows[start : start + step]
        features = np.concatenate([np.ones((len(part), 1)), part, second_moments(part, covariance_type)], axis=1)
        # Rounded down, so that a record's shares sum to at most 1 (S4).
        shares = np.floor(responsibilities[start : start + step] * GRID)
        total += (shares.T @ (features * GRID)).astype(np.int64)
    return total.astype(np.float64) / GRID**2


def moments(d: int, covariance_type: CovarianceType) -> int:
    """Return the number of second moments."""
    return {"spherical": 1, "diag": d, "full": d * (d + 1) // 2}[covariance_type]


def noise_scales(d: int, covariance_type: CovarianceType, shares: tuple[float, float, float]) -> Floats:
    """Return the noise of each statistic of one component, relative to the noise multiplier (PROOFS.md, S1)."""
    count, mean, second = (1 / math.sqrt(share) for share in shares)
    found = np.full(1 + d + moments(d, covariance_type), second)
    found[0], found[1 : 1 + d] = count, mean
    if covariance_type == "full":
        i, j = np.triu_indices(d)
        found[1 + d :][i != j] /= math.sqrt(2)
    return found


def sensitivity(
    d: int, covariance_type: CovarianceType, shares: tuple[float, float, float], adjacency: Adjacency
) -> float:
    """Return the largest distance that one record moves the sum over `noise_scales`, rounded up (S2 to S5)."""
    # S2: a record's statistics have norm at most 1.
    if adjacency == "add_remove":
        return _ROUNDED
    _, mean, second = shares
    # S3: the square of the distance of two records in the same component; 2 in different ones.
    if covariance_type == "spherical" or mean >= 2 * second:
        apart = 4 * mean
    else:
        apart = 2 * (mean + second) + mean * mean / (2 * second)
    # 4 d h p2 is for the cut to the grid (S4).
    return math.sqrt(max(2.0, apart + 4 * second * d / GRID)) * _ROUNDED


def check_records(n: int) -> None:
    """Refuse more records than sums are exact for."""
    if n > MOST_RECORDS:
        raise InputError("X", f"{n} records", f"a table of at most {MOST_RECORDS} records")


_PRIOR_RECORDS = 3.0  # measured: python -m benchmarks.papers.mixtures settings

_LEAST_RECORDS = 1e-6  # keeps divisions defined where there is neither a record nor noise


@dataclass(frozen=True, eq=False)
class Prior:
    """Noisy number, mean and covariance of all records together, in units of the clipping norm, from the first step."""

    records: float
    mean: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class MixtureParameters:
    """A mixture of K Gaussians; covariances have shape (K,), (K, d) or (K, d, d), by type."""

    weights: Floats
    means: Floats
    covariances: Floats


def log_joint(rows: Floats, mixture: MixtureParameters) -> Floats:
    """Return the logarithm of each component's weight times its density, shape (n, K).

    Only operations on single numbers make a row's value, so that it does not depend on the other rows (PROOFS.md, S6).
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
    """Return the mixture of noisy statistics, shrunk towards a prior more strongly where the noise is larger.

    The prior counts as three times as many records as the noise on a component's sum is long. Noise alone then moves a
    mean from the prior's by a third of the clipping norm. No record is read here.
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
    # Records are in the unit ball, so means are, and variances are at most 1.
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
    """Return covariances with a number added to each variance, and eigenvalues between a floor and 1."""
    if covariances.ndim < 3:
        shape = (len(floor),) + (1,) * (covariances.ndim - 1)
        return np.clip(covariances + added.reshape(shape), floor.reshape(shape), 1.0)
    # Noise can make eigenvalues negative.
    values, vectors = np.linalg.eigh(covariances)
    values = np.clip(values + added[:, None], floor[:, None], 1.0)
    found = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray((found + found.transpose(0, 2, 1)) / 2)
