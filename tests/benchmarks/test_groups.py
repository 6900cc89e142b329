"""The price of groups, at a small size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from benchmarks.groups import (
    NORMAL,
    Design,
    both,
    candidates,
    checked,
    compared,
    exact_half,
    listed,
    row,
    scored,
    seen,
    student_half,
)
from tests.sizes import corners

SMALL = Design(60, 4, 0.2)
pytestmark = pytest.mark.filterwarnings("ignore::thresholdout.errors.WideAnswersWarning")


def test_candidates_have_their_correlation() -> None:
    (right, truth), *_ = candidates(Design(4000, 5, 0.3), 1, 1)
    sums = right[: right.size // 2].reshape(-1, 5).sum(axis=1)
    assert right.mean() == pytest.approx(truth, abs=0.02)
    pairs = float(np.mean(sums * (sums - 1.0))) / 20.0
    assert (pairs - truth**2) / (truth * (1.0 - truth)) == pytest.approx(0.3, abs=0.07)


def test_both_lists_it_is_compared_with() -> None:
    """Student's interval of the groups' means; constant bets are wider by about sqrt(2 ln(2/d)) over the quantile."""
    (right, truth), *_ = candidates(SMALL, 1, 3)
    values = right[: right.size // 2]
    means = values.reshape(-1, 4).mean(axis=1)
    expected = float(student.isf(0.025, 59)) * float(means.std(ddof=1)) / np.sqrt(60)
    assert student_half(values, SMALL, 0.05) == pytest.approx(expected)
    exact = exact_half(values, SMALL, truth * (1.0 - truth), 0.2, 0.05)
    assert 1.1 < exact / expected < 2.0


@pytest.mark.parametrize("limits", corners([pytest.param({}, id="exact"), pytest.param(NORMAL, id="normal")], 1))
def test_every_table_has_rows(limits: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    runs = [way(SMALL, 2, 0, **limits) for way in (scored, listed, checked)]
    runs += [compared(SMALL, 0, directly, **limits) for directly in (False, True)]
    for found in runs:
        for half, exact, by_t, _ in found:
            assert 0.0 < by_t < exact
            assert 0.0 < half <= 1.0
    row("one", runs, runs)
    assert len(capsys.readouterr().out.split()) == 1 + 2 * 7
    assert isinstance(seen(SMALL, 0.3, 0.05, 0, **limits), bool)


def test_normal_limits_stand_beside_exact_ones() -> None:
    exact, normal = both(listed, 1, Design(150, 4, 0.2), 2)
    assert [one[1:3] for one in exact[0]] == [one[1:3] for one in normal[0]]
    assert all(one[0] < 0.9 * other[0] for one, other in zip(normal[0], exact[0], strict=True))
