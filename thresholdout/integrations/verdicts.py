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
    """Result of `GuardedCandidates.propose`: whether a candidate is kept, and why. It is true if it is kept.

    Nothing in it is secret, so it may be shown to the model that writes the next candidate.

    Attributes
    ----------
    outcome : {"first", "kept", "on the way", "rejected", "failed", "exhausted"}
        Outcome of the candidate:

        - "first": the first candidate, which is not judged and becomes the champion.
        - "kept": certified to be better than the champion, which it replaces.
        - "on the way": kept without a certificate, by a gate with ``certify="milestones"``.
        - "rejected": not certified to be better. The champion stays.
        - "failed": the candidate could not be evaluated. The champion stays.
        - "exhausted": not evaluated, because the guard is exhausted. The champion stays.
    place : int
        1 for the first candidate, k for the k-th that was kept, and 0 for a rejected one.
    number : int
        Number of the query in the guard's history, or 0 if there was no query.
    repeated : bool
        Whether the candidate was judged before. The verdict is then the earlier one, free of charge.

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
        """Number for rankings, greater is better: k / (k + 1) in place k, and 0 for a rejected candidate.

        Every champion outscores those before it, and none reaches 1, at which some loops stop. The number does not
        measure how good a candidate is.
        """
        return self.place / (self.place + 1)

    @property
    def certified(self) -> bool:
        """Whether the candidate is certified to be better than the last certified one before it."""
        return self.outcome == "kept"

    @property
    def text(self) -> str:
        """Sentence that describes the outcome, the same for every candidate."""
        return _TEXTS[self.outcome]


def outcome_of(source: str) -> Outcome:
    """Return the outcome of an entry of the history, by its source."""
    if source in PROVED:
        return "kept"
    if source in ("step", "unconfirmed"):
        return "on the way"
    return "failed" if source == "failed" else "rejected"
