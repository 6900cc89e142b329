"""Events of clipped chains, and warnings of chains that are likely to be worth nothing."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed
from thresholdout.privacy.accounting.events.event_types import BlackBox, Event, GaussianAnswer
from thresholdout.privacy.accounting.events.learning_steps import WithReplacementGaussianStep
from thresholdout.privacy.learning.privacy_report import LowSignalWarning, warn_of_noise
from thresholdout.privacy.learning.sgld.sampler import Problem

__all__ = [
    "PlannedSteps",
    "clipped_event",
    "noise_multiplier_of",
    "step_size_of",
    "swing",
    "warn_of_noisy_steps",
    "warn_of_start",
    "warn_of_swing",
    "way",
]

Floats = NDArray[np.float64]
MOST_GROUPS = 24  # of step sizes; accountants take time in proportion
NOTHING = 700.0  # an epsilon that protects nothing
LEAST, MOST, MOST_SHIFT = 0.01, 1e8, 1e4  # ranges of multipliers and shifts of events; less noise protects nothing


def noise_multiplier_of(eta: float, records: int, batch_size: int, clip: float) -> float:
    """Return the noise of a step on the sum of clipped gradients, over their bound, rounded down.

    ``2 b/(n C sqrt(eta))``: the step adds ``eta n/(2 b)`` times the sum, and noise of standard deviation ``sqrt(eta)``.
    """
    return 2.0 * batch_size / (records * clip * math.sqrt(eta)) * (1.0 - _rounding(batch_size))


def step_size_of(multiplier: float, records: int, batch_size: int, clip: float) -> float:
    """Return the largest step size with at least some noise multiplier, rounded down."""
    # 1/sqrt(1 - 4 r) is at least 1 + 2 r, more than `noise_multiplier_of` takes away; 1e-3 keeps the size above 0.
    return (2.0 * batch_size / (records * clip * multiplier)) ** 2 * max(1e-3, 1.0 - 4.0 * _rounding(batch_size))


def _rounding(batch_size: int) -> float:
    """Return the share of the bound that the rounding of a sum of so many gradients may take (PROOFS.md, C3)."""
    return min(1.0, 1e-12 + 2.0**-51 * batch_size**2)


def clipped_event(
    eta: Floats, records: int, batch_size: int, clip: float, *, order: str, chains: int = 1
) -> Event | None:
    """Return the event of the chains, for a replaced record; None where there is too little noise to protect.

    For "uniform", steps on batches drawn with replacement. In a sweep each record enters one step. So a sweep is one
    Gaussian answer, with the least noise of its steps and a sensitivity of twice the bound; the secrecy of the order
    gains nothing. Proofs in PROOFS.md, C1 and C2.
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
    """The event of steps of one size, as a function of the noise multiplier that determines the size."""

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
    """Return step sizes and their counts; many sizes are put into groups, each with the largest of its sizes."""
    sizes, times = np.unique(eta, return_counts=True)
    if sizes.size <= MOST_GROUPS:
        return sizes, times
    # The largest step size of a group has the least noise, so its event bounds the others (PROOFS.md, C2).
    edges = np.geomspace(sizes[0], sizes[-1], MOST_GROUPS + 1)[1:-1]
    groups = np.searchsorted(edges, sizes)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return np.maximum.reduceat(sizes, starts), np.add.reduceat(times, starts)


# Limits that separate good fits from worthless ones (benchmarks/README.md; counts in the docstrings below).
MOST_NOISE = 0.05  # of the way of gradients
MOST_SWING = 0.15
LEAST_WAY = 0.4


def warn_of_noisy_steps(problem: Problem, *, stacklevel: int) -> None:
    """Warn when the noise of all steps is long beside the way of gradients that all agree; the mean has less noise."""
    if problem.clip is None or not problem.eta.size:
        return
    # Gradients move a step by eta n C / 2 at most. Its noise has variance eta, or eta/chains in the mean.
    total = float(problem.eta.sum())
    way = total / 2 * problem.y.size * problem.clip
    share = math.sqrt(problem.x.shape[1] * total / problem.chains) / way
    warn_of_noise(share, MOST_NOISE, "as many records, or as large an epsilon,", stacklevel=stacklevel + 1)


