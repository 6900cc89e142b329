"""What a ledger keeps of labels: columns that come back, are secret, and are seen to be damaged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cases import for_each
from thresholdout.errors import LedgerDamaged, LedgerMismatch
from thresholdout.ledger import move, new_key, open_ledger
from thresholdout.service.labelled_records import DOCUMENT, documents_of
from thresholdout.service.prediction_guard import PredictionGuard

N = 40
COLUMNS = ["train/ids", "train/labels", "holdout/ids", "holdout/labels"]
LABELS = {
    "integers": [0, 1] * N,
    "floats": [0.5 + k for k in range(2 * N)],
    "texts": ["secret-ant", "secret-bee"] * N,
}


def tables(kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    table = pd.DataFrame(
        {"id": [f"r{k}" for k in range(2 * N)], "y": LABELS[kind], "who": [k // 4 for k in range(2 * N)]}
    )
    return table[:N], table[N:]


def made(file: Path, kind: str = "integers", groups: str | None = None) -> PredictionGuard:
    train, holdout = tables(kind)
    return PredictionGuard.create(file, train, holdout, label="y", groups=groups, allow_duplicates=True)


@pytest.mark.slow
@for_each("kind", LABELS)
@for_each("groups", [None, "who"])
def test_they_come_back_as_they_were(tmp_path: Path, kind: str, groups: str | None) -> None:
    before = made(tmp_path / "guard.db", kind, groups)
    after = PredictionGuard.open(tmp_path / "guard.db")
    train, holdout = tables(kind)
    found = after._records
    assert (found.train_ids, found.holdout_ids) == (train["id"].tolist(), holdout["id"].tolist())
    assert (found.train_labels.tolist(), found.holdout_labels.tolist()) == (train["y"].tolist(), holdout["y"].tolist())
    assert found.train_labels.dtype == before._records.train_labels.dtype
    assert found.groups == (None if groups is None else [str(who) for who in holdout["who"]])
    assert after.guard.dependence.fingerprint() == before.guard.dependence.fingerprint()
    assert after.certificate.tolerance == before.certificate.tolerance
    assert made(tmp_path / "guard.db", kind, groups).identity == before.identity


def test_a_guard_that_is_opened_is_the_one_that_was_created(tmp_path: Path) -> None:
    """Its records' identity is read and not computed again, and the same it would be."""
    before, after = made(tmp_path / "guard.db"), PredictionGuard.open(tmp_path / "guard.db")
    for name in ("identity", "order"):
        assert getattr(after.guard._records, name) == getattr(before.guard._records, name)


def test_they_are_encrypted_where_the_ledger_is(tmp_path: Path) -> None:
    file, key = tmp_path / "guard.db", new_key()
    with open_ledger(file, key=key) as ledger:
        train, holdout = tables("texts")
        identity = PredictionGuard.create(ledger, train, holdout, label="y", allow_duplicates=True).identity
        assert set(ledger.documents(identity)) >= {DOCUMENT, *(f"{DOCUMENT}/{column}" for column in COLUMNS)}
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"secret-ant" not in raw
    assert b'"texts"' not in raw
    with open_ledger(file, key=key) as ledger:
        assert PredictionGuard.open(ledger)._records.holdout_labels[0] == "secret-ant"


def test_they_move_with_their_guard(tmp_path: Path) -> None:
    service = made(tmp_path / "guard.db", "texts", "who")
    table = pd.DataFrame({"id": [f"r{k}" for k in range(N, 2 * N)], "prediction": "secret-ant"})
    told = service.ask(table, expected=0.5, client="ann")
    with open_ledger(tmp_path / "new.db", key=new_key()) as target:
        move(service.guard._ledger, target, service.identity)
        moved = PredictionGuard.open(target)
        assert moved._records.groups == service._records.groups
        again = moved.ask(table, expected=0.5, client="ann")
        assert (again.repeated, again.interval) == (True, told.interval)
        assert moved.ask(table, expected=0.4, client="ann").query == 2


