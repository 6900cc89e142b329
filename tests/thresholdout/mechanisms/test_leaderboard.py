"""A leaderboard: cells around guesses, what they cost, what junk costs others, and clients who work together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tests.cases import for_each
from tests.sizes import corners, sizes
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms import Known, Part
from thresholdout.mechanisms.claims import ClaimsParameters, ClaimsState, LeaderboardMechanism
from thresholdout.mechanisms.claims.clients import Newcomers, client_of
from thresholdout.mechanisms.claims.leaderboard import AngleCells
from thresholdout.mechanisms.claims.score import FAILURE_SHARE
from thresholdout.noise.sources import SeededNoise

BETA = 0.05
RATE = 1e-9
BINARY = Known(binary=True)


def leaderboard(n: int, allowance: float = 24.0, **settings: object) -> LeaderboardMechanism:
    return LeaderboardMechanism(ClaimsParameters(noise=0.0, allowance=allowance, **settings), n)  # type: ignore[arg-type]


def asked(
    mechanism: LeaderboardMechanism,
    state: ClaimsState,
    guess: float,
    count: int,
    n: int,
    client: str = "",
    vague: bool = False,
) -> tuple[ClaimsState, tuple[float, float], str]:
    """Ask about values of which so many are 1."""
    known = Known(binary=True, client=client, vague=vague)
    values = np.arange(n) < count
    state, outcome = mechanism.step(state, guess, mechanism.read(values, n, (0, 1), "values", known), SeededNoise(0))
    assert outcome.interval is not None
    return state, outcome.interval, outcome.source


@sizes("examples", 60, 200)
def test_cells_part_the_range_and_every_outcome_is_paid_for(examples: int) -> None:
    @given(st.floats(0, 1), st.floats(1e-3, 0.8), st.integers(1, 5000), st.floats(1e-6, 0.9), st.booleans())
    @settings(deadline=None, max_examples=examples)
    def check(guess: float, reach: float, steps: int, share: float, even: bool) -> None:
        cells = AngleCells.around(guess, reach, steps, share, even=even)
        assert cells.edges[0] == 0
        assert cells.edges[-1] == steps + 1
        assert list(cells.edges) == sorted(cells.edges)
        assert len(cells.edges) == len(cells.log_shares) + 1
        for value in {0, steps, steps // 3, *(min(edge, steps) for edge in cells.edges)}:
            first, last = cells.limits(cells.holding(value))
            assert first <= value <= last
        # two more outcomes, of a query that fails or is interrupted
        assert math.fsum(map(math.exp, cells.log_shares)) + 2 * FAILURE_SHARE <= 1.0
        assert len(cells.log_shares) <= math.ceil(0.25 * math.pi / reach) + 1  # as an allowance counts them

    check()


@pytest.mark.parametrize("guess", corners([0.0, 0.5, 0.87, 1.0], 2))
@for_each("vague", [False, True])
def test_no_outcome_with_a_false_claim_is_more_likely_than_its_share(guess: float, vague: bool) -> None:
    """(1) of the theorem, exactly, for all truths, where the node is the first, and after junk."""
    n = 80
    mechanism = leaderboard(n, confidence=0.7)
    start = mechanism.start(SeededNoise(0))
    for state in (start, asked(mechanism, start, 1.0, 30, n)[0]):
        found = [asked(mechanism, state, guess, count, n, vague=vague) for count in range(n + 1)]
        intervals = np.array([interval for _, interval, _ in found])
        levels = np.array([after.log_error_budget for after, _, _ in found])
        for p in np.linspace(0.005, 0.995, 199):
            mass = binom.pmf(np.arange(n + 1), n, p)
            false = (intervals[:, 0] > p) | (intervals[:, 1] < p)
            for level in set(levels[false]):
                assert mass[false & (levels == level)].sum() <= math.exp(level)


@sizes("points", 8, 21)
@for_each("share", [0.2, 0.5])
def test_records_may_have_different_laws(share: float, points: int) -> None:
    """Given their features, records have laws of their own: the average of two kinds, exactly."""
    n = 60
    mechanism = leaderboard(n, confidence=0.7)
    state = mechanism.start(SeededNoise(0))
    found = [asked(mechanism, state, 0.7, count, n) for count in range(n + 1)]
    few = round(share * n)
    for p in np.linspace(0.0, 1.0, points):
        for q in np.linspace(0.0, 1.0, points):
            mass = np.convolve(binom.pmf(np.arange(few + 1), few, p), binom.pmf(np.arange(n - few + 1), n - few, q))
            truth = (few * p + (n - few) * q) / n
            false = [not low <= truth <= high for _, (low, high), _ in found]
            levels = np.array([after.log_error_budget for after, _, _ in found])
            for level in set(levels[false]):
                assert mass[np.array(false) & (levels == level)].sum() <= math.exp(level) + 1e-15


def test_a_good_guess_costs_next_to_nothing_and_a_wrong_one_an_outcome() -> None:
    n = 4000
    mechanism = leaderboard(n)
    state = mechanism.start(SeededNoise(0))
    good, interval, source = asked(mechanism, state, 0.85, 3420, n)
    assert source == "train"
    assert interval[1] - interval[0] < 0.08
    assert state.log_error_budget - good.log_error_budget < 0.02
    wrong, interval, source = asked(mechanism, state, 1.0, 2000, n)
    assert source == "holdout"
    assert interval[0] < 0.5 < interval[1] < 0.6
    assert 4.0 < state.log_error_budget - wrong.log_error_budget < 12.0


def released_by_teams(n: int, error: float, teams: int = 200) -> tuple[float, float]:
    """Return the nats that first answers to teams release whose guesses are off, and the half-width afterwards."""
    rng, mechanism = np.random.default_rng(5), leaderboard(n)
    state = mechanism.start(SeededNoise(0))
    first = state.log_error_budget
    for team in range(teams):
        score = 0.85 + 0.02 * rng.uniform(-1.0, 1.0)
        guess = rng.binomial(n, score) / n + error
        state, *_ = asked(mechanism, state, guess, int(rng.binomial(n, score)), n, f"team {team}")
    _, interval, _ = asked(mechanism, state, 0.85, round(0.85 * n), n, "")
    return first - state.log_error_budget, 0.5 * (interval[1] - interval[0])


@pytest.mark.slow
@for_each("error", [0.005, 0.01, 0.02, 0.05, -0.02])
def test_teams_that_err_alike_cost_a_few_outcomes_together(error: float) -> None:
    """200 teams that guess 2 points too high released 1,200 nats: half-widths were 0.18, with exact guesses 0.025."""
    exact, narrow = released_by_teams(10_000, 0.0)
    nats, wide = released_by_teams(10_000, error)
    assert exact < 20.0
    assert nats < 70.0
    assert wide < 2.5 * narrow


def test_the_price_of_a_cell_rises_slowly_with_its_distance() -> None:
    cells = AngleCells.around(0.5, 0.03, 10_000, 0.02)
    above = np.array(cells.log_shares[cells.middle + 1 :])
    assert above[0] > math.log(0.02) - 2.0
    assert (np.diff(above) <= 0.0).all()
    assert np.diff(above).min() > -math.log(3.0)  # weights are 1/(d (d + 1)), and a part is the same for all


def test_a_minority_of_junk_moves_no_guess() -> None:
    seen = Newcomers()
    for junk in (True, False) * 4:
        seen = seen.after(-0.5 if junk else 0.0, 9 if junk else 0, 0.5, vague=False)
    assert seen.shift == 0.0
    for _ in range(9):
        seen = seen.after(-0.5, 9, 0.5, vague=False)
    assert seen.shift < -0.4
    assert Newcomers.of(seen.numbers()) == seen


def test_a_team_that_corrects_its_guess_is_not_moved_again() -> None:
    """Told that its guess was too high, a team may guess what it was told; its value is in the middle cell then."""
    n = 10_000
    mechanism = leaderboard(n)
    state, _, source = asked(mechanism, mechanism.start(SeededNoise(0)), 0.95, 8_000, n, "ann")
    assert source == "holdout"
    for guess in (0.8, 0.95):
        assert asked(mechanism, state, guess, 8_000, n, "ann")[2] == "train"


@pytest.mark.slow
def test_a_plan_of_a_leaderboard_is_what_teams_get() -> None:
    from thresholdout import plan

    for error in (0.0, 0.02):
        nats, half_width = released_by_teams(10_000, error)
        found = plan(10_000, teams=200, anticipation_error=error, anticipated_score=0.85).leaderboard
        assert found is not None
        assert found.half_width == pytest.approx(half_width, rel=0.35)
        assert abs(found.information_released - nats) < 30.0


def test_junk_costs_others_a_dozen_nats_however_often_it_is_sent() -> None:
    n, rng = 4000, np.random.default_rng(1)
    mechanism = leaderboard(n)
    state = mechanism.start(SeededNoise(0))
    for _ in range(200):
        state, *_ = asked(mechanism, state, 1.0, int(rng.binomial(n, 0.5)), n, "junk")
    told = client_of(state, "junk").released
    assert told == pytest.approx(mechanism.start(SeededNoise(0)).log_error_budget - state.log_error_budget)
    assert told < 16.0
    _, interval, source = asked(mechanism, state, 0.85, 3400, n, "honest")
    assert source == "train"
    assert interval[1] - interval[0] < 0.11


def test_an_allowance_bounds_what_one_client_tells_and_refuses_nobody_else() -> None:
    n, rng = 1000, np.random.default_rng(2)
    mechanism = leaderboard(n)
    state = mechanism.start(SeededNoise(0))
    first = state.log_error_budget
    number, known = 0, Known(binary=True, client="attacker")
    while mechanism.client_refusal(state, known) is None:
        number += 1
        state, *_ = asked(mechanism, state, float(rng.random()), int(rng.integers(n + 1)), n, "attacker")
    assert 3 <= number < 100
    assert first - state.log_error_budget <= 24.0
    assert client_of(state, "attacker").released == pytest.approx(first - state.log_error_budget)
    refusal = mechanism.refuses(state, 0.5, Known(binary=True, client="attacker"))
    assert isinstance(refusal, BudgetExhausted)
    assert refusal.what == "allowance"
    assert "others may still ask" in str(refusal)
    assert mechanism.refuses(state, 0.5, Known(binary=True, client="somebody else")) is None
    assert mechanism.refuses(state, 0.5, BINARY) is None  # without a name: the organiser's
    assert mechanism.refusal(state) is None


def test_no_cell_tells_more_than_the_longest_code() -> None:
    """Whoever has an allowance that is just below what an answer tells is refused, however little that is."""
    known = Known(binary=True, client="ann", vague=True)
    for n in range(200, 4000, 400):
        mechanism = leaderboard(n)
        state, reading = mechanism.start(SeededNoise(0)), mechanism.read(np.arange(n) < 0.1 * n, n, (0, 1), "x", known)
        after, _ = mechanism.step(state, 0.5, reading, SeededNoise(0))
        told = state.log_error_budget - after.log_error_budget
        assert leaderboard(n, told * (1.0 - 1e-9)).client_refusal(state, known) is not None


def test_failures_count_in_the_allowance_and_end_it() -> None:
    """Each is an outcome of 20 ln 2, told to who asked; at most the last of them goes beyond the allowance."""
    mechanism = leaderboard(1000)
    state = mechanism.start(SeededNoise(0))
    first, known, number = state.log_error_budget, Known(binary=True, client="attacker"), 0
    state, *_ = asked(mechanism, state, 1.0, 500, 1000, "attacker")
    told = first - state.log_error_budget
    while mechanism.client_refusal(state, known) is None:
        number += 1
        after, outcome = mechanism.fail(state, 0.5, SeededNoise(0))
        state = mechanism.failed(state, after, known)
        assert outcome.source == "failed"
        assert client_of(state, "attacker").released == pytest.approx(told + number * 20.0 * math.log(2.0))
        assert client_of(state, "attacker").released == pytest.approx(first - state.log_error_budget)
    assert number in (1, 2)
    assert first - state.log_error_budget <= 24.0 + 20.0 * math.log(2.0) + 1e-6
    assert client_of(state, "attacker").wrong == 1.0
    assert mechanism.client_refusal(state, Known(binary=True, client="somebody else")) is None
    assert ClaimsState.from_text(state.to_text()) == state


def beginning_at(mechanism: LeaderboardMechanism, state: ClaimsState, client: str, value: float) -> float:
    """Return the guess whose cell begins at a value."""
    known, memory = Known(binary=True, client=client), client_of(state, client)
    reach = mechanism._reach(memory, state, known)
    return math.sin(min(0.5 * math.pi, math.asin(math.sqrt(value)) + reach)) ** 2 - memory.shift


def session(seed: int, n: int, clients: int) -> tuple[bool, bool]:
    """Clients who share all answers learn labels that are fair coins; return whether a last claim is false.

    Then the same for a guard in which each client's risk falls with his own answers only.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    mechanism = leaderboard(n)
    state = mechanism.start(SeededNoise(seed))
    votes = np.zeros(n)
    for client in map(str, range(clients)):
        for _ in range(16):
            guess = beginning_at(mechanism, state, client, 0.5)
            if (
                not 0.0 <= guess <= 1.0
                or mechanism.client_refusal(state, Known(binary=True, client=client)) is not None
            ):
                break
            predicted = rng.integers(0, 2, n)
            state, _, source = asked(mechanism, state, guess, int((predicted == labels).sum()), n, client)
            votes += (predicted - 0.5) * (1.0 if source == "train" else -1.0)
    right = int(((votes > 0) == labels).sum())
    alone = leaderboard(n, confidence=1.0 - BETA / (clients + 1))
    false = []
    for one, before in ((mechanism, state), (alone, alone.start(SeededNoise(0)))):
        guess = beginning_at(one, before, "last", (right - 1) / n)
        low, high = asked(one, before, min(guess, 1.0), right, n, "last")[1]
        false.append(not low <= 0.5 <= high)
    return false[0], false[1]


