"""Events: releases about private records, as frozen values that accountants interpret.

An event states a release and its noise. Its cost depends on the accountant and its notion of neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, cast

from graphs.numerics.rounding import up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, positive, probability

__all__ = [
    "ADJACENCIES",
    "Adjacency",
    "BlackBox",
    "Event",
    "GaussianAnswer",
    "LaplaceAnswer",
    "ThresholdoutInteraction",
    "adjacency_refusal",
    "check_adjacency",
    "parameters_of",
    "shift_of",
]

Adjacency = Literal["add_remove", "replace_one"]
ADJACENCIES = ("add_remove", "replace_one")


def check_adjacency(value: object, name: str = "adjacency") -> Adjacency:
    """Check a notion of neighbours: one record more or less, or another record in its place."""
    return cast(Adjacency, chosen(value, name, ADJACENCIES))


@dataclass(frozen=True)
class Event:
    """Base class of events, which describe a release about private records.

    An event states a release and its noise, such as `GaussianAnswer`. It has no cost of its own: an accountant computes
    the cost under a notion of neighbours, see `best_epsilon`. Events are immutable, and two events of the same kind and
    content are equal.

    Examples
    --------
    >>> from thresholdout.privacy.accounting import LaplaceAnswer
    >>> LaplaceAnswer(10.0) == LaplaceAnswer(10), isinstance(LaplaceAnswer(10.0), Event)
    (True, True)
    """

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        """Check the fields and convert them to their types."""

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                shown.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def primitive(self) -> Event:
        """Return the equivalent event that accountants know.

        Returns
        -------
        Event
            The event itself if there is no simpler one.
        """
        return self


@dataclass(frozen=True, repr=False)
class LaplaceAnswer(Event):
    """Event: a number about the records, released with Laplace noise.

    Parameters
    ----------
    scale : float
        Scale of the noise, above 0.
    sensitivity : float, default 1.0
        Largest difference between the exact numbers on two neighbours, above 0.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours to which `sensitivity` refers: one record is replaced by another one, or one record is
        added or removed. An accountant for replaced records doubles a sensitivity for "add_remove". An accountant for
        "add_remove" refuses an event for replaced records, because nothing follows from its sensitivity.

    Examples
    --------
    >>> LaplaceAnswer(0.01, sensitivity=1 / 10_000)
    LaplaceAnswer(scale=0.01, sensitivity=0.0001)
    """

    scale: float
    sensitivity: float = 1.0
    adjacency: Adjacency = "replace_one"

    def _check(self) -> None:
        scale, sensitivity = positive(self.scale, "scale"), positive(self.sensitivity, "sensitivity")
        self._set(scale=scale, sensitivity=sensitivity, adjacency=check_adjacency(self.adjacency))


@dataclass(frozen=True, repr=False)
class GaussianAnswer(Event):
    """Event: a number or vector about the records, released with Gaussian noise.

    The noise is independent in each coordinate and has the same standard deviation everywhere.

    Parameters
    ----------
    std : float
        Standard deviation of the noise, above 0.
    sensitivity : float, default 1.0
        Largest Euclidean distance between the exact values on two neighbours. It must be 1e-8 to 1e4 times `std`.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours to which `sensitivity` refers: one record is replaced by another one, or one record is
        added or removed. An accountant for replaced records doubles a sensitivity for "add_remove". An accountant for
        "add_remove" refuses an event for replaced records.

    Examples
    --------
    >>> GaussianAnswer(2)
    GaussianAnswer(std=2.0)
    """

    std: float
    sensitivity: float = 1.0
    adjacency: Adjacency = "replace_one"

    def _check(self) -> None:
        std, sensitivity = positive(self.std, "std"), positive(self.sensitivity, "sensitivity")
        self._set(std=std, sensitivity=sensitivity, adjacency=check_adjacency(self.adjacency))
        if not 1e-8 <= sensitivity / std <= 1e4:
            raise InputError("sensitivity", f"{sensitivity / std:g} times the noise", "1e-8 to 1e4 times the noise")


@dataclass(frozen=True, repr=False)
class ThresholdoutInteraction(Event):
    """Event: all answers of one guard that uses the Thresholdout mechanism.

    A guard answers queries about a holdout. This event accounts for the whole interaction, so that it can be composed
    with other releases about the same records.

    Parameters
    ----------
    records : int
        Number of records in the holdout of the guard.
    noise_scale : float
        Scale sigma of the noise, in units of the range of a query.
    budget : int
        Largest number of answers from the holdout.
    ratios : tuple of three floats, default (1.0, 2.0, 4.0)
        Scales of the noise in the threshold, the test and the answer, in units of sigma.

    Notes
    -----
    The event is about replaced records, because queries are means over a number of records that is the same for all
    neighbours. Accountants for "add_remove" refuse it.

    Examples
    --------
    >>> ThresholdoutInteraction(10_000, 0.01, 10).epsilon >= 9 * 10 / (4 * 10_000 * 0.01)
    True
    """

    records: int
    noise_scale: float
    budget: int
    ratios: tuple[float, float, float] = (1.0, 2.0, 4.0)

    def _check(self) -> None:
        ratios = tuple(positive(ratio, "ratios") for ratio in self.ratios)
        if len(ratios) != 3:
            raise InputError("ratios", f"{len(ratios)} numbers", "three numbers, of threshold, test and answer")
        noise = positive(self.noise_scale, "noise_scale")
        self._set(
            records=count(self.records, "records"),
            noise_scale=noise,
            budget=count(self.budget, "budget"),
            ratios=ratios,
        )
        self._set(_epsilon=self._computed())

    def _computed(self) -> float:
        from thresholdout.mechanisms import NoiseRatios, interaction_epsilon

        return interaction_epsilon(self.records, self.noise_scale, self.budget, NoiseRatios(*self.ratios))

    @property
    def epsilon(self) -> float:
        """Epsilon of the interaction at delta 0 for one replaced record, in nats."""
        return cast(float, self.__dict__["_epsilon"])


@dataclass(frozen=True, repr=False)
class BlackBox(Event):
    """Event: a release for which only an (epsilon, delta) guarantee is known.

    Use it for releases made with other libraries, or for mechanisms that have no event of their own.

    Parameters
    ----------
    epsilon : float
        Epsilon of the release in nats, at least 0.
    delta : float, default 0.0
        Delta of the release, in [0, 1).
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The notion of neighbours to which the parameters refer: one record is replaced by another one, or one record is
        added or removed. A replace-one accountant converts parameters for "add_remove" to
        ``(2 epsilon, (1 + e^epsilon) delta)``. An accountant for "add_remove" refuses parameters for replaced records,
        from which nothing follows.

    Examples
    --------
    >>> BlackBox(0.5, 1e-6)
    BlackBox(epsilon=0.5, delta=1e-06)
    """

    epsilon: float
    delta: float = 0.0
    adjacency: Adjacency = "replace_one"

    def _check(self) -> None:
        epsilon, delta = positive(self.epsilon, "epsilon", zero=True), probability(self.delta, "delta")
        self._set(epsilon=epsilon, delta=delta, adjacency=check_adjacency(self.adjacency))


def adjacency_refusal(event: Event, adjacency: Adjacency) -> str:
    """Return why an event says nothing about such neighbours; empty if it does."""
    about = "replace_one" if isinstance(event, ThresholdoutInteraction) else getattr(event, "adjacency", adjacency)
    if about == "replace_one" and adjacency == "add_remove":
        return "the event is about replaced records, from which nothing follows for one record more or less"
    return ""


def shift_of(event: LaplaceAnswer | GaussianAnswer, adjacency: Adjacency) -> float:
    """Return the distance of neighbours' answers in units of the noise, rounded up.

    A record is replaced by leaving it out and putting another in: twice the sensitivity about one more or less.
    """
    noise = event.scale if isinstance(event, LaplaceAnswer) else event.std
    steps = 2.0 if event.adjacency == "add_remove" and adjacency == "replace_one" else 1.0
    return math.nextafter(steps * event.sensitivity / noise, math.inf)


def parameters_of(event: Event, adjacency: Adjacency) -> tuple[float, float] | None:
    """Return epsilon and delta of an event, or None if no pair holds for it."""
    if adjacency_refusal(event, adjacency):
        return None
    if isinstance(event, LaplaceAnswer):
        return shift_of(event, adjacency), 0.0
    if isinstance(event, ThresholdoutInteraction):
        return event.epsilon, 0.0
    if isinstance(event, BlackBox):
        if event.adjacency == adjacency:
            return event.epsilon, event.delta
        if event.delta == 0:
            return 2 * event.epsilon, 0.0
        grown = event.delta * (1 + math.exp(event.epsilon)) if event.epsilon < 700 else math.inf
        return (2 * event.epsilon, up_relative(grown)) if up_relative(grown) < 1 else None
    return None
