"""Who waits for whom: processes get a file in turn, and nobody waits for a guard that they do not ask."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.patience import PATIENCE, wait_until
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from tests.thresholdout.ledger.postgres_server import Server
from tests.thresholdout.ledger.test_crashes import finish, start
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.entry import Entry
from thresholdout.ledger.sqlite_file import FileQueue

ROOT = Path(__file__).parents[3]
OTHERS = ("second", "third", "fourth")


# One guard that is locked, and others


@pytest.fixture
def address(server: Server) -> str:
    address = server.emptied_database()
    with SQLLedger(address) as ledger:
        for guard in (GUARD, *OTHERS):
            ledger.create(guard, {}, FIRST)
    return address


def in_thread(work: Callable[[], object], outcomes: list[object]) -> threading.Thread:
    def run() -> None:
        try:
            outcomes.append(work())
        except BaseException as error:
            outcomes.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_locked_guard_holds_up_neither_other_guards_nor_readers(server: Server, address: str) -> None:
    """From threads and from the main thread, while two wait for the locked one."""
    late: list[object] = []
    with SQLLedger(address) as ledger, psycopg.connect(address) as other:
        other.execute("SELECT 1 FROM thresholdout.guards WHERE id = 1 FOR UPDATE")
        waiting = [in_thread(lambda: ledger.ask(GUARD, None, 0.5, "late", Mechanism()), late) for _ in range(2)]
        held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        wait_until(lambda: server.run(held) == [(1,)])
        answers: list[object] = []
        for guard in OTHERS:
            asking = in_thread(partial(ledger.ask, guard, None, 0.5, "other", Mechanism()), answers)
            asking.join(PATIENCE)
            ledger.ask(guard, None, 0.5, "main", Mechanism())
            assert [entry.name for entry in ledger.entries(guard)] == ["other", "main"]
        ledger.create("fifth", {}, FIRST)
        ledger.put_document("fifth", "a", "text")
        for read in (
            ledger.entries,
            ledger.state,
            ledger.parameters,
            ledger.checkpoint,
            ledger.documents,
            ledger.verify,
        ):
            read(GUARD)
        assert len(answers) == 3
        assert not any(isinstance(answer, BaseException) for answer in answers)
        assert late == []  # all that was asked while the guard was locked
        assert all(thread.is_alive() for thread in waiting)
        other.rollback()
        for thread in waiting:
            thread.join(PATIENCE)
        assert len(late) == 2
        assert not any(isinstance(answer, BaseException) for answer in late)
        assert_consistent(ledger)
        ledger.verify(GUARD)


@pytest.mark.slow
def test_readers_wait_for_no_mechanism(address: str) -> None:
    """Nor for any query that is under way, however long its mechanism takes."""
    with SQLLedger(address) as ledger:
        begun, go, late = threading.Event(), threading.Event(), list[object]()

        def compute(state: str) -> tuple[str, Entry]:
            begun.set()
            assert go.wait(PATIENCE)
            return Mechanism()(state)

        asking = in_thread(lambda: ledger.ask(GUARD, None, 0.5, "slow", compute), late)
        assert begun.wait(PATIENCE)
        assert ledger.entries(GUARD) == []
        ledger.ask(OTHERS[0], None, 0.5, "other", Mechanism())
        assert late == []
        go.set()
        asking.join(PATIENCE)
        assert len(ledger.entries(GUARD)) == 1


def test_readers_of_a_file_wait_for_no_writer(tmp_path: Path) -> None:
    late: list[object] = []
    with (
        SQLLedger(tmp_path / "guard.db") as ledger,
        closing(sqlite3.connect(tmp_path / "guard.db", isolation_level=None)) as other,
    ):
        ledger.create(GUARD, {}, FIRST)
        other.execute("BEGIN IMMEDIATE")
        asking = in_thread(lambda: ledger.ask(GUARD, None, 0.5, "late", Mechanism()), late)
        wait_until((tmp_path / "guard.db-queue").exists)
        for read in (
            ledger.entries,
            ledger.state,
            ledger.parameters,
            ledger.checkpoint,
            ledger.documents,
            ledger.verify,
        ):
            read(GUARD)
        assert late == []
        other.execute("ROLLBACK")
        asking.join(PATIENCE)
        assert isinstance(late[0], tuple)


@pytest.mark.slow
def test_a_server_with_room_for_few_connections(server: Server, address: str) -> None:
    """More guards are asked at a time than the server lets in; all of them get their turn."""
    server.run("CREATE ROLE crowded LOGIN")
    server.run("GRANT USAGE ON SCHEMA thresholdout TO crowded", "emptied")
    server.run("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA thresholdout TO crowded", "emptied")
    server.run("GRANT USAGE ON ALL SEQUENCES IN SCHEMA thresholdout TO crowded", "emptied")
    server.run("ALTER ROLE crowded CONNECTION LIMIT 3")
    try:
        with SQLLedger(server.address("emptied", "crowded")) as ledger:
            guards = [f"crowd {number}" for number in range(8)]
            for guard in guards:
                ledger.create(guard, {}, FIRST)
            outcomes: list[object] = []

            def ask(guard: str) -> None:
                for _ in range(10):
                    ledger.ask(guard, None, 0.5, "accuracy", Mechanism())
                    ledger.state(guard)

            threads = [in_thread(partial(ask, guard), outcomes) for guard in guards]
            for thread in threads:
                thread.join(PATIENCE)
            assert outcomes == [None] * 8
            for guard in guards:
                assert_consistent(ledger, guard)
    finally:
        server.run("DROP OWNED BY crowded", "emptied")
        server.run("DROP ROLE crowded")


# Processes that want one file


@pytest.mark.slow
def test_every_process_gets_its_share(tmp_path: Path) -> None:
    """Eight processes ask without a pause; none of them is left behind, and none sees a long gap.

    Waiting in turn gives each an eighth of the answers, and what happens between two answers of one process is one
    answer of each other. The limits are a third of the share, and gaps in which forty answers went to others, however
    fast or slow the machine is.
    """
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST)
    processes = [start("asks_when_told", file, f"{number}", tmp_path / "go") for number in range(8)]
    wait_until(lambda: len(list(tmp_path.glob("ready*"))) == 8)
    (tmp_path / "go").touch()
    for process in processes:
        finish(process)
    with SQLLedger(file) as ledger:
        names = [entry.name for entry in ledger.entries(GUARD)]
        assert_consistent(ledger)
    first = max(names.index(f"{number}") for number in range(8))
    last = min(len(names) - names[::-1].index(f"{number}") for number in range(8))
    window = names[first:last]
    assert len(window) > 300
    counts = {number: window.count(f"{number}") for number in range(8)}
    assert min(counts.values()) > len(window) / 8 / 3, counts
    for number in range(8):
        places = [place for place, name in enumerate(window) if name == f"{number}"]
        gaps = [after - before for before, after in itertools.pairwise(places)]
        assert max(gaps) < 40, (number, max(gaps))
    assert not (tmp_path / "guard.db-queue").exists()


@pytest.mark.slow
def test_one_that_hangs_in_the_queue_is_passed(tmp_path: Path) -> None:
    """A process is stopped while it waits in front; the others go on, and so does it when it is let go."""
    file = tmp_path / "guard.db"
    with SQLLedger(file, timeout=PATIENCE) as ledger, closing(sqlite3.connect(file, isolation_level=None)) as other:
        ledger.create(GUARD, {}, FIRST)
        other.execute("BEGIN IMMEDIATE")
        process = start("asks", file, 1)
        wait_until(file.with_name("guard.db-queue").exists)
        process.send_signal(19)
        wait_until(lambda: " T " in Path(f"/proc/{process.pid}/stat").read_text())
        other.execute("ROLLBACK")
        for _ in range(3):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert len(ledger.entries(GUARD)) == 3
        process.send_signal(18)
        finish(process)
        assert len(ledger.entries(GUARD)) == 5
        assert not file.with_name("guard.db-queue").exists()


@pytest.mark.slow
def test_what_a_killed_process_leaves_in_the_queue_stops_nobody(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    queue = file.with_name("guard.db-queue")
    with SQLLedger(file, timeout=PATIENCE) as ledger, closing(sqlite3.connect(file, isolation_level=None)) as other:
        ledger.create(GUARD, {}, FIRST)
        other.execute("BEGIN IMMEDIATE")
        process = start("asks", file, 1)
        wait_until(queue.exists)
        process.kill()
        process.communicate()
        other.execute("ROLLBACK")
        for content in (None, b"", b"rubbish" * 100):
            if content is not None:
                queue.write_bytes(content)
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
            assert not queue.exists()
        queue.mkdir()  # no file can be there, and everybody tries as best they can
        ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert len(ledger.entries(GUARD)) == 4


QUEUES = """
import sys
from pathlib import Path
from thresholdout.ledger import sqlite_file

