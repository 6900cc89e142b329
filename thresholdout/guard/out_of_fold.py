"""Out-of-fold predictions, and the inner guard of a `KFoldGuard`, which evaluates queries about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from thresholdout.certificates.prior_queries import PriorQueries, check_prior_queries
from thresholdout.certificates.problem import declared_confidence
from thresholdout.data.arguments import check_count
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.answer import Answer
from thresholdout.guard.declared_parts import declared_parts
from thresholdout.guard.query import Query
from thresholdout.guard.query_engine import Read, key_of_list
from thresholdout.guard.registered_guard import RegisteredGuard
from thresholdout.guard.registration import noise_of
from thresholdout.guard.training_values import parts_of
from thresholdout.ledger.entry import SpareKey
from thresholdout.planning.declaration import Claims, Declaration
from thresholdout.planning.declared_parameters import check_choice
from thresholdout.scoring.metrics import Metric
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.guard.fold_assignment import Fold
    from thresholdout.ledger import Ledger
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.noise.sources import NoiseSource

__all__ = ["FoldPredictions", "OutOfFoldGuard", "check_estimator", "fold_predictions"]


_NO_ANSWER: Final = ("failed", "release")

Compute: TypeAlias = "Callable[[Any, Any], NDArray[Any]]"
"""Computes out-of-fold values from features and labels of all records."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoldPredictions:
    """Predictions of one fold's model for records of its fold."""

    records: NDArray[np.intp]
    output: NDArray[Any]
    classes: NDArray[Any] | None


def fold_predictions(estimator: Any, response: str, X: Any, y: Any, fold: Fold) -> list[FoldPredictions]:
    """Fit a clone to a fold's complement and predict the fold; records that it cannot predict are left out.

    Whether a prediction is missing depends on the complement and on that record alone, as the proof needs.
    """
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    def predicted(records: NDArray[np.intp]) -> list[FoldPredictions]:
        try:
            output = np.asarray(getattr(model, response)(_safe_indexing(X, records)))
        except Exception:  # halves find the record that fails: predictions of others must not depend on it
            half = len(records) // 2
            return predicted(records[:half]) + predicted(records[half:]) if half else []
        if output.shape[:1] != records.shape:
            raise InputError(
                "estimator", f"{len(output)} of {len(records)} predictions", "one that predicts each record"
            )
        if output.dtype.kind == "f":
            known = np.isfinite(output).reshape(len(records), -1).all(axis=1)
            records, output = records[known], output[known]
        return [FoldPredictions(records, output, getattr(model, "classes_", None))]

    with suppress_warnings():  # a warning's text may contain records
        unfitted = clone(estimator)
        try:
            model = unfitted.fit(_safe_indexing(X, fold.train), _safe_indexing(y, fold.train))
        except Exception:
            return []
        return predicted(fold.test)


def check_estimator(estimator: Any, response: str) -> None:
    """Refuse an estimator that folds cannot refit: a frozen model may have seen the fold that tests it."""
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise InputTypeError("estimator", repr(estimator), "a scikit-learn estimator, to be fitted for every fold")
    if not hasattr(estimator, response):
        seen = f"a {type(estimator).__name__} without {response}"
        raise InputTypeError("estimator", seen, f"an estimator with the method {response}")
    from sklearn.frozen import FrozenEstimator

    if any(isinstance(part, FrozenEstimator) for part in parts_of(estimator)):
        seen = "a frozen model, which is the same in every fold"
        raise InputError("estimator", seen, "an estimator that every fold can fit")


class OutOfFoldGuard(RegisteredGuard):
    """The inner guard of a `KFoldGuard`: it has no training part and computes values on all its records."""

    _last: tuple[int, dict[str, float]] = (0, {})
    """Number of entries read, and the last answer about each metric among them."""

    def __init__(
        self,
        data: tuple[Any, Any],
        *,
        dependence: DependenceModel,
        confidence: float,
        queries: int | None,
        mechanism: str | Claims | Parameters | None,
        prior_queries: int | PriorQueries,
        ledger: str | Path | Ledger | None,
        random_state: int | NoiseSource | None,
    ) -> None:
        records, model = declared_parts(data, None, False, None, dependence)
        noise = noise_of(random_state)
        declared = Declaration(
            queries=None if queries is None else check_count("queries", queries),
            confidence=declared_confidence(confidence),
            mechanism=check_choice(mechanism),
            dependence=model.fingerprint(),
            for_release=noise.for_release,
            prior_queries=check_prior_queries(prior_queries),
        )
        self._begin(records, model, declared, noise, ledger, {})
        records.warn_of_mistakes(dependence, model)

    def out_of_fold(self, query: Query, compute: Compute) -> Answer:
        """Check the limits, compute the values, ask."""
        return self._charged(lambda: self._engine.evaluate("estimator", *self._read(query, compute)))

    def all_of(self, asked: Sequence[tuple[Query, Compute]], reserve: float) -> list[Answer]:
        """Ask a list."""
        reads = [self._read(*one) for one in asked]
        return self._charged(lambda: self._engine.evaluate_all("models", reads, reserve))

    def best_of(self, asked: Sequence[tuple[Query, Compute]], reserve: float, metric: Metric) -> Answer:
        """Ask for the best one of a list."""
        queries = [query for query, _ in asked]
        key = key_of_list("best", [query.key for query in queries], [query.candidate for query in queries])
        repeated = self.stored(key, metric, f"best of {len(asked)}: {metric.name}")
        if repeated is not None:
            return repeated
        reads, greatest = [self._read(*one) for one in asked], metric.greater_is_better
        return self._charged(lambda: self._engine.evaluate_best("models", reads, reserve, greatest))

    def _read(self, query: Query, compute: Compute) -> Read:
        read = self._models.reading("estimator", query, lambda: compute(*self._records.holdout))
        return query, read

    def _charged(self, ask: Callable[[], T]) -> T:
        """Ask; a failure is charged, and its cause is hidden since it depends on the records."""
        before = self._engine.failures()
        try:
            return ask()
        except InputError:
            if self._engine.failures() == before:
                raise
            advice = (
                "This was charged as an answer from the records. The error is hidden, since it could show records. "
                "Try the estimator on other records first."
            )
            seen = "one with an error on the folds"
            raise InputError("estimator", seen, "an estimator that works on other records", advice) from None

    def key_of(self, key: str | None, estimator: Any, metric: Metric, expected: float | None) -> str | None:
        """Return the caller's key, or one from the class and parameters of an estimator; ``None`` for a new query."""
        from sklearn.base import clone

        if key is not None and not isinstance(key, SpareKey):
            return key
        try:
            unfitted = clone(estimator)  # without the results of an earlier fit
        except Exception:
            return key
        return self._models.keys.known_by(key, "cross-validation", unfitted, metric, expected)

    def stored(self, key: str | None, metric: Metric, name: str = "") -> Answer | None:
        """Return the answer that is stored for this key, or ``None``."""
        entry = None if key is None else self._ledger.find(self._id, key)
        if entry is None:
            return None
        return Query(0.0, metric.bounds, name or metric.name, key).answer(entry, True, self._mechanism.about)

    def answers(self) -> list[Answer]:
        """Return all answers, in the order of the queries."""
        return [
            Query(0.0, (entry.lower, entry.upper), entry.name, None).answer(entry, False, self._mechanism.about)
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
