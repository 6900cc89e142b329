"""Gaussian fields whose matrix is never formed, against the matrix: sparse, kernels, graphs, variance components."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse

import graphs.structure.correlation.kernel as kernels
import graphs.structure.correlation.precision as precisions
from graphs import ArgumentError, GaussianField
from graphs.structure.correlation.interface import Correlation
from tests.cases import for_each
from tests.sizes import corners, sizes

Matrix = NDArray[np.float64]

GRID = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2)


def correlation_of(model: GaussianField) -> Correlation:
    return model._correlation


def check_against(model: GaussianField, matrix: Matrix, slack: float) -> None:
    """P is above the matrix, its trace within `slack` of the row sums, and the radius above the largest eigenvalue."""
    p = correlation_of(model).dominating()
    assert np.linalg.eigvalsh(np.diag(p) - matrix)[0] >= -1e-13 * len(p)
    rows = np.abs(matrix).sum() / len(matrix)
    assert p.mean() <= rows * (1 + slack)
    assert model.variance_inflation("copula") >= p.mean() * (1 - 1e-12)
    largest = np.linalg.eigvalsh(matrix)[-1]
    effective = model.effective_records()
    assert effective <= len(matrix) / largest * (1 + 1e-12)
    assert effective >= len(matrix) / largest / (1 + max(slack, 0.05))


# Sparse matrices -----------------------------------------------------------------------------------------------


def band(n: int, *entries: float) -> Any:
    offsets = [*range(-len(entries), 0), 0, *range(1, len(entries) + 1)]
    diagonals = [np.full(n - abs(k), ([1.0, *entries])[abs(k)]) for k in offsets]
    return sparse.diags_array(diagonals, offsets=offsets)


@for_each("entries", [(0.4,), (-0.4, 0.1), (0.5, 0.2, -0.1)])
def test_bands_are_those_of_the_dense_matrix(entries: tuple[float, ...]) -> None:
    matrix = band(60, *entries)
    model = GaussianField(matrix)
    check_against(model, matrix.toarray(), 1e-12)
    assert model.variance_inflation() == pytest.approx(GaussianField(matrix.toarray()).variance_inflation(), rel=1e-6)


def test_long_bands_are_cheap_and_their_samples_are_correlated() -> None:
    model = GaussianField(band(50_000, 0.4))
    assert model.variance_inflation() == pytest.approx(1 + 2 * 0.4 * 49_999 / 50_000, rel=1e-9)
    assert model.effective_records() == pytest.approx(50_000 / 1.8, rel=1e-3)
    drawn = model.sample(np.random.default_rng(0))
    assert abs(np.mean(drawn[1:] * drawn[:-1]) - 0.4) < 0.04  # about 8 deviations
    assert abs(np.mean(drawn[2:] * drawn[:-2])) < 0.04


@for_each(
    ("matrix", "message"),
    [
        (band(9, 0.9), "eigenvalue"),
        (band(3000, 0.9), "eigenvalue"),
        (band(5, 1.5), "from -1 to 1"),
        (sparse.csr_array([[1.0, 0.5], [0.4, 1.0]]), "symmetric"),
        (sparse.csr_array([[1.0, 0.5], [0.5, 0.9]]), "diagonal"),
        (sparse.csr_array([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
        (sparse.csr_array(np.ones((2, 3))), "shape"),
    ],
)
def test_sparse_matrices_that_are_no_correlations_are_refused(matrix: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        GaussianField(matrix)


def test_a_wide_sparse_matrix_with_a_negative_eigenvalue_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.gnm_random_graph(2500, 9000, seed=1)
    matrix = 0.45 * nx.to_scipy_sparse_array(graph, format="csr") + sparse.eye_array(2500)
    monkeypatch.setattr("graphs.structure.correlation.sparse.WIDEST", 0.0)
    with pytest.raises(ArgumentError, match="eigenvalue of at most -"):
        GaussianField(matrix)


# Kernels -------------------------------------------------------------------------------------------------------


def exponential(scale: float) -> Callable[[Matrix], Matrix]:
    return lambda distance: np.exp(-distance / scale)


def spherical(distance: Matrix) -> Matrix:
    """The volume that two balls share: positive definite in three dimensions, zero from 3 on."""
    share = np.minimum(distance / 3.0, 1.0)
    return 1.0 - 1.5 * share + 0.5 * share**3


@pytest.mark.parametrize(("scale", "largest"), corners([(0.5, 1.98), (1.0, 6.36), (2.0, 23.2)], 0, 1))
def test_exponential_kernels_on_a_grid(scale: float, largest: float) -> None:
    grid = np.stack(np.meshgrid(np.arange(32.0), np.arange(32.0)), axis=-1).reshape(-1, 2)
    if scale == 2.0:
        model = GaussianField.kernel(grid, exponential(scale))
        assert model.n / model.effective_records() == pytest.approx(largest, rel=2e-3)
        assert model.variance_inflation() < largest
    model = GaussianField.kernel(grid[:64], exponential(scale))
    distances = np.linalg.norm(grid[:64, None] - grid[None, :64], axis=2)
    check_against(model, np.exp(-distances / scale), 1e-12)


@pytest.mark.slow
def test_kernels_in_blocks_and_with_a_support_are_those_of_the_whole_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    places = rng.random((1200, 2)) * 30
    whole = GaussianField.kernel(places, spherical)
    ended = GaussianField.kernel(places, spherical, support=3.0)
    monkeypatch.setattr(kernels, "MOST_KEPT", 100)
    monkeypatch.setattr(kernels, "BLOCK", 100_000)
    blocks = GaussianField.kernel(places, spherical)
    assert ended.variance_inflation() == pytest.approx(whole.variance_inflation(), rel=1e-12)
    assert blocks.variance_inflation() == pytest.approx(whole.variance_inflation(), rel=1e-12)
    for model in (ended, blocks):
        assert model.effective_records() <= whole.effective_records() * (1 + 1e-9)
    assert ended.effective_records() == pytest.approx(whole.effective_records(), rel=0.02)
    assert pickle.loads(pickle.dumps(blocks)).fingerprint() == blocks.fingerprint()
    assert whole.fingerprint() == blocks.fingerprint() != ended.fingerprint()
    assert whole.fingerprint() == GaussianField.kernel(places, lambda d: spherical(d) * (1 + 1e-15)).fingerprint()
    assert whole.fingerprint() != GaussianField.kernel(places, exponential(1.0)).fingerprint()
    with pytest.raises(ArgumentError, match="for sampling"):
        blocks.sample(rng)


def test_a_table_of_places_names_the_records() -> None:
    places = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 0.0]}, index=["a", "b"])
    assert GaussianField.kernel(places, exponential(1.0)).records == ("a", "b")
    assert GaussianField.kernel([0.0, 1.0], exponential(1.0)).records == (0, 1)


@for_each(
    ("places", "function", "message"),
    [
        ([[0.0, np.nan], [1.0, 1.0]], exponential(1.0), "record 0 without coordinates"),
        ([[0.0, 1.0], [1.0, 1.0]], 3.0, "function of distances"),
        ([[0.0, 1.0], [1.0, 1.0]], lambda d: np.exp(-d) / 2, "at the distance 0"),
        ([[0.0, 1.0], [1.0, 1.0]], lambda d: 1 + d, "at the distance 1"),
        ([[0.0, 1.0], [1.0, 1.0]], lambda d: 1.0, "shape"),
        (GRID, lambda d: (d < 1.5).astype(float), "eigenvalue"),
        (np.zeros((0, 2)), exponential(1.0), "shape"),
    ],
)
def test_what_is_no_kernel_is_refused(places: Any, function: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        GaussianField.kernel(places, function)


def test_what_is_no_support_is_refused() -> None:
    with pytest.raises(ArgumentError, match="beyond the distance"):
        GaussianField.kernel(GRID, exponential(1.0), support=2.0)
    with pytest.raises(ArgumentError, match="support"):
        GaussianField.kernel(GRID, spherical, support=-1.0)
    with pytest.raises(ArgumentError, match="at most 50000"):
        GaussianField.kernel(np.zeros((50_001, 1)), exponential(1.0))


# Conditional autoregressions -----------------------------------------------------------------------------------


def car_matrix(graph: nx.Graph[Any], rho: float, weight: str = "weight") -> Matrix:
    weights = nx.to_numpy_array(graph, weight=weight)
    degrees = np.maximum(weights.sum(axis=1), weights.sum(axis=1) == 0)
    inverse = np.linalg.inv(np.diag(degrees) - rho * weights)
    return np.asarray(inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse))))


@for_each("rho", [0.0, 0.5, 0.9])
@for_each("small", [1024, 0])
def test_a_graph_has_the_inverse_of_its_precision(rho: float, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precisions, "SMALL", small)
    graph = nx.random_geometric_graph(120, 0.14, seed=2)
    graph.add_node("alone")
    graph.add_edge("one", "other")
    model = GaussianField.car(graph, rho)
    check_against(model, car_matrix(graph, rho), 1e-8 if small else 1e-3)
    variances = correlation_of(model).variances  # type: ignore[attr-defined]
    weights = nx.to_numpy_array(graph)
    degrees = np.maximum(weights.sum(axis=1), 1)
    exact = np.diag(np.linalg.inv(np.diag(degrees) - rho * weights))
    assert (variances <= exact * (1 + 1e-14)).all()
    assert (variances >= exact * (1 - 1e-3)).all()


def test_negative_rho_weights_and_nodes_without_records() -> None:
    graph = nx.grid_2d_graph(6, 6)
    rng = np.random.default_rng(0)
    nx.set_edge_attributes(graph, {edge: rng.uniform(0.1, 2.0) for edge in graph.edges}, "w")
    matrix = car_matrix(graph, 0.8, "w")
    check_against(GaussianField.car(graph, 0.8, weight="w"), matrix, 1e-8)
    order = [list(graph.nodes)[k] for k in rng.permutation(36)[:20]]
    part = GaussianField.car(graph, 0.8, weight="w", records=order)
    places = [list(graph.nodes).index(name) for name in order]
    check_against(part, matrix[np.ix_(places, places)], 1e-8)
    assert part.records == tuple(order)
    check_against(GaussianField.car(graph, -0.8), car_matrix(graph, -0.8), 9.0)


def test_large_graphs_are_bounded_without_a_matrix() -> None:
    n = 5_000
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    model = GaussianField.car((ring, n), 0.5)
    exact = math.sqrt((1 + 0.5) / (1 - 0.5))  # sum over k of r^|k|, r = (1 - sqrt(1 - rho^2))/rho
    assert exact <= model.variance_inflation() <= exact * (1 + 1e-4)
    assert n / exact * (1 - 1e-4) <= model.effective_records() <= n / exact


@pytest.mark.slow
def test_samples_of_graphs_and_components_have_the_correlations() -> None:
    rng = np.random.default_rng(0)
    units = [0, 1, 0, 1, 1, 2]
    models = [
        GaussianField.car(nx.path_graph(5), 0.9),
        GaussianField.car(nx.path_graph(5), -0.9),
        GaussianField.components({"a": units, "b": [0, 0, 1, 1, 2, 2]}, {"a": 0.3, "b": 0.2}),
        GaussianField.components({"a": units}, {"a": 0.3}, series="a", coefficients=[0.9, -0.4], noise=0.1),
    ]
    for model in models:
        drawn = np.array([model.sample(rng) for _ in range(1500)])
        assert np.abs(np.cov(drawn.T) - correlation_of(model).dense()).max() < 0.23  # 6.2 deviations at least


@for_each("rho", [1.0, -1.0, 2.0, math.nan, "a", None])
def test_rho_outside_its_range_is_refused(rho: Any) -> None:
    with pytest.raises(ArgumentError, match="rho"):
        GaussianField.car(nx.path_graph(3), rho)


def test_weights_that_are_not_positive_are_refused() -> None:
    with pytest.raises(ArgumentError, match="positive"):
        GaussianField.car(nx.path_graph(3), 0.5, weight=[1.0, 0.0])


# Variance components -------------------------------------------------------------------------------------------


@sizes("repeats", 4, 40)
def test_components_are_those_of_the_dense_matrix(repeats: int) -> None:
    rng = np.random.default_rng(0)
    for trial in range(repeats):
        n = 80
        labels = {"a": rng.integers(0, 9, n), "b": np.minimum(rng.geometric(0.2, n), 12)}
        shares = {"a": 0.25, "b": 0.3}
        if trial % 2:
            phi = [0.7, 0.2] if trial % 4 == 1 else [0.6, -0.3]
            labels["unit"] = rng.integers(0, 6, n)
            model = GaussianField.components(labels, shares, series="unit", coefficients=phi, noise=0.15)
            lags = [1.0, phi[0] / (1 - phi[1])]
            while len(lags) < n:
                lags.append(phi[0] * lags[-1] + phi[1] * lags[-2])
        else:
            model = GaussianField.components(labels, shares)
            lags = [0.0] * n
        matrix = np.eye(n)
        for i in range(n):
            for j in range(i):
                same = {name: column[i] == column[j] for name, column in labels.items()}
                matrix[i, j] = sum(share for name, share in shares.items() if same[name])
                if same.get("unit"):
                    matrix[i, j] += 0.3 * lags[int((labels["unit"][j:i] == labels["unit"][j]).sum())]
                matrix[j, i] = matrix[i, j]
        assert np.allclose(correlation_of(model).dense(), matrix, atol=1e-12)
        check_against(model, matrix, 0.1 if trial % 4 == 3 else 1e-10)


def test_panels_and_crossed_designs_have_the_numbers_of_their_closed_forms() -> None:
    firms = np.repeat(np.arange(200), 20)
    series = 3 - 4 / 20 * (1 - 0.5**20)
    alone = GaussianField.components({"firm": firms}, {}, series="firm", coefficients=0.5)
    assert alone.variance_inflation() == pytest.approx(series, rel=1e-9)
    both = GaussianField.components({"firm": firms}, {"firm": 0.5}, series="firm", coefficients=0.5)
    assert both.variance_inflation() == pytest.approx(0.5 * 20 + 0.5 * series, rel=1e-9)
    users, items = np.repeat(np.arange(100), 50), np.tile(np.arange(50), 100)
    crossed = GaussianField.components({"user": users, "item": items}, {"user": 0.1, "item": 0.1})
    assert crossed.variance_inflation("copula") == pytest.approx(15.8, rel=1e-9)
    assert crossed.variance_inflation() == pytest.approx(1 + 2 / np.pi * (15.8 - 0.8) / 0.8, rel=1e-9)
    assert crossed.effective_records() == pytest.approx(5000 / 15.8, rel=1e-9)
    nested = {"school": np.repeat(np.arange(4), 6), "class": np.repeat(np.arange(8), 3)}
    model = GaussianField.components(nested, {"school": 0.2, "class": 0.3})
    assert model.variance_inflation() == pytest.approx(0.5 + 0.2 * 6 + 0.3 * 3)
    groups = model.independent_groups()
    assert groups is not None
    assert groups.tolist() == [6, 6, 6, 6]


def test_labels_of_a_table_name_the_records_and_series_of_labels_are_aligned() -> None:
    table = pd.DataFrame({"user": ["u", "v", "u"], "item": ["i", "i", "j"]}, index=["x", "y", "z"])
    model = GaussianField.components(table, pd.Series({"user": 0.5, "item": 0.2}))
    assert model.records == ("x", "y", "z")
    other = {"user": table["user"], "item": table["item"].iloc[::-1]}
    assert GaussianField.components(other, {"user": 0.5, "item": 0.2}).fingerprint() == model.fingerprint()


@for_each(
    ("arguments", "message"),
    [
        (({"a": [0, 1]}, {"a": 1.2}), "from 0 to 1"),
        (({"a": [0, 1], "b": [0, 1]}, {"a": 0.7, "b": 0.7}), "1.4 in all"),
        (({"a": [0, 1]}, {"a": 0.2, "b": 0.2}), "has no labels"),
        (({"a": [0, 1], "b": [0, 1]}, {"a": 0.2}), "none of 'b'"),
        (({"a": [0, 1], "b": [0, 1, 2]}, {"a": 0.2, "b": 0.2}), "different numbers"),
        (({"a": [0, None]}, {"a": 0.2}), "missing label"),
        (({}, {}), "no factor"),
        (([0, 1], {"a": 0.2}), "labels"),
        (({"a": [0, 1]}, [0.2]), "shares"),
    ],
)
def test_components_that_do_not_match_are_refused(arguments: tuple[Any, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        GaussianField.components(*arguments)


@for_each(
    ("arguments", "message"),
    [
        ({"series": "a"}, "coefficients"),
        ({"coefficients": 0.5}, "series"),
        ({"series": "b", "coefficients": 0.5}, "one of the factors"),
        ({"noise": 0.5}, "without a series"),
        ({"series": "a", "coefficients": 1.0}, "largest root is 1"),
        ({"series": "a", "coefficients": 0.5, "noise": -0.1}, "noise"),
    ],
)
def test_series_that_are_not_fully_said_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        GaussianField.components({"a": [0, 1, 0]}, {"a": 0.2}, **arguments)


# Several values for each record --------------------------------------------------------------------------------


def test_values_with_correlations_that_are_products_count_as_their_records() -> None:
    series = 0.7 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    kinds = np.array([[1.0, 0.5], [0.5, 1.0]])
    order = np.random.default_rng(0).permutation(12)
    matrix = np.kron(series, kinds)[np.ix_(order, order)]
    model = GaussianField(matrix, values_of=[f"r{k // 2}" for k in order])
    alone = GaussianField(series)
    assert model.n == 6
    assert alone.variance_inflation() <= model.variance_inflation() <= alone.variance_inflation() * (1 + 1e-7)
    assert model.effective_records() == pytest.approx(alone.effective_records(), rel=1e-7)
    assert model.records == tuple(dict.fromkeys(f"r{k // 2}" for k in order))
    drawn = np.array([model.sample(np.random.default_rng(seed)) for seed in range(1500)])
    place = model.records.index("r0")
    first, second = (list(order).index(k) for k in (0, 1))
    assert abs(np.mean(drawn[:, place, 0] * drawn[:, place, 1]) - matrix[first, second]) < 0.23


@for_each("seed", range(4))
def test_blocks_are_above_the_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((9, 30))
    matrix = np.corrcoef(data)
    index = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3])
    model = GaussianField(matrix, values_of=index)
    own = (index[:, None] == index) * matrix
    for p in (correlation_of(model).dominating(), np.full(4, model.n / model.effective_records())):
        assert np.linalg.eigvalsh(p[index][:, None] * own - matrix)[0] >= 0.0
    # with the values of one record replaced by an invertible mixture nothing changes
    mixed = np.eye(9)
    mixed[2:5, 2:5] = rng.standard_normal((3, 3))
    covariance = mixed @ matrix @ mixed.T
    other = GaussianField(covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))), values_of=index)
    assert other.variance_inflation() == pytest.approx(model.variance_inflation(), rel=1e-6)
    assert model.given([0]).variance_inflation() == 3.0


def test_values_of_records_that_do_not_match_are_refused() -> None:
    with pytest.raises(ArgumentError, match="2 records for 3 rows"):
        GaussianField(np.eye(3), values_of=[0, 1])
    with pytest.raises(ArgumentError, match="functions of each other"):
        GaussianField(np.ones((2, 2)), values_of=[0, 0])
    with pytest.raises(ArgumentError, match="records of 1 to 2 values"):
        GaussianField(np.eye(3), values_of=[0, 0, 1]).sample(np.random.default_rng(0))


# Known values --------------------------------------------------------------------------------------------------


def conditional(matrix: Matrix, known: NDArray[np.int64]) -> Matrix:
    left = np.setdiff1d(np.arange(len(matrix)), known)
    inner, across = matrix[np.ix_(known, known)], matrix[np.ix_(known, left)]
    covariance = matrix[np.ix_(left, left)] - across.T @ np.linalg.solve(inner, across)
    return np.asarray(covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))))


@for_each(
    "model",
    [
        GaussianField(0.8 ** np.abs(np.subtract.outer(np.arange(12), np.arange(12)))),
        GaussianField(band(12, 0.4)),
        GaussianField.ar([0.5, 0.3], 12),
        GaussianField.ar([0.9, -0.5], 12),
        GaussianField.car(nx.circular_ladder_graph(6), 0.9),
        GaussianField.components({"a": [0, 1, 2] * 4, "b": [0, 0, 0, 1, 1, 1] * 2}, {"a": 0.4, "b": 0.3}),
        GaussianField.components({"a": [0] * 12}, {"a": 0.4}, series="a", coefficients=0.5),
    ],
    ids=["dense", "sparse", "series", "second order", "graph", "components", "series in units"],
)
def test_known_values_leave_the_conditional_correlations(model: GaussianField) -> None:
    for known in ([0, 1, 2, 3], [5], [1, 4, 7, 11]):
        matrix = conditional(correlation_of(model).dense(), np.array(known))
        rest = model.conditional_on_values().given(known)
        rows = np.abs(matrix).sum() / len(matrix)
        assert rest.variance_inflation("copula") <= rows * (1 + 1e-8)
        p = np.asarray(rest._rest._dominating)  # type: ignore[union-attr]
        assert np.linalg.eigvalsh(np.diag(p) - matrix)[0] >= -1e-12
        assert len(matrix) / (rest.effective_records() or 0.0) >= np.linalg.eigvalsh(matrix)[-1] * (1 - 1e-12)
        blind = model.given(known)
        sizes = blind.independent_groups()
        found = blind.n if sizes is None else float((sizes**2).sum()) / blind.n
        assert blind.variance_inflation() == pytest.approx(found)


@pytest.mark.slow
@for_each("phi", [[0.9], [1.2, -0.5]])
@for_each("known", [range(100), range(90, 200), [*range(60), *range(180, 200)], [*range(0, 40, 3), *range(190, 200)]])
def test_known_values_of_long_series(
    phi: list[float], known: list[int] | range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stretches that are too long for a matrix, and short ones, each with its own."""
    monkeypatch.setattr("graphs.structure.correlation.autoregressive.MOST_GIVEN", 48)
    model = GaussianField.ar(phi, 200)
    matrix = conditional(correlation_of(model).dense(), np.array(known))
    bounds = correlation_of(model).given(np.arange(200), np.isin(np.arange(200), known))
    if known[1] == 3 and len(phi) == 2:
        assert bounds is None  # single known values do not separate a series of second order
        return
    assert bounds is not None
    assert np.linalg.eigvalsh(np.diag(bounds.diagonal) - matrix)[0] >= -1e-12
    assert bounds.radius >= np.linalg.eigvalsh(matrix)[-1]
    whole = model.variance_inflation()
    assert bounds.diagonal.mean() <= 2.5 * whole
    if isinstance(known, range):
        assert bounds.radius <= np.abs(matrix).sum(axis=1).max() * 1.05


