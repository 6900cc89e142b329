"""Exact upper confidence limits for variance components: one random effect, two crossed ones, or a panel.

Proofs: `graphs/PROOFS.md`, section on fitted families.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.estimation.autoregression import autoregression_limit
from graphs.estimation.fitted_values import aligned_values, check_failure, level_numbers
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.bisection import bisect, within
from graphs.numerics.rounding import up_relative

__all__ = ["crossed_limits", "intraclass_limit", "panel_limits"]

#: Pieces of the interval of coefficients; on each the limit of the effects is bounded by value and slope.
_PIECES = 4096

#: Relative error charged to quantiles of F, and to polynomials.
_ROUNDING = 1e-8


def panel_limits(values: Any, units: Any, failure: float = 0.01) -> tuple[float, float]:
    """Compute upper confidence limits for the effects of units and for an autoregression inside them.

    Use it for repeated measurements of many units. `fit_panel` builds the dependence model at the limits.

    Parameters
    ----------
    values : sequence of length n
        One number for each record, in order of time within each unit, at equal distances.
    units : sequence of hashable of length n
        Unit of each record. All units have the same number of records.
    failure : float, default 0.01
        Probability, between 0 and 1, with which either limit may be too small. Each limit gets half of it.

    Returns
    -------
    share : float
        Limit of the share of the variance that is due to effects of units, at most 1.
    coefficient : float
        Limit of the absolute coefficient of the series, at most 1.

    Raises
    ------
    ArgumentError
        If the values cannot be used, there are fewer than two units, or units differ in length or have fewer than three
        records.

    Notes
    -----
    The model is ``m + a_u + z_ut`` with independent normal effects a of one variance and independent stationary normal
    autoregressions z of order 1. `autoregression_limit` with ``means="own"`` bounds the coefficient. For each
    remaining coefficient, the means of units by generalised least squares and the residual squares have an exact F
    ratio, which limits the effects. The result is the largest of these limits over all remaining coefficients, bounded
    from above on small pieces.

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
    """Return an upper bound on the ratio of variances that is not rejected, over all remaining coefficients."""
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


#: Relative error charged to tails of F, and to sums of squares.
_TAIL, _SQUARES = 1e-9, 1e-9

#: Largest variance ratio of the search: an intra-class correlation of 1 - 1e-9.
_LARGEST = 1e9

#: Largest number of levels of a crossed effect: its information matrix is dense.
_LEVELS = 3000

#: Eigenvalues of an information matrix below this share of the largest count as zero, above _CLEAR as positive.
_ZERO, _CLEAR = 1e-11, 1e-5


def intraclass_limit(values: Any, groups: Any, failure: float = 0.01) -> float:
    """Compute an exact upper confidence limit for the intraclass correlation of normal values in groups.

    The intraclass correlation is the correlation of two records of one group. `fit_components` builds the dependence
    model at the limit.

    Parameters
    ----------
    values : sequence of length n
        One number for each record.
    groups : sequence of hashable of length n
        Group of each record. Groups may have any sizes.
    failure : float, default 0.01
        Probability with which the limit may lie below the correlation, between 0 and 1.

    Returns
    -------
    float
        Number, at most 1, that exceeds the correlation of two records of a group with probability at least 1 - failure.

    Raises
    ------
    ArgumentError
        If the values cannot be used, there are fewer than two groups, or no group has two records.

    Notes
    -----
    The model is ``m + a_g + e_i`` with independent normal effects of variance ``r s^2`` and errors of variance ``s^2``.
    Wald's ratio of mean squares, between groups and within, has an F distribution at the true r and falls as r grows
    [1]_. The limit is r / (1 + r) at the smallest r found that the test rejects. The level is exact for groups of any
    sizes. Other distributions have no guarantee.

    References
    ----------
    .. [1] A. Wald, "A note on the analysis of variance with unequal class frequencies", Annals of Mathematical
       Statistics 11 (1940), 96-100.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> firms = np.repeat(np.arange(100), 5)
    >>> values = rng.standard_normal(100)[firms] + 2.0 * rng.standard_normal(500)
    >>> 0.2 < intraclass_limit(values, firms) < 0.4
    True
    """
    share = check_failure(failure)
    columns, (labels,) = aligned_values(values, 3, groups=groups)
    index = level_numbers("groups", labels)
    sizes = np.bincount(index).astype(np.float64)
    if len(sizes) < 2 or len(sizes) == len(columns):
        seen = "one group only" if len(sizes) < 2 else "groups of one record each"
        raise ArgumentError("groups", seen, "at least two groups, one of them with two records")
    means = np.bincount(index, weights=columns) / sizes
    inside = float(((columns - means[index]) ** 2).sum())

    def between(ratio: float) -> float:
        weights = sizes / (1.0 + ratio * sizes)
        centre = float(weights @ means) / float(weights.sum())
        return float(weights @ (means - centre) ** 2)

    return _correlation(_ratio_limit(between, inside, len(sizes) - 1, len(columns) - len(sizes), share))


