"""Checks of arguments: integers, numbers, probabilities, and the arguments of all models."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError

__all__ = [
    "LEAST_PROBABILITY",
    "FloatArray",
    "IntArray",
    "as_integer",
    "as_real",
    "check_count",
    "check_epsilon",
    "check_probabilities",
    "check_rows",
    "check_target",
    "check_word",
    "sum_tolerance",
]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

#: Largest distance of the sum of probabilities in double precision from one: typed decimals, not rounding errors.
SUM_TOLERANCE = 1e-9

#: Smallest positive probability. Smaller floats have fewer digits and lose more when rows are normalised.
LEAST_PROBABILITY = float(np.finfo(np.float64).tiny)


def as_integer(value: object) -> int | None:
    """Return an integer of any type as an int, or None for other values, booleans and whole floats among them."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def as_real(value: object) -> float | None:
    """Return a real number of any type as a float, or None for other values: booleans, texts and arrays.

    Integers and fractions that are too large for a float become infinite.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if operator.index(math.trunc(value)) > 0 else -math.inf


def check_count(argument: str, value: object, least: int = 1) -> int:
    """Return `value` as an integer of at least `least`."""
    expected = f"an integer of at least {least}"
    count = as_integer(value)
    if count is None:
        raise ArgumentError(argument, repr(value), expected)
    if count < least:
        raise ArgumentError(argument, repr(count), expected)
    return count


def check_word(
    argument: str, value: object, words: Sequence[str], expected: str = "", error: type[ArgumentError] = ArgumentError
) -> str:
    """Return a choice among words."""
    if not isinstance(value, str) or value not in words:
        raise error(argument, repr(value), expected or " or ".join(map(repr, words)))
    return value


def real_array(argument: str, value: Any, expected: str) -> FloatArray:
    """Return `value` as a float64 array; complex, text, objects and ragged lists are refused."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ArgumentError(argument, "rows of different lengths", expected) from None
    if array.dtype.kind not in "iuf":
        raise ArgumentError(argument, f"values of type {array.dtype}", expected)
    return array.astype(np.float64)


def check_epsilon(value: Any, n: int) -> float | FloatArray:
    """Return the privacy budget of the records: one number, or one per record.

    >>> check_epsilon([0.1, 0.1], 2)
    0.1
    """
    expected = f"a number, or an array of {n} numbers, finite and not negative"
    array = real_array("epsilon", value, expected)
    if array.ndim and array.shape != (n,):
        raise ArgumentError("epsilon", f"an array of shape {array.shape}", expected)
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        raise ArgumentError("epsilon", repr(float(array[bad].flat[0])), expected)
    if array.ndim == 0 or (array == array.flat[0]).all():
        return float(array.flat[0])
    return array


def check_target(value: Any) -> float:
    """Return a target for a leakage.

    >>> check_target(1)
    1.0
    """
    expected = "one positive, finite number"
    array = real_array("epsilon", value, expected)
    if array.ndim or not math.isfinite(float(array)) or float(array) <= 0:
        raise ArgumentError("epsilon", repr(value), expected)
    return float(array)


def check_probabilities(argument: str, value: Any, ndim: int) -> FloatArray:
    """Return probabilities whose last axis sums to one.

    >>> check_probabilities("transition", [[0.5, 0.5], [0.97, 0.0]], 2)
    Traceback (most recent call last):
    graphs.errors.ArgumentError: transition must be a table whose rows sum to 1; got row 1, whose sum is 0.97.
    """
    shape = "a square matrix of probabilities" if ndim == 2 else "a vector of probabilities"
    if hasattr(value, "columns") and hasattr(value, "index"):
        rows, columns = list(value.index), list(value.columns)
        if rows != columns and set(rows) == set(columns):
            seen = "a table whose columns are in another order than its rows"
            expected = "a table whose columns are in the order of its rows"
            raise ArgumentError(argument, seen, expected, f"Pass {argument}[{argument}.index].")
    elif hasattr(value, "iloc") and list(value.index) != list(range(len(value))):
        expected, advice = "values in the order of the states, without labels", f"Pass {argument}[states].to_numpy()."
        raise ArgumentError(argument, "a series with labels of its own", expected, advice)
    array = real_array(argument, value, shape)
    if array.ndim != ndim or array.size == 0 or (ndim == 2 and array.shape[0] != array.shape[1]):
        raise ArgumentError(argument, f"an array of shape {array.shape}", shape)
    return _normalised(argument, array, sum_tolerance(value, array.shape[-1]))


def check_rows(argument: str, value: Any) -> FloatArray:
    """Return a table of laws, one in each row, not necessarily square, as in `check_probabilities`.

    >>> check_rows("emission", [[1, 0, 0], [0.5, 0.25, 0.25]]).shape
    (2, 3)
    """
    shape = "a matrix with one row of probabilities for each state"
    array = real_array(argument, value, shape)
    if array.ndim != 2 or array.size == 0:
        raise ArgumentError(argument, f"an array of shape {array.shape}", shape)
    return _normalised(argument, array, sum_tolerance(value, array.shape[-1]))


def sum_tolerance(value: Any, length: int) -> float:
    """Return the largest distance of a row's sum from one: each entry is rounded to half a unit in its last place."""
    kind = np.asarray(value).dtype
    return max(SUM_TOLERANCE, length * float(np.finfo(kind).eps)) if kind.kind == "f" else SUM_TOLERANCE


def _normalised(argument: str, array: FloatArray, tolerance: float) -> FloatArray:
    ndim = array.ndim
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        place = f"entry {where[0] if ndim == 1 else where}, which is {array[where]:.6g}"
        raise ArgumentError(argument, place, "finite probabilities, none of them negative")
    faint = (array > 0) & (array < LEAST_PROBABILITY)
    if faint.any():
        where = tuple(int(k) for k in np.argwhere(faint)[0])
        place = f"entry {where[0] if ndim == 1 else where}, which is {array[where]:.6g}"
        raise ArgumentError(
            argument, place, "probabilities that are 0 or at least 2.3e-308", "Write 0 for smaller ones."
        )
    # an exact sum, so that a model is the same on every platform
    sums = np.array([[math.fsum(row)] for row in np.atleast_2d(array).tolist()]).reshape(*array.shape[:-1], 1)
    off = np.abs(sums - 1) > tolerance
    if off.any():
        row = int(np.argwhere(off)[0][0])
        seen = f"row {row}, whose sum is {float(sums[row, 0]):.10g}" if ndim == 2 else f"the sum {float(sums[0]):.10g}"
        rows = "a table whose rows sum to 1" if ndim == 2 else "probabilities that sum to 1"
        raise ArgumentError(argument, seen, rows)
    normalised: FloatArray = array / sums
    return normalised
