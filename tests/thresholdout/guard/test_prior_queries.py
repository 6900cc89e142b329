"""Scores that were seen before the guard was made: what an analyst who looked first can do, counted exactly.

Labels are fair coins, so every fixed prediction has the truth 1/2. A guard without noise is a function of the number of
records on which a prediction is right, so its failures are counted over all sequences of labels.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import GaussianField, Groups
from graphs.fitted_limits import FittedLimits
from tests.cases import for_each
from tests.sizes import corners
from thresholdout import Claims, InputError, KFoldGuard, LedgerMismatch, PriorQueries, SparseVector, Thresholdout, plan
from thresholdout.ledger import MemoryLedger
from thresholdout.mechanisms import ClaimsParameters, LadderParameters

Bits = NDArray[np.int64]


def all_bits(n: int) -> Bits:
    """Return all sequences of n bits."""
    return np.array(list(itertools.product((0, 1), repeat=n)))


@cache
def fails(n: int, right: int, confidence: float, prior: PriorQueries | None, how: str) -> bool:
    """Whether a fresh guard's interval misses 1/2 when a prediction is right on so many of n records."""
    guard = Thresholdout(
        np.arange(float(n)), mechanism=Claims(noise=0.0), confidence=confidence, prior_queries=prior or 0
    )
    values = np.arange(n) < right
    answer = guard.ask([0, 1], values) if how == "ask" else guard.ask_all([([0, 1], values)], reserve=0.0)[0]
    low, high = answer.interval
    return not low <= 0.5 <= high


def failing(n: int, confidence: float, prior: PriorQueries | None, how: str) -> NDArray[np.bool_]:
    """Return, for every number of right records, whether the guard fails."""
    return np.array([fails(n, right, confidence, prior, how) for right in range(n + 1)])


WAYS = ["ask", "list"]


@for_each("how", WAYS)
@for_each("values", [1, 2, 3])
@pytest.mark.parametrize("confidence", corners([0.6, 0.8, 0.9, 0.95], 1))
def test_no_analyst_who_looked_first_fails_more_often_than_promised(confidence: float, values: int, how: str) -> None:
    """One look with so many values picks one of so many predictions: the best set of them, of all sets."""
    n = 5
    labels = all_bits(n)
    bad = failing(n, confidence, PriorQueries(1, values), how)
    broken = bad[(labels[:, None, :] == labels[None, :, :]).sum(axis=2)]  # predictions, labels
    worst = max(broken[list(chosen)].any(axis=0).mean() for chosen in itertools.combinations(range(2**n), values))
    assert worst <= 1.0 - confidence


@pytest.mark.slow
def test_some_analyst_who_looked_first_breaks_a_guard_that_ignores_it() -> None:
    n, labels = 5, all_bits(5)
    broken = failing(n, 0.8, None, "list")[(labels[:, None, :] == labels[None, :, :]).sum(axis=2)]
    worst = max(broken[list(chosen)].any(axis=0).mean() for chosen in itertools.combinations(range(2**n), 4))
    assert worst > 0.2


def hamming_code() -> Bits:
    """Return the 16 words of length 7 that differ from each other in at least 3 places."""
    parity = np.array([[(place >> bit) & 1 for place in range(1, 8)] for bit in range(3)])
    words = all_bits(7)
    found: Bits = words[((words @ parity.T) % 2 == 0).all(axis=1)]
    return found


def test_a_code_makes_a_guard_that_ignores_one_look_fail_always() -> None:
    """One look with 16 values; the bound by their number is attained."""
    labels, words = all_bits(7), hamming_code()
    right = (labels[:, None, :] == words[None, :, :]).sum(axis=2).max(axis=1)
    assert len(words) == 16
    assert (right >= 6).all()
    assert failing(7, 0.87, None, "list")[right].mean() == 1.0
    assert failing(7, 0.87, PriorQueries(1, values=16), "list")[right].mean() == 0.0
    # at the level that lets 7 of 7 through: 16 words of 128 sequences
    assert failing(7, 0.74, PriorQueries(1, values=16), "list")[right].mean() == 16 / 128
    assert failing(7, 0.74, PriorQueries(1, values=2), "list")[right].mean() == 1.0


@for_each("how", WAYS)
def test_an_analyst_who_fits_the_signs_of_ten_scores_is_covered(how: str) -> None:
    n, k, confidence = 11, 10, 0.8
    labels = all_bits(n)
    features = np.random.default_rng(1).integers(0, 2, size=(k, n))
    scores = (labels[:, None, :] == features[None, :, :]).sum(axis=2)
    votes = np.where(2 * scores > n, 1, -1) @ (2 * features - 1)
    right = ((votes > 0).astype(int) == labels).sum(axis=1)
    assert how == "ask" or failing(n, confidence, None, how)[right].mean() > 0.2
    assert failing(n, confidence, PriorQueries(k, values=n + 1), how)[right].mean() <= 0.2


