"""Simulated data to try learners on: a mixture of Gaussians with its exact posterior, and a robot arm."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count, positive
from thresholdout.privacy.learning.propagation.natural_parameters import Floats, GaussianNatural

__all__ = ["MixtureData", "aligned_f_norm", "conditional_mog_posterior", "make_kin8_standin", "make_mog_data"]


class MixtureData(NamedTuple):
    """A sample of a mixture of Gaussians.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    labels : ndarray of int, shape (n,)
        The component of each record.
    means : ndarray, shape (J, d)
        Of the components.
    prior_means : ndarray, shape (J, d)
        With which the paper's scripts start.
    """

    X: Floats
    labels: NDArray[np.int64]
    means: Floats
    prior_means: Floats


def make_mog_data(seed: int = 60, n: int = 1000, components: int = 4, d: int = 4, sd: float = 0.5) -> MixtureData:
    """Return a sample as the public scripts of [VP] draw it, with equal weights.

    Parameters
    ----------
    seed : int
        Of the means and of the sample; the paper's is 60. Where the means are drawn around, and the prior, have seeds
        of their own.
    n, components, d : int
    sd : float
        Standard deviation of a component in each coordinate.

    Examples
    --------
    >>> make_mog_data(n=10).X.shape
    (10, 4)
    """
    size, J, dimension = count(n, "n"), count(components, "components"), count(d, "d")
    spread = positive(sd, "sd")
    places = np.random.RandomState(600)
    middle, scales = places.randn(J, dimension), np.abs(places.randn(J, dimension))
    rng = np.random.RandomState(count(seed, "seed", least=0))
    means = middle + rng.randn(J, dimension) * scales
    labels = np.array([rng.choice(J) for _ in range(size)], dtype=np.int64)
    X = means[labels] + spread * rng.randn(size, dimension)
    return MixtureData(X, labels, means, np.random.RandomState(0).randn(J, dimension))


def conditional_mog_posterior(
    X: Floats, labels: NDArray[np.int64], prior: GaussianNatural, s2: float
) -> GaussianNatural:
    """Return the exact posterior of the components' means for known labels.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    labels : ndarray of int, shape (n,)
        From 0 to J - 1.
    prior : GaussianNatural
        eta of shape (J, d).
    s2 : float
        Variance of each component in each coordinate.

    Examples
    --------
    >>> prior = GaussianNatural([[0.0], [0.0]], [[[1.0]], [[1.0]]])
    >>> conditional_mog_posterior(np.array([[1.0], [3.0]]), np.array([0, 1]), prior, 1.0).mean()
    array([[0.5],
           [1.5]])
    """
    J, d = prior.eta.shape
    if len(X) != len(labels) or ((labels < 0) | (labels >= J)).any():
        raise InputError("labels", f"shape {np.shape(labels)}", f"a number from 0 to {J - 1} for each record")
    member = (labels[None, :] == np.arange(J)[:, None]).astype(np.float64)
    eta = prior.eta + member @ X / s2
    return GaussianNatural(eta, prior.Lam + member.sum(axis=1)[:, None, None] * np.eye(d) / s2)


def aligned_f_norm(found: GaussianNatural, exact: GaussianNatural, true_means: Floats) -> tuple[float, float]:
    """Return the errors of means and covariances as the scripts of [VP] compute what they call the F-norm.

    Parameters
    ----------
    found, exact : GaussianNatural
        Posteriors of the components' means, eta of shape (J, d).
    true_means : ndarray, shape (J, d)
        To which the components of both are matched: each in turn takes the nearest unused one.

    Returns
    -------
    tuple of float
        Squared Euclidean distance of the means and squared Frobenius distance of the covariances, averaged over
        components.

    Examples
    --------
    >>> exact = GaussianNatural([[0.0], [2.0]], [[[1.0]], [[1.0]]])
    >>> swapped = GaussianNatural([[2.5], [0.0]], [[[1.0]], [[1.0]]])
    >>> aligned_f_norm(swapped, exact, np.array([[0.0], [2.0]]))
    (0.125, 0.0)
    """
    (one, first), (two, second) = ((each.mean(), each.cov()) for each in (found, exact))
    mine, theirs = _matched(one, true_means), _matched(two, true_means)
    mean = float(((one[mine] - two[theirs]) ** 2).sum(axis=1).mean())
    return mean, float(((first[mine] - second[theirs]) ** 2).sum(axis=(1, 2)).mean())


def _matched(means: Floats, true_means: Floats) -> list[int]:
    free, found = list(range(len(means))), []
    for true in true_means:
        best = min(free, key=lambda j: float(((means[j] - true) ** 2).sum()))
        free.remove(best)
        found.append(best)
    return found


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
