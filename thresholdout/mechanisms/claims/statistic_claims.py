"""Claims about a statistic that is not a mean: one part, or a function of several parts that rises with each of them.

A claim states that the estimand lies between L = c(l_1, ..., l_k) and U = c(u_1, ..., u_k), c increasing in each of its
arguments, l_i and u_i the ends of parts. If it is false, the estimand of some part i is below l_i or above u_i: by the
law, and not by the records. It is confirmed only if the evidence against *every* end is at least ln(1/w). So a false
claim is confirmed with probability at most w, for any number of parts (PROOFS.md, S6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from graphs.numerics.bisection import bisect
from thresholdout.limits.binomial import log_laplace_moment
from thresholdout.mechanisms.claims.evidence import Evidence, Expected
from thresholdout.mechanisms.claims.interval import UNITS, ClaimOutcome, Noise, Scales, TwoEnds, mirror

__all__ = ["Combination", "Layout", "Part", "StatisticTest"]

Combination: TypeAlias = "Callable[[Sequence[float]], float]"
"""From values of the parts, in [0, 1], to that of the statistic, in [0, 1]; it rises with each of them."""

_REACH: Final = 64.0  # deviations of the parts, within which edges are sought
_HALVINGS: Final = 60  # of 128 deviations: to the precision of a float
_STEEP: Final = 0.5  # of the slope at which the noise has no moment any more
_OUTWARDS: Final = 1e-12  # far above the rounding of a combination of parts


@dataclass(frozen=True, slots=True)
class Part:
    """Public numbers of one part.

    `train` is its value on the training part, `deviation` that of its value on the holdout, about. `lower` and `upper`
    are the expected evidence against the lower end, and, mirrored, against the upper one.
    """

    train: float
    deviation: float
    lower: Expected
    upper: Expected

    def wider(self) -> Part:
        """Return the part after a claim that was too narrow."""
        return Part(self.train, self.deviation, self.lower.wider(), self.upper.wider())


@dataclass(frozen=True, slots=True)
class Layout:
    """Public numbers of a statistic.

    `combine` is ``None`` for a single part that is the statistic. `variance` is that of the value on n effective
    records, times n. `given` says that the estimand is given the labels of the holdout (PROOFS.md, B9).
    """

    parts: tuple[Part, ...]
    combine: Combination | None
    variance: float
    given: bool

    def combined(self, values: Sequence[float]) -> float:
        """Return the statistic of values of its parts."""
        return values[0] if self.combine is None else min(1.0, max(0.0, self.combine(values)))

    def wider(self) -> Layout:
        """Return the layout after a claim that was too narrow."""
        return Layout(tuple(part.wider() for part in self.parts), self.combine, self.variance, self.given)

    def lower_ends(self, edge: float, log_level: float) -> tuple[float, tuple[tuple[float, float], ...]]:
        """Return the lower end of a claim with this edge, and each part's end and bet."""
        if edge <= 0.0:
            return 0.0, ()
        ends = tuple(
            part.lower.end(at, log_level) for part, at in zip(self.parts, self._edges(edge, up=False), strict=True)
        )
        end = self.combined([end for end, _ in ends])
        return (end - (0.0 if self.combine is None else _OUTWARDS), ends) if end > _OUTWARDS else (0.0, ())

    def upper_ends(self, edge: float, log_level: float) -> tuple[float, tuple[tuple[float, float], ...]]:
        """Return the upper end of a claim with this edge; parts' ends are of one minus their values."""
        if edge >= 1.0:
            return 1.0, ()
        ends = tuple(
            part.upper.end(1.0 - at, log_level) for part, at in zip(self.parts, self._edges(edge, up=True), strict=True)
        )
        end = self.combined([mirror(end) for end, _ in ends])
        return (end + (0.0 if self.combine is None else _OUTWARDS), ends) if end < 1.0 - _OUTWARDS else (1.0, ())

    def _edges(self, edge: float, *, up: bool) -> list[float]:
        """Return edges of the parts with which the statistic has this edge: as many deviations from each value."""
        if self.combine is None:
            return [edge]

        def at(deviations: float) -> list[float]:
            return [min(1.0, max(0.0, part.train + deviations * part.deviation)) for part in self.parts]

        far = _REACH if up else -_REACH
        return at(
            bisect(lambda deviations: (self.combined(at(deviations)) < edge) != up, -far, far, halvings=_HALVINGS)
        )


