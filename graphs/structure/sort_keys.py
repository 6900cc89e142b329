"""Sort keys of records: numbers and times of all kinds."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import IntArray
from graphs.structure.labelled_values import Listed, refuse_unordered, with_labels_of

__all__ = ["read_order", "sort_ranks"]

_EXPECTED = "numbers or times, one sort key for each record"


def read_order(argument: str, keys: Any) -> Listed:
    """Return the rank of each record, with the labels of the keys.

    >>> read_order("order", {"ann": 2.5, "bob": 1.5}).items
    [1, 0]
    """
    values = list(keys.values()) if isinstance(keys, Mapping) else keys
    return with_labels_of(argument, sort_ranks(argument, values).tolist(), keys)


def sort_ranks(argument: str, keys: Any) -> IntArray:
    """Return 0 for the smallest key, 1 for the next larger one, and so on; equal keys have the same rank."""
    if isinstance(keys, bool | str | bytes) or not hasattr(keys, "__iter__"):
        raise ArgumentError(argument, repr(keys), _EXPECTED)
    refuse_unordered(argument, keys, _EXPECTED)
    found = getattr(keys, "array", keys)  # of a pandas Series or Index
    if hasattr(found, "asi8"):
        return _ranks(argument, found.asi8, found.isna())
    if hasattr(found, "codes") and hasattr(found, "categories"):
        if not found.ordered:
            advice = f"Pass {argument}.cat.as_ordered() for the order of the categories."
            raise ArgumentError(argument, "categories without an order", _EXPECTED, advice)
        return _ranks(argument, np.asarray(found.codes), np.asarray(found.codes) < 0)
    try:
        array = np.asarray(found if hasattr(found, "__array__") else list(found))
    except ValueError:
        raise ArgumentError(argument, "rows of different lengths", _EXPECTED) from None
    if array.ndim != 1:
        raise ArgumentError(argument, f"an array of shape {array.shape}", _EXPECTED)
    if array.dtype.kind in "mM":
        return _ranks(argument, array, np.isnat(array))
    if array.dtype.kind in "iuf":
        return _ranks(argument, array, array != array)
    if array.dtype.kind == "O":
        return _of_objects(argument, array.tolist())
    raise (
        _texts(argument)
        if array.dtype.kind in "SU"
        else ArgumentError(argument, f"keys of type {array.dtype}", _EXPECTED)
    )


def _ranks(argument: str, keys: Any, missing: Any) -> IntArray:
    if np.any(missing):
        raise _missing(argument, int(np.flatnonzero(missing)[0]))
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _of_objects(argument: str, keys: list[Any]) -> IntArray:
    """Return ranks of Python's dates, times and numbers, and of pandas' times and periods."""
    for record, key in enumerate(keys):
        if key is None or type(key).__name__ in ("NAType", "NaTType") or key != key:
            raise _missing(argument, record)
    if any(isinstance(key, str | bytes) for key in keys):
        raise _texts(argument)
    kinds = {_kind(key) for key in keys}
    if kinds == {"a time with a time zone", "a time without one"}:
        seen = "times with a time zone and times without one"
        expected = "times that all have a time zone, or none"
        raise ArgumentError(argument, seen, expected, "Use pandas.Timestamp.tz_localize.")
    if len(kinds) > 1:
        raise ArgumentError(argument, f"keys of several kinds ({', '.join(sorted(kinds))})", _EXPECTED)
    if kinds == {"a time with a time zone"}:  # compared as instants: clocks set back repeat an hour
        keys = [key.astimezone(datetime.UTC) for key in keys]
    try:
        rank = {key: place for place, key in enumerate(sorted(set(keys)))}
    except TypeError:
        raise ArgumentError(argument, f"keys that have no order ({kinds.pop()})", _EXPECTED) from None
    return np.array([rank[key] for key in keys], dtype=np.int64)


def _kind(key: Any) -> str:
    if isinstance(key, datetime.datetime):
        return "a time without one" if key.tzinfo is None else "a time with a time zone"
    if isinstance(key, datetime.date):
        return "a date"
    if isinstance(key, numbers.Number):
        return "a number"
    frequency = getattr(key, "freqstr", None)
    return f"a {type(key).__name__}{'' if frequency is None else f' of frequency {frequency}'}"


def _missing(argument: str, record: int) -> ArgumentError:
    return ArgumentError(argument, f"a missing key, of record {record}", "one key for each record")


def _texts(argument: str) -> ArgumentError:
    seen = "texts, which sort letter by letter ('10' before '9')"
    advice = f"Pass pandas.to_datetime({argument}) of dates, or pandas.to_numeric({argument}) of numbers."
    return ArgumentError(argument, seen, _EXPECTED, advice)
