"""What the bounds return: privacy parameters, compositions and generalisation bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from thresholdout.errors import InputError

__all__ = ["Composition", "GeneralizationBound", "PrivacyParams", "SampleSizeError", "UnsoundBoundWarning"]


class UnsoundBoundWarning(UserWarning):
    """A published formula that is no valid guarantee was used; its result carries ``sound=False``."""


class SampleSizeError(InputError):
    """Too few records for a theorem.

    Parameters
    ----------
    n : int
        How many there are.
    required : int or None
        How many are needed; None when no number is enough (delta = 0).
    """

    def __init__(self, n: int, required: int | None) -> None:
        self.n = n
        self.required = required
        what = "a delta above 0, or on_small_n='inflate'"
        super().__init__(
            "n", f"{n} records", what if required is None else f"at least {required}, or on_small_n='inflate'"
        )

    def __reduce__(self) -> tuple[type[SampleSizeError], tuple[int, int | None]]:  # type: ignore[override]
        return (type(self), (self.n, self.required))


@dataclass(frozen=True)
class PrivacyParams:
    """Parameters of differential privacy; unpacks into ``eps, delta``.

    Parameters
    ----------
    eps : float
        At least 0, in nats.
    delta : float
        In [0, 1].
    sound : bool
        False when the formula behind it is no valid guarantee.

    Examples
    --------
    >>> eps, delta = PrivacyParams(0.5, 1e-6)
    """

    eps: float
    delta: float
    sound: bool = True

    def __iter__(self) -> Iterator[float]:
        return iter((self.eps, self.delta))


@dataclass(frozen=True)
class Composition:
    """What a sequence of steps costs together; unpacks into ``eps, delta``.

    Parameters
    ----------
    eps : float
        At least 0, in nats.
    delta : float
        In [0, 1].
    rule : str
        The rule that it comes from.
    sound : bool
        False when the formula behind it is no valid guarantee.
    details : dict
        How it came about; the keys depend on the rule.

    Examples
    --------
    >>> eps, delta = Composition(0.5, 1e-6, "basic", True)
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

    Parameters
    ----------
    error : float
        The bound, which may exceed 1.
    failure : float
        Probability with which it may fail, clipped to [0, 1].
    confidence : float
        ``1 - failure``.
    n_required : int or None
        Smallest number of records for which the theorem holds; None when the theorem has no such condition (or none
        that is known), or no number is enough.
    applicable : bool
        Whether there are that many.
    vacuous : bool
        Whether it says nothing: the error or the failure is at least 1.
    rule : str
        The theorem.

    Examples
    --------
    >>> error, failure = GeneralizationBound(0.45, 1e-4, 0.9999, 13311, True, False, "theorem1")
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
