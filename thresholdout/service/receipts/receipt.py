"""Signed receipts of answers, which anybody can check without the service and without a network.

A receipt contains only values that its team was shown: where feedback is one bit, there is no interval in it. The
checkpoint is the digest of the history after the answer (`thresholdout.ledger.digest_chain`), and covers all earlier
answers. So two receipts of one holdout with one number and different checkpoints prove that its service showed two
histories. An exported history leads to the checkpoint of each receipt, or is not the one in which the answer was
given.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.errors import InputError
from thresholdout.ledger.history_file import HistoryFile
from thresholdout.service.receipts.errors import ReceiptContradicted, ReceiptInvalid
from thresholdout.service.receipts.signed_text import verified

if TYPE_CHECKING:
    from thresholdout.ledger.entry import Entry
    from thresholdout.service.receipts.signing_keys import Signer

__all__ = ["KIND", "Receipt", "key_digest", "read_receipt", "verify_in_history", "written_time"]

# Type of a receipt in its header.
KIND: Final = "thresholdout-receipt"

# Version of the claims; a program refuses another one.
_VERSION: Final = 1
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One answer, as its team was shown it.

    Notes
    -----
    `service` and `guard` identify the ledger and the guard. `value`, `low`, `high` and `verdict` are ``None`` where the
    team was not shown them. `time` is that of storage, of RFC 3339, in UTC to the microsecond. `idempotency` is the
    SHA-256 of the Idempotency-Key, `predictions` the digest of the predictions or empty, and `checkpoint` the digest of
    the history after the answer.
    """

    service: str
    holdout: str
    guard: str
    team: str
    kind: Literal["score", "comparison"]
    metric: str
    query: int
    value: float | None
    low: float | None
    high: float | None
    verdict: Literal["better", "worse", "not settled", "first"] | None
    time: str
    idempotency: str
    predictions: str
    checkpoint: str

    def claims(self) -> dict[str, Any]:
        """Return the signed claims."""
        return {"version": _VERSION, **{field.name: getattr(self, field.name) for field in fields(self)}}

    def signed(self, signer: Signer) -> str:
        """Return the receipt with a signature, as one line of text."""
        return signer.sign(self.claims(), KIND)

    @classmethod
    def from_claims(cls, claims: Mapping[str, Any]) -> Receipt:
        """Return the receipt of signed claims."""
        if claims.get("version") != _VERSION or isinstance(claims["version"], bool):
            seen = repr(claims.get("version"))[:40]
            raise ReceiptInvalid(f"It has version {seen}, but this version of thresholdout reads {_VERSION}.")
        said = {name: claims[name] for name in claims if name != "version"}
        if set(said) != {field.name for field in fields(cls)} or not _well_typed(said):
            raise ReceiptInvalid("Its claims are not those of a receipt.")
        return cls(**said)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def read_receipt(text: str, keys: Mapping[str, bytes]) -> tuple[Receipt, str]:
    """Return a receipt whose signature is valid, and the name of its key.

    Notes
    -----
    `keys`: the service's public keys, from `thresholdout.service.receipts.signing_keys.public_keys`. They must not come
    from the sender of the receipt.
    """
    claims, key = verified(text.strip(), KIND, keys)
    return Receipt.from_claims(claims), key


def verify_in_history(receipt: Receipt, file: str | os.PathLike[str]) -> None:
    """Check a receipt against an exported history, and the history itself."""
    with HistoryFile(file) as history:
        if history.header.guard != receipt.guard:
            seen = f"that of guard {history.header.guard[:12]!r}"
            raise InputError("history", seen, f"that of guard {receipt.guard[:12]!r}, which the receipt is about")
        found: tuple[Entry, str] | None = None
        for entry in history.entries():
            if entry.query == receipt.query:
                found = entry, history.digest
        if found is None:
            seen = f"It ends with query {history.header.count}, but the receipt is about query {receipt.query}."
            raise ReceiptContradicted(seen)
        _check_entry(receipt, *found)


def key_digest(key: str) -> str:
    """Return the digest of an Idempotency-Key, which a receipt shows in its place."""
    return sha256(key.encode()).hexdigest()


def written_time(seconds: float) -> str:
    """Return a time in POSIX seconds in the format of receipts."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _check_entry(receipt: Receipt, entry: Entry, digest: str) -> None:
    """Raise if an entry is not the one that a receipt is about."""
    if digest != receipt.checkpoint:
        raise ReceiptContradicted(
            f"After query {receipt.query} the checkpoint is {digest[:12]}..., not {receipt.checkpoint[:12]}..., so the "
            "answer was given in another history."
        )
    if entry.client != receipt.team:
        raise ReceiptContradicted(
            f"Query {receipt.query} is that of {entry.client!r}, but the receipt that of {receipt.team!r}."
        )
    if entry.time is not None and written_time(entry.time) != receipt.time:
        raise ReceiptContradicted(f"Query {receipt.query} was answered at {written_time(entry.time)}.")
    shown = receipt.kind == "score" and receipt.low is not None
    if shown and (receipt.value, receipt.low, receipt.high) != (entry.value, entry.low, entry.high):
        raise ReceiptContradicted(
            f"The answer to query {receipt.query} is {entry.value!r} in [{entry.low!r}, {entry.high!r}]."
        )


def _lines(receipt: Receipt) -> list[str]:
    about = f"holdout {receipt.holdout} (guard {receipt.guard[:12]}), query {receipt.query}, team {receipt.team}"
    lines = [about, f"{receipt.kind} by {receipt.metric}, stored {receipt.time}"]
    if receipt.low is not None and receipt.high is not None:
        value = "" if receipt.value is None else f"{receipt.value:.6g} "
        lines.append(f"answer {value}in [{shown_below(receipt.low, 6)}, {shown_above(receipt.high, 6)}]")
    if receipt.verdict is not None:
        lines.append(f"verdict {receipt.verdict}")
    lines.append(f"request {receipt.idempotency}")
    if receipt.predictions:
        lines.append(f"predictions {receipt.predictions}")
    return [*lines, f"checkpoint {receipt.checkpoint}"]


def _well_typed(said: Mapping[str, Any]) -> bool:
    """Return whether claims have the types and the form of a receipt's."""
    texts = ("service", "holdout", "guard", "team", "metric", "predictions")
    numbers = (said["value"], said["low"], said["high"])
    return (
        all(isinstance(said[name], str) for name in texts)
        and all(isinstance(said[name], str) and _DIGEST.fullmatch(said[name]) for name in ("idempotency", "checkpoint"))
        and isinstance(said["time"], str)
        and _TIME.fullmatch(said["time"]) is not None
        and said["kind"] in ("score", "comparison")
        and said["verdict"] in (None, "better", "worse", "not settled", "first")
        and type(said["query"]) is int
        and said["query"] >= 1
        and all(number is None or (type(number) is float and math.isfinite(number)) for number in numbers)
    )
