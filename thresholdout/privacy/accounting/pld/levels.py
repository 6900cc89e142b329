"""Schedules of many noises from few lattices: a noise between two levels is a mixture of both, or the larger one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting.pld.loss import DominatingPair, Floats
from thresholdout.privacy.accounting.pld.pairs import GaussianMixture, OppositeShifts, Symmetrised

__all__ = ["Mixtures", "dominated", "dominating", "listed"]

_RULE = np.polynomial.legendre.leggauss(12)
_FARTHEST = 50.0  # distances of means beyond which a weight could be rounded down: the larger level is taken
_MOST = 1000  # different pairs of a kind that a lower bound distinguishes; it rounds the shifts of more down


@dataclass(frozen=True)
class Mixtures:
    """Steps that draw one of two pairs and reveal which, with the pairs' probabilities and numbers of repetitions.

    `columns` (steps, 2) holds the indices of each step's pairs, `weights` (steps, 2) their probabilities, the second of
    which may be 0.
    """

    pairs: list[DominatingPair]
    columns: NDArray[np.int64]
    weights: Floats
    counts: Floats


def listed(steps: Mapping[DominatingPair, int]) -> Mixtures:
    """Return the steps as they are."""
    return _mixtures(list(steps), steps, {pair: (i, i, 0.0) for i, pair in enumerate(steps)})


def _mixtures(
    pairs: list[DominatingPair],
    steps: Mapping[DominatingPair, int],
    rows: Mapping[DominatingPair, tuple[int, int, float]],
) -> Mixtures:
    """Return steps, each of which is the first of two pairs, or with some probability the second."""
    columns = np.array([rows[pair][:2] for pair in steps], dtype=np.int64)
    share = np.array([rows[pair][2] for pair in steps])
    counts = np.array(list(steps.values()), dtype=np.float64)
    return Mixtures(pairs, columns, np.stack((1.0 - share, share), axis=1), counts)


def _kind(pair: DominatingPair) -> Hashable:
    """Return the properties that pairs share if they differ in one shift only; None for other pairs."""
    if isinstance(pair, GaussianMixture) and len(pair.shifts) == 1:
        return pair.weights, pair.added, pair.omitted
    if isinstance(pair, Symmetrised) and len(pair.shifts) == 1:
        return pair.weights, pair.rate, pair.omitted
    if isinstance(pair, OppositeShifts):
        return pair.rate
    return None


def _shift(pair: DominatingPair) -> float:
    if isinstance(pair, OppositeShifts):
        return pair.shift
    assert isinstance(pair, (GaussianMixture, Symmetrised))
    return pair.shifts[0]


def _moved(pair: DominatingPair, shift: float) -> DominatingPair:
    if isinstance(pair, OppositeShifts):
        return replace(pair, shift=shift)
    assert isinstance(pair, (GaussianMixture, Symmetrised))
    return replace(pair, shifts=(shift,))


def _apart(pair: DominatingPair) -> float:
    """Return the distance of the means of a pair of shift 1."""
    return 2.0 if isinstance(pair, OppositeShifts) else 1.0


def _kinds(steps: Mapping[DominatingPair, int]) -> tuple[dict[Hashable, list[DominatingPair]], list[DominatingPair]]:
    """Return pairs that differ in one shift, ordered by it, and the rest."""
    found: dict[Hashable, list[DominatingPair]] = {}
    rest: list[DominatingPair] = []
    for pair in steps:
        kind = _kind(pair)
        if kind is None:
            rest.append(pair)
        else:
            found.setdefault(kind, []).append(pair)
    return {kind: sorted(pairs, key=_shift) for kind, pairs in found.items()}, rest


def _grid(least: float, most: float, wanted: float) -> Floats:
    """Return shifts from the least to the largest, so close that mixtures cost about a share of `wanted` of epsilon."""
    found = [most]
    while found[-1] > least:
        shift = found[-1]
        # The error of a mixture grows with the square of the distance of levels, more steeply for large shifts.
        square = min(shift**2, 50.0)
        steep = (1.0 + 2.0 * square) * (square / -math.expm1(-square) if square > 0 else 1.0)
        found.append(shift * (1.0 - min(math.sqrt(1.5 * wanted / steep), 0.2)))
    found[-1] = least
    return np.array(found[::-1])


def dominating(steps: Mapping[DominatingPair, int], wanted: float) -> Mixtures:
    """Return steps from fewer pairs that dominate the given ones, if many differ in one shift.

    A step whose means lie between s and s' apart is dominated by one that draws s or s' and reveals which, with the
    probabilities that keep the mean of ``Phi(distance / 2)`` (PROOFS.md, P7).
    """
    kinds, pairs = _kinds(steps)
    rows = {pair: (i, i, 0.0) for i, pair in enumerate(pairs)}
    for members in kinds.values():
        grid = _grid(_shift(members[0]), _shift(members[-1]), wanted)
        if grid.size >= len(members):
            for pair in members:
                rows[pair] = (len(pairs), len(pairs), 0.0)
                pairs.append(pair)
            continue
        first = len(pairs)
        pairs += [_moved(members[0], shift) for shift in grid.tolist()]
        for pair in members:
            above = int(np.clip(np.searchsorted(grid, _shift(pair)), 1, grid.size - 1))
            share = _share(*(_apart(pair) * np.array([grid[above - 1], _shift(pair), grid[above]])).tolist())
            rows[pair] = (first + above - 1, first + above, share)
    return _mixtures(pairs, steps, rows)


def _share(low: float, middle: float, high: float) -> float:
    """Return at least the weight of `high` with which the mean of ``Phi(shift / 2)`` is that of `middle`."""
    if high > _FARTHEST:
        return 1.0
    # Phi(s / 2) is the integral of exp(-x^2/8) up to a constant; a larger weight only raises the mixture.
    part, whole = _mass(low, middle), _mass(low, high)
    return min(1.0, part / whole * (1.0 + 1e-12)) if whole > 0 else 1.0


def _mass(low: float, high: float) -> float:
    """Return the integral of exp(-x^2/8) from low to high, with a relative error of some units."""
    width = high - low
    x, w = _RULE
    pieces = max(1, math.ceil(4.0 * width))
    edges = low + width * np.arange(pieces + 1) / pieces
    half, middle = 0.5 * width / pieces, 0.5 * (edges[1:] + edges[:-1])
    start = low * low / 8.0  # a common factor, so that nothing underflows at once
    with np.errstate(under="ignore"):
        return float((w * np.exp(start - (middle[:, None] + half * x) ** 2 / 8.0)).sum() * half)


def dominated(steps: Mapping[DominatingPair, int]) -> Mixtures:
    """Return steps from at most some thousand pairs of a kind that the given ones dominate: shifts are rounded down."""
    kinds, rest = _kinds(steps)
    if all(len(members) <= _MOST for members in kinds.values()):
        return listed(steps)
    found: dict[DominatingPair, int] = {pair: steps[pair] for pair in rest}
    for members in kinds.values():
        shifts = np.array([_shift(pair) for pair in members])
        grid = np.geomspace(shifts[0], shifts[-1], _MOST) if len(members) > _MOST else shifts
        grid[0] = shifts[0]
        for pair, at in zip(members, (np.searchsorted(grid, shifts, "right") - 1).tolist(), strict=True):
            lower = _moved(pair, min(float(grid[at]), _shift(pair)))
            found[lower] = found.get(lower, 0) + steps[pair]
    return listed(found)
