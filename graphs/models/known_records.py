"""What known records leave of a model: the parts they cut it into, and the network without them.

Proofs: `graphs/PROOFS.md`, section on evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import numpy.typing as npt

from graphs.leakage.messages import along_chain
from graphs.leakage.network_messages import Incidence, Propagation
from graphs.leakage.profile import Profile
from graphs.model import DependenceModel
from graphs.models.communities import Communities
from graphs.models.factor_graph import FactorGraph
from graphs.models.law_free import Groups, Independent
from graphs.models.markov_chain import MarkovChain
from graphs.models.markov_field import MarkovField
from graphs.numerics.arguments import FloatArray, IntArray

__all__ = ["CutNetwork", "Network", "network_of", "parts_of", "profile_given"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Network:
    """A network in integers: which node is in which factor, edges with their diameters, the node of each record."""

    incidence: Incidence
    edges: IntArray
    diameters: FloatArray
    nodes: IntArray

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
        return CutNetwork(Propagation(inside), self.edges[kept], self.diameters[kept], self.nodes, is_record)


@dataclass(frozen=True, slots=True)
class CutNetwork:
    """A network without its known records."""

    propagation: Propagation
    edges: IntArray
    diameters: FloatArray
    nodes: IntArray
    is_record: BoolArray

    @property
    def parts(self) -> IntArray:
        """Component of each record; a known one is by itself."""
        return self.propagation.component[self.nodes]

    def leakages(self, epsilon: FloatArray) -> FloatArray:
        """Return messages on what is left, shape (n,)."""
        budgets = np.zeros(len(self.is_record))
        budgets[self.nodes] = epsilon
        return self.propagation.leakages(budgets)[self.nodes]

    def inflation(self) -> float:
        """Return the inflation by the interdependence matrix, infinite where it says nothing."""
        from graphs.inflation.interdependence import interdependence, interdependence_inflation

        if not np.isfinite(self.diameters).all():
            return math.inf
        matrix = interdependence(self.edges, self.diameters, len(self.is_record))
        return interdependence_inflation(matrix, self.is_record)


@singledispatch
def network_of(model: DependenceModel) -> Network | None:
    """Return the network that a model is, where it is one."""
    return None


@network_of.register
def _(model: MarkovChain) -> Network | None:
    starts = np.arange(model.n - 1)
    edges = np.stack([starts, starts + 1], axis=1)
    diameters = model._edges(1).of(0, model.n - 1)
    return Network(Incidence.pairwise(edges, diameters, model.n), edges, diameters, np.arange(model.n))


@network_of.register
def _(model: MarkovField) -> Network | None:
    if model._reduced:
        return network_of(model._factor_graph)
    edges, diameters = model._links
    size = model._layout.size
    return Network(Incidence.pairwise(edges, diameters, size), edges, diameters, model._layout.records)


@network_of.register
def _(model: FactorGraph) -> Network | None:
    its = model._potentials
    if not its.positive_components.all():
        edges = its.pairs[0]
        return Network(its.incidence, edges, np.full(len(edges), np.inf), its.records)
    return Network(its.incidence, *its.pairs, its.records)


@singledispatch
def parts_of(model: DependenceModel, known: BoolArray) -> IntArray | None:
    """Return a number for each record; records with different numbers are independent given the known ones."""
    return None


@parts_of.register
def _(model: Independent, known: BoolArray) -> IntArray | None:
    return np.arange(model.n)


@parts_of.register
def _(model: Groups, known: BoolArray) -> IntArray | None:
    return model._index


@parts_of.register
def _(model: Communities, known: BoolArray) -> IntArray | None:
    return model._assignment if isinstance(model._of_states, Independent) else None


@parts_of.register
def _(model: MarkovChain, known: BoolArray) -> IntArray | None:
    return np.cumsum(known)


@singledispatch
def profile_given(model: DependenceModel, method: str, epsilon: float | FloatArray, known: BoolArray) -> Profile:
    """Return leakages by a route that holds for every set of known records, these among them."""
    return model._profile(method, epsilon, "informed")


@profile_given.register
def _(model: MarkovChain, method: str, epsilon: float | FloatArray, known: BoolArray) -> Profile:
    if method in ("messages", "long-edges") and not isinstance(epsilon, float):
        edges = model._edges(1) if method == "messages" else model._reach(epsilon)
        return along_chain(model.n, epsilon, edges, known)
    return model._profile(method, epsilon, "informed")
