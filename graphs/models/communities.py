"""Records that depend on unobserved states of their communities."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.known_records import BoolArray
from graphs.model import DependenceModel
from graphs.models.emission import CategoricalEmission, as_emission
from graphs.models.latent_states import LatentModel
from graphs.models.law_free import Groups, Independent
from graphs.models.markov_chain import MOST_STATES
from graphs.models.network_model import NetworkModel
from graphs.numerics.arguments import FloatArray, IntArray, check_probabilities
from graphs.numerics.rounding import up
from graphs.structure.labelled_values import in_order

__all__ = ["Communities"]


class Communities(LatentModel):
    """Model records that depend on each other through the unobserved states of their communities.

    Use it for pupils of schools, patients of hospitals or members of a network's clusters, if the records of a
    community depend on each other only through a common state. With a table of emissions, which limits how much a
    record reveals about the state, leakages can be smaller than those of `Groups`.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    assignment : iterable of hashable of length n
        Community of each record.
    between : DependenceModel, default None
        Dependence between the states of the communities, a model with one record per community. If None, the states are
        independent.
    emission : array_like of shape (k, v), CategoricalEmission or GaussianEmission, default None
        Distribution of a record given the state of its community. An array holds the probabilities of v values, one row
        per state. If None, records may be of any type, and the bounds hold for every distribution given the state.
    prior : array_like of shape (k,), default None
        Probabilities of the state of a community if the states are independent. If None, uniform.
    communities : sequence of hashable, default None
        Names of the communities in the order of the records of `between`, including communities without records. If
        None, in order of first appearance.

    Raises
    ------
    ArgumentError
        If `assignment` is a mapping, a set or a table, a label is missing, `communities` lacks a community, the number
        of communities differs from that of `between`, `prior` is passed together with `between`, or its length is not
        the number of states of the emission.

    Notes
    -----
    Without an emission each record may reveal the state of its community, and the bounds are still never worse than
    those of `Groups`. With a table of emissions, let D be its diameter, the largest range of the log-likelihood ratio
    of two states (attribute `diameter` of the emission). Other records of the community, however many, then reveal at
    most D about a record. See `graphs/PROOFS.md`, section on latent states.

    Examples
    --------
    >>> mild = Communities(["a", "a", "a", "b"], emission=[[0.6, 0.4], [0.4, 0.6]])
    >>> mild.leakage(0.1).round(6)
    array([0.107998, 0.107998, 0.107998, 0.1     ])
    >>> Communities(["a", "a", "a", "b"]).leakage(0.1).round(6)
    array([0.3, 0.3, 0.3, 0.1])
    """

    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "emission", "influences")
    _inflations_given: ClassVar[tuple[str, ...]] = ("components", "emission", "influences")

    def __init__(
        self,
        assignment: Iterable[Hashable],
        between: DependenceModel | None = None,
        emission: Any = None,
        prior: Any = None,
        *,
        communities: Iterable[Hashable] | None = None,
    ) -> None:
        labels = in_order("assignment", assignment, "the community of each record")
        index = Groups(labels)._index
        names = tuple(dict.fromkeys(labels))
        if communities is not None:
            names = tuple(in_order("communities", communities, "the names of all communities"))
            index = _numbered(labels, names)
        if between is None:
            between = Independent(len(names))
        elif prior is not None:
            raise ArgumentError("prior", "a prior", "None beside between=", "`between` has a law of its own.")
        if between.n != len(names):
            seen = f"a model of {between.n} states for {len(names)} communities"
            expected = "a model with one state for each community"
            raise ArgumentError("between", seen, expected, "Name empty communities in `communities`.")
        law = as_emission(emission, None)
        self._prior = None
        if isinstance(between, Independent) and law.states is not None:
            self._prior = np.full(law.states, 1.0 / law.states)
        if prior is not None:
            self._prior = check_probabilities("prior", prior, 1)
            if law.states not in (None, len(self._prior)):
                expected = f"{law.states} probabilities, one for each state"
                raise ArgumentError("prior", f"{len(self._prior)} of them", expected)
        self._names = names
        super().__init__(between, law, index)

    @property
    def communities(self) -> tuple[Hashable, ...]:
        """Names of the communities, in the order of their states."""
        return self._names

    @property
    def sizes(self) -> IntArray:
        """Number of records of each community."""
        return self._sizes.copy()

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of int, or None
            Number of records of each community if the states of the communities are independent. None otherwise.
        """
        alone = isinstance(self._of_states, Independent)
        return self._sizes[self._sizes > 0] if alone else None

    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw one synthetic data set of n records: first the states of the communities, then the records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record, drawn from the distribution of its community's state. Without an emission, the state
            itself, which is the strongest dependence that the model allows.
        """
        assert self._assignment is not None
        if self._prior is not None:
            codes = rng.choice(len(self._prior), size=self._of_states.n, p=self._prior)
        else:
            drawn = self._of_states.sample(rng)
            if self._emission.states is None:
                return drawn[self._assignment]
            codes = self._codes(drawn)
        return self._emission.sample(codes[self._assignment].astype(np.int64), rng)

    def joint(self) -> FloatArray:
        """Compute the table of joint probabilities of all records, for small models.

        Returns
        -------
        ndarray
            Probability of each data set: one axis per record, one entry per value.

        Raises
        ------
        ArgumentError
            If the emission is not a table, the distribution of the states is not stated, or there are more than a
            million entries.
        """
        if not isinstance(self._emission, CategoricalEmission):
            expected = "a model whose emission is a table of probabilities"
            raise ArgumentError("model", self._emission.describe(), expected)
        assert self._assignment is not None
        matrix = self._emission.matrix
        states = self._joint_of_states()
        if states.size * matrix.shape[1] ** self.n > MOST_STATES:
            seen = f"one with {matrix.shape[1]}^{self.n} joint values"
            raise ArgumentError("model", seen, f"a model with at most {MOST_STATES} joint values")
        if states.ndim != self._of_states.n or set(states.shape) != {len(matrix)}:
            seen = f"states with a table of shape {states.shape}"
            raise ArgumentError("between", seen, f"a model with {len(matrix)} states, as in the emission")
        table = states
        for community in self._assignment:
            weights = matrix.reshape([len(matrix) if axis == community else 1 for axis in range(states.ndim)] + [-1])
            table = table[..., None] * weights.reshape(
                weights.shape[: states.ndim] + (1,) * (table.ndim - states.ndim) + (matrix.shape[1],)
            )
        laws: FloatArray = table.sum(axis=tuple(range(states.ndim)))
        return laws

    def describe(self) -> str:
        """Describe the model in one line of text."""
        alone = isinstance(self._of_states, Independent)
        states = "independent states" if alone else f"states that form a {self._of_states.describe()}"
        return f"{self.n} {self._emission.describe()} in {len(self._names)} communities with {states}"

    def _joint_of_states(self) -> FloatArray:
        if self._prior is None:
            return self._of_states.joint()
        table = np.ones(())
        for _ in range(self._of_states.n):
            table = table[..., None] * self._prior
        return table

    def _codes(self, drawn: npt.NDArray[Any]) -> IntArray:
        """Return the rows of the emission for drawn states: by their number, or the order of their names."""
        names = list(getattr(self._of_states, "states", range(self._emission.states or 0)))
        number = {name: k for k, name in enumerate(names)}
        if any(value not in number for value in drawn.tolist()) or len(names) != self._emission.states:
            seen = f"states {sorted(set(drawn.tolist()))!r}"
            raise ArgumentError("between", seen, f"a model with {self._emission.states} states, as in the emission")
        return np.array([number[value] for value in drawn.tolist()], dtype=np.int64)

    def _inflation(self, method: str) -> float:
        spread = self._emission.spread
        alone = isinstance(self._of_states, Independent)
        if method == "components":
            return int(np.sum(self._sizes**2)) / self.n * (1 + 2**-51) if alone else float(self.n)
        if method == "influences":
            return self._influence_inflation()
        if spread == 0:
            return 1.0
        if alone:
            return up(1 + spread**2 * int(np.sum(self._sizes**2)) / self.n, 6)
        if isinstance(self._of_states, NetworkModel):
            return self._moved(self._of_states, self._sizes)
        largest, count = int(self._sizes.max()), self._of_states.n
        try:
            of_states = self._of_states.variance_inflation(bounded_differences=True)
        except RouteUnavailable as error:
            raise RouteUnavailable(method, error.reason, ("best", "components")) from None
        return up(1 + spread**2 * count * largest**2 * of_states / self.n, 8)

    def _inflation_given(self, method: str, known: BoolArray) -> float | None:
        if method != "emission" or not isinstance(self._of_states, Independent | NetworkModel):
            return None
        assert self._assignment is not None
        sizes, spread = np.bincount(self._assignment[~known], minlength=self._of_states.n), self._emission.spread
        if spread and isinstance(self._of_states, NetworkModel):
            return self._moved(self._of_states, sizes)
        return up(1 + spread**2 * int(np.sum(sizes**2)) / int(sizes.sum()), 6) if spread else 1.0

    def _moved(self, states: NetworkModel, sizes: IntArray) -> float:
        """Return 1 + s^2 times the sum of squares of the states, each weighted by its number of records."""
        squares = states.squares(sizes.astype(np.float64))
        return up(1 + self._emission.spread**2 * squares / int(sizes.sum()), 8)

    def _parts_given(self, known: BoolArray) -> IntArray | None:
        return self._assignment if isinstance(self._of_states, Independent) else None

    def _content(self) -> dict[str, Any]:
        prior = np.zeros(0) if self._prior is None else self._prior
        return {**super()._content(), "prior": prior}


def _numbered(labels: list[Any], names: tuple[Hashable, ...]) -> IntArray:
    number = {name: k for k, name in enumerate(names)}
    if len(number) != len(names):
        seen = f"{len(names)} names, {len(number)} of them different"
        raise ArgumentError("communities", seen, "different names")
    for record, label in enumerate(labels):
        if label not in number:
            seen = f"names without {label!r}, the community of record {record}"
            raise ArgumentError("communities", seen, "the names of all communities")
    return np.array([number[label] for label in labels], dtype=np.int64)
