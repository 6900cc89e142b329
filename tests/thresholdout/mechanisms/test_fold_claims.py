"""Claims about out-of-fold averages: what outcomes leave of the risk, and all analysts of small depth."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import mpmath as mp
import numpy as np
import pytest

import thresholdout.mechanisms.claims.fold_claims as folds
from graphs.models.out_of_fold import OutOfFold
from tests.cases import for_each
from tests.oracles.fold_claims import SOUND, FoldOutcomes, FoldProgram, FoldRule, Split
from tests.sizes import corners
from thresholdout import BudgetExhausted
from thresholdout.errors import InputError
from thresholdout.limits.random_estimands import Line, line
from thresholdout.mechanisms import ClaimsState, FoldClaims, FoldClaimsParameters, Known, Outcome
from thresholdout.mechanisms.claims.fold_claims import Cells, best_deviations
from thresholdout.mechanisms.claims.score import FAILURE_SHARE
from thresholdout.noise.sources import SeededNoise

NOISE = SeededNoise(0)
_ABOVE = 1e-9  # of sums of floats


def as_for_fixed_truths(risk: float, level: float) -> list[Split]:
    """What is confirmed keeps all but what was set aside for the other outcome."""
    asides = {0.0, (risk - level) / 2, risk - level}
    return [(level, risk - aside, aside) for aside in asides]


class TestTheRule:
    @pytest.mark.slow
    @for_each("beta", [0.125, 0.25, 0.5])
    @for_each("p", [0.5, 0.3])
    @for_each("model", [(0, 1), (0, 1, 1)])
    def test_no_analyst_exceeds_beta(self, model: tuple[int, ...], p: float, beta: float) -> None:
        outcomes = FoldOutcomes(model, p, SOUND)
        assert all(outcomes.worst(beta, depth) <= beta + _ABOVE for depth in (1, 2))

    @pytest.mark.slow
    @pytest.mark.parametrize("beta", [0.125, 0.25, 0.5])
    @pytest.mark.parametrize("model", [(0, 1), (0, 1, 1)])
    def test_no_analyst_exceeds_beta_in_three_queries(self, model: tuple[int, ...], beta: float) -> None:
        assert FoldOutcomes(model, 0.3, SOUND).worst(beta, 3) <= beta + _ABOVE

    def test_the_bound_is_attained(self) -> None:
        assert FoldOutcomes((0, 1, 1), 0.5, SOUND).worst(0.25, 2) == pytest.approx(0.25, abs=1e-12)

    @pytest.mark.slow
    @pytest.mark.parametrize("p", [0.5, 0.3])
    def test_no_analyst_exceeds_beta_leaving_one_out(self, p: float) -> None:
        outcomes = FoldOutcomes((0, 1, 2), p, SOUND)
        assert all(outcomes.worst(beta, 2) <= beta + _ABOVE for beta in (0.125, 0.25, 0.5))

    @for_each(
        ("rule", "depth", "reached"),
        [
            (FoldRule(as_for_fixed_truths, two_sided=False), 1, 0.42),
            (FoldRule(as_for_fixed_truths, two_sided=False), 2, 0.657),
            (FoldRule(as_for_fixed_truths), 2, 0.447),
            (replace(SOUND, two_sided=False), 1, 0.42),
        ],
        ids=["without its union, one claim", "without its union", "confirmed claims free", "each side all of w"],
    )
    def test_broken_twins_exceed_beta(self, rule: FoldRule, depth: int, reached: float) -> None:
        assert FoldOutcomes((0, 1, 1), 0.3, rule).worst(0.25, depth) >= reached - _ABOVE

    @pytest.mark.slow
    def test_one_sided_levels_break_a_quarter_with_one_claim(self) -> None:
        rule = FoldRule(as_for_fixed_truths, two_sided=False)
        assert FoldOutcomes((0, 1, 2), 0.3, rule).worst(0.25, 1) == pytest.approx(0.447, abs=1e-9)


@dataclass(frozen=True)
class At:
    """A reading of any value."""

    value: float
    known: Known

    def on_grid(self, steps: int) -> int:
        return math.floor(self.value * steps + 0.5)


def ask(
    claims: FoldClaims, state: ClaimsState, value: float, expected: float | None = None
) -> tuple[ClaimsState, Outcome]:
    known = Known(vague=expected is None)
    return claims.step(state, 0.5 if expected is None else expected, At(value, known), NOISE)  # type: ignore[arg-type]


def made(queries: int | None = None, budget: int | None = None, records: float = 400.0, n: int = 2000) -> FoldClaims:
    return FoldClaims(FoldClaimsParameters(records, n / records, 0.95, queries, budget), n)


@for_each(
    ("queries", "asked", "expected", "step"),
    [
        (None, 0, None, 4e-3),
        (None, 60, 0.93, 4e-3),
        (2, 0, 0.02, 1e-3),
        (3, 1, 0.93, 4e-3),
        (100, 0, None, 4e-3),
        (100, 60, 0.02, 4e-3),
    ],
)
def test_the_levels_of_a_query_and_what_its_outcomes_leave_have_a_sum_of_at_most_the_risk(
    queries: int | None, asked: int, expected: float | None, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both levels, every cell, a failure and an interrupt, in many digits: nothing is missing, and little is lost."""
    claims = made(queries)
    state = replace(claims.start(NOISE), asked=asked, hits=asked, outcomes=asked, log_error_budget=-3.5)
    levels: list[float] = []

    def seen(mean: float, records: float, others: float, log_level: float) -> Line:
        levels.append(log_level)
        return line(mean, records, others, log_level)

    monkeypatch.setattr(folds, "line", seen)
    left, value = {}, 0.0
    while value <= 1.0:
        after, outcome = ask(claims, state, value, expected)
        left[after.memory, outcome.interval] = after.log_error_budget
        value += step  # no longer than the shortest cell
    assert len(set(levels)) == 1
    failed = claims.fail(state, 0.5, NOISE)[0].log_error_budget
    with mp.workdps(60):
        outcomes = mp.fsum(mp.exp(mp.mpf(one)) for one in left.values())
        total = 2 * mp.exp(mp.mpf(levels[0])) + outcomes + 2 * mp.exp(mp.mpf(failed))
        risk = mp.exp(mp.mpf(-3.5))
        assert total <= risk
        assert total >= risk * (1 - mp.mpf("1e-5"))


