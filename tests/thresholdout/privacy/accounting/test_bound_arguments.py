"""Arguments of bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import (
    chosen,
    count,
    floats,
    number,
    open_unit,
    positive,
    probability,
    unit,
)


@for_each(("value", "seen"), [(10**400, "inf"), (-(10**400), "-inf"), (float("nan"), "nan")])
def test_numbers_beyond_floats(value: float, seen: str) -> None:
    with pytest.raises(InputError) as error:
        number(value, "eps")
    assert str(error.value) == f"eps must be a finite number; got {seen}."


@for_each(("value", "seen"), [(True, "a bool"), ("1", "a str"), (None, "a NoneType"), (np.array(3), "an ndarray")])
def test_no_numbers_and_no_counts(value: object, seen: str) -> None:
    for check, expected in ((number, "a finite number"), (count, "an integer, 1 or more")):
        with pytest.raises(InputTypeError) as error:
            check(value, "eps")
        assert str(error.value) == f"eps must be {expected}; got {seen}."


@for_each("value", ["other", "", None, 1, ["wor"]])
def test_words(value: object) -> None:
    assert chosen("wr", "scheme", ("wor", "wr")) == "wr"
    with pytest.raises(InputError) as error:
        chosen(value, "scheme", ("wor", "wr"))
    assert str(error.value) == f"scheme must be one of 'wor', 'wr'; got {value!r}."


SMALLEST, BELOW_1, ABOVE_1 = math.ulp(0.0), math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0)


@for_each(
    ("check", "inside", "outside", "expected"),
    [
        (positive, [SMALLEST, 1e308], [0.0, -SMALLEST, -0.5], "a finite number above 0"),
        (partial(positive, zero=True), [0.0, SMALLEST, 1e308], [-SMALLEST, -0.5], "a finite number, 0 or more"),
        (probability, [0.0, BELOW_1], [-SMALLEST, 1.0, 1.5], "a number in [0, 1)"),
        (open_unit, [SMALLEST, BELOW_1], [0.0, 1.0, 1.5], "a number in (0, 1)"),
        (unit, [0.0, 1.0], [-SMALLEST, ABOVE_1], "a number in [0, 1]"),
        (partial(count, least=3), [3, 10**30], [2, 0, -3], "an integer, 3 or more"),
    ],
)
def test_ranges_end_where_they_say(
    check: Callable[[object, str], float], inside: list[float], outside: list[float], expected: str
) -> None:
    for value in inside:
        assert check(value, "a") == value
    for value in outside:
        with pytest.raises(InputError) as error:
            check(value, "a")
        assert str(error.value) == f"a must be {expected}; got {value!r}."


@for_each(
    ("value", "seen"),
    [
        ("x", "a str"),
        (None, "a NoneType"),
        ([True], "an array of bool"),
        ([[1.0], [1.0, 2.0]], "rows of different lengths"),
    ],
)
def test_arrays_of_no_numbers(value: object, seen: str) -> None:
    with pytest.raises(InputTypeError) as error:
        floats(value, "a", "numbers")
    assert str(error.value) == f"a must be numbers; got {seen}."
    assert floats([1, 2], "a", "numbers").tolist() == [1.0, 2.0]
