"""Whether the service answers: looked at in the background, so that whoever asks is answered at once."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from thresholdout.service.http.schemas import Health, WitnessHealth

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["Pulse"]

_PERIOD: Final = 1.0
_STALE: Final = 10.0
"""Seconds after which what was found says nothing any more."""


class Pulse:
    """What was found when the service was last looked at.

    Parameters
    ----------
    service : EvaluationService
        What is looked at.
    """

    def __init__(self, service: EvaluationService) -> None:
        self._service = service
        self._well = False
        self._witness: WitnessHealth | None = None
        self._at = -_STALE

    def health(self) -> Health:
        """Return it."""
        fresh = time.monotonic() - self._at < _STALE
        return Health(status="ok" if self._well and fresh else "unavailable", witness=self._witness)

    async def look(self) -> None:
        """Look once."""
        found = await asyncio.to_thread(self._service.health)
        witness = found.get("witness")
        self._witness = None if witness is None else WitnessHealth(**witness)
        self._well, self._at = found.get("status") == "ok", time.monotonic()

    async def keep_looking(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(_PERIOD)
            await self.look()
