"""Classes of a column of labels, counts of them beside a column of predictions, and queries from these counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.parts.lazy_part import Wanted
from thresholdout.data.parts.part_groups import distinct_values
from thresholdout.errors import InputError
from thresholdout.guard.query import Query
from thresholdout.mechanisms import Known
from thresholdout.scoring.statistics.class_counts import ClassCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.data.parts.lazy_part import LazyPart
    from thresholdout.data.parts.totals import Totals
    from thresholdout.guard.column_queries import ColumnQueries
    from thresholdout.scoring.statistics import Estimate, Statistic

__all__ = [
    "check_predicted",
    "class_counts",
    "classes_of",
    "labels_of",
    "plain",
    "public_query",
    "sizes_of_groups",
    "wanted_counts",
]

_MOST: Final = 200
"""Classes, at most: three numbers of each are counted in one pass."""


def classes_of(train: LazyPart, label: str, most: int = _MOST) -> NDArray[Any]:
    """Return the sorted classes of the training part.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> classes_of(LazyPart(pl.LazyFrame({"y": ["b", "a", "b"]}), "train"), "y").tolist()
    ['a', 'b']
    """
    found = distinct_values(train, label, _MOST + 1)
    if len(found) > most:
        seen = f"more than {most} classes in the column {label!r}"
        raise InputError("label", seen, f"a column of at most {most} classes")
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
    found = part.totals_of(wanted_counts(prediction, label, classes))
    if check:
        for one_total in found:
            one_total.check("train_values", (0.0, 1.0))
    numbers = [one_total.total >> one_total.bits for one_total in found]
    return {one: ClassCounts(part.n, *numbers[3 * k : 3 * k + 3]) for k, one in enumerate(classes)}


def wanted_counts(prediction: str, label: str, classes: Sequence[Any]) -> list[Wanted]:
    """Return the three counts of each class for `class_counts`."""
    return [one for label_of in classes for one in _wanted_of_class(prediction, label, plain(label_of))]


@lru_cache(maxsize=1024, typed=True)
def _wanted_of_class(prediction: str, label: str, one: Any) -> tuple[Wanted, ...]:
    """Return the counts of one class; the same expressions again, which parts recognise."""
    import narwhals as nw

    truth, said = nw.col(label) == nw.lit(one), nw.col(prediction) == nw.lit(one)
    sides = Wanted(truth, argument="label"), Wanted(said, argument="estimator")
    return *sides, Wanted(truth & said, argument="estimator", only_true=True)


def labels_of(statistic: Statistic, known: NDArray[Any]) -> list[Any]:
    """Return the classes that a statistic counts."""
    return list(dict.fromkeys(one for part in statistic.counted_parts(known) for one in part.counted))


def plain(label: Any) -> Any:
    """Return a class as a value of Python."""
    return label.item() if isinstance(label, np.generic) else label


def check_predicted(found: Totals, argument: str, expected: str) -> None:
    """Refuse training records without a prediction or a label: the holdout's are not looked at."""
    if found.missing:
        seen = f"{found.missing} of {found.n} training records without a prediction or a label"
        raise InputError(argument, seen, expected)


def sizes_of_groups(queries: ColumnQueries) -> NDArray[np.int64] | None:
    """Return the sizes of groups, if a column has them."""
    return queries.dependence.independent_groups() if queries.records.in_groups else None


def public_query(
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
