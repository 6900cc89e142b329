"""Chains whose probabilities are close to the smallest floats: sound bounds, or an error with a name."""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import (
    ArgumentError,
    BayesianNetwork,
    FactorGraph,
    HiddenMarkov,
    MarkovChain,
    MarkovField,
    RouteUnavailable,
    exact_leakage,
)
from graphs.leakage.influence import distances_from
from graphs.leakage.spectral import (
    Wide,
    is_reversible,
    published_budget,
    published_quilts,
    spectral_gap,
    stationary_law,
)
from graphs.routes import ROUTES
from tests.cases import for_each
from tests.sizes import sizes

RARE = [[0.5, 0.5, 0.0], [1e-200, 0.5, 0.5], [0.0, 1e-200, 1.0]]
UNSEEN = [[1.0, 1e-200, 0.0], [0.5, 0.5, 1e-200], [0.0, 0.5, 0.5]]
SOUND = [name for name in MarkovChain.methods if not ROUTES[name].published]
PUBLISHED = [name for name in MarkovChain.methods if ROUTES[name].published]


def exact_rows(matrix: Any) -> list[list[Fraction]]:
    rows = [[Fraction(float(p)) for p in row] for row in matrix]
    return [[p / sum(row, start=Fraction(0)) for p in row] for row in rows]


def exact_law(matrix: Any) -> list[Fraction]:
    """Stationary law of an irreducible chain, as determinants of what is left of I - P (Markov chain tree theorem)."""
    rows = exact_rows(matrix)
    states = range(len(rows))
    laplacian = [
        [
            sum((p for k, p in enumerate(rows[i]) if k != i), start=Fraction(0)) if i == j else -rows[i][j]
            for j in states
        ]
        for i in states
    ]
    weights = [determinant([[laplacian[i][j] for j in states if j != k] for i in states if i != k]) for k in states]
    return [w / sum(weights, start=Fraction(0)) for w in weights]


def determinant(matrix: list[list[Fraction]]) -> Fraction:
    if not matrix:
        return Fraction(1)
    minors = ([row[:j] + row[j + 1 :] for row in matrix[1:]] for j in range(len(matrix)))
    signed = ((-1) ** j * matrix[0][j] * determinant(minor) for j, minor in enumerate(minors))
    return sum(signed, start=Fraction(0))


def exact_worst(matrix: Any, initial: list[Fraction], n: int, epsilon: float, informed: bool) -> list[float]:
    """What the worst mechanism leaks about each record, whatever is known, from probabilities in fractions.

    The leakage about a record depends on laws given its state and the known ones alone, so these all get the same
    weight in the table that the linear program sees: none of them vanishes there.
    """
    rows = exact_rows(matrix)
    paths = {
        path: initial[path[0]] * math.prod(rows[a][b] for a, b in itertools.pairwise(path))
        for path in itertools.product(range(len(rows)), repeat=n)
    }
    worst = []
    for record in range(n):
        others = [j for j in range(n) if j != record]
        sets = [known for size in range(n) for known in itertools.combinations(others, size)]
        found = 0.0
        for known in sets if informed else [()]:
            given_states: dict[tuple[int, ...], Fraction] = {}
            for path, p in paths.items():
                key = tuple(path[j] for j in (record, *known))
                given_states[key] = given_states.get(key, Fraction(0)) + p
            table = np.zeros((len(rows),) * n)
            for path, p in paths.items():
                total = given_states[tuple(path[j] for j in (record, *known))]
                table[path] = float(p / total) if total else 0.0
            found = max(found, exact_leakage(table / table.sum(), epsilon, record, known))
        worst.append(found)
    return worst


def test_numbers_of_any_magnitude() -> None:
    """Against fractions: products far below and above the range of floats, sums of far apart terms, zeros."""
    rng = np.random.default_rng(3)
    values = 10.0 ** rng.uniform(-300, 300, 40)
    first, second, third, fourth = (Wide.of(part) for part in values.reshape(4, 10))
    found = (first * second) * (third + fourth) / (first * second * third)
    for fraction, exponent, c, d in zip(found.fraction, found.exponent, values[20:30], values[30:], strict=True):
        truth = 1 + Fraction(float(d)) / Fraction(float(c))
        assert abs(Fraction(float(fraction)) * Fraction(2) ** int(exponent) / truth - 1) < Fraction(2) ** -49
    zero = Wide.of(np.zeros(3))
    assert (zero * zero + zero).floats().tolist() == [0.0, 0.0, 0.0]
    assert float((zero * zero).sum().floats()) == 0.0
    assert (zero + Wide.of(np.full(3, 1e-300)) * Wide.of(np.full(3, 1e-300))).fraction.min() >= 0.5
    assert (first * second * first * second * Wide.of(np.full(10, 1e-300))).fraction.min() >= 0.5


@for_each("seed", range(8))
def test_stationary_law_of_rare_transitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 5))
    matrix = 10.0 ** rng.uniform(-300, 0, (states, states))
    matrix[np.arange(states), rng.integers(0, states, states)] = 1.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    law, error = stationary_law(matrix)
    for found, truth in zip(law, exact_law(matrix), strict=True):
        if truth > Fraction(10) ** -300:
            assert abs(Fraction(float(found)) / truth - 1) <= error
        else:
            assert 0 <= found < 1.1e-300


