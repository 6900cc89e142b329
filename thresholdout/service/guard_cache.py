"""Open guards: opening one reads all of its labels, and a service queries the same few guards again and again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from thresholdout.errors import InputError
from thresholdout.ledger import Ledger
from thresholdout.service.prediction_guard import PredictionGuard

__all__ = ["MOST_BYTES", "GuardCache"]

# Default of the memory that open guards may take.
MOST_BYTES: Final = 1 << 30


@dataclass(slots=True)
class _Place:
    """A guard in the cache; other threads wait for its lock while it is opened."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    guard: PredictionGuard | None = None
    size: int = 0


class GuardCache:
    """Open guards of one ledger, the least recently used of which is dropped; safe to use from several threads.

    Notes
    -----
    `most_bytes` limits the memory of all guards together, approximately; the last used one always stays. A guard's
    definition never changes, and its state is read from the ledger for each query. So a cached guard answers as one
    that is opened anew, also while other processes query.
    """

    def __init__(self, ledger: Ledger, most_bytes: int = MOST_BYTES) -> None:
        if not isinstance(most_bytes, int) or most_bytes < 0:
            raise InputError("most_bytes", repr(most_bytes), "a number of bytes of at least 0")
        self._ledger = ledger
        self._most_bytes = most_bytes
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, identity: str) -> PredictionGuard:
        """Return an open guard; one thread opens it where several want it at once."""
        with self._lock:
            place = self._places.setdefault(identity, _Place())
            self._places.move_to_end(identity)
        with place.lock:
            if place.guard is None:
                try:
                    guard = PredictionGuard.open(self._ledger, identity)
                except BaseException:
                    self.forget(identity)
                    raise
                place.guard, place.size = guard, guard.nbytes
                self._make_room()
            return place.guard

    def forget(self, identity: str) -> None:
        """Drop a guard, so that the next call opens it anew, as after a correction of its labels."""
        with self._lock:
            self._places.pop(identity, None)

    @property
    def nbytes(self) -> int:
        """Approximate memory of the open guards."""
        with self._lock:
            return sum(place.size for place in self._places.values())

    def _make_room(self) -> None:
        """Drop the least recently used guards until the others fit."""
        with self._lock:
            total = sum(place.size for place in self._places.values())
            # The last used guard stays, however large it is.
            for identity in list(self._places)[:-1]:
                if total <= self._most_bytes:
                    return
                total -= self._places.pop(identity).size
