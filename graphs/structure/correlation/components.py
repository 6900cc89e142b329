"""Variance components: effects of groups, crossed or nested, and series inside units, without a matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import SUM_TOLERANCE, FloatArray, IntArray, as_real
from graphs.numerics.bisection import BoolArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.correlation.autoregressive import AutoregressiveCorrelation, ResponseOfSeries, check_coefficients
from graphs.structure.correlation.dense import given_values
from graphs.structure.correlation.interface import MOST_GIVEN, ConditionalBounds, Correlation
from graphs.structure.labelled_values import align, has_labels, numbered_labels, read

__all__ = ["VarianceComponents", "read_components"]

#: Most power steps for the largest eigenvalue, and the relative gap of its two bounds at which they end.
STEPS = 40
CLOSE = 1e-4

#: Most products of a record and a lag in one step.
MOST_PRODUCTS = 5_000_000

#: Smaller correlations of a series are bounded together.
NEGLIGIBLE = 1e-12


class VarianceComponents(Correlation):
    """Sums of independent effects: one for each group of each factor, a series inside each unit, noise."""

    def __init__(
        self,
        groups: tuple[IntArray, ...],
        shares: FloatArray,
        units: IntArray | None,
        coefficients: FloatArray,
        series_share: float,
        n: int,
    ) -> None:
        super().__init__(n)
        self._groups, self._shares = groups, shares
        self._units, self._coefficients, self._series_share = units, coefficients, series_share
        self._response = ResponseOfSeries(coefficients)
        total = math.fsum([*shares.tolist(), series_share])
        #: Share of independent noise: the diagonal is exactly 1 with the shares given.
        self._noise = max(1.0 - total, 0.0)

    def dominating(self) -> FloatArray:
        """Return the sum of diagonals above the components: group sizes, and those of the series."""
        found = np.full(self.n, up(self._noise, 4))
        for group, share in zip(self._groups, self._shares.tolist(), strict=True):
            found += share * np.bincount(group)[group]
        if self._units is not None:
            found += self._series_share * self._above_series
        return np.maximum(up(found, 3 * len(self._groups) + 8), 1.0)

    def radius(self) -> float:
        """Return the smallest of three bounds on the largest eigenvalue.

        They are the sum of the components' own bounds, the largest row sum of absolute values, and the bound of a
        vector near the eigenvector [Collatz, Wielandt] for a matrix that is not below the correlations in absolute
        value.
        """
        sizes = [int(np.bincount(group).max()) for group in self._groups]
        own = float(self._shares @ np.array(sizes, dtype=np.float64)) + self._noise
        if self._units is not None:
            longest = self._series(int(self._lengths.max()))
            own += self._series_share * longest.radius()
        best = up(own, 3 * len(sizes) + 8)
        if self._units is not None and self.n * len(self._lags[0]) > MOST_PRODUCTS:
            return min(best, float(self.dominating().max()))
        vector = np.ones(self.n)
        for _ in range(STEPS):
            moved = self._product_above(vector)
            ratios = moved / vector
            best = min(best, float(up(ratios, 4).max()))
            if not best > float(ratios.min()) * (1 + CLOSE):
                break
            vector = moved / moved.max()
        return max(best, 1.0)

    def least(self) -> float:
        """Return the share of the noise, and that of the series times its own; effects of groups may add nothing."""
        found = self._noise - 4 * UNIT  # the noise is 1 less the shares, a difference with absolute errors
        if self._units is not None:
            found += self._series_share * self._response.spectral_least
        return max(found * (1 - 8 * UNIT), 0.0)

    def component(self) -> IntArray:
        """Return the connected component of each record where groups and units join them."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        joins = [group for group, share in zip(self._groups, self._shares.tolist(), strict=True) if share > 0.0]
        if self._units is not None and self._series_share > 0.0 and self._coefficients.any():
            joins.append(self._units)
        if not joins:
            return np.arange(self.n)
        offsets = np.cumsum([self.n, *(int(group.max()) + 1 for group in joins)])
        columns = np.concatenate([group + offset for group, offset in zip(joins, offsets[:-1], strict=True)])
        rows = np.tile(np.arange(self.n), len(joins))
        size = int(offsets[-1])
        graph = csr_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
        labels = connected_components(graph, directed=False)[1][: self.n]
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw one effect for each group, a series for each unit, and noise."""
        drawn = math.sqrt(self._noise) * rng.standard_normal(self.n)
        for group, share in zip(self._groups, self._shares.tolist(), strict=True):
            drawn += math.sqrt(share) * rng.standard_normal(int(group.max()) + 1)[group]
        if self._units is not None:
            series = np.empty(self.n)
            ends = np.cumsum(self._lengths)
            for length in np.unique(self._lengths).tolist():
                starts = (ends - self._lengths)[self._lengths == length]
                found = self._series(length).sample_units(rng, len(starts))
                series[starts[:, None] + np.arange(length)] = found
            drawn[self._order] += math.sqrt(self._series_share) * series
        return drawn

    def content(self) -> Mapping[str, Any]:
        """Return groups, shares, units and coefficients."""
        found: dict[str, Any] = {f"groups {place}": group for place, group in enumerate(self._groups)}
        if self._units is not None:
            found |= {"units": self._units, "coefficients": self._coefficients, "series": self._series_share}
        return found | {"n": self.n, "shares": self._shares}

    def describe(self) -> str:
        """Return a few words."""
        words = [
            f"{share:.3g} of {int(g.max()) + 1} groups" for g, share in zip(self._groups, self._shares, strict=True)
        ]
        if self._units is not None:
            words.append(f"{self._series_share:.3g} of series in {len(self._lengths)} units")
        if self._noise > 0.0:
            words.append(f"{self._noise:.3g} of noise")
        return f"variance components ({', '.join(words)})"

    def dense(self) -> FloatArray:
        """Return the correlation matrix."""
        return self._matrix(np.arange(self.n))

    def given(self, members: IntArray, known: BoolArray) -> ConditionalBounds | None:
        """Return bounds for the unknown values of a small component."""
        if len(members) > MOST_GIVEN:
            return None
        off = 4.0 * (len(self._shares) + 4) * UNIT
        if self._units is not None:
            off += self._series(int(self._lengths.max())).entry_error
        return given_values(self._matrix(members), known, off)

    def _matrix(self, members: IntArray) -> FloatArray:
        """Return the correlations of some records."""
        matrix = np.zeros((len(members), len(members)))
        for group, share in zip(self._groups, self._shares.tolist(), strict=True):
            matrix += share * (group[members][:, None] == group[members])
        if self._units is not None:
            along = self._series(int(self._lengths.max())).first_row()
            place = np.empty(self.n, dtype=np.int64)
            place[self._order] = self._places
            unit, place = self._units[members], place[members]
            matrix += self._series_share * (unit[:, None] == unit) * along[np.abs(place[:, None] - place)]
        np.fill_diagonal(matrix, 1.0)
        return matrix

    # Series inside units -----------------------------------------------------------------------------------

    def _series(self, length: int) -> AutoregressiveCorrelation:
        return AutoregressiveCorrelation(self._coefficients, length, self._response)

    @cached_property
    def _order(self) -> IntArray:
        """Records by unit, inside a unit in their order."""
        assert self._units is not None
        return np.argsort(self._units, kind="stable").astype(np.int64)

    @cached_property
    def _lengths(self) -> IntArray:
        """Number of records of each unit."""
        assert self._units is not None
        return np.bincount(self._units).astype(np.int64)

    @cached_property
    def _places(self) -> IntArray:
        """Place of each record in its unit, by unit."""
        starts = np.cumsum(self._lengths) - self._lengths
        places: IntArray = np.arange(self.n) - np.repeat(starts, self._lengths)
        return places

    @cached_property
    def _above_series(self) -> FloatArray:
        """Diagonal above the series of each record's unit, one computation for each length."""
        by_unit = np.empty(self.n)
        ends = np.cumsum(self._lengths)
        for length in np.unique(self._lengths).tolist():
            diagonal = self._series(length).dominating()
            starts = (ends - self._lengths)[self._lengths == length]
            by_unit[starts[:, None] + np.arange(length)] = diagonal
        found = np.empty(self.n)
        found[self._order] = by_unit
        return found

    @cached_property
    def _lags(self) -> tuple[FloatArray, float]:
        """Bounds on the absolute correlations at the lags 1, 2, ..., and on twice the sum of all beyond those."""
        longest = int(self._lengths.max())
        found = AutoregressiveCorrelation(self._coefficients, longest).response.absolute_correlations(longest)[1:]
        most = int(np.flatnonzero(found > NEGLIGIBLE).max(initial=-1)) + 1
        return found[:most], up(2.0 * float(found[most:].sum()), longest)

    def _product_above(self, vector: FloatArray) -> FloatArray:
        """Return an upper bound on the absolute correlations times a vector of positive numbers."""
        found = self._noise * vector
        for group, share in zip(self._groups, self._shares.tolist(), strict=True):
            found = found + share * np.bincount(group, weights=vector)[group]
        if self._units is None:
            return up(found, self.n + 8)
        ordered = vector[self._order]
        lags, beyond = self._lags
        sums = ordered + beyond * float(ordered.max())
        for lag, size in enumerate(lags.tolist(), start=1):
            inside = self._places[lag:] >= lag
            sums[lag:] += size * inside * ordered[:-lag]
            sums[:-lag] += size * inside * ordered[lag:]
        found[self._order] += self._series_share * sums
        return up(found, self.n + len(lags) + 8)


