"""Leakages of many records, run-length encoded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import upward_sum

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True)
class Profile:
    """Leakages of n records, as runs.

    The interior records of a long homogeneous chain all leak the same. A profile keeps that number once, so that the
    search for a budget does not touch a million entries at every step.
    """

    values: FloatArray  # shape (k,): leakage of each run, nats
    counts: IntArray  # shape (k,): number of records in each run; they add up to n
    # shape (n,): the run of each record; None when the runs follow each other in the order of the records
    index: IntArray | None = None

    @classmethod
    def constant(cls, value: float, n: int) -> Profile:
        """Return the profile of `n` records that all leak `value`."""
        return cls(np.array([value]), np.array([n]))

    @classmethod
    def of(cls, values: FloatArray) -> Profile:
        """Return the profile of one number per record."""
        return cls(values, np.ones(len(values), dtype=np.int64))

    @classmethod
    def ends(cls, head: FloatArray, middle: float, tail: FloatArray, n: int) -> Profile:
        """Return the profile with `head` first, `tail` last and `middle` for every record between."""
        between = n - len(head) - len(tail)
        counts = np.ones(len(head) + len(tail) + 1, dtype=np.int64)
        counts[len(head)] = between
        return cls(np.concatenate([head, [middle], tail]), counts)

    def expand(self) -> FloatArray:
        """Return one number per record, shape (n,)."""
        if self.index is None:
            return np.repeat(self.values, self.counts)
        return self.values[self.index]

    def largest(self) -> float:
        """Return the largest leakage."""
        return float(self.values[self.counts > 0].max())

    def mean(self) -> float:
        """Return the mean leakage over the records, rounded up."""
        n = int(self.counts.sum())
        if np.isinf(self.values[self.counts > 0]).any():
            return float("inf")
        used = self.counts > 0
        return min(upward_sum(self.values[used], self.counts[used]) / n * (1 + 2**-50), self.largest())

    def worst(self) -> int:
        """Return the index of a record with the largest leakage."""
        used = np.where(self.counts > 0, self.values, -np.inf)
        run = int(np.argmax(used))
        if self.index is None:
            return int(self.counts[:run].sum())
        return int(np.argmax(self.index == run))

    def minimum(self, other: Profile) -> Profile:
        """Return the record-wise minimum of two profiles of the same records."""
        n = int(self.counts.sum())
        if self.index is not None or other.index is not None or n in (len(self.values), len(other.values)):
            return Profile.of(np.minimum(self.expand(), other.expand()))
        stops = np.cumsum(self.counts), np.cumsum(other.counts)
        union = np.sort(np.concatenate(stops), kind="stable")
        union = union[np.diff(union, prepend=0) > 0]
        here = self.values[np.searchsorted(stops[0], union)]
        there = other.values[np.searchsorted(stops[1], union)]
        return Profile(np.minimum(here, there), np.diff(union, prepend=0))


def smallest(profiles: Iterable[Profile]) -> Profile:
    """Return the record-wise minimum of one or more profiles."""
    first, *others = profiles
    for other in others:
        first = first.minimum(other)
    return first