def crossed_limits(values: Any, users: Any, items: Any, failure: float = 0.01) -> tuple[float, float]:
    """Compute upper confidence limits for the shares of two crossed effects in the variance of normal values.

    Use it for ratings of items by users. `fit_components` builds the dependence model at the limits.

    Parameters
    ----------
    values : sequence of length n
        One number for each record.
    users : sequence of hashable of length n
        Level of the first effect for each record.
    items : sequence of hashable of length n
        Level of the second effect for each record.
    failure : float, default 0.01
        Probability, between 0 and 1, with which either limit may be too small. Each effect gets half of it.

    Returns
    -------
    user_share : float
        Limit of the correlation of two records that share the user alone, at most 1.
    item_share : float
        Limit of the correlation of two records that share the item alone, at most 1.

    Raises
    ------
    ArgumentError
        If the values cannot be used, an effect has more than 3,000 levels, or the design has no information about one.

    Notes
    -----
    The model is ``m + a_u + b_i + e`` with independent normal terms. To limit one effect, the other is fitted as a
    constant for each level. The residuals then do not depend on it. In the eigenvectors of the residual indicators the
    squares have variances ``s^2 (1 + r d)``. Their weighted mean against the mean square of the residuals of both
    effects has an F distribution at the true r [1]_. The level is exact for each effect, in designs of any kind.

    References
    ----------
    .. [1] J. F. Seely and Y. El-Bassiouni, "Applying Wald's variance component test", Annals of Statistics 11 (1983),
       197-201.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> users, items = np.divmod(np.arange(1500), 30)
    >>> noise = rng.standard_normal(1500)
    >>> values = 0.5 * rng.standard_normal(50)[users] + 0.5 * rng.standard_normal(30)[items] + noise
    >>> [bool(1 / 6 < share < 0.5) for share in crossed_limits(values, users, items)]
    [True, True]
    """
    share = check_failure(failure) / 2.0
    columns, (user_labels, item_labels) = aligned_values(values, 4, users=users, items=items)
    first, second = level_numbers("users", user_labels), level_numbers("items", item_labels)
    return _adjusted("users", columns, first, second, share), _adjusted("items", columns, second, first, share)


def _adjusted(name: str, values: FloatArray, levels: IntArray, others: IntArray, share: float) -> float:
    """Return the limit for one effect, after the other has been fitted."""
    rows, columns = int(levels.max()) + 1, int(others.max()) + 1
    if rows > _LEVELS:
        raise ArgumentError(name, f"{rows:,} levels", f"an effect of at most {_LEVELS:,} levels")
    table = np.zeros((rows, columns))
    np.add.at(table, (levels, others), 1.0)
    sizes = table.sum(axis=0)
    means = np.bincount(others, weights=values) / sizes
    left = values - means[others]
    information = np.diag(table.sum(axis=1)) - (table / sizes) @ table.T
    found, vectors = np.linalg.eigh(information)
    largest = float(table.sum(axis=1).max())
    if ((found > _ZERO * largest) & (found < _CLEAR * largest)).any():
        raise ArgumentError(name, "levels that are hardly connected", "the effects of a design whose rank is clear")
    kept = found > _CLEAR * largest
    eigenvalues, rank = found[kept], int(kept.sum())
    degrees = len(values) - columns - rank
    if not rank or degrees < 1:
        seen = "an effect that the other one explains" if not rank else "no records beside those that the effects take"
        raise ArgumentError(name, seen, "levels that distinguish both effects and the noise", "Pass more records.")
    sums = vectors[:, kept].T @ np.bincount(levels, weights=left, minlength=rows)
    squares = sums**2 / eigenvalues
    effects = vectors[:, kept] @ (sums / eigenvalues)
    rest = left - effects[levels]
    rest -= (np.bincount(others, weights=rest) / sizes)[others]

    def between(ratio: float) -> float:
        return float((squares / (1.0 + ratio * eigenvalues)).sum())

    return _correlation(_ratio_limit(between, float(rest @ rest), rank, degrees, share))


def _ratio_limit(between: Callable[[float], float], inside: float, rank: int, degrees: int, share: float) -> float:
    """Return the smallest ratio found at which the F test rejects, and with it all larger ones."""
    from scipy.special import fdtr

    if not inside > 0.0:
        raise ArgumentError("values", "no variation beside the effects", "values that differ within groups")

    def rejected(ratio: float) -> bool:
        quotient = between(ratio) / inside * (degrees / rank)
        return bool(fdtr(rank, degrees, up_relative(quotient, 2 * _SQUARES)) * (1.0 + _TAIL) <= share)

    if rejected(0.0):
        return 0.0
    if not rejected(_LARGEST):
        return math.inf
    return bisect(rejected, 0.0, _LARGEST, close=within(1e-9), geometric=True) if not rejected(1e-12) else 1e-12


def _correlation(ratio: float) -> float:
    if ratio in (0.0, math.inf):
        return 0.0 if ratio == 0.0 else 1.0
    return min(1.0, up_relative(ratio / (1.0 + ratio)))
