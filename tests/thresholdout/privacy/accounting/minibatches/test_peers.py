"""Wang et al., dp-accounting and autodp: where they agree, and where they are not what a user expects."""

import math
import warnings
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp

from tests.cases import for_each
from tests.thresholdout.privacy.accounting.minibatches import twin
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import rdp_fswor, rdp_fswor_lower, rdp_poisson, rdp_wang
from thresholdout.privacy.accounting.accountants.renyi_conversion import default_orders, rdp_to_epsilon

Q = 0.0024
ORDERS = [2.0, 5.0, 10.0]


def without_replacement(orders: list[float], noise_multiplier: float) -> Any:
    peer = rdp.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_ONE)
    step = dp_accounting.GaussianDpEvent(noise_multiplier)
    peer.compose(dp_accounting.SampledWithoutReplacementDpEvent(50_000, 120, step))
    return np.array(peer._rdp)


@for_each(("alpha", "value"), [(1.5, 2.70763567816375e-6), (2.5, 3.62303543234607e-6), (10, 1.40548155717243e-5)])
def test_worked_wang_values(alpha: float, value: float) -> None:
    assert rdp_wang(alpha, 6, Q) == pytest.approx(value, rel=1e-12)
    assert rdp_wang(alpha, 6, Q, variant="min") <= rdp_wang(alpha, 6, Q)


def test_wang_at_small_and_large_noise() -> None:
    assert rdp_wang(2, 1, Q, variant="min") < rdp_wang(2, 1, Q)
    assert np.isfinite(rdp_wang(np.array([1.001, 10_000.0]), 0.3, 0.99)).all()
    with pytest.raises(InputError, match="alpha"):
        rdp_wang(2.5, 6, Q, bound="lower")
    with pytest.raises(InputError, match="variant"):
        rdp_wang(2.5, 6, Q, variant="max")


def test_poisson_agrees_with_dp_accounting() -> None:
    orders = [2.0, 5.0, 32.0, 200.0]
    for sigma, q in ((6.0, Q), (1.0, 0.01), (0.7, 0.2)):
        peer = rdp.RdpAccountant(orders)
        peer.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma)))
        assert rdp_poisson(orders, sigma, q) == pytest.approx(np.array(peer._rdp), rel=1e-7)


@pytest.mark.slow
def test_dp_accounting_loses_digits_at_fractional_orders() -> None:
    """Its series stops at an absolute accuracy, which is 3 % of one step here."""
    peer = rdp.RdpAccountant([1.5])
    peer.compose(dp_accounting.PoissonSampledDpEvent(Q, dp_accounting.GaussianDpEvent(6.0)))
    exact = float(twin.without_replacement(1.5, 12, Q))
    assert abs(peer._rdp[0] / exact - 1) > 0.03
    assert rdp_poisson(1.5, 6, Q) == pytest.approx(exact, rel=1e-12)


def test_dp_accounting_without_replacement_is_below_the_attained_value_unless_halved() -> None:
    """GaussianDpEvent(z) is relative to the clipping norm, and a replaced record moves the sum by twice that."""
    as_is = without_replacement(ORDERS, 6.0)
    assert as_is[0] == pytest.approx(6.49e-7, rel=1e-3)
    assert (as_is < rdp_fswor_lower(np.array(ORDERS), 6, Q)).all()
    halved = without_replacement(ORDERS, 3.0)
    assert halved[0] == pytest.approx(rdp_wang(2, 6, Q), rel=1e-10)
    assert (halved > 3 * rdp_fswor(np.array(ORDERS), 6, Q, adjacency="replace_one")).all()


@pytest.mark.slow
def test_peer_epsilon_is_twice_ours() -> None:
    orders = default_orders()
    peer = rdp_to_epsilon(orders, 104_000 * without_replacement(orders.tolist(), 3.0), 1e-5).epsilon
    assert peer == pytest.approx(2.319, abs=1e-3)
    ours = rdp_to_epsilon(orders, 104_000 * rdp_fswor(orders, 6, Q, adjacency="replace_one"), 1e-5).epsilon
    assert ours <= 1.101


def test_dp_accounting_rejects_what_we_take() -> None:
    step = dp_accounting.GaussianDpEvent(6.0)
    wor = dp_accounting.SampledWithoutReplacementDpEvent(50_000, 120, step)
    wr = dp_accounting.SampledWithReplacementDpEvent(50_000, 120, step)
    relations = dp_accounting.NeighboringRelation
    assert not rdp.RdpAccountant([2.0], relations.ADD_OR_REMOVE_ONE).supports(wor)
    for relation in (relations.ADD_OR_REMOVE_ONE, relations.REPLACE_ONE):
        assert not rdp.RdpAccountant([2.0], relation).supports(wr)


def test_autodp_has_the_same_trap() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from autodp import mechanism_zoo, transformer_zoo
    found = []
    for sigma in (6.0, 3.0):
        step = mechanism_zoo.GaussianMechanism(sigma=sigma)
        step.neighboring = "replace_one"  # by hand
        found.append(transformer_zoo.AmplificationBySampling(PoissonSampling=False)(step, Q).RenyiDP(2))
    assert found[0] < rdp_fswor_lower(2, 6, Q)
    assert found[1] == pytest.approx(rdp_wang(2, 6, Q), rel=1e-9)


def test_published_code_forms_overflow_where_ours_do_not() -> None:
    """Linear-space exponentials are infinite at sigma 0.5, order 20.3."""
    with np.errstate(over="ignore"):
        assert np.exp(np.float64(2 * 20.3 * 19.3 / 0.25)) == math.inf
    assert math.isfinite(rdp_fswor(20.3, 0.5, Q, adjacency="replace_one", method="taylor"))
    for sigma, alpha in ((20.0, 20.3), (50.0, 5.5)):
        assert math.isfinite(rdp_fswor(alpha, sigma, Q, adjacency="replace_one", method="taylor"))
