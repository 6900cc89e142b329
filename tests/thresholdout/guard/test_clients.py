"""Several clients of one guard: what the history says, whose a key is, quotas and allowances."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout import Answer, Thresholdout
from thresholdout.data.client_states import client_key
from thresholdout.errors import BudgetExhausted, InputError, LedgerDamaged
from thresholdout.guard.guard_state import check_clients
from thresholdout.ledger import move, open_ledger

N = 1000
RECORDS = np.arange(float(N))


def ask(
    guard: Thresholdout,
    train_values: object,
    holdout_values: object | None = None,
    *,
    client: str,
    quota: int | None = None,
    since: float | None = None,
    name: str = "",
    key: str | None = None,
    binary: bool | None = None,
) -> Answer:
    """Ask for somebody, as a service does."""
    query, read, fails = guard._queries.ask(train_values, holdout_values, (0.0, 1.0), name, key, binary)
    asked = query.asked_by(client, quota, since)
    engine = guard._engine
    if fails:
        return engine.evaluate("train_values", asked, read)
    return engine.store_given(asked, replace(read(), known=asked.known))


def guard_of(**settings: object) -> Thresholdout:
    return Thresholdout(RECORDS, mechanism="leaderboard", **settings)  # type: ignore[arg-type]


def test_the_history_says_who_asked_and_keys_are_each_client_s_own(tmp_path: Path) -> None:
    guard = guard_of(ledger=tmp_path / "guard.db")
    first = ask(guard, 0.9, RECORDS < 900, key="a", name="mine", client="ann", binary=True)
    second = ask(guard, 0.5, RECORDS < 500, key="a", name="yours", client="bob", binary=True)
    again = ask(guard, 0.9, RECORDS < 900, key="a", name="mine", client="ann", binary=True)
    assert (first.repeated, second.repeated, again.repeated) == (False, False, True)
    assert (again.value, second.name) == (first.value, "yours")
    assert guard.history["client"].tolist() == ["ann", "bob"]
    with open_ledger(tmp_path / "guard.db") as ledger:
        (identity,) = ledger.guards()
        assert ledger.verify(identity) == 2
        assert [entry.name for entry in ledger.entries(identity, client="bob")] == ["yours"]


def fifty_teams(file: Path) -> Thresholdout:
    """Return a guard that was asked by fifty teams, by some of them twice, and by its organiser."""
    guard = guard_of(ledger=file)
    for team in range(50):
        ask(guard, 0.9, 900 - team > RECORDS, client=f"team {team}", binary=True)
    for name in ("team 3", "", "team 4"):
        ask(guard, 0.5, RECORDS < 900, client=name, binary=True)
    return guard


@pytest.mark.slow
def test_a_commit_writes_as_much_for_many_teams_as_for_few(tmp_path: Path) -> None:
    lengths = []
    guard = guard_of(ledger=tmp_path / "guard.db")
    for team in range(60):
        ask(guard, 0.9, RECORDS < 900, client=f"team {team}", binary=True)
        with open_ledger(tmp_path / "guard.db") as ledger:
            (identity,) = ledger.guards()
            lengths.append(len(ledger.state(identity)))
            assert len(ledger.clients(identity)) == team + 1
    assert max(lengths[30:]) - min(lengths[30:]) < 100


@pytest.mark.slow
def test_rows_of_clients_fit_the_history_and_move_with_it(tmp_path: Path) -> None:
    guard = fifty_teams(tmp_path / "guard.db")
    told = guard.status.information_released
    with open_ledger(tmp_path / "guard.db") as ledger, open_ledger(tmp_path / "other.db") as other:
        (identity,) = ledger.guards()
        check_clients(ledger, identity)
        clients = ledger.clients(identity)
        move(ledger, other, identity)
        assert other.clients(identity) == clients
        check_clients(other, identity)
    moved = guard_of(ledger=tmp_path / "other.db")
    assert moved.status.information_released == told
    again = ask(moved, 0.5, RECORDS < 899, client="team 3", binary=True)
    assert again.source == "train"  # it is known that this team's last guess was wrong


@pytest.mark.slow
@for_each(
    "statement",
    [
        "DELETE FROM clients WHERE name = '{key}'",
        "UPDATE clients SET state = (SELECT state FROM clients WHERE name = '{other}') WHERE name = '{key}'",
        "UPDATE clients SET state = replace(state, '0x1.0', '0x0.0') WHERE name = '{key}'",
        "UPDATE clients SET state = 'x' WHERE name = '{key}'",
        "INSERT INTO clients SELECT guard, '{new}', state FROM clients WHERE name = '{key}'",
    ],
)
def test_a_changed_row_of_a_client_is_found(tmp_path: Path, statement: str) -> None:
    """Whoever can write the file may give a team its allowance again; its history says that it was spent."""
    file = tmp_path / "guard.db"
    fifty_teams(file)
    keys = {"key": client_key("team 3"), "other": client_key("team 9"), "new": client_key("team 99")}
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(statement.format(**keys)).rowcount == 1
    with open_ledger(file) as ledger:
        (identity,) = ledger.guards()
        with pytest.raises(LedgerDamaged, match=r"1 clients .* do not match its history"):
            check_clients(ledger, identity)


def test_a_quota_is_each_client_s_own(tmp_path: Path) -> None:
    guard = guard_of()
    for _ in range(2):
        ask(guard, 0.9, RECORDS < 900, key="a", client="ann", quota=1)
    with pytest.raises(BudgetExhausted, match="The only query of this client is used"):
        ask(guard, 0.9, RECORDS < 890, client="ann", quota=1)
    ask(guard, 0.9, RECORDS < 890, client="bob", quota=1)
    assert len(guard.history) == 2


def test_a_client_beyond_the_allowance_is_refused_before_anything_is_computed() -> None:
    guard = Thresholdout((RECORDS, RECORDS), train=(-RECORDS - 1.0, RECORDS), mechanism="leaderboard")
    rng, evaluations = np.random.default_rng(0), list[int]()

    def query(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0] < 0:
            return np.full(N, float(rng.random()) > 0.5)
        evaluations.append(1)
        return np.arange(N) < rng.integers(N)

    def junk() -> None:
        for number in range(100):
            ask(guard, query, client="junk", key=f"{number}")

    with pytest.raises(BudgetExhausted, match="this client's answers have released all that they"):
        junk()
    asked = len(evaluations)
    assert asked < 30
    with pytest.raises(BudgetExhausted):
        ask(guard, query, client="junk", key="once more")
    assert len(evaluations) == asked
    assert guard.status.information_released is not None
    assert guard.status.information_released <= 24.0
    assert ask(guard, 0.9, RECORDS < 900, client="honest", binary=True).source == "train"


def test_a_query_that_fails_is_charged_to_its_client_and_stays_within_the_quota() -> None:
    guard = Thresholdout((RECORDS, RECORDS), train=(-RECORDS - 1.0, RECORDS), mechanism="leaderboard")

    def failing(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0] >= 0:
            raise ValueError
        return np.ones(N)

    with pytest.raises(InputError, match="failed on the holdout"):
        ask(guard, failing, client="ann", quota=1, key="first")
    assert guard.history[["source", "client"]].to_numpy().tolist() == [["failed", "ann"]]
    with pytest.raises(BudgetExhausted, match="of this client is used"):
        ask(guard, failing, client="ann", quota=1, key="second")
    assert len(guard.history) == 1


def test_a_function_that_is_known_by_its_content_is_each_client_s_own() -> None:
    guard = Thresholdout((RECORDS, RECORDS), train=(-RECORDS - 1.0, RECORDS), mechanism="leaderboard")
    found = [ask(guard, lambda X, y: y < 900, client=client).repeated for client in ("ann", "bob", "ann")]
    assert found == [False, False, True]
    assert guard.history["client"].tolist() == ["ann", "bob"]
