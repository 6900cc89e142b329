"""Receipts of answers, and checkpoints for a witness."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import LedgerError
from thresholdout.service.receipts.receipt import Receipt, key_digest, written_time
from thresholdout.service.receipts.rollback_detection import checkpoint_at, copy_notes, remember_line
from thresholdout.service.receipts.signed_text import unverified
from thresholdout.service.receipts.witnessing import Witnessing
from thresholdout.service.views import told_of

if TYPE_CHECKING:
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.signing_keys import Signer
    from thresholdout.service.receipts.witness import Witness
    from thresholdout.service.store.holdouts import HoldoutRow
    from thresholdout.service.store.submissions import SubmissionRow

__all__ = ["Receipts"]

_log: Final = logging.getLogger("thresholdout.service")

# Seconds for which a stopping service waits for its witness.
_SECONDS: Final = 5.0


class Receipts:
    """The signer and the witness of a service, as far as it has them."""

    def __init__(self, ledger: SQLLedger, signer: Signer | None, witness: Witness | None) -> None:
        self._ledger = ledger
        self._signer = signer
        self._identity = ledger.identity()
        self._witnessing = None if witness is None else Witnessing(witness, self._identity)

    def of(self, holdout: HoldoutRow, row: SubmissionRow, request: str, content: str) -> str | None:
        """Send an answer's checkpoint to the witness, and return the receipt; ``None`` without a signer or a query."""
        if row.query is None or (self._signer is None and self._witnessing is None):
            return None
        if self._witnessing is not None:
            self._witnessing.note(holdout.identity, row.query, checkpoint_at(self._ledger, holdout.identity, row.query))
        return self._signed(holdout, row, row.query, key_digest(request), content)

    def heed(self, holdout: HoldoutRow) -> None:
        """Send the checkpoint of a history that grew by other than an answer to the witness."""
        if self._witnessing is not None:
            count = self._ledger.count(holdout.identity)
            self._witnessing.note(holdout.identity, count, checkpoint_at(self._ledger, holdout.identity, count))

    def current(self, holdout: HoldoutRow, row: SubmissionRow) -> SubmissionRow:
        """Return a submission whose receipt has the present key's signature, since the earlier key may be withdrawn.

        The entry of the ledger is signed anew; only the digests of the request are copied from the stored receipt.
        """
        if row.receipt is None or row.query is None or self._signer is None:
            return row
        header, claims = unverified(row.receipt)
        if header["kid"] == self._signer.key:
            return row
        request, content = claims["idempotency"], claims["predictions"]
        return replace(row, receipt=self._signed(holdout, row, row.query, request, content))

    def _signed(self, holdout: HoldoutRow, row: SubmissionRow, query: int, request: str, content: str) -> str | None:
        """Return the receipt of an answer; ``None`` without a signer."""
        if self._signer is None:
            return None
        entry, checkpoint = self._ledger._links(holdout.identity, query, 1)[0]
        value, low, high = told_of(holdout, row)
        receipt = Receipt(
            service=self._identity,
            holdout=holdout.name,
            guard=holdout.identity,
            team=row.team,
            kind=row.kind,
            metric=holdout.settings.metric,
            query=query,
            value=value,
            low=low,
            high=high,
            verdict=row.verdict,
            time=written_time(entry.time or row.received),
            idempotency=request,
            predictions=content,
            checkpoint=checkpoint,
        )
        return receipt.signed(self._signer)

    def notes(self, holdout: HoldoutRow) -> tuple[str, ...]:
        """Return a leaderboard's notes on accepted copies."""
        return copy_notes(self._ledger, holdout.identity)

    def status(self) -> dict[str, Any]:
        """Return whether the witness keeps up; nothing without a witness."""
        if self._witnessing is None:
            return {}
        status = self._witnessing.status()
        failing = None if status.failing_since is None else written_time(status.failing_since)
        return {"witness": {"waiting": status.waiting, "failing_since": failing}}

    def close(self) -> None:
        """Send the waiting checkpoints to the witness, and store its last line."""
        if self._witnessing is None:
            return
        if not self._witnessing.close(_SECONDS):
            _log.warning("the witness was not told the last checkpoints; it will be when the service starts again")
        try:
            remember_line(self._ledger, self._witnessing.last_line)
        except LedgerError:
            _log.warning("the ledger does not remember the last line of its witness")
