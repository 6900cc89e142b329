"""Queries about models in memory: fitted estimators, functions and values.

A query's training value is computed at once. Its values on the holdout are computed by the function that is returned
with it, which the query engine calls after all other checks.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.numerics.arguments import as_real
from thresholdout.data.arguments import check_word
from thresholdout.data.identity import handed_out
from thresholdout.data.record_labels import aligned
from thresholdout.data.values import clipped, is_boolean, unit_mean
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.given_features import Said, described, said_by
from thresholdout.guard.query import Query
from thresholdout.guard.query_engine import QueryEngine, Read
from thresholdout.guard.query_keys import Digest, KeyMaker, QueryKeys, estimator_digest, rounded
from thresholdout.guard.training_values import Predictions, Trained, fixed, trained
from thresholdout.mechanisms import UNKNOWN, Known
from thresholdout.mechanisms.base import Grouped, PairedCounts
from thresholdout.scoring.metrics import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.guard.column_queries import ColumnQueries
    from thresholdout.guard.comparison import About
    from thresholdout.guard.holdout import Records
    from thresholdout.mechanisms import Mechanism
    from thresholdout.planning.declaration import Declaration
    from thresholdout.scoring.statistics import Estimate, Statistic

__all__ = [
    "Expected",
    "ModelQueries",
    "Side",
    "Weights",
    "among_counted",
    "check_mean",
    "check_statistic",
    "checked_comparison",
]


class Weights:
    """Weights of both parts' records.

    A weighted mean on the holdout, ``sum w v / sum w``, is no mean over records, since each record also moves the
    denominator. So both parts are divided by the mean weight c of the *training* records, and the values ``w v / c``
    form an ordinary query with the estimand ``E[w v] / c``. Holdout weights are clipped to the largest training weight,
    so that the range is known without the holdout.
    """

    def __init__(self, weights: object, records: Records) -> None:
        if not isinstance(weights, tuple) or len(weights) != 2:
            raise InputTypeError("sample_weight", f"a {type(weights).__name__}", "(train weights, holdout weights)")
        own = aligned(weights[0], records.open_labels, "sample_weight")
        self._train = _checked(own, records.open_size, "training")
        holdout = _checked(records.ordered(weights[1], "sample_weight"), records.n, "holdout")
        with np.errstate(over="ignore"):
            self._centre = float(self._train.mean())
        if self._centre <= 0.0:
            raise InputError("sample_weight", "training weights that are all zero", "weights with a positive sum")
        self._most = float(self._train.max()) / self._centre
        if not (0.0 < self._most < math.inf and self._centre < math.inf):
            seen = "training weights with a ratio beyond the range of floats"
            raise InputError("sample_weight", seen, "weights of similar size")
        self._holdout = np.minimum(holdout / self._centre, self._most)

    def on_train(
        self, values: Any, bounds: tuple[float, float], tested: NDArray[np.intp] | None = None
    ) -> tuple[NDArray[np.float64], tuple[float, float]]:
        """Return weighted values of all or the tested training records, and their range."""
        lower, upper = bounds
        limits = min(0.0, lower) * self._most, max(0.0, upper) * self._most
        weights = self._train if tested is None else self._train[tested]
        weighted = np.asarray(values, dtype=np.float64) * (weights / self._centre)
        return np.clip(weighted, *limits), limits

    def on_holdout(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return weighted holdout values. Secret."""
        return values * self._holdout