def attempt():
    try:
        free.rename(mine)
    except FileNotFoundError:
        return False
    return True

sqlite_file._PATIENCE = 600.0
free, mine = Path(sys.argv[2]), Path(sys.argv[3])
assert sqlite_file.FileQueue(Path(sys.argv[1])).wait(attempt, 600)
"""


@pytest.mark.slow
def test_first_come_first_served(tmp_path: Path) -> None:
    """Six processes come one after another while the file is taken, and then it is given six times."""
    file, free, queue = tmp_path / "file", tmp_path / "free", tmp_path / "file-queue"

    def waiting() -> int:
        """Return the last number that was drawn; bytes are written once it is."""
        return int.from_bytes(queue.read_bytes(), "big") if queue.exists() else 0

    processes = []
    for number in range(6):
        words: list[str | Path] = [sys.executable, "-c", QUEUES, file, free, tmp_path / f"had by {number}"]
        processes.append(subprocess.Popen(words, cwd=ROOT))
        wait_until(lambda: waiting() == number + 1)  # noqa: B023
    for number, process in enumerate(processes):
        free.touch()
        wait_until(lambda: not free.exists())
        assert (tmp_path / f"had by {number}").exists()
        assert process.wait(PATIENCE) == 0
    assert not (tmp_path / "file-queue").exists()


def test_a_queue_that_is_given_up_in_the_middle_is_left(tmp_path: Path) -> None:
    queue = FileQueue(tmp_path / "file")
    calls = iter([False, False])

    def attempt() -> bool:
        for answer in calls:
            return answer
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        queue.wait(attempt, 10)
    assert os.listdir(tmp_path) == []
    assert not queue.wait(lambda: False, 0.01)
    assert os.listdir(tmp_path) == []


def test_a_file_that_stays_taken_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    with SQLLedger(file, timeout=0.1) as ledger, closing(sqlite3.connect(file, isolation_level=None)) as other:
        ledger.create(GUARD, {}, FIRST)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnusable, match=r"Another process keeps the file locked. Try again"):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        other.execute("ROLLBACK")
        ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert not (tmp_path / "guard.db-queue").exists()
