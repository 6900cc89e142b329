"""Gaussian answers and entropy, and comparisons given the features: every step that can be enumerated is."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from tests.oracles.gaussian_posterior import SmallModel, random_model, random_values
from tests.sizes import sizes
from thresholdout.certificates.gaussian.comparisons import ComparisonDrift, comparison_blocks
from thresholdout.certificates.gaussian.deviations import GaussianWidths, NoiseRuns
from thresholdout.certificates.gaussian.drift import AnytimeDrift, Drift
from thresholdout.certificates.gaussian.intervals import Given, GivenAway
from thresholdout.certificates.gaussian.plausible_truths import (
    entropy_gap,
    farthest,
    largest_spread,
    lowest_truth,
    spread,
)
from thresholdout.certificates.independent_blocks import IndependentBlocks

Floats = NDArray[np.float64]


def exact_gap(expected: float, truth: float, dilation: float) -> float:
    """The gap in 40 digits, from its definition."""
    with mpmath.workdps(40):
        x, p, a = mpmath.mpf(expected), mpmath.mpf(truth), mpmath.mpf(dilation)

        def divergence(y: mpmath.mpf) -> mpmath.mpf:
            one = y * mpmath.log(y / p) if y > 0 else mpmath.mpf(0)
            other = (1 - y) * mpmath.log((1 - y) / (1 - p)) if y < 1 else mpmath.mpf(0)
            return one + other

        return float(divergence(x) - divergence(p + (x - p) / a))


class Transcript:
    """Answers to questions about a small model, and every quantity of the proof, by enumeration."""

    def __init__(self, rng: np.random.Generator, *, comparisons: bool = False) -> None:
        self.model = random_model(rng, int(rng.integers(1, 6)), 2, equal=comparisons or rng.random() < 0.5)
        count = int(rng.integers(1, 5))
        groups = len(self.model.laws)
        self.sets = rng.random((count, groups)) < 0.6 if comparisons else np.ones((count, groups), dtype=bool)
        values = [random_values(rng, self.model) for _ in range(count)]
        self.queries = np.array(
            [self.model.query([v * on for v, on in zip(value, row, strict=True)])
             for value, row in zip(values, self.sets, strict=True)]
        )  # fmt: skip
        self.scales = np.exp(rng.uniform(math.log(0.05), math.log(3), count))
        truth = rng.choice(len(self.model.prior), p=self.model.prior)
        self.answers = self.queries[:, truth] + self.scales * rng.normal(size=count) * rng.choice([0.3, 1, 3])
        self.dilation = 1 + math.exp(rng.uniform(-5, 2))

    def ratio(self) -> float:
        """``ln p_a/p_1``."""
        given = self.queries, self.scales, self.answers
        return self.model.log_density(*given, self.dilation) - self.model.log_density(*given, 1.0)

    def means(self, queries: Floats) -> tuple[Floats, Floats]:
        """Truths and expectations of questions."""
        return queries @ self.model.prior, queries @ self.model.posterior(self.queries, self.scales, self.answers)

    def extreme(self) -> Floats:
        """The question whose expectation moved most."""
        posterior = self.model.posterior(self.queries, self.scales, self.answers)
        moved = [
            np.bincount(self.model.states[:, g], weights=posterior, minlength=len(law)) > law
            for g, law in enumerate(self.model.laws)
        ]
        return self.model.query([m.astype(np.float64) for m in moved])


def slack(t: Transcript, *, midpoint: bool = True, factor: float = 1.0, gap_factor: float = 1.0, room: bool = True,
          records: float | None = None) -> float:  # fmt: skip
    """Return ``ln p_a/p_1`` less ``room N gap - (a^2 - 1) S``, the theorem's lower bound for the worst question."""
    a, n = t.dilation, records or t.model.n / t.model.sizes.max()
    truth, expected = t.means(t.queries)
    middle = (truth + expected) / 2
    h = (2 * middle * (1 - middle) + (a - 1) * truth * (1 - truth)) / (a + 1) if midpoint else truth * (1 - truth)
    weighed, noise = np.sum(h / (2 * n * t.scales**2)), np.sum(1 / (2 * n * t.scales**2))
    left = 1 - (a - 1) * noise / (4 * n * (1 - a**-2)) if room else 1.0
    if left <= 0:
        return math.inf  # the theorem says nothing
    p, q = t.means(np.array([*t.queries, t.extreme()]))
    gap = max((exact_gap(min(float(x), 1.0), float(y), a) for x, y in zip(q, p, strict=True) if 0 < y < 1), default=0.0)
    return float(t.ratio() - (left * n * gap * gap_factor - factor * (a * a - 1) * weighed))


