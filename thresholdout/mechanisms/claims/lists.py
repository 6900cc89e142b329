"""Queries that were fixed together: one node, one claim for each, stated directly.

The claims of a list are intervals that are computed from the records, each two-sided at ``w/k``: with

    w = (1 - reserve - 2 FAILURE_SHARE) R

the probability that any of them is false is at most w, by the union bound, and that holds on the branches where all are
true as well, so what is left for later queries is shared among the outcomes (PROOFS.md, B7): what is told about
query i is a number K_i out of countably many, coded by a law q_i that the history fixes, and leaves

    R_outcome = reserve R prod_i q_i(K_i),    which sums to at most reserve R over all outcomes.

A list is as narrow as queries that were written down before anything was seen. What comes after it pays for what it
has told, about as much as its values are surprising; nothing is left with ``reserve = 0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from thresholdout.mechanisms.claims.predictor import Prediction
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, lowered

__all__ = ["FEW", "NOTHING", "PRECISE", "Told", "after_list", "after_release", "cell_nats", "ends_nats", "list_level"]

NOTHING: Final = -1e9
"""Logarithm of a risk with which nothing can be said any more."""

FEW: Final = 5
"""Declared queries up to which a comparison is stated directly where that is narrower on average."""

PRECISE: Final = 0.1
"""Share of the error budget that is reserved beside a precise answer: its interval is 2 % wider than of a last one."""

_PLAIN: Final = 0.05  # share of the code for values that no prediction expected


@dataclass(frozen=True, slots=True)
class Told:
    """What is told about one query of a list.

    Attributes
    ----------
    value : float
        In units of the range.
    interval : tuple of float
        Two-sided, at the level of each query of the list.
    nats : float
        Code length of what is told.
    """

    value: float
    interval: tuple[float, float]
    nats: float


def list_level(log_error_budget: float, queries: int, reserve: float) -> float:
    """Return the logarithm of the one-sided level of each query.

    Examples
    --------
    >>> round(math.exp(list_level(math.log(0.05), 10, 0.0)), 6)
    0.0025
    """
    return lowered(log_error_budget + math.log1p(-reserve - 2.0 * FAILURE_SHARE) - math.log(2 * queries))


def after_list(log_error_budget: float, reserve: float, told: Sequence[Told]) -> float:
    """Return the logarithm of what is left.

    Examples
    --------
    >>> after_list(math.log(0.05), 0.0, []) == NOTHING
    True
    """
    if reserve <= 0.0:
        return NOTHING
    nats = math.fsum(item.nats for item in told) * (1.0 + 1e-12) + 1e-9
    return max(NOTHING, lowered(log_error_budget + math.log(reserve) - nats))


def cell_nats(value: int, made: Prediction, steps: int) -> float:
    """Return the code length of a number of steps: near the prediction, or anywhere.

    Examples
    --------
    >>> made = Prediction(0.9, 0.01, (0.0, 0.0), 1e-4, 1.0, 0.9)
    >>> round(cell_nats(900, made, 1000), 2), round(cell_nats(300, made, 1000), 2)
    (3.96, 9.9)
    """
    return _nats(value, made.mean * steps, 2.0 * made.deviation * steps, steps)


def ends_nats(low: int, high: int, made: Prediction, steps: int, reach: tuple[float, float], doubt: float) -> float:
    """Return the code length of both ends of an interval: the lower one near where it is expected, then the width.

    Examples
    --------
    >>> made = Prediction(0.5, 0.004, (0.0, 0.0), 1e-5, 1.0, 0.5)
    >>> round(ends_nats(999, 1059, made, 2048, (0.485, 0.515), 0.2), 1)
    8.0
    """
    width = (reach[1] - reach[0]) * steps
    deviation = max(1.0, 2.0 * doubt * width)
    return _nats(low, reach[0] * steps, 2.0 * made.deviation * steps, steps) + _nats(
        high - low, width, deviation, steps
    )


def _nats(value: int, mean: float, deviation: float, steps: int) -> float:
    """Return ``-ln( 0.95 (F(v + 1/2) - F(v - 1/2)) + 0.05/(steps + 1) )``, F a normal law; all beyond an end is there.

    The laws of v from 0 to ``steps`` have a sum of at most 1.
    """
    scale = deviation * math.sqrt(2.0)
    below = -1.0 if value <= 0 else math.erf((value - 0.5 - mean) / scale)
    above = 1.0 if value >= steps else math.erf((value + 0.5 - mean) / scale)
    mass = 0.5 * max(0.0, above - below)
    return -math.log((1.0 - _PLAIN) * mass * (1.0 - 1e-9) + _PLAIN / (steps + 1)) + 1e-9


_LEAST: Final = 1e-290  # of which the price of a look can be computed


def after_release(log_error_budget: float, nats: Callable[[float], float]) -> float:
    """Return the logarithm of the error budget that a look leaves, rounded down.

    Examples
    --------
    >>> round(after_release(-3.0, lambda risk: 2.0), 9), after_release(-3.0, lambda risk: float("inf"))
    (-5.0, -1000000000.0)
    """
    risk = math.exp(log_error_budget)
    cost = nats(risk) if risk >= _LEAST else math.inf
    return max(NOTHING, lowered(log_error_budget - cost * (1.0 + 1e-12)))
