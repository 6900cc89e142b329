"""Leakage on any network by passing messages, vectorised over edges.

Proofs of all statements: `graphs/PROOFS.md`, the sections on messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from graphs.arguments import FloatArray, IntArray
from graphs.rooted import grouped
from graphs.rounding import UNIT, up
from graphs.rounds import ROUNDS, Rounds

__all__ = ["Incidence", "Propagation", "propagate"]

BoolArray: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Incidence:
    """Which node is in which factor, and how strongly.

    Parameters
    ----------
    nodes : ndarray of shape (E,)
        Node of each row, 0 to n_nodes - 1; one row for each pair of a factor and one of its members.
    factors : ndarray of shape (E,)
        Factor of each row, 0 to n_factors - 1.
    diameters : ndarray of shape (E,)
        Diameter Delta of the factor seen from that node: the largest range, over joint states z of the other members,
        of ln f(u, z) / f(v, z), u and v states of the node. Not negative, possibly infinite.
    n_nodes, n_factors : int
        How many there are; nodes without a factor are independent of all others.

    Examples
    --------
    >>> Incidence.pairwise(np.array([[0, 1], [1, 2]]), np.array([1.0, 2.0]), 3).nodes
    array([0, 1, 1, 2])
    """

    nodes: IntArray
    factors: IntArray
    diameters: FloatArray
    n_nodes: int
    n_factors: int

    @classmethod
    def pairwise(cls, edges: IntArray, diameters: FloatArray, n_nodes: int) -> Incidence:
        """Return the incidence of a network whose factors are its edges.

        Parameters
        ----------
        edges : ndarray of shape (E, 2)
            The two nodes of each edge.
        diameters : ndarray of shape (E,)
            Projective diameter of each edge; it is the same from both ends.
        n_nodes : int
            Number of nodes.

        Returns
        -------
        Incidence
        """
        count = len(edges)
        return cls(edges.ravel(), np.repeat(np.arange(count), 2), np.repeat(diameters, 2), n_nodes, count)


def propagate(incidence: Incidence, epsilon: FloatArray, rounds: int = ROUNDS) -> FloatArray:
    """Return what a mechanism tells about each node of a network, by messages.

    Parameters
    ----------
    incidence : Incidence
        The network.
    epsilon : ndarray of shape (n_nodes,)
        Privacy budget of each node, nats, finite and not negative; 0 for nodes that are no records.
    rounds : int
        Most rounds of updates where the network has loops; any number gives a valid bound.

    Returns
    -------
    ndarray of shape (n_nodes,)
        Upper bounds alpha_i, nats, rounded up, for every set of nodes that the adversary may know.

    Notes
    -----
    With m_{f->i} the message from factor f to node i, sums over members j of f and over other factors g of j,

        m_{f->i} = phi(Delta_f^i, min{C_{f,i}, sum_j alpha_{j->f}}),
        alpha_{j->f} = min{D_{j,f}, eps'_j + sum_g m_{g->j}},
        alpha_i = min{C_i, eps'_i + sum_f m_{f->i}}.

    C_{f,i} is the budget of all nodes that hang together with f when i is deleted, D_{j,f} that of all nodes that hang
    together with j when f is deleted, C_i that of the component of i. Iterated from these caps, every iterate is a
    bound. Where the network is a forest, two sweeps give the fixed point; elsewhere all messages are updated together
    until none changes by more than a relative 1e-12, or the rounds are used up.

    Examples
    --------
    A ring of five, each edge of diameter 1:

    >>> ring = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    >>> propagate(Incidence.pairwise(ring, np.ones(5), 5), np.full(5, 0.1)).round(8)
    array([0.16484264, 0.16484264, 0.16484264, 0.16484264, 0.16484264])
    """
    return Propagation(incidence).leakages(epsilon, rounds)


class Propagation:
    """What propagating messages on one network needs, whatever the budgets.

    Parameters
    ----------
    incidence : Incidence
        The network.

    Notes
    -----
    A factor of two members is a link between them that contracts messages both ways. A factor of more members is a
    vertex without a budget: what goes into it passes unchanged, what comes out of it is contracted.
    """

    def __init__(self, incidence: Incidence) -> None:
        links = _Links.of(incidence)
        self._n_nodes = incidence.n_nodes
        self._component = _components(links)
        self._sizes = np.bincount(self._component[: incidence.n_nodes])
        own_links = np.bincount(self._component[links.sources], minlength=len(self._sizes)) // 2
        tree = own_links < np.bincount(self._component)
        self._parts: list[tuple[IntArray, Sweeps | Rounds]] = []
        for kind, chosen in ((Sweeps, tree & (own_links > 0)), (Rounds, ~tree)):
            if chosen.any():
                inside = chosen[self._component]
                part = links.restricted(inside)
                component = (np.cumsum(chosen) - 1)[self._component[inside]]
                solver = kind(part.sources, part.targets, part.diameters, component)
                self._parts.append((np.flatnonzero(inside), solver))

    @property
    def component(self) -> IntArray:
        """Number of the connected component of each node, shape (n_nodes,)."""
        return self._component[: self._n_nodes]

    def leakages(self, epsilon: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return `propagate` for one choice of budgets.

        Parameters
        ----------
        epsilon : ndarray of shape (n_nodes,)
            Privacy budget of each node, nats.
        rounds : int
            Most rounds of updates where the network has loops.

        Returns
        -------
        ndarray of shape (n_nodes,)
        """
        budgets = np.zeros(len(self._component))
        budgets[: self._n_nodes] = epsilon
        totals = np.zeros(len(budgets))
        for vertices, solver in self._parts:
            if isinstance(solver, Sweeps):
                totals[vertices] = solver.totals(budgets[vertices])
            else:
                totals[vertices] = solver.totals(budgets[vertices], rounds)
        sums = np.bincount(self.component, weights=epsilon).astype(np.float64)
        caps = (sums * (1 + 2 * (self._sizes + 2) * UNIT))[self.component]
        received = totals[: self._n_nodes]
        return np.where(received == 0, epsilon, np.minimum(caps, up(epsilon + received, 1)))


@dataclass(frozen=True, slots=True)
class _Links:
    """Links between vertices: first all in one direction, then all in the other.

    Vertices are the nodes, then the factors of more than two members.
    """

    sources: IntArray
    targets: IntArray
    diameters: FloatArray
    size: int

    @classmethod
    def of(cls, incidence: Incidence) -> _Links:
        """Return the links of a network; what connects nothing is left out."""
        nodes, factors, diameters = incidence.nodes, incidence.factors, incidence.diameters
        members = np.bincount(factors, minlength=incidence.n_factors)
        if (members[factors] <= 1).any() or (diameters == 0).any():
            used = (members[factors] > 1) & (diameters > 0)
            nodes, factors, diameters = nodes[used], factors[used], diameters[used]
            members = np.bincount(factors, minlength=incidence.n_factors)
        if len(factors) and (factors[1:] < factors[:-1]).any():
            order = grouped(factors, incidence.n_factors)
            nodes, factors, diameters = nodes[order], factors[order], diameters[order]
        sizes = members[factors]
        two, many = (slice(None), slice(0)) if (sizes == 2).all() else (sizes == 2, sizes > 2)
        ends, seen = nodes[two].reshape(-1, 2), diameters[two].reshape(-1, 2)
        big, vertex = np.unique(factors[many], return_inverse=True)
        forward = np.concatenate([ends[:, 0], nodes[many]])
        backward = np.concatenate([ends[:, 1], incidence.n_nodes + vertex])
        out = np.concatenate([seen[:, 1], np.full(len(vertex), np.inf)])
        back = np.concatenate([seen[:, 0], diameters[many]])
        return cls(
            np.concatenate([forward, backward]),
            np.concatenate([backward, forward]),
            np.concatenate([out, back]),
            incidence.n_nodes + len(big),
        )

    def restricted(self, vertices: BoolArray) -> _Links:
        """Return the links at some `vertices`, whole components, which are numbered anew."""
        if vertices.all():
            return self
        rows = vertices[self.sources]
        number = np.cumsum(vertices) - 1
        sources, targets = number[self.sources[rows]], number[self.targets[rows]]
        return _Links(sources, targets, self.diameters[rows], int(vertices.sum()))


def _components(links: _Links) -> IntArray:
    """Return the number of the connected component of each vertex."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    half = len(links.sources) // 2
    shape = (links.size, links.size)
    entries = np.ones(half, dtype=np.int8)
    matrix = sparse.coo_array((entries, (links.sources[:half], links.targets[:half])), shape=shape)
    return connected_components(matrix, directed=False)[1].astype(np.int64)


class Propagation:
    """The arrays that propagating messages on one network needs, whatever the budgets.

    Parameters
    ----------
    incidence : Incidence
        The network.
    """

    def __init__(self, incidence: Incidence) -> None:
        members = np.bincount(incidence.factors, minlength=incidence.n_factors)
        used = np.flatnonzero((members[incidence.factors] > 1) & (incidence.diameters > 0))
        used = used[np.lexsort((incidence.factors[used], incidence.nodes[used]))]
        self.n_nodes = incidence.n_nodes
        self.nodes = incidence.nodes[used]
        factors = incidence.factors[used]
        self.diameters = incidence.diameters[used]
        self.t, self.r = gain(self.diameters)
        self.at_nodes = Segments(self.nodes)
        self.by_factor = np.argsort(factors, kind="stable")
        self.at_factors = Segments(factors[self.by_factor])
        self.component = _components(self.n_nodes, self.nodes, factors)

    def leakages(self, epsilon: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return `propagate` for one choice of budgets."""
        sums = np.bincount(self.component, weights=epsilon)
        counts = np.bincount(self.component)
        caps = up(sums, float(counts.max()))[self.component]
        caps = np.where(counts[self.component] == 1, epsilon, caps)
        if not len(self.nodes):
            return caps
        own = epsilon[self.nodes]
        cap = caps[self.nodes]
        messages = np.empty(len(own))
        self._contract(cap, messages)
        for _ in range(rounds):
            before = messages
            messages = self._round(own, cap, before)
            if (messages >= before * (1 - SETTLED)).all():
                break
        totals = np.bincount(self.nodes, weights=messages, minlength=self.n_nodes)
        degrees = np.bincount(self.nodes, minlength=self.n_nodes)
        return np.minimum(caps, (epsilon + totals) * (1 + 2 * (degrees + 4) * UNIT * (degrees > 0)))

    def _round(self, own: FloatArray, cap: FloatArray, messages: FloatArray) -> FloatArray:
        """Return all messages after one update, none above what it was."""
        leakage = (self.at_nodes.others(messages) + own) * (1 + 4 * UNIT)
        behind = np.empty(len(own))
        behind[self.by_factor] = self.at_factors.others(leakage[self.by_factor])
        np.minimum(behind, cap, out=behind)
        updated = np.empty(len(own))
        self._contract(behind, updated)
        return np.minimum(updated, messages, out=updated)

    def _contract(self, behind: FloatArray, out: FloatArray) -> None:
        """Write phi(Delta, behind) to `out`, rounded up; `behind` may be overwritten.

        With V = expm1(alpha/2), phi is 2 log1p(t V / (1 + r V)); at most 22 units of error, since neither map enlarges
        relative errors. Where V overflows, or is multiplied by zero, the smaller of both arguments remains.
        """
        enlarge = 2 * (1 + 2 * 26 * UNIT)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for start in range(0, len(out), BLOCK):
                rows = slice(start, start + BLOCK)
                value = np.expm1(behind[rows] * 0.5)
                below = self.r[rows] * value
                below += 1
                value *= self.t[rows]
                value /= below
                np.log1p(value, out=value)
                value *= enlarge
                value += TINY
                np.fmin(value, behind[rows], out=value)
                np.fmin(value, self.diameters[rows], out=out[rows])


class Segments:
    """Sums over the other members of each segment of a sorted array.

    Parameters
    ----------
    keys : ndarray of shape (E,)
        Not decreasing; equal keys make a segment.
    """

    def __init__(self, keys: IntArray) -> None:
        first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, dtype=np.int64)
        self.starts = first
        self.lengths = np.diff(np.r_[first, len(keys)])
        self.grow = 1 + 2 * (self.lengths + 2) * UNIT
        self.alone = np.repeat(self.lengths == 1, self.lengths)
        self.pairs = bool((self.lengths == 2).all())

    def others(self, values: FloatArray) -> FloatArray:
        """Return, for each entry, the sum of the other entries of its segment, rounded up.

        Notes
        -----
        Subtracting an entry from the sum of all loses digits when it is most of the sum. At most one entry of a
        segment is more than half of the (enlarged) sum; its others are added up without it.

        Examples
        --------
        >>> Segments(np.array([0, 0, 0, 1])).others(np.array([1.0, 2.0, 4.0, 8.0]))
        array([6., 5., 3., 0.])
        """
        if self.pairs:
            return values.reshape(-1, 2)[:, ::-1].ravel()
        totals = np.repeat(np.add.reduceat(values, self.starts) * self.grow, self.lengths)
        most = values + values > totals
        rest = np.add.reduceat(np.where(most, 0.0, values), self.starts) * self.grow
        totals -= values
        totals *= 1 + 2 * UNIT
        np.copyto(totals, np.repeat(rest, self.lengths), where=most)
        totals[self.alone] = 0.0
        return totals


def _components(n_nodes: int, nodes: IntArray, factors: IntArray) -> IntArray:
    """Return the number of the connected component of each node."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    _, compact = np.unique(factors, return_inverse=True)
    size = n_nodes + (int(compact.max()) + 1 if len(compact) else 0)
    links = sparse.coo_array((np.ones(len(nodes), dtype=np.int8), (nodes, n_nodes + compact)), shape=(size, size))
    labels = connected_components(links, directed=False)[1][:n_nodes]
    return labels.astype(np.int64)


class Propagation:
    """The arrays that propagating messages on one network needs, whatever the budgets.

    Parameters
    ----------
    incidence : Incidence
        The network.
    """

    def __init__(self, incidence: Incidence) -> None:
        members = np.bincount(incidence.factors, minlength=incidence.n_factors)
        used = np.flatnonzero((members[incidence.factors] > 1) & (incidence.diameters > 0))
        used = used[np.lexsort((incidence.factors[used], incidence.nodes[used]))]
        self.n_nodes = incidence.n_nodes
        self.nodes = incidence.nodes[used]
        factors = incidence.factors[used]
        self.diameters = incidence.diameters[used]
        self.t, self.r = gain(self.diameters)
        self.at_nodes = Segments(self.nodes)
        self.by_factor = np.argsort(factors, kind="stable")
        self.at_factors = Segments(factors[self.by_factor])
        self.component = _components(self.n_nodes, self.nodes, factors)

    def leakages(self, epsilon: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return `propagate` for one choice of budgets."""
        sums = np.bincount(self.component, weights=epsilon)
        counts = np.bincount(self.component)
        caps = up(sums, float(counts.max()))[self.component]
        caps = np.where(counts[self.component] == 1, epsilon, caps)
        if not len(self.nodes):
            return caps
        own = epsilon[self.nodes]
        cap = caps[self.nodes]
        messages = np.empty(len(own))
        self._contract(cap, messages)
        for _ in range(rounds):
            before = messages
            messages = self._round(own, cap, before)
            if (messages >= before * (1 - SETTLED)).all():
                break
        totals = np.bincount(self.nodes, weights=messages, minlength=self.n_nodes)
        degrees = np.bincount(self.nodes, minlength=self.n_nodes)
        return np.minimum(caps, (epsilon + totals) * (1 + 2 * (degrees + 4) * UNIT * (degrees > 0)))

    def _round(self, own: FloatArray, cap: FloatArray, messages: FloatArray) -> FloatArray:
        """Return all messages after one update, none above what it was."""
        leakage = (self.at_nodes.others(messages) + own) * (1 + 4 * UNIT)
        behind = np.empty(len(own))
        behind[self.by_factor] = self.at_factors.others(leakage[self.by_factor])
        np.minimum(behind, cap, out=behind)
        updated = np.empty(len(own))
        self._contract(behind, updated)
        return np.minimum(updated, messages, out=updated)

    def _contract(self, behind: FloatArray, out: FloatArray) -> None:
        """Write phi(Delta, behind) to `out`, rounded up; `behind` may be overwritten.

        With V = expm1(alpha/2), phi is 2 log1p(t V / (1 + r V)); at most 22 units of error, since neither map enlarges
        relative errors. Where V overflows, or is multiplied by zero, the smaller of both arguments remains.
        """
        enlarge = 2 * (1 + 2 * 26 * UNIT)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for start in range(0, len(out), BLOCK):
                rows = slice(start, start + BLOCK)
                value = np.expm1(behind[rows] * 0.5)
                below = self.r[rows] * value
                below += 1
                value *= self.t[rows]
                value /= below
                np.log1p(value, out=value)
                value *= enlarge
                value += TINY
                np.fmin(value, behind[rows], out=value)
                np.fmin(value, self.diameters[rows], out=out[rows])


class Segments:
    """Sums over the other members of each segment of a sorted array.

    Parameters
    ----------
    keys : ndarray of shape (E,)
        Not decreasing; equal keys make a segment.
    """

    def __init__(self, keys: IntArray) -> None:
        first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, dtype=np.int64)
        self.starts = first
        self.lengths = np.diff(np.r_[first, len(keys)])
        self.grow = 1 + 2 * (self.lengths + 2) * UNIT
        self.alone = np.repeat(self.lengths == 1, self.lengths)
        self.pairs = bool((self.lengths == 2).all())

    def others(self, values: FloatArray) -> FloatArray:
        """Return, for each entry, the sum of the other entries of its segment, rounded up.

        Notes
        -----
        Subtracting an entry from the sum of all loses digits when it is most of the sum. At most one entry of a
        segment is more than half of the (enlarged) sum; its others are added up without it.

        Examples
        --------
        >>> Segments(np.array([0, 0, 0, 1])).others(np.array([1.0, 2.0, 4.0, 8.0]))
        array([6., 5., 3., 0.])
        """
        if self.pairs:
            return values.reshape(-1, 2)[:, ::-1].ravel()
        totals = np.repeat(np.add.reduceat(values, self.starts) * self.grow, self.lengths)
        most = values + values > totals
        rest = np.add.reduceat(np.where(most, 0.0, values), self.starts) * self.grow
        totals -= values
        totals *= 1 + 2 * UNIT
        np.copyto(totals, np.repeat(rest, self.lengths), where=most)
        totals[self.alone] = 0.0
        return totals


def _components(n_nodes: int, nodes: IntArray, factors: IntArray) -> IntArray:
    """Return the number of the connected component of each node."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    _, compact = np.unique(factors, return_inverse=True)
    size = n_nodes + (int(compact.max()) + 1 if len(compact) else 0)
    links = sparse.coo_array((np.ones(len(nodes), dtype=np.int8), (nodes, n_nodes + compact)), shape=(size, size))
    labels = connected_components(links, directed=False)[1][:n_nodes]
    return labels.astype(np.int64)
