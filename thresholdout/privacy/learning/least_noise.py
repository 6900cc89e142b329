"""The least noise with which a target is met: found by one search, and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from thresholdout.privacy.accounting.accountants.accountant import Accountant
from thresholdout.privacy.accounting.accountants.calibration import calibrate
from thresholdout.privacy.accounting.bound_arguments import open_unit, positive
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event

__all__ = ["USUAL", "MakeEvent", "Search", "least_noise"]

MakeEvent = Callable[[float], Event]


@dataclass(frozen=True)
class Search:
    """How the least noise of a target is searched for.

    Attributes
    ----------
    accountants : tuple of types, optional
        Those of the learner's report; all by default.
    tolerance : float
        How far above the smallest multiplier the result may be, relatively.
    limits : tuple of float
        Between which it must be.
    guess : callable, optional
        A function of what `least_noise` is given first, which says about where the result is.
    progress : bool
        Whether a bar shows that it is looked for, once two seconds are over.
    """

    accountants: tuple[type[Accountant], ...] | None = None
    tolerance: float = 1e-4
    limits: tuple[float, float] = (0.01, 1e8)
    guess: Callable[[MakeEvent, float, float], float] | None = None
    progress: bool = field(default=False, compare=False)


USUAL = Search()


@lru_cache(maxsize=256)
def least_noise(
    make_event: MakeEvent,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = "replace_one",
    search: Search = USUAL,
) -> float:
    """Return the smallest noise that meets a target; searched once, as audits fit the same thousands of times.

    Parameters
    ----------
    make_event : callable
        From a noise multiplier to all that will be done. A frozen value of public numbers, equal to another one of the
        same numbers.
    epsilon : float
        The target, above 0.
    delta : float
        In (0, 1).
    adjacency : {"replace_one", "add_remove"}
        What a neighbour is.
    search : Search

    Raises
    ------
    InputError
        When no noise meets the target.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> 4.2 < least_noise(GaussianAnswer, 1.0, 1e-6) < 4.3
    True
    """
    target, delta, bracket = positive(epsilon, "epsilon"), open_unit(delta, "delta"), (0.3, 30.0)
    if search.guess is not None:
        near = search.guess(make_event, target, delta)
        bracket = near / 1.003, near * 1.003
    found = calibrate(
        make_event, target, delta, adjacency=adjacency, accountants=search.accountants, bracket=bracket,
        limits=search.limits, tolerance=search.tolerance, progress=search.progress,
    )  # fmt: skip
    return found.value
