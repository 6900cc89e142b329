"""Independent records, groups and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from graphs import ArgumentError, Groups, Independent, MovingWindow, RouteUnavailable


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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "labels: nothing"),
        ("patients", "labels: the text 'patients'"),
        (7, "labels: 7"),
        (np.array(7), "labels: "),
        ([1, None], "record 1 has no label"),
        ([float("nan"), 1], "record 0 has no label"),
        (pd.array([1, None], dtype="Int64"), "record 1 has no label"),
        (pd.Series([pd.Timestamp("2020-01-01"), pd.NaT]), "record 1 has no label"),
        ([[1], [2]], "of type list"),
        (np.eye(2), "a vector"),
    ],
)
def test_groups_refuse(labels: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Groups(labels)


def test_fingerprints_tell_partitions_not_names() -> None:
    assert Groups([1, 1, 2]).fingerprint() == Groups(["p", "p", "q"]).fingerprint()
    assert Groups([1, 1, 2]).fingerprint() != Groups([1, 2, 2]).fingerprint()
    assert Independent(3).fingerprint() != MovingWindow(3, 0).fingerprint()
    assert MovingWindow(3, 1).fingerprint() != MovingWindow(3, 2).fingerprint()


def test_windows() -> None:
    model = MovingWindow(7, 2)
    assert model.m == 2
    assert model.leakage(0.1) == pytest.approx(np.full(7, 0.7), rel=1e-14)
    expected = np.array([3, 4, 5, 5, 5, 4, 3]) * 0.1
    assert model.leakage(0.1, adversary="uninformed") == pytest.approx(expected, rel=1e-14)
    budgets = np.arange(7) / 10
    sums = [budgets[max(i - 2, 0) : i + 3].sum() for i in range(7)]
    assert model.leakage(budgets, adversary="uninformed") == pytest.approx(sums, rel=1e-12)
    assert (model.leakage(budgets, adversary="uninformed") >= sums).all()
    assert model.budget(0.5, adversary="uninformed") == pytest.approx(0.1, rel=1e-11)
    with pytest.raises(RouteUnavailable, match="depend on each other once"):
        model.leakage(0.1, "quilt")
    assert model.independent_groups() is None
    assert model.describe() == "7 records in a series, independent when more than 2 apart"


def test_windows_at_their_ends() -> None:
    assert MovingWindow(5, 0).leakage(0.1).tolist() == [0.1] * 5
    none = MovingWindow(5, 0).independent_groups()
    assert none is not None
    assert none.tolist() == [1] * 5
    for m in (4, 9):
        whole = MovingWindow(5, m)
        for method in ("group", "quilt"):
            assert whole.leakage(0.1, method) == pytest.approx(np.full(5, 0.5), rel=1e-14)
    assert MovingWindow(1, 3).leakage(0.1).tolist() == [0.1]
    for n, m in ((2, 1), (4, 1), (4, 2), (9, 4), (10, 4), (10, 5)):
        sizes = [min(i, m) + min(n - 1 - i, m) + 1 for i in range(n)]
        assert MovingWindow(n, m).leakage(0.1, adversary="uninformed") == pytest.approx(np.array(sizes) * 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Independent(0), "n: 0"),
        (lambda: Independent(-3), "n: -3"),
        (lambda: Independent(float(2)), r"n: 2\.0"),  # type: ignore[arg-type]
        (lambda: Independent("2"), "n: '2'"),  # type: ignore[arg-type]
        (lambda: Independent(True), "n: True"),
        (lambda: MovingWindow(0, 1), "n: 0"),
        (lambda: MovingWindow(3, -1), "m: -1; expected: an integer of at least 0"),
        (lambda: MovingWindow(3, 0.5), r"m: 0\.5"),  # type: ignore[arg-type]
    ],
)
def test_counts_refuse(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.statistical
def test_samples_have_the_dependence() -> None:
    """Error rate 1e-9: groups share one coin; records m + 1 apart in a window agree half of the time."""
    rng = np.random.default_rng(4)
    draws = 4000
    groups = np.array([Groups([0, 0, 1]).sample(rng) for _ in range(draws)])
    assert (groups[:, 0] == groups[:, 1]).all()
    windows = np.array([MovingWindow(4, 2).sample(rng) for _ in range(draws)])
    coins = np.array([Independent(2).sample(rng) for _ in range(draws)])
    low, high = stats.binom.ppf(1e-10, draws, 0.5), stats.binom.isf(1e-10, draws, 0.5)

    def agree(first: Any, second: Any) -> bool:
        return bool(low <= (first == second).sum() <= high)

    assert agree(groups[:, 0], groups[:, 2])
    assert agree(coins[:, 0], coins[:, 1])
    assert agree(windows[:, 0], windows[:, 3])
    assert not agree(windows[:, 0], windows[:, 1])
    assert set(np.unique(windows)) == {0, 1}
