"""Records that are functions of correlated Gaussian values: series, panels, maps."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.known_records import BoolArray
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, IntArray, as_real, check_count, real_array
from graphs.numerics.rounding import up, upward_sum
from graphs.structure.correlation.autoregressive import AutoregressiveCorrelation, check_coefficients
from graphs.structure.correlation.blocks import BlockCorrelation
from graphs.structure.correlation.components import read_components
from graphs.structure.correlation.dense import DenseCorrelation, check_correlation
from graphs.structure.correlation.interface import Correlation
from graphs.structure.correlation.kernel import Function, kernel_correlation
from graphs.structure.correlation.precision import ConditionalAutoregression
from graphs.structure.correlation.sparse import SparseCorrelation, check_sparse
from graphs.structure.labelled_values import numbered_labels
from graphs.structure.layout import GraphLike, read_graph

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GaussianField", "copula_inflation", "copula_records", "smoothed_inflation"]


def copula_inflation(diagonal: FloatArray) -> float:
    """Return tr(P)/n, rounded up.

    >>> import numpy as np
    >>> round(copula_inflation(np.array([1.5, 1.5, 1.0])), 9)
    1.333333333
    """
    return upward_sum(diagonal) / len(diagonal) * (1 + 2**-50)


def copula_records(radius: float, n: int) -> float:
    """Return n over a bound on the largest eigenvalue of R, rounded down, at least 1 and at most n.

    >>> round(copula_records(3.0, 3), 9)
    1.0
    """
    return min(max(n / radius * (1 - 2**-50), 1.0), float(n))


def smoothed_inflation(of_means: float, least: float) -> float:
    """Return 1 + (2/pi) (Lambda - s)/s, rounded up: the inflation of statistics with bounded differences.

    >>> round(smoothed_inflation(3.0, 1 / 3), 6)
    6.092958
    """
    return 1.0 + 2.0 / math.pi * (of_means - least) / least * (1 + 2**-48)


class _Copula(DependenceModel):
    """Mixin of Gaussian fields and of their remaining records: a diagonal above, and dependent groups."""

    methods: ClassVar[tuple[str, ...]] = ("group",)
    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "copula")

    _dominating: Any
    _component: Any

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        sizes = np.bincount(self._component)
        if isinstance(epsilon, float) and len(sizes) == 1:
            return Profile.constant(epsilon if self.n == 1 else up(self.n * epsilon, 1), self.n)
        budgets = np.broadcast_to(np.asarray(epsilon), (self.n,)).astype(np.float64)
        sums = up(np.bincount(self._component, weights=budgets).astype(np.float64), float(sizes.max()))
        return Profile.of(np.where(sizes[self._component] == 1, budgets, sums[self._component]))

    def _inflation(self, method: str) -> float:
        if method == "copula":
            return copula_inflation(self._dominating)
        sizes = np.bincount(self._component).astype(np.int64)
        return int(np.sum(sizes**2)) / self.n * (1 + 2**-50)

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of int, or None
            Number of records of each uncorrelated group. None if there is only one group.
        """
        sizes = np.bincount(self._component).astype(np.int64)
        return sizes if len(sizes) > 1 or self.n == 1 else None


