import math
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.learning import (
    check_lemma_conditions,
    posterior_dp_holds,
    propose_test_sample,
    pts_n_min,
    pts_ratio_scale,
    sgld_sample,
    step_size,
)
from thresholdout.privacy.learning.sgld.propose_test_sample import (
    propose_test_sample_privacy,
    propose_test_sample_trace,
)

SETTING: dict[str, Any] = {
    "eps": 10,
    "delta": 0.05,
    "x_l": 0.5,
    "x_h": 1.0,
    "alpha": 1.0,
    "beta": 4.0,
    "rho1": 1.05,
    "rho2": 0.25,
    "gamma1": 0.3,
}
N = 20_000
D3 = (np.ones(N), np.full(N, N**1.025))
D4 = (np.append(np.ones(N - 1), 0.5), np.append(np.full(N - 1, N**1.025), N**1.025 / 2))


def test_worked_values() -> None:
    found = propose_test_sample_trace(*D3, **SETTING, noise=(0, 0, 0, 0), rng=0)
    assert found.nb == found.n2 == found.n_w == pytest.approx(19999.7697414907, abs=6e-11)
    assert found.size_v == found.size_w == N
    assert found.m == found.m_noisy == pytest.approx(25618.6208075, abs=5e-8)
    assert found.scale == pytest.approx(1.31275797928, abs=6e-12)
    assert found.n_min == pytest.approx(14345.9812677, abs=6e-8)
    assert found.mean == pytest.approx(25618.3005787, abs=5e-8)
    assert found.var == pytest.approx(1.24998437520e-5, rel=5e-12)
    assert found.reason == ""
    changed = propose_test_sample_trace(*D4, **SETTING, noise=(0, 0, 0, 0), rng=0)
    assert changed.mean == pytest.approx(25618.3005667, abs=5e-8)
    assert changed.var == pytest.approx(1.25003125078e-5, rel=5e-12)


def test_nothing_is_close() -> None:
    found = propose_test_sample_trace(*D3, **SETTING, noise=(0, 0, 13, 0))
    assert (found.value, found.size_w) == (None, 0)
    assert found.n_min == pytest.approx(14350.263, abs=5e-4)
    assert propose_test_sample_trace(*D3, **SETTING, noise=(0, 0, 0, -20_000)).value is None


def test_early_ends() -> None:
    few = propose_test_sample_trace(*D3, **SETTING, noise=(-30_000, 0, 0, 0))
    assert (few.value, few.size_v, few.reason) == (None, 0, "too few records have a small ratio")
    assert math.isnan(few.m)
    # A lucky noise does not help an empty selection.
    assert propose_test_sample_trace(*D3, **SETTING, noise=(-30_000, 30_000, 0, 0)).value is None
    assert propose_test_sample_trace(*D3, **SETTING, noise=(0, -30_000, 0, 0)).value is None
    assert propose_test_sample_trace(*D3, **SETTING, noise=(0, 0, 13, 1e9)).value is None


def test_e9_a_negative_ratio_counts_as_zero() -> None:
    rest = {name: value for name, value in SETTING.items() if name not in ("x", "y")}
    assert pts_n_min(-5.0, 100.0, **rest) == pts_n_min(0.0, 100.0, **rest)
    found = propose_test_sample_trace(np.ones(50), np.ones(50), **SETTING, noise=(0, 0, -1e6, 0))
    assert found.m_noisy < 0
    assert math.isfinite(found.n_min)


def test_records_are_clipped() -> None:
    wild = (np.array([5.0, -3.0, 1.0]), np.array([1.0, -7.0, math.e]))
    tame = (np.array([1.0, 0.5, 1.0]), np.array([1.0, 0.0, math.e]))
    ours, theirs = (propose_test_sample_trace(*data, **SETTING, noise=(3, 3, 0, 0)) for data in (wild, tame))
    assert (ours.m, ours.size_v, ours.size_w) == (theirs.m, theirs.size_v, theirs.size_w)


def test_n_min_is_what_claim_d27_needs() -> None:
    rest = {name: value for name, value in SETTING.items() if name not in ("rho1", "rho2")}
    for m, size in ((0.0, 10.0), (3.0, 1e4), (1e4, 1e5), (1e6, 1e3)):
        n = math.ceil(pts_n_min(m, size, **SETTING))
        assert n**0.3 >= size**0.25
        assert posterior_dp_holds(n, rest["eps"], rest["delta"], 0.5, 1.0, 1.0, 4.0, 0.3, m)


def test_e2_and_e9_in_n_min() -> None:
    many = {**SETTING, "beta": 400.0, "eps": 1e4}
    assert pts_n_min(0.0, 1.0, **many, printed_condition=True) <= pts_n_min(0.0, 1.0, **many)
    # The paper's last term has the true number of records; with the noisy one nothing private is in it.
    assert pts_n_min(0.0, 1e9, **SETTING) == pytest.approx(1e9 ** (0.25 / 0.3), rel=1e-9)


def test_e8_the_papers_constants_always_end_with_nothing() -> None:
    paper: dict[str, Any] = {
        **SETTING,
        "eps": 1.0,
        "delta": 0.1,
        "beta": 3.0,
        "rho1": 1.25,
        "rho2": 0.45,
        "gamma1": 0.49,
    }
    assert pts_n_min(1.0, 1000.0, **paper) == pytest.approx(7.6e153, rel=5e-3)
    assert propose_test_sample(np.ones(100_000), np.full(100_000, 100_000**1.15), **paper, rng=0) is None
    # beta = 3 and x_h = 1 are outside of the lemmas' own condition.
    assert not check_lemma_conditions(100_000, 1.0, 1.0, 3.0)["s > 3"]
    # 1/8 is below the claimed 1/6, and above what 6 delta < 1/2 allows.
    assert 1 / 8 < 1 / 6
    assert 6 / 8 >= 1 / 2


