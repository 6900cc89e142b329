"""Markov quilts of any network: the influence of a record on the nodes that separate it from all but a few.

For a connected set C = {i} + N of nodes with boundary Q, every path from i to the remaining nodes R meets Q. Let L be
records in N, and

    I = ln max P(x_Q | x_i, x_L) / P(x_Q | x_i', x_L)       (the influence, for one L),
    D = range over x_Q of ln P(x_Q | x_i, x_L) / P(x_Q | x_i', x_L), the largest over x_L and pairs x_i, x_i',

over configurations of positive probability (0/0 is left out, positive/0 is infinite). Let E be the sum of the budgets
of i and of the records in N. A mechanism leaks about record i at most

    (a) E + max over L of D                            to every adversary; D <= 2 I,
    (b) E + max over L of phi(D, sum of alpha_q over Q)     to every adversary, where alpha_q bounds the leakage
        about q and every joint state of the component is possible,
    (c) E + min{I, D} with L empty, and (b) with L empty, to one who knows the model only.

*Proof.* Let S be known, L the part of it in N, G(x_i, x_Q) = P[y | x_i, x_S, x_Q] and w(x_{Q-S} | x_i) =
P(x_{Q-S} | x_i, x_S). So P[y | x_i, x_S] is the sum of w G over x_{Q-S}. Given x_Q the unknown remote nodes do not
depend on (x_i, x_N). For fixed remote nodes two data sets differ in i and in unknown records of N only, hence
G(x_i, .) <= e^E G(x_i', .). By the same separation w(. | x_i) is proportional to P(x_Q | x_i, x_L) times a function of
x_Q that does not depend on x_i. So ln w(. | x_i) / w(. | x_i') is ln P(x_Q | x_i, x_L) / P(x_Q | x_i', x_L) up to a
constant. Its range is at most D, and since both are probabilities its maximum is at most D as well: (a). The maximum of
ln P/P' is at most I and its minimum at least -I, so D <= 2 I. (b): x_Q can be changed from any value to any other one
coordinate at a time through possible values, and each step is a leakage to an adversary who knows the other
coordinates. So G(x_i', .) has log-range at most the sum of the alpha_q; Lemma 2 of `graphs/PROOFS.md`. (c): with S
empty, w is P(x_Q | x_i) itself. The published form [Z17, Lemma 2] is E + 4 max over L of I, with N empty [Z17, Lemma 3]
E + 4 I.

*D needs the near factors only.* P(x_Q | x_i, x_L) is T(x_i, x_L, x_Q) g(x_Q) up to a factor that depends on (x_i, x_L)
only. T is the sum over the unknown near nodes of the product of the factors that touch C, and g the sum over R of the
product of all others. So D is the range of ln T(x_i, x_L, .) - ln T(x_i', x_L, .), for x_Q with g(x_Q) > 0; taking all
x_Q can only enlarge it. I needs g and with it the whole component.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from graphs.errors import ArgumentError
from graphs.leakage.influence import known_subsets, largest_influences, largest_ranges
from graphs.leakage.loopy_messages import Segments
from graphs.leakage.messages import phi
from graphs.leakage.network_messages import Links, Propagation
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import charges, up
from graphs.structure.elimination import Table, eliminate
from graphs.structure.incidence import Incidence
from graphs.structure.neighbourhoods import Neighbourhoods, Pattern
from graphs.structure.potentials import Potentials
from graphs.structure.separators import Effort, balls, boundary, candidates, nearby

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["BallQuilts", "NetworkQuilts"]

#: Largest number of steps, and most pairs of a record and a near one (about half a second and 100 MB).
MOST_STEPS, MOST_PAIRS = 400, 4_000_000

#: A larger sphere does not pay once the influence on the sphere is below this.
NEGLIGIBLE = 1e-12


class BallQuilts:
    """Spheres around every node of a network, with the influence of the node on them."""

    def __init__(self, incidence: Incidence) -> None:
        self._links = Links.of(incidence).merged()
        self._nodes = incidence.n_nodes

    @cached_property
    def influences(self) -> list[FloatArray]:
        """Bounds on the influence of each node on the spheres of radius 1, 2, ... around it, for any known nodes."""
        links, shells = self._links, self._shells
        order = np.lexsort((links.sources, links.targets))
        sources, targets, diameters = links.sources[order], links.targets[order], links.diameters[order]
        into = Segments(targets)
        # the message over a link needs the messages to its source without the one over the same link backwards
        keys = targets * links.size + sources
        back = np.searchsorted(keys, sources * links.size + targets)
        messages, found = diameters, []
        for _ in shells:
            sums = np.zeros(links.size)
            sums[into.keys] = into.sums(messages)
            found.append(sums[: self._nodes])
            # infinite messages cannot be subtracted from sums, so they are counted apart
            finite = np.isfinite(messages)
            rest = np.full(len(messages), np.inf)
            others = into.others(np.where(finite, messages, 0.0))
            endless = np.bincount(targets[~finite], minlength=links.size)[targets] - ~finite
            rest[endless == 0] = others[endless == 0]
            messages = phi(diameters, rest[back])
        return found

    @cached_property
    def _shells(self) -> list[sparse.csr_array]:
        """Nodes at distance 0, 1, ... of each node, in steps of links."""
        from scipy import sparse

        links, size = self._links, self._links.size
        ones = np.ones(len(links.sources), dtype=np.int32)
        step = sparse.csr_array((ones, (links.sources, links.targets)), shape=(size, size))
        shell: Any = sparse.csr_array(sparse.eye_array(size, dtype=np.int32))[: self._nodes]
        before: Any = sparse.csr_array(shell.shape, dtype=np.int32)
        found: list[sparse.csr_array] = []
        pairs = 0
        while shell.nnz and len(found) < MOST_STEPS and pairs + shell.nnz <= MOST_PAIRS:
            pairs += shell.nnz
            found.append(sparse.csr_array(shell[:, : self._nodes]))
            onward: Any = shell @ step
            onward.data[:] = 1
            # in a breadth-first search a step leads to the shell before, to the same shell, or to a new one
            seen = onward.multiply(before + shell)
            onward = sparse.csr_array(onward - seen)
            onward.eliminate_zeros()
            before, shell = shell, onward
        return found

    def leakages(self, budgets: FloatArray) -> FloatArray:
        """Return the smallest leakage over all spheres of each node, rounded up; to every adversary."""
        amounts, unit = charges(budgets) if budgets.any() else (np.zeros(len(budgets), dtype=np.int64), 1.0)
        near = np.zeros(self._nodes, dtype=np.int64)
        found = np.full(self._nodes, np.inf)
        for shell, influence in zip(self._shells, self.influences, strict=True):
            near = near + shell @ amounts
            np.minimum(found, up(up(near.astype(np.float64) * unit, 2) + influence, 1), out=found)
        return found


#: Influences need the law of the whole component; larger components use bounds by messages.
MOST_NODES = 200

#: Radius and size of the largest listed ball, and a budget that reveals everything: tanh(x / 4) rounds to 1.
LISTED, MOST_LISTED, ENDLESS = 12, 400, 1e4

#: Entries of the tables processed at a time (8 MB).
STACKED = 1 << 20

#: The adversary: one who may know any near records, or none.
Known: TypeAlias = Literal["any", "none"]


@dataclass(frozen=True, slots=True)
class _Quilts:
    """Quilts of one local structure: nodes in local order (the record, near records, latent near nodes, the boundary).

    Columns of `tables` are in the order of the pattern.
    """

    pattern: Pattern
    records: IntArray  # shape (J,)
    nodes: IntArray  # shape (J, count)
    tables: IntArray  # shape (J, factors)

    @property
    def seen(self) -> int:
        """Number of the record and the near records."""
        return self.pattern[2]

    @property
    def inside(self) -> int:
        """Number of the nodes inside, latent ones included."""
        return self.pattern[3]


class NetworkQuilts:
    """Quilts of every record of a network, with the influence of the record on them."""

    def __init__(self, potentials: Potentials, effort: Effort | None = None, only: Sequence[int] | None = None) -> None:
        self._only = only
        self._potentials = potentials
        self._effort = effort or Effort.of_size(potentials.n_nodes)

    def __len__(self) -> int:
        return len(self._records)

    # Which quilts ------------------------------------------------------------------------------------------

    @cached_property
    def _groups(self) -> list[_Quilts]:
        """All quilts, by their local structure."""
        potentials = self._potentials
        rows = np.arange(len(potentials.records)) if self._only is None else np.array(self._only, dtype=np.int64)
        rows = rows[np.array(potentials.sizes)[potentials.records[rows]] > 1]
        found: dict[Pattern, list[tuple[IntArray, IntArray, IntArray]]] = defaultdict(list)
        if self._is_simple:
            around, given = Neighbourhoods(potentials), potentials.records[rows]
            fit = around.fit(given, self._effort)
            for alike in around.classes(given[fit], self._effort):
                found[alike.pattern].append((rows[fit[alike.rows]], alike.nodes, alike.tables))
            rows = np.delete(rows, fit)
        ones: dict[Pattern, list[tuple[int, tuple[int, ...], tuple[int, ...]]]] = defaultdict(list)
        for record in rows.tolist():
            for nodes, tables, pattern in self._quilts_of(int(potentials.records[record])):
                ones[pattern].append((record, nodes, tables))
        for pattern, quilts in ones.items():
            records, nodes_of, tables_of = (np.array(column, dtype=np.int64) for column in zip(*quilts, strict=True))
            found[pattern].append((records, nodes_of, tables_of))
        return [
            _Quilts(pattern, *(np.concatenate(column) for column in zip(*parts, strict=True)))
            for pattern, parts in found.items()
        ]

    @property
    def _is_simple(self) -> bool:
        """Whether the quilts are those of {i}, {i, u} and the ball around i, in a pairwise network."""
        effort, tables = self._effort, self._potentials.tables
        small = effort.radius == 1 and effort.sets == 2 and not effort.cuts and effort.most_entries <= 1 << 9
        return small and all(len(table.members) <= 2 for table in tables)

    def _quilts_of(self, node: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Pattern]]:
        """Yield the quilts of a node: nodes and tables in local order."""
        p = self._potentials
        for inside in candidates(p.neighbours, node, int(p.component_counts[p.component[node]]), self._effort):
            made = self._quilt(node, inside)
            if made is not None:
                yield made

    def _quilt(self, node: int, inside: frozenset[int]) -> tuple[tuple[int, ...], tuple[int, ...], Pattern] | None:
        """Return nodes and tables of a quilt in local order; None when its tables would be too large."""
        p, effort = self._potentials, self._effort
        if len(inside) - 1 > 4 * effort.most_near:
            return None
        edge = boundary(p.neighbours, inside)
        near = [v for v in inside if v != node]
        seen = [v for v in near if p.is_record[v]]
        if len(seen) > effort.most_near or len(seen) + len(edge) >= effort.most_entries.bit_length():
            return None
        entries = 1
        for v in (node, *seen, *edge):
            entries *= p.sizes[v]
        if entries > effort.most_entries:
            return None
        touching = sorted({f for v in inside for f in p.factors_of[v]})
        degree = {v: len(p.factors_of[v]) for v in near}
        seen.sort(key=lambda v: (degree[v], v))
        hidden = sorted((v for v in near if not p.is_record[v]), key=lambda v: (degree[v], v))
        place = {v: k for k, v in enumerate((node, *seen, *hidden))}
        for v in tuple(place):
            for u in p.neighbours[v]:
                if u not in place and u in edge:
                    place[u] = len(place)
        local = sorted((tuple(place[v] for v in p.tables[f].members), f) for f in touching)
        nodes = tuple(place)
        pattern = (
            tuple(p.sizes[v] for v in nodes),
            tuple(members for members, _ in local),
            1 + len(seen),
            len(inside),
            len(nodes),
        )
        return nodes, tuple(f for _, f in local), pattern

    @cached_property
    def _records(self) -> IntArray:
        """The record of every quilt."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *(group.records for group in self._groups)])

    # How strong --------------------------------------------------------------------------------------------

    def ranges(self, known: Known) -> FloatArray:
        """Return D of every quilt, for any known near records or for none, shape (J,)."""
        return self._ranges[0 if known == "any" else 1]

    @cached_property
    def _ranges(self) -> tuple[FloatArray, FloatArray]:
        found = [self._ranges_of(group) for group in self._groups]
        every, empty = np.concatenate([np.zeros((2, 0)), *found], axis=1)
        return every, empty

    def _ranges_of(self, group: _Quilts) -> FloatArray:
        """Return D of the quilts of a group, shape (2, J); those with the same tables share one computation."""
        kinds = self._kinds[group.tables]
        if (kinds == kinds[:1]).all():
            chosen, place = np.zeros(1, dtype=np.int64), np.zeros(len(kinds), dtype=np.int64)
        else:
            _, chosen, place = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
        found = np.full((2, len(kinds)), np.inf)
        for part, table in self._near_tables(group, chosen):
            found[:, part] = largest_ranges(known_subsets(table.values, group.seen), table.roundings)
        return found[:, chosen[place.ravel()]]

    @cached_property
    def _kinds(self) -> IntArray:
        """A number for each table, the same for tables that share their entries."""
        known: dict[tuple[int, float], int] = {}
        tables = self._potentials.tables
        return np.array([known.setdefault((id(t.values), t.roundings), len(known)) for t in tables], dtype=np.int64)

    def _near_tables(self, group: _Quilts, rows: IntArray) -> Iterator[tuple[IntArray, Table]]:
        """Yield T for some quilts of a group: axes for the quilt, the record, near records, the boundary."""
        sizes, scopes, seen, inside, count = group.pattern
        kept = [*range(seen), *range(inside, count)]
        entries = math.prod(sizes[v] for v in kept) * math.prod(1 + sizes[v] for v in range(1, seen))
        at_once = max(STACKED // entries, 1)
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            batch = count
            tables = []
            for position, members in enumerate(scopes):
                chosen = [self._potentials.tables[f] for f in group.tables[part, position].tolist()]
                values = np.array([table.values for table in chosen])
                tables.append(Table.of((batch, *members), values, max(table.roundings for table in chosen)))
            try:
                yield part, eliminate(tables, [batch, *kept], (*sizes, len(part)), 1 << 24)
            except ArgumentError:  # too wide, or underflow: such quilts stay infinite
                continue

    def influences(self, known: Known) -> FloatArray:
        """Return I of every quilt, shape (J,); infinite where it cannot be computed."""
        return self._all_influences[0 if known == "any" else 1]

    @cached_property
    def _all_influences(self) -> tuple[FloatArray, FloatArray]:
        parts: dict[tuple[int, tuple[int, ...]], Table] = {}
        found = [self._influences_of(group, parts) for group in self._groups]
        every, empty = np.concatenate([np.zeros((2, 0)), *found], axis=1)
        return every, empty

    def _influences_of(self, group: _Quilts, parts: dict[tuple[int, tuple[int, ...]], Table]) -> FloatArray:
        found = np.full((2, len(group.records)), np.inf)
        small = np.flatnonzero([self.has_influences(node) for node in group.nodes[:, 0].tolist()])
        for part, table in self._near_tables(group, small):
            configurations = known_subsets(table.values, group.seen)
            for k, j in enumerate(part.tolist()):
                nodes = group.nodes[j].tolist()
                try:
                    outer = self._remote(nodes, tuple(nodes[group.inside :]), parts)
                except ArgumentError:
                    continue
                roundings = table.roundings + outer.roundings + outer.values.size + 2
                found[:, j] = largest_influences(configurations[:, k], outer.values.reshape(-1), roundings)
        return found

    def _remote(
        self, nodes: list[int], edge: tuple[int, ...], parts: dict[tuple[int, tuple[int, ...]], Table]
    ) -> Table:
        """Return g of a quilt: a product over the components of the remote nodes, which many quilts share."""
        p = self._potentials
        done = set(nodes)
        inner = {f for v in edge for f in p.factors_of[v] if all(u in edge for u in p.tables[f].members)}
        tables = [p.tables[f] for f in sorted(inner)]
        for start in (u for v in edge for u in p.neighbours[v]):
            if start in done:
                continue
            beyond = nearby(p.neighbours, start, frozenset(edge)) | {start}
            done |= beyond
            ends = tuple(sorted(boundary(p.neighbours, beyond)))
            key = (min(beyond), ends)
            if key not in parts:
                held = {f for v in beyond for f in p.factors_of[v]}
                parts[key] = eliminate([p.tables[f] for f in sorted(held)], ends, p.sizes)
            tables.append(parts[key])
        return eliminate(tables, edge, p.sizes)

    def has_influences(self, node: int) -> bool:
        """Whether the component of a node is small enough for influences."""
        p = self._potentials
        return int(p.component_counts[p.component[node]]) <= MOST_NODES

    def listed(self, node: int) -> list[tuple[tuple[int, ...], tuple[int, ...], float, float]]:
        """Return the quilts of a node, spheres too: boundary, near nodes, influence, range (any near records known).

        Messages from the boundary bound the influences that are not computed.
        """
        p = self._potentials
        found: dict[tuple[int, ...], tuple[tuple[int, ...], float, float]] = {}
        influences, ranges = self.influences("any"), self.ranges("any")
        start = 0
        for group in self._groups:
            for row in np.flatnonzero(group.nodes[:, 0] == node).tolist():
                nodes = group.nodes[row].tolist()
                edge, near = tuple(sorted(nodes[group.inside :])), tuple(sorted(nodes[1 : group.inside]))
                found[edge] = (near, float(influences[start + row]), float(ranges[start + row]))
            start += len(group.records)
        component = int(p.component_counts[p.component[node]])
        for ball in balls(p.neighbours, node, LISTED, MOST_LISTED):
            if len(ball) < component:
                edge = tuple(sorted(boundary(p.neighbours, ball)))
                found.setdefault(edge, (tuple(sorted(ball - {node})), np.inf, np.inf))
        rows = []
        for edge, (near, influence, spread) in found.items():
            if not np.isfinite(influence):
                influence = min(self._bound(node, frozenset({node, *near}), edge), spread)
                spread = min(spread, 2 * influence)
            rows.append((edge, near, influence, spread))
        return sorted(rows, key=lambda row: (len(row[1]), row[0]))

    def _bound(self, node: int, inside: frozenset[int], edge: tuple[int, ...]) -> float:
        """Return a bound by messages on the influence of a node on a quilt, for any known near records.

        A mechanism of infinite budget reveals the quilt. Factors that do not touch the inside are independent of the
        node given the quilt.
        """
        its = self._potentials.incidence
        place = {v: k for k, v in enumerate((node, *sorted(inside - {node}), *edge))}
        touched = np.zeros(its.n_factors, dtype=np.bool_)
        touched[its.factors[np.isin(its.nodes, list(inside))]] = True
        rows = np.flatnonzero(touched[its.factors])
        names, factors = np.unique(its.factors[rows], return_inverse=True)
        nodes = np.array([place[v] for v in its.nodes[rows].tolist()], dtype=np.int64)
        local = Incidence(nodes, factors, its.diameters[rows], len(place), len(names))
        budgets = np.zeros(len(place))
        budgets[len(inside) :] = ENDLESS
        found = float(Propagation(local).leakages(budgets)[0])
        return found if found < ENDLESS / 2 else math.inf

    # Leakage -----------------------------------------------------------------------------------------------

    def blankets(self) -> FloatArray:
        """Return the influence of each record on its Markov blanket, shape (n,); infinite where not computed."""
        p = self._potentials
        found = np.where(p.component_counts[p.component[p.records]] == 1, 0.0, np.inf)
        found[[p.sizes[node] == 1 for node in p.records.tolist()]] = 0.0
        alone = np.concatenate([[], *(np.full(len(group.records), group.inside == 1) for group in self._groups)])
        chosen = np.flatnonzero(alone)
        found[self._records[chosen]] = self.influences("any")[chosen]
        return found

    def leakages(self, budgets: FloatArray, penalties: FloatArray) -> FloatArray:
        """Return the smallest leakage over all quilts and the component, for each record."""
        p = self._potentials
        found = p.component_sums(budgets)[p.records]
        if len(self):
            amounts, unit = charges(budgets) if budgets.any() else (np.zeros(len(budgets), dtype=np.int64), 1.0)
            nodes, starts = self._near
            near = up(np.add.reduceat(amounts[nodes], starts).astype(np.float64) * unit, 2)
            np.minimum.at(found, self._records, up(near + penalties, 1))
        return found

    def contracted(self, known: Known, leakages: FloatArray) -> FloatArray:
        """Return phi(D, sum of the leakages of the quilt's nodes) for every quilt; infinite where not provable."""
        p = self._potentials
        if not len(self):
            return np.zeros(0)
        nodes, starts = self._edges
        ends = up(np.add.reduceat(leakages[nodes], starts), float(np.diff(np.r_[starts, len(nodes)]).max()))
        provable = p.positive_components[p.component[p.records[self._records]]]
        return np.where(provable, phi(self.ranges(known), ends), np.inf)

    @cached_property
    def _near(self) -> tuple[IntArray, IntArray]:
        """The record and near records of all quilts in one array, and the start of each quilt."""
        return _joined([group.nodes[:, : group.seen] for group in self._groups])

    @cached_property
    def _edges(self) -> tuple[IntArray, IntArray]:
        """The boundary nodes of all quilts in one array, and the start of each quilt."""
        return _joined([group.nodes[:, group.inside :] for group in self._groups])


def _joined(parts: list[IntArray]) -> tuple[IntArray, IntArray]:
    lengths = np.repeat([part.shape[1] for part in parts], [len(part) for part in parts])
    return np.concatenate([part.ravel() for part in parts]), np.r_[0, np.cumsum(lengths)[:-1]]
