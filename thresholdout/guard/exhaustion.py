"""What happens when a guard answers no more: the same four words in every search and every training loop."""

from __future__ import annotations

import warnings
from typing import Final, Literal, get_args

from thresholdout.errors import BudgetExhausted, GuardExhaustedWarning, InputError

__all__ = ["POLICIES", "Exhausted", "check_exhausted", "warn_exhausted", "without_answer"]

Exhausted = Literal["raise", "train", "nan", "stop"]
"""``"stop"``, the default everywhere: the search ends with the answers that it has. One warning says how many they are
and what would give more; what has no answer is NaN and ranked last, and the best of the answered is chosen. Where a
search can't be ended, the rest is NaN, at once and without predicting anything. Without any answer there is nothing to
choose from, and an error says so: a choice by position would look like one. ``"nan"``: NaN stands in, and the search
goes on, also without any answer. ``"train"``: the training value stands in, which nothing certifies. ``"raise"``: the
search ends with an error that nothing swallows.

Why ``"stop"``: exhaustion is an ordinary end, which a user who sets a budget has to expect, and the answers were paid
for and stay certified; an error would throw away the ranking of the candidates that were answered. ``"train"`` would
mix certified values with optimistic ones, of which the maximum is then chosen."""

POLICIES: Final[tuple[Exhausted, ...]] = get_args(Exhausted)

_CONSEQUENCES: Final[dict[Exhausted, str]] = {
    "train": "training values, which no certificate covers, stand in from here on",
    "nan": "NaN stands in from here on",
    "stop": "no further query is asked; what has no answer is NaN and ranked last",
}

_SAVING: Final = "; training values by cross-validation spend less of it"


def check_exhausted(policy: object) -> Exhausted:
    """Return the policy when it is one.

    Raises
    ------
    InputError
        When it is none of the four.

    Examples
    --------
    >>> check_exhausted("stop")
    'stop'
    """
    if isinstance(policy, str) and policy in POLICIES:
        return policy
    raise InputError("exhausted", repr(policy), "one of " + ", ".join(repr(known) for known in POLICIES))


def warn_exhausted(error: BudgetExhausted, policy: Exhausted, answers: int, stacklevel: int = 2) -> None:
    """Say that a guard answers no more, what was answered, what stands in, and what to do; callers do so once.

    Parameters
    ----------
    error : BudgetExhausted
        The guard's refusal.
    policy : {"train", "nan", "stop"}
        What happens now.
    answers : int
        How many answers the search has.
    stacklevel : int, default=2
        As in `warnings.warn`, counted from the caller.
    """
    has = f"this search has {answers} answer{'' if answers == 1 else 's'}"
    message = f"{error}. {has[0].upper()}{has[1:]}; {_CONSEQUENCES[policy]}. {_advice(error.what)}"
    warnings.warn(message, GuardExhaustedWarning, stacklevel=stacklevel + 1)


def without_answer(error: BudgetExhausted) -> BudgetExhausted:
    """Return the refusal with a note that nothing was answered, and what to call instead."""
    error.add_note(
        "Nothing was answered here, so there is nothing to choose from. To go on without the guard, pass "
        f"exhausted='nan' or 'train'. {_advice(error.what)}"
    )
    return error


def _advice(what: str) -> str:
    saving = _SAVING if what == "budget" else ""
    return f"For more answers make a guard of new records with a larger {what}={saving}"
