"""Claims about out-of-fold averages: their estimands are functions of the records, and so every claim is paid for.

A confirmed claim about a fixed estimand costs nothing where it is true, and where it is false nothing comes after it.
The average risk of the models of a cross-validation depends on the records. Whether a claim is true is not known at its
node, so both cases have to be paid, and both sides of the interval (PROOFS.md, "K-fold cross-validation", V10):

    w + the sum of R_l over all outcomes <= R,    w >= P(the stated interval does not contain the estimand).

A query gets the share w = R/m of the error budget, m the number of remaining queries. Its answer is the cell of its
average, and the outcome leaves the cell's share of the rest. Limits fail on one event for all cells
(`thresholdout.limits.random_estimands`). The last declared query leaves nothing, so its average is released as it is.
Queries that were fixed together are one node: each has w/k, and an outcome is a cell for each of them (V12). No noise
is drawn: one record takes part in all models, and noise in an average would not hide it.

*Cells* are as wide as the one around the prediction. Each leaves the share of the error budget that a law on the range
gives it, which the history fixes. A wide cell makes this one answer wide. Narrow ones release more about the records,
so that all later answers are wider. Half a cell is at most a fifth of half the expected interval, unless a declared
budget needs wider cells. Validity does not depend on the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Final

import numpy as np

from graphs.numerics.rounding import UNIT
from thresholdout.data.arguments import check_count, check_number, check_unit
from thresholdout.data.values import record_rounding
from thresholdout.errors import BudgetExhausted
from thresholdout.limits.random_estimands import Line, line
from thresholdout.mechanisms.base import UNKNOWN, AnswersLists, Known, Mechanism, Outcome, refuse_if
from thresholdout.mechanisms.claims.lists import NOTHING, Told, after_list, after_release, list_level
from thresholdout.mechanisms.claims.predictor import Prediction, PredictorState, learn, predict
from thresholdout.mechanisms.claims.reading import Reading, grid_steps, read_sums, variance_of
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, lowered, start_error_budget
from thresholdout.mechanisms.claims.state import ClaimsState
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import NoiseSource, SeededNoise

__all__ = ["Cells", "FoldClaims", "FoldClaimsParameters", "best_deviations"]

# The code of cells is a mixture of three laws; any weights that sum to 1 are valid.
_NEAR: Final = 0.9  # the prediction's law
_WIDER: Final = 0.07  # four times as wide
_ANY: Final = 0.03  # uniform
_FOUR: Final = 4.0  # the factor of the wider law
_SIZES: Final = (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.4, 2.8, 3.2, 4.0)  # deviations, to try
_POINTS: Final = (0.1, 0.5, 0.9)  # shares of the remaining queries, after which widths are computed and averaged
_ROUNDED: Final = 0.25  # half a cell is at most this part of half an interval without cells
_ROUNDING: Final = 1.0 - 1e-9  # of a share, far above the rounding of their sum


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a grid from 0 to `steps`, all as wide as the first, from `lo` to `hi`.

    `mean` and `deviation` are the prediction's, in steps. For a `vague` prediction the code is the same everywhere.
    """

    lo: int
    hi: int
    steps: int
    mean: float
    deviation: float
    vague: bool = False

    def around(self, value: int) -> tuple[int, int]:
        """Return the edges of a value's cell."""
        width = self.hi - self.lo + 1
        lo = self.lo + (value - self.lo) // width * width
        return max(lo, 0), min(lo + width - 1, self.steps)

    def nats(self, lo: int, hi: int) -> float:
        """Return the code length of a cell: over all cells, ``e^-nats`` has a sum of at most 1."""
        share = (hi - lo + 1) / (self.steps + 1)
        if not self.vague:
            low = -math.inf if lo <= 0 else (lo - 0.5 - self.mean) / self.deviation
            high = math.inf if hi >= self.steps else (hi + 0.5 - self.mean) / self.deviation
            share = _NEAR * _mass(low, high) + _WIDER * _mass(low / _FOUR, high / _FOUR) + _ANY * share
        return -math.log(share * _ROUNDING)


