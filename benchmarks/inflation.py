"""Variance inflations of dependent records: what was possible before, what is now, and what some means attain.

Run with ``python -m benchmarks.inflation``. Every truth is four n times the exact variance of a mean of fair coins that
a law of the model has, or that of such a statistic: no bound can be below it. For fields it is simulated, and four
standard errors are taken off.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphs import (
    Crossed,
    DependenceModel,
    DependencyGraph,
    GaussianField,
    MarkovChain,
    MarkovField,
    MixingSeries,
    MovingWindow,
    Panel,
)

if TYPE_CHECKING:
    import networkx as nx

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """One kind of dependence.

    Parameters
    ----------
    name : str
        What it is, and n.
    model : callable
        Makes the model.
    before : float
        The best inflation that could be stated before there was this model or this route.
    truth : float
        What some law and some mean (or statistic) of it have.
    bounded_differences : bool
        Whether the case is about statistics with bounded differences.
    """

    name: str
    model: Callable[[], DependenceModel]
    before: float
    truth: float
    bounded_differences: bool = False


def ratings(n: int = 40_313, seed: int = 7) -> tuple[IntArray, IntArray]:
    """Return the users and the items of skewed ratings."""
    rng = np.random.default_rng(seed)
    found = []
    for count, power in ((2000, 0.8), (3000, 0.6)):
        law = 1 / np.arange(1, count + 1) ** power
        found.append(rng.choice(count, n, p=law / law.sum()))
    return found[0], found[1]


def copied(users: IntArray, items: IntArray) -> float:
    """Return the inflation where each rating copies the coin of its user or its item, whichever has more ratings."""
    of_user = np.bincount(users)[users] >= np.bincount(items)[items]
    squares = [float((np.bincount(x[rows]) ** 2).sum()) for x, rows in ((users, of_user), (items, ~of_user))]
    return sum(squares) / len(users)


def weakly(users: IntArray, items: IntArray, user_effect: float, item_effect: float) -> float:
    """Return the inflation where each rating copies its user's or its item's coin with these probabilities."""
    pairs = [
        size**2 * float((np.bincount(x) * (np.bincount(x) - 1.0)).sum())
        for size, x in ((user_effect, users), (item_effect, items))
    ]
    return 1 + sum(pairs) / len(users)


def times(n: int = 100_000, seed: int = 0) -> NDArray[np.float64]:
    """Return times of which ten fall into a unit of time on average, three times as many in every tenth unit."""
    rng = np.random.default_rng(seed)
    drawn: NDArray[np.float64] = rng.random(n) * n / 10
    busy = rng.random(n) < 0.2
    drawn[busy] = np.floor(drawn[busy] / 10) * 10 + rng.random(int(busy.sum()))
    return np.sort(drawn)


def cliques(graph: DependencyGraph) -> float:
    """Return the inflation of copies in disjoint sets of records that are joined pairwise, chosen greedily."""
    import networkx as nx

    joined: nx.Graph[int] = nx.empty_graph(graph.n)
    joined.add_edges_from(graph._edges.tolist())
    total = 0
    while len(joined):
        largest = max(nx.find_cliques(joined), key=len)
        total += len(largest) ** 2
        joined.remove_nodes_from(largest)
    return total / graph.n


def tied(graph: DependencyGraph, known: int) -> float:
    """Return the inflation where all who are joined to the first records, which are known, are copies of one coin."""
    ends = graph._edges[(graph._edges < known).any(axis=1)]
    count = len(np.unique(ends[ends >= known]))
    return (count**2 + (graph.n - known - count)) / (graph.n - known)


def cases() -> list[Case]:
    """Return all cases."""
    import networkx as nx

    users, items = ratings()
    largest = max(int(np.bincount(users).max()), int(np.bincount(items).max()))
    readers, read = np.divmod(np.arange(5000), 50)
    known = np.arange(0, 5000, 203)
    visits = times()
    crowd = MovingWindow.of_times(visits, 1.0)
    cells = np.bincount(visits.astype(np.int64))
    liked = DependencyGraph(nx.barabasi_albert_graph(1000, 3, seed=0))
    chain = (1 + 0.9) / (1 - 0.9)
    signs = 1 + 2 * sum((1 - k / 1000) * 2 / math.pi * math.asin(0.9**k) for k in range(1, 1000))
    return [
        Case("ratings, 40,313, skewed", lambda: Crossed(users, items), largest, copied(users, items)),
        Case(
            "ratings, effects 0.2 and 0.1",
            lambda: Crossed(users, items, 0.2, 0.1),
            largest,
            weakly(users, items, 0.2, 0.1),
        ),
        Case("readers by cases, 100 x 50", lambda: Crossed(readers, read), 125, 100),
        Case(
            "the same, effects 0.1 and 0.1",
            lambda: Crossed(readers, read, 0.1, 0.1),
            125,
            weakly(readers, read, 0.1, 0.1),
        ),
        Case(
            "the same, 25 ratings known",
            lambda: Crossed(readers, read, 0.1, 0.1).given(known),
            4975,
            weakly(np.delete(readers, known), np.delete(read, known), 0.1, 0.1),
        ),
        Case("mixing 0.45 * 0.9^(k-1), 10,000", lambda: MixingSeries([0.45], 10_000, tail=0.9), 10_000, chain * 0.99),
        Case(
            "the same, first half known",
            lambda: MixingSeries([0.45], 10_000, tail=0.9).given(range(5000)),
            5000,
            chain * 0.98,
        ),
        Case("contraction 0.9, 1,000", lambda: MixingSeries.contraction(0.9, 1000), 1000, signs),
        Case("times, 100,000, window 1", lambda: crowd, float(crowd.m + 1), float((cells**2).sum()) / len(visits)),
        Case("window of 7, 1,000, any statistic", lambda: MovingWindow(1000, 6), 1000, 7, True),
        Case("window of 7, 1,000, half known", lambda: MovingWindow(1000, 6).given(range(500)), 500, 7 * 0.99),
        Case("preferential attachment, 1,000", lambda: liked, 4.208, cliques(liked)),
        Case("the same, its hubs known", lambda: liked.given(range(10)), 990, tied(liked, 10)),
    ]


def signs(matrix: FloatArray) -> float:
    """Return the inflation of the share of positive values, of Gaussians with these correlations (arcsine law)."""
    return float(np.arcsin(np.clip(matrix, -1.0, 1.0)).sum()) * 2 / math.pi / len(matrix)


def signs_of_series(lags: FloatArray, n: int) -> float:
    """Return the same for n values of a stationary series with these correlations at the lags 0, 1, ..., or less."""
    return 1 + 4 / math.pi * float(np.arcsin(lags[1:]) @ (1 - np.arange(1, len(lags)) / n))


def signs_of_components(groups: list[IntArray], shares: list[float]) -> float:
    """Return the same for crossed factors of which no two records share more than one group."""
    n = len(groups[0])
    pairs = [float((np.bincount(group) * (np.bincount(group) - 1.0)).sum()) for group in groups]
    return 1 + sum(count / n * 2 / math.pi * math.asin(share) for count, share in zip(pairs, shares, strict=True))


def neighbours(n: int, count: int = 5, seed: int = 0) -> IntArray:
    """Return edges from each of n places in a square to its nearest ones."""
    from scipy.spatial import cKDTree

    places = np.random.default_rng(seed).random((n, 2))
    nearest = np.asarray(cKDTree(places).query(places, count + 1)[1])[:, 1:]
    edges = np.stack([np.repeat(np.arange(n), count), nearest.ravel()], axis=1)
    return np.unique(np.sort(edges, axis=1), axis=0).astype(np.int64)


def spherical(distance: FloatArray) -> FloatArray:
    """Return a correlation that ends at the distance 3."""
    share = np.minimum(distance / 3.0, 1.0)
    found: FloatArray = 1.0 - 1.5 * share + 0.5 * share**3
    return found


def of_series() -> list[Case]:
    """Return the cases of Gaussian series and panels."""
    units = np.repeat(np.arange(200), 20)
    geometric = 0.9 ** np.arange(1000.0)
    short = 0.5 ** np.arange(20.0)
    # the second half of a series of order one, given the first: correlations rho^k (V_t/V_(t+k))^(1/2)
    spread = np.sqrt(1 - 0.81 ** np.arange(1.0, 501.0))
    steps = np.abs(np.subtract.outer(np.arange(500), np.arange(500)))
    left = 0.9**steps * np.minimum.outer(spread, spread) / np.maximum.outer(spread, spread)
    second = GaussianField.ar([1.2, -0.5], 1000)
    return [
        Case(
            "Gaussian series, 0.9, 1,000", lambda: GaussianField.ar(0.9, 1000), 1000, signs_of_series(geometric, 1000)
        ),
        Case("the same, 1,000,000", lambda: GaussianField.ar(0.9, 10**6), 10**6, signs_of_series(geometric, 10**6)),
        Case(
            "the same, 1,000, given the first half",
            lambda: GaussianField.ar(0.9, 1000).conditional_on_values().given(range(500)),
            500,
            signs(left),
        ),
        Case("of second order, 1.2 and -0.5, 1,000", lambda: second, 1000, signs(second._correlation.dense())),
        Case(
            "200 units of 20, series 0.5",
            lambda: GaussianField.components({"unit": units}, {}, series="unit", coefficients=0.5),
            20,
            signs_of_series(short, 20),
        ),
        Case(
            "the same beside unit effects of 0.5",
            lambda: GaussianField.components({"unit": units}, {"unit": 0.5}, series="unit", coefficients=0.5),
            20,
            signs_of_series(0.5 + 0.5 * short, 20),
        ),
    ]


def of_places() -> list[Case]:
    """Return the cases of Gaussian values at places, on graphs, and with crossed effects."""
    grid = np.stack(np.meshgrid(np.arange(32.0), np.arange(32.0)), axis=-1).reshape(-1, 2)
    distances = np.linalg.norm(grid[:, None] - grid[None, :], axis=2)
    many = np.random.default_rng(0).random((100_000, 2)) * 300
    few = neighbours(1000)
    readers, read = np.divmod(np.arange(5000), 50)
    found = [
        Case(
            f"32 x 32 grid, exp(-distance/{scale:g})",
            lambda scale=scale: GaussianField.kernel(grid, lambda d: np.exp(-d / scale)),  # type: ignore[misc]
            1024,
            signs(np.exp(-distances / scale)),
        )
        for scale in (0.5, 1.0, 2.0)
    ]
    for rho in (0.5, 0.9):
        exact = signs(GaussianField.car((few, 1000), rho)._correlation.dense())
        model = partial(GaussianField.car, (few, 1000), rho)
        found.append(Case(f"five nearest neighbours, {rho}, 1,000", model, 1000, exact))
    both = {"reader": readers, "case": read}
    return [
        *found,
        Case(
            "100,000 places, correlated up to 3",
            lambda: GaussianField.kernel(many, spherical, support=3.0),
            100_000,
            signs_of_places(many),
        ),
        Case(
            "readers by cases, 100 x 50, shares 0.1",
            lambda: GaussianField.components(both, {"reader": 0.1, "case": 0.1}),
            125,
            signs_of_components([readers, read], [0.1, 0.1]),
        ),
    ]


def signs_of_places(places: FloatArray) -> float:
    """Return the inflation of the share of positive values of places that are correlated up to a distance of 3."""
    from scipy.spatial import cKDTree

    first, second = cKDTree(places).query_pairs(3.0, output_type="ndarray").T
    correlations = spherical(np.linalg.norm(places[first] - places[second], axis=1))
    return 1 + 4 / math.pi * float(np.arcsin(correlations).sum()) / len(places)


def agreeing(graph: nx.Graph[Any], coupling: Any, sweeps: int = 1000, seed: int = 0) -> float:
    """Return the inflation of the share of spins that are up, without a field, less four standard errors.

    By Swendsen and Wang's clusters: edges between equal spins are kept with probability 1 - exp(-2 coupling), and two
    spins are correlated as often as they are in one cluster. Couplings are positive.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    rng, n = np.random.default_rng(seed), len(graph)
    first, second = np.array(list(graph.edges)).T
    keep = -np.expm1(-2 * np.broadcast_to(coupling, first.shape))
    spins, found = np.ones(n, dtype=np.int64), []
    for sweep in range(sweeps + 100):
        kept = (spins[first] == spins[second]) & (rng.random(len(first)) < keep)
        edges = sparse.coo_array((np.ones(kept.sum()), (first[kept], second[kept])), shape=(n, n))
        count, cluster = connected_components(edges, directed=False)
        spins = rng.integers(0, 2, count)[cluster]
        if sweep >= 100:
            found.append(float((np.bincount(cluster).astype(np.float64) ** 2).sum()) / n)
    blocks = np.array(found).reshape(20, -1).mean(axis=1)
    return float(blocks.mean() - 4 * blocks.std(ddof=1) / math.sqrt(20))


