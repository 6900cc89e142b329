"""The visible range of correlations in a series: advice for its declaration, not a bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from graphs.numerics.arguments import FloatArray

__all__ = ["seen_range"]

_MOST_LAGS: Final = 100  # bounds the number of tests
_LEVEL: Final = 0.05  # of all lags together; a range that is too long only costs width
_LEAST: Final = 20  # labels below which Bartlett's limit is too rough
_MOST_CLASSES: Final = 100  # integer labels with more values are numbers


def seen_range(labels: Any) -> tuple[int, int] | None:
    """Return the largest lag with a significant autocorrelation of labels in time order, and the number of lags tested.

    Notes
    -----
    Significance is by Bartlett's limit (with the variance from correlations at smaller lags) at level 0.05 for all lags
    together. The lag is 0 if none is significant. The result is None for labels that are neither numbers nor classes.
    Dependence may be longer than this.

    Examples
    --------
    >>> seen_range(np.repeat(np.random.default_rng(0).integers(0, 2, 200), 4))[0]
    3
    """
    from scipy.special import ndtri

    from graphs.estimation.permutation import autocorrelations, centred

    columns = _features(labels)
    if columns is None or len(columns) < _LEAST or not np.ptp(columns, axis=0).any():
        return None
    lags = min(len(columns) // 4, _MOST_LAGS)
    limit = -float(ndtri(_LEVEL / (2 * lags))) / math.sqrt(len(columns))
    furthest, earlier = 0, 1.0
    for lag, correlation in enumerate(autocorrelations(centred(columns), lags).tolist(), start=1):
        if abs(correlation) > limit * math.sqrt(earlier):
            furthest = lag
        earlier += 2.0 * correlation**2
    return furthest, lags


def _features(labels: Any) -> FloatArray | None:
    """Return numbers as one column, and classes as one indicator each."""
    values = np.asarray(labels)
    if values.ndim != 1:
        return None
    if values.dtype.kind == "f" or (values.dtype.kind in "iu" and len(np.unique(values)) > _MOST_CLASSES):
        column: FloatArray = values.astype(np.float64)[:, None]
        return column if np.isfinite(column).all() else None
    try:
        names, codes = np.unique(values, return_inverse=True)
    except TypeError:
        return None
    return np.eye(len(names))[codes] if len(names) <= _MOST_CLASSES else None
