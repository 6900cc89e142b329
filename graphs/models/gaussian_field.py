"""Records that are functions of correlated Gaussian values: series, panels, maps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from graphs.errors import ArgumentError
from graphs.inflation.copula import copula_inflation, copula_records
from graphs.known_records import BoolArray
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, IntArray, check_count, real_array
from graphs.numerics.rounding import up
from graphs.structure.correlation.autoregressive import AutoregressiveCorrelation
from graphs.structure.correlation.base import Correlation
from graphs.structure.correlation.dense import DenseCorrelation, check_correlation

__all__ = ["GaussianField"]


class GaussianField(DependenceModel):
    """Records X_i = g_i(Z_i, E_i) of Gaussian values Z with known correlations and independent noise E_i.

    Parameters
    ----------
    correlation : array_like of shape (n, n), or pandas.DataFrame
        Correlation of every two Gaussian values, ones on the diagonal. A table names the records by its labels, the
        same for rows and columns.

    Raises
    ------
    ArgumentError
        For what is no correlation matrix: not square, missing entries, entries beyond 1, not symmetric, a diagonal that
        is not 1, a negative eigenvalue; and labels of rows and columns that do not match or repeat.

    Notes
    -----
    The functions g_i may be any, a different one for each record, with values of any type: labels, numbers, texts. R is
    the correlation of what is behind them; what is computed from two records is correlated less. A record may have
    several Gaussian values, if the correlation of any two of them is the product of that of their records and that of
    their kinds.

    With a diagonal P for which P - R is positive semidefinite, ``E prod F_i(X_i) <= prod (E F_i(X_i)^p_i)^(1/p_i)`` for
    positive functions [CDP15]_, so means of per-record values have the variance inflation tr(P)/n, and n over the
    largest eigenvalue of R effective records. For means only, and void once records are known (`given`): what is known
    of a function of Z changes the law of all that depends on it. See `graphs/PROOFS.md`, section on Gaussian copulas.

    One record may tell all about another that it depends on, so leakage is that of group privacy.

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

    methods: ClassVar[tuple[str, ...]] = ("group",)
    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "copula")

    def __init__(self, correlation: Any) -> None:
        self._labels: tuple[Hashable, ...] | None = None
        if not isinstance(correlation, Correlation):
            self._labels = _labels_of("correlation", correlation)
            correlation = DenseCorrelation(check_correlation("correlation", correlation))
        super().__init__(correlation.n)
        self._correlation: Correlation = correlation

    @classmethod
    def ar(cls, coefficients: Any, n: int) -> GaussianField:
        """Return the model of a stationary autoregressive series.

        Parameters
        ----------
        coefficients : float, or array_like of shape (p,)
            phi_1, ..., phi_p of Z_t = phi_1 Z_{t-1} + ... + phi_p Z_{t-p} + noise.
        n : int
            Number of records.

        Returns
        -------
        GaussianField

        Raises
        ------
        ArgumentError
            For a series that is not stationary, or too near to one that is not.

        Examples
        --------
        >>> series = GaussianField.ar(0.9, n=1000)
        >>> round(series.variance_inflation(), 3), round(series.effective_records(), 2)
        (18.82, 52.63)
        """
        expected = "one coefficient, or a vector of them, finite"
        values = np.atleast_1d(real_array("coefficients", coefficients, expected))
        if values.ndim != 1 or not values.size:
            raise ArgumentError("coefficients", f"an array of shape {values.shape}", expected)
        if not np.isfinite(values).all():
            raise ArgumentError("coefficients", repr(values[~np.isfinite(values)][0].item()), expected)
        return cls(AutoregressiveCorrelation(values, check_count("n", n)))

    @property
    def records(self) -> tuple[Hashable, ...]:
        """Labels of the records, in the order of every array about them; their numbers where they have none."""
        return tuple(range(self.n)) if self._labels is None else self._labels

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        sizes = np.bincount(self._component)
        if isinstance(epsilon, float) and len(sizes) == 1:
            return Profile.constant(epsilon if self.n == 1 else up(self.n * epsilon, 1), self.n)
        budgets = np.broadcast_to(np.asarray(epsilon), (self.n,)).astype(np.float64)
        sums = up(np.bincount(self._component, weights=budgets).astype(np.float64), float(sizes.max()))
        return Profile.of(np.where(sizes[self._component] == 1, budgets, sums[self._component]))

    def _inflation(self, method: str) -> float:
        if method == "copula":
            return self._copula_inflation
        sizes = np.bincount(self._component).astype(np.int64)
        return int(np.sum(sizes**2)) / self.n * (1 + 2**-50)

    @cached_property
    def _copula_inflation(self) -> float:
        return copula_inflation(self._correlation)

    @cached_property
    def _copula_records(self) -> float:
        return copula_records(self._correlation)

    @cached_property
    def _component(self) -> IntArray:
        return self._correlation.component()

    def effective_records(self) -> float:
        """Return n over the largest eigenvalue of the correlation matrix, rounded down."""
        return self._copula_records

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of the groups that no correlation joins, or None when there is only one."""
        sizes = np.bincount(self._component).astype(np.int64)
        return sizes if len(sizes) > 1 or self.n == 1 else None

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw the Gaussian values of all records once.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n,)
            Each of them standard normal; records are functions of them.
        """
        return self._correlation.sample(rng)

    def describe(self) -> str:
        """Return one line of words about the model."""
        noun = "record" if self.n == 1 else "records"
        return f"{self.n} {noun}, functions of Gaussian values with {self._correlation.describe()}"

    def _content(self) -> Mapping[str, Any]:
        return self._correlation.content()

    def _parts_given(self, known: BoolArray) -> IntArray:
        return self._component

    def _record_labels(self) -> tuple[Hashable, ...] | None:
        return self._labels


def _labels_of(argument: str, table: Any) -> tuple[Hashable, ...] | None:
    """Return the labels of a table whose rows and columns have the same ones, None for an array."""
    if not (hasattr(table, "columns") and hasattr(table, "index")):
        return None
    rows, columns = table.index.tolist(), table.columns.tolist()
    expected = f"the same labels for rows and columns, in the same order, each once: {argument}.loc[names, names]"
    if len(set(rows)) < len(rows):
        raise ArgumentError(argument, "a label that occurs twice", expected)
    if rows != columns:
        same = set(rows) == set(columns)
        seen = "columns in another order than rows" if same else "columns with other labels than rows"
        raise ArgumentError(argument, seen, expected)
    return None if rows == list(range(len(rows))) else tuple(rows)
