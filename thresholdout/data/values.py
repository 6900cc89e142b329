"""Per-record values of a guard's queries: checked and reduced to one mean.

A query is a mean over records of values in a declared range ``[lower, upper]``. The guard works in units of that range,
so each value is mapped to ``[0, 1]``. The mean of n such numbers has sensitivity 1/n to one record for every range.

Floating point: values are summed in blocks of `BLOCK`, which stay in the cache while they are summed and checked. The
blocks' sums are added exactly. In any order inside a block of k values, the error is at most ``(k - 1) * 2**-53`` times
the sum of their absolute values, to first order; the mechanism charges this to the sensitivity. Mechanisms that need an
exact sum round every value to a dyadic grid first: see `UnitRecords`, and `UnitSums` if sums are enough.

A value v in [0, 1] is rounded to the grid of `UnitRecords` by adding ``2**(52 - bits)``. Neighbouring floats from there
on are ``2**-bits`` apart, so the sum is rounded to the nearest multiple, ties to even, and its bit pattern, an integer,
grows by exactly ``rint(v * 2**bits)``. Patterns are added as integers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

import numpy as np

from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.noise.sources import NoiseSource

__all__ = [
    "BLOCK",
    "ExactMean",
    "UnitRecords",
    "UnitSums",
    "check_bounds",
    "checked_values",
    "clipped",
    "floats_inside",
    "grid_variance",
    "half_bits",
    "is_boolean",
    "record_bits",
    "record_rounding",
    "square_sum",
    "unit_mean",
    "unit_records",
]

BLOCK = 1 << 17
"""Maximum number of values that are summed at once."""

_COARSEST = 2.0**-20  # largest distance between floats in a range, relative to it: coarser ones would change answers

_ONE = np.uint64(np.array(1.0).view(np.uint64))
"""Bit pattern of 1.0. Patterns of floats in [0, 1] are the integers up to it; those of negatives and NaN are larger."""


def check_bounds(bounds: object) -> tuple[float, float]:
    """Check the declared range of a query and return it as two floats.

    Examples
    --------
    >>> check_bounds((0, 5))
    (0.0, 5.0)
    """
    if isinstance(bounds, str):
        raise InputTypeError("bounds", repr(bounds), "a pair of numbers (lower, upper)")
    try:
        lower, upper = map(float, bounds)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise InputError("bounds", repr(bounds), "a pair of numbers (lower, upper)") from None
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper and math.isfinite(upper - lower)):
        raise InputError("bounds", repr(bounds), "finite numbers with lower < upper")
    if math.ulp(max(abs(lower), abs(upper))) > (upper - lower) * _COARSEST:
        raise InputError("bounds", repr(bounds), "a range that floats resolve", "Subtract an offset from the values.")
    return lower, upper


def is_boolean(values: object) -> bool:
    """Whether values have a boolean type, which is public for all values.

    Values that numpy cannot read have none; they are refused where the values are read.

    Examples
    --------
    >>> is_boolean([True, False]), is_boolean([1, 0]), is_boolean(None)
    (True, False, False)
    """
    try:
        return np.asarray(values).dtype.kind == "b"
    except (TypeError, ValueError, RuntimeError):
        return False


def unit_mean(values: object, n: int | None, bounds: tuple[float, float], argument: str) -> float:
    """Check n per-record values (at least one if n is ``None``) and return their mean in units of the range.

    Examples
    --------
    >>> unit_mean([True, False, True, True], 4, (0, 1), "train_values")
    0.75
    >>> unit_mean([0, 5], 2, (0, 10), "train_values")
    0.25
    >>> unit_mean([0.5, 1.5], 2, (0, 1), "train_values")
    Traceback (most recent call last):
    thresholdout.errors.InputError: train_values must be values in [0, 1]; got ...
    """
    array = checked_values(values, n, argument)
    size = array.size
    if array.dtype.kind == "b" and bounds == (0.0, 1.0):
        return int(np.count_nonzero(array)) / size
    if size <= BLOCK:
        total = _block_sum(array, bounds, argument, array)
    else:
        blocks = (array[start : start + BLOCK] for start in range(0, size, BLOCK))
        total = math.fsum([_block_sum(block, bounds, argument, array) for block in blocks])
    return min(1.0, max(0.0, total / size))


def _block_sum(block: NDArray[Any], bounds: tuple[float, float], argument: str, array: NDArray[Any]) -> float:
    """Check the range of a block of values and return their sum in units of the range."""
    floats = np.ascontiguousarray(block, dtype=np.float64)
    # einsum uses vector registers and, unlike a dot product, one thread.
    if bounds == (0.0, 1.0):  # the sum comes first: reading from memory slows the check and not the sum
        total = float(np.einsum("i->", floats))
        _check_inside(floats, bounds, argument, array)
        return total
    _check_inside(floats, bounds, argument, array)
    return float(np.einsum("i->", _in_units(floats, bounds)))


class ExactMean:
    """The mean of n per-record values on a grid, as a fraction. Secret: its representation shows n only.

    ``total`` is the sum in units of ``2**-bits``.

    Examples
    --------
    >>> exact = unit_records([0.25, 0.5, 1.0, 1.0], 4, (0, 1), "holdout_values").exact_mean()
    >>> exact, exact.mean()
    (<ExactMean n=4>, 0.6875)
    """

    __slots__ = ("bits", "n", "total")

    def __init__(self, total: int, n: int, bits: int) -> None:
        self.total = total
        self.n = n
        self.bits = bits

    def __repr__(self) -> str:
        return f"<ExactMean n={self.n}>"

    def mean(self) -> float:
        """Return the mean, rounded once."""
        return self.total / (self.n << self.bits)


class UnitRecords:
    """Per-record values in units of the range, rounded to a grid on which all their sums are exact. Secret.

    A value v in ``[0, 1]`` becomes ``round(v * 2**bits) / 2**bits``. The sum of n values is at most ``2**53`` steps of
    ``2**-bits``, so every partial sum is exact in 64-bit floating point, in any order. The answer is therefore
    *exactly* a mean of one number in ``[0, 1]`` per record, and differs from the mean of the given values by at most
    `record_rounding`. The representation shows the number of records only.

    Examples
    --------
    >>> records = unit_records([0.25, 0.5, 1.0, 1.0], 4, (0, 1), "holdout_values")
    >>> records, records.exact_mean().mean(), records.part(slice(0, 2)).exact_mean().mean()
    (<UnitRecords n=4>, 0.6875, 0.375)
    """

    __slots__ = ("_values", "bits")

    def __init__(self, values: NDArray[np.float64] | NDArray[np.bool_], bits: int) -> None:
        self._values = values
        self.bits = bits

    def __len__(self) -> int:
        return self._values.size

    def __repr__(self) -> str:
        return f"<UnitRecords n={len(self)}>"

    def exact_mean(self) -> ExactMean:
        """Return the mean as a fraction."""
        if self._values.dtype == np.bool_:
            return ExactMean(int(np.count_nonzero(self._values)) << self.bits, len(self), self.bits)
        return ExactMean(int(np.einsum("i->", self._values) * 2.0**self.bits), len(self), self.bits)

    def variance(self) -> float:
        """Return the sample variance, with divisor n - 1; at least two records."""
        return float(np.var(self.unit(), ddof=1))

    def ones(self) -> int | None:
        """Return the number of ones; ``None`` if some value is neither 0 nor 1."""
        if self._values.dtype == np.bool_:
            return int(np.count_nonzero(self._values))
        count = int(np.count_nonzero(self._values == 1.0))
        return count if count + int(np.count_nonzero(self._values == 0.0)) == len(self) else None

    def unit(self) -> NDArray[np.float64]:
        """Return the values as floats in [0, 1]."""
        return self._values.astype(np.float64, copy=False)

    def tossed(self, noise: NoiseSource) -> ExactMean:
        """Return the mean of one coin per record, with its value as probability; 0 and 1 are unchanged."""
        return ExactMean(int(np.count_nonzero(self.coins(noise))), len(self), 0)

    def coins(self, noise: NoiseSource) -> NDArray[np.bool_]:
        """Return one coin per record, with its value as probability; 0 and 1 are unchanged."""
        if self._values.dtype == np.bool_:
            return self._values.astype(np.bool_)
        shown: NDArray[np.bool_] = self._values == 1.0
        between = np.flatnonzero((self._values > 0) & ~shown)
        if between.size:
            steps = (self._values[between] * 2.0**self.bits).astype(np.uint64)
            shown[between] = noise.uniform(self.bits, between.size) < steps
        return shown

    def part(self, which: slice | NDArray[np.intp] | NDArray[np.bool_]) -> UnitRecords:
        """Return some of the records."""
        return UnitRecords(self._values[which], self.bits)


def unit_records(values: object, n: int | None, bounds: tuple[float, float], argument: str) -> UnitRecords:
    """Check per-record values like `unit_mean` and keep them, for mechanisms that need more than their mean.

    Examples
    --------
    >>> unit_records([True, False, True, True], None, (0, 1), "holdout_values").exact_mean().mean()
    0.75
    """
    array = checked_values(values, n, argument)
    bits = record_bits(array.size)
    if array.dtype.kind == "b" and bounds == (0.0, 1.0):
        return UnitRecords(array.copy(), bits)
    zero = 2.0 ** (52 - bits)  # rounds to the grid; see the module
    rounded = _in_units(floats_inside(array, 0, array.size, bounds, argument), bounds) + zero
    rounded -= zero
    return UnitRecords(rounded, bits)


def clipped(
    values: object, n: int, bounds: tuple[float, float], argument: str, missing: float | None = None
) -> NDArray[Any]:
    """Return per-record values clipped to the range; missing ones become ``missing``, by default the lower end.

    The result is a function of each record alone, and therefore a query like any other for all values.

    Examples
    --------
    >>> clipped([0.5, float("nan"), -3, 7], 4, (0, 1), "values").tolist()
    [0.5, 0.0, 0.0, 1.0]
    """
    lower, upper = bounds
    floats = checked_values(values, n, argument).astype(np.float64)
    return np.clip(np.where(np.isnan(floats), lower if missing is None else missing, floats), lower, upper)


def record_bits(n: int) -> int:
    """Return the digits of the grid of n records: at most 40, and ``n * 2**bits <= 2**53``.

    Examples
    --------
    >>> record_bits(1000), record_bits(1_000_000)
    (40, 33)
    """
    return min(40, 53 - (n - 1).bit_length())


def half_bits(bits: int) -> int:
    """Return the digits of the lower half of a number on a grid, for splitting its square.

    A multiple v of ``2**-bits`` in [0, 1] is ``high + low``: `high` is v rounded to ``bits - half_bits(bits)`` digits,
    so ``low`` is at most half a step of that grid. Sums of n squares of either, and of their products, are multiples of
    a power of two, at most ``n * 2**bits`` of them, which floats add without error.

    Examples
    --------
    >>> half_bits(40), half_bits(33)
    (20, 17)
    """
    return (bits + 1) // 2


def square_sum(high: float, mixed: float, low: float, bits: int) -> int:
    """Return a sum of squares in steps of ``2**(-2 * bits)``, from the sums of its parts.

    Examples
    --------
    >>> square_sum(0.5**2, 0.5 * 0.25, 0.25**2, 2)  # of three quarters
    9
    """
    return sum(int(math.ldexp(one, 2 * bits)) for one in (high, 2.0 * mixed, low))


def grid_variance(total: int, squares: int, n: int, bits: int) -> float:
    """Return the variance of numbers on a grid, divided by their number, rounded once.

    Examples
    --------
    >>> grid_variance(2, 4, 2, 1)  # of 0 and 1
    0.25
    """
    return (n * squares - total * total) / (n * n << 2 * bits)


def record_rounding(n: int) -> float:
    """Bound the effect of `UnitRecords` on a mean: half a grid step, and the floating-point error of the range.

    Examples
    --------
    >>> record_rounding(1_000_000) < 1e-10
    True
    """
    return 2.0 ** -(record_bits(n) + 1) + 2.0**-51


def checked_values(values: object, n: int | None, argument: str) -> NDArray[Any]:
    """Return values as an array of real numbers or booleans of the right length; their range is not checked."""
    array = values if type(values) is np.ndarray and values.dtype != object else _as_array(values, argument)
    if array.ndim != 1:
        raise InputError(argument, f"an array of shape {array.shape}", "an array of shape (n,), one value per record")
    size = array.size
    if size != n and (n is not None or size < 1):
        wanted = f"{n} values, one per record" if n is not None else "at least one value"
        raise InputError(argument, f"{size} values", wanted)
    if array.dtype.kind not in "biuf":
        raise InputTypeError(argument, f"values of type {array.dtype}", "real numbers or booleans")
    return array


def _in_units(
    floats: NDArray[np.float64], bounds: tuple[float, float], out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return values in units of their range, in the first places of an array if one is given.

    No settings of the caller make numpy raise an error: it would depend on values, and cost nothing.
    """
    if bounds == (0.0, 1.0):
        return floats
    with np.errstate(all="ignore"):
        unit = np.subtract(floats, bounds[0], out=None if out is None else out[: floats.size])
        unit /= bounds[1] - bounds[0]
    return unit


