"""What one call of an estimator will do, decided before it looks at a record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.learning.dpsgd.batches import Batches, PlannedSteps
from thresholdout.privacy.learning.dpsgd.settings import Settings
from thresholdout.privacy.learning.dpsgd.spending import Account, noise_for_target, per_step, search_for
from thresholdout.privacy.learning.targets import TargetNoise, further_steps, noise_of_call

__all__ = ["Call", "plan_fit", "plan_partial_fit"]

Floats = NDArray[np.float64]
WARM = (
    "noise_multiplier= in its place, warm_start=False, or partial_fit with n_steps=, which uses one target up in parts"
)


@dataclass(frozen=True, eq=False)
class Call:
    """One call.

    Attributes
    ----------
    batches : Batches
    noise, rates : ndarray, shape (steps,)
        Each step's noise multiplier and learning rate.
    delta : float
    target : TargetNoise or None
        None where the noise was given.
    """

    batches: Batches
    noise: Floats
    rates: Floats
    delta: float
    target: TargetNoise | None


def plan_fit(settings: Settings, n: int, account: Account, delta: float | None) -> Call:
    """Return the call of ``fit`` on n records; its target holds together with the account's steps, at their delta."""
    batches = settings.batches(n)
    delta = _delta(settings, batches, delta)
    steps, target = settings.steps(batches), None
    if settings.epsilon is not None:
        noise_multiplier = noise_for_target(account, batches, steps, settings.epsilon, delta, WARM)
        target = TargetNoise((batches, account.steps + steps, settings.epsilon, delta), noise_multiplier)
    return _call(settings, batches, account, steps, delta, target)


def plan_partial_fit(
    settings: Settings, n: int, account: Account, delta: float | None, target: TargetNoise | None, n_steps: object
) -> Call | None:
    """Return the call of ``partial_fit``; None where the target's steps were all taken, and no number was asked for.

    Parameters
    ----------
    settings, n, account, delta
        As in `plan_fit`.
    target : TargetNoise or None
        Of earlier calls.
    n_steps : int or None
        How many steps; one epoch when None.

    Raises
    ------
    InputError
        When a target epsilon leaves no more, or fewer steps.

    Notes
    -----
    A target epsilon is for all the steps that ``fit`` would take. The first call finds the noise for all of them, and
    further calls use it up; a call with other batches finds it anew, for the steps that are left. A call that asks for
    no number of steps takes an epoch, or what is left, which may be none.
    """
    batches = settings.batches(n)
    delta = _delta(settings, batches, delta)
    epoch = math.ceil(batches.records / batches.batch_size)
    most = settings.steps(batches)
    asked = None if n_steps is None else count(n_steps, "n_steps")
    name = "n_steps or n_epochs" if asked is None else "n_steps"
    steps = further_steps(asked, epoch, most, account.steps, settings.epsilon, name=name, stacklevel=5)
    if not steps:
        return None
    if settings.epsilon is None:
        return _call(settings, batches, account, steps, delta, None)
    account.check(batches)
    _, target = noise_of_call(
        partial(PlannedSteps, batches), account, target, noise_multiplier=None, epsilon=settings.epsilon, delta=delta,
        public=batches, total=most, adjacency=batches.adjacency, stacklevel=6,
        search=search_for(batches, most - account.steps),
    )  # fmt: skip
    return _call(settings, batches, account, steps, delta, target)


def _delta(settings: Settings, batches: Batches, earlier: float | None) -> float:
    return settings.delta_for(batches) if settings.delta is not None or earlier is None else earlier


def _call(
    settings: Settings, batches: Batches, account: Account, steps: int, delta: float, target: TargetNoise | None
) -> Call:
    multiplier = settings.noise_multiplier if target is None else target.noise_multiplier
    noise = per_step(multiplier, "noise_multiplier", steps, first=account.steps, zero=True)
    rates = per_step(settings.learning_rate, "learning_rate", steps, first=account.steps)
    return Call(batches, noise, rates, delta, target)
