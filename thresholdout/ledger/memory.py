"""A ledger in the memory of its process."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from thresholdout.data.client_states import client_key, join_state, split_state
from thresholdout.errors import LedgerUnusable, SharingError
from thresholdout.ledger.contract import ComputeAll, Ledger
from thresholdout.ledger.digest_chain import Extent, first_digest, next_digest
from thresholdout.ledger.entry import (
    CONTENT,
    JSON,
    Asked,
    Entry,
    check_creation,
    check_document,
    check_history,
    check_repeat,
    check_slice,
    check_texts,
    fresh_key,
    is_since,
    parameters_text,
    scoped_key,
)

__all__ = ["MemoryLedger"]


@dataclass(slots=True, repr=False)
class _Guard:
    """The stored parts of one guard."""

    parameters: str
    state: str
    documents: dict[str, str]
    entries: dict[str, Entry] = field(default_factory=dict)
    """By key, in the order of the queries."""
    digests: list[str] = field(default_factory=list)
    """Digests that were computed so far; the first one precedes all entries."""
    closed: str | None = None
    clients: dict[str, str] = field(default_factory=dict)

    def with_clients(self, clients: Iterable[str]) -> str:
        """Return the state with the rows of some clients."""
        keys = {client_key(client) for client in clients if client}
        return join_state(self.state, {key: self.clients[key] for key in keys if key in self.clients})


def _new(guard: str, parameters: Mapping[str, JSON], state: str, documents: Mapping[str, str]) -> _Guard:
    """Return a new guard, after the checks of its creation."""
    check_creation(guard, state, documents.items())
    main, clients = split_state(state)
    return _Guard(parameters_text(parameters), main, dict(documents), clients=clients)


def _entries_of(kept: _Guard, client: str, since: float | None) -> int:
    """Return the number of a client's entries since a time."""
    return sum(entry.client == client and is_since(entry, since) for entry in kept.entries.values())


