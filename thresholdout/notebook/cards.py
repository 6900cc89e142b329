"""Cards: a heading, a sentence, numbers, intervals as bars, a table; for a notebook, light or dark.

A card is one element with a style of its own: no script, no address, nothing that is loaded. Colours of text and
background are the notebook's. All values are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Bar", "Card", "Table"]

Kind = Literal["train", "holdout"]

_ROOM: Final = 0.04  # margin beyond the outermost ends, as a part of the axis


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval as a bar, with a dot at its value; `kind` chooses the colour of training or holdout answers."""

    name: str
    low: float
    high: float
    words: str
    value: float | None = None
    kind: Kind = "train"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts, of which the row `chosen` stands out."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    chosen: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """One card.

    Notes
    -----
    `axis` are the ends of the axis, by default those of the bars; it stays `within` these limits. `mark` is a line
    through all bars.
    """

    heading: str
    lead: str = ""
    facts: Sequence[tuple[str, str]] = ()
    bars: Sequence[Bar] = ()
    axis: tuple[float, float] | None = None
    within: tuple[float, float] | None = None
    mark: float | None = None
    table: Table | None = None
    notes: Sequence[str] = ()

    @property
    def html(self) -> str:
        """The card as one element."""
        bars = [bar for bar in self.bars if math.isfinite(bar.low) and math.isfinite(bar.high)]
        low, high = self.axis or _axis(bars, self.mark, self.within)
        rows = [
            {
                "bar": bar,
                "left": _percent(bar.low, low, high),
                "width": _percent(bar.high, low, high) - _percent(bar.low, low, high),
                "dot": None if bar.value is None else _percent(bar.value, low, high),
            }
            for bar in bars
        ]
        mark = None if self.mark is None or not low <= self.mark <= high else _percent(self.mark, low, high)
        return _templates().get_template("card.html").render(card=self, rows=rows, ends=(low, high), mark=mark)


def _axis(bars: Iterable[Bar], mark: float | None, within: tuple[float, float] | None) -> tuple[float, float]:
    """Return an axis that covers all bars and the mark."""
    points = [point for bar in bars for point in (bar.low, bar.high)] + ([] if mark is None else [mark])
    if not points:
        return 0.0, 1.0
    low, high = min(points), max(points)
    room = _ROOM * (high - low) or 0.5
    least, most = within or (-math.inf, math.inf)
    return max(low - room, least), min(high + room, most)


def _percent(point: float, low: float, high: float) -> float:
    """Return a position on the axis, in percent of its length."""
    return round(100.0 * min(1.0, max(0.0, (point - low) / (high - low))), 3)


@cache
def _templates() -> Environment:
    """Return the templates; all values are escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("thresholdout.notebook"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
