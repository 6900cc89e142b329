"""What a target epsilon leaves to further calls of a learner that continues: a target is for all of them together."""

from __future__ import annotations

import warnings

from thresholdout.errors import InputError

__all__ = ["CostlyTargetWarning", "SpentTargetWarning", "check_left", "warn_if_costly"]

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