class MemoryLedger(Ledger):
    """Ledger in memory, which is fast and ends with its process.

    A ledger stores the state and the answers of guards (`Thresholdout`). Use this one for simulations and tests, where
    a lost error budget does no harm; a guard without ``ledger=`` has one of its own. For a real holdout, use
    `SQLLedger`. A memory ledger is safe to use from several threads. A forked process cannot use it, because it would
    spend the same budget a second time. The methods are those of `Ledger`.

    Notes
    -----
    Only this process can change its histories, so digests are computed on demand. Simulations make many guards: SQLite
    in memory would take 2 ms for each ledger, and twice the time of a query.

    Examples
    --------
    >>> ledger = MemoryLedger()
    >>> ledger.create("guard", {"threshold": 0.04}, "state 0")
    'guard'
    >>> def compute(state):
    ...     return "state 1", Entry(1, "", "", 0.0, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0)
    >>> entry, repeated = ledger.ask("guard", "first", 0.8, "accuracy", compute)
    >>> entry.value, repeated
    (0.79, False)
    >>> ledger.ask("guard", "first", 0.8, "accuracy", compute) == (entry, True)
    True
    """

    def __init__(self) -> None:
        self.location = "memory"
        self._identity = fresh_key()
        self._guards: dict[str, _Guard] = {}
        self._known: dict[str, str] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._asking = False
        self._closed = False

    def create(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str] | None = None,
    ) -> str:
        kept = _new(guard, parameters, state, documents or {})
        self._check_usable()
        with self._lock:
            guard = self._of_content(kept) or guard
            stored = self._guards.get(guard)
            if stored is None:
                self._enter(guard, kept)
            else:
                self._check_parameters(guard, self._parsed(guard, stored.parameters), parameters)
        return guard

    def known(self, content: str) -> str | None:
        check_texts(content=content)
        self._check_usable()
        return self._known.get(content)

    def _of_content(self, kept: _Guard) -> str | None:
        """Return the name of the guard for the same records."""
        content = kept.documents.get(CONTENT)
        return None if content is None else self._known.get(content)

    def _enter(self, guard: str, kept: _Guard) -> None:
        """Store a new guard."""
        self._guards[guard] = kept
        content = kept.documents.get(CONTENT)
        if content is not None:
            self._known[content] = guard

    def _answered(
        self, guard: str, asked: tuple[Asked, ...], compute: ComputeAll, *, together: bool
    ) -> list[tuple[Entry, bool]]:
        self._check_usable()
        with self._lock:
            if self._asking:
                raise self._reentered()
            kept = self._find(guard)
            self._check_closed(kept.closed)
            stored = [None if query.key is None else kept.entries.get(query.key) for query in asked]
            for query, before in zip(asked, stored, strict=True):
                if before is not None:
                    check_repeat(before, query.train)
            new = tuple(place for place, before in enumerate(stored) if before is None)
            found: dict[int, Entry] = {}
            if new:
                self._check_quotas((asked[place] for place in new), partial(_entries_of, kept))
                self._asking = True
                try:
                    state, computed = compute(kept.with_clients(asked[place].client for place in new), new)
                finally:
                    self._asking = False
                check_texts(state=state)
                keyed = [(asked[place].key or fresh_key(), asked[place]) for place in new]
                entries = self._settled(computed, len(kept.entries) + 1, keyed, together)
                found = dict(zip(new, entries, strict=True))
                added = {entry.key: entry for entry in entries}
                main, clients = split_state(state)
                # No calls between these stores, so no signal handler (KeyboardInterrupt) can run between them.
                kept.state = main
                kept.clients |= clients
                kept.entries |= added
            return [(before or found[place], before is not None) for place, before in enumerate(stored)]

    def find(self, guard: str, key: str, client: str = "") -> Entry | None:
        check_texts(key=key, client=client)
        return self._find(guard).entries.get(scoped_key(key, client) or key)

    def state(self, guard: str, client: str = "") -> str:
        return self._find(guard).with_clients([client])

    def clients(self, guard: str) -> dict[str, str]:
        return dict(self._find(guard).clients)

    def parameters(self, guard: str) -> dict[str, JSON]:
        return self._parsed(guard, self._find(guard).parameters)

    def entries(self, guard: str, start: int = 1, count: int | None = None, client: str | None = None) -> list[Entry]:
        last = check_slice(start, count)
        kept = self._find(guard)
        with self._lock:
            if client is None:
                return list(islice(kept.entries.values(), start - 1, last))
            wanted = (entry for entry in islice(kept.entries.values(), start - 1, None) if entry.client == client)
            return list(islice(wanted, count))

    def _count_of(self, guard: str, client: str, since: float | None) -> int:
        kept = self._find(guard)
        with self._lock:
            return _entries_of(kept, client, since)

    def guards(self) -> list[str]:
        self._check_usable()
        return list(self._guards)

    def identity(self) -> str:
        self._check_usable()
        return self._identity

    def checkpoint(self, guard: str) -> str:
        kept = self._find(guard)
        with self._lock:
            return self._chain(guard, kept)[-1]

    def sources(self, guard: str, last: int) -> dict[str, int]:
        kept = self._find(guard)
        with self._lock:
            return dict(Counter(entry.source for entry in islice(kept.entries.values(), last)))

    def _extent(self, guard: str) -> Extent:
        kept = self._find(guard)
        with self._lock:
            return kept.parameters, len(kept.entries), self._chain(guard, kept)[-1], len(kept.entries)

    def _links(self, guard: str, start: int, count: int) -> list[tuple[Entry, str]]:
        digests = self._find(guard).digests[start : start + count]
        return list(zip(self.entries(guard, start, count), digests, strict=False))

    @staticmethod
    def _chain(guard: str, kept: _Guard) -> list[str]:
        """Return a guard's digests up to the last entry."""
        digests = kept.digests or [first_digest(guard, kept.parameters)]
        for entry in islice(kept.entries.values(), len(digests) - 1, None):
            digests.append(next_digest(digests[-1], guard, entry))
        kept.digests = digests
        return digests

    def close_guard(self, guard: str, why: str) -> None:
        check_texts(why=why)
        kept = self._find(guard)
        with self._lock:
            if kept.closed != why:
                self._check_closed(kept.closed)
                kept.closed = why

    def closed(self, guard: str) -> str | None:
        return self._find(guard).closed

    def restore(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str],
        entries: Iterable[Entry],
        closed: str | None = None,
    ) -> None:
        check_texts(closed=closed or "")
        kept = _new(guard, parameters, state, documents)
        kept.closed = closed
        for entry in check_history(entries):
            kept.entries[entry.key] = entry
        self._check_usable()
        with self._lock:
            if guard in self._guards:
                raise self._there_already(guard)
            known = self._of_content(kept)
            if known is not None:
                raise self._same_records(known)
            self._enter(guard, kept)

    def put_document(self, guard: str, name: str, text: str) -> None:
        check_document(name, text)
        kept = self._find(guard)
        with self._lock:
            self._check_closed(kept.closed)
            self._check_document(name, kept.documents.setdefault(name, text), text)

    def document(self, guard: str, name: str) -> str | None:
        return self._find(guard).documents.get(name)

    def documents(self, guard: str) -> list[str]:
        return sorted(self._find(guard).documents)

    def close(self) -> None:
        """Delete all guards with their states and histories; every later use raises `LedgerUnusable`."""
        self._closed = True
        self._guards = {}
        self._known = {}

    def _check_usable(self) -> None:
        if self._closed:
            raise LedgerUnusable(self.location, "This ledger object was closed, and its guards are gone.")
        if os.getpid() != self._process:
            raise SharingError(
                "A ledger in memory belongs to the process that made it: another one would spend the same budget "
                "again. To use a guard from several processes, store it in a file (ledger='guard.db'), or pass the "
                "other process the result of thresholdout.guard.sharing.share(guard), called before the fork."
            )

    def _find(self, guard: str) -> _Guard:
        self._check_usable()
        try:
            return self._guards[guard]
        except KeyError:
            raise self._unknown(guard) from None
