"""Batches of private gradient descent, and the event of a step for accountants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.events.composed_events import SelfComposed
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event, GaussianAnswer, check_adjacency
from thresholdout.privacy.accounting.events.learning_steps import PoissonGaussianStep
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import sample_minibatch
from thresholdout.privacy.learning.dpsgd.clipping import BATCH_LIMIT

__all__ = ["PLACES", "Batches", "PlannedSteps", "Sampling", "check_public_size"]

Sampling = Literal["wor", "wr", "poisson"]
PLACES = "linear algebra rounds a row alike wherever it stands in a batch"


def check_public_size(adjacency: object, public_size: object) -> int | None:
    """Return the public number in place of the number of records; None where the latter is public itself."""
    kind = check_adjacency(adjacency)
    if kind == "add_remove" and public_size is None:
        advice = "The number of records itself shows whether a record is there."
        raise InputError("public_size", "None with adjacency='add_remove'", "a public number", advice)
    if kind == "replace_one" and public_size is not None:
        seen = f"{public_size!r} with adjacency='replace_one'"
        raise InputError("public_size", seen, "None", "Where records are replaced, their number is public.")
    return None if public_size is None else count(public_size, "public_size")


@dataclass(frozen=True)
class Batches:
    """Batches of records, drawn afresh at every step: without or with replacement, or by a coin for each record.

    `batch_size` is B, the (expected) size, and the divisor in any case. `records` is N, a public number. Where
    neighbours replace a record it is their number. Otherwise the smaller neighbour has at least as many, and for
    "poisson" any number, as the coins have probability B / N. B = N is allowed for "wor" and replaced records only.
    """

    sampling: Sampling
    batch_size: int
    records: int
    adjacency: Adjacency = "replace_one"

    def __post_init__(self) -> None:
        all_of_them = self.batch_size == self.records and self.sampling == "wor" and self.adjacency == "replace_one"
        if not all_of_them and self.batch_size >= self.records:
            seen, expected = f"{self.batch_size} (n_samples = {self.records})", f"less than {self.records}"
            advice = "A batch may be all records with sampling='wor' and adjacency='replace_one'."
            raise InputError("batch_size", seen, expected, advice)
        if self.batch_size > BATCH_LIMIT:
            raise InputError("batch_size", str(self.batch_size), f"at most {BATCH_LIMIT}")

    @property
    def full(self) -> bool:
        """Whether each step uses all records."""
        return self.batch_size == self.records

    @property
    def rate(self) -> float:
        """Probability of a record's coin: B / N, rounded up to a multiple of 2^-53, which a uniform number meets."""
        return -(-self.batch_size * 2**53 // self.records) / 2**53

    def event(self, noise_multiplier: float) -> Event:
        """Return the event of a step, with its noise relative to the clipping norm."""
        from thresholdout.privacy.accounting.accountants.calibration import step_of

        if self.full:
            return GaussianAnswer(noise_multiplier, 2.0, "replace_one")
        if self.sampling == "poisson":
            return PoissonGaussianStep(noise_multiplier, self.rate)
        return step_of(self.sampling, noise_multiplier, self.batch_size, self.records)

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """Return the records of one batch, out of n."""
        if self.full:
            return np.arange(n)
        if self.sampling == "poisson":
            # Uniform numbers are multiples of 2^-53, so a coin has exactly the event's rate (PROOFS.md, G4).
            return np.flatnonzero(rng.random(n) < self.rate)
        return sample_minibatch(rng, n, self.batch_size, self.sampling)


@dataclass(frozen=True)
class PlannedSteps:
    """The event of several steps on such batches, as a function of their noise multiplier."""

    batches: Batches
    steps: int

    def __call__(self, noise_multiplier: float) -> SelfComposed:
        """Return the event of steps with a noise multiplier."""
        return SelfComposed(self.batches.event(noise_multiplier), self.steps)
