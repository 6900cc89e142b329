"""Tests for dependence, candidate models, and their costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.estimation.candidate import (
    Candidate,
    neighbour_edges,
    of_graph,
    of_groups,
    of_order,
    of_places,
    read_places,
)
from graphs.estimation.permutation import (
    PermutationTest,
    autocorrelation,
    holm,
    intraclass_correlation,
    morans_i,
)
from graphs.estimation.pseudo_likelihood import graph_edges, numbered
from graphs.inflation.half_widths import check_confidence
from graphs.model import DependenceModel
from graphs.models.law_free import Groups, Independent
from graphs.numerics.arguments import FloatArray, IntArray, check_count, check_target
from graphs.numerics.rounding import shown_above
from graphs.structure.labelled_values import Listed, align, read, refuse_unordered
from graphs.structure.sort_keys import read_order

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = ["Diagnosis", "diagnose"]

#: Numbers with at most this many different values count as categories.
MOST_CATEGORIES = 8

#: Largest lag tested by default: two years of months, a day of hours; at most a quarter of the records.
SEASON = 24

#: The table of costs states the number of records for this half-width.
WISHED = 0.05


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Result of `diagnose`: tests for dependence, the models that were fitted, and a recommended one.

    Print it for a summary in words; `table` has the tests.

    Attributes
    ----------
    n : int
        Number of records.
    tests : tuple of PermutationTest
        One test for each structure that was given.
    adjusted : ndarray
        p-values of the tests, adjusted for several tests [Holm 1979].
    candidates : tuple of Candidate
        Models that were fitted, independence first.
    model : DependenceModel
        The recommended model: of the structures with a significant test, the one with the widest answers.
    epsilon : float
        Target for the leakage at which privacy budgets are compared, in nats.
    level : float
        Significance level of all tests together.
    confidence : float
        Confidence level of the half-widths.
    records : int
        Number of records for which half-widths are reported.
    """

    n: int
    tests: tuple[PermutationTest, ...]
    adjusted: FloatArray
    candidates: tuple[Candidate, ...]
    model: DependenceModel
    epsilon: float
    level: float
    confidence: float
    records: int

    @property
    def dependent(self) -> bool:
        """Whether any test is significant."""
        return bool((self.adjusted <= self.level).any())

    def table(self) -> pd.DataFrame:
        """Return a data frame with one row per test: effect, its strength in words, p-values, and significance."""
        import pandas as pd

        rows = {
            test.name: (test.effect, test.strength, test.p_value, adjusted, bool(adjusted <= self.level))
            for test, adjusted in zip(self.tests, self.adjusted.tolist(), strict=True)
        }
        columns = ["effect", "strength", "p_value", "p_holm", "dependent"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    def costs(self) -> pd.DataFrame:
        """Return one row for each fitted model: the half-widths it implies, and how well it fits.

        `half_width` is that of one query fixed in advance, at the given confidence and number of records;
        `records_for_0.05` the number of records of this kind for a half-width of 0.05. `inflation` is the variance
        inflation, `budget` the privacy budget at the target leakage, `noisy_half_width` the half-width of one answer
        with Laplace noise of that budget. `bic` and `p_value` (of the autocorrelations under the model) are missing
        where the model has none.
        """
        import pandas as pd

        rows = {
            c.name: (
                c.half_width(self.confidence, self.records),
                c.model.records_for(WISHED, self.confidence),
                c.model.variance_inflation(),
                c.budget(self.epsilon),
                c.noisy_half_width(self.epsilon, self.confidence, self.records),
                c.bic,
                c.p_value,
                c.model is self.model,
            )
            for c in self.candidates
        }
        columns = ["half_width", f"records_for_{WISHED}", "inflation", "budget", "noisy_half_width", "bic", "p_value"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=[*columns, "recommended"])

    @property
    def words(self) -> str:
        """The result in a few lines."""
        lines = [f"{self.n} records; permutation tests at level {self.level:g}, adjusted for {len(self.tests)}:"]
        for test, adjusted in zip(self.tests, self.adjusted.tolist(), strict=True):
            verdict = "dependent" if adjusted <= self.level else "no sign of dependence"
            lines.append(f"- {test.name} {test.effect:.2f} ({test.strength}), p = {adjusted:.2g}: {verdict}")
        if self.dependent:
            lines.append(f"Recommended: {self.model.describe()}.")
        else:
            lines.append("No dependence was found in these values; that does not show that there is none.")
        costs = self.costs()
        alone, chosen = costs.iloc[0], costs[costs["recommended"]].iloc[0]
        about = "" if self.records == self.n else f" about {self.records:,} records"
        lines.append(
            f"It costs: one query{about} fixed in advance is answered to "
            f"±{shown_above(chosen['half_width'], 3, 'f')} instead of "
            f"±{shown_above(alone['half_width'], 3, 'f')} with a confidence of {self.confidence:.0%};\n"
            + _records_in_words(float(chosen[f"records_for_{WISHED}"]))
        )
        lines.append(
            f"With noise that leaks at most {self.epsilon:g} nats about a record it is answered to "
            f"±{shown_above(chosen['noisy_half_width'], 3, 'f')} instead of "
            f"±{shown_above(alone['noisy_half_width'], 3, 'f')}\n"
            f"(privacy budget {chosen['budget']:.4g} instead of {self.epsilon:.4g}); "
            f"variance inflation {chosen['inflation']:.4g} instead of 1."
        )
        if chosen["p_value"] <= self.level:
            lines.append(
                "No model that was tried shows the autocorrelations of these values: its width may be too small."
            )
        if sum(self.adjusted <= self.level) > 1:
            lines.append("Several structures matter at once: one model alone does not cover the others.")
        if self.model.fit_failure:
            lines.append("Its limits hold for other records of the same kind that are independent of these values.")
        elif not isinstance(self.model, Groups | Independent):
            lines.append(
                "A fitted model is an estimate: see budget_interval for how far its privacy budget may be off."
            )
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw the effects that the tests found, and beside them the half-width that each model implies."""
        from graphs.plotting import plot_diagnosis

        costs = self.costs()
        return plot_diagnosis(self.tests, self.adjusted, costs["half_width"], costs["recommended"], ax)

    def __str__(self) -> str:
        return self.words


def _records_in_words(count: float) -> str:
    if not np.isfinite(count):
        return f"more records of the same kind need not bring it to ±{WISHED}."
    return f"{int(count):,} records of this kind bring it to ±{WISHED}."


def diagnose(
    values: Any,
    graph: nx.Graph[Any] | None = None,
    groups: Any = None,
    order: Any = None,
    *,
    coordinates: Any = None,
    season: int | None = None,
    confidence: float = 0.95,
    epsilon: float = 0.5,
    level: float = 0.05,
    permutations: int = 999,
    seed: int = 0,
    records: int | None = None,
) -> Diagnosis:
    """Test whether records depend on each other, and compare models of the dependence with their costs.

    Start here if you do not know how your records depend on each other. It runs permutation tests for each structure
    that you pass (`graph`, `groups`, `order`, `coordinates`), fits candidate models, and recommends one. Pass at least
    one structure.

    Parameters
    ----------
    values : sequence of length n, Series, or mapping
        One value for each record: numbers, or categories of any hashable type. Residuals of the queried quantity are
        best, and labels are an alternative. With a graph, a Series or a mapping is aligned with the nodes by label, and
        a sequence is in the order of `graph.nodes`.
    graph : networkx.Graph, default None
        Graph whose nodes are the records and whose edges join records that may depend on each other.
    groups : sequence of hashable, Series, or mapping, default None
        Group of each record, for instance a column of a data frame.
    order : True, or n keys, default None
        True if the records are in order. Otherwise the keys to sort them by: numbers, dates, times with or without a
        time zone, periods. A model that follows an order has its records in that order.
    coordinates : array_like of shape (n,) or (n, d), default None
        Coordinates of each record, in the order of the values, for at most 3,000 records. Distances are Euclidean, so
        project degrees of longitude and latitude first.
    season : int, default None
        Largest lag to test along the order, such as 12 for monthly data. At most half of the records. If None, 24, but
        at most a quarter of the records.
    confidence : float, default 0.95
        Confidence level of the reported half-widths, between 0 and 1.
    epsilon : float, default 0.5
        Target for the leakage, in nats, at which privacy budgets are compared.
    level : float, default 0.05
        Significance level of all tests together, between 0 and 1.
    permutations : int, default 999
        Number of permutations of each test.
    seed : int, default 0
        Seed of the permutations and of random starts.
    records : int, default None
        Number of records for which half-widths are reported, such as the size of your holdout. If None, the number of
        values.

    Returns
    -------
    Diagnosis
        Attribute `model` is the recommended model. `table()` lists the tests, `costs()` the candidate models with
        half-widths, variance inflations and privacy budgets, `plot()` draws the results, and `str` gives a summary.

    Raises
    ------
    ArgumentError
        If no structure is passed, lengths or labels differ, values are missing or all the same, or only some arguments
        have labels (an index of their own).

    Notes
    -----
    Under the null hypothesis the records are exchangeable, so p-values are valid for any distribution of the values.
    Holm's method adjusts for several tests. The effects are the largest autocorrelation at any lag up to the season
    (order), ICC(1) (groups), and Moran's I (graph; coordinates, with the six nearest records). Categories count as
    vectors of indicators. Each test covers one kind of dependence in one quantity, so a test that finds none does not
    prove independence. Knowledge of how the data were collected comes first.

    Candidates for an order: a Markov chain of the categories, or a hidden chain of the quarters of numbers; a hidden
    chain of two states; an autoregression by BIC; an autoregression of order 1 at an upper confidence limit, or one
    group of all records where a unit root is not excluded. For groups: `Groups`. For a graph: an Ising or Potts field
    of the categories, or of numbers above or below their median. For coordinates: correlations that fall with distance,
    at an upper confidence limit of their range (from 300 records), or one group of all records where none is found; and
    a field of categories on near neighbours.

    Several models of a series may reproduce the observed autocorrelations in 99 drawn series. The one with the largest
    variance inflation is then preferred: data that cannot distinguish short from long memory do not justify the
    narrower answer.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> firms = np.repeat(np.arange(20), 5)
    >>> found = diagnose(rng.standard_normal(20)[firms] + 0.5 * rng.standard_normal(100), groups=firms)
    >>> found.model
    <Groups: 100 records in 20 independent groups of 5>
    >>> found.table()[["effect", "dependent"]].round(2)
                                     effect  dependent
    groups: intra-class correlation    0.56       True
    """
    target, confidence = check_target(epsilon), check_confidence(confidence)
    if not 0 < level < 1:
        raise ArgumentError("level", repr(level), "a number between 0 and 1")
    wanted = None if records is None else check_count("records", records)
    names = None
    if graph is not None:
        edges, names = graph_edges(graph), list(graph.nodes)
    if coordinates is not None and graph is not None:
        advice = "Pass one of them, and the other in a second diagnosis."
        raise ArgumentError("coordinates", "coordinates", "None beside a graph", advice)
    index = values
    values, groups, order = _aligned(values, groups, order, names)
    columns, codes, numbers = _features(values)
    n, rng = len(columns), np.random.default_rng(seed)
    places = None if coordinates is None else read_places(coordinates, n, index)
    tests: list[PermutationTest] = []
    found: list[list[Candidate]] = []
    if order is not None:
        along = np.argsort(order, kind="stable")
        lags = _lags(season, n)
        tests.append(autocorrelation(columns[along], permutations, rng, lags))
        found.append(of_order(codes[along], None if numbers is None else numbers[along], lags, seed))
    elif season is not None:
        raise ArgumentError(
            "season", repr(season), "None without an order", "Pass order=True, or the keys of the order."
        )
    if groups is not None:
        model = Groups(groups)
        tests.append(intraclass_correlation(columns, model._index, permutations, rng))
        found.append(of_groups(model))
    if graph is not None:
        tests.append(morans_i(columns, edges, permutations, rng))
        found.append(of_graph(graph, codes, numbers))
    if places is not None:
        edges = neighbour_edges(places)
        tests.append(morans_i(columns, edges, permutations, rng, "coordinates: Moran's I of near neighbours"))
        found.append(of_places(places, edges, codes, numbers, seed))
    if not tests:
        raise ArgumentError("order", "nothing", "order=, groups=, graph= or coordinates=", "Tests need a structure.")
    adjusted = holm(np.array([test.p_value for test in tests]))
    alone = Candidate("independent", Independent(n))
    chosen = [c for some, p in zip(found, adjusted, strict=True) if p <= level for c in some if c.preferred]
    best = max(chosen, key=lambda c: c.half_width(confidence, n), default=alone)
    candidates = (alone, *(c for some in found for c in some))
    size = n if wanted is None else wanted
    return Diagnosis(n, tuple(tests), adjusted, candidates, best.model, target, float(level), confidence, size)


def _lags(season: int | None, n: int) -> int:
    """Return the largest lag to test."""
    if season is None:
        return max(min(SEASON, n // 4), 1)
    count = check_count("season", season)
    if count > n // 2:
        raise ArgumentError("season", f"{count} for {n} records", f"at most half of the records ({n // 2})")
    return count


def _aligned(values: Any, groups: Any, order: Any, names: list[Any] | None) -> tuple[list[Any], Any, Any]:
    """Return values, groups, and ranks in the order, all in the same order of records."""
    expected = "one value for each record"
    given = [("values", values), ("groups", groups), ("order", None if order is True else order)]
    for argument, column in given if names is None else []:
        if column is not None:  # without a graph the keys of a mapping have no order
            refuse_unordered(argument, column, expected)
    columns = [read("values", values, expected)]
    if len(columns[0].items) < 3:
        raise ArgumentError("values", "fewer than three records", "one value for each of at least three records")
    if groups is not None:
        columns.append(read("groups", groups, expected))
    if order is True:
        columns.append(Listed("order", list(range(len(columns[0].items)))))
    elif order is not None:
        columns.append(read_order("order", order))
    for column in columns[1:]:
        if len(column.items) != len(columns[0].items):
            seen = f"{len(column.items)} values for {len(columns[0].items)} records"
            raise ArgumentError(column.argument, seen, expected)
    found = align(columns, names)
    return found[0], None if groups is None else found[1], None if order is None else found[-1]


def _features(items: list[Any]) -> tuple[FloatArray, IntArray, FloatArray | None]:
    """Return columns to correlate, codes of categories (quarters of numbers), and the numbers, if any."""
    if any(isinstance(item, list | dict | set) for item in items):
        raise ArgumentError("values", "a table", "one value for each record")
    listed = any(isinstance(item, str | bytes | tuple | frozenset) or item is None for item in items)
    array = None if listed else np.asarray(items)
    if array is None or array.dtype.kind not in "iuf":
        codes, names = numbered(items)
        return _indicators(codes, len(names)), codes, None
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        where = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ArgumentError("values", f"record {where}, which is {numbers[where]}", "finite numbers")
    different, codes = np.unique(numbers, return_inverse=True)
    if len(different) <= MOST_CATEGORIES:
        return numbers[:, None], codes.astype(np.int64), None
    quarters = np.searchsorted(np.quantile(numbers, [0.25, 0.5, 0.75]), numbers, side="left")
    if not np.ptp(quarters):  # three quarters or more have the largest value
        quarters = (numbers == numbers.max()).astype(np.int64)
    return numbers[:, None], np.unique(quarters, return_inverse=True)[1].astype(np.int64), numbers


def _indicators(codes: IntArray, count: int) -> FloatArray:
    return np.eye(count)[codes]
