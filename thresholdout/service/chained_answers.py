"""Answers of submissions, read from the chained entries of the ledger and compared with the service's rows.

A row of the service says which entry is whose. The numbers and verdicts that are shown are those of the entry, which
the chain of digests covers, so a changed row shows nothing else. At start, the service verifies the chain of each
holdout and compares its rows with the entries. An entry without a row (the row was deleted, or a process was killed
between the two) gets a row again. A holdout that fails answers no further queries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from thresholdout.errors import LedgerDamaged
from thresholdout.guard.guard_state import check_clients
from thresholdout.ledger.entry import scoped_key
from thresholdout.service.standings import served_metric
from thresholdout.service.store.submissions import SubmissionRow, Verdict, submission_id

if TYPE_CHECKING:
    from thresholdout.ledger import SQLLedger
    from thresholdout.ledger.entry import Entry
    from thresholdout.service.store.holdouts import HoldoutRow
    from thresholdout.service.store.submissions import Champions, Submissions

__all__ = ["DAMAGED", "ChainedAnswers", "comparison_key"]

# Note on the page of a holdout that failed its check.
DAMAGED: Final = (
    "The ledger of this holdout failed its check when the service started: nothing that is shown is certified."
)

# Rows and entries that are read at once.
_SLICE: Final = 1000
# Seconds after which an entry without a row is no longer on its way into the table.
_SETTLED: Final = 60.0

# Sources of entries that belong to no submission.
_OF_NOBODY: Final = frozenset({"failed", "release", "note"})

_log: Final = logging.getLogger("thresholdout.service")


def comparison_key(content: str, champion: str) -> str:
    """Return the ledger's key of a comparison of two contents."""
    return sha256(f"{content}\n{champion}".encode()).hexdigest()


class ChainedAnswers:
    """The answers of a service."""

    def __init__(self, ledger: SQLLedger, submissions: Submissions, champions: Champions) -> None:
        self._ledger = ledger
        self._submissions = submissions
        self._incumbents = champions

    def of(self, holdout: HoldoutRow, rows: Sequence[SubmissionRow]) -> list[SubmissionRow]:
        """Return submissions with the numbers and verdicts of their entries."""
        asked = sorted({row.query for row in rows if row.state == "answered" and row.query is not None})
        entries = {entry.query: entry for entry in self._entries(holdout, asked)}
        return [self._told(holdout, row, entries) for row in rows]

    def check_all(self, holdouts: Iterable[HoldoutRow]) -> frozenset[str]:
        """Return the identities of the holdouts that fail `check`, and log why."""
        damaged = set()
        for holdout in holdouts:
            try:
                self.check(holdout)
            except LedgerDamaged as error:
                damaged.add(holdout.identity)
                _log.error("holdout %s answers nothing new: %s", holdout.name, error)
        return frozenset(damaged)

    def check(self, holdout: HoldoutRow) -> int:
        """Compare the rows of a holdout with its chained entries; return the number of rows that were restored."""
        self._ledger.verify(holdout.identity)
        check_clients(self._ledger, holdout.identity)
        known, last = set(), 0
        while rows := self._submissions.of_all(holdout.number, last, _SLICE):
            for row, told in zip(rows, self.of(holdout, rows), strict=True):
                if row.state == "answered" and row != told:
                    raise self._damaged(holdout, row, "says something else than its entry")
                known.add(row.query)
            last = rows[-1].place
        return sum(self._restore(holdout, entry) for entry in self._all(holdout) if entry.query not in known)

    def _entries(self, holdout: HoldoutRow, asked: Sequence[int]) -> Iterable[Entry]:
        """Return the entries of sorted numbers; read one range where they are close to each other."""
        if asked and asked[-1] - asked[0] < 4 * _SLICE:
            yield from self._ledger.entries(holdout.identity, asked[0], asked[-1] - asked[0] + 1)
            return
        for query in asked:
            yield from self._ledger.entries(holdout.identity, query, 1)

    def _all(self, holdout: HoldoutRow) -> Iterable[Entry]:
        start = 1
        while entries := self._ledger.entries(holdout.identity, start, _SLICE):
            yield from entries
            start += len(entries)

    def _told(self, holdout: HoldoutRow, row: SubmissionRow, entries: dict[int, Entry]) -> SubmissionRow:
        """Return a submission with the answer of its entry."""
        bare = replace(row, value=None, low=None, high=None, verdict=None)
        if row.state != "answered":
            return bare
        if row.query is None:  # a first submission, or the same predictions again
            if row.kind != "comparison" or row.verdict not in ("first", "not settled"):
                raise self._damaged(holdout, row, "says that it was answered, and has no entry")
            none = None if row.verdict == "first" else 0.0
            return replace(row, value=none, low=none, high=none)
        entry = entries.get(row.query)
        if entry is None or entry.client != row.team or not self._is_key(holdout, row, entry.key):
            raise self._damaged(holdout, row, f"is said to be answered by entry {row.query}, which is not about it")
        verdict = _verdict(holdout, entry) if row.kind == "comparison" else None
        if holdout.settings.feedback == "verdict":
            return replace(bare, verdict=verdict)
        return replace(bare, value=entry.value, low=entry.low, high=entry.high, verdict=verdict)

    def _is_key(self, holdout: HoldoutRow, row: SubmissionRow, key: str) -> bool:
        """Return whether a key belongs to a submission, with the labels of any time."""
        asked = row.content
        if row.kind == "comparison" and row.against is not None:
            champion = self._incumbents.find(holdout.number, row.team, row.against)
            if champion is None:
                return False
            asked = comparison_key(row.content, champion.content)
        # With corrected labels, a query's key ends with the digest of its plain key.
        corrected = f": {sha256(asked.encode()).hexdigest()}"
        return key in (row.content, scoped_key(asked, row.team)) or key.endswith(corrected)

    def _restore(self, holdout: HoldoutRow, entry: Entry) -> bool:
        """Restore the row of an entry; do nothing where it is nobody's, or its row may still come."""
        # The row of a recent entry may still be on its way.
        if not entry.client or entry.source in _OF_NOBODY or (entry.time or 0.0) > time.time() - _SETTLED:
            return False
        compared = entry.name.endswith((", difference", ", difference)", ", proposal", ", proposal)"))
        row = SubmissionRow(
            id=submission_id(holdout.number, entry.client, f"entry {entry.query} of the ledger"),
            holdout=holdout.number,
            team=entry.client,
            name=entry.name,
            kind="comparison" if compared else "score",
            content=entry.key,
            state="answered",
            received=entry.time or holdout.made,
            until=0.0,
            query=entry.query,
        )
        self._submissions.put(self._told(holdout, row, {entry.query: entry}))
        _log.warning("holdout %s: entry %d had no submission, and has one again", holdout.name, entry.query)
        return True

    def _damaged(self, holdout: HoldoutRow, row: SubmissionRow, what: str) -> LedgerDamaged:
        reason = f"holdout {holdout.name}, submission {row.id}: it {what}"
        return LedgerDamaged(self._ledger.location, row.query, reason)


def _verdict(holdout: HoldoutRow, entry: Entry) -> Verdict:
    """Return an entry's verdict on two submissions."""
    if holdout.settings.feedback == "verdict":
        return "better" if entry.source == "keep" else "not settled"
    if entry.low <= 0.0 <= entry.high:
        return "not settled"
    return "better" if (entry.low > 0.0) == served_metric(holdout.settings.metric).greater_is_better else "worse"
