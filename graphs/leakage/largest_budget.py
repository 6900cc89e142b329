"""The largest privacy budget within a target leakage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import up
from graphs.progress_bar import progress_bar

__all__ = ["Search", "is_searching", "keep", "kept", "largest_below", "searching", "settled_at"]

#: Fewer messages start afresh and converge fully: this is fast, and answers do not depend on earlier searches.
FEWEST = 100_000

#: Relative change of every message that counts as convergence, and the same far from the target of a search.
SETTLED, ROUGHLY = 1e-12, 1e-6

#: Within this relative distance of the target messages converge to the last digit.
NEAR = 1e-3


@dataclass
class Search:
    """State of one search: the messages of earlier budgets, for warm starts."""

    # by the solver's identity: the solver, its last budgets and its messages
    messages: dict[int, tuple[object, FloatArray, FloatArray]] = field(default_factory=dict)
    rough: bool = False  # whether messages need not converge to the last digit
    stopped_early: bool = False  # whether some did not converge
    close: bool = False  # whether the search is near its target

    def near(self, leaked: Callable[[], float], target: float) -> float:
        """Return a leakage, computed roughly when it is far from the target."""
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


def is_searching() -> bool:
    """Return whether a search runs, in which messages may be rough."""
    return _SEARCH.get() is not None


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
    """Return valid messages for other budgets by scaling kept ones, or None."""
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


#: Final relative width of the bracket around the budget: more digits than the leakage bounds have.
WIDTH = 2.0**-42

#: Smallest argument tried, relative to the first guess.
SMALLEST = 2.0**-200


def largest_below(
    leaked: Callable[[float], float], target: float, guess: float, most: float = math.inf
) -> float | None:
    """Return the largest argument at which a non-decreasing function is at most `target`.

    Both axes are logarithmic: leakage is then close to a straight line. Steps of slope one bracket the target. The
    Illinois variant of regula falsi follows, with bisection where the bracket shrinks too slowly. No point is closer to
    an end of the bracket than half the final width, so that both ends move.
    """
    with progress_bar(doing="largest privacy budget", unit="leakages") as bar:

        def counted(point: float) -> float:
            found = leaked(point)
            bar.update()
            return found

        return _largest(counted, target, guess, most)


def _largest(leaked: Callable[[float], float], target: float, guess: float, most: float) -> float | None:
    bracket = _bracket(leaked, target, guess, most)
    if bracket is None:
        return None
    low, high, below, above = bracket
    moved_low: bool | None = None
    widths: list[float] = []
    while (width := math.log(high / low)) > WIDTH:
        widths.append(width)
        middle = 0.5
        if below + above > 0 and not (len(widths) > 3 and width > widths[-4] / 4):
            middle = below / (below + above) if math.isfinite(above) else 0.5
        else:
            widths.clear()
        # both ends have to move, so no point is closer to an end than about half the final width
        margin = min(0.5, 0.45 * WIDTH / width)
        point = low * math.exp(min(max(middle, margin), 1 - margin) * width)
        if not low < point < high:
            break
        gap = _gap(leaked(point), target)
        if gap <= 0:
            low, below = point, -gap
            above = above / 2 if moved_low is True else above
            moved_low = True
        else:
            high, above = point, gap
            below = below / 2 if moved_low is False else below
            moved_low = False
    return low


def _gap(value: float, target: float) -> float:
    """Return ln(value / target), finite for a value of zero."""
    return math.log(value / target) if value > 0 else -700.0


def _bracket(
    leaked: Callable[[float], float], target: float, guess: float, most: float
) -> tuple[float, float, float, float] | None:
    """Return low, high and the gaps ln(target / leaked(low)), ln(leaked(high) / target), neither negative."""
    gap = _gap(leaked(guess), target)
    point = guess
    if gap <= 0:
        while True:
            low, below = point, -gap
            if low >= most:
                return low, low, below, 0.0
            point = min(point * 2, most)
            gap = _gap(leaked(point), target)
            if gap > 0:
                return low, point, below, gap
    factor = 1.1
    while point > guess * SMALLEST:
        high, above = point, gap
        point *= math.exp(-min(gap, 3.0)) / factor
        gap = _gap(leaked(point), target)
        if gap <= 0:
            return point, high, -gap, above
        factor *= factor
        factor = min(factor, 1e6)
    return None
