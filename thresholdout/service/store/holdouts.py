"""The service's list of holdouts: names, settings and phases; labels and answers are the ledger's."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from thresholdout.service.shown import Feedback, Phase

if TYPE_CHECKING:
    from thresholdout.service.store.tables import Store

__all__ = ["HoldoutRow", "Holdouts", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What an administrator declared about a holdout, for the service.

    Attributes
    ----------
    title, metric, public, feedback, quota, quota_days
        As of `thresholdout.service.shown.Holdout`.
    """

    title: str
    metric: str
    public: bool
    feedback: Feedback
    quota: int | None
    quota_days: float | None


@dataclass(frozen=True, slots=True)
class HoldoutRow:
    """A holdout in the list.

    Attributes
    ----------
    number : int
        What other tables call it.
    name, identity, phase, made
        As of `thresholdout.service.shown.Holdout`.
    settings : Settings
        What was declared.
    shown : int or None
        In a blind phase the number of the last question whose answer is shown; None where all are.
    """

    number: int
    name: str
    identity: str
    settings: Settings
    phase: Phase
    shown: int | None
    made: float

    def shows(self, query: int | None) -> bool:
        """Whether the answer to a question may be shown; one that is not answered yet has no number."""
        return self.shown is None or (query is not None and query <= self.shown)


_FIELDS: Final = "number, name, identity, settings, phase, shown, made"


class Holdouts:
    """The holdouts of a service.

    Parameters
    ----------
    store : Store
        Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, name: str, identity: str, settings: Settings, phase: Phase, shown: int | None) -> bool:
        """List a holdout; False where its name or its guard is in the list already."""
        store = self._store
        with store.database.transaction() as cursor:
            if store.database.on_server:
                cursor.execute("LOCK TABLE service_holdouts IN EXCLUSIVE MODE")
            taken = store.statement("SELECT number FROM service_holdouts WHERE name = ? OR identity = ?")
            cursor.execute(taken, (name, identity))
            if cursor.fetchone() is not None:
                return False
            cursor.execute("SELECT coalesce(max(number), 0) FROM service_holdouts")
            number = int(cursor.fetchone()[0]) + 1
            added = store.statement(f"INSERT INTO service_holdouts ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?)")
            row = (number, name, identity, json.dumps(asdict(settings)), phase, shown, time.time())
            cursor.execute(added, row)
            return True

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
        """Begin another phase."""
        self._store.write("UPDATE service_holdouts SET phase = ?, shown = ? WHERE number = ?", (phase, shown, number))

    def add_note(self, number: int, text: str) -> None:
        """Note what happened to a holdout."""
        store = self._store
        with store.database.transaction() as cursor:
            cursor.execute(
                store.statement(f"SELECT name FROM service_holdouts WHERE number = ?{store.lock}"), (number,)
            )
            cursor.fetchone()
            count = store.statement("SELECT count(*) FROM service_notes WHERE holdout = ?")
            cursor.execute(count, (number,))
            place = int(cursor.fetchone()[0]) + 1
            added = store.statement("INSERT INTO service_notes (holdout, number, time, text) VALUES (?, ?, ?, ?)")
            cursor.execute(added, (number, place, time.time(), text))

    def notes(self, number: int) -> tuple[str, ...]:
        """Return what happened to a holdout, the oldest first."""
        rows = self._store.read("SELECT text FROM service_notes WHERE holdout = ? ORDER BY number", (number,))
        return tuple(str(text) for (text,) in rows)


def _row(row: tuple[Any, ...]) -> HoldoutRow:
    number, name, identity, settings, phase, shown, made = row
    return HoldoutRow(number, name, identity, Settings(**json.loads(settings)), phase, shown, made)
