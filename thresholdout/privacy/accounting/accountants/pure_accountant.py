"""Basic composition: the epsilons of purely private events add up."""

from __future__ import annotations

from thresholdout.privacy.accounting.accountants.accountant import Accountant, Stated
from thresholdout.privacy.accounting.composition.optimal import compose_optimal_delta, compose_optimal_epsilon
from thresholdout.privacy.accounting.events.event_types import Event
from thresholdout.privacy.accounting.events.stated_parameters import adjacency_refusal, parameters_of
from thresholdout.privacy.accounting.parameter_sums import sum_up

__all__ = ["PureAccountant", "total_pure_epsilon"]


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
