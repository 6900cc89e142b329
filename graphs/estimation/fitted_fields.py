"""Gaussian fields whose parameters are exact confidence limits, so that guarantees hold for the unknown law.

Proof: `graphs/PROOFS.md`, section on fitted families.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.estimation.autoregression import Means, autoregression_limit
from graphs.estimation.spatial_range import range_limit
from graphs.estimation.variance_ratios import crossed_limits, intraclass_limit, panel_limits
from graphs.fitted_limits import FittedLimits
from graphs.models.gaussian_field import GaussianField
from graphs.models.panel import Panel
from graphs.numerics.arguments import check_count

__all__ = ["fit_autoregression", "fit_components", "fit_kernel", "fit_panel"]

#: First words of every family.
_RECORDS = "records that are functions of their values and independent noise, values that are"

#: Largest limit with a model. Nearer to 1 the records count as copies.
_LARGEST = 1.0 - 1e-9

#: Smallest normal number, above every correlation that is not represented.
_SMALLEST = float(np.finfo(np.float64).tiny)


def fit_autoregression(
    values: Any, n: int, *, units: Any = None, fit_failure: float = 0.01, means: Means = "common"
) -> GaussianField:
    """Fit an autoregressive series of order 1 whose coefficient is an upper confidence limit.

    Use it to derive a conservative dependence model for a holdout from other, independent series. The coefficient is
    not estimated but bounded from above, so guarantees that use the model hold for the unknown coefficient as well.

    Parameters
    ----------
    values : sequence
        One number for each observation, in order of time (within each unit) and at equal time steps. The observations
        are independent of the model's records, because they come from other units or from another recording.
    n : int
        Number of records of the model, one series. Use `Panel` of the result for several units.
    units : sequence of hashable, default None
        Unit of each value. Units are independent series with one coefficient. If None, the values are one series.
    fit_failure : float, default 0.01
        Probability with which the limit may lie below the absolute coefficient. A certificate subtracts it from its
        error probability.
    means : {"common", "own"}, default "common"
        Means of the units. "common": all units have one mean. "own": each unit has its own, and the model is that of a
        unit's deviations from its mean, so guarantees are conditional on the units' means.

    Returns
    -------
    GaussianField
        Model of n records. Its attribute `fit_failure` is the probability that was passed.

    Raises
    ------
    ArgumentError
        If the values cannot be used, or do not exclude a unit root.

    Notes
    -----
    For every stationary normal autoregression of order 1 the absolute coefficient is below the limit with probability
    at least 1 - fit_failure (see `autoregression_limit`), and larger coefficients are never less conservative. Other
    distributions have no guarantee: values that are not normal, a trend, a second lag, or measurement noise.

    Examples
    --------
    >>> import numpy as np
    >>> from graphs import Panel
    >>> values = Panel(GaussianField.ar(0.5, n=20), 40).sample(np.random.default_rng(0))
    >>> series = fit_autoregression(values, 20, units=np.repeat(np.arange(40), 20))
    >>> panel = Panel(series, 200)
    >>> panel.fit_failure, bool(2.8 < panel.variance_inflation() < 4.5)
    (0.01, True)
    """
    limit = autoregression_limit(values, units, fit_failure, means=means)
    _check_root(limit, fit_failure)
    about = "one mean" if means == "common" else "a mean of its own in each unit, which is given"
    family = (
        f"{_RECORDS} stationary normal autoregressions of order 1 about {about}, with a coefficient of at most "
        f"{limit:.6g}"
    )
    return GaussianField.ar(limit, n).fitted(FittedLimits(family, len(values), fit_failure))


def fit_panel(values: Any, units: Any, n_units: int, length: int, *, fit_failure: float = 0.01) -> Panel:
    """Fit a panel of units with random effects and autoregressive series, at upper confidence limits.

    Use it for repeated measurements of patients or firms, if data of other units are available. The share of the unit
    effects in the variance and the coefficient of the series are bounded from above, so guarantees that use the model
    hold for the unknown values as well.

    Parameters
    ----------
    values : sequence
        One number for each record of units other than the model's, in order of time within each unit.
    units : sequence of hashable
        Unit of each value. All units have the same number of values.
    n_units : int
        Number of units of the model.
    length : int
        Number of records of each unit of the model.
    fit_failure : float, default 0.01
        Probability with which either limit may fail. Certificates subtract it from the error probability.

    Returns
    -------
    Panel
        Panel of Gaussian fields with correlations ``s + (1 - s) phi^d`` at lag d, at the limits of the share s and the
        coefficient phi. Its attribute `fit_failure` is the given one.

    Raises
    ------
    ArgumentError
        If the values are not accepted by `panel_limits`, do not exclude a unit root, or exclude only effects without
        noise.

    Notes
    -----
    The guarantee requires normal effects of units and normal autoregressions of order 1, as in `panel_limits`.
    Correlations grow with both limits, and larger correlations are never less conservative.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> firms = np.repeat(np.arange(100), 10)
    >>> values = 0.3 * rng.standard_normal(100)[firms] + rng.standard_normal(1000)
    >>> panel = fit_panel(values, firms, 50, 8)
    >>> panel.n, panel.fit_failure, bool(panel.variance_inflation() < 4.0)
    (400, 0.01, True)
    """
    count, size = check_count("n_units", n_units), check_count("length", length)
    share, coefficient = panel_limits(values, units, fit_failure)
    _check_root(coefficient, fit_failure)
    _check_rest([share], fit_failure)
    unit = GaussianField.components(
        {"unit": np.zeros(size, dtype=np.int64)}, {"unit": share}, series="unit", coefficients=coefficient
    )
    family = (
        f"{_RECORDS} one mean, independent normal effects of units with at most {share:.6g} of the variance, and "
        f"stationary normal autoregressions of order 1 with a coefficient of at most {coefficient:.6g}"
    )
    return Panel(unit.fitted(FittedLimits(family, len(values), fit_failure)), count)


def fit_components(
    values: Any, labels: Mapping[str, Any], records: Mapping[str, Any], *, fit_failure: float = 0.01
) -> GaussianField:
    """Fit one random effect, or two crossed ones, whose shares of the variance are upper confidence limits.

    Use it for records that are grouped by hospital or rater, or crossed by user and item, if independent data of the
    same kind are available. The shares are bounded from above, so guarantees that use the model hold for the unknown
    shares as well.

    Parameters
    ----------
    values : sequence
        One number for each observation. The observations are independent of the model's records: they share no
        hospital, rater, user or item.
    labels : mapping from factor to labels
        Group of each value, for one factor (hospital, rater) or two crossed factors (user and item).
    records : mapping from factor to labels
        Group of each record of the model, for the same factors.
    fit_failure : float, default 0.01
        Probability with which either limit may fail. Certificates subtract it from the error probability.

    Returns
    -------
    GaussianField
        Model of `GaussianField.components` at the limits. Its attribute `fit_failure` is the given one.

    Raises
    ------
    ArgumentError
        If the values are not accepted by `intraclass_limit` or `crossed_limits`, there is no factor or more than two,
        the records have other factors, or the limits sum to 1 or more.

    Notes
    -----
    The guarantee requires normal effects and normal noise. Records that share a level correlate by at most the limit of
    its factor, records that share both by at most the sum. Larger correlations are never less conservative.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> hospitals = np.repeat(np.arange(200), 10)
    >>> values = 0.3 * rng.standard_normal(200)[hospitals] + rng.standard_normal(2000)
    >>> model = fit_components(values, {"hospital": hospitals}, {"hospital": np.repeat(np.arange(50), 20)})
    >>> model.fit_failure, bool(2.5 < model.variance_inflation() < 4.5)
    (0.01, True)
    """
    factors = list(labels)
    if not 1 <= len(factors) <= 2:
        raise ArgumentError("labels", f"{len(factors)} factors", "a mapping of one factor, or of two crossed factors")
    if set(records) != set(factors):
        expected = f"a mapping of the factors of labels, {sorted(map(str, factors))}"
        raise ArgumentError("records", f"the factors {sorted(map(str, records))}", expected)
    given = [labels[factor] for factor in factors]
    if len(factors) == 1:
        limits = [intraclass_limit(values, given[0], fit_failure)]
    else:
        limits = list(crossed_limits(values, given[0], given[1], fit_failure))
    _check_rest(limits, fit_failure)
    shares = dict(zip(factors, limits, strict=True))
    stated = " and ".join(f"{factor} with at most {share:.6g} of the variance" for factor, share in shares.items())
    family = f"{_RECORDS} one mean, independent normal effects of {stated}, and independent normal noise"
    model = GaussianField.components({factor: records[factor] for factor in factors}, shares)
    return model.fitted(FittedLimits(family, len(values), fit_failure))


def fit_kernel(values: Any, coordinates: Any, records: Any, *, fit_failure: float = 0.01) -> GaussianField:
    """Fit exponential correlations of records at places, with a range that is an upper confidence limit.

    Use it for maps and sensors, if values from another region or time are available. The range of the correlation is
    bounded from above, so guarantees that use the model hold for the unknown range as well.

    Parameters
    ----------
    values : sequence
        One number for each observation. The observations are independent of the model's records, because they come from
        another region or time.
    coordinates : array_like of shape (m, d)
        Coordinates of each value, no two at one place, at most 2,000. Distances are Euclidean.
    records : array_like of shape (n, d)
        Coordinates of each record of the model, in the same units.
    fit_failure : float, default 0.01
        Probability with which the limit may fail. Certificates subtract it from the error probability.

    Returns
    -------
    GaussianField
        Model of n records with correlations ``exp(-d/l)`` at the limit l of the range. Its attribute `fit_failure` is
        the given one.

    Raises
    ------
    ArgumentError
        If an argument is not accepted by `range_limit` or `GaussianField.kernel`, or the values do not exclude any
        range.

    Notes
    -----
    The guarantee requires jointly normal values with one mean, one variance and correlations ``exp(-d/l)``, as in
    `range_limit`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> places = rng.random((150, 2))
    >>> values = GaussianField.kernel(places, lambda d: np.exp(-d / 0.02)).sample(rng)
    >>> model = fit_kernel(values, places, 10.0 + rng.random((300, 2)))
    >>> model.fit_failure, bool(1.5 < model.variance_inflation() < 8.0)
    (0.01, True)
    """
    limit = range_limit(values, coordinates, fit_failure)
    if limit == math.inf:
        seen = f"values that exclude no range (with an error of {fit_failure:g})"
        advice = "Pass more values, or values from a larger region."
        raise ArgumentError("values", seen, "values that exclude some range", advice)
    family = (
        f"{_RECORDS} jointly normal with one mean, one variance and correlations exp(-d/l) at the distance d, "
        f"l at most {limit:.6g}"
    )
    # a correlation that underflows is not 0: distant records still depend on each other
    model = GaussianField.kernel(records, lambda distances: np.maximum(np.exp(-distances / limit), _SMALLEST))
    return model.fitted(FittedLimits(family, len(values), fit_failure))


def _check_root(limit: float, fit_failure: float) -> None:
    if not limit <= _LARGEST:
        seen = f"values that do not exclude a unit root (with an error of {fit_failure:g})"
        advice = "Pass more values, or the differences between neighbouring records."
        raise ArgumentError("values", seen, "values that exclude a unit root", advice)


def _check_rest(shares: list[float], fit_failure: float) -> None:
    if not math.fsum(shares) <= _LARGEST:
        seen = (
            f"limits {', '.join(f'{share:.3g}' for share in shares)} of the shares (with an error of {fit_failure:g})"
        )
        advice = "Pass values with more levels of each effect, or use Groups."
        raise ArgumentError("values", seen, "values whose limits sum to less than 1", advice)