def best_deviations(
    deviation: float, variance: float, effective: float, log_level: float, queries: int, budget: float
) -> float:
    """Return half the width of cells, in deviations of the prediction, with the narrowest next answers on average.

    Among cells that are small beside the interval of this answer, as far as the budget allows.
    """
    spent = -log_level

    def width(size: float) -> float:
        told = _expected_nats(size) * queries
        limits = (math.sqrt(2.0 * variance * (spent + point * told) / effective) for point in _POINTS)
        return math.fsum(limits) / len(_POINTS) + size * deviation

    allowed = [size for size in _SIZES if _tails(size) * queries <= budget] or list(_SIZES[-1:])
    largest = _ROUNDED * math.sqrt(2.0 * variance * spent / effective) / deviation
    return min([size for size in allowed if size <= largest] or allowed[:1], key=width)


@cache
def _expected_nats(size: float) -> float:
    """Return the mean code length where the prediction's law is right."""
    total, number, mass = 0.0, 0, 0.0
    while mass < 0.999:  # the rest adds about a hundredth of a nat
        low, high = (2 * number - 1) * size, (2 * number + 1) * size
        near = _mass(low, high)
        both = near if number == 0 else 2.0 * near
        total -= both * math.log(_NEAR * near + _WIDER * _mass(low / _FOUR, high / _FOUR))
        mass += both
        number += 1
    return total


def _tails(size: float) -> float:
    return math.erfc(size / math.sqrt(2.0))


def _mass(low: float, high: float) -> float:
    """Return the probability of an interval under the standard normal law, with small ones accurate."""
    if low > 0.0:
        low, high = -high, -low
    root = math.sqrt(2.0)
    return 0.5 * (math.erfc(-high / root) - math.erfc(-low / root))


_AHEAD: Final = 20  # queries that are expected beside the answered ones, where none are declared
_TYPICAL: Final = 0.85  # assumed average, or 1 less it, without any knowledge
_SILENT: Final = 1 << 20  # exponent of a state without noise
_FINE: Final = 1e-6  # deviation that stands for the grid of an average that is released as it is
_EXACT: Final = 1 << 60  # steps: averages that differ on this grid differ
_TRIED: Final = 64  # cells at which the widest interval is sought: it changes slowly from one to the next
_SURPRISE: Final = 100.0  # largest surprise of one answer: an outlier does not make all cells wide


