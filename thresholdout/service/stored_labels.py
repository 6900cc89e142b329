"""What a ledger keeps of the labels behind a guard, and how it is found again."""

from __future__ import annotations

import json
from typing import Any, Final

from thresholdout.errors import InputError, LedgerDamaged, LedgerMismatch, LedgerUnusable
from thresholdout.ledger import Ledger
from thresholdout.service.labelled_records import LabelledRecords

__all__ = ["DOCUMENT", "check_stored", "chosen_guard", "documents_of", "stored_records"]

DOCUMENT: Final = "labels"
"""Name of the document with ids, labels and dependence; secret."""


def chosen_guard(ledger: Ledger, start: str | None) -> str:
    """Return the one guard with labels whose identity starts so."""
    labelled = [identity for identity in ledger.guards() if DOCUMENT in ledger.documents(identity)]
    if not labelled:
        raise LedgerUnusable(ledger.location, "it holds no labels; make it with `thresholdout create`")
    found = [identity for identity in labelled if identity.startswith(start or "")]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(identity[:12] for identity in (found or labelled)[:5])
    seen = f"{start!r}, with which {len(found) or 'no'} guards with labels start in {ledger.location}"
    expected = f"the first characters of one guard's identity: {listed}{', ...' if len(found) > 5 else ''}"
    raise InputError("guard", seen if start else f"none, and {len(found)} guards with labels", expected)


def documents_of(records: LabelledRecords) -> dict[str, str]:
    """Return the texts that a ledger keeps of records."""
    return {DOCUMENT: json.dumps(records.document, allow_nan=False)}


def stored_records(ledger: Ledger, identity: str) -> LabelledRecords:
    """Return what `PredictionGuard.create` has put into a ledger."""
    text = ledger.document(identity, DOCUMENT)
    try:
        document: dict[str, Any] = json.loads(text or "")
        for part in (document["train"], document["holdout"]):
            if not all(isinstance(one, str) for one in part["ids"]) or len(part["ids"]) != len(part["labels"]):
                raise ValueError
        records = LabelledRecords(document)
        records.model()
        return records
    except (KeyError, RecursionError, TypeError, ValueError):
        pass  # a message could show labels
    raise LedgerDamaged(ledger.location, None, f"guard {identity[:12]!r}...: its labels can't be read")


def check_stored(ledger: Ledger, identity: str, records: LabelledRecords) -> None:
    """Refuse a guard for this holdout that was made with something else besides; a new one has just got it."""
    if DOCUMENT not in ledger.documents(identity):
        raise LedgerMismatch(ledger.location, "this holdout's guard was made without labels; give another file")
    stored = stored_records(ledger, identity).document
    words = {"id": "id column", "train": "training part", "holdout": "holdout", "dependence": "dependence"}
    for key, what in words.items():
        if stored.get(key) != records.document[key]:
            raise LedgerMismatch(
                ledger.location,
                f"this holdout's guard was made with another {what}; give the same ones, or another file",
            )
