"""Messages on any network: worked values, a slow exact twin, budgets and diameters of every kind."""

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from mpmath import mp, mpf

from graphs.leakage.loopy_messages import Contraction, Map, Rounds, Segments, Shrinkage, settled
from graphs.leakage.network_messages import Bands, Propagation, Sweeps, propagate
from graphs.structure.incidence import Incidence
from graphs.structure.spanning_forest import Branches, Rooted
from tests.cases import for_each
from tests.sizes import corners


def pairwise(edges: Any, diameters: Any, n: int) -> Incidence:
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Incidence.pairwise(ends, np.broadcast_to(np.asarray(diameters, dtype=float), (len(ends),)), n)


def exact_phi(diameter: float, leakage: Any) -> Any:
    if np.isinf(diameter):
        return leakage
    return 4 * mp.atanh(mp.tanh(mpf(diameter) / 4) * mp.tanh(mpf(leakage) / 4))


def twin(incidence: Incidence, epsilon: np.ndarray, rounds: int) -> list[Any]:
    """Messages as they are defined, in 40 digits, with caps from deleting nodes and factors one at a time."""
    budgets = [mpf(float(e)) for e in epsilon]
    rows = list(zip(incidence.nodes.tolist(), incidence.factors.tolist(), incidence.diameters.tolist(), strict=True))
    members: dict[int, list[int]] = {}
    graph: nx.Graph[Any] = nx.empty_graph(incidence.n_nodes)
    for node, factor, _ in rows:
        members.setdefault(factor, []).append(node)
        graph.add_edge(node, ("factor", factor))

    def weight(without: Any, start: Any) -> Any:
        rest = graph.copy()
        if without is not None:
            rest.remove_node(without)
        return sum((budgets[v] for v in nx.node_connected_component(rest, start) if isinstance(v, int)), mpf(0))

    caps = {(f, i): weight(i, ("factor", f)) for i, f, _ in rows}
    own_caps = {(i, f): weight(("factor", f), i) for i, f, _ in rows}
    messages = {(f, i): exact_phi(d, caps[f, i]) for i, f, d in rows}
    for _ in range(rounds):
        leak = {
            (i, f): min(own_caps[i, f], budgets[i] + sum(messages[g, i] for j, g, _ in rows if j == i and g != f))
            for i, f, _ in rows
        }
        messages = {
            (f, i): exact_phi(d, min(caps[f, i], sum(leak[j, f] for j in members[f] if j != i))) for i, f, d in rows
        }
    return [
        min(weight(None, i), budgets[i] + sum(messages[f, j] for j, f, _ in rows if j == i))
        for i in range(incidence.n_nodes)
    ]


def random_incidence(rng: np.random.Generator) -> Incidence:
    n = int(rng.integers(1, 8))
    count = int(rng.integers(0, n + 2))
    sizes = [min(n, int(rng.choice([1, 2, 2, 2, 3, 4]))) for _ in range(count)]
    rows = [(i, f) for f, size in enumerate(sizes) for i in rng.choice(n, size=size, replace=False).tolist()]
    table = np.array([rows[k] for k in rng.permutation(len(rows))], dtype=np.int64).reshape(-1, 2)
    return Incidence(table[:, 0], table[:, 1], rng.choice([0.3, 1.0, 3.0, np.inf], size=len(table)), n, count)


def test_ring() -> None:
    ring = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]
    found = propagate(pairwise(ring, 1.0, 5), np.full(5, 0.1))
    np.testing.assert_allclose(found, 0.16484263860807596, rtol=0, atol=1e-12)


def test_a_kept_result_serves_its_own_budgets_only() -> None:
    """The values of the same calls on a fresh object each; a caller who changes a result changes no later one."""
    ring = Incidence.pairwise(np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]]), np.linspace(0.5, 1.5, 5), 4)
    small, large = np.full(4, 0.1), np.array([0.1, 0.1, 0.2, 0.1])
    solver = Propagation(ring)
    for budgets, rounds in ((small, 200), (small, 200), (large, 200), (large, 1), (small, 200)):
        found = solver.leakages(budgets, rounds)
        assert (found == Propagation(ring).leakages(budgets, rounds)).all()
        found[:] = 0.0


