"""The variance that each sampling scheme gives a minibatch gradient [B24, Sec. 4.1, App. F]."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import batch

__all__ = ["minibatch_variance"]


def minibatch_variance(a: Any, batch_size: int) -> dict[str, float]:
    """Return the variance of a minibatch gradient under each sampling scheme.

    Parameters
    ----------
    a : array of shape (n,) or (n, d)
        The records' (clipped) gradients; for vectors the variance is the trace of the covariance.
    batch_size : int
        Divisor and, for a fixed size, number of records; less than n.

    Returns
    -------
    dict
        ``"poisson"``, ``"wor"``, ``"wr"``, and the ratios ``"wor/poisson"``, ``"wr/poisson"`` (NaN for no gradients).

    Raises
    ------
    InputError, InputTypeError
        For values that are not finite, or sizes out of range.

    Notes
    -----
    [B24, Sec. 4.1, App. F]. A fixed size without replacement has the larger variance exactly when the squared mean is
    below the mean square over n. In practice the ratio is within some percent of 1.

    Examples
    --------
    >>> found = minibatch_variance([1, -2, .5, 3, 4, -1.5, 2, 0], 3)
    >>> round(found["poisson"], 6), round(found["wor"], 6), found["wr"]
    (0.950521, 0.904018, 1.265625)
    """
    try:
        values = np.asarray(a, dtype=float)
    except (TypeError, ValueError):
        raise InputTypeError("a", f"a {type(a).__name__}", "an array of gradients, one row per record") from None
    if values.ndim not in (1, 2) or not np.isfinite(values).all():
        raise InputError("a", f"an array of shape {values.shape}", "finite gradients of shape (n,) or (n, d)")
    size, n = batch(batch_size, values.shape[0])
    rows = values.reshape(n, -1)
    scale = float(np.abs(rows).max()) or 1.0
    rows = rows / scale
    square = float(np.mean(np.sum(rows**2, axis=1))) * scale**2
    spread = float(np.sum(np.var(rows, axis=0))) * scale**2
    poisson = (1 / size - 1 / n) * square
    wor = n / (n - 1) * (1 / size - 1 / n) * spread
    wr = spread / size
    return {
        "poisson": poisson,
        "wor": wor,
        "wr": wr,
        "wor/poisson": wor / poisson if poisson else float("nan"),
        "wr/poisson": wr / poisson if poisson else float("nan"),
    }
