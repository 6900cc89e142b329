import math

import pytest

from benchmarks.papers.independent_draws import uniform_sampling_bound, uniform_sampling_cap
from tests.thresholdout.privacy.learning.sgld.oracles import SYSTEM_A
from thresholdout.errors import InputError
from thresholdout.privacy.learning import eps_tail, sgld_sample, step_size, worst_case_pair


@pytest.mark.slow
def test_e7_the_directions_differ() -> None:
    # System A after 12 epochs: the proof's direction is capped, and cyclic sweeps are nearly there already.
    assert pytest.approx(5.78407e-6, rel=1e-6) == (1 - 1 / 100) ** 1200
    cap = uniform_sampling_cap(100, 1200)
    assert cap == pytest.approx(12.0604, abs=5e-5)
    assert math.exp(-cap) == pytest.approx((1 - 1 / 100) ** 1200, rel=1e-12)
    assert eps_tail(**SYSTEM_A, K=11, delta=0.001) < cap
    reverse = uniform_sampling_bound(**SYSTEM_A, j=1200, delta=0.001, patterns=40_000, rng=0)
    assert 28 < reverse < 37  # about 36 without a confidence limit
    # With a larger ratio the cyclic chain passes the cap, and the uniform one cannot.
    assert eps_tail(**{**SYSTEM_A, "c": 1000.0}, K=12, delta=0.001) > 5 * cap


@pytest.mark.statistical
def test_the_cap_holds_in_simulation() -> None:
    # P1(S) <= e^cap P2(S) for the events above thresholds, few records and epochs so that it matters.
    n, c, j = 4, 60.0, 6
    first, second = worst_case_pair(n, c, 1.0)
    eta = step_size(n, 1.0, 1.0, 4.0)
    draws = [
        sgld_sample(*data, 1.0, 4.0, eta, j, order="uniform", n_chains=200_000, rng=seed)
        for seed, data in enumerate((first, second))
    ]
    cap = uniform_sampling_cap(n, j)
    slack = math.sqrt(math.log(2 / 1e-10) / (2 * 200_000))
    seen = []
    for shift in (-1.0, 0.0, 0.5, 1.0):
        threshold = draws[0].mean() + shift * draws[0].std()
        p, q = ((each > threshold).mean() for each in draws)
        assert p - slack <= math.exp(cap) * (q + slack)
        seen.append(math.log(p / max(q, 1e-9)))
    assert max(seen) > 0.5 * cap


def test_bound_is_a_bound() -> None:
    small = uniform_sampling_bound(**SYSTEM_A, j=10, delta=0.4, patterns=100, rng=0)
    assert small == 0.0
    first, again = (uniform_sampling_bound(**SYSTEM_A, j=400, delta=0.001, rng=1) for _ in range(2))
    assert first == again > 0


def test_refusals() -> None:
    for n, j in ((1, 5), (5, 0)):
        with pytest.raises(InputError):
            uniform_sampling_cap(n, j)
    for change in ({"delta": 0.5}, {"error": 0.0}, {"patterns": 3}, {"j": 0}):
        with pytest.raises(InputError):
            uniform_sampling_bound(**{**SYSTEM_A, "j": 5, "delta": 0.1, **change})
