"""The best variance inflation of each independent part of a network.

A part is a connected component. Every route gives each part a sum of squares s_g with ln E exp(u (q - E q)) <= u^2 (sum
of s_g) / (8 n^2). Different parts may use different routes. Proofs: `graphs/PROOFS.md`, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from graphs.inflation.changes import Arcs, Changes
from graphs.inflation.forward_coupling import ForwardCoupling
from graphs.inflation.influences import interdependence, interdependence_squares
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up
from graphs.routes import INFLATIONS
from graphs.structure.incidence import Incidence

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["NetworkParts", "ordered_squares"]

#: Most rounds that join blocks, and about how many arcs they visit in all; any blocks are valid.
JOINS = 12
MOST_JOINED = 4_000_000

#: Most rounds that remove nodes of low degree.
PEELS = 24

#: Most links of a walk behind an arc, and most walks of one length; longer walks end in a message.
DEPTH = 6
MOST_WALKS = 300_000

BoolArray = npt.NDArray[np.bool_]


def ordered_squares(arcs: Arcs, weights: FloatArray, part: IntArray) -> FloatArray:
    """Return, for each part, the smallest sum of squares found."""
    # any order and any blocks are valid, so each part keeps the best of all that are tried (PROOFS.md, section 5)
    m = len(part)
    costs = arcs.shares * arcs.behind
    best, rank = np.full(int(part.max()) + 1, np.inf), np.zeros(m, dtype=np.int64)
    for order in _orders(arcs, weights, part, costs):
        for tried in _ranks(order, weights, part):
            best, rank = _better(best, rank, _squares(tried, weights, part, arcs, costs), tried, part)
    costs = _reached(rank, weights, arcs)
    best = np.minimum(best, _squares(rank, weights, part, arcs, costs))
    for turn in range(min(JOINS, 1 + MOST_JOINED // (len(costs) + 1))):
        before = best
        for joined in _joined(rank, arcs, costs, weights, turn):
            again = _reached(joined, weights, arcs)
            best, rank = _better(best, rank, _squares(joined, weights, part, arcs, again), joined, part)
        if not (best < before).any():
            break
        costs = _reached(rank, weights, arcs)
    return best


def _better(
    best: FloatArray, rank: IntArray, squares: FloatArray, tried: IntArray, part: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the smaller sum for each part, and the ranks that it has."""
    return np.minimum(best, squares), np.where((squares < best)[part], tried, rank)


def _squares(rank: IntArray, weights: FloatArray, part: IntArray, arcs: Arcs, costs: FloatArray) -> FloatArray:
    """Return the sum of squared widths over the blocks of each part; a block is the nodes of one rank.

    Nodes of the last rank, the number of nodes, are never revealed.
    """
    m = len(part)
    paying = rank[arcs.payers]
    # a node of an earlier block, or of the same block, is fixed or counted already: it costs nothing
    behind = rank[arcs.others] > paying
    widths = np.bincount(rank, weights=weights, minlength=m + 1)
    widths = widths + np.bincount(paying[behind], weights=costs[behind], minlength=m + 1)
    widths[m] = 0.0  # nodes that are never revealed have no martingale difference
    home = np.zeros(m + 1, dtype=np.int64)
    home[rank] = part
    squares: FloatArray = np.bincount(home, weights=widths**2, minlength=int(part.max()) + 1).astype(np.float64)
    return up(squares, 3 * (m + len(costs)) + 8)


