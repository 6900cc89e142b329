"""Queries about columns of lazy frames: expressions, scores of prediction columns, and comparisons of two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from graphs.numerics.arguments import as_real
from thresholdout.data.parts.lazy_part import Wanted
from thresholdout.data.parts.part_groups import distinct_values
from thresholdout.data.values import unit_mean
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.column_areas import Predicted
from thresholdout.guard.column_classes import check_predicted
from thresholdout.guard.column_metrics import labels_are_zero_or_one, metric_expression, slack_of
from thresholdout.guard.column_statistics import LabelSpread, label_spread, statistic_query, wanted_of_statistic
from thresholdout.guard.content_keys import content_digest
from thresholdout.guard.given_features import EXACT, largest_group, part_of
from thresholdout.guard.lazy_records import LazyRecords
from thresholdout.guard.model_queries import check_statistic, checked_comparison
from thresholdout.guard.query import Query
from thresholdout.guard.query_engine import QueryEngine, Read, Scan
from thresholdout.guard.query_keys import Digest, KeyMaker, QueryKeys
from thresholdout.mechanisms import Known, Part
from thresholdout.mechanisms.base import PairedCounts
from thresholdout.mechanisms.claims.gate_states import Gains
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score

if TYPE_CHECKING:
    import narwhals as nw

    from graphs import DependenceModel
    from thresholdout.data.parts.expressions import Compiled
    from thresholdout.data.parts.lazy_part import LazyPart
    from thresholdout.data.parts.totals import Joint, Totals
    from thresholdout.guard.comparison import About
    from thresholdout.planning.declaration import Declaration

__all__ = ["ColumnQueries"]

_COLUMN = "the name of a column of predictions"
_VALUES = "an expression of narwhals, such as nw.col('pred') == nw.col('y'), or the name of a column"


class ColumnQueries:
    """Turns expressions and columns of lazy frames into queries."""

    def __init__(
        self,
        records: LazyRecords,
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
        self.declared = declared
        self.keys = QueryKeys(KeyMaker(engine.ledger, engine.identity))
        self._spreads: dict[str, LabelSpread] = {}

    def ask(
        self,
        train_values: object,
        holdout_values: object | None,
        limits: tuple[float, float],
        name: str,
        key: str | None,
        binary: bool | None,
    ) -> tuple[Query, Callable[[], Any], bool]:
        """Return a query of an expression, its reader, and that the reader can fail on the holdout."""
        return *self.pair(train_values, holdout_values, limits, name, key, binary), True

    def fixed(self, cv: object | None) -> object | None:
        """Return a cross-validation unchanged; queries refuse it."""
        return cv

    def trained(
        self, metric: Metric | Statistic, estimator: Any, cv: object | None, given: object | None = None
    ) -> NoReturn:
        """Refuse a model, which needs records in memory."""
        self.records.labelled()

    def compared(self, metric: str | Metric, about: About) -> Metric:
        """Return the metric; refuse a comparison that this guard cannot answer."""
        return checked_comparison(self, metric, about)

    def pair(
        self,
        train: object,
        holdout: object | None,
        limits: tuple[float, float],
        name: str,
        key: str | None,
        binary: bool | None,
    ) -> Read:
        """Return the query about an expression, for both parts or one for each."""
        if callable(train):
            self.records.apply(train)
        if holdout is None and as_real(train) is not None:
            raise InputError("holdout_values", "nothing", _VALUES, "The training part has a number.")
        for values, name_of in ((train, "train_values"), (holdout, "holdout_values")):
            if hasattr(values, "__len__") and not isinstance(values, str):
                self.records.ordered(values, name_of)
        argument = "train_values" if holdout is None else "holdout_values"
        expressions: list[Any] = [one for one in (train, holdout) if one is not None and as_real(one) is None]
        for one in expressions:
            _check_no_logarithm(self.records.part.compiled(one, argument), argument)
        return self._column_query(
            train, train if holdout is None else holdout, argument, limits, name, key, binary, None
        )

    def _column_query(
        self,
        train: Any,
        holdout: Any,
        argument: str,
        limits: tuple[float, float],
        name: str,
        key: str | None,
        binary: bool | None,
        missing: float | None,
    ) -> Read:
        """Return a query about an expression's values on the holdout.

        A value out of range counts as the nearer end, and a missing one as `missing`, by default the lower end. Both
        are functions of each record alone.
        """
        frames = self.records
        compiled = frames.part.compiled(holdout, argument)
        sure = _is_share(compiled, limits)
        number = as_real(train)
        if number is not None:
            training: object = number
            found = wanted = None
            mean = unit_mean([number], 1, limits, "train_values")
            known = Known(binary=sure if binary is None else binary)
        else:
            found = self._train_totals(train, limits, missing)
            mean, known = self.mechanism.trained(found, None, limits, "train_values", binary)
            wanted = Wanted(train, limits, missing, argument="train_values")
            if binary and not found.ends:
                raise InputError("binary", "True for values between the ends of the range", "False or None")
            # engines differ in the last digits of logarithms, and their queries are the same
            training = round(found.mean.mean(), 6) if compiled.logarithm else found.mean.total, found.n
        known = self._grouped(known, wanted, found)
        content = compiled.text, frames.content(compiled.columns), limits, binary, missing, training
        query = Query(mean, limits, name, self.keys.known_by(key, "columns", *content), known)
        asked = Wanted(holdout, limits, missing, self.mechanism.needs_squares(known), argument)
        read = lambda totals: self.engine.read(totals, self.records.n, query, argument)  # noqa: E731
        if self.mechanism.needs_group_sums(known):
            by = frames.group_column
            return query, Scan(lambda: frames.group_totals(asked), read, frames.part, [asked], by)
        return query, Scan(lambda: frames.part.totals_of([asked])[0], read, frames.part, [asked])

    def _grouped(self, known: Known, train: Wanted | None, found: Totals | None) -> Known:
        """Return the knowledge about a query, with its groups if a column has them."""
        if not self.mechanism.expects_spread:
            return known
        return replace(known, groups=self.records.known_groups(train, found))

    def _train_totals(self, train: Any, limits: tuple[float, float], missing: float | None) -> Totals:
        """Let the engine count the training part's values."""
        part = self.train_frame()
        (found,) = part.totals_of([self._training(part, train, limits, missing)])
        if missing is None:
            found.check("train_values", limits)
        else:
            check_predicted(found, "estimator", "predictions of all of them, or train_values= their score")
        return found

    def _training(self, part: LazyPart, train: Any, limits: tuple[float, float], missing: float | None) -> Wanted:
        """Return the totals of the training part's values."""
        sure = _is_share(part.compiled(train, "train_values"), limits)
        return Wanted(train, limits, missing, self.mechanism.expects_spread and not sure, "train_values")

    def together(
        self, models: Sequence[object], metric: Metric | Statistic, baseline: object | None = None
    ) -> AbstractContextManager[None]:
        """Count the training values of a list of columns in one pass, for its queries."""
        import narwhals as nw

        part, label = self.records.train_part, self.records.label
        if part is None or label is None or len(models) < 2:
            return nullcontext()
        if isinstance(metric, Statistic):
            return part.fetched(wanted_of_statistic(self, [self._columns(model) for model in models], metric))
        columns = [self._column(model) for model in models]
        values, limits = [metric_expression(metric, one, label) for one in columns], metric.bounds
        labels = Wanted(nw.col(label).is_in([0, 1]), argument="label")
        if baseline is None:
            worst = limits[0] if metric.greater_is_better else limits[1]
            asked = [self._training(part, one, limits, worst) for one in values]
            return self._fetched(part, [labels, *asked], asked)
        base = metric_expression(metric, self._column(baseline, "a"), label)
        asked = [wanted for one in values for wanted in part.joint_wanted(one, base, limits)]
        return self._fetched(part, [labels, *asked], [self.difference(one, base, metric, "b") for one in values])

    def together_asked(self, queries: Sequence[Any], limits: tuple[float, float]) -> AbstractContextManager[None]:
        """Count the training values of a list of expressions in one pass."""
        import narwhals as nw

        part = self.records.train_part
        values = [train for train, _ in queries if isinstance(train, (nw.Expr, str))]
        if part is None or len(values) < 2:
            return nullcontext()
        asked = [self._training(part, one, limits, None) for one in values]
        return self._fetched(part, asked, asked)

    @contextmanager
    def _fetched(self, part: LazyPart, asked: Sequence[Wanted], by_group: Sequence[Wanted]) -> Iterator[None]:
        """Count in one pass, and sum by group in another one if bets are placed on groups."""
        column = self.records.group_column if self.mechanism.expects_spread else None
        with part.fetched(asked), nullcontext() if column is None else part.fetched(by_group, column):
            yield

    @property
    def label(self) -> str:
        """Name of the label column, which the guard must have."""
        label = self.records.label
        assert label is not None
        return label

    def spread(self, part: LazyPart) -> LabelSpread:
        """Return the variance of a part's labels, which is computed once."""
        if part.name not in self._spreads:
            self._spreads[part.name] = label_spread(part, self.label)
        return self._spreads[part.name]

    def train_frame(self) -> LazyPart:
        """Return the training part; refuse a query without one."""
        part = self.records.train_part
        if part is None:
            raise InputError("train", "nothing", "Thresholdout(holdout, train=train)")
        return part

    forget_applied = staticmethod(lambda: None)  # columns are not fitted

    def digest(self, model: Any, score: Metric | Statistic) -> Digest | None:
        """Return the identity of a prediction column, beside that of its holdout."""
        column, label = self._columns(model), self.label
        names, own = ([column], column) if isinstance(column, str) else (list(column.values()), list(column.items()))
        return Digest(content_digest("column", own, self.records.content([*names, label]), label))

    def _columns(self, model: object) -> Predicted:
        """Return the name of a prediction column, or one for each class, in the order of their names."""
        if not isinstance(model, Mapping):
            return self._column(model)
        return {one: self._column(model[one]) for one in sorted(model, key=repr)}

    def _column(self, model: object, argument: str = "estimator") -> str:
        """Return the name of a prediction column; refuse other values."""
        if not isinstance(model, str):
            raise InputTypeError(argument, f"a {type(model).__name__}, beside lazy frames", _COLUMN)
        if self.records.label is None:
            raise InputError(
                "label", "nothing", "the column of labels as Thresholdout((holdout, 'y'), train=(train, 'y'))"
            )
        self.records.part.compiled(model, argument)
        return model

    def values_of(self, metric: Metric, column: str) -> Any:
        """Return a metric of a column of predictions as an expression."""
        if slack_of(metric):  # its errors may depend on other records, which no privacy loss counts
            self.mechanism.shares_error_budget("a logarithm that an engine computes")
        label, train = self.label, self.records.train_part
        if train is not None and not labels_are_zero_or_one(metric, train, label):
            raise InputError(
                "metric", f"{metric.name!r} of labels {label!r} that are not 0 and 1", "a metric of these labels"
            )
        return metric_expression(metric, column, label)

    def score(
        self,
        estimator: object,
        metric: str | Metric | Statistic,
        cv: object | None,
        sample_weight: tuple[object, object] | None,
        key: str | None,
        given: object | None = None,
    ) -> Read:
        """Return the query about the score of a column of predictions."""
        chosen = self.checked(metric, sample_weight)[0]
        columns = self._columns(estimator) if isinstance(chosen, Statistic) else self._column(estimator)
        if cv is not None:
            advice = "Pass a column with out-of-fold training predictions, or a number as train_values=."
            raise InputError("cv", "a way to cross-validate a column of predictions", "None for lazy frames", advice)
        if given is not None and as_real(given) is None:
            seen = f"a {type(given).__name__}"
            raise InputTypeError("train_values", seen, "the score of the training part, a number")
        if isinstance(chosen, Statistic):
            return statistic_query(self, columns, chosen, key, as_real(given))
        expression = self.values_of(chosen, self._column(estimator))
        worst = chosen.bounds[0] if chosen.greater_is_better else chosen.bounds[1]
        train = expression if given is None else given
        query, read = self._column_query(train, expression, "estimator", chosen.bounds, chosen.name, key, None, worst)
        query.slack = slack_of(chosen)
        return query, read

    def checked(
        self, metric: str | Metric | Statistic, sample_weight: tuple[object, object] | None
    ) -> tuple[Metric | Statistic, None]:
        """Return a score; refuse one that is not served for columns."""
        chosen = get_score(metric)
        if isinstance(chosen, Statistic):
            check_statistic(self.mechanism, chosen, self.declared)
        if sample_weight is not None:
            advice = "Query weighted values by ask(expression, bounds=...)."
            raise InputError("sample_weight", "weights", "None for lazy frames", advice)
        self.parameters.check_direction(chosen.name, chosen.greater_is_better)
        return chosen, None

    def against(
        self, baseline: object, metric: Metric, about: About, cv: object | None
    ) -> Callable[[Any, str | None], Read]:
        """Return a function from columns and keys to queries about them and the column of a baseline."""
        return lambda model, key: self.contest(model, baseline, metric, about, cv, None, key)

    def level(self, column: object, metric: Metric) -> tuple[float, bool]:
        """Return the mean of a column's training values, in units of the range, and whether all are 0 or 1."""
        expression = self.values_of(metric, self._column(column, "candidate"))
        worst = metric.bounds[0] if metric.greater_is_better else metric.bounds[1]
        found = self._train_totals(expression, metric.bounds, worst)
        return found.mean.mean(), self.records.part.compiled(expression, "candidate").kind == "boolean"

    def trained_joint(self, b: nw.Expr, a: nw.Expr, metric: Metric, argument: str) -> Joint:
        """Compare two models' values on the training part."""
        found = self.train_frame().joint(b, a, metric.bounds, argument=argument)
        check_predicted(found.difference, argument, "predictions of all of them, by both models")
        return found

    def difference(self, b: nw.Expr, a: nw.Expr, metric: Metric, argument: str) -> Wanted:
        """Return the query about two models' difference, if bets are placed on the sums of groups."""
        import narwhals as nw

        most = metric.bounds[1] - metric.bounds[0]
        return Wanted(b.cast(nw.Float64) - a.cast(nw.Float64), (-most, most), 0.0, argument=argument)

    def _differing(self, b: object, a: object, training: float) -> Part:
        """Return the holdout's records on which two columns differ: public, as the features are.

        Their number is 1 where there is none, as in memory: the claim then bounds the difference by that of one record.
        """
        import narwhals as nw

        for argument, name in (("b", b), ("a", a)):
            if name in self.records.of_label:
                seen = f"{name!r}, which is the column of labels or was joined by it"
                raise InputError(argument, seen, "a column of predictions that is a function of the features")
        first, second = nw.col(b), nw.col(a)  # type: ignore[arg-type]
        unlike, largest = first != second, largest_group(self.dependence)
        if {self.records.part.compiled(one, "b").kind for one in (first, second)} == {"integer", "real"}:
            # Such numbers can be equal as floats and still differ from each other beside the labels.
            unlike |= (first.cast(nw.Float64).abs() >= EXACT) | (second.cast(nw.Float64).abs() >= EXACT)
        found = self.records.part.totals(unlike, argument="b")
        if self.records.in_groups:
            largest = max(1, int(self.records.group_totals(Wanted(unlike, argument="b")).sums.max()))
        return part_of(max(1, found.total >> found.bits), largest, training / self.records.n)

    def _where_they_differ(
        self, metric: Metric, trained: Joint, part: Part, right_or_wrong: bool, key: str | None
    ) -> Query:
        """Return the query about two columns' difference on the records on which they differ."""
        found, most = Gains.of_totals(trained.difference, None), metric.bounds[1] - metric.bounds[0]
        share = part.records / self.records.n
        middle, square = min(1.0, max(-1.0, found.mean / share)), min(1.0, found.square / share)
        binary = right_or_wrong and self._two_classes()
        variance = None if binary else 0.25 * max(0.0, square - middle * middle)
        known = Known(variance, binary, difference=True, part=part)
        query = Query(0.5 * (middle + 1.0), (-most * share, most * share), f"{metric.name}, difference", key, known)
        query.slack = 2.0 * slack_of(metric)
        return query

    def _two_classes(self) -> bool:
        """Whether the training part has at most two classes."""
        return len(distinct_values(self.train_frame(), self.label, 3)) <= 2

    def contest(
        self,
        b: object,
        a: object,
        metric: Metric,
        about: About,
        cv: object | None,
        train_values: object | None,
        key: str | None,
    ) -> Read:
        """Return the query about two columns of predictions."""
        for argument, value in (("cv", cv), ("train_values", train_values)):
            if value is not None:
                raise InputError(
                    argument, "a value", "None for lazy frames", "The columns have the training predictions."
                )
        first, second = (self.values_of(metric, self._column(one, name)) for one, name in ((b, "b"), (a, "a")))
        frames, most = self.records, metric.bounds[1] - metric.bounds[0]
        trained = self.trained_joint(first, second, metric, "b")
        if about == "win_rate":
            if not trained.right_or_wrong:
                raise InputError(
                    "about", f"'win_rate' by {metric.name}", "'difference' by metrics of values beside 0 and 1"
                )
            paired_counts = _paired_counts(trained, metric)
            known = Known(difference=True, paired_counts=paired_counts)
            query = Query(paired_counts.share, (0.0, 1.0), f"{metric.name}, win rate", key, known)
        elif self.declared.fixed_features:
            signs = all(frames.part.compiled(one, "b").kind == "boolean" for one in (first, second))
            part = self._differing(b, a, Gains.of_totals(trained.difference, None).records)
            query = self._where_they_differ(metric, trained, part, signs, key)
            known = query.known
        else:
            mean, known = self.mechanism.trained(trained.difference, None, (-most, most), "train_values", False)
            # for other values it could turn out on the holdout only that they are not 0 and 1
            signs = all(frames.part.compiled(one, "b").kind == "boolean" for one in (first, second))
            difference = self.difference(first, second, metric, "b")
            known = self._grouped(known, difference, trained.difference)
            known = replace(known, difference=True, trinomial=signs and self.declared.iid)
            query = Query(mean, (-most, most), f"{metric.name}, difference", key, known)
            query.slack = 2.0 * slack_of(metric)
            if self.mechanism.needs_group_sums(known):
                sums = lambda: frames.group_totals(difference)  # noqa: E731
                of_groups = lambda found: self.engine.read(found, frames.n, query, "b")  # noqa: E731
                return query, Scan(sums, of_groups, frames.part, [difference], frames.group_column)

        def read(found: Joint) -> Any:
            if known.part is not None:
                return self.engine.read(found.among(known.part.records), known.part.records, query, "b")
            if about == "win_rate":
                if not found.right_or_wrong:
                    raise InputError(
                        "b", "values that are neither 0 nor 1", "a column with values of 0 or 1 under the metric"
                    )
                return self.engine.paired_counts(_paired_counts(found, metric), known)
            return self.engine.read(found, self.records.n, query, "b")

        asked = frames.part.joint_wanted(first, second, metric.bounds)
        return query, Scan(lambda: frames.part.joint(first, second, metric.bounds), read, frames.part, asked)


def _check_no_logarithm(compiled: Compiled, argument: str) -> None:
    """Refuse a logarithm inside an expression, whose error has no bound."""
    if compiled.logarithm:
        seen = f"{compiled.text}, whose last digits differ between engines"
        raise InputError(
            argument,
            seen,
            "an expression without logarithms",
            "Use score(column, metrics.log_loss(clip=...)), or ask a column of values.",
        )


def _is_share(compiled: Compiled, limits: tuple[float, float]) -> bool:
    """Whether values are certainly ends of the range: the share of records for which a statement is true."""
    return compiled.kind == "boolean" and limits == (0.0, 1.0)


def _paired_counts(joint: Joint, metric: Metric) -> PairedCounts:
    """Return how often the first of two models is better, and how often the second."""
    more, less, n = joint.more, joint.less, joint.difference.n
    return PairedCounts(more, less, n) if metric.greater_is_better else PairedCounts(less, more, n)
