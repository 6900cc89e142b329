"""Target epsilons, each for all calls of a learner together: their costs, the least noise, and the noise of a call."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.accountants.accountant import Accountant
from thresholdout.privacy.accounting.accountants.calibration import best_epsilon, calibrate
from thresholdout.privacy.accounting.bound_arguments import open_unit, positive
from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event
from thresholdout.privacy.learning.iterates import check_noise

__all__ = [
    "USUAL",
    "CostlyTargetWarning",
    "MakeEvent",
    "Search",
    "Spent",
    "SpentTargetWarning",
    "TargetNoise",
    "check_left",
    "further_steps",
    "least_noise",
    "noise_for_rest",
    "noise_of_call",
    "warn_if_costly",
]


@dataclass(frozen=True)
class Spent:
    """Everything that was charged since a learner started; an immutable value.

    `events` holds equal steps in one group each; it is None once a step had no noise. `seeded` says whether the noise
    of a call came from a source that somebody could know.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> step = GaussianAnswer(4.0)
    >>> twice = Spent().charge(SelfComposed(step, 10), 10, 4.0, seeded=False)
    >>> twice.charge(SelfComposed(step, 5), 5, 4.0, seeded=False).event
    SelfComposed(GaussianAnswer(std=4.0), 15)
    """

    events: tuple[Event, ...] | None = ()
    calls: int = 0
    steps: int = 0
    seeded: bool = False
    least_noise: float = math.inf

    def charge(self, event: Event | None, steps: int, noise: float, *, seeded: bool) -> Self:
        """Return the account with one more call."""
        events = None
        if event is not None and self.events is not None:
            events = _grouped([*self.events, event])
        return replace(
            self,
            events=events,
            calls=self.calls + 1,
            steps=self.steps + steps,
            seeded=self.seeded or seeded,
            least_noise=min(self.least_noise, noise),
        )

    @property
    def event(self) -> Event | None:
        """All of it as one event; None where nothing is guaranteed."""
        return None if self.events is None else together(self.events)

    def after(self, event: Event) -> Event:
        """Return all that was spent, followed by an event; every earlier step must have had noise."""
        assert self.events is not None
        return together(_grouped([*self.events, event]))


def together(events: tuple[Event, ...]) -> Event:
    """Return several events as one."""
    return events[0] if len(events) == 1 else Composed(events)


def _grouped(events: list[Event]) -> tuple[Event, ...]:
    times: dict[Event, int] = {}
    for event in events:
        for step, count in _steps(event):
            times[step] = times.get(step, 0) + count
    return tuple(SelfComposed(step, count) for step, count in times.items())


def _steps(event: Event) -> list[tuple[Event, int]]:
    if isinstance(event, Composed):
        return [step for each in event.events for step in _steps(each)]
    return [(event.event, event.count)] if isinstance(event, SelfComposed) else [(event, 1)]


MakeEvent = Callable[[float], Event]


@dataclass(frozen=True)
class Search:
    """Settings of the search for the least noise of a target.

    `tolerance` is relative, above the smallest multiplier. `guess` takes the first three arguments of `least_noise` and
    returns a number near the result. `accountants` are those of the learner's report; None means all.
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
    """Return the smallest noise that meets a target; cached, as audits fit the same settings thousands of times.

    `make_event` maps a noise multiplier to the event of the whole call. It is a frozen value of public numbers, equal
    to any other one of the same numbers.
    """
    # Multipliers of common targets; `calibrate` leaves the bracket where the result is outside.
    target, delta, bracket = positive(epsilon, "epsilon"), open_unit(delta, "delta"), (0.3, 30.0)
    if search.guess is not None:
        near = search.guess(make_event, target, delta)
        bracket = near / 1.003, near * 1.003
    found = calibrate(
        make_event, target, delta, adjacency=adjacency, accountants=search.accountants, bracket=bracket,
        limits=search.limits, tolerance=search.tolerance, progress=search.progress,
    )  # fmt: skip
    return found.value


LEAST_LEFT = 0.05  # share of a target; with less there is nothing but noise, and a calibrated target leaves about 0.001

MUCH = 2.0  # twice the noise of earlier calls is four times their variance

# The end of "You can also pass ...".
INSTEAD = "noise_multiplier in its place, or start a new fit"


class SpentTargetWarning(UserWarning):
    """Issued when `partial_fit` took no step, because earlier calls took all the steps of the target epsilon.

    The model is unchanged. More steps need a larger number of steps and a larger epsilon for all calls together.

    Examples
    --------
    Turn it into an error, so that such a fit does not pass for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=SpentTargetWarning)
    """


class CostlyTargetWarning(UserWarning):
    """Issued when the rest of a target epsilon needs at least twice the noise of earlier calls.

    It appears when a fit is continued after earlier calls have used up most of the target, or when its data or settings
    have changed. A larger epsilon for all calls together needs less noise.

    Examples
    --------
    Turn it into an error, so that such a fit does not pass for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=CostlyTargetWarning)
    """


