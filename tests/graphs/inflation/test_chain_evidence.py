"""Chains of which records are known: exact moments of the conditional laws, with the worst functions."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from graphs import HiddenMarkov, MarkovChain, RouteUnavailable
from graphs.inflation.chain_evidence import contractions_of, stretches
from graphs.leakage.influence import Kernels
from tests.cases import for_each
from tests.oracles.adversarial import outcomes, worst_lipschitz
from tests.oracles.chains import random_chain
from tests.oracles.moments import worst_inflation
from tests.sizes import sizes

FloatArray = npt.NDArray[np.float64]
SLACK = 1e-9
WALK = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]


def laws_given(table: FloatArray, known: tuple[int, ...]) -> list[FloatArray]:
    """Return the conditional laws of the other records, for all values of the known ones that can occur."""
    found = []
    for values in itertools.product(*(range(table.shape[i]) for i in known)):
        part = table[tuple(dict(zip(known, values, strict=True)).get(i, slice(None)) for i in range(table.ndim))]
        if part.sum() > 0:
            found.append(part / part.sum())
    return found


def patterns(n: int) -> list[tuple[int, ...]]:
    return [known for size in range(1, n - 1) for known in itertools.combinations(range(n), size)]


@sizes("count", 6, 24)
def test_no_statistic_is_above_its_inflation(count: int) -> None:
    """Means and statistics with bounded differences, for random sparse chains and some patterns of evidence each."""
    rng = np.random.default_rng(count)
    for number in range(count):
        states, n = (2, 5) if number % 3 else (3, 4)
        matrix, law = random_chain(rng, states, number % 2 == 0, ("any", "few")[number % 4 // 2])
        chain = MarkovChain(matrix, n, law)
        chosen = patterns(n)
        for place in rng.choice(len(chosen), 2, replace=False):
            rest = chain.given(chosen[place])
            bound = rest.variance_inflation(bounded_differences=True)
            assert bound <= rest.variance_inflation("evidence", bounded_differences=True)
            conditional = laws_given(chain.joint(), chosen[place])
            table = conditional[int(rng.integers(len(conditional)))]
            assert worst_lipschitz(table, rng, 2, 3) <= bound * (1 + SLACK)
            assert worst_inflation(*outcomes(table), rng, 1, np.array([-3.0, 0.05, 3.0])) <= bound * (1 + SLACK)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_pattern_and_all_known_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chains = [MarkovChain(*_pair(rng, states, n, zeros)) for states, n in ((2, 5), (3, 4)) for zeros in (False, True)]
    for chain in chains:
        for known in patterns(chain.n):
            bound = chain.given(known).variance_inflation("evidence")
            for table in laws_given(chain.joint(), known):
                assert worst_inflation(*outcomes(table), rng, 2) <= bound * (1 + SLACK)
                assert worst_lipschitz(table, rng) <= bound * (1 + SLACK)


def _pair(rng: np.random.Generator, states: int, n: int, zeros: bool) -> tuple[FloatArray, int, FloatArray]:
    matrix, law = random_chain(rng, states, zeros, "any")
    return matrix, n, law


@sizes("count", 3, 8)
def test_hidden_chains(count: int) -> None:
    rng = np.random.default_rng(count)
    for number in range(count):
        emission = rng.dirichlet(np.full(2, rng.choice([0.3, 1.0, 3.0])), 2)
        matrix, law = random_chain(rng, 2, number % 2 == 0, "any")
        hidden = HiddenMarkov(matrix, 5, law, emission=emission)
        chosen = patterns(5)
        for place in rng.choice(len(chosen), 3, replace=False):
            bound = hidden.given(chosen[place]).variance_inflation("evidence", bounded_differences=True)
            table = laws_given(hidden.joint(), chosen[place])[0]
            assert worst_lipschitz(table, rng, 2, 3) <= bound * (1 + SLACK)
            assert worst_inflation(*outcomes(table), rng, 1, np.array([-3.0, 0.05, 3.0])) <= bound * (1 + SLACK)


def test_five_per_cent_less_is_refuted() -> None:
    """A weak chain of which records are known at the start, at the end, or in the middle."""
    rng = np.random.default_rng(0)
    chain = MarkovChain([[0.53, 0.47], [0.47, 0.53]], 5)
    for known in ((0,), (4,), (2,)):
        bound = chain.given(known).variance_inflation("evidence")
        worst = worst_inflation(*outcomes(laws_given(chain.joint(), known)[0]), rng)
        assert 0.95 * bound < worst <= bound * (1 + SLACK)


@for_each(("coefficient", "reached"), [(0.8, 24.7), (0.9, 97.3)])
def test_earlier_years_train_and_later_years_hold_out(coefficient: float, reached: float) -> None:
    """The first half of a thousand records is known: the rest starts in a point, and the kernel is the model's."""
    stay = (1 + coefficient) / 2
    rest = MarkovChain([[stay, 1 - stay], [1 - stay, stay]], 1000).given(range(500))
    exact = sum(((1 - coefficient**k) / (1 - coefficient)) ** 2 for k in range(1, 501)) / 500
    assert rest.variance_inflation("evidence") == pytest.approx(exact, rel=1e-6)
    assert rest.variance_inflation("evidence") >= exact
    assert rest.variance_inflation("evidence") == pytest.approx(reached, abs=0.06)
    assert rest.variance_inflation() < (1 + coefficient) / (1 - coefficient)
    assert rest.effective_records() == pytest.approx(500 * (1 - coefficient) / (1 + coefficient), rel=0.01)


