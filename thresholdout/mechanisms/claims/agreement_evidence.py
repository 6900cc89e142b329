"""Evidence about agreement beyond chance: bets on disagreement and the disagreement of chance.

Cohen's kappa is ``1 - D/E``: D the expected disagreement of a record's label and its prediction, E that of a label and
the prediction of another record. Its position in [-1, 1] is ``f = 1 - D/(2E)``. Estimands of at most L are those with
``2 (1 - L) E - D <= 0``. Against them stand bets ``sum ln(1 + l (2 (1 - L) b - d))``, d and b the disagreements of a
unit; against estimands of at least 1 - L' stand bets on ``d - 2 L' b``. A unit is a record or a group. For records of
one law it is a pair, and the sum is the mean over all divisions of the records into pairs (PROOFS.md, S9). Bets are
fixed by the history.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from thresholdout.mechanisms.claims.evidence import Evidence, ExpectedBets

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AgreementEvidence", "ExpectedAgreement"]

_LESS: Final = 1.0 - 1e-12  # of the gains, and the inverse of the losses: more than sums of shares can be off
_SLACK: Final = 1e-9  # nats
_OFF: Final = 2.0**-46  # of the sum of the terms' sizes: each is off by some units, and the sum by one for each level


def _largest_loss(end: float, most: float, *, upper: bool) -> float:
    """Return the largest loss of a unit: d <= most where b = 0, or 2 L' b <= 2 L' most where d = 0."""
    return 2.0 * end * most if upper else most


@dataclass(frozen=True)
class AgreementEvidence(Evidence):
    """The holdout's evidence about kappa, as (1 + kappa)/2, or about one minus it if `upper`. Secret.

    `observed` and `chance` are the disagreements d of labels with predictions of the same records, and b with those of
    others. `most` bounds every d and b of a unit: the records in the largest group; 1 for records and pairs. Each unit
    counts `times` times.
    """

    value: float = field(repr=False)
    observed: NDArray[np.float64] = field(repr=False)
    chance: NDArray[np.float64] = field(repr=False)
    most: float
    upper: bool = False
    times: NDArray[np.float64] | float = field(default=1.0, repr=False)

    def against(self, end: float, bet: float) -> float:
        """Return the logarithm of the wealth."""
        if bet * _largest_loss(end, self.most, upper=self.upper) >= 1.0 - 1e-6:
            return -math.inf
        if self.upper:
            won = self.observed * _LESS - (2.0 * end / _LESS) * self.chance
        else:
            won = (2.0 * (1.0 - end) * _LESS) * self.chance - self.observed / _LESS
        terms = self.times * np.log1p(bet * won)
        return float(np.sum(terms)) - _SLACK - _OFF * float(np.sum(np.abs(terms)))

    def mirrored(self) -> AgreementEvidence:
        """Return it for one minus the position."""
        return replace(self, value=1.0 - self.value, upper=not self.upper)


@dataclass(frozen=True)
class ExpectedAgreement(ExpectedBets):
    """The expectation of `AgreementEvidence`: denominators are 2 b, and one side loses d for any end."""

    upper: bool = False

    def loss(self, end: float) -> float:
        """Return the largest expected loss of a unit."""
        return _largest_loss(end, self.most, upper=self.upper)

    def mirrored(self) -> ExpectedAgreement:
        """Return the expectation of the other side."""
        return replace(self, upper=not self.upper)