@pytest.mark.statistical
@sizes("sessions", 24, 100)
def test_clients_who_share_their_answers_break_shares_of_their_own_and_not_the_common_one(sessions: int) -> None:
    found = [session(seed, 100, 40) for seed in range(sessions)]
    limit = binom.isf(RATE, sessions, BETA)
    assert sum(false for false, _ in found) <= limit
    assert sum(alone for _, alone in found) > limit


def test_what_a_state_keeps_is_no_text_of_a_client() -> None:
    mechanism = leaderboard(500)
    state, *_ = asked(mechanism, mechanism.start(SeededNoise(0)), 0.9, 300, 500, "Zoë <script> x\ny")
    assert "Zo" not in state.to_text()
    assert all(line.isascii() for line in state.to_text().split("\n"))
    assert "y" not in state.to_text().split("\n")
    assert ClaimsState.from_text(state.to_text()) == state


def test_groups_count_as_few_records_and_parts_as_their_own() -> None:
    plain, grouped = (leaderboard(2000, **more) for more in ({}, {"effective": 500.0, "inflation": 4.0}))
    widths = [one.first_half_width(0.8) for one in (plain, grouped)]
    assert 1.8 < widths[1] / widths[0] < 2.5
    known = Known(binary=True, difference=True, part=Part(200, None, 200.0))
    state = plain.start(SeededNoise(0))
    values = plain.read(np.arange(200) < 150, 200, (0, 1), "values", known)
    after, outcome = plain.step(state, 0.75, values, SeededNoise(0))
    assert outcome.interval is not None
    assert outcome.interval[0] > 0.5
    assert client_of(after, "").scored == 0.0  # a difference says nothing about scores


def test_what_goes_with_no_allowance_is_refused() -> None:
    for wrong in ({"noise": 0.05}, {"noise": 0.0, "max_half_width": 0.1}, {"noise": 0.0, "final_check": True}):
        with pytest.raises(InputError, match=r"^allowance must be"):
            ClaimsParameters(allowance=24.0, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^about must be"):
        leaderboard(10).paired_counts(None, BINARY)  # type: ignore[arg-type]
    mechanism = leaderboard(100)
    spent = replace(mechanism.start(SeededNoise(0)), log_error_budget=-2e9)
    with pytest.raises(BudgetExhausted):
        asked(mechanism, spent, 0.5, 50, 100)
