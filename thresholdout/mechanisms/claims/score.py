"""One query about a mean: claims, one after another, until one is confirmed.

The rule of PROOFS.md, "The remaining error budget", with the outcomes *confirmed*, *above*, *below* and *raised*. A
claim sets the share pi of the error budget R aside for the directions. A direction leaves ``R pi / 2``, and *confirmed*
leaves ``w = R (1 - pi - 2 FAILURE_SHARE)``, the level of the claim. FAILURE_SHARE is kept for a query that fails on the
holdout, and as much for an interrupted one. Without noise a direction proves that K is beyond the edge, and narrows the
range of K; a claim that covers this range needs no test. An impossible direction keeps nothing: beyond that range, or,
with noise, beyond an end of the whole range.

After a direction the claims grow until they reach the value. They are then cut into thirds until the answer is about as
narrow as a first one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from thresholdout.mechanisms.claims.interval import ClaimOutcome

__all__ = ["FAILURE_SHARE", "MAX_RETRIES", "Found", "Window", "first_window", "lowered", "search"]

FAILURE_SHARE: Final = 2.0**-20
"""Share of the error budget for a query that fails on the holdout, and as much for one that is interrupted."""

_AGAIN: Final = 0.15  # share for directions after the first: each of them leaves 2.6 nats less, ln(2/0.15)
MAX_RETRIES: Final = 48
"""Outcomes other than *confirmed* after which the answer is the whole possible range."""
_STEP: Final = 3.0  # deviations by which a retry reaches beyond the first claim: a normal law has 0.1 % beyond
_WIDE: Final = 3.0  # deviations to both sides of cells that are not cut into thirds: about a first claim's width


@dataclass(frozen=True, slots=True)
class Window:
    """The first claim about a query: its edges, the share pi for directions, and the deviation of its prediction."""

    lo: int
    hi: int
    share: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Found:
    """The end of a query: the confirmed claim, its level, the remaining error budget, and the number of directions."""

    lo: int
    hi: int
    log_level: float
    log_error_budget: float
    outcomes: int


def first_window(mean: float, deviation: float, steps: int, asked: int, queries: int | None) -> Window:
    """Return the first claim: its deviations to both sides suit the number of remaining queries.

    Without a declared number the expected number is 20, or ``asked^1.5 / 20^0.5`` where this is more: after a thousand
    queries each answer is a little wider, so that hardly any claim fails.
    """
    left = max(1, queries - asked) if queries is not None else max(20, round(asked * math.sqrt(asked / 20.0)))
    # about one of the remaining claims fails then, by the normal tail
    z = max(0.8, math.sqrt(max(0.0, -2.0 * math.log(min(1.0, 1.5 / left)))))
    # beside the predicted probability of a direction, against wrong predictions: 0.1 over all declared queries, and
    # hardly growing, as ln ln of their number, without a declaration
    if queries is not None:
        extra = 0.1 / queries
    else:
        number = asked + 20
        extra = 0.1 / (1.5 * number * math.log(number))
    share = min(0.5, math.erfc(z / math.sqrt(2.0)) + extra)
    if left == 1:
        share = max(share, 0.3)
    middle = min(max(round(mean), 0), steps)
    lo = min(math.ceil(mean - z * deviation), middle)
    hi = max(math.floor(mean + z * deviation), middle)
    return Window(max(lo, 0), min(hi, steps), share, deviation)


def lowered(logarithm: float) -> float:
    """Return the logarithm of a share, lower by more than its possible error, so that shares sum to no more than 1."""
    return logarithm - 1e-12 - 1e-15 * abs(logarithm)  # a logarithm and a sum are off by a few units of 2**-53


def start_error_budget(confidence: float, told: float) -> float:
    """Return the logarithm of the error budget before the first query."""
    return lowered(math.log1p(-confidence) - told)


def search(
    window: Window,
    steps: int,
    log_error_budget: float,
    ask: Callable[[int, int, float], ClaimOutcome],
    pad: int | None,
    others: int = 2,
    most: int = MAX_RETRIES,
) -> Found:
    """Make claims until one is confirmed."""
    bottom, top = 0, steps
    lo, hi, share = window.lo, window.hi, window.share
    reach = max(1, math.floor(_STEP * window.deviation))
    wide = max(2, math.ceil(2.0 * _WIDE * window.deviation))
    risk, outcomes, exact, cutting = log_error_budget, 0, pad is None, False
    while True:
        covers = lo <= bottom and hi >= top
        if outcomes >= most:
            lo, hi, covers = (bottom, top, True) if exact else (0, steps, True)
        if covers and (exact or (lo <= 0 and hi >= steps)):
            level = lowered(risk + math.log1p(-2.0 * FAILURE_SHARE))
            return Found(lo, hi, level, level, outcomes)
        level = lowered(risk + math.log1p(-share - 2.0 * FAILURE_SHARE))
        outcome = ask(lo, hi, level)
        if outcome == "confirmed":
            risk = level
            if outcomes == 0 or hi - lo <= wide:
                return Found(lo, hi, level, risk, outcomes)
            bottom, top, cutting = lo, hi, True
        else:
            one_way = lo <= bottom or hi >= top if exact else others == 2 and (lo <= 0 or hi >= steps)
            risk = lowered(risk + math.log(share) - math.log(others - one_way))
            outcomes += 1
            if outcome == "wide":
                share = _AGAIN
                continue
            if outcome == "above":
                top = top if hi < top else steps  # an earlier noisy direction was wrong
                bottom = max(bottom, hi + 1 - (pad or 0))
            else:
                bottom = bottom if lo > bottom else 0
                top = min(top, lo - 1 + (pad or 0))
            if top < bottom:  # noise has said both
                bottom, top = 0, steps
        if cutting:
            lo, hi, share = _cut(bottom, top, wide)
        elif outcome == "above":
            lo, hi, share = bottom, min(top, bottom + reach), _AGAIN
            reach *= 2 if outcomes > 1 else 1
        else:
            lo, hi, share = max(bottom, top - reach), top, _AGAIN
            reach *= 2 if outcomes > 1 else 1


def _cut(bottom: int, top: int, wide: int) -> tuple[int, int, float]:
    """Return the next claim about a value between two numbers, and the share of the error budget for its directions."""
    width = top - bottom
    if width <= wide:
        return bottom, top, _AGAIN
    third = max(1, width // 3)
    return bottom + third, top - third, 2.0 / 3.0
