"""Truths of statistics just outside of what is claimed, again and again: how many sessions have a false interval.

A session is broken where an interval misses its truth. `rejection` says how many broken ones reject a mechanism; a
valid one is rejected with probability at most 1e-9. Twins that decide by the value alone, as if what the training part
leads one to expect were there, must be rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import Independent
from tests.sizes import sized, sizes
from tests.statistical.rejection import too_many
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters
from thresholdout.mechanisms.claims.agreement_evidence import AgreementEvidence, ExpectedAgreement
from thresholdout.mechanisms.claims.area_evidence import AreaEvidence, ExpectedArea
from thresholdout.mechanisms.claims.evidence import (
    Bets,
    Counts,
    Evidence,
    Expected,
    ExpectedBets,
    ExpectedCounts,
    of_share,
    to_share,
)
from thresholdout.mechanisms.claims.interval import ClaimOutcome, Noise, Scales
from thresholdout.mechanisms.claims.statistic_claims import Layout, Part, StatisticTest
from thresholdout.noise.sources import SeededNoise
from thresholdout.scoring.statistics import cohen_kappa
from thresholdout.scoring.statistics.statistic_parts import Judged

pytestmark = pytest.mark.statistical

BETA, N = 0.1, 400
LUCKY = 0.1  # of the numbers that are expected are there

Draw = Callable[[np.random.Generator, float], Evidence]


@dataclass(frozen=True)
class Kind:
    """What is expected of a part, its variance times n, and how its evidence is drawn for a truth."""

    expected: Expected
    variance: float
    draw: Draw
    parts: int = 1


def f1_counts(rng: np.random.Generator, truth: float) -> Counts:
    counted = max(1, int(rng.binomial(N, 0.25 * LUCKY)))
    wins = int(rng.binomial(counted, to_share(truth, 2.0)))
    return Counts(wins, counted - wins, 2.0)


def losses_on_a_slice(rng: np.random.Generator, truth: float) -> Bets:
    """Half of the records are seldom in the slice, and lose more there."""
    inside = rng.random(N) < np.repeat([0.4, 0.2], N // 2) * LUCKY
    inside[0] = True
    mean = np.clip(truth + np.repeat([-0.1, 0.2], N // 2), 0.0, 1.0)
    mean[: N // 2] += truth - (2 * mean[: N // 2] + mean[N // 2 :]) / 3 * 1.0
    shares = np.clip(mean, 0.0, 1.0)
    exact = (2 * shares[0] + shares[-1]) / 3
    shares = np.clip(shares + truth - exact, 0.0, 1.0)
    return Bets(inside * (rng.random(N) < shares), inside.astype(np.float64), (1.0, 1.0))


def area(rng: np.random.Generator, truth: float) -> AreaEvidence:
    few = max(2, int(rng.binomial(N, 0.2 * LUCKY)))
    behind, sure = np.sort(rng.random(N - few)), rng.random(few) < abs(2 * truth - 1)
    scores = np.where(sure, float(truth > 0.5), rng.random(few))
    placed = (behind.searchsorted(scores, "left") + behind.searchsorted(scores, "right")) / (2.0 * behind.size)
    ordered = np.sort(scores)
    ahead = 1.0 - (ordered.searchsorted(behind, "left") + ordered.searchsorted(behind, "right")) / (2.0 * few)
    return AreaEvidence(placed.astype(np.float64), behind.size, float(few), float(np.mean((1.0 - ahead) ** 2)))


def agreement(rng: np.random.Generator, truth: float) -> AgreementEvidence:
    """Pairs of records of two classes that are equally likely, and predicted rightly with this probability."""
    y = rng.integers(0, 2, N)
    said = np.where(rng.random(N) < truth, y, 1 - y)
    evidence = cohen_kappa().parts(None)[0].evidence(Judged(y, said), Independent(N), True)
    assert isinstance(evidence, AgreementEvidence)
    return evidence


KINDS = {
    "F1 of one law": Kind(ExpectedCounts(0.25 * N, 2.0, True), 1.0, f1_counts),
    "F1 of any laws": Kind(ExpectedCounts(0.25 * N, 2.0, False), 1.0, f1_counts),
    "slice": Kind(ExpectedBets(N, 0.3, 0.06, 0.1, 1.0), 0.7, losses_on_a_slice),
    "area": Kind(ExpectedArea(0.2 * N, 0.8 * N, 0.05, 0.08, 0.2), 0.3, area),
    "mean of three F1": Kind(ExpectedCounts(0.25 * N, 2.0, True), 1.0, f1_counts, parts=3),
    "kappa": Kind(ExpectedAgreement(N // 2, 1.0, 0.0005, 0.0005, 1.0), 0.25, agreement),
}


def layout(kind: Kind, train: float) -> Layout:
    part = Part(train, math.sqrt(kind.variance / N), kind.expected, kind.expected.mirrored())
    mean = None if kind.parts == 1 else lambda values: math.fsum(values) / len(values)
    return Layout((part,) * kind.parts, mean, kind.variance, given=False)


def broken(kind: Kind, seed: int) -> bool:
    rng, noise = np.random.default_rng(seed), SeededNoise(seed)
    mechanism = ClaimsMechanism(ClaimsParameters(confidence=1 - BETA, n_train=N), N)
    state = mechanism.start(noise)
    for turn in range(12):
        train = 0.8 if turn % 2 else 0.6
        public = layout(kind, train)
        known = Known(layout=public)
        low, high = mechanism.first_claim(state, train, known).interval
        truth = low - 1e-6 if turn % 4 < 2 and low > 0.01 else high + 1e-6
        if not 0.0 < truth < 1.0:
            continue
        evidence = [kind.draw(rng, truth)] * kind.parts  # parts that are one and the same are the hardest
        state, outcome = mechanism.step(state, train, mechanism.statistic(evidence, known), noise)
        assert outcome.interval is not None
        if not outcome.interval[0] <= truth <= outcome.interval[1]:
            return True
    return False


@pytest.mark.parametrize(("name", "sessions"), sized([(name,) for name in KINDS], 120, 200, 0, 1, 2, 3))
def test_sessions_with_a_false_interval_are_rare(name: str, sessions: int) -> None:
    assert not too_many((broken(KINDS[name], seed) for seed in range(sessions)), sessions, BETA)


@pytest.mark.parametrize("name", ["F1 of one law", "F1 of any laws", "area", "kappa"])
@sizes("sessions", 120, 200)
def test_a_test_that_takes_what_is_expected_for_what_is_there_is_rejected(
    name: str, sessions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind(self: StatisticTest, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        value = self._evidence[0].value * self.steps
        return "above" if value > hi else "below" if value < lo else "confirmed"

    monkeypatch.setattr(StatisticTest, "outcome", blind)
    assert too_many((broken(KINDS[name], seed) for seed in range(sessions)), sessions, BETA)


def test_shares_of_what_is_drawn_are_the_truths() -> None:
    """The slice's truth is a ratio of expected sums of different laws."""
    rng = np.random.default_rng(0)
    drawn = [losses_on_a_slice(rng, 0.6) for _ in range(300)]
    sums: NDArray[np.float64] = np.array([[d.numerators.sum(), d.denominators.sum()] for d in drawn]).sum(axis=0)
    assert sums[0] / sums[1] == pytest.approx(0.6, abs=0.02)
    assert of_share(to_share(0.6, 2.0), 2.0) == pytest.approx(0.6)
