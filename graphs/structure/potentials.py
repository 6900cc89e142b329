"""The factors of a network in integers: merged, without impossible states, with neighbourhoods and diameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.numerics.arguments import LEAST_PROBABILITY, FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.elimination import Table
from graphs.structure.incidence import Incidence

__all__ = ["Potentials", "factor_diameters", "log_ratio_ranges"]

#: Numbers processed at a time (32 MB).
CHUNK = 4_000_000

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Potentials:
    """A law proportional to a product of tables, over nodes 0 to m - 1.

    Every network is first put into a form with the same law and smaller diameters. States that a factor rules out are
    removed wherever they occur, repeatedly. Nodes with one possible state are left out of their factors. Factors over
    the same nodes are multiplied: phi is subadditive in the diameter, so one factor in place of two never gives more.
    """

    sizes: tuple[int, ...]  # number of possible states of each node
    states: tuple[IntArray, ...]  # original numbers of the possible states
    # factors over two or more nodes of two or more states, or over one such node; different sets of members
    tables: tuple[Table, ...]
    records: IntArray  # shape (n,): node of each record; the other nodes are latent

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Iterable[Table], records: IntArray) -> Potentials:
        """Put a network into that form."""
        merged = _merge(tables)
        if all(_positive(merged)) and min(sizes) > 1:
            whole_states = {size: np.arange(size) for size in set(sizes)}
            return cls(tuple(sizes), tuple(whole_states[size] for size in sizes), tuple(merged), records)
        masks = _possible(sizes, merged)
        states = tuple(np.flatnonzero(mask).astype(np.int64) for mask in masks)
        whole = [len(found) == size > 1 for found, size in zip(states, sizes, strict=True)]
        kept = merged
        if not all(whole):
            reduced = [_restrict(table, masks, whole) for table in merged]
            kept = _merge([table for table in reduced if table.members])
        return cls(tuple(len(s) for s in states), states, tuple(kept), records)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, latent ones included."""
        return len(self.sizes)

    @cached_property
    def is_record(self) -> BoolArray:
        """Which nodes are records, shape (m,)."""
        mask = np.zeros(self.n_nodes, dtype=np.bool_)
        mask[self.records] = True
        return mask

    @cached_property
    def factors_of(self) -> list[list[int]]:
        """Positions of the tables that contain each node."""
        nodes = np.array([node for table in self.tables for node in table.members], dtype=np.int64)
        positions = np.repeat(np.arange(len(self.tables)), [len(table.members) for table in self.tables])
        return _by_node(nodes, positions, self.n_nodes)

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """Nodes that share a factor with each node, in increasing order."""
        ends = np.array([pair for table in self.tables for pair in combinations(table.members, 2)], dtype=np.int64)
        ends = ends.reshape(-1, 2)
        keys = np.unique(np.concatenate([ends, ends[:, ::-1]]) @ [self.n_nodes, 1])
        return _by_node(*np.divmod(keys, self.n_nodes), self.n_nodes)

    @cached_property
    def component(self) -> IntArray:
        """Number of the connected component of each node, shape (m,)."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        links = [(table.members[0], v) for table in self.tables for v in table.members[1:]]
        ends = np.array(links, dtype=np.int64).reshape(-1, 2).T
        shape = (self.n_nodes, self.n_nodes)
        matrix = sparse.coo_array((np.ones(len(links), dtype=np.int8), (ends[0], ends[1])), shape=shape)
        labels: IntArray = connected_components(matrix, directed=False)[1].astype(np.int64)
        return labels

    @cached_property
    def component_counts(self) -> IntArray:
        """Number of nodes of each component."""
        return np.bincount(self.component).astype(np.int64)

    @cached_property
    def positive_components(self) -> BoolArray:
        """Which components have no zero in any factor: every combination of their nodes' states is possible."""
        found = np.ones(len(self.component_counts), dtype=np.bool_)
        for table, positive in zip(self.tables, _positive(self.tables), strict=True):
            if not positive:
                found[self.component[table.members[0]]] = False
        return found

    @cached_property
    def incidence(self) -> Incidence:
        """Incidence of nodes and factors, with the diameter of the factor seen from each member.

        A positive factor of more than two nodes is split into pairs and a rest, where they couple its nodes less
        (`graphs/PROOFS.md`, section on factors).
        """
        nodes, factors, diameters = [], [], []
        pairs, count = _PairLogs(), 0
        for positions, stack in _stacks(self.tables):
            members = np.array([self.tables[p].members for p in positions], dtype=np.int64)
            errors = np.array([self.tables[p].roundings * UNIT for p in positions])
            whole = np.stack(_seen_from_members(_logs(stack), errors), axis=1)
            if members.shape[1] == 2:  # positive tables of one pair multiply, so their logarithms add up
                split = np.isfinite(whole).all(axis=1)
                pairs.add(members[split], np.log(stack[split]), errors[split])
                kept = ~split
            else:
                split, kept = np.zeros(len(stack), dtype=np.bool_), np.ones(len(stack), dtype=np.bool_)
                positive = np.flatnonzero(stack.reshape(len(stack), -1).all(axis=1))
                if len(positive):
                    logs, rest, rest_errors = _interactions(np.log(stack[positive]), errors[positive])
                    left = np.stack(_seen_from_members(rest, rest_errors), axis=1)
                    better = _split_is_better(whole[positive], logs, left)
                    split[positive[better]] = True
                    whole[positive[better]] = left[better]
                    for (a, b), table in logs.items():
                        pairs.add(members[positive][better][:, [a, b]], table[better], np.zeros(int(better.sum())))
            at = np.flatnonzero(kept)
            for axis in range(members.shape[1]):
                nodes.append(members[at, axis])
                factors.append(count + np.arange(len(at)))
                diameters.append(whole[at, axis])
            count += len(at)
        edges, between = pairs.diameters(self.n_nodes)
        nodes.append(edges.ravel())
        factors.append(np.repeat(count + np.arange(len(edges)), 2))
        diameters.append(np.repeat(between, 2))
        joined = np.concatenate(nodes), np.concatenate(factors), np.concatenate(diameters)
        return Incidence(*joined, self.n_nodes, count + len(edges))

    @cached_property
    def pairs(self) -> tuple[IntArray, FloatArray]:
        """Pairs of nodes in a common factor, shape (E, 2), and the strength of their interaction, shape (E,).

        The strength is the projective diameter of the factor as a matrix of the states of the two, for the worst states
        of its other members. A pair occurs once for each factor.
        """
        edges, diameters = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0)]
        for positions, stack in _stacks(self.tables):
            members = np.array([self.tables[p].members for p in positions], dtype=np.int64)
            errors = np.array([self.tables[p].roundings * UNIT for p in positions])
            for a in range(members.shape[1] - 1):
                for b in range(a + 1, members.shape[1]):
                    slices = np.moveaxis(stack, (a + 1, b + 1), (-2, -1))
                    slices = slices.reshape(len(stack), -1, *slices.shape[-2:])
                    with np.errstate(divide="ignore"):
                        ranges = log_ratio_ranges(np.log(slices), errors[:, None])
                    edges.append(members[:, [a, b]])
                    diameters.append(ranges.max(axis=(1, 2), initial=0.0))
        return np.concatenate(edges), np.concatenate(diameters)

    def spread(self, epsilon: float | FloatArray) -> FloatArray:
        """Return the budgets of all nodes, 0 for latent ones, from those of the records."""
        budgets = np.zeros(self.n_nodes)
        budgets[self.records] = epsilon
        return budgets

    def component_sums(self, budgets: FloatArray) -> FloatArray:
        """Return the sum of the budgets over the component of each node, rounded up, shape (m,)."""
        totals = np.bincount(self.component, weights=budgets).astype(np.float64)
        most = up(totals, float(self.component_counts.max()))[self.component]
        return np.where(self.component_counts[self.component] == 1, budgets, most)


