"""What is left of the risk after another private look at the holdout: PROOFS.md, B8 and V11."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from thresholdout.mechanisms.claims.lists import NOTHING
from thresholdout.mechanisms.claims.score import lowered

__all__ = ["after_look"]

_LEAST: Final = 1e-290  # of which the price of a look can be computed


def after_look(log_risk: float, nats: Callable[[float], float]) -> float:
    """Return the logarithm of the risk that a look leaves, rounded down.

    Parameters
    ----------
    log_risk : float
        Logarithm of the risk before it.
    nats : callable
        From a probability p to t: what has at most the probability ``p e^-t`` for fresh records has at most p for the
        records that were looked at.

    Examples
    --------
    >>> round(after_look(-3.0, lambda risk: 2.0), 9), after_look(-3.0, lambda risk: float("inf"))
    (-5.0, -1000000000.0)
    """
    risk = math.exp(log_risk)
    cost = nats(risk) if risk >= _LEAST else math.inf
    return max(NOTHING, lowered(log_risk - cost * (1.0 + 1e-12)))
