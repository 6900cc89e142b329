"""Gaussian noise for answers near a likely value: less noise near 0 and 1, where means vary less.

With h about ``p (1-p)`` near that value, an answer gives away ``h/(2 N s^2)``, and expectations are within about
``sqrt(2 h (1+b)(S + L/b)/N)`` of truths: the formulas of half-widths for N/(4h) records in place of N. So schedules and
shares of beta are looked for with that many records. What answers are worth is then computed for the records that there
are: a schedule or a share that is not the best costs width, never confidence.
"""

from __future__ import annotations

import dataclasses

from thresholdout.certificates.gaussian.chosen_widths import one_scale, scheduled_widths
from thresholdout.certificates.gaussian.deviations import GaussianWidths, NoiseRuns
from thresholdout.certificates.gaussian.drift import Drift
from thresholdout.certificates.gaussian.noise_schedule import tightest_schedule
from thresholdout.certificates.gaussian.plausible_truths import spread
from thresholdout.certificates.independent_blocks import IndependentBlocks

__all__ = ["alike", "scheduled_for", "tightest_for"]

_ROUNDS = 2
_INWARDS = 0.75  # of the width: where variances between expectation and truth are about as at that point


def alike(blocks: IndependentBlocks, expected: float, width: float) -> IndependentBlocks:
    """Return records whose answers have about the half-widths that answers near a value have.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records that there are.
    expected : float
        The likely value, in [0, 1].
    width : float
        About the half-width.

    Examples
    --------
    >>> alike(IndependentBlocks.of_records(10_000), 0.97, 0.024).effective
    54709.38...
    """
    inwards = _INWARDS * min(width, 1.0)
    h = spread(max(0.0, expected - inwards), min(1.0, expected + inwards))
    return dataclasses.replace(blocks, inflation=4.0 * h * blocks.largest)


def tightest_for(
    blocks: IndependentBlocks,
    answers: int,
    beta: float,
    expected: float,
    *,
    constant: bool = False,
    slack: float = 0.0,
    threshold: float = 0.0,
) -> GaussianWidths:
    """Choose the standard deviations of k answers such that intervals of answers near a value are narrow.

    Parameters
    ----------
    blocks : IndependentBlocks
        The records, declared.
    answers : int
        k, declared number of answers.
    beta : float
        Probability of failure, in (0, 1).
    expected : float
        The likely value of answers, in [0, 1].
    constant : bool
        Whether all answers have the same noise.
    slack, threshold : float
        As in `GaussianWidths`.

    Returns
    -------
    GaussianWidths
        `GaussianWidths.expected` is small; its `tolerance`, for answers elsewhere, is larger than it has to be.

    Examples
    --------
    >>> widths = tightest_for(IndependentBlocks.of_records(10_000), 50, 0.05, 0.9)
    >>> round(widths.expected(0.9), 3), round(widths.tolerance(), 3)
    (0.037, 0.073)
    >>> same = tightest_for(IndependentBlocks.of_records(10_000), 50, 0.05, 0.9, constant=True)
    >>> round(same.expected(0.9), 3), len(same.schedule.scales)
    (0.044, 1)
    """
    width, best = _first_width(blocks, answers, beta, expected), None
    for _ in range(_ROUNDS):
        same = alike(blocks, expected, width)
        made = one_scale(same, answers, beta) if constant else tightest_schedule(same, answers, beta)
        found = _about(blocks, made, slack, threshold)
        width = found.expected(expected)
        if best is None or width < best[0]:
            best = width, found
    assert best is not None
    return best[1]


def scheduled_for(
    blocks: IndependentBlocks,
    schedule: NoiseRuns,
    beta: float,
    expected: float,
    *,
    slack: float = 0.0,
    threshold: float = 0.0,
) -> GaussianWidths:
    """Certify given standard deviations: the shares of beta and b are chosen for answers near a value.

    Parameters
    ----------
    blocks, beta, expected, slack, threshold
        As for `tightest_for`.
    schedule : NoiseRuns
        Standard deviations of the answers.

    Examples
    --------
    >>> schedule = NoiseRuns.constant(0.01, 50)
    >>> widths = scheduled_for(IndependentBlocks.of_records(10_000), schedule, 0.05, 0.97)
    >>> round(widths.expected(0.97), 3)
    0.049
    """
    width, best = _first_width(blocks, schedule.answers, beta, expected), None
    for _ in range(_ROUNDS):
        made = scheduled_widths(alike(blocks, expected, width), schedule, beta)
        found = _about(blocks, made, slack, threshold)
        width = found.expected(expected)
        if best is None or width < best[0]:
            best = width, found
    assert best is not None
    return best[1]


def _first_width(blocks: IndependentBlocks, answers: int, beta: float, expected: float) -> float:
    """Return about the half-width that is possible, from one standard deviation for all answers, which is quick."""
    width = 0.5
    for _ in range(_ROUNDS):
        width = 0.8 * one_scale(alike(blocks, expected, width), answers, beta).tolerance()
    return width


def _about(blocks: IndependentBlocks, made: GaussianWidths, slack: float, threshold: float) -> GaussianWidths:
    """Return the half-widths for the records that there are, with the schedule and the shares that were found."""
    assert isinstance(made.drift, Drift)
    drift = Drift(blocks, made.drift.stretch, made.drift.failure)
    return GaussianWidths(drift, made.schedule, made.noise_failure, slack=slack, threshold=threshold)
