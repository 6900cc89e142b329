"""Events: what was done to private records, as frozen values that accountants interpret.

An event says what was released and with which noise, never what it costs: that depends on the accountant and its
notion of neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Literal, cast

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, open_unit, positive, probability
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import batch

__all__ = [
    "ADJACENCIES",
    "Adjacency",
    "BlackBox",
    "Composed",
    "Event",
    "FederatedRound",
    "GaussianAnswer",
    "LaplaceAnswer",
    "PoissonGaussianStep",
    "SGLDStep",
    "SelfComposed",
    "ThresholdoutInteraction",
    "WithReplacementGaussianStep",
    "WithoutReplacementGaussianStep",
    "check_adjacency",
    "check_event",
    "leaves",
]

Adjacency = Literal["add_remove", "replace_one"]
ADJACENCIES = ("add_remove", "replace_one")


def check_adjacency(value: object, name: str = "adjacency") -> Adjacency:
    """Return a notion of neighbours: one record more or less, or another record in its place."""
    return cast(Adjacency, chosen(value, name, ADJACENCIES))


@dataclass(frozen=True)
class Event:
    """What was done to private records; an immutable value, equal to others of the same content."""

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        """Check the fields and bring them to their types."""

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
        """Return the event that accountants know for this one; itself, when there is no simpler one."""
        return self


@dataclass(frozen=True, repr=False)
class LaplaceAnswer(Event):
    """A number about the records, released with Laplace noise.

    Parameters
    ----------
    scale : float
        Of the noise; above 0.
    sensitivity : float
        How far the number can be apart for two neighbours; above 0.
    adjacency : {"replace_one", "add_remove"}
        The neighbours that this sensitivity is about. A sensitivity about one record more or less is doubled by an
        accountant who replaces records; the other way round nothing follows, and the event is refused.

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
        Standard deviation of the noise; above 0.
    sensitivity : float
        How far it can be apart for two neighbours, in Euclidean norm; above 0.
    adjacency : {"replace_one", "add_remove"}
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
        In the guard's holdout.
    noise_scale : float
        sigma, in units of a question's range.
    budget : int
        Answers from the holdout, at most.
    ratios : tuple of three floats
        Scales of the noises in threshold, test and answer, in units of sigma.

    Notes
    -----
    Its privacy is about replaced records: questions are means over a number of records that all neighbours have.

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
            raise InputError("ratios", f"{len(ratios)} numbers", "three: of threshold, test and answer")
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
        """Pure privacy of the interaction about one record, nats; see `mechanisms.interaction_epsilon`."""
        return cast(float, self.__dict__["_epsilon"])


