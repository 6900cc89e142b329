"""The best variance inflation of each independent part of a network.

A part is a connected component. Every route gives each part a sum of squares s_g with ln E exp(u (q - E q)) <= u^2 (sum
of s_g) / (8 n^2); sums of different parts may come from different routes. Proofs: `graphs/PROOFS.md`, section 5.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from graphs.inflation.changes import Changes
from graphs.inflation.forward_coupling import ForwardCoupling
from graphs.inflation.interdependence import interdependence, interdependence_squares
from graphs.inflation.ordered_messages import ordered_squares
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up
from graphs.routes import INFLATIONS
from graphs.structure.incidence import Incidence

__all__ = ["NetworkParts"]


class NetworkParts:
    """Sums of squares of the parts of a network, by every route.

    Parameters
    ----------
    incidence : Incidence
        The network.
    edges : ndarray of shape (E, 2)
        Pairs of nodes in a common factor.
    diameters : ndarray of shape (E,)
        How strongly they hang together, for the interdependence matrix; infinite where it does not apply.
    weights : ndarray of shape (n_nodes,)
        By how much a mean times n changes with each node at most: 1 for a record, 0 for a latent node.
    forward : ForwardCoupling, optional
        The directed edges of a Bayesian network, which add the route "forward".

    Examples
    --------
    A pair that agrees with probability 3/4, and a triple of copies:

    >>> edges = np.array([[0, 1], [2, 3], [3, 4]])
    >>> diameters = np.array([np.log(9), np.inf, np.inf])
    >>> parts = NetworkParts(Incidence.pairwise(edges, diameters, 5), edges, diameters, np.ones(5))
    >>> parts.sums("influences").round(9)
    array([3., 9.])
    >>> round(parts.total("parts"), 9), parts.explain(bounded_differences=True)
    (12.0, 'components in 1 of 2 parts, ordered in 1')
    """

    routes: ClassVar[tuple[str, ...]] = ("components", "interdependence", "ordered", "influences")

    def __init__(
        self,
        incidence: Incidence,
        edges: IntArray,
        diameters: FloatArray,
        weights: FloatArray,
        forward: ForwardCoupling | None = None,
    ) -> None:
        self._changes, self._directed = Changes(incidence), forward
        self._edges, self._diameters, self._weights = edges, diameters, weights
        self._sums: dict[str, FloatArray] = {}

    @property
    def component(self) -> IntArray:
        """Number of the part of each node."""
        return self._changes.component

    def sums(self, route: str) -> FloatArray:
        """Return the sum of squares of each part by one of `routes`; infinite where it does not apply."""
        if route not in self._sums:
            self._sums[route] = getattr(self, f"_{route}")()
        return self._sums[route]

    def total(self, route: str, bounded_differences: bool = False) -> float:
        """Return the sum over all parts by one route, or by the best in each part with "parts"; rounded up."""
        sums = self._best(bounded_differences).min(axis=0) if route == "parts" else self.sums(route)
        return up(float(sums.sum()), len(sums))

    def explain(self, bounded_differences: bool = False) -> str:
        """Return in words which route is the best in how many parts."""
        table = self._best(bounded_differences)
        names = self._applicable(bounded_differences)
        counts = np.bincount(table.argmin(axis=0)[self._of_parts(self._weights) > 0], minlength=len(names))
        order = np.argsort(-counts, kind="stable")
        first, *others = [(names[k], int(counts[k])) for k in order.tolist() if counts[k]]
        said = f"{first[0]} in {first[1]} of {int(counts.sum())} parts"
        return ", ".join([said, *(f"{name} in {count}" for name, count in others)])

    def reach(self, weights: FloatArray) -> FloatArray:
        """Return for each node the weight that is expected to change with it, at most; rounded up."""
        return self._changes.totals(weights)

    def foremost(self) -> FloatArray:
        """Return for each node a weight close to the first eigenvector of the influences of its part."""
        return self._changes.foremost()

    def _best(self, bounded_differences: bool) -> FloatArray:
        return np.stack([self.sums(route) for route in self._applicable(bounded_differences)])

    def _applicable(self, bounded_differences: bool) -> tuple[str, ...]:
        routes = self.routes if self._directed is None else (*self.routes, "forward")
        return tuple(name for name in routes if INFLATIONS[name].bounded_differences or not bounded_differences)

    def _components(self) -> FloatArray:
        return up(self._of_parts(self._weights), len(self._weights)) ** 2 * (1 + 2.0**-50)

    def _influences(self) -> FloatArray:
        return up(self._of_parts(self._weights * self.reach(self._weights)), len(self._weights) + 2)

    def _ordered(self) -> FloatArray:
        return ordered_squares(self._changes.arcs(self._weights), self._weights, self.component)

    def _interdependence(self) -> FloatArray:
        part, weights = self.component, self._weights
        infinite = np.zeros(int(part.max()) + 1, dtype=np.bool_)
        infinite[part[self._edges[~np.isfinite(self._diameters), 0]]] = True
        matrix = interdependence(self._edges, np.where(np.isfinite(self._diameters), self._diameters, 0.0), len(part))
        squares = interdependence_squares(matrix, weights, part)
        return np.where(infinite, np.inf, squares)

    def _forward(self) -> FloatArray:
        assert self._directed is not None
        return self._directed.squares(self._weights, self.component)

    def _of_parts(self, values: FloatArray) -> FloatArray:
        found: FloatArray = np.bincount(self.component, weights=values).astype(np.float64)
        return found
