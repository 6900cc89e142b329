"""Cost of the steps of private gradient descent, over all calls of an estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.accountants.calibration import best_epsilon
from thresholdout.privacy.accounting.bound_arguments import count, number, positive
from thresholdout.privacy.accounting.events.composed_events import Composed
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event
from thresholdout.privacy.learning.dpsgd.batches import PLACES, Batches, PlannedSteps
from thresholdout.privacy.learning.privacy_report import PrivacyReport, account_for, standing_assumptions
from thresholdout.privacy.learning.targets import Search, Spent, noise_for_rest

__all__ = ["DEFAULT_EPSILON", "Account", "default_delta", "noise_for_target", "per_step", "search_for"]

Floats = NDArray[np.float64]
DEFAULT_EPSILON = 1.0  # the target if neither a target nor a noise is declared
PUBLIC = "each neighbour has at least public_size records"
CALIBRATION = 1e-3  # relative excess of a calibrated noise over the smallest one


def default_delta(records: int) -> float:
    """Return the smaller of 1e-5 and a tenth of one over the records."""
    return min(1e-5, 1 / (10 * records))


def per_step(value: Any, name: str, steps: int, *, first: int = 0, zero: bool = False) -> Floats:
    """Return one number for each step; a callable gets the number of the step, and must not read data."""
    if callable(value):
        schedule: Callable[[int], Any] = value
        return np.array([positive(schedule(first + step), name, zero=zero) for step in range(steps)])
    if isinstance(value, (str, bytes, Mapping)) or value is None:
        raise InputTypeError(
            name, f"a {type(value).__name__}", "a number, one for each step, or a function of the step"
        )
    if np.ndim(value) == 0:
        return np.full(steps, positive(value, name, zero=zero))
    if np.ndim(value) != 1 or len(value) != steps:
        raise InputError(name, f"an array of shape {np.shape(value)}", f"a number, or one for each of {steps} steps")
    return np.array([positive(each, name, zero=zero) for each in np.asarray(value).tolist()])


@dataclass(frozen=True)
class Account(Spent):
    """Steps charged since the parameters started, with the neighbours and samplings of their batches; immutable."""

    adjacency: Adjacency = "replace_one"
    samplings: frozenset[str] = frozenset()

    def check(self, batches: Batches) -> None:
        """Refuse batches with other neighbours than those of the earlier calls."""
        if self.calls and batches.adjacency != self.adjacency:
            raise InputError("adjacency", repr(batches.adjacency), f"{self.adjacency!r}, as in the earlier calls")

    def charge_batches(self, batches: Batches, noise: Floats, *, seeded: bool) -> Account:
        """Return the account with the steps of one more call."""
        self.check(batches)
        event = None
        if noise.all():
            values, counts = np.unique(noise, return_counts=True)
            groups = zip(values.tolist(), counts.tolist(), strict=True)
            event = Composed([PlannedSteps(batches, steps)(multiplier) for multiplier, steps in groups])
        charged = self.charge(event, len(noise), float(noise.min()), seeded=seeded)
        return replace(charged, adjacency=batches.adjacency, samplings=self.samplings | {batches.sampling})

    def report(self, delta: float, *, leaks: tuple[str, ...], details: Mapping[str, Any]) -> PrivacyReport:
        """Return the report, at the smallest epsilon of all accountants."""
        standing = standing_assumptions(seeded=self.seeded, adjacency=self.adjacency, calls=self.calls)
        assumptions = list(standing)
        if self.adjacency == "add_remove":
            assumptions += [PLACES] if "poisson" in self.samplings else []
            assumptions += [PUBLIC] if self.samplings - {"poisson"} else []
        return account_for(
            self.event,
            delta=delta,
            adjacency=self.adjacency,
            released="all iterates",
            noise_multiplier=self.least_noise,
            assumptions=tuple(assumptions),
            leaks=leaks,
            details={**details, "steps": self.steps, "calls": self.calls},
        )


def noise_for_target(
    account: Account,
    batches: Batches,
    steps: int,
    epsilon: object,
    delta: float,
    instead: str = "noise_multiplier in its place, or start a new fit",
) -> float:
    """Return the noise multiplier with which some steps, after the charged ones, meet a target."""
    account.check(batches)
    left = count(steps, "steps")
    return noise_for_rest(
        PlannedSteps(batches, left), account, positive(epsilon, "epsilon"), number(delta, "delta"), instead,
        adjacency=batches.adjacency, stacklevel=7, search=search_for(batches, left),
    )  # fmt: skip


def search_for(batches: Batches, steps: int) -> Search:
    """Return the search for the noise of steps; it starts near the result, as each evaluation is slow."""
    return Search(tolerance=CALIBRATION, guess=_Guess(batches, steps))


@dataclass(frozen=True)
class _Guess:
    """Approximate noise of a target, by secants of logarithms: epsilon is nearly a power of the noise."""

    batches: Batches
    steps: int

    def __call__(self, make_event: Callable[[float], Event], epsilon: float, delta: float) -> float:
        rate = self.batches.batch_size / self.batches.records
        value = 2 * rate * math.sqrt(2 * self.steps * math.log(1 / delta)) / epsilon + 0.5  # [B24, App. G], much noise
        # For much noise epsilon is proportional to 1/noise: a slope of -1, to start with.
        value, slope, earlier = min(max(value, 0.5), 1e6), -1.0, (math.inf, 0.0)
        for _ in range(3):
            found = best_epsilon(make_event(value), delta, adjacency=self.batches.adjacency).epsilon
            if not 0.0 < found < math.inf:
                return value
            here = math.log(value), math.log(found)
            if earlier[0] < math.inf and here[0] != earlier[0]:
                # Limits keep a secant through two close points from leaping away.
                slope = min(max((here[1] - earlier[1]) / (here[0] - earlier[0]), -3.0), -0.3)
            earlier = here
            # Kept well inside the accountants' range of 0.01 to 1e8.
            value = min(max(value * (found / epsilon) ** (-1 / slope), 0.05), 1e6)
        return value
