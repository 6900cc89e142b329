"""What a search for a budget keeps of messages, so that the next budget starts close to where it ends.

Messages that dominate at some budgets dominate at c times these and below, c >= 1, when they are multiplied by c
(`graphs/PROOFS.md`, section 3, other budgets). Far from the target messages need not settle to the last digit: they
are valid at any time. Nothing is kept beyond one search, so answers do not depend on what was asked before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import up

__all__ = ["Search", "keep", "kept", "searching", "settled_at"]

#: Fewer messages than this start afresh and settle: it takes no time, and answers stay what they are.
FEWEST = 100_000

#: Relative change of every message at which they count as settled, and far from the target of a search.
SETTLED, ROUGHLY = 1e-12, 1e-6

#: Closer to the target than this, relatively, messages settle to the last digit.
NEAR = 1e-3


@dataclass
class Search:
    """What one search has kept.

    Parameters
    ----------
    messages : dict
        By the solver's identity: the solver, its last budgets and its messages.
    rough : bool
        Whether messages need not settle to the last digit.
    stopped_early : bool
        Whether some did not.
    close : bool
        Whether the search has come close to its target.
    """

    messages: dict[int, tuple[object, FloatArray, FloatArray]] = field(default_factory=dict)
    rough: bool = False
    stopped_early: bool = False
    close: bool = False

    def near(self, leaked: Callable[[], float], target: float) -> float:
        """Return a leakage, rough when it is far from the target.

        Parameters
        ----------
        leaked : callable
            Computes the leakage.
        target : float
            Positive.
        """
        self.rough, self.stopped_early = not self.close, False
        value = leaked()
        self.rough = False
        self.close = self.close or (value > 0 and abs(math.log(value / target)) < NEAR)
        return leaked() if self.stopped_early and self.close else value


_SEARCH: ContextVar[Search | None] = ContextVar("_SEARCH", default=None)


@contextmanager
def searching() -> Iterator[Search]:
    """Keep messages while a search runs."""
    search = Search()
    token = _SEARCH.set(search)
    try:
        yield search
    finally:
        _SEARCH.reset(token)


def settled_at(size: int) -> float:
    """Return the relative change at which so many messages count as settled."""
    search = _SEARCH.get()
    if search is None or not search.rough or size < FEWEST:
        return SETTLED
    search.stopped_early = True
    return ROUGHLY


def keep(solver: object, budgets: FloatArray, messages: FloatArray) -> None:
    """Keep the messages of a solver, where a search runs."""
    search = _SEARCH.get()
    if search is not None and len(messages) >= FEWEST:
        search.messages[id(solver)] = solver, budgets, messages


def kept(solver: object, budgets: FloatArray) -> FloatArray | None:
    """Return valid messages for other budgets from those that were kept, or None.

    Parameters
    ----------
    solver : object
        What the messages were kept for.
    budgets : ndarray
        Privacy budget of each vertex.

    Examples
    --------
    >>> with searching():
    ...     keep("solver", np.array([0.1, 0.2]), np.ones(FEWEST))
    ...     larger = kept("solver", np.array([0.2, 0.2]))
    >>> round(float(larger[0]), 9)
    2.0
    """
    search = _SEARCH.get()
    found = None if search is None else search.messages.get(id(solver))
    if found is None:
        return None
    _, before, messages = found
    asked = budgets > 0
    if (before[asked] == 0).any():
        return None
    factor = float(up(budgets[asked] / before[asked], 1).max(initial=1.0))
    return messages.copy() if factor == 1.0 else np.asarray(up(messages * factor, 1))
