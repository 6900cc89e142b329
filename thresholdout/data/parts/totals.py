"""Counts and integer sums of one part of the data, from which a query is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from thresholdout.data.values import OTHER_RANGE, ExactMean, grid_variance
from thresholdout.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GroupTotals", "Joint", "Totals", "grid_steps"]


@dataclass(frozen=True, slots=True)
class Totals:
    """Sum of per-record values on the grid of `thresholdout.data.values.UnitRecords`, with counts. Secret.

    A value out of range counts as the nearer end, a missing value or NaN as `absent`. So every record has one value,
    which is a function of this record alone. ``total`` is the sum over records with a value, and ``squares`` the sum of
    squares, both in steps of the grid. ``coins`` is whether every value is an end of the range after clipping and
    rounding. The representation shows the number of records only.

    Examples
    --------
    >>> totals = Totals(4, 40, 3 << 39, missing=1)
    >>> totals, totals.mean.mean(), totals.ends
    (<Totals n=4>, 0.375, False)
    """

    n: int
    bits: int
    total: int
    coins: bool = False
    missing: int = 0
    below: int = 0
    above: int = 0
    absent: int = 0
    squares: int | None = None

    def __repr__(self) -> str:
        return f"<Totals n={self.n}>"

    @property
    def mean(self) -> ExactMean:
        """The mean of all records' values, as a fraction."""
        return ExactMean(self.total + self.missing * self.absent, self.n, self.bits)

    @property
    def outside(self) -> int:
        """Number of records with a value out of range."""
        return self.below + self.above

    @property
    def ends(self) -> bool:
        """Whether every value, rounded to the grid, is an end of the range."""
        return self.coins and (not self.missing or self.absent in (0, 1 << self.bits))

    @property
    def sum_of_squares(self) -> int:
        """Sum of the squares of all records' values, in steps of ``4**-bits``."""
        if self.squares is None:
            raise InputError("squares", "None", "sums of squares", "Pass squares=True to totals().")
        return self.squares + self.missing * self.absent**2

    def variance(self) -> float:
        """Return the variance of the values on the grid, with divisor n, rounded once.

        Examples
        --------
        >>> Totals(2, 1, 2, squares=4).variance()  # values 0 and 1
        0.25
        """
        return grid_variance(self.mean.total, self.sum_of_squares, self.n, self.bits)

    def check(self, argument: str, bounds: tuple[float, float]) -> None:
        """Refuse missing values and values out of range, for public values.

        Examples
        --------
        >>> Totals(4, 40, 0, missing=1, above=2).check("train", (0.0, 1.0))
        Traceback (most recent call last):
        thresholdout.errors.InputError: train must be values in [0, 1]; got ...
        """
        lower, upper = bounds
        counts = {"missing": self.missing, f"below {lower:g}": self.below, f"above {upper:g}": self.above}
        found = [f"{count} {what}" for what, count in counts.items() if count]
        if found:
            found[0] = found[0].replace(" ", f" of {self.n} values ", 1)
            raise InputError(argument, ", ".join(found), f"values in [{lower:g}, {upper:g}]", OTHER_RANGE)


@dataclass(frozen=True, slots=True)
class Joint:
    """Two models' values on one part: on how many records each is larger, and the totals of the difference. Secret.

    ``difference`` is that of the first minus the second, in ``(-width, width)`` for values in a range of that width;
    missing differences count as 0. The representation shows the number of records only.
    """

    more: int
    less: int
    right_or_wrong: bool
    difference: Totals

    def __repr__(self) -> str:
        return f"<Joint n={self.difference.n}>"

    def among(self, records: int) -> Joint:
        """Return the same for a number of records outside of which the difference is 0.

        Examples
        --------
        >>> whole = Joint(2, 1, True, Totals(8, 1, 9, squares=13))  # two ones, a zero, and five halves
        >>> found = whole.among(3).difference
        >>> found.mean.mean() == 2 / 3, found.sum_of_squares, found.ends
        (True, 8, True)
        """
        found, others = self.difference, self.difference.n - records
        total = found.mean.total - (others << found.bits - 1)
        squares = found.sum_of_squares - (others << 2 * found.bits - 2)
        ends = squares == total << found.bits  # in [0, 1] only 0 and 1 equal their squares
        return Joint(
            self.more, self.less, self.right_or_wrong, Totals(records, found.bits, total, ends, squares=squares)
        )


@dataclass(frozen=True, slots=True, eq=False)
class GroupTotals:
    """Exact sums of per-record values by group, in units of the range. Secret: it shows the number of groups only.

    Values count as in `Totals`. ``sums`` (on the grid of ``2**-bits``) and ``sizes`` are ordered by size and then by
    sum, so that every engine has the same order.
    """

    sums: NDArray[np.float64]
    sizes: NDArray[np.float64]
    bits: int

    def __repr__(self) -> str:
        return f"<GroupTotals groups={self.sizes.size}>"


def grid_steps(value: float, bits: int, bounds: tuple[float, float]) -> int:
    """Return a value in steps of a grid, by the same operations as `thresholdout.data.values`.

    Examples
    --------
    >>> grid_steps(0.5, 40, (0.0, 1.0)) == 1 << 39
    True
    """
    lower, upper = bounds
    unit = value if bounds == (0.0, 1.0) else (value - lower) / (upper - lower)
    return round(unit * 2.0**bits)  # ties to even, as the addition in `values` does; the product is exact
