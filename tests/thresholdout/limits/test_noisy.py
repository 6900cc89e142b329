"""Limits behind noisy edges: against exact sums over counts and noise, on lattices of several finenesses."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresholdout.limits.binomial as noisy
from tests.cases import for_each
from tests.oracles.counts import binomial_log_tail, count_law, lattice_law, noisy_tail, raised
from tests.sizes import corners, sized
from thresholdout.limits.binomial import (
    binomial_lower,
    log_laplace_moment,
    noisy_binomial_lower,
    noisy_entropy_lower,
    noisy_hoeffding_lower,
)
from thresholdout.limits.entropy import entropy_lower

_STEPS = (Fraction(1, 7), Fraction(1), Fraction(1, 2), Fraction(5, 3))
_SCALES = ((0.3, 0.6), (1.0, 2.0), (0.05,), (0.8, 0.8))


def _noises(step: Fraction, scales: tuple[float, ...]) -> dict[int, float]:
    return raised([lattice_law(step, scale, math.ceil(25 * scale / float(step)) + 2) for scale in scales])


def _laws(n: int, mean: float, rng: np.random.Generator) -> list[list[float]]:
    few = range(max(1, math.ceil(n * mean)), n)  # so many records share it all
    laws = [[mean] * n, *([min(1.0, n * mean / k)] * k + [0.0] * (n - k) for k in few)]
    for _ in range(2):
        draw = rng.beta(0.4, 0.4, n)
        laws.append(np.clip(draw * min(1.0, n * mean / draw.sum()), 0.0, 1.0).tolist())
    return laws


@pytest.mark.parametrize(("scales", "largest"), sized([(scales,) for scales in _SCALES], 3, 9, 0, 2))
@pytest.mark.parametrize("step", corners(_STEPS, 0, 2))
def test_tests_behind_noisy_edges_keep_their_level(step: Fraction, scales: tuple[float, ...], largest: int) -> None:
    rng = np.random.default_rng(5)
    noises = _noises(step, scales)
    for n in {2, 5, largest}:
        for k in {1, 2, n // 2 + 1, n}:
            for level in (1e-6, 0.02, 0.2, 0.6):
                limits = [
                    noisy_binomial_lower(k, n, math.log(level), scales),
                    noisy_entropy_lower(k / n, n, math.log(level), scales, n),
                    noisy_hoeffding_lower(k / n, n, math.log(level), scales, n),
                ]
                for limit in limits:
                    for law in _laws(n, limit, rng) if limit else []:
                        assert noisy_tail(count_law(law), k, noises) <= level * (1 + 1e-9), (n, k, level, law)


def test_the_price_of_a_little_noise_is_little() -> None:
    n, k, level = 1000, 950, math.log(0.001)
    scale = 0.05 * math.sqrt(n * 0.05 * 0.95)
    for exact, limit in (
        (binomial_lower(k, n, level), noisy_binomial_lower(k, n, level, (scale, 2 * scale))),
        (entropy_lower(k / n, n, level), noisy_entropy_lower(k / n, n, level, (scale, 2 * scale), n)),
    ):
        assert k / n - exact < k / n - limit < 1.03 * (k / n - exact)


@for_each("confidence", [0.99, 0.95, 0.9, 0.8])
@for_each(("k", "n"), [(50, 100), (95, 100), (285, 300), (800, 1000), (9900, 10_000), (99_000, 100_000)])
def test_the_noise_of_the_default_costs_half_a_percent_at_every_confidence(k: int, n: int, confidence: float) -> None:
    level, scale = math.log(0.5 * (1.0 - confidence)), 0.025 * math.sqrt(k * (n - k) / n)
    exact, limit = binomial_lower(k, n, level), noisy_binomial_lower(k, n, level, (scale, 2.0 * scale))
    assert k / n - exact < k / n - limit < 1.005 * (k / n - exact)


@pytest.mark.slow
@for_each(("distance", "scales"), [(4.0, (0.5, 1.0)), (30.0, (2.0, 2.0)), (1.0, (3.0,))])
def test_the_tail_of_the_noise_is_bounded_on_every_lattice(distance: float, scales: tuple[float, ...]) -> None:
    for step in _STEPS:
        exact = math.fsum(p for at, p in _noises(step, scales).items() if at >= distance)
        assert 0.0 < exact <= math.exp(noisy._log_laplace_tail(distance, scales))


def test_a_limit_holds_where_the_noise_alone_passes_the_test() -> None:
    """Records that are known, so that the count is."""
    level, scales, step = 0.3, (2.5,), Fraction(1, 7)
    noises = _noises(step, scales)
    for k, n in ((6, 12), (9, 20), (30, 40)):
        limit = noisy_binomial_lower(k, n, math.log(level), scales)
        known = math.floor(n * limit)
        assert noisy_tail(count_law([1.0] * known + [0.0] * (n - known)), k, noises) <= level


@for_each("log_level", [-60.0, -150.0, -300.0, -600.0])
def test_limits_stay_useful_at_levels_that_are_left_after_many_failures(log_level: float) -> None:
    scales = (0.25, 0.5)
    limit = noisy_binomial_lower(950, 1000, log_level, scales)
    assert limit > 0.9 * binomial_lower(950, 1000, log_level)
    assert noisy_hoeffding_lower(0.95, 1000, log_level, scales, 1000) > 0.3


@pytest.mark.parametrize(("n", "k"), [(40, 26), pytest.param(100, 60, marks=pytest.mark.slow)])
def test_a_limit_that_forgets_the_moment_of_the_noise_exceeds_its_level(
    monkeypatch: pytest.MonkeyPatch, n: int, k: int
) -> None:
    scales, step, level = (2.0, 2.0), Fraction(1, 2), 0.02
    noises = _noises(step, scales)
    sound = noisy_tail(count_law([noisy_binomial_lower(k, n, math.log(level), scales)] * n), k, noises)
    monkeypatch.setattr(noisy, "log_laplace_moment", lambda theta, scale: 0.0)
    broken = noisy_tail(count_law([noisy_binomial_lower(k, n, math.log(level), scales)] * n), k, noises)
    assert sound <= level < broken


def _passed(n: int, k: int, p: float, scale: int) -> mp.mpf:
    """Return P(Bin(n, p) >= k + nu), nu on the lattice of its scale."""
    with mp.workdps(25):
        masses = [mp.tanh(0.5) * mp.exp(-abs(m)) for m in range(-25, 26)]
        tails = [mp.exp(binomial_log_tail(k + m * scale, n, p, 25)) for m in range(-25, 26)]
        return mp.fdot(masses, tails)


@pytest.mark.parametrize(
    ("n", "share", "level"),
    [
        (10**4, 0.9, 1e-3),
        *(
            pytest.param(n, share, level, marks=pytest.mark.slow)
            for n in (10**8, 10**10)
            for share in (0.01, 0.95)
            for level in (0.02, 1e-12)
        ),
    ],
)
def test_limits_behind_noise_keep_their_level_for_any_number_of_records(
    monkeypatch: pytest.MonkeyPatch, n: int, share: float, level: float
) -> None:
    """The second difference of the binomial tail's logarithm is far below the amount by which slopes are raised."""
    k = round(share * n)
    scale = max(1, round(0.06 * math.sqrt(share * (1 - share) * n)))
    limit = noisy_binomial_lower(k, n, math.log(level), (float(scale),))
    assert 0.9 * level < _passed(n, k, limit, scale) <= level
    monkeypatch.setattr(noisy, "log_laplace_moment", lambda theta, scale: 0.0)
    assert _passed(n, k, noisy_binomial_lower(k, n, math.log(level), (float(scale),)), scale) > level


