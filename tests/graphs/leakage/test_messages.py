"""Messages against high precision, worked values, and their own slow form."""

from __future__ import annotations

import math
from collections.abc import Mapping

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import ArgumentError, MarkovChain
from graphs.leakage.messages import Edges, along_chain, fixed_point, phi, projective_diameter
from tests.cases import for_each
from tests.oracles.chains import FloatArray, mp_messages, mp_phi
from tests.sizes import corners

BIRTH_DEATH = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]


@given(
    st.one_of(st.floats(0, 1e-3), st.floats(0, 60), st.floats(0, 2e3), st.just(math.inf)),
    st.one_of(st.floats(0, 1e-3), st.floats(0, 60), st.floats(0, 2e3)),
)
def test_phi_is_above_the_exact_value_and_close(diameter: float, leakage: float) -> None:
    found = float(phi(diameter, leakage))
    truth = mp_phi(diameter, leakage)
    assert found >= truth or found == min(diameter, leakage)
    if min(diameter, leakage) < 1300:  # beyond, the smaller argument is returned
        assert found <= truth * (1 + mpmath.mpf(2) ** -40) + mpmath.mpf(10) ** -289


def test_phi_at_its_ends() -> None:
    assert phi(math.inf, 0.3) == 0.3
    assert phi(0.0, 0.3) == phi(0.3, 0.0) == 0.0
    assert phi(2000.0, 3000.0) <= 2000.0
    assert phi(math.inf, math.inf) == math.inf


def passed(edges: Mapping[tuple[int, int], float], n: int, epsilon: float) -> FloatArray:
    """Messages on any pairwise network, from the sum of all budgets downwards, one edge at a time."""
    arcs = {**edges, **{(j, i): d for (i, j), d in edges.items()}}
    message = dict.fromkeys(arcs, n * epsilon)
    for _ in range(500):
        for j, i in arcs:
            incoming = [float(phi(arcs[k, j], message[k, j])) for k in range(n) if (k, j) in arcs and k != i]
            message[j, i] = min(message[j, i], epsilon + sum(incoming))
    return np.array(
        [epsilon + sum(float(phi(arcs[j, i], message[j, i])) for j in range(n) if (j, i) in arcs) for i in range(n)]
    )


@pytest.mark.slow
def test_worked_networks() -> None:
    ring = {(i, (i + 1) % 5): 1.0 for i in range(5)}
    assert passed(ring, 5, 0.1) == pytest.approx(np.full(5, 0.16484263860807596), abs=1e-9)
    star = {(0, i): 0.5 * i for i in range(1, 6)}
    expected = [
        0.548633954030957,
        0.26476999504407345,
        0.3217880036072519,
        0.3702386209805648,
        0.4101340192951219,
        0.442122047846941,
    ]
    assert passed(star, 6, 0.2) == pytest.approx(expected, abs=1e-9)


def test_worked_chain() -> None:
    model = MarkovChain([[0.9, 0.1], [0.2, 0.8]], 5)
    expected = [0.28471804240822574, 0.3302033113292324, 0.34481413070915923, 0.3302033113292324, 0.28471804240822574]
    assert model.leakage(0.1, "messages") == pytest.approx(expected, abs=1e-9)
    assert model.leakage(0.1, "long-edges") == pytest.approx(expected, abs=1e-9)


def test_worked_long_edges() -> None:
    model = MarkovChain(BIRTH_DEATH, 9)
    assert model.leakage(0.1, "messages") == pytest.approx(np.full(9, 0.9), abs=1e-9)
    half = [0.4548694527370635, 0.5488241632941762, 0.6365789540427687, 0.6739753654970022]
    expected = [*half, 0.698940500901088, *half[::-1]]
    assert model.leakage(0.1, "long-edges") == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("matrix", "n", "epsilon"),
    corners(
        [
            (BIRTH_DEATH, 40, 0.01),
            ([[0.9, 0.1], [0.2, 0.8]], 60, 1e-6),
            ([[0.999, 0.001], [0.0005, 0.9995]], 60, 0.3),
            ([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [1e-7, 0.5, 0.4999999]], 25, 0.05),
            ([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]], 25, 2.0),
        ],
        1,
        3,
    ),
)
def test_against_sixty_digits(matrix: list[list[float]], n: int, epsilon: float) -> None:
    """Never below the exact recursion, and above it by less than a part in 1e11."""
    model = MarkovChain(matrix, n)
    for method, steps in (("messages", [1]), ("long-edges", range(1, n))):
        found, truth = model.leakage(epsilon, method), mp_messages(matrix, n, epsilon, steps)
        assert all(value >= exact for value, exact in zip(found, truth, strict=True))
        assert all(value <= exact * (1 + 1e-11) for value, exact in zip(found, truth, strict=True))


