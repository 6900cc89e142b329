"""Areas under the curve of columns of scores: one for two classes, or one for each of several classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from thresholdout.data.parts.lazy_part import Wanted
from thresholdout.data.parts.value_cells import cell_counts, common_values
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.column_classes import check_predicted, classes_of, plain, public_query
from thresholdout.guard.query_engine import Read, Scan
from thresholdout.scoring.statistics.areas import Area, ScoreCounts

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

    from thresholdout.data.parts.lazy_part import LazyPart
    from thresholdout.guard.column_queries import ColumnQueries
    from thresholdout.scoring.statistics import Statistic

__all__ = ["Predicted", "area_query", "only_column"]

Predicted: TypeAlias = "str | Mapping[Any, str]"
"""A column of predictions, or of the scores of each class."""

_MOST: Final = 40
"""Classes, at most: each has a column of its own, whose cells are counted for every class."""

_SCORES: Final = "a mapping from each class to the column of its scores, such as {'ant': 'p_ant', 'bee': 'p_bee'}"


def area_query(
    queries: ColumnQueries, column: Predicted, statistic: Statistic, key: str | None, given: float | None
) -> Read:
    """Return the query about an area, or a mean of areas: the records of each class are counted in cells of scores."""
    import narwhals as nw

    part, train, label = queries.records.part, queries.train_frame(), queries.label
    known = classes_of(train, label, _MOST)
    areas = cast("tuple[Area, ...]", statistic.parts(known))
    columns = _columns(column, areas, known)
    scores = [_scores(part, name) for name in columns.values()]
    classes = {plain(one): place for place, one in enumerate(known)}
    of_class = {one: nw.col(label) == nw.lit(one) for one in classes}
    asked = [Wanted(one, argument="label") for one in of_class.values()]
    asked += [Wanted(nw.col(name).is_null(), argument="estimator") for name in columns.values()]
    totals = train.totals_of(asked)
    for lost in totals[len(classes) :]:
        check_predicted(replace(lost, missing=lost.total >> lost.bits), "estimator", "scores of all of them")
    cells = []
    for one, score in zip(columns, scores, strict=True):
        ahead = totals[classes[one]].total >> totals[classes[one]].bits
        truth = part.compiled(of_class[one].cast(nw.Float64), "label").expression
        cells.append(common_values(train, score, truth, (train.n - ahead, ahead), len(columns)))
    code = _code(part, of_class)

    def counts(of: LazyPart) -> list[NDArray[np.int64]]:
        return cell_counts(of, scores, code, cells, len(classes) + 1)

    def sides(found: list[NDArray[np.int64]]) -> list[ScoreCounts]:
        own = dict(zip(columns, found, strict=True))
        return [_score_counts(own[plain(area.label)], area, classes) for area in areas]

    trained = sides(counts(train))
    estimates = [area.estimate_of_counts(one, train.n) for area, one in zip(areas, trained, strict=True)]
    query = public_query(queries, statistic, statistic.combined(tuple(estimates)), known, given, key)

    def read(found: list[NDArray[np.int64]]) -> Any:
        pairs = zip(areas, sides(found), strict=True)
        evidence = tuple(area.evidence_of_counts(one, queries.dependence) for area, one in pairs)
        return queries.engine.statistic(evidence, query.known)

    return query, Scan(lambda: counts(part), read)


def only_column(column: Predicted) -> str:
    """Return the column of predictions; refuse one for each class."""
    if not isinstance(column, str):
        raise InputTypeError("estimator", "a mapping", "the name of one column, except for areas of several classes")
    return column


def _columns(column: Predicted, areas: tuple[Area, ...], known: NDArray[Any]) -> dict[Any, str]:
    """Return the column of scores of each class that has an area."""
    if len(areas) == 1:
        return {plain(areas[0].label): only_column(column)}
    if isinstance(column, str):
        raise InputTypeError("estimator", f"the column {column!r}", _SCORES)
    wanted = [plain(one) for one in known]
    if set(column) != set(wanted):
        seen = f"columns of {', '.join(sorted(map(repr, column)))}"
        raise InputError("estimator", seen, f"a column for each class of the training part: {wanted}")
    return {one: column[one] for one in wanted}


def _scores(part: LazyPart, column: str) -> nw.Expr:
    """Return a column of scores as floats."""
    scores = part.compiled(column, "estimator")
    if scores.kind not in ("boolean", "integer", "real"):
        raise InputError("estimator", f"{scores.text}, a {scores.kind}", "a column of scores: numbers")
    return scores.as_real().expression


def _code(part: LazyPart, of_class: Mapping[Any, nw.Expr]) -> nw.Expr:
    """Return the place of a record's class, and their number for every other label."""
    import narwhals as nw

    code = nw.lit(float(len(of_class)))
    for place, one in reversed(list(enumerate(of_class.values()))):
        code = nw.when(part.compiled(one, "label").expression).then(nw.lit(float(place))).otherwise(code)
    return code


def _score_counts(counts: NDArray[np.int64], area: Area, classes: Mapping[Any, int]) -> ScoreCounts:
    """Return the cells with records; every second one has one score, or records of one class without a score.

    A positive record without a score is below all others, and a negative one above.
    """
    ahead = counts[classes[plain(area.label)]]
    behind = counts.sum(axis=0) - ahead if area.other is None else counts[classes[plain(area.other)]]
    both = np.zeros((2, ahead.size + 1), dtype=np.int64)
    both[:, 1:-1] = ahead[:-1], behind[:-1]
    both[0, 0], both[1, -1] = ahead[-1], behind[-1]
    used = both.any(axis=0)
    return ScoreCounts(both[0, used], both[1, used], (np.arange(used.size) % 2 == 0)[used])
