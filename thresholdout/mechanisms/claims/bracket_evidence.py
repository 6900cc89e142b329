"""Evidence about a statistic of which a lower and an upper value are known, or a value that is a little off."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from thresholdout.mechanisms.claims.evidence import Evidence, Expected

__all__ = ["Bracket", "ExpectedBracket", "Rounded"]


@dataclass(frozen=True)
class Bracket(Evidence):
    """Evidence of a smaller statistic against small estimands, and of a larger one against large estimands. Secret.

    Evidence against a lower end for the estimand of the smaller statistic is evidence for that of the statistic in
    between, which is no smaller; so for both sides (PROOFS.md, E12).

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.evidence import Hoeffding
    >>> found = Bracket(Hoeffding(0.5, 100.0), Hoeffding(0.25, 100.0))  # between 0.5 and 0.75
    >>> found.value, found.mirrored().value, found.against(0.5, 0.0), found.mirrored().against(0.25, 0.0)
    (0.625, 0.375, 0.0, 0.0)
    """

    lower: Evidence = field(repr=False)
    of_rest: Evidence = field(repr=False)  # about one minus the larger statistic

    @property
    def value(self) -> float:  # type: ignore[override]
        """The middle."""
        return 0.5 * (self.lower.value + 1.0 - self.of_rest.value)

    def against(self, end: float, bet: float) -> float:
        """Return the evidence of the smaller statistic."""
        return self.lower.against(end, bet)

    def mirrored(self) -> Bracket:
        """Return the same for one minus the statistic."""
        return Bracket(self.of_rest, self.lower)


@dataclass(frozen=True)
class Rounded(Evidence):
    """Evidence from terms a_i with errors up to `slack` b_i: that of exact terms against ends larger by it. Secret.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.evidence import Hoeffding
    >>> plain = Hoeffding(0.75, 100.0)
    >>> Rounded(plain, 0.25).against(0.5, 0.0), Rounded(plain, 0.0).against(0.5, 0.0) > 12.0
    (0.0, True)
    """

    plain: Evidence = field(repr=False)
    slack: float

    @property
    def value(self) -> float:  # type: ignore[override]
        """The statistic of these terms."""
        return self.plain.value

    def against(self, end: float, bet: float) -> float:
        """Return the evidence of the terms against a larger end."""
        return self.plain.against(math.nextafter(end + self.slack, math.inf), bet)

    def mirrored(self) -> Rounded:
        """Return the same for one minus the statistic."""
        return replace(self, plain=self.plain.mirrored())


@dataclass(frozen=True)
class ExpectedBracket(Expected):
    """The expected evidence about a statistic that is smaller by a known number.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.evidence import ExpectedHoeffding
    >>> plain = ExpectedHoeffding(100.0)
    >>> ExpectedBracket(plain, 0.125).end(0.75, -1.0) == plain.end(0.625, -1.0)
    True
    """

    plain: Expected
    lost: float

    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the end of a claim whose edge is lower by that number."""
        return self.plain.end(max(0.0, edge - self.lost), log_level)

    def mirrored(self) -> ExpectedBracket:
        """Return the same for one minus the statistic."""
        return replace(self, plain=self.plain.mirrored())

    def wider(self) -> ExpectedBracket:
        """Expect less of the evidence."""
        return replace(self, plain=self.plain.wider())
