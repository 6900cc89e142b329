"""Gaussian steps, subsampling, and the two iterative learners."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thresholdout.privacy.accounting.oracles import gaussian_delta as exact_delta
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.adaptive_steps import (
    amplified,
    gaussian_delta,
    gaussian_step,
    subsample,
)
from thresholdout.privacy.accounting.generalization_bounds import best_error, high_probability_bound
from thresholdout.privacy.accounting.iterative_learners import (
    federated_privacy,
    federated_step,
    sgld_generalization,
    sgld_privacy,
    sgld_step,
)
from thresholdout.privacy.accounting.published_bounds import full_steps, paper_log_tail
from thresholdout.privacy.accounting.results import Composition, PrivacyParams, UnsoundBoundWarning

QUICK = settings(max_examples=30, derandomize=True, deadline=None)


def quietly(call: Any, *args: Any, **named: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)
        return call(*args, **named)


def upper_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def test_worked_values() -> None:
    assert gaussian_step(0.2, 1, 1e-5) == pytest.approx(0.9797051824376162, rel=1e-12)
    assert sgld_step(10, 1, 1, 1e-5) == pytest.approx(0.9797051824376162, rel=1e-12)
    assert sgld_step(10, 1, 1, 1e-5, "paper") == pytest.approx(0.4998525912188081, rel=1e-12)
    assert gaussian_delta(0.2, 1, 0.9797051824376162) == pytest.approx(2.978358452e-8, rel=1e-9)
    assert gaussian_delta(0.2, 1, 0.4998525912188081) == pytest.approx(5.136700533e-4, rel=1e-9)
    assert federated_step(10, 1, 1e-5, formula="paper") == pytest.approx(0.6836140424415112, rel=1e-12)
    assert federated_step(10, 1, 1e-5) == pytest.approx(0.9797051824376162, rel=1e-12)
    assert federated_step(10, 1, 1e-5, "zero_out") == pytest.approx(0.4848525912188081, rel=1e-12)
    assert subsample(5, 0, 0.01).eps == pytest.approx(0.9058894621377392, rel=1e-12)
    assert quietly(subsample, 5, 0, 0.01, "paper").eps == pytest.approx(0.1, rel=1e-12)


@QUICK
@given(st.floats(-4, 1.7), st.floats(-2, 10))
def test_gaussian_delta_in_many_digits(log_mu: float, place: float) -> None:
    mu = 10**log_mu
    eps = max(0.0, mu * mu / 2 + mu * place)
    exact = exact_delta(mu, eps)
    if exact > 1e-280:
        found = gaussian_delta(mu, 1.0, eps)
        assert found >= exact
        assert found == pytest.approx(float(exact), rel=1e-10 if mu > 0.01 else 2e-8, abs=1e-30)


def test_gaussian_delta_of_tiny_steps_is_rounded_up() -> None:
    """The two tails nearly cancel: what they lose by rounding is added."""
    for mu in (1e-9, 3e-8, 1e-6):
        for place in np.linspace(0.05, 6, 40):
            eps = mu * float(place)
            assert gaussian_delta(mu, 1.0, eps) >= exact_delta(mu, eps)


@QUICK
@given(st.floats(-4, 1.7), st.floats(-200, -0.01))
def test_the_gaussian_step_has_its_delta(log_mu: float, log_delta: float) -> None:
    mu, delta = 10**log_mu, 10**log_delta
    closed, exact = gaussian_step(mu, 1, delta), gaussian_step(mu, 1, delta, exact=True)
    assert exact_delta(mu, closed) <= delta
    assert exact_delta(mu, exact) <= delta
    assert exact <= closed
    if exact > 1e-9:
        assert exact_delta(mu, exact * (1 - 1e-6)) > delta


def test_the_smallest_epsilon_may_be_nothing() -> None:
    assert gaussian_step(1e-3, 1, 0.5, exact=True) == 0
    assert gaussian_delta(1e-320, 1.0, 1.0) < 1e-299
    assert gaussian_delta(1.0, 1e-100, 1.0) == 1


@pytest.mark.parametrize(("sensitivity", "noise"), [(1e154, 1.0), (1e160, 1.0), (1e200, 1e-100), (1e300, 1e-300)])
def test_a_step_whose_ratio_overflows_protects_nothing(sensitivity: float, noise: float) -> None:
    """The divergence tends to 1 as the noise goes to 0, also where squares and the ratio itself are no floats."""
    assert gaussian_delta(sensitivity, noise, 1.0) == 1
    assert gaussian_delta(sensitivity, noise, 1e100) == 1


def test_d9_the_published_step_is_too_small() -> None:
    paper = sgld_step(1, 1, 2, 1e-5, "paper")
    assert exact_delta(1.0, paper) == pytest.approx(2.08e-3, rel=1e-2)
    assert exact_delta(1.0, sgld_step(1, 1, 2, 1e-5)) <= 1e-5


def test_d10_the_published_round_is_too_small_for_replacement() -> None:
    paper = federated_step(10, 1, 1e-5, formula="paper")
    assert exact_delta(0.2, paper) > 1e-5
    assert exact_delta(0.1, paper) <= 1e-5
    assert federated_step(10, 1, 1e-5, "zero_out") < paper < federated_step(10, 1, 1e-5)


@QUICK
@given(st.floats(0, 700), st.floats(0, 1), st.floats(0, 0.9))
def test_subsampling_by_its_formula(eps: float, q: float, delta: float) -> None:
    import mpmath as mp

    found = subsample(eps, delta, q)
    exact = mp.log1p(mp.mpf(q) * mp.expm1(mp.mpf(eps)))
    assert exact <= found.eps <= eps
    assert found.eps == pytest.approx(float(exact), rel=1e-10, abs=1e-300)
    assert q * delta <= found.delta <= delta


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_subsampling_on_randomised_response(seed: int, tau: int) -> None:
    """Subsets of four bits, a random table of outputs for each: amplified parameters hold for neighbours."""
    from itertools import combinations

    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(5, 0.5), tau + 1)  # output laws by the sum of the sampled bits

    def output(bits: list[int]) -> np.ndarray:
        chosen = [tables[sum(bits[i] for i in subset)] for subset in combinations(range(4), tau)]
        return np.asarray(np.mean(chosen, axis=0))

    def stick(p: np.ndarray, q: np.ndarray, e: float) -> float:
        return float(np.maximum(p - math.exp(e) * q, 0).sum())

    eps = float(rng.uniform(0, 2))
    delta = max(stick(tables[i], tables[j], eps) for i in range(tau + 1) for j in (i - 1, i + 1) if 0 <= j <= tau)
    if delta >= 1:
        return
    found = subsample(eps, delta, tau / 4)
    for bits in ([0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 0], [0, 1, 0, 0]):
        other = [1 - bits[0], *bits[1:]]
        assert stick(output(bits), output(other), found.eps) <= found.delta + 1e-12


def test_d14_doubling_is_no_amplification_beyond_a_root() -> None:
    root = 1.2564312086261697  # of e^x - 1 = 2x
    assert math.expm1(root) == pytest.approx(2 * root, rel=1e-12)
    assert subsample(1.25, 0, 1e-6, "paper").sound
    with pytest.warns(UnsoundBoundWarning):
        assert not subsample(1.26, 0, 1e-6, "paper").sound
    # randomised response on a sampled record: its own law has the corrected epsilon exactly
    E, q = math.exp(5.0), 0.01
    keep, drop = q * E / (1 + E) + (1 - q) / (1 + E), 1 / (1 + E)
    assert math.log(keep / drop) == pytest.approx(subsample(5, 0, q).eps, rel=1e-12)
    assert math.log(keep / drop) > 9 * quietly(subsample, 5, 0, q, "paper").eps


def test_d14_a_learner_that_leaks_more_than_published() -> None:
    """Records in {-1, 0, 1}, loss z theta, one record a step: a gradient above 0.9 tells that a 1 is there."""
    N, T, sigma = 10_000, 100, 0.2
    found = quietly(sgld_privacy, N, 1, T, 1.0, sigma, 1e-5, 1e-5, "paper")
    assert found.eps == pytest.approx(0.721, abs=1e-3)
    assert found.details["delta_with_free_dt"] == pytest.approx(1.01e-5, rel=1e-3)
    q = 1 / N

    def above(position: float) -> float:  # of some step, if one record of all lies there and the others at 0
        one = q * upper_tail((0.9 - position) / sigma) + (1 - q) * upper_tail(0.9 / sigma)
        return -math.expm1(T * math.log1p(-one))

    assert above(1.0) - math.exp(found.eps) * above(0.0) > 6.1e-3
    assert above(1.0) - math.exp(found.eps) * above(-1.0) > 6.1e-3
    corrected = sgld_privacy(N, 1, T, 1.0, sigma, 1e-5, 1e-5)
    assert above(1.0) - math.exp(min(corrected.eps, 700.0)) * above(-1.0) <= corrected.delta
    for neighbours, other in (("replace", -1.0), ("zero_out", 0.0)):
        rounds = quietly(federated_privacy, N, 1, T, sigma, 1e-5, 1e-5, neighbours, "paper")
        assert rounds.eps == pytest.approx(0.450, abs=1e-3)
        assert above(1.0) - math.exp(rounds.eps) * above(other) > 6e-3 > 100 * rounds.details["delta_with_free_dt"]
        right = federated_privacy(N, 1, T, sigma, 1e-5, 1e-5, neighbours)
        assert above(1.0) - math.exp(min(right.eps, 700.0)) * above(other) <= right.delta


def test_d11_the_published_tail_may_have_no_value() -> None:
    found = quietly(sgld_privacy, 1000, 10, 5, 1.0, 2.0, 1e-6, 1e-6, "paper")
    assert found.eps >= 5 * 0.01 * found.details["step_eps"]
    assert math.isnan(found.delta)
    assert not found.sound
    assert 0 < found.details["delta_with_free_dt"] < 1


def test_the_published_theorem_by_its_formula() -> None:
    N, tau, T, sigma, delta, dt = 10_000, 50, 2000, 2.0, 1e-6, 1e-6
    found = quietly(sgld_privacy, N, tau, T, 1.0, sigma, delta, dt, "paper")
    q, et = tau / N, sgld_step(tau, 1.0, sigma, delta, "paper")
    expected = math.sqrt(8 * math.log(1 / dt) * q * q * T * et * et) + 2 * T * q * et * math.tanh(q * et)
    assert found.eps == pytest.approx(expected, rel=1e-9)
    assert found.details["m"] == full_steps(expected, 2 * q * et, T)
    if expected < q * T * et:
        assert found.details["tail"] == pytest.approx(math.exp(paper_log_tail(q * et, T, expected)), rel=1e-6)


def test_zero_out_is_not_amplified_by_sampling_a_fixed_number() -> None:
    """One client adds 1, all others -1: drawing it keeps out one of them, so it moves the mean by 2/tau.

    With the sensitivity 1/tau of "zero_out" and the amplification of sampling together, the true delta would be 1,400
    times the claimed one.
    """
    tau, N, sigma, delta = 10, 1000, 0.1, 1e-5
    q, mu = tau / N, 1 / (tau * sigma)
    claimed = subsample(gaussian_step(1 / tau, sigma, delta), delta, q)
    x = np.linspace(-10, 12, 400_001)

    def density(mean: float) -> np.ndarray:
        return np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi)

    real = (1 - q) * density(0) + q * density(2 * mu)
    zeroed = (1 - q) * density(0) + q * density(mu)

    def true_delta(params: PrivacyParams | Composition) -> float:
        return float(np.maximum(real - math.exp(params.eps) * zeroed, 0).sum() * (x[1] - x[0]))

    assert true_delta(claimed) > 1000 * claimed.delta
    found = federated_privacy(N, tau, 1, sigma, delta, 1e-9, "zero_out")
    assert found.delta == pytest.approx(claimed.delta, rel=1e-9)
    assert true_delta(found) <= found.delta
    assert found.eps > claimed.eps
    # all clients in each round: nothing is sampled, and the sensitivity is 1/tau
    whole = federated_privacy(tau, tau, 1, sigma, delta, 1e-9, "zero_out")
    assert whole.eps == pytest.approx(gaussian_step(1 / tau, sigma, delta), rel=1e-12)


def test_learners_end_to_end() -> None:
    settings = (60_000, 64, 2000, 1.0, 0.5, 1e-6, 1e-6)
    kov, optimal, chernoff = (sgld_privacy(*settings, method=m) for m in ("kov", "optimal", "chernoff"))
    assert kov.eps == pytest.approx(0.0830, abs=5e-5)
    assert optimal.eps == pytest.approx(0.0659, abs=5e-5)
    assert optimal.delta == kov.delta
    assert chernoff.delta <= kov.delta
    first, second = (sgld_generalization(*settings, method=m) for m in ("kov", "optimal"))
    assert first.error == pytest.approx(0.75, abs=5e-3)
    assert second.error == pytest.approx(0.59, abs=5e-3)
    assert 0.5e-4 < first.failure < 2e-4
    assert first == high_probability_bound(kov.eps, kov.delta, 60_000, on_small_n="inflate")
    assert sgld_generalization(*settings, 0.05).error == best_error(kov.eps, kov.delta, 60_000, 0.05)
    poor = sgld_generalization(1000, 32, 500, 1.0, 1.0, 1e-6, 1e-6)
    assert poor.vacuous
    assert sgld_privacy(1000, 32, 500, 1.0, 1.0, 1e-6, 1e-6).eps > 1
    none = sgld_generalization(1000, 32, 500, 1.0, 1.0, 1e-6, 1e-6, 0.05)
    assert none.vacuous
    assert not none.applicable


def test_the_step_does_not_depend_on_scale() -> None:
    assert sgld_step(16, 3.0, 6.0, 1e-6) == pytest.approx(sgld_step(16, 1.0, 2.0, 1e-6), rel=1e-12)
    assert federated_privacy(500, 20, 50, 1.0, 1e-6, 1e-6).eps == pytest.approx(
        sgld_privacy(500, 20, 50, 1.0, 1.0, 1e-6, 1e-6).eps, rel=1e-12
    )


def test_d13_sigma_is_a_standard_deviation() -> None:
    """With noise of standard deviation 4 the step is that of sensitivity over 4, not over 2."""
    assert sgld_step(1, 1.0, 4.0, 1e-5) == pytest.approx(gaussian_step(0.5, 1.0, 1e-5), rel=1e-12)


def test_extreme_sizes() -> None:
    found = sgld_privacy(10**6, 1, 10**6, 1.0, 0.02, 1e-300, 1e-6)
    assert math.isfinite(found.eps)
    assert amplified(5000.0, 0.25) == pytest.approx(5000 + math.log(0.25))
    assert sgld_privacy(10, 10, 10**6, 1.0, 1e-3, 0.5, 1e-6, method="optimal").delta == 1


def test_refusals() -> None:
    with pytest.raises(InputError, match="at most N"):
        sgld_privacy(10, 11, 1, 1.0, 1.0, 1e-6, 1e-6)
    with pytest.raises(InputTypeError):
        sgld_privacy(10.0, 1, 1, 1.0, 1.0, 1e-6, 1e-6)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        sgld_privacy(10, 1, 1, 1.0, 0.0, 1e-6, 1e-6)
    with pytest.raises(InputError):
        sgld_privacy(10, 1, 1, 1.0, 1.0, 0.0, 1e-6)
    with pytest.raises(InputError):
        federated_privacy(10, 1, 1, 1.0, 1e-6, 1e-6, "drop")
    with pytest.raises(InputError):
        gaussian_step(1.0, 1.0, 1.0)
    with pytest.raises(InputError):
        subsample(1.0, 0.0, 1.5)
    with pytest.raises(InputError, match="sensitivity"):
        gaussian_step(1e200, 1.0, 0.1)
