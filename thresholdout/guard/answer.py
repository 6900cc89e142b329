"""Answers of a guard."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, Never, SupportsFloat

from graphs.numerics.rounding import shown_above, shown_answer, shown_interval
from thresholdout.errors import InputTypeError
from thresholdout.limits.rounded_intervals import larger_side
from thresholdout.mechanisms.base import AnswerSource

__all__ = ["Answer", "shown_confidence", "shown_cost"]

_FROM: Final = {"train": "what was expected, confirmed by the holdout", "holdout": "the holdout"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a query to a guard: a value and an interval that contains the estimand with the guard's confidence.

    The estimand is the quantity that the query asks about, such as a model's accuracy on new records. An answer
    converts to a float, and is compared and formatted by its value. So ``b > a`` does not show that b is better: use
    ``guard.compare(b, a)``, which may separate two models even if their intervals overlap. ``b - a`` is refused, since
    the interval of the difference would be unknown.

    Attributes
    ----------
    value : float
        The answer, in the units of the query's range.
    interval : tuple of float
        Lower and upper limit, in the units of the query's range. With the guard's confidence, the intervals of all
        answers contain their estimands at once. It is the whole range if no certificate applies.
    source : {"train", "holdout"}
        "train" if the value is the training value, which the holdout confirmed; "holdout" if it was computed from the
        holdout. Only the latter counts against a declared limit of answers from the holdout.
    query : int
        Number of the query, from 1.
    remaining : int or None
        Number of answers from the holdout that are left after this one; ``None`` if no limit was declared.
    lower, upper : float, default 0.0 and 1.0
        Declared range of the query.
    name : str
        Name that the caller gave the query.
    repeated : bool
        Whether this is an earlier answer, returned again at no cost because its key was used again.
    about : {"query", "best"}
        Whether value and interval are those of this query or, for the Ladder mechanism, of the best query so far.
    candidate : str
        The scored model: its name, or its class with the parameters that differ from defaults.
    estimand : str
        The estimand of a statistic that is not a mean over records, in words. (For means see the guard's certificate.)
    cost : float or None
        Spent error budget in nats (decrease of its logarithm), for an answer with ``precise=True`` or another interval
        that was stated directly; ``None`` for other answers. Infinite if all of it was spent.
    approximate : bool
        Whether the guard uses normal limits (``Claims(limits="normal")``), so that no interval is guaranteed.

    Examples
    --------
    >>> answer = Answer(value=0.84, interval=(0.79, 0.88), source="train", query=1, remaining=10)
    >>> answer
    <Answer 1: 0.840 ± 0.050 from train, 10 left>
    >>> float(answer), answer > 0.8, f"{answer:.3f}"
    (0.84, True, '0.840')
    >>> round(answer.half_width, 12)
    0.05
    """

    value: float
    interval: tuple[float, float]
    source: AnswerSource
    query: int
    remaining: int | None
    lower: float = 0.0
    upper: float = 1.0
    name: str = ""
    repeated: bool = False
    about: Literal["query", "best"] = "query"
    candidate: str = ""
    estimand: str = ""
    cost: float | None = None
    approximate: bool = False

    @property
    def half_width(self) -> float:
        """Half-width of the interval: the largest distance between ``value`` and an end of it, rounded up."""
        return larger_side(self.value, *self.interval)

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else repr(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __sub__(self, other: object) -> Never:
        """Refuse arithmetic; convert to a float for it."""
        raise _no_arithmetic("-", self, other)

    def __rsub__(self, other: object) -> Never:
        """Refuse arithmetic."""
        raise _no_arithmetic("-", other, self)

    def __add__(self, other: object) -> Never:
        """Refuse arithmetic."""
        raise _no_arithmetic("+", self, other)

    def __radd__(self, other: object) -> Never:
        """Refuse arithmetic."""
        raise _no_arithmetic("+", other, self)

    def __lt__(self, other: SupportsFloat) -> bool:
        return self.value < float(other)

    def __le__(self, other: SupportsFloat) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: SupportsFloat) -> bool:
        return self.value > float(other)

    def __ge__(self, other: SupportsFloat) -> bool:
        return self.value >= float(other)

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        left = "" if self.remaining is None else f", {self.remaining} left"
        left += "" if self.cost is None else f", cost {shown_cost(self.cost)}"
        left += ", approximate (normal limits)" if self.approximate else ""
        return f"<Answer {self.query}{name}: {shown_answer(self.value, *self.interval)} from {self.source}{left}>"

    def _repr_html_(self) -> str:
        from thresholdout.notebook.cards import Bar, Card

        low, high = self.interval
        value, least, most = shown_interval(self.value, low, high)
        named = ", ".join(part for part in (self.name, self.candidate) if part)
        facts = [("from", _FROM[self.source])]
        if self.remaining is not None:
            facts.append(("answers from the holdout left", f"{self.remaining:,}"))
        notes = [f"The estimand: {self.estimand}."] if self.estimand else []
        if self.about == "best":
            notes.append("About the best query so far, not about this one.")
        if self.repeated:
            notes.append("An earlier answer, given again: it costs nothing.")
        return Card(
            f"Answer {self.query}" + (f": {named}" if named else ""),
            f"{value}; {shown_confidence(self.approximate)} the truth is between {least} and {most}.",
            facts,
            [Bar("", low, high, "", self.value, self.source)],
            axis=(self.lower, self.upper),
            notes=notes,
        ).html


def shown_confidence(approximate: bool) -> str:
    """Return the confidence of an interval in words."""
    return "approximately with the guard's confidence (normal limits)" if approximate else "with the guard's confidence"


def shown_cost(cost: float) -> str:
    """Return nats of the error budget in words."""
    return "all of the error budget" if cost == math.inf else f"{shown_above(cost, 3)} nats"


def _no_arithmetic(sign: str, left: object, right: object) -> InputTypeError:
    """Return why answers are not added or subtracted: the result would have no known interval."""
    one, other = ("answer" if isinstance(side, Answer) else "number" for side in (left, right))
    advice = "The result would have no known interval."
    if sign == "-" and one == other:
        advice += " guard.compare(b, a) answers how much better b is, with an interval."
    return InputTypeError("answer", f"{one} {sign} {other}", "converted by float(answer) for arithmetic", advice)
