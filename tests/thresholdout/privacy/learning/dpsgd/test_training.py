"""The loop: plain descent without noise, the noise that it says, and two streams that know nothing of each other."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.privacy.learning.dpsgd.oracles import numeric_gradient
from thresholdout.privacy.learning.dpsgd.batches import Batches, Sampling
from thresholdout.privacy.learning.dpsgd.descent import Descent, descend
from thresholdout.privacy.learning.dpsgd.gradient_networks import Network

Floats = NDArray[np.float64]


def run(
    network: Network,
    X: Floats,
    targets: NDArray[Any],
    descent: Descent,
    *,
    start: Floats | None = None,
    seeds: tuple[int, int] = (1, 2),
) -> list[Floats]:
    """Return all iterates."""
    parameters = np.zeros(network.n_parameters) if start is None else start.copy()
    sampling, noise = (np.random.default_rng(seed) for seed in seeds)
    steps = descend(network, parameters, X, targets, descent, sampling=sampling, noise=noise)
    return [parameters.copy() for _ in steps]


@pytest.mark.slow
@for_each("scheme", ["wor", "wr", "poisson"])
@for_each("l2", [0.0, 0.1])
def test_without_noise_it_is_plain_descent(scheme: Sampling, l2: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.integers(0, 3, 20)
    network = Network((2, 4, 3), activation="tanh", output="softmax")
    start = network.start(rng)
    rates = np.linspace(0.5, 0.1, 15)
    found = run(network, X, y, Descent(Batches(scheme, 4, 20), 1e3, np.zeros(15), rates, l2), start=start)[-1]

    expected, sampling = start.copy(), np.random.default_rng(1)
    weights = np.concatenate([np.ones(8), np.zeros(4), np.ones(12), np.zeros(3)])
    for rate in rates:
        batch = Batches(scheme, 4, 20).draw(sampling, 20)
        total = sum((numeric_gradient(network, expected, X[i], y[i]) for i in batch), np.zeros_like(expected))
        expected = expected - rate * (total / 4 + l2 * weights * expected)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def noise_of_steps(steps: int, multiplier: float) -> Floats:
    """Return the noise on sums, from steps on records with gradients of zero."""
    network, X = Network((10, 1), intercept=False), np.zeros((30, 10))
    descent = Descent(Batches("poisson", 2, 30), 0.5, np.full(steps, multiplier), np.full(steps, 4.0))
    iterates = [np.zeros(10), *run(network, X, np.zeros(30), descent)]
    return np.diff(np.array(iterates), axis=0) * 2 / 4.0


def spread_is(values: Floats, std: float, error_rate: float = 1e-9) -> bool:
    """Test a standard deviation, two-sided, on independent normal values of mean zero."""
    square = float((values**2).sum() / std**2)
    return bool(min(stats.chi2.cdf(square, values.size), stats.chi2.sf(square, values.size)) > error_rate / 2)


@pytest.mark.statistical
def test_noise_on_the_sum_is_the_multiplier_times_the_norm() -> None:
    values = noise_of_steps(400, 3.0)
    assert spread_is(values.ravel(), 3.0 * 0.5)
    assert stats.kstest(values.ravel() / 1.5, "norm").pvalue > 1e-9
    for wrong in (0.7, 1.3):
        assert not spread_is(values.ravel(), wrong * 1.5)
    apart = np.corrcoef(values[:-1].ravel(), values[1:].ravel())[0, 1]
    assert abs(apart) < 6.2 / np.sqrt(values.size)  # fresh noise at every step; error rate below 1e-9


def test_empty_batches_get_noise() -> None:
    values = noise_of_steps(100, 3.0)  # a batch of 30 coins at 1/15 is empty in one step of eight
    sizes = [len(Batches("poisson", 2, 30).draw(rng, 30)) for rng in [np.random.default_rng(1)] for _ in range(100)]
    assert sizes.count(0) > 3
    assert (np.abs(values[np.array(sizes) == 0]).max(axis=1) > 0).all()


@for_each("scheme", ["wor", "wr", "poisson"])
def test_batches_do_not_depend_on_noise(scheme: Sampling) -> None:
    # Records point in different directions, so the iterates of a run without noise show every batch that was drawn.
    X, y = np.eye(12), -np.ones(12)
    network = Network((12, 1), intercept=False)
    small = np.full(30, 1e-6)  # so that gradients stay what they are

    def sums(multiplier: float, seeds: tuple[int, int]) -> Floats:
        descent = Descent(Batches(scheme, 3, 12), 1.0, np.full(30, multiplier), small)
        return np.asarray(np.diff(run(network, X, y, descent, seeds=seeds), axis=0) * 3e6)

    base = sums(0.0, (1, 2))
    assert set(np.abs(base.round(3)).ravel()) >= {0.0, 1.0}
    for seed in (5, 6):
        other = sums(1e-3, (1, seed))
        np.testing.assert_allclose(other, base, atol=0.01)
        assert (other != base).all()
    assert not np.allclose(sums(0.0, (9, 2)), base, atol=0.01)


def test_the_divisor_of_a_poisson_batch_is_fixed() -> None:
    X, y = np.ones((50, 1)), -np.ones(50)
    network = Network((1, 1), intercept=False)
    descent = Descent(Batches("poisson", 10, 50), 1e3, np.zeros(40), np.full(40, 1e-6))
    taken = np.diff([0.0, *(float(step[0]) for step in run(network, X, y, descent))]) / 1e-6
    sizes = np.round(-taken * 10)
    assert len(set(sizes)) > 5
    np.testing.assert_allclose(taken, -sizes / 10, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", corners(["wor", "wr", "poisson"], 0))
def test_memory_does_not_grow_with_steps(scheme: Sampling) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 30)), rng.integers(0, 5, 20_000)
    network = Network((30, 16, 5), output="softmax")

    def peak(steps: int) -> int:
        descent = Descent(Batches(scheme, 100, 20_000), 1.0, np.ones(steps), np.ones(steps))
        tracemalloc.start()
        for _ in descend(network, network.start(rng), X, y, descent, sampling=rng, noise=rng):
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(5)
    few, many = peak(20), peak(400)
    assert many - few < 60_000  # of which 6080 numbers are noise levels and rates; X alone is 4.8 MB
    assert many < 1_500_000


def test_noise_is_relative_to_the_norm_of_all_layers_together() -> None:
    """Nothing but noise: records at 0 that are predicted right have no gradients."""
    network = Network((1, 2, 1), activation="tanh")
    descent = Descent(Batches("wor", 4, 4), (3.0, 4.0), np.full(1, 1.5), np.full(1, 1.0))
    found = run(network, np.zeros((4, 1)), np.zeros(4), descent)[-1]
    expected = np.random.default_rng(2).standard_normal(network.n_parameters) * 1.5 * 5.0 / 4
    np.testing.assert_allclose(found, -expected, rtol=1e-12)
