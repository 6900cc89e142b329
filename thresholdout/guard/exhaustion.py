"""Policies for searches and training loops whose guard is exhausted."""

from __future__ import annotations

import warnings
from typing import Final, Literal, get_args

from graphs.errors import amount
from thresholdout.errors import BudgetExhausted, GuardExhaustedWarning, InputError

__all__ = ["POLICIES", "Exhausted", "check_exhausted", "warn_exhausted", "without_answer"]

Exhausted = Literal["raise", "train", "nan", "stop"]
"""``"stop"``, the default: the search ends with its answers so far and warns once. Candidates without an answer are NaN
and ranked last, and the best of the others is chosen. A search that cannot be ended gets NaN for the rest, without
predictions. A search without any answer ends with an error, since a choice by position would look like a result.
``"nan"`` continues with NaN, also without any answer. ``"train"`` continues with training values, which have no
guarantee. ``"raise"`` ends the search with an error that no search catches.

The default is ``"stop"`` because exhaustion is the expected end of a budget. The answers stay certified, and an error
would discard their ranking. ``"train"`` would mix certified values with optimistic ones and choose the maximum."""

POLICIES: Final[tuple[Exhausted, ...]] = get_args(Exhausted)

_CONSEQUENCES: Final[dict[Exhausted, str]] = {
    "train": "training values, which have no guarantee, replace answers from here on",
    "nan": "NaN replaces answers from here on",
    "stop": "no further query is asked, and candidates without an answer are NaN and ranked last",
}

_SAVING: Final = " Training values by cross-validation spend less of it."


def check_exhausted(policy: object) -> Exhausted:
    """Return the policy if it is a known one."""
    if isinstance(policy, str) and policy in POLICIES:
        return policy
    raise InputError("exhausted", repr(policy), "one of " + ", ".join(repr(known) for known in POLICIES))


def warn_exhausted(error: BudgetExhausted, policy: Exhausted, answers: int, stacklevel: int = 2) -> None:
    """Warn once that a guard is exhausted: answers so far, their replacement, and advice."""
    message = f"{error} This search has {amount(answers, 'answer')}; {_CONSEQUENCES[policy]}. {_advice(error.what)}"
    warnings.warn(message, GuardExhaustedWarning, stacklevel=stacklevel + 1)


def without_answer(error: BudgetExhausted) -> BudgetExhausted:
    """Return the refusal with a note that nothing was answered, and with advice."""
    error.add_note(
        "No query was answered here, so there is nothing to choose from. To go on without the guard, pass "
        f"exhausted='nan' or 'train'. {_advice(error.what)}"
    )
    return error


def _advice(what: str) -> str:
    larger = {"budget": " with a larger holdout_answers=", "queries": " with a larger queries="}.get(what, "")
    saving = _SAVING if what == "budget" else ""
    return f"For more answers make a guard of new records{larger}.{saving}"
