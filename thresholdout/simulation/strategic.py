"""Strategic analysts, who attack the certificate of a guard or the dependence between its records."""

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

_BEYOND = 1.0001  # a claim this much farther off than the half-width breaks the certificate if it passes


@dataclass(frozen=True)
class StrategicAnalyst:
    """Analyst that attacks a guard: it learns the holdout, and then claims values just too far from the truth.

    The true value of every query is 1/2, and the analyst knows it. A claim far from the truth forces an answer from the
    holdout. The analyst forces answers about single attributes, and turns each to the side that agrees with the
    holdout. The vote of these attributes fits the holdout more than the population. The analyst queries the vote again
    and again, and claims an accuracy that is too large by slightly more than the half-width. A claim that passes breaks
    the certificate.

    Parameters
    ----------
    queries : int
        Number of all queries.
    forced : int
        Number of answers to force first. Pass the guard's budget of answers from the holdout, less one.
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
        """Force answers about single attributes, and then claim too large an accuracy of their vote.

        Parameters
        ----------
        ask : callable
            ``ask(query, claim=None)`` returns the answer of the mechanism.
        train : Part
            The training part, with boolean ``features`` and ``labels``.
        rng : numpy.random.Generator
            Chooses the attributes.

        Returns
        -------
        Vote
            The vote, which can be called as a query.
        """
        columns = rng.permutation(train.features.shape[1])[: self.forced]
        leans = np.array([ask(agreement(column), 0.0).value - 0.5 for column in columns])
        if not len(columns):  # no answer can be forced: guess
            columns, leans = rng.integers(train.features.shape[1], size=1), rng.choice([-1.0, 1.0], 1)
        vote = Vote(columns, np.where(leans >= 0, 1.0, -1.0))
        for _ in range(self.queries - self.forced):
            ask(vote, 0.5 + _BEYOND * self.promise)
        return vote


@dataclass(frozen=True)
class ClusterAnalyst:
    """Analyst that exploits dependence: it queries clusters of records that depend on each other.

    If records depend on each other, whole clusters lean to one side by chance. The analyst queries the share of
    positive labels, overall and in each cluster (where every record outside counts 1/2). It predicts for each cluster
    the side of its answer, and queries the accuracy of these predictions. Every true value is 1/2 if positive labels
    have probability 1/2. Pass the analyst to `interview` or `simulate`.

    Parameters
    ----------
    clusters : ndarray of int, shape (n,)
        Cluster of each record, the same in the training part and in the holdout. `around_hubs` returns clusters of a
        graph.
    largest : int, default 20
        Number of clusters to query, the largest first.
    claim : float, optional
        Training value that is claimed for each query. If None, the value on the training part.

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
        """Query all records, then each cluster, and then the resulting classifier.

        Parameters
        ----------
        ask : callable
            ``ask(query, claim=None)`` returns the answer of the mechanism.
        train : Part
            The training part, with boolean ``labels``.
        rng : numpy.random.Generator
            Not used.

        Returns
        -------
        callable
            The classifier, which can be called as a query.

        Raises
        ------
        InputError
            If the number of training records differs from the length of `clusters`.
        """
        if len(train) != len(self.clusters):
            raise InputError("clusters", f"{len(self.clusters)}", f"{len(train)} values, one for each training record")
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
    """Assign each node of a graph to its nearest hub, as clusters for `ClusterAnalyst`.

    Hubs are the nodes with most neighbours.

    Parameters
    ----------
    graph : networkx.Graph
        Graph of the dependence between records, with a node for each record.
    hubs : int
        Number of hubs, from 1 to the number of nodes.
    records : sequence of nodes, optional
        The nodes in the order of the records. If None, the order of the graph.

    Returns
    -------
    ndarray of int, shape (n,)
        For each record the number of its hub, from 0 for the hub with most neighbours. It is ``hubs`` for nodes that no
        hub reaches.

    Raises
    ------
    InputError
        If `hubs` is not between 1 and the number of nodes.

    Examples
    --------
    >>> import networkx as nx
    >>> two_stars = nx.Graph([(0, 1), (0, 2), (0, 3), (4, 5), (4, 6), (3, 4)])
    >>> around_hubs(two_stars, 2)
    array([0, 0, 0, 0, 1, 1, 1])
    """
    if not 1 <= hubs <= graph.number_of_nodes():
        raise InputError("hubs", hubs, f"an integer from 1 to {graph.number_of_nodes()}, the number of nodes")
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
