"""Submissions as program optimisers read them: a score of which more is better, its details, and the budget."""

from __future__ import annotations

import math
from typing import Any, Protocol

__all__ = ["budget_of", "evaluation_of", "score_of"]


class Told(Protocol):
    """The parts of a submission that make a score."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def state(self) -> str:
        """Its state."""

    @property
    def number(self) -> int:
        """Its place among those of the team."""

    @property
    def value(self) -> float | None:
        """The answer."""

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""

    @property
    def verdict(self) -> str | None:
        """The verdict of a comparison with the champion."""

    @property
    def repeated(self) -> bool:
        """Whether this request charged nothing."""


class Asked(Protocol):
    """The parts of a holdout that make a score and a budget."""

    @property
    def greater_is_better(self) -> bool:
        """Whether greater values of the metric are better."""

    @property
    def remaining(self) -> int | None:
        """Remaining queries; ``None`` for any number."""

    @property
    def quota(self) -> int | None:
        """Submissions of a team; ``None`` for any number."""

    @property
    def quota_days(self) -> float | None:
        """Days over which the quota counts; ``None`` for all of the time."""


def score_of(holdout: Asked, submission: Told) -> float | None:
    """Return a score of which more is better; ``None`` while nothing is shown.

    An interval has the score of its certified end, by which leaderboards rank: the value inside follows the anticipated
    score, and a false one could raise it. A loss has its negative. A verdict has the number of the submission if it
    became the champion, so that each champion has more than those before, and 0 otherwise.
    """
    if submission.state != "answered":
        return None
    if submission.verdict is not None:
        return float(submission.number) if submission.verdict in ("better", "first") else 0.0
    if holdout.greater_is_better:
        return _finite(submission.value if submission.low is None else submission.low)
    end = _finite(submission.value if submission.high is None else submission.high)
    return None if end is None else -end


def _finite(number: float | None) -> float | None:
    """Return a finite number, or None."""
    return number if number is not None and math.isfinite(number) else None


def budget_of(holdout: Asked, *, exhausted: bool = False) -> dict[str, Any]:
    """Return the budget in the protocol's names: a team's quota, and the remaining queries of all."""
    return {
        "exhausted": exhausted,
        "max_evals": holdout.quota,
        "days": holdout.quota_days,
        "remaining": holdout.remaining,
    }


def evaluation_of(holdout: Asked, submission: Told) -> dict[str, Any]:
    """Return the response to ``POST evaluate``."""
    info = {
        "id": submission.id,
        "state": submission.state,
        "low": _finite(submission.low),
        "high": _finite(submission.high),
        "verdict": submission.verdict,
        "repeated": submission.repeated,
    }
    return {"score": score_of(holdout, submission), "info": info, "budget": budget_of(holdout)}
