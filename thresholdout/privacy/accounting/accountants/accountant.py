"""The interface of accountants, which add up the privacy cost of events, and the accountant of pure epsilons."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count as check_count
from thresholdout.privacy.accounting.bound_arguments import positive, probability, sum_up
from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed, check_event, leaves
from thresholdout.privacy.accounting.events.event_types import (
    Adjacency,
    Event,
    adjacency_refusal,
    check_adjacency,
    parameters_of,
)
from thresholdout.privacy.accounting.optimal_composition import compose_optimal_delta, compose_optimal_epsilon

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["Accountant", "Bound", "PureAccountant", "Stated", "UnsupportedEvent", "total_pure_epsilon"]

Bound = Literal["exact", "upper", "lower", "estimate"]


class UnsupportedEvent(InputError):
    """Raised when an accountant cannot account for an event.

    Each kind of accountant knows some events only. `best_epsilon` leaves out accountants that refuse an event, and
    `Accountant.why_not` returns the reason without an exception.

    Attributes
    ----------
    event : Event
        The refused event. For a composed event, the part that was refused.
    accountant : str
        Name of the accountant that refuses the event.
    reason : str
        Why the accountant refuses the event.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import GaussianAnswer, PureAccountant
    >>> try:
    ...     PureAccountant().compose(GaussianAnswer(2.0))
    ... except UnsupportedEvent as error:
    ...     print(error.accountant)
    pure
    """

    def __init__(self, event: Event, accountant: str, reason: str) -> None:
        self.event = event
        self.accountant = accountant
        self.reason = reason
        expected = f"an event that the {accountant} accountant supports"
        super().__init__("event", repr(event), expected, f"It refuses this event because {reason}.")

    def __reduce__(self) -> tuple[type[UnsupportedEvent], tuple[Event, str, str]]:  # type: ignore[override]
        return (type(self), (self.event, self.accountant, self.reason))


@dataclass(frozen=True)
class Stated:
    """A number and its standing: how far it is a guarantee, and how it was reached.

    "exact" is attained by the worst mechanism that the events describe, up to rounding upwards. "upper" is a guarantee
    that may be larger than needed. "lower" is reached by some mechanism that they describe. "estimate" is close to the
    exact value, and no guarantee.
    """

    value: float
    bound: Bound
    how: str

    @property
    def guarantees(self) -> bool:
        """Whether it is a guarantee."""
        return self.bound in ("exact", "upper")


class Accountant(ABC):
    """Base class for privacy accountants, which add up the privacy cost of events.

    The definition of neighbouring data sets is fixed for each accountant.

    An event, such as `GaussianAnswer`, describes a release about private records. An accountant takes events with
    `compose` and returns the total cost as `epsilon` at a delta, or as `delta` at an epsilon. Use one of the three
    subclasses: `PureAccountant`, `RenyiAccountant` or `DistributionAccountant`. `best_epsilon` tries all of them.

    Parameters
    ----------
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        Definition of neighbouring data sets.

        * "replace_one": the data sets have the same size and differ in one record.
        * "add_remove": one data set has one more record than the other.

    Notes
    -----
    Equal events are stored once, with their number. Repeating a step therefore takes no time, and the order of events
    does not matter. An event may be chosen with knowledge of earlier releases. The *number* of events and their
    parameters must not depend on earlier releases, unless they follow a rule that was fixed in advance.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import LaplaceAnswer, PureAccountant
    >>> PureAccountant().compose(LaplaceAnswer(10.0), 5).total
    5
    """

    name: ClassVar[str]
    """Name of the accountant in tables."""

    def __init__(self, adjacency: Adjacency = "replace_one") -> None:
        self._adjacency = check_adjacency(adjacency)
        self._counts: dict[Event, int] = {}

    @property
    def adjacency(self) -> Adjacency:
        """Definition of neighbouring data sets, "replace_one" or "add_remove"."""
        return self._adjacency

    @property
    def counts(self) -> Mapping[Event, int]:
        """Primitive events that were composed so far, with the number of times of each."""
        return MappingProxyType(self._counts)

    @property
    def events(self) -> Composed:
        """All events that were composed so far, as a single event."""
        return Composed([SelfComposed(event, times) for event, times in self._counts.items()])

    @property
    def total(self) -> int:
        """Number of primitive events that were composed so far."""
        return sum(self._counts.values())

    def supports(self, event: Event) -> bool:
        """Return whether `compose` accepts an event.

        Parameters
        ----------
        event : Event or list of Event
            The event to check. It is not added.

        Returns
        -------
        bool
            True if the accountant can account for the event.
        """
        return not self.why_not(event)

    def why_not(self, event: Event) -> str:
        """Return the reason for which `compose` refuses an event.

        Parameters
        ----------
        event : Event or list of Event
            The event to check. It is not added.

        Returns
        -------
        str
            The reason, or an empty string if the event is accepted.
        """
        refused = self._read(check_event(event), 1)[1]
        return "" if refused is None else refused.reason

    def compose(self, event: Event, count: int = 1) -> Self:
        """Add an event, or several repetitions of it.

        Parameters
        ----------
        event : Event or list of Event
            The release to add.
        count : int, default 1
            Number of repetitions, each with fresh randomness.

        Returns
        -------
        Accountant
            The accountant itself, so that calls can be chained.

        Raises
        ------
        UnsupportedEvent
            If the event is, or contains, an event that this accountant cannot account for. The accountant is then
            unchanged.
        """
        found, refused = self._read(check_event(event), check_count(count, "count"))
        if refused is not None:
            raise refused
        for each, times in found.items():
            self._counts[each] = self._counts.get(each, 0) + times
        return self

    def _read(self, event: Event, times: int) -> tuple[dict[Event, int], UnsupportedEvent | None]:
        """Count the primitive events in an event, and find the first that is refused."""
        found: dict[Event, int] = {}
        for leaf, repeated in leaves(event, times):
            if leaf not in found and leaf not in self._counts:
                reason = self._why_not(leaf)
                if reason:
                    return {}, UnsupportedEvent(leaf, self.name, reason)
            found[leaf] = found.get(leaf, 0) + repeated
        return found, None

    def epsilon(self, delta: float) -> float:
        """Return a guaranteed epsilon of all composed events.

        Parameters
        ----------
        delta : float
            Delta at which epsilon holds, in [0, 1).

        Returns
        -------
        float
            Epsilon in nats, or ``inf`` if none is known at this delta.
        """
        return self.epsilon_guarantee(delta).value

    def epsilon_guarantee(self, delta: float) -> Stated:
        """Return the smallest guaranteed epsilon of all composed events, and how it was computed.

        Parameters
        ----------
        delta : float
            Delta at which epsilon holds, in [0, 1).

        Returns
        -------
        Stated
            The first of the smallest values of `epsilon_statements` that are guarantees.
        """
        found = [each for each in self.epsilon_statements(delta) if each.guarantees]
        return min(found, key=lambda each: each.value, default=Stated(math.inf, "upper", "nothing is known"))

    def delta(self, epsilon: float) -> float:
        """Return a guaranteed delta of all composed events.

        Parameters
        ----------
        epsilon : float
            Epsilon at which delta holds, in nats, at least 0.

        Returns
        -------
        float
            Delta in [0, 1].
        """
        return self._guarantee(self.delta_statements(epsilon))

    def epsilon_statements(self, delta: float) -> list[Stated]:
        """Return all known bounds and estimates of epsilon.

        Parameters
        ----------
        delta : float
            Delta at which epsilon holds, in [0, 1).

        Returns
        -------
        list of Stated
            Each has a ``value``, a ``bound`` ("exact", "upper", "lower" or "estimate") and ``how`` it was computed.
            "exact" and "upper" values are guarantees.
        """
        found = probability(delta, "delta")
        return self._epsilon(found) if self._counts else [Stated(0.0, "exact", "nothing happened")]

    def delta_statements(self, epsilon: float) -> list[Stated]:
        """Return all known bounds and estimates of delta.

        Parameters
        ----------
        epsilon : float
            Epsilon at which delta holds, in nats, at least 0.

        Returns
        -------
        list of Stated
            Each has a ``value``, a ``bound`` ("exact", "upper", "lower" or "estimate") and ``how`` it was computed.
            "exact" and "upper" values are guarantees.
        """
        found = positive(epsilon, "epsilon", zero=True)
        return self._delta(found) if self._counts else [Stated(0.0, "exact", "nothing happened")]

    def table(self, delta: float) -> pd.DataFrame:
        """Return all known bounds and estimates of epsilon as a table.

        Parameters
        ----------
        delta : float
            Delta at which epsilon holds, in [0, 1).

        Returns
        -------
        DataFrame
            One row for each number, with the columns ``accountant``, ``adjacency``, ``delta``, ``epsilon``, ``bound``
            ("exact", "upper", "lower" or "estimate") and ``how``, the way in which it was computed.
        """
        import pandas as pd

        columns = ["accountant", "adjacency", "delta", "epsilon", "bound", "how"]
        found = self.epsilon_statements(delta)
        rows = [(self.name, self.adjacency, float(delta), each.value, each.bound, each.how) for each in found]
        return pd.DataFrame(rows, columns=columns)

    @staticmethod
    def _guarantee(found: list[Stated]) -> float:
        return min((each.value for each in found if each.guarantees), default=math.inf)

    @abstractmethod
    def _why_not(self, leaf: Event) -> str:
        """Return why a primitive event is refused; empty if it is not."""

    @abstractmethod
    def _epsilon(self, delta: float) -> list[Stated]:
        """Return the statements about epsilon; there is at least one event."""

    @abstractmethod
    def _delta(self, epsilon: float) -> list[Stated]:
        """Return the statements about delta; there is at least one event."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.adjacency!r}, {self.total} events, {len(self._counts)} different)"


