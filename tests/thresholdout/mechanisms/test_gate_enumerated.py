"""The gate against every analyst of small depth, on models that are small enough for all their transcripts.

Records are uniform on a few values; a candidate is a function from these to -1, 0 or 1 (loss, tie, win). The analyst
knows the law, asks for whatever candidates and shares of the error budget are worst given the outcomes so far, and wins
when a candidate is kept that is not better. Probabilities are exact sums over all holdouts.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tests.sizes import corners
from thresholdout.mechanisms.claims.gate import Decision, GateState, checkpoint, decide, last_evaluation
from thresholdout.mechanisms.claims.gate_tests import BetGate, GateTest, Proposal, SignGate

Rule = Callable[[GateState, Proposal, GateTest], Decision]


class Small:
    """All holdouts of n records from s values, as counts of the values, with their probabilities."""

    def __init__(self, values: int, n: int) -> None:
        counts = [c for c in itertools.product(range(n + 1), repeat=values) if sum(c) == n]
        self.counts = np.array(counts)
        weights = [math.factorial(n) / math.prod(map(math.factorial, c)) for c in counts]
        self.chances = np.array(weights) / float(values) ** n
        self.candidates = [np.array(z) for z in itertools.product((-1, 0, 1), repeat=values) if any(z)]

    def gates(self, z: np.ndarray, kind: str) -> list[GateTest]:
        made: list[GateTest] = []
        for count in self.counts:
            wins, losses = int(count[z > 0].sum()), int(count[z < 0].sum())
            if kind == "sign":
                made.append(SignGate(wins, losses, one_law=True))
            elif kind == "ties":
                made.append(SignGate(wins + int(count[z == 0].sum()), losses, one_law=True))
            else:
                made.append(BetGate(np.repeat(0.5 * (z + 1.0), count)))
        return made


def worst(model: Small, kind: str, rules: list[Rule], beta: float, depth: int) -> float:
    """Return the largest probability of a false keep over all analysts of this depth."""
    gates = [(z.sum() <= 0, model.gates(z, kind)) for z in model.candidates]
    proposals = [Proposal(0.0, v, 10.0, float(model.counts[0].sum())) for v in (0.3, 0.9)[: 1 + (kind == "bets")]]
    seen: dict[tuple[bytes, float, int], float] = {}

    def value(inside: np.ndarray, log_error_budget: float, left: int) -> float:
        key = (inside.tobytes(), log_error_budget, left)
        if key in seen:
            return seen[key]
        best, state = 0.0, GateState(log_error_budget)
        for (false, tests), rule, proposal in itertools.product(gates, rules, proposals):
            kept, after = np.zeros_like(inside), {}
            for index in np.flatnonzero(inside):
                decision = rule(state, proposal, tests[index])
                kept[index] = decision.outcome == "keep"
                after[decision.outcome] = decision.state.log_error_budget
            total = 0.0
            if kept.any():
                chance = float(model.chances[kept].sum())
                total += chance if false else (value(kept, after["keep"], left - 1) if left > 1 else 0.0)
            rest = inside & ~kept
            if left > 1 and rest.any():
                total += value(rest, after["reject"], left - 1)
            best = max(best, total)
        seen[key] = best
        return best

    return value(np.ones(len(model.counts), bool), math.log(beta), depth)


PROPOSAL = Proposal(0.0, 0.5, 10.0, 10.0)


@dataclass(frozen=True)
class Event(GateTest):
    """A test that passes or not."""

    inside: bool

    def passes(self, proposal: Proposal, log_level: float) -> bool:
        return self.inside

    def needed(self, proposal: Proposal, log_level: float) -> float:
        return 0.0


def at_share(share: float) -> Rule:
    return lambda state, proposal, test: decide(state, proposal, test, share)


def whole_after_confirmation(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    """The broken milestone: a confirmation leaves the risk whole."""
    made = checkpoint(state, proposal, test)
    return Decision(made.outcome, made.log_level, state) if made.outcome == "keep" else made


def whole_after_rejection(state: GateState, proposal: Proposal, test: GateTest) -> Decision:
    """The broken gate: a look that ends in a rejection is free."""
    made = checkpoint(state, proposal, test)
    return Decision(made.outcome, made.log_level, state) if made.outcome == "reject" else made


def most_false_keeps(rules: list[Rule], beta: float, depth: int, atoms: int = 64) -> float:
    """Return the largest probability of a false keep over all analysts and all valid tests on equally likely atoms.

    A test is an event; a claim that is false has one of at most the level as probability, a true one any. So only the
    number of atoms counts at which the history has not ended, and the remaining error budget.
    """
    seen: dict[tuple[int, float, int], float] = {}

    def value(inside: int, log_error_budget: float, left: int) -> float:
        key = (inside, log_error_budget, left)
        if left == 0 or inside == 0:
            return 0.0
        if key not in seen:
            best = 0.0
            for rule in rules:
                keep, reject = (rule(GateState(log_error_budget), PROPOSAL, Event(inside)) for inside in (True, False))
                assert reject.log_level is not None
                false = min(math.floor(math.exp(reject.log_level) * atoms), inside)
                best = max(best, false / atoms + value(inside - false, reject.state.log_error_budget, left - 1))
                for true in range(1, inside):
                    kept = value(true, keep.state.log_error_budget, left - 1)
                    best = max(best, kept + value(inside - true, reject.state.log_error_budget, left - 1))
            seen[key] = best
        return seen[key]

    return value(atoms, math.log(beta), depth)


@pytest.mark.slow
@pytest.mark.parametrize("beta", corners([0.13, 0.51], 0))
def test_no_analyst_has_more_false_keeps_than_beta_with_the_sign_test(beta: float) -> None:
    assert worst(Small(3, 4), "sign", [at_share(0.25), at_share(0.5), at_share(0.97)], beta, 3) <= beta


@pytest.mark.slow
def test_no_analyst_has_more_false_keeps_than_beta_with_bets() -> None:
    assert worst(Small(3, 4), "bets", [at_share(0.5), at_share(0.97)], 0.26, 2) <= 0.26


def test_the_bound_is_reached_with_the_sign_test() -> None:
    beta = 0.0626 / 0.97
    assert worst(Small(2, 4), "sign", [at_share(0.5), at_share(0.97)], beta, 2) == pytest.approx(1 / 16)


@pytest.mark.parametrize("beta", corners([0.1, 0.2501, 0.5], 1))
def test_no_analyst_has_more_false_keeps_than_beta_with_any_test(beta: float) -> None:
    worst_found = most_false_keeps([at_share(q) for q in (0.1, 0.5, 0.9)] + [checkpoint, last_evaluation], beta, 4)
    assert 0.9 * beta < worst_found <= beta


def test_a_milestone_that_leaves_the_risk_whole_is_caught() -> None:
    assert most_false_keeps([checkpoint], 0.2501, 4) <= 0.2501
    assert most_false_keeps([whole_after_confirmation], 0.2501, 4) > 0.28


def test_a_rejection_that_leaves_the_risk_whole_is_caught() -> None:
    assert most_false_keeps([whole_after_rejection], 0.2501, 4) > 0.45


def test_ties_that_count_are_caught() -> None:
    assert worst(Small(3, 4), "ties", [at_share(0.97)], 0.13, 1) > 0.13