def _checked(weights: object, n: int | None, part: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError("sample_weight", f"{part} weights that are no numbers", "two arrays of numbers") from None
    if array.ndim != 1 or (n is not None and array.size != n):
        seen = f"{part} weights of shape {array.shape}"
        raise InputError("sample_weight", seen, f"one weight for each of {n} records")
    if not np.isfinite(array).all() or (array < 0.0).any():
        seen = f"{part} weights that are missing, infinite or negative"
        raise InputError("sample_weight", seen, "finite weights of at least 0")
    return array


@dataclass(frozen=True, slots=True)
class Side:
    """One model of a comparison.

    ``train`` has its values on the training records (``None`` if unknown, see `Expected`) and ``tested`` these records,
    if not each once. ``holdout`` returns its values on the holdout; secret. With fixed features ``said`` has its
    outputs, and ``counted`` the public set of records that the comparison is about, if not all.
    """

    train: NDArray[np.float64] | None
    holdout: Callable[[], NDArray[np.float64]]
    said: Said | None
    tested: NDArray[np.intp] | None = None
    counted: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected difference of two scores (``None`` for no expectation), in place of values on the training records.

    ``binary`` is whether every value of a model is an end of the metric's range.
    """

    difference: float | None
    binary: bool


class ModelQueries:
    """Turns models, functions and values into queries about records in memory."""

    def __init__(
        self,
        records: Records,
        engine: QueryEngine,
        mechanism: Any,
        dependence: DependenceModel,
        declared: Declaration,
    ) -> None:
        self.records = records
        self.engine = engine
        self.mechanism = mechanism
        self.parameters = engine.parameters
        self.dependence = dependence
        records.group_by(dependence)
        self.declared = declared
        self.keys = QueryKeys(KeyMaker(engine.ledger, engine.identity))
        # Weak reference to the last model with a key. `object` returns an object that is no model, and holds no
        # reference: a ledger must close with the last reference to its guard.
        self._applied: tuple[Callable[[], Any], str] = object, ""

    def ask(
        self,
        train_values: object,
        holdout_values: object | None,
        limits: tuple[float, float],
        name: str,
        key: str | None,
        binary: bool | None,
    ) -> tuple[Query, Callable[[], Any], bool]:
        """Return a query of values or of a function, its reader, and whether the reader can fail on the holdout."""
        if not callable(train_values):
            if holdout_values is None:
                raise InputError("holdout_values", "nothing", f"{self.records.n} values, one per holdout record")
            return *self.pair(train_values, holdout_values, limits, name, key, binary), False
        if holdout_values is not None:
            raise InputError("holdout_values", "values", "None beside a callable, which is applied to both parts")
        values, on_holdout = self.records.apply(train_values)
        mean, known = self._train_mean(values, limits, self.mechanism, binary)
        key = self.keys.known_by(key, "ask", train_values, limits, binary, rounded(values))
        query = Query(mean, limits, name, key, known)
        return query, self.reading("train_values", query, on_holdout), True

    def pair(
        self,
        train_values: object,
        holdout_values: object,
        limits: tuple[float, float],
        name: str,
        key: str | None,
        binary: bool | None,
    ) -> Read:
        """Return a query of values for both parts; they are read at once, so that a refusal is free."""
        if binary is None and as_real(train_values) is not None:
            binary = is_boolean(holdout_values)
        mean, known = self._train_mean(train_values, limits, self.mechanism, binary)
        query = Query(mean, limits, name, key, known)
        holdout_values = self.records.ordered(holdout_values, "holdout_values")
        read = self.engine.read(holdout_values, self.records.n, query, "holdout_values")
        return query, lambda: read

    def digest(self, model: Any, score: Metric | Statistic) -> Digest | None:
        """Return the digest of a fitted estimator and its predictions; ``None`` if it has none."""
        if isinstance(model, str):
            advice = "Names of columns are for lazy frames."
            raise InputTypeError("estimator", f"the text {model!r}", "a fitted model", advice)
        self.forget_applied()
        found = estimator_digest(model, score, self.records.open, self.keys.say_unrecognised)
        if found is not None:
            with suppress(TypeError):  # a class with slots may have no weak references
                self._applied = weakref.ref(model), score.response_of(model)
        return found

    def forget_applied(self) -> None:
        """Forget the last model that was applied, since it may have been fitted again."""
        self._applied = object, ""  # as in __init__; a method would be a reference cycle

    def checked(
        self, metric: str | Metric | Statistic, sample_weight: tuple[object, object] | None
    ) -> tuple[Metric | Statistic, Weights | None]:
        """Return a score and weights; refuse a score that this guard cannot answer."""
        from thresholdout.scoring.statistics import get_score

        chosen = get_score(metric)
        self.parameters.check_direction(chosen.name, chosen.greater_is_better)
        self.records.labelled()
        if not isinstance(chosen, Metric):
            check_statistic(self.mechanism, chosen, self.declared)
            if sample_weight is not None:
                advice = "Weights need a metric that is a mean over records."
                raise InputError("sample_weight", "weights", f"None for {chosen.name!r}", advice)
        return chosen, None if sample_weight is None else Weights(sample_weight, self.records)

    def score(
        self,
        estimator: Any,
        metric: str | Metric | Statistic,
        cv: object | None,
        sample_weight: tuple[object, object] | None,
        key: str | None,
        given: Any = None,
    ) -> Read:
        """Return the query about a fitted estimator's score."""
        chosen, weights = self.checked(metric, sample_weight)
        train, holdout = self.records.labelled()
        found = self.trained(chosen, estimator, cv, given)
        values = found.values
        if not isinstance(chosen, Metric):
            from thresholdout.scoring.statistics import Estimate

            if not isinstance(values, Estimate):  # a given number, such as a search's cross-validated score
                values = chosen.estimate_at(_one_number(values, chosen), estimator, *train)
            return self._statistic(chosen, estimator, values, key)
        limits = chosen.bounds
        if weights is not None:
            values, limits = weights.on_train(values, chosen.bounds, found.tested)
        mean, known = self._train_mean(values, limits, self.mechanism, tested=found.tested)
        if np.ndim(values) == 0 and weights is None and not getattr(estimator, "only_holdout", False):
            if chosen.ends and self.records.grouped is None:
                known = replace(known, binary=True)
            else:
                known = self._resembling(chosen.of(estimator, *train), mean, limits)
        query = Query(mean, limits, chosen.name, key, known)
        worst = limits[0] if chosen.greater_is_better else limits[1]

        def on_holdout() -> object:
            protected = chosen.of(estimator, *handed_out(holdout))
            if weights is None:
                return protected
            return weights.on_holdout(clipped(protected, self.records.n, chosen.bounds, "estimator"))

        return query, self.reading("estimator", query, on_holdout, worst)

    together = together_asked = staticmethod(lambda *asked: nullcontext())  # models of a list are scored one by one

    def _statistic(self, statistic: Statistic, estimator: Any, found: Estimate, key: str | None) -> Read:
        """Return the query about a statistic that is no mean."""
        train_y, model, one_law = self.records.labelled()[0][1], self.dependence, self.declared.iid
        layout = statistic.layout(found, train_y, getattr(estimator, "classes_", None), model, one_law)
        unit = statistic.unit(found)
        query = Query(unit, statistic.bounds, statistic.name, key, Known(layout=layout), statistic.target)

        def read() -> Any:
            X, y = handed_out(self.records.holdout)
            evidence = statistic.evidence(estimator, X, y, train_y, model, one_law)
            return self.engine.statistic(evidence, query.known)

        return query, read

    def _train_mean(self, *args: Any, **rest: Any) -> tuple[float, Known]:
        """Return the mean of training values and the knowledge about the holdout's, with the declared sampling."""
        mean, known = self.records.train_mean(*args, **rest)
        return mean, replace(known, one_law=self.declared.iid) if self.declared.iid else known

    def trained(
        self, metric: Metric | Statistic, estimator: Any, cv: object | None, given: object | None = None
    ) -> Trained:
        """Return a fitted estimator's values on the training part."""
        records, (last, response) = self.records, self._applied
        self.forget_applied()
        applied = last() is estimator and metric.response_of(estimator) == response
        return trained(
            metric, estimator, records.labelled()[0], records.open_folds, cv, given, self._predictions, applied=applied
        )

    def fixed(self, cv: object | None) -> object | None:
        """Return the cross-validation of several estimators by the same folds."""
        return fixed(cv, self.records.labelled()[0], self.records.open_folds)

    @cached_property
    def _predictions(self) -> Predictions:
        """Cached out-of-fold predictions."""
        return Predictions()

    def _resembling(self, values: object, mean: float, limits: tuple[float, float]) -> Known:
        """Return the knowledge from values on the records that a model was fitted to, beside a mean over others."""
        fitted, known = self._train_mean(values, limits, self.mechanism)
        if known.variance is None:
            return known
        # Other records have a larger variance by about half the gap of the means, if single losses are 0 or 1.
        return replace(known, variance=min(0.25, known.variance + 0.5 * abs(mean - fitted)))

    def reading(
        self,
        argument: str,
        query: Query,
        on_holdout: Callable[[], object],
        missing: float | None = None,
        among: int | None = None,
    ) -> Callable[[], Any]:
        """Return the reader of per-record values that are computed on the holdout, or on ``among`` of its records.

        Values out of range are clipped and missing ones replaced, by a function of each record alone.
        """
        records = self.records.n if among is None else among

        def read() -> Any:
            values = self.records.ordered(on_holdout(), argument)
            try:
                return self.engine.read(values, records, query, argument)
            except InputError:
                inside = clipped(values, records, query.limits, argument, missing)
                return self.engine.read(inside, records, query, argument)

        return read

    def compared(self, metric: str | Metric, about: About) -> Metric:
        """Return the metric; refuse a comparison that this guard cannot answer."""
        return checked_comparison(self, metric, about)

    def contest(
        self,
        b: Any,
        a: Any,
        metric: Metric,
        about: About,
        cv: object | None,
        train_values: object | None,
        key: str | None,
    ) -> Read:
        """Return the query about two fitted estimators."""
        of_b, of_a = _checked_pair(train_values, self.records)
        how = self.fixed(cv)
        sides = self.side(b, metric, how, of_b), self.side(a, metric, how, of_a)
        return self.versus(metric, *sides, about, key)

    def against(
        self, baseline: Any, metric: Metric, about: About, cv: object | None
    ) -> Callable[[Any, str | None], Read]:
        """Return a function from models and keys to queries about them and a baseline, which is computed once."""
        how = self.fixed(cv)
        base = self.side(baseline, metric, how)
        return lambda model, key: self.versus(metric, self.side(model, metric, how), base, about, key)

    def side(self, model: Any, metric: Metric, cv: object | None, given: object | None = None) -> Side:
        """Return a fitted estimator for comparisons; its holdout values are computed once at most."""
        holdout = self.records.labelled()[1]
        found = self.trained(metric, model, cv, given)
        classes = getattr(model, "classes_", None)
        output = (
            None
            if not self.declared.fixed_features
            else np.array(getattr(model, metric.response)(handed_out(holdout)[0]))
        )

        @cache
        def on_holdout() -> NDArray[np.float64]:
            if output is None:
                return np.asarray(metric.of(model, *handed_out(holdout)), dtype=np.float64)
            # The stored outputs, not new ones: they decided which records the comparison leaves out.
            labels = np.asarray(handed_out(holdout)[1])
            return np.asarray(metric.values(labels, output.copy(), classes), dtype=np.float64)

        said = None if output is None else said_by(metric, output, classes)
        return Side(np.asarray(found.values, dtype=np.float64), on_holdout, said, found.tested)

    def versus(
        self,
        metric: Metric,
        b: Side,
        a: Side,
        about: About,
        key: str | None,
        name: str = "",
        expected: Expected | None = None,
    ) -> tuple[Query, Callable[[], Any]]:
        """Return the query about two sides and its reader on the holdout.

        `expected` replaces values on the training records.
        """
        if about == "win_rate":
            return self._wins(metric, b, a, key)
        title, most = name or f"{metric.name}, difference", metric.bounds[1] - metric.bounds[0]
        if b.said is None or a.said is None:
            if expected is not None:
                mean, known = _guessed(expected, most, 1.0), replace(UNKNOWN, groups=self._groups(None, (0.0, 1.0)))
            else:
                difference = _trained(b) - _trained(a)
                mean, known = self._train_mean(difference, (-most, most), self.mechanism, False, b.tested)
            signs = expected is None and most == 1.0 and _right_or_wrong(_trained(b), _trained(a))
            known = replace(
                known,
                difference=True,
                trinomial=signs and self.declared.iid,
                vague=expected is not None and expected.difference is None,
            )
            query = Query(mean, (-most, most), title, key, known)
            return query, self.reading("b", query, lambda: _both(self.records.n, b, a)[0], 0.0)
        differ, among = among_counted(b.said.differs(a.said, self.records.n), b.counted)
        share = float(np.count_nonzero(differ)) / among
        two = np.unique(self.records.open[1]).size <= 2 and b.said.same_classes(a.said)
        if expected is not None:
            training, variance, binary = self.records.open_size or self.records.n, None, two and expected.binary
            mean, groups = _guessed(expected, most, share), self._groups(None, (0.0, 1.0), differ)
        else:
            z = np.clip((_trained(b) - _trained(a)) / most, -1.0, 1.0)
            # Moments among the training records that differ, if their share is that of the holdout.
            middle, square = min(1.0, max(-1.0, float(z.mean()) / share)), min(1.0, float(np.mean(z * z)) / share)
            training, mean = z.size, 0.5 * (middle + 1.0)
            binary = two and _right_or_wrong(*((_trained(one) - metric.bounds[0]) / most for one in (b, a)))
            variance = None if binary else 0.25 * max(0.0, square - middle * middle)
            groups = self._groups(z, (-1.0, 1.0), differ, b.tested, differences=True)
        part = described(differ, self.dependence, training)
        vague = expected is not None and expected.difference is None
        known = Known(
            variance,
            binary,
            difference=True,
            part=part,
            vague=vague,
            groups=None if part.effective is None else groups,
        )
        query = Query(mean, (-most * share, most * share), title, key, known)
        return query, self.reading(
            "b", query, lambda: share * _both(self.records.n, b, a)[0][differ], 0.0, part.records
        )

    def _groups(
        self,
        values: object,
        bounds: tuple[float, float],
        among: NDArray[np.bool_] | None = None,
        tested: NDArray[np.intp] | None = None,
        *,
        differences: bool = False,
    ) -> Grouped | None:
        """Return the public knowledge of the groups of a query's records."""
        grouped = self.records.grouped
        return None if grouped is None else grouped.known(values, bounds, tested, among, differences)

    def _wins(self, metric: Metric, b: Side, a: Side, key: str | None) -> tuple[Query, Callable[[], Any]]:
        """Return the query about the win rate."""
        if not _right_or_wrong(_trained(b), _trained(a)):
            expected = f"'difference' for {metric.name}, whose values are not only 0 and 1"
            raise InputError("about", "'win_rate'", expected, "A win rate needs a metric such as 'accuracy'.")
        paired_counts = _paired_counts(_trained(b) - _trained(a), metric)
        known = Known(difference=True, paired_counts=paired_counts)
        query = Query(paired_counts.share, (0.0, 1.0), f"{metric.name}, win rate", key, known)

        def read() -> Any:
            difference, whole = _both(self.records.n, b, a)
            if not whole:
                raise InputError("b", "other values", "a model whose values are 0 or 1")
            return self.engine.paired_counts(_paired_counts(difference, metric), known)

        return query, read


def checked_comparison(queries: ModelQueries | ColumnQueries, metric: str | Metric, about: About) -> Metric:
    """Return a metric; refuse a comparison that a guard cannot answer."""
    check_word("about", about, ("difference", "win_rate"))
    chosen = check_mean(queries.checked(metric, None)[0], ", or compare the intervals of score_all([b, a])")
    queries.mechanism.shares_error_budget("a comparison", private="a comparison of models")
    if about == "win_rate" and not queries.declared.iid:
        advice = "If the records are identically distributed, make the guard with sampling='iid'."
        raise InputError("about", "'win_rate'", "'difference' for sampling='independent'", advice)
    if about == "win_rate" and not queries.mechanism.parameters.independent:
        seen = f"'win_rate' for {queries.dependence.describe()}"
        raise InputError("about", seen, "'difference' for records that are not independent")
    return chosen


def check_mean(metric: str | Metric | Statistic, otherwise: str = "") -> Metric:
    """Return a metric; refuse a statistic that is no mean over records, with advice."""
    from thresholdout.scoring.statistics import get_score

    chosen = get_score(metric)
    if not isinstance(chosen, Metric):
        advice = f"Take one of thresholdout.scoring.metrics{otherwise}."
        raise InputError("metric", repr(chosen.name), "a metric that is a mean over records", advice)
    return chosen


def check_statistic(mechanism: Mechanism[Any, Any], statistic: Statistic, declared: Declaration) -> None:
    """Refuse a statistic that is no mean if a mechanism answers only means, or features are fixed."""
    if not mechanism.statistics:
        expected = f"a mean over records for {mechanism.name}"
        raise InputError("metric", repr(statistic.name), expected, "Make the guard with mechanism='claims'.")
    if declared.fixed_features:
        expected = "a mean over records, such as 'accuracy', for sampling='fixed_features'"
        raise InputError("metric", repr(statistic.name), expected)


def _both(n: int, b: Side, a: Side) -> tuple[NDArray[np.float64], bool]:
    """Compute the difference of two sides on the holdout, and whether all their values are 0 or 1."""
    first, second = b.holdout(), a.holdout()
    if not first.shape == second.shape == (n,):
        raise InputError("b", "values of another shape", "a model with one value per record")
    return first - second, _right_or_wrong(first, second)


def among_counted(differ: NDArray[np.bool_], counted: NDArray[np.bool_] | None) -> tuple[NDArray[np.bool_], int]:
    """Return the counted records on which two models differ, and the number of counted records.

    As in `Said.differs`, the first counted record is returned if there is none.
    """
    if counted is None:
        return differ, differ.size
    found = differ & counted
    if not found.any():
        found[np.argmax(counted)] = True
    return found, int(np.count_nonzero(counted))


def _trained(side: Side) -> NDArray[np.float64]:
    """Return a side's values on the training records."""
    assert side.train is not None
    return side.train


def _guessed(expected: Expected, most: float, share: float) -> float:
    """Return an expected difference in units of the range that is possible if this share of the records differs."""
    if expected.difference is None:
        return 0.5
    unit = unit_mean([expected.difference], 1, (-most, most), "expected")
    return min(1.0, max(0.0, 0.5 + (unit - 0.5) / share))


def _checked_pair(values: object, records: Records) -> tuple[Any, Any]:
    """Return given training values of two models, or None for both."""
    if values is None:
        return None, None
    if not isinstance(values, (tuple, list)) or len(values) != 2:
        raise InputTypeError("train_values", f"a {type(values).__name__}", "a pair (values of b, values of a)")
    b, a = (np.asarray(aligned(one, records.open_labels, "train_values")) for one in values)
    n = records.open_size
    if any(one.shape != (n,) or one.dtype.kind not in "biuf" for one in (b, a)):
        seen = " and ".join(f"{one.dtype} of shape {one.shape}" for one in (b, a))
        raise InputError("train_values", seen, f"two arrays with a number for each of {n} training records")
    return b, a


def _right_or_wrong(*values: NDArray[np.float64]) -> bool:
    """Whether all values are 0 or 1."""
    return all(bool(((one == 0.0) | (one == 1.0)).all()) for one in values)


def _paired_counts(difference: NDArray[np.float64], metric: Metric) -> PairedCounts:
    """Count the records on which the first model is better, and those on which it is worse."""
    more, less = int(np.count_nonzero(difference > 0.0)), int(np.count_nonzero(difference < 0.0))
    return (
        PairedCounts(more, less, difference.size)
        if metric.greater_is_better
        else PairedCounts(less, more, difference.size)
    )


def _one_number(value: object, statistic: Statistic) -> float:
    """Return a given training value of a statistic."""
    number = as_real(value)
    if number is None:
        raise InputTypeError("train_values", f"a {type(value).__name__}", f"the {statistic.name} of the training part")
    return number
