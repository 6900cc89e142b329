"""Limits that fail on one event: for every learner on small models, and beside those of fixed truths."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from graphs.models.out_of_fold import OutOfFold
from tests.cases import for_each
from tests.oracles.fold_claims import truths_and_counts
from tests.oracles.risk_left import coins
from tests.sizes import corners
from thresholdout.limits.entropy import entropy_lower
from thresholdout.limits.random_estimands import Line, line

Floats = NDArray[np.float64]


def learners(folds: list[int], p: float) -> tuple[Floats, Floats, Floats]:
    """Return averages and truths of all learners at all outcomes, and the law of the outcomes."""
    found = truths_and_counts(folds, p)
    averages = np.array([counts for counts, _ in found]) / len(folds)
    return averages, np.array([truth for _, truth in found]), np.array(coins([p] * len(folds)))


def read_at(one: Line, averages: Floats) -> Floats:
    """Return the limit at each average."""
    values, places = np.unique(averages, return_inverse=True)
    return np.array([one.lower(value) for value in values.tolist()])[places].reshape(averages.shape)


@pytest.mark.parametrize("p", corners([0.5, 0.3, 0.1, 0.02], 1))
@for_each("folds", [[0, 0, 1, 1], [0, 1, 1], [0, 1, 2], [0, 0, 0, 1]])
def test_all_limits_of_a_line_fail_together_with_at_most_its_level(folds: list[int], p: float) -> None:
    """Whatever the learner; the limit is read at the average that was seen."""
    averages, truths, law = learners(folds, p)
    model = OutOfFold(folds)
    for mean, level in itertools.product((0.1, 0.5, 0.9, 1.0), (0.3, 0.1, 0.01)):
        one = line(mean, model.claim_records(), len(folds) / model.variance_inflation(), math.log(level))
        below = truths <= read_at(one, averages) - 1e-12
        assert (below @ law).max() <= level
        assert mean < 1.0 or one.lower(1.0) > 0.0


def test_a_line_that_is_too_high_fails_more_often() -> None:
    """Leaving two out of two: an average of 1 with a risk of 0.3 has the probability 0.09."""
    averages, truths, law = learners([0, 1], 0.3)
    level = 0.09
    sound = line(1.0, 1.0, 1.0, math.log(level))
    for one, broken in ((sound, False), (Line(sound.slope, 0.25 * sound.depth), True)):
        worst = float(((truths <= read_at(one, averages)) @ law).max())
        assert (worst > level) == broken


@for_each("mean", [0.05, 0.5, 0.93, 1.0])
@for_each("records", [3.0, 400.0, 1e5])
@for_each("log_level", [-2.0, -9.0, -300.0])
def test_a_line_is_below_the_exact_one_and_next_to_the_limit_of_entropy_where_it_was_placed(
    mean: float, records: float, log_level: float
) -> None:
    one = line(mean, records, 1e-3, log_level)
    with mp.workdps(50):
        for a in (0.3 * mean, mean, min(1.0, 1.5 * mean)):
            exact = (mp.e ** (mp.mpf(one.slope) * a + mp.mpf(log_level) / records) - 1) / (
                mp.e ** mp.mpf(one.slope) - 1
            )
            assert (
                max(mp.mpf(0), exact) * (1 - mp.mpf("1e-5")) - mp.mpf("1e-9") <= one.lower(a) <= max(mp.mpf(0), exact)
            )
    fixed = entropy_lower(mean, records, log_level)
    assert one.lower(mean) <= fixed + 1e-15
    assert one.lower(mean) >= fixed * (1 - 1e-3) - 1e-4


def test_hoeffding_is_used_where_it_is_better() -> None:
    one = line(0.5, 100.0, 400.0, -5.0)
    assert one.slope == 0.0
    assert 0.5 - one.lower(0.5) == pytest.approx(math.sqrt(5 / 800), rel=1e-6)
    assert one.lower(0.0) == one.lower(0.05) == 0.0


@for_each("log_level", [-1e-3, -5.0, -300.0])
@for_each("records", [1e3, 1e5, 1e7])
def test_a_straight_line_is_as_far_below_as_hoeffding_says(records: float, log_level: float) -> None:
    one = line(1.0, 1e-3, records, log_level)
    assert one.slope == 0.0
    with mp.workdps(50):
        exact = mp.sqrt(mp.mpf(-log_level) / (2 * mp.mpf(records)))
        assert exact < one.depth < exact * (1 + mp.mpf(3e-9))


@for_each("mean", [0.0, 0.5, 1.0])
@for_each("log_level", [-1e-18, -5.0])
def test_lines_that_are_placed_anywhere_are_below_the_mean(mean: float, log_level: float) -> None:
    """At great levels no slope is taken for that of a straight line."""
    one = line(mean, 1000.0, 1e-30, log_level)
    assert one.slope > 0.0
    with mp.workdps(50):
        slope, depth = mp.mpf(one.slope), mp.mpf(-log_level) / 1000
        for a in (0.0, 0.3, 1.0):
            exact = (mp.e ** (slope * a - depth) - 1) / (mp.e**slope - 1)
            assert 0.0 <= one.lower(a) <= max(mp.mpf(0), exact)


def test_a_tilted_line_is_rounded_down_by_the_errors_of_its_exponent_and_of_its_quotient() -> None:
    """A trillionth of one and the slope in the exponent 1/2, whose effect is ``e^(1/2)/(e^(1/2) - 1)``; and another."""
    with mp.workdps(50):
        root = mp.sqrt(mp.e)
        exact = (root - 1) / (mp.e - 1)
        lost = float((exact - Line(1.0, 0.5).lower(1.0)) / exact)
        assert lost == pytest.approx(float(2 * root / (root - 1) + 1) * 1e-12, rel=1e-3)
