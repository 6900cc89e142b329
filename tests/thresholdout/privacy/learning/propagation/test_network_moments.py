"""Moments of networks with uncertain weights, against worked values, simulation, differences and high precision."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.network_moments import (
    _rectify,
    evidence_gradients,
    forward_moments,
    layer_shapes,
)

M1 = np.array([[0.5, -0.3, 0.1], [0.2, 0.8, -0.4], [-0.6, 0.1, 0.3]])
V1 = np.array([[0.3, 0.2, 0.5], [0.4, 0.1, 0.2], [0.25, 0.6, 0.3]])
M2, V2 = np.array([[0.7, -0.5, 0.4, 0.2]]), np.array([[0.2, 0.3, 0.15, 0.4]])
MEANS, VARIANCES = [M1, M2], [V1, V2]
X, Y = np.array([0.8, -1.1]), np.array(0.6)


def test_worked_moments_and_evidence() -> None:
    found = forward_moments(MEANS, VARIANCES, X)
    np.testing.assert_allclose(found.inputs[1][0], [0.5395946420, 0.0136200927, 0.1759626423, 1], rtol=1e-8)
    np.testing.assert_allclose(found.inputs[1][1], [0.2179670568, 0.0045052940, 0.0957351758, 0], rtol=1e-8)
    assert float(found.mean) == pytest.approx(0.3206456300, rel=1e-8)
    assert float(found.variance) == pytest.approx(0.1613714102, rel=1e-8)
    for noise, expected in ((6 / 5, -1.1018466805), (6 / 6, -1.0273370322), (6 / 7, -0.9664211633)):
        assert float(evidence_gradients(MEANS, VARIANCES, X, Y, noise).log_evidence) == pytest.approx(
            expected, rel=1e-8
        )


def test_worked_gradients() -> None:
    found = evidence_gradients(MEANS, VARIANCES, X, Y, 6 / 5)
    np.testing.assert_allclose(found.means[1][0], [0.0289497742, 0.0017873854, 0.0114246843, 0.1026003513], 1e-7, 1e-10)
    expected = [-0.0440680847, -0.0004060158, -0.0109664439, -0.0865557591]
    np.testing.assert_allclose(found.variances[1][0], expected, 1e-7, 1e-10)
    np.testing.assert_allclose(found.means[0][0], [0.0139405882, -0.0191683088, 0.0174257353], 1e-7, 1e-10)
    np.testing.assert_allclose(found.variances[0][0], [-0.0040516496, -0.0076601500, -0.0063307025], 1e-7, 1e-10)


@for_each("hidden", [(), (4,), (3, 5), (4, 2, 3)])
def test_gradients_are_those_of_differences(hidden: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(hidden))
    shapes = layer_shapes(3, hidden)
    means = [rng.normal(size=shape) for shape in shapes]
    variances = [rng.uniform(0.1, 1, size=shape) for shape in shapes]
    x, y = rng.normal(size=3), np.array(0.7)
    found = evidence_gradients(means, variances, x, y, 0.3)
    for stack, gradients in ((means, found.means), (variances, found.variances)):
        for layer, gradient in zip(stack, gradients, strict=True):
            for place in np.ndindex(*layer.shape):
                kept, step = layer[place], 1e-6
                layer[place] = kept + step
                above = float(evidence_gradients(means, variances, x, y, 0.3).log_evidence)
                layer[place] = kept - step
                below = float(evidence_gradients(means, variances, x, y, 0.3).log_evidence)
                layer[place] = kept
                assert gradient[place] == pytest.approx((above - below) / (2 * step), rel=2e-6, abs=2e-9)


def test_many_records_are_what_each_is_alone() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(7, 2)), rng.normal(size=7)
    together = evidence_gradients(MEANS, VARIANCES, x, y, 0.5)
    for n in range(7):
        alone = evidence_gradients(MEANS, VARIANCES, x[n], y[n], 0.5)
        assert float(together.log_evidence[n]) == pytest.approx(float(alone.log_evidence), rel=1e-13)
        for depth in range(2):
            np.testing.assert_allclose(together.means[depth][n], alone.means[depth], rtol=1e-11, atol=1e-14)
            np.testing.assert_allclose(together.variances[depth][n], alone.variances[depth], rtol=1e-11, atol=1e-14)


def exact_rectified(mean: float, variance: float) -> tuple[float, float]:
    """Return both moments with 80 digits, from the plain difference of moments."""
    with mpmath.workdps(80):
        m, v = mpmath.mpf(mean), mpmath.mpf(variance)
        sd = mpmath.sqrt(v)
        upper, density = mpmath.ncdf(m / sd), mpmath.npdf(m / sd)
        first = m * upper + sd * density
        return float(first), float((m * m + v) * upper + m * sd * density - first**2)


def moments_of_a_unit(mean: NDArray[np.float64], variance: NDArray[np.float64]) -> tuple[Any, Any]:
    found = _rectify(mean, variance)
    return found.mean, found.variance


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.floats(-36.0, 300.0), st.floats(1e-6, 1e6))
def test_rectified_moments_have_small_relative_errors(alpha: float, variance: float) -> None:
    mean = alpha * np.sqrt(variance)
    found = moments_of_a_unit(np.array([mean]), np.array([variance]))
    expected = exact_rectified(mean, variance)
    assert float(found[0][0]) == pytest.approx(expected[0], rel=1e-5)
    assert float(found[1][0]) == pytest.approx(expected[1], rel=2e-2 if alpha < -30 else 1e-6)


def test_variance_of_an_active_unit_does_not_cancel() -> None:
    """The plain difference of moments loses the variance: (1e18 + 1) - 1e18 is 0 in floating point."""
    mean, variance = np.array([1e9]), np.array([1.0])
    assert float((mean**2 + variance - mean**2)[0]) == 0.0
    assert float(moments_of_a_unit(mean, variance)[1][0]) == 1.0


def test_far_and_degenerate_units_stay_finite() -> None:
    mean, variance = np.array([-1e300, -31.0, -50.0, 3.0, 0.0, 1e200]), np.array([1e-300, 1.0, 1.0, 0.0, 0.0, 1.0])
    found = moments_of_a_unit(mean, variance)
    assert np.isfinite(found[0]).all()
    assert np.isfinite(found[1]).all()
    assert (found[0] >= 0).all()
    assert (found[1] >= 0).all()
    assert found[0][3] == pytest.approx(3.0)


@pytest.mark.statistical
def test_moments_of_one_layer_agree_with_simulation() -> None:
    """A linear layer's moments are exact; six standard errors of 2e5 draws, error rate 4e-9 for both."""
    rng = np.random.default_rng(11)
    u, q = np.array([0.8, -1.1]), np.array([0.4, 0.2])
    found = forward_moments([M1[:1]], [V1[:1]], u, q)
    draws = 200_000
    inputs = np.concatenate([u + np.sqrt(q) * rng.standard_normal((draws, 2)), np.ones((draws, 1))], axis=1)
    weights = M1[0] + np.sqrt(V1[0]) * rng.standard_normal((draws, 3))
    outputs = (inputs * weights).sum(axis=1) / np.sqrt(3)
    spread = outputs.std()
    assert abs(outputs.mean() - float(found.mean)) < 6 * spread / np.sqrt(draws)
    error = 6 * np.std((outputs - outputs.mean()) ** 2) / np.sqrt(draws)
    assert abs(spread**2 - float(found.variance)) < error
    assert abs(spread**2 - 1.3 * float(found.variance)) > error  # a variance 30 % off is rejected


def test_wrong_number_of_features() -> None:
    with pytest.raises(InputError, match="x must be"):
        forward_moments(MEANS, VARIANCES, np.zeros(3))
