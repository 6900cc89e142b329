"""Limits from constant bets: for the mean of independent values in [0, 1] of any laws, narrow where values vary little.

The values have expectations p_i with mean p. The bet l is fixed before the values are seen, ``0 <= l <= 1/m``. Then

    W_l(m) = prod_i (1 + l (x_i - m))

is not negative, and its mean is ``prod (1 + l (p_i - m)) <= (1 + l (p - m))^n``, by the inequality of the arithmetic
and the geometric mean: at most 1 if p <= m. So ``W_l(m) >= 1/d`` refutes every mean of at most m, with probability of
error at most d (Markov). A bet that changed along the records would need one conditional expectation for all of them;
here the expectations may differ. W_l falls with m, so the lower limit of a fixed l is the largest m that it refutes.

A good l is near ``sqrt(2 ln(1/d) / (n v))``, v the variance, which has to come from elsewhere: from the training part.
A wrong v costs width and nothing else. `placed_bet` has the best l for values of a simple law.

Upper limits are lower ones of ``1 - x``. Behind a noisy edge the test is ``ln W + l n nu >= ln(1/d) + c``, with nu a
sum of independent Laplace variables in units of the range: ``E W e^(l n nu) <= E e^(l n nu) = e^c``.

*Values of which only sums are known.* For ``u > -1``, ``ln(1 + u) - u = -u^2 g(u)`` with
``g(u) = int_0^1 s / (1 + s u) ds``, which falls with u. A value x in [0, 1] has ``x - m >= -m``: for ``t = l m < 1``

    ln(1 + l (x - m)) >= l (x - m) - l^2 (x - m)^2 h(t),   h(t) = g(-t) = (-ln(1 - t) - t) / t^2.

The sum over all records needs their number, their sum and the sum of their squares, or an upper bound of the latter:

    ln W_l(m) >= l n (xbar - m) - l^2 h(l m) sum (x_i - m)^2.

A bet that wins by this bound wins. It wins a little less often, by about ``l (1 + 2 m) / 3`` of its loss on squares,
where l is small as ``1 / sqrt(n)``. Where all values are 0, 1/2 and 1, as those of a difference of two models that are
right or wrong, three counts give the wealth itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from graphs.numerics.bisection import bisect
from graphs.numerics.sliced_sums import SLICE, sum_in_slices

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ManyValues",
    "Moments",
    "Sums",
    "ThreeValues",
    "best_bet",
    "bet_lower",
    "log_wealth",
    "loss_factor",
    "placed_bet",
    "wins",
]

_SUM_SLACK: Final = 1e-9  # nats; far above the rounding of the few operations that follow the sums
_NEAR: Final = 2.0**-7  # below it cancellation costs the closed form of h more than 2**-45 of itself
_TERMS: Final = 9  # of the series of h; the rest is bounded by a geometric series
_ROUNDING: Final = 2.0**-48  # of a term: 32 units in the last place, for a handful of operations


class Sums(ABC):
    """Sums of values in [0, 1] on which bets are placed, in steps of ``2**-bits``. Secret: it shows only n."""

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
        """Return a lower bound on ``ln prod (1 + l (x_i - m))``."""

    def wins(self, bet: float, mean: float, needed: float, *, mirrored: bool = False) -> bool:
        """Return whether the lower bound of the log wealth reaches a number."""
        return self.log_wealth(bet, mean, mirrored=mirrored) >= needed


class Moments(Sums):
    """The sum of values and of their squares, the latter in steps of ``4**-bits``."""

    __slots__ = ("_squares",)

    def __init__(self, size: int, bits: int, total: int, squares: int) -> None:
        super().__init__(size, bits, total)
        self._squares = squares

    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return the lower bound that the moments give."""
        exposed = math.nextafter(bet * mean, math.inf)
        if exposed >= 1.0:
            return -math.inf
        gain, square = _scaled(self, self._squares, bet, mean, mirrored)
        loss = square * loss_factor(exposed)
        return gain - loss - _SUM_SLACK - _ROUNDING * (abs(gain) + loss)


