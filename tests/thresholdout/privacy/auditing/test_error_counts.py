"""Bounds from counts: the worked values, exact coverage by enumeration, an independent search, refusals."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.auditing import (
    audit_delta,
    audit_epsilon,
    audit_outputs,
    models_needed,
)
from thresholdout.privacy.auditing.audit_settings import DeltaGoal, EpsilonGoal
from thresholdout.privacy.auditing.error_counts import Method, _Extreme

Floats = NDArray[np.float64]


class TestWorkedValues:
    """[HF, eq. 10-12] with limits at half the error rate each."""

    @for_each(
        ("counts", "expected"),
        [
            ((5, 250, 12, 250), 3.100183761),
            ((0, 250, 40, 250), 4.203182151),
            ((40, 250, 0, 250), 4.203182151),
            ((125, 250, 125, 250), 0.0),
            ((0, 100, 0, 100), 3.492955127),
            ((0, 250, 0, 250), 4.418264649),
            ((0, 2, 0, 2), 0.0),
            ((13, 246, 9, 254), 2.710279586),
        ],
    )
    def test_at_a_small_delta(self, counts: tuple[int, int, int, int], expected: float) -> None:
        assert audit_epsilon(*counts, 1e-5) == pytest.approx(expected, abs=1e-9)

    def test_at_a_larger_delta(self) -> None:
        assert audit_epsilon(2, 100, 3, 100, 0.01) == pytest.approx(2.697173423, abs=1e-9)

    def test_500_models_do_not_limit_the_bound_to_the_printed_4_89(self) -> None:
        """Defect E10: the paper says 4.89 for 500 test models."""
        assert audit_epsilon(0, 250, 0, 250, 1e-5) == pytest.approx(4.4183, abs=5e-5)
        assert audit_epsilon(0, 500, 0, 500, 1e-5) == pytest.approx(5.1144, abs=5e-5)
        assert audit_epsilon(0, 200, 0, 200, 1e-5) == pytest.approx(4.1936, abs=5e-5)
        assert audit_epsilon(0, 400, 0, 400, 1e-5) == pytest.approx(4.8905, abs=5e-5)
        assert audit_epsilon(0, 500, 0, 500, 1e-5, 0.95) == pytest.approx(4.9056, abs=5e-5)

    def test_each_limit_takes_half_of_the_error(self) -> None:
        upper = [beta.isf(0.05, k + 1, n - k) for k, n in ((7, 90), (11, 120))]
        assert audit_epsilon(7, 90, 11, 120, 0.02) == pytest.approx(
            max(math.log((0.98 - upper[0]) / upper[1]), math.log((0.98 - upper[1]) / upper[0])), abs=1e-10
        )
        assert audit_delta(7, 90, 11, 120, 0.3) == pytest.approx(
            max(1 - upper[1] - math.exp(0.3) * upper[0], 1 - upper[0] - math.exp(0.3) * upper[1]), abs=1e-10
        )


class TestJoint:
    """The joint set: at least as good, never too good."""

    def test_without_errors_it_has_a_closed_form(self) -> None:
        """(1 - x)^(2n) = alpha at the symmetric corner x = (1 - delta)/(1 + e^epsilon), where this is largest."""
        for n, delta, confidence in ((100, 0.0, 0.9), (250, 1e-5, 0.9), (40, 0.01, 0.99)):
            rate = -math.expm1(math.log(1 - confidence) / (2 * n))
            exact = math.log((1 - delta) / rate - 1)
            found = audit_epsilon(0, n, 0, n, delta, confidence, method="joint")
            assert exact - 3e-3 <= found <= exact

    @pytest.mark.slow
    @given(st.integers(3, 60), st.integers(3, 60), st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.0, 1e-3, 0.1]))
    @settings(max_examples=40, derandomize=True, deadline=None)
    def test_it_is_at_least_as_large_and_symmetric(self, n: int, m: int, a: float, b: float, delta: float) -> None:
        fp, fn = int(a**2 * n), int(b**2 * m)
        joint = audit_epsilon(fp, n, fn, m, delta, method="joint")
        assert joint >= audit_epsilon(fp, n, fn, m, delta) - 3e-3
        assert joint == pytest.approx(audit_epsilon(fn, m, fp, n, delta, method="joint"), abs=6e-3)
        shown = audit_delta(fp, n, fn, m, 0.5, method="joint")
        assert shown >= audit_delta(fp, n, fn, m, 0.5) * (1 - 3e-3) - 1e-12

    @pytest.mark.slow
    @for_each("counts", [(0, 8, 1, 6), (1, 9, 0, 5), (0, 7, 3, 10), (2, 12, 2, 12)])
    def test_an_independent_search_finds_the_same(self, counts: tuple[int, int, int, int]) -> None:
        """Buehler's limit by brute force: the largest probability of the extreme outcomes, over a grid of rates."""
        delta, alpha = 0.01, 0.1
        extreme, (n, m) = _extreme(counts, delta, alpha), counts[1::2]
        p = np.unique(np.concatenate([np.linspace(0, 1, 1201), np.geomspace(1e-4, 1, 800)]))
        first = binom.pmf(np.arange(n + 1)[None, :], n, p[:, None])

        def largest(epsilon: float) -> float:
            least = np.maximum((1 - delta - p) * math.exp(-epsilon), 1 - delta - math.exp(epsilon) * p).clip(0)
            second = binom.pmf(np.arange(m + 1)[None, :], m, least[:, None])
            return float(np.einsum("ij,jk,ik->i", first, extreme, second).max())

        low, high = 0.0, 20.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if largest(middle) <= alpha else (low, middle)
        found = audit_epsilon(*counts, delta, 1 - alpha, method="joint")
        assert low - 4e-3 <= found <= low + 2e-4

    @pytest.mark.slow
    @for_each("goal", [EpsilonGoal(0.02), DeltaGoal(0.4)], ids=lambda goal: goal.measured)
    @for_each(("counts", "rates"), [((3, 60, 9, 50), (0.01, 0.3)), ((40, 900, 5, 2000), (0.06, 0.001))])
    def test_probabilities_are_bounded_in_50_digits(
        self, goal: EpsilonGoal | DeltaGoal, counts: tuple[int, int, int, int], rates: tuple[float, float]
    ) -> None:
        extreme = _Extreme(goal, *counts, 0.1)
        n, m = counts[1::2]
        with mpmath.workdps(50):
            p, q = (mpmath.mpf(rate) for rate in rates)
            second = [mpmath.binomial(m, y) * q**y * (1 - q) ** (m - y) for y in range(m + 1)]
            below = [mpmath.mpf(0)]
            for mass in second:
                below.append(below[-1] + mass)
            exact = mpmath.fsum(
                mpmath.binomial(n, x) * p**x * (1 - p) ** (n - x) * below[int(y) + 1]
                for x, y in enumerate(extreme.frontier)
            )
        found = extreme.probability(extreme.masses(rates[0]), rates[1])
        assert exact <= found <= exact * (1 + 1e-7) + 1e-10
        assert counts[2] <= extreme.frontier[counts[0]]

    @pytest.mark.slow
    def test_large_samples_agree_with_normal_approximations(self) -> None:
        """One limit for a log ratio of two rates, by the delta method: the joint bound is between it and two limits."""
        fp, fn, n = 1500, 4000, 10_000
        rates = fp / n, 1 - fn / n
        spread = math.sqrt((1 / rates[0] - 1) / n + (1 / rates[1] - 1) / n)
        single = math.log(rates[1] / rates[0]) - 1.2816 * spread
        joint, two = (audit_epsilon(fp, n, fn, n, 0.0, method=method) for method in ("joint", "clopper-pearson"))
        assert two + 0.2 * (single - two) < joint < single + 1e-3


