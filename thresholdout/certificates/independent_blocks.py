"""Independent groups of records, as the routes by walks and by posteriors need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["IndependentBlocks", "blocks_of"]

_UP = 1.0 + 1e-14


@dataclass(frozen=True, slots=True)
class IndependentBlocks:
    """What counts about records that form independent groups with any dependence inside.

    Parameters
    ----------
    n : int
        Number of records.
    inflation : float
        Lambda, at least ``sum s_g^2 / n`` for groups of s_g records.
    largest : float
        At least the size of every group.
    exception : float
        Probability eta that the groups, if they are random, are larger than this; 0 for declared ones.

    Examples
    --------
    >>> IndependentBlocks.of_sizes(np.array([1, 1, 2]))
    IndependentBlocks(n=4, inflation=1.5..., largest=2.0, exception=0.0)
    >>> IndependentBlocks.of_records(100).effective
    100.0
    """

    n: int
    inflation: float
    largest: float
    exception: float = 0.0

    @classmethod
    def of_records(cls, n: int) -> IndependentBlocks:
        """Return single independent records."""
        return cls(n, 1.0, 1.0)

    @classmethod
    def of_sizes(cls, sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> IndependentBlocks:
        """Return groups of these sizes."""
        total = int(sizes.sum())
        squares = float(np.sum(sizes.astype(np.float64) ** 2))
        if sizes.max() == 1:
            return cls.of_records(total)
        return cls(total, squares / total * _UP, float(sizes.max()))

    @property
    def effective(self) -> float:
        """N = n/Lambda, the number of records that this is worth; the number of groups when they are equal."""
        return self.n / self.inflation

    @property
    def fewest(self) -> float:
        """``n/s_max``: the number of groups if all were as large as the largest."""
        return self.n / self.largest

    @property
    def crowding(self) -> float:
        """``s_max^2 / (Lambda n)``: 1/N for equal groups, more when some are larger."""
        return self.largest**2 / (self.inflation * self.n)


def blocks_of(model: DependenceModel) -> IndependentBlocks | None:
    """Return the independent groups that a model declares, ``None`` when it has other dependence.

    Examples
    --------
    >>> from graphs import Groups, Independent, MarkovChain
    >>> blocks_of(Groups([0, 0, 1])).largest, blocks_of(Independent(7)).n
    (2.0, 7)
    >>> blocks_of(MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=5)) is None
    True
    """
    from graphs import Independent

    if isinstance(model, Independent):
        return IndependentBlocks.of_records(model.n)
    sizes = model.independent_groups()
    return None if sizes is None else IndependentBlocks.of_sizes(sizes)
