"""Dominating pairs of Gaussian steps on sampled minibatches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from graphs.numerics.rounding import UNIT
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, positive, probability
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import batch, rate, sigma_of
from thresholdout.privacy.accounting.pld.loss import DominatingPair, Floats, Loss, reach
from thresholdout.privacy.accounting.pld.pairs import GaussianMixture, OppositeShifts, Symmetrised

__all__ = [
    "ReplacedDraws",
    "draws",
    "fswor_pairs",
    "fswr_pairs",
    "poisson_pairs",
    "profile",
]

_POINTS = 800  # outcomes at which the divergence is evaluated; any choice is valid

_FARTHEST = 600.0  # nats; losses beyond count as infinite

_DOUBT = 1e-12  # more than the relative rounding errors of sums and tails

_UNDERFLOW = 1e-290  # more than all terms that are too small for floats


@dataclass(frozen=True)
class ReplacedDraws:
    """A pair that dominates a step on a batch drawn with replacement, in both directions, when one record is replaced.

    The outcome does not reveal how often the record is drawn, unlike in `Symmetrised` [PROOFS.md, P9]. Shifts of 1, 2,
    ... draws increase, and the weights are their probabilities. `omitted` is the probability of more draws, which
    counts as infinite loss.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    omitted: float = 0.0

    def __post_init__(self) -> None:
        if len(self.shifts) != len(self.weights) or not self.shifts:
            seen = f"{len(self.shifts)} shifts and {len(self.weights)} weights"
            raise InputError("shifts, weights", seen, "of equal length, at least 1")
        for name, values in (("shifts", self.shifts), ("weights", self.weights)):
            for value in values:
                positive(value, name)
        if any(shift >= larger for shift, larger in pairwise(self.shifts)):
            raise InputError("shifts", repr(self.shifts), "increasing shifts of 1, 2, ... draws")
        if math.fsum(self.weights) + probability(self.omitted, "omitted") >= 1.0:
            expected = "probabilities whose sum with `omitted` is below 1"
            raise InputError("weights", f"the sum {math.fsum(self.weights)!r}", expected)

    @property
    def anchor(self) -> float | None:
        """No loss stands out."""
        return None

    def loss(self, tail: float) -> Loss:
        """Return the privacy loss; `tail` is the probability that may be left out."""
        atoms, infinite = _masses(self, tail)
        return Loss((), atoms, infinite=infinite)


def profile(shifts: Floats, weights: Floats, outcomes: Floats) -> tuple[Floats, Floats]:
    """Return points ``g - 1`` and bounds of the divergence ``H_g`` there, rounded up.

    Examples
    --------
    >>> gaps, bounds = profile(np.array([1.0]), np.array([0.5]), np.array([0.5]))
    >>> float(gaps[0]), float(bounds[0].round(9))  # 1/2 the distance of N(1, 1) and N(0, 1)
    (0.0, 0.191462461)
    """
    never = max(0.0, 1.0 - math.fsum(weights.tolist()) - 4.0 * UNIT)  # a_0 of PROOFS.md, P9, rounded down
    excess = np.expm1(shifts * (outcomes[:, None] - 0.5 * shifts))
    # e_K(t) for each K: its largest value is the g - 1 for which t is the crossing.
    means = np.cumsum(weights * excess, axis=1) / (never + np.cumsum(weights))
    gaps = np.maximum(means.max(axis=1), 0.0)
    hidden = np.arange(shifts.size) <= np.where(gaps > 0, means.argmax(axis=1), -1)[:, None]
    middle = 0.5 * shifts - np.log1p(gaps)[:, None] / shifts
    # The outcome itself separates hidden numbers of draws; each known number has its own likelihood ratio.
    under = ndtr(np.where(hidden, shifts - outcomes[:, None], middle)) @ weights
    beyond = ndtr(np.where(hidden, -outcomes[:, None], middle - shifts)) @ weights
    bounds = under - beyond - gaps * (beyond + never * ndtr(-outcomes))
    bounds = np.maximum(bounds, 0.0) + 2.0 * _DOUBT * under
    return gaps, bounds * (1.0 + _DOUBT) + _UNDERFLOW


