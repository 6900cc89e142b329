"""The network that remains once some records are known, and its independent parts.

Proofs: `graphs/PROOFS.md`, section on evidence.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray, check_count
from graphs.structure.incidence import Incidence
from graphs.structure.labelled_values import has_labels, places_of, refuse_unordered

if TYPE_CHECKING:
    from graphs.inflation.forward_coupling import ForwardCoupling
    from graphs.inflation.parts import NetworkParts
    from graphs.leakage.network_messages import Propagation

__all__ = ["BoolArray", "CutNetwork", "Network", "coded", "named"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Network:
    """A network in integers: incidence of nodes and factors, edges with their diameters, the node of each record."""

    incidence: Incidence
    edges: IntArray
    diameters: FloatArray
    nodes: IntArray
    forward: ForwardCoupling | None = None

    @cached_property
    def inflations(self) -> NetworkParts:
        """The independent parts of the network, and the variance inflation of each."""
        return self.parts(self.weights(1.0))

    def parts(self, weights: FloatArray) -> NetworkParts:
        """Return the independent parts of the network, for means with these weights of the nodes."""
        from graphs.inflation.parts import NetworkParts

        return NetworkParts(self.incidence, self.edges, self.diameters, weights, self.forward)

    def weights(self, of_records: float | FloatArray) -> FloatArray:
        """Return a weight for each node from those of the records, 0 for latent nodes."""
        found = np.zeros(self.incidence.n_nodes)
        found[self.nodes] = of_records
        return found

    def repeated(self, copies: int) -> Network:
        """Return independent copies of the network."""
        its, at = self.incidence, np.arange(copies)[:, None]
        inside = Incidence(
            (its.nodes + its.n_nodes * at).ravel(),
            (its.factors + its.n_factors * at).ravel(),
            np.tile(its.diameters, copies),
            its.n_nodes * copies,
            its.n_factors * copies,
        )
        edges = (self.edges + its.n_nodes * at[:, :, None]).reshape(-1, 2)
        nodes = (self.nodes + its.n_nodes * at).ravel()
        forward = None if self.forward is None else self.forward.repeated(copies)
        return Network(inside, edges, np.tile(self.diameters, copies), nodes, forward)

    def without(self, known: BoolArray) -> CutNetwork:
        """Return the network without the known records."""
        out = np.zeros(self.incidence.n_nodes, dtype=np.bool_)
        out[self.nodes[known]] = True
        its = self.incidence
        rows = ~out[its.nodes]
        names, factors = np.unique(its.factors[rows], return_inverse=True)
        inside = Incidence(its.nodes[rows], factors, its.diameters[rows], its.n_nodes, len(names))
        kept = ~out[self.edges].any(axis=1)
        is_record = np.zeros(its.n_nodes, dtype=np.bool_)
        is_record[self.nodes[~known]] = True
        forward = None if self.forward is None else self.forward.without(out)
        return CutNetwork(inside, self.edges[kept], self.diameters[kept], self.nodes, is_record, forward)


@dataclass(frozen=True)
class CutNetwork:
    """A network without its known records."""

    incidence: Incidence
    edges: IntArray
    diameters: FloatArray
    nodes: IntArray
    is_record: BoolArray
    forward: ForwardCoupling | None = None

    @cached_property
    def propagation(self) -> Propagation:
        """Messages on the remaining network."""
        from graphs.leakage.network_messages import Propagation

        return Propagation(self.incidence)

    @cached_property
    def remembering(self) -> Propagation:
        """Messages with memory on the remaining network."""
        from graphs.leakage.network_messages import Propagation

        return Propagation(self.incidence, memory=True)

    @property
    def parts(self) -> IntArray:
        """Component of each record; a known record is a component of its own."""
        return self.propagation.component[self.nodes]

    @cached_property
    def inflations(self) -> NetworkParts:
        """The independent parts of the remaining network, and the variance inflation of each."""
        weights = self.is_record.astype(np.float64)
        from graphs.inflation.parts import NetworkParts

        return NetworkParts(self.incidence, self.edges, self.diameters, weights, self.forward)

    def leakages(self, epsilon: float | FloatArray, propagation: Propagation) -> FloatArray:
        """Return messages on the remaining network, shape (n,)."""
        budgets = np.zeros(len(self.is_record))
        budgets[self.nodes] = epsilon
        return propagation.leakages(budgets)[self.nodes]


def named(known: Any, labels: Sequence[Hashable] | None, n: int) -> tuple[list[int], list[Any]]:
    """Return the positions of known records, and their states where given.

    >>> named({"bob": 1}, ["ann", "bob"], 2), named([1], None, 2)
    (([1], [1]), ([1], []))
    """
    expected = "names of records" if labels else "numbers of records"
    if isinstance(known, str | bytes):
        raise ArgumentError("known", f"the text {known!r}", expected)
    if hasattr(known, "columns"):
        refuse_unordered("known", known, expected)
    names, states = known, []
    if isinstance(known, Mapping):
        states = list(known.values())
    elif has_labels(known):
        names, states = known.index.tolist(), known.tolist()
    try:
        names = names.tolist() if hasattr(names, "tolist") else list(names)
    except TypeError:
        raise ArgumentError("known", repr(known), expected) from None
    places = places_of("known", names, labels, n)
    if len(set(places)) != len(places):
        raise ArgumentError("known", "a record that is named twice", "different records")
    return places, states


def coded(values: Mapping[int, Any], names: Iterable[Any] | None) -> dict[int, int]:
    """Return the codes of the known records' states, from their names; without names they are codes.

    >>> coded({3: "up"}, ("down", "up"))
    {3: 1}
    """
    if names is None:
        return {record: check_count("known", value, 0) for record, value in values.items()}
    number = {name: k for k, name in enumerate(names)}
    for record, value in values.items():
        if value not in number:
            raise ArgumentError("known", f"record {record} in state {value!r}", f"states among {tuple(number)}")
    return {record: number[value] for record, value in values.items()}
