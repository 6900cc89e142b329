"""The Ladder: what each outcome leaves and claims, its steps, and the interval of the best truth."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import beta as beta_law
from scipy.stats import binom

from graphs import Groups, Independent, MarkovChain
from graphs.models.out_of_fold import OutOfFold
from tests.cases import for_each
from tests.sizes import corners, sizes
from thresholdout import Thresholdout
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.mechanisms import Known, Ladder, LadderParameters, LadderState, Outcome
from thresholdout.mechanisms import ladder as ladder_module
from thresholdout.mechanisms.claims.interval import Limit, Scales
from thresholdout.mechanisms.ladder import _lower, _upper
from thresholdout.noise.sources import SeededNoise

N = 2500
BINARY = Known(binary=True)
FAILURE_SHARE = 2.0**-20


def play(mechanism: Ladder, means: list[float], known: Known = BINARY, train: float = 0.5) -> list[Outcome]:
    noise = SeededNoise(0)
    state, seen = mechanism.start(noise), []
    for mean in means:
        values = np.arange(N) < round(mean * N) if known.binary else np.full(N, mean)
        state, outcome = mechanism.step(state, train, mechanism.read(values, N, (0.0, 1.0), "v", known), noise)
        seen.append(outcome)
    return seen


@for_each(
    "changes",
    [{"confidence": 1.0}, {"direction": "up"}, {"queries": 0}, {"inflation": 0.9}, {"effective": 0.0}],
)
def test_parameters_out_of_range(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(changes))):
        LadderParameters(**changes)
    with pytest.raises(InputTypeError, match="random_estimands"):
        LadderParameters(random_estimands=1)  # type: ignore[arg-type]


def test_a_cell_is_about_a_standard_deviation() -> None:
    mechanism = Ladder(LadderParameters(), 10_000)
    assert mechanism.cells == 315
    for cell in (20, 157, 300):
        width = mechanism._start(cell + 1) - mechanism._start(cell)
        middle = mechanism._middle(cell)
        assert width == pytest.approx(math.sqrt(middle * (1 - middle) / 10_000), rel=0.01)


@for_each("steps", [7, 100, 1024])
def test_cells_part_all_means(steps: int) -> None:
    mechanism = Ladder(LadderParameters(), 100)
    cells = [mechanism._cell(value, steps) for value in range(steps + 1)]
    assert cells == sorted(cells)
    for value, cell in enumerate(cells):
        assert mechanism._first(cell, steps) <= value < mechanism._first(cell + 1, steps)
    assert (cells[0], cells[-1]) == (0, mechanism.cells - 1)


def outcomes(mechanism: Ladder, state: LadderState, n: int, train: float = 0.7) -> dict[LadderState, list[int]]:
    """The states after a query about records that are 0 or 1, and the numbers of ones that lead to each."""
    found: dict[LadderState, list[int]] = {}
    for count in range(n + 1):
        reading = mechanism.read(np.arange(n) < count, n, (0.0, 1.0), "v", BINARY)
        after, _ = mechanism.step(state, train, reading, SeededNoise(0))
        found.setdefault(after, []).append(count)
    return found


def claim_of(state: LadderState, after: LadderState) -> tuple[float, float]:
    """What an outcome claims: read off a state in which nothing was known before, or that was raised by it."""
    low = after.low if after.releases > state.releases else 0.0
    return low, after.high


@sizes("rounds", 2, 3)
@for_each("random_estimands", [False, True])
@for_each(("n", "queries"), [(12, None), (40, 3)])
def test_every_outcome_is_paid_for(n: int, queries: int | None, random_estimands: bool, rounds: int) -> None:
    """The hypotheses of Theorem B at every node of some rounds, by scipy's binomial law.

    An outcome's claim is false on one side, and has at most what is left after it as probability there; the sum over
    the outcomes is at most what was left before. Where truths are random, the claims' sides are paid for beside the
    outcomes.
    """
    parameters = LadderParameters(0.9, queries=queries, random_estimands=random_estimands)
    mechanism = Ladder(parameters, n)
    states = {mechanism.start(SeededNoise(0))}
    spent = []
    for _ in range(rounds):
        following = set()
        for state in states:
            bare = LadderState(state.log_error_budget, state.asked, 0, state.releases, state.best, 0.0, 0.0)
            total, widest = 2 * FAILURE_SHARE * math.exp(state.log_error_budget), 0.0
            for after, counts in outcomes(mechanism, bare, n).items():
                left = math.exp(after.log_error_budget)
                low, high = claim_of(bare, after)
                false = max(
                    float(binom.sf(min(counts) - 1, n, low)) if low > 0 else 0.0,
                    float(binom.cdf(max(counts), n, high)) if high < 1 else 0.0,
                )
                total += left if random_estimands else max(left, false)
                widest = max(widest, false)
                if not random_estimands:
                    assert false <= left * (1 + 1e-9)
                following.add(after)
            paid = total + (2 * widest if random_estimands else 0.0)
            assert paid <= math.exp(state.log_error_budget) * (1 + 1e-9)
            spent.append(paid / math.exp(state.log_error_budget))
        states = following
    assert max(spent) > 0.6  # most of it is used


def clopper_pearson(n: int) -> Limit:
    """Limits for records of one law, which is more than is known of labels given features."""

    def lower(lo: int, level: float, scales: Scales) -> float:
        return float(beta_law.ppf(math.exp(level), lo, n - lo + 1)) if lo > 0 else 0.0

    return lower


@sizes("points", 2, 21)
@for_each("one_law", [False, True])
def test_labels_given_features_have_laws_of_their_own(
    monkeypatch: pytest.MonkeyPatch, one_law: bool, points: int
) -> None:
    """(1) of Theorem B for all averages of two kinds of records, exactly; limits for one law do not have it."""
    n = 12
    if one_law:
        monkeypatch.setattr(ladder_module, "ones", clopper_pearson)
    mechanism, most = Ladder(LadderParameters(0.2), n), 0.0
    first = mechanism.start(SeededNoise(0))
    for state in (first, *outcomes(mechanism, first, n, 0.1)):
        bare = LadderState(state.log_error_budget, state.asked, 0, state.releases, state.best, 0.0, 0.0)
        for after, counts in outcomes(mechanism, bare, n, 0.1).items():
            low, high = claim_of(bare, after)
            near = (n * low * (1 - 1e-9), 1 - n * (1 - high) * (1 - 1e-9))  # all of it in one record
            own = [p for p in (*near, *np.linspace(0.0, 1.0, points)) if 0.0 <= p <= 1.0]
            for few, p, q in itertools.product((1, 6), own, (0.0, 0.5, 1.0)):
                mass = np.convolve(binom.pmf(np.arange(few + 1), few, p), binom.pmf(np.arange(n - few + 1), n - few, q))
                truth = (few * p + (n - few) * q) / n
                if not low <= truth <= high:
                    most = max(most, float(mass[counts].sum()) / math.exp(after.log_error_budget))
    assert (most > 1.01) == one_law


def chernoff_of_one_p(steps: int, sizes: GroupSizes) -> Limit:
    """Limits that take one expectation for all groups, which is no bound."""

    def lower(lo: int, level: float, scales: Scales) -> float:
        slopes = np.geomspace(1e-3, 600.0 / sizes.largest, 400)[:, None]

        def exponent(p: float) -> float:
            grown = np.log1p(p * np.expm1(slopes * sizes.sizes)) @ sizes.numbers
            return float(np.min(grown - slopes[:, 0] * sizes.n * (lo - 0.5) / steps))

        low, high = 0.0, (lo - 0.5) / steps
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if exponent(middle) <= level else (low, middle)
        return low

    return lower


@pytest.mark.parametrize(
    ("singles", "large", "points"), [(25, 10, 4), pytest.param(100, 40, 21, marks=pytest.mark.slow)]
)
@for_each("twin", [False, True])
def test_groups_of_unequal_sizes_have_laws_of_their_own(
    monkeypatch: pytest.MonkeyPatch, twin: bool, singles: int, large: int, points: int
) -> None:
    """(1) of Theorem B, exactly, for one large group that is right or wrong as one beside single records."""
    n = singles + large
    if twin:
        monkeypatch.setattr(ladder_module, "own_sizes", chernoff_of_one_p)
    sizes = ((1, singles), (large, 1))
    model = Groups([*range(singles), *[singles] * large])
    parameters = LadderParameters(0.2, inflation=model.variance_inflation(), effective=n / large, sizes=sizes)
    mechanism, most, (places, steps) = Ladder(parameters, n), 0.0, (np.arange(n + 1), n)
    first = mechanism.start(SeededNoise(0))
    some = list(outcomes(mechanism, first, n, 0.1))
    for state in (first, *some[:: max(1, len(some) // 4)]):
        bare = LadderState(state.log_error_budget, state.asked, 0, state.releases, state.best, 0.0, 0.0)
        for after, counts in outcomes(mechanism, bare, n, 0.1).items():
            low, high = claim_of(bare, after)
            for truth, p in itertools.product((low * (1 - 1e-9), high * (1 + 1e-9)), np.linspace(0.0, 1.0, points)):
                q = (n * truth - large * p) / singles
                if low <= truth <= high or not 0.0 <= q <= 1.0:
                    continue
                alone = binom.pmf(places, singles, q)
                mass = (1.0 - p) * alone + p * np.concatenate([np.zeros(large), alone[: steps + 1 - large]])
                most = max(most, float(mass[counts].sum()) / math.exp(after.log_error_budget))
    assert (most > 1.01) == twin


def test_groups_of_unequal_sizes_are_not_all_as_large_as_the_largest() -> None:
    """A large group costs as in the guard: the interval is no wider than by relative entropy or by the inflation."""
    groups = Groups([*range(900), *[900] * 100])
    guard = Thresholdout(np.arange(1000), dependence=groups, mechanism="ladder")
    answer = guard.ask(0.9, np.arange(1000) < 900, binary=True)
    assert isinstance(guard.parameters, LadderParameters)
    assert guard.parameters.sizes == ((1, 900), (100, 1))
    bare = Ladder(replace(guard.parameters, sizes=None), 1000)
    reading = bare.read(np.arange(1000) < 900, 1000, (0.0, 1.0), "v", BINARY)
    _, before = bare.step(bare.start(SeededNoise(0)), 0.9, reading, SeededNoise(0))
    assert before.interval is not None
    assert answer.interval[1] - answer.interval[0] < 0.8 * (before.interval[1] - before.interval[0])


def test_sizes_have_to_be_those_of_the_records() -> None:
    groups = Groups(np.arange(100) // 5)
    good = LadderParameters(effective=20.0, inflation=5.1, sizes=((5, 20),))
    assert certify_parameters(groups, good).route == "ladder"
    refused = certify_parameters(groups, replace(good, sizes=((4, 25),)))
    assert refused.chosen is None
    with pytest.raises(InputError, match="groups of 100 records"):
        Ladder(good, 101)
    for changes in ({"random_estimands": True}, {"effective": None, "inflation": 1.0}):
        with pytest.raises(InputError, match="sizes"):
            replace(good, **changes)


def test_what_is_left_is_what_a_counter_of_new_scores_expects() -> None:
    """Later rounds: a new score has the share (f - 1/2)/i, and the cells beyond the edge 1/2, 1/6, 1/12, ..."""
    mechanism = Ladder(LadderParameters(0.9), 400)
    reading = mechanism.read(np.arange(400) < 200, 400, (0.0, 1.0), "v", BINARY)
    state, _ = mechanism.step(mechanism.start(SeededNoise(0)), 0.5, reading, SeededNoise(0))
    assert state.log_error_budget == pytest.approx(math.log(0.1 / 3 * (1 - 2 * FAILURE_SHARE)))
    after = sorted(outcomes(mechanism, state, 400), key=lambda one: one.best)
    left = [math.exp(one.log_error_budget - state.log_error_budget) / (1 - 2 * FAILURE_SHARE) for one in after]
    assert left[:4] == pytest.approx([0.5, 0.25, 0.5 / 6, 0.5 / 12])
    later = min(outcomes(mechanism, after[1], 400), key=lambda one: one.best)
    assert math.exp(later.log_error_budget - after[1].log_error_budget) == pytest.approx(
        (1 - 2 * FAILURE_SHARE) * (1 - 1.5 / 2)
    )


@for_each("train", [0.0, 0.3, 0.9, 1.0])
def test_first_scores_share_all_of_the_budget(train: float) -> None:
    """One cell d away has 2/(3 (d + 1) (d + 2)) = 2/3 (1/(d + 1) - 1/(d + 2)), so sums over cells telescope.

    The own cell and a cells below have 2/3 (1 - 1/(a + 2)), b cells above 2/3 (1/2 - 1/(b + 2)): 1 in all as a and b
    grow. A larger denominator wastes budget, a smaller one spends more than there is.
    """
    mechanism, noise = Ladder(LadderParameters(), N), SeededNoise(0)
    start = mechanism.start(noise)
    shares = {}
    for cell in range(mechanism.cells):
        values = mechanism.read(np.full(N, mechanism._middle(cell)), N, (0.0, 1.0), "v")
        after, _ = mechanism.step(start, train, values, noise)
        shares[after.best] = math.exp(after.log_error_budget - start.log_error_budget)
    below = min(math.floor(2.0 / math.pi * math.asin(math.sqrt(train)) * mechanism.cells), mechanism.cells - 1)
    above = mechanism.cells - 1 - below
    whole = 2.0 / 3.0 * (1.0 - 1.0 / (below + 2) + 0.5 - 1.0 / (above + 2))
    assert len(shares) == mechanism.cells
    assert sum(shares.values()) == pytest.approx((1.0 - 2.0 * FAILURE_SHARE) * whole, rel=1e-12)


@for_each("random_estimands", [False, True])
def test_a_plan_pays_for_the_costliest_first_score(random_estimands: bool) -> None:
    """The cost of one round is that of the score farthest from the training value, from one end to the other."""
    mechanism, noise = Ladder(LadderParameters(queries=1, random_estimands=random_estimands), 100), SeededNoise(0)
    start = mechanism.start(noise)
    costs = []
    for train, mean in itertools.product((0.0, 1.0), (0.0, 0.5, 1.0)):
        after, _ = mechanism.step(start, train, mechanism.read(np.full(100, mean), 100, (0.0, 1.0), "v"), noise)
        costs.append(start.log_error_budget - after.log_error_budget)
    assert mechanism._paid(1)[1][-1] == pytest.approx(max(costs), rel=1e-12)


def test_a_plan_of_random_estimands_pays_for_each_claim() -> None:
    """Of three rounds the first pays a quarter of the budget for its two claims, the next 3/8, the last 3/4."""
    mechanism = Ladder(LadderParameters(queries=3, random_estimands=True), 100)
    numbers, rests, sides = mechanism._paid(3)
    left = [1.0 - 2.0 * FAILURE_SHARE - paid for paid in (0.25, 0.375, 0.75)]
    first = math.log(1.5 * mechanism.cells * (mechanism.cells + 1))
    assert numbers.tolist() == [1.0, 2.0, 3.0]
    assert rests == pytest.approx([first - math.log(math.prod(left[: k + 1])) for k in range(3)], rel=1e-14)
    assert sides == pytest.approx([math.log(8.0), math.log(16.0 / 3.0), math.log(8.0 / 3.0)], rel=1e-14)


def test_without_a_declared_number_the_budget_for_claims_falls_as_one_over_the_root() -> None:
    mechanism = Ladder(LadderParameters(random_estimands=True), 100)
    rests, _, sides = zip(*(mechanism._shares(LadderState(-1.0, asked)) for asked in range(4000)), strict=True)
    assert sides[:3] == pytest.approx((1 / 8, 1 / 12, 1 / 16), rel=1e-14)
    assert math.prod(rests[1000:]) == pytest.approx(0.5 * (1.0 - 2.0 * FAILURE_SHARE) ** 3000, rel=1e-3)


@for_each("low", [0.0, 2.0**-60, 0.1, 1.0 / 3.0, 0.7])
def test_limits_of_claims_mirror_each_other_and_are_rounded_up(low: float) -> None:
    def limit(lo: int, level: float, scales: Scales) -> float:
        assert lo > 0
        return low

    assert (_lower(limit, 0, -1.0), _lower(limit, 1, -1.0), _upper(limit, 10, 10, -1.0)) == (0.0, low, 1.0)
    high = _upper(limit, 9, 10, -1.0)
    assert 1 - Fraction(low) <= Fraction(high) <= min(Fraction(1), 1 - Fraction(low) + Fraction(2.0**-52))


def test_only_clear_improvements_are_shown() -> None:
    outcomes = play(Ladder(LadderParameters(), N), [0.5, 0.505, 0.4, 0.9, 0.905])
    assert [round(outcome.value, 2) for outcome in outcomes] == [0.5, 0.5, 0.5, 0.9, 0.9]
    assert [outcome.hits for outcome in outcomes] == [0, 1, 1, 1, 2]
    assert all(outcome.about == "best" for outcome in outcomes)
    assert all(outcome.interval is not None for outcome in outcomes)


@for_each("known", [BINARY, Known()])
def test_losses_are_turned(known: Known) -> None:
    down = play(Ladder(LadderParameters(direction="minimize"), N), [0.5, 0.6, 0.1, 0.12], known)
    up = play(Ladder(LadderParameters(), N), [0.5, 0.4, 0.9, 0.88], known)
    for loss, score in zip(down, up, strict=True):
        assert loss.value == pytest.approx(1 - score.value)
        assert loss.interval is not None
        assert score.interval is not None
        assert loss.interval == pytest.approx((1 - score.interval[1], 1 - score.interval[0]), abs=1e-12)
        assert loss.interval[0] <= loss.value <= loss.interval[1]


def test_the_first_interval_is_that_of_clopper_and_pearson() -> None:
    """At the ends of the cell, at what is left after the cell of the training value."""
    mechanism = Ladder(LadderParameters(), N)
    (outcome,) = play(mechanism, [0.9], train=0.9)
    level = 0.05 / 3 * (1 - 2 * FAILURE_SHARE)
    cell = mechanism._cell(2250, N)
    lo, hi = mechanism._first(cell, N), mechanism._first(cell + 1, N) - 1
    low = brentq(lambda p: binom.sf(lo - 1, N, p) - level, 1e-9, lo / N)
    high = brentq(lambda p: binom.cdf(hi, N, p) - level, hi / N, 1 - 1e-9)
    assert outcome.interval == pytest.approx((low, high), abs=1e-7)


def test_values_between_have_limits_of_relative_entropy() -> None:
    mechanism = Ladder(LadderParameters(), N)
    (outcome,) = play(mechanism, [0.9], Known(), train=0.9)
    assert outcome.interval is not None
    level = math.log(0.05 / 3 * (1 - 2 * FAILURE_SHARE))
    cell, grid = mechanism._cell(round(0.9 * mechanism._grid), mechanism._grid), mechanism._grid
    lo = (mechanism._first(cell, grid) - 0.5) / grid

    def beyond(p: float) -> float:
        return N * float(rel_entr(lo, p) + rel_entr(1 - lo, 1 - p)) + level

    assert outcome.interval[0] == pytest.approx(brentq(beyond, 1e-6, lo - 1e-12), abs=1e-6)
    binary = play(mechanism, [0.9], train=0.9)[0]
    assert binary.interval is not None
    assert outcome.interval[0] < binary.interval[0] < binary.interval[1] < outcome.interval[1]


@sizes("examples", 15, 50)
def test_the_interval_contains_the_best_when_every_claim_is_true(examples: int) -> None:
    """Truths that are what was seen: the best of them is within the interval after every round."""

    @settings(max_examples=examples)
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.booleans())
    def check(means: list[float], maximize: bool) -> None:
        mechanism = Ladder(LadderParameters(direction="maximize" if maximize else "minimize"), N)
        counts = [round(mean * N) / N for mean in means]
        for k, outcome in enumerate(play(mechanism, counts)):
            best = max(counts[: k + 1]) if maximize else min(counts[: k + 1])
            assert outcome.interval is not None
            assert outcome.interval[0] <= best <= outcome.interval[1]
            assert outcome.interval[0] <= outcome.value <= outcome.interval[1]

    check()


def test_who_does_not_climb_pays_next_to_nothing() -> None:
    """A thousand queries that are no better: the interval grows by a fifth."""
    outcomes = play(Ladder(LadderParameters(), N), [0.9] + [0.88] * 999, train=0.9)
    first, last = outcomes[0].interval, outcomes[-1].interval
    assert first is not None
    assert last is not None
    assert last[0] == first[0]
    assert last[1] - last[0] < 1.7 * (first[1] - first[0])
    one = 2 * math.sqrt(0.09 / N) * 2.1  # a single query at 0.95, roughly
    assert last[1] - last[0] < 2.2 * one


def test_scores_increase_and_are_few() -> None:
    """An analyst who is always told that she is better: steps grow, so few scores are shown."""
    mechanism = Ladder(LadderParameters(), N)
    shown = [outcome.value for outcome in play(mechanism, [k / 1000 for k in range(1001)])]
    assert shown == sorted(shown)
    assert len(set(shown)) <= 21


def test_a_query_that_failed_is_an_outcome() -> None:
    """Its text and cost are the same whatever failed; intervals stay finite, and the risk says what it cost."""
    records = np.arange(float(N))
    guard = Thresholdout((records, records), train=(-records - 1, records), mechanism="ladder")
    before = guard.ask(0.9, records < 2250, binary=True)

    def breaks(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0] == 0:
            raise RuntimeError
        return np.ones(len(X))

    with pytest.raises(InputError, match="failed on the holdout"):
        guard.ask(breaks)
    after = guard.ask(0.9, records < 2000, binary=True)
    assert after.interval[0] == before.interval[0]
    assert before.interval[1] < after.interval[1] < 1.0
    assert guard.status.information_released is not None
    assert guard.status.information_released == pytest.approx(math.log(3) + 20 * math.log(2) + math.log(2), rel=1e-5)
    assert guard.history["source"].tolist() == ["holdout", "failed", "holdout"]


def test_limits_and_lengths() -> None:
    mechanism, noise = Ladder(LadderParameters(queries=1), N), SeededNoise(0)
    values = mechanism.read(np.full(N, 0.5), N, (0.0, 1.0), "v")
    state, _ = mechanism.step(mechanism.start(noise), 0.5, values, noise)
    assert mechanism.remaining(state) == 0
    with pytest.raises(BudgetExhausted):
        mechanism.step(state, 0.5, values, noise)
    with pytest.raises(InputError, match="records"):
        mechanism.step(mechanism.start(noise), 0.5, mechanism.read(np.zeros(5), 5, (0.0, 1.0), "v"), noise)


def test_dependence_is_what_the_guard_declares() -> None:
    records = np.arange(N)
    groups = Thresholdout(records, dependence=Groups(records // 5), mechanism="ladder")
    chain = Thresholdout(records, dependence=MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=N), mechanism="ladder")
    alone = Thresholdout(records, mechanism="ladder")
    answers = [guard.ask(0.9, records < 2250, binary=True) for guard in (alone, groups, chain)]
    assert answers[0].half_width < answers[1].half_width < answers[2].half_width
    assert groups.parameters.effective == N / 5  # type: ignore[attr-defined]
    assert groups.certificate.route == "ladder"


def test_ladders_for_another_model_have_no_certificate() -> None:
    folds = OutOfFold([0, 1] * 50)
    assert (
        certify_parameters(folds, LadderParameters(inflation=folds.variance_inflation(), random_estimands=True)).route
        == "ladder"
    )
    refused = certify_parameters(folds, LadderParameters(inflation=folds.variance_inflation()))
    assert refused.chosen is None
    assert "have to be paid" in refused.statement or "has to be paid" in refused.statement
    groups = Groups(np.arange(100) // 5)
    for parameters in (LadderParameters(), LadderParameters(effective=50.0, inflation=5.1)):
        assert certify_parameters(groups, parameters).chosen is None
    assert certify_parameters(groups, LadderParameters(effective=20.0, inflation=5.1)).route == "ladder"


def _widest(mechanism: Ladder, queries: int) -> float:
    """Return the largest half-width of any session, by trying every score in every round."""
    n, noise = mechanism._n, SeededNoise(0)
    states, widest = {mechanism.start(noise)}, 0.0
    for asked in range(queries):
        following = set()
        for state, right, train in itertools.product(states, range(n + 1), (0.0, 1.0) if asked == 0 else (0.5,)):
            reading = mechanism.read(np.arange(n) < right, n, (0.0, 1.0), "v", BINARY)
            after, outcome = mechanism.step(state, train, reading, noise)
            assert outcome.interval is not None
            widest = max(widest, outcome.value - outcome.interval[0], outcome.interval[1] - outcome.value)
            following.add(after)
        states = following
    return widest


@for_each("random_estimands", [False, True])
@for_each("direction", ["maximize", "minimize"])
@pytest.mark.parametrize(
    ("n", "queries", "confidence"),
    corners([(60, 2, 0.5), (60, 1, 0.95), (100, 2, 0.9), (30, 3, 0.05), (20, 2, 0.5)], 1, 4),
)
def test_no_session_exceeds_the_tolerance(
    n: int, queries: int, confidence: float, direction: Literal["maximize", "minimize"], random_estimands: bool
) -> None:
    parameters = LadderParameters(confidence, direction, queries, random_estimands=random_estimands)
    found = _widest(Ladder(parameters, n), queries)
    tolerance = certify_parameters(Independent(n), parameters, confidence).tolerance
    assert found <= tolerance <= min(1.0, 2.5 * found)


@for_each("queries", [1, 10, 1000, 10**6, None])
def test_the_tolerance_is_finite_and_grows_with_the_queries(queries: int | None) -> None:
    parameters = LadderParameters(queries=queries)
    certificate = certify_parameters(Independent(10_000), parameters)
    assert certificate.route == "ladder"
    assert 0.0 < certificate.tolerance <= 1.0
    assert certificate.half_width(1, 0, "holdout") == certificate.tolerance
    if queries is not None:
        more = certify_parameters(Independent(10_000), LadderParameters(queries=2 * queries)).tolerance
        assert certificate.tolerance < more < 1.0
    else:
        assert certificate.tolerance == 1.0


def test_what_to_expect_is_what_a_session_states() -> None:
    certificate = certify_parameters(Independent(N), LadderParameters(queries=60))
    outcome = play(Ladder(LadderParameters(queries=60), N), [0.9] * 60, train=0.9)[-1]
    assert outcome.interval is not None
    side = max(outcome.value - outcome.interval[0], outcome.interval[1] - outcome.value)
    assert certificate.expected_half_width(0.9) == pytest.approx(side, abs=1e-9)
    assert certificate.expected_half_width(0.9) < 0.5 * certificate.tolerance


def test_the_tolerance_counts_what_each_round_sets_aside_for_failures() -> None:
    """L6: a round leaves 1 - 2r of the risk, so that a million of them cost about two nats."""
    ladder = Ladder(LadderParameters(), 10_000)
    (one,), (many,) = (ladder._paid(rounds)[1] for rounds in (1, 1_000_001))
    assert many - one == pytest.approx(10**6 * 2.0**-19, rel=1e-5)
