"""Emissions: laws of records given an unobserved state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.inflation.concentration import dobrushin_coefficient
from graphs.leakage.messages import projective_diameter
from graphs.numerics.arguments import FloatArray, IntArray, check_rows, real_array
from graphs.numerics.rounding import UNIT, up
from graphs.structure.labelled_values import refuse_unordered

__all__ = ["CategoricalEmission", "Emission", "GaussianEmission", "UnknownEmission", "as_emission"]


class Emission(ABC):
    """Distribution of a record given its state.

    Attributes
    ----------
    diameter : float
        Largest range, over the values of a record, of the log-likelihood ratio of two states, rounded up. It limits how
        much a record reveals about its state. It is often infinite, for example if a value can exclude a state.
    spread : float
        Largest total variation distance between the distributions of two states, rounded up, at most 1.
    """

    diameter: float = float("inf")
    spread: float = 1.0

    @property
    @abstractmethod
    def states(self) -> int | None:
        """Number of hidden states, or None if any number is allowed."""

    @abstractmethod
    def sample(self, states: IntArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw one record for each hidden state.

        Parameters
        ----------
        states : ndarray of int
            Index of the hidden state of each record.
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray
            Value of each record, drawn from the distribution of its state.
        """

    @abstractmethod
    def log_likelihood(self, records: Iterable[Any]) -> FloatArray:
        """Compute the log-likelihood of every state for each record.

        Parameters
        ----------
        records : iterable
            Observed records.

        Returns
        -------
        ndarray of shape (number of records, number of states)
            Logarithm of the probability, or of the density, of each record given each state.
        """

    @abstractmethod
    def content(self) -> Mapping[str, Any]:
        """Return the parameters that determine the distribution, by name."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the distribution in a few words."""


class UnknownEmission(Emission):
    """Records of any type with any law."""

    @property
    def states(self) -> int | None:
        """Any number."""
        return None

    def sample(self, states: IntArray, rng: np.random.Generator) -> IntArray:
        """Return the states themselves, the worst case."""
        return states.copy()

    def log_likelihood(self, records: Iterable[Any]) -> FloatArray:
        """Refuse: there is no law."""
        expected = "a law of the records given the states"
        raise ArgumentError("emission", "nothing", expected, "A likelihood needs one.")

    def content(self) -> Mapping[str, Any]:
        """Return nothing."""
        return {}

    def describe(self) -> str:
        """Describe the law in a few words."""
        return "records of any type"


