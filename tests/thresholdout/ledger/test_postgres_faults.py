"""Lost connections, killed servers and killed clients: nothing answered is lost, and nothing is answered twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest

from tests.patience import PATIENCE, wait_until
from tests.sizes import corners
from tests.thresholdout.ledger import postgres_server
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from tests.thresholdout.ledger.postgres_proxy import CUTS, Cut, Proxy, at_random
from tests.thresholdout.ledger.postgres_server import Server
from tests.thresholdout.ledger.test_crashes import finish, start
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.entry import Entry


@pytest.fixture
def address(server: Server) -> str:
    address = server.emptied_database()
    with SQLLedger(address) as ledger:
        ledger.create(GUARD, {}, FIRST)
    return address


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.folder)
    yield proxy
    proxy.close()


def through(proxy: Proxy, address: str) -> str:
    return address.partition("?")[0] + f"?host={proxy.folder}"


def ask(ledger: SQLLedger, key: str | None) -> Entry:
    entry, _ = ledger.ask(GUARD, key, 0.5, "accuracy", Mechanism())
    return entry


def ask_or_fail(ledger: SQLLedger, key: str) -> tuple[Entry | None, str]:
    """Return the answer, or why there is none."""
    try:
        return ask(ledger, key), ""
    except LedgerUnusable as error:
        return None, str(error)


def stored(address: str) -> dict[str, str]:
    with SQLLedger(address) as ledger:
        assert_consistent(ledger)
        ledger.verify(GUARD)
        return {entry.key: repr(entry.value) for entry in ledger.entries(GUARD)}


def sessions(server: Server) -> list[int]:
    rows = server.run("SELECT pid FROM pg_stat_activity WHERE application_name = 'thresholdout'")
    return [pid for (pid,) in rows]


def waiting_session(server: Server) -> int:
    """Wait until a ledger's session waits for a lock, however slow the machine is; return its number."""
    waits = "SELECT pid FROM pg_stat_activity WHERE application_name = 'thresholdout' AND wait_event_type = 'Lock'"
    rows: list[int] = []

    def seen() -> bool:
        rows.extend(pid for (pid,) in server.run(waits))
        return bool(rows)

    wait_until(seen)
    return rows[0]


@pytest.mark.slow
def test_a_session_that_ends_in_the_middle_of_a_query(server: Server, address: str) -> None:
    def compute(state: str) -> tuple[str, Entry]:
        for pid in sessions(server):
            server.run(f"SELECT pg_terminate_backend({pid}, 10000)")
        return Mechanism()(state)

    with SQLLedger(address) as ledger:
        first = ask(ledger, "a")
        with pytest.raises(LedgerUnusable, match="The connection was lost, and nothing was stored"):
            ledger.ask(GUARD, "b", 0.5, "accuracy", compute)
        assert stored(address) == {"a": repr(first.value)}
        ask(ledger, "b")
    assert list(stored(address)) == ["a", "b"]


@pytest.mark.slow
def test_a_session_that_ends_between_queries(server: Server, address: str) -> None:
    with SQLLedger(address) as ledger:
        ask(ledger, "a")
        for pid in sessions(server):
            server.run(f"SELECT pg_terminate_backend({pid}, 10000)")
        ask(ledger, "b")
        for pid in sessions(server):
            server.run(f"SELECT pg_terminate_backend({pid}, 10000)")
        assert [entry.key for entry in ledger.entries(GUARD)] == ["a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("slow", corners([False, True], 0))
@pytest.mark.parametrize("cut", CUTS)
def test_a_connection_lost_at_the_commit(server: Server, address: str, proxy: Proxy, cut: Cut, slow: bool) -> None:
    """The answer leaves if it was stored, else the query is refused; either way its key settles it."""
    if slow:
        server.run(
            "CREATE FUNCTION thresholdout.waits() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END $$",
            "emptied",
        )
        server.run(
            "CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON thresholdout.entries DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION thresholdout.waits()",
            "emptied",
        )
    with SQLLedger(through(proxy, address)) as ledger:
        ask(ledger, "a")
        proxy.cut_commits = [cut]
        answer, failure = ask_or_fail(ledger, "b")
        if answer is None:
            assert "nothing was stored" in failure
            assert "b" not in stored(address)
            time.sleep(0.3 if slow or cut == "late" else 0.0)
            assert "b" not in stored(address)
            assert cut != "after"
            answer = ask(ledger, "b")
        else:
            assert cut in ("while", "after")
        assert proxy.cuts == 1
        assert stored(address)["b"] == repr(answer.value)
        assert ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism()) == (answer, True)
        ask(ledger, "c")
    assert list(stored(address)) == ["a", "b", "c"]


@pytest.mark.slow
def test_a_server_that_stays_away_after_the_commit(address: str, proxy: Proxy) -> None:
    with SQLLedger(through(proxy, address), timeout=5) as ledger:
        first = ask(ledger, "first")
        proxy.cut_commits = ["after"]
        refuser = threading.Timer(0.0, proxy.refuse)
        refuser.start()
        refuser.join()
        with pytest.raises(LedgerUnusable, match=r"may be stored and charged.*Ask again with the same key"):
            ask(ledger, "a")
        proxy.refuse(False)
        mechanism = Mechanism()
        _, repeated = ledger.ask(GUARD, "a", 0.5, "accuracy", mechanism)
        assert (repeated, mechanism.states) == (True, [])
    assert list(stored(address)) == [first.key, "a"]


