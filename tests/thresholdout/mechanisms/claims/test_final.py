"""Shares of the error budget for claims before a final check, and what is left for it: in fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.cases import for_each
from thresholdout.mechanisms import ClaimsParameters, FinalCheck
from thresholdout.mechanisms.claims.final import share_of


@for_each("queries", [1, 20, 1000])
def test_shares_of_declared_claims_are_equal(queries: int) -> None:
    assert share_of(0, queries) == share_of(7, queries) == pytest.approx(0.3 / queries, rel=1e-15)


def test_shares_of_other_claims_sum_to_three_tenths() -> None:
    """Half of it for the first twenty: after a claims, 0.3 a/(a + 20)."""
    shares = [Fraction(share_of(asked, None)) for asked in range(2000)]
    for number in (1, 2, 20, 100, 2000):
        assert float(sum(shares[:number])) == pytest.approx(0.3 * number / (number + 20), rel=1e-13)


@for_each("queries", [5, 20, None])
def test_what_is_left_for_the_final_check(queries: int | None) -> None:
    """What no claim's share takes, nor the outcomes' rounding, 2**-19 of each."""
    found = FinalCheck(ClaimsParameters(queries=queries, final_check=True), 1000).share
    left = Fraction(1)
    for asked in range(queries or 1000):
        left *= 1 - Fraction(share_of(asked, queries)) - Fraction(1, 2**19)
    assert float(left) * (1 - 1e-11) <= found < left


def test_information_released_before_lowers_the_level_of_the_check() -> None:
    """Two nats cost as much as an error probability of 0.05 exp(-2)."""
    released = ClaimsParameters(queries=20, final_check=True, confidence=0.95, information_released=2.0)
    confident = ClaimsParameters(queries=20, final_check=True, confidence=1.0 - 0.05 * math.exp(-2.0))
    width = FinalCheck(released, 1000).half_width(0.9)
    assert width == pytest.approx(FinalCheck(confident, 1000).half_width(0.9), rel=1e-9)
    assert width > 1.2 * FinalCheck(replace(released, information_released=0.0), 1000).half_width(0.9)
