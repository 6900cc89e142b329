import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.privacy.accounting.minibatches import twin
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import rdp_fswor, rdp_poisson, taylor_moment

Q = 0.0024


@for_each(("alpha", "value"), [(2, 6.40569173057643e-7), (10, 3.20777533903646e-6), (5.5, 1.76274499649909e-6)])
def test_worked_values(alpha: float, value: float) -> None:
    found = rdp_poisson(alpha, 6, Q, adjacency="replace_one", method="taylor")
    assert found == pytest.approx(value, rel=1e-12)
    assert rdp_poisson(alpha, 6, Q, adjacency="replace_one") <= found


def test_add_remove_is_without_replacement_at_twice_the_noise() -> None:
    alpha = np.array([1.01, 2.5, 300.0])
    assert rdp_poisson(alpha, 3, 0.1) == pytest.approx(rdp_fswor(alpha, 6, 0.1), rel=1e-15)
    assert rdp_poisson(2.5, 3, 0.1, method="taylor") == rdp_fswor(2.5, 6, 0.1, method="taylor")


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(alpha=st.floats(1.02, 60), sigma=st.floats(0.3, 200), q=st.floats(1e-6, 0.95))
def test_replace_one_is_below_every_other_bound(alpha: float, sigma: float, q: float) -> None:
    best = rdp_poisson(alpha, sigma, q, adjacency="replace_one")
    assert rdp_poisson(alpha, sigma, q) < best
    assert best == rdp_poisson(alpha, sigma, q, adjacency="replace_one", method="exact")
    for m in (3, 4, 5, 6):
        assert best <= rdp_poisson(alpha, sigma, q, adjacency="replace_one", method="taylor", m=m) * (1 + 1e-12)
    assert best <= rdp_fswor(alpha, sigma, q, adjacency="replace_one") * (1 + 1e-12)


def _divergence(alpha: float, sigma: float, q: float) -> mpmath.mpf:
    """Integrate the divergence of the two opposite mixtures with 40 digits, by a rule of its own."""
    with mpmath.workdps(40):
        power, a, rate = mpmath.mpf(alpha), 1 / mpmath.mpf(sigma), mpmath.mpf(q)
        step, total = 1 / (32 * max(mpmath.mpf(1), a)), mpmath.mpf(0)
        for k in range(int(-(a + 22) / step), int((power * a + 22) / step)):
            t = k * step
            p, other = (1 - rate + rate * mpmath.exp(side * a * t - a * a / 2) for side in (1, -1))
            w = p / other - 1
            total += mpmath.exp(-t * t / 2) * other * ((1 + w) ** power - 1 - power * w)
        return mpmath.log1p(total * step / mpmath.sqrt(2 * mpmath.pi)) / (power - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "sigma", "q"),
    corners(
        [
            (1.02, 0.7, 0.5),
            (1.5, 20.0, 0.0024),
            (2.0, 1.0, 1e-6),
            (3.3, 0.4, 0.999),
            (1.2, 0.3, 0.95),
            (9.0, 3.0, 0.05),
        ],
        *(0, 1, 2, 5),
    ),
)
def test_replace_one_in_high_precision(alpha: float, sigma: float, q: float) -> None:
    exact = _divergence(alpha, sigma, q)
    found = rdp_poisson(alpha, sigma, q, adjacency="replace_one", method="exact")
    assert exact <= found <= exact * (1 + mpmath.mpf(1e-11))


@pytest.mark.slow
def test_orders_that_would_take_too_long_get_the_bound_without_replacement() -> None:
    alpha = np.array([2.0, 1e6])
    exact = rdp_poisson(alpha, 2, 0.01, adjacency="replace_one", method="exact")
    assert np.isinf(exact).tolist() == [False, True]
    assert rdp_poisson(alpha, 2, 0.01, adjacency="replace_one").tolist() == [
        exact[0],
        rdp_fswor(1e6, 2, 0.01, adjacency="replace_one"),
    ]


def test_published_constant_is_too_small_for_the_fourth_derivative() -> None:
    """C.9 bounds E[(x - y)^4] by 4 M_4; two opposite records of equal norm have nearly 16 M_4."""
    sigma = 20.0
    a = 1 / sigma
    t = np.arange(-14, 15, 0.02)
    difference = 2 * math.exp(-a * a / 2) * np.sinh(a * t)
    fourth = float((difference**4 * np.exp(-t * t / 2)).sum()) * 0.02 / math.sqrt(2 * math.pi)
    bound = taylor_moment(2 * sigma, 4)
    assert 15 < fourth / bound < 16


def test_tiny_data_sets_by_enumeration() -> None:
    for records, q, sigma, alpha in ((2, 0.3, 1.0, 1.7), (3, 0.7, 2.0, 3.0), (3, 0.1, 0.7, 2.0)):
        coins = np.array(list(itertools.product([0, 1], repeat=records)))
        weights = np.prod(np.where(coins == 1, q, 1 - q), axis=1)
        for first, second in ((1.0, -1.0), (1.0, 0.3), (-1.0, 0.0)):
            others = np.linspace(-1, 1, records - 1)
            one, other = coins @ np.array([first, *others]), coins @ np.array([second, *others])
            found = twin.finite(one, other, alpha, sigma, weights)
            assert found <= rdp_poisson(alpha, sigma, q, adjacency="replace_one")
            if second == 0.0:
                assert found <= rdp_poisson(alpha, sigma, q)
                assert twin.finite(other, one, alpha, sigma, weights) <= rdp_poisson(alpha, sigma, q)


def test_fixed_size_costs_a_factor_of_two_under_add_remove_only() -> None:
    alpha, sigma, q = 2.0, 100.0, 1e-3
    assert rdp_fswor(alpha, sigma, q) / rdp_poisson(alpha, sigma, q) == pytest.approx(4, rel=1e-3)
    ratio = rdp_fswor(alpha, sigma, q) / rdp_poisson(alpha, sigma, q, adjacency="replace_one")
    assert ratio == pytest.approx(1, rel=1e-3)


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match="method"):
        rdp_poisson(2, 6, Q, method="pair")
    with pytest.raises(InputError, match="adjacency"):
        rdp_poisson(2, 6, Q, adjacency="zero_out")
