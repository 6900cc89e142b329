"""From fresh records to records that were looked at: exactly on small models, and by an analyst who reads a look."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from mpmath import mp
from scipy.stats import binom, norm

from graphs import Independent
from tests.cases import for_each
from tests.sizes import corners
from thresholdout import Thresholdout
from thresholdout.certificates.after_releases import releases_epsilon, with_releases
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.change_of_measure import (
    approximate_nats,
    information_per_record,
    mutual_information_nats,
    pure_nats,
    smallest_nats,
)
from thresholdout.certificates.new_data import generalization_certificate
from thresholdout.mechanisms import ClaimsParameters, SparseVectorParameters
from thresholdout.privacy.accounting import (
    BlackBox,
    DistributionAccountant,
    GaussianAnswer,
    PoissonGaussianStep,
    SelfComposed,
    WithoutReplacementGaussianStep,
)

TEN_THOUSAND = Independent(10_000).revealed_blocks()


def worst(losses: Sequence[tuple[float, float]], b: float) -> float:
    """Return the largest probability of an event whose probability with fresh records is b.

    `losses` are log-ratios of the two laws with their probabilities when records were looked at; by Neyman and Pearson
    the worst event takes the largest ratios.
    """
    left, found = b, 0.0
    for loss, chance in sorted(losses, reverse=True):
        fresh = chance * math.exp(-loss)
        part = 1.0 if fresh <= left else left / fresh
        found += part * chance
        left -= part * fresh
        if left <= 0.0:
            break
    return found


def coins_told(n: int, epsilon: float, delta: float) -> list[tuple[float, float]]:
    """Return the log-ratios of n fair coins: each is told with probability delta, else by randomised response."""
    honest = math.exp(epsilon) / (1 + math.exp(epsilon))
    single = [
        (math.log(2 * honest), (1 - delta) * honest),
        (math.log(2 * (1 - honest)), (1 - delta) * (1 - honest)),
        (math.log(2), delta),
    ]
    law: dict[tuple[int, int], float] = {(0, 0): 1.0}
    for _ in range(n):
        after: defaultdict[tuple[int, int], float] = defaultdict(float)
        for (right, told), chance in law.items():
            after[right + 1, told] += chance * single[0][1]
            after[right, told] += chance * single[1][1]
            after[right, told + 1] += chance * single[2][1]
        law = dict(after)
    return [
        (right * single[0][0] + told * single[2][0] + (n - right - told) * single[1][0], chance)
        for (right, told), chance in law.items()
        if chance > 0
    ]


@pytest.mark.parametrize("epsilon", corners([0.05, 0.3, 1.0], 1))
@for_each("p", [0.3, 0.05, 0.01])
@for_each("delta", [0.0, 1e-7, 1e-5, 1e-4])
def test_no_event_of_told_coins_is_likelier_than_promised(p: float, epsilon: float, delta: float) -> None:
    n = 40
    losses = coins_told(n, epsilon, delta)
    assert math.isclose(sum(chance for _, chance in losses), 1.0, rel_tol=1e-9)
    per_record = (1 - delta) * sum(
        q * math.log(2 * q) for q in (1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon)))
    ) + delta * math.log(2)
    costs = [mutual_information_nats(n * per_record, p)]
    release = DistributionAccountant("replace_one").compose(BlackBox(epsilon, delta))
    costs.append(approximate_nats([release], Independent(n).revealed_blocks(), p))
    if delta == 0.0:
        costs.append(pure_nats(Independent(n), epsilon, p))
    for nats in costs:
        if math.isfinite(nats):
            assert worst(losses, p * math.exp(-nats)) <= p * (1 + 1e-9)
    assert math.isfinite(costs[1]) == (n * delta <= p * 0.5 / 4 * 0.8)  # of the largest delta that is tried
    assert worst(losses, p * math.exp(-costs[0] / 100)) > p  # a test that can fail


@pytest.mark.slow
@pytest.mark.parametrize("sigma", corners([1.0, 3.0, 10.0], 1))
@for_each("p", [0.3, 0.05])
def test_no_event_of_a_noisy_sum_is_likelier_than_promised(sigma: float, p: float) -> None:
    """The sum of n coins, with Gaussian noise, against quadrature over the sum."""
    n = 30
    sums = np.arange(n + 1)
    grid = np.linspace(-9 * sigma, n + 9 * sigma, 4_001)
    density = norm.pdf(grid[:, None], sums, sigma) * (grid[1] - grid[0])
    joint = density * binom.pmf(sums, n, 0.5)
    mixture = joint.sum(axis=1, keepdims=True)
    keep = joint > 1e-300
    losses = list(zip(np.log(density[keep] / np.broadcast_to(mixture, joint.shape)[keep]), joint[keep], strict=True))
    release = GaussianAnswer(sigma)
    exact = float(sum(loss * chance for loss, chance in losses))
    assert exact <= n * information_per_record(release, math.inf)
    nats = smallest_nats(Independent(n), release, math.inf, p)
    assert worst(losses, p * math.exp(-nats)) <= p
    assert worst(losses, p * math.exp(-exact / 2)) > p


def test_the_centre_without_the_record_is_a_quarter() -> None:
    """Of Poisson's batches, order 1, to leading order in the rate; a fixed size has another record in its place."""
    q = 0.0024
    one_more = q * q * math.expm1(1 / 36) / 2
    assert information_per_record(PoissonGaussianStep(6.0, q), math.inf) == pytest.approx(one_more, rel=0.02)
    replaced = q * q * math.expm1(4 / 36) / 2
    step = WithoutReplacementGaussianStep(6.0, 120, 50_000)
    assert 3.9 * one_more < information_per_record(step, math.inf) < 1.1 * replaced


