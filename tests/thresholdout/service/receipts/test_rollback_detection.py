"""A ledger that is put back is refused when it starts; every state that a witness can be in is told apart."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cases import for_each
from tests.sizes import sizes
from tests.thresholdout.ledger.mechanism import GUARD
from tests.thresholdout.ledger.postgres_server import Server
from tests.thresholdout.service.receipts.leaderboards import asked, copied
from thresholdout.errors import InputError
from thresholdout.ledger import SQLLedger
from thresholdout.service.receipts import witness as witness_module
from thresholdout.service.receipts.errors import LedgerOutdated, WitnessUnusable
from thresholdout.service.receipts.rollback_detection import (
    accepted_copies,
    check_newest,
    copy_notes,
    proved_until,
    remember_line,
)
from thresholdout.service.receipts.witness import AddressWitness, FileWitness, Witness, witness_at
from thresholdout.service.receipts.witnessing import Witnessing

OTHER = "other guard"


@pytest.fixture
def leaderboard(tmp_path: Path) -> Path:
    return tmp_path / "leaderboard.db"


@pytest.fixture
def witness(tmp_path: Path) -> FileWitness:
    return FileWitness(tmp_path / "elsewhere.jsonl")


def life(
    leaderboard: Path | str, witness: Witness | None, count: int, *, guard: str = GUARD, accept: str | None = None
) -> None:
    """One life of a service: it starts, answers, tells its witness, and stops."""
    with SQLLedger(leaderboard) as ledger:
        check_newest(ledger, witness, accept=accept)
        witnessing = None if witness is None else Witnessing(witness, ledger.identity())
        start = ledger.count(guard) if guard in ledger.guards() else 0
        for number in range(start, start + count):
            asked(ledger, 1, guard, start=number)
            if witnessing is not None:
                witnessing.note(guard, number + 1, ledger.checkpoint(guard))
                assert witnessing.settle(30)
        if witnessing is not None:
            assert witnessing.close(30)
            remember_line(ledger, witnessing.last_line)


def starts(leaderboard: Path | str, witness: Witness | None) -> None:
    life(leaderboard, witness, 0)


# Copies


def test_a_service_that_only_stops_and_starts_is_never_refused(leaderboard: Path, witness: FileWitness) -> None:
    for count in (3, 0, 1, 2):
        life(leaderboard, witness, count)
    with SQLLedger(leaderboard) as ledger:
        assert (ledger.count(GUARD), copy_notes(ledger, GUARD)) == (6, ())


def test_an_older_copy_is_refused(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    life(leaderboard, witness, 3)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 2)
    copied(copy, leaderboard)
    with pytest.raises(LedgerOutdated, match="This copy is older than") as refused:
        starts(leaderboard, witness)
    assert refused.value.behind == {GUARD: (5, 3)}
    before = leaderboard.read_bytes()
    with pytest.raises(LedgerOutdated):
        starts(leaderboard, witness)
    assert leaderboard.read_bytes() == before  # refused before anything was written


def test_a_copy_from_before_the_first_answer_is_refused(
    leaderboard: Path, witness: FileWitness, tmp_path: Path
) -> None:
    life(leaderboard, witness, 0)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 2)
    copied(copy, leaderboard)
    with pytest.raises(LedgerOutdated) as refused:
        starts(leaderboard, witness)
    assert refused.value.behind == {GUARD: (2, 0)}  # the guard itself is missing


def test_the_newest_copy_is_as_good_as_the_original(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    life(leaderboard, witness, 3)
    copy = copied(leaderboard, tmp_path / "copy")
    leaderboard.unlink()
    copied(copy, leaderboard)
    life(leaderboard, witness, 2)


def test_a_copy_that_has_answered_on_its_own_is_refused(
    leaderboard: Path, witness: FileWitness, tmp_path: Path
) -> None:
    """It has as many answers as the original, and they are other ones."""
    life(leaderboard, witness, 3)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 2)
    with SQLLedger(copy) as ledger:
        asked(ledger, 2, start=3)
    with pytest.raises(LedgerOutdated) as refused:
        starts(copy, witness)
    assert refused.value.behind == {GUARD: (5, 3)}


def test_two_copies_that_answered_at_the_same_time_are_both_refused(
    leaderboard: Path, witness: FileWitness, tmp_path: Path
) -> None:
    """A machine that was cloned: when each started, it was the newest copy."""
    life(leaderboard, witness, 3)
    copy = copied(leaderboard, tmp_path / "copy")
    with SQLLedger(leaderboard) as one, SQLLedger(copy) as two:
        for ledger in (one, two):
            check_newest(ledger, witness)
        for number in (3, 4):
            for ledger in (one, two):
                asked(ledger, 1, start=number)
        for ledger, query in ((one, 4), (two, 5)):  # no query is told by both
            checkpoint = ledger._links(GUARD, query, 1)[0][1]
            telling = Witnessing(witness, ledger.identity())
            telling.note(GUARD, query, checkpoint)
            assert telling.close(30)
    for file in (leaderboard, copy):
        with pytest.raises(LedgerOutdated) as refused:
            starts(file, witness)
        assert refused.value.behind[GUARD][1] == (3 if file == copy else 4)


def test_a_checkpoint_that_is_wrong_counts_against_those_that_were_compared_before(
    leaderboard: Path, witness: FileWitness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two copies at the same time the witness hears much of one, then of the first answer of the other."""
    from thresholdout.service.receipts import rollback_detection as checkpoint_comparison

    monkeypatch.setattr(checkpoint_comparison, "_AT_ONCE", 2)
    life(leaderboard, witness, 3)
    copy = copied(leaderboard, tmp_path / "copy")
    with SQLLedger(copy) as ledger:
        check_newest(ledger, witness)
        asked(ledger, 1, start=3)
        checkpoint = ledger.checkpoint(GUARD)
    life(leaderboard, witness, 7)
    with SQLLedger(leaderboard) as ledger:
        telling = Witnessing(witness, ledger.identity())
        telling.note(GUARD, 4, checkpoint)
        assert telling.close(30)
    with pytest.raises(LedgerOutdated) as refused:
        starts(leaderboard, witness)
    assert refused.value.behind == {GUARD: (10, 3)}
    life(leaderboard, witness, 0, accept="a machine that was cloned")
    with SQLLedger(leaderboard) as ledger:
        assert proved_until(ledger, GUARD) == 3
        assert "Unless two copies answered at the same time, answers up to number 3" in copy_notes(ledger, GUARD)[0]