def test_star() -> None:
    found = propagate(pairwise([[0, k] for k in range(1, 6)], [0.5, 1, 1.5, 2, 2.5], 6), np.full(6, 0.2))
    expected = [
        0.548633954030957,
        0.26476999504407345,
        0.3217880036072519,
        0.3702386209805648,
        0.4101340192951219,
        0.442122047846941,
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("block", corners(range(4), 0))
def test_against_the_definition_in_40_digits(block: int) -> None:
    """Never below the exact fixed point; within 1e-11 of it."""
    with mp.workdps(40):
        for seed in range(15 * block, 15 * block + 15):
            rng = np.random.default_rng([1, seed])
            incidence = random_incidence(rng)
            epsilon = rng.choice([0.0, 1e-9, 0.1, 1.0, 3.0], size=incidence.n_nodes)
            expected = twin(incidence, epsilon, 60)
            found = propagate(incidence, epsilon, 2000)
            for value, exact in zip(found.tolist(), expected, strict=True):
                assert value <= exact * (1 + mpf("1e-11"))
            longer = twin(incidence, epsilon, 200)
            for value, exact in zip(found.tolist(), longer, strict=True):
                assert value >= exact * (1 - mpf("1e-30")) or value >= exact * (1 - mpf("1e-11")) > 0


def test_every_number_of_rounds_is_a_bound_and_more_are_not_worse() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        incidence = random_incidence(rng)
        epsilon = rng.uniform(0, 1, incidence.n_nodes)
        propagation = Propagation(incidence)
        found = [propagation.leakages(epsilon, rounds) for rounds in (0, 1, 2, 5, 50, 500)]
        assert all((later <= earlier).all() for earlier, later in itertools.pairwise(found))
        assert (found[-1] >= epsilon).all()


def test_rounding_is_upwards_on_a_long_path_with_all_budgets_different() -> None:
    rng = np.random.default_rng(3)
    n = 60
    diameters, epsilon = rng.uniform(0.1, 6, n - 1), rng.uniform(0, 0.5, n)
    found = propagate(pairwise([[i, i + 1] for i in range(n - 1)], diameters, n), epsilon)
    with mp.workdps(40):
        right, left = [mpf(0)] * n, [mpf(0)] * n
        for i in range(n - 2, -1, -1):
            right[i] = exact_phi(diameters[i], mpf(epsilon[i + 1]) + right[i + 1])
        for i in range(1, n):
            left[i] = exact_phi(diameters[i - 1], mpf(epsilon[i - 1]) + left[i - 1])
        for i in range(n):
            exact = mpf(epsilon[i]) + left[i] + right[i]
            assert exact <= mpf(found[i]) <= exact * (1 + mpf("1e-13"))


def test_identical_records_have_group_privacy() -> None:
    clique = list(nx.complete_graph(6).edges)
    np.testing.assert_allclose(propagate(pairwise(clique, np.inf, 6), np.full(6, 0.1)), 0.6, rtol=1e-14)


def test_latent_nodes_without_a_record_leak_nothing() -> None:
    """Four latent nodes that are connected strongly have two fixed points; the caps select 0."""
    clique = list(nx.complete_graph(4).edges)
    assert (propagate(pairwise(clique, 3.0, 4), np.zeros(4)) == 0).all()


def test_a_leap_below_the_fixed_point_is_not_accepted() -> None:
    """Messages that fall evenly as if to 0.3 and stop at 0.4: what extrapolation expects is below what is valid."""
    floor = np.array([0.4, 0.4, 0.4])
    seen: list[float] = []

    def update(messages: np.ndarray) -> np.ndarray:
        seen.append(float(messages.min()))
        lower: np.ndarray = np.maximum(0.3 + 0.85 * (messages - 0.3), floor)
        return lower

    found = settled(update, np.ones(3), 200)
    assert min(seen) < 0.4
    np.testing.assert_allclose(found, floor, rtol=1e-11)
    assert (found >= floor).all()


def test_caps_stop_what_hangs_behind_a_single_node() -> None:
    """A hard path, tied by its end 2 to a loop: node 2 sees the budget of the loop, not its own once more."""
    edges = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 2]]
    diameters = [np.inf] * 2 + [0.5, np.inf, np.inf, 0.5]
    found = propagate(pairwise(edges, diameters, 6), np.full(6, 0.1))
    exact = float(exact_phi(0.5, 0.3))
    assert found[2] == pytest.approx(0.3 + 2 * exact, rel=1e-12)


