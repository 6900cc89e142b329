"""Submissions as the service stores them, in transactions that threads share, as the ledger's entries are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from thresholdout.ledger.group_commit import GroupCommit

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor
    from thresholdout.service.store.tables import Store

__all__ = ["Champion", "Champions", "Kind", "Stored", "SubmissionRow", "Submissions", "Verdict", "submission_id"]


@dataclass(frozen=True, slots=True)
class Champion:
    """A submission that others are compared with; `number` counts the team's champions from 1."""

    number: int
    submission: str
    content: str


class Champions:
    """The champions of a service."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self, holdout: int, team: str) -> int:
        """Return the number of a team's present champion, 0 where there is none."""
        text = "SELECT coalesce(max(number), 0) FROM service_champions WHERE holdout = ? AND team = ?"
        return int(self._store.read(text, (holdout, team))[0][0])

    def find(self, holdout: int, team: str, number: int) -> Champion | None:
        """Return a champion, present or past."""
        where = "holdout = ? AND team = ? AND number = ?"
        text = f"SELECT number, submission, content FROM service_champions WHERE {where}"
        rows = self._store.read(text, (holdout, team, number))
        return Champion(*rows[0]) if rows else None

    def add(self, holdout: int, team: str, champion: Champion) -> bool:
        """Add a champion after the last one; return False where its number is taken."""
        text = """INSERT INTO service_champions (holdout, team, number, submission, content)
        VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
        values = (holdout, team, champion.number, champion.submission, champion.content)
        return self._store.write(text, values) == 1


Kind = Literal["score", "comparison"]
Verdict = Literal["better", "worse", "not settled", "first"]
# State of a submission; one that runs longer than `SubmissionRow.until` was interrupted.
Stored = Literal["running", "answered", "refused"]


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    """A submission.

    Notes
    -----
    `content` is the digest of the query, which identifies a repeated request. `until` is the time after which a running
    one counts as interrupted; its worker extends it. `against` is the number of the champion in a comparison, 0 for
    none. `place` and `turn` number the holdout's and the team's submissions from 1; they are set when the row is
    stored.
    """

    id: str
    holdout: int
    team: str
    name: str
    kind: Kind
    content: str
    state: Stored
    received: float
    until: float
    against: int | None = None
    query: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict | None = None
    refusal: str | None = None
    receipt: str | None = None
    place: int = 0
    turn: int = 0


_NAMES: Final = tuple(field.name for field in fields(SubmissionRow))
_FIELDS: Final = ", ".join(_NAMES)
# Columns that change after a row is stored.
_CHANGING: Final = ("state", "until", "against", "query", "value", "low", "high", "verdict", "refusal", "receipt")

_FIND: Final = f"SELECT {_FIELDS} FROM service_submissions WHERE id = ?"
_ADD: Final = f"INSERT INTO service_submissions ({_FIELDS}) VALUES ({', '.join('?' * len(_NAMES))})"
_CHANGE: Final = f"UPDATE service_submissions SET {', '.join(f'{name} = ?' for name in _CHANGING)} WHERE id = ?"
_PLACE: Final = "SELECT coalesce(max(place), 0) FROM service_submissions WHERE holdout = ?"
_TURN: Final = "SELECT coalesce(max(turn), 0) FROM service_submissions WHERE holdout = ? AND team = ?"
_OTHERS: Final = """SELECT count(DISTINCT content) FROM service_submissions
WHERE holdout = ? AND team = ? AND received >= ? AND content <> ?"""


def submission_id(holdout: int, team: str, request: str) -> str:
    """Return the address of a submission; it reveals nothing about another team's key.

    Examples
    --------
    >>> submission_id(1, "ann", "run 1") == submission_id(1, "bob", "run 1")
    False
    """
    return hashlib.sha256(f"{holdout}\n{team}\n{request}".encode()).hexdigest()[:32]


class _Put:
    """A row to be stored, and the row that is stored afterwards; ``None`` where the quota is used."""

    __slots__ = ("quota", "row", "since", "stored")

    def __init__(self, row: SubmissionRow, quota: int | None = None, since: float | None = None) -> None:
        self.row = row
        self.quota = quota
        self.since = since
        self.stored: SubmissionRow | None = None


class Submissions:
    """The submissions of a service."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._commits: GroupCommit[_Put] = GroupCommit(store.database)

    def put(self, row: SubmissionRow) -> SubmissionRow:
        """Store a submission or its new state durably; return the stored row.

        An answered row stays as it is, and so does one with other content, and the champion of a comparison.
        """
        put = _Put(row)
        self._commits.run(put, self._put_all, str(row.holdout))
        assert put.stored is not None
        return put.stored

    def put_within(self, row: SubmissionRow, quota: int | None, since: float | None) -> SubmissionRow | None:
        """Store a submission as `put`, unless its team has sent so many others, with any outcome."""
        put = _Put(row, quota, since)
        self._commits.run(put, self._put_all, str(row.holdout))
        return put.stored

    def _put_all(self, cursor: Cursor, puts: Sequence[_Put]) -> None:
        store = self._store
        if store.database.on_server:  # places and turns are consecutive
            for holdout in sorted({put.row.holdout for put in puts}):
                cursor.execute("SELECT name FROM service_holdouts WHERE number = %s FOR UPDATE", (holdout,))
                cursor.fetchone()
        for put in puts:
            put.stored = self._put(cursor, put)

    def _put(self, cursor: Cursor, put: _Put) -> SubmissionRow | None:
        """Store one row in the transaction of a cursor; return the one that is there then."""
        row, store = put.row, self._store
        cursor.execute(store.statement(_FIND), (row.id,))
        there = cursor.fetchone()
        if there is not None:
            known = SubmissionRow(*there)
            if known.state == "answered" or known.content != row.content:
                return known
            changed = {name: getattr(row, name) for name in _CHANGING}
            # Another champion would charge a request twice that was cut off.
            changed["against"] = known.against or row.against
            cursor.execute(store.statement(_CHANGE), (*changed.values(), row.id))
            return replace(known, **changed)
        if put.quota is not None:
            cursor.execute(store.statement(_OTHERS), (row.holdout, row.team, put.since or 0.0, row.content))
            if int(cursor.fetchone()[0]) >= put.quota:
                return None
        cursor.execute(store.statement(_PLACE), (row.holdout,))
        place = int(cursor.fetchone()[0]) + 1
        cursor.execute(store.statement(_TURN), (row.holdout, row.team))
        added = replace(row, place=place, turn=int(cursor.fetchone()[0]) + 1)
        cursor.execute(store.statement(_ADD), tuple(getattr(added, name) for name in _NAMES))
        return added

    def find(self, id: str) -> SubmissionRow | None:
        """Return a submission, or None."""
        rows = self._store.read(_FIND, (id,))
        return SubmissionRow(*rows[0]) if rows else None

    def of_team(self, holdout: int, team: str, after: int, count: int) -> list[SubmissionRow]:
        """Return a team's submissions, the oldest first, after the turn `after`."""
        where = "holdout = ? AND team = ? AND turn > ? ORDER BY turn LIMIT ?"
        return self._select(where, (holdout, team, after, count))

    def of_team_before(self, holdout: int, team: str, before: int, count: int) -> list[SubmissionRow]:
        """Return a team's submissions, the newest first, before the turn `before`."""
        where = "holdout = ? AND team = ? AND turn < ? ORDER BY turn DESC LIMIT ?"
        return self._select(where, (holdout, team, before, count))

    def of_all(self, holdout: int, after: int, count: int) -> list[SubmissionRow]:
        """Return all teams' submissions, the oldest first, after the place `after`."""
        return self._select("holdout = ? AND place > ? ORDER BY place LIMIT ?", (holdout, after, count))

    def of_all_before(self, holdout: int, before: int, count: int) -> list[SubmissionRow]:
        """Return all teams' submissions, the newest first, before the place `before`."""
        return self._select("holdout = ? AND place < ? ORDER BY place DESC LIMIT ?", (holdout, before, count))

    def oldest(self, holdout: int, team: str, since: float) -> float | None:
        """Return the time of a team's first submission since a time."""
        text = "SELECT min(received) FROM service_submissions WHERE holdout = ? AND team = ? AND received >= ?"
        found = self._store.read(text, (holdout, team, since))[0][0]
        return None if found is None else float(found)

    def put_off(self, ids: Sequence[str], until: float) -> None:
        """Extend the time of running submissions."""
        if ids:
            marks = ", ".join("?" * len(ids))
            where = f"state = 'running' AND id IN ({marks})"
            self._store.write(f"UPDATE service_submissions SET until = ? WHERE {where}", (until, *ids))

    def _select(self, where: str, parameters: Sequence[Any]) -> list[SubmissionRow]:
        rows = self._store.read(f"SELECT {_FIELDS} FROM service_submissions WHERE {where}", parameters)
        return [SubmissionRow(*row) for row in rows]
