"""Statistics of columns that are no means: functions of counts of classes or scores, and of mean squared errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.parts.lazy_part import Wanted
from thresholdout.data.parts.totals import Totals
from thresholdout.data.parts.value_cells import cell_counts, common_values
from thresholdout.data.values import check_bounds, record_rounding
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.column_agreement import agreement_query, wanted_table
from thresholdout.guard.column_areas import Predicted, area_query, only_column
from thresholdout.guard.column_classes import (
    check_predicted,
    class_counts,
    classes_of,
    labels_of,
    plain,
    public_query,
    sizes_of_groups,
    wanted_counts,
)
from thresholdout.guard.column_metrics import slack_of
from thresholdout.guard.query import Query
from thresholdout.guard.query_engine import Read, Scan
from thresholdout.limits.bets import Moments
from thresholdout.scoring.statistics.agreement import Agreement
from thresholdout.scoring.statistics.areas import Area
from thresholdout.scoring.statistics.class_counts import ClassCounts, ClassMean
from thresholdout.scoring.statistics.regression import SmoothedMedian
from thresholdout.scoring.statistics.slices import SliceMean, Where
from thresholdout.scoring.statistics.statistic_parts import MeanShare, Tally, ratio_estimate

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

    from thresholdout.data.parts.lazy_part import LazyPart
    from thresholdout.data.parts.totals import GroupTotals
    from thresholdout.guard.column_queries import ColumnQueries
    from thresholdout.scoring.statistics import Statistic

__all__ = [
    "LabelSpread",
    "label_spread",
    "statistic_query",
    "wanted_of_statistic",
]


def statistic_query(
    queries: ColumnQueries, column: Predicted, statistic: Statistic, key: str | None, given: float | None
) -> Read:
    """Return the query about a statistic of a column of predictions, or of one for each class."""
    part, train, label = queries.records.part, queries.train_frame(), queries.label
    first = statistic.first_part
    if isinstance(first, Area):
        return area_query(queries, column, statistic, key, given)
    column = only_column(column)
    if isinstance(first, Agreement):
        return agreement_query(queries, column, statistic, first, key, given)
    if isinstance(first, MeanShare):
        return _share_query(queries, column, statistic, first, key, given)
    if isinstance(first, SliceMean):
        return _slice_query(queries, column, statistic, first, key, given)
    if isinstance(first, SmoothedMedian):
        return _median_query(queries, column, statistic, first, key, given)
    statistic.counted_parts(np.arange(2))  # refuses others before anything is read
    known = classes_of(train, label)
    classes = labels_of(statistic, known)
    found = statistic.of_counts(class_counts(train, column, label, classes, check=True), known)
    only = statistic.counted_parts(known)[0]
    if isinstance(only, ClassMean) and (sizes := sizes_of_groups(queries)) is not None:
        query = public_query(queries, statistic, found, known, given, key, sizes)
        return _grouped_classes(queries, only, classes, column, query)
    query = public_query(queries, statistic, found, known, given, key)

    def read(counts: dict[Any, ClassCounts]) -> Any:
        evidence = statistic.evidence_of_counts(counts, known, queries.dependence, queries.declared.iid)
        return queries.engine.statistic(evidence, query.known)

    wanted = wanted_counts(column, label, classes)
    return query, Scan(lambda: class_counts(part, column, label, classes), read, part, wanted)


def _grouped_classes(
    queries: ColumnQueries, only: ClassMean, classes: Sequence[Any], column: str, query: Query
) -> Read:
    """Return the query about a mean over classes, with counts for each group."""
    wanted = wanted_counts(column, queries.label, classes)

    def read(found: list[GroupTotals]) -> Any:
        sums = [one.sums for one in found]
        evidence = only.evidence_of_groups(queries.records.n, sums[::2], sums[1::2])
        return queries.engine.statistic((evidence,), query.known)

    asked = [one for place, one in enumerate(wanted) if place % 3 != 1]  # records of a class, and those predicted so
    return query, Scan(lambda: queries.records.joint_group_totals(asked), read)


def wanted_of_statistic(queries: ColumnQueries, predicted: Sequence[Predicted], statistic: Statistic) -> list[Wanted]:
    """Return the first counts of the training part."""
    train, label, first = queries.train_frame(), queries.label, statistic.first_part
    if isinstance(first, (Area, SmoothedMedian)):
        return []  # each column has cells of its own
    columns = [only_column(one) for one in predicted]
    if isinstance(first, SliceMean):
        return [one for column in columns for one in _wanted_slice(queries, column, first)]
    if isinstance(first, MeanShare):
        return [_wanted_share(queries, train, column, first)[0] for column in columns]
    if isinstance(first, Agreement):
        return [one for column in columns for one in wanted_table(queries, column)]
    statistic.counted_parts(np.arange(2))
    classes = labels_of(statistic, classes_of(train, label))
    return [one for column in columns for one in wanted_counts(column, label, classes)]


def _share_query(
    queries: ColumnQueries, column: str, statistic: Statistic, share: MeanShare, key: str | None, given: float | None
) -> Read:
    """Return the query about a mean of squared errors.

    The number of passes does not depend on the holdout's labels, so that a failure of one shows nothing of them. An
    unusable variance is found afterwards, and charged.
    """
    part, train = queries.records.part, queries.train_frame()
    wanted, spread = _wanted_share(queries, train, column, share)
    spread.check("train")
    (total,) = train.totals_of([wanted])
    check_predicted(total, "estimator", "predictions of all of them, or train_values= their score")
    mean = total.mean.mean()
    distance: Any = (wanted.value / wanted.bounds[1] - mean) ** 2  # type: ignore[operator]
    (square,) = train.totals_of([Wanted(distance, squares=True, argument="train_values")])
    moments = square.mean.mean(), math.sqrt(max(0.0, square.variance()))
    found = statistic.combined((share.estimate_of_shares(mean, moments, total.n),))
    sizes = sizes_of_groups(queries)
    query = public_query(queries, statistic, found, None, given, key, sizes)

    def count() -> tuple[Totals | GroupTotals, LabelSpread]:
        asked, known = _wanted_share(queries, part, column, share)
        return part.totals_of([asked])[0] if sizes is None else queries.records.group_totals(asked), known

    def read(counted: tuple[Totals | GroupTotals, LabelSpread]) -> Any:
        totals, known = counted
        known.check("y")
        slack = record_rounding(part.n) + known.share_slack
        if isinstance(totals, Totals):
            sums = Moments(totals.n, totals.bits, totals.mean.total, totals.sum_of_squares)
            evidence = share.evidence_of_shares(sums, slack, queries.dependence)
        else:
            evidence = share.evidence_of_groups(totals.sums, totals.sizes, slack)
        return queries.engine.statistic((evidence,), query.known)

    return query, Scan(count, read)


def _slice_query(
    queries: ColumnQueries, column: str, statistic: Statistic, share: SliceMean, key: str | None, given: float | None
) -> Read:
    """Return the query about a metric on a slice: from counts of its records, or moments of their values."""
    part, train, wanted = queries.records.part, queries.train_frame(), _wanted_slice(queries, column, share)
    totals = train.totals_of([*wanted, Wanted(queries.values_of(share.metric, column), share.metric.bounds)])
    check_predicted(totals[-1], "estimator", "predictions of all of them, or train_values= their score")
    counted = _slice_counts(share, totals)
    if isinstance(counted, Tally):
        found = share.estimate_of(counted)
    else:
        share.check_counted(counted.size)
        found = ratio_estimate(
            counted.mean(), _slice_distances(train, wanted, share, counted), float(counted.size), 1.0, train.n
        )
    query = public_query(queries, statistic, statistic.combined((found,)), None, given, key)
    lower, upper = share.metric.bounds
    slack = slack_of(share.metric) / (upper - lower)  # PROOFS.md, E9 and E14

    def read(totals: list[Totals]) -> Any:
        counted, model = _slice_counts(share, totals), queries.dependence
        if isinstance(counted, Tally):
            evidence = share.evidence_of(counted, model, queries.declared.iid)
        else:
            evidence = share.evidence_of_moments(counted, part.n, record_rounding(part.n) + slack, model)
        return queries.engine.statistic((evidence,), query.known)

    return query, Scan(lambda: part.totals_of(wanted), read, part, wanted)


def _wanted_slice(queries: ColumnQueries, column: str, share: SliceMean) -> list[Wanted]:
    """Return the counts of a slice: its records, and those with a correct prediction, or their values.

    A record without a prediction or a label has the worst value; one without a value in the slice's column is outside.
    """
    import narwhals as nw

    metric = share.metric
    inside, values = _inside(queries.records.part, share.where), queries.values_of(metric, column)
    if share.weight is not None:
        right = values if metric.greater_is_better else ~values
        return [Wanted(inside, argument="where"), Wanted(inside & right, argument="estimator")]
    lower = metric.bounds[0]
    kept = nw.when(inside).then(values).otherwise(nw.lit(lower))
    there = Wanted(inside & (values >= lower), argument="estimator")
    return [Wanted(inside, argument="where"), there, Wanted(kept, metric.bounds, lower, True, "estimator")]


_WHERE: Final = (
    "a column and its value, such as ('weekend', True), an expression, such as nw.col('age') > 60, or a function of "
    "columns, such as lambda X: X['age'] > 60"
)


class _Features:
    """The features of a lazy frame for a function of columns."""

    def __getitem__(self, name: str) -> nw.Expr:
        import narwhals as nw

        return nw.col(name)


def _inside(part: LazyPart, where: Where) -> nw.Expr:
    """Return whether a record is in a slice, as an expression with values true and false."""
    import narwhals as nw

    if isinstance(where, tuple):
        found = nw.col(where[0]) == nw.lit(plain(where[1]))
    elif callable(where):
        try:
            found = where(_Features())
        except Exception as error:
            seen = f"a function that fails on columns of a lazy frame ({type(error).__name__})"
            raise InputError("where", seen, _WHERE) from error
    else:
        found = where
    if not isinstance(found, nw.Expr):
        raise InputTypeError("where", f"a function that returns a {type(found).__name__}", _WHERE)
    compiled = part.compiled(found, "where")
    if compiled.kind != "boolean" or compiled.logarithm:
        seen = f"{compiled.text}, which is {'no boolean' if compiled.kind != 'boolean' else 'made of logarithms'}"
        raise InputError("where", seen, _WHERE)
    return found


def _slice_counts(share: SliceMean, totals: Sequence[Totals]) -> Tally | Moments:
    """Return a slice's wins and losses, or the moments of its values, from totals."""
    inside, there = (one.total >> one.bits for one in totals[:2])
    if share.weight is not None:
        return share.tally(totals[0].n, inside, there)
    sums = totals[2]
    lost = 0 if share.metric.greater_is_better else inside - there  # without a value: each has the largest one
    total = sums.mean.total + (lost << sums.bits)
    return Moments(inside, sums.bits, total, sums.sum_of_squares + (lost << 2 * sums.bits))


