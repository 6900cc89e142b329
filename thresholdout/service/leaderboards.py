"""Leaderboards that are kept up to date: each entry of a history is read once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from thresholdout.service.receipts.rollback_detection import proved_until
from thresholdout.service.standings import Standing, Tally, served_metric

if TYPE_CHECKING:
    from thresholdout.ledger import SQLLedger
    from thresholdout.service.store.holdouts import HoldoutRow

__all__ = ["Leaderboards"]

# Entries that are read at once.
_SLICE: Final = 2000


class _Kept:
    """One leaderboard and the number of entries it covers."""

    def __init__(self, tally: Tally, until: int | None) -> None:
        self.lock = threading.Lock()
        self.tally = tally
        self.until = until
        self.rows: tuple[int, tuple[Standing, ...]] = (-1, ())


class Leaderboards:
    """The leaderboards of a service."""

    def __init__(self, ledger: SQLLedger) -> None:
        self._ledger = ledger
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def rows(self, holdout: HoldoutRow) -> tuple[Standing, ...]:
        """Return the leaderboard as far as it may be shown now."""
        if holdout.settings.feedback != "interval":
            return ()
        ends = [end for end in (holdout.shown, proved_until(self._ledger, holdout.identity)) if end is not None]
        kept = self._of(holdout, min(ends, default=None))
        with kept.lock:
            self._read_on(holdout, kept)
            if kept.rows[0] != kept.tally.last:
                kept.rows = kept.tally.last, tuple(kept.tally.standings())
            return kept.rows[1]

    def follow(self, holdout: HoldoutRow, query: int | None) -> None:
        """Read on from time to time while queries are answered, so that no first visit reads a long history."""
        if query is not None and query % _SLICE == 0:
            self.rows(holdout)

    def _of(self, holdout: HoldoutRow, until: int | None) -> _Kept:
        """Return the cached leaderboard, which ends where a blind phase began or the guarantee ended."""
        with self._lock:
            kept = self._kept.get(holdout.identity)
            if kept is None or kept.until != until:
                metric = served_metric(holdout.settings.metric)
                tally = Tally(metric.name, greater_is_better=metric.greater_is_better)
                kept = self._kept[holdout.identity] = _Kept(tally, until)
            return kept

    def _read_on(self, holdout: HoldoutRow, kept: _Kept) -> None:
        """Add the entries since the last call."""
        while True:
            count = _SLICE if kept.until is None else min(_SLICE, kept.until - kept.tally.last)
            entries = self._ledger.entries(holdout.identity, kept.tally.last + 1, count) if count else []
            for entry in entries:
                kept.tally.add(entry)
            if len(entries) < _SLICE:
                return
