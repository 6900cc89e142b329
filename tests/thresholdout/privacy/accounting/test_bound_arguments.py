"""Arguments of bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import (
    any_of,
    chosen,
    count,
    floats,
    number,
    open_unit,
    positive,
    probability,
    steps,
    sum_up,
    tail_slack,
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


@for_each(
    ("values", "counts"),
    [([0.1, 0.2], [3, 1]), ([0.5], [4]), ([1e-300, 1e300, SMALLEST], [7, 1, 1]), ([0.1] * 9, [1] * 9), ([0.0], [5])],
)
def test_a_sum_is_the_smallest_float_that_is_not_below_it(values: list[float], counts: list[int]) -> None:
    found = sum_up(values, counts)
    exact = sum((Fraction(value) * times for value, times in zip(values, counts, strict=True)), Fraction(0))
    assert Fraction(math.nextafter(found, -math.inf)) < exact <= Fraction(found)


@for_each(
    ("delta", "extra"),
    [
        ([1e-6, 0.01, 1e-6], []),
        ([0.3, 0.2, 0.3], [0.1, 0.1]),
        ([1e-9] * 3, [0.5]),
        ([0.9] * 3, [0.9]),
        ([0.0] * 3, [0.0]),
    ],
)
def test_any_of_several_events_is_at_most_as_likely_as_if_they_were_independent(
    delta: list[float], extra: list[float]
) -> None:
    none = Fraction(1)
    for each in (*delta, *extra):
        none *= 1 - Fraction(each)
    found = any_of(steps([0.1, 0.2, 0.1], delta), *extra)
    assert 1 - none <= Fraction(found) <= (1 - none) * (1 + Fraction(1, 10**12))


def test_steps_are_grouped() -> None:
    found = steps([0.2, 0.1, 0.2, 0.1], [0.0, 1e-6, 0.0, 1e-5])
    assert (found.eps.tolist(), found.delta.tolist()) == ([0.1, 0.1, 0.2], [1e-6, 1e-5, 0.0])
    assert (found.counts.tolist(), found.total, found.equal) == ([1, 1, 2], 4, False)
    assert steps(found, None) is found
    assert steps([0.0, 0.5], 0.0).eps.tolist() == [0.0, 0.5]
    alike, one, listed = steps(0.0, 0.0, 5), steps(0.5, 0.25), steps([0.5, 0.5], 0.25, 2)
    assert (alike.total, one.total, listed.total) == (5, 1, 2)
    assert alike.equal
    assert listed.equal
    assert (one.eps.tolist(), one.delta.tolist(), listed.delta.tolist()) == ([0.5], [0.25], [0.25])


@for_each(
    ("eps", "delta", "number_of_steps", "said"),
    [
        ([0.1, 0.2], [0.0], None, "1 and 2 steps"),
        ([0.1, 0.2], 0.0, 3, "2 and 3 steps"),
        ([0.1, -SMALLEST], 0.0, None, "a negative value"),
        ([0.1, 0.2], [0.0, 1.0], None, "a value outside"),
        ([0.1, 0.2], [-SMALLEST, 0.0], None, "a value outside"),
        ([[0.1, 0.2]], 0.0, None, "an array of shape"),
        ([], 0.0, None, "an array of shape"),
        ([0.1, math.inf], 0.0, None, "not finite"),
        ("ab", 0.0, None, "a str"),
        ([True, False], 0.0, None, "an array of bool"),
        ([0.1, None], 0.0, None, "a NoneType"),
        ([[0.1], [0.1, 0.2]], 0.0, None, "rows of different lengths"),
    ],
)
def test_steps_that_are_none(eps: object, delta: object, number_of_steps: int | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        steps(eps, delta, number_of_steps)


def test_errors_of_probabilities_are_bounded_by_the_root_of_the_trials() -> None:
    """At 1e9 trials by 20 sqrt(1e9) = 632,456 units of 1e-15, beside 1e-12."""
    assert tail_slack(10**9) == pytest.approx(6.334555e-10, rel=1e-6)
    assert tail_slack(1) == pytest.approx(1.02e-12, rel=1e-6)