def test_a_parity_factor() -> None:
    """One factor over three records: phi(Delta, sum of both others)."""
    incidence = Incidence(np.arange(3), np.zeros(3, dtype=np.int64), np.full(3, 2.0), 3, 1)
    found = propagate(incidence, np.array([0.1, 0.2, 0.4]))
    expected = [0.1 + float(exact_phi(2, 0.6)), 0.2 + float(exact_phi(2, 0.5)), 0.4 + float(exact_phi(2, 0.3))]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_factors_with_no_effect_and_isolated_nodes_change_nothing() -> None:
    incidence = Incidence(np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([0.0, 0.0, 5.0]), 4, 2)
    epsilon = np.array([0.1, 0.2, 0.3, 0.4])
    assert (propagate(incidence, epsilon) == epsilon).all()


def test_huge_and_tiny_budgets() -> None:
    ring = [[0, 1], [1, 2], [2, 0]]
    huge = propagate(pairwise(ring, 1.0, 3), np.full(3, 1e5))
    np.testing.assert_allclose(huge, 1e5 + 2, rtol=1e-12)
    tiny = propagate(pairwise(ring, 1.0, 3), np.full(3, 1e-200))
    slope = np.tanh(0.25)
    np.testing.assert_allclose(tiny, 1e-200 * (1 + slope) / (1 - slope), rtol=1e-11)
    mixed = propagate(pairwise(ring, 1.0, 3), np.array([1e3, 1e-12, 0.0]))
    assert np.isfinite(mixed).all()
    assert mixed[1] == pytest.approx(1 + 4 * np.arctanh(np.tanh(0.25) ** 2), rel=1e-9)


