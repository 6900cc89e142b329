"""Pairwise Markov networks: fields on a graph."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.inflation.influences import interdependence
from graphs.known_records import Network
from graphs.leakage.largest_budget import FEWEST
from graphs.leakage.network_messages import Propagation
from graphs.leakage.profile import Profile
from graphs.model import Adversary
from graphs.models.factor_graph import FactorGraph
from graphs.models.network_model import NetworkModel
from graphs.numerics.arguments import FloatArray, IntArray, check_count
from graphs.numerics.rounding import up
from graphs.structure.elimination import Table
from graphs.structure.incidence import Incidence
from graphs.structure.interactions import Interactions, ising, potts, stacked
from graphs.structure.layout import GraphLike, Layout, Parallel, read_graph

if TYPE_CHECKING:
    import pandas as pd
    from scipy import sparse

    from graphs.models.field_sampling import Diagnostics, FieldSampler, Plan

__all__ = ["MarkovField"]

#: Fields with more edges keep their impossible states when messages are passed, and have no quilt routes.
MOST_TABLES = 200_000


class MarkovField(NetworkModel):
    """Model records on the nodes of a graph whose neighbours interact (pairwise Markov random field).

    Use it for social networks, lattices and other graphs in which a record depends on the rest through its neighbours
    alone. The joint distribution is proportional to the product of the weights of all edges and nodes.
    `MarkovField.ising` and `MarkovField.potts` build the common weights, `graphs.estimation.fit_ising` and `fit_potts`
    estimate them.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    graph : networkx.Graph, or pair (edges, n)
        Undirected graph with labels of any hashable type. A pair holds integer edges of shape (E, 2) between nodes 0 to
        n - 1.
    potentials : array_like, mapping, or str
        Weights of the edges, finite and not negative: one matrix for all edges, one for each (shape (E, k, l), in the
        order of the graph's edges), a mapping of edges to matrices, or the name of an edge attribute. Rows belong to
        the first node of a mapping's key or of a row of an edge array, otherwise to the node that comes first in the
        order of the graph's nodes.
    node_potentials : array_like, mapping, or str, default None
        Weights of the nodes: one vector for all, one for each (shape (m, k)), a mapping of all labels to vectors, or
        the name of a node attribute. If None, all ones.
    states : int, default None
        Number of states of nodes without an edge, needed if no weight implies it.
    latent : collection of labels, default ()
        Nodes that are not records. They have no privacy budget, do not contribute to means, and `n` does not count
        them.
    records : iterable of labels, default None
        Nodes that are records, in the order of all arrays. Other nodes are latent. If None, all nodes that are not in
        `latent`, in the order of the graph.
    parallel : {"refuse", "multiply"}, default "refuse"
        Treatment of several edges between the same nodes. "refuse": raise an error. "multiply": multiply their weights.

    Raises
    ------
    ArgumentError
        If the graph is empty or directed, has self-loops, or parallel edges that are refused; if labels do not match;
        if weights are negative, missing, infinite or zero throughout; or if numbers of states disagree.

    Notes
    -----
    Two records are independent given all others unless an edge joins them.

    *Leakage.* A mechanism that is eps_j-differentially private in record j leaks at most alpha_i = eps_i + sum over
    neighbours j of phi(Delta_ij, alpha_{j->i}) about record i. Delta_ij is the projective diameter of the edge
    (attribute `diameters`), which measures the strength of the interaction. The messages alpha_{j->i} start from upper
    bounds (`graphs.leakage.network_messages`). On the route "self-avoiding" no message returns to a node that it left a
    few steps before (`graphs.leakage.self_avoiding`). The bounds do not depend on node weights, and they hold for any
    known records.

    *Variance inflation.* The influence of neighbours on each other is at most tanh(Delta_ij / 4), see
    `graphs.inflation.influences`.

    Examples
    --------
    >>> import networkx as nx
    >>> field = MarkovField(nx.cycle_graph(8), [[2, 1], [1, 2]])
    >>> field.leakage(0.1, method="messages").max().round(6).item()
    0.199938
    >>> round(field.variance_inflation("interdependence"), 6)
    6.0
    """

    methods: ClassVar[tuple[str, ...]] = FactorGraph.methods

    def __init__(
        self,
        graph: GraphLike,
        potentials: Any,
        node_potentials: Any = None,
        *,
        states: int | None = None,
        latent: Collection[Hashable] = (),
        records: Iterable[Hashable] | None = None,
        parallel: Parallel = "refuse",
    ) -> None:
        layout = read_graph(graph, latent, records, parallel)
        count = None if states is None else check_count("states", states)
        self._set(layout, stacked(layout, potentials, node_potentials, count), "pairwise field")

    @classmethod
    def ising(
        cls,
        graph: GraphLike,
        coupling: Any,
        field: Any = 0.0,
        *,
        latent: Collection[Hashable] = (),
        records: Iterable[Hashable] | None = None,
        parallel: Parallel = "refuse",
    ) -> Self:
        """Build an Ising field: two states, with neighbours that agree (or disagree) more often than not.

        The weight is exp(coupling s_i s_j) for each edge and exp(field s_i) for each node, with s = -1 for state 0 and
        s = +1 for state 1.

        Parameters
        ----------
        graph : networkx.Graph, or pair (edges, n)
            Undirected graph, or integer edges of shape (E, 2) between nodes 0 to n - 1.
        coupling : float, array of shape (E,), or str
            Strength of the interaction, positive if neighbours agree: one number, one for each edge, or the name of an
            edge attribute.
        field : float, array of shape (m,), mapping or Series, or str, default 0.0
            Preference for state 1: one number, one for each node (in the order of the graph, or by name), or the name
            of a node attribute.
        latent : collection of labels, default ()
            Nodes that are not records.
        records : iterable of labels, default None
            Nodes that are records, in order. If None, all nodes that are not in `latent`.
        parallel : {"refuse", "multiply"}, default "refuse"
            Whether several edges between the same nodes raise an error or have their weights multiplied.

        Returns
        -------
        MarkovField
            Field with two states for each node.

        Examples
        --------
        >>> pair = MarkovField.ising(([[0, 1]], 2), coupling=0.5)
        >>> pair.joint().round(6)
        array([[0.365529, 0.134471],
               [0.134471, 0.365529]])
        """
        layout = read_graph(graph, latent, records, parallel)
        return cls._made(layout, ising(layout, coupling, field), "Ising field")

    @classmethod
    def potts(
        cls,
        graph: GraphLike,
        coupling: Any,
        states: int,
        field: Any = 0.0,
        *,
        latent: Collection[Hashable] = (),
        records: Iterable[Hashable] | None = None,
        parallel: Parallel = "refuse",
    ) -> Self:
        """Build a Potts field: several states, with weight exp(coupling) for each edge between equal states.

        Parameters
        ----------
        graph : networkx.Graph, or pair (edges, n)
            Undirected graph, or integer edges of shape (E, 2) between nodes 0 to n - 1.
        coupling : float, array of shape (E,), or str
            Strength of the interaction, positive if neighbours agree: one number, one for each edge, or the name of an
            edge attribute.
        states : int
            Number of states, at least 2.
        field : 0, array of shape (states,) or (m, states), mapping, or str, default 0.0
            Logarithms of the node weights: one vector for all nodes, one for each (in the order of the graph, or by
            name), or the name of a node attribute.
        latent : collection of labels, default ()
            Nodes that are not records.
        records : iterable of labels, default None
            Nodes that are records, in order. If None, all nodes that are not in `latent`.
        parallel : {"refuse", "multiply"}, default "refuse"
            Whether several edges between the same nodes raise an error or have their weights multiplied.

        Returns
        -------
        MarkovField
            Field with the given number of states for each node.

        Examples
        --------
        >>> MarkovField.potts(([[0, 1]], 2), coupling=1.0, states=3).leakage(0.1).round(6)
        array([0.146204, 0.146204])
        """
        count = check_count("states", states, 2)
        layout = read_graph(graph, latent, records, parallel)
        return cls._made(layout, potts(layout, coupling, count, field), f"Potts field of {count} states")

    @classmethod
    def _made(cls, layout: Layout, interactions: Interactions, name: str) -> Self:
        model = cls.__new__(cls)
        model._set(layout, interactions, name)
        return model

    def _set(self, layout: Layout, interactions: Interactions, name: str) -> None:
        super().__init__(len(layout.records))
        self._layout = replace(layout, graph=None)
        self._interactions = interactions
        self._name = name
        if interactions.has_zeros and len(layout.edges) <= MOST_TABLES:
            self.as_factor_graph()

    # Nodes and edges ---------------------------------------------------------------------------------------

    @property
    def records(self) -> tuple[Hashable, ...]:
        """Labels of the records, in the order of all arrays about them."""
        return tuple(self._layout.labels[k] for k in self._layout.records.tolist())

    @property
    def diameters(self) -> FloatArray:
        """Projective diameter of each edge, an array of shape (E,) in the graph's order of edges. 0: no interaction."""
        return self._interactions.diameters.copy()

    def as_factor_graph(self) -> FactorGraph:
        """Convert the field to a factor graph with the same distribution.

        Use it for exact marginals (`FactorGraph.marginal`). It has one table per edge and one per node with weights.

        Returns
        -------
        FactorGraph
            Factor graph with the records in the same order, followed by the latent nodes.

        Raises
        ------
        ArgumentError
            If the field has more than 200,000 edges.

        Examples
        --------
        >>> MarkovField.ising(([[0, 1]], 2), coupling=0.5).as_factor_graph()
        <FactorGraph: factor graph of 2 records with 1 factors>
        """
        if len(self._layout.edges) > MOST_TABLES:
            seen = f"{len(self._layout.edges)} edges"
            raise ArgumentError("model", seen, f"a field of at most {MOST_TABLES} edges")
        return self._factor_graph

    @cached_property
    def _factor_graph(self) -> FactorGraph:
        its, layout = self._interactions, self._layout
        order = np.concatenate([layout.records, np.flatnonzero(~self._is_record)])
        place = np.empty(layout.size, dtype=np.int64)
        place[order] = np.arange(layout.size)
        labels, sizes = layout.labels, its.sizes.tolist()
        weights, vectors, roundings = its.tables
        shared: dict[tuple[int, ...], Table] = {}  # edges, or nodes, of one kind share one array
        used: dict[tuple[int, ...], bool] = {}
        tables = []
        for (i, j), members, kind in zip(
            layout.edges.tolist(), place[layout.edges].tolist(), its.kinds.tolist(), strict=True
        ):
            key = kind, sizes[i], sizes[j]
            if key not in shared:
                shared[key] = Table.of((), weights[kind, : sizes[i], : sizes[j]], roundings)
            its_own = shared[key]
            tables.append(Table(tuple(members), its_own.values, roundings, 0, its_own.least))
        for member, kind, size in zip(place.tolist(), its.node_kinds.tolist(), sizes, strict=True):
            if (kind, size) not in shared:
                shared[kind, size] = Table.of((), vectors[kind, :size], roundings)
                used[kind, size] = bool(np.ptp(vectors[kind, :size]) > 0)
            if used[kind, size]:
                its_own = shared[kind, size]
                tables.append(Table((member,), its_own.values, roundings, 0, its_own.least))
        found = FactorGraph._of_tables({labels[k]: sizes[k] for k in order.tolist()}, self.n, tables)
        if 2 * len(layout.edges) >= FEWEST and not its.has_zeros and (np.diff(order) == 1).all():
            found._propagation = self._propagation  # the same law, and diameters without the rounding of tables
        return found

    def quilts(self, record: Hashable) -> pd.DataFrame:
        """List Markov quilts of a record, with its influence on each.

        A quilt is a set of nodes that separates a record and the records near it from all others.

        Returns
        -------
        pandas.DataFrame
            One row per quilt, with the columns `quilt`, `nearby`, `influence` and `spread`, as for
            `FactorGraph.quilts`.
        """
        return self.as_factor_graph().quilts(record)

    def _names_of_nodes(self, network: Network) -> Sequence[Hashable]:
        return self.as_factor_graph().nodes if self._reduced else self._layout.labels

    def _table_of(self, places: list[int]) -> tuple[FloatArray, float]:
        return self.as_factor_graph()._table_of(places)

    def joint(self) -> FloatArray:
        """Compute the table of joint probabilities of all records, for small fields.

        Returns
        -------
        ndarray
            Probability of each data set: one axis per record, one entry per state.

        Raises
        ------
        ArgumentError
            If there are more than a million joint states.
        """
        return self.as_factor_graph().joint()

    def _record_labels(self) -> tuple[Hashable, ...]:
        return self.records

    def describe(self) -> str:
        """Describe the model in one line of text."""
        hidden = self._layout.size - self.n
        more = f" and {hidden} latent nodes" if hidden else ""
        return f"{self._name} on {self.n} records{more} with {len(self._layout.edges)} edges"

    # Leakage -----------------------------------------------------------------------------------------------

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        layout = self._layout
        if method not in ("group", "messages", "self-avoiding"):
            if len(layout.edges) > MOST_TABLES or self._interactions.too_wide:
                reason = f"more than {MOST_TABLES} edges, or weights that differ by a factor above exp(600)"
                raise RouteUnavailable(method, reason, ("best", "messages", "group"))
            return self._factor_graph._profile(method, epsilon, adversary)
        if self._reduced:
            return self._factor_graph._profile(method, epsilon, adversary)
        budgets = np.zeros(layout.size)
        budgets[layout.records] = epsilon
        if method != "group":
            propagation = self._propagation if method == "messages" else self._remembering
            return Profile.of(propagation.leakages(budgets)[layout.records])
        component = self._propagation.component
        counts = np.bincount(component)
        sums = up(np.bincount(component, weights=budgets).astype(np.float64), float(counts.max()))
        return Profile.of(np.where(counts[component] == 1, budgets, sums[component])[layout.records])

    @property
    def _reduced(self) -> bool:
        """Whether states that zeros rule out are removed before messages are passed."""
        return self._interactions.has_zeros and len(self._layout.edges) <= MOST_TABLES

    @cached_property
    def _propagation(self) -> Propagation:
        return Propagation(self._incidence)

    @cached_property
    def _remembering(self) -> Propagation:
        return Propagation(self._incidence, memory=True)

    @property
    def _incidence(self) -> Incidence:
        return Incidence.pairwise(*self._links, self._layout.size)

    @cached_property
    def _links(self) -> tuple[IntArray, FloatArray]:
        """Edges and their diameters; those of parallel edges added up."""
        size, edges, diameters = self._layout.size, self._layout.edges, self._interactions.diameters
        keys, place, counts = np.unique(edges @ [size, 1], return_inverse=True, return_counts=True)
        if len(keys) == len(edges):
            return edges, diameters
        sums = up(np.bincount(place, weights=diameters).astype(np.float64), float(counts.max()))
        return np.stack([keys // size, keys % size], axis=1), sums

    @cached_property
    def _is_record(self) -> Any:
        mask = np.zeros(self._layout.size, dtype=np.bool_)
        mask[self._layout.records] = True
        return mask

    def _network(self) -> Network:
        if self._reduced:
            return self._factor_graph._network()
        return Network(self._incidence, *self._links, self._layout.records)

    # Variance inflation ------------------------------------------------------------------------------------

    @cached_property
    def _interdependence(self) -> sparse.csr_array:
        return interdependence(*self._links, self._layout.size)

    @cached_property
    def _group_sizes(self) -> IntArray:
        component = self._propagation.component[self._layout.records]
        sizes = np.bincount(component).astype(np.int64)
        return sizes[sizes > 0]

    # Sampling ----------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic data set of n records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Index of each record's state.

        Raises
        ------
        ArgumentError
            If zeros in the weights leave Gibbs sampling no valid start or no path between states.

        Notes
        -----
        Components without cycles are drawn exactly. Components with cycles are drawn perfectly (coupling from the past)
        if that is fast, otherwise by Gibbs sampling with a stated burn-in. `sampling_plan` returns the method and the
        distance to the distribution.

        Examples
        --------
        >>> MarkovField.ising(([[0, 1]], 2), coupling=20.0, field=20.0).sample(np.random.default_rng(0))
        array([1, 1])
        """
        if self._reduced and self._sampler.has_loops:
            return self._factor_graph.sample(rng)
        found: IntArray = self._sampler.draw(rng)[self._layout.records]
        return found

    def sampling_plan(self) -> Plan:
        """Return how `sample` draws from this field, and how close its draws are to the distribution.

        Returns
        -------
        Plan
            Attributes `method` ("exact", "perfect" for coupling from the past, or "gibbs"), `sweeps` (updates of every
            node) and `distance` (upper bound on the total variation distance to the distribution, None if no bound is
            known).

        Examples
        --------
        >>> MarkovField.ising(([[0, 1], [1, 2]], 3), coupling=2.0).sampling_plan().method
        'exact'
        """
        return self._sampler.plan

    def sampling_diagnostics(self, rng: np.random.Generator, sweeps: int = 1000, chains: int = 4) -> Diagnostics:
        """Compare Gibbs samplers from different starts, to check the burn-in where no bound proves it.

        Use it if `sampling_plan` has no `distance`. The compared statistic is the total log-weight over components with
        cycles.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.
        sweeps : int, default 1000
            Number of compared sweeps of each chain, after as many discarded ones. At least 4.
        chains : int, default 4
            Number of chains, at least 2.

        Returns
        -------
        Diagnostics
            Attributes `r_hat` (split R-hat, the burn-in is too short above 1.01), `effective_draws` (effective sample
            size of all chains together), `sweeps` and `chains`.

        Raises
        ------
        ArgumentError
            If the field has no cycles, in which case draws are exact, or zeros in its weights.

        Examples
        --------
        >>> import networkx as nx
        >>> field = MarkovField.ising(nx.cycle_graph(8), coupling=0.2)
        >>> field.sampling_diagnostics(np.random.default_rng(0), sweeps=500).r_hat < 1.05
        True
        """
        check_count("sweeps", sweeps, 4)
        check_count("chains", chains, 2)
        if not self._sampler.has_loops or self._interactions.has_zeros:
            seen = "a field with no loops, or zeros in the weights"
            raise ArgumentError("model", seen, "a field that is drawn by Gibbs sampling")
        return self._sampler.diagnostics(rng, sweeps, chains)

    @cached_property
    def _sampler(self) -> FieldSampler:
        from graphs.models.field_sampling import FieldSampler

        return FieldSampler(self._interactions, self._propagation.component, self._interdependence)

    def _content(self) -> Mapping[str, Any]:
        its, layout = self._interactions, self._layout
        return {
            "edges": layout.edges,
            "records": layout.records,
            "sizes": its.sizes,
            "weights": its.given[its.kinds],
            "node_weights": its.node_given[its.node_kinds],
            "logarithms": its.exact,
        }
