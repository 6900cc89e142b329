"""Attackers with known truth against single queries to `ClaimsMechanism`: how many sessions have a false interval.

More than ``binom.isf(1e-9, sessions, beta)`` broken sessions are rejected: a valid mechanism is rejected with
probability at most 1e-9. The attack that places truths just outside of claims has to come near beta, so that a
mechanism that is a little wrong is seen.
"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import thresholdout.mechanisms.claims.mechanism as mechanism_module
from tests.sizes import corners
from tests.statistical.claims_attackers import BETA, broken_sessions
from tests.statistical.rejection import RATE, most_broken, too_many
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters, ClaimsState
from thresholdout.mechanisms.claims.predictor import PredictorState
from thresholdout.noise.sources import SeededNoise

pytestmark = pytest.mark.statistical


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
    """Every attack, every kind and every noise; all of them together are in `test_claims_many_sessions`."""
    assert not too_many(broken_sessions(attack, kind, noise), 120, BETA)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("kind", ["binary", "declared binary"])
def test_harvested_failures_break_no_more_sessions_than_promised(kind: str, noise: float) -> None:
    assert not too_many(broken_sessions("harvested", kind, noise), 120, BETA)


@pytest.mark.parametrize("noise", corners([0.0, 0.05], 0))
def test_truths_just_outside_of_claims_come_near_beta(noise: float) -> None:
    sessions = 1000
    broken = sum(islice(broken_sessions("just outside", "binary", noise, n=400), sessions))
    assert binom.ppf(RATE, sessions, 0.6 * BETA) <= broken <= most_broken(sessions, BETA)


@pytest.mark.slow
def test_without_noise_truths_just_outside_of_claims_reach_most_of_beta() -> None:
    """What is left unused is what the outcomes keep, and whole counts."""
    sessions = 8000
    broken = sum(islice(broken_sessions("just outside", "binary", 0.0, n=400), sessions))
    assert binom.ppf(RATE, sessions, 0.85 * BETA) <= broken <= most_broken(sessions, BETA)


def test_a_mechanism_with_three_times_the_risk_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The side that must fail."""
    start = ClaimsMechanism.start

    def generous(self: ClaimsMechanism, noise: SeededNoise) -> ClaimsState:
        state = start(self, noise)
        return ClaimsState.from_text(state.to_text().replace(state.log_error_budget.hex(), math.log(3 * BETA).hex()))

    monkeypatch.setattr(mechanism_module.ClaimsMechanism, "start", generous)
    assert too_many(broken_sessions("just outside", "binary", 0.0, n=400), 1000, BETA)


class TestWhatIsShown:
    """Refusals, widths and representations are public: they do not depend on the holdout's values."""

    @pytest.mark.parametrize("noise", [0.0, 0.05])
    @pytest.mark.parametrize("binary", [True, False])
    def test_a_refused_width_does_not_depend_on_the_holdout(self, noise: float, binary: bool) -> None:
        n = 50
        for most in (0.01, 0.1, 0.2, 0.3):
            mechanism = ClaimsMechanism(ClaimsParameters(max_half_width=most, noise=noise), n)
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

    def test_what_is_answered_is_a_function_of_the_outcomes(self) -> None:
        """Without noise: all counts with the same outcomes get the same answer, and the same risk is left."""
        n = 40
        mechanism, source = ClaimsMechanism(ClaimsParameters(noise=0.0), n), SeededNoise(0)
        answers: dict[tuple[float, ...], list[int]] = {}
        for count in range(n + 1):
            reading = mechanism.read(np.arange(n) < count, n, (0, 1), "values", Known(binary=True))
            state, outcome = mechanism.step(mechanism.start(source), 0.9, reading, source)
            assert outcome.interval is not None
            answers.setdefault((outcome.value, *outcome.interval, state.log_error_budget), []).append(count)
        for counts in answers.values():
            assert counts == list(range(counts[0], counts[-1] + 1))
        assert len(answers) < 14

    def test_representations_show_nothing_secret(self) -> None:
        source = SeededNoise(5)
        mechanism = ClaimsMechanism(ClaimsParameters(noise=0.1), 1000)
        state = mechanism.start(source)
        values = np.arange(1000) < 731
        reading = mechanism.read(values, 1000, (0, 1), "values", Known(binary=True))
        made, variance = mechanism._predict(state, 0.7, reading.known)
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
        self, risk: float, asked: int, hits: int, outcomes: int, exponent: int, edge: int, memory: list[float]
    ) -> None:
        asked, outcomes = hits + asked, hits + outcomes
        state = ClaimsState(risk, asked, hits, outcomes, exponent, edge, PredictorState(*memory))
        assert ClaimsState.from_text(state.to_text()) == state

    @pytest.mark.parametrize(
        "text", ["", "claims/1", "claims/2 0 0 0 0 0", "claims/1 1 2 3 0 0 -0x1p0 0 0 0 0 0 0 0", "claims/1 x"]
    )
    def test_other_texts_are_refused(self, text: str) -> None:
        with pytest.raises(InputError, match="claims/1"):
            ClaimsState.from_text(text)
