"""Upper confidence limits for a panel: the effects of units beside an autoregression inside them.

Proof: `graphs/PROOFS.md`, section on fitted families.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.estimation.autoregression import autoregression_limit
from graphs.estimation.fitted_values import aligned_values, check_failure, level_numbers
from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import up_relative

__all__ = ["panel_limits"]

#: Pieces of the interval of coefficients, on each of which the limit of the effects is bounded.
_PIECES = 4096

#: Relative error granted to quantiles of F, and to polynomials.
_ROUNDING = 1e-8


def panel_limits(values: Any, units: Any, failure: float = 0.01) -> tuple[float, float]:
    """Return upper confidence limits for effects of units and for an autoregression inside them.

    Parameters
    ----------
    values : sequence of length n
        One number for each record, in order of time within each unit, at equal distances; units of one length.
    units : sequence of hashable, length n
        The unit of each record.
    failure : float
        Probability with which either limit may be too small, in (0, 1); each gets half of it.

    Returns
    -------
    share, coefficient : float
        At most so much of the variance is that of the units' effects, and the absolute coefficient of the series is at
        most so large; each at most 1.

    Raises
    ------
    ArgumentError
        For values that cannot be used, fewer than two units, units of different lengths or of fewer than three records.

    Notes
    -----
    For values ``m + a_u + z_ut`` with independent normal effects a of one variance and independent stationary normal
    autoregressions z of order 1. Coefficients are limited by `autoregression_limit` with means of their own. For each
    of them the means of units by generalised least squares and the squares of what is left have an exact F ratio, which
    limits the effects; the limit is the largest of these over all coefficients that are left, bounded from above on
    small pieces.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> firms = np.repeat(np.arange(60), 10)
    >>> values = rng.standard_normal(60)[firms] + rng.standard_normal(600)
    >>> share, coefficient = panel_limits(values, firms)
    >>> 0.5 < share < 0.75, 0.0 < coefficient < 0.3
    (True, True)
    """
    half = check_failure(failure) / 2.0
    columns, (labels,) = aligned_values(values, 6, units=units)
    index = level_numbers("units", labels)
    sizes = np.bincount(index)
    if len(sizes) < 2 or sizes.min() != sizes.max() or sizes[0] < 3:
        seen = f"{len(sizes)} units of {sizes.min()} to {sizes.max()} records"
        raise ArgumentError("units", seen, "at least two units of one length, with three records or more each")
    table = columns[np.argsort(index, kind="stable")].reshape(len(sizes), -1)
    coefficient = autoregression_limit(columns, index, half, means="own")
    if coefficient >= 1.0:
        return 1.0, 1.0
    ratio = _largest_ratio(table, coefficient, half)
    share = 1.0 if ratio == math.inf else up_relative(max(ratio, 0.0) / (1.0 + max(ratio, 0.0)))
    return min(1.0, share) if ratio > 0.0 else 0.0, coefficient


def _largest_ratio(table: FloatArray, coefficient: float, share: float) -> float:
    """Return an upper bound on the ratio of variances that is not rejected, over all coefficients that are left."""
    from scipy.special import fdtri

    count, length = table.shape
    degrees = (count - 1, count * (length - 1))
    scale = degrees[1] / degrees[0] / (float(fdtri(*degrees, share)) * (1.0 - _ROUNDING))
    # functions of w = 1 - phi: ends and middles of units enter their means as e + w s
    ends, middles = table[:, 0] + table[:, -1], table[:, 1:-1].sum(axis=1)
    e, s = ends - ends.mean(), middles - middles.mean()
    between = np.array([e @ e, 2.0 * (e @ s), s @ s])
    own = table - table.mean(axis=1)[:, None]
    e, s = own[:, 0] + own[:, -1], own[:, 1:-1].sum(axis=1)
    squares, inner, products = (own**2).sum(), (own[:, 1:-1] ** 2).sum(), (own[:, 1:] * own[:, :-1]).sum()
    form = np.array([squares + inner - 2.0 * products, 2.0 * (products - inner), inner])
    weight = np.array([2.0, length - 2.0])
    inside = np.polynomial.polynomial.polysub(np.convolve(form, weight), np.array([0.0, e @ e, 2.0 * (e @ s), s @ s]))
    edges = (
        np.geomspace(1.0 - coefficient, 1.0 + coefficient, _PIECES + 1)
        * np.r_[1.0 - _ROUNDING, np.ones(_PIECES - 1), 1.0 + _ROUNDING]
    )
    low, high = edges[:-1], edges[1:]
    most, least = _bound(between, low, high, 1.0), _bound(inside, low, high, -1.0)
    if not (least > 0.0).all():
        return math.inf
    variances = np.maximum(np.maximum(low * (2.0 - low), high * (2.0 - high)), (low <= 1.0) & (high >= 1.0))
    ratios = scale * np.maximum(most, 0.0) * variances / (2.0 + low * weight[1]) / least
    own_means = (2.0 - high) / (2.0 + high * weight[1])
    return float((ratios * (1.0 + _ROUNDING) - own_means * (1.0 - _ROUNDING)).max())


def _bound(polynomial: FloatArray, low: FloatArray, high: FloatArray, sign: float) -> FloatArray:
    """Return an upper (sign 1) or lower bound on a polynomial over intervals of positive numbers."""
    at = np.polynomial.polynomial.polyval
    middle = 0.5 * (low + high)
    slopes = at(high, np.abs(polynomial[1:]) * np.arange(1, len(polynomial)))
    rounding = _ROUNDING * 1e-4 * at(high, np.abs(polynomial))
    found: FloatArray = at(middle, polynomial) + sign * (0.5 * (high - low) * slopes + rounding)
    return found
