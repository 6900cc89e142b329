"""An analyst who overfitted to the holdout before the guard was made: covered where he says so, rejected where not.

The labels are fair coins and the features signs without any relation to them, so every prediction is right with
probability 1/2. He looks at the scores of single features, turns each so that it does well, and lets them vote. At
confidence 0.9 as many broken sessions as `rejection` says reject a guard, a valid one with probability at most 1e-9.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.statistical.rejection import too_many
from thresholdout import Claims, PriorQueries, Thresholdout

pytestmark = pytest.mark.statistical

N, PRIOR, SESSIONS, CONFIDENCE = 300, 200, 40, 0.9


def broken(prior: Any, seed: int, **declared: Any) -> bool:
    """Whether an answer after the looks misses 1/2: about the vote, and about votes of more and more features."""
    rng = np.random.default_rng(seed)
    labels, signs = rng.integers(0, 2, size=N), rng.integers(0, 2, size=(PRIOR, N))
    scores = (signs == labels).mean(axis=1)  # what he has seen
    turned = np.where(scores > 0.5, 1, -1)[:, None] * (2 * signs - 1)
    guard = Thresholdout(np.arange(float(N)), confidence=CONFIDENCE, prior_queries=prior, random_state=seed, **declared)
    misses = False
    for used in (PRIOR // 4, PRIOR // 2, PRIOR):
        values = (turned[:used].sum(axis=0) > 0) == labels
        low, high = guard.ask([0, 1], values).interval
        misses |= not low <= 0.5 <= high
    return misses


def rejected(prior: Any, **declared: Any) -> bool:
    return too_many((broken(prior, seed, **declared) for seed in range(SESSIONS)), SESSIONS, 1 - CONFIDENCE)


GUARDS: list[dict[str, Any]] = [{}, {"queries": 3}, {"mechanism": Claims(noise=0.0)}, {"mechanism": "ladder"}]


@pytest.mark.parametrize("declared", GUARDS, ids=str)
def test_an_analyst_who_looked_and_says_so_is_covered(declared: dict[str, Any]) -> None:
    assert not rejected(PriorQueries(PRIOR, N + 1), **declared)


@pytest.mark.parametrize("declared", GUARDS, ids=str)
def test_a_guard_that_is_not_told_is_rejected(declared: dict[str, Any]) -> None:
    assert rejected(None, **declared)


def test_few_looks_are_no_excuse_for_many() -> None:
    """One look declared where two hundred were taken."""
    assert rejected(PriorQueries(1, N + 1))
