"""Attackers with known truth against `Claims`: how many sessions have a false interval.

A session is broken where any of its intervals misses its truth. More than ``binom.isf(1e-9, sessions, beta)`` broken
ones are rejected: a valid mechanism is rejected with probability at most 1e-9. The attack that places truths just
outside of claims has to come near beta, so that a mechanism that is a little wrong is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

import thresholdout.mechanisms.claims.mechanism as mechanism_module
from tests.sizes import corners
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims import Claims, ClaimsParameters, ClaimsState
from thresholdout.mechanisms.claims.guess import Memory
from thresholdout.noise.sources import SeededNoise

BETA = 0.1
RATE = 1e-9


@dataclass
class Session:
    """One holdout of independent uniform numbers, from which questions with any truth are made, and the mechanism."""

    mechanism: Claims
    n: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.noise = SeededNoise(int(self.rng.integers(2**62)))
        self.state = self.mechanism.start(self.noise)
        self.broken = False

    def ask(self, values: NDArray[np.float64], train: float, truth: float, known: Known) -> tuple[float, float]:
        """Ask about values of which the truth is known to the test, and note whether the interval misses it."""
        reading = self.mechanism.read(values, self.n, (0, 1), "values", known)
        self.state, outcome = self.mechanism.step(self.state, min(1.0, max(0.0, train)), reading, self.noise)
        assert outcome.interval is not None
        low, high = outcome.interval
        self.broken |= not low <= truth <= high
        return low, high

    def ask_list(
        self, asked: list[tuple[float, NDArray[np.float64]]], truths: list[float], known: Known, keep: float, best: bool
    ) -> list[tuple[float, float]]:
        """Ask a list, or for its best one, and note whether an interval misses its truth, or a truth is above it."""
        readings = [(train, self.mechanism.read(values, self.n, (0, 1), "values", known)) for train, values in asked]
        if best:
            self.state, outcome, place = self.mechanism.step_best(self.state, readings, self.noise, keep, True)
            assert outcome.interval is not None
            low, high = outcome.interval
            self.broken |= not (low <= truths[place] and truths[place] <= high)
            self.broken |= known.binary and max(truths) > high
            return [outcome.interval]
        self.state, outcomes = self.mechanism.step_all(self.state, readings, self.noise, keep)
        intervals = [outcome.interval for outcome in outcomes if outcome.interval is not None]
        for (low, high), truth in zip(intervals, truths, strict=True):
            self.broken |= not low <= truth <= high
        return intervals

    def claimed(self, train: float, known: Known) -> tuple[float, float]:
        """Return the interval of the first claim: public, and what an attacker computes before asking."""
        return self.mechanism.first_claim(self.state, train, known).interval


def _just_outside(session: Session, kind: str) -> None:
    """Truths a hair outside of what would be claimed, on either side, again and again."""
    n = session.n
    for turn in range(12):
        train = 0.8 if turn % 2 else 0.3
        shape = _SHAPES[kind]
        known = shape.known(train)
        low, high = session.claimed(train, known)
        truth = low - 1e-6 if turn % 4 < 2 and low > 0.01 else high + 1e-6
        if not 0.0 < truth < 1.0:
            continue
        session.ask(shape.draw(session.rng, n, truth), train, truth, known)
        if session.broken:
            return


def _harvested(session: Session, kind: str) -> None:
    """Useless features, kept where the holdout answered higher, then their majority with a flattering value."""
    n, shape = session.n, _SHAPES[kind]
    known = shape.known(0.5)
    kept = []
    for _ in range(25):
        values = shape.draw(session.rng, n, 0.5)
        low, high = session.ask(values, 0.5, 0.5, known)
        if low + high > 1.0:
            kept.append(values)
    for train in (0.5, 0.7):
        if kept:
            majority = (np.mean(kept, axis=0) > 0.5).astype(float)
            session.ask(majority, train, 0.5, Known(binary=known.binary))  # useless features: a coin is a coin


def _misleading(session: Session, kind: str) -> None:
    """Training values that have nothing to do with the holdout."""
    shape = _SHAPES[kind]
    for _ in range(15):
        truth = float(session.rng.choice([0.02, 0.5, 0.9, 0.99]))
        train = float(session.rng.random())
        session.ask(shape.draw(session.rng, session.n, truth), train, truth, shape.known(train))


def _repeated(session: Session, kind: str) -> None:
    """One question forty times, by its last answer's end."""
    shape, truth = _SHAPES[kind], 0.7
    values, train = shape.draw(session.rng, session.n, truth), 0.72
    for turn in range(40):
        low, high = session.ask(values, train, truth, shape.known(train))
        train = (low, high, 0.5 * (low + high))[turn % 3]


