"""Networks in integers: which node is in which factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray

__all__ = ["Incidence"]


@dataclass(frozen=True, slots=True)
class Incidence:
    """Which node is in which factor, and how strongly.

    Parameters
    ----------
    nodes : ndarray of shape (E,)
        Node of each row, 0 to n_nodes - 1; one row for each pair of a factor and one of its members.
    factors : ndarray of shape (E,)
        Factor of each row, 0 to n_factors - 1.
    diameters : ndarray of shape (E,)
        Diameter Delta of the factor seen from that node: the largest range, over joint states z of the other members,
        of ln f(u, z) / f(v, z), u and v states of the node. Not negative, possibly infinite.
    n_nodes, n_factors : int
        How many there are; nodes without a factor are independent of all others.

    Examples
    --------
    >>> Incidence.pairwise(np.array([[0, 1], [1, 2]]), np.array([1.0, 2.0]), 3).nodes
    array([0, 1, 1, 2])
    """

    nodes: IntArray
    factors: IntArray
    diameters: FloatArray
    n_nodes: int
    n_factors: int

    @classmethod
    def pairwise(cls, edges: IntArray, diameters: FloatArray, n_nodes: int) -> Incidence:
        """Return the incidence of a network whose factors are its edges."""
        count = len(edges)
        return cls(edges.ravel(), np.repeat(np.arange(count), 2), np.repeat(diameters, 2), n_nodes, count)
