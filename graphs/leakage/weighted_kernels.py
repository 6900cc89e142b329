"""Kernels of several steps between hidden states, when records on the way may be known.

A known record multiplies the law of its state by a weight for each state. A kernel of m steps is then a product of
the transition matrix with such weights between, and its diameter may be larger than that of the plain power.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphs.leakage.chain_supports import Supports
from graphs.leakage.messages import projective_diameter
from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import UNIT

__all__ = ["weighted_diameters"]

#: Most kernels looked at for one length, over all ways in which records between may be known.
MOST_KERNELS = 1024

#: Entries below this are not trusted to keep their relative accuracy through products.
TINY = 1e-280


def weighted_diameters(
    transition: FloatArray, emission: FloatArray | None, supports: Supports, longest: int
) -> FloatArray:
    """Return the diameters of kernels of 1, 2, ... steps, whatever is known about the records between.

    Parameters
    ----------
    transition : ndarray of shape (k, k)
        Transition matrix of the states.
    emission : ndarray of shape (k, v) or None
        Law of a record given its state; None when records may be of any type.
    supports : Supports
        States possible at each place.
    longest : int
        Largest number of steps of interest.

    Returns
    -------
    ndarray of shape (m,)
        For each length, the largest diameter over all values of any known records strictly between, rounded up.
        It ends where there would be more than 1024 kernels, or at the first step when `emission` is None: a record of
        any type may make a kernel as degenerate as a single step is.

    Examples
    --------
    >>> from graphs.leakage.chain_supports import supports_of
    >>> walk = np.array([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
    >>> possible = supports_of(walk, np.array([0.25, 0.5, 0.25]))
    >>> weighted_diameters(walk, np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]), possible, 2).round(6)
    array([     inf, 2.197225])
    >>> weighted_diameters(walk, np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]]), possible, 2).round(6)
    array([     inf, 5.888878])
    """
    masks = np.unique(np.concatenate([supports.head, supports.cycle]), axis=0)
    kernels, patterns = transition[None], (transition > 0)[None]
    found = [_largest(kernels, patterns, masks, len(transition) + 2)]
    if emission is None:
        return np.array(found)
    weights = _weights(emission)
    steps = [(transition * weight[:, None], (transition * weight[:, None]) > 0) for weight in weights]
    while len(found) < longest and len(kernels) * len(weights) * len(masks) <= MOST_KERNELS:
        kernels = np.concatenate([kernels @ step for step, _ in steps])
        patterns = np.concatenate([(patterns.astype(np.float64) @ pattern) > 0 for _, pattern in steps])
        possible = patterns.any(axis=(1, 2))
        kernels, patterns = kernels[possible], patterns[possible]
        kernels = kernels / kernels.max(axis=(1, 2), keepdims=True)
        found.append(_largest(kernels, patterns, masks, (len(found) + 1) * (len(transition) + 6)))
    return np.array(found)


def _weights(emission: FloatArray) -> FloatArray:
    """Return the weights that a record may put on the states: none when unknown, else its likelihoods."""
    columns = emission.T[(emission > 0).any(axis=0)]
    scaled = np.concatenate([np.ones((1, len(emission))), columns / columns.max(axis=1, keepdims=True)])
    weights: FloatArray = np.unique(scaled, axis=0)
    return weights


def _largest(
    kernels: FloatArray, patterns: npt.NDArray[np.bool_], masks: npt.NDArray[np.bool_], operations: int
) -> float:
    if (kernels[patterns] < TINY).any():
        return float("inf")
    error = 2 * operations * UNIT
    return max(projective_diameter(kernel[mask], error) for kernel in kernels for mask in masks if mask.any())