def _listed(session: Session, kind: str) -> None:
    """Lists of useless features, then the majority of those that did well, as a list and as the best of one."""
    n, shape = session.n, _SHAPES[kind]
    known, kept = shape.known(0.5), []
    for turn in range(4):
        features = [shape.draw(session.rng, n, 0.5) for _ in range(6)]
        intervals = session.ask_list([(0.5, values) for values in features], [0.5] * 6, known, 0.3, best=False)
        kept += [values for values, (low, high) in zip(features, intervals, strict=True) if low + high > 1.0]
        if kept:
            majority = (np.mean(kept, axis=0) > 0.5).astype(float)
            coin = Known(binary=known.binary)
            session.ask_list([(0.5, majority), (0.7, 1 - majority)], [0.5, 0.5], coin, 0.3, best=turn % 2 > 0)
            session.ask(majority, 0.7, 0.5, coin)


def _best_of_many(session: Session, kind: str) -> None:
    """The luckiest of many: all truths are the same, so the best value is always too large."""
    shape, truth = _SHAPES[kind], 0.5
    for _ in range(3):
        asked = [(truth, shape.draw(session.rng, session.n, truth)) for _ in range(20)]
        session.ask_list(asked, [truth] * 20, shape.known(truth), 0.3, best=True)


@dataclass(frozen=True)
class Shape:
    """How values with a truth are drawn, and what is known of them before."""

    draw: Callable[[np.random.Generator, int, float], NDArray[np.float64]]
    variance: Callable[[float], float | None]
    binary: bool
    groups: int = 1
    inflation: float | None = None

    def known(self, train: float) -> Known:
        return Known(variance=self.variance(train), binary=self.binary)

    def mechanism(self, n: int, noise: float) -> Claims:
        effective = n / self.groups if self.groups > 1 else None
        inflation = float(self.groups) if self.inflation is None else self.inflation
        parameters = ClaimsParameters(confidence=1 - BETA, noise=noise, effective=effective, inflation=inflation)
        return Claims(parameters, n)


