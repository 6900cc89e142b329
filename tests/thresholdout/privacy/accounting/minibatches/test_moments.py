import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import taylor_moment, taylor_moment_bound


@for_each(
    ("sigma", "k", "value"),
    [
        (6, 2, 0.117519068741864),
        (6, 3, 0.0430552188604986),
        (6, 4, 0.0703987531614996),
        (6, 8, 0.558265372935156),
        (2, 4, 336.396336770739),
        (50, 10, 1.18244443949583e-11),
        (1000, 40, 3.6278176925575e-85),
    ],
)
def test_worked_values(sigma: float, k: int, value: float) -> None:
    assert taylor_moment(sigma, k) == pytest.approx(value, rel=1e-12)


def test_worked_bounds() -> None:
    assert taylor_moment_bound(6, 3) == pytest.approx(0.0909571102890135, rel=1e-12)
    assert taylor_moment_bound(6, 5) == pytest.approx(0.0973602499478713, rel=1e-12)
    assert taylor_moment_bound(6, 3) > 0.0765613726007332  # E|L - 1|**3
    assert taylor_moment_bound(6, 5) > 0.0866648112645951


def alternating(sigma: float, k: int) -> mpmath.mpf:
    with mpmath.workdps(400):
        s = mpmath.mpf(sigma)
        return mpmath.fsum(
            (-1) ** (k - j) * mpmath.binomial(k, j) * mpmath.exp(2 * j * (j - 1) / s**2) for j in range(k + 1)
        )


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(sigma=st.floats(0.3, 1000), k=st.integers(2, 60))
def test_alternating_sum_in_400_digits(sigma: float, k: int) -> None:
    exact = mpmath.log(alternating(sigma, k))
    assert abs(taylor_moment(sigma, k, log=True) - exact) < 1e-9 * max(1, abs(exact)) + 1e-9
    assert taylor_moment(sigma, k, log=True) >= exact
    bound = taylor_moment_bound(sigma, k, log=True)
    assert bound >= exact - abs(exact) * 1e-15


def test_large_orders_do_not_overflow() -> None:
    assert taylor_moment(0.3, 500) == math.inf
    exact = 2 * 500 * 499 / 0.09
    assert taylor_moment(0.3, 500, log=True) == pytest.approx(exact, rel=1e-12)
    assert taylor_moment(6, 0) == 1.0
    assert taylor_moment(6, 1) == 0.0


@for_each(("sigma", "k"), [(20.0, 22), (50.0, 12)])
def test_the_alternating_sum_in_floats_loses_everything(sigma: float, k: int) -> None:
    """The published code's sum is of a wrong size, or negative."""
    floats = sum((-1) ** (k - j) * math.comb(k, j) * math.exp(2 * j * (j - 1) / sigma**2) for j in range(k + 1))
    exact = float(alternating(sigma, k))
    assert abs(floats / exact - 1) > 0.1
    assert taylor_moment(sigma, k) == pytest.approx(exact, rel=1e-11)


def test_bad_arguments() -> None:
    for sigma in (0, -1, math.nan, math.inf, True):
        with pytest.raises(ValueError, match="sigma"):
            taylor_moment(sigma, 2)
    with pytest.raises(InputError, match="k"):
        taylor_moment(6, -1)
