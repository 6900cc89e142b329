"""How long tests wait for what is bound to come.

The limit only ends a test that would hang for ever. It is long enough for a machine that is slow and busy, so no test
fails because of how fast the machine is; what has to happen before something else is waited for, not slept for.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 600.0  # seconds


def wait_until(happened: Callable[[], object]) -> None:
    """Return as soon as something has happened, and fail where it does not."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"waited in vain for {PATIENCE:g} seconds"
        time.sleep(0.001)
