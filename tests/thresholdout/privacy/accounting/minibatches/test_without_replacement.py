import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.accounting.minibatches import twin
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting import (
    H_taylor,
    rdp_fswor,
    rdp_fswor_lower,
    rdp_poisson,
    rdp_wang,
    remainder_add_remove,
)
from thresholdout.privacy.accounting.accountants.renyi_conversion import default_orders

Q = 0.0024


@for_each(
    ("alpha", "sigma", "q", "value"),
    [
        (1.5, 6, Q, 5.0760802246538e-7),
        (2, 6, Q, 6.76909606849775e-7),
        (5.5, 6, Q, 1.86340850858215e-6),
        (63.5, 6, Q, 2.18880768414181e-5),
        (2.5, 1, Q, 0.000567357393342336),
        (4, 0.5, Q, 23.956951277829),
        (2.5, 6, 1e-6, 1.46898844897149e-13),
        (7.3, 4, 0.05, 0.00281452510991633),
        (1.2, 1.5, 0.5, 0.34091164091541),
        (2, 1000, 1e-6, 4.000008000010667e-18),
        (1.5, 1000, 1e-9, 3.000006000007994e-24),
        (512, 0.3, Q, 11371.73368637),
    ],
)
def test_worked_values(alpha: float, sigma: float, q: float, value: float) -> None:
    assert rdp_fswor(alpha, sigma, q) == pytest.approx(value, rel=1e-12)
    assert rdp_fswor_lower(alpha, sigma, q) == pytest.approx(value, rel=1e-12)
    assert rdp_fswor_lower(alpha, sigma, q) <= rdp_fswor(alpha, sigma, q)


@pytest.mark.slow
@settings(max_examples=10, deadline=None, derandomize=True)
@given(alpha=st.floats(1.01, 15), sigma=st.floats(0.7, 100), q=st.floats(1e-6, 0.95))
def test_many_digits(alpha: float, sigma: float, q: float) -> None:
    exact = twin.without_replacement(alpha, sigma, q)
    assert exact <= rdp_fswor(alpha, sigma, q) <= exact * (1 + 1e-10)
    assert exact * (1 - 1e-10) <= rdp_fswor_lower(alpha, sigma, q) <= exact


@pytest.mark.slow
@for_each("alpha", [1.3, 2.0, 4.7])
def test_the_other_direction_is_never_larger(alpha: float) -> None:
    for sigma, q in ((0.8, 0.2), (3.0, 0.01), (1.5, 0.9)):
        added = twin.renyi([(1 - q, 0), (q, 2 / sigma)], alpha, added=True)
        assert added <= rdp_fswor(alpha, sigma, q)


@for_each(
    ("alpha", "m", "value"),
    [
        (1.5, 3, 5.0784005390428e-7),
        (5.5, 3, 1.86956807162114e-6),
        (5.5, 4, 1.86341319441957e-6),
        (63.5, 3, 2.31360988183547e-5),
    ],
)
def test_worked_taylor_values(alpha: float, m: int, value: float) -> None:
    assert rdp_fswor(alpha, 6, Q, method="taylor", m=m) == pytest.approx(value, rel=1e-12)


def test_worked_remainders() -> None:
    assert remainder_add_remove(1.5, 6, Q, 3) == pytest.approx(7.88707074074408e-11, rel=2e-12)
    assert remainder_add_remove(3.5, 6, Q, 4) == pytest.approx(6.39425259932524e-13, rel=2e-12)
    assert remainder_add_remove(3, 6, Q, 5) == 0.0


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    alpha=st.one_of(st.floats(1.01, 100), st.integers(2, 60).map(float)),
    sigma=st.floats(0.4, 200),
    q=st.floats(1e-6, 0.9),
    m=st.integers(3, 8),
)
def test_taylor_is_above_the_exact_value(alpha: float, sigma: float, q: float, m: int) -> None:
    assert rdp_fswor(alpha, sigma, q, method="taylor", m=m) >= rdp_fswor_lower(alpha, sigma, q)


def test_taylor_is_exact_at_integers_below_m_only() -> None:
    assert rdp_fswor(4, 6, 0.05, method="taylor", m=5) == pytest.approx(rdp_fswor(4, 6, 0.05), rel=1e-11)
    assert rdp_fswor(6, 6, 0.05, method="taylor", m=3) > rdp_fswor(6, 6, 0.05) * 1.001  # not exact above m
    assert H_taylor(4, 6, 0.05, 5) == pytest.approx(math.exp(3 * rdp_fswor(4, 6, 0.05)), rel=1e-12)


def test_more_terms_are_worse_at_small_noise() -> None:
    values = [rdp_fswor(1.5, 1, Q, method="taylor", m=m) for m in (3, 4)]
    assert values == pytest.approx([2.30e-3, 4.10e-2], rel=5e-3)
    assert rdp_fswor(1.5, 1, Q) == pytest.approx(1.865e-4, rel=5e-4)


