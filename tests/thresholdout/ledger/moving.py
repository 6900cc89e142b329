"""Moves that are killed at every step; run as ``python -m tests.thresholdout.ledger.moving folder``.

Each statement of both databases is a step. For each of them a forked process begins the move and is killed just before
that statement; then what is there is looked at, and another process finishes the move.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path
from typing import cast

from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent, state_after
from thresholdout.errors import LedgerRetired
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.transfer import move

LABELS = "labels\nof the holdout"
ASKED = 4


class Killer:
    """Counts statements, and kills the process before one of them."""

    def __init__(self, last: int) -> None:
        self.left = last

    def __call__(self, statement: str) -> None:
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def make(folder: Path) -> tuple[Path, Path]:
    folder.mkdir()
    source, target = folder / "source.db", folder / "target.db"
    with SQLLedger(source) as ledger:
        ledger.create(GUARD, {"budget": 9}, FIRST, {"labels": LABELS})
        for _ in range(ASKED):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    SQLLedger(target).close()
    return source, target


def killed(source: Path, target: Path, last: int) -> bool:
    """Begin a move in another process, which is killed before statement ``last``; tell whether it was."""
    child = os.fork()
    if child == 0:
        with SQLLedger(source) as old, SQLLedger(target) as new:
            killer = Killer(last)
            for ledger in (old, new):
                with ledger._database.reading() as cursor:
                    cast(sqlite3.Cursor, cursor).connection.set_trace_callback(killer)
            move(old, new, GUARD)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status != 0


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


def check(source: Path, target: Path) -> str:
    """Look at what a killed move left, let it be finished, and look again."""
    copies = [file.with_suffix(".copy") for file in (source, target)]
    for file, copy in zip((source, target), copies, strict=True):
        SQLLedger(file).close()  # takes what is in the log into the file
        shutil.copy(file, copy)
    live = [answers(copy) for copy in copies]
    with SQLLedger(source) as old, SQLLedger(target) as new:
        for ledger in (old, new):
            if GUARD in ledger.guards():
                assert ledger.verify(GUARD) == ASKED
                assert ledger.document(GUARD, "labels") == LABELS
                assert_consistent(ledger)
        history, head = old.entries(GUARD), old.head(GUARD)
        for _ in range(2):
            move(old, new, GUARD)
            assert new.entries(GUARD) == history
            assert new.head(GUARD) == head
            assert new.state(GUARD) == state_after(history)
            assert new.parameters(GUARD) == {"budget": 9}
    assert not answers(source)
    assert answers(target)
    with SQLLedger(source) as old, SQLLedger(target) as new:
        move(old, new, GUARD)  # also when it has gone on over there
        assert len(new.entries(GUARD)) == ASKED + 1
    return {(True, False): "source", (False, False): "none", (False, True): "target"}[live[0], live[1]]


def main(folder: Path) -> None:
    seen = []
    for last in range(1000):
        source, target = make(folder / str(last))
        whole = not killed(source, target, last)
        seen.append(check(source, target))
        shutil.rmtree(folder / str(last))
        if whole:
            break
    runs = [live for k, live in enumerate(seen) if k == 0 or seen[k - 1] != live]
    print(len(seen), *runs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