@pytest.mark.parametrize("n", corners([3, 1000, 10**7, 10**9, 10**11], 0, 2))
def test_slopes_of_a_secant_are_at_least_the_exact_ones(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """The only requirement of the proof, at every p that the search tries."""
    means: list[float] = []
    slopes: list[tuple[float, float]] = []
    tail = noisy.log_binomial_tail

    def noted(k: int, n: int, p: float) -> float:
        means.append(p)
        return tail(k, n, p)

    def moment(theta: float, scale: float) -> float:
        slopes.append((means[-1], theta))
        return log_laplace_moment(theta, scale)

    monkeypatch.setattr(noisy, "log_binomial_tail", noted)
    monkeypatch.setattr(noisy, "log_laplace_moment", moment)
    monkeypatch.setattr(noisy, "_log_laplace_tail", lambda distance, scales: -math.inf)  # it has slopes of its own
    k = max(3, round(0.8 * n))
    noisy_binomial_lower(k, n, math.log(0.01), (0.01 * math.sqrt(n),))
    assert slopes
    for p, slope in slopes:
        exact = float(binomial_log_tail(k - 1, n, p) - binomial_log_tail(k, n, p))
        assert exact <= slope <= exact * (1 + 2e-9) + 24e-10 * max(1.0, n / 10**7)


@pytest.mark.parametrize(("n", "step"), sized([(10**k,) for k in (6, 8, 9, 10, 11)], 3, 1, 0))
def test_the_library_is_within_a_tenth_of_the_assumed_error_beyond_the_mean(n: int, step: int) -> None:
    worst = 0.0
    for p in (1e-4, 0.003, 0.05, 0.5, 0.9, 0.999)[::step]:
        for far in (1, 2, 6, 20, 34):
            k = math.ceil(n * p + far * math.sqrt(n * p * (1 - p)) + 2)
            for count in (k - 1, k) if k <= n else ():
                found = noisy._log_survival(count, n, p) - noisy._slack_anywhere(count, n, p)
                if found > noisy._FAR:
                    worst = max(worst, abs(found - float(binomial_log_tail(count, n, p))))
    assert 0.0 < worst < 0.1 * noisy._slack(n)


@pytest.mark.parametrize(
    ("n", "step"),
    sized([(n,) for n in (10**6, 1_400_000, 1_500_000, 13_238_325, 116_550_789, 10**9, 10**11)], 4, 1, 3),
)
def test_the_library_is_within_six_times_the_assumed_error_at_the_mean(n: int, step: int) -> None:
    """Powers of a rounded 1 - p are off there; one count farther they are not taken."""
    assumed = noisy._slack(n)
    for mean in (2, 4, 9, 22, 26, 34, 39, 40, 60, n // 1000, n // 2, n - 34)[::step]:
        p = mean / n
        for count in (mean - 1, mean, mean + 1):
            exact = binomial_log_tail(count, n, p)
            raised = noisy._log_survival(count, n, p)
            error = abs(raised - noisy._slack_anywhere(count, n, p) - exact)
            assert error < (6.0 if count <= mean else 0.1) * assumed, (count, p)
            assert exact <= raised, (count, p)
            assert exact <= noisy.log_one_law_tail(count, n, p) <= exact + 13.0 * assumed, (count, p)


def test_tails_at_the_mean_are_bounds_where_the_library_is_off_by_five_times_the_assumed_error() -> None:
    n, k, p = 13_238_325, 34, 2.5683007480175927e-06
    exact = binomial_log_tail(k, n, p)
    assert exact - (noisy._log_survival(k, n, p) - noisy._slack_anywhere(k, n, p)) > 4.9 * noisy._slack(n)
    assert exact < noisy._log_survival(k, n, p)
    assert exact < noisy.log_one_law_tail(k, n, p)


def test_more_records_than_were_compared_have_the_limit_of_relative_entropy() -> None:
    n, level = 10**11 + 1, math.log(0.01)
    assert noisy_binomial_lower(n // 2, n, level, (1e4,)) == noisy_entropy_lower(n // 2 / n, n, level, (1e4,), n)


def test_hoeffding_is_one_sided() -> None:
    level = math.log(0.05)
    assert noisy_hoeffding_lower(0.9, 100, level, (), 100) == pytest.approx(
        0.9 - math.sqrt(math.log(20) / 200), abs=1e-9
    )
    nearly = noisy_hoeffding_lower(0.9, 100, level, (1e-6,), 100)
    assert nearly == pytest.approx(0.9 - math.sqrt(math.log(20) / 200), abs=1e-6)


@pytest.mark.slow
@for_each("step", [0.01, 0.5, 1.0, 3.0])
@for_each("scale", [0.2, 1.0, 4.0])
def test_the_moment_bounds_that_of_every_lattice(step: float, scale: float) -> None:
    for share in (0.1, 0.5, 0.9):
        theta = share / scale
        weights = [(m * step, math.exp(-abs(m) * step / scale)) for m in range(-20_000, 20_001)]
        total = math.fsum(w for _, w in weights)
        exact = math.fsum(w * math.exp(theta * x) for x, w in weights if abs(x) < 700 * scale) / total
        assert math.log(exact) <= log_laplace_moment(theta, scale) + 1e-12


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 10**7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    st.floats(-3000.0, -1e-6),
    st.floats(1e-9, 1e6),
)
def test_limits_are_at_most_those_without_noise(shape: tuple[int, int], log_level: float, scale: float) -> None:
    n, k = shape
    scales = (scale, 2 * scale)
    pairs = (
        (noisy_binomial_lower(k, n, log_level, scales), max(k / n, 0.0)),
        (noisy_entropy_lower(k / n, n, log_level, scales, n), entropy_lower(k / n, n, log_level)),
        (noisy_hoeffding_lower(k / n, n, log_level, scales, n), noisy_hoeffding_lower(k / n, n, log_level, (), n)),
    )
    for limit, most in pairs:
        assert 0.0 <= limit <= most
