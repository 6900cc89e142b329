"""Claims about a share of wins: levels by exact sums, secrets that stay so, and what is said of two models."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.interval import Letter, Noise, Scales
from thresholdout.mechanisms.claims.score import RAISED
from thresholdout.mechanisms.claims.wins import Duel, WinsState, WinsTest, compare_wins, settling_records

START = WinsState(math.log(0.05))


@pytest.mark.parametrize("level", [0.4, 0.05, 1e-4])
@pytest.mark.parametrize("expected", [3.0, 8.5, 40.0])
def test_false_claims_are_confirmed_with_at_most_the_level(level: float, expected: float) -> None:
    """For every number of records that differ, known or not, and every share outside of the claim: exact sums."""
    for number in (0, 1, 2, 5, 17):
        for lo, hi in ((0, 50), (30, 70), (55, 60), (50, 100), (90, 100)):
            tests = [WinsTest(100, wins, number - wins, expected) for wins in range(number + 1)]
            low, high = tests[0].interval(lo, hi, math.log(level), ())
            confirmed = [test.letter(lo, hi, math.log(level), (), (0, 0, 0)) == "confirmed" for test in tests]
            for share in (low * 0.999, 0.5 * low, high + 0.001 * (1.0 - high), 0.5 * (1.0 + high)):
                if not low <= share <= high:
                    assert binom.pmf(np.arange(number + 1), number, share)[confirmed].sum() <= level * (1 + 1e-9)


def test_a_claim_that_is_as_wide_as_its_tails_allow_uses_the_level_up() -> None:
    """Eight of eight at a lower end p: the probability p^8 is the level where K is what was expected."""
    level = 0.01
    test = WinsTest(100, 8, 0, 8.0)
    low, _ = test.interval(100, 100, math.log(level), ())
    assert low == pytest.approx(level ** (1 / 8))
    assert WinsTest(100, 8, 0, 7.99).letter(100, 100, math.log(level), (), (0, 0, 0)) == "confirmed"


def test_what_is_shown_depends_on_letters_only() -> None:
    """Holdouts with other numbers of records that differ, and the same letters, get the same answer."""
    train = Duel(120, 80, 4000)
    _, first = compare_wins(START, train, Duel(60, 42, 2000))
    state, second = compare_wins(START, train, Duel(59, 39, 2000))
    assert (first.letters, second.letters) == (0, 0)
    assert first == second
    assert state == compare_wins(START, train, Duel(60, 42, 2000))[0]


def test_letters_pay_for_themselves() -> None:
    """Whatever the training part says, the risk is at least divided by three for each letter."""
    for wins in (0, 3, 40, 70, 100):
        state, said = compare_wins(START, Duel(100, 100, 4000), Duel(wins, 100 - wins, 2000))
        assert state.log_risk <= START.log_risk + math.log1p(-RAISED) - said.letters * math.log(3.0)
        assert said.interval[0] <= said.value <= said.interval[1]


@pytest.mark.parametrize(
    ("train", "holdout", "verdict"),
    [
        (Duel(300, 100, 4000), Duel(150, 50, 2000), "better"),
        (Duel(100, 300, 4000), Duel(50, 150, 2000), "worse"),
        (Duel(100, 100, 4000), Duel(50, 50, 2000), "not settled"),
        (Duel(0, 0, 4000), Duel(0, 0, 2000), "not settled"),
    ],
)
def test_verdicts(train: Duel, holdout: Duel, verdict: str) -> None:
    _, said = compare_wins(START, train, holdout)
    assert said.verdict == verdict
    assert (said.settling is None) == (verdict != "not settled" or train.wins == train.losses)


def test_what_would_settle_it_settles_it() -> None:
    """The verdict of a holdout of that size, with the shares that were foreseen."""
    _, said = compare_wins(START, Duel(110, 90, 4000), Duel(55, 45, 2000))
    assert said.verdict == "not settled"
    assert said.settling is not None
    times = said.settling / 2000
    _, later = compare_wins(
        START,
        Duel(round(110 * times), round(90 * times), said.settling * 2),
        Duel(round(55 * times), round(45 * times), said.settling),
    )
    assert later.verdict == "better"


def test_settling_records_by_hand() -> None:
    """(sqrt(2 * 8) + 3)^2 * 0.05 / 0.01^2."""
    assert settling_records(0.01, 0.05, -8.0) == 24_500
    assert settling_records(0.01, 0.05, -8.0, each=2.0) == 49_000
    assert settling_records(0.0, 0.05, -8.0) is None


@pytest.mark.parametrize("counts", [(-1, 2, 10), (6, 5, 10), (0, 0, 0)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(InputError):
        Duel(*counts)
    assert Duel(6, 4, 10).records == 10


def _missed(rng: np.random.Generator, sessions: int) -> int:
    """Sessions with a false interval: 30 comparisons whose training parts mislead in half of the cases."""
    found = 0
    for _ in range(sessions):
        state, missed = WinsState(math.log(0.1)), False
        for _ in range(30):
            share = rng.uniform(0.2, 0.8)
            number = int(rng.binomial(400, 0.1))
            wins = int(rng.binomial(number, share))
            seen = share if rng.random() < 0.5 else rng.uniform(0.2, 0.8)
            train = int(rng.binomial(80, seen))
            state, said = compare_wins(state, Duel(train, 80 - train, 800), Duel(wins, number - wins, 400))
            missed |= not said.interval[0] <= share <= said.interval[1]
        found += missed
    return found


def test_sessions_with_a_false_interval_are_rare() -> None:
    assert _missed(np.random.default_rng(5), 60) <= binom.isf(1e-9, 60, 0.1)


def test_a_test_that_confirms_by_the_expected_count_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin compares the share of wins with the edges, as if there were as many records as expected."""

    def blind(self: WinsTest, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> Letter:
        share = self._wins / max(1, self._wins + self._losses) * self.steps
        return "above" if share > hi else "below" if share < lo else "confirmed"

    found = _attack(WinsTest.letter)
    assert found <= binom.isf(1e-9, 2000, 0.1)
    assert _attack(blind) > binom.isf(1e-9, 2000, 0.1)


def _attack(letter: Callable[..., Letter]) -> int:
    """One claim for each session, with far fewer records that differ than expected, and a share just outside of it."""
    rng, found = np.random.default_rng(6), 0
    edge, level = (60, 100), math.log(0.1)
    low, _ = WinsTest(100, 0, 0, 100.0).interval(*edge, level, ())
    for _ in range(2000):
        number = int(rng.binomial(400, 0.02))
        wins = int(rng.binomial(number, 0.999 * low))
        found += letter(WinsTest(100, wins, number - wins, 100.0), *edge, level, (), (0, 0, 0)) == "confirmed"
    return found
