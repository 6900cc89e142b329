import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.learning.sgld.oracles import renyi_by_quadrature
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.learning import gaussian_renyi, rdp_to_dp


@for_each(
    ("arguments", "expected"),
    [
        ((2, 0.3, 1, 0, 1.21), 0.0786722054922),
        ((5, 0.3, 1, 0, 1.21), 0.139163848173),
        ((3, 1, 2, -1, 1.9), 3.53157152629),
    ],
)
def test_worked_values(arguments: tuple[float, ...], expected: float) -> None:
    assert gaussian_renyi(*arguments) == pytest.approx(expected, rel=5e-12)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.floats(1.05, 4), st.floats(-2, 2), st.floats(0.3, 3), st.floats(0.3, 3))
def test_it_is_the_integral(nu: float, mean: float, v1: float, v2: float) -> None:
    if nu * v2 + (1 - nu) * v1 <= 0.2:
        return
    expected = renyi_by_quadrature(nu, mean, v1, 0.0, v2)
    assert gaussian_renyi(nu, mean, v1, 0.0, v2) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_infinite_where_the_integral_is() -> None:
    assert gaussian_renyi(2, 0, 2.0, 0, 1.0) == math.inf
    assert gaussian_renyi(2, 0, 2.1, 0, 1.0) == math.inf
    assert gaussian_renyi(2, 0, 1.9, 0, 1.0) < math.inf


def test_e1_the_printed_formula_is_negative() -> None:
    nu, m1, v1, m2, v2 = 2, 0.3, 1.0, 0.0, 1.21
    spread = nu * v2 + (1 - nu) * v1
    printed = math.log(v1 / v2) / 2 + (nu - 1) / 2 * math.log(v2 / spread) + nu * (m1 - m2) ** 2 / (2 * spread)
    assert printed == pytest.approx(-0.111948, abs=5e-7)
    assert gaussian_renyi(nu, m1, v1, m2, v2) > 0


def test_equal_distributions() -> None:
    assert gaussian_renyi(7.5, 1.0, 2.0, 1.0, 2.0) == 0.0


@for_each(
    "arguments",
    [
        (1, 0, 1, 0, 1),
        (0.5, 0, 1, 0, 1),
        (2, 0, 0, 0, 1),
        (2, 0, 1, 0, -1),
        (2, math.nan, 1, 0, 1),
        (2, 0, math.inf, 0, 1),
    ],
)
def test_refusals(arguments: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        gaussian_renyi(*arguments)


def test_types() -> None:
    with pytest.raises(InputTypeError):
        gaussian_renyi("2", 0, 1, 0, 1)  # type: ignore[arg-type]


def test_conversion() -> None:
    assert rdp_to_dp(28.631021116, 0.0039102556, 0.001) == pytest.approx(0.2539102556, abs=1e-10)
    assert rdp_to_dp(2.0, 0.0, 0.5) >= math.log(2)
    for arguments in ((1.0, 0.1, 0.1), (2.0, -0.1, 0.1), (2.0, 0.1, 0.0), (2.0, 0.1, 1.0)):
        with pytest.raises(InputError):
            rdp_to_dp(*arguments)
