"""What the privacy of a learner says about new data, by every route."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from graphs import Groups, Independent, MarkovChain
from tests.sizes import sized
from thresholdout.certificates.new_data import GeneralizationCertificate, generalization_certificate
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import (
    BlackBox,
    Composed,
    GaussianAnswer,
    SelfComposed,
    WithoutReplacementGaussianStep,
)


def why_not(found: GeneralizationCertificate, route: str) -> str:
    return str(found.routes["why_not"][route])


@pytest.mark.slow
def test_the_best_of_each_kind() -> None:
    found = generalization_certificate(BlackBox(0.02), 10_000)
    table = found.routes
    assert found.bound == table.loc[table["kind"] == "probability", "bound"].min()
    assert found.average == table.loc[table["kind"] == "average", "bound"].min()
    assert found.route == "max-information"
    assert "0.0195" in found.statement
    assert "max-information" in repr(found)
    assert found.average == pytest.approx(math.tanh(0.02 / 4), rel=1e-9)
    assert table.loc["on average", "bound"] == pytest.approx(math.tanh(0.01), rel=1e-9)


@pytest.mark.slow
def test_formulas() -> None:
    n, epsilon, beta = 10_000, 0.02, 0.05
    table = generalization_certificate(BlackBox(epsilon), n).routes["bound"]
    leaked = n * epsilon**2
    nats = leaked / 8 + math.sqrt(leaked * math.log(2 / beta) / 2)
    assert table["max-information"] == pytest.approx(math.sqrt((nats + math.log(4 / beta)) / (2 * n)), rel=1e-9)
    x = n * epsilon**2 / 8
    fresh = 2 * math.exp(-2 * n * table["mutual information"] ** 2)
    assert fresh <= beta
    divergence = beta * math.log(beta / fresh) + (1 - beta) * math.log((1 - beta) / (1 - fresh))
    assert divergence == pytest.approx(x, rel=1e-6)
    assert divergence >= x


@pytest.mark.slow
def test_learners_with_a_delta() -> None:
    learner = SelfComposed(WithoutReplacementGaussianStep(6, 120, 50_000), 104_000)
    found = generalization_certificate(learner, 50_000)
    assert found.route == "mutual information"
    assert 0.05 < found.average < 0.14
    assert "Renyi" in why_not(found, "posterior")
    unknown = generalization_certificate([BlackBox(0.005, 1e-9), BlackBox(0.005)], 100_000)
    assert unknown.routes.loc["theorem 1", "bound"] == pytest.approx(0.137, abs=1e-3)
    assert unknown.route == "approximate max-information"
    assert unknown.bound < 0.015


@pytest.mark.slow
@pytest.mark.parametrize("std", [0.05, 1e-3])
def test_nothing_is_known(std: float) -> None:
    found = generalization_certificate(Composed([BlackBox(0.1, 1e-3), GaussianAnswer(std)]), 100)
    assert found.bound == 1.0
    assert found.average == 1.0
    assert found.route == "none"
    assert found.statement.startswith("No bound below 1")
    assert "no epsilon has a delta below 1" in why_not(found, "on average")


def test_dependent_records() -> None:
    patients = Groups([record // 5 for record in range(10_000)])
    found = generalization_certificate(BlackBox(0.02), 10_000, dependence=patients)
    assert found.average == pytest.approx(math.tanh(5 * 0.02 / 4), rel=1e-6)
    applies = found.routes["why_not"] == ""
    assert set(found.routes.index[applies]) == {"max-information", "posterior"}
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=1000)
    assert generalization_certificate(BlackBox(0.05), 1000, chain).average < 1
    same = generalization_certificate(BlackBox(0.05), 10, Groups([0] * 10))
    assert "no variance inflation" in why_not(same, "max-information")


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match="dependence"):
        generalization_certificate(BlackBox(0.1), 10, Independent(11))
    for n, confidence in ((0, 0.95), (10.5, 0.95), (10, 1.0)):
        with pytest.raises(InputError):
            generalization_certificate(BlackBox(0.1), n, confidence=confidence)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        generalization_certificate("learner", 10)  # type: ignore[arg-type]


@pytest.mark.slow
def test_smaller_epsilons_say_more() -> None:
    bounds = [generalization_certificate(BlackBox(e), 10_000) for e in (0.001, 0.01, 0.1, 1.0)]
    assert sorted(found.bound for found in bounds) == [found.bound for found in bounds]
    assert sorted(found.average for found in bounds) == [found.average for found in bounds]


@pytest.mark.parametrize(
    ("epsilon", "confidences"), sized([(0.1,), (0.5,), (1.5,)], (0.8,), (0.5, 0.8, 0.95, 0.999), 1)
)
def test_exactly_for_a_learner_that_repeats_what_it_heard(epsilon: float, confidences: tuple[float, ...]) -> None:
    """Six coins by randomised response; the released function is 1 where a record has the value that it said."""
    n = 6
    lie = 1 / (1 + math.exp(epsilon))
    law: dict[float, float] = {}
    for truths in itertools.product((False, True), repeat=n):
        probability = math.prod(1 - lie if truth else lie for truth in truths)
        gap = sum(truths) / n - 0.5
        law[gap] = law.get(gap, 0.0) + probability
    for confidence in confidences:
        found = generalization_certificate(BlackBox(epsilon), n, confidence=confidence)
        assert abs(sum(gap * p for gap, p in law.items())) <= found.average
        for name in ("max-information", "mutual information"):
            bound = found.routes["bound"][name]
            assert sum(p for gap, p in law.items() if abs(gap) > bound) <= 1 - confidence
    expected = sum(gap * p for gap, p in law.items())
    assert expected == pytest.approx(np.tanh(epsilon / 2) / 2)
