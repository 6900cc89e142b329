"""The two models of a gate: fitted estimators with records in memory, or columns of lazy frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.identity import handed_out
from thresholdout.data.parts.lazy_part import Wanted
from thresholdout.data.values import clipped, unit_records
from thresholdout.errors import InputError
from thresholdout.guard.column_metrics import slack_of
from thresholdout.guard.column_queries import ColumnQueries
from thresholdout.guard.query_engine import Scan
from thresholdout.guard.training_values import check_refit, without_fits
from thresholdout.mechanisms.claims.gate_states import Gains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.data.values import UnitRecords
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.guard.training_values import Splits
    from thresholdout.mechanisms.claims.gate_states import Rules
    from thresholdout.mechanisms.claims.gate_tests import GateTest
    from thresholdout.noise.sources import NoiseSource
    from thresholdout.scoring.metrics import Metric

__all__ = ["ColumnSides", "ModelSides", "Side", "sides_of"]

_BOTH: Final = (
    "Pass train_values= to guard.gate and to propose, a value for each training record; or call "
    "propose(candidate, cv='training')."
)


@dataclass(frozen=True, slots=True)
class Side:
    """A model (or column name) with its training values in units of the metric's range.

    ``ends`` is whether the values, and for a column those of the holdout, are 0 or 1; ``given`` whether they were
    given.
    """

    estimator: Any
    level: float
    ends: bool
    values: NDArray[np.float64] | None = None
    folds: Splits | None = None
    given: bool = False

    def alike(self, other: Side) -> bool:
        """Whether both have values from the same folds, or this one has given values."""
        if self.given or self.folds is None or other.folds is None:
            return self.given or (self.folds is other.folds and not other.given)
        return len(self.folds) == len(other.folds) and all(
            np.array_equal(mine, its)
            for own, others in zip(self.folds, other.folds, strict=True)
            for mine, its in zip(own, others, strict=True)
        )

    def same(self, estimator: object) -> bool:
        """Whether this is the same object, or the column of that name."""
        both = isinstance(estimator, str) and isinstance(self.estimator, str)
        return self.estimator == estimator if both else self.estimator is estimator


class ModelSides:
    """Fitted estimators, with records in memory."""

    champion_again = (
        "the champion itself",
        "another object than the champion",
        "Make one by clone(model).fit(...), or by copy.deepcopy(model).",
    )

    def __init__(self, guard: Thresholdout, metric: Metric) -> None:
        self._guard = guard
        self._metric = metric

    def first(self, champion: Any, given: object | None) -> Side:
        """Return the gate's first model; it is cross-validated only if it can be refitted."""
        return self.trained(champion, None if given is not None else without_fits(self._guard._open_folds), given)

    def trained(self, model: Any, cv: object | None, given: object | None = None) -> Side:
        """Return a model with its training values."""
        found = self._guard._trained(self._metric, model, cv, given)
        if found.given and np.ndim(found.values) == 0:
            raise InputError("train_values", repr(given), "one value for each training record")
        size = len(self._guard._open[1]) if found.tested is None else found.tested.size
        argument = "train_values" if found.given else "candidate"
        values = unit_records(found.values, size, self._metric.bounds, argument).unit()
        ends = bool(np.isin(values, (0.0, 1.0)).all())
        return Side(model, float(np.mean(values)), ends, values, found.splits, found.given)

    def like(self, model: Side, new: Side) -> Side:
        """Return a model with training values from the folds of a candidate's."""
        if model.alike(new):
            found = model
        elif not new.given:
            if new.folds is not None:
                check_refit(model.estimator, "champion", _BOTH)
            found = self.trained(
                model.estimator, without_fits(self._guard._open_folds) if new.folds is None else new.folds
            )
        elif model.folds is None:
            seen = "values of the candidate alone"
            expected = "given for the champion, too: guard.gate(champion, train_values=...)"
            raise InputError("train_values", seen, expected)
        else:
            found = model
        ours, theirs = _values(new), _values(found)
        if ours.size != theirs.size:
            seen = f"{ours.size} values of the candidate and {theirs.size} of the champion"
            advice = "Pass a cv= to propose that tests each training record once."
            raise InputError("train_values", seen, "as many values of both models", advice)
        return found

    def gains(self, new: Side, old: Side) -> Gains:
        """Return the training records' gains."""
        sign = 1.0 if self._metric.greater_is_better else -1.0
        return Gains.of(sign * (_values(new) - _values(old)), self._guard._records.grouped)

    def on_holdout(self, new: Side, old: Side, rules: Rules) -> Callable[[], Callable[[NoiseSource], GateTest]]:
        """Return a function that computes both models' values on the holdout."""
        records, metric, n = self._guard._records, self._metric, self._guard.n
        worst = metric.bounds[0 if metric.greater_is_better else 1]

        def values(model: Any) -> UnitRecords:
            found = metric.of(model, *handed_out(records.labelled()[1]))
            inside = clipped(found, n, metric.bounds, "candidate", worst)
            return unit_records(inside, n, metric.bounds, "candidate")

        def read() -> Callable[[NoiseSource], GateTest]:
            first, second = values(new.estimator), values(old.estimator)
            if not metric.greater_is_better:
                first, second = second, first  # a smaller loss is a gain
            return lambda noise: rules.holdout(first, second, noise, records.grouped)

        return read


