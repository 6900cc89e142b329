"""What a guard is called says nothing about its records, and one holdout has one guard in a ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from thresholdout import KFoldGuard, Thresholdout
from thresholdout.cli import main
from thresholdout.data.identity import content_of
from thresholdout.errors import BudgetExhausted, LedgerMismatch, LedgerUnusable
from thresholdout.ledger import (
    Ledger,
    MemoryLedger,
    SQLLedger,
    encrypt,
    export_history,
    make_key_file,
    move,
    rotate_key,
)
from thresholdout.mechanisms import LadderParameters
from thresholdout.report import report_of

N = 400
X = np.arange(N)


def labels(last: int) -> np.ndarray:
    return np.append(X[:-1] % 2, last)


def make(ledger: Ledger | Path, last: int = 1, queries: int = 20) -> Thresholdout:
    mechanism = LadderParameters(queries=queries)
    return Thresholdout((X, labels(last)), mechanism=mechanism, ledger=ledger)


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    with MemoryLedger() if request.param == "memory" else SQLLedger(tmp_path / "guard.db") as made:
        yield made


def guesses() -> list[str]:
    """What an attacker can compute who knows everything but one label."""
    known = [content_of((X, labels(last))) for last in (0, 1)]
    return [digest for content in known for digest in (content.identity, content.order)]


def test_the_same_records_are_called_otherwise_each_time() -> None:
    names = [make(MemoryLedger())._id for _ in range(6)]
    assert len(set(names)) == 6
    assert {len(name) for name in names} == {32}
    assert all(int(name, 16) >> 128 == 0 for name in names)


def test_nothing_public_settles_the_last_unknown_label(tmp_path: Path) -> None:
    file, key = tmp_path / "guard.db", tmp_path / "key"
    make_key_file(key)
    with SQLLedger(file, key_file=key) as ledger:
        make(ledger).ask(0.5, labels(1))
        (guard,) = ledger.guards()
        export_history(ledger, guard, tmp_path / "history.jsonl")
        shown = [guard, str(ledger.parameters(guard)), report_of(ledger, guard).html, ledger.checkpoint(guard)]
        shown.append(repr(ledger.entries(guard)))
    shown.append((tmp_path / "history.jsonl").read_text())
    shown.append(CliRunner(env={"THRESHOLDOUT_KEY_FILE": str(key)}).invoke(main, ["guard", "status", str(file)]).output)
    shown.append(file.read_bytes().decode("latin-1"))  # nor does the encrypted file itself
    assert guard[:12] in shown[-2]
    for text in shown:
        for guess in guesses():
            assert guess not in text
            assert guess[:12] not in text


def test_two_ledgers_keep_digests_that_have_nothing_in_common(tmp_path: Path) -> None:
    digests = []
    for name in ("a.db", "b.db"):
        make(tmp_path / name)
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            digests += [digest for (digest,) in connection.execute("SELECT content FROM guards")]
    assert len(set(digests)) == 2
    assert not set(digests) & set(guesses())


def test_the_same_records_are_the_same_guard(ledger: Ledger) -> None:
    make(ledger).ask(0.5, labels(1))
    assert make(ledger).status.answers_left == 19
    with pytest.raises(LedgerMismatch, match="declared with mechanism"):
        make(ledger, queries=30)
    turned = (X[::-1], labels(1)[::-1])
    assert Thresholdout(turned, mechanism=LadderParameters(queries=20), ledger=ledger).status.answers_left == 19
    assert len(ledger.guards()) == 1
    make(ledger, 0)  # other records
    assert len(ledger.guards()) == 2


def test_a_second_list_is_paid_from_what_the_first_one_left(ledger: Ledger) -> None:
    """The attack that a second budget for the same records makes easy: a list of values, then a vote over them.

    Each of 400 values is 1 with probability a half, whatever the records say; the vote counts those that were above a
    half, and is above a half itself by far more than the interval of a fresh list. One error budget, whoever asks,
    leaves nothing for a second list that takes all of it.
    """
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (11, N))

    def opened() -> Thresholdout:
        return Thresholdout((X, labels(1)), ledger=ledger)

    told = opened().ask_all([(0.5, value) for value in values], binary=True, reserve=0)
    vote = np.mean([value == (answer.value > 0.5) for value, answer in zip(values, told, strict=True)], axis=0) > 0.5
    second = opened()
    assert second.status.error_budget_left == opened().status.error_budget_left == 0.0
    with pytest.raises(BudgetExhausted):
        second.ask_all([(0.5, vote)], binary=True, reserve=0)
    assert len(second.history) == 11
    fresh = Thresholdout((X, labels(1)))  # what a second budget would have said
    low, _ = fresh.ask_all([(0.5, vote)], binary=True, reserve=0)[0].interval
    assert low > 0.5  # which is false: the truth of the vote is a half


def test_nobody_names_whose_guard_it_is(ledger: Ledger) -> None:
    for make_one in (
        lambda: Thresholdout((X, labels(1)), ledger=ledger, owner="ann"),  # type: ignore[call-arg]
        lambda: KFoldGuard((X.reshape(-1, 1), labels(1)), ledger=ledger, owner="ann"),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match="owner"):
            make_one()


def test_a_guard_that_moves_is_found_by_the_other_ledgers_secret(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "a.db") as old, SQLLedger(tmp_path / "b.db") as new:
        make(old).ask(0.5, labels(1))
        (guard,) = old.guards()
        move(old, new, guard)
        assert make(new).status.answers_left == 19
        assert new.guards() == [guard]
        digests = []
        for ledger in (old, new):
            digests += ledger.database.read("SELECT content FROM guards")
        assert len(set(digests)) == 2


def test_a_guard_does_not_move_beside_another_for_the_same_records(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "a.db") as old, SQLLedger(tmp_path / "b.db") as new:
        make(old)
        make(new)
        (guard,) = old.guards()
        with pytest.raises(LedgerMismatch, match=r"for the same records.*in another ledger"):
            move(old, new, guard)
        assert old.closed(guard) is None
        with SQLLedger(tmp_path / "c.db") as third:
            move(old, third, guard)
            assert third.guards() == [guard]


def test_encryption_and_new_keys_keep_what_guards_are_found_by(tmp_path: Path) -> None:
    file, one, two = tmp_path / "guard.db", tmp_path / "one", tmp_path / "two"
    make_key_file(one)
    make_key_file(two)
    make(file).ask(0.5, labels(1))
    with closing(sqlite3.connect(file)) as connection:
        ((secret,),) = connection.execute("SELECT value FROM settings WHERE name = 'secret'").fetchall()
    for key in (one, two):
        if key is one:
            encrypt(file, key_file=one)
        else:
            rotate_key(file, new_key_file=two, key_file=one)
        with SQLLedger(file, key_file=key) as ledger:
            assert make(ledger).status.answers_left == 19
        stored = file.read_bytes()
        for plain in (secret, *guesses()):
            assert plain.encode() not in stored


def test_the_order_is_compared_by_who_comes_second(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    """Two processes that make a guard at once: the second finds the first one's, and its order."""
    from graphs import MovingWindow

    def turned() -> Thresholdout:
        mechanism = LadderParameters(queries=20)
        records, model = (X[::-1], labels(1)[::-1]), MovingWindow(N, 2)
        return Thresholdout(records, mechanism=mechanism, dependence=model, ledger=ledger)

    first = Thresholdout(
        (X, labels(1)), mechanism=LadderParameters(queries=20), dependence=MovingWindow(N, 2), ledger=ledger
    )
    with monkeypatch.context() as patch:
        patch.setattr("thresholdout.guard.registration.known_as", lambda *_: None)
        with pytest.raises(LedgerMismatch, match="in another order"):
            turned()
    with pytest.raises(LedgerMismatch, match="in another order"):
        turned()
    assert ledger.guards() == [first._id]


def test_rules_that_this_program_does_not_know_are_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("thresholdout.guard.registration.RULES", 2)
        assert ledger.parameters(make(ledger)._id)["rules"] == 2
    with pytest.raises(LedgerUnusable, match="rules of version 2, but this version knows 1"):
        make(ledger)
