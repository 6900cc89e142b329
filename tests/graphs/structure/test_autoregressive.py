"""Autoregressive series against high precision: correlations, peaks of the spectrum, near the unit root too."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from graphs.structure.correlation.autoregressive import AutoregressiveCorrelation, ResponseOfSeries
from tests.cases import for_each
from tests.sizes import corners

SERIES = [[0.9], [-0.7], [0.9999], [1.2, -0.5], [1.99, -0.9999], [-1.7, -0.95], [0.3, 0.2, -0.4, 0.1], [0.0, 0.0, 0.95]]


def exact_correlations(phi: list[float], count: int) -> list[mpmath.mpf]:
    """Correlations by the Yule-Walker equations in 60 digits."""
    with mpmath.workdps(60):
        order = len(phi)
        exact = [mpmath.mpf(x) for x in phi]
        matrix, right = mpmath.eye(order), mpmath.zeros(order, 1)
        for k in range(1, order + 1):  # r_k = sum phi_j r_|k-j|
            for j in range(1, order + 1):
                if abs(k - j):
                    matrix[k - 1, abs(k - j) - 1] -= exact[j - 1]
                else:
                    right[k - 1] += exact[j - 1]
        found = [mpmath.mpf(1), *mpmath.lu_solve(matrix, right)]
        while len(found) < count:
            found.append(sum(c * found[-j] for j, c in enumerate(exact, 1)))
        return found[:count]


@pytest.mark.slow
@pytest.mark.parametrize("phi", corners(SERIES, 0, 1, 2, 3, 5, 6, 7), ids=str)
def test_sums_of_absolute_correlations(phi: list[float]) -> None:
    count = 400
    exact = exact_correlations(phi, count)
    sums = ResponseOfSeries(np.array(phi)).absolute_sums(count)
    total = mpmath.mpf(0)
    for k in range(count):
        total += abs(exact[k])
        assert total <= sums[k] <= total * (1 + 1e-6)


@pytest.mark.slow
@for_each("phi", SERIES, ids=str)
def test_peaks_of_the_spectrum(phi: list[float]) -> None:
    response = ResponseOfSeries(np.array(phi))
    roots = np.roots(np.r_[1.0, -np.array(phi)])
    angles = np.concatenate([np.linspace(0, math.pi, 2001), np.abs(np.angle(roots))])
    near = np.concatenate([angle + np.linspace(-1e-3, 1e-3, 2001) for angle in np.abs(np.angle(roots))])
    values = np.polyval(np.r_[1.0, -np.array(phi)][::-1], np.exp(1j * np.concatenate([angles, near])))
    least = float((np.abs(values) ** 2).min())
    found = response.smallest_square_on_circle()
    assert found <= least * (1 + 1e-9)
    assert found >= least * (1 - 1e-2)
    exact = exact_correlations(phi, len(phi) + 1)
    with mpmath.workdps(60):  # variance in units of the shocks': 1/(1 - sum phi_k r_k)
        variance = 1 / (1 - sum(mpmath.mpf(c) * r for c, r in zip(phi, exact[1:], strict=True)))
    assert response.least_norm**2 <= variance <= response.most_norm**2
    assert response.spectral_peak() >= 1 / least / float(variance) * (1 - 1e-9)
    assert response.spectral_peak() <= 1 / least / float(variance) * (1 + 2e-2)


@pytest.mark.slow
@for_each("phi", [[0.9], [-0.7], [1.2, -0.5], [-1.7, -0.95]], ids=str)
def test_eigenvalues_are_below_the_peak(phi: list[float]) -> None:
    for n in (5, 60, 700):
        model = AutoregressiveCorrelation(np.array(phi), n)
        largest = np.linalg.eigvalsh(model.dense())[-1]
        assert largest <= model.radius() <= model.response.spectral_peak()
        assert np.linalg.eigvalsh(np.diag(model.dominating()) - model.dense())[0] >= -1e-12 * n
