"""Runs, models and sites, against quadrature, closed forms and a second implementation."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tests.cases import for_each
from tests.terminal import bars_at_once
from tests.thresholdout.privacy.learning.propagation.conjugate_models import (
    BernoulliModel,
    PoissonModel,
    UnknownPrecisionModel,
)
from tests.thresholdout.privacy.learning.propagation.examples import (
    LABELLED,
    LOCATION,
    LOCATION_RECORDS,
    MIXTURE,
    MIXTURE_RECORDS,
    REGRESSION,
    REGRESSION_RECORDS,
    labelled_model,
)
from tests.thresholdout.privacy.learning.propagation.natural_arrays import NaturalArrays
from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.ep_runs import (
    information_fraction,
    resolve_gamma,
    run_adf,
    run_ep,
    run_sep,
)
from thresholdout.privacy.learning.propagation.gaussian_models import (
    LinearPredictor,
    MixtureOfGaussians,
    logistic_moments,
    logistic_probability,
    probit_moments,
    probit_probability,
)
from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural


def precise_probit(y: float, mu: float, s: float) -> tuple[float, float]:
    """tau and nu with 60 digits, from the tilted moments and subtracted inverses."""
    with mpmath.workdps(60):
        m, v = mpmath.mpf(mu), mpmath.mpf(s)
        z = y * m / mpmath.sqrt(1 + v)
        r = mpmath.npdf(z) / (mpmath.erfc(-z / mpmath.sqrt(2)) / 2)
        mean = m + y * v * r / mpmath.sqrt(1 + v)
        variance = v - v**2 * r * (z + r) / (1 + v)
        return float(1 / variance - 1 / v), float(mean / variance - m / v)


@for_each("mu", [-3e5, -400.0, -20.0, -1.0, 0.0, 2.0, 8.0])
@for_each("s", [1e-6, 1.0, 1e4])
def test_probit_sites_in_the_tails(mu: float, s: float) -> None:
    tau, nu = precise_probit(1.0, mu, s)
    found = probit_moments(1.0, mu, s)
    np.testing.assert_allclose(found[:2], [tau, nu], rtol=1e-8, atol=1e-12 * (1 + abs(mu)))
    mirrored = probit_moments(-1.0, -mu, s)
    np.testing.assert_allclose(mirrored[:2], [tau, -nu], rtol=1e-8, atol=1e-12 * (1 + abs(mu)))
    assert found[0] >= 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mu", "s"),
    [
        (0.0, 1e-4),
        (0.4, 2.5),
        (-3.0, 1.0),
        (-300.0, 100.0),
        *(
            pytest.param(*wide, marks=pytest.mark.slow)
            for wide in ((-30.0, 100.0), (-9e4, 1e5), (5.0, 400.0), (-2.0, 1e4), (900.0, 5e4))
        ),
    ],
)
def test_logistic_moments_by_adaptive_quadrature(mu: float, s: float) -> None:
    found = logistic_moments(1.0, mu, s)
    with mpmath.workdps(30):
        sd = mpmath.sqrt(s)

        def density(a: Any) -> Any:
            return mpmath.npdf(a, mu, sd) / (1 + mpmath.exp(-a))

        # panels that grow with the distance from the mode, which is found by halving
        low, high = mpmath.mpf(mu), mpmath.mpf(mu + s)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if (mu - middle) / s + 1 / (1 + mpmath.exp(middle)) > 0 else (low, middle)
        reach = [d for d in (1, 2, 4, 8, 16, 32, *range(64, 4000, 64)) if d < 13 * sd] + [13 * sd]
        panels = [low - d for d in reversed(reach)] + [low] + [low + d for d in reach]
        Z, first, second = (
            mpmath.quad(lambda a, k=k: (a - low) ** k * density(a) / density(low), panels, maxdegree=8)
            for k in (0, 1, 2)
        )
        mean = first / Z
        expected = [float(mean + low), float(second / Z - mean**2), float(mpmath.log(Z * density(low)))]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    assert 0 < found[1] < s


def test_probabilities_of_both_labels_add_up() -> None:
    mu, s = np.array([-36.0, -2.0, 0.0, 0.3, 30.0]), np.array([0.0, 2.0, 1.0, 50.0, 3.0])
    for of_label in (probit_probability, logistic_probability):
        np.testing.assert_allclose(of_label(mu, s) + of_label(-mu, s), 1.0, rtol=1e-12)
        assert 0 < of_label(mu, s)[0] < 1e-15


def test_mixture_moments_by_quadrature() -> None:
    grid = np.arange(-8.0, 10.0, 0.02)
    one, two = np.meshgrid(grid, grid, indexing="ij")
    prior = np.exp(-((one + 1) ** 2) / 2) * np.exp(-((two - 2) ** 2))
    likelihood = 0.3 * np.exp(-2 * (0.7 - one) ** 2) + 0.7 * np.exp(-2 * (0.7 - two) ** 2)
    weights = prior * likelihood / (prior * likelihood).sum()
    model = MixtureOfGaussians(GaussianNatural([[-1.0], [4.0]], [[[1.0]], [[2.0]]]), [0.3, 0.7], 0.25)
    tilted = model.prior + model.site(np.array([0.7]), model.prior)
    means = [(weights * each).sum() for each in (one, two)]
    np.testing.assert_allclose(tilted.mean().ravel(), means, rtol=1e-7)
    variances = [(weights * (each - mean) ** 2).sum() for each, mean in zip((one, two), means, strict=True)]
    np.testing.assert_allclose(tilted.cov().ravel(), variances, rtol=1e-7)


@pytest.mark.slow
def test_probit_is_close_to_the_exact_posterior() -> None:
    """The exact moments, by quadrature on a grid: those of the specification."""
    grid = np.arange(-12.0, 12.0, 0.03)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    log = -(a**2 + b**2) / 8
    for x, y in LABELLED:
        log += np.log(np.maximum(probit_probability(y * (x[0] * a + x[1] * b), np.zeros_like(a)), 1e-300))
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = np.array([(weights * each).sum() for each in (a, b)])
    np.testing.assert_allclose(mean, [-0.73612, 2.44001], atol=6e-6)
    cov = [(weights * p * q).sum() - m for p, q, m in ((a, a, mean[0] ** 2), (a, b, mean[0] * mean[1]))]
    np.testing.assert_allclose(cov, [0.67539, -0.41094], atol=6e-6)
    found = run_ep(labelled_model("probit"), LABELLED).theta
    np.testing.assert_allclose(found.mean(), mean, atol=0.02)


def test_full_steps_are_those_of_li_and_others() -> None:
    """Their update, written as they do: the whole site into the posterior, one part in N into the shared one."""
    model, N = labelled_model("probit"), len(LABELLED)
    shared = model.prior.scale(0.0)
    for _ in range(4):
        for record in LABELLED:
            cavity = model.prior + shared.scale(N - 1)
            site = model.site(record, cavity)
            shared = shared.scale(1 - 1 / N) + site.scale(1 / N)
    run = run_sep(model, LABELLED, n_epochs=4, gamma="sep", sampling="cyclic")
    np.testing.assert_allclose(run.theta.values, (model.prior + shared.scale(N)).values, rtol=1e-10)


def test_the_printed_step_absorbs_little() -> None:
    """Erratum 1: with gamma = 1 a pass absorbs one part in N, so the variance stays far too large."""
    assert information_fraction(1, 1000, 100) == pytest.approx(0.0952, abs=5e-5)
    run = run_sep(LOCATION, LOCATION_RECORDS * 40, n_epochs=2, gamma="paper", sampling="cyclic")
    exact = run_ep(LOCATION, LOCATION_RECORDS * 40).theta
    share = (run.theta.Lam - 0.25) / (exact.Lam - 0.25)
    np.testing.assert_allclose(share, 1 - (1 - 1 / 200**2) ** 400, rtol=1e-9)
    assert share < 0.011


@pytest.mark.slow
@for_each("model", [labelled_model("logit"), labelled_model("probit")])
def test_precisions_stay_exactly_symmetric(model: LinearPredictor) -> None:
    run = run_sep(model, LABELLED, n_epochs=60, gamma="sep", C=5.0, sigma=0.1, random_state=0)
    assert (run.theta.Lam == run.theta.Lam.T).all()
    mixture = run_sep(MIXTURE, MIXTURE_RECORDS, n_epochs=40, gamma="sep").theta
    assert (mixture.Lam == mixture.Lam.swapaxes(-1, -2)).all()


class Recording:
    """Notes which records it is asked for."""

    prior = GaussianNatural([0.0], [[1.0]])

    def __init__(self) -> None:
        self.seen: list[int] = []

    def site(self, record: int, cavity: GaussianNatural) -> GaussianNatural:
        self.seen.append(record)
        return GaussianNatural([0.0], [[1.0]])


def seen(sampling: str) -> np.ndarray:
    model = Recording()
    run_sep(model, range(50), n_epochs=4, gamma=1, sampling=sampling, random_state=1)
    return np.reshape(model.seen, (4, 50))


def test_orders_of_records() -> None:
    assert (seen("cyclic") == np.arange(50)).all()
    shuffled = seen("shuffle")
    assert (np.sort(shuffled, axis=1) == np.arange(50)).all()
    assert (shuffled[0] != shuffled[1]).any()
    drawn = seen("uniform")
    assert len(np.unique(drawn[0])) < 45
    assert (seen("uniform") == drawn).all()


def test_noise_and_order_come_from_different_streams() -> None:
    """The order of a run is the same with and without noise."""
    quiet, noisy = Recording(), Recording()
    run_sep(quiet, range(9), n_epochs=2, gamma=1, C=1.0, random_state=5)
    run_sep(noisy, range(9), n_epochs=2, gamma=1, C=1.0, sigma=1.0, random_state=5)
    assert quiet.seen == noisy.seen


def test_the_state_of_the_authors_script() -> None:
    """Keeps the posterior unclipped and clips the shared site for the cavity; sites here do not depend on it."""
    unclipped = run_sep(LOCATION, LOCATION_RECORDS, n_epochs=2, gamma=5, C=100.0, sampling="cyclic", state="posterior")
    plain = run_sep(LOCATION, LOCATION_RECORDS, n_epochs=2, gamma=5, sampling="cyclic")
    np.testing.assert_allclose(unclipped.theta.values, plain.theta.values)
    start = GaussianNatural([30.0], [[40.0]])
    kept = run_sep(
        LOCATION, LOCATION_RECORDS, n_epochs=1, gamma=1, C=0.6, sampling="cyclic", state="posterior", theta_f=start
    )
    clipped = run_sep(LOCATION, LOCATION_RECORDS, n_epochs=1, gamma=1, C=0.6, sampling="cyclic", theta_f=start)
    assert kept.theta_f.norm() > 30
    assert clipped.theta_f.norm() <= 0.6


def test_exponential_families_are_exact() -> None:
    counts = [3, 0, 5]
    poisson = run_ep(PoissonModel(2.0, 1.0), counts).theta
    assert [float(poisson["shape"]), float(poisson["rate"])] == pytest.approx([9.0, -4.0])
    coin = run_ep(BernoulliModel(1.0, 1.0), [1, 0, 1, 1]).theta
    assert [float(coin["ones"]), float(coin["zeros"])] == pytest.approx([3.0, 1.0])
    precision = run_ep(UnknownPrecisionModel(0.0, 3.0, 2.0), [1.0, 2.0]).theta
    assert [float(precision["shape"]), float(precision["rate"])] == pytest.approx([3.0, -4.5])


def test_an_exponential_family_with_noise_stays_valid() -> None:
    run = run_sep(PoissonModel(2.0, 1.0), [3, 0, 5] * 5, n_epochs=5, gamma=3, C=2.0, sigma=2.0, random_state=0)
    assert isinstance(run.theta, NaturalArrays)
    assert run.n_projections > 0
    assert run.theta_f.norm() <= 2.0
    coin = run_sep(BernoulliModel(1.0, 1.0), [1, 0] * 5, n_epochs=3, gamma=3, C=2.0, sigma=2.0, random_state=0)
    assert coin.n_updates == 30


def test_filtering() -> None:
    found = run_adf(REGRESSION, REGRESSION_RECORDS).theta
    np.testing.assert_allclose(found.values, run_ep(REGRESSION, REGRESSION_RECORDS).theta.values)


class Stubborn:
    """Its sites make every posterior improper."""

    prior = GaussianNatural([0.0], [[1.0]])

    def site(self, record: Any, cavity: GaussianNatural) -> GaussianNatural:
        return GaussianNatural([0.0], [[-1e6]])


def test_runs_without_noise_skip_and_say_so() -> None:
    for run in (run_ep, run_adf):
        with pytest.warns(ConvergenceWarning, match="4 of 4"):
            found = run(Stubborn(), [0] * 4)
        assert (found.theta.values == [0.0, 1.0]).all()
        assert found.n_skipped >= 4
        assert not found.converged
    with pytest.warns(ConvergenceWarning, match="4 of 4"):
        sep = run_sep(Stubborn(), [0] * 4, n_epochs=1)
    assert sep.n_skipped == 4
    assert (sep.theta.values == [0.0, 1.0]).all()


def test_damping_reaches_the_same_fixed_point() -> None:
    plain = run_ep(labelled_model("probit"), LABELLED)
    damped = run_ep(labelled_model("probit"), LABELLED, damping=0.5, max_iter=200)
    assert damped.converged
    assert damped.n_passes > plain.n_passes
    np.testing.assert_allclose(damped.theta.values, plain.theta.values, rtol=1e-6)


def test_progress_and_callbacks() -> None:
    passes: list[int] = []
    with bars_at_once() as terminal:
        run_sep(LOCATION, LOCATION_RECORDS, n_epochs=3, callback=lambda k, theta: passes.append(k), progress=True)
    run_ep(LOCATION, LOCATION_RECORDS, callback=lambda k, theta: passes.append(k))
    assert passes == [1, 2, 3, 1, 2]
    assert "expectation propagation:   0%|          | 0/3" in terminal.getvalue()


def test_step_parameters() -> None:
    assert [resolve_gamma(name, 100, 2) for name in ("paper", "sep", "auto", 7)] == [1, 100, 100, 7]
    assert information_fraction(1, 1, 1) == 1.0
    for bad in (0, -1, 101, math.nan, "other", True):
        with pytest.raises(InputError):
            resolve_gamma(bad, 100, 2)


@for_each(
    "call",
    [
        lambda: run_ep(LOCATION, []),
        lambda: run_ep(LOCATION, LOCATION_RECORDS, damping=1.5),
        lambda: run_ep(LOCATION, LOCATION_RECORDS, max_iter=0),
        lambda: run_sep(LOCATION, LOCATION_RECORDS, n_epochs=0),
        lambda: run_sep(LOCATION, LOCATION_RECORDS, n_epochs=1, sigma=1.0),
        lambda: run_sep(LOCATION, LOCATION_RECORDS, n_epochs=1, sigma=-1.0, C=1.0),
        lambda: run_sep(LOCATION, LOCATION_RECORDS, n_epochs=1, sigma=(1.0, 1.0), C=1.0),
        lambda: run_sep(LOCATION, LOCATION_RECORDS, n_epochs=1, C=0.0),
        lambda: run_sep(LOCATION, LOCATION_RECORDS, n_epochs=1, rho=0.0),
        lambda: run_sep(LOCATION, LOCATION_RECORDS, n_epochs=1, sampling="poisson"),
        lambda: run_sep(LOCATION, LOCATION_RECORDS, n_epochs=1, state="both"),
        lambda: LinearPredictor(GaussianNatural([0.0], [[-1.0]])),
        lambda: LinearPredictor(GaussianNatural([0.0], [[1.0]]), "cauchit"),
        lambda: MixtureOfGaussians(MIXTURE.prior, [0.5, 0.6], 1.0),
        lambda: MixtureOfGaussians(MIXTURE.prior, [1.0, 0.0], 1.0),
        lambda: MixtureOfGaussians(MIXTURE.prior, [0.5, 0.5], 0.0),
        lambda: MixtureOfGaussians(GaussianNatural([0.0], [[1.0]]), [1.0], 1.0),
        lambda: PoissonModel(1.0, 1.0),
        lambda: BernoulliModel(0.0, 1.0),
    ],
)
def test_refusals(call: Any) -> None:
    with pytest.raises(InputError):
        call()
