import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.learning import gaussian_renyi, in_domain, posterior, posterior_dp_holds, theorem_parameters
from thresholdout.privacy.learning.sgld.posterior_bound import (
    Sizes,
    paper_order,
    posterior_dp,
    posterior_rdp_bound,
    posterior_size_terms,
)

FIGURE: dict[str, Any] = {"x_l": 0.9, "x_h": 1.8, "alpha": 2.0, "beta": 1.0, "gamma1": 0.1}
N_FIGURE = 17_864_389
LARGE: dict[str, Any] = {"x_l": 0.5, "x_h": 1.0, "alpha": 1.0, "beta": 4.0, "gamma1": 0.1, "c": 1e6}


def test_worked_values() -> None:
    nu = paper_order(0.5, 0.001)
    assert nu == pytest.approx(28.631021116, abs=5e-10)
    assert posterior_rdp_bound(N_FIGURE, nu, **FIGURE, c=20_920_252.506786935) == pytest.approx(0.0039102556, abs=6e-11)
    found = posterior_dp(N_FIGURE, 0.001, **FIGURE, c=20_920_252.506786935, nu=nu, sharp=False)
    assert found == pytest.approx(0.2539102556, abs=6e-11)
    assert paper_order(1.0, 0.01) == pytest.approx(10.210340372, abs=5e-10)
    assert posterior_rdp_bound(10**6, 10.210340372, **LARGE) == pytest.approx(0.0154391353302, abs=5e-13)
    total = posterior_dp(10**6, 0.01, **LARGE, nu=paper_order(1.0, 0.01), sharp=False)
    assert total == pytest.approx(0.5154391353302, abs=5e-13)


def test_largest_certified_ratio_of_figure_1() -> None:
    def epsilon(c: float) -> float:
        return posterior_dp(N_FIGURE, 0.001, **FIGURE, c=c, nu=28.631021116, sharp=False)

    assert epsilon(3.77055e8) < 0.5 < epsilon(3.77065e8)


def test_e2_the_printed_condition_is_false() -> None:
    n, nu, w = 403, 100, 403**0.49
    c = 1.01 * w
    setting: dict[str, Any] = {"x_l": 1.5, "x_h": 3.0, "alpha": 0.5, "beta": 10.0, "gamma1": 0.49, "c": c}
    x = np.full(n, 1.5)
    y = x * (c - w)
    other_x, other_y = x.copy(), y.copy()
    other_x[-1], other_y[-1] = 3.0, 3.0 * (c + w)
    for data in ((x, y), (other_x, other_y)):
        assert in_domain(*data, 0.49 + 1e-9, 1.5, 3.0, c)  # but for rounding at the ends
    first, second = posterior(x, y, 0.5, 10.0), posterior(other_x, other_y, 0.5, 10.0)
    true = gaussian_renyi(nu, *first, *second)
    assert true == pytest.approx(240942.78, abs=5e-3)
    printed = posterior_rdp_bound(n, nu, **setting, printed_condition=True)
    assert printed == pytest.approx(82285.73, abs=5e-3)
    assert true > 2.9 * printed
    with pytest.raises(InputError, match="more than 4001"):
        posterior_rdp_bound(n, nu, **setting)
    with pytest.raises(InputError, match="more than 401"):
        posterior_rdp_bound(401, nu, **setting, printed_condition=True)


