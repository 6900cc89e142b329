"""Sites of a network, the vector that is clipped and gets noise, and the refinement of its prior."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.learning.propagation.test_network_moments import M1, M2, V1, V2, X, Y
from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.ep_privacy import sensitivity, sep_noise_std
from thresholdout.privacy.learning.propagation.ep_runs import run_sep
from thresholdout.privacy.learning.propagation.ep_update import dp_sep_step
from thresholdout.privacy.learning.propagation.natural_parameters import ClipMode
from thresholdout.privacy.learning.propagation.network_moments import layer_shapes
from thresholdout.privacy.learning.propagation.pbp_sites import (
    NetworkModel,
    NetworkNatural,
    WeightPrior,
    gamma_update,
    refine_weight,
)

SHAPES = [(3, 3), (1, 4)]
MEANS, VARIANCES = np.concatenate([M1.ravel(), M2.ravel()]), np.concatenate([V1.ravel(), V2.ravel()])
CAVITY = NetworkNatural(MEANS / VARIANCES, 1 / VARIANCES, np.array([5.0, -6.0]))
MODEL = NetworkModel(CAVITY, SHAPES)
RECORD = (X, float(Y))


def test_worked_site() -> None:
    site = MODEL.site(RECORD, CAVITY)
    tilted = CAVITY + site
    means, variances = MODEL.moments(tilted)
    np.testing.assert_allclose(means[1][0], [0.7057899548, -0.4994637844, 0.4017137026, 0.2410401405], rtol=1e-8)
    np.testing.assert_allclose(variances[1][0], [0.1964410296, 0.2999266296, 0.1495035732, 0.3706178639], rtol=1e-8)
    assert tilted.noise[0] + 1 == pytest.approx(6.6262656526, rel=1e-8)
    assert -tilted.noise[1] == pytest.approx(6.1504899618, rel=1e-8)
    third = site.Lam[:9].reshape(3, 3)[2]
    assert third[0] == pytest.approx(-0.0014594942, rel=1e-6)
    assert (third < 0).all()  # legitimate: a badly fitted record lowers a precision
    weights = NetworkNatural(site.eta, site.Lam)
    assert weights.norm() == pytest.approx(0.2859514781, rel=1e-8)


def test_worked_gamma_update() -> None:
    logs = (-1.1018466805, -1.0273370322, -0.9664211633)
    assert gamma_update(logs, 6.0, 6.0) == pytest.approx((6.6262656526, 6.1504899618), rel=1e-7)


@for_each("logs", [(0.0, 0.0, 0.0), (800.0, 0.0, 0.0), (0.0, 5.0, -5.0), (math.nan, 0.0, 0.0)])
def test_a_gamma_density_that_does_not_exist(logs: tuple[float, float, float]) -> None:
    found = gamma_update(logs, 6.0, 6.0)
    if logs == (0.0, 0.0, 0.0):  # a record that says nothing of the noise leaves it as it was
        assert found == pytest.approx((6.0, 6.0), rel=1e-12)
    else:
        assert all(map(math.isnan, found))


def test_worked_refinement() -> None:
    precision, eta = 1 / 0.3 - 0.9, 0.4 / 0.3 - 0.1
    found = refine_weight(eta / precision, 1 / precision, 6 - 0.05, 6 + -0.02)
    assert found is not None
    assert found == pytest.approx((0.3781963626, 0.3066456994, 6.4916161797, 6.1713554277), rel=1e-9)


def test_refinement_matches_moments_by_quadrature() -> None:
    """Mean and variance are those of N(w; m, v) times a Gaussian of variance b/(a-1), which the method puts there."""
    m, v, a, b = 0.7, 0.4, 7.0, 5.0
    found = refine_weight(m, v, a, b)
    assert found is not None
    points = np.linspace(-8, 8, 160_001)
    density = np.exp(-0.5 * (points - m) ** 2 / v - 0.5 * points**2 / (b / (a - 1)))
    density /= density.sum()
    mean = float(points @ density)
    assert found.mean == pytest.approx(mean, rel=1e-9)
    assert found.variance == pytest.approx(float((points - mean) ** 2 @ density), rel=1e-9)


@for_each("cavity", [(0.0, -1.0, 6.0, 6.0), (0.0, 1e6, 6.0, 6.0), (0.0, 1.0, 1.0, 6.0), (0.0, 1.0, 6.0, 0.0)])
def test_no_refinement_without_a_proper_cavity(cavity: tuple[float, float, float, float]) -> None:
    assert refine_weight(*cavity) is None


def test_a_refined_prior_learns_the_size_of_weights_and_stays_proper() -> None:
    rng = np.random.default_rng(0)
    prior = WeightPrior(200)
    truth = 0.3 * rng.standard_normal(200)
    data = np.full(200, 1e6)
    for _ in range(5):
        prior.refine(prior.eta + truth * data, prior.Lam + data)
    exact = (6 + 100) / (6 + 0.5 * float(truth @ truth))  # weights are all but known, so the Gamma prior is conjugate
    assert prior.shape / prior.rate == pytest.approx(exact, rel=0.1)
    assert (prior.Lam > 0).all()


def test_a_linear_network_has_the_marginals_of_linear_regression() -> None:
    """Without hidden units the tilted marginals are exact; the reference inverts the full precision."""
    rng = np.random.default_rng(1)
    x, y, noise = rng.normal(size=4), 1.7, 0.6
    prior = NetworkNatural(rng.normal(size=5), rng.uniform(0.5, 2, 5))
    model = NetworkModel(prior, layer_shapes(4, ()), noise)
    tilted = prior + model.site((x, y), prior)
    row = np.append(x, 1.0) / np.sqrt(5)
    covariance = np.linalg.inv(np.diag(prior.Lam) + np.outer(row, row) / noise)
    np.testing.assert_allclose(1 / tilted.Lam, np.diag(covariance), rtol=1e-10)
    np.testing.assert_allclose(tilted.eta / tilted.Lam, covariance @ (prior.eta + row * y / noise), rtol=1e-10)


def broken_record() -> tuple[NetworkNatural, NetworkModel, tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]]:
    """Return a record that some weights, not all, have no tilted variance for."""
    shapes = layer_shapes(2, (3,))
    cavity = NetworkNatural(108 * np.random.default_rng(0).normal(size=13), np.full(13, 8.3))
    return cavity, NetworkModel(cavity, shapes, 0.01), (np.array([3.0, -2.0]), 40.0)


def test_weights_without_a_tilted_variance_take_the_shared_site() -> None:
    cavity, model, record = broken_record()
    site = model.site(record, cavity)
    bad = np.isnan(site.eta)
    assert 0 < bad.sum() < bad.size
    np.testing.assert_array_equal(bad, np.isnan(site.Lam))
    shared = NetworkNatural(np.full(13, 0.01), np.full(13, 0.02))
    noise = NetworkNatural(np.full(13, 0.1), np.full(13, 0.3))
    _, trace = dp_sep_step(shared, cavity, lambda _: site, N=10, gamma=2.0, C=100.0, noise=noise)
    assert trace.failed
    np.testing.assert_array_equal(trace.site.eta[bad], shared.eta[bad])
    np.testing.assert_array_equal(trace.site.Lam[bad], shared.Lam[bad])
    np.testing.assert_array_equal(trace.site.eta[~bad], site.eta[~bad])
    expected = cavity + shared.scale(10 - 0.2) + trace.clipped.scale(0.2) + noise
    np.testing.assert_allclose(trace.noisy.values, expected.values, rtol=1e-12)  # noise on every entry, failed or not


def test_repair_takes_pairs() -> None:
    nan = math.nan
    site = NetworkNatural(np.array([nan, 1.0, 2.0]), np.array([1.0, nan, 3.0]), np.array([1.0, nan]))
    default = NetworkNatural(np.full(3, -1.0), np.full(3, -2.0), np.array([-3.0, -4.0]))
    found = site.repair(default)
    np.testing.assert_array_equal(found.values, [-1, -1, 2, -2, -2, 3, -3, -4])


def test_projection_makes_everything_proper() -> None:
    theta = NetworkNatural(np.ones(3), np.array([1.0, 0.0, -2.0]), np.array([-7.0, 3.0]))
    assert not theta.is_pd()
    found = theta.project(1e-3)
    np.testing.assert_array_equal(found.values, [1, 1, 1, 1, 1e-3, 1e-3, 1e-3, -1e-3])
    assert found.is_pd()
    assert found.project(1e-3) is found
    assert found.noise_variances()[0] == pytest.approx(1.0)


def test_blocks_cover_the_whole_vector_once() -> None:
    for theta in (CAVITY, NetworkNatural(MEANS, VARIANCES)):
        for mode in ("joint", "separate"):
            covered = np.concatenate([np.arange(theta.values.size)[block] for block in theta.blocks(mode)])
            np.testing.assert_array_equal(covered, np.arange(theta.values.size))
    assert len(CAVITY.blocks("separate")) == 2


@settings(derandomize=True, max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 5.0, 50.0]), st.sampled_from([1.0, 3.0, 10.0]))
def test_no_cavity_fails_with_noise_of_any_size(seed: int, size: float, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    prior = NetworkNatural(np.zeros(13), np.full(13, 5 / 6), np.array([5.0, -6.0]))
    model, shared = NetworkModel(prior, SHAPES), prior.scale(0.0)
    for _ in range(12):
        site = partial(model.site, (rng.normal(size=2), float(rng.normal())))
        noise = prior.with_values(size * rng.standard_normal(prior.values.size))
        shared, trace = dp_sep_step(shared, prior, site, N=10, gamma=gamma, C=1.0, noise=noise)
        assert trace.cavity.is_pd()
        assert trace.posterior.is_pd()
        assert trace.clipped.norm() <= 1.0
        assert shared.norm() <= 1.0
        assert np.isfinite(shared.values).all()


@settings(derandomize=True, max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 10.0), st.sampled_from(["joint", "separate"]))
def test_no_two_records_move_an_update_further_apart_than_its_sensitivity(seed: int, C: float, mode: ClipMode) -> None:
    """Also when one has no finite site, or some weights have no tilted variance; opposite large sites attain it."""
    rng = np.random.default_rng(seed)
    N, gamma = 10, 3.0
    prior = NetworkNatural(108 * rng.normal(size=13), np.full(13, 8.3))
    model = NetworkModel(prior, layer_shapes(2, (3,)), 0.01)
    shared = prior.with_values(rng.normal(size=26)).clip(C)
    wild = (3 * rng.normal(size=2), 40.0)
    records = [(rng.normal(size=2), float(rng.normal())), wild, (np.full(2, 1e200), 0.0), (np.zeros(2), 1e308)]
    parts = []
    for record in records:
        with np.errstate(all="ignore"):
            _, trace = dp_sep_step(shared, prior, partial(model.site, record), N=N, gamma=gamma, C=C, clip_mode=mode)
        parts.append(trace.clipped.scale(gamma / N))
    for one in parts:
        for other in parts:
            assert all(each <= sensitivity(N, C, gamma) for each in (one - other).norms(mode))
    big = prior.with_values(np.full(26, 1e9))
    ends = [big.scale(sign).clip(C).scale(gamma / N) for sign in (1.0, -1.0)]
    assert (ends[0] - ends[1]).norm() == pytest.approx(sensitivity(N, C, gamma), rel=1e-12)


class _Silent:
    """A model whose records say nothing."""

    def __init__(self, prior: NetworkNatural) -> None:
        self.prior = prior

    def site(self, record: object, cavity: NetworkNatural) -> NetworkNatural:
        return cavity.scale(0.0)


@pytest.mark.statistical
def test_erratum_3_every_parameter_gets_the_noise_that_is_accounted() -> None:
    """Chi-square of 4000 entries each, six standard errors (2e-9); noise of 0.7 times the size is rejected."""
    prior = NetworkNatural(np.zeros(4000), np.full(4000, 50.0), np.array([5.0, -6.0]))
    sigma, C, N = 0.004, 2.0, 1
    run = run_sep(_Silent(prior), [0], n_epochs=1, gamma=1.0, C=C, sigma=sigma, sampling="cyclic", random_state=3)
    std = sep_noise_std(sigma, N, C, 1.0)
    moved = run.theta - prior
    for part in (moved.eta, moved.Lam):
        share = float((part**2).mean()) / std**2
        assert abs(share - 1) < 6 * math.sqrt(2 / 4000)
        assert abs(share / 0.49 - 1) > 6 * math.sqrt(2 / 4000)
    assert (moved.noise != 0).all()


def test_a_record_beyond_all_numbers_is_no_reason_to_skip() -> None:
    prior = NetworkNatural(np.zeros(13), np.full(13, 5 / 6))
    model = NetworkModel(prior, SHAPES, 1.0)
    start = NetworkNatural(np.linspace(-0.1, 0.1, 13), np.full(13, 0.01))
    records = [(np.array([1e200, -1e250]), 1e308), (np.zeros(2), -1e308)]
    run = run_sep(model, records, n_epochs=3, gamma=1.0, C=1.0, sigma=1.0, random_state=1, theta_f=start)
    assert run.n_updates == 6
    assert run.n_skipped == 0
    assert run.n_failed_sites > 0
    assert np.isfinite(run.theta.values).all()


def test_bad_shapes() -> None:
    with pytest.raises(InputError, match="eta, Lam"):
        NetworkNatural(np.zeros(3), np.ones(2))
    with pytest.raises(InputError, match="shapes"):
        NetworkModel(CAVITY, [(3, 3)])
    with pytest.raises(InputError, match="noise_variance"):
        NetworkModel(CAVITY, SHAPES, 1.0)
    with pytest.raises(InputError, match="noise_variance"):
        NetworkModel(NetworkNatural(MEANS, VARIANCES), SHAPES)
