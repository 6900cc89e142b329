"""The baseline: split the holdout, one fresh part per question.

Every part is used once, so nothing adapts to it, and no noise is needed. This is what a guard has to beat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bisect, within
from graphs.numerics.rounding import ULP, formula_up
from thresholdout.certificates.route import ConstantWidth, Earlier, Route, larger_side
from thresholdout.data.values import record_rounding
from thresholdout.limits.binomial import binomial_lower, binomial_upper
from thresholdout.limits.entropy import entropy_lower, entropy_upper

if TYPE_CHECKING:
    from graphs import DependenceModel, Groups

__all__ = [
    "SplittingWidths",
    "bernoulli_holds",
    "bernoulli_width",
    "bounded_width",
    "equal_sizes",
    "smallest_divergence",
    "splitting_intervals",
    "splitting_routes",
    "splitting_width",
]

SOURCE = "exact tails for every mean; PROOFS.md, 'Splitting'"
ASSUMES = (
    "independent records of one law, or independent groups of one size and one law; each question is the same function "
    "of every record, and does not know which record it is (identically_distributed=True)"
)

Floats = NDArray[np.float64]

_PROBABILITY = 1.0 + 1e-9
_RESOLVED = 0.01  # of the tail probability, where the search over intervals of means stops
_MOST_INTERVALS = 1 << 16
"""More intervals than this to halve count as failing, which is the safe side."""

_MOST_ATOMS = 2048
_MOST_RECORDS = 10**7


@lru_cache(maxsize=1024)
def bounded_width(records: int, failure: float) -> float:
    """Half-width for the mean of independent values in [0, 1].

    Parameters
    ----------
    records : int
        Number of values, at least 1.
    failure : float
        Probability with which the mean may be off by more, in (0, 1).

    Returns
    -------
    float
        The smallest t with ``2 exp(-N d(t)) <= failure``, rounded up; at most 1. See `smallest_divergence` for d.

    Examples
    --------
    >>> round(bounded_width(100, 0.05), 4)
    0.1355
    """
    target = math.log(2.0 / failure) / records
    widest = min(1.0, math.sqrt(target / 2.0))
    return min(1.0, formula_up(bisect(lambda width: smallest_divergence(width) >= target, 0.0, widest, halvings=50)))


def smallest_divergence(difference: float) -> float:
    """Return the smallest relative entropy of two coins whose probabilities differ by t.

    Parameters
    ----------
    difference : float
        t, in (0, 1).

    Returns
    -------
    float
        ``d(t) = min over p of kl(p + t, p)`` in nats, rounded down; at least ``2 t^2``.

    Notes
    -----
    kl(p + t, p) is convex in p, so its derivative is bisected, and a tangent bounds the minimum in the bracket from
    below. (It is not symmetric in p: the minimum is not at ``p = (1 - t)/2``.)

    Examples
    --------
    >>> round(smallest_divergence(0.1), 6), round(0.1 * math.log(1.1 / 0.9), 6)
    (0.020045, 0.020067)
    """
    low, high = 0.0, 1.0 - difference
    best = 2.0 * difference**2
    for _ in range(60):
        p = (low + high) / 2.0
        q = p + difference
        if not 0.0 < p < q < 1.0:
            break
        up_ratio, down_ratio = math.log(q / p), math.log((1.0 - q) / (1.0 - p))
        slope = up_ratio - down_ratio - difference / (p * (1.0 - p))
        tangent = q * up_ratio + (1.0 - q) * down_ratio - abs(slope) * (high - low)
        best = max(best, tangent * (1.0 - 1e-9))
        low, high = (p, high) if slope < 0.0 else (low, p)
    return best


@lru_cache(maxsize=1024)
def bernoulli_width(records: int, failure: float) -> float:
    """Half-width for the mean of independent, identically distributed values in {0, 1}.

    Parameters
    ----------
    records : int
        Number of values, at least 1.
    failure : float
        Probability with which the mean may be off by more, in (0, 1).

    Returns
    -------
    float
        The smallest t at which `bernoulli_holds`, to a relative 1e-3 or so, rounded up; `bounded_width` for more than
        ten million records.

    Examples
    --------
    >>> bernoulli_width(100, 0.05) < bounded_width(100, 0.05)
    True
    """
    high = bounded_width(records, failure)
    if records > _MOST_RECORDS:
        return high
    if records > _MOST_ATOMS:
        return _many_records_width(records, failure, high)
    width = bisect(lambda width: bernoulli_holds(records, width, failure), 1e-9, high, close=within(1e-4))
    return min(1.0, width * (1.0 + 1e-9))


def _many_records_width(records: int, failure: float, most: float) -> float:
    """Guess the width from the tails at some means, then try widths slightly above until one holds for all means."""
    means = np.linspace(0.0, 0.5, 65)

    def holds(width: float) -> bool:
        above, below = _counts(records, means, means, width)
        return not np.any(_tails(records, above, below, means, means) > failure)

    guess = bisect(holds, 1e-9, most, close=within(1e-4))
    excess = 2.0 * _RESOLVED / (4.0 * records * guess**2)  # the tails fall by about twice what is resolved
    tried = (guess * (1.0 + times * excess) for times in (1, 2, 4, 8))
    holding = (width * (1.0 + 1e-9) for width in tried if width < most and bernoulli_holds(records, width, failure))
    return next(holding, most)


def bernoulli_holds(records: int, width: float, failure: float) -> bool:
    """Whether ``P(abs(Bin(N, p)/N - p) > t) <= failure`` for every p.

    Parameters
    ----------
    records : int
        N.
    width : float
        t, positive; a relative 1e-9 is added to it, which keeps means where two atoms enter together apart.
    failure : float
        In (0, 1).

    Returns
    -------
    bool
        ``True`` only when it holds for every p. For more than 2048 records ``False`` may be wrong when the largest
        probability is within some per cent of ``failure``.

    Notes
    -----
    By symmetry p <= 1/2 is enough. Between two means where an atom enters, at ``j/N - t`` or ``j/N + t``, the counts
    that are too far off stay the same, and for ``N t >= 1`` the probabilities of both tails are convex in p, so the
    ends of the interval are enough. Otherwise, and for many records, intervals are compared, see `_holds_by_intervals`.

    Examples
    --------
    >>> bernoulli_holds(355, 0.1, 0.05 / 281), bernoulli_holds(354, 0.1, 0.05 / 282)
    (True, False)
    """
    width *= 1.0 + 1e-9
    if records * width < 1.0:
        return _holds_by_intervals(records, width, failure, _RESOLVED * failure)
    if records > _MOST_ATOMS:
        return _holds_by_intervals(records, width, failure, _RESOLVED / (4.0 * records * width))
    atoms = np.arange(records + 1) / records
    edges = np.concatenate([[0.0, 0.5], atoms - width, atoms + width])
    edges = np.sort(edges[(edges >= 0.0) & (edges <= 0.5)])
    low, high = edges[:-1], edges[1:]
    middle = (low + high) / 2.0
    above, below = _counts(records, middle, middle, width)
    worst = max(float(np.max(_tails(records, above, below, ends, ends))) for ends in (low, high))
    return worst <= failure


def _holds_by_intervals(records: int, width: float, failure: float, smallest: float) -> bool:
    """Bound the probability on intervals [a, b] of means by ``P_b(Bin > N (a + t)) + P_a(Bin < N (b - t))``.

    Both tails are monotone in p. Intervals on which this is not small enough are halved, down to the smallest length.
    """
    edges = np.linspace(0.0, 0.5, 65)
    low, high = edges[:-1], edges[1:]
    while low.size:
        above, below = _counts(records, low, high, width)
        failing = _tails(records, above, below, low, high) > failure
        low, high = low[failing], high[failing]
        if low.size and (high[0] - low[0] < smallest or low.size > _MOST_INTERVALS):
            return False
        middle = (low + high) / 2.0
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return True


def splitting_width(model: DependenceModel, queries: int, beta: float, *, binary: bool = False) -> float:
    """Half-width of every answer when the holdout is split into one part per question.

    Parameters
    ----------
    model : graphs.DependenceModel
        Independent records, or independent groups of one size.
    queries : int
        k, the number of parts.
    beta : float
        Probability that any answer is off by more, in (0, 1).
    binary : bool
        Whether values are in {0, 1} and records independent, else in [0, 1].

    Returns
    -------
    float
        In units of the range; ``inf`` when there are not enough records or groups, groups of different sizes, or other
        dependence.

    Notes
    -----
    Groups go to parts whole, and count like single records with values in [0, 1]. Unequal groups can't be parted: see
    `thresholdout.mechanisms.record_parts.equal_groups`.

    Examples
    --------
    >>> from graphs import Independent
    >>> round(splitting_width(Independent(10_000), 1000, 0.05), 3)
    0.681
    """
    from graphs import Groups, Independent

    if isinstance(model, Independent):
        records = model.n // queries
        width = bernoulli_width if binary else bounded_width
        return width(records, beta / queries) if records else math.inf
    if binary or not isinstance(model, Groups) or not equal_sizes(model):
        return math.inf
    groups = len(model.independent_groups())
    return bounded_width(groups // queries, beta / queries) if groups >= queries else math.inf


@dataclass(frozen=True, slots=True)
class SplittingWidths:
    """Intervals of answers from a fresh part of the records each.

    Attributes
    ----------
    width : float
        Half-width of every answer, whatever its value.
    records : int
        N, the number of records, or groups, in the smallest part.
    log_level : float
        Natural logarithm of the probability with which either limit of an answer may fail.
    rounding : float
        By how much answers can be off from the means of the values as they were given.
    alone : bool
        Whether records are independent; then means of values that are 0 or 1 have exact binomial limits.

    Examples
    --------
    >>> widths = SplittingWidths(0.1, 1000, math.log(0.0025), 0.0)
    >>> [round(end, 3) for end in widths.interval(1, 0, "holdout", 0.97)]
    [0.947, 0.985]
    >>> [round(end, 3) for end in widths.interval_of_ones(0.97)]
    [0.952, 0.983]
    """

    width: float
    records: int
    log_level: float
    rounding: float
    alone: bool = True

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return the width."""
        return self.width

    def interval(
        self, query: int, hits: int, source: Literal["train", "holdout"], value: float, earlier: Earlier = None
    ) -> tuple[float, float]:
        """Return the truths that are possible given an answer; other answers do not matter."""
        low = entropy_lower(max(0.0, value - self.rounding), self.records, self.log_level) - self.rounding
        high = entropy_upper(min(1.0, value + self.rounding), self.records, self.log_level) + self.rounding
        return max(low, value - self.width), min(high, value + self.width)

    def interval_of_ones(self, value: float) -> tuple[float, float]:
        """Return the truths that are possible given a share of ones."""
        if not self.alone:
            return self.interval(1, 0, "holdout", value)
        count = round(value * self.records)
        return (
            binomial_lower(count, self.records, self.log_level) - self.rounding,
            binomial_upper(count, self.records, self.log_level) + self.rounding,
        )

    def expected(self, value: float) -> float:
        """Return the larger side of the interval of an answer with this value; of a share of ones, where it counts."""
        return larger_side(value, self.interval_of_ones(value))