def test_values_that_the_known_ones_tell_are_taken_for_copies() -> None:
    model = GaussianField(np.ones((4, 4))).conditional_on_values()
    assert model.given([0]).variance_inflation() == 3.0
    assert model.given([0]).effective_records() == 1.0
    assert model.fingerprint() != GaussianField(np.ones((4, 4))).fingerprint()


def test_known_records_leave_other_units_as_they_are() -> None:
    firms = np.repeat(np.arange(10), 20)
    model = GaussianField.components({"firm": firms}, {}, series="firm", coefficients=0.5)
    rest = model.given([0])
    inside = 3 - 4 / 20 * (1 - 0.5**20)
    assert rest.variance_inflation() == pytest.approx((180 * inside + 19**2) / 199, rel=1e-9)
    assert rest.effective_records() == pytest.approx(199 / 19)
    assert rest.leakage(0.1).round(9).tolist() == [1.9] * 19 + [2.0] * 180
    with pytest.raises(ArgumentError, match="without known records for sampling"):
        model.given([0])._rest.sample(np.random.default_rng(0))  # type: ignore[union-attr]


def test_a_long_unit_beside_a_small_one_needs_no_matrix_of_its_own() -> None:
    """The conditional law of the small unit is its own, however long the others are."""
    units = np.r_[np.zeros(200_000, dtype=np.int64), 1, 1, 1]
    model = GaussianField.components({"unit": units}, {"unit": 0.2}, series="unit", coefficients=0.5)
    small = GaussianField.components({"unit": np.zeros(3)}, {"unit": 0.2}, series="unit", coefficients=0.5)
    known = np.zeros(200_003, dtype=np.bool_)
    known[200_001] = True
    found = correlation_of(model).given(np.arange(200_000, 200_003), known[200_000:])
    expected = correlation_of(small).given(np.arange(3), np.array([False, True, False]))
    assert found is not None
    assert expected is not None
    assert found.diagonal == pytest.approx(expected.diagonal, rel=1e-9)


def test_short_stretches_between_many_known_values_are_not_treated_as_long_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Variances given what stands at one end are too large where the other end is nearer than they suppose."""
    monkeypatch.setattr("graphs.structure.correlation.autoregressive.MOST_GIVEN", 16)
    series = correlation_of(GaussianField.ar([0.0] * 6 + [0.9], 20))
    known = np.ones(20, dtype=np.bool_)
    known[7:13] = False
    assert series.given(np.arange(20), known) is None
