"""Areas under the curve, as functions of the numbers of records of two classes in cells of scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.area_evidence import AreaEvidence, ExpectedArea
from thresholdout.mechanisms.claims.bracket_evidence import Bracket, ExpectedBracket
from thresholdout.mechanisms.claims.evidence import Evidence, Expected, ExpectedEntropy
from thresholdout.scoring.statistics.statistic_parts import (
    USUAL,
    Judged,
    PartEstimate,
    StatisticPart,
    fewer,
    groups_of,
    moments_of,
    singles,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    from graphs import DependenceModel

    Weighted: TypeAlias = "tuple[NDArray[np.float64], NDArray[np.int64]]"

__all__ = ["Area", "ScoreCounts", "matching_constant"]


@dataclass(frozen=True)
class ScoreCounts:
    """How many records of two classes have a score in each of some cells, which are in the order of scores.

    Of a holdout it is secret. `ahead` and `behind` count positive and negative records; `sharp` is whether all scores
    in a cell are equal, in all of them if ``None``.
    """

    ahead: NDArray[np.int64] = field(repr=False)
    behind: NDArray[np.int64] = field(repr=False)
    sharp: NDArray[np.bool_] | None = field(repr=False, default=None)

    @classmethod
    def of(cls, ahead: NDArray[np.float64], behind: NDArray[np.float64]) -> ScoreCounts:
        """Count scores: each is a cell.

        Examples
        --------
        >>> found = ScoreCounts.of(np.array([0.5, 0.9]), np.array([0.5, 0.1, 0.1]))
        >>> found.ahead.tolist(), found.behind.tolist()
        ([0, 1, 1], [2, 1, 0])
        """
        sides = [np.unique(scores, return_counts=True) for scores in (ahead, behind)]
        cells = np.union1d(sides[0][0], sides[1][0])
        counts = np.zeros((2, cells.size), dtype=np.int64)
        for own, (scores, times) in zip(counts, sides, strict=True):
            own[cells.searchsorted(scores)] = times
        return cls(counts[0], counts[1])

    @property
    def lost(self) -> float:
        """Share of the pairs of which nobody knows the order: both are in one cell that is not sharp."""
        if self.sharp is None:
            return 0.0
        a, b = self.ahead[~self.sharp].astype(np.float64), self.behind[~self.sharp].astype(np.float64)
        return float(np.sum(a * b)) / float(self.ahead.sum()) / float(self.behind.sum())

    def placements(self, *, wrong: bool = False, ties: bool = False) -> tuple[Weighted, Weighted]:
        """Return for positive and for negative records which share of the others they are on the right side of.

        Different shares come once, with the number of records. Equal scores count half.
        With ``wrong``, the share on whose wrong side they are. With ``ties``, scores in one cell are equal; otherwise
        those in a cell that is not sharp count 0, since the order of a pair is unknown.
        """
        found = []
        for own, others, up in ((self.ahead, self.behind, not wrong), (self.behind, self.ahead, wrong)):
            below, total = np.cumsum(others) - others, int(others.sum())
            tied = others if ties or self.sharp is None else np.where(self.sharp, others, 0)
            twice = (2 * (below if up else total - below - others) + tied)[own > 0]
            new = np.flatnonzero(np.diff(twice, prepend=-1))  # in order, so that equal ones are neighbours
            found.append((twice[new] / (2.0 * total), np.add.reduceat(own[own > 0], new)))
        return found[0], found[1]


@dataclass(frozen=True)
class Area(StatisticPart):
    """How often a record of one class scores above a record of another; ties count half.

    Its truth is the mean over all pairs of the probability of this, given the labels; for independent records of one
    law the population's.

    `scores` returns the scores, and which records are positive and which negative: those of the class `label`, and
    those of `other`, or of all others if it is ``None``.
    """

    scores: Callable[[Judged], tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]]
    label: Any
    other: Any = None
    one_law: bool = True

    def estimate(self, judged: Judged) -> PartEstimate:
        """Return the area, and its variance by the two classes' placements [DeLong et al. 1988]."""
        return self.estimate_of_counts(self._counts(judged), judged.y.size)

    def estimate_of_counts(self, counts: ScoreCounts, n: int) -> PartEstimate:
        """Return the same of counts; scores in one cell are taken for equal."""
        of_ahead, of_behind = sides = counts.placements(ties=True)
        ahead, behind = (int(times.sum()) for _, times in sides)
        few, value = min(ahead, behind), min(1.0, _mean(of_ahead))
        variance = sum(_mean(of_class, value) * n / size for of_class, size in ((of_ahead, ahead), (of_behind, behind)))
        floor = n / few**2 * (1.0 - 1.0 / (few + 1.0))
        rare, others = sides if ahead <= behind else sides[::-1]
        squares, wild = moments_of(rare[0] - value, rare[1])
        return PartEstimate(
            value,
            max(variance, floor),
            few / n,
            (ahead + behind) / n,
            max(squares, 1.0 / few**2),
            wild,
            records=n,
            misses=_mean(others, 1.0),
            lost=0.5 * counts.lost,
        )

    def moved(self, found: PartEstimate, value: float) -> PartEstimate:
        """Return an estimate with another value, and placements that vary at least as is usual there."""
        squares = max(found.squares, USUAL**2 * value * (1.0 - value))
        variance = max(found.variance, squares / found.share)
        misses = max(found.misses, (1.0 - value) ** 2 + squares)
        return replace(
            found, value=value, variance=variance, squares=squares, wild=max(found.wild, squares), misses=misses
        )

    def evidence(self, judged: Judged, model: DependenceModel, one_law: bool) -> Evidence:
        """Return the area, and how many pairs at once are independent."""
        counts, groups = self._counts(judged), None if singles(model) else groups_of(model)
        if groups is None:
            return self.evidence_of_counts(counts, model)
        _, positive, negative = self.scores(judged)
        p, q = (np.bincount(groups, weights=side) / side.sum() for side in (positive, negative))
        return _evidence(counts, _constant(float((p + q).max()), bool(((p > 0) & (q > 0)).any())))

    def evidence_of_counts(self, counts: ScoreCounts, model: DependenceModel) -> Evidence:
        """Return the evidence from counts of records whose groups are unknown. Secret."""
        ahead, behind = int(counts.ahead.sum()), int(counts.behind.sum())
        _check_classes(ahead, behind)
        return _evidence(counts, matching_constant(ahead, behind, _largest(model)))

    def expected(self, found: PartEstimate, model: DependenceModel, one_law: bool) -> Expected:
        """Return how many pairs at once will be independent."""
        few = fewer(found.share, model.n, found.records)
        many = max(1, round(found.counted * model.n - few))
        largest = _largest(model)
        plain: Expected = (
            ExpectedArea(few, many, found.squares, found.wild, found.misses)
            if largest == 1
            else ExpectedEntropy(max(1.0, 1.0 / matching_constant(max(1, round(few)), many, largest)))
        )
        return ExpectedBracket(plain, found.lost) if found.lost else plain

    def refusal(self, model: DependenceModel) -> str | None:
        """Nothing is proved for records without independent groups."""
        known = singles(model) or model.independent_groups() is not None
        return None if known else "independent records or independent groups"

    def _counts(self, judged: Judged) -> ScoreCounts:
        scores, positive, negative = self.scores(judged)
        _check_classes(int(positive.sum()), int(negative.sum()))
        return ScoreCounts.of(scores[positive], scores[negative])


