"""Tests of a gate: what a keep and a rejection cost, and at which level each kind of test holds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import truncnorm

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.mechanisms.claims.gate import (
    Decision,
    GateState,
    History,
    below,
    checkpoint,
    climb,
    decide,
    foreseen,
    last_evaluation,
    propose,
    share_of_error_budget,
    worth_a_checkpoint,
)
from thresholdout.mechanisms.claims.gate_tests import BetGate, EntropyGate, GateTest, HoeffdingGate, Proposal, SignGate
from thresholdout.mechanisms.claims.score import FAILURE_SHARE

GOOD = Proposal(0.02, 0.05, 20_000, 10_000)
BAD = Proposal(-0.02, 0.05, 20_000, 10_000)


def proposed(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    return propose(state, proposal, test, share_of_error_budget(state, proposal, test))


def exact_sign_tail(wins: int, n: int) -> Fraction:
    return Fraction(sum(math.comb(n, k) for k in range(wins, n + 1)), 2**n)


@for_each("share", [1e-6, 0.25, 0.5, 0.9, 1.0 - 2.0**-20])
@for_each("log_error_budget", [-3.0, -700.0, -1e6])
def test_the_outcomes_leave_no_more_than_there_was(share: float, log_error_budget: float) -> None:
    keep = decide(GateState(log_error_budget), GOOD, SignGate(10_000_000, 0, one_law=True), share)
    reject = decide(GateState(log_error_budget), GOOD, SignGate(0, 1, one_law=True), share)
    assert (keep.outcome, reject.outcome) == ("keep", "reject")
    assert keep.log_level == keep.state.log_error_budget
    sums = [math.exp(made.state.log_error_budget - log_error_budget) for made in (keep, reject)]
    assert 1.0 - 1e-7 < sum(sums) + 2.0 * FAILURE_SHARE <= 1.0


def test_a_look_that_is_not_worth_its_price_is_free() -> None:
    made = proposed(GateState(-3.0), BAD, SignGate(10_000, 0, one_law=True))
    assert (made.outcome, made.log_level, made.state.log_error_budget) == ("reject", None, -3.0)
    assert made.state.history.count == 1


def test_keeps_that_were_expected_cost_little() -> None:
    state = GateState(math.log(0.05))
    for _ in range(20):
        made = proposed(state, GOOD, SignGate(350, 150, one_law=True))
        assert made.outcome == "keep"
        state = made.state
    assert math.log(0.05) - state.log_error_budget < 1.0  # a list of 20 would have spent ln 20 = 3


def test_the_share_is_found_without_the_holdout() -> None:
    tests: list[GateTest] = [SignGate(9000, 0, one_law=True), SignGate(0, 9000, one_law=True)]
    assert len({share_of_error_budget(GateState(-3.0), GOOD, test) for test in tests}) == 1


@for_each("n", [1, 2, 3, 10, 31])
def test_the_sign_test_is_exact(n: int) -> None:
    for wins in range(n + 1):
        tail = exact_sign_tail(wins, n)
        level = math.log(tail)
        assert SignGate(wins, n - wins, one_law=True).passes(GOOD, min(-1e-12, level + 1e-9)) == (tail < 1)
        assert not SignGate(wins, n - wins, one_law=True).passes(GOOD, level - 1e-9)


def test_no_records_that_differ_confirm_nothing() -> None:
    assert not SignGate(0, 0, one_law=True).passes(GOOD, -1e-9)
    assert not BetGate(np.full(100, 0.5)).passes(GOOD, -1e-9)


@pytest.mark.parametrize("level", corners([0.6, 0.49, 0.2, 0.05], 3))
def test_different_laws_given_the_features(level: float) -> None:
    """All laws on a grid of three records with a mean of at most one half: the chance of a pass, by enumeration."""
    log_level = math.log(level)
    for n in (2, 3, 4):
        for laws in itertools.product(np.linspace(0.0, 1.0, 9), repeat=n):
            if sum(laws) > n / 2:
                continue
            chances = np.ones(1)
            for p in laws:
                chances = np.convolve(chances, [1.0 - p, p])
            passed = [SignGate(k, n - k, one_law=False).passes(GOOD, log_level) for k in range(n + 1)]
            assert chances[passed].sum() <= level + 1e-12


def test_one_law_at_a_level_of_more_than_a_half_breaks_where_laws_differ() -> None:
    """Two records, one of them always won and one never: a mean of one half, and a win in every sample."""
    assert SignGate(1, 1, one_law=True).passes(GOOD, math.log(0.75 + 1e-9))
    assert not SignGate(1, 1, one_law=False).passes(GOOD, math.log(0.75 + 1e-9))


@for_each("delta", [0.0, 0.1])
@for_each("level", [0.3, 0.1])
def test_bets_hold_for_different_laws(delta: float, level: float) -> None:
    """All laws of four records on a grid with a mean difference of delta at most, and all their outcomes."""
    proposal = Proposal(0.0, 0.5, 8.0, 4.0, delta)
    passed = {
        outcome: BetGate(0.5 * (np.array(outcome) + 1.0)).passes(proposal, math.log(level))
        for outcome in itertools.product((-1.0, 0.0, 1.0), repeat=4)
    }
    assert any(passed.values())
    laws = [(down, up) for down, up in itertools.product((0.0, 0.2, 0.45, 0.8), repeat=2) if down + up <= 1.0]
    for chosen in itertools.combinations_with_replacement(laws, 4):
        if sum(up - down for down, up in chosen) > 4 * delta:
            continue
        total = 0.0
        for outcome, passes in passed.items():
            if passes:
                total += math.prod(
                    (up if z > 0 else down if z < 0 else 1.0 - up - down)
                    for (down, up), z in zip(chosen, outcome, strict=True)
                )
        assert total <= level


def test_more_than_delta_is_not_for_the_sign_test() -> None:
    assert not SignGate(100, 0, one_law=True).passes(Proposal(0.02, 0.05, 20_000, 10_000, 0.01), -1e-6)


def test_entropy_is_hoeffdings_exponent() -> None:
    """30 of 40 pairs: 40 kl(0.75, 0.5) = 40 (0.75 ln 1.5 + 0.25 ln 0.5)."""
    exponent = 40 * (0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert EntropyGate(0.75, 40.0).passes(GOOD, -exponent + 1e-6)
    assert not EntropyGate(0.75, 40.0).passes(GOOD, -exponent - 1e-6)
    assert not EntropyGate(0.25, 40.0).passes(GOOD, -1e-6)


def test_what_is_foreseen_is_the_posterior_of_a_normal_law() -> None:
    """One earlier difference of 0.02 and the four of the prior: mean 0.004, by hand."""
    proposal = Proposal(0.02, 0.05, 500, 1000)  # sampling variance 1e-4
    mean, deviation = foreseen(History(1, 0.02, 4e-4, 1e-4), proposal)
    spread = (4e-4 + 8e-4) / 5 - 0.004**2 - 1e-4
    assert mean == pytest.approx(0.004 + spread / (spread + 1e-4) * 0.016)
    assert deviation == pytest.approx(math.sqrt(spread * 1e-4 / (spread + 1e-4)))


def test_a_checkpoint_leaves_half_and_starts_anew() -> None:
    taken, state = climb(GateState(math.log(0.04)), GOOD)
    assert taken
    assert state.ahead > 0.0
    kept = checkpoint(state, GOOD, SignGate(300, 100, one_law=True))
    assert kept.outcome == "keep"
    assert kept.state.ahead == 0.0
    assert math.exp(kept.state.log_error_budget) == pytest.approx(0.02, rel=1e-5)
    failed = checkpoint(state, GOOD, SignGate(1, 0, one_law=True))
    assert failed.outcome == "reject"
    assert failed.state.ahead < 0.6 * state.ahead
    assert math.exp(failed.state.log_error_budget) == pytest.approx(0.02, rel=1e-5)


def test_what_is_foreseen_below_an_edge_is_that_of_scipy() -> None:
    mean, scale, edge = 0.4, 0.3, 0.2
    law = truncnorm(-np.inf, (edge - mean) / scale, loc=mean, scale=scale)
    assert below(mean, scale**2, edge) == pytest.approx((law.mean(), law.var()))


def test_a_checkpoint_that_failed_is_not_tried_again_at_once() -> None:
    state = GateState(math.log(0.04), ahead=0.012, uncertain=1e-6)
    test = SignGate(250, 250, one_law=True)
    assert worth_a_checkpoint(state, GOOD, test)
    assert not worth_a_checkpoint(checkpoint(state, GOOD, test).state, GOOD, test)


def test_hoeffdings_inequality_is_one_sided() -> None:
    """exp(-2 * 200 * 0.15^2) = exp(-9)."""
    level = -9.0
    assert HoeffdingGate(0.65, 200.0).passes(GOOD, level + 1e-6)
    assert not HoeffdingGate(0.65, 200.0).passes(GOOD, level - 1e-6)
    assert not HoeffdingGate(0.35, 200.0).passes(GOOD, -1e-6)


def test_a_last_look_leaves_something() -> None:
    made = last_evaluation(GateState(math.log(0.04)), GOOD, SignGate(0, 1, one_law=True))
    assert made.state.log_error_budget == pytest.approx(math.log(0.04) + math.log(FAILURE_SHARE), abs=1e-5)
