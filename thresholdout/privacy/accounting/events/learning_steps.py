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
    """A step of DP-SGD on a batch that each record enters independently.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise on the *sum* of clipped gradients, over the clipping norm; 0.01 to 1e8.
    rate : float
        Probability of each record, in (0, 1). The divisor of the sum must be fixed.

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
        As in `PoissonGaussianStep`: in units of the clipping norm, which is half of the sensitivity.
    batch_size, records : int
        1 <= batch_size < records, the number of records of the larger one of two neighbours.

    Notes
    -----
    A loader that shuffles once per epoch and cuts the order into batches is not covered.

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

    Examples
    --------
    >>> WithReplacementGaussianStep(6, 120, 50_000)
    WithReplacementGaussianStep(noise_multiplier=6.0, batch_size=120, records=50000)
    """


@dataclass(frozen=True, repr=False)
class SGLDStep(Event):
    """A step of stochastic gradient Langevin dynamics on a fresh minibatch, drawn without replacement.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise on the *mean* gradient, above 0.
    clip : float
        Norm that each record's gradient is clipped to, above 0.
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
        Standard deviation of the noise on the *mean* increment, in units of the norm that increments are clipped to.
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
    # Rounded down by more than the two operations round up, so that the noise is never overstated.
    multiplier = math.nextafter(math.nextafter(noise * size / clip, 0.0), 0.0)
    if size == records:
        return GaussianAnswer(multiplier, 2.0, "replace_one")
    return WithoutReplacementGaussianStep(multiplier, size, records)
