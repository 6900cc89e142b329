"""Sums of products of tables, one variable at a time, with counted rounding errors.

The probability of a few variables of a network is the sum, over the states of all others, of the product of its
tables. Variables are summed out one at a time, in an order that keeps intermediate tables small. All entries are
non-negative, so products and sums have small relative errors entry by entry. A result is off by at most as many units
of rounding as the operations before it, and that number is kept.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs.errors import ArgumentError, TooWide
from graphs.numerics.arguments import FloatArray

__all__ = ["LARGEST", "SMALLEST", "Table", "eliminate", "elimination_order", "run_order"]

#: Default for the most entries of one table (32 MB).
LARGEST = 2**22

#: Products are formed only where all entries stay above this, far from underflow at 2.2e-308.
SMALLEST = 1e-280

#: Nodes with more neighbours are ranked by their degree alone: counting fill is quadratic in it.
CROWDED = 24

#: Tables multiplied in one call of einsum.
TOGETHER = 6


@dataclass(frozen=True, slots=True)
class Table:
    """A non-negative table over some variables."""

    members: tuple[int, ...]  # the variable of each axis
    values: FloatArray  # entries, finite and not negative
    roundings: float = 0.0  # relative error of every entry, in units of 2**-53
    exponent: int = 0  # the table stands for ``values * 2**exponent``
    least: float = 0.0  # lower bound on the positive entries of `values`

    @classmethod
    def of(cls, members: Sequence[int], values: FloatArray, roundings: float = 0.0) -> Table:
        """Return a table with the bound on its positive entries filled in."""
        return cls(tuple(members), values, roundings, 0, _least(values))

    def log_total(self) -> float:
        """Return the logarithm of the sum of all entries; minus infinity when all are zero."""
        total = float(self.values.sum())
        return math.log(total) + self.exponent * math.log(2) if total > 0 else -math.inf


def eliminate(tables: Iterable[Table], keep: Sequence[int], sizes: Sequence[int], limit: int = LARGEST) -> Table:
    """Sum the product of tables over all variables but a few.

    This is variable elimination (bucket elimination) with the min-fill order: the next variable is the one whose
    removal joins the fewest pairs of its neighbours. The order affects speed only.
    """
    tables = list(tables)
    order, largest = elimination_order([table.members for table in tables], sizes, keep)
    final = math.prod(sizes[v] for v in keep)
    if max(largest, final) > limit:
        raise TooWide(max(largest, final), limit)
    left = run_order(tables, order, sizes)
    return _merged(left, tuple(keep), sizes)


def elimination_order(
    scopes: Iterable[Sequence[int]], sizes: Sequence[int], keep: Collection[int] = ()
) -> tuple[list[int], int]:
    """Return an order in which to sum out variables, by the min-fill rule."""
    adjacency: dict[int, set[int]] = {}
    for scope in scopes:
        for v in scope:
            adjacency.setdefault(v, set()).update(scope)
    for v, others in adjacency.items():
        others.discard(v)
    kept = set(keep)
    rank = {v: _fill(adjacency, v) for v in adjacency if v not in kept}
    heap = [(value, -v) for v, value in rank.items()]
    heapq.heapify(heap)
    order, largest = [], 1
    while heap:
        value, negated = heapq.heappop(heap)
        v = -negated
        if rank.get(v) != value:
            continue
        del rank[v]
        others = adjacency.pop(v)
        largest = max(largest, sizes[v] * math.prod(sizes[u] for u in others))
        order.append(v)
        affected = set(others)
        for u in others:
            mine = adjacency[u]
            mine.discard(v)
            if value:
                new = others - mine
                new.discard(u)
                mine |= new
                if len(mine) <= 4 * CROWDED:
                    affected |= mine
        for u in affected:
            if u in rank:
                fresh = _fill(adjacency, u)
                if fresh != rank[u]:
                    rank[u] = fresh
                    heapq.heappush(heap, (fresh, -u))
    return order, largest


def _fill(adjacency: dict[int, set[int]], v: int) -> int:
    """Return how many pairs of neighbours of a node are not joined, or of all pairs for many neighbours."""
    others = adjacency[v]
    count = len(others)
    if count <= 1:
        return 0
    if count > CROWDED:
        return count * (count - 1) // 2
    return (count * (count - 1) - sum(len(adjacency[u] & others) for u in others)) // 2


def run_order(
    tables: Iterable[Table],
    order: Iterable[int],
    sizes: Sequence[int],
    visit: Callable[[int, list[Table]], object] | None = None,
) -> list[Table]:
    """Sum out variables in a given order."""
    live: dict[int, Table] = {}
    holders: dict[int, set[int]] = {}
    for key, table in enumerate(tables):
        live[key] = table
        for v in table.members:
            holders.setdefault(v, set()).add(key)
    fresh = len(live)
    for v in order:
        keys = sorted(holders.pop(v, ()))
        bucket = [live.pop(key) for key in keys]
        if visit is not None:
            visit(v, bucket)
        for key, table in zip(keys, bucket, strict=True):
            for u in table.members:
                if u != v:
                    holders[u].discard(key)
        if bucket:
            found = _contract(bucket, v, sizes)
            live[fresh] = found
            for u in found.members:
                holders[u].add(fresh)
            fresh += 1
    return list(live.values())


def _merged(tables: list[Table], keep: tuple[int, ...], sizes: Sequence[int]) -> Table:
    """Return the product of tables over some of the variables in `keep`, with one axis for each of these."""
    found = multiply(tables, keep)
    shape = tuple(sizes[v] for v in keep)
    if found.members != keep:
        inside = set(found.members)
        slots = tuple(slice(None) if v in inside else None for v in keep)
        values = np.ascontiguousarray(np.broadcast_to(found.values[slots], shape))
        found = Table(keep, values, found.roundings, found.exponent, found.least)
    return found


def multiply(tables: list[Table], order: Sequence[int]) -> Table:
    """Return the product of tables, its axes in the order that their variables have in `order`."""
    while len(tables) > TOGETHER:
        tables = sorted(tables, key=lambda table: table.values.size)
        tables = [_product(tables[:TOGETHER], None), *tables[TOGETHER:]]
    found = _product(tables, None)
    place = {v: k for k, v in enumerate(order)}
    axes = sorted(range(len(found.members)), key=lambda axis: place[found.members[axis]])
    members = tuple(found.members[axis] for axis in axes)
    return Table(members, found.values.transpose(axes), found.roundings, found.exponent, found.least)


def _contract(bucket: list[Table], v: int, sizes: Sequence[int]) -> Table:
    """Return the sum over one variable of a product of tables."""
    while len(bucket) > TOGETHER:
        bucket = sorted(bucket, key=lambda table: table.values.size)
        bucket = [_product(bucket[:TOGETHER], None), *bucket[TOGETHER:]]
    return _product(bucket, v, sizes[v] - 1)


def _product(bucket: list[Table], summed: int | None, additions: int = 0) -> Table:
    """Multiply tables and sum over one variable, if any; the largest entry is then scaled into [1/2, 1)."""
    if not bucket:
        return Table((), np.ones(()), least=1.0)
    least = math.prod(table.least for table in bucket)
    if least < SMALLEST:
        bucket = [Table(t.members, t.values, t.roundings, t.exponent, _least(t.values)) for t in bucket]
        least = math.prod(table.least for table in bucket)
    label: dict[int, int] = {}
    operands: list[Any] = []
    for table in bucket:
        for u in table.members:
            label.setdefault(u, len(label))
        operands += [table.values, [label[u] for u in table.members]]
    members = tuple(u for u in label if u != summed)
    values = np.asarray(np.einsum(*operands, [label[u] for u in members]), dtype=np.float64)
    largest = float(values.max(initial=0.0))
    shift = math.frexp(largest)[1] if largest > 0 else 0  # a power of two, so scaling is exact
    if math.ldexp(least, -max(shift, 0)) < SMALLEST:
        _check_smallness(bucket, operands, [label[u] for u in members], values)
        least = _least(values)
    if shift:
        values = np.ldexp(values, -shift)
        least = math.ldexp(least, -shift)
    roundings = sum(table.roundings for table in bucket) + len(bucket) - 1 + additions
    return Table(members, values, roundings, sum(table.exponent for table in bucket) + shift, least)


def _check_smallness(bucket: list[Table], operands: list[Any], out: list[int], values: FloatArray) -> None:
    """Refuse products with a positive entry that underflow removed or rounded."""
    patterns = [(x > 0).astype(np.float64) if k % 2 == 0 else x for k, x in enumerate(operands)]
    positive = np.einsum(*patterns, out) > 0
    if (np.asarray(values)[positive] < SMALLEST).any():
        seen = f"positive entries whose products fall below {SMALLEST:g} of the largest"
        advice = "Write 0 for the smallest entries."
        raise ArgumentError("factors", seen, "tables whose entries differ less", advice)


def _least(values: FloatArray) -> float:
    return float(values.min(where=values > 0, initial=1.0))
