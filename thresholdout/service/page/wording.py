"""Sentences of pages about phases, feedback and submissions."""

from __future__ import annotations

from typing import Final

from graphs.numerics.rounding import shown_above
from thresholdout.service.page.views import Relation, Tier
from thresholdout.service.schemas import Feedback, Holdout, Outlook, Phase, State, Submission

__all__ = [
    "FEEDBACK",
    "PHASES",
    "RELATIONS",
    "STATES",
    "about_words",
    "asked_words",
    "outlook_words",
    "quota_words",
    "tier_words",
    "verdict_words",
]

PHASES: Final[dict[Phase, tuple[str, str]]] = {
    "open": ("Open", "Submissions are answered at once."),
    "blind": ("Blind", "Submissions are accepted, and their answers are hidden until the holdout is closed."),
    "closed": ("Closed", "No more submissions are accepted. Answers stay valid."),
}

FEEDBACK: Final[dict[Feedback, str]] = {
    "interval": "Each submission gets a certified interval around its score.",
    "verdict": "Each submission gets one bit: whether it is certified to be better than its team's champion.",
    "best": "Each submission gets the best score of all submissions so far.",
}

STATES: Final[dict[State, tuple[str, str]]] = {
    "running": ("Running", "This submission is being answered. The page reloads by itself."),
    "answered": ("Answered", "The answer is stored, and stays the same."),
    "hidden": ("Received", "It is answered, and the answer is shown when the blind phase ends."),
    "refused": ("Refused", "It was not answered."),
    "interrupted": ("Interrupted", "The service stopped meanwhile. Send the same file again: it is charged once."),
}

_VERDICTS: Final = {
    "better": "Certified to be better than the team's champion, and the champion from now on.",
    "worse": "Certified to be worse than the team's champion.",
    "not settled": "Neither better nor worse than the team's champion, as far as is certified.",
    "first": "The team's first: the champion that later submissions are compared with.",
}

RELATIONS: Final[dict[Relation, str]] = {
    "self": "",
    "better": "certified better",
    "worse": "certified worse",
    "tied": "tied",
}


def verdict_words(submission: Submission) -> str:
    """Return a verdict in a sentence; empty without one."""
    return "" if submission.verdict is None else _VERDICTS[submission.verdict]


def about_words(holdout: Holdout, submission: Submission) -> str:
    """Return the quantity that a submission's interval contains."""
    if submission.kind == "comparison":
        return f"The difference to the champion, in {holdout.metric}, is between these ends"
    if holdout.feedback == "best":
        return f"The best {holdout.metric} of all submissions until this one is between these ends"
    return f"The {holdout.metric} of this submission is between these ends"


def tier_words(tier: Tier) -> str:
    """Return the certified ranks of a tier, in words."""
    if len(tier.rows) == 1:
        return f"Rank {tier.first}, certified"
    many = f"Ranks {tier.first} to {tier.last}"
    if tier.tied:
        return f"{many}: {len(tier.rows)} teams are tied"
    return f"{many}: teams whose bars overlap are tied"


def outlook_words(outlook: Outlook) -> str:
    """Return how intervals will widen, in sentences.

    Examples
    --------
    >>> outlook_words(Outlook(50, 0.8, 0.03, 200, 0.0811, 0.034))
    'The last 50 answers released 0.8 nats each. A team whose guess is right gets ± 0.03 now. After 200 further answers
    it gets ± 0.082 if they cost as much, and ± 0.034 if all guesses are right. ...'
    """
    now, later, exact = (shown_above(width, 2) for width in (outlook.half_width, outlook.later, outlook.exact))
    last = f"The last {outlook.answers:,} answers" if outlook.answers > 1 else "The last answer"
    each = " each" if outlook.answers > 1 else ""
    return (
        f"{last} released {outlook.nats:.2g} nats{each}. A team whose guess is right gets ± {now} now. After "
        f"{outlook.ahead:,} further answers it gets ± {later} if they cost as much, and ± {exact} if all guesses are "
        "right. Ask teams to send their anticipated score, such as a cross-validated one."
    )


def quota_words(holdout: Holdout) -> str:
    """Return the quota of each team, in a sentence.

    Examples
    --------
    >>> fields = dict.fromkeys(Holdout.__dataclass_fields__)
    >>> quota_words(Holdout(**{**fields, "quota": 20, "quota_days": 7.0}))
    'Each team may send 20 in 7 days.'
    """
    if holdout.quota is None:
        return "Each team may send any number."
    many = f"Each team may send {holdout.quota:,}"
    if holdout.quota_days is None:
        return f"{many}."
    return f"{many} in {'a day' if holdout.quota_days == 1 else f'{holdout.quota_days:g} days'}."


def asked_words(holdout: Holdout) -> str:
    """Return the numbers of answered and remaining queries, in words.

    Examples
    --------
    >>> fields = dict.fromkeys(Holdout.__dataclass_fields__)
    >>> asked_words(Holdout(**{**fields, "asked": 1, "remaining": None}))
    '1 query was answered'
    """
    asked = f"{holdout.asked:,} query{' was' if holdout.asked == 1 else 's were'} answered"
    return asked if holdout.remaining is None else f"{asked}, {holdout.remaining:,} are left"
