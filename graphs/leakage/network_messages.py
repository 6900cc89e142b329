"""Leakage on any network by passing messages, vectorised over edges.

Proofs of all statements: `graphs/PROOFS.md`, the sections on messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from graphs.errors import RouteUnavailable
from graphs.leakage.forest_messages import Sweeps
from graphs.leakage.loopy_messages import ROUNDS, Rounds
from graphs.leakage.segment_sums import Contraction, Map
from graphs.leakage.self_avoiding import MOST_WALKS, SelfAvoiding
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.incidence import Incidence
from graphs.structure.spanning_forest import grouped

__all__ = ["Links", "Propagation", "propagate"]

BoolArray: TypeAlias = npt.NDArray[np.bool_]


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
    bound. Where the network is a forest, two sweeps give the fixed point; elsewhere all messages are updated together,
    with verified leaps ahead, until none changes by more than a relative 1e-12, or the rounds are used up.

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
    passed : type of Map
        What links make of messages: phi(Delta, .) for leakages, tanh(Delta / 4) for expected numbers of records
        that change.
    memory : bool
        Whether messages around loops remember where they come from (`graphs.leakage.self_avoiding`).
    large : type of Rounds, optional
        What passes messages around loops in place of `Rounds` where there are more than `MOST_WALKS` links.

    Notes
    -----
    A factor of two members is a link between them that contracts messages both ways. A factor of more members is a
    vertex without a budget: what goes into it passes unchanged, what comes out of it is contracted.

    Examples
    --------
    On a ring nothing passes a record twice:

    >>> ring = Incidence.pairwise(np.array([[0, 1], [1, 2], [2, 0]]), np.ones(3), 3)
    >>> Propagation(ring).leakages(np.full(3, 0.1)).round(6)
    array([0.164843, 0.164843, 0.164843])
    >>> Propagation(ring, memory=True).leakages(np.full(3, 0.1)).round(6)
    array([0.16096, 0.16096, 0.16096])
    """

    def __init__(
        self,
        incidence: Incidence,
        passed: type[Map] = Contraction,
        memory: bool = False,
        large: type[Rounds] | None = None,
    ) -> None:
        links = Links.of(incidence)
        if memory:
            links = links.merged()
        self.links, self._passed, self._memory, self._large = links, passed, memory, large
        self._n_nodes = incidence.n_nodes
        self._component = _components(links)
        self._sizes = np.bincount(self._component[: incidence.n_nodes])

    @cached_property
    def _parts(self) -> list[tuple[IntArray, Sweeps | Rounds | SelfAvoiding]]:
        """Vertices and what passes their messages; none with memory where no loop can be remembered."""
        return self._solvers(whole=not self._memory)

    @cached_property
    def _all_parts(self) -> list[tuple[IntArray, Sweeps | Rounds | SelfAvoiding]]:
        """Vertices and what passes their messages, those of components without a loop to remember included."""
        return self._solvers(whole=True)

    def _solvers(self, whole: bool) -> list[tuple[IntArray, Sweeps | Rounds | SelfAvoiding]]:
        links, memory = self.links, self._memory
        own_links = np.bincount(self._component[links.sources], minlength=len(self._sizes)) // 2
        tree = own_links < np.bincount(self._component)
        parts: list[tuple[IntArray, Sweeps | Rounds | SelfAvoiding]] = []
        for loops, chosen in ((True, ~tree), (False, tree & (own_links > 0))):
            if chosen.any() and (loops or parts or whole):
                inside = chosen[self._component]
                part = links.restricted(inside)
                component = (np.cumsum(chosen) - 1)[self._component[inside]]
                vertices = np.flatnonzero(inside)
                given = part.sources, part.targets, part.diameters, component, self._passed
                if loops and self._large is not None and len(part.sources) > MOST_WALKS:
                    parts.append((vertices, self._large(*given)))
                elif not loops:
                    parts.append((vertices, Sweeps(*given)))
                elif not memory:
                    parts.append((vertices, Rounds(*given)))
                elif (solver := SelfAvoiding(*given, vertices >= self._n_nodes)).remembers:
                    parts.append((vertices, solver))
                elif whole:
                    parts.append((vertices, Rounds(*given)))
        return parts

    @property
    def component(self) -> IntArray:
        """Number of the connected component of each node, shape (n_nodes,)."""
        return self._component[: self._n_nodes]

    @property
    def vertex_component(self) -> IntArray:
        """Number of the connected component of each vertex: of the nodes, then of factors of more than two members."""
        return self._component

    @property
    def _remembers(self) -> bool:
        """Whether any messages remember more than the vertex that they come from."""
        return any(isinstance(solver, SelfAvoiding) for _, solver in self._parts)

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

        Raises
        ------
        RouteUnavailable
            When messages should remember the way around loops, and no loop can be remembered.
        """
        if self._memory and not self._remembers:
            reason = "no loops, or none that are short enough to be remembered"
            raise RouteUnavailable("self-avoiding", reason, ("best", "messages", "group"))
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

    def messages(self, epsilon: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return what arrives over each of `links`.

        Parameters
        ----------
        epsilon, rounds
            As for `leakages`.

        Returns
        -------
        ndarray of shape (2E,)
            Rounded up.
        """
        budgets = np.zeros(len(self._component))
        budgets[: self._n_nodes] = epsilon
        found = np.full(len(self.links.sources), np.nan)
        for vertices, solver in self._all_parts:
            inside = np.zeros(len(budgets), dtype=np.bool_)
            inside[vertices] = True
            given = budgets[vertices]
            sent = solver.messages(given) if isinstance(solver, Sweeps) else solver.messages(given, rounds)
            found[inside[self.links.sources]] = sent
        assert not np.isnan(found).any(), "every link is in a component"
        return found


@dataclass(frozen=True, slots=True)
class Links:
    """Links between vertices: first all in one direction, then all in the other.

    Vertices are the nodes, then the factors of more than two members.
    """

    sources: IntArray
    targets: IntArray
    diameters: FloatArray
    size: int

    @classmethod
    def of(cls, incidence: Incidence) -> Links:
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

    def merged(self) -> Links:
        """Return the links with those of the same ends made one, whose diameter is the sum."""
        half = len(self.sources) // 2
        low = np.minimum(self.sources[:half], self.targets[:half])
        high = np.maximum(self.sources[:half], self.targets[:half])
        keys = low * self.size + high
        ordered = np.sort(keys)
        if (ordered[1:] != ordered[:-1]).all():
            return self
        keys, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
        upwards = self.sources < self.targets
        sums = [
            up(np.bincount(np.tile(place, 2)[way], weights=self.diameters[way]).astype(np.float64), float(counts.max()))
            for way in (upwards, ~upwards)
        ]
        low, high = np.divmod(keys, self.size)
        return Links(np.concatenate([low, high]), np.concatenate([high, low]), np.concatenate(sums), self.size)

    def restricted(self, vertices: BoolArray) -> Links:
        """Return the links at some `vertices`, whole components, which are numbered anew."""
        if vertices.all():
            return self
        rows = vertices[self.sources]
        number = np.cumsum(vertices) - 1
        sources, targets = number[self.sources[rows]], number[self.targets[rows]]
        return Links(sources, targets, self.diameters[rows], int(vertices.sum()))


def _components(links: Links) -> IntArray:
    """Return the number of the connected component of each vertex."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    half = len(links.sources) // 2
    shape = (links.size, links.size)
    entries = np.ones(half, dtype=np.int8)
    matrix = sparse.coo_array((entries, (links.sources[:half], links.targets[:half])), shape=shape)
    return connected_components(matrix, directed=False)[1].astype(np.int64)
