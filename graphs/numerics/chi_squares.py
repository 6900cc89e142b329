"""Tails of weighted sums of squares of normal variables, bounded from above.

Proof: `graphs/PROOFS.md`, section on fitted families.
"""

from __future__ import annotations

import math

import numpy as np

from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import UNIT

__all__ = ["ratio_tail"]

#: Slopes of exponentials, in shares of the largest whose expectation is finite.
_SLOPES = np.r_[np.geomspace(1e-6, 0.5, 40), 1.0 - np.geomspace(0.4, 1e-3, 12)]

#: Points of the sum, at most, and in the first block.
_MOST_POINTS = 1 << 17
_BLOCK = 64


def ratio_tail(weights: FloatArray, counts: FloatArray, at: float, error: float = 1e-13, enough: float = 0.0) -> float:
    """Bound the probability that a weighted mean of squares of normal variables is at most a number.

    Parameters
    ----------
    weights : ndarray of shape (k,)
        Finite numbers.
    counts : ndarray of shape (k,)
        How many independent squares have each weight, positive integers.
    at : float
        The number.
    error : float
        By how much the bound may be too large, where so many squares are there that this is possible; at least 1e-13.
    enough : float
        A bound of at most so much will do, however far it is from the probability: Markov's inequality is tried first.

    Returns
    -------
    float
        An upper bound on ``P(sum w_j Z_j^2 <= at sum Z_j^2)``, rounding included.

    Notes
    -----
    The probability that a weighted sum Q of squares is negative is the mean of a wave that is 1 below 0 and 0 above,
    as long as Q stays within half a period, and the wave's Fourier series gives the mean by the characteristic
    function [Davies 1973]. What lies below half a period, what is cut off, and rounding are added.

    Examples
    --------
    Equal shares of a chi-square with two degrees of freedom are uniform:

    >>> round(ratio_tail(np.array([0.0, 1.0]), np.array([2, 2]), 0.25), 4)
    0.25
    """
    scaled = weights - at
    if scaled.min() >= 0.0:
        return 0.0 if scaled.max() > 0.0 else 1.0
    if scaled.max() <= 0.0:
        return 1.0
    scaled = scaled / np.abs(scaled).max()
    slopes, logs = _exponentials(scaled, counts)
    markov = math.exp(min(0.0, float(logs.min()))) * (1.0 + 2.0**-20)
    if markov <= enough:
        return markov
    # only what lies below makes the wave too small; what lies above makes the bound loose
    log_error = math.log(error / 4.0)
    rises, others = _exponentials(-scaled, counts)
    farthest = max(float(((logs - log_error) / slopes).min()), float(((others - log_error) / rises).min()))
    step = 2.0 * math.pi / (farthest * (1.0 + 2.0**-20))
    total, rounding, start, cut = 0.5, 16 * UNIT, 0, math.inf
    while cut > error / 4.0 and start < _MOST_POINTS:
        halves = np.arange(start, max(_BLOCK, start + start // 2)) + 0.5
        angles = 2.0 * step * halves[:, None] * scaled
        squares = angles**2
        phases, logs = np.arctan(angles), np.log1p(squares)
        sizes = np.exp(-0.25 * (logs @ counts)) / (math.pi * halves)
        total -= float(sizes @ np.sin(0.5 * (phases @ counts)))
        moved = 0.5 * (np.abs(phases) @ counts) + 0.25 * (logs @ counts)
        rounding += float(sizes @ (1.0 + moved)) * (len(counts) + 32) * UNIT
        falling = 0.5 * float(squares[-1] / (1.0 + squares[-1]) @ counts)
        cut = float(sizes[-1]) * halves[-1] / falling
        start += len(halves)
    return min(1.0, float(max(0.0, total + cut) + error / 4.0 + rounding))


def _exponentials(scaled: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return slopes s, and the logarithms of the expectations of ``exp(-s Q)`` for a weighted sum Q of squares."""
    slopes = _SLOPES * (0.5 / -float(scaled.min()))
    logs: FloatArray = -0.5 * np.log1p(2.0 * slopes[:, None] * scaled) @ counts
    return slopes, logs
