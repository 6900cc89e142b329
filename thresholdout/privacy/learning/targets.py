"""What a target epsilon leaves to further calls of a learner that continues: a target is for all of them together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.calibration import best_epsilon
from thresholdout.privacy.accounting.events.event_types import Event
from thresholdout.privacy.learning.privacy_report import choose_noise
from thresholdout.privacy.learning.spent import Spent

__all__ = ["CostlyTargetWarning", "SpentTargetWarning", "TargetNoise", "check_left", "noise_for_rest", "warn_if_costly"]

LEAST_LEFT = 0.05  # share of a target; with less there is nothing but noise, and a calibrated target leaves about 0.001
MUCH = 2.0


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
    stacklevel: int = 4,
    find: Callable[[Callable[[float], Event]], float] | None = None,
) -> float:
    """Return the noise multiplier with which the steps to come, after those that were taken, meet a target.

    Parameters
    ----------
    make_event : callable
        From a noise multiplier to all steps to come.
    spent : Spent
        Earlier calls.
    epsilon, delta : float
        The target of all of them together.
    instead : str
        What works where the target is spent, for the error.
    stacklevel : int
        Of the warning, counted from here.
    find : callable, optional
        Finds the least noise of an event with which the target is met, in place of `choose_noise`: for a learner whose
        report knows fewer accountants.

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

    def least(event: Callable[[float], Event]) -> float:
        return choose_noise(event, epsilon=epsilon, noise_multiplier=None, delta=delta)

    search = least if find is None else find
    if not spent.calls:
        return search(make_event)
    before = spent.event
    if before is None:
        seen = f"{epsilon!r} after steps about which nothing is guaranteed"
        raise InputError("epsilon", seen, f"a new fit, {instead}")
    cost = best_epsilon(before, delta).epsilon
    check_left(epsilon, cost, instead)
    noise = search(lambda multiplier: spent.after(make_event(multiplier)))
    warn_if_costly(epsilon, cost, noise, spent.least_noise, stacklevel=stacklevel)
    return noise
