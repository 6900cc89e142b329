"""Coverage of the half-widths of statistics that are not means, against an adaptive analyst who knows their truth.

Every record, or every group of records, has a fair coin. A question gives every record a sign and turns that into
outputs for which the statistic has a truth that does not depend on the signs, and as large a variance as it can have.
The analyst asks about single attributes first, then about the sum of all of them turned by what he saw, with train
values just too far off. A run is broken when any answer is off by more than its half-width. At confidence 1 - beta more
than ``binom.isf(1e-9, runs, beta)`` broken runs reject a spread; a valid one is rejected with probability at most 1e-9.
The spread of a mean, and spreads for independent records where there are groups, must be rejected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from graphs import DependenceModel, Groups, Independent
from thresholdout import BudgetExhausted, Certificate, SeededNoise, certify
from thresholdout.mechanisms import SparseVector, ThresholdoutParameters
from thresholdout.statistics import (
    Statistic,
    balanced_accuracy,
    f1,
    median_absolute_error,
    r2,
    roc_auc,
)

pytestmark = pytest.mark.statistical

RATE = 1e-9
RUNS = 200
BETA = 0.1
N, QUERIES, BUDGET = 1000, 20, 3
LIMIT = int(binom.isf(RATE, RUNS, BETA))
PARAMETERS = ThresholdoutParameters(0.005, 1e-5, BUDGET, QUERIES, 1 / 256)
RARE, COMMON = (np.repeat([1, 0], [count, N - count]) for count in (10, 400))

Signs = NDArray[np.int64]


@dataclass(frozen=True)
class Attack:
    """A statistic, labels, the outputs that signs turn into, and the truth in units of the range."""

    statistic: Statistic
    y: NDArray[Any]
    outputs: Callable[[NDArray[Any], Signs], NDArray[Any]]
    truth: float


CENTRED = np.where(np.arange(N) % 2, 1.0, -1.0)
ATTACKS = {
    "area": Attack(roc_auc(), RARE, lambda y, signs: y * signs, 0.5),
    "balanced accuracy": Attack(balanced_accuracy(), RARE, lambda y, signs: np.where(signs > 0, y, 1 - y), 0.5),
    "F1": Attack(f1(), COMMON, lambda y, signs: y * (signs > 0), 2 / 3),
    "F1, rare": Attack(f1(), RARE, lambda y, signs: y * (signs > 0), 2 / 3),
    "R2": Attack(r2(1.0), CENTRED, lambda y, signs: np.where(signs > 0, y, 5.0), 0.5),
    "median": Attack(median_absolute_error(1.0), np.zeros(N), lambda y, signs: np.where(signs > 0, 0.0, 1.0), 0.5),
}


def broken(attack: Attack, certificate: Certificate, spread: float, group: int, seed: int) -> bool:
    """Run one interaction; whether any answer was off by more than its half-width."""
    rng, noise = np.random.default_rng([seed, 1]), SeededNoise(seed)
    mechanism = SparseVector(PARAMETERS)
    state, hits, total = mechanism.start(noise), 0, np.zeros(N)
    coins = np.repeat(2 * rng.integers(0, 2, N // group) - 1, group)
    for query in range(1, QUERIES + 1):
        forced = query < BUDGET
        fresh = np.repeat(2 * rng.integers(0, 2, N // group) - 1, group) if query > 1 else np.ones(N, dtype=np.int64)
        weights = fresh if forced else np.where(total >= 0, 1, -1)
        reach = 1.0001 * certificate.half_width(query, hits, "train", spread)
        train = 0.0 if forced else min(1.0, attack.truth + reach)
        holdout = attack.statistic.unit_value(attack.y, attack.outputs(attack.y, weights * coins), None)
        try:
            state, outcome = mechanism.step(state, train, holdout, noise)
        except BudgetExhausted:
            return False
        assert outcome.source in ("train", "holdout")
        hits = outcome.hits + (outcome.source == "holdout")
        if abs(outcome.value - attack.truth) > certificate.half_width(query, outcome.hits, outcome.source, spread):
            return True
        if forced:
            total += (outcome.value - attack.truth) * weights
    return False


def breaks(attack: Attack, model: DependenceModel, spread: float, group: int) -> int:
    """Count broken runs."""
    certificate = certify(
        model,
        threshold=PARAMETERS.threshold,
        noise_scale=PARAMETERS.noise_scale,
        budget=BUDGET,
        queries=QUERIES,
        confidence=1 - BETA,
        grid=PARAMETERS.grid,
    )
    assert certificate.route in attack.statistic.routes
    return sum(broken(attack, certificate, spread, group, seed) for seed in range(RUNS))


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("group", [1, 5])
def test_half_widths_hold(name: str, group: int) -> None:
    attack = ATTACKS[name]
    model = Independent(N) if group == 1 else Groups(np.arange(N) // group)
    assert breaks(attack, model, attack.statistic.spread(attack.y, model), group) <= LIMIT


@pytest.mark.parametrize("name", ["area", "balanced accuracy", "F1, rare", "median"])
def test_the_spread_of_a_mean_is_rejected(name: str) -> None:
    assert breaks(ATTACKS[name], Independent(N), 1.0, 1) > LIMIT


@pytest.mark.parametrize("name", ["area", "balanced accuracy", "F1", "R2", "median"])
def test_groups_that_are_not_declared_are_rejected(name: str) -> None:
    attack = ATTACKS[name]
    y = COMMON if attack.y is RARE else attack.y
    declared = dataclasses.replace(attack, y=y)
    assert breaks(declared, Independent(N), attack.statistic.spread(y, Independent(N)), 200) > LIMIT
