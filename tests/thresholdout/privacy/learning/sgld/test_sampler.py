import math
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from tests.terminal import bars_at_once
from tests.thresholdout.privacy.learning.sgld.oracles import recursion
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.learning import epoch_law, sgld_sample, step_size, worst_case_pair
from thresholdout.privacy.learning.sgld import sampler
from thresholdout.privacy.learning.sgld.sampler import DivergingChainWarning, batches

SYSTEM: dict[str, Any] = {"n": 20, "c": 37.0, "x_h": 1.1, "alpha": 1.3, "beta": 4.0}
ETA = step_size(20, 1.1, 1.3, 4.0)
PAIR = worst_case_pair(20, 37.0, 1.1)
SIGMAS = 6.2  # two-sided error rate below 1e-9


def _deviations(draws: np.ndarray, mean: float, var: float) -> tuple[float, float]:
    """Return how many standard errors mean and variance of normal draws are off."""
    off = (draws.mean() - mean) / math.sqrt(var / draws.size)
    return abs(float(off)), abs(float((draws.var(ddof=1) / var - 1) * math.sqrt((draws.size - 1) / 2)))


@pytest.mark.statistical
def test_chains_have_the_exact_law() -> None:
    law = epoch_law(**SYSTEM, K=6)
    assert (round(law.mean, 4), round(law.var, 5)) == (25.8330, 0.07515)
    first = sgld_sample(*PAIR[0], 1.3, 4.0, ETA, 120, n_chains=200_000, rng=1)
    assert max(_deviations(first, law.mean, law.var)) < SIGMAS
    # A step size that is 30 % off is caught.
    wrong = sgld_sample(*PAIR[0], 1.3, 4.0, 1.3 * ETA, 120, n_chains=20_000, rng=1)
    assert max(_deviations(wrong, law.mean, law.var)) > SIGMAS

    second = sgld_sample(*PAIR[1], 1.3, 4.0, ETA, 120, n_chains=200_000, rng=2)
    gap, var_hat = np.asarray(law.gap), np.asarray(law.var_hat)
    mixed = float(var_hat.mean() + gap.var())
    assert (round(law.mean - gap.mean(), 4), round(mixed, 5)) == (25.3224, 0.08170)
    assert max(_deviations(second, law.mean - float(gap.mean()), mixed)) < SIGMAS
    above = float(np.mean([0.5 * math.erfc(g / math.sqrt(2 * v)) for g, v in zip(gap, var_hat, strict=True)]))
    assert round(above, 5) == 0.03700
    assert abs((second > law.mean).mean() - above) < SIGMAS * math.sqrt(above * (1 - above) / second.size)
    assert abs((first > law.mean).mean() - above) > SIGMAS * math.sqrt(0.25 / first.size)


def _uniform_moments(x: np.ndarray, y: np.ndarray, eta: float, steps: int, batch: int) -> tuple[float, float]:
    """Return mean and variance under independent draws, from the first two moments of a step."""
    n = x.size
    slope, pull = 4.0 * x * x, 4.0 * x * y
    scale = n / batch
    L = 1 - eta / 2 * 1.3 - eta / 2 * n * slope.mean()
    R = eta / 2 * n * pull.mean()
    varL, varR = (eta / 2 * scale) ** 2 * batch * np.array([slope.var(), pull.var()])
    cov = -((eta / 2 * scale) ** 2) * batch * float(np.mean(slope * pull) - slope.mean() * pull.mean())
    mean, second = 0.0, 1 / 1.3
    for _ in range(steps):
        second = (L**2 + varL) * second + 2 * (L * R + cov) * mean + varR + R**2 + eta
        mean = L * mean + R
    return mean, second - mean**2


@pytest.mark.statistical
@pytest.mark.parametrize("batch", [1, 5])
def test_independent_draws(batch: int) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.5, 1.5, 12)
    y = 3 * x + rng.normal(size=12)
    mean, var = _uniform_moments(x, y, 1e-3, 150, batch)
    draws = sgld_sample(x, y, 1.3, 4.0, 1e-3, 150, batch_size=batch, order="uniform", n_chains=100_000, rng=3)
    assert abs(draws.mean() - mean) < SIGMAS * math.sqrt(var / draws.size)
    assert draws.var() == pytest.approx(var, rel=0.05)
    other = _uniform_moments(x, y, 1e-3, 150, 3)
    assert abs(other[1] / var - 1) > 0.02


def test_each_sweep_has_every_record_once() -> None:
    rng = np.random.default_rng(0)
    for order in ("cyclic", "reshuffle"):
        seen = np.array([batch for batch, _ in batches(rng, order, 12, 3, 5, 12)])
        assert seen.shape == (12, 3, 5)
        sweeps = seen.reshape(3, 12, 5)
        assert (np.sort(sweeps, axis=1) == np.arange(12)[:, None]).all()
        assert (sweeps[0] == sweeps[1]).all() == (order == "cyclic")
        assert len({tuple(sweeps[0, :, chain]) for chain in range(5)}) == 5
    drawn = np.array([batch for batch, _ in batches(rng, "uniform", 12, 3, 5, 400)])
    assert drawn.shape == (400, 3, 5)
    assert np.bincount(drawn.ravel(), minlength=12).min() > 350


