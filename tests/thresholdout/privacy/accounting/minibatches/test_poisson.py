import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thresholdout.privacy.accounting.minibatches import twin
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import rdp_fswor, rdp_poisson, taylor_moment

Q = 0.0024


@pytest.mark.parametrize(
    ("alpha", "value"), [(2, 6.40569173057643e-7), (10, 3.20777533903646e-6), (5.5, 1.76274499649909e-6)]
)
def test_worked_values(alpha: float, value: float) -> None:
    found = rdp_poisson(alpha, 6, Q, adjacency="replace_one", method="taylor")
    assert found == pytest.approx(value, rel=1e-12)
    assert rdp_poisson(alpha, 6, Q, adjacency="replace_one") <= found


def test_add_remove_is_without_replacement_at_twice_the_noise() -> None:
    alpha = np.array([1.01, 2.5, 300.0])
    assert rdp_poisson(alpha, 3, 0.1) == pytest.approx(rdp_fswor(alpha, 6, 0.1), rel=1e-15)
    assert rdp_poisson(2.5, 3, 0.1, method="taylor") == rdp_fswor(2.5, 6, 0.1, method="taylor")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(alpha=st.floats(1.02, 60), sigma=st.floats(0.3, 200), q=st.floats(1e-6, 0.95))
def test_replace_one_bounds_are_above_the_attained_pair(alpha: float, sigma: float, q: float) -> None:
    pair = rdp_poisson(alpha, sigma, q, adjacency="replace_one", method="pair")
    best = rdp_poisson(alpha, sigma, q, adjacency="replace_one")
    assert math.isfinite(best)
    assert pair <= best * (1 + 1e-10)
    for m in (3, 4, 5, 6):
        assert best <= rdp_poisson(alpha, sigma, q, adjacency="replace_one", method="taylor", m=m) * (1 + 1e-13)
    assert best <= rdp_fswor(alpha, sigma, q, adjacency="replace_one")


def test_pair_by_direct_integration() -> None:
    for alpha, sigma, q in ((1.5, 1.0, 0.3), (3.0, 0.7, 0.1), (2.0, 2.0, 0.8)):
        exact = twin.finite([0.0, 1.0], [0.0, -1.0], alpha, sigma, np.array([1 - q, q]))
        assert rdp_poisson(alpha, sigma, q, adjacency="replace_one", method="pair") == pytest.approx(exact, rel=1e-10)


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
    ratio = rdp_fswor(alpha, sigma, q) / rdp_poisson(alpha, sigma, q, adjacency="replace_one", method="pair")
    assert ratio == pytest.approx(1, rel=1e-3)


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match="method"):
        rdp_poisson(2, 6, Q, method="pair")
    with pytest.raises(InputError, match="method"):
        rdp_poisson(2, 6, Q, adjacency="replace_one", method="exact")
    with pytest.raises(InputError, match="adjacency"):
        rdp_poisson(2, 6, Q, adjacency="zero_out")
