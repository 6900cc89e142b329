"""Ledgers with some answers, for tests of what is proved about them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.thresholdout.ledger.mechanism import FIRST, GUARD, PARAMETERS, Mechanism
from thresholdout.ledger import SQLLedger
from thresholdout.service.receipts.receipt import Receipt, key_digest, written_time


def asked(ledger: SQLLedger, count: int, guard: str = GUARD, *, start: int = 0) -> SQLLedger:
    """Ask a guard so many queries, and make it when it is missing."""
    ledger.create(guard, PARAMETERS, FIRST)
    for number in range(start, start + count):
        ledger.ask(guard, f"key {number}", 0.5, "accuracy", Mechanism(), client="ann")
    return ledger


def copied(source: Path, target: Path) -> Path:
    """Copy the file of a ledger that is closed, as somebody does who makes a backup."""
    shutil.copy2(source, target)
    return target


def receipt_of(ledger: SQLLedger, query: int, guard: str = GUARD) -> Receipt:
    """Return the receipt of an answer."""
    ((entry, checkpoint),) = ledger._links(guard, query, 1)
    assert entry.time is not None
    return Receipt(
        service=ledger.identity(),
        holdout="cells",
        guard=guard,
        team=entry.client,
        kind="score",
        metric="accuracy",
        query=query,
        value=entry.value,
        low=entry.low,
        high=entry.high,
        verdict=None,
        time=written_time(entry.time),
        idempotency=key_digest(entry.key),
        predictions="",
        checkpoint=checkpoint,
    )
