"""Tails of the binomial law: against sums in many digits."""

from __future__ import annotations

import math

import mpmath as mp

from tests.cases import for_each
from tests.oracles.counts import binomial_tail
from thresholdout.limits.binomial import log_one_law_tail


def exact(k: int, n: int, p: float) -> mp.mpf:
    with mp.workdps(60):
        return min(mp.mpf(0), mp.log(binomial_tail(k, n, p)))  # the sum itself is rounded


@for_each("p", [1e-6, 0.1, 0.5, 0.9, 1.0 - 1e-9])
@for_each(("k", "n"), [(1, 1), (1, 5), (3, 5), (5, 5), (20, 40), (39, 40), (600, 1000), (955, 1000)])
def test_tails_are_rounded_up_by_a_little(k: int, n: int, p: float) -> None:
    truth = exact(k, n, p)
    if truth > -640.0:
        assert truth <= log_one_law_tail(k, n, p) <= min(0.0, truth + 2e-10)


@for_each(("k", "n", "p"), [(1000, 1000, 0.5), (70, 70, 1e-5), (300, 300, 1e-200)])
def test_tails_of_all_records_below_the_smallest_float(k: int, n: int, p: float) -> None:
    """``n ln p``, which relative entropy does not miss."""
    truth = n * math.log(p)
    assert truth <= log_one_law_tail(k, n, p) <= truth * (1 - 2e-9)


def test_other_tails_below_the_smallest_float() -> None:
    """Relative entropy misses a factor of the order of the root of n."""
    for k, n, p in ((500, 1000, 1e-3), (900, 1000, 0.05), (99_000, 100_000, 0.9)):
        truth = exact(k, n, p)
        assert truth <= log_one_law_tail(k, n, p) <= truth + math.log(40.0 * math.sqrt(n))


@for_each(
    ("k", "n", "p", "value"),
    [
        (0, 0, 0.5, 0.0),
        (0, 5, 0.0, 0.0),
        (0, 5, 1.0, 0.0),
        (1, 5, 0.0, -math.inf),
        (1, 0, 0.5, -math.inf),
        (6, 5, 0.5, -math.inf),
        (6, 5, 1.0, -math.inf),
        (5, 5, 1.0, 0.0),
        (1, 1000, 0.5, 0.0),
    ],
)
def test_certain_and_impossible_tails(k: int, n: int, p: float, value: float) -> None:
    assert log_one_law_tail(k, n, p) == value
