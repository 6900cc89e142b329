"""Ratios that are functions of three counts of each class: records of it, records predicted so, and both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.evidence import Bets
from thresholdout.scoring.statistics.label_checks import shown
from thresholdout.scoring.statistics.statistic_parts import Ratio, Tally, moments_of, ratio_estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.mechanisms.claims.evidence import Evidence
    from thresholdout.scoring.statistics.statistic_parts import PartEstimate

__all__ = ["ClassCounts", "ClassMean", "ClassRatio"]


@dataclass(frozen=True)
class ClassCounts:
    """Numbers of records, of records of a class, of predictions of it, and of both. Secret for a holdout.

    The representation shows the number of records only.

    Examples
    --------
    >>> ClassCounts(4, 2, 3, 2)
    ClassCounts(n=4)
    """

    n: int
    truth: int = field(repr=False)
    said: int = field(repr=False)
    both: int = field(repr=False)


@dataclass(frozen=True)
class ClassRatio(Ratio):
    """A ratio whose terms are a function of whether a record is of a class, and of whether that is predicted."""

    label: Any = None
    of_cells: Callable[[Any, Any], tuple[NDArray[Any], NDArray[Any]]] = field(kw_only=True)

    @property
    def counted(self) -> tuple[Any, ...]:
        """The classes with counts."""
        return (self.label,)

    def estimate_of_counts(self, counts: Mapping[Any, ClassCounts]) -> PartEstimate:
        """Return the estimate from counts, equal to that from records."""
        return self.estimate_of(self.tally(counts[self.label]))

    def evidence_of_counts(self, counts: Mapping[Any, ClassCounts], model: DependenceModel, one_law: bool) -> Evidence:
        """Return the evidence from a holdout's counts. Secret."""
        return self.evidence_of(self.tally(counts[self.label]), model, one_law)

    def tally(self, found: ClassCounts) -> Tally:
        """Return the numbers of records that win, and that lose.

        Examples
        --------
        >>> from thresholdout.scoring.statistics import f1
        >>> (part,) = f1(positive="spam").parts(None)
        >>> part.tally(ClassCounts(10, 4, 5, 3))
        Tally(n=10)
        """
        truth, said = np.array([True, True, False]), np.array([True, False, True])
        numbers = np.array([found.both, found.truth - found.both, found.said - found.both])
        a, b = self.of_cells(truth, said)
        wins = int(numbers[np.asarray(a) > 0].sum())
        return Tally(found.n, wins, int(numbers[np.asarray(b) > 0].sum()) - wins)


@dataclass(frozen=True)
class ClassMean(Ratio):
    """The mean over classes of the share of their records with a correct prediction."""

    labels: tuple[Any, ...] = field(kw_only=True)

    @property
    def counted(self) -> tuple[Any, ...]:
        """The classes with counts."""
        return self.labels

    def estimate_of_counts(self, counts: Mapping[Any, ClassCounts]) -> PartEstimate:
        """Return the estimate from counts, equal to that from records except for the order of additions."""
        a, b, times = self.cells(counts)
        total = float(np.sum(b * times))
        value = min(1.0, float(np.sum(a * times)) / total)
        return ratio_estimate(value, moments_of(a - value * b, times), total, float(b.max()), int(times.sum()))

    def evidence_of_counts(self, counts: Mapping[Any, ClassCounts], model: DependenceModel, one_law: bool) -> Evidence:
        """Return the evidence from counts of independent records; others are refused before. Secret."""
        a, b, times = self.cells(counts)
        return Bets(a, b, (float(b.max()), float(b.max())), times)

    def evidence_of_groups(
        self, n: int, truth: Sequence[NDArray[np.float64]], both: Sequence[NDArray[np.float64]]
    ) -> Evidence:
        """Return the evidence from numbers of records of each class, and of those predicted so, in independent groups.

        Examples
        --------
        >>> from thresholdout.scoring.statistics import balanced_accuracy
        >>> (part,) = balanced_accuracy().parts(np.array([0, 1]))
        >>> part.evidence_of_groups(4, [np.array([2.0, 0.0]), np.array([1.0, 1.0])], [np.array([1.0, 0.0])] * 2).value
        0.5
        """
        a, b = np.zeros(truth[0].size), np.zeros(truth[0].size)
        for label, own, right in zip(self.labels, truth, both, strict=True):
            _check_class(label, own.sum())
            weight = n / (own.sum() * len(self.labels))
            a, b = a + weight * right, b + weight * own
        return Bets(a, b, (float(b.max()), float(b.max())))

    def cells(
        self, counts: Mapping[Any, ClassCounts]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the different numerators and denominators, and the number of records with each.

        Examples
        --------
        >>> from thresholdout.scoring.statistics import balanced_accuracy
        >>> (part,) = balanced_accuracy().parts(np.array([0, 1]))
        >>> [one.tolist() for one in part.cells({0: ClassCounts(4, 2, 1, 1), 1: ClassCounts(4, 2, 3, 2)})]
        [[0.0, 0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 0.0], [1, 0, 1, 2, 0]]
        """
        found = [counts[label] for label in self.labels]
        for label, one in zip(self.labels, found, strict=True):
            _check_class(label, one.truth)
        n, both = found[0].n, np.array([one.both for one in found])
        truth = np.array([one.truth for one in found])
        weights, none = n / (truth * len(found)), np.zeros(len(found))
        a = np.concatenate([none, weights, [0.0]])
        b = np.concatenate([weights, weights, [0.0]])
        return a, b, np.concatenate([truth - both, both, [n - truth.sum()]])


def _check_class(label: Any, records: float) -> None:
    if not records:
        raise InputError("y", f"no records of the class {shown(label)}", "labels of all classes")
