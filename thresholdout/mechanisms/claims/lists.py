"""Queries that were fixed together: one node, one claim for each, stated directly.

The claims of a list are intervals that are computed from the records, each two-sided at ``w/k``, with

    w = (1 - reserve - 2 FAILURE_SHARE) R.

By the union bound the probability that any of them is false is at most w. That holds on the branches where all are true
as well, so the outcomes share the budget for later queries (PROOFS.md, B7): the release about query i is a number K_i
out of countably many, coded by a law q_i that the history fixes, and leaves

    R_outcome = reserve R prod_i q_i(K_i),    which sums to at most reserve R over all outcomes.

A list is as narrow as queries that were written down before any answer. Later queries pay for its release, about as
much as its values are surprising; nothing remains with ``reserve = 0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from thresholdout.mechanisms.claims.predictor import Prediction
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, lowered

__all__ = [
    "CLOSED",
    "FEW",
    "NOTHING",
    "PRECISE",
    "Told",
    "after_list",
    "after_release",
    "cell_nats",
    "ends_nats",
    "list_level",
]

NOTHING: Final = -1e9
"""Logarithm of an exhausted error budget."""

CLOSED: Final = 2.0 * NOTHING
"""The same after a final check, so that a refusal can name it."""

FEW: Final = 5
"""Declared queries up to which a comparison is stated directly where that is narrower on average."""

PRECISE: Final = 0.1
"""Share of the error budget that is reserved beside a precise answer: its interval is 2 % wider than of a last one."""

_PLAIN: Final = 0.05  # share of the code for values that no prediction expected


@dataclass(frozen=True, slots=True)
class Told:
    """The release about one query of a list: its value, its interval at each query's level, and its code length."""

    value: float
    interval: tuple[float, float]
    nats: float


def list_level(log_error_budget: float, queries: int, reserve: float) -> float:
    """Return the logarithm of the one-sided level of each query."""
    return lowered(log_error_budget + math.log1p(-reserve - 2.0 * FAILURE_SHARE) - math.log(2 * queries))


def after_list(log_error_budget: float, reserve: float, told: Sequence[Told]) -> float:
    """Return the logarithm of the error budget after a list."""
    if reserve <= 0.0:
        return NOTHING
    nats = math.fsum(item.nats for item in told) * (1.0 + 1e-12) + 1e-9  # rounded up
    return max(NOTHING, lowered(log_error_budget + math.log(reserve) - nats))


def cell_nats(value: int, made: Prediction, steps: int) -> float:
    """Return the code length of a number of steps: near the prediction, or anywhere."""
    return _nats(value, made.mean * steps, 2.0 * made.deviation * steps, steps)


def ends_nats(low: int, high: int, made: Prediction, steps: int, reach: tuple[float, float], doubt: float) -> float:
    """Return the code length of both ends of an interval: the lower one near its expected place, then the width."""
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
    # neighbouring masses share an edge, so their sum telescopes; 1e-9 is far above the rounding of each
    return -math.log((1.0 - _PLAIN) * mass * (1.0 - 1e-9) + _PLAIN / (steps + 1)) + 1e-9


_LEAST: Final = 1e-290  # smallest error budget at which the price of a release can be computed


def after_release(log_error_budget: float, nats: Callable[[float], float]) -> float:
    """Return the logarithm of the error budget after another release, rounded down."""
    if log_error_budget <= NOTHING:
        return log_error_budget
    risk = math.exp(log_error_budget)
    cost = nats(risk) if risk >= _LEAST else math.inf
    return max(NOTHING, lowered(log_error_budget - cost * (1.0 + 1e-12)))
