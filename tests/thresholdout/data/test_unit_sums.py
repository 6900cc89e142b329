"""Exact sums of per-record values, slice by slice."""

import math
import tracemalloc
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.cases import for_each
from thresholdout import SparseVector, Thresholdout
from thresholdout.data.values import _SLICE as SLICE
from thresholdout.data.values import UnitSums, record_bits, unit_records
from thresholdout.errors import InputError

UNIT = (0.0, 1.0)


def rounded(values: NDArray[np.float64]) -> list[int]:
    """Return the values in steps of the grid, in exact arithmetic: Python rounds fractions to even at ties."""
    scale = 2 ** record_bits(values.size)
    return [round(Fraction(value) * scale) for value in values.tolist()]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_every_value_is_rounded_to_the_grid(values: list[float]) -> None:
    sums, steps = UnitSums(values, None, UNIT, "v"), rounded(np.array(values))
    assert sums.mean.total == sum(steps)
    assert sums.ends == (set(steps) <= {0, 1 << sums.mean.bits})


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=60))
def test_ties_go_to_even_steps(odd: list[int]) -> None:
    bits = record_bits(len(odd))
    ties = np.array([math.ldexp(2 * k + 1, -bits - 1) for k in odd])
    assert UnitSums(ties, None, UNIT, "v").mean.total == sum(rounded(ties))


@pytest.mark.slow
@for_each("size", [1, 2, SLICE - 1, SLICE, SLICE + 1, 2 * SLICE + 9])
def test_slices_add_up(size: int) -> None:
    values = np.random.default_rng(size).random(size)
    sums = UnitSums(values, size, UNIT, "v")
    assert (sums.mean.total, sums.mean.n, sums.mean.bits) == (sum(rounded(values)), size, record_bits(size))


@for_each("size", [1, 7, 1000, SLICE, SLICE + 1, 2 * SLICE, 4 * SLICE + 5])
@for_each("bounds", [UNIT, (-3.0, 7.0)])
def test_the_variance_is_that_of_fractions(size: int, bounds: tuple[float, float]) -> None:
    lower, upper = bounds
    values = lower + (upper - lower) * np.random.default_rng(size).random(size)
    unit = unit_records(values, size, bounds, "v").unit()
    steps = [int(value) for value in unit * 2.0 ** record_bits(size)]  # exact, and so is what follows
    exact = Fraction(sum(q * q for q in steps), size) - Fraction(sum(steps), size) ** 2
    found = UnitSums(values, size, bounds, "v", "exact").variance()
    assert found == float(exact / 4 ** record_bits(size))
    assert found == pytest.approx(np.var(unit), rel=1e-12)


@for_each("size", [1, 2, 2**13, 2**13 + 1, SLICE, 2**17 + 3])
@for_each("kind", ["nearly one", "nearly a half", "tiny", "ends", "one of many"])
def test_sums_of_squares_are_exact_where_they_are_largest(size: int, kind: str) -> None:
    """Far above what 64 bits hold: up to n * 2**(2 * bits), and with values that are far from the grid."""
    rng, bits = np.random.default_rng(size), record_bits(size)
    values = {
        "nearly one": 1.0 - rng.random(size) * 2.0 ** -(bits + 1),
        "nearly a half": 0.5 + (rng.random(size) - 0.5) * 2.0**-bits,
        "tiny": rng.random(size) * 2.0 ** -(bits - 1),
        "ends": rng.integers(0, 2, size).astype(float),
        "one of many": np.where(np.arange(size) == size // 2, 1.0, 5e-324),
    }[kind]
    steps = np.rint(np.ldexp(values, bits)).astype(int).tolist()
    exact = Fraction(sum(k * k for k in steps), size) - Fraction(sum(steps), size) ** 2
    assert UnitSums(values, size, UNIT, "v", "exact").variance() == float(exact / 4**bits)
    least, most = UnitSums(values, size, UNIT, "v", "near").squares
    assert least <= sum(k * k for k in steps) <= most
    assert most - least <= (most >> 34) + (size << bits + 1) + 2


@for_each("squares", ["near", "exact"])
def test_squares_of_values_that_are_ends_in_the_first_slices_only(squares: Literal["near", "exact"]) -> None:
    values = np.ones(2 * SLICE + 5)
    values[SLICE + 3 :] = np.random.default_rng(0).random(SLICE + 2)
    exact = sum(k * k for k in np.rint(np.ldexp(values, record_bits(values.size))).astype(int).tolist())
    least, most = UnitSums(values, None, UNIT, "v", squares).squares
    assert least <= exact <= most
    assert squares == "near" or least == most


@for_each("dtype", [bool, np.int8, np.uint64, np.float32, np.float64, object])
@for_each("bounds", [UNIT, (0.0, 2.0), (-1.0, 1.0)])
def test_types_of_numbers(dtype: type, bounds: tuple[float, float]) -> None:
    values: NDArray[Any] = np.array([0, 1, 1, 0, 1], dtype=dtype)
    sums = UnitSums(values, 5, bounds, "v", "exact")
    unit = [(value - bounds[0]) / (bounds[1] - bounds[0]) for value in (0, 1, 1, 0, 1)]
    assert sums.mean.mean() == sum(unit) / 5
    assert sums.ends == (set(unit) <= {0.0, 1.0})
    assert sums.variance() == pytest.approx(np.var(unit), rel=1e-14)


def test_ends_are_all_ends() -> None:
    values = np.ones(2 * SLICE + 5)
    values[::3] = -0.0
    assert UnitSums(values, None, UNIT, "v").ends
    for place in (0, SLICE, 2 * SLICE + 4):
        between = values.copy()
        between[place] = 0.5
        assert not UnitSums(between, None, UNIT, "v").ends


@for_each("wrong", [math.nan, math.inf, -math.inf, -1e-300, 1 + 2**-52])
@for_each("bounds", [UNIT, (0.0, 1.0 - 2**-53)])
def test_the_first_wrong_value_is_named_and_all_are_counted(wrong: float, bounds: tuple[float, float]) -> None:
    values = np.full(2 * SLICE, 0.5)
    values[[SLICE + 1, 2 * SLICE - 1]] = wrong
    with pytest.raises(InputError, match=rf"^v must be .* at position {SLICE + 1} \(and 1 more\)"):
        UnitSums(values, None, bounds, "v")


@for_each("mechanism", ["claims", "sparse"])
def test_a_query_about_many_records_copies_none(mechanism: str) -> None:
    n, rng = 500_000, np.random.default_rng(0)
    made = {"mechanism": SparseVector(0.5, 0.001, budget=1)} if mechanism == "sparse" else {}
    guard = Thresholdout(np.arange(float(n)), queries=100, **made)  # type: ignore[arg-type]
    train, holdout = ((rng.random(n) < 0.8).astype(np.float64) for _ in range(2))
    guard.ask(train, holdout)
    tracemalloc.start()
    try:
        guard.ask(train, holdout)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_the_settings_of_numpy_make_no_value_fail() -> None:
    """An error that depends on a value would tell it for nothing."""
    values = np.array([5e-324, 1.0, 10.0])
    with np.errstate(all="raise"):
        sums = UnitSums(values, 3, (0, 10), "holdout_values")
        assert sums.records().exact_mean().total == sums.mean.total
