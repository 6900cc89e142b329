"""Health of the service, and its metrics for Prometheus: by address and status, never by team or holdout."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from thresholdout.service.http.admission import Admission
from thresholdout.service.http.json_schemas import Ready, WitnessHealth

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["CONTENT_TYPE_LATEST", "SHARED", "Health", "Metrics"]

# Seconds between checks.
_PERIOD: Final = 1.0
# Seconds after which the last observation no longer counts.
_STALE: Final = 10.0

# Seconds between test writes: a full disk can still be read.
_WRITES: Final = 5.0


class Health:
    """The state of a service at its last check."""

    def __init__(self, service: EvaluationService) -> None:
        self._service = service
        self._found = Ready(status="unavailable")
        self._at = -_STALE
        self._written = -_WRITES
        self.answers, self.information_released, self.error_budget_left, self.commit = 0.0, 0.0, 1.0, 0.0
        """As of `readiness`, at the last write."""

    def ready(self) -> Ready:
        """Return the last observation; "unavailable" once it is stale."""
        fresh = time.monotonic() - self._at < _STALE
        return self._found if fresh else self._found.model_copy(update={"status": "unavailable"})

    async def look(self) -> None:
        """Check once, from time to time with a write."""
        now = time.monotonic()
        writes = now - self._written >= _WRITES
        found = await asyncio.to_thread(self._service.health, writes=writes)
        well = found["status"] != "unavailable"
        if writes and well:
            self._written = now
            for name in ("answers", "information_released", "error_budget_left", "commit"):
                setattr(self, name, found.get(name, getattr(self, name)))
        witness = found.get("witness")
        self._found = Ready(
            status=found["status"],
            damaged=found.get("damaged"),
            witness=None if witness is None else WitnessHealth(**witness),
        )
        self._at = time.monotonic()

    async def keep_looking(self) -> None:
        """Check again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(_PERIOD)
            await self.look()


# Environment variable that names the folder in which several processes share their metrics.
SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"

# Bounds of the histogram of response times.
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Metrics of one process."""

    def __init__(self, admission: Admission, health: Health) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("thresholdout_requests", "Requests.", labels, registry=registry)
        self._seconds = Histogram(
            "thresholdout_request_seconds", "Time to answer.", labels[:2], buckets=_SECONDS, registry=registry
        )
        self._refusals = Counter("thresholdout_refusals", "Refusals by code.", ("code",), registry=registry)
        held = Gauge(
            "thresholdout_upload_bytes", "Bytes of bodies in memory.", registry=registry, multiprocess_mode="livesum"
        )
        taken = Gauge("thresholdout_upload_places", "Uploads at once.", registry=registry, multiprocess_mode="livesum")
        found = (
            ("thresholdout_answers", "Entries of all histories.", lambda: health.answers),
            (
                "thresholdout_information_released_nats",
                "Information released by the holdout that has released most.",
                lambda: health.information_released,
            ),
            (
                "thresholdout_error_budget_left",
                "Least remaining error budget of a holdout; 1 before any answer.",
                lambda: health.error_budget_left,
            ),
            ("thresholdout_commit_seconds", "Time of the last test commit.", lambda: health.commit),
        )
        self._gauges: tuple[tuple[Gauge, Callable[[], float]], ...] = (
            (held, lambda: admission.bytes_held),
            (taken, lambda: admission.places_taken),
            *((Gauge(name, words, registry=registry, multiprocess_mode="livemax"), of) for name, words, of in found),
        )

    def count(self, method: str, route: str, status: int, seconds: float, refused: str | None = None) -> None:
        """Count an answered request, and the code of its refusal."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if refused is not None:
            self._refusals.labels(refused).inc()

    def text(self) -> bytes:
        """Return all metrics in the format of Prometheus; of all processes where they share a folder."""
        for gauge, value in self._gauges:
            gauge.set(value())
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)
