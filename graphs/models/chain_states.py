"""States of a chain: names, graphs of states, and counts of transitions in observed sequences."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.inflation.chain_evidence import stretches
from graphs.known_records import BoolArray
from graphs.leakage.messages import Edges, along_chain, along_stretches
from graphs.leakage.profile import Profile
from graphs.numerics.arguments import FloatArray, IntArray, as_real, check_count
from graphs.numerics.rounding import up
from graphs.structure.labelled_values import refuse_unordered

__all__ = [
    "ChainStretches",
    "array_of_names",
    "chain_table",
    "drawn_path",
    "path_given",
    "path_length",
    "read_states_graph",
    "state_names",
    "transition_counts",
]


@dataclass(frozen=True, slots=True)
class _StretchProfile(Profile):
    """Leakages by kinds of stretches, compared without expanding the records."""

    def minimum(self, other: Profile) -> Profile:
        """Return the smaller leakage of each record, kind by kind where both are of the same stretches."""
        if other.index is self.index:
            return _StretchProfile(np.minimum(self.values, other.values), self.counts, self.index)
        return Profile.minimum(self, other)


class ChainStretches:
    """The stretches of unknown records of a chain, grouped by kind.

    Stretches of one length are of the same kind, unless they begin among the first `starts` records, from which edges
    have diameters of their own.

    >>> found = ChainStretches(np.array([False, True, False, False, True, False]), 0)
    >>> found.lengths, found.profile(found.group(0.1)).expand().round(6)
    (array([1, 2]), array([0.1, 0.2, 0.2, 0.1]))
    """

    def __init__(self, known: BoolArray, starts: int) -> None:
        each, _ = stretches(known)
        before: IntArray = np.cumsum(each) - each
        begins = np.flatnonzero(~known)[before]
        kinds = np.stack([np.minimum(begins, starts), each], axis=1)
        found, of_stretch, counts = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
        self._begins, self.lengths = found.T.copy()
        self._own = self._begins < starts
        self._counts: IntArray = np.repeat(counts, self.lengths)
        first = (np.cumsum(self.lengths) - self.lengths)[of_stretch.ravel()]
        self._index: IntArray = np.arange(int(each.sum())) + np.repeat(first - before, each)

    def profile(self, values: Iterable[FloatArray]) -> Profile:
        """Return the profile of the unknown records, given the leakages in a stretch of each kind."""
        return _StretchProfile(np.concatenate(list(values)), self._counts, self._index)

    def group(self, epsilon: float) -> list[FloatArray]:
        """Return the sum of the budgets of a stretch, for each of its records."""
        return [np.full(m, epsilon if m == 1 else up(m * epsilon, 1)) for m in self.lengths.tolist()]

    def messages(self, epsilon: float, edges: Edges) -> list[FloatArray]:
        """Return the leakages that messages along a stretch of each kind give."""
        later = iter(along_stretches(self.lengths[~self._own], epsilon, edges.after(len(edges.head))))
        return [
            along_chain(int(length), epsilon, edges.after(int(begin))).expand() if own else next(later)
            for begin, length, own in zip(self._begins, self.lengths, self._own, strict=True)
        ]


#: Largest table of the joint law of some records (32 MB).
MOST_ENTRIES = 1 << 22


def transition_counts(
    sequences: tuple[Iterable[Hashable], ...], smoothing: float
) -> tuple[FloatArray, tuple[Hashable, ...], int]:
    """Count the transitions between each two states.

    >>> transition_counts((["rain", "sun", "rain"],), 0.5)
    (array([[0.5, 1.5],
           [1.5, 0.5]]), ('rain', 'sun'), 3)
    """
    added = as_real(smoothing)
    if added is None or not 0 <= added < math.inf:
        raise ArgumentError("smoothing", repr(smoothing), "a finite number that is not negative")
    if not sequences:
        raise ArgumentError("sequences", "nothing", "at least one sequence of states")
    paths = [_states_of(sequence, number) for number, sequence in enumerate(sequences)]
    states = _ordered({state: None for path in paths for state in path})
    number = {state: k for k, state in enumerate(states)}
    counts = np.full((len(states), len(states)), added)
    for path in paths:
        steps = np.array([number[state] for state in path])
        np.add.at(counts, (steps[:-1], steps[1:]), 1.0)
    stuck = np.flatnonzero(counts.sum(axis=1) == 0)
    if len(stuck):
        seen = f"the state {states[stuck[0]]!r}, which is never followed by another record"
        raise ArgumentError("sequences", seen, "sequences that leave every state", "Or pass smoothing above 0.")
    return counts, states, max(len(path) for path in paths)


def _states_of(sequence: Iterable[Hashable], number: int) -> list[Any]:
    expected = "sequences of hashable states, each at least two records long"
    refuse_unordered("sequences", sequence, expected)
    try:
        path: list[Any] = sequence.tolist() if hasattr(sequence, "tolist") else list(sequence)
    except TypeError:
        raise ArgumentError("sequences", f"{sequence!r} as sequence {number}", expected) from None
    if not isinstance(path, list) or len(path) < 2:
        raise ArgumentError("sequences", f"sequence {number} with fewer than two records", expected)
    for position, state in enumerate(path):
        where = f"record {position} of sequence {number}"
        try:
            hash(state)
        except TypeError:
            raise ArgumentError("sequences", f"{where} of type {type(state).__name__}", expected) from None
        if state is None or type(state).__name__ in ("NAType", "NaTType") or state != state:
            raise ArgumentError("sequences", f"{where}, which is missing ({state!r})", expected)
    return path


def _ordered(states: Iterable[Any]) -> tuple[Hashable, ...]:
    names = list(states)
    try:
        return tuple(sorted(names))
    except TypeError:
        return tuple(names)


def drawn_path(initial: FloatArray, transition: FloatArray, n: int, rng: np.random.Generator) -> list[int]:
    """Draw the states of n records, by number."""
    rows = [row[:-1].tolist() for row in np.cumsum(transition, axis=1)]
    draws = rng.random(n).tolist()
    state = bisect_right(np.cumsum(initial)[:-1].tolist(), draws[0])
    path = [state]
    for draw in draws[1:]:
        state = bisect_right(rows[state], draw)
        path.append(state)
    return path


def array_of_names(states: tuple[Hashable, ...]) -> npt.NDArray[Any]:
    """Return the names of the states as an array, of plain type where all are of one such type."""
    if states == tuple(range(len(states))):
        return np.arange(len(states))
    names = np.empty(len(states), dtype=object)
    names[:] = states
    plain = {type(state) for state in states} in ({str}, {int}, {float}, {bool})
    return np.array(states) if plain else names


def state_names(transition: Any, states: Sequence[Hashable] | None, count: int) -> tuple[Hashable, ...]:
    """Return the names of the states: as given, or those of a data frame's rows and columns, or numbers."""
    return _checked_names(_table_names(transition) if states is None else states, count)


