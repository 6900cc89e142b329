"""What the steps of private gradient descent have cost so far, over all calls of an estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.accountants.calibration import best_epsilon
from thresholdout.privacy.accounting.bound_arguments import count, number, positive
from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event
from thresholdout.privacy.learning.dpsgd.batches import PLACES, Batches
from thresholdout.privacy.learning.privacy_report import PrivacyReport, account_for, choose_noise, standing_assumptions
from thresholdout.privacy.learning.targets import check_left, warn_if_costly

__all__ = ["DEFAULT_EPSILON", "Account", "default_delta", "noise_for_target", "per_step"]

Floats = NDArray[np.float64]
DEFAULT_EPSILON = 1.0
PUBLIC = "each neighbour has at least public_size records"
CALIBRATION = 1e-3  # how far above the smallest noise a calibrated one may be


def default_delta(records: int) -> float:
    """Return 1e-5, or a tenth of one over the records when that is less.

    Examples
    --------
    >>> default_delta(1000), default_delta(100_000)
    (1e-05, 1e-06)
    """
    return min(1e-5, 1 / (10 * records))


def per_step(value: Any, name: str, steps: int, *, first: int = 0, zero: bool = False) -> Floats:
    """Return one number for each step.

    Parameters
    ----------
    value : float, array_like of shape (steps,), or callable
        A callable gets the number of the step, and must not look at data.
    name : str
        Of the argument, for errors.
    steps, first : int
        How many steps, and the number of the first one.
    zero : bool
        Whether 0 is allowed.

    Raises
    ------
    InputError, InputTypeError
        When there is not one number for each step, or it is out of range.

    Examples
    --------
    >>> per_step(lambda step: 1 / (1 + step), "learning_rate", 3, first=1).round(3)
    array([0.5  , 0.333, 0.25 ])
    """
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
class Account:
    """Everything that was done since the parameters started; an immutable value.

    Attributes
    ----------
    events : tuple of Event, or None
        All steps, as groups of equal ones; None once a step had no noise.
    calls, steps : int
        How many calls and steps there were.
    seeded : bool
        Whether a call's randomness came from something that could be known.
    least_noise : float
        Smallest noise multiplier of a step.
    adjacency : {"replace_one", "add_remove"}
        What a neighbour is.
    samplings : frozenset of str
        How batches were drawn.

    Examples
    --------
    >>> account = Account().charge(Batches("wor", 4, 100), np.full(10, 2.0), seeded=True)
    >>> account = account.charge(Batches("wor", 4, 100), np.full(5, 2.0), seeded=True)
    >>> account.events
    (SelfComposed(WithoutReplacementGaussianStep(noise_multiplier=2.0, batch_size=4, records=100), 15),)
    """

    events: tuple[Event, ...] | None = ()
    calls: int = 0
    steps: int = 0
    seeded: bool = False
    least_noise: float = math.inf
    adjacency: Adjacency = "replace_one"
    samplings: frozenset[str] = frozenset()

    def charge(self, batches: Batches, noise: Floats, *, seeded: bool) -> Account:
        """Return the account with the steps of one more call.

        Parameters
        ----------
        batches : Batches
        noise : ndarray, shape (steps,)
            Noise multipliers.
        seeded : bool
            See the attribute.

        Raises
        ------
        InputError
            When the earlier calls had other neighbours.
        """
        if self.calls and batches.adjacency != self.adjacency:
            raise InputError("adjacency", batches.adjacency, f"{self.adjacency}, as in the earlier calls")
        events = self.events
        if events is not None:
            events = None if (noise == 0).any() else _merged(events, batches, noise)
        return replace(
            self,
            events=events,
            calls=self.calls + 1,
            steps=self.steps + len(noise),
            seeded=self.seeded or seeded,
            least_noise=min(self.least_noise, float(noise.min())),
            adjacency=batches.adjacency,
            samplings=self.samplings | {batches.sampling},
        )

    @property
    def event(self) -> Event | None:
        """All of it as one event."""
        if self.events is None:
            return None
        return self.events[0] if len(self.events) == 1 else Composed(self.events)

    def report(self, delta: float, *, leaks: tuple[str, ...], details: Mapping[str, Any]) -> PrivacyReport:
        """Return the report, at the smallest epsilon of all accountants.

        Parameters
        ----------
        delta : float
            In (0, 1).
        leaks : tuple of str
            What was taken from the data outside the guarantee.
        details : mapping
            Further numbers.
        """
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


def _merged(events: tuple[Event, ...], batches: Batches, noise: Floats) -> tuple[Event, ...]:
    values, counts = np.unique(noise, return_counts=True)
    found: dict[Event, int] = {}
    for event in events:
        assert isinstance(event, SelfComposed)
        found[event.event] = event.count
    for multiplier, times in zip(values.tolist(), counts.tolist(), strict=True):
        step = batches.event(multiplier)
        found[step] = found.get(step, 0) + times
    return tuple(SelfComposed(step, times) for step, times in found.items())


def noise_for_target(
    account: Account, batches: Batches, steps: int, epsilon: object, delta: float, instead: str = "or a new fit"
) -> float:
    """Return the noise multiplier with which some steps, after what was done before, meet a target.

    Parameters
    ----------
    account : Account
        What was done before, which counts.
    batches : Batches
    steps : int
        How many steps the noise is for.
    epsilon : float
        The target for all of it, above 0.
    delta : float
        In (0, 1).
    instead : str
        What works where the target is spent, for the error.

    Raises
    ------
    InputError
        When no noise meets it, or what was done before has cost nearly as much.

    Warns
    -----
    CostlyTargetWarning
        When it takes twice the noise of what was done before, or more.

    Examples
    --------
    >>> noise = noise_for_target(Account(), Batches("wor", 10, 10), 1, 1.0, 1e-6)  # a Gaussian of sensitivity 2
    >>> 2 * 4.22 < noise < 2 * 4.23
    True
    """
    target = positive(epsilon, "epsilon")
    if account.events is None:
        raise InputError("epsilon", repr(epsilon), "noise_multiplier instead: steps without noise were taken before")
    delta = number(delta, "delta")
    if not account.events:
        return _calibrated((), batches, count(steps, "steps"), target, delta)
    spent = best_epsilon(Composed(account.events), delta, adjacency=account.adjacency).epsilon
    check_left(target, spent, instead)
    found = _calibrated(account.events, batches, count(steps, "steps"), target, delta)
    warn_if_costly(target, spent, found, account.least_noise, stacklevel=6)
    return found


@lru_cache(maxsize=256)
def _calibrated(before: tuple[Event, ...], batches: Batches, steps: int, epsilon: float, delta: float) -> float:
    def make_event(multiplier: float) -> Event:
        return Composed([*before, SelfComposed(batches.event(multiplier), steps)])

    near = _guess(make_event, batches, steps, epsilon, delta)
    return choose_noise(
        make_event,
        epsilon=epsilon,
        noise_multiplier=None,
        delta=delta,
        adjacency=batches.adjacency,
        tolerance=CALIBRATION,
        bracket=(near / 1.003, near * 1.003),
    )


def _guess(make_event: Callable[[float], Event], batches: Batches, steps: int, epsilon: float, delta: float) -> float:
    """Return about the noise that a target needs, by secants of logarithms: epsilon nearly is a power of the noise."""
    rate = batches.batch_size / batches.records
    value = 2 * rate * math.sqrt(2 * steps * math.log(1 / delta)) / epsilon + 0.5  # [B24, App. G] for much noise
    value, slope, earlier = min(max(value, 0.5), 1e6), -1.0, (math.inf, 0.0)
    for _ in range(3):
        found = best_epsilon(make_event(value), delta, adjacency=batches.adjacency).epsilon
        if not 0.0 < found < math.inf:
            return value
        here = math.log(value), math.log(found)
        if earlier[0] < math.inf and here[0] != earlier[0]:
            slope = min(max((here[1] - earlier[1]) / (here[0] - earlier[0]), -3.0), -0.3)
        earlier = here
        value = min(max(value * (found / epsilon) ** (-1 / slope), 0.05), 1e6)
    return value
