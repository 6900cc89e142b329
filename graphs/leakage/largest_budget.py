"""The largest privacy budget within a target."""

from __future__ import annotations

import math
from collections.abc import Callable

from graphs.progress_bar import progress_bar

__all__ = ["largest_below"]

#: The bracket around the budget is narrowed to this relative width.
WIDTH = 2.0**-42

#: Smallest argument tried, relative to the first guess.
SMALLEST = 2.0**-200


def largest_below(
    leaked: Callable[[float], float], target: float, guess: float, most: float = math.inf
) -> float | None:
    """Return the largest argument at which a non-decreasing function is at most `target`.

    Parameters
    ----------
    leaked : callable
        Non-decreasing, not negative, possibly infinite.
    target : float
        Positive.
    guess : float
        Where to start, positive.
    most : float
        Largest argument to return; at least `guess`.

    Returns
    -------
    float or None
        A point where `leaked` was evaluated and is at most `target`, within a relative 2**-42 of one where it is
        above; None when even tiny arguments are above.

    Notes
    -----
    Both axes are logarithmic: leakage is then close to a straight line. Steps of slope one until the target is
    bracketed, then the Illinois variant of regula falsi, with bisection where that shrinks the bracket too slowly;
    no point is closer to an end of the bracket than half the final width, so that both ends move.

    Examples
    --------
    >>> round(largest_below(lambda x: 2 * x, 1.0, 1.0), 9)
    0.5
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
