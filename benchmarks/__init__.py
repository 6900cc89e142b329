"""Measurements: how fast the library is, how close its bounds are, and what papers report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def timed(call: Callable[[], Result], repeat: int = 3) -> tuple[Result, float]:
    """Return what a call returns, and the seconds of the fastest of some."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - start)
    return found, min(times)