def test_both_ways_through_deep_and_shallow_forests_agree() -> None:
    rng = np.random.default_rng(4)
    for n in (2, 50, 400):
        edges = np.array([[k, int(rng.integers(max(0, k - 3), k))] for k in range(1, n)])
        both = np.concatenate([edges, edges[:, ::-1]])
        diameters = np.tile(rng.choice([0.5, 2.0, np.inf], n - 1), 2)
        sweeps = Sweeps(both[:, 0], both[:, 1], diameters, np.zeros(n, dtype=np.int64))
        own = np.append(rng.uniform(0, 1, n), 0.0)[sweeps._tree.order]
        for one, other in zip(sweeps._one_by_one(own), sweeps._by_levels(own), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        rounds = Rounds(both[:, 0], both[:, 1], diameters, np.zeros(n, dtype=np.int64))
        budgets = rng.uniform(0, 1, n)
        np.testing.assert_allclose(rounds.totals(budgets, 2 * n), sweeps.totals(budgets), rtol=1e-11)


@for_each("passed", [Contraction, Shrinkage])
def test_bands_of_levels_agree_with_one_vertex_after_the_other(passed: type[Map]) -> None:
    rng = np.random.default_rng(5)
    for n, levels, strongest in ((2, 3, 1.0), (60, 4, 1.0), (400, 9, 2.0), (1500, 40, 6.0)):
        edges = np.array([[k, int(rng.integers(max(0, k - 3), k))] for k in range(1, n)])
        both = np.concatenate([edges, edges[:, ::-1]])
        diameters = rng.uniform(0, strongest, 2 * n - 2)
        sweeps = Sweeps(both[:, 0], both[:, 1], diameters, np.zeros(n, dtype=np.int64), passed)
        own = np.append(rng.uniform(0, 1, n), 0.0)[sweeps._tree.order]
        bands = Bands(sweeps._tree, sweeps._grow, sweeps._upwards, sweeps._downwards, passed, levels)
        messages, sums, above = sweeps._one_by_one(own)
        below = bands.from_below(own)
        found = bands.from_above(sweeps._around(own, messages), float(own.sum()) * 1.001)
        assert below is not None
        assert found is not None
        for one, other in ((messages, below[0]), (sums, below[1]), (above, found)):
            np.testing.assert_allclose(other, one, rtol=1e-11)
            assert (other >= one * (1 - 1e-13)).all()


@pytest.mark.slow
def test_bands_are_left_where_nothing_is_contracted() -> None:
    """A path of copies has group privacy; what enters a band never settles in a few sweeps."""
    n = 60_000
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    found = propagate(pairwise(edges, np.inf, n), np.full(n, 1e-5))
    np.testing.assert_allclose(found, 0.6, rtol=1e-9)
    weak = propagate(pairwise(edges, 1.2, n), np.full(n, 1e-5))
    slope = np.tanh(0.3)
    np.testing.assert_allclose(weak[n // 2], 1e-5 * (1 + slope) / (1 - slope), rtol=1e-4)


@pytest.mark.slow
def test_branches_are_what_deleting_a_node_leaves() -> None:
    for seed in range(150):
        rng = np.random.default_rng([5, seed])
        n = int(rng.integers(1, 14))
        graph = nx.gnm_random_graph(n, int(rng.integers(0, 2 * n)), seed=seed)
        edges = np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)
        if seed % 5 == 0:
            edges = np.concatenate([edges, edges[:1]])
        both = np.concatenate([edges, edges[:, ::-1]])
        component = np.empty(n, dtype=np.int64)
        for number, members in enumerate(nx.connected_components(graph)):
            component[list(members)] = number
        amounts = rng.integers(0, 100, n)
        found = Branches(both[:, 0], both[:, 1], component).weights(amounts)
        for (source, target), weight in zip(both.tolist(), found.tolist(), strict=True):
            rest = graph.copy()
            rest.remove_node(target)
            assert weight == amounts[list(nx.node_connected_component(rest, source))].sum()


def test_preorder_is_the_same_level_by_level_and_one_by_one() -> None:
    rng = np.random.default_rng(6)
    for n, reach in ((2000, 2000), (2000, 2)):
        edges = np.array([[k, int(rng.integers(max(0, k - reach), k))] for k in range(1, n)])
        both = np.concatenate([edges, edges[:, ::-1]])
        tree = Rooted(both[:, 0], both[:, 1], np.zeros(n, dtype=np.int64))
        preorder, sizes = tree.preorder()
        assert tree.narrow == (reach == 2)
        assert sorted(preorder.tolist()) == list(range(n + 1))
        for position in range(1, n + 1):
            above = tree.parent[position]
            assert preorder[above] < preorder[position]
            assert preorder[position] + sizes[position] <= preorder[above] + sizes[above]


@pytest.mark.slow
def test_sums_without_one_member_never_fall_short() -> None:
    rng = np.random.default_rng(7)
    for _ in range(30):
        lengths = rng.integers(1, 40, 20)
        keys = np.repeat(np.arange(20), lengths)
        values = 10.0 ** rng.uniform(-20, 5, len(keys))
        found = Segments(keys).others(values)
        with mp.workdps(60):
            for k in range(len(keys)):
                exact = sum((mpf(v) for v in values[(keys == keys[k]) & (np.arange(len(keys)) != k)].tolist()), mpf(0))
                assert exact <= mpf(found[k]) <= exact * (1 + mpf("1e-12"))


@pytest.mark.slow
def test_contraction_never_falls_short() -> None:
    rng = np.random.default_rng(8)
    diameters = np.append(10.0 ** rng.uniform(-8, 3, 400), [np.inf, 0.0])
    leakages = np.append(10.0 ** rng.uniform(-250, 3, 400), [0.3, 0.3])
    found = Contraction(diameters).apply(leakages)
    with mp.workdps(700):
        for d, a, value in zip(diameters[:-1].tolist(), leakages[:-1].tolist(), found[:-1].tolist(), strict=True):
            exact = exact_phi(d, mpf(a))
            assert exact <= mpf(value) <= exact * (1 + mpf("1e-13"))
    assert found[-1] == 0