def _coins(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    return (rng.random(n) < truth).astype(float)


def _between(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    """Two values, a third of the way to the ends: a small variance."""
    reach = 0.3 * min(truth, 1 - truth)
    return truth + reach * np.where(rng.random(n) < 0.5, -1.0, 1.0)


def _skewed(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    """Mostly one value, seldom the far end: what a bet on a small variance fears."""
    rare = 0.02
    if truth < rare:
        return _coins(rng, n, truth)
    return np.where(rng.random(n) < rare, 1.0, (truth - rare) / (1 - rare))


def _differences(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    """Two models that differ on few records: mostly a half, at times 0 or 1."""
    share = max(0.06, 2 * abs(truth - 0.5))
    wins = 0.5 + (truth - 0.5) / share
    return np.where(rng.random(n) < share, (rng.random(n) < wins).astype(float), 0.5)


def _grouped(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    return np.repeat((rng.random(n // 3) < truth).astype(float), 3)


_SHAPES = {
    "binary": Shape(_coins, lambda train: None, True),
    "declared binary": Shape(_between, lambda train: None, True),
    "bets": Shape(_between, lambda train: 0.09 * min(train, 1 - train) ** 2, False),
    "bets on a variance that is wrong": Shape(_skewed, lambda train: 1e-4, False),
    "comparisons": Shape(_differences, lambda train: 0.015, False),
    "groups": Shape(_grouped, lambda train: None, True, groups=3),
    "hoeffding": Shape(_grouped, lambda train: None, True, inflation=3.0),
}
_ATTACKS = {
    "just outside": _just_outside,
    "harvested": _harvested,
    "misleading": _misleading,
    "repeated": _repeated,
    "listed": _listed,
    "best of many": _best_of_many,
}


def _broken(attack: str, kind: str, noise: float, sessions: int, n: int = 60) -> int:
    mechanism = _SHAPES[kind].mechanism(n, noise)
    count = 0
    for seed in range(sessions):
        session = Session(mechanism, n, np.random.default_rng([seed, len(attack), len(kind)]))
        _ATTACKS[attack](session, kind)
        count += session.broken
    return count


@pytest.mark.parametrize(
    ("attack", "kind", "noise"),
    [
        ("just outside", "binary", 0.05),
        ("just outside", "comparisons", 1.0),
        ("just outside", "groups", 0.0),
        ("misleading", "bets on a variance that is wrong", 0.05),
        ("misleading", "declared binary", 0.0),
        ("misleading", "hoeffding", 1.0),
        ("repeated", "bets", 0.05),
        ("repeated", "comparisons", 0.0),
        ("repeated", "binary", 1.0),
    ],
)
def test_no_attack_breaks_more_sessions_than_promised(attack: str, kind: str, noise: float) -> None:
    """Every attack, every kind and every noise; all of them together are in the slow test of many sessions."""
    sessions = 120
    assert _broken(attack, kind, noise, sessions) <= binom.isf(RATE, sessions, BETA)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("kind", ["binary", "declared binary"])
def test_harvested_failures_break_no_more_sessions_than_promised(kind: str, noise: float) -> None:
    sessions = 120
    assert _broken("harvested", kind, noise, sessions) <= binom.isf(RATE, sessions, BETA)


@pytest.mark.parametrize(("attack", "kind"), [("listed", "binary"), ("listed", "bets"), ("best of many", "binary")])
def test_lists_break_no_more_sessions_than_promised(attack: str, kind: str) -> None:
    sessions = 120
    assert _broken(attack, kind, 0.05, sessions) <= binom.isf(RATE, sessions, BETA)


@pytest.mark.parametrize("attack", ["listed", "best of many"])
def test_lists_at_the_level_of_one_question_are_rejected(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The side that must fail: no level is shared over a list, and all of the risk is left."""
    monkeypatch.setattr(mechanism_module, "list_level", lambda risk, k, keep: risk - math.log(2.0))
    monkeypatch.setattr(mechanism_module, "after_list", lambda risk, keep, told: risk)
    sessions = 120
    assert _broken(attack, "binary", 0.05, sessions) > binom.isf(RATE, sessions, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(_SHAPES))
@pytest.mark.parametrize("attack", ["listed", "best of many"])
def test_lists_break_no_more_of_many_sessions(attack: str, kind: str) -> None:
    sessions = 1000
    assert _broken(attack, kind, 0.05, sessions) <= binom.isf(RATE, sessions, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("kind", list(_SHAPES))
@pytest.mark.parametrize("attack", ["just outside", "misleading", "repeated"])
def test_no_attack_breaks_more_of_many_sessions(attack: str, kind: str, noise: float) -> None:
    sessions = 2000
    assert _broken(attack, kind, noise, sessions) <= binom.isf(RATE, sessions, BETA)


@pytest.mark.parametrize("noise", corners([0.0, 0.05], 0))
def test_truths_just_outside_of_claims_come_near_beta(noise: float) -> None:
    sessions = 1000
    broken = _broken("just outside", "binary", noise, sessions, n=400)
    assert binom.ppf(RATE, sessions, 0.6 * BETA) <= broken <= binom.isf(RATE, sessions, BETA)


@pytest.mark.slow
def test_without_noise_truths_just_outside_of_claims_reach_most_of_beta() -> None:
    """What is left unused is what the letters keep, and whole counts."""
    sessions = 20_000
    broken = _broken("just outside", "binary", 0.0, sessions, n=400)
    assert binom.ppf(RATE, sessions, 0.85 * BETA) <= broken <= binom.isf(RATE, sessions, BETA)


def test_a_mechanism_with_three_times_the_risk_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The side that must fail."""
    start = Claims.start

    def generous(self: Claims, noise: SeededNoise) -> ClaimsState:
        state = start(self, noise)
        return ClaimsState.from_text(state.to_text().replace(state.log_risk.hex(), math.log(3 * BETA).hex()))

    monkeypatch.setattr(mechanism_module.Claims, "start", generous)
    sessions = 1000
    assert _broken("just outside", "binary", 0.0, sessions, n=400) > binom.isf(RATE, sessions, BETA)


class TestWhatIsShown:
    """Refusals, widths and representations are public: they do not depend on the holdout's values."""

    @pytest.mark.parametrize("noise", [0.0, 0.05])
    @pytest.mark.parametrize("binary", [True, False])
    def test_a_refused_width_does_not_depend_on_the_holdout(self, noise: float, binary: bool) -> None:
        n = 50
        for most in (0.01, 0.1, 0.2, 0.3):
            mechanism = Claims(ClaimsParameters(at_most=most, noise=noise), n)
            seen = set()
            for count in (0, 10, 25, 49, 50):
                source = SeededNoise(1)
                state = mechanism.start(source)
                values = np.arange(n) < count
                reading = mechanism.read(values, n, (0, 1), "values", Known(variance=0.2, binary=binary))
                try:
                    mechanism.step(state, 0.5, reading, source)
                    seen.add("answered")
                except BudgetExhausted as refused:
                    seen.add(str(refused))
            assert len(seen) == 1

    def test_what_is_answered_is_a_function_of_the_letters(self) -> None:
        """Without noise: all counts with the same letters get the same answer, and the same risk is left."""
        n = 40
        mechanism, source = Claims(ClaimsParameters(noise=0.0), n), SeededNoise(0)
        answers: dict[tuple[float, ...], list[int]] = {}
        for count in range(n + 1):
            reading = mechanism.read(np.arange(n) < count, n, (0, 1), "values", Known(binary=True))
            state, outcome = mechanism.step(mechanism.start(source), 0.9, reading, source)
            assert outcome.interval is not None
            answers.setdefault((outcome.value, *outcome.interval, state.log_risk), []).append(count)
        for counts in answers.values():
            assert counts == list(range(counts[0], counts[-1] + 1))
        assert len(answers) < 14

    def test_representations_show_nothing_secret(self) -> None:
        source = SeededNoise(5)
        mechanism = Claims(ClaimsParameters(noise=0.1), 1000)
        state = mechanism.start(source)
        values = np.arange(1000) < 731
        reading = mechanism.read(values, 1000, (0, 1), "values", Known(binary=True))
        made, variance = mechanism._forecast(state, 0.7, reading.known)
        claim = mechanism._claim(made, variance, reading, source)
        shown = " ".join(map(repr, (state, reading, claim, mechanism)))
        assert str(state.edge) not in shown
        assert "731" not in shown
        with pytest.raises(InputError) as refused:
            mechanism.step(state, 1.5, reading, source)
        assert "731" not in str(refused.value)

    @settings(max_examples=200, deadline=None)
    @given(
        st.floats(-1e12, -1e-300),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.integers(-30, 1 << 20),
        st.integers(-(2**62), 2**62),
        st.lists(st.floats(-1e300, 1e300), min_size=7, max_size=7),
    )
    def test_states_survive_being_text(
        self, risk: float, asked: int, hits: int, letters: int, exponent: int, edge: int, memory: list[float]
    ) -> None:
        asked, letters = hits + asked, hits + letters
        state = ClaimsState(risk, asked, hits, letters, exponent, edge, Memory(*memory))
        assert ClaimsState.from_text(state.to_text()) == state

    @pytest.mark.parametrize(
        "text", ["", "claims/1", "claims/2 0 0 0 0 0", "claims/1 1 2 3 0 0 -0x1p0 0 0 0 0 0 0 0", "claims/1 x"]
    )
    def test_other_texts_are_refused(self, text: str) -> None:
        with pytest.raises(InputError, match="claims/1"):
            ClaimsState.from_text(text)
