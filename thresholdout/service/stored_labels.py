"""What a ledger keeps of the labels behind a guard, and how it is found again.

One secret document says what there is, with a digest of each column; each column is a document of its own
(`thresholdout.data.packed_columns`).
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

import numpy as np

from thresholdout.data.packed_columns import packed_numbers, packed_texts, unpacked_numbers, unpacked_texts
from thresholdout.errors import InputError, LedgerDamaged, LedgerMismatch, LedgerUnusable
from thresholdout.guard.registration import ORDER
from thresholdout.ledger import Ledger
from thresholdout.ledger.entry_checks import CONTENT
from thresholdout.service.labelled_records import LabelledRecords

__all__ = ["DOCUMENT", "check_stored", "chosen_guard", "documents_of", "known_records", "stored_records"]

DOCUMENT: Final = "labels"
"""Name of the document that says which labels there are; secret, as the columns are."""

_GROUPS: Final = "holdout/groups"
_VERSION: Final = 1


def chosen_guard(ledger: Ledger, start: str | None) -> str:
    """Return the one guard with labels whose identity starts so."""
    named = [identity for identity in ledger.guards() if identity.startswith(start or "")]
    found = [identity for identity in named if DOCUMENT in ledger.documents(identity)]
    if len(found) == 1:
        return found[0]
    labelled = found or [identity for identity in ledger.guards() if DOCUMENT in ledger.documents(identity)]
    if not labelled:
        raise LedgerUnusable(ledger.location, "it holds no labels; make it with `thresholdout guard create`")
    listed = ", ".join(identity[:12] for identity in labelled[:5])
    seen = f"{start!r}, with which {len(found) or 'no'} guards with labels start in {ledger.location}"
    expected = f"the first characters of one guard's identity: {listed}{', ...' if len(labelled) > 5 else ''}"
    raise InputError("guard", seen if start else f"none, and {len(labelled)} guards with labels", expected)


def documents_of(records: LabelledRecords) -> dict[str, str]:
    """Return the texts that a ledger keeps of records."""
    columns = _columns_of(records)
    return {DOCUMENT: json.dumps(_described(records, columns))} | {_named(name): columns[name] for name in columns}


def stored_records(ledger: Ledger, identity: str) -> LabelledRecords:
    """Return what `PredictionGuard.create` has put into a ledger."""
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
    raise LedgerDamaged(ledger.location, None, f"guard {identity[:12]!r}...: its labels can't be read")


def known_records(ledger: Ledger, identity: str) -> tuple[str, str] | None:
    """Return identity and order of the holdout, as the guard was made with them.

    They belong to columns whose digests were found right.
    """
    names = ledger.documents(identity)
    if _named("holdout/ids") not in names or ORDER not in names:
        return None
    content, order = (ledger.document(identity, name) for name in (CONTENT, ORDER))
    return None if content is None or order is None else (content, order)


def check_stored(ledger: Ledger, identity: str, documents: dict[str, str]) -> None:
    """Refuse a guard for this holdout that was made with something else besides; a new one has just got it.

    Parameters
    ----------
    ledger : Ledger
        Where it is.
    identity : str
        What the ledger calls it.
    documents : dict
        What `documents_of` returned for it.
    """
    if DOCUMENT not in ledger.documents(identity):
        raise LedgerMismatch(ledger.location, "this holdout's guard was made without labels; give another file")
    if ledger.document(identity, DOCUMENT) == documents[DOCUMENT]:
        return
    wanted = json.loads(documents[DOCUMENT])
    found = json.loads(documents_of(stored_records(ledger, identity))[DOCUMENT])
    words = {"id": "id column", "train": "training part", "holdout": "holdout", "dependence": "dependence"}
    for key, what in words.items():
        if found[key] != wanted[key]:
            raise LedgerMismatch(
                ledger.location,
                f"this holdout's guard was made with another {what}; give the same ones, or another file",
            )


def _named(column: str) -> str:
    """Return what a ledger calls the document with a column."""
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
    """Return what there is, with digests of the columns."""
    digests = {name: sha256(text.encode()).hexdigest() for name, text in columns.items()}
    parts = {part: {name: digests[f"{part}/{name}"] for name in ("ids", "labels")} for part in ("train", "holdout")}
    groups = {} if records.groups is None else {"groups": digests[_GROUPS]}
    return {"columns": _VERSION, "id": records.id, **parts, "dependence": {**records.dependence, **groups}}


def _of_columns(ledger: Ledger, identity: str, described: dict[str, Any]) -> LabelledRecords:
    """Return records of which a ledger keeps the columns; each has to have its digest."""
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
