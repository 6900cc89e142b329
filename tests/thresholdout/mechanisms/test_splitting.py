"""Splitting: parts are disjoint, as large as they can be, and groups stay whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import binom

from graphs import Groups, Independent
from thresholdout import Thresholdout
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.split_records import bounded_width, splitting_width
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.mechanisms import (
    Splitting,
    SplittingParameters,
    SplittingState,
)
from thresholdout.noise.sources import SeededNoise


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
    with pytest.raises(InputError, match=r"groups of 20 to 79 records.*mechanism='claims'"):
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
        assert outcome.interval is None  # the certificate says it
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


def guard_of(records: int = 4000, **more: Any) -> Thresholdout:
    options: dict[str, Any] = {"queries": 4, "mechanism": "splitting", "sampling": "iid"} | more
    return Thresholdout(np.arange(records), **options)


def test_values_0_or_1_have_the_limits_of_clopper_and_pearson() -> None:
    """Each side at an eighth of beta, for four parts of 1,000; from scipy's law, not from the library's limits."""
    guard = guard_of()
    answer = guard.ask(0.9, np.arange(4000) % 10 > 0, binary=True)
    count, level = round(answer.value * 1000), 0.05 * (1 - 2.0**-20) / 8
    low = brentq(lambda p: binom.sf(count - 1, 1000, p) - level, 1e-9, count / 1000)
    high = brentq(lambda p: binom.cdf(count, 1000, p) - level, count / 1000, 1 - 1e-9)
    assert answer.interval == pytest.approx((low, high), abs=1e-8)
    assert answer.half_width < 0.6 * guard.certificate.tolerance
    assert answer.interval == guard.certificate.interval(1, 0, "holdout", answer.value, binary=True)


def test_other_values_have_limits_of_relative_entropy() -> None:
    guard = guard_of()
    values = np.where(np.arange(4000) % 10 > 0, 0.99, 0.2)
    answer = guard.ask(0.9, values)

    def beyond(p: float) -> float:
        mean = answer.value
        level = math.log(0.05 * (1 - 2.0**-20) / 8)
        return 1000 * float(rel_entr(mean, p) + rel_entr(1 - mean, 1 - p)) + level

    assert answer.interval[0] == pytest.approx(brentq(beyond, 1e-9, answer.value - 1e-9), abs=1e-8)
    assert answer.interval[1] == pytest.approx(brentq(beyond, answer.value + 1e-9, 1 - 1e-9), abs=1e-8)


@pytest.mark.parametrize("records", [1, 7, 40])
def test_every_probability_is_covered(records: int) -> None:
    """The exact probability of a miss, for the certificate's own parts, at every p of a fine grid and at all limits."""
    certificate = certify_parameters(Independent(3 * records), SplittingParameters(3), 0.9)
    ends = np.array([certificate.interval(1, 0, "holdout", k / records, binary=True) for k in range(records + 1)])
    points = np.concatenate(
        [np.linspace(0, 1, 2001), *(ends[:, side] + shift for side in (0, 1) for shift in (-1e-9, 1e-9))]
    )
    for p in np.clip(points, 0, 1):
        missed = (ends[:, 0] > p) | (p > ends[:, 1])
        assert binom.pmf(np.arange(records + 1), records, p)[missed].sum() <= 0.1 / 3


def test_groups_count_as_records_between_0_and_1() -> None:
    """Ten groups in each part: means of groups are no shares of ones, whatever their records are."""
    guard = guard_of(400, dependence=Groups(np.arange(400) // 10))
    answer = guard.ask(0.9, np.arange(400) % 20 > 0, binary=True)
    assert answer.interval == pytest.approx(guard.certificate.interval(1, 0, "holdout", answer.value), abs=1e-6)
    assert guard.certificate.interval(1, 0, "holdout", 0.95, binary=True) == (
        guard.certificate.interval(1, 0, "holdout", 0.95)
    )


def test_a_value_between_becomes_a_coin() -> None:
    """The answer is a share of ones, so that its limits hold; the mean of the values is another."""
    answers = {guard_of().ask(1.0, np.full(4000, 0.5), binary=True).value for _ in range(8)}
    assert all(value * 1000 == round(value * 1000) for value in answers)
    assert len(answers) > 1


def test_after_a_failure_limits_are_for_a_smaller_share() -> None:
    records = np.arange(4000)
    guard = Thresholdout(
        (records, records), train=(-records - 1, records), queries=4, mechanism="splitting", sampling="iid"
    )

    def breaks(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if X[0] == 0:
            raise RuntimeError
        return np.ones(len(X))

    with pytest.raises(InputError, match="failed on the holdout"):
        guard.ask(breaks)
    answer = guard.ask(0.9, records % 10 > 0, binary=True)
    count, level = round(answer.value * 1000), 0.05 * 2.0**-20 / 16 / 8
    low = brentq(lambda p: binom.sf(count - 1, 1000, p) - level, 1e-9, count / 1000)
    assert answer.interval[0] == pytest.approx(low, abs=1e-8)


def test_what_to_expect() -> None:
    certificate = certify_parameters(Independent(4000), SplittingParameters(4))
    low, high = certificate.interval(1, 0, "holdout", 0.97, binary=True)
    assert certificate.expected_half_width(0.97) == pytest.approx(max(0.97 - low, high - 0.97), abs=1e-9)
    assert certificate.expected_half_width(0.97) < 0.5 * certificate.tolerance