def test_the_last_declared_query_is_told_as_it_is_and_leaves_nothing() -> None:
    claims = made(queries=2)
    state, first = ask(claims, claims.start(NOISE), 0.91)
    state, last = ask(claims, state, 0.8713, 0.5)
    assert last.value == pytest.approx(0.8713, abs=1e-6)
    assert first.interval is not None
    assert last.interval is not None
    assert last.interval[1] - last.interval[0] < 0.16
    refusal = claims.refusal(state)
    assert isinstance(refusal, BudgetExhausted)
    assert refusal.what == "queries"
    only, _ = ask(made(queries=1), claims.start(NOISE), 0.9)
    assert only.log_error_budget < -1e8


def test_where_nothing_is_expected_the_first_answer_is_told_anew_and_costs_the_same_everywhere() -> None:
    claims = made(queries=20)
    ends = [ask(claims, claims.start(NOISE), value) for value in (0.15, 0.5, 0.9)]
    assert {outcome.source for _, outcome in ends} == {"holdout"}
    assert max(state.log_error_budget for state, _ in ends) == pytest.approx(
        min(state.log_error_budget for state, _ in ends)
    )
    agreed = ask(claims, claims.start(NOISE), 0.9, 0.9)
    assert agreed[1].source == "train"
    assert agreed[0].log_error_budget > ends[2][0].log_error_budget + 1.0


def test_answers_that_agree_cost_less_than_others_and_a_budget_makes_cells_wide() -> None:
    claims = made(queries=20)
    near, far = (ask(claims, claims.start(NOISE), value, 0.9) for value in (0.9, 0.6))
    assert near[0].log_error_budget > far[0].log_error_budget + 2.0
    assert far[1].source == "holdout"
    assert near[1].interval is not None
    tight = ask(made(queries=20, budget=1), claims.start(NOISE), 0.9, 0.9)[1]
    assert tight.interval is not None
    assert tight.interval[1] - tight.interval[0] > near[1].interval[1] - near[1].interval[0]
    state = ask(made(queries=20, budget=1), claims.start(NOISE), 0.3, 0.9)[0]
    refusal = made(queries=20, budget=1).refusal(state)
    assert refusal is not None
    assert refusal.what == "budget"


