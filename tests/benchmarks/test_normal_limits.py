"""The measured levels of normal limits: the measurement against exact counts, and some of its laws."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import betabinom, multinomial

from benchmarks.normal_limits import LEVELS, Law, best_bets, compound, difference, laws, measured, spoiled
from thresholdout.limits.normal_limits import best_log_wealth, normal_nats


@pytest.mark.parametrize("kind", ["beta", "coin", "crash", "probit", "kinds"])
@pytest.mark.parametrize(("share", "rho"), [(0.88, 0.2), (0.55, 0.05)])
def test_laws_have_the_share_and_the_correlation_that_they_are_named_by(kind: str, share: float, rho: float) -> None:
    law, k = compound(kind, 6, share, rho), np.arange(7.0)
    assert law.sum() == pytest.approx(1.0)
    assert law @ k == pytest.approx(6 * share)
    pairs = float(law @ (k * (k - 1.0))) / 30.0  # both of two records are right
    found = (pairs - share**2) / (share * (1.0 - share))
    if kind == "probit":  # the correlation is that of the effect
        assert 0.0 < found < rho
    else:
        assert found == pytest.approx(rho, rel=1e-6)
    if kind == "beta":
        total = 1.0 / rho - 1.0
        assert law == pytest.approx(betabinom(6, share * total, (1.0 - share) * total).pmf(k))


def test_differences_and_graded_values() -> None:
    values, law = difference(4, 0.2, 0.1, 0.7)
    assert law.sum() == pytest.approx(1.0)
    assert law @ values == pytest.approx(4 * 0.5 * (1.0 + 0.2 * 0.4))
    values, law = spoiled(3, 0.9, 0.5)
    graded = 0.02 / 4 + 0.08 / 2 + 0.2 * 3 / 4 + 0.7
    assert law @ values == pytest.approx(3 * (0.5 * graded + 0.5 / 8))


def test_best_bets_are_those_of_the_guard() -> None:
    rng = np.random.default_rng(0)
    y = np.array([0.5, 0.1, -0.9, -2.0])
    counts = rng.multinomial(40, [0.6, 0.2, 0.15, 0.05], 20).astype(float)
    largest = rng.uniform(2.0, 4.0, 20)
    found = best_bets(counts, y, largest)
    for one, row, loss in zip(found, counts, largest, strict=True):
        assert one == pytest.approx(best_log_wealth(np.repeat(y, row.astype(int)), float(loss)), abs=1e-5)


def test_importance_sampling_agrees_with_an_exact_count_for_students_t() -> None:
    """All outcomes of 40 pairs: the probability that Student's test refutes the truth."""
    from scipy.stats import ttest_1samp

    shares, groups, level = compound("coin", 2, 0.7, 0.3), 40, 0.01
    law = Law("pairs", (2,), (groups,), (np.arange(3.0),), (shares,))
    exact = 0.0
    for none, one in product(range(groups + 1), repeat=2):
        both = groups - none - one
        if both < 0 or one + 2 * both <= groups * 1.4:
            continue
        probability = float(multinomial.pmf([none, one, both], groups, shares))
        if probability > 1e-9:
            p = ttest_1samp(np.repeat([0.0, 1.0, 2.0], [none, one, both]), 1.4, alternative="greater").pvalue
            exact += probability * float(p <= level)
    found = measured(law, level, False, 20_000, np.random.default_rng(1)).student
    assert found == pytest.approx(exact / level, rel=0.05)


def test_usual_laws_are_within_a_third_of_their_level_and_students_t_is_not() -> None:
    rows = [
        measured(side, level, False, 1500, np.random.default_rng(0))
        for law in laws(quick=True)
        for side in (law, law.mirrored())
        for level in LEVELS[:2]
    ]
    assert sum(not math.isnan(row.normal) for row in rows) == len(rows) == 8
    assert max(row.ratio for row in rows) < 1.33
    assert max(row.student for row in rows) > 4.0
    assert normal_nats(1e6, math.log(0.001)) < -math.log(0.001)
