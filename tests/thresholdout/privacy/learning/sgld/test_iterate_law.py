import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.learning.sgld.oracles import FIGURE_1, SYSTEM_A, SYSTEM_G, recursion
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.learning import epoch_law, sgld_moments, step_size
from thresholdout.privacy.learning.sgld.iterate_law import proof_epoch, worst_case_chain

ETA = step_size(100, 1.0, 1.0, 4.0)


def test_constants_of_system_a() -> None:
    chain = worst_case_chain(**SYSTEM_A)
    assert chain.u == 401
    assert chain.eta == pytest.approx(1.24377335962e-5, rel=1e-11)
    assert 1 - chain.shrink == pytest.approx(0.997506234414, rel=1e-11)
    assert 1 - chain.shrink_changed == pytest.approx(0.999371894453, rel=1e-11)
    assert chain.limit == pytest.approx(250.562237557, rel=1e-11)
    assert chain.shrink * chain.limit == pytest.approx(0.624843485180, rel=1e-11)
    assert chain.shrink_changed * chain.limit - chain.push == pytest.approx(0.156210871295, rel=1e-11)


@for_each(
    ("K", "r", "mean", "var", "gap", "var_hat"),
    [
        (3, 1, 132.094189992, 0.225486930439, 0.668146078925, 0.228012278183),
        (3, 100, 132.094189992, 0.225486930439, 0.668757709936, 0.228019463269),
        (13, 50, 240.807402310, 0.00400877833192, 0.244373010063, 0.00410255748275),
    ],
)
def test_epochs_of_system_a(K: int, r: int, mean: float, var: float, gap: float, var_hat: float) -> None:
    law = epoch_law(**SYSTEM_A, K=K, r=r)
    assert (law.mean, law.var, law.gap, law.var_hat) == pytest.approx((mean, var, gap, var_hat), rel=5e-12)


def test_system_g() -> None:
    law = epoch_law(**SYSTEM_G, K=8, r=5)
    assert law.mean == pytest.approx(0.840288224909, rel=3e-12)
    assert law.gap == pytest.approx(0.0226980379191, rel=3e-12)
    assert law.var == pytest.approx(0.0434552796261, rel=3e-12)
    assert law.var_hat == pytest.approx(0.0515674217946, rel=3e-12)
    chain = worst_case_chain(**SYSTEM_G)
    assert 1 - chain.shrink == pytest.approx(0.975609756098, rel=1e-11)
    assert 1 - chain.shrink_changed == pytest.approx(0.993456276026, rel=1e-11)


@for_each(
    ("r", "mean", "var"),
    [
        (None, 110.521374820, 0.314093386241),
        (33, 109.731346102, 0.317624916797),
        (34, 109.995416228, 0.316440210512),
    ],
)
def test_a_step_within_an_epoch(r: int | None, mean: float, var: float) -> None:
    assert sgld_moments(**SYSTEM_A, j=233, r=r) == pytest.approx((mean, var), rel=3e-12)


@for_each(
    ("arguments", "k_dot", "epochs"),
    [
        ((100, 1.0, 1.0, 4.0), 11.0053968484, 13),
        ((10, 1.0, 1.0, 4.0), 6.54414587278, 8),
        ((100, 1.0, 1.0, 4.0, 1 / 401**2), 23.0282856265, 25),
        ((300, 1.0, 1.0, 4.0), 13.1886, 15),
        ((10_000, 1.0, 1.0, 4.0), 20.1936, 22),
    ],
)
def test_epoch_of_the_proof(arguments: Any, k_dot: float, epochs: int) -> None:
    found = proof_epoch(*arguments)
    assert found.k_dot == pytest.approx(k_dot, rel=5e-6 if k_dot in (13.1886, 20.1936) else 2e-12)
    assert (found.epochs, found.steps) == (epochs, epochs * arguments[0])


def test_epoch_of_the_proof_in_figure_1() -> None:
    n, x_h, alpha, beta = (FIGURE_1[name] for name in ("n", "x_h", "alpha", "beta"))
    found = proof_epoch(n, x_h, alpha, beta)
    assert (round(found.k_dot, 4), found.epochs) == (26.8328, 28)
    assert round(proof_epoch(n, x_h, alpha, beta, step_size(n, x_h, alpha, beta, 1.0)).k_dot, 4) == 54.6656


