"""What proofs call drawn anew, kept, or set aside: with noise that is given in advance, other uses of it fail."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import for_each
from tests.oracles.noise_doubles import LaplaceOnly
from thresholdout.mechanisms import (
    ClaimsParameters,
    Known,
    Ladder,
    LadderParameters,
    Mechanism,
    SparseVectorMechanism,
    SparseVectorParameters,
)
from thresholdout.mechanisms.claims.final import final_interval
from thresholdout.mechanisms.claims.interval import MeanTest, hoeffding
from thresholdout.mechanisms.claims.lists import list_level
from thresholdout.mechanisms.claims.mechanism import ClaimsMechanism, _given
from thresholdout.mechanisms.claims.score import Window, search

N = 10_000
ONE = 2**50  # steps in the range, at a noise scale of 2**-10
FAILURE_SHARE = 2.0**-20


class Counted(LaplaceOnly):
    """Each draw is another number, 1, 2, 3, ...; the scales are kept."""

    for_release = False

    def __init__(self) -> None:
        self.scales: list[Fraction] = []

    def laplace(self, scale: Fraction) -> int:
        self.scales.append(scale)
        return len(self.scales)


class TestAlgorithm1:
    """P2 and P3: a phase is one threshold, up to its hit; its noises are those of no other phase."""

    mechanism = SparseVectorMechanism(SparseVectorParameters(0.25, 2.0**-10, budget=5, queries=None, grid=None))
    base = ONE // 4

    def test_the_threshold_is_drawn_anew_after_each_hit_and_kept_before(self) -> None:
        noise = Counted()
        state = self.mechanism.start(noise)
        assert state.threshold == self.base + 1
        state, outcome = self.mechanism.step(state, 0.5, 0.5, noise)  # the second draw is for the test
        assert outcome.source == "train"
        assert state.threshold == self.base + 1
        for hits in (1, 2, 3):
            state, outcome = self.mechanism.step(state, 0.9, 0.1, noise)  # test, answer, threshold
            assert outcome.source == "holdout"
            assert state.threshold == self.base + len(noise.scales) == self.base + 2 + 3 * hits

    def test_the_threshold_is_drawn_anew_after_a_failure(self) -> None:
        noise = Counted()
        state, _ = self.mechanism.fail(self.mechanism.start(noise), 0.5, noise)
        assert state.threshold == self.base + 2

    def test_each_test_has_a_noise_of_its_own(self) -> None:
        noise = Counted()
        state = self.mechanism.start(noise)
        for _ in range(10):
            state, _ = self.mechanism.step(state, 0.5, 0.5, noise)
        assert noise.scales[0] * 2 == noise.scales[1]
        assert len(noise.scales) == 11


def _claims(**changes: Any) -> ClaimsMechanism:
    return ClaimsMechanism(ClaimsParameters(**{"queries": 100, **changes}), N)


def _reading(mechanism: Mechanism[Any, Any], ones: int) -> Any:
    return mechanism.read([1] * ones + [0] * (N - ones), N, (0, 1), "values", Known(binary=True))


@pytest.mark.parametrize("epsilon", [None, 2.0])
class TestEdgesOfClaims:
    """B4 and P6: delta is that of a phase, which ends with an outcome other than *confirmed*; gammas are fresh."""

    def test_a_confirmed_claim_keeps_the_noise_of_its_phase(self, epsilon: float | None) -> None:
        noise, mechanism = Counted(), _claims(epsilon=epsilon)
        state = mechanism.start(noise)
        first = state.edge
        for _ in range(5):
            state, outcome = mechanism.step(state, 0.5, _reading(mechanism, 5000), noise)
            assert outcome.source == "train"
            assert state.edge == first == 1
        each, both = noise.scales[0], noise.scales[1:]
        assert both == [2 * each] * 10  # two halves of five tests

    def test_every_outcome_ends_the_phase(self, epsilon: float | None) -> None:
        noise, mechanism = Counted(), _claims(epsilon=epsilon)
        state, outcome = mechanism.step(mechanism.start(noise), 0.5, _reading(mechanism, 6000), noise)
        assert outcome.source == "holdout"
        each = noise.scales[0]
        drawn = [k for k, scale in enumerate(noise.scales, 1) if scale == each]
        outcomes = state.outcomes
        assert outcomes >= 1
        assert len(drawn) == 1 + outcomes
        assert state.edge == drawn[-1]
        tests = outcomes if state.outcomes == 4 or noise.scales[-1] == each else outcomes + 1
        assert len(noise.scales) - len(drawn) == 2 * tests

    def test_a_failure_ends_the_phase(self, epsilon: float | None) -> None:
        noise, mechanism = Counted(), _claims(epsilon=epsilon)
        state, outcome = mechanism.fail(mechanism.start(noise), 0.5, noise)
        assert outcome.source == "failed"
        assert state.edge == 2
        assert noise.scales[0] == noise.scales[1]

    def test_a_query_that_asks_for_less_noise_begins_a_phase_with_it(self, epsilon: float | None) -> None:
        noise, mechanism = Counted(), _claims(epsilon=epsilon)
        start = mechanism.start(noise)
        state, _ = mechanism.step(start, 0.999, _reading(mechanism, 9990), noise)
        if epsilon is None:
            assert state.exponent < start.exponent
            assert noise.scales[1] < noise.scales[0]
            assert state.edge == 2
            louder, _ = mechanism.step(state, 0.5, _reading(mechanism, 5000), noise)
            assert (louder.exponent, louder.edge) == (state.exponent, 2)
        else:  # its scale never changes
            assert len(set(noise.scales)) == 2
            assert state.edge == 1


@for_each(
    "mechanism",
    [_claims(), _claims(epsilon=2.0), Ladder(LadderParameters(), N)],
    ids=["claims", "private claims", "ladder"],
)
@for_each("failures", [1, 2, 5])
def test_a_failure_leaves_the_share_that_was_set_aside_for_it(mechanism: Mechanism[Any, Any], failures: int) -> None:
    """B1: *raised* leaves r R, and nothing comes back."""
    noise = Counted()
    state = mechanism.start(noise)
    before = state.log_error_budget
    for _ in range(failures):
        state, outcome = mechanism.fail(state, 0.5, noise)
        assert outcome.log_error_budget == state.log_error_budget
    left = before + failures * math.log(FAILURE_SHARE)
    assert left - 1e-9 < state.log_error_budget <= left


@for_each(("queries", "keep"), list(itertools.product([1, 2, 7], [0.0, 0.2, 0.9])))
def test_a_list_sets_two_shares_aside_for_failures(queries: int, keep: float) -> None:
    """B7: 1 - keep - 2r of R, both sides of each query."""
    share = math.exp(list_level(-3.0, queries, keep) + 3.0) * 2 * queries
    assert 1.0 - keep - 2 * FAILURE_SHARE - 1e-9 < share <= 1.0 - keep - 2 * FAILURE_SHARE


def test_a_claim_without_a_test_sets_two_shares_aside_too() -> None:
    """B1: w = (1 - 2r) R where nothing is looked at."""

    def ask(lo: int, hi: int, log_level: float) -> Any:
        raise AssertionError("a claim of everything is not tested")

    found = search(Window(0, 1000, 0.1, 10.0), 1000, -3.0, ask, None)
    share = math.exp(found.log_level + 3.0)
    assert 1.0 - 2 * FAILURE_SHARE - 1e-9 < share <= 1.0 - 2 * FAILURE_SHARE
    assert found.log_error_budget == found.log_level


def test_the_first_claim_that_decides_about_a_refusal_has_the_level_of_the_one_that_is_made() -> None:
    mechanism = _claims()
    state = mechanism.start(Counted())
    first = mechanism.first_claim(state, 0.9, Known(binary=True))
    share = math.exp(first.log_level - state.log_error_budget)
    expected = 1.0 - first.window.share - 2 * FAILURE_SHARE
    assert expected - 1e-9 < share <= expected


def test_the_final_check_sets_two_shares_aside() -> None:
    """B10: 0.9 (1 - 2r) R on the side of the value that is away from the guess, by Hoeffding's form."""
    records, log_error_budget, steps = 500.0, -3.0, 2**20
    claim = MeanTest(steps, round(0.7 * steps), hoeffding(steps, records))
    low, high = final_interval(claim, log_error_budget, 0.1)
    mean, level = round(0.7 * steps) / steps, log_error_budget + math.log(0.9 * (1.0 - 2 * FAILURE_SHARE))
    reach = math.sqrt(-level / (2 * records)) + 0.5 / steps
    assert high == pytest.approx(mean + reach, abs=1e-10)
    far = log_error_budget + math.log(0.1 * (1.0 - 2 * FAILURE_SHARE))
    assert low == pytest.approx(mean - math.sqrt(-far / (2 * records)) - 0.5 / steps, abs=1e-10)


def test_truths_that_are_given_the_labels_are_paid_for_once() -> None:
    """B9: half of the risk, before the first of them."""
    mechanism = _claims()
    state = mechanism.start(Counted())
    layout: Any = SimpleNamespace(given=True)
    known: Any = SimpleNamespace(layout=layout)
    paid = _given(state, known)
    assert paid.log_error_budget == pytest.approx(state.log_error_budget - math.log(2.0), abs=1e-10)
    assert paid.log_error_budget < state.log_error_budget - math.log(2.0)
    assert _given(paid, known) == paid
    assert _given(state, Known(binary=True)) == state
