"""Interval hypotheses about a difference of two models that are right or wrong, for independent records of one law.

A test refutes both ends by the exact trinomial test. An interval is placed by the share of records on which the models
differ on the training part. Proof: PROOFS.md, "Comparisons and gates" (G11).
"""

from __future__ import annotations

import math
from typing import Final

from thresholdout.limits.trinomial import difference_lower, difference_refuted, placed_difference
from thresholdout.mechanisms.base import PairedCounts
from thresholdout.mechanisms.claims.interval import ClaimOutcome, Noise, Scales, TwoEnds, mirror

__all__ = ["TrinomialTest"]

# Standard deviations by which more records may differ on the holdout than the training part says. An interval that is
# 7 % wider at 100 such records costs less than one retry in ten.
_LUCK: Final = 1.5
_WIDER: Final = 1.5  # times the expected share, after an interval that was too narrow
_DOWN: Final = 1e-12  # far above the rounding of the change of units


class TrinomialTest(TwoEnds):
    """Interval hypotheses about a difference, in units of the range from -1 to 1."""

    def __init__(self, steps: int, counts: PairedCounts, discordant: float) -> None:
        self.steps = steps
        self._counts = counts
        self._discordant = min(1.0, discordant)

    def wider(self) -> TrinomialTest:
        """Expect that more records differ."""
        return TrinomialTest(self.steps, self._counts, _WIDER * self._discordant)

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the edges, less and plus the expected radius of the test."""
        return self._low(lo, log_level), mirror(self._low(self.steps - hi, log_level))

    def ends(self, log_level: float, expected: float) -> tuple[int, int]:
        """Return the exact limits, rounded conservatively to the grid."""
        wins, losses, records = self._counts.wins, self._counts.losses, self._counts.records
        low = difference_lower(wins, losses, records, log_level)
        high = difference_lower(losses, wins, records, log_level)
        return self._floor(low), self.steps - self._floor(high)

    def outcome(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        """Test both ends; if one is not refuted, compare the difference with the edges."""
        wins, losses, records = self._counts.wins, self._counts.losses, self._counts.records
        low, high = self._low(lo, log_level), self._low(self.steps - hi, log_level)
        if all(
            end <= 0.0 or difference_refuted(more, less, records, 2.0 * end - 1.0 + _DOWN, log_level)
            for more, less, end in ((wins, losses, low), (losses, wins, high))
        ):
            return "confirmed"
        place = (records + wins - losses) * self.steps
        if place > 2 * records * hi:
            return "above"
        return "below" if place < 2 * records * lo else "wide"

    def _low(self, edge: int, log_level: float) -> float:
        """Return the lower end of an interval with this edge, in [0, 1]; 0 where nothing is claimed."""
        if edge <= 0:
            return 0.0
        records = self._counts.records
        discordant = min(1.0, self._discordant + _LUCK * math.sqrt(self._discordant / records))
        end = placed_difference(2.0 * edge / self.steps - 1.0, discordant, records, log_level)
        return max(0.0, 0.5 * (1.0 + end))

    def _floor(self, limit: float) -> int:
        return max(0, math.floor(0.5 * (1.0 + limit - _DOWN) * self.steps))
