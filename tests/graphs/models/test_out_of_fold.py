"""Out-of-fold values: the inflation holds for every learner, and not less would."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import ArgumentError, Groups, Independent, RouteUnavailable
from graphs.models.out_of_fold import OutOfFold
from tests.cases import for_each
from tests.sizes import corners

SLOPES = (-8.0, -2.0, -0.5, 0.5, 1.0, 2.0, 4.0, 8.0)
Floats = NDArray[np.float64]


def deviations(folds: list[int], p: float) -> tuple[Floats, list[Floats]]:
    """Return the law of all data sets of n bits, and what each fold adds to the error, for *all* learners."""
    law, parts = averages(folds, p)
    return law, [total - expected for total, expected in parts]


def averages(folds: list[int], p: float, groups: list[int] | None = None) -> tuple[Floats, list[tuple[Floats, Floats]]]:
    """Return the law of all data sets of n bits, and what each fold adds to average and risk, for *all* learners.

    A learner maps the bits outside a fold to one of the four functions of a bit with values 0 and 1; these are the
    corners of all learners with values in [0, 1], and a moment generating function is convex in them. Records of one
    group have one bit.
    """
    members = list(range(len(folds))) if groups is None else groups
    n, coins = len(folds), np.array(list(itertools.product([0, 1], repeat=len(set(members)))))
    law = np.prod(np.where(coins == 1, p, 1 - p), axis=1)
    bits = coins[:, members]
    functions = np.array(list(itertools.product([0, 1], repeat=2)))  # value at 0, value at 1
    found = []
    for fold in sorted(set(folds)):
        inside = np.array([home == fold for home in folds])
        seen = bits[:, ~inside] @ (1 << np.arange(int((~inside).sum())))
        learners = np.array(list(itertools.product(range(4), repeat=1 << int((~inside).sum()))))
        chosen = functions[learners[:, seen]]  # learner, data set, value at 0 and 1
        ones = bits[:, inside].sum(axis=1)
        total = chosen[..., 1] * ones + chosen[..., 0] * (inside.sum() - ones)
        expected = inside.sum() * (p * chosen[..., 1] + (1 - p) * chosen[..., 0])
        found.append((total / n, expected / n))
    return law, found


@pytest.mark.slow
@for_each("p", [0.5, 0.3, 0.05])
@for_each("folds", [[0, 0, 1, 1], [0, 1, 1], [0, 1], [0, 0, 0, 1]])
def test_the_inflation_holds_for_every_learner_with_two_folds(folds: list[int], p: float) -> None:
    law, (first, second) = deviations(folds, p)
    proxy = OutOfFold(folds).variance_inflation() / len(folds)
    for slope in SLOPES:
        moments = (np.exp(slope * first) * law) @ np.exp(slope * second).T
        assert moments.max() <= math.exp(slope**2 * proxy / 8) * (1 + 1e-12)


@for_each("p", [0.5, 0.2])
def test_the_inflation_holds_for_every_learner_with_three_folds(p: float) -> None:
    law, parts = deviations([0, 1, 2], p)
    proxy = OutOfFold([0, 1, 2]).variance_inflation() / 3
    for slope in (-2.0, 1.0, 8.0):
        first, second, third = (np.unique(np.exp(slope * part), axis=0) for part in parts)
        largest = max(float(((row * law * second) @ third.T).max()) for row in first)
        assert largest <= math.exp(slope**2 * proxy / 8) * (1 + 1e-12)
        if p == 0.5:  # the parity of the others, which is right for all records or for none
            assert largest >= math.cosh(slope / 2) * (1 - 1e-12)


def test_the_inflation_of_independent_records_would_be_too_small() -> None:
    law, (first, second) = deviations([0, 0, 1, 1], 0.5)
    moments = (np.exp(first) * law) @ np.exp(second).T
    assert moments.max() > math.exp(1 / (8 * 4))


def exponents(n: float, slope: float, averages: Floats, risks: Floats) -> Floats:
    return np.exp(n * (slope * averages - np.log1p(risks * math.expm1(slope))))


@pytest.mark.parametrize("p", corners([0.5, 0.2], 1))
@for_each(
    ("folds", "groups"),
    [([0, 0, 1, 1], None), ([0, 1, 1], None), ([0, 0, 1, 1], [0, 0, 1, 1]), ([0, 0, 1], [0, 0, 1])],
)
def test_the_records_of_claims_hold_for_every_learner_with_two_folds(
    folds: list[int], groups: list[int] | None, p: float
) -> None:
    """Also where one fold's records are fewer, and for groups; with 1.3 times as many it is false."""
    law, ((first, its), (second, other)) = averages(folds, p, groups)
    model, largest = OutOfFold(folds, groups), 0.0
    for factor in (1.0, 1.3):
        largest = 0.0
        for slope in SLOPES:
            for some, risk in zip(np.array_split(first, 4), np.array_split(its, 4), strict=True):
                moments = exponents(
                    factor * model.claim_records(), slope, some[:, None] + second[None], risk[:, None] + other[None]
                )
                largest = max(largest, float((moments @ law).max()))
        assert (largest <= 1 + 1e-12) == (factor == 1.0)


