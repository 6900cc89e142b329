"""Base of models with a network of states: variance inflation by messages."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from graphs.errors import RouteUnavailable
from graphs.inflation.parts import NetworkParts
from graphs.known_records import BoolArray, CutNetwork, Network
from graphs.model import DependenceModel
from graphs.numerics.arguments import FloatArray, IntArray

__all__ = ["NetworkModel"]


class NetworkModel(DependenceModel):
    """Records on the nodes of a network, whose distribution is a product of factors.

    With messages of expected changes (`graphs.inflation.changes`) a network has the inflations "ordered", for every
    statistic with bounded differences, and "influences", for means; "parts" takes the best of all in each connected
    component. They depend on the diameters of the factors only, so they hold for any known records.
    """

    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "interdependence", "ordered", "influences", "parts")
    _inflations_given: ClassVar[tuple[str, ...]] = inflation_methods

    @abstractmethod
    def _network(self) -> Network:
        """Return the network."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self._last_left: tuple[bytes, CutNetwork] | None = None

    @cached_property
    def _whole(self) -> Network:
        return self._network()

    @property
    def _inflations(self) -> NetworkParts:
        return self._whole.inflations

    @property
    @abstractmethod
    def _group_sizes(self) -> IntArray:
        """Numbers of records in the connected components that have any."""

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of int, or None
            Number of records in each connected component of the network. None if there is only one component.
        """
        sizes = self._group_sizes
        return sizes.copy() if len(sizes) > 1 or self.n == 1 else None

    def _inflation(self, method: str) -> float:
        if method == "components":
            return int(np.sum(self._group_sizes**2)) / self.n * (1 + 2**-51)
        if method == "influences":
            return self._influence_inflation()
        found = self._inflations.total(method) / self.n * (1 + 2.0**-51)
        if not math.isfinite(found):
            reason = (
                "the matrix of tanh(Delta_ij / 4) has a spectral radius that is not shown to be below 1, or a part has "
                "zeros, with which a change of one record need not be possible by itself"
            )
            raise RouteUnavailable(method, reason, ("best", "components", "parts"))
        return found

    def _by_parts(self, bounded_differences: bool) -> tuple[float, str]:
        found = self._inflations.total("parts", bounded_differences) / self.n * (1 + 2.0**-51)
        return found, self._inflations.explain(bounded_differences)

    def _influences(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray:
        inflations = self._inflations if known is None else self._left(known).inflations
        nodes = self._whole.nodes
        return inflations.reach(self._whole.weights(weights))[nodes]

    def squares(self, weights: FloatArray) -> float:
        """Bound the sum of squares for statistics that weigh the records differently.

        The bound is the analogue of `variance_inflation` for a statistic that changes by at most ``weights[i] / n``
        when record i changes.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Nonnegative weight of each record, not all zero.

        Returns
        -------
        float
            S with ``ln E exp(u (f - E f)) <= u^2 S / (8 n^2)`` for every u. It also holds when the distribution is
            tilted by weights of single records.

        Examples
        --------
        >>> from graphs import MarkovField
        >>> round(MarkovField(([[0, 1]], 2), [[3, 1], [1, 3]]).squares(np.array([2.0, 1.0])), 9)
        7.25
        """
        return self._whole.parts(self._whole.weights(weights)).total("parts", bounded_differences=True)

    def _foremost(self) -> FloatArray:
        return self._inflations.foremost()[self._whole.nodes]

    # Known records -----------------------------------------------------------------------------------------

    def _inflation_given(self, method: str, known: BoolArray) -> float | None:
        return self._left(known).inflations.total(method) / int((~known).sum()) * (1 + 2.0**-51)

    def _by_parts_given(self, known: BoolArray, bounded_differences: bool) -> tuple[float, str]:
        inflations = self._left(known).inflations
        found = inflations.total("parts", bounded_differences) / int((~known).sum()) * (1 + 2.0**-51)
        return found, inflations.explain(bounded_differences)

    def _left(self, known: BoolArray) -> CutNetwork:
        """Return the network without the known records; the last one is cached."""
        key = known.tobytes()
        if self._last_left is None or self._last_left[0] != key:
            self._last_left = (key, self._whole.without(known))
        return self._last_left[1]
