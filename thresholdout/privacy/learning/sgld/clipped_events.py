"""What a clipped chain leaks, as events for an accountant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed
from thresholdout.privacy.accounting.events.event_types import BlackBox, Event, GaussianAnswer
from thresholdout.privacy.accounting.events.learning_steps import WithReplacementGaussianStep

__all__ = ["PlannedSteps", "clipped_event", "noise_multiplier_of", "step_size_of"]

Floats = NDArray[np.float64]
MOST_GROUPS = 24
NOTHING = 700.0  # an epsilon that protects nothing
LEAST, MOST, MOST_SHIFT = 0.01, 1e8, 1e4  # multipliers and shifts that events know; less noise protects nothing


def noise_multiplier_of(eta: float, records: int, batch_size: int, clip: float) -> float:
    """Return the noise of a step on the sum of clipped gradients, over their bound, rounded down.

    Parameters
    ----------
    eta : float
        Step size.
    records, batch_size : int
    clip : float
        Bound on each gradient's norm.

    Returns
    -------
    float
        ``2 b/(n C sqrt(eta))``: the step adds ``eta n/(2 b)`` times the sum, and noise of deviation ``sqrt(eta)``.

    Examples
    --------
    >>> round(noise_multiplier_of(2 * 4 * 0.001 / 60_000, 60_000, 4, 0.2), 6)
    1.825742
    """
    return 2.0 * batch_size / (records * clip * math.sqrt(eta)) * (1.0 - _rounding(batch_size))


def step_size_of(multiplier: float, records: int, batch_size: int, clip: float) -> float:
    """Return the largest step size with at least some noise multiplier, rounded down."""
    return (2.0 * batch_size / (records * clip * multiplier)) ** 2 * max(1e-3, 1.0 - 4.0 * _rounding(batch_size))


def _rounding(batch_size: int) -> float:
    """Return the share of the bound that the rounding of a sum of so many gradients may take (PROOFS.md, C3)."""
    return min(1.0, 1e-12 + 2.0**-51 * batch_size**2)


def clipped_event(
    eta: Floats, records: int, batch_size: int, clip: float, *, order: str, chains: int = 1
) -> Event | None:
    """Return what the chains leak about a replaced record.

    Parameters
    ----------
    eta : ndarray, shape (steps,)
        Step sizes.
    records, batch_size : int
    clip : float
        Bound on each gradient's norm.
    order : {"uniform", "cyclic", "reshuffle"}
        As in `sgld_sample`.
    chains : int
        How many chains, each of which looks at the data by itself.

    Returns
    -------
    Event or None
        For "uniform", steps on batches drawn with replacement. In a sweep each record is looked at by one step, so a
        sweep is one Gaussian answer, with the least noise of its steps and a sensitivity of twice the bound; nothing is
        gained from the secrecy of the order. Proofs in PROOFS.md, C1 and C2. None when there is so little noise that
        it protects nothing.

    Examples
    --------
    >>> clipped_event(np.full(100, 1e-4), 1000, 100, 1.0, order="cyclic")
    SelfComposed(GaussianAnswer(std=19.999999999..., sensitivity=2.0), 10)
    >>> clipped_event(np.full(100, 1e-4), 1000, 100, 1.0, order="uniform").event.batch_size
    100
    """
    if not eta.size:
        return Composed()
    if order == "uniform":
        largest = eta
    else:
        largest = np.maximum.reduceat(eta, np.arange(0, eta.size, records // batch_size))
    sizes, times = _grouped(largest)
    parts: list[Event] = []
    for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
        noise = min(MOST, noise_multiplier_of(size, records, batch_size, clip))
        if noise < LEAST:
            return None
        step: Event
        if order != "uniform":
            step = GaussianAnswer(noise, 2.0, "replace_one")
        elif batch_size < records:
            step = WithReplacementGaussianStep(noise, batch_size, records)
        elif 2.0 * batch_size / noise > MOST_SHIFT:
            return None
        else:  # all draws may be the changed record
            step = GaussianAnswer(noise, 2.0 * batch_size, "replace_one")
        parts.append(SelfComposed(step, count * chains))
    return parts[0] if len(parts) == 1 else Composed(parts)


@dataclass(frozen=True)
class PlannedSteps:
    """What steps of one size leak, as a function of the noise multiplier that the size follows from.

    Attributes
    ----------
    steps, records, batch_size : int
    clip : float
    order : str
    chains : int
        As in `clipped_event`.

    Examples
    --------
    >>> PlannedSteps(100, 1000, 100, 1.0, "cyclic", 1)(20.0)
    SelfComposed(GaussianAnswer(std=20.0..., sensitivity=2.0), 10)
    """

    steps: int
    records: int
    batch_size: int
    clip: float
    order: str
    chains: int

    def __call__(self, multiplier: float) -> Event:
        """Return the event; one that protects nothing where there is hardly any noise."""
        eta = np.full(self.steps, step_size_of(multiplier, self.records, self.batch_size, self.clip))
        found = clipped_event(eta, self.records, self.batch_size, self.clip, order=self.order, chains=self.chains)
        return BlackBox(NOTHING) if found is None else found


def _grouped(eta: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return step sizes and how often they occur; many are put in groups, each with the largest of its step sizes."""
    sizes, times = np.unique(eta, return_counts=True)
    if sizes.size <= MOST_GROUPS:
        return sizes, times
    edges = np.geomspace(sizes[0], sizes[-1], MOST_GROUPS + 1)[1:-1]
    groups = np.searchsorted(edges, sizes)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return np.maximum.reduceat(sizes, starts), np.add.reduceat(times, starts)
