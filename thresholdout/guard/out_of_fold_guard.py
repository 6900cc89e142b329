"""The guard inside a `KFoldGuard`: it asks about the out-of-fold values of all records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError
from thresholdout.guard.answer import Answer
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.query import Query
from thresholdout.scoring.metrics import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OutOfFoldGuard"]

_NO_ANSWER: Final = ("failed", "release")


class OutOfFoldGuard(Thresholdout):
    """The guard inside: it has no training part, and computes values on all its records."""

    _last: tuple[int, dict[str, float]] = (0, {})
    """How many entries have been read, and the last answer about each metric among them."""

    def out_of_fold(self, query: Query, compute: Callable[[Any, Any], NDArray[Any]]) -> Answer:
        """Check the limits, compute the values, ask. A failure is charged: it tells about the records."""
        before = self._engine.failures()
        try:
            read = self._models.reading("estimator", query, lambda: compute(*self._records.holdout))
            return self._engine.evaluate("estimator", query, read)
        except InputError:
            if self._engine.failures() == before:
                raise
            failed = "an error on the folds (its message could show records); charged as an answer from the records"
            raise InputError("estimator", failed, "an estimator that works; try it on other records first") from None

    def stored(self, key: str, metric: Metric) -> Answer | None:
        """Return the answer that was given to this key, if there is one."""
        entry = self._ledger.find(self._id, key)
        if entry is None:
            return None
        return Query(0.0, metric.bounds, metric.name, key).answer(entry, True, self._mechanism.about)

    def answers(self) -> list[Answer]:
        """Return all answers, in the order of the queries."""
        return [
            Query(0.0, (entry.lower, entry.upper), entry.name, entry.key).answer(entry, False, self._mechanism.about)
            for entry in self._ledger.entries(self._id)
            if entry.source not in _NO_ANSWER
        ]

    def last(self, metric: Metric) -> float | None:
        """Return the last answer about this metric, and ``None`` before the first."""
        read, values = self._last
        for entry in self._ledger.entries(self._id, read + 1):
            read = entry.query
            if entry.source not in _NO_ANSWER:
                values = values | {entry.name: entry.value}
        self._last = read, values
        return values.get(metric.name)
