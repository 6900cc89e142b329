"""Limits of fitted models are charged to the probability of error once, wherever it is spent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from graphs import DependenceModel, GaussianField, Groups, Independent, Panel
from graphs.errors import ArgumentError
from graphs.estimation import fit_autoregression
from graphs.fitted_limits import FittedLimits
from tests.cases import for_each
from tests.sizes import sized
from thresholdout import KFoldGuard, Thresholdout, plan
from thresholdout.certificates import certify
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.new_data import generalization_certificate
from thresholdout.certificates.problem import within_limits
from thresholdout.errors import InputError, ThresholdoutError
from thresholdout.mechanisms import (
    ClaimsParameters,
    LadderParameters,
    SparseVectorParameters,
)
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.privacy.accounting import BlackBox

LIMITS = FittedLimits("laws of one kind", 500, 0.02)
PAIRS = Groups(np.repeat(np.arange(2000), 2))
STATED = 0.95
NEEDED = within_limits(PAIRS.fitted(LIMITS), STATED)[1]  # 0.97, rounded up: compared with declared models to the bit

PARAMETERS = [
    ClaimsParameters(queries=20).for_records(PAIRS, NEEDED),
    ClaimsParameters(queries=20, final_check=True).for_records(PAIRS, NEEDED),
    LadderParameters(queries=20, effective=2000.0, inflation=PAIRS.variance_inflation(), confidence=NEEDED),
    SparseVectorParameters(0.1, 0.003, budget=1, queries=20),
]


def same(first: Any, second: Any) -> bool:
    """Return whether two certificates promise the same widths."""
    return bool(
        first.route == second.route
        and first.tolerance == pytest.approx(second.tolerance, rel=1e-9)
        and first.expected_half_width(0.9) == pytest.approx(second.expected_half_width(0.9), rel=1e-9)
    )


@for_each("parameters", PARAMETERS, ids=lambda one: type(one).__name__)
def test_every_mechanism_is_certified_with_what_limits_leave(parameters: Any) -> None:
    """A declared model at 0.97 and a fitted one at 0.95, whose limits fail with 0.02, have the same widths."""
    fitted = certify_parameters(PAIRS.fitted(LIMITS), parameters, STATED)
    declared = certify_parameters(PAIRS, parameters, NEEDED)
    assert same(fitted, declared)
    assert fitted.confidence == STATED
    assert fitted.limits == LIMITS
    assert LIMITS.words in fitted.statement
    assert declared.limits is None
    assert "laws of this family" not in declared.statement


def test_certificates_of_one_mechanism_charge_the_same() -> None:
    """`certify` by itself."""
    hand: Any = {"threshold": 0.1, "noise_scale": 0.003, "budget": 1, "queries": 20}
    assert same(certify(PAIRS.fitted(LIMITS), confidence=STATED, **hand), certify(PAIRS, confidence=NEEDED, **hand))


def test_parameters_that_state_less_themselves_lose_the_failure_too() -> None:
    """Claims made at 0.9 hold with 0.88, not with 0.9."""
    parameters = ClaimsParameters(queries=20).for_records(PAIRS, 0.9)
    found = certify_parameters(PAIRS.fitted(LIMITS), parameters, STATED).confidence
    assert 0.88 - 1e-12 < found <= 0.88


def guard_of(model: DependenceModel, confidence: float, **choice: Any) -> Thresholdout:
    """Return a simulated guard."""
    holdout, train = np.arange(4000), np.arange(4000, 9000)
    return Thresholdout(holdout, train=train, dependence=model, confidence=confidence, random_state=1, **choice)


def fails(records: Any) -> Any:
    """Fail on the holdout, and not on the training part."""
    if records[0] == 0:
        raise ValueError
    return records > 5000


@for_each("mechanism", ["claims", "ladder"])
def test_guards_answer_with_what_limits_leave(mechanism: str) -> None:
    """Every interval of a session, failed queries included, as of a declared model at 0.97."""
    rng = np.random.default_rng(0)
    values = [rng.integers(0, 2, 4000) for _ in range(6)]
    guards = [
        guard_of(PAIRS.fitted(LIMITS), STATED, mechanism=mechanism, queries=20),
        guard_of(PAIRS, NEEDED, mechanism=mechanism, queries=20),
    ]
    seen: list[list[Any]] = []
    for guard in guards:
        intervals: list[Any] = []
        for number, column in enumerate(values):
            if number == 3:
                with pytest.raises(ThresholdoutError, match="failed on the holdout"):
                    guard.ask(fails)
            else:
                intervals.extend(guard.ask(0.5, column).interval)
        seen.append([*intervals, guard.certificate.tolerance])
    assert seen[0] == pytest.approx(seen[1], rel=1e-9)
    assert guards[0].certificate.confidence == STATED
    assert guards[0].certificate.limits == LIMITS


def test_the_risk_of_claims_starts_at_what_limits_leave() -> None:
    """0.03 of 0.05, for lists, gates and the final check, which all spend from it; nothing is told yet."""
    guard = guard_of(PAIRS.fitted(LIMITS), STATED, queries=20, final_check=True)
    declared = guard_of(PAIRS, NEEDED, queries=20, final_check=True)
    assert guard.status.error_budget_left == pytest.approx(0.03, rel=1e-9)
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-9)
    assert guard.status.final_half_width(0.9) == pytest.approx(declared.status.final_half_width(0.9), rel=1e-9)
    column = np.random.default_rng(0).integers(0, 2, 4000)
    lists = [one.ask_all([(0.5, column), (0.5, 1 - column)]) for one in (guard, declared)]
    for first, second in zip(*lists, strict=True):
        assert first.interval == pytest.approx(second.interval, rel=1e-9)
    assert guard.status.information_released == pytest.approx(declared.status.information_released, abs=1e-9)


def test_planned_parameters_serve_a_guard_with_the_stated_confidence() -> None:
    """A plan's parameters know of the limits, and the guard agrees."""
    model = PAIRS.fitted(LIMITS)
    found = plan(model, queries=20)
    guard = guard_of(model, found.confidence, mechanism=found.parameters)
    assert guard.status.error_budget_left == pytest.approx(0.03, rel=1e-9)
    with pytest.raises(InputError, match="confidence"):
        guard_of(PAIRS, found.confidence, mechanism=found.parameters)