@dataclass(frozen=True, repr=False)
class BlackBox(Event):
    """Anything of which only its privacy parameters are known.

    Parameters
    ----------
    epsilon : float
        At least 0, in nats.
    delta : float
        In [0, 1).
    adjacency : {"replace_one", "add_remove"}
        The neighbours that they are about. For an accountant who replaces records, parameters about one record more
        or less become ``(2 epsilon, (1 + e^epsilon) delta)``; the other way round nothing follows.

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


def _multiplier(value: object) -> float:
    found = positive(value, "noise_multiplier")
    if not 0.01 <= found <= 1e8:
        raise InputError("noise_multiplier", repr(found), "a number in [0.01, 1e8]; less protects nothing")
    return found


@dataclass(frozen=True, repr=False)
class PoissonGaussianStep(Event):
    """A step of DP-SGD whose batch takes each record by a coin of its own.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the *sum* of clipped gradients, over the clipping norm; 0.01 to 1e8.
    rate : float
        Probability of each record, in (0, 1); the divisor of the sum must be fixed.

    Examples
    --------
    >>> PoissonGaussianStep(6, rate=0.0024)
    PoissonGaussianStep(noise_multiplier=6.0, rate=0.0024)
    """

    noise_multiplier: float
    rate: float

    def _check(self) -> None:
        self._set(noise_multiplier=_multiplier(self.noise_multiplier), rate=open_unit(self.rate, "rate"))


@dataclass(frozen=True, repr=False)
class _FixedSizeStep(Event):
    noise_multiplier: float
    batch_size: int
    records: int

    def _check(self) -> None:
        size, records = batch(self.batch_size, self.records)
        self._set(noise_multiplier=_multiplier(self.noise_multiplier), batch_size=size, records=records)


@dataclass(frozen=True, repr=False)
class WithoutReplacementGaussianStep(_FixedSizeStep):
    """A step of DP-SGD on a fresh uniform batch of fixed size, drawn without replacement.

    Parameters
    ----------
    noise_multiplier : float
        As in `PoissonGaussianStep`: in units of the clipping norm, not of the sensitivity, which is twice that.
    batch_size, records : int
        1 <= batch_size < records; records in the larger one of two neighbours.

    Notes
    -----
    A loader that shuffles once in an epoch and cuts the order into batches is not covered.

    Examples
    --------
    >>> WithoutReplacementGaussianStep(6, 120, 50_000)
    WithoutReplacementGaussianStep(noise_multiplier=6.0, batch_size=120, records=50000)
    """


@dataclass(frozen=True, repr=False)
class WithReplacementGaussianStep(_FixedSizeStep):
    """A step of DP-SGD on a fresh batch of fixed size, drawn with replacement; duplicates stay and count.

    Parameters
    ----------
    noise_multiplier, batch_size, records
        As in `WithoutReplacementGaussianStep`.
    """


@dataclass(frozen=True, repr=False)
class SGLDStep(Event):
    """A step of stochastic gradient Langevin dynamics on a fresh minibatch, drawn without replacement.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise on the *mean* gradient; above 0.
    clip : float
        Bound on the norm of each record's gradient, which is clipped to it; above 0.
    batch_size, records : int
        1 <= batch_size <= records.

    Examples
    --------
    >>> SGLDStep(0.5, clip=1.0, batch_size=64, records=60_000).primitive().batch_size
    64
    """

    noise_std: float
    clip: float
    batch_size: int
    records: int

    def _check(self) -> None:
        self._set(
            noise_std=positive(self.noise_std, "noise_std"),
            clip=positive(self.clip, "clip"),
            batch_size=count(self.batch_size, "batch_size"),
            records=count(self.records, "records"),
        )
        self.primitive()

    def primitive(self) -> Event:
        """Return the step on the sum of gradients: without replacement, or a Gaussian answer of all records."""
        return _on_the_sum(self.noise_std, self.clip, self.batch_size, self.records, "records")


@dataclass(frozen=True, repr=False)
class FederatedRound(Event):
    """A round of private federated averaging over a fresh subset of clients, drawn without replacement.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise on the *mean* increment, in units of the bound that increments are clipped to.
    clients_per_round, clients : int
        1 <= clients_per_round <= clients. Neighbours differ in one client.

    Examples
    --------
    >>> round(FederatedRound(1.0, 50, 1000).primitive().noise_multiplier, 9)
    50.0
    """

    noise_std: float
    clients_per_round: int
    clients: int

    def _check(self) -> None:
        self._set(
            noise_std=positive(self.noise_std, "noise_std"),
            clients_per_round=count(self.clients_per_round, "clients_per_round"),
            clients=count(self.clients, "clients"),
        )
        self.primitive()

    def primitive(self) -> Event:
        """Return the round as a step on the sum of increments."""
        return _on_the_sum(self.noise_std, 1.0, self.clients_per_round, self.clients, "clients")


def _on_the_sum(noise: float, clip: float, size: int, records: int, name: str) -> Event:
    if size > records:
        raise InputError(name, str(records), f"at least the {size} that are drawn")
    multiplier = math.nextafter(math.nextafter(noise * size / clip, 0.0), 0.0)
    if size == records:
        return GaussianAnswer(multiplier, 2.0, "replace_one")
    return WithoutReplacementGaussianStep(multiplier, size, records)


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
    >>> Composed([GaussianAnswer(10), BlackBox(0.1)])
    Composed([GaussianAnswer(std=10.0), BlackBox(epsilon=0.1)])
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event] = ()) -> None:
        if isinstance(events, Event) or not isinstance(events, Iterable):
            raise InputTypeError("events", f"a {type(events).__name__}", "a list of events")
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
    raise InputTypeError("event", f"a {type(event).__name__}", "an event, such as GaussianAnswer(2.0), or a list")


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


KINDS: dict[str, type[Event]] = {
    "laplace_answer": LaplaceAnswer,
    "gaussian_answer": GaussianAnswer,
    "thresholdout_interaction": ThresholdoutInteraction,
    "black_box": BlackBox,
    "poisson_gaussian_step": PoissonGaussianStep,
    "without_replacement_gaussian_step": WithoutReplacementGaussianStep,
    "with_replacement_gaussian_step": WithReplacementGaussianStep,
    "sgld_step": SGLDStep,
    "federated_round": FederatedRound,
    "self_composed": SelfComposed,
    "composed": Composed,
}
"""Names of events in files."""
