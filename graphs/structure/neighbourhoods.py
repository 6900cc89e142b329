"""Quilts of the nodes of a large pairwise network, on arrays.

Nodes of a sparse network have few neighbours, so their smallest quilts have few structures. Two quilts share one
structure if the map of their nodes, in the order of `nodes`, is an isomorphism: of the edges that touch the inside, of
the numbers of states, of the single tables of the inside, and of the side that a node has in each table that is not
symmetric. The tables' entries may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.structure.potentials import Potentials
from graphs.structure.separators import Effort

__all__ = ["Alike", "Neighbourhoods", "Pattern"]

#: Most neighbours of a seen node inside a quilt: with one more the table has at least 2^10 entries, too many for the
#: least effort. All neighbours of a node inside are inside or in the boundary.
WIDEST = 8

#: Most near records of a ball, of which any may be known.
NEAREST = 3

#: Sets processed at a time, to bound memory (about 100 MB).
CHUNK = 20_000

#: Numbers of states, tables that touch the inside in local numbers, number of seen and of inside nodes, and of all.
Pattern: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int, int, int]


@dataclass(frozen=True, slots=True)
class Alike:
    """Quilts of one structure: equal columns correspond to each other."""

    pattern: Pattern
    rows: IntArray  # shape (M,): places of the nodes among those that were given
    nodes: IntArray  # shape (M, S): the node, the near nodes, the boundary
    tables: IntArray  # shape (M, T): positions of the tables that touch the inside


class Neighbourhoods:
    """Neighbours of the nodes of a network whose tables have at most two members."""

    def __init__(self, potentials: Potentials) -> None:
        self._potentials = p = potentials
        pairs = np.array([f for f, table in enumerate(p.tables) if len(table.members) == 2], dtype=np.int64)
        ends = np.array([p.tables[f].members for f in pairs.tolist()], dtype=np.int64).reshape(-1, 2)
        sources, targets = np.concatenate([ends, ends[:, ::-1]]).T
        order = np.lexsort((targets, sources))
        sources, targets, tables = sources[order], targets[order], np.tile(pairs, 2)[order]
        self._degrees = np.bincount(sources, minlength=p.n_nodes + 1)
        self._width = min(WIDEST, int(self._degrees.max(initial=0)))
        slot = np.arange(len(sources)) - (np.cumsum(self._degrees) - self._degrees)[sources]
        kept = slot < self._width
        # one row more, for the neighbours of nodes that do not exist
        self._neighbours = np.full((p.n_nodes + 1, self._width), p.n_nodes)
        self._neighbours[sources[kept], slot[kept]] = targets[kept]
        self._edges = np.full((p.n_nodes + 1, self._width), -1)
        self._edges[sources[kept], slot[kept]] = tables[kept]
        self._sizes, self._is_record = np.append(p.sizes, 0), np.append(p.is_record, False)
        self._own = np.full(p.n_nodes + 1, -1)  # the table of each node alone, -1 where there is none
        alone = [f for f, table in enumerate(p.tables) if len(table.members) == 1]
        self._own[[p.tables[f].members[0] for f in alone]] = alone
        known = {id(table.values): table.values for table in p.tables}
        even = {key: _is_symmetric(values) for key, values in known.items()}
        self._symmetric = np.array([even[id(table.values)] for table in p.tables], dtype=np.bool_)

    def fit(self, nodes: IntArray, effort: Effort) -> IntArray:
        """Return the places of the nodes whose quilts are all in `classes`: the neighbours are records."""
        p = self._potentials
        near = self._neighbours[nodes]
        seen = (self._is_record[near] | (near == p.n_nodes)).all(axis=1) & (self._degrees[nodes] <= WIDEST)
        large = p.component_counts[p.component[nodes]] > max(effort.exact, NEAREST + 1)
        return np.flatnonzero(large & (seen | bool(p.is_record.all())))

    def classes(self, nodes: IntArray, effort: Effort) -> Iterator[Alike]:
        """Yield the quilts of nodes that are `fit`, by structure: those of {i}, of {i, u}, and of the ball around i.

        They are the quilts of `candidates` with the least effort: u is the neighbour with the smallest number.
        """
        p, degrees = self._potentials, self._degrees
        most = 4 * effort.most_near + effort.most_entries.bit_length()
        near = self._neighbours[nodes]
        first = np.where((degrees[near] <= most) & (near < p.n_nodes), near, p.n_nodes).min(axis=1, initial=p.n_nodes)
        narrow = degrees[nodes] <= WIDEST
        alone = np.flatnonzero(narrow)
        pairs = np.flatnonzero(narrow & (first < p.n_nodes) & (degrees[first] <= WIDEST))
        sets = [(alone, nodes[alone, None]), (pairs, np.stack([nodes[pairs], first[pairs]], axis=1))]
        # a ball of two nodes is {i, u} again
        for count in range(2, min(NEAREST, effort.most_near, self._width) + 1):
            rows = np.flatnonzero(degrees[nodes] == count)
            ball = near[rows, :count]
            ball = np.take_along_axis(ball, np.lexsort((ball, degrees[ball]), axis=1), axis=1)
            whole = (degrees[ball] <= WIDEST).all(axis=1)
            sets.append((rows[whole], np.column_stack([nodes[rows], ball])[whole]))
        for rows, inside in sets:
            for start in range(0, len(rows), CHUNK):
                part = slice(start, start + CHUNK)
                yield from self._alike(rows[part], inside[part], effort)

    def _alike(self, rows: IntArray, inside: IntArray, effort: Effort) -> Iterator[Alike]:
        """Yield the quilts of some sets by structure, without those whose tables would be too large."""
        count, none = inside.shape[1], self._potentials.n_nodes
        around = self._neighbours[inside]
        edge = np.sort(around.reshape(len(inside), -1), axis=1)
        edge[:, 1:][edge[:, 1:] == edge[:, :-1]] = none
        edge[(edge[:, :, None] == inside[:, None, :]).any(axis=2)] = none
        # tables between an inside node and another node, -1 where there is none, and on which side of it the inside is
        touching = [_found(around[:, k], self._edges[inside[:, k]], edge) for k in range(count)]
        mask, turned = np.zeros((2, *edge.shape), dtype=np.int64)
        for k, tables in enumerate(touching):
            mask |= (tables >= 0).astype(np.int64) << k
            turned |= self._turned(inside[:, k, None], edge, tables).astype(np.int64) << k
        # boundary nodes of one size that touch the same inside nodes from the same sides are interchangeable
        shape = (mask << count | turned) * (int(self._sizes.max()) + 1) + self._sizes[edge]
        shape[edge == none] = np.iinfo(np.int64).max
        order = np.argsort(shape, axis=1, kind="stable")
        edge, shape = np.take_along_axis(edge, order, axis=1), np.take_along_axis(shape, order, axis=1)
        touching = [np.take_along_axis(tables, order, axis=1) for tables in touching]
        lengths = (edge != none).sum(axis=1)
        # floats, because a product of numbers of states may exceed the largest integer
        entries = np.column_stack([self._sizes[inside], np.where(edge == none, 1, self._sizes[edge])]).prod(1, float)
        fits = (count - 1 + lengths < effort.most_entries.bit_length()) & (entries <= effort.most_entries)
        if not fits.any():
            return
        between, columns = [], [self._sizes[inside], self._own[inside] >= 0, shape]
        for k in range(count):
            for other in range(k + 1, count):
                found = _found(around[:, k], self._edges[inside[:, k]], inside[:, other, None])[:, 0]
                sides = self._turned(inside[:, k], inside[:, other], found)
                between.append((k, other, found, sides))
                columns += [(found >= 0)[:, None], sides[:, None]]
        codes = np.ascontiguousarray(np.column_stack(columns)[fits], dtype=np.int64)
        _, heads, place = np.unique(
            codes.view(np.dtype((np.void, codes[0].nbytes))).ravel(), return_index=True, return_inverse=True
        )
        every, kept = np.argsort(place, kind="stable"), np.flatnonzero(fits)
        stops = np.cumsum(np.bincount(place))
        for low, high, head in zip(np.r_[0, stops[:-1]].tolist(), stops.tolist(), kept[heads].tolist(), strict=True):
            at = kept[every[low:high]]
            scopes: list[tuple[int, ...]] = []
            held: list[IntArray] = []
            for k in range(count):
                if self._own[inside[head, k]] >= 0:
                    scopes.append((k,))
                    held.append(self._own[inside[at, k]])
            for k, other, found, sides in between:
                if found[head] >= 0:
                    scopes.append((other, k) if sides[head] else (k, other))
                    held.append(found[at])
            for b in range(int(lengths[head])):
                for k, pairs in enumerate(touching):
                    if pairs[head, b] >= 0:
                        node = inside[head, k], edge[head, b], pairs[head, b]
                        scopes.append((count + b, k) if self._turned(*node) else (k, count + b))
                        held.append(pairs[at, b])
            nodes = np.column_stack([inside[at], edge[at, : lengths[head]]])
            sizes = tuple(self._sizes[nodes[0]].tolist())
            pattern = sizes, tuple(scopes), count, count, count + int(lengths[head])
            yield Alike(pattern, rows[at], nodes, np.column_stack(held))

    def _turned(self, inside: IntArray, other: IntArray, tables: IntArray) -> npt.NDArray[np.bool_]:
        """Return whether the other node comes first in a table that is not symmetric."""
        return (tables >= 0) & (inside > other) & ~self._symmetric[tables]


def _found(names: IntArray, values: IntArray, wanted: IntArray) -> IntArray:
    """Return, row by row, the value of each wanted name, -1 where it is not among the names."""
    found = np.full(wanted.shape, -1)
    for k in range(names.shape[1]):
        np.copyto(found, values[:, k, None], where=(wanted == names[:, k, None]) & (values[:, k, None] >= 0))
    return found


def _is_symmetric(values: FloatArray) -> bool:
    return values.ndim == 2 and values.shape[0] == values.shape[1] and bool((values == values.T).all())
