"""Statistics of columns that are no means: functions of counts of classes or scores, and of mean squared errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.parts.lazy_part import Wanted
from thresholdout.data.parts.part_groups import distinct_values
from thresholdout.data.parts.totals import Totals
from thresholdout.data.parts.value_cells import cell_counts, common_values
from thresholdout.data.values import check_bounds, record_rounding
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.query import Query
from thresholdout.guard.query_engine import Read, Scan
from thresholdout.limits.bets import Moments
from thresholdout.mechanisms import Known
from thresholdout.scoring.statistics.areas import Area, ScoreCounts
from thresholdout.scoring.statistics.class_counts import ClassCounts, ClassMean
from thresholdout.scoring.statistics.regression import SmoothedMedian
from thresholdout.scoring.statistics.slices import SliceMean
from thresholdout.scoring.statistics.statistic_parts import MeanShare, Tally, ratio_estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.data.parts.lazy_part import LazyPart
    from thresholdout.data.parts.totals import GroupTotals
    from thresholdout.guard.column_queries import ColumnQueries
    from thresholdout.scoring.statistics import Estimate, Statistic

__all__ = [
    "LabelSpread",
    "check_predicted",
    "class_counts",
    "classes_of",
    "label_spread",
    "statistic_query",
    "wanted_of_statistic",
]


def statistic_query(
    queries: ColumnQueries, column: str, statistic: Statistic, key: str | None, given: float | None
) -> Read:
    """Return the query about a statistic of a column of predictions."""
    part, train, label = queries.records.part, queries.train_frame(), queries.label
    only = statistic.only_part
    if isinstance(only, MeanShare):
        return _share_query(queries, column, statistic, only, key, given)
    if isinstance(only, SliceMean):
        return _slice_query(queries, column, statistic, only, key, given)
    if isinstance(only, SmoothedMedian):
        return _median_query(queries, column, statistic, only, key, given)
    if statistic.ranks:
        return _area_query(queries, column, statistic, key, given)
    known = classes_of(statistic, train, label)
    classes = _labels_of(statistic, known)
    found = statistic.of_counts(class_counts(train, column, label, classes, check=True), known)
    only = statistic.counted_parts(known)[0]
    if isinstance(only, ClassMean) and (sizes := _sizes(queries)) is not None:
        query = _public(queries, statistic, found, known, given, key, sizes)
        return _grouped_classes(queries, only, classes, column, query)
    query = _public(queries, statistic, found, known, given, key)

    def read(counts: dict[Any, ClassCounts]) -> Any:
        evidence = statistic.evidence_of_counts(counts, known, queries.dependence, queries.declared.iid)
        return queries.engine.statistic(evidence, query.known)

    wanted = _wanted_counts(column, label, classes)
    return query, Scan(lambda: class_counts(part, column, label, classes), read, part, wanted)


def _sizes(queries: ColumnQueries) -> NDArray[np.int64] | None:
    """Return the sizes of groups, if a column has them."""
    return queries.dependence.independent_groups() if queries.records.in_groups else None


def _grouped_classes(
    queries: ColumnQueries, only: ClassMean, classes: Sequence[Any], column: str, query: Query
) -> Read:
    """Return the query about a mean over classes, with counts for each group."""
    wanted = _wanted_counts(column, queries.label, classes)

    def read(found: list[GroupTotals]) -> Any:
        sums = [one.sums for one in found]
        evidence = only.evidence_of_groups(queries.records.n, sums[::2], sums[1::2])
        return queries.engine.statistic((evidence,), query.known)

    asked = [one for place, one in enumerate(wanted) if place % 3 != 1]  # records of a class, and those predicted so
    return query, Scan(lambda: queries.records.joint_group_totals(asked), read)


def _public(
    queries: ColumnQueries,
    statistic: Statistic,
    found: Estimate,
    known: NDArray[Any] | None,
    given: float | None,
    key: str | None,
    sizes: NDArray[np.int64] | None = None,
) -> Query:
    """Return the query, as the training part has it; with sizes of groups, where their sums are the evidence."""
    if given is not None:
        found = statistic.moved(found, given, known)
    labels, declared = () if known is None else known, queries.declared
    public = Known(layout=statistic.layout(found, labels, None, queries.dependence, declared.iid, sizes))
    return Query(statistic.unit(found), statistic.bounds, statistic.name, key, public, statistic.target)


def wanted_of_statistic(queries: ColumnQueries, columns: Sequence[str], statistic: Statistic) -> list[Wanted]:
    """Return the first counts of the training part."""
    train, label, share = queries.train_frame(), queries.label, statistic.only_part
    if statistic.ranks or isinstance(share, SmoothedMedian):
        return []  # each column has cells of its own
    if isinstance(share, SliceMean):
        return [one for column in columns for one in _wanted_slice(queries, column, share)]
    if isinstance(share, MeanShare):
        return [_wanted_share(queries, train, column, share)[0] for column in columns]
    classes = _labels_of(statistic, classes_of(statistic, train, label))
    return [one for column in columns for one in _wanted_counts(column, label, classes)]


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
    sizes = _sizes(queries)
    query = _public(queries, statistic, found, None, given, key, sizes)

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
    query = _public(queries, statistic, statistic.combined((found,)), None, given, key)

    def read(totals: list[Totals]) -> Any:
        counted, model = _slice_counts(share, totals), queries.dependence
        if isinstance(counted, Tally):
            evidence = share.evidence_of(counted, model, queries.declared.iid)
        else:
            evidence = share.evidence_of_moments(counted, part.n, record_rounding(part.n), model)
        return queries.engine.statistic((evidence,), query.known)

    return query, Scan(lambda: part.totals_of(wanted), read, part, wanted)


def _wanted_slice(queries: ColumnQueries, column: str, share: SliceMean) -> list[Wanted]:
    """Return the counts of a slice: its records, and those with a correct prediction, or their values.

    A record without a prediction or a label has the worst value; one without a value in the slice's column is outside.
    """
    import narwhals as nw

    metric, where = share.metric, share.where
    if not isinstance(where, tuple):
        expected = "a column and its value, such as ('weekend', True), for lazy frames"
        raise InputTypeError("where", "a function of the features", expected)
    inside, values = nw.col(where[0]) == nw.lit(_plain(where[1])), queries.values_of(metric, column)
    part = queries.records.part
    part.compiled(inside, "where")
    if part.compiled(values, "estimator").logarithm:
        seen = f"{metric.name!r} on a slice of a lazy frame"
        raise InputError("metric", seen, "another metric", "A column of losses can be queried by ask().")
    if share.weight is not None:
        right = values if metric.greater_is_better else ~values
        return [Wanted(inside, argument="where"), Wanted(inside & right, argument="estimator")]
    lower = metric.bounds[0]
    kept = nw.when(inside).then(values).otherwise(nw.lit(lower))
    there = Wanted(inside & (values >= lower), argument="estimator")
    return [Wanted(inside, argument="where"), there, Wanted(kept, metric.bounds, lower, True, "estimator")]


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
    low, high = of.between(cells, cell_counts(train, error, none, cells)[0, 1:])
    found = of.estimate_of(0.5 * (low + high), train.n, 0.5 * (high - low))
    query = _public(queries, statistic, statistic.combined((found,)), None, given, key)

    def read(counts: NDArray[np.int64]) -> Any:
        evidence = of.evidence_between(*of.between(cells, counts[0, 1:]), queries.dependence)
        return queries.engine.statistic((evidence,), query.known)

    return query, Scan(lambda: cell_counts(holdout, error, none, cells), read)


def _area_query(
    queries: ColumnQueries, column: str, statistic: Statistic, key: str | None, given: float | None
) -> Read:
    """Return the query about an area under the curve: the records of both classes are counted in cells of scores."""
    import narwhals as nw

    part, train, label = queries.records.part, queries.train_frame(), queries.label
    known = classes_of(statistic, train, label)
    (area,) = statistic.parts(known)
    assert isinstance(area, Area)
    scores = part.compiled(column, "estimator")
    if scores.kind not in ("boolean", "integer", "real"):
        raise InputError("estimator", f"{scores.text}, a {scores.kind}", "a column of scores: numbers")
    positive = nw.col(label) == nw.lit(_plain(known[1]))
    score, truth = scores.as_real().expression, part.compiled(positive.cast(nw.Float64), "label").expression
    ones, lost = train.totals_of([Wanted(positive, argument="label"), Wanted(nw.col(column).is_null())])
    missing, ahead = lost.total >> lost.bits, ones.total >> ones.bits
    check_predicted(replace(lost, missing=missing), "estimator", "scores of all of them")
    values = common_values(train, score, truth, (train.n - ahead, ahead))
    counts = _score_counts(cell_counts(train, score, truth, values))
    estimate = statistic.combined((area.estimate_of_counts(counts, train.n),))
    query = _public(queries, statistic, estimate, known, given, key)

    def read(found: NDArray[np.int64]) -> Any:
        evidence = area.evidence_of_counts(_score_counts(found), queries.dependence)
        return queries.engine.statistic((evidence,), query.known)

    return query, Scan(lambda: cell_counts(part, score, truth, values), read)


def _score_counts(counts: NDArray[np.int64]) -> ScoreCounts:
    """Return the cells with records; every second one has one score, or records of one class without a score."""
    used = counts.any(axis=0)
    return ScoreCounts(counts[1, used], counts[0, used], (np.arange(used.size) % 2 == 0)[used])


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
    return Wanted((error**2).clip(*bounds), bounds, bounds[1], squares=True, argument="estimator"), spread


_MOST: Final = 200
"""Classes, at most: three numbers of each are counted in one pass."""


def classes_of(statistic: Statistic, train: LazyPart, label: str) -> NDArray[Any]:
    """Return the sorted classes of the training part, for a statistic that is a function of counts of classes.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> from thresholdout.scoring.statistics import f1
    >>> classes_of(f1(), LazyPart(pl.LazyFrame({"y": ["b", "a", "b"]}), "train"), "y").tolist()
    ['a', 'b']
    """
    if not statistic.ranks:
        statistic.counted_parts(np.arange(2))  # refuses others before anything is read
    found = distinct_values(train, label, _MOST + 1)
    if len(found) > _MOST:
        seen = f"more than {_MOST} classes in the column {label!r}"
        raise InputError("label", seen, f"a column of at most {_MOST} classes")
    if any(value is None or value != value for value in found):
        raise InputError(
            "label", f"labels {label!r} that are missing in the training part", "a column with a class for each record"
        )
    return np.unique(np.array(found))


def class_counts(
    part: LazyPart, prediction: str, label: str, classes: Sequence[Any], *, check: bool = False
) -> dict[Any, ClassCounts]:
    """Count the records of each class, those with its prediction, and both.

    A missing prediction or label is of no class, as in memory, where NaN equals nothing. With ``check``, for public
    records, missing values are refused.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> part = LazyPart(pl.LazyFrame({"pred": [0, 1, 1, None], "y": [0, 1, 0, 1]}), "holdout")
    >>> found = class_counts(part, "pred", "y", [1])[1]
    >>> found.truth, found.said, found.both
    (2, 2, 1)
    """
    found = part.totals_of(_wanted_counts(prediction, label, classes))
    if check:
        for one_total in found:
            one_total.check("train_values", (0.0, 1.0))
    numbers = [one_total.total >> one_total.bits for one_total in found]
    return {one: ClassCounts(part.n, *numbers[3 * k : 3 * k + 3]) for k, one in enumerate(classes)}


def _wanted_counts(prediction: str, label: str, classes: Sequence[Any]) -> list[Wanted]:
    """Return the three counts of each class for `class_counts`."""
    import narwhals as nw

    wanted = []
    for one in classes:
        truth, said = nw.col(label) == nw.lit(_plain(one)), nw.col(prediction) == nw.lit(_plain(one))
        wanted += [Wanted(truth, argument="label"), Wanted(said, argument="estimator")]
        wanted.append(Wanted(truth & said, argument="estimator"))
    return wanted


def _labels_of(statistic: Statistic, known: NDArray[Any]) -> list[Any]:
    """Return the classes that a statistic counts."""
    return list(dict.fromkeys(one for part in statistic.counted_parts(known) for one in part.counted))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def check_predicted(found: Totals, argument: str, expected: str) -> None:
    """Refuse training records without a prediction or a label: the holdout's are not looked at."""
    if found.missing:
        seen = f"{found.missing} of {found.n} training records without a prediction or a label"
        raise InputError(argument, seen, expected)
