"""Events of private learners: steps on minibatches, and federated rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count, open_unit, positive
from thresholdout.privacy.accounting.events.event_types import Event, GaussianAnswer
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import batch

__all__ = [
    "FederatedRound",
    "PoissonGaussianStep",
    "SGLDStep",
    "WithReplacementGaussianStep",
    "WithoutReplacementGaussianStep",
]


def _multiplier(value: object) -> float:
    found = positive(value, "noise_multiplier")
    if not 0.01 <= found <= 1e8:
        raise InputError("noise_multiplier", repr(found), "a number in [0.01, 1e8]", "Less noise protects nothing.")
    return found


@dataclass(frozen=True, repr=False)
class PoissonGaussianStep(Event):
    """Event: a step of DP-SGD on a Poisson batch, which each record enters independently.

    DP-SGD clips the gradient of each record, sums the gradients of a batch and adds Gaussian noise. Wrap the step in
    `SelfComposed` for a whole training.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the *sum* of clipped gradients, divided by the clipping norm. From 0.01 to
        1e8.
    rate : float
        Probability with which each record enters the batch, in (0, 1). The noisy sum must be divided by a fixed number,
        not by the size of the batch.

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
    """Event: a step of DP-SGD on a fresh batch of a fixed size, drawn uniformly without replacement.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the *sum* of clipped gradients, divided by the clipping norm. From 0.01 to
        1e8. The clipping norm is half of the sensitivity of the sum.
    batch_size : int
        Number of records in the batch, at least 1.
    records : int
        Number of records in the data set, more than `batch_size`. If two neighbours have different sizes, that of the
        larger one.

    Notes
    -----
    A loader that shuffles the data once per epoch and cuts the order into batches is not covered. `training_events`
    with ``sampling="shuffled"`` accounts for such a loader.

    Examples
    --------
    >>> WithoutReplacementGaussianStep(6, 120, 50_000)
    WithoutReplacementGaussianStep(noise_multiplier=6.0, batch_size=120, records=50000)
    """


@dataclass(frozen=True, repr=False)
class WithReplacementGaussianStep(_FixedSizeStep):
    """Event: a step of DP-SGD on a fresh batch of a fixed size, drawn with replacement.

    A record that is drawn several times counts several times.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the *sum* of clipped gradients, divided by the clipping norm. From 0.01 to
        1e8.
    batch_size : int
        Number of draws for the batch, at least 1.
    records : int
        Number of records in the data set, more than `batch_size`. If two neighbours have different sizes, that of the
        larger one.

    Examples
    --------
    >>> WithReplacementGaussianStep(6, 120, 50_000)
    WithReplacementGaussianStep(noise_multiplier=6.0, batch_size=120, records=50000)
    """


@dataclass(frozen=True, repr=False)
class SGLDStep(Event):
    """Event: a step of stochastic gradient Langevin dynamics on a fresh minibatch, drawn without replacement.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise on the *mean* gradient of the minibatch, above 0.
    clip : float
        Clipping norm of the gradient of each record, above 0.
    batch_size : int
        Number of records in the minibatch, at least 1.
    records : int
        Number of records in the data set, at least `batch_size`.

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
        """Return the same step in terms of the sum of gradients.

        Returns
        -------
        Event
            A `WithoutReplacementGaussianStep` or, if the minibatch has all records, a `GaussianAnswer`.
        """
        return _on_the_sum(self.noise_std, self.clip, self.batch_size, self.records, "records")


@dataclass(frozen=True, repr=False)
class FederatedRound(Event):
    """Event: a round of private federated averaging over a fresh subset of clients, drawn without replacement.

    The unit of privacy is a client: neighbours differ in one client.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise on the *mean* increment of the clients, divided by the clipping norm of
        increments. Above 0.
    clients_per_round : int
        Number of clients in the round, at least 1.
    clients : int
        Number of all clients, at least `clients_per_round`.

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
        """Return the same round as a step on the sum of increments.

        Returns
        -------
        Event
            A `WithoutReplacementGaussianStep` or, if all clients take part, a `GaussianAnswer`.
        """
        return _on_the_sum(self.noise_std, 1.0, self.clients_per_round, self.clients, "clients")


def _on_the_sum(noise: float, clip: float, size: int, records: int, name: str) -> Event:
    if size > records:
        raise InputError(name, str(records), f"at least the {size} that are drawn")
    # Rounded down by more than the two operations round up, so that the noise is never overstated.
    multiplier = math.nextafter(math.nextafter(noise * size / clip, 0.0), 0.0)
    if size == records:
        return GaussianAnswer(multiplier, 2.0, "replace_one")
    return WithoutReplacementGaussianStep(multiplier, size, records)
