"""Sums of values on the grid of arrays, computed by an engine from operations that are exact.

A value v in ``[0, 1]`` becomes the integer nearest to ``v * 2**bits``, ties to even, like in
`thresholdout.data.unit_sums`: the product is exact, so are its floor and the remainder, and these decide. Integers are
added as integers, so neither the order nor the number of partitions makes a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thresholdout.data.parts.expressions import Compiled, Schema, present
from thresholdout.data.parts.totals import Squares, Totals, grid_steps
from thresholdout.data.values import record_bits

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["GridSum", "totals_of_counts"]


@dataclass(frozen=True, slots=True)
class GridSum:
    """One question of a pass over a frame: its layers of columns, what is added up, and what that means.

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
    """

    value: Compiled
    bounds: tuple[float, float]
    missing: float
    squares: bool
    n: int
    mark: str

    def values(self, schema: Schema) -> dict[str, nw.Expr]:
        """Return what comes from the records' own columns: whether there is a value, and the value."""
        import narwhals as nw

        needed = sorted(self.value.needed)
        here = present(needed, schema) if needed else nw.lit(True)
        value = self.value if self._counted else self.value.as_real()
        return {self._name("here"): here, self._name("value"): value.expression}

    def layers(self) -> list[dict[str, nw.Expr]]:
        """Return what is computed from these, one layer of columns from the other."""
        import narwhals as nw

        if self._counted:
            return []
        lower, upper = self.bounds
        here, value, scaled, floor = (self._column(one) for one in ("here", "value", "scaled", "floor"))
        numbers = here & ~value.is_nan() if self.value.computed else here
        unit = value if self.bounds == (0.0, 1.0) else (value - lower) / (upper - lower)
        inside = numbers & (value >= lower) & (value <= upper)
        scale = 2.0 ** record_bits(self.n)
        found = {
            "scaled": nw.when(inside).then(unit * scale).otherwise(nw.lit(0.0)),
            "below": numbers & (value < lower),
            "above": numbers & (value > upper),
        }
        if self.value.computed:
            found["nan"] = here & value.is_nan()
        odd = (floor * 0.5).floor().cast(nw.Float64) * 2.0 != floor
        up = (scaled - floor > 0.5) | ((scaled - floor == 0.5) & odd)
        rounded = floor.cast(nw.Int64) + nw.when(up).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Int64)
        layers = [found, {"floor": scaled.floor().cast(nw.Float64)}, {"steps": rounded}]
        if self.squares:
            width = 1 << self._digits
            high = (self._column("steps").cast(nw.Float64) * (1.0 / width)).floor().cast(nw.Int64)
            layers += [{"high": high}, {"low": self._column("steps") - self._column("high") * width}]
        return [{self._name(name): expression for name, expression in layer.items()} for layer in layers]

    def sums(self) -> dict[str, nw.Expr]:
        """Return what is added up over all records."""
        here, value = self._column("here"), self._column("value")
        counts, integers = {"here": here}, {}
        if self._counted:
            counts["ones"] = here & value
        else:
            steps, high, low = (self._column(name) for name in ("steps", "high", "low"))
            counts |= {name: self._column(name) for name in ("below", "above")}
            counts["between"] = (steps != 0) & (steps != 1 << record_bits(self.n))
            if self.value.computed:
                counts["nan"] = self._column("nan")
            integers["steps"] = steps
            if self.squares:
                integers |= {"high": high * high, "mixed": high * low, "low": low * low}
        return {self._name(name): _added(one) for name, one in (counts | integers).items()}

    def totals(self, row: Mapping[str, Any]) -> Totals:
        """Return what the sums mean."""
        found = {name[len(self.mark) :]: int(sum_) for name, sum_ in row.items() if name.startswith(self.mark)}
        if self._counted:
            counts = {1.0: found["ones"], 0.0: found["here"] - found["ones"]}
            return totals_of_counts(self.n, counts, self.bounds, self.missing, self.squares)
        bits = record_bits(self.n)
        above, top = found["above"], 1 << bits
        squares = None
        if self.squares:
            most = top >> self._digits
            squares = Squares(self._digits, found["high"] + above * most * most, found["mixed"], found["low"])
        return Totals(
            self.n,
            bits,
            found["steps"] + above * top,
            missing=self.n - found["here"],
            nan=found.get("nan", 0),
            below=found["below"],
            above=above,
            between=found["between"],
            absent=grid_steps(self.missing, bits, self.bounds),
            squares=squares,
        )

    @property
    def _counted(self) -> bool:
        """Whether counts are enough, since values are true or false."""
        return self.value.kind == "boolean"

    @property
    def _digits(self) -> int:
        """Digits of the lower half of an integer of the grid."""
        return (record_bits(self.n) + 1) // 2

    def _name(self, name: str) -> str:
        return f"{self.mark}{name}"

    def _column(self, name: str) -> nw.Expr:
        import narwhals as nw

        return nw.col(self._name(name))


def totals_of_counts(
    n: int, counts: Mapping[float, int], bounds: tuple[float, float], missing: float, squares: bool
) -> Totals:
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
    >>> totals_of_counts(4, {-1.0: 1, 0.0: 1, 1.0: 2}, (-1.0, 1.0), 0.0, False).mean.mean()
    0.625
    """
    bits = record_bits(n)
    lower, upper = bounds
    steps = {value: grid_steps(min(max(value, lower), upper), bits, bounds) for value in counts}
    digits = (bits + 1) // 2
    halves = [(*divmod(steps[value], 1 << digits), count) for value, count in counts.items()]
    return Totals(
        n,
        bits,
        sum(steps[value] * count for value, count in counts.items()),
        missing=n - sum(counts.values()),
        below=sum(count for value, count in counts.items() if value < lower),
        above=sum(count for value, count in counts.items() if value > upper),
        between=sum(count for value, count in counts.items() if steps[value] not in (0, 1 << bits)),
        absent=grid_steps(missing, bits, bounds),
        squares=Squares(
            digits,
            sum(high * high * count for high, _, count in halves),
            sum(high * low * count for high, low, count in halves),
            sum(low * low * count for _, low, count in halves),
        )
        if squares
        else None,
    )


def _added(one: nw.Expr) -> nw.Expr:
    """Return the sum of integers, or of how often something is true, as 64-bit integers."""
    import narwhals as nw

    return one.cast(nw.Int64).sum().cast(nw.Int64)
