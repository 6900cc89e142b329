"""Gaussian models: a prior, and the site of a record at a cavity."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dposv

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import positive
from thresholdout.privacy.learning.propagation.natural import Floats, Natural
from thresholdout.privacy.learning.propagation.natural_gaussian import GaussianNatural
from thresholdout.privacy.learning.propagation.sites import (
    logistic_site,
    mixture_moments,
    probit_moments,
    site_tilted_location,
)

__all__ = ["GaussianLocation", "LinearModel", "LinearPredictor", "MixtureOfGaussians", "Model", "weights_of"]

T = TypeVar("T", bound=Natural)


class Model(Protocol[T]):
    """What expectation propagation needs to know of a model; how to clip and to project, its parameters know.

    Attributes
    ----------
    prior : Natural
    """

    prior: T

    def site(self, record: Any, cavity: T) -> T:
        """Return the site of a record at a cavity; entries that are not finite, or a ValueError, mark a failure."""
        ...


class GaussianLocation:
    """Records from a Gaussian of unknown mean and known variance.

    Parameters
    ----------
    prior : GaussianNatural
        Of the mean, one component of dimension d.
    s2 : float
        Variance of a record in each coordinate, above 0.

    Examples
    --------
    >>> model = GaussianLocation(GaussianNatural([0.0], [[1.0]]), 2.0)
    >>> model.site(np.array([4.0]), model.prior)
    GaussianNatural(eta=[2.0], Lam=[[0.5]])
    """

    def __init__(self, prior: GaussianNatural, s2: float) -> None:
        self.prior = proper(prior)
        self.s2 = positive(s2, "s2")

    def site(self, record: Floats, cavity: GaussianNatural) -> GaussianNatural:
        """Return the site of a record, shape (d,), the same at each cavity."""
        return cavity.replace(*site_tilted_location(record, self.s2))


class LinearModel:
    """Targets y = x.w + noise of known variance.

    Parameters
    ----------
    prior : GaussianNatural
        Of the weights.
    s2 : float
        Variance of the noise, above 0.

    Examples
    --------
    >>> model = LinearModel(GaussianNatural([0.0, 0.0], np.eye(2)), 0.25)
    >>> model.site((np.array([1.0, 0.5]), 1.2), model.prior).eta
    array([4.8, 2.4])
    """

    def __init__(self, prior: GaussianNatural, s2: float) -> None:
        self.prior = proper(prior)
        self.s2 = positive(s2, "s2")

    def site(self, record: tuple[Floats, float], cavity: GaussianNatural) -> GaussianNatural:
        """Return the site of a record (x, y), the same at each cavity."""
        x, y = record
        return _rank_one(cavity, x, 1 / self.s2, y / self.s2)


class LinearPredictor:
    """Labels y = +-1 with a likelihood of y x.w: probit, or logistic.

    Parameters
    ----------
    prior : GaussianNatural
        Of the weights.
    link : {"probit", "logit"}

    Examples
    --------
    >>> model = LinearPredictor(GaussianNatural([0.0, 0.0], np.eye(2)), "probit")
    >>> model.site((np.array([1.0, 0.0]), 1.0), model.prior).Lam.round(6)
    array([[0.466942, 0.      ],
           [0.      , 0.      ]])
    """

    def __init__(self, prior: GaussianNatural, link: str = "probit") -> None:
        self.prior = proper(prior)
        if link not in _LINKS:
            raise InputError("link", repr(link), "'probit' or 'logit'")
        self.link = link
        self._moments = _LINKS[link]

    def site(self, record: tuple[Floats, float], cavity: GaussianNatural) -> GaussianNatural:
        """Return the site of a record (x, y) at a cavity."""
        x, y = record
        solved, failed = dposv(cavity.Lam, np.column_stack([cavity.eta, x]))[1:]
        if failed:
            raise InputError("cavity", "a precision that is not positive definite", "a proper density")
        mu, s = (x @ solved).tolist()
        if not s > 0:  # a record of zeros says nothing about the weights
            return cavity.scale(0.0)
        tau, nu = self._moments(y, mu, s)[:2]
        return _rank_one(cavity, x, tau, nu)


_LINKS: dict[str, Callable[[float, float, float], tuple[float, ...]]] = {
    "probit": probit_moments,
    "logit": logistic_site,
}


class MixtureOfGaussians:
    """Records from a mixture of Gaussians with unknown means; weights and the common variance are known.

    Parameters
    ----------
    prior : GaussianNatural
        Of the means, eta of shape (J, d); with distinct means, as components are otherwise exchangeable.
    weights : array_like, shape (J,)
        Above 0, of sum 1.
    s2 : float
        Variance of a component in each coordinate, above 0.

    Examples
    --------
    >>> prior = GaussianNatural([[-1.0], [1.0]], [[[1.0]], [[1.0]]])
    >>> MixtureOfGaussians(prior, [0.5, 0.5], 0.1).site(np.array([2.0]), prior).eta.shape
    (2, 1)
    """

    def __init__(self, prior: GaussianNatural, weights: ArrayLike, s2: float) -> None:
        self.prior = proper(prior)
        if prior.eta.ndim != 2 or prior.diagonal:
            raise InputError("prior", f"eta of shape {prior.eta.shape}", "eta of shape (J, d) and full precisions")
        self.weights = weights_of(weights, len(prior.eta))
        self.s2 = positive(s2, "s2")

    def site(self, record: Floats, cavity: GaussianNatural) -> GaussianNatural:
        """Return the sites of a record, shape (d,), for all components at a cavity; precisions may be indefinite."""
        covs = np.asarray(np.linalg.inv(cavity.Lam), dtype=np.float64)
        means: Floats = (covs @ cavity.eta[..., None])[..., 0]
        tilted = mixture_moments(record, self.weights, self.s2, means, covs)
        np.linalg.cholesky(tilted.covs)  # raises what marks a failure
        precision = np.linalg.inv(tilted.covs)
        eta = (precision @ tilted.means[..., None])[..., 0]
        return cavity.replace(eta - cavity.eta, precision - cavity.Lam)


def weights_of(weights: ArrayLike, components: int) -> Floats:
    """Return the weights of a mixture's components.

    Raises
    ------
    InputError
        When they are not positive, or their sum is not 1.
    """
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (components,) or not (found > 0).all() or not math.isclose(found.sum(), 1.0, rel_tol=1e-9):
        raise InputError("weights", f"{found}", f"{components} positive numbers of sum 1")
    return found


def proper(prior: GaussianNatural) -> GaussianNatural:
    """Return a prior.

    Raises
    ------
    InputError
        When its precision is not positive definite.
    """
    if not prior.is_pd():
        raise InputError("prior", "a precision that is not positive definite", "the precision of a proper density")
    return prior


def _rank_one(like: GaussianNatural, x: Floats, tau: float, nu: float) -> GaussianNatural:
    """Return eta = nu x and Lam = tau x x', which is exactly symmetric as x x' is formed first."""
    d = x.size
    values = np.empty(d + d * d)
    np.multiply(x, nu, out=values[:d])
    matrix = values[d:].reshape(d, d)
    np.multiply.outer(x, x, out=matrix)
    matrix *= tau
    return like.with_values(values)
