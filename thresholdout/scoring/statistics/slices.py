"""Metrics on a slice of the records, whose size is secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms.claims.evidence import Dependent, MomentBets
from thresholdout.scoring.metrics import Metric, get_metric, remembered
from thresholdout.scoring.statistics.statistic import Statistic
from thresholdout.scoring.statistics.statistic_parts import (
    Judged,
    Ratio,
    Tally,
    dependent,
    singles,
)

if TYPE_CHECKING:
    import narwhals as nw
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.limits.bets import Moments
    from thresholdout.mechanisms.claims.evidence import Evidence

__all__ = ["SliceMean", "Where", "sliced"]

Where: TypeAlias = "Callable[[Any], Any] | tuple[Any, Any] | nw.Expr"
"""Definition of a slice: a function from features to booleans, a column and its value, or an expression."""


@dataclass(frozen=True)
class SliceMean(Ratio):
    """The mean of a metric over the records of a slice."""

    metric: Metric = field(kw_only=True)
    where: Where = field(kw_only=True)

    def tally(self, n: int, inside: int, right: int) -> Tally:
        """Return wins and losses among n records, of which some are inside, and some of these predicted rightly."""
        wins = right if self.metric.greater_is_better else inside - right
        return Tally(n, wins, inside - wins)

    def evidence_of_moments(self, moments: Moments, n: int, slack: float, model: DependenceModel) -> Evidence:
        """Return the evidence from moments of values inside, of records whose groups are unknown. Secret."""
        self.check_counted(moments.size)
        if singles(model):
            return MomentBets(moments, slack)
        share = moments.size / n
        return replace(dependent(moments.mean() * share, share, model), slack=slack + Dependent.slack)


@remembered
def sliced(metric: str | Metric, where: Where, name: str = "") -> Statistic:
    """Restrict a metric to a slice of the records, such as one country or one age group.

    Parameters
    ----------
    metric : str or Metric
        A metric that is a mean over records, or its name.
    where : callable, tuple or narwhals.Expr
        The slice. A function takes the features X and returns one boolean for each record, which depends on this record
        alone. A pair (column, value) selects the records with this value; the column is a name in a data frame or a
        number in an array. Of lazy frames a function takes columns by ``X["name"]``, as of data frames, and an
        expression such as ``nw.col("age") > 60`` does the same.
    name : str, optional
        Name of the slice in the history. Required unless ``where`` is a pair.

    Returns
    -------
    Statistic
        The mean of the metric over the records of the slice, for ``guard.score(model, statistic)``.

    Notes
    -----
    The estimand is the expected sum over the slice divided by the expected number of its records. For records of one
    distribution this is the mean of the slice in the population. For a class of labels see `recall`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from thresholdout import Claims, Thresholdout
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> guard = Thresholdout((X[:300], y[:300]), train=(X[300:], y[300:]), mechanism=Claims(noise=0.0))
    >>> small = sliced("accuracy", lambda X: X[:, 0] < 13.0, "small")
    >>> answer = guard.score(GaussianNB().fit(X[300:], y[300:]), small)
    >>> answer.name, answer.half_width < 0.25
    ('accuracy where small', True)
    """
    inside = get_metric(metric)
    lower, upper = inside.bounds
    pair = isinstance(where, tuple) and len(where) == 2
    if not (callable(where) or pair or _is_expression(where)):
        expected = "a function of the features, (column, value), or an expression of narwhals"
        raise InputTypeError("where", f"a {type(where).__name__}", expected)
    if not pair and not name:
        raise InputError("name", "nothing", "a name, which the history shows")
    called = name or "{} = {!r}".format(*cast("tuple[Any, Any]", where))
    weight = 1.0 if inside.name in ("accuracy", "zero_one_loss") or inside.name.startswith("top_") else None

    def terms(judged: Judged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        mask = _mask(where, judged.X, judged.y.size)
        values = np.asarray(inside.values(judged.y, judged.output, judged.classes), dtype=np.float64)
        worst = lower if inside.greater_is_better else upper
        unit = (np.clip(np.nan_to_num(values, nan=worst), lower, upper) - lower) / (upper - lower)
        return np.where(mask, unit, 0.0), mask.astype(np.float64)

    return Statistic(
        name=f"{inside.name} where {called}",
        responses=(inside.response,),
        parts=lambda _: (SliceMean(terms, "records of the slice", weight, metric=inside, where=where),),
        bounds=inside.bounds,
        greater_is_better=inside.greater_is_better,
        target=f"the expected sum of {inside.name} over the records where {called}, divided by their expected number",
        classifies=False,
    )


def _is_expression(where: object) -> bool:
    """Whether a slice is an expression of narwhals, which need not be installed."""
    return type(where).__module__.startswith("narwhals") and type(where).__name__ == "Expr"


def _mask(where: Where, X: Any, n: int) -> NDArray[np.bool_]:
    if X is None:
        raise InputError(
            "X", "no features", "features of the records", "Use the slice as guard.score(model, sliced(...))."
        )
    if callable(where):
        mask = np.asarray(where(X))
    elif not isinstance(where, tuple):
        raise InputTypeError("where", "an expression beside records in memory", "a function of the features")
    else:
        column, value = where
        mask = np.asarray((X[column] if hasattr(X, "columns") else X[:, column]) == value)
    if mask.shape != (n,) or mask.dtype != np.bool_:
        raise InputError(
            "where",
            f"values of {mask.dtype} in shape {mask.shape}",
            f"a function with one boolean for each of {n} records",
        )
    return mask
