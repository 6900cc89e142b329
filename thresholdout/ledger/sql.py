"""Ledgers in databases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from thresholdout.data.client_states import client_key, join_state, split_state
from thresholdout.ledger.address import connect
from thresholdout.ledger.cipher import Key
from thresholdout.ledger.contract import ComputeAll, Ledger
from thresholdout.ledger.database import Cursor
from thresholdout.ledger.digest_chain import Chain, Extent, first_digest
from thresholdout.ledger.encryption import SECRETS, check_encryption, keyed_digest, open_encryption, secret_of
from thresholdout.ledger.entry import (
    CONTENT,
    JSON,
    LARGEST_COUNT,
    Asked,
    Entry,
    check_creation,
    check_document,
    check_history,
    check_key,
    check_repeat,
    check_slice,
    check_texts,
    fresh_key,
    is_since,
    parameters_text,
    scoped_key,
)
from thresholdout.ledger.group_commit import GroupCommit

__all__ = ["SQLLedger"]

_GuardRow: TypeAlias = "tuple[int, str, str, int, str, str | None]"
_FIELDS: Final = attrgetter(*Entry.__slots__)


class _Query:
    """One call of `SQLLedger.ask` or `ask_all`, with its result."""

    __slots__ = ("answers", "asked", "compute", "computing", "error", "guard", "keys", "made", "together", "tried")

    def __init__(self, guard: str, asked: tuple[Asked, ...], compute: ComputeAll, together: bool) -> None:
        self.guard = guard
        self.asked = asked
        self.compute = compute
        self.together = together
        self.keys = [fresh_key() if each.key is None else each.key for each in asked]
        self.tried = False
        """Whether an earlier transaction had it, which may or may not have been stored."""
        self.made: dict[str, Entry] = {}
        """Its own entries in such a transaction."""
        self.computing = False
        """Whether the mechanism is running, so that all its exceptions belong to the query."""
        self.answers: list[tuple[Entry, bool]] = []
        self.error: BaseException | None = None


class _Row:
    """A guard's row inside a transaction, and the entries to be stored with it.

    A single store to `progress` makes answers count. An exception can be thrown into a thread between any two steps, so
    entries that were added before that store are no answers.
    """

    __slots__ = ("closed", "guard_id", "progress", "stored")

    def __init__(self, guard_id: int, stored: str, asked: int, checkpoint: str, closed: str | None) -> None:
        self.guard_id = guard_id
        self.stored = stored
        self.closed = closed
        self.progress = _Progress(None, asked, checkpoint, {}, {})


class _Progress(NamedTuple):
    """Progress of a guard inside a transaction."""

    state: str | None
    """None until it is decrypted."""
    asked: int
    checkpoint: str
    new: dict[str, tuple[Entry, str]]
    """Entries to be stored, with their digests, by key."""
    clients: dict[str, str]
    """Clients' rows to be stored."""