def of_networks() -> list[Case]:
    """Return the cases of Ising fields, chains with known records, and panels."""
    import networkx as nx

    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(32, 32))
    graphs: dict[str, tuple[nx.Graph[Any], float, float]] = {
        "karate club, 0.1": (nx.convert_node_labels_to_integers(nx.karate_club_graph()), 0.1, 4.95),
        "32 x 32 grid, 0.2": (grid, 0.2, 8.8),
        "32 x 32 grid, 0.25": (grid, 0.25, 66),
        "32 x 32 grid, 0.3": (grid, 0.3, 1024),
        "path of 1,000, 1.0": (nx.path_graph(1000), 1.0, 1000),
        "binary tree of 1,023, 0.5": (nx.balanced_tree(2, 9), 0.5, 1023),
        "preferential attachment, 1,000, 0.1": (nx.barabasi_albert_graph(1000, 2, seed=0), 0.1, 1000),
        "3-regular, 1,000, 0.4": (nx.random_regular_graph(3, 1000, seed=0), 0.4, 1000),
    }
    found = []
    for name, (graph, coupling, before) in graphs.items():
        model, truth = partial(MarkovField.ising, graph, coupling), agreeing(graph, coupling)
        found += [Case(f"Ising, {name}", model, before, truth)]
        found += [Case("the same, any statistic", model, before, truth, True)]
    both = nx.disjoint_union(nx.random_regular_graph(3, 1000, seed=0), nx.complete_graph(3))
    strength = np.where(np.array(list(both.edges)).min(axis=1) < 1000, 0.1, 2.0)
    unit = MarkovChain([[0.75, 0.25], [0.25, 0.75]], 20)
    inside = sum(0.5 ** abs(i - j) for i in range(20) for j in range(20)) / 20
    chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], 1000)
    after = 1 + 2 * sum((1 - k / 500) * 0.8**k for k in range(1, 500))
    return [
        *found,
        Case(
            "3-regular, 0.1, and a triangle, 2.0",
            partial(MarkovField.ising, both, strength),
            1003,
            agreeing(both, strength),
        ),
        Case("panel of 200 binary chains of 20, 0.5", lambda: Panel(unit, 200), 20, inside),
        Case("binary chain, 0.8, first half known", lambda: chain.given(range(500)), 500, after * 0.99),
    ]


def main() -> None:
    """Print the table."""
    print("| model | before | now | truth at least | now / truth | seconds |")
    print("|---|---|---|---|---|---|")
    for case in [*cases(), *of_series(), *of_places(), *of_networks()]:
        start = time.perf_counter()
        now = case.model().variance_inflation(bounded_differences=case.bounded_differences)
        seconds = time.perf_counter() - start
        numbers = f"{case.before:,.4g} | {now:,.4g} | {case.truth:,.4g} | {now / case.truth:.2f} | {seconds:.2f}"
        print(f"| {case.name} | {numbers} |")


if __name__ == "__main__":
    main()
