"""Which states a chain can be in at each record, and how far its law is from the stationary one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import UNIT

__all__ = ["LEAST", "Supports", "distances_from", "supports_of"]

BoolArray = npt.NDArray[np.bool_]

#: Longest sequence of different supports that is followed; beyond it all states count as possible everywhere.
LONGEST = 256

#: Probabilities below this may have lost digits to underflow; no bound is built on their logarithms.
LEAST = 1e-280


@dataclass(frozen=True, slots=True)
class Supports:
    """Possible states at the first records, and those that the chain then goes round.

    Parameters
    ----------
    head : ndarray of shape (h, k)
        Masks of the states possible at records 0 to h - 1.
    cycle : ndarray of shape (c, k)
        Masks at records h, h + 1, ..., repeated for ever.
    """

    head: BoolArray
    cycle: BoolArray

    def at(self, record: int) -> BoolArray:
        """Return the mask of the states possible at one record."""
        start = len(self.head)
        mask: BoolArray = self.head[record] if record < start else self.cycle[(record - start) % len(self.cycle)]
        return mask


def supports_of(transition: FloatArray, initial: FloatArray) -> Supports:
    """Return the states possible at each record.

    Parameters
    ----------
    transition : ndarray of shape (k, k)
        Transition matrix.
    initial : ndarray of shape (k,)
        Law of record 0.

    Returns
    -------
    Supports
        Supersets when the supports do not repeat within 256 records.

    Examples
    --------
    >>> found = supports_of(np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([1.0, 0.0]))
    >>> found.head.astype(int), found.cycle.astype(int)
    (array([[1, 0]]), array([[1, 1]]))
    """
    pattern = transition > 0
    mask = initial > 0
    seen: dict[bytes, int] = {}
    masks: list[BoolArray] = []
    while mask.tobytes() not in seen:
        if len(masks) == LONGEST:
            return Supports(np.empty((0, len(mask)), dtype=np.bool_), np.ones((1, len(mask)), dtype=np.bool_))
        seen[mask.tobytes()] = len(masks)
        masks.append(mask)
        mask = np.asarray(pattern[mask].any(axis=0))
    start = seen[mask.tobytes()]
    every = np.array(masks)
    return Supports(every[:start], every[start:])


def distances_from(
    law: FloatArray, error: float, transition: FloatArray, initial: FloatArray, count: int
) -> FloatArray:
    """Return how far the law at each of the first records is from the stationary one.

    Parameters
    ----------
    law : ndarray of shape (k,)
        Stationary law, at least 1e-280 everywhere.
    error : float
        Bound on its relative error.
    transition, initial : ndarray
        The chain.
    count : int
        Number of records.

    Returns
    -------
    ndarray of shape (at most count,)
        Upper bounds on max - min over states of ln P(x_i) / law, infinite while a probability is below 1e-280; it
        ends early when that no longer falls.

    Notes
    -----
    The range does not increase along the chain: P(x_{i+1}) / law is an average of P(x_i) / law under the reversed
    chain. So the last entry bounds those of all later records.

    Examples
    --------
    >>> matrix = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> distances_from(np.array([2 / 3, 1 / 3]), 1e-15, matrix, np.array([0.5, 0.5]), 2).round(6)
    array([0.693147, 0.492476])
    """
    found: list[float] = []
    current = initial.copy()
    for step in range(count):
        with np.errstate(divide="ignore"):
            ratio = np.log(np.where(current < LEAST, 0.0, current) / law)
        largest = float(max(np.abs(np.log(law)).max(), np.abs(ratio).max()))
        rounding = 2.1 * error + 2.1 * (step + 1) * (len(law) + 4) * UNIT + 32 * UNIT * largest
        spread = float(ratio.max() - ratio.min()) + rounding
        if found and np.isfinite(spread) and spread >= found[-1]:
            break
        found.append(spread)
        current = current @ transition
    return np.minimum.accumulate(np.array(found))
