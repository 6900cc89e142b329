"""The part of the records that a search holds out, and its guard."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import PlanError
from thresholdout.guard.guard import Thresholdout
from thresholdout.planning.declaration import Claims, SparseVector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.answer import Answer
    from thresholdout.model_selection.guarded_search import GuardedSearchCV

__all__ = ["HeldOut"]


class HeldOut:
    """Records split for a search without regard to labels; `train` has the rest: X, y, groups, fit_params."""

    def __init__(self, owner: GuardedSearchCV, X: Any, y: Any, groups: Any, fit_params: Mapping[str, Any]) -> None:
        from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
        from sklearn.utils import _safe_indexing, indexable

        X, y, groups = indexable(X, y, groups)
        n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        kind = ShuffleSplit if groups is None else GroupShuffleSplit
        splitter = kind(1, test_size=owner.holdout, random_state=owner.random_state)
        kept, held = next(splitter.split(np.zeros((n, 1)), None, groups))

        def some(values: Any, positions: NDArray[np.intp]) -> Any:
            return _safe_indexing(values, positions)

        def by_record(value: Any) -> bool:
            return hasattr(value, "__len__") and not isinstance(value, (str, Mapping)) and len(value) == n

        params = {name: some(value, kept) if by_record(value) else value for name, value in fit_params.items()}
        self.train = (some(X, kept), some(y, kept), None if groups is None else some(groups, kept), params)
        self._held = (some(X, held), some(y, held))
        self._groups = None if groups is None else some(groups, held)

    def guard(self, owner: GuardedSearchCV, queries: int) -> Thresholdout:
        """Make the guard for a known number of queries."""

        def make(mechanism: Claims | SparseVector) -> Thresholdout:
            return Thresholdout(
                (*self._held, self._groups),
                train=self.train[:3],
                confidence=owner.confidence,
                queries=queries,
                mechanism=mechanism,
                ledger=owner.ledger,
                random_state=copy.deepcopy(owner.noise),
                allow_duplicates=True,
            )

        try:
            return make(Claims(holdout_answers=owner.budget))
        except PlanError:
            return make(SparseVector(0.5, 0.01, budget=owner.budget))

    def warn_of_nothing(self, answers: Sequence[Answer | None]) -> None:
        """Warn if every interval is wider than half of the range, so that no answer says anything."""
        told = [answer for answer in answers if answer is not None]
        if told and all(high - low > 0.5 * (a.upper - a.lower) for a in told for low, high in [a.interval]):
            warnings.warn(
                f"The held-out part of {len(self._held[1])} records is too small to certify anything about "
                f"{len(told)} queries: intervals are wider than half of the range. Hold out more records.",
                UserWarning,
                stacklevel=3,
            )
