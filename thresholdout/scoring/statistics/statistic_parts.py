"""Parts of statistics: ratios of sums over records, and values that no record moves far.

A part has a value in [0, 1], an estimand that is fixed by the distribution of the records (or by it and their labels),
and evidence against claims about it; see `thresholdout.mechanisms.claims.evidence`. Everything public about it comes
from the training part.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.bracket_evidence import Bracket, ExpectedBracket, Rounded
from thresholdout.mechanisms.claims.evidence import (
    Bets,
    Counts,
    Dependent,
    Evidence,
    Expected,
    ExpectedBets,
    ExpectedCounts,
    ExpectedDependent,
    ExpectedHoeffding,
    Hoeffding,
    MomentBets,
    WinBets,
    to_share,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.limits.bets import Moments

__all__ = [
    "USUAL",
    "Concentrated",
    "GroupedPart",
    "Judged",
    "MeanShare",
    "PartEstimate",
    "Ratio",
    "StatisticPart",
    "Tally",
    "dependent",
    "fewer",
    "groups_of",
    "moments_of",
    "ratio_estimate",
    "singles",
]

_FEWER: Final = 1.5  # standard deviations by which a number of records is expected to be smaller
USUAL: Final = 0.5
"""Least variance that is expected, as a share of a coin's."""
_ALIKE: Final = 0.5  # expected correlation inside groups; it places claims and is no assumption


@dataclass(frozen=True)
class Judged:
    """Records with labels and an estimator's output (predictions, scores or probabilities).

    ``labels`` are the classes of the training part and of the estimator, in order, ``None`` for numbers. ``classes``
    are the estimator's ``classes_``, and ``X`` the features, for slices.
    """

    y: NDArray[Any]
    output: NDArray[Any]
    labels: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    X: Any = None


@dataclass(frozen=True)
class PartEstimate:
    """Estimate of a part on the training part.

    ``value`` is in [0, 1], and ``variance`` n times its variance on n records. ``share`` is the mean denominator, or
    the share of an area's rarer class; ``counted`` the share of records that count. ``squares`` is the mean of
    ``(numerator - value * denominator)^2``, and ``wild`` their standard deviation; for areas both are of the rarer
    class's placements. ``most`` is the largest denominator, and ``records`` the number of training records. ``misses``
    is the mean square of one minus the placements of the more frequent class. ``pairs`` has ``squares`` and ``wild`` of
    pairs of records, for agreement beyond chance. ``lost`` is the loss of either side's evidence by cells of values.
    """

    value: float
    variance: float
    share: float = 1.0
    counted: float = 1.0
    squares: float = 0.0
    wild: float = 0.0
    most: float = 1.0
    records: int = 1
    misses: float = 1.0
    pairs: tuple[float, float] = (0.0, 0.0)
    lost: float = 0.0


class StatisticPart(ABC):
    """One part of a statistic.

    Its estimand is given the labels of the holdout if ``given``; with ``one_law`` also unless records are independent
    and identically distributed.
    """

    one_law: bool = False
    given: bool = False

    @abstractmethod
    def estimate(self, judged: Judged) -> PartEstimate:
        """Return its value on some records, and how it varies."""

    @abstractmethod
    def evidence(self, judged: Judged, model: DependenceModel, one_law: bool) -> Evidence:
        """Return its evidence from the holdout. Secret."""

    @abstractmethod
    def expected(self, found: PartEstimate, model: DependenceModel, one_law: bool) -> Expected:
        """Return the expected evidence, from the training part."""

    def moved(self, found: PartEstimate, value: float) -> PartEstimate:
        """Return an estimate with another value, and at least the usual variation there."""
        return replace(found, value=value, variance=max(found.variance, USUAL * value * (1.0 - value) / found.share))

    def refusal(self, model: DependenceModel) -> str | None:
        """Return the models with a proof, if this one has none."""
        return None


