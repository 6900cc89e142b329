"""The memory of a ladder between two queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from thresholdout.errors import InputError
from thresholdout.mechanisms.base import Past

__all__ = ["LadderState"]

_FORMAT: Final = "ladder/1"


@dataclass(frozen=True, slots=True)
class LadderState:
    """State of the `Ladder` between two queries. Nothing in it is secret. Scores are turned so that larger is better.

    Attributes
    ----------
    log_error_budget : float
        Natural logarithm of the remaining error budget.
    asked : int
        Number of lines of the history so far: queries, failed ones among them, and other releases.
    failed : int
        Number of queries that could not be computed.
    releases : int
        Number of scores that were shown.
    best : int
        Cell of the score that was shown last.
    low, high : float
        Interval of the best estimand so far.
    other_releases : int
        Number of other private releases about the holdout, which count as lines of the history but not as queries.

    Examples
    --------
    >>> state = LadderState(log_error_budget=-4.5, asked=3, failed=0, releases=1, best=60, low=0.5, high=0.6)
    >>> LadderState.from_text(state.to_text()) == state
    True
    """

    log_error_budget: float
    asked: int = 0
    failed: int = 0
    releases: int = 0
    best: int = 0
    low: float = 0.0
    high: float = 0.0
    other_releases: int = 0

    @property
    def queries(self) -> int:
        """Number of queries so far."""
        return self.asked - self.other_releases

    def agrees(self, past: Past) -> bool:
        """Return whether a history has as many queries and failures, and enough answers for the shown scores."""
        sources = past.sources
        answered, failed = sources.get("holdout", 0), sources.get("failed", 0)
        return (self.asked, self.failed) == (past.asked, failed) and self.releases <= answered

    def to_text(self) -> str:
        """Return the state as one line of text, for a ledger."""
        counts = f"{self.asked} {self.failed} {self.releases} {self.best}"
        other_releases = f" {self.other_releases}" if self.other_releases else ""
        return f"{_FORMAT} {counts} {self.log_error_budget!r} {self.low!r} {self.high!r}{other_releases}"

    @classmethod
    def from_text(cls, text: str) -> LadderState:
        """Return the state from the text that `to_text` wrote."""
        try:
            tag, *words = text.split(" ")
            asked, failed, releases, best = map(int, words[:4])
            log_error_budget, low, high = map(float, words[4:7])
            (other_releases,) = map(int, words[7:] or ["0"])
            counted = (
                other_releases >= 0
                and 0 <= failed <= asked - other_releases
                and 0 <= releases <= asked - other_releases - failed
            )
            counted = counted and best >= 0
            if tag != _FORMAT or not (counted and log_error_budget < 0.0 and 0.0 <= low <= high <= 1.0):
                raise ValueError
        except ValueError:
            raise InputError("state", "a text of another form", f"the text of a {_FORMAT} state") from None
        return cls(log_error_budget, asked, failed, releases, best, low, high, other_releases)
