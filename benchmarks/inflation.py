"""Variance inflations of dependent records: what was possible before, what is now, and what some means attain.

Run with ``python -m benchmarks.inflation``. Every truth is four n times the exact variance of a mean of fair coins that
a law of the model has, or that of such a statistic: no bound can be below it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphs import Crossed, DependenceModel, DependencyGraph, MixingSeries, MovingWindow

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


def main() -> None:
    """Print the table."""
    print("| model | before | now | truth at least | now / truth | seconds |")
    print("|---|---|---|---|---|---|")
    for case in cases():
        start = time.perf_counter()
        now = case.model().variance_inflation(bounded_differences=case.bounded_differences)
        seconds = time.perf_counter() - start
        numbers = f"{case.before:,.4g} | {now:,.4g} | {case.truth:,.4g} | {now / case.truth:.2f} | {seconds:.2f}"
        print(f"| {case.name} | {numbers} |")


if __name__ == "__main__":
    main()