def _table_names(transition: Any) -> Sequence[Hashable] | None:
    """Return the names of the rows of a data frame whose columns have the same names."""
    if not (hasattr(transition, "columns") and hasattr(transition, "index")):
        return None
    rows = list(transition.index)
    return rows if rows == list(transition.columns) else None


def _checked_names(states: Sequence[Hashable] | None, count: int) -> tuple[Hashable, ...]:
    if states is None:
        return tuple(range(count))
    refuse_unordered("states", states, "names of states, in the order of the rows")
    names = tuple(states)
    check_count("states", len(names))
    if len(names) != count or len(set(names)) != count:
        seen = f"{len(names)} names, {len(set(names))} of them different"
        raise ArgumentError("states", seen, f"{count} different names, one for each row of the matrix")
    return names


def read_states_graph(graph: Any, weight: str) -> tuple[FloatArray, tuple[Hashable, ...]]:
    """Return the transition matrix of a random walk along weighted edges, and the names of the states."""
    import networkx as nx

    expected = "a networkx.DiGraph or Graph of states, whose edges have positive weights"
    if not isinstance(graph, nx.Graph) or not len(graph):
        raise ArgumentError("graph", f"a {type(graph).__name__}", expected)
    states = tuple(graph.nodes)
    try:
        table: Any = nx.to_pandas_adjacency(graph, nodelist=list(states), weight=weight)
        weights: FloatArray = table.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError("graph", f"edges whose {weight!r} is no number", expected) from None
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ArgumentError("graph", f"a negative, missing or infinite {weight!r}", expected)
    sums = weights.sum(axis=1)
    if not sums.all():
        seen = f"the state {states[int(np.flatnonzero(sums == 0)[0])]!r} without a step out of it"
        raise ArgumentError("graph", seen, "a graph with a step from every state", "A step to itself suffices.")
    return weights / sums[:, None], states