@sizes("transcripts", 1000, 2500)
def test_lower_bound_on_small_models(transcripts: int) -> None:
    """Transcripts, groups too: never below; it is without the midpoint or the room for V, or with 95 % of S."""
    rng = np.random.default_rng(12)
    slacks, bare, crowded, lowered = [], [], [], []
    for _ in range(transcripts):
        t = Transcript(rng)
        slacks.append(slack(t))
        bare.append(slack(t, midpoint=False))
        t.scales = t.scales * rng.choice([0.5, 1, 3])
        if slack(t) < math.inf:
            crowded.append(slack(t, room=False))
            lowered.append(slack(t, factor=0.95))
    assert min(slacks) > -1e-9
    assert min(slacks) < 1e-3
    assert min(bare) < -1e-3
    assert min(crowded) < -1e-3
    assert min(lowered) < -1e-3


def test_factors_of_the_lower_bound_cannot_be_lowered() -> None:
    """One fair bit: an answer that tells nothing needs all of S, a far answer through much noise all of the gap."""
    t = Transcript(np.random.default_rng(0))
    t.model, t.dilation = SmallModel([np.array([0.5, 0.5])], np.ones(1)), 1.001
    t.queries, t.scales, t.answers = np.array([[0.0, 1.0]]), np.array([5.0]), np.array([0.5])
    assert slack(t) == pytest.approx(0.0, abs=1e-9)
    assert slack(t, factor=0.95) < -1e-7
    t.scales, t.answers = np.array([300.0]), np.array([0.5 + 0.3 * 300.0**2])
    assert slack(t) > 0
    assert slack(t, gap_factor=1.05) < -1e-7


@sizes("transcripts", 300, 1500)
def test_larger_groups_need_the_largest_size(transcripts: int) -> None:
    """With n/Lambda records in place of n/s_max the bound of relative entropy is broken."""
    rng = np.random.default_rng(13)
    worst = math.inf
    for _ in range(transcripts):
        t = Transcript(rng)
        t.dilation = 1 + math.exp(rng.uniform(-6, -2))
        worst = min(worst, slack(t, records=t.model.n / t.model.inflation) / (t.dilation - 1))
    assert worst < -1e-4


def comparison_slack(t: Transcript, *, factor: float = 1.0, crowded: bool = True) -> float:
    """The inequality before it is relaxed: ``2 (1 - a^-2) V - (a^2 - 1) x - 2 (a - 1) (X/n) V``."""
    a, n = t.dilation, t.model.n
    single = 1 / (8 * n * t.scales**2)
    x = float(np.sum(t.sets.mean(axis=1) * single))
    most = float(np.max(single @ t.sets)) if crowded else 0.0
    squares = float(np.sum(t.model.variations(t.model.posterior(t.queries, t.scales, t.answers)) ** 2))
    bound = 2 * (1 - a**-2) * squares - factor * (a * a - 1) * x - 2 * (a - 1) * most / n * squares
    return t.ratio() - bound


@sizes("transcripts", 1000, 2500)
def test_comparisons_before_relaxations(transcripts: int) -> None:
    """Transcripts of questions about some of the records each."""
    rng = np.random.default_rng(14)
    slacks, lowered = [], []
    for _ in range(transcripts):
        t = Transcript(rng, comparisons=True)
        if t.sets.any():
            slacks.append(comparison_slack(t))
            lowered.append(comparison_slack(t, factor=0.2))
    assert min(slacks) > -1e-9
    assert min(lowered) < -1e-3


def test_information_of_comparisons_cannot_be_lowered() -> None:
    """Two fair bits, each asked alone, and answers that tell nothing: equality, and not with 95 % of x."""
    t = Transcript(np.random.default_rng(0))
    t.model, t.dilation = SmallModel([np.array([0.5, 0.5])] * 2, np.ones(2)), 1.05
    t.sets = np.eye(2, dtype=bool)
    bits = [np.array([0.0, 1.0]), np.zeros(2)]
    t.queries = np.array([t.model.query(bits), t.model.query(bits[::-1])])
    t.scales, t.answers = np.array([5.0, 5.0]), np.array([0.25, 0.25])
    assert comparison_slack(t) == pytest.approx(0.0, abs=1e-7)
    assert comparison_slack(t, factor=0.95) < -1e-6


