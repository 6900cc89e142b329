"""What limits are computed from: numbers, aligned with their labels, and a probability of failure."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.models.law_free import Groups
from graphs.numerics.arguments import FloatArray, IntArray, as_real
from graphs.structure.labelled_values import align, read, refuse_unordered

__all__ = ["aligned_values", "check_failure", "level_numbers"]

#: Smallest probability of failure: tails are known to about 1e-12.
_LEAST_FAILURE = 1e-9


def check_failure(failure: object) -> float:
    """Return the probability with which a limit may fail.

    Raises
    ------
    ArgumentError
        When it is no number from 1e-9 to below 1.

    Examples
    --------
    >>> check_failure(1.5)
    Traceback (most recent call last):
    graphs.errors.ArgumentError: fit_failure: 1.5; expected: a probability of at least 1e-9 and below 1
    """
    value = as_real(failure)
    if value is None or not _LEAST_FAILURE <= value < 1.0:
        raise ArgumentError("fit_failure", repr(failure), "a probability of at least 1e-9 and below 1")
    return value


def aligned_values(values: Any, least: int, **labels: Any) -> tuple[FloatArray, tuple[list[Any], ...]]:
    """Return numbers, less their mean and over their norm, and labels in the same order of records.

    Parameters
    ----------
    values : sequence of length n, or Series
        Finite numbers that are not all the same.
    least : int
        How many there have to be.
    **labels : sequence of length n, or Series
        By the names of the arguments; aligned by index where there is one.

    Returns
    -------
    numbers : ndarray of shape (n,)
    labels : tuple of list

    Raises
    ------
    ArgumentError
        For missing or infinite values, values that are all the same, too few, and labels that do not match.

    Examples
    --------
    >>> aligned_values([1, 3], 2, groups=["a", "b"])
    (array([-0.70710678,  0.70710678]), (['a', 'b'],))
    """
    expected = "one number for each record"
    for name, given in (("values", values), *labels.items()):
        refuse_unordered(name, given, expected)
    columns = [read("values", values, expected)]
    columns += [read(name, given, "one label for each record") for name, given in labels.items()]
    for column in columns[1:]:
        if len(column.items) != len(columns[0].items):
            seen = f"{len(column.items)} labels for {len(columns[0].items)} values"
            raise ArgumentError(column.argument, seen, "one label for each record")
    found = align(columns)
    numbers = _numbers(found[0], expected)
    if len(numbers) < least:
        raise ArgumentError("values", f"{len(numbers)} values", f"at least {least}")
    centred = numbers - float(numbers.mean())
    largest = float(np.abs(centred).max())
    if not largest > 0.0:
        raise ArgumentError("values", "the same value for all records", "values that differ")
    centred = centred / largest
    return centred / float(np.sqrt(centred @ centred)), tuple(found[1:])


def level_numbers(name: str, labels: list[Any]) -> IntArray:
    """Return the number of each record's level, in the order in which levels first occur.

    Examples
    --------
    >>> level_numbers("users", ["ann", "bob", "ann"])
    array([0, 1, 0])
    """
    try:
        return Groups(labels).groups
    except ArgumentError as error:
        raise ArgumentError(name, error.seen, error.expected) from None


def _numbers(items: list[Any], expected: str) -> FloatArray:
    try:
        array = np.asarray(items)
    except ValueError:
        raise ArgumentError("values", "rows of different lengths", expected) from None
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise ArgumentError("values", f"values of type {array.dtype}, {array.ndim} dimensions", expected)
    numbers: FloatArray = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        where = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ArgumentError("values", f"record {where} is {numbers[where]}", "finite numbers")
    return numbers
