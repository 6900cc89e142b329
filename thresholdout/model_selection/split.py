"""A splitter that fits on the whole training part and leaves the scoring to a guard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TrainSplit"]


class TrainSplit:
    """One split: fit on all ``n`` training records; the "test" side is a placeholder, the first record twice.

    A search hands the test side to its scorer. A `GuardScorer` never looks at it, but asks the guard, who holds the
    holdout; so the holdout need not pass through the search, and a final refit uses training records only.

    Parameters
    ----------
    n : int
        Number of training records.

    Examples
    --------
    >>> [(fit.size, test.size) for fit, test in TrainSplit(100).split(np.zeros((100, 2)))]
    [(100, 2)]
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the one split.

        Raises
        ------
        InputError
            When ``X`` has not ``n`` records: it must be the guard's training part.
        """
        size = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        if size != self.n:
            raise InputError("X", f"{size} records", f"the guard's training part, {self.n} records")
        yield np.arange(self.n), np.zeros(2, dtype=np.intp)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return 1."""
        return 1

    def __repr__(self) -> str:
        return f"TrainSplit({self.n})"
