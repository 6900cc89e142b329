"""The contract of all ledgers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import time
from types import TracebackType
from typing import Final, NoReturn, Self, TypeAlias

from thresholdout.errors import BudgetExhausted, InputError, LedgerDamaged, LedgerError, SharingError
from thresholdout.ledger.digest_chain import first_digest, next_digest
from thresholdout.ledger.entry import (
    JSON,
    Asked,
    Entry,
    Refusals,
    check_entry,
    check_queries,
    check_query,
    check_since,
    check_texts,
    scoped_key,
)

__all__ = ["Compute", "ComputeAll", "Extent", "Ledger"]

Compute: TypeAlias = Callable[[str], tuple[str, Entry]]
"""Maps a guard's state to its next state and the entry that led there."""

ComputeAll: TypeAlias = Callable[[str, tuple[int, ...]], tuple[str, Sequence[Entry]]]
"""Maps a guard's state, and the positions of the queries that were not asked before, to its next state and the entries
that led there, one for each of these queries in order."""

Extent: TypeAlias = "tuple[str, int, str, int]"
"""A guard's parameters as text, the noted number and digest of its last entry, and the number of entries found."""

_CHUNK: Final = 5000
"""Entries of a history that are read at once, which bounds the memory."""


class Ledger(Refusals, ABC):
    """Persistent storage for guards: their parameters, their states and all their answers.

    Make a ledger with `open_ledger`, or pass the path of a file to a guard as ``ledger=``. The methods below are for
    those who write a ledger of their own, or read histories. Since a budget must not be spent twice, every ledger
    provides the following guarantees, which ``tests/thresholdout/ledger/contract.py`` checks:

    *Serial.* Queries to one guard happen one after another, from any number of threads (and, in a database, of
    processes and machines). Each starts from the state that the one before it left.

    *Atomic.* A query's new state and its entry are stored together or not at all; so are the entries of all queries
    that are asked together. If anything fails before the commit, the ledger is unchanged and remains usable.

    *Durable.* When `ask` returns, both are stored as durably as this kind of ledger can. Every answer that was returned
    is in the history. An entry may be stored whose answer never reaches the caller, for example if the process dies
    first.

    *Idempotent.* A key names one query of a client; keys of other clients have no effect. A known key returns the
    stored entry, adds no new noise and uses no budget, so a lost answer can be fetched again.

    *Isolated.* Threads that ask at the same time may share one transaction. A query that is refused or fails in its
    mechanism does not affect the others; a transaction that cannot be stored fails all its queries.

    *Immutable.* Parameters, documents and entries never change once stored; only the state does. The entries of a guard
    are numbered 1, 2, 3 and so on. A closed guard stays closed.

    *Tamper-evident.* Entries form a hash chain (`thresholdout.ledger.digest_chain`), and `verify` finds an entry that
    was changed, removed, inserted or moved. By itself it cannot detect a chain that was rewritten from the changed
    entry on, or a ledger that was replaced by an earlier copy. A `checkpoint` that is stored elsewhere and passed to
    `verify` detects these, too. The state is not in the chain, since a digest would reveal it. Restoring a ledger to
    an earlier state lets its budget be spent twice. Besides backups, this happens when a virtual machine resumes from
    a snapshot, a server is recovered to a point in time, or an asynchronous replica takes over without the last
    commits.

    *Confidential.* The state and the documents are secret. Only `state` and `document` return them; no message, log or
    ``repr`` shows them. A guard's name says nothing about its records. A ledger in a database finds a guard by a digest
    of its records that is keyed with a secret of the ledger.

    *One budget.* A ledger allows only one guard per data set, regardless of who creates it and of its name. A second
    guard would grant the same error budget again.

    *One place.* A ledger cannot be copied or pickled, since both copies would spend the same budget.

    States and documents are opaque text that a ledger never compares. The parts of a state about clients
    (`thresholdout.data.client_states`) are stored in a row for each client, and read and written only with this
    client's queries. These rows hold public numbers and are not encrypted. Text is any string without NUL that UTF-8
    can encode. Numbers are finite and come back exactly (except that -0.0 comes back as 0.0).

    Attributes
    ----------
    location : str
        The ledger's place, for messages.

    Examples
    --------
    >>> from thresholdout.ledger import open_ledger
    >>> ledger = open_ledger(None)
    >>> guard = ledger.create("guard", {"budget": 2}, "state 0")
    >>> ledger.guards(), ledger.verify(guard)
    (['guard'], 0)
    """

    @property
    def encrypted(self) -> bool:
        """Whether the stored secrets are encrypted."""
        return False

    @abstractmethod
    def create(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str] | None = None,
    ) -> str:
        """Store a new guard unless it exists.

        Parameters
        ----------
        guard : str
            Name of the new guard, which must say nothing about its data, such as a `fresh_key`.
        parameters : mapping of str to JSON values
            The guard's parameters. Not secret.
        state : str
            The state before the first query. Secret.
        documents : mapping of str to str, optional
            Texts that are stored with the guard. Secret. The document `CONTENT` identifies the guard's records, and
            each content has one guard only.

        Returns
        -------
        str
            The guard's name: the given one, or that of the guard for the same records.

        Raises
        ------
        LedgerMismatch
            If the guard exists with other parameters.
        LedgerUnusable
            If the store cannot be written; nothing was stored.

        Notes
        -----
        A guard that exists with the same parameters keeps its state and its documents, since the first state would be a
        fresh budget.
        """

    @abstractmethod
    def known(self, content: str) -> str | None:
        """Return the name of the guard that is stored for some records.

        Parameters
        ----------
        content : str
            Text that identifies the records, the guard's document `CONTENT`. Secret.

        Returns
        -------
        str or None
            Name of the guard, or None if the ledger has no guard for these records.
        """

    def ask(
        self,
        guard: str,
        key: str | None,
        train: float,
        name: str,
        compute: Compute,
        *,
        client: str = "",
        quota: int | None = None,
        since: float | None = None,
    ) -> tuple[Entry, bool]:
        """Answer a query once, and store the answer before it is returned.

        Parameters
        ----------
        guard : str
            The guard's name.
        key : str or None
            The query's identity; None makes a new one.
        train : float
            Mean on the training part; for a repeated key it must agree to nine digits.
        name : str
            Name of the query in the history.
        compute : callable
            Maps the present state, with the row of this client, to the next state and the entry to store, whose
            ``query`` is one more than that of the guard's last entry. It is not called for a repeated key, and called
            again only if its result was not stored and nobody has seen it. Its ``key``, ``train``, ``name`` and
            ``client`` are replaced by the given ones, its ``list`` by None, and its ``time`` by the clock's. It must
            not use the ledger, and may run in another thread that asks.
        client : str, default=""
            Who asks; each client has its own keys.
        quota : int, optional
            Maximum number of this client's entries, with this one, counted in the transaction that stores it. A
            repeated key does not count.
        since : float, optional
            Time from which on entries count for the quota, in POSIX seconds, such as the beginning of a week; all count
            by default. An entry without a time is older than any.

        Returns
        -------
        entry : Entry
            The stored entry.
        repeated : bool
            Whether it was stored before, so that this query charged nothing.

        Raises
        ------
        BudgetExhausted
            If the client's quota is used; nothing is computed or stored then.
        InputError
            If the key was used with another train value, or a value cannot be stored.
        LedgerMismatch
            If the ledger has no such guard.
        LedgerClosed
            If the guard was closed, whatever the key; `find` still returns its answers.
        LedgerUnusable
            If the store cannot be read or written; nothing was answered.
        Exception
            If `compute` raises it; nothing is stored then.
        """
        check_query(key, train, name, client, quota, since)

        def alone(state: str, new: tuple[int, ...]) -> tuple[str, tuple[Entry]]:
            after, entry = compute(state)
            return after, (entry,)

        asked = Asked(scoped_key(key, client), train, name, client, quota, since)
        return self._answered(guard, (asked,), alone, together=False)[0]

    def ask_all(self, guard: str, asked: Sequence[Asked], compute: ComputeAll) -> list[tuple[Entry, bool]]:
        """Answer a list of queries that were fixed together: all of them, or none.

        Parameters
        ----------
        guard : str
            The guard's name.
        asked : sequence of Asked
            The queries, at least one, each with a key of its own.
        compute : callable
            As for `ask`, for the queries that were not asked before: it gets their positions and returns an entry for
            each. Their ``list`` is the number of the first of them. It is not called if all keys are known.

        Returns
        -------
        list of tuple
            For each query the result of `ask`: the entry, and whether it was stored before.

        Raises
        ------
        InputError
            If there is no query, two have the same key, or one is refused as in `ask`.
        LedgerMismatch, LedgerClosed, LedgerUnusable, Exception
            As in `ask`; nothing is stored then.
        """
        asked = tuple(asked)
        check_queries(asked)
        asked = tuple(each._replace(key=scoped_key(each.key, each.client)) for each in asked)
        return self._answered(guard, asked, compute, together=True)

    @abstractmethod
    def _answered(
        self, guard: str, asked: tuple[Asked, ...], compute: ComputeAll, *, together: bool
    ) -> list[tuple[Entry, bool]]:
        """Answer checked queries in one transaction; those of a list are stored as one."""

    @abstractmethod
    def find(self, guard: str, key: str, client: str = "") -> Entry | None:
        """Return the stored answer to a query of a client.

        Parameters
        ----------
        guard : str
            Name of the guard.
        key : str
            Key of the query, as passed to `ask`.
        client : str, default ""
            Client that asked the query. Each client has its own keys.

        Returns
        -------
        Entry or None
            The stored entry, or None if the client asked no query with this key.
        """

    @abstractmethod
    def state(self, guard: str, client: str = "") -> str:
        """Return a guard's present state, with the row of one client. Secret: it reveals the noisy threshold."""

    @abstractmethod
    def clients(self, guard: str) -> dict[str, str]:
        """Return the rows of all clients in a guard's state, by `thresholdout.data.client_states.client_key`."""

    @abstractmethod
    def parameters(self, guard: str) -> dict[str, JSON]:
        """Return a guard's parameters."""

    @abstractmethod
    def entries(self, guard: str, start: int = 1, count: int | None = None, client: str | None = None) -> list[Entry]:
        """Return a guard's history, in the order of its queries.

        Parameters
        ----------
        guard : str
            The guard's name.
        start : int, default=1
            Number of the first entry.
        count : int, optional
            Maximum number of entries; None for all that follow. Read a long history in slices.
        client : str, optional
            Only this client's entries; None for all. The next slice starts after the last entry of this one.
        """

    @abstractmethod
    def guards(self) -> list[str]:
        """Return the guards' names, in the order of their creation."""

    @abstractmethod
    def identity(self) -> str:
        """Return the identity of this ledger under every address: 32 hexadecimal digits."""

    @abstractmethod
    def checkpoint(self, guard: str) -> str:
        """Return the digest of a guard's last entry, which represents the whole history.

        Keep it in another place and pass it to `verify` later. It contains no more information than the history.

        Parameters
        ----------
        guard : str
            Name of the guard.

        Returns
        -------
        str
            Digest of 64 hexadecimal digits.
        """

    def verify(self, guard: str, checkpoint: str | None = None, progress: Callable[[int], object] | None = None) -> int:
        """Verify that a guard's history is the one that was written.

        Parameters
        ----------
        guard : str
            The guard's name.
        checkpoint : str, optional
            A checkpoint that was kept in another place; it must be in the history, which may have continued since.
        progress : callable, optional
            Called with the number of verified entries, from time to time.

        Returns
        -------
        int
            The number of entries. Entries of queries that are asked meanwhile do not count.

        Raises
        ------
        InputError
            If the checkpoint is none.
        LedgerDamaged
            If an entry was changed, removed, inserted or moved, or the kept checkpoint is not in the history.
        LedgerMismatch
            If the ledger has no such guard.
        """
        if checkpoint is not None:
            check_texts(checkpoint=checkpoint)
            if len(checkpoint) != 64 or not set(checkpoint) <= set("0123456789abcdef"):
                raise InputError(
                    "checkpoint", f"{checkpoint[:80]!r}", "64 hexadecimal digits, as `checkpoint` returns them"
                )
        parameters, asked, noted, found = self._extent(guard)
        digest = first_digest(guard, parameters)
        met = checkpoint is None or checkpoint == digest
        for start in range(1, asked + 1, _CHUNK):
            due = min(_CHUNK, asked + 1 - start)
            links = self._links(guard, start, due)
            for number, (entry, stored) in enumerate(links, start):
                digest = next_digest(digest, guard, entry)
                if entry.query != number or digest != stored:
                    wrong = "it is missing" if entry.query != number else "it, or one before it, is not what was stored"
                    raise LedgerDamaged(self.location, number, f"guard {guard[:12]!r}..., entry {number}: {wrong}")
                met = met or digest == checkpoint
            if len(links) < due:
                missing = start + len(links)
                raise LedgerDamaged(self.location, missing, f"guard {guard[:12]!r}..., entry {missing}: it is missing")
            if progress is not None:
                progress(start + due - 1)
        if found > asked:
            reason = f"guard {guard[:12]!r}..., entry {asked + 1}: it is beyond the last, {asked}"
            raise LedgerDamaged(self.location, asked + 1, reason)
        if digest != noted:
            what = f"the last entry, {asked}, is not" if asked else "its parameters are not"
            raise LedgerDamaged(self.location, asked or None, f"guard {guard[:12]!r}...: {what} what was stored")
        if not met:
            raise LedgerDamaged(
                self.location,
                None,
                f"guard {guard[:12]!r}...: its {asked} entries do not lead to the checkpoint that was kept; "
                "the history was cut or replaced",
            )
        return asked

    def count(self, guard: str, client: str | None = None, since: float | None = None) -> int:
        """Return the number of entries of a guard, or of one of its clients.

        Parameters
        ----------
        guard : str
            Name of the guard.
        client : str, optional
            Client whose entries count. If None, the entries of all clients count.
        since : float, optional
            Time in POSIX seconds from which on a client's entries count. If None, all of them count.

        Returns
        -------
        int
            Number of entries.
        """
        if client is not None:
            check_since(since)
            return self._count_of(guard, client, since)
        if since is not None:
            raise InputError("since", repr(since), "None without client=")
        return self._extent(guard)[1]

    @abstractmethod
    def _count_of(self, guard: str, client: str, since: float | None) -> int:
        """Return the number of a client's entries since a time."""

    @abstractmethod
    def sources(self, guard: str, last: int) -> dict[str, int]:
        """Return the number of a guard's entries, up to a number, with each source.

        Parameters
        ----------
        guard : str
            The guard's name.
        last : int
            Number of the last entry that counts.
        """

    @abstractmethod
    def _extent(self, guard: str) -> Extent:
        """Return the values that `verify` compares, all at one moment."""

    @abstractmethod
    def _links(self, guard: str, start: int, count: int) -> list[tuple[Entry, str]]:
        """Return entries with their digests, from one number on."""

    @abstractmethod
    def close_guard(self, guard: str, why: str) -> None:
        """Close a guard permanently. Its history remains readable.

        Parameters
        ----------
        guard : str
            The guard's name.
        why : str
            Reason that later queries are refused with, such as the guard's new place. Not secret.

        Raises
        ------
        LedgerMismatch
            If there is no such guard.
        LedgerClosed
            If it was closed before, for another reason.
        LedgerUnusable
            If the store cannot be written; nothing was stored.
        """

    @abstractmethod
    def closed(self, guard: str) -> str | None:
        """Return the reason for which a guard was closed, or None if it is open."""

    @abstractmethod
    def restore(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str],
        entries: Iterable[Entry],
        closed: str | None = None,
    ) -> None:
        """Store a guard with its history from another ledger.

        Parameters
        ----------
        guard : str
            The guard's name. It must be new: histories are never joined.
        parameters, state, documents
            As in `create`, with the state after its last entry.
        entries : iterable of Entry
            Its history; entries are read one by one, and all or none are stored.
        closed : str, optional
            Reason for which it is closed. A history without its state must be closed.

        Raises
        ------
        LedgerMismatch
            If the guard exists, or another one for the same records.
        InputError
            If an entry cannot be stored, is out of order, or has another's key.
        LedgerUnusable
            If the store cannot be written; nothing was stored.

        Notes
        -----
        The other ledger must have closed the guard, or both spend the same budget.
        """

    @abstractmethod
    def put_document(self, guard: str, name: str, text: str) -> None:
        """Store a text with a guard.

        Parameters
        ----------
        guard : str
            The guard's name.
        name : str
            The document's name, such as ``"labels"``; any but `CONTENT`, which can only be stored at creation.
        text : str
            The text. Secret.

        Raises
        ------
        InputError
            If the name or the text cannot be stored.
        LedgerMismatch
            If there is no such guard, or it has a document of this name with another text.
        LedgerClosed
            If the guard was closed.
        LedgerUnusable
            If the store cannot be written; nothing was stored.
        """

    @abstractmethod
    def document(self, guard: str, name: str) -> str | None:
        """Return a guard's text with this name, or None. Secret."""

    @abstractmethod
    def documents(self, guard: str) -> list[str]:
        """Return the names of a guard's texts, in alphabetical order."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; every later use except another `close` raises `LedgerUnusable`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    def __reduce__(self) -> NoReturn:
        raise SharingError(
            f"ledger {self.location}: a ledger can't be copied or pickled, both copies would spend the same "
            "budget; open its file again instead"
        )

    @staticmethod
    def _check_quotas(asked: Iterable[Asked], count: Callable[[str, float | None], int]) -> None:
        """Refuse new queries beyond their clients' quotas, given a count of a client's entries since a time."""
        new: dict[str, int] = {}
        for query in asked:
            if query.quota is not None:
                new[query.client] = new.get(query.client, 0) + 1
                if count(query.client, query.since) + new[query.client] > query.quota:
                    raise BudgetExhausted("quota", query.quota, query.quota)

    def _settled(
        self, computed: Sequence[Entry], first: int, asked: Sequence[tuple[str, Asked]], together: bool
    ) -> list[Entry]:
        """Return new entries in their stored form, after their checks."""
        if len(computed) != len(asked):
            seen = f"the mechanism answered {len(computed)} of {len(asked)} queries"
            raise LedgerError(self.location, f"{seen}; nothing was stored")
        settled, now = [], time()
        for number, (entry, (key, query)) in enumerate(zip(computed, asked, strict=True), first):
            if entry.query != number:
                raise LedgerError(
                    self.location, f"the mechanism numbered query {number} as {entry.query}; nothing was stored"
                )
            stored = entry.settled(key, query, first if together else None, now)
            check_entry(stored)
            settled.append(stored)
        return settled