def test_comparison_drift_in_high_precision() -> None:
    drift = ComparisonDrift(2000, 0.4, 0.02).after(0.01, 0.05).after(0.02, 0.1)
    with mpmath.workdps(40):
        b, n = mpmath.mpf(0.4), 2000
        singles = [1 / (8 * n * mpmath.mpf(s) ** 2) for s in (0.01, 0.02)]
        x, crowded = mpmath.mpf(0.05) * singles[0] + mpmath.mpf(0.1) * singles[1], sum(singles)
        squares = (1 + b) * (x - mpmath.log(mpmath.mpf(0.02)) / b) / (2 - (1 + b) * crowded / n)
        exact = mpmath.sqrt(mpmath.mpf(0.1) * squares / n)
        assert exact <= drift.bound(0.1) <= exact * (1 + mpmath.mpf("1e-11"))
    assert ComparisonDrift(10, 0.4, 0.02).after(0.001, 0.1).bound(0.1) == math.inf


def test_comparisons_on_sets_of_one_share_are_answers_about_other_records() -> None:
    blocks, comparisons = comparison_blocks(3000, 0.04), ComparisonDrift(3000, 0.7, 0.01)
    drift = Drift(blocks, 0.7, 0.01)
    for _ in range(5):
        comparisons = comparisons.after(0.003, 0.04)
    assert comparisons.bound(0.04) == pytest.approx(drift(5 * drift.information(0.003)), rel=1e-9)


@pytest.mark.parametrize("dilation", [1.0005, 1.1, 1.5, 10.0])
def test_gap_and_its_inverse_in_high_precision(dilation: float) -> None:
    rng = np.random.default_rng(15)
    for _ in range(60):
        expected, truth = (1 / (1 + np.exp(-rng.normal(scale=3, size=2)))).tolist()
        exact = exact_gap(expected, truth, dilation)
        assert entropy_gap(expected, truth, dilation) == pytest.approx(exact, rel=1e-9, abs=1e-14)
        allowed = float(np.exp(rng.uniform(-12, 0)))
        found = lowest_truth(expected, dilation, allowed)
        assert found == 0.0 or exact_gap(expected, found, dilation) >= allowed
        inner = found + 1e-5 * expected + 2e-4 * (expected - found)
        if inner < expected:
            assert exact_gap(expected, inner, dilation) < allowed * (1 + 1e-9) + 3e-14


def test_closed_forms_contain_the_exact_ones() -> None:
    """The distance in closed form is beyond the exact one, and the spread is that of all possible truths."""
    rng = np.random.default_rng(16)
    for _ in range(300):
        low, high = np.sort(rng.random(2)).tolist()
        dilation, allowed = 1 + math.exp(rng.uniform(-5, 2)), math.exp(rng.uniform(-12, 0))
        far = farthest(low, high, dilation, allowed)
        first, last = lowest_truth(low, dilation, allowed), 1 - lowest_truth(1 - high, dilation, allowed)
        assert low - far <= first + 1e-7
        assert last <= high + far + 1e-7
        truths, expected = np.linspace(first, last, 50), np.linspace(low, high, 50)
        middle = np.add.outer(truths, expected) / 2
        exact = 2 * np.max(middle * (1 - middle)) + (dilation - 1) * np.max(truths * (1 - truths))
        assert largest_spread(low, high, dilation, allowed) >= exact / (dilation + 1) - 1e-9
    assert spread(0.2, 0.9) == 0.25
    assert largest_spread(0.0, 1.0, 1.3, math.inf) == 0.25


def test_answers_that_cannot_vary_give_little_away() -> None:
    """S of answers near 1 by hand: with an exact expectation and next to no drift, h is p (1 - p)."""
    start = GivenAway(1e12, 0.5, 0.5)
    after = start.after(Given(0.01, 0.98, 0.98))
    assert after.weighed == pytest.approx(0.98 * 0.02 / (2 * 1e12 * 1e-4), rel=1e-3)
    assert after.noise == pytest.approx(1 / (2 * 1e12 * 1e-4), rel=1e-9)
    assert start.after(Given(0.01)).weighed == pytest.approx(0.25 * after.noise, rel=1e-9)
    assert GivenAway(10, 0.5, 0.5).after(Given(0.001)).bound == math.inf


