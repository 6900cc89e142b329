"""Proposals: tests of a difference that take nobody's word for it, and what a decision of one bit costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from tests.cases import for_each
from thresholdout.data.values import unit_records
from thresholdout.errors import BudgetExhausted
from thresholdout.limits.group_bets import difference_bets
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims import ClaimsParameters, ClaimsState, LeaderboardMechanism
from thresholdout.mechanisms.claims.clients import client_of, kept_as
from thresholdout.mechanisms.claims.predictor import PredictorState
from thresholdout.mechanisms.claims.proposals import (
    Betting,
    DifferenceTest,
    Divergence,
    GroupBetting,
    Inflated,
    Proposed,
    Proposer,
    Signs,
    proposal_refusal,
    proposer_of,
)
from thresholdout.noise.sources import SeededNoise

NOISE = SeededNoise(0)
FAILURE_SHARE = 2.0**-20


def state_at(log_error_budget: float) -> ClaimsState:
    return ClaimsState(log_error_budget, 0, 0, 0, -9, 0, PredictorState())


def log_p(test: DifferenceTest, z: np.ndarray) -> float:
    return test.log_p(unit_records(z, len(z), (-1.0, 1.0), "z"), NOISE)


def remembering(state: ClaimsState, client: str, asked: float, kept: float) -> ClaimsState:
    """Return a state that remembers so many proposals of a client."""
    (name,) = {*Proposed(client, True).made(state_at(-9.0), 0.0)[0].climbs} - {kept_as(client)}
    return replace(state, climbs={**state.climbs, name: (asked, kept, 0.0, 0.0, 0.0, 0.0)})


def exceeded(found: np.ndarray, chances: np.ndarray) -> float:
    """Return the largest ratio of the probability of a level to the level, over all levels at which it jumps."""
    order = np.argsort(found)
    total, levels = np.cumsum(chances[order]), np.exp(found[order])
    last = np.append(levels[1:] != levels[:-1], True)
    return float((total[last] / levels[last]).max())


# Tests of a difference, against the laws of records that differ


def test_signs_hold_for_records_of_different_laws() -> None:
    """Each record has its own law, and the mean chance to win is at most a half: exact, for two kinds of records."""
    n, most, tail = 12, 0.0, 0.0
    found = np.array([log_p(Signs(n), np.repeat([1.0, -1.0], [wins, n - wins])) for wins in range(n + 1)])
    for few, p in itertools.product(range(n + 1), np.linspace(0.0, 1.0, 21)):
        q = (0.5 * n - few * p) / (n - few) if few < n else 0.5
        if not 0.0 <= q <= 1.0 or (few == n and p > 0.5):
            continue
        mass = np.convolve(binom.pmf(np.arange(few + 1), few, p), binom.pmf(np.arange(n - few + 1), n - few, q))
        most = max(most, exceeded(found, mass))
        tail = max(tail, float(mass[n // 2 :].sum()) / float(binom.sf(n // 2 - 1, n, 0.5)))
    assert most <= 1.0 + 1e-9
    assert tail > 1.2  # what the same tail would be worth at levels above a half


def three_ways(n: int) -> list[tuple[int, int, int]]:
    return [(wins, losses, n - wins - losses) for wins in range(n + 1) for losses in range(n + 1 - wins)]


def chances_of(n: int, win: float, lose: float) -> np.ndarray:
    def one(wins: int, losses: int, ties: int) -> float:
        ways = math.factorial(n) / (math.factorial(wins) * math.factorial(losses) * math.factorial(ties))
        return ways * win**wins * lose**losses * (1.0 - win - lose) ** ties

    return np.array([one(*ways) for ways in three_ways(n)])


def test_bets_hold_for_wins_losses_and_ties_of_two_kinds_of_records() -> None:
    n, half = 10, 5
    outcomes = [np.repeat([1.0, -1.0, 0.0], ways) for ways in three_ways(half)]
    pairs = [np.concatenate(pair) for pair in itertools.product(outcomes, outcomes)]
    mixed = np.array([log_p(Betting(n), z) for z in pairs])
    best = np.array([-max(np.log1p(bet * z).sum() for bet in Betting(n).bets) for z in pairs])
    laws = [(0.5, 0.5), (0.9, 0.1), (0.3, 0.0), (0.2, 0.2), (0.05, 0.0), (0.0, 0.1)]
    worst, twin = 0.0, 0.0
    for first in laws:
        for second in laws:
            if sum(a - b for a, b in (first, second)) <= 1e-12:
                chances = np.outer(chances_of(half, *first), chances_of(half, *second)).ravel()
                worst, twin = max(worst, exceeded(mixed, chances)), max(twin, exceeded(np.minimum(best, 0.0), chances))
    assert worst <= 1.0 + 1e-9
    assert twin > 1.0  # the bet that did best, of several


def comonotone(sizes: Sequence[int], chances: Sequence[float]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return all outcomes of groups that win or lose as one, and their probabilities."""
    outcomes = list(itertools.product((1.0, -1.0), repeat=len(sizes)))
    weights = [math.prod(p if z > 0.0 else 1.0 - p for z, p in zip(each, chances, strict=True)) for each in outcomes]
    return [np.repeat(each, sizes) for each in outcomes], np.array(weights)


