r"""Bets on values of which only sums are known: the wealth of a bet, bounded from below.

For ``u > -1``, ``ln(1 + u) - u = -u^2 g(u)`` with ``g(u) = int_0^1 s / (1 + s u) ds``, which falls with u. A value x in
[0, 1] has ``x - m >= -m``, so with ``t = l m < 1``

    ln(1 + l (x - m)) >= l (x - m) - l^2 (x - m)^2 h(t),   h(t) = g(-t) = (-ln(1 - t) - t) / t^2,

and the sum over all records needs their number, their sum and the sum of their squares:

    ln W_l(m) >= l n (xbar - m) - l^2 h(l m) sum (x_i - m)^2.

A bet that wins by this bound wins (`thresholdout.limits.bets`), so whatever rests on such bets stays proved; it wins a
little less often, by about ``l (1 + 2 m) / 3`` of what it loses on squares, where l is small as ``1 / sqrt(n)``. Where
all values are 0, 1/2 and 1, as those of a difference of two models that are right or wrong, three counts give the
wealth itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Final

__all__ = ["Moments", "Sums", "ThreeValues", "loss_factor"]

_SLACK: Final = 1e-9
_NEAR: Final = 2.0**-7
_TERMS: Final = 9
_ROUNDING: Final = 2.0**-48


class Sums(ABC):
    """What is known of values in [0, 1] on which bets are placed. Secret: it shows their number only.

    Attributes
    ----------
    size : int
        Number of values.
    bits : int
        Digits of the grid that they are on.
    total : int
        Their sum, in steps of ``2**-bits``.
    """

    __slots__ = ("bits", "size", "total")

    def __init__(self, size: int, bits: int, total: int) -> None:
        self.size = size
        self.bits = bits
        self.total = total

    def __repr__(self) -> str:
        return f"<{type(self).__name__} n={self.size}>"

    def mean(self) -> float:
        """Return their mean, rounded once."""
        return self.total / (self.size << self.bits)

    @abstractmethod
    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return a lower bound on ``ln prod (1 + l (x_i - m))``; see `thresholdout.limits.bets.log_wealth`."""


class Moments(Sums):
    """The sum of values and of their squares.

    Parameters
    ----------
    size, bits, total : int
        As in `Sums`.
    squares : int
        Sum of the squares, in steps of ``4**-bits``.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout.limits.bets import log_wealth
    >>> known, values = Moments(1000, 1, 1040, 1120), np.repeat([0.5, 1.0], [960, 40])
    >>> known, round(known.log_wealth(0.2, 0.5), 3), round(log_wealth(values, 0.2, 0.5), 3)
    (<Moments n=1000>, 3.786, 3.812)
    """

    __slots__ = ("_squares",)

    def __init__(self, size: int, bits: int, total: int, squares: int) -> None:
        super().__init__(size, bits, total)
        self._squares = squares

    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return the lower bound that the moments give; see `Sums.log_wealth`."""
        exposed = math.nextafter(bet * mean, math.inf)
        if exposed >= 1.0:
            return -math.inf
        first, second = Fraction(self.total, 1 << self.bits), Fraction(self._squares, 1 << 2 * self.bits)
        if mirrored:
            first, second = self.size - first, self.size - 2 * first + second
        m, stake = Fraction(mean), Fraction(bet)
        gain = float(stake * (first - self.size * m))
        loss = float(stake**2 * (second - 2 * m * first + self.size * m * m)) * loss_factor(exposed)
        return gain - loss - _SLACK - _ROUNDING * (abs(gain) + loss)


class ThreeValues(Sums):
    """How many values are 0, 1/2 and 1, where there are no others.

    Parameters
    ----------
    zeros, halves, ones : int
        Their numbers.

    Examples
    --------
    >>> ThreeValues(10, 960, 30), round(ThreeValues(10, 960, 30).log_wealth(0.5, 0.5), 3)
    (<ThreeValues n=1000>, 3.817)
    """

    __slots__ = ("_counts",)

    def __init__(self, zeros: int, halves: int, ones: int) -> None:
        super().__init__(zeros + halves + ones, 1, halves + 2 * ones)
        self._counts = zeros, halves, ones

    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return the wealth, rounded down; see `Sums.log_wealth`."""
        if bet * mean >= 1.0:
            return -math.inf
        counts = reversed(self._counts) if mirrored else self._counts
        moves = [Fraction(bet) * (Fraction(place, 2) - Fraction(mean)) for place in range(3)]
        terms = [count * _log1p(move) for move, count in zip(moves, counts, strict=True) if count]
        return math.fsum(terms) - _SLACK - _ROUNDING * math.fsum(map(abs, terms))


def loss_factor(exposed: float) -> float:
    """Return ``h(t) = (-ln(1 - t) - t) / t^2``, rounded up; it is ``1/2 + t/3 + t^2/4 + ...``.

    Parameters
    ----------
    exposed : float
        t, in [0, 1).

    Examples
    --------
    >>> round(loss_factor(0.0), 6), round(loss_factor(0.5), 6)
    (0.5, 0.772589)
    """
    t = exposed
    if t < _NEAR:
        found = sum(t**k / (k + 2) for k in range(_TERMS)) + t**_TERMS / ((_TERMS + 2) * (1.0 - t))
    else:
        found = (-math.log1p(-t) - t) / (t * t)
    return found * (1.0 + 2.0**-32)


def _log1p(u: Fraction) -> float:
    """Return ``ln(1 + u)`` with a small relative error, for any u above -1."""
    return math.log1p(float(u)) if abs(u) < Fraction(1, 2) else math.log(float(1 + u))
