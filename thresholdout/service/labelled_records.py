"""Storage of the labels behind a guard in its ledger.

One secret document describes the records, with a digest of each column; each column is a document of its own.
Numbers are the bytes of an array in base64, little-endian; integers take as few bytes as the largest needs. Texts
are a list, or, where they repeat, a list of distinct texts and the index of each row.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
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
from thresholdout.errors import InputError, LedgerDamaged, LedgerMismatch, LedgerUnusable
from thresholdout.guard.registration import ORDER
from thresholdout.ledger import Ledger
from thresholdout.ledger.entry import CONTENT

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = [
    "DOCUMENT",
    "LabelledRecords",
    "check_stored",
    "chosen_guard",
    "documents_of",
    "known_records",
    "labelled",
    "packed_numbers",
    "packed_texts",
    "stored_records",
    "unpacked_numbers",
    "unpacked_texts",
]

# A column has the first of these types that holds all of its values.
_INTEGERS: Final = ("<i1", "<i2", "<i4", "<i8")
_KINDS: Final = (*_INTEGERS, "<f8")


def packed_numbers(column: NDArray[Any]) -> str:
    """Return integers or floats as text."""
    if column.dtype.kind == "f":
        kind = "<f8"
    else:
        ends = (int(column.min()), int(column.max())) if column.size else (0, 0)
        kind = next(one for one in _INTEGERS if all(np.iinfo(one).min <= end <= np.iinfo(one).max for end in ends))
    return json.dumps({"kind": kind, "data": b64encode(column.astype(kind).tobytes()).decode("ascii")})


def unpacked_numbers(text: str) -> NDArray[Any]:
    """Return the column that `packed_numbers` wrote, as 64-bit integers or floats."""
    found = json.loads(text)
    if found["kind"] not in _KINDS:
        raise ValueError
    column = np.frombuffer(b64decode(found["data"], validate=True), dtype=found["kind"])
    return column.astype(np.float64 if column.dtype.kind == "f" else np.int64)


def packed_texts(column: list[str]) -> str:
    """Return texts as one text."""
    different = dict.fromkeys(column)
    if 2 * len(different) > len(column):
        return json.dumps({"texts": column})
    places = {text: place for place, text in enumerate(different)}
    rows = np.fromiter(map(places.__getitem__, column), dtype=np.int64, count=len(column))
    return json.dumps({"texts": list(different), "rows": json.loads(packed_numbers(rows))})


def unpacked_texts(text: str) -> list[str]:
    """Return the column that `packed_texts` wrote."""
    found = json.loads(text)
    texts: list[str] = found["texts"]
    if not isinstance(texts, list) or set(map(type, texts)) - {str}:
        raise ValueError
    if "rows" not in found:
        return texts
    rows = unpacked_numbers(json.dumps(found["rows"]))
    if rows.size and int(rows.min()) < 0:
        raise ValueError
    column: list[str] = np.asarray(texts, dtype=object)[rows].tolist()
    return column


# Bytes of one record: a text object and two references to it, an index entry, two labels, and hashes.
_FOR_EACH_RECORD: Final = 160


@dataclass(frozen=True, eq=False)
class LabelledRecords:
    """The records behind a guard that holds labels. Secret.

    Notes
    -----
    `dependence` describes the dependence of the holdout's records as JSON values; `groups` are their groups, where it
    has some. Labels of the training part are not protected.
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
        """The distinct labels of the training part."""
        return np.unique(self.train_labels)

    @cached_property
    def ids(self) -> pd.Index[Any]:
        """The ids of both parts, those of the training part first."""
        import pandas as pd

        found: pd.Index[Any] = pd.Index([*self.train_ids, *self.holdout_ids], dtype=object)
        return found

    @cached_property
    def integer_ids(self) -> pd.Index[Any] | None:
        """The ids as integers, if all of them are written as integers; ``None`` otherwise."""
        import pandas as pd

        texts = [*self.train_ids, *self.holdout_ids]
        try:
            found = list(map(int, texts))
            return pd.Index(np.array(found, dtype=np.int64)) if list(map(str, found)) == texts else None
        except (ValueError, OverflowError):
            return None

    def places(self, column: pd.Series[Any]) -> NDArray[np.intp]:
        """Return the places in `ids` of the ids in a column, -1 for unknown ones."""
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
        """Approximate memory of the records in an open guard."""
        texts = sum(map(len, self.train_ids)) + sum(map(len, self.holdout_ids))
        return _FOR_EACH_RECORD * len(self.ids) + 5 * texts  # a character takes one byte as text and four in an array

    def parts(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return training part and holdout as pairs of ids and labels."""
        return [
            (np.asarray(self.train_ids), self.train_labels),
            (np.asarray(self.holdout_ids), self.holdout_labels),
        ]

    def model(self) -> DependenceModel:
        """Return the dependence model of the holdout's records."""
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
    """Read the tables of `PredictionGuard.create`, whose arguments these are."""
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
        raise InputError(id, f"{twice!r} twice", "unique in both tables together")
    labels = labels_of(train[label], holdout[label], label)
    if not allow_duplicates and len(train.columns) > 2:
        parts = shared_content(train, holdout, id)
        check_disjoint((parts[0],), (parts[1],))
    dependence, of_groups = described(
        ids, labels, train, holdout, groups=groups, order=order, window=window, transition=transition, graph=graph
    )
    return LabelledRecords(id, ids[0], ids[1], labels[0], labels[1], dependence, of_groups)


# Name of the document that describes the labels; secret, as the columns are.
DOCUMENT: Final = "labels"

_GROUPS: Final = "holdout/groups"
# Version of the description; a program refuses another one.
_VERSION: Final = 1


def chosen_guard(ledger: Ledger, start: str | None) -> str:
    """Return the one guard with labels whose identity begins with `start`."""
    named = [identity for identity in ledger.guards() if identity.startswith(start or "")]
    found = [identity for identity in named if DOCUMENT in ledger.documents(identity)]
    if len(found) == 1:
        return found[0]
    labelled = found or [identity for identity in ledger.guards() if DOCUMENT in ledger.documents(identity)]
    if not labelled:
        raise LedgerUnusable(ledger.location, "It has no guard with labels. Create one by `thresholdout guard create`.")
    listed = ", ".join(identity[:12] for identity in labelled[:5])
    seen = f"{start!r}, with which {len(found) or 'no'} such identities begin" if start else "nothing"
    more = ", ..." if len(labelled) > 5 else ""
    advice = f"{ledger.location} has {len(labelled)} guards with labels: {listed}{more}."
    raise InputError("guard", seen, "the first characters of one guard's identity", advice)


def documents_of(records: LabelledRecords) -> dict[str, str]:
    """Return the documents of records for a ledger."""
    columns = _columns_of(records)
    return {DOCUMENT: json.dumps(_described(records, columns))} | {_named(name): columns[name] for name in columns}


def stored_records(ledger: Ledger, identity: str) -> LabelledRecords:
    """Return the records that `PredictionGuard.create` put into a ledger."""
    try:
        described: dict[str, Any] = json.loads(ledger.document(identity, DOCUMENT) or "")
        records = _of_columns(ledger, identity, described)
        records.model()
        for ids, labels in ((records.train_ids, records.train_labels), (records.holdout_ids, records.holdout_labels)):
            if not ids or len(ids) != len(labels):
                raise ValueError
        return records
    except (IndexError, KeyError, RecursionError, TypeError, ValueError):
        pass  # a message could show labels
    raise LedgerDamaged(ledger.location, None, f"The labels of guard {identity[:12]!r}... cannot be read.")


def known_records(ledger: Ledger, identity: str) -> tuple[str, str] | None:
    """Return content and order of the holdout at creation, whose columns have their digests."""
    names = ledger.documents(identity)
    if _named("holdout/ids") not in names or ORDER not in names:
        return None
    content, order = (ledger.document(identity, name) for name in (CONTENT, ORDER))
    return None if content is None or order is None else (content, order)


def check_stored(ledger: Ledger, identity: str, documents: dict[str, str]) -> None:
    """Refuse another holdout's or other labels' guard; a new guard has just got these documents."""
    if DOCUMENT not in ledger.documents(identity):
        raise LedgerMismatch(
            ledger.location, "The guard of this holdout was created without labels. Pass another file."
        )
    if ledger.document(identity, DOCUMENT) == documents[DOCUMENT]:
        return
    wanted = json.loads(documents[DOCUMENT])
    found = json.loads(documents_of(stored_records(ledger, identity))[DOCUMENT])
    words = {"id": "id column", "train": "training part", "holdout": "holdout", "dependence": "dependence"}
    for key, what in words.items():
        if found[key] != wanted[key]:
            raise LedgerMismatch(
                ledger.location,
                f"The guard of this holdout was created with another {what}. Pass the same one, or another file.",
            )


def _named(column: str) -> str:
    """Return the name of the document with a column."""
    return f"{DOCUMENT}/{column}"


def _columns_of(records: LabelledRecords) -> dict[str, str]:
    """Return the columns of records as texts."""
    columns = {
        "train/ids": packed_texts(records.train_ids),
        "train/labels": _packed(records.train_labels),
        "holdout/ids": packed_texts(records.holdout_ids),
        "holdout/labels": _packed(records.holdout_labels),
    }
    if records.groups is not None:
        columns[_GROUPS] = packed_texts(records.groups)
    return columns


def _described(records: LabelledRecords, columns: dict[str, str]) -> dict[str, Any]:
    """Return the description of records, with digests of the columns."""
    digests = {name: sha256(text.encode()).hexdigest() for name, text in columns.items()}
    parts = {part: {name: digests[f"{part}/{name}"] for name in ("ids", "labels")} for part in ("train", "holdout")}
    groups = {} if records.groups is None else {"groups": digests[_GROUPS]}
    return {"columns": _VERSION, "id": records.id, **parts, "dependence": {**records.dependence, **groups}}


def _of_columns(ledger: Ledger, identity: str, described: dict[str, Any]) -> LabelledRecords:
    """Return records from a ledger's columns; each column must have its digest."""
    if described["columns"] != _VERSION:
        raise ValueError
    dependence = dict(described["dependence"])
    digests = {f"{part}/{name}": described[part][name] for part in ("train", "holdout") for name in ("ids", "labels")}
    if "groups" in dependence:
        digests[_GROUPS] = dependence.pop("groups")
    columns = {name: ledger.document(identity, _named(name)) or "" for name in digests}
    if any(sha256(columns[name].encode()).hexdigest() != digest for name, digest in digests.items()):
        raise ValueError
    return LabelledRecords(
        str(described["id"]),
        unpacked_texts(columns["train/ids"]),
        unpacked_texts(columns["holdout/ids"]),
        _unpacked(columns["train/labels"]),
        _unpacked(columns["holdout/labels"]),
        dependence,
        unpacked_texts(columns[_GROUPS]) if _GROUPS in columns else None,
    )


def _packed(labels: Any) -> str:
    return packed_texts(labels.tolist()) if labels.dtype.kind == "U" else packed_numbers(labels)


def _unpacked(text: str) -> Any:
    return np.asarray(unpacked_texts(text), dtype=str) if text.startswith('{"texts"') else unpacked_numbers(text)
