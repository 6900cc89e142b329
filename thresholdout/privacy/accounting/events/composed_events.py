"""Events that consist of events, and the walk through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from thresholdout.errors import InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.events.event_types import Event

__all__ = ["Composed", "SelfComposed", "check_event", "leaves"]


@dataclass(frozen=True, repr=False)
class SelfComposed(Event):
    """The same event several times, each time with fresh randomness.

    Parameters
    ----------
    event : Event
        What is repeated.
    count : int
        How often, 1 or more.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import GaussianAnswer
    >>> SelfComposed(GaussianAnswer(10), 100)
    SelfComposed(GaussianAnswer(std=10.0), 100)
    """

    event: Event
    count: int

    def _check(self) -> None:
        check_event(self.event)
        self._set(count=count(self.count, "count"))

    def __repr__(self) -> str:
        return f"SelfComposed({self.event!r}, {self.count})"


@dataclass(frozen=True, repr=False)
class Composed(Event):
    """Events one after the other, each chosen in view of what the earlier ones released.

    Parameters
    ----------
    events : iterable of Event
        None at all is allowed, and costs nothing.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox, GaussianAnswer
    >>> Composed([GaussianAnswer(10), BlackBox(0.1)])
    Composed([GaussianAnswer(std=10.0), BlackBox(epsilon=0.1)])
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event] = ()) -> None:
        if isinstance(events, Event) or not isinstance(events, Iterable):
            raise InputTypeError("events", f"a {type(events).__name__}", "events, such as [GaussianAnswer(2.0)]")
        self._set(events=tuple(check_event(event) for event in events))

    def __repr__(self) -> str:
        return f"Composed([{', '.join(map(repr, self.events))}])"


def check_event(event: object) -> Event:
    """Return an event; a list or tuple of events becomes a `Composed` one.

    Raises
    ------
    InputTypeError
        When it is none.
    """
    if isinstance(event, Event):
        return event
    if isinstance(event, (list, tuple)):
        return Composed(event)
    expected = "an event, such as GaussianAnswer(2.0), or a list"
    if isinstance(getattr(event, "event", None), Event):
        expected = f"the .event of this {type(event).__name__}"
    raise InputTypeError("event", f"a {type(event).__name__}", expected)


def leaves(event: Event, times: int = 1) -> Iterator[tuple[Event, int]]:
    """Walk once through an event; yield the primitive events in it, in their order, and how often each happens.

    Parameters
    ----------
    event : Event
        Of any depth.
    times : int
        How often all of it happens.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox
    >>> list(leaves(SelfComposed(Composed([BlackBox(0.1), SelfComposed(BlackBox(0.2), 3)]), 2)))
    [(BlackBox(epsilon=0.1), 2), (BlackBox(epsilon=0.2), 6)]
    """
    waiting: list[tuple[Event, int]] = [(event, times)]
    while waiting:
        found, repeated = waiting.pop()
        if isinstance(found, SelfComposed):
            waiting.append((found.event, repeated * found.count))
        elif isinstance(found, Composed):
            waiting.extend((each, repeated) for each in reversed(found.events))
        else:
            yield found.primitive(), repeated
