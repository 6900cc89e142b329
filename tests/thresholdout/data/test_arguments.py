"""Counts and numbers that a caller passes in."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.data.arguments import as_float, check_count, check_number, check_unit, check_word, positive_number
from thresholdout.errors import InputError, InputTypeError


class TestCheckCount:
    @for_each("count", [1, np.int64(7), 2**63 - 1])
    def test_accepts(self, count: int) -> None:
        assert check_count("budget", count) == count
        assert type(check_count("budget", count)) is int

    @for_each("count", [0, -1])
    def test_refuses_numbers(self, count: int) -> None:
        with pytest.raises(InputError, match=f"budget must be an integer of at least 1; got {count}"):
            check_count("budget", count)

    def test_refuses_what_no_ledger_stores(self) -> None:
        with pytest.raises(InputError, match=r"an integer of at least 1 and at most 2\*\*63 - 1"):
            check_count("budget", 2**63)

    @for_each("count", [1.0, "3", True, None, math.nan])
    def test_refuses_types(self, count: object) -> None:
        with pytest.raises(InputTypeError, match="budget"):
            check_count("budget", count)


class TestCheckNumber:
    @for_each("value", [1, 1.0, np.float32(1), np.array(1.0), Decimal(1)])
    def test_accepts(self, value: object) -> None:
        number = check_number("grid", value, 0.0, 1.0, "a positive number up to 1")
        assert (number, type(number)) == (1.0, float)

    @for_each("value", [0.0, -1, 1.0000000001, math.nan, math.inf, True, "0.5"])
    def test_refuses_numbers(self, value: object) -> None:
        with pytest.raises(InputError) as error:
            check_number("grid", value, 0.0, 1.0, "a positive number up to 1")
        assert type(error.value) is InputError
        assert str(error.value) == f"grid must be a positive number up to 1; got {value!r}."

    @for_each("value", [None, [0.5], 10**400, 1j])
    def test_refuses_types(self, value: object) -> None:
        with pytest.raises(InputTypeError) as error:
            check_number("grid", value, 0.0, 1.0, "a positive number up to 1")
        assert str(error.value) == f"grid must be a positive number up to 1; got {value!r}."


@for_each("value", [0, -1.0, math.nan, math.inf])
def test_positive_number_refuses(value: float) -> None:
    with pytest.raises(InputError, match=f"clip must be a positive finite number; got {value}"):
        positive_number(value, "clip")


@for_each("value", [True, "0.5", None, [], 10**400])
def test_as_float_refuses(value: object) -> None:
    assert as_float(value) is None


@for_each("value", ["other", "", None, 1, ["wor"]])
def test_words(value: object) -> None:
    assert check_word("scheme", "wr", ("wor", "wr")) == "wr"
    with pytest.raises(InputError) as error:
        check_word("scheme", value, ("wor", "wr"))
    assert str(error.value) == f"scheme must be 'wor' or 'wr'; got {value!r}."


@for_each("value", [-5e-324, 1.0000000000000002, math.nan, -math.inf])
def test_unit(value: float) -> None:
    check_unit("train", 0.0)
    check_unit("train", 1.0)
    with pytest.raises(InputError) as error:
        check_unit("train", value)
    assert str(error.value) == f"train must be a number in [0, 1]; got {value}."
