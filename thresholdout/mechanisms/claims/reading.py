"""The holdout's value of a question, as claims are about it: a count, or a mean on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from thresholdout.noise import NoiseSource
from thresholdout.queries import ExactMean, UnitRecords, unit_records, unit_total

__all__ = ["Known", "Reading", "grid_steps", "grid_value", "read_values", "variance_of"]

_FINE: Final = 64  # steps in a standard deviation, at least


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a question's values before the holdout is looked at.

    Attributes
    ----------
    variance : float or None
        Of the training records' values, in units of the range; ``None`` for that of a coin with their mean.
    binary : bool
        Whether every value is 0 or 1: by the metric, by declaration, or because all training values are.

    Examples
    --------
    >>> Known(binary=True)
    Known(variance=None, binary=True)
    """

    variance: float | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The holdout's values of one question. Secret: the representation shows what is public only.

    Attributes
    ----------
    values : ExactMean or UnitRecords
        Their mean as a fraction; the values themselves where they should be 0 or 1 and are not.
    known : Known
        What was known of them.
    """

    values: ExactMean | UnitRecords = field(repr=False)
    known: Known

    def total(self, noise: NoiseSource) -> ExactMean:
        """Return the mean; values that should be 0 or 1 and are not become coins with that expectation.

        A coin for each record makes of any values in [0, 1] records that are 0 or 1, independent where they were, with
        the same expectations; so limits for such records stay valid whatever the values are.

        Examples
        --------
        >>> from thresholdout.noise import SeededNoise
        >>> reading = read_values([0.0, 1.0, 0.5, 0.5], 4, (0, 1), "values", Known(binary=True))
        >>> reading.total(SeededNoise(0)).mean() in (0.25, 0.5, 0.75)
        True
        """
        return self.values.tossed(noise) if isinstance(self.values, UnitRecords) else self.values


def read_values(values: object, n: int, bounds: tuple[float, float], argument: str, known: Known) -> Reading:
    """Check per-record values and keep what claims need of them; see `thresholdout.queries.unit_total`."""
    if known.binary:
        records = unit_records(values, n, bounds, argument)
        count = records.ones()
        return Reading(records if count is None else ExactMean(count, n, 0), known)
    return Reading(unit_total(values, n, bounds, argument), known)


def grid_value(total: ExactMean, steps: int) -> int:
    """Return the mean in steps of a grid, rounded to the nearest, upwards from the middle.

    Examples
    --------
    >>> grid_value(ExactMean(3, 4, 0), 2)
    2
    """
    whole = total.n << total.bits
    return (2 * total.total * steps + whole) // (2 * whole)


def grid_steps(deviation: float) -> int:
    """Return a power of two, so that a standard deviation has at least `_FINE` steps."""
    return 1 << max(1, math.ceil(math.log2(_FINE / max(deviation, 1e-9))))


def variance_of(mean: float, known: Known, n: float) -> float:
    """Return the variance of a value, at least that of a coin that showed one in n."""
    floor = 1.0 / n
    coin = mean * (1.0 - mean)
    return max(floor * (1.0 - floor), coin if known.variance is None else min(known.variance, coin + floor))
