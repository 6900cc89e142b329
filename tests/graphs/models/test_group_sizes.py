"""Groups of which only sizes are known, against the groups themselves."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from graphs import ArgumentError, Groups
from graphs.models.law_free import GroupSizes
from tests.cases import for_each


def both(sizes: list[int]) -> tuple[GroupSizes, Groups]:
    return GroupSizes(Counter(sizes)), Groups(np.repeat(np.arange(len(sizes)), sorted(sizes)))


@for_each("sizes", [[1], [1, 1, 1], [4], [3, 1, 2, 2, 7], [5] * 40 + [1]])
def test_it_is_what_the_groups_are(sizes: list[int]) -> None:
    model, groups = both(sizes)
    assert model.n == sum(sizes)
    assert model.describe() == groups.describe()
    assert model.effective_records() == groups.effective_records() == sum(sizes) / max(sizes)
    assert model.variance_inflation() == groups.variance_inflation()
    assert Fraction(model.variance_inflation()) >= Fraction(sum(size**2 for size in sizes), sum(sizes))
    assert model.leakage(0.1).tolist() == groups.leakage(0.1).tolist()
    assert model.budget(0.6) == groups.budget(0.6)
    assert model.budget(0.6, reduce="mean") == pytest.approx(groups.budget(0.6, reduce="mean"), rel=1e-12)
    assert sorted(model.independent_groups().tolist()) == sorted(sizes)
    assert model.half_width() == groups.half_width()


def test_budgets_that_differ_have_the_worst_case() -> None:
    model, groups = both([1, 2, 2])
    epsilon = np.array([0.1, 0.4, 0.2, 0.3, 0.1])
    assert (model.leakage(epsilon) >= groups.leakage(epsilon)).all()
    assert model.leakage(epsilon) == pytest.approx([0.8] * 5, rel=1e-12)


def test_its_content_is_the_sizes() -> None:
    one = GroupSizes({2: 3, 1: 4})
    assert one.fingerprint() == GroupSizes({1: 4, 2: 3}).fingerprint() != GroupSizes({1: 3, 2: 3}).fingerprint()


def test_nothing_grows_with_the_records() -> None:
    model = GroupSizes({1: 10**15, 10**6: 3})
    assert model.n == 10**15 + 3 * 10**6
    assert model.effective_records() == model.n / 10**6
    assert model.variance_inflation() == pytest.approx(1 + 3e-3, rel=1e-6)


def test_samples_are_copies_inside_of_groups() -> None:
    model, _ = both([3, 1, 2])
    drawn = np.array([model.sample(np.random.default_rng(seed)) for seed in range(64)])
    assert drawn.shape == (64, 6)
    assert (drawn[:, 1] == drawn[:, 2]).all()
    assert (drawn[:, 3:] == drawn[:, 3:4]).all()
    assert set(drawn.ravel().tolist()) == {0, 1}


@for_each("sizes", [{}, [3], {0: 1}, {1: 0}, {1.0: 2}, {True: 2}, {2: -1}])
def test_what_are_no_sizes_is_refused(sizes: Any) -> None:
    with pytest.raises(ArgumentError, match="sizes"):
        GroupSizes(sizes)
