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

from tests.cases import for_each
from tests.sizes import corners, sized
from thresholdout.mechanisms.claims.gate import Decision, GateState, checkpoint, decide, last_evaluation, settle
from thresholdout.mechanisms.claims.gate_tests import BetGate, GateTest, Proposal, SignGate, TrinomialGate

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

    def mirrored(self) -> "Event":
        return Event(False)


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


@pytest.mark.parametrize(("beta", "depth"), sized([(0.1,), (0.2501,), (0.5,)], 3, 4, 1))
def test_no_analyst_has_more_false_keeps_than_beta_with_any_test(beta: float, depth: int) -> None:
    worst_found = most_false_keeps([at_share(q) for q in (0.1, 0.5, 0.9)] + [checkpoint, last_evaluation], beta, depth)
    assert 0.9 * beta < worst_found <= beta


def test_a_milestone_that_leaves_the_risk_whole_is_caught() -> None:
    assert most_false_keeps([checkpoint], 0.2501, 4) <= 0.2501
    assert most_false_keeps([whole_after_confirmation], 0.2501, 4) > 0.28


def test_a_rejection_that_leaves_the_risk_whole_is_caught() -> None:
    assert most_false_keeps([whole_after_rejection], 0.2501, 4) > 0.45


def test_ties_that_count_are_caught() -> None:
    assert worst(Small(3, 4), "ties", [at_share(0.97)], 0.13, 1) > 0.13


@dataclass(frozen=True)
class Outcome(GateTest):
    """The outcome of a gate with a tolerance, whatever it is asked for."""

    told: str
    opposite: bool = False

    def passes(self, proposal: Proposal, log_level: float) -> bool:
        return self.told == ("worse" if self.opposite else "keep")

    def needed(self, proposal: Proposal, log_level: float) -> float:
        return 0.0

    def mirrored(self) -> "Outcome":
        return Outcome(self.told, True)


Settle = Callable[[GateState, str, tuple[float, float]], GateState]
TOLERATED = Proposal(0.0, 0.5, 10.0, 10.0, -0.1)


def settled(state: GateState, told: str, shares: tuple[float, float]) -> GateState:
    return settle(state, TOLERATED, Outcome(told), shares).state


def most_false_outcomes(leaves: Settle, beta: float, depth: int, shared: bool = False, atoms: int = 16) -> float:
    """Return the largest probability of a false "keep" or "worse" over all analysts, tests and truths.

    At each node "worse" is false (no drop), or "keep" is (a drop beyond the tolerance), or neither. The false one has
    an event of at most its level; the other outcomes are events as one likes. `shared` gives both the level of both.
    """
    choices = [(0.5, 0.25), (0.75, 0.125), (0.0, 0.5)]
    seen: dict[tuple[int, float, int], float] = {}

    def value(inside: int, log_error_budget: float, left: int) -> float:
        key = (inside, round(log_error_budget, 12), left)
        if left == 0 or inside == 0:
            return 0.0
        if key not in seen:
            best = 0.0
            for shares in choices:
                after = {
                    told: leaves(GateState(log_error_budget), told, shares).log_error_budget
                    for told in ("keep", "worse", "none")
                }
                levels = dict(zip(("keep", "worse"), (sum(shares),) * 2 if shared else shares, strict=True))
                for false in ("keep", "worse", None):
                    lost = 0
                    if false is not None:
                        lost = min(inside, math.floor(math.exp(log_error_budget) * levels[false] * atoms + 1e-3))
                    others = [told for told in ("keep", "worse") if told != false and levels[told] > 0.0]
                    for taken in itertools.product(range(inside - lost + 1), repeat=len(others)):
                        rest = inside - lost - sum(taken)
                        if rest < 0:
                            continue
                        total = lost / atoms + value(rest, after["none"], left - 1)
                        for told, number in zip(others, taken, strict=True):
                            total += value(number, after[told], left - 1)
                        best = max(best, total)
            seen[key] = best
        return seen[key]

    return value(atoms, math.log(beta), depth)


def test_no_analyst_has_more_false_outcomes_than_beta_with_a_tolerance() -> None:
    assert 0.7 * 0.25 < most_false_outcomes(settled, 0.25, 3) <= 0.25


def keep_leaves_all(state: GateState, told: str, shares: tuple[float, float]) -> GateState:
    return state if told == "keep" else settled(state, told, shares)


def worse_is_free(state: GateState, told: str, shares: tuple[float, float]) -> GateState:
    return state if told == "worse" else settled(state, told, shares)


def nothing_is_free(state: GateState, told: str, shares: tuple[float, float]) -> GateState:
    return state if told == "none" else settled(state, told, shares)


@pytest.mark.slow
@for_each("twin", [keep_leaves_all, worse_is_free, nothing_is_free])
def test_an_outcome_that_is_free_is_caught(twin: Settle) -> None:
    assert most_false_outcomes(twin, 0.25, 3) > 1.1 * 0.25


@pytest.mark.slow
def test_one_level_that_both_outcomes_share_is_caught() -> None:
    assert most_false_outcomes(settled, 0.25, 3, shared=True) > 1.05 * 0.25


def test_the_tests_of_both_outcomes_keep_their_levels_for_every_law() -> None:
    """Real tests, exact sums over all counts: laws with no drop, and with one beyond the tolerance."""
    n, shares = 9, (0.4, 0.3)
    state, proposal = GateState(math.log(0.4)), Proposal(0.0, 0.5, 10.0, 9.0, -0.3)
    told = {
        (won, lost): settle(state, proposal, TrinomialGate(won, lost, n), shares).outcome
        for won in range(n + 1)
        for lost in range(n + 1 - won)
    }

    def chance(outcome: str, u: float, v: float) -> float:
        return sum(
            math.comb(n, won) * math.comb(n - won, lost) * u**won * v**lost * max(0.0, 1 - u - v) ** (n - won - lost)
            for (won, lost), its in told.items()
            if its == outcome
        )

    laws = list(np.linspace(0.01, 1.0, 40))
    worse = max(chance("worse", share / 2, share / 2) for share in laws)
    keep = max(chance("keep", (share - 0.3) / 2, (share + 0.3) / 2) for share in laws if share >= 0.3)
    assert 0.3 * 0.12 < worse <= 0.12
    assert 0.3 * 0.16 < keep <= 0.16
