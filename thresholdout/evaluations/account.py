"""The error budget of checks: the level of each check, and the budget that each outcome leaves.

Proof: PROOFS.md of this package, "A year of checks".
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

__all__ = ["Account", "Promise"]

Promise = Literal["year", "each"]

_DOWN: Final = 1e-12  # subtracted from each logarithm, whose rounding error is near 1e-15: levels stay conservative


@dataclass(frozen=True, slots=True)
class Account:
    """The remaining error budget of a year of checks; `log_left` is its ln."""

    checks: int
    surprises: int
    claim_expected: bool
    promise: Promise
    log_left: float
    done: int = 0
    surprised: int = 0

    @property
    def exhausted(self) -> bool:
        """Whether the planned checks or unexpected outcomes are used up."""
        return self.done >= self.checks or self.surprised >= self.surprises

    @property
    def log_level(self) -> float:
        """Ln of the level of the next check."""
        if self.promise == "each":
            return self.log_left - math.log(self.checks) - _DOWN
        if self.claim_expected:
            return self.log_left + math.log1p(-self._reserve) - _DOWN
        return self.log_left - math.log(self.checks - self.done) - _DOWN

    def after(self, claimed: bool) -> Account:
        """Return the account after an outcome: a claim, or nothing."""
        surprised = self.surprised + (claimed != self.claim_expected)
        left = self.log_left
        if self.promise == "year":
            if claimed:
                left = self.log_level  # the rest was reserved for the other outcome
            elif self.claim_expected:
                left = self.log_left + math.log(self._reserve) - _DOWN
            else:
                ahead = self.checks - self.done - 1
                left = -math.inf if ahead == 0 else self.log_left + math.log(ahead / (ahead + 1)) - _DOWN
        return replace(self, log_left=left, done=self.done + 1, surprised=surprised)

    @property
    def _reserve(self) -> float:
        """The share that an unexpected "nothing" leaves; K of the other shares multiply to at least 1/e."""
        return 1.0 / (self.checks + 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers that a ledger's state keeps."""
        found = asdict(self)
        found["log_left"] = None if math.isinf(self.log_left) else self.log_left
        return found

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Account:
        """Return the account of a ledger's state."""
        left = kept["log_left"]
        return cls(**{**kept, "log_left": -math.inf if left is None else left})
