import math
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from tests.thresholdout.privacy.learning.sgld.oracles import SYSTEM_A
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.learning import gaussian_renyi, in_domain, posterior, step_size, worst_case_pair
from thresholdout.privacy.learning.sgld.regression_model import RegressionDomain
from thresholdout.privacy.learning.sgld.worst_case_pair import posterior_pair_epsilon


def test_the_pair_lies_in_its_domain() -> None:
    first, second = worst_case_pair(5, 3.0, 2.0)
    for x, y in (first, second):
        assert in_domain(x, y, 0.1, 1.0, 2.0, 3.0)
        assert np.allclose(y / x, 3.0)
    assert not in_domain(*second, 0.1, 1.1, 2.0, 3.0)
    assert (first[0] != second[0]).sum() == 1
    assert worst_case_pair(1, 1.0, 1.0)[1][0].tolist() == [0.5]


def test_domain() -> None:
    x = np.ones(100)
    width = 100**0.1
    assert in_domain(x, np.full(100, 5 + width - 1e-9), 0.1, 0.5, 1.0, 5.0)
    assert not in_domain(x, np.full(100, 5 + width + 1e-9), 0.1, 0.5, 1.0, 5.0)
    assert not in_domain(x, np.full(100, -0.1), 0.1, 0.5, 1.0, 0.1)
    assert RegressionDomain(1.0, 0.5, 1.0).gamma1 == 0.1


def test_posterior_of_system_a() -> None:
    (mean, var), (mean2, var2) = (posterior(*data, 1.0, 4.0) for data in worst_case_pair(100, SYSTEM_A["c"], 1.0))
    assert var == pytest.approx(0.00249376558604, rel=1e-11)
    assert var2 == pytest.approx(0.00251256281407, rel=1e-11)
    assert mean - mean2 == pytest.approx(0.00472165020522, rel=1e-9)
    assert gaussian_renyi(2, mean, var, mean2, var2) == pytest.approx(0.00883510134083, rel=1e-9)
    assert gaussian_renyi(10, mean, var, mean2, var2) == pytest.approx(0.0417009062952, rel=1e-9)
    assert posterior_pair_epsilon(**SYSTEM_A, delta=0.001) == pytest.approx(0.2020628, abs=5e-8)


def test_posterior_minimises() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=30), rng.normal(size=30)
    mean, var = posterior(x, y, 0.7, 2.5)

    def energy(theta: float) -> float:
        return float(0.7 / 2 * theta**2 + 2.5 / 2 * ((y - theta * x) ** 2).sum())

    assert energy(mean) < min(energy(mean - 1e-4), energy(mean + 1e-4))
    assert (energy(mean + 1e-2) - energy(mean)) * 2 / 1e-4 == pytest.approx(1 / var, rel=1e-6)


def test_step_size() -> None:
    assert step_size(100, 1.0, 1.0, 4.0) == pytest.approx(1.24377335962e-5, rel=1e-11)
    assert step_size(100, 1.0, 1.0, 4.0, numerator=1.0) == 1 / 401**2
    assert step_size(10, 1.0, 1.0, 4.0) == pytest.approx(0.00118976799524, rel=1e-11)


def test_a_record_of_zeros_is_in_no_domain() -> None:
    # E12: Lemma A.1's "(0, 0)" is outside of what it is about.
    assert not in_domain([1.0, 0.0], [1.0, 0.0], 0.1, 0.5, 1.0, 1.0)


@for_each(
    "call",
    [
        lambda: worst_case_pair(0, 1.0, 1.0),
        lambda: worst_case_pair(3, 0.0, 1.0),
        lambda: worst_case_pair(3, 1.0, -1.0),
        lambda: posterior([], [], 1.0, 1.0),
        lambda: posterior([1.0], [1.0, 2.0], 1.0, 1.0),
        lambda: posterior([1.0], [math.nan], 1.0, 1.0),
        lambda: posterior([1.0], [1.0], 0.0, 1.0),
        lambda: posterior([1.0], [1.0], 1.0, -1.0),
        lambda: step_size(0, 1.0, 1.0, 1.0),
        lambda: step_size(1, 1.0, 1.0, 1.0, numerator=0.0),
        lambda: in_domain([1.0], [1.0], 0.5, 0.5, 1.0, 1.0),
        lambda: in_domain([1.0], [1.0], 0.1, 1.5, 1.0, 1.0),
        lambda: in_domain([[1.0]], [1.0], 0.1, 0.5, 1.0, 1.0),
        lambda: RegressionDomain(0.0, 0.5, 1.0),
        lambda: RegressionDomain(1.0, 0.5, 1.0, 0.5),
    ],
)
def test_refusals(call: Any) -> None:
    with pytest.raises(InputError):
        call()


def test_types() -> None:
    with pytest.raises(InputTypeError):
        worst_case_pair(3.0, 1.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(InputTypeError):
        posterior(["a"], [1.0], 1.0, 1.0)
