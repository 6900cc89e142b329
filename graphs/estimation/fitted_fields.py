"""Gaussian fields whose parameters are exact confidence limits: what is computed from them can be promised.

Proof: `graphs/PROOFS.md`, section on fitted families.
"""

from __future__ import annotations

from typing import Any

from graphs.errors import ArgumentError
from graphs.estimation.autoregression import Means, autoregression_limit
from graphs.fitted_limits import FittedLimits
from graphs.models.gaussian_field import GaussianField

__all__ = ["fit_autoregression"]

#: Largest limit that a model is made for.
_LARGEST = 1.0 - 1e-9


def fit_autoregression(
    values: Any, n: int, *, units: Any = None, fit_failure: float = 0.01, means: Means = "common"
) -> GaussianField:
    """Return the model of a Gaussian autoregressive series whose coefficient is an upper confidence limit.

    Parameters
    ----------
    values : sequence
        One number for each record of earlier data, of which the model's records are independent: other units of a
        panel, another recording. In order of time (within each unit), at equal distances.
    n : int
        Number of records of the model, one series; `Panel` of it for several units.
    units : sequence of hashable, optional
        The unit of each value; independent series with one coefficient. One series by default.
    fit_failure : float
        Probability with which the limit may fail. Certificates take it from the probability of error.
    means : {"common", "own"}
        Whether the values of all units have one mean, or each its own. With means of their own the model is that of a
        unit's deviations from its mean: guarantees are given the units' means.

    Returns
    -------
    GaussianField
        Its `fit_failure` is the one given.

    Raises
    ------
    ArgumentError
        For values that cannot be used, and for those that do not exclude a unit root.

    Notes
    -----
    Not an estimate: for every stationary normal autoregression of order 1 the coefficient is below the limit with a
    probability of at least 1 - fit_failure, and larger coefficients are never less cautious. For other laws nothing is
    promised: values with a distribution of another kind, a trend, a second lag, or noise of their own at each time.

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
    if not limit <= _LARGEST:
        seen = f"values that do not exclude a unit root (with an error of {fit_failure:g})"
        raise ArgumentError("values", seen, "more values, or changes from one record to the next")
    about = "one mean" if means == "common" else "a mean of its own in each unit, which is given"
    family = (
        f"records that are functions of their values and independent noise, values that are stationary normal "
        f"autoregressions of order 1 about {about}, with a coefficient of at most {limit:.6g}"
    )
    return GaussianField.ar(limit, n).fitted(FittedLimits(family, len(values), fit_failure))