def _slice_distances(
    train: LazyPart, wanted: Sequence[Wanted], share: SliceMean, found: Moments
) -> tuple[float, float]:
    """Return mean and deviation of the squares of the distances of a slice's values from their mean; 0 outside."""
    import narwhals as nw

    lower, upper = share.metric.bounds
    inside, kept = wanted[0].value, wanted[2].value
    away: Any = ((kept - lower) / (upper - lower) - found.mean()) ** 2  # type: ignore[operator]
    (square,) = train.totals_of([Wanted(nw.when(inside).then(away).otherwise(nw.lit(0.0)), squares=True)])
    return square.mean.mean(), math.sqrt(max(0.0, square.variance()))


def _median_query(
    queries: ColumnQueries,
    column: str,
    statistic: Statistic,
    of: SmoothedMedian,
    key: str | None,
    given: float | None,
) -> Read:
    """Return the query about the smoothed median of absolute errors, which are counted in cells."""
    import narwhals as nw

    holdout, train = queries.records.part, queries.train_frame()
    label, told = nw.col(queries.label), nw.col(column)
    error = holdout.compiled((label.cast(nw.Float64) - told.cast(nw.Float64)).abs(), "estimator").expression
    (lost,) = train.totals_of([Wanted(label.is_null() | told.is_null(), argument="estimator")])
    missing = lost.total >> lost.bits
    check_predicted(replace(lost, missing=missing), "estimator", "predictions of all of them, or train_values=")
    none = nw.lit(0.0)
    cells = common_values(train, error, none, (train.n, 0))
    low, high = of.between(cells, cell_counts(train, [error], none, [cells], 1)[0][0])
    found = of.estimate_of(0.5 * (low + high), train.n, 0.5 * (high - low))
    query = public_query(queries, statistic, statistic.combined((found,)), None, given, key)

    def read(counts: list[NDArray[np.int64]]) -> Any:
        evidence = of.evidence_between(*of.between(cells, counts[0][0]), queries.dependence)
        return queries.engine.statistic((evidence,), query.known)

    return query, Scan(lambda: cell_counts(holdout, [error], none, [cells], 1), read)