def path_length(graph: Any, n: int | None) -> int:
    """Return the number of nodes of a graph that is a path, the records of a chain."""
    import networkx as nx

    expected = "an undirected path in the order of the records, beside transition="
    if not isinstance(graph, nx.Graph) or graph.is_directed() or not len(graph):
        raise ArgumentError("graph", f"a {type(graph).__name__}", expected)
    degrees = [degree for _, degree in graph.degree()]
    if graph.number_of_edges() != len(graph) - 1 or max(degrees) > 2 or not nx.is_connected(graph):
        raise ArgumentError("graph", f"a graph of {len(graph)} nodes that is no path", expected)
    apart = [(a, b) for a, b in itertools.pairwise(graph) if not graph.has_edge(a, b)]
    if apart:
        seen = f"{apart[0][1]!r} after {apart[0][0]!r} in the order of its nodes, without an edge between them"
        raise ArgumentError("graph", seen, expected)
    if n is not None and check_count("n", n) != len(graph):
        raise ArgumentError("n", repr(n), f"None, or the number of nodes of the path ({len(graph)})")
    return len(graph)


def chain_table(initial: FloatArray, transition: FloatArray, places: list[int]) -> tuple[FloatArray, float]:
    """Return the joint law of some records of a chain, and the relative error of its entries in units."""
    states, order = len(initial), sorted(places)
    if states ** len(order) > MOST_ENTRIES:
        expected = f"records whose joint law has at most {MOST_ENTRIES} entries"
        raise ArgumentError("others", f"a table of {states}^{len(order)} entries", expected)
    table = initial @ np.linalg.matrix_power(transition, order[0])
    for before, after in itertools.pairwise(order):
        table = table[..., None] * np.linalg.matrix_power(transition, after - before)
    return table.transpose([order.index(place) for place in places]), 2.0 * (states + 2) * (order[-1] + 2)


def path_given(
    initial: FloatArray, transition: FloatArray, known: Mapping[int, int], n: int, rng: np.random.Generator
) -> list[int]:
    """Draw the states of a chain given those of some records, by backward weights and forward draws."""
    weights = np.ones((n, len(initial)))
    for record, code in known.items():
        weights[record] = np.arange(len(initial)) == code
    for record in range(n - 2, -1, -1):
        weights[record] *= transition @ weights[record + 1]
        total = weights[record].sum()
        weights[record] /= total if total > 0 else 1.0
    law, path = initial, []
    for record, draw in enumerate(rng.random(n).tolist()):
        bounds = np.cumsum(law * weights[record])
        if not bounds[-1] > 0:
            raise ArgumentError("known", "states that cannot occur together", "states of positive probability")
        state = int(np.searchsorted(bounds, draw * bounds[-1], side="right"))
        path.append(min(state, int(np.flatnonzero(law * weights[record])[-1])))
        law = transition[path[-1]]
    return path
