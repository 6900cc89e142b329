"""Ratios of which records of a class, and records predicted to be of it, are all that counts: three counts suffice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.scoring.statistics.statistic_parts import Ratio, Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ClassCounts", "ClassRatio"]


@dataclass(frozen=True)
class ClassCounts:
    """How many records there are, are of a class, are predicted to be of it, and are both.

    Of a holdout it is secret: the representation shows the number of records.

    Examples
    --------
    >>> ClassCounts(4, 2, 3, 2)
    ClassCounts(n=4)
    """

    n: int
    truth: int = field(repr=False)
    said: int = field(repr=False)
    both: int = field(repr=False)


@dataclass(frozen=True)
class ClassRatio(Ratio):
    """A ratio whose terms are a function of whether a record is of a class, and of whether it is predicted to be.

    Attributes
    ----------
    label : label
        The class.
    of_cells : callable
        From both, as arrays of booleans, to numerators and denominators.
    """

    label: Any = None
    of_cells: Callable[[Any, Any], tuple[NDArray[Any], NDArray[Any]]] = field(kw_only=True)

    def tally(self, found: ClassCounts) -> Tally:
        """Return how many records win, and how many lose.

        Examples
        --------
        >>> from thresholdout.scoring.statistics import f1
        >>> (part,) = f1(positive="spam").parts(None)
        >>> part.tally(ClassCounts(10, 4, 5, 3))
        Tally(n=10)
        """
        truth, said = np.array([True, True, False]), np.array([True, False, True])
        numbers = np.array([found.both, found.truth - found.both, found.said - found.both])
        a, b = self.of_cells(truth, said)
        wins = int(numbers[np.asarray(a) > 0].sum())
        return Tally(found.n, wins, int(numbers[np.asarray(b) > 0].sum()) - wins)
