"""A leaderboard about grouped records: two outcomes for each cell, one by bets on group sums and one by sizes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from graphs import Groups
from tests.cases import for_each
from tests.sizes import corners, sizes
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.base import Grouped
from thresholdout.mechanisms.claims import ClaimsParameters, ClaimsState, LeaderboardMechanism
from thresholdout.mechanisms.claims.clients import client_of
from thresholdout.mechanisms.claims.group_tests import GroupBetTest
from thresholdout.noise.sources import SeededNoise

BETA = 0.05
RATE = 1e-9


def leaderboard(index: np.ndarray, allowance: float = 24.0, confidence: float = 0.95) -> LeaderboardMechanism:
    parameters = ClaimsParameters(noise=0.0, allowance=allowance).for_records(Groups(index), confidence)
    return LeaderboardMechanism(parameters, index.size)


def known_of(index: np.ndarray, correlation: float, client: str = "", vague: bool = False) -> Known:
    counts = np.bincount(index)
    found = GroupSizes.of(counts)
    groups = Grouped(
        index, found, correlation, found.effective(correlation), float(counts.size), counts=counts.astype(np.float64)
    )
    return Known(binary=True, client=client, vague=vague, groups=groups)


def asked(
    mechanism: LeaderboardMechanism, state: ClaimsState, guess: float, values: np.ndarray, known: Known
) -> tuple[ClaimsState, tuple[float, float], str]:
    read = mechanism.read(values, values.size, (0, 1), "values", known)
    state, outcome = mechanism.step(state, guess, read, SeededNoise(0))
    assert outcome.interval is not None
    return state, outcome.interval, outcome.source


GROUPS, SIZE = 6, 4
LAWS = [
    *(binom.pmf(np.arange(SIZE + 1), SIZE, p) for p in (0.1, 0.3, 0.5, 0.7, 0.9)),
    *(np.array([1.0 - p, 0.0, 0.0, 0.0, p]) for p in (0.1, 0.25, 0.5, 0.75, 0.9, 0.97)),
    np.array([0.0, 0.5, 0.0, 0.0, 0.5]),
    np.array([0.0, 0.0, 1.0, 0.0, 0.0]),
    np.array([0.05, 0.0, 0.0, 0.95, 0.0]),
]


def ways(groups: int) -> list[tuple[int, ...]]:
    """How many groups have each sum, in all ways."""
    chosen = itertools.combinations_with_replacement(range(SIZE + 1), groups)
    return [tuple(sums.count(one) for one in range(SIZE + 1)) for sums in chosen]


def chances(first: np.ndarray, second: np.ndarray) -> dict[tuple[int, ...], float]:
    """Probabilities of the ways, where half of the groups have each law."""
    half, found = ways(GROUPS // 2), dict.fromkeys(ways(GROUPS), 0.0)
    one, two = (multinomial.pmf(half, GROUPS // 2, law) for law in (first, second))
    for (a, p), (b, q) in itertools.product(zip(half, one, strict=True), zip(half, two, strict=True)):
        found[tuple(x + y for x, y in zip(a, b, strict=True))] += p * q
    return found


def most_false(guess: float, correlation: float) -> tuple[float, int]:
    """The largest ratio of a false outcome's probability to its level, and the number of outcomes."""
    index = np.repeat(np.arange(GROUPS), SIZE)
    mechanism, known = leaderboard(index, confidence=0.4), known_of(index, correlation)
    start, outcomes = mechanism.start(SeededNoise(0)), {}
    for way in ways(GROUPS):
        sums = np.repeat(np.arange(SIZE + 1), way)
        values = (np.tile(np.arange(SIZE), GROUPS) < np.repeat(sums, SIZE)).astype(np.float64)
        after, interval, _ = asked(mechanism, start, guess, values, known)
        outcomes[way] = (interval, after.log_error_budget)
    most = 0.0
    for first, second in itertools.combinations_with_replacement(LAWS, 2):
        truth = float((first + second) @ np.arange(SIZE + 1)) / (2 * SIZE)
        mass: dict[tuple[tuple[float, float], float], float] = {}
        for way, chance in chances(first, second).items():
            low, high = outcomes[way][0]
            if not low <= truth <= high:
                mass[outcomes[way]] = mass.get(outcomes[way], 0.0) + chance
        most = max([most, *(chance / math.exp(level) for (_, level), chance in mass.items())])
    return most, len(set(outcomes.values()))


@pytest.mark.parametrize(
    ("guess", "correlation"), corners([(0.5, 0.0), (0.8, 0.0), (0.8, 0.3), (0.95, 0.0), (0.5, 1.0)], 2)
)
def test_no_outcome_with_a_false_claim_is_more_likely_than_its_share(guess: float, correlation: float) -> None:
    """(1) of the theorem, exactly, for groups of two laws; also where a client's training values say nothing true."""
    most, outcomes = most_false(guess, correlation)
    assert most <= 1.0 + 1e-9
    assert outcomes > 1


