"""Leakage on any network by passing messages, vectorised over edges.

Proofs of all statements: `graphs/PROOFS.md`, the sections on messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphs.arguments import FloatArray, IntArray
from graphs.messages import gain
from graphs.rounding import UNIT, up

__all__ = ["Incidence", "Propagation", "propagate"]

#: Rounds of updates on networks with loops, unless the messages settle before.
ROUNDS = 200

#: Relative change of every message at which they count as settled.
SETTLED = 1e-12

#: Messages handled at a time, so that intermediate results stay in the processor's cache.
BLOCK = 1 << 15

#: Added to every contracted message: larger than what underflow can take away.
TINY = 2.0**-1000


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

    C_{f,i}, D_{j,f} and C_i are caps, here the budget of the component, which group privacy grants. Iterated from these caps, every iterate is a
    bound. Where the network is a forest, two sweeps give the fixed point; elsewhere all messages are updated
    together until none changes by more than a relative 1e-12, or the rounds are used up.

    Examples
    --------
    A ring of five, each edge of diameter 1:

    >>> ring = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    >>> propagate(Incidence.pairwise(ring, np.ones(5), 5), np.full(5, 0.1)).round(8)
    array([0.16484264, 0.16484264, 0.16484264, 0.16484264, 0.16484264])
    """
    return Propagation(incidence).leakages(epsilon, rounds)


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
        caps = up(sums.astype(np.float64), float(counts.max()))[self.component]
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
        self.grow: FloatArray = 1 + 2 * (self.lengths.astype(np.float64) + 2) * UNIT
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
