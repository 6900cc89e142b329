"""Epsilons of equal and changing noise on minibatches, with both bounds: what figures and tests compare.

`DistributionAccountant` gives the same upper bounds for events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.renyi_conversion import RenyiEpsilon, default_orders, rdp_to_epsilon
from thresholdout.privacy.accounting.bound_arguments import count, open_unit
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import Floats, rate, sigma_of
from thresholdout.privacy.accounting.pld.distribution import Interval, PrivacyLossDistribution, worst_epsilon
from thresholdout.privacy.accounting.pld.loss import DominatingPair
from thresholdout.privacy.accounting.pld.minibatch_steps import fswor_pairs, fswr_pairs, poisson_pairs
from thresholdout.suppressed_warnings import suppress_warnings

__all__ = ["pld_fswor", "pld_fswr", "pld_poisson", "refine_epsilon"]

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


def refine_epsilon(
    rdp: Callable[[Floats], Floats],
    delta: float,
    *,
    orders: Any = None,
    conversion: str = "balle",
    rounds: int = 24,
) -> RenyiEpsilon:
    """Return the smallest epsilon over real orders, by golden-section search around the best one of a grid.

    Parameters
    ----------
    rdp : callable
        From an array of orders to total Renyi divergences, valid at each order.
    delta, conversion
        As in `rdp_to_epsilon`.
    orders : array, optional
        The grid; default `default_orders`.
    rounds : int
        Steps of the search; each shortens the interval to 0.618 of it.

    Returns
    -------
    RenyiEpsilon
        Valid whatever the shape of the divergences; never above the grid's value.

    Examples
    --------
    >>> grid = rdp_to_epsilon(default_orders(), default_orders() / 2, 1e-5).epsilon
    >>> refine_epsilon(lambda order: order / 2, 1e-5).epsilon < grid
    True
    """
    grid = default_orders() if orders is None else np.asarray(orders, dtype=float)
    rho = np.asarray(rdp(grid), dtype=float)
    found = rdp_to_epsilon(grid, rho, delta, conversion=conversion)
    at = int(np.flatnonzero(grid == found.order)[0])
    low, high = float(grid[max(0, at - 1)]), float(grid[min(grid.size - 1, at + 1)])
    ratio = (math.sqrt(5.0) - 1) / 2

    def value(order: float) -> RenyiEpsilon:
        with suppress_warnings():
            return rdp_to_epsilon([order], rdp(np.array([order])), delta, conversion=conversion)

    left, right = value(high - ratio * (high - low)), value(low + ratio * (high - low))
    for _ in range(rounds):
        found = min(found, left, right, key=lambda each: each.epsilon)
        if left.epsilon <= right.epsilon:
            high, right = right.order, left
            left = value(high - ratio * (high - low))
        else:
            low, left = left.order, right
            right = value(low + ratio * (high - low))
    return min(found, left, right, key=lambda each: each.epsilon)
