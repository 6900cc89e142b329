"""Analysts who know the rules: they spend what a guard promises, or aim at where its records depend on each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.simulation.analysts import Vote, agreement
from thresholdout.simulation.simulated_session import Asking, Part, Query, Reply

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import NDArray

__all__ = ["ClusterAnalyst", "StrategicAnalyst", "around_hubs"]

_BEYOND = 1.0001  # a claim so much farther off than promised breaks the promise, should it pass


@dataclass(frozen=True)
class StrategicAnalyst:
    """Learns what she can from the budget, and then claims training values that are just too far from the truth.

    She knows that the truth of every query is 1/2. With claims that are far off she forces answers from the holdout
    about single attributes, and turns each to the side that agrees with the holdout. Their vote fits the holdout more
    than the truth; she asks for it again and again, claiming that it is right a little more often than the half-width
    allows. A claim that passes breaks the promise.

    Parameters
    ----------
    queries : int
        How many are asked in all.
    forced : int
        How many answers are forced first: the budget but one.
    promise : float
        Largest half-width of the guard, which is public.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout import SeededNoise
    >>> from thresholdout.mechanisms import SparseVectorParameters
    >>> from thresholdout.simulation.simulated_session import SimulatedGuard, interview
    >>> rng = np.random.default_rng(0)
    >>> train, holdout = (Part(rng.random((1000, 20)) < 0.5, rng.random(1000) < 0.5) for _ in range(2))
    >>> parameters = SparseVectorParameters(0.05, 0.001, budget=3, queries=20, grid=1 / 16)
    >>> guard = SimulatedGuard(parameters, Independent(1000), SeededNoise(0))
    >>> analyst = StrategicAnalyst(20, 2, guard.certificate.tolerance)
    >>> session = interview(analyst, guard, train, holdout, rng, truth=0.5)
    >>> session.answered, session.refused, session.broken
    (3, True, False)
    """

    queries: int
    forced: int
    promise: float

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Vote:
        """Force answers, then try to pass with a claim that is too large."""
        columns = rng.permutation(train.features.shape[1])[: self.forced]
        leans = np.array([ask(agreement(column), 0.0).value - 0.5 for column in columns])
        if not len(columns):  # nothing may be learned first: she guesses
            columns, leans = rng.integers(train.features.shape[1], size=1), rng.choice([-1.0, 1.0], 1)
        vote = Vote(columns, np.where(leans >= 0, 1.0, -1.0))
        for _ in range(self.queries - self.forced):
            ask(vote, 0.5 + _BEYOND * self.promise)
        return vote


@dataclass(frozen=True)
class ClusterAnalyst:
    """Asks about the hubs' neighbourhoods and clusters of records that depend on each other.

    Where records depend on each other, whole clusters lean to one side by chance. She asks how large the share of
    positive labels is, overall and in each cluster (with 1/2 for every record outside), turns each cluster to the side
    that it was told to lean to, and asks for the accuracy of the classifier that says so. Every truth is 1/2 when
    positive labels have probability 1/2.

    Parameters
    ----------
    clusters : ndarray of int, shape (n,)
        Cluster of each record, in the training part and in the holdout alike; see `around_hubs`.
    largest : int, default=20
        How many clusters are asked about, the largest first.
    claim : float, optional
        Training value of each query; that of the training part when left out.

    Examples
    --------
    >>> from thresholdout.simulation.simulated_session import NaiveReuse, interview
    >>> rng = np.random.default_rng(0)
    >>> clusters = np.arange(400) // 40
    >>> train, holdout = (Part(np.zeros((400, 1)), (rng.random(10) < 0.5)[clusters]) for _ in range(2))
    >>> session = interview(ClusterAnalyst(clusters), NaiveReuse(), train, holdout, rng, truth=0.5)
    >>> session.answered, session.reported.holdout
    (12, 1.0)
    """

    clusters: NDArray[Any]
    largest: int = 20
    claim: float | None = None

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Query:
        """Ask about all records, then cluster by cluster, then for the classifier."""
        if len(train) != len(self.clusters):
            raise InputError("clusters", f"{len(self.clusters)} records", f"{len(train)}, as in the training part")
        everywhere = np.ones(len(train), dtype=np.bool_)
        sides = np.full(len(train), self._leans(ask(_share(everywhere), self.claim)))
        names, sizes = np.unique(self.clusters, return_counts=True)
        for name in names[np.argsort(-sizes, kind="stable")][: self.largest]:
            inside = self.clusters == name
            sides[inside] = self._leans(ask(_share(inside), self.claim))

        def classifier(part: Part) -> NDArray[np.bool_]:
            right: NDArray[np.bool_] = part.labels == sides
            return right

        ask(classifier, self.claim)
        return classifier

    @staticmethod
    def _leans(reply: Reply) -> bool:
        return reply.value >= 0.5


def _share(inside: NDArray[np.bool_]) -> Query:
    """Return the query for the share of positive labels inside, each record outside counting 1/2."""

    def query(part: Part) -> NDArray[np.float64]:
        return np.where(inside, part.labels, 0.5)

    return query


def around_hubs(graph: nx.Graph[Any], hubs: int, records: Sequence[Hashable] | None = None) -> NDArray[np.int64]:
    """Part a graph into the surroundings of its hubs: each node goes to the hub that is nearest.

    Parameters
    ----------
    graph : networkx.Graph
        Who depends on whom.
    hubs : int
        How many hubs: the nodes with most neighbours.
    records : sequence of nodes, optional
        The nodes in the order of the records; that of the graph when left out.

    Returns
    -------
    ndarray of int, shape (n,)
        Number of each record's hub, from 0 for the one with most neighbours; ``hubs`` for nodes that no hub reaches.

    Raises
    ------
    InputError
        When there are not that many nodes.

    Examples
    --------
    >>> import networkx as nx
    >>> two_stars = nx.Graph([(0, 1), (0, 2), (0, 3), (4, 5), (4, 6), (3, 4)])
    >>> around_hubs(two_stars, 2)
    array([0, 0, 0, 0, 1, 1, 1])
    """
    if not 1 <= hubs <= graph.number_of_nodes():
        raise InputError("hubs", hubs, f"a number from 1 to {graph.number_of_nodes()}, the number of nodes")
    order = {node: place for place, node in enumerate(graph)}
    ranked = sorted(graph, key=lambda node: (-graph.degree(node), order[node]))[:hubs]
    nearest: dict[Any, int] = {hub: number for number, hub in enumerate(ranked)}
    edge = list(ranked)
    while edge:
        reached = []
        for node in edge:
            for neighbour in graph[node]:
                if neighbour not in nearest:
                    nearest[neighbour] = nearest[node]
                    reached.append(neighbour)
        edge = reached
    return np.array([nearest.get(node, hubs) for node in (graph if records is None else records)], dtype=np.int64)
