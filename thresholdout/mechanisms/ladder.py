"""The Ladder: a leaderboard that shows a new best score only when it is clearly better.

The range from 0 to 1 is divided into cells, each about a standard deviation of a mean wide. Round i, best cell so far
c, h the holdout's mean::

    h is beyond the limit for the estimand of a query with the best score, or the first round:
                  c = the cell of h         (the outcome is the cell, and spends error budget)
    otherwise:    c stays                   (costs next to nothing)
    answer the middle of c in both cases

Statements about estimands are claims, paid from the remaining error budget as in `thresholdout.mechanisms.claims`. The
estimand of a query that is not shown is claimed to be below the limit of the edge, that of a shown one within the
limits of the cell. No noise is drawn. PROOFS.md, "Ladder".

References
----------
[B15] A. Blum, M. Hardt, "The Ladder: a reliable leaderboard for machine learning leaderboards", ICML 2015, for the
idea. Their parameter-free step, the estimated deviation of a difference of two losses, is a heuristic without a bound;
here the step is a limit that holds at that moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import UNIT
from thresholdout.data.arguments import check_count, check_number, check_unit, check_word
from thresholdout.data.values import record_rounding
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.mechanisms.base import UNKNOWN, About, Known, Mechanism, Outcome, refuse_if
from thresholdout.mechanisms.claims.group_tests import own_sizes
from thresholdout.mechanisms.claims.interval import Limit, better, entropy, hoeffding, ones
from thresholdout.mechanisms.claims.lists import NOTHING, after_release
from thresholdout.mechanisms.claims.parameters import counts_of_groups
from thresholdout.mechanisms.claims.reading import Reading, grid_steps, read_values
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, lowered, start_error_budget
from thresholdout.mechanisms.kind import CertificateT, Certifier, Direction, Kind, Parameters
from thresholdout.mechanisms.ladder_state import LadderState
from thresholdout.noise.sources import NoiseSource, SeededNoise

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["LADDER", "Ladder", "LadderParameters", "LadderState"]

Floats: TypeAlias = NDArray[np.float64]

_ASSUMES: Final = "a variance inflation for fixed queries; the analyst is a function of the answers and his own coins"


@dataclass(frozen=True, slots=True)
class LadderParameters(Parameters):
    """Set the public parameters of the `Ladder`, a mechanism that releases only the best score so far.

    Pass them to a guard as ``mechanism=LadderParameters(...)``. The guard fills in the dependence of its records.

    Parameters
    ----------
    confidence : float, default 0.95
        Probability with which all intervals hold at once, in (0, 1).
    direction : {"maximize", "minimize"}, default "maximize"
        Whether the best score is the largest ("maximize") or the smallest ("minimize", for losses).
    queries : int, optional
        Total number of queries. If None, any number is allowed.
    inflation : float, default 1.0
        Variance inflation Lambda of the dependence between records, at least 1.
    effective : float, optional
        Effective sample size for limits by relative entropy. If None, records are independent (with inflation 1), or no
        such number is known (with a larger inflation).
    random_estimands : bool, default False
        Whether estimands depend on the records, like those of out-of-fold averages. Every claim is then paid for.
    information_released : float, default 0.0
        Bound on the information, in nats, that evaluations before the guard released. The logarithm of the error budget
        starts lower by this number.
    sizes : tuple of (int, int), optional
        Sizes and numbers of independent groups, where records have groups; None otherwise.

    Raises
    ------
    InputError
        If a parameter is out of range.
    InputTypeError
        If a parameter has the wrong type.

    Examples
    --------
    >>> LadderParameters(direction="minimize").direction
    'minimize'
    """

    words: ClassVar[str] = (
        "The guard tells only the best score so far: each value and its half-width are about the best truth of all "
        "queries until then, not about the query that was asked."
    )
    given_features: ClassVar[bool] = True
    folds: ClassVar[bool] = True
    prices_releases: ClassVar[bool] = True
    pays_prior_queries: ClassVar[bool] = True
    omitted_when_unset: ClassVar[frozenset[str]] = frozenset({"information_released", "sizes"})

    confidence: float = 0.95
    direction: Direction = "maximize"
    queries: int | None = None
    inflation: float = 1.0
    effective: float | None = None
    random_estimands: bool = False
    information_released: float = 0.0
    sizes: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        def fix(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        below = math.nextafter(1.0, 0.0)
        fix("confidence", check_number("confidence", self.confidence, 0.0, below, "a number in (0, 1)"))
        fix("queries", None if self.queries is None else check_count("queries", self.queries))
        fix(
            "information_released",
            check_number("information_released", self.information_released, -math.ulp(0.0), 1e9, "nats, from 0 to 1e9"),
        )
        fix("inflation", check_number("inflation", self.inflation, below, 1e12, "a number of at least 1"))
        if self.effective is not None:
            wanted = "a positive number of records"
            fix("effective", check_number("effective", self.effective, 0.0, 1e15, wanted))
        if self.sizes is not None:
            fix("sizes", tuple((check_count("sizes", size), check_count("sizes", count)) for size, count in self.sizes))
            if self.random_estimands or self.independent:
                beside = "random_estimands=True" if self.random_estimands else "independent records"
                raise InputError("sizes", "groups", f"None beside {beside}", "Pass inflation= and effective=.")
        check_word("direction", self.direction, ("maximize", "minimize"))
        if not isinstance(self.random_estimands, bool):
            raise InputTypeError("random_estimands", repr(self.random_estimands), "True or False")

    @property
    def independent(self) -> bool:
        """Whether the records are independent."""
        return self.effective is None and self.inflation == 1.0

    @property
    def best_direction(self) -> Direction:
        """Direction of the best score, "maximize" or "minimize"."""
        return self.direction

    def check_direction(self, metric: str, greater_is_better: bool) -> None:
        """Refuse a loss where the largest value is the best, and a score where the smallest is."""
        needed = "maximize" if greater_is_better else "minimize"
        if self.direction != needed:
            more = "more" if greater_is_better else "less"
            limit = "" if self.queries is None else f", queries={self.queries}"
            advice = f"A guard with mechanism=LadderParameters(direction={needed!r}{limit}) takes it."
            seen = f"{metric}, of which {more} is better"
            raise InputError("metric", seen, f"one to {self.direction} for this ladder", advice)

    def check_tells_each(self) -> None:
        """Refuse, because answers are about the best score so far and not about each query."""
        seen = "a ladder, whose answers are the best score so far and not each candidate's"
        advice = "Or call guard.score(model, metric) for one candidate after another."
        raise InputError("guard", seen, "one with mechanism='claims'", advice)


class Ladder(Mechanism[LadderState, Reading]):
    """Release only the best score so far, with an interval for the best estimand, like a leaderboard's top entry.

    It is the mechanism of a guard with ``mechanism="ladder"``, which calls it. Use it when only the best model matters.

    Parameters
    ----------
    parameters : LadderParameters
        Confidence, direction, and the dependence of the records.
    n : int
        Number of records.

    Attributes
    ----------
    parameters : LadderParameters
        The parameters that were passed.
    cells : int
        Number of cells to which scores are rounded, ``ceil(pi sqrt(n))``, with equal differences of the arcsine of the
        root of a score.

    Notes
    -----
    *Guarantee.* With probability at least ``confidence``, after every round, however the queries were chosen, the
    interval contains ``max_{j<=i} q_j(P)``, the best estimand of all queries so far that did not fail (the smallest
    when minimizing). It is not about the present query: `Outcome.about` is "best".

    A query that does not improve the best score costs almost nothing, so an analyst who finds no better model has
    intervals about as wide as those of a single fixed query. A new best score costs the information of its round and
    cell. Intervals use exact binomial limits for values 0 and 1, and limits by relative entropy for other values. For
    groups of records the limits account for the group sizes, for other dependent records they use the effective sample
    size and the variance inflation. The proofs are in PROOFS.md, "Ladder".

    Examples
    --------
    >>> from thresholdout.noise.sources import SeededNoise
    >>> mechanism, noise = Ladder(LadderParameters(), n=10_000), SeededNoise(0)
    >>> state = mechanism.start(noise)
    >>> for correct in (6000, 6100, 7000, 6900):
    ...     reading = mechanism.read(
    ...         [True] * correct + [False] * (10_000 - correct), 10_000, (0, 1), "holdout_values", Known(binary=True))
    ...     state, outcome = mechanism.step(state, 0.6, reading, noise)
    ...     print(round(outcome.value, 3), [round(limit, 3) for limit in outcome.interval], state.releases)
    0.599 [0.586, 0.612] 1
    0.599 [0.586, 0.622] 1
    0.699 [0.676, 0.721] 2
    0.699 [0.676, 0.74] 2
    """

    name: ClassVar[str] = "ladder"
    about: ClassVar[About] = "best"

    def __init__(self, parameters: LadderParameters, n: int) -> None:
        self.parameters = parameters
        self._n = check_count("n", n)
        self._hoeffding = n / parameters.inflation
        self._effective = n if parameters.independent else parameters.effective or self._hoeffding
        self._sizes = None if parameters.sizes is None else GroupSizes(parameters.sizes)
        if self._sizes is not None and self._sizes.n != n:
            raise InputError("sizes", f"groups of {self._sizes.n:,} records", f"groups of {n:,} records in all")
        alike = self._effective if self._sizes is None else max(self._effective, self._hoeffding)
        self.cells = math.ceil(math.pi * math.sqrt(alike))
        self._grid = grid_steps(0.5 / math.sqrt(alike))
        self._rounding = record_rounding(n)
        self._queries = math.inf if parameters.queries is None else parameters.queries
        self._start_error_budget = start_error_budget(parameters.confidence, parameters.information_released)

    def start(self, noise: NoiseSource) -> LadderState:
        """Return the state before the first query; nothing is drawn."""
        return LadderState(self._start_error_budget)

    def first_half_width(self, score: float) -> float:
        """Return the half-width of a first answer."""
        reading = self.read(np.arange(self._n) < score * self._n, self._n, (0.0, 1.0), "score", Known(binary=True))
        low, high = self.step(self.start(SeededNoise(0)), score, reading, SeededNoise(0))[1].interval or (0.0, 1.0)
        return 0.5 * (high - low)

    def read(
        self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN
    ) -> Reading:
        """Check the values of the holdout records and keep them with their public description."""
        return read_values(values, n, bounds, argument, known)

    def step(
        self, state: LadderState, train: float, holdout: Reading, noise: NoiseSource
    ) -> tuple[LadderState, Outcome]:
        """Answer one query with the best score so far. The training value prices the first score only."""
        refuse_if(self.refusal(state))
        check_unit("train", train)
        if len(holdout.records) != self._n:
            raise InputError("holdout", f"{len(holdout.records)} records", f"of {self._n} records, as declared")
        binary = holdout.known.binary and self.parameters.independent
        steps, limit = self._test(binary)
        value = holdout.count(noise) if binary else holdout.on_grid(steps)
        maximize = self.parameters.direction == "maximize"
        after = self._after(
            state, train if maximize else 1.0 - train, value if maximize else steps - value, steps, limit
        )
        low, high = max(0.0, after.low - self._rounding), min(1.0, after.high + self._rounding)
        best = min(max(self._middle(after.best), low), high)
        if not maximize:
            best, low, high = 1.0 - best, max(0.0, math.nextafter(1.0 - high, 0.0)), math.nextafter(1.0 - low, 2.0)
            low, high = min(low, best), min(1.0, max(high, best))
        outcome = Outcome(
            best,
            "holdout",
            state.releases,
            after.asked,
            about="best",
            interval=(low, high),
            log_error_budget=after.log_error_budget,
        )
        return after, outcome

    def pay_release(self, state: LadderState, nats: Callable[[float], float]) -> tuple[LadderState, Outcome]:
        """Pay for another release about the records: a node of its own; see `Mechanism.pay_release` (B8, V11)."""
        left = after_release(state.log_error_budget, nats)
        after = replace(state, log_error_budget=left, asked=state.asked + 1, other_releases=state.other_releases + 1)
        return after, Outcome(0.0, "release", state.releases, after.asked, interval=(0.0, 1.0), log_error_budget=left)

    def noted(self, state: LadderState) -> tuple[LadderState, Outcome]:
        """Write a line into the history, in place of a round without a new score; see `Mechanism.noted`."""
        after = replace(state, asked=state.asked + 1)
        return after, Outcome(
            0.0, "note", state.releases, after.asked, interval=(0.0, 1.0), log_error_budget=state.log_error_budget
        )

    def fail(self, state: LadderState, train: float, noise: NoiseSource) -> tuple[LadderState, Outcome]:
        """Release that a query could not be computed, as an outcome without a claim; see `Mechanism.fail`."""
        refuse_if(self.refusal(state))
        left = lowered(state.log_error_budget + math.log(FAILURE_SHARE))
        after = replace(state, log_error_budget=left, asked=state.asked + 1, failed=state.failed + 1)
        return after, Outcome(train, "failed", state.releases, after.asked, interval=(0.0, 1.0), log_error_budget=left)

    def refusal(self, state: LadderState) -> BudgetExhausted | None:
        """Return the reason why no further query is allowed, or ``None``."""
        if state.log_error_budget <= NOTHING:
            return BudgetExhausted("error_budget", state.queries, state.queries)
        if state.queries >= self._queries:
            return BudgetExhausted("queries", state.queries, int(self._queries))
        return None

    def restore(self, text: str) -> LadderState:
        """Return the state from the text that `LadderState.to_text` wrote."""
        return LadderState.from_text(text)

    def remaining(self, state: LadderState) -> int | None:
        """Return the number of further queries, or ``None`` without a limit."""
        return None if self.parameters.queries is None else self.parameters.queries - state.queries

    def log_error_budget(self, state: LadderState) -> float:
        """Return the natural logarithm of the remaining error budget."""
        return state.log_error_budget

    def tolerance(self) -> float:
        """Return a bound on all half-widths while no query fails, in units of the range.

        It is at most 1, and 1 without a limit on queries. Few rounds can show a score, since each is beyond the limit
        of the last one. The least error budget remains after as many as possible, as far apart as they cost most.
        PROOFS.md, L5.
        """
        queries = self.parameters.queries
        if queries is None:
            return 1.0
        from scipy.special import gammaln

        numbers, rests, sides = self._paid(queries)
        widest, most = 0.0, self._most_scores(queries)
        for more in range(most):  # scores after the first one
            enough = numbers > more
            left = numbers[enough] - 1 - more  # rounds that show none
            shows = gammaln(more + 0.5) + gammaln(left + 0.5) - math.log(math.pi) - gammaln(left + more + 1.0)
            apart = (self.cells - 1) / max(more, 1)
            spent = rests[enough] + sides[enough] - shows + more * math.log(apart * (apart + 1.0))
            widest = max(widest, self._radius(float(np.max(spent)) - self._start_error_budget))
        unit = 1.0 / min(self._n, self._grid)
        step = max(0.5 * math.pi / self.cells, widest + unit if queries > 1 else 0.0)
        return min(1.0, step + widest + 2.0 * (unit + self._rounding))

    def _radius(self, nats: float) -> float:
        """Bound the distance of a limit at this level from the mean."""
        radius = math.sqrt(nats / (2.0 * self._hoeffding))
        if self.parameters.independent or self.parameters.effective is not None:
            radius = min(radius, math.sqrt(nats / (2.0 * self._effective)))
        return radius * (1.0 + 1e-6)  # binomial limits are rounded by up to 1e-9 of themselves

    def _paid(self, queries: int) -> tuple[Floats, Floats, Floats]:
        """Return numbers of rounds, the nats that they and the first score cost, and those of a claim's side then.

        All rounds where claims are paid for by themselves, else the last one, at which the least budget remains.
        """
        first = math.log(1.5 * self.cells * (self.cells + 1))
        if not self.parameters.random_estimands:
            spent = -queries * math.log1p(-2.0 * FAILURE_SHARE) + first
            return np.array([float(queries)]), np.array([spent]), np.zeros(1)
        parts = [self._shares(LadderState(-1.0, number)) for number in range(queries)]
        rests = np.cumsum([-math.log(new) for new, _, _ in parts]) + first
        sides = np.array([-math.log(side or 1.0) for _, _, side in parts])
        return np.arange(1.0, queries + 1.0), rests, sides

    def expected(self, value: float) -> float:
        """Return the half-width after all declared queries if every mean has this value; 1 without a limit."""
        queries = self.parameters.queries
        if queries is None:
            return 1.0
        steps, limit = self._test(self.parameters.independent)
        mean = round((value if self.parameters.direction == "maximize" else 1.0 - value) * steps)
        state = self._after(LadderState(self._start_error_budget), mean / steps, mean, steps, limit)
        low = state.low
        for _ in range(queries - 1):
            state = self._after(state, mean / steps, mean, steps, limit)
        best = min(max(self._middle(state.best), low), state.high)
        return min(1.0, max(best - low, state.high - best) + self._rounding)

    def _most_scores(self, queries: int) -> int:
        """Return the largest number of shown scores: each as near to the last one, and as cheap, as possible."""
        steps, limit = self._test(self.parameters.independent)
        cell, shown, risk = 0, 1, self._start_error_budget - math.log(3.0)
        while shown < queries:
            pause = risk + math.log(0.5 / shown)  # the budget after a round without a score
            highest = _upper(limit, math.floor(self._middle(cell) * steps), steps, pause)
            cell = max(cell + 1, self._cell_of(highest))
            if highest >= 1.0 or cell >= self.cells:
                break
            risk, shown = risk + math.log((shown - 0.5) / shown / 2.0), shown + 1
        return shown

    def _after(self, state: LadderState, train: float, value: int, steps: int, limit: Limit) -> LadderState:
        """Return the state after a query whose mean is `value` steps, larger ones better."""
        shown, quiet, claimed = self._shares(state)
        edge = (
            0
            if state.releases == 0
            else self._edge(state, steps, limit, lowered(state.log_error_budget + math.log(quiet)))
        )
        asked = state.asked + 1
        if value < edge:
            left = lowered(state.log_error_budget + math.log(quiet))
            level = left if claimed is None else lowered(state.log_error_budget + math.log(claimed))
            high = _upper(limit, edge - 1, steps, level)
            return replace(state, log_error_budget=left, asked=asked, high=max(state.high, high))
        cell = self._cell(value, steps)
        if state.releases == 0:
            away = abs(cell - min(self.cells - 1, self._cell_of(train)))
            share = shown / (1.5 * (away + 1) * (away + 2))
        else:
            away = cell - self._cell(edge, steps)
            share = shown / ((away + 1) * (away + 2))
        left = lowered(state.log_error_budget + math.log(share))
        level = left if claimed is None else lowered(state.log_error_budget + math.log(claimed))
        lo, hi = max(edge, self._first(cell, steps)), self._first(cell + 1, steps) - 1
        low, high = _lower(limit, lo, level), _upper(limit, hi, steps, level)
        return replace(
            state,
            log_error_budget=left,
            asked=asked,
            releases=state.releases + 1,
            best=cell,
            low=max(state.low, low),
            high=max(state.high, high),
        )

    def _shares(self, state: LadderState) -> tuple[float, float, float | None]:
        """Return the shares of the budget that a new score, no new score, and a claim's side leave.

        The last is ``None`` where a claim's level is the budget after its outcome.
        """
        rest, number = 1.0 - 2.0 * FAILURE_SHARE, state.queries + 1
        side: float | None = None
        if self.parameters.random_estimands:
            queries = self.parameters.queries
            # of the remaining budget, which without a declared number falls as one over the root of the count
            paid = 0.75 / (queries - number + 1) if queries is not None else 0.5 / (number + 1)
            rest, side = rest - paid, 0.5 * paid
        if state.releases == 0:
            return rest, 0.0, side
        shown = rest * (state.releases - 0.5) / (state.queries - state.failed)
        return shown, rest - shown, side

    def _edge(self, state: LadderState, steps: int, limit: Limit, level: float) -> int:
        """Return the smallest mean that is shown, in steps; above `steps` where none can be."""
        middle = min(steps, math.ceil(self._middle(state.best) * steps))
        highest = _upper(limit, middle, steps, level)
        return max(self._first(state.best + 1, steps), math.ceil(highest * steps))

    def _test(self, binary: bool) -> tuple[int, Limit]:
        """Return the steps of a query's means, and their lower limits."""
        if binary:
            return self._n, ones(self._n)
        if self._sizes is not None:
            return self._grid, own_sizes(self._grid, self._sizes)
        parameters = self.parameters
        limit = hoeffding(self._grid, self._hoeffding)
        if parameters.independent or parameters.effective is not None:
            limit = better(entropy(self._grid, self._effective), limit)
        return self._grid, limit

    def _first(self, cell: int, steps: int) -> int:
        """Return the smallest mean in a cell, in steps."""
        if cell <= 0:
            return 0
        return steps + 1 if cell >= self.cells else math.ceil(self._start(cell) * steps)

    def _start(self, cell: float) -> float:
        return math.sin(0.5 * math.pi * cell / self.cells) ** 2

    def _middle(self, cell: int) -> float:
        return self._start(cell + 0.5)

    def _cell_of(self, score: float) -> int:
        return int(2.0 * self.cells / math.pi * math.asin(math.sqrt(score)))

    def _cell(self, value: int, steps: int) -> int:
        """Return the cell of a mean, by the same edges as `_first`."""
        cell = min(self.cells - 1, self._cell_of(min(1.0, value / steps)))
        while cell + 1 < self.cells and value >= self._first(cell + 1, steps):
            cell += 1
        while cell > 0 and value < self._first(cell, steps):
            cell -= 1
        return cell


