"""What every accountant must do; each inherits these tests."""

from __future__ import annotations

import itertools
import math
import random
from typing import ClassVar

import numpy as np
import pytest

from tests.sizes import sizes
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import (
    Accountant,
    BlackBox,
    Composed,
    Event,
    GaussianAnswer,
    SelfComposed,
    UnsupportedEvent,
)
from thresholdout.privacy.accounting.accountants.accountant import Stated
from thresholdout.privacy.accounting.events.event_types import Adjacency

LAST = sizes("last", 2, 99)
"""How many of the events that are taken; the first are the ones that take long."""


class AccountantSuite:
    """Inherit, and fill the class variables."""

    kind: ClassVar[type[Accountant]]
    adjacency: ClassVar[Adjacency] = "replace_one"
    taken: ClassVar[list[Event]]
    """Events that it knows, each several times within a second."""
    refused: ClassVar[list[Event]]
    schedule: ClassVar[list[Event]]
    """A thousand different events."""
    delta: ClassVar[float] = 1e-5
    accuracy: ClassVar[float] = 1e-9
    """How far a guarantee may be from the exact value, relatively."""
    epsilons: ClassVar[tuple[float, ...]] = (0.0, 0.01, 0.05, 0.3, 2.0)

    def make(self, *events: Event) -> Accountant:
        accountant = self.kind(self.adjacency)
        for event in events:
            accountant.compose(event)
        return accountant

    def test_adjacency_is_checked_and_fixed(self) -> None:
        accountant = self.make()
        assert accountant.adjacency == self.adjacency
        with pytest.raises(AttributeError):
            accountant.adjacency = "add_remove"  # type: ignore[misc]
        with pytest.raises(InputError, match="adjacency"):
            self.kind("swap")  # type: ignore[arg-type]

    def test_nothing_costs_nothing(self) -> None:
        for accountant in (self.make(), self.make(Composed([])), self.make(SelfComposed(Composed([]), 5))):
            assert accountant.epsilon(self.delta) == 0.0
            assert accountant.delta(0.0) == 0.0
            assert accountant.total == 0

    def test_supports_is_what_compose_does(self) -> None:
        for event in self.taken:
            assert self.make().supports(event), event
            assert math.isfinite(self.make(event).epsilon(self.delta)), event
        for event in self.refused:
            accountant = self.make()
            assert not accountant.supports(event), event
            assert accountant.why_not(event), event
            with pytest.raises(UnsupportedEvent) as caught:
                accountant.compose(event)
            assert caught.value.event == event.primitive()
            assert caught.value.accountant == self.kind.name

    def test_a_refused_event_changes_nothing(self) -> None:
        accountant = self.make(self.taken[0])
        before = dict(accountant.counts), accountant.epsilon(self.delta)
        mixed = Composed([self.taken[0], SelfComposed(Composed([self.taken[-1], self.refused[0]]), 3)])
        assert not accountant.supports(mixed)
        with pytest.raises(UnsupportedEvent):
            accountant.compose(mixed)
        assert (dict(accountant.counts), accountant.epsilon(self.delta)) == before

    def test_one_traversal(self) -> None:
        visits = []

        class Counted(Composed):
            def __getattribute__(self, name: str) -> object:
                if name == "events":
                    visits.append(name)
                return super().__getattribute__(name)

        event = Counted(self.taken)
        visits.clear()
        self.make().compose(event)
        assert len(visits) == 1

    def test_grouping_and_nesting_do_not_matter(self) -> None:
        a, b = self.taken[-2:]
        flat = self.make(a, b, a, b, a)
        nested = self.make(Composed([SelfComposed(Composed([a, b]), 2), Composed([Composed([a])])]))
        counted = self.kind(self.adjacency).compose(a, 3).compose([SelfComposed(b, 2)])  # type: ignore[arg-type]
        assert dict(flat.counts) == dict(nested.counts) == dict(counted.counts)
        assert flat.epsilon(self.delta) == nested.epsilon(self.delta) == counted.epsilon(self.delta)
        again = self.make(flat.events)
        assert again.epsilon(self.delta) == flat.epsilon(self.delta)

    @LAST
    def test_order_does_not_matter(self, last: int) -> None:
        values = {
            self.make(*order).epsilon(self.delta) for order in itertools.permutations(self.taken[-min(last, 3) :])
        }
        assert len(values) == 1

    @LAST
    def test_more_costs_more(self, last: int) -> None:
        for event in self.taken[-last:]:
            costs = [self.make(SelfComposed(event, times)).epsilon(self.delta) for times in (1, 2, 5, 40)]
            assert costs == sorted(costs)
            assert costs[0] < costs[-1]
            both = self.make(event, self.taken[-last:][0]).epsilon(self.delta)
            assert both >= costs[0] * (1 - self.accuracy)

    @LAST
    def test_falls_in_delta_and_in_epsilon(self, last: int) -> None:
        for event in self.taken[-last:]:
            accountant = self.make(SelfComposed(event, 3))
            epsilons = [accountant.epsilon(delta) for delta in (1e-3, 1e-4, 1e-6, 1e-9)]
            assert epsilons == sorted(epsilons)
            deltas = [accountant.delta(epsilon) for epsilon in self.epsilons]
            assert deltas == sorted(deltas, reverse=True)
            assert all(0.0 <= delta <= 1.0 for delta in deltas)

    @LAST
    def test_epsilon_and_delta_are_inverse(self, last: int) -> None:
        for event in self.taken[-last:]:
            accountant = self.make(SelfComposed(event, 3))
            epsilon = accountant.epsilon(self.delta)
            if epsilon > 1e-6:
                assert accountant.delta(epsilon * (1 + 1e-3)) <= self.delta * (1 + 1e-6)

    @LAST
    def test_statements(self, last: int) -> None:
        for event in self.taken[-last:]:
            found = self.make(event).epsilon_statements(self.delta)
            assert any(each.guarantees for each in found)
            assert all(isinstance(each, Stated) and each.how for each in found)
            upper = min(each.value for each in found if each.guarantees)
            for each in found:
                assert each.bound in ("exact", "upper", "lower", "estimate")
                if each.bound == "lower":
                    assert each.value <= upper
            guarantee = self.make(event).epsilon_guarantee(self.delta)
            assert guarantee == next(each for each in found if each.guarantees and each.value == upper)
            assert upper == self.make(event).epsilon(self.delta)

    def test_table(self) -> None:
        table = self.make(self.taken[0]).table(self.delta)
        assert list(table.columns) == ["accountant", "adjacency", "delta", "epsilon", "bound", "how"]
        assert set(table["accountant"]) == {self.kind.name}
        assert table["epsilon"].min() >= 0.0

    @pytest.mark.slow
    def test_a_billion_steps(self) -> None:
        accountant = self.make(SelfComposed(self.taken[0], 10**9))
        value = accountant.epsilon(self.delta)
        assert not math.isnan(value)
        assert value > 0
        assert accountant.total == 10**9

    @pytest.mark.slow
    def test_a_schedule_of_a_thousand_values(self) -> None:
        schedule = list(self.schedule)
        assert len(set(schedule)) == 1000
        accountant = self.make(*schedule)
        value = accountant.epsilon(self.delta)
        random.Random(0).shuffle(schedule)
        assert self.make(*schedule).epsilon(self.delta) == value
        ends = [self.make(SelfComposed(event, 1000)).epsilon(self.delta) for event in (schedule[0], schedule[-1])]
        ends += [self.make(SelfComposed(self.schedule[k], 1000)).epsilon(self.delta) for k in (0, -1)]
        assert min(ends) * (1 - 1e-9) <= value <= max(ends)

    @pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan, "x", True, None])
    def test_bad_deltas(self, delta: object) -> None:
        with pytest.raises(InputError):
            self.make(self.taken[0]).epsilon(delta)  # type: ignore[arg-type]

    @pytest.mark.parametrize("epsilon", [-0.1, math.inf, math.nan, "x", None])
    def test_bad_epsilons(self, epsilon: object) -> None:
        with pytest.raises(InputError):
            self.make(self.taken[0]).delta(epsilon)  # type: ignore[arg-type]

    @pytest.mark.parametrize("count", [0, -1, 1.0, True])
    def test_bad_counts(self, count: object) -> None:
        with pytest.raises(InputError):
            self.make().compose(self.taken[0], count)  # type: ignore[arg-type]

    def test_no_event(self) -> None:
        with pytest.raises(InputError):
            self.make().compose("a step")  # type: ignore[arg-type]

    def test_never_below_what_is_possible(self) -> None:
        """Randomised responses and Gaussian answers have known smallest epsilons."""
        for event in self.taken:
            accountant = self.make(event)
            for epsilon in self.epsilons:
                true = true_delta(event)
                if true is not None:
                    assert accountant.delta(epsilon) >= true(epsilon) * (1 - 1e-12), (event, epsilon)


def true_delta(event: Event):  # type: ignore[no-untyped-def]
    """Return the smallest delta of a single event, for those where it has a closed form."""
    from statistics import NormalDist

    normal = NormalDist().cdf
    if isinstance(event, BlackBox) and event.delta == 0:
        e = event.epsilon
        return lambda x: max(0.0, (math.exp(e) - math.exp(x)) / (1 + math.exp(e)))
    if isinstance(event, GaussianAnswer):
        mu = event.sensitivity / event.std
        return lambda x: max(0.0, normal(mu / 2 - x / mu) - math.exp(x) * normal(-mu / 2 - x / mu))
    return None


def noises(low: float, high: float) -> list[float]:
    return [float(value) for value in np.linspace(low, high, 1000)]