def test_one_guard_of_many_is_named(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    life(leaderboard, witness, 2)
    life(leaderboard, witness, 2, guard=OTHER)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 1, guard=OTHER)
    copied(copy, leaderboard)
    with pytest.raises(LedgerOutdated) as refused:
        starts(leaderboard, witness)
    assert refused.value.behind == {OTHER: (3, 2)}


def test_a_closed_guard_spends_nothing_twice(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    life(leaderboard, witness, 2)
    life(leaderboard, witness, 2, guard=OTHER)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 1, guard=OTHER)
    copied(copy, leaderboard)
    with SQLLedger(leaderboard) as ledger:
        ledger.close_guard(OTHER, "an older copy was put back")
    life(leaderboard, witness, 1)
    starts(leaderboard, witness)


def test_a_crash_between_answer_and_witness_is_no_older_copy(leaderboard: Path, witness: FileWitness) -> None:
    life(leaderboard, witness, 2)
    with SQLLedger(leaderboard) as ledger:
        check_newest(ledger, witness)
        asked(ledger, 3, start=2)
    starts(leaderboard, witness)
    assert json.loads(list(witness.lines(""))[-2])["query"] == 5  # told when it started again


def test_many_checkpoints_are_compared_in_slices(
    leaderboard: Path, witness: FileWitness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thresholdout.service.receipts import rollback_detection as checkpoint_comparison

    monkeypatch.setattr(checkpoint_comparison, "_AT_ONCE", 3)
    monkeypatch.setattr(checkpoint_comparison, "_GAP", 1)
    life(leaderboard, witness, 4)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 8)
    starts(leaderboard, witness)
    copied(copy, leaderboard)
    with pytest.raises(LedgerOutdated) as refused:
        starts(leaderboard, witness)
    assert refused.value.behind == {GUARD: (12, 4)}


