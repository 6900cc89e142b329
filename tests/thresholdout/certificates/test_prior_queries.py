"""What scores that were seen before a guard can have released: the count of their values, rounded conservatively."""

from __future__ import annotations

import dataclasses

import pytest
from mpmath import mp, mpf

from tests.cases import for_each
from thresholdout import InputError, InputTypeError, PriorQueries
from thresholdout.certificates.prior_queries import check_prior_queries, confidence_after


@for_each(
    ("prior", "n", "count"),
    [
        (PriorQueries(1), 300, 10_001),
        (PriorQueries(3), 10_000, 10_001**3),
        (PriorQueries(3), 20_000, 20_001**3),
        (PriorQueries(10, values=301), 300, 301**10),
        (PriorQueries(1, values=1), 300, 1),
        (PriorQueries(1000, values=2), 5, 2**1000),
    ],
)
def test_nats_are_the_logarithm_of_the_number_of_outcomes_or_a_little_more(
    prior: PriorQueries, n: int, count: int
) -> None:
    with mp.workdps(40):
        exact = mp.log(count)
        assert exact <= mpf(prior.nats(n)) <= exact * (1 + mpf("2e-12"))


@for_each("confidence", [0.5, 0.95, 0.999, 0.95 + 1e-16])
@for_each(("number", "values"), [(1, 1), (1, 20), (2, 301), (3, 301)])
def test_the_confidence_after_looks_leaves_no_more_than_the_share(confidence: float, number: int, values: int) -> None:
    needed = confidence_after(PriorQueries(number, values), 300, confidence)
    with mp.workdps(40):
        share = (1 - mpf(confidence)) / mpf(values) ** number
        left = 1 - mpf(needed)
        assert share * (1 - mpf("1e-3")) < left < share
        # also after a factor that guards take off, in floating point
        assert 1 - mpf(1.0 - (1.0 - needed) * (1.0 - 2.0**-20)) < share * (1 - mpf(2) ** -20)


def test_without_looks_nothing_changes() -> None:
    assert confidence_after(None, 300, 0.95) == 0.95
    assert check_prior_queries(None) is None


def test_a_confidence_that_floats_do_not_know_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"prior_queries must be .*; got PriorQueries\(number=10, values=301\), which leaves 0\."
    ):
        confidence_after(PriorQueries(10, 301), 300, 0.95)


def test_counting_values_is_explicit_afterwards() -> None:
    assert PriorQueries(4).counted(300) == PriorQueries(4, 10_001)
    assert PriorQueries(4, 7).counted(300) == PriorQueries(4, 7)
    assert "4 scores of these records" in PriorQueries(4).words
    assert PriorQueries(1, 7).words.endswith("of 7 possible values each")
    with pytest.raises(dataclasses.FrozenInstanceError):
        PriorQueries(4).number = 3  # type: ignore[misc]


@for_each("prior", [-1, 2.5, True, "ten", [10], 10**300])
def test_what_is_no_number_of_looks_is_refused(prior: object) -> None:
    with pytest.raises(
        InputError, match=r"^prior_queries must be the number of earlier scores of this holdout"
    ) as caught:
        check_prior_queries(prior)
    assert isinstance(caught.value, InputTypeError) == (prior in ("ten", [10], True))


def test_more_looks_than_any_holdout_bears_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"prior_queries must be .*; got 1,000,000 scores, which may have released 9\.22e\+06 nats"
    ):
        PriorQueries(10**6).nats(300)
    with pytest.raises(InputError, match=r"values must be .*; got 0"):
        PriorQueries(1, values=0)
