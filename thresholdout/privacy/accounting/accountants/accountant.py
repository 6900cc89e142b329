"""What accountants have in common: they take events in, and say what these cost together."""

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
    """An event that an accountant says nothing about.

    Parameters
    ----------
    event : Event
        The primitive event.
    accountant : str
        Who refuses.
    reason : str
        Why.

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
        super().__init__("event", repr(event), f"what the {accountant} accountant knows: {reason}")

    def __reduce__(self) -> tuple[type[UnsupportedEvent], tuple[Event, str, str]]:  # type: ignore[override]
        return (type(self), (self.event, self.accountant, self.reason))


@dataclass(frozen=True)
class Stated:
    """A number, and what it is.

    Attributes
    ----------
    value : float
    bound : {"exact", "upper", "lower", "estimate"}
        "exact": attained by the worst mechanism that the events describe, but for rounding upwards. "upper": a
        guarantee that may be larger than needed. "lower": some mechanism that they describe has at least this.
        "estimate": close to the truth, and no guarantee.
    how : str
        How it was reached.
    """

    value: float
    bound: Bound
    how: str

    @property
    def guarantees(self) -> bool:
        """Whether it is a guarantee."""
        return self.bound in ("exact", "upper")


class Accountant(ABC):
    """Takes events in, and says what they cost together under one notion of neighbours.

    Parameters
    ----------
    adjacency : {"replace_one", "add_remove"}
        What a neighbour is: another record in place of one, or one record more or less. Fixed for the accountant's
        life.

    Notes
    -----
    Equal events are kept once, with their number, so that repeating a step costs no time, and the order in which
    events come does not matter. An event may be chosen in view of what earlier ones released; *how many* events there
    are and with which parameters must not be, except where they follow a rule that was fixed before.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import LaplaceAnswer, PureAccountant
    >>> PureAccountant().compose(LaplaceAnswer(10.0), 5).total
    5
    """

    name: ClassVar[str]
    """What it is called in tables."""

    def __init__(self, adjacency: Adjacency = "replace_one") -> None:
        self._adjacency = check_adjacency(adjacency)
        self._counts: dict[Event, int] = {}

    @property
    def adjacency(self) -> Adjacency:
        """What a neighbour is."""
        return self._adjacency

    @property
    def counts(self) -> Mapping[Event, int]:
        """The primitive events so far, and how often each happened."""
        return MappingProxyType(self._counts)

    @property
    def events(self) -> Composed:
        """All that was composed, as one event."""
        return Composed([SelfComposed(event, times) for event, times in self._counts.items()])

    @property
    def total(self) -> int:
        """How many primitive events there were."""
        return sum(self._counts.values())

    def supports(self, event: Event) -> bool:
        """Whether `compose` takes an event."""
        return not self.why_not(event)

    def why_not(self, event: Event) -> str:
        """Return why `compose` refuses an event; empty when it does not."""
        refused = self._read(check_event(event), 1)[1]
        return "" if refused is None else refused.reason

    def compose(self, event: Event, count: int = 1) -> Self:
        """Take an event in.

        Parameters
        ----------
        event : Event, or a list of them
            What was done to the records.
        count : int
            How often.

        Returns
        -------
        Accountant
            Itself.

        Raises
        ------
        UnsupportedEvent
            When it is, or has inside, an event that this accountant says nothing about; nothing has changed then.
        """
        found, refused = self._read(check_event(event), check_count(count, "count"))
        if refused is not None:
            raise refused
        for each, times in found.items():
            self._counts[each] = self._counts.get(each, 0) + times
        return self

    def _read(self, event: Event, times: int) -> tuple[dict[Event, int], UnsupportedEvent | None]:
        """Walk through an event once: count the primitive events, and find the first that is refused."""
        found: dict[Event, int] = {}
        for leaf, repeated in leaves(event, times):
            if leaf not in found and leaf not in self._counts:
                reason = self._why_not(leaf)
                if reason:
                    return {}, UnsupportedEvent(leaf, self.name, reason)
            found[leaf] = found.get(leaf, 0) + repeated
        return found, None

    def epsilon(self, delta: float) -> float:
        """Return a guaranteed epsilon at a delta in [0, 1), nats; ``inf`` when none is known there."""
        return self._guarantee(self.epsilon_statements(delta))

    def delta(self, epsilon: float) -> float:
        """Return a guaranteed delta, in [0, 1], at an epsilon of 0 or more."""
        return self._guarantee(self.delta_statements(epsilon))

    def epsilon_statements(self, delta: float) -> list[Stated]:
        """Return all that is known about epsilon at a delta in [0, 1)."""
        found = probability(delta, "delta")
        return self._epsilon(found) if self._counts else [Stated(0.0, "exact", "nothing happened")]

    def delta_statements(self, epsilon: float) -> list[Stated]:
        """Return all that is known about delta at an epsilon of 0 or more."""
        found = positive(epsilon, "epsilon", zero=True)
        return self._delta(found) if self._counts else [Stated(0.0, "exact", "nothing happened")]

    def table(self, delta: float) -> pd.DataFrame:
        """Say how epsilon was reached.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        DataFrame
            One row for each number: accountant, adjacency, delta, epsilon, bound ("exact", "upper", "lower",
            "estimate"), how.
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
        """Return why a primitive event is refused; empty when it is not."""

    @abstractmethod
    def _epsilon(self, delta: float) -> list[Stated]:
        """Return what is known about epsilon; there is at least one event."""

    @abstractmethod
    def _delta(self, epsilon: float) -> list[Stated]:
        """Return what is known about delta; there is at least one event."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.adjacency!r}, {self.total} events, {len(self._counts)} different)"


class PureAccountant(Accountant):
    """Adds up the epsilons of events without a delta, and makes no other assumption.

    The only accountant whose epsilon holds at delta = 0, also for interactions that run at the same time, and the one
    that certificates of guards can use for dependent records.

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
        return "" if found is not None and found[1] == 0 else "events without a delta, such as LaplaceAnswer"

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
    """Return the sum of the epsilons of an accountant's events, none of which has a delta, rounded up.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox
    >>> total_pure_epsilon(PureAccountant().compose(BlackBox(0.25), 4))
    1.0
    """
    found = [(parameters_of(event, accountant.adjacency), times) for event, times in accountant.counts.items()]
    pairs = sorted((pair[0], times) for pair, times in found if pair is not None)
    return sum_up([epsilon for epsilon, _ in pairs], [times for _, times in pairs])