def floats_inside(
    array: NDArray[Any], start: int, stop: int, bounds: tuple[float, float], argument: str
) -> NDArray[np.float64]:
    """Return some values of an array as floats, not always copied; refuse values out of range."""
    floats = np.ascontiguousarray(array[start:stop], dtype=np.float64)
    _check_inside(floats, bounds, argument, array)
    return floats


def _check_inside(floats: NDArray[np.float64], bounds: tuple[float, float], argument: str, array: NDArray[Any]) -> None:
    """Refuse floats out of range; the message names the first such value of the whole array."""
    if bounds == (0.0, 1.0):
        patterns = floats.view(np.uint64)
        if patterns[patterns.argmax()] <= _ONE:
            return  # the pattern of -0.0, which is in the range, is larger, so it takes the slower check
    lower, upper = bounds
    if not (np.minimum.reduce(floats) >= lower and np.maximum.reduce(floats) <= upper):
        _refuse_range(np.asarray(array, dtype=np.float64), bounds, argument)


def _as_array(values: object, argument: str) -> NDArray[Any]:
    """Return values as an array; refuse missing and complex ones, which a conversion would hide."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InputTypeError(argument, f"a {type(values).__name__}", "an array of shape (n,), one value per record")
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise InputError(argument, "a masked array with missing values", "values without missing ones")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(
            argument, "entries of different shapes", "an array of shape (n,), one value per record"
        ) from None
    except (TypeError, RuntimeError) as error:
        seen = f"a {type(values).__name__}, which is not"
        advice = "Convert a tensor by tensor.detach().cpu().numpy()."
        raise InputTypeError(argument, seen, "convertible to a NumPy array", advice) from error
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise InputTypeError(argument, "values that are not numbers", "real numbers or booleans") from None
    return array


OTHER_RANGE: Final = "Pass another range as bounds=(lower, upper)."


def _refuse_range(array: NDArray[np.float64], bounds: tuple[float, float], argument: str) -> NoReturn:
    """Name the first value that is not in the range."""
    lower, upper = bounds
    wrong = ~((array >= lower) & (array <= upper))
    where = int(np.argmax(wrong))
    count = int(np.count_nonzero(wrong))
    more = f" (and {count - 1} more)" if count > 1 else ""
    raise InputError(
        argument,
        f"{array[where]:g} at position {where}{more}",
        f"values in [{lower:g}, {upper:g}]",
        OTHER_RANGE,
    )


_SLICE: Final = 1 << 16
"""Number of values that are summed at once: 512 KiB of values and as many of their patterns stay in the cache."""

_MODULUS: Final = 1 << 64
_DOTTED: Final = 1 << 13  # values per dot product: OpenBLAS starts threads above 10,000
_NEAR: Final = 36  # binary digits of near squares: one less than the notes of `UnitSums` prove


class UnitSums:
    """Mean of values on the grid, whether all are ends, and their squares ("near" or "exact"), in one pass. Secret.

    Values are checked like those of `unit_mean`.

    Notes
    -----
    *Near.* A value v in units of the range has ``abs(v * 2**bits - k) <= 1/2`` with its k on the grid, so k^2 and the
    square of ``v * 2**bits`` differ by at most ``2**bits``. Floats add squares in slices of at most ``2**13`` values,
    in any order, and `math.fsum` adds the slices. With one rounding of each square the relative error is at most
    ``(2**13 + 1) * 2**-53`` to first order, less than ``2**-37``.

    *Exact.* Squares of patterns are added modulo ``2**64``. A pattern is that of zero plus k steps, so this gives the
    sum S of all ``k**2`` modulo ``2**64``. The sum of all ``(v * 2**bits)**2`` is within ``n * 2**bits <= 2**53`` of S.
    Floats give it within ``2**-37`` of at most ``n * 4**bits <= 2**(53 + bits) <= 2**93``, that is ``2**56``. So S is
    the only integer with this residue that is so near.

    Examples
    --------
    >>> sums = UnitSums([1, 2, 3, 4], 4, (0, 10), "holdout_values", "exact")
    >>> sums, sums.mean.mean(), sums.ends, round(sums.variance(), 4)
    (<UnitSums n=4>, 0.25, False, 0.0125)
    """

    __slots__ = ("_argument", "_array", "_bounds", "_exact", "_near", "_zero", "ends", "mean")

    def __init__(
        self,
        values: object,
        n: int | None,
        bounds: tuple[float, float],
        argument: str,
        squares: Literal["", "near", "exact"] = "",
    ) -> None:
        array = checked_values(values, n, argument)
        size, bits = array.size, record_bits(array.size)
        self._array: NDArray[Any] = array
        self._bounds = bounds
        self._argument = argument
        self._zero: NDArray[np.float64] = np.array(2.0 ** (52 - bits))
        self._exact: int | None = None
        self._near = 0.0
        if array.dtype.kind == "b" and bounds == (0.0, 1.0):
            self.mean, self.ends = ExactMean(int(np.count_nonzero(array)) << bits, size, bits), True
            return
        buffer = np.empty(min(size, _SLICE))
        other = buffer if bounds == (0.0, 1.0) else np.empty_like(buffer)
        zero, inside = int(self._zero.view(np.uint64)), (1 << bits) - 1
        total, rest, near, self.ends = 0, 0, [], True
        for start in range(0, size, _SLICE):
            floats = np.ascontiguousarray(array[start : start + _SLICE], dtype=np.float64)
            many = floats.size
            # The sums come before the check of the range: the first pass reads from memory, which slows a sum least.
            with np.errstate(all="ignore"):
                units = _in_units(floats, bounds, other)
                patterns = np.add(units, self._zero, out=buffer[:many]).view(np.uint64)
                steps = (int(np.add.reduce(patterns)) - many * zero) % _MODULUS
                dots = [] if not squares else [units[at : at + _DOTTED] for at in range(0, many, _DOTTED)]
                near += [float(np.dot(part, part)) for part in dots]
            _check_inside(floats, bounds, argument, array)
            self.ends = self.ends and not int(np.bitwise_or.reduce(patterns)) & inside
            if squares == "exact" and self.ends:
                rest += steps << bits
            elif squares == "exact":
                rest += int(np.einsum("i,i->", patterns, patterns)) - 2 * zero * steps - many * zero * zero
            total += steps
        self.mean = ExactMean(total, size, bits)
        self._near = math.fsum(near)
        if squares == "exact":
            about = int(math.ldexp(self._near, 2 * bits))
            rest %= _MODULUS
            self._exact = rest + (about - rest + _MODULUS // 2) // _MODULUS * _MODULUS

    def __repr__(self) -> str:
        return f"<UnitSums n={self.mean.n}>"

    @property
    def squares(self) -> tuple[int, int]:
        """Bounds on the sum of squares in steps of ``2**(-2 * bits)``; equal if it is exact."""
        size, bits = self.mean.n, self.mean.bits
        exact = self.mean.total << bits if self.ends else self._exact
        if exact is not None:
            return exact, exact
        about = int(math.ldexp(self._near, 2 * bits))
        off = (about >> _NEAR) + (size << bits) + 1
        return max(0, about - off), about + off

    def variance(self) -> float:
        """Return the variance of the values on the grid, with divisor n, rounded once; squares must be exact."""
        squares, same = self.squares
        assert squares == same
        return grid_variance(self.mean.total, squares, self.mean.n, self.mean.bits)

    def records(self) -> UnitRecords:
        """Return the values on the grid, as `unit_records` does."""
        return unit_records(self._array, self.mean.n, self._bounds, self._argument)