class GaussianField(_Copula):
    """Model records that are functions of correlated Gaussian values, one latent value or several per record.

    Use it for series, panels, maps and random effects: record i is ``g_i(Z_i, E_i)`` with a latent Gaussian value Z_i
    and noise E_i of its own. Only the correlations of the latent values matter. The functions g_i are arbitrary, so
    records may be numbers, labels or texts. The class methods `ar`, `kernel`, `car` and `components` build the
    correlations of common designs. `graphs.estimation` fits them at confidence limits.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    correlation : array_like of shape (n, n), pandas.DataFrame, or scipy.sparse matrix
        Correlation of every two latent values, with ones on the diagonal. A data frame names the records by its labels,
        which have to be the same for rows and columns.
    values_of : iterable of hashable, default None
        For records with several latent values: the record of each row of `correlation`, in any order. The labels name
        the records, in order of first appearance. If None, each record has one latent value.

    Raises
    ------
    ArgumentError
        If `correlation` is not a correlation matrix (not square, not symmetric, missing entries, entries beyond 1, a
        diagonal that is not 1, a negative eigenvalue), or labels repeat or differ between rows and columns.

    Notes
    -----
    The functions g_i may differ between records. R denotes the correlation matrix of the latent values. Functions of
    two records are correlated less than their latent values. A record with several latent values needs `values_of`,
    with one exception: if the correlation of any two values is the product of a correlation of their records and one of
    their kinds, pass the correlation of the records as R.

    *Variance inflation.* Let P be a diagonal matrix for which P - R is positive semidefinite. Then ``E prod F_i(X_i) <=
    prod (E F_i(X_i)^p_i)^(1/p_i)`` for positive functions, with p_i the entries of P [CDP15]. So means of per-record
    values have the variance inflation tr(P)/n ("copula"), and the effective sample size is n over the largest
    eigenvalue of R. Statistics with bounded differences have the inflation ``1 + (2/pi) (Lambda - s)/s``, with Lambda
    that of means and s the smallest eigenvalue of R ("smoothing"). Proofs are in `graphs/PROOFS.md`, section on
    Gaussian copulas.

    *Known records.* Neither bound holds once records are known (`given`), because a known function of Z changes the
    distribution of all values that depend on it. `conditional_on_values` is the alternative.

    *Leakage.* The bound on the leakage about a record is the sum of the privacy budgets of all records in its
    correlated group (group privacy). No smaller bound holds: a Gaussian value is unbounded, and an extreme one
    determines the sign of every value with which it is correlated.

    References
    ----------
    .. [CDP15] W.-K. Chen, N. Dafnis, G. Paouris, "Improved Hoelder and reverse Hoelder inequalities for Gaussian random
       vectors", Advances in Mathematics 280, 2015.

    Examples
    --------
    >>> model = GaussianField([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> round(model.variance_inflation(), 9), round(model.effective_records(), 9)
    (1.333333333, 2.0)
    >>> model.leakage(0.1).round(9)
    array([0.2, 0.2, 0.1])
    """

    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "copula", "smoothing")

    def __init__(self, correlation: Any, *, values_of: Iterable[Hashable] | None = None) -> None:
        self._labels: tuple[Hashable, ...] | None = None
        if values_of is not None:
            _labels_of("correlation", correlation)
            matrix = check_correlation("correlation", correlation)
            index, names = numbered_labels("values_of", values_of)
            if len(index) != len(matrix):
                seen = f"{len(index)} records for {len(matrix)} rows"
                raise ArgumentError("values_of", seen, "the record of each row of the correlations")
            self._labels = _unique("values_of", list(names))
            correlation = BlockCorrelation(matrix, index)
        elif not isinstance(correlation, Correlation):
            self._labels = _labels_of("correlation", correlation)
            correlation = _read_correlation(correlation)
        super().__init__(correlation.n)
        self._correlation: Correlation = correlation

    @classmethod
    def ar(cls, coefficients: Any, n: int) -> GaussianField:
        """Build the model of a stationary autoregressive series.

        Use it for records at equal time steps whose correlation decays with the lag.
        `graphs.estimation.fit_autoregression` estimates a conservative coefficient of order 1.

        Parameters
        ----------
        coefficients : float, or array_like of shape (p,)
            Coefficients phi_1, ..., phi_p of Z_t = phi_1 Z_{t-1} + ... + phi_p Z_{t-p} + noise.
        n : int
            Number of records.

        Returns
        -------
        GaussianField
            Model of n records with the autocorrelations of the series.

        Raises
        ------
        ArgumentError
            If the series is not stationary, or so close to a unit root that it cannot be computed reliably.

        Examples
        --------
        >>> series = GaussianField.ar(0.9, n=1000)
        >>> round(series.variance_inflation(), 3), round(series.effective_records(), 2)
        (18.82, 52.63)
        """
        return cls(AutoregressiveCorrelation(check_coefficients(coefficients), check_count("n", n)))

    @classmethod
    def kernel(cls, coordinates: Any, function: Function, *, support: float | None = None) -> GaussianField:
        """Build the model of records at locations whose correlation is a function of their distance.

        Use it for maps and sensors, with the exponential or another covariance function of geostatistics.
        `graphs.estimation.fit_kernel` estimates a conservative range.

        Parameters
        ----------
        coordinates : array_like of shape (n, d), or pandas.DataFrame
            Coordinates of each record, in units in which Euclidean distances make sense (metres of a projection, not
            degrees). A data frame names the records by its index. A vector places the records on a line.
        function : callable
            Maps an array of distances to correlations, such as ``lambda d: np.exp(-d / 200)``. It must be 1 at distance
            0 and positive definite in d dimensions.
        support : float, default None
            Distance from which `function` is zero, so that a sparse matrix suffices. If None, up to 4,096 places use a
            dense matrix, and up to 50,000 one that is computed block by block.

        Returns
        -------
        GaussianField
            Model with one record for each location.

        Raises
        ------
        ArgumentError
            If coordinates are missing, there are too many places, or `function` is not a correlation or not positive
            definite at these places (checked at 1,024 of them above 4,096 places).

        Examples
        --------
        >>> grid = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
        >>> round(GaussianField.kernel(grid, lambda d: np.exp(-2 * d)).variance_inflation(), 3)
        1.835
        """
        expected = "coordinates of shape (n, d), finite"
        places = real_array("coordinates", coordinates, expected)
        places = places[:, None] if places.ndim == 1 else places
        if places.ndim != 2 or not places.size:
            raise ArgumentError("coordinates", f"an array of shape {places.shape}", expected)
        bad = ~np.isfinite(places).all(axis=1)
        if bad.any():
            seen = f"record {int(np.flatnonzero(bad)[0])} without coordinates"
            raise ArgumentError("coordinates", seen, expected, "Leave out records whose place is missing.")
        if not callable(function):
            raise ArgumentError("function", repr(function), "a function of distances, such as lambda d: np.exp(-d / 2)")
        reach = None if support is None else as_real(support)
        if support is not None and (reach is None or not 0.0 < reach < math.inf):
            raise ArgumentError("support", repr(support), "a positive, finite distance")
        model = cls(kernel_correlation(places, function, reach))
        if hasattr(coordinates, "index") and hasattr(coordinates, "columns"):
            model._labels = _unique("coordinates", coordinates.index.tolist())
        return model

    @classmethod
    def car(
        cls, graph: GraphLike, rho: float, *, weight: Any = 1.0, records: Iterable[Hashable] | None = None
    ) -> GaussianField:
        """Build the model of a conditional autoregression (CAR) on a graph [Besag 1974].

        Use it for areas such as districts, whose values depend on those of their neighbours.

        Parameters
        ----------
        graph : networkx.Graph, or pair (edges, n)
            Graph of the neighbours. A pair holds integer edges of shape (E, 2) between records 0 to n - 1.
        rho : float
            Strength of the dependence, between -1 and 1. Given all others, the mean of a value is rho times the
            weighted mean of its neighbours, and its variance is inversely proportional to the sum of their weights.
            Values are scaled to equal variances. A negative rho is treated as its absolute value.
        weight : float, array of shape (E,), or str, default 1.0
            Positive weight of each edge: one number, one for each edge, or the name of an edge attribute.
        records : iterable of labels, default None
            Nodes that are records, in order. Other nodes have latent values but no records. If None, all nodes in the
            order of the graph.

        Returns
        -------
        GaussianField
            Model of the records, with the names of the nodes.

        Raises
        ------
        ArgumentError
            If `rho` is not between -1 and 1, a weight is not positive, or the graph is empty, directed or has
            self-loops.

        Examples
        --------
        >>> import networkx as nx
        >>> round(GaussianField.car(nx.cycle_graph(100), 0.5).variance_inflation(), 3)
        1.732
        """
        number = as_real(rho)
        if number is None or not -1.0 < number < 1.0:
            raise ArgumentError("rho", repr(rho), "a number between -1 and 1, neither included")
        layout = read_graph(graph, (), records)
        weights = np.broadcast_to(layout.edge_numbers("weight", weight), (len(layout.edges),)).astype(np.float64)
        if not (weights > 0.0).all():
            raise ArgumentError("weight", repr(float(weights[~(weights > 0.0)][0])), "positive weights")
        number_of = np.full(layout.size, -1, dtype=np.int64)
        n = len(layout.records)
        number_of[layout.records] = np.arange(n)
        number_of[number_of < 0] = np.arange(n, layout.size)
        edges = np.sort(number_of[layout.edges], axis=1)
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        model = cls(ConditionalAutoregression(edges[order], weights[order], layout.size, n, number))
        labels = tuple(layout.labels[k] for k in layout.records.tolist())
        model._labels = None if labels == tuple(range(n)) else labels
        return model

    @classmethod
    def components(
        cls,
        labels: Mapping[str, Any] | pd.DataFrame,
        shares: Mapping[str, float] | pd.Series[float],
        *,
        series: str | None = None,
        coefficients: Any = None,
        noise: float | None = None,
    ) -> GaussianField:
        """Build the model of variance components: crossed or nested random effects, and series inside units.

        Use it for ratings of items by users, pupils in classes in schools, or firms over the years, when the shares of
        the variance (intraclass correlations) are known. `graphs.estimation.fit_components` and `fit_panel` estimate
        conservative shares.

        Parameters
        ----------
        labels : mapping from factor to labels, or pandas.DataFrame
            For each factor (user, item, school, class) the group of each record. A data frame names the records by its
            index. For nested factors, use distinct group labels in each outer group.
        shares : mapping from factor to float, or pandas.Series
            Share of the variance due to the effects of each factor, between 0 and 1, with a sum of at most 1.
        series : str, default None
            Factor within whose groups an autoregressive series runs, in the order of the records. If None, there is no
            series.
        coefficients : float, or array_like of shape (p,), default None
            Coefficients phi_1, ..., phi_p of that series. Required with `series`.
        noise : float, default None
            Share of independent noise beside a series. If None, 0 with a series, which then has the remaining share.
            Without a series, noise always has the remaining share.

        Returns
        -------
        GaussianField
            Model in which two records correlate by the sum of the shares of the factors whose group they share.

        Raises
        ------
        ArgumentError
            If a factor lacks labels or a share, labels are missing or not one per record, a share is negative, shares
            sum to more than 1, or the series is not accepted by `ar`.

        Notes
        -----
        Where records of a series are missing in between, correlations of neighbours are those at a larger lag. These
        are smaller if all correlations are positive and fall with the lag, and then the numbers are still bounds.

        Examples
        --------
        Users by items, and firms with a level of their own and a series from year to year:

        >>> users, items = np.repeat(np.arange(100), 50), np.tile(np.arange(50), 100)
        >>> crossed = GaussianField.components({"user": users, "item": items}, {"user": 0.1, "item": 0.1})
        >>> round(crossed.variance_inflation(), 6)
        12.936621
        >>> firms = np.repeat(np.arange(200), 20)
        >>> panel = GaussianField.components({"firm": firms}, {"firm": 0.5}, series="firm", coefficients=0.5)
        >>> round(panel.variance_inflation(), 3)
        11.4
        """
        correlation = read_components(labels, shares, series, coefficients, noise)
        model = cls(correlation)
        if hasattr(labels, "index") and hasattr(labels, "columns"):
            model._labels = _unique("labels", labels.index.tolist())
        return model

    @property
    def records(self) -> tuple[Hashable, ...]:
        """Labels of the records in the order of all arrays, or their numbers if they have no labels."""
        return tuple(range(self.n)) if self._labels is None else self._labels

    def effective_records(self) -> float:
        """Compute the effective sample size for bounds by relative entropy (Chernoff bounds).

        See `DependenceModel.effective_records` for the bound that holds with it.

        Returns
        -------
        float
            The number n of records, divided by the largest eigenvalue of the correlation matrix, rounded down.
        """
        return self._copula_records

    def _inflation(self, method: str) -> float:
        if method != "smoothing":
            return super()._inflation(method)
        least = 0.0 if self._limits is not None else self._least
        if least == 0.0:
            fitted = "limits of fitted correlations say nothing about their smallest eigenvalue"
            reason = "the smallest eigenvalue of the correlations is not shown to be positive"
            raise RouteUnavailable(method, reason if self._limits is None else fitted, ("best", "components"))
        return smoothed_inflation(copula_inflation(self._dominating), least)

    @cached_property
    def _least(self) -> float:
        return self._correlation.least()

    @cached_property
    def _dominating(self) -> FloatArray:
        return self._correlation.dominating()

    @cached_property
    def _copula_records(self) -> float:
        return copula_records(self._correlation.radius(), self.n)

    @cached_property
    def _component(self) -> IntArray:
        return self._correlation.component()

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw one synthetic data set: the latent Gaussian values of all records.

        Apply functions of your own to obtain records, for example ``values > 0`` for labels.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,), or (n, k) with k values for each record
            Standard normal values with the correlations of the model.
        """
        return self._correlation.sample(rng)

    def describe(self) -> str:
        """Describe the model in one line of text."""
        noun = "record" if self.n == 1 else "records"
        return f"{self.n} {noun}, functions of Gaussian values with {self._correlation.describe()}"

    def _content(self) -> Mapping[str, Any]:
        return {
            **self._correlation.content(),
            **({"conditional on": self.condition_beyond} if self.condition_beyond else {}),
        }

    def conditional_on_values(self) -> GaussianField:
        """Return a copy of the model that conditions on the latent values of known records.

        Use it before `given`. Conditioning on known records themselves leaves only group bounds for a Gaussian field.
        Conditioning on their latent Gaussian values gives smaller numbers, for a different estimand: E[q(X) | their
        Gaussian values].

        Returns
        -------
        GaussianField
            Copy for use with `given`. It covers up to 2,048 connected records (any number in a series, and on a graph
            with rho of at least 0), provided that the known values do not determine another one.

        Notes
        -----
        If known records determine their Gaussian values (measurements without noise of their own), the estimand is
        E[q(X) | known]. Otherwise it is a finer one: given the known labels alone, the distribution of the others is
        not Gaussian, and only group bounds are known for their mean. In a fitted model the method changes nothing,
        because conditional correlations do not grow with the limits.

        Examples
        --------
        >>> series = GaussianField.ar(0.9, n=100)
        >>> round(series.given(range(50)).variance_inflation(), 3)
        50.0
        >>> later = series.conditional_on_values().given(range(50))
        >>> round(later.variance_inflation(), 3)
        14.728
        >>> later.condition.split(": ")[1]
        'about E[q(X) | the Gaussian values of known records], not about E q(X)'
        """
        model = copy.copy(self)
        model.condition_beyond = "the Gaussian values of known records"
        return model

    def _parts_given(self, known: BoolArray) -> IntArray:
        return self._component

    def _remainder(self, known: BoolArray) -> DependenceModel | None:
        # conditional correlations at the limits of a fitted model are no limits
        on_values = bool(self.condition_beyond) and self._fitted_with() is None
        return RestOfField(self._correlation, known, self._dominating, on_values) if known.any() else self

    def _record_labels(self) -> tuple[Hashable, ...] | None:
        return self._labels


class RestOfField(_Copula):
    """The remaining records of a Gaussian field.

    Groups without a known record are unchanged. In the others nothing is known about the conditional law, so a group of
    s records counts as s copies, unless the law is that given Gaussian values.

    >>> series = GaussianField.ar(0.5, n=4)
    >>> series.conditional_on_values().given([1]).explain_inflation()["inflation"].round(3).to_dict()
    {'components': 3.0, 'copula': 1.298}
    """

    def __init__(self, correlation: Correlation, known: BoolArray, dominating: FloatArray, on_values: bool) -> None:
        super().__init__(int((~known).sum()))
        whole = correlation.component()
        touched = np.bincount(whole, weights=known) > 0
        found = dominating.copy()
        self._radius = correlation.radius() if not touched.all() else 1.0
        for group in np.flatnonzero(touched).tolist():
            inside = np.flatnonzero(whole == group)
            left = inside[~known[inside]]
            if not len(left):
                continue
            bounds = correlation.given(inside, known[inside]) if on_values else None
            found[left] = len(left) if bounds is None else bounds.diagonal
            self._radius = max(self._radius, len(left) if bounds is None else bounds.radius)
        self._known, self._dominating = known, found[~known]
        self._component = np.unique(whole[~known], return_inverse=True)[1].astype(np.int64)

    def effective_records(self) -> float:
        """Return n over the largest number of copies that a group's mean counts for, rounded down."""
        return copula_records(self._radius, self.n)

    def _content(self) -> Mapping[str, Any]:
        return {"dominating": self._dominating, "component": self._component}

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Refuse: the values of the known records are part of the law."""
        advice = "Sample the field itself."
        raise ArgumentError("model", self.describe(), "a model without known records for sampling", advice)

    def describe(self) -> str:
        """Return one line of words about the model."""
        return f"{self.n} records left of a Gaussian field"


def _read_correlation(value: Any) -> Correlation:
    from scipy.sparse import issparse

    if issparse(value):
        return SparseCorrelation(check_sparse("correlation", value))
    return DenseCorrelation(check_correlation("correlation", value))


def _unique(argument: str, labels: list[Hashable]) -> tuple[Hashable, ...] | None:
    """Return labels of records, None for the numbers of the records."""
    if len(set(labels)) < len(labels):
        raise ArgumentError(
            argument, "an index with a label that occurs twice", "a table with one label for each record"
        )
    return None if labels == list(range(len(labels))) else tuple(labels)


def _labels_of(argument: str, table: Any) -> tuple[Hashable, ...] | None:
    """Return the labels of a table whose rows and columns have the same ones, None for an array."""
    if not (hasattr(table, "columns") and hasattr(table, "index")):
        return None
    rows, columns = table.index.tolist(), table.columns.tolist()
    expected = "a table with the same labels for rows and columns, in the same order, each once"
    advice = f"Pass {argument}.loc[names, names]."
    if len(set(rows)) < len(rows):
        raise ArgumentError(argument, "a label that occurs twice", expected, advice)
    if rows != columns:
        same = set(rows) == set(columns)
        seen = "columns in another order than rows" if same else "columns with other labels than rows"
        raise ArgumentError(argument, seen, expected, advice)
    return _unique(argument, rows)
