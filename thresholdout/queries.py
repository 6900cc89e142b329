"""What goes into a guard: per-record values, checked and reduced to one mean.

A query is a mean over records of values in a declared range ``[lower, upper]``. Everything behind the guard works
in units of that range, so the values are mapped to ``[0, 1]`` record by record; what is reduced is therefore a
mean of n numbers in ``[0, 1]``, whose sensitivity to one record is 1/n whatever the range.

Floating point: up to `WHOLE` values are summed at once, more in blocks of `BLOCK`, whose sums are added exactly. Whatever
the order inside a block of k values, its error is at most ``(k - 1) * 2**-53`` times the sum of their absolute values, to
first order, and the mechanism charges this to the sensitivity.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BLOCK", "WHOLE", "check_bounds", "unit_mean"]

WHOLE = 1 << 20
"""Most values that are summed at once."""

BLOCK = 1 << 17
"""Values in a block, where there are more than `WHOLE`."""

_ONE = np.uint64(np.array(1.0).view(np.uint64))


def check_bounds(bounds: object) -> tuple[float, float]:
    """Check the declared range of a query and return it as two floats.

    Raises
    ------
    InputError
        Unless it is a pair of finite numbers, the first below the second.

    Examples
    --------
    >>> check_bounds((0, 5))
    (0.0, 5.0)
    """
    if isinstance(bounds, str):
        raise InputTypeError("bounds", repr(bounds), "a pair of numbers (lower, upper)")
    try:
        lower, upper = map(float, bounds)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise InputError("bounds", repr(bounds), "a pair of numbers (lower, upper)") from None
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper and math.isfinite(upper - lower)):
        raise InputError("bounds", repr(bounds), "finite numbers, lower < upper")
    return lower, upper


def unit_mean(values: object, n: int | None, bounds: tuple[float, float], argument: str) -> float:
    """Check per-record values and return their mean in units of the range, in ``[0, 1]``.

    Parameters
    ----------
    values : array-like of shape (n,)
        Booleans, integers or floats in the range; a list, array or series, taken by position.
    n : int or None
        How many there must be; ``None`` for any number of at least one.
    bounds : tuple of float
        The declared range, checked by `check_bounds`.
    argument : str
        How error messages call the values.

    Raises
    ------
    InputError
        When the length is wrong, or a value is missing, infinite or out of range.
    InputTypeError
        When the values are not real numbers.

    Examples
    --------
    >>> unit_mean([True, False, True, True], 4, (0, 1), "train_values")
    0.75
    >>> unit_mean([0, 5], 2, (0, 10), "train_values")
    0.25
    >>> unit_mean([0.5, 1.5], 2, (0, 1), "train_values")
    Traceback (most recent call last):
    thresholdout.errors.InputError: train_values: 1.5 at position 1; expected: values in [0, 1]...
    """
    array = values if type(values) is np.ndarray and values.dtype != object else _as_array(values, argument)
    if array.ndim != 1:
        raise InputError(argument, f"an array of shape {array.shape}", "one value per record, shape (n,)")
    size = array.size
    if size != n and (n is not None or size < 1):
        wanted = f"{n} values, one per record" if n is not None else "at least one value"
        raise InputError(argument, f"{size} values", wanted)
    kind = array.dtype.kind
    if kind == "b" and bounds == (0.0, 1.0):
        return int(np.count_nonzero(array)) / size
    if kind not in "biuf":
        raise InputTypeError(argument, f"values of type {array.dtype}", "real numbers or booleans")
    if array.dtype == np.float64 and bounds == (0.0, 1.0) and array.flags.c_contiguous:
        # The bit patterns of the floats in [0, 1] are the unsigned integers up to that of 1.0; those of negative
        # numbers and NaN lie above. One pass finds them all; -0.0 is let through by the slow check.
        if array.view(np.uint64).max() <= _ONE:
            return min(1.0, _sum(array) / size)
        _check_range(array, bounds, argument)
        return min(1.0, max(0.0, _sum(array) / size))
    floats = np.ascontiguousarray(array, dtype=np.float64)
    _check_range(floats, bounds, argument)
    lower, upper = bounds
    unit = (floats - lower) / (upper - lower)
    return min(1.0, max(0.0, _sum(unit) / size))


def _as_array(values: object, argument: str) -> NDArray[Any]:
    """Turn values into an array without losing sight of missing or complex ones."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InputTypeError(argument, f"a {type(values).__name__}", "one value per record, shape (n,)")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(argument, "values of uneven shapes", "one value per record, shape (n,)") from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise InputTypeError(argument, "values that are not numbers", "real numbers or booleans") from None
    return array


def _sum(array: NDArray[np.float64]) -> float:
    """Sum a contiguous array; `numpy.einsum` does it in vector registers and, unlike a dot product, in one thread."""
    size = array.size
    if size <= WHOLE:
        return float(np.einsum("i->", array))
    return math.fsum(float(np.einsum("i->", array[k : k + BLOCK])) for k in range(0, size, BLOCK))


def _check_range(array: NDArray[np.float64], bounds: tuple[float, float], argument: str) -> None:
    """Name the first value that is not in the range."""
    lower, upper = bounds
    wrong = ~((array >= lower) & (array <= upper))
    if wrong.any():
        where = int(np.argmax(wrong))
        count = int(np.count_nonzero(wrong))
        more = f" (and {count - 1} more)" if count > 1 else ""
        raise InputError(
            argument,
            f"{array[where]:g} at position {where}{more}",
            f"values in [{lower:g}, {upper:g}]; name another range with bounds=(lower, upper)",
        )
