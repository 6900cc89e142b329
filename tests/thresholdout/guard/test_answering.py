"""Shares of beta for queries that fail: in fractions, and summed over all arrangements of failures."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import pytest

from tests.cases import for_each
from thresholdout.guard.query_engine import FAILURES, failure_share


def test_failures_have_a_millionth_of_beta() -> None:
    assert FAILURES == 1 / 1024**2


@for_each(("failures", "queries"), [(1, 1), (1, 1000), (2, 10), (3, 7)])
@for_each("asked", [1, 5])
def test_declared_queries_share_equally_whenever_they_fail(failures: int, queries: int, asked: int) -> None:
    exact = Fraction(1, 2**20) / (4 * queries) ** failures
    assert failure_share(failures, asked, queries) == pytest.approx(float(exact), rel=1e-14)


@for_each(("failures", "asked"), [(1, 1), (1, 10), (2, 3), (4, 100)])
def test_other_queries_have_the_inverse_square_of_their_number(failures: int, asked: int) -> None:
    exact = (6 / (math.pi * asked) ** 2 / 4) ** failures / 2**20
    found = failure_share(failures, asked, None)
    assert exact * (1 - 1e-14) <= found < exact  # rounded down


def test_all_arrangements_of_failures_sum_to_no_more_than_their_share() -> None:
    """Of errors and interrupts: two ways to fail for each query."""
    queries = 8
    declared = sum(
        2**failures * math.comb(queries, failures) * failure_share(failures, queries, queries)
        for failures in range(1, queries + 1)
    )
    undeclared = sum(
        2**failures * failure_share(failures, numbers[-1], None)
        for failures in range(1, queries + 1)
        for numbers in combinations(range(1, queries + 1), failures)
    )
    assert 0.5 * FAILURES < declared <= FAILURES
    assert undeclared <= FAILURES
