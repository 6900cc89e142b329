"""Times of all kinds as numbers, and the window around each of them."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray, as_integer, as_real
from graphs.numerics.rounding import UNIT
from graphs.structure.reach import Reach
from graphs.structure.sort_keys import sort_ranks

__all__ = ["reach_of_times"]


def reach_of_times(times: Any, length: Any) -> Reach:
    """Return which records are at most `length` apart, in the order of their times.

    Parameters
    ----------
    times : sequence
        Numbers, or dates and times (all with a time zone or all without), in any order; equal ones are allowed.
    length : float, datetime.timedelta, numpy.timedelta64 or pandas.Timedelta
        A number for numbers, a time difference for dates and times; finite, not negative.

    Raises
    ------
    ArgumentError
        For no times at all, missing or infinite ones, times of several kinds, and another kind of length.

    Examples
    --------
    >>> reach_of_times([3.0, 0.0, 1.0], 1.0).last.tolist()
    [1, 1, 2]
    """
    ranks = sort_ranks("times", times)
    if not len(ranks):
        raise ArgumentError("times", "nothing", "one time for each record")
    order = np.argsort(ranks, kind="stable")
    values = getattr(times, "array", times)
    listed = values if hasattr(values, "dtype") else np.asarray(list(values))
    if listed.dtype.kind in "iuf" or (listed.dtype.kind == "O" and as_real(listed[0]) is not None):
        last = _among_numbers(np.asarray(listed), length, order)
    else:
        last = _among_instants(times, length, order)
    return Reach(order.astype(np.int64), last.astype(np.int64) - 1)


def _among_numbers(values: Any, length: Any, order: IntArray) -> IntArray:
    size = as_real(length)
    if size is None or not 0 <= size < math.inf:
        raise ArgumentError("length", repr(length), "a finite number, not negative, since times are numbers")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        record = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ArgumentError("times", f"{numbers[record]} for record {record}", "finite times")
    whole = as_integer(length)
    if values.dtype.kind == "i" and whole is not None and whole < 2**62 and np.abs(numbers).max() < 2.0**62:
        exact = values.astype(np.int64)[order]
        return _after(exact, exact + whole)
    places: FloatArray = numbers[order]
    # decimal numbers are rounded when they are stored: what is within rounding of the length is within it
    ends = places + size + 8 * UNIT * (np.abs(places) + size)
    return _after(places, ends)


def _among_instants(times: Any, length: Any, order: IntArray) -> IntArray:
    import pandas as pd

    expected = "a time difference (datetime.timedelta, pandas.Timedelta), finite, not negative, since times are dates"
    if not isinstance(length, datetime.timedelta | np.timedelta64):
        raise ArgumentError("length", repr(length), expected)
    try:
        size = pd.Timedelta(length)
    except ValueError:  # months and years, which have no one length
        raise ArgumentError("length", repr(length), expected) from None
    if pd.isna(size) or size < pd.Timedelta(0):
        raise ArgumentError("length", repr(length), expected)
    index = pd.Index(times if hasattr(times, "dtype") else list(times))
    if not isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex):
        if not isinstance(index[0], datetime.date):
            seen = f"times of type {type(index[0]).__name__}"
            raise ArgumentError("times", seen, "numbers, dates or times (pandas.Period: times.to_timestamp())")
        index = pd.DatetimeIndex(pd.to_datetime(list(index), utc=getattr(index[0], "tzinfo", None) is not None))
    unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[index.unit]
    places = np.asarray(index.asi8)[order]
    steps = size.as_unit("ns").value // unit  # differences of times are whole numbers of their unit
    room = (2**63 - 1) - np.maximum(places, 0)
    return _after(places, places + np.minimum(steps, room))


def _after(places: Any, ends: Any) -> IntArray:
    """Return how many places there are up to each end."""
    found: IntArray = np.searchsorted(places, ends, side="right").astype(np.int64)
    return found
