"""Divergences of clipped and noisy posteriors: worked values, proofs tried by search, and the published errors."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import trapezoid

from benchmarks.papers.certified import (
    inverse_form_bounds,
    least_eigenvalue_bound,
    log_deficit_bound,
)
from benchmarks.papers.clipping_theory import (
    clipped_kl,
    dp_sep_kl_bound,
    kl_gaussian,
    kl_leading_order,
)
from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural

Floats = NDArray[np.float64]

WORKED = GaussianNatural([2.0, -1.0], [[6.0, 1.0], [1.0, 3.0]])
LEAST = 2.6972243623
BROKEN = GaussianNatural(np.array([3.0, 3.0]) / np.sqrt(2), [[5.5, -4.5], [-4.5, 5.5]])
WORDS = [(0.05, 0.3), (0.1, 0.6), (0.2, 1.0)]


def symmetric_noise(rng: np.random.Generator, draws: int, d: int, scale: float) -> Floats:
    upper = np.triu(rng.normal(0, scale, (draws, d, d)))
    return upper + np.triu(upper, 1).swapaxes(-1, -2)


def divergences(eta: Floats, Lam: Floats, eta_p: Floats, Lam_p: Floats) -> Floats:
    """Return KL(q||p) of many p at once, from the textbook formula with means and covariances."""
    S, mean = np.linalg.inv(Lam), np.linalg.solve(Lam, eta)
    shift = np.linalg.solve(Lam_p, eta_p[..., None])[..., 0] - mean
    trace = np.einsum("...ij,ji->...", Lam_p, S)
    logs = np.linalg.slogdet(Lam)[1] - np.linalg.slogdet(Lam_p)[1]
    found: Floats = 0.5 * (trace - eta.size + logs + np.einsum("...i,...ij,...j->...", shift, Lam_p, shift))
    return found


def test_divergence_of_gaussians_is_the_integral() -> None:
    q, p = GaussianNatural([1.0], [[2.0]]), GaussianNatural([-0.5], [[0.7]])
    points = np.linspace(-12, 12, 200_001)

    def log_density(g: GaussianNatural) -> Floats:
        found: Floats = -0.5 * (np.log(2 * np.pi * g.cov()[0, 0]) + (points - g.mean()[0]) ** 2 / g.cov()[0, 0])
        return found

    logs = log_density(q)
    expected = trapezoid(np.exp(logs) * (logs - log_density(p)), points)
    assert kl_gaussian(q, p) == pytest.approx(expected, rel=1e-9)


@for_each(("C", "expected"), [(1, 1.4737773763), (2, 1.3293337711), (5, 0.1099617079)])
def test_worked_divergence_of_clipping(C: float, expected: float) -> None:
    assert clipped_kl(WORKED, C) == pytest.approx(expected, rel=1e-8)
    assert kl_gaussian(WORKED, WORKED.clip(C, "separate")) == pytest.approx(expected, rel=1e-8)


@for_each(("C", "printed"), [(1, 6.258), (2, 3.234), (5, 0.436)])
def test_erratum_10_the_printed_divergence_of_clipping_is_wrong(C: float, printed: float) -> None:
    found = clipped_kl(WORKED, C, variant="paper")
    assert found == pytest.approx(printed, abs=6e-4)
    assert found > 2 * kl_gaussian(WORKED, WORKED.clip(C, "separate"))


@for_each(
    ("s", "M", "printed", "chance", "repaired", "repaired_chance"),
    [
        (0.05, 0.3, 0.1301241642, 0.9997531804, 0.0164373991, 0.9995063608),
        (0.1, 0.6, 0.3974329650, 0.9997531804, 0.0737417555, 0.9995063608),
        (0.2, 1.0, 1.3522099627, 0.9961390917, 0.2506516010, 0.9922781835),
    ],
)
def test_worked_bounds(
    s: float, M: float, printed: float, chance: float, repaired: float, repaired_chance: float
) -> None:
    paper, ours = dp_sep_kl_bound(WORKED, s, s, LEAST, M, variant="paper"), dp_sep_kl_bound(WORKED, s, s, 1e-4, M)
    assert paper.value == pytest.approx(printed, rel=1e-8)
    assert paper.probability == pytest.approx(chance, rel=1e-9)
    assert len(paper.terms) == 6
    assert ours.value == pytest.approx(repaired, rel=5e-9)
    assert ours.probability == pytest.approx(repaired_chance, rel=1e-9)


def test_printed_bound_is_undefined_for_a_small_floor() -> None:
    found = dp_sep_kl_bound(WORKED, 0.1, 0.1, 1e-4, 0.5, variant="paper")
    assert not found.valid
    assert np.isnan(found.value)
    assert found.h is not None
    assert found.h[0] == pytest.approx(-0.3707, abs=1e-4)


def test_printed_bound_vanishes_without_noise() -> None:
    rho = float(np.linalg.eigvalsh(WORKED.Lam)[0])
    assert dp_sep_kl_bound(WORKED, 0, 0, rho, 0, variant="paper").value == pytest.approx(0, abs=1e-12)


def test_worked_leading_order() -> None:
    for s, expected in ((0.02, 1.8056177e-4), (0.05, 1.12851109e-3), (0.1, 4.51404437e-3)):
        assert kl_leading_order(WORKED, s, s) == pytest.approx(expected, rel=5e-8)


@pytest.mark.statistical
def test_leading_order_is_the_mean_of_simulated_updates() -> None:
    """Six standard errors of the mean: 2e-9; a value 30 % off is rejected."""
    rng, s, draws = np.random.default_rng(3), 0.02, 60_000
    E = symmetric_noise(rng, draws, 2, s)
    e = rng.normal(0, s, (draws, 2))
    found = divergences(WORKED.eta, WORKED.Lam, WORKED.eta + e, WORKED.Lam + E)
    error, expected = 6 * found.std() / np.sqrt(draws), kl_leading_order(WORKED, s, s)
    assert abs(found.mean() - expected) < error + 0.01 * expected
    assert abs(found.mean() - 1.3 * expected) > error + 0.01 * expected


def test_erratum_11_the_divergence_falls_as_the_square_of_the_number_of_records() -> None:
    first, second = (kl_leading_order(WORKED, 2 * 1.5 / N, 2 * 1.5 / N) for N in (1000, 10_000))
    assert first / second == pytest.approx(100, rel=1e-9)  # the paper says 10
    bounds = [dp_sep_kl_bound(WORKED, 3 / N, 3 / N, 1e-4, 30 / N).value for N in (1000, 10_000)]
    assert bounds[0] / bounds[1] == pytest.approx(100, rel=0.02)


def shifted(eta: Floats, Lam: Floats, s: float, rho: float, draws: int, seed: int) -> Floats:
    """Return divergences of updates with the theorem's shift of the whole spectrum."""
    rng, d = np.random.default_rng(seed), eta.size
    noisy = Lam + symmetric_noise(rng, draws, d, s)
    noisy += (rho - np.linalg.eigvalsh(noisy)[:, 0])[:, None, None] * np.eye(d)
    return divergences(eta, Lam, eta + rng.normal(0, s, (draws, d)), noisy)