def test_one_step_by_hand() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, -50.0])
    noise = sgld_sample(x, y, 1.0, 2.0, 1e-4, 1, batch_size=2, theta0=0.0, rng=7)
    quiet = sgld_sample(x, 0 * y, 1.0, 2.0, 1e-4, 1, batch_size=2, theta0=0.0, rng=7)
    assert noise - quiet == pytest.approx(1e-4 / 2 * 2.0 * (3.0 - 100.0), rel=1e-9)
    clipped = sgld_sample(x, y, 1.0, 2.0, 1e-4, 1, batch_size=2, theta0=0.0, rng=7, clip=4.0)
    assert clipped - quiet == pytest.approx(1e-4 / 2 * (4.0 - 4.0), abs=1e-12)
    one_sided = sgld_sample(x, y, 1.0, 2.0, 1e-4, 1, batch_size=2, theta0=0.0, rng=7, clip=100.0)
    assert one_sided - quiet == pytest.approx(1e-4 / 2 * (6.0 - 100.0), rel=1e-9)


def test_the_prior_is_not_clipped() -> None:
    x, y = np.ones(3), np.zeros(3)
    path = sgld_sample(x, y, 5.0, 1e-12, 1e-6, 1, theta0=1e6, rng=0, clip=1e-3, return_path=True)
    assert path[0, 1] - path[0, 0] == pytest.approx(-1e-6 / 2 * 5.0 * 1e6, rel=1e-3)


@for_each("clip", [None, 2.0])
@for_each("batch", [1, 4])
@for_each("order", ["uniform", "cyclic", "reshuffle"])
def test_a_matrix_of_one_column_is_a_vector(order: str, batch: int, clip: float | None) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0.5, 1.5, 12)
    y = 3 * x + rng.normal(size=12)
    rest: dict[str, Any] = {"batch_size": batch, "order": order, "clip": clip, "n_chains": 7, "rng": 3}
    vector = sgld_sample(x, y, 1.0, 4.0, 1e-3, 60, return_path=True, **rest)
    matrix = sgld_sample(x[:, None], y, 1.0, 4.0, 1e-3, 60, return_path=True, **rest)
    assert matrix.shape == (7, 61, 1)
    assert matrix[..., 0] == pytest.approx(vector, rel=1e-10)
    assert sgld_sample(x, y, 1.0, 4.0, 1e-3, 60, **rest) == pytest.approx(vector[:, -1], rel=1e-12)


@pytest.mark.statistical
def test_several_slopes() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=50)
    precision = 2.0 * np.eye(3) + 4.0 * X.T @ X
    expected = np.linalg.solve(precision, 4.0 * X.T @ y)
    draws = sgld_sample(X, y, 2.0, 4.0, 5e-4, 500, batch_size=50, order="cyclic", n_chains=1000, rng=4)
    spread = np.linalg.inv(precision)
    assert (np.abs(draws.mean(axis=0) - expected) < SIGMAS * np.sqrt(np.diag(spread) / 1000)).all()
    assert np.cov(draws, rowvar=False) == pytest.approx(spread, abs=0.25 * spread.max())


def test_chains_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (*PAIR[1], 1.3, 4.0, ETA, 40)
    whole = sgld_sample(*arguments, n_chains=50, rng=0, theta0=np.arange(50.0), return_path=True)
    monkeypatch.setattr(sampler, "MOST_CHAINS", 7)
    parts = sgld_sample(*arguments, n_chains=50, rng=0, theta0=np.arange(50.0), return_path=True)
    assert parts.shape == whole.shape == (50, 41)
    assert (parts[:, 0] == np.arange(50.0)).all()
    assert np.abs(parts[:, -1] - whole[:, -1]).max() < 5
    assert len(np.unique(parts[:, -1])) == 50