def test_more_information_costs_more() -> None:
    for p in (0.5, 0.05, 1e-6):
        nats = [mutual_information_nats(x, p) for x in (0.0, 1e-9, 1e-3, 1.0, 100.0)]
        assert nats == sorted(nats)
        assert nats[0] == 0.0
        t = nats[-1]
        exact = p * t + (1 - p) * math.log1p(-p) - (1 - p) * math.log1p(-p * math.exp(-t))
        assert exact == pytest.approx(100.0, rel=1e-9)
    assert mutual_information_nats(math.inf, 0.05) == math.inf


@pytest.mark.slow
def test_looks_in_a_certificate_of_claims() -> None:
    """With a delta too where records are independent; by posteriors only pure ones, where no probability is spared."""
    independent, claims = Independent(10_000), ClaimsParameters()
    private = GaussianAnswer(400.0)
    assert with_releases(certify_parameters(independent, claims), independent, claims, private).route == "claims"
    hopeless = BlackBox(0.1, 1e-3)
    assert with_releases(certify_parameters(independent, claims), independent, claims, hopeless).chosen is None
    parameters = SparseVectorParameters(0.04, 0.0025, budget=1, queries=1000)
    by_posterior = with_releases(certify_parameters(independent, parameters), independent, parameters, private)
    assert by_posterior.chosen is None
    assert "pay for any release from the remaining error budget" in by_posterior.statement
    spared = with_releases(certify_parameters(independent, parameters), independent, parameters, private, spare=1e-8)
    assert spared.route == "posterior"


@pytest.mark.slow
def test_a_guard_records_a_training() -> None:
    holdout = np.arange(50_000.0)
    training = SelfComposed(WithoutReplacementGaussianStep(6.0, 120, 50_000), 200)
    guard = Thresholdout(holdout, mechanism=SparseVectorParameters(0.02, 0.001, budget=1, queries=100))
    assert guard.certificate.route == "posterior"
    assert releases_epsilon(training) == math.inf
    before, after = guard.certificate.tolerance, guard.releases.record(training).tolerance
    assert before < after < 0.06
    claims = Thresholdout(holdout, mechanism="claims")  # what the message names
    claims.releases.record(training)
    low, high = claims.ask(0.5, holdout < 25_000, binary=True).interval
    assert 0.45 < low < 0.5 < high < 0.55


@pytest.mark.slow
def test_what_a_training_says_about_new_data() -> None:
    training = SelfComposed(WithoutReplacementGaussianStep(6.0, 120, 50_000), 200)
    found = generalization_certificate(training, 50_000)
    assert found.bound < 0.04
    bounds = found.routes["bound"]
    assert bounds["mutual information"] < bounds["approximate max-information"]


def test_what_a_stated_epsilon_says_about_new_data() -> None:
    stated = generalization_certificate(BlackBox(0.01, 1e-10), 10_000)
    assert stated.route == "approximate max-information"
    nats = approximate_nats([DistributionAccountant("replace_one").compose(BlackBox(0.01, 1e-10))], TEN_THOUSAND, 0.05)
    assert stated.bound == pytest.approx(math.sqrt((math.log(40) + nats) / 20_000), rel=1e-6)


@for_each(
    ("epsilon", "n", "p", "delta"),
    [
        (0.13597951452817506, 22348314639491, 9.844190660305211e-08, 1.0052086383055855e-23),
        (0.6183851238197517, 95214061675498, 1.1605355803193956e-08, 2.2645905503088637e-31),
        (1.0, 40, 0.05, 1e-5),
    ],
)
def test_rounding_is_upwards(epsilon: float, n: int, p: float, delta: float) -> None:
    """Against the formula of M3 with 50 digits; a difference of two rounded logarithms was below it."""
    with mp.workdps(50):
        a, d, target = mp.mpf(epsilon), mp.mpf(delta), mp.mpf(p)
        costs = []
        for share in map(mp.mpf, (0.5, 0.2, 0.05)):
            r = 4 * n * d * mp.exp(-a) / (target * share)
            rest = target * share * mp.mpf("0.75") - n * d
            for rate in np.geomspace(1e-4, 1e4, 161):
                rate = mp.mpf(float(rate))
                if rest > 0 and a * (1 + rate) < 300:
                    growth = n * mp.log(mp.cosh(a * (rate + mp.mpf("0.5"))) / mp.cosh(a / 2))
                    drift = mp.sinh(a * (1 + rate)) / mp.sinh(a) * r
                    costs.append((growth + drift - mp.log(rest)) / rate - mp.log(1 - share))
        exact = min(costs)
        release = DistributionAccountant("replace_one").compose(BlackBox(epsilon, delta))
        assert exact <= approximate_nats([release], Independent(n).revealed_blocks(), p) <= exact * (1 + mp.mpf(1e-3))


def test_a_release_that_is_private_at_epsilon_0() -> None:
    release = DistributionAccountant("replace_one").compose(BlackBox(0.0, 1e-9))
    assert approximate_nats([release], TEN_THOUSAND, 0.05) < 0.1
