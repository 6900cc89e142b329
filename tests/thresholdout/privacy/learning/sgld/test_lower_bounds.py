import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.learning.sgld.oracles import FIGURE_1, SYSTEM_A, tail_epsilon
from thresholdout.errors import InputError
from thresholdout.privacy.learning import (
    check_lemma_conditions,
    epoch_law,
    eps_A9,
    eps_chernoff,
    eps_tail,
    step_size,
    worst_epoch,
)
from thresholdout.privacy.learning.sgld.iterate_law import proof_epoch, worst_case_chain
from thresholdout.privacy.learning.sgld.lower_bounds import eps_threshold, log_mean

HALF_STEP = step_size(FIGURE_1["n"], FIGURE_1["x_h"], FIGURE_1["alpha"], FIGURE_1["beta"], 1.0)


@for_each(
    ("K", "delta", "chernoff", "tail"),
    [
        (1, 0.001, -0.585306354, 0.445411449),
        (5, 0.001, 1.973193475, 3.866906499),
        (13, 0.001, 6.583520282, 8.901154335),
        (30, 0.001, -0.662670702, 0.222526436),
        (11, 0.001, 7.724163599, 10.107361491),
        (13, 0.1, 6.362378734, 8.680012786),
    ],
)
def test_system_a(K: int, delta: float, chernoff: float, tail: float) -> None:
    assert eps_chernoff(**SYSTEM_A, K=K, delta=delta, clip=False) == pytest.approx(chernoff, abs=6e-10)
    assert eps_tail(**SYSTEM_A, K=K, delta=delta, clip=False) == pytest.approx(tail, abs=6e-10)
    assert eps_chernoff(**SYSTEM_A, K=K, delta=delta) == pytest.approx(max(0.0, chernoff), abs=6e-10)


def test_worst_epochs_of_system_a() -> None:
    tail, chernoff = worst_epoch(**SYSTEM_A, delta=0.001), worst_epoch(**SYSTEM_A, delta=0.001, bound="chernoff")
    assert tail.epochs == chernoff.epochs == 11
    assert tail.epsilon == pytest.approx(10.107361491, abs=6e-10)
    assert chernoff.epsilon == pytest.approx(7.724163599, abs=6e-10)
    half: dict[str, Any] = {"K": 25, "delta": 0.001, "eta": 1 / 401**2}
    assert eps_chernoff(**SYSTEM_A, **half) == pytest.approx(7.070286180, abs=6e-10)
    assert eps_tail(**SYSTEM_A, **half) == pytest.approx(9.416975558, abs=6e-10)


@for_each(
    ("K", "eta", "chernoff", "tail"),
    [
        (25, None, 38.42560, 41.53683),
        (28, None, 26.62652, 29.56340),
        (48, None, -0.694477, 0.027689),
        (48, HALF_STEP, 38.00000, 41.10590),
        (50, HALF_STEP, 38.42560, 41.53683),
        (56, HALF_STEP, 26.62652, 29.56340),
    ],
)
def test_figure_1(K: int, eta: float | None, chernoff: float, tail: float) -> None:
    assert eps_chernoff(**FIGURE_1, K=K, delta=0.001, eta=eta, clip=False) == pytest.approx(chernoff, abs=5e-6)
    assert eps_tail(**FIGURE_1, K=K, delta=0.001, eta=eta, clip=False) == pytest.approx(tail, abs=5e-6)


def test_bounds_are_below_many_digits() -> None:
    for n, c, K in ((12, 40.0, 3), (12, 40.0, 8), (20, 400.0, 6)):
        exact = tail_epsilon(n, c, 1.1, 1.3, 4.0, K, 0.01)
        found = eps_tail(n, c, 1.1, 1.3, 4.0, K, delta=0.01, clip=False)
        assert found <= exact
        assert found == pytest.approx(float(exact), abs=1e-10)


