"""Nodes of a pairwise network whose neighbourhoods of radius two have the same structure.

Two nodes are *alike* if the map between their neighbourhoods that keeps the order of the nodes' numbers is an
isomorphism: of the edges at nodes within one step, of the nodes' numbers of states, of which nodes are records, and of
which nodes within one step have a table of their own. Every result of these alone, with ties decided by the
order of numbers, is the same for both up to that map. The tables' entries may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from graphs.numerics.arguments import IntArray
from graphs.structure.potentials import Potentials

__all__ = ["Alike", "Neighbourhoods"]

#: Most neighbours of a node that is compared, or of its neighbours: a neighbourhood has at most 73 nodes.
WIDEST = 8

#: Smaller classes are not worth a computation on arrays.
FEWEST = 4

#: Nodes compared at a time, to bound memory (about 100 MB).
CHUNK = 50_000

#: Components of at least this many nodes are equally large for a set of at most 13 nodes.
LARGE = 16


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes that are alike: equal columns correspond to each other."""

    rows: IntArray  # shape (M,): places of the nodes among those that were compared
    nodes: IntArray  # shape (M, S): the node, its neighbours, and theirs; the number of nodes where there is none
    tables: IntArray  # shape (M, T): the tables of the node and of its neighbours; -1 where there is none


class Neighbourhoods:
    """Neighbourhoods of the nodes of a network whose tables have at most two members."""

    def __init__(self, potentials: Potentials) -> None:
        self._potentials = p = potentials
        pairs = np.array([f for f, table in enumerate(p.tables) if len(table.members) == 2], dtype=np.int64)
        ends = np.array([p.tables[f].members for f in pairs.tolist()], dtype=np.int64).reshape(-1, 2)
        sources, targets = np.concatenate([ends, ends[:, ::-1]]).T
        order = np.lexsort((targets, sources))
        sources, targets, tables = sources[order], targets[order], np.tile(pairs, 2)[order]
        self._degrees = degrees = np.bincount(sources, minlength=p.n_nodes)
        self._width = min(WIDEST, int(degrees.max(initial=0)))
        self._crowded = np.zeros(p.n_nodes, dtype=np.bool_)  # nodes near one of many neighbours are not compared
        self._crowded[targets[degrees[sources] > WIDEST]] = True
        self._crowded |= degrees > WIDEST
        slot = np.arange(len(sources)) - (np.cumsum(degrees) - degrees)[sources]
        kept = slot < self._width
        # one row more, for the neighbours of neighbours that do not exist
        self._neighbours = np.full((p.n_nodes + 1, self._width), p.n_nodes)
        self._neighbours[sources[kept], slot[kept]] = targets[kept]
        self._edges = np.full((p.n_nodes + 1, self._width), -1)
        self._edges[sources[kept], slot[kept]] = tables[kept]

    @cached_property
    def _own(self) -> IntArray:
        """The table of each node alone, -1 where there is none."""
        found = np.full(self._potentials.n_nodes + 1, -1)
        for f, table in enumerate(self._potentials.tables):
            if len(table.members) == 1:
                found[table.members[0]] = f
        return found

    def classes(self, nodes: IntArray, smallest: int) -> Iterator[Alike]:
        """Yield the classes of nodes that are alike, of those in components of more than `smallest` nodes.

        Nodes of small classes, or with many neighbours near, are in none.
        """
        p = self._potentials
        fit = np.flatnonzero(~self._crowded[nodes] & (p.component_counts[p.component[nodes]] > smallest))
        for start in range(0, len(fit), CHUNK):
            rows = fit[start : start + CHUNK]
            around, tables = self._around(nodes[rows])
            codes = self._codes(around, tables)
            _, place = np.unique(codes.view(np.dtype((np.void, codes[0].nbytes))).ravel(), return_inverse=True)
            order = np.argsort(place, kind="stable")
            stops = np.cumsum(np.bincount(place))
            for low, high in zip(np.r_[0, stops[:-1]].tolist(), stops.tolist(), strict=True):
                if high - low >= FEWEST:
                    members = order[low:high]
                    yield Alike(rows[members], around[members], tables[members])

    def _around(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        near = self._neighbours[nodes]
        own = self._own[np.column_stack([nodes, near])]
        slots = [nodes[:, None], near, self._neighbours[near].reshape(len(nodes), -1)]
        tables = [self._edges[nodes], self._edges[near].reshape(len(nodes), -1), own]
        return np.concatenate(slots, axis=1), np.concatenate(tables, axis=1)

    def _codes(self, around: IntArray, tables: IntArray) -> IntArray:
        """Return a row for each node, equal for nodes that are alike."""
        p = self._potentials
        order = np.argsort(around, axis=1)
        ordered = np.take_along_axis(around, order, axis=1)
        ranks = np.zeros_like(around)
        np.put_along_axis(ranks, order[:, 1:], np.cumsum(ordered[:, 1:] > ordered[:, :-1], axis=1), axis=1)
        missing = around == p.n_nodes
        kinds = np.append(2 * np.array(p.sizes) + p.is_record, 0)[around]
        size = np.minimum(p.component_counts[p.component[around[:, :1]]], LARGE)
        alone = tables[:, -1 - self._width :] >= 0
        columns = [np.where(missing, -1, ranks), kinds, size, alone]
        return np.ascontiguousarray(np.concatenate(columns, axis=1, dtype=np.int64))