def test_reproducible() -> None:
    arguments = (*PAIR[0], 1.3, 4.0, ETA, 30)
    first, again, other = (sgld_sample(*arguments, n_chains=3, rng=seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).any()
    from_generators = [sgld_sample(*arguments, rng=np.random.default_rng(3)) for _ in range(2)]
    assert (from_generators[0] == from_generators[1]).all()


def test_no_steps_at_all() -> None:
    assert sgld_sample(*PAIR[0], 1.0, 1.0, 1e-3, 0, theta0=4.0, n_chains=2).tolist() == [4.0, 4.0]
    assert sgld_sample(*PAIR[0], 1.0, 1.0, [], 0, theta0=4.0, return_path=True).tolist() == [[4.0]]
    starts = sgld_sample(*PAIR[0], 4.0, 1.0, 1e-3, 0, n_chains=100_000, rng=0)
    assert starts.std() == pytest.approx(0.5, rel=0.02)


def test_step_sizes_that_vary() -> None:
    eta = np.geomspace(1e-3, 1e-5, 40)
    one = sgld_sample(*PAIR[0], 1.3, 4.0, eta, 40, n_chains=60_000, rng=0)
    mean, var = 0.0, 1 / 1.3
    u = 1.3 + 20 * 1.1**2 * 4
    for step in eta:
        mean = (1 - step / 2 * u) * mean + step / 2 * 20 * 4 * 37 * 1.1**2
        var = (1 - step / 2 * u) ** 2 * var + step
    assert max(_deviations(one, mean, var)) < SIGMAS


def test_a_chain_that_diverges_is_said_to() -> None:
    with pytest.warns(DivergingChainWarning, match="diverges"):
        found = sgld_sample(*PAIR[0], 1.3, 4.0, 4.1 / (1.3 + 20 * 1.21 * 4), 3000, rng=0)
    assert not np.isfinite(found).all() or np.abs(found).max() > 1e10
    sgld_sample(*PAIR[0], 1.3, 4.0, 0.99 * 4 / (1.3 + 20 * 1.21 * 4), 30, rng=0)  # no warning
    with pytest.warns(DivergingChainWarning):
        sgld_sample(*PAIR[0], 1.3, 4.0, 4.0, 1, rng=0, clip=1.0)


def test_progress() -> None:
    with bars_at_once() as terminal:
        sgld_sample(*PAIR[0], 1.3, 4.0, ETA, 300, rng=0)
    assert "sampling:   0%|          | 0/300" in terminal.getvalue()


def test_moments_of_batches() -> None:
    x, y = worst_case_pair(12, 5.0, 1.0)[1]
    law = epoch_law(12, 5.0, 1.0, 1.0, 4.0, 4, batch_size=3)
    draws = sgld_sample(x, y, 1.0, 4.0, step_size(12, 1.0, 1.0, 4.0), 16, batch_size=3, n_chains=100_000, rng=0)
    gap, var_hat = np.asarray(law.gap), np.asarray(law.var_hat)
    assert max(_deviations(draws, law.mean - float(gap.mean()), float(var_hat.mean() + gap.var()))) < SIGMAS
    assert recursion(12, 5.0, 1.0, 1.0, 4.0, 16, None, 2 / 49**2, 3)[0] == pytest.approx(law.mean, rel=1e-12)


@for_each(
    "change",
    [
        {"eta": 0.0},
        {"eta": -1e-3},
        {"eta": math.nan},
        {"eta": [1e-3] * 4},
        {"eta": [1e-3, 1e-3, 0.0, 1e-3, 1e-3]},
        {"eta": [1e-3, 1e-3, math.inf, 1e-3, 1e-3]},
        {"n_steps": -1},
        {"x": []},
        {"x": [1.0, 2.0]},
        {"x": [[1.0], [2.0]]},
        {"x": [math.inf, 1.0, 1.0]},
        {"x": np.zeros((3, 0))},
        {"x": np.zeros((3, 1, 1))},
        {"y": [1.0, math.nan, 1.0]},
        {"batch_size": 0},
        {"batch_size": 4},
        {"batch_size": 2},
        {"batch_size": 2, "order": "reshuffle"},
        {"order": "random"},
        {"alpha": 0.0},
        {"beta": -1.0},
        {"clip": 0.0},
        {"n_chains": 0},
        {"theta0": [1.0, 2.0]},
        {"theta0": math.nan},
    ],
)
def test_refusals(change: dict[str, Any]) -> None:
    usual: dict[str, Any] = {
        "x": [1.0, 1.0, 1.0],
        "y": [1.0, 1.0, 1.0],
        "alpha": 1.0,
        "beta": 1.0,
        "eta": 1e-3,
        "n_steps": 5,
    }
    sgld_sample(**usual)
    with pytest.raises(InputError):
        sgld_sample(**{**usual, **change})


@for_each("change", [{"n_steps": 5.0}, {"x": [[1.0], [1.0, 2.0]]}, {"x": ["a", "b", "c"]}, {"eta": ["a"] * 5}])
def test_types(change: dict[str, Any]) -> None:
    usual: dict[str, Any] = {
        "x": [1.0, 1.0, 1.0],
        "y": [1.0, 1.0, 1.0],
        "alpha": 1.0,
        "beta": 1.0,
        "eta": 1e-3,
        "n_steps": 5,
    }
    with pytest.raises((InputTypeError, InputError)):
        sgld_sample(**{**usual, **change})


def test_batches_that_do_not_divide_are_fine_when_drawn_independently() -> None:
    assert sgld_sample([1.0] * 3, [1.0] * 3, 1.0, 1.0, 1e-3, 5, batch_size=2, order="uniform", rng=0).shape == (1,)
