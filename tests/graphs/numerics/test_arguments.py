"""What counts as an integer, and what as a number."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from graphs.errors import ArgumentError
from graphs.numerics.arguments import as_integer, as_real, check_count
from tests.cases import for_each


@for_each("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_integers(value: object) -> None:
    found = as_integer(value)
    assert (found, type(found)) == (3, int)


@for_each("value", [True, np.True_, 3.0, np.float64(3), "3", None, [3], Fraction(3), np.array([3, 4])])
def test_no_integers(value: object) -> None:
    assert as_integer(value) is None
    with pytest.raises(ArgumentError) as error:
        check_count("n", value)
    assert str(error.value) == f"n must be an integer of at least 1; got {value!r}."


@for_each("value", [1, 1.0, np.float32(1), np.int8(1), Fraction(1)])
def test_reals(value: object) -> None:
    found = as_real(value)
    assert (found, type(found)) == (1.0, float)


@for_each("value", [10**400, Fraction(10**401, 3), math.inf])
def test_reals_beyond_floats(value: float) -> None:
    assert as_real(value) == math.inf
    assert as_real(-value) == -math.inf


@for_each("value", [True, np.True_, "1", b"1", None, [1.0], 1j, np.array(1.0), Decimal(1)])
def test_no_reals(value: object) -> None:
    assert as_real(value) is None