def test_a_guard_that_tells_more_than_its_risk_stops() -> None:
    claims = made()
    state = replace(claims.start(NOISE), log_error_budget=-1e9)
    refusal = claims.refusal(state)
    assert refusal is not None
    assert refusal.what == "error_budget"
    with pytest.raises(BudgetExhausted):
        ask(claims, state, 0.5)
    with pytest.raises(BudgetExhausted):
        claims.fail(state, 0.5, NOISE)
    with pytest.raises(InputError, match="train"):
        ask(claims, claims.start(NOISE), 0.5, 1.5)


@pytest.mark.parametrize(("reserve", "best"), corners([(0.2, False), (0.5, False), (0.2, True)], 0, 2))
def test_a_list_and_what_its_outcomes_leave_have_a_sum_of_at_most_the_risk(
    reserve: float, best: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of cells of two queries, in many digits: both limits of each, what is left, a failure, an interrupt.

    The limits do not depend on what is found. Of the best one alone, its place and its cell are an outcome.
    """
    claims = made(None, records=12.0, n=24)
    state = replace(claims.start(NOISE), log_error_budget=-3.5)
    levels: list[tuple[float, float]] = []

    def seen(mean: float, records: float, others: float, log_level: float) -> Line:
        levels.append((mean, log_level))
        return line(mean, records, others, log_level)

    monkeypatch.setattr(folds, "line", seen)
    left: dict[object, float] = {}
    for first, second in itertools.product(np.linspace(0.0, 1.0, 25), repeat=2):
        asked = [(0.5, At(first, Known(vague=True))), (0.5, At(second, Known(vague=True)))]
        if best:
            after, outcome, place = claims.step_best(state, asked, NOISE, reserve, True)  # type: ignore[arg-type]
            left[place, outcome.interval] = after.log_error_budget
        else:
            after, told = claims.step_all(state, asked, NOISE, reserve)  # type: ignore[arg-type]
            left[tuple(one.interval for one in told)] = after.log_error_budget
    assert len(set(levels)) == 1
    failed = claims.fail(state, 0.5, NOISE)[0].log_error_budget
    with mp.workdps(60):
        outcomes = mp.fsum(mp.exp(mp.mpf(one)) for one in left.values())
        total = 4 * mp.exp(mp.mpf(levels[0][1])) + outcomes + 2 * mp.exp(mp.mpf(failed))
        risk = mp.exp(mp.mpf(-3.5))
        assert total <= risk
        assert total >= risk * (1 - mp.mpf("0.03"))


def test_a_list_is_as_narrow_as_its_level_and_its_later_answers_cost_little() -> None:
    claims = made(queries=20)
    start = claims.start(NOISE)
    vague = [(0.5, At(value, Known(vague=True))) for value in (0.9, 0.91, 0.905, 0.9)]
    state, told = claims.step_all(start, vague, NOISE, 0.0)  # type: ignore[arg-type]
    assert [one.value for one in told] == pytest.approx([0.9, 0.91, 0.905, 0.9], abs=1e-6)
    refusal = claims.refusal(state)
    assert refusal is not None
    assert refusal.what == "error_budget"
    level = math.log(0.05 / 8.0)  # of each side of four queries
    lower = line(0.85, 400.0, 400.0, level).lower(0.9)
    assert told[0].interval is not None
    assert told[0].interval[0] == pytest.approx(lower, abs=1e-5)
    kept, _ = claims.step_all(start, vague, NOISE, 0.2)  # type: ignore[arg-type]
    one, _ = claims.step_all(start, vague[:1], NOISE, 0.2)  # type: ignore[arg-type]
    assert one.log_error_budget - kept.log_error_budget < 3 * 0.8 * (start.log_error_budget - one.log_error_budget)
    whole, _ = made(queries=4).step_all(start, vague, NOISE, 0.2)  # type: ignore[arg-type]
    assert whole.log_error_budget < -1e8  # nothing is reserved after the last declared query
    with pytest.raises(BudgetExhausted):
        made(queries=3).step_all(start, vague, NOISE)  # type: ignore[arg-type]


def test_the_best_of_a_list_costs_its_place_and_one_cell() -> None:
    claims = made(queries=20)
    start = claims.start(NOISE)
    asked = [(0.9, At(value, Known())) for value in (0.9, 0.93, 0.88)]
    state, told, place = claims.step_best(start, asked, NOISE, 0.2, True)  # type: ignore[arg-type]
    assert (place, state.asked, state.hits) == (1, 1, 1)
    assert abs(told.value - 0.93) < 0.02
    assert claims.step_best(start, asked, NOISE, 0.2, False)[2] == 2  # type: ignore[arg-type]
    everything, _ = claims.step_all(start, asked, NOISE, 0.2)  # type: ignore[arg-type]
    assert state.log_error_budget > everything.log_error_budget


def test_a_query_that_would_be_too_wide_is_refused_before_anything_is_charged() -> None:
    claims = FoldClaims(FoldClaimsParameters(400.0, 5.0, queries=20, max_half_width=0.1), 2000)
    start = claims.start(NOISE)
    assert claims.refuses(start, 0.95, Known()) is None
    low, high = ask(claims, start, 0.95, 0.95)[1].interval or (0.0, 1.0)
    assert max(0.95 - low, high - 0.95) <= 0.1
    refusal = claims.refuses(start, 0.5, Known())
    assert refusal is not None
    assert refusal.what == "width"
    low, high = ask(claims, start, 0.5, 0.5)[1].interval or (0.0, 1.0)
    assert max(0.5 - low, high - 0.5) > 0.1
    nothing = claims.refuses(start, 0.5, Known(vague=True))  # any average may be found
    assert nothing is not None
    wide = FoldClaims(FoldClaimsParameters(400.0, 5.0, queries=20, max_half_width=0.3), 2000)
    assert wide.refuses(start, 0.5, Known(vague=True)) is None


@for_each("changes", [{"effective": 0.0}, {"inflation": 0.9}, {"confidence": 1.0}, {"queries": 0}])
def test_parameters_that_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(changes))):
        FoldClaimsParameters(**{"effective": 10.0, "inflation": 2.0, **changes})  # type: ignore[arg-type]


@pytest.mark.slow
@for_each(
    ("p", "confidence", "queries"), [(0.5, 0.25, 1), (0.3, 0.5, 1), (0.15, 0.25, 2), (0.05, 0.5, 2), (0.3, 0.5, None)]
)
def test_no_analyst_exceeds_beta_against_the_program(p: float, confidence: float, queries: int | None) -> None:
    model = OutOfFold((0, 1, 1))
    parameters = FoldClaimsParameters(model.claim_records(), model.variance_inflation(), confidence, queries)
    program = FoldProgram((0, 1, 1), p, FoldClaims(parameters, 3), expected=(None, 0.0, 1.0))
    assert program.worst(2) <= 1 - confidence


@pytest.mark.parametrize(
    ("p", "confidence", "queries", "expected"),
    [
        (0.3, 0.5, 2, (1.0,)),
        pytest.param(0.3, 0.5, 2, (None, 1.0), marks=pytest.mark.slow),
        pytest.param(0.3, 0.5, 2, (None, 0.0, 1.0), marks=pytest.mark.slow),
        pytest.param(0.15, 0.25, None, (None, 0.0, 1.0), marks=pytest.mark.slow),
        pytest.param(0.5, 0.25, 3, (None, 0.0, 1.0), marks=pytest.mark.slow),
    ],
)
def test_no_analyst_exceeds_beta_with_lists_against_the_program(
    p: float, confidence: float, queries: int | None, expected: tuple[float | None, ...]
) -> None:
    """Lists of two, and a query after each answer: any learners, expected values, and any later choice."""
    model = OutOfFold((0, 1, 1))
    parameters = FoldClaimsParameters(model.claim_records(), model.variance_inflation(), confidence, queries)
    program = FoldProgram((0, 1, 1), p, FoldClaims(parameters, 3), expected=expected)
    assert program.worst_list(1) <= 1 - confidence


def test_each_query_of_a_list_at_the_level_of_the_whole_exceeds_beta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records with a share of 0.3, beta 0.25: for one query limits of this depth would hold, for a list they do not."""
    model = OutOfFold((0, 1, 1))
    parameters = FoldClaimsParameters(model.claim_records(), model.variance_inflation(), 0.75, 2)
    claims = FoldClaims(parameters, 3)
    monkeypatch.setattr(folds, "line", lambda *numbers: Line(0.0, 0.35))
    one, two = (FoldProgram((0, 1, 1), 0.3, claims, expected=(None,)) for _ in range(2))
    alone, together = one.worst(1), two.worst_list(0)
    assert alone < together
    assert together > 0.25


def test_limits_without_their_depth_exceed_beta_against_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "line", lambda *numbers: Line(0.0, 0.2))
    model = OutOfFold((0, 1, 1))
    parameters = FoldClaimsParameters(model.claim_records(), model.variance_inflation(), 0.75, 1)
    assert FoldProgram((0, 1, 1), 0.3, FoldClaims(parameters, 3)).worst(1) > 0.25