def read_components(labels: Any, shares: Any, series: Any, coefficients: Any, noise: Any) -> VarianceComponents:
    """Return the variance components given by the arguments of `GaussianField.components`."""
    groups = _groups_of(labels)
    n = len(next(iter(groups.values())))
    if not has_labels(shares):
        raise ArgumentError("shares", repr(shares), "a mapping from each factor to its share")
    found = {name: _share("shares", value) for name, value in dict(shares).items()}
    for name in found:
        if name not in groups:
            seen = f"a share of {name!r}, which has no labels"
            raise ArgumentError("shares", seen, f"a mapping of {list(groups)}")
    for name in groups:
        if name not in found and name != series:
            raise ArgumentError("shares", f"none of {name!r}", "a mapping of every factor with labels", "0 is a share.")
    if (series is None) != (coefficients is None):
        given, missing = ("coefficients", "series") if series is None else ("series", "coefficients")
        advice = "Pass both for a series inside units, or neither."
        raise ArgumentError(missing, "nothing", f"a value beside {given}=", advice)
    if series is not None and (not isinstance(series, str) or series not in groups):
        raise ArgumentError("series", repr(series), f"one of the factors {list(groups)}")
    if series is None and noise is not None:
        advice = "The noise then has the share that the factors leave."
        raise ArgumentError("noise", repr(noise), "None without a series", advice)
    of_noise = 0.0 if noise is None else _share("noise", noise)
    total = math.fsum([*found.values(), of_noise])
    if total > 1.0 + SUM_TOLERANCE:
        raise ArgumentError("shares", f"{total:.10g} in all", "at most 1 in all")
    kept = {name: share for name, share in found.items() if share > 0.0}
    return VarianceComponents(
        tuple(groups[name] for name in kept),
        np.array(list(kept.values()), dtype=np.float64),
        None if series is None else groups[series],
        check_coefficients(0.0 if coefficients is None else coefficients),
        0.0 if series is None else max(1.0 - total, 0.0),
        n,
    )


def _groups_of(labels: Any) -> dict[str, IntArray]:
    """Return the number of each record's group, for each factor."""
    expected = "a mapping from each factor to the group of each record, or a table with a column for each"
    if hasattr(labels, "columns"):
        columns = {name: labels[name].to_numpy() for name in labels.columns}
    elif isinstance(labels, Mapping):
        columns = dict(labels)
    else:
        raise ArgumentError("labels", repr(labels), expected)
    if not columns:
        raise ArgumentError("labels", "no factor", expected)
    aligned = align(
        [read("labels", values, "a sequence with one label for each record") for values in columns.values()]
    )
    groups = {name: numbered_labels("labels", items)[0] for name, items in zip(columns, aligned, strict=True)}
    lengths = {name: len(group) for name, group in groups.items()}
    if len(set(lengths.values())) > 1:
        seen = f"different numbers of records: {lengths}"
        raise ArgumentError("labels", seen, "one label of each factor for each record")
    return groups


def _share(argument: str, value: Any) -> float:
    number = as_real(value)
    if number is None or not 0.0 <= number <= 1.0:
        raise ArgumentError(argument, repr(value), "a share of the variance from 0 to 1")
    return number
