"""What a target epsilon leaves to further calls of a learner that continues: a target is for all of them together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.calibration import best_epsilon
from thresholdout.privacy.accounting.bound_arguments import positive
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event
from thresholdout.privacy.learning.iterates import check_noise
from thresholdout.privacy.learning.privacy_report import choose_noise
from thresholdout.privacy.learning.spent import Spent

__all__ = [
    "CostlyTargetWarning",
    "SpentTargetWarning",
    "TargetNoise",
    "check_left",
    "noise_for_rest",
    "noise_of_call",
    "warn_if_costly",
]

LEAST_LEFT = 0.05  # share of a target; with less there is nothing but noise, and a calibrated target leaves about 0.001
MUCH = 2.0
INSTEAD = "noise_multiplier= in its place, or a new fit"


class SpentTargetWarning(UserWarning):
    """All the steps that a target epsilon is for were taken before: this call took none.

    Examples
    --------
    As an error, so that such a fit is not taken for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=SpentTargetWarning)
    """


class CostlyTargetWarning(UserWarning):
    """What earlier calls have left of a target epsilon is met with at least twice the noise that these had.

    Examples
    --------
    As an error, so that such a fit is not taken for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=CostlyTargetWarning)
    """


def check_left(target: float, spent: float, instead: str) -> None:
    """Refuse a target that earlier calls have used up; their noise can't be taken back, and more steps add to them.

    `target` is the epsilon of all calls together, `spent` that of earlier ones at the same delta. A target of which
    less than a twentieth is left is refused; `instead` names other calls that work.

    Examples
    --------
    >>> check_left(3.0, 1.9993, "or warm_start=False")
    >>> check_left(2.0, 1.9993, "or warm_start=False")
    Traceback (most recent call last):
    thresholdout.errors.InputError: epsilon: 2, of which earlier calls have spent 1.999; expected: a larger epsilon \
for all calls together, or warm_start=False
    """
    if spent > (1.0 - LEAST_LEFT) * target:
        seen = f"{target:g}, of which earlier calls have spent {spent:.4g}"
        raise InputError("epsilon", seen, f"a larger epsilon for all calls together, {instead}")


def warn_if_costly(target: float, spent: float, noise: float, before: float, *, stacklevel: int) -> None:
    """Warn when the rest of a target is met with much more noise than earlier calls had at the least."""
    if noise >= MUCH * before:
        message = (
            f"earlier calls have spent {spent:.4g} of the target epsilon {target:g}; the rest is met with a noise "
            f"multiplier of {noise:.4g}, {noise / before:.2g} times that of earlier steps ({before:.4g})"
        )
        warnings.warn(message, CostlyTargetWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class TargetNoise:
    """A noise multiplier that was found for a target, and for what: all that the search was given."""

    given: tuple[Any, ...]
    noise_multiplier: float


def noise_for_rest(
    make_event: Callable[[float], Event],
    spent: Spent,
    epsilon: float,
    delta: float,
    instead: str,
    *,
    adjacency: Adjacency = "replace_one",
    stacklevel: int = 4,
    find: Callable[[Callable[[float], Event]], float] | None = None,
    progress: bool = False,
) -> float:
    """Return the noise multiplier with which the steps to come, after those that were taken, meet a target.

    Parameters
    ----------
    make_event : callable
        From a noise multiplier to all steps to come. A frozen value of public numbers, equal to another one of the same
        numbers: for the first call it is kept with what was found, as audits fit the same thousands of times.
    spent : Spent
        Earlier calls.
    epsilon, delta : float
        The target of all of them together.
    instead : str
        What works where the target is spent, for the error.
    adjacency : {"replace_one", "add_remove"}
        What a neighbour is.
    stacklevel : int
        Of the warning, counted from here.
    find : callable, optional
        Finds the least noise of an event with which the target is met, in place of `choose_noise`: for a learner whose
        report knows fewer accountants.
    progress : bool
        Whether a bar shows that the noise is looked for, once two seconds are over.

    Raises
    ------
    InputError
        When no noise meets it, or earlier calls have spent it, or had too little noise for any guarantee.

    Warns
    -----
    CostlyTargetWarning
        When it takes twice the noise of what was done before, or more.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> 4.2 < noise_for_rest(GaussianAnswer, Spent(), 1.0, 1e-6, "or a new fit") < 4.3
    True
    """
    if not spent.calls:
        return _least_noise(make_event, epsilon, delta, adjacency, progress) if find is None else find(make_event)
    before = spent.event
    if before is None:
        seen = f"{epsilon!r} after steps about which nothing is guaranteed"
        raise InputError("epsilon", seen, f"a new fit, {instead}")
    cost = best_epsilon(before, delta, adjacency=adjacency).epsilon
    check_left(epsilon, cost, instead)

    def after(multiplier: float) -> Event:
        return spent.after(make_event(multiplier))

    if find is None:
        noise = choose_noise(
            after, epsilon=epsilon, noise_multiplier=None, delta=delta, adjacency=adjacency, progress=progress
        )
    else:
        noise = find(after)
    warn_if_costly(epsilon, cost, noise, spent.least_noise, stacklevel=stacklevel)
    return noise


@lru_cache(maxsize=64)
def _least_noise(
    make_event: Callable[[float], Event], epsilon: float, delta: float, adjacency: Adjacency, progress: bool
) -> float:
    return choose_noise(
        make_event, epsilon=epsilon, noise_multiplier=None, delta=delta, adjacency=adjacency, progress=progress
    )


def noise_of_call(
    plan: Callable[[int], Callable[[float], Event]],
    spent: Spent,
    target: TargetNoise | None,
    *,
    noise_multiplier: object,
    epsilon: object,
    delta: float,
    public: object,
    total: int,
    asked: int | None,
    steps: str,
    adjacency: Adjacency = "replace_one",
    progress: bool = False,
) -> tuple[float, TargetNoise | None]:
    """Return the noise of one call of a learner whose target is for all the steps of a fit, and the target it is for.

    Parameters
    ----------
    plan : callable
        From a number of steps to what `noise_for_rest` takes.
    spent : Spent
        Earlier calls.
    target : TargetNoise or None
        What they have found; kept while everything is as it was then.
    noise_multiplier, epsilon : float or None
        The learner's parameters; the target counts where no noise is given.
    delta : float
        Of the target.
    public : object
        All other numbers that the noise depends on; compared.
    total : int
        The steps of a fit.
    asked : int or None
        The steps of this call; None for a fit.
    steps : str
        Name of the argument that says how many.
    adjacency : {"replace_one", "add_remove"}
        What a neighbour is.
    progress : bool
        As in `noise_for_rest`.

    Raises
    ------
    InputError
        As `noise_for_rest`, and for more steps than a target has left.

    Warns
    -----
    CostlyTargetWarning
        As `noise_for_rest`, for the caller of the learner's method, two calls away.
    """
    if noise_multiplier is not None:
        noise = positive(noise_multiplier, "noise_multiplier", zero=True)
        return check_noise(noise, noise, "noise_multiplier"), None
    wanted, left = positive(epsilon, "epsilon"), total - spent.steps
    if asked is not None and asked > left:
        expected = f"at most the {max(left, 0)} that are left of the {total} that the target epsilon is for"
        raise InputError(steps, str(asked), expected)
    given = (public, total, wanted, delta)
    if target is None or target.given != given:
        found = noise_for_rest(
            plan(left), spent, wanted, delta, INSTEAD, adjacency=adjacency, stacklevel=5, progress=progress
        )
        target = TargetNoise(given, found)
    noise = target.noise_multiplier
    return check_noise(noise, noise, "noise_multiplier"), target
