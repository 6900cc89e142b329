"""Exact optimal composition of steps of which only (epsilon, delta) is known."""

from __future__ import annotations

import math

import numpy as np

from thresholdout.privacy.accounting.accountants.accountant import Accountant, Bound, Stated
from thresholdout.privacy.accounting.bound_arguments import Steps
from thresholdout.privacy.accounting.composition.optimal import (
    compose_optimal_epsilon,
    optimal_delta_bounds,
    optimal_epsilon_bounds,
)
from thresholdout.privacy.accounting.events.event_types import BlackBox, Event
from thresholdout.privacy.accounting.events.stated_parameters import adjacency_refusal, parameters_of
from thresholdout.privacy.accounting.parameter_sums import any_of

__all__ = ["OptimalAccountant"]

_FEW = 64  # different steps up to which lower bounds on epsilon are searched for; they take as long as the upper ones


class OptimalAccountant(Accountant):
    """Composes (epsilon, delta)-private steps as well as anything can that knows nothing else of them.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.event_types import BlackBox
    >>> accountant = OptimalAccountant().compose(BlackBox(0.1), 100)
    >>> round(accountant.epsilon(1e-6), 6)
    4.774568
    """

    name = "optimal"

    def _why_not(self, leaf: Event) -> str:
        refusal = adjacency_refusal(leaf, self.adjacency)
        if refusal:
            return refusal
        known = parameters_of(leaf, self.adjacency) is not None
        return "" if known else "events with one epsilon and one delta, such as BlackBox or LaplaceAnswer"

    def _steps(self) -> Steps:
        merged: dict[tuple[float, float], int] = {}
        for event, times in self.counts.items():
            pair = parameters_of(event, self.adjacency)
            assert pair is not None
            merged[pair] = merged.get(pair, 0) + times
        pairs = sorted(merged)
        table = np.array(pairs)
        return Steps(table[:, 0], table[:, 1], np.array([merged[pair] for pair in pairs], dtype=np.int64))

    def _attained(self) -> bool:
        """Whether the events describe randomised responses with these parameters, too, and no less private ones."""
        return all(isinstance(event, BlackBox) and event.adjacency == self.adjacency for event in self.counts)

    def _epsilon(self, delta: float) -> list[Stated]:
        steps, attained = self._steps(), self._attained()
        leak = any_of(steps)
        if delta == 0.0 and leak == 0.0:
            total = math.fsum((steps.eps * steps.counts).tolist())
            bound: Bound = "exact" if attained else "upper"
            return [Stated(math.nextafter(total * (1 + 4e-16), math.inf), bound, "sum of the epsilons")]
        if delta < leak or delta == 0.0:
            return [Stated(math.inf, "upper", f"some step fails outright with probability {leak:.3g}")]
        if steps.eps.size > _FEW or not attained:
            return [Stated(compose_optimal_epsilon(steps, None, delta), "upper", "optimal composition")]
        low, high = optimal_epsilon_bounds(steps, None, delta)
        return [
            Stated(high, "exact" if high - low <= 1e-9 * high else "upper", "optimal composition"),
            Stated(low, "lower", "randomised responses with these parameters"),
        ]

    def _delta(self, epsilon: float) -> list[Stated]:
        low, high = optimal_delta_bounds(self._steps(), None, epsilon)
        if not self._attained():
            return [Stated(high, "upper", "optimal composition")]
        return [
            Stated(high, "exact" if high - low <= 1e-9 * high else "upper", "optimal composition"),
            Stated(low, "lower", "randomised responses with these parameters"),
        ]
