"""Comparisons of two models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from graphs.numerics.rounding import shown_interval
from thresholdout.guard.answer import shown_confidence, shown_cost

if TYPE_CHECKING:
    from thresholdout.guard.answer import Answer

__all__ = ["About", "Comparison", "Verdict"]

About: TypeAlias = Literal["difference", "win_rate"]
Verdict: TypeAlias = Literal["better", "worse", "not settled"]

_MOST: Final = 1e12  # no data set has more records


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of `Thresholdout.compare`: whether one model is better than another, and by how much.

    Attributes
    ----------
    value : float
        Score of the first model minus that of the second, in the metric's units; or the first model's win rate, in
        [0, 1].
    interval : tuple of float
        Lower and upper limit of the value. With the guard's confidence, the intervals of all answers contain their
        estimands at once.
    verdict : {"better", "worse", "not settled"}
        "better" or "worse" (the first model than the second) if the whole interval is on one side of 0, or of one half
        for a win rate; else "not settled".
    settling : int or None
        Approximate number of holdout records that would settle the comparison if the true difference were ``value``;
        ``None`` if it is settled, or if no number would settle it.
    answer : Answer
        The guard's answer that the comparison is made from.
    about : {"difference", "win_rate"}
        Whether value and interval are those of the difference or of the win rate.
    candidate : str
        Name of the model in the history, in a comparison of several models.
    direct : tuple of float or None
        Set if the comparison is not settled and ``precise=True`` would be narrower: the expected half-width, and its
        approximate cost in nats of the error budget.
    """

    value: float
    interval: tuple[float, float]
    verdict: Verdict
    settling: int | None
    answer: Answer
    about: About = "difference"
    candidate: str = ""
    direct: tuple[float, float] | None = None

    @classmethod
    def of(
        cls, answer: Answer, n: int, *, greater_is_better: bool = True, about: About = "difference", candidate: str = ""
    ) -> Comparison:
        """Return the comparison that follows from an answer about two models.

        Parameters
        ----------
        answer : Answer
            Answer about the score of the first model less that of the second, or about the win rate.
        n : int
            Number of holdout records.
        greater_is_better : bool, default True
            Whether a greater value of the metric is better. Wins are always the first model's.
        about : {"difference", "win_rate"}, default "difference"
            The quantity of the answer.
        candidate : str, default ""
            Name of the model, in a comparison of several models.

        Returns
        -------
        Comparison
            The comparison, with its verdict.

        Examples
        --------
        >>> from thresholdout.guard.answer import Answer
        >>> Comparison.of(Answer(0.01, (-0.01, 0.03), "train", 1, None, -1.0, 1.0), 1000)
        <Comparison: not settled, +0.010 in [-0.010, +0.030]; about 4,000 records would settle it>
        """
        low, high = answer.interval
        middle = 0.5 if about == "win_rate" else 0.0
        verdict: Verdict = "not settled"
        if low > middle or high < middle:
            verdict = "better" if (low > middle) == (greater_is_better or about == "win_rate") else "worse"
        settling = None if verdict != "not settled" else _settling(answer.value, low, high, middle, n)
        return cls(answer.value, answer.interval, verdict, settling, answer, about, candidate)

    def __repr__(self) -> str:
        value, low, high = self._shown
        name = f" {self.candidate}" if self.candidate else ""
        more = "" if self.settling is None else f"; about {self.settling:,} records would settle it"
        if self.direct is not None:
            more += f"; precise=True would show ±{self.direct[0]:.2g} for {self.direct[1]:.0f} nats"
        if self.answer.cost is not None:
            more += f"; cost {shown_cost(self.answer.cost)}"
        more += "; approximate (normal limits)" if self.answer.approximate else ""
        if self.about == "win_rate":
            return f"<Comparison{name}: {self.verdict}, {value} of wins in [{low}, {high}]{more}>"
        return f"<Comparison{name}: {self.verdict}, {value} in [{low}, {high}]{more}>"

    @property
    def _shown(self) -> tuple[str, str, str]:
        """Value and interval in words: the interval rounded outwards, and differences with their sign."""
        wins = self.about == "win_rate"
        return shown_interval(self.value, *self.interval, signed=not wins, apart=0.5 if wins else 0.0)

    def _repr_html_(self) -> str:
        from thresholdout.notebook.cards import Bar, Card

        wins = self.about == "win_rate"
        value, low, high = self._shown
        lead = (
            f"{'Win rate' if wins else 'Difference'} {value}; {shown_confidence(self.answer.approximate)}, together "
            f"with all its other answers, the truth is between {low} and {high}."
        )
        notes = []
        if self.settling is not None:
            notes.append(f"About {self.settling:,} holdout records would settle it, were the value true.")
        if self.direct is not None:
            half, nats = self.direct
            notes.append(f"precise=True would show ±{half:.2g}, for about {nats:.0f} nats of the error budget.")
        heading = f"Comparison: {self.verdict}" + (f" ({self.candidate})" if self.candidate else "")
        bar = Bar("", *self.interval, "", self.value, self.answer.source)
        return Card(heading, lead, bars=[bar], mark=0.5 if wins else 0.0, notes=notes).html


def _settling(value: float, low: float, high: float, middle: float, n: int) -> int | None:
    """Return the number of records at which the interval, about the same value, would end at the middle."""
    off = value - middle
    reach = value - low if off > 0.0 else high - value
    if off == 0.0 or n * reach * reach > _MOST * off * off:
        return None
    return max(n + 1, math.ceil(n * (reach / off) ** 2))
