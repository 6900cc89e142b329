"""The budget by every route on small networks, as ratios, and heuristic quilts on a network of 1e5 nodes.

Run with ``python -m benchmarks.graph_quilts``. The first table has the largest eps' whose leakage about every record
stays within a target, by each route alone; the second the time it takes to find quilts for every record.
"""

from __future__ import annotations

import time
from typing import Any

import networkx as nx
import numpy as np

from graphs import FactorGraph, MarkovChain, pedigree
from graphs.model import DependenceModel

TARGETS = (0.2, 1.0, 3.0)
LARGE = 100_000


def ising(graph: nx.Graph[Any], coupling: float) -> FactorGraph:
    """Return a network in which neighbours agree with a strength given by the coupling."""
    names = list(graph)
    table = np.exp([[coupling, -coupling], [-coupling, coupling]])
    return FactorGraph(dict.fromkeys(names, 2), [(edge, table) for edge in graph.edges])


def family() -> DependenceModel:
    """Return three generations with half-sibs and a marriage of cousins."""
    trios = {
        "uncle": ("grandfather", "grandmother"),
        "mother": ("grandfather", "grandmother"),
        "aunt": ("grandfather", "second wife"),
        "sister": ("father", "mother"),
        "brother": ("father", "mother"),
        "cousin": ("uncle", "in-law"),
        "half-cousin": ("stranger", "aunt"),
        "child": ("brother", "cousin"),
    }
    return pedigree(trios, 0.1, mutation=0.2)


def line(generations: int) -> DependenceModel:
    """Return a line of descent whose other parents are not in the data."""
    return pedigree({k: (k + 1, None) for k in range(generations - 1)}, 0.1, mutation=0.2)


def networks() -> dict[str, DependenceModel]:
    """Return the models that are compared."""
    return {
        "chain of 50, lambda 0.5": MarkovChain([[0.75, 0.25], [0.25, 0.75]], 50),
        "tree of 40": ising(nx.random_labeled_tree(40, seed=1), 0.1),
        "grid of 5 by 5": ising(nx.grid_2d_graph(5, 5), 0.1),
        "karate club": ising(nx.Graph(nx.karate_club_graph().edges), 0.03),
        "pedigree of 14": family(),
        "line of 20 generations": line(20),
    }


def budgets() -> None:
    """Print what every route allows, and the best sound one over the best published one."""
    routes = ("blanket-published", "quilt-published", "group", "quilt", "quilt-contracted", "messages")
    print(f"| network | target | {' | '.join(routes)} | best / best published |")
    print(f"|---|---:|{'---:|' * (len(routes) + 1)}")
    for name, model in networks().items():
        for target in TARGETS:
            table = model.explain(target)
            best = table.budget[~table.published].max()
            published = table.budget[table.published].max()
            assert not best < published * (1 - 1e-9)
            ratios = [f"{best / table.budget[route]:.2f}" if table.budget[route] > 0 else "none" for route in routes]
            print(f"| {name} | {target} | {' | '.join(ratios)} | {best / published:.2f} |")
    print("\nEntries: the best budget over the budget of that route.\n")


def search() -> None:
    """Print how long the search for quilts takes on large networks, building the model not counted."""
    rng = np.random.default_rng(0)
    graphs = {
        "random graph, 150,000 edges": nx.gnm_random_graph(LARGE, 3 * LARGE // 2, seed=1),
        "preferential attachment, 200,000 edges": nx.barabasi_albert_graph(LARGE, 2, seed=1),
        "random tree": nx.random_labeled_tree(LARGE, seed=1),
    }
    print("| 100,000 nodes, all couplings different | quilts | seconds |")
    print("|---|---:|---:|")
    for name, graph in graphs.items():
        weights = np.exp(rng.uniform(-0.3, 0.3, graph.number_of_edges()))
        factors = [
            (edge, np.array([[w, 1 / w], [1 / w, w]])) for edge, w in zip(graph.edges, weights.tolist(), strict=True)
        ]
        model = FactorGraph([2] * LARGE, factors)
        start = time.perf_counter()
        model.leakage(0.1, "quilt")
        seconds = time.perf_counter() - start
        print(f"| {name} | {len(model._found_quilts):,} | {seconds:.1f} |")


def main() -> None:
    """Print both tables."""
    budgets()
    search()


if __name__ == "__main__":
    main()
