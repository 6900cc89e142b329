"""Splitting: published counts, brute force over means, and groups."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from graphs import Groups, Independent, MarkovChain, MarkovField
from thresholdout.certificates.split_records import (
    bernoulli_holds,
    bernoulli_width,
    bounded_width,
    smallest_divergence,
    splitting_width,
)

COUNTS = [  # n, tau, questions with values in {0, 1}, in [0, 1]
    (1_000, 0.1, 5, 3),
    (2_000, 0.1, 10, 7),
    (5_000, 0.1, 21, 15),
    (10_000, 0.1, 38, 28),
    (50_000, 0.1, 153, 118),
    (100_000, 0.1, 281, 220),
    (100_000, 0.05, 84, 63),
]


@pytest.mark.parametrize(("n", "tolerance", "binary", "bounded"), COUNTS)
def test_counts(n: int, tolerance: float, binary: int, bounded: int) -> None:
    assert bernoulli_holds(n // binary, tolerance, 0.05 / binary)
    assert not bernoulli_holds(n // (binary + 1), tolerance, 0.05 / (binary + 1))
    assert bounded_width(n // bounded, 0.05 / bounded) <= tolerance
    assert bounded_width(n // (bounded + 1), 0.05 / (bounded + 1)) > tolerance


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.floats(1e-5, 0.3))
def test_no_mean_exceeds_the_width(records: int, failure: float) -> None:
    width = bernoulli_width(records, failure)
    counts = np.arange(records + 1)
    means = np.unique(np.r_[np.linspace(0, 1, 997), counts / records - width - 1e-12, counts / records + width + 1e-12])
    means = means[(means >= 0) & (means <= 1)]
    off = np.abs(counts[None, :] / records - means[:, None]) > width
    worst = float(np.max(np.sum(off * binom.pmf(counts[None, :], records, means[:, None]), axis=1)))
    assert worst <= failure * (1 + 1e-9)


@pytest.mark.parametrize("records", [30, 400])
def test_width_is_the_smallest(records: int) -> None:
    failure = 0.01
    width = bernoulli_width(records, failure) * (1 - 2e-3)
    counts = np.arange(records + 1)
    means = np.r_[counts / records - width - 1e-9, counts / records + width + 1e-9]
    means = means[(means >= 0) & (means <= 1)]
    off = np.abs(counts[None, :] / records - means[:, None]) > width
    assert np.max(np.sum(off * binom.pmf(counts[None, :], records, means[:, None]), axis=1)) > failure


def test_the_tail_at_one_half_is_no_bound() -> None:
    """At 288 of n = 100,000 the tail at p = 1/2 is small enough, but that at other means is not."""
    questions = 288
    records = 100_000 // questions
    at_half = 2 * binom.sf(math.floor(records * 0.6), records, 0.5)
    assert at_half <= 0.05 / questions
    assert not bernoulli_holds(records, 0.1, 0.05 / questions)


@pytest.mark.parametrize("records", [2048, 2049, 30_000, 1_000_000])
def test_many_records(records: int) -> None:
    width = bernoulli_width(records, 0.05)
    normal = 1.959964 * 0.5 / math.sqrt(records)
    assert normal < width < normal * (1 + 1.2 / math.sqrt(records) + 0.012)
    assert width < bounded_width(records, 0.05)


def test_bounded_width_solves_its_equation() -> None:
    for records, failure in ((1, 0.05), (100, 1e-6), (10**6, 0.5)):
        width = bounded_width(records, failure)
        means = np.linspace(0, 1 - width, 200_003)[1:-1]
        above = means + width
        divergence = above * np.log(above / means) + (1 - above) * np.log((1 - above) / (1 - means))
        reached = 2 * math.exp(-records * float(divergence.min()))
        assert reached == pytest.approx(failure, rel=1e-4)
        assert reached <= failure


def test_the_symmetric_exponent_is_no_bound_for_large_widths() -> None:
    """Two records: t from ``t ln((1+t)/(1-t))`` fails at p = 1 - t, where two ones are off by t; ours does not."""
    failure = 0.0078125
    symmetric = 0.9094484
    assert 2 * math.exp(-2 * symmetric * (math.log1p(symmetric) - math.log1p(-symmetric))) <= failure
    assert (1 - symmetric) ** 2 > failure
    assert (1 - bounded_width(2, failure)) ** 2 <= failure


def test_smallest_divergence_against_the_sharp_series() -> None:
    """Vajda's tight bound: 2 t^2 + (4/9) t^4 + (32/135) t^6 + ... [Fedotov, Harremoes, Topsoe 2003]."""
    for t in (0.01, 0.05, 0.1, 0.2):
        series = 2 * t**2 + 4 / 9 * t**4 + 32 / 135 * t**6
        assert smallest_divergence(t) == pytest.approx(series, rel=t**6 + 1e-8)


def test_groups() -> None:
    equal = Groups([record // 10 for record in range(1000)])
    assert splitting_width(equal, 5, 0.05) == bounded_width(20, 0.01)
    assert splitting_width(equal, 101, 0.05) == math.inf
    assert splitting_width(equal, 5, 0.05, binary=True) == math.inf
    assert splitting_width(Groups([0, 0, 0, 1, 1, 2, 2, 3]), 2, 0.5) == math.inf  # no part is a sample of these
    assert splitting_width(Groups([0, 0, 1, 1]), 2, 0.5) < 1.0


def test_components_of_other_models_are_no_parts() -> None:
    """The mechanism knows groups only: it would part the records of a component."""
    pairs = MarkovField.ising(nx.from_edgelist([(2 * k, 2 * k + 1) for k in range(50)]), 0.5)
    assert pairs.independent_groups() is not None
    assert splitting_width(pairs, 2, 0.05) == math.inf


def test_no_splitting_of_a_chain_or_of_too_few_records() -> None:
    assert splitting_width(MarkovChain([[0.6, 0.4], [0.4, 0.6]], n=100), 2, 0.05) == math.inf
    assert splitting_width(Independent(3), 4, 0.05) == math.inf
