"""Candidate Markov quilts of a node: connected sets around it, and the nodes that separate these from the rest.

A quilt Q of node i with the smallest near set N is given by the connected set C = {i} + N: Q is its boundary. A
larger Q with the same N has no smaller influence, so boundaries of connected sets suffice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

__all__ = ["Effort", "balls", "boundary", "candidates", "connected_sets", "nearby"]

Neighbours = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of the search for quilts."""

    exact: int  # components of at most this many nodes: every connected set is a candidate
    sets: int  # larger components: most connected sets tried per node, the small ones first
    radius: int  # balls up to this radius are tried
    cuts: bool  # whether smallest vertex cuts between a node and all that is far from it are tried
    most_near: int  # most records in a near set, all of whose subsets an adversary may know
    most_entries: int  # most entries of the table of the records in C and Q

    @classmethod
    def of_size(cls, nodes: int) -> Effort:
        """Return the effort for a network of so many nodes: the larger, the fewer quilts per node."""
        # the work per node times the number of nodes stays within seconds; any effort is valid
        if nodes <= 60:
            return cls(8, 40, 4, True, 7, 1 << 14)
        if nodes <= 600:
            return cls(8, 16, 3, True, 5, 1 << 12)
        if nodes <= 5000:
            return cls(7, 8, 2, False, 4, 1 << 10)
        return cls(4, 2, 1, False, 3, 1 << 9)


def boundary(neighbours: Neighbours, inside: frozenset[int]) -> frozenset[int]:
    """Return the nodes outside a set that have a neighbour in it."""
    return frozenset(u for v in inside for u in neighbours[v]) - inside


def nearby(neighbours: Neighbours, node: int, quilt: frozenset[int]) -> frozenset[int]:
    """Return the connected component of a node once a quilt is removed, without the node: the smallest nearby set."""
    seen, waiting = {node}, [node]
    while waiting:
        for u in neighbours[waiting.pop()]:
            if u not in seen and u not in quilt:
                seen.add(u)
                waiting.append(u)
    return frozenset(seen - {node})


def balls(neighbours: Neighbours, node: int, radius: int, most: int, degree: int = 1 << 30) -> Iterator[frozenset[int]]:
    """Yield the balls of radius 0, 1, ... around a node, as long as they grow and have at most `most` nodes.

    The search also ends before a node with more than `degree` neighbours.
    """
    ball = frozenset({node})
    for _ in range(radius + 1):
        yield ball
        sphere = boundary(neighbours, ball)
        if not sphere or len(ball) + len(sphere) > most or any(len(neighbours[u]) > degree for u in sphere):
            return
        ball |= sphere


def connected_sets(neighbours: Neighbours, node: int, most: int, degree: int = 1 << 30) -> Iterator[frozenset[int]]:
    """Yield every connected set of at most `most` nodes that contains a node, each once, the small ones first.

    Nodes other than the first have at most `degree` neighbours.
    """
    level = {frozenset({node})}
    size = 1
    while level and size <= most:
        yield from sorted(level, key=sorted)
        level = {inside | {u} for inside in level for u in boundary(neighbours, inside) if len(neighbours[u]) <= degree}
        size += 1


def cuts(neighbours: Neighbours, node: int, radius: int, most: int, degree: int) -> Iterator[frozenset[int]]:
    """Yield the near sides of smallest vertex cuts between a node and all nodes farther away than 1, 2, ..."""
    import networkx as nx

    for ball in islice(balls(neighbours, node, radius, most, degree), 1, None):
        outside = boundary(neighbours, ball)
        if not outside:
            return
        graph: nx.Graph[int] = nx.Graph()
        graph.add_edges_from((v, -1 if u in outside else u) for v in ball for u in neighbours[v])
        quilt = frozenset(nx.minimum_node_cut(graph, node, -1))
        yield nearby(neighbours, node, quilt) | {node}


def candidates(neighbours: Neighbours, node: int, component: int, effort: Effort) -> list[frozenset[int]]:
    """Return connected sets around a node, each for the quilt that is its boundary."""
    if component == 1:
        return []
    if component <= effort.exact:
        found = list(connected_sets(neighbours, node, component - 1))
    else:
        largest = 4 * effort.most_near
        degree = largest + effort.most_entries.bit_length()
        found = list(islice(connected_sets(neighbours, node, effort.most_near + 1, degree), effort.sets))
        found += balls(neighbours, node, effort.radius, largest, degree)
        if effort.cuts:
            found += cuts(neighbours, node, effort.radius, largest, degree)
    return [inside for inside in dict.fromkeys(found) if len(inside) < component]
