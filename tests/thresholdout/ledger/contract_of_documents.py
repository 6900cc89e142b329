"""The part of the contract of a ledger that is about texts kept with a guard; `LedgerContract` has it."""

from __future__ import annotations

import pytest

from tests.cases import for_each
from tests.thresholdout.ledger.contract_of_threads import OTHER
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET
from thresholdout.errors import InputError, LedgerMismatch
from thresholdout.ledger import Ledger


class DocumentsContract:
    """Subclasses have a fixture ``ledger``, with one guard in it."""

    def test_documents_have_names(self, ledger: Ledger) -> None:
        for name in ("z", "größe", "Z", "a"):
            ledger.put_document(GUARD, name, "text")
        assert ledger.documents(GUARD) == ["Z", "a", "größe", "labels", "z"]

    def test_documents_come_back(self, ledger: Ledger) -> None:
        long = "label,ä\n" * 100_000
        ledger.put_document(GUARD, "long", long)
        ledger.put_document(GUARD, "empty", "")
        assert ledger.document(GUARD, "long") == long
        assert ledger.document(GUARD, "empty") == ""
        assert ledger.document(GUARD, "labels") == f"{SECRET} label"
        assert ledger.document(GUARD, "none") is None

    def test_documents_do_not_change(self, ledger: Ledger) -> None:
        ledger.put_document(GUARD, "labels", f"{SECRET} label")
        with pytest.raises(LedgerMismatch, match="document 'labels' with another text"):
            ledger.put_document(GUARD, "labels", "forged")
        assert ledger.document(GUARD, "labels") == f"{SECRET} label"

    @for_each("text", ["\ud800", b"bytes", None])
    def test_documents_that_are_not_text_are_refused(self, ledger: Ledger, text: str) -> None:
        with pytest.raises(InputError):
            ledger.put_document(GUARD, "bad", text)
        with pytest.raises(InputError):
            ledger.create(OTHER, {}, FIRST, {"good": "text", "bad": text})
        assert ledger.document(GUARD, "bad") is None
        assert ledger.guards() == [GUARD]
