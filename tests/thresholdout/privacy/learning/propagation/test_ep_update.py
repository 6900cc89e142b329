"""Updates: clipping that holds exactly, cavities that never fail, failures that are never skipped."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.learning.propagation.conjugate_models import gamma_natural
from tests.thresholdout.privacy.learning.propagation.examples import LOCATION
from tests.thresholdout.privacy.learning.propagation.natural_arrays import NaturalArrays
from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.ep_runs import run_sep
from thresholdout.privacy.learning.propagation.ep_update import dp_sep_step
from thresholdout.privacy.learning.propagation.gaussian_models import GaussianLocation
from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural

finite = st.floats(-1e300, 1e300, allow_nan=False, allow_infinity=False)


def squared(values: Any) -> Fraction:
    return sum((Fraction(float(v)) ** 2 for v in np.ravel(values)), Fraction(0))


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(finite, min_size=2, max_size=2), st.lists(finite, min_size=3, max_size=3), st.floats(1e-6, 1e6))
def test_clipped_norms_hold_in_exact_arithmetic(eta: list[float], upper: list[float], C: float) -> None:
    theta = GaussianNatural([0.0, 0.0], np.zeros((2, 2))).with_values(
        np.array([*eta, upper[0], upper[1], upper[1], upper[2]])
    )
    bound = Fraction(C) ** 2
    assert squared(theta.clip(C).values) <= bound
    separate = theta.clip(C, "separate")
    assert squared(separate.eta) <= bound
    assert squared(separate.Lam) <= bound
    assert (separate.Lam == separate.Lam.T).all()


def cavity_free(site: GaussianNatural) -> Callable[[GaussianNatural], GaussianNatural]:
    return lambda cavity: site


def test_clipping_just_at_the_norm() -> None:
    rng = np.random.default_rng(0)
    for d in (1, 3, 20):
        for _ in range(200):
            values = rng.normal(size=d)
            theta = NaturalArrays({"a": values})
            C = theta.norm() * (1 + rng.integers(-3, 4) * 2.0**-52)
            assert squared(theta.clip(C).values) <= Fraction(C) ** 2
            naive = values / max(1.0, math.sqrt(float(values @ values)) / C)
            np.testing.assert_allclose(theta.clip(C).values, naive, rtol=1e-12)


def test_a_careless_clip_exceeds_the_norm() -> None:
    """What the rounding is for: the usual formula leaves norms above C."""
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(200):
        values = rng.normal(size=20)
        C = 0.5 * math.sqrt(float(values @ values))
        above += squared(values / max(1.0, math.sqrt(float(values @ values)) / C)) > Fraction(C) ** 2
    assert above > 20


def test_joint_clipping_keeps_the_mean_and_separate_clipping_does_not() -> None:
    site = GaussianNatural([3.0, 4.0], [[2.0, 1.0], [1.0, 5.0]])
    np.testing.assert_allclose(site.clip(2.0).mean(), site.mean())
    assert np.abs(site.clip(2.0, "separate").mean() - site.mean()).max() > 0.01


@settings(max_examples=40, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["joint", "separate"]))
def test_no_cavity_of_a_noisy_run_fails(seed: int, mode: Any) -> None:
    rng = np.random.default_rng(seed)
    d, N = int(rng.integers(1, 4)), int(rng.integers(2, 6))
    prior = GaussianNatural(rng.normal(size=d), np.diag(rng.uniform(0.1, 2, size=d)))
    theta_f = prior.scale(0.0)
    for _ in range(8):
        raw = rng.normal(size=(d, d)) * 10
        noise = GaussianNatural(rng.normal(size=d) * 10, raw + raw.T)
        site = GaussianNatural(rng.normal(size=d), -np.eye(d) * rng.exponential() * 5)
        gamma = float(rng.uniform(0.1, N))
        theta_f, trace = dp_sep_step(
            theta_f, prior, cavity_free(site), N=N, gamma=gamma, C=0.7, noise=noise, clip_mode=mode
        )
        assert trace.cavity.is_pd()
        assert trace.posterior.is_pd()
        assert theta_f.norm(mode) <= 0.7


@for_each("wrong", [math.nan, math.inf, -math.inf])
def test_a_failed_site_is_replaced_and_the_update_is_made(wrong: float) -> None:
    start, prior = GaussianNatural([0.3], [[0.2]]), LOCATION.prior
    noise = GaussianNatural([0.05], [[0.1]])

    def fails(cavity: GaussianNatural) -> GaussianNatural:
        return cavity.replace(np.array([wrong]), np.array([[1.0]]))

    after, trace = dp_sep_step(start, prior, fails, N=5, gamma=5.0, C=0.6, noise=noise)
    expected, _ = dp_sep_step(start, prior, lambda cavity: start, N=5, gamma=5.0, C=0.6, noise=noise)
    assert trace.failed
    assert (after.values == expected.values).all()


class Fails:
    """A model whose sites cannot be computed."""

    prior = GaussianNatural([0.0], [[1.0]])

    def site(self, record: Any, cavity: GaussianNatural) -> GaussianNatural:
        raise np.linalg.LinAlgError("not positive definite")


def test_a_private_run_never_skips() -> None:
    run = run_sep(Fails(), [0] * 5, n_epochs=2, gamma=1, C=1.0, sigma=1.0, random_state=0)
    assert (run.n_updates, run.n_skipped, run.n_failed_sites) == (10, 0, 10)
    assert run.theta.norm() > 0
    # the noise is the same as that of a run in which all is well, so the number of draws depends on no record
    well = GaussianLocation(Fails.prior, 1.0)
    first = run_sep(well, [np.array([0.0])] * 5, n_epochs=2, gamma=1, C=1.0, sigma=1.0, random_state=0)
    assert first.n_failed_sites == 0


def test_failures_of_single_entries_and_components() -> None:
    default = GaussianNatural([[1.0, 1.0], [2.0, 2.0]], [np.eye(2), 2 * np.eye(2)])
    values = default.scale(5.0).values.copy()
    values[0] = math.nan
    fixed = default.with_values(values).repair(default)
    assert (fixed.Lam[0] == np.eye(2)).all()
    assert (fixed.Lam[1] == 10 * np.eye(2)).all()
    flat = GaussianNatural([1.0, 1.0], [1.0, 1.0])
    broken = flat.with_values(np.array([5.0, 5.0, 5.0, math.nan])).repair(flat)
    assert broken.values.tolist() == [5.0, 1.0, 5.0, 1.0]
    arrays = gamma_natural(3.0, 1.0)
    assert arrays.replace({"shape": math.inf, "rate": 4.0}).repair(arrays).values.tolist() == [2.0, 4.0]


def test_projections() -> None:
    full = GaussianNatural([1.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
    assert full.project(0.5).is_pd()
    np.testing.assert_allclose(np.linalg.eigvalsh(full.project(0.5).Lam), [0.5, 3.0])
    proper = GaussianNatural([1.0], [[2.0]])
    assert proper.project() is proper
    assert GaussianNatural([1.0, 1.0], [-1.0, 2.0]).project(0.1).Lam.tolist() == [0.1, 2.0]
    invalid = gamma_natural(3.0, 1.0).replace({"shape": -4.0, "rate": 2.0})
    assert not invalid.is_pd()
    assert invalid.project(0.1).values.tolist() == [1e-3, -0.1]


def test_moments_and_divergence() -> None:
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(3, 3))
    cov, mean = raw @ raw.T + np.eye(3), rng.normal(size=3)
    theta = GaussianNatural.from_moments(mean, cov)
    np.testing.assert_allclose(theta.mean(), mean)
    np.testing.assert_allclose(theta.cov(), cov)
    other = GaussianNatural([0.0, 0.0, 0.0], np.eye(3))
    expected = (np.trace(cov) + mean @ mean - 3 - np.linalg.slogdet(cov)[1]) / 2
    assert theta.kl(other) == pytest.approx(expected)
    diagonal = GaussianNatural.from_moments([1.0, 2.0], [0.5, 2.0])
    same = GaussianNatural.from_moments([1.0, 2.0], np.diag([0.5, 2.0]))
    unit = GaussianNatural([0.0, 0.0], np.eye(2))
    assert diagonal.kl(GaussianNatural([0.0, 0.0], [1.0, 1.0])) == pytest.approx(same.kl(unit))


@for_each(
    "call",
    [
        lambda: GaussianNatural([1.0], [[1.0, 2.0]]),
        lambda: GaussianNatural([math.nan], [[1.0]]),
        lambda: GaussianNatural([0.0, 0.0], [[1.0, 2.0], [0.0, 1.0]]),
        lambda: GaussianNatural(1.0, [[1.0]]),
        lambda: GaussianNatural.from_moments([0.0], [[-1.0]]),
        lambda: GaussianNatural([0.0], [[-1.0]]).mean(),
        lambda: GaussianNatural([0.0], [[1.0]]).clip(0.0),
        lambda: GaussianNatural([0.0], [[1.0]]).clip(1.0, "other"),  # type: ignore[arg-type]
        lambda: GaussianNatural([0.0], [[1.0]]).with_values(np.array([math.inf, 1.0])).clip(1.0),
        lambda: NaturalArrays({}),
        lambda: NaturalArrays({"a": math.inf}),
        lambda: NaturalArrays({"a": 1.0, "b": 2.0}, blocks=[["a"]]),
        lambda: dp_sep_step(LOCATION.prior, LOCATION.prior, lambda c: c, N=5, gamma=6.0),
        lambda: dp_sep_step(LOCATION.prior, LOCATION.prior, lambda c: c, N=5, gamma=0.0),
        lambda: dp_sep_step(LOCATION.prior, LOCATION.prior, lambda c: c, N=5, gamma=1.0, noise=LOCATION.prior),
    ],
)
def test_refusals(call: Any) -> None:
    with pytest.raises(InputError):
        call()
