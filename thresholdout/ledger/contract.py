"""The contract of all ledgers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias

from thresholdout.errors import InputError
from thresholdout.ledger.digest_chain import Extent, verify_chain
from thresholdout.ledger.entry import (
    JSON,
    Asked,
    Entry,
    Refusals,
    check_queries,
    check_query,
    check_since,
    scoped_key,
)

__all__ = ["Compute", "ComputeAll", "Ledger"]

Compute: TypeAlias = Callable[[str], tuple[str, Entry]]
"""Maps a guard's state to its next state and the entry that led there."""

ComputeAll: TypeAlias = Callable[[str, tuple[int, ...]], tuple[str, Sequence[Entry]]]
"""Maps a guard's state, and the positions of the queries that were not asked before, to its next state and the entries
that led there, one for each of these queries in order."""


class Ledger(Refusals, ABC):
    """Persistent storage for guards: their parameters, their states and all their answers.

    A guard (`Thresholdout`) answers queries about a holdout and keeps its remaining error budget, noise and answers in
    a ledger. Make a ledger with `open_ledger`, or pass the path of a file to a guard as ``ledger=``. Most users call
    `guards`, `entries`, `checkpoint`, `verify` and `close_guard` only; the other methods are for guards, and for those
    who write a ledger of their own. Since a budget must not be spent twice, every ledger provides the following
    guarantees, which ``tests/thresholdout/ledger/contract.py`` checks:

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
        File or address of the ledger, without its password, for messages. ``"memory"`` for a ledger in memory.

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
        """Whether the secrets in the ledger (states and documents) are encrypted."""
        return False

    @abstractmethod
    def create(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str] | None = None,
    ) -> str:
        """Store a new guard, or return the guard that already exists for the same records.

        An existing guard with the same parameters keeps its state and its documents, since the first state would be a
        fresh budget.

        Parameters
        ----------
        guard : str
            Name of the new guard. It must reveal nothing about the data; use a random name.
        parameters : mapping of str to JSON values
            Parameters of the guard. They are not secret.
        state : str
            State of the guard before the first query. It is secret.
        documents : mapping of str to str, optional
            Secret texts to store with the guard, by name. The document `CONTENT` identifies the guard's records, and
            each content has one guard only. If None, no texts are stored.

        Returns
        -------
        str
            Name of the guard: `guard`, or the name of the existing guard for the same records.

        Raises
        ------
        LedgerMismatch
            If the guard exists with other parameters.
        LedgerUnusable
            If the store cannot be written. Nothing is stored then.
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
        """Answer one query, and store the answer before it is returned.

        Guards call this method. The answer is computed from the guard's present state by `compute`, in one transaction
        with the new state.

        Parameters
        ----------
        guard : str
            Name of the guard.
        key : str or None
            Identity of the query among those of this client. A key that was used before returns the stored answer. If
            None, the query gets a new key.
        train : float
            Mean on the training part. For a repeated key it must agree with the stored one to nine digits.
        name : str
            Name of the query in the history.
        compute : callable
            Maps the present state, with the row of this client, to the next state and the entry to store. The
            ``query`` of the entry is one more than that of the guard's last entry. It is not called for a repeated key,
            and called again only if its result was not stored and nobody has seen it. Its ``key``, ``train``, ``name``
            and ``client`` are replaced by the given ones, its ``list`` by None, and its ``time`` by the time of the
            clock. It must not use the ledger, and may run in another thread that asks.
        client : str, default ""
            Client that asks the query. Each client has its own keys.
        quota : int, optional
            Maximum number of entries of this client, including this one, counted in the transaction that stores it. A
            repeated key does not count. If None, there is no quota.
        since : float, optional
            Time in POSIX seconds from which on entries count for the quota, such as the beginning of a week. An entry
            without a time is older than any. If None, all entries count.

        Returns
        -------
        entry : Entry
            The stored entry.
        repeated : bool
            Whether the entry was stored before, so that this query cost nothing.

        Raises
        ------
        BudgetExhausted
            If the client has used its quota. Nothing is computed or stored then.
        InputError
            If the key was used with another train value, or a value cannot be stored.
        LedgerMismatch
            If the ledger has no such guard.
        LedgerClosed
            If the guard was closed, also for a known key. `find` still returns its answers.
        LedgerUnusable
            If the store cannot be read or written. Nothing was answered then.
        Exception
            If `compute` raises it. Nothing is stored then.
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
            Name of the guard.
        asked : sequence of Asked
            The queries, at least one, each with a key of its own.
        compute : callable
            Maps the present state, and the positions of the queries that were not asked before, to the next state and
            an entry for each of these queries. The ``list`` of these entries is the number of the first of them. It is
            not called if all keys are known. Otherwise the rules of `ask` hold.

        Returns
        -------
        list of tuple
            For each query a pair as `ask` returns it: the entry, and whether it was stored before.

        Raises
        ------
        InputError
            If there is no query, two queries have the same key, or `ask` would refuse one of them.
        LedgerMismatch, LedgerClosed, LedgerUnusable, Exception
            If the guard is missing or closed, the store cannot be used, or `compute` fails. Nothing is stored then.
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
        """Return the present state of a guard, with the row of one client.

        Parameters
        ----------
        guard : str
            Name of the guard.
        client : str, default ""
            Client whose row is included. If empty, no row is.

        Returns
        -------
        str
            The state, in the format of the guard's mechanism. It is secret, since it reveals the noisy threshold.
        """

    @abstractmethod
    def clients(self, guard: str) -> dict[str, str]:
        """Return the rows of all clients in the state of a guard.

        Parameters
        ----------
        guard : str
            Name of the guard.

        Returns
        -------
        dict of str to str
            Row of each client, by `thresholdout.data.client_states.client_key`, a digest of the client's name.
        """

    @abstractmethod
    def parameters(self, guard: str) -> dict[str, JSON]:
        """Return the parameters that a guard was created with.

        Parameters
        ----------
        guard : str
            Name of the guard.

        Returns
        -------
        dict of str to JSON values
            The parameters.
        """

    @abstractmethod
    def entries(self, guard: str, start: int = 1, count: int | None = None, client: str | None = None) -> list[Entry]:
        """Return the history of a guard, in the order of its queries.

        Parameters
        ----------
        guard : str
            Name of the guard.
        start : int, default 1
            Number of the first entry.
        count : int, optional
            Maximum number of entries. If None, all that follow are returned. Read a long history in slices.
        client : str, optional
            Client whose entries are returned. The next slice starts after the last entry of this one. If None, the
            entries of all clients are returned.

        Returns
        -------
        list of Entry
            The entries, with the attributes `query` (the number), `name`, `value`, `low`, `high` and `client`.
        """

    @abstractmethod
    def guards(self) -> list[str]:
        """Return a list of the names of all guards in the ledger, in the order of their creation."""

    @abstractmethod
    def identity(self) -> str:
        """Return the identity of this ledger, 32 hexadecimal digits, which is the same under every address of it."""

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
        """Verify that the history of a guard is the one that was written.

        Parameters
        ----------
        guard : str
            Name of the guard.
        checkpoint : str, optional
            A `checkpoint` of this guard that was kept in another place. It must occur in the history, which may have
            continued since. If None, the history is only known to be consistent.
        progress : callable, optional
            Function that is called from time to time with the number of entries verified so far.

        Returns
        -------
        int
            Number of verified entries. Entries of queries that are asked meanwhile do not count.

        Raises
        ------
        InputError
            If `checkpoint` has not the form of a checkpoint.
        LedgerDamaged
            If an entry was changed, removed, inserted or moved, or the kept checkpoint is not in the history.
        LedgerMismatch
            If the ledger has no such guard.
        """
        return verify_chain(self.location, guard, self._extent(guard), self._links, checkpoint, progress)

    def count(self, guard: str, client: str | None = None, since: float | None = None) -> int:
        """Return the number of entries of a guard, or of one of its clients.

        Parameters
        ----------
        guard : str
            Name of the guard.
        client : str, optional
            Name of the client whose entries are counted. If None, the entries of all clients are counted.
        since : float, optional
            POSIX timestamp in seconds; only entries made at or after this time are counted. Pass it together with
            `client` only. If None, entries of any time are counted.

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
        """Count the entries of a guard by their source, from the first entry to a given one.

        Parameters
        ----------
        guard : str
            Name of the guard.
        last : int
            Number of the last entry that counts.

        Returns
        -------
        dict of str to int
            Number of entries with each source, such as "train" and "holdout" for answers that come from these parts.
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
            Name of the guard.
        why : str
            Reason that later queries are refused with, such as the guard's new place. It is not secret.

        Raises
        ------
        LedgerMismatch
            If the ledger has no such guard.
        LedgerClosed
            If the guard was closed before, for another reason.
        LedgerUnusable
            If the store cannot be written. Nothing is stored then.
        """

    @abstractmethod
    def closed(self, guard: str) -> str | None:
        """Return the reason for which a guard was closed.

        Parameters
        ----------
        guard : str
            Name of the guard.

        Returns
        -------
        str or None
            The reason, or None if the guard is open.
        """

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
        """Store a guard with its history from another ledger, for example from a backup.

        The other ledger must have closed the guard, or both spend the same budget. `move` does both.

        Parameters
        ----------
        guard : str
            Name of the guard. It must be new here: two histories are never joined.
        parameters : mapping of str to JSON values
            Parameters of the guard.
        state : str
            State of the guard after its last entry.
        documents : mapping of str to str
            Secret texts of the guard, by name.
        entries : iterable of Entry
            History of the guard. The entries are read one by one, and all or none are stored.
        closed : str, optional
            Reason for which the guard is closed. A history without its state must be closed. If None, the guard is
            open.

        Raises
        ------
        LedgerMismatch
            If this ledger has the guard already, or another one for the same records.
        InputError
            If an entry cannot be stored, is out of order, or has the key of another one.
        LedgerUnusable
            If the store cannot be written. Nothing is stored then.
        """

    @abstractmethod
    def put_document(self, guard: str, name: str, text: str) -> None:
        """Store a secret text with a guard.

        Parameters
        ----------
        guard : str
            Name of the guard.
        name : str
            Name of the document, such as ``"labels"``. The document `CONTENT` can only be stored by `create`.
        text : str
            The text. It is secret, and never changes once stored.

        Raises
        ------
        InputError
            If the name or the text cannot be stored.
        LedgerMismatch
            If the ledger has no such guard, or the guard has a document of this name with another text.
        LedgerClosed
            If the guard was closed.
        LedgerUnusable
            If the store cannot be written. Nothing is stored then.
        """

    @abstractmethod
    def document(self, guard: str, name: str) -> str | None:
        """Return a document that is stored with a guard.

        Parameters
        ----------
        guard : str
            Name of the guard.
        name : str
            Name of the document.

        Returns
        -------
        str or None
            The text, which is secret, or None if the guard has no document of this name.
        """

    @abstractmethod
    def documents(self, guard: str) -> list[str]:
        """Return a list of the names of the documents that are stored with a guard, in alphabetical order."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources. Every later use except another `close` raises `LedgerUnusable`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"
