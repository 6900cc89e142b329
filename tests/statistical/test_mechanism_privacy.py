"""The privacy of the whole interaction: exactly on small scales, and by simulation of the real one.

Exactly: probabilities of transcripts on adjacent inputs, from the formula of their law (tests/oracles). The real
mechanism is tied to that formula by running it on every combination of coarse noise.

By simulation: with Clopper-Pearson bounds at 1e-9 on the probability of one event under two adjacent inputs, a lower
bound on epsilon that a mechanism as claimed exceeds with probability at most 1e-9, and that broken ones do exceed.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

from tests.oracles.noise_doubles import LaplaceOnly
from tests.oracles.sparse_vector import SmallSparseVector, log_at_least, log_probability
from thresholdout.mechanisms import (
    NoiseRatios,
    SparseVectorMechanism,
    SparseVectorParameters,
    SparseVectorState,
    interaction_epsilon,
)
from thresholdout.noise.sources import NoiseSource, SeededNoise

pytestmark = pytest.mark.statistical

RATE = 1e-9
Query = tuple[float, float]  # train value, holdout mean


class TestExact:
    """Small integer scales; ``moved`` is the sensitivity in grid steps."""

    @staticmethod
    def claim(scales: tuple[float, float, float], moved: int, hits: int) -> float:
        first, second, third = scales
        return hits * moved * (1 / first + 2 / second + 1 / third)

    @pytest.mark.parametrize("redrawn", [True, False])
    @pytest.mark.parametrize("scales", [(2.0, 4.0, 8.0), (6.0, 12.0, 24.0), (6.0, 12.0, 3.0), (5.0, 1.5, 2.0)])
    def test_no_transcript_exceeds_the_claim(self, scales: tuple[float, float, float], redrawn: bool) -> None:
        """Random queries, adjacent means in every direction, random transcripts with at most two hits.

        A threshold that is kept after a hit costs no more: Delta/sigma is then paid once.
        """
        rng = np.random.default_rng(41)
        moved, worst = 3, 0.0
        for _ in range(300):
            mechanism = SmallSparseVector(int(rng.integers(-5, 40)), scales, redrawn)
            length = int(rng.integers(1, 12))
            trains = rng.integers(0, 30, length).tolist()
            means = rng.integers(0, 30, length)
            nearby = (means + rng.choice([-moved, 0, moved], length)).tolist()
            released: list[int | None] = [None] * length
            for i in rng.choice(length, min(length, 2), replace=False).tolist():
                released[i] = int(rng.integers(-20, 50))
            ratio = mechanism.log_transcript(means.tolist(), trains, released) - mechanism.log_transcript(
                nearby, trains, released
            )
            worst = max(worst, abs(ratio) / self.claim(scales, moved, sum(a is not None for a in released)))
        assert 0.3 < worst <= 1 + 1e-9

    @pytest.mark.parametrize("scales", [(2.0, 4.0, 8.0), (6.0, 12.0, 3.0), (5.0, 9.0, 2.0)])
    def test_the_claim_is_nearly_attained(self, scales: tuple[float, float, float]) -> None:
        """Many queries that pass closer on the neighbour, then a hit that was more likely: 99 % of the claim.

        So noise of half the scale, whose claim is twice as large, would be far above this one.
        """
        moved = 3
        mechanism = SmallSparseVector(int(3 * scales[1]), scales)
        one = mechanism.log_fails_then_hit(10**12, 0, moved, moved, moved)
        other = mechanism.log_fails_then_hit(10**12, moved, 0, moved, 0)
        claim = self.claim(scales, moved, 1)
        assert 0.99 * claim <= one - other <= claim * (1 + 1e-9)

    def test_many_failed_tests_cost_the_threshold_only(self) -> None:
        scales = (4.0, 8.0, 16.0)
        mechanism = SmallSparseVector(20, scales)
        for length in (1, 10, 1000):
            one = mechanism.log_transcript([0] * length, [0] * length, [None] * length)
            other = mechanism.log_transcript([3] * length, [0] * length, [None] * length)
            assert 0 < one - other <= 3 / 4 + 1e-9

    def test_the_real_mechanism_has_the_law_of_the_oracle(self) -> None:
        """Every combination of coarse noise (multiples of half a sigma, within 20) through the real step.

        Six rounds of which two may hit; the probabilities of all 22 patterns of sources, and of what the hits release.
        """
        sigma, coarse = 2.0**-3, 2**39
        mechanism = SparseVectorMechanism(SparseVectorParameters(sigma, sigma, budget=2, queries=None))
        queries = [(0.0, 0.125), (0.5, 0.375), (0.25, 0.75), (1.0, 1.0), (0.0, 0.25), (0.5, 0.0)]
        scales = (2.0, 4.0, 8.0)  # in coarse steps
        law = [_truncated(scale, 40) for scale in scales]
        states: dict[tuple[tuple[int | None, ...], SparseVectorState], float] = defaultdict(float)
        for k, p in law[0]:
            states[(), mechanism.start(_Fixed([k * coarse]))] += p
        finished: dict[tuple[int | None, ...], float] = defaultdict(float)
        for train, holdout in queries:
            following: dict[tuple[tuple[int | None, ...], SparseVectorState], float] = defaultdict(float)
            for (seen, state), weight in states.items():
                # The hits are a half-line of test noise: add up its probability before branching further.
                silent = sum(
                    p
                    for k, p in law[1]
                    if mechanism.step(state, train, holdout, _Fixed([k * coarse, 0, 0]))[1].source == "train"
                )
                passed, _ = mechanism.step(state, train, holdout, _Fixed([-(2**60), 0, 0]))
                following[(*seen, None), passed] += weight * silent
                pattern = (*seen, round(8 * holdout))
                for k, p in law[0]:
                    hit, outcome = mechanism.step(state, train, holdout, _Fixed([2**60, 0, k * coarse]))
                    assert outcome.value == holdout  # answer noise 0
                    if hit.hits == 2:
                        finished[pattern] += weight * (1 - silent) * p
                    else:
                        following[pattern, hit] += weight * (1 - silent) * p
            states = following
        for (seen, _), weight in states.items():
            finished[seen] += weight
        assert math.isclose(sum(finished.values()), 1.0)
        assert len(finished) == 22

        # In coarse steps (2 per sigma = 16 per unit), T = 2.
        oracle = SmallSparseVector(2, scales)
        no_noise = float(log_probability(np.array(0), scales[2]))
        for seen, probability in finished.items():
            asked = queries[: len(seen)]
            released = [None if value is None else 2 * value for value in seen]
            hits = sum(value is not None for value in seen)
            log = oracle.log_transcript([round(16 * h) for _, h in asked], [round(16 * t) for t, _ in asked], released)
            assert math.exp(log - hits * no_noise) == pytest.approx(probability, rel=1e-3)


class _Fixed(LaplaceOnly):
    for_release = False

    def __init__(self, draws: list[int]) -> None:
        self._draws = iter(draws)

    def laplace(self, scale: Fraction) -> int:
        return next(self._draws)


def _truncated(scale: float, reach: int) -> list[tuple[int, float]]:
    """The law of the noise with what lies beyond ``reach`` moved onto its ends."""
    inner = np.arange(-reach + 1, reach)
    end = float(np.exp(log_at_least(np.array([reach]), scale))[0])
    weights = np.exp(log_probability(inner, scale))
    return [(-reach, end), *zip(inner.tolist(), weights.tolist(), strict=True), (reach, end)]


SIGMA = 1.0
CLAIM = interaction_epsilon(1, SIGMA, 1)  # one record, whose value is 0 or 1: 2.25
RUNS = 60_000


@pytest.mark.slow
class TestSimulated:
    """One record, sigma = 1, one hit: five tests that must fail, then one that must hit with a large answer.

    The tests that fail have gap 0 on one input and 1 on its neighbour, the last one the other way round; the exact log
    ratio of this event is 2.03 of the 2.25 that are claimed, and 4.02 with half the noise.
    """

    mechanism = SparseVectorMechanism(SparseVectorParameters(0.25, SIGMA, budget=1, queries=None))
    one: tuple[Query, ...] = ((0.0, 0.0),) * 5 + ((0.0, 1.0),)
    other: tuple[Query, ...] = ((0.0, 1.0),) * 5 + ((0.0, 0.0),)

    def count(self, queries: tuple[Query, ...], noises: Iterator[NoiseSource]) -> int:
        """How often the event occurs."""
        count = 0
        for noise in itertools.islice(noises, RUNS):
            state = self.mechanism.start(noise)
            for train, holdout in queries[:-1]:
                state, outcome = self.mechanism.step(state, train, holdout, noise)
                if outcome.source == "holdout":
                    break
            else:
                _, outcome = self.mechanism.step(state, *queries[-1], noise)
                count += outcome.source == "holdout" and outcome.value == 1.0
        return count

    def lower_bound(self, make: Callable[[NoiseSource], NoiseSource]) -> float:
        """A lower bound on epsilon, at an error rate of 1e-9: half for each probability."""
        counts = []
        for seed, queries in ((1, self.one), (2, self.other)):
            inner = SeededNoise(seed)
            counts.append(self.count(queries, (make(inner) for _ in itertools.count())))
        least = beta.ppf(RATE / 2, counts[0], RUNS - counts[0] + 1)
        most = beta.isf(RATE / 2, counts[1] + 1, RUNS - counts[1])
        return math.log(least / most)

    def exact(self, steps: int) -> float:
        """The log ratio of the event, with sigma = ``steps`` grid steps and answers of at least 1."""
        oracle = SmallSparseVector(steps // 4, (steps, 2 * steps, 4 * steps))
        none = float(log_probability(np.array(0), 4 * steps))
        one = oracle.log_fails_then_hit(5, 0, steps, 0, 0) - none
        other = oracle.log_fails_then_hit(5, steps, 0, 0, 0) - none
        tails = log_at_least(np.array([1, steps + 1]), 4 * steps)
        return one - other + float(tails[0] - tails[1])

    def test_the_mechanism_stays_under_its_claim(self) -> None:
        bound = self.lower_bound(lambda noise: noise)
        assert bound <= CLAIM
        # The bound has teeth: most of what is really leaked by this event.
        assert self.exact(400) == pytest.approx(2.03, abs=0.01)
        assert bound > 1.2

    def test_half_the_noise_is_caught(self) -> None:
        class Half(LaplaceOnly):
            for_release = False

            def __init__(self, noise: NoiseSource) -> None:
                self.noise = noise

            def laplace(self, scale: Fraction) -> int:
                return self.noise.laplace(scale / 2)

        assert self.lower_bound(Half) > CLAIM

    def test_reused_test_noise_is_caught(self) -> None:
        """One draw of gamma for all tests: a gap that failed fails again, so the order of outcomes tells."""

        class Kept(_Remembering):
            def comparison(self, scale: Fraction) -> int:
                if not self.kept:
                    self.kept.append(self.noise.laplace(scale))
                return self.kept[0]

        assert self.lower_bound(Kept) > CLAIM

    def test_reused_threshold_noise_is_caught(self) -> None:
        """gamma = 2 delta has the right law, and is no fresh noise: the tests compare with one fixed number."""

        class FromThreshold(_Remembering):
            def comparison(self, scale: Fraction) -> int:
                return 2 * self.delta

        assert self.lower_bound(FromThreshold) > CLAIM


class _Remembering(LaplaceOnly, ABC):
    """Noise whose test noise is not fresh; one object per interaction."""

    for_release = False
    threshold_scale = Fraction(2**40)  # sigma = 1 in units of the resolution

    def __init__(self, noise: NoiseSource) -> None:
        self.noise = noise
        self.kept: list[int] = []
        self.delta = 0

    @abstractmethod
    def comparison(self, scale: Fraction) -> int:
        """Return the noise of a test."""

    def laplace(self, scale: Fraction) -> int:
        if scale == 2 * self.threshold_scale:
            return self.comparison(scale)
        draw = self.noise.laplace(scale)
        if scale == self.threshold_scale:
            self.delta = draw
        return draw


def test_other_ratios_are_charged_what_they_cost() -> None:
    """[D15]'s noises (2, 4, 1): the exact ratio of the worst transcripts approaches the claim from below."""
    steps, moved = 4, 2
    scales = (2.0 * steps, 4.0 * steps, 1.0 * steps)
    mechanism = SmallSparseVector(12 * steps, scales)
    one = mechanism.log_fails_then_hit(10**12, 0, moved, moved, moved)
    other = mechanism.log_fails_then_hit(10**12, moved, 0, moved, 0)
    # n = 1 and sigma = 2**40 steps: moved/steps plays the part of 1/sigma.
    claim = interaction_epsilon(1, steps / moved, 1, NoiseRatios(2, 4, 1))
    assert 0.99 * claim <= one - other <= claim * (1 + 1e-9)
