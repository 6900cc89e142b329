"""How many records of a lazy frame are of a class, and are predicted to be of it: one pass for all classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.parts.lazy_part import Wanted
from thresholdout.data.parts.part_groups import distinct_values
from thresholdout.errors import InputError
from thresholdout.scoring.statistics.class_counts import ClassCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.data.parts.lazy_part import LazyPart
    from thresholdout.scoring.statistics import Statistic

__all__ = ["class_counts", "classes_of"]

_MOST: Final = 200
"""Classes, at most: three numbers of each are counted in one pass."""


def classes_of(statistic: Statistic, train: LazyPart, label: str) -> NDArray[Any]:
    """Return the classes of the training part, in order.

    Raises
    ------
    InputError
        When a label is missing, there are too many, or the statistic is no function of counts of classes.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> from thresholdout.scoring.statistics import f1
    >>> classes_of(f1(), LazyPart(pl.LazyFrame({"y": ["b", "a", "b"]}), "train"), "y").tolist()
    ['a', 'b']
    """
    statistic.class_ratios(np.arange(2))  # refuses others before anything is read
    found = distinct_values(train, label, _MOST + 1)
    if len(found) > _MOST:
        seen = f"more than {_MOST} classes in the column {label!r}"
        raise InputError("label", seen, f"at most {_MOST} classes, of which three numbers each are counted in one pass")
    if any(value is None or value != value for value in found):
        raise InputError("label", f"labels {label!r} that are missing in the training part", "a class for each record")
    return np.unique(np.array(found))


def class_counts(
    part: LazyPart, prediction: str, label: str, classes: Sequence[Any], *, check: bool = False
) -> dict[Any, ClassCounts]:
    """Count the records of each class, those predicted to be of it, and both.

    A missing prediction is of no class, and so is a missing label: as in memory, where what is no number equals none.

    Parameters
    ----------
    part : LazyPart
        The records.
    prediction, label : str
        Names of columns.
    classes : sequence
        Labels.
    check : bool, default=False
        Refuse missing values, where they are public.

    Raises
    ------
    InputError
        When the columns do not hold such labels; or, with ``check``, when something is missing.
    EngineFailed
        When the engine fails.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> part = LazyPart(pl.LazyFrame({"pred": [0, 1, 1, None], "y": [0, 1, 0, 1]}), "holdout")
    >>> found = class_counts(part, "pred", "y", [1])[1]
    >>> found.truth, found.said, found.both
    (2, 2, 1)
    """
    import narwhals as nw

    wanted = []
    for one in classes:
        truth, said = nw.col(label) == nw.lit(_plain(one)), nw.col(prediction) == nw.lit(_plain(one))
        wanted += [Wanted(truth, argument="label"), Wanted(said, argument="estimator")]
        wanted.append(Wanted(truth & said, argument="estimator"))
    found = part.totals_of(wanted)
    if check:
        for one_total in found:
            one_total.check("train_values", (0.0, 1.0))
    numbers = [one_total.total >> one_total.bits for one_total in found]
    return {one: ClassCounts(part.n, *numbers[3 * k : 3 * k + 3]) for k, one in enumerate(classes)}


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
