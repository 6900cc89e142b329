"""What happens when a guard answers no more: the same four words in every search and every training loop."""

from __future__ import annotations

import warnings
from typing import Final, Literal, get_args

from thresholdout.errors import BudgetExhausted, GuardExhaustedWarning, InputError

__all__ = ["POLICIES", "Exhausted", "check_exhausted", "warn_exhausted"]

Exhausted = Literal["raise", "train", "nan", "stop"]
"""``"raise"``: the search ends with an error that nothing swallows. ``"train"``: the training value stands in.
``"nan"``: NaN stands in, and the search goes on. ``"stop"``: the search ends quietly with what it has; where it can't
be ended, the rest is NaN, at once and without predicting anything."""

POLICIES: Final[tuple[Exhausted, ...]] = get_args(Exhausted)

_CONSEQUENCES: Final[dict[Exhausted, str]] = {
    "train": "training values, which no certificate covers, stand in from here on",
    "nan": "NaN stands in from here on",
    "stop": "no further question is asked",
}


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


def warn_exhausted(error: BudgetExhausted, policy: Exhausted, stacklevel: int = 2) -> None:
    """Say that a guard answers no more, and what stands in for its answers; callers do so once.

    Parameters
    ----------
    error : BudgetExhausted
        The guard's refusal.
    policy : {"train", "nan", "stop"}
        What happens now.
    stacklevel : int, default=2
        As in `warnings.warn`, counted from the caller.
    """
    warnings.warn(f"{error}; {_CONSEQUENCES[policy]}", GuardExhaustedWarning, stacklevel=stacklevel + 1)