@pytest.mark.slow
@for_each("how", WAYS)
def test_an_analyst_who_stops_looking_when_he_is_lucky_may_count_afterwards(how: str) -> None:
    """He looks until a prediction does well, declares as many looks as he took, and asks about that prediction."""
    n, most, confidence = 11, 12, 0.5
    labels = all_bits(n)
    predictions = np.random.default_rng(2).integers(0, 2, size=(most, n))
    scores = (labels[:, None, :] == predictions[None, :, :]).sum(axis=2)
    for enough in (8, 9, 10, 11):
        lucky = scores >= enough
        took = np.where(lucky.any(axis=1), lucky.argmax(axis=1) + 1, most)
        asked = scores[np.arange(len(labels)), took - 1]
        broken = np.mean(
            [fails(n, s, confidence, PriorQueries(int(k), 2), how) for s, k in zip(asked, took, strict=True)]
        )
        assert broken <= 1.0 - confidence
    ignored = failing(n, confidence, None, how)[scores.max(axis=1)].mean()
    assert how == "ask" or ignored > 1.0 - confidence


HOLDOUT = np.arange(1000.0)


@for_each("mechanism", [None, Claims(noise=0.0), "ladder"])
def test_a_guard_after_looks_is_as_one_of_their_share_of_the_error(mechanism: Any) -> None:
    """20 values: the same answer as at a twentieth of the probability of error."""
    declared: dict[str, Any] = {"mechanism": mechanism, "queries": 20, "sampling": "iid"}
    after = Thresholdout(HOLDOUT, **declared, prior_queries=PriorQueries(1, 20), confidence=0.9, random_state=3)
    plain = Thresholdout(HOLDOUT, **declared, confidence=1.0 - 0.1 / 20, random_state=3)
    one, other = after.ask(0.25, HOLDOUT < 250), plain.ask(0.25, HOLDOUT < 250)
    assert one.value == pytest.approx(other.value, abs=1e-6)
    assert one.half_width == pytest.approx(other.half_width, rel=1e-6)
    assert after.certificate.confidence == 0.9
    assert after.certificate.expected_half_width(0.25) == pytest.approx(
        plain.certificate.expected_half_width(0.25), rel=1e-6
    )


def test_algorithm_1_after_looks() -> None:
    n = 20_000
    after = Thresholdout(
        np.arange(float(n)),
        mechanism=SparseVector(0.08, 0.004, budget=1),
        queries=10,
        prior_queries=PriorQueries(1, 20),
    )
    plain = Thresholdout(
        np.arange(float(n)), mechanism=SparseVector(0.08, 0.004, budget=1), queries=10, confidence=0.9975
    )
    assert after.certificate.tolerance == pytest.approx(plain.certificate.tolerance, rel=1e-6)
    with pytest.raises(
        InputError,
        match=r"prior_queries must be few enough to leave 1e-12 .* mechanism='claims' takes any number",
    ):
        Thresholdout(np.arange(float(n)), mechanism=SparseVector(0.08, 0.004, budget=1), queries=10, prior_queries=10)


def test_limits_of_a_fitted_model_are_taken_off_before() -> None:
    series = GaussianField.ar(0.3, 1000).fitted(FittedLimits("autoregressions", 500, 0.01))
    guard = Thresholdout(HOLDOUT, dependence=series, prior_queries=PriorQueries(1, 4))
    assert guard.status.error_budget_left == pytest.approx((0.05 - 0.01) / 4, rel=1e-9)
    assert guard.certificate.limits is series.fitted_limits


def test_looks_are_said_and_kept() -> None:
    ledger = MemoryLedger()
    guard = Thresholdout(HOLDOUT, prior_queries=10, ledger=ledger)
    assert guard.certificate.prior_queries == PriorQueries(10, 10_001)
    seen = "at most 10 scores of these records had been seen, of 10,001 possible values each"
    assert seen in guard.certificate.statement
    assert "at most 10 scores of these records had been seen" in guard.report().html
    assert "was unseen before" not in guard.report().html
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-9)
    assert Thresholdout(HOLDOUT, prior_queries=10, ledger=ledger).certificate == guard.certificate
    for other in (0, 9, PriorQueries(10, 301)):
        with pytest.raises(LedgerMismatch, match="was declared with prior_queries = "):
            Thresholdout(HOLDOUT, prior_queries=other, ledger=ledger)


