"""Candidates that are equally good win equally often, wherever they stand in a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from thresholdout.mechanisms import SparseVectorMechanism, SparseVectorParameters
from thresholdout.noise.sources import SeededNoise

CANDIDATES, EARLY, SEARCHES, N = 40, 8, 400, 1000
ERROR = 1e-6
MOST = int(binom.isf(ERROR / 2, SEARCHES, EARLY / CANDIDATES))
LEAST = int(binom.ppf(ERROR / 2, SEARCHES, EARLY / CANDIDATES))


def early_wins(mechanism: Any) -> int:
    """Count the searches in which one of the first fifth of equal candidates has the largest answer."""
    rng, noise, won = np.random.default_rng(0), SeededNoise(1), 0
    for _ in range(SEARCHES):
        state, best = mechanism.start(noise), (-1.0, 0)
        for candidate in range(CANDIDATES):
            right = rng.random(N) < 0.9
            train = float(rng.binomial(N, 0.9)) / N + 1e-6 * rng.random()
            state, outcome = mechanism.step(state, train, mechanism.read(right, N, (0.0, 1.0), "v"), noise)
            best = max(best, (outcome.value + 1e-9 * rng.random(), candidate))
        won += best[1] < EARLY
    return won


@pytest.mark.slow
def test_no_place_is_better_with_algorithm_1() -> None:
    """Training values, and one noise for all answers from the holdout."""
    parameters = SparseVectorParameters(0.01, 0.002, budget=CANDIDATES, queries=CANDIDATES)
    assert LEAST <= early_wins(SparseVectorMechanism(parameters)) <= MOST
