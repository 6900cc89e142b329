"""Logarithms of shares of the error budget."""

from __future__ import annotations

import pytest

from tests.cases import for_each
from thresholdout.mechanisms.claims.score import lowered


@for_each(("logarithm", "by"), [(0.0, 1e-12), (-1.0, 1.001e-12), (-1e3, 2e-12), (-1e6, 1.001e-9)])
def test_logarithms_of_shares_are_lowered_by_a_constant_and_in_proportion(logarithm: float, by: float) -> None:
    spacing = 2.0**-52 * abs(logarithm)
    assert logarithm - lowered(logarithm) == pytest.approx(by, rel=1e-9, abs=spacing)
    assert lowered(logarithm) < logarithm
