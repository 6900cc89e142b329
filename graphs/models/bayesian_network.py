"""Bayesian networks of records: a directed graph, and for each node its law given its parents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphs.errors import ArgumentError
from graphs.inflation.forward_coupling import ForwardCoupling, total_variations
from graphs.known_records import Network
from graphs.models.factor_graph import FactorGraph
from graphs.numerics.arguments import SUM_TOLERANCE, FloatArray, IntArray, real_array, sum_tolerance

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["BayesianNetwork", "moralise", "pedigree"]


def pedigree(
    trios: Mapping[Any, tuple[Hashable | None, Hashable | None]],
    frequency: float,
    *,
    mutation: float = 0.0,
    latent: Iterable[Hashable] = (),
) -> BayesianNetwork:
    """Build the Bayesian network of the genotypes in a pedigree at one biallelic locus.

    Use it to model the correlation between relatives in privacy analyses of genetic data. The genotypes follow
    Mendel's laws.

    Parameters
    ----------
    trios : mapping of person to (father, mother)
        Parents of each child. Parents who do not appear as keys are founders. A parent given as None is an unrelated
        person outside the data, a different one each time, and is marginalized out exactly. A person with ``(None,
        None)`` is a founder.
    frequency : float
        Frequency of the counted allele in the population, between 0 and 1. Founders carry two independent alleles
        (Hardy-Weinberg proportions).
    mutation : float, default 0.0
        Probability, at most 1/2, that an allele mutates to the other one during transmission.
    latent : iterable of persons, default ()
        Pedigree members without a record in the data.

    Returns
    -------
    BayesianNetwork
        Network with three states per person, the number of copies 0, 1 or 2. Records are in the order in which people
        first appear, a child before its parents.

    Raises
    ------
    ArgumentError
        If there is nobody, somebody is their own ancestor, the same person is father and mother, or a probability
        is out of range.

    Notes
    -----
    A parent with g copies passes one on with probability t = g/2, and with mutation u with probability t (1 - u) + (1
    - t) u. The child has the sum of two such independent alleles (Mendel's first law). Without mutation some
    conditional probabilities are zero: a child's genotype can exclude a genotype of its parent. Bounds by messages
    from close relatives are not contracted then.

    Examples
    --------
    >>> family = pedigree({"child": ("father", "mother")}, 0.1)
    >>> family.records
    ('child', 'father', 'mother')
    >>> family.marginal(["mother"], given={"child": 2, "father": 1}).round(6)
    array([0. , 0.9, 0.1])
    """
    frequency = _probability("frequency", frequency, 1.0)
    if frequency == 0 or frequency == 1:
        raise ArgumentError("frequency", repr(frequency), "a frequency strictly between 0 and 1")
    mutation = _probability("mutation", mutation, 0.5)
    if not isinstance(trios, Mapping) or not trios:
        raise ArgumentError("trios", repr(trios), "a mapping of each child to its father and its mother")
    known: dict[Hashable, tuple[Hashable | None, Hashable | None]] = {}
    for child, couple in trios.items():
        if not isinstance(couple, tuple | list) or len(couple) != 2:
            raise ArgumentError(
                "trios", f"{couple!r} as parents of {child!r}", "pairs (father, mother), None if unknown"
            )
        if couple[0] == couple[1] and couple[0] is not None:
            seen = f"{couple[0]!r} as father and mother of {child!r}"
            raise ArgumentError("trios", seen, "pairs of two different people")
        known[child] = (couple[0], couple[1])
        for parent in couple:
            if parent is not None:
                known.setdefault(parent, trios.get(parent, (None, None)))
    stranger = np.array([_passed_on(frequency, mutation)])
    heir = np.array([_passed_on(copies / 2, mutation) for copies in range(3)])
    tables, parents = {}, {}
    for person, couple in known.items():
        alleles = [stranger if parent is None else heir for parent in couple]
        if couple == (None, None):
            alleles = [np.array([frequency])] * 2
        parents[person] = tuple(parent for parent in couple if parent is not None)
        shape = tuple(len(probability) for probability in alleles if len(probability) > 1)
        tables[person] = _child(*alleles).reshape(*shape, 3)
    return BayesianNetwork._from(parents, tables, latent)


def _passed_on(share: float, mutation: float) -> float:
    """Return the probability of passing the allele on, given its share among one's alleles."""
    return share * (1 - mutation) + (1 - share) * mutation


def _child(father: FloatArray, mother: FloatArray) -> FloatArray:
    """Return the law of a child's number of copies for each chance of getting one from father and from mother."""
    one, other = father[:, None], mother[None, :]
    law: FloatArray = np.stack([(1 - one) * (1 - other), one * (1 - other) + (1 - one) * other, one * other], axis=-1)
    return law


def _probability(argument: str, value: Any, most: float) -> float:
    expected = f"one number from 0 to {most:g}"
    array = real_array(argument, value, expected)
    if array.ndim or not 0 <= float(array) <= most:
        raise ArgumentError(argument, repr(value), expected)
    return float(array)


class BayesianNetwork(FactorGraph):
    """Model records by a Bayesian network: a directed acyclic graph with a conditional table for each node.

    Use it if each record depends directly on a few other records, its parents, or on unobserved (latent) nodes.
    `pedigree` builds the network of a family's genotypes.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    digraph : networkx.DiGraph
        Graph with an edge from each parent to its child. Nodes may be of any hashable type, and their order is that of
        the records.
    cpds : mapping of nodes to array_like, str, or list of pgmpy.TabularCPD, default None
        Conditional probabilities of each node given its parents: one axis per parent, in the order of
        ``digraph.predecessors(node)`` (the order in which the edges were added), then one axis for the states of the
        node itself, along which the entries sum to 1. A pair ``(parents, table)`` states the order of the parents. A
        string names the node attribute with the table. Tables of pgmpy, whose first axis is the node, are transposed.
        If None, `digraph` is a pgmpy network with tables of its own.
    latent : iterable of nodes, default ()
        Nodes that are not records. They are never observed, do not contribute to means, and have no privacy budget.

    Raises
    ------
    ArgumentError
        If the graph is undirected or empty or has parallel edges or a directed cycle; if a node lacks a table or has
        one of the wrong shape; or if entries are negative, missing, or do not sum to 1 within 1e-9 (in single
        precision, within the rounding of the entries).

    Notes
    -----
    The distribution is the product of the tables, so a Bayesian network is the factor graph of its tables. Two nodes
    are neighbours there when one is a parent of the other or they have a child in common (the moral graph). All notes
    on `FactorGraph` apply. The option "forward" of `variance_inflation`, available only in this class, bounds the
    variance inflation by propagating a change in one record from parents to children; see `graphs/PROOFS.md`, section
    on forward couplings.

    Examples
    --------
    Rain makes the street wet, and so does the sprinkler:

    >>> import networkx as nx
    >>> graph = nx.DiGraph([("rain", "wet"), ("sprinkler", "wet")])
    >>> wet = [[[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.05, 0.95]]]
    >>> model = BayesianNetwork(graph, {"rain": [0.8, 0.2], "sprinkler": [0.7, 0.3], "wet": wet})
    >>> model.records
    ('rain', 'wet', 'sprinkler')
    >>> model.marginal(["rain"], given={"wet": 1}).round(6)
    array([0.575406, 0.424594])
    >>> model.leakage(0.1).round(6)
    array([0.259952, 0.271546, 0.242799])
    """

    inflation_methods: ClassVar[tuple[str, ...]] = (*FactorGraph.inflation_methods[:-1], "forward", "parts")
    _inflations_given: ClassVar[tuple[str, ...]] = inflation_methods
    _is_law: ClassVar[bool] = True

    def __init__(self, digraph: nx.DiGraph[Any], cpds: Any = None, *, latent: Iterable[Hashable] = ()) -> None:
        parents = _parents(digraph)
        cpds = _tables(digraph, cpds)
        self._order = _topological(parents)
        unknown = [name for name in cpds if name not in parents]
        if unknown:
            raise ArgumentError("cpds", f"a table for {unknown[0]!r}", "tables of nodes of the graph")
        tables = {name: _conditional(name, cpds, above) for name, above in parents.items()}
        sizes = {name: table.shape[-1] for name, (_, table) in tables.items()}
        for name, (above, table) in tables.items():
            shape = (*(sizes[parent] for parent in above), sizes[name])
            if table.shape != shape:
                seen = f"a table of shape {table.shape} for {name!r}"
                advice = f"Its axes are those of the parents {list(above)!r}, then the node."
                raise ArgumentError("cpds", seen, f"tables of shape {shape} for {name!r}", advice)
        factors = [((*above, name), table) for name, (above, table) in tables.items()]
        super().__init__(sizes, factors, latent=latent)
        place = self._place
        self._laws = {place[name]: (tuple(place[v] for v in above), table) for name, (above, table) in tables.items()}

    def _network(self) -> Network:
        return replace(super()._network(), forward=self._forward())

    def _forward(self) -> ForwardCoupling:
        """Return the directed edges, with bounds on how far a parent moves its child's law among possible states."""
        states, m = self._potentials.states, len(self._nodes)
        alike: dict[tuple[int, ...], list[int]] = {}
        tables = {}
        for node, (above, table) in self._laws.items():
            whole = all(len(states[v]) == size for v, size in zip((*above, node), table.shape, strict=True))
            tables[node] = table if whole else table[np.ix_(*(states[v] for v in (*above, node)))]
            alike.setdefault(tables[node].shape, []).append(node)
        caps, edges, shares = np.zeros(m), [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0)]
        for nodes in alike.values():
            of_parents, caps[nodes] = total_variations(np.stack([tables[node] for node in nodes]))
            parents = np.array([self._laws[node][0] for node in nodes], dtype=np.int64)
            edges.append(np.stack([parents.ravel(), np.repeat(nodes, parents.shape[1])], axis=1))
            shares.append(of_parents.ravel())
        ends, order = np.concatenate(edges), np.array([self._place[name] for name in self._order], dtype=np.int64)
        unfit = np.zeros(m, dtype=np.bool_)
        return ForwardCoupling(order, ends[:, 0], ends[:, 1], np.concatenate(shares), caps, unfit)

    @classmethod
    def _from(cls, parents: Mapping[Hashable, tuple[Hashable, ...]], tables: Any, latent: Any) -> BayesianNetwork:
        """Build from a mapping of nodes to parents."""
        import networkx as nx

        digraph: nx.DiGraph[Any] = nx.DiGraph()
        digraph.add_nodes_from(parents)
        digraph.add_edges_from((parent, child) for child, above in parents.items() for parent in above)
        return cls(digraph, {name: (parents[name], table) for name, table in tables.items()}, latent=latent)

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic data set of n records, exactly, parents before children.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Index of each record's state.

        Examples
        --------
        >>> import networkx as nx
        >>> model = BayesianNetwork(nx.DiGraph([(0, 1)]), {0: [0.0, 1.0], 1: [[1.0, 0.0], [0.0, 1.0]]})
        >>> model.sample(np.random.default_rng(0))
        array([1, 1])
        """
        draws = rng.random(len(self._order)).tolist()
        state = [0] * len(self._order)
        for name, uniform in zip(self._order, draws, strict=True):
            node = self._place[name]
            above, sums = self._sums[node]
            row = sums[tuple([state[parent] for parent in above])]
            state[node] = int(np.searchsorted(row[:-1], uniform * row[-1], side="right"))
        return np.array(state, dtype=np.int64)[self._records]

    @cached_property
    def _sums(self) -> dict[int, tuple[tuple[int, ...], FloatArray]]:
        return {node: (above, np.cumsum(table, axis=-1)) for node, (above, table) in self._laws.items()}

    def describe(self) -> str:
        """Describe the model in one line of text."""
        hidden = len(self._nodes) - self.n
        more = f" and {hidden} latent nodes" if hidden else ""
        edges = sum(len(above) for above, _ in self._laws.values())
        return f"Bayesian network of {self.n} records{more} with {edges} edges"


def moralise(digraph: nx.DiGraph[Any]) -> nx.Graph[Any]:
    """Return the moral graph of a directed graph: directions dropped, parents of a common child joined."""
    import networkx as nx

    parents = _parents(digraph)
    _topological(parents)
    moral: nx.Graph[Any] = nx.Graph()
    moral.add_nodes_from(parents)
    for child, above in parents.items():
        family = (*above, child)
        moral.add_edges_from((family[a], family[b]) for b in range(len(family)) for a in range(b))
    return moral


def _parents(digraph: Any) -> dict[Hashable, tuple[Hashable, ...]]:
    """Return the parents of every node."""
    import networkx as nx

    if not isinstance(digraph, nx.DiGraph):
        raise ArgumentError("digraph", f"a {type(digraph).__name__}", "a networkx.DiGraph")
    if digraph.is_multigraph() and any(digraph.number_of_edges(u, v) > 1 for u, v in digraph.edges()):
        raise ArgumentError(
            "digraph",
            "parallel edges",
            "a graph with one edge from a parent to its child",
            "Pass networkx.DiGraph(digraph).",
        )
    if not len(digraph):
        raise ArgumentError("digraph", "a graph without nodes", "a graph with at least one node")
    return {node: tuple(digraph.predecessors(node)) for node in digraph}


def _topological(parents: Mapping[Hashable, tuple[Hashable, ...]]) -> list[Hashable]:
    """Return the nodes, parents before children."""
    left = {node: len(above) for node, above in parents.items()}
    children: dict[Hashable, list[Hashable]] = {node: [] for node in parents}
    for node, above in parents.items():
        for parent in above:
            children[parent].append(node)
    order = [node for node, count in left.items() if count == 0]
    for node in order:
        for child in children[node]:
            left[child] -= 1
            if not left[child]:
                order.append(child)
    if len(order) < len(parents):
        stuck = next(node for node, count in left.items() if count)
        raise ArgumentError("digraph", f"a cycle above {stuck!r}", "a directed graph without cycles")
    return order


def _tables(digraph: Any, cpds: Any) -> Mapping[Any, Any]:
    """Return the tables by node: as given, or those of a list of pgmpy's, or of a pgmpy network."""
    expected = "a mapping of nodes to tables, or a list of pgmpy.TabularCPD"
    if cpds is None:
        if not hasattr(digraph, "get_cpds"):
            raise ArgumentError("cpds", "nothing", expected, "Only a pgmpy network has tables of its own.")
        cpds = digraph.get_cpds()
    if isinstance(cpds, str):
        return {node: data[cpds] for node, data in digraph.nodes(data=True) if cpds in data}
    if not isinstance(cpds, Mapping):
        if not isinstance(cpds, list | tuple) or not all(_of_pgmpy(table) for table in cpds):
            raise ArgumentError("cpds", f"a {type(cpds).__name__}", expected)
        found: dict[Any, Any] = {}
        for table in cpds:
            if table.variable in found:
                raise ArgumentError("cpds", f"two tables for {table.variable!r}", "one table for each node")
            found[table.variable] = table
        cpds = found
    tables: Mapping[Any, Any] = cpds
    _check_states([table for table in tables.values() if _of_pgmpy(table)])
    return tables


