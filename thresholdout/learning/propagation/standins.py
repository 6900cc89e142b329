"""Data to try expectation propagation on: a mixture with its exact posterior, and stand-ins for public regression sets.

Everything is generated; nothing is downloaded.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresholdout.accounting.arguments import chosen, count, positive
from thresholdout.errors import InputError
from thresholdout.learning.propagation.gaussian import GaussianNatural

__all__ = [
    "AlignedError",
    "MixtureData",
    "aligned_f_norm",
    "conditional_mog_posterior",
    "make_kin8_standin",
    "make_linear_standin",
    "make_mog_data",
    "make_naval_standin",
    "make_wine_standin",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class MixtureData(NamedTuple):
    """Records of a mixture of Gaussians.

    Attributes
    ----------
    X : ndarray, shape (n, dimension)
    labels : ndarray of int, shape (n,)
        Component of each record.
    means : ndarray, shape (components, dimension)
    """

    X: Floats
    labels: Labels
    means: Floats


class AlignedError(NamedTuple):
    """How far a posterior of component means is from another, components matched.

    Attributes
    ----------
    mean, cov : float
        Mean over components of the squared distance of means, and of the squared Frobenius norm of the difference of
        covariances.
    average : float
        Of the two.
    order : tuple of int
        Component of the found posterior that is matched to each one of the true posterior.
    """

    mean: float
    cov: float
    average: float
    order: tuple[int, ...]


def make_mog_data(
    seed: int = 60,
    n: int = 1000,
    *,
    components: int = 4,
    dimension: int = 4,
    std: float = 0.5,
    spread: str = "unit",
) -> MixtureData:
    """Return records of a mixture with equal weights and random component means.

    Parameters
    ----------
    seed : int
    n, components, dimension : int
    std : float
        Standard deviation of a record about its component's mean, in each coordinate.
    spread : {"unit", "script"}
        Component means are drawn about centres that are standard normal, with unit variance as the text of [VP] says,
        or with a scale ``|N(0, 1)|`` of each coordinate, as the authors' script does.

    Examples
    --------
    >>> data = make_mog_data(0, 10)
    >>> data.X.shape, data.labels.shape, data.means.shape
    ((10, 4), (10,), (4, 4))
    """
    size, J, D = count(n, "n"), count(components, "components"), count(dimension, "dimension")
    deviation, how = positive(std, "std"), chosen(spread, "spread", ("unit", "script"))
    rng = np.random.default_rng(count(seed, "seed", least=0))
    centres, scales = rng.standard_normal((J, D)), np.abs(rng.standard_normal((J, D)))
    means = centres + rng.standard_normal((J, D)) * (scales if how == "script" else 1.0)
    labels = rng.integers(J, size=size)
    return MixtureData(means[labels] + deviation * rng.standard_normal((size, D)), labels, means)


def conditional_mog_posterior(
    X: ArrayLike, labels: ArrayLike, *, prior_mean: ArrayLike, prior_precision: float, noise_var: float
) -> GaussianNatural:
    """Return the exact posterior of component means of records whose components are known.

    Parameters
    ----------
    X : array_like, shape (n, D)
    labels : array_like of int, shape (n,)
        From 0 to J - 1.
    prior_mean : array_like, shape (J, D)
    prior_precision : float
        Of each coordinate of each mean. The published ground truth passes a covariance of 0.1 where this is expected.
    noise_var : float
        Of a record in each coordinate.

    Returns
    -------
    GaussianNatural
        J components: precision ``prior_precision I + n_j / noise_var I``, and ``eta`` the prior's plus
        ``sum x / noise_var``.

    Examples
    --------
    >>> found = conditional_mog_posterior([[1.0], [3.0]], [0, 0], prior_mean=[[0.0], [5.0]], prior_precision=1.0,
    ...                                   noise_var=0.5)
    >>> found.mean().tolist()
    [[1.6], [5.0]]
    """
    rows, each, prior = np.asarray(X, dtype=float), np.asarray(labels), np.asarray(prior_mean, dtype=float)
    precision, variance = positive(prior_precision, "prior_precision"), positive(noise_var, "noise_var")
    if rows.ndim != 2 or prior.ndim != 2 or each.shape != rows.shape[:1] or rows.shape[1] != prior.shape[1]:
        seen = f"shapes {rows.shape}, {each.shape} and {prior.shape}"
        raise InputError("X, labels, prior_mean", seen, "(n, D), (n,) and (J, D)")
    J, D = prior.shape
    if each.dtype.kind not in "iu" or ((each < 0) | (each >= J)).any():
        raise InputError("labels", "something else than a component", f"whole numbers from 0 to {J - 1}")
    members = (each[:, None] == np.arange(J)).astype(float)
    Lam = precision + members.sum(axis=0) / variance
    return GaussianNatural(precision * prior + members.T @ rows / variance, Lam[:, None, None] * np.eye(D))


def aligned_f_norm(truth: GaussianNatural, found: GaussianNatural) -> AlignedError:
    """Return how far two posteriors of component means are apart, as the published tables count it.

    Parameters
    ----------
    truth, found : GaussianNatural
        Of J components each, with full precisions. For each component of the truth in turn the unused component with
        the closest mean is taken.

    Notes
    -----
    The paper calls it an L2 distance; its script squares it, and so does this.

    Examples
    --------
    >>> truth = GaussianNatural([[0.0], [4.0]], [[[1.0]], [[1.0]]])
    >>> swapped = GaussianNatural([[7.0], [0.0]], [[[1.0]], [[0.5]]])
    >>> aligned_f_norm(truth, swapped)
    AlignedError(mean=4.5, cov=0.5, average=2.5, order=(1, 0))
    """
    if truth.eta.ndim != 2 or truth.diagonal or truth.Lam.shape != found.Lam.shape:
        raise InputError(
            "found", f"shape {found.eta.shape}", f"full precisions, of the truth's shape {truth.eta.shape}"
        )
    means, others = truth.mean(), found.mean()
    left, order = list(range(len(others))), []
    for mean in means:
        closest = min(left, key=lambda j: float(((others[j] - mean) ** 2).sum()))
        left.remove(closest)
        order.append(closest)
    first = float(((means - others[order]) ** 2).sum(axis=1).mean())
    second = float(((truth.cov() - found.cov()[order]) ** 2).sum(axis=(1, 2)).mean())
    return AlignedError(first, second, (first + second) / 2, tuple(order))


def make_kin8_standin(n: int = 8192, seed: int = 0) -> tuple[Floats, Floats]:
    """Return joint angles of an arm of eight links and how far its hand is from a point; for Kin8nm.

    Parameters
    ----------
    n : int
    seed : int

    Returns
    -------
    X : ndarray, shape (n, 8)
        Angles, uniform within 45 degrees, in radians.
    y : ndarray, shape (n,)
        Distance of ``(sum cos a, sum sin a) / 8`` from (0.5, 0.25), with ``a`` the cumulative angles; no noise.

    Examples
    --------
    >>> X, y = make_kin8_standin(3)
    >>> X.shape, bool((y < 1).all())
    ((3, 8), True)
    """
    rng = np.random.default_rng(count(seed, "seed", least=0))
    X = rng.uniform(-math.pi / 4, math.pi / 4, (count(n, "n"), 8))
    angles = X.cumsum(axis=1)
    return X, np.hypot(np.cos(angles).mean(axis=1) - 0.5, np.sin(angles).mean(axis=1) - 0.25)


def make_naval_standin(n: int = 11934, seed: int = 0) -> tuple[Floats, Floats]:
    """Return a smooth function of 16 inputs without noise, of small size; for Naval.

    Parameters
    ----------
    n, seed : int

    Returns
    -------
    X : ndarray, shape (n, 16)
        Standard normal.
    y : ndarray, shape (n,)
        In (0.95, 1), a logistic function of a linear index and one product.

    Examples
    --------
    >>> X, y = make_naval_standin(3)
    >>> X.shape, bool((y > 0.95).all())
    ((3, 16), True)
    """
    rng = np.random.default_rng(count(seed, "seed", least=0))
    X = rng.standard_normal((count(n, "n"), 16))
    index = X @ (rng.standard_normal(16) / 4) + 0.3 * X[:, 0] * X[:, 1]
    return X, 0.95 + 0.05 / (1 + np.exp(-index))


def make_wine_standin(n: int = 1599, seed: int = 0) -> tuple[Floats, Floats]:
    """Return an ordinal target, a rounded noisy linear index of 11 inputs; for red wine quality.

    Parameters
    ----------
    n, seed : int

    Returns
    -------
    X : ndarray, shape (n, 11)
        Standard normal.
    y : ndarray, shape (n,)
        Whole numbers from 3 to 8.

    Examples
    --------
    >>> X, y = make_wine_standin(1000)
    >>> sorted(set(y.tolist()))
    [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """
    rng = np.random.default_rng(count(seed, "seed", least=0))
    X = rng.standard_normal((count(n, "n"), 11))
    slopes = rng.standard_normal(11)
    index = 5.6 + 0.5 * X @ (slopes / np.linalg.norm(slopes)) + 0.65 * rng.standard_normal(len(X))
    return X, np.clip(np.round(index), 3, 8)


def make_linear_standin(n: int = 20_000, seed: int = 0, *, d: int = 5, noise: float = 0.5) -> tuple[Floats, Floats]:
    """Return a linear model with noise, of few dimensions, in which private expectation propagation works.

    Parameters
    ----------
    n, seed, d : int
    noise : float
        Standard deviation of the targets about their mean.

    Returns
    -------
    X : ndarray, shape (n, d)
        Standard normal.
    y : ndarray, shape (n,)

    Examples
    --------
    >>> X, y = make_linear_standin(100, d=3)
    >>> X.shape, y.shape
    ((100, 3), (100,))
    """
    rng = np.random.default_rng(count(seed, "seed", least=0))
    X = rng.standard_normal((count(n, "n"), count(d, "d")))
    return X, X @ rng.standard_normal(d) + positive(noise, "noise", zero=True) * rng.standard_normal(len(X))
