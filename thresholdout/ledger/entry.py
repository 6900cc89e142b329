"""One line of a guard's history."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One question and its answer, as the ledger keeps it; nothing in it is secret.

    Parameters
    ----------
    query : int
        Number of the question, 1 for the first that the guard answered.
    key : str
        The question's identity: asking again with the same key gives this entry again.
    name : str
        What was asked, in the user's words, such as ``"accuracy"``.
    train : float
        Mean on the training part, in the query's own units.
    value : float
        The answer, in the query's own units.
    half_width : float
        Half the width of the answer's interval, in the query's own units.
    source : {"train", "holdout"}
        Where the answer comes from.
    remaining : int or None
        Answers from the holdout that are left after this one; None when there is no limit.
    lower, upper : float
        Bounds of the query's range.

    Examples
    --------
    >>> Entry(1, "first", "accuracy", 0.8, 0.79, 0.05, "holdout", 9, 0.0, 1.0).remaining
    9
    """

    query: int
    key: str
    name: str
    train: float
    value: float
    half_width: float
    source: str
    remaining: int | None
    lower: float
    upper: float