def test_contractions_are_those_of_all_tilted_kernels() -> None:
    """Against the kernels of bridges, by their definition, with zeros; both halves of the bound are needed."""
    rng = np.random.default_rng(5)
    needed = set()
    for number in range(30):
        matrix = np.array(WALK) if number == 0 else random_chain(rng, 3, number % 2 == 0, "any")[0]
        found = contractions_of(Kernels(matrix, 9), np.ones(3, dtype=bool), matrix)
        for m, r in itertools.product(range(1, 5), range(1, 4)):
            step, ahead = np.linalg.matrix_power(matrix, m), np.linalg.matrix_power(matrix, r)
            bound = float(found.between(np.array([m]), np.array([r]))[0])
            needed.add(bool(found.tilted[m] < bound * (1 + 1e-9)))
            for end in range(3):
                tilted = step * ahead[:, end]
                rows = tilted[tilted.sum(axis=1) > 0]
                rows = rows / rows.sum(axis=1, keepdims=True)
                distance = max((np.abs(a - b).sum() / 2 for a in rows for b in rows), default=0.0)
                assert distance <= bound + 1e-12
    assert needed == {False, True}


def test_long_stretches_continue_what_short_ones_give() -> None:
    """What is followed one by one, continued in bulk, and bounded for good, against the sums themselves."""
    matrix = np.array([[0.999, 0.001], [0.002, 0.998]])
    steps = contractions_of(Kernels(matrix, 100_000), np.ones(2, dtype=bool), matrix)
    direct = np.cumsum(np.r_[1.0, np.cumprod(np.full(39_999, 0.997))])
    whole = steps.open_reach(40_000)
    for length in (1, 2, 400, 700, 19_999, 20_001, 40_000):
        exact = min(float((direct[:length] ** 2).sum()), length**2)
        assert exact <= float(whole.squares(np.array([length]))[0]) <= exact * 1.01
    closed = steps.closed_reach(40_000)
    assert (closed.squares(np.array([3, 50, 30_000])) >= whole.squares(np.array([3, 50, 30_000])) * (1 - 1e-9)).all()
    np.testing.assert_allclose(closed.squares(np.array([1])), [1.0], rtol=1e-12)


def test_zeros_and_stretches() -> None:
    chain = MarkovChain(WALK, 400, [1, 0, 0])
    later, between = chain.given(range(200)), chain.given(range(0, 400, 100))
    assert later.variance_inflation() == pytest.approx(3.97, abs=0.01)
    assert 3.8 < between.variance_inflation() < 4.5
    assert chain.given(range(0, 400, 2)).variance_inflation() == pytest.approx(1)
    np.testing.assert_array_equal(stretches(np.array([True, False, False, True]))[0], [2])
    rotation = MarkovChain([[0, 1], [1, 0]], 10, [0.5, 0.5]).given([5])
    assert rotation.variance_inflation() == pytest.approx((25 + 16) / 9)
    with pytest.raises(RouteUnavailable, match="no such route"):
        chain.given([3]).variance_inflation("spectral")


def test_nothing_known_changes_nothing() -> None:
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], 50)
    nobody = chain.given([])
    assert nobody.inflation_methods == chain.inflation_methods
    for method in chain.inflation_methods:
        assert nobody.variance_inflation(method) == chain.variance_inflation(method)
    assert nobody.effective_records() == chain.effective_records()