SETTINGS = st.tuples(st.integers(2, 30), st.floats(0.1, 100), st.floats(0.3, 3), st.floats(0.05, 5), st.floats(0.5, 20))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SETTINGS, st.integers(0, 120), st.data())
def test_moments_are_the_recursion(setting: tuple[int, float, float, float, float], j: int, data: Any) -> None:
    n, c, x_h, alpha, beta = setting
    u = alpha + n * x_h**2 * beta
    if u <= 1:
        return
    r = data.draw(st.one_of(st.none(), st.integers(1, n)))
    eta = data.draw(st.floats(0.01, 0.99)) * 2 / u
    for step, given_ in ((eta, eta), (2 / u**2, None)):
        expected = recursion(n, c, x_h, alpha, beta, j, r, step)
        assert sgld_moments(n, c, x_h, alpha, beta, j, r, given_) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(SETTINGS, st.integers(1, 12), st.integers(1, 4))
def test_epochs_are_the_recursion(setting: tuple[int, float, float, float, float], K: int, batch_size: int) -> None:
    n, c, x_h, alpha, beta = setting
    n *= batch_size
    u = alpha + n * x_h**2 * beta
    if u <= 1:
        return
    law = epoch_law(n, c, x_h, alpha, beta, K, batch_size=batch_size)
    first = recursion(n, c, x_h, alpha, beta, K * n // batch_size, None, 2 / u**2, batch_size)
    assert (law.mean, law.var) == pytest.approx(first, rel=1e-9)
    for r in {1, n // batch_size}:
        mean, var = recursion(n, c, x_h, alpha, beta, K * n // batch_size, r, 2 / u**2, batch_size)
        assert law.var_hat[r - 1] == pytest.approx(var, rel=1e-9)  # type: ignore[index]
        assert law.gap[r - 1] == pytest.approx(first[0] - mean, rel=1e-6, abs=1e-12 * c)  # type: ignore[index]


def test_positions() -> None:
    everywhere = epoch_law(**SYSTEM_A, K=3)
    some = epoch_law(**SYSTEM_A, K=3, r=[1, 100])
    assert np.shape(everywhere.gap) == (100,)
    assert np.asarray(some.gap).tolist() == np.asarray(everywhere.gap)[[0, 99]].tolist()
    assert epoch_law(**SYSTEM_A, K=3, r=100).gap == pytest.approx(np.asarray(everywhere.gap)[99], rel=1e-15)


def test_lemma_a4_is_the_first_term() -> None:
    law = epoch_law(**SYSTEM_A, K=3, r=1)
    chain = worst_case_chain(**SYSTEM_A)
    bound = chain.limit * (math.exp(3 * chain.log_epoch) - math.exp(300 * chain.log_lam))
    assert bound == pytest.approx(0.665964983928, rel=1e-9)
    assert law.gap > bound


def test_e6_the_stationary_variance() -> None:
    chain = worst_case_chain(**SYSTEM_A)
    limit = epoch_law(**SYSTEM_A, K=3000).var
    assert limit == pytest.approx(1 / (chain.u - 0.5), rel=1e-12)
    assert limit != pytest.approx(1 / (chain.u + 0.125), rel=1e-4)


def test_the_limit_of_the_gap() -> None:
    chain = worst_case_chain(**SYSTEM_A)
    lam, epoch = math.exp(chain.log_lam), math.exp(chain.log_epoch)
    assert epoch_law(**SYSTEM_A, K=500, r=40).gap == pytest.approx(chain.push * lam**60 / (1 - epoch), rel=1e-10)


@pytest.mark.slow
def test_many_records() -> None:
    law = epoch_law(**FIGURE_1, K=25)
    assert np.shape(law.gap) == (FIGURE_1["n"],)
    gap, var_hat = np.asarray(law.gap), np.asarray(law.var_hat)
    assert (gap[:1000] > 0).all()
    assert var_hat[-1] > var_hat[0] > law.var


@for_each(
    "change",
    [
        {"K": 0},
        {"n": 1},
        {"c": 0.0},
        {"c": -1.0},
        {"alpha": 0.0},
        {"beta": math.nan},
        {"x_h": 0.0},
        {"eta": 0.0},
        {"eta": 2 / 401},
        {"eta": math.inf},
        {"r": 0},
        {"r": 101},
        {"r": [0]},
        {"r": [101]},
        {"batch_size": 3},
        {"batch_size": 200},
        {"n": 2, "x_h": 0.01, "alpha": 0.5},
    ],
)
def test_refusals(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        epoch_law(**{**SYSTEM_A, "K": 3, **change})


def test_types() -> None:
    with pytest.raises(InputTypeError):
        epoch_law(**SYSTEM_A, K=2.0)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError):
        epoch_law(**SYSTEM_A, K=2, r=[1.5])
    with pytest.raises(InputError):
        sgld_moments(**SYSTEM_A, j=-1)
    with pytest.raises(InputError):
        sgld_moments(**SYSTEM_A, j=3, r=101)
    assert sgld_moments(**SYSTEM_A, j=0, r=3) == (0.0, 1.0)
