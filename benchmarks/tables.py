"""Exact conditional tables on 20 binary records, beside pgmpy and opt_einsum.

Run with ``python -m benchmarks.tables``. Asked is the joint law of four records given the states of two others, the
kind of table that Markov quilts need, on a random tree, a grid of 4 by 5 and a graph of 40 random edges. All three
answer the same query in turn, several times; the smallest time of each is taken, and the answers are compared.
Networks are built beforehand; finding an order of elimination or of contraction counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

from graphs import FactorGraph

RECORDS = 20
ASKED = [0, 6, 13, 19]
KNOWN = {3: 1, 10: 0}
REPEATS = 20


def networks() -> dict[str, nx.Graph[int]]:
    """Return the graphs."""
    return {
        "tree": nx.random_labeled_tree(RECORDS, seed=1),
        "4 x 5 grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 5)),
        "40 random edges": nx.gnm_random_graph(RECORDS, 40, seed=1),
    }


def contenders(graph: nx.Graph[int]) -> dict[str, Callable[[], np.ndarray]]:
    """Return one call each, all with the same answer."""
    rng = np.random.default_rng(0)
    factors: list[tuple[tuple[int, int], Any]] = [
        (edge, np.exp(0.5 * rng.standard_normal((2, 2)))) for edge in graph.edges
    ]
    model = FactorGraph([2] * RECORDS, factors)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import opt_einsum
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteMarkovNetwork

    peer = DiscreteMarkovNetwork()
    peer.add_nodes_from(range(RECORDS))
    peer.add_edges_from(graph.edges)
    peer.add_factors(*[DiscreteFactor(edge, [2, 2], table) for edge, table in factors])
    peer.add_factors(*[DiscreteFactor([v], [2], np.ones(2)) for v in nx.isolates(graph)])

    def by_pgmpy() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = VariableElimination(peer).query(ASKED, evidence=KNOWN, show_progress=False)
        values: np.ndarray = found.values.transpose([found.variables.index(v) for v in ASKED])
        law: np.ndarray = values / values.sum()
        return law

    def by_opt_einsum() -> np.ndarray:
        operands: list[Any] = [np.ones(2), [ASKED[0]]]
        for (u, v), table in factors:
            part = table[KNOWN.get(u, slice(None))]
            part = part[KNOWN[v]] if v in KNOWN and u in KNOWN else part[..., KNOWN[v]] if v in KNOWN else part
            operands += [part, [w for w in (u, v) if w not in KNOWN]]
        values: np.ndarray = opt_einsum.contract(*operands, ASKED, optimize="greedy")
        law: np.ndarray = values / values.sum()
        return law

    return {
        "graphs": lambda: model.marginal(ASKED, KNOWN),
        "pgmpy": by_pgmpy,
        "opt_einsum": by_opt_einsum,
    }


def measure(calls: dict[str, Callable[[], np.ndarray]]) -> dict[str, float]:
    """Return milliseconds of every contender, after a comparison of the answers."""
    answers = {name: call() for name, call in calls.items()}
    for answer in answers.values():
        np.testing.assert_allclose(answer, answers["graphs"], rtol=1e-10)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], (time.perf_counter() - start) * 1e3)
    return best


def main() -> None:
    """Print the table."""
    print("| 20 binary records | graphs, ms | pgmpy, ms | opt_einsum, ms | pgmpy / graphs | opt_einsum / graphs |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, graph in networks().items():
        best = measure(contenders(graph))
        ours, pgmpy, einsum = best["graphs"], best["pgmpy"], best["opt_einsum"]
        print(f"| {name} | {ours:.2f} | {pgmpy:.2f} | {einsum:.2f} | {pgmpy / ours:.1f} | {einsum / ours:.1f} |")


if __name__ == "__main__":
    main()
