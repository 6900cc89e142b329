"""The transcript certificate: counts of histories, exact adaptive analysts of small models, sessions, twins."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from graphs import DependencyGraph, Groups, Independent
from graphs.models.out_of_fold import OutOfFold
from tests.cases import for_each
from tests.sizes import corners
from thresholdout import SparseVector, Thresholdout
from thresholdout.certificates.after_releases import with_releases
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.posterior import posterior
from thresholdout.certificates.problem import LargestError, Setting
from thresholdout.certificates.transcript import TranscriptWidths, fixed_limits, log_histories, transcript
from thresholdout.limits.entropy import coin_divergence
from thresholdout.mechanisms import SparseVectorMechanism, SparseVectorParameters
from thresholdout.noise.sources import SeededNoise
from thresholdout.privacy.accounting import BlackBox

Floats = NDArray[np.float64]


@for_each(("queries", "budget", "live"), [(1, 1, 9), (4, 2, 3), (5, 3, 2), (3, 5, 2)])
def test_histories_are_counted(queries: int, budget: int, live: int) -> None:
    """Words of training answers (0) and values (1 to L) before a round, with fewer answers from the holdout than B."""
    words = sum(
        sum(letter > 0 for letter in word) < min(budget, queries)
        for length in range(queries)
        for word in itertools.product(range(live + 1), repeat=length)
    )
    assert math.exp(log_histories(queries, budget, live)) == pytest.approx(words, rel=1e-12)


@for_each(("queries", "budget", "live"), [(501, 501, 1), (2000, 600, 50), (10**6, 800, 101)])
def test_many_histories_are_bounded(queries: int, budget: int, live: int) -> None:
    """Beyond 500 answers the count is bounded; it was summed in integers for hours."""
    ways, found = [math.log(queries)], 0.0
    for j in range(budget - 1):
        more = -math.inf if j + 1 >= queries else math.log(queries - j - 1) - math.log(j + 2) + math.log(live)
        ways.append(ways[-1] + more)
    found = max(ways) + math.log(math.fsum(math.exp(one - max(ways)) for one in ways))
    assert found <= log_histories(queries, budget, live) <= budget * (1 + math.log(queries * live / budget)) * 1.001
    assert log_histories(10**9, 10**8, 1000) < math.inf


class SmallRecords:
    """Binary records with a table of probabilities, and every query with values 0 or 1."""

    def __init__(self, law: Floats) -> None:
        self.n = law.ndim
        self.law = law.ravel()
        states = np.array(list(itertools.product((0, 1), repeat=self.n)))
        values = [(0, 0), (0, 1), (1, 0), (1, 1)]
        queries = list(itertools.product(values, repeat=self.n))
        self.means: Floats = np.array(
            [np.mean([np.take(one, states[:, i]) for i, one in enumerate(query)], axis=0) for query in queries]
        )
        self.estimands = self.means @ self.law
        self.deviations = np.abs(self.means - self.estimands[:, None])

    def fixed(self, radius: float) -> float:
        """Return the largest probability with which one query deviates by the radius or more."""
        return float(((self.deviations >= radius - 1e-12) @ self.law).max())

    def adaptive(self, radius: float, passes: tuple[float, ...]) -> float:
        """Return the same of an analyst with two queries, both maybe answered from the holdout, without noise.

        The first training value is the estimand, moved by one of `passes` beyond what a threshold lets pass: the
        answer is then the training value where the mean is that near, and the exact mean elsewhere.
        """
        wrong, most = self.deviations >= radius - 1e-12, 0.0
        for query, estimand in enumerate(self.estimands):
            for reach in passes:
                told = np.where(np.abs(self.means[query] - estimand) <= reach, -1.0, np.round(self.means[query], 9))
                total = float(self.law[wrong[query]].sum())
                for answer in np.unique(told):
                    left = np.where((told == answer) & ~wrong[query], self.law, 0.0)
                    total += float((wrong @ left).max())
                most = max(most, total)
        return most


def laws() -> list[Floats]:
    chain = np.zeros((2,) * 4)
    for state in itertools.product((0, 1), repeat=4):
        chain[state] = 0.5 * math.prod(0.7 if a == b else 0.3 for a, b in itertools.pairwise(state))
    pairs = np.zeros((2,) * 4)
    for a, b in itertools.product((0, 1), repeat=2):
        pairs[a, a, b, b] = 0.25
    return [np.full((2,) * 4, 1 / 16), chain, pairs]


@pytest.mark.parametrize("law", corners(map(pytest.param, laws()), 1))
def test_no_analyst_exceeds_the_union(law: Floats) -> None:
    records = SmallRecords(law)
    for radius in (0.25, 0.4, 0.5):
        live = math.floor(2 * radius / 0.25) + 1
        histories = math.exp(log_histories(2, 2, min(live, 5)))
        assert records.adaptive(radius, (0.0, 0.1, 0.25, 1.0)) <= histories * records.fixed(radius) * (1 + 1e-9)


def test_without_branches_of_answers_the_union_is_exceeded() -> None:
    """Two queries that were fixed together pay twice; what the first answer tells is not among these."""
    records = SmallRecords(np.full((2,) * 4, 1 / 16))
    assert records.adaptive(0.5, (-1.0,)) > 1.4 * 2 * records.fixed(0.5)
    assert records.adaptive(0.5, (1.0,)) <= 2 * records.fixed(0.5) * (1 + 1e-9)  # the answer tells nothing


PARAMETERS = SparseVectorParameters(0.05, 0.003, budget=3, queries=50, grid=0.02)


def test_the_width_is_that_of_the_formula() -> None:
    """Computed by other means: tails by sums over a fine grid, histories by binomials."""
    n, beta = 10_000, 0.05
    setting = Setting(Independent(n), PARAMETERS, 1 - beta)
    found = transcript(setting)
    widths = found.widths
    assert isinstance(widths, TranscriptWidths)
    share = beta / 8

    def tail(error: float) -> float:  # of the largest of three draws of both kinds
        v = (error - 0.05) / 0.003
        surprise = (4 * math.exp(-v / 2) - math.exp(-v)) / 6
        answer = math.exp(-(error - 0.01) / 0.012)
        return 1 - ((1 - surprise) * (1 - answer)) ** 3

    low, high = 0.05, 1.0
    for _ in range(60):
        low, high = (low, (low + high) / 2) if tail((low + high) / 2) <= beta - share else ((low + high) / 2, high)
    live = math.floor(2 * found.tolerance / 0.02) + 1
    histories = sum(math.comb(50, j + 1) * live**j for j in range(3))
    radius = math.sqrt(math.log(2 * histories / share) / (2 * n))
    assert found.tolerance == pytest.approx(high + radius, rel=1e-6)
    assert found.tolerance >= high + radius
    assert found.tolerance < posterior(setting).tolerance
    low_end, _ = widths.interval(0.9)
    assert n * coin_divergence(0.9 - widths.error, low_end - 1e-6) > widths.nats
    assert n * coin_divergence(0.9 - widths.error, low_end + 1e-6) < widths.nats


def test_the_route_needs_limits_and_a_grid() -> None:
    whole = Groups([0] * 1000)
    for model, changes, why in (
        (Independent(1000), {"grid": None}, "no grid"),
        (Independent(1000), {"budget": None}, "budget"),
        (whole, {}, "bounds no deviation"),
        (OutOfFold(np.arange(1000) % 5), {}, "functions of the records"),
        (Independent(100), {"budget": 50}, "too many"),
    ):
        given: dict[str, Any] = {"budget": 3, "queries": 50, "grid": 0.02, **changes}
        route = transcript(Setting(model, SparseVectorParameters(0.05, 0.003, **given), 0.95))
        assert why in route.why_not
        assert not route.applies


def test_one_inequality_counts() -> None:
    """A star of a dependency graph has two colours, but a smaller inflation: entropy is taken where it costs little."""
    assert fixed_limits(Independent(50)).entropy
    graph = DependencyGraph((np.array([[0, 1], [0, 2], [1, 2]]), 300))  # one triangle among single records
    assert graph.effective_records() == pytest.approx(100)
    limits = fixed_limits(graph)
    assert not limits.entropy
    assert limits.records == pytest.approx(300 / graph.variance_inflation())


def attack(parameters: SparseVectorParameters, groups: int, size: int, seed: int, surplus: float) -> float:
    """Return the largest error of a session whose training values are off by the threshold and some noise scales."""
    rng, n = np.random.default_rng(seed), groups * size
    mechanism, noise = SparseVectorMechanism(parameters), SeededNoise(seed)
    state, worst = mechanism.start(noise), 0.0
    signs: Floats = rng.choice([-1.0, 1.0], (n // size, 400))
    score: Floats = np.zeros(400)
    while mechanism.refusal(state) is None:
        # the majority of queries that were answered high: its estimand is 1/2 whatever was chosen
        chosen = score if score.any() else rng.normal(size=400)
        mean = float((np.where(signs @ chosen > 0, 1.0, 0.0)).mean())
        train = min(1.0, max(0.0, mean + parameters.threshold + surplus * parameters.noise_scale))
        state, outcome = mechanism.step(state, train, mean, noise)
        worst = max(worst, abs(outcome.value - 0.5))
        score = score + (outcome.value - 0.5) * rng.choice([-1.0, 1.0], 400) + rng.normal(size=400) * 0.1
    return worst


def sessions(surplus: float) -> tuple[Floats, TranscriptWidths]:
    model = Groups(np.arange(6000) // 3)
    parameters = SparseVectorParameters(0.08, 0.006, budget=3, queries=20, grid=1 / 25)
    widths = transcript(Setting(model, parameters, 0.5)).widths
    assert isinstance(widths, TranscriptWidths)
    return np.array([attack(parameters, 2000, 3, seed, surplus) for seed in range(60)]), widths


@pytest.mark.slow
@for_each("surplus", [-1.0, 2.0, 5.0])
def test_sessions_keep_the_half_width(surplus: float) -> None:
    errors, widths = sessions(surplus)
    assert binom.sf((errors > widths.width).sum() - 1, len(errors), 0.5) > 1e-9


@pytest.mark.slow
def test_half_widths_without_the_noise_are_broken() -> None:
    errors, widths = sessions(-1.0)
    assert binom.sf((errors > widths.width - widths.error).sum() - 1, len(errors), 0.5) < 1e-9


def test_releases_leave_posteriors_at_the_share_that_is_kept() -> None:
    model = Groups(np.arange(8000) // 2)
    guard = Thresholdout(
        np.arange(8000.0), dependence=model, mechanism=SparseVector.for_budget(1.0, answers=2, queries=20)
    )
    parameters = guard.parameters
    assert isinstance(parameters, SparseVectorParameters)
    assert guard.certificate.route == "transcript"
    after = guard.releases.preview(BlackBox(0.1))
    share = 0.05 * 2.0**-22
    law = LargestError(2, parameters.ratios)
    scale, grid = parameters.noise_scale, parameters.grid or 0.0
    noise = scale * law.superquantile(share, parameters.threshold / scale, grid / scale)
    moved = math.tanh(2 * ((guard.certificate.epsilon or 0.0) + 0.1) / 4)
    assert after.route == "transcript"
    assert after.tolerance == pytest.approx(noise + moved, rel=1e-6)
    assert after.tolerance > guard.certificate.tolerance
    assert "other releases are as private as recorded" in after.statement
    alone = certify_parameters(model, parameters)
    for releases, spare in ((BlackBox(0.1), 0.0), (BlackBox(0.1, 1e-9), share)):
        assert with_releases(alone, model, parameters, releases, spare).route == "none"
