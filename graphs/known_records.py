"""What known records leave of a model: the parts they cut it into, and the network without them.

Proofs: `graphs/PROOFS.md`, section on evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphs.inflation.interdependence import interdependence, interdependence_inflation
from graphs.leakage.network_messages import Propagation
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.structure.incidence import Incidence

__all__ = ["BoolArray", "CutNetwork", "Network"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Network:
    """A network in integers: which node is in which factor, edges with their diameters, the node of each record."""

    incidence: Incidence
    edges: IntArray
    diameters: FloatArray
    nodes: IntArray

    def repeated(self, copies: int) -> Network:
        """Return several copies of the network, without anything between them."""
        its, at = self.incidence, np.arange(copies)[:, None]
        inside = Incidence(
            (its.nodes + its.n_nodes * at).ravel(),
            (its.factors + its.n_factors * at).ravel(),
            np.tile(its.diameters, copies),
            its.n_nodes * copies,
            its.n_factors * copies,
        )
        edges = (self.edges + its.n_nodes * at[:, :, None]).reshape(-1, 2)
        return Network(inside, edges, np.tile(self.diameters, copies), (self.nodes + its.n_nodes * at).ravel())

    def without(self, known: BoolArray) -> CutNetwork:
        """Return what is left when known records are taken out."""
        out = np.zeros(self.incidence.n_nodes, dtype=np.bool_)
        out[self.nodes[known]] = True
        its = self.incidence
        rows = ~out[its.nodes]
        names, factors = np.unique(its.factors[rows], return_inverse=True)
        inside = Incidence(its.nodes[rows], factors, its.diameters[rows], its.n_nodes, len(names))
        kept = ~out[self.edges].any(axis=1)
        is_record = np.zeros(its.n_nodes, dtype=np.bool_)
        is_record[self.nodes[~known]] = True
        return CutNetwork(inside, self.edges[kept], self.diameters[kept], self.nodes, is_record)


@dataclass(frozen=True)
class CutNetwork:
    """A network without its known records."""

    incidence: Incidence
    edges: IntArray
    diameters: FloatArray
    nodes: IntArray
    is_record: BoolArray

    @cached_property
    def propagation(self) -> Propagation:
        """Messages on what is left."""
        return Propagation(self.incidence)

    @cached_property
    def remembering(self) -> Propagation:
        """Messages with memory on what is left."""
        return Propagation(self.incidence, memory=True)

    @property
    def parts(self) -> IntArray:
        """Component of each record; a known one is by itself."""
        return self.propagation.component[self.nodes]

    def leakages(self, epsilon: float | FloatArray, propagation: Propagation) -> FloatArray:
        """Return messages on what is left, shape (n,)."""
        budgets = np.zeros(len(self.is_record))
        budgets[self.nodes] = epsilon
        return propagation.leakages(budgets)[self.nodes]

    def inflation(self) -> float:
        """Return the inflation by the interdependence matrix, infinite where it says nothing."""
        if not np.isfinite(self.diameters).all():
            return math.inf
        matrix = interdependence(self.edges, self.diameters, len(self.is_record))
        return interdependence_inflation(matrix, self.is_record)