@pytest.mark.parametrize("drift", [Drift, AnytimeDrift])
@pytest.mark.parametrize(
    "blocks", [IndependentBlocks.of_records(5000), IndependentBlocks.of_sizes(np.array([1, 4] * 800))]
)
def test_intervals_are_within_half_widths(drift: type, blocks: IndependentBlocks) -> None:
    """For every value and history; knowing the history narrows them."""
    made = Drift(blocks, 0.6, 0.02) if drift is Drift else AnytimeDrift(blocks, 0.02)
    widths = GaussianWidths(
        made, NoiseRuns.constant(0.02, 30), 0.03, declared=drift is Drift, threshold=0.05, slack=1e-9
    )
    earlier = [(0.95, "holdout"), (0.97, "train"), (0.5, "failed")] * 4
    for value, source in itertools.product((0.0, 0.01, 0.4, 0.95, 1.0), ("holdout", "train")):
        width = widths.half_width(13, 4, source)  # type: ignore[arg-type]
        low, high = widths.interval(13, 4, source, value, earlier)  # type: ignore[arg-type]
        wide = widths.interval(13, 4, source, value)  # type: ignore[arg-type]
        assert max(0.0, value - width) <= max(0.0, wide[0]) <= max(0.0, low) <= value
        assert value <= min(1.0, high) <= min(1.0, wide[1]) <= min(1.0, value + width)


def test_histories_are_followed_in_any_order() -> None:
    """What is kept of one history is not used for another."""

    def make() -> GaussianWidths:
        return GaussianWidths(Drift(IndependentBlocks.of_records(5000), 0.6, 0.02), NoiseRuns.constant(0.02, 9), 0.03)

    first, second = [(0.95, "holdout")] * 3, [(0.95, "holdout"), (0.5, "holdout")]
    used = make()
    for history in (first, second, first, first[:1], second):
        query = len(history) + 1
        fresh = make().interval(query, query - 1, "holdout", 0.9, history)
        assert used.interval(query, query - 1, "holdout", 0.9, history) == fresh


def harvest(rng: np.random.Generator, widths: GaussianWidths, n: int, rounds: int, shrink: float) -> bool:
    """Ask about coins of 0.92, then about the majority of those that came out high; return whether a truth is out."""
    values = (rng.random((rounds, n)) < 0.92).astype(np.float64)
    earlier: list[tuple[float, str]] = []
    chosen = np.zeros(rounds)
    for j in range(rounds + 1):
        # the last question: right where most of the lucky ones are
        vote = values[chosen > 0].sum(axis=0) > 0.92 * (chosen > 0).sum() if chosen.any() else values[0] > 0
        asked = values[j] if j < rounds else vote.astype(np.float64)
        truth = 0.92 if j < rounds else float(binom.sf(math.floor(0.92 * (chosen > 0).sum()), (chosen > 0).sum(), 0.92))
        answer = float(np.clip(asked.mean() + widths.schedule.scale(j + 1) * rng.normal(), 0, 1))
        low, high = widths.interval(j + 1, j, "holdout", answer, earlier)
        if not answer - (answer - low) * shrink <= truth <= answer + (high - answer) * shrink:
            return True
        if j < rounds:
            chosen[j] = answer > 0.92
        earlier.append((answer, "holdout"))
    return False


@pytest.mark.statistical
def test_intervals_cover_against_an_analyst_who_harvests_luck() -> None:
    """beta = 0.2: broken in at most 20 % of 300 runs at a confidence of 1e-9; a quarter of the widths is not enough."""
    rng = np.random.default_rng(17)
    n, rounds = 300, 12
    widths = GaussianWidths(Drift(IndependentBlocks.of_records(n), 0.8, 0.1), NoiseRuns.constant(0.02, rounds + 1), 0.1)
    broken = sum(harvest(rng, widths, n, rounds, 1.0) for _ in range(300))
    lowered = sum(harvest(rng, widths, n, rounds, 0.25) for _ in range(300))
    assert binom.sf(broken - 1, 300, 0.2) > 1e-9
    assert binom.sf(lowered - 1, 300, 0.2) < 1e-9
