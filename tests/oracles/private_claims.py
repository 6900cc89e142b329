"""Exact probabilities of the outcomes that private claims tell, on small integer scales, from the formula of their law.

A claim has edges lo and hi, the holdout has the value K, all integers; delta is the noise of a phase, gamma and gamma'
are fresh: *above* where K - hi + gamma > delta, else *below* where lo - K + gamma' > delta, else *confirmed*. A phase
ends with an outcome that is not *confirmed*. Nothing here draws noise or runs the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.oracles.sparse_vector import log_at_least, log_probability


@dataclass(frozen=True)
class SmallClaims:
    """Noise of a phase, and of each half of a test."""

    phase: float
    test: float

    def _law(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        noise = np.arange(-int(60 * self.test), int(60 * self.test) + 1)
        return noise, log_probability(noise, self.phase)

    def _outcome(self, noise: NDArray[np.int64], value: int, lo: int, hi: int, outcome: str) -> NDArray[np.float64]:
        """ln P(outcome), given the noise of the phase."""
        above = log_at_least(noise - (value - hi) + 1, self.test)
        below = log_at_least(noise - (lo - value) + 1, self.test)
        if outcome == "above":
            return above
        inside = np.log(-np.expm1(above))
        return np.asarray(inside + (below if outcome == "below" else np.log(-np.expm1(below))))

    def log_transcript(
        self, values: Sequence[int], claims: Sequence[tuple[int, int]], outcomes: Sequence[str]
    ) -> float:
        """ln P(outcomes) when claim i is about the value i."""
        noise, prior = self._law()
        total, weights = 0.0, prior.copy()
        for value, (lo, hi), outcome in zip(values, claims, outcomes, strict=True):
            weights += self._outcome(noise, value, lo, hi, outcome)
            if outcome != "confirmed":
                total += _log_sum(weights)
                weights = prior.copy()
        return total + _log_sum(weights)

    def log_phase(self, confirmed: int, gap: int, last: int) -> float:
        """ln P(``confirmed`` claims with K - hi = gap and no lower edge, then *above* where K - hi = last)."""
        noise, weights = self._law()
        weights = weights + confirmed * np.log(-np.expm1(log_at_least(noise - gap + 1, self.test)))
        return _log_sum(weights + log_at_least(noise - last + 1, self.test))

    def log_reused(self, gaps: Sequence[int]) -> float:
        """ln P(all claims but the last confirmed, the last *above*) of a twin with one gamma for all tests."""
        noise, prior = self._law()
        least = noise[:, None] - noise[None, :]  # delta - gamma
        happens = np.all([least >= gap for gap in gaps[:-1]], axis=0) & (least < gaps[-1])
        with np.errstate(divide="ignore"):
            return float(np.log((np.exp(prior[:, None] + log_probability(noise, self.test)) * happens).sum()))


def _log_sum(weights: NDArray[np.float64]) -> float:
    peak = float(weights.max())
    return peak + float(np.log(np.exp(weights - peak).sum()))