def splitting_intervals(model: DependenceModel, queries: int, beta: float) -> SplittingWidths | None:
    """Return the intervals of a guard that splits the holdout; ``None`` where `splitting_width` is infinite.

    Parameters
    ----------
    model, queries, beta
        As in `splitting_width`.
    """
    from graphs import Independent

    width, rounding = splitting_width(model, queries, beta), record_rounding(model.n) + ULP
    if width == math.inf:
        return None
    alone = isinstance(model, Independent)
    sizes = None if alone else model.independent_groups()
    records = model.n if sizes is None else len(sizes)
    level = math.log(beta / (2.0 * queries)) - 1e-12
    return SplittingWidths(formula_up(width + rounding), records // queries, level, rounding, alone)


def equal_sizes(model: Groups) -> bool:
    """Whether all groups have the same number of records."""
    sizes = model.independent_groups()
    return bool(sizes.min() == sizes.max())


def splitting_routes(model: DependenceModel, queries: int | None, beta: float) -> tuple[Route, Route]:
    """Return the baseline for values in [0, 1] and for values in {0, 1}; neither is about the guard.

    Parameters
    ----------
    model, queries, beta
        As in `splitting_width`; without a limit for the queries there is no baseline.
    """
    return _baseline(model, queries, beta, binary=False), _baseline(model, queries, beta, binary=True)


def _baseline(model: DependenceModel, queries: int | None, beta: float, *, binary: bool) -> Route:
    name = "splitting, values 0 or 1" if binary else "splitting"
    if queries is None:
        why = "no limit is declared for queries"
        return Route.missing(name, why, sound=True, assumes=ASSUMES, source=SOURCE, guards=False)
    width = splitting_width(model, queries, beta, binary=binary)
    if width == math.inf:
        why = "the records are not independent, nor in as many independent groups of one size as there are questions"
        if binary and model.independent_groups() is not None:
            why = "records in groups have means that are not those of independent values 0 or 1"
        return Route.missing(name, why, sound=True, assumes=ASSUMES, source=SOURCE, guards=False)
    return Route(name, width, True, ASSUMES, SOURCE, guards=False, widths=ConstantWidth(width))


def _counts(records: int, low: Floats, high: Floats, width: float) -> tuple[Floats, Floats]:
    """Smallest count above ``N (low + t)``, and largest count below ``N (high - t)``."""
    return np.floor(records * (low + width)) + 1.0, np.ceil(records * (high - width)) - 1.0


def _tails(records: int, above: Floats, below: Floats, low: Floats, high: Floats) -> Floats:
    """``P_high(Bin >= above) + P_low(Bin <= below)``, rounded up."""
    from scipy.special import betainc, betaincc

    upper = betainc(above, np.maximum(records - above + 1.0, 0.5), high)
    lower = betaincc(np.maximum(below, 0.0) + 1.0, np.maximum(records - below, 0.5), low)
    return (np.where(above <= records, upper, 0.0) + np.where(below >= 0.0, lower, 0.0)) * _PROBABILITY
