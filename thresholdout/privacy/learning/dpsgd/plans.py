"""What one call of an estimator will do, decided before it looks at a record."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.learning.dpsgd.batches import Batches
from thresholdout.privacy.learning.dpsgd.settings import Settings
from thresholdout.privacy.learning.dpsgd.spending import Account, noise_for_target, per_step

__all__ = ["Call", "Target", "plan_fit", "plan_partial_fit"]

Floats = NDArray[np.float64]
WARM = (
    "noise_multiplier= in its place, warm_start=False, or partial_fit with n_steps=, which uses one target up in parts"
)
PARTIAL = "or noise_multiplier= in its place"


@dataclass(frozen=True)
class Target:
    """A noise that was found for a target, and for what.

    Attributes
    ----------
    batches : Batches
    steps : int
        How many steps the target is for, since the parameters started.
    epsilon, delta : float
    noise_multiplier : float
    """

    batches: Batches
    steps: int
    epsilon: float
    delta: float
    noise_multiplier: float


@dataclass(frozen=True, eq=False)
class Call:
    """One call.

    Attributes
    ----------
    batches : Batches
    noise, rates : ndarray, shape (steps,)
        Each step's noise multiplier and learning rate.
    delta : float
    target : Target or None
        None where the noise was given.
    """

    batches: Batches
    noise: Floats
    rates: Floats
    delta: float
    target: Target | None


def plan_fit(settings: Settings, n: int, account: Account, delta: float | None) -> Call:
    """Return the call of ``fit`` on n records; its target holds together with the account's steps, at their delta."""
    batches = settings.batches(n)
    delta = _delta(settings, batches, delta)
    steps, target = settings.steps(batches), None
    if settings.epsilon is not None:
        noise_multiplier = noise_for_target(account, batches, steps, settings.epsilon, delta, WARM)
        target = Target(batches, account.steps + steps, settings.epsilon, delta, noise_multiplier)
    return _call(settings, batches, account, steps, delta, target)


def plan_partial_fit(
    settings: Settings, n: int, account: Account, delta: float | None, target: Target | None, n_steps: object
) -> Call | None:
    """Return the call of ``partial_fit``; None where the target's steps were all taken, and no number was asked for.

    Parameters
    ----------
    settings, n, account, delta
        As in `plan_fit`.
    target : Target or None
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
    steps = epoch if n_steps is None else count(n_steps, "n_steps")
    if settings.epsilon is None:
        return _call(settings, batches, account, steps, delta, None)
    most = settings.steps(batches)
    left = most - account.steps
    if n_steps is None and left <= 0:
        return None
    if n_steps is None:
        steps = min(steps, left)
    if steps > left:
        expected = f"at most the {max(left, 0)} that are left of the {most} that the target epsilon is for"
        raise InputError("n_steps", str(steps), expected)
    wanted = (batches, most, settings.epsilon, delta)
    if target is None or wanted != (target.batches, target.steps, target.epsilon, target.delta):
        noise_multiplier = noise_for_target(account, batches, left, settings.epsilon, delta, PARTIAL)
        target = Target(*wanted, noise_multiplier)
    return _call(settings, batches, account, steps, delta, target)


def _delta(settings: Settings, batches: Batches, earlier: float | None) -> float:
    return settings.delta_for(batches) if settings.delta is not None or earlier is None else earlier


def _call(
    settings: Settings, batches: Batches, account: Account, steps: int, delta: float, target: Target | None
) -> Call:
    multiplier = settings.noise_multiplier if target is None else target.noise_multiplier
    noise = per_step(multiplier, "noise_multiplier", steps, first=account.steps, zero=True)
    rates = per_step(settings.learning_rate, "learning_rate", steps, first=account.steps)
    return Call(batches, noise, rates, delta, target)
