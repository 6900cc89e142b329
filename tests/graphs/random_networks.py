"""Random small factor graphs and Bayesian networks, for tests against exact answers."""

from collections.abc import Hashable
from typing import Any

import networkx as nx
import numpy as np

from graphs import BayesianNetwork, FactorGraph


def random_table(rng: np.random.Generator, shape: tuple[int, ...], zeros: float) -> np.ndarray:
    """Return weights with a random strength, some of them zero, never all."""
    table = np.exp(rng.uniform(0.3, 2.5) * rng.standard_normal(shape))
    table[rng.random(shape) < zeros] = 0.0
    table.flat[rng.integers(table.size)] = 1.0
    return table


def random_factor_graph(rng: np.random.Generator, nodes: int, states: int, latent: int = 0) -> FactorGraph:
    """Return a factor graph with loops, unary, pairwise and three-way factors and now and then zeros."""
    while True:
        sizes = rng.integers(2, states + 1, nodes)
        zeros = float(rng.choice([0.0, 0.0, 0.2]))
        factors = []
        for _ in range(int(rng.integers(nodes - 1, 2 * nodes))):
            arity = int(rng.choice([1, 2, 2, 2, 3]))
            members = rng.choice(nodes, size=min(arity, nodes), replace=False).tolist()
            factors.append((members, random_table(rng, tuple(sizes[members]), zeros)))
        hidden = rng.choice(nodes, size=latent, replace=False).tolist()
        try:
            return FactorGraph(sizes.tolist(), factors, latent=hidden)
        except ValueError:
            continue


def random_bayesian_network(rng: np.random.Generator, nodes: int, states: int, latent: int = 0) -> BayesianNetwork:
    """Return a network in which each node has up to two earlier nodes as parents."""
    sizes = rng.integers(2, states + 1, nodes)
    zeros = float(rng.choice([0.0, 0.0, 0.25]))
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    cpds: dict[Hashable, Any] = {}
    for node in range(nodes):
        above = rng.choice(node, size=min(node, int(rng.integers(0, 3))), replace=False).tolist()
        graph.add_edges_from((parent, node) for parent in above)
        table = rng.dirichlet(np.ones(sizes[node]), size=tuple(sizes[above]))
        table = np.where((rng.random(table.shape) < zeros) & (table < table.max(axis=-1, keepdims=True)), 0.0, table)
        cpds[node] = (tuple(above), table / table.sum(axis=-1, keepdims=True))
    return BayesianNetwork(graph, cpds, latent=rng.choice(nodes, size=latent, replace=False).tolist())


def joint_by_brute_force(model: FactorGraph) -> np.ndarray:
    """Return the law of all nodes, latent ones included, as one product over all joint states."""
    table = np.ones(tuple(model.cardinalities.values()))
    for factor in model._factors:
        values = factor.values.transpose(np.argsort(factor.members))
        shape = [size if v in factor.members else 1 for v, size in enumerate(table.shape)]
        table = table * values.reshape(shape)
    law: np.ndarray = table / table.sum()
    return law
