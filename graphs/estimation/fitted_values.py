"""Inputs of confidence limits, and tail bounds for ratios of quadratic forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.models.law_free import Groups
from graphs.numerics.arguments import FloatArray, IntArray, as_real
from graphs.numerics.rounding import UNIT
from graphs.structure.labelled_values import align, read, refuse_unordered

__all__ = ["aligned_values", "check_failure", "level_numbers", "ratio_tail"]

#: Slopes s of Markov's bound exp(-s Q), as shares of the largest slope with a finite expectation. All are valid.
_SLOPES = np.r_[np.geomspace(1e-6, 0.5, 40), 1.0 - np.geomspace(0.4, 1e-3, 12)]

#: Most terms of the Fourier series, and terms of its first block; a truncated series adds its tail bound.
_MOST_POINTS = 1 << 17
_BLOCK = 64


def ratio_tail(weights: FloatArray, counts: FloatArray, at: float, error: float = 1e-13, enough: float = 0.0) -> float:
    """Bound the probability that a weighted mean of squares of normal variables is at most a number.

    The probability that a weighted sum Q of squares is negative is the mean of a wave that is 1 below 0 and 0 above, as
    long as Q stays within half a period. The wave's Fourier series gives the mean by the characteristic function
    [Davies 1973]. The bound adds the probability below half a period, the truncated terms, and rounding.
    """
    scaled = weights - at
    if scaled.min() >= 0.0:
        return 0.0 if scaled.max() > 0.0 else 1.0
    if scaled.max() <= 0.0:
        return 1.0
    scaled = scaled / np.abs(scaled).max()
    slopes, logs = _exponentials(scaled, counts)
    markov = math.exp(min(0.0, float(logs.min()))) * (1.0 + 2.0**-20)
    if markov <= enough:
        return markov
    # values below half a period make the wave too small; values above it only loosen the bound
    log_error = math.log(error / 4.0)
    rises, others = _exponentials(-scaled, counts)
    farthest = max(float(((logs - log_error) / slopes).min()), float(((others - log_error) / rises).min()))
    step = 2.0 * math.pi / (farthest * (1.0 + 2.0**-20))
    total, rounding, start, cut = 0.5, 16 * UNIT, 0, math.inf
    while cut > error / 4.0 and start < _MOST_POINTS:
        halves = np.arange(start, max(_BLOCK, start + start // 2)) + 0.5
        angles = 2.0 * step * halves[:, None] * scaled
        squares = angles**2
        phases, logs = np.arctan(angles), np.log1p(squares)
        sizes = np.exp(-0.25 * (logs @ counts)) / (math.pi * halves)
        total -= float(sizes @ np.sin(0.5 * (phases @ counts)))
        moved = 0.5 * (np.abs(phases) @ counts) + 0.25 * (logs @ counts)
        rounding += float(sizes @ (1.0 + moved)) * (len(counts) + 32) * UNIT
        falling = 0.5 * float(squares[-1] / (1.0 + squares[-1]) @ counts)
        cut = float(sizes[-1]) * halves[-1] / falling
        start += len(halves)
    return min(1.0, float(max(0.0, total + cut) + error / 4.0 + rounding))


def _exponentials(scaled: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return slopes s, and the logarithms of the expectations of ``exp(-s Q)`` for a weighted sum Q of squares."""
    slopes = _SLOPES * (0.5 / -float(scaled.min()))
    logs: FloatArray = -0.5 * np.log1p(2.0 * slopes[:, None] * scaled) @ counts
    return slopes, logs


#: Smallest probability of failure: tails are computed to about 1e-12.
_LEAST_FAILURE = 1e-9


def check_failure(failure: object) -> float:
    """Return the probability with which a limit may fail."""
    value = as_real(failure)
    if value is None or not _LEAST_FAILURE <= value < 1.0:
        raise ArgumentError("fit_failure", repr(failure), "a probability of at least 1e-9 and below 1")
    return value


def aligned_values(values: Any, least: int, **labels: Any) -> tuple[FloatArray, tuple[list[Any], ...]]:
    """Return numbers, centred and divided by their norm, and labels in the same order of records.

    >>> aligned_values([1, 3], 2, groups=["a", "b"])
    (array([-0.70710678,  0.70710678]), (['a', 'b'],))
    """
    expected = "one number for each record"
    for name, given in (("values", values), *labels.items()):
        refuse_unordered(name, given, expected)
    columns = [read("values", values, expected)]
    columns += [read(name, given, "a sequence with one label for each record") for name, given in labels.items()]
    for column in columns[1:]:
        if len(column.items) != len(columns[0].items):
            seen = f"{len(column.items)} labels for {len(columns[0].items)} values"
            raise ArgumentError(column.argument, seen, "a sequence with one label for each record")
    found = align(columns)
    numbers = _numbers(found[0], expected)
    if len(numbers) < least:
        raise ArgumentError("values", f"{len(numbers)} values", f"at least {least} values")
    centred = numbers - float(numbers.mean())
    largest = float(np.abs(centred).max())
    if not largest > 0.0:
        raise ArgumentError("values", "the same value for all records", "values that differ")
    centred = centred / largest
    return centred / float(np.sqrt(centred @ centred)), tuple(found[1:])


def level_numbers(name: str, labels: list[Any]) -> IntArray:
    """Return the number of each record's level, in the order in which levels first occur.

    >>> level_numbers("users", ["ann", "bob", "ann"])
    array([0, 1, 0])
    """
    try:
        return Groups(labels).groups
    except ArgumentError as error:
        raise ArgumentError(name, error.seen, error.expected, error.advice) from None


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
        raise ArgumentError("values", f"record {where}, which is {numbers[where]}", "finite numbers")
    return numbers