def test_several_ledgers_share_a_witness(witness: FileWitness, tmp_path: Path) -> None:
    for name in ("one.db", "two.db"):
        life(tmp_path / name, witness, 2)
    copy = copied(tmp_path / "one.db", tmp_path / "copy")
    for name in ("one.db", "two.db"):
        life(tmp_path / name, witness, 1)
    copied(copy, tmp_path / "one.db")
    starts(tmp_path / "two.db", witness)
    with pytest.raises(LedgerOutdated):
        starts(tmp_path / "one.db", witness)


# Witnesses


def witnessed(leaderboard: Path, witness: FileWitness) -> Path:
    """Return the file of a witness that was told three answers."""
    life(leaderboard, witness, 3)
    return Path(witness.location)


def test_a_missing_witness_is_no_new_one(leaderboard: Path, witness: FileWitness) -> None:
    witnessed(leaderboard, witness).unlink()
    with pytest.raises(WitnessUnusable, match="missing"):
        starts(leaderboard, witness)
    assert not Path(witness.location).exists()


def test_another_witness_is_no_new_one(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    witnessed(leaderboard, witness)
    other = FileWitness(tmp_path / "other.jsonl")
    life(tmp_path / "other.db", other, 1)
    with pytest.raises(WitnessUnusable, match="another one"):
        starts(leaderboard, other)


def test_leaving_the_witness_out_is_refused(leaderboard: Path, witness: FileWitness) -> None:
    witnessed(leaderboard, witness)
    with pytest.raises(WitnessUnusable, match="no witness was named"):
        starts(leaderboard, None)


def test_without_any_witness_nothing_is_asked_for(leaderboard: Path) -> None:
    life(leaderboard, None, 2)
    starts(leaderboard, None)


def test_a_witness_may_begin_later_and_move(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    life(leaderboard, None, 2)
    moved = witnessed(leaderboard, witness).rename(tmp_path / "moved.jsonl")
    life(leaderboard, FileWitness(moved), 1)


def test_a_cut_witness_is_recognised(leaderboard: Path, witness: FileWitness) -> None:
    file = witnessed(leaderboard, witness)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(WitnessUnusable, match="cut"):
        starts(leaderboard, witness)


def test_a_cut_witness_still_finds_an_older_copy(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    life(leaderboard, witness, 1)
    copy = copied(leaderboard, tmp_path / "copy")
    file = witnessed(leaderboard, witness)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    copied(copy, leaderboard)
    with pytest.raises(LedgerOutdated) as refused:
        starts(leaderboard, witness)
    assert refused.value.behind == {GUARD: (3, 1)}


@sizes("changed", 30, 200)
def test_every_changed_character_of_a_witness_shows(leaderboard: Path, witness: FileWitness, changed: int) -> None:
    file = witnessed(leaderboard, witness)
    whole = file.read_bytes()
    for place in {*range(0, len(whole), max(1, len(whole) // changed)), len(whole) - 1}:
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(WitnessUnusable, match=r"damaged|cut"):
            starts(leaderboard, witness)


@pytest.mark.slow
@pytest.mark.parametrize("rest", [b"\0\0\0", b'{"ledger": "', b"\xff" * 9])
def test_a_line_that_was_cut_off_by_a_crash_does_no_harm(leaderboard: Path, witness: FileWitness, rest: bytes) -> None:
    file = witnessed(leaderboard, witness)
    with file.open("ab") as out:
        out.write(rest)
    life(leaderboard, witness, 1)
    starts(leaderboard, witness)
    assert rest + b"\n" in file.read_bytes()  # nothing is ever taken away


def test_what_stands_behind_a_cut_off_line_without_a_word_is_damage(leaderboard: Path, witness: FileWitness) -> None:
    file = witnessed(leaderboard, witness)
    with file.open("ab") as out:
        out.write(b'{"led\n')
    with pytest.raises(WitnessUnusable, match="Line 5 was not written by a service"):
        starts(leaderboard, witness)


def test_what_is_no_witness_is_refused_and_left_alone(leaderboard: Path, tmp_path: Path) -> None:
    file = tmp_path / "film"
    file.write_bytes(b"\0" * 100_000)
    with pytest.raises(WitnessUnusable, match="too long for a line"):
        starts(leaderboard, FileWitness(file))
    assert file.read_bytes() == b"\0" * 100_000


def test_a_witness_that_cannot_be_written_is_said_at_the_start(leaderboard: Path, tmp_path: Path) -> None:
    life(leaderboard, None, 1)
    with pytest.raises(WitnessUnusable, match="cannot be written"):
        starts(leaderboard, FileWitness(tmp_path / "missing" / "checkpoints.jsonl"))
    with pytest.raises(WitnessUnusable, match="cannot be read"):
        starts(leaderboard, FileWitness(tmp_path))


# Going on nevertheless


def test_an_accepted_copy_goes_on_and_every_leaderboard_says_so(
    leaderboard: Path, witness: FileWitness, tmp_path: Path
) -> None:
    life(leaderboard, witness, 3)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 2)
    copied(copy, leaderboard)
    life(leaderboard, witness, 4, accept="the disk broke")
    life(leaderboard, witness, 1, guard=OTHER)
    with SQLLedger(leaderboard) as ledger:
        (accepted,) = accepted_copies(ledger)
        assert (accepted.reason, accepted.behind, accepted.asked) == ("the disk broke", {GUARD: (5, 3)}, {GUARD: 3})
        (note,) = copy_notes(ledger, GUARD)
        assert "the disk broke" in note
        assert "up to number 5 at least" in note
        assert "Other answers after number 3 are not guaranteed" in note
        assert copy_notes(ledger, OTHER) == ()  # it was made later
    assert any("the disk broke" in line.decode() for line in witness.lines(""))


def test_what_was_accepted_once_is_not_accepted_again(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    life(leaderboard, witness, 3)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 2)
    copied(copy, leaderboard)
    life(leaderboard, witness, 1, accept="the disk broke")
    with pytest.raises(InputError, match="accept_rollback"):
        life(leaderboard, witness, 1, accept="the disk broke")
    copied(copy, leaderboard)
    with pytest.raises(LedgerOutdated) as refused:
        starts(leaderboard, witness)
    assert refused.value.behind == {GUARD: (4, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["missing", "damaged", "left out"])
def test_a_witness_that_is_lost_is_given_up_by_accepting(leaderboard: Path, witness: FileWitness, lost: str) -> None:
    file = witnessed(leaderboard, witness)
    if lost == "missing":
        file.unlink()
    else:
        file.write_bytes(b"x" + file.read_bytes())
    then = None if lost == "left out" else witness
    life(leaderboard, then, 1, accept="no backup of the witness")
    starts(leaderboard, then)
    with SQLLedger(leaderboard) as ledger:
        (note,) = copy_notes(ledger, GUARD)
        (later,) = copy_notes(ledger, "made later")
    assert "it may lack answers that were given" in note
    assert "Other answers after number 3 are not guaranteed" in note
    assert "its answers are not guaranteed" in later


def test_a_holdout_that_is_missing_is_not_forgotten(leaderboard: Path, witness: FileWitness, tmp_path: Path) -> None:
    life(leaderboard, witness, 1)
    copy = copied(leaderboard, tmp_path / "copy")
    life(leaderboard, witness, 2, guard=OTHER)
    copied(copy, leaderboard)
    with pytest.raises(LedgerOutdated) as refused:
        starts(leaderboard, witness)
    assert refused.value.behind == {OTHER: (2, 0)}
    life(leaderboard, witness, 1, guard="made again", accept="the disk broke")
    with SQLLedger(leaderboard) as ledger:
        (note,) = copy_notes(ledger, "made again")
        assert "If one of those had the records of this one" in note
        assert copy_notes(ledger, GUARD) == ()  # the witness confirmed it


@pytest.mark.parametrize("reason", ["", "  ", "a\nb", "\u202e", "x" * 501])
def test_a_reason_is_words(leaderboard: Path, witness: FileWitness, reason: str) -> None:
    with pytest.raises(InputError, match="accept_rollback"):
        life(leaderboard, witness, 0, accept=reason)


# Addresses


@contextmanager
def address(file: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Serve a witness from a file, and answer with the status that is set."""
    says = {"status": 200}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_for = parse_qs(urlsplit(self.path).query)["ledger"]
            lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
            self.answer(b"".join(line for line in lines if json.loads(line)["ledger"] in asked_for))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if says["status"] == 200:
                with file.open("ab") as out:
                    out.write(body)
            self.answer(b"")

        def answer(self, body: bytes) -> None:
            self.send_response(says["status"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/checkpoints", says
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
def test_an_address_is_as_good_as_a_file(leaderboard: Path, tmp_path: Path) -> None:
    with address(tmp_path / "far.jsonl") as (where, _):
        witness = witness_at(where)
        life(leaderboard, witness, 3)
        copy = copied(leaderboard, tmp_path / "copy")
        life(leaderboard, witness, 2)
        copied(copy, leaderboard)
        with pytest.raises(LedgerOutdated) as refused:
            starts(leaderboard, witness)
        assert refused.value.behind == {GUARD: (5, 3)}


@pytest.mark.slow
def test_an_address_that_is_silent_stops_a_start_and_no_answer(leaderboard: Path, tmp_path: Path) -> None:
    file = tmp_path / "far.jsonl"
    with address(file) as (where, says), SQLLedger(leaderboard) as ledger:
        witness = AddressWitness(where, seconds=30.0)
        check_newest(asked(ledger, 1), witness)
        says["status"] = 503
        witnessing = Witnessing(witness, ledger.identity())
        asked(ledger, 1, start=1)
        witnessing.note(GUARD, 2, ledger.checkpoint(GUARD))
        assert not witnessing.settle(0.05)
        assert witnessing.status().waiting == 1
        with pytest.raises(WitnessUnusable, match="503"):
            check_newest(ledger, witness)
        says["status"] = 200
        assert witnessing.settle(30)
        assert witnessing.status().failing_since is None
        assert witnessing.close(30)
        assert json.loads(file.read_bytes().splitlines()[-1])["query"] == 2
    with pytest.raises(WitnessUnusable, match="cannot be read"):
        starts(leaderboard, witness)


def test_an_address_whose_lines_take_too_long_stops_a_start(
    leaderboard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with address(tmp_path / "far.jsonl") as (where, _), SQLLedger(leaderboard) as ledger:
        check_newest(asked(ledger, 1), witness_at(where))
        monkeypatch.setattr(witness_module, "_STEPS", -1)  # the time is over with the first line
        with pytest.raises(WitnessUnusable, match="takes longer"):
            check_newest(ledger, witness_at(where))


@for_each("where", ["ftp://host/checkpoints", "http://user:secret@host/checkpoints"])
def test_addresses_that_are_refused(where: str) -> None:
    with pytest.raises(InputError, match="witness") as raised:
        witness_at(where)
    assert "secret" not in str(raised.value)


@pytest.mark.slow
def test_a_server_that_was_put_back_is_refused(server: Server, server_key: str, witness: FileWitness) -> None:
    name = server.new_database()
    life(name, witness, 2)
    base = urlsplit(name).path[1:]
    server.run(f"CREATE DATABASE {base}_copy TEMPLATE {base}")
    life(name, witness, 2)
    with pytest.raises(LedgerOutdated) as refused:
        starts(name.replace(base, f"{base}_copy"), witness)
    assert refused.value.behind == {GUARD: (4, 2)}