class CategoricalEmission(Emission):
    """Define the distribution of records with finitely many values, given a hidden state.

    Pass it as `emission` to `HiddenMarkov` or `Communities`.

    Parameters
    ----------
    matrix : array_like of shape (k, v)
        Row z holds the probabilities of the v values given state z. Rows are normalized. Their sums may differ from 1
        by 1e-9.
    symbols : sequence of hashable, default None
        The v values. If None, 0, 1, ..., v - 1.

    Attributes
    ----------
    diameter : float
        Largest range, over the values of a record, of the log-likelihood ratio of two states, rounded up.
    spread : float
        Largest total variation distance between the distributions of two states, rounded up, at most 1.

    Raises
    ------
    ArgumentError
        If a row is not a probability distribution, or symbols repeat or do not match the columns.

    Examples
    --------
    >>> law = CategoricalEmission([[0.9, 0.1], [0.4, 0.6]], symbols=["quiet", "active"])
    >>> round(law.diameter, 6), round(law.spread, 6)
    (2.60269, 0.5)
    """

    def __init__(self, matrix: Any, symbols: Sequence[Hashable] | None = None) -> None:
        self.matrix = check_rows("emission", matrix)
        self.matrix.flags.writeable = False
        columns = self.matrix.shape[1]
        refuse_unordered("symbols", symbols, "symbols in the order of the columns")
        self.symbols: tuple[Hashable, ...] = tuple(range(columns)) if symbols is None else tuple(symbols)
        if len(self.symbols) != columns or len(set(self.symbols)) != columns:
            seen = f"{len(self.symbols)} symbols, {len(set(self.symbols))} of them different"
            raise ArgumentError("symbols", seen, f"{columns} different symbols, one for each column of the matrix")
        error = (columns + 4) * UNIT
        self.diameter = projective_diameter(self.matrix, error)
        self.spread = dobrushin_coefficient(self.matrix, error)

    @property
    def states(self) -> int | None:
        """Number of hidden states, the rows of the matrix."""
        return len(self.matrix)

    def sample(self, states: IntArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw one symbol for each hidden state.

        Parameters
        ----------
        states : ndarray of int
            Index of the hidden state of each record.
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray
            Symbol of each record, drawn with the probabilities of its state.
        """
        bounds = np.cumsum(self.matrix, axis=1)[:, :-1]
        drawn = np.empty(len(states), dtype=np.int64)
        uniform = rng.random(len(states))
        for state in range(len(self.matrix)):
            here = states == state
            drawn[here] = np.searchsorted(bounds[state], uniform[here], side="right")
        return named(self.symbols)[drawn]

    def log_likelihood(self, records: Iterable[Any]) -> FloatArray:
        """Compute the log-likelihood of every state for each record.

        Parameters
        ----------
        records : iterable
            Observed records.

        Returns
        -------
        ndarray of shape (number of records, number of states)
            Logarithm of the probability, or of the density, of each record given each state.
        """
        with np.errstate(divide="ignore"):
            found: FloatArray = np.log(self.matrix.T)[self.codes(records)]
        return found

    def codes(self, records: Iterable[Any]) -> IntArray:
        """Look up the column of the matrix that belongs to each record's symbol.

        Parameters
        ----------
        records : iterable of hashable
            Observed symbols.

        Returns
        -------
        ndarray of int
            Index of each record's symbol in `symbols`.
        """
        number = {symbol: k for k, symbol in enumerate(self.symbols)}
        refuse_unordered("records", records, "a sequence of symbols")
        items = records.tolist() if hasattr(records, "tolist") else list(records)
        try:
            return np.array([number[item] for item in items], dtype=np.int64)
        except (KeyError, TypeError):
            strange = next(repr(item) for item in items if not isinstance(item, Hashable) or item not in number)
            raise ArgumentError("records", f"the value {strange}", f"values among {self.symbols}") from None

    def content(self) -> Mapping[str, Any]:
        """Return the matrix and the symbols by name."""
        return {"emission": self.matrix, "symbols": [f"{type(s).__name__} {s!r}" for s in self.symbols]}

    def describe(self) -> str:
        """Describe the records in a few words."""
        return f"records with {len(self.symbols)} values"


class GaussianEmission(Emission):
    """Define the distribution of real-valued records that are normal given a hidden state.

    Pass it as `emission` to `HiddenMarkov` or `Communities`.

    Parameters
    ----------
    means : array_like of shape (k,)
        Mean of the records in each state.
    deviations : array_like of shape (k,)
        Standard deviation of the records in each state. It must be positive.

    Attributes
    ----------
    diameter : float
        Largest range of the log-likelihood ratio of two states. Infinite unless all states have the same distribution.
    spread : float
        Upper bound on the total variation distance between the distributions of two states, at most 1.

    Raises
    ------
    ArgumentError
        If shapes differ, a number is missing or infinite, or a deviation is not positive.

    Notes
    -----
    The log-likelihood ratio of two different normal distributions is unbounded, hence the infinite diameter. The total
    variation distance is bounded by Pinsker's inequality, sqrt(KL / 2), and by the bound of Bretagnolle and Huber,
    sqrt(1 - exp(-KL)).

    Examples
    --------
    >>> law = GaussianEmission([0.0, 1.0], [1.0, 1.0])
    >>> law.diameter, round(law.spread, 6)
    (inf, 0.5)
    """

    def __init__(self, means: Any, deviations: Any) -> None:
        expected = "a vector of finite numbers, one for each state"
        self.means = real_array("means", means, expected)
        self.deviations = real_array("deviations", deviations, expected)
        for name, array in (("means", self.means), ("deviations", self.deviations)):
            if array.ndim != 1 or not array.size or not np.isfinite(array).all() or array.shape != self.means.shape:
                raise ArgumentError(name, f"{array.tolist()} of shape {array.shape}", expected)
            array.flags.writeable = False
        if (self.deviations <= 0).any():
            raise ArgumentError("deviations", repr(float(self.deviations.min())), "positive standard deviations")
        means_, deviations_ = self.means, self.deviations
        with np.errstate(over="ignore"):
            ratio = deviations_[:, None] / deviations_
            shift = (means_[:, None] - means_) / deviations_
            relative = float(np.maximum((ratio**2 + shift**2 - 1) / 2 - np.log(ratio), 0).max())
        if (means_ == means_[0]).all() and (deviations_ == deviations_[0]).all():
            self.diameter, self.spread = 0.0, 0.0
        else:
            # the relative entropy is a difference of terms near 1, so its error is absolute too
            relative = relative * (1 + 2.0**-40) + 2.0**-40
            self.spread = min(up(math.sqrt(min(relative / 2, -math.expm1(-relative)))), 1.0)

    @property
    def states(self) -> int | None:
        """Number of hidden states."""
        return len(self.means)

    def sample(self, states: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw one normal number for each hidden state.

        Parameters
        ----------
        states : ndarray of int
            Index of the hidden state of each record.
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of float
            Value of each record, drawn from the normal distribution of its state.
        """
        drawn: FloatArray = self.means[states] + self.deviations[states] * rng.standard_normal(len(states))
        return drawn

    def log_likelihood(self, records: Iterable[Any]) -> FloatArray:
        """Compute the log-likelihood of every state for each record.

        Parameters
        ----------
        records : iterable
            Observed records.

        Returns
        -------
        ndarray of shape (number of records, number of states)
            Logarithm of the probability, or of the density, of each record given each state.
        """
        values = real_values(records)
        standard = (values[:, None] - self.means) / self.deviations
        found: FloatArray = -0.5 * standard**2 - np.log(self.deviations) - 0.5 * math.log(2 * math.pi)
        return found

    def content(self) -> Mapping[str, Any]:
        """Return the means and the deviations by name."""
        return {"means": self.means, "deviations": self.deviations}

    def describe(self) -> str:
        """Describe the records in a few words."""
        return "normal records"


def as_emission(value: Any, states: int | None) -> Emission:
    """Return `value` as a law of records: None means any, an array is a table of probabilities."""
    if value is None:
        return UnknownEmission()
    emission = value if isinstance(value, Emission) else CategoricalEmission(value)
    if states is not None and emission.states not in (None, states):
        raise ArgumentError("emission", f"laws for {emission.states} states", f"laws for {states} states")
    return emission


def real_values(records: Any) -> FloatArray:
    """Return records as a vector of finite numbers."""
    expected = "a sequence of finite numbers"
    refuse_unordered("records", records, expected)
    values = real_array("records", records if hasattr(records, "__array__") else list(records), expected)
    if values.ndim != 1 or not values.size:
        raise ArgumentError("records", f"an array of shape {values.shape}", expected)
    if not np.isfinite(values).all():
        where = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ArgumentError("records", f"record {where}, which is {values[where]}", expected)
    return values


def named(names: tuple[Hashable, ...]) -> npt.NDArray[Any]:
    """Return names as an array to be indexed by codes of states, of a plain type where possible."""
    if names == tuple(range(len(names))):
        return np.arange(len(names))
    if {type(name) for name in names} in ({str}, {int}, {float}, {bool}):
        return np.array(names)
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found
