"""What a ladder remembers between two queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from thresholdout.errors import InputError
from thresholdout.mechanisms.base import Past

__all__ = ["LadderState"]

_FORMAT: Final = "ladder/1"


@dataclass(frozen=True, slots=True)
class LadderState:
    """State of `Ladder`; nothing in it is secret. Scores are turned so that larger is better.

    Attributes
    ----------
    log_risk : float
        Natural logarithm of the risk that is left.
    asked : int
        Lines of the history so far: queries, those that failed among them, and looks.
    failed : int
        Queries that could not be computed.
    releases : int
        Scores that were shown.
    best : int
        Cell of the last of them.
    low, high : float
        Where the best truth so far is.
    looks : int
        Other private looks at the holdout, which count as lines of the history and are no queries.

    Examples
    --------
    >>> state = LadderState(log_risk=-4.5, asked=3, failed=0, releases=1, best=60, low=0.5, high=0.6)
    >>> LadderState.from_text(state.to_text()) == state
    True
    """

    log_risk: float
    asked: int = 0
    failed: int = 0
    releases: int = 0
    best: int = 0
    low: float = 0.0
    high: float = 0.0
    looks: int = 0

    @property
    def queries(self) -> int:
        """Queries so far."""
        return self.asked - self.looks

    def agrees(self, past: Past) -> bool:
        """Whether a history has as many queries and failures, and room for the scores that were shown."""
        sources = past.sources
        answered, failed = sources.get("holdout", 0), sources.get("failed", 0)
        return (self.asked, self.failed) == (past.asked, failed) and self.releases <= answered

    def to_text(self) -> str:
        """Return the state as one line of text, for a ledger."""
        counts = f"{self.asked} {self.failed} {self.releases} {self.best}"
        looks = f" {self.looks}" if self.looks else ""
        return f"{_FORMAT} {counts} {self.log_risk!r} {self.low!r} {self.high!r}{looks}"

    @classmethod
    def from_text(cls, text: str) -> LadderState:
        """Read what `to_text` wrote.

        Raises
        ------
        InputError
            When the text is something else.
        """
        try:
            tag, *words = text.split(" ")
            asked, failed, releases, best = map(int, words[:4])
            log_risk, low, high = map(float, words[4:7])
            (looks,) = map(int, words[7:] or ["0"])
            counted = looks >= 0 and 0 <= failed <= asked - looks and 0 <= releases <= asked - looks - failed
            counted = counted and best >= 0
            if tag != _FORMAT or not (counted and log_risk < 0.0 and 0.0 <= low <= high <= 1.0):
                raise ValueError
        except ValueError:
            raise InputError("state", "a text of another form", f"what a {_FORMAT} state wrote") from None
        return cls(log_risk, asked, failed, releases, best, low, high, looks)