class GroupedPart(StatisticPart):
    """A part whose evidence from independent groups is a function of sums by group."""

    @abstractmethod
    def expected_of_groups(self, found: PartEstimate, sizes: NDArray[np.int64]) -> Expected:
        """Return the expected evidence of groups of these sizes."""


@dataclass(frozen=True)
class Tally:
    """Numbers of records, and of those that win and that lose; the others do not count. Secret for a holdout.

    The representation shows the number of records only.
    """

    n: int
    wins: int = field(repr=False)
    losses: int = field(repr=False)


@dataclass(frozen=True)
class Ratio(GroupedPart):
    """A ratio of sums over the records: of numerators a_i to denominators b_i, ``0 <= a_i <= b_i``.

    Its estimand is the ratio of the expected sums, ``sum E a_i / sum E b_i``; for identically distributed records ``E a
    / E b``. ``terms`` maps `Judged` to numerators and denominators, shape (n,). ``missing`` names the absent records if
    all denominators are 0. If every record does not count (0, 0), wins (weight, weight) or loses (0, 1), ``weight`` is
    the weight of a win.
    """

    terms: Callable[[Judged], tuple[NDArray[Any], NDArray[Any]]]
    missing: str
    weight: float | None = None
    one_law: bool = False
    given: bool = False

    def estimate(self, judged: Judged) -> PartEstimate:
        """Return the ratio, and the variance of its linear part."""
        a, b = self._terms(judged)
        if self.weight is not None:
            return self.estimate_of(_tally(a, b))
        total = float(b.sum())
        value = min(1.0, float(a.sum()) / total)
        return ratio_estimate(value, moments_of(a - value * b), total, float(b.max()), a.size)

    def estimate_of(self, tally: Tally) -> PartEstimate:
        """Return the same from counts, for records that win or lose."""
        assert self.weight is not None
        weight, n, counted = self.weight, tally.n, tally.wins + tally.losses
        self.check_counted(counted)
        total = weight * tally.wins + tally.losses
        value, share = min(1.0, weight * tally.wins / total), total / n
        squares, wild = moments_of(
            np.array([0.0, weight - value * weight, -value]), np.array([n - counted, tally.wins, tally.losses])
        )
        wins = (to_share(value, weight) * counted + 1.0) / (counted + 2.0)
        counts = (counted + 1.0) / (n + 2.0)
        slope = weight / (1.0 + (weight - 1.0) * wins) ** 2
        variance = slope * slope * wins * (1.0 - wins) / counts
        most = max(1.0, weight)
        return PartEstimate(value, variance, share, counts, max(squares, variance * share**2), wild, most, n)

    def moved(self, found: PartEstimate, value: float) -> PartEstimate:
        """Return an estimate with another value: shares with their own variance, others with at least half of it."""
        coin = value * (1.0 - value)
        if self.weight is None:
            squares = max(found.squares, USUAL * coin * found.share**2)
            variance = squares / found.share**2
        else:
            wins = to_share(value, self.weight)
            slope = self.weight / (1.0 + (self.weight - 1.0) * wins) ** 2
            variance = max(found.variance, slope * slope * wins * (1.0 - wins) / found.counted)
            squares = max(found.squares, variance * found.share**2)
        return replace(found, value=value, variance=variance, squares=squares, wild=max(found.wild, squares))

    def evidence(self, judged: Judged, model: DependenceModel, one_law: bool) -> Evidence:
        """Count wins and losses, or keep the terms, of records or of groups."""
        a, b = self._terms(judged)
        groups = None if self.weight is not None and singles(model) else groups_of(model)
        if groups is None and self.weight is not None:
            return self.evidence_of(_tally(a, b), model, one_law)
        if groups is None:
            return dependent(float(np.mean(a)), float(np.mean(b)), model)
        of_a, of_b = (np.bincount(groups, weights=terms).astype(np.float64) for terms in (a, b))
        largest = float(of_b.max()) if self.one_law or self.given else float(np.bincount(groups).max())
        return Bets(of_a, of_b, (largest, largest * (self.weight or 1.0)))

    def evidence_of(self, tally: Tally, model: DependenceModel, one_law: bool) -> Evidence:
        """Return the evidence from counts of records that win or lose and whose groups are unknown. Secret."""
        assert self.weight is not None
        self.check_counted(tally.wins + tally.losses)
        if not singles(model):
            of_a = self.weight * tally.wins
            means = of_a / tally.n / self.weight, (of_a + tally.losses) / tally.n / self.weight
            return dependent(*means, model)
        if one_law:
            return Counts(tally.wins, tally.losses, self.weight)
        return WinBets(tally.wins, tally.losses, (self.weight, 1.0))

    def expected(self, found: PartEstimate, model: DependenceModel, one_law: bool) -> Expected:
        """Return the expected number of counted records, or the expected variation of their terms."""
        n = model.n
        if self.weight is not None and singles(model):
            return ExpectedCounts(fewer(found.counted, n, found.records), self.weight, one_law)
        if singles(model):  # without a number for each record, of which there may be many in files
            return ExpectedBets(n, found.share * n / n, found.squares, found.wild, found.most)
        groups = groups_of(model)
        if groups is None:
            most = self.weight or 1.0
            inflation = model.variance_inflation()
            return ExpectedDependent(0.9 * found.share / most, model.effective_records(), n / inflation)
        return self.expected_of_groups(found, np.bincount(groups))

    def expected_of_groups(self, found: PartEstimate, sizes: NDArray[np.int64]) -> Expected:
        """Return how much the sums of terms of groups will vary."""
        n, units, largest = int(sizes.sum()), sizes.size, int(sizes.max())
        together = _ALIKE * float(np.sum(np.square(sizes, dtype=np.float64))) + (1.0 - _ALIKE) * n
        times = together / units
        return ExpectedBets(
            units, found.share * n / units, found.squares * times, found.wild * times, found.most * largest
        )

    def refusal(self, model: DependenceModel) -> str | None:
        """Refuse models without groups if terms depend on other records' labels."""
        served = not (self.one_law or self.given) or singles(model) or groups_of(model) is not None
        return None if served else "independent records or Groups"

    def _terms(self, judged: Judged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        a, b = (np.asarray(terms, dtype=np.float64) for terms in self.terms(judged))
        if self.weight is not None and not np.isin(a, (0.0, self.weight)).all():
            raise InputError("metric", "values between 0 and 1", "a metric with values 0 and 1")
        self.check_counted(float(b.sum()))
        return a, b

    def check_counted(self, number: float) -> None:
        """Refuse a ratio without a record that counts."""
        if not number > 0.0:
            raise InputError("y", f"no {self.missing}", "labels for which the ratio exists")


@dataclass(frozen=True)
class MeanShare(Ratio):
    """A mean over records of squared errors, as shares of the largest that counts; or one minus it.

    ``most`` is the largest squared error that counts; if ``relative``, in units of the variance of the labels, and the
    part is one minus the mean.
    """

    most: float = field(kw_only=True)
    relative: bool = field(kw_only=True)

    def estimate_of_shares(self, mean: float, moments: tuple[float, float], n: int) -> PartEstimate:
        """Return the estimate from the mean of shares, and the moments of their squared distances from it."""
        return ratio_estimate(1.0 - mean if self.relative else mean, moments, float(n), 1.0, n)

    def evidence_of_shares(self, moments: Moments, slack: float, model: DependenceModel) -> Evidence:
        """Return the evidence from moments of shares of records whose groups are unknown. Secret."""
        if singles(model):
            return MomentBets(moments, slack, self.relative)
        mean = 1.0 - moments.mean() if self.relative else moments.mean()
        return replace(dependent(mean, 1.0, model), slack=slack + Dependent.slack)

    def evidence_of_groups(self, sums: NDArray[np.float64], sizes: NDArray[np.float64], slack: float) -> Evidence:
        """Return the evidence from sums of shares of independent groups. Secret."""
        largest = float(sizes.max())
        return Rounded(Bets(sizes - sums if self.relative else sums, sizes, (largest, largest)), slack)


@dataclass(frozen=True)
class Concentrated(StatisticPart):
    """A value with ``ln E exp(u (value - estimand)) <= u^2 spread^2 Lambda / (8 n)`` for every dependence model and u.

    ``unit_value`` maps `Judged` to the value, in [0, 1]; ``spread`` is 1 for a mean of values in [0, 1].
    """

    unit_value: Callable[[Judged], float]
    spread: float
    charge: float = 0.0

    def estimate(self, judged: Judged) -> PartEstimate:
        """Return the value, with the variation of a coin with this mean."""
        return self.estimate_of(self.unit_value(judged), judged.y.size)

    def estimate_of(self, value: float, n: int, lost: float = 0.0) -> PartEstimate:
        """Return the same of a value that is known up to a number on either side."""
        inside = (value * n + 1.0) / (n + 2.0)
        return PartEstimate(value, inside * (1.0 - inside), records=n, lost=lost)

    def evidence(self, judged: Judged, model: DependenceModel, one_law: bool) -> Evidence:
        """Return the value."""
        return Hoeffding(self.unit_value(judged), self._records(model), self.charge)

    def evidence_between(self, low: float, high: float, model: DependenceModel) -> Evidence:
        """Return the same of a value between two. Secret."""
        of_low = Hoeffding(low, self._records(model), self.charge)
        return of_low if low == high else Bracket(of_low, replace(of_low, value=1.0 - high))

    def expected(self, found: PartEstimate, model: DependenceModel, one_law: bool) -> Expected:
        """Return the public knowledge."""
        plain = ExpectedHoeffding(self._records(model), self.charge)
        return ExpectedBracket(plain, found.lost) if found.lost else plain

    def _records(self, model: DependenceModel) -> float:
        return model.n / model.variance_inflation(bounded_differences=True) / self.spread**2


def ratio_estimate(value: float, moments: tuple[float, float], total: float, most: float, n: int) -> PartEstimate:
    """Return the estimate of a ratio from sums of terms; it varies as if one record more were half wrong."""
    squares, share = max(moments[0], most * most / (2.0 * n)), total / n
    return PartEstimate(value, squares / share**2, share, 1.0, squares, moments[1], most, n)


def _tally(a: NDArray[np.float64], b: NDArray[np.float64]) -> Tally:
    """Count numerators that win, and denominators without one."""
    wins = int(np.count_nonzero(a))
    return Tally(a.size, wins, int(np.count_nonzero(b)) - wins)


def dependent(numerator: float, denominator: float, model: DependenceModel) -> Dependent:
    """Return the evidence from means of records that depend on each other."""
    return Dependent(numerator, denominator, model.effective_records(), model.n / model.variance_inflation())


def moments_of(values: NDArray[np.float64], times: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """Return mean and standard deviation of the squares of values with multiplicities."""
    squares = values * values
    mean = float(np.average(squares, weights=times))
    return mean, math.sqrt(float(np.average((squares - mean) ** 2, weights=times)))


def groups_of(model: DependenceModel) -> NDArray[np.int64] | None:
    """Return the group of each record, for independent records and groups; ``None`` for other models."""
    from graphs import Groups

    if _alone(model):
        return np.arange(model.n)
    return np.unique(model.groups, return_inverse=True)[1] if isinstance(model, Groups) else None


def singles(model: DependenceModel) -> bool:
    """Whether every record is independent of all others."""
    from graphs import Groups

    return _alone(model) or (isinstance(model, Groups) and model.effective_records() == model.n)


def _alone(model: DependenceModel) -> bool:
    """Whether records are independent by the model, or all groups of known sizes have one record."""
    from graphs import Independent
    from graphs.models.law_free import GroupSizes

    return isinstance(model, Independent) or (isinstance(model, GroupSizes) and model.largest == 1)


def fewer(share: float, n: int, records: int) -> float:
    """Return the number of records of a share, less the deviation that chance may cause."""
    number = n * share
    return max(1.0, number - _FEWER * math.sqrt(number * (1.0 + n / records)))
