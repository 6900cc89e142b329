"""Clipped chains that are worth nothing say so: by public numbers before they run, by their last two states after."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.learning.low_signal import LowSignalWarning, warn_of_noise
from thresholdout.privacy.learning.sgld.sampler import Problem

__all__ = ["swing", "warn_of_noisy_steps", "warn_of_swing"]

Floats = NDArray[np.float64]
MOST_NOISE = 0.05  # of what is learned
MOST_SWING = 0.15


def warn_of_noisy_steps(problem: Problem, *, stacklevel: int) -> None:
    """Warn when the noise of all steps is too long beside the way of gradients which all agree; the mean has less."""
    if problem.clip is None or not problem.eta.size:
        return
    total = float(problem.eta.sum())
    way = total / 2 * problem.y.size * problem.clip
    share = math.sqrt(problem.x.shape[1] * total / problem.chains) / way
    warn_of_noise(share, MOST_NOISE, "as many records, or as large an epsilon,", stacklevel=stacklevel + 1)


def swing(before: Floats, after: Floats, slopes: int) -> float:
    """Return the square of half the last step of the chains' mean, over that of the slopes in its middle.

    Parameters
    ----------
    before, after : ndarray, shape (chains, coefficients)
        The chains before and after their last step. Each state of a clipped chain is charged for, so that looking at
        them is free.
    slopes : int
        The first coefficients; an intercept, which explains nothing, may follow.

    Returns
    -------
    float
        About the share of what the slopes explain that swinging takes from it, for features that are alike.

    Notes
    -----
    Near the minimum a step takes a deviation e of the chain to ``(1 - k) e + sqrt(eta) z``, with
    ``k = eta (alpha + n beta m) / 2`` and m the mean square of the features in a direction. For k below 2 it settles
    with a variance of ``eta / (k (2 - k))``, and the share expected here is ``d eta / (2 (2 - k))`` over the square of
    the slopes: for k up to 1 it is large only where the noise of one step is as long as the slopes. Above 2 each step
    overshoots by more than the last, until the gradients of so many records are clipped that it is thrown back exactly
    as far: the two states are then on both sides of the minimum, up to ``eta n clip / 2`` apart. With the noise
    that a target epsilon asks for, eta is proportional to ``clip**-2``: a clip that is too small makes this longer.

    Examples
    --------
    >>> swing(np.array([[7.0, -4.0]]), np.array([[-5.0, 6.0]]), 2)
    30.5
    """
    middle, half = (after + before).mean(axis=0) / 2, (after - before).mean(axis=0) / 2
    size = float(middle[:slopes] @ middle[:slopes])
    return float(half @ half) / size if size else math.inf


def warn_of_swing(before: Floats, after: Floats, slopes: int, *, stacklevel: int) -> None:
    """Warn when the last step of clipped chains is so long that they are likely to be worth nothing.

    Of 311 good fits, with at least half the R2 that is possible, whose noise did not give them away, none was above the
    limit; of 56 with an R2 below -1 and clips that were too small, 53 were (``benchmarks/README.md``).
    """
    found = swing(before, after, slopes)
    if not found <= MOST_SWING:
        message = (
            f"the chain swings: half of its last step has {found:.2g} times the square of its slopes, and above "
            f"{MOST_SWING:g} fits are worth nothing: a larger clip (twice the clip makes the step for a target epsilon "
            "four times smaller), a smaller step_size, or more records are needed"
        )
        warnings.warn(message, LowSignalWarning, stacklevel=stacklevel + 1)
