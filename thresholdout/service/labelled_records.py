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


@dataclass(frozen=True)
class LabelledRecords:
    """The records behind a guard that holds labels. Secret.

    Attributes
    ----------
    document : dict
        Name of the id column, ids and labels of both parts, and dependence, as JSON values.
    """

    document: dict[str, Any]

    @property
    def id(self) -> str:
        """Name of the column that identifies a record."""
        return str(self.document["id"])

    @property
    def dependence(self) -> dict[str, Any]:
        """How the holdout's records depend on each other, as JSON values."""
        found: dict[str, Any] = self.document["dependence"]
        return found

    @cached_property
    def train_labels(self) -> NDArray[Any]:
        """Labels of the training part, which are not protected."""
        return np.asarray(self.document["train"]["labels"])

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The different labels of the training part."""
        return np.unique(self.train_labels)

    @cached_property
    def ids(self) -> pd.Index[Any]:
        """The ids of both parts, those of the training part first."""
        import pandas as pd

        found: pd.Index[Any] = pd.Index(
            [*self.document["train"]["ids"], *self.document["holdout"]["ids"]], dtype=object
        )
        return found

    @property
    def nbytes(self) -> int:
        """How much memory an open guard takes for them, about."""
        texts = sum(map(len, self.ids.tolist()))
        return _FOR_EACH_RECORD * len(self.ids) + 5 * texts  # a byte for each character as text, four in an array

    def parts(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return training part and holdout as pairs of ids and labels."""
        return [
            (np.asarray(part["ids"]), np.asarray(part["labels"]))
            for part in (self.document["train"], self.document["holdout"])
        ]

    def model(self) -> DependenceModel:
        """Return how the holdout's records depend on each other."""
        return model_of(self.document)


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
    allow_equal_rows: bool,
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
    if not allow_equal_rows and len(train.columns) > 2:
        parts = shared_content(train, holdout, id)
        check_disjoint((parts[0],), (parts[1],))
    document: dict[str, Any] = {
        "id": id,
        "train": {"ids": ids[0], "labels": labels[0].tolist()},
        "holdout": {"ids": ids[1], "labels": labels[1].tolist()},
    }
    document["dependence"] = described(
        document, train, holdout, groups=groups, order=order, window=window, transition=transition, graph=graph
    )
    return LabelledRecords(document)
