"""How long messages and budgets take on networks of up to two million edges, beside the conversion from networkx.

Run with ``python -m benchmarks.propagation``. Every network runs in a process of its own, so that its peak memory is
its own. "preparing" is done once for a network, "messages" once for every privacy budget. All of it runs on one core;
seconds are processor time, so that other work on the machine does not count.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import networkx as nx
import numpy as np

from graphs import MarkovField
from graphs.leakage.network_messages import Propagation
from graphs.structure.incidence import Incidence
from graphs.structure.layout import read_graph

#: Coupling and privacy budget of every record. On the sparse networks this coupling is close to where leakages stop
#: being of the order of the budget, which takes the most updates.
COUPLING = 0.2
EPSILON = 0.01

#: Networks whose time is fitted as a power of the number of edges.
FITTED = ("tree", "sparse")
SIZES = (1_000, 10_000, 100_000, 1_000_000)

Edges = tuple[np.ndarray, int]


def tree(edges: int) -> Edges:
    """Return a random recursive tree."""
    rng = np.random.default_rng(0)
    later = np.arange(1, edges + 1)
    return np.stack([later, (rng.random(edges) * later).astype(np.int64)], axis=1), edges + 1


def uniform_tree(edges: int) -> Edges:
    """Return a uniformly random labelled tree, some thousand levels deep for a million nodes (Aldous and Broder)."""
    rng, n = np.random.default_rng(0), edges + 1
    seen, here = np.zeros(n, dtype=np.bool_), 0
    found: list[tuple[int, int]] = []
    seen[0] = True
    while len(found) < edges:
        for there in rng.integers(0, n, 1 << 16).tolist():
            if not seen[there]:
                seen[there] = True
                found.append((here, there))
            here = there
    return np.array(found), n


def path(edges: int) -> Edges:
    """Return a path, the deepest of all trees."""
    return np.stack([np.arange(edges), np.arange(1, edges + 1)], axis=1), edges + 1


def sparse(edges: int) -> Edges:
    """Return a random graph with five edges for two nodes."""
    return random_graph(edges, edges * 2 // 5)


def sparser(edges: int) -> Edges:
    """Return a random graph with two edges for each node."""
    return random_graph(edges, edges // 2)


def grid(edges: int) -> Edges:
    """Return a square grid with at most so many edges."""
    side = int((1 + np.sqrt(1 + 2 * edges)) / 2)
    nodes = np.arange(side * side).reshape(side, side)
    across = [np.stack([nodes[:, :-1], nodes[:, 1:]], axis=2), np.stack([nodes[:-1], nodes[1:]], axis=2)]
    return np.concatenate([pairs.reshape(-1, 2) for pairs in across]), side * side


def random_graph(edges: int, n: int) -> Edges:
    """Return a random graph without parallel edges."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, n, (edges + edges // 5 + 100, 2))
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    keys = np.unique(pairs @ [n, 1])
    kept = rng.choice(keys, edges, replace=False)
    return np.stack([kept // n, kept % n], axis=1), n


def attachment(edges: int) -> Edges:
    """Return a preferential-attachment graph with three edges for each new node."""
    n = edges // 3 + 3
    return np.array(list(nx.barabasi_albert_graph(n, 3, seed=0).edges)), n


NETWORKS: dict[str, Callable[[int], Edges]] = {
    "tree": tree,
    "uniform tree": uniform_tree,
    "path": path,
    "sparse": sparse,
    "attachment": attachment,
    "sparser": sparser,
    "grid": grid,
}

RUNS = [
    *((name, edges) for name in FITTED for edges in SIZES),
    ("uniform tree", 999_999),
    ("path", 999_999),
    ("sparse", 250_000),
    ("attachment", 300_000),
    ("attachment", 1_000_000),
]

#: Networks, couplings and routes of which the budget for a leakage of half a nat is searched.
TARGET = 0.5
BUDGETS = [
    ("path", 999_999, 0.5, "best"),
    ("sparser", 2_000_000, 0.1, "best"),
    ("sparser", 2_000_000, 0.2, "best"),
    *(
        ("grid", 1984, coupling, route)
        for coupling in (0.2, 0.25, 0.3, 0.35)
        for route in ("messages", "self-avoiding")
    ),
]


def measure(name: str, edges: int) -> list[float]:
    """Return seconds for preparing, messages and conversion, the mean leakage over the budget, and peak megabytes."""
    table, n = NETWORKS[name](edges)
    Propagation(Incidence.pairwise(sparse(50)[0], np.ones(50), 20))  # so that no import is measured
    start = time.process_time()
    diameters = MarkovField.ising((table, n), COUPLING).diameters
    propagation = Propagation(Incidence.pairwise(table, diameters, n))
    propagation.leakages(np.zeros(n))  # what is prepared when messages are first asked for
    prepared = time.process_time()
    leakages = propagation.leakages(np.full(n, EPSILON))
    done = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    graph: nx.Graph[int] = nx.empty_graph(n)
    graph.add_edges_from(map(tuple, table.tolist()))
    begun = time.process_time()
    read_graph(graph)
    converted = time.process_time() - begun
    return [prepared - start, done - prepared, converted, float(leakages.mean()) / EPSILON, peak]


def measure_budget(name: str, edges: int, coupling: float, route: str) -> list[float]:
    """Return seconds for a budget, what it is, and peak megabytes."""
    field = MarkovField.ising(NETWORKS[name](edges), coupling)
    MarkovField.ising(grid(12), coupling).budget(TARGET, "self-avoiding")  # so that no import is measured
    start = time.process_time()
    budget = field.budget(TARGET, route)
    done = time.process_time() - start
    return [done, budget, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]


def run(*arguments: str) -> list[float]:
    """Return what a process of its own measures."""
    command = [sys.executable, "-m", "benchmarks.propagation", *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(number) for number in output.split()]


def main() -> None:
    """Print the tables and the fits."""
    print(f"Ising fields, coupling {COUPLING}, eps' = {EPSILON}; seconds of one core")
    print(
        f"{'network':14}{'edges':>10}{'preparing':>11}{'messages':>10}{'from networkx':>15}{'leakage/eps':>13}{'MB':>7}"
    )
    times: dict[str, list[tuple[int, float]]] = {name: [] for name in FITTED}
    for name, edges in RUNS:
        preparing, messages, converting, ratio, peak = run(name, str(edges))
        if name in times:
            times[name].append((edges, preparing + messages))
        print(f"{name:14}{edges:>10,}{preparing:>11.3f}{messages:>10.3f}{converting:>15.2f}{ratio:>13.3f}{peak:>7.0f}")
    for name, points in times.items():
        counts, seconds = np.log(np.array(points)).T
        power = np.polyfit(counts, seconds, 1)[0]
        print(f"{name}: seconds grow like edges^{power:.2f} from {SIZES[0]:,} to {SIZES[-1]:,} edges")
    print(f"\nBudgets for a leakage of {TARGET}; seconds of one core")
    print(f"{'network':14}{'edges':>10}{'coupling':>10}  {'route':14}{'seconds':>9}{'budget':>10}{'MB':>7}")
    for name, edges, coupling, route in BUDGETS:
        seconds, budget, peak = run(name, str(edges), str(coupling), route)
        print(f"{name:14}{edges:>10,}{coupling:>10}  {route:14}{seconds:>9.2f}{budget:>10.5f}{peak:>7.0f}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(*measure(sys.argv[1], int(sys.argv[2])))
    elif len(sys.argv) == 5:
        print(*measure_budget(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))
    else:
        main()
