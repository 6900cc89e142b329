"""Conjugate models of other exponential families: a record's site is its sufficient statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tests.thresholdout.privacy.learning.propagation.natural_arrays import NaturalArrays
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import positive
from thresholdout.privacy.learning.propagation.natural_parameters import Floats

__all__ = ["BernoulliModel", "PoissonModel", "UnknownPrecisionModel", "gamma_natural"]

# The smallest shape less 1 and the smallest precision-like parameter, so that means exist.
_LEAST = 1e-3


def _gamma_valid(arrays: dict[str, Floats], rho: float) -> Mapping[str, ArrayLike]:
    # Natural parameters (a - 1, -b): a > 1 keeps b/(a-1) finite.
    return {"shape": np.maximum(arrays["shape"], _LEAST), "rate": np.minimum(arrays["rate"], -rho)}


def gamma_natural(shape: float, rate: float) -> NaturalArrays:
    """Return a Gamma density in natural parameters, shape - 1 and -rate.

    The shape is above 1 + 1e-3, which projections keep; they keep the rate above rho.

    Examples
    --------
    >>> gamma_natural(6.0, 2.0).arrays()
    {'shape': array(5.), 'rate': array(-2.)}
    """
    a, b = positive(shape, "shape"), positive(rate, "rate")
    if a - 1 < _LEAST:
        raise InputError("shape", repr(a), f"at least {1 + _LEAST}")
    return NaturalArrays({"shape": a - 1, "rate": -b}, _gamma_valid)


class PoissonModel:
    """Counts from a Poisson law whose rate has a Gamma prior.

    Parameters
    ----------
    shape, rate : float
        Of the prior; shape above 1.001.

    Examples
    --------
    >>> from thresholdout.privacy.learning.propagation.ep_runs import run_ep
    >>> posterior = run_ep(PoissonModel(2.0, 1.0), [3, 5, 4]).theta
    >>> float(posterior["shape"] + 1), float(-posterior["rate"])
    (14.0, 4.0)
    """

    def __init__(self, shape: float, rate: float) -> None:
        self.prior = gamma_natural(shape, rate)

    def site(self, record: Any, cavity: NaturalArrays) -> NaturalArrays:
        """Return the site of a count, the same at each cavity: (count, -1)."""
        return cavity.replace({"shape": record, "rate": -1.0})


class BernoulliModel:
    """Outcomes 0 or 1 whose probability has a Beta prior.

    Parameters
    ----------
    a, b : float
        Of the prior, above 0; natural parameters are a - 1 and b - 1.

    Examples
    --------
    >>> from thresholdout.privacy.learning.propagation.ep_runs import run_ep
    >>> posterior = run_ep(BernoulliModel(2.0, 1.0), [1, 1, 0]).theta
    >>> float(posterior["ones"] + 1), float(posterior["zeros"] + 1)
    (4.0, 2.0)
    """

    def __init__(self, a: float, b: float) -> None:
        arrays = {"ones": positive(a, "a") - 1, "zeros": positive(b, "b") - 1}
        self.prior = NaturalArrays(arrays, self._valid, [("ones", "zeros")])

    @staticmethod
    def _valid(arrays: dict[str, Floats], rho: float) -> Mapping[str, ArrayLike]:
        return {name: np.where(values > -1, values, rho - 1) for name, values in arrays.items()}

    def site(self, record: Any, cavity: NaturalArrays) -> NaturalArrays:
        """Return the site of an outcome, the same at each cavity: (1, 0) or (0, 1)."""
        return cavity.replace({"ones": record, "zeros": 1.0 - record})


class UnknownPrecisionModel:
    """Numbers from a Gaussian of known mean whose precision has a Gamma prior.

    Parameters
    ----------
    mean : float
        Of the records.
    shape, rate : float
        Of the prior; shape above 1.001.

    Examples
    --------
    >>> from thresholdout.privacy.learning.propagation.ep_runs import run_ep
    >>> posterior = run_ep(UnknownPrecisionModel(1.0, 2.0, 1.0), [3.0, 0.0]).theta
    >>> float(posterior["shape"] + 1), float(-posterior["rate"])
    (3.0, 3.5)
    """

    def __init__(self, mean: float, shape: float, rate: float) -> None:
        self.mean = float(mean)
        self.prior = gamma_natural(shape, rate)

    def site(self, record: Any, cavity: NaturalArrays) -> NaturalArrays:
        """Return the site of a number, the same at each cavity: (1/2, -(x - mean)^2 / 2)."""
        return cavity.replace({"shape": 0.5, "rate": -((float(record) - self.mean) ** 2) / 2})
