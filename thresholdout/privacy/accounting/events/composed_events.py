"""Events that consist of events, and a single pass over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.events.event_types import Event

__all__ = ["Composed", "SelfComposed", "check_event", "leaves"]

Part = Event | tuple[str, int]


class _Nested(Event):
    """An event with events inside: it is compared, printed and pickled as a flat list of its parts.

    Adding one event at a time nests thousands of levels, so nothing here recurses.
    """

    def _parts(self) -> tuple[Part, ...]:
        """Return all events inside in order, each composed event as the number of its members before them."""
        found: list[Part] = []
        waiting: list[Event] = [self]
        while waiting:
            event = waiting.pop()
            if isinstance(event, SelfComposed):
                found.append(("times", event.count))
                waiting.append(event.event)
            elif isinstance(event, Composed):
                found.append(("members", len(event.events)))
                waiting.extend(reversed(event.events))
            else:
                found.append(event)
        return tuple(found)

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if isinstance(other, _Nested) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Callable[[tuple[Part, ...]], Event], tuple[tuple[Part, ...]]]:
        return _of_parts, (self._parts(),)

    def __repr__(self) -> str:
        shown: list[str] = []
        waiting: list[Event | str] = [self]
        while waiting:
            event = waiting.pop()
            if isinstance(event, SelfComposed):
                waiting += [f", {event.count})", event.event, "SelfComposed("]
            elif isinstance(event, Composed):
                between = [each for member in reversed(event.events) for each in (member, ", ")][:-1]
                waiting += ["])", *between, "Composed(["]
            else:
                shown.append(event if isinstance(event, str) else repr(event))
        return "".join(shown)


def _of_parts(parts: tuple[Part, ...]) -> Event:
    """Return the event that has these parts."""
    ready: list[Event] = []
    for part in reversed(parts):
        if isinstance(part, Event):
            ready.append(part)
        elif part[0] == "times":
            ready.append(SelfComposed(ready.pop(), part[1]))
        else:
            ready.append(Composed([ready.pop() for _ in range(part[1])]))
    return ready.pop()


@dataclass(frozen=True, repr=False, eq=False)
class SelfComposed(_Nested):
    """Event: the same event several times, each time with fresh randomness.

    Use it for the equal steps of a training. `Composed` joins different events.

    Parameters
    ----------
    event : Event
        The repeated event.
    count : int
        Number of repetitions, at least 1.

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


@dataclass(frozen=True, repr=False, eq=False)
class Composed(_Nested):
    """Event: several events in sequence, each of which may be chosen with knowledge of the earlier releases.

    Parameters
    ----------
    events : iterable of Event, default ()
        The events in order. An empty sequence costs nothing.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox, GaussianAnswer
    >>> Composed([GaussianAnswer(10), BlackBox(0.1)])
    Composed([GaussianAnswer(std=10.0), BlackBox(epsilon=0.1)])
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event] = ()) -> None:
        if isinstance(events, Event) or not isinstance(events, Iterable):
            raise InputTypeError(
                "events", f"a {type(events).__name__}", "a list of events, such as [GaussianAnswer(2.0)]"
            )
        self._set(events=tuple(check_event(event) for event in events))


def check_event(event: object) -> Event:
    """Check an event; a list or tuple of events becomes a `Composed` one."""
    if isinstance(event, Event):
        return event
    if isinstance(event, (list, tuple)):
        try:
            return Composed(event)
        except RecursionError:
            raise InputError("event", "lists within lists, too deep to be read", "one list of all events") from None
    expected = "an event, such as GaussianAnswer(2.0), or a list"
    if isinstance(getattr(event, "event", None), Event):
        expected = f"the .event of this {type(event).__name__}"
    raise InputTypeError("event", f"a {type(event).__name__}", expected)


def leaves(event: Event, times: int = 1) -> Iterator[tuple[Event, int]]:
    """Yield the primitive events in an event, in order, and how often each happens.

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
