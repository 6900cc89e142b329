"""Comparisons through a guard: what two models agree on cancels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from thresholdout import InputError, SeededNoise, Thresholdout
from thresholdout.mechanisms import Claims, ClaimsParameters, Known

N = 2000


class Told:
    """A model whose predictions are a column of the records."""

    classes_ = np.array([0, 1])

    def __init__(self, column: int) -> None:
        self.column = column

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return X[:, self.column].astype(int)


def records(gain: float, seed: int = 0) -> Thresholdout:
    """Return a guard of records with labels 1: two models that disagree on 8 %, the second better by `gain`."""
    rng = np.random.default_rng(seed)
    u = rng.random(2 * N)
    first, second = u >= (0.08 + gain) / 2, u < 1.0 - (0.08 - gain) / 2
    X = np.stack([first, second, np.arange(2 * N)], axis=1).astype(float)
    y = np.ones(2 * N, dtype=int)
    return Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), noise=SeededNoise(seed))


def test_a_better_model_is_found_and_named() -> None:
    guard = records(0.05)
    found = guard.compare(Told(1), Told(0))
    assert found.verdict == "better"
    assert found.interval[0] <= 0.05 <= found.interval[1]
    assert found.settling is None
    assert guard.compare(Told(0), Told(1)).verdict == "worse"
    assert guard.compare(Told(1), Told(0), "zero_one_loss").verdict == "better"  # a smaller loss
    width = found.interval[1] - found.interval[0]
    score = guard.score(Told(1))
    assert width < 0.08 < 2 * 0.5  # of values from -1 to 1, of which 92 % are 0
    assert len(guard.history) == 4
    assert score.value > 0.9


def test_what_is_not_settled_says_how_many_records_would_settle_it() -> None:
    found = records(0.01).compare(Told(1), Told(0))
    assert found.verdict == "not settled"
    assert found.interval[0] <= 0.0 <= found.interval[1]
    assert found.settling is None or found.settling > N


def test_equal_models_are_not_settled() -> None:
    found = records(0.01).compare(Told(1), Told(1))
    assert found.verdict == "not settled"
    assert found.value == pytest.approx(0.0, abs=1e-3)


def test_scores_and_differences_do_not_learn_from_each_other() -> None:
    guard, other = records(0.05), records(0.05)
    for _ in range(5):
        guard.score(Told(0), "zero_one_loss")
    alone = other.compare(Told(1), Told(0))
    assert guard.compare(Told(1), Told(0)).value == pytest.approx(alone.value, abs=1e-12)


def test_refuses_what_is_no_mean_and_other_mechanisms() -> None:
    with pytest.raises(InputError, match="a metric that is a mean over records"):
        records(0.0).compare(Told(1), Told(0), "f1")
    X, y = np.arange(8.0 * N)[:, None], np.ones(8 * N, dtype=int)
    half = 4 * N
    gaussian = Thresholdout((X[:half], y[:half]), train=(X[half:], y[half:]), queries=5, mechanism="gaussian")
    with pytest.raises(InputError, match="a comparison, asked of gaussian"):
        gaussian.compare(Told(0), Told(0))


@pytest.mark.statistical
def test_true_differences_are_covered() -> None:
    """600 sessions of 5 comparisons of 300 records: at most 5 % broken, by an exact limit at 1e-9; a quarter fails."""
    broken = narrow = 0
    for seed in range(600):
        rng, noise = np.random.default_rng(seed), SeededNoise(seed)
        mechanism = Claims(ClaimsParameters(), 300)
        state, wrong, short = mechanism.start(noise), False, False
        for _ in range(5):
            gain = rng.uniform(-0.05, 0.05)
            z = rng.choice([-1.0, 0.0, 1.0], size=300, p=[(0.1 - gain) / 2, 0.9, (0.1 + gain) / 2])
            known = Known(variance=0.025, difference=True)
            reading = mechanism.read(z, 300, (-1.0, 1.0), "values", known)
            train = gain + rng.normal(0.0, 0.02)
            state, outcome = mechanism.step(state, (train + 1) / 2, reading, noise)
            assert outcome.interval is not None
            low, high = (2 * end - 1 for end in outcome.interval)
            wrong |= not low <= gain <= high
            short |= abs(gain - (low + high) / 2) > (high - low) / 8
        broken, narrow = broken + wrong, narrow + short
    assert beta.ppf(1e-9, max(broken, 1), 601 - broken) <= 0.05
    assert beta.ppf(1e-9, max(narrow, 1), 601 - narrow) > 0.05
