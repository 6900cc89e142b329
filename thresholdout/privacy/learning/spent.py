"""What all calls of a learner have cost since it started, as events for an accountant."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed
from thresholdout.privacy.accounting.events.event_types import Event

__all__ = ["Spent"]


@dataclass(frozen=True)
class Spent:
    """Everything that was charged since a learner started; an immutable value.

    Attributes
    ----------
    events : tuple of Event, or None
        Equal steps in one group each; None once a step had no noise.
    calls, steps : int
        How many calls, and how many steps these were charged for.
    seeded : bool
        Whether the noise of a call came from something that could be known.
    least_noise : float
        Smallest noise multiplier of a step.

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
        """Return what was spent with one more call.

        Parameters
        ----------
        event : Event or None
            All of the call's steps; None where they have no noise that protects anything.
        steps : int
        noise : float
            Their smallest noise multiplier.
        seeded : bool
            See the attribute.
        """
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
        """Return all that was spent, which must be known, followed by an event."""
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
