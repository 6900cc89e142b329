"""Sums of values on the grid of arrays, computed by an engine from operations that are exact.

A value v in ``[0, 1]`` is rounded to the nearest multiple of ``2**-bits``, ties to even, like in
`thresholdout.data.unit_sums`: by adding ``2**(52 - bits)``, from where on neighbouring floats are that far apart, and
taking it away again, which is exact. Sums of n such values are multiples of ``2**-bits`` of at most ``n <= 2**(53 -
bits)``, so every float in between is exact, whatever the order of records and the number of partitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thresholdout.data.parts.expressions import Compiled, Schema, present
from thresholdout.data.parts.totals import Totals, grid_steps
from thresholdout.data.values import half_bits, record_bits, square_sum

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["GridSum", "counted", "to_grid"]


@dataclass(frozen=True, slots=True)
class GridSum:
    """One query of a pass over a frame: its columns, layer by layer, what is added up, and what that means.

    Parameters
    ----------
    value : Compiled
        Of kind boolean, integer or real.
    bounds : tuple of float
        The range.
    missing : float
        What a record without a value counts as.
    squares : bool
        Whether the sum of squares is wanted.
    n : int
        Number of records, which sets the grid.
    mark : str
        What names of its columns start with.
    known : bool
        Whether the engine knows by itself where a value is missing.
    careful : bool
        Whether values out of range, and those that are no numbers, are told from the others. Without, the sums may
        mean nothing, and say so.
    """

    value: Compiled
    bounds: tuple[float, float]
    missing: float
    squares: bool
    n: int
    mark: str
    known: bool
    careful: bool

    def layers(self, schema: Schema) -> list[dict[str, nw.Expr]]:
        """Return what is computed of the records' own columns, and then one layer of columns from the other."""
        import narwhals as nw

        own = (self.value if self.counts else self.value.as_real()).expression
        here = None if self.known or not self.value.needed else present(sorted(self.value.needed), schema)
        if self.counts:
            layers = [{"value": own} if here is None else {"value": here & own, "here": here}]
        else:
            own = own if here is None else nw.when(here).then(own).otherwise(nw.lit(None, nw.Float64))
            layers = [{"value": own}, *(self._checks() if self.careful else []), *self._roundings()]
        return [{self._name(name): one for name, one in layer.items()} for layer in layers]

    def sums(self) -> dict[str, nw.Expr]:
        """Return what is added up over all records."""
        import narwhals as nw

        value = self._column("value")
        if self.counts:
            masked = not self.known and self.value.needed
            values = self._column("here").cast(nw.Int64).sum() if masked else value.count()
            found = {"values": values, "ones": value.cast(nw.Int64).sum()}
        else:
            inside, unit = self._column("inside" if self.careful else "value"), self._column("unit")
            found = {"values": inside.count(), "total": unit.sum()}
            if self.careful:
                found |= {name: self._column(name).cast(nw.Int64).sum() for name in ("ones", "below", "above")}
            else:
                found |= {"least": value.min(), "most": value.max()}
            if self.squares:
                high, low = self._column("high"), unit - self._column("high")
                found |= {"high": (high * high).sum(), "mixed": (high * low).sum(), "low": (low * low).sum()}
        return {self._name(name): one for name, one in found.items()}

    def totals(self, row: Mapping[str, Any]) -> Totals | None:
        """Return what the sums mean; None where they mean nothing, and more care is needed."""
        found = {name[len(self.mark) :]: sum_ for name, sum_ in row.items() if name.startswith(self.mark)}
        if self.counts:
            ones, values = int(found["ones"] or 0), int(found["values"])
            return counted(self.n, {1.0: ones, 0.0: values - ones}, self.bounds, self.missing, self.squares)
        bits = record_bits(self.n)
        top, values = 1 << bits, int(found["values"])
        if values and not self.careful:
            lower, upper = self.bounds
            within = found["least"] >= lower and found["most"] <= upper and math.isfinite(found["total"])
            if not within or _steps(found["total"], bits) % top == 0:  # a whole number: of zeros and ones, perhaps
                return None
        below, above = (int(found.get(name) or 0) for name in ("below", "above"))
        total = _steps(found["total"] or 0.0, bits) + above * top
        squares = None
        if self.squares:
            high, mixed, low = (found[name] or 0.0 for name in ("high", "mixed", "low"))
            squares = square_sum(high + above, mixed, low, bits)
        return Totals(
            self.n,
            bits,
            total,
            coins=total == (int(found.get("ones") or 0) + above) << bits,
            missing=self.n - values - below - above,
            below=below,
            above=above,
            absent=grid_steps(self.missing, bits, self.bounds),
            squares=squares,
        )

    @property
    def counts(self) -> bool:
        """Whether counts are enough, since values are true or false."""
        return self.value.kind == "boolean"

    def _checks(self) -> list[dict[str, nw.Expr]]:
        """Return the layer that tells values in the range from others."""
        import narwhals as nw

        lower, upper = self.bounds
        value = self._column("value")
        number = ~(value.is_null() | value.is_nan())
        within = number & (value >= lower) & (value <= upper)
        inside = nw.when(within).then(value).otherwise(nw.lit(None, nw.Float64))
        return [{"below": number & (value < lower), "above": number & (value > upper), "inside": inside}]

    def _roundings(self) -> list[dict[str, nw.Expr]]:
        """Return the layers that round values to the grid."""
        value, bits = self._column("inside" if self.careful else "value"), record_bits(self.n)
        lower, upper = self.bounds
        unit = value if self.bounds == (0.0, 1.0) else (value - lower) / (upper - lower)
        layers = [{"unit": to_grid(unit, bits)}]
        if self.careful:
            layers.append({"ones": self._column("unit") == 1.0})
        if self.squares:
            layers.append({"high": to_grid(self._column("unit"), bits - half_bits(bits))})
        return layers

    def _name(self, name: str) -> str:
        return f"{self.mark}{name}"

    def _column(self, name: str) -> nw.Expr:
        import narwhals as nw

        return nw.col(self._name(name))


def counted(n: int, counts: Mapping[float, int], bounds: tuple[float, float], missing: float, squares: bool) -> Totals:
    """Return the totals of values of which few are different.

    Parameters
    ----------
    n : int
        Number of records.
    counts : mapping of float to int
        How often each value occurs; other records have none.
    bounds, missing, squares
        As for `GridSum`.

    Examples
    --------
    >>> counted(4, {-1.0: 1, 0.0: 1, 1.0: 2}, (-1.0, 1.0), 0.0, False).mean.mean()
    0.625
    """
    bits = record_bits(n)
    lower, upper = bounds
    steps = {value: grid_steps(min(max(value, lower), upper), bits, bounds) for value in counts}
    return Totals(
        n,
        bits,
        sum(steps[value] * count for value, count in counts.items()),
        coins=all(steps[value] in (0, 1 << bits) for value, count in counts.items() if count),
        missing=n - sum(counts.values()),
        below=sum(count for value, count in counts.items() if value < lower),
        above=sum(count for value, count in counts.items() if value > upper),
        absent=grid_steps(missing, bits, bounds),
        squares=sum(steps[value] ** 2 * count for value, count in counts.items()) if squares else None,
    )


def to_grid(unit: nw.Expr, bits: int) -> nw.Expr:
    """Round numbers in [0, 1] to multiples of ``2**-bits``, ties to even."""
    zero = 2.0 ** (52 - bits)
    return (unit + zero) - zero


def _steps(total: float, bits: int) -> int:
    """Return a sum in steps of ``2**-bits``, of which it is a multiple."""
    return int(total * 2.0**bits)
