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
    """A release about private records; an immutable value, equal to others of the same content.

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
        """Return an equivalent event that accountants know; the event itself if there is no simpler one."""
        return self


@dataclass(frozen=True, repr=False)
class LaplaceAnswer(Event):
    """A number about the records, released with Laplace noise.

    Parameters
    ----------
    scale : float
        Scale of the noise, above 0.
    sensitivity : float, default 1.0
        Largest distance of the numbers of two neighbours, above 0.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The neighbours of this sensitivity. An accountant for replaced records doubles a sensitivity about one record
        more or less. The other way round nothing follows, and the event is refused.

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
    """A number or vector about the records, released with Gaussian noise of the same size in each coordinate.

    Parameters
    ----------
    std : float
        Standard deviation of the noise, above 0.
    sensitivity : float, default 1.0
        Largest Euclidean distance of the values of two neighbours, 1e-8 to 1e4 times the noise.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        As in `LaplaceAnswer`.

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
    """A whole interaction with a guard of this package, of the mechanism called Thresholdout.

    Parameters
    ----------
    records : int
        Records in the guard's holdout.
    noise_scale : float
        sigma, in units of a query's range.
    budget : int
        Largest number of answers from the holdout.
    ratios : tuple of three floats, default (1.0, 2.0, 4.0)
        Scales of the noises in threshold, test and answer, in units of sigma.

    Notes
    -----
    Its privacy is about replaced records: queries are means over a number of records that all neighbours have.

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
        """Pure privacy of the interaction about one record, in nats; see `mechanisms.interaction_epsilon`."""
        return cast(float, self.__dict__["_epsilon"])


@dataclass(frozen=True, repr=False)
class BlackBox(Event):
    """A release of which only the privacy parameters are known.

    Parameters
    ----------
    epsilon : float
        At least 0, in nats.
    delta : float, default 0.0
        In [0, 1).
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        The neighbours of these parameters. For an accountant of replaced records, parameters about one record more or
        less become ``(2 epsilon, (1 + e^epsilon) delta)``. The other way round nothing follows.

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
