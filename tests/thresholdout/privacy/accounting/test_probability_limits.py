"""Clopper and Pearson's limits: published values, exact tails with 50 digits, refusals."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.binomial_probabilities import approximate_limits, clopper_pearson_upper


def at_most(k: int, n: int, p: float) -> mpmath.mpf:
    """P(at most k of n), in 50 digits."""
    with mpmath.workdps(50):
        q = mpmath.mpf(p)
        return mpmath.fsum(mpmath.binomial(n, i) * q**i * (1 - q) ** (n - i) for i in range(k + 1))


@for_each(
    ("k", "n", "alpha", "expected"),
    [
        (0, 250, 0.05, 0.011911419715),
        (5, 250, 0.05, 0.041589828783),
        (12, 250, 0.05, 0.076611341591),
        (250, 250, 0.05, 1.0),
        (0, 1, 0.05, 0.95),
    ],
)
def test_worked_values(k: int, n: int, alpha: float, expected: float) -> None:
    assert clopper_pearson_upper(k, n, alpha) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@given(st.integers(1, 300), st.floats(0, 1), st.floats(1e-6, 0.999))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_the_limit_is_on_the_safe_side_and_tight(n: int, share: float, alpha: float) -> None:
    k = min(n - 1, int(share * n))
    limit = clopper_pearson_upper(k, n, alpha)
    assert at_most(k, n, limit) <= mpmath.mpf(alpha)
    closer = limit * (1 - 1e-9) if limit < 0.5 else 1 - (1 - limit) * (1 + 1e-8)
    assert at_most(k, n, closer) > mpmath.mpf(alpha) * (1 - mpmath.mpf(10) ** -4)
    assert clopper_pearson_upper(k + 1, n, alpha) >= limit


def test_no_events_has_a_closed_form() -> None:
    for n, alpha in ((1, 0.5), (17, 0.1), (10**6, 1e-9)):
        exact = -math.expm1(math.log(alpha) / n)
        assert exact * (1 - 1e-15) <= clopper_pearson_upper(0, n, alpha) <= exact * (1 + 1e-10)


def test_many_trials() -> None:
    limit = clopper_pearson_upper(1000, 10**7, 0.05)
    assert limit == pytest.approx(1e-4 + 1.6449 * 1e-2 / math.sqrt(1e7), rel=2e-2)


def test_a_level_below_all_sums_gives_one() -> None:
    assert clopper_pearson_upper(3, 10, 1e-305) == 1.0


@for_each(
    ("k", "n", "alpha"),
    [(-1, 5, 0.1), (6, 5, 0.1), (0, 0, 0.1), (1, 5, 0.0), (1, 5, 1.0), (1, 5, -0.1), (1, 5, math.nan)],
)
def test_values_out_of_range_are_refused(k: int, n: int, alpha: float) -> None:
    with pytest.raises(InputError):
        clopper_pearson_upper(k, n, alpha)


@for_each(("k", "n", "alpha"), [(1.0, 5, 0.1), (1, 5.0, 0.1), (True, 5, 0.1), (1, 5, "0.1"), (1, None, 1)])
def test_other_types_are_refused(k: Any, n: Any, alpha: Any) -> None:
    with pytest.raises(InputTypeError):
        clopper_pearson_upper(k, n, alpha)


def test_the_order_of_outcomes_uses_nearly_the_same_limits() -> None:
    limits = approximate_limits(40, 0.05)
    assert limits == pytest.approx([clopper_pearson_upper(k, 40, 0.05) for k in range(41)], rel=1e-9)
    assert (np.diff(limits) >= 0).all()
    assert not limits.flags.writeable