_COARSE: Final = 1e-3  # largest relative error of the labels' deviation; the slack of answers grows with it


@dataclass(frozen=True, slots=True)
class LabelSpread:
    """The variance of one part's labels, as far as a grid resolves it. Secret for a holdout.

    ``variance`` is 0 if it is unusable; ``off`` bounds the error of its root, in units of this root.
    """

    variance: float = field(repr=False)
    off: float = field(repr=False)

    @property
    def usable(self) -> bool:
        """Whether labels vary, and enough for the grid."""
        return 0.0 < self.variance < math.inf and self.off <= _COARSE

    @property
    def share_slack(self) -> float:
        """Bound on the error of a mean of shares of the variance, in units of the largest share; PROOFS.md, E7."""
        return 2.01 * self.off + 2.0**-46  # and a dozen operations of floats

    def check(self, argument: str) -> None:
        """Refuse labels that do not vary enough for the grid."""
        if not self.usable:
            seen = "labels that are missing, all the same, or vary too little or too much"
            raise InputError(argument, seen, "labels that vary")


def label_spread(part: LazyPart, label: str) -> LabelSpread:
    """Return the variance of numeric labels: one pass for their ends, and one for sums on the grid between these.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> found = label_spread(LazyPart(pl.LazyFrame({"y": [0.0, 1.0, 2.0, 5.0]}), "train"), "y")
    >>> round(found.variance, 9), found.off < 1e-11
    (3.5, True)
    """
    import narwhals as nw

    own = part.compiled(nw.col(label).cast(nw.Float64), "label").expression
    column = nw.col("label")
    ends = part.row(lambda: part.frame.select(label=own).select(low=column.min(), high=column.max()))
    low, high = (math.nan if ends[end] is None else float(ends[end]) for end in ("low", "high"))
    bounds = _range(low, high)
    wanted = Wanted(nw.col(label).cast(nw.Float64), bounds or (0.0, 1.0), squares=True, argument="label")
    (found,) = part.totals_of([wanted])
    unit = found.variance()
    if bounds is None or found.missing or found.outside or not unit > 0.0:
        return LabelSpread(0.0, math.inf)
    return LabelSpread((high - low) ** 2 * unit, record_rounding(found.n) / math.sqrt(unit))


def _range(low: float, high: float) -> tuple[float, float] | None:
    """Return a computed range if values can be divided by it."""
    try:
        return check_bounds((low, high))
    except InputError:
        return None


def _wanted_share(queries: ColumnQueries, part: LazyPart, column: str, share: MeanShare) -> tuple[Wanted, LabelSpread]:
    """Return the squared errors of a part in the range that counts; a record without one has the largest."""
    import narwhals as nw

    spread = queries.spread(part) if share.relative else LabelSpread(1.0, 0.0)
    bounds = _range(0.0, share.most * spread.variance)
    if bounds is None:
        bounds, spread = (0.0, 1.0), LabelSpread(0.0, math.inf)
    error = nw.col(queries.label).cast(nw.Float64) - nw.col(column).cast(nw.Float64)
    return Wanted((error**2).clip(upper_bound=bounds[1]), bounds, bounds[1], squares=True, argument="estimator"), spread
