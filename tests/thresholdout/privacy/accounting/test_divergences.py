"""Divergences of finite distributions, against enumeration and stated values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.divergences import (
    approx_max_divergence,
    hockey_stick,
    is_indistinguishable,
    kl_divergence,
    max_divergence,
    pure_decomposition,
    statistical_distance,
)
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.generalization_bounds import azuma_tail, kl_bound, tv_bound

P, Q = [0.5, 0.3, 0.15, 0.05], [0.2, 0.3, 0.2, 0.3]
QUICK = settings(max_examples=40, derandomize=True, deadline=None)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    size = draw(st.integers(2, 7))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(size, 0.5), 2)
    if draw(st.booleans()):
        p = np.where(np.arange(size) == 0, 0.0, p)
        p = p / p.sum()
    return p, q


def test_worked_values() -> None:
    assert kl_divergence(P, Q) == pytest.approx(0.32540508160790765, rel=1e-12)
    assert kl_divergence(Q, P) == pytest.approx(0.41180610888394165, rel=1e-12)
    assert max_divergence(P, Q) == pytest.approx(0.9162907318741551, rel=1e-12)
    assert statistical_distance(P, Q) == pytest.approx(0.3, rel=1e-12)
    assert approx_max_divergence(P, Q, 0.1) == pytest.approx(0.6931471805599453, rel=1e-12)
    assert approx_max_divergence(P, Q, 0.4) == pytest.approx(-0.2231435513142097, rel=1e-12)
    assert kl_bound(1) == pytest.approx(0.46211715726000974, rel=1e-12)
    assert kl_bound(1, "dwork_rothblum") == pytest.approx(0.8591409142295225, rel=1e-12)
    assert kl_bound(1, "dwork_rothblum_vadhan") == pytest.approx(1.718281828459045, rel=1e-12)


def test_infinite_and_negative_values() -> None:
    assert kl_divergence([0.5, 0.5], [1, 0]) == math.inf
    assert kl_divergence([1, 0], [0.5, 0.5]) == pytest.approx(math.log(2))
    assert max_divergence([0.5, 0.5], [1, 0]) == math.inf
    assert approx_max_divergence(P, P, 0.1) == pytest.approx(math.log(0.9), rel=1e-12)
    assert hockey_stick([1, 0], [0, 1], 700) == 1
    assert hockey_stick([0.5, 0.5], [0.5, 0.5], 5000) == 0


def test_d16_disjoint_distributions_are_infinitely_apart() -> None:
    """The published definition conditions on q(S) >= delta; on disjoint supports it then admits no event with p."""
    assert approx_max_divergence([1, 0], [0, 1], 0.1) == math.inf


@QUICK
@given(pairs(), st.floats(0, 0.9))
def test_approximate_max_divergence_by_all_events(pair: tuple[np.ndarray, np.ndarray], delta: float) -> None:
    p, q = pair
    best = -math.inf
    for chosen in itertools.product([0, 1], repeat=p.size):
        mask = np.array(chosen, dtype=bool)
        a, b = p[mask].sum(), q[mask].sum()
        if a > delta + 1e-12:
            best = max(best, math.inf if b == 0 else math.log((a - delta) / b))
    found = approx_max_divergence(p, q, delta)
    assert found == pytest.approx(best, rel=1e-9, abs=1e-9)
    if math.isfinite(found):  # it is also where the hockey-stick divergence reaches delta
        assert hockey_stick(p, q, found) <= delta + 1e-12
        assert hockey_stick(p, q, found - 1e-6) > delta - 1e-12


@QUICK
@given(pairs(), st.floats(0, 3))
def test_lemma_2_gives_a_pure_pair_nearby(pair: tuple[np.ndarray, np.ndarray], eps: float) -> None:
    p, q = pair
    delta = max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))
    p2, q2 = pure_decomposition(p, q, eps)
    assert p2.sum() == pytest.approx(1, abs=1e-12)
    assert q2.sum() == pytest.approx(1, abs=1e-12)
    assert (p2 <= math.exp(eps) * q2 + 1e-12).all()
    assert (q2 <= math.exp(eps) * p2 + 1e-12).all()
    for old, new in ((p, p2), (q, q2)):
        assert np.abs(old - new).sum() / 2 <= delta / (1 + math.exp(eps)) + 1e-12


@pytest.mark.slow
def test_lemma_2_on_2000_pairs() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        p, q = rng.dirichlet(np.full(4, 0.4), 2)
        eps = float(rng.uniform(0, 2))
        delta = max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))
        p2, q2 = pure_decomposition(p, q, eps)
        assert max((p2 - math.exp(eps) * q2).max(), (q2 - math.exp(eps) * p2).max()) <= 1e-13
        assert max(np.abs(p - p2).sum(), np.abs(q - q2).sum()) / 2 <= delta / (1 + math.exp(eps)) + 1e-13
        assert is_indistinguishable(p, q, eps, min(delta + 1e-12, 0.999999))


@QUICK
@given(st.floats(0, 5), st.integers(0, 2**32 - 1))
def test_kl_bound_is_attained_and_holds(eps: float, seed: int) -> None:
    high = 1 / (1 + math.exp(-eps))
    response = [high, 1 - high]
    assert kl_divergence(response, response[::-1]) == pytest.approx(kl_bound(eps), rel=1e-9, abs=1e-12)
    ratio = np.exp(np.random.default_rng(seed).uniform(-eps, eps, 5))
    q = np.random.default_rng(seed + 1).dirichlet(np.ones(5))
    total = float((q * ratio).sum())
    spread = max(abs(math.log(r / total)) for r in ratio)
    assert kl_divergence(q * ratio / total, q) <= kl_bound(spread) + 1e-12
    assert kl_bound(eps) <= eps * eps / 2 * (1 + 1e-12) + 1e-300


@QUICK
@given(pairs(), st.floats(0, 3))
def test_total_variation_bound(pair: tuple[np.ndarray, np.ndarray], eps: float) -> None:
    p, q = pair
    delta = max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))
    if delta < 1:
        assert statistical_distance(p, q) <= tv_bound(eps, delta) + 1e-12


def test_total_variation_bound_is_attained() -> None:
    eps, delta = 0.7, 0.1
    E = math.exp(eps)
    p = np.array([delta, (1 - delta) * E / (1 + E), (1 - delta) / (1 + E), 0])
    assert statistical_distance(p, p[::-1]) == pytest.approx(tv_bound(eps, delta), rel=1e-12)


def test_the_second_rule_exceeds_the_first_by_a_known_ratio() -> None:
    for eps in (1e-6, 0.3, 2.0, 50.0):
        ratio = kl_bound(eps, "dwork_rothblum") / kl_bound(eps)
        assert ratio == pytest.approx((1 + math.exp(eps)) / 2, rel=1e-9)
    assert kl_bound(700) == pytest.approx(700)
    assert kl_bound(5000, "dwork_rothblum") == math.inf
    assert tv_bound(700, 0) == 1


def test_azuma_on_fair_signs() -> None:
    """Sums of signs: the tail is above the exact binomial one."""
    found = azuma_tail(np.ones(100), 2.0)
    assert found.deviation == pytest.approx(20)
    exact = sum(math.comb(100, k) for k in range(60, 101)) / 2**100
    assert exact <= found.probability == pytest.approx(math.exp(-2))


def test_refusals() -> None:
    for bad in ([0.5, 0.4], [-0.5, 1.5], [math.nan, 1.0], []):
        with pytest.raises(InputError):
            kl_divergence(bad, bad)
    for call, kind in (
        (lambda: kl_bound(-1), InputError),
        (lambda: kl_bound(True), InputTypeError),
        (lambda: kl_bound(1, "best"), InputError),
        (lambda: azuma_tail([], 1), InputError),
        (lambda: azuma_tail([-1.0], 1), InputError),
    ):
        with pytest.raises(kind):
            call()