def _extreme(counts: tuple[int, int, int, int], delta: float, alpha: float) -> Floats:
    fp, n, fn, m = counts
    upper = [np.append(beta.isf(alpha / 2, np.arange(t) + 1, t - np.arange(t)), 1.0) for t in (n, m)]
    a, b = upper[0][:, None], upper[1][None, :]
    order = np.maximum((1 - delta - a) / b, (1 - delta - b) / a)
    return np.asarray(order >= order[fp, fn] - 1e-12, dtype=np.float64)


@cache
def _all_bounds(method: Method, what: str, n: int, m: int, given_value: float, confidence: float) -> Floats:
    function = audit_epsilon if what == "epsilon" else audit_delta
    return np.array(
        [[function(i, n, j, m, given_value, confidence, method=method) for j in range(m + 1)] for i in range(n + 1)]
    )


@pytest.mark.slow
@for_each("method", ["clopper-pearson", "joint"])
@pytest.mark.parametrize(("what", "given_value"), corners([("epsilon", 0.03), ("delta", 0.4)], 0))
def test_exact_coverage(method: Method, what: str, given_value: float) -> None:
    """The probability of a bound above the truth, summed over all outcomes, is at most 0.2 for any two rates."""
    n, m, confidence = 11, 8, 0.8
    bounds = _all_bounds(method, what, n, m, given_value, confidence)
    worst = 0.0
    rates: Floats = np.linspace(0.001, 0.999, 61)
    laws: list[Floats] = [np.asarray(binom.pmf(np.arange(count + 1), count, rates[:, None])) for count in (n, m)]
    for fp, law_fp in zip(rates, laws[0], strict=True):
        for fn, law_fn in zip(rates, laws[1], strict=True):
            if what == "epsilon":
                ratios = [(1 - given_value - fp) / fn, (1 - given_value - fn) / fp, 1.0]
                truth = math.log(max(ratios))
            else:
                factor = math.exp(given_value)
                truth = max(0.0, 1 - fn - factor * fp, 1 - fp - factor * fn)
            law = law_fp[:, None] * law_fn
            worst = max(worst, float(law[bounds > truth].sum()))
    assert worst <= 1 - confidence + 1e-12
    # with teeth: the joint set uses most of the error rate, the two limits a tenth of it
    assert worst > (0.15 if method == "joint" else 0.01)