def direct(n: int, epsilon: float, edges: Edges) -> FloatArray:
    """The recursion of the docstring, one record after the other, without any shortcut."""
    rho = np.zeros(n)
    for k in range(1, n):
        options = [
            (m - 1) * epsilon + float(phi(d, m * epsilon + rho[k - m]))
            for m, d in zip(edges.steps.tolist(), edges.diameters.tolist(), strict=True)
            if m <= k
        ]
        rho[k] = min(k * epsilon, *options)
    return epsilon + rho + rho[::-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "diameters", "epsilon"),
    corners(
        [
            ([1], [14.0], 0.001),
            ([1], [14.0], 1e-5),
            ([1, 2, 3], [math.inf, 11.0, 9.0], 1e-4),
            ([1, 7], [math.inf, 13.0], 1e-3),
            ([1, 2], [3.0, 1.0], 0.5),
        ],
        *(0, 1, 3),
    ),
)
def test_slow_chains_are_continued_without_loss(steps: list[int], diameters: list[float], epsilon: float) -> None:
    """Beyond the records that are followed one by one: never below the recursion, and not far above."""
    n = 9000
    edges = Edges(np.array(steps), np.array(diameters), np.zeros((0, len(steps))))
    found, truth = along_chain(n, epsilon, edges).expand(), direct(n, epsilon, edges)
    assert (found >= truth * (1 - 1e-10)).all()
    assert (found <= truth * (1 + 2e-3)).all()
    assert found[n // 2] <= epsilon + 2 * fixed_point(epsilon, edges) * (1 + 1e-12)


def test_different_budgets_agree_with_equal_ones() -> None:
    for matrix, n in ((BIRTH_DEATH, 30), ([[0.9, 0.1], [0.2, 0.8]], 30)):
        model = MarkovChain(matrix, n)
        almost = np.full(n, 0.1)
        almost[-1] += 1e-13
        for method in ("messages", "long-edges"):
            assert model.leakage(almost, method) == pytest.approx(model.leakage(0.1, method), rel=1e-9)


@pytest.mark.slow
def test_long_chains_with_different_budgets_against_forty_digits() -> None:
    """Blocks of maps side by side: edges that nothing passes, that everything passes, records without a budget."""
    n, rng = 8_500, np.random.default_rng(4)
    epsilon = rng.choice([0.0, 1e-9, 0.05, 2.0], n, p=[0.3, 0.2, 0.4, 0.1])
    head = rng.choice([0.0, 1e-3, 2.0, 30.0, np.inf], (n - 1, 1), p=[0.01, 0.04, 0.5, 0.4, 0.05])
    edges = Edges(np.array([1]), np.array([1.0]), head)
    found = along_chain(n, epsilon, edges).expand()
    with mpmath.workdps(40):
        budgets, passed = (
            [mpmath.mpf(float(e)) for e in epsilon],
            [mpmath.tanh(mpmath.mpf(float(d)) / 4) for d in head[:, 0]],
        )
        sides = []
        for one, t in ((budgets[::-1], passed[::-1]), (budgets, passed)):
            rho = [mpmath.mpf(0)]
            for k in range(n - 1):
                rho.append(4 * mpmath.atanh(t[k] * mpmath.tanh((one[k] + rho[-1]) / 4)))
            sides.append(rho)
        exact = [float(e + a + b) for e, a, b in zip(budgets, sides[0][::-1], sides[1], strict=True)]
    np.testing.assert_array_less(np.array(exact) * (1 - 1e-15), found + 1e-300)
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_edges_that_single_steps_replace() -> None:
    """Two symmetric states: a chain of 9,000 steps gives what its long edges do; kernels with zeros need theirs."""
    rate = 1e-4
    steps = np.array([1, 2, 700, 8_000])
    diameters = 4 * np.arctanh((1 - 2 * rate) ** steps) * (1 + 1e-13)
    edges = Edges(steps, diameters, np.zeros((0, 4)))
    assert edges.replaceable().tolist() == [True] * 4
    alone = along_chain(9_000, 1e-3, edges.keep(np.array([0]))).expand()
    np.testing.assert_allclose(alone, along_chain(9_000, 1e-3, edges).expand(), rtol=1e-9)
    shorter = Edges(steps, diameters * np.array([1, 1, 0.9, 1]), edges.head)
    assert shorter.replaceable().tolist() == [True, True, False, True]
    assert not Edges(steps, np.array([np.inf, 5, 1, 0.1]), edges.head).replaceable().any()
    assert not Edges(steps, diameters, np.zeros((1, 4))).replaceable().any()
    chain = MarkovChain([[1 - rate, rate], [rate, 1 - rate]], 9_000)
    np.testing.assert_allclose(chain.leakage(1e-3), np.minimum(chain.leakage(1e-3, "messages"), chain.leakage(1e-3)))


def test_first_records_with_fewer_states() -> None:
    """A known first record leaks nothing to the others: the rest is a chain that starts one step later."""
    matrix = [[0.9, 0.1], [0.2, 0.8]]
    known = MarkovChain(matrix, 6, [1.0, 0.0])
    rest = MarkovChain(matrix, 5, [0.9, 0.1])
    assert known.leakage(0.1, "messages")[1:] == pytest.approx(rest.leakage(0.1, "messages"), rel=1e-12)


def test_a_fixed_path_of_supports() -> None:
    """A periodic chain that starts in one class has a known class everywhere."""
    matrix = [[0, 0, 0.5, 0.5], [0, 0, 0.2, 0.8], [0.7, 0.3, 0, 0], [0.6, 0.4, 0, 0]]
    model = MarkovChain(matrix, 200, [0.5, 0.5, 0, 0])
    assert model.leakage(0.01, "messages").max() < 0.05
    both = MarkovChain(matrix, 200, [0.25, 0.25, 0.25, 0.25])
    assert both.leakage(0.01, "messages").max() == pytest.approx(2.0)


def test_projective_diameter() -> None:
    def diameter(rows: object) -> float:
        return projective_diameter(np.asarray(rows, dtype=np.float64))

    assert diameter([[0.9, 0.1], [0.2, 0.8]]) == pytest.approx(3.58351893845611, abs=1e-12)
    assert diameter([[2.0, 4.0], [1.0, 2.0]]) < 1e-13
    assert diameter([[1.0, 0.0], [0.0, 1.0]]) == math.inf
    assert diameter([[1.0, 0.0], [2.0, 0.0]]) == 0.0
    assert diameter([[0.0, 0.0], [2.0, 1.0]]) == 0.0
    rng = np.random.default_rng(3)
    weights = rng.random((3, 4))
    moved = weights * rng.random(4) * rng.random((3, 1))
    assert diameter(moved.T) == pytest.approx(diameter(weights), rel=1e-12)


@for_each("bad", [[1.0, 2.0], [[1.0, -1.0]], [[math.nan, 1.0]], [[math.inf, 1.0]]])
def test_projective_diameter_refuses(bad: object) -> None:
    with pytest.raises(ArgumentError, match="potential"):
        projective_diameter(bad)  # type: ignore[arg-type]


@pytest.mark.slow
@for_each("matrix", [BIRTH_DEATH, [[0.95, 0.05], [0.05, 0.95]]])
def test_many_records_with_different_budgets(matrix: list[list[float]]) -> None:
    """Sweeps that stop early and try fewer lengths: never below the exact recursion, and close to it."""
    n = 60_000
    model, almost = MarkovChain(matrix, n), np.full(n, 0.01)
    almost[-1] += 1e-12
    for method in ("messages", "long-edges", "quilt"):
        found, exact = model.leakage(almost, method), model.leakage(0.01, method)
        assert (found >= exact * (1 - 1e-9)).all()
        assert found.mean() <= exact.mean() * 1.1


def test_two_records_that_hardly_depend_on_each_other_leak_less_than_two_budgets() -> None:
    """The other record tells ``ln(0.6 e^(1/2) + 0.4) - ln(0.4 e^(1/2) + 0.6)``; the bound knows its diameter alone."""
    found = MarkovChain([[0.6, 0.4], [0.4, 0.6]], 2).leakage(0.5, method="messages")
    told = math.log((0.6 * math.exp(0.5) + 0.4) / (0.4 * math.exp(0.5) + 0.6))
    assert all(0.5 + told <= found)
    assert all(found <= 1.01 * (0.5 + told))