def test_what_was_declared_cannot_become_what_was_fitted(tmp_path: Any) -> None:
    """A guard's ledger knows whether its model was fitted, and how likely its limits fail."""
    place = tmp_path / "guard.db"
    first = guard_of(PAIRS.fitted(LIMITS), STATED, ledger=place)
    assert (
        guard_of(PAIRS.fitted(LIMITS), STATED, ledger=place).status.error_budget_left == first.status.error_budget_left
    )
    for other in (PAIRS, PAIRS.fitted(FittedLimits("laws of one kind", 500, 0.01))):
        with pytest.raises(ThresholdoutError):
            guard_of(other, STATED, ledger=place)


def test_plans_use_what_limits_leave() -> None:
    """Half-widths of every way, Algorithm 1's parameters."""
    fitted, declared = plan(PAIRS.fitted(LIMITS), queries=20), plan(PAIRS, queries=20, confidence=NEEDED)
    for way in declared.ways:
        other = fitted.way(way.name)
        assert other is not None
        assert other.half_width == pytest.approx(way.half_width, rel=1e-9)
    assert fitted.confidence == STATED
    assert fitted.model.fit_failure == 0.02
    assert fitted.certificate.limits == LIMITS
    given: Any = {"queries": 20, "budget": 1}
    found = algorithm_1(PAIRS.fitted(LIMITS), confidence=STATED, **given).noise_scale
    assert found == pytest.approx(algorithm_1(PAIRS, confidence=NEEDED, **given).noise_scale, rel=1e-9)


def test_bounds_for_new_data_add_the_failure() -> None:
    """Probabilities lose it, expectations gain it."""
    fitted = generalization_certificate(BlackBox(0.02), 4000, PAIRS.fitted(LIMITS), STATED)
    declared = generalization_certificate(BlackBox(0.02), 4000, PAIRS, NEEDED)
    assert fitted.bound == pytest.approx(declared.bound, rel=1e-9)
    assert fitted.average == pytest.approx(declared.average + 0.02, rel=1e-9)


@for_each("confidence", [0.98, 0.99])
def test_limits_that_leave_nothing_are_refused(confidence: float) -> None:
    """With the number that would do."""
    model = PAIRS.fitted(LIMITS)
    for refused in (
        lambda: certify_parameters(model, ClaimsParameters(), confidence),
        lambda: plan(model, queries=20, confidence=confidence),
        lambda: guard_of(model, confidence),
    ):
        with pytest.raises(InputError, match=r"confidence must be below 0\.98"):
            refused()


