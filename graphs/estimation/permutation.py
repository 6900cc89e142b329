"""Permutation tests of independence against an order, groups, or a graph.

If records are exchangeable, every assignment of the values to the records is equally likely. The share of assignments
with at least the observed dependence is therefore a valid p-value for any law of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray, check_count
from graphs.progress_bar import progress_bar

__all__ = [
    "PermutationTest",
    "autocorrelation",
    "autocorrelations",
    "centred",
    "holm",
    "intraclass_correlation",
    "morans_i",
]


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """One test of independence."""

    name: str
    effect: float  # on the scale of a correlation: about 0 for independent records, at most 1
    p_value: float  # share of permutations with at least this effect, the data themselves counted as one
    null: FloatArray  # shape (permutations,): effect sizes of the permuted data

    @property
    def strength(self) -> str:
        """The effect in a word, by Cohen's conventions for correlations (0.1, 0.3, 0.5)."""
        words = ("next to none", "weak", "moderate", "strong")
        return words[int(np.searchsorted([0.1, 0.3, 0.5], abs(self.effect), side="right"))]


def autocorrelation(columns: FloatArray, permutations: int, rng: np.random.Generator, lags: int = 1) -> PermutationTest:
    """Test for autocorrelation in a series by the largest absolute autocorrelation over several lags."""
    count = check_count("lags", lags)
    if count >= len(columns):
        raise ArgumentError("lags", f"{count} for {len(columns)} records", "less than the number of records")
    scaled = centred(columns)
    lag = 1 + int(np.argmax(np.abs(autocorrelations(scaled, count))))

    def largest(v: FloatArray) -> float:
        found = autocorrelations(v, count)
        return float(found[np.argmax(np.abs(found))])

    return _tested(f"order: autocorrelation at lag {lag}", scaled, largest, permutations, rng)


def autocorrelations(columns: FloatArray, lags: int) -> FloatArray:
    """Return the autocorrelations at lags 1 to `lags` of centred features whose squares sum to one.

    >>> autocorrelations(np.array([[0.5], [-0.5], [0.5], [-0.5]]), 2)
    array([-0.75,  0.5 ])
    """
    return np.array([float(np.vdot(columns[k:], columns[:-k])) for k in range(1, lags + 1)])


def morans_i(
    columns: FloatArray,
    edges: IntArray,
    permutations: int,
    rng: np.random.Generator,
    name: str = "graph: Moran's I",
) -> PermutationTest:
    """Test whether neighbours in a graph are correlated: Moran's I, two-sided [Moran 1950]."""
    if not len(edges):
        raise ArgumentError("graph", "a graph without edges", "a graph with at least one edge")
    scale = len(columns) / len(edges)
    left, right = edges[:, 0], edges[:, 1]
    return _tested(
        name,
        centred(columns),
        lambda v: scale * float(np.einsum("ij,ij->", v[left], v[right])),
        permutations,
        rng,
    )


def intraclass_correlation(
    columns: FloatArray, groups: IntArray, permutations: int, rng: np.random.Generator
) -> PermutationTest:
    """Test whether members of a group are correlated: intra-class correlation, one-sided."""
    sizes = np.bincount(groups).astype(np.float64)
    n, count = float(sizes.sum()), len(sizes)
    if count < 2 or count == n:
        seen = "one group only" if count < 2 else "groups of one record each"
        raise ArgumentError("groups", seen, "at least two groups, one of them with two records")
    size = (n - float((sizes**2).sum()) / n) / (count - 1)
    order = np.argsort(groups, kind="stable")
    starts = np.r_[0, np.cumsum(sizes[:-1])].astype(np.int64)

    def correlation(v: FloatArray) -> float:
        sums = np.add.reduceat(v[order], starts, axis=0)
        between_sum = float((sums**2 / sizes[:, None]).sum())
        between, within = between_sum / (count - 1), max(1 - between_sum, 0.0) / (n - count)
        return (between - within) / (between + (size - 1) * within)

    return _tested("groups: intra-class correlation", centred(columns), correlation, permutations, rng, one_sided=True)


def holm(p_values: FloatArray) -> FloatArray:
    """Return p-values adjusted for several tests [Holm 1979]."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    result = np.empty_like(adjusted)
    result[order] = adjusted
    return result


def centred(columns: FloatArray) -> FloatArray:
    """Return columns with mean zero, and a total sum of squares of one."""
    shifted = columns - columns.mean(axis=0)
    total = float((shifted**2).sum())
    if not total > 0:
        raise ArgumentError("values", "the same value for all records", "values that differ")
    scaled: FloatArray = shifted / np.sqrt(total)
    return scaled


def _tested(
    name: str,
    columns: FloatArray,
    statistic: Callable[[FloatArray], float],
    permutations: int,
    rng: np.random.Generator,
    one_sided: bool = False,
) -> PermutationTest:
    count = check_count("permutations", permutations)
    seen = statistic(columns)
    drawn = progress_bar(range(count), doing="permutations", unit="permutations")
    null = np.array([statistic(columns[rng.permutation(len(columns))]) for _ in drawn])
    if one_sided:
        extreme = null >= seen - 1e-12
    else:
        centre = (float(null.sum()) + seen) / (count + 1)
        extreme = np.abs(null - centre) >= abs(seen - centre) - 1e-12
    return PermutationTest(name, seen, (1 + int(extreme.sum())) / (1 + count), null)