class StatisticTest(TwoEnds):
    """Claims about a statistic that is not a mean; without evidence, for public numbers only."""

    def __init__(self, steps: int, layout: Layout, evidence: Sequence[Evidence]) -> None:
        self.steps = steps
        self._layout = layout
        self._evidence = evidence

    @property
    def value(self) -> float:
        """The holdout's value. Secret."""
        return self._layout.combined([evidence.value for evidence in self._evidence])

    def wider(self) -> StatisticTest:
        """Return the same test, expecting weaker evidence."""
        return StatisticTest(self.steps, self._layout.wider(), self._evidence)

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the ends of the edges with the expected evidence."""
        level = log_level - max(self._charges(log_level, scales))
        return self._layout.lower_ends(lo / self.steps, level)[0], self._layout.upper_ends(hi / self.steps, level)[0]

    def outcome(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        """Weigh the evidence against all ends; if there is too little, compare the value with the edges."""
        edge, upper, lower = noise
        level = log_level - max(self._charges(log_level, scales))
        _, below = self._layout.lower_ends(lo / self.steps, level)
        _, above = self._layout.upper_ends(hi / self.steps, level)
        mirrored = [evidence.mirrored() for evidence in self._evidence] if above else []
        if self._enough(self._evidence, below, log_level, scales, edge - lower) and self._enough(
            mirrored, above, log_level, scales, edge - upper
        ):
            return "confirmed"
        value = self.value
        if hi < self.steps and value + (upper - edge) / UNITS > hi / self.steps:
            return "above"
        return "below" if lo > 0 and value + (edge - lower) / UNITS < lo / self.steps else "wide"

    def ends(self, log_level: float, expected: float) -> tuple[int, int]:
        """Return the limits of all parts together, rounded conservatively to the grid."""
        level = log_level - math.log(len(self._evidence))
        lows, highs = [], []
        for part, evidence in zip(self._layout.parts, self._evidence, strict=True):
            lows.append(_limit(evidence, part.lower.end(part.train, level)[1], level))
            highs.append(mirror(_limit(evidence.mirrored(), part.upper.end(1.0 - part.train, level)[1], level)))
        low = math.floor((self._layout.combined(lows) - _OUTWARDS) * self.steps)
        high = math.ceil((self._layout.combined(highs) + _OUTWARDS) * self.steps)
        return max(0, low), min(self.steps, high)

    def _enough(
        self,
        evidence: Sequence[Evidence],
        ends: tuple[tuple[float, float], ...],
        log_level: float,
        scales: Scales,
        noise: int,
    ) -> bool:
        """Whether the evidence against all ends is enough: with noise, at slopes that the history fixes."""
        charges = self._charges(log_level, scales)
        for one, part, charge, (end, bet) in zip(evidence, self._layout.parts, charges, ends, strict=bool(ends)):
            if end <= 0.0:
                continue  # nothing is claimed of it
            moved = self._slope(part, log_level, scales) * (noise / UNITS) if scales else 0.0
            # E e^(evidence + moved) <= e^charge under a false claim; 1e-9 covers the rounding of the sum
            if not one.against(end, bet) + moved - 1e-9 * (1.0 + abs(moved)) >= charge - log_level:
                return False
        return True

    def _charges(self, log_level: float, scales: Scales) -> list[float]:
        """Return the noise's charge on the required nats, for each part."""
        return [
            sum(log_laplace_moment(self._slope(part, log_level, scales), scale) for scale in scales)
            for part in self._layout.parts
        ]

    def _slope(self, part: Part, log_level: float, scales: Scales) -> float:
        """Return the nats for each unit of the range: about the change of evidence with the value."""
        if not scales:
            return 0.0
        return min(math.sqrt(-2.0 * log_level) / part.deviation, _STEEP / max(scales))


def _limit(evidence: Evidence, bet: float, log_level: float) -> float:
    """Return the largest number that is refuted at a level, near enough: evidence falls with it."""
    return bisect(lambda end: evidence.against(end, bet) >= -log_level, 1.0, 0.0, halvings=_HALVINGS)
