"""Half-widths of means, and the number of records for a half-width.

Proof: `graphs/PROOFS.md`, section on variance inflation. The numbers are for one mean fixed in advance.
"""

from __future__ import annotations

import math

from graphs.errors import ArgumentError
from graphs.numerics.arguments import as_real
from graphs.numerics.rounding import up

__all__ = ["answer_half_width", "check_confidence", "mean_half_width", "records_within"]

#: Roundings in each formula, functions included; more than the longest formula has.
_OPERATIONS = 24


def check_confidence(confidence: object) -> float:
    """Return a confidence level.

    >>> check_confidence(95)
    Traceback (most recent call last):
    graphs.errors.ArgumentError: confidence must be a number between 0 and 1; got 95.
    """
    value = as_real(confidence)
    if value is None or not 0.0 < value < 1.0:
        raise ArgumentError("confidence", repr(confidence), "a number between 0 and 1")
    return value


def mean_half_width(n: int, inflation: float, confidence: float, failure: float = 0.0) -> float:
    """Return a half-width for the distance of a mean of values in [0, 1], fixed in advance, from its expectation."""
    beta = _error(confidence, failure)
    if not beta > 0.0:
        return 1.0
    return min(up(math.sqrt(inflation * math.log(2.0 / beta) / (2 * n)), _OPERATIONS), 1.0)


def answer_half_width(n: int, inflation: float, budget: float, confidence: float, failure: float = 0.0) -> float:
    """Return the same for a mean with Laplace noise of a privacy budget."""
    beta = _error(confidence, failure)
    if not beta > 0.0:
        return 1.0
    records = math.sqrt(inflation * math.log(4.0 / beta) / (2 * n))
    noise = math.log(2.0 / beta) / (n * budget)
    return min(up(records + noise, _OPERATIONS), 1.0)


def records_within(half_width: object, n: int, inflation: float, confidence: float, failure: float = 0.0) -> float:
    """Return how many records of a kind bring a mean fixed in advance within a half-width."""
    width = as_real(half_width)
    if width is None or not 0.0 < width < 1.0:
        raise ArgumentError("half_width", repr(half_width), "a number between 0 and 1")
    beta = _error(confidence, failure)
    if not beta > 0.0 or (inflation >= n and n > 1):
        return math.inf
    return math.ceil(up(inflation * math.log(2.0 / beta) / (2 * width**2), _OPERATIONS))


def _error(confidence: float, failure: float) -> float:
    """Return the remaining probability of error, rounded down."""
    beta = math.nextafter(1.0 - confidence, 0.0)
    return beta if failure == 0.0 else math.nextafter(beta - failure, -math.inf)
