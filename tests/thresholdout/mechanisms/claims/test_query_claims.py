"""The noise of edges: limits take the scales that are drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tests.cases import for_each
from thresholdout.mechanisms import ClaimsParameters
from thresholdout.mechanisms.claims.interval import UNITS
from thresholdout.mechanisms.claims.query_claims import EdgeNoise, Private
from thresholdout.noise.sources import SeededNoise


class Recorder(SeededNoise):
    """Keeps the scales that are asked for."""

    def __init__(self) -> None:
        super().__init__(0)
        self.scales: list[Fraction] = []

    def laplace(self, scale: Fraction) -> int:
        self.scales.append(scale)
        return 100 + len(self.scales)


PUBLIC = EdgeNoise(ClaimsParameters(noise=0.5), None)
PRIVATE = EdgeNoise(ClaimsParameters(epsilon=1.0), Private(3 * 2**20, 40, 2**10))


@for_each(
    ("edges", "exponent", "scale"),
    [
        (PUBLIC, -1, Fraction(1, 2)),
        (PUBLIC, -10, Fraction(1, 2**10)),
        (PUBLIC, -30, Fraction(1, 2**30)),
        (PRIVATE, 0, Fraction(3 * 2**20, UNITS)),
    ],
)
def test_limits_take_the_scales_that_are_drawn(edges: EdgeNoise, exponent: int, scale: Fraction) -> None:
    """One for the edge that both tests share, and twice as much in each test."""
    noise = Recorder()
    assert edges.edge(exponent, noise) == 101
    assert edges.tests(exponent, noise) == (102, 103)
    assert noise.scales == [scale * UNITS, 2 * scale * UNITS, 2 * scale * UNITS]
    assert edges.scales(exponent) == (float(scale), float(2 * scale))


def test_values_without_variance_have_edges_without_noise() -> None:
    noise, nothing = Recorder(), PUBLIC.exponent(0.0)
    assert EdgeNoise(ClaimsParameters(noise=0.0), None).exponent(0.3) == nothing
    assert (PUBLIC.edge(nothing, noise), PUBLIC.tests(nothing, noise), PUBLIC.scales(nothing)) == (0, (0, 0), ())
    assert noise.scales == []


@for_each(
    ("edges", "deviation", "exponent"),
    [
        (PUBLIC, 0.1, -5),
        (PUBLIC, 2.0**-4, -5),
        (PUBLIC, 0.3, -3),
        (PUBLIC, 2.0**-40, -30),
        (PUBLIC, 100.0, -1),
        (PRIVATE, 0.1, 0),
        (PRIVATE, 0.0, 0),
    ],
)
def test_a_scale_is_the_power_of_two_below_its_share_of_the_deviation(
    edges: EdgeNoise, deviation: float, exponent: int
) -> None:
    assert edges.exponent(deviation) == exponent


def test_private_noise_has_the_deviation_of_a_shared_and_a_wider_variable() -> None:
    """Variances 2 b^2 and 8 b^2."""
    assert PRIVATE.deviation() == pytest.approx(math.sqrt(2 + 8) * 3 * 2**20 / UNITS, rel=1e-14)
    assert PUBLIC.deviation() == 0.0


def test_the_privacy_loss_of_all_answers_is_rounded_up() -> None:
    """Each outcome costs twice what one record moves, in scales."""
    for scale in (3, 7, 10**6 + 3, 3 * 2**20):
        found = Fraction(Private(scale, 40, 2**10).epsilon)
        exact = Fraction(2 * 2**10 * 40, scale)
        assert exact <= found <= exact * (1 + Fraction(1, 2**51))
