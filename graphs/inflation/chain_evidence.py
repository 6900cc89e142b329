"""Expected number of records of a Markov chain that change with one record, given known records.

Known records cut a chain into independent stretches. Each stretch is a chain whose kernels are those of the model,
tilted by the known records to its right. The effect of a change contracts with every step. Proofs: `graphs/PROOFS.md`,
section on evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphs.inflation.concentration import STEPS, dobrushin_coefficient
from graphs.leakage.influence import BoolArray, Kernels
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import FUNCTION_ULPS, UNIT, up

__all__ = ["Contractions", "Reach", "contraction", "contractions_of", "stretches"]

#: Steps are enumerated until their contraction is below this; a geometric bound covers the rest.
FORGOTTEN = 1e-9


@dataclass(frozen=True, slots=True)
class Contractions:
    """Contractions of a chain over 0, 1, ..., M steps, in total variation."""

    # shape (M + 1,): for any known records to the right: tanh(D/4), D the diameter of the kernel of so many steps
    tilted: FloatArray
    # shape (M + 1,): Dobrushin coefficient of that kernel, for a stretch with nothing known to its right
    plain: FloatArray
    # shape (M + 1,): largest log-range of a column of that kernel: bounds the tilt by a known record at that distance
    ranges: FloatArray

    def between(self, steps: IntArray, to_known: IntArray) -> FloatArray:
        """Return contractions over a number of steps, given the distance from there to the next known record.

        A tilt of log-range R enlarges a total variation distance d to at most d e^R / (1 - d + d e^R).
        """
        with np.errstate(divide="ignore"):
            odds = 1 / self.plain[steps] - 1
            moved = up(1 / (1 + odds * np.exp(-self.ranges[to_known])), 32)
        return np.minimum(np.minimum(self.tilted[steps], moved), 1.0)

    def open_reach(self, longest: int) -> Reach:
        """Return the reach of the records of a stretch with nothing known to its right."""
        both = np.minimum(self.tilted, self.plain)
        sums: FloatArray = np.cumsum(both)
        return _continued(sums[:-1], float(sums[-2]), float(both[-1]), longest)

    def closed_reach(self, longest: int) -> Reach:
        """Return the reach of the records of a stretch that ends at a known record."""
        last = len(self.plain) - 1
        steps = np.arange(last + 1)
        found: list[float] = []
        for place in range(1, min(2 * last, longest) + 1):
            ahead = self.between(steps[: min(place, last)], np.minimum(place - steps[: min(place, last)], last))
            beyond = 0.0
            if place > last:
                skipped = self.between(steps[-1:], np.array([min(place - last, last)]))
                beyond = float(skipped[0]) * found[place - last - 1]
            found.append(float(ahead.sum()) + beyond)
        far = self.between(steps, np.full(last + 1, last))
        return _continued(np.array(found), float(far[:-1].sum()), float(far[-1]), longest, last)


@dataclass(frozen=True, slots=True)
class Reach:
    """Expected number of records that change with one, itself included, by its place from the right."""

    values: FloatArray  # shape (K,): for the last records of a stretch, the very last first
    beyond: float  # for all others

    @property
    def of_first(self) -> float:
        """Reach of the first record of the longest stretch, or a bound on it."""
        return up(max(float(self.values[-1]), self.beyond), len(self.values) + 16)

    def squares(self, lengths: IntArray) -> FloatArray:
        """Return the sum of squares over the records of stretches, at most their squared lengths, rounded up."""
        count = len(self.values)
        sums = np.r_[0.0, np.cumsum(self.values**2)]
        inside = np.minimum(lengths, count)
        left = (lengths - inside).astype(np.float64)
        rest = np.where(left > 0, left * min(self.beyond, 1e150) ** 2, 0.0)
        whole = lengths.astype(np.float64) ** 2
        found: FloatArray = np.minimum(up(sums[inside] + rest, 6 * count + 16), up(whole, 1))
        return found


def _continued(values: FloatArray, ahead: float, skipped: float, longest: int, skip: int | None = None) -> Reach:
    """Continue D_j = ahead + skipped D_{j - skip}, explicitly at first, then by a bound on all later values."""
    skip = len(values) if skip is None else skip
    if longest <= len(values):
        return Reach(values[:longest], float(values[-1]))
    pieces, total = [values], len(values)
    last = values[-skip:]
    while total < min(longest, STEPS) and skipped > 0:
        last = ahead + skipped * last
        pieces.append(last)
        total += len(last)
    # the fixed point of the recursion bounds all later values once they are below it
    fixed = up(ahead / (1 - skipped), 4) if skipped < 1 else float("inf")
    return Reach(np.concatenate(pieces)[:longest], max(float(last.max()), fixed))


def contraction(diameters: FloatArray) -> FloatArray:
    """Return tanh(D/4), rounded up and at most 1: the contraction of a kernel of projective diameter D."""
    found: FloatArray = np.minimum(up(np.tanh(up(diameters, 1) / 4), FUNCTION_ULPS + 2), 1.0)
    return found


def contractions_of(kernels: Kernels, possible: BoolArray, transition: FloatArray) -> Contractions:
    """Return the contractions of a chain over up to a few hundred steps."""
    count = 8
    while True:
        count = kernels.prepare(count)
        consecutive = int(np.sum(kernels.lengths[:count] == np.arange(1, count + 1)))
        diameters = kernels.diameters(consecutive, possible)
        if consecutive < count or count == len(kernels.lengths) or contraction(diameters[-1:])[0] < FORGOTTEN:
            break
        count *= 2
    ranges = kernels.forward(consecutive)[0][:, possible][:, :, possible].max(axis=(1, 2))
    inside = np.ix_(possible, possible)
    kernel, plain = np.eye(int(possible.sum())), [1.0]
    for m in range(1, consecutive + 1):
        kernel = kernel @ transition[inside]
        plain.append(dobrushin_coefficient(kernel, 2 * m * (len(transition) + 2) * UNIT))
    return Contractions(
        _composed(np.r_[1.0, contraction(diameters)]),
        _composed(np.array(plain)),
        np.minimum.accumulate(np.r_[np.inf, ranges]),
    )


def _composed(values: FloatArray) -> FloatArray:
    """Lower contractions to the products of those over fewer steps."""
    found = values.tolist()
    for m in range(2, len(found)):
        half = found[m // 2] * found[m - m // 2]
        found[m] = min(found[m], found[m - 1], up(half, 1), up(found[1] * found[m - 1], 1))
    return np.array(found)


def stretches(known: BoolArray) -> tuple[IntArray, bool]:
    """Return the lengths of the stretches of unknown records, and whether the last stretch is open to the right."""
    ends = np.r_[-1, np.flatnonzero(known), len(known)]
    lengths = np.diff(ends) - 1
    return lengths[lengths > 0], not bool(known[-1])
