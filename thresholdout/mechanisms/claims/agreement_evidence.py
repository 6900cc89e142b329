r"""Evidence about agreement beyond chance: bets on disagreement and the disagreement of chance.

Cohen's kappa is ``1 - D/E``: D the expected disagreement of a record's label and its prediction, E that of a label and
the prediction of another record. Its position in [-1, 1] is ``f = 1 - D/(2E)``. Truths of at most L are those with
``2 (1 - L) E - D <= 0``. Against them speak bets ``sum ln(1 + l (2 (1 - L) b - d))``, d and b the disagreements of a
unit; against truths of at least 1 - L' speak bets on ``d - 2 L' b``. A unit is a record or a group. For records of one
law it is a pair, and the sum is the mean over all divisions of the records into pairs (PROOFS.md, S9). Bets are fixed
by the history.
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

_LESS: Final = 1.0 - 1e-12  # of what is won, and the inverse of what is lost: more than sums of shares can be off
_SLACK: Final = 1e-9
_OFF: Final = 2.0**-46  # of the sum of the terms' sizes: each is off by some units, and the sum by one for each level


def _largest_loss(end: float, most: float, *, upper: bool) -> float:
    """Return the most that a unit can lose: d <= most where b = 0, or 2 L' b <= 2 L' most where d = 0."""
    return 2.0 * end * most if upper else most


@dataclass(frozen=True)
class AgreementEvidence(Evidence):
    """What the holdout says of kappa. Secret.

    Parameters
    ----------
    value : float
        (1 + kappa)/2.
    observed, chance : ndarray of shape (units,)
        Disagreements d of labels with predictions of the same records, and b with those of others.
    most : float
        What no d and no b of a unit can exceed: records in the largest group; 1 for records and pairs.
    upper : bool
        Whether the evidence is about one minus the position.
    times : ndarray of shape (units,) or float
        How often each unit counts.

    Examples
    --------
    >>> evidence = AgreementEvidence(0.9, np.array([0.0, 0.0, 0.2]), np.full(3, 0.5), 1.0)
    >>> round(evidence.against(0.5, 0.9), 6) == round(2 * math.log(1.45) + math.log(1.27), 6)
    True
    >>> evidence.against(0.5, 1.0)
    -inf
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
    """What is expected of `AgreementEvidence`: denominators are 2 b, and one side loses d whatever the end.

    Examples
    --------
    >>> expected = ExpectedAgreement(2000, 1.0, 0.1, 0.1, 1.0)
    >>> [round(one, 3) for one in (expected.end(0.9, -4.0)[0], expected.mirrored().end(0.1, -4.0)[0])]
    [0.878, 0.079]
    """

    upper: bool = False

    def loss(self, end: float) -> float:
        """Return the most that a unit can lose."""
        return _largest_loss(end, self.most, upper=self.upper)

    def mirrored(self) -> ExpectedAgreement:
        """Return what is expected of the other side."""
        return replace(self, upper=not self.upper)