@pytest.mark.statistical
def test_erratum_7_theorem_4_1_is_false() -> None:
    """A negative bound on a divergence of 0.2367; the simulated mean is a hundred standard errors above it."""
    found = dp_sep_kl_bound(BROKEN, 0.01, 0.01, 0.8, 0.06, variant="paper")
    assert not found.valid  # no divergence is negative
    assert found.value == pytest.approx(-0.0442, abs=5e-5)
    assert found.probability == pytest.approx(0.99975, abs=5e-6)
    truth = shifted(BROKEN.eta, BROKEN.Lam, 0.01, 0.8, 4000, 1)
    error = 6 * truth.std() / np.sqrt(truth.size)
    assert abs(truth.mean() - 0.2367) < error + 5e-5
    assert truth.min() > 0 > found.value
    ours = dp_sep_kl_bound(BROKEN, 0.01, 0.01, 0.8, 0.06)
    assert ours.valid
    assert ours.value == pytest.approx(0.019, abs=5e-4)  # as the page of the papers says
    assert ours.value > kl_leading_order(BROKEN, 0.01, 0.01)


def test_erratum_8_the_shift_of_the_theorem_is_not_what_the_algorithm_does() -> None:
    shift = shifted(WORKED.eta, WORKED.Lam, 0.1, 1e-4, 2000, 2).mean()
    rng = np.random.default_rng(2)
    E, e = symmetric_noise(rng, 2000, 2, 0.1), rng.normal(0, 0.1, (2000, 2))
    assert (np.linalg.eigvalsh(WORKED.Lam + E) > 0).all()  # so line 10 changes nothing
    algorithm = divergences(WORKED.eta, WORKED.Lam, WORKED.eta + e, WORKED.Lam + E).mean()
    assert shift == pytest.approx(11775, rel=0.05)
    assert algorithm == pytest.approx(0.0046, abs=5e-4)


