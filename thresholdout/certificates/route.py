"""One route to a tolerance, and what it says about each answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Protocol, TypeGuard, cast, runtime_checkable

from graphs.numerics.rounding import formula_up

__all__ = [
    "ConstantWidth",
    "HalfWidths",
    "Intervals",
    "Route",
    "StatedWidth",
    "larger_side",
    "states",
]


class HalfWidths(Protocol):
    """Half-widths of the single answers by one route, in units of the range."""

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return what the answer to query ``query`` (from 1) is worth, given ``hits`` holdout answers before it."""


@runtime_checkable
class Intervals(HalfWidths, Protocol):
    """A route that says more of an answer once its value is known."""

    def interval(self, value: float) -> tuple[float, float]:
        """Return the truths that are possible given an answer, within its half-width; not symmetric."""

    def expected(self, value: float) -> float:
        """Return the larger side of any answer's interval, if all answers have this value."""


@cache
def _offers(kind: Any, protocol: Any) -> bool:
    """Return what `issubclass` says, which looks at every attribute each time."""
    return issubclass(kind, protocol)


def states(widths: object) -> TypeGuard[Intervals]:
    """Return whether widths say more of an answer once its value is known."""
    return _offers(cast(Hashable, type(widths)), Intervals)


@dataclass(frozen=True, slots=True)
class ConstantWidth:
    """The same half-width for every answer."""

    width: float

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return the width."""
        return self.width


@dataclass(frozen=True, slots=True)
class StatedWidth(ConstantWidth):
    """The largest half-width of a mechanism that states its intervals itself, and what they are likely to be.

    Attributes
    ----------
    likely : callable
        From a value to the larger side of intervals of answers with this value.
    """

    likely: Callable[[float], float] = field(compare=False)

    def interval(self, value: float) -> tuple[float, float]:
        """Return what is known without the mechanism's own interval."""
        return value - self.width, value + self.width

    def expected(self, value: float) -> float:
        """Return the larger side of the interval that is likely."""
        return self.likely(value)


@dataclass(frozen=True, slots=True)
class Route:
    """What one theorem says about a guard.

    Attributes
    ----------
    name : str
        How the route is called.
    tolerance : float
        tau, in units of the range: the largest half-width of any answer; ``inf`` where there is none.
    sound : bool
        Whether the theorem is proved as used here. Routes that are not are for comparison and never picked, but for
        normal limits that were declared.
    assumes : str
        What it needs beyond the guard's own rules.
    source : str
        Where it comes from.
    why_not : str
        Why it does not apply, or why its tolerance is infinite; empty otherwise.
    widths : HalfWidths or None
        Half-widths of the single answers; ``None`` when the route says nothing.
    """

    name: str
    tolerance: float
    sound: bool
    assumes: str
    source: str
    why_not: str = ""
    widths: HalfWidths | None = None

    @property
    def applies(self) -> bool:
        """Whether the route says anything about single answers."""
        return self.widths is not None

    @property
    def eligible(self) -> bool:
        """Whether a certificate may rest on it."""
        return self.applies and self.sound

    @property
    def row(self) -> str:
        """Where docs/hypotheses.md says what the theorem needs, and which code and tests hold each of these.

        Examples
        --------
        >>> Route.missing("fold claims", "not now", sound=True, assumes="", source="").row
        'fold-claims'
        """
        return self.name.partition(",")[0].replace(" ", "-")

    @classmethod
    def constant(cls, name: str, tolerance: float, *, sound: bool, assumes: str, source: str) -> Route:
        """Return a route of this guard with the same half-width for every answer."""
        width = formula_up(tolerance)
        return cls(name, width, sound, assumes, source, widths=ConstantWidth(width))

    @classmethod
    def missing(cls, name: str, why_not: str, *, sound: bool, assumes: str, source: str) -> Route:
        """Return a route that does not apply."""
        return cls(name, math.inf, sound, assumes, source, why_not)


def larger_side(value: float, interval: tuple[float, float]) -> float:
    """Return how far the farther end of an interval is from a value in it.

    Examples
    --------
    >>> larger_side(0.75, (0.5, 0.875))
    0.25
    """
    low, high = interval
    return max(value - low, high - value)