class ColumnSides:
    """Columns of predictions in lazy frames. A record without a prediction or a label counts as no gain."""

    champion_again = ("the champion's column", "another column of predictions")

    def __init__(self, queries: ColumnQueries, metric: Metric) -> None:
        if slack_of(metric):
            advice = (
                "Engines compute it with different last digits. Use 'brier_score', or "
                "guard.compare(new, champion, metric)."
            )
            seen = f"{metric.name!r}"
            raise InputError("metric", seen, "a metric without logarithms for a gate of lazy frames", advice)
        self._queries = queries
        self._metric = metric

    def first(self, champion: Any, given: object | None) -> Side:
        """Return the gate's first column."""
        return self.trained(champion, None, given)

    def trained(self, model: Any, cv: object | None, given: object | None = None) -> Side:
        """Return a column with the mean of its training values."""
        for argument, value in (("cv", cv), ("train_values", given)):
            if value is not None:
                advice = "The training values are those of the column in the training part."
                raise InputError(argument, repr(value), "None for lazy frames", advice)
        mean, ends = self._queries.level(model, self._metric)
        return Side(model, mean, ends)

    def like(self, model: Side, new: Side) -> Side:
        """Return the column as it is."""
        return model

    def gains(self, new: Side, old: Side) -> Gains:
        """Return the training records' gains."""
        records, (b, a) = self._queries.records, self._pair(new, old)
        joint = self._queries.trained_joint(b, a, self._metric, "candidate")
        return Gains.of_totals(joint.difference, records.known_groups(self._difference(b, a), joint.difference))

    def on_holdout(self, new: Side, old: Side, rules: Rules) -> Callable[[], Callable[[NoiseSource], GateTest]]:
        """Return the scan of the holdout."""
        records, (b, a) = self._queries.records, self._pair(new, old)
        read = lambda found: lambda noise: rules.holdout_of_totals(found)  # noqa: E731
        if rules.grouped:
            return Scan(lambda: records.group_totals(self._difference(b, a)), read)
        return Scan(lambda: records.part.joint(b, a, self._metric.bounds, argument="candidate"), read)

    def _pair(self, new: Side, old: Side) -> tuple[Any, Any]:
        """Return both models' values as expressions, the better one first where values are gains."""
        b, a = (self._queries.values_of(self._metric, one.estimator) for one in (new, old))
        return (b, a) if self._metric.greater_is_better else (a, b)

    def _difference(self, b: Any, a: Any) -> Wanted:
        return self._queries.difference(b, a, self._metric, "candidate")


def sides_of(guard: Thresholdout, metric: Metric) -> ModelSides | ColumnSides:
    """Return the kind of models that a guard's gate compares."""
    queries = guard._queries
    if isinstance(queries, ColumnQueries):
        return ColumnSides(queries, metric)
    guard._records.labelled()
    return ModelSides(guard, metric)


def _values(side: Side) -> NDArray[np.float64]:
    assert side.values is not None
    return side.values