@for_each(
    ("lo", "hi", "mean", "deviation", "vague"),
    [(40, 60, 50.0, 10.0, False), (0, 0, -3.0, 0.5, False), (98, 104, 101.0, 3.0, False), (45, 55, 50.0, 1.0, True)],
)
def test_cells_part_the_range_and_their_code_adds_up_to_at_most_one(
    lo: int, hi: int, mean: float, deviation: float, vague: bool
) -> None:
    cells = Cells(lo, hi, 100, mean, deviation, vague)
    found = {cells.around(value) for value in range(101)}
    assert sorted(value for low, high in found for value in range(low, high + 1)) == list(range(101))
    total = math.fsum(math.exp(-cells.nats(*cell)) for cell in found)
    assert 1 - 1e-6 < total <= 1


def test_cells_are_wider_for_more_queries_and_for_fewer_surprises() -> None:
    def size(queries: int, budget: float = math.inf) -> float:
        return best_deviations(0.005, 0.09, 400.0, -3.0 - math.log(2.0 * queries), queries, budget)

    assert size(5) < size(20) < size(100) < size(1000)
    assert size(20, 0.3) > size(20, 10.0) >= size(20)


@for_each("deviation", [0.003, 0.01, 0.03, 0.1])
@for_each("queries", [1, 20, 1000])
def test_cells_are_small_beside_the_interval_unless_a_budget_needs_wide_ones(deviation: float, queries: int) -> None:
    normal = math.sqrt(2.0 * 0.09 * (3.0 + math.log(2.0 * queries)) / 400.0)  # a limit at the level of the query
    level = -3.0 - math.log(2.0 * queries)
    half = deviation * best_deviations(deviation, 0.09, 400.0, level, queries, math.inf)
    assert half <= 0.25 * normal or half == 0.1 * deviation  # the narrowest
    assert best_deviations(deviation, 0.09, 400.0, level, queries, 0.0) == 4.0


