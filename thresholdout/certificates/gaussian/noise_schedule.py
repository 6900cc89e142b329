"""Noise schedules for Gaussian answers: early answers, while little is known, get more noise and cost less.

For a tolerance tau every answer gets the largest standard deviation at which its half-width is tau:
``s_j = (tau - D(x_j))/c`` with the information x_j *after* the answer. Backwards this is explicit, ``x_{j-1} = x_j -
1/(8 N s_j^2)``: start from the x_k at which x_{k-1} is largest, and go on until nothing is left. About
``(8/3) N^2 t^4/c^2`` answers, ``t = tau - sqrt(L/(2N))``, instead of ``N^2 t^4/c^2`` with one standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bisect, bisect_each, bisect_integers
from thresholdout.certificates.best_parameters import best_parameters
from thresholdout.certificates.gaussian.chosen_widths import SHARES, STRETCHES, one_scale
from thresholdout.certificates.gaussian.deviations import GaussianWidths, NoiseRuns
from thresholdout.certificates.gaussian.drift import Drift
from thresholdout.certificates.independent_blocks import IndependentBlocks
from thresholdout.certificates.normal_extremes import largest_normal_superquantile

__all__ = ["is_possible", "most_answers", "schedule_within", "tightest_schedule"]

Floats = NDArray[np.float64]

_COARSE = 128  # runs of equal standard deviations while parameters are searched
_FINE = 20_000  # in the end; the loss is of the order of one run
_DOWN = 1.0 - 1e-9  # room for the rounding of the certificate
_MOST = 10**12  # answers; more are not counted


@dataclass(frozen=True, slots=True)
class _Backward:
    """The recursion for a tolerance: all fields but the first are arrays of one shape, one entry per parameter."""

    blocks: IndependentBlocks
    tolerance: float
    constant: Floats
    stretch: Floats
    failure: Floats

    def top(self, run: float) -> Floats:
        """Return the x at which ``x - run/(8 N s(x)^2)`` is largest; 0 where no answer is possible."""
        factor, effective, crowding = 1.0 + self.stretch, self.blocks.effective, self.blocks.crowding
        room = self.tolerance - math.sqrt(self.blocks.exception)
        level = factor * self._start() / 2.0
        most = (effective * room**2 - level) * 2.0 / (factor * (1.0 + effective * room**2 * crowding))
        low, high = np.zeros_like(most), np.maximum(most, 0.0)
        if room <= 0.0:
            return low

        def rising(middle: Floats) -> NDArray[np.bool_]:
            denominator = 2.0 - factor * crowding * middle
            far = np.sqrt(factor * (middle + self._start()) / (effective * denominator))
            slope = factor * (2.0 + factor * crowding * self._start()) / (effective * denominator**2) / (2.0 * far)
            return run * self.constant**2 * slope < 4.0 * effective * np.maximum(room - far, 0.0) ** 3

        return bisect_each(rising, high, low, halvings=48)

    def counts(self, answers: float, pieces: int) -> Floats:
        """Return how many answers are possible, with runs of ``answers/pieces``; with the fraction of a last one."""
        run = max(1.0, answers / pieces)
        factor, effective, crowding = 1.0 + self.stretch, self.blocks.effective, self.blocks.crowding
        room = self.tolerance - math.sqrt(self.blocks.exception)
        information, count = self.top(run), np.zeros_like(self.stretch)
        start, unit = self._start(), self.constant**2 / (8.0 * effective)
        for _ in range(2 * pieces):
            far = np.sqrt(factor * (information + start) / (effective * (2.0 - factor * crowding * information)))
            fitting = np.where(room > far, np.minimum(run, information * (room - far) ** 2 / unit), 0.0)
            if not fitting.any():
                break
            count += fitting
            information = np.where(fitting == run, information - run * unit / (room - far) ** 2, 0.0)
        return count

    def _start(self) -> Floats:
        """``(L + r)/b``."""
        start: Floats = (math.sqrt(self.blocks.exception) - np.log(self.failure)) / self.stretch
        return start


def schedule_within(
    blocks: IndependentBlocks, answers: int, tolerance: float, drift: Drift, noise_failure: float
) -> NoiseRuns | None:
    """Return the standard deviations at which all of k answers have a half-width of at most tau.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    answers : int
        k, declared number of answers.
    tolerance : float
        tau.
    drift : Drift
        With b and b2.
    noise_failure : float
        b1.

    Returns
    -------
    NoiseRuns or None
        For k answers; ``None`` when fewer are possible. More than 20,000 answers come in runs of equal noise.

    Examples
    --------
    >>> blocks = IndependentBlocks.of_records(10_000)
    >>> schedule = schedule_within(blocks, 664, 0.1, Drift(blocks, 0.35, 0.0225), 0.0275)
    >>> schedule.answers, schedule.scales[0] > schedule.scales[-1]
    (664, True)
    """
    run = -(-answers // _FINE)
    constant = largest_normal_superquantile(answers, noise_failure)
    target = tolerance * _DOWN
    one = np.array(drift.stretch), np.array(drift.failure)
    information = float(_Backward(blocks, target, np.array(constant), *one).top(float(run)))
    room, effective = target - math.sqrt(blocks.exception), blocks.effective
    factor = 1.0 + drift.stretch
    start = (math.sqrt(blocks.exception) - math.log(drift.failure)) / drift.stretch
    crowded, unit = factor * blocks.crowding, constant**2 / (8.0 * effective)
    scales: list[float] = []
    runs: list[int] = []
    left = answers
    while left:
        size = min(run, left)
        gap = room - math.sqrt(factor * (information + start) / (effective * (2.0 - crowded * information)))
        if gap <= 0.0:
            return None
        information -= size * unit / (gap * gap)
        if information < 0.0:
            return None
        scales.append(gap / constant)
        runs.append(size)
        left -= size
    return NoiseRuns(tuple(scales[::-1]), tuple(runs[::-1]))


@lru_cache(maxsize=256)
def tightest_schedule(
    blocks: IndependentBlocks, answers: int, beta: float, *, slack: float = 0.0, threshold: float = 0.0
) -> GaussianWidths:
    """Choose the standard deviations of k answers such that the tolerance is smallest.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    answers : int
        k, declared number of answers.
    beta : float
        Probability of failure, in (0, 1), above the root of the blocks' exception.
    slack, threshold : float
        As in `GaussianWidths`; they are added to the tolerance.

    Returns
    -------
    GaussianWidths
        Never wider than `one_scale`.

    Examples
    --------
    >>> widths = tightest_schedule(IndependentBlocks.of_records(10_000), 664, 0.05)
    >>> widths.tolerance() < 0.1, widths.schedule.answers
    (True, 664)
    """
    same = one_scale(blocks, answers, beta)
    available = beta - math.sqrt(blocks.exception)

    @cache
    def best_split(tolerance: float) -> tuple[float, float, float]:
        return _best_split(blocks, answers, tolerance, available)

    widest = same.tolerance()
    found = bisect(lambda tolerance: best_split(tolerance)[2] >= answers, 0.5 * widest, widest, halvings=14)
    share, stretch = best_split(found)[:2] if found < widest else (0.5, 1.0)
    drift, failure = Drift(blocks, stretch, (1.0 - share) * available), share * available

    @cache
    def fits(tolerance: float) -> NoiseRuns | None:
        return schedule_within(blocks, answers, tolerance, drift, failure)

    schedule = fits(bisect(lambda tolerance: fits(tolerance) is not None, 0.97 * found, 1.01 * found, halvings=20))
    widths = None if schedule is None else GaussianWidths(drift, schedule, failure)
    if widths is None or widths.tolerance() > same.tolerance():
        widths = same
    return GaussianWidths(widths.drift, widths.schedule, widths.noise_failure, slack=slack, threshold=threshold)


@lru_cache(maxsize=256)
def most_answers(blocks: IndependentBlocks, tolerance: float, beta: float) -> GaussianWidths | None:
    """Find the largest number of answers that can all be within tau of the truth.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    tolerance : float
        tau, less what rounding and a threshold in front add.
    beta : float
        Probability of failure, in (0, 1).

    Returns
    -------
    GaussianWidths or None
        Half-widths and schedule for that many answers; ``None`` when not even one is possible.

    Examples
    --------
    >>> most_answers(IndependentBlocks.of_records(5_000), 0.1, 0.05).schedule.answers >= 141
    True
    """
    available = beta - math.sqrt(blocks.exception)
    if available <= 0.0:
        return None
    usual = (8.0 / 3.0) * blocks.effective**2 * tolerance**4 / 25.0
    count, share, stretch = min(max(1.0, usual), _MOST), 0.5, 1.0
    for _ in range(64):
        previous = count
        share, stretch, count = _best_split(blocks, max(1, int(previous)), tolerance * _DOWN, available)
        count = min(max(count, 0.0), _MOST)
        if abs(count - previous) <= 1e-3 * previous or count < 1.0:
            break
    drift, failure = Drift(blocks, stretch, (1.0 - share) * available), share * available

    @cache
    def fits(answers: int) -> NoiseRuns | None:
        return schedule_within(blocks, answers, tolerance, drift, failure) if answers else None

    low = int(0.98 * count)
    while low > 1 and fits(low) is None:
        low = int(0.9 * low)
    low = low if fits(low) is not None else 0
    high = max(low + 1, int(1.05 * count) + 2)
    schedule = fits(
        bisect_integers(
            lambda answers: fits(answers) is not None,
            high,
            low,
            close=lambda low, high: high - low <= max(1, low // 100_000),
        )
    )
    return None if schedule is None else GaussianWidths(drift, schedule, failure)


def is_possible(blocks: IndependentBlocks, answers: int, tolerance: float, beta: float) -> bool:
    """Whether all of k answers can be within tau of the truth; ``False`` may be wrong within a part in a thousand.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records.
    answers : int
        k, declared number of answers.
    tolerance : float
        tau, less what rounding and a threshold in front add.
    beta : float
        Probability of failure, in (0, 1).

    Examples
    --------
    >>> blocks = IndependentBlocks.of_records(10_000)
    >>> is_possible(blocks, 700, 0.1, 0.05), is_possible(blocks, 800, 0.1, 0.05)
    (True, False)
    """
    available = beta - math.sqrt(blocks.exception)
    if available <= 0.0:
        return False
    share, stretch, _ = _best_split(blocks, answers, tolerance * _DOWN, available)
    drift = Drift(blocks, stretch, (1.0 - share) * available)
    return schedule_within(blocks, answers, tolerance, drift, share * available) is not None


def _best_split(
    blocks: IndependentBlocks, answers: int, tolerance: float, available: float
) -> tuple[float, float, float]:
    """Return the noise's share of beta and the b at which most answers are possible, and how many."""
    knots, constants = _constants(answers, available)

    def cost(share: Floats, log_stretch: Floats) -> Floats:
        constant = np.interp(share, knots, constants)
        failure = (1.0 - share) * available
        return -_Backward(blocks, tolerance, constant, np.exp(log_stretch), failure).counts(answers, _COARSE)

    boxes = [SHARES, (math.log(STRETCHES[0]), math.log(STRETCHES[1]))]
    (share, log_stretch), value = best_parameters(cost, boxes, points=9, rounds=6)
    return share, math.exp(log_stretch), max(0.0, -value)


@lru_cache(maxsize=1024)
def _constants(answers: int, available: float) -> tuple[Floats, Floats]:
    knots = np.linspace(*SHARES, 33)
    return knots, np.array([largest_normal_superquantile(answers, float(share) * available) for share in knots])
