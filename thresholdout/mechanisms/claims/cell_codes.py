"""Where an out-of-fold average is told to be: cells of the range, their code, and how wide they should be.

A question about folds is answered with the cell in which the average lies. Cells are as wide as the one around the
forecast; each leaves the share of the risk that a law on the range gives it, which the history fixes. A wide cell makes
this answer wide, and one answer of many that differ. Narrow ones tell more about the records, so that all later answers
are wider. Half a cell is at most a fifth of half the interval that is expected, unless a declared budget needs wider
cells. Validity does not depend on the choice (PROOFS.md, "K-fold cross-validation", V10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Final

__all__ = ["Cells", "best_deviations"]

_NEAR: Final = 0.9  # of the law: as the forecast says
_WIDER: Final = 0.07  # four times as wide
_ANY: Final = 0.03  # anywhere
_FOUR: Final = 4.0
_SIZES: Final = (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.4, 2.8, 3.2, 4.0)
_POINTS: Final = (0.1, 0.5, 0.9)
_ROUNDED: Final = 0.25  # of half an interval without cells, at most, is half a cell
_ROUNDING: Final = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a grid from 0 to ``steps``.

    Attributes
    ----------
    lo, hi : int
        Edges of the first one, both in it.
    steps : int
        Steps in the range.
    mean, deviation : float
        Of the forecast, in steps.
    vague : bool
        Whether nothing is known: the code is the same everywhere.

    Examples
    --------
    >>> cells = Cells(40, 60, 100, 50.0, 10.0)
    >>> cells.around(50), cells.around(61), cells.around(99)
    ((40, 60), (61, 81), (82, 100))
    >>> round(sum(math.exp(-cells.nats(*cells.around(k))) for k in (0, 30, 50, 70, 90)), 6)
    1.0
    """

    lo: int
    hi: int
    steps: int
    mean: float
    deviation: float
    vague: bool = False

    def around(self, value: int) -> tuple[int, int]:
        """Return the edges of the cell that a value is in."""
        width = self.hi - self.lo + 1
        lo = self.lo + (value - self.lo) // width * width
        return max(lo, 0), min(lo + width - 1, self.steps)

    def nats(self, lo: int, hi: int) -> float:
        """Return the code length of a cell: over all cells, ``e^-nats`` has a sum of at most 1."""
        share = (hi - lo + 1) / (self.steps + 1)
        if not self.vague:
            low = -math.inf if lo <= 0 else (lo - 0.5 - self.mean) / self.deviation
            high = math.inf if hi >= self.steps else (hi + 0.5 - self.mean) / self.deviation
            share = _NEAR * _mass(low, high) + _WIDER * _mass(low / _FOUR, high / _FOUR) + _ANY * share
        return -math.log(share * _ROUNDING)


def best_deviations(
    deviation: float, variance: float, effective: float, log_risk: float, share: int, questions: int, budget: float
) -> float:
    """Return half the width of cells, in deviations of the forecast, that makes the next answers narrow on average.

    Among cells that are small beside the interval of this answer, as far as the budget allows.

    Parameters
    ----------
    deviation : float
        Of the forecast, in units of the range.
    variance : float
        Of one record's value.
    effective : float
        N of the limits.
    log_risk : float
        Logarithm of the risk that is left.
    share : int
        One in how many of it a question gets.
    questions : int
        How many are to be expected.
    budget : float
        How many of them may have an answer that is not the forecast.

    Examples
    --------
    >>> few = best_deviations(0.005, 0.09, 400.0, -3.0, 20, 20, math.inf)
    >>> few < best_deviations(0.005, 0.09, 400.0, -3.0, 1000, 1000, math.inf)
    True
    """
    spent = -log_risk + math.log(2.0 * share)

    def width(size: float) -> float:
        told = _expected_nats(size) * questions
        limits = (math.sqrt(2.0 * variance * (spent + point * told) / effective) for point in _POINTS)
        return math.fsum(limits) / len(_POINTS) + size * deviation

    allowed = [size for size in _SIZES if _tails(size) * questions <= budget] or list(_SIZES[-1:])
    largest = _ROUNDED * math.sqrt(2.0 * variance * spent / effective) / deviation
    return min([size for size in allowed if size <= largest] or allowed[:1], key=width)


@cache
def _expected_nats(size: float) -> float:
    """Return the mean code length where the forecast's law is right."""
    total, number, mass = 0.0, 0, 0.0
    while mass < 0.999:
        low, high = (2 * number - 1) * size, (2 * number + 1) * size
        near = _mass(low, high)
        both = near if number == 0 else 2.0 * near
        total -= both * math.log(_NEAR * near + _WIDER * _mass(low / _FOUR, high / _FOUR))
        mass += both
        number += 1
    return total


def _tails(size: float) -> float:
    return math.erfc(size / math.sqrt(2.0))


def _mass(low: float, high: float) -> float:
    """Return the probability of an interval under the standard normal law, with small ones accurate."""
    if low > 0.0:
        low, high = -high, -low
    root = math.sqrt(2.0)
    return 0.5 * (math.erfc(-high / root) - math.erfc(-low / root))
