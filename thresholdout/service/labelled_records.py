"""Both parts of a data set as predictions by id meet them: ids, labels, and how the holdout's records hang together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.overlap import check_disjoint
from thresholdout.data.table_dependence import described, model_of
from thresholdout.data.tables import (
    check_table,
    first_twice,
    id_texts,
    labels_of,
    shared_content,
    sorted_by,
    without_index,
)
from thresholdout.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = ["LabelledRecords", "labelled"]

_FOR_EACH_RECORD: Final = 160
"""Bytes: a text object and two references to it, a place in an index, labels twice and hashes."""


@dataclass(frozen=True, eq=False)
class LabelledRecords:
    """The records behind a guard that holds labels. Secret.

    Attributes
    ----------
    id : str
        Name of the column that identifies a record.
    train_ids, holdout_ids : list of str
        Ids of both parts.
    train_labels, holdout_labels : ndarray
        Labels of both parts: integers, floats or texts. Those of the training part are not protected.
    dependence : dict
        How the holdout's records depend on each other, as JSON values.
    groups : list of str or None
        Group of each holdout record, where they depend on each other in groups.
    """

    id: str
    train_ids: list[str]
    holdout_ids: list[str]
    train_labels: NDArray[Any]
    holdout_labels: NDArray[Any]
    dependence: dict[str, Any]
    groups: list[str] | None = None

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The different labels of the training part."""
        return np.unique(self.train_labels)

    @cached_property
    def ids(self) -> pd.Index[Any]:
        """The ids of both parts, those of the training part first."""
        import pandas as pd

        found: pd.Index[Any] = pd.Index([*self.train_ids, *self.holdout_ids], dtype=object)
        return found

    @cached_property
    def integer_ids(self) -> pd.Index[Any] | None:
        """The same as integers, where all of them are written as integers are; None otherwise."""
        import pandas as pd

        texts = [*self.train_ids, *self.holdout_ids]
        try:
            found = list(map(int, texts))
            return pd.Index(np.array(found, dtype=np.int64)) if list(map(str, found)) == texts else None
        except (ValueError, OverflowError):
            return None

    def places(self, column: pd.Series[Any]) -> NDArray[np.intp]:
        """Return where in `ids` those of a column are, -1 for those that are not there."""
        import pandas as pd

        if column.dtype.kind == "i" and self.integer_ids is not None:
            integers, size = column.to_numpy(dtype=np.int64), len(self.train_ids)
            if np.array_equal(integers, self.integer_ids.to_numpy()[size:]):
                return np.arange(size, size + len(integers))
            return self.integer_ids.get_indexer(pd.Index(integers))
        return self._places_of_texts(id_texts(column))

    def _places_of_texts(self, texts: list[str]) -> NDArray[np.intp]:
        import pandas as pd

        size = len(self.train_ids)
        if texts == self.holdout_ids:
            return np.arange(size, size + len(texts))
        return self.ids.get_indexer(pd.Index(texts, dtype=object))

    @property
    def nbytes(self) -> int:
        """How much memory an open guard takes for them, about."""
        texts = sum(map(len, self.train_ids)) + sum(map(len, self.holdout_ids))
        return _FOR_EACH_RECORD * len(self.ids) + 5 * texts  # a byte for each character as text, four in an array

    def parts(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return training part and holdout as pairs of ids and labels."""
        return [
            (np.asarray(self.train_ids), self.train_labels),
            (np.asarray(self.holdout_ids), self.holdout_labels),
        ]

    def model(self) -> DependenceModel:
        """Return how the holdout's records depend on each other."""
        return model_of(self.dependence, len(self.holdout_ids), self.groups)


def labelled(
    train: pd.DataFrame,
    holdout: pd.DataFrame,
    *,
    label: str,
    id: str,
    groups: str | None,
    order: str | None,
    window: int | None,
    transition: pd.DataFrame | None,
    graph: pd.DataFrame | None,
    allow_duplicates: bool,
) -> LabelledRecords:
    """Read the tables of `PredictionGuard.create`, whose arguments these are.

    Raises
    ------
    InputError
        As there.
    OverlapError
        When both have rows in common that say what a record is.
    """
    needed = [id, label, *([order] if order else []), *([groups] if groups else [])]
    train, holdout = (
        without_index(check_table(table, part, needed), part, needed)
        for table, part in ((train, "train"), (holdout, "holdout"))
    )
    if order is not None:
        train, holdout = sorted_by(train, order, "train"), sorted_by(holdout, order, "holdout")
    ids = id_texts(train[id]), id_texts(holdout[id])
    twice = first_twice([*ids[0], *ids[1]])
    if twice is not None:
        raise InputError(id, f"id {twice!r} occurs twice", "ids that are unique in both tables together")
    labels = labels_of(train[label], holdout[label], label)
    if not allow_duplicates and len(train.columns) > 2:
        parts = shared_content(train, holdout, id)
        check_disjoint((parts[0],), (parts[1],))
    dependence, of_groups = described(
        ids, labels, train, holdout, groups=groups, order=order, window=window, transition=transition, graph=graph
    )
    return LabelledRecords(id, ids[0], ids[1], labels[0], labels[1], dependence, of_groups)