def test_nothing_in_a_ledger_is_new_without_looks() -> None:
    ledger = MemoryLedger()
    Thresholdout(HOLDOUT, ledger=ledger)
    kept: Any = ledger.parameters(ledger.guards()[0])
    assert "looks" not in kept["declared"]
    assert "information_released" not in kept["chosen"]


def test_answers_count_what_they_told_beside_the_looks() -> None:
    guard = Thresholdout(HOLDOUT, prior_queries=PriorQueries(2, 100), random_state=1)
    assert guard.status.error_budget_left == pytest.approx(0.05 / 100**2)
    guard.ask(0.9, HOLDOUT < 250)
    assert guard.status.error_budget_left is not None
    assert guard.status.information_released == pytest.approx(
        np.log(0.05 / 100**2 / guard.status.error_budget_left), abs=1e-6
    )
    assert guard.report().information_released == pytest.approx(guard.status.information_released, abs=1e-6)


@pytest.mark.slow
@for_each("model", [1000, Groups([record // 2 for record in range(1000)])])
def test_a_plan_is_for_the_guard_after_the_looks(model: Any) -> None:
    planned = plan(model, queries=20, prior_queries=PriorQueries(3, 101))
    plain = plan(model, queries=20, confidence=1.0 - 0.05 / 101**3)
    assert planned.half_width == pytest.approx(plain.half_width, rel=1e-6)
    assert {way.name: round(way.half_width, 5) for way in planned.ways} == {
        way.name: round(way.half_width, 5) for way in plain.ways
    }
    assert planned.prior_queries == PriorQueries(3, 101)
    assert planned.certificate.confidence == 0.95
    assert "at most 3 scores" in planned.certificate.statement
    dependence = None if isinstance(model, int) else model
    guard = Thresholdout(
        HOLDOUT, dependence=dependence, mechanism=planned.parameters, prior_queries=PriorQueries(3, 101)
    )
    assert guard.parameters == planned.parameters
    with pytest.raises(
        InputError, match=r"prior_queries must be .*; got None, beside parameters that were planned after 13\.85 nats"
    ):
        Thresholdout(HOLDOUT, dependence=dependence, mechanism=planned.parameters)


@pytest.mark.slow
def test_the_number_of_records_that_a_width_takes_counts_the_looks() -> None:
    found = plan(width=0.05, queries=20, prior_queries=3, adaptive=False)
    assert found.prior_queries == PriorQueries(3, 10_001)
    assert found.half_width <= 0.05
    assert found.records > plan(width=0.05, queries=20, adaptive=False).records


def test_a_final_check_pays_for_looks() -> None:
    guard = Thresholdout(HOLDOUT, final_check=True, queries=10, prior_queries=PriorQueries(1, 20))
    plain = Thresholdout(HOLDOUT, final_check=True, queries=10, confidence=0.9975)
    assert guard.certificate.final is not None
    assert plain.certificate.final is not None
    assert guard.certificate.final.half_width(0.9) == pytest.approx(plain.certificate.final.half_width(0.9), rel=1e-6)
    assert guard.status.final_half_width(0.9) == pytest.approx(plain.status.final_half_width(0.9), rel=1e-6)


@for_each("mechanism", ["claims", LadderParameters(queries=5)])
def test_folds_pay_for_looks(mechanism: Any) -> None:
    from sklearn.dummy import DummyClassifier

    X, y = np.arange(400.0).reshape(200, 2), np.arange(200) % 2
    after = KFoldGuard((X, y), cv=2, queries=5, prior_queries=PriorQueries(1, 20), mechanism=mechanism)
    plain = KFoldGuard((X, y), cv=2, queries=5, confidence=0.9975, mechanism=_at(mechanism, 0.9975))
    one, other = (guard.score(DummyClassifier(strategy="constant", constant=1)) for guard in (after, plain))
    assert one.interval == pytest.approx(other.interval, rel=1e-6)
    assert "at most one score" in after.certificate.statement


def _at(mechanism: Any, confidence: float) -> Any:
    return LadderParameters(confidence, queries=5) if isinstance(mechanism, LadderParameters) else mechanism


def test_parameters_by_hand_take_the_looks_of_the_guard() -> None:
    guard = Thresholdout(HOLDOUT, mechanism=ClaimsParameters(queries=9), prior_queries=PriorQueries(1, 20))
    assert guard.parameters.information_released == pytest.approx(np.log(20), rel=1e-9)