def test_laplace_margin() -> None:
    # P(Lap(1/eps) <= t) = 1 - delta, P(|Lap| <= t) = 1 - 2 delta
    eps, delta = 0.7, 0.03
    t = (
        3
        - propose_test_sample_trace(
            [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], **{**SETTING, "eps": eps, "delta": delta}, noise=(0, 0, 0, 0)
        ).nb
    )
    assert 1 - 0.5 * math.exp(-eps * t) == pytest.approx(1 - delta, rel=1e-12)
    assert 1 - math.exp(-eps * t) == pytest.approx(1 - 2 * delta, rel=1e-12)


def test_a_chain_in_place_of_the_posterior() -> None:
    # Claim IV.9: its draw is far from the posterior's, and has no guarantee.
    def chain(x: Any, y: Any) -> float:
        eta = step_size(len(x), 1.0, 1.0, 4.0, 1.0)
        return float(sgld_sample(x, y, 1.0, 4.0, eta, 1000, rng=1)[0])

    found = propose_test_sample_trace(*D3, **SETTING, noise=(0, 0, 0, 0), sampler=chain)
    assert found.value is not None
    assert found.value < 0.9 * found.mean


def test_only_a_number_or_none_leaves() -> None:
    found = propose_test_sample(*D3, **SETTING, rng=3)
    assert isinstance(found, float)
    assert propose_test_sample(*D3, **SETTING, rng=3) == found
    assert propose_test_sample(*D3, **SETTING) != propose_test_sample(*D3, **SETTING)


def test_privacy() -> None:
    assert tuple(propose_test_sample_privacy(1.0, 0.01)) == (5.0, 0.02)
    assert propose_test_sample_privacy(0.1, 0.01, "replace_one").eps == 0.4
    assert propose_test_sample_privacy(0.1, 0.01).eps >= 0.5


TINY: dict[str, Any] = {
    "eps": 0.5,
    "delta": 0.1,
    "x_l": 0.99,
    "x_h": 1.0,
    "alpha": 1.0,
    "beta": 3.1,
    "rho1": 1.01,
    "rho2": 0.09,
    "gamma1": 0.1,
}


def _violates(first: np.ndarray, second: np.ndarray, eps: float, delta: float) -> bool:
    """Return whether outcomes of two neighbours contradict (eps, delta), with an error rate below 1e-9."""
    slack = math.sqrt(math.log(4 / 1e-9) / (2 * first.size))
    for a, b in ((first, second), (second, first)):
        if a.mean() - slack > math.exp(eps) * (b.mean() + slack) + delta:
            return True
    return False


@pytest.mark.statistical
def test_whether_there_is_a_result_is_private() -> None:
    least = propose_test_sample_trace(np.ones(5), np.ones(5), **TINY, noise=(0, 30, 0, 0)).n_min
    n = math.ceil(least) + 4  # about as many records as are needed
    data = [(np.ones(size), np.ones(size)) for size in (n, n - 1)]
    eps, delta = propose_test_sample_privacy(TINY["eps"], TINY["delta"])

    def results(place: int, noise: Any, runs: int) -> np.ndarray:
        generator = np.random.default_rng(place)
        traces = [propose_test_sample_trace(*data[place], **TINY, noise=noise, rng=generator) for _ in range(runs)]
        return np.array([trace.value is not None for trace in traces], dtype=float)

    first, second = (results(place, None, 2000) for place in (0, 1))
    assert 0.05 < first.mean() < 0.95
    assert not _violates(first, second, eps, delta)
    # Without noise on the last count, one record decides; all runs are alike.
    silent = [propose_test_sample_trace(x, y, **TINY, noise=(0, 0, 0, 0)) for x, y in data]
    shift = silent[0].n_min - silent[1].n_w - 0.5
    first, second = (np.repeat(results(place, (0, 0, 0, shift), 1), 5000) for place in (0, 1))
    assert _violates(first, second, eps, delta)


@for_each(
    "change",
    [
        {"eps": 0.0},
        {"delta": 0.0},
        {"delta": 0.5},
        {"x_l": 0.0},
        {"x_l": 1.0},
        {"alpha": 0.0},
        {"beta": 2.9},
        {"rho1": 1.0},
        {"rho1": 1.5},
        {"rho2": 0.0},
        {"rho2": 0.5},
        {"gamma1": 0.25},
        {"gamma1": 0.5},
    ],
)
def test_refusals(change: dict[str, float]) -> None:
    with pytest.raises(InputError):
        propose_test_sample(*D3, **{**SETTING, **change})


def test_more_refusals() -> None:
    with pytest.raises(InputError):
        propose_test_sample([], [], **SETTING)
    with pytest.raises(InputError):
        propose_test_sample([1.0], [math.inf], **SETTING)
    with pytest.raises(InputError, match="four"):
        propose_test_sample_trace([1.0], [1.0], **SETTING, noise=(0, 0))
    for nb, n2 in ((0.0, 3.0), (3.0, 1.0)):
        with pytest.raises(InputError):
            pts_ratio_scale(nb, n2, eps=1.0, x_l=0.5, x_h=1.0, rho1=1.1)