def _ranks(order: IntArray, weights: FloatArray, part: IntArray) -> Iterator[IntArray]:
    """Yield the ranks of an order for each part, and those in which nodes that are no records are never revealed."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order[np.argsort(part[order], kind="stable")]] = np.arange(len(order))
    yield rank
    if (weights == 0).any():
        yield np.where(weights == 0, len(order), rank)


def _orders(arcs: Arcs, weights: FloatArray, part: IntArray, costs: FloatArray) -> Iterator[IntArray]:
    """Yield promising orders of the nodes."""
    from scipy import sparse
    from scipy.sparse.csgraph import breadth_first_order

    m = len(weights)
    yield np.arange(m)
    # heavy nodes first: once revealed, they no longer count in the widths of the others
    heavy = np.argsort(-(weights + np.bincount(arcs.payers, weights=costs, minlength=m)), kind="stable")
    yield heavy
    # breadth first from the heaviest node of each part, through one extra node that joins the parts
    root = np.empty(int(part.max()) + 1, dtype=np.int64)
    root[part[heavy[::-1]]] = heavy[::-1]
    start, end = np.concatenate([arcs.payers, np.full(len(root), m)]), np.concatenate([arcs.others, root])
    links = sparse.csr_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(m + 1, m + 1))
    yield breadth_first_order(links, m, return_predecessors=False)[1:].astype(np.int64)
    peeled = _peeled(sparse.csr_array(links[:m, :m]))
    yield peeled[::-1]
    yield peeled


def _peeled(links: sparse.csr_array) -> IntArray:
    """Return the nodes in the order in which those of low degree are removed."""
    links.data[:] = 1
    left = np.diff(links.indptr).astype(np.float64)
    stage = np.full(len(left), PEELS, dtype=np.int64)
    for turn in range(PEELS):
        inside = stage == PEELS
        if not inside.any():
            break
        gone = inside & (left <= left[inside].min())
        stage[gone] = turn
        left -= links @ gone.astype(np.float64)
    return np.argsort(stage, kind="stable")


def _reached(rank: IntArray, weights: FloatArray, arcs: Arcs) -> FloatArray:
    """Return the costs of arcs by self-avoiding walks to nodes behind the payer only."""
    m = len(weights)
    starts = np.searchsorted(arcs.payers, np.arange(m + 1))
    first = np.flatnonzero((rank[arcs.others] > rank[arcs.payers]) & (rank[arcs.payers] < m))
    steps, since = [first], [np.zeros(0, dtype=np.int64)]
    from_rank, trail = rank[arcs.payers[first]], arcs.others[first][:, None]
    while len(steps) < DEPTH:
        at = steps[-1]
        counts = np.diff(starts)[arcs.others[at]]
        if counts.sum() > MOST_WALKS:  # the messages so far end the walks
            break
        parent = np.repeat(np.arange(len(at)), counts)
        offsets = np.cumsum(counts) - counts
        onward = np.arange(len(parent)) - offsets[parent] + starts[arcs.others[at]][parent]
        entered = arcs.others[onward]
        # behind the first payer only, out of another factor, and to no node of the walk: the recursion of A
        kept = (rank[entered] > from_rank[parent]) & (arcs.factors[onward] != arcs.factors[at][parent])
        kept &= (trail[parent] != entered[:, None]).all(axis=1)
        parent, onward = parent[kept], onward[kept]
        if not len(onward):
            steps.append(onward)
            since.append(parent)
            break
        steps.append(onward)
        since.append(parent)
        from_rank, trail = from_rank[parent], np.hstack([trail[parent], arcs.others[onward][:, None]])
    values = arcs.behind[steps[-1]]
    for depth in range(len(steps) - 1, 0, -1):
        at = steps[depth - 1]
        sums = np.bincount(since[depth], weights=arcs.shares[steps[depth]] * values, minlength=len(at))
        counts = np.bincount(since[depth], minlength=len(at)).max(initial=0)
        # the message is a bound as well, so the smaller of both counts
        values = np.minimum(arcs.behind[at], up(weights[arcs.others[at]] + sums, float(counts) + 3))
    costs = up(arcs.shares * arcs.behind, 1)
    costs[first] = up(arcs.shares[first] * values, 1)
    return costs


def _joined(rank: IntArray, arcs: Arcs, costs: FloatArray, weights: FloatArray, turn: int) -> Iterator[IntArray]:
    """Yield ranks with profitable pairs of blocks joined, at the later place and at the earlier."""
    m = len(rank)
    low, high = rank[arcs.payers], rank[arcs.others]
    used = (low < high) & (high < m)
    if not used.any():
        return
    widths = np.bincount(rank, weights=weights, minlength=m + 1)
    behind = low < high
    widths = widths + np.bincount(low[behind], weights=costs[behind], minlength=m + 1)
    keys, place = np.unique(low[used] * m + high[used], return_inverse=True)
    between = np.bincount(place, weights=costs[used])
    first, second = np.divmod(keys, m)
    both = widths[first] + widths[second]
    # inside a block the arcs between its two halves cost nothing
    gain = widths[first] ** 2 + widths[second] ** 2 - (both - between) ** 2
    gain *= np.random.default_rng(turn).uniform(0.9, 1.0, len(gain))  # breaks ties differently in each round
    order = np.argsort(-gain, kind="stable")
    # a matching: pairs of blocks that are the best choice of each other
    best = np.full(m, -1, dtype=np.int64)
    ends = np.stack([first[order], second[order]], axis=1).ravel()
    blocks, where = np.unique(ends, return_index=True)
    best[blocks] = order[where // 2]
    chosen = np.flatnonzero((gain > 0) & (best[first] == np.arange(len(gain))) & (best[second] == np.arange(len(gain))))
    if not len(chosen):
        return
    for old, new in ((first, second), (second, first)):
        moved = np.arange(m + 1)
        moved[old[chosen]] = new[chosen]
        yield moved[rank]


class NetworkParts:
    """Sums of squares of the parts of a network, by every route."""

    routes: ClassVar[tuple[str, ...]] = ("components", "interdependence", "ordered", "influences")

    def __init__(
        self,
        incidence: Incidence,
        edges: IntArray,
        diameters: FloatArray,
        weights: FloatArray,
        forward: ForwardCoupling | None = None,
    ) -> None:
        self._changes, self._directed = Changes(incidence), forward
        self._edges, self._diameters, self._weights = edges, diameters, weights
        self._sums: dict[str, FloatArray] = {}

    @property
    def component(self) -> IntArray:
        """Number of the part of each node."""
        return self._changes.component

    def sums(self, route: str) -> FloatArray:
        """Return the sum of squares of each part by one of `routes`; infinite where it does not apply."""
        if route not in self._sums:
            self._sums[route] = getattr(self, f"_{route}")()
        return self._sums[route]

    def total(self, route: str, bounded_differences: bool = False) -> float:
        """Return the sum over all parts by one route, or by the best route of each part for "parts"; rounded up."""
        sums = self._best(bounded_differences).min(axis=0) if route == "parts" else self.sums(route)
        return up(float(sums.sum()), len(sums))

    def explain(self, bounded_differences: bool = False) -> str:
        """Return in words in how many parts each route is the best."""
        table = self._best(bounded_differences)
        names = self._applicable(bounded_differences)
        counts = np.bincount(table.argmin(axis=0)[self._of_parts(self._weights) > 0], minlength=len(names))
        order = np.argsort(-counts, kind="stable")
        first, *others = [(names[k], int(counts[k])) for k in order.tolist() if counts[k]]
        said = f"{first[0]} in {first[1]} of {int(counts.sum())} parts"
        return ", ".join([said, *(f"{name} in {count}" for name, count in others)])

    def reach(self, weights: FloatArray) -> FloatArray:
        """Return for each node a bound on the expected weight that changes with it; rounded up."""
        return self._changes.totals(weights)

    def foremost(self) -> FloatArray:
        """Return a vector close to the first eigenvector of the influences of each part."""
        return self._changes.foremost()

    def _best(self, bounded_differences: bool) -> FloatArray:
        return np.stack([self.sums(route) for route in self._applicable(bounded_differences)])

    def _applicable(self, bounded_differences: bool) -> tuple[str, ...]:
        routes = self.routes if self._directed is None else (*self.routes, "forward")
        return tuple(name for name in routes if INFLATIONS[name].bounded_differences or not bounded_differences)

    def _components(self) -> FloatArray:
        return up(self._of_parts(self._weights), len(self._weights)) ** 2 * (1 + 2.0**-50)

    def _influences(self) -> FloatArray:
        return up(self._of_parts(self._weights * self.reach(self._weights)), len(self._weights) + 2)

    def _ordered(self) -> FloatArray:
        return ordered_squares(self._changes.arcs(self._weights), self._weights, self.component)

    def _interdependence(self) -> FloatArray:
        part, weights = self.component, self._weights
        infinite = np.zeros(int(part.max()) + 1, dtype=np.bool_)
        infinite[part[self._edges[~np.isfinite(self._diameters), 0]]] = True
        matrix = interdependence(self._edges, np.where(np.isfinite(self._diameters), self._diameters, 0.0), len(part))
        squares = interdependence_squares(matrix, weights, part)
        return np.where(infinite, np.inf, squares)

    def _forward(self) -> FloatArray:
        assert self._directed is not None
        return self._directed.squares(self._weights, self.component)

    def _of_parts(self, values: FloatArray) -> FloatArray:
        found: FloatArray = np.bincount(self.component, weights=values).astype(np.float64)
        return found