class ManyValues(Sums):
    """Values on the grid, and their sums with bounds on that of squares, which mostly decide whether a bet wins.

    Notes
    -----
    The lower bound of `Moments` with the larger sum of squares decides that a bet wins, where it is enough. For
    ``-1 < u <= b`` also ``ln(1 + u) <= u - u^2/2 + u^3/3 <= u - (1/2 - b/3) u^2``, and u is at most ``l (1 - m)``.
    Where that bound, with the smaller sum of squares, is not enough, the values would not be enough either. The bounds
    are about ``l/3`` of the sum of all u^2 apart; between them the values decide.
    """

    __slots__ = ("_found", "_squares", "_values")

    def __init__(
        self, size: int, bits: int, total: int, squares: tuple[int, int], values: Callable[[], NDArray[np.float64]]
    ) -> None:
        super().__init__(size, bits, total)
        self._squares = squares
        self._values = values
        self._found: NDArray[np.float64] | None = None

    @property
    def values(self) -> NDArray[np.float64]:
        """The values on the grid. Secret."""
        if self._found is None:
            self._found = self._values()
        return self._found

    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return the wealth of the values, rounded down."""
        return log_wealth(self.values, bet, mean, mirrored=mirrored)

    def wins(self, bet: float, mean: float, needed: float, *, mirrored: bool = False) -> bool:
        """Return whether the logarithm of the wealth is at least a number."""
        least, most = self._squares
        if Moments(self.size, self.bits, self.total, most).log_wealth(bet, mean, mirrored=mirrored) >= needed:
            return True
        gain, square = _scaled(self, least, bet, mean, mirrored)
        factor = 0.5 - bet * (1.0 - mean) / 3.0
        if factor > 0.0 and gain - factor * square + _SUM_SLACK + _ROUNDING * (abs(gain) + square) < needed:
            return False
        return self.log_wealth(bet, mean, mirrored=mirrored) >= needed


class ThreeValues(Sums):
    """The numbers of values 0, 1/2 and 1, where there are no others."""

    __slots__ = ("_counts",)

    def __init__(self, zeros: int, halves: int, ones: int) -> None:
        super().__init__(zeros + halves + ones, 1, halves + 2 * ones)
        self._counts = zeros, halves, ones

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of zeros, halves and ones. Secret."""
        return self._counts

    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return the wealth, rounded down."""
        if bet * mean >= 1.0:
            return -math.inf
        counts = reversed(self._counts) if mirrored else self._counts
        moves = [Fraction(bet) * (Fraction(place, 2) - Fraction(mean)) for place in range(3)]
        terms = [count * _log1p(move) for move, count in zip(moves, counts, strict=True) if count]
        return math.fsum(terms) - _SUM_SLACK - _ROUNDING * math.fsum(map(abs, terms))


def loss_factor(exposed: float) -> float:
    """Return ``h(t) = (-ln(1 - t) - t) / t^2``, rounded up; it is ``1/2 + t/3 + t^2/4 + ...``."""
    t = exposed
    if t < _NEAR:
        found = sum(t**k / (k + 2) for k in range(_TERMS)) + t**_TERMS / ((_TERMS + 2) * (1.0 - t))
    else:
        found = (-math.log1p(-t) - t) / (t * t)
    return found * (1.0 + 2.0**-32)  # far above the error of either branch


def _scaled(known: Sums, squares: int, bet: float, mean: float, mirrored: bool) -> tuple[float, float]:
    """Return the sums of all ``u = l (x - m)`` and of all u^2, each rounded once."""
    first, second = Fraction(known.total, 1 << known.bits), Fraction(squares, 1 << 2 * known.bits)
    if mirrored:
        first, second = known.size - first, known.size - 2 * first + second
    m, stake = Fraction(mean), Fraction(bet)
    return float(stake * (first - known.size * m)), float(stake**2 * (second - 2 * m * first + known.size * m * m))


def _log1p(u: Fraction) -> float:
    """Return ``ln(1 + u)`` with a small relative error, for any u above -1."""
    return math.log1p(float(u)) if abs(u) < Fraction(1, 2) else math.log(float(1 + u))


_SLACK: Final = 1e-9  # nats, and distance of a bet from the largest one
# The following place a bet. They cost width at most, never validity.
_BOLDEST: Final = 0.98  # of the largest bet, for values that are 0, 1 or near the mean
_GOLDEN: Final = 0.5 * (math.sqrt(5.0) - 1.0)
_GOLDEN_STEPS: Final = 16  # leave 0.05 % of the range of ln l; the radius is flat around its minimum
_ROUNDS: Final = 6  # of Newton's method; it converges quadratically
_CLOSE: Final = 1e-6  # relative change at which a search ends, and distance of an end from its bounds
_PLACED: Final = 0.8  # of the largest bet: one value of 0 then costs ln 5 at most


def log_wealth(values: NDArray[np.float64] | Sums, bet: float, mean: float, *, mirrored: bool = False) -> float:
    """Return ``ln prod (1 + l (x_i - m))``, rounded down."""
    if isinstance(values, Sums):
        return values.log_wealth(bet, mean, mirrored=mirrored)
    largest, buffer = 0.0, np.empty(min(values.size, SLICE))

    def terms(start: int, stop: int) -> float:
        nonlocal largest
        part = buffer[: stop - start]
        if mirrored:
            np.subtract(1.0, values[start:stop], out=part)
            part -= mean
        else:
            np.subtract(values[start:stop], mean, out=part)
        part *= bet
        np.log1p(part, out=part)
        largest = max(
            largest, float(np.maximum.reduce(part, initial=0.0)), -float(np.minimum.reduce(part, initial=0.0))
        )
        return float(np.add.reduce(part))

    total = sum_in_slices(terms, values.size)
    # 8 units in the last place of the largest term, for the rounding of each term and of the sums
    return total - _SLACK - 2.0**-50 * values.size * largest


def wins(values: NDArray[np.float64] | Sums, bet: float, mean: float, needed: float, *, mirrored: bool = False) -> bool:
    """Return whether `log_wealth` is at least a number."""
    if isinstance(values, Sums):
        return values.wins(bet, mean, needed, mirrored=mirrored)
    return log_wealth(values, bet, mean, mirrored=mirrored) >= needed


def bet_lower(values: NDArray[np.float64] | Sums, bet: float, log_level: float, *, mirrored: bool = False) -> float:
    """Return the lower limit for the mean of the expectations from a fixed bet; it is below ``1/l``."""
    if not wins(values, bet, 0.0, -log_level, mirrored=mirrored):
        return 0.0
    most = min(1.0, (1.0 - _SLACK) / bet)
    return bisect(lambda mean: wins(values, bet, mean, -log_level, mirrored=mirrored), most, 0.0, halvings=60)


def best_bet(mean: float, variance: float, n: int, log_level: float, most: float = math.inf) -> tuple[float, float]:
    """Return a bet against means of at most `mean`, and how far above it a mean has to be for the bet to win.

    To place a hypothesis, not for a guarantee. The values are taken to be 0, 1 or `mean`, the boldest law with this
    variance v about m: with a mean of ``m + r`` a bet l then wins ``ln(1/d)`` of n records on average where

        v (a + b) + r (m a - (1 - m) b) = ln(1/d) / n,   a = ln(1 + l (1 - m)) / (1 - m),  b = ln(1 - l m) / m,

    linear in r; the bet is the one with the smallest r. For differences of two models, ``x = (z + 1)/2``, it is exact.
    """
    rest = 1.0 - mean
    needed = -log_level / n

    def radius(bet: float) -> float:
        up, down = math.log1p(bet * rest) / rest, math.log1p(-bet * mean) / mean
        return (needed - variance * (up + down)) / (mean * up - rest * down)

    # golden section on ln l, around the bet that is the best one for small l
    top = math.log(min(_BOLDEST / mean, most))
    middle = min(0.5 * math.log(2.0 * needed / variance), top)
    low, high = min(middle, top) - 1.5, min(middle + 0.5, top)
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = radius(math.exp(inner)), radius(math.exp(outer))
    for _ in range(_GOLDEN_STEPS):
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - _GOLDEN * (high - low)
            at_inner = radius(math.exp(inner))
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + _GOLDEN * (high - low)
            at_outer = radius(math.exp(outer))
    bet = math.exp(0.5 * (low + high))
    return bet, radius(bet)


def placed_bet(
    mean: float, variance: float, common: float, n: int, log_needed: float, most: float = math.inf
) -> tuple[float, float]:
    """Return the largest lower limit that a bet is expected to win, and the bet.

    To place a hypothesis, not for a guarantee. The values are taken to be 0, 1 or `common`, in shares that give them
    this mean and variance. Differences of two models that are right or wrong are exactly that, with a half in common.
    The bet against an end e wins most on average where the derivative by l of ``E ln(1 + l (x - e))`` is 0 (Kelly).
    The limit is the e at which n times this is the number of nats needed.
    """
    shift = mean - common
    square = variance + shift * shift
    low, high = (square - shift * (1.0 - common)) / common, (square + shift * common) / (1.0 - common)
    low, high = max(0.0, low), max(0.0, high)
    if low + high > 1.0:
        low, high = 1.0 - mean, mean
    rest = 1.0 - low - high
    target = math.sqrt(2.0 * log_needed / n)
    end, bet = mean - target * math.sqrt(variance), 0.0
    for _ in range(_ROUNDS):
        end = min(max(end, _CLOSE), mean - _CLOSE * _CLOSE)
        up, down, middle, top = 1.0 - end, -end, common - end, min(most, _PLACED / end)
        farthest, bet = 1.0 / end, min(top, bet or (mean - end) / square)
        for _ in range(_ROUNDS):
            a, b, c = up / (1.0 + bet * up), down / (1.0 + bet * down), middle / (1.0 + bet * middle)
            slope, bend = high * a + low * b + rest * c, high * a * a + low * b * b + rest * c * c
            step, least, largest = bet + slope / bend, 0.25 * bet, 0.5 * (bet + farthest)
            step = least if step < least else step  # min and max would take half of the time
            step = largest if step > largest else step
            if abs(step - bet) < _CLOSE * bet:
                break
            bet = step
        bet = min(bet, top)
        won = high * math.log1p(bet * up) + low * math.log1p(bet * down) + rest * math.log1p(bet * middle)
        fall = bet * (high / (1.0 + bet * up) + low / (1.0 + bet * down) + rest / (1.0 + bet * middle))
        if won <= 0.0:
            end -= target * math.sqrt(variance)
            continue
        root = math.sqrt(2.0 * won)
        change = (root - target) * root / fall
        end += change
        if abs(change) < _CLOSE * (mean - end):
            break
    return (end, min(bet, _PLACED / end)) if end > _CLOSE else (0.0, 0.0)