@pytest.mark.parametrize("points", [3, pytest.param(6, marks=pytest.mark.slow)])
@for_each("sizes", [(2, 2, 2, 2, 2), (1, 1, 2, 3, 3), (1, 2, 2, 9), (1, 1, 1, 1, 1, 7)])
def test_bets_on_groups_hold_whatever_is_inside_of_them(sizes: tuple[int, ...], points: int) -> None:
    """Exact, over laws of groups that win or lose as one, with a mean chance to win of at most a half."""
    index, n = np.repeat(np.arange(len(sizes)), sizes), sum(sizes)
    outcomes, _ = comonotone(sizes, [0.5] * len(sizes))
    found = np.array([log_p(GroupBetting(n, index), z) for z in outcomes])
    split = np.array([log_p(GroupBetting(n, np.arange(n)), z) for z in outcomes])
    grid, worst, twin = np.linspace(0.0, 1.0, points), 0.0, 0.0
    for some in itertools.product(grid, repeat=len(sizes) - 1):
        last = (0.5 * n - float(np.dot(some, sizes[:-1]))) / sizes[-1]
        if 0.0 <= last <= 1.0:
            _, chances = comonotone(sizes, (*some, last))
            worst, twin = max(worst, exceeded(found, chances)), max(twin, exceeded(split, chances))
    assert worst <= 1.0 + 1e-9
    assert twin > 1.05  # every record as a group of its own


def test_bets_on_groups_of_one_are_bets_on_records() -> None:
    """The wealth is a weighted mean of products over the groups, computed here with logarithms of single factors."""
    rng = np.random.default_rng(0)
    index, z = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3]), rng.uniform(-1.0, 1.0, 10)
    bets, weights = difference_bets(4, 4.0, 10.0, 0.5)
    totals = np.array([z[index == group].sum() for group in range(4)])
    wealth = sum(w * np.prod(1.0 + 0.5 * bet / 4.0 * totals) for bet, w in zip(bets, weights, strict=True))
    assert log_p(GroupBetting(10, index), z) == pytest.approx(min(0.0, -math.log(wealth)), abs=1e-7)


