"""Models without a stated law: independent records, independent groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.known_records import BoolArray
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up
from graphs.structure.labelled_values import numbered_labels
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["GroupSizes", "Groups", "Independent"]


class GroupSizes(DependenceModel):
    """Groups of records, given by the number of groups of each size.

    The dependence is that of `graphs.Groups`. The group of each record is not stored, so memory does not grow with the
    records. Leakages are ordered from the smallest group to the largest. Where budgets differ from record to record,
    each has the worst case: the largest group times the largest budget.
    """

    def __init__(self, sizes: Mapping[int, int]) -> None:
        if not isinstance(sizes, Mapping) or not sizes:
            seen = "no groups" if isinstance(sizes, Mapping) else f"a {type(sizes).__name__}"
            raise ArgumentError("sizes", seen, "a mapping from each size to its number of groups")
        for size, number in sizes.items():
            for value in (size, number):
                if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                    seen = f"{number!r} groups of {size!r}"
                    raise ArgumentError("sizes", seen, "a mapping of positive whole numbers")
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
        """Draw the worst case: one fair coin (0 or 1) per group, shared by all its records."""
        sizes = self.independent_groups()
        coins: IntArray = rng.integers(0, 2, size=len(sizes))
        return np.repeat(coins, sizes)

    def describe(self) -> str:
        """Return one line of words about the model."""
        low, high, number = int(self._size[0]), self.largest, int(self._number.sum())
        sizes = f"{low}" if low == high else f"{low} to {high}"
        groups = "group" if number == 1 else "groups"
        return f"{self.n} records in {number} independent {groups} of {sizes}"


class Independent(DependenceModel):
    """Model records that are independent of each other.

    This is the reference case for all other models. Use it if each record was sampled separately from one population.
    The variance inflation (design effect of a mean) is 1, and the leakage (privacy loss about one record) equals the
    privacy budget of that record.

    Parameters
    ----------
    n : int
        Number of records, at least one.

    Raises
    ------
    ArgumentError
        If `n` is not a positive integer.

    Examples
    --------
    >>> model = Independent(3)
    >>> model.leakage(0.1)
    array([0.1, 0.1, 0.1])
    >>> model.variance_inflation()
    1.0
    """

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        if isinstance(epsilon, float):
            return Profile.constant(epsilon, self.n)
        return Profile.of(epsilon.copy())

    def _inflation(self, method: str) -> float:
        return 1.0

    def _influences(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray:
        return weights

    def _content(self) -> Mapping[str, Any]:
        return {"n": self.n}

    def independent_groups(self) -> IntArray:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of shape (n,)
            An array of n ones: each record is a group of its own.
        """
        return np.ones(self.n, dtype=np.int64)

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Bound how many records change with each block when records are revealed block after block.

        See `DependenceModel.revealed_blocks` for the definition and for `missed`.

        Returns
        -------
        RevealedBlocks
            Attribute `changes` holds the numbers of records that change with a block, `counts` the number of such
            blocks. Each block is one record, and revealing it changes no other record.
        """
        return RevealedBlocks((1,), (self.n,))

    def effective_records(self) -> float:
        """Compute the effective sample size for bounds by relative entropy (Chernoff bounds).

        See `DependenceModel.effective_records` for the bound that holds with it.

        Returns
        -------
        float
            The number of records, because they are independent.
        """
        return float(self.n)

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic data set of n independent values.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record: 0 or 1 with equal probability.
        """
        return rng.integers(0, 2, size=self.n)

    def describe(self) -> str:
        """Describe the model in one line of text."""
        return f"{self.n} independent records"

    def _parts_given(self, known: BoolArray) -> IntArray:
        return np.arange(self.n)

    def _sample_given(self, known: Callable[[], Mapping[int, int]], rng: np.random.Generator) -> IntArray:
        return self.sample(rng)


class Groups(DependenceModel):
    """Model records in groups, with arbitrary dependence inside a group and none between groups.

    Use it when records share a patient, a household or a firm and nothing more is known about the dependence. It makes
    no assumption about the distribution inside a group. Models with more structure, such as `MarkovChain` or
    `GaussianField`, give smaller numbers where their assumptions hold.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    labels : iterable of hashable
        Group of each record, in the order of the records, for example a column of a data frame.

    Raises
    ------
    ArgumentError
        If there are no labels, a label is missing or cannot be hashed, or `labels` is a mapping, a set or a table.

    Notes
    -----
    A mechanism that is eps-differentially private in one record is (s eps)-differentially private in a group of s
    records (group privacy). No smaller bound holds if the records of a group are copies of each other. The variance
    inflation is the sum of the squared group sizes over n. It follows from McDiarmid's inequality for the groups,
    because the values of a group of size s change a mean by s / n at most.

    Examples
    --------
    >>> model = Groups(["ann", "ann", "bob"])
    >>> model.leakage(0.1).round(6)
    array([0.2, 0.2, 0.1])
    >>> model.describe()
    '3 records in 2 independent groups of 1 to 2'
    """

    def __init__(self, labels: Iterable[Any]) -> None:
        self._index, self._names = numbered_labels("labels", labels)
        super().__init__(len(self._index))
        self._sizes: IntArray = np.bincount(self._index).astype(np.int64)

    @property
    def groups(self) -> IntArray:
        """Group number of each record, shape (n,). Groups are numbered from 0 in order of first appearance.

        Examples
        --------
        >>> Groups(["b", "a", "b"]).groups
        array([0, 1, 0])
        """
        return self._index.copy()

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the groups, in order of first appearance.

        Examples
        --------
        >>> Groups(["b", "a", "b"]).names
        ('b', 'a')
        """
        return self._names

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        if isinstance(epsilon, float):
            values = np.where(self._sizes == 1, epsilon, up(self._sizes.astype(np.float64) * epsilon, 1))
        else:
            totals = np.bincount(self._index, weights=epsilon).astype(np.float64)
            values = np.where(self._sizes == 1, totals, up(totals, float(self._sizes.max())))
        return Profile(values, self._sizes, self._index)

    def _inflation(self, method: str) -> float:
        return int(np.sum(self._sizes**2)) / self.n * (1 + 2**-51)

    def _influences(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray:
        sums = np.bincount(self._index, weights=weights).astype(np.float64)
        return up(sums, float(self._sizes.max()))[self._index]

    def _content(self) -> Mapping[str, Any]:
        return {"index": self._index}

    def independent_groups(self) -> IntArray:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of int
            Number of records in each group, in order of first appearance.
        """
        return self._sizes.copy()

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic data set with the strongest dependence: all records of a group are equal.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record: 0 or 1 with equal probability, drawn once per group and shared by all its records.
        """
        coins: IntArray = rng.integers(0, 2, size=len(self._sizes))
        return coins[self._index]

    def describe(self) -> str:
        """Describe the model in one line of text."""
        low, high = int(self._sizes.min()), int(self._sizes.max())
        sizes = f"{low}" if low == high else f"{low} to {high}"
        groups = "group" if len(self._sizes) == 1 else "groups"
        return f"{self.n} records in {len(self._sizes)} independent {groups} of {sizes}"

    def _parts_given(self, known: BoolArray) -> IntArray:
        return self._index
