"""Leakage on any network by message passing, vectorised over edges.

Proofs of all statements: `graphs/PROOFS.md`, the sections on messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from graphs.errors import RouteUnavailable
from graphs.leakage.largest_budget import FEWEST, is_searching
from graphs.leakage.loopy_messages import ROUNDS, Contraction, Map, Rounds, Segments
from graphs.leakage.self_avoiding import MOST_WALKS, SelfAvoiding
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up, upward_sum
from graphs.structure.incidence import Incidence
from graphs.structure.spanning_forest import Rooted, grouped

__all__ = ["Bands", "Links", "Propagation", "Sweeps", "propagate"]

#: Levels in a band: about as many steps replace one step for each level.
DEPTH = 256

#: Relative change at the edges of bands that counts as convergence.
SETTLED = 1e-13

#: Most sweeps. With weak contraction, bands take longer than visiting one vertex after the other.
MOST_SWEEPS = 16


class Bands:
    """The positions of a rooted forest, ordered by their level within their band."""

    def __init__(
        self,
        tree: Rooted,
        grow: FloatArray,
        upwards: FloatArray,
        downwards: FloatArray,
        passed: type[Map],
        levels: int = DEPTH,
    ) -> None:
        # level k of every band is one step, so a deep forest takes `levels` steps instead of its depth
        count = len(tree.order) - 1
        depth = np.repeat(np.arange(len(tree.levels) - 1), np.diff(tree.levels))[1:]
        step = (depth - 1) % levels
        self._places: IntArray = 1 + np.argsort(step, kind="stable")
        rank = np.empty(count + 1, dtype=np.int64)
        rank[self._places], rank[0] = np.arange(count), count
        self._parent: IntArray = rank[tree.parent[self._places]]
        self._stops: IntArray = np.searchsorted(step[self._places - 1], np.arange(step.max() + 2))
        self._grow = np.append(grow[self._places], grow[0])
        self._up, self._down = passed(upwards[self._places]), passed(downwards[self._places])
        self._families = [self._family(rows) for rows in self._steps()]

    def from_below(self, own: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the message of each position to its parent, and the sum of those that it receives."""
        steps, mine = list(self._steps()), own[self._places]
        messages, sums = np.zeros(len(mine)), np.zeros(len(mine) + 1)
        edge = steps[0]
        # the sum of all budgets bounds every message, and updates of bounds are bounds
        messages[edge] = self._up.apply(np.full(len(mine[edge]), upward_sum(own)), edge)
        for _ in range(MOST_SWEEPS):
            before = messages[edge].copy()
            self._receive(0, messages, sums)
            for step in range(len(steps) - 1, -1, -1):
                rows = steps[step]
                messages[rows] = self._up.apply(up(mine[rows] + sums[rows], 1), rows)
                if step:
                    self._receive(step, messages, sums)
            if not (before - messages[edge] > SETTLED * messages[edge]).any():
                return self._by_position(messages), self._by_position(sums[:-1], sums[-1])
        return None

    def from_above(self, around: FloatArray, most: float) -> FloatArray | None:
        """Return the message that each position receives from its parent."""
        steps, mine = list(self._steps()), around[self._places]
        messages = np.zeros(len(mine) + 1)
        edge = steps[-1]
        messages[edge] = self._down.apply(np.full(len(mine[edge]), most), edge)  # a bound again
        for _ in range(MOST_SWEEPS):
            before = messages[edge].copy()
            for rows in steps:
                behind = up(mine[rows] + messages[self._parent[rows]], 1)
                messages[rows] = self._down.apply(behind, rows)
            if not (before - messages[edge] > SETTLED * messages[edge]).any():
                return self._by_position(messages[:-1])
        return None

    def _steps(self) -> Iterator[slice]:
        """Yield the places of all positions that have the same level within their bands."""
        for start, stop in zip(self._stops[:-1].tolist(), self._stops[1:].tolist(), strict=True):
            yield slice(start, stop)

    def _family(self, rows: slice) -> tuple[IntArray, IntArray]:
        """Return where the families of siblings start in a step, and the places of their parents."""
        parents = self._parent[rows]
        starts = np.flatnonzero(np.r_[True, parents[1:] != parents[:-1]])
        return starts, parents[starts]

    def _receive(self, step: int, messages: FloatArray, sums: FloatArray) -> None:
        """Add up the messages that the parents of a step receive."""
        starts, parents = self._families[step]
        rows = slice(self._stops[step], self._stops[step + 1])
        sums[parents] = np.add.reduceat(messages[rows], starts) * self._grow[parents]

    def _by_position(self, values: FloatArray, first: float = 0.0) -> FloatArray:
        """Return values in the order of positions."""
        found = np.empty(len(values) + 1)
        found[self._places], found[0] = values, first
        return found


