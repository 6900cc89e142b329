"""Independent records and groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from graphs import ArgumentError, Groups, Independent, MovingWindow
from tests.cases import for_each


def test_independent() -> None:
    model = Independent(4)
    assert model.n == 4
    assert model.leakage(0.25).tolist() == [0.25] * 4
    assert model.leakage([0.1, 0.2, 0.3, 0.4], "group").tolist() == [0.1, 0.2, 0.3, 0.4]
    assert model.budget(0.3) == 0.3
    assert model.independent_groups().tolist() == [1] * 4
    assert model.describe() == "4 independent records"
    assert "4 independent records" in repr(model)


def test_groups() -> None:
    model = Groups(["b", "a", "b", "c", "b"])
    assert model.leakage(0.1) == pytest.approx([0.3, 0.1, 0.3, 0.1, 0.3], rel=1e-14)
    assert (model.leakage(0.1) >= np.array([3, 1, 3, 1, 3]) * 0.1).all()
    assert model.leakage([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx([9, 2, 9, 4, 9], rel=1e-14)
    assert model.independent_groups().tolist() == [3, 1, 1]
    assert model.budget(0.6) == pytest.approx(0.2, rel=1e-11)
    assert model.budget(0.6) * 3 <= 0.6
    assert model.budget(0.6, reduce="mean") == pytest.approx(0.6 * 5 / 11, rel=1e-11)
    assert model.describe() == "5 records in 3 independent groups of 1 to 3"
    assert Groups([1, 1]).describe() == "2 records in 1 independent group of 2"


@for_each(
    "labels",
    [
        np.array([3, 1, 3]),
        pd.Series(["x", "y", "x"]),
        pd.Series(["x", "y", "x"], dtype="category"),
        (("a", 1), ("b", 1), ("a", 1)),
        (label for label in (2.5, "z", 2.5)),
        [True, False, True],
    ],
)
def test_labels_of_any_kind(labels: Any) -> None:
    assert Groups(labels).independent_groups().tolist() == [2, 1]


@for_each(
    ("labels", "message"),
    [
        ([], "labels is missing"),
        ("patients", "labels must be .*; got the text 'patients'"),
        (7, "labels must be .*; got 7"),
        (np.array(7), "labels must be"),
        ([1, None], "a missing label of record 1"),
        ([float("nan"), 1], "a missing label of record 0"),
        (pd.array([1, None], dtype="Int64"), "a missing label of record 1"),
        (pd.Series([pd.Timestamp("2020-01-01"), pd.NaT]), "a missing label of record 1"),
        ([[1], [2]], "of type list"),
        (np.eye(2), "a vector"),
    ],
)
def test_groups_refuse(labels: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Groups(labels)


def test_numbers_of_labels_do_not_depend_on_how_they_are_held() -> None:
    labels = np.random.default_rng(0).integers(-5, 5, size=200)
    for held in (labels.astype(np.int8), labels.astype(object), labels.tolist(), pd.Series(labels)):
        model = Groups(held)
        assert model.groups.tolist() == Groups(labels).groups.tolist()
        assert model.names == Groups(labels).names == tuple(dict.fromkeys(labels.tolist()))


def test_fingerprints_tell_partitions_not_names() -> None:
    assert Groups([1, 1, 2]).fingerprint() == Groups(["p", "p", "q"]).fingerprint()
    assert Groups([1, 1, 2]).fingerprint() != Groups([1, 2, 2]).fingerprint()
    assert Independent(3).fingerprint() != MovingWindow(3, 0).fingerprint()
    assert MovingWindow(3, 1).fingerprint() != MovingWindow(3, 2).fingerprint()


@for_each(
    ("make", "message"),
    [
        (lambda: Independent(0), "n must be .*; got 0"),
        (lambda: Independent(-3), "n must be .*; got -3"),
        (lambda: Independent(float(2)), "n must be .*; got 2.0"),  # type: ignore[arg-type]
        (lambda: Independent("2"), "n must be .*; got '2'"),  # type: ignore[arg-type]
        (lambda: Independent(True), "n must be .*; got True"),
    ],
)
def test_counts_refuse(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.statistical
def test_samples_have_the_dependence() -> None:
    """Error rate 1e-9: groups share one coin; others agree half of the time."""
    rng = np.random.default_rng(4)
    draws = 4000
    groups = np.array([Groups([0, 0, 1]).sample(rng) for _ in range(draws)])
    assert (groups[:, 0] == groups[:, 1]).all()
    coins = np.array([Independent(2).sample(rng) for _ in range(draws)])
    low, high = stats.binom.ppf(1e-10, draws, 0.5), stats.binom.isf(1e-10, draws, 0.5)

    def agree(first: Any, second: Any) -> bool:
        return bool(low <= (first == second).sum() <= high)

    assert agree(groups[:, 0], groups[:, 2])
    assert agree(coins[:, 0], coins[:, 1])
    assert not agree(groups[:, 0], groups[:, 1])
