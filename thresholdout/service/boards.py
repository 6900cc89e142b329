"""Boards that are kept up to date: each entry of a history is read once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from thresholdout.scoring.metrics import get_metric
from thresholdout.service.standings import Standing, Tally

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.service.store.holdouts import HoldoutRow

__all__ = ["Boards"]

_SLICE: Final = 5000
"""Entries that are read at once."""


class _Kept:
    """How far one board is."""

    def __init__(self, tally: Tally, until: int | None) -> None:
        self.lock = threading.Lock()
        self.tally = tally
        self.until = until
        self.rows: tuple[int, tuple[Standing, ...]] = (-1, ())


class Boards:
    """The boards of a service.

    Parameters
    ----------
    ledger : Ledger
        Where the histories are.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def rows(self, holdout: HoldoutRow) -> tuple[Standing, ...]:
        """Return who leads, as far as that may be shown now."""
        if holdout.settings.feedback != "interval":
            return ()
        kept = self._of(holdout)
        with kept.lock:
            self._read_on(holdout.identity, kept)
            if kept.rows[0] != kept.tally.last:
                kept.rows = kept.tally.last, tuple(kept.tally.standings())
            return kept.rows[1]

    def _of(self, holdout: HoldoutRow) -> _Kept:
        """Return what is kept of a board; in a blind phase one that ends where it began."""
        with self._lock:
            kept = self._kept.get(holdout.identity)
            if kept is None or kept.until != holdout.shown:
                metric = get_metric(holdout.settings.metric)
                tally = Tally(metric.name, greater_is_better=metric.greater_is_better)
                kept = self._kept[holdout.identity] = _Kept(tally, holdout.shown)
            return kept

    def _read_on(self, identity: str, kept: _Kept) -> None:
        """Add what was answered since."""
        while True:
            count = _SLICE if kept.until is None else min(_SLICE, kept.until - kept.tally.last)
            entries = self._ledger.entries(identity, kept.tally.last + 1, count) if count else []
            for entry in entries:
                kept.tally.add(entry)
            if len(entries) < _SLICE:
                return
