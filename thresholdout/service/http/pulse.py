"""Whether the service answers: looked at in the background, so that whoever asks is answered at once."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from thresholdout.service.http.schemas import Ready, WitnessHealth

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["Pulse"]

_PERIOD: Final = 1.0
_STALE: Final = 10.0
"""Seconds after which what was found says nothing any more."""

_WRITES: Final = 5.0
"""Seconds after which something is written again: a full disk can be read."""


class Pulse:
    """What was found when the service was last looked at.

    Parameters
    ----------
    service : EvaluationService
        What is looked at.
    """

    def __init__(self, service: EvaluationService) -> None:
        self._service = service
        self._found = Ready(status="unavailable")
        self._at = -_STALE
        self._written = -_WRITES
        self.answers, self.told, self.commit = 0.0, 0.0, 0.0
        """As of `readiness`, when something was last written."""

    def ready(self) -> Ready:
        """Return it."""
        fresh = time.monotonic() - self._at < _STALE
        return self._found if fresh else self._found.model_copy(update={"status": "unavailable"})

    async def look(self) -> None:
        """Look once; now and then something is written, too."""
        now = time.monotonic()
        writes = now - self._written >= _WRITES
        found = await asyncio.to_thread(self._service.health, writes=writes)
        well = found["status"] != "unavailable"
        if writes and well:
            self._written = now
            self.answers, self.told, self.commit = (found.get(name, 0.0) for name in ("answers", "told", "commit"))
        witness = found.get("witness")
        self._found = Ready(
            status=found["status"],
            damaged=found.get("damaged"),
            witness=None if witness is None else WitnessHealth(**witness),
        )
        self._at = time.monotonic()

    async def keep_looking(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(_PERIOD)
            await self.look()
