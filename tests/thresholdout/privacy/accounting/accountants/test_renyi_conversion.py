import math
import warnings
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.minibatch_epsilons import refine_epsilon
from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import rdp_fswor
from thresholdout.privacy.accounting.accountants.renyi_conversion import (
    EdgeOrderWarning,
    NoFiniteOrderWarning,
    default_orders,
    rdp_to_delta,
    rdp_to_epsilon,
)

SIGMA, Q, STEPS = 6, 0.0024, 104_000


def gaussian_delta(epsilon: float, sigma: float) -> Any:
    """Return the exact delta of one Gaussian answer of sensitivity 1."""
    with mpmath.workdps(30):
        e, s = mpmath.mpf(epsilon), mpmath.mpf(sigma)
        return mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(sigma=st.floats(0.3, 20), log_delta=st.floats(-12, -1))
def test_gaussian_is_covered(sigma: float, log_delta: float) -> None:
    delta, orders = 10.0**log_delta, np.linspace(1.01, 2000, 4000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeOrderWarning)
        balle = rdp_to_epsilon(orders, orders / (2 * sigma**2), delta)
        mironov = rdp_to_epsilon(orders, orders / (2 * sigma**2), delta, conversion="mironov")
        assert gaussian_delta(balle.epsilon, sigma) <= delta
        assert balle.epsilon <= mironov.epsilon
        back = rdp_to_delta(orders, orders / (2 * sigma**2), balle.epsilon)
    assert gaussian_delta(balle.epsilon, sigma) <= back.delta
    if balle.epsilon > 0:
        assert back.delta == pytest.approx(delta, rel=1e-6)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(alpha=st.floats(1.001, 10_000), rho=st.floats(1e-12, 1e6), log_delta=st.floats(-300, -0.01))
def test_forty_digits(alpha: float, rho: float, log_delta: float) -> None:
    delta = 10.0**log_delta
    with mpmath.workdps(40), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, r, d = mpmath.mpf(alpha), mpmath.mpf(rho), mpmath.mpf(delta)
        exact = r + mpmath.log1p(-1 / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)
        found = rdp_to_epsilon([alpha], [rho], delta).epsilon
        assert found >= max(0, exact)
        assert found == pytest.approx(max(0.0, float(exact)), rel=1e-10, abs=1e-9)
        plain = r + mpmath.log(1 / d) / (a - 1)
        mironov = rdp_to_epsilon([alpha], [rho], delta, conversion="mironov").epsilon
        assert plain <= mironov == pytest.approx(float(plain), rel=1e-12)


@pytest.mark.slow
def test_worked_epsilons() -> None:
    orders = default_orders()
    removed = STEPS * rdp_fswor(orders, SIGMA, Q)
    replaced = STEPS * rdp_fswor(orders, SIGMA, Q, adjacency="replace_one")
    assert rdp_to_epsilon(orders, removed, 1e-5).epsilon <= 1.083
    sharp = np.min(
        [rdp_fswor(orders, SIGMA, Q, adjacency="replace_one", method="taylor", m=m) for m in (3, 4, 5, 6)], axis=0
    )
    assert rdp_to_epsilon(orders, STEPS * sharp, 1e-5).epsilon == pytest.approx(1.1004, abs=5e-5)
    assert rdp_to_epsilon(orders, replaced, 1e-5).epsilon < 1.0965
    grid = 1 + 10 ** np.linspace(-1, 1.5, 500)
    envelope = STEPS * rdp_fswor(grid, SIGMA, Q, adjacency="replace_one", method="envelope")
    assert rdp_to_epsilon(grid, envelope, 1e-5).epsilon == pytest.approx(1.2258, abs=5e-5)


@pytest.mark.slow
def test_worked_other_regimes() -> None:
    grid = 1 + 10 ** np.linspace(-1, 1.5, 500)
    regimes = {
        (2.0, 0.0064, 1000): (2.67, 1.612),
        (1.0, 0.01, 100): (1000.0, 8.19),
    }
    for (sigma, q, steps), (theorem, envelope) in regimes.items():
        found = {
            method: rdp_to_epsilon(
                grid, steps * rdp_fswor(grid, sigma, q, adjacency="replace_one", method=method), 1e-5
            )
            for method in ("taylor", "envelope", "auto")
        }
        assert found["envelope"].epsilon == pytest.approx(envelope, rel=2e-3)
        assert found["taylor"].epsilon >= theorem * 0.98 or theorem == 1000.0
        assert found["auto"].epsilon <= found["envelope"].epsilon


def test_refined_is_never_above_the_grid() -> None:
    def total(orders: Any) -> Any:
        return STEPS * rdp_fswor(orders, SIGMA, Q)

    refined = refine_epsilon(total, 1e-5)
    grid = rdp_to_epsilon(default_orders(), total(default_orders()), 1e-5)
    assert refined.epsilon == pytest.approx(1.082597, abs=5e-7)
    assert refined.epsilon <= grid.epsilon
    assert 16 < refined.order < 18


def test_edges_warn() -> None:
    with pytest.warns(EdgeOrderWarning, match="larger"):
        rdp_to_epsilon([2.0, 3.0, 4.0], [1e-6, 1e-6, 1e-6], 1e-5)
    with pytest.warns(EdgeOrderWarning, match="smaller"):
        rdp_to_epsilon([2.0, 3.0], [1.0, 100.0], 0.1)
    with pytest.warns(EdgeOrderWarning, match="larger"):
        found = rdp_to_epsilon([2.0, 3.0, 4.0], [1e-6, 1e-6, math.inf], 1e-5)
    assert found.order == 3.0
    with pytest.warns(NoFiniteOrderWarning):
        assert rdp_to_epsilon([2.0], [math.inf], 1e-5).epsilon == math.inf
    with pytest.warns(NoFiniteOrderWarning):
        assert rdp_to_delta([2.0], [math.inf], 1.0).delta == 1.0


def test_nothing_leaked_costs_nothing() -> None:
    assert rdp_to_epsilon([2.0, 400.0], [0.0, 0.0], 0.9).epsilon == 0.0


@for_each(
    ("orders", "rdp", "delta"),
    [
        ([], [], 1e-5),
        ([1.0], [0.1], 1e-5),
        ([2.0], [-0.1], 1e-5),
        ([2.0], [math.nan], 1e-5),
        ([2.0, 3.0], [0.1], 1e-5),
        ([3.0, 2.0], [0.1, 0.1], 1e-5),
        ([2.0], [0.1], 0.0),
        ([2.0], [0.1], 1.0),
        ([2.0], [0.1], True),
    ],
)
def test_bad_arguments(orders: Any, rdp: Any, delta: Any) -> None:
    with pytest.raises(InputError):
        rdp_to_epsilon(orders, rdp, delta)


def test_bad_choices() -> None:
    with pytest.raises(InputError, match="conversion"):
        rdp_to_epsilon([2.0], [0.1], 1e-5, conversion="abadi")
    for epsilon in (-1.0, math.nan, math.inf, True):
        with pytest.raises(InputError, match="epsilon"):
            rdp_to_delta([2.0], [0.1], epsilon)


def test_default_orders() -> None:
    orders = default_orders()
    assert (np.diff(orders) > 0).all()
    assert orders[0] == 1.1
    assert orders[-1] == 512
