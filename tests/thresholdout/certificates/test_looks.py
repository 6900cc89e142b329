"""What answers are worth beside other private looks: the theorems on small models, and where they are tight."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from graphs import Groups, Independent, MarkovChain
from thresholdout.accounting import BlackBox, Composed, GaussianAnswer, LaplaceAnswer, SelfComposed
from thresholdout.certificates import Certificate, certify
from thresholdout.certificates.any_mechanism import certify_parameters
from thresholdout.certificates.looks import WidenedRadius, pure_looks, with_looks
from thresholdout.certificates.transcript import Radius
from thresholdout.mechanisms import GaussianParameters, SplittingParameters, ThresholdoutParameters

SOURCES: tuple[Literal["train", "holdout"], ...] = ("train", "holdout")
FEW = ThresholdoutParameters(0.0256, 0.000137, budget=1, queries=1000)
ANY_NUMBER = ThresholdoutParameters(0.0256, 0.000137, budget=None, queries=None)
DEPENDENT = ThresholdoutParameters(0.0275, 0.00146, budget=1, queries=1000)


def before(model: object, parameters: ThresholdoutParameters) -> Certificate:
    return certify_parameters(model, parameters)  # type: ignore[arg-type]


def test_nothing_changes_without_looks() -> None:
    model = Independent(10_000)
    certificate = before(model, FEW)
    assert with_looks(certificate, model, FEW, Composed([])) is certificate


@pytest.mark.parametrize("parameters", [FEW, ANY_NUMBER])
def test_half_widths_grow_with_the_looks(parameters: ThresholdoutParameters) -> None:
    model = Independent(10_000)
    widths = []
    for epsilon in (0.0, 1e-9, 0.001, 0.01, 0.1, 1.0):
        after = with_looks(before(model, parameters), model, parameters, BlackBox(epsilon))
        assert after.route == "transcript"
        widths.append([after.half_width(i, j, s) for i, j in ((1, 0), (50, 0), (900, 3)) for s in SOURCES])
    assert np.all(np.diff(np.array(widths), axis=0) >= 0)
    assert np.all(np.array(widths[1]) > np.array(widths[0]))  # the ln 2 of sharing beta


def test_the_posterior_route_adds_epsilons() -> None:
    model = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=2000)
    parameters = ThresholdoutParameters(0.15, 0.01, budget=1, queries=10)
    certificate = before(model, parameters)
    posterior = {route.name: route for route in certificate.compared}["posterior"]
    chosen = replace(certificate, chosen=posterior)
    after = with_looks(chosen, model, parameters, BlackBox(0.05))
    assert after.route == "posterior"
    assert after.tolerance > posterior.tolerance


def test_groups_leak_more() -> None:
    widths = []
    for model in (Independent(10_000), Groups([record // 5 for record in range(10_000)])):
        after = with_looks(before(model, DEPENDENT), model, DEPENDENT, BlackBox(0.01))
        widths.append(after.half_width(10, 0, "train"))
    assert widths[0] < widths[1]


def test_what_is_not_proved_is_not_claimed() -> None:
    model = Independent(10_000)
    for looks in (GaussianAnswer(10.0), BlackBox(0.1, 1e-9), Composed([BlackBox(0.1), GaussianAnswer(10.0)])):
        assert pure_looks(looks) == math.inf
        after = with_looks(before(model, FEW), model, FEW, looks)
        assert after.chosen is None
        assert after.tolerance == math.inf
        assert after.half_width(1, 0, "train") == math.inf
        assert "before the first question only" in after.statement
    for parameters in (GaussianParameters(0.018, queries=100), SplittingParameters(10)):
        other = with_looks(certify_parameters(model, parameters), model, parameters, BlackBox(0.01))
        assert other.chosen is None
        assert not other.routes["chosen"].any()


def test_looks_add_up() -> None:
    assert pure_looks(SelfComposed(BlackBox(0.25), 4)) == 1.0
    assert pure_looks(Composed([BlackBox(0.25, adjacency="add_remove"), LaplaceAnswer(2.0)])) == pytest.approx(1.0)


def test_the_radius_against_its_formula() -> None:
    plain = Radius(10_000, 1.0, 101, 0.025, queries=1000, budget=3)
    widened = WidenedRadius(10_000, 1.0, 101, 0.025, queries=1000, budget=3, leaked=2.0)
    exponent = 2 * 10_000 * plain(500, 1) ** 2
    nats = 2.0 / 8 + math.sqrt(2.0 * exponent / 2)
    assert widened(500, 1) == pytest.approx(math.sqrt((nats + exponent + math.log(2)) / 20_000), rel=1e-12)
    assert widened.largest() >= widened(1000, 2)


def respond(truth: int, epsilon: float, said: int) -> float:
    """Return the probability that randomised response says something."""
    return (math.exp(epsilon) if truth == said else 1.0) / (1.0 + math.exp(epsilon))


def test_max_information_of_looks_whose_epsilons_depend_on_releases() -> None:
    """Exactly, for five coins: the first look decides how private the others are (LOOKS.md, L0 and L2)."""
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


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.5, 1.0])
def test_the_widening_is_needed_and_nearly_tight(epsilon: float) -> None:
    """A look at every record by randomised response, then a question that repeats what it said.

    Its mean on the holdout is about 1/2 + tanh(epsilon/2)/2, and 1/2 on new data.
    """
    n = 20_000
    rng = np.random.default_rng(5)
    model, parameters = Independent(n), ThresholdoutParameters(0.0256, 0.000137, budget=1, queries=100)
    coins = rng.integers(0, 2, n)
    said = np.where(rng.random(n) < 1 / (1 + math.exp(epsilon)), 1 - coins, coins)
    gap = abs(float(np.mean(said == coins)) - 0.5)
    certificate = certify(model, threshold=0.0256, noise_scale=0.000137, budget=1, queries=100)
    after = with_looks(certificate, model, parameters, BlackBox(epsilon))
    assert after.chosen is not None
    widths = after.chosen.widths
    radius = widths.radius(1, 0)  # type: ignore[union-attr]
    assert gap <= radius
    assert radius <= 1.6 * gap + 0.02
    if epsilon >= 0.2:
        assert gap > certificate.chosen.widths.radius(1, 0)  # type: ignore[union-attr]
