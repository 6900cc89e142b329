"""What a guard says about two models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from thresholdout.mechanisms.claims.wins import settling_records

if TYPE_CHECKING:
    from thresholdout.answer import Answer

__all__ = ["Comparison"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether one model is better than another, and by how much.

    Attributes
    ----------
    value : float
        The difference, in the metric's units.
    interval : tuple of float
        With the guard's confidence, together with all its other answers, the true difference lies between these two.
    verdict : {"better", "worse", "not settled"}
        Whether the interval is on one side of 0.
    settling : int or None
        About how many holdout records would settle it, were the value true; ``None`` where it is settled, or where no
        number would.
    answer : Answer
        The answer that it rests on.
    """

    value: float
    interval: tuple[float, float]
    verdict: Literal["better", "worse", "not settled"]
    settling: int | None
    answer: Answer

    @classmethod
    def of(cls, answer: Answer, greater_is_better: bool, variance: float, log_level: float) -> Comparison:
        """Return what an answer about a difference says.

        Parameters
        ----------
        answer : Answer
            About the first model less the second.
        greater_is_better : bool
            Of the metric; a smaller loss is better.
        variance : float
            Of one record's difference, in the metric's units, for `settling`.
        log_level : float
            Natural logarithm of the level at which it would be settled.
        """
        low, high = answer.interval
        side = 1 if low > 0.0 else -1 if high < 0.0 else 0
        if side == 0:
            return cls(
                answer.value,
                answer.interval,
                "not settled",
                settling_records(answer.value, variance, log_level),
                answer,
            )
        better = (side > 0) == greater_is_better
        return cls(answer.value, answer.interval, "better" if better else "worse", None, answer)

    def __repr__(self) -> str:
        low, high = self.interval
        more = "" if self.settling is None else f"; about {self.settling:,} records would settle it"
        return f"<Comparison: {self.verdict}, {self.value:+.4g} in [{low:+.4g}, {high:+.4g}]{more}>"
