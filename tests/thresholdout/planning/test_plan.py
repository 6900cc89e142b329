"""Which way to ask, and how wide: against exact intervals, guards in simulation, and certificates."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import optimize, special
from scipy.stats import beta

from graphs import Groups, Independent, MarkovChain, MarkovField, MovingWindow
from graphs.models.out_of_fold import OutOfFold
from graphs.numerics.rounding import shown_above
from tests.cases import for_each
from thresholdout import InputError, InputTypeError, PlanError, SeededNoise, Thresholdout, plan
from thresholdout.mechanisms import (
    ClaimsMechanism,
    ClaimsParameters,
    Known,
    SparseVectorParameters,
    parameters_to_json,
)
from thresholdout.mechanisms.claims.kinds import guard_width
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.planning.plan import Plan, WayName


class Unlimited(MovingWindow):
    """Records of which no deviation of a mean can be bounded, but leakage can."""

    inflation_methods = ("components",)

    def effective_records(self) -> float | None:  # type: ignore[override]
        return None


def width_of(planned: Plan, name: WayName = "adaptive") -> float:
    way = planned.way(name)
    assert way is not None
    return way.half_width


def half_length(count: int, n: int, level: float) -> float:
    return float(beta.ppf(1 - level / 2, count + 1, n - count) - beta.ppf(level / 2, count, n - count + 1)) / 2


@for_each(("n", "expected"), [(300, 0.9), (2000, 0.95), (20_000, 0.5)])
def test_lists_and_final_looks_are_exact_intervals(n: int, expected: float) -> None:
    planned = plan(n, queries=50, anticipated_score=expected)
    count = round(n * expected)
    level = 0.9 * 0.05  # the side that is not expected has a tenth of the probability
    larger = max(expected - beta.ppf(level, count, n - count + 1), beta.ppf(1 - level, count + 1, n - count) - expected)
    assert width_of(planned, "single") == pytest.approx(larger, rel=1e-5)
    assert width_of(planned, "batch") == pytest.approx(half_length(count, n, 0.001), rel=1e-6)
    assert width_of(planned, "single") < width_of(planned, "batch") < width_of(planned)


@for_each(("n", "expected"), [(799, 0.95), (4000, 0.6)])
def test_a_division_states_the_exact_interval_of_a_check_on_half(n: int, expected: float) -> None:
    said = plan(n, queries=50, anticipated_score=expected).division
    guarded = (n + 1) // 2
    level, count = 0.9 * 0.05, round(guarded * expected)
    low, high = beta.ppf(level, count, guarded - count + 1), beta.ppf(1 - level, count + 1, guarded - count)
    assert said.endswith(f" stay guarded, ± {shown_above(max(expected - low, high - expected), 2)}.")
    assert f"move {n // 2:,} of these records" in said
    assert f"on the {guarded:,} that stay guarded" in said


def test_few_records_are_not_divided_and_one_query_needs_no_division() -> None:
    assert plan(60, queries=20).division.startswith("Divide: hold back all 60 records; half of them leave")
    assert "about 500 of these" in plan(Groups([k // 2 for k in range(1000)]), queries=20).division
    assert not plan(1000, queries=1).division
    assert not plan(1000, queries=20, adaptive=False).division
    assert not plan(1000, queries=20, prior_queries=3).division
    assert not plan(MovingWindow(1000, 2), queries=20).division


def searched(n: int, train: int, queries: int, score: float, seed: int, group: int = 1, declared: bool = True) -> float:
    """Return the mean half length of a guard's intervals in a search whose training values are what they seem.

    Models share half of the variance of their scores, in both parts: a record that is hard for one is hard for others.
    """
    rng = np.random.default_rng(seed)
    holdout, own = np.arange(float(n)), np.arange(float(n), n + train * float(group))
    guard = Thresholdout(
        holdout,
        train=(own, None, np.repeat(np.arange(n, n + train), group)) if group > 1 else own,
        dependence=Groups(np.arange(n) // group) if group > 1 else None,
        queries=queries if declared else None,
        random_state=seed,
    )
    hard = [rng.random(size) for size in (n // group, train)]
    found = []
    for _ in range(queries):
        parts = [np.where(rng.random(len(h)) < math.sqrt(0.5), h, rng.random(len(h))) < score for h in hard]
        low, high = guard.ask(np.repeat(parts[1], group), np.repeat(parts[0], group)).interval
        found.append((high - low) / 2)
    return float(np.mean(found))


@pytest.mark.slow
@for_each(
    ("n", "train", "queries", "score", "group", "declared"),
    [
        (400, 400, 20, 0.9, 1, True),
        (500, 1000, 100, 0.95, 1, False),
        (2000, 500, 40, 0.9, 1, True),
        (2000, 400, 30, 0.8, 5, True),
        (1000, 1000, 3, 0.9, 1, True),
    ],
)
def test_a_guard_is_about_as_wide_as_was_said(
    n: int, train: int, queries: int, score: float, group: int, declared: bool
) -> None:
    found = [searched(n, train, queries, score, seed, group, declared) for seed in range(24)]
    model = Groups(np.arange(n) // group) if group > 1 else n
    alike = 1.0 if group > 1 else None  # groups of copies
    said = plan(model, queries=queries if declared else None, anticipated_score=score, n_train=train, correlation=alike)
    assert said.asked == queries
    assert np.mean(found) == pytest.approx(width_of(said), rel=0.1)
    smaller = plan(n // 2, queries=queries, anticipated_score=score, n_train=train // 2) if group == 1 else plan(n)
    assert np.mean(found) != pytest.approx(width_of(smaller), rel=0.1)


def test_what_is_recommended_is_what_the_guard_then_has() -> None:
    """The same public parameters as a guard that is told the same, and as `mechanism=` takes them."""
    records = np.arange(600.0)
    default = Thresholdout(records, train=np.arange(600.0, 1500.0), queries=30)
    planned = plan(600, queries=30, n_train=900)
    assert planned.parameters == default.parameters
    assert planned.certificate.route == "claims"
    assert Thresholdout(records, train=np.arange(600.0, 1500.0), mechanism=planned.parameters).parameters == (
        default.parameters
    )
    assert plan(600).parameters == ClaimsParameters()


def test_a_plan_certifies_once_and_computes_no_width_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def counted(*problem: Any) -> float:
        asked.append(problem)
        return guard_width(*problem)

    monkeypatch.setattr("thresholdout.planning.solving.guard_width", counted)
    planned = plan(width=0.05, queries=20)
    assert len(asked) == len(set(asked)) > 5
    assert planned.certificate is planned.certificate


@pytest.mark.slow
def test_groups_count_for_what_they_are() -> None:
    pairs = plan(Groups(np.arange(2000) // 2), queries=50)
    alone = plan(2000, queries=50)
    assert width_of(pairs, "batch") > math.sqrt(2) * width_of(alone, "batch") * 0.99
    assert width_of(pairs) > 1.3 * width_of(alone)
    found = pairs.parameters
    assert isinstance(found, ClaimsParameters)
    assert (found.effective, found.n_train) == (1000.0, None)
    chain = MarkovChain([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]], n=5000)
    assert chain.effective_records() is None
    known = plan(chain, queries=10)
    records = 5000 / chain.variance_inflation()
    radius = math.sqrt(math.log(1 / 0.0025) / (2 * records))  # both sides of ten queries
    assert 2 * width_of(known, "batch") == pytest.approx(min(1.0, 0.9 + radius) - (0.9 - radius), rel=0.02)


def test_a_chain_without_zeros_is_planned_by_relative_entropy() -> None:
    chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=5000)
    effective = 5000 / 9  # (1 - 0.8) / (1 + 0.8) of all

    def excess(p: float) -> float:
        return float(effective * special.rel_entr([0.9, 0.1], [p, 1 - p]).sum()) - math.log(1 / 0.0025)

    below, above = (optimize.brentq(excess, *ends) for ends in ((0.1, 0.9), (0.9, 1 - 1e-12)))
    found = width_of(plan(chain, queries=10), "batch")
    assert found == pytest.approx((above - below) / 2, rel=0.02)


def test_queries_that_are_fixed_are_asked_as_a_list() -> None:
    planned = plan(1000, queries=50, adaptive=False)
    assert planned.recommended.name == "batch"
    assert "score_all" in planned.recommended.call
    assert "pay nothing for each other" in planned.recommendation
    one = plan(1000, queries=1, adaptive=False)
    assert one.recommended.name == "single"
    assert one.recommended.call == "guard.final_check(model)"
    guard = Thresholdout(np.arange(1000.0), train=np.arange(1000.0, 2000.0))
    assert one.half_width == pytest.approx(guard.status.final_half_width(0.9), rel=1e-6)
    assert one.way("batch").why_not == "one query is no list"


def test_unrelated_queries_are_planned_wider() -> None:
    unrelated, usual, alike = (plan(1000, queries=100, similarity=s).half_width for s in (0.0, 0.5, 1.0))
    assert alike < usual == plan(1000, queries=100).half_width < unrelated < 1.5 * usual
    one = plan(1000, queries=100, similarity=0.0, adaptive=False).half_width
    assert one == plan(1000, queries=100, adaptive=False).half_width
    with pytest.raises(InputError, match="similarity"):
        plan(1000, similarity=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("similarity", [0.0, 1.0])
def test_sessions_of_queries_that_share_more_or_less_are_as_wide_as_planned(similarity: float) -> None:
    """Guards in simulation: differences of training and holdout values with this correlation.

    A guard that one of unrelated queries has surprised expects the next to be off as well: these come out wider.
    """
    n, queries, score, widths = 1000, 40, 0.95, []
    deviation = math.sqrt(score * (1.0 - score) / n)
    for seed in range(40):
        rng, noise = np.random.default_rng(seed), SeededNoise(seed)
        mechanism = ClaimsMechanism(ClaimsParameters(n_train=n, noise=0.0), n)
        state, common = mechanism.start(noise), rng.normal() * math.sqrt(2.0)
        for _ in range(queries):
            own = rng.normal() * math.sqrt(2.0)
            held = round(n * min(1.0, score + deviation * rng.normal()))
            off = deviation * (math.sqrt(similarity) * common + math.sqrt(1.0 - similarity) * own)
            values = mechanism.read(np.arange(n) < held, n, (0, 1), "values", Known(binary=True))
            state, outcome = mechanism.step(state, min(1.0, max(0.0, held / n - off)), values, noise)
            assert outcome.interval is not None
            widths.append(0.5 * (outcome.interval[1] - outcome.interval[0]))
    planned = guard_width(ClaimsParameters(n_train=n, noise=0.0), n, queries, score, similarity)
    assert 0.95 < float(np.mean(widths)) / planned < (1.05 if similarity else 1.2)


@pytest.mark.slow
def test_words_say_what_stands_in_the_way() -> None:
    few = plan(40, queries=100, anticipated_score=0.8)
    assert few.half_width >= 0.25
    assert "too few records to certify anything useful" in few.warnings[0]
    some = plan(100, queries=100, anticipated_score=0.8)
    assert "settles little between models" in some.warnings[0]
    many = plan(5000, queries=100, anticipated_score=0.8, n_train=20_000)
    assert many.warnings == ()
    starved = plan(5000, queries=100, anticipated_score=0.8, n_train=1000)
    assert "Cross-validate on more than the holdout's size" in starved.warnings[0]
    shown = math.ceil(1000 * plan(5000, queries=100, anticipated_score=0.8).half_width) / 1000
    assert f"± {shown:g} instead of" in starved.warnings[0]
    assert starved.half_width > 1.2 * many.half_width
    assert repr(starved).startswith("<Plan: 5,000 records: ask a guard")
    assert starved.warnings[0] in repr(starved)
    assert "the first 100 queries" in plan(1000).recommendation


@pytest.mark.slow
def test_solves_for_records() -> None:
    """The smallest number for exact limits; for a guard within half a per cent."""
    fixed = plan(width=0.02, queries=100, adaptive=False)
    n = fixed.records

    def holds(records: int) -> bool:
        return half_length(round(0.9 * records), records, 0.05 / 100) <= 0.02

    assert holds(n)
    assert not holds(n - 1)
    guarded = plan(width=0.03, queries=100)
    assert guarded.half_width <= 0.03
    assert guarded.recommended.records == guarded.records
    assert plan(math.floor(guarded.records / 1.02), queries=100).half_width > 0.03
    listed = guarded.way("batch")
    assert listed.records == plan(width=0.03, queries=100, adaptive=False).records
    with pytest.raises(PlanError, match="No number of records up to 1e"):
        plan(width=1e-6, queries=100)


@pytest.mark.slow
def test_solves_for_queries() -> None:
    fixed = plan(2000, width=0.02, adaptive=False)
    assert fixed.queries is not None

    def holds(queries: int) -> bool:
        return half_length(1800, 2000, 0.05 / queries) <= 0.02

    assert holds(fixed.queries)
    assert not holds(fixed.queries + 1)
    guarded = plan(2000, width=0.04)
    assert guarded.queries is not None
    assert guarded.half_width <= 0.04
    assert plan(2000, queries=math.ceil(1.1 * guarded.queries)).half_width > 0.04
    assert plan(2000, width=0.2).queries == 10**6
    with pytest.raises(PlanError, match=r"not even one|do not put even one.*One query takes [\d,]+ independent"):
        plan(300, width=0.02)


@pytest.mark.slow
def test_a_width_that_is_missed_is_said_with_what_it_takes() -> None:
    planned = plan(2000, queries=100, width=0.03)
    chosen = planned.recommended
    assert chosen.half_width > 0.03
    assert chosen.records is not None
    assert chosen.queries is not None
    assert f"{chosen.records:,} independent records, or at most {chosen.queries:,} queries" in planned.warnings[0]
    assert plan(chosen.records, queries=100).half_width <= 0.03
    assert plan(2000, queries=chosen.queries).half_width <= 0.03
    assert {"records", "queries"} <= set(planned.table.columns)
    assert "records" not in plan(2000, queries=100).table.columns


@pytest.mark.slow
def test_algorithm_1_where_nothing_bounds_a_mean() -> None:
    model = Unlimited(100_000, 1)
    planned = plan(model, queries=50, budget=3)
    assert isinstance(planned.parameters, SparseVectorParameters)
    assert (planned.parameters.budget, planned.parameters.queries) == (3, 50)
    assert planned.certificate.route == "posterior"
    assert planned.half_width == planned.certificate.expected_half_width(0.9)
    assert "Algorithm 1 answers with queries=50 and budget=3" in planned.recommendation
    assert [way.name for way in planned.ways if way.applies] == ["Algorithm 1"]
    assert "no deviation of a mean can be bounded" in planned.way("adaptive").why_not
    assert plan(model).recommended.call == "Thresholdout(..., queries=100, mechanism=Claims(holdout_answers=1))"
    with pytest.raises(PlanError, match="Take more records, or fewer queries="):
        plan(Unlimited(1000, 1), queries=50, budget=20)
    beside = plan(10_000, queries=50, budget=1)
    assert beside.recommended.name == "adaptive"
    assert width_of(beside, "Algorithm 1") > width_of(beside)


def test_as_json() -> None:
    planned = plan(500, queries=20, width=0.05)
    shown = planned.to_json()
    assert shown["recommended"] == "adaptive"
    assert shown["ways"][0]["half_width"] == planned.ways[0].half_width
    assert shown["warnings"] == list(planned.warnings)
    listed = {way["name"]: way["parameters"] for way in shown["ways"]}
    assert listed["adaptive"] == parameters_to_json(planned.parameters)


@for_each(
    ("arguments", "argument"),
    [
        ({"records": 0}, "records"),
        ({"records": 2.5}, "records"),
        ({"records": OutOfFold([0, 0, 1, 1])}, "records"),
        ({"records": 10**9 + 1}, "records"),
        ({"records": Independent(10**15), "queries": 10}, "records"),
        ({"records": 300, "anticipated_score": 0.0}, "anticipated_score"),
        ({"records": 300, "anticipated_score": 1.0}, "anticipated_score"),
        ({"records": 300, "anticipated_score": 0.001}, "anticipated_score"),
        ({"records": 300, "anticipated_score": math.nan}, "anticipated_score"),
        ({"records": 300, "anticipated_score": "0.9"}, "anticipated_score"),
        ({"records": 300, "queries": 0}, "queries"),
        ({"records": 300, "n_train": 0}, "n_train"),
        ({"records": 300, "width": 0.0}, "width"),
        ({"records": 300, "width": 0.6}, "width"),
        ({"records": 300, "budget": 0}, "budget"),
        ({"records": 300, "budget": "all"}, "budget"),
        ({"records": 300, "confidence": 95}, "confidence"),
        ({"records": 300, "adaptive": 1}, "adaptive"),
    ],
)
def test_refuses_what_cannot_be(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(InputError, match=f"^{argument} must be"):
        plan(**arguments)


def test_refuses_a_plan_of_nothing() -> None:
    with pytest.raises(InputError, match=r"^records is missing: pass a number of records, .* or width="):
        plan()


def test_the_largest_holdout_is_planned_without_a_number_for_each_record() -> None:
    assert plan(10**9, queries=10).half_width < 1e-4


@for_each("confidence", [0.9999, 0.5])
def test_a_guard_does_not_hold_planned_parameters_with_another_confidence(confidence: float) -> None:
    """Before, such a guard had intervals at its own 0.95, whatever had been planned."""
    planned, rng = plan(500, queries=10, confidence=confidence), np.random.default_rng(0)
    holdout, train = rng.normal(size=(500, 1)), rng.normal(size=(500, 1))
    with pytest.raises(InputError, match=f"^confidence must be {confidence}, as in the plan .*; got 0.95 beside"):
        Thresholdout(holdout, train=train, mechanism=planned.parameters)
    guard = Thresholdout(holdout, train=train, mechanism=planned.parameters, confidence=planned.confidence)
    assert guard.certificate.confidence == confidence
    assert guard.status.error_budget_left == pytest.approx(1 - confidence)


def test_refuses_what_is_no_model() -> None:
    with pytest.raises(InputTypeError, match="model of graphs"):
        plan("chain")  # type: ignore[arg-type]
    assert plan(Independent(300)).half_width == plan(300).half_width


@pytest.mark.slow
def test_a_quiet_margin_with_which_nothing_is_certified_is_left_out() -> None:
    """The mean of a tree with hubs varies so much that the usual margin alone leaves no half-width below 1."""
    tree = MarkovField.ising(nx.barabasi_albert_graph(1000, 1, seed=1), math.atanh(0.6))
    records = tree.effective_records()
    assert records is not None
    usual = math.sqrt(math.log(2 * 32 / 0.05) / (2 * records))
    with pytest.raises(PlanError, match="Nothing can be certified"):
        algorithm_1(tree, queries=32, budget=1, quiet_margin=usual)
    assert algorithm_1(tree, queries=32, budget=1) == algorithm_1(tree, queries=32, budget=1, quiet_margin=0.0)
