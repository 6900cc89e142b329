"""The choice of the best route to a leakage, a privacy budget and a variance inflation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.inflation.half_widths import answer_half_width, check_confidence, mean_half_width, records_within
from graphs.leakage.largest_budget import largest_below, searching
from graphs.leakage.profile import Profile, smallest
from graphs.numerics.arguments import FloatArray, check_count, check_epsilon, check_target, check_word
from graphs.routes import INFLATIONS, ROUTES
from graphs.structure.labelled_values import by_label, has_labels, refuse_unordered

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Adversary", "RoutedModel"]

Adversary: TypeAlias = Literal["informed", "uninformed"]


class RoutedModel(ABC):
    """Records whose leakage and variance inflation are bounded by several routes; the best counts."""

    #: Routes to a leakage of this class, see `graphs.routes.ROUTES`.
    methods: ClassVar[tuple[str, ...]] = ("group",)

    #: Routes to a variance inflation of this class, see `graphs.routes.INFLATIONS`.
    inflation_methods: ClassVar[tuple[str, ...]] = ("components",)

    def __init__(self, n: int) -> None:
        self._n = check_count("n", n)

    @property
    def n(self) -> int:
        """Number of records."""
        return self._n

    @abstractmethod
    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        """Return the leakages by one of `methods`, rounded up; RouteUnavailable when it does not apply.

        `epsilon` is checked: a float when it is the same for all records, else an array of shape (n,).
        """

    @abstractmethod
    def _inflation(self, method: str) -> float:
        """Return the variance inflation by one of `inflation_methods`, rounded up, possibly above n."""

    def _by_parts(self, bounded_differences: bool) -> tuple[float, str]:
        """Return the inflation with the best route in each independent part, and these routes in words.

        For models that list "parts" among their `inflation_methods`, in place of `_inflation`.
        """
        raise RouteUnavailable("parts", f"{type(self).__name__} has no parts", self.inflation_methods)

    def leakage(self, epsilon: Any, method: str = "best", adversary: Adversary = "informed") -> FloatArray:
        """Return an upper bound on the leakage of a mechanism about each record.

        Parameters
        ----------
        epsilon : float or array of shape (n,)
            Differential privacy of the mechanism with respect to each single record, nats. A mapping or a Series is
            aligned with the names of the records, where they have names.
        method : str, default="best"
            "best" (the smallest of all sound routes, record by record) or one of `methods`. Routes that end in
            "-published" reproduce the literature, for comparison.
        adversary : {"informed", "uninformed"}, default="informed"
            Whether the adversary may know any other records, or the model only.

        Returns
        -------
        ndarray of shape (n,)
            Upper bounds alpha_i on the leakage in nats, rounding included; infinite where a route has no bound.

        Raises
        ------
        ArgumentError
            If an argument cannot be used.
        RouteUnavailable
            If the route does not apply to this model; the error names the routes that do.

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
        reduce : {"max", "mean"}, default="max"
            Whether the largest or the mean leakage over the records has to stay within the target.

        Returns
        -------
        float
            eps', rounded down: `leakage` at it is within the target, rounding included.

        Raises
        ------
        ArgumentError
            If an argument cannot be used.
        RouteUnavailable
            If the route does not apply, or leaves no positive privacy budget.

        Notes
        -----
        Leakage does not decrease with the privacy budget. The search returns only a point at which the leakage was
        evaluated and found within the target. The budget is never above the target, since every bound on the leakage is
        at least eps'.

        Examples
        --------
        >>> from graphs import Groups
        >>> round(Groups([0, 0, 1]).budget(0.5), 6)
        0.25
        """
        target = check_target(epsilon)
        check_word("reduce", reduce, ("max", "mean"))

        def leaked(candidate: float) -> float:
            profile = self._leakages(candidate, method, adversary)
            return profile.largest() if reduce == "max" else profile.mean()

        with searching() as search:
            found = largest_below(lambda x: search.near(lambda: leaked(x), target), target, target, most=target)
        if found is None:
            worst = self._leakages(target * 2**-60, method, adversary)
            reason = (
                f"record {worst.worst()} leaks {worst.largest():.6g} nats however small the privacy budget, "
                f"the target is {target:.6g}"
            )
            raise RouteUnavailable(method, reason, self._others(method))
        return found

    def variance_inflation(self, method: str = "best", bounded_differences: bool = False) -> float:
        """Return the variance inflation (design effect) of a mean, compared with independent records.

        Parameters
        ----------
        method : str, default="best"
            "best" (the smallest that applies) or one of `inflation_methods`.
        bounded_differences : bool, default=False
            Whether the number has to hold for every statistic with bounded differences, not for means only.

        Returns
        -------
        float
            Lambda, at least 1 and at most n, rounded up. For every fixed mean q of per-record values in [0, 1]
            and every u, ``ln E exp(u (q(X) - E q(X))) <= u^2 Lambda / (8 n)``; so ``P(q(X) - E q(X) >= t)`` is at most
            ``exp(-2 n t^2 / Lambda)``, and the same below.

        Raises
        ------
        ArgumentError
            If there is no such method.
        RouteUnavailable
            If the route does not apply to this model, or not to all statistics with bounded differences.

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
        value = self._by_parts(bounded_differences)[0] if method == "parts" else self._inflation(method)
        return min(max(value, 1.0), float(self.n))

    @property
    def fit_failure(self) -> float:
        """Probability with which the limits of the fit may not hold; 0 for a declared model."""
        return 0.0

    def half_width(self, confidence: float = 0.95) -> float:
        """Return a half-width for the distance of one mean over the records from its expectation.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level. The failure probability of fitted limits is included.

        Returns
        -------
        float
            For one query fixed in advance, any mean of per-record values in [0, 1] such as an accuracy. Multiply by the
            length of another range. 1 where no smaller number holds. A guard's answers are wider: see
            `thresholdout.plan`.

        Raises
        ------
        ArgumentError
            If the confidence is not between 0 and 1.

        Examples
        --------
        >>> from graphs import Groups, Independent
        >>> round(Independent(1000).half_width(), 3), round(Groups([k // 10 for k in range(1000)]).half_width(), 3)
        (0.043, 0.136)
        """
        return mean_half_width(self.n, self.variance_inflation(), check_confidence(confidence), self.fit_failure)

    def records_for(self, half_width: float, confidence: float = 0.95) -> float:
        """Return the number of records of this kind for one mean to be within a half-width.

        Parameters
        ----------
        half_width : float
            Target, in (0, 1).
        confidence : float, default=0.95
            As in `half_width`.

        Returns
        -------
        float
            A whole number, assuming that the variance inflation does not change. Infinite where all records are
            connected, since more of them need not help.

        Raises
        ------
        ArgumentError
            If the half-width or the confidence is out of range.

        Examples
        --------
        >>> from graphs import Groups, Independent
        >>> Independent(1000).records_for(0.05), Groups([k // 10 for k in range(1000)]).records_for(0.05)
        (738, 7378)
        """
        inflation = self.variance_inflation()
        return records_within(half_width, self.n, inflation, check_confidence(confidence), self.fit_failure)

    def explain_inflation(self, bounded_differences: bool = False, confidence: float = 0.95) -> pd.DataFrame:
        """Compare all routes to the variance inflation.

        Parameters
        ----------
        bounded_differences : bool, default=False
            As in `variance_inflation`.
        confidence : float, default=0.95
            As in `half_width`.

        Returns
        -------
        pandas.DataFrame
            One row per method: `inflation` (of that route alone; missing when it does not apply), `won` (the smallest),
            `half_width` (of one query fixed in advance, by that route alone), `bounded_differences` (whether it holds
            for every statistic with bounded differences, or for means of per-record values only), `source`, and
            `reason` (why it does not apply; for "parts", the best route and in how many parts).

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups([k // 10 for k in range(1000)]).explain_inflation()[["inflation", "won", "half_width"]].round(3)
                    inflation   won  half_width
        method
        components       10.0  True       0.136
        """
        import pandas as pd

        level = check_confidence(confidence)
        rows = []
        for name in self.inflation_methods:
            reason, found = "", float("nan")
            try:
                found = self.variance_inflation(name, bounded_differences)
                reason = self._by_parts(bounded_differences)[1] if name == "parts" else ""
            except RouteUnavailable as error:
                reason = error.reason
            width = found if math.isnan(found) else mean_half_width(self.n, found, level, self.fit_failure)
            rows.append((name, found, width, INFLATIONS[name].bounded_differences, INFLATIONS[name].source, reason))
        columns = ["method", "inflation", "half_width", "bounded_differences", "source", "reason"]
        table = pd.DataFrame(rows, columns=columns).set_index("method")
        least = table["inflation"].min()
        table.insert(1, "won", (table["inflation"] == least) & ~(table["inflation"] == least).duplicated())
        return table

    def explain(self, epsilon: float, adversary: Adversary = "informed", confidence: float = 0.95) -> pd.DataFrame:
        """Compare all routes to a privacy budget, and the half-width of an answer with noise of that budget.

        Parameters
        ----------
        epsilon : float
            Target for the largest leakage, nats, positive.
        adversary : {"informed", "uninformed"}, default="informed"
            As in `leakage`.
        confidence : float, default=0.95
            Confidence level of the half-widths.

        Returns
        -------
        pandas.DataFrame
            One row per method: `budget` (largest privacy budget eps' by that route alone; missing when it does not
            apply), `half_width` (of one answer, a mean of values in [0, 1] with Laplace noise of that budget, records
            and noise together), `source`, `reason` (why it does not apply, else empty), `published` (as printed in the
            literature, not used by "best"), and `won` (the sound route with the largest budget).

        Examples
        --------
        >>> from graphs import Groups
        >>> Groups([k // 10 for k in range(1000)]).explain(0.5)[["budget", "half_width", "won"]].round(3)
                budget  half_width   won
        method
        group     0.05       0.222  True
        """
        import pandas as pd

        level, inflation = check_confidence(confidence), self.variance_inflation()
        rows = []
        for name in self.methods:
            reason, budget = "", float("nan")
            try:
                budget = self.budget(epsilon, name, adversary)
            except RouteUnavailable as error:
                reason = error.reason
            failure = self.fit_failure
            width = budget if math.isnan(budget) else answer_half_width(self.n, inflation, budget, level, failure)
            rows.append((name, budget, width, ROUTES[name].source, reason, ROUTES[name].published))
        columns = [
            "method",
            "budget",
            "half_width",
            "source",
            "reason",
            "published",
        ]  # pandas elides the middle columns
        table = pd.DataFrame(rows, columns=columns).set_index("method")
        sound = table["budget"].where(~table["published"])
        table["won"] = table.index == sound.idxmax()
        return table

    def _record_labels(self) -> tuple[Hashable, ...] | None:
        """Return the names of the records, where a graph names them."""
        return None

    def _budgets(self, epsilon: Any) -> float | FloatArray:
        """Return privacy budgets in the order of the records."""
        expected = f"a number, or an array of {self.n} numbers, finite and not negative"
        labels = self._record_labels()
        if labels is not None and has_labels(epsilon):
            epsilon = by_label("epsilon", epsilon, labels, expected)
        refuse_unordered("epsilon", epsilon, expected)
        return check_epsilon(epsilon, self.n)

    def _leakages(self, epsilon: float | FloatArray, method: str, adversary: Adversary) -> Profile:
        check_word("adversary", adversary, ("informed", "uninformed"))
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
