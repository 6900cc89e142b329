"""Groups of which only the sizes are known: what is left of them where nothing is kept for each record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.known_records import BoolArray
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["GroupSizes"]


class GroupSizes(DependenceModel):
    """Groups of records, of which it is known how many there are of each size.

    The dependence is that of `graphs.Groups`: anything inside a group, none across. Which record is in which group is
    left open, so memory does not grow with the records.

    Parameters
    ----------
    sizes : mapping of int to int
        From each size to the number of groups that have it.

    Raises
    ------
    ArgumentError
        Where there is no group, or a size or a number is no positive whole number.

    Notes
    -----
    Leakages are those of `graphs.Groups`, record by record from the smallest group to the largest one. Where budgets
    differ from record to record, each has that of the worst case: the largest group times the largest budget.

    Examples
    --------
    >>> from graphs import Groups
    >>> model, known = GroupSizes({1: 1, 2: 1}), Groups(["ann", "bob", "bob"])
    >>> model.describe()
    '3 records in 2 independent groups of 1 to 2'
    >>> model.effective_records() == known.effective_records()
    True
    >>> model.variance_inflation() == known.variance_inflation()
    True
    """

    def __init__(self, sizes: Mapping[int, int]) -> None:
        if not isinstance(sizes, Mapping) or not sizes:
            seen = "no groups" if isinstance(sizes, Mapping) else f"a {type(sizes).__name__}"
            raise ArgumentError("sizes", seen, "from each size to the number of groups that have it")
        for size, number in sizes.items():
            for value in (size, number):
                if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                    raise ArgumentError("sizes", f"{number!r} groups of {size!r}", "positive whole numbers")
        self._size: IntArray = np.array(sorted(map(int, sizes)), dtype=np.int64)
        self._number: IntArray = np.array([sizes[size] for size in self._size.tolist()], dtype=np.int64)
        super().__init__(sum(int(size) * int(number) for size, number in sizes.items()))

    @property
    def largest(self) -> int:
        """Size of the largest group."""
        return int(self._size[-1])

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        if isinstance(epsilon, float):
            values = np.where(self._size == 1, epsilon, up(self._size.astype(np.float64) * epsilon, 1))
            return Profile(values, self._size * self._number)
        return Profile.constant(float(up(float(self.largest) * float(epsilon.max()), 1)), self.n)

    def _inflation(self, method: str) -> float:
        squares = sum(int(size) ** 2 * int(number) for size, number in zip(self._size, self._number, strict=True))
        return squares / self.n * (1 + 2**-51)

    def _influences(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray | None:
        return None  # they name records

    def _content(self) -> Mapping[str, Any]:
        return {"size": self._size, "number": self._number}

    def independent_groups(self) -> IntArray:
        """Return the sizes of the groups, from the smallest one."""
        return np.repeat(self._size, self._number)

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Return a block for every group."""
        return RevealedBlocks(tuple(self._size.tolist()), tuple(self._number.tolist()))

    def effective_records(self) -> float:
        """Return the number of records over the size of the largest group."""
        return self.n / self.largest

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw the worst case: one fair coin (0 or 1) per group, shared by all its records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n,)
            From the smallest group to the largest one.
        """
        sizes = self.independent_groups()
        coins: IntArray = rng.integers(0, 2, size=len(sizes))
        return np.repeat(coins, sizes)

    def describe(self) -> str:
        """Return one line of words about the model."""
        low, high, number = int(self._size[0]), self.largest, int(self._number.sum())
        sizes = f"{low}" if low == high else f"{low} to {high}"
        groups = "group" if number == 1 else "groups"
        return f"{self.n} records in {number} independent {groups} of {sizes}"