class PureAccountant(Accountant):
    """Accountant that adds up the epsilons of events without a delta.

    Use it for pure differential privacy (delta = 0): it is the only accountant whose epsilon holds at delta = 0, also
    for interactions that run at the same time. It makes no other assumption. Certificates of guards can use it for
    dependent records. `RenyiAccountant` and `DistributionAccountant` return smaller epsilons for many events at a delta
    above 0.

    Parameters
    ----------
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours: one record is replaced by another one, or one record is added or removed.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox, LaplaceAnswer
    >>> accountant = PureAccountant().compose(BlackBox(0.25), 2).compose(LaplaceAnswer(1.0, 0.5))
    >>> round(accountant.epsilon(0.0), 12)
    1.0
    """

    name = "pure"

    def _why_not(self, leaf: Event) -> str:
        refusal = adjacency_refusal(leaf, self.adjacency)
        if refusal:
            return refusal
        found = parameters_of(leaf, self.adjacency)
        return "" if found is not None and found[1] == 0 else "it supports only events without a delta"

    def _epsilon(self, delta: float) -> list[Stated]:
        total = total_pure_epsilon(self)
        found = [Stated(total, "upper", "sum of the epsilons")]
        if delta > 0:
            found.append(Stated(compose_optimal_epsilon(total, 0.0, delta, 1), "upper", "the sum, and the delta"))
        return found

    def _delta(self, epsilon: float) -> list[Stated]:
        value = compose_optimal_delta(total_pure_epsilon(self), 0.0, epsilon, 1)
        return [Stated(value, "upper", "largest delta of anything as private as the sum of the epsilons")]


def total_pure_epsilon(accountant: Accountant) -> float:
    """Return the sum of the epsilons of an accountant's events, none of which has a delta, rounded up."""
    found = [(parameters_of(event, accountant.adjacency), times) for event, times in accountant.counts.items()]
    pairs = sorted((pair[0], times) for pair, times in found if pair is not None)
    return sum_up([epsilon for epsilon, _ in pairs], [times for _, times in pairs])
