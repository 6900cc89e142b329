"""What answers are worth beside other private releases: the theorems on small models, and where they are tight."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
import pytest

from graphs import Groups, Independent, MarkovChain
from thresholdout.certificates import Certificate
from thresholdout.certificates.after_releases import releases_epsilon, with_releases
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.mechanisms import ClaimsParameters, SparseVectorParameters
from thresholdout.privacy.accounting import BlackBox, Composed, GaussianAnswer, LaplaceAnswer, SelfComposed

SOURCES: tuple[Literal["train", "holdout"], ...] = ("train", "holdout")
FEW = SparseVectorParameters(0.04, 0.0025, budget=1, queries=1000)


def before(model: object, parameters: SparseVectorParameters) -> Certificate:
    return certify_parameters(model, parameters)  # type: ignore[arg-type]


def test_nothing_changes_without_looks() -> None:
    model = Independent(10_000)
    certificate = before(model, FEW)
    assert with_releases(certificate, model, FEW, Composed([])) is certificate


@pytest.mark.slow
def test_half_widths_grow_with_the_looks() -> None:
    model = Independent(10_000)
    widths = []
    for epsilon in (0.0, 1e-9, 0.001, 0.01, 0.1, 1.0):
        after = with_releases(before(model, FEW), model, FEW, BlackBox(epsilon))
        assert after.route == "posterior"
        widths.append([after.half_width(i, j, s) for i, j in ((1, 0), (50, 0), (900, 3)) for s in SOURCES])
    assert np.all(np.diff(np.array(widths), axis=0) >= 0)
    assert np.all(np.array(widths[3]) > np.array(widths[0]))


def test_the_posterior_route_adds_epsilons() -> None:
    model = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=2000)
    parameters = SparseVectorParameters(0.15, 0.01, budget=1, queries=10)
    certificate = before(model, parameters)
    after = with_releases(certificate, model, parameters, BlackBox(0.05))
    assert after.route == certificate.route == "posterior"
    assert after.tolerance > certificate.tolerance


def test_groups_leak_more() -> None:
    widths = []
    for model in (Independent(10_000), Groups([record // 5 for record in range(10_000)])):
        after = with_releases(before(model, FEW), model, FEW, BlackBox(0.01))
        widths.append(after.half_width(10, 0, "train"))
    assert widths[0] < widths[1]


def test_what_is_not_proved_is_not_claimed() -> None:
    model = Independent(10_000)
    for releases in (GaussianAnswer(10.0), BlackBox(0.1, 1e-9), Composed([BlackBox(0.1), GaussianAnswer(10.0)])):
        assert releases_epsilon(releases) == math.inf
        after = with_releases(before(model, FEW), model, FEW, releases)
        assert after.chosen is None
        assert after.tolerance == math.inf
        assert after.half_width(1, 0, "train") == math.inf
        assert "has a delta" in after.statement
        assert "pay for any release from the remaining error budget" in after.statement


def test_looks_add_up() -> None:
    assert releases_epsilon(SelfComposed(BlackBox(0.25), 4)) == 1.0
    assert releases_epsilon(Composed([BlackBox(0.25, adjacency="add_remove"), LaplaceAnswer(2.0)])) == pytest.approx(
        1.0
    )


def respond(truth: int, epsilon: float, said: int) -> float:
    """Return the probability that randomised response says something."""
    return (math.exp(epsilon) if truth == said else 1.0) / (1.0 + math.exp(epsilon))


def test_max_information_of_looks_whose_epsilons_depend_on_releases() -> None:
    """Exactly, for five coins: the first look decides how private the others are (RELEASES.md, L0 and L2)."""
    n, first, low, high = 5, 0.8, 0.1, 1.5
    coins = list(itertools.product((0, 1), repeat=n))
    for failure in (0.3, 0.05, 0.01):
        outside = 0.0
        for said in coins:
            rest = high if said[0] else low
            spent = [first, *[rest] * (n - 1)]  # of single records; the look as a whole has the largest of them
            given = [
                respond(x[0], first, said[0]) * math.prod(respond(x[i], rest, said[i]) for i in range(1, n)) * 2.0**-n
                for x in coins
            ]
            marginal = sum(given)
            leaked = n * max(spent) ** 2
            nats = leaked / 8 + math.sqrt(leaked * math.log(1 / failure) / 2)
            outside += sum(p for p in given if math.log(p / (marginal * 2.0**-n)) > nats)
        assert outside <= failure


def test_claims_stay_beside_pure_releases_and_go_beside_a_delta_of_dependent_records() -> None:
    model, parameters = MarkovChain([[0.6, 0.4], [0.4, 0.6]], n=2000), ClaimsParameters(inflation=2.0, effective=None)
    certificate = certify_parameters(model, parameters)
    assert certificate.route == "claims"
    assert with_releases(certificate, model, parameters, BlackBox(0.1)).route == "claims"
    assert with_releases(certificate, model, parameters, BlackBox(0.1, 1e-6)).chosen is None
