"""Sums of values by independent groups, and where to place a constant bet on them.

Bets on group sums are those of `thresholdout.limits.group_bets`, with ``L = l/S`` for each record. The sums are secret;
the numbers of groups of each size are public. Proof: PROOFS.md of this package, "Bets on group sums".

With ``u = L (s - S m)`` for a group of S records whose values have the sum s, the two inequalities of
`thresholdout.limits.bets.ManyValues` bound the logarithm of the wealth, ``sum ln(1 + u)``: from below with the largest
``-u``, ``L S m``, and from above with the largest u, ``L S (1 - m)``. They need ``sum (s - S m)^2``, which follows for
every m from the sums of ``s^2``, ``s S`` and ``S^2``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from thresholdout.limits.bets import Sums, loss_factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BlockSums", "GroupSizes", "GroupSums", "bet_against", "group_bet"]

_SLACK: Final = 1e-9  # nats, and distance of a bet from the largest one
_MANY: Final = 1 << 13  # groups up to which logarithms of all take less time than bounds; floats add so many at once
_PRODUCTS: Final = 2.0**-38  # of a sum of products: twice the rounding of 2^13 terms in any order, and of each
_ROUNDING: Final = 2.0**-48  # of a term: 32 units in the last place, for a handful of operations and a sum of sums
_BOUNDED: Final = 1e150  # bets times records from here on overflow in bounds
_ABOVE: Final = 1.0 + 2.0**-50  # above the rounding of a product
# The following place a bet. They cost width at most, never validity.
_BOLDEST: Final = 0.9  # of the largest bet: a bolder one loses much on the largest group
_CLASSES: Final = 12  # of sizes
_ROUNDS: Final = 8  # of Newton's method for the end, each with `_STEPS` for the bet
_STEPS: Final = 6
_CLOSE: Final = 1e-6  # relative change at which a search ends


class GroupSizes:
    """The public number of groups of each size, from pairs (size, number)."""

    __slots__ = ("counts", "groups", "largest", "n", "numbers", "sizes", "squares")

    def __init__(self, counts: Iterable[tuple[int, int]]) -> None:
        self.counts = tuple(sorted((int(size), int(number)) for size, number in counts))
        self.sizes = np.array([size for size, _ in self.counts], dtype=np.float64)
        self.numbers = np.array([number for _, number in self.counts], dtype=np.float64)
        self.groups = sum(number for _, number in self.counts)
        self.n = sum(size * number for size, number in self.counts)
        self.squares = sum(size * size * number for size, number in self.counts)
        self.largest = self.counts[-1][0]

    @classmethod
    def of(cls, sizes: NDArray[np.int64]) -> GroupSizes:
        """Return the numbers of groups of each size."""
        return cls(zip(*(one.tolist() for one in np.unique(sizes, return_counts=True)), strict=True))

    def effective(self, correlation: float) -> float:
        """Return the effective sample size: the number of independent records whose mean varies as much."""
        return self.n * self.n / (self.n + correlation * (self.squares - self.n))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupSizes) and self.counts == other.counts

    def __hash__(self) -> int:
        return hash(self.counts)

    def __repr__(self) -> str:
        return f"<GroupSizes: {self.groups} groups, {self.n} records>"


class GroupSums(Sums):
    """The sums of values in [0, 1] by group, on the grid of ``2**-bits``, and the sizes. Secret: it shows only n."""

    __slots__ = ("_largest", "_products", "_sizes", "_sums")

    def __init__(self, sums: NDArray[np.float64], sizes: NDArray[np.float64], bits: int) -> None:
        super().__init__(int(sizes.sum()), bits, int(math.ldexp(float(sums.sum()), bits)))
        self._sums, self._sizes, self._largest = sums, sizes, float(sizes.max())
        self._products: tuple[float, float, float, float] | None = None

    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return ``ln prod (1 + L sum_{i in g} (x_i - m))``, rounded down."""
        exposed = bet * self._largest * mean
        if exposed >= 1.0 - _SLACK:
            return -math.inf
        terms = self.above(mean, mirrored=mirrored)
        terms *= bet
        np.log1p(terms, out=terms)
        largest = max(float(terms.max()), -float(terms.min()))
        # each argument is off by 2^-50 (1 + L S) at most, and is at least -exposed
        off = 2.0**-50 * (1.0 + bet * self._largest) / (1.0 - exposed) + 2.0**-48 * largest
        return float(terms.sum()) - _SLACK - terms.size * off

    def wins(self, bet: float, mean: float, needed: float, *, mirrored: bool = False) -> bool:
        """Return whether the logarithm of the wealth is at least a number; for many groups bounds mostly decide."""
        exposed = bet * self._largest * mean * _ABOVE
        if self._sums.size > _MANY and exposed < 1.0 - _SLACK and bet * self.size < _BOUNDED:
            gain, least, most, off = self._bounds(bet, mean, mirrored)
            loss = most * loss_factor(exposed)
            if gain - loss - off - _ROUNDING * loss >= needed:
                return True
            factor = 0.5 - bet * self._largest * (1.0 - mean) / 3.0
            if factor > 0.0 and gain - factor * least + off + _ROUNDING * least < needed:
                return False
        return GroupSums.log_wealth(self, bet, mean, mirrored=mirrored) >= needed

    def _bounds(self, bet: float, mean: float, mirrored: bool) -> tuple[float, float, float, float]:
        """Return the sum of all u, bounds on that of all u^2, and a bound on the error of the first."""
        if self._products is None:
            s, sizes = self._sums, self._sizes
            self._products = float(s.sum()), _dot(s, s), _dot(s, sizes), _dot(sizes, sizes)
        total, squares, mixed, sizes_squared = self._products
        first, centre = Fraction(total), 1.0 - mean if mirrored else mean
        gain = float(Fraction(bet) * ((self.size - first if mirrored else first) - self.size * Fraction(mean)))
        terms = squares, 2.0 * centre * mixed, centre * centre * sizes_squared
        square, off = terms[0] - terms[1] + terms[2], _PRODUCTS * sum(terms)
        stake = bet * bet
        return gain, stake * max(0.0, square - off), stake * (square + off), _SLACK + _ROUNDING * bet * self.size

    def above(self, mean: float, *, mirrored: bool = False) -> NDArray[np.float64]:
        """Return for each group the sum of the values less a mean. Secret."""
        if mirrored:
            return self._sizes * (1.0 - mean) - self._sums
        return self._sums - self._sizes * mean

    def mirrored(self) -> GroupSums:
        """Return the sums of one less each value."""
        return type(self)(self._sizes - self._sums, self._sizes, self.bits)


