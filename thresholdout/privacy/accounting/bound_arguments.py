"""Checks of the arguments of bounds, and sums of their parameters that are rounded up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.arguments import as_integer, as_real
from graphs.numerics.rounding import up_relative
from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError, InputTypeError

__all__ = [
    "TINY",
    "Steps",
    "any_of",
    "chosen",
    "count",
    "floats",
    "number",
    "open_unit",
    "positive",
    "probability",
    "steps",
    "sum_up",
    "tail_slack",
    "unit",
]

Floats = NDArray[np.float64]


def number(value: object, name: str, expected: str = "a finite number") -> float:
    """Check a finite real number, which is no boolean."""
    found = as_real(value)
    if found is None:
        raise InputTypeError(name, f"a {type(value).__name__}", expected)
    if not math.isfinite(found):
        raise InputError(name, repr(found), expected)
    return found


def floats(value: object, name: str, expected: str) -> Floats:
    """Check an array of real numbers of any shape; they may be NaN or infinite."""
    try:
        found = np.asarray(value)
    except ValueError as error:
        raise InputTypeError(name, "rows of different lengths", expected) from error
    if found.dtype.kind not in "iuf":
        seen = f"an array of {found.dtype}" if found.ndim else f"a {type(value).__name__}"
        raise InputTypeError(name, seen, expected)
    return found.astype(np.float64)


def _between(value: object, name: str, low: float, high: float, expected: str, *, closed: tuple[bool, bool]) -> float:
    found = number(value, name, expected)
    above = found >= low if closed[0] else found > low
    below = found <= high if closed[1] else found < high
    if not (above and below):
        raise InputError(name, repr(found), expected)
    return found


def positive(value: object, name: str, *, zero: bool = False) -> float:
    """Check a finite number above 0, or at least 0."""
    expected = "a finite number, 0 or more" if zero else "a finite number above 0"
    return _between(value, name, 0.0, math.inf, expected, closed=(zero, False))


def probability(value: object, name: str) -> float:
    """Check a number in [0, 1)."""
    return _between(value, name, 0.0, 1.0, "a number in [0, 1)", closed=(True, False))


def open_unit(value: object, name: str) -> float:
    """Check a number in (0, 1)."""
    return _between(value, name, 0.0, 1.0, "a number in (0, 1)", closed=(False, False))


def unit(value: object, name: str) -> float:
    """Check a number in [0, 1]."""
    return _between(value, name, 0.0, 1.0, "a number in [0, 1]", closed=(True, True))


def count(value: object, name: str, *, least: int = 1) -> int:
    """Check an integer of at least `least`; whole floats are no integers."""
    expected = f"an integer, {least} or more"
    found = as_integer(value) if isinstance(value, Integral) else None
    if found is None:
        raise InputTypeError(name, f"a {type(value).__name__}", expected)
    if found < least:
        raise InputError(name, str(found), expected)
    return found


def chosen(value: object, name: str, among: Iterable[str]) -> str:
    """Check that a value is one of some words."""
    words = list(among)
    return check_word(name, value, words, "one of " + ", ".join(map(repr, words)))


def _is_scalar(value: Any) -> bool:
    # a list is none, and numpy refuses rows of different lengths
    return isinstance(value, (Real, np.bool_)) or (not isinstance(value, (list, tuple)) and np.ndim(value) == 0)


def _per_step(value: Any, name: str, expected: str) -> Floats:
    if isinstance(value, (str, bytes)):
        raise InputTypeError(name, f"a {type(value).__name__}", expected)
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(name, "rows of different lengths", expected) from None
    if array.ndim != 1 or not array.size:
        raise InputError(name, f"an array of shape {array.shape}", expected)
    if array.dtype.kind == "O":
        return np.array([number(entry, name, expected) for entry in array.tolist()])
    if array.dtype.kind not in "iuf":
        raise InputTypeError(name, f"an array of {array.dtype}", expected)
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        raise InputError(name, "a value that is not finite", expected)
    return found


class Steps:
    """The steps of a composition: parameters of groups of equal steps in increasing order, and their counts."""

    def __init__(self, eps: Floats, delta: Floats, counts: NDArray[np.int64]) -> None:
        self.eps = eps
        self.delta = delta
        self.counts = counts
        self.total = int(counts.sum())

    @property
    def equal(self) -> bool:
        """Whether all steps are the same."""
        return self.eps.size == 1


def steps(eps: Any, delta: Any, T: Any = None) -> Steps:
    """Check and group the steps of a composition."""
    if isinstance(eps, Steps):
        return eps
    if _is_scalar(eps) and _is_scalar(delta):
        size = count(T, "T") if T is not None else 1
        pair = np.array([positive(eps, "eps", zero=True)]), np.array([probability(delta, "delta")])
        return Steps(*pair, np.array([size]))
    each = "a number, or a list with one for each step"
    columns = []
    for value, name in ((eps, "eps"), (delta, "delta")):
        columns.append(np.array([number(value, name, each)]) if _is_scalar(value) else _per_step(value, name, each))
    sizes = {column.size for value, column in zip((eps, delta), columns, strict=True) if not _is_scalar(value)}
    if T is not None:
        sizes.add(count(T, "T"))
    if len(sizes) != 1:
        seen = f"{' and '.join(map(str, sorted(sizes)))} steps"
        raise InputError("eps, delta, T", seen, "of the same number of steps")
    found_eps, found_delta = (np.broadcast_to(column, (next(iter(sizes)),)) for column in columns)
    if (found_eps < 0).any():
        raise InputError("eps", "a negative value", "numbers, 0 or more")
    if ((found_delta < 0) | (found_delta >= 1)).any():
        raise InputError("delta", "a value outside of [0, 1)", "numbers in [0, 1)")
    groups, counts = np.unique(np.stack([found_eps, found_delta]), axis=1, return_counts=True)
    return Steps(groups[0], groups[1], counts.astype(np.int64))


TINY = 1e-300  # added to upper bounds: the mass left out of tails, and underflow, are far below (PROOFS.md, A2)


def sum_up(values: Sequence[float], counts: Sequence[int]) -> float:
    """Return the sum of values with multiplicities, rounded up: exact if it is a float."""
    total = 0  # in units of the smallest float, 2**-1074
    for value, times in zip(values, counts, strict=True):
        numerator, denominator = value.as_integer_ratio()
        total += (numerator << (1075 - denominator.bit_length())) * times
    exact = Fraction(total, 1 << 1074)
    nearest = float(exact)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < exact else nearest


def any_of(steps: Steps, *extra: float) -> float:
    """Return ``1 - prod(1 - delta_i)``, rounded up; `extra` are further events."""
    exponent = math.fsum(int(c) * math.log1p(-float(d)) for c, d in zip(steps.counts, steps.delta, strict=True))
    exponent += math.fsum(math.log1p(-d) for d in extra)
    # The union bound is exact for one step, and smaller than the rounded product for tiny deltas.
    union = sum_up([*map(float, steps.delta), *extra], [*map(int, steps.counts), *[1] * len(extra)])
    return min(1.0, union, up_relative(-math.expm1(exponent)))


def tail_slack(trials: int) -> float:
    """Bound the relative error of a probability or exponent in `binomial_probabilities` (PROOFS.md, A2)."""
    return 1e-12 + 1e-15 * math.sqrt(400.0 * trials)  # the largest error seen, up to 1e9 trials, is 0.27 of it
