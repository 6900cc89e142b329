"""A right learner is accused with probability 1 - confidence at most: many audits of exact Gaussian learners each.

The number of accusations is at most binomial with rate 0.1. `rejection` says how many are too many: a correct audit has
them with probability 1e-9; the broken twins, learners that leak more than they claim, must have them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import count, islice

import numpy as np
import pytest
from scipy import stats

from tests.sizes import sizes
from tests.statistical.rejection import most_broken, too_many
from thresholdout.privacy.auditing import attacks, audit_canaries, claim_audits, error_counts
from thresholdout.privacy.auditing.claimed_curves import ClaimedCurve, claimed_curve

pytestmark = pytest.mark.statistical

CONFIDENCE = 0.9


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer draws and a coarser search cost power, and no validity."""
    monkeypatch.setattr(claim_audits, "_DRAWS", 199)
    monkeypatch.setattr(error_counts, "_SPLITS", 12)


def curve(mu: float) -> ClaimedCurve:
    return claimed_curve(
        lambda e: float(stats.norm.cdf(mu / 2 - e / mu) - math.exp(e) * stats.norm.cdf(-mu / 2 - e / mu)), "replace_one"
    )


def accusations(claimed: ClaimedCurve, mu: float, share: float = 0.2, outputs: int = 60) -> Iterator[bool]:
    for seed in count():
        rng = np.random.default_rng([seed, 5])
        worlds = rng.normal(size=(outputs, 1)), rng.normal(mu, size=(outputs, 1))
        audit = claim_audits.audit_claim(
            claimed, worlds, confidence=CONFIDENCE, attack=attacks.plain, fit_share=share, rng=rng
        )
        yield bool(audit.refuted)


@pytest.mark.parametrize("mu", [0.27, 0.72, 1.67])
@sizes("audits", 100, 250)
def test_outputs_of_a_right_learner(mu: float, audits: int) -> None:
    assert not too_many(accusations(curve(mu), mu), audits, 1 - CONFIDENCE)


@pytest.mark.parametrize("test", ["point", "ranks"])
@sizes("audits", 100, 250)
def test_a_learner_that_is_wrong_is_accused_more_often(test: str, audits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_audits, "_CLEAR", math.inf if test == "ranks" else -math.inf)
    assert too_many(accusations(curve(0.3), 1.2), audits, 1 - CONFIDENCE)


@sizes("audits", 100, 250)
def test_ranks_alone(audits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ranks always: the limit holds, and it is nearly reached."""
    monkeypatch.setattr(claim_audits, "_CLEAR", math.inf)
    monkeypatch.setattr(claim_audits, "_FLATTERED", math.inf)
    found = sum(islice(accusations(curve(0.72), 0.72), audits))
    assert stats.binom.ppf(1e-9, audits, 1 - CONFIDENCE) <= found <= most_broken(audits, 1 - CONFIDENCE)


@pytest.mark.parametrize("mu", [0.27, 1.67])
@sizes("audits", 100, 250)
def test_one_training_of_a_right_learner(mu: float, audits: int) -> None:
    """Bounds of the family and without one, each above the truth in a tenth of the audits at most."""

    @cache
    def found(seed: int) -> float:
        rng = np.random.default_rng([seed, 6])
        included = rng.random(200) < 0.5
        scores = mu * included + rng.normal(size=200)
        audit = audit_canaries(included, scores, family="gaussian", random_state=seed)
        assert audit.mu is not None
        return audit.mu

    assert not too_many((found(seed) > mu for seed in range(audits)), audits, 1 - CONFIDENCE)
    if mu > 1:  # the same bound would refute a claim of less
        assert too_many((found(seed) > 0.4 * mu for seed in range(audits)), audits, 1 - CONFIDENCE)


@sizes("audits", 100, 250)
def test_one_training_in_which_all_outputs_depend_on_each_other(audits: int) -> None:
    """One noise for all canaries: it flips all guesses together. The claim is about each coin alone."""
    delta = 0.08

    def accused(seed: int) -> bool:
        rng = np.random.default_rng([seed, 7])
        included = rng.random(100) < 0.5
        scores = included + 0.0 if rng.random() < delta else rng.normal(size=100)
        return bool(audit_canaries(included, scores, claim=(0.0, delta), random_state=seed).refuted)

    assert not too_many((accused(seed) for seed in range(audits)), audits, 1 - CONFIDENCE)
