"""The outcomes of a score query: what each leaves of the risk, that every search ends, and what is shown."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.data.values import record_rounding
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters
from thresholdout.mechanisms.claims.interval import UNITS, BetTest, Claim, ClaimOutcome
from thresholdout.mechanisms.claims.mechanism import _rounded
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, Window, first_window, search
from thresholdout.noise.sources import SeededNoise


@for_each("log_error_budget", [-0.1, -3.0, -1e3, -1e6, -1e12])
@for_each("pad", [1, 7])
def test_what_outcomes_leave_adds_up_to_at_most_the_risk(log_error_budget: float, pad: int) -> None:
    """What a direction leaves is read off the level of the claim after it; in many digits."""
    for share in (0.5, 1 / 3, 0.1, 0.0123, 1e-5):
        levels: dict[str, list[float]] = {}
        for direction in ("above", "below"):
            seen = levels[direction] = []

            def ask(
                lo: int, hi: int, level: float, seen: list[float] = seen, direction: str = direction
            ) -> ClaimOutcome:
                seen.append(level)
                return "confirmed" if len(seen) > 1 else "above" if direction == "above" else "below"

            search(Window(40, 60, share, 2.0), 100, log_error_budget, ask, pad)
        assert levels["above"][0] == levels["below"][0]
        with mp.workdps(60):
            again = mp.log1p(-mp.mpf(0.15) - FAILURE_SHARE)
            total = mp.exp(mp.mpf(levels["above"][0]) - log_error_budget) + FAILURE_SHARE
            total += sum(mp.exp(mp.mpf(seen[1]) - again - log_error_budget) for seen in levels.values())
            assert total <= 1
            assert total >= 0.97 if log_error_budget < -1e9 else total > 1 - 1e-5


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 1000),
    st.floats(-100, 1100),
    st.floats(1e-3, 300),
    st.integers(0, 40),
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 40.0),
)
def test_every_search_ends(value: int, mean: float, deviation: float, pad: int, seed: int, loud: float) -> None:
    """Whatever the noise says, and however wrong it was before: at most 49 outcomes and a few confirmed claims."""
    draw, asked = random.Random(seed), [0]

    def ask(lo: int, hi: int, level: float) -> ClaimOutcome:
        asked[0] += 1
        assert asked[0] < 400
        if value + draw.gauss(0, loud) > hi:
            return "above"
        return "below" if value + draw.gauss(0, loud) < lo else "confirmed"

    found = search(first_window(mean, deviation, 1000, 5, None), 1000, -3.0, ask, pad)
    assert found.outcomes <= 48
    assert 0 <= found.lo <= found.hi <= 1000


def test_a_search_that_noise_has_misled_comes_back() -> None:
    """The value is above everything that an early outcome left, and the range opens again."""
    first: list[ClaimOutcome] = ["above", "below"]

    def ask(lo: int, hi: int, level: float) -> ClaimOutcome:
        if first:
            return first.pop(0)
        return "above" if hi < 700 else "below" if lo > 700 else "confirmed"

    found = search(Window(480, 500, 0.1, 10.0), 1000, -3.0, ask, 2)
    assert found.lo <= 700 <= found.hi
    assert found.outcomes < 20


def test_exact_directions_find_every_value() -> None:
    for value in range(101):

        def ask(lo: int, hi: int, level: float, value: int = value) -> ClaimOutcome:
            return "above" if value > hi else "below" if value < lo else "confirmed"

        for mean in (-3.0, 40.0, 103.0):
            found = search(first_window(mean, 2.0, 100, 0, None), 100, -3.0, ask, None)
            assert found.lo <= value <= found.hi


@for_each("n", [1, 2])
@for_each("values", ["equal", "ones"])
def test_holdouts_of_one_record_are_answered(n: int, values: str) -> None:
    noise = SeededNoise(0)
    mechanism = ClaimsMechanism(ClaimsParameters(), n)
    state = mechanism.start(noise)
    for _ in range(20):
        reading = mechanism.read([0.5 if values == "equal" else 1.0] * n, n, (0, 1), "values", Known(variance=0.0))
        state, outcome = mechanism.step(state, 0.5, reading, noise)
        assert outcome.interval is not None


@for_each("log_level", [-10.0, -100.0, -1000.0])
def test_bets_behind_noisy_edges_can_be_won_at_every_level(log_level: float) -> None:
    n, scale = 10_000, 2.0**-16
    values = np.random.default_rng(0).beta(40, 2, n)
    claim: Claim = BetTest(1000, values, float(values.var()))
    lo, hi = math.floor(1000 * values.mean()) - 1, math.ceil(1000 * values.mean()) + 1
    scales = (scale, 2 * scale)
    failures = 0
    while claim.outcome(lo, hi, log_level, scales, (0, 0, 0)) != "confirmed":
        claim, failures = claim.wider(), failures + 1
    assert failures <= 8
    low, high = claim.interval(lo, hi, log_level, scales)
    assert high - low < 0.5


def test_intervals_are_about_the_values_as_they_were_given() -> None:
    """Values are rounded to a grid, all in the same direction; the interval of their mean contains what that moves."""
    n = 1 << 14
    value = 0.5 + 2.0**-40  # rounded down by half a step of the grid
    noise, known = SeededNoise(0), Known(variance=0.0)
    mechanism = ClaimsMechanism(ClaimsParameters(noise=0.0, effective=1e15), n)
    state = mechanism.start(noise)
    reading = mechanism.read([value] * n, n, (0, 1), "values", known)
    _, outcome = mechanism.step(state, 0.5, reading, noise)
    assert outcome.interval is not None
    assert Fraction(outcome.interval[0]) <= Fraction(value) <= Fraction(outcome.interval[1])
    whole = mechanism._claim(mechanism._predict(state, 0.5, known)[0], 0.0, reading, noise)
    assert _rounded(0.5, 0.5, n) == (0.5 - record_rounding(n), 0.5 + record_rounding(n))
    assert whole.steps > 0


def test_three_other_outcomes_share_what_is_set_aside() -> None:
    """A claim that is too narrow is made again, and each of three outcomes leaves a third of the share."""
    asked: list[tuple[int, int, float]] = []

    def ask(lo: int, hi: int, log_level: float) -> ClaimOutcome:
        asked.append((lo, hi, log_level))
        return "wide" if len(asked) == 1 else "confirmed"

    window = Window(40, 60, 0.3, 5.0)
    found = search(window, 100, math.log(0.1), ask, 1, 3)
    assert asked[0][:2] == asked[1][:2] == (found.lo, found.hi)
    assert math.exp(asked[0][2]) == pytest.approx(0.07, rel=1e-5)
    assert math.exp(asked[1][2]) == pytest.approx(0.01 * 0.85, rel=1e-5)
    assert found.outcomes == 1


def test_a_mean_inside_of_a_claim_that_is_too_narrow_for_its_variance_is_said_so() -> None:
    """Ten times the expected variance: both bets are lost though the mean is in the middle."""
    values = np.repeat([0.0, 0.5, 1.0], [150, 700, 150])
    claim = BetTest(1000, values, 0.0075)
    assert claim.outcome(495, 505, -4.0, (), (0, 0, 0)) == "wide"
    assert claim.outcome(515, 525, -4.0, (), (0, 0, 0)) == "below"
    assert claim.outcome(475, 485, -4.0, (), (0, 0, 0)) == "above"
    # no noise says that the mean is beyond an end of the range
    assert claim.outcome(500, 1000, -4.0, (), (0, UNITS, 0)) == "wide"
    assert claim.outcome(0, 500, -4.0, (), (0, 0, UNITS)) == "wide"
    wider = claim.wider().wider().wider().wider().wider()
    assert wider.outcome(495, 505, -4.0, (), (0, 0, 0)) == "confirmed"


def test_a_value_between_the_ends_of_a_declared_binary_query_changes_no_claim() -> None:
    """It becomes a coin: what is claimed and how is decided before, and the count differs by at most the coins."""
    mechanism, n = ClaimsMechanism(ClaimsParameters(noise=0.0), 200), 200
    state = mechanism.start(SeededNoise(0))
    whole = np.repeat([1.0, 0.0], [150, 50])
    mixed = np.where(np.arange(n) % 10 == 0, 0.5, whole)
    found = set()
    for values in (whole, mixed):
        for seed in range(20):
            reading = mechanism.read(values, n, (0.0, 1.0), "values", Known(binary=True))
            _, outcome = mechanism.step(state, 0.75, reading, SeededNoise(seed))
            found.add((outcome.interval, outcome.log_error_budget))
    assert len(found) == 1  # the first claim, confirmed whatever the coins are


def test_where_one_direction_is_impossible_the_other_outcomes_share_all() -> None:
    """A claim up to the end of the range, by a test with three other outcomes and no noise: *above* can't be."""
    levels: list[float] = []

    def ask(lo: int, hi: int, log_level: float) -> ClaimOutcome:
        levels.append(math.exp(log_level))
        return "wide" if len(levels) == 1 else "confirmed"

    search(Window(40, 100, 0.3, 5.0), 100, math.log(0.1), ask, None, 3)
    assert levels[1] == pytest.approx(0.1 * 0.15 * 0.85, rel=1e-5)
