import math
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from tests.thresholdout.privacy.learning.sgld.oracles import SYSTEM_A, hockey_stick, normal_density
from thresholdout.errors import InputError
from thresholdout.privacy.learning import epoch_law, pair_epsilon, posterior, worst_case_pair
from thresholdout.privacy.learning.sgld.lower_bounds import eps_threshold
from thresholdout.privacy.learning.sgld.worst_case_pair import posterior_pair_epsilon


@pytest.mark.slow
@for_each(
    ("K", "forward", "backward"),
    [(1, 1.2371075, 1.2689715), (4, 6.7914901, 7.0572956), (13, 18.1125623, 18.8817995)],
)
def test_system_a(K: int, forward: float, backward: float) -> None:
    found = {way: pair_epsilon(**SYSTEM_A, K=K, delta=0.001, direction=way) for way in ("D1->D2", "D2->D1", "max")}
    assert found["D1->D2"] == pytest.approx(forward, abs=1e-7)
    assert found["D2->D1"] == pytest.approx(backward, abs=1e-7)
    assert found["max"] == max(found["D1->D2"], found["D2->D1"])


@pytest.mark.slow
@for_each(("n", "c", "K", "delta"), [(5, 8.0, 3, 0.01), (30, 20.0, 6, 0.2), (30, 20.0, 6, 1e-6), (2, 9.0, 1, 0.1)])
def test_it_is_the_hockey_stick(n: int, c: float, K: int, delta: float) -> None:
    law = epoch_law(n, c, 1.0, 0.7, 3.5, K)
    gap, var_hat = np.asarray(law.gap), np.asarray(law.var_hat)
    reach = 12 * math.sqrt(law.var) + float(gap.max())

    def first(x: Any) -> Any:
        return normal_density(x, 0.0, law.var)

    def second(x: Any) -> Any:
        return sum(normal_density(x, -g, v) for g, v in zip(gap, var_hat, strict=True)) / n

    for way, p, q in (("D1->D2", first, second), ("D2->D1", second, first)):
        eps = pair_epsilon(n, c, 1.0, 0.7, 3.5, K, delta=delta, direction=way)
        assert hockey_stick(p, q, eps, -reach, reach) == pytest.approx(delta, rel=1e-5), way
        assert eps > 0


def test_it_is_above_all_thresholds() -> None:
    for K in (2, 13):
        for way in ("D1->D2", "D2->D1"):
            best = eps_threshold(**SYSTEM_A, K=K, delta=0.001, direction=way)
            exact = pair_epsilon(**SYSTEM_A, K=K, delta=0.001, direction=way)
            assert best <= exact + 1e-9
            assert exact < best + 0.1 or way == "D1->D2"


def test_large_losses() -> None:
    # e^epsilon is no float here.
    found = pair_epsilon(3000, 3000**1.4, 1.0, 1.0, 4.0, 17, delta=0.001)
    assert 2188.76 < found < 3000


def test_without_delta() -> None:
    assert pair_epsilon(**SYSTEM_A, K=13, delta=0) == math.inf
    forward = pair_epsilon(**SYSTEM_A, K=13, delta=0, direction="D1->D2")
    nearly = pair_epsilon(**SYSTEM_A, K=13, delta=1e-250, direction="D1->D2")
    assert 110 < nearly <= forward
    assert pair_epsilon(**SYSTEM_A, K=13, delta=0.999) == 0.0


@pytest.mark.slow
@for_each(("n", "expected"), [(100, 0.58061), (300, 0.49477), (1000, 0.42385), (3000, 0.37044), (10_000, 0.32032)])
def test_posterior_in_the_growth_table(n: int, expected: float) -> None:
    assert posterior_pair_epsilon(n, n**1.4, 1.0, 1.0, 4.0, delta=0.001) == pytest.approx(expected, abs=5.5e-6)


def test_posterior_is_the_hockey_stick() -> None:
    (m1, v1), (m2, v2) = (posterior(*data, 1.0, 4.0) for data in worst_case_pair(100, SYSTEM_A["c"], 1.0))

    def first(x: Any) -> Any:
        return normal_density(x, m1, v1)

    def second(x: Any) -> Any:
        return normal_density(x, m2, v2)

    for way, p, q in (("D1->D2", first, second), ("D2->D1", second, first)):
        eps = posterior_pair_epsilon(**SYSTEM_A, delta=0.001, direction=way)
        assert hockey_stick(p, q, eps, m1 - 1.0, m1 + 1.0) == pytest.approx(0.001, rel=1e-5)


@for_each("change", [{"delta": 1.0}, {"delta": -1e-9}, {"n": 20_001}, {"direction": "D1"}, {"K": 0}])
def test_refusals(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        pair_epsilon(**{**SYSTEM_A, "K": 3, "delta": 0.1, **change})


def test_posterior_refusals() -> None:
    with pytest.raises(InputError):
        posterior_pair_epsilon(**SYSTEM_A, delta=1.0)
