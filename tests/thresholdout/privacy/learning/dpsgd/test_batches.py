"""Batches, and the events they are."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from tests.cases import for_each
from thresholdout.errors import InputError
from thresholdout.privacy.accounting import (
    GaussianAnswer,
    PoissonGaussianStep,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
    sample_minibatch,
)
from thresholdout.privacy.learning.dpsgd.batches import Batches, Sampling
from thresholdout.privacy.learning.dpsgd.clipping import BATCH_LIMIT


def test_events() -> None:
    assert Batches("wor", 3, 50).event(2.0) == WithoutReplacementGaussianStep(2.0, 3, 50)
    assert Batches("wr", 3, 50).event(2.0) == WithReplacementGaussianStep(2.0, 3, 50)
    assert Batches("wor", 50, 50).event(2.0) == GaussianAnswer(2.0, 2.0, "replace_one")
    found = Batches("poisson", 3, 50, "add_remove").event(2.0)
    assert isinstance(found, PoissonGaussianStep)
    assert 0.06 <= found.rate < 0.06 + 1e-15


@for_each(("size", "records"), [(1, 3), (1, 10**6), (7, 10**9 + 7), (2**17, 2**17 + 1)])
def test_coins_have_exactly_the_rate_of_the_event(size: int, records: int) -> None:
    batches = Batches("poisson", size, records)
    event = batches.event(1.0)
    assert isinstance(event, PoissonGaussianStep)
    # A uniform number is a multiple of 2^-53, each as likely; below such a multiple it is with that probability.
    assert (Fraction(event.rate) * 2**53).denominator == 1
    assert Fraction(size, records) <= Fraction(event.rate) < Fraction(size, records) + Fraction(1, 2**53)


@for_each("scheme", ["wor", "wr", "poisson"])
def test_draws_are_those_of_the_sampler(scheme: Sampling) -> None:
    batches = Batches(scheme, 8, 40)
    ours, theirs = np.random.default_rng(4), np.random.default_rng(4)
    for _ in range(50):
        np.testing.assert_array_equal(batches.draw(ours, 40), sample_minibatch(theirs, 40, 8, scheme))


def test_draws_from_more_records_than_the_public_number() -> None:
    rng = np.random.default_rng(0)
    sizes = [len(Batches("poisson", 10, 100, "add_remove").draw(rng, 1000)) for _ in range(400)]
    assert abs(np.mean(sizes) - 100) < 7 * np.sqrt(90 / 400)  # rate 0.1 of 1000; error rate below 1e-11
    drawn = np.concatenate([Batches("wor", 10, 100, "add_remove").draw(rng, 1000) for _ in range(400)])
    assert drawn.max() > 900


def batches_with_the_first(draw: Callable[[np.random.Generator], Any]) -> list[int]:
    """Return of how many sweeps the first, second, third and fourth batch has record 0."""
    rng = np.random.default_rng(1)
    return [sum(counts) for counts in zip(*([0 in draw(rng) for _ in range(4)] for _ in range(400)), strict=True)]


def is_any_place(counts: list[int]) -> bool:
    """Whether each count can be one of 400 coins of rate 1/4; wrong with probability at most 1e-9."""
    low, high = binom.ppf(1e-10, 400, 0.25), binom.isf(1e-10, 400, 0.25)
    return all(low <= count <= high for count in counts)


@for_each("scheme", ["wor", "poisson"])
def test_a_record_is_in_no_batch_rather_than_in_another(scheme: Sampling) -> None:
    batches = Batches(scheme, 2, 8)
    assert is_any_place(batches_with_the_first(lambda rng: batches.draw(rng, 8)))


def test_a_swept_order_is_seen() -> None:
    """Batches of two in the order of the records: the first one is in every fourth batch, as everybody knows."""
    turn = itertools.count()
    assert not is_any_place(batches_with_the_first(lambda rng: np.arange(2) + 2 * (next(turn) % 4)))


def test_all_records() -> None:
    np.testing.assert_array_equal(Batches("wor", 5, 5).draw(np.random.default_rng(0), 5), np.arange(5))


@for_each(
    ("scheme", "size", "records", "adjacency"),
    [
        ("wor", 51, 50, "replace_one"),
        ("wr", 50, 50, "replace_one"),
        ("poisson", 50, 50, "replace_one"),
        ("wor", 50, 50, "add_remove"),
        ("wor", BATCH_LIMIT + 1, 10**9, "replace_one"),
    ],
)
def test_batches_that_are_refused(scheme: Sampling, size: int, records: int, adjacency: str) -> None:
    with pytest.raises(InputError, match="batch_size"):
        Batches(scheme, size, records, adjacency)  # type: ignore[arg-type]
