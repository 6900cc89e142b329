"""Agreement of a column of predictions with the labels beyond chance, from counts of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.parts.lazy_part import Wanted
from thresholdout.guard.column_classes import classes_of, plain, public_query, sizes_of_groups
from thresholdout.guard.query_engine import Read, Scan
from thresholdout.scoring.statistics.agreement import Agreement, LabelTable

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

    from thresholdout.data.parts.totals import GroupTotals, Totals
    from thresholdout.guard.column_queries import ColumnQueries
    from thresholdout.scoring.statistics import Statistic

__all__ = ["agreement_query", "table_of", "wanted_table"]

_MOST: Final = 20
"""Classes, at most: each pair of them is counted in one pass."""


def agreement_query(
    queries: ColumnQueries, column: str, statistic: Statistic, part: Agreement, key: str | None, given: float | None
) -> Read:
    """Return the query about agreement, from the number of records with each label and prediction."""
    holdout, train, wanted = queries.records.part, queries.train_frame(), wanted_table(queries, column)
    known = classes_of(train, queries.label, _MOST)
    totals = train.totals_of(wanted)
    for one in totals:
        one.check("train_values", (0.0, 1.0))  # missing ones
    found = statistic.combined((part.estimate_of(table_of(totals, part)),))
    sizes = sizes_of_groups(queries)
    query = public_query(queries, statistic, found, known, given, key, sizes)
    if sizes is not None:
        asked = _wanted_of_groups(queries, column, part)

        def of_groups(found: list[GroupTotals]) -> Any:
            d, b = disagreements_of_groups(found, part, known.size)
            return queries.engine.statistic((part.evidence_of_groups(d, b, sizes),), query.known)

        return query, Scan(lambda: queries.records.joint_group_totals(asked), of_groups)

    def read(totals: list[Totals]) -> Any:
        evidence = part.evidence_of(table_of(totals, part), queries.declared.iid)
        return queries.engine.statistic((evidence,), query.known)

    return query, Scan(lambda: holdout.totals_of(wanted), read, holdout, wanted)


def wanted_table(queries: ColumnQueries, column: str) -> list[Wanted]:
    """Return the counts of each class of labels, of each class of predictions, and of each pair."""
    truth, said = _of_classes(queries, column)
    return [
        *(Wanted(one, argument="label") for one in truth),
        *(Wanted(one, argument="estimator") for one in said),
        *(Wanted(one & other, argument="estimator", only_true=True) for one in truth for other in said),
    ]


def table_of(totals: Sequence[Totals], part: Agreement) -> LabelTable:
    """Return the counts of pairs of classes.

    Two classes more are those of labels and of predictions that are missing, or are not in the training part: they
    differ from each other and from all others.
    """
    numbers, n = np.array([one.total >> one.bits for one in totals], dtype=np.int64), totals[0].n
    classes = int(np.sqrt(numbers.size + 1.0)) - 1  # C of C^2 + 2 C numbers
    truth, said, both = np.split(numbers, [classes, 2 * classes])
    counts = np.zeros((classes + 2, classes + 2), dtype=np.int64)
    counts[:classes, :classes] = both = both.reshape(classes, classes)
    counts[:classes, classes + 1] = truth - both.sum(axis=1)
    counts[classes, :classes] = said - both.sum(axis=0)
    counts[classes, classes + 1] = n - counts.sum()
    weights = 1.0 - np.eye(classes + 2)
    weights[:classes, :classes] = part.apart(classes)
    return LabelTable(counts, weights)


def _of_classes(queries: ColumnQueries, column: str) -> tuple[list[nw.Expr], list[nw.Expr]]:
    """Return whether labels, and whether predictions, are of each class."""
    import narwhals as nw

    known = classes_of(queries.train_frame(), queries.label, _MOST)
    truth, said = ([nw.col(name) == nw.lit(plain(one)) for one in known] for name in (queries.label, column))
    return truth, said


def _wanted_of_groups(queries: ColumnQueries, column: str, part: Agreement) -> list[Wanted]:
    """Return the counts of labels and of predictions of each class, and of pairs at each distance that counts less."""
    import narwhals as nw

    truth, said = _of_classes(queries, column)
    known = [plain(one) for one in classes_of(queries.train_frame(), queries.label, _MOST)]
    pairs = []
    for far in range(len(known) - 1 if part.weights else 1):
        places = [[at for at in sorted({own - far, own + far}) if 0 <= at < len(known)] for own in range(len(known))]
        near = (
            one & nw.col(column).is_in([known[at] for at in some])
            for one, some in zip(truth, places, strict=True)
            if some
        )
        pairs.append(reduce(or_, near))
    return [
        *(Wanted(one, argument="label") for one in truth),
        *(Wanted(one, argument="estimator") for one in (*said, *pairs)),
    ]


def disagreements_of_groups(
    found: Sequence[GroupTotals], part: Agreement, classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums by group of disagreements with the own labels, and with those of all records; PROOFS.md, S9.

    Labels and predictions that are of no class of the training part disagree with all others.
    """
    sizes, sums = found[0].sizes, [one.sums for one in found]
    truth, said, near = sums[:classes], sums[classes : 2 * classes], sums[2 * classes :]
    weights = part.apart(classes)
    n = sizes.sum()
    shares = np.array([one.sum() for one in truth]) / n
    of_said = weights @ shares + (n - sum(one.sum() for one in truth)) / n
    # No differences of products, so that each sum is off by few units of itself.
    observed = sum((weight * one for weight, one in zip(weights[0], near, strict=False)), sizes - sum(near))
    chance = sum((weight * one for weight, one in zip(of_said, said, strict=True)), sizes - sum(said))
    return observed, chance
