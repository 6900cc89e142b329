"""Claims about a win rate: levels by exact sums, secrets that stay so, and what is said of two models."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import beta, binom

from tests.cases import for_each
from thresholdout import SeededNoise
from thresholdout.errors import InputError
from thresholdout.mechanisms import ClaimsMechanism, ClaimsParameters, Known, Outcome
from thresholdout.mechanisms.base import PairedCounts
from thresholdout.mechanisms.claims import ClaimsState
from thresholdout.mechanisms.claims.interval import ClaimOutcome, Noise, Scales
from thresholdout.mechanisms.claims.query_claims import WinsTest
from thresholdout.mechanisms.claims.score import FAILURE_SHARE

N = 2000
NOISE = SeededNoise(0)


def mechanism(n: int = N, confidence: float = 0.95) -> ClaimsMechanism:
    return ClaimsMechanism(ClaimsParameters(confidence=confidence, noise=0.0), n)


def compare(
    claims: ClaimsMechanism, state: ClaimsState, train: PairedCounts, wins: int, losses: int
) -> tuple[ClaimsState, Outcome]:
    known = Known(difference=True, paired_counts=train)
    return claims.step(state, train.share, claims.paired_counts(PairedCounts(wins, losses, claims._n), known), NOISE)


@for_each("level", [0.4, 0.05, 1e-4])
@for_each("expected", [3.0, 8.5, 40.0])
def test_false_claims_are_confirmed_with_at_most_the_level(level: float, expected: float) -> None:
    """For every number of records that differ, known or not, and every share outside of the claim: exact sums."""
    for number in (0, 1, 2, 5, 17):
        for lo, hi in ((0, 50), (30, 70), (55, 60), (50, 100), (90, 100)):
            tests = [WinsTest(100, PairedCounts(wins, number - wins, N), expected) for wins in range(number + 1)]
            low, high = tests[0].interval(lo, hi, math.log(level), ())
            confirmed = [test.outcome(lo, hi, math.log(level), (), (0, 0, 0)) == "confirmed" for test in tests]
            for share in (low * 0.999, 0.5 * low, high + 0.001 * (1.0 - high), 0.5 * (1.0 + high)):
                if not low <= share <= high:
                    assert binom.pmf(np.arange(number + 1), number, share)[confirmed].sum() <= level * (1 + 1e-9)


def test_a_claim_that_is_as_wide_as_its_tails_allow_uses_the_level_up() -> None:
    """Eight of eight at a lower end p: the probability p^8 is the level where K is what was expected."""
    level = 0.01
    test = WinsTest(100, PairedCounts(8, 0, N), 8.0)
    low, _ = test.interval(100, 100, math.log(level), ())
    assert low == pytest.approx(level ** (1 / 8))
    assert WinsTest(100, PairedCounts(8, 0, N), 7.99).outcome(100, 100, math.log(level), (), (0, 0, 0)) == "confirmed"


def test_what_is_shown_depends_on_outcomes_only() -> None:
    """Holdouts with other numbers of records that differ, and the same outcomes, get the same answer and state."""
    claims, train = mechanism(), PairedCounts(120, 80, 4000)
    start = claims.start(NOISE)
    found = {compare(claims, start, train, *counts) for counts in ((60, 42), (59, 39), (72, 51), (47, 33))}
    assert len(found) == 1
    assert next(iter(found))[1].source == "train"


def test_outcomes_pay_for_themselves() -> None:
    """Whatever the training part says, the risk is at least divided by three for each outcome."""
    claims = mechanism()
    start = claims.start(NOISE)
    for wins in (0, 3, 40, 70, 100):
        state, said = compare(claims, start, PairedCounts(100, 100, 4000), wins, 100 - wins)
        assert state.log_error_budget <= start.log_error_budget + math.log1p(
            -FAILURE_SHARE
        ) - state.outcomes * math.log(3.0)
        assert said.interval is not None
        assert said.interval[0] <= said.value <= said.interval[1]


def test_no_record_that_differs_says_nothing_and_breaks_nothing() -> None:
    claims = mechanism()
    for train, wins in ((PairedCounts(0, 0, 4000), 0), (PairedCounts(0, 0, 4000), 90), (PairedCounts(90, 90, 4000), 0)):
        _, said = compare(claims, claims.start(NOISE), train, wins, wins)
        assert said.interval is not None
        assert said.interval[0] < 0.5 < said.interval[1]


def test_a_list_states_exact_limits_rounded_outwards() -> None:
    """The Clopper-Pearson limits at the level of a list, by the quantiles of the beta law."""
    claims = mechanism()
    known = Known(difference=True, paired_counts=PairedCounts(120, 80, 4000))
    counts = [(60, 42), (10, 0), (0, 7), (0, 0)]
    asked = [(0.6, claims.paired_counts(PairedCounts(wins, losses, N), known)) for wins, losses in counts]
    state, outcomes = claims.step_all(claims.start(NOISE), asked, NOISE, 0.2)
    level = 0.05 * (1 - 0.2 - 2 * FAILURE_SHARE) / (2 * len(counts))
    for (wins, losses), outcome in zip(counts, outcomes, strict=True):
        low = beta.ppf(level, wins, losses + 1) if wins else 0.0
        high = beta.ppf(1 - level, wins + 1, losses) if losses else 1.0
        assert outcome.interval is not None
        assert low - 1 / 64 < outcome.interval[0] <= low + 1e-9
        assert high - 1e-9 <= outcome.interval[1] < high + 1 / 64
    assert state.log_error_budget < math.log(0.05 * 0.2) - 4 * math.log(4)
    assert state.memory == claims.start(NOISE).memory  # win rates say nothing about scores


@for_each("counts", [(-1, 2, 10), (6, 5, 10), (0, 0, 0)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(InputError):
        PairedCounts(*counts)
    assert PairedCounts(6, 4, 10).records == 10


def test_a_test_that_confirms_by_the_expected_count_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin compares the win rate with the edges, as if there were as many records as expected."""

    def blind(self: WinsTest, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        wins, losses = self._holdout.wins, self._holdout.losses
        share = wins / max(1, wins + losses) * self.steps
        return "above" if share > hi else "below" if share < lo else "confirmed"

    found = _attack(WinsTest.outcome)
    assert found <= binom.isf(1e-9, 2000, 0.1)
    assert _attack(blind) > binom.isf(1e-9, 2000, 0.1)


def _attack(outcome: Callable[..., ClaimOutcome]) -> int:
    """One claim for each session, with far fewer records that differ than expected, and a share just outside of it."""
    rng, found = np.random.default_rng(6), 0
    edge, level = (60, 100), math.log(0.1)
    low, _ = WinsTest(100, PairedCounts(0, 0, N), 100.0).interval(*edge, level, ())
    for _ in range(2000):
        number = int(rng.binomial(400, 0.02))
        wins = int(rng.binomial(number, 0.999 * low))
        test = WinsTest(100, PairedCounts(wins, number - wins, N), 100.0)
        found += outcome(test, *edge, level, (), (0, 0, 0)) == "confirmed"
    return found
