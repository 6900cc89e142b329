"""Influences under fields: exact moments of small laws with the worst functions, under every pattern of evidence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from graphs import Communities, DependenceModel, HiddenMarkov, Independent, MarkovChain, RouteUnavailable
from graphs.inflation.influences import chain_influences, spectral_radius
from tests.cases import for_each
from tests.oracles.adversarial import outcomes, worst_coins
from tests.oracles.chains import random_chain
from tests.oracles.moments import worst_inflation
from tests.sizes import sizes

FloatArray = npt.NDArray[np.float64]
#: Rounding of the enumeration itself.
SLACK = 1e-9


def symmetric(eigenvalue: float, n: int) -> MarkovChain:
    """A chain of two states in which the number of signs has the variance that influences give."""
    stay = (1 + eigenvalue) / 2
    return MarkovChain([[stay, 1 - stay], [1 - stay, stay]], n)


def small_models(rng: np.random.Generator) -> Iterator[DependenceModel]:
    """Chains with and without zeros, from any start, hidden chains and communities."""
    for zeros, start in itertools.product((False, True), ("any", "few")):
        matrix, law = random_chain(rng, 2, zeros, start)
        yield MarkovChain(matrix, 5, law)
    yield MarkovChain(*random_chain(rng, 3, False, "any")[:1], 4, rng.dirichlet(np.ones(3)))
    yield symmetric(float(rng.uniform(0, 1)), 5)
    blurred = rng.dirichlet(np.full(2, rng.choice([0.5, 2.0])), 2)
    yield HiddenMarkov(random_chain(rng, 2, False, "any")[0], 4, rng.dirichlet(np.ones(2)), emission=blurred)
    yield Communities([0, 0, 1, 1, 1], emission=blurred, prior=rng.dirichlet(np.ones(2)))
    between = MarkovChain(random_chain(rng, 2, False, "any")[0], 3, rng.dirichlet(np.ones(2)))
    yield Communities([0, 1, 1, 2], between, emission=blurred)


def conditioned(model: DependenceModel, rng: np.random.Generator, known: tuple[int, ...]) -> FloatArray:
    """Return the table of the records that are left, given values of the known ones that can occur."""
    table = model.joint()
    states = np.argwhere(table > 0)
    seen = states[rng.integers(len(states))]
    part = table[tuple(int(seen[i]) if i in known else slice(None) for i in range(model.n))]
    found: FloatArray = part / part.sum()
    return found


@sizes("count", 1, 20)
def test_no_mean_is_above_its_inflation_or_its_coins(count: int) -> None:
    """Nine models each, all records and a random pattern of evidence; every pattern in the slow test below."""
    rng = np.random.default_rng(count)
    for model in itertools.chain.from_iterable(small_models(rng) for _ in range(count)):
        known = tuple(np.flatnonzero(rng.random(model.n) < 0.35).tolist())[: model.n - 2]
        for some in {(), known}:
            rest = model.given(some)
            table = conditioned(model, rng, some)
            arguments = np.array([-8.0, -2.0, -0.3, 0.05, 1.0, 4.0])
            worst = worst_inflation(*outcomes(table), rng, 2, arguments)
            assert worst <= rest.variance_inflation("influences") * (1 + SLACK)
            assert rest.variance_inflation() <= rest.variance_inflation("influences")
            effective = rest.n / float(spectral_radius(rest._influences, rest.n) or np.nan)
            assert worst_coins(table, effective, rng, 2) <= SLACK


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_every_pattern_of_evidence(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    for model in small_models(rng):
        for size in range(model.n - 1):
            for known in itertools.combinations(range(model.n), size):
                rest, table = model.given(known), conditioned(model, rng, known)
                assert worst_inflation(*outcomes(table), rng, 2) <= rest.variance_inflation("influences") * (1 + SLACK)
                effective = rest.n / float(spectral_radius(rest._influences, rest.n) or np.nan)
                assert worst_coins(table, effective, rng, 2) <= SLACK


@for_each("eigenvalue", [0.1, 0.5, 0.9])
def test_five_per_cent_less_is_refuted(eigenvalue: float) -> None:
    """Signs of a symmetric chain: the bound is attained as u goes to zero."""
    rng = np.random.default_rng(0)
    chain = symmetric(eigenvalue, 5)
    worst = worst_inflation(*outcomes(chain.joint()), rng, 1)
    bound = chain.variance_inflation("influences")
    assert 0.95 * bound < 0.99 * bound < worst <= bound


def test_five_per_cent_more_coins_are_refuted() -> None:
    rng = np.random.default_rng(0)
    chain = symmetric(0.15, 8)
    effective = chain.effective_records() or 0.0
    assert worst_coins(chain.joint(), effective, rng, 2) <= SLACK
    assert worst_coins(chain.joint(), 1.05 * effective, rng, 2) > 0.01


def test_records_of_any_type_and_blurred_ones() -> None:
    """A hidden chain whose records tell their states is the chain; emissions that are alike leave nothing."""
    matrix = [[0.9, 0.1], [0.2, 0.8]]
    chain, hidden = MarkovChain(matrix, 30), HiddenMarkov(matrix, 30)
    assert hidden.variance_inflation("influences") == pytest.approx(chain.variance_inflation("influences"), rel=1e-12)
    assert hidden.effective_records() == pytest.approx(chain.effective_records())
    alike = HiddenMarkov(matrix, 30, emission=[[0.3, 0.7], [0.3, 0.7]])
    assert alike.variance_inflation("influences") == pytest.approx(1, abs=1e-6)
    assert hidden.given(range(20)).variance_inflation() == pytest.approx(
        MarkovChain(matrix, 10, [0.5, 0.5]).variance_inflation("influences")
    )


def test_sums_against_their_matrix() -> None:
    rng = np.random.default_rng(2)
    passed, weights = rng.random(6), rng.random(7)
    matrix = np.array([[np.prod(passed[min(i, j) : max(i, j)]) for j in range(7)] for i in range(7)])
    np.testing.assert_allclose(chain_influences(passed, weights), matrix @ weights, rtol=1e-13)
    assert (chain_influences(passed, weights) >= matrix @ weights).all()
    exact = float(np.abs(np.linalg.eigvalsh(matrix)).max())
    found = spectral_radius(lambda v: chain_influences(passed, v), 7)
    assert exact <= float(found or 0.0) <= exact * 1.005
    symmetrical = symmetric(0.5, 20)
    assert symmetrical.variance_inflation() == pytest.approx(
        sum(0.5 ** abs(i - j) for i in range(20) for j in range(20)) / 20, rel=1e-12
    )


def test_where_influences_say_nothing() -> None:
    walk = MarkovChain([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]], 200)
    assert walk.variance_inflation("influences") == 200
    assert walk.effective_records() is None
    with pytest.raises(RouteUnavailable, match="means of per-record values only"):
        walk.variance_inflation("influences", bounded_differences=True)
    with pytest.raises(RouteUnavailable, match="no such route"):
        Independent(3).variance_inflation("influences")