def _lower(limit: Limit, lo: int, level: float) -> float:
    """Return the lower limit for the estimand of a mean of at least `lo` steps."""
    return 0.0 if lo <= 0 else limit(lo, level, ())


def _upper(limit: Limit, hi: int, steps: int, level: float) -> float:
    """Return the upper limit for the estimand of a mean of at most `hi` steps, rounded up."""
    return 1.0 if hi >= steps else min(1.0, 1.0 - _lower(limit, steps - hi, level) + UNIT)


def _certified(parameters: LadderParameters, by: Certifier[CertificateT]) -> CertificateT:
    """Certify the intervals of a ladder, which it states by its own confidence and limits."""
    ladder = Ladder(parameters, by.model.n)
    return by.stated(
        Ladder.name,
        ladder.tolerance(),
        _ASSUMES,
        "PROOFS.md, 'Ladder'",
        confidence=min(by.confidence, parameters.confidence),
        likely=ladder.expected,
        why_not=_made_for_others(parameters, by.model),
    )


def _made_for_others(parameters: LadderParameters, model: DependenceModel) -> str:
    """Return why a ladder was made for another model; empty where it was not."""
    from graphs.models.out_of_fold import OutOfFold

    if parameters.inflation < (needed := model.variance_inflation()):
        return f"the mechanism was given the inflation {parameters.inflation:.3g}, and the model has {needed:.3g}"
    if isinstance(model, OutOfFold) and not parameters.random_estimands:
        return "truths of out-of-fold averages are functions of the records, and every claim about them has to be paid"
    if parameters.sizes is not None and parameters.sizes != counts_of_groups(model):
        return "the mechanism was given sizes of groups that are not the model's"
    effective = model.effective_records()
    if parameters.effective is not None and (effective is None or effective < parameters.effective):
        has = "none" if effective is None else f"{effective:.3g}"
        return f"the mechanism was given {parameters.effective:.3g} effective records, and the model has {has}"
    if parameters.independent and effective != model.n:
        return "the mechanism was made for independent records"
    return ""


def _suited(parameters: LadderParameters, by: Certifier[CertificateT]) -> LadderParameters:
    """Fill in the dependence of the records, and whether estimands depend on them."""
    from graphs.models.out_of_fold import OutOfFold

    effective = by.model.effective_records()
    return replace(
        parameters,
        confidence=by.confidence,
        inflation=by.model.variance_inflation(),
        effective=None if effective == by.model.n else effective,
        random_estimands=isinstance(by.model, OutOfFold),
        sizes=counts_of_groups(by.model),
    )


LADDER: Final = Kind(
    name=Ladder.name,
    parameters=LadderParameters,
    state=LadderState,
    build=lambda parameters, n: Ladder(parameters, n),
    certify=_certified,
    suited=_suited,
)
"""The entry of the catalogue."""
