"""Variance inflation of fields and dependency graphs: worked values, exact enumeration, certificates."""

import itertools
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from graphs import ArgumentError, DependencyGraph, MarkovField, RouteUnavailable
from graphs.inflation.colouring import colouring_inflation, fractional_chromatic_number, greedy_colouring
from graphs.inflation.influences import burn_in, dominating, interdependence, interdependence_squares
from tests.cases import for_each


def interdependence_inflation(matrix: sparse.csr_array, is_record: Any) -> float:
    weights = is_record.astype(float)
    return float(interdependence_squares(matrix, weights, np.zeros(len(weights), dtype=np.int64))[0] / weights.sum())


def of_graph(graph: "nx.Graph[Any]", strength: float) -> sparse.csr_array:
    return sparse.csr_array(strength * nx.to_numpy_array(graph))


def test_ring_and_star() -> None:
    ring, star = nx.cycle_graph(12), nx.star_graph(11)
    every = np.ones(12, dtype=bool)
    assert interdependence_inflation(of_graph(ring, 0.3), every) == pytest.approx(5, abs=1e-9)
    assert interdependence_inflation(of_graph(star, 0.25), every) == pytest.approx(28 / 3, abs=1e-9)


def test_against_dense_inverses_latent_nodes_and_asymmetry_included() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        m = int(rng.integers(2, 9))
        matrix = rng.uniform(0, 1, (m, m)) * (rng.random((m, m)) < 0.6)
        if rng.random() < 0.5:
            matrix = (matrix + matrix.T) / 2
        matrix *= rng.uniform(0.2, 0.95) / max(np.abs(np.linalg.eigvals(matrix)).max(), 1e-3)
        is_record = rng.random(m) < 0.8
        is_record[0] = True
        w = np.linalg.inv(np.eye(m) - matrix.T) @ is_record
        first, second = (w[is_record] ** 2).mean(), 2 * w[is_record].mean()
        found = interdependence_inflation(sparse.csr_array(matrix), is_record)
        assert min(first, second) * (1 - 1e-12) <= found <= min(first, second) * (1 + 1e-3)
        if is_record.all():
            assert found <= min(first, second) * (1 + 1e-8)


def test_the_certificate_holds_in_exact_arithmetic() -> None:
    rng = np.random.default_rng(2)
    for seed in range(20):
        graph = nx.gnm_random_graph(12, 18, seed=seed)
        matrix = of_graph(graph, float(rng.uniform(0.01, 0.25)))
        bound = dominating(matrix, np.ones(12))
        if bound is None:
            assert np.linalg.eigvalsh(matrix.toarray()).max() > 0.999
            continue
        v = [Fraction(float(x)) for x in bound]
        dense = matrix.toarray().tolist()
        assert all(v[i] - sum(Fraction(dense[j][i]) * v[j] for j in range(12)) >= 1 for i in range(12)), (
            "v >= C^T v + 1"
        )


def test_a_spectral_radius_of_one_is_refused() -> None:
    ring = nx.cycle_graph(12)
    assert dominating(of_graph(ring, 0.5), np.ones(12)) is None
    assert interdependence_inflation(of_graph(ring, 0.6), np.ones(12, dtype=bool)) == np.inf
    field = MarkovField.ising(ring, coupling=2.0)
    with pytest.raises(RouteUnavailable, match="spectral radius"):
        field.variance_inflation("interdependence")
    assert field.variance_inflation() == 12


def test_parallel_edges_add_up() -> None:
    table = interdependence(np.array([[0, 1], [0, 1]]), np.array([1.0, 2.0]), 2)
    np.testing.assert_allclose(table.toarray(), np.tanh(0.75) * np.array([[0, 1], [1, 0]]), rtol=1e-12)


