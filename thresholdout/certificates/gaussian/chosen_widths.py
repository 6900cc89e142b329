"""Half-widths of Gaussian answers whose shares of the probability of failure are chosen, or given.

The noise has a share of it, the drift the rest; both, and b, are looked for such that the tolerance is smallest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.certificates.best_parameters import best_parameters
from thresholdout.certificates.gaussian.deviations import GaussianWidths, NoiseRuns
from thresholdout.certificates.gaussian.drift import AnytimeDrift, Drift, drift_bound
from thresholdout.certificates.independent_blocks import IndependentBlocks
from thresholdout.certificates.normal_extremes import largest_normal_superquantile

__all__ = ["SHARES", "STRETCHES", "one_scale", "scheduled_widths", "widths_of"]

Floats = NDArray[np.float64]

SHARES = (0.02, 0.98)
"""Where to look for the share of beta that the noise takes."""

STRETCHES = (1e-3, 1e2)
"""Where to look for b."""


def widths_of(
    blocks: IndependentBlocks,
    schedule: NoiseRuns,
    beta: float,
    shares: Sequence[float],
    *,
    slack: float = 0.0,
    threshold: float = 0.0,
    declared: bool = True,
) -> GaussianWidths:
    """Certify given standard deviations by given events; nothing is looked for.

    Parameters
    ----------
    blocks, schedule, beta, slack, threshold, declared
        As for `scheduled_widths`.
    shares : sequence of float
        As `GaussianWidths.shares` returns them; one b where the number of answers is declared.

    Examples
    --------
    >>> blocks, schedule = IndependentBlocks.of_records(10_000), NoiseRuns.constant(0.02, 100)
    >>> found = scheduled_widths(blocks, schedule, 0.05)
    >>> abs(widths_of(blocks, schedule, 0.05, found.shares).tolerance() / found.tolerance() - 1) < 1e-12
    True
    """
    available = beta - math.sqrt(blocks.exception)
    noise, *stretches = shares
    failure = (1.0 - noise) * available
    drift = Drift(blocks, stretches[0], failure) if declared else AnytimeDrift(blocks, failure, tuple(stretches))
    return GaussianWidths(drift, schedule, noise * available, threshold=threshold, slack=slack, declared=declared)


def one_scale(
    blocks: IndependentBlocks, answers: int, beta: float, *, slack: float = 0.0, threshold: float = 0.0
) -> GaussianWidths:
    """Choose one standard deviation for all answers such that the tolerance is smallest.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    answers : int
        k, declared number of answers.
    beta : float
        Probability of failure, in (0, 1), above the root of the blocks' exception.
    slack, threshold : float
        As in `GaussianWidths`.

    Returns
    -------
    GaussianWidths
        With the shares of beta, b and the standard deviation that were found.

    Examples
    --------
    >>> widths = one_scale(IndependentBlocks.of_records(10_000), 318, 0.05)
    >>> widths.tolerance() <= 0.1
    True
    """
    available = beta - math.sqrt(blocks.exception)
    unit = answers / (8.0 * blocks.effective)
    knots = np.linspace(*SHARES, 65)
    constants = np.array([largest_normal_superquantile(answers, float(share) * available) for share in knots])

    def cost(share: Floats, log_stretch: Floats, log_information: Floats) -> Floats:
        information = np.exp(log_information)
        noise = np.sqrt(unit / information) * np.interp(share, knots, constants)
        width: Floats = noise + drift_bound(blocks, np.exp(log_stretch), (1.0 - share) * available, information)
        return width

    boxes = [SHARES, _logs(STRETCHES), (math.log(1e-4), math.log(2.0 * blocks.effective))]
    (share, log_stretch, log_information), _ = best_parameters(cost, boxes, points=15, rounds=10)
    scale = math.sqrt(unit / math.exp(log_information))
    drift = Drift(blocks, math.exp(log_stretch), (1.0 - share) * available)
    schedule = NoiseRuns.constant(scale, answers)
    return GaussianWidths(drift, schedule, share * available, slack=slack, threshold=threshold)


def scheduled_widths(
    blocks: IndependentBlocks,
    schedule: NoiseRuns,
    beta: float,
    *,
    slack: float = 0.0,
    threshold: float = 0.0,
    declared: bool = True,
) -> GaussianWidths:
    """Certify given standard deviations: the shares of beta and b are chosen.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    schedule : NoiseRuns
        Standard deviations of the answers.
    beta : float
        Probability of failure, in (0, 1), above the root of the blocks' exception.
    slack, threshold, declared
        As in `GaussianWidths`.

    Returns
    -------
    GaussianWidths
        With the smallest tolerance that was found; when the number of answers is not declared, nothing is searched, and
        `AnytimeDrift` keeps half-widths small early and late.

    Examples
    --------
    >>> schedule = NoiseRuns.constant(0.02, 100)
    >>> round(scheduled_widths(IndependentBlocks.of_records(10_000), schedule, 0.05).tolerance(), 4)
    0.1034
    """
    available = beta - math.sqrt(blocks.exception)
    if not declared:
        anytime = AnytimeDrift(blocks, available / 2.0)
        return GaussianWidths(anytime, schedule, available / 2.0, threshold=threshold, slack=slack, declared=False)
    scales, runs = np.array(schedule.scales), np.array(schedule.runs, dtype=np.float64)
    totals = np.cumsum(runs / (8.0 * blocks.effective * scales**2))
    kept = np.unique(np.linspace(0, len(runs) - 1, 200).astype(np.int64))
    scales, totals = scales[kept], totals[kept]
    knots = np.linspace(*SHARES, 65)
    answers = schedule.answers
    constants = np.array([largest_normal_superquantile(answers, float(share) * available) for share in knots])

    def cost(share: Floats, log_stretch: Floats) -> Floats:
        constant = np.interp(share, knots, constants)[..., None]
        stretch, failure = np.exp(log_stretch)[..., None], ((1.0 - share) * available)[..., None]
        widths: Floats = np.max(scales * constant + drift_bound(blocks, stretch, failure, totals), axis=-1)
        return widths

    start, _ = best_parameters(cost, [SHARES, _logs(STRETCHES)], points=15, rounds=10)
    share, log_stretch = _polished(cost, start)
    drift = Drift(blocks, math.exp(log_stretch), (1.0 - share) * available)
    return GaussianWidths(drift, schedule, share * available, threshold=threshold, slack=slack)


_NOTHING = 1e9  # a half-width that says nothing, in place of an infinite one


def _polished(cost: Callable[[Floats, Floats], Floats], start: tuple[float, ...]) -> tuple[float, float]:
    """Follow the narrow valley of a schedule that was made for other shares: its half-widths are all equal there."""
    from scipy.optimize import minimize

    def value(point: Floats) -> float:
        share = min(max(float(point[0]), SHARES[0]), SHARES[1])
        found = float(cost(np.array([share]), np.array([point[1]]))[0])
        return found if found < _NOTHING else _NOTHING

    found = np.array(start)
    for size in (0.03, 0.003, 0.0003):
        simplex = found + np.array([[0.0, 0.0], [size, size], [-size, size]])
        options: Any = {"initial_simplex": simplex, "xatol": 1e-9, "fatol": 1e-12, "maxfev": 300}
        found = minimize(value, found, method="Nelder-Mead", options=options).x
    return min(max(float(found[0]), SHARES[0]), SHARES[1]), float(found[1])


def _logs(interval: tuple[float, float]) -> tuple[float, float]:
    return math.log(interval[0]), math.log(interval[1])