UNIT = st.floats(0, 1)
CORNER = st.sampled_from([0.0, 1.0]) | UNIT


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.floats(1.01, 30),  # order
    st.floats(1.0, 4.0),  # x_h/x_l
    st.floats(0.1, 3.0),  # x_h
    st.floats(-3, 3),  # log10 alpha
    st.floats(-0.5, 2),  # log10 beta
    st.floats(0.01, 0.49),
    st.floats(-2, 3),  # log10 c/w
    st.tuples(CORNER, CORNER, CORNER, CORNER, CORNER, CORNER),
    st.floats(1.0, 3.0),  # of the least n
    st.sampled_from(["replace", "leave out"]),
)
def test_no_pair_is_above_the_bounds(
    nu: float,
    ratio: float,
    x_h: float,
    log_alpha: float,
    log_beta: float,
    gamma1: float,
    log_c: float,
    place: tuple[float, float, float, float, float, float],
    spare: float,
    how: str,
) -> None:
    x_l, alpha, beta = x_h / ratio, 10**log_alpha, 10**log_beta
    n = math.ceil(spare * (1 + 10 * nu * (x_h / x_l) ** 2)) + 1
    w = n**gamma1
    c = w * 10**log_c

    def record(size: float, height: float) -> tuple[float, float]:
        low = max(0.0, c - w)
        return x_l + size * (x_h - x_l), low + height * (c + w - low)

    common, old, new = record(*place[:2]), record(*place[2:4]), record(*place[4:])

    def law(*last: tuple[float, float]) -> tuple[float, float]:
        every = [(n - 1, *common), *((1, *each) for each in last)]
        precision = alpha + beta * sum(times * x * x for times, x, _ in every)
        return beta * sum(times * x * x * k for times, x, k in every) / precision, 1 / precision

    first, second = law(old), law(new) if how == "replace" else law()
    setting = (x_l, x_h, alpha, beta, gamma1, c)
    lemma = posterior_rdp_bound(n, nu, *setting)
    sharp = posterior_rdp_bound(n, nu, *setting, sharp=True)
    for pair in ((*first, *second), (*second, *first)):
        true = gaussian_renyi(nu, *pair)
        assert true <= min(lemma, sharp) * (1 + 1e-9) + 1e-12
    assert sharp <= lemma * (1 + 1e-12) or nu < 2


def test_the_bound_is_nearly_reached() -> None:
    # Records of one size, with the changed one as far from the others as the domain allows.
    n, nu, w, c = 10**5, 5.0, (10**5) ** 0.3, 1e3
    first = posterior(np.ones(n), np.append(np.full(n - 1, c - w), c + w), 1.0, 4.0)
    second = posterior(np.ones(n), np.full(n, c - w), 1.0, 4.0)
    bound = posterior_rdp_bound(n, nu, 1.0, 1.0, 1.0, 4.0, 0.3, c, sharp=True)
    assert gaussian_renyi(nu, *first, *second) > 0.85 * bound


def test_best_order() -> None:
    best = posterior_dp(10**6, 0.01, **LARGE)
    for nu in (3.0, 10.0, 40.0, 200.0):
        assert posterior_dp(10**6, 0.01, **LARGE, nu=nu) >= best * 0.99
    assert best < posterior_dp(10**6, 0.01, **LARGE, nu=paper_order(1.0, 0.01), sharp=False)
    assert posterior_dp(30, 0.01, **LARGE) == math.inf


@pytest.mark.slow
@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.floats(0.05, 3),
    st.floats(1e-8, 0.3),
    st.floats(0.05, 10),
    st.floats(0.5, 20),
    st.floats(0.02, 0.4),
    st.floats(0, 1e4),
)
def test_d27_is_enough(eps: float, delta: float, alpha: float, beta: float, gamma1: float, c: float) -> None:
    setting = (0.5, 1.0, alpha, beta, gamma1, c)
    n = 16
    while not posterior_dp_holds(n, eps, delta, *setting):
        n *= 2
        assume(n < 10**12)
    nu = paper_order(eps, delta)
    assert posterior_dp(n, delta, *setting, nu=nu, sharp=False) <= eps
    assert not posterior_dp_holds(15, eps, delta, *setting)


def test_d27_of_the_library() -> None:
    rest = (0.01, 0.5, 1.0, 1.0, 100.0, 0.1, 1e3)
    assert posterior_dp_holds(10**7, 5.0, *rest)
    n = 1200  # above the printed condition for beta = 100, and below the corrected one
    sizes = Sizes(0.5, 1.0, 1.0, 100.0, 0.1)
    nu = paper_order(5.0, 0.01)
    assert sizes.least(nu, True) < 20 < sizes.least(nu, False) < n


