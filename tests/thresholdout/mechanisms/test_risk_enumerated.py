"""Theorem B by exact enumeration: all analysts of small depth on small models, against the rule and the program.

The broken twins are what simulation is too weak to see; each must exceed beta here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import thresholdout.mechanisms.claims.mechanism as mechanism
from tests.cases import for_each
from tests.oracles.risk_left import SOUND, Model, Outcomes, Program, Rule
from tests.sizes import corners
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters
from thresholdout.mechanisms.claims.interval import ClaimOutcome
from thresholdout.mechanisms.claims.score import Found, Window, search

_FAIR = Model((0.5, 0.5, 0.5), signed=False)
_MIXED = Model((0.5, 0.25, 0.75), signed=False)
_SMALL_NOISE = ((-1, 0.25), (0, 0.5), (1, 0.25))
_WIDE_NOISE = ((-2, 0.1), (-1, 0.2), (0, 0.4), (1, 0.2), (2, 0.1))
_ABOVE = 1e-9  # of sums of floats


class TestTheRule:
    @pytest.mark.slow
    @for_each("beta", [0.125, 0.25, 0.5])
    @for_each("model", [_FAIR, _MIXED], ids=["one law", "different laws"])
    @for_each("depth", [1, 2, 3])
    def test_no_analyst_exceeds_beta(self, model: Model, beta: float, depth: int) -> None:
        assert Outcomes(model, SOUND).worst(beta, depth) <= beta + _ABOVE

    @pytest.mark.slow
    @for_each("beta", [0.125, 0.25, 0.5])
    def test_the_bound_is_attained(self, beta: float) -> None:
        assert Outcomes(_FAIR, SOUND).worst(beta, 3) == pytest.approx(beta, abs=1e-12)

    @pytest.mark.slow
    @for_each("noise", [_SMALL_NOISE, _WIDE_NOISE], ids=["small", "wide"])
    @for_each("expectations", [(0.5, 0.5, 0.5), (0.5, 0.25, 0.75)])
    @for_each("beta", [0.125, 0.25])
    def test_no_analyst_exceeds_beta_behind_an_edge_with_secret_noise(
        self, noise: tuple[tuple[int, float], ...], expectations: tuple[float, ...], beta: float
    ) -> None:
        """The same noise at all nodes, never drawn anew."""
        model = Model(expectations, signed=False, noise=noise)
        assert Outcomes(model, SOUND).worst(beta, 2) <= beta + _ABOVE
        assert Outcomes(model, replace(SOUND, level="without noise")).worst(beta, 2) > beta + 0.1

    @for_each("expectations", [(0.5, 0.0), (0.8, 0.0, 0.1), (0.9, 0.0, 0.0)])
    def test_levels_of_one_law_exceed_beta_where_laws_differ(self, expectations: tuple[float, ...]) -> None:
        """At least one 1: of several records with different laws more often than of a binomial law with their mean."""
        model, n = Model(expectations, signed=False), len(expectations)
        beta = 1 - (1 - sum(expectations) / n) ** n  # the level that the binomial law gives to "at least one"
        assert Outcomes(model, SOUND).worst(beta, 2) <= beta + _ABOVE
        assert Outcomes(model, replace(SOUND, level="one law")).worst(beta, 1) > beta + 0.01

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("model", "depth"),
        [
            (Model((0.5,) * 4), 2),
            (Model((0.5,) * 4, signed=False), 3),
            (Model((0.5, 0.25, 0.75), signed=True), 3),
            (Model((0.5, 0.25, 0.5, 0.75, 0.5), signed=False), 2),
            (Model((0.5, 0.25, 0.75), signed=False), 4),
            (Model((0.5, 0.25, 0.75), signed=False, noise=_SMALL_NOISE), 3),
        ],
    )
    def test_no_analyst_exceeds_beta_in_larger_models(self, model: Model, depth: int) -> None:
        for beta in (0.125, 0.25):
            assert Outcomes(model, SOUND).worst(beta, depth) <= beta + _ABOVE

    @for_each(
        ("rule", "beta", "reached"),
        [
            (Rule(lambda r, f: (r - f, r, f / 2, f / 2)), 0.5, 1.0),
            (Rule(lambda r, f: (r - f, r - f, f, f)), 0.5, 0.625),
            (Rule(lambda r, f: (r, r - f, f / 2, f / 2)), 0.5, 1.0),
            (Rule(lambda r, f: (r, r - f, r, f / 2)), 0.25, 0.75),
            (replace(SOUND, free="raised"), 0.25, 0.5),
            (replace(SOUND, free="width"), 0.25, 0.5),
        ],
        ids=[
            "R not reduced by what was set aside",
            "both failing outcomes given all of it",
            "level R after something was set aside",
            "levels not summed over outcomes",
            "a raised query without an outcome",
            "a width from the holdout's variance",
        ],
    )
    def test_broken_twins_exceed_beta(self, rule: Rule, beta: float, reached: float) -> None:
        assert Outcomes(_FAIR, rule).worst(beta, 2) >= reached - _ABOVE


def _claims(confidence: float, n: int, queries: int | None = None) -> ClaimsMechanism:
    return ClaimsMechanism(ClaimsParameters(confidence=confidence, noise=0.0, n_train=1e6, queries=queries), n)


def _worst_laws(claims: ClaimsMechanism, n: int) -> list[float]:
    """Expectations just outside of intervals that a first query can be answered with."""
    probe = Program(Model((0.5,) * n, signed=False), claims)
    ends = {
        round(end + shift, 12)
        for train in (0.0, 0.5, 1.0)
        for count in range(n + 1)
        for end, shift in zip(probe.ends(train, count), (-1e-9, 1e-9), strict=True)
    }
    return sorted(end for end in ends if 0.0 < end < 1.0)


class TestTheProgram:
    @pytest.mark.slow
    @pytest.mark.parametrize("confidence", corners([0.5, 0.75, 0.95], 0))
    @pytest.mark.parametrize("queries", corners([None, 2], 1))
    def test_no_analyst_exceeds_beta(self, confidence: float, queries: int | None) -> None:
        claims = _claims(confidence, 3, queries)
        laws = [(p,) * 3 for p in _worst_laws(claims, 3)] + [(0.5, 0.25, 0.75), (0.9, 0.9, 0.1), (0.99, 0.3, 0.3)]
        program = Program(Model(laws[0]), claims)
        worst = [program.against(Model(law)).worst(2) for law in laws]
        assert max(worst) <= 1 - confidence
        assert max(worst) > 0.4 * (1 - confidence)  # the laws are hard enough

    @for_each("law", [(1e-9 + 0.24,) * 3, (0.5, 0.25, 0.75)])
    def test_no_analyst_exceeds_beta_in_three_queries(self, law: tuple[float, ...]) -> None:
        claims = _claims(0.75, 3)
        assert Program(Model(law, signed=False), claims).worst(3) <= 0.25

    @pytest.mark.slow
    @pytest.mark.parametrize("n", [4, 5])
    def test_no_analyst_exceeds_beta_with_more_records(self, n: int) -> None:
        claims = _claims(0.75, n)
        for p in _worst_laws(claims, n):
            for law in ((p,) * n, (min(1.0, 2 * p), *(p,) * (n - 2), max(0.0, 2 * p - 1.0))):
                assert Program(Model(law, signed=False), claims).worst(2) <= 0.25

    @pytest.mark.slow
    def test_a_risk_that_is_not_reduced_exceeds_beta(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The risk after any outcomes is what it was, and every level is all of it."""

        def generous(
            window: Window,
            steps: int,
            log_error_budget: float,
            ask: Callable[[int, int, float], ClaimOutcome],
            pad: int | None,
            others: int,
            most: int,
        ) -> Found:
            found = search(
                window, steps, log_error_budget, lambda lo, hi, _: ask(lo, hi, log_error_budget), pad, others, most
            )
            return replace(found, log_level=log_error_budget, log_error_budget=log_error_budget)

        monkeypatch.setattr(mechanism, "search", generous)
        claims = _claims(0.75, 3)
        assert max(Program(Model((p,) * 3), claims).worst(2) for p in _worst_laws(claims, 3)) > 0.3