@pytest.mark.slow
@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 10**6), st.floats(0.01, 0.97), st.floats(0.0, 0.5))
def test_no_noise_within_the_limit_breaks_the_repaired_bound(d: int, seed: int, share: float, s1: float) -> None:
    """The mean over eta's noise is exact here, so the bound must hold for each noise of norm M; some reach it."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    Lam = root @ root.T + 0.05 * np.eye(d)
    eta = rng.normal(0, 3, d)
    q = GaussianNatural(eta, Lam)
    M = share * float(np.linalg.eigvalsh(q.Lam)[0])
    bound = dp_sep_kl_bound(q, s1, 0.1, 1e-4, M)
    assert bound.valid
    vectors = np.linalg.eigh(q.Lam)[1]
    worst = [-M * np.eye(d), M * np.eye(d), -M * np.outer(vectors[:, 0], vectors[:, 0])]
    for _ in range(20):
        noise = symmetric_noise(rng, 1, d, 1.0)[0]
        worst.append(noise * (M / np.abs(np.linalg.eigvalsh(noise)).max()))
    for E in worst:
        noisy = q.Lam + E * (1 - 1e-13)
        own = divergences(eta, q.Lam, eta, noisy) + 0.5 * s1**2 * np.trace(np.linalg.inv(noisy))
        assert own <= bound.value * (1 + 1e-9) + 1e-13


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.integers(1, 3), st.floats(0.001, 1000), st.floats(0, 0.999), st.floats(0, 3), st.floats(-5, 5))
def test_the_bound_is_attained_and_rounded_up(d: int, scale: float, share: float, s1: float, mean: float) -> None:
    """For a multiple of the identity and E = -M, it is an equality, computed here with 60 digits."""
    M = share * scale
    bound = dp_sep_kl_bound(GaussianNatural(np.full(d, mean), scale * np.eye(d)), s1, 1.0, 1e-4, M)
    with mpmath.workdps(60):
        r, c = mpmath.mpf(M) / mpmath.mpf(scale), mpmath.mpf(scale)
        quadratic = (mpmath.mpf(s1) ** 2 * d / c + r**2 * d * mpmath.mpf(mean) ** 2 / c) / (1 - r)
        exact = (d * (-r - mpmath.log1p(-r)) + quadratic) / 2
        assert mpmath.mpf(bound.value) >= exact
        assert mpmath.mpf(bound.value) <= exact * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -25


@pytest.mark.statistical
@pytest.mark.parametrize(("s", "M"), WORDS)
def test_the_probability_of_the_repaired_bound(s: float, M: float) -> None:
    """Noise above M is rarer than promised in 2e4 draws; its sampling error is left out, as the promise is loose."""
    E = symmetric_noise(np.random.default_rng(9), 20_000, 2, s)
    outside = (np.abs(np.linalg.eigvalsh(E)).max(axis=1) > M).mean()
    assert outside <= 1 - dp_sep_kl_bound(WORKED, s, s, 1e-4, M).probability
    assert (np.abs(np.linalg.eigvalsh(2 * E)).max(axis=1) > M).mean() > 1 - dp_sep_kl_bound(
        WORKED, s, s, 1e-4, M
    ).probability


@pytest.mark.slow
def test_no_divergence_is_negative_by_rounding() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        d = int(rng.integers(1, 5))
        root = rng.normal(size=(d, d))
        Lam = (root @ root.T + 0.01 * np.eye(d)) * 10 ** rng.uniform(-3, 3)
        q = GaussianNatural(rng.normal(size=d) * 10 ** rng.uniform(-3, 3), Lam)
        near = GaussianNatural(q.eta * (1 + 1e-12), q.Lam * (1 + 1e-12))
        diagonal = GaussianNatural(q.eta, np.diagonal(Lam).copy())
        assert kl_gaussian(q, q) >= 0
        assert kl_gaussian(q, near) >= 0
        assert kl_gaussian(diagonal, diagonal) >= 0
        size = float(np.linalg.norm(q.Lam))
        for C in (size, size * (1 - 1e-12), size * (1 - 1e-9), size / 2):
            assert clipped_kl(q, C) >= 0


@for_each("variant", ["repaired", "paper"])
def test_a_bound_that_is_called_valid_can_be_one(variant: Any) -> None:
    """No divergence is negative."""
    rng, valid, refused = np.random.default_rng(0), 0, 0
    for _ in range(400):
        d = int(rng.integers(1, 4))
        root = rng.normal(size=(d, d))
        q = GaussianNatural(rng.normal(0, 3, d), root @ root.T + 0.05 * np.eye(d))
        least = float(np.linalg.eigvalsh(q.Lam)[0])
        s = float(10 ** rng.uniform(-3, 0))
        found = dp_sep_kl_bound(q, s, s, least * rng.uniform(0.5, 1.5), least * rng.uniform(0, 1.2), variant=variant)
        if found.valid:
            valid += 1
            assert 0 <= found.value < np.inf
        else:
            refused += 1
            assert np.isnan(found.value) or found.value < 0
    assert valid > 20
    assert refused > 20


@for_each("M", [2.6972243624, 5.0])
def test_no_bound_where_an_eigenvalue_could_be_lost(M: float) -> None:
    found = dp_sep_kl_bound(WORKED, 0.1, 0.1, 1e-4, M)
    assert not found.valid
    assert np.isnan(found.value)


def test_without_noise_nothing_moves() -> None:
    assert dp_sep_kl_bound(WORKED, 0, 0, 1e-4, 0).value == 0
    assert dp_sep_kl_bound(WORKED, 0, 0, 1e-4, 0).probability == 1


def exact_inverse(matrix: Floats) -> mpmath.matrix:
    return mpmath.matrix(matrix.tolist()) ** -1


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6), st.floats(-6, 0))
def test_certified_numbers_are_on_the_safe_side(d: int, seed: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    matrix = (basis * np.geomspace(10.0**exponent, 1, d)) @ basis.T
    matrix = (matrix + matrix.T) / 2
    vector = rng.normal(size=d)
    least = least_eigenvalue_bound(matrix)
    trace, form = inverse_form_bounds(vector, matrix, least)
    with mpmath.workdps(50):
        inverse, column = exact_inverse(matrix), mpmath.matrix(vector.tolist())
        truth = min(mpmath.eigsy(mpmath.matrix(matrix.tolist()), eigvals_only=True))
        exact_trace = sum(inverse[i, i] for i in range(d))
        exact_form = (column.T * inverse * column)[0]
        assert 0 < least <= truth
        assert least >= truth * (1 - 1e-6)
        assert exact_trace <= trace <= exact_trace * (1 + mpmath.mpf(10) ** -4)
        assert exact_form <= form <= exact_form * (1 + mpmath.mpf(10) ** -4)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.one_of(st.floats(0, 1, exclude_max=True), st.floats(0, 1e-6)))
@example(1e-162)
@example(1e-60)
@example(0.5)
@example(1 - 2.0**-53)
def test_log_deficit_is_rounded_up(r: float) -> None:
    with mpmath.workdps(700):
        exact = -mpmath.mpf(r) - mpmath.log1p(-mpmath.mpf(r))
        found = mpmath.mpf(log_deficit_bound(r))
        assert found >= exact
        assert found <= exact * (1 + mpmath.mpf(10) ** -13) + mpmath.mpf(10) ** -299


def test_singular_and_indefinite_matrices_have_no_certified_eigenvalue() -> None:
    assert least_eigenvalue_bound(np.ones((2, 2))) == 0
    assert least_eigenvalue_bound(np.diag([1.0, -1.0])) == 0


def test_bad_input() -> None:
    diagonal = GaussianNatural([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(InputError, match="q must be"):
        clipped_kl(diagonal, 1.0)
    with pytest.raises(InputError, match="q must be"):
        dp_sep_kl_bound(GaussianNatural([1.0], [[-1.0]]), 0.1, 0.1, 0.1, 0.1)
    with pytest.raises(InputError, match="p must be"):
        kl_gaussian(WORKED, diagonal)
    with pytest.raises(InputError, match="variant"):
        dp_sep_kl_bound(WORKED, 0.1, 0.1, 0.1, 0.1, variant="proved")  # type: ignore[arg-type]
    for s1, s2, rho, M in ((-1.0, 0.1, 0.1, 0.1), (0.1, np.nan, 0.1, 0.1), (0.1, 0.1, 0.1, -0.1), (0.1, 0.1, 0.0, 0.1)):
        with pytest.raises(InputError):
            dp_sep_kl_bound(WORKED, s1, s2, rho, M)
    with pytest.raises(InputError, match="C must be"):
        clipped_kl(WORKED, 0.0)
