"""Splitting: parts are disjoint, as large as they can be, and groups stay whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import Groups
from thresholdout.certificates.splitting import bounded_width, splitting_width
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.mechanisms import (
    Splitting,
    SplittingParameters,
    SplittingState,
)
from thresholdout.noise import SeededNoise


@given(st.integers(1, 300), st.data())
def test_parts_of_single_records(n: int, data: st.DataObject) -> None:
    queries = data.draw(st.integers(1, n))
    parts = Splitting(SplittingParameters(queries), n)._parts
    assert [part.size for part in parts] == [n // queries] * queries
    together = np.concatenate(parts)
    assert np.unique(together).size == together.size
    assert together.min() >= 0
    assert together.max() < n


@given(st.integers(1, 40), st.integers(1, 6), st.data())
def test_parts_of_groups(groups: int, size: int, data: st.DataObject) -> None:
    labels = data.draw(st.permutations([group for group in range(groups) for _ in range(size)]))
    queries = data.draw(st.integers(1, groups))
    parts = Splitting(SplittingParameters(queries), len(labels), labels)._parts
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    owners = [{labels[record] for record in part} for part in parts]
    assert sum(map(len, owners)) == groups
    assert min(map(len, owners)) == groups // queries  # as many as the certificate counts


def test_the_certificate_is_about_these_parts() -> None:
    """The bound of the smallest part, from the parts themselves."""
    labels = np.repeat(np.arange(62), 5)
    parts = Splitting(SplittingParameters(4), labels.size, labels)._parts
    smallest = min(np.unique(labels[part]).size for part in parts)
    assert splitting_width(Groups(labels.tolist()), 4, 0.05) == bounded_width(smallest, 0.05 / 4)


def test_unequal_groups_are_refused() -> None:
    """By decreasing size in turn, groups of 20, ..., 79 records put all odd sizes into one part."""
    labels = np.repeat(np.arange(60), np.arange(20, 80)).tolist()
    with pytest.raises(InputError, match=r"groups of 20 to 79 records.*mechanism='thresholdout'"):
        Splitting(SplittingParameters(2), len(labels), labels)


def test_every_question_has_its_own_part() -> None:
    mechanism, noise = Splitting(SplittingParameters(3), 10), SeededNoise(0)
    state = mechanism.start(noise)
    for part in mechanism._parts:
        array = np.zeros(10)
        array[part[0]] = 1.0
        values = mechanism.read(array, 10, (0.0, 1.0), "v")
        state, outcome = mechanism.step(state, 0.5, values, noise)
        assert outcome.value == 1 / 3
        assert outcome.half_width is None
    assert mechanism.remaining(state) == 0
    with pytest.raises(BudgetExhausted, match="all 3 questions"):
        mechanism.step(state, 0.5, values, noise)


def test_sorted_records_fall_into_all_parts() -> None:
    """Halves of 1,000 records, the first 500 of one class: a part of 100 has between 30 and 70 of them."""
    for part in Splitting(SplittingParameters(10), 1000)._parts:
        assert 30 <= (part < 500).sum() <= 70
        assert 30 <= (part % 2 == 0).sum() <= 70


def test_refusals() -> None:
    with pytest.raises(InputError, match="queries: 11; expected: at most 10, as many as there are records"):
        Splitting(SplittingParameters(11), 10)
    with pytest.raises(InputError, match="queries: 3; expected: at most 2, as many as there are independent groups"):
        Splitting(SplittingParameters(3), 4, ["a", "a", "b", "b"])
    with pytest.raises(InputError, match="labels"):
        Splitting(SplittingParameters(1), 4, ["a"])
    with pytest.raises(InputTypeError, match="queries"):
        SplittingParameters(2.5)  # type: ignore[arg-type]
    mechanism = Splitting(SplittingParameters(2), 10)
    values = mechanism.read(np.zeros(4), 4, (0.0, 1.0), "v")
    with pytest.raises(InputError, match="records"):
        mechanism.step(SplittingState(0), 0.5, values, SeededNoise(0))
