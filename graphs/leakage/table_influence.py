"""From tables of a record, the records near it and its quilt: influences and their ranges, whatever is known."""

from __future__ import annotations

import numpy as np

from graphs.leakage.messages import log_error
from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.elimination import SMALLEST
from graphs.structure.potentials import log_ratio_ranges

__all__ = ["known_subsets", "largest_influences", "largest_ranges"]


def known_subsets(values: FloatArray, seen: int) -> FloatArray:
    """Return what is left of a table for every set of near records that is known, and every value of these.

    Parameters
    ----------
    values : ndarray of shape (M, k, l_1, ..., l_s, ...)
        For each of M quilts: states of the record, of the near records, of the quilt's nodes.
    seen : int
        1 + s, the record and the near records.

    Returns
    -------
    ndarray of shape (C, M, k, z)
        C = product of (1 + l_j): each near record is either summed out or known to have one of its values; in the
        first entry all are summed out. z joint states of the quilt.

    Examples
    --------
    >>> known_subsets(np.arange(8.0).reshape(1, 2, 2, 2), 2)[:, 0].tolist()
    [[[2.0, 4.0], [10.0, 12.0]], [[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]
    """
    found = values[None]
    for _ in range(seen - 1):
        known = np.moveaxis(found, 3, 0)
        known = known.reshape(-1, *known.shape[2:])
        found = np.concatenate([found.sum(axis=3), known])
    return found.reshape(*found.shape[:3], -1)


def largest_ranges(configurations: FloatArray, roundings: float) -> tuple[FloatArray, FloatArray]:
    """Return D for any known near records, and for none.

    Parameters
    ----------
    configurations : ndarray of shape (C, M, k, z)
        As `known_subsets` returns them.
    roundings : float
        Relative error of the entries before near records were summed out, in units.

    Returns
    -------
    tuple of two ndarrays of shape (M,)
        Rounded up; infinite where a value of the quilt is possible for one state of the record and not for another.
    """
    error = (roundings + len(configurations)) * UNIT
    with np.errstate(divide="ignore"):
        logs = np.log(configurations)
    ranges = log_ratio_ranges(logs, np.asarray(error)).max(axis=-1, initial=0.0)
    return ranges.max(axis=0), ranges[0]


def largest_influences(configurations: FloatArray, remote: FloatArray, roundings: float) -> tuple[float, float]:
    """Return I of one quilt for any known near records, and for none.

    Parameters
    ----------
    configurations : ndarray of shape (C, k, z)
        As `known_subsets` returns them, for one quilt.
    remote : ndarray of shape (z,)
        Weight of the quilt's values from the rest of the network.
    roundings : float
        Relative error of a normalised entry, in units.

    Returns
    -------
    tuple of two floats
        Rounded up; infinite when the entries are too small to be told from zero.
    """
    weights = configurations * remote
    if (weights < SMALLEST).any() and ((weights < SMALLEST) & (configurations > 0) & (remote > 0)).any():
        return float("inf"), float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(weights / weights.sum(axis=-1, keepdims=True))
        largest = np.zeros(len(logs))
        for a in range(logs.shape[1] - 1):
            difference = logs[:, a : a + 1] - logs[:, a + 1 :]
            high = np.fmax(np.fmax.reduce(difference, axis=-1), -np.fmin.reduce(difference, axis=-1))
            largest = np.maximum(largest, np.where(np.isnan(high), 0.0, high).max(axis=-1, initial=0.0))
    slack = log_error(logs, (roundings + len(configurations)) * UNIT)
    found = up(largest + slack, 2)
    return float(found.max()), float(found[0])