@dataclass(frozen=True, slots=True)
class FoldClaimsParameters(Parameters):
    """Set the public parameters of `FoldClaims`, the default mechanism of a `KFoldGuard`.

    A `KFoldGuard` computes them from its declaration.

    Parameters
    ----------
    effective : float
        Effective sample size N for limits by relative entropy, see `graphs.models.out_of_fold.OutOfFold.claim_records`.
    inflation : float
        Variance inflation Lambda in Hoeffding's inequality, at least 1.
    confidence : float, default 0.95
        Probability with which no interval is wrong, in (0, 1).
    queries : int, optional
        Number of queries in all; None for any number.
    budget : int, optional
        Number of queries that may have another answer than the expected one; None for any number.
    information_released : float, default 0.0
        Bound on the nats that evaluations before the guard released. The log error budget starts lower by them.
    max_half_width : float, optional
        Largest distance of a limit from the expected value in a query that is answered, in units of the range. If None,
        no query is refused for its width.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> FoldClaimsParameters(400.0, 5.0).confidence
    0.95
    """

    words: ClassVar[str] = (
        "Every query is the average over all records of models that were fitted to the other folds. The guard tells "
        "in which cell of the range it lies; each answer costs some of the probability of error that all answers "
        "share, and unexpected ones more, so that later ones are wider."
    )
    prices_releases: ClassVar[bool] = True
    pays_prior_queries: ClassVar[bool] = True
    omitted_when_unset: ClassVar[frozenset[str]] = frozenset({"information_released", "max_half_width"})

    effective: float
    inflation: float
    confidence: float = 0.95
    queries: int | None = None
    budget: int | None = None
    information_released: float = 0.0
    max_half_width: float | None = None

    @property
    def takes_lists(self) -> bool:
        """Whether lists are answered: always."""
        return True

    def __post_init__(self) -> None:
        def fix(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        below = math.nextafter(1.0, 0.0)
        fix("effective", check_number("effective", self.effective, 0.0, 1e15, "a positive number of records"))
        fix("inflation", check_number("inflation", self.inflation, below, 1e15, "a number of at least 1"))
        fix("confidence", check_number("confidence", self.confidence, 0.0, below, "a number in (0, 1)"))
        fix(
            "information_released",
            check_number("information_released", self.information_released, -math.ulp(0.0), 1e9, "nats, from 0 to 1e9"),
        )
        for name in ("queries", "budget"):
            value = getattr(self, name)
            fix(name, None if value is None else check_count(name, value))
        if self.max_half_width is not None:
            fix("max_half_width", check_number("max_half_width", self.max_half_width, 0.0, 1.0, "a number in (0, 1]"))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The fixed numbers of a query before its average is evaluated: its prediction, cells, and limits.

    `lower` and `upper` are limits of the average, and of 1 less it. Without `cells` the average is released as it is.
    """

    made: Prediction
    steps: int
    cells: Cells | None
    lower: Line
    upper: Line

    @property
    def middle(self) -> int:
        """The predicted step."""
        return min(max(round(self.made.mean * self.steps), 0), self.steps)

    def cell(self, value: int) -> tuple[int, int]:
        """Return the edges of the released cell of a value."""
        return (value, value) if self.cells is None else self.cells.around(value)

    def nats(self, lo: int, hi: int) -> float:
        """Return the code length of a cell; 0 where the average is released as it is, and nothing remains to pay."""
        return 0.0 if self.cells is None else self.cells.nats(lo, hi)

    def interval(self, lo: int, hi: int, n: int) -> tuple[float, float]:
        """Return the interval of a cell, for the values of n records as given."""
        low = 0.0 if lo <= 0 else self.lower.lower((lo - 0.5) / self.steps)
        high = 1.0 if hi >= self.steps else 1.0 - self.upper.lower(1.0 - (hi + 0.5) / self.steps) + UNIT
        rounding = record_rounding(n)
        return max(0.0, low - rounding), min(1.0, high + rounding)


class FoldClaims(Mechanism[ClaimsState, Reading]):
    """Answer queries about out-of-fold averages with the cell of the range that contains the average.

    It is the mechanism of a `KFoldGuard`, which calls it. The cell around the expected value is the cheapest outcome.

    Parameters
    ----------
    parameters : FoldClaimsParameters
        Confidence, limits, and bounds on the deviation of averages from their estimands.
    n : int
        Number of records.

    Attributes
    ----------
    parameters : FoldClaimsParameters
        The parameters that were passed.

    Examples
    --------
    >>> from thresholdout.noise.sources import SeededNoise
    >>> mechanism, noise = FoldClaims(FoldClaimsParameters(500.0, 2.0, queries=20), n=1000), SeededNoise(0)
    >>> values = mechanism.read([1] * 940 + [0] * 60, 1000, (0, 1), "values")
    >>> state, outcome = mechanism.step(mechanism.start(noise), 0.93, values, noise)
    >>> outcome.source, [round(limit, 3) for limit in outcome.interval]
    ('holdout', [0.893, 0.985])
    """

    name: ClassVar[str] = "claims"

    def __init__(self, parameters: FoldClaimsParameters, n: int) -> None:
        self.parameters = parameters
        self._n = check_count("n", n)
        self._queries = math.inf if parameters.queries is None else parameters.queries
        self._budget = math.inf if parameters.budget is None else parameters.budget

    def start(self, noise: NoiseSource) -> ClaimsState:
        """Return the state before the first query."""
        return ClaimsState(
            start_error_budget(self.parameters.confidence, self.parameters.information_released),
            0,
            0,
            0,
            _SILENT,
            0,
            PredictorState(),
        )

    def first_half_width(self, score: float) -> float:
        """Return the half-width of a first answer, if nothing is expected of it."""
        reading = self.read(np.full(self._n, score), self._n, (0.0, 1.0), "score", Known(vague=True))
        low, high = self.step(self.start(SeededNoise(0)), score, reading, SeededNoise(0))[1].interval or (0.0, 1.0)
        return 0.5 * (high - low)

    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> Reading:
        """Check the values of all records and reduce them to their mean."""
        return read_sums(values, n, bounds, argument, known)

    def step(
        self, state: ClaimsState, train: float, holdout: Reading, noise: NoiseSource
    ) -> tuple[ClaimsState, Outcome]:
        """Answer one query; see `Mechanism.step`."""
        refuse_if(self.refusal(state))
        check_unit("train", train)
        vague = holdout.known.vague
        asked, log_left = self._next(state, train, holdout.known), self._log_left(state)
        lo, hi = asked.cell(holdout.on_grid(asked.steps))
        agrees = asked.cells is not None and not vague and lo <= asked.middle <= hi
        low, high = asked.interval(lo, hi, self._n)
        told = asked.made.mean if agrees else 0.5 * (lo + hi) / asked.steps
        left = max(NOTHING, lowered(log_left + math.log1p(-2.0 * FAILURE_SHARE) - asked.nats(lo, hi)))
        after = replace(
            state,
            log_error_budget=left,
            asked=state.asked + 1,
            hits=state.hits + (not agrees),
            outcomes=state.outcomes + (not agrees),
            memory=state.memory if vague else _learned(state.memory, asked.made, lo, hi, asked.steps),
        )
        return after, Outcome(
            value=min(max(told, low), high),
            source="train" if agrees else "holdout",
            hits=state.hits,
            asked=after.asked,
            interval=(low, high),
            log_error_budget=left,
        )

    def lists(self) -> AnswersLists[ClaimsState, Reading]:
        """Return this mechanism, which answers lists of queries."""
        return self

    def step_all(
        self, state: ClaimsState, asked: Sequence[tuple[float, Reading]], noise: NoiseSource, reserve: float = 0.2
    ) -> tuple[ClaimsState, list[Outcome]]:
        """Answer a list of queries that were fixed together: one node of the proof (PROOFS.md, V12).

        Limits and cells are fixed before any value is read. The code of a cell may depend on the cells before it, so
        that only the first of some averages that resemble each other is unexpected.
        """
        refuse_if(self.refusal(state, len(asked)))
        memory, last, told = state.memory, None, []
        for (_, reading), one in zip(asked, self._list(state, asked, reserve), strict=True):
            known, made = reading.known, one.made
            lo, hi = one.cell(reading.on_grid(one.steps))
            if last is not None and known.vague and one.cells is not None:
                made = self._predicted(memory, last, known)
                mean, deviation = made.mean * one.steps, made.deviation * one.steps
                nats = replace(one.cells, mean=mean, deviation=deviation, vague=False).nats(lo, hi)
            else:
                nats = one.nats(lo, hi)
            if last is not None or not known.vague:
                memory = _learned(memory, made, lo, hi, one.steps)
            last = 0.5 * (lo + hi) / one.steps
            interval = one.interval(lo, hi, self._n)
            told.append(Told(min(max(last, interval[0]), interval[1]), interval, nats))
        left = after_list(state.log_error_budget, self._reserved(state, len(asked), reserve), told)
        after = replace(
            state,
            log_error_budget=left,
            asked=state.asked + len(asked),
            hits=state.hits + len(asked),
            outcomes=state.outcomes + len(asked),
            memory=memory,
        )
        return after, [
            Outcome(one.value, "holdout", state.hits + k, state.asked + k + 1, "query", one.interval, left)
            for k, one in enumerate(told)
        ]

    def step_best(
        self,
        state: ClaimsState,
        asked: Sequence[tuple[float, Reading]],
        noise: NoiseSource,
        reserve: float,
        greatest: bool,
    ) -> tuple[ClaimsState, Outcome, int]:
        """Release which of some averages is the best one, and its cell. Its position is one more outcome (V12)."""
        refuse_if(self.refusal(state))
        fixed = self._list(state, asked, reserve)
        values = [reading.on_grid(_EXACT) for _, reading in asked]
        place = values.index(max(values) if greatest else min(values))
        one = fixed[place]
        lo, hi = one.cell(asked[place][1].on_grid(one.steps))
        low, high = one.interval(lo, hi, self._n)
        value = min(max(0.5 * (lo + hi) / one.steps, low), high)
        told = Told(value, (low, high), one.nats(lo, hi) + math.log(len(asked)))
        left = after_list(state.log_error_budget, self._reserved(state, 1, reserve), [told])
        after = replace(
            state,
            log_error_budget=left,
            asked=state.asked + 1,
            hits=state.hits + 1,
            outcomes=state.outcomes + 1,
        )
        return after, Outcome(value, "holdout", state.hits, after.asked, "query", (low, high), left), place

    def fail(self, state: ClaimsState, train: float, noise: NoiseSource) -> tuple[ClaimsState, Outcome]:
        """Release that a query could not be computed, as the outcome *raised*; see `Mechanism.fail`."""
        refuse_if(self.refusal(state))
        left = max(NOTHING, lowered(self._log_left(state) + math.log(FAILURE_SHARE)))
        after = replace(
            state, log_error_budget=left, asked=state.asked + 1, hits=state.hits + 1, outcomes=state.outcomes + 1
        )
        return after, Outcome(train, "failed", state.hits, after.asked, interval=(0.0, 1.0), log_error_budget=left)

    def pay_release(self, state: ClaimsState, nats: Callable[[float], float]) -> tuple[ClaimsState, Outcome]:
        """Pay for another release about the records, at a node of its own; see `Mechanism.pay_release` (V11)."""
        left = after_release(state.log_error_budget, nats)
        after = replace(state, log_error_budget=left, asked=state.asked + 1, other_releases=state.other_releases + 1)
        return after, Outcome(0.0, "release", state.hits, after.asked, interval=(0.0, 1.0), log_error_budget=left)

    def refusal(self, state: ClaimsState, more: int = 1) -> BudgetExhausted | None:
        """Return the reason why no further query, or list of queries, is allowed, or ``None``."""
        if state.queries + more > self._queries:
            return BudgetExhausted("queries", state.queries, int(self._queries))
        if state.hits + more > self._budget:
            return BudgetExhausted("budget", state.hits, int(self._budget))
        return (
            BudgetExhausted("error_budget", state.queries, state.queries) if state.log_error_budget <= NOTHING else None
        )

    def refuses(self, state: ClaimsState, train: float, known: Known) -> BudgetExhausted | None:
        """Return the reason why this query is not allowed, or ``None``.

        A query is also refused if the interval around its expected value would be too wide. Public numbers decide.
        Where nothing is expected, the widest interval counts.
        """
        most, refusal = self.parameters.max_half_width, self.refusal(state)
        if refusal is not None or most is None:
            return refusal
        asked = self._next(state, train, known)
        values = [asked.middle] if not known.vague else [k * asked.steps // _TRIED for k in range(_TRIED + 1)]
        ends = [(value, asked.interval(*asked.cell(value), self._n)) for value in values]
        wide = any(max(value / asked.steps - low, high - value / asked.steps) > most for value, (low, high) in ends)
        return BudgetExhausted("width", state.queries, state.queries) if wide else None

    def restore(self, text: str) -> ClaimsState:
        """Return the state from the text that `ClaimsState.to_text` wrote."""
        return ClaimsState.from_text(text)

    def remaining(self, state: ClaimsState) -> int | None:
        """Return the number of further answers from the records, or ``None`` without a limit."""
        return None if self.parameters.budget is None else self.parameters.budget - state.hits

    def log_error_budget(self, state: ClaimsState) -> float:
        """Return the natural logarithm of the remaining error budget."""
        return state.log_error_budget

    def _share(self, state: ClaimsState) -> int:
        """Return the divisor of the error budget for the next query."""
        queries = self.parameters.queries
        return state.queries + _AHEAD if queries is None else queries - state.queries

    def _log_left(self, state: ClaimsState) -> float:
        """Return the logarithm of the budget that the next query leaves for all its outcomes together."""
        share = self._share(state)
        return NOTHING if share == 1 else lowered(state.log_error_budget + math.log1p(-1.0 / share))

    def _predicted(self, memory: PredictorState, expected: float, known: Known) -> Prediction:
        effective = self.parameters.effective
        return predict(memory, expected, variance_of(expected, known, effective), effective, effective)

    def _next(self, state: ClaimsState, train: float, known: Known) -> _Asked:
        """Fix limits and cells of the next query: a function of the history and the query alone."""
        share = self._share(state)
        ahead = max(20, state.queries) if self.parameters.queries is None else share
        level = lowered(state.log_error_budget - math.log(2.0 * share))
        return self._fixed(state, train, known, level, 0 if share == 1 else ahead)

    def _list(self, state: ClaimsState, asked: Sequence[tuple[float, Reading]], reserve: float) -> list[_Asked]:
        """Fix limits and cells of queries that were fixed together, without their values."""
        reserve = self._reserved(state, len(asked), reserve)
        level = list_level(state.log_error_budget, len(asked), reserve)
        for train, _ in asked:
            check_unit("train", train)
        ahead = 0 if reserve <= 0.0 else len(asked)
        return [self._fixed(state, train, reading.known, level, ahead) for train, reading in asked]

    def _reserved(self, state: ClaimsState, more: int, reserve: float) -> float:
        """Return the reserve for queries after a list: nothing after the last declared one."""
        return 0.0 if state.queries + more >= self._queries else reserve

    def _fixed(self, state: ClaimsState, train: float, known: Known, level: float, ahead: int) -> _Asked:
        """Fix limits and cells; `ahead` queries pay for the release, and with none the average is released as it is."""
        parameters, expected = self.parameters, _TYPICAL if known.vague else train
        variance = variance_of(expected, known, parameters.effective)
        made = predict(state.memory, train, variance, parameters.effective, parameters.effective)
        steps, half = grid_steps(made.deviation if ahead else _FINE), 0
        middle = min(max(round(made.mean * steps), 0), steps)
        if ahead:
            budget = self._budget - state.hits
            size = best_deviations(made.deviation, variance, parameters.effective, level, ahead, budget)
            half = max(1, round(size * made.deviation * steps))
        spread = half / steps
        lower, upper = (max(edge - spread, 0.5 * edge) for edge in (middle / steps, 1.0 - middle / steps))
        if known.vague:  # the middle says nothing: limits that are good for many averages
            lower = upper = _TYPICAL
        records = parameters.effective, self._n / parameters.inflation
        limits = line(lower, *records, level), line(upper, *records, level)
        cells = Cells(middle - half, middle + half, steps, made.mean * steps, made.deviation * steps, known.vague)
        return _Asked(made, steps, cells if ahead else None, *limits)


def _learned(memory: PredictorState, made: Prediction, lo: int, hi: int, steps: int) -> PredictorState:
    """Return the memory after an average in a cell."""
    return _surprised(memory, learn(memory, made, (lo - 0.5) / steps, (hi + 0.5) / steps))


def _surprised(memory: PredictorState, learned: PredictorState) -> PredictorState:
    """Return the memory of surprises, without a common shift.

    By default the last answer is expected, which has every shift in it already.
    """
    return PredictorState(surprise=min(learned.surprise, memory.surprise + _SURPRISE), weight=learned.weight)