def test_a_larger_delta_or_confidence_shows_less() -> None:
    values = [audit_epsilon(3, 100, 5, 90, delta) for delta in (0.0, 1e-5, 0.01, 0.3)]
    assert values == sorted(values, reverse=True)
    values = [audit_epsilon(3, 100, 5, 90, 0.0, confidence) for confidence in (0.5, 0.9, 0.999, 1 - 1e-12)]
    assert values == sorted(values, reverse=True)


REFUSED: list[tuple[dict[str, Any], type[InputError]]] = [
    ({"fp": -1}, InputError),
    ({"fp": 1.0}, InputTypeError),
    ({"fn": True}, InputTypeError),
    ({"fp": 11}, InputError),
    ({"n_fp": 0}, InputError),
    ({"n_fn": 0}, InputError),
    ({"fn": 10.5}, InputTypeError),
    ({"delta": 1.0}, InputError),
    ({"delta": -1e-9}, InputError),
    ({"delta": math.nan}, InputError),
    ({"confidence": 0.0}, InputError),
    ({"confidence": 1.0}, InputError),
    ({"confidence": "high"}, InputTypeError),
    ({"method": "wald"}, InputError),
]


@for_each(("change", "error"), REFUSED, ids=[str(change) for change, _ in REFUSED])
def test_refusals(change: dict[str, Any], error: type[InputError]) -> None:
    arguments: dict[str, Any] = {"fp": 1, "n_fp": 10, "fn": 2, "n_fn": 10, "delta": 0.0}
    with pytest.raises(error) as caught:
        audit_epsilon(**{**arguments, **change})
    assert next(iter(change)) in str(caught.value)


