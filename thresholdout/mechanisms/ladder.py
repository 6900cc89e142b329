"""The Ladder: a leaderboard that shows a new best score only when it is clearly better.

Round i, best score R so far (a point of a grid of step g), holdout mean h, r the radius of a question of round i::

    h >= R + max(r, g), or the first round:   R = h rounded to the grid     (costs the position and the score)
    otherwise:                                R stays                       (costs next to nothing)
    answer R in both cases

There is nothing to choose: grid and steps follow from the number of records and the confidence. Few scores are ever
shown, and they increase, so a history can be told in few nats, and every question is one of few that are fixed in
advance; see `thresholdout.mechanisms.description`. No noise is drawn.

References
----------
[B15] A. Blum, M. Hardt, "The Ladder: a reliable leaderboard for machine learning competitions", ICML 2015, for the
idea. Their parameter-free step, the estimated deviation of a difference of two losses, is a heuristic without a bound;
here the step is the radius that holds at that moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms.base import UNKNOWN, Known, Mechanism, Outcome, Past
from thresholdout.mechanisms.description import FixedQuestion, choice_nats, index_nats
from thresholdout.mechanisms.precision import check_count, check_number
from thresholdout.noise import NoiseSource
from thresholdout.queries import ExactMean, record_rounding, unit_total

__all__ = ["Ladder", "LadderParameters", "LadderState"]

_FORMAT = "ladder/1"


@dataclass(frozen=True, slots=True)
class LadderParameters:
    """Public parameters of `Ladder`; it works without any.

    Parameters
    ----------
    confidence : float
        Probability with which all half-widths hold at once, in (0, 1).
    direction : {"maximize", "minimize"}
        Whether the best score is the largest or the smallest.
    queries : int or None
        Questions in all; ``None`` for any number, at a cost that grows with their logarithm.
    inflation : float
        Lambda of the dependence between records, at least 1.

    Raises
    ------
    InputError
        When a parameter is out of range.
    InputTypeError
        When a parameter is not of its kind.

    Examples
    --------
    >>> LadderParameters(direction="minimize").direction
    'minimize'
    """

    confidence: float = 0.95
    direction: Literal["maximize", "minimize"] = "maximize"
    queries: int | None = None
    inflation: float = 1.0

    def __post_init__(self) -> None:
        def fix(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        below = math.nextafter(1.0, 0.0)
        fix("confidence", check_number("confidence", self.confidence, 0.0, below, "a number in (0, 1)"))
        fix("queries", None if self.queries is None else check_count("queries", self.queries))
        fix("inflation", check_number("inflation", self.inflation, below, 1e12, "a number of at least 1"))
        if self.direction not in ("maximize", "minimize"):
            raise InputError("direction", repr(self.direction), "'maximize' or 'minimize'")


@dataclass(frozen=True, slots=True)
class LadderState:
    """State of `Ladder`; nothing in it is secret.

    Attributes
    ----------
    asked : int
        Questions so far.
    releases : int
        Scores that were shown.
    best : int
        The last of them, in grid steps, turned so that larger is better.
    widest : float
        Largest radius of any question so far.

    Examples
    --------
    >>> state = LadderState(asked=3, releases=1, best=60, widest=0.04)
    >>> LadderState.from_text(state.to_text()) == state
    True
    """

    asked: int
    releases: int
    best: int
    widest: float

    def agrees(self, past: Past) -> bool:
        """Whether a history has as many questions, and room for the scores that were shown."""
        return self.asked == past.asked and self.releases <= past.sources.get("holdout", 0)

    def to_text(self) -> str:
        """Return the state as one line of text, for a ledger."""
        return f"{_FORMAT} {self.asked} {self.releases} {self.best} {self.widest!r}"

    @classmethod
    def from_text(cls, text: str) -> LadderState:
        """Read what `to_text` wrote.

        Raises
        ------
        InputError
            When the text is something else.
        """
        try:
            tag, *words, last = text.split(" ")
            asked, releases, best = map(int, words)
            widest = float(last)
            if tag != _FORMAT or not (0 <= releases <= asked and best >= 0 and 0.0 <= widest < math.inf):
                raise ValueError
        except ValueError:
            raise InputError("state", "a text of another form", f"what a {_FORMAT} state wrote") from None
        return cls(asked, releases, best, widest)


class Ladder(Mechanism[LadderState, ExactMean]):
    """The best score so far, and how far it can be from the best truth.

    Parameters
    ----------
    parameters : LadderParameters
        Confidence and direction.
    n : int
        Number of records.

    Attributes
    ----------
    parameters : LadderParameters
        As given.
    intervals : int
        Steps of the grid of scores from 0 to 1: ``ceil(2 sqrt(n))``.

    Notes
    -----
    *Guarantee.* With probability at least ``confidence``, after every round, however the questions were chosen: the
    answer R is within the half-width of ``max_{j<=i} q_j(P)``, the best truth of all questions asked so far (the
    smallest when minimising). It is not about the question just asked: `Outcome.about` is "best". The half-width is
    ``max(2 r, r + g)``, r the largest radius so far: close to ``sqrt(2 ln(i)/n)`` while few scores were shown, and of
    order ``(ln(n i)/n)^(1/3)`` at worst, as steps grow with the number of scores. Dependent records enter through their
    inflation. PROOFS.md, "Ladder".

    Examples
    --------
    >>> from thresholdout.noise import SeededNoise
    >>> mechanism, noise = Ladder(LadderParameters(), n=10_000), SeededNoise(0)
    >>> state = mechanism.start(noise)
    >>> for correct in (6000, 6100, 7000, 6900):
    ...     values = mechanism.read([True] * correct + [False] * (10_000 - correct), 10_000, (0, 1), "holdout_values")
    ...     state, outcome = mechanism.step(state, 0.5, values, noise)
    ...     print(outcome.value, round(outcome.half_width, 3), state.releases)
    0.6 0.034 1
    0.6 0.051 1
    0.7 0.054 2
    0.7 0.064 2
    """

    name: ClassVar[str] = "ladder"

    def __init__(self, parameters: LadderParameters, n: int) -> None:
        self.parameters = parameters
        self._n = check_count("n", n)
        self.intervals = 1 + math.isqrt(4 * n - 1)
        self._bounds = FixedQuestion(n, 1.0 - parameters.confidence, parameters.inflation)
        self._rounding = record_rounding(n) + 2.0**-51
        self._queries = math.inf if parameters.queries is None else parameters.queries

    def start(self, noise: NoiseSource) -> LadderState:
        """Return the state before the first question; nothing is drawn."""
        return LadderState(0, 0, 0, 0.0)

    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> ExactMean:
        """Check per-record values and return their exact mean; see `thresholdout.queries.unit_total`."""
        return unit_total(values, n, bounds, argument)

    def step(
        self, state: LadderState, train: float, holdout: ExactMean, noise: NoiseSource
    ) -> tuple[LadderState, Outcome]:
        """Answer one query with the best score; see `Mechanism.step`. The train value is not used."""
        refusal = self.refusal(state)
        if refusal is not None:
            raise refusal
        if not 0.0 <= train <= 1.0:
            raise InputError("train", train, "a number in [0, 1]")
        if holdout.n != self._n:
            raise InputError("holdout", f"{holdout.n} records", f"{self._n}, as declared")
        maximize = self.parameters.direction == "maximize"
        mean = holdout.mean()
        score = mean if maximize else 1.0 - mean
        radius = self._radius(state)
        step = max(radius, 1.0 / self.intervals)
        better = state.releases == 0 or score >= state.best / self.intervals + step
        after = LadderState(
            state.asked + 1,
            state.releases + better,
            round(score * self.intervals) if better else state.best,
            max(state.widest, radius),
        )
        best = after.best if maximize else self.intervals - after.best
        half_width = min(1.0, self._half_width(after.widest))
        return after, Outcome(best / self.intervals, "holdout", state.releases, after.asked, half_width, "best")

    def fail(self, state: LadderState, train: float, noise: NoiseSource) -> tuple[LadderState, Outcome]:
        """Charge a question that could not be computed; see `Mechanism.fail`."""
        refusal = self.refusal(state)
        if refusal is not None:
            raise refusal
        after = replace(state, asked=state.asked + 1)
        return after, Outcome(train, "failed", state.releases, after.asked, 1.0)

    def refusal(self, state: LadderState) -> BudgetExhausted | None:
        """Return why no further query is allowed, or ``None``."""
        if state.asked >= self._queries:
            return BudgetExhausted("queries", state.asked, int(self._queries))
        return None

    def restore(self, text: str) -> LadderState:
        """Return the state that `LadderState.to_text` wrote."""
        return LadderState.from_text(text)

    def remaining(self, state: LadderState) -> int | None:
        """Return how many questions are left; ``None`` without a limit."""
        return None if self.parameters.queries is None else self.parameters.queries - state.asked

    def tolerance(self) -> float:
        """Return the largest half-width that any answer can state: at most 1, the range; 1 without limit of questions.

        A score is shown when it is beyond the last one by the radius of its round or more, so there are few rounds that
        show one. After as many as there can be, the last question has the largest radius.

        Examples
        --------
        >>> round(Ladder(LadderParameters(queries=100), n=10_000).tolerance(), 4)
        0.1621
        """
        if self.parameters.queries is None:
            return 1.0
        last, widest, releases, climbed = self.parameters.queries - 1, 0.0, 0, 0.0
        while releases <= last and climbed <= self.intervals:
            widest = max(widest, self._radius(LadderState(last, releases, 0, 0.0)))
            releases += 1
            if releases > 1:  # the earliest that this many can have been shown, where radii are smallest
                least = self._radius(LadderState(releases - 1, releases - 1, 0, 0.0)) * self.intervals
                climbed += max(1.0, least - 0.5) * (1.0 - 1e-9)
        return min(1.0, self._half_width(widest) * (1.0 + 1e-12))

    def _half_width(self, widest: float) -> float:
        """Return what an answer is worth after questions of at most this radius."""
        return widest + max(widest, 1.0 / self.intervals) + 2.0 * self._rounding

    def _radius(self, state: LadderState) -> float:
        """Radius of the next question, told by its number, the rounds that showed scores, and the set of these."""
        nats = (
            index_nats(state.asked + 1, self.parameters.queries)
            + index_nats(state.releases + 1, None)
            + choice_nats(state.asked, state.releases)
            + choice_nats(self.intervals + 1, state.releases)
        )
        return self._bounds.radius(nats)
