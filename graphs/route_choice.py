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
    """Base class of models that bound leakage and variance inflation by several routes and use the best one."""

    #: Routes to a leakage of this class, see `graphs.routes.ROUTES`.
    methods: ClassVar[tuple[str, ...]] = ("group",)

    #: Routes to a variance inflation of this class, see `graphs.routes.INFLATIONS`.
    inflation_methods: ClassVar[tuple[str, ...]] = ("components",)

    def __init__(self, n: int) -> None:
        self._n = check_count("n", n)

    @property
    def n(self) -> int:
        """Number of records in the model."""
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
        """Bound the privacy leakage about each record when records depend on each other.

        A mechanism that is differentially private in each single record can reveal more than `epsilon` about a record,
        because it also uses the records that depend on it. The leakage is the resulting privacy loss about one record
        (Bayesian differential privacy, see `DependenceModel`). `budget` solves the inverse problem. A route is one
        method of proof for a bound. Models have several, and each may be the best one for some data.

        Parameters
        ----------
        epsilon : float or array of shape (n,)
            Privacy budget of the mechanism: its differential privacy with respect to each single record, in nats. Pass
            one number for all records, or one for each. If the model names its records, a mapping or a pandas Series is
            aligned by name.
        method : str, default "best"
            Route to the bound. "best" takes the smallest bound of all sound routes, record by record. Otherwise one of
            the names in `methods`. Routes that end in "-published" reproduce the literature for comparison and are
            never used by "best".
        adversary : {"informed", "uninformed"}, default "informed"
            Prior knowledge of the adversary. "informed": may know any set of other records. "uninformed": knows the
            model only.

        Returns
        -------
        ndarray of shape (n,)
            Upper bound on the leakage about each record, in nats and rounded up. Infinite for records for which the
            route has no bound.

        Raises
        ------
        ArgumentError
            If `epsilon` is negative, not finite or of the wrong shape, or `method` or `adversary` is unknown.
        RouteUnavailable
            If the route does not apply to this model. The error names the routes that do.

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
        """Calibrate the privacy budget of a mechanism to a target leakage.

        Use it to choose the noise of a mechanism: run the mechanism with this differential privacy per record, and no
        record leaks more than the target, although records depend on each other. It is the inverse of `leakage`.

        Parameters
        ----------
        epsilon : float
            Target for the leakage, in nats. It must be positive.
        method : str, default "best"
            Route to the bound on the leakage. "best" takes the smallest bound of all sound routes, otherwise one of the
            names in `methods`.
        adversary : {"informed", "uninformed"}, default "informed"
            Prior knowledge of the adversary. "informed": may know any set of other records. "uninformed": knows the
            model only.
        reduce : {"max", "mean"}, default "max"
            Summary of the leakages that has to stay within the target. "max": the largest over all records. "mean": the
            mean over all records.

        Returns
        -------
        float
            Largest privacy budget found per record, in nats and rounded down. `leakage` at this budget is within the
            target.

        Raises
        ------
        ArgumentError
            If `epsilon` is not a positive number, or another argument is unknown.
        RouteUnavailable
            If the route does not apply to this model, or no positive privacy budget meets the target.

        Notes
        -----
        Leakage does not decrease with the privacy budget. The search returns only a point at which the leakage was
        evaluated and found within the target. The budget is never above the target, since every bound on the leakage is
        at least the budget itself.

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
        """Bound the variance inflation (design effect) of a mean over the records.

        The variance inflation states by which factor dependence widens confidence statements. `n` dependent records are
        worth `n / variance_inflation()` independent ones for means. `half_width` applies it, and `explain_inflation`
        compares the routes.

        Parameters
        ----------
        method : str, default "best"
            Route to the bound. "best" takes the smallest that applies, otherwise one of the names in
            `inflation_methods`.
        bounded_differences : bool, default False
            If True, the bound holds for every statistic with bounded differences. If False, it holds for means of
            per-record values.

        Returns
        -------
        float
            Variance inflation Lambda, between 1 and n, rounded up. Independent records have 1.

        Raises
        ------
        ArgumentError
            If `method` is unknown.
        RouteUnavailable
            If the route does not apply to this model, or `bounded_differences` is True and the route holds for means
            only.

        Notes
        -----
        For every fixed mean q of per-record values in [0, 1] and every real u, ``ln E exp(u (q(X) - E q(X))) <= u^2
        Lambda / (8 n)``. Therefore ``P(q(X) - E q(X) >= t)`` is at most ``exp(-2 n t^2 / Lambda)``, and the same bound
        holds for deviations below.

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
        """Probability that the confidence limits behind a fitted model fail, 0 for a declared model."""
        return 0.0

    def half_width(self, confidence: float = 0.95) -> float:
        """Compute the half-width of a confidence interval for one mean over the records.

        Use it to see how precisely a holdout of these records measures an accuracy or another mean of per-record
        values. It is valid for one query that was fixed before the data were seen. The answers of a guard, which
        permits adaptive queries, are wider (see `thresholdout.plan`).

        Parameters
        ----------
        confidence : float, default 0.95
            Confidence level of the interval, between 0 and 1. For a fitted model the failure probability of its limits
            is included.

        Returns
        -------
        float
            Half-width for a mean of values in [0, 1], at most 1. For values in a longer range, multiply by the length
            of the range.

        Raises
        ------
        ArgumentError
            If `confidence` is not between 0 and 1.

        Examples
        --------
        >>> from graphs import Groups, Independent
        >>> round(Independent(1000).half_width(), 3), round(Groups([k // 10 for k in range(1000)]).half_width(), 3)
        (0.043, 0.136)
        """
        return mean_half_width(self.n, self.variance_inflation(), check_confidence(confidence), self.fit_failure)

    def records_for(self, half_width: float, confidence: float = 0.95) -> float:
        """Compute how many records of this kind one mean needs for a given half-width.

        It is the inverse of `half_width`. The calculation assumes that a larger sample has the same variance inflation,
        as is the case for more groups of the same size.

        Parameters
        ----------
        half_width : float
            Target half-width of the confidence interval, between 0 and 1.
        confidence : float, default 0.95
            Confidence level of the interval, between 0 and 1.

        Returns
        -------
        float
            Number of records, a whole number. Infinite if all records are connected, because more records need not help
            then.

        Raises
        ------
        ArgumentError
            If `half_width` or `confidence` is not between 0 and 1.

        Examples
        --------
        >>> from graphs import Groups, Independent
        >>> Independent(1000).records_for(0.05), Groups([k // 10 for k in range(1000)]).records_for(0.05)
        (738, 7378)
        """
        inflation = self.variance_inflation()
        return records_within(half_width, self.n, inflation, check_confidence(confidence), self.fit_failure)

    def explain_inflation(self, bounded_differences: bool = False, confidence: float = 0.95) -> pd.DataFrame:
        """Compare the variance inflation by every route of this model in a table.

        Use it to see which assumption or argument determines the design effect, and why other routes do not apply.

        Parameters
        ----------
        bounded_differences : bool, default False
            If True, only routes that hold for every statistic with bounded differences apply. If False, routes for
            means of per-record values apply too.
        confidence : float, default 0.95
            Confidence level of the column `half_width`, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row per route, with the columns `inflation` (by that route alone, missing if it does not apply), `won`
            (whether it is the smallest), `half_width` (of one query fixed in advance, by that route alone),
            `bounded_differences` (whether the route holds for every statistic with bounded differences, or for means
            only), `source` (the literature or proof) and `reason` (why the route does not apply, or for "parts" the
            best route and the number of parts).

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
        """Compare the privacy budget by every route of this model in a table.

        Use it to see which route determines `budget`, how much noise each would require, and why others do not apply.

        Parameters
        ----------
        epsilon : float
            Target for the largest leakage, in nats. It must be positive.
        adversary : {"informed", "uninformed"}, default "informed"
            Prior knowledge of the adversary. "informed": may know any set of other records. "uninformed": knows the
            model only.
        confidence : float, default 0.95
            Confidence level of the column `half_width`, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row per route, with the columns `budget` (largest privacy budget by that route alone, missing if it does
            not apply), `half_width` (of one answer, a mean of values in [0, 1] with Laplace noise of that budget,
            sampling and noise together), `source` (the literature or proof), `reason` (why the route does not apply,
            else empty), `published` (whether it only reproduces the literature and is not used by "best") and `won`
            (whether it is the sound route with the largest budget).

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