def test_balanced_law_of_paths_that_floats_do_not_see() -> None:
    """Two states joined through two more with probability 1e-400 either way, and so equally likely."""
    a = 1e-200
    matrix = np.array([[1, 0, a, 0], [0, 1, 0, a], [1, a, 0, 0], [a, 1, 0, 0]])
    assert stationary_law(matrix)[0] == pytest.approx([0.5, 0.5, a / 2, a / 2], rel=1e-12)


def test_worst_function_of_a_nearly_absorbing_chain() -> None:
    """f = exp(1{x0 = 0} + 1{x1 = 0}): ln((e^2 + e) / 2) between the two states of the first record."""
    matrix, epsilon = [[0.5, 0.5], [1e-270, 1.0]], 1.0
    truth = math.log((math.exp(2) + math.e) / 2)
    assert exact_worst(matrix, exact_law(matrix), 2, epsilon, informed=False)[0] == pytest.approx(truth, abs=1e-6)
    model = MarkovChain(matrix, 2)
    assert model.initial == pytest.approx([2e-270, 1.0], rel=1e-12)
    for method in (*SOUND, "best"):
        assert model.leakage(epsilon, method)[0] >= truth


@for_each("matrix", [[[0.5, 0.5], [1e-310, 1.0]], [[0.5, 0.5], [5e-324, 1.0]]])
def test_subnormal_probabilities_are_refused(matrix: list[list[float]]) -> None:
    with pytest.raises(ArgumentError, match=r"transition must be probabilities that are 0 or at least 2.3e-308"):
        MarkovChain(matrix, 2)
    with pytest.raises(ArgumentError, match=r"initial must be .*; got entry 0, which is"):
        MarkovChain([[0.5, 0.5], [0.5, 0.5]], 2, matrix[1])
    with pytest.raises(ArgumentError, match=r"emission must be .*; got entry"):
        HiddenMarkov([[0.5, 0.5], [0.5, 0.5]], 2, emission=matrix)


@pytest.mark.slow
@for_each("matrix", [RARE, UNSEEN, [[0.5, 0.5], [1e-300, 1.0]]])
def test_stationary_laws_out_of_range(matrix: list[list[float]]) -> None:
    with pytest.raises(ArgumentError, match="None for a chain with a stationary law with probabilities below 1e-280"):
        MarkovChain(matrix, 2)
    states = len(matrix)
    model = MarkovChain(matrix, 3, np.full(states, 1 / states))
    truth = exact_worst(matrix, [Fraction(1, states)] * states, 3, 1.0, informed=True)
    for method in (*SOUND, "best"):
        assert (model.leakage(1.0, method) >= np.array(truth) - 1e-6).all()
    assert not model.is_reversible
    for asked in (lambda: model.stationary, lambda: model.spectral_gap):
        with pytest.raises(
            ArgumentError, match=r"transition must be .*; got a chain with a stationary law with probabilities below"
        ):
            asked()
    with pytest.raises(RouteUnavailable, match="stationary law with probabilities below 1e-280"):
        model.leakage(1.0, "spectral-published")
    assert 1 <= model.variance_inflation() <= 3
    assert 1 <= model.variance_inflation(bounded_differences=True) <= 3


def test_rare_starts_stay_different_from_rare_laws() -> None:
    """Starting in the frequent state for sure is not starting in a law that has 1e-20 of the other."""
    matrix = [[0.5, 0.5], [5e-21, 1.0]]
    assert MarkovChain(matrix, 2).is_stationary
    assert MarkovChain(matrix, 2, stationary_law(np.array(matrix))[0]).is_stationary
    assert not MarkovChain(matrix, 2, [0.0, 1.0]).is_stationary
    assert not MarkovChain(matrix, 2, [1e-15, 1.0]).is_stationary


def test_published_route_at_the_smallest_budgets() -> None:
    assert published_budget(5e-324, 0.3, 1 / 3, 10**6) == 0.0
    with pytest.raises(ArgumentError, match=r"epsilon must be .*; got 5e-324"):
        published_quilts(5e-324, 0.3, 1 / 3, 0.05)
    found = float(MarkovChain([[0.9, 0.1], [0.2, 0.8]], 100).leakage(5e-324, "spectral-published")[0])
    assert published_budget(found * (1 - 1e-9), 0.3, 1 / 3, 100) == 0.0
    assert published_budget(found * (1 + 1e-9), 0.3, 1 / 3, 100) > 0.0
    with pytest.raises(RouteUnavailable, match="too short"):
        MarkovChain([[0.5, 0.5], [1e-270, 1.0]], 100).leakage(5e-324, "spectral-published")