@for_each("n", [1, 2, 37, 5000])
def test_no_outcome_is_below_the_least(n: int) -> None:
    grouped = GroupBetting(n, np.arange(n) // 3)
    assert grouped.least <= log_p(grouped, np.ones(n)) <= grouped.least + 1e-5
    for test in (Signs(n), Betting(n), Divergence(n, 0.5 * n), Inflated(n, 0.5 * n)):
        found = log_p(test, np.ones(n))
        assert test.least <= found <= test.least + 1e-6 + 2e-15 * abs(found) * n or test.least == found == 0.0
        assert log_p(test, -np.ones(n)) == 0.0


def test_groups_count_as_few_records() -> None:
    """Two groups that each win or lose as one: the tail at their mean is a quarter, and a half."""
    z = np.ones(100)
    assert log_p(Divergence(100, 2.0), z) == pytest.approx(math.log(0.25), abs=1e-6)
    assert log_p(Divergence(100, 100.0), z) < -60.0


@for_each("records", [200, 4000])
def test_mixed_bets_find_what_the_best_bet_finds(records: int) -> None:
    """A difference that the best constant bet certifies with 10 nats is certified by the mixture with 7 at least."""
    for ties in (0.0, 0.9):
        differ = round(records * (1.0 - ties))
        for gain in np.linspace(0.05, 0.6, 12):
            wins = round(differ * (0.5 + 0.5 * gain))
            z = np.repeat([1.0, -1.0, 0.0], [wins, differ - wins, records - differ])
            best = max(float(np.log1p(bet * z).sum()) for bet in np.linspace(0.0, 0.98, 99))
            if 10.0 <= best <= 30.0:
                assert -log_p(Betting(records), z) >= 0.85 * best - math.log(len(Betting(records).bets))


# What a decision costs


def test_outcomes_sum_to_what_was_left() -> None:
    for log_error_budget, asked, kept in itertools.product((-3.0, -40.0), range(0, 50, 7), range(0, 50, 7)):
        q = Proposer(asked, min(asked, kept)).share
        state = remembering(state_at(log_error_budget), "ann", asked, min(asked, kept))
        left = [Proposed("ann", True).made(state, test)[0].log_error_budget for test in (-1e9, 0.0)]
        assert math.fsum(map(math.exp, left)) + 2 * FAILURE_SHARE * math.exp(log_error_budget) <= math.exp(
            log_error_budget
        )
        assert left[0] == pytest.approx(log_error_budget + math.log(q), abs=1e-5)


def test_what_nothing_could_certify_is_rejected_for_nothing() -> None:
    state = state_at(math.log(0.05))
    for test in (Signs(7), Betting(5), Divergence(4000, 3.0)):
        move = Proposed.planned(state, "ann", test)
        assert not move.evaluates
        after, verdict = move.made(state, -1e9)
        assert (verdict, after.log_error_budget, after.free, after.asked, after.hits) == (
            "skip",
            state.log_error_budget,
            1,
            1,
            0,
        )
        assert proposer_of(after, "ann") == Proposer()
    assert Proposed.planned(state, "ann", Signs(8)).evaluates


def test_many_rejections_cost_a_nat_and_a_bit() -> None:
    state = state_at(math.log(0.05))
    for _ in range(500):
        state, verdict = Proposed.planned(state, "ann", Signs(1000)).made(state, 0.0)
        assert verdict == "reject"
    assert 1.0 < math.log(0.05) - state.log_error_budget < 1.5
    assert client_of(state, "ann").released == pytest.approx(math.log(0.05) - state.log_error_budget)
    assert client_of(state, "bob").released == 0.0
    assert proposer_of(state, "bob") == Proposer()


def test_an_allowance_counts_proposals_and_scores_together() -> None:
    state, known = state_at(math.log(0.05)), Known(proposal=True, client="ann")
    mechanism = LeaderboardMechanism(ClaimsParameters(noise=0.0, allowance=6.0), 1000)
    kept = 0
    while mechanism.client_refusal(state, known) is None:
        state, verdict = Proposed.planned(state, "ann", Signs(1000)).made(state, -600.0)
        kept += verdict == "keep"
    assert kept >= 3
    assert math.log(0.05) - state.log_error_budget <= 6.0
    refused = mechanism.client_refusal(state, known)
    assert isinstance(refused, BudgetExhausted)
    assert (refused.what, refused.spent) == ("allowance", kept)
    assert mechanism.client_refusal(state, Known(client="ann")) is not None
    assert mechanism.client_refusal(state, Known(proposal=True, client="bob")) is None
    assert proposal_refusal(state, "", 6.0) is None
    assert proposal_refusal(state, "ann", None) is None


def test_proposals_at_once_stay_within_an_allowance() -> None:
    """Two were planned at one state; by the time of the second the first was kept, and q is what the history says."""
    before = state_at(math.log(0.05))
    for _ in range(60):
        before = Proposed.planned(before, "ann", Signs(1000)).made(before, 0.0)[0]
    first = second = Proposed.planned(before, "ann", Signs(1000))
    between = first.made(before, -600.0)[0]
    told = client_of(between, "ann").released
    q = proposer_of(between, "ann").share
    allowance = told - math.log(min(q, 1.0 - q)) + 1e-5
    assert proposal_refusal(between, "ann", allowance) is None
    after, verdict = second.made(between, -600.0)
    assert verdict == "keep"
    assert client_of(after, "ann").released <= allowance


def test_what_is_remembered_survives_a_ledger_and_shows_no_text_of_a_client() -> None:
    state, _ = Proposed("Zoë\n<b>", True).made(state_at(-3.0), 0.0)
    text = state.to_text()
    assert "Zo" not in text
    assert "<b>" not in text
    assert all(line.startswith("client ") for line in text.split("\n")[1:])
    assert ClaimsState.from_text(text) == state


# Every analyst of small depth


Rule = Callable[[ClaimsState, str, bool], ClaimsState]
"""From a state, a client and whether the test passes to what is left."""


def paid(state: ClaimsState, client: str, passes: bool) -> ClaimsState:
    return Proposed(client, True).made(state, -1e9 if passes else 0.0)[0]


def free_rejections(state: ClaimsState, client: str, passes: bool) -> ClaimsState:
    return paid(state, client, passes) if passes else state


def whole_after_a_keep(state: ClaimsState, client: str, passes: bool) -> ClaimsState:
    return state if passes else paid(state, client, passes)


def most_false_keeps(rule: Rule, beta: float, depth: int, atoms: int = 32) -> float:
    """Return the largest probability of a false keep over all analysts and all valid tests on equally likely atoms.

    A test is an event; one of a false claim has at most its level as probability, one of a true claim any. Two clients
    see each other's decisions, and propose at shares that are functions of these: also at a half.
    """
    seen: dict[tuple[int, str, int], float] = {}

    def value(inside: int, state: ClaimsState, left: int) -> float:
        key = (inside, state.to_text(), left)
        if left == 0 or inside == 0:
            return 0.0
        if key not in seen:
            best = 0.0
            for client, half in itertools.product(("ann", "bob"), (False, True)):
                here = remembering(state, client, 0.0, 0.8) if half else state
                kept, rejected = rule(here, client, True), rule(here, client, False)
                level = paid(here, client, True).log_error_budget
                false = min(math.floor(math.exp(level) * atoms), inside)
                best = max(best, false / atoms + value(inside - false, rejected, left - 1))
                for true in range(1, inside, 5):
                    after = value(true, kept, left - 1)
                    best = max(best, after + value(inside - true, rejected, left - 1))
            seen[key] = best
        return seen[key]

    return value(atoms, state_at(math.log(beta)), depth)


def test_no_analyst_has_more_false_keeps_than_beta() -> None:
    assert 0.2 < most_false_keeps(paid, 0.2501, 3) <= 0.2501


@for_each("twin", [free_rejections, whole_after_a_keep])
def test_what_is_not_paid_for_is_caught(twin: Rule) -> None:
    assert most_false_keeps(twin, 0.2501, 3, atoms=16) > 0.28


# Agents that climb on chance


def grouped_climb(seed: int, proposals: int, *, naive: bool) -> bool:
    """Agents change predictions of whole groups of unequal sizes, each right or wrong as one by a fair coin.

    Given the features no proposal is better than another. The naive guard takes records for groups.
    """
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(100), 1 + rng.integers(0, 12, 100))
    labels, champions = rng.integers(0, 2, 100), [np.zeros(100, dtype=int), np.ones(100, dtype=int)]
    state = state_at(math.log(0.05))
    for number in range(proposals):
        who = number % 2
        new = np.where(rng.random(100) < 0.4, 1 - champions[who], champions[who])
        differ = np.flatnonzero((new != champions[who])[groups])
        index = np.unique(groups[differ], return_inverse=True)[1]
        test = GroupBetting(differ.size, np.arange(differ.size) if naive else index)
        found = log_p(test, np.where((new == labels)[groups][differ], 1.0, -1.0))
        state, verdict = Proposed.planned(state, str(who), test).made(state, found)
        if verdict == "keep":
            return True
    return False


