"""Markov blankets, quilts, influences and the graph of neighbours of a model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.known_records import BoolArray, Network
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.structure.labelled_values import places_of
from graphs.structure.revealed_blocks import RevealedBlocks

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["MarkovStructure", "Parted", "quilt_table"]


class Parted:
    """Mixin of models with independent parts and revealed blocks."""

    n: int

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of int, or None
            Sizes that add up to n. Dependence inside a group is arbitrary. None if the model does not consist of such
            groups.
        """
        return None

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Bound how many records change with each block when records are revealed block after block.

        A block changes s records if, for any two values of the block and the same earlier blocks, the data can be
        coupled so that they differ in at most s records, the block included, up to a small probability. A mechanism
        that is private for single records then protects a block like a group of s records. Certificates for dependent
        records use these numbers.

        Parameters
        ----------
        missed : float, default 0.0
            Bound on the probability, summed over all blocks, that more records change.

        Returns
        -------
        RevealedBlocks
            Attribute `changes` holds the numbers of records that change with a block, `counts` the number of blocks for
            each of them. For independent groups each group is a block, for series a stretch. If nothing better is
            known, all records form one block. See `graphs/PROOFS.md`, section on revealed blocks.

        Examples
        --------
        >>> from graphs import Groups, MovingWindow
        >>> Groups(["ann", "ann", "bob"]).revealed_blocks()
        RevealedBlocks(changes=(1, 2), counts=(1, 1), missed=0.0)
        >>> MovingWindow(1000, 2).revealed_blocks().changes
        (2, 4)
        """
        sizes = self.independent_groups()
        return RevealedBlocks.of_groups([self.n] if sizes is None else sizes)


#: Most edges of a graph of neighbours; networkx needs some hundred bytes for each.
MOST_EDGES = 1_000_000


class MarkovStructure:
    """Mixin of models with Markov blankets, quilts and influences [Z17, sections 2.3 and 4]."""

    n: int

    def markov_blanket(self, record: Hashable) -> tuple[Hashable, ...]:
        """Return the Markov blanket of a record: given its blanket, a record is independent of all other records.

        Parameters
        ----------
        record : int, or name of a record
            The record, by name if the model names its records and by number otherwise.

        Returns
        -------
        tuple
            Neighbours of the record in the Markov network, latent nodes included [Z17, Lemma 3]. For models without a
            network, all records on which it may depend.

        Examples
        --------
        >>> from graphs import MarkovChain
        >>> MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=5).markov_blanket(2)
        (1, 3)
        """
        place = self._place_of("record", record)
        network = self._network()
        if network is None:
            return tuple(self._label_of(k) for k in self._dependants(place).tolist() if k != place)
        node = int(network.nodes[place])
        first, second = network.edges.T
        found = np.unique(np.concatenate([second[first == node], first[second == node]]))
        names = self._names_of_nodes(network)
        return tuple(names[k] for k in found.tolist())

    def moralise(self) -> nx.Graph[Any]:
        """Return the Markov network of the model as an undirected graph.

        Records without an edge between them are independent given all others. For a Bayesian network this is the moral
        graph.

        Returns
        -------
        networkx.Graph
            Graph of the records and latent nodes. For models without a network, edges join all records that may depend
            on each other.

        Raises
        ------
        ArgumentError
            If the graph has more than a million edges.

        Examples
        --------
        >>> from graphs import Groups
        >>> list(Groups(["a", "a", "b"]).moralise().edges)
        [(0, 1)]
        """
        import networkx as nx

        graph: nx.Graph[Any] = nx.Graph()
        network = self._network()
        if network is not None:
            names = self._names_of_nodes(network)
            graph.add_nodes_from(names)
            graph.add_edges_from((names[a], names[b]) for a, b in network.edges.tolist())
            return graph
        parts = self._independent_parts()
        sizes = np.bincount(parts).astype(np.int64)
        count = int((sizes * (sizes - 1)).sum()) // 2
        if count > MOST_EDGES:
            seen = f"one with {count} pairs of records that may depend on each other"
            raise ArgumentError("model", seen, f"a model with at most {MOST_EDGES} such pairs")
        graph.add_nodes_from(self._label_of(k) for k in range(self.n))
        for part in np.flatnonzero(sizes > 1).tolist():
            inside = [self._label_of(k) for k in np.flatnonzero(parts == part).tolist()]
            graph.add_edges_from((a, b) for k, a in enumerate(inside) for b in inside[k + 1 :])
        return graph

    def max_influence(self, others: Iterable[Hashable], record: Hashable, *, given: Iterable[Hashable] = ()) -> float:
        """Compute the max-influence of a record on other records [Z17, Definition 4].

        The max-influence is the largest log-ratio of probabilities of the other records under two values of this
        record. It measures how much the others reveal about it.

        Parameters
        ----------
        others : iterable of records
            The records Q that are influenced, by name if the model names its records and by number otherwise.
        record : int, or name of a record
            The record i, not one of `others`.
        given : iterable of records, default ()
            Records L whose values are known, none of the above.

        Returns
        -------
        float
            The maximum of ln P(x_Q | x_i, x_L) / P(x_Q | x_i', x_L) over all values of positive probability, rounded
            up. It is 0 if Q is independent of i given L, and infinite if a value of Q rules out a value of i.

        Raises
        ------
        ArgumentError
            If a record does not exist or is named twice, the model does not state a distribution, or the tables are too
            large.

        Examples
        --------
        >>> from graphs import MarkovChain
        >>> chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=5)
        >>> round(chain.max_influence([1, 3], 2), 6), round(chain.max_influence([0, 4], 2, given=[1]), 6)
        (4.394449, 1.516347)
        """
        from graphs.leakage.influence import largest_influences

        place, quilt, known = (
            self._places("record", [record]),
            self._places("others", others),
            self._places("given", given),
        )
        if len({*place, *quilt, *known}) < len(place) + len(quilt) + len(known):
            raise ArgumentError(
                "others", "a record that is named twice", "records other than record and given, each once"
            )
        near = set(self._dependants(place[0]).tolist())
        if not near.intersection(quilt) and not known:
            return 0.0
        values, roundings = self._table_of([*known, *place, *quilt])
        behind = int(np.prod(values.shape[len(known) + 1 :]))
        configurations = values.reshape(-1, values.shape[len(known)], behind)
        configurations = configurations[configurations.any(axis=(1, 2))]
        possible: BoolArray = np.asarray(configurations.any(axis=2))
        found = [
            largest_influences(part[rows][None], np.ones(behind), roundings)[0] if rows.sum() > 1 else 0.0
            for part, rows in zip(configurations, possible, strict=True)
        ]
        return max([0.0, *found])

    def quilts(self, record: Hashable) -> pd.DataFrame:
        """List Markov quilts of a record, with its influence on each [Z17, Definition 5 and Lemma 2].

        A quilt is a set of records that separates a record and the records near it from all others. The routes "quilt"
        to `leakage` use quilts.

        Parameters
        ----------
        record : int, or name of a record
            The record, by name if the model names its records and by number otherwise.

        Returns
        -------
        pandas.DataFrame
            One row per quilt, with the columns `quilt` and `nearby` (names of the separating and of the separated
            records), `influence` (the max-influence on the quilt for any known nearby records, or an upper bound if the
            network is large) and `spread` (the range of its log-ratios). Models without a network have one row with an
            empty quilt: all records on which the record may depend are near.

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups(["a", "a", "b"]).quilts(0)
          quilt nearby  influence  spread
        0    ()   (1,)        0.0     0.0
        """
        place = self._place_of("record", record)
        near = tuple(self._label_of(k) for k in self._dependants(place).tolist() if k != place)
        return quilt_table([((), near, 0.0, 0.0)])

    # Names and laws ----------------------------------------------------------------------------------------

    def _record_labels(self) -> tuple[Hashable, ...] | None:
        return None

    def _network(self) -> Network | None:
        return None

    def _parts_given(self, known: BoolArray) -> IntArray | None:
        return None

    def joint(self) -> FloatArray:
        """Return the table of joint probabilities."""
        raise NotImplementedError

    def _table_of(self, places: list[int]) -> tuple[FloatArray, float]:
        """Return the joint law of some records, up to a factor, and the relative error of its entries in units."""
        table = self.joint()
        left = [axis for axis in range(table.ndim) if axis not in places]
        order = [axis for axis in range(table.ndim) if axis in places]
        return table.sum(axis=tuple(left)).transpose([order.index(k) for k in places]), float(table.size + 8 * self.n)

    def _names_of_nodes(self, network: Network) -> Sequence[Hashable]:
        names: list[Hashable] = [("latent", k) for k in range(network.incidence.n_nodes)]
        for place, node in enumerate(network.nodes.tolist()):
            names[node] = self._label_of(place)
        return names

    def _label_of(self, place: int) -> Hashable:
        labels = self._record_labels()
        return place if labels is None else labels[place]

    def _places(self, argument: str, records: Iterable[Hashable]) -> list[int]:
        return places_of(argument, records, self._record_labels(), self.n)

    def _place_of(self, argument: str, record: Hashable) -> int:
        return self._places(argument, [record])[0]

    def _independent_parts(self) -> IntArray:
        network = self._network()
        if network is not None:
            return network.without(np.zeros(self.n, dtype=np.bool_)).parts
        found = self._parts_given(np.zeros(self.n, dtype=np.bool_))
        return np.zeros(self.n, dtype=np.int64) if found is None else found

    def _dependants(self, place: int) -> IntArray:
        """Return the records that may depend on one, itself included."""
        parts = self._independent_parts()
        return np.flatnonzero(parts == parts[place])


def quilt_table(rows: Sequence[tuple[tuple[Hashable, ...], tuple[Hashable, ...], float, float]]) -> pd.DataFrame:
    """Return quilts, near records, influences and ranges as a table."""
    import pandas as pd

    return pd.DataFrame(rows, columns=["quilt", "nearby", "influence", "spread"])