SETTINGS = st.tuples(
    st.integers(2, 400), st.floats(0.5, 1e4), st.floats(0.3, 3), st.floats(0.05, 5), st.floats(0.5, 20)
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(SETTINGS, st.integers(1, 40), st.integers(2, 60), st.floats(-3, 3))
def test_blocks_hold_the_sum(
    setting: tuple[int, float, float, float, float], K: int, blocks: int, shift: float
) -> None:
    n, c, x_h, alpha, beta = setting
    assume(alpha + n * x_h**2 * beta > 1 and n > blocks)
    mixture = worst_case_chain(n, c, x_h, alpha, beta).after(K)
    law = epoch_law(n, c, x_h, alpha, beta, K)
    offset = shift * math.sqrt(law.var)
    z = (np.asarray(law.gap) + offset) / np.sqrt(np.asarray(law.var_hat))
    import mpmath as mp

    for form in ("above", "below", "chernoff"):
        if form == "chernoff" and z.min() < 0:
            continue
        if form == "chernoff":
            exact = float(mp.log(sum(mp.exp(-(mp.mpf(each) ** 2) / 2) for each in z) / n))
        else:
            sign = 1 if form == "above" else -1
            exact = float(mp.log(sum(mp.erfc(sign * mp.mpf(each) / mp.sqrt(2)) / 2 for each in z) / n))
        for terms in (blocks, 1 << 15):
            low, high = log_mean(mixture, form, offset, terms=terms)
            assert low - 1e-9 * (1 + abs(exact)) <= exact <= high + 1e-9 * (1 + abs(exact)), form
            assert low <= high
        assert high - low < 1e-7 * (1 + float(np.abs(z).max()) ** 2)


def test_blocks_get_narrow_with_their_number() -> None:
    mixture = worst_case_chain(1_000_000, 1e6, 1.0, 1.0, 4.0).after(14)
    every = log_mean(mixture, "above", terms=1_000_000)
    widths = []
    for blocks in (4, 16, 64):
        low, high = log_mean(mixture, "above", terms=blocks)
        assert low <= every.high
        assert high >= every.low
        widths.append(high - low)
    assert widths[0] > 10 * widths[1] > 100 * widths[2] * 0.9


def test_a_huge_number_of_records() -> None:
    # The proof's own regime, in which nothing of length n could be built.
    epochs = proof_epoch(10**15, 1.0, 1.0, 4.0).epochs
    assert eps_tail(10**15, 1e15**1.4, 1.0, 1.0, 4.0, epochs, delta=0.001) > 1e10


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(2, 300), st.floats(0.1, 1e5), st.floats(0.05, 5), st.floats(3.001, 40), st.floats(0, 0.49), st.data()
)
def test_lemmas(n: int, c: float, alpha: float, s: float, delta: float, data: Any) -> None:
    assume(n > alpha / s * 1.0001)
    chain = worst_case_chain(n, c, 1.0, alpha, s)
    k_dot, epochs, _ = proof_epoch(n, 1.0, alpha, s)
    assert epochs >= 2
    lam, lam_hat, sweep = (math.exp(each) for each in (chain.log_lam, chain.log_changed, chain.log_epoch))
    slack = 1 + 1e-9

    def bound_of_later(r: Any, K: int) -> Any:
        return 6 * (lam_hat * lam ** (n - r)) ** 2 * sweep ** (2 * (K - 1)) / alpha

    K = data.draw(st.integers(1, max(1, math.floor(k_dot) + 1)))
    positions = np.arange(1, n + 1)
    for at in {K, epochs}:
        law = epoch_law(n, c, 1.0, alpha, s, at)
        gap, var_hat = np.asarray(law.gap), np.asarray(law.var_hat)
        a4 = chain.limit * (sweep**at - lam ** (n * at))
        assert (gap * slack >= a4).all()
        if at - 1 <= k_dot and at == K:
            assert var_hat[0] <= 2 * sweep ** (2 * at) / alpha * slack
        if at == epochs:
            assert var_hat[0] <= (1 + 2 * math.exp(1 / s)) * sweep ** (2 * at) / alpha * slack
            a9 = eps_A9(n, c, 1.0, alpha, s, delta=delta)
            assert (gap**2 / var_hat >= 2 * (a9 - math.log(0.5 - delta)) * (1 - 1e-9)).all()
            assert eps_chernoff(n, c, 1.0, alpha, s, at, delta=delta, clip=False) >= a9 - 1e-9 * (1 + abs(a9))
            # The proof in PROOFS.md: the variance, and the constants that it has.
            assert var_hat.max() <= 6 * math.exp(2 / s) * sweep ** (2 * at) / alpha * slack
        assert (var_hat[1:] <= bound_of_later(positions[1:], at) * slack).all()


def test_a9() -> None:
    assert eps_A9(**SYSTEM_A, delta=0.001) == pytest.approx(-0.694973999, abs=6e-10)
    assert eps_A9(**SYSTEM_A, delta=0.001, clip=True) == 0.0
    assert eps_A9(100, 157 * 100, 1.0, 1.0, 4.0, delta=0.001) < 0 < eps_A9(100, 159 * 100, 1.0, 1.0, 4.0, delta=0.001)
    with pytest.raises(InputError, match="more than 3"):
        eps_A9(100, 1.0, 1.0, 1.0, 3.0, delta=0.1)
    with pytest.raises(InputError, match="more than alpha"):
        eps_A9(2, 1.0, 1.0, 9.0, 4.0, delta=0.1)