class BlockSums(GroupSums):
    """The sums of values in [0, 1] by block of a series: every second block is independent of the others like it.

    The square root of the groups' wealth takes its place: PROOFS.md of this package, "Alternating blocks".
    """

    __slots__ = ()

    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return ``ln prod (1 + L sum_{i in g} (x_i - m))^(1/2)``, rounded down."""
        return 0.5 * super().log_wealth(bet, mean, mirrored=mirrored)

    def wins(self, bet: float, mean: float, needed: float, *, mirrored: bool = False) -> bool:
        """Return whether `log_wealth` is at least a number."""
        return super().wins(bet, mean, 2.0 * needed, mirrored=mirrored)


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return a sum of products; in slices, since OpenBLAS would start threads."""
    return math.fsum(float(np.dot(a[at : at + _MANY], b[at : at + _MANY])) for at in range(0, a.size, _MANY))


@lru_cache(maxsize=64)
def _classes(sizes: GroupSizes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return few sizes and their numbers, with the same sum of sizes and about the same sum of squares."""
    if sizes.sizes.size <= _CLASSES:
        return sizes.sizes, sizes.numbers
    weight = np.cumsum(sizes.numbers * sizes.sizes**2) / sizes.squares
    place = np.minimum((weight * _CLASSES).astype(np.int64), _CLASSES - 1)
    total = np.bincount(place, sizes.numbers * sizes.sizes)
    square = np.bincount(place, sizes.numbers * sizes.sizes**2)
    there = total > 0.0
    size = square[there] / total[there]
    return size, total[there] / size


def group_bet(
    mean: float,
    variance: float,
    common: float,
    correlation: float,
    sizes: GroupSizes,
    log_needed: float,
    most: float = math.inf,
    luck: float = 0.0,
    times: float = 1.0,
    training_groups: float = math.inf,
) -> tuple[float, float]:
    """Return the largest lower limit that a bet on group sums is expected to win, and the bet for each record.

    To place a hypothesis, not for a guarantee. A single value is taken to be 0, 1 or `common`. A group's sum has the
    variance ``s v (1 + (s - 1) rho)``, and skewness and kurtosis as a sum of so many independent values that have it.
    Each is taken for the law of three values with these moments.
    """
    size, number = _classes(sizes)
    alike = size / (1.0 + (size - 1.0) * correlation)  # independent values with the variance of a group's mean
    skew_one = (1.0 - 2.0 * common) / math.sqrt(variance)
    tail_one = skew_one**2 + common * (1.0 - common) / variance
    skew = skew_one / np.sqrt(alike)
    tail = np.maximum(3.0 + (tail_one - 3.0) / alike, skew**2 + 1.0)
    of_groups = size**2 * variance / alike
    if luck:
        total, doubt = float(number @ of_groups), float(number @ (of_groups**2 * (tail - 1.0)))
        here = math.sqrt(doubt) / total
        of_groups = of_groups * (1.0 + luck * here * math.sqrt(1.0 + sizes.groups / training_groups))
    # three values -A, 0, B in standard deviations: B - A is the skewness, A B = kurtosis - skewness^2. Where -A or B is
    # out of the range, the skewness is kept and the kurtosis is not
    of_groups = np.minimum(times * of_groups, size**2 * mean * (1.0 - mean) * (1.0 - _SLACK))
    deviation = np.sqrt(of_groups)
    lowest, highest = size * mean / deviation, size * (1.0 - mean) / deviation
    down = np.minimum(0.5 * (np.sqrt(skew**2 + 4.0 * (tail - skew**2)) - skew), lowest)
    up = np.minimum(np.maximum(skew + down, 1.0 / down), highest)
    down = np.minimum(np.maximum(up - skew, 1.0 / up), lowest)
    product = down * up
    weights = np.concatenate(
        [number / (down * (up + down)), number * np.maximum(0.0, 1.0 - 1.0 / product), number / (up * (up + down))]
    )
    moved = np.concatenate([-down * deviation, np.zeros(size.size), up * deviation])
    sizes_of = np.concatenate([size, size, size])
    n, square = float(number @ size), float(number @ of_groups)
    target = math.sqrt(2.0 * log_needed)
    end, bet = mean - target * math.sqrt(square) / n, 0.0
    least, largest = 0.0, mean  # they bracket the end: a step of Newton's beyond them becomes one of bisection
    for _ in range(_ROUNDS):
        end = min(max(end, 0.5 * _CLOSE), mean * (1.0 - _CLOSE))
        gains = moved + sizes_of * (mean - end)
        top = min(most, _BOLDEST / (sizes.largest * end))
        bet = min(top, bet or n * (mean - end) / square)
        for _ in range(_STEPS):
            shares = gains / (1.0 + bet * gains)
            weighted = weights * shares
            step = bet + float(weighted.sum()) / float(weighted @ shares)
            step = min(max(step, 0.25 * bet), 4.0 * bet, top)
            if abs(step - bet) < _CLOSE * bet:
                break
            bet = step
        won = float(weights @ np.log1p(bet * gains))
        if won < log_needed:
            largest = min(largest, end)
        else:
            least = max(least, end)
        if won <= 0.0:
            change = -target * math.sqrt(square) / n
        else:
            fall = bet * float(weights @ (sizes_of / (1.0 + bet * gains)))
            root = math.sqrt(2.0 * won)
            change = (root - target) * root / fall
        if abs(change) < _CLOSE * (mean - end):
            end += change
            break
        end = end + change if least < end + change < largest else 0.5 * (least + largest)
    return (end, min(bet, _BOLDEST / (sizes.largest * end))) if end > _CLOSE else (0.0, 0.0)


def bet_against(
    null: float, variance: float, correlation: float, sizes: GroupSizes, log_needed: float
) -> tuple[float, float]:
    """Return the bet against means of at most `null` that wins at the smallest mean, and this mean, at most 1.

    Values are mostly a half, as those of a difference of two models. It places a test and guarantees nothing.
    """
    spread = float(sizes.numbers @ (sizes.sizes * (1.0 + (sizes.sizes - 1.0) * correlation)))
    away, bet = math.sqrt(2.0 * log_needed * variance * spread) / sizes.n, 0.0
    for _ in range(_ROUNDS):
        mean = min(null + away, 1.0 - 0.5 / sizes.n)
        end, found = group_bet(mean, variance, 0.5, correlation, sizes, log_needed)
        bet = found or bet
        if abs(end - null) < _CLOSE * away or mean < null + away:
            break
        away = max(0.5 * away, away + null - end)
    return min(bet or math.inf, _BOLDEST / (sizes.largest * null)), min(1.0, null + away)
