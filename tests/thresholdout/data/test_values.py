import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.data.values import BLOCK, check_bounds, unit_mean
from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms import mean_error

UNIT = (0.0, 1.0)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_mean_is_within_the_charged_error_of_the_exact_one(values: list[float]) -> None:
    exact = sum(map(Fraction, values), Fraction(0)) / len(values)
    assert abs(Fraction(unit_mean(values, None, UNIT, "v")) - exact) <= mean_error(len(values))


@for_each("size", [1, 7, BLOCK, BLOCK + 1, 2 * BLOCK, 9 * BLOCK + 5])
def test_mean_in_blocks(size: int) -> None:
    values = np.random.default_rng(size).random(size)
    exact = Fraction(math.fsum(values)) / size  # correctly rounded sum: far below the charged error
    assert abs(Fraction(unit_mean(values, size, UNIT, "v")) - exact) <= mean_error(size)


@pytest.mark.slow
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50),
    st.floats(0.001, 1e6),
)
def test_other_ranges_are_mapped_to_the_unit_interval(values: list[float], margin: float) -> None:
    lower, upper = min(values) - margin, max(values) + margin
    expected = sum((Fraction(v) - Fraction(lower)) / (Fraction(upper) - Fraction(lower)) for v in values) / len(values)
    got = unit_mean(values, len(values), (lower, upper), "v")
    assert abs(got - float(expected)) < 1e-9
    assert 0 <= got <= 1


@for_each("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, np.float64, object])
def test_types_of_numbers(dtype: type) -> None:
    assert unit_mean(np.array([0, 1, 1, 0, 1], dtype=dtype), 5, UNIT, "v") == 0.6


def test_containers() -> None:
    assert unit_mean(pd.Series([0.0, 1.0], index=[7, 3]), 2, UNIT, "v") == 0.5
    assert unit_mean((True, False), 2, UNIT, "v") == 0.5
    assert unit_mean(np.linspace(0, 1, 10)[::3], 4, UNIT, "v") == pytest.approx(0.5)
    assert unit_mean(np.array([-0.0, 1.0]), 2, UNIT, "v") == 0.5


@for_each("wrong", [math.nan, math.inf, -math.inf, -1e-300, 1 + 2**-52, -1, 2])
@for_each("where", [0, 1, 4999])
def test_a_single_wrong_value_is_named(wrong: float, where: int) -> None:
    values = np.full(5000, 0.5)
    values[where] = wrong
    with pytest.raises(InputError, match=f"at position {where}"):
        unit_mean(values, 5000, UNIT, "holdout_values")
    with pytest.raises(InputError, match=f"at position {where}"):
        unit_mean(values.astype(object), 5000, UNIT, "holdout_values")


@for_each("bounds", [UNIT, (-1.0, 1.0)])
@for_each("where", [BLOCK - 1, BLOCK, 2 * BLOCK + 1])
def test_a_wrong_value_of_any_block_is_named_by_its_place_in_the_whole(bounds: tuple[float, float], where: int) -> None:
    values = np.full(2 * BLOCK + 2, 0.5)
    values[where] = math.inf
    with pytest.raises(InputError, match=rf"inf at position {where}\."):
        unit_mean(values, None, bounds, "holdout_values")


@for_each(
    ("values", "error"),
    [
        ([], InputError),
        ([[0.5], [0.5]], InputError),
        ([[0.5], [0.5, 1.0]], InputError),
        ([0.5, 0.5, 0.5], InputError),
        ("ab", InputTypeError),
        (["a", "b"], InputTypeError),
        ([0.5, None], InputError),
        ([0.5j, 0.5], InputTypeError),
        (np.array(["2020", "2021"], dtype="datetime64[Y]"), InputTypeError),
        (0.5, InputTypeError),
        (None, InputTypeError),
    ],
)
def test_refuses(values: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^holdout_values must be "):
        unit_mean(values, 2, UNIT, "holdout_values")


@for_each("bounds", [(1, 0), (0, 0), (0, math.inf), (math.nan, 1), "01", 3, (0, 1, 2), (-1e308, 1e308)])
def test_refuses_bounds(bounds: object) -> None:
    with pytest.raises(InputError, match="bounds"):
        check_bounds(bounds)
