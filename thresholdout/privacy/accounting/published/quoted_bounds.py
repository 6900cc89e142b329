"""Generalisation bounds of others, as He, Wang and Tao quote them, for comparison.

All are one-sided, on ``R - Rhat``. Each original theorem has a condition on the number of records that is not quoted,
so these are forms to compare with, and nothing builds on them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count, positive, probability, unit
from thresholdout.privacy.accounting.results import GeneralizationBound

__all__ = ["dwork2015_bound", "empirical_variance", "nissim_stemmer_bound", "oneto_risk_bound", "oneto_variance_bound"]


def _bound(error: float, failure: float, rule: str) -> GeneralizationBound:
    error, failure = up_relative(error), min(1.0, max(0.0, up_relative(failure)))
    return GeneralizationBound(error, failure, 1 - failure, None, True, error >= 1 or failure >= 1, rule)


def dwork2015_bound(eps: float, delta: float) -> GeneralizationBound:
    """Return ``(4 eps, 8 delta^eps)``, for (eps, delta)-private learners, as quoted.

    Parameters
    ----------
    eps : float
        Above 0.
    delta : float
        In [0, 1).

    Returns
    -------
    GeneralizationBound

    Examples
    --------
    >>> round(dwork2015_bound(0.5, 1e-5).failure, 12)
    0.025298221281
    """
    eps, delta = positive(eps, "eps"), probability(delta, "delta")
    return _bound(4 * eps, 8 * delta**eps, "dwork2015")


def nissim_stemmer_bound(eps: float, delta: float) -> GeneralizationBound:
    """Return ``(13 eps, (2 delta/eps) ln(2/eps))``, for (eps, delta)-private classification, as quoted.

    Parameters
    ----------
    eps : float
        Above 0.
    delta : float
        In [0, 1).

    Returns
    -------
    GeneralizationBound
        Vacuous from ``eps = 1/13`` on.

    Examples
    --------
    >>> round(nissim_stemmer_bound(0.05, 1e-6).error, 12)
    0.65
    """
    eps, delta = positive(eps, "eps"), probability(delta, "delta")
    return _bound(13 * eps, 2 * delta / eps * math.log(2 / eps), "nissim_stemmer")


def oneto_risk_bound(eps: float, n: int, emp_risk: float) -> GeneralizationBound:
    """Return Oneto, Ridella and Anguita's bound by the empirical risk, for eps-private learners, as quoted.

    Parameters
    ----------
    eps : float
        At least 0; the quoted form has no delta.
    n : int
        Records.
    emp_risk : float
        In [0, 1].

    Returns
    -------
    GeneralizationBound
        ``(sqrt(6 Rhat)(eps + n^-1/2) + 6(eps^2 + 1/n), 3 exp(-n eps^2))``.

    Examples
    --------
    >>> round(oneto_risk_bound(0.05, 2000, 0.2).error, 12)
    0.097267153178
    """
    eps, n, emp_risk = positive(eps, "eps", zero=True), count(n, "n"), unit(emp_risk, "emp_risk")
    error = math.sqrt(6 * emp_risk) * (eps + 1 / math.sqrt(n)) + 6 * (eps * eps + 1 / n)
    return _bound(error, 3 * math.exp(-n * eps * eps), "oneto_risk")


def oneto_variance_bound(eps: float, n: int, emp_var: float) -> GeneralizationBound:
    """Return Oneto, Ridella and Anguita's bound by the empirical variance, for eps-private learners, as quoted.

    Parameters
    ----------
    eps : float
        At least 0; the quoted form has no delta.
    n : int
        Records, at least 2.
    emp_var : float
        Variance of the losses, see `empirical_variance`; at least 0.

    Returns
    -------
    GeneralizationBound
        ``(sqrt(4 V)(eps + n^-1/2) + 5n/(n-1) (eps^2 + 1/n), 3 exp(-n eps^2))``.

    Examples
    --------
    >>> round(oneto_variance_bound(0.05, 2000, 0.2).error, 12)
    0.079728863302
    """
    eps, n, emp_var = positive(eps, "eps", zero=True), count(n, "n", least=2), positive(emp_var, "emp_var", zero=True)
    error = math.sqrt(4 * emp_var) * (eps + 1 / math.sqrt(n)) + 5 * n / (n - 1) * (eps * eps + 1 / n)
    return _bound(error, 3 * math.exp(-n * eps * eps), "oneto_variance")


def empirical_variance(losses: Any) -> float:
    """Return the mean of ``(l_i - l_j)^2/2`` over ordered pairs of different records, the sample variance.

    Parameters
    ----------
    losses : array_like, shape (n,)
        In [0, 1]; at least two.

    Returns
    -------
    float

    Examples
    --------
    >>> empirical_variance([0.0, 1.0])
    0.5
    """
    array = np.asarray(losses)
    if array.dtype.kind not in "iuf":
        raise InputTypeError("losses", f"an array of {array.dtype}", "numbers in [0, 1]")
    if array.ndim != 1 or array.size < 2:
        raise InputError("losses", f"an array of shape {array.shape}", "at least two losses")
    found = array.astype(np.float64)
    if not ((found >= 0) & (found <= 1)).all():
        raise InputError("losses", "a value outside of [0, 1]", "numbers in [0, 1]")
    return float(found.var(ddof=1))
