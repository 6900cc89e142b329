"""The posterior certificate and max-information: worked values, twins, small exact interactions."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from graphs import DependenceModel, Groups, Independent, MarkovChain
from tests.sizes import corners, sizes
from thresholdout.certificates.change_of_measure import max_information
from thresholdout.certificates.posterior import mean_total_variation, posterior
from thresholdout.certificates.problem import LargestError, Setting
from thresholdout.certificates.published_tolerances import theorem_3_bits
from thresholdout.mechanisms import SparseVectorParameters
from thresholdout.planning.algorithm_1 import algorithm_1


def symmetric_chain(eigenvalue: float, n: int) -> MarkovChain:
    stay = (1 + eigenvalue) / 2
    return MarkovChain([[stay, 1 - stay], [1 - stay, stay]], n=n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "worked"),
    corners(
        [
            (Independent(10_000), 0.0946),
            (Groups([record // 5 for record in range(10_000)]), 0.2112),
            (symmetric_chain(0.5, 10_000), 0.1636),
            (symmetric_chain(0.9, 10_000), 0.408),
        ],
        0,
        1,
        2,
    ),
)
def test_worked_tolerances(model: DependenceModel, worked: float) -> None:
    """The worked values rest on the cruder law of the largest error; ours are smaller by the root of both CVaRs."""

    def crude(scale: float) -> float:
        return 39.787349 * scale + mean_total_variation(model, 9 / (4 * scale * model.n))

    assert min(map(crude, np.geomspace(1e-4, 1e-1, 400))) == pytest.approx(worked, rel=2e-3)
    found = posterior(Setting(model, algorithm_1(model, queries=1000, budget=1, quiet_margin=0.0), 0.95)).tolerance
    ours = LargestError(1).superquantile(0.05, 2 * math.log(2 * 1000 / (3 * 0.05)))
    assert found == pytest.approx(worked * math.sqrt(ours / 39.787349), rel=5e-3)


def test_mean_total_variation_in_high_precision() -> None:
    model = Groups([0, 0, 0, 1, 2, 2])
    epsilon = 0.37
    with mpmath.workdps(40):
        alphas = [3, 3, 3, 1, 2, 2]
        exact = sum(mpmath.tanh(mpmath.mpf(epsilon) * s / 4) for s in alphas) / 6
        value = mean_total_variation(model, epsilon)
        assert exact <= value <= exact * (1 + 1e-11)


def test_randomised_response_about_one_record_attains_the_second_term() -> None:
    """Posterior minus prior of one fair bit answered with log-odds epsilon, prior shifted to the worst case."""
    epsilon = 0.8
    worst = max(
        abs(p * math.exp(epsilon / 2) / (p * math.exp(epsilon / 2) + (1 - p) * math.exp(-epsilon / 2)) - p)
        for p in np.linspace(0.01, 0.99, 9801)
    )
    bound = mean_total_variation(Independent(1), epsilon)
    assert worst <= bound
    assert worst == pytest.approx(bound, rel=1e-6)


@sizes("mechanisms", 40, 200)
def test_posterior_of_dependent_records_moves_by_at_most_the_bound(mechanisms: int) -> None:
    """Four records in two groups; every output of a random epsilon-DP mechanism, by enumeration."""
    rng = np.random.default_rng(0)
    model = Groups([0, 0, 1, 1])
    states = list(itertools.product((0, 1), repeat=4))
    laws = rng.dirichlet(np.ones(4), size=2)
    prior = np.array([laws[0][2 * a + b] * laws[1][2 * c + d] for a, b, c, d in states])
    sums = np.array([sum(state) for state in states])
    bound = mean_total_variation(model, 0.5)
    largest = 0.0
    for _ in range(mechanisms):
        steps = np.cumsum(np.r_[0.0, rng.choice([-0.5, 0.5], size=4)])
        likelihood = np.exp(steps[sums])  # changes by at most e^0.5 when one record changes
        after = prior * likelihood / np.sum(prior * likelihood)
        for values in rng.random((20, 4, 2)):
            query = np.array([np.mean([values[i][x] for i, x in enumerate(state)]) for state in states])
            largest = max(largest, abs(float(query @ (after - prior))))
    assert 0.1 * bound < largest <= bound


def test_monotone_in_records_and_limits() -> None:
    def tolerance(n: int = 10_000, m: int = 1000, b: int = 1, confidence: float = 0.95, grid: float = 1 / 64) -> float:
        parameters = SparseVectorParameters(0.03, 0.001, budget=b, queries=m, grid=grid)
        return posterior(Setting(Independent(n), parameters, confidence)).tolerance

    assert tolerance(n=20_000) < tolerance()
    assert tolerance(m=2000) == tolerance()  # given T, the number of queries does not matter
    assert tolerance(b=2) > tolerance()
    assert tolerance(confidence=0.99) > tolerance()
    assert tolerance(grid=1.0) > tolerance(grid=0.25) >= tolerance()


def test_more_budget_than_queries_costs_nothing() -> None:
    def tolerance(budget: int) -> float:
        parameters = SparseVectorParameters(0.03, 0.001, budget=budget, queries=5)
        return posterior(Setting(Independent(10_000), parameters, 0.95)).tolerance

    assert tolerance(5) == tolerance(500)


def test_max_information() -> None:
    assert max_information(Independent(10_000), 0.01, 0.05) == pytest.approx(1.946012987098566, abs=1e-12)
    assert theorem_3_bits(10_000, 0.01, 0.05) == pytest.approx(6.804042725343479, abs=1e-12)
    groups = Groups([0, 0, 1])
    squares = 2 * 0.2**2 + 0.1**2
    nats = squares / 8 + math.sqrt(squares * math.log(20) / 2)
    assert max_information(groups, 0.1, 0.05) == pytest.approx(nats / math.log(2), rel=1e-9)