TERMS = (65, 50746.2024, 141395.841, 11087474.9, 369199140.72)


def test_d28() -> None:
    assert posterior_size_terms(0.5, 0.001, **FIGURE, gamma2=1.2) == pytest.approx(TERMS, rel=5e-9)
    assert posterior_size_terms(0.5, 0.001, **FIGURE, gamma2=1.22)[3] == pytest.approx(17_864_770, abs=1)
    for gamma2 in (0.1, 1.5):
        with pytest.raises(InputError, match="gamma2"):
            posterior_size_terms(0.5, 0.001, **FIGURE, gamma2=gamma2)


@for_each("printed", [True, False])
def test_theorem(printed: bool) -> None:
    setting: dict[str, Any] = {
        "eps": 0.5,
        "eps_prime": 38,
        "delta": 0.001,
        "alpha": 2,
        "beta": 1,
        "x_h": 1.8,
        "gamma1": 0.1,
    }
    found = theorem_parameters(**setting, gamma2=1.2, printed_condition=printed)
    assert found["n1"] == pytest.approx(1.61728395, abs=5e-9)
    assert found["terms"] == pytest.approx(TERMS, rel=5e-9)
    assert found["n3"] == pytest.approx(1147.24084, abs=5e-6)
    assert found["n4"] == pytest.approx(1.894940781e14, rel=5e-10)
    assert found["n_p"] == math.ceil(found["n4"])
    more = theorem_parameters(**setting, gamma2=1.4, printed_condition=printed)
    assert more["n4"] == pytest.approx(13765684.80, abs=6e-3)
    assert more["n_p"] == pytest.approx(5.01611e25, rel=5e-6)
    for each in (found, more):
        assert isinstance(each["n_p"], int)
        assert each["c_p"] == pytest.approx(each["n_p"] ** (1.2 if each is found else 1.4))
        assert each["posterior_epsilon"] <= 0.5
        assert each["sgld_epsilon"] > 38


def test_theorem_with_beta_above_one() -> None:
    arguments = (1, 10, 1e-5, 1, 4, 1, 0.2, 1.35)
    printed, ours = (theorem_parameters(*arguments, printed_condition=how) for how in (True, False))
    assert printed["n_p"] == pytest.approx(2.757103350513e15, rel=5e-13)
    assert ours["n_p"] < printed["n_p"]  # the corrected condition is stronger, and the slack for c + w smaller
    assert ours["n3"] > printed["n3"]
    assert ours["posterior_epsilon"] <= 1
    assert ours["sgld_epsilon"] > 10


def test_theorem_out_of_reach() -> None:
    found = theorem_parameters(0.5, 38, 0.001, 2, 1, 1.8, 0.1, 1.4999)
    assert found["n_p"] == math.inf
    assert found["sgld_epsilon"] is None


@for_each(
    "change",
    [
        {"eps": 0.0},
        {"eps_prime": -1.0},
        {"delta": 0.0},
        {"delta": 0.5},
        {"x_h": 1.0},
        {"gamma1": 0.5},
        {"gamma2": 1.1},
        {"gamma2": 1.5},
        {"alpha": 0.0},
    ],
)
def test_theorem_refusals(change: dict[str, float]) -> None:
    setting: dict[str, Any] = {"eps": 0.5, "eps_prime": 38.0, "delta": 0.001, "alpha": 2.0, "beta": 1.0, "x_h": 1.8}
    setting |= {"gamma1": 0.1, "gamma2": 1.2, **change}
    with pytest.raises(InputError):
        theorem_parameters(**setting)


@for_each("change", [{"nu": 1.0}, {"x_l": 2.0}, {"x_l": 0.0}, {"alpha": -1.0}, {"gamma1": 0.0}, {"c": -1.0}, {"n": 0}])
def test_refusals(change: dict[str, float]) -> None:
    setting: dict[str, Any] = {"n": 10**6, "nu": 2.0, **LARGE, **change}
    with pytest.raises(InputError):
        posterior_rdp_bound(**setting)
