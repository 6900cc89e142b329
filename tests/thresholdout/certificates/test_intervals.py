"""Intervals of single answers by a certificate, and plans for answers near a likely score."""

import math

import numpy as np
import pytest

from graphs import Independent, MarkovChain
from tests.cases import for_each
from thresholdout import Thresholdout
from thresholdout.certificates import Certificate
from thresholdout.certificates.certificate import estimand_of
from thresholdout.certificates.posterior import mean_total_variation, posterior, posterior_widths
from thresholdout.certificates.problem import Setting
from thresholdout.errors import InputError
from thresholdout.mechanisms import SparseVectorParameters


def posterior_certificate(epsilon_scale: float = 0.001) -> tuple[Certificate, Setting]:
    setting = Setting(Independent(10_000), SparseVectorParameters(0.0266, epsilon_scale, 2, 20), 0.95)
    route = posterior(setting)
    estimand = estimand_of(setting.model, setting.parameters)
    return Certificate(0.95, (route,), route, "10000 independent records", estimand), setting


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
    parameters = SparseVectorParameters(0.0266, 0.002, 2, 20)
    dependent = posterior_widths(Setting(chain, parameters, 0.95))
    independent = posterior_widths(Setting(Independent(10_000), parameters, 0.95))
    assert independent.expected(0.95) < dependent.expected(0.95) < 0.9 * dependent.width


def test_intervals_without_a_route_are_the_whole_range() -> None:
    _, setting = posterior_certificate()
    nothing = Certificate(0.95, (), None, "records", estimand_of(setting.model, setting.parameters))
    assert nothing.interval(1, 0, "holdout", 0.4) == (0.0, 1.0)
    assert nothing.expected_half_width(0.4) == math.inf


@for_each("value", [-0.01, 1.01, math.nan])
def test_values_out_of_range(value: float) -> None:
    certificate, _ = posterior_certificate()
    with pytest.raises(InputError, match=r"^value must be a number in \[0, 1\], in units of the range"):
        certificate.interval(1, 0, "holdout", value)
    with pytest.raises(InputError, match=r"^expected must be a number in \[0, 1\], in units of the range"):
        certificate.expected_half_width(value)


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
