"""Markov chains of records."""

from __future__ import annotations

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
    """Model records that follow each other as a Markov chain with a fixed transition matrix.

    Use it for a sequence of records with finitely many states, such as daily weather or the events of one user. Given
    its neighbours in the sequence, a record is independent of all others. Use `MarkovChain.fit` to estimate the
    transition matrix, `HiddenMarkov` if the states are not observed, and `Panel` for many independent sequences. The
    model bounds the design effect of a mean (`variance_inflation`) and the privacy loss about a record through the
    records that depend on it (`leakage`).

    Parameters
    ----------
    transition : array_like of shape (k, k)
        Transition matrix. Row x holds the probabilities of the next state after state x. Rows are normalized. Their
        sums may differ from 1 by 1e-9, or in single precision by k times 1.2e-7.
    n : int
        Number of records.
    initial : array_like of shape (k,), default None
        Probabilities of the states of the first record. If None, the stationary distribution, which requires an
        irreducible and aperiodic chain. A distribution within a relative 1e-12 of the stationary one in every state
        counts as stationary.
    states : sequence of hashable, default None
        Names of the states. If None, the row and column names of a data frame, otherwise 0, 1, ..., k - 1.

    Raises
    ------
    ArgumentError
        If a row does not sum to one, an entry is negative, missing, or positive but below 2.3e-308, the shape is wrong,
        `n` is below one, names repeat, or `initial` is None and no stationary distribution with probabilities of at
        least 1e-280 exists.

    Notes
    -----
    Zero probabilities are allowed. States that a record cannot take are ignored at that record. `graphs/PROOFS.md` has
    the proofs of all bounds.

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
    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "spectral", "dobrushin", "coupling", "influences")
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
        """Estimate a Markov chain from one or more observed sequences.

        Parameters
        ----------
        *sequences : iterables of hashable
            Observed states, in order. Transitions are counted inside each sequence.
        n : int, default None
            Number of records of the model. If None, the length of the sequence. Required with several sequences.
        smoothing : float, default 0.0
            Nonnegative number that is added to the count of every pair of observed states.
        initial : array_like, default None
            Probabilities of the first record's states, in the order of `states`. If None, the stationary distribution.

        Returns
        -------
        MarkovChain
            Fitted chain. Its `states` are sorted, or in order of first appearance if they cannot be sorted.

        Raises
        ------
        ArgumentError
            If there are no transitions, a label is missing, a state is never left (add smoothing), or the fitted matrix
            is not accepted by `MarkovChain`.

        Notes
        -----
        The fitted model is an estimate. Its guarantees hold for the fitted distribution, not for the unknown one.
        `graphs.estimation.budget_interval` estimates how much they vary.

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
        """Build the chain of a weighted graph of states, or of a path graph of records.

        Parameters
        ----------
        graph : networkx.DiGraph or Graph
            With `n`: a graph of states, in which a step follows an edge with probability proportional to its weight.
            With `transition`: an undirected path whose nodes are the records.
        n : int, default None
            Number of records. Required unless `transition` is passed.
        transition : array_like of shape (k, k), default None
            Transition matrix of the records of a path graph.
        weight : str, default "weight"
            Edge attribute with the weight. Edges without it have weight 1.
        initial : array_like of shape (k,), default None
            Probabilities of the first record's states. If None, the stationary distribution.

        Returns
        -------
        MarkovChain
            Chain of n records.

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
        """Transition matrix with normalized rows, read-only array of shape (k, k)."""
        return self._transition

    @property
    def initial(self) -> FloatArray:
        """Probabilities of the first record's states, read-only array of shape (k,)."""
        return self._initial

    @property
    def states(self) -> tuple[Hashable, ...]:
        """Names of the k states, in the order of the rows of `transition`."""
        return self._states

    @property
    def stationary(self) -> FloatArray:
        """Stationary distribution of the chain, array of shape (k,).

        Raises
        ------
        ArgumentError
            If the chain is reducible and may have several stationary distributions, or a probability is below 1e-280.
        """
        return self._irreducible()[0].copy()

    @property
    def is_stationary(self) -> bool:
        """Whether the first record has the stationary distribution, so that all records do."""
        return self._starts_stationary

    @cached_property
    def is_reversible(self) -> bool:
        """Whether the chain satisfies detailed balance with its stationary distribution, within a relative 1e-9."""
        return self._stationary is not None and is_reversible(self._transition, self._stationary[0])

    @cached_property
    def spectral_gap(self) -> float:
        """Spectral gap: 1 minus the largest modulus of the eigenvalues other than 1 [Z17, Lemma 4].

        Raises
        ------
        ArgumentError
            If the chain is reducible, periodic or not reversible, or has no `stationary` distribution.
        """
        law = self._irreducible()[0]
        if self._period != 1 or not self.is_reversible:
            seen = f"a chain with period {self._period}" if self._period != 1 else "a chain that is not reversible"
            raise ArgumentError("transition", seen, "an aperiodic, reversible chain for a spectral gap")
        return spectral_gap(self._transition, law)

    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw one synthetic sequence of n records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            State of each record, by name, or by index if the states have no names.

        Examples
        --------
        >>> model = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=8)
        >>> model.sample(np.random.default_rng(1)).shape
        (8,)
        """
        return self._names[chain_states.drawn_path(self._initial, self._transition, self.n, rng)]

    def joint(self) -> FloatArray:
        """Return the joint probability of each possible data set: an array with one axis of length k per record.

        Raises
        ------
        ArgumentError
            If there are more than a million joint states, or a possible one has a probability below 1e-280.

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
        """Describe the model in one line of text."""
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
        return chain_states.array_of_names(self._states)

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
        """List Markov quilts of a record with at most 20 nearby records, in the format of `DependenceModel.quilts`."""
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
        """Bound how many records change with each stretch of the chain, see `DependenceModel.revealed_blocks`."""
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
