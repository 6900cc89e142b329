"""Generalisation bounds: stated values, inverses, and the constants of the proofs."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.generalization_bounds import (
    assumed_training_error,
    best_error,
    high_probability_bound,
    multidatabase_bound,
    on_average_bound,
    pac_guarantee,
    pac_plan,
    sample_size_required,
    smallest_delta,
    smallest_eps,
)
from thresholdout.privacy.accounting.published_bounds import (
    dwork2015_bound,
    empirical_variance,
    nissim_stemmer_bound,
    oneto_risk_bound,
    oneto_variance_bound,
)
from thresholdout.privacy.accounting.results import SampleSizeError

QUICK = settings(max_examples=30, derandomize=True, deadline=None)


def test_worked_values() -> None:
    rules = ("theorem2", "corollary1", "nissim_stemmer", "tight")
    values = (0.3935299933533378, 0.5000606530659713, 1.0001, 0.24499417053746878)
    for rule, value in zip(rules, values, strict=True):
        assert on_average_bound(0.5, 1e-5, 10, rule) == pytest.approx(value, rel=1e-12)
    assert sample_size_required(0.05, 1e-6) == 13311
    assert high_probability_bound(0.05, 1e-6, 13311).failure == pytest.approx(7.017941360378616e-05, rel=1e-12)
    assert smallest_delta(0.05, 20000) == pytest.approx(2.3359990357326977e-10, rel=1e-11)
    assert smallest_eps(1e-6, 10000) == pytest.approx(0.0576988702670277, rel=1e-12)
    assert best_error(0.01, 0, 10000, 0.05) == pytest.approx(0.4064641099488, abs=1e-6)
    assert dwork2015_bound(0.5, 1e-5).error == pytest.approx(2)
    assert dwork2015_bound(0.5, 1e-5).failure == pytest.approx(0.025298221281347035, rel=1e-12)
    risk, variance = oneto_risk_bound(0.05, 2000, 0.2), oneto_variance_bound(0.05, 2000, 0.2)
    assert risk.error == pytest.approx(0.0972671531783484, rel=1e-12)
    assert variance.error == pytest.approx(0.07972886330187173, rel=1e-12)
    assert risk.failure == variance.failure == pytest.approx(0.020213840997256382, rel=1e-12)
    plan = pac_plan(0.5, 0.05)
    assert plan.eps == pytest.approx(0.0277777777777778, rel=1e-12)
    assert plan.delta == pytest.approx(0.000333907284067, rel=1e-11)
    assert plan.n == 28007


@for_each(
    ("error", "sizes"),
    [
        (0.9, (2878, 3338, 4259)),
        (0.5, (9294, 10786, 13770)),
        (0.25, (37101, 43069, 55005)),
        (0.1, (231606, 268908, 343511)),
    ],
)
def test_table_of_sample_sizes(error: float, sizes: tuple[int, ...]) -> None:
    for delta, size in zip((1e-5, 1e-6, 1e-8), sizes, strict=True):
        assert abs(sample_size_required(error / 9, delta) - size) <= 1
        assert high_probability_bound(error / 9, delta, size + 1).error == pytest.approx(error)


def test_below_some_sizes_nothing_is_known() -> None:
    assert best_error(1e-3, 0, 1462, 0.05) is None
    assert best_error(1e-3, 0, 1463, 0.05) is not None
    assert best_error(1e-3, 0, 977, 1 - 1e-9) is None
    assert best_error(1e-3, 0, 978, 1 - 1e-9) is not None
    assert best_error(0.2, 0, 10**9, 0.05) is None


@QUICK
@given(st.floats(1e-6, 5), st.floats(0, 0.999), st.integers(1, 1000))
def test_order_of_the_rules(eps: float, delta: float, k: int) -> None:
    tight, two, one = (on_average_bound(eps, delta, k, r) for r in ("tight", "theorem2", "corollary1"))
    slack = 1 + 1e-12
    assert two <= one * slack
    if k * delta <= 1:
        assert tight <= two * slack
    if abs(k * delta - 1) > 1e-9 and eps < 30:
        assert (two < 1) == (k * delta < 1)


def test_on_average_exceeds_a_half_from_log_2_on() -> None:
    assert on_average_bound(math.log(2) * (1 - 1e-9), 0) < 0.5 < on_average_bound(math.log(2) * (1 + 1e-9), 0)


@QUICK
@given(st.floats(0, 3), st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_on_average_bound_on_all_tiny_learners(eps: float, seed: int, k: int) -> None:
    """Two records of fair bits in each of k databases, random output laws: the mean gap is within the tight bound."""
    rng = np.random.default_rng(seed)
    size = 2 * k
    data = [[(s >> b) & 1 for b in range(size)] for s in range(2**size)]
    base = rng.dirichlet(np.full(2 * k, 0.5))  # outputs: a hypothesis (0 or 1), a database
    law = np.array([base * np.exp(rng.uniform(-eps / 2, eps / 2, 2 * k)) for _ in data])
    law /= law.sum(axis=1, keepdims=True)
    own, fresh = 0.0, 0.0
    for bits, chances in zip(data, law, strict=True):
        for output, chance in enumerate(chances):
            hypothesis, base_index = output % 2, output // 2
            part = bits[2 * base_index : 2 * base_index + 2]
            own += chance * np.mean([bit == hypothesis for bit in part]) / len(data)
            fresh += chance * 0.5 / len(data)
    worst = max(float(np.abs(np.log(law[s] / law[s ^ (1 << b)])).max()) for s in range(len(data)) for b in range(size))
    assert abs(own - fresh) <= on_average_bound(worst, 0, k, "tight") + 1e-12


def test_the_tight_rule_is_attained() -> None:
    """Randomised response on one bit: the hypothesis agrees with its own record with probability e^eps/(1+e^eps)."""
    eps = 0.8
    own, fresh = 1 / (1 + math.exp(-eps)), 0.5
    assert 2 * (own - fresh) == pytest.approx(on_average_bound(eps, 0, 1, "tight"), rel=1e-12)


@for_each("eps", np.linspace(1e-4, 1 / 9 - 1e-9, 60).tolist())
def test_constants_of_the_proof_of_theorem_1(eps: float) -> None:
    """Every inequality of PROOFS.md, G3, on a grid of delta below the one at which the failure is 1."""
    most = eps * math.exp(eps) / math.log(2 / eps)
    for delta in most * np.array([1 - 1e-9, 0.5, 0.1, 1e-3, 1e-9]):
        x = math.exp(-eps) * delta / eps * math.log(2 / eps)
        k = math.ceil(eps * math.exp(eps) / delta)
        n = 2 / eps**2 * (math.log(16) + eps + math.log(1 / delta))
        assert k <= 1.346 * eps * math.exp(eps) / delta + 1e-9
        missed = math.exp(k * math.log1p(-x)) if x < 1 else 0.0
        assert missed <= eps / 2 * (1 + 1e-9)
        hoeffding = 2 * k * math.exp(-2 * n * (eps / 2) ** 2)
        assert hoeffding <= 0.1683 * eps
        mechanism = 2 * k * math.exp(-n * eps * eps / 2)
        assert mechanism <= 0.1683 * eps
        bad = missed + hoeffding + mechanism
        assert bad <= 0.84 * eps
        mean_gap = 7 * eps * (1 - bad) - bad
        assert mean_gap >= 6.1 * eps - 5.9 * eps**2
        allowed = math.exp(-2 * eps) * k * delta + 1 - math.exp(-2 * eps)
        assert allowed <= 3.35 * eps
        assert allowed < mean_gap


@QUICK
@given(st.floats(1e-3, 3), st.floats(-200, -0.01))
def test_sizes_and_their_inverses(eps: float, log_delta: float) -> None:
    delta = 10**log_delta
    n = sample_size_required(eps, delta)
    real = 2 / eps**2 * (math.log(16) + eps - math.log(delta))
    assert real <= n <= real * (1 + 1e-12) + 1
    assert smallest_delta(eps, n) <= delta * (1 + 1e-10)
    assert smallest_eps(delta, n) <= eps * (1 + 1e-12)
    if n > 1:
        assert smallest_delta(eps, n - 1) > delta * (1 - 1e-10)
        assert smallest_eps(delta, n - 1) > eps * (1 - 1e-12)
    assert sample_size_required(smallest_eps(delta, n), delta) <= n


def test_small_samples() -> None:
    with pytest.raises(SampleSizeError) as caught:
        high_probability_bound(0.05, 1e-6, 13310)
    assert (caught.value.n, caught.value.required) == (13310, 13311)
    with pytest.raises(SampleSizeError) as caught:
        high_probability_bound(0.05, 0.0, 10**9)
    assert caught.value.required is None
    inflated = high_probability_bound(0.05, 0.0, 10000, on_small_n="inflate")
    delta = 16 * math.exp(0.05 - 10000 * 0.05**2 / 2)
    assert inflated.failure == pytest.approx(math.exp(-0.05) * delta / 0.05 * math.log(40), rel=1e-9)
    assert inflated.applicable
    assert not inflated.vacuous
    hopeless = high_probability_bound(0.05, 0.0, 100, on_small_n="inflate")
    assert hopeless.vacuous
    assert not hopeless.applicable
    assert high_probability_bound(0.1, 0.0, 10**9, on_small_n="inflate").failure > 0


@for_each("eps", [1 / 9, 0.5, 1.9, 2.0, 10.0, 700.0])
def test_d5_d17_large_epsilons_say_nothing(eps: float) -> None:
    """From 2 on the published failure is negative; from 1/9 on the error is 1."""
    found = high_probability_bound(eps, 1e-6, 10)
    assert found.vacuous
    assert 0 <= found.failure <= 1
    assert found.error == pytest.approx(9 * eps)
    if eps > 2:
        assert math.exp(-eps) * 1e-6 / eps * math.log(2 / eps) < 0


def test_d4_the_doubled_failure() -> None:
    one, two = (high_probability_bound(0.05, 1e-6, 20000, conservative=c) for c in (False, True))
    assert two.failure == pytest.approx(2 * one.failure)
    assert two.confidence == 1 - two.failure


def test_d17_comparisons() -> None:
    """Others have smaller errors: 4 eps, but with practically no delta; and less for a small risk."""
    ours = high_probability_bound(0.05, 1e-6, 20000)
    assert dwork2015_bound(0.05, 1e-6).error < ours.error < nissim_stemmer_bound(0.05, 1e-6).error
    assert oneto_risk_bound(0.05, 20000, 0.01).error < ours.error / 5
    assert dwork2015_bound(0.05, 1e-6).vacuous
    assert not dwork2015_bound(0.1, 0.9 * 8**-10.0).vacuous
    assert dwork2015_bound(0.1, 1.1 * 8**-10.0).vacuous
    assert nissim_stemmer_bound(1 / 13 + 1e-9, 0).vacuous
    assert not nissim_stemmer_bound(1 / 13 - 1e-9, 0).vacuous
    assert oneto_risk_bound(0.01, 10_000, 0.0).vacuous  # n eps^2 = 1 < ln 3
    assert not oneto_risk_bound(0.011, 10_000, 0.0).vacuous
    assert 1 - math.exp(-1 / 9) < 0.1052  # the advertised gain e^-eps in the usable range


def test_d15_the_plan_needs_no_assumption() -> None:
    """The sample-size condition forces an epsilon, so that rates in T and N alone are impossible."""
    for s, t, split in [(0.5, 0.05, 0.5), (0.9, 0.3, 0.0), (0.2, 1e-3, 0.9)]:
        plan = pac_plan(s, t, split)
        assert plan.training_error <= split * s
        found = pac_guarantee(plan.training_error, plan.eps, plan.delta, plan.n)
        assert found.error <= s * (1 + 1e-12)
        assert found.failure <= t
        assert plan.eps >= math.sqrt(2 * math.log(16 / plan.delta) / plan.n)
    assert assumed_training_error(10, 0.5, 1.0) == pytest.approx(math.exp(-4))
    assert assumed_training_error(1, 0.5, 1.0) == 1


def test_multidatabase_bound() -> None:
    found = multidatabase_bound(0.1, 1e-3, 10)
    assert found.excess == pytest.approx(10 * math.exp(-0.1) * 1e-3 + 0.3, rel=1e-12)
    assert found.probability == 0.1
    assert found.probability_sharp == pytest.approx(0.2 / (1 + found.excess), rel=1e-12)
    assert multidatabase_bound(0.5, 0, 1).probability_sharp == 1
    for eps in (1e-3, 0.2, 0.33):
        assert multidatabase_bound(eps, 0, 1).probability_sharp >= eps
    with pytest.raises(InputError):
        multidatabase_bound(1.1, 0, 1)


@QUICK
@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_empirical_variance(losses: list[float]) -> None:
    n = len(losses)
    pairs = sum((a - b) ** 2 for a in losses for b in losses) / (2 * n * (n - 1))
    assert empirical_variance(losses) == pytest.approx(pairs, abs=1e-12)
    assert empirical_variance(losses) == pytest.approx(np.var(losses, ddof=1), abs=1e-15)


@QUICK
@given(st.floats(1e-3, 0.11), st.sampled_from([0.0, 1e-9, 1e-5]), st.integers(1000, 10**6), st.floats(0.001, 0.5))
def test_best_error_is_a_bound_and_the_best(eps: float, delta: float, n: int, failure: float) -> None:
    found = best_error(eps, delta, n, failure)
    if found is None:
        assert high_probability_bound(0.111, delta, n, on_small_n="inflate").failure > failure * 0.99 or eps > 0.111
        return
    used = found / 9
    assert used >= eps * (1 - 1e-12)
    assert high_probability_bound(used, delta, n, on_small_n="inflate").failure <= failure * (1 + 1e-6)
    if used * 0.999 > eps:
        assert high_probability_bound(used * 0.999, delta, n, on_small_n="inflate").failure > failure


@for_each("eps", [1e-300, 1e-12, 700.0])
@for_each("delta", [0.0, 1e-300, 0.999999])
def test_no_overflow_and_no_nan(eps: float, delta: float) -> None:
    for n in (1, 10**18):
        found = high_probability_bound(eps, delta, n, on_small_n="inflate")
        assert 0 <= found.failure <= 1
        assert smallest_delta(eps, n) > 0
        if delta > 0:
            assert smallest_eps(delta, n) > 0
            assert sample_size_required(eps, delta) >= 1
        for rule in ("theorem2", "corollary1", "nissim_stemmer", "tight"):
            assert math.isfinite(on_average_bound(eps, delta, 10**6, rule))
        for quoted in (dwork2015_bound(eps, delta), nissim_stemmer_bound(eps, delta), oneto_risk_bound(eps, n, 1.0)):
            assert 0 <= quoted.failure <= 1
            assert not math.isnan(quoted.error)


@for_each("eps", [0, -1, math.nan, math.inf, True, "1", None])
def test_refused_epsilons(eps: Any) -> None:
    with pytest.raises(InputError):
        high_probability_bound(eps, 1e-6, 10**6)
    with pytest.raises(InputError):
        best_error(eps, 1e-6, 10**6, 0.05)


def test_other_refusals() -> None:
    with pytest.raises(InputError):
        on_average_bound(0.1, 0, 0)
    with pytest.raises(InputError):
        on_average_bound(0.1, 0, 1, "best")
    with pytest.raises(InputError):
        sample_size_required(0.1, 0)
    with pytest.raises(InputError):
        pac_plan(1, 0.1)
    with pytest.raises(InputError):
        pac_plan(0.5, 0.1, 1.0)
    with pytest.raises(InputError):
        pac_guarantee(1.5, 0.05, 1e-6, 20000)
    with pytest.raises(InputError):
        oneto_variance_bound(0.1, 1, 0.2)
    with pytest.raises(InputError):
        empirical_variance([0.5])
    with pytest.raises(InputError):
        empirical_variance([0.5, 1.5])
    with pytest.raises(InputTypeError):
        empirical_variance([True, False])
    with pytest.raises(InputError):
        assumed_training_error(1, 0, 0)
    with pytest.raises(InputError):
        high_probability_bound(0.05, 1e-6, 100, on_small_n="ignore")
