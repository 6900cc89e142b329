"""Markov chains of records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.inflation import concentration
from graphs.inflation.chain_evidence import contraction, contractions_of, stretches
from graphs.inflation.influences import chain_influences
from graphs.known_records import BoolArray, CutNetwork, Network
from graphs.leakage.chain_quilts import ChainQuilts, Penalty
from graphs.leakage.influence import LEAST, Kernels, Supports, distances_from, supports_of
from graphs.leakage.largest_budget import largest_below
from graphs.leakage.messages import FAINTEST, Edges, along_chain, fixed_point, phi
from graphs.leakage.profile import Profile, smallest
from graphs.leakage.spectral import is_reversible, period, published_budget, spectral_gap, stationary_law
from graphs.markov_structure import quilt_table
from graphs.model import Adversary, DependenceModel
from graphs.models import chain_states
from graphs.models.chain_states import ChainStretches
from graphs.numerics.arguments import FloatArray, IntArray, check_count, check_probabilities
from graphs.numerics.rounding import UNIT, up, upward_sum
from graphs.structure.incidence import Incidence
from graphs.structure.revealed_blocks import RevealedBlocks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MarkovChain"]

#: Largest table of joint probabilities.
MOST_STATES = 1_000_000

#: An initial law this close to the stationary one, relative in every state, counts as stationary: typed decimals.
SAME_LAW = 1e-12

#: Beyond this many steps, edges that single steps replace are left out.
FAR = 4096

#: Routes that bound the leakage to every adversary, for the ends of quilts.
_FOR_EVERY_ADVERSARY = ("group", "messages", "long-edges")


class MarkovChain(DependenceModel):
    """Records that follow each other as a time-homogeneous Markov chain.

    Parameters
    ----------
    transition : array_like of shape (k, k)
        Transition matrix: row x is the law of the next state after state x. Row sums may differ from 1 by 1e-9, in
        single precision by k times 1.2e-7; rows are normalised.
    n : int
        Number of records.
    initial : array_like of shape (k,), optional
        Law of the first record. By default the stationary law, for which the chain has to be irreducible and
        aperiodic. A law within a relative 1e-12 of the stationary law, in every state, counts as that law.
    states : sequence of hashable, optional
        Names of the states; by default those of the rows and columns of a data frame, or 0, 1, ..., k - 1.

    Raises
    ------
    ArgumentError
        For rows that do not sum to one, negative or missing entries, a wrong shape, fewer than one record, repeated
        names, positive entries below 2.3e-308, or a missing `initial` without a stationary law of at least 1e-280.

    Notes
    -----
    Zeros are allowed: states that are impossible at a record are left out there. Routes: see `graphs/PROOFS.md`.

    Examples
    --------
    >>> model = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=5)
    >>> model.stationary.round(6)
    array([0.666667, 0.333333])
    >>> model.leakage(0.1).round(6)
    array([0.284718, 0.330203, 0.344814, 0.330203, 0.284718])
    >>> round(model.budget(0.5), 6)
    0.145045
    """

    methods: ClassVar[tuple[str, ...]] = (
        "group",
        "quilt",
        "quilt-contracted",
        "messages",
        "long-edges",
        "blanket-published",
        "quilt-published",
        "spectral-published",
    )
    inflation_methods: ClassVar[tuple[str, ...]] = (
        "components",
        "spectral",
        "dobrushin",
        "coupling",
        "influences",
    )
    _inflations_given: ClassVar[tuple[str, ...]] = ("components", "evidence", "influences")

    def __init__(
        self, transition: Any, n: int, initial: Any = None, *, states: Sequence[Hashable] | None = None
    ) -> None:
        super().__init__(n)
        self._transition = check_probabilities("transition", transition, 2)
        self._states = chain_states.state_names(transition, states, len(self._transition))
        self._period = period(self._transition)
        law = self._stationary = _settled_law(self._transition) if self._period else None
        self._starts_stationary = False
        if initial is None:
            if self._period != 1:
                seen = f"None for a chain that is {self._no_law or f'periodic ({self._period})'}"
                expected = "the law of the first record"
                raise ArgumentError("initial", seen, expected, "Such a chain does not converge to a stationary law.")
            if law is None:
                seen = f"None for a chain with {self._no_law}"
                raise ArgumentError("initial", seen, "the law of the first record", "Or remove such states.")
            self._initial, self._starts_stationary = law[0], True
        else:
            self._initial = check_probabilities("initial", initial, 1)
            if len(self._initial) != len(self._transition):
                expected = f"{len(self._transition)} probabilities, one for each state"
                raise ArgumentError("initial", f"{len(self._initial)} of them", expected)
            if law is not None and (np.abs(self._initial - law[0]) <= SAME_LAW * law[0]).all():
                self._initial, self._starts_stationary = law[0], True
        for array in (self._transition, self._initial):
            array.flags.writeable = False

    @classmethod
    def fit(
        cls, *sequences: Iterable[Hashable], n: int | None = None, smoothing: float = 0.0, initial: Any = None
    ) -> MarkovChain:
        """Estimate a chain from one or more observed sequences.

        Parameters
        ----------
        *sequences : iterables of hashable
            Observed states in order, of any hashable type; transitions are counted inside each sequence.
        n : int, optional
            Number of records of the model; required unless there is one sequence, whose length is the default.
        smoothing : float, default=0.0
            Added to the count of every pair of observed states; not negative.
        initial : array_like, optional
            Law of the first record, in the order of `states`; stationary by default.

        Returns
        -------
        MarkovChain
            With the states in sorted order, or in the order in which they appear when they cannot be sorted.

        Raises
        ------
        ArgumentError
            For no transitions, missing labels, a state that was never left (add smoothing), and as the constructor.

        Notes
        -----
        A fitted model is an estimate: its leakages hold for the fitted law, not for the unknown one.

        Examples
        --------
        >>> model = MarkovChain.fit("aabbaababb", n=100)
        >>> model.states
        ('a', 'b')
        >>> model.transition.round(6)
        array([[0.4, 0.6],
               [0.5, 0.5]])
        """
        counts, states, longest = chain_states.transition_counts(sequences, smoothing)
        if n is None:
            if len(sequences) != 1:
                expected = "the number of records of the model"
                raise ArgumentError("n", "nothing", expected, "Several sequences have no common length.")
            n = longest
        return cls(counts / counts.sum(axis=1, keepdims=True), n, initial, states=states)

    @classmethod
    def from_graph(
        cls, graph: Any, n: int | None = None, *, transition: Any = None, weight: str = "weight", initial: Any = None
    ) -> MarkovChain:
        """Return the chain of a weighted graph of states, or of a path of records.

        Parameters
        ----------
        graph : networkx.DiGraph or Graph
            With `n`, the graph of states: a step goes along an edge with a probability in proportion to its weight.
            With `transition`, an undirected path whose nodes, in their order in the graph, are the records.
        n, transition, initial : optional
            As in `MarkovChain`: the number of records, or the transition matrix, one of the two.
        weight : str, default="weight"
            Attribute of edges; edges without it have the weight 1.

        Examples
        --------
        >>> import networkx as nx
        >>> weather = nx.DiGraph([("rain", "rain", {"weight": 2}), ("rain", "sun"), ("sun", "rain")])
        >>> MarkovChain.from_graph(weather, n=5).transition.round(6)
        array([[0.666667, 0.333333],
               [1.      , 0.      ]])
        >>> MarkovChain.from_graph(nx.path_graph(7), transition=[[0.9, 0.1], [0.2, 0.8]]).n
        7
        """
        if transition is not None:
            return cls(transition, chain_states.path_length(graph, n), initial)
        matrix, states = chain_states.read_states_graph(graph, weight)
        return cls(matrix, check_count("n", n), initial, states=states)

    @property
    def transition(self) -> FloatArray:
        """Transition matrix, shape (k, k), rows normalised, read-only."""
        return self._transition

    @property
    def initial(self) -> FloatArray:
        """Law of the first record, shape (k,), read-only."""
        return self._initial

    @property
    def states(self) -> tuple[Hashable, ...]:
        """Names of the states."""
        return self._states

    @property
    def stationary(self) -> FloatArray:
        """Stationary law of an irreducible chain, shape (k,).

        Raises
        ------
        ArgumentError
            For a reducible chain, which may have several, and for a law with probabilities below 1e-280.
        """
        return self._irreducible()[0].copy()

    @property
    def is_stationary(self) -> bool:
        """Whether the chain starts in its stationary law."""
        return self._starts_stationary

    @cached_property
    def is_reversible(self) -> bool:
        """Whether the chain is in detailed balance with its stationary law (relative 1e-9)."""
        return self._stationary is not None and is_reversible(self._transition, self._stationary[0])

    @cached_property
    def spectral_gap(self) -> float:
        """1 - max modulus of the other eigenvalues, of a reversible and aperiodic chain [Z17, Lemma 4].

        Raises
        ------
        ArgumentError
            For a chain that is reducible, periodic or not reversible, or has no `stationary`.
        """
        law = self._irreducible()[0]
        if self._period != 1 or not self.is_reversible:
            seen = f"a chain with period {self._period}" if self._period != 1 else "a chain that is not reversible"
            raise ArgumentError("transition", seen, "an aperiodic, reversible chain for a spectral gap")
        return spectral_gap(self._transition, law)

    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw the states of all records once.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n,)
            Names of states: integers when no names were given.

        Examples
        --------
        >>> model = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=8)
        >>> model.sample(np.random.default_rng(1)).shape
        (8,)
        """
        rows = [row[:-1].tolist() for row in np.cumsum(self._transition, axis=1)]
        draws = rng.random(self.n).tolist()
        state = bisect_right(np.cumsum(self._initial)[:-1].tolist(), draws[0])
        path = [state]
        for draw in draws[1:]:
            state = bisect_right(rows[state], draw)
            path.append(state)
        return self._names[path]

    def joint(self) -> FloatArray:
        """Return the table of joint probabilities, one axis of length k per record.

        Raises
        ------
        ArgumentError
            For more than a million joint states, or one that is possible with a probability below 1e-280.

        Examples
        --------
        >>> MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=2, initial=[1, 0]).joint()
        array([[0.9, 0.1],
               [0. , 0. ]])
        """
        states = len(self._states)
        if states**self.n > MOST_STATES:
            expected = f"a model with at most {MOST_STATES} joint states"
            raise ArgumentError("model", f"one with {states}^{self.n} joint states", expected)
        table, possible = self._initial.copy(), self._initial > 0
        for _ in range(self.n - 1):
            table, possible = table[..., None] * self._transition, possible[..., None] & (self._transition > 0)
        if (table[possible] < LEAST).any():
            seen = "joint states that are possible with a probability below 1e-280"
            raise ArgumentError("model", seen, "a chain whose joint probabilities floats represent")
        return table

    def describe(self) -> str:
        """Return one line of words about the model."""
        start = "stationary" if self._starts_stationary else "with a given start"
        return f"Markov chain of {self.n} records over {len(self._states)} states, {start}"

    # Leakage -----------------------------------------------------------------------------------------------

    def _leakages(self, epsilon: float | FloatArray, method: str, adversary: Adversary) -> Profile:
        return super()._leakages(self._alone(epsilon), method, adversary)

    def _alone(self, epsilon: float | FloatArray) -> float | FloatArray:
        """Return the budget of a single record as a number."""
        return float(epsilon[0]) if self.n == 1 and not isinstance(epsilon, float) else epsilon

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        if method == "group" or (not self._charged(epsilon) and method != "blanket-published"):
            return self._group(epsilon)
        if method in ("messages", "long-edges"):
            return self._messages(epsilon, method)
        if method == "quilt-contracted":
            routes = [self._profile(name, epsilon, adversary) for name in _FOR_EVERY_ADVERSARY]
            return self._contracted(epsilon, smallest(routes).largest())
        if method == "quilt":
            factor = 2.0 if adversary == "informed" else 1.0
            return self._quilts.leakages(epsilon, lambda influence, both: factor * influence, factor)
        if method == "quilt-published":
            return self._quilts.leakages(epsilon, lambda influence, both: 4 * influence, 4.0)
        if method == "blanket-published":
            return self._published_blanket(epsilon)
        return self._published_spectral(epsilon)

    @staticmethod
    def _charged(epsilon: float | FloatArray) -> bool:
        """Whether any budget is positive; otherwise nothing leaks."""
        return not (isinstance(epsilon, float) and epsilon == 0)

    def _group(self, epsilon: float | FloatArray) -> Profile:
        if isinstance(epsilon, float):
            return Profile.constant(epsilon if self.n == 1 else up(self.n * epsilon, 1), self.n)
        return Profile.constant(up(float(epsilon.sum()), self.n), self.n)

    def _messages(self, epsilon: float | FloatArray, method: str) -> Profile:
        edges = self._edges(1) if method == "messages" else self._reach(epsilon)
        return along_chain(self.n, epsilon, edges).minimum(self._group(epsilon))

    def _best(self, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        routes = set(_FOR_EVERY_ADVERSARY)
        if not isinstance(epsilon, float):
            routes.remove("messages")  # long edges lower them
        elif self._charged(epsilon) and self.n > 1 and len(self._reach(epsilon).steps) == 1:
            routes.remove("long-edges")  # there are none
        found = [self._profile(name, epsilon, adversary) for name in self.methods if name in routes]
        ends = smallest(found).largest()
        return smallest([*found, self._profile("quilt", epsilon, adversary), self._contracted(epsilon, ends)])

    def _contracted(self, epsilon: float | FloatArray, ends: float) -> Profile:
        """Return the leakages by quilts of which each end leaks at most `ends`, to every adversary."""
        if not self._charged(epsilon):
            return self._group(epsilon)
        return self._quilts.contracted(epsilon, _penalty_of_ends(ends))

    def _published_blanket(self, epsilon: float | FloatArray) -> Profile:
        influence = self._quilts.blankets()
        if isinstance(epsilon, float):
            return Profile(up(epsilon + 4 * influence.values, 2), influence.counts)
        return Profile.of(up(epsilon + 4 * influence.expand(), 2))

    def _published_spectral(self, epsilon: float | FloatArray) -> Profile:
        method = "spectral-published"
        others = ("best", "messages", "quilt")
        if self._period != 1:
            reason = "the chain is periodic" if self._period else "the chain is reducible"
            raise RouteUnavailable(method, reason, others)
        if self._no_law:
            raise RouteUnavailable(method, f"the chain has {self._no_law}", others)
        if not self.is_reversible:
            raise RouteUnavailable(method, "the chain is not reversible", others)
        if not self._starts_stationary:
            raise RouteUnavailable(method, "the chain does not start in its stationary law", others)
        gap, rarest, most = self.spectral_gap, float(self._initial.min()), 1e3
        if gap <= 0 or published_budget(most, gap, rarest, self.n) == 0:
            reason = f"a chain of {self.n} records is too short for a spectral gap of {gap:.6g}"
            raise RouteUnavailable(method, reason, others)
        budget = float(np.max(epsilon))
        found = largest_below(lambda target: published_budget(target, gap, rarest, self.n), budget, budget)
        if found is None:
            raise RouteUnavailable(method, f"no target allows a privacy budget of {budget:.6g}", others)
        # the search ends within 2**-42 of the target
        return Profile.constant(found * (1 + 2.0**-40), self.n)

    def _reach(self, epsilon: float | FloatArray) -> Edges:
        """Return the long edges that can lower a message: those that cost less than the best message so far."""
        least = epsilon if isinstance(epsilon, float) else float(epsilon[epsilon > 0].min())
        count, best = 8, float("inf")
        while True:
            edges = self._edges(count)
            finite = np.flatnonzero(np.isfinite(edges.diameters))
            if len(finite) and FAINTEST < least < 500:
                best = fixed_point(least, edges.keep(finite[edges.steps[finite] * least < 1000]))
            if len(edges.steps) < count or edges.steps[-1] * least >= best:
                break
            count *= 2
        useful = (edges.steps - 1) * least < best
        useful &= np.isfinite(edges.diameters) | (edges.steps <= len(edges.head))
        if edges.steps[useful].max(initial=1) > FAR:
            useful &= ~edges.replaceable()
        useful[0] = True
        return edges.keep(np.flatnonzero(useful))

    def _edges(self, count: int) -> Edges:
        """Return the diameters of the first `count` edge lengths."""
        if self.n == 1:
            return Edges(np.ones(1, dtype=np.int64), np.zeros(1), np.zeros((0, 1)))
        count = self._kernels.prepare(count)
        supports = self._supports
        cycle = np.max([self._kernels.diameters(count, mask) for mask in supports.cycle], axis=0)
        head = [self._kernels.diameters(count, mask) for mask in supports.head[: self.n]]
        return Edges(self._kernels.lengths[:count], cycle, np.array(head).reshape(-1, count))

    # Cached values -----------------------------------------------------------------------------------------

    @cached_property
    def _supports(self) -> Supports:
        return supports_of(self._transition, self._initial)

    @cached_property
    def _possible(self) -> BoolArray:
        """States possible at any record."""
        return np.asarray(self._supports.cycle.any(axis=0) | self._supports.head.any(axis=0))

    @cached_property
    def _contractions(self) -> FloatArray:
        """Contraction of the edge from each record to the next, for any known records."""
        return contraction(self._edges(1).of(0, self.n - 1)) if self.n > 1 else np.zeros(0)

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(self._transition, self.n)

    @cached_property
    def _quilts(self) -> ChainQuilts:
        stationary, distances = self._stationary, np.zeros(1)
        if not self._starts_stationary and stationary is not None:
            distances = distances_from(*stationary, self._transition, self._initial, min(self.n, 4096))
        elif stationary is None:
            distances = np.full(1, np.inf)
        return ChainQuilts(
            self._kernels, self._supports, self.n, self._transition, self._initial, stationary, distances
        )

    @cached_property
    def _names(self) -> npt.NDArray[Any]:
        if self._states == tuple(range(len(self._states))):
            return np.arange(len(self._states))
        names = np.empty(len(self._states), dtype=object)
        names[:] = self._states
        plain = {type(state) for state in self._states} in ({str}, {int}, {float}, {bool})
        return np.array(self._states) if plain else names

    @property
    def _no_law(self) -> str:
        """The reason why there is no stationary law, in words; empty when there is one."""
        why = "a stationary law with probabilities below 1e-280" if self._period else "reducible"
        return why if self._stationary is None else ""

    def _irreducible(self) -> tuple[FloatArray, float]:
        if self._stationary is None:
            seen = f"a chain with {self._no_law}" if self._period else "a reducible chain"
            expected = "a chain without such rare states" if self._period else "an irreducible chain"
            raise ArgumentError("transition", seen, expected)
        return self._stationary

    # Known records -----------------------------------------------------------------------------------------

    def _network(self) -> Network:
        starts = np.arange(self.n - 1)
        edges = np.stack([starts, starts + 1], axis=1)
        diameters = self._edges(1).of(0, self.n - 1)
        return Network(Incidence.pairwise(edges, diameters, self.n), edges, diameters, np.arange(self.n))

    def _parts_given(self, known: BoolArray) -> IntArray:
        return np.cumsum(known)

    def quilts(self, record: Hashable) -> pd.DataFrame:
        """Return the quilts of a record with at most 20 near records: one or two ends, as `DependenceModel.quilts`."""
        place = self._place_of("record", record)
        return quilt_table(self._quilts.of_record(place))

    def _table_of(self, places: list[int]) -> tuple[FloatArray, float]:
        return chain_states.chain_table(self._initial, self._transition, places)

    def _inflation_given(self, method: str, known: BoolArray) -> float | None:
        if method != "evidence":
            return None
        lengths, is_open = stretches(known)
        steps = contractions_of(self._kernels, self._possible, self._transition)
        closed = lengths[:-1] if is_open else lengths
        found = steps.open_reach(int(lengths[-1])).squares(lengths[-1:]) if is_open else np.zeros(0)
        if len(closed):
            found = np.r_[found, steps.closed_reach(int(closed.max())).squares(closed)]
        return upward_sum(found) / int(lengths.sum()) * (1 + 4 * UNIT)

    def _profile_given(
        self, method: str, epsilon: float | FloatArray, known: BoolArray, cut: CutNetwork | None
    ) -> Profile:
        if method in ("messages", "long-edges") and not isinstance(epsilon, float):
            edges = self._edges(1) if method == "messages" else self._reach(epsilon)
            return along_chain(self.n, epsilon, edges, known)
        return self._profile(method, self._alone(epsilon), "informed")

    def _stretches(self, known: BoolArray) -> Callable[[str, float], Profile | None]:
        found = ChainStretches(known, len(self._edges(1).head))

        def profile(method: str, epsilon: float) -> Profile | None:
            if method == "group":
                return found.profile(found.group(epsilon))
            if method in ("messages", "long-edges"):
                edges = self._edges(1) if method == "messages" else self._reach(epsilon)
                return found.profile(found.messages(epsilon, edges)).minimum(found.profile(found.group(epsilon)))
            if method == "quilt":
                return found.profile(self._quilts.stretch_leakages(found.lengths, epsilon, _twice, False))
            if method == "quilt-contracted":
                routes = [profile(name, epsilon) for name in _FOR_EVERY_ADVERSARY]
                ends = smallest(route for route in routes if route is not None).largest()
                penalty = _penalty_of_ends(ends)
                return found.profile(self._quilts.stretch_leakages(found.lengths, epsilon, penalty, True))
            return None

        return profile

    def _sample_given(self, known: Callable[[], Mapping[int, int]], rng: np.random.Generator) -> npt.NDArray[Any]:
        return self._names[chain_states.path_given(self._initial, self._transition, known(), self.n, rng)]

    # Variance inflation ------------------------------------------------------------------------------------

    def _inflation(self, method: str) -> float:
        if method == "components" or self.n == 1:
            return float(self.n)
        if method == "spectral":
            if not self._starts_stationary:
                reason = "the chain does not start in its stationary law"
                raise RouteUnavailable(method, reason, ("best", "dobrushin", "coupling"))
            law, error = self._irreducible()
            return concentration.spectral_inflation(self._transition, law, error)
        if method == "influences":
            return self._influence_inflation()
        transition = self._transition[np.ix_(self._possible, self._possible)]
        if method == "coupling":
            return concentration.coupling_inflation(transition, self.n)
        coefficient = concentration.dobrushin_coefficient(transition, (len(transition) + 2) * UNIT)
        return concentration.dobrushin_inflation(coefficient, self.n)

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Return stretches, each with as many records after it as remember its past."""
        transition = self._transition[np.ix_(self._possible, self._possible)]
        distances = concentration.forgetting_far(transition, self.n, missed / self.n)
        return RevealedBlocks.of_forgetting(self.n, distances, missed)

    def _influences(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray:
        passed = self._contractions if known is None else np.where(known[:-1] | known[1:], 0.0, self._contractions)
        return chain_influences(passed, weights)

    def _content(self) -> Mapping[str, Any]:
        start = np.zeros(0) if self._starts_stationary else self._initial
        names = [f"{type(name).__name__} {name!r}" for name in self._states]
        return {"n": self.n, "transition": self._transition, "initial": start, "states": names}


def _penalty_of_ends(ends: float) -> Penalty:
    """Return the penalty of quilts of which each end leaks at most `ends`."""
    return lambda diameter, both: phi(diameter, up(2 * ends, 1) if both else ends)


def _twice(influence: FloatArray, both: bool) -> FloatArray:
    return 2 * influence


def _settled_law(transition: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the stationary law of an irreducible chain, or None where floats do not represent it accurately."""
    law = stationary_law(transition)
    return law if law[0].min() >= LEAST else None