def test_e4_the_printed_condition_is_the_wrong_one() -> None:
    def power(alpha: float) -> float:
        return math.exp(2 * 10 * worst_case_chain(10, 1.0, 1.0, alpha, 4.0).log_lam)

    assert power(0.1) == pytest.approx(0.603458898, abs=5e-10)
    assert power(1.0) == pytest.approx(0.610270943, abs=5e-10)
    bound = math.exp(-2 / 4)
    assert bound == pytest.approx(0.606530660, abs=5e-10)
    small, usual = (check_lemma_conditions(10, 1.0, alpha, 4.0) for alpha in (0.1, 1.0))
    printed, needed = "n > 1/(2 alpha s) - 1/s", "alpha > 1/2 and n >= 1/((2 alpha - 1) s)"
    assert power(0.1) < bound
    assert small[printed]
    assert not small[needed]
    assert power(1.0) > bound
    assert usual[printed]
    assert usual[needed]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(2, 10_000), st.floats(0.01, 5), st.floats(3.001, 100))
def test_e4_what_is_needed_is_enough(n: int, alpha: float, s: float) -> None:
    chain = worst_case_chain(n, 1.0, 1.0, alpha, s)
    if check_lemma_conditions(n, 1.0, alpha, s)["alpha > 1/2 and n >= 1/((2 alpha - 1) s)"]:
        assert 2 * n * chain.log_lam >= -2 / s * (1 + 1e-12)
    assert 2 * (n - 1) * chain.log_lam >= -2 / s * (1 + 1e-12)  # what Lemma A.7 can do with


def test_conditions() -> None:
    found = check_lemma_conditions(1, 1.0, 10.0, 3.0, delta=0.5)
    assert not any(found[name] for name in ("s > 3", "n > alpha/s", "delta < 1/2"))
    assert all(check_lemma_conditions(100, 1.0, 1.0, 4.0, 0.001).values())


@pytest.mark.slow
def test_e3_epoch_48_is_not_of_the_lemmas_step() -> None:
    for c in (1e6, 2.092e7, 3.7706e8):  # up to the largest ratio with a certified posterior
        assert eps_chernoff(**{**FIGURE_1, "c": c}, K=48, delta=0.001) == 0.0
    worst = worst_epoch(**FIGURE_1, delta=0.001, bound="chernoff")
    assert worst.epochs == 25
    assert worst_epoch(**FIGURE_1, delta=0.001, bound="chernoff", eta=HALF_STEP).epochs == 50


def test_e3_a_hint_that_does_not_resolve_it() -> None:
    setting = {**FIGURE_1, "c": FIGURE_1["n"] ** 1.22}
    assert eps_chernoff(**setting, K=48, delta=0.001, eta=HALF_STEP) == pytest.approx(43789, rel=2e-5)
    assert eps_chernoff(**setting, K=48, delta=0.001) == pytest.approx(0.066, abs=5e-4)


@pytest.mark.slow
def test_thresholds_are_better_than_the_mean() -> None:
    for K in (3, 13, 30):
        best = eps_threshold(**SYSTEM_A, K=K, delta=0.001, direction="D1->D2")
        assert best >= eps_tail(**SYSTEM_A, K=K, delta=0.001)
        reverse = eps_threshold(**SYSTEM_A, K=K, delta=0.001, direction="D2->D1")
        assert eps_threshold(**SYSTEM_A, K=K, delta=0.001) == max(best, reverse)
    many = eps_threshold(**FIGURE_1, K=25, delta=0.001, direction="D1->D2")
    assert many > eps_tail(**FIGURE_1, K=25, delta=0.001)


@for_each("bound", [eps_chernoff, eps_tail, eps_threshold])
@for_each("change", [{"delta": 0.5}, {"delta": -0.1}, {"delta": math.nan}, {"K": 0}, {"n": 1}])
def test_refusals(bound: Any, change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        bound(**{**SYSTEM_A, "K": 3, "delta": 0.1, **change})


def test_more_refusals() -> None:
    with pytest.raises(InputError, match="twice the epoch"):
        worst_epoch(**SYSTEM_A, delta=0.001, K_max=25)
    assert worst_epoch(**SYSTEM_A, delta=0.001, K_max=26).epochs == 11
    with pytest.raises(InputError):
        worst_epoch(**SYSTEM_A, delta=0.001, bound="best")  # type: ignore[arg-type]
    with pytest.raises(InputError):
        eps_threshold(**SYSTEM_A, K=3, delta=0.1, direction="both")
    with pytest.raises(InputError):
        eps_A9(**SYSTEM_A, delta=0.6)
