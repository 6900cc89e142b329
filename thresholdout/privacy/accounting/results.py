"""Results of the bounds: privacy parameters, compositions and generalisation bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from thresholdout.errors import InputError

__all__ = ["Composition", "GeneralizationBound", "PrivacyParams", "SampleSizeError", "UnsoundBoundWarning"]


class UnsoundBoundWarning(UserWarning):
    """Warns that a published formula is used that is not a valid guarantee. Its result carries ``sound=False``."""


class SampleSizeError(InputError):
    """Raised when there are fewer records than a theorem requires.

    Attributes
    ----------
    n : int
        Number of records that was passed.
    required : int or None
        Number of records that the theorem requires, or None if no number is enough because delta is 0.
    """

    def __init__(self, n: int, required: int | None) -> None:
        self.n = n
        self.required = required
        wanted = "given with a delta above 0" if required is None else f"at least {required}"
        super().__init__("n", str(n), wanted, "Or pass on_small_n='inflate', which allows any n.")

    def __reduce__(self) -> tuple[type[SampleSizeError], tuple[int, int | None]]:  # type: ignore[override]
        return (type(self), (self.n, self.required))


@dataclass(frozen=True)
class PrivacyParams:
    """Parameters of differential privacy, eps in nats; unpacks into ``eps, delta``."""

    eps: float
    delta: float
    sound: bool = True

    def __iter__(self) -> Iterator[float]:
        return iter((self.eps, self.delta))


@dataclass(frozen=True)
class Composition:
    """The total cost of a sequence of steps, eps in nats; unpacks into ``eps, delta``.

    ``sound`` is False if the formula is no valid guarantee. The keys of ``details`` depend on the rule.
    """

    eps: float
    delta: float
    rule: str
    sound: bool
    details: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[float]:
        return iter((self.eps, self.delta))


@dataclass(frozen=True)
class GeneralizationBound:
    """A bound on the distance of population and empirical risk; unpacks into ``error, failure``.

    The error may exceed 1; the failure probability is clipped to [0, 1]. ``n_required`` is the smallest number of
    records for which the theorem holds: None if it has no such condition (or none that is known), or if no number is
    enough. ``vacuous`` says that the error or the failure is at least 1.
    """

    error: float
    failure: float
    confidence: float
    n_required: int | None
    applicable: bool
    vacuous: bool
    rule: str

    def __iter__(self) -> Iterator[float]:
        return iter((self.error, self.failure))
