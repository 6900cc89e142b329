"""Work on whole ledgers that is killed at every step; run as ``python -m tests.thresholdout.ledger.killed_steps``.

Each statement that reaches a database is a step. For each of them a forked process begins the work and is killed just
before that statement; then what is there is looked at, and the work is done again, to its end.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent, state_after
from thresholdout.errors import LedgerClosed, LedgerEncrypted
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.cipher import KEY_VARIABLE
from thresholdout.ledger.encryption import encrypt, rotate_key
from thresholdout.ledger.sqlite_file import SQLiteFile
from thresholdout.ledger.transfer import move

LABELS = "labels of the holdout"
ASKED = 4
OLD_KEY = "-" * 43
NEW_KEY = "_" * 43


def make(file: Path) -> None:
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {"budget": 9}, FIRST, {"labels": LABELS})
        for _ in range(ASKED):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())


def watch(step: Callable[[], None]) -> None:
    """Have a function called before each statement that reaches a database."""
    connect, execute, executemany = SQLiteFile._connect, psycopg.Cursor.execute, psycopg.Cursor.executemany

    def watched_connect(self: SQLiteFile) -> sqlite3.Connection:
        connection = connect(self)
        connection.set_trace_callback(lambda statement: step())
        return connection

    def watched_execute(self: psycopg.Cursor[Any], *arguments: Any, **options: Any) -> psycopg.Cursor[Any]:
        step()
        return execute(self, *arguments, **options)

    def watched_executemany(self: psycopg.Cursor[Any], *arguments: Any, **options: Any) -> None:
        step()
        executemany(self, *arguments, **options)

    SQLiteFile._connect = watched_connect  # type: ignore[method-assign]
    psycopg.Cursor.execute = watched_execute  # type: ignore[assignment]
    psycopg.Cursor.executemany = watched_executemany  # type: ignore[method-assign]


def killed(work: Callable[[], object], last: int) -> bool:
    """Do some work in another process, which is killed before its statement ``last``; tell whether it was."""
    child = os.fork()
    if child == 0:
        left = last

        def step() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        watch(step)
        work()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status != 0


def assert_whole(ledger: SQLLedger) -> None:
    assert ledger.verify(GUARD) == ASKED
    assert ledger.document(GUARD, "labels") == LABELS
    assert_consistent(ledger)


def answers(ledger: SQLLedger) -> bool:
    """Whether a ledger answers a query; it is asked one."""
    try:
        ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    except LedgerClosed:
        return False
    return True


def moves(folder: Path, last: int, server: str | None = None, key: str | None = None) -> tuple[bool, str]:
    """Kill a move; tell whether it was, and which ledger answered then."""
    source, target = folder / "guard.db", emptied(server) if server else folder / "target.db"
    SQLLedger(target, key=key).close()

    def work() -> None:
        with SQLLedger(source) as old, SQLLedger(target, key=key) as new:
            move(old, new, GUARD)

    was_killed = killed(work, last)
    with SQLLedger(source) as old, SQLLedger(target, key=key) as new:
        live = [GUARD in ledger.guards() and ledger.closed(GUARD) is None for ledger in (old, new)]
        for ledger in (old, new):
            if GUARD in ledger.guards():
                assert_whole(ledger)
        history, checkpoint = old.entries(GUARD), old.checkpoint(GUARD)
        for _ in range(2):
            move(old, new, GUARD)
            assert_whole(new)
            assert new.entries(GUARD) == history
            assert new.checkpoint(GUARD) == checkpoint
            assert new.state(GUARD) == state_after(history)
            assert new.parameters(GUARD) == {"budget": 9}
        assert not answers(old)
        assert answers(new)
        move(old, new, GUARD)  # also when it has gone on over there
        assert len(new.entries(GUARD)) == ASKED + 1
    return was_killed, {(True, False): "source", (False, False): "none", (False, True): "target"}[live[0], live[1]]


def emptied(server: str) -> str:
    """Return the address of an empty database on a server, given one that has the name DATABASE in it."""
    with psycopg.connect(server.replace("DATABASE", "postgres"), autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'killed'").fetchone() is None:
            connection.execute("CREATE DATABASE killed")
    address = server.replace("DATABASE", "killed")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS thresholdout CASCADE")
    return address


def encrypts(folder: Path, last: int) -> tuple[bool, str]:
    """Kill an encryption; tell whether it was, and whether the ledger was encrypted then."""
    file = folder / "guard.db"
    (folder / "encrypted.db").unlink()
    was_killed = killed(lambda: encrypt(file, key=OLD_KEY), last)
    encrypted = False
    try:
        with SQLLedger(file) as ledger:
            assert_whole(ledger)
    except LedgerEncrypted:
        encrypted = True
    encrypt(file, key=OLD_KEY)
    with SQLLedger(file, key=OLD_KEY) as ledger:
        assert_whole(ledger)
    assert LABELS.encode() not in b"".join(path.read_bytes() for path in folder.iterdir())
    return was_killed, "encrypted" if encrypted else "plain"


def rotates_key(folder: Path, last: int) -> tuple[bool, str]:
    """Kill a change of the key; tell whether it was, and which key opened the ledger then."""
    file = folder / "encrypted.db"
    was_killed = killed(lambda: rotate_key(file, new_key=NEW_KEY, key=OLD_KEY), last)
    opened = "old"
    try:
        with SQLLedger(file, key=OLD_KEY) as ledger:
            assert_whole(ledger)
    except LedgerEncrypted:
        opened = "new"
    rotate_key(file, new_key=NEW_KEY, key=OLD_KEY)
    with SQLLedger(file, key=NEW_KEY) as ledger:
        assert_whole(ledger)
    return was_killed, opened


def main(kind: Callable[[Path, int], tuple[bool, str]], where: Path) -> None:
    """Print the number of steps, and what was seen after them, without repetitions."""
    template = where / "template"
    template.mkdir()
    make(template / "guard.db")
    make(template / "encrypted.db")
    encrypt(template / "encrypted.db", key=OLD_KEY)
    SQLLedger(template / "target.db").close()
    seen: list[str] = []
    for last in range(1000):
        folder = where / str(last)
        shutil.copytree(template, folder)
        was_killed, found = kind(folder, last)
        seen.append(found)
        shutil.rmtree(folder)
        if not was_killed:
            break
    print(len(seen), *(found for k, found in enumerate(seen) if k == 0 or seen[k - 1] != found))


if __name__ == "__main__":
    kinds: dict[str, Callable[[Path, int], tuple[bool, str]]] = {
        "moves": moves,
        "encrypts": encrypts,
        "rotates_key": rotates_key,
    }
    if sys.argv[3:]:
        key = os.environ.pop(KEY_VARIABLE)  # the server's, and not that of the files
        kinds["moves"] = partial(moves, server=sys.argv[3], key=key)
    main(kinds[sys.argv[1]], Path(sys.argv[2]))
