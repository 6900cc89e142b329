"""The accountant of privacy-loss distributions: often the closest, with bounds on both sides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from thresholdout.privacy.accounting.accountants.accountant import Accountant, Stated
from thresholdout.privacy.accounting.bound_arguments import Steps, any_of, open_unit, positive, probability
from thresholdout.privacy.accounting.events.event_types import (
    Adjacency,
    BlackBox,
    Event,
    GaussianAnswer,
    LaplaceAnswer,
    ThresholdoutInteraction,
    adjacency_refusal,
    parameters_of,
    shift_of,
)
from thresholdout.privacy.accounting.events.learning_steps import (
    PoissonGaussianStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
)
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import rate
from thresholdout.privacy.accounting.optimal_composition import compose_optimal_delta, compose_optimal_epsilon
from thresholdout.privacy.accounting.pld.distribution import (
    Interval,
    PrivacyLossDistribution,
    guaranteed_delta,
    guaranteed_epsilon,
    worst_delta,
    worst_epsilon,
)
from thresholdout.privacy.accounting.pld.loss import DominatingPair
from thresholdout.privacy.accounting.pld.minibatch_steps import fswor_pairs, fswr_pairs, poisson_pairs
from thresholdout.privacy.accounting.pld.pairs import Discrete, GaussianMixture, Laplace, gaussian, randomised_response

__all__ = ["DistributionAccountant", "attained_pairs", "pair_refusal", "pairs_of"]

Both = tuple[DominatingPair, DominatingPair]

_LEAST = 1e-9  # nats; smaller epsilons are raised to it, since a lattice through them would be too fine


def pair_refusal(event: Event, adjacency: Adjacency) -> str:
    """Return why an event has no dominating pair; empty if it has one."""
    if isinstance(event, (PoissonGaussianStep, WithoutReplacementGaussianStep, WithReplacementGaussianStep)):
        return ""
    refusal = adjacency_refusal(event, adjacency)
    if refusal or isinstance(event, GaussianAnswer):
        return refusal
    found = parameters_of(event, adjacency)
    if found is None:
        return "the event's delta about replaced records is 1 or more"
    return "the event's epsilon is above 700 nats, which protects nothing" if found[0] > 700 else ""


def pairs_of(event: Event, adjacency: Adjacency) -> Both | None:
    """Return the pairs that dominate an event, from a data set to its neighbour, and back; None if nothing leaks."""
    if isinstance(event, PoissonGaussianStep):
        return _both(poisson_pairs(event.noise_multiplier, event.rate, adjacency))
    if isinstance(event, WithoutReplacementGaussianStep):
        return _both(fswor_pairs(event.noise_multiplier, rate(None, event.batch_size, event.records), adjacency))
    if isinstance(event, WithReplacementGaussianStep):
        return _both(fswr_pairs(event.noise_multiplier, event.batch_size, event.records, adjacency))
    pair: DominatingPair
    if isinstance(event, GaussianAnswer):
        pair = gaussian(shift_of(event, adjacency))
    elif isinstance(event, LaplaceAnswer):
        pair = Laplace(shift_of(event, adjacency))
    else:
        found = parameters_of(event, adjacency)
        assert found is not None
        if found == (0.0, 0.0):
            return None
        pair = randomised_response(max(found[0], _LEAST), found[1])
    return pair, pair


def attained_pairs(event: Event, adjacency: Adjacency) -> Both | None:
    """Return pairs that some mechanism which the event describes has, or None; never worse than `pairs_of`.

    Notes
    -----
    Fixed size, replaced record: the worst case has all other gradients, and that of the new record, opposite to that of
    the old one. A mechanism whose epsilon is known for one record more or less may ignore the replacing record. All
    other pairs are attained themselves.
    """
    fixed_size = isinstance(event, (WithoutReplacementGaussianStep, WithReplacementGaussianStep))
    if adjacency == "replace_one" and fixed_size:
        return pairs_of(event, "add_remove")
    if isinstance(event, ThresholdoutInteraction):
        return None
    if isinstance(event, BlackBox):
        return pairs_of(event, event.adjacency)
    return pairs_of(event, adjacency)


def _both(pairs: tuple[DominatingPair, ...]) -> Both:
    return pairs[0], pairs[-1]


_DOMINATING = "privacy-loss distributions of dominating pairs"

_NOTHING = Stated(0.0, "exact", "nothing leaks")

_ATTAINED = "privacy-loss distributions of neighbours that the events allow"

_SMALLEST = 1e-250  # delta; tails below it underflow

_MOST = 10**15  # steps; rounding errors of more are not bounded well enough to be of use

_FAR = 1e4  # ratio of epsilons from which on a lattice through the smaller one would be too fine

Ways = list[PrivacyLossDistribution]


class DistributionAccountant(Accountant):
    """Accountant that composes privacy-loss distributions, often with the smallest epsilon.

    Each event is described by a dominating pair: two distributions that are at least as easy to tell apart as the
    outputs on any two neighbours. The accountant adds up their privacy losses numerically, with bounds on both sides.
    `RenyiAccountant` is an alternative that uses closed formulas.

    Parameters
    ----------
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours: one record is replaced by another one, or one record is added or removed.
    accuracy : float, default 1e-5
        Desired relative distance between the returned epsilon and the smallest epsilon of the dominating pairs, in (0,
        1). Larger values are faster, and the result is a guarantee at any accuracy.

    Notes
    -----
    Upper bounds are guarantees (pld/PROOFS.md). The dominating pairs are exact for steps on batches under "add_remove",
    Poisson batches, Gaussian and Laplace answers, and black boxes. For replaced records and batches of a fixed size,
    each step has the best possible pair, but no mechanism is known that attains it in all steps at once. Lower bounds
    come from neighbours that the events allow, so no accountant can return a smaller epsilon.

    Examples
    --------
    >>> from thresholdout.privacy.accounting.events.learning_steps import WithoutReplacementGaussianStep
    >>> accountant = DistributionAccountant("add_remove", accuracy=1e-3)
    >>> round(accountant.compose(WithoutReplacementGaussianStep(6, 120, 50_000), 104_000).epsilon(1e-5), 2)
    0.99
    """

    name = "distribution"

    def __init__(self, adjacency: Adjacency = "replace_one", *, accuracy: float = 1e-5) -> None:
        super().__init__(adjacency)
        self._accuracy = open_unit(accuracy, "accuracy")

    def _why_not(self, leaf: Event) -> str:
        return pair_refusal(leaf, self.adjacency)

    def _ways(self, choose: Callable[[Event, Adjacency], Both | None]) -> Ways:
        """Return the losses from data sets to their neighbours, and back if these differ."""
        ways: tuple[dict[DominatingPair, int], dict[DominatingPair, int]] = ({}, {})
        # Sorted, so that sums in floating point do not depend on the order of events.
        for event, times in sorted(self.counts.items(), key=lambda item: repr(item[0])):
            for way, pair in zip(ways, choose(event, self.adjacency) or (), strict=False):
                way[pair] = way.get(pair, 0) + times
        known = [_without_far_anchors(_one_gaussian(way)) for way in (ways[:1] if ways[0] == ways[1] else ways) if way]
        return [PrivacyLossDistribution(way) for way in known]

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
        found = probability(delta, "delta")
        if not self.counts:
            return super().epsilon(found)
        equal = self._equal_responses()
        if equal is not None and found > 0.0:
            leak = any_of(equal)  # no epsilon has a delta below it
            return compose_optimal_epsilon(equal, None, found) if found >= leak else math.inf
        ways = self._ways(pairs_of)
        if self._silent(found) or not ways:
            return math.inf if self._silent(found) else 0.0
        return _guaranteed_epsilon(tuple(tuple(way.steps.items()) for way in ways), found, self._accuracy)

    def epsilon_guarantee(self, delta: float) -> Stated:
        """Return the guarantee of `epsilon_statements`, in about half the time.

        Parameters
        ----------
        delta : float
            Delta at which epsilon holds, in [0, 1).

        Returns
        -------
        Stated
            Epsilon in nats, or ``inf`` if none is known at this delta, and how it was computed.
        """
        found = probability(delta, "delta")
        if not self.counts or self._silent(found):
            return super().epsilon_guarantee(found)
        return Stated(self.epsilon(found), "upper", _DOMINATING) if self._ways(pairs_of) else _NOTHING

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
        found = positive(epsilon, "epsilon", zero=True)
        if not self.counts:
            return super().delta(found)
        equal = self._equal_responses()
        if equal is not None:
            return compose_optimal_delta(equal, None, found)
        ways = self._ways(pairs_of)
        if self.total > _MOST or not ways:
            return 1.0 if self.total > _MOST else 0.0
        return guaranteed_delta(ways, found, max(self._accuracy, 1e-3))  # relative: closer deltas are of little use

    def _equal_responses(self) -> Steps | None:
        """Return the parameters of equal black boxes, whose loss is a scaled binomial and needs no lattice."""
        if len(self.counts) != 1 or self.total > _MOST:
            return None
        ((event, times),) = self.counts.items()
        pair = parameters_of(event, self.adjacency) if isinstance(event, BlackBox) else None
        if pair is None:
            return None
        return Steps(np.array([pair[0]]), np.array([pair[1]]), np.array([times], dtype=np.int64))

    def _silent(self, delta: float) -> bool:
        return delta < _SMALLEST or self.total > _MOST

    def _epsilon(self, delta: float) -> list[Stated]:
        if self._silent(delta):
            return [Stated(math.inf, "upper", f"distributions say nothing about {self.total} steps at delta {delta:g}")]
        return self._stated(lambda ways: worst_epsilon(ways, delta, self._accuracy), self.epsilon(delta))

    def _delta(self, epsilon: float) -> list[Stated]:
        if self.total > _MOST:
            return [Stated(1.0, "upper", f"distributions say nothing about {self.total} steps")]
        wanted = max(self._accuracy, 1e-3)
        return self._stated(lambda ways: worst_delta(ways, epsilon, wanted), self.delta(epsilon))

    def _stated(self, bounds: Callable[[Ways], Interval], upper: float) -> list[Stated]:
        dominating, attained = self._ways(pairs_of), self._ways(attained_pairs)
        if not dominating:
            return [_NOTHING]
        stated = [Stated(upper, "upper", _DOMINATING)]
        if attained:
            found = bounds(attained)
            how = f"{_ATTAINED} ({found.reason})" if found.reason else _ATTAINED
            stated.append(Stated(min(found.lower, upper), "lower", how))
        return stated


@lru_cache(maxsize=32)
def _guaranteed_epsilon(
    ways: tuple[tuple[tuple[DominatingPair, int], ...], ...], delta: float, accuracy: float
) -> float:
    """Return `guaranteed_epsilon`; cached, as a search for noise and the report of its result ask for the same one."""
    return guaranteed_epsilon([PrivacyLossDistribution(dict(way)) for way in ways], delta, accuracy)


def _without_far_anchors(steps: dict[DominatingPair, int]) -> dict[DominatingPair, int]:
    """Return steps with the lattice anchored at their finite losses, except those much smaller than others."""
    largest = max((pair.base for pair in steps if isinstance(pair, Discrete) and pair.base is not None), default=0.0)
    found: dict[DominatingPair, int] = {}
    for pair, times in steps.items():
        small = isinstance(pair, Discrete) and pair.base is not None and pair.base * _FAR < largest
        kept = replace(pair, base=None) if small and isinstance(pair, Discrete) else pair
        found[kept] = found.get(kept, 0) + times
    return found


def _one_gaussian(steps: dict[DominatingPair, int]) -> dict[DominatingPair, int]:
    """Return steps with all Gaussian answers in one: squared shifts add up [PROOFS.md, P8]."""
    shifts = [(pair.shifts[0], times) for pair, times in steps.items() if _is_gaussian(pair)]
    if len(shifts) < 2 and not any(times > 1 for _, times in shifts):
        return steps
    # Rounded up by more than the square, the sum and the root lose; a larger shift dominates.
    total = math.sqrt(math.fsum(times * shift**2 for shift, times in shifts)) * (1.0 + 1e-15)
    return {gaussian(total): 1, **{pair: times for pair, times in steps.items() if not _is_gaussian(pair)}}


def _is_gaussian(pair: DominatingPair) -> TypeGuard[GaussianMixture]:
    return isinstance(pair, GaussianMixture) and pair.weights == (1.0,) and pair.omitted == 0.0
