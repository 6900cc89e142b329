"""Whether a service can answer, and the state of its holdouts, for operators."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import ThresholdoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from thresholdout.ledger import SQLLedger
    from thresholdout.service.store.holdouts import Holdouts

__all__ = ["readiness"]

_log: Final = logging.getLogger("thresholdout.service")


def readiness(
    ledger: SQLLedger, holdouts: Holdouts, damaged: Collection[str], witness: Callable[[], dict[str, Any]], writes: bool
) -> dict[str, Any]:
    """Return the state of the service.

    Notes
    -----
    ``status``: "ok", "damaged" with the names of these holdouts, or "unavailable". The number of ``holdouts``; with
    `writes` also the number of ``answers``, the seconds of a ``commit``, and of the holdouts with visible answers the
    largest ``information_released`` in nats and the smallest ``error_budget_left``.
    """
    try:
        rows = holdouts.all()
        found: dict[str, Any] = {"status": "ok", "holdouts": len(rows)}
        names = [row.name for row in rows if row.identity in damaged]
        if names:
            found |= {"status": "damaged", "damaged": names}
        if writes:
            begun = time.perf_counter()
            ledger.change_setting("ready", lambda _: f"{time.time():.0f}")
            found["commit"] = time.perf_counter() - begun
            counts = [ledger.count(row.identity) for row in rows]
            released, left = [0.0], [1.0]
            for row, count in zip(rows, counts, strict=True):
                last = ledger.entries(row.identity, count, 1) if count and row.shown is None else []
                if (
                    last
                    and last[0].log_error_budget is not None
                    and row.facts is not None
                    and row.facts.log_error_budget is not None
                ):
                    released.append(row.facts.log_error_budget - last[0].log_error_budget)
                    left.append(math.exp(last[0].log_error_budget))
            found |= {
                "answers": sum(counts),
                "information_released": max(released),
                "error_budget_left": min(left),
            }
        return found | witness()
    except ThresholdoutError as error:
        _log.error("the store can't be used: %s", type(error).__name__)
        return {"status": "unavailable"}
