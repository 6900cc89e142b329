"""Checks of counts and numbers, with the errors of this package."""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphs.numerics.arguments import as_integer
from graphs.numerics.arguments import check_word as check_graph_word
from thresholdout.errors import InputError, InputTypeError

__all__ = ["as_float", "check_count", "check_number", "check_unit", "check_word", "positive_number"]

_LARGEST_COUNT = 2**63 - 1  # the largest integer that every ledger can store


def as_float(value: object) -> float | None:
    """Return a value as a float, or ``None`` for booleans, texts and values that `float` refuses.

    Unlike `graphs.numerics.arguments.as_real` it accepts decimals, tensors and arrays of one number.

    Examples
    --------
    >>> from decimal import Decimal
    >>> as_float(Decimal("0.5")), as_float("0.5"), as_float(True)
    (0.5, None, None)
    """
    if isinstance(value, (bool, str)):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def check_count(argument: str, count: object) -> int:
    """Check that a number is an integer of at least 1, and return it.

    Examples
    --------
    >>> check_count("budget", 0)
    Traceback (most recent call last):
    thresholdout.errors.InputError: budget must be an integer of at least 1; got 0.
    """
    expected = "an integer of at least 1"
    number = as_integer(count)
    if number is None:
        raise InputTypeError(argument, repr(count), expected)
    if number < 1:
        raise InputError(argument, number, expected)
    if number > _LARGEST_COUNT:
        raise InputError(argument, number, f"{expected} and at most 2**63 - 1")
    return number


def check_number(argument: str, value: object, above: float, most: float, expected: str) -> float:
    """Check that a number lies in ``(above, most]``, and return it as a float.

    Examples
    --------
    >>> check_number("threshold", 0.0, 0.0, 1.0, "a positive number up to 1")
    Traceback (most recent call last):
    thresholdout.errors.InputError: threshold must be a positive number up to 1; got 0.0.
    """
    number = math.nan if isinstance(value, (bool, str)) else as_float(value)
    if number is None:
        raise InputTypeError(argument, repr(value), expected)
    if not above < number <= most:
        raise InputError(argument, repr(value), expected)
    return number


def check_unit(argument: str, value: float) -> None:
    """Check that a number lies in [0, 1]; the message shows it, so it must not be secret.

    Examples
    --------
    >>> check_unit("train", 1.5)
    Traceback (most recent call last):
    thresholdout.errors.InputError: train must be a number in [0, 1]; got 1.5.
    """
    if not 0.0 <= value <= 1.0:
        raise InputError(argument, value, "a number in [0, 1]")


def check_word(argument: str, value: object, words: Sequence[str], expected: str = "") -> str:
    """Return a choice among words; see `graphs.numerics.arguments.check_word`.

    Examples
    --------
    >>> check_word("about", "losses", ("difference", "win_rate"))
    Traceback (most recent call last):
    thresholdout.errors.InputError: about must be 'difference' or 'win_rate'; got 'losses'.
    """
    return check_graph_word(argument, value, words, expected, InputError)


def positive_number(value: float, argument: str) -> float:
    """Check that a number is positive and finite, and return it as a float."""
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(argument, repr(value), "a positive finite number")
    return number