@for_each("n", [300, 1000, 10_000])
@for_each("queries", [None, 20, 100])
def test_rounding_is_below_a_quarter_of_the_width(n: int, queries: int | None) -> None:
    claims, rng = FoldClaims(FoldClaimsParameters(n / 2, 2.0, queries=queries), n), np.random.default_rng(n)
    state, told, shared = claims.start(NOISE), 0.5, rng.random(n)
    for number in range(20):  # of similar models: each record's luck is mostly the same for all of them
        right = np.where(rng.random(n) < 0.1, rng.random(n), shared) < 0.9
        reading = claims.read(right, n, (0.0, 1.0), "values", Known(vague=number == 0, binary=True))
        state, outcome = claims.step(state, told, reading, NOISE)
        assert outcome.interval is not None
        told, (low, high) = outcome.value, outcome.interval
        assert abs(told - right.mean()) < 0.25 * (high - low)


def test_what_is_kept_for_failures_is_what_a_failure_leaves() -> None:
    claims = made(queries=10)
    state = claims.start(NOISE)
    after, outcome = claims.fail(state, 0.5, NOISE)
    assert after.log_error_budget == pytest.approx(
        state.log_error_budget + math.log(0.9) + math.log(FAILURE_SHARE), abs=1e-9
    )
    assert (outcome.source, outcome.interval, after.asked, after.hits) == ("failed", (0.0, 1.0), 1, 1)
