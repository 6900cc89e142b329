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
from pathlib import Path

from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent, state_after
from thresholdout.errors import LedgerRetired, LedgerSealed
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.sealing import rekey, seal
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


def killed(work: Callable[[], object], last: int) -> bool:
    """Do some work in another process, which is killed before its statement ``last``; tell whether it was."""
    child = os.fork()
    if child == 0:
        left = last

        def step(statement: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        plain = SQLiteFile._connect

        def watched(self: SQLiteFile) -> sqlite3.Connection:
            connection = plain(self)
            connection.set_trace_callback(step)
            return connection

        SQLiteFile._connect = watched  # type: ignore[method-assign]
        work()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status != 0


def assert_whole(ledger: SQLLedger) -> None:
    assert ledger.verify(GUARD) == ASKED
    assert ledger.document(GUARD, "labels") == LABELS
    assert_consistent(ledger)


def answers(file: Path) -> bool:
    """Whether a ledger answers a question; it is asked one."""
    with SQLLedger(file) as ledger:
        if GUARD not in ledger.guards():
            return False
        try:
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        except LedgerRetired:
            return False
        return True


def moves(folder: Path, last: int) -> tuple[bool, str]:
    """Kill a move; tell whether it was, and which ledger answered then."""
    source, target = folder / "guard.db", folder / "target.db"

    def work() -> None:
        with SQLLedger(source) as old, SQLLedger(target) as new:
            move(old, new, GUARD)

    was_killed = killed(work, last)
    copies = [file.with_suffix(".copy") for file in (source, target)]
    for file, copy in zip((source, target), copies, strict=True):
        SQLLedger(file).close()  # takes what is in the log into the file
        shutil.copy(file, copy)
    live = [answers(copy) for copy in copies]
    with SQLLedger(source) as old, SQLLedger(target) as new:
        for ledger in (old, new):
            if GUARD in ledger.guards():
                assert_whole(ledger)
        history, head = old.entries(GUARD), old.head(GUARD)
        for _ in range(2):
            move(old, new, GUARD)
            assert_whole(new)
            assert new.entries(GUARD) == history
            assert new.head(GUARD) == head
            assert new.state(GUARD) == state_after(history)
            assert new.parameters(GUARD) == {"budget": 9}
    assert not answers(source)
    assert answers(target)
    with SQLLedger(source) as old, SQLLedger(target) as new:
        move(old, new, GUARD)  # also when it has gone on over there
        assert len(new.entries(GUARD)) == ASKED + 1
    return was_killed, {(True, False): "source", (False, False): "none", (False, True): "target"}[live[0], live[1]]


def seals(folder: Path, last: int) -> tuple[bool, str]:
    """Kill a sealing; tell whether it was, and whether the ledger was sealed then."""
    file = folder / "guard.db"
    (folder / "sealed.db").unlink()
    was_killed = killed(lambda: seal(file, key=OLD_KEY), last)
    sealed = False
    try:
        with SQLLedger(file) as ledger:
            assert_whole(ledger)
    except LedgerSealed:
        sealed = True
    seal(file, key=OLD_KEY)
    with SQLLedger(file, key=OLD_KEY) as ledger:
        assert_whole(ledger)
    assert LABELS.encode() not in b"".join(path.read_bytes() for path in folder.iterdir())
    return was_killed, "sealed" if sealed else "plain"


def rekeys(folder: Path, last: int) -> tuple[bool, str]:
    """Kill a change of the key; tell whether it was, and which key opened the ledger then."""
    file = folder / "sealed.db"
    was_killed = killed(lambda: rekey(file, new_key=NEW_KEY, key=OLD_KEY), last)
    opened = "old"
    try:
        with SQLLedger(file, key=OLD_KEY) as ledger:
            assert_whole(ledger)
    except LedgerSealed:
        opened = "new"
    rekey(file, new_key=NEW_KEY, key=OLD_KEY)
    with SQLLedger(file, key=NEW_KEY) as ledger:
        assert_whole(ledger)
    return was_killed, opened


def main(kind: Callable[[Path, int], tuple[bool, str]], where: Path) -> None:
    """Print the number of steps, and what was seen after them, without repetitions."""
    template = where / "template"
    template.mkdir()
    make(template / "guard.db")
    make(template / "sealed.db")
    seal(template / "sealed.db", key=OLD_KEY)
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
    main({kind.__name__: kind for kind in (moves, seals, rekeys)}[sys.argv[1]], Path(sys.argv[2]))