#: Deep forests with more vertices are swept in bands of levels.
BANDED = 50_000


class Sweeps:
    """Two sweeps over a forest, towards the roots and back, whose links contract messages."""

    def __init__(
        self,
        sources: IntArray,
        targets: IntArray,
        diameters: FloatArray,
        component: IntArray,
        passed: type[Map] = Contraction,
    ) -> None:
        self._tree = tree = Rooted(sources, targets, component)
        size = len(tree.order)
        place, goal = tree.position[sources], tree.position[targets]
        upwards = tree.parent[place] == goal
        self._passed = passed
        self._upwards, self._downwards = np.zeros(size), np.zeros(size)
        self._upwards[place[upwards]] = diameters[upwards]
        self._downwards[goal[~upwards]] = diameters[~upwards]
        self._is_upward, self._sent, self._received = upwards, place[upwards], goal[~upwards]
        self._siblings = Segments(tree.parent[1:])
        self._grow = np.ones(size)
        self._grow[self._siblings.keys] = self._siblings.grow

    @cached_property
    def _up(self) -> Map:
        return self._passed(self._upwards)

    @cached_property
    def _down(self) -> Map:
        return self._passed(self._downwards)

    @cached_property
    def _bands(self) -> Bands:
        return Bands(self._tree, self._grow, self._upwards, self._downwards, self._passed)

    def totals(self, budgets: FloatArray) -> FloatArray:
        """Return the sum of all messages that each vertex receives, rounded up."""
        _, from_below, from_above = self._run(budgets)
        found = up(from_below + from_above, 1)
        return found[self._tree.position[:-1]]

    def messages(self, budgets: FloatArray) -> FloatArray:
        """Return the message over each link, shape (2E,), rounded up."""
        sent, _, received = self._run(budgets)
        found = np.empty(len(self._is_upward))
        found[self._is_upward], found[~self._is_upward] = sent[self._sent], received[self._received]
        return found

    def _run(self, budgets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return, by position, the message to the parent, the sum of those from below, and the one from above."""
        own = np.append(budgets, 0.0)[self._tree.order]
        if not self._tree.narrow:
            return self._by_levels(own)
        found = self._by_bands(own) if len(own) > BANDED else None  # None where bands do not converge
        return self._one_by_one(own) if found is None else found

    def _around(self, own: FloatArray, messages: FloatArray) -> FloatArray:
        """Return the messages of parents to each position, without the parents' own message from above."""
        around = np.zeros(len(own))
        around[1:] = own[self._tree.parent[1:]] + self._siblings.others(messages[1:])
        return up(around, 1)

    def _by_levels(self, own: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        tree = self._tree
        messages, from_below, from_above = np.zeros((3, len(own)))
        for level in range(len(tree.levels) - 2, 0, -1):
            members, starts, parents = tree.families(level)
            behind = up(own[members] + from_below[members], 1)
            messages[members] = self._up.apply(behind, members)
            from_below[parents] = np.add.reduceat(messages[members], starts) * self._grow[parents]
        around = self._around(own, messages)
        for low, high in zip(tree.levels[1:], tree.levels[2:], strict=False):
            members = slice(low, high)
            behind = up(around[members] + from_above[tree.parent[members]], 1)
            from_above[members] = self._down.apply(behind, members)
        return messages, from_below, from_above

    def _by_bands(self, own: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        below = self._bands.from_below(own)
        if below is None:
            return None
        messages, sums = below
        above = self._bands.from_above(self._around(own, messages), upward_sum(own))
        return None if above is None else (messages, sums, above)

    def _one_by_one(self, own: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        send, receive = self._up.one, self._down.one
        parents, grow = self._tree.parent.tolist(), self._grow.tolist()
        sums, messages, budgets = [0.0] * len(own), [0.0] * len(own), own.tolist()
        for p in range(len(sums) - 1, 0, -1):
            sums[p] *= grow[p]
            messages[p] = send(p, (budgets[p] + sums[p]) * ONE_ROUNDING)
            sums[parents[p]] += messages[p]
        around = self._around(own, np.array(messages)).tolist()
        above = [0.0] * len(own)
        for p in range(1, len(above)):
            above[p] = receive(p, (around[p] + above[parents[p]]) * ONE_ROUNDING)
        return np.array(messages), np.array(sums), np.array(above)


#: Enlargement for one rounded addition.
ONE_ROUNDING = 1 + 6 * UNIT


BoolArray: TypeAlias = npt.NDArray[np.bool_]


def propagate(incidence: Incidence, epsilon: FloatArray, rounds: int = ROUNDS) -> FloatArray:
    """Return the leakage about each node of a network, by messages.

    With m_{f->i} the message from factor f to node i, sums over members j of f and over other factors g of j,

        m_{f->i} = phi(Delta_f^i, min{C_{f,i}, sum_j alpha_{j->f}}),
        alpha_{j->f} = min{D_{j,f}, eps'_j + sum_g m_{g->j}},
        alpha_i = min{C_i, eps'_i + sum_f m_{f->i}}.

    C_{f,i} is the budget of all nodes that are connected with f when i is deleted, D_{j,f} that of all nodes that are
    connected with j when f is deleted, C_i that of the component of i. Iterated from these caps, every iterate is a
    bound. Where the network is a forest, two sweeps give the fixed point. Elsewhere all messages are updated together,
    with verified extrapolation, until none changes by more than a relative 1e-12, or the rounds are used up.
    """
    return Propagation(incidence).leakages(epsilon, rounds)


class Propagation:
    """Message passing on one network, prepared for any budgets.

    A factor of two members is a link between them that contracts messages both ways. A factor of more members is a
    vertex without a budget: messages enter it unchanged and are contracted on the way out. `large` replaces `Rounds`
    where there are more than `MOST_WALKS` links.
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
        self._last: tuple[bytes, int, FloatArray] | None = None
        self._component = _components(links)
        self._sizes = np.bincount(self._component[: incidence.n_nodes])

    @cached_property
    def _parts(self) -> list[tuple[IntArray, Sweeps | Rounds | SelfAvoiding]]:
        """Vertices with the solver of their messages; none with memory where no loop can be remembered."""
        return self._solvers(whole=not self._memory)

    @cached_property
    def _all_parts(self) -> list[tuple[IntArray, Sweeps | Rounds | SelfAvoiding]]:
        """Vertices with the solver of their messages, components without a loop to remember included."""
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
        """Whether any messages remember more than their source."""
        return any(isinstance(solver, SelfAvoiding) for _, solver in self._parts)

    def leakages(self, epsilon: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return `propagate` for one choice of budgets.

        Several routes query the same budgets in turn, so the last result is cached. Networks with memory, and large
        ones during a search, continue from their kept messages instead (`graphs.leakage.largest_budget`).
        """
        if self._memory or (len(self.links.sources) >= FEWEST and is_searching()):
            return self._leakages(epsilon, rounds)
        key = np.asarray(epsilon).tobytes()
        if self._last is None or self._last[:2] != (key, rounds):
            self._last = key, rounds, self._leakages(epsilon, rounds)
        return self._last[2].copy()

    def _leakages(self, epsilon: FloatArray, rounds: int) -> FloatArray:
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
        """Return the message over each of `links`."""
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
        """Return the links of a network, without factors that connect nothing."""
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
        """Return the links with parallel ones merged; their diameters add up."""
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
        """Return the links among some `vertices`, whole components, renumbered."""
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
