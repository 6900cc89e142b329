"""The worth of a final check, before any question is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from thresholdout.mechanisms.claims.final import share_of
from thresholdout.mechanisms.claims.mechanism import ClaimsMechanism
from thresholdout.mechanisms.claims.parameters import ClaimsParameters
from thresholdout.mechanisms.claims.score import RAISED, lowered

__all__ = ["FinalCheck"]

_MANY: Final = 1000


@dataclass(frozen=True, slots=True)
class FinalCheck:
    """What a final check will be worth if every claim before it is confirmed.

    Parameters
    ----------
    parameters : ClaimsParameters
        Of the guard.
    n : int
        Records in the holdout.

    Examples
    --------
    >>> check = FinalCheck(ClaimsParameters(queries=20, final_check=True), 1000)
    >>> round(check.share, 3), round(check.half_width(0.95), 4)
    (0.739, 0.0144)
    """

    parameters: ClaimsParameters
    n: int

    @property
    def share(self) -> float:
        """Share of the risk that is left for it then; after 1,000 questions where their number is not declared."""
        queries = self.parameters.queries
        shares = (share_of(asked, queries) for asked in range(queries or _MANY))
        return math.exp(lowered(math.fsum(math.log1p(-share - 2.0 * RAISED) for share in shares)))

    def half_width(self, expected: float) -> float:
        """Return its half-width for a share of right predictions near a likely score, in (0, 1)."""
        risk = math.log1p(-self.parameters.confidence) - self.parameters.told + math.log(self.share)
        return ClaimsMechanism(self.parameters, self.n).final_half_width(risk, expected)