def _by_node(nodes: IntArray, values: IntArray, n_nodes: int) -> list[list[int]]:
    """Return the values of each node, in their order."""
    flat = values[np.argsort(nodes, kind="stable")].tolist()
    stops = np.cumsum(np.bincount(nodes, minlength=n_nodes)).tolist()
    return [flat[start:stop] for start, stop in zip([0, *stops[:-1]], stops, strict=True)]


class _PairLogs:
    """Logarithms of potentials of pairs of nodes, those of one pair added up."""

    def __init__(self) -> None:
        self._added: dict[tuple[int, ...], list[tuple[IntArray, FloatArray, FloatArray]]] = {}

    def add(self, pairs: IntArray, logs: FloatArray, errors: FloatArray) -> None:
        """Add tables of one shape, whose entries are off by at most `errors`; the smaller node of a pair first."""
        if len(pairs):
            self._added.setdefault(logs.shape[1:], []).append((pairs, logs, errors))

    def diameters(self, n_nodes: int) -> tuple[IntArray, FloatArray]:
        """Return the pairs, and the projective diameters of their potentials, rounded up."""
        edges, found = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0)]
        for parts in self._added.values():
            pairs, logs, errors = (np.concatenate(column) for column in zip(*parts, strict=True))
            keys, place = np.unique(pairs[:, 0] * n_nodes + pairs[:, 1], return_inverse=True)
            sums = np.zeros((len(keys), *logs.shape[1:]))
            np.add.at(sums, place, logs)
            sizes = np.bincount(place, weights=np.abs(logs).max(axis=(1, 2)), minlength=len(keys))
            # errors of the terms, and one rounding of their size for each addition
            terms = np.bincount(place, minlength=len(keys)) + 2.0
            off = np.bincount(place, weights=errors, minlength=len(keys)) + terms * UNIT * sizes
            edges.append(np.stack(np.divmod(keys, n_nodes), axis=1))
            found.append(log_ratio_ranges(sums, up(off, len(pairs))).max(axis=-1, initial=0.0))
        return np.concatenate(edges), np.concatenate(found)