@pytest.mark.statistical
def test_agents_that_change_whole_groups_keep_nothing_by_chance() -> None:
    sessions = 40
    limit = binom.isf(1e-9, sessions, 0.05)
    assert sum(grouped_climb(seed, 60, naive=False) for seed in range(sessions)) <= limit
    assert sum(grouped_climb(seed, 60, naive=True) for seed in range(sessions)) > limit


def climb(seed: int, proposals: int, *, naive: bool) -> bool:
    """Agents without a better idea propose random changes of fair coins' predictions; return whether any is kept.

    Given the features every label is a fair coin, so no proposal is better than another. The naive guard tests each
    proposal at the whole risk.
    """
    n, rng = 400, np.random.default_rng(seed)
    labels, champions = rng.integers(0, 2, n), [np.zeros(n, dtype=int), np.ones(n, dtype=int)]
    state = state_at(math.log(0.05))
    for number in range(proposals):
        who = number % 2
        new = np.where(rng.random(n) < 0.4, 1 - champions[who], champions[who])
        differ = new != champions[who]
        if not differ.any():
            continue
        test = Signs(int(differ.sum()))
        found = log_p(test, np.where(new[differ] == labels[differ], 1.0, -1.0))
        if naive:
            verdict = "keep" if found <= math.log(0.05) else "reject"
        else:
            state, verdict = Proposed.planned(state, str(who), test).made(state, found)
        if verdict == "keep":
            return True
    return False


@pytest.mark.statistical
def test_agents_that_share_a_holdout_keep_nothing_by_chance() -> None:
    sessions = 40
    limit = binom.isf(1e-9, sessions, 0.05)
    assert sum(climb(seed, 60, naive=False) for seed in range(sessions)) <= limit
    assert sum(climb(seed, 60, naive=True) for seed in range(sessions)) > limit
