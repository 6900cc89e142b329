"""Cross-validations whose records are also looked at: PROOFS.md, V11."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.dummy import DummyClassifier

from graphs import Groups, Independent
from graphs.models.out_of_fold import OutOfFold
from tests.sizes import corners
from thresholdout import KFoldGuard
from thresholdout.certificates.change_of_measure import smallest_nats
from thresholdout.errors import InputError
from thresholdout.mechanisms import Known, LadderParameters
from thresholdout.mechanisms.claims.fold_claims import FoldClaims, FoldClaimsParameters
from thresholdout.mechanisms.ladder import Ladder
from thresholdout.noise.sources import SeededNoise
from thresholdout.privacy.accounting import BlackBox, Composed, GaussianAnswer

RECORDS = 300
NOISE = SeededNoise(0)


def broken(mechanism: Any, release: BlackBox | None, told: float) -> float:
    """Return the exact probability that the one answer's interval misses the truth, 1/2.

    The labels are fair coins. A look says of each what it is with the look's privacy; `told` of them agree on average.
    The query is how often the table of what was said is right: its truth is 1/2 for any table, and the number that
    is right is binomial. A learner that says the table whatever it is fitted to makes that an out-of-fold average.
    """
    state = mechanism.start(NOISE)
    if release is not None:
        pure = math.inf if release.delta else release.epsilon
        state, _ = mechanism.pay_release(state, lambda risk: smallest_nats(Independent(RECORDS), release, pure, risk))
    missed = 0.0
    for right in range(RECORDS + 1):
        values = np.arange(RECORDS) < right
        reading = mechanism.read(values, RECORDS, (0.0, 1.0), "values", Known(binary=True))
        low, high = mechanism.step(state, 0.5, reading, NOISE)[1].interval
        missed += float(binom.pmf(right, RECORDS, told)) * (not low <= 0.5 <= high)
    return missed


@pytest.mark.parametrize(("delta", "kind"), corners(product([0.0, 1e-7], ["ladder", "ladder of folds", "folds"]), 0, 5))
def test_the_reconstructed_table_stays_within_its_interval(kind: str, delta: float) -> None:
    epsilon, confidence = 0.3, 0.9
    mechanism: Any = Ladder(LadderParameters(confidence), RECORDS)
    if kind == "ladder of folds":
        mechanism = Ladder(LadderParameters(confidence, queries=1, random_estimands=True), RECORDS)
    elif kind == "folds":  # as if the folds were independent, which the table's values are: N = n
        mechanism = FoldClaims(FoldClaimsParameters(RECORDS, 1.0, confidence, queries=1), RECORDS)
    told = delta + (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    assert broken(mechanism, BlackBox(epsilon, delta), told) <= 0.1
    assert broken(mechanism, None, told) > 0.1  # broken twin: a look that is not paid for
    assert broken(mechanism, None, 0.5) <= 0.1


def cross_validation(**settings: Any) -> KFoldGuard:
    rng = np.random.default_rng(3)
    groups = settings.pop("groups", None)
    return KFoldGuard((rng.random((2000, 1)), rng.integers(0, 2, 2000), groups), cv=2, **settings)


@pytest.mark.parametrize(
    ("mechanism", "release"),
    corners(product(["claims", LadderParameters(queries=3)], [BlackBox(0.01), GaussianAnswer(500.0)]), 1),
)
def test_a_look_is_paid_from_the_risk_of_a_cross_validation(mechanism: Any, release: Any) -> None:
    queries = 3 if mechanism == "claims" else None
    guard, other = (cross_validation(mechanism=mechanism, queries=queries) for _ in range(2))
    for one in (guard, other):
        one.score(DummyClassifier(strategy="constant", constant=0))
    risk = guard.status.error_budget_left
    assert risk is not None
    guard.releases.record(release)
    pure = release.epsilon if isinstance(release, BlackBox) else math.inf
    paid = smallest_nats(Independent(2000), release, pure, risk)
    assert guard.status.error_budget_left == pytest.approx(risk * math.exp(-paid), rel=1e-6)
    assert guard.releases.recorded == Composed([release])
    low, high = guard.score(DummyClassifier(strategy="constant", constant=0), key="again").interval
    narrow = other.score(DummyClassifier(strategy="constant", constant=0), key="again").interval
    assert high - low > narrow[1] - narrow[0]
    assert guard.history["source"].tolist()[1] == "release"
    assert len(guard.answers) == 2
    guard.score(DummyClassifier(strategy="constant", constant=0), key="third")
    assert guard.status.exhausted == "queries"


def test_groups_of_records_pay_for_groups() -> None:
    """The price is that of the records, which are independent, and not of the values, which are not."""
    labels = np.arange(2000) // 4
    guard = cross_validation(groups=labels)
    guard.releases.record(BlackBox(0.005))
    paid = smallest_nats(Groups(labels), BlackBox(0.005), 0.005, 0.05)
    assert guard.status.information_released == pytest.approx(paid, rel=1e-6)
    assert OutOfFold(labels % 2, labels).revealed_blocks() == Groups(labels).revealed_blocks()


@pytest.mark.slow
def test_a_look_that_leaves_nothing() -> None:
    guard = cross_validation()
    with pytest.raises(InputError, match="Intervals could be the whole range"):
        guard.releases.record(GaussianAnswer(1.0))
    assert guard.releases.recorded == Composed([])
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-9)
