"""What one step leaks is at most what its event costs, seen from outside: many releases of two neighbouring sets."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.sizes import sized
from thresholdout.privacy.accounting.accountants.calibration import best_delta
from thresholdout.privacy.learning.dpsgd.batches import Batches
from thresholdout.privacy.learning.dpsgd.descent import Descent, descend
from thresholdout.privacy.learning.dpsgd.gradient_networks import Network

EPSILON, SIGMA = 0.5, 1.5
ERROR_RATE = 1e-10


def releases(batches: Batches, targets: list[float], sigma: float, seed: int, steps: int) -> NDArray[np.float64]:
    """Return noisy sums, each of a fresh batch; a tiny rate keeps the gradients what they are.

    Gradients are far above the norm, and are clipped to 1 times the sign of the target, or are zero.
    """
    X, y = np.ones((len(targets), 1)), 1e6 * np.array(targets)
    descent = Descent(batches, 1.0, np.full(steps, sigma), np.full(steps, 1e-9 * batches.batch_size))
    parameters = np.zeros(1)
    sampling, noise = np.random.default_rng(seed).spawn(2)
    path = descend(Network((1, 1), intercept=False), parameters, X, y, descent, sampling=sampling, noise=noise)
    return np.diff([0.0, *(parameters[0] for _ in path)]) / 1e-9


def least_delta(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return a lower limit, at the error rate, on P(S) - e^epsilon Q(S) for the half-lines S on a grid."""
    limits = []
    cuts = np.linspace(-1, 3, 9)
    rate, steps = ERROR_RATE / (2 * len(cuts)), first.size
    for cut in cuts:
        above, below = int((first > cut).sum()), int((second > cut).sum())
        least = stats.beta.ppf(rate, above, steps - above + 1) if above else 0.0
        most = stats.beta.isf(rate, below + 1, steps - below)
        limits.append(float(least - np.exp(EPSILON) * most))
    return max(limits)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("scheme", "adjacency", "steps"),
    sized(itertools.product(["wor", "wr", "poisson"], ["replace_one", "add_remove"]), 2000, 4000, 0, 5),
)
def test_a_step_leaks_at_most_what_it_costs(scheme: Any, adjacency: Any, steps: int) -> None:
    batches = Batches(scheme, 4, 10, adjacency)
    claimed = best_delta(batches.event(SIGMA), EPSILON, adjacency=adjacency)
    # The worst for a fixed size: all others pull the other way, and one of them stands in for a record that is gone.
    others = [0.0] * 9 if scheme == "poisson" else [-1.0] * 9
    neighbour = others if adjacency == "add_remove" else [*others, -1.0]
    offset = -float(batches.batch_size) * (scheme != "poisson")

    def found(sigma: float) -> float:
        first, second = (
            releases(batches, targets, sigma, seed, steps) for seed, targets in ((1, [*others, 1.0]), (2, neighbour))
        )
        return least_delta(first - offset, second - offset)

    assert found(SIGMA) <= claimed
    assert found(SIGMA / 3) > claimed  # a third of the noise is caught
