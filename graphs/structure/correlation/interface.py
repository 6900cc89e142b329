"""The interface of a correlation matrix of Gaussian values, independent of its storage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.bisection import BoolArray

__all__ = ["MOST_GIVEN", "ConditionalBounds", "Correlation"]

#: Most connected values whose conditional correlations are computed from the whole matrix (cubic work).
MOST_GIVEN = 2048


@dataclass(frozen=True, slots=True)
class ConditionalBounds:
    """Bounds above the correlation matrix of values given others."""

    diagonal: FloatArray  # shape (m,): of a matrix P, as `Correlation.dominating`
    radius: float  # bound on the largest eigenvalue


class Correlation(ABC):
    """A correlation matrix R of n Gaussian values."""

    def __init__(self, n: int) -> None:
        self.n = n

    @abstractmethod
    def dominating(self) -> FloatArray:
        """Return the diagonal of a matrix P of small trace with P - R positive semidefinite, rounded up."""

    @abstractmethod
    def radius(self) -> float:
        """Return an upper bound on the largest eigenvalue of R."""

    def least(self) -> float:
        """Return a lower bound on the smallest eigenvalue of R, 0 where none is proved."""
        return 0.0

    @abstractmethod
    def component(self) -> IntArray:
        """Return a number for each value; values with different numbers are independent."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw the Gaussian values once, shape (n,)."""

    @abstractmethod
    def content(self) -> Mapping[str, Any]:
        """Return all that determines the matrix: numbers, texts and arrays, by name."""

    @abstractmethod
    def describe(self) -> str:
        """Return a few words for the line that describes the model."""

    @abstractmethod
    def dense(self) -> FloatArray:
        """Return the matrix itself, for few records."""

    def given(self, members: IntArray, known: BoolArray) -> ConditionalBounds | None:
        """Return bounds for the unknown values of a component, given the others exactly."""
        return None
