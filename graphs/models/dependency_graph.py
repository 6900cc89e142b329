"""Dependency graphs: sets of records without an edge between them are independent."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.inflation.colouring import colouring_inflation, colours_needed
from graphs.known_records import BoolArray
from graphs.leakage.network_messages import Propagation
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.models.law_free import Groups
from graphs.numerics.arguments import FloatArray, IntArray, check_count
from graphs.numerics.rounding import up
from graphs.structure.incidence import Incidence
from graphs.structure.layout import GraphLike, read_graph
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["DependencyGraph", "elimination_inflation", "joined_edges"]


def joined_edges(edges: IntArray, known: npt.NDArray[np.bool_], most: int) -> IntArray | None:
    """Return the edges between unknown records, and those that paths with known interior add.

    >>> path = np.array([[0, 1], [1, 2], [2, 3]])
    >>> joined_edges(path, np.array([False, True, True, False]), 100).tolist()
    [[0, 1]]
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n, ends = len(known), known[edges]
    # records that border one cluster of known records are joined by a path with known interior
    inside = edges[ends.all(axis=1)]
    matrix = sparse.coo_array((np.ones(len(inside), dtype=np.int8), (inside[:, 0], inside[:, 1])), shape=(n, n))
    cluster = connected_components(matrix, directed=False)[1].astype(np.int64)
    border = edges[ends.sum(axis=1) == 1]
    stop = np.where(known[border[:, 0]], border[:, 0], border[:, 1])
    outer = border.sum(axis=1) - stop
    pairs = np.unique(cluster[stop] * n + outer)
    counts = np.bincount(pairs // n, minlength=1)
    if float((counts.astype(np.float64) * (counts - 1) / 2).sum()) > most:
        return None
    # each member of a cluster paired with all later members
    starts = np.r_[0, np.cumsum(counts)][pairs // n]
    follow = counts[pairs // n] - (np.arange(len(pairs)) - starts) - 1
    first = np.repeat(np.arange(len(pairs)), follow)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(follow) - follow, follow)
    found = np.stack([pairs[first] % n, pairs[second] % n], axis=1)
    number = np.cumsum(~known) - 1
    both = np.sort(number[np.concatenate([edges[~ends.any(axis=1)], found])], axis=1)
    left = max(int((~known).sum()), 1)
    keys = np.unique(both[:, 0] * left + both[:, 1])
    return np.stack([keys // left, keys % left], axis=1).astype(np.int64)


#: Most pairs of joined neighbours (about a second); the rest of a component is then one block.
MOST_JOINED = 3_000_000


def elimination_inflation(edges: IntArray, component: IntArray) -> float:
    """Return the variance inflation of statistics with bounded differences, rounded up.

    A tree: every record with its parent, and the root by itself.

    >>> path = np.array([[0, 1], [1, 2], [2, 3]])
    >>> round(elimination_inflation(path, np.zeros(4, dtype=int)), 9)
    3.0
    """
    widths, _ = joined_blocks(*eliminated(edges, component))
    squares: FloatArray = widths.astype(np.float64) ** 2
    whole = np.bincount(component).astype(np.float64) ** 2
    blocks = np.bincount(component, weights=squares, minlength=len(whole))
    return float(up(np.minimum(blocks, whole).sum() / len(component), len(component) + 4))


def eliminated(edges: IntArray, component: IntArray) -> tuple[list[int], IntArray, IntArray, IntArray]:
    """Return the order, the parent in the elimination tree, the number of later neighbours and the block of records.

    Records are eliminated by their number of neighbours at the time (minimum degree), and their neighbours are joined.
    The last records of a component, once all of them are neighbours or too many, are one block, which stands in the
    order at one of them. Every other block is one record. Roots are their own parents.
    """
    n = len(component)
    near: list[set[int]] = [set() for _ in range(n)]
    for first, second in edges.tolist():
        near[first].add(second)
        near[second].add(first)
    parts = component.tolist()
    left: list[set[int]] = [set() for _ in range(max(parts) + 1)]
    for node, part in enumerate(parts):
        left[part].add(node)
    fronts, homes = np.zeros(n, dtype=np.int64), list(range(n))
    order: list[int] = []
    heap = [(len(others), node) for node, others in enumerate(near)]
    heapq.heapify(heap)
    budget = MOST_JOINED
    while heap:
        degree, node = heapq.heappop(heap)
        rest = left[parts[node]]
        if node not in rest or degree != len(near[node]):  # an outdated entry of the heap
            continue
        order.append(node)
        budget -= degree**2
        if degree + 1 == len(rest) or budget < 0:  # the rest is a clique, or joining it costs too much: one block
            for other in rest:
                homes[other] = node
            rest.clear()
            continue
        rest.remove(node)
        fronts[node] = degree
        for other in near[node]:  # the elimination game
            near[other] |= near[node]
            near[other] -= {other, node}
            heapq.heappush(heap, (len(near[other]), other))
    place = {node: turn for turn, node in enumerate(order)}
    parents = np.arange(n)
    # the parent in the elimination tree is the first later neighbour
    for node in order:
        if fronts[node]:
            parents[node] = min((homes[other] for other in near[node]), key=place.__getitem__)
    return order, parents, fronts, np.array(homes, dtype=np.int64)


def joined_blocks(order: list[int], parents: IntArray, fronts: IntArray, homes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the widths of blocks, 0 for records without one, and the block of each record.

    From the leaves upwards a block joins that of its parent where this lowers the sum of squared widths.
    """
    counts, above = np.bincount(homes, minlength=len(parents)).tolist(), parents.tolist()
    widths, joins = np.zeros(len(parents), dtype=np.int64), np.arange(len(parents))
    for node in order:
        parent = above[node]
        width = counts[node] + int(fronts[node])
        if parent != node:
            apart = width**2 + (counts[parent] + int(fronts[parent])) ** 2
            # the joint block keeps the front of its root: descendants have no later neighbours beyond it
            if (counts[node] + counts[parent] + int(fronts[parent])) ** 2 < apart:
                counts[parent] += counts[node]
                joins[node], width = parent, 0
        widths[node] = width
    for node in reversed(order):
        joins[node] = joins[joins[node]]
    return widths, joins[homes]


#: Where known records join more pairs than this, the connected components count as groups.
MOST_EDGES = 10_000_000


class DependencyGraph(DependenceModel):
    """Model records by a dependency graph: sets of records without an edge between them are independent.

    Use it for statistics of overlapping parts of independent data, such as pairs of people, windows or subgraphs. A
    dependency graph is not a Markov network, in which records without an edge are independent only given all others
    (see `MarkovField`).

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    graph : networkx.Graph, or pair (edges, n)
        Edges between records that may depend on each other directly. Labels may be of any hashable type. A pair holds
        integer edges of shape (E, 2) between records 0 to n - 1. Parallel edges count once.
    distance : int, default 1
        Records more than this number of edges apart are independent. With 2, neighbours of neighbours may depend on
        each other too.
    records : iterable of labels, default None
        All nodes, in the order of the records. If None, the order of the graph.

    Raises
    ------
    ArgumentError
        If the graph is empty, directed or has self-loops, `records` are not the nodes of the graph, or `distance` is
        below 1.

    Notes
    -----
    Two distant records may depend on each other once other records are known. For an informed adversary, who may know
    other records, the leakage about record i is therefore at most the sum of the privacy budgets in its connected
    component. For an uninformed adversary, who knows the model only, it is at most the sum of the budgets of record i
    and its neighbours.

    For means over the records the bound on the variance inflation comes from a colouring of the graph [Janson 2004,
    Theorem 2.1]. It is at most the mean number of neighbours plus one. For statistics with bounded differences it comes
    from an elimination order [Zhang, Liu, Wang, Wang 2019]; see `graphs/PROOFS.md`, sections on colourings, windows and
    elimination orders. Given known records, two records are joined by a path between whose ends all are known.

    Examples
    --------
    >>> import networkx as nx
    >>> model = DependencyGraph(nx.cycle_graph(6))
    >>> model.leakage(0.1, adversary="uninformed").round(6)
    array([0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
    >>> round(model.variance_inflation(), 9)
    2.0
    """

    methods: ClassVar[tuple[str, ...]] = ("group", "quilt")
    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "colouring", "elimination")

    def __init__(self, graph: GraphLike, *, distance: int = 1, records: Iterable[Hashable] | None = None) -> None:
        steps = check_count("distance", distance)
        layout = read_graph(graph, (), records, "multiply")
        if len(layout.records) < layout.size:
            missing = next(iter(set(range(layout.size)).difference(layout.records.tolist())))
            seen = f"all but {layout.labels[missing]!r}"
            raise ArgumentError("records", seen, "all nodes of the graph", "A dependency graph has no latent nodes.")
        labels = tuple(layout.labels[k] for k in layout.records.tolist())
        place = np.empty(layout.size, dtype=np.int64)
        place[layout.records] = np.arange(layout.size)
        ends = np.sort(place[layout.edges], axis=1)
        keys = np.unique(ends[:, 0] * layout.size + ends[:, 1])
        edges = np.stack([keys // layout.size, keys % layout.size], axis=1)
        self._join(edges if steps == 1 else _within(edges, len(labels), steps), labels)

    def _join(self, edges: IntArray, labels: tuple[Hashable, ...]) -> None:
        super().__init__(len(labels))
        self._edges, self._labels = edges, labels

    @property
    def records(self) -> tuple[Hashable, ...]:
        """Labels of the records, in the order of all arrays about them."""
        return self._labels

    @property
    def edges(self) -> IntArray:
        """Pairs of records that may depend on each other directly, by number, shape (E, 2).

        Examples
        --------
        >>> import networkx as nx
        >>> DependencyGraph(nx.path_graph(3)).edges.tolist()
        [[0, 1], [1, 2]]
        """
        return self._edges.copy()

    def subset(self, records: Sequence[Hashable]) -> DependencyGraph:
        """Restrict the model to some of the records.

        Parameters
        ----------
        records : sequence of labels
            Labels of the records to keep, each once, in their new order.

        Returns
        -------
        DependencyGraph
            Model of the kept records. Two are joined if they are at most `distance` edges apart in the whole graph.

        Raises
        ------
        ArgumentError
            If a label is not a record, or repeats.

        Examples
        --------
        >>> import networkx as nx
        >>> DependencyGraph(nx.path_graph(4), distance=2).subset([3, 1]).independent_groups() is None
        True
        """
        place = {label: k for k, label in enumerate(records)}
        known = set(self._labels)
        missing = [label for label in records if label not in known]
        if missing or len(place) < len(records) or not records:
            seen = f"no record {missing[0]!r}" if missing else "a record twice, or none"
            raise ArgumentError("records", seen, "labels of some records, each once")
        new = np.array([place.get(label, -1) for label in self._labels], dtype=np.int64)[self._edges].reshape(-1, 2)
        kept = np.sort(new[(new >= 0).all(axis=1)], axis=1)
        found = object.__new__(DependencyGraph)
        found._join(kept[np.lexsort((kept[:, 1], kept[:, 0]))], tuple(records))
        return found

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        budgets = np.broadcast_to(np.asarray(epsilon), (self.n,)).astype(np.float64)
        if method == "group":
            sizes = np.bincount(self._component)
            sums = up(np.bincount(self._component, weights=budgets).astype(np.float64), float(sizes.max()))
            return Profile.of(np.where(sizes[self._component] == 1, budgets, sums[self._component]))
        if adversary == "informed" and len(self._edges):
            reason = "records far apart may depend on each other once records between them are known"
            raise RouteUnavailable(method, reason, ("best", "group"))
        first, second = self._edges.T
        near = np.bincount(first, weights=budgets[second], minlength=self.n)
        near = near + np.bincount(second, weights=budgets[first], minlength=self.n)
        degrees = np.bincount(self._edges.ravel(), minlength=self.n)
        return Profile.of(np.where(degrees == 0, budgets, up(budgets + near, float(degrees.max(initial=0) + 2))))

    def _inflation(self, method: str) -> float:
        if method == "colouring":
            return self._coloured
        if method == "elimination":
            return self._eliminated
        sizes = np.bincount(self._component).astype(np.int64)
        return int(np.sum(sizes**2)) / self.n * (1 + 2**-51)

    def effective_records(self) -> float:
        """Compute the effective sample size for bounds by relative entropy (Chernoff bounds).

        See `DependenceModel.effective_records` for the bound that holds with it.

        Returns
        -------
        float
            The number n of records, divided by the largest number of colours that a connected component needs. Records
            of one colour are independent of each other.
        """
        return self.n / self._colours

    @cached_property
    def _coloured(self) -> float:
        return colouring_inflation(self._edges, self._component)

    @cached_property
    def _eliminated(self) -> float:
        return elimination_inflation(self._edges, self._component)

    @cached_property
    def _colours(self) -> float:
        return colours_needed(self._edges, self._component)

    @cached_property
    def _component(self) -> IntArray:
        return Propagation(Incidence.pairwise(self._edges, np.ones(len(self._edges)), self.n)).component

    def _content(self) -> Mapping[str, Any]:
        return {"n": self.n, "edges": self._edges}

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of int, or None
            Number of records of each connected component of the graph. None if there is only one component.
        """
        sizes = np.bincount(self._component).astype(np.int64)
        return sizes if len(sizes) > 1 or self.n == 1 else None

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Bound how many records change with each block when records are revealed block after block.

        See `DependenceModel.revealed_blocks` for the definition and for `missed`.

        Returns
        -------
        RevealedBlocks
            Attribute `changes` holds the numbers of records that change with a block, `counts` the number of such
            blocks. The blocks are the connected components, or stretches of records in an order that keeps neighbours
            close.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        sizes = RevealedBlocks.of_groups(np.bincount(self._component))
        first, second = self._edges.T
        if not len(first):
            return sizes
        ends = np.concatenate([first, second]), np.concatenate([second, first])
        graph = coo_array((np.ones(len(ends[0])), ends), shape=(self.n, self.n)).tocsr()
        place = np.empty(self.n, dtype=np.int64)
        place[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(self.n)
        last = np.arange(self.n)
        np.maximum.at(last, place[ends[0]], place[ends[1]])
        stretches = RevealedBlocks.of_reach(np.maximum.accumulate(last))
        return min(sizes, stretches, key=lambda blocks: blocks.squares)

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic data set of zeros and ones in which neighbours depend on each other.

        Every record and every edge has a standard normal number. A record is 1 if its own number and those of its edges
        have a positive sum, otherwise 0.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record, 0 or 1.
        """
        shared = rng.standard_normal(len(self._edges))
        sums = rng.standard_normal(self.n)
        for ends in self._edges.T:
            sums += np.bincount(ends, weights=shared, minlength=self.n)
        return (sums > 0).astype(np.int64)

    def _remainder(self, known: BoolArray) -> DependenceModel:
        edges = joined_edges(self._edges, known, MOST_EDGES)
        if edges is None:
            return Groups(self._component[~known])
        model = DependencyGraph.__new__(DependencyGraph)
        model._join(edges, tuple(label for label, out in zip(self._labels, known, strict=True) if not out))
        return model

    def _record_labels(self) -> tuple[Hashable, ...]:
        return self.records

    def describe(self) -> str:
        """Describe the model in one line of text."""
        edges = f"{len(self._edges)} edge{'s' if len(self._edges) != 1 else ''}"
        return f"{self.n} records, independent where none of {edges} of a graph joins them"


def _within(edges: IntArray, n: int, distance: int) -> IntArray:
    """Return the pairs of records that are at most so many edges apart, in order."""
    from scipy.sparse import coo_array, csr_array, triu

    ones = np.ones(2 * len(edges), dtype=bool)
    both = np.concatenate([edges, edges[:, ::-1]])
    step = csr_array(coo_array((ones, (both[:, 0], both[:, 1])), shape=(n, n)))
    reached = step
    for _ in range(distance - 1):
        more = (reached + reached @ step).astype(bool)
        if more.nnz == reached.nnz and (more != reached).nnz == 0:
            break
        reached = more
    found = coo_array(triu(reached, k=1))
    pairs = np.stack([found.row, found.col], axis=1).astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