def changed(file: Path, name: str, text: str | None) -> None:
    """Change a document as somebody who knows the file would."""
    with closing(sqlite3.connect(file)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        if text is None:
            connection.execute("DELETE FROM documents WHERE name = ?", (name,))
        else:
            connection.execute("UPDATE documents SET text = ? WHERE name = ?", (text, name))
        connection.commit()


@pytest.mark.slow
@for_each("column", ["holdout/groups", *COLUMNS])
@for_each("how", ["changed", "missing", "no column"])
def test_a_column_that_was_changed_is_seen_and_not_shown(tmp_path: Path, column: str, how: str) -> None:
    file = tmp_path / "guard.db"
    service = made(file, "texts", "who")
    text = documents_of(service._records)[f"{DOCUMENT}/{column}"]
    other = text.replace("AAEA", "AQEA").replace('"r', '"x').replace('"1', '"2')
    assert other != text
    service.guard._ledger.close()
    changed(file, f"{DOCUMENT}/{column}", {"changed": other, "missing": None, "no column": "[1]"}[how])
    with pytest.raises(LedgerDamaged, match=r"labels of guard .* cannot be read") as caught:
        PredictionGuard.open(file)
    assert "secret" not in repr(caught.value)


@pytest.mark.slow
@for_each("text", ["", "[]", "3", "{}", '{"columns": 2}', '{"columns": 1, "id": "id"}', '{"train": 1}'])
def test_a_description_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    made(tmp_path / "guard.db").guard._ledger.close()
    changed(tmp_path / "guard.db", DOCUMENT, text)
    with pytest.raises(LedgerDamaged, match=r"labels of guard .* cannot be read"):
        PredictionGuard.open(tmp_path / "guard.db")


def test_another_training_part_or_group_is_another_guard(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    made(file, "integers", "who")
    train, holdout = tables("integers")
    again = {"label": "y", "groups": "who", "allow_duplicates": True}
    with pytest.raises(LedgerMismatch, match="another training part"):
        PredictionGuard.create(file, train[1:], holdout, **again)  # type: ignore[arg-type]
    with pytest.raises(LedgerMismatch):
        PredictionGuard.create(file, train, holdout.assign(who=np.arange(N)), **again)  # type: ignore[arg-type]


PLAIN, PADDED = [k - 7 for k in range(2 * N)], [f"{k:03d}" for k in range(2 * N)]


@pytest.mark.slow
@for_each(
    ("ids", "kind"),
    [*[(PLAIN, kind) for kind in ("int64", "int32", "Int64", "float64", "str", "object")], (PADDED, "str")],
)
def test_ids_are_joined_as_texts_whatever_holds_them(tmp_path: Path, ids: list[Any], kind: Any) -> None:
    train, holdout = tables("integers")
    train, holdout = train.assign(id=ids[:N]), holdout.assign(id=ids[N:])
    service = PredictionGuard.create(tmp_path / "guard.db", train, holdout, label="y", allow_duplicates=True)
    wanted = np.arange(N) % 3 == 0
    table = pd.DataFrame({"id": ids[N:], "prediction": wanted.astype(int)})
    table["id"] = table["id"].astype(str).astype(object) if kind == "object" else table["id"].astype(kind)
    for rows in (table, table.iloc[::-1], table.sample(frac=1, random_state=1)):
        assert service.read(rows).output.tolist() == wanted.astype(float).tolist()


def test_a_reading_is_no_view_of_its_table(tmp_path: Path) -> None:
    service = made(tmp_path / "guard.db")
    table = pd.DataFrame({"id": [f"r{k}" for k in range(N, 2 * N)], "prediction": np.ones(N)})
    reading = service.read(table)
    table["prediction"].to_numpy()  # read-only or not, the reading is another array
    table.loc[:, "prediction"] = 0.0
    assert reading.output.tolist() == [1.0] * N
