"""Candidates that are equally good win equally often, wherever they stand in a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV

from graphs import Independent
from thresholdout import Thresholdout
from thresholdout.errors import InputError
from thresholdout.mechanisms import GaussianGuard, GaussianParameters, SparseVectorMechanism, ThresholdoutParameters
from thresholdout.model_selection import GuardedSearchCV
from thresholdout.noise.sources import SeededNoise
from thresholdout.planning.all_from_holdout import gaussian_parameters

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


def test_no_place_is_better_with_the_noise_of_a_guard() -> None:
    guard = Thresholdout(np.arange(float(N)), queries=CANDIDATES, mechanism="gaussian")
    assert LEAST <= early_wins(GaussianGuard(guard.parameters)) <= MOST  # type: ignore[arg-type]


def test_no_place_is_better_with_algorithm_1() -> None:
    """Training values, and one noise for all answers from the holdout."""
    parameters = ThresholdoutParameters(0.01, 0.002, budget=CANDIDATES, queries=CANDIDATES)
    assert LEAST <= early_wins(SparseVectorMechanism(parameters)) <= MOST


def test_with_a_schedule_early_ones_win_too_often() -> None:
    """What is refused below."""
    parameters = gaussian_parameters(Independent(N), CANDIDATES, 0.95, schedule=True)
    assert early_wins(GaussianGuard(parameters)) > MOST + 20


def test_searches_refuse_a_schedule() -> None:
    X, y = np.arange(400.0).reshape(-1, 1), np.arange(400) % 2
    parts: dict[str, Any] = {"holdout": (X[:200], y[:200]), "train": (X[200:], y[200:])}
    scheduled = Thresholdout(**parts, mechanism=gaussian_parameters(Independent(200), 4, 0.95, schedule=True))
    with pytest.raises(InputError, match=r"^guard: Gaussian noise .* early candidates would win.*mechanism='gaussian'"):
        scheduled.scorer(cv="training")
    with pytest.raises(InputError, match=r"^guard: Gaussian noise"):
        GuardedSearchCV(GridSearchCV(DummyClassifier(), {"strategy": ["prior"]}), scheduled).fit(X[200:], y[200:])
    assert len(scheduled.history) == 0
    assert scheduled.score(DummyClassifier().fit(X[200:], y[200:]), cv="training").half_width < 1.0
    for mechanism in ("gaussian", GaussianParameters(0.1), GaussianParameters([0.1, 0.1, 0.2], queries=2)):
        guard = Thresholdout(**parts, mechanism=mechanism, queries=4)
        search = GridSearchCV(
            DummyClassifier(), {"strategy": ["prior", "uniform"]}, scoring=guard.scorer(cv="training"), cv=guard.split()
        )
        search.fit(X[200:], y[200:])
        assert len(guard.history) == 2
