"""Limits from relative entropy: against many digits, at ordinary and extreme levels."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.oracles.counts import count_law, tail
from tests.sizes import corners
from thresholdout.limits import entropy as entropy_module
from thresholdout.limits.entropy import _around, _halved, coin_divergence, entropy_lower, entropy_upper


def _divergence(x: float, p: float) -> mp.mpf:
    with mp.workdps(150):
        a, b = mp.mpf(x), mp.mpf(p)
        first = a * mp.log(a / b) if a else mp.mpf(0)
        return first + ((1 - a) * mp.log((1 - a) / (1 - b)) if a < 1 else 0)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(1e-12, 1 - 1e-12), st.sampled_from([0.0, 1e-12, 1e-8, 1e-5, 1e-3]))
def test_the_divergence_has_ten_digits(x: float, p: float, near: float) -> None:
    for left in (x, min(1.0, p * (1 + near))):
        exact = float(_divergence(left, p))
        assert coin_divergence(left, p) == pytest.approx(exact, rel=1e-10, abs=1e-300)


@for_each("log_level", [-1e-9, math.log(0.5), math.log(0.05), math.log(1e-30), math.log(1e-200), -5000.0])
@for_each("effective", [0.7, 3.0, 1000.0, 1e8])
@for_each("mean", [0.0, 1e-30, 1e-9, 0.03, 0.5, 0.95, 1 - 1e-9, 1.0])
def test_limits_are_beyond_the_exact_ones_and_near_them(mean: float, effective: float, log_level: float) -> None:
    low, high = entropy_lower(mean, effective, log_level), entropy_upper(mean, effective, log_level)
    assert 0.0 <= low <= mean <= high <= 1.0
    with mp.workdps(50):
        if 0.0 < low < mean:
            assert effective * _divergence(mean, low) >= -log_level
            nearer = low + 1e-7 * (mean - low) + 2e-12
            assert nearer >= mean or effective * _divergence(mean, nearer) <= -log_level
        if mean < high < 1.0:
            assert effective * _divergence(mean, high) >= -log_level
            nearer = high - 1e-7 * (high - mean) - 2e-12
            assert nearer <= mean or effective * _divergence(mean, nearer) <= -log_level


@pytest.mark.parametrize("n", corners([2, 3, 5], 0, 1))
def test_means_of_different_laws_keep_the_level(n: int) -> None:
    rng = np.random.default_rng(n)
    for level in (0.02, 0.2, 0.5, 0.95):
        for k in range(1, n + 1):
            limit = entropy_lower(k / n, n, math.log(level))
            for _ in range(60):
                draw = rng.beta(0.3, 0.3, n)
                draw = np.clip(draw * min(1.0, n * limit / draw.sum()), 0.0, 1.0)
                assert float(tail(count_law(draw.tolist()), k)) <= level


def test_half_the_divergence_would_break_the_level() -> None:
    level, n = 0.02, 50  # a limit at N twice as large
    broken = entropy_lower(0.9, 2 * n, math.log(level))
    assert float(tail(count_law([broken] * n), 45)) > level


@for_each(("x", "p", "value"), [(0.5, 0.0, math.inf), (0.5, 1.0, math.inf), (1.0, 1.0, 0.0), (0.0, 0.0, 0.0)])
def test_divergences_from_certain_coins(x: float, p: float, value: float) -> None:
    assert coin_divergence(x, p) == value


@for_each("effective", [0.7, 1000.0, 1e8])
@for_each("log_level", [-1e-9, math.log(0.05), -5000.0])
def test_limits_of_means_at_the_ends_are_closed_forms(effective: float, log_level: float) -> None:
    """The divergence of 0 from p is ``-ln(1 - p)``."""
    with mp.workdps(50):
        exact = 1 - mp.exp(mp.mpf(log_level) / effective)
        assert exact <= entropy_upper(0.0, effective, log_level) <= min(mp.mpf(1), exact * (1 + mp.mpf(3e-9)))
        assert 0.0 <= entropy_lower(1.0, effective, log_level) <= 1 - exact
        assert entropy_lower(1.0, effective, log_level) >= (1 - exact) * mp.exp(log_level * 2e-9 / effective) * (
            1 - 1e-12
        )
    assert entropy_lower(0.0, effective, log_level) == 0.0
    assert entropy_upper(1.0, effective, log_level) == 1.0


@for_each(("distance", "effective", "log_level"), [(1e-9, 1e10, -1.0), (1e-6, 1e8, -30.0), (1e-4, 1e5, -1e-3)])
def test_limits_near_the_ends_are_sharp_in_proportion_to_what_is_left(
    distance: float, effective: float, log_level: float
) -> None:
    low = entropy_lower(distance, effective, log_level)
    high = entropy_upper(1 - distance, effective, log_level)
    with mp.workdps(50):
        assert effective * _divergence(distance, low) >= -log_level
        assert effective * _divergence(distance, low * (1 + 1e-7)) <= -log_level
        assert effective * _divergence(1 - distance, high) >= -log_level
        assert effective * _divergence(1 - distance, 1 - (1 - high) * (1 + 1e-6)) <= -log_level


@for_each("p", [0.05, 0.5, 0.8])
@for_each("near", [-0.99e-4, -1e-5, 1e-5, 0.99e-4])
def test_the_series_for_near_means_has_eleven_digits(p: float, near: float) -> None:
    x = p + near * min(p, 1.0 - p)
    with mp.workdps(50):
        assert abs(coin_divergence(x, p) / _divergence(x, p) - 1) < 1e-11


@for_each("newton", [0, 1, 2, 12])
@for_each("needed", [1e-9, 0.003, 0.5, 30.0])
@for_each("mean", [1e-9, 0.03, 0.5, 0.97])
def test_a_limit_is_safe_wherever_its_search_starts(
    monkeypatch: pytest.MonkeyPatch, mean: float, needed: float, newton: int
) -> None:
    """Starts on both sides of the limit, and steps that have not reached it: only the divergence decides."""
    monkeypatch.setattr(entropy_module, "_NEWTON", newton)
    for far in (0.0, 1.0):
        limit = _halved(mean, needed, far, mean)
        starts = [mean + share * (limit - mean) for share in (0.1, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 1.1, 2.0)]
        for start in (each for each in starts if 0.0 < each < 1.0):
            with mp.workdps(50):
                if pair := _around(mean, needed, start):
                    fails, holds = pair
                    assert _divergence(mean, fails) <= needed * (1 + 1e-10)
                    assert _divergence(mean, holds) >= needed * (1 - 1e-10)
                found = _halved(mean, needed, far, start)
                assert found == pytest.approx(limit, rel=2e-12, abs=2e-12)
                assert found in (0.0, 1.0) or _divergence(mean, found) >= needed * (1 - 1e-10)


@for_each("level", [0.5, 0.05, 1e-30])
@for_each("effective", [20.0, 60.0, 1000.0, 1e5, 1e8])
@for_each("mean", [0.03, 0.2, 0.5])
def test_limits_need_few_divergences(
    monkeypatch: pytest.MonkeyPatch, mean: float, effective: float, level: float
) -> None:
    """Newton's steps from a near start take at most 15; halving alone takes forty."""
    seen: list[float] = []

    def counted(x: float, p: float) -> float:
        seen.append(p)
        return coin_divergence(x, p)

    monkeypatch.setattr(entropy_module, "coin_divergence", counted)
    for limit, near in ((entropy_upper, mean), (entropy_lower, 1.0 - mean)):
        seen.clear()
        limit(near, effective, math.log(level))
        assert 0 < len(seen) <= 15
