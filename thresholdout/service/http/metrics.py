"""Numbers about requests, for Prometheus: counts and times by address and status, never by team or holdout."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from thresholdout.service.http.intake import Intake
from thresholdout.service.http.pulse import Pulse

__all__ = ["CONTENT_TYPE_LATEST", "SHARED", "Metrics"]

SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable that names the folder in which several processes share their numbers."""

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """What is counted in one process.

    Parameters
    ----------
    intake : Intake
        Whose places and bytes are shown.
    pulse : Pulse
        Knows how far the holdouts are.
    """

    def __init__(self, intake: Intake, pulse: Pulse) -> None:
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
            ("thresholdout_answers", "Entries of all histories.", lambda: pulse.answers),
            ("thresholdout_told_nats", "Told by the holdout that has told most.", lambda: pulse.told),
            ("thresholdout_commit_seconds", "Of the last commit that was tried.", lambda: pulse.commit),
        )
        self._gauges: tuple[tuple[Gauge, Callable[[], float]], ...] = (
            (held, lambda: intake.bytes_held),
            (taken, lambda: intake.places_taken),
            *((Gauge(name, words, registry=registry, multiprocess_mode="livemax"), of) for name, words, of in found),
        )

    def count(self, method: str, route: str, status: int, seconds: float, refused: str | None = None) -> None:
        """Count a request that was answered, and the code with which it was refused."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if refused is not None:
            self._refusals.labels(refused).inc()

    def text(self) -> bytes:
        """Return all numbers in the form of Prometheus; those of all processes where they share a folder."""
        for gauge, value in self._gauges:
            gauge.set(value())
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)