@for_each("epsilon", [-0.1, math.inf, math.nan, 701.0])
def test_refused_epsilons(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        audit_delta(1, 10, 1, 10, epsilon)


class TestModelsNeeded:
    """How many models can show an epsilon: against the limits themselves, and where these are too slow in mpmath."""

    @pytest.mark.slow
    @for_each(("delta", "confidence", "share"), [(1e-5, 0.9, 0.5), (0.2, 0.99, 0.2), (0.0, 0.6, 0.7)])
    def test_fewer_of_them_show_less(self, delta: float, confidence: float, share: float) -> None:
        @cache
        def shown(models: int) -> float:
            counted = models - round(models * share)
            return audit_epsilon(0, counted, 0, counted, delta, confidence, method="joint")

        for epsilon in (0.2, 1.0, 2.5, 4.0):
            found = models_needed(epsilon, delta, confidence, fit_share=share)
            assert shown(found) >= epsilon
            smallest = next((models for models in range(found, 4, -1) if shown(models - 1) < epsilon), 4)
            assert found - smallest <= 1 + 0.001 * found / (1 - share)

    def test_many(self) -> None:
        """Beyond 20,000 outputs, each rate has half of the error rate."""
        for epsilon in (12, 20, 29.5):
            with mpmath.workdps(50):
                rate = (1 - mpmath.mpf("1e-5")) / (1 + mpmath.exp(epsilon))
                counted = mpmath.log(mpmath.mpf("0.05")) / mpmath.log1p(-rate)
            assert 1.0 <= models_needed(epsilon, 1e-5) / (2 * counted) < 1.001
        few, many = 9.7, 9.8  # at even shares, just below and above 20,000 outputs for the joint set
        assert models_needed(few, 0.0) < 40_000 < 80_000 < models_needed(many, 0.0)

    @pytest.mark.slow
    def test_the_table_of_gaussian_learners(self) -> None:
        """What so many models show with counts as expected at the best cut, when half of them count."""
        rows = [
            line.split() for line in (models_needed.__doc__ or "").splitlines() if line.strip()[:4] in ("1e-5", "0.01")
        ]
        assert len(rows) == 8
        for delta, epsilon, *models in ([float(number.replace(",", "")) for number in row] for row in rows):
            shift = brentq(
                lambda a, e=epsilon, d=delta: norm.cdf(a / 2 - e / a) - math.exp(e) * norm.cdf(-a / 2 - e / a) - d,
                0.01,
                9,
            )
            cuts = np.linspace(-6.0, 8.0, 3000)
            for size, share in zip(models, (1 / 3, 1 / 2, 2 / 3), strict=True):
                n = size / 2
                errors = [np.rint(n * rate) for rate in (norm.sf(cuts), norm.cdf(cuts - shift))]
                fp, fn = (np.where(k < n, beta.ppf(0.95, k + 1, np.maximum(n - k, 1e-9)), 1.0) for k in errors)
                found = math.log(max(((1 - delta - fp) / fn).max(), ((1 - delta - fn) / fp).max()))
                assert found / epsilon == pytest.approx(share, rel=0.02)

    @pytest.mark.slow
    @for_each("share", [0.02, 1 / 3, 0.5, 0.999])
    def test_an_audit_of_so_many_is_possible(self, share: float) -> None:
        models = models_needed(0.01, 0.0, fit_share=share)
        assert models >= 4
        assert 2 <= round(models * share) < models
        assert audit_outputs(np.arange(models), np.arange(models) + models, delta=0.0, fit_share=share).largest >= 0.01

    @for_each("change", [{"epsilon": 0.0}, {"epsilon": 30.1}, {"delta": 1.0}, {"confidence": 1.0}, {"fit_share": 0.0}])
    def test_out_of_range(self, change: dict[str, float]) -> None:
        with pytest.raises(InputError):
            models_needed(**{"epsilon": 1.0, "delta": 0.0, **change})
