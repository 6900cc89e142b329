"""Limits that all fail on one event, for estimands that depend on the records.

The average risk R of the models of a cross-validation is a function of the records, as their mean value q is. For every
slope l, with psi_l(R) = ln(1 - R + R e^l) and N of `graphs.models.out_of_fold.OutOfFold.claim_records`,

    E exp(N (l q - psi_l(R))) <= 1

(PROOFS.md, "K-fold cross-validation", V9). So for one l > 0 that is fixed in advance, and A = ln(1/d)/N, the event
``l q - psi_l(R) >= A`` has at most the probability d, and elsewhere

    R > (e^(l a - A) - 1) / (e^l - 1)    for every a <= q.

That is a lower limit for every a at once, at the price of one. It is the limit of relative entropy where l is the best
slope for a, and near it elsewhere. The straight line ``a - h`` has the event ``q - R >= h``, with Hoeffding's bound
``exp(-2 n h^2/Lambda)`` by V1. The choice between both is made before the query's value is seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from thresholdout.limits.entropy import entropy_lower

__all__ = ["Line", "line"]

_STEEPEST: Final = 500.0  # its exponential is finite
_SLACK: Final = 1e-9  # of the subtracted nats and width
_ROUNDING: Final = 1e-12  # of an exponent and of a quotient; their errors are near 1e-15


@dataclass(frozen=True, slots=True)
class Line:
    """Lower limits for estimands, given lower bounds of the mean; all of them fail on one event.

    `slope` is l (0 for a straight line), `depth` is A (h of a straight line).
    """

    slope: float
    depth: float

    def lower(self, mean: float) -> float:
        """Return the lower limit for the estimand where the mean is at least this; rounded down."""
        if mean <= 0.0:
            return 0.0
        if self.slope == 0.0:
            return max(0.0, mean - self.depth)
        exponent = self.slope * mean - self.depth - _ROUNDING * (1.0 + self.slope)
        return max(0.0, math.expm1(exponent) / math.expm1(self.slope) * (1.0 - _ROUNDING)) if exponent > 0.0 else 0.0


def line(mean: float, entropy_records: float, hoeffding_records: float, log_level: float) -> Line:
    """Return the line with the best limit at a mean, which is a public number in [0, 1]."""
    mean = min(max(mean, 1e-6), 1.0 - 1e-6)
    needed = -log_level * (1.0 + _SLACK)
    straight = Line(0.0, math.sqrt(needed / (2.0 * hoeffding_records)) * (1.0 + _SLACK))
    # the best slope for this mean: there the line touches the limit of relative entropy
    best = max(entropy_lower(mean, entropy_records, log_level), 1e-150)
    slope = math.log(mean / best) + math.log1p(-best) - math.log1p(-mean)
    tilted = Line(min(max(slope, 1e-6), _STEEPEST), needed / entropy_records)
    return max(tilted, straight, key=lambda one: one.lower(mean))
