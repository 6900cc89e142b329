"""The submission of each team that its next ones are compared with, and all that were it before.

What it predicts is a document of the guard, which the ledger encrypts as it encrypts labels: good predictions tell
them. Earlier ones stay: a comparison that was cut off is finished with the incumbent that it was begun with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thresholdout.service.store.tables import Store

__all__ = ["Incumbent", "Incumbents"]


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A submission that others are compared with.

    Attributes
    ----------
    number : int
        Which of the team's, from 1.
    submission : str
        Its address.
    content : str
        Digest of its predictions.
    """

    number: int
    submission: str
    content: str


class Incumbents:
    """The incumbents of a service.

    Parameters
    ----------
    store : Store
        Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self, holdout: int, team: str) -> int:
        """Return the number of a team's present incumbent, 0 where there is none."""
        text = "SELECT coalesce(max(number), 0) FROM service_incumbents WHERE holdout = ? AND team = ?"
        return int(self._store.read(text, (holdout, team))[0][0])

    def find(self, holdout: int, team: str, number: int) -> Incumbent | None:
        """Return an incumbent, present or past."""
        where = "holdout = ? AND team = ? AND number = ?"
        text = f"SELECT number, submission, content FROM service_incumbents WHERE {where}"
        rows = self._store.read(text, (holdout, team, number))
        return Incumbent(*rows[0]) if rows else None

    def add(self, holdout: int, team: str, incumbent: Incumbent) -> bool:
        """Put an incumbent behind the last one; False where another one has its number already."""
        text = """INSERT INTO service_incumbents (holdout, team, number, submission, content)
        VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
        values = (holdout, team, incumbent.number, incumbent.submission, incumbent.content)
        return self._store.write(text, values) == 1
