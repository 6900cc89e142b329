"""Intervals of single answers by a certificate, and plans for answers near a likely score."""

import math

import numpy as np
import pytest

from graphs import Groups, Independent, MarkovChain
from tests.sizes import corners
from thresholdout import Thresholdout
from thresholdout.certificates import Certificate, certify_gaussian
from thresholdout.certificates.gaussian.deviations import GaussianWidths
from thresholdout.certificates.gaussian.expected_width import scheduled_for, tightest_for
from thresholdout.certificates.independent_blocks import IndependentBlocks
from thresholdout.certificates.normal_extremes import largest_normal_superquantile
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.routes.posterior import mean_total_variation, posterior, posterior_widths
from thresholdout.certificates.truth import truth_of
from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms import GaussianParameters, ThresholdoutParameters
from thresholdout.mechanisms.catalogue import parameters_from_json, parameters_to_json
from thresholdout.planning.all_from_holdout import gaussian_parameters


def posterior_certificate(epsilon_scale: float = 0.001) -> tuple[Certificate, Setting]:
    setting = Setting(Independent(10_000), ThresholdoutParameters(0.0266, epsilon_scale, 2, 20), 0.95)
    route = posterior(setting)
    truth = truth_of(setting.model, setting.parameters)
    return Certificate(0.95, (route,), route, "10000 independent records", truth), setting


def test_posterior_intervals_by_hand() -> None:
    """The error of the answer first, then the log-odds: in closed form for records that leak equally."""
    certificate, setting = posterior_certificate()
    parameters = setting.parameters
    error = parameters.noise_scale * setting.law.superquantile(0.05, parameters.threshold / parameters.noise_scale)

    def moved(value: float, nats: float) -> float:
        return 1 / (1 + (1 - value) / value * math.exp(-nats))

    for value in (0.1, 0.5, 0.9):
        low, high = certificate.interval(3, 1, "holdout", value)
        assert low == pytest.approx(moved(value - error, -setting.epsilon), abs=1e-9)
        assert high == pytest.approx(moved(value + error, setting.epsilon), abs=1e-9)
        assert certificate.expected_half_width(value) == pytest.approx(max(value - low, high - value), abs=1e-12)
    assert certificate.interval(1, 0, "train", 0.0)[0] == 0.0
    assert certificate.interval(1, 0, "train", 1.0)[1] == 1.0


def test_the_widest_interval_is_the_half_width() -> None:
    """Where log-odds move means most, the interval is as wide as the certificate's tolerance."""
    certificate, setting = posterior_certificate()
    widest = max(certificate.expected_half_width(value) for value in np.linspace(0.3, 0.7, 401).tolist())
    assert widest <= certificate.tolerance
    assert widest == pytest.approx(certificate.tolerance, rel=1e-4)
    error = certificate.tolerance - mean_total_variation(setting.model, setting.epsilon)
    assert certificate.interval(1, 0, "holdout", 0.97)[0] > 0.97 - certificate.tolerance
    assert certificate.interval(1, 0, "holdout", 0.97)[0] < 0.97 - error


def test_dependent_records_have_intervals_by_their_own_leakage() -> None:
    """A chain: wider than independent records, narrower than the same half-width everywhere."""
    chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=10_000)
    parameters = ThresholdoutParameters(0.0266, 0.002, 2, 20)
    dependent = posterior_widths(Setting(chain, parameters, 0.95))
    independent = posterior_widths(Setting(Independent(10_000), parameters, 0.95))
    assert independent.expected(0.95) < dependent.expected(0.95) < 0.9 * dependent.width


def test_intervals_without_a_route_are_the_whole_range() -> None:
    _, setting = posterior_certificate()
    nothing = Certificate(0.95, (), None, "records", truth_of(setting.model, setting.parameters))
    assert nothing.interval(1, 0, "holdout", 0.4) == (0.0, 1.0)
    assert nothing.expected_half_width(0.4) == math.inf


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan])
def test_values_out_of_range(value: float) -> None:
    certificate, _ = posterior_certificate()
    with pytest.raises(InputError, match=r"^value: .*in units of the range"):
        certificate.interval(1, 0, "holdout", value)
    with pytest.raises(InputError, match=r"^expected: .*in units of the range"):
        certificate.expected_half_width(value)


def test_a_history_of_another_length_is_refused() -> None:
    certificate, _ = posterior_certificate()
    with pytest.raises(InputError, match="earlier: 1 answers; expected: 2, one for each earlier question"):
        certificate.interval(3, 0, "holdout", 0.5, earlier=[(0.5, "holdout")])
    assert certificate.interval(3, 0, "holdout", 0.5, earlier=[(0.5, "holdout")] * 2)[0] < 0.5


def test_gaussian_intervals_by_hand() -> None:
    """One answer without a history: the bound in a few lines of mathematics, and a root by scipy."""
    from scipy.optimize import brentq
    from scipy.special import rel_entr

    n, scale, value = 10_000, 0.004, 0.97
    certificate = certify_gaussian(Independent(n), GaussianParameters([scale], expected=value))
    assert certificate.chosen is not None
    widths = certificate.chosen.widths
    assert isinstance(widths, GaussianWidths)
    ((stretch, failure),) = widths.drift.events
    a, reach = math.sqrt(1 + stretch), scale * largest_normal_superquantile(1, widths.noise_failure)
    y = 1 / (2 * n * scale**2)
    room = 1 - (a - 1) * y / (4 * n * (1 - a**-2))
    low = certificate.interval(1, 0, "holdout", value, earlier=[])[0]

    def kl(x: float, p: float) -> float:
        return float(rel_entr(x, p) + rel_entr(1 - x, 1 - p))

    def lowest(h: float) -> float:
        bound = (stretch * h * y - math.log(failure)) / room / n
        c = value - reach
        return float(brentq(lambda p: kl(c, p) - kl(p + (c - p) / a, p) - bound, 1e-6, c - 1e-9))

    # h of the truths at the end that was found is enough, and 1/4 is more than that
    assert lowest(0.25) < low < lowest(low * (1 - low) * 0.9)
    assert low == pytest.approx(lowest(low * (1 - low)), abs=2e-4)