@pytest.mark.slow
def test_a_line_that_is_cut_anywhere(address: str, proxy: Proxy) -> None:
    """Whatever is said of a query is true: an answer is stored, and what was not stored is not."""
    proxy.cut_anywhere = at_random(0, 0.02)
    answers: dict[str, str] = {}
    refused = 0
    ledger = opened(through(proxy, address))
    for number in range(300):
        key = str(number)
        while key not in answers:
            answer, failure = ask_or_fail(ledger, key)
            if answer is None:
                refused += 1
                assert "nothing was stored" in failure
            else:
                answers[key] = repr(answer.value)
    ledger.close()
    assert proxy.cuts > 20
    assert refused > 5
    assert stored(address) == answers


def opened(address: str) -> SQLLedger:
    while True:
        with suppress(LedgerUnusable):
            return SQLLedger(address)


@pytest.mark.slow
def test_locked_by_another_process(address: str) -> None:
    mechanism = Mechanism()
    with SQLLedger(address, timeout=0.2) as ledger, psycopg.connect(address) as other:
        other.execute("SELECT 1 FROM thresholdout.guards FOR UPDATE")
        with pytest.raises(LedgerUnusable, match=r"Another process keeps it locked. Try again"):
            ledger.ask(GUARD, "a", 0.5, "accuracy", mechanism)
        assert mechanism.states == []
        other.rollback()
        ask(ledger, "a")


@pytest.mark.slow
def test_a_query_waits_for_another_process(server: Server, address: str) -> None:
    with SQLLedger(address, timeout=PATIENCE) as ledger, psycopg.connect(address) as other:
        other.execute("SELECT 1 FROM thresholdout.guards FOR UPDATE")
        seen: list[dict[str, str]] = []

        def let_it_go() -> None:
            waiting_session(server)
            seen.append(stored(address))
            other.rollback()

        thread = threading.Thread(target=let_it_go)
        thread.start()
        ask(ledger, "a")
        thread.join()
        assert seen == [{}]
    assert list(stored(address)) == ["a"]


@pytest.mark.slow
def test_a_query_that_is_cancelled(server: Server, address: str) -> None:
    with SQLLedger(address, timeout=PATIENCE) as ledger, psycopg.connect(address) as other:
        other.execute("SELECT 1 FROM thresholdout.guards FOR UPDATE")
        thread = threading.Thread(target=lambda: server.run(f"SELECT pg_cancel_backend({waiting_session(server)})"))
        thread.start()
        with pytest.raises(LedgerUnusable, match="or was cancelled"):
            ask(ledger, "a")
        thread.join()
        other.rollback()
        ask(ledger, "a")
    assert list(stored(address)) == ["a"]


@pytest.mark.slow
def test_clients_killed_at_lines_of_a_query(address: str) -> None:
    """At every eighth one; for a file, a test kills at all of them."""
    (said,) = finish(start("killed_at_every_line", address, 8))
    kills, before = map(int, said.split())
    assert kills > 50
    assert 0 < before < kills


@pytest.mark.slow
def test_clients_killed_at_random(address: str) -> None:
    (said,) = finish(start("killed_at_random", address, 40))
    assert int(said.split()[0]) >= 10  # one at least each time


@pytest.mark.slow
def test_processes_share_one_budget(server: Server) -> None:
    address = server.emptied_database()  # whichever process comes first makes the tables
    processes = [start("asks", address, 40) for _ in range(4)]
    answers = [line for process in processes for line in finish(process)]
    entries = stored(address)
    assert len(entries) == 161
    assert sorted(f"{key} {value}" for key, value in entries.items() if key != "shared") == sorted(answers)


@pytest.mark.slow
def test_forked_processes_share_one_budget(server: Server) -> None:
    assert finish(start("forks", server.emptied_database())) == ["[0, 0, 0] 122"]


@pytest.mark.slow
def test_a_fork_in_the_middle_of_a_query_is_refused(server: Server) -> None:
    refusal, count = finish(start("forks_inside", server.emptied_database()))
    assert refusal.startswith("LedgerUnusable: ")
    assert "forked during a query" in refusal
    assert count == "2"


@pytest.mark.slow
def test_a_server_that_is_killed(server_key: str) -> None:
    """Three processes ask while the server loses all its processes at once, and comes back."""
    reason = postgres_server.missing()
    if reason is not None:
        pytest.skip(reason)
    server = Server()
    try:
        address = server.new_database()
        with SQLLedger(address) as ledger:
            ledger.create(GUARD, {}, FIRST)
        processes = [start("asks_stubbornly", address, f"{number}-") for number in range(3)]
        for kills in range(1, 4):
            while count(address) < 100 * kills:
                time.sleep(0.02)
            if kills < 3:
                server.kill()
                server.start()
        for process in processes:
            os.kill(process.pid, signal.SIGTERM)
        answers = dict(line.split() for process in processes for line in finish(process))
        assert answers.items() <= stored(address).items()
        assert len(answers) >= 300 - 3 * 2
    finally:
        server.stop()


def count(address: str) -> int:
    with psycopg.connect(address) as connection:
        ((found,),) = connection.execute("SELECT count(*) FROM thresholdout.entries").fetchall()
    return int(found)
