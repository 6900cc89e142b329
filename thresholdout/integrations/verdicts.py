"""What a loop is told about a candidate: one of six outcomes, a fixed sentence about it, and a number to rank by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from thresholdout.mechanisms.claims.gate_states import PROVED

__all__ = ["CandidateVerdict", "Outcome", "outcome_of"]

Outcome: TypeAlias = Literal["first", "kept", "on the way", "rejected", "failed", "exhausted"]

_TEXTS: Final[dict[Outcome, str]] = {
    "first": "The first candidate. It was not judged: the next one is compared with it.",
    "kept": "Kept: certified to be better than the champion, which it replaces.",
    "on the way": "Kept on the way: better on the training examples, and not certified.",
    "rejected": "Rejected: not certified to be better than the champion, which stays.",
    "failed": "Rejected: it could not be evaluated. The champion stays.",
    "exhausted": "Not judged: the holdout answers no more. The champion stays.",
}


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """What is said of one candidate. It is true if the candidate is kept.

    Nothing in it is secret, so that all of it may be shown to a model.

    Attributes
    ----------
    outcome : {"first", "kept", "on the way", "rejected", "failed", "exhausted"}
        "kept" is certified, "on the way" is what a gate with ``certify="milestones"`` keeps without that. "first" is
        the first candidate of all, which nobody has judged. "failed" could not be evaluated, "exhausted" was not
        looked at because the guard answers no more.
    place : int
        1 for the first candidate, k for the k-th that was kept, and 0 for one that was not.
    number : int
        The query's number in the guard's history; 0 where none was asked.
    repeated : bool
        Whether this candidate was judged before: the verdict is that of then, and nothing was charged.

    Examples
    --------
    >>> verdict = CandidateVerdict("kept", 3, 7)
    >>> bool(verdict), verdict.score, verdict.text
    (True, 0.75, 'Kept: certified to be better than the champion, which it replaces.')
    """

    outcome: Outcome
    place: int = 0
    number: int = 0
    repeated: bool = False

    def __bool__(self) -> bool:
        return self.outcome in ("first", "kept", "on the way")

    @property
    def score(self) -> float:
        """A number of which more is better, for loops that want one: k / (k + 1) in place k, and 0 in none.

        So every champion outscores those before it, and none reaches 1, at which some loops stop. It says nothing
        about how good a candidate is.
        """
        return self.place / (self.place + 1)

    @property
    def certified(self) -> bool:
        """Whether it is proved that the candidate is better than the last certified one before it."""
        return self.outcome == "kept"

    @property
    def text(self) -> str:
        """The outcome as a sentence, the same for every candidate with it."""
        return _TEXTS[self.outcome]


def outcome_of(source: str) -> Outcome:
    """Return the outcome of an entry of the history, by its source.

    Examples
    --------
    >>> [outcome_of(source) for source in ("milestone", "step", "unconfirmed", "skip", "failed")]
    ['kept', 'on the way', 'on the way', 'rejected', 'failed']
    """
    if source in PROVED:
        return "kept"
    if source in ("step", "unconfirmed"):
        return "on the way"
    return "failed" if source == "failed" else "rejected"