def _evidence(counts: ScoreCounts, constant: float) -> Evidence:
    """Return the evidence of counts; where the order of some pairs is unknown, they count for neither side."""
    exact = not counts.lost
    found = []
    for wrong in (False,) if exact else (False, True):
        sides = counts.placements(wrong=wrong)
        rare, others = sides if counts.ahead.sum() <= counts.behind.sum() else sides[::-1]
        # Of one minus the area, the misses are those of the area: PROOFS.md, S4, (ii).
        misses = _mean(others, 0.0 if wrong else 1.0)
        size = int(others[1].sum())
        found.append(AreaEvidence(rare[0], size, max(1.0, 1.0 / constant), misses, wrong, rare[1]))
    return found[0] if exact else Bracket(*found)


def _mean(of: Weighted, away: float | None = None) -> float:
    """Return the mean of values that occur several times, or of the squares of their distances."""
    values, times = of
    if away is not None:
        values = (values - away) ** 2
    return float(np.sum(values * times)) / int(times.sum())


def _check_classes(positive: int, negative: int) -> None:
    if not positive or not negative:
        raise InputError("y", "labels of one class", "labels of both classes")


def _largest(model: DependenceModel) -> int:
    """Return the size of the largest independent group."""
    if singles(model):
        return 1
    sizes = model.independent_groups()
    assert sizes is not None  # others are refused
    return int(sizes.max())


def matching_constant(positive: int, negative: int, largest: int) -> float:
    """Return c of PROOFS.md, S4, for the worst labelling of independent groups, of which the largest has this size.

    Examples
    --------
    >>> matching_constant(3, 5, 1) == 1 / 3
    True
    """
    few, many = min(positive, negative), max(positive, negative)
    if largest == 1:
        return 1.0 / few
    return _constant(min(largest, few) / few + max(largest - few, 0) / many, True)


def _constant(share: float, mixed: bool) -> float:
    """Return c for the largest share of a group, and whether groups may have both classes."""
    if not mixed:
        return share
    return share / (1.0 - share / 2.0) if share < 2.0 else math.inf