def _check_states(tables: Sequence[Any]) -> None:
    """Refuse tables of pgmpy that name the states of a node in different orders."""
    orders: dict[Hashable, list[Any]] = {}
    for table in tables:
        for node, states in (getattr(table, "state_names", None) or {}).items():
            if orders.setdefault(node, list(states)) != list(states):
                seen = f"the states of {node!r} as {orders[node]!r} and as {list(states)!r}"
                raise ArgumentError("cpds", seen, "tables with one order of the states of a node")


def _of_pgmpy(value: Any) -> bool:
    return hasattr(value, "variable") and hasattr(value, "variables") and hasattr(value, "values")


def _conditional(
    name: Hashable, cpds: Mapping[Any, Any], parents: tuple[Hashable, ...]
) -> tuple[tuple[Hashable, ...], FloatArray]:
    """Return the parents of a node in the order of the axes of its table, and the table, normalised."""
    if name not in cpds:
        raise ArgumentError("cpds", f"no table for {name!r}", "one table for each node")
    value, above = cpds[name], parents
    if _of_pgmpy(value):
        value = (tuple(value.variables[1:]), np.moveaxis(np.asarray(value.values), 0, -1))
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple | list):
        stated = tuple(value[0])
        if set(stated) == set(parents) and len(stated) == len(parents):
            above, value = stated, value[1]
        elif not _is_number(value[0]):
            seen = f"the parents {list(stated)!r} for {name!r}"
            raise ArgumentError("cpds", seen, f"tables with the parents of the graph, {list(parents)!r}, in any order")
    expected = f"conditional probabilities of {name!r}: axes for the parents {list(above)!r}, then the node"
    table = real_array("cpds", value, expected)
    if table.ndim == 2 and above and len(table) > 1 and (abs(table.sum(axis=0) - 1) <= SUM_TOLERANCE).all():
        rows = table.ndim == len(above) + 1 and (abs(table.sum(axis=1) - 1) <= SUM_TOLERANCE).all()
        if not rows:
            seen = f"a table for {name!r} whose columns sum to 1, with the node first as in pgmpy"
            raise ArgumentError("cpds", seen, expected, "Pass the pgmpy.TabularCPD itself, which names its axes.")
    if table.ndim != len(above) + 1 or table.size == 0:
        raise ArgumentError("cpds", f"a table of shape {table.shape} for {name!r}", expected)
    if not np.isfinite(table).all() or (table < 0).any():
        seen = f"a negative, missing or infinite entry for {name!r}"
        raise ArgumentError("cpds", seen, "probabilities")
    sums = table.sum(axis=-1, keepdims=True)
    off = np.abs(sums - 1) > sum_tolerance(value, table.shape[-1])
    if off.any():
        seen = f"entries that sum to {float(sums[off][0]):.10g} for {name!r}"
        raise ArgumentError("cpds", seen, "probabilities that sum to 1 along the last axis")
    return above, table / sums


def _is_number(value: Any) -> bool:
    """Whether nested lists hold numbers, so that a pair is a table and not parents with a table."""
    try:
        return np.asarray(value).dtype.kind in "iuf"
    except ValueError:
        return False
