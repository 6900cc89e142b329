"""The contract that every ledger keeps."""

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
"""From a guard's state to its next state and the entry that led there."""

ComputeAll: TypeAlias = Callable[[str, tuple[int, ...]], tuple[str, Sequence[Entry]]]
"""From a guard's state, and the positions of the queries that were not asked before, to the guard's next state and
the entries that led there, one for each of these queries in their order."""

Extent: TypeAlias = "tuple[str, int, str, int]"
"""A guard's parameters as text, the number and digest of its last entry as noted, and its entries as found."""

_CHUNK: Final = 5000
"""Entries that are read at once where a whole history is gone through."""


class Ledger(Refusals, ABC):
    """The store of guards: their parameters, their state and every answer they gave.

    A guard's budget is only worth something if it can't be spent twice. A ledger keeps these promises, and
    ``tests/thresholdout/ledger/contract.py`` checks them for every kind of ledger:

    *One at a time.* Queries to one guard happen one after another, whatever the number of threads (and,
    for a ledger in a database, of processes and machines): each starts from the state that the one before it left.

    *All or nothing.* A query's new state and its entry are stored together, or neither is; and so are the
    entries of all queries that are asked together. Whatever goes wrong before that, in the mechanism or in the
    store, leaves the ledger as it was, and still usable.

    *Stored first.* When `ask` returns, both are stored as durably as this kind of ledger can. An answer that
    left is always in the history; the converse may fail when the process dies, or the one who asked is
    interrupted, before the answer is read.

    *Asked once.* A key names one query of a client: what others call theirs plays no part. Asking with a known key
    returns the stored entry, draws no noise and charges nothing; this is how an answer is fetched that got lost on its
    way.

    *Each for itself.* Threads that ask at the same time may share one transaction. A query that is refused
    or fails in its mechanism harms no other; a transaction that can't be stored fails all queries in it.

    *Nothing changes.* Parameters, documents and entries never change once stored; only the state does. The
    entries of a guard are numbered 1, 2, 3 and so on. A guard that was closed stays so.

    *Changes show.* Entries are chained by digests (`thresholdout.ledger.digest_chain`), and `verify` goes through the
    chain: an entry that was changed, removed, inserted or moved is found. What it can't see by itself is a chain that
    was written anew from the changed entry on, or a whole ledger that was put back to an earlier copy. Whoever keeps a
    `checkpoint` in another place, and gives it to `verify`, sees these too: the kept checkpoint then is not in the
    chain. The state is not in the chain, since a digest of it would tell it. A ledger that is put back spends its
    budget twice, and there are more ways to that than a backup: a virtual machine resumed from a snapshot, a server
    that was recovered to a point in time, and an asynchronous replica that takes over without the last commits.

    *Nothing tells.* The state and the documents are secret. They come out of `state` and `document` and
    nowhere else: no message, log or ``repr`` shows them. What a guard is called says nothing about its records;
    a ledger in a database finds a guard by a digest of its records that is made with a secret of the ledger.

    *One budget.* A ledger has one guard for the same records, whoever makes it and under whichever name: a second
    guard would hand out the error budget again.

    *One place.* A ledger can't be copied or pickled, since both copies would spend the same budget.

    A ledger takes a state and a document as opaque text, and compares them with nothing. What a state has of clients
    (`thresholdout.data.client_states`) is kept in a row for each, and read and written with this client's queries
    only; these rows hold public numbers, and are stored as they are. Text is any string
    without NUL that UTF-8 can encode; numbers are finite, and come back exactly (though -0.0 comes back as 0.0).

    Attributes
    ----------
    location : str
        Where the guards are kept, for messages.

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
        """Whether the secrets are encrypted where they are stored."""
        return False

    @abstractmethod
    def create(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str] | None = None,
    ) -> str:
        """Store a new guard, unless it is there already.

        Parameters
        ----------
        guard : str
            What a new guard is called: a name that says nothing about its data, such as `fresh_key` makes.
        parameters : mapping of str to JSON values
            What the guard was made with. Not secret.
        state : str
            The state before the first query. Secret.
        documents : mapping of str to str, optional
            Texts to keep with the guard, stored together with it. Secret. The one that is called `CONTENT` says which
            records the guard is for, and there is one guard only for each.

        Returns
        -------
        str
            What the guard is called: the name given, or that of the guard for the same records.

        Raises
        ------
        LedgerMismatch
            The guard is there with other parameters.
        LedgerUnusable
            The store can't be written; nothing was stored.

        Notes
        -----
        For a guard that is there with the same parameters this does nothing: its state and its documents stay
        what they are, since the first state would be a fresh budget.
        """

    @abstractmethod
    def known(self, content: str) -> str | None:
        """Return what the guard for some records is called, or None when there is none.

        Parameters
        ----------
        content : str
            The text of the document `CONTENT`. Secret.
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
        """Answer a query once, and store the answer before it leaves.

        Parameters
        ----------
        guard : str
            The guard's identity.
        key : str or None
            The query's identity; None makes a new one.
        train : float
            Mean on the training part; must be the same, to nine digits, when a key is repeated.
        name : str
            What is asked, for the history.
        compute : callable
            Maps the present state, with the row of this client, to the next state and the entry to store, whose
            ``query`` is one more than that of the guard's last entry. Not called for a repeated key; called again only
            when its result was not stored, and nobody has seen it. Its ``key``, ``train``, ``name`` and ``client`` are
            replaced by the ones given here, its ``list`` by None, and its ``time`` by the clock's. It must not use the
            ledger, and may run in another thread that asks.
        client : str, default ""
            Who asks; keys are this client's own.
        quota : int, optional
            How many entries this client may have, with this one; counted in the transaction that stores it. A repeated
            key is no new one.
        since : float, optional
            From which time on entries count for the quota, in POSIX seconds, such as the beginning of a week; all of
            them by default. An entry without a time is older than any.

        Returns
        -------
        entry : Entry
            The entry as stored.
        repeated : bool
            Whether it was stored before, and this query charged nothing.

        Raises
        ------
        BudgetExhausted
            The client's quota is used; nothing is computed or stored then.
        InputError
            The key was used with another train value, or a value can't be stored.
        LedgerMismatch
            The ledger has no such guard.
        LedgerClosed
            The guard was closed, whatever the key; `find` still gives its answers.
        LedgerUnusable
            The store can't be read or written; nothing was answered.
        Exception
            Whatever `compute` raises; nothing is stored then.
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
            The guard's identity.
        asked : sequence of Asked
            The queries, at least one, each with a key of its own.
        compute : callable
            As for `ask`, for those of the queries that were not asked before: it is given their positions, and
            returns an entry for each. The ``list`` of all these is the number of the first of them. Not called when
            all keys are known.

        Returns
        -------
        list of tuple
            For each query what `ask` returns for one: the entry, and whether it was stored before.

        Raises
        ------
        InputError
            There is no query, two have the same key, or one is refused as in `ask`.
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
        """Answer queries that were checked, in one transaction; those of a list are stored as one."""

    @abstractmethod
    def find(self, guard: str, key: str, client: str = "") -> Entry | None:
        """Return the stored answer to a client's query of this key, or None when it was not asked."""

    @abstractmethod
    def state(self, guard: str, client: str = "") -> str:
        """Return a guard's present state, with the row of one client. Secret: it tells where the noisy threshold is."""

    @abstractmethod
    def clients(self, guard: str) -> dict[str, str]:
        """Return the rows of all clients in a guard's state, by `thresholdout.data.client_states.client_key`."""

    @abstractmethod
    def parameters(self, guard: str) -> dict[str, JSON]:
        """Return what a guard was made with."""

    @abstractmethod
    def entries(self, guard: str, start: int = 1, count: int | None = None, client: str | None = None) -> list[Entry]:
        """Return a guard's history, in the order of its queries.

        Parameters
        ----------
        guard : str
            The guard's identity.
        start : int, default 1
            Number of the first entry.
        count : int, optional
            How many, at most; None for all that follow. A long history is best read in slices.
        client : str, optional
            Whose entries; None for everybody's. The next slice starts after the last entry of this one.
        """

    @abstractmethod
    def guards(self) -> list[str]:
        """Return the guards' identities, in the order of their creation."""

    @abstractmethod
    def identity(self) -> str:
        """Return what tells this ledger from all others, under whatever name it is opened: 32 hexadecimal digits."""

    @abstractmethod
    def checkpoint(self, guard: str) -> str:
        """Return the digest of a guard's last entry, to be kept in another place and given to `verify`.

        It tells nothing that the history doesn't, and stands for all of it: 64 hexadecimal digits.
        """

    def verify(self, guard: str, checkpoint: str | None = None, progress: Callable[[int], object] | None = None) -> int:
        """Check that a guard's history is the one that was written.

        Parameters
        ----------
        guard : str
            The guard's identity.
        checkpoint : str, optional
            A checkpoint that was kept in another place; the history must lead to it, and may have gone on since.
        progress : callable, optional
            Is told the number of entries checked, from time to time.

        Returns
        -------
        int
            The number of entries. Queries may be asked meanwhile; their entries are not among these.

        Raises
        ------
        InputError
            The checkpoint is not one.
        LedgerDamaged
            An entry was changed, removed, inserted or moved, or the kept checkpoint is not in the history.
        LedgerMismatch
            The ledger has no such guard.
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
        """Return the number of a guard's entries, or of those of a client.

        Parameters
        ----------
        guard : str
            The guard's identity.
        client : str, optional
            Whose entries; None for everybody's.
        since : float, optional
            From which time on a client's entries count, in POSIX seconds; None for all.
        """
        if client is not None:
            check_since(since)
            return self._count_of(guard, client, since)
        if since is not None:
            raise InputError("since", f"{since!r} without a client", "whose entries are counted from a time on")
        return self._extent(guard)[1]

    @abstractmethod
    def _count_of(self, guard: str, client: str, since: float | None) -> int:
        """Return the number of a client's entries, from a time on."""

    @abstractmethod
    def sources(self, guard: str, last: int) -> dict[str, int]:
        """Return how many of a guard's entries, up to a number, have each source.

        Parameters
        ----------
        guard : str
            The guard's identity.
        last : int
            Number of the last entry that counts.
        """

    @abstractmethod
    def _extent(self, guard: str) -> Extent:
        """Return what `verify` compares with, all at one moment."""

    @abstractmethod
    def _links(self, guard: str, start: int, count: int) -> list[tuple[Entry, str]]:
        """Return entries with their digests, from one number on."""

    @abstractmethod
    def close_guard(self, guard: str, why: str) -> None:
        """Let a guard answer no more, durably; its history stays readable.

        Parameters
        ----------
        guard : str
            The guard's identity.
        why : str
            What whoever asks is told, such as where the guard went. Not secret.

        Raises
        ------
        LedgerMismatch
            There is no such guard.
        LedgerClosed
            It was closed before, for another reason.
        LedgerUnusable
            The store can't be written; nothing was stored.
        """

    @abstractmethod
    def closed(self, guard: str) -> str | None:
        """Return why a guard was closed, or None while it answers."""

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
        """Store a guard with its history, as it was in another ledger.

        Parameters
        ----------
        guard : str
            The guard's identity. It must be new: no history is ever joined to another.
        parameters, state, documents
            As in `create`; the state that its last entry led to.
        entries : iterable of Entry
            Its history; read one by one, all or nothing is stored.
        closed : str, optional
            Why it answers no more; a history without its state can only be read.

        Raises
        ------
        LedgerMismatch
            The guard is there already, or another one for the same records.
        InputError
            An entry can't be stored, is not in its turn, or has another's key.
        LedgerUnusable
            The store can't be written; nothing was stored.

        Notes
        -----
        The other ledger must have closed the guard, or both spend the same budget.
        """

    @abstractmethod
    def put_document(self, guard: str, name: str, text: str) -> None:
        """Keep a text with a guard.

        Parameters
        ----------
        guard : str
            The guard's identity.
        name : str
            The document's name, such as ``"labels"``; any but `CONTENT`, which a guard has from the start.
        text : str
            The text. Secret.

        Raises
        ------
        InputError
            The name or the text can't be stored.
        LedgerMismatch
            There is no such guard, or it has a document of this name with another text.
        LedgerClosed
            The guard was closed.
        LedgerUnusable
            The store can't be written; nothing was stored.
        """

    @abstractmethod
    def document(self, guard: str, name: str) -> str | None:
        """Return a text kept with a guard, or None when there is none of this name. Secret."""

    @abstractmethod
    def documents(self, guard: str) -> list[str]:
        """Return the names of the texts kept with a guard, in alphabetical order."""

    @abstractmethod
    def close(self) -> None:
        """Release what the ledger holds; every later use but another `close` raises `LedgerUnusable`."""

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
        """Refuse new queries beyond the quota of who asks them, given how many entries a client has since a time."""
        new: dict[str, int] = {}
        for query in asked:
            if query.quota is not None:
                new[query.client] = new.get(query.client, 0) + 1
                if count(query.client, query.since) + new[query.client] > query.quota:
                    raise BudgetExhausted("quota", query.quota, query.quota)

    def _settled(
        self, computed: Sequence[Entry], first: int, asked: Sequence[tuple[str, Asked]], together: bool
    ) -> list[Entry]:
        """Return new entries as they are stored, after checking that they can be."""
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