def test_detailed_balance_of_rare_states() -> None:
    """A birth-death chain is reversible; flows of 1e-320 do not hide that one with a rare detour is not."""
    chain = np.array([[1.0, 1e-130, 0.0], [0.5, 0.5, 1e-130], [0.0, 0.5, 0.5]])
    law = stationary_law(chain)[0]
    assert is_reversible(chain, law)
    assert spectral_gap(chain, law) == pytest.approx(0.5, abs=1e-12)
    detour = chain.copy()
    detour[2, 0] = 1e-60
    assert not is_reversible(detour, stationary_law(detour)[0])


def test_distance_from_the_law_through_rare_states() -> None:
    """While a probability is below 1e-280 the distance is infinite; ln 1e270 is enlarged by its possible error."""
    matrix = np.full((2, 2), 0.5)
    law = np.array([0.5, 0.5])
    far = distances_from(law, 0.0, matrix, np.array([1e-290, 1.0]), 2)
    assert far[0] == math.inf
    near = distances_from(law, 0.0, matrix, np.array([1e-270, 1.0]), 2)
    assert near[0] == pytest.approx(270 * math.log(10), rel=1e-12)
    assert near[0] >= 270 * math.log(10) * (1 + 8 * 2.0**-53)


def test_rare_starts_of_short_chains() -> None:
    """Where the law of a record has lost digits, quilts claim nothing and the other routes remain."""
    model = MarkovChain([[1.0, 1e-200], [0.5, 0.5]], 3, [1.0, 1e-300])
    initial = [Fraction(float(p)) for p in model.initial]
    truth = np.array(exact_worst(model.transition, initial, 3, 0.5, informed=True))
    for method in (*SOUND, "best"):
        assert (model.leakage(0.5, method) >= truth - 1e-6).all()


def test_tables_do_not_lose_joint_states() -> None:
    assert MarkovChain([[0.5, 0.5], [1e-150, 1.0]], 3, [0.0, 1.0]).joint()[1, 0, 1] == pytest.approx(5e-151)
    with pytest.raises(ArgumentError, match="joint states that are possible with a probability below 1e-280"):
        MarkovChain([[1.0, 1e-200], [1e-200, 1.0]], 3, [1.0, 0.0]).joint()


@st.composite
def chains(draw: st.DrawFn) -> tuple[np.ndarray[Any, np.dtype[np.float64]], Any, int]:
    """A matrix with entries from 1e-310 to 1, and zeros; a start of the same kind, or none; two or three records."""
    states = draw(st.integers(2, 3))
    entry = st.one_of(st.just(0.0), st.just(1.0), st.floats(-310, 0).map(lambda u: 10.0**u))

    def law() -> list[float]:
        values = draw(st.lists(entry, min_size=states, max_size=states))
        values[draw(st.integers(0, states - 1))] = 1.0
        return [value / math.fsum(values) for value in values]

    matrix = np.array([law() for _ in range(states)])
    return matrix, law() if draw(st.booleans()) else None, draw(st.integers(2, 3))


@sizes("examples", 6, 80)
def test_every_bound_holds_or_an_error_has_a_name(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(chains(), st.sampled_from([0.05, 1.0, 3.0]))
    def check(chain: tuple[Any, Any, int], epsilon: float) -> None:
        matrix, initial, n = chain
        try:
            model = MarkovChain(matrix, n, initial)
        except ArgumentError:
            return
        start = exact_law(matrix) if initial is None else exact_rows([initial])[0]
        for adversary, informed in (("informed", True), ("uninformed", False)):
            truth = np.array(exact_worst(matrix, start, n, epsilon, informed))
            for method in (*SOUND, "best"):
                found = model.leakage(epsilon, method, adversary)  # type: ignore[arg-type]
                assert (found >= truth - 1e-6).all(), (method, adversary)
                assert (found <= n * epsilon * (1 + 1e-12)).all()
        for method in PUBLISHED:
            with contextlib.suppress(RouteUnavailable):
                assert (model.leakage(epsilon, method) >= 0).all()
        assert (model.leakage(5e-324) <= n * 5e-324).all()
        assert 1 <= model.variance_inflation() <= n
        assert 1 <= model.variance_inflation(bounded_differences=True) <= n

    check()


HEADS = [[0.9, 0.1], [0.1, 0.9]]


@for_each(
    "build",
    [
        lambda: BayesianNetwork(nx.DiGraph([(0, 1)]), {0: [1.0, 5e-324], 1: HEADS}),
        lambda: MarkovField(nx.path_graph(2), HEADS, node_potentials=[1.0, 5e-324]),
        lambda: FactorGraph([2, 2], [((0,), [1e200, 1e-200]), ((0, 1), HEADS)]),
        lambda: FactorGraph([2, 2], [((0, 1), [[1e20, 1e-303], [1e20, 1.05e-303]])]),
    ],
)
def test_states_that_floats_lose_are_refused(build: Any) -> None:
    """A rare state is possible: records that depend on each other would pass for independent without it."""
    with pytest.raises(ArgumentError, match="positive entries below"):
        build().leakage(1.0)


def test_tables_of_any_one_magnitude() -> None:
    expected = FactorGraph([2, 2], [((0, 1), HEADS)]).leakage(1.0)
    for scale in (1e-307, 1e300):
        found = FactorGraph([2, 2], [((0, 1), scale * np.array(HEADS))]).leakage(1.0)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
