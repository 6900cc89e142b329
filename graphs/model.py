"""The interface that every dependence model has."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.leakage.largest_budget import largest_below
from graphs.leakage.profile import Profile, smallest
from graphs.numerics.arguments import FloatArray, IntArray, check_count, check_epsilon, check_target
from graphs.routes import INFLATIONS, ROUTES
from graphs.structure.labelled_values import by_label, has_labels, refuse_unordered

if TYPE_CHECKING:
    import pandas as pd

    from graphs.models.given import Given

__all__ = ["Adversary", "DependenceModel"]

Adversary: TypeAlias = Literal["informed", "uninformed"]


class DependenceModel(ABC):
    """How n records depend on one another.

    A mechanism that is differentially private in each single record may still tell much about a record through
    the records that depend on it. A model answers four questions: how much a given budget leaks about each record
    (`leakage`), which budget keeps that below a target (`budget`), how much wider the fluctuations of a mean are
    than for independent records (`variance_inflation`), and what such data look like (`sample`).

    Parameters
    ----------
    n : int
        Number of records, at least one.

    Notes
    -----
    *Leakage.* A mechanism with density f(y | x) is eps'_j-DP in record j when f(y | x) <= exp(eps'_j) f(y | x~) for
    data sets that differ in record j alone. It leaks at most alpha_i about record i when, for every set S of other
    records that an adversary may know, P[y | x_i, x_S] <= exp(alpha_i) P[y | x_i', x_S] (Bayesian differential
    privacy, [Z17]_). The *informed* adversary may know any S, the *uninformed* one knows S = {} only.

    *Variance inflation.* The number Lambda such that ``P(|q(X) - E q(X)| >= t) <= 2 exp(-2 n t^2 / Lambda)`` for every
    fixed mean q of per-record values in [0, 1]. Independent records have 1.

    A model class lists its routes in `methods` and `inflation_methods` and implements `_profile`, `_inflation`,
    `_content`, `sample` and `describe`; checks, the choice of the best route, and the search for a budget are here.

    References
    ----------
    .. [Z17] J. Zhao, "Adaptive statistical learning with Bayesian differential privacy", WPES 2017.
    """

    #: Routes to a leakage that this class knows, see `graphs.routes.ROUTES`.
    methods: ClassVar[tuple[str, ...]] = ("group",)

    #: Routes to a variance inflation that this class knows, see `graphs.routes.INFLATIONS`.
    inflation_methods: ClassVar[tuple[str, ...]] = ("components",)

    def __init__(self, n: int) -> None:
        self._n = check_count("n", n)

    @property
    def n(self) -> int:
        """Number of records."""
        return self._n

    # What a model class implements -------------------------------------------------------------------------

    @abstractmethod
    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        """Return the leakages by one of `methods`, rounded up; RouteUnavailable when it does not apply.

        `epsilon` is checked: a float when it is the same for all records, else an array of shape (n,).
        """

    @abstractmethod
    def _inflation(self, method: str) -> float:
        """Return the variance inflation by one of `inflation_methods`, rounded up, possibly above n."""

    @abstractmethod
    def _content(self) -> Mapping[str, Any]:
        """Return all that determines the model: numbers, texts and arrays, by name."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw the states of all records once.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness, for reproducibility.

        Returns
        -------
        ndarray of shape (n,)
        """

    @abstractmethod
    def describe(self) -> str:
        """Return one line of words about the model."""

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of independent groups of records, if the model consists of such groups.

        Returns
        -------
        ndarray of int, or None
            Sizes that add up to n (arbitrary dependence inside a group, none across); None for other models.
        """
        return None

    def joint(self) -> FloatArray:
        """Return the table of joint probabilities, for small models whose law is fully stated.

        Returns
        -------
        ndarray
            One axis per record, one entry per state.

        Raises
        ------
        ArgumentError
            When the model does not state a law, or has too many joint states.
        """
        seen = f"{self.describe()}, whose law is not stated"
        raise ArgumentError("model", seen, "a model with a law (a Markov chain), or a table of joint probabilities")

    # What a caller uses ------------------------------------------------------------------------------------

    def leakage(self, epsilon: Any, method: str = "best", adversary: Adversary = "informed") -> FloatArray:
        """Return what a mechanism tells about each record.

        Parameters
        ----------
        epsilon : float or array of shape (n,)
            Differential privacy of the mechanism with respect to each single record, nats; a mapping or a Series is
            aligned with the names of the records, where they have names.
        method : str
            "best" (the smallest of all sound routes, record by record) or one of `methods`. Routes that end in
            "-published" reproduce the literature, for comparison.
        adversary : {"informed", "uninformed"}
            Whether the adversary may know any other records, or the model only.

        Returns
        -------
        ndarray of shape (n,)
            Upper bounds alpha_i on the leakage in nats, rounding included; infinite where a route has no bound.

        Raises
        ------
        ArgumentError
            An argument that cannot be used.
        RouteUnavailable
            The route does not apply to this model; the error names those that do.

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups(["ann", "ann", "bob"]).leakage(0.1).round(6)
        array([0.2, 0.2, 0.1])
        """
        return self._leakages(self._budgets(epsilon), method, adversary).expand()

    def budget(
        self,
        epsilon: float,
        method: str = "best",
        adversary: Adversary = "informed",
        reduce: Literal["max", "mean"] = "max",
    ) -> float:
        """Return the largest privacy budget whose leakage stays within a target.

        Parameters
        ----------
        epsilon : float
            Target for the leakage, nats, positive.
        method, adversary
            As in `leakage`.
        reduce : {"max", "mean"}
            Whether the largest or the mean leakage over the records has to stay within the target.

        Returns
        -------
        float
            eps', rounded down: `leakage` at it is within the target, rounding included.

        Raises
        ------
        ArgumentError
            An argument that cannot be used.
        RouteUnavailable
            The route does not apply, or leaves no positive budget.

        Notes
        -----
        Leakage does not decrease with the budget, so the budget is found by a bracketing search that only ever
        returns a point at which the leakage was evaluated and found small enough. It is never above the target,
        since every bound on the leakage is at least eps'.

        Examples
        --------
        >>> from graphs import Groups
        >>> round(Groups([0, 0, 1]).budget(0.5), 6)
        0.25
        """
        target = check_target(epsilon)
        if reduce not in ("max", "mean"):
            raise ArgumentError("reduce", repr(reduce), "'max' or 'mean'")

        def leaked(candidate: float) -> float:
            profile = self._leakages(candidate, method, adversary)
            return profile.largest() if reduce == "max" else profile.mean()

        found = largest_below(leaked, target, target, most=target)
        if found is None:
            worst = self._leakages(target * 2**-60, method, adversary)
            reason = (
                f"record {worst.worst()} leaks {worst.largest():.6g} nats however small the budget, "
                f"the target is {target:.6g}"
            )
            raise RouteUnavailable(method, reason, self._others(method))
        return found

    def variance_inflation(self, method: str = "best", bounded_differences: bool = False) -> float:
        """Return how much wider a mean fluctuates than it would with independent records.

        Parameters
        ----------
        method : str
            "best" (the smallest that applies) or one of `inflation_methods`.
        bounded_differences : bool
            Ask for a number that holds for every statistic with bounded differences, not for means only.

        Returns
        -------
        float
            Lambda, at least 1 and at most n, rounded up. For every fixed mean q of per-record values in [0, 1],
            ``P(|q(X) - E q(X)| >= t) <= 2 exp(-2 n t^2 / Lambda)``.

        Raises
        ------
        ArgumentError
            No such method.
        RouteUnavailable
            The route does not apply to this model, or not to all statistics with bounded differences.

        Examples
        --------
        >>> from graphs import Groups
        >>> round(Groups([0, 0, 1]).variance_inflation(), 6)
        1.666667
        """
        if method == "best":
            found = [self._inflation_or_none(name, bounded_differences) for name in self.inflation_methods]
            return min([float(self.n), *(value for value in found if value is not None)])
        if method not in INFLATIONS:
            raise ArgumentError("method", repr(method), f"'best' or one of {self.inflation_methods}")
        if method not in self.inflation_methods:
            raise RouteUnavailable(method, f"{type(self).__name__} has no such route", self.inflation_methods)
        if bounded_differences and not INFLATIONS[method].bounded_differences:
            others = [name for name in self.inflation_methods if INFLATIONS[name].bounded_differences]
            raise RouteUnavailable(method, "it holds for means of per-record values only", others)
        return min(max(self._inflation(method), 1.0), float(self.n))

    def effective_records(self) -> float | None:
        """Return how many independent records fluctuate no less, in the sense of relative entropy.

        Returns
        -------
        float or None
            N, at most n, such that ``ln E exp(u q(X)) <= N ln(1 - p + p e^(u/N))`` for every fixed mean q of per-record
            values in [0, 1] with the expectation p and every u. So ``P(q >= p and N kl(q, p) >= a) <= e^-a``, and the
            same below. ``None`` where no such number is known.

        Notes
        -----
        For independent groups the number of records over the size of the largest group, for colourings over the number
        of colours; the proofs are in ``graphs/PROOFS.md``, section on effective records.

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups([0, 0, 1]).effective_records()
        1.5
        """
        sizes = self.independent_groups()
        return None if sizes is None else self.n / int(sizes.max())

    def given(self, known: Iterable[Hashable] | Mapping[Any, Any]) -> Given:
        """Return the model of the other records when the analyst already knows some.

        Parameters
        ----------
        known : iterable of records, or mapping from record to state
            The records that are known, with their states if data are to be sampled: by name where a graph names the
            records (`model.records`), by number elsewhere.

        Returns
        -------
        Given
            Its n is the number of records left; it says what its guarantees are conditional on.

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups([0, 0, 1]).given([0]).leakage(0.1)
        array([0.1, 0.1])
        """
        from graphs.models.given import Given

        return Given(self, known)

    def explain(self, epsilon: float, adversary: Adversary = "informed") -> pd.DataFrame:
        """Compare all routes for one target.

        Parameters
        ----------
        epsilon : float
            Target for the largest leakage, nats, positive.
        adversary : {"informed", "uninformed"}
            As in `leakage`.

        Returns
        -------
        pandas.DataFrame
            One row per method: `budget` (largest eps' of that route alone; missing when it does not apply),
            `published` (as printed in the literature, not used by "best"), `won` (the sound route with the
            largest budget), `source`, and `reason` (why it does not apply, else empty).

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups([0, 0, 1]).explain(0.5)[["budget", "won"]].round(3)
                budget   won
        method
        group     0.25  True
        """
        import pandas as pd

        rows = []
        for name in self.methods:
            reason, budget = "", float("nan")
            try:
                budget = self.budget(epsilon, name, adversary)
            except RouteUnavailable as error:
                reason = error.reason
            rows.append((name, budget, ROUTES[name].published, ROUTES[name].source, reason))
        table = pd.DataFrame(rows, columns=["method", "budget", "published", "source", "reason"]).set_index("method")
        sound = table["budget"].where(~table["published"])
        table.insert(2, "won", table.index == sound.idxmax())
        return table

    def fingerprint(self) -> str:
        """Return a hash of the model's content, the same in every process and on every platform.

        Returns
        -------
        str
            64 hexadecimal digits (SHA-256).

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
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    # Shared inner workings ---------------------------------------------------------------------------------

    def _record_labels(self) -> tuple[Hashable, ...] | None:
        """Return the names of the records, where a graph names them."""
        return None

    def _budgets(self, epsilon: Any) -> float | FloatArray:
        """Return budgets in the order of the records."""
        expected = f"a number, or an array of {self.n} numbers, finite and not negative"
        labels = self._record_labels()
        if labels is not None and has_labels(epsilon):
            epsilon = by_label("epsilon", epsilon, labels, expected)
        refuse_unordered("epsilon", epsilon, expected)
        return check_epsilon(epsilon, self.n)

    def _leakages(self, epsilon: float | FloatArray, method: str, adversary: Adversary) -> Profile:
        if adversary not in ("informed", "uninformed"):
            raise ArgumentError("adversary", repr(adversary), "'informed' or 'uninformed'")
        if method == "best":
            return self._best(epsilon, adversary)
        if method not in ROUTES:
            raise ArgumentError("method", repr(method), f"'best' or one of {self.methods}")
        if method not in self.methods:
            raise RouteUnavailable(method, f"{type(self).__name__} has no such route", self._others(method))
        return self._profile(method, epsilon, adversary)

    def _best(self, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        found = []
        for name in self.methods:
            if not ROUTES[name].published:
                try:
                    found.append(self._profile(name, epsilon, adversary))
                except RouteUnavailable:
                    continue
        return smallest(found)

    def _inflation_or_none(self, name: str, bounded_differences: bool) -> float | None:
        try:
            return self.variance_inflation(name, bounded_differences)
        except RouteUnavailable:
            return None

    def _others(self, method: str) -> tuple[str, ...]:
        return ("best", *(name for name in self.methods if name != method and not ROUTES[name].published))
