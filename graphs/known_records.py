"""What known records leave of a model: the parts they cut it into, and the network without them.

Proofs: `graphs/PROOFS.md`, section on evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphs.inflation.parts import NetworkParts
from graphs.leakage.network_messages import Propagation
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.structure.incidence import Incidence

__all__ = ["BoolArray", "CutNetwork", "Network"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Network:
    """A network in integers: which node is in which factor, edges with their diameters, the node of each record."""

    incidence: Incidence
    edges: IntArray
    diameters: FloatArray
    nodes: IntArray

    @cached_property
    def inflations(self) -> NetworkParts:
        """The independent parts of the network, and the variance inflation of each."""
        return NetworkParts(self.incidence, self.edges, self.diameters, self.weights(1.0))

    def weights(self, of_records: float | FloatArray) -> FloatArray:
        """Return a weight for each node from those of the records, 0 for latent nodes."""
        found = np.zeros(self.incidence.n_nodes)
        found[self.nodes] = of_records
        return found

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

    @cached_property
    def inflations(self) -> NetworkParts:
        """The independent parts of what is left, and the variance inflation of each."""
        return NetworkParts(self.incidence, self.edges, self.diameters, self.is_record.astype(np.float64))

    def leakages(self, epsilon: float | FloatArray, propagation: Propagation) -> FloatArray:
        """Return messages on what is left, shape (n,)."""
        budgets = np.zeros(len(self.is_record))
        budgets[self.nodes] = epsilon
        return propagation.leakages(budgets)[self.nodes]