def test_models_made_of_a_fitted_one_are_fitted() -> None:
    """Panels, and what known records leave; what assumes the limits is not."""
    series = GaussianField.ar(0.5, 10).fitted(LIMITS)
    for model in (Panel(series, 3), series.given([0]), Panel(series, 3).given([0])):
        assert model.fit_failure == 0.02
        assert model.within_limits().fit_failure == 0.0
    assert Panel(series, 3).fingerprint() != Panel(GaussianField.ar(0.5, 10), 3).fingerprint()
    assert series.within_limits().fingerprint() == GaussianField.ar(0.5, 10).fingerprint()
    assert series.variance_inflation() == GaussianField.ar(0.5, 10).variance_inflation()


def test_a_model_that_assumes_its_limits_is_charged_nothing_more() -> None:
    """The confidence comes back to the bit; so does that of a declared model."""
    assumed, needed = within_limits(PAIRS.fitted(LIMITS), STATED)
    assert within_limits(assumed, needed) == (assumed, needed)
    assert within_limits(Independent(3), 0.95)[1] == 0.95
    assert 1.0 - needed <= 0.03 <= (1.0 - needed) * (1.0 + 1e-12)


def misses(inflation: float, n: int, beta: float, mean: float) -> bool:
    """Return whether a mean is further from 1/2 than a certificate of one fixed query allows."""
    return abs(mean - 0.5) > math.sqrt(inflation * math.log(2.0 / beta) / (2.0 * n))


@pytest.mark.statistical
@pytest.mark.parametrize(("phi", "runs"), sized([(0.9,), (0.99,), (0.999,)], 40, 120, 2))
def test_fitted_certificates_cover_near_a_unit_root(phi: float, runs: int) -> None:
    """Error rate 1e-9 by the binomial law at a stated error of 0.05; where a unit root is not excluded there is none.

    Where nearly all limits are refused the plug-in estimate makes up certificates that fail: it has to be rejected.
    """
    rng, n, length = np.random.default_rng(round(1000 * phi)), 4000, 100
    broken, naive = 0, 0
    for _ in range(runs):
        noise = rng.standard_normal((2, n))
        series = np.empty((2, n))
        series[:, 0] = noise[:, 0] / math.sqrt(1 - phi**2)
        for t in range(1, n):
            series[:, t] = phi * series[:, t - 1] + noise[:, t]
        earlier, mean = series[0, :length], float((series[1] > 0).mean())
        centred = earlier - earlier.mean()
        slope = float(centred[1:] @ centred[:-1] / (centred[:-1] @ centred[:-1]))
        naive += slope < 1 and misses((1 + slope) / (1 - slope), n, 0.05, mean)
        try:
            model = fit_autoregression(earlier, n, fit_failure=0.025)
        except ArgumentError:
            continue
        broken += misses(model.variance_inflation(), n, 0.025, mean)
    most = binom.isf(1e-9, runs, 0.05)
    assert broken <= most
    if phi == 0.999:
        assert naive > most


def test_cross_validation_charges_the_limits_of_its_records() -> None:
    """Folds of fitted groups are not declared to be independent: the failure of their limits is."""
    groups = Groups(np.repeat(np.arange(50), 2))
    rng = np.random.default_rng(0)
    features, labels = rng.random((100, 2)), rng.integers(0, 2, 100)
    guards = [
        KFoldGuard((features, labels), dependence=model, confidence=confidence, cv=5, queries=10, random_state=1)
        for model, confidence in ((groups.fitted(LIMITS), STATED), (groups, NEEDED))
    ]
    assert guards[0].dependence.fit_failure == 0.02
    assert guards[0].certificate.limits == LIMITS
    assert guards[0].certificate.confidence == STATED
    assert guards[0].status.error_budget_left == pytest.approx(guards[1].status.error_budget_left, rel=1e-9)
    assert guards[0].status.error_budget_left == pytest.approx(0.03, rel=1e-9)
    with pytest.raises(InputError, match="confidence"):
        KFoldGuard((features, labels), dependence=groups.fitted(LIMITS), confidence=0.99, cv=5, queries=10)