def _logs(stack: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(stack)


def _seen_from_members(logs: FloatArray, errors: FloatArray) -> list[FloatArray]:
    """Return the diameters of factors seen from each of their members, from the logarithms of the factors."""
    return [_diameters(np.moveaxis(logs, axis, 1), errors) for axis in range(1, logs.ndim)]


def _interactions(
    logs: FloatArray, errors: FloatArray
) -> tuple[dict[tuple[int, int], FloatArray], FloatArray, FloatArray]:
    """Return the pair interactions of the logarithms of positive factors, the rest, and its errors.

    Any tables of pairs are valid; these are the interactions of an analysis of variance.
    """
    axes = range(1, logs.ndim)
    rest = logs.copy()
    scale = np.abs(logs).reshape(len(logs), -1).max(axis=1)
    sizes, found = scale.copy(), {}
    for a in axes:
        for b in range(a + 1, logs.ndim):
            table = logs.mean(axis=tuple(k for k in axes if k not in (a, b)))
            table = table - table.mean(axis=1, keepdims=True) - table.mean(axis=2, keepdims=True)
            found[a - 1, b - 1] = table
            rest -= np.expand_dims(table, tuple(k for k in axes if k not in (a, b)))
            sizes += np.abs(table).max(axis=(1, 2))
    return found, rest, errors + (len(found) + 3) * UNIT * sizes


def _split_is_better(
    whole: FloatArray, logs: Mapping[tuple[int, int], FloatArray], left: FloatArray
) -> npt.NDArray[np.bool_]:
    """Return for which factors the pairs and the rest couple the members less than the whole factor.

    This is a heuristic to second order in the propagation of one change; either choice is valid.
    """
    k = whole.shape[1]
    steps = np.zeros((len(whole), k, k))
    for (a, b), table in logs.items():
        width = log_ratio_ranges(table, np.zeros(len(table))).max(axis=-1)
        steps[:, a, b] = steps[:, b, a] = np.tanh(width / 4)
    around = (steps @ steps) * (1 - np.eye(k))  # a change that comes back to its node does not count
    split = (steps + around).sum(axis=(1, 2)) + (k - 1) * np.tanh(left / 4).sum(axis=1)
    better: npt.NDArray[np.bool_] = split < (k - 1) * np.tanh(whole / 4).sum(axis=1)
    return better


def factor_diameters(stack: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the diameters of many factors of one shape, seen from their first member."""
    return _diameters(_logs(stack), errors)


def _diameters(logs: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the diameters of factors seen from their first member, from their logarithms."""
    flat = logs.reshape(*logs.shape[:2], -1)
    found = np.zeros(len(flat))
    rows = max(CHUNK // max(flat[0].size, 1), 1)
    for start in range(0, len(flat), rows):
        part = slice(start, start + rows)
        found[part] = log_ratio_ranges(flat[part], errors[part]).max(axis=-1, initial=0.0)
    return found


def log_ratio_ranges(logs: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the ranges over the last axis of the differences of pairs of rows."""
    largest = np.abs(np.where(np.isfinite(logs), logs, 0.0)).max(axis=(-2, -1), initial=0.0)
    # a range is a difference of two differences, so four errors of entries, and rounding of logarithms of this size
    slack = 4.1 * errors + 64 * UNIT * largest
    ranges = []
    with np.errstate(invalid="ignore"):
        for a in range(logs.shape[-2] - 1):
            difference = logs[..., a : a + 1, :] - logs[..., a + 1 :, :]
            spread = np.fmax.reduce(difference, axis=-1) - np.fmin.reduce(difference, axis=-1)
            # all columns zero in both rows: nothing to compare; a zero in one row alone gives infinity
            ranges.append(np.where(np.isnan(spread), 0.0, up(spread + slack[..., None], 2)))
    if not ranges:
        return np.zeros((*logs.shape[:-2], 0))
    return np.concatenate(ranges, axis=-1)


def _merge(tables: Iterable[Table]) -> list[Table]:
    """Multiply tables over the same members; axes in increasing order of the nodes, largest entry in [1/2, 1)."""
    found: dict[tuple[int, ...], Table] = {}
    tables = list(tables)  # keeps the arrays, so that no identity occurs twice
    alike: dict[tuple[int, ...], Table] = {}  # tables that share an array are put into this form once
    for table in tables:
        members = tuple(sorted(table.members))
        key = id(table.values), *((table.members.index(v) for v in members) if members != table.members else ())
        if key in alike and members not in found:
            found[members] = Table(members, alike[key].values, table.roundings, 0, alike[key].least)
            continue
        alone = members not in found
        values, roundings = table.values.transpose([table.members.index(v) for v in members]), table.roundings
        if members in found:
            before = found[members]
            with np.errstate(under="ignore"):
                product = before.values * values
            if ((product < 1e-280) & (before.values > 0) & (values > 0)).any():
                seen = f"several over the same members whose product falls below 1e-280, at nodes {members}"
                expected, advice = "one table whose entries differ less", "Write 0 for the smallest entries."
                raise ArgumentError("factors", seen, expected, advice)
            values, roundings = product, roundings + before.roundings + 1
        largest = float(values.max())
        if largest == 0:
            seen = f"no joint state of positive weight, at nodes {members}"
            raise ArgumentError("factors", seen, "tables with a possible joint state")
        scaled = np.ldexp(values, -int(np.frexp(largest)[1]))
        # a smaller float has fewer digits or is 0, so a possible state would be lost
        if ((scaled < LEAST_PROBABILITY) & (values > 0)).any():
            seen = f"positive entries below 2.3e-308 of the largest, at nodes {members}"
            advice = "Write 0 for the smallest entries."
            raise ArgumentError("factors", seen, "tables whose entries differ less", advice)
        found[members] = Table.of(members, scaled, roundings)
        if alone:
            alike[key] = found[members]
    return list(found.values())


def _positive(tables: Sequence[Table]) -> list[bool]:
    """Return which tables have no zero; those that share an array are looked at once."""
    known = {id(table.values): table.values for table in tables}
    found = {key: bool(values.all()) for key, values in known.items()}
    return [found[id(table.values)] for table in tables]


def _possible(sizes: Sequence[int], tables: list[Table]) -> list[BoolArray]:
    """Return which states of each node are possible under all factors."""
    masks = [np.ones(size, dtype=np.bool_) for size in sizes]
    holders: dict[int, list[int]] = {}
    for position, (table, positive) in enumerate(zip(tables, _positive(tables), strict=True)):
        if not positive:
            for node in table.members:
                holders.setdefault(node, []).append(position)
    # only tables with zeros rule states out; each is revisited when a member loses a state
    waiting = sorted({position for positions in holders.values() for position in positions}, reverse=True)
    queued = set(waiting)
    while waiting:
        position = waiting.pop()
        queued.discard(position)
        table = tables[position]
        inside = table.values > 0
        for axis, node in enumerate(table.members):
            inside = inside & masks[node].reshape([-1 if k == axis else 1 for k in range(inside.ndim)])
        for axis, node in enumerate(table.members):
            left = inside.any(axis=tuple(k for k in range(inside.ndim) if k != axis))
            if not left.any():
                seen = f"no joint state of positive weight, at node {node}"
                raise ArgumentError("factors", seen, "tables with a possible joint state")
            if (masks[node] & ~left).any():
                masks[node] = masks[node] & left
                fresh = [p for p in holders[node] if p not in queued]
                waiting += fresh
                queued.update(fresh)
    return masks


def _restrict(table: Table, masks: list[BoolArray], whole: list[bool]) -> Table:
    """Return a table without impossible states and without nodes that have one possible state."""
    if all(whole[node] for node in table.members):
        return table
    used = [masks[node] for node in table.members]
    values = table.values[np.ix_(*used)]
    members = tuple(node for node, mask in zip(table.members, used, strict=True) if mask.sum() > 1)
    return Table(members, values.reshape([size for size in values.shape if size > 1]), table.roundings)


def _stacks(tables: Sequence[Table]) -> Iterable[tuple[IntArray, FloatArray]]:
    """Yield the positions of the tables of each shape over two or more nodes, with all of them in one array."""
    shapes: dict[tuple[int, ...], list[int]] = {}
    for position, table in enumerate(tables):
        if len(table.members) > 1:
            shapes.setdefault(table.values.shape, []).append(position)
    for positions in shapes.values():
        yield np.array(positions, dtype=np.int64), np.array([tables[p].values for p in positions])
