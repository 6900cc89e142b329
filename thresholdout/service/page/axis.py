"""Where numbers are on an axis, and how they are written: always rounded outwards, so that a bar promises no more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

__all__ = ["Axis", "axis_around", "decimals_for", "written_high", "written_low"]

_ROOM: Final = 0.06  # of what is shown, beyond the outermost ends
_LEAST: Final = 1e-4  # of the range, on both sides
_WHOLE: Final = 0.7  # of the range: if the intervals reach over so much, all of it is shown
_TICKS: Final = 8
_MOST_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """A part of the number line, and the marks on it.

    Attributes
    ----------
    low, high : float
        Its ends.
    ticks : tuple of float
        Round numbers between them.

    Examples
    --------
    >>> axis = Axis(0.5, 1.0, (0.6, 0.8, 1.0))
    >>> axis.left(0.75), axis.right(0.75)
    (50.0, 50.0)
    """

    low: float
    high: float
    ticks: tuple[float, ...]

    def left(self, value: float) -> float:
        """Return where a number is, in percent of the axis, rounded to the left."""
        return math.floor(self._place(value) * 100.0) / 100.0

    def right(self, value: float) -> float:
        """Return where a number is, in percent of the axis, rounded to the right."""
        return math.ceil(self._place(value) * 100.0) / 100.0

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Return where the ticks are, in percent, and what is written there."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else self.high - self.low
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return [(round(self._place(tick), 2), f"{tick:.{decimals}f}") for tick in self.ticks]

    def _place(self, value: float) -> float:
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0) * 100.0


def axis_around(intervals: Iterable[tuple[float, float]], lower: float, upper: float) -> Axis:
    """Return an axis on which intervals can be told apart.

    Parameters
    ----------
    intervals : iterable of pairs of float
        What is drawn on it; none for the whole range.
    lower, upper : float
        The range of the metric, which the axis does not leave.

    Examples
    --------
    >>> axis_around([(0.81, 0.86), (0.84, 0.9)], 0.0, 1.0).ticks
    (0.82, 0.84, 0.86, 0.88, 0.9)
    >>> axis_around([], 0.0, 1.0).ticks
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """
    ends = list(intervals)
    low = max(lower, min((one for one, _ in ends), default=lower))
    high = min(upper, max((other for _, other in ends), default=upper))
    room = max(_ROOM * (high - low), _LEAST * (upper - lower))
    low, high = max(lower, low - room), min(upper, high + room)
    if high - low >= _WHOLE * (upper - lower):
        low, high = lower, upper
    return Axis(low, high, _round_numbers(low, high))


def _round_numbers(low: float, high: float) -> tuple[float, ...]:
    """Return multiples of 1, 2 or 5 times a power of ten that lie between two numbers."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(round(count * step, 12) for count in range(first, last + 1))


def decimals_for(widths: Sequence[float]) -> int:
    """Return how many decimals show two digits of the narrowest interval.

    Examples
    --------
    >>> decimals_for([0.1, 0.024]), decimals_for([])
    (3, 3)
    """
    narrowest = min((width for width in widths if width > 0.0), default=0.05)
    return min(max(1 - math.floor(math.log10(narrowest)), 2), _MOST_DECIMALS)


def written_low(value: float, decimals: int) -> str:
    """Return a lower end as text, never more than it is.

    Examples
    --------
    >>> written_low(0.8499, 2)
    '0.84'
    """
    return _written(value, decimals, ROUND_FLOOR)


def written_high(value: float, decimals: int) -> str:
    """Return an upper end as text, never less than it is.

    Examples
    --------
    >>> written_high(0.8401, 2)
    '0.85'
    """
    return _written(value, decimals, ROUND_CEILING)


def _written(value: float, decimals: int, rounding: str) -> str:
    """Return a number as text, from its shortest text that says which number it is: no shorter one lies in between."""
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), rounding=rounding)
    return str(abs(rounded) if rounded.is_zero() else rounded).replace("-", "\N{MINUS SIGN}")