def check_left(target: float, spent: float, instead: str) -> None:
    """Refuse a target of which earlier calls have left less than a twentieth; their noise is final."""
    if spent > (1.0 - LEAST_LEFT) * target:
        seen = f"{target:g}, of which earlier calls have spent {spent:.4g}"
        raise InputError("epsilon", seen, "a larger epsilon for all calls together", f"You can also pass {instead}.")


def warn_if_costly(target: float, spent: float, noise: float, before: float, *, stacklevel: int) -> None:
    """Warn when the rest of a target needs much more noise than the least of earlier calls."""
    if noise >= MUCH * before:
        message = (
            f"Earlier calls have spent {spent:.4g} of the target epsilon {target:g}. The rest needs a noise multiplier "
            f"of {noise:.4g}, {noise / before:.2g} times that of earlier steps ({before:.4g}). A larger epsilon for "
            "all calls together needs less noise."
        )
        warnings.warn(message, CostlyTargetWarning, stacklevel=stacklevel + 1)


@dataclass(frozen=True)
class TargetNoise:
    """A noise multiplier that was found for a target, with all arguments of the search."""

    given: tuple[Any, ...]
    noise_multiplier: float


@dataclass(frozen=True)
class _After:
    """The joint event of earlier calls and further steps, as a function of the noise of the latter."""

    spent: Spent
    make_event: MakeEvent

    def __call__(self, noise: float) -> Event:
        return self.spent.after(self.make_event(noise))


def noise_for_rest(
    make_event: MakeEvent,
    spent: Spent,
    epsilon: float,
    delta: float,
    instead: str,
    *,
    adjacency: Adjacency = "replace_one",
    stacklevel: int = 4,
    search: Search = USUAL,
) -> float:
    """Return the noise multiplier with which further steps, after those of earlier calls, meet a target."""
    if not spent.calls:
        return least_noise(make_event, epsilon, delta, adjacency, search)
    before = spent.event
    if before is None:
        seen, expected = f"{epsilon!r} after steps without noise", "a target for steps that all have noise"
        raise InputError("epsilon", seen, expected, f"You can also pass {instead}.")
    cost = best_epsilon(before, delta, adjacency=adjacency).epsilon
    check_left(epsilon, cost, instead)
    noise = least_noise(_After(spent, make_event), epsilon, delta, adjacency, search)
    warn_if_costly(epsilon, cost, noise, spent.least_noise, stacklevel=stacklevel)
    return noise


def further_steps(
    asked: int | None,
    usual: int,
    total: int,
    taken: int,
    epsilon: object,
    *,
    name: str = "n_steps",
    instead: str = "noise_multiplier in its place",
    stacklevel: int = 3,
) -> int:
    """Return the number of steps of a further call; 0, with a warning, where a target has none left.

    Examples
    --------
    >>> further_steps(None, 10, 25, 20, 1.0), further_steps(3, 10, 25, 20, 1.0), further_steps(None, 10, 25, 20, None)
    (5, 3, 10)
    """
    if epsilon is None:
        return usual if asked is None else asked
    left = max(total - taken, 0)
    if asked is not None:
        if asked > left:
            raise InputError(name, str(asked), f"at most {left}, the rest of the {total} for the target epsilon")
        return asked
    if not left:
        message = (
            f"No step was taken: earlier calls took all {total} for the target epsilon {epsilon:g}. More of them need "
            f"a larger {name} and a larger epsilon for all calls together, or {instead}."
        )
        warnings.warn(message, SpentTargetWarning, stacklevel=stacklevel + 1)
    return min(usual, left)


def noise_of_call(
    plan: Callable[[int], MakeEvent],
    spent: Spent,
    target: TargetNoise | None,
    *,
    noise_multiplier: object,
    epsilon: object,
    delta: float,
    public: object,
    total: int,
    adjacency: Adjacency = "replace_one",
    instead: str = INSTEAD,
    stacklevel: int = 4,
    search: Search = USUAL,
) -> tuple[float, TargetNoise | None]:
    """Return the noise of one call of a learner whose target covers all steps of a fit, and that target."""
    if noise_multiplier is not None:
        noise = positive(noise_multiplier, "noise_multiplier", zero=True)
        return check_noise(noise, noise, "noise_multiplier"), None
    wanted = positive(epsilon, "epsilon")
    given = (public, total, wanted, delta)
    # Equal public numbers have the same noise; with others it is found for the remaining steps (G6 of dpsgd/PROOFS.md).
    if target is None or target.given != given:
        found = noise_for_rest(
            plan(total - spent.steps), spent, wanted, delta, instead, adjacency=adjacency, stacklevel=stacklevel + 1,
            search=search,
        )  # fmt: skip
        target = TargetNoise(given, found)
    noise = target.noise_multiplier
    return check_noise(noise, noise, "noise_multiplier"), target
