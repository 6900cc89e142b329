"""Answers as numbers: converted, compared and formatted, and not added or subtracted."""

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.guard.answer import Answer

A = Answer(0.84, (0.79, 0.88), "train", 1, None)
B = Answer(0.86, (0.80, 0.90), "train", 2, None)


def test_a_difference_of_answers_says_to_compare_the_models() -> None:
    with pytest.raises(TypeError, match=r"guard\.compare\(b, a\)"):
        B - A


@for_each(
    "sum_of",
    [
        lambda: A + B,
        lambda: sum([A, B]),
        lambda: A - 0.5,
        lambda: 0.5 - A,
        lambda: A + 1,
        lambda: np.float64(1.0) + A,
        lambda: np.ones(2) - A,
    ],
)
def test_other_sums_name_the_bare_number(sum_of: object) -> None:
    with pytest.raises(TypeError, match=r"float\(answer\) for arithmetic"):
        sum_of()  # type: ignore[operator]


def test_values_are_compared_though_intervals_overlap() -> None:
    assert B > A
    assert A < 0.85 <= B
    assert max([A, B]) is B
    assert float(B) - float(A) == pytest.approx(0.02)
