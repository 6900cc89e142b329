"""Histories that leave a ledger, and guards that move to another one."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.patience import PATIENCE
from tests.sizes import corners
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET, Mechanism, assert_consistent, state_after
from thresholdout.errors import InputError, LedgerClosed, LedgerDamaged, LedgerError, LedgerMismatch, LedgerUnusable
from thresholdout.ledger import Ledger, MemoryLedger, SQLLedger
from thresholdout.ledger.cipher import new_key
from thresholdout.ledger.entry import JSON, Entry
from thresholdout.ledger.transfer import export_history, import_history, move, verify_export

ROOT = Path(__file__).parents[3]
PARAMETERS: dict[str, JSON] = {"threshold": 0.1, "name": "größe", "budget": None}
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


def fill(ledger: Ledger, asked: int = 3) -> Ledger:
    ledger.create(GUARD, PARAMETERS, FIRST, {"labels": SECRET, "more": "ä"})
    for number in range(asked):
        ledger.ask(GUARD, f"key {number}", 0.5, "accuracy", Mechanism())
    return ledger


@pytest.fixture(params=["memory", "sqlite"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    with MemoryLedger() if request.param == "memory" else SQLLedger(tmp_path / "source.db") as ledger:
        yield fill(ledger)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Ledger]:
    with SQLLedger(tmp_path / "target.db") as ledger:
        yield ledger


# Export and import


@pytest.mark.slow
def test_a_history_goes_around(source: Ledger, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    written = export_history(source, GUARD, file)
    assert (written.guard, written.checkpoint, written.count) == (GUARD, source.checkpoint(GUARD), 3)
    assert json.loads(written.parameters) == PARAMETERS
    assert verify_export(file) == written
    assert SECRET.encode() not in file.read_bytes()
    for copy in (MemoryLedger(), SQLLedger(tmp_path / "copy.db"), SQLLedger(tmp_path / "encrypted.db", key=new_key())):
        with copy:
            assert import_history(copy, file) == GUARD
            assert copy.entries(GUARD) == source.entries(GUARD)
            assert copy.parameters(GUARD) == PARAMETERS
            assert copy.verify(GUARD, source.checkpoint(GUARD)) == 3
            assert copy.checkpoint(GUARD) == source.checkpoint(GUARD)
            assert copy.documents(GUARD) == []
            mechanism = Mechanism()
            for key in (None, "key 0"):
                with pytest.raises(LedgerClosed, match="imported history"):
                    copy.ask(GUARD, key, 0.5, "accuracy", mechanism)
            assert mechanism.states == []
            again = tmp_path / "again.jsonl"
            export_history(copy, GUARD, again)
            assert again.read_bytes() == file.read_bytes()
            with pytest.raises(LedgerMismatch, match="already"):
                import_history(copy, file)
            assert_closed_stays(copy)
    assert_consistent(source)


def assert_closed_stays(copy: Ledger) -> None:
    with pytest.raises(LedgerClosed):
        copy.put_document(GUARD, "labels", "x")
    with pytest.raises(LedgerClosed):
        copy.close_guard(GUARD, "other")


@pytest.mark.slow
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts.filter(bool),
    st.dictionaries(texts, st.none() | st.booleans() | st.integers() | numbers | texts | st.lists(numbers), max_size=4),
    st.lists(st.tuples(texts, numbers, numbers, texts, st.none() | st.integers(0, 2**40)), max_size=5),
)
def test_any_history_goes_around(
    tmp_path_factory: pytest.TempPathFactory,
    guard: str,
    parameters: dict[str, JSON],
    rows: list[tuple[str, float, float, str, int | None]],
) -> None:
    folder = tmp_path_factory.mktemp("any")
    entries = [
        Entry(number, f"k{number}", name, train + 0.0, value + 0.0, 0.5, 0.75, source, left, -1.0, 1.0)
        for number, (name, train, value, source, left) in enumerate(rows, 1)
    ]
    with SQLLedger(folder / "a.db") as old, SQLLedger(folder / "b.db", key=new_key()) as new, MemoryLedger() as copy:
        old.restore(guard, parameters, "state", {"": "text"}, entries)
        export_history(old, guard, folder / "history.jsonl")
        import_history(copy, folder / "history.jsonl")
        move(old, new, guard)
        for ledger in (copy, new):
            assert ledger.entries(guard) == entries
            assert ledger.checkpoint(guard) == old.checkpoint(guard)
            assert ledger.parameters(guard) == parameters
        assert (new.state(guard), new.document(guard, "")) == ("state", "text")


def test_a_damaged_file_is_not_imported(source: Ledger, target: Ledger, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    export_history(source, GUARD, file)
    lines = file.read_text().splitlines()
    fields = json.loads(lines[3])
    lines[3] = json.dumps(fields | {"value": fields["value"] / 2})
    file.write_text("\n".join(lines))
    with pytest.raises(LedgerDamaged, match="Line 4 is damaged") as caught:
        import_history(target, file)
    assert caught.value.query == 3
    assert target.guards() == []
    with pytest.raises(LedgerUnusable, match="not an exported history"):
        import_history(target, __file__)


def test_parameters_in_another_hand_are_not_imported(target: Ledger, tmp_path: Path) -> None:
    """A ledger would write them differently, and the chain would start elsewhere."""
    from tests.thresholdout.ledger.test_history_file import write

    file = write(tmp_path / "history.jsonl", parameters='{"budget":2}')
    assert verify_export(file).count == 3
    with pytest.raises(LedgerDamaged, match="parameters are not in the form in which a ledger writes them"):
        import_history(target, file)
    assert target.guards() == []


def test_a_checkpoint_that_was_kept_shows_a_file_written_anew(source: Ledger, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    checkpoints = [export_history(source, GUARD, file).checkpoint]
    source.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    checkpoints.append(export_history(source, GUARD, file).checkpoint)
    for checkpoint in checkpoints:
        assert verify_export(file, checkpoint).count == 4
    with MemoryLedger() as forged:
        entries = [replace(entry, name="forged") for entry in source.entries(GUARD)]
        forged.restore(GUARD, PARAMETERS, "", {}, entries)
        export_history(forged, GUARD, file)
    assert verify_export(file).count == 4
    for checkpoint in checkpoints:
        with pytest.raises(LedgerDamaged, match="None of its 4 entries has the checkpoint that was kept"):
            verify_export(file, checkpoint)


def test_a_damaged_history_is_not_exported(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "source.db") as ledger:
        fill(ledger)
        damage(ledger)
        with pytest.raises(LedgerDamaged, match="do not match their checkpoint"):
            export_history(ledger, GUARD, tmp_path / "history.jsonl")
        with pytest.raises(LedgerMismatch):
            export_history(ledger, "none", tmp_path / "history.jsonl")
    assert not (tmp_path / "history.jsonl").exists()


def damage(ledger: SQLLedger) -> None:
    ledger.database.transact(lambda cursor: cursor.execute("DROP TRIGGER entries_update"))
    ledger.database.transact(lambda cursor: cursor.execute("UPDATE entries SET value = 0.125 WHERE query = 2"))


# Moves


@pytest.mark.slow
@for_each("keys", [(None, None), (None, "new"), ("old", "new")])
def test_a_guard_moves_with_all_it_has(tmp_path: Path, keys: tuple[str | None, str | None]) -> None:
    old_key, new_key_ = (None if key is None else new_key() for key in keys)
    with SQLLedger(tmp_path / "a.db", key=old_key) as old, SQLLedger(tmp_path / "b.db", key=new_key_) as new:
        fill(old)
        move(old, new, GUARD)
        assert_moved(old, new)


def assert_moved(old: Ledger, new: Ledger) -> None:
    assert new.entries(GUARD) == old.entries(GUARD)
    assert new.checkpoint(GUARD) == old.checkpoint(GUARD)
    assert new.parameters(GUARD) == PARAMETERS
    assert (new.document(GUARD, "labels"), new.document(GUARD, "more")) == (SECRET, "ä")
    assert_consistent(new)
    mechanism = Mechanism()
    for key in (None, "key 1"):
        with pytest.raises(LedgerClosed, match="it was moved to") as caught:
            old.ask(GUARD, key, 0.5, "accuracy", mechanism)
        assert new.location in caught.value.why
    assert mechanism.states == []
    entry, repeated = new.ask(GUARD, "key 1", 0.5, "accuracy", mechanism)
    assert (entry, repeated) == (old.entries(GUARD)[1], True)
    entry, _ = new.ask(GUARD, None, 0.5, "accuracy", mechanism)
    assert mechanism.states == [state_after(old.entries(GUARD))]
    assert entry.query == 4
    assert_consistent(new)
    assert_consistent(old)


def test_a_guard_moves_from_memory(target: Ledger) -> None:
    with MemoryLedger() as ledger:
        fill(ledger)
        move(ledger, target, GUARD)
        assert_moved(ledger, target)


def test_what_is_encrypted_does_not_move_into_plain_text(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "a.db", key=new_key()) as old, SQLLedger(tmp_path / "b.db") as new:
        fill(old)
        with pytest.raises(InputError, match="a ledger in plain text for encrypted secrets"):
            move(old, new, GUARD)
        assert old.closed(GUARD) is None
        assert new.guards() == []


def test_one_guard_of_several_moves(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "a.db") as old, SQLLedger(tmp_path / "b.db") as new:
        fill(old)
        old.create("other", {}, FIRST)
        new.create("third", {}, FIRST)
        move(old, new, GUARD)
        assert new.guards() == ["third", GUARD]
        old.ask("other", None, 0.5, "accuracy", Mechanism())
        assert_moved(old, new)


@pytest.mark.slow
def test_moves_that_are_refused_change_nothing(source: Ledger, target: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"target must be .*; got a ledger in memory"):
        move(source, MemoryLedger(), GUARD)
    with pytest.raises(LedgerMismatch, match="has no guard"):
        move(source, target, "none")
    target.create(GUARD, PARAMETERS, FIRST)
    with pytest.raises(LedgerMismatch, match="already, open for queries"):
        move(source, target, GUARD)
    if isinstance(source, SQLLedger):
        with SQLLedger(tmp_path / "source.db") as same, pytest.raises(InputError, match="the source itself"):
            move(source, same, GUARD)
    source.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    assert source.closed(GUARD) is None
    assert target.entries(GUARD) == []
    source.close_guard(GUARD, "the study has ended")
    with SQLLedger(tmp_path / "third.db") as third:
        with pytest.raises(LedgerClosed, match="the study has ended"):
            move(source, third, GUARD)
        assert third.guards() == []


def test_a_damaged_history_does_not_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SQLLedger(tmp_path / "a.db") as old, SQLLedger(tmp_path / "b.db") as new:
        fill(old)
        damage(old)
        with pytest.raises(LedgerDamaged):
            move(old, new, GUARD)
        assert old.closed(GUARD) is None
        monkeypatch.setattr(old, "verify", lambda guard: 3)  # as if it were damaged a moment later
        with pytest.raises(LedgerDamaged, match="do not lead to its checkpoint"):
            move(old, new, GUARD)
        assert new.guards() == []
        assert old.closed(GUARD) is not None


@pytest.mark.slow
def test_only_the_named_target_takes_a_guard(source: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SQLLedger(tmp_path / "b.db") as new, SQLLedger(tmp_path / "c.db") as third:
        with monkeypatch.context() as patch:
            patch.setattr(new, "restore", refuse)
            with pytest.raises(LedgerUnusable):
                move(source, new, GUARD)
        for _ in range(2):
            with pytest.raises(LedgerClosed, match="it was moved to"):
                move(source, third, GUARD)
            assert third.guards() == []
            move(source, new, GUARD)
        assert_moved(source, new)
        if isinstance(source, SQLLedger):
            with pytest.raises(LedgerMismatch, match="already, closed \\(it was moved"):
                move(new, source, GUARD)
        move(new, third, GUARD)  # it may move on
        move(source, new, GUARD)
        assert third.closed(GUARD) is None
        assert_consistent(third)


def test_a_target_that_was_renamed_is_found_again(
    source: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SQLLedger(tmp_path / "b.db") as new, monkeypatch.context() as patch:
        patch.setattr(new, "restore", refuse)
        with pytest.raises(LedgerUnusable):
            move(source, new, GUARD)
    (tmp_path / "b.db").rename(tmp_path / "renamed.db")
    with SQLLedger(tmp_path / "renamed.db") as new:
        move(source, new, GUARD)
        assert_consistent(new)
        assert new.closed(GUARD) is None


def refuse(*arguments: object) -> None:
    raise LedgerUnusable("target", "the disk is full")


def test_another_history_at_the_target_is_not_taken_for_this_one(
    source: Ledger, target: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(target, "restore", refuse)
        with pytest.raises(LedgerUnusable):
            move(source, target, GUARD)
    target.create(GUARD, PARAMETERS, FIRST)
    with pytest.raises(LedgerDamaged, match="checkpoint"):
        move(source, target, GUARD)


def test_moving_from_several_threads_at_once(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "a.db") as old:
        fill(old)
    errors: list[LedgerError] = []

    def run() -> None:
        try:
            with SQLLedger(tmp_path / "a.db") as old, SQLLedger(tmp_path / "b.db") as new:
                move(old, new, GUARD)
        except LedgerError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with SQLLedger(tmp_path / "a.db") as old, SQLLedger(tmp_path / "b.db") as new:
        assert errors == []
        assert_moved(old, new)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seen"),
    corners(
        [
            ("moves", ["source", "none", "target"]),
            ("encrypts", ["plain", "encrypted"]),
            ("rotates_key", ["old", "new"]),
        ],
        2,
    ),
)
def test_killed_at_every_step(tmp_path: Path, kind: str, seen: list[str]) -> None:
    """What is there changes at one step, and is always whole; done again, all is as if nothing had happened."""
    words = [sys.executable, "-W", "error", "-m", "tests.thresholdout.ledger.killed_steps", kind, str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    steps, *found = done.stdout.split()
    assert found == seen
    assert int(steps) > 15
