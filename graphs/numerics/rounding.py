"""Conservative rounding.

Every leakage of this package is an upper bound on the leakage of the model with the given floats as parameters. The
rule: count the operations, each of which is off by a relative `UNIT` at most (elementary functions by `FUNCTION_ULPS`
units), and enlarge the result by more than the count.
"""

from __future__ import annotations

import math
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Final, Literal, TypeAlias, overload

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray

__all__ = [
    "MOST_DIGITS",
    "ULP",
    "UNIT",
    "charges",
    "down",
    "down_relative",
    "fitting_decimals",
    "formula_up",
    "shown_above",
    "shown_answer",
    "shown_around",
    "shown_below",
    "shown_interval",
    "up",
    "up_relative",
    "upward_sum",
]

Form: TypeAlias = Literal["g", "+g", "f", "+f"]

_EXACT: Final = Context(
    prec=700
)  # exact for sums and differences of decimal numbers with 310 digits before the point and 340 after

#: Relative error of one rounded operation, 2**-53.
UNIT = 2.0**-53

#: Distance from 1 to the next float, two units.
ULP = 2.0**-52

#: Relative error, in units, charged to one call of exp, expm1, log1p or tanh (NumPy documents 4 ulp = 8 units).
FUNCTION_ULPS = 8

#: Operations charged to a formula of a few dozen elementary functions: a relative 2**-40.
FORMULA_OPERATIONS = 2**12 - 2

#: Relative error charged to products and elementary functions of a few factors: about 90 units.
FEW_FACTORS = 1e-14


@overload
def up(value: float, operations: float = ...) -> float: ...
@overload
def up(value: FloatArray, operations: float = ...) -> FloatArray: ...
def up(value: float | FloatArray, operations: float = FUNCTION_ULPS) -> float | FloatArray:
    """Enlarge a non-negative number that is off by `operations` relative rounding errors."""
    return value * (1 + 2 * (operations + 2) * UNIT)


def down(value: FloatArray, operations: float = FUNCTION_ULPS) -> FloatArray:
    """Reduce a non-negative number that is off by `operations` relative rounding errors."""
    return value * (1 - 2 * (operations + 2) * UNIT)


def formula_up(bound: float) -> float:
    """Round a positive bound conservatively, by more than a formula's own rounding errors."""
    return up(bound, FORMULA_OPERATIONS)


def up_relative(value: float, relative: float = FEW_FACTORS) -> float:
    """Return a number above an exact non-negative value that was computed within a relative error."""
    return math.nextafter(value * (1.0 + relative), math.inf) if math.isfinite(value) else value


def down_relative(value: float, relative: float = FEW_FACTORS) -> float:
    """Return a non-negative number below an exact value that was computed within a relative error."""
    return max(0.0, math.nextafter(value * (1.0 - relative), -math.inf))


def upward_sum(values: FloatArray, counts: IntArray | None = None) -> float:
    """Return an upper bound on a sum of non-negative numbers."""
    terms = values if counts is None else values * counts
    return up(float(terms.sum()), len(values) + 2)


def charges(epsilon: FloatArray) -> tuple[IntArray, float]:
    """Return the budgets as exact integers, for prefix sums without rounding."""
    total = float(epsilon.max()) * len(epsilon)
    exponent = max(math.frexp(total)[1] - 60, -1000)
    unit = math.ldexp(1.0, exponent)
    # a quotient below the smallest float is 0, and counts as one unit all the same
    return np.maximum(np.ceil(epsilon / unit), epsilon > 0.0).astype(np.int64), unit


def shown_above(number: float, digits: int = 3, form: Form = "g") -> str:
    """Return a number in so many digits, rounded up, so that a printed bound is a bound too."""
    return _shown(Decimal(repr(float(number))), digits, form, ROUND_CEILING)


def shown_below(number: float, digits: int = 3, form: Form = "g") -> str:
    """Return a number in so many digits, rounded down."""
    return _shown(Decimal(repr(float(number))), digits, form, ROUND_FLOOR)


def shown_around(
    value: float, low: float, high: float, digits: int = 4, width_digits: int = 2, form: Form = "g"
) -> str:
    """Return a value with a half-width that together contain an interval around the value.

    The value is rounded to the nearest, by r. The half-width is the larger side of the interval, plus r, rounded up:
    ``low >= value - side >= shown - (side + r)``, and the same above.
    """
    exact, least, most = (Decimal(repr(float(number))) for number in (value, low, high))
    shown = _shown(exact, digits, form, ROUND_HALF_EVEN)
    if any(map(math.isnan, (value, low, high))):
        return f"{shown} ± nan"
    side = max(_EXACT.subtract(exact, least), _EXACT.subtract(most, exact))
    moved = _EXACT.abs(_EXACT.subtract(Decimal(shown), exact))
    unsigned: Form = "f" if form in {"f", "+f"} else "g"
    return f"{shown} ± {_shown(_EXACT.add(side, moved), width_digits, unsigned, ROUND_CEILING)}"


def fitting_decimals(value: float, low: float, high: float) -> int:
    """Return the decimals at which the half-width of an interval has two digits; the value deserves no more."""
    side = min(max(value - low, high - value), sys.float_info.max)  # the difference may overflow
    # six decimals where nothing is uncertain; more than twelve are rounding errors of the mean
    return 6 if side <= 0.0 else min(max(1 - math.floor(math.log10(side)), 0), 12)


#: Numbers from here on are shown with an exponent.
MOST_DIGITS: Final = 1e7


def shown_answer(value: float, low: float, high: float, *, signed: bool = False) -> str:
    """Return a value with a half-width that contains an interval, in as many decimals as the half-width deserves."""
    if not _has_decimals(value, low, high):
        return shown_around(value, low, high, form="+g" if signed else "g")
    decimals = fitting_decimals(value, low, high)
    return shown_around(value, low, high, decimals, decimals, "+f" if signed else "f")


def shown_interval(
    value: float, low: float, high: float, *, signed: bool = False, apart: float | None = None
) -> tuple[str, str, str]:
    """Return a value, and an interval rounded outwards, in as many decimals as the half-width deserves.

    There are more decimals where a rounded end would reach `apart`, a number outside of the interval.
    """
    if not _has_decimals(value, low, high):
        form: Form = "+g" if signed else "g"
        return f"{value:{form[:-1]}.4g}", shown_below(low, 4, form), shown_above(high, 4, form)
    form, decimals = "+f" if signed else "f", fitting_decimals(value, low, high)
    while True:
        least, most = shown_below(low, decimals, form), shown_above(high, decimals, form)
        if apart is None or low <= apart <= high or not float(least) <= apart <= float(most) or decimals >= 20:
            return _shown(Decimal(repr(float(value))), decimals, form, ROUND_HALF_EVEN), least, most
        decimals += 1


def _has_decimals(*numbers: float) -> bool:
    """Return whether numbers are shown without an exponent."""
    return all(abs(number) < MOST_DIGITS for number in numbers)  # no number is nan


def _shown(number: Decimal, digits: int, form: Form, rounding: str) -> str:
    if form in {"f", "+f"} and number.is_finite():
        return f"{number.quantize(Decimal(1).scaleb(-digits), rounding, _EXACT):{form[:-1]}f}"
    # a number of at most 15 digits is the shortest text of its nearest float
    return f"{float(Context(prec=digits, rounding=rounding).plus(number)):{form[:-1]}.{digits}{form[-1]}}"
