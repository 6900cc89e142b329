"""The chain of digests that protects a guard's history.

Each entry has a digest of the one before and of all its own fields, so a changed, removed, inserted or moved entry does
not fit. With a copy of the last digest, the checkpoint, in another place, anyone can verify later that the history up
to it is unchanged. A digest is the SHA-256, in lower-case hexadecimal digits, of a line of UTF-8 text, which any
language can write:

- of a new guard, ``thresholdout-guard-1 F P``,
- of an entry, ``thresholdout-entry-1 D Q R L X E T F K N S C A``.

D is the digest before it, Q the number of the query, R the answers that remain, L the number of its list, and X the
train value, the answer, the interval's two ends and the range's two bounds as six IEEE 754 numbers of 64 bits, big end
first, in 96 hexadecimal digits (decimal text differs between languages: ``1e-05``, ``1.0E-5``). E is the logarithm of
the remaining error budget, in 16 such digits, and so is T, the time when it was stored. R, L, E and T are ``-`` if
there is none. F (the guard's name in the ledger), P (parameters as stored), K (key), N (name), S (source), C
(candidate) and A (client) are texts, each written as the number of its bytes in UTF-8, a colon, and the text; so
different entries have different lines. Minus zero counts as zero.

The guard's state is not included. It is secret and has little entropy, so anybody could recover it from a public digest
by trying all possible states.

Examples
--------
>>> from thresholdout.ledger.entry import Entry
>>> start = first_digest("guard", "{}")
>>> entry = Entry(1, "first", "accuracy", 0.8, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0)
>>> next_digest(start, "guard", entry)[:16]
'b85f384225db16e5'
"""

from __future__ import annotations

from hashlib import sha256
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.ledger.entry import check_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from thresholdout.ledger.entry import Entry

__all__ = ["Chain", "Extent", "first_digest", "next_digest", "verify_chain"]

Extent: TypeAlias = "tuple[str, int, str, int]"
"""A guard's parameters as text, the noted number and digest of its last entry, and the number of entries found."""

# Entries of a history that are read at once, which bounds the memory.
_CHUNK: Final = 5000

_numbers: Final = Struct(">6d").pack
_number: Final = Struct(">d").pack


def first_digest(guard: str, parameters: str) -> str:
    """Return the first digest of a new guard's chain."""
    return sha256(f"thresholdout-guard-1 {_measured(guard)} {_measured(parameters)}".encode()).hexdigest()


def next_digest(digest: str, guard: str, entry: Entry) -> str:
    """Return an entry's digest."""
    # Adding zero turns -0.0 into 0.0 and integers into floats, as a database returns them.
    numbers = _numbers(
        entry.train + 0.0,
        entry.value + 0.0,
        entry.low + 0.0,
        entry.high + 0.0,
        entry.lower + 0.0,
        entry.upper + 0.0,
    ).hex()
    remaining = "-" if entry.remaining is None else entry.remaining
    together = "-" if entry.list is None else entry.list
    risk = "-" if entry.log_error_budget is None else _number(entry.log_error_budget + 0.0).hex()
    time = "-" if entry.time is None else _number(entry.time + 0.0).hex()
    text = (
        f"thresholdout-entry-1 {digest} {entry.query} {remaining} {together} {numbers} {risk} {time} "
        f"{_measured(guard)} "
        f"{_measured(entry.key)} {_measured(entry.name)} {_measured(entry.source)} "
        f"{_measured(entry.candidate)} {_measured(entry.client)}"
    )
    return sha256(text.encode()).hexdigest()


class Chain:
    """Entries with their digests, and the number and digest of the last one so far."""

    def __init__(self, guard: str, checkpoint: str, entries: Iterable[Entry]) -> None:
        self.asked = 0
        self.checkpoint = checkpoint
        self._guard = guard
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[Entry, str]]:
        for entry in self._entries:
            self.checkpoint = next_digest(self.checkpoint, self._guard, entry)
            self.asked = entry.query
            yield entry, self.checkpoint


def verify_chain(
    location: str,
    guard: str,
    extent: Extent,
    links: Callable[[str, int, int], list[tuple[Entry, str]]],
    checkpoint: str | None,
    progress: Callable[[int], object] | None,
) -> int:
    """Return the number of a guard's entries after comparing each with its digest; see `Ledger.verify`."""
    if checkpoint is not None:
        check_texts(checkpoint=checkpoint)
        if len(checkpoint) != 64 or not set(checkpoint) <= set("0123456789abcdef"):
            seen = f"{checkpoint[:80]!r}"
            raise InputError("checkpoint", seen, "64 hexadecimal digits, as `checkpoint` returns them")
    parameters, asked, noted, found = extent
    digest = first_digest(guard, parameters)
    met = checkpoint is None or checkpoint == digest
    of = f"of guard {guard[:12]!r}..."
    for start in range(1, asked + 1, _CHUNK):
        due = min(_CHUNK, asked + 1 - start)
        read = links(guard, start, due)
        for number, (entry, stored) in enumerate(read, start):
            digest = next_digest(digest, guard, entry)
            if entry.query != number:
                raise LedgerDamaged(location, number, f"Entry {number} {of} is missing.")
            if digest != stored:
                reason = f"Entry {number} {of}, or one before it, is not the one that was stored."
                raise LedgerDamaged(location, number, reason)
            met = met or digest == checkpoint
        if len(read) < due:
            missing = start + len(read)
            raise LedgerDamaged(location, missing, f"Entry {missing} {of} is missing.")
        if progress is not None:
            progress(start + due - 1)
    if found > asked:
        reason = f"Entry {asked + 1} {of} is beyond the last one that was stored, {asked}."
        raise LedgerDamaged(location, asked + 1, reason)
    if digest != noted:
        changed = (
            f"The last entry {of}, {asked}, is not the one that was"
            if asked
            else f"The parameters {of} are not those that were"
        )
        raise LedgerDamaged(location, asked or None, f"{changed} stored.")
    if not met:
        reason = f"None of the {asked} entries {of} has the checkpoint that was kept: the history was cut or replaced."
        raise LedgerDamaged(location, None, reason)
    return asked


def _measured(text: str) -> str:
    """Return a text with the number of its bytes before it."""
    return f"{len(text) if text.isascii() else len(text.encode())}:{text}"