def swing(before: Floats, after: Floats, slopes: int) -> float:
    """Return the square of half the last step of the chains' mean, over that of the slopes in its middle.

    Near the minimum a step takes a deviation e of the chain to ``(1 - k) e + sqrt(eta) z``, with ``k = eta (alpha + n
    beta m) / 2`` and m the mean square of the features in a direction. For k below 2 it settles with a variance of
    ``eta / (k (2 - k))``, and the share expected here is ``d eta / (2 (2 - k))`` over the square of the slopes. For k
    up to 1 it is large only where the noise of one step is as long as the slopes. Above 2 each step overshoots by more
    than the last, until so many gradients are clipped that the chain is thrown back exactly as far. The two states are
    then on both sides of the minimum, up to ``eta n clip / 2`` apart. With the noise that a target epsilon needs, eta
    is proportional to ``clip**-2``: a clip that is too small makes this longer.
    """
    middle, half = (after + before).mean(axis=0) / 2, (after - before).mean(axis=0) / 2
    size = float(middle[:slopes] @ middle[:slopes])
    return float(half @ half) / size if size else math.inf


def warn_of_swing(before: Floats, after: Floats, slopes: int, *, stacklevel: int) -> None:
    """Warn when the last step of clipped chains is so long that they are likely to be worth nothing.

    Of 317 good fits, with at least half the possible R2 and no warning of noise, none was above the limit. Of 56 with
    an R2 below -1 and clips that were too small, 53 were (``benchmarks/README.md``).
    """
    found = swing(before, after, slopes)
    if not found <= MOST_SWING:
        message = (
            f"The chain swings: half of its last step has {found:.2g} times the square of its slopes; above "
            f"{MOST_SWING:g}, fits are useless. A larger clip (twice the clip makes the step for a target "
            "epsilon four times smaller), a smaller step_size, or more records are needed."
        )
        warnings.warn(message, LowSignalWarning, stacklevel=stacklevel + 1)


def way(start: Floats, halfway: Floats, after: Floats) -> tuple[float, float]:
    """Return the squared way of chains over that of their start from 0, and the pace of the second half over the first.

    Where half of the steps leave a share r of a deviation e from the minimum, the two halves of the way are ``(r - 1)
    e`` and ``(r - 1) r e``: the remaining pace is r, and the square of the way ``(1 - r^2)^2 e^2``. A start from the
    prior is about as far from the minimum as from 0, or farther. So a small r comes with a way that is not short, and a
    chain that has not arrived has a short one at nearly the first pace.
    """
    first, second, size = halfway - start, after - halfway, float((start * start).sum())
    taken, gone = float((first * first).sum()), float(((after - start) ** 2).sum())
    return gone / size if size else math.inf, float((first * second).sum()) / taken if taken else 0.0


def warn_of_start(start: Floats, halfway: Floats, after: Floats, eta: Floats, *, stacklevel: int) -> None:
    """Warn when chains are still near their start and moving: the steps were too short to arrive.

    Moving means farther in the second half than noise alone would take them. Of 317 good fits, with at least half the
    possible R2 and no warning of noise, none was below the limit. Of 111 with an R2 below -1 and clips that were not
    too small, 104 were (``benchmarks/README.md``). With few features a random start may happen to be a good one: the
    warning is then false.
    """
    gone, pace = way(start, halfway, after)
    moved, noise = float(((after - halfway) ** 2).sum()), after.size * float(eta[eta.size // 2 :].sum())
    if gone < LEAST_WAY * min(pace, 1.0) and moved > noise:
        message = (
            f"The chain has not converged: it came {math.sqrt(gone):.2g} times as far as its random start is long, and "
            f"still moves at {pace:.2g} times the pace of its first half. More steps, a smaller clip (half the clip "
            "makes the step for a target epsilon four times larger), or a larger step_size are needed."
        )
        warnings.warn(message, LowSignalWarning, stacklevel=stacklevel + 1)
