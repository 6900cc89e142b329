"""The interface of every dependence model, and the model that remains once some records are known."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.fitted_limits import FittedLimits
from graphs.inflation.influences import spectral_radius
from graphs.known_records import BoolArray, CutNetwork, Network, coded, named
from graphs.leakage.profile import Profile
from graphs.markov_structure import MarkovStructure, Parted
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up, upward_sum
from graphs.route_choice import Adversary, RoutedModel
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["Adversary", "DependenceModel", "Given"]

#: Effective records from influences count only if n over the variance inflation exceeds them at most this many times.
LOST = 2.0


class DependenceModel(Parted, RoutedModel, MarkovStructure):
    """Base class of models of the dependence between n records.

    Means of dependent records vary more than means of independent ones, and a mechanism that is differentially private
    in each single record (a row of the data) can leak more about a record through the records that depend on it. Every
    model bounds both effects. `variance_inflation` is the design effect of a mean, and `half_width` the resulting
    half-width of a confidence interval. `leakage` is the privacy loss about each record at a given privacy budget, and
    `budget` the largest budget for a target leakage. `sample` draws synthetic data. Use a subclass such as `Groups`,
    `MarkovChain` or `GaussianField`.

    Parameters
    ----------
    n : int
        Number of records, at least one.

    Notes
    -----
    *Leakage.* A mechanism with density f(y | x) is eps'_j-DP in record j if f(y | x) <= exp(eps'_j) f(y | x~) for all
    data sets that differ in record j alone. It leaks at most alpha_i about record i if, for every set S of other
    records that an adversary may know, P[y | x_i, x_S] <= exp(alpha_i) P[y | x_i', x_S] (Bayesian differential
    privacy, [Z17]_). The *informed* adversary may know any S, the *uninformed* one knows S = {} only.

    *Variance inflation.* It is a number Lambda with ``ln E exp(u (q(X) - E q(X))) <= u^2 Lambda / (8 n)`` for every
    real u and every fixed mean q of per-record values in [0, 1]. So ``P(q(X) - E q(X) >= t)`` is at most
    ``exp(-2 n t^2 / Lambda)``, and the same below. Independent records have Lambda = 1.

    References
    ----------
    .. [Z17] J. Zhao, "Adaptive statistical learning with Bayesian differential privacy", WPES 2017.

    Examples
    --------
    >>> from graphs import Groups
    >>> model = Groups(["ann", "ann", "bob"])
    >>> isinstance(model, DependenceModel), model.n, model.leakage(0.1).round(9).tolist()
    (True, 3, [0.2, 0.2, 0.1])
    """

    _limits: FittedLimits | None = None
    #: Condition of the estimand beyond the known records, in words.
    condition_beyond: str = ""
    _assumed: bool = False

    @abstractmethod
    def _content(self) -> Mapping[str, Any]:
        """Return all that determines the model: numbers, texts and arrays, by name."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw one synthetic data set of n records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            State of each record.
        """

    @abstractmethod
    def describe(self) -> str:
        """Describe the model in one line of text."""

    def joint(self) -> FloatArray:
        """Compute the table of joint probabilities of all records, for small models that state their distribution.

        Returns
        -------
        ndarray
            Probability of each data set: one axis per record, one entry per state of that record.

        Raises
        ------
        ArgumentError
            If the model does not state a distribution, or has too many joint states.
        """
        seen = f"{self.describe()}, whose law is not stated"
        raise ArgumentError("model", seen, "a model with a stated law, or a table of joint probabilities")

    def effective_records(self) -> float | None:
        """Compute the effective sample size for bounds by relative entropy (Chernoff bounds).

        These bounds can be sharper than those of `variance_inflation` for means near 0 or 1, such as small error rates.

        Returns
        -------
        float or None
            Effective sample size N, at most n. None if no such number is known, or only one far below ``n /
            variance_inflation()``.

        Notes
        -----
        For every fixed mean q of per-record values in [0, 1] with expectation p and every real u, ``ln E exp(u q(X)) <=
        N ln(1 - p + p e^(u/N))``. So ``P(q >= p and N kl(q, p) >= a) <= e^-a``, and the same below. N is n over the
        size of the largest group (independent groups), the number of colours (colourings), or the spectral radius of
        the influences (chains). Proofs: ``graphs/PROOFS.md``, effective records and influences.

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups([0, 0, 1]).effective_records()
        1.5
        """
        sizes, radius = self.independent_groups(), spectral_radius(self._influences, self.n, self._foremost())
        found = [] if sizes is None else [self.n / int(sizes.max())]
        if radius is not None:
            # a quotient and a product, rounded down; one record is always a valid effective sample size
            records = max(self.n / radius * (1 - 4 * UNIT), 1.0)
            if found or LOST * records >= self.n / self.variance_inflation():
                found.append(records)
        return max(found, default=None)

    @property
    def fitted_limits(self) -> FittedLimits | None:
        """Confidence limits behind a fitted model and the family of distributions for which they are exact, else None.

        Examples
        --------
        >>> from graphs import Independent
        >>> Independent(3).fitted_limits is None, Independent(3).fit_failure
        (True, 0.0)
        """
        return None if self._assumed else self._fitted_with()

    @property
    def fit_failure(self) -> float:
        """Probability that the confidence limits behind a fitted model fail, 0 for a declared model.

        Guarantees for the unknown distribution add this probability to their own error probability.
        """
        limits = self.fitted_limits
        return 0.0 if limits is None else limits.failure

    def fitted(self, limits: FittedLimits) -> Self:
        """Return a copy of the model that is marked as fitted at confidence limits.

        Parameters
        ----------
        limits : FittedLimits
            Origin of the limits. Every number of this model has to hold for all distributions of the family within
            them.

        Returns
        -------
        DependenceModel
            Copy whose `fit_failure` is that of the limits.

        Examples
        --------
        >>> from graphs import GaussianField
        >>> from graphs.fitted_limits import FittedLimits
        >>> GaussianField.ar(0.7, 100).fitted(FittedLimits("series", 500, 0.01)).fit_failure
        0.01
        """
        copied = copy.copy(self)
        copied._limits = limits
        return copied

    def within_limits(self) -> Self:
        """Return a copy that assumes its fitted limits to hold: `fit_failure` is 0, the caller accounts for it.

        Examples
        --------
        >>> from graphs import GaussianField
        >>> from graphs.fitted_limits import FittedLimits
        >>> GaussianField.ar(0.7, 100).fitted(FittedLimits("series", 500, 0.01)).within_limits().fit_failure
        0.0
        """
        if self.fitted_limits is None:
            return self
        copied = copy.copy(self)
        copied._assumed = True
        return copied

    def _fitted_with(self) -> FittedLimits | None:
        """Return the limits of the model, or of the model inside it."""
        return self._limits

    def given(self, known: Iterable[Hashable] | Mapping[Any, Any]) -> Given:
        """Condition the model on records that the analyst already knows.

        Use it when training records or published values are connected with the holdout. Guarantees then are about the
        remaining records, conditional on the known ones.

        Parameters
        ----------
        known : iterable of records, or mapping from record to state
            Known records, by name if the model names its records (`records`) and by number otherwise. Only `sample` and
            `joint` of the result need their states.

        Returns
        -------
        Given
            Model of the remaining records. Its `n` counts them, and its `condition` states the condition of the
            guarantees.

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups([0, 0, 1]).given([0]).leakage(0.1)
        array([0.1, 0.1])
        """
        return Given(self, known)

    def fingerprint(self) -> str:
        """Compute a hash of the model's content that is the same in every process and on every platform.

        Returns
        -------
        str
            SHA-256 hash, 64 hexadecimal digits.

        Examples
        --------
        >>> from graphs import Independent
        >>> Independent(3).fingerprint() == Independent(3).fingerprint() != Independent(4).fingerprint()
        True
        """
        digest = hashlib.sha256(type(self).__name__.encode())
        for name, value in sorted(self._content().items()):
            digest.update(f"\0{name}\0".encode())
            if isinstance(value, np.ndarray):
                kind = "<f8" if value.dtype.kind == "f" else "<i8"
                digest.update(f"{kind}{value.shape}".encode() + np.ascontiguousarray(value, dtype=kind).tobytes())
            else:
                digest.update(json.dumps(value).encode())
        limits = self.fitted_limits
        if limits is not None:
            digest.update(f"\0fitted\0{json.dumps([limits.family, limits.count, limits.failure])}".encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def _influences(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray | None:
        """Return weighted row sums of influences that hold under every field, or None where none are known.

        J_ij bounds the total variation distance between the laws of record j given two values of record i, under every
        field on single records. The result is sum_j J_ij w_j, rounded up. Known records have no rows and the weight 0.
        """
        return None

    def _foremost(self) -> FloatArray | None:
        """Return a positive vector close to the first eigenvector of the influences, where it is cheap."""
        return None

    def _influence_inflation(self, known: BoolArray | None = None) -> float:
        """Return the inflation by the influences among the unknown records."""
        left: FloatArray = np.ones(self.n) if known is None else (~known).astype(np.float64)
        rows = self._influences(left, known)
        if rows is None:
            reason = f"nothing is known about influences under fields in this {type(self).__name__}"
            raise RouteUnavailable("influences", reason, ("best",))
        return upward_sum(rows[left > 0]) / float(left.sum()) * (1 + 4 * UNIT)

    # Known records ------------------------------------------------------------------------------------------

    #: Routes to a variance inflation once records are known.
    _inflations_given: ClassVar[tuple[str, ...]] = ("components", "interdependence")

    def _inflation_given(self, method: str, known: BoolArray) -> float | None:
        """Return the inflation of the remaining records by a route of this class, or None where it has none."""
        return None

    def _network(self) -> Network | None:
        """Return the network of the model, if it has one."""
        return None

    def _remainder(self, known: BoolArray) -> DependenceModel | None:
        """Return a model of the other records, in their order, that holds for their law given the known ones."""
        return None

    def _parts_given(self, known: BoolArray) -> IntArray | None:
        """Return a number for each record; records with different numbers are independent given the known ones."""
        return None

    def _by_parts_given(self, known: BoolArray, bounded_differences: bool) -> tuple[float, str]:
        """Return the inflation of the remaining records with the best route in each part, and the routes in words."""
        raise RouteUnavailable("parts", f"the {type(self).__name__} has no parts", ("best",))

    def _effective_given(self, known: BoolArray) -> float | None:
        """Return the effective sample size of the remaining records, where it is better than that by influences."""
        return None

    def _stretches(self, known: BoolArray) -> Callable[[str, float], Profile | None] | None:
        """Return a function from a route and one budget for all unknown records to their profile, or None."""
        return None

    def _profile_given(
        self, method: str, epsilon: float | FloatArray, known: BoolArray, cut: CutNetwork | None
    ) -> Profile:
        """Return leakages by a route that holds for any known records, without which a network is `cut`."""
        if method in ("messages", "self-avoiding") and cut is not None:
            propagation = cut.propagation if method == "messages" else cut.remembering
            try:
                return Profile.of(cut.leakages(epsilon, propagation))
            except RouteUnavailable:
                pass  # no loops remain to remember; the bound for the whole holds for any known records
        return self._profile(method, epsilon, "informed")

    def _sample_given(
        self, known: Callable[[], Mapping[int, int]], rng: np.random.Generator
    ) -> npt.NDArray[Any] | None:
        """Draw all records given the codes `known()`, or return None where only a table of joint probabilities can."""
        return None


class Given(DependenceModel):
    """Model the remaining records when the analyst already knows some, as returned by `DependenceModel.given`.

    Parameters
    ----------
    model : DependenceModel
        Dependence of all records, the known ones included.
    known : iterable of records, or mapping from record to state
        Known records, for example training records connected with the holdout, by name if the model names its records
        (`model.records`) and by number otherwise. Only `sample` and `joint` need their states.

    Raises
    ------
    ArgumentError
        If a known record does not exist or occurs twice, no record remains, or states are passed for some records only.

    Notes
    -----
    Every adversary knows the known records too. All guarantees are about E[q(X) | known], not about E q(X).
    A leakage bound for an informed adversary, who may know any records, still holds, and known records have no privacy
    budget. The bound is smaller where known records separate a chain or a group into parts. With
    ``adversary="uninformed"`` the adversary knows the known records only. Bounds for an adversary without knowledge are
    void then, so the informed bound applies, except where the remaining records form a model of the same kind (windows,
    dependency graphs, crossed effects).

    The variance inflation is that of the conditional distribution. It comes from the remaining independent parts, chain
    kernels, influences and interdependence (`graphs/PROOFS.md`, evidence).

    Examples
    --------
    >>> from graphs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=5)
    >>> rest = chain.given([2])
    >>> rest.leakage(0.1).round(6)
    array([0.171421, 0.171421, 0.171421, 0.171421])
    >>> round(rest.variance_inflation(), 9), round(rest.variance_inflation("components"), 9)
    (1.714285714, 2.0)
    >>> rest.condition
    'conditional on 1 known record of 5 (2): about E[q(X) | known], not about E q(X)'
    """

    methods: ClassVar[tuple[str, ...]] = ("group",)

    def __init__(self, model: DependenceModel, known: Iterable[Hashable] | Mapping[Any, Any]) -> None:
        if not isinstance(model, DependenceModel):
            raise ArgumentError("model", repr(model), "a dependence model")
        places, states = named(known, model._record_labels(), model.n)
        values = dict(zip(places, states, strict=bool(states)))
        records: IntArray = np.array(sorted(places), dtype=np.int64)
        if isinstance(model, Given):
            inner: Given = model
            if values or inner._values:
                values = {int(inner._left[record]): value for record, value in values.items()} | inner._values
            records = np.union1d(inner._left[records], inner._known)
            model = inner._model
        if values and len(values) != len(records):
            seen = f"states of {len(values)} of {len(records)} records"
            raise ArgumentError("known", seen, "a mapping with states of all records or of none")
        if len(records) == model.n:
            raise ArgumentError("known", f"all {model.n} records", "fewer than all records")
        super().__init__(model.n - len(records))
        self._model: DependenceModel = model
        self._known: IntArray = records
        self._values: dict[int, Any] = {int(k): values[k] for k in values}
        self._mask = np.zeros(model.n, dtype=np.bool_)
        self._mask[records] = True
        self._left: IntArray = np.flatnonzero(~self._mask)
        parts = model._parts_given(self._mask)
        if parts is None and self._cut is not None:
            parts = self._cut.parts
        self._parts = None if parts is None else np.unique(parts[self._left], return_inverse=True)[1]
        self._rest = model._remainder(self._mask) if len(records) else model
        self.methods, self.condition_beyond = model.methods, model.condition_beyond  # type: ignore[misc]
        self.inflation_methods = model._inflations_given  # type: ignore[misc]
        if self._rest is not None:
            self.methods = self._rest.methods  # type: ignore[misc]
            self.inflation_methods = self._rest.inflation_methods  # type: ignore[misc]

    @cached_property
    def _cut(self) -> CutNetwork | None:
        network = self._model._network()
        return None if network is None else network.without(self._mask)

    @cached_property
    def _of_stretches(self) -> Callable[[str, float], Profile | None] | None:
        return self._model._stretches(self._mask)

    @property
    def model(self) -> DependenceModel:
        """The model of all records, known ones included."""
        return self._model

    @property
    def known(self) -> IntArray:
        """Numbers of the known records in `model`, in increasing order."""
        return self._known.copy()

    @property
    def records(self) -> IntArray:
        """Numbers of the remaining records in `model`, in increasing order."""
        return self._left.copy()

    @property
    def condition(self) -> str:
        """The condition of the guarantees as text, with the known records that it is about."""
        labels = self._model._record_labels()
        first = self._known[:5].tolist()
        count, shown = len(self._known), ", ".join(str(k if labels is None else labels[k]) for k in first)
        which = f"{shown}{', ...' if count > 5 else ''}" if count else "none"
        seen = f"conditional on {count} known record{'s' if count != 1 else ''} of {self._model.n} ({which})"
        return f"{seen}: about E[q(X) | {self.condition_beyond or 'known'}], not about E q(X)"

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        if self._rest is not None:
            return self._rest._profile(method, epsilon, adversary)
        if isinstance(epsilon, float) and epsilon > 0 and self._of_stretches is not None:
            short = self._of_stretches(method, epsilon)
            if short is not None:
                return short
        full = np.zeros(self._model.n)
        full[self._left] = epsilon
        if not full.any():
            return Profile.constant(0.0, self.n)
        try:
            found = self._model._profile_given(method, full, self._mask, self._cut)
        except RouteUnavailable as error:
            reason = error.reason
            if adversary == "uninformed":
                reason += "; routes for an adversary who knows nothing are void once records are known"
            raise RouteUnavailable(method, reason, error.alternatives) from None
        values = found.expand()[self._left]
        if self._parts is not None:
            sums: FloatArray = np.bincount(self._parts, weights=full[self._left]).astype(np.float64)
            sizes: FloatArray = np.bincount(self._parts).astype(np.float64)
            caps = np.where(sizes == 1, sums, up(sums, float(sizes.max())))[self._parts]
            values = np.minimum(values, caps)
        return Profile.of(values)

    def _inflation(self, method: str) -> float:
        if self._rest is not None:
            return self._rest._inflation(method)
        groups = self.independent_groups()
        if method == "components" and groups is not None:
            return int(np.sum(groups**2)) / self.n * (1 + 2**-50)
        if method == "influences":
            return self._model._influence_inflation(self._mask)
        found = self._model._inflation_given(method, self._mask)
        if found is None or not math.isfinite(found):
            reason = (
                "known records change the law of the others, and the numbers of the "
                f"{type(self._model).__name__} are those of the law of all records"
            )
            raise RouteUnavailable(method, reason, ("best",))
        return found

    def _influences(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray | None:
        full = np.zeros(self._model.n)
        full[self._left] = weights
        rows = self._model._influences(full, self._mask)
        return None if rows is None else rows[self._left]

    def _foremost(self) -> FloatArray | None:
        found = self._model._foremost()
        return None if found is None else found[self._left]

    def _by_parts(self, bounded_differences: bool) -> tuple[float, str]:
        if self._rest is not None:
            return self._rest._by_parts(bounded_differences)
        return self._model._by_parts_given(self._mask, bounded_differences)

    def _independent_parts(self) -> IntArray:
        return super()._independent_parts() if self._parts is None else self._parts

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of the parts that are independent given the known records, or None for a single part."""
        if self._rest is not None:
            return self._rest.independent_groups()
        return None if self._parts is None else np.bincount(self._parts).astype(np.int64)

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Return how many of the remaining records change with each block, see `DependenceModel.revealed_blocks`."""
        return super().revealed_blocks(missed) if self._rest is None else self._rest.revealed_blocks(missed)

    def effective_records(self) -> float | None:
        """Return the effective sample size given the known records, or None if no such number is known."""
        if self._rest is not None:
            return self._rest.effective_records()
        found = self._model._effective_given(self._mask)
        return super().effective_records() if found is None else found

    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw the remaining records once, conditional on the states of the known records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            State of each remaining record.

        Raises
        ------
        ArgumentError
            If the states of the known records were not passed or are impossible, or the model is neither a Markov chain
            nor independent nor small enough for a table of joint probabilities.
        """
        drawn_all = self._model._sample_given(self._codes, rng)
        if drawn_all is not None:
            return drawn_all[self._left]
        table = self.joint()
        drawn = int(np.searchsorted(np.cumsum(table.ravel())[:-1], rng.random(), side="right"))
        return np.array(np.unravel_index(drawn, table.shape), dtype=np.int64)

    def joint(self) -> FloatArray:
        """Compute the table of joint probabilities of the remaining records, conditional on the known ones.

        Raises
        ------
        ArgumentError
            If states of known records were not passed or are impossible. States without names are codes 0, 1, ...
        """
        codes = self._codes()
        table = self._model.joint()
        for record, code in codes.items():
            if code >= table.shape[record]:
                expected = f"states below {table.shape[record]}"
                raise ArgumentError("known", f"state {code} of record {record}", expected)
        part = table[tuple(codes.get(record, slice(None)) for record in range(table.ndim))]
        if not part.sum() > 0:
            raise ArgumentError("known", "states that cannot occur together", "states of positive probability")
        law: FloatArray = part / part.sum()
        return law

    def _fitted_with(self) -> FittedLimits | None:
        return self._model.fitted_limits

    def _record_labels(self) -> tuple[Hashable, ...] | None:
        labels = self._model._record_labels()
        return None if labels is None else tuple(labels[k] for k in self._left.tolist())

    def describe(self) -> str:
        """Describe the model in one line of text."""
        return f"{self.n} records that are left of {self._model.describe()}, {self.condition}"

    def _codes(self) -> dict[int, int]:
        """Return codes of the known records' states."""
        if len(self._known) and not self._values:
            raise ArgumentError("known", "records without their states", "a mapping from records to states")
        names: Any = getattr(self._model, "states", None)
        return coded(self._values, getattr(getattr(self._model, "emission", None), "symbols", names))

    def _content(self) -> Mapping[str, Any]:
        states = [f"{type(value).__name__} {value!r}" for _, value in sorted(self._values.items())]
        return {"model": self._model.fingerprint(), "known": self._known, "values": states}
