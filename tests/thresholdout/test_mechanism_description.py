"""Description length: codes are codes, and bounds for fixed questions fail no more often than they say."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from thresholdout.mechanisms.description import FixedQuestion, choice_nats, index_nats


class TestCodes:
    def test_the_code_of_any_number_sums_to_one(self) -> None:
        """Partial sums telescope to 1 - 1/log2(N + 2), from below."""
        count = 20_000
        total = math.fsum(math.exp(-index_nats(i, None)) for i in range(1, count + 1))
        exact = 1 - 1 / math.log2(count + 2)
        assert exact * (1 - 1e-9) <= total <= exact

    def test_far_numbers_keep_their_digits(self) -> None:
        for index in (1, 10**6, 10**12):
            with mpmath.workdps(60):
                weight = 1 / mpmath.log(index + 1, 2) - 1 / mpmath.log(index + 2, 2)
                assert 0 <= index_nats(index, None) + mpmath.log(weight) <= mpmath.mpf(10) ** -10

    @pytest.mark.parametrize("limit", [1, 2, 1000])
    def test_declared_limits(self, limit: int) -> None:
        assert math.log(limit) <= index_nats(1, limit) <= math.log(limit) * (1 + 1e-11)

    @given(st.integers(0, 3000), st.data())
    def test_choices(self, rounds: int, data: st.DataObject) -> None:
        marked = data.draw(st.integers(0, rounds))
        exact = mpmath.log(math.comb(rounds, marked))
        assert -1e-15 <= choice_nats(rounds, marked) - exact <= 1e-9


class TestFixedQuestions:
    @pytest.mark.parametrize("n", [7, 60, 400])
    @pytest.mark.parametrize("nats", [0.0, 4.0])
    def test_half_widths_fail_as_rarely_as_they_say(self, n: int, nats: float) -> None:
        """Values 0 or 1, exact probabilities, on a fine grid of truths; and they are not much too wide."""
        beta = 0.1
        fixed = FixedQuestion(n, beta)
        means = np.arange(n + 1) / n
        widths = np.array([fixed.half_width(float(mean), 0.0, nats) for mean in means])
        truths = np.linspace(0, 1, 501)
        missed = np.abs(means[None, :] - truths[:, None]) > widths[None, :]
        failing = (binom.pmf(np.arange(n + 1)[None, :], n, truths[:, None]) * missed).sum(axis=1)
        assert failing.max() <= beta * math.exp(-nats)
        narrow = np.abs(means[None, :] - truths[:, None]) > 0.6 * widths[None, :]
        failing = (binom.pmf(np.arange(n + 1)[None, :], n, truths[:, None]) * narrow).sum(axis=1)
        assert failing.max() > beta * math.exp(-nats)

    @given(st.integers(2, 3000), st.floats(0, 1), st.floats(0, 60), st.floats(0, 0.05))
    def test_half_widths_by_the_definition(self, n: int, value: float, nats: float, half_step: float) -> None:
        """The ends of the interval solve n kl(c, p) = cost, in high precision."""
        beta = 0.05
        width = FixedQuestion(n, beta).half_width(value, half_step, nats)
        with mpmath.workdps(40):
            cost = mpmath.log(2 / (mpmath.mpf(15) / 16 * beta)) + nats
            for edge, sign in ((min(1.0, value + half_step), 1), (max(0.0, value - half_step), -1)):
                p = mpmath.mpf(value) + sign * (mpmath.mpf(width) + mpmath.mpf(2) ** -45)
                if 0 < p < 1:
                    c = mpmath.mpf(edge)
                    first = c * mpmath.log(c / p) if c else mpmath.mpf(0)
                    second = (1 - c) * mpmath.log((1 - c) / (1 - p)) if c < 1 else mpmath.mpf(0)
                    assert n * (first + second) >= cost * (1 - mpmath.mpf(10) ** -9)
        assert width <= FixedQuestion(n, beta).radius(nats) + half_step + 1e-12

    @given(st.integers(0, 50), st.floats(0, 1), st.floats(0.01, 0.5), st.floats(0, 20))
    def test_a_check_passes_when_the_interval_is_inside(
        self, ones: int, centre: float, reach: float, nats: float
    ) -> None:
        """Without the variance: the same as all truths outside of the claimed interval being excluded."""
        n = 50
        fixed, mean = FixedQuestion(n, 0.05), ones / n
        passes = fixed.within(mean, nats, centre, reach, lambda: 1.0)
        cost = math.log(2 / (15 / 16 * 0.05)) + nats
        excluded = True
        for p in (centre - reach, centre + reach):
            if 0 < p < 1:
                first = mean * math.log(mean / p) if mean else 0.0
                second = (1 - mean) * math.log((1 - mean) / (1 - p)) if mean < 1 else 0.0
                if abs(n * (first + second) - cost) < 1e-6:
                    return  # a tie, up to rounding
                excluded &= n * (first + second) > cost
        assert passes == (excluded and abs(mean - centre) <= reach)

    def test_a_small_variance_lets_more_checks_pass(self) -> None:
        """Values close to 1/2: the bound by relative entropy alone would need 0.0196."""
        fixed = FixedQuestion(10_000, 0.05)
        assert not fixed.within(0.5, 4.0, 0.5, 0.012, lambda: 0.25)
        assert fixed.within(0.5, 4.0, 0.5, 0.012, lambda: 0.0025)
        cost = math.log(3 * 16 / 0.05) + 4.0
        exact = math.sqrt(2 * cost / 10_000) * (0.05 + math.sqrt(2 * cost / 9999)) + cost / 30_000
        assert not fixed.within(0.5, 4.0, 0.5, exact * (1 - 1e-9), lambda: 0.0025)
        assert fixed.within(0.5, 4.0, 0.5, exact * (1 + 1e-9), lambda: 0.0025)

    @pytest.mark.parametrize("p", [0.02, 0.1, 0.5])
    def test_the_variance_bound_fails_as_rarely_as_it_says(self, p: float) -> None:
        """Values 0 or 1, exact probabilities: what is left of beta for this bound is a sixteenth."""
        n, beta = 2000, 0.05
        fixed = FixedQuestion(n, beta)
        ones = np.arange(n + 1)
        variance = ones * (n - ones) / n / (n - 1)
        reach = np.array([fixed._bernstein_radius(float(v), 0.0) for v in variance])
        assert binom.pmf(ones, n, p)[np.abs(ones / n - p) > reach].sum() <= beta / 16

    def test_dependence_widens(self) -> None:
        plain, wide = FixedQuestion(1000, 0.05, 1.0 + 1e-9), FixedQuestion(1000, 0.05, 4.0)
        assert wide.radius(2.0) == pytest.approx(2 * plain.radius(2.0))
        assert wide.half_width(0.01, 0.001, 2.0) == pytest.approx(wide.radius(2.0) + 0.001)
        assert wide.within(0.5, 2.0, 0.5, wide.radius(2.0) * 1.01, lambda: 0.0)
        assert not wide.within(0.5, 2.0, 0.5, wide.radius(2.0) * 0.99, lambda: 0.0)
