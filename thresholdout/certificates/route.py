"""One route to a tolerance, and its half-widths for single answers."""

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
        """Return the half-width of the answer to query number `query` (from 1), after `hits` holdout answers."""


@runtime_checkable
class Intervals(HalfWidths, Protocol):
    """A route with a narrower interval for an answer once its value is known."""

    def interval(self, value: float) -> tuple[float, float]:
        """Return the possible estimands given an answer, within its half-width; not symmetric."""

    def expected(self, value: float) -> float:
        """Return the larger side of any answer's interval, if all answers have this value."""


@cache
def _offers(kind: Any, protocol: Any) -> bool:
    """Return `issubclass` of both, cached: a runtime protocol compares every attribute each time."""
    return issubclass(kind, protocol)


def states(widths: object) -> TypeGuard[Intervals]:
    """Return whether widths depend on the value of an answer."""
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
    """The largest half-width of a mechanism that states its own intervals; `likely` has their usual larger side."""

    likely: Callable[[float], float] = field(compare=False)

    def interval(self, value: float) -> tuple[float, float]:
        """Return the known interval without the mechanism's own."""
        return value - self.width, value + self.width

    def expected(self, value: float) -> float:
        """Return the larger side of the likely interval."""
        return self.likely(value)


@dataclass(frozen=True, slots=True)
class Route:
    """One theorem applied to a guard: the half-widths that it gives, or the reason why it does not apply.

    `Certificate.compared` has all routes of a guard.

    Attributes
    ----------
    name : str
        Name of the route.
    tolerance : float
        tau, the largest half-width of any answer, in units of the range; ``inf`` if there is none.
    sound : bool
        Whether the theorem is proved as used here. Other routes are for comparison and never chosen, except declared
        normal limits.
    assumes : str
        Assumptions of the theorem beyond the guard's own rules, in words.
    source : str
        Place of its proof.
    why_not : str
        The reason why it does not apply, or why its tolerance is infinite; empty otherwise.
    widths : HalfWidths or None
        Half-widths of the single answers; ``None`` where the route gives none.
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
        """Whether the route gives half-widths of single answers."""
        return self.widths is not None

    @property
    def eligible(self) -> bool:
        """Whether a certificate may rest on it."""
        return self.applies and self.sound

    @property
    def row(self) -> str:
        """Row of docs/hypotheses.md with the theorem's hypotheses, and the code and tests that enforce each."""
        return self.name.partition(",")[0].replace(" ", "-")

    @classmethod
    def constant(cls, name: str, tolerance: float, *, sound: bool, assumes: str, source: str) -> Route:
        """Return a route with the same half-width for every answer."""
        width = formula_up(tolerance)
        return cls(name, width, sound, assumes, source, widths=ConstantWidth(width))

    @classmethod
    def missing(cls, name: str, why_not: str, *, sound: bool, assumes: str, source: str) -> Route:
        """Return a route that does not apply."""
        return cls(name, math.inf, sound, assumes, source, why_not)


def larger_side(value: float, interval: tuple[float, float]) -> float:
    """Return the distance of the farther end of an interval from a value in it."""
    low, high = interval
    return max(value - low, high - value)
