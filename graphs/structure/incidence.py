"""Networks in integers: which node is in which factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray

__all__ = ["Incidence"]


@dataclass(frozen=True, slots=True)
class Incidence:
    """Incidence of nodes and factors in one network, with diameters."""

    # shape (E,): node of each row, 0 to n_nodes - 1; one row for each pair of a factor and one of its members
    nodes: IntArray
    factors: IntArray  # shape (E,): factor of each row, 0 to n_factors - 1
    # shape (E,): diameter Delta of the factor seen from that node: the largest range, over joint states z of the
    # other members, of ln f(u, z) / f(v, z), u and v states of the node; non-negative, possibly infinite
    diameters: FloatArray
    n_nodes: int  # nodes without a factor are independent of all others
    n_factors: int

    @classmethod
    def pairwise(cls, edges: IntArray, diameters: FloatArray, n_nodes: int) -> Incidence:
        """Return the incidence of a network whose factors are its edges."""
        count = len(edges)
        return cls(edges.ravel(), np.repeat(np.arange(count), 2), np.repeat(diameters, 2), n_nodes, count)