def test_strengths_bound_how_far_a_neighbour_moves_a_law() -> None:
    """C_ij = tanh(Delta_ij / 4) against the largest total variation distance, by enumeration."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        tables = {edge: np.exp(rng.standard_normal((3, 3))) for edge in [(0, 1), (1, 2), (0, 2)]}
        field = MarkovField(nx.complete_graph(3), tables, rng.uniform(0.1, 1, (3, 3)))
        law, strengths = field.joint(), field._interdependence.toarray()
        for i, j in itertools.permutations(range(3), 2):
            (k,) = {0, 1, 2} - {i, j}
            rows = law.transpose(k, j, i)
            rows = rows / rows.sum(axis=-1, keepdims=True)
            moved = max(np.abs(rows[c, a] - rows[c, b]).sum() / 2 for c in range(3) for a in range(3) for b in range(3))
            assert moved <= strengths[i, j] + 1e-12


def tail(law: np.ndarray, values: np.ndarray, inflation: float) -> float:
    """Return the largest P(|q - E q| >= t) / (2 exp(-2 n t^2 / Lambda)) over t, q the mean of `values`."""
    n = law.ndim
    means = sum(values[i].reshape([-1 if k == i else 1 for k in range(n)]) for i in range(n)) / n
    off = np.abs(means - (law * means).sum()).ravel()
    order = np.argsort(-off)
    beyond = np.cumsum(law.ravel()[order])
    return float((beyond / (2 * np.exp(-2 * n * off[order] ** 2 / inflation))).max())


@pytest.mark.slow
def test_no_mean_fluctuates_more_by_exact_enumeration() -> None:
    rng = np.random.default_rng(4)
    for seed in range(60):
        graph: nx.Graph[Any] = nx.gnm_random_graph(7, int(rng.integers(3, 12)), seed=seed)
        strength = rng.normal(0, rng.choice([0.1, 0.3, 1.0]), graph.number_of_edges())
        field = MarkovField.ising(graph, strength, rng.normal(0, 0.5, 7), latent=[6] if seed % 3 == 0 else [])
        law, n = field.joint(), field.n
        for method in field.inflation_methods:
            try:
                inflation = field.variance_inflation(method)
            except RouteUnavailable:
                continue
            for _ in range(10):
                values = rng.integers(0, 2, (n, 2)).astype(float)
                assert tail(law, values, inflation) <= 1


def test_ignoring_the_dependence_is_caught() -> None:
    """Twelve spins that nearly always agree: a mean is 0 or 1, which no Lambda of 1 allows."""
    field = MarkovField.ising(nx.path_graph(10), 2.5)
    assert tail(field.joint(), np.tile([0.0, 1.0], (10, 1)), 1.0) > 1
    assert tail(field.joint(), np.tile([0.0, 1.0], (10, 1)), field.variance_inflation()) <= 1


def test_colourings_are_proper_and_use_at_most_degree_plus_one() -> None:
    for seed in range(40):
        graph = nx.gnm_random_graph(15, 10 + seed, seed=seed)
        edges = np.array(list(graph.edges), dtype=np.int64)
        colours = greedy_colouring(edges, 15)
        assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
        assert (colours <= [graph.degree[v] for v in range(15)]).all()


@for_each(
    ("graph", "number"),
    [(nx.cycle_graph(7), 7 / 3), (nx.petersen_graph(), 2.5), (nx.complete_graph(5), 5), (nx.path_graph(6), 2)],
)
def test_fractional_chromatic_numbers(graph: Any, number: float) -> None:
    edges = np.array(list(graph.edges))
    assert fractional_chromatic_number(edges, len(graph)) == pytest.approx(number, abs=1e-9)
    assert fractional_chromatic_number(edges, len(graph)) >= number


def test_inflation_of_components_adds_up() -> None:
    """A ring of five (5/2 a record), two joined records (2 each), one alone: (5 * 5/2 + 2 * 2 + 1) / 8."""
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [5, 6]])
    component = np.array([0, 0, 0, 0, 0, 1, 1, 2])
    expected = (min(5 * 2.5, (2 * np.sqrt(2) + 1) ** 2) + 4 + 1) / 8
    assert colouring_inflation(edges, component) == pytest.approx(expected, abs=1e-9)


def test_dependency_graphs_by_exact_enumeration() -> None:
    """Records that are functions of shared coins: no mean fluctuates more than the colouring says."""
    rng = np.random.default_rng(5)
    for seed in range(10):
        graph = nx.gnm_random_graph(6, int(rng.integers(1, 8)), seed=seed)
        edges = list(graph.edges)
        model = DependencyGraph(graph)
        coins = np.array(list(itertools.product([0, 1], repeat=len(edges) + 6)))
        rules = rng.integers(0, 2, (6, 2 ** (len(edges) + 1)))
        states = []
        for v in range(6):
            seen = [k for k, edge in enumerate(edges) if v in edge] + [len(edges) + v]
            states.append(rules[v][coins[:, seen] @ (1 << np.arange(len(seen)))])
        law = np.zeros((2,) * 6)
        np.add.at(law, tuple(states), 1 / len(coins))
        for method in model.inflation_methods:
            for _ in range(6):
                values = rng.integers(0, 2, (6, 2)).astype(float)
                assert tail(law, values, model.variance_inflation(method)) <= 1


def test_dependency_graph_leakage() -> None:
    model = DependencyGraph(nx.path_graph(["a", "b", "c", "d"]), records=["d", "c", "b", "a"])
    epsilon = np.array([0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose(model.leakage(epsilon), 1.0)
    np.testing.assert_allclose(model.leakage(epsilon, adversary="uninformed"), [0.7, 0.9, 0.6, 0.3])
    assert model.records == ("d", "c", "b", "a")
    with pytest.raises(RouteUnavailable, match="far apart"):
        model.leakage(0.1, "quilt")
    with pytest.raises(RouteUnavailable, match="means"):
        model.variance_inflation("colouring", bounded_differences=True)
    with pytest.raises(ArgumentError, match="all nodes of the graph"):
        DependencyGraph(nx.path_graph(3), records=[0, 1])
    alone = DependencyGraph(([], 3))
    assert alone.leakage([0.1, 0.2, 0.3], "quilt").tolist() == [0.1, 0.2, 0.3]
    assert alone.variance_inflation() == 1
    assert (
        DependencyGraph((np.array([[0, 1], [1, 0]]), 2)).fingerprint()
        == DependencyGraph(nx.path_graph(2)).fingerprint()
    )
    assert model.sample(np.random.default_rng(0)).shape == (4,)


def test_burn_in_bounds_the_distance_of_a_sweep_from_the_law() -> None:
    """Three spins: total variation distance after k sweeps, from the exact transition matrix of a sweep."""
    for coupling in (0.1, 0.3, 0.45):
        field = MarkovField.ising(nx.path_graph(3), coupling, [0.2, -0.1, 0.4])
        law = field.joint().ravel()
        sweep = np.eye(8)
        for node in range(3):
            table = law.reshape(2, 2, 2)
            given = table / table.sum(axis=node, keepdims=True)
            update = np.zeros((8, 8))
            for state in itertools.product([0, 1], repeat=3):
                for new in (0, 1):
                    target = (*state[:node], new, *state[node + 1 :])
                    update[np.ravel_multi_index(state, (2, 2, 2)), np.ravel_multi_index(target, (2, 2, 2))] = given[
                        target
                    ]
            sweep = sweep @ update
        for distance in (0.1, 1e-3, 1e-6):
            sweeps = burn_in(field._interdependence, distance)
            assert sweeps is not None
            reached = np.linalg.matrix_power(sweep, sweeps)
            assert np.abs(reached - law).sum(axis=1).max() / 2 <= distance
