"""What an agent is told: a few plain values, and a sentence about what they mean.

The classes have no slots, since the protocol's library takes their descriptors for default values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.service.refusals import REFUSALS, ServiceRefused

if TYPE_CHECKING:
    from thresholdout.client.received import Holdout as Received
    from thresholdout.client.received import Submission as ReceivedSubmission
    from thresholdout.service.shown import Holdout, Submission

__all__ = ["HoldoutLine", "HoldoutStatus", "Outcome", "line_of", "outcome_of", "refusal_of", "status_of"]


@dataclass(frozen=True)
class HoldoutLine:
    """A holdout in a list."""

    name: str
    title: str
    metric: str
    better: Literal["higher", "lower"]
    feedback: str
    phase: str
    records: int | None


@dataclass(frozen=True)
class HoldoutStatus:
    """A holdout, what its answers are worth, and what is left of it."""

    name: str
    title: str
    metric: str
    better: Literal["higher", "lower"]
    feedback: str
    phase: str
    records: int | None
    confidence: float | None
    truth: str
    promise: str
    asked: int | None
    remaining: int | None
    quota: int | None
    quota_days: float | None
    notes: list[str]


@dataclass(frozen=True)
class Outcome:
    """What came of a submission; `says` is the same in words."""

    id: str
    number: int
    name: str
    kind: str
    state: str
    says: str
    value: float | None
    low: float | None
    high: float | None
    verdict: str | None
    repeated: bool


def line_of(holdout: Holdout | Received) -> HoldoutLine:
    """Return a holdout as it is listed."""
    return HoldoutLine(
        holdout.name,
        holdout.title,
        holdout.metric,
        "higher" if holdout.greater_is_better else "lower",
        holdout.feedback,
        holdout.phase,
        holdout.records,
    )


def status_of(holdout: Holdout | Received) -> HoldoutStatus:
    """Return all that an agent needs to know of a holdout."""
    return HoldoutStatus(
        holdout.name,
        holdout.title,
        holdout.metric,
        "higher" if holdout.greater_is_better else "lower",
        holdout.feedback,
        holdout.phase,
        holdout.records,
        holdout.confidence,
        holdout.truth,
        holdout.promise,
        holdout.asked,
        holdout.remaining,
        holdout.quota,
        holdout.quota_days,
        list(holdout.notes),
    )


def outcome_of(submission: Submission | ReceivedSubmission) -> Outcome:
    """Return what came of a submission.

    Examples
    --------
    >>> from thresholdout.service.shown import Submission
    >>> shown = Submission("s1", "digits", "ann", "", "score", "answered", 0.0, low=0.861, high=0.912)
    >>> outcome_of(shown).says
    'The truth is certified to be between 0.861 and 0.912.'
    """
    return Outcome(
        submission.id,
        submission.number,
        submission.name,
        submission.kind,
        submission.state,
        _says(submission),
        submission.value,
        submission.low,
        submission.high,
        submission.verdict,
        submission.repeated,
    )


_VERDICTS = {
    "better": "Better than the incumbent, which it replaces.",
    "worse": "Worse than the incumbent, which stays.",
    "not settled": "Not certified to be better than the incumbent, which stays.",
    "first": "There was no incumbent: this is the first one. It was not judged.",
}
_JUDGED_BEFORE = {
    "better": "Judged before: better than the incumbent of that time, which it replaced then.",
    "worse": "Judged before: worse than the incumbent of that time.",
    "not settled": "Judged before: not certified to be better than the incumbent of that time.",
    "first": "Sent before: there was no incumbent at that time, and it became the first one.",
}
_STATES = {
    "running": "Not answered yet. The same call again finds the answer, and is charged once.",
    "interrupted": "The service stopped. The same call again finishes it, and is charged once.",
    "hidden": "Taken. What came of it is shown when the blind phase ends.",
}


def _says(submission: Submission | ReceivedSubmission) -> str:
    if submission.state == "refused":
        return REFUSALS[submission.refusal if submission.refusal in REFUSALS else "unavailable"].text
    if submission.state in _STATES:
        return _STATES[submission.state]
    if submission.verdict in _VERDICTS:
        return (_JUDGED_BEFORE if submission.repeated else _VERDICTS)[submission.verdict]
    if submission.low is not None and submission.high is not None:
        low, high = shown_below(submission.low, 6), shown_above(submission.high, 6)
        return f"The truth is certified to be between {low} and {high}."
    if submission.value is not None:
        return f"The best so far is {submission.value:.6g}."
    return "Answered."


def refusal_of(refused: ServiceRefused) -> dict[str, Any]:
    """Return a refusal as an agent reads it: the text that belongs to its code, and details that are short.

    Examples
    --------
    >>> refusal_of(ServiceRefused("quota", retry_after=60, limit=20))["text"]
    'This team has used its submissions. Nothing was charged.'
    """
    details = {str(name): value for name, value in refused.details.items() if _is_short(value)}
    said: dict[str, Any] = {"code": refused.code, "text": REFUSALS[refused.code].text, "details": details}
    if refused.retry_after is not None:
        said["retry_after"] = refused.retry_after
    return said


def _is_short(value: object) -> bool:
    """Whether a detail is a number, or a text of one short line."""
    if isinstance(value, str):
        return len(value) <= 200 and value.isprintable()
    return value is None or isinstance(value, bool | int | float)