def test_gaussian_intervals_narrow_with_the_scores_of_the_past() -> None:
    """The same answer after answers near 1, near 1/2, failed questions, and without knowing."""
    parameters = gaussian_parameters(Independent(10_000), 50, 0.95, expected=0.97)
    certificate = certify_gaussian(Independent(10_000), parameters)

    def side(earlier: list[tuple[float, str]] | None) -> float:
        low, high = certificate.interval(50, 49, "holdout", 0.97, earlier=earlier)
        return max(0.97 - low, high - 0.97)

    histories: list[list[tuple[float, str]]] = [
        [(0.97, "holdout")] * 49,
        [(0.5, "holdout")] * 49,
        [(0.97, "failed")] * 49,
    ]
    near, middle, failed = histories
    assert side(near) < 0.7 * side(middle)
    assert side(middle) == pytest.approx(side(failed), rel=1e-9)
    assert side(failed) == side(None)
    assert side(near) <= certificate.expected_half_width(0.97)


def test_chains_keep_half_widths() -> None:
    chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=100_000)
    certificate = certify_gaussian(chain, gaussian_parameters(chain, 20, 0.95, expected=0.97))
    low, high = certificate.interval(1, 0, "holdout", 0.5, earlier=[])
    width = certificate.half_width(1, 0, "holdout")
    assert low == pytest.approx(0.5 - width, abs=1e-15)
    assert high == pytest.approx(0.5 + width, abs=1e-15)


@pytest.mark.parametrize("schedule", corners([False, True], 0))
@pytest.mark.parametrize(("score", "reached", "alike"), [(0.9, 0.042, 0.045), (0.97, 0.028, 0.03)])
def test_gaussian_plans_for_a_score(score: float, reached: float, alike: float, schedule: bool) -> None:
    """What is to be reached at 10,000 records and 50 answers, by every one of the intervals."""
    parameters = gaussian_parameters(Independent(10_000), 50, 0.95, expected=score, schedule=schedule)
    reached = reached if schedule else alike
    certificate = certify_gaussian(Independent(10_000), parameters)
    earlier: list[tuple[float, str]] = []
    widest = 0.0
    for query in range(1, 51):
        low, high = certificate.interval(query, query - 1, "holdout", score, earlier=earlier)
        assert score - reached < low < high < score + reached
        widest = max(widest, score - low, high - score)
        earlier.append((score, "holdout"))
    assert certificate.expected_half_width(score) == pytest.approx(widest, rel=1e-9)
    plain = gaussian_parameters(Independent(10_000), 50, 0.95, schedule=schedule)
    usual = certify_gaussian(Independent(10_000), plain)
    assert reached < usual.tolerance < certificate.tolerance
    assert certificate.expected_half_width(score) < usual.expected_half_width(score)


@pytest.mark.slow
def test_gaussian_plans_for_groups_and_any_score() -> None:
    blocks = IndependentBlocks.of_sizes(np.array([1, 2, 5] * 1250))
    for score in (0.0, 0.03, 0.5, 1.0):
        widths = tightest_for(blocks, 20, 0.05, score)
        assert widths.expected(score) <= widths.tolerance() * (1 + 1e-9)
        again = scheduled_for(blocks, widths.schedule, 0.05, score)
        assert again.expected(score) == pytest.approx(widths.expected(score), rel=0.05)
    groups = Groups(np.repeat(np.arange(2000), 5))
    assert gaussian_parameters(groups, 20, 0.95, expected=0.9).expected == 0.9


def test_a_likely_score_is_kept_in_a_ledger() -> None:
    parameters = GaussianParameters([0.03, 0.02], expected=0.9)
    assert parameters_from_json(parameters_to_json(parameters)) == parameters
    assert "expected" not in parameters_to_json(GaussianParameters(0.02))  # as guards were declared that lack it
    with pytest.raises(InputError, match=r"^expected: 1.5; expected: a number in \[0, 1\]"):
        GaussianParameters(0.02, expected=1.5)
    for wrong in ("0.9", True, [0.9, 0.8]):
        with pytest.raises(InputTypeError, match=r"^expected: .*; expected: a number in \[0, 1\]"):
            GaussianParameters(0.02, expected=wrong)  # type: ignore[arg-type]


def test_what_to_expect_of_claims_is_what_a_session_has() -> None:
    """Models that agree as models of a search do (correlation 1/2): intervals of fifty answers, on the average."""
    rng = np.random.default_rng(0)
    common = rng.random(7000) < 0.95
    guard = Thresholdout(np.arange(2000), train=np.arange(5000) + 2000, queries=50, random_state=0)
    lengths = []
    for _ in range(50):
        right = np.where(rng.random(7000) < 0.5, common, rng.random(7000) < 0.95)
        low, high = guard.ask(float(right[2000:].mean()), right[:2000], binary=True).interval
        lengths.append((high - low) / 2)
    assert guard.certificate.expected_half_width(0.95) == pytest.approx(np.mean(lengths), rel=0.15)
    assert guard.certificate.tolerance == 1.0
    assert guard.certificate.expected_half_width(1.0) < guard.certificate.expected_half_width(0.5) < 0.1
