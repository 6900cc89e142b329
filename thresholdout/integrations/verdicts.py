"""Verdicts about candidates: one of six outcomes, its fixed sentence, and a number for rankings."""

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
    """Verdict about one candidate. It is true if the candidate is kept.

    Nothing in it is secret, so a model may see all of it.

    Attributes
    ----------
    outcome : {"first", "kept", "on the way", "rejected", "failed", "exhausted"}
        "kept" is certified; "on the way" is kept without a certificate by a gate with ``certify="milestones"``. "first"
        is the first candidate, which is not judged. "failed" could not be evaluated. "exhausted" was not evaluated,
        because the guard is exhausted.
    place : int
        1 for the first candidate, k for the k-th that was kept, and 0 for a rejected one.
    number : int
        Number of the query in the guard's history; 0 without a query.
    repeated : bool
        Whether this candidate was judged before: the verdict is the earlier one, free of charge.

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
        """A number for rankings, greater is better: k / (k + 1) in place k, and 0 in none.

        Every champion outscores those before it, and none reaches 1, at which some loops stop. It does not measure how
        good a candidate is.
        """
        return self.place / (self.place + 1)

    @property
    def certified(self) -> bool:
        """Whether the candidate is proved to be better than the last certified one before it."""
        return self.outcome == "kept"

    @property
    def text(self) -> str:
        """The sentence of the outcome, the same for every candidate."""
        return _TEXTS[self.outcome]


def outcome_of(source: str) -> Outcome:
    """Return the outcome of an entry of the history, by its source."""
    if source in PROVED:
        return "kept"
    if source in ("step", "unconfirmed"):
        return "on the way"
    return "failed" if source == "failed" else "rejected"
