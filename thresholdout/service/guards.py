"""The open guards of a service: each is read once, and used by all threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from thresholdout.service.prediction_guard import PredictionGuard

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = ["Guards"]


class Guards:
    """Guards by what the ledger calls them.

    Parameters
    ----------
    ledger : Ledger
        Where they are.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[str, PredictionGuard] = {}
        self._lock = threading.Lock()

    def get(self, identity: str) -> PredictionGuard:
        """Return a guard, opened now if it was not before."""
        with self._lock:
            found = self._open.get(identity)
            if found is None:
                found = self._open[identity] = PredictionGuard.open(self._ledger, identity)
            return found