@for_each("twin", [False, True])
def test_a_narrow_interval_that_no_bet_confirms_is_rejected(monkeypatch: pytest.MonkeyPatch, twin: bool) -> None:
    """Forty groups that are right or wrong as one; a client says that their records do not resemble each other."""
    if twin:
        monkeypatch.setattr(GroupBetTest, "outcome", lambda *_: "confirmed")
    groups, size = 40, 8
    index, most = np.repeat(np.arange(groups), size), 0.0
    mechanism, known = leaderboard(index), known_of(index, 0.0)
    start = mechanism.start(SeededNoise(0))
    for guess in (0.5, 0.8, 0.95):
        found = []
        for right in range(groups + 1):
            after, interval, _ = asked(mechanism, start, guess, (index < right).astype(np.float64), known)
            found.append((interval, after.log_error_budget))
        for truth in np.linspace(0.005, 0.995, 199):
            mass = binom.pmf(np.arange(groups + 1), groups, truth)
            for (low, high), level in set(found):
                if not low <= truth <= high:
                    same = [one == ((low, high), level) for one in found]
                    most = max(most, float(mass[same].sum()) / math.exp(level))
    assert (most > 1.05) == twin


def test_bets_are_narrower_and_lost_bets_are_answered_by_sizes() -> None:
    """Groups of eight whose records hardly resemble each other, then groups that are right or wrong as one."""
    index = np.repeat(np.arange(300), 8)
    mechanism, known, rng = leaderboard(index), known_of(index, 0.05), np.random.default_rng(0)
    by_sizes = Known(binary=True)  # as for values of which no groups are known
    state = mechanism.start(SeededNoise(0))
    values = (rng.random(index.size) < 0.85).astype(np.float64)
    after, (low, high), source = asked(mechanism, state, 0.85, values, known)
    narrow = high - low
    _, before, _ = asked(mechanism, state, 0.85, values, by_sizes)
    assert source == "train"
    assert state.log_error_budget - after.log_error_budget < 0.03
    assert low < values.mean() < high
    assert narrow < 0.65 * (before[1] - before[0])
    together = np.repeat((np.arange(300) % 20 < 17).astype(np.float64), 8)
    lost, (low, high), source = asked(mechanism, state, 0.85, together, known)
    assert source == "train"
    assert state.log_error_budget - lost.log_error_budget == pytest.approx(-math.log(0.01), abs=0.1)
    assert high - low > 1.5 * narrow


def test_no_outcome_tells_more_than_the_longest_code() -> None:
    index = np.repeat(np.arange(100), 8)
    together = np.repeat((np.arange(100) % 20 < 2).astype(np.float64), 8)
    for vague in (False, True):
        known = known_of(index, 0.0, "ann", vague)
        mechanism = leaderboard(index)
        state = mechanism.start(SeededNoise(0))
        after, _, _ = asked(mechanism, state, 0.5, together, known)
        told = state.log_error_budget - after.log_error_budget
        assert client_of(after, "ann").released == pytest.approx(told)
        assert leaderboard(index, told * (1.0 - 1e-9)).client_refusal(state, known) is not None


def beginning_at(mechanism: LeaderboardMechanism, state: ClaimsState, known: Known, value: float) -> float:
    """Return the guess whose cell begins at a value."""
    memory = client_of(state, known.client)
    reach = mechanism._reach(memory, state, known)
    return math.sin(min(0.5 * math.pi, math.asin(math.sqrt(value)) + reach)) ** 2 - memory.shift


def session(seed: int, clients: int, *, naive: bool, correlation: float) -> bool:
    """Clients who share all answers learn labels that are fair coins of whole groups: 20 of 40 records, 80 of one.

    Return whether any claim is false. The naive leaderboard takes records for groups.
    """
    rng = np.random.default_rng(seed)
    index = np.repeat(np.arange(100), np.where(np.arange(100) % 5 == 0, 40, 1))
    labels = rng.integers(0, 2, 100)
    if naive:
        mechanism = LeaderboardMechanism(ClaimsParameters(noise=0.0, allowance=24.0), index.size)
    else:
        mechanism = leaderboard(index)

    def known(client: str) -> Known:
        return Known(binary=True, client=client) if naive else known_of(index, correlation, client)

    state, votes = mechanism.start(SeededNoise(seed)), np.zeros(100)
    for client in map(str, range(clients)):
        for _ in range(16):
            guess = beginning_at(mechanism, state, known(client), 0.5)
            if not 0.0 <= guess <= 1.0 or mechanism.client_refusal(state, known(client)) is not None:
                break
            predicted = rng.integers(0, 2, 100)
            values = (predicted == labels)[index].astype(np.float64)
            state, (low, high), source = asked(mechanism, state, guess, values, known(client))
            if not low <= 0.5 <= high:
                return True
            votes += (predicted - 0.5) * (1.0 if source == "train" else -1.0)
    values = ((votes > 0) == labels)[index].astype(np.float64)
    guess = beginning_at(mechanism, state, known("last"), max(0.0, values.mean() - 1.0 / index.size))
    low, high = asked(mechanism, state, min(max(guess, 0.0), 1.0), values, known("last"))[1]
    return not low <= 0.5 <= high


@pytest.mark.statistical
@sizes("sessions", 24, 100)
def test_clients_who_share_their_answers_break_no_promise_about_groups(sessions: int) -> None:
    limit = binom.isf(RATE, sessions, BETA)
    for correlation in (0.0, 1.0):
        assert sum(session(seed, 10, naive=False, correlation=correlation) for seed in range(sessions)) <= limit
    assert sum(session(seed, 10, naive=True, correlation=0.0) for seed in range(sessions)) > limit
