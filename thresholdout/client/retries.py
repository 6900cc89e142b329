"""How long and how often a client tries: pauses that grow, and what the service asks for in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["AGAIN", "Attempts", "RetryPolicy", "seconds_of"]

AGAIN: Final = frozenset({"", "busy", "stopping", "unavailable", "rate", "too_slow"})
"""Codes after which the same request may be taken soon; what else is refused stays so for long, or for good."""


def seconds_of(headers: Mapping[str, str]) -> float | None:
    """Return what Retry-After says, in seconds; dates are not what this service sends.

    Examples
    --------
    >>> seconds_of({"retry-after": "7"}), seconds_of({}), seconds_of({"retry-after": "Sunday"})
    (7.0, None, None)
    """
    said = headers.get("retry-after", "").strip()
    return float(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """For how long a call is tried again.

    Attributes
    ----------
    seconds : float
        From the first try on; a pause that would end later is not begun.
    first, longest : float
        Pauses, in seconds: the first is at most so long, and each further one twice as long as the one before, up to
        the longest. Half of each is left to chance, so that clients that failed together do not come back together.
    pause, clock : callable
        How time is passed, and read.
    """

    seconds: float = 60.0
    first: float = 0.2
    longest: float = 10.0
    pause: Callable[[float], object] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)


class Attempts:
    """The tries of one call.

    Examples
    --------
    >>> passed = []
    >>> tries = Attempts(RetryPolicy(seconds=10.0, pause=passed.append, clock=lambda: 0.0))
    >>> tries.waited(None), tries.waited(3.0), tries.waited(11.0)
    (True, True, False)
    >>> 0.1 <= passed[0] <= 0.2, passed[1:]
    (True, [3.0])
    """

    def __init__(self, patience: RetryPolicy) -> None:
        self._patience = patience
        self._end = patience.clock() + patience.seconds
        self._next = patience.first

    def waited(self, asked: float | None) -> bool:
        """Pause before the next try, for no less than was asked for; False, at once, when there is none."""
        length = self._next * random.uniform(0.5, 1.0)
        self._next = min(2.0 * self._next, self._patience.longest)
        if asked is not None:
            length = max(length, asked)
        if self._patience.clock() + length > self._end:
            return False
        self._patience.pause(length)
        return True
