"""The mean of clipped vectors: bounds in exact arithmetic, whatever the rounding."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.sizes import sizes
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.learning.bounded_mean import bounded_mean, check_bound, noisy_mean, rounding_slack

QUICK = settings(max_examples=150, derandomize=True, deadline=None)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0, -1.0, 5e-324, 1.7e308, 1e-170])
BOUNDS = st.sampled_from([1e-100, 1e-8, 0.1, 1.0, 3.0, 1e100]) | st.floats(1e-3, 1e3)


def square(vector: Any) -> Fraction:
    return sum((Fraction(float(entry)) ** 2 for entry in np.ravel(vector)), Fraction(0))


def apart(one: Any, other: Any) -> Fraction:
    pairs = zip(np.ravel(one), np.ravel(other), strict=True)
    return sum(((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in pairs), Fraction(0))


@pytest.mark.slow
@QUICK
@given(arrays(float, st.tuples(st.just(1), st.integers(1, 6)), elements=NUMBERS), BOUNDS)
def test_a_clipped_row_is_within_the_bound_exactly(row: Any, bound: float) -> None:
    clipped, limit = bounded_mean(row, bound), Fraction(bound) ** 2
    assert square(clipped) <= limit
    if square(row) > limit:
        assert float(square(clipped) / limit) >= 1 - 1e-12
    elif float(square(row) / limit) < 1 - 1e-12:
        np.testing.assert_allclose(clipped, row[0], rtol=0, atol=bound * 1e-14)


@sizes("examples", 40, 150)
def test_one_row_moves_the_mean_by_the_sensitivity_at_most(examples: int) -> None:
    @settings(QUICK, max_examples=examples)
    @given(
        st.integers(1, 8).flatmap(
            lambda d: st.tuples(
                arrays(float, st.tuples(st.integers(1, 9), st.just(d)), elements=NUMBERS),
                arrays(float, (d,), elements=NUMBERS),
            )
        ),
        BOUNDS,
        st.integers(0, 8),
    )
    def check(data: Any, bound: float, place: int) -> None:
        rows, other = data
        changed = rows.copy()
        changed[place % len(rows)] = other
        limit = Fraction(2) * Fraction(bound) / len(rows)
        assert apart(bounded_mean(rows, bound), bounded_mean(changed, bound)) <= limit**2

    check()


def test_opposite_rows_reach_the_sensitivity_but_never_pass_it() -> None:
    """The worst pair, with norms that a plain quotient rounds above the bound."""
    rng = np.random.default_rng(0)
    passed = 0
    for _ in range(200):
        rows = rng.normal(size=(7, 3)) * 1e3
        changed = rows.copy()
        changed[0] = -rows[0]
        bound = float(rng.uniform(0.1, 1.0))
        limit = (Fraction(2) * Fraction(bound) / 7) ** 2
        found = apart(bounded_mean(rows, bound), bounded_mean(changed, bound))
        assert found <= limit
        assert float(found / limit) > 1 - 1e-12
        plain = [x / np.maximum(1, np.linalg.norm(x, axis=1) / bound)[:, None] for x in (rows, changed)]
        passed += apart(plain[0].mean(axis=0), plain[1].mean(axis=0)) > limit
    assert passed > 20  # the side that fails: clipping as it is usually written


def test_the_sum_does_not_depend_on_the_order() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1000, 4)) * 10.0 ** rng.uniform(-12, 12, (1000, 1))
    shuffled = rows[rng.permutation(1000)]
    np.testing.assert_array_equal(bounded_mean(rows, 1.0), bounded_mean(shuffled, 1.0))


def test_the_mean_is_the_usual_one() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(50, 7))
    plain = (rows / np.maximum(1, np.linalg.norm(rows, axis=1) / 1.5)[:, None]).mean(axis=0)
    np.testing.assert_allclose(bounded_mean(rows, 1.5), plain, rtol=0, atol=1e-13)
    np.testing.assert_allclose(bounded_mean(rows, 1e3, clip=False), rows.mean(axis=0), rtol=0, atol=1e-10)
    assert bounded_mean(np.zeros((3, 2)), 1.0).tolist() == [0.0, 0.0]


def test_longer_rows_are_refused_without_clipping() -> None:
    rows = np.array([[0.6, 0.8], [1.0, 0.0]])
    np.testing.assert_allclose(bounded_mean(rows, 1.0, clip=False), [0.8, 0.4], atol=1e-13)
    with pytest.raises(InputError, match=r"updates must be vectors of norm at most 0.999.*; got a longer one"):
        bounded_mean(rows, 0.999, clip=False, name="updates")


def test_rows_that_are_not_finite() -> None:
    rng = np.random.default_rng(0)
    rows = np.array([[np.inf, 0.0], [0.6, 0.8], [np.nan, 1.0]])
    with pytest.raises(InputError, match=r"increments must be .*; got a value that is not finite"):
        noisy_mean(rows, 1.0, 0.0, rng, name="increments")
    found = noisy_mean(rows, 1.0, 0.0, rng, non_finite="zero")
    np.testing.assert_allclose(found, [0.2, 0.8 / 3], atol=1e-13)


def test_bounds_that_are_refused() -> None:
    for value in (0, -1.0, 1e-101, 1e101, float("nan"), float("inf")):
        with pytest.raises(InputError, match="L"):
            check_bound(value)
    for wrong in ("1", True, None):
        with pytest.raises(InputTypeError):
            check_bound(wrong)
    assert check_bound(2) == 2.0
    assert rounding_slack(10**6, 10**6) < 1e-9
