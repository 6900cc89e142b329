"""Messages of expected changes: how many nodes of a network change with one node.

Two laws of a network that differ in the state of node i alone can be coupled. The expected weight of the nodes that
differ is then at most w_i = c_i + sum over links of tanh(Delta/4) times a message, for any weights of single nodes and
any known nodes. Proof: `graphs/PROOFS.md`, section on messages of changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphs.leakage.loopy_messages import ROUNDS, Map, Rounds, Shrinkage
from graphs.leakage.network_messages import Propagation
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.incidence import Incidence
from graphs.structure.spanning_forest import grouped

__all__ = ["Arcs", "Changes", "LinearRounds"]

#: Relative residual of the linear system. The solution is lifted by as much, so it only loosens the bound.
LEFT = 1e-3

#: Weight of nodes that are no records, relative to the largest: positive, so that the bound is certified there too.
FAINT = 1e-9


class LinearRounds(Rounds):
    """Synchronous updates of all messages of changes; `passed` is a linear map."""

    def __init__(
        self, sources: IntArray, targets: IntArray, diameters: FloatArray, component: IntArray, passed: type[Map]
    ) -> None:
        self._order = order = grouped(targets, len(component))
        half, size = len(order) // 2, len(order)
        place = np.empty(size, dtype=np.int64)
        place[order] = np.arange(size)
        self._reverse = place[np.where(order < half, order + half, order - half)]
        self._sources = sources[order]
        self._component = component
        self._factors = passed(diameters[order]).apply(np.ones(size))
        counts = np.bincount(targets, minlength=len(component))
        self._into = np.flatnonzero(counts)
        self._starts = (np.cumsum(counts) - counts)[self._into]
        self._grow = 1 + 2 * (float(counts.max()) + 8) * UNIT

    def totals(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return the sum of all messages that each vertex receives, rounded up."""
        found = np.zeros(len(self._component))
        found[self._into] = np.add.reduceat(self.messages(budgets, rounds)[self._order], self._starts) * self._grow
        return found

    def messages(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return the message over each link, shape (2E,), rounded up."""
        found = np.zeros(len(self._order))
        if not budgets.any():
            return found
        caps = up(np.bincount(self._component, weights=budgets).astype(np.float64), len(budgets))
        found[self._order] = self._from_below(budgets, caps[self._component[self._sources]], rounds)
        return found

    def _from_below(self, budgets: FloatArray, caps: FloatArray, rounds: int) -> FloatArray:
        """Return messages without caps, or the caps in the components where none were found."""
        own = np.maximum(budgets, FAINT * float(budgets.max()))
        part = self._component[self._sources]
        first = up(self._factors * own[self._sources], 1)
        messages = first
        for _ in range(rounds):
            updated = np.minimum(self._passed(messages, own), caps)
            settled = not ((updated - messages) > LEFT * first).any()
            messages = updated
            if settled:
                break
        # messages over shares are a super-solution in each part: T is linear (PROOFS.md, messages of changes)
        left = messages - self._passed(messages, np.zeros(len(own))) - 4 * UNIT * messages
        shares = np.full(int(part.max()) + 1, np.inf)
        np.minimum.at(shares, part, left / first)
        shares *= 1 - 8 * UNIT
        scale = np.full(len(shares), np.inf)
        scale[shares > 0] = np.maximum(up(1 / shares[shares > 0], 2), 1.0)
        found: FloatArray = np.minimum(messages * scale[part], caps)
        return found

    def _passed(self, messages: FloatArray, own: FloatArray) -> FloatArray:
        """Return the links' maps of their own weights and of the other messages, rounded up."""
        sums = own.copy()
        sums[self._into] += np.add.reduceat(messages, self._starts)
        sums *= self._grow
        found = sums[self._sources]
        found -= messages[self._reverse]
        found *= self._factors
        found *= 1 + 8 * UNIT
        return found


@dataclass(frozen=True, slots=True)
class Arcs:
    """For each node and each other node of a factor with it, the share and the weight that a change adds."""

    payers: IntArray  # shape (A,): the node that changes, increasing
    others: IntArray  # shape (A,): a node in a common factor
    factors: IntArray  # shape (A,): a number of the factor, the same for all its arcs
    shares: FloatArray  # shape (A,): bound on the probability that the other changes too
    behind: FloatArray  # shape (A,): bound on the expected weight that changes with the other, without that factor


class Changes:
    """Messages of expected changes on one network."""

    def __init__(self, incidence: Incidence) -> None:
        self._size = incidence.n_nodes
        self._propagation = Propagation(incidence, Shrinkage, memory=True, large=LinearRounds)
        self._links = self._propagation.links
        self._solved: tuple[bytes, FloatArray] = (b"", np.zeros(0))

    @property
    def component(self) -> IntArray:
        """Number of the connected component of each node."""
        return self._propagation.component

    def totals(self, weights: FloatArray) -> FloatArray:
        """Return w: for each node the expected weight that changes with it, at most that of its component."""
        links, size = self._links, self._size
        into = links.targets < size
        values = self._messages(weights)[into]
        most = int(np.bincount(links.targets[into], minlength=1).max()) + 2
        received = np.bincount(links.targets[into], weights=values, minlength=size).astype(np.float64)
        caps = up(np.bincount(self.component, weights=weights).astype(np.float64), size)[self.component]
        return np.where(received == 0, weights, np.minimum(caps, up(weights + received, most)))

    def foremost(self, steps: int = 100) -> FloatArray:
        """Return a positive vector close to the first eigenvector of the influences of each component.

        The vector comes from the matrix of the links' shares. Influences are sums of its powers, up to walks that turn
        back.
        """
        from scipy import sparse

        links = self._links
        shares = Shrinkage(links.diameters).factors
        table = sparse.csr_array((shares, (links.targets, links.sources)), shape=(links.size, links.size))
        part = self._propagation.vertex_component
        vector = np.ones(links.size)
        for _ in range(steps):
            vector = 0.5 * vector + table @ vector  # the shift damps the oscillation on bipartite graphs
            largest = np.zeros(int(part.max()) + 1)
            np.maximum.at(largest, part, vector)
            vector /= largest[part]
        return np.maximum(vector[: self._size], 1e-6)

    def _messages(self, weights: FloatArray) -> FloatArray:
        """Return the messages for the weights; the last ones are cached."""
        key = weights.tobytes()
        if self._solved[0] != key:
            self._solved = (key, self._propagation.messages(weights))
        return self._solved[1]

    def arcs(self, weights: FloatArray) -> Arcs:
        """Return the cost of each node for each other node of its factors."""
        links, size = self._links, self._size
        sources, targets = links.sources, links.targets
        values, shares = self._messages(weights), Shrinkage(links.diameters).factors
        with np.errstate(divide="ignore", over="ignore"):
            behind = np.minimum(up(values / shares, 2), up(float(weights.sum()), len(weights)))
        direct = (sources < size) & (targets < size)
        ends = targets[direct], sources[direct]
        pairs = np.minimum(*ends) * size + np.maximum(*ends)
        columns = [(*ends, size + pairs, shares[direct], behind[direct])]
        if not direct.all():
            columns.append(self._through_factors(sources, targets, shares, values))
        payers, others, factors, shares, behind = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = grouped(payers, size)
        return Arcs(payers[order], others[order], factors[order], shares[order], behind[order])

    def _through_factors(
        self, sources: IntArray, targets: IntArray, shares: FloatArray, values: FloatArray
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
        """Return the arcs between members of factors of more than two: the payer's share, the other's message."""
        size = self._size
        into, back = np.flatnonzero(targets >= size), np.flatnonzero(sources >= size)
        into = into[np.lexsort((sources[into], targets[into]))]
        back = back[np.lexsort((targets[back], sources[back]))]
        factors, members = targets[into], sources[into]
        counts = np.bincount(factors - size)
        starts = np.cumsum(counts) - counts
        repeats = counts[factors - size]
        first = np.repeat(np.arange(len(into)), repeats)
        offsets = np.cumsum(repeats) - repeats
        second = np.arange(len(first)) - offsets[first] + starts[factors - size][first]
        apart = first != second
        first, second = first[apart], second[apart]
        names = size - 1 - factors[first]  # negative, so that they are no pairs
        return members[first], members[second], names, shares[back][first], values[into][second]