def test_integer_orders_are_the_binomial_sum() -> None:
    for n in (2, 3, 9, 33):
        s, q = 3.0, 0.05
        total = math.fsum(
            math.comb(n, k) * (1 - q) ** (n - k) * q**k * math.exp(2 * k * (k - 1) / s**2) for k in range(n + 1)
        )
        assert rdp_fswor(n, s, q) == pytest.approx(math.log(total) / (n - 1), rel=1e-11)
        assert rdp_wang(n, s, q, bound="lower") == pytest.approx(rdp_fswor(n, s, q), rel=1e-11)
        assert rdp_wang(n, s, q, bound="lower") <= rdp_fswor(n, s, q)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    sigma=st.floats(0.3, 1000), q=st.floats(1e-7, 0.99), shape=st.sampled_from([(1.001, 1.5), (2, 64), (500, 10_000)])
)
def test_properties(sigma: float, q: float, shape: tuple[float, float]) -> None:
    alpha = np.linspace(*shape, 4)
    exact = rdp_fswor(alpha, sigma, q)
    assert np.isfinite(exact).all()
    assert (exact > 0).all()
    assert (np.diff(exact) > 0).all()
    assert (np.diff((alpha - 1) * exact, 2) > -1e-9 * ((alpha - 1) * exact)[1:-1]).all()  # convex
    assert (rdp_fswor(alpha, sigma * 1.1, q) < exact).all()
    assert (rdp_fswor(alpha, sigma, min(q * 1.1, 0.999)) > exact).all()
    assert (exact <= 2 * alpha / sigma**2 * (1 + 1e-12)).all()  # the rate 1
    assert np.allclose(exact, rdp_poisson(alpha, sigma / 2, q), rtol=1e-12)
    assert (rdp_fswor_lower(alpha, sigma, q) <= exact).all()
    assert exact == pytest.approx(rdp_fswor_lower(alpha, sigma, q), rel=1e-10)


@for_each(("sigma", "q"), [(0.3, 0.99), (0.3, 1e-7), (6.0, 0.01), (30.0, 0.5), (1000.0, 1e-3)])
def test_high_orders_by_the_binomial_sum(sigma: float, q: float) -> None:
    """Orders whose quadrature looks at a small part of its nodes only."""
    alpha = np.array([300.0, 2000.0, 10_000.0])
    exact = rdp_fswor(alpha, sigma, q)
    sums = rdp_wang(alpha, sigma, q, bound="lower")
    assert (sums <= exact).all()
    assert exact == pytest.approx(sums, rel=1e-8)


@pytest.mark.slow
@for_each("sigma", [0.01, 0.1, 1e8])
@for_each("q", [1e-200, 1e-17, 1 - 1e-12])
def test_beyond_the_stated_ranges(sigma: float, q: float) -> None:
    alpha = np.array([1.001, 2.0, 64.0, 10_000.0])
    lower, exact = rdp_fswor_lower(alpha, sigma, q), rdp_fswor(alpha, sigma, q)
    replaced = rdp_fswor(alpha, sigma, q, adjacency="replace_one")
    assert np.isfinite([lower, exact, replaced]).all()
    assert (lower <= exact).all()
    assert (lower <= replaced).all()


def test_whole_rate_is_the_gaussian_limit() -> None:
    assert rdp_fswor(3, 2, 1 - 1e-12) == pytest.approx(2 * 3 / 4, rel=1e-9)


def test_varying_noise_adds_up() -> None:
    schedule = ((8.0, 1000), (6.0, 2000), (4.0, 500))
    total = sum(count * rdp_fswor(8, sigma, Q) for sigma, count in schedule)
    assert total == pytest.approx(0.010198823243605, rel=1e-12)


def test_tiny_data_sets_by_enumeration() -> None:
    """All batches of all sign patterns of up to five records, both directions: below, and attained."""
    best = 0.0
    for records, size, sigma, alpha in ((2, 1, 1.0, 1.7), (4, 2, 2.0, 3.0), (5, 2, 0.7, 2.0), (5, 4, 3.0, 1.2)):
        bound = rdp_fswor(alpha, sigma, batch_size=size, dataset_size=records)
        for first in (1.0, -1.0, 0.3):
            for others in (-np.ones(records - 1), np.linspace(-1, 1, records - 1)):
                larger = twin.batches([first, *others], size)
                smaller = twin.batches(list(others), size) if records - 1 >= size else [0.0]
                for one, other in ((larger, smaller), (smaller, larger)):
                    found = twin.finite(one, other, alpha, sigma)
                    assert found <= bound
                    best = max(best, found / bound)
    assert best > 1 - 1e-9


def test_scalar_and_array() -> None:
    values = rdp_fswor([2, 5.5], 6, batch_size=120, dataset_size=50_000)
    assert isinstance(rdp_fswor(2, 6, Q), float)
    assert values.shape == (2,)
    assert values[1] == pytest.approx(1.86340850858215e-6, rel=1e-12)
    assert rdp_fswor(default_orders(), 6, Q).shape == (158,)


@for_each(
    "arguments",
    [
        {"alpha": 1.0},
        {"alpha": math.nan},
        {"alpha": []},
        {"alpha": [2.0, math.inf]},
        {"sigma": 0.0},
        {"sigma": math.inf},
        {"q": 0.0},
        {"q": 1.0},
        {"q": None},
        {"q": Q, "batch_size": 3, "dataset_size": 10},
        {"q": None, "batch_size": 10, "dataset_size": 10},
        {"q": None, "batch_size": 0, "dataset_size": 10},
        {"q": None, "batch_size": 2.5, "dataset_size": 10},
        {"q": None, "batch_size": 2},
        {"m": 2},
        {"m": 3.0},
        {"adjacency": "either"},
        {"method": "best"},
        {"leading": "blunt"},
        {"method": "exact", "adjacency": "replace_one"},
    ],
)
def test_bad_arguments(arguments: dict[str, Any]) -> None:
    call: dict[str, Any] = {"alpha": 2.0, "sigma": 6.0, "q": Q} | arguments
    with pytest.raises((InputError, InputTypeError)):
        rdp_fswor(call.pop("alpha"), call.pop("sigma"), **call)


def test_two_terms_are_for_the_bare_moment_only() -> None:
    assert H_taylor(2.5, 6, Q, 2) > math.exp(1.5 * rdp_fswor(2.5, 6, Q)) * (1 - 1e-15)
    with pytest.raises(InputError):
        H_taylor(2.5, 6, Q, 1)