def _outcomes(shifts: Floats, weights: Floats, tail: float) -> Floats:
    """Return outcomes from where the ratio is 1 to where the divergence is below a probability, or losses end."""
    low = 0.5 * float(shifts[0])
    last = float((_FARTHEST / shifts + 0.5 * shifts).min())
    middle = min(last, low + reach(tail))
    end = middle
    while end < last and float(profile(shifts, weights, np.array([end]))[1][0]) > tail:
        end = min(last, low + 1.2 * (end - low))
    near = np.linspace(low, middle, _POINTS)
    return near if end <= middle else np.append(near, middle + (end - middle) * np.geomspace(1e-3, 1.0, _POINTS // 4))


@lru_cache(maxsize=64)
def _masses(pair: ReplacedDraws, tail: float) -> tuple[tuple[tuple[float, float], ...], float]:
    """Return the atoms of the pair, and the mass of infinite loss."""
    certain = 1.0 - pair.omitted
    shifts, weights = np.array(pair.shifts), np.array(pair.weights) / certain * (1.0 + 8 * UNIT)
    gaps, bounds = profile(shifts, weights, _outcomes(shifts, weights, tail))
    held = _hull(gaps, bounds)  # the divergence is convex in g, so it is below the hull of upper bounds
    gaps, bounds = gaps[held], bounds[held]
    rest = float(bounds[-1])
    # Changes of slope times 1 + gap, which are masses under P: those under Q may be too small for floats.
    ratios, apart, falls = 1.0 + gaps, np.diff(gaps), -np.diff(bounds)
    masses = falls * (ratios[1:] / apart) - np.append(falls[1:] * (ratios[1:-1] / apart[1:]), 0.0)
    masses = np.maximum(masses, 0.0)
    # The function that these masses give is summed without cancellation, and raised to the bound at each point.
    given, above, least = rest, 0.0, 1.0
    for k in range(gaps.size - 2, -1, -1):
        above += float(masses[k])  # masses under Q of all larger losses, times the ratio of the next point
        given += float(apart[k] / ratios[k + 1]) * above
        above *= float(ratios[k] / ratios[k + 1])
        least = max(least, float(bounds[k]) / given)
    least *= 1.0 + _DOUBT
    atoms = []
    for gap, chance in zip(gaps[1:].tolist(), (least * masses).tolist(), strict=True):
        size = math.log1p(gap) * (1.0 + 8 * UNIT)
        # The mirror image makes a pair of the profile; its losses are raised too, so they are closer to 0.
        atoms += [(size, chance * (1.0 + 8 * UNIT)), (-size * (1.0 - 16 * UNIT), chance / (1.0 + gap))]
    rest *= least * (1.0 + 8 * UNIT)
    left = max(0.0, 1.0 - rest - math.fsum(chance for _, chance in atoms)) + 8 * UNIT
    return (*atoms, (0.0, left)), rest + pair.omitted


def _hull(x: Floats, y: Floats) -> list[int]:
    """Return the corners of the largest convex function below some points."""
    found: list[int] = []
    for k in range(x.size):
        while len(found) > 1 and (y[found[-1]] - y[found[-2]]) * (x[k] - x[found[-1]]) >= (y[k] - y[found[-1]]) * (
            x[found[-1]] - x[found[-2]]
        ):
            found.pop()
        if not found or x[k] > x[found[-1]]:
            found.append(k)
    return found


_OMITTED = 1e-30  # probability of numbers of draws that are left out of a step

_FAR = 1e-18  # probability of too large losses up to which a pair of hidden draws is used

ADJACENCIES = ("add_remove", "replace_one")


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)


def fswor_pairs(sigma: float, q: float, adjacency: str = "add_remove") -> tuple[DominatingPair, ...]:
    """Return the dominating pairs, one for each direction, of a step on a batch drawn without replacement.

    Add/remove is exact, replace-one an upper bound that a single step attains (PROOFS.md, P2 and P5).
    """
    shift, share = _up(2.0 / sigma_of(sigma)), rate(q, None, None)  # a fixed size: a record replaces another
    if chosen(adjacency, "adjacency", ADJACENCIES) == "replace_one":
        return (Symmetrised((shift,), (1.0,), share),)
    return tuple(GaussianMixture((shift,), (share,), added) for added in (False, True))


def poisson_pairs(sigma: float, q: float, adjacency: str = "add_remove") -> tuple[DominatingPair, ...]:
    """Return the dominating pairs, one for each direction, of a step on a Poisson minibatch.

    Both are attained, in all steps at once (PROOFS.md, P2 and P6).
    """
    shift, share = _up(1.0 / sigma_of(sigma)), rate(q, None, None)  # a record is there or not: half of that
    if chosen(adjacency, "adjacency", ADJACENCIES) == "replace_one":
        return (OppositeShifts(shift, share),)
    return tuple(GaussianMixture((shift,), (share,), added) for added in (False, True))


def draws(batch_size: int, dataset_size: int, omitted: float = _OMITTED) -> tuple[float, ...]:
    """Return probabilities that a record is drawn 1, 2, ... times with replacement, until the rest is negligible."""
    size, n = batch(batch_size, dataset_size)
    found = []
    chance = math.exp(size * math.log1p(-1.0 / n))
    for k in range(1, size + 1):
        chance *= (size - k + 1) / (k * (n - 1))
        found.append(chance * (1.0 + UNIT * (32.0 + 8.0 * k)))
        # Each further probability is at most a share of the one before, so the rest is a geometric series.
        share = (size - k) / ((k + 1) * (n - 1))
        if share < 0.5 and 2.0 * found[-1] * share < omitted:
            break
    return tuple(found)


def fswr_pairs(
    sigma: float, batch_size: int, dataset_size: int, adjacency: str = "add_remove", omitted: float = _OMITTED
) -> tuple[DominatingPair, ...]:
    """Return the dominating pairs, one for each direction, of a step on a batch drawn with replacement."""
    shift = 2.0 / sigma_of(sigma)
    weights = draws(batch_size, dataset_size, omitted)
    left = omitted if len(weights) < batch_size else 0.0
    shifts = tuple(_up(shift * n) for n in range(1, len(weights) + 1))
    if chosen(adjacency, "adjacency", ADJACENCIES) == "add_remove":
        return tuple(GaussianMixture(shifts, weights, added, left) for added in (False, True))
    hidden = ReplacedDraws(shifts, weights, left)
    if len(weights) > 1 and hidden.loss(0.1 * _FAR).infinite <= left + _FAR:
        return (hidden,)
    # With hardly any noise, or one draw, the number of draws may be known. The rate also counts draws that are left
    # out. Neither weights nor the rate may be rounded down: masses above 1 are bounds all the same.
    listed = math.fsum(weights)
    total = min(1.0, (listed + left) * (1.0 + 1e-15))
    known = tuple(weight / listed * (1.0 + 2.0**-50) for weight in weights)
    return (Symmetrised(shifts, known, total, left),)
