"""Coverage: adaptive adversaries against every certificate, with known truth.

Each run is one whole interaction of the real mechanism with an analyst who tries to break the certificate; it counts as
broken when any answer is off by more than its half-width. `rejection` says how many broken runs reject a certificate; a
valid one is rejected with probability at most 1e-9. The same test rejects guards that are calibrated as if dependent
records were independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from graphs import DependenceModel, Groups, Independent, MarkovChain
from tests.sizes import corners
from tests.statistical.rejection import RATE, most_broken, too_many
from thresholdout import BudgetExhausted, SeededNoise
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.problem import LargestError
from thresholdout.certificates.route import HalfWidths
from thresholdout.mechanisms import SparseVectorMechanism, SparseVectorParameters
from thresholdout.planning.algorithm_1 import algorithm_1

pytestmark = pytest.mark.statistical

RUNS = 400
CONFIDENCE = 0.9
N, QUERIES, BUDGET = 10_000, 60, 3

Signs = NDArray[np.int64]
Draw = Callable[[np.random.Generator], Signs]


def grouped(size: int) -> Draw:
    """Every group is one coin."""
    return lambda rng: np.repeat(2 * rng.integers(0, 2, N // size) - 1, size)


def chained(stay: float) -> Draw:
    """A stationary symmetric chain, drawn by its changes of sign."""

    def draw(rng: np.random.Generator) -> Signs:
        changes = np.where(rng.random(N) < stay, 1, -1)
        changes[0] = 2 * rng.integers(0, 2) - 1
        return np.cumprod(changes)

    return draw


DATA: dict[str, tuple[Draw, DependenceModel]] = {
    "independent": (grouped(1), Independent(N)),
    "grouped": (grouped(20), Groups([record // 20 for record in range(N)])),
    "chained": (chained(0.9), MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=N)),
}
STRONGLY_DEPENDENT: dict[str, Draw] = {"grouped": grouped(1000), "chained": chained(0.999)}


class Analyst:
    """Asks for means of ``(1 + w_i x_i)/2`` with signs w_i of her own: the truth of each is 1/2, whatever she does.

    First she forces answers from the holdout about attributes that she draws, the constant one first, with train values
    far off. Then she adds the attributes up with the signs that she saw, so that the sum agrees with the holdout more
    than with the truth, and asks for it again and again with a train value that is just too far from the truth on the
    same side: any query that passes breaks the certificate. She keeps one hit for the end.
    """

    def __init__(self, rng: np.random.Generator, forced: int) -> None:
        self.rng = rng
        self.forced = forced

    def broken(
        self, mechanism: SparseVectorMechanism, widths: HalfWidths, records: Signs, seed: int, limit: int
    ) -> bool:
        """Run one interaction; whether any answer was off by more than its half-width."""
        noise = SeededNoise(seed)
        state = mechanism.start(noise)
        hits, total = 0, np.zeros(records.size)
        for query, (weights, forced) in enumerate(self._queries(limit), start=1):
            signs = weights if forced else np.where(total >= 0, 1, -1)
            train = 0.0 if forced else min(1.0, 0.5 + 1.0001 * widths.half_width(query, hits, "train"))
            try:
                state, outcome = mechanism.step(state, train, float(np.mean(1 + signs * records)) / 2, noise)
            except BudgetExhausted:
                return False
            assert outcome.source in ("train", "holdout")
            hits = outcome.hits + (outcome.source == "holdout")
            if abs(outcome.value - 0.5) > widths.half_width(query, outcome.hits, outcome.source):
                return True
            if forced and outcome.source == "holdout":
                total += (outcome.value - 0.5) * weights
        return False

    def _queries(self, limit: int) -> Iterator[tuple[Signs, bool]]:
        yield np.ones(N, dtype=np.int64), True
        for _ in range(self.forced - 1):
            yield 2 * self.rng.integers(0, 2, N) - 1, True
        nothing = np.zeros(0, dtype=np.int64)
        yield from ((nothing, False) for _ in range(limit - self.forced))


def rejected(draw: Draw, parameters: SparseVectorParameters, widths: HalfWidths) -> bool:
    """Return whether more runs are broken than those of a valid certificate."""
    mechanism = SparseVectorMechanism(parameters)
    analyst = Analyst(np.random.default_rng(1), forced=BUDGET - 1)
    rng = np.random.default_rng(2)
    broken = (analyst.broken(mechanism, widths, draw(rng), seed, QUERIES) for seed in range(RUNS))
    return too_many(broken, RUNS, 1 - CONFIDENCE)


def by_beliefs(model: DependenceModel) -> tuple[SparseVectorParameters, HalfWidths]:
    """Guard and half-widths by the posterior route."""
    parameters = algorithm_1(model, queries=QUERIES, budget=BUDGET, confidence=CONFIDENCE, quiet_margin=0.0)
    certificate = certify_parameters(model, parameters, CONFIDENCE)
    widths = next(route.widths for route in certificate.compared if route.name == "posterior")
    assert widths is not None
    return parameters, widths


@pytest.mark.parametrize("data", DATA)
def test_certificates_hold_under_the_true_dependence(data: str) -> None:
    draw, model = DATA[data]
    parameters, widths = by_beliefs(model)
    assert widths.half_width(QUERIES, 0, "train") < 1
    assert not rejected(draw, parameters, widths)


@pytest.mark.parametrize("data", STRONGLY_DEPENDENT)
def test_certificates_as_if_independent_are_rejected(data: str) -> None:
    parameters, widths = by_beliefs(Independent(N))
    assert rejected(STRONGLY_DEPENDENT[data], parameters, widths)


class Narrowed:
    """Half-widths that leave out the noise: what a certificate without its noise terms would claim."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def half_width(self, query: int, hits: int, source: str) -> float:
        return self.threshold


def test_half_widths_without_the_noise_are_rejected() -> None:
    """Loud noise, independent records: train answers just beyond T pass far too often."""
    parameters = SparseVectorParameters(0.05, 0.02, budget=BUDGET, queries=QUERIES)
    assert rejected(grouped(1), parameters, Narrowed(0.08))


@pytest.mark.parametrize("probes", corners([0, 3], 0))
def test_the_law_of_the_largest_error(probes: int) -> None:
    """An analyst who knows the holdout mean passes just beyond the bound as often as it says, and not more often.

    Between attempts she may probe the noisy threshold with train values that are less far off. The same test rejects
    the bound for half of the noise.
    """
    budget, beta, runs = 4, 0.2, 4000
    mechanism = SparseVectorMechanism(SparseVectorParameters(0.1, 0.01, budget=budget, queries=None))
    quantile = 0.01 * LargestError(budget).surprise_quantile(beta)
    most = most_broken(runs, beta)
    attempts = passes(mechanism, 0.1 + quantile, probes, runs)
    assert attempts <= most
    assert passes(mechanism, 0.1 + quantile / 2, 0, runs) > most
    if not probes:
        assert attempts >= binom.isf(1 - RATE, runs, beta)  # the bound is attained


def passes(mechanism: SparseVectorMechanism, distance: float, probes: int, runs: int) -> int:
    """Count interactions in which a train value at this distance from the holdout mean passes."""
    count = 0
    for seed in range(runs):
        noise = SeededNoise(seed)
        state = mechanism.start(noise)
        step = passed = 0
        while not passed and state.hits < (mechanism.parameters.budget or 0):
            attempt = step == probes
            train = 0.5 + (distance if attempt else 0.1)
            state, outcome = mechanism.step(state, train, 0.5, noise)
            step = 0 if outcome.source == "holdout" else step + 1
            passed = attempt and outcome.source == "train"
        count += passed
    return count
