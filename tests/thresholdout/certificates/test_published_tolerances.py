"""The published statements: their formulas, and the counterexample."""

import math

import pytest

from graphs import Groups, Independent, MarkovChain
from tests.cases import for_each
from thresholdout.certificates import certify
from thresholdout.certificates.published_tolerances import (
    lemma_1_failure,
    theorem_1_records,
    theorem_2,
    theorem_2_tolerance,
)


def test_theorem_2_worked_value() -> None:
    asked = theorem_2(Independent(10_000), tolerance=0.1, queries=1000, budget=1, beta=0.05, c=0.5)
    assert asked.noise_scale == pytest.approx(0.00036906529271630163, rel=1e-12)
    assert asked.threshold == pytest.approx(0.075, rel=1e-12)
    assert asked.records == pytest.approx(1_463_155.736, abs=1e-3)


@for_each(("n", "budget", "expected"), [(10_000, 1, 0.605), (100_000, 10, 0.605), (100_000, 100, 1.91)])
def test_theorem_2_tolerance(n: int, budget: int, expected: float) -> None:
    tolerance = theorem_2_tolerance(Independent(n), queries=1000, budget=budget, beta=0.05)
    assert tolerance == pytest.approx(expected, rel=2e-3)


def test_theorem_2_tolerance_of_groups_and_chains() -> None:
    groups = Groups([record // 4 for record in range(10_000)])
    alone = theorem_2_tolerance(Independent(10_000), queries=1000, budget=1, beta=0.05)
    assert theorem_2_tolerance(groups, queries=1000, budget=1, beta=0.05) == pytest.approx(2 * alone, rel=1e-3)
    chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=10_000)
    tolerance = theorem_2_tolerance(chain, queries=1000, budget=1, beta=0.05)
    asked = theorem_2(chain, tolerance=tolerance * 1.001, queries=1000, budget=1, beta=0.05, c=1e-6)
    assert asked.records <= 10_000


def test_theorem_1_and_lemma_1_are_false_for_copies_of_one_coin() -> None:
    """Theorem 1 asks for fewer records than there are, and yet every mean of the coins is 1/2 away from the truth."""
    tolerance, beta, budget = 0.1, 0.05, 3
    n = math.ceil(9 * math.log(4 / beta) / tolerance**2)
    coins = Groups([0] * n)
    noise_scale = 27 * budget / (4 * tolerance) * (1 + 1e-9)
    asked = theorem_1_records(coins, tolerance=tolerance, noise_scale=noise_scale, budget=budget, beta=beta)
    assert asked <= n
    assert asked > 0.999 * n
    for state in (0, 1):
        mean = sum([state] * n) / n
        assert abs(mean - 0.5) == 0.5 > tolerance  # in every draw, while the theorem claims at most beta of them

    sensitivity = 1 / n
    assert lemma_1_failure(n, tolerance, sensitivity) <= beta * (1 + 1e-9)
    certificate = certify(coins, threshold=0.1, noise_scale=1.0, budget=1, queries=1)
    assert certificate.tolerance > 0.5  # what is sound does not fall for it


def test_theorem_1_of_a_model_that_is_too_dependent() -> None:
    chain = MarkovChain([[0.9999, 0.0001], [0.0001, 0.9999]], n=100)
    assert (
        theorem_1_records(chain, tolerance=0.1, noise_scale=0.01, budget=1, beta=0.05, method="blanket-published")
        == math.inf
    )


@pytest.mark.slow
def test_published_row_of_a_certificate() -> None:
    tolerance, queries, budget = 0.9, 100, 1
    asked = theorem_2(Independent(50_000), tolerance=tolerance, queries=queries, budget=budget, beta=0.05, c=0.3)
    assert asked.records < 50_000
    guard = {"threshold": asked.threshold, "noise_scale": asked.noise_scale, "budget": budget, "queries": queries}
    row = certify(Independent(50_000), **guard).routes.loc["published"]  # type: ignore[arg-type]
    assert row["tolerance"] == pytest.approx(tolerance, rel=1e-9)
    assert not row["sound"]
    assert not row["chosen"]
    few = certify(Independent(10), **guard).routes.loc["published"]  # type: ignore[arg-type]
    assert "records" in str(few["why_not"])
    low = certify(Independent(50_000), threshold=1e-4, noise_scale=0.01, budget=1, queries=10).routes
    assert "threshold is below" in str(low.loc["published", "why_not"])
    leaking = certify(Independent(50_000), **(guard | {"budget": 50})).routes  # type: ignore[arg-type]
    assert "leaks more" in str(leaking.loc["published", "why_not"])