class SQLLedger(Ledger):
    """Ledger in a database, which survives crashes and serves several processes at once.

    A ledger stores the state and the answers of guards (`Thresholdout`). Most users pass the path of a file to a guard
    as ``ledger=``, or call `open_ledger`, which makes this object. The methods are those of `Ledger`.

    Parameters
    ----------
    where : str or path
        A file, or its address such as ``"sqlite:///guard.db"``. A missing file is created, readable for its owner only.
        Or a database of a PostgreSQL server, ``"postgresql://user@host/database"`` (see
        `thresholdout.ledger.postgres.PostgresServer`), where missing tables are created in a schema of their own.
    must_exist : bool, default False
        Whether to refuse a file or database without a ledger, instead of creating one.
    key : str, optional
        Key that encrypts the secrets, as made by `new_key`: 32 bytes as url-safe base64. With a key, a new ledger is
        encrypted. An encrypted ledger needs its key. A ledger on a server always needs one, since servers write
        statements into logs that others read.
    key_file : str or path, optional
        File with the key, as made by `make_key_file`; nobody else may be able to read it. If neither is given, the
        environment variables ``THRESHOLDOUT_KEY`` and ``THRESHOLDOUT_KEY_FILE`` are used.
    timeout : float, default 30
        Number of seconds to wait while another process holds the file, or the guard.

    Attributes
    ----------
    database : Database
        Database of the ledger's tables. Other tables, with names of their own, may be kept beside them for common
        backups.

    Raises
    ------
    InputError
        If the address is that of another kind of database, or of a server and there is no key.
    LedgerEncrypted
        If the ledger is encrypted and the key is missing or a different one.
    LedgerMismatch
        If a key is given and the ledger is not encrypted.
    LedgerUnusable
        If the file is not a ledger, other users can read it, or it cannot be read and written. It is left as it is.

    Notes
    -----
    SQLite has a write-ahead log, synchronised with the disk at each commit. A query is one transaction that locks the
    file from its start, so that no other process can answer from the same state. While the file is open there are
    ``-wal`` and ``-shm`` files beside it, which belong to it and must move with it. A file that is copied, or put back
    from an older copy, spends its budget again, undetected. Without a key, whoever reads the file knows the noisy
    threshold and the documents.

    Threads that ask one ledger share commits: while one waits for the disk, the others queue up and share the next
    transaction. Processes get the file in turn; while some wait there is a ``-queue`` file, which can be removed at any
    time. On a server only queries to the same guard wait for each other. Readers never wait.

    A forked process may use the ledger. The mechanism must not fork in the middle of a query.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "guard.db")
    >>> with SQLLedger(file) as ledger:
    ...     ledger.create("guard", {"threshold": 0.04}, "state 0")
    'guard'
    >>> with SQLLedger(file, must_exist=True) as ledger:
    ...     ledger.parameters("guard")
    {'threshold': 0.04}
    >>> folder.cleanup()
    """

    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        must_exist: bool = False,
        timeout: float = 30.0,
        key: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
    ) -> None:
        found = Key.find(key, key_file)
        self.database = connect(where, must_exist=must_exist, timeout=timeout, encrypted=found is not None)
        try:
            self._encryption = open_encryption(self.database, found)
        except BaseException:
            self.database.close()
            raise
        self._sql = self.database.statements
        self._queries: GroupCommit[_Query] = GroupCommit(self.database)
        self.location = self.database.location
        self._secret: str | None = None

    def create(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str] | None = None,
    ) -> str:
        documents = dict(documents or {})
        check_creation(guard, state, documents.items())
        text = parameters_text(parameters)
        content = self._content(documents.get(CONTENT))
        _, guard, stored = self.database.transact(
            lambda cursor: self._enter(cursor, guard, content, text, state, documents)
        )
        if stored is not None:
            self._check_parameters(guard, self._parsed(guard, stored), parameters)
        return guard

    def known(self, content: str) -> str | None:
        check_texts(content=content)
        rows = self._read(self._sql.known, self._content(content))
        return str(rows[0][0]) if rows else None

    def _content(self, content: str | None) -> str | None:
        """Return the digest by which the guard for some records is found."""
        if content is None:
            return None
        if self._secret is None:
            self._secret = secret_of(self.database, self._encryption)
        return keyed_digest(self._secret, content)

    def _answered(
        self, guard: str, asked: tuple[Asked, ...], compute: ComputeAll, *, together: bool
    ) -> list[tuple[Entry, bool]]:
        query = _Query(guard, asked, compute, together)
        self._queries.run(query, self._answer_all, guard)
        if query.error is not None:
            try:
                raise query.error
            finally:
                query.error = None  # its traceback refers to the query
        return query.answers

    def _answer_all(self, cursor: Cursor, queries: Sequence[_Query]) -> None:
        """Answer queries, and store the answers, in the transaction of a cursor."""
        rows: dict[str, _Row | None] = {}
        guards = {query.guard for query in queries}
        for guard in sorted(guards) if len(guards) > 1 else guards:  # one order of locks avoids deadlocks
            cursor.execute(self._sql.lock_guard, (guard,))
            row = cursor.fetchone()
            rows[guard] = None
            if row is not None:
                guard_id, state, _, asked, checkpoint, closed = row
                rows[guard] = _Row(guard_id, state, asked, checkpoint, closed)
        for query in queries:
            kept = rows[query.guard]
            stored = [] if kept is None else self._before(cursor, kept, query)
            query.tried, query.computing, query.error = True, False, None
            progress = None if kept is None else kept.progress
            try:
                self._answer(cursor, query, kept, stored)
            except BaseException as error:
                answered = kept is not None and kept.progress is not progress
                if answered or not (query.computing or isinstance(error, Exception)):
                    raise  # an exception that was thrown into this thread from outside
                query.error = error
        for guard, kept in rows.items():
            if kept is None:
                continue
            state, number, last, new, clients = kept.progress
            if state is None or not new:
                continue
            added = [(kept.guard_id, *_FIELDS(entry), digest) for entry, digest in new.values()]
            if len(added) == 1:
                cursor.execute(self._sql.add_entry, added[0])
            else:
                cursor.executemany(self._sql.add_entry, added)
            encrypted = self._encrypt(state, guard, "state", str(number), last)
            cursor.execute(self._sql.set_state, (encrypted, number, last, kept.guard_id))
            for key, line in clients.items():
                cursor.execute(self._sql.set_client, (kept.guard_id, key, line))

    def _before(self, cursor: Cursor, kept: _Row, query: _Query) -> list[Entry | None]:
        """Return the entries that a call's keys have already, in the tables or in this transaction."""
        stored: list[Entry | None] = []
        for asked, key in zip(query.asked, query.keys, strict=True):
            new = kept.progress.new.get(key)
            if new is not None:
                stored.append(new[0])
            elif asked.key is None and not query.tried:  # its key is new
                stored.append(None)
            else:
                stored.append(self._stored(cursor, kept.guard_id, key))
        return stored

    def _answer(self, cursor: Cursor, query: _Query, kept: _Row | None, stored: Sequence[Entry | None]) -> None:
        """Answer one call; its answers are stored with all others of the transaction."""
        guard = query.guard
        if kept is None:
            raise self._unknown(guard)
        self._check_closed(kept.closed)
        for asked, key, before in zip(query.asked, query.keys, stored, strict=True):
            if before is not None:
                check_key(before, key)
                check_repeat(before, asked.train)
        places = tuple(place for place, before in enumerate(stored) if before is None)
        if not places:
            query.answers = [(before, before != query.made.get(before.key)) for before in stored if before is not None]
            return
        state, number, checkpoint, new, clients = kept.progress
        self._check_quotas((query.asked[place] for place in places), partial(self._asked_by, cursor, kept))
        if state is None:
            state = self._decrypt(kept.stored, guard, "state", str(number), checkpoint)
        there = self._clients_of(cursor, kept, {query.asked[place].client for place in places})
        query.computing = True
        state, computed = query.compute(join_state(state, there), places)
        query.computing = False
        check_texts(state=state)
        keyed = [(query.keys[place], query.asked[place]) for place in places]
        entries = self._settled(computed, number + 1, keyed, query.together)
        chain = Chain(guard, checkpoint, entries)
        added = new | {entry.key: (entry, digest) for entry, digest in chain}
        found = dict(zip(places, entries, strict=True))
        query.answers = [(before or found[place], before is not None) for place, before in enumerate(stored)]
        query.made = {entry.key: entry for entry in entries}
        main, after = split_state(state)
        changed = {key: line for key, line in after.items() if line != there.get(key)}
        kept.progress = _Progress(main, entries[-1].query, chain.checkpoint, added, {**clients, **changed})

    def _clients_of(self, cursor: Cursor, kept: _Row, clients: set[str]) -> dict[str, str]:
        """Return the rows of some clients within this transaction."""
        found = {}
        for key in map(client_key, clients - {""}):
            line = kept.progress.clients.get(key)
            if line is None:
                cursor.execute(self._sql.client, (kept.guard_id, key))
                row = cursor.fetchone()
                line = None if row is None else str(row[0])
            if line is not None:
                found[key] = line
        return found

    def _asked_by(self, cursor: Cursor, kept: _Row, client: str, since: float | None) -> int:
        """Return the number of a client's entries since a time, in the tables and in this transaction."""
        cursor.execute(*self._counting(kept.guard_id, client, since))
        row = cursor.fetchone()
        new = (entry for entry, _ in kept.progress.new.values())
        return (int(row[0]) if row else 0) + sum(entry.client == client and is_since(entry, since) for entry in new)

    def _stored(self, cursor: Cursor, guard_id: int, key: str) -> Entry | None:
        """Return the entry of a key, or None."""
        cursor.execute(self._sql.entry, (guard_id, key))
        rows = cursor.fetchall()
        return Entry(*rows[0]) if rows else None

    def _enter(
        self,
        cursor: Cursor,
        guard: str,
        content: str | None,
        parameters: str,
        state: str,
        documents: Mapping[str, str],
    ) -> tuple[int, str, str | None]:
        """Store a new guard; return its number in the tables, its name, and the parameters of an existing one."""
        checkpoint = first_digest(guard, parameters)
        state, clients = split_state(state)
        encrypted = self._encrypt(state, guard, "state", "0", checkpoint)
        new = False
        known = self._of_content(cursor, content) or guard
        cursor.execute(self._sql.lock_guard, (known,))
        if cursor.fetchone() is None:
            cursor.execute(self._sql.add_guard, (guard, content, encrypted, parameters, 0, checkpoint))
            new = cursor.rowcount == 1
            known = guard if new else self._of_content(cursor, content) or guard  # another process has stored it
        guard_id, _, stored, *_ = self._locked(cursor, known)
        if not new:
            return guard_id, known, str(stored)
        check_encryption(self.database, cursor, self._encryption)
        cursor.execute(self._sql.put_setting, ("identity", fresh_key()))  # before any copy of the guard can be made
        for name, document in documents.items():
            cursor.execute(self._sql.add_document, (guard_id, name, self._encrypt(document, guard, "document", name)))
        for key, line in clients.items():
            cursor.execute(self._sql.set_client, (guard_id, key, line))
        return guard_id, guard, None

    def _of_content(self, cursor: Cursor, content: str | None) -> str | None:
        """Return the name of the guard with a digest of its records."""
        if content is None:
            return None
        cursor.execute(self._sql.known, (content,))
        row = cursor.fetchone()
        return None if row is None else str(row[0])

    def find(self, guard: str, key: str, client: str = "") -> Entry | None:
        check_texts(key=key, client=client)
        key = scoped_key(key, client) or key
        guard_id, *_ = self._find(guard)
        rows = self._read(self._sql.entry, guard_id, key)
        if not rows:
            return None
        check_key(stored := Entry(*rows[0]), key)
        return stored

    def state(self, guard: str, client: str = "") -> str:
        guard_id, state, _, asked, checkpoint, _ = self._find(guard)
        rows = self._read(self._sql.client, guard_id, client_key(client)) if client else []
        main = self._decrypt(state, guard, "state", str(asked), checkpoint)
        return join_state(main, {client_key(client): str(row[0]) for row in rows})

    def clients(self, guard: str) -> dict[str, str]:
        guard_id, *_ = self._find(guard)
        return {str(key): str(line) for key, line in self._read(self._sql.clients, guard_id)}

    def parameters(self, guard: str) -> dict[str, JSON]:
        return self._parsed(guard, self._find(guard)[2])

    def entries(self, guard: str, start: int = 1, count: int | None = None, client: str | None = None) -> list[Entry]:
        last = check_slice(start, count)
        guard_id, *_ = self._find(guard)
        if client is None:
            return [Entry(*row) for row in self._read(self._sql.entries, guard_id, start, last)]
        check_texts(client=client)
        most = LARGEST_COUNT if count is None else count
        return [Entry(*row) for row in self._read(self._sql.entries_of, client, guard_id, start, most, 0)]

    def _count_of(self, guard: str, client: str, since: float | None) -> int:
        check_texts(client=client)
        guard_id, *_ = self._find(guard)
        statement, parameters = self._counting(guard_id, client, since)
        return int(self._read(statement, *parameters)[0][0])

    def _counting(self, guard_id: int, client: str, since: float | None) -> tuple[str, tuple[object, ...]]:
        """Return the statement that counts a client's entries, and its parameters."""
        if since is None:
            return self._sql.asked_by, (client, guard_id)
        return self._sql.asked_since, (client, guard_id, since)

    def guards(self) -> list[str]:
        return [guard for (guard,) in self._read(self._sql.guards)]

    def identity(self) -> str:
        if not (rows := self._read(self._sql.setting, "identity")):
            self.database.transact(lambda cursor: cursor.execute(self._sql.put_setting, ("identity", fresh_key())))
            rows = self._read(self._sql.setting, "identity")
        return str(rows[0][0])

    def checkpoint(self, guard: str) -> str:
        return str(self._find(guard)[4])

    def sources(self, guard: str, last: int) -> dict[str, int]:
        guard_id, *_ = self._find(guard)
        return {str(source): int(count) for source, count in self._read(self._sql.sources, guard_id, last)}

    def _extent(self, guard: str) -> Extent:
        rows = self._read(self._sql.extent, guard)
        if not rows:
            raise self._unknown(guard)
        _, parameters, asked, checkpoint, last = rows[0]
        return parameters, asked, checkpoint, last or 0

    def _links(self, guard: str, start: int, count: int) -> list[tuple[Entry, str]]:
        guard_id, *_ = self._find(guard)
        rows = self._read(self._sql.chain, guard_id, start, start + count - 1)
        return [(Entry(*row[:-1]), row[-1]) for row in rows]

    def close_guard(self, guard: str, why: str) -> None:
        check_texts(why=why)

        def close(cursor: Cursor) -> None:
            guard_id, *_, closed = self._locked(cursor, guard)
            if closed != why:
                self._check_closed(closed)
                cursor.execute(self._sql.close, (why, guard_id))

        self.database.transact(close)

    def closed(self, guard: str) -> str | None:
        why: str | None = self._find(guard)[5]
        return why

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
        check_creation(guard, state, documents.items())
        text = parameters_text(parameters)
        content = self._content(documents.get(CONTENT))

        def put(cursor: Cursor) -> None:
            guard_id, known, stored = self._enter(cursor, guard, content, text, state, documents)
            if stored is not None:
                raise self._there_already(guard) if known == guard else self._same_records(known)
            chain = Chain(guard, first_digest(guard, text), check_history(entries))
            cursor.executemany(self._sql.add_entry, ((guard_id, *_FIELDS(entry), digest) for entry, digest in chain))
            encrypted = self._encrypt(split_state(state)[0], guard, "state", str(chain.asked), chain.checkpoint)
            cursor.execute(self._sql.set_state, (encrypted, chain.asked, chain.checkpoint, guard_id))
            if closed is not None:
                cursor.execute(self._sql.close, (closed, guard_id))

        self.database.transact(put)

    def put_document(self, guard: str, name: str, text: str) -> None:
        check_document(name, text)

        def put(cursor: Cursor) -> None:
            guard_id, *_, closed = self._locked(cursor, guard)
            self._check_closed(closed)
            check_encryption(self.database, cursor, self._encryption)
            cursor.execute(self._sql.document, (guard_id, name))
            row = cursor.fetchone()
            if row is None:
                cursor.execute(self._sql.add_document, (guard_id, name, self._encrypt(text, guard, "document", name)))
            else:
                self._check_document(name, self._decrypt(row[0], guard, "document", name), text)

        self.database.transact(put)

    def document(self, guard: str, name: str) -> str | None:
        guard_id, *_ = self._find(guard)
        rows = self._read(self._sql.document, guard_id, name)
        return self._decrypt(rows[0][0], guard, "document", name) if rows else None

    def documents(self, guard: str) -> list[str]:
        rows = self._read(self._sql.documents, guard)
        if not rows:
            self._find(guard)
        return sorted(name for (name,) in rows)

    def read_setting(self, name: str) -> str | None:
        """Return a setting of the ledger, a text that is stored beside the guards.

        Parameters
        ----------
        name : str
            Name of the setting.

        Returns
        -------
        str or None
            The text, or None if the ledger has no such setting.
        """
        rows = self._read(self._sql.setting, name)
        return self._opened(name, str(rows[0][0])) if rows else None

    def change_setting(self, name: str, change: Callable[[str | None], str]) -> str:
        """Replace a setting of the ledger in an exclusive transaction.

        Parameters
        ----------
        name : str
            Name of the setting. Those of `thresholdout.ledger.encryption.SECRETS` are encrypted.
        change : callable
            Maps the present text, or None if there is none, to the new text. It must not use the ledger.

        Returns
        -------
        str
            The new text.
        """

        def put(cursor: Cursor) -> str:
            for statement in self._sql.lock_secrets:
                cursor.execute(statement)
            row = cursor.execute(self._sql.setting, (name,)).fetchone()
            text = change(None if row is None else self._opened(name, str(row[0])))
            stored = self._encrypt(text, "setting", name) if name in SECRETS else text
            cursor.execute(self._sql.put_setting, (name, stored))
            cursor.execute(self._sql.set_setting, (stored, name))
            if name in SECRETS:
                check_encryption(self.database, cursor, self._encryption)
            return text

        return self.database.transact(put)

    def _opened(self, name: str, stored: str) -> str:
        return self._decrypt(stored, "setting", name) if name in SECRETS else stored

    @property
    def encrypted(self) -> bool:
        return self._encryption.is_on

    def close(self) -> None:
        self.database.close()

    def _encrypt(self, text: str, *about: str) -> str:
        return self._encryption.put(text, *about)

    def _decrypt(self, text: str, *about: str) -> str:
        return self._encryption.get(text, *about)

    def _read(self, statement: str, *parameters: object) -> list[Any]:
        """Return the rows of a statement."""
        return self.database.read(statement, parameters)

    def _find(self, guard: str) -> _GuardRow:
        """Return a guard's row: id, state, parameters, asked, checkpoint, closed."""
        rows: list[_GuardRow] = self._read(self._sql.guard, guard)
        if not rows:
            raise self._unknown(guard)
        return rows[0]

    def _locked(self, cursor: Cursor, guard: str) -> _GuardRow:
        """Return a guard's row, which no other transaction changes until the cursor's ends."""
        cursor.execute(self._sql.lock_guard, (guard,))
        row: _GuardRow | None = cursor.fetchone()
        if row is None:
            raise self._unknown(guard)
        return row