def test_claim_records_in_closed_form() -> None:
    assert OutOfFold(np.arange(1000) % 5).claim_records() == 200.0
    assert OutOfFold([0, 0, 0, 1, 1, 1, 1], [1, 1, 2, 3, 3, 3, 4]).claim_records() == pytest.approx(7 / 5)
    assert OutOfFold([0, 0, 1]).effective_records() is None  # it is about truths that do not depend on the records


def test_inflations_in_closed_form() -> None:
    assert OutOfFold(np.arange(1000) % 5).variance_inflation() == pytest.approx(5.0, rel=1e-12)
    assert OutOfFold(np.arange(40)).variance_inflation() == 40.0
    groups = [record // 10 for record in range(100)]  # 10 equal groups in 2 folds: twice the inflation of groups
    assert OutOfFold([g % 2 for g in groups], groups).variance_inflation() == pytest.approx(20.0, rel=1e-12)
    unequal = OutOfFold([0, 0, 0, 1, 1, 1, 1], [1, 1, 2, 3, 3, 3, 4])
    assert unequal.variance_inflation() == pytest.approx((math.sqrt(5) + math.sqrt(10)) ** 2 / 7, rel=1e-12)
    assert list(unequal.squares()) == [5, 10]


def test_it_is_never_less_than_without_folds_and_never_more_than_the_worst_fold_says() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        groups = rng.integers(0, 12, size=60)
        home = rng.integers(0, 4, size=12)
        home[:2] = 0, 1
        groups[:2] = 0, 1
        model = OutOfFold(home[groups], groups)
        sizes = np.bincount(model.folds)
        assert Groups(groups).variance_inflation() <= model.variance_inflation()
        assert model.variance_inflation() <= 60 * max(model.squares() / sizes**2) * (1 + 1e-9)


def test_no_guarantee_that_rests_on_privacy_applies() -> None:
    model = OutOfFold([0, 0, 1, 1])
    assert model.leakage(1e-9).tolist() == [np.inf] * 4
    assert model.independent_groups() is None
    with pytest.raises(RouteUnavailable):
        model.budget(1.0)
    with pytest.raises(ArgumentError, match="cross-validation"):
        model.given([0])


def test_a_model_is_known_by_its_content() -> None:
    one = OutOfFold([0, 0, 1, 1])
    assert one.fingerprint() == OutOfFold(["a", "a", "b", "b"]).fingerprint()
    assert one.fingerprint() != OutOfFold([0, 1, 0, 1]).fingerprint()
    assert one.fingerprint() != OutOfFold([0, 0, 1, 1], [5, 5, 6, 7]).fingerprint() != Independent(4).fingerprint()
    assert (
        OutOfFold([0, 0, 1], [5, 5, 6]).describe()
        == "3 out-of-fold values in 2 folds of 1 to 2, of 2 independent groups"
    )
    draws = OutOfFold([0, 0, 1], [5, 5, 6]).sample(np.random.default_rng(0))
    assert draws[0] == draws[1]


@for_each(
    ("folds", "groups", "expected"),
    [
        ([0, 0], None, "folds must be .*; got one fold"),
        ([0, 1], [1], "1 labels"),
        ([0, 0, 1], [1, 2, 2], r"two folds \(record 1"),
    ],
)
def test_what_is_refused(folds: list[int], groups: list[int] | None, expected: str) -> None:
    with pytest.raises(ArgumentError, match=expected):
        OutOfFold(folds, groups)
