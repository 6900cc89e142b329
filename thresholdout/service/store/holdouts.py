"""The service's list of holdouts: names, settings and phases; labels and answers are the ledger's."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from thresholdout.service.schemas import Feedback, Phase

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor
    from thresholdout.service.store.tables import Store

__all__ = ["Facts", "HoldoutRow", "Holdouts", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """An administrator's settings of a holdout, as in `thresholdout.service.schemas.Holdout`."""

    title: str
    metric: str
    public: bool
    feedback: Feedback
    quota: int | None
    quota_days: float | None


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a guard until its labels are corrected or the phase changes, so that lists open no guard.

    Notes
    -----
    `remaining` and `log_error_budget` are those before the first query; `rows` counts the records of both parts.
    """

    records: int
    confidence: float
    mechanism: str
    estimand: str
    promise: str
    notes: tuple[str, ...]
    remaining: int | None
    log_error_budget: float | None
    rows: int


@dataclass(frozen=True, slots=True)
class HoldoutRow:
    """A row of the list of holdouts.

    Notes
    -----
    `facts` is ``None`` while they are about to change. `shown` is the number of the last query whose answer is shown in
    a blind phase; ``None`` where all are.
    """

    number: int
    name: str
    identity: str
    settings: Settings
    facts: Facts | None
    phase: Phase
    shown: int | None
    made: float

    def shows(self, query: int | None) -> bool:
        """Return whether the answer to a query may be shown; a query without an answer has no number."""
        return self.shown is None or (query is not None and query <= self.shown)


_FIELDS: Final = "number, name, identity, settings, facts, phase, shown, made"


class Holdouts:
    """The holdouts of a service."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, name: str, identity: str, settings: Settings, facts: Facts, phase: Phase, shown: int | None) -> bool:
        """List a holdout; return False where its name or its guard is in the list already."""
        store = self._store

        def put(cursor: Cursor) -> bool:
            if store.database.on_server:
                # Two processes must not give out the same number.
                cursor.execute("LOCK TABLE service_holdouts IN EXCLUSIVE MODE")
            taken = store.statement("SELECT number FROM service_holdouts WHERE name = ? OR identity = ?")
            cursor.execute(taken, (name, identity))
            if cursor.fetchone() is not None:
                return False
            cursor.execute("SELECT coalesce(max(number), 0) FROM service_holdouts")
            number = int(cursor.fetchone()[0]) + 1
            added = store.statement(f"INSERT INTO service_holdouts ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
            row = (
                number,
                name,
                identity,
                json.dumps(asdict(settings)),
                json.dumps(asdict(facts)),
                phase,
                shown,
                time.time(),
            )
            cursor.execute(added, row)
            return True

        return store.database.transact(put)

    def find(self, name: str) -> HoldoutRow | None:
        """Return the holdout of a name, or None."""
        rows = self._store.read(f"SELECT {_FIELDS} FROM service_holdouts WHERE name = ?", (name,))
        return _row(rows[0]) if rows else None

    def of_guard(self, identity: str) -> HoldoutRow | None:
        """Return the holdout behind a guard, or None."""
        rows = self._store.read(f"SELECT {_FIELDS} FROM service_holdouts WHERE identity = ?", (identity,))
        return _row(rows[0]) if rows else None

    def all(self) -> list[HoldoutRow]:
        """Return all holdouts, the oldest first."""
        return [_row(row) for row in self._store.read(f"SELECT {_FIELDS} FROM service_holdouts ORDER BY number")]

    def set_phase(self, number: int, phase: Phase, shown: int | None) -> None:
        """Begin another phase; the guard's facts have to be stored anew."""
        text = "UPDATE service_holdouts SET phase = ?, shown = ?, facts = NULL WHERE number = ?"
        self._store.write(text, (phase, shown, number))

    def set_facts(self, number: int, facts: Facts | None) -> None:
        """Store a guard's facts, or ``None`` before they change."""
        text = None if facts is None else json.dumps(asdict(facts))
        self._store.write("UPDATE service_holdouts SET facts = ? WHERE number = ?", (text, number))


def _row(row: tuple[Any, ...]) -> HoldoutRow:
    number, name, identity, settings, facts, phase, shown, made = row
    found = None if facts is None else _facts(json.loads(facts))
    return HoldoutRow(number, name, identity, Settings(**json.loads(settings)), found, phase, shown, made)


def _facts(said: dict[str, Any]) -> Facts:
    return Facts(**{**said, "notes": tuple(said["notes"])})
