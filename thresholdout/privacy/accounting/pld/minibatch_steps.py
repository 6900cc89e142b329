"""Privacy of Gaussian steps on sampled minibatches, by privacy-loss distributions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from graphs.numerics.rounding import UNIT
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, open_unit
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import batch, rate, sigma_of
from thresholdout.privacy.accounting.pld.distribution import Interval, PrivacyLossDistribution, worst_epsilon
from thresholdout.privacy.accounting.pld.gaussian_pairs import GaussianMixture, OppositeShifts, Symmetrised
from thresholdout.privacy.accounting.pld.loss import DominatingPair
from thresholdout.privacy.accounting.pld.replaced_draws import ReplacedDraws

__all__ = ["draws", "fswor_pairs", "fswr_pairs", "pld_fswor", "pld_fswr", "pld_poisson", "poisson_pairs"]

_OMITTED = 1e-30  # probability of numbers of draws that are left out of a step
_FAR = 1e-18  # probability of losses that are too large for a pair of hidden draws
ADJACENCIES = ("add_remove", "replace_one")


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)


def fswor_pairs(sigma: float, q: float, adjacency: str = "add_remove") -> tuple[DominatingPair, ...]:
    """Return the dominating pairs, one for each direction, of a step on a batch drawn without replacement.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on the sum of gradients, over the clipping norm.
    q : float
        Batch size over data set size (of the larger data set), in (0, 1).
    adjacency : {"add_remove", "replace_one"}
        Which data sets are neighbours.

    Returns
    -------
    tuple of DominatingPair
        Compose each of them with itself; the privacy is the worst of these compositions.

    Raises
    ------
    InputError, InputTypeError
        For values out of range.

    Notes
    -----
    Add/remove is exact, replace-one an upper bound that a single step attains. PROOFS.md, P2 and P5.

    Examples
    --------
    >>> len(fswor_pairs(6.0, 0.0024)), len(fswor_pairs(6.0, 0.0024, "replace_one"))
    (2, 1)
    """
    shift, share = _up(2.0 / sigma_of(sigma)), rate(q, None, None)
    if chosen(adjacency, "adjacency", ADJACENCIES) == "replace_one":
        return (Symmetrised((shift,), (1.0,), share),)
    return tuple(GaussianMixture((shift,), (share,), added) for added in (False, True))


def poisson_pairs(sigma: float, q: float, adjacency: str = "add_remove") -> tuple[DominatingPair, ...]:
    """Return the dominating pairs, one for each direction, of a step on a Poisson minibatch.

    Parameters
    ----------
    sigma, q, adjacency
        As in `fswor_pairs`; q is the probability of each record.

    Returns
    -------
    tuple of DominatingPair
        Compose each of them with itself; the privacy is the worst of these compositions.

    Raises
    ------
    InputError, InputTypeError
        For values out of range.

    Notes
    -----
    Both are attained, in all steps at once. PROOFS.md, P2 and P6.

    Examples
    --------
    >>> len(poisson_pairs(6.0, 0.0024)), len(poisson_pairs(6.0, 0.0024, "replace_one"))
    (2, 1)
    """
    shift, share = _up(1.0 / sigma_of(sigma)), rate(q, None, None)
    if chosen(adjacency, "adjacency", ADJACENCIES) == "replace_one":
        return (OppositeShifts(shift, share),)
    return tuple(GaussianMixture((shift,), (share,), added) for added in (False, True))


def draws(batch_size: int, dataset_size: int, omitted: float = _OMITTED) -> tuple[float, ...]:
    """Return probabilities that a record is drawn 1, 2, ... times with replacement, until the rest is negligible.

    Parameters
    ----------
    batch_size, dataset_size : int
        Number of draws, and of records.
    omitted : float
        Bound on the probability of more draws than are listed.

    Examples
    --------
    >>> [round(p, 6) for p in draws(2, 4)]
    [0.375, 0.0625]
    """
    size, n = batch(batch_size, dataset_size)
    found = []
    chance = math.exp(size * math.log1p(-1.0 / n))
    for k in range(1, size + 1):
        chance *= (size - k + 1) / (k * (n - 1))
        found.append(chance * (1.0 + UNIT * (32.0 + 8.0 * k)))
        # Each further one is at most a share of the one before.
        share = (size - k) / ((k + 1) * (n - 1))
        if share < 0.5 and 2.0 * found[-1] * share < omitted:
            break
    return tuple(found)


def fswr_pairs(
    sigma: float, batch_size: int, dataset_size: int, adjacency: str = "add_remove", omitted: float = _OMITTED
) -> tuple[DominatingPair, ...]:
    """Return the dominating pairs, one for each direction, of a step on a batch drawn with replacement.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on the sum of gradients, over the clipping norm.
    batch_size, dataset_size : int
        Number of draws, and of records in the larger data set.
    adjacency : {"add_remove", "replace_one"}
        Which data sets are neighbours.
    omitted : float
        Bound on the probability of numbers of draws that are left out; it is charged to delta for each step.

    Returns
    -------
    tuple of DominatingPair
        Compose each of them with itself; the privacy is the worst of these compositions.

    Raises
    ------
    InputError, InputTypeError
        For values out of range.

    Examples
    --------
    >>> len(fswr_pairs(6.0, 1, 100))
    2
    """
    shift = 2.0 / sigma_of(sigma)
    weights = draws(batch_size, dataset_size, omitted)
    left = omitted if len(weights) < batch_size else 0.0
    shifts = tuple(_up(shift * n) for n in range(1, len(weights) + 1))
    if chosen(adjacency, "adjacency", ADJACENCIES) == "add_remove":
        return tuple(GaussianMixture(shifts, weights, added, left) for added in (False, True))
    hidden = ReplacedDraws(shifts, weights, left)
    if len(weights) > 1 and hidden.loss(0.1 * _FAR).infinite <= left + _FAR:
        return (hidden,)
    # With hardly any noise, or one draw, the number of draws may be known. The rate counts draws that are left out,
    # too; rounded so that neither labels nor the rate are too small: masses above 1 are bounds all the same.
    listed = math.fsum(weights)
    total = min(1.0, (listed + left) * (1.0 + 1e-15))
    known = tuple(weight / listed * (1.0 + 2.0**-50) for weight in weights)
    return (Symmetrised(shifts, known, total, left),)


Noise = float | Sequence[float] | np.ndarray[Any, Any]


def _schedule(sigma: Any, steps: Any) -> list[tuple[float, int]]:
    """Return noise multipliers and how many steps use each."""
    if isinstance(sigma, Real):
        return [(sigma_of(sigma), count(steps, "steps"))]
    values = [sigma_of(value) for value in sigma]
    if not values:
        raise InputError("sigma", "an empty schedule", "at least one noise multiplier")
    if np.ndim(steps) == 0:
        times = [1] * len(values) if steps is None else [count(steps, "steps")] * len(values)
    else:
        times = [count(value, "steps") for value in steps]
    if len(times) != len(values):
        raise InputError("steps", f"{len(times)} counts", f"one for each of {len(values)} noise multipliers")
    return list(zip(values, times, strict=True))


def _epsilon(directions: Iterable[Sequence[tuple[DominatingPair, int]]], delta: float, accuracy: float) -> Interval:
    found = []
    for steps in directions:
        counts: dict[DominatingPair, int] = {}
        for pair, times in steps:
            counts[pair] = counts.get(pair, 0) + times
        found.append(PrivacyLossDistribution(counts))
    return worst_epsilon(found, delta, accuracy)


def pld_fswor(
    sigma: Noise,
    steps: int | Sequence[int] | None,
    delta: float,
    *,
    q: float | None = None,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    adjacency: str = "add_remove",
    accuracy: float = 1e-5,
) -> Interval:
    """Return epsilon of Gaussian steps on fresh batches of a fixed size, drawn without replacement.

    Parameters
    ----------
    sigma : float or sequence of float
        Standard deviation of the noise on the sum of gradients, over the clipping norm; one, or a schedule.
    steps : int or sequence of int
        Number of steps, for each entry of the schedule; None for one step each.
    delta : float
        In (0, 1).
    q : float, optional
        Batch size over data set size, in (0, 1); or give both sizes.
    batch_size, dataset_size : int, optional
        ``1 <= batch_size < dataset_size``; of two neighbours, the larger data set.
    adjacency : {"add_remove", "replace_one"}
        Which data sets are neighbours.
    accuracy : float
        Wanted relative distance of the bounds.

    Returns
    -------
    Interval
        Unpacks into lower bound, estimate and upper bound, in nats. For replace-one these are bounds on epsilon of
        the symmetrised pair, which dominates the mechanism; epsilon of add/remove is attained under replace-one too.

    Raises
    ------
    InputError, InputTypeError
        For values out of range.

    Notes
    -----
    Each step must draw a fresh batch; a loader that shuffles once per epoch is not covered.

    Examples
    --------
    >>> lower, estimate, upper = pld_fswor(2.0, 1000, 1e-5, batch_size=64, dataset_size=10_000)
    >>> round(estimate, 4)
    1.1281
    """
    share = rate(q, batch_size, dataset_size)
    schedule = [(fswor_pairs(value, share, adjacency), times) for value, times in _schedule(sigma, steps)]
    return _epsilon(_directions(schedule), delta, accuracy)


def _directions(
    schedule: list[tuple[tuple[DominatingPair, ...], int]],
) -> list[list[tuple[DominatingPair, int]]]:
    return [[(pairs[way], times) for pairs, times in schedule] for way in range(len(schedule[0][0]))]


def pld_fswr(
    sigma: Noise,
    steps: int | Sequence[int] | None,
    delta: float,
    *,
    batch_size: int,
    dataset_size: int,
    adjacency: str = "add_remove",
    accuracy: float = 1e-5,
) -> Interval:
    """Return epsilon of Gaussian steps on batches drawn with replacement.

    Parameters
    ----------
    sigma, steps, delta, batch_size, dataset_size, adjacency, accuracy
        As in `pld_fswor`.

    Returns
    -------
    Interval
        Unpacks into lower bound, estimate and upper bound, in nats, of the dominating pairs: exact for add/remove, an
        upper bound for replace-one.

    Raises
    ------
    InputError, InputTypeError
        For values out of range.

    Notes
    -----
    A record may be drawn several times, which is so unlikely that it hardly matters here, but ruins Renyi divergences
    of high order: here they are the wrong tool.

    Examples
    --------
    >>> round(pld_fswr(6.0, 1000, 1e-5, batch_size=120, dataset_size=50_000, accuracy=1e-3).upper, 2) < 0.2
    True
    """
    schedule = _schedule(sigma, steps)
    wanted = min(1e-6, 0.01 * open_unit(accuracy, "accuracy")) * open_unit(delta, "delta")
    omitted = max(wanted / sum(times for _, times in schedule), 1e-290)
    pairs = [(fswr_pairs(value, batch_size, dataset_size, adjacency, omitted), times) for value, times in schedule]
    return _epsilon(_directions(pairs), delta, accuracy)


def pld_poisson(
    sigma: Noise,
    steps: int | Sequence[int] | None,
    delta: float,
    *,
    q: float | None = None,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    adjacency: str = "add_remove",
    accuracy: float = 1e-5,
) -> Interval:
    """Return epsilon of Gaussian steps on Poisson minibatches.

    Parameters
    ----------
    sigma, steps, delta, q, batch_size, dataset_size, adjacency, accuracy
        As in `pld_fswor`.

    Returns
    -------
    Interval
        Unpacks into lower bound, estimate and upper bound, in nats, of what steps leak at worst, under either
        adjacency.

    Raises
    ------
    InputError, InputTypeError
        For values out of range.

    Examples
    --------
    >>> round(pld_poisson(2.0, 1000, 1e-5, batch_size=64, dataset_size=10_000).estimate, 4)
    0.3823
    """
    share = rate(q, batch_size, dataset_size)
    pairs = [(poisson_pairs(value, share, adjacency), times) for value, times in _schedule(sigma, steps)]
    return _epsilon(_directions(pairs), delta, accuracy)
