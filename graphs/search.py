"""Searching for the largest budget within a target."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["largest_below"]

#: The bracket around the budget is narrowed to this relative width.
WIDTH = 2.0**-42


def largest_below(leaked: Callable[[float], float], target: float, low: float, high: float) -> float | None:
    """Return the largest argument at which a non-decreasing function is at most `target`.

    Parameters
    ----------
    leaked : callable
        Non-decreasing, positive, possibly infinite.
    target : float
        Positive.
    low, high : float
        First guesses, 0 < low <= high, moved apart where they do not bracket.

    Returns
    -------
    float or None
        A point where `leaked` was evaluated and is at most `target`, within a relative 2**-42 of one where it is
        above; None when even tiny arguments are above.

    Notes
    -----
    Secant steps on the logarithms of both axes, where leakage is close to a straight line of slope one, with the
    Illinois rule; a bisection step follows whenever the bracket did not shrink by half in three steps, and close
    to the end the steps are widened by half the final width so that both ends move.

    Examples
    --------
    >>> round(largest_below(lambda x: 2 * x, 1.0, 0.1, 1.0), 9)
    0.5
    """
    low_value, high_value = leaked(low), leaked(high)
    for _ in range(60):
        if low_value <= target:
            break
        high, high_value = low, low_value
        low /= 16
        low_value = leaked(low)
    else:
        return None
    while high_value <= target:
        low, low_value = high, high_value
        high *= 2
        high_value = leaked(high)
    low_weight = high_weight = 1.0
    last_width, steps = math.log(high / low), 0
    while (width := math.log(high / low)) > WIDTH:
        steps += 1
        middle = 0.5
        if not (steps % 3 == 0 and width > last_width / 2) and math.isfinite(high_value) and low_value > 0:
            below = low_weight * math.log(target / low_value)
            above = high_weight * math.log(high_value / target)
            if below + above > 0:
                middle = below / (below + above)
        if steps % 3 == 0:
            last_width = width
        margin = min(0.5, 0.45 * WIDTH / width)
        middle = min(max(middle, margin), 1 - margin)
        point = low * math.exp(middle * width)
        if not low < point < high:
            break
        value = leaked(point)
        if value <= target:
            low, low_value, low_weight, high_weight = point, value, 1.0, high_weight / 2
        else:
            high, high_value, high_weight, low_weight = point, value, 1.0, low_weight / 2
    return low
